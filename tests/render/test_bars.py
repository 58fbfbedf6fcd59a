"""Verdicts as bars: how much of its limit each gate uses, and the pictures of it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from typing import Any

import pytest

from dpcalc.render.chart.bars import MAX_BARS, bars
from dpcalc.render.chart.figure import draw_bars
from dpcalc.report import Assertion, Change, Report
from tests.render.test_check_reports import ALL, BROKEN, DELTA, EPSILON, FAILED, HELD, HOSTILE, INDEX, TINY, case


@pytest.mark.parametrize(
    ("result", "gate", "share"),
    [
        (EPSILON, Assertion("epsilon <= 2", True, 1.5, 0.5), 0.75),
        (EPSILON, Assertion("epsilon < 1", False, 1.5, -0.5), 1.5),
        (INDEX, Assertion("index >= 100", True, 400.0, 300.0), 0.25),
        (INDEX, Assertion("index > 100", False, 50.0, -50.0), 2.0),
        (EPSILON, Assertion("epsilon==2.0 within 0.5", True, 1.5, 0.5), 0.5),
        (EPSILON, Assertion("epsilon==2.0 within 0.25", False, 1.0, -0.5), 2.0),
        (EPSILON, Assertion("epsilon==2.0 within 0", False, 1.0, -1.0), math.inf),
        (DELTA, Assertion("delta<=1e-6", True, 2.5e-7, 7.5e-7), 0.25),
        (TINY, Assertion("delta<=1e-6", True, 5e-324, 3.0), math.exp(-3.0)),
        (TINY, Assertion("delta<=1e-400", False, 5e-324, -2.0), math.exp(2.0)),
        (TINY, Assertion("delta<=1e-300", True, 0.0, math.inf), 0.0),
        (EPSILON, Assertion("epsilon <= 0", False, 1.5, -1.5), math.inf),
        (EPSILON, Assertion("epsilon <= 0", True, 0.0, 0.0), 0.0),
        (EPSILON, Assertion("epsilon <= 1", False, math.inf, -math.inf), None),
        (EPSILON, Assertion("epsilon <= 1", False, math.nan, math.nan), None),
        (INDEX, Assertion("index == 123", True, 123.0, 0.0), None),
        (EPSILON, Assertion("bound==a.b", False, "c.d", None), None),
    ],
)  # fmt: skip
def test_the_share_of_the_limit(result: Any, gate: Assertion, share: float | None) -> None:
    [bar] = bars(Report("check", (case(result, gates=[gate], status="passed" if gate.passed else "failed"),))).bars
    assert bar.share == (share if share is None else pytest.approx(share, rel=1e-12))
    assert bar.status == ("passed" if gate.passed else "failed")
    if bar.share is not None:
        assert (bar.share <= 1.0) == gate.passed


def test_every_gate_and_every_case_without_one_has_a_bar() -> None:
    found = bars(ALL._replace(cases=(*ALL.cases, case(EPSILON, name="bare"))))
    assert found.title == "dpcalc check: 2 of 5 cases passed, 1 failed, 1 skipped, 1 could not be judged"
    assert [(bar.label.partition(": ")[2], bar.status, bar.text) for bar in found.bars] == [
        ("budget", "passed", "epsilon 1.2346 <= 2"),
        ("too much", "failed", "epsilon 1.2346 <= 1"),
        ("too much", "passed", "epsilon 1.2346 <= 2"),
        ("impossible", "error", "no guarantee applies"),
        ("later", "skipped", "skipped by --only"),
        ("bare", "passed", "epsilon 1.2346, no gate"),
    ]
    assert not found.log


def test_far_apart_shares_are_drawn_in_powers_of_ten() -> None:
    tiny = case(TINY, gates=[Assertion("delta<=1e-300", True, 5e-324, 10822.0)])
    found = bars(Report("check", (tiny, FAILED)))
    assert found.log
    assert found.notes == ("bars end where they are more than 6 powers of ten from the limit",)
    near = case(EPSILON, gates=[Assertion("epsilon <= 2", True, 0.05, 1.95)])
    assert not bars(Report("check", (near,))).log


def test_of_too_many_bars_those_that_failed_are_kept() -> None:
    many = [case(EPSILON, name=f"case {k}", gates=[HELD]) for k in range(2 * MAX_BARS)]
    found = bars(Report("check", (*many, case(EPSILON, name="last", status="failed", gates=[BROKEN]))))
    assert len(found.bars) == MAX_BARS
    assert found.bars[0].label == "last"
    assert found.notes == (f"{MAX_BARS + 1} of {2 * MAX_BARS + 1} bars are not drawn, for want of room",)


@pytest.mark.parametrize("cases", [(), ALL.cases, ALL.cases[2:], (case(TINY, gates=[HELD]),)])
def test_the_picture(cases: tuple[Any, ...]) -> None:
    first = draw_bars(bars(Report("check", cases)), "svg")
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert first == draw_bars(bars(Report("check", cases)), "svg")


@pytest.mark.parametrize("text", [*HOSTILE, "$x^{2$", "\u6f22\u5b57"])
def test_names_do_not_break_the_picture(text: str) -> None:
    odd = case(EPSILON, name=text, file=text, status="failed", gates=[Assertion(f"epsilon<={text}", False, 1.5, -0.5)])
    error = case(name=text, file=text, status="error", message=text, code=2)
    picture = draw_bars(bars(Report("check", (odd, error))), "svg").decode()
    ElementTree.fromstring(picture)
    assert "##vso[" not in picture


@pytest.mark.parametrize(
    "text", [*HOSTILE[:3], *(pytest.param(text, marks=pytest.mark.campaign) for text in HOSTILE[3:])]
)
def test_names_do_not_break_pixels(text: str) -> None:
    error = case(name=text, file=text, status="error", message=text, code=2)
    assert draw_bars(bars(Report("check", (error,))), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("result", "gate", "quantity", "was", "before"),
    [
        (EPSILON, Assertion("epsilon <= 2", True, 1.5, 0.5), "epsilon", "1", 0.5),
        (EPSILON, Assertion("epsilon <= 2", True, 1.5, 0.5), "epsilon", "3", 1.5),
        (INDEX, Assertion("index >= 100", True, 400.0, 300.0), "index", "200", 0.5),
        (EPSILON, Assertion("epsilon <= 2", True, 1.5, 0.5), "mu", "1", None),
        (EPSILON, Assertion("epsilon <= 2", True, 1.5, 0.5), "epsilon", "", None),
        (EPSILON, Assertion("epsilon==2.0 within 0.5", True, 1.5, 0.5), "epsilon", "1", None),
    ],
)  # fmt: skip
def test_the_share_of_the_limit_before(
    result: Any, gate: Assertion, quantity: str, was: str, before: float | None
) -> None:
    """A ring is drawn where the value of the earlier report was."""
    now = case(result, gates=[gate])
    assert now.check is not None
    change = Change(now.check.file, now.check.name, quantity, was, "1.5", "up")
    found = bars(Report("check", (now,), changes=(change,)))
    assert found.bars[0].before == (before if before is None else pytest.approx(before, rel=1e-12))
    assert any("ring" in note for note in found.notes) == (before is not None)
    assert len(draw_bars(found, "svg")) > len(draw_bars(bars(Report("check", (now,))), "svg")) or before is None
