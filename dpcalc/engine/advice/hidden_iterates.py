"""From how many passes or steps on it helps at all that iterates stay hidden, where composition is the best bound."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Order, Release
from dpcalc.model.choices import Noise
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
    """Yield from how many steps on fresh batches hiding helps, by a central limit approximation."""
    counts = [
        (math.ceil(count), bound.id)
        for bound in hidden
        if bound.steps_to_hide is not None
        and (run.steps or 1) < (count := bound.steps_to_hide(bound.setting_of(run))) < _MOST
    ]
    if counts:
        steps, bound = min(counts, key=lambda count: count[0])
        passes = math.ceil(steps * (run.batch_size or 1) / (run.records or 1))
        yield HidingPays(parameter=parameter, value=passes if parameter == "epochs" else steps, bound=bound, about=True)
