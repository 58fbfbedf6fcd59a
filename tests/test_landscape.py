"""The page on who assumes what, and when hiding helps."""

import re
from pathlib import Path

import pytest

from benchmarks import landscape
from dpcalc.theorems.record import all_bounds

PAGE = Path(__file__).parents[1] / "docs" / "landscape.md"


def test_every_bound_that_is_named_is_one() -> None:
    ids = set(all_bounds())
    named = re.findall(r"`([a-z_]+\.[a-z_]+\*?|\*\.[a-z_]+|[a-z_]+\.\*)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 15
    for name in named:
        assert any(re.fullmatch(name.replace(".", r"\.").replace("*", ".*"), each) for each in ids), name


@pytest.mark.parametrize("value", [0.0128, 1.0, 4.8865541, 9.999, 1234.5, 1e-7])
def test_guarantees_are_rounded_up_and_lower_values_down(value: float) -> None:
    assert value <= float(landscape.shown(value)) <= value * 1.011
    assert value * 0.989 <= float(landscape.shown(value, -1)) <= value


@pytest.mark.campaign
def test_the_page_is_what_the_command_prints() -> None:
    shown = PAGE.read_text(encoding="utf-8")
    assert landscape.page() == shown, "stale: run `python -m benchmarks.landscape --write docs/landscape.md`"
