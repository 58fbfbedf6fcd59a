"""Where no bound speaks of a run: the nearest run that one speaks of, with what it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.engine.answer import answer
from dpcalc.engine.commands import Command
from dpcalc.engine.question import Question
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.algorithm import ALGORITHMS, Algorithm, Length, Release, released
from dpcalc.model.choices import Adjacency, Releases
from dpcalc.model.run import Run, describe
from dpcalc.model.source import Source
from dpcalc.report import Result
from dpcalc.theorems.record import for_algorithm

_HALF_A_DIGIT = 5e-4
"""By how much four digits may fall short of a number, relative to it."""

_UNIT_DIAMETER = 1.0
"""A domain to speak of where none is given."""


def with_nearest(error: NotApplicable, run: Run, question: Question, command: Command) -> NotApplicable:
    """Return the error with the nearest run that the command covers in its hint; the same one where none is found."""
    for name, changes in (*_candidates(run.algorithm), *_other_neighbours(run)):
        if ALGORITHMS[name].base not in command.algorithms:
            continue
        best = _best(run, name, changes, question, command)
        if best is not None:
            flags = " ".join(_flag(key, value) for key, value in changes.items())
            sentence = f"the nearest run that a bound covers has {flags}, with {best.quantity} {_shown(best)}"
            hint = f"{error.hint}; {sentence}" if error.hint else sentence
            return type(error)(error.message, hint, parameters=error.parameters)
    return error


def _candidates(algorithm: Algorithm) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the algorithm and the changes of other runs, the nearest first."""
    if algorithm.length is Length.PASSES and algorithm.release is Release.LAST and algorithm.executed:
        yield released(algorithm.name), {"release": str(Releases.EPOCH)}
    if "diameter" in algorithm.parameters:
        yield algorithm.name, {"diameter": _UNIT_DIAMETER}
    for name in algorithm.nearest:
        yield name, {"algorithm": name}


def _other_neighbours(run: Run) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the run with every position of a group, or with data sets of one size; None takes a parameter away."""
    name = run.algorithm.name
    if (run.group_size or 1) > 1:
        yield from ((name, {place: None}) for place in ("index", "window") if run.typed(place))
    if run.adjacency is not Adjacency.NULL_RECORD and "adjacency" in run.algorithm.parameters:
        yield name, {"adjacency": str(Adjacency.NULL_RECORD)}


def _best(run: Run, name: str, changes: Mapping[str, Any], question: Question, command: Command) -> Result | None:
    """Return the best answer for the changed run; None where there is none."""
    kept = {key: value for key, value in run.values.items() if run.typed(key) or run.source(key) is Source.LOSS}
    values = {**kept, **changes}
    taken = {key: value for key, value in values.items() if key in ALGORITHMS[name].parameters and key != "release"}
    if all(kept.get(key) == value for key, value in changes.items()):
        return None
    try:
        other = describe(name, taken)
    except DpcalcError:
        return None
    families = command.families or other.algorithm.families
    bounds = [b for b in for_algorithm(name, families) if b.guarantee and not b.unpromised(other)]
    try:
        return answer(other, question, bounds).best
    except DpcalcError:
        return None


def _flag(name: str, value: Any) -> str:
    flag = f"--{name.replace('_', '-')}"
    return f"no {flag}" if value is None else f"{flag} {_plain(value)}"


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown(result: Result) -> str:
    """Return the value of an answer with four digits, on its safe side; of a count all digits."""
    direction = DIRECTIONS.get(result.quantity)
    if direction is not None and direction.integer:
        return f"{result.value:.0f}"
    upward = direction is None or direction.more_is_private
    return f"{result.value * (1.0 + (_HALF_A_DIGIT if upward else -_HALF_A_DIGIT)):.4g}"
