"""What a reader should know beside the number: how it depends on the record, and why the best bound is the best."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dpcalc.errors import DpcalcError
from dpcalc.query import Question, answer
from dpcalc.registry import CONDITIONAL, Bound, for_algorithm
from dpcalc.report import Case, Result
from dpcalc.spec.run import Run, describe

_ORDERS = ("cyclic", "shuffle-once", "shuffled-epochs", "noisy-sgd")
_NOT_FOR = {
    "cyclic": ("permutation",),
    "noisy-sgd": ("last_batch", "permutation", "index"),
    "shuffle-once": ("index",),
    "shuffled-epochs": ("index",),
}
_LOOSER = {"released.shuffled_epochs_point": "released.shuffled_epochs"}
"""Bounds that are searched for at length and looser than another: not asked for the sake of a remark."""

_WHY = {
    "shuffle.mixture": "shuffle.product credits every later step with one worst-case contraction over the whole domain;"
    " shuffle.mixture lets the noise of all later steps add up, so that a record k steps from the end has mu/sqrt(k)",
    "shuffle.hybrid": "shuffle.hybrid takes, step by step, the smaller of the contraction that is left and of what the "
    "noise added up so far proves; shuffle.product has the first alone, and linearised",
    "hidden_position.shuffled": "hidden_position.shuffled also counts that nobody knows where the record was: the "
    "places it could have held vouch for each other, which the public bounds, averages over a known place, cannot use",
}


def remarks(run: Run, question: Question, case: Case, bounds: Sequence[Bound]) -> tuple[str, ...]:
    """Return the notes of a case; ``bounds`` are those of its command. At most three more answers are computed."""
    best = case.best
    if best is None or best.quantity not in ("epsilon", "delta", "mu") or "schedule" in run.values:
        return ()
    if run.algorithm in ("pnsgd", "skip"):
        return _earlier(run, question, best, bounds)
    if run.algorithm == "shuffled":
        return (*_secret(case, best), *_why(case, best), *_short_batch(run, question, best, bounds), *_tuned(run))
    if run.algorithm == "online":
        return _newest(run, question, best, bounds)
    if run.algorithm.removesuffix("-released") in _ORDERS:
        return (*_secret(case, best), *_short_batch(run, question, best, bounds), *_orders(run, question, best))
    return ()


def _orders(run: Run, question: Question, best: Result) -> tuple[str, ...]:
    """Say what the same passes would give in another order, each by its closed-form or composed bounds."""
    released = "-released" if run.algorithm.endswith("-released") else ""
    given = {name: value for name, value in run.values.items() if run.sources[name] in ("flag", "argument", "loss")}
    if "steps" in given or run.algorithm.startswith("noisy-gd"):
        return ()
    parts = []
    for name in _ORDERS:
        if name + released == run.algorithm:
            continue
        kept = {key: value for key, value in given.items() if key not in _NOT_FOR.get(name, ())}
        try:
            other = describe(name + released, kept)
            found = answer(other, question, _useful(other)).best
        except DpcalcError:
            continue
        if found is not None:
            parts.append(f"{name} {_shown(found)}")
    if not parts:
        return ()
    mine = f"{run.algorithm.removesuffix('-released')} {_shown(best)}"
    return (f"{best.quantity} by the way the records are ordered: {', '.join([mine, *parts])} (--algorithm)",)


def _useful(run: Run, bounds: Sequence[Bound] | None = None) -> list[Bound]:
    """Return the bounds that may be best: guarantees, and not the Renyi forms of what has a sharper one."""
    given = for_algorithm(run.algorithm) if bounds is None else bounds
    found = [b for b in given if b.guarantee and b.gives != "rdp" and not b.unmet(run.values)]
    there = {bound.id for bound in found}
    return [bound for bound in found if _LOOSER.get(bound.id) not in there]


def _earlier(run: Run, question: Question, best: Result, bounds: Sequence[Bound]) -> tuple[str, ...]:
    """Say how much better earlier records are hidden than the last."""
    records = int(run.values["records"])
    if run.sources.get("index") != "worst case" or records < 2:
        return ()
    parts = []
    for index in sorted({1, (records + 1) // 2} - {records}):
        other = _at(run, question, bounds, index)
        if other is not None:
            parts.append(f"{_shown(other)} for record {index}")
    if not parts:
        return ()
    return (
        f"{best.quantity} above is for the last record, which no noise follows; earlier ones are better hidden: "
        f"{', '.join(parts)} (use --index)",
    )


def _newest(run: Run, question: Question, best: Result, bounds: Sequence[Bound]) -> tuple[str, ...]:
    """Say that the newest record of a stream is not amplified at all."""
    records, index = int(run.values["records"]), int(run.values["index"])
    if index == records:
        return (
            "this is for the newest record, which nothing hides but its own step's noise: there is no amplification, "
            "and as the noise decays its delta tends to 1; older records are better off (use --window or --index)",
        )
    other = _at(run, question, bounds, records)
    shown = f": {other.quantity} {_shown(other)}" if other is not None else ""
    return (
        f"every record up to {index} is covered; newer ones are worse off, and the newest has no amplification{shown}",
    )


def _at(run: Run, question: Question, bounds: Sequence[Bound], index: int) -> Result | None:
    """Return the best answer for another record, from the bounds whose answer costs one conversion."""
    useful = [bound for bound in bounds if bound.guarantee and bound.gives != "rdp"]
    quick = [bound for bound in useful if not bound.coarse]
    try:
        return answer(run.replacing(index=index, window=None), question, quick or useful).best
    except DpcalcError:
        return None


def _secret(case: Case, best: Result) -> tuple[str, ...]:
    """Say what a promise that was not made would give."""
    return tuple(
        f"{result.bound} gives {result.quantity} {_shown(result)} if {'; '.join(result.details['demands'])}"
        for result in case.results
        if result.kind == CONDITIONAL and result.details and _size(result) < _size(best)
    )


def _why(case: Case, best: Result) -> tuple[str, ...]:
    """Say why the best bound is far better than the published one."""
    published = next((result for result in case.results if result.bound == "shuffle.product"), None)
    if published is None or best.bound not in _WHY or not _size(best) < 0.99 * _size(published):
        return ()
    return (_WHY[best.bound],)


def _short_batch(run: Run, question: Question, best: Result, bounds: Sequence[Bound]) -> tuple[str, ...]:
    """Say what a short last batch costs, where it is divided by its own size and so weighs its records more."""
    short = int(run.values["records"]) % int(run.values["batch_size"]) if "records" in run.values else 0
    if not short or run.values.get("last_batch") != "own":
        return ()
    try:
        found = answer(run.replacing(last_batch="drop"), question, _useful(run, bounds)).best
    except DpcalcError:
        return ()
    if found is None or not _size(found) < 0.9 * _size(best):
        return ()
    return (
        f"the short last batch of {short} records weighs each of them more and no noise follows it; --last-batch drop "
        f"gives {found.quantity} {_shown(found)}",
    )


def _size(result: Result) -> float:
    return math.exp(result.log_delta) if result.quantity == "delta" and result.log_delta else result.value


def _tuned(run: Run) -> tuple[str, ...]:
    """Say how the tuned schedule nears its limit."""
    if "c1" not in run.values or "scale" not in run.values:
        return ()
    from dpcalc.bounds.shuffle import tuned_rate

    rate = tuned_rate(
        noise=run.values["noise"], sensitivity=run.values["sensitivity"], step_size=run.values["step_size"],
        displacement=run.values["displacement"], diameter=run.values["diameter"],
    )  # fmt: skip
    name = "noise_std" if run.values["noise"] == "gaussian" else "laplace_scale"
    return (f"{name} at this n is {run.values['scale']:.12g}; {rate}",)


def _shown(result: Result) -> str:
    from dpcalc.render.text import delta_text, number

    if result.quantity == "delta":
        return delta_text(result.delta, result.log_delta, 4, "up")
    return number(result.value, 4, "up")
