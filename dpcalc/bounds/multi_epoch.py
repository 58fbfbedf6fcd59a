"""Several passes in one fixed order with hidden iterates: each record is used once a pass, at the same place.

Notation of the formulas: r = Delta/(b sigma) for a record in a batch of b, l steps a pass, k of them from the record's
own to the last of its pass, E passes, c the factor by which a step contracts. What a record shifts is spent optimally
on the noise from then on (the shifted-divergence theorem). Uses one pass apart always share one block of that
allocation; only the last use may have a block of its own, so that everything is a closed form: O(1) for any E and l.

A batch is the mean over its own records. A short last batch matters only to the records in it, as a smaller b: of the
other steps nothing but their contraction enters, and the mean of any number of losses contracts alike.

Every guarantee rounds up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpcalc.bounds.steps import (
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    GAUSSIAN,
    INDEX_IN_RANGE,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
    batch_of,
    decay_rate,
)
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.registry import Requirement, bound
from dpcalc.spec.loss import exceeds_two

_ORDER = "the same fixed order in every pass"
_STRONG = "every loss is strongly convex and smooth"
_PASSES = (_ORDER, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
_CONTRACTING = (_ORDER, _STRONG, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
DOMAIN = "iterates are projected onto a set of the given diameter"
QUADRATIC = "a lower bound: quadratic losses of curvature m (linear for m = 0) whose gradients differ by Delta"

NO_GUARANTEE = "No guarantee, but what certain losses really have: no guarantee for all of them can be below it."


def _balanced(values: Mapping[str, Any]) -> tuple[str, str] | None:
    eta, beta, m = values.get("step_size"), values.get("smoothness"), values.get("strong_convexity") or 0.0
    if eta is None or beta is None:
        return "needs step_size and smoothness", "give --step-size and --smoothness"
    if exceeds_two(eta, beta, m):
        limit = 2.0 / (beta + m)
        return (
            f"step size {eta:g} exceeds 2/(smoothness + strong_convexity) = {limit:g}, past which it says nothing",
            f"use --step-size <= {limit:g}",
        )
    return None


def _unbounded(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values.get("diameter") is not None:
        return "its losses need the whole space, and a diameter is given", "leave out --diameter"
    return None


BALANCED = Requirement("step_size <= 2/(smoothness + strong_convexity)", _balanced)
UNBOUNDED = Requirement("no bounded domain", _unbounded)


# --- guarantees -------------------------------------------------------------------------------------------------------


@bound(
    "multi_epoch.cyclic",
    title="Cyclic passes, mu-GDP form",
    gives="mu",
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes, with the optimal shifts",
    formula="mu = (Delta/(b sigma)) sqrt((E-1)/l + 1/k)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASSES,
)
def cyclic_mu(*, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float) -> float:
    """After E passes in one order the last iterate is mu-GDP: every use but the last has a whole pass to fade in.

    Args:
        records: n >= 1.
        index: 1-based position of the record, 1 <= index <= records.
        batch_size: records per step; the record's step counts at its own size (a short last batch).
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std: sigma > 0.

    Returns:
        mu, rounded up.

    >>> round(cyclic_mu(records=100, index=100, batch_size=1, epochs=10, sensitivity=2.0, noise_std=1.0), 12)
    2.088061301782
    """
    size, tail, period = places(records, index, batch_size)
    return spent_mu(
        sensitivity=sensitivity, size=size, noise_std=noise_std, rate=0.0, period=period, tail=tail, uses=epochs
    )


@bound(
    "multi_epoch.cyclic_rdp",
    title="Cyclic passes, Renyi form",
    gives="rdp",
    algorithms=("cyclic",),
    reference="feldman2018",
    locator="Theorem 35 for any number of passes (the exact value of the sum in its proof)",
    formula="RDP(a) = (a Delta^2/(2 b^2 sigma^2)) ((E-1)/l + 1/k)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASSES,
    implied_by="multi_epoch.cyclic",
)
def cyclic_rdp(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, order: float
) -> float:
    """After E passes in one order the last iterate satisfies Renyi DP with the optimal shifts.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std: as in `cyclic_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(cyclic_rdp(records=100, index=1, batch_size=1, epochs=100, sensitivity=2.0, noise_std=1.0, order=2.0), 12)
    4.0
    """
    size, tail, period = places(records, index, batch_size)
    share = (epochs - 1) / period + 1.0 / tail
    return wide_up((0.5, order, sensitivity, sensitivity, share), (size, size, noise_std, noise_std), 8.0)


@bound(
    "multi_epoch.cyclic_contraction",
    title="Cyclic passes with strong convexity",
    gives="mu",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="optimal shift allocation for every position (NoisyCGD states the last)",
    formula="mu^2 = r^2 (A^2/V + c^(2k-2)/G_k), or r^2 (c^k A + c^(k-1))^2/G_(l(E-1)+k) if that is allowed; "
    "A = c^(l-1) (1-c^(l(E-1)))/(1-c^l), V = G_(l(E-1)), G_j = (1-c^(2j))/(1-c^2)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_CONTRACTING,
)
def contraction_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """Strongly convex losses forget earlier passes geometrically: mu stays bounded however many there are.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std: as in `cyclic_mu`.
        step_size: eta, 0 < eta <= 2/smoothness.
        smoothness, strong_convexity: beta >= m >= 0.

    Returns:
        mu, rounded up; never above `cyclic_mu` but for rounding.

    >>> round(contraction_mu(records=20, index=10, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                      step_size=1.0, smoothness=0.01, strong_convexity=0.01), 12)
    0.140118774754
    """
    size, tail, period = places(records, index, batch_size)
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return spent_mu(
        sensitivity=sensitivity, size=size, noise_std=noise_std, rate=rate, period=period, tail=tail, uses=epochs
    )


@bound(
    "multi_epoch.cyclic_domain",
    title="Cyclic passes on a bounded domain",
    gives="mu",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="restart from the diameter after the best use, with the optimal shifts from there",
    formula="least over j of the cost of D + j uses one pass apart, then the last use; and of no restart "
    "(c = 1: (D/eta + j r')^2/(((j+1)l - 1) sigma^2) + r'^2/(k sigma^2), r' = Delta/b, or both pooled)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(*_PASSES, DOMAIN),
)
def domain_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float, diameter: float,
) -> float:  # fmt: skip
    """Two runs are never further apart than the diameter, so what was done many passes ago costs nothing more.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in
            `contraction_mu`.
        diameter: D > 0 of the constraint set.

    Returns:
        mu, rounded up; never above `cyclic_mu` or `contraction_mu` but for rounding.

    >>> round(domain_mu(records=10, index=10, batch_size=1, epochs=10**9, sensitivity=0.25, noise_std=3.0,
    ...                 step_size=0.04, smoothness=1.0, strong_convexity=0.0, diameter=1.0), 12)
    0.531246179365
    """
    size, tail, period = places(records, index, batch_size)
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return spent_mu(
        sensitivity=sensitivity, size=size, noise_std=noise_std, rate=rate, period=period, tail=tail, uses=epochs,
        step_size=step_size, diameter=diameter,
    )  # fmt: skip


@bound(
    "multi_epoch.composition",
    title="Cyclic passes, composed",
    gives="mu",
    algorithms=("cyclic",),
    reference="dong2022",
    locator="composition of Gaussian mechanisms, one a pass",
    formula="mu = (Delta/(b sigma)) sqrt(E)",
    requires=(INDEX_IN_RANGE,),
    assumes=("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size"),
)
def composition_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float
) -> float:
    """Even if every iterate is public, each use of the record is a Gaussian mechanism: nothing is gained by hiding.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std: as in `cyclic_mu`.

    Returns:
        mu, rounded up.

    >>> round(composition_mu(records=5, index=1, batch_size=1, epochs=9, sensitivity=2.0, noise_std=4.0), 12)
    1.5
    """
    size, _ = batch_of(records, index, batch_size)
    return wide_up((sensitivity, math.sqrt(epochs)), (size, noise_std), 4.0)


def cyclic_noise_std(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, epsilon: float, log_delta: float
) -> float:
    """Return the least sigma for which `cyclic_mu` gives (epsilon, delta), rounded up."""
    size, tail, period = places(records, index, batch_size)
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    return wide_up((single, _unrestarted(0.0, period, tail, epochs)), (size,), 32.0)


def corollary_noise_std(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return sigma = 5 L sqrt(ln(1/delta))/eps, the paper's choice for n passes (needs ln(1/delta) >= 2.5 eps)."""
    return up(5.0 * lipschitz * math.sqrt(-log_delta) / epsilon, 8.0)


def corollary_epsilon(*, lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return the epsilon that `corollary_noise_std` really certifies: Theorem 35's 4 a L^2/sigma^2 and Mironov's
    conversion at a = 2 ln(1/delta)/eps.
    """
    sigma = corollary_noise_std(lipschitz=lipschitz, epsilon=epsilon, log_delta=log_delta)
    order = -2.0 * log_delta / epsilon
    rdp = up(4.0 * order * (lipschitz / sigma) ** 2, 8.0)
    return renyi.mironov(order=order, rdp=rdp, log_delta=log_delta)


# --- for comparison ---------------------------------------------------------------------------------------------------


@bound(
    "multi_epoch.quadratic",
    title="Cyclic passes over quadratic losses, exactly",
    gives="mu",
    kind="lower",
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="Gaussian output: its mean and variance",
    formula="mu^2 = r^2 q^(2k-2) (1-q^2) (1-q^(lE))/((1-q^l)^2 (1+q^(lE))), q = 1 - eta m; r^2 E/l for m = 0",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=(_ORDER, QUADRATIC, GAUSSIAN, ONE_RELEASE),
    erratum=NO_GUARANTEE,
    unsolved=("strong_convexity",),
)
def quadratic_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """With quadratic losses on the whole space the last iterate is Gaussian, and its mu is known: none can be smaller.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std: as in `cyclic_mu`.
        step_size: eta, 0 < eta <= 2/(smoothness + strong_convexity).
        smoothness, strong_convexity: beta >= m >= 0.

    Returns:
        The mu of such a run, rounded down.

    >>> round(quadratic_mu(records=100, index=100, batch_size=1, epochs=25, sensitivity=2.0, noise_std=1.0,
    ...                    step_size=0.5, smoothness=1.0, strong_convexity=0.0), 12)
    1.0
    """
    size, tail, period = places(records, index, batch_size)
    return quadratic(
        sensitivity=sensitivity, size=size, noise_std=noise_std, curvature=(step_size, strong_convexity),
        period=period, tail=tail, uses=epochs,
    )  # fmt: skip


@bound(
    "multi_epoch.contraction_published",
    title="Cyclic passes with strong convexity as printed",
    gives="mu",
    kind="published",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="NoisyCGD, strongly convex",
    formula="mu^2 = r^2 (1 + c^(2l-2) (1-c^2)/(1-c^l)^2 (1-c^(l(E-1)))/(1+c^(l(E-1))))",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_CONTRACTING,
    erratum="True, and the best for the last position in a pass of at least two steps. Earlier positions are better "
    "off, and so is everyone in a pass of one step, where two blocks should be one.",
)
def contraction_published_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """What the paper states for all records, that is for the last position in a pass.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in
            `contraction_mu`; of the index only the size of its batch matters.

    Returns:
        mu, rounded up.

    >>> round(contraction_published_mu(records=20, index=20, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                                step_size=1.0, smoothness=0.01, strong_convexity=0.01), 12)
    0.237452984635
    """
    size, _, period = places(records, index, batch_size)
    rate = _settled(decay_rate(step_size, smoothness, strong_convexity))
    return wide_up((sensitivity, _apart(rate, period, 1, epochs)), (size, noise_std), 32.0)


@bound(
    "multi_epoch.domain_published",
    title="Cyclic passes on a bounded domain as printed",
    gives="mu",
    kind="published",
    algorithms=("cyclic",),
    reference="bok2024",
    locator="NoisyCGD, bounded domain",
    formula="mu^2 = (1/sigma^2) (3 Delta D/(eta b l) + (Delta/b)^2 + (Delta/b)^2 ceil(D b/(eta Delta))/l)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=(*_PASSES, DOMAIN),
    erratum="True, and never below multi_epoch.cyclic_domain: it restarts at the start of a pass and rounds up the "
    "number of passes.",
)
def domain_published_mu(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float, step_size: float,
    diameter: float,
) -> float:  # fmt: skip
    """What the paper states for all records and any number of passes.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `cyclic_mu`; of the index only the size of its batch
            matters.
        step_size: eta > 0.
        diameter: D > 0 of the constraint set.

    Returns:
        mu, rounded up.

    >>> round(domain_published_mu(records=10, index=10, batch_size=1, sensitivity=0.25, noise_std=3.0, step_size=0.04,
    ...                           diameter=1.0), 12)
    0.533593686453
    """
    size, _, period = places(records, index, batch_size)
    reach = wide_up((diameter, size), (step_size, sensitivity)) if sensitivity > 0.0 else math.inf
    share = 1.0 + printed_reach(reach) / period
    return wide_up((sensitivity, math.sqrt(share)), (size, noise_std), 16.0)


@bound(
    "multi_epoch.dynamics_published",
    title="Cyclic passes by privacy dynamics as computed",
    gives="rdp",
    kind="published",
    algorithms=("cyclic",),
    reference="ye2022",
    locator="the code published with the paper, for a known position",
    formula="RDP(a) = (a r^2/2) (c^(2k-2)/G_k + c^(2j-2)/G_j (1-c^(2(E-1)(l-j)))/(1-c^(2(l-j)))), j = floor(l/2), "
    "G_j = (1-c^(2j))/(1-c^2)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX),
    assumes=_CONTRACTING,
    erratum="Each earlier use may fade over half a pass only; multi_epoch.cyclic_contraction gives it the whole pass.",
)
def dynamics_published_rdp(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float, order: float,
) -> float:  # fmt: skip
    """What the code of Ye and Shokri computes when the position of the record is known.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in
            `contraction_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up; inf for a pass of one step, which has no half.

    >>> round(dynamics_published_rdp(records=20, index=20, batch_size=1, epochs=50, sensitivity=0.2, noise_std=1.0,
    ...                              step_size=1.0, smoothness=0.01, strong_convexity=0.01, order=2.0), 13)
    0.0600325782122
    """
    size, tail, period = places(records, index, batch_size)
    rate = _settled(decay_rate(step_size, smoothness, strong_convexity))
    half = period // 2
    if half == 0:
        return math.inf
    earlier = _fade(2.0 * rate, half - 1) / _room(rate, half) * _total(2.0 * rate, period - half, epochs - 1)
    share = _fade(2.0 * rate, tail - 1) / _room(rate, tail) + earlier
    return wide_up((0.5, order, sensitivity, sensitivity, share), (size, size, noise_std, noise_std), 64.0)


# --- one record used once a pass --------------------------------------------------------------------------------------


def places(records: int, index: int, batch_size: int) -> tuple[int, int, int]:
    """Return (size b of the record's batch, steps k from it to the end of the pass, steps l of a pass)."""
    size, tail = batch_of(records, index, batch_size)
    return size, tail, -(-records // batch_size)


def spent_mu(
    *, sensitivity: float, size: int, noise_std: float, rate: float, period: int, tail: int, uses: int,
    step_size: float = 1.0, diameter: float = math.inf,
) -> float:  # fmt: skip
    """Return the mu of a record that is used once in every ``period`` steps, by the optimal allocation; rounded up.

    Args:
        sensitivity, size, noise_std: Delta, b and sigma: a use moves the step by Delta/(b sigma) of its noise.
        rate: -ln c >= 0, not above the true one; inf for c = 0.
        period: l >= 1, steps from one use to the next.
        tail: k in 1..l, steps from the last use to the end, its own included.
        uses: E >= 1.
        step_size, diameter: eta and D, where iterates are projected onto a set of diameter D.
    """
    if sensitivity == 0.0:
        return 0.0
    rate = _settled(rate)
    share = _unrestarted(rate, period, tail, uses)
    bounded = math.isfinite(diameter)
    reach = wide_up((diameter, size), (step_size, sensitivity)) if bounded else math.inf
    if reach < math.inf and uses > 1:
        share = min(share, _restarted(rate, period, tail, uses, reach))
    fading, slack = _fading(rate, tail - 1)
    mu = wide_up((sensitivity, share, *fading), (size, noise_std), 40.0 + slack)
    if bounded and tail > 1:
        # Nothing is spent before the last use, nor on it: the diameter right after it, hidden by what follows.
        room = math.sqrt(_room(rate, tail - 1))
        mu = min(mu, wide_up((diameter, *fading), (step_size, noise_std, room), 16.0 + slack))
    return mu


# Shares below are mu in units of r c^(k-1): what the last use alone would cost if it had to be spent on the very step
# that ends the run. Each is right to 32 units of roundoff or above.


def _unrestarted(rate: float, period: int, tail: int, uses: int) -> float:
    """Return the share of the optimal allocation of all uses."""
    if rate == 0.0:
        return math.sqrt((uses - 1) / period + 1.0 / tail)
    if _joins(rate, period, tail, uses):
        return _total(rate, period, uses) / math.sqrt(_room(rate, period * (uses - 1) + tail))
    return _apart(rate, period, tail, uses)


def _joins(rate: float, period: int, tail: int, uses: int) -> bool:
    """Return whether the last use surely shares its block with the others: slope before >= slope after.

    c^(l-1) (1-c^(l(E-1)))/(1-c^l) G_k >= c^(2k-1) G_(l(E-1)), rid of common factors. Where rounding might decide,
    two blocks are kept, which is always allowed and costs the square of the rounding.
    """
    gap = (2 * tail - period) * rate
    if gap <= 0.0:
        return False
    return gap > 700.0 or math.expm1(gap) * (1.0 - 64.0 * UNIT) >= _fade(rate, period * (uses - 1)) * _lost(
        rate, period
    )


def _apart(rate: float, period: int, tail: int, uses: int) -> float:
    """Return the share of the last use in a block of its own and all others in one before it."""
    if rate == 0.0:
        return math.sqrt((uses - 1) / period + 1.0 / tail)
    shrunk = rate * (period * (uses - 1))
    rising = -math.expm1(-shrunk) / (1.0 + math.exp(-shrunk))  # tanh(shrunk/2)
    whole = _lost(rate, period)
    before = _fade(rate, period - tail) * math.sqrt(_lost(2.0 * rate, 1) / whole * (rising / whole))
    return math.hypot(before * (1.0 + 32.0 * UNIT), 1.0 / math.sqrt(_room(rate, tail)))


def _restarted(rate: float, period: int, tail: int, uses: int, reach: float) -> float:
    """Return the least share over all restarts from the diameter right after a use but the last.

    ``reach`` is the diameter in units of one use's shift, rounded up. The cost with j uses between the restart and the
    last use is smooth in j, and stationary only at two values, one for each shape of the allocation: near a least
    whole j lies one of them, or an end. Every j is a valid bound.
    """
    last = uses - 2
    removed = reach * _lost(rate, period)
    far = reach * period if rate == 0.0 else (-math.log1p(-removed) / rate if removed < 1.0 else math.inf)
    tried = {0, last}
    for turning in ((far - 2 * (period - 1)) / period, (far - 2 * (tail - 1)) / period - 1.0):
        near = math.floor(min(max(turning, 0.0), float(last)))
        tried.update(j for j in range(near - 1, near + 3) if 0 <= j <= last)
    return min(_from_diameter(rate, period, tail, reach, j) for j in tried)


def _from_diameter(rate: float, period: int, tail: int, reach: float, between: int) -> float:
    """Return the share of a restart from ``reach`` followed by ``between`` uses and the last; inf where it is idle."""
    steps = period * (between + 1) - 1
    carried = reach * _fade(rate, period * between) + _total(rate, period, between)
    room = _room(rate, steps)
    if between and period > 1:
        # The diameter has l - 1 steps to itself. If it is better spent there, a restart after a later use is better.
        own = reach * _room(rate, period * between) * (1.0 - 64.0 * UNIT)
        if own < _fade(rate, period * between) * _total(rate, period, between) * _room(rate, period - 1):
            return math.inf
    gap = (period - 2 * tail) * rate
    wide = _room(rate, tail)
    if steps == 0 or (gap < 700.0 and carried * wide * (1.0 - 64.0 * UNIT) >= math.exp(max(gap, -700.0)) * room):
        return (1.0 + _fade(rate, period) * carried) / math.sqrt(_room(rate, steps + tail))
    return math.hypot(_fade(rate, period - tail) * carried / math.sqrt(room), 1.0 / math.sqrt(wide))


def quadratic(
    *, sensitivity: float, size: int, noise_std: float, curvature: tuple[float, float], period: int, tail: int,
    uses: int,
) -> float:  # fmt: skip
    """Return the exact mu of quadratic losses of curvature m with eta m <= 1, rounded down.

    Args:
        sensitivity, size, noise_std, period, tail, uses: as in `spent_mu`.
        curvature: (eta, m).
    """
    if sensitivity == 0.0:
        return 0.0
    shrunk = curvature[0] * curvature[1]
    slow = 0.0 if shrunk < 1e-290 else _settled(_log_inverse(down(shrunk, 4.0)))
    fast = 1e-200 if shrunk < 1e-290 else max(slow, up(_log_inverse(up(shrunk, 4.0)), 4.0))
    if fast <= 1e-200:
        below = math.sqrt(uses / period)
        return wide_down((sensitivity, below), (size, noise_std), 16.0)
    if math.isinf(fast) or fast > 1e4:
        if tail > 1:
            return 0.0
        fast = 1e4
    # Each factor is taken at the end of the enclosure of -ln q where it is the smaller.
    across = slow * (period * uses)
    rising = -math.expm1(-across) / (1.0 + math.exp(-across))
    whole = _lost(fast, period)
    below = math.sqrt(_lost(2.0 * slow, 1) / whole * (rising / whole))
    fading, slack = _fading(fast, tail - 1)
    if fast * (tail - 1) > _DEEPEST:
        return 0.0
    return wide_down((sensitivity, below, *fading), (size, noise_std), 48.0 + slack)


def _log_inverse(shrunk: float) -> float:
    return -math.log1p(-shrunk) if shrunk < 1.0 else math.inf


def printed_reach(reach: float) -> float:
    """Return 3 x + ceil(x), where what is whole but for rounding is taken as whole."""
    return 3.0 * reach + math.ceil(down(reach, 64.0)) if reach < 1e300 else math.inf


# --- powers of c ------------------------------------------------------------------------------------------------------

_DEEPEST = 2800.0  # exp(-2800) times the largest double over the smallest is below the smallest


def _settled(rate: float) -> float:
    """Return -ln c within the range of the formulas, never larger: c = 1 and c = 0 but for nothing that shows."""
    return min(rate, 1e4) if rate > 1e-200 else 0.0


def _lost(rate: float, steps: int) -> float:
    """Return 1 - c^steps."""
    return -math.expm1(-rate * steps)


def _fade(rate: float, steps: int) -> float:
    """Return c^steps, rounded up (e^-700 where it is less)."""
    exponent = min(rate * steps, 700.0)
    return math.exp(-exponent) * (1.0 + (4.0 * exponent + 4.0) * UNIT) if exponent else 1.0


def _fading(rate: float, steps: int) -> tuple[Sequence[float], float]:
    """Return factors whose product is c^steps, none of them subnormal, and their error in units of roundoff."""
    exponent = min(rate * steps, _DEEPEST)
    return ([math.exp(-0.25 * exponent)] * 4, 4.0 * exponent + 16.0) if exponent else ((), 0.0)


def _total(rate: float, steps: int, count: int) -> float:
    """Return 1 + c^steps + ... + c^(steps (count-1))."""
    return float(count) if rate == 0.0 else math.expm1(-rate * (steps * count)) / math.expm1(-rate * steps)


def _room(rate: float, steps: int) -> float:
    """Return G = 1 + c^2 + ... + c^(2 (steps-1))."""
    return float(steps) if rate == 0.0 else math.expm1(-2.0 * rate * steps) / math.expm1(-2.0 * rate)


# --- products that neither overflow nor underflow on the way ----------------------------------------------------------


def wide_up(numerators: Sequence[float], denominators: Sequence[float], slack: float = 0.0) -> float:
    """Return a quotient of products of non-negative numbers, rounded up.

    Covers half a unit of each factor (a decimal read as a double), the roundings of the product, and ``slack`` more.
    """
    mantissa, exponent = _product(numerators, denominators)
    if mantissa == 0.0:
        return 0.0
    value = _shifted(up(mantissa, slack + 4.0 * (len(numerators) + len(denominators))), exponent)
    return value if value > 1e-307 else math.nextafter(value, math.inf)


def wide_down(numerators: Sequence[float], denominators: Sequence[float], slack: float = 0.0) -> float:
    """Return a quotient of products of non-negative numbers, rounded down as far as `wide_up` rounds up."""
    mantissa, exponent = _product(numerators, denominators)
    if mantissa == 0.0:
        return 0.0
    value = _shifted(down(mantissa, slack + 4.0 * (len(numerators) + len(denominators))), exponent)
    return value if value > 1e-307 else max(0.0, math.nextafter(value, 0.0))


def _product(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, int]:
    mantissa, exponent = 1.0, 0
    for x in numerators:
        part, shift = math.frexp(x)
        mantissa, exponent = mantissa * part, exponent + shift
    for x in denominators:
        part, shift = math.frexp(x)
        mantissa, exponent = mantissa / part, exponent - shift
    return mantissa, exponent


def _shifted(mantissa: float, exponent: int) -> float:
    try:
        return math.ldexp(mantissa, exponent)
    except OverflowError:
        return math.inf
