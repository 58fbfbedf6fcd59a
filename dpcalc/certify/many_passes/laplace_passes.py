"""Definitions of `multi_epoch.laplace` and `shuffled_epochs.once_laplace`: several passes, the iterates hidden.

Every use of the record but the last is hidden by the steps of a whole pass, and what is true of it from every state
composes. The curve of some steps is the least of that of the record's own step, of the mixture of Gaussians over the
exponential variances of its noise, and of equal shares composed.
"""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Composition
from dpcalc.certify.numerics.balls import Inputs, settle
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.numerics.laplace import composed, mixture
from dpcalc.certify.one_pass.shuffle import averaged
from dpcalc.certify.released.compositions import delta_of, laplace_step
from dpcalc.certify.runs.batches import batch, period, sizes
from dpcalc.certify.runs.random_positions import laplace_left
from dpcalc.certify.table import defines

_LIMIT = "uses that more than 2000 steps hide"
_FEW = 12  # shares that are composed
_CLOSE = 24  # relative bits that are enough for a delta
_DEEPEST = 2048  # bits beyond which a delta that cancels counts by the end of its ball


def _hidden(ratio: arb, steps: int) -> Part:
    """Return a use of so many scales that ``steps`` hide, the record's own among them, to be composed once."""
    alone = laplace_step(ratio)
    if steps == 1:
        return Part(alone, 1, ratio)
    counts = {*range(2, min(steps, _FEW) + 1), min(steps, 10 * _FEW)}

    def curve(z: arb) -> arb:
        told = alone(z)
        if not told > 0:
            return told
        mixed = settle(lambda: mixture(ratio, steps - 1, z).exp(), _CLOSE, _DEEPEST)
        told = told.min(mixed if mixed.is_finite() else arb(1))
        if 2 * z < ratio:  # shares tell less near the largest loss alone
            return told
        for count in counts:
            told = told.min(delta_of(composed(ratio, count, z)))
        return told

    return Part(curve, 1, ratio if steps <= _FEW else None)


@defines("multi_epoch.laplace", Composition, weight=20000.0, limit=_LIMIT)
def _cyclic(v: Inputs) -> list[Part]:
    divisor, tail = batch(v)
    ratio = v.quotient(["sensitivity"], [divisor, "scale"])
    return [*_earlier(ratio, v), _hidden(ratio, tail)]


@defines("shuffled_epochs.once_laplace", Composition, weight=20000.0, limit=_LIMIT)
def _once(v: Inputs) -> list[Part]:
    ratio = v.quotient(["sensitivity"], [min(divisor for _, _, divisor in sizes(v)), "scale"])
    alone = laplace_step(ratio)

    def last(z: arb) -> arb:
        told = alone(z)
        return told.min(delta_of(averaged(v.changed(epsilon=z), laplace_left))) if told > 0 else told

    return [*_earlier(ratio, v), Part(last, 1, ratio)]


def _earlier(ratio: arb, v: Inputs) -> list[Part]:
    """Return the uses before the last, each hidden by a whole pass."""
    return [_hidden(ratio, period(v))._replace(copies=v.epochs - 1)] if v.epochs > 1 else []
