"""A pass that skips a uniformly random prefix of 0..h records, h = floor(n/2) (Feldman et al. 2018, Theorem 24).

Notation as in `iteration`. Every value is rounded up.
"""

from __future__ import annotations

import math

from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Profile, Rdp
from dpcalc.numerics.floats import down, ratio_up, up
from dpcalc.numerics.logspace import log_exp1p, log_expm1
from dpcalc.theorems.conditions import BATCHES_OF_ONE, INDEX_IN_RANGE, STEP_WITHIN
from dpcalc.theorems.one_pass.iteration import PAPER, PASS, SinglePass, own_step
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP

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
    """Skipping a random prefix uses the record at ``index`` with probability p only, and otherwise changes nothing.

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
    """Return the probability that the skipped prefix leaves the record in."""
    h = records // 2
    return min(index, h + 1) / (h + 1)


def _log_used(records: int, index: int) -> float:
    """Return ln of `_used`, rounded up; from the complement where it is near 0."""
    h = records // 2
    skipped = max(0, h + 1 - index)
    exact = math.log1p(-skipped / (h + 1)) if 2 * skipped < h else math.log(_used(records, index))
    return min(0.0, up(exact, 6.0))
