"""A pass that stops after a uniformly random number of steps, which stays hidden (Feldman et al. 2018, Theorem 26).

A pass that skips a uniformly random prefix of 0..h records, h = floor(n/2) (Feldman et al. 2018, Theorem 24).

Notation as in `iteration`. Every value is rounded up.
"""

from __future__ import annotations

import math

from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Profile, Rdp
from dpcalc.numerics.floats import down, log_add_exp, log_exp1p, log_expm1, ratio_up, up
from dpcalc.numerics.sums import harmonic_up, log_sum_expm1_reciprocals_up, log_sum_hockey_sticks_up
from dpcalc.theorems.conditions import BATCHES_OF_ONE, INDEX_IN_RANGE, STEP_WITHIN
from dpcalc.theorems.one_pass.iteration import PAPER, PASS, SinglePass, own_step
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, Setting

_STOP = (*PASS, "the pass stops after a uniformly random number of steps, which stays hidden")
_STOP_ERRATUM = (
    "The paper's proof bounds 1 + 1/2 + ... + 1/m by ln m, which is smaller. Its result fails for n = 1, is not "
    "implied for n = 2, and holds for n >= 3 by another proof; the intermediate per-record form fails near the end of "
    "the pass. The exact mixture needs no condition on sigma."
)


@theorem(
    "iteration.stop",
    title="Random stop, exact average of privacy profiles",
    needs=("records", "index", *GAUSSIAN_STEP),
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 26, corrected and in mu-GDP form",
    formula="delta(eps) = (1/n) sum_{j=1}^{k} delta_G(eps; Delta/(sigma sqrt(j)))",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop(run: SinglePass) -> Profile:
    """Stopping at a random step averages over the number of noisy steps after the record's own, and over whether it is
    used.

    The evaluation time does not grow with the number of records.

    >>> run = SinglePass(records=100, index=100, sensitivity=2.0, noise_std=4.0)
    >>> round(stop(run).profile(0.1), 11)
    -6.44238419207
    """
    ratio, log_records = ratio_up(run.sensitivity, run.noise_std), math.log(run.records)

    def profile(epsilon: float) -> float:
        if ratio > 1e90:
            return 0.0
        total = log_sum_hockey_sticks_up(epsilon, max(ratio, 1e-290), run.steps_to_end)
        return min(0.0, up(total - log_records, 4.0) + 2.0**-52 * log_records)

    return Profile(profile)


@theorem(
    "iteration.stop_rdp",
    title="Random stop, exact average of Renyi divergences",
    needs=("records", "index", *GAUSSIAN_STEP),
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 26, corrected",
    formula="RDP(a) = ln(1 + (1/n) sum_{j=1}^{k} (e^(x/j) - 1))/(a-1), x = a(a-1) Delta^2/(2 sigma^2)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_rdp(run: SinglePass) -> Rdp:
    """The Renyi divergence after a random stop is at most the log-mean-exp of those at each stopping time.

    There is no condition on sigma or the order.

    >>> run = SinglePass(records=2, index=1, sensitivity=2.0, noise_std=2.0)
    >>> round(stop_rdp(run).curve(2.0), 13)
    0.7809298036202
    """
    steps, log_records = run.steps_to_end, math.log(run.records)

    def curve(order: float) -> float:
        single = own_step(run, order)
        if order == 1.0:
            return up(single * harmonic_up(steps) / run.records, 8.0)
        a1 = order - 1.0
        x = up(a1 * single, 4.0)
        if math.isinf(x):
            return single
        log_mean = log_sum_expm1_reciprocals_up(max(x, 1e-300), steps) - log_records
        log_mean += 2.0**-51 * (log_records + abs(log_mean))
        return up(log_add_exp(0.0, log_mean) / a1, 8.0)

    return Rdp(curve)


@theorem(
    "iteration.stop_harmonic",
    title="Random stop, harmonic form",
    needs=("records", "index", *GAUSSIAN_STEP),
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 26, corrected: ln n replaced by the harmonic number",
    formula="RDP(a) = a Delta^2 H_k/(n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2, else nothing",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_harmonic(run: SinglePass) -> Rdp:
    """A simple upper bound on the random stop's Renyi divergence at orders for which sigma is large enough.

    It is infinite where a (a-1) Delta^2 > 2 sigma^2.

    >>> run = SinglePass(records=100, index=1, sensitivity=2.0, noise_std=4.0)
    >>> round(stop_harmonic(run).curve(2.0), 12)
    0.025936887588
    """
    total = harmonic_up(run.steps_to_end)

    def curve(order: float) -> float:
        single = own_step(run, order)
        return math.inf if _too_large(single, order) else up(2.0 * single * total / run.records, 8.0)

    return Rdp(curve)


@theorem(
    "iteration.stop_linear",
    title="Random stop, best linear form",
    needs=("records", *GAUSSIAN_STEP),
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 26, corrected with the best constant",
    formula="RDP(a) = a Delta^2 C_n/(2 n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2, C_n = n ln((1/n) sum_{j<=n} e^(1/j))",
    conditions=(STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_linear(run: Setting) -> Rdp:
    """The best bound on the random stop's Renyi divergence that is linear in the order, for the worst record.

    It is infinite where a (a-1) Delta^2 > 2 sigma^2.

    >>> run = Setting(records=100, sensitivity=2.0, noise_std=4.0)
    >>> round(stop_linear(run).curve(2.0), 10)
    0.0151810552
    """
    constant = stop_constant(records=run.records)

    def curve(order: float) -> float:
        single = own_step(run, order)
        return math.inf if _too_large(single, order) else up(single * constant / run.records, 8.0)

    return Rdp(curve)


def stop_constant(*, records: int) -> float:
    """Return C_n = n ln((1/n) sum_{j<=n} e^(1/j)), rounded up: between H_n and H_n + 1.0782."""
    log_mean = log_sum_expm1_reciprocals_up(1.0, records) - math.log(records)
    return up(records * math.log1p(math.exp(log_mean)), 8.0 + 2.0 * math.log(records))


@theorem(
    "iteration.stop_published",
    title="Random stop as printed",
    needs=("records", *GAUSSIAN_STEP),
    kind="published",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 26 as printed",
    formula="RDP(a) = a Delta^2 ln(n)/(n sigma^2) if a(a-1) Delta^2 <= 2 sigma^2",
    conditions=(STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_STOP,
    erratum=_STOP_ERRATUM,
)
def stop_published(run: Setting) -> Rdp:
    """The paper's printed bound for the random stop, for comparison only.

    It is infinite where its condition fails, and for n < 3, where it is not a bound.

    >>> run = Setting(records=2, sensitivity=2.0, noise_std=4.0)
    >>> stop_published(run).curve(2.0)
    inf
    """

    def curve(order: float) -> float:
        return math.inf if run.records < 3 or _too_large(own_step(run, order), order) else stop_printed(run, order)

    return Rdp(curve)


def stop_printed(run: Setting, order: float) -> float:
    """Return the printed a Delta^2 ln(n)/(n sigma^2): false at n = 1, unproved at n = 2."""
    return order * (run.sensitivity / run.noise_std) ** 2 * math.log(run.records) / run.records


def _too_large(single: float, order: float) -> bool:
    """Return whether the RDP of one step is beyond the simple forms: a (a-1) Delta^2 > 2 sigma^2."""
    return (order - 1.0) * single > 1.0


_SKIP = (*PASS, "a uniform random prefix of 0..floor(n/2) records is skipped")


@theorem(
    "iteration.skip",
    title="Random skip, exact mixture",
    needs=("records", "index", *GAUSSIAN_STEP),
    algorithms=("skip",),
    reference=PAPER,
    locator="Theorem 24, sharpened by the probability that the record is used",
    formula="delta(eps) = p delta_G(eps; mu_t), p = min(t, h+1)/(h+1), h = floor(n/2)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_SKIP,
)
def skip(run: SinglePass) -> Profile:
    """With a random skip the record at ``index`` is used only with probability p; nothing else changes.

    >>> run = SinglePass(records=11, index=6, sensitivity=2.0, noise_std=3.0)
    >>> round(skip(run).profile(0.5), 9)
    -5.401634433
    """
    mu, log_used = ratio_up(run.sensitivity, run.noise_std, run.steps_to_end), _log_used(run.records, run.index)
    return Profile(
        lambda epsilon: min(0.0, up(gaussian.log_delta(mu=mu, epsilon=epsilon) + log_used, 2.0)), whole_mu=mu
    )


@theorem(
    "iteration.skip_rdp",
    title="Random skip, Renyi form of the mixture",
    needs=("records", "index", *GAUSSIAN_STEP),
    algorithms=("skip",),
    reference=PAPER,
    locator="Theorem 24, sharpened by the probability that the record is used",
    formula="RDP(a) = ln(1 + p (e^((a-1) eps_t) - 1))/(a-1), eps_t the RDP of Theorem 23",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, BATCHES_OF_ONE),
    assumes=_SKIP,
)
def skip_rdp(run: SinglePass) -> Rdp:
    """Skipping a random prefix mixes the record's Renyi divergence with none at all, by joint convexity.

    >>> run = SinglePass(records=10, index=3, sensitivity=2.0, noise_std=1.0)
    >>> round(skip_rdp(run).curve(2.0), 13)
    0.2809298036202
    """
    used, steps = _used(run.records, run.index), float(run.steps_to_end)

    def curve(order: float) -> float:
        full = ratio_up(own_step(run, order), steps)
        if order == 1.0 or math.isinf(full):
            return up(used * full, 4.0)
        a1 = order - 1.0
        inner = log_expm1(a1 * full) + math.log(used)
        if inner == -math.inf:
            return up(used * full, 4.0)
        return up(log_exp1p(inner + 2.0**-50 * (1.0 + abs(inner))) / a1, 8.0)

    return Rdp(curve)


def skip_noise_std(*, records: int, index: int, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the least sigma for which `skip` is at most ln delta at epsilon, rounded up; 0 if delta >= p."""
    target = down(log_delta - _log_used(records, index), 2.0)
    if target >= 0.0:
        return 0.0
    return pnsgd_noise_std(steps=records + 1 - index, sensitivity=sensitivity, epsilon=epsilon, log_delta=target)


def pnsgd_noise_std(*, steps: int, sensitivity: float, epsilon: float, log_delta: float) -> float:
    """Return the least sigma for which `pnsgd`, one record a step, gives (epsilon, delta) at k = steps, rounded up."""
    single = gaussian.noise_std(sensitivity=sensitivity, epsilon=epsilon, log_delta_target=log_delta)
    return up(single / math.sqrt(steps), 8.0)


def _used(records: int, index: int) -> float:
    """Return the probability that the record is not skipped."""
    h = records // 2
    return min(index, h + 1) / (h + 1)


def _log_used(records: int, index: int) -> float:
    """Return ln of `_used`, rounded up; computed from the complement if it is near 0."""
    h = records // 2
    skipped = max(0, h + 1 - index)
    exact = math.log1p(-skipped / (h + 1)) if 2 * skipped < h else math.log(_used(records, index))
    return min(0.0, up(exact, 6.0))
