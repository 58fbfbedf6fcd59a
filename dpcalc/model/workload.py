"""What an optimiser computes from noisy gradients: sums, with momentum, weight decay and a learning-rate cool-down.

With learning rate 1 before the cool-down, iterates are x_t = (1 - decay r_t) x_{t-1} + r_t m_t with
m_t = momentum m_{t-1} + g_t; r_t falls linearly to 0 over the cool-down.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dpcalc.numerics.floats import Array, np

_POINTS = 65
"""Steps of a cool-down whose variance is computed, by a transform each; the others are interpolated."""


class Workload(NamedTuple):
    """Iterates as linear functions of the gradients; by default their sums.

    Attributes:
        momentum: in [0, 1), the share of the last update that is kept.
        decay: in [0, 1), the share of the iterate that a step at the full learning rate removes.
        cool_down: in [0, 1], the share of steps at the end over which the learning rate falls to 0.
    """

    momentum: float = 0.0
    decay: float = 0.0
    cool_down: float = 0.0

    @classmethod
    def of(cls, value: Callable[[str], float | None]) -> Workload:
        """Return the workload of a run; ``value`` maps a parameter's name to its value. None if one is unknown."""
        return cls(*(value(name) or 0.0 for name in cls._fields))

    def rates(self, steps: int) -> Array:
        """Return the learning rate of every step, shape (steps,)."""
        cooled = round(self.cool_down * steps)
        return np.concatenate((np.ones(steps - cooled), 1.0 - np.arange(cooled) / max(cooled, 1)))

    def variances(self, inverse: Array) -> Array:
        """Return the variance of every iterate under noise C^-1 Z, to nearest.

        Args:
            inverse: C^-1, shape (steps, steps), or its first column if it is Toeplitz.
        """
        rates = self.rates(len(inverse))
        if inverse.ndim == 2:
            return self._of_rows(inverse, rates)
        steady = _fading(inverse, self.momentum) if self.momentum else inverse
        variances: Array = np.cumsum(_fading(steady, 1.0 - self.decay) ** 2)
        first = int(np.count_nonzero(rates == 1.0))
        if first < len(rates):
            points = np.unique(np.linspace(first, len(rates) - 1, _POINTS).astype(int))
            cooled = [self._at(steady, rates, point) for point in points]
            variances[first:] = np.interp(np.arange(first, len(rates)), points, cooled)
        return variances

    def _of_rows(self, inverse: Array, rates: Array) -> Array:
        update, iterate, variances = np.zeros(len(rates)), np.zeros(len(rates)), np.empty(len(rates))
        with np.errstate(over="ignore", invalid="ignore"):  # if C is numerically singular
            for t, rate in enumerate(rates):
                update = self.momentum * update + inverse[t]
                iterate = (1.0 - self.decay * rate) * iterate + rate * update
                variances[t] = iterate @ iterate
        return variances

    def _at(self, steady: Array, rates: Array, last: int) -> float:
        """Return the variance of one iterate, from its weights on past updates and the correlation of their noise."""
        kept = np.append(1.0 - self.decay * rates[1 : last + 1], 1.0)
        weights = rates[: last + 1] * np.cumprod(kept[::-1])[::-1]
        row = _convolved(weights[::-1], steady[: last + 1])
        return float(row @ row)


def _fading(series: Array, kept: float) -> Array:
    """Return the running sums of a series, of which each step keeps the share ``kept``."""
    return np.cumsum(series) if kept == 1.0 else _convolved(series, np.power(kept, np.arange(float(len(series)))))


def _convolved(one: Array, other: Array) -> Array:
    """Return the first terms of the product of two power series, by a transform; for errors, not for guarantees.

    It errs by some 1e-16 of the largest entry.
    """
    size = 1 << (2 * len(one) - 1).bit_length()
    product: Array = np.fft.irfft(np.fft.rfft(one, size) * np.fft.rfft(other, size), size)
    return product[: len(one)]


SUMS = Workload()
