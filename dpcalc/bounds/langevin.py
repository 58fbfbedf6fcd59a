"""What privacy costs a strongly convex loss: excess risk of noisy gradient descent (Chourasia, Ye and Shokri 2021).

Every step uses the mean gradient of n records, whose losses are L-Lipschitz, m-strongly convex and beta-smooth on a
closed convex domain; the risk is that mean. Replacing a record moves a gradient by 2L at most. Since
m/2 |w - w*|^2 <= F(w) - F(w*) <= L |w - w*|, any start is within 2L/m of the minimiser w*, and

    E |w_K - w*|^2 <= S_K = c^(2K) (2L/m)^2 + eta^2 sigma^2 d (1 - c^(2K))/(1 - c^2)

with c = max(|1 - eta m|, |1 - eta beta|). If w* is inside the domain the gradient vanishes there and the risk is
beta/2 S_K at most. Anywhere, for eta <= 1/beta, it is (1 - eta m)/(2 eta) S_(K-1) + eta sigma^2 d at most. Any point of
the domain has 2L^2/m at most. The paper's noise is sigma_C = sigma sqrt(eta/2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcalc.bounds import noisy_gd
from dpcalc.bounds.cost import Cost
from dpcalc.bounds.multi_epoch import wide_up
from dpcalc.bounds.steps import GAUSSIAN, NO_CLIPPING, ONE_RELEASE, STRONGLY_CONVEX, decay_rate
from dpcalc.numerics.floats import down, up
from dpcalc.registry import Requirement, bound

_PAPER = "chourasia2021"
_ASSUMED = (
    "every step uses the mean gradient of all records, and is projected onto a closed convex domain",
    "every loss is Lipschitz, strongly convex and smooth on the domain",
    GAUSSIAN,
    ONE_RELEASE,
    NO_CLIPPING,
    "excess risk is that of the mean loss over the records, in expectation, from any start in the domain",
)
_INTERIOR = "the minimiser of the mean loss lies inside the domain, where its gradient vanishes"
_ERRATUM = (
    "The announcement states an order and leaves out that the minimiser is to lie inside the domain: at the boundary "
    "the gradient need not vanish, and the loss exceeds beta/2 |w - w*|^2."
)


def _enough(values: Mapping[str, Any]) -> tuple[str, str] | None:
    n, d, epsilon, log_delta = (values.get(name) for name in ("records", "dimension", "epsilon", "log_delta"))
    if epsilon is None or log_delta is None or n is None or d is None:
        return None
    if n * epsilon > 0.0 and math.log(n * epsilon) > 0.5 * math.log(4.0 * d * -log_delta):
        return None
    least = math.sqrt(4.0 * d * -log_delta) / epsilon if epsilon else math.inf
    return (
        "its number of steps is positive only where (records epsilon)^2 > 4 dimension ln(1/delta)",
        f"use --records above {least:.6g}, or langevin.shifted" if least < 1e15 else "use a larger --epsilon",
    )


ENOUGH_RECORDS = Requirement("(records epsilon)^2 > 4 dimension ln(1/delta)", _enough)


_EMPIRICAL = "empirical_excess_risk"


@bound(
    "langevin.explicit",
    title="Noisy gradient descent at the stated noise, with explicit constants",
    gives="cost",
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 3, its constants computed",
    formula="8 beta d L^2 (2 eps + 5 ln(1/delta))/(m eps n)^2, at eta = m/(2 beta^2), "
    "sigma_C^2 = 8 L^2 (eps + 2 ln(1/delta))/(m eps^2 n^2), ceil((2 beta^2/m^2) ln(n^2 eps^2/(4 d ln(1/delta)))) steps",
    requires=(STRONGLY_CONVEX, ENOUGH_RECORDS),
    assumes=(*_ASSUMED, _INTERIOR),
    erratum=_ERRATUM,
)
def explicit(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, strong_convexity: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """At the stated noise, step size and number of steps the excess risk is of order d/(eps n)^2, with this constant.

    Args:
        records, dimension: n and d, >= 1.
        lipschitz, smoothness, strong_convexity: L > 0 and beta >= m > 0.
        epsilon, log_delta: the budget, ln delta < 0.

    Returns:
        Cost: an upper bound on the excess risk (inf where no number of steps is stated), and the run.

    >>> cost = explicit(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0, epsilon=1.0,
    ...                 log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 14), cost.steps
    (0.00953034037198, 62)
    """
    return _stated(
        explicit_excess, records=records, dimension=dimension, lipschitz=lipschitz, smoothness=smoothness,
        strong_convexity=strong_convexity, epsilon=epsilon, log_delta=log_delta,
    )  # fmt: skip


@bound(
    "langevin.iterated",
    title="Noisy gradient descent at the stated noise",
    gives="cost",
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 3, its recursion solved",
    formula="(beta/2) ((1-x)^(2K) 4 L^2/m^2 + 2 d sigma_C^2/(m (2-x))), x = eta m, K and noise as in langevin.explicit",
    requires=(STRONGLY_CONVEX, ENOUGH_RECORDS),
    assumes=(*_ASSUMED, _INTERIOR),
    erratum=_ERRATUM,
)
def iterated(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, strong_convexity: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """The same run as in `explicit`, its distance to the minimiser followed step by step.

    Args:
        records, dimension, lipschitz, smoothness, strong_convexity, epsilon, log_delta: as in `explicit`.

    Returns:
        Cost: an upper bound on the excess risk, never above that of `explicit`, and the run.

    >>> cost = iterated(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0, epsilon=1.0,
    ...                 log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 14)
    0.00205046361288
    """
    return _stated(
        iterated_excess, records=records, dimension=dimension, lipschitz=lipschitz, smoothness=smoothness,
        strong_convexity=strong_convexity, epsilon=epsilon, log_delta=log_delta,
    )  # fmt: skip


@bound(
    "langevin.shifted",
    title="Noisy gradient descent at the least noise, minimiser inside",
    gives="cost",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="Theorem 3 of Chourasia, Ye and Shokri 2021 with the noise of shifted interpolation",
    formula="(beta/2) S_K = A B/(A + B), A = 2 beta L^2/m^2, B = 2 beta d L^2/(n m mu(eps, delta))^2, for any K and "
    "eta <= 2/(beta + m) with (1 - eta m)^K = B/(A + B), sigma of noisy_gd.contraction for K steps",
    requires=(STRONGLY_CONVEX,),
    assumes=(*_ASSUMED, _INTERIOR),
)
def shifted(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, strong_convexity: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """With the exact noise of K hidden steps, less progress needs less of it; what balances both is the same for all
    step sizes, and the fewest steps are taken.

    Args:
        records, dimension, lipschitz, smoothness, strong_convexity, epsilon, log_delta: as in `explicit`.

    Returns:
        Cost: an upper bound on the excess risk, and the run: any number of records will do.

    >>> cost = shifted(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0, epsilon=1.0,
    ...                log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12), cost.steps
    (0.000556627027, 9)
    """
    return _best(
        _inside, down(2.0 / (smoothness + strong_convexity), 4.0), records=records, dimension=dimension,
        lipschitz=lipschitz, smoothness=smoothness, strong_convexity=strong_convexity, epsilon=epsilon,
        log_delta=log_delta,
    )  # fmt: skip


@bound(
    "langevin.boundary",
    title="Noisy gradient descent at the least noise, minimiser anywhere",
    gives="cost",
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="proximal step inequality, with the noise of shifted interpolation",
    formula="eta sigma^2 d + (1 - eta m)/(2 eta) S_(K-1) at eta = 1/beta, sigma of noisy_gd.contraction for K steps, "
    "the best K found; or a smaller eta",
    requires=(STRONGLY_CONVEX,),
    assumes=_ASSUMED,
    unsolved=("smoothness", "strong_convexity"),
)
def boundary(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, strong_convexity: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """Where the minimiser may lie on the boundary of the domain, one more step is spent on descent instead of
    smoothness at the minimiser.

    Args:
        records, dimension, lipschitz, smoothness, strong_convexity, epsilon, log_delta: as in `explicit`.

    Returns:
        Cost: an upper bound on the excess risk, and the run.

    >>> cost = boundary(records=1000, dimension=10, lipschitz=1.0, smoothness=2.0, strong_convexity=1.0, epsilon=1.0,
    ...                 log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12), cost.steps
    (0.001113256389, 13)
    """
    return _best(
        _anywhere, down(1.0 / smoothness, 4.0), records=records, dimension=dimension, lipschitz=lipschitz,
        smoothness=smoothness, strong_convexity=strong_convexity, epsilon=epsilon, log_delta=log_delta,
    )  # fmt: skip


@bound(
    "langevin.least_order",
    title="What no private algorithm can beat, in order",
    gives="cost",
    kind="asymptotic",
    algorithms=("noisy-gd",),
    reference=_PAPER,
    locator="Theorem 4, from Bassily, Smith and Thakurta 2014",
    formula="min(1, d/(eps n)^2), up to a constant that is not stated",
    assumes=("some 1-Lipschitz, 1-strongly convex losses; delta = o(1/n)",),
    erratum="An order and no bound: its constant is not known. The upper bounds exceed it by a factor ln(1/delta), "
    "which the announcement calls constant.",
)
def least_order(*, records: int, dimension: int, epsilon: float, log_delta: float) -> Cost:
    """Every (epsilon, delta)-private algorithm has an excess risk of at least this order on some losses.

    Args:
        records, dimension, epsilon, log_delta: as in `explicit`.

    Returns:
        Cost: the order, with the constant 1.

    >>> least_order(records=1000, dimension=10, epsilon=1.0, log_delta=-11.5).excess_risk
    1e-05
    """
    spent = epsilon * records
    return Cost(min(1.0, dimension / spent / spent) if spent > 0.0 else 1.0, quantity=_EMPIRICAL)


# --- the stated run ---------------------------------------------------------------------------------------------------


def variance(*, lipschitz: float, strong_convexity: float, records: int, epsilon: float, log_delta: float) -> float:
    """Return sigma_C^2 = 8 L^2 (eps + 2 ln(1/delta))/(m eps^2 n^2), rounded up: for any number of steps.

    At the order 1 + 2 ln(1/delta)/eps half of epsilon goes to the Renyi divergence, half to its conversion.
    """
    return wide_up(
        (8.0, lipschitz, lipschitz, epsilon - 2.0 * log_delta),
        (strong_convexity, epsilon, epsilon, records, records),
        8.0,
    )


def steps_needed(
    *, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float, log_delta: float
) -> float:
    """Return (2 beta^2/m^2) ln(n^2 eps^2/(4 d ln(1/delta))), a real number; -inf at epsilon = 0."""
    if epsilon == 0.0:
        return -math.inf
    gain = 2.0 * (math.log(records) + math.log(epsilon)) - math.log(4.0 * dimension * -log_delta)
    return 2.0 * (smoothness / strong_convexity) ** 2 * gain


def explicit_excess(
    *, lipschitz: float, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float,
    log_delta: float,
) -> float:  # fmt: skip
    """Return 8 beta d L^2 (2 eps + 5 ln(1/delta))/(m eps n)^2, rounded up."""
    return wide_up(
        (8.0, smoothness, dimension, lipschitz, lipschitz, 2.0 * epsilon - 5.0 * log_delta),
        (strong_convexity, strong_convexity, epsilon, epsilon, records, records),
        8.0,
    )


def iterated_excess(
    *, lipschitz: float, smoothness: float, strong_convexity: float, records: int, dimension: int, epsilon: float,
    log_delta: float,
) -> float:  # fmt: skip
    """Return (beta/2) ((1-x)^(2K) 4 L^2/m^2 + 2 d sigma_C^2/(m (2-x))), x = m^2/(2 beta^2), K = ceil(steps_needed)."""
    spread = variance(
        lipschitz=lipschitz, strong_convexity=strong_convexity, records=records, epsilon=epsilon, log_delta=log_delta
    )
    steps = _count(
        steps_needed(
            smoothness=smoothness, strong_convexity=strong_convexity, records=records, dimension=dimension,
            epsilon=epsilon, log_delta=log_delta,
        )
    )  # fmt: skip
    x = 0.5 * (strong_convexity / smoothness) ** 2
    left = math.exp(2.0 * steps * math.log1p(-x))
    start = wide_up(
        (2.0, smoothness, lipschitz, lipschitz, left), (strong_convexity, strong_convexity), 8.0 * steps * x
    )
    # The noise is reported rounded up, and so this is of a little more than its exact variance.
    return up(start + wide_up((smoothness, dimension, spread), (strong_convexity, 2.0 - x), 48.0), 8.0)


def _stated(excess: Callable[..., float], *, log_delta: float, **given: Any) -> Cost:
    n, d, epsilon, beta, m = (
        given[name] for name in ("records", "dimension", "epsilon", "smoothness", "strong_convexity")
    )
    needed = steps_needed(
        smoothness=beta, strong_convexity=m, records=n, dimension=d, epsilon=epsilon, log_delta=log_delta
    )
    if not 0.0 < needed < math.inf:
        return Cost(math.inf, quantity=_EMPIRICAL)
    spread = variance(lipschitz=given["lipschitz"], strong_convexity=m, records=n, epsilon=epsilon, log_delta=log_delta)
    return Cost(
        excess(**given, log_delta=log_delta),
        wide_up((2.0, beta, math.sqrt(spread)), (math.sqrt(m),), 8.0),
        0.5 * m / beta / beta,
        _count(needed),
        quantity=_EMPIRICAL,
    )


def _count(needed: float) -> int:
    """Return a whole number of steps that is enough, whatever the rounding."""
    return max(1, math.ceil(needed * (1.0 + 2.0**-48)))


# --- the best number of steps -----------------------------------------------------------------------------------------


def _best(excess: Callable[..., float], step_size: float, *, epsilon: float, log_delta: float, **given: Any) -> Cost:
    """Return the cost at the number of steps with the least excess among those near the balance of its two parts."""
    n, d, lip, m, beta = (
        given[name] for name in ("records", "dimension", "lipschitz", "strong_convexity", "smoothness")
    )

    def at(steps: int, eta: float = step_size) -> Cost:
        sigma = noisy_gd.contraction_noise_std(
            records=n, steps=steps, sensitivity=2.0 * lip, step_size=eta, smoothness=beta, strong_convexity=m,
            epsilon=epsilon, log_delta=log_delta,
        )  # fmt: skip
        risk = excess(
            steps=steps, step_size=eta, noise_std=sigma, rate=decay_rate(eta, beta, m), dimension=d,
            reach=up(2.0 * lip / m), strong_convexity=m, smoothness=beta,
        )  # fmt: skip
        return Cost(risk, sigma, eta, steps, quantity=_EMPIRICAL)

    rate, endless = decay_rate(step_size, beta, m), at(10**15)
    if rate <= 0.0 or endless.noise_std is None or math.isinf(endless.noise_std):
        return endless
    start = excess(
        steps=1, step_size=step_size, noise_std=0.0, rate=0.0, dimension=d, reach=2.0 * lip / m, strong_convexity=m,
        smoothness=beta,
    )  # fmt: skip
    # With q = c^K the risk is start q^2 + endless (1 - q)^2, whatever eta, if the minimiser is inside.
    share = endless.excess_risk / (start + endless.excess_risk) if start > 0.0 else 0.5
    balance = min(1e14, max(1.0, -math.log(max(share, 1e-300)) / rate))
    near = {max(1, round(balance * factor) + more) for factor in (0.8, 0.9, 1.0, 1.1, 1.3) for more in (-1, 0, 1, 2)}
    found = [at(steps) for steps in sorted(near)]
    fewest = max(1, math.ceil(balance))
    eta = min(step_size, -math.expm1(math.log(max(share, 1e-300)) / fewest) / m)
    if eta > 0.0:
        found.insert(0, at(fewest, eta))
    return min(found, key=lambda cost: cost.excess_risk)


def squared_distance(
    *, steps: int, step_size: float, noise_std: float, rate: float, dimension: int, reach: float
) -> float:
    """Return S_K = c^(2K) reach^2 + eta^2 sigma^2 d (1 - c^(2K))/(1 - c^2) for c = exp(-rate), rounded up."""
    if steps == 0:
        return wide_up((reach, reach), ())
    exponent = 2.0 * rate * steps
    left = math.exp(-exponent)
    kept = math.expm1(-exponent) / math.expm1(-2.0 * rate) if rate > 1e-290 else float(steps)
    old = wide_up((left, reach, reach), (), 4.0 * min(exponent, 1e4) + 4.0)
    fresh = wide_up((step_size, step_size, noise_std, noise_std, dimension, kept), (), 16.0)
    return up(old + fresh, 2.0)


def _inside(*, smoothness: float, strong_convexity: float, **run: Any) -> float:
    """Return beta/2 S_K, rounded up."""
    del strong_convexity
    return wide_up((0.5, smoothness, squared_distance(**run)), (), 4.0)


def _anywhere(*, smoothness: float, strong_convexity: float, **run: Any) -> float:
    """Return eta sigma^2 d + (1 - eta m)/(2 eta) S_(K-1), rounded up; for eta <= 1/beta."""
    del smoothness
    eta, steps = run["step_size"], run["steps"]
    before = squared_distance(**{**run, "steps": steps - 1})
    kept = up(max(0.0, 1.0 - eta * strong_convexity), 4.0)
    fresh = wide_up((eta, run["noise_std"], run["noise_std"], run["dimension"]), (), 4.0)
    return up(fresh + wide_up((kept, before), (2.0, eta), 8.0), 4.0)
