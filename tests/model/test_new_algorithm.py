"""What an algorithm needs besides its record: one failing test lists all that is missing, and where it goes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import ALGORITHMS, Algorithm, Length, Order, Release
from dpcalc.theorems.record import FAMILIES, for_algorithm
from tests.cli.test_compare import DESCRIBED
from tests.quick.questions import QUESTIONS
from tests.training.test_laws import CASES
from tests.training.test_plan import PLANS
from tests.truth.runs import RUNS
from tests.truth.words import NOTES

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_LAW = ("online", "local", "correlated")
"""Executed algorithms whose law is compared elsewhere: tests/training/test_single.py and test_correlation.py."""


def text_of(path: str) -> str:
    """Return a file of the project."""
    return (ROOT / path).read_text(encoding="utf-8")


def missing(algorithm: Algorithm) -> Iterator[str]:
    """Yield what an algorithm still lacks, each with where it goes."""
    name, base = algorithm.name, algorithm.base
    if not any(base in command.algorithms for command in COMMANDS.values()) and not algorithm.chained:
        yield "a command: `release` among its parameters, or a line of dpcalc/engine/commands.py"
    if "release" in algorithm.parameters and algorithm.release is Release.LAST and f"{name}-released" not in ALGORITHMS:
        yield f"a record {name}-released in dpcalc/model/algorithm.py, for --release epoch"
    if not any(bound.guarantee for bound in for_algorithm(name)):
        yield "a guarantee: its name among the `algorithms` of a theorem in dpcalc/theorems/"
    speaking = {bound.family for bound in for_algorithm(name)}
    if algorithm.families != tuple(family for family in FAMILIES if family in speaking):
        yield f"the families of its theorems in its record: {', '.join(f for f in FAMILIES if f in speaking)}"
    if name not in {question.algorithm for question in QUESTIONS}:
        yield "a question in tests/quick/questions.txt"
    if name not in {run.algorithm for run in RUNS} or name not in NOTES:
        yield "small runs in tests/truth/runs.py, and a sentence about them in tests/truth/words.py"
    if f"\n## {name}\n" not in text_of("docs/tightness.md"):
        yield "its part of the page: run `python -m tests.truth --write docs/tightness.md`"
    if base not in DESCRIBED and not algorithm.chained:
        yield "a run in DESCRIBED of tests/cli/test_compare.py"
    if algorithm.executed and name not in PLANS and not algorithm.grows:
        yield "its plan in tests/training/test_plan.py"
    if algorithm.executed and name == base and name not in {*(case[0] for case in CASES), *WITHOUT_LAW}:
        yield "its law by brute force in tests/training/test_laws.py"
    if name == base and not algorithm.chained and name not in re.split(r"[^a-z-]+", text_of("docs/commands.md")):
        yield "its place in the reference: run `python docs/build.py`"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing_is_missing(name: str) -> None:
    lacking = list(missing(ALGORITHMS[name]))
    assert not lacking, f"{name} lacks\n  " + "\n  ".join(lacking)


def test_what_is_missing_is_noticed() -> None:
    bare = Algorithm(
        "not-an-order", "nothing is run", Order.UNKNOWN, Length.PASSES, parameters=("release",), families=("linear",)
    )
    assert len(list(missing(bare))) == 11
    assert not list(missing(ALGORITHMS["cyclic"]))
