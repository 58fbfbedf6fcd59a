"""Notes beside the best guarantee of a command on one algorithm, as `dpcalc.notes`.

Notes on DP-SGD: the other adjacencies, and the number of an accountant that assumes Poisson sampling.

If composition is the best bound: the number of passes or steps from which hiding iterates helps.

If the sampling is not given: the answer for each sampling, or the flags that it lacks.

For comparisons: the ratio of the best guarantee to a lower bound, and improvements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from dpcalc.engine.advice.improvements import Asked
from dpcalc.engine.answer import answer, best_guarantee
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.algorithm import Length, Order, Release, Source
from dpcalc.model.parameter import name_of
from dpcalc.model.quantities import Adjacency, Given, Kind, Noise, Quantity, Sampling
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notes import (
    AccountantPrints,
    BetterThanPublished,
    HidingPays,
    NewestRecord,
    Note,
    OtherAdjacencies,
    OtherIndex,
    TunedNoise,
)
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.report import Case, Result, Tightness
from dpcalc.theorems.conditions import HIDDEN
from dpcalc.theorems.record import Theorem, all_bounds, for_algorithm


def notes_on(asked: Asked, bounds: Sequence[Theorem]) -> tuple[Note, ...]:
    """Return the notes on an answer: at most two on what would change it, then remarks.

    Args:
        asked: the question and its answer.
        bounds: those of its command.
    """
    if asked.brief:
        return (*asked.improvements(), *_of_iterates(asked))
    run, best = asked.run, asked.best
    if run.algorithm.clipped:
        return (*asked.other_release(), *clipped_notes(asked))
    plain = best.quantity in (Quantity.EPSILON, Quantity.DELTA, Quantity.MU) and run.schedule is None
    earlier = tuple(_earlier(run, asked.question, best, bounds)) if plain else ()
    said = tuple(_said(asked, bounds)) if plain else ()
    return (*earlier, *asked.improvements(1 if earlier else 2), *said)


def _said(asked: Asked, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield remarks on the answer."""
    run = asked.run
    if run.algorithm.published:
        yield from _better_than_published(asked.case, asked.best, run.algorithm.published)
        yield from _tuned_noise(run)
    elif run.algorithm.length is Length.STREAM:
        yield _newest(run, asked.question, bounds)


def _earlier(run: Run, question: Question, best: Result, bounds: Sequence[Theorem]) -> Iterator[Note]:
    """Yield how much better the first and the middle record are hidden than the last."""
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
    """Return the guarantee of the newest record of a stream, which has no amplification."""
    records, index = int(run.values["records"]), int(run.values["index"])
    best = _at(run, question, bounds, records) if index != records else None
    answered = {**best.value_fields, "bound": best.bound} if best is not None else {}
    return NewestRecord(covered=index, newest=records, **answered)


def _at(run: Run, question: Question, bounds: Sequence[Theorem], index: int) -> Result | None:
    """Return the best answer for another record, preferably from bounds that only need one conversion."""
    guarantees = [bound for bound in bounds if bound.guarantee and bound.gives is not Rdp]
    quick = [bound for bound in guarantees if not bound.slow]
    try:
        return answer(run.replacing(index=index, window=None), question, quick or guarantees).best
    except DpcalcError:
        return None


def _better_than_published(case: Case, best: Result, published: str) -> Iterator[Note]:
    """Yield a note if the best bound is more than 1% better than the published one."""
    earlier = next((result for result in case.results if result.bound == published), None)
    if earlier is not None and _better(best, earlier, 0.99):
        yield BetterThanPublished(bound=best.bound, published=published, **earlier.value_fields)


def _better(result: Result, best: Result, share: float = 1.0) -> bool:
    """Return whether a value is below ``share`` of the best one."""
    return result.log_value < best.log_value + math.log(share)


def _tuned_noise(run: Run) -> Iterator[Note]:
    """Yield the noise of the tuned schedule, and how its bound nears the limit."""
    if run.values.get("c1") is None or run.values.get("scale") is None:
        return
    from dpcalc.theorems.contraction.shuffle import tuned_rate

    noise = run.values["noise"]
    rate = tuned_rate(
        noise=noise, sensitivity=run.values["sensitivity"], step_size=run.values["step_size"],
        displacement=run.values["displacement"], diameter=run.values["diameter"],
    )  # fmt: skip
    name = "noise_std" if noise == Noise.GAUSSIAN else "laplace_scale"
    yield TunedNoise(parameter=name, value=run.values["scale"], kappa=rate.kappa, exponent=rate.exponent)


_LISTED = (Adjacency.ADD_REMOVE, Adjacency.NULL_RECORD, Adjacency.REPLACE_ONE)
_ALIKE = frozenset({Adjacency.ADD_REMOVE, Adjacency.NULL_RECORD})
_SAME = 1e-5
"""Answers whose ratio differs from 1 by at most this are equal."""


def _of_iterates(asked: Asked) -> Iterator[Note]:
    """Yield the noise in the iterates if a matrix correlates it."""
    if asked.run.mechanism is not None:
        from dpcalc.engine.advice.prefix_noise import prefix_noise

        yield from prefix_noise(asked)


def clipped_notes(asked: Asked) -> Iterator[Note]:
    """Yield the notes on an answer about epsilon, delta or a solved parameter.

    For a solved parameter, the notes are about the resulting run and its epsilon, which saves a second search.
    """
    best = asked.best
    if (best.details or {}).get("any"):
        return
    yield from _of_iterates(asked)
    if asked.solved:
        run = asked.solution
        at: dict[str, Any] | None = {best.quantity: run.value(best.quantity)}
        own: float | None = (best.details or {}).get("achieved", {}).get("epsilon")
        asked = asked._replace(question=asked.question._replace(epsilon=None, solve=None))
    elif best.quantity in (Quantity.EPSILON, Quantity.DELTA):
        at, run, own = None, asked.run, best.size
    else:
        return
    answers_by: dict[Adjacency, Result] = {}
    others = [other for adjacency in _LISTED if (other := _under(asked, run, adjacency, answers_by)) is not None]
    if any(own is None or not math.isclose(result.size, own, rel_tol=_SAME) for _, result in others):
        answers = [{"adjacency": adjacency.value, **_known(result)} for adjacency, result in others]
        yield OtherAdjacencies(quantity=others[0][1].quantity, answers=answers, at=at)
    yield from _accountant(asked, run, answers_by, at)


def _known(result: Result) -> dict[str, Any]:
    """Return the value of an answer and its bound; ln delta if delta was asked for."""
    fields = {**result.value_fields, "bound": result.bound}
    del fields["quantity"]
    return {name: value for name, value in fields.items() if value is not None}


def _under(
    asked: Asked, run: Run, adjacency: Adjacency, answers_by: dict[Adjacency, Result]
) -> tuple[Adjacency, Result] | None:
    """Return another adjacency and the best answer under it; None for that of the run and where nothing is proved.

    A null record adds nothing to a sum: unless batches are of one size, zero-out is add-remove.
    """
    if adjacency is run.adjacency:
        return None
    of_one_size = run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT) or run.max_batch_size is not None
    alike = [] if of_one_size else [other for other in answers_by if {adjacency, other} <= _ALIKE]
    own = {adjacency, run.adjacency} <= _ALIKE and not of_one_size  # the answer is known then
    result = answers_by[alike[0]] if alike else asked.best_for(run, rough=not own, adjacency=adjacency)
    if result is None:
        return None
    answers_by[adjacency] = result
    return adjacency, result


def _accountant(
    asked: Asked, run: Run, answers_by: dict[Adjacency, Result], at: Given | None
) -> Iterator[AccountantPrints]:
    """Yield about the number of an accountant that assumes Poisson sampling and add-remove neighbours.

    No such accountant knows of hidden iterates.
    """
    if not HIDDEN.keys().isdisjoint(asked.best.assumes):
        return
    assumed = Sampling.FULL if run.sampling is Sampling.FULL else Sampling.POISSON
    drawn_so = run.sampling is assumed and run.max_batch_size is None
    result = answers_by.get(Adjacency.ADD_REMOVE) if drawn_so else None
    if result is None and drawn_so and run.adjacency in _ALIKE and at is None:
        result = asked.best
    if result is None:
        plain = run.replacing(max_batch_size=None, uses=None)
        result = asked.best_for(plain, rough=not drawn_so, sampling=assumed, adjacency=Adjacency.ADD_REMOVE)
    if result is not None:
        covers = drawn_so and run.adjacency is not Adjacency.REPLACE_ONE
        yield AccountantPrints(
            **result.value_fields, sampling=str(run.sampling), adjacency=str(run.adjacency), covers_run=covers, at=at
        )


_MOST = 10**15
_WORTH = 0.99
"""A bound that is not a hundredth below composition counts as no better."""


def hiding(run: Run, best: Result, bounds: Sequence[Theorem]) -> Iterator[HidingPays]:
    """Yield the length from which hiding helps, if the best bound allows public iterates."""
    composed = next((bound for bound in bounds if bound.id == best.bound), None)
    if composed is None or not composed.public_sums:
        return
    if run.algorithm.release is not Release.LAST or run.noise is Noise.LAPLACE:
        return
    parameter = "steps" if run.epochs is None or run.typed("steps") else "epochs"
    hidden = [bound for bound in bounds if bound.guarantee and bound is not composed and bound.obstacle(run) is None]
    if run.algorithm.order is Order.SAMPLE:
        yield from _sampled(run, parameter, hidden)
        return
    for bound in hidden:
        value = _first(run, parameter, bound, composed) if bound.gives is Gdp else None
        if value is not None:
            yield HidingPays(parameter=parameter, value=value, bound=bound.id, about=False)
            return


def _first(run: Run, name: str, hidden: Theorem, composed: Theorem) -> int | None:
    """Return the least count of two digits at which the hidden bound is better; None up to 1e15."""

    def helps(count: int) -> bool:
        try:
            changed = run.replacing(**{name: count})
            return bool(hidden.prove(changed).mu < _WORTH * composed.prove(changed).mu)
        except DpcalcError:
            return False

    low = high = int(run.value(name) or 1)
    while not helps(high):
        if high >= _MOST:
            return None
        low, high = high, min(_MOST, 10 * high)
    while high > 1.01 * low + 1:
        middle = round(math.sqrt(low) * math.sqrt(high))
        low, high = (low, middle) if helps(middle) else (middle, high)
    return high


def _sampled(run: Run, parameter: str, hidden: Sequence[Theorem]) -> Iterator[HidingPays]:
    """Yield the number of steps on fresh batches from which hiding helps, by a central-limit approximation."""
    counts = [
        (math.ceil(count), bound.id)
        for bound in hidden
        if bound.steps_to_hide is not None
        and (run.steps or 1) < (count := bound.steps_to_hide(bound.setting.of(run, bound.reads))) < _MOST
    ]
    if counts:
        steps, bound = min(counts, key=lambda count: count[0])
        passes = math.ceil(steps * (run.batch_size or 1) / (run.records or 1))
        yield HidingPays(parameter=parameter, value=passes if parameter == "epochs" else steps, bound=bound, about=True)


_NOISE = ("noise_multiplier", "noise_std")
_AT_MOST = ("steps", "epochs")


def with_choices(error: NotApplicable, run: Run, question: Question) -> NotApplicable:
    """Return the error with the best answer for every sampling in its hint; unchanged if there is none."""
    other, instead = _without_rate(run)
    answers: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for sampling in Sampling:
        poisson = sampling is Sampling.POISSON
        meant = run if poisson else other
        if sampling is Sampling.FULL and (run.batch_size is not None or run.sample_rate is not None):
            continue
        if flags := _lacks(meant, question, sampling):
            lacking.setdefault(flags, []).append(sampling)
        elif value := _answer(meant, question, sampling):
            answers.setdefault("" if poisson else instead, []).append(f"{sampling} {value}")
    if not (answers or lacking):
        return error
    listed = "; ".join(f"{options}{', '.join(values)}" for options, values in answers.items())
    would = f"with adjacency {run.adjacency} it would be: {listed}" if listed else ""
    short = "; ".join(f"{', '.join(names)} also need{'s' * (len(names) == 1)} {x}" for x, names in lacking.items())
    said = "; ".join(filter(None, (would, short)))
    rate = run.typed("sample_rate")  # shuffled batches have a size: that example would be refused beside a rate
    return type(error)(
        "How are batches drawn? Give --sampling.",
        f"the answer depends on it; {said}. A loader that shuffles the records is shuffle, also "
        f"where a library's accountant assumes Poisson{', with --batch-size in place of the rate' * rate}; for example "
        f"--sampling {Sampling.POISSON if rate else Sampling.SHUFFLE}",
        parameters=("sampling",),
    )


def _lacks(run: Run, question: Question, sampling: Sampling) -> str:
    """Return the flags still missing for this way of sampling."""
    sized = sampling is Sampling.FULL or (sampling is Sampling.POISSON and run.sample_rate is not None)
    names = [name for name in ("records", "batch_size") if not sized and run.value(name) is None]
    if run.steps is None and run.epochs is None and question.solve not in _AT_MOST:
        names.append("epochs")
    return " and ".join("--" + name.replace("_", "-") for name in names)


def _without_rate(run: Run) -> tuple[Run, str]:
    """Return the run with a batch size in place of the given rate, if one follows, and its flag.

    The rate is a probability of Poisson sampling; the other ways to draw batches have a size.
    """
    if not run.typed("sample_rate") or run.sample_rate is None:
        return run, ""
    size = round(run.sample_rate * run.records) if run.records else 0
    if run.records and size and math.isclose(size, run.sample_rate * run.records, rel_tol=1e-9):
        return run.replacing(sample_rate=None, batch_size=size), f"with --batch-size {size} for --sample-rate: "
    return run.replacing(sample_rate=None), ""


def _answer(run: Run, question: Question, sampling: Sampling) -> str:
    """Return the best answer in a few words; empty if no bound covers the run."""
    if name_of(str(question.solve).replace("-", "_")) == "sample_rate":
        return ""
    best = best_guarantee(run, question, for_algorithm(run.algorithm.name), sampling=sampling)
    if best is None:
        return ""
    if best.quantity in _AT_MOST:
        return f"{best.quantity} <= {math.floor(best.value)}"
    sign = ">=" if best.quantity in _NOISE else "<="
    return f"{best.quantity} {sign} {best.value * (1.0 + 5e-4):.4g}"


def compared(asked: Asked, bounds: Sequence[Theorem], *, hints: bool) -> Case:
    """Return the case with its tightness and, with ``hints``, improvements and when hiding helps."""
    case = asked.case._replace(tightness=tightness_of(asked.case))
    if not hints:
        return case
    notes: tuple[Note, ...] = asked.improvements()
    if not asked.brief:
        notes += tuple(hiding(asked.run, asked.best, bounds))
    if asked.run.algorithm.clipped and not asked.brief:
        notes += tuple(clipped_notes(asked))
    return case._replace(note_data=(*case.note_data, *notes))


def tightness_of(case: Case, more: Sequence[Result] = ()) -> Tightness | None:
    """Return the ratio of the best guarantee to the best lower or exact value, if there is one; ``more`` are further
    values."""
    best = case.best
    if best is None or best.quantity == Quantity.RDP:
        return None
    if best.kind == Kind.EXACT:
        return Tightness(best.bound, best.value, 1.0)
    floor = max(
        (result for result in (*case.results, *more) if result.kind == Kind.LOWER),
        key=lambda result: result.size * _sense(result.quantity),
        default=None,
    )
    if floor is None:
        return None
    theorem = all_bounds((floor.bound.partition(".")[0],))[floor.bound]
    convexity, _ = case.inputs.get("strong_convexity", (0.0, None))
    return Tightness(floor.bound, floor.value, _ratio(best, floor), theorem.differs_alone(convexity))


def _ratio(best: Result, floor: Result) -> float | None:
    """Return the best guarantee over the lower value (for deltas by their logarithms); None if that is not a number."""
    if best.quantity != Quantity.DELTA:
        return best.value / floor.value if floor.value else None
    logs = [result.log_delta if result.log_delta is not None else -math.inf for result in (best, floor)]
    return math.exp(min(700.0, logs[0] - logs[1])) if math.isfinite(logs[1]) else None


def _sense(quantity: str) -> int:
    """Return -1 if the largest value is best, otherwise 1."""
    return -1 if quantity in DIRECTIONS and not DIRECTIONS[quantity].more_is_private else 1
