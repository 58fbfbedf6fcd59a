"""A growing stream: the noise of each record, and products, integrals and sums over the records.

Record j is used in step j with the noise scale of `dpcalc.model.noise` at x = j^alpha. With h(eps, r) the hockey-stick
divergence of the noise at distance r (`recursion.log_one_step`),

    A_i = h(eps, Delta/scale_i),   B_t = h(eps, c D/(eta scale_t)),   delta_n = A_i prod_{t=i+1}^n B_t.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator

from dpcalc.model.draft import Frozen
from dpcalc.model.noise import reach
from dpcalc.model.quantities import Noise
from dpcalc.model.run import Run
from dpcalc.numerics.euler_maclaurin import enclose_sum
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.numerics.roots import integrate
from dpcalc.theorems.contraction import recursion
from dpcalc.theorems.setting import Setting


class Stream(Frozen):
    """The noise schedule of a stream, and the geometry that it is tuned to.

    Attributes:
        noise: ``gaussian`` or ``laplace``.
        c1, c2: constants of the schedule, C1 > 0.
        decay_exponent: alpha > 0; with alpha <= 1 the product over all records is 0.
        displacement, diameter: c >= 0 and D > 0 of the domain.
        step_size: eta > 0.
        schedule_factor: factor on every scale.
    """

    noise: Noise
    c1: float
    c2: float
    decay_exponent: float
    displacement: float
    diameter: float
    step_size: float
    schedule_factor: float = 1.0

    @classmethod
    def of(cls, run: Run | Setting) -> Stream:
        """Return the schedule of a run."""
        return cls(**{name: getattr(run, name) for name in cls.fields})

    # --- the noise of a record

    @functools.cached_property
    def unit(self) -> float:
        """c D/eta, rounded down: record t has the scale unit/reach(t)."""
        return down(self.displacement * self.diameter / self.step_size, 4.0)

    def reach(self, t: float) -> tuple[float, float]:
        """Return an enclosure of r_B at step t.

        Raises:
            NotApplicable: the schedule is undefined at t.
        """
        low, high = reach(self.noise, self.decay_exponent * math.log(t), self.c1, self.c2)
        if self.schedule_factor == 1.0:
            return low, high
        return down(low / self.schedule_factor, 2.0), up(high / self.schedule_factor, 2.0)

    def scale(self, t: float) -> float:
        """Return the noise scale of record t, rounded down."""
        return down(self.unit / self.reach(t)[1], 8.0)

    def scales(self, first: int, last: float = math.inf) -> Iterator[tuple[int, float]]:
        """Yield (record, noise scale), rounded down, for the records ``first`` .. ``last``."""
        record = first
        while record <= last:
            yield record, self.scale(record)
            record += 1

    def own_ratio(self, sensitivity: float, index: int) -> float:
        """Return r_A = Delta/scale_i, rounded up."""
        return math.inf if self.unit == 0.0 else up(sensitivity / self.unit * self.reach(index)[1], 8.0)

    # --- how the terms vary along the stream

    def singular(self, epsilon: float) -> float:
        """Return the real number beyond which ln B_t is smooth."""
        if self.noise == Noise.GAUSSIAN:
            base = -self.c2 * 2.0 * math.pi * self.c1 * self.c1
            return base ** (0.5 / self.decay_exponent) if base > 0.0 else 0.0
        inner = self.c1 * (math.exp(min(700.0, 0.5 * self.schedule_factor * epsilon)) - self.c2)
        return inner ** (1.0 / self.decay_exponent) if inner > 0.0 else 0.0

    @property
    def undefined_below(self) -> float:
        """The point where the schedule's scale becomes infinite."""
        return self.singular(0.0)

    @property
    def sharpness(self) -> float:
        """How much faster than t^2 the terms vary."""
        return max(1.0, self.decay_exponent if self.noise == Noise.GAUSSIAN else 0.5 * self.decay_exponent)

    @property
    def power(self) -> float:
        """The power of 1/t with which ln B_t falls, slightly less for Gaussian noise."""
        s = self.schedule_factor
        return 0.98 * self.decay_exponent / (s * s) if self.noise == Noise.GAUSSIAN else self.decay_exponent / s

    def _looseness(self, value: Callable[[float], float]) -> Callable[[float], float]:
        """Return t -> the relative error of a function of the reach at step t, which is only enclosed."""

        def relative(t: float) -> float:
            low, high = map(value, self.reach(t))
            return min(0.5, abs(high - low) / max(abs(high), abs(low), 5e-324) + 250.0 * UNIT)

        return relative

    # --- products

    def log_first(self, epsilon: float, sensitivity: float, index: int) -> float:
        """Return ln A_i, rounded up."""
        return recursion.log_one_step(self.noise, epsilon, self.own_ratio(sensitivity, index))

    def log_factor(self, epsilon: float, t: float) -> float:
        """Return ln B_t, rounded up."""
        return recursion.log_one_step(self.noise, epsilon, self.reach(t)[1])

    def log_factors(self, epsilon: float, index: int, last: float) -> tuple[float, float]:
        """Return an enclosure of sum_{t=index+1}^{last} ln B_t; (-inf, -inf) if a factor is 0; last may be inf."""
        if last <= index:
            return 0.0, 0.0
        if self.log_factor(epsilon, index + 1.0) == -math.inf:
            return -math.inf, -math.inf
        if math.isinf(last) and self.power <= 1.0:
            return -math.inf, -math.inf
        return enclose_sum(
            functools.partial(self.log_factor, epsilon),
            index + 1,
            last,
            singular=max(0.0, min(self.singular(epsilon), index + 1.0 - 1e-9 * index)),
            sharpness=self.sharpness,
            relative=self._looseness(functools.partial(recursion.log_one_step, self.noise, epsilon)),
            power=self.power if math.isinf(last) else 0.0,
        )

    def log_product(self, epsilon: float, sensitivity: float, index: int, last: float) -> float:
        """Return ln(A_i prod_{t=i+1}^{last} B_t), rounded up; -inf if a factor is 0."""
        return _joined(self.log_first(epsilon, sensitivity, index), self.log_factors(epsilon, index, last)[1])

    def log_integral(self, epsilon: float, lower: float, upper: float = math.inf) -> float:
        """Return int_lower^upper ln B_x dx, to 1e-12 relatively, by Gauss-Legendre on geometric panels."""
        if math.isinf(upper) and self.power <= 1.0:
            return -math.inf
        log_factor = functools.partial(self.log_factor, epsilon)
        base = max(0.0, min(self.singular(epsilon), lower * (1.0 - 1e-9)))
        left, total, growth = lower, 0.0, 1.0 + 1.0 / self.sharpness
        while left < upper:
            right = min(upper, base + (left - base) * growth)
            total += integrate(log_factor, left, right, 20)
            left = right
            tail = log_factor(left) * (left - base) / (self.power - 1.0) if math.isinf(upper) else -math.inf
            if tail > -1e-16 * abs(total) or left > 1e290:
                return total + tail
        return total

    # --- sums of the noise

    def total_scale(self, first: int, last: int) -> float:
        """Return sum_{t=first}^{last} scale_t, rounded down."""
        return self._sum(first, last, lambda r: self.unit / r)

    def total_variance(self, first: int, last: int) -> float:
        """Return sum_{t=first}^{last} scale_t^2, rounded down."""
        return self._sum(first, last, lambda r: (self.unit / r) ** 2)

    def _sum(self, first: int, last: int, term: Callable[[float], float]) -> float:
        """Return the sum over the steps of a decreasing function of their reach, rounded down."""
        low, _ = enclose_sum(
            lambda t: term(self.reach(t)[1]),
            first,
            last,
            singular=max(0.0, min(self.undefined_below, first * (1.0 - 1e-9))),
            sharpness=self.sharpness,
            relative=self._looseness(term),
        )
        return max(0.0, low)


def _joined(first: float, later: float) -> float:
    """Return the sum of two logarithms, rounded up and at most 0."""
    if first == -math.inf or later == -math.inf:
        return -math.inf
    value = first + later
    return min(0.0, value + 2.0 * UNIT * abs(value))


# --- questions to the product bound -----------------------------------------------------------------------------------
