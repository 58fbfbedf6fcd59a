"""From how many passes or steps on it helps at all that iterates stay hidden, where composition is the best bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Order, Release
from dpcalc.model.run import Run
from dpcalc.notes import HidingPays
from dpcalc.notions.guarantee import Gdp
from dpcalc.report import Result
from dpcalc.theorems.record import Theorem

_MOST = 10**15
_WORTH = 0.99
"""A bound that is not a hundredth below composition counts as no better."""


def hiding(run: Run, best: Result, bounds: Sequence[Theorem]) -> Iterator[HidingPays]:
    """Yield from when on hiding helps, where it does not yet: the best bound is one that publishes every iterate."""
    if run.algorithm.release is not Release.LAST or not best.bound.endswith(".composition"):
        return
    sampled = run.algorithm.order is Order.SAMPLE
    name = "epochs" if run.epochs is not None and not run.typed("steps") else "steps"
    hidden = [bound for bound in bounds if bound.guarantee and bound.id != best.bound and bound.obstacle(run) is None]
    if sampled:
        found = _sampled(run, hidden)
        if found is not None:
            steps, bound = found
            passes = math.ceil(steps * (run.batch_size or 1) / (run.records or 1))
            yield HidingPays(parameter=name, value=passes if name == "epochs" else steps, bound=bound.id, about=True)
        return
    composed = next(bound for bound in bounds if bound.id == best.bound)
    for bound in hidden:
        if bound.gives is Gdp:
            value = _first(run, name, bound, composed)
            if value is not None:
                yield HidingPays(parameter=name, value=value, bound=bound.id, about=False)
                return


def _first(run: Run, name: str, hidden: Theorem, composed: Theorem) -> int | None:
    """Return the least count of two digits at which the hidden bound is better; None up to 1e15."""

    def helps(count: int) -> bool:
        try:
            changed = run.replacing(**{name: count})
            return bool(hidden.prove(changed).mu < _WORTH * composed.prove(changed).mu)
        except DpcalcError:
            return False

    low, high = int(run.value(name) or 1), int(run.value(name) or 1)
    while not helps(high):
        if high >= _MOST:
            return None
        low, high = high, min(_MOST, 10 * high)
    while high > 1.01 * low + 1:
        middle = round(math.sqrt(low) * math.sqrt(high))
        low, high = (low, middle) if helps(middle) else (middle, high)
    return high


def _sampled(run: Run, hidden: Sequence[Theorem]) -> tuple[int, Theorem] | None:
    """Return the number of steps on fresh batches from which hiding helps, by a central limit approximation."""
    from dpcalc.theorems.expanding import expanding_sampled
    from dpcalc.theorems.sampled import noisy_sgd

    found = []
    for bound in hidden:
        if bound.id == "noisy_sgd.hidden":
            steps = noisy_sgd.steps_to_hide(bound.setting_of(run))
        elif bound.id == "expanding.sampled":
            steps = expanding_sampled.steps_to_hide(bound.setting_of(run))
        elif bound.id == "expanding.domain":
            whole = bound.function(bound.setting_of(run).changed(steps=_MOST))
            steps = noisy_sgd.steps_to_reach(noisy_sgd.SampledSteps.of(run), whole.mu)
        else:
            continue
        if (run.steps or 1) < steps < _MOST:
            found.append((math.ceil(steps), bound))
    return min(found, key=lambda row: row[0], default=None)
