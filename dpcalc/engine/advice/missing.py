"""Advice on missing parameters: all of them at once, each with an example that fits the given ones.

Advice if no bound covers a run: the nearest covered run, with its answer.

Whether the noise on a mean gradient looks like a noise multiplier that was typed under the wrong name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.engine.answer import best_guarantee
from dpcalc.engine.commands import Command
from dpcalc.engine.question import Incomplete
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, GateRefused, MissingParameter, NotApplicable
from dpcalc.model.algorithm import ALGORITHMS, Algorithm, Length, Order, Release, Source, released
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.numbers import plain
from dpcalc.model.parameter import PARAMETERS, example_of, typed
from dpcalc.model.quantities import Adjacency, Given, Quantity, Releases, Sampling
from dpcalc.model.question import Question
from dpcalc.model.run import Run, describe
from dpcalc.report import Result
from dpcalc.theorems.record import Missing, Theorem, Unmet, for_algorithm

if TYPE_CHECKING:
    from dpcalc.engine.advice.improvements import Asked
    from dpcalc.report import Case


_NOISE = (*NOISE_SCALES, "scale", "noise_multiplier", "langevin_std")
_ROUNDS = 6
"""Missing parameters appear in rounds: a theorem may ask for more once it has the first ones."""


def with_examples(error: MissingParameter, run: Run, question: Question, bounds: Sequence[Theorem]) -> MissingParameter:
    """Return the error with all missing parameters, and an example of each, in its hint.

    Args:
        error: it names what the first bound needs.
        run: as described.
        question: as asked.
        bounds: those that were asked.
    """
    solved = str(question.solve or "").replace("-", "_")
    solved = "" if solved in (*NOISE_SCALES, "noise_multiplier", "epsilon", "delta") else solved
    examples = _lacking(run, bounds, solved) if not run.typed(solved) else {}
    if not examples:
        return error
    flags = ", ".join(PARAMETERS[name].flag for name in examples)
    shown, asked = _asked(examples)
    return type(error)(error.message, f"give {flags}; for example {typed(shown)}{asked}", parameters=tuple(examples))


def of_question(error: Incomplete, run: Run, question: Question, bounds: Sequence[Theorem]) -> Incomplete:
    """Return the error for an incomplete question, with all else that the run lacks.

    Args:
        error: it says what of epsilon, delta and the noise is lacking.
        run: as described.
        question: as asked.
        bounds: those that speak of the algorithm.
    """
    lacking = _lacking(run, bounds, "")
    left = {name: example_of(name) for name in ("epsilon", "delta") if getattr(question, name) is None}
    first = {**lacking, **_noise(run), **({"delta": left["delta"]} if len(left) == 2 else {})}
    message = f"{error.message}. Also needed: {', '.join(lacking)}" if lacking else error.message
    shown, asked = _asked(first)
    return Incomplete(message, f"for example {typed(shown)}; or, in place of the noise, {typed(left)}{asked}")


def _asked(examples: Given) -> tuple[Given, str]:
    """Return the examples without how batches are drawn, which no example may choose, and the question for it."""
    chosen = dict(examples)
    if chosen.pop("sampling", None) is None or not chosen:
        return examples, ""
    words = ", ".join(PARAMETERS["sampling"].choices)
    return chosen, f"; how are batches drawn? --sampling is {words}"


def _noise(run: Run) -> dict[str, Any]:
    name = "noise_multiplier" if run.algorithm.clipped else "noise_std"
    return {name: example_of(name)}


def _lacking(run: Run, bounds: Sequence[Theorem], solved: str) -> dict[str, Any]:
    """Return the parameters that the run lacks before a bound applies -> examples; empty if no bound can be reached.

    Args:
        run: as described.
        bounds: those that speak of the algorithm.
        solved: the parameter that is asked for, if it is not the noise; where it is, the noise is taken to be known.
    """
    asked = [bound for bound in bounds if bound.guarantee and not bound.unpromised(run)]
    known = {solved: example_of(solved)} if solved else {}
    if not (solved or run.algorithm.own_noise or any(run.value(name) is not None for name in _NOISE)):
        known |= _noise(run)
    try:
        run = run.replacing(**known)
    except DpcalcError:
        return {}
    examples: dict[str, Any] = {}
    for _ in range(_ROUNDS):
        names = _next(asked, run)
        if not names:
            break
        examples |= {name: _example(name, run) for name in names}
        try:
            run = run.replacing(**examples)
        except DpcalcError:
            return {}
    return examples if any(bound.obstacle(run) is None for bound in asked) else {}


def _next(bounds: Sequence[Theorem], run: Run) -> tuple[str, ...]:
    """Return the fewest parameters that a bound still needs; none if one applies already, or none can apply."""
    obstacles = [bound.obstacle(run) for bound in bounds]
    if None in obstacles:
        return ()
    wanted = [obstacle.parameters for obstacle in obstacles if isinstance(obstacle, (Missing, Unmet))]
    open = (names for names in wanted if names and all(n in PARAMETERS and run.value(n) is None for n in names))
    names = min(open, key=len, default=())
    if "steps" in names and "epochs" in run.algorithm.parameters:
        others = tuple(name for name in names if name not in ("steps", "records"))
        if run.records is not None:
            return *others, "epochs"
        return "records", *others, *(("epochs",) if run.epochs is None else ())  # steps follow from both
    return names


def _example(name: str, run: Run) -> Any:
    """Return a usual value of a parameter that fits the run."""
    usual, most = example_of(name), _MOST.get(name)
    if most is not None and (limit := most(run)):
        return min(usual, limit)
    return max(usual, *(int(run.value(other) or 0) for other in _OF_THE_RECORDS)) if name == "records" else usual


def _inverse(value: float | None) -> float | None:
    """Return the inverse of a value to one digit."""
    return float(f"{1.0 / value:.1g}") if value else None


_OF_THE_RECORDS = ("batch_size", "index", "window")
"""Parameters that are at most as many as the records."""

_MOST: dict[str, Callable[[Run], float | None]] = {
    **dict.fromkeys(_OF_THE_RECORDS, lambda run: run.records),
    "step_size": lambda run: _inverse(run.smoothness),
    "smoothness": lambda run: _inverse(run.step_size),
}
"""How large parameters are at most, by what else is known of a run."""


_HALF_A_DIGIT = 5e-4
"""The relative error of a number rounded to four digits."""

_UNIT_DIAMETER = 1.0
"""The example of a diameter if none is given."""


def with_nearest(error: NotApplicable, run: Run, question: Question, command: Command) -> NotApplicable:
    """Return the error with the nearest covered run in its hint; unchanged if none is found."""
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


def _best(run: Run, name: str, changes: Given, question: Question, command: Command) -> Result | None:
    """Return the best answer for the changed run; None if there is none."""
    kept = {key: value for key, value in run.values.items() if run.typed(key) or run.source(key) is Source.LOSS}
    values = {**kept, **changes}
    taken = {key: value for key, value in values.items() if key in ALGORITHMS[name].parameters and key != "release"}
    if all(kept.get(key) == value for key, value in changes.items()):
        return None
    try:
        other = describe(name, taken)
    except DpcalcError:
        return None
    return best_guarantee(other, question, for_algorithm(name, command.families or other.algorithm.families))


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


_LEAST_TYPED, _USUAL_TYPED = 0.1, 0.3
"""Libraries are rarely run with a multiplier below the second, and never below the first: at 0.1 one step has an
epsilon above 50."""

_LEAST, _MOST_OF_BATCHES = 10.0, 50.0
"""A multiplier that some runs have, and one that no run on batches has unless it takes a great many steps."""

_LEAST_MU = 0.02
"""With a smaller mu, releasing all iterates of a run has an epsilon below 0.1."""


ON_MEAN = "noise_std is on the mean gradient"
"""The word under ``accept:`` in a recipe that confirms this reading."""

_AS_MULTIPLIER = "on the mean gradient is a noise multiplier of"


def misread_noise(asked: Asked, *, both: bool) -> tuple[str, ...]:
    """Return a warning if noise_std is so large that a noise multiplier may have been meant.

    Args:
        asked: the question and its answer.
        told: whether to say what the other reading gives, which asks the question a second time.
    """
    run, std = asked.run, asked.run.noise_std
    if std is None or not is_misread(run):
        return ()
    return (words(run, asked.best, _other_answer(asked, std)) if both else _words(run, asked.best),)


def is_misread(run: Run) -> bool:
    """Return whether the noise was given as noise_std but may well be a noise multiplier."""
    std, multiplier = run.noise_std, run.noise_multiplier
    if std is None or multiplier is None or not run.typed("noise_std"):
        return False
    return _is_suspicious(run, std, multiplier)


def words(run: Run, answer: Result, other: Result | None) -> str:
    """Return the two readings of a noise in words.

    Args:
        run: with the noise as it was given.
        found: the answer as it was given.
        other: the answer where the number is the noise multiplier, if there is one.
    """
    return f"{_words(run, answer)}: {_value(other, 'would be') if other else 'no guarantee is known then'}"


def _words(run: Run, answer: Result) -> str:
    std = plain(run.noise_std or 0.0)
    return (
        f"noise_std {std} {_AS_MULTIPLIER} {run.noise_multiplier:.4g} ({_value(answer, 'is')}), far more than usual; "
        f"if {std} is the noise multiplier of a library, say --noise-multiplier {std}"
    )


def misread_of(case: Case) -> str | None:
    """Return the two readings of a case's noise, if the other one may have been meant."""
    return next((text for text in case.warnings if _AS_MULTIPLIER in text), None)


def refuse_misread(case: Case) -> None:
    """Refuse a gate on a case whose noise has two readings.

    Raises:
        GateRefused: it has.
    """
    if text := misread_of(case):
        raise GateRefused(
            f"a gate needs to know which noise is meant: {text}", "give the noise multiplier that is meant"
        )


def _is_suspicious(run: Run, std: float, multiplier: float) -> bool:
    """Return whether the noise is unusual as noise_std but usual as a multiplier."""
    if std < _LEAST_TYPED or multiplier <= max(std, _LEAST):
        return False
    if _seen(run) / multiplier < _LEAST_MU:
        return True
    return std >= _USUAL_TYPED and multiplier > _MOST_OF_BATCHES and not _is_whole(run)


def _is_whole(run: Run) -> bool:
    """Return whether a step uses all records."""
    return run.algorithm.full_batch or run.sampling is Sampling.FULL


def _seen(run: Run) -> float:
    """Return about mu of the whole run at a noise multiplier of 1 or more, over it, were every iterate public."""
    if _is_whole(run):
        return math.sqrt(run.steps or 1)
    drawn = run.algorithm.order is Order.SAMPLE and run.sampling not in (Sampling.SHUFFLE, Sampling.BALLS_IN_BINS)
    if drawn and run.records is not None and run.batch_size is not None:
        return run.batch_size / run.records * math.sqrt(run.steps or 1)
    if run.epochs is None and run.steps is not None and run.records is not None and run.batch_size is not None:
        return math.sqrt(max(1.0, run.steps * run.batch_size / run.records))
    return math.sqrt(run.epochs or 1)


def _other_answer(asked: Asked, multiplier: float) -> Result | None:
    """Return the answer if the typed number is the noise multiplier."""
    given = {**asked.given, "noise_std": None}
    try:
        run = asked._replace(given=given).changed({"noise_multiplier": multiplier})
    except DpcalcError:
        return None
    return best_guarantee(run, asked.question)


def _value(result: Result, verb: str) -> str:
    if result.quantity == Quantity.DELTA and result.log_delta is not None and result.log_delta < -690.0:
        return f"delta {verb} below 1e-299"
    if result.quantity in DIRECTIONS:
        return f"{result.quantity} {verb} {result.value:.4g}"
    return f"{result.quantity} {verb} {result.value * (1.0 + 5e-4):.4g}"
