"""Asking about a run by the front door."""

import shlex
from typing import Any

import dpcalc
from dpcalc.report import Case as Answer
from tests.truth.laws import RELEASED


def front(algorithm: str, told: dict[str, Any], **question: Any) -> Answer:
    """The answer to a question about a run, in which ``-released`` says that every epoch's iterate is."""
    given = {name: value for name, value in told.items() if value is not None}
    if algorithm.endswith(RELEASED):
        given["release"] = "epoch"
    return dpcalc.compare(algorithm=algorithm.removesuffix(RELEASED), **given, **question).cases[0]


def flags(algorithm: str, told: dict[str, Any]) -> str:
    """The run as typed."""
    given = {"algorithm": algorithm.removesuffix(RELEASED), **told}
    if algorithm.endswith(RELEASED):
        given["release"] = "epoch"
    words = [w for name, v in given.items() if v is not None for w in (f"--{name.replace('_', '-')}", f"{v}")]
    return shlex.join(["compare", *words])


def promised(answer: Answer, conditional: bool = False) -> list[Any]:
    """The results that are guarantees; also those whose promise is kept, though it was not made, if ``conditional``."""
    kinds = ("upper", "exact", "conditional") if conditional else ("upper", "exact")
    return [result for result in answer.results if result.kind in kinds]
