"""A few cases of every target, each batch in a process of its own with a limit on memory and a watchdog."""

import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcalc.model.numbers import parse_integer, parse_log, parse_number, parse_sweep
from tests.fuzz.__main__ import TARGETS, one
from tests.fuzz.files import files, refusable
from tests.fuzz.lines import CODES, SEEDS, described, drawn, ran, smallest, tried
from tests.fuzz.mutate import mutated
from tests.fuzz.questions import composed
from tests.oracles import cases

ROOT = Path(__file__).parents[2]
COST = {
    "numbers": 2, "schedules": 2, "tables": 5, "models": 3, "recipes": 5, "baselines": 5, "command-lines": 60,
    "checks": 60, "questions": 60,
}  # fmt: skip
COUNT = {
    "numbers": 2000, "schedules": 2000, "tables": 500, "models": 500, "recipes": 500, "baselines": 500,
    "command-lines": 60, "checks": 60, "questions": 40,
}  # fmt: skip


@pytest.mark.few(5)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_breaks(name: str) -> None:
    count = cases(COUNT[name], COST[name])
    words = [sys.executable, "-m", "tests.fuzz", name, "--cases", str(count), "--seed", "tests"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"{count} cases, 0 findings"), done.stdout


def test_a_finding_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fragile(path: str) -> int:
        return int(Path(path).read_bytes())

    monkeypatch.setitem(TARGETS, "fragile", files({".txt": (b"1", b"22")}, fragile))
    found = [one("fragile", "0", number) for number in range(50)]
    assert any(problem and "ValueError" in problem for problem in found)
    assert not all(found)


@pytest.mark.campaign
def test_some_cases_are_answered() -> None:
    """What is drawn is not all refused at the first word."""
    seeds = [b"1,2,3"]
    assert sum(mutated(random.Random(k), seeds) in seeds for k in range(100)) in range(5, 95)
    codes = [ran(drawn(random.Random(f"answered {k}")))[0] for k in range(24)]
    assert 0 in codes
    assert any(code in (2, 3) for code in codes)
    assert set(codes) <= set(CODES)
    assert {seed.split()[0] for seed in SEEDS} >= {"compare", "rdp", "shifted", "shuffle", "utility", "dp-sgd"}


@pytest.mark.campaign
def test_described_runs_are_answered(tmp_path: Path) -> None:
    """Runs that are refused at the first word would tell nothing of formats and bounds."""
    described(tmp_path, random.Random("files"))
    codes = [tried(composed(random.Random(f"runs {k}")), tmp_path)[0] for k in range(30)]
    assert sum(code in (0, 1) for code in codes) >= 9


def test_a_long_line_is_cut_to_what_is_wrong() -> None:
    def judge(words: Sequence[str]) -> None:
        assert "--bad" not in words

    with pytest.raises(AssertionError, match=r"^dpcalc rdp --bad: "):
        smallest(["rdp", "-n", "5", "--bad", "x", "--json", "-e", "1"], judge)


# --- numbers, by hypothesis -----------------------------------------------------------------------------------------

SHORT = st.text(st.sampled_from("0123456789.eE+-/^%_*: ,"), max_size=12)
JOINED = st.lists(
    st.sampled_from(
        ["1", "2", "0", "10", "1e", "5", ".", "-", "+", "/", "^", "**", "%", "_", "e-", "99999", " ", "inf"]
    ),
    max_size=8,
).map("".join)


@given(st.one_of(SHORT, JOINED))
def test_a_text_is_read_alike_by_every_reader(text: str) -> None:
    found: dict[Any, float] = {}
    for parse in (parse_number, parse_integer, parse_log):
        value = refusable(lambda parse=parse: parse(text))
        if value is not None:
            found[parse] = value
    if parse_integer in found:
        assert parse_number in found
        assert float(found[parse_integer]) == found[parse_number]
    if parse_number in found:
        assert (parse_log in found) == (found[parse_number] > 0.0)
        assert parse_sweep(text, parse_number) == [found[parse_number]]
