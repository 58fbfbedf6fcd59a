"""The cost of privacy for several losses on the same records, each trained in a pass with a random stop.

Notation as in `utility`, after the same paper. There are k losses, each with its own pass and the same noise. The stop
is hidden, so a record's Renyi divergence in one pass is that of `iteration.stop_rdp`, of order ln(n)/n. Up to about
n/ln n passes therefore need no more noise than one.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

from dpcalc.notions import gaussian, renyi
from dpcalc.notions.conversions import NO_BOUND, Risk
from dpcalc.numerics.floats import MAX, log_exp1p, log_expm1, quotient_up, up
from dpcalc.numerics.roots import greatest, least, near_minimum
from dpcalc.numerics.sums import harmonic_up, log_sum_expm1_reciprocals_up
from dpcalc.theorems.conditions import NO_CLIPPING
from dpcalc.theorems.one_pass import iteration, random_stop
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.risk.averaging import OnBall, averaged_risk, require_short_step, short_step_condition
from dpcalc.theorems.risk.utility import PAPER, STOPPED

_ASSUMED = (
    *STOPPED, "every loss is smooth", "any start in the domain", NO_CLIPPING,
    "only the last iterate of each pass is released",
    "every loss has its own pass over all records, with independent noise; later losses may depend on what is released",
)  # fmt: skip
_LOGARITHM = (
    "The paper's proof bounds 1 + 1/2 + ... + 1/n by ln n, which is smaller: the statement is false for n = 1, and "
    "true for n >= 3 by another proof. It steps twice as far as its Theorem 28, which costs 2.5 instead of 2 and "
    "is within its 4."
)


def _is_small(epsilon: float, log_delta: float) -> bool:
    return 0.0 < epsilon < 1.0 and log_delta < -math.log(2.0)


SMALL_BUDGET = requires(
    "0 < epsilon < 1, delta < 1/2",
    lambda run: run.epsilon is None or run.log_delta is None or _is_small(run.epsilon, run.log_delta),
    Unmet("is stated for 0 < epsilon < 1 and delta < 1/2", "ask tasks.stop, which has no such range"),
)


# --- the setting ------------------------------------------------------------------------------------------------------


TASKS = ("records", "tasks", "dimension", "lipschitz", "smoothness", "radius", "epsilon", "log_delta")


class Tasks(OnBall):
    """Several smooth losses, each trained in a pass with a random stop over the same records."""

    @functools.cached_property
    def least_noise(self) -> float:
        """The least sigma of `Passes`, for a sensitivity of 2L, rounded up."""
        unit = Passes(self.records, self.tasks, self.epsilon, self.log_delta).least_noise
        return quotient_up((2.0, self.lipschitz, unit), ())

    @property
    def load(self) -> float:
        """q = max(2 k H_n/n, 2 ln(1/delta)), rounded up."""
        harmonic = harmonic_up(self.records)
        return max(quotient_up((2.0, self.tasks, harmonic), (self.records,), 2.0), up(-2.0 * self.log_delta))

    @property
    def printed_load(self) -> float:
        """The printed q = max(2 k ln(n)/n, 2 ln(1/delta)), rounded up."""
        return max(
            quotient_up((2.0, self.tasks, math.log(self.records)), (self.records,), 2.0), up(-2.0 * self.log_delta)
        )

    def loaded_noise(self, load: float) -> float:
        """Return sigma = 4 L sqrt(q ln(1/delta))/eps, rounded up; inf at epsilon = 0."""
        if self.epsilon == 0.0:
            return math.inf
        return quotient_up((4.0, self.lipschitz, math.sqrt(load), math.sqrt(-self.log_delta)), (self.epsilon,), 8.0)

    @property
    def budget_is_small(self) -> bool:
        """Whether the closed forms cover this budget."""
        return _is_small(self.epsilon, self.log_delta)

    def stopped(self, noise_std: float, *, constant: float, factor: float) -> Risk:
        """Return the risk ``constant`` R G/sqrt(n) of a random stop at the step size ``factor`` R/(G sqrt(n))."""
        if math.isinf(noise_std):
            return NO_BOUND
        norm = self.noisy_norm(noise_std)
        risk = quotient_up((0.5, constant, averaged_risk(self.radius, norm, self.records)), ())
        return Risk(risk, noise_std, self.step(factor, norm, self.records))


def _at_least_noise(run: Tasks) -> Risk:
    return run.stopped(run.least_noise, constant=2.0, factor=2.0)


def _at_load(run: Tasks) -> Risk:
    return run.stopped(run.loaded_noise(run.load), constant=4.0, factor=4.0)


def _at_printed_load(run: Tasks) -> Risk:
    return run.stopped(run.loaded_noise(run.printed_load), constant=4.0, factor=4.0)


# --- the least noise --------------------------------------------------------------------------------------------------


class Passes(NamedTuple):
    """k passes over n records with a random stop in each, and one budget for all of them.

    Noise is in units of the sensitivity.
    """

    records: int
    tasks: int
    epsilon: float
    log_delta: float

    @property
    def least_noise(self) -> float:
        """The least sigma, rounded up, at which k random stops, or k messages of every record, have the budget.

        It is the lesser of two values. One composes the messages as Gaussian mechanisms. The other uses the exact
        privacy profile of the stop for one task, and the sum of its Renyi divergences at the best order for more.
        """
        message = gaussian.noise_std(sensitivity=1.0, epsilon=self.epsilon, log_delta_target=self.log_delta)
        if math.isinf(message):
            return message
        messages = up(message * math.sqrt(self.tasks), 4.0)
        return min(messages, self.noise_by_profile(messages) if self.tasks == 1 else self.noise_by_renyi())

    def single_pass(self, sigma: float) -> iteration.SinglePass:
        """Return one of the passes, for its first record, which has the least privacy."""
        return iteration.SinglePass(records=self.records, index=1, sensitivity=1.0, noise_std=sigma)

    def noise_by_profile(self, message: float) -> float:
        """Return the least sigma of one random stop, at most ``message``, the sigma of a message."""

        def excess(sigma: float) -> float:
            return min(
                100.0, max(-100.0, random_stop.stop(self.single_pass(sigma)).profile(self.epsilon) - self.log_delta)
            )

        # The record's own step, which is the last with probability 1/n, must be as private at n delta.
        own_log_delta = self.log_delta + math.log(self.records)
        low = 1e-3 * message
        if own_log_delta < 0.0:
            low = 0.999 * gaussian.noise_std(sensitivity=1.0, epsilon=self.epsilon, log_delta_target=own_log_delta)
        return least(excess, low, message, ulps=1 << 20) if low < message and excess(message) <= 0.0 else message

    def noise_by_renyi(self) -> float:
        """Return about the least sigma over Renyi orders, checked at the order chosen."""

        def at(s: float) -> float:
            return self.noise_at_order(1.0 + math.exp(s))

        # The best order is about 1 + ln(1/delta)/epsilon, or near 1 where delta is large.
        high = math.log(1.0 - self.log_delta) - math.log(max(self.epsilon, 1e-9)) + 3.0
        high = min(max(high, 0.0), 500.0)
        grid = [-8.0 + (high + 8.0) * i / 31 for i in range(32)]
        k = min(range(32), key=lambda i: at(grid[i]))
        s = near_minimum(at, grid[max(k - 1, 0)], grid[min(k + 1, 31)], steps=20)
        return self.raised_until_private(1.0 + math.exp(s), at(s))

    def raised_until_private(self, order: float, sigma: float) -> float:
        """Return the first sigma from this one upwards that keeps the budget at this order; inf if none nearby does."""
        for _ in range(60):
            if math.isinf(sigma):
                break
            rdp = up(self.tasks * random_stop.stop_rdp(self.single_pass(sigma)).curve(order), 4.0)
            conversions = (renyi.canonne, renyi.asoodeh)
            if min(convert(order=order, rdp=rdp, log_delta=self.log_delta) for convert in conversions) <= self.epsilon:
                return sigma
            sigma *= 1.0 + 1e-9
        return math.inf

    def noise_at_order(self, order: float) -> float:
        """Return about the sigma at which k random stops use up the epsilon that the conversion at this order
        leaves."""
        a1, epsilon, log_delta = order - 1.0, self.epsilon, self.log_delta
        canonne = epsilon - math.log1p(-1.0 / order) + (log_delta + math.log(order)) / a1
        asoodeh = log_exp1p(math.log(order) + log_delta + log_expm1(a1 * epsilon)) / a1 if epsilon else 0.0
        left = max(canonne, asoodeh) / self.tasks
        if not 1e-280 < a1 * left < 1e280:
            return math.inf
        target = log_expm1(a1 * left) + math.log(self.records)

        def excess(x: float) -> float:
            return log_sum_expm1_reciprocals_up(x, self.records) - target

        # e^x - 1 <= the sum <= n (e^x - 1).
        low, high = 0.999 * a1 * left, 1.001 * log_exp1p(target)
        if not 0.0 < low < high < MAX:
            return math.inf
        x = greatest(excess, low, high, ulps=1 << 24) if excess(low) <= 0.0 else low
        return math.sqrt(0.5 * order * a1 / x) * (1.0 + 1e-12)


# --- theorems ---------------------------------------------------------------------------------------------------------


@theorem(
    "tasks.stop",
    title="Several losses on the same records, at the least noise",
    needs=TASKS,
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32, with the exact Renyi divergence of Theorem 26 at the best order",
    formula="2 R G/sqrt(n), G^2 = L^2 + d sigma^2, the least sigma with k RDP_stop(a) + conversion(a) <= eps for some "
    "order a, or 2L sqrt(k)/mu(eps, delta); for k = 1 with delta_stop(eps) <= delta",
    conditions=(short_step_condition(Tasks, TASKS, _at_least_noise),),
    assumes=_ASSUMED,
    slow=True,
)
def stop(run: Tasks) -> Risk:
    """Up to about n/ln n losses are trained on the same records with the noise of one.

    The bound is on the risk of each loss.

    >>> run = Tasks(records=10000, tasks=100, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...             log_delta=math.log(1e-5))
    >>> round(stop(run).excess_risk, 9)
    0.425038478
    """
    return require_short_step(_at_least_noise(run), run.smoothness)


@theorem(
    "tasks.harmonic",
    title="Several losses on the same records",
    needs=TASKS,
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32, corrected: ln n replaced by the harmonic number",
    formula="(4 R L/sqrt(n)) sqrt(1 + 16 d q ln(1/delta)/eps^2), q = max(2 k H_n/n, 2 ln(1/delta)), "
    "sigma = 4L sqrt(q ln(1/delta))/eps, eta = 4R/(G sqrt(n))",
    conditions=(SMALL_BUDGET, short_step_condition(Tasks, TASKS, _at_load)),
    assumes=_ASSUMED,
    erratum=_LOGARITHM,
)
def tasks_harmonic(run: Tasks) -> Risk:
    """The paper's closed form, corrected so that it holds for any number of records.

    >>> run = Tasks(records=10000, tasks=100, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=0.5,
    ...             log_delta=math.log(1e-5))
    >>> round(tasks_harmonic(run).excess_risk, 9)
    16.47600629
    """
    return require_short_step(_at_load(run), run.smoothness) if run.budget_is_small else NO_BOUND


@theorem(
    "tasks.published",
    title="Several losses on the same records, as printed",
    needs=TASKS,
    kind="published",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32",
    formula="as tasks.harmonic with q = max(2 k ln(n)/n, 2 ln(1/delta))",
    conditions=(SMALL_BUDGET, short_step_condition(Tasks, TASKS, _at_printed_load)),
    assumes=_ASSUMED,
    erratum=_LOGARITHM,
)
def published(run: Tasks) -> Risk:
    """The paper's printed bound, for comparison: true for three records or more.

    >>> run = Tasks(records=10000, tasks=100000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=0.5,
    ...             log_delta=math.log(1e-5))
    >>> round(published(run).excess_risk, 9)
    46.601062928
    """
    return require_short_step(_at_printed_load(run), run.smoothness) if run.budget_is_small else NO_BOUND


# --- Table 1 ----------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """A row of the paper's Table 1: orders, without constants and logarithms of n and 1/delta, and no guarantee.

    Attributes:
        algorithm: the algorithm, one pass over the records.
        formula: excess risk for one and for several tasks.
        one_task, many_tasks: those orders, at R = L = 1.
        local_epsilon: the order of the epsilon of a record's own message; inf for none.
    """

    algorithm: str
    formula: str
    one_task: float
    many_tasks: float
    local_epsilon: float


def comparison(*, records: int, tasks: int, dimension: int, epsilon: float) -> tuple[Order, ...]:
    """Return the paper's Table 1, computed: orders of excess population risk after one pass, for k <= n tasks.

    Args:
        records, tasks, dimension: n, k <= n and d, >= 1.
        epsilon: > 0.

    >>> [round(row.many_tasks, 6) for row in comparison(records=10000, tasks=25, dimension=4, epsilon=0.5)]
    [0.028284, 0.2, 0.2, 0.04]
    """
    sampled = math.sqrt(dimension / epsilon / records)
    plain = math.sqrt(dimension / records) / epsilon
    summed = plain * math.sqrt(tasks)
    squared = "sqrt(d/(eps^2 n)), sqrt(d k/(eps^2 n))"
    return (
        Order("noisy SGD with sampling", "sqrt(d/(eps n)) for both", sampled, sampled, float(records)),
        Order("noisy SGD", squared, plain, summed, epsilon),
        Order("output perturbation", squared, plain, summed, math.inf),
        Order("random stop with hidden iterates", "sqrt(d/(eps^2 n)) for both", plain, plain, epsilon),
    )
