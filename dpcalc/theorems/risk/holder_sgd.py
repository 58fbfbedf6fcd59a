"""SGD on Hölder losses with a budget: the least noise that keeps it, the best step size, and the risk at both.

The terms of the risk are those of `sgd`. Every value is rounded up.

The numbers of steps and the step sizes of Wang, Lei, Ying and Zhang (2022), up to constants: these are not bounds.

Their constants are not specified. `holder_cost` chooses its own step size.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Self

from dpcalc.errors import NotApplicable
from dpcalc.notions import gaussian
from dpcalc.notions.conversions import Risk
from dpcalc.notions.guarantee import Composition
from dpcalc.numerics.floats import MAX, UNIT, up
from dpcalc.numerics.roots import least
from dpcalc.theorems.holder import dp_sgd, holder
from dpcalc.theorems.risk.sgd import Sgd
from dpcalc.theorems.sampled import noisy_sgd
from dpcalc.theorems.setting import Setting


class PrivateSgd(Setting):
    """SGD on Hölder losses with a budget."""

    @functools.cached_property
    def gradient(self) -> float:
        """G, the least bound on the gradient that the other fields imply."""
        return holder.gradient_bound(
            lipschitz=self.lipschitz, radius=self.radius, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant, gradient_at_zero=self.gradient_at_zero,
        )  # fmt: skip

    @functools.cached_property
    def sgd(self) -> Sgd:
        """The steps without the budget."""
        return Sgd(
            self.records, self.steps, self.dimension, self.radius, self.gradient, self.holder_exponent,
            self.holder_constant,
        )  # fmt: skip

    @functools.cached_property
    def step_noise(self) -> float:
        """The least sigma in every step that keeps the budget, rounded up."""
        return up(2.0 * self.gradient * step_noise_ratio(self.records, self.steps, self.epsilon, self.log_delta), 4.0)

    def hoped(self) -> Self:
        """Return the run as if the noise from the central limit theorem kept the budget. It is mostly slightly too
        small, so values computed from it are not bounds.
        """
        hoped = self.changed()
        hoped.__dict__["step_noise"] = 2.0 * self.gradient * _limit(
            self.records, self.steps, gaussian.largest_mu(epsilon=self.epsilon, log_delta_target=self.log_delta)
        )  # fmt: skip
        return hoped

    def output_noise(self, step_size: float, ulps: int = 1 << 24) -> float:
        """Return the least sigma on the output that keeps the budget, to within ``ulps`` units of roundoff."""
        unit = self.output_noise_per_step
        return up(unit * step_size, 16.0) if unit is not None else self.solved_output_noise(step_size, ulps)

    @functools.cached_property
    def output_noise_per_step(self) -> float | None:
        """sigma/eta for noise on the output if sigma is proportional to the step size, as a and b are; else None."""
        if self.holder_exponent not in (0.0, 1.0):
            return None
        step_size = min(1.0, self.sgd.largest_step)
        return self.solved_output_noise(step_size, 1 << 24) / step_size

    def solved_output_noise(self, step_size: float, ulps: int) -> float:
        """Return a sigma that keeps the budget by `dp_sgd.output`, within this many units of roundoff of the least.

        Raises:
            NotApplicable: no sigma below 1e150 keeps it.
        """

        def excess(sigma: float) -> float:
            run = dp_sgd.OutputNoise(
                records=self.records, batch_size=1, steps=self.steps, step_size=step_size, noise_std=sigma,
                holder_exponent=self.holder_exponent, holder_constant=self.holder_constant, strong_convexity=0.0,
                lipschitz=self.gradient,
            )  # fmt: skip
            return min(100.0, max(-100.0, dp_sgd.output(run).profile(self.epsilon) - self.log_delta))

        mu = gaussian.largest_mu(epsilon=self.epsilon, log_delta_target=self.log_delta)
        sufficient = max(2.0 * step_size * self.gradient, 1e-150) / mu
        while excess(sufficient) > 0.0:
            sufficient *= 2.0
            if sufficient > 1e150:
                raise NotApplicable("no noise on the output keeps this budget", "allow a larger epsilon or delta")
        insufficient = 0.5 * sufficient
        while insufficient > 1e-150 and excess(insufficient) <= 0.0:
            sufficient, insufficient = insufficient, 0.5 * insufficient
        return least(excess, insufficient, sufficient, ulps=ulps)

    def with_step_noise(self, risk: Callable[[float, float], float], failure: float | None = None) -> Risk:
        """Return the risk with noise in every step, for risk(step size, sigma)."""
        sigma = self.step_noise
        step_size = self.step_size or self.best_step(lambda eta: risk(eta, sigma), sigma)
        return Risk(_finite(risk(step_size, sigma)), sigma, step_size, self.steps, failure)

    def with_output_noise(self, risk: Callable[[float, float], float], failure: float | None = None) -> Risk:
        """Return the risk with noise on the output, for risk(step size, sigma)."""
        rough_ulps = 1 << 44
        step_size = self.step_size or self.best_step(lambda eta: risk(eta, self.output_noise(eta, rough_ulps)), 0.0)
        sigma = self.output_noise(step_size)
        return Risk(_finite(risk(step_size, sigma)), sigma, step_size, self.steps, failure)

    def best_step(self, risk: Callable[[float], float], noise_std: float) -> float:
        """Return a step size near the minimum of a risk that falls and then rises; any allowed one gives a bound."""
        most, start = self.sgd.largest_step, self.sgd.best_step(noise_std)

        def at(log_step: float) -> float:
            return risk(min(most, math.exp(log_step)))

        ratio = 0.6180339887498949
        low, high = math.log(start) - 9.0, math.log(start) + 4.0
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        left, right = at(c), at(d)
        for _ in range(26):  # one of the two inner points stays inside the remaining interval
            if left <= right:
                high, d, right = d, c, left
                c = high - ratio * (high - low)
                left = at(c)
            else:
                low, c, left = c, d, right
                d = low + ratio * (high - low)
                right = at(d)
        best = min(most, math.exp(0.5 * (low + high)))
        return best if risk(best) <= risk(start) else start


class LikelyRisk(PrivateSgd):
    """SGD on Hölder losses with a budget, and a bound on its risk that holds with high probability."""

    @functools.cached_property
    def sgd(self) -> Sgd:
        """The steps without the budget, and the range of the losses."""
        loss_range = holder.range_bound(
            radius=self.radius, loss_at_zero=self.loss_at_zero, gradient=self.gradient,
            gradient_at_zero=self.gradient_at_zero, holder_exponent=self.holder_exponent,
            holder_constant=self.holder_constant,
        )  # fmt: skip
        return super().sgd._replace(loss_range=loss_range)

    @property
    def log_chance(self) -> float:
        """ln gamma, rounded down."""
        return math.log(self.failure_probability) * (1.0 + 4.0 * UNIT)

    def likely_with_step_noise(self, gap: Gap) -> Risk:
        """Return the risk with noise in every step, exceeded with probability at most gamma."""
        return self.with_step_noise(
            lambda eta, sigma: likely_step_risk(self.sgd, gap, eta, sigma, self.log_chance), self.failure_probability
        )

    def likely_with_output_noise(self, gap: Gap) -> Risk:
        """Return the risk with noise on the output, exceeded with probability at most gamma."""
        return self.with_output_noise(
            lambda eta, sigma: likely_output_risk(self.sgd, gap, eta, sigma, self.log_chance), self.failure_probability
        )


# --- risks and noise --------------------------------------------------------------------------------------------------


Gap = Callable[[Sgd, float, float], float]
"""A method of `Sgd`: (step size, ln share) -> bound on the generalisation gap; it takes three shares of the chance."""


def expected_risk(sgd: Sgd, step_size: float, step_noise: float) -> float:
    """Return R^2/(2 eta T) + (eta/2)(G^2 + d sigma^2) + G (eta G (T-1)/n + (2/3) a sqrt(T)), rounded up."""
    noise = sgd.step_noise_expected(step_size, step_noise)
    return up(sgd.regret(step_size) + noise + sgd.expected_gap(step_size), 4.0)


def likely_step_risk(sgd: Sgd, gap: Gap, step_size: float, noise_std: float, log_chance: float) -> float:
    """Return the excess risk with noise in every step, exceeded with at most this chance (seven shares); rounded up."""
    share = holder.log_each(log_chance, 7)
    noise = sgd.step_noise_likely(step_size, noise_std, share)
    return up(gap(sgd, step_size, share) + sgd.regret(step_size) + noise + sgd.sampling(share), 8.0)


def likely_output_risk(sgd: Sgd, gap: Gap, step_size: float, noise_std: float, log_chance: float) -> float:
    """Return the excess risk with noise on the output, exceeded with at most this chance (six shares); rounded up."""
    share = holder.log_each(log_chance, 6)
    noise = sgd.output_noise_likely(noise_std, share)
    return up(gap(sgd, step_size, share) + sgd.regret(step_size) + noise + sgd.sampling(share), 8.0)


@functools.lru_cache(maxsize=64)
def step_noise_ratio(records: int, steps: int, epsilon: float, log_delta: float) -> float:
    """Return an s = sigma/(2 G) that keeps the budget with noise in every step, some 1e-4 above the least.

    By the law of the privacy loss, as in `dp_sgd.gradient`. The budget was checked at the value returned.

    Raises:
        NotApplicable: 1e6 times the noise of T composed Gaussian mechanisms is not enough.
    """
    from dpcalc.notions import pld

    def parts(s: float) -> Sequence[tuple[pld.Pair, int]]:
        run = noisy_sgd.SampledSteps(records=records, batch_size=1, steps=steps, lipschitz=0.5, noise_std=s)
        return [noisy_sgd.taken(run.ratio, records, 1, steps)]

    def excess(s: float) -> float:
        return min(50.0, max(-50.0, Composition(parts(s)).log_delta(epsilon).value - log_delta))

    def log_delta_near(s: float, resolution: int) -> float:
        return pld.bound_near(parts(s), epsilon=epsilon, log_delta_target=log_delta, resolution=resolution).value

    mu = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)
    start = _limit(records, steps, mu)
    noise = _by_secants(log_delta_near, start, log_delta)
    return noise if noise is not None else _by_bracket(excess, start, 1e6 * math.sqrt(steps) / mu)


def _limit(records: int, steps: int, mu: float) -> float:
    """Return the sigma/(2 G) at which the central limit theorem suggests mu for all steps together; no bound."""
    low, high = 1e-3, math.sqrt(steps) / mu
    for _ in range(60):
        middle = math.sqrt(low * high)
        enough = noisy_sgd.clt_mu(mu=1.0 / middle, rate=1 / records, steps=steps) <= mu
        low, high = (low, middle) if enough else (middle, high)
    return high


_LATTICES = ((64, False), (512, True))
"""(points per standard deviation, whether the search ends there): a coarse lattice first."""
_NEAR, _CLOSE = 0.02, 1e-4
_POWER = 3.0  # -ln delta is about proportional to this power of s: for the first guess


def _by_secants(log_delta: Callable[[float, int], float], start: float, target: float) -> float | None:
    """Return an s where log_delta(s, resolution) <= target, about `_CLOSE` above the least such s, in few steps.

    ln(-ln delta) is nearly linear in ln s.

    Args:
        log_delta: below 0, falls with s; the difference between resolutions is small.
        start: the first guess.
        target: below 0.

    Returns:
        None if the search does not converge.
    """
    log_s, power = math.log(start), _POWER
    for resolution, last in _LATTICES:
        before = None
        for _ in range(8):
            reached = log_delta(math.exp(log_s), resolution)
            value = math.log(max(reached / target, 1e-3))
            if before is not None and log_s != before[0]:
                power = (value - before[1]) / (log_s - before[0])
            if not power > 0.0:
                return None
            tolerance = power * _CLOSE
            if last and reached <= target and value <= tolerance:
                return math.exp(log_s)
            before = log_s, value
            log_s -= min(0.5, max(-0.5, (value - 0.25 * tolerance) / power))
            if not last and abs(value) <= _NEAR:
                break
        else:
            return None
    return None


def _by_bracket(excess: Callable[[float], float], start: float, most: float) -> float:
    """Return an s with excess(s) <= 0, at most 1e-4 above the least.

    Raises:
        NotApplicable: there is none up to ``most``.
    """
    sufficient = start
    while excess(sufficient) > 0.0:
        sufficient *= 1.25
        if sufficient > most:
            raise NotApplicable("no noise on the gradients keeps this budget", "allow a larger epsilon or delta")
    insufficient = sufficient / 1.25
    while insufficient > 1e-150 and excess(insufficient) <= 0.0:
        sufficient, insufficient = insufficient, insufficient / 1.25
    return least(excess, insufficient, sufficient, ulps=1 << 38)


def _finite(risk: float) -> float:
    return risk if risk < MAX else math.inf


def steps_exponent_unbounded(*, holder_exponent: float) -> float:
    """Return the x of T = n^x of Theorem 9: (6 - 3a - a^2)/((1 + a)(3 + a)) for a <= (sqrt(73) - 7)/4, else 1.

    >>> steps_exponent_unbounded(holder_exponent=0.0)
    2.0
    """
    a = holder_exponent
    return (6.0 - 3.0 * a - a * a) / ((1.0 + a) * (3.0 + a)) if a <= (math.sqrt(73.0) - 7.0) / 4.0 else 1.0


def steps_exponent(*, holder_exponent: float) -> float:
    """Return the x of T = n^x of Theorems 10 and 12, on a bounded domain: (2 - a)/(1 + a) for a < 1/2, else 1.

    >>> steps_exponent(holder_exponent=0.0)
    2.0
    """
    a = holder_exponent
    return (2.0 - a) / (1.0 + a) if a < 0.5 else 1.0


def gradient_complexity(*, records: int, holder_exponent: float, bounded: bool = True) -> int:
    """Return T = ceil(n^x), the number of steps and of gradients evaluated, with x of the two functions above.

    >>> gradient_complexity(records=1000, holder_exponent=0.5)
    1000
    """
    rule = steps_exponent if bounded else steps_exponent_unbounded
    exponent = rule(holder_exponent=holder_exponent)
    return records if exponent == 1.0 else math.ceil(records**exponent * (1.0 - 1e-12))
