"""Where a description lacks parameters: all of them at once, each with an example that fits what is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcalc.engine.question import Incomplete, Question
from dpcalc.errors import DpcalcError, MissingParameter
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.model.parameter import PARAMETERS, example_of, typed
from dpcalc.model.run import Run
from dpcalc.theorems.record import Missing, Theorem, Unmet

_NOISE = (*NOISE_SCALES, "scale", "noise_multiplier", "langevin_std")
_ROUNDS = 6
"""What is lacking shows in rounds: a theorem asks for more once it has what it asked for first."""


def with_examples(error: MissingParameter, run: Run, question: Question, bounds: Sequence[Theorem]) -> MissingParameter:
    """Return the error with all that is lacking, and with an example of each, in its hint.

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
    return type(error)(error.message, f"give {flags}; for example {typed(examples)}", parameters=tuple(examples))


def of_question(error: Incomplete, run: Run, question: Question, bounds: Sequence[Theorem]) -> Incomplete:
    """Return the error for an incomplete question, with whatever else the run lacks.

    Args:
        error: it says what of epsilon, delta and the noise is lacking.
        run: as described.
        question: as asked.
        bounds: those that speak of the algorithm.
    """
    lacking = _lacking(run, bounds, "")
    left = {name: example_of(name) for name in ("epsilon", "delta") if getattr(question, name) is None}
    noise = _noise(run)
    first = {**lacking, **noise, **({"delta": left["delta"]} if len(left) == 2 else {})}
    message = f"{error.message}. Also needed: {', '.join(lacking)}" if lacking else error.message
    return Incomplete(message, f"for example {typed(first)}; or, in place of the noise, {typed(left)}")


def _noise(run: Run) -> dict[str, Any]:
    name = "noise_multiplier" if run.algorithm.clipped else "noise_std"
    return {name: example_of(name)}


def _lacking(run: Run, bounds: Sequence[Theorem], solved: str) -> dict[str, Any]:
    """Return what the run lacks before a bound applies -> examples; empty where none is found that helps.

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
    """Return the fewest parameters that a bound still needs; none where one applies, or none can be helped so."""
    obstacles = [bound.obstacle(run) for bound in bounds]
    if None in obstacles:
        return ()
    wanted = [obstacle.parameters for obstacle in obstacles if isinstance(obstacle, (Missing, Unmet))]
    open = (names for names in wanted if names and all(n in PARAMETERS and run.value(n) is None for n in names))
    names = min(open, key=len, default=())
    if "steps" in names and "epochs" in run.algorithm.parameters:
        names = (*(name for name in names if name not in ("steps", "records")), "epochs")
        return ("records", *names) if run.records is None else names
    return names


def _example(name: str, run: Run) -> Any:
    """Return a usual value of a parameter that goes with the run."""
    usual = example_of(name)
    if name == "records":
        return max(usual, *(int(run.value(other) or 0) for other in ("batch_size", "index", "window")))
    if name in ("batch_size", "index", "window") and run.records:
        return min(usual, run.records)
    if name == "step_size" and run.smoothness:
        return min(usual, float(f"{1.0 / run.smoothness:.1g}"))
    if name == "smoothness" and run.step_size:
        return min(usual, float(f"{1.0 / run.step_size:.1g}"))
    return usual
