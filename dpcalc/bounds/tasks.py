"""What privacy costs several losses trained on the same records, each in a pass with a random stop.

Notation as in `dpcalc.bounds.utility`, of the same paper; k losses, each with a pass of its own and the same noise. The
stop is hidden, so that a record's Renyi divergence in a pass is that of `iteration.stop_rdp`, of order ln(n)/n, and up
to about n/ln n passes need no more noise than one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.bounds import iteration
from dpcalc.bounds.cost import Cost
from dpcalc.bounds.multi_epoch import wide_up
from dpcalc.bounds.steps import NO_CLIPPING
from dpcalc.bounds.utility import PAPER, STOPPED, at_most, averaged_risk, averaged_step, gradient_norm, small_step
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics.floats import MAX, up
from dpcalc.numerics.logspace import log_exp1p, log_expm1
from dpcalc.numerics.roots import greatest, least
from dpcalc.numerics.sums import harmonic, log_sum_expm1_reciprocals
from dpcalc.registry import Requirement, bound

_ASSUMED = (
    *STOPPED, "every loss is smooth", "any start in the domain", NO_CLIPPING,
    "of each pass only the last iterate is released",
    "every loss has a pass of its own over all records, with independent noise; later losses may depend on what is "
    "released",
)  # fmt: skip
_LOGARITHM = (
    "The paper's proof bounds 1 + 1/2 + ... + 1/n by ln n, which is smaller: the statement is false for n = 1, and "
    "true for n >= 3 by another proof. It steps twice as far as its Theorem 28, which costs 2.5 instead of 2 and "
    "is within its 4."
)


def _small_budget(values: Mapping[str, Any]) -> tuple[str, str] | None:
    epsilon, log_delta = values.get("epsilon"), values.get("log_delta")
    if epsilon is None or log_delta is None or _in_range(epsilon, log_delta):
        return None
    return "is stated for 0 < epsilon < 1 and delta < 1/2", "ask tasks.stop, which has no such range"


def _in_range(epsilon: float, log_delta: float) -> bool:
    return 0.0 < epsilon < 1.0 and log_delta < -math.log(2.0)


SMALL_BUDGET = Requirement("0 < epsilon < 1, delta < 1/2", _small_budget)
_RUN = ("tasks", "dimension", "lipschitz", "radius", "epsilon", "log_delta")


# --- noise ------------------------------------------------------------------------------------------------------------


def load(*, records: int, tasks: int, log_delta: float) -> float:
    """Return q = max(2 k H_n/n, 2 ln(1/delta)), rounded up."""
    return max(wide_up((2.0, tasks, harmonic(records)), (records,), 2.0), up(-2.0 * log_delta))


def published_load(*, records: int, tasks: int, log_delta: float) -> float:
    """Return the printed q = max(2 k ln(n)/n, 2 ln(1/delta)), rounded up."""
    return max(wide_up((2.0, tasks, math.log(records)), (records,), 2.0), up(-2.0 * log_delta))


def loaded_noise_std(*, lipschitz: float, load: float, epsilon: float, log_delta: float) -> float:
    """Return 4 L sqrt(q ln(1/delta))/eps, rounded up; inf at epsilon = 0."""
    if epsilon == 0.0:
        return math.inf
    return wide_up((4.0, lipschitz, math.sqrt(load), math.sqrt(-log_delta)), (epsilon,), 8.0)


def loaded_epsilon(*, records: int, tasks: int, load: float, epsilon: float, log_delta: float) -> float:
    """Return the epsilon that `loaded_noise_std` is certified to have at the paper's order, rounded up.

    At the order 4 ln(1/delta)/eps, by the exact Renyi divergence of the random stop and Mironov's conversion: between a
    quarter and a half of the budget.
    """
    order = -4.0 * log_delta / epsilon
    sigma = loaded_noise_std(lipschitz=1.0, load=load, epsilon=epsilon, log_delta=log_delta)
    spent = iteration.stop_rdp(records=records, index=1, sensitivity=2.0, noise_std=sigma, order=order)
    return up(renyi.mironov(order=order, rdp=up(tasks * spent, 128.0), log_delta=log_delta), 16.0)


def noise_std(*, records: int, tasks: int, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return a sigma for which k random stops, or k messages of every record, are (epsilon, delta) together.

    The lesser of two: the messages composed as Gaussian mechanisms; and for one task the exact privacy profile of the
    stop, for more its Renyi divergences summed, at the order that needs the least noise.
    """
    whole = gaussian.noise_std(sensitivity=1.0, epsilon=epsilon, log_delta_target=log_delta)
    if math.isinf(whole):
        return whole
    whole = up(whole * math.sqrt(tasks), 4.0)
    if tasks == 1:
        unit = min(whole, _one(records, whole, epsilon, log_delta))
    else:
        unit = min(whole, _summed(records, tasks, epsilon, log_delta))
    return wide_up((2.0, lipschitz, unit), ())


def _one(records: int, whole: float, epsilon: float, log_delta: float) -> float:
    """Return the least sigma, in units of the sensitivity, of one random stop."""

    def excess(sigma: float) -> float:
        found = iteration.stop_log_delta(records=records, index=1, sensitivity=1.0, noise_std=sigma, epsilon=epsilon)
        return min(100.0, max(-100.0, found - log_delta))

    # The record's own step, which is the last with probability 1/n, must be as private at n delta.
    alone = log_delta + math.log(records)
    low = 1e-3 * whole
    if alone < 0.0:
        low = 0.999 * gaussian.noise_std(sensitivity=1.0, epsilon=epsilon, log_delta_target=alone)
    return least(excess, low, whole, ulps=1 << 20) if low < whole and excess(whole) <= 0.0 else whole


def _summed(records: int, tasks: int, epsilon: float, log_delta: float) -> float:
    """Return the least sigma, in units of the sensitivity, over Renyi orders; certified at the order found."""

    def at(s: float) -> float:
        return _at_order(records, tasks, epsilon, log_delta, 1.0 + math.exp(s))

    # The best order is about 1 + ln(1/delta)/epsilon, or near 1 where delta is large.
    high = math.log(1.0 - log_delta) - math.log(max(epsilon, 1e-9)) + 3.0
    high = min(max(high, 0.0), 500.0)
    grid = [-8.0 + (high + 8.0) * i / 31 for i in range(32)]
    k = min(range(32), key=lambda i: at(grid[i]))
    s = renyi.near_minimum(at, grid[max(k - 1, 0)], grid[min(k + 1, 31)], steps=20)
    order, sigma = 1.0 + math.exp(s), at(s)
    for _ in range(60):
        if math.isinf(sigma):
            break
        spent = iteration.stop_rdp(records=records, index=1, sensitivity=1.0, noise_std=sigma, order=order)
        rdp = up(tasks * spent, 4.0)
        if min(edge(order=order, rdp=rdp, log_delta=log_delta) for edge in (renyi.canonne, renyi.asoodeh)) <= epsilon:
            return sigma
        sigma *= 1.0 + 1e-9
    return math.inf


def _at_order(records: int, tasks: int, epsilon: float, log_delta: float, order: float) -> float:
    """Return about the sigma at which k random stops spend what the conversion at this order leaves of epsilon."""
    a1 = order - 1.0
    canonne = epsilon - math.log1p(-1.0 / order) + (log_delta + math.log(order)) / a1
    asoodeh = log_exp1p(math.log(order) + log_delta + log_expm1(a1 * epsilon)) / a1 if epsilon else 0.0
    left = max(canonne, asoodeh) / tasks
    if not 1e-280 < a1 * left < 1e280:
        return math.inf
    target = log_expm1(a1 * left) + math.log(records)

    def excess(x: float) -> float:
        return log_sum_expm1_reciprocals(x, records) - target

    # e^x - 1 <= the sum <= n (e^x - 1).
    low, high = 0.999 * a1 * left, 1.001 * log_exp1p(target)
    if not 0.0 < low < high < MAX:
        return math.inf
    x = greatest(excess, low, high, ulps=1 << 24) if excess(low) <= 0.0 else low
    return math.sqrt(0.5 * order * a1 / x) * (1.0 + 1e-12)


# --- bounds -----------------------------------------------------------------------------------------------------------


def _cost(noise: float, *, constant: float, factor: float, records: int, run: Mapping[str, Any]) -> Cost:
    if math.isinf(noise):
        return Cost(math.inf)
    norm = gradient_norm(lipschitz=run["lipschitz"], dimension=run["dimension"], noise_std=noise)
    step = averaged_step(radius=run["radius"], gradient_norm=norm, steps=records, factor=factor)
    risk = averaged_risk(radius=run["radius"], gradient_norm=norm, steps=records, factor=2.0)
    return Cost(wide_up((0.5, constant, risk), ()), noise, step)


def _stop_cost(*, records: int, tasks: int, epsilon: float, log_delta: float, **run: Any) -> Cost:
    sigma = noise_std(records=records, tasks=tasks, lipschitz=run["lipschitz"], epsilon=epsilon, log_delta=log_delta)
    return _cost(sigma, constant=2.0, factor=2.0, records=records, run=run)


def _loaded_cost(load: float, *, records: int, epsilon: float, log_delta: float, **run: Any) -> Cost:
    sigma = loaded_noise_std(lipschitz=run["lipschitz"], load=load, epsilon=epsilon, log_delta=log_delta)
    return _cost(sigma, constant=4.0, factor=4.0, records=records, run=run)


def _harmonic_cost(*, records: int, tasks: int, log_delta: float, **run: Any) -> Cost:
    q = load(records=records, tasks=tasks, log_delta=log_delta)
    return _loaded_cost(q, records=records, log_delta=log_delta, **run)


def _printed_cost(*, records: int, tasks: int, log_delta: float, **run: Any) -> Cost:
    q = published_load(records=records, tasks=tasks, log_delta=log_delta)
    return _loaded_cost(q, records=records, log_delta=log_delta, **run)


@bound(
    "tasks.stop",
    title="Several losses on the same records, at the least noise",
    gives="cost",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32, with the exact Renyi divergence of Theorem 26 at the best order",
    formula="2 R G/sqrt(n), G^2 = L^2 + d sigma^2, the least sigma with k RDP_stop(a) + conversion(a) <= eps for some "
    "order a, or 2L sqrt(k)/mu(eps, delta); for k = 1 with delta_stop(eps) <= delta",
    requires=(small_step(lambda **given: _stop_cost(**given).step_size or 0.0, *_RUN),),
    assumes=_ASSUMED,
    coarse=True,
)
def stop(
    *, records: int, tasks: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """Up to about n/ln n losses are trained on the same records at the cost of one.

    Args:
        records, tasks, dimension: n, k and d, >= 1.
        lipschitz, radius: L and R, > 0.
        smoothness: beta >= 0.
        epsilon, log_delta: the budget of all passes together, ln delta < 0.

    Returns:
        Cost: an upper bound on the excess risk of each (inf where the step size exceeds 2/smoothness), and the run.

    >>> cost = stop(records=10000, tasks=100, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...             log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 9)
    0.425038478
    """
    return at_most(
        _stop_cost(
            records=records, tasks=tasks, dimension=dimension, lipschitz=lipschitz, radius=radius, epsilon=epsilon,
            log_delta=log_delta,
        ),
        smoothness,
    )  # fmt: skip


@bound(
    "tasks.harmonic",
    title="Several losses on the same records",
    gives="cost",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32, corrected: ln n replaced by the harmonic number",
    formula="(4 R L/sqrt(n)) sqrt(1 + 16 d q ln(1/delta)/eps^2), q = max(2 k H_n/n, 2 ln(1/delta)), "
    "sigma = 4L sqrt(q ln(1/delta))/eps, eta = 4R/(G sqrt(n))",
    requires=(SMALL_BUDGET, small_step(lambda **given: _harmonic_cost(**given).step_size or 0.0, *_RUN)),
    assumes=_ASSUMED,
    erratum=_LOGARITHM,
)
def tasks_harmonic(
    *, records: int, tasks: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """The paper's closed form, true of any number of records.

    Args:
        records, tasks, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `stop`; epsilon < 1,
            delta < 1/2.

    Returns:
        Cost: an upper bound on the excess risk of each (inf where it does not apply), and the run.

    >>> cost = tasks_harmonic(records=10000, tasks=100, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...                       epsilon=0.5, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 9)
    16.47600629
    """
    if not _in_range(epsilon, log_delta):
        return Cost(math.inf)
    return at_most(
        _harmonic_cost(
            records=records, tasks=tasks, dimension=dimension, lipschitz=lipschitz, radius=radius, epsilon=epsilon,
            log_delta=log_delta,
        ),
        smoothness,
    )  # fmt: skip


@bound(
    "tasks.published",
    title="Several losses on the same records, as printed",
    gives="cost",
    kind="published",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 32",
    formula="as tasks.harmonic with q = max(2 k ln(n)/n, 2 ln(1/delta))",
    requires=(SMALL_BUDGET, small_step(lambda **given: _printed_cost(**given).step_size or 0.0, *_RUN)),
    assumes=_ASSUMED,
    erratum=_LOGARITHM,
)
def tasks_published(
    *, records: int, tasks: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """What the paper prints, for comparison: true for three records or more.

    Args:
        records, tasks, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `stop`; epsilon < 1,
            delta < 1/2.

    Returns:
        Cost: the printed excess risk (inf where it does not apply), and the printed run.

    >>> cost = tasks_published(records=10000, tasks=100000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...                        epsilon=0.5, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 9)
    46.601062928
    """
    if not _in_range(epsilon, log_delta):
        return Cost(math.inf)
    return at_most(
        _printed_cost(
            records=records, tasks=tasks, dimension=dimension, lipschitz=lipschitz, radius=radius, epsilon=epsilon,
            log_delta=log_delta,
        ),
        smoothness,
    )  # fmt: skip


# --- Table 1 ----------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """A row of the paper's Table 1: orders, without constants and logarithms of n and 1/delta, and no guarantee.

    Attributes:
        algorithm: what is run, one pass over the records.
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
