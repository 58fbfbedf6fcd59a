"""What is worth knowing beside the best guarantee of a command on one algorithm, as `dpcalc.notes`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpcalc.engine.answer import answer
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Length, Order
from dpcalc.model.choices import LastBatch, Noise
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.run import Run, describe
from dpcalc.model.source import Source
from dpcalc.notes import (
    BetterThanPublished,
    NewestRecord,
    Note,
    OtherIndex,
    OtherOrder,
    PromiseNotMade,
    ShortLastBatch,
    TunedNoise,
    value_of,
)
from dpcalc.notions.guarantee import Rdp
from dpcalc.report import Case, Result
from dpcalc.theorems.record import Theorem, for_algorithm

_ORDERS = ("cyclic", "shuffle-once", "shuffled-epochs", "noisy-sgd")
_NOT_FOR = {
    "cyclic": ("permutation",),
    "noisy-sgd": ("last_batch", "permutation", "index"),
    "shuffle-once": ("index",),
    "shuffled-epochs": ("index",),
}
"""The parameters that an order does not take."""

_LOOSER = {"released.shuffled_epochs_point": "released.shuffled_epochs"}
"""Bounds whose search is long and which are looser than another: a note is not worth their time."""

_PUBLISHED = "shuffle.product"
"""The bound that the literature has for a shuffled pass."""


def notes_on(run: Run, question: Question, case: Case, bounds: Sequence[Theorem]) -> tuple[Note, ...]:
    """Return the notes on a case; ``bounds`` are those of its command. At most three more answers are computed."""
    best = case.best
    if best is None or best.quantity not in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU) or "schedule" in run.values:
        return ()
    return tuple(_notes(run, question, case, best, bounds))


def _notes(run: Run, question: Question, case: Case, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    if run.algorithm.name in ("pnsgd", "skip"):
        yield from _earlier(run, question, best, bounds)
    elif run.algorithm.name == "shuffled":
        yield from _promises(case, best)
        yield from _better_than_published(case, best)
        yield from _short_batch(run, question, best, bounds)
        yield from _tuned_noise(run)
    elif run.algorithm.length is Length.STREAM:
        yield _newest(run, question, bounds)
    elif run.algorithm.order is Order.ROTATION:
        yield from _short_batch(run, question, best, bounds)
    elif run.algorithm.base in _ORDERS:
        yield from _promises(case, best)
        yield from _short_batch(run, question, best, bounds)
        yield from _other_orders(run, question)


def _other_orders(run: Run, question: Question) -> Iterator[Note]:
    """Yield what the same passes would give in another order, each by its closed-form or composed bounds."""
    released = run.algorithm.name.removeprefix(run.algorithm.base)
    kept = {name: value for name, value in run.values.items() if run.typed(name) or run.source(name) is Source.LOSS}
    if "steps" in kept or run.algorithm.full_batch:
        return
    for name in _ORDERS:
        if name == run.algorithm.base:
            continue
        values = {key: value for key, value in kept.items() if key not in _NOT_FOR.get(name, ())}
        try:
            other = describe(name + released, values)
            best = answer(other, question, _contenders(other, for_algorithm(other.algorithm.name))).best
        except DpcalcError:
            continue
        if best is not None:
            yield OtherOrder.of(best, changes={"algorithm": name})


def _contenders(run: Run, bounds: Sequence[Theorem]) -> list[Theorem]:
    """Return the bounds that may be best: guarantees, and not the Renyi forms of what has a sharper one."""
    guarantees = [b for b in bounds if b.guarantee and b.gives is not Rdp and not b.unpromised(run)]
    ids = {bound.id for bound in guarantees}
    return [bound for bound in guarantees if _LOOSER.get(bound.id) not in ids]


def _earlier(run: Run, question: Question, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield how much better the first record and that in the middle are hidden than the last."""
    records = int(run.values["records"])
    if run.source("index") is not Source.WORST_CASE or records < 2:
        return
    for index in sorted({1, (records + 1) // 2} - {records}):
        earlier = _at(run, question, bounds, index)
        if earlier is not None and _better(earlier, best):
            yield OtherIndex.of(earlier, changes={"index": index})


def _newest(run: Run, question: Question, bounds: Sequence[Theorem]) -> Note:
    """Return what holds of the newest record of a stream, which is not amplified at all."""
    records, index = int(run.values["records"]), int(run.values["index"])
    best = _at(run, question, bounds, records) if index != records else None
    answered = {**value_of(best), "bound": best.bound} if best is not None else {}
    return NewestRecord(covered=index, newest=records, **answered)


def _at(run: Run, question: Question, bounds: Sequence[Theorem], index: int) -> Result | None:
    """Return the best answer for another record, from the bounds whose answer costs one conversion if there are any."""
    guarantees = [bound for bound in bounds if bound.guarantee and bound.gives is not Rdp]
    quick = [bound for bound in guarantees if not bound.slow]
    try:
        return answer(run.replacing(index=index, window=None), question, quick or guarantees).best
    except DpcalcError:
        return None


def _promises(case: Case, best: Result) -> Iterator[Note]:
    """Yield what a promise that was not made would give."""
    for result in case.results:
        if result.kind == Kind.CONDITIONAL and result.details and _better(result, best):
            yield PromiseNotMade.of(result, promise=tuple(result.details["demands"]))


def _better_than_published(case: Case, best: Result) -> Iterator[Note]:
    """Yield that the best bound is better than the published one, by more than a hundredth."""
    published = next((result for result in case.results if result.bound == _PUBLISHED), None)
    if published is not None and _better(best, published, 0.99):
        yield BetterThanPublished(bound=best.bound, published=_PUBLISHED, **value_of(published))


def _short_batch(run: Run, question: Question, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield what a short last batch costs, where it is divided by its own size and so weighs its records more."""
    short = int(run.values["records"]) % int(run.values["batch_size"]) if "records" in run.values else 0
    own = run.last_batch is LastBatch.OWN or (run.last_batch is None and run.algorithm.fixed_order)
    if not short or not own or run.typed("index"):
        return
    for split in (LastBatch.BALANCED, LastBatch.DROP):  # the first of them uses every record
        try:
            other = answer(run.replacing(last_batch=split), question, _contenders(run, bounds)).best
        except DpcalcError:
            continue
        if other is not None and _better(other, best, 0.9):
            yield ShortLastBatch.of(other, changes={"last_batch": split}, size=short)
        return


def _log_size(result: Result) -> float:
    """Return the logarithm of the value, which of a delta is known where the delta itself underflows."""
    if result.quantity == Quantity.DELTA and result.log_delta is not None:
        return result.log_delta
    return math.log(result.value) if result.value > 0.0 else -math.inf


def _better(result: Result, best: Result, share: float = 1.0) -> bool:
    """Return whether a value is below ``share`` of the best one."""
    return _log_size(result) < _log_size(best) + math.log(share)


def _tuned_noise(run: Run) -> Iterator[Note]:
    """Yield the noise of the tuned schedule, and how its bound nears the limit."""
    if "c1" not in run.values or "scale" not in run.values:
        return
    from dpcalc.theorems.privacy.shuffle import tuned_rate

    noise = run.values["noise"]
    rate = tuned_rate(
        noise=noise, sensitivity=run.values["sensitivity"], step_size=run.values["step_size"],
        displacement=run.values["displacement"], diameter=run.values["diameter"],
    )  # fmt: skip
    name = "noise_std" if noise == Noise.GAUSSIAN else "laplace_scale"
    yield TunedNoise(parameter=name, value=run.values["scale"], kappa=rate.kappa, exponent=rate.exponent)
