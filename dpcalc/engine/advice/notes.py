"""What is worth knowing beside the best guarantee of a command on one algorithm, as `dpcalc.notes`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpcalc.engine.advice.improvements import Asked
from dpcalc.engine.answer import answer
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Length, Release
from dpcalc.model.choices import Noise
from dpcalc.model.quantities import Quantity
from dpcalc.model.run import Run
from dpcalc.model.source import Source
from dpcalc.notes import BetterThanPublished, NewestRecord, Note, OtherIndex, TunedNoise
from dpcalc.notions.guarantee import Rdp
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Theorem


def notes_on(asked: Asked, bounds: Sequence[Theorem]) -> tuple[Note, ...]:
    """Return the notes on an answer: at most two lines on what would change it, and what is said of it.

    Args:
        asked: the question and its answer.
        bounds: those of its command.
    """
    if asked.brief:
        return asked.improvements()
    run, best = asked.run, asked.best
    if run.algorithm.clipped:
        from dpcalc.engine.advice.adjacencies import clipped_notes

        return (*asked.other_release(), *clipped_notes(asked))
    plain = best.quantity in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU) and run.schedule is None
    earlier = tuple(_earlier(run, asked.question, best, bounds)) if plain else ()
    said = tuple(_said(asked, bounds)) if plain else ()
    return (*earlier, *asked.improvements(1 if earlier else 2), *said)


def _said(asked: Asked, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield what is worth knowing of the answer as it is."""
    run = asked.run
    if run.algorithm.published:
        yield from _better_than_published(asked.case, asked.best, run.algorithm.published)
        yield from _tuned_noise(run)
    elif run.algorithm.length is Length.STREAM:
        yield _newest(run, asked.question, bounds)


def _earlier(run: Run, question: Question, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield how much better the first record and that in the middle are hidden than the last."""
    records = run.records or 0
    last_is_worst = (
        run.algorithm.one_pass and run.algorithm.release is Release.LAST and not run.algorithm.first_is_worst
    )
    if not last_is_worst or run.source("index") is not Source.WORST_CASE or records < 2:
        return
    for index in sorted({1, (records + 1) // 2} - {records}):
        earlier = _at(run, question, bounds, index)
        if earlier is not None and _better(earlier, best):
            yield OtherIndex(**earlier.alternative_fields, changes={"index": index})


def _newest(run: Run, question: Question, bounds: Sequence[Theorem]) -> Note:
    """Return what holds of the newest record of a stream, which is not amplified at all."""
    records, index = int(run.values["records"]), int(run.values["index"])
    best = _at(run, question, bounds, records) if index != records else None
    answered = {**best.value_fields, "bound": best.bound} if best is not None else {}
    return NewestRecord(covered=index, newest=records, **answered)


def _at(run: Run, question: Question, bounds: Sequence[Theorem], index: int) -> Result | None:
    """Return the best answer for another record, from the bounds whose answer costs one conversion if there are any."""
    guarantees = [bound for bound in bounds if bound.guarantee and bound.gives is not Rdp]
    quick = [bound for bound in guarantees if not bound.slow]
    try:
        return answer(run.replacing(index=index, window=None), question, quick or guarantees).best
    except DpcalcError:
        return None


def _better_than_published(case: Case, best: Result, published: str) -> Iterator[Note]:
    """Yield that the best bound is better than the published one, by more than a hundredth."""
    earlier = next((result for result in case.results if result.bound == published), None)
    if earlier is not None and _better(best, earlier, 0.99):
        yield BetterThanPublished(bound=best.bound, published=published, **earlier.value_fields)


def _better(result: Result, best: Result, share: float = 1.0) -> bool:
    """Return whether a value is below ``share`` of the best one."""
    return result.log_value < best.log_value + math.log(share)


def _tuned_noise(run: Run) -> Iterator[Note]:
    """Yield the noise of the tuned schedule, and how its bound nears the limit."""
    if "c1" not in run.values or "scale" not in run.values:
        return
    from dpcalc.theorems.contraction.shuffle import tuned_rate

    noise = run.values["noise"]
    rate = tuned_rate(
        noise=noise, sensitivity=run.values["sensitivity"], step_size=run.values["step_size"],
        displacement=run.values["displacement"], diameter=run.values["diameter"],
    )  # fmt: skip
    name = "noise_std" if noise == Noise.GAUSSIAN else "laplace_scale"
    yield TunedNoise(parameter=name, value=run.values["scale"], kappa=rate.kappa, exponent=rate.exponent)
