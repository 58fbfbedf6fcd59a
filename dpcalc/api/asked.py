"""The keywords of a function: read as the command line reads its flags, and answered."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.api.pending import PendingCase
from dpcalc.engine.ask import FEW, ask, best_of, side_by_side
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate, parse
from dpcalc.engine.question import aimed
from dpcalc.errors import DpcalcError, SpecError, warn
from dpcalc.model.parameter import PARAMETERS, RATES, check, conversion, meant_by, not_covered, renamed
from dpcalc.model.quantities import Given
from dpcalc.model.question import Question
from dpcalc.render.notes import in_words
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from dpcalc.model.question import RiskQuestion

QUESTION = {
    "epsilon": "the budget",
    "delta": 'the budget; a string such as "1e-5000" where no float can hold it',
    "order": "order or orders of Renyi divergence; without a budget the divergence itself is reported",
    "solve": "name of a parameter to solve for instead, given both epsilon and delta",
    "gates": 'assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one',
    "certify": 'prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why '
    "not",
    "risk": "what an attacker can do, beside the answer: case.risk",
    "fpr": "false-positive rates at which risk gives true-positive rates",
    "prior": "prior probabilities that the record is there, for how often a guess is right",
    "baseline": "probabilities to guess a secret of the record right without the release",
    "advantage": "solve for what keeps true-positive less false-positive rate of any attack at most this",
    "tpr": "solve for what keeps the true-positive rate at fpr at most this",
    "success": "solve for what keeps how often a guess is right, at prior, at most this",
    "reconstruction": "solve for what keeps how often a secret is guessed, baseline without, at most this",
}


class Asked(NamedTuple):
    """Every combination of the values given, and what is asked of each."""

    runs: list[dict[str, Any]]
    orders: tuple[float, ...]
    solve: str | None
    gates: list[Gate]
    certify: bool = False
    risks: RiskQuestion | None = None
    listed: Mapping[str, Sequence[float]] = {}

    def question(self, run: dict[str, Any]) -> Question:
        """Return what is asked of a run; what says so is taken out of its values."""
        question = question_of(run.pop("epsilon", None), run.pop("delta", None), self.orders, self.solve)
        return aimed(question._replace(risks=self.risks), run, self.listed)

    def answer(self, command: str, run: Given, by: Callable[..., Case], *, notes: bool, brief: bool) -> Case:
        """Return the case of a run: its best answer at once, and the rest when somebody looks at it.

        Args:
            command: a key of `COMMANDS`.
            run: keyword -> value.
            by: what answers, as `dpcalc.engine.ask.ask` does.
            notes, brief: as for `ask`.
        """
        given = dict(run)
        question = self.question(given)
        options: dict[str, Any] = {"certified": True} if self.certify else {}

        def whole() -> Case:
            case = by(command, given, question, gates=self.gates, notes=notes, brief=brief, **options)
            return in_words(command, case)

        reads = given.get("schedule") is not None  # a file, which may be gone or another one later
        in_full = self.certify or self.gates or reads or by not in (ask, side_by_side)
        best = None if in_full else best_of(command, given, question)
        case = whole() if best is None else best
        for text in case.warnings:
            warn(as_keywords(text))
        return case if best is None else PendingCase.of(best, whole)


def read(command: str, /, **given: Any) -> Asked:
    """Return what the keywords ask.

    Raises:
        SpecError: a gate does not parse, a list is empty, certify is no bool, or a keyword is unknown, be it None.
    """
    record = COMMANDS[command]
    given = renamed(given)
    for name in given:
        if name not in (*record.parameters, "schedule", *QUESTION):
            raise _unknown(command, name)
    values = {name: value for name, value in given.items() if value is not None}
    orders = tuple(float(check("order", order)) for order in several("order", values.pop("order", ())))
    gates = [gate_of(text) for text in several("gates", values.pop("gates", ()))]
    solve = values.pop("solve", None)
    certify = False if record.trains else values.pop("certify", False)
    listed = {name: several(name, values.pop(name)) for name in RATES if name in values}
    risks = risks_of(values.pop("risk", False), listed)
    if not isinstance(certify, bool):
        raise SpecError(f"certify is {certify!r}; it must be True or False")
    if record.compares and values.get("algorithm") == "all":
        values["algorithm"] = record.algorithms
    if "schedule" in values:
        values["schedule"] = os.fspath(values["schedule"])
    runs = product({name: several(name, value) for name, value in values.items()})
    return Asked(runs, orders, solve, gates, certify, risks, listed)


def _unknown(command: str, name: str) -> SpecError:
    """Return the error about a keyword that a function does not take."""
    from dpcalc.files.place import near

    taken = (*COMMANDS[command].parameters, *QUESTION)
    meant = meant_by(name, taken)
    hint = f"did you mean {meant}?{conversion(meant)}" if meant else near(name, taken)
    return SpecError(f"{command} does not take {name}", not_covered(name) or hint)


_FLAG = re.compile(r"--([a-z][a-z0-9-]*)(?: ([a-z][a-z-]*|[0-9](?:[0-9.e-]*[0-9])?))?")
"""A flag in a message, and the word or number behind it, which may be its value."""


def as_keywords(text: str) -> str:
    """Return a message with keywords where it names flags: ``adjacency="add-remove"``."""

    def keyword(flag: re.Match[str]) -> str:
        name, value = flag[1].replace("-", "_"), flag[2]
        if value is None or name not in PARAMETERS:
            return " ".join(filter(None, (name, value)))
        with contextlib.suppress(SpecError):
            check(name, value if PARAMETERS[name].choices else float(value) if value[0].isdigit() else math.nan)
            return f'{name}="{value}"' if PARAMETERS[name].choices else f"{name}={value}"
        return f"{name} {value}"

    return _FLAG.sub(keyword, text)


@contextlib.contextmanager
def in_keywords() -> Iterator[None]:
    """Let the errors of a function name its keywords where those of the command name flags."""
    try:
        yield
    except DpcalcError as error:
        error.message, error.hint = as_keywords(error.message), as_keywords(error.hint) if error.hint else None
        raise


def risks_of(asked: Any, listed: Mapping[str, Sequence[float]]) -> RiskQuestion | None:
    """Return what is asked about attacks; None where nothing is.

    Raises:
        SpecError: risk is no bool, or a rate or probability is outside (0, 1).
    """
    if not isinstance(asked, bool):
        raise SpecError(f"risk is {asked!r}; it must be True or False")
    if not asked and not listed:
        return None
    from dpcalc.model.question import RiskQuestion

    return RiskQuestion.of(**listed)


def known_of(rdp: Any, **sweeps: Any) -> list[dict[str, Any]]:
    """Return every combination of what is known of a mechanism and asked about it.

    Raises:
        SpecError: a list is empty, or the bounds on the Renyi divergence are malformed.
    """
    from dpcalc.engine.premises import points_of

    given = {name: several(name, value) for name, value in sweeps.items() if value is not None}
    return product({**given, **({"rdp": [points_of(rdp)]} if rdp is not None else {})})


def product(sweeps: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return every combination of values.

    Raises:
        SpecError: a list is empty.
    """
    empty = [name for name, several in sweeps.items() if not several]
    if empty:
        raise SpecError(f"{empty[0]} has no value", "give one, or leave it out")
    return [dict(zip(sweeps, chosen, strict=True)) for chosen in itertools.product(*sweeps.values())]


def gate_of(text: Any) -> Gate:
    """Return the gate that a text states.

    Raises:
        SpecError: it is no text, or states none.
    """
    if not isinstance(text, str):
        raise SpecError(f"{text!r} is not an assertion", "write it as text, for example 'epsilon<=1'")
    return parse(text)


def answered(command: str, asked: Asked, alone: Callable[..., Case], among_others: Callable[..., Case]) -> Report:
    """Return the report on every combination; ``alone`` raises where nothing holds, ``among_others`` says why."""
    single = len(asked.runs) == 1
    options = {"notes": len(asked.runs) <= FEW, "brief": not single}
    with in_keywords():
        cases = [asked.answer(command, run, alone if single else among_others, **options) for run in asked.runs]
        if not any(case.best for case in cases):
            asked.answer(command, asked.runs[0], alone, **options)  # nothing holds anywhere: say why of the first
    return Report(command, tuple(cases))


def several(name: str, value: Any) -> list[Any]:
    """Return the values of a parameter, one or several, as Python's own numbers (those of numpy become so)."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        raise SpecError(f"{name} is {value!r}; it must be a value or a list of values")
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]


def question_of(
    epsilon: float | None, delta: float | str | None, orders: tuple[float, ...] = (), solve: str | None = None
) -> Question:
    """Return the question with a checked budget.

    Raises:
        SpecError: epsilon or delta is outside its domain.
    """
    value, log_delta = delta_of(delta)
    epsilon = None if epsilon is None else float(check("epsilon", epsilon))
    return Question(epsilon, value, log_delta, orders, solve)


def delta_of(delta: float | str | None) -> tuple[float | None, float | None]:
    """Return delta as a double and its exact logarithm; a text may be far below the smallest double."""
    if delta is None:
        return None, None
    if isinstance(delta, str):
        from dpcalc.model.numbers import parse_delta

        return parse_delta(delta)
    value = float(check("delta", delta))
    return value, math.log(value)


def paths_of(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Return one path or several as a list of texts."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fsdecode(path) for path in several]
