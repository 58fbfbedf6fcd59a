"""Contraction and shift bounds for steps that differ: each has its own step size, noise and displacement.

As in `contraction`, with A_j = h(eps, Delta/s_j) and B_t = h(eps, c_t D/(eta_t s_t)), s_t the noise scale of step t.
Arrays have shape (T,) and hold upper bounds: slack for rounding is added at every stage.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

from dpcalc.errors import MissingParameter
from dpcalc.model.quantities import Noise
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, Array, log_expm1, np, up
from dpcalc.theorems.conditions import DOMAIN, FIXED_ORDER, ONE_RELEASE
from dpcalc.theorems.contraction import recursion
from dpcalc.theorems.contraction.contraction import DISPLACED, FRESH, LIPSCHITZ_STEPS, PAPER
from dpcalc.theorems.contraction.recursion import log_one_steps
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import NOISY_STEP, Setting

_RECURSED = 100_000  # at most this many later steps go through the non-linear recursion
_ALL_PAIRS = 1000  # at most this many steps are recursed for all positions at once
_FLOOR = -1e290

_STEPS = "step sizes, noise and displacement factors as scheduled, chosen without looking at the data"
_FIXED = (FIXED_ORDER, FRESH, _STEPS, DOMAIN, DISPLACED, ONE_RELEASE)
_USED = (FRESH, _STEPS, "where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE)
_ORDER = "one pass in a random order or rotation that puts the record on each step with the stated probability"


# --- settings ---------------------------------------------------------------------------------------------------------


BOUNDED_PASS = ("schedule", *NOISY_STEP, "diameter", "index?")


class Steps(Setting):
    """One pass by a schedule, each record used in one step, on a bounded domain, with Lipschitz maps, or both."""

    @functools.cached_property
    def own_ratios(self) -> Array:
        """r_A of a record that is used in each step."""
        with _quiet():
            ratios: Array = self.sensitivity / (self.schedule.noise * self.scale) * (1.0 + 8.0 * UNIT)
        return ratios

    def log_firsts(self, epsilon: float) -> Array:
        """Return ln A of every step."""
        return log_one_steps(self.noise, epsilon, self.own_ratios)

    @functools.cached_property
    def later_ratios(self) -> Array | None:
        """r_B of every step; None if nothing bounds it."""
        chain = self.schedule
        if math.isinf(self.diameter) or chain.displacement is None:
            return None
        with _quiet():
            reach: Array = chain.displacement * self.diameter
            return reach / (chain.step_size * chain.noise * self.scale) * (1.0 + 12.0 * UNIT)

    @property
    def shifts(self) -> bool:
        """Whether the shift bound holds: Gaussian noise and Lipschitz maps."""
        return self.noise == Noise.GAUSSIAN and self.schedule.lipschitz

    @functools.cached_property
    def shift_mus(self) -> Array:
        """The GDP parameter of the shift bound for every position."""
        from dpcalc.theorems.one_pass.iteration import remaining_variance

        chain = self.schedule
        spread = remaining_variance(chain.step_size, chain.noise * (self.scale * (1.0 - 4.0 * UNIT)), chain.contraction)
        with np.errstate(all="ignore"):
            mu = chain.step_size * self.sensitivity / np.sqrt(spread)
            if self.diameter < math.inf:
                # After step tau the noise has to hide at most the diameter.
                behind = np.append(self.diameter * chain.contraction[1:] / np.sqrt(spread[1:]), np.inf)
                mu = np.minimum(mu, np.minimum.accumulate(behind[::-1])[::-1])
        mu = np.where(np.isnan(mu), np.inf, mu) * (1.0 + UNIT * (8.0 * len(mu) + 64.0))
        clipped: Array = np.clip(mu, 1e-100, 1e100)
        return clipped

    # --- bounds for every position

    def log_factors(self, epsilon: float) -> Array:
        """Return ln B of every step.

        Raises:
            MissingParameter: the displacement factors are not known.
        """
        if self.later_ratios is None:
            raise MissingParameter("needs displacement", "give --lipschitz, or a column displacement")
        return log_one_steps(self.noise, epsilon, self.later_ratios)

    def log_products(self, epsilon: float) -> Array:
        """Return ln(A_j prod_{t>j} B_t) for every position j, rounded up."""
        first, factors = self.log_firsts(epsilon), self.log_factors(epsilon)
        later = np.concatenate((np.cumsum(factors[::-1])[::-1][1:], [0.0]))
        shrink = 1.0 - 2.0 * UNIT * (len(first) + 4)
        return np.minimum(0.0, np.maximum((first + later * shrink) * (1.0 - 2.0 * UNIT), -np.inf))

    def log_shifts(self, epsilon: float) -> Array:
        """Return the Gaussian shift bound on ln delta for every position, rounded up; Lipschitz maps."""
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        return log_hockey_stick_up(epsilon, self.shift_mus)

    def log_recursions(self, epsilon: float) -> Array:
        """Return the non-linear recursion's ln e for every position at once; O(T^2)."""
        ratios: Any = self.later_ratios
        gap = log_expm1(epsilon)
        value = np.maximum(self.log_firsts(epsilon), _FLOOR)
        for t in range(1, len(value)):
            x = gap - value[:t]
            error = (
                UNIT * (8.0 * (1.0 + abs(gap)) + 4.0 * np.abs(value[:t]) + 2.0 * np.abs(x)) if gap > -np.inf else 0.0
            )
            shrunk = np.logaddexp(0.0, x)
            shrunk = np.maximum(0.0, (shrunk - error * np.minimum(1.0, 1.5 * shrunk)) * (1.0 - 4.0 * UNIT))
            value[:t] = np.maximum(
                (value[:t] + log_one_steps(self.noise, shrunk, ratios[t])) * (1.0 - 4.0 * UNIT), _FLOOR
            )
        return np.minimum(value, 0.0)

    def log_least(self, epsilon: float) -> Array:
        """Return the least of product, shift and (up to 1000 steps) recursion for every position, rounded up."""
        bounds = [self.log_firsts(epsilon)]
        if self.later_ratios is not None:
            bounds.append(self.log_products(epsilon))
            if len(self.schedule) <= _ALL_PAIRS:
                bounds.append(self.log_recursions(epsilon))
        if self.shifts:
            bounds.append(self.log_shifts(epsilon))
        least: Array = np.minimum.reduce(bounds)
        return least

    # --- one position, step by step

    def log_hybrid(self, index: int, epsilon: float) -> float:
        """Return the least of product, shift and non-linear recursion for the position ``index``, rounded up."""
        bounds = [0.0]
        if self.shifts:
            bounds.append(_at(self.log_shifts(epsilon), index))
        if self.later_ratios is None:
            bounds.append(recursion.log_one_step(self.noise, epsilon, float(self.own_ratios[index - 1])))
        else:
            bounds.append(_at(self.log_products(epsilon), index))
            if index < len(self.schedule):
                bounds.append(self._log_recursed(self.later_ratios.tolist(), index, epsilon))
        return min(bounds)

    def _log_recursed(self, ratios: list[float], index: int, epsilon: float) -> float:
        """Return ln e at the end by the recursion, taking the Gaussian shift bound wherever it is smaller."""
        last = len(self.schedule)
        recursed_from = max(index, last - _RECURSED)
        gap = log_expm1(epsilon)
        log_e = recursion.log_one_step(self.noise, epsilon, float(self.own_ratios[index - 1]))
        for t, shifted in zip(range(index, last), self._log_shifted(index, epsilon), strict=False):
            if t >= recursed_from:
                log_e += recursion.log_one_step(self.noise, recursion.shrunk_epsilon(gap, log_e), ratios[t])
            log_e = min(log_e, shifted)
            if log_e < _FLOOR:
                return -math.inf if log_e == -math.inf else _FLOOR
            log_e = min(0.0, log_e + 2.0 * UNIT * abs(log_e))
        return log_e

    def _log_shifted(self, index: int, epsilon: float) -> Iterator[float]:
        """Yield the shift bound on ln delta of a record after each later step; inf if there is none."""
        if not self.shifts:
            yield from itertools.repeat(math.inf)
        chain = self.schedule
        steps, sigmas, factors = (
            chain.step_size.tolist(),
            (chain.noise * self.scale).tolist(),
            chain.contraction.tolist(),
        )
        square, z = (self.sensitivity / sigmas[index - 1]) ** 2, steps[index - 1] * self.sensitivity
        for t in range(index, len(chain)):
            if not (square > 0.0 and z > 0.0):
                yield math.inf
                continue
            # 1/mu^2 grows by this step's variance over the square of the shift that reaches it.
            z *= factors[t]
            square = 1.0 / (1.0 / square + (steps[t] * sigmas[t] / z) ** 2) if z > 1e-150 else 0.0
            mu = up(math.sqrt(square), 8.0 * (t - index) + 32.0)
            yield recursion.log_delta_of_log_mu(epsilon, math.log(max(mu, 1e-300)) + 1e-15)

    # --- a random stop

    def log_stopped(self, epsilon: float) -> Array:
        """Return ln sum_{t>=i} s(t) prod_{i<u<=t} B_u for every i."""
        factors, law, steps = (
            np.maximum(self.log_factors(epsilon), _FLOOR),
            self.schedule.probability,
            len(self.schedule),
        )
        with np.errstate(divide="ignore"):
            weights = np.log(np.full(steps, 1.0 / steps) if law is None else law)
        # Backwards: stopping at t or later leaves S_t = s(t) + B_{t+1} S_{t+1} of a unit at t.
        later, sums = -math.inf, np.empty(steps)
        for t in range(steps - 1, -1, -1):
            after = later + float(factors[t + 1]) if t + 1 < steps else -math.inf
            later = float(np.logaddexp(weights[t], after)) if after > -1e289 or weights[t] > -math.inf else -math.inf
            sums[t] = later
        return sums


def _quiet() -> Any:
    return np.errstate(over="ignore", under="ignore")


def _at(values: Array, index: int | None) -> float:
    """Return the value for the step ``index``; the largest if it is None."""
    return float(values.max() if index is None else values[index - 1])


def _average(values: Array, law: Any) -> float:
    """Return ln of the average of exp(values) under the law (None: uniform), rounded up."""
    if law is not None:
        with np.errstate(divide="ignore"):
            values = values + np.log(law)
    peak = float(values.max())
    if peak == -math.inf:
        return peak
    total = math.fsum(np.exp(np.maximum(values - peak, -740.0)).tolist()) / (len(values) if law is None else 1)
    value = peak + math.log(total)
    return min(0.0, value + UNIT * (4.0 * (abs(value) + abs(peak)) + 32.0))


# --- fixed order ------------------------------------------------------------------------------------------------------


@theorem(
    "stepwise.product",
    title="Product of contraction coefficients with a schedule",
    needs=BOUNDED_PASS,
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="equation 11, with the displacement factor corrected",
    formula="delta(eps) = A_i prod_{t>i} B_t, largest over i where no index is given",
    assumes=_FIXED,
    weakly_convex=True,
)
def product(run: Steps) -> Profile:
    """Every later step shrinks the record's trace by its own factor."""
    return Profile(lambda epsilon: _at(run.log_products(epsilon), run.index))


@theorem(
    "stepwise.hybrid",
    title="Least of contraction and shift with a schedule",
    needs=("schedule", *NOISY_STEP, "diameter?", "index?"),
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the non-linear recursion, restarted wherever the shift bound is smaller",
    formula="as contraction.hybrid, with each step's own r_B and noise; largest over i where no index is given",
    assumes=(FIXED_ORDER, *_USED),
    slow=True,
    weakly_convex=True,
)
def hybrid(run: Steps) -> Profile:
    """Both bounds hold for the same quantity at every step, so the smaller one may enter the next step."""
    if run.index is None:
        return Profile(lambda epsilon: float(run.log_least(epsilon).max()))
    index = run.index
    return Profile(lambda epsilon: run.log_hybrid(index, epsilon))


@theorem(
    "stepwise.stop",
    title="Random stop by any law, product of contraction coefficients, with a schedule",
    needs=BOUNDED_PASS,
    algorithms=("stop",),
    reference=PAPER,
    locator="equation 11 averaged over the stopping time",
    formula="delta(eps) = A_i sum_{t>=i} s(t) prod_{i<u<=t} B_u, largest over i where no index is given",
    assumes=(FIXED_ORDER, "the pass stops after step t with the stated probability s(t)", *_FIXED[1:]),
    weakly_convex=True,
)
def stop(run: Steps) -> Profile:
    """Stopping at a random step averages over the number of later steps, and over whether the record is used at all.

    It holds even if the stopping time is published.
    """

    def profile(epsilon: float) -> float:
        first, left = run.log_firsts(epsilon), run.log_stopped(epsilon)
        with np.errstate(invalid="ignore"):
            values = first + left + UNIT * (8.0 * len(left) + 8.0 * np.abs(left) + 8.0)
        return min(0.0, _at(np.where(np.isnan(values), -np.inf, values), run.index))

    return Profile(profile)


# --- random position --------------------------------------------------------------------------------------------------


@theorem(
    "stepwise.shuffled_product",
    title="Random position on a schedule, product of contraction coefficients",
    needs=("schedule", *NOISY_STEP, "diameter"),
    algorithms=("shuffled", "rotation"),
    reference=PAPER,
    locator="Theorem 2 with step-indexed noise, for any law of the position",
    formula="delta(eps) = sum_j q(j) A_j prod_{t>j} B_t, q uniform where no probability is given",
    assumes=(_ORDER, *_FIXED[1:]),
    weakly_convex=True,
)
def shuffled_product(run: Steps) -> Profile:
    """The product bound, averaged over the record's step."""
    return Profile(lambda epsilon: _average(run.log_products(epsilon), run.schedule.probability))


@theorem(
    "stepwise.shuffled_hybrid",
    title="Random position on a schedule, least of contraction and shift",
    needs=("schedule", *NOISY_STEP, "diameter?"),
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="average over the record's step of the least of product, recursion (up to 1000 steps) and shift bound",
    formula="delta(eps) = sum_j q(j) e(j), q uniform where no probability is given",
    assumes=(_ORDER, *_USED),
    slow=True,
    weakly_convex=True,
)
def shuffled_hybrid(run: Steps) -> Profile:
    """The sharpest bound for each step, averaged over the record's step."""
    return Profile(lambda epsilon: _average(run.log_least(epsilon), run.schedule.probability))
