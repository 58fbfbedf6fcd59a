"""Privacy amplification by iteration for one fixed-order pass (Feldman, Mironov, Talwar and Thakurta 2018).

Notation of the formulas: Delta = ``sensitivity`` is how far one record's gradient can move (2L when a record is
replaced, L when it is replaced by a null record), sigma = ``noise_std``, n = ``records``, t = ``index``, a = ``order``,
k = n + 1 - t the number of steps from the record's own to the last. All privacy statements hold in both directions.
Every function rounds up.
"""

from __future__ import annotations

import math

from dpcalc.bounds.steps import (
    BATCHES_OF_ONE,
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    FIXED_ORDER,
    GAUSSIAN,
    INDEX_IN_RANGE,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
    batch_of,
    decay_rate,
    faded,
)
from dpcalc.notions import gaussian, renyi
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import down, ratio_up, up
from dpcalc.numerics.logspace import log_add_exp, log_exp1p, log_expm1
from dpcalc.numerics.roots import greatest
from dpcalc.numerics.sums import harmonic, log_sum_expm1_reciprocals, log_sum_hockey_sticks
from dpcalc.registry import bound

_PAPER = "feldman2018"
_PASS = (FIXED_ORDER, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
_CLASSIC_ERRATUM = (
    "The paper uses the classic calibration for every epsilon. It is false for large epsilon: at delta = 1e-5 it holds "
    "exactly for epsilon <= 8.42. Past that range the row is withheld."
)


@bound(
    "iteration.pnsgd",
    title="Amplification by iteration, mu-GDP form",
    gives="mu",
    algorithms=("pnsgd",),
    reference=_PAPER,
    locator="Theorem 23, in the Gaussian-DP form of shifted interpolation",
    formula="mu = Delta / (b sigma sqrt(k))",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASS,
)
def pnsgd_mu(*, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float) -> float:
    """The last iterate of one noisy pass is mu-GDP for the record at ``index``: the k steps from its own to the last
    share the shift it caused.

    Args:
        records: n >= 1.
        index: 1-based position of the record, 1 <= index <= records.
        batch_size: records per step; the step that holds the record counts at its own size (a short last batch).
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std: sigma > 0.

    Returns:
        mu, rounded up.

    >>> round(pnsgd_mu(records=100, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0), 13)
    0.2
    """
    size, steps = batch_of(records, index, batch_size)
    return ratio_up(sensitivity, size * noise_std, steps)


def pnsgd_noise_std(
    *, records: int, index: int, batch_size: int, sensitivity: float, epsilon: float, log_delta: float
) -> float:
    """Return the least sigma for which `pnsgd_mu` gives (epsilon, delta), rounded up."""
    size, steps = batch_of(records, index, batch_size)
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    return up(single / size / math.sqrt(steps), 8.0)


@bound(
    "iteration.pnsgd_rdp",
    title="Amplification by iteration, Renyi form",
    gives="rdp",
    algorithms=("pnsgd",),
    reference=_PAPER,
    locator="Theorem 23",
    formula="RDP(a) = a Delta^2 / (2 b^2 sigma^2 k)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=_PASS,
    implied_by="iteration.pnsgd",
)
def pnsgd_rdp(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float, order: float
) -> float:
    """The last iterate of one noisy pass satisfies Renyi DP for the record at ``index``; the mu-GDP form of the same
    bound implies it and gives a smaller epsilon.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pnsgd_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(pnsgd_rdp(records=100, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0, order=2.0), 13)
    0.04
    """
    size, steps = batch_of(records, index, batch_size)
    return divided_rdp(divisor=size, steps=steps, sensitivity=sensitivity, noise_std=noise_std, order=order)


def divided_rdp(*, divisor: int, steps: int, sensitivity: float, noise_std: float, order: float) -> float:
    """Return the RDP of a record in a batch whose gradient sum is divided by ``divisor``, ``steps`` from the end.

    For a mean over a short last batch the divisor is that batch's own size; code that divides it by the nominal batch
    size makes the record's share smaller, and the divisor is then the nominal size.
    """
    return ratio_up(_single_rdp(divisor, sensitivity, noise_std, order), float(steps))


def _single_rdp(divisor: int, sensitivity: float, noise_std: float, order: float) -> float:
    """Return the RDP of one Gaussian step whose gradient sum is divided by ``divisor``."""
    return renyi.gaussian(order=order, shift=sensitivity, scale=divisor * noise_std)


@bound(
    "iteration.pnsgd_contraction",
    title="Amplification by iteration with strong convexity",
    gives="mu",
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="optimal shift allocation for one use (shifted interpolation)",
    formula="mu = Delta/(b sigma) c^(k-1) sqrt((1-c^2)/(1-c^(2k))), c = max(|1 - eta m|, |1 - eta beta|)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX),
    assumes=(FIXED_ORDER, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING),
)
def contraction_mu(
    *,
    records: int,
    index: int,
    batch_size: int,
    sensitivity: float,
    noise_std: float,
    step_size: float,
    smoothness: float,
    strong_convexity: float,
) -> float:
    """Strongly convex losses contract what is left of the record in every later step, so its trace fades geometrically.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pnsgd_mu`.
        step_size: eta, 0 < eta <= 2/smoothness.
        smoothness, strong_convexity: beta >= m >= 0.

    Returns:
        mu, rounded up (the smallest positive double where it would underflow).

    >>> round(contraction_mu(records=10, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=0.5,
    ...                      smoothness=1.0, strong_convexity=1.0), 12)
    0.003382913347
    """
    size, steps = batch_of(records, index, batch_size)
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return faded(ratio_up(sensitivity, size * noise_std), rate, steps - 1, steps)


@bound(
    "iteration.pnsgd_domain",
    title="Amplification by iteration on a bounded domain",
    gives="mu",
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="restart after the record's step, one use",
    formula="mu = D/(eta sigma) c^(k-1) sqrt((1-c^2)/(1-c^(2(k-1)))), or D/(eta sigma sqrt(k-1)) at c = 1",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(*_PASS, "iterates are projected onto a set of the given diameter"),
)
def domain_mu(
    *,
    records: int,
    index: int,
    batch_size: int,
    noise_std: float,
    step_size: float,
    smoothness: float,
    strong_convexity: float,
    diameter: float,
) -> float:
    """Whatever the record did, the two runs are no further apart than the diameter right after its step, and the later
    steps hide that distance.

    Args:
        records, index, batch_size, noise_std, step_size, smoothness, strong_convexity: as in `contraction_mu`.
        diameter: D > 0 of the constraint set.

    Returns:
        mu, rounded up; inf for the last step, which nothing follows.

    >>> round(domain_mu(records=101, index=1, batch_size=1, noise_std=1.0, step_size=0.5, smoothness=1.0,
    ...                 strong_convexity=0.0, diameter=0.5), 13)
    0.1
    """
    _, steps = batch_of(records, index, batch_size)
    if steps == 1:
        return math.inf
    rate = decay_rate(step_size, smoothness, strong_convexity)
    return faded(up(diameter / step_size / noise_std, 4.0), rate, steps - 1, steps - 1)


@bound(
    "iteration.skip",
    title="Random skip, exact mixture",
    gives="log_delta",
    algorithms=("skip",),
    reference=_PAPER,
    locator="Theorem 24, sharpened by the probability that the record is used",
    formula="delta(eps) = p delta_G(eps; mu_t), p = min(t, h+1)/(h+1), h = floor(n/2)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=(*_PASS, "a uniform random prefix of 0..floor(n/2) records is skipped"),
)
def skip_log_delta(*, records: int, index: int, sensitivity: float, noise_std: float, epsilon: float) -> float:
    """Skipping a random prefix uses the record at ``index`` with probability p only, and otherwise changes nothing.

    Args:
        records, index, sensitivity, noise_std: as in `pnsgd_mu`.
        epsilon: >= 0.

    Returns:
        ln delta at epsilon, rounded up.

    >>> round(skip_log_delta(records=11, index=6, sensitivity=2.0, noise_std=3.0, epsilon=0.5), 9)
    -5.401634433
    """
    mu = pnsgd_mu(records=records, index=index, batch_size=1, sensitivity=sensitivity, noise_std=noise_std)
    return min(0.0, up(gaussian.log_delta(mu=mu, epsilon=epsilon) + _log_used(records, index), 2.0))


@bound(
    "iteration.skip_rdp",
    title="Random skip, Renyi form of the mixture",
    gives="rdp",
    algorithms=("skip",),
    reference=_PAPER,
    locator="Theorem 24, sharpened by the probability that the record is used",
    formula="RDP(a) = ln(1 + p (e^((a-1) eps_t) - 1))/(a-1), eps_t the RDP of Theorem 23",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=(*_PASS, "a uniform random prefix of 0..floor(n/2) records is skipped"),
)
def skip_rdp(*, records: int, index: int, sensitivity: float, noise_std: float, order: float) -> float:
    """Skipping a random prefix mixes the record's Renyi divergence with none at all, by joint convexity.

    Args:
        records, index, sensitivity, noise_std: as in `pnsgd_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(skip_rdp(records=10, index=3, sensitivity=2.0, noise_std=1.0, order=2.0), 13)
    0.2809298036202
    """
    full = pnsgd_rdp(
        records=records, index=index, batch_size=1, sensitivity=sensitivity, noise_std=noise_std, order=order
    )
    used = _used(records, index)
    if order == 1.0 or math.isinf(full):
        return up(used * full, 4.0)
    a1 = order - 1.0
    inner = log_expm1(a1 * full) + math.log(used)
    if inner == -math.inf:
        return up(used * full, 4.0)
    return up(log_exp1p(inner + 2.0**-50 * (1.0 + abs(inner))) / a1, 8.0)


def skip_epsilon(*, records: int, index: int, sensitivity: float, noise_std: float, log_delta: float) -> float:
    """Return the least epsilon of `skip_log_delta` at ln delta, rounded up: that of mu_t at delta/p."""
    mu = pnsgd_mu(records=records, index=index, batch_size=1, sensitivity=sensitivity, noise_std=noise_std)
    target = down(log_delta - _log_used(records, index), 2.0)
    return gaussian.epsilon(mu=mu, log_delta_target=target) if target < 0.0 else 0.0


def skip_noise_std(*, records: int, index: int, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the least sigma for which `skip_log_delta` is at most ln delta at epsilon, rounded up; 0 if delta >= p."""
    target = down(log_delta - _log_used(records, index), 2.0)
    if target >= 0.0:
        return 0.0
    return pnsgd_noise_std(
        records=records, index=index, batch_size=1, sensitivity=sensitivity, epsilon=epsilon, log_delta=target
    )


def _used(records: int, index: int) -> float:
    """Return the probability that the skipped prefix leaves the record in."""
    h = records // 2
    return min(index, h + 1) / (h + 1)


def _log_used(records: int, index: int) -> float:
    """Return ln of `_used`, rounded up; from the complement where it is near 0."""
    h = records // 2
    skipped = max(0, h + 1 - index)
    exact = math.log1p(-skipped / (h + 1)) if 2 * skipped < h else math.log(_used(records, index))
    return min(0.0, up(exact, 6.0))


_STOP = (*_PASS, "the pass stops after a uniformly random number of steps, which stays hidden")
_STOP_ERRATUM = (
    "The paper's proof bounds 1 + 1/2 + ... + 1/m by ln m, which is smaller. Its result fails for n = 1, is not "
    "implied for n = 2, and holds for n >= 3 by another proof; the intermediate per-record form fails near the end of "
    "the pass. The exact mixture needs no condition on sigma."
)


@bound(
    "iteration.stop",
    title="Random stop, exact average of privacy profiles",
    gives="log_delta",
    algorithms=("stop",),
    reference=_PAPER,
    locator="Theorem 26, corrected and in mu-GDP form",
    formula="delta(eps) = (1/n) sum_{j=1}^{k} delta_G(eps; Delta/(sigma sqrt(j)))",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_log_delta(*, records: int, index: int, sensitivity: float, noise_std: float, epsilon: float) -> float:
    """Stopping at a random step averages over how many noisy steps follow the record's own, or if it is used.

    Args:
        records, index, sensitivity, noise_std: as in `pnsgd_mu`; records up to 1e15.
        epsilon: >= 0.

    Returns:
        ln delta at epsilon, rounded up; cost does not grow with records.

    >>> round(stop_log_delta(records=100, index=100, sensitivity=2.0, noise_std=4.0, epsilon=0.1), 11)
    -6.44238419207
    """
    ratio = ratio_up(sensitivity, noise_std)
    if ratio > 1e90:
        return 0.0
    total = log_sum_hockey_sticks(epsilon, max(ratio, 1e-290), records + 1 - index)
    return min(0.0, up(total - math.log(records), 4.0) + 2.0**-52 * math.log(records))


@bound(
    "iteration.stop_rdp",
    title="Random stop, exact average of Renyi divergences",
    gives="rdp",
    algorithms=("stop",),
    reference=_PAPER,
    locator="Theorem 26, corrected",
    formula="RDP(a) = ln(1 + (1/n) sum_{j=1}^{k} (e^(x/j) - 1))/(a-1), x = a(a-1) Delta^2/(2 sigma^2)",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_rdp(*, records: int, index: int, sensitivity: float, noise_std: float, order: float) -> float:
    """The Renyi divergence after a random stop is at most the log-mean-exp of those at each stopping time.

    Args:
        records, index, sensitivity, noise_std: as in `pnsgd_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up; no condition on sigma or the order.

    >>> round(stop_rdp(records=2, index=1, sensitivity=2.0, noise_std=2.0, order=2.0), 13)
    0.7809298036202
    """
    single = renyi.gaussian(order=order, shift=sensitivity, scale=noise_std)
    later = records + 1 - index
    if order == 1.0:
        return up(single * harmonic(later) / records, 8.0)
    a1 = order - 1.0
    x = up(a1 * single, 4.0)
    if math.isinf(x):
        return single
    log_mean = log_sum_expm1_reciprocals(max(x, 1e-300), later) - math.log(records)
    log_mean += 2.0**-51 * (math.log(records) + abs(log_mean))
    return up(log_add_exp(0.0, log_mean) / a1, 8.0)


@bound(
    "iteration.stop_harmonic",
    title="Random stop, harmonic form",
    gives="rdp",
    algorithms=("stop",),
    reference=_PAPER,
    locator="Theorem 26, corrected: ln n replaced by the harmonic number",
    formula="RDP(a) = a Delta^2 H_k/(n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2, else nothing",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_harmonic_rdp(*, records: int, index: int, sensitivity: float, noise_std: float, order: float) -> float:
    """A simple upper bound on the random stop's Renyi divergence at the orders where sigma is large enough.

    Args:
        records, index, sensitivity, noise_std, order: as in `stop_rdp`.

    Returns:
        RDP at the order, rounded up; inf where a (a-1) Delta^2 > 2 sigma^2.

    >>> round(stop_harmonic_rdp(records=100, index=1, sensitivity=2.0, noise_std=4.0, order=2.0), 12)
    0.025936887588
    """
    single = renyi.gaussian(order=order, shift=sensitivity, scale=noise_std)
    if (order - 1.0) * single > 1.0:
        return math.inf
    return up(2.0 * single * harmonic(records + 1 - index) / records, 8.0)


@bound(
    "iteration.stop_linear",
    title="Random stop, best linear form",
    gives="rdp",
    algorithms=("stop",),
    reference=_PAPER,
    locator="Theorem 26, corrected with the best constant",
    formula="RDP(a) = a Delta^2 C_n/(2 n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2, C_n = n ln((1/n) sum_{j<=n} e^(1/j))",
    requires=(STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_linear_rdp(*, records: int, sensitivity: float, noise_std: float, order: float) -> float:
    """The best bound on the random stop's Renyi divergence that is linear in the order, for the worst record.

    Args:
        records, sensitivity, noise_std, order: as in `stop_rdp`.

    Returns:
        RDP at the order, rounded up; inf where a (a-1) Delta^2 > 2 sigma^2.

    >>> round(stop_linear_rdp(records=100, sensitivity=2.0, noise_std=4.0, order=2.0), 10)
    0.0151810552
    """
    single = renyi.gaussian(order=order, shift=sensitivity, scale=noise_std)
    if (order - 1.0) * single > 1.0:
        return math.inf
    return up(single * stop_constant(records=records) / records, 8.0)


def stop_constant(*, records: int) -> float:
    """Return C_n = n ln((1/n) sum_{j<=n} e^(1/j)), rounded up: between H_n and H_n + 1.0782."""
    log_mean = log_sum_expm1_reciprocals(1.0, records) - math.log(records)
    return up(records * math.log1p(math.exp(log_mean)), 8.0 + 2.0 * math.log(records))


@bound(
    "iteration.stop_published",
    title="Random stop as printed",
    gives="rdp",
    kind="published",
    algorithms=("stop",),
    reference=_PAPER,
    locator="Theorem 26 as printed",
    formula="RDP(a) = a Delta^2 ln(n)/(n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2",
    requires=(STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_published_rdp(*, records: int, sensitivity: float, noise_std: float, order: float) -> float:
    """What the paper prints for the random stop, for comparison only.

    Args:
        records, sensitivity, noise_std, order: as in `stop_rdp`.

    Returns:
        The printed value; inf where its condition fails, or for n < 3, where it is not a bound.

    >>> stop_published_rdp(records=2, sensitivity=2.0, noise_std=4.0, order=2.0)
    inf
    """
    single = renyi.gaussian(order=order, shift=sensitivity, scale=noise_std)
    if records < 3 or (order - 1.0) * single > 1.0:
        return math.inf
    return stop_printed(records=records, sensitivity=sensitivity, noise_std=noise_std, order=order)


def stop_printed(*, records: int, sensitivity: float, noise_std: float, order: float) -> float:
    """Return a Delta^2 ln(n)/(n sigma^2), what the paper prints: false at n = 1, unproved at n = 2."""
    return order * (sensitivity / noise_std) ** 2 * math.log(records) / records


def stop_epsilon(*, records: int, index: int, sensitivity: float, noise_std: float, log_delta: float) -> float:
    """Return the least epsilon of `stop_log_delta` at ln delta, rounded up."""

    def profile(epsilon: float) -> float:
        return stop_log_delta(
            records=records, index=index, sensitivity=sensitivity, noise_std=noise_std, epsilon=epsilon
        )

    return Profile(profile).epsilon(log_delta).value


def mixture_factor(*, largest: float) -> float:
    """Return (e^c - 1)/c, rounded up: a mixture's Renyi divergence is at most this times the mean of its parts'.

    The best constant in Lemma 25 (which has 1 + c), when every part is at most c/(order - 1), c > 0.
    """
    return up(math.expm1(largest) / largest, 4.0)


@bound(
    "iteration.local",
    title="The record's own noisy message",
    gives="mu",
    algorithms=("local",),
    reference=_PAPER,
    locator="Lemma 27, with the exact Gaussian calibration",
    formula="mu = Delta/(b sigma)",
    requires=(INDEX_IN_RANGE,),
    assumes=("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size"),
    erratum=_CLASSIC_ERRATUM,
)
def local_mu(*, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float) -> float:
    """Even if every iterate is public, the noise of the record's own step protects it: no amplification.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pnsgd_mu`.

    Returns:
        mu, rounded up.

    >>> round(local_mu(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0), 13)
    0.5
    """
    size, _ = batch_of(records, index, batch_size)
    return ratio_up(sensitivity, size * noise_std)


@bound(
    "iteration.local_rdp",
    title="The record's own noisy message, Renyi form",
    gives="rdp",
    algorithms=("local",),
    reference=_PAPER,
    locator="Lemma 27",
    formula="RDP(a) = a Delta^2/(2 b^2 sigma^2)",
    requires=(INDEX_IN_RANGE,),
    assumes=("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size"),
    implied_by="iteration.local",
)
def local_rdp(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float, order: float
) -> float:
    """Even if every iterate is public, the record's own step is a Gaussian mechanism.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pnsgd_mu`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.

    >>> round(local_rdp(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0, order=2.0), 13)
    4.0
    """
    size, _ = batch_of(records, index, batch_size)
    return _single_rdp(size, sensitivity, noise_std, order)


@bound(
    "iteration.local_classic",
    title="Classic Gaussian calibration of the message",
    gives="epsilon",
    algorithms=("local",),
    reference=_PAPER,
    locator="Lemma 27, inside its true range",
    formula="eps = Delta sqrt(2 ln(1.25/delta))/(b sigma), if eps <= eps_max(delta)",
    requires=(INDEX_IN_RANGE,),
    assumes=("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size"),
    erratum=_CLASSIC_ERRATUM,
)
def local_classic(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float, log_delta: float
) -> float:
    """The textbook calibration sigma = Delta sqrt(2 ln(1.25/delta))/eps, read as an epsilon, where it is true.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pnsgd_mu`.
        log_delta: ln delta < 0.

    Returns:
        epsilon, rounded up; inf outside the range where it holds.

    >>> round(local_classic(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=20.0,
    ...                     log_delta=math.log(1e-5)), 12)
    0.484480526261
    """
    mu = local_mu(records=records, index=index, batch_size=batch_size, sensitivity=sensitivity, noise_std=noise_std)
    epsilon = up(mu * classic_factor(log_delta), 8.0)
    return epsilon if epsilon <= classic_epsilon_max(log_delta=log_delta) else math.inf


def classic_factor(log_delta: float) -> float:
    """Return sqrt(2 ln(1.25/delta)), to nearest: good to 2 units of roundoff."""
    return math.sqrt(2.0 * (0.22314355131420976 - log_delta))


def classic_log_delta(*, epsilon: float, log_delta: float) -> float:
    """Return ln of the delta that the classic sigma for (epsilon, delta) really has at epsilon, rounded up."""
    return gaussian.log_delta(mu=up(epsilon / classic_factor(log_delta), 4.0), epsilon=epsilon)


def classic_noise_std(*, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the classic Delta sqrt(2 ln(1.25/delta))/eps: a guarantee only for eps <= `classic_epsilon_max`."""
    return up(sensitivity * classic_factor(log_delta) / epsilon, 8.0)


def classic_epsilon_max(*, log_delta: float) -> float:
    """Return the largest epsilon for which the classic sigma is really (epsilon, delta)-DP, rounded down.

    >>> round(classic_epsilon_max(log_delta=math.log(1e-5)), 3)
    8.42
    """

    def excess(epsilon: float) -> float:
        return classic_log_delta(epsilon=epsilon, log_delta=log_delta) - log_delta

    return greatest(excess, 1e-3, 1e3)
