"""Contraction and shift bounds for steps that differ: a step size, noise and displacement for every step of a pass.

Arrays have shape (T,). ``scale`` multiplies the chain's relative noise. Slack for rounding is added at every stage.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dpcalc.bounds import recursion
from dpcalc.bounds.contraction import DISPLACED, DOMAIN, FRESH, LIPSCHITZ_STEPS, PAPER
from dpcalc.bounds.steps import FIXED_ORDER, ONE_RELEASE
from dpcalc.numerics.floats import UNIT, up
from dpcalc.numerics.logspace import log_expm1
from dpcalc.registry import bound
from dpcalc.spec.chain import Chain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_RECURSED = 100_000  # at most so many later steps go through the non-linear recursion one by one
_ALL_PAIRS = 1000  # at most so many steps are recursed for every position at once
_STEPS = "step sizes, noise and displacement factors as scheduled, chosen without looking at the data"


def log_one_steps(noise: str, epsilon: Any, ratios: Any) -> Array:
    """Return upper bounds on ln h(eps, r), elementwise."""
    import numpy as np

    if noise == "gaussian":
        from dpcalc.numerics.arrays import log_hockey_sticks

        zero: Array = np.where(ratios == 0.0, -1e290, log_hockey_sticks(epsilon, np.maximum(ratios, 1e-100)))
        return zero
    exponent = np.minimum(0.5 * (epsilon - np.asarray(ratios)), 0.0)
    with np.errstate(divide="ignore"):
        value = np.where(exponent > -0.7, np.log(-np.expm1(exponent)), np.log1p(-np.exp(exponent)))
    relative = np.where(value > -0.7, 8.0 + np.minimum(-exponent, 750.0), 4.0)
    with np.errstate(invalid="ignore"):
        value = value + UNIT * (relative * -value + np.where(value > -0.7, 0.0, 8.0))
    return np.where(np.isnan(value), -np.inf, np.minimum(value, 0.0))


def _own_ratios(chain: Chain, sensitivity: float, scale: float) -> Array:
    with _quiet():
        found: Array = sensitivity / (chain.noise * scale) * (1.0 + 8.0 * UNIT)
    return found


def _later_ratios(chain: Chain, diameter: float, scale: float) -> Array:
    displacement: Any = chain.displacement
    with _quiet():
        found: Array = displacement * diameter / (chain.step_size * chain.noise * scale) * (1.0 + 12.0 * UNIT)
    return found


def _quiet() -> Any:
    import numpy as np

    return np.errstate(over="ignore", under="ignore")


def log_products(
    chain: Chain, *, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float
) -> Array:
    """Return ln(A_j prod_{t>j} B_t) for every position j, rounded up."""
    import numpy as np

    first = log_one_steps(noise, epsilon, _own_ratios(chain, sensitivity, scale))
    factors = log_one_steps(noise, epsilon, _later_ratios(chain, diameter, scale))
    later = np.concatenate((np.cumsum(factors[::-1])[::-1][1:], [0.0]))
    shrink = 1.0 - 2.0 * UNIT * (len(first) + 4)
    return np.minimum(0.0, np.maximum((first + later * shrink) * (1.0 - 2.0 * UNIT), -np.inf))


def log_shifts(chain: Chain, *, sensitivity: float, scale: float, diameter: float | None, epsilon: float) -> Array:
    """Return the Gaussian shift bound on ln delta for every position, rounded up; Lipschitz maps."""
    import numpy as np

    from dpcalc.bounds.scheduled import remaining_variance
    from dpcalc.numerics.arrays import log_hockey_sticks

    noise = chain.noise * (scale * (1.0 - 4.0 * UNIT))
    spread = remaining_variance(chain.step_size, noise, chain.contraction)
    with np.errstate(all="ignore"):
        mu = chain.step_size * sensitivity / np.sqrt(spread)
        if diameter is not None:
            # Whatever was done by step tau, the diameter is what the noise behind it has to hide.
            behind = np.append(diameter * chain.contraction[1:] / np.sqrt(spread[1:]), np.inf)
            mu = np.minimum(mu, np.minimum.accumulate(behind[::-1])[::-1])
    mu = np.where(np.isnan(mu), np.inf, mu) * (1.0 + UNIT * (8.0 * len(mu) + 64.0))
    return log_hockey_sticks(epsilon, np.clip(mu, 1e-100, 1e100))


def log_recursions(
    chain: Chain, *, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float
) -> Array:
    """Return the non-linear recursion's ln e for every position at once; O(T^2)."""
    import numpy as np

    first = log_one_steps(noise, epsilon, _own_ratios(chain, sensitivity, scale))
    ratios = _later_ratios(chain, diameter, scale)
    gap = log_expm1(epsilon)
    value = np.maximum(first, -1e290)
    for t in range(1, len(first)):
        x = gap - value[:t]
        error = UNIT * (8.0 * (1.0 + abs(gap)) + 4.0 * np.abs(value[:t]) + 2.0 * np.abs(x)) if gap > -np.inf else 0.0
        shrunk = np.logaddexp(0.0, x)
        shrunk = np.maximum(0.0, (shrunk - error * np.minimum(1.0, 1.5 * shrunk)) * (1.0 - 4.0 * UNIT))
        value[:t] = np.maximum((value[:t] + log_one_steps(noise, shrunk, ratios[t])) * (1.0 - 4.0 * UNIT), -1e290)
    return np.minimum(value, 0.0)


def hybrid_at(
    chain: Chain, index: int, *, sensitivity: float, noise: str, scale: float, diameter: float | None, epsilon: float
) -> float:
    """Return the least of product, shift and non-linear recursion for the position ``index``, rounded up."""
    known = [0.0]
    bounded = diameter is not None and chain.displacement is not None
    tail = max(index, len(chain) - _RECURSED)
    if bounded:
        assert diameter is not None
        products = log_products(
            chain, sensitivity=sensitivity, noise=noise, scale=scale, diameter=diameter, epsilon=epsilon
        )
        known.append(float(products[index - 1]))
    if noise == "gaussian" and chain.lipschitz:
        shifts = log_shifts(chain, sensitivity=sensitivity, scale=scale, diameter=diameter, epsilon=epsilon)
        known.append(float(shifts[index - 1]))
    if bounded and index < len(chain):
        assert diameter is not None
        known.append(_recursed(chain, index, tail, sensitivity, noise, scale, diameter, epsilon))
    elif not bounded:
        own = _own_ratios(chain, sensitivity, scale)[index - 1]
        known.append(recursion.log_one_step(noise, epsilon, float(own)))
    return min(known)


def _recursed(
    chain: Chain, index: int, tail: int, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float
) -> float:
    """Return ln e at the end by the recursion, taking the Gaussian shift bound wherever it is smaller."""
    own = float(_own_ratios(chain, sensitivity, scale)[index - 1])
    log_e = recursion.log_one_step(noise, epsilon, own)
    ratios = _later_ratios(chain, diameter, scale).tolist()
    steps, sigmas, factors = chain.step_size.tolist(), (chain.noise * scale).tolist(), chain.contraction.tolist()
    shifts = noise == "gaussian" and chain.lipschitz
    gap, lasting = log_expm1(epsilon), (sensitivity / sigmas[index - 1]) ** 2
    z = steps[index - 1] * sensitivity
    for t in range(index, len(chain)):
        if t >= tail:
            log_e += recursion.log_one_step(noise, recursion.shrunk_epsilon(gap, log_e), ratios[t])
        if shifts and lasting > 0.0 and z > 0.0:
            # 1/mu^2 grows by this step's variance over the square of the shift that reaches it.
            z *= factors[t]
            grown = 1.0 / lasting + (steps[t] * sigmas[t] / z) ** 2 if z > 1e-150 else math.inf
            lasting = 1.0 / grown
            mu = up(math.sqrt(lasting), 8.0 * (t - index) + 32.0)
            log_e = min(log_e, recursion.log_delta_of_log_mu(epsilon, math.log(max(mu, 1e-300)) + 1e-15))
        if log_e < -1e290:
            return -math.inf if log_e == -math.inf else -1e290
        log_e = min(0.0, log_e + 2.0 * UNIT * abs(log_e))
    return log_e


def hybrid_all(
    chain: Chain, *, sensitivity: float, noise: str, scale: float, diameter: float | None, epsilon: float
) -> Array:
    """Return the least of product, shift and (up to 1000 steps) recursion for every position, rounded up."""
    import numpy as np

    found = [log_one_steps(noise, epsilon, _own_ratios(chain, sensitivity, scale))]
    if diameter is not None and chain.displacement is not None:
        given: dict[str, Any] = {"sensitivity": sensitivity, "noise": noise, "scale": scale, "epsilon": epsilon}
        found.append(log_products(chain, diameter=diameter, **given))
        if len(chain) <= _ALL_PAIRS:
            found.append(log_recursions(chain, diameter=diameter, **given))
    if noise == "gaussian" and chain.lipschitz:
        found.append(log_shifts(chain, sensitivity=sensitivity, scale=scale, diameter=diameter, epsilon=epsilon))
    least: Array = np.minimum.reduce(found)
    return least


def average(values: Any, law: Any) -> float:
    """Return ln of the average of exp(values) under the law (uniform where None), rounded up."""
    import numpy as np

    if law is not None:
        with np.errstate(divide="ignore"):
            values = values + np.log(law)
    peak = float(values.max())
    if peak == -math.inf:
        return peak
    total = math.fsum(np.exp(np.maximum(values - peak, -740.0)).tolist()) / (len(values) if law is None else 1)
    value = peak + math.log(total)
    return min(0.0, value + UNIT * (4.0 * (abs(value) + abs(peak)) + 32.0))


# --- bounds -----------------------------------------------------------------------------------------------------------

_FIXED = (FIXED_ORDER, FRESH, _STEPS, DOMAIN, DISPLACED, ONE_RELEASE)
_USED = (FRESH, _STEPS, "where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS, ONE_RELEASE)
_ORDER = "one pass in a random order or rotation that puts the record on each step with the stated probability"


@bound(
    "stepwise.product",
    title="Product of contraction coefficients with a schedule",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="equation 11, with the displacement factor corrected",
    formula="delta(eps) = A_i prod_{t>i} B_t, largest over i where no index is given",
    assumes=_FIXED,
)
def product(
    *, schedule: Chain, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float,
    index: int | None = None,
) -> float:  # fmt: skip
    """Every later step shrinks what the record left by its own factor.

    Args:
        schedule: the steps; ``scale`` multiplies their noise.
        sensitivity: gradient sensitivity Delta.
        noise, scale: ``gaussian`` or ``laplace``, and the factor on its scale.
        diameter: D > 0.
        epsilon: >= 0.
        index: the step that uses the record, 1-based; None for the worst.

    Returns:
        ln delta, rounded up.
    """
    values = log_products(
        _bounded(schedule), sensitivity=sensitivity, noise=noise, scale=scale, diameter=diameter, epsilon=epsilon
    )
    return float(values.max() if index is None else values[index - 1])


def _bounded(chain: Chain) -> Chain:
    if chain.displacement is None:
        from dpcalc.errors import MissingParameter

        raise MissingParameter("needs displacement", "give --lipschitz, or a column displacement")
    return chain


@bound(
    "stepwise.hybrid",
    title="Least of contraction and shift with a schedule",
    gives="log_delta",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the non-linear recursion, restarted wherever the shift bound is smaller",
    formula="as contraction.hybrid, with each step's own r_B and noise; largest over i where no index is given",
    assumes=(FIXED_ORDER, *_USED),
    coarse=True,
)
def hybrid(
    *, schedule: Chain, sensitivity: float, noise: str, scale: float, epsilon: float, diameter: float | None = None,
    index: int | None = None,
) -> float:  # fmt: skip
    """Both bounds hold of the same number at every step, so the smaller of the two may go into the next.

    Args:
        schedule, sensitivity, noise, scale, epsilon, index: as in `product`.
        diameter: D, if the domain is bounded.

    Returns:
        ln delta, rounded up.
    """
    given: dict[str, Any] = {
        "sensitivity": sensitivity, "noise": noise, "scale": scale, "diameter": diameter, "epsilon": epsilon
    }  # fmt: skip
    if index is not None:
        return hybrid_at(schedule, index, **given)
    return float(hybrid_all(schedule, **given).max())


@bound(
    "stepwise.stop",
    title="Random stop by any law, product of contraction coefficients, with a schedule",
    gives="log_delta",
    algorithms=("stop",),
    reference=PAPER,
    locator="equation 11 averaged over the stopping time",
    formula="delta(eps) = A_i sum_{t>=i} s(t) prod_{i<u<=t} B_u, largest over i where no index is given",
    assumes=(FIXED_ORDER, "the pass stops after step t with the stated probability s(t)", *_FIXED[1:]),
)
def stop(
    *, schedule: Chain, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float,
    index: int | None = None,
) -> float:  # fmt: skip
    """Stopping at a random step averages over how many later steps shrink the record, or if it is used at all.

    Args:
        schedule, sensitivity, noise, scale, diameter, epsilon, index: as in `product`; the schedule's ``probability``
            is the law of the stopping time (uniform where absent).

    Returns:
        ln delta, rounded up; it holds even if the stopping time is published.
    """
    import numpy as np

    chain = _bounded(schedule)
    first = log_one_steps(noise, epsilon, _own_ratios(chain, sensitivity, scale))
    factors = np.maximum(log_one_steps(noise, epsilon, _later_ratios(chain, diameter, scale)), -1e290)
    law = np.full(len(chain), 1.0 / len(chain)) if chain.probability is None else chain.probability
    with np.errstate(divide="ignore"):
        weights = np.log(law)
    # Backwards: what stopping at t or later leaves of a unit at t, S_t = s(t) + B_{t+1} S_{t+1}.
    later, result = -math.inf, np.empty(len(chain))
    for t in range(len(chain) - 1, -1, -1):
        after = later + float(factors[t + 1]) if t + 1 < len(chain) else -math.inf
        later = float(np.logaddexp(weights[t], after)) if after > -1e289 or weights[t] > -math.inf else -math.inf
        result[t] = later
    with np.errstate(invalid="ignore"):
        values = first + result + UNIT * (8.0 * len(chain) + 8.0 * np.abs(result) + 8.0)
    values = np.where(np.isnan(values), -np.inf, values)
    return min(0.0, float(values.max() if index is None else values[index - 1]))


@bound(
    "stepwise.shuffled_product",
    title="Random position on a schedule, product of contraction coefficients",
    gives="log_delta",
    algorithms=("shuffled", "rotation"),
    reference=PAPER,
    locator="Theorem 2 with step-indexed noise, for any law of the position",
    formula="delta(eps) = sum_j q(j) A_j prod_{t>j} B_t, q uniform where no probability is given",
    assumes=(_ORDER, *_FIXED[1:]),
)
def shuffled_product(
    *, schedule: Chain, sensitivity: float, noise: str, scale: float, diameter: float, epsilon: float
) -> float:
    """The average over the record's step of what later steps leave of it.

    Args:
        schedule: the steps, with the law of the record's step as ``probability`` (uniform where absent).
        sensitivity, noise, scale, diameter, epsilon: as in `product`.

    Returns:
        ln delta, rounded up.
    """
    values = log_products(
        _bounded(schedule), sensitivity=sensitivity, noise=noise, scale=scale, diameter=diameter, epsilon=epsilon
    )
    return average(values, schedule.probability)


@bound(
    "stepwise.shuffled_hybrid",
    title="Random position on a schedule, least of contraction and shift",
    gives="log_delta",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="average over the record's step of the least of product, recursion (up to 1000 steps) and shift bound",
    formula="delta(eps) = sum_j q(j) e(j), q uniform where no probability is given",
    assumes=(_ORDER, *_USED),
    coarse=True,
)
def shuffled_hybrid(
    *, schedule: Chain, sensitivity: float, noise: str, scale: float, epsilon: float, diameter: float | None = None
) -> float:
    """The average over the record's step of the sharpest bound for each.

    Args:
        schedule: the steps, with the law of the record's step as ``probability`` (uniform where absent).
        sensitivity, noise, scale, epsilon: as in `product`.
        diameter: D, if the domain is bounded.

    Returns:
        ln delta, rounded up.
    """
    values = hybrid_all(schedule, sensitivity=sensitivity, noise=noise, scale=scale, diameter=diameter, epsilon=epsilon)
    return average(values, schedule.probability)
