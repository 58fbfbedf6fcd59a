"""Where the shifts of a chain are spent against Laplace noise, in one dimension.

Every allocation of the shifts is valid at every order. The one for Gaussian noise is improved by majorising and
minimising: the divergence R is concave in the square of the shift, so the quadratic through the present a_t with
curvature R'(a)/a lies above it, and the Gaussian problem with the weights a_t/R'(a_t) can only lower the sum.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from dpcalc.model.chain import Chain
from dpcalc.notions.certificate import ALLOCATION, Certificate
from dpcalc.numerics.arrays import Array, np
from dpcalc.numerics.floats import up
from dpcalc.theorems.one_pass.allocation import completed, shares, shifts

if TYPE_CHECKING:
    from dpcalc.numerics.isotonic import Allocation

_REFINED_STEPS = 100_000
_OWN_ORDER_STEPS = 200
_MOST_RECORDED = 1000
_ROUNDS, _WORK = 40, 200_000
_REFINED_AT = (0.25, 1.0, 4.0, 16.0, 64.0)


class LaplaceSpending:
    """The steps of a chain that are not forgotten, and ways to spend their shifts against Laplace noise.

    Attributes:
        shift, carry: s_t and c_t of these steps.
        scale: b_t, the Laplace scale of each in the space of the parameters, rounded down.
        entry: z before the first of them.
        start: how many steps are forgotten.
    """

    def __init__(self, chain: Chain, allocation: Allocation, multiplier: float) -> None:
        kept = slice(allocation.start, None)
        self.shift, self.carry, self.entry = shifts(chain)[kept], chain.contraction[kept], allocation.start_value
        self.scale = (chain.scale * (multiplier * (1.0 - 2.0**-52)))[kept]
        self.start = allocation.start
        self._gaussian = self._completed(shares(chain, allocation)[kept])

    def divergence(self, order: float) -> float:
        """Return the least sum of Laplace divergences found at an order, rounded up."""
        return self._cost(self.spent(order), order)

    def spent(self, order: float) -> Array:
        """Return what is spent in each of the steps at an order, shape (T,)."""
        _, _, best = min((self._cost(spent, order), k, spent) for k, spent in enumerate(self._candidates))
        if len(self._candidates) == 1 or len(self.scale) > _OWN_ORDER_STEPS:
            return best
        return self._improved(best, order)

    def certificate(self, order: float) -> Certificate | None:
        """Return where the chain restarts and what is spent in each step from there on; None for a long chain."""
        if len(self.scale) > _MOST_RECORDED:
            return None
        return Certificate(ALLOCATION, values={"start": self.start, "spent": self.spent(order).tolist()})

    @functools.cached_property
    def _candidates(self) -> list[Array]:
        """The Gaussian allocation, and that improved for some orders.

        What matters is order times shift over scale: below 1 the divergence is quadratic, as for Gaussian noise, far
        above it is linear. Between orders that differ by a factor 4 the optimum moves little, and its cost to second
        order only.
        """
        first, scale = self._gaussian, self.scale
        largest = float((first / scale).max()) if (scale > 0.0).all() else math.inf
        if len(scale) > _REFINED_STEPS or not 0.0 < largest < math.inf or self._uniform:
            return [first]
        orders = [max(1.0 + 1e-6, factor / largest) for factor in _REFINED_AT]
        return [first, *(self._improved(first, order) for order in (*orders, math.inf))]

    @property
    def _uniform(self) -> bool:
        """Whether all steps are alike with c = 1: the Gaussian allocation is then optimal for every convex cost."""
        return bool((self.scale == self.scale[0]).all() and (self.carry == 1.0).all())

    def _improved(self, spent: Array, order: float) -> Array:
        """Return the allocation improved for one order, shape (T,)."""
        from dpcalc.numerics.isotonic import allocate, spend

        best, value = spent, self._cost(spent, order)
        for _ in range(max(2, min(_ROUNDS, _WORK // len(self.shift)))):
            weight = self._weights(best, order)
            allocation = allocate(self.shift, weight, self.carry, start=self.entry)
            candidate = self._completed(spend(allocation, self.shift, weight, self.carry))
            lower = self._cost(candidate, order)
            if not lower < value * (1.0 - 1e-5):
                break
            best, value = candidate, lower
        return best

    def _completed(self, spent: Array) -> Array:
        return completed(spent, self.shift, self.carry, self.entry)

    def _weights(self, spent: Array, order: float) -> Array:
        """Return a_t/R'(a_t), the weights of the quadratic majoriser (b^2/order at a_t = 0)."""
        scale = self.scale
        u = spent / scale
        if math.isinf(order):
            linear: Array = np.maximum(u, 1e-12) * scale * scale
            return linear
        a1, w = order - 1.0, 2.0 * order - 1.0
        # R'(u) = a (1 - y)/(a + (a-1) y), y = e^(-w u); its ratio to u tends to order as u -> 0.
        y = np.exp(-np.minimum(w * u, 700.0))
        slope = order * -np.expm1(-w * u) / (order + a1 * y)
        ratio = np.where(u > 1e-12, slope / np.where(u > 1e-12, u, 1.0), order)
        quadratic: Array = scale * scale / ratio
        return quadratic

    def _cost(self, spent: Array, order: float) -> float:
        """Return sum_t of the Laplace divergence at shift a_t and scale b_t, rounded up."""
        scale = self.scale
        if (spent[scale == 0.0] > 0.0).any():
            return math.inf
        u = np.divide(spent, scale, out=np.zeros(len(spent)), where=scale > 0.0)
        if math.isinf(order):
            return up(math.fsum(u.tolist()), 8.0)
        return up(math.fsum(_divergences(u, order).tolist()), 64.0)


def _divergences(u: Array, order: float) -> Array:
    """Return the Laplace divergence at each u = shift/scale, shape (T,), good to 32 units of roundoff."""
    a1, w = order - 1.0, 2.0 * order - 1.0
    if order == 1.0:
        return _expm1_minus(-u)
    with np.errstate(over="ignore", invalid="ignore"):
        small = a1 * u < 1.0
        inner = (order * _expm1_minus(a1 * u) + a1 * _expm1_minus(-order * u)) / w
        near = np.log1p(inner) / a1
        far = u + np.log1p(a1 / w * np.expm1(-w * u)) / a1
    return np.where(small, near, far)


def _expm1_minus(x: Array) -> Array:
    """Return e^x - 1 - x elementwise: a series below 1/2, where the difference would cancel."""
    series, term = np.zeros_like(x), np.ones_like(x)
    clipped = np.clip(x, -0.5, 0.5)
    for k in range(2, 20):
        term = term * clipped / k
        series += term
    return np.where(np.abs(x) <= 0.5, series * clipped, np.expm1(x) - x)
