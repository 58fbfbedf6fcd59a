"""One fixed-order pass, with constant or scheduled steps: amplification by iteration (Feldman et al. 2018).

Notation of the formulas: Delta is the sensitivity (2L when a record is replaced, L when it is replaced by a null
record), sigma the noise, n the number of records, t the index, b the size of the record's own batch, k the number of
steps from the record's own to the last (n + 1 - t in steps of one record), a >= 1 a Renyi order. All privacy statements
hold in both directions. Every value is rounded up.

Also here: the privacy from the noise of a record's own step alone, with every iterate public (Feldman et al. 2018,
Lemma 27).

The record is used once, at step t, and moves the iterate by at most eta_t Delta. In units of its own step, the noise of
that step and all later ones amounts to the variance R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2, P_j = prod_{u>j}
c_u.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.notions import conversions, renyi
from dpcalc.notions.guarantee import Gdp, Point, Rdp
from dpcalc.numerics.floats import MAX, UNIT, Array, np, ratio_up, up
from dpcalc.theorems.conditions import (
    CONVEX_SMOOTH,
    CONVEXITY_WITHIN,
    DOMAIN,
    EQUAL_MAPS,
    FIXED_ORDER,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    INDEX_IN_RANGE,
    LIPSCHITZ_CHAIN,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    STRONGLY_CONVEX,
)
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting, decay_rate

if TYPE_CHECKING:
    from dpcalc.model.chain import Chain

PAPER = "feldman2018"
PASS = (FIXED_ORDER, CONVEX_SMOOTH, GAUSSIAN, ONE_RELEASE, NO_CLIPPING)
_SMALLEST = 5e-324
"""The smallest positive double, in place of values that would underflow."""


class SinglePass(Setting):
    """A pass in steps of one record each."""

    @property
    def steps_to_end(self) -> int:
        """k, the number of steps from the record's own to the last, both included."""
        return self.records + 1 - self.index


def own_message(run: Setting, order: float) -> float:
    """Return the RDP of the record's own step in its batch, rounded up."""
    return renyi.gaussian(order=order, shift=run.sensitivity, scale=run.own_batch * run.noise_std)


def own_step(run: SinglePass | Setting, order: float) -> float:
    """Return the RDP of the record's own step alone, rounded up."""
    return renyi.gaussian(order=order, shift=run.sensitivity, scale=run.noise_std)


# --- one pass ---------------------------------------------------------------------------------------------------------


@theorem(
    "iteration.pnsgd",
    title="Amplification by iteration, mu-GDP form",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 23, in the Gaussian-DP form of shifted interpolation",
    formula="mu = Delta / (b sigma sqrt(k))",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=PASS,
)
def pnsgd(run: Setting) -> Gdp:
    """The last iterate of one noisy pass is mu-GDP for the record at ``index``: the k steps from its own to the last
    share its shift.

    >>> run = Setting(records=100, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0)
    >>> round(pnsgd(run).mu, 13)
    0.2
    """
    return Gdp(ratio_up(run.sensitivity, run.own_batch * run.noise_std, run.steps_to_end))


@theorem(
    "iteration.pnsgd_rdp",
    title="Amplification by iteration, Renyi form",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("pnsgd",),
    reference=PAPER,
    locator="Theorem 23",
    formula="RDP(a) = a Delta^2 / (2 b^2 sigma^2 k)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN),
    assumes=PASS,
    implied_by="iteration.pnsgd",
)
def pnsgd_rdp(run: Setting) -> Rdp:
    """The last iterate of one noisy pass satisfies Renyi DP for the record at ``index``; the mu-GDP form of the same
    bound implies it and gives a smaller epsilon.

    >>> run = Setting(records=100, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0)
    >>> round(pnsgd_rdp(run).curve(2.0), 13)
    0.04
    """
    steps = float(run.steps_to_end)
    return Rdp(lambda order: ratio_up(own_message(run, order), steps))


@theorem(
    "iteration.pnsgd_contraction",
    title="Amplification by iteration with strong convexity",
    needs=(*PLACE, *GAUSSIAN_STEP, *CURVED_STEP),
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="optimal shift allocation for one use (shifted interpolation)",
    formula="mu = Delta/(b sigma) c^(k-1) sqrt((1-c^2)/(1-c^(2k))), c = max(|1 - eta m|, |1 - eta beta|)",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, STRONGLY_CONVEX, EQUAL_MAPS),
    assumes=(FIXED_ORDER, "every loss is strongly convex and smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING),
)
def pnsgd_contraction(run: Setting) -> Gdp:
    """With strongly convex losses every later step contracts the record's trace, so it fades geometrically.

    Where mu would underflow it is the smallest positive double.

    >>> run = Setting(records=10, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=0.5, smoothness=1.0,
    ...               strong_convexity=1.0)
    >>> round(pnsgd_contraction(run).mu, 12)
    0.003382913347
    """
    ratio, steps = ratio_up(run.sensitivity, run.own_batch * run.noise_std), run.steps_to_end
    return Gdp(_faded(ratio, decay_rate(run.step_size, run.smoothness, run.strong_convexity), steps - 1, steps))


@theorem(
    "iteration.pnsgd_domain",
    title="Amplification by iteration on a bounded domain",
    needs=(*PLACE, "noise_std", *CURVED_STEP, "diameter"),
    algorithms=("pnsgd",),
    reference="bok2024",
    locator="restart after the record's step, one use",
    formula="mu = D/(eta sigma) c^(k-1) sqrt((1-c^2)/(1-c^(2(k-1)))), or D/(eta sigma sqrt(k-1)) at c = 1",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, EQUAL_MAPS),
    assumes=(*PASS, DOMAIN),
)
def pnsgd_domain(run: Setting) -> Gdp:
    """Right after the record's step the two runs are at most a diameter apart, and the later steps hide that distance.

    mu is infinite for the last step, since no step follows.

    >>> run = Setting(records=101, index=1, batch_size=1, noise_std=1.0, step_size=0.5, smoothness=1.0,
    ...               strong_convexity=0.0, diameter=0.5)
    >>> round(pnsgd_domain(run).mu, 13)
    0.1
    """
    later = run.steps_to_end - 1
    if later == 0:
        return Gdp(math.inf)
    ratio = up(run.diameter / run.step_size / run.noise_std, 4.0)
    return Gdp(_faded(ratio, decay_rate(run.step_size, run.smoothness, run.strong_convexity), later, later))


def _faded(ratio: float, rate: float, lag: int, steps: int) -> float:
    """Return ratio c^lag sqrt((1 - c^2)/(1 - c^(2 steps))) for c = exp(-rate), rounded up (ratio/sqrt(steps) at c = 1).

    The GDP parameter of one shift (in units of the noise of a step), spent optimally over ``steps`` steps, with ``lag``
    contractions between the shift and the end.
    """
    if rate == 0.0:
        return up(ratio / math.sqrt(steps), 8.0)
    if math.isinf(rate):
        return ratio if lag == 0 else _SMALLEST
    spread = math.expm1(-2.0 * rate) / math.expm1(-2.0 * rate * steps)
    exponent = min(rate * lag, 1500.0)
    quarter = math.exp(-0.25 * exponent)  # four factors, none of them subnormal
    value = ratio * quarter * quarter * math.sqrt(spread) * quarter * quarter
    return up(max(value, _SMALLEST), 32.0 + 4.0 * exponent)


_CLASSIC_ERRATUM = (
    "The paper uses the classic calibration for every epsilon. It is false for large epsilon: at delta = 1e-5 it holds "
    "exactly for epsilon <= 8.42. Past that range the row is withheld."
)

_MESSAGE = ("order and iterates may all be public", GAUSSIAN, "no convexity, no smoothness, any step size")


@theorem(
    "iteration.local",
    title="The record's own noisy message",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27, with the exact Gaussian calibration",
    formula="mu = Delta/(b sigma)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    erratum=_CLASSIC_ERRATUM,
    public_sums=True,
)
def local(run: Setting) -> Gdp:
    """Even if every iterate is public, the noise of the record's own step protects it: no amplification.

    >>> run = Setting(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0)
    >>> round(local(run).mu, 13)
    0.5
    """
    return Gdp(ratio_up(run.sensitivity, run.own_batch * run.noise_std))


@theorem(
    "iteration.local_rdp",
    title="The record's own noisy message, Renyi form",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27",
    formula="RDP(a) = a Delta^2/(2 b^2 sigma^2)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    implied_by="iteration.local",
    public_sums=True,
)
def local_rdp(run: Setting) -> Rdp:
    """Even if every iterate is public, the record's own step is a Gaussian mechanism.

    >>> run = Setting(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=1.0)
    >>> round(local_rdp(run).curve(2.0), 13)
    4.0
    """
    return Rdp(lambda order: own_message(run, order))


@theorem(
    "iteration.local_classic",
    title="Classic Gaussian calibration of the message",
    needs=(*PLACE, *GAUSSIAN_STEP),
    algorithms=("local",),
    reference=PAPER,
    locator="Lemma 27, inside its true range",
    formula="eps = Delta sqrt(2 ln(1.25/delta))/(b sigma), if eps <= eps_max(delta)",
    conditions=(INDEX_IN_RANGE,),
    assumes=_MESSAGE,
    erratum=_CLASSIC_ERRATUM,
    public_sums=True,
)
def local_classic(run: Setting) -> Point:
    """The textbook calibration sigma = Delta sqrt(2 ln(1.25/delta))/eps, solved for epsilon, in the range where it is
    true.

    It is infinite outside that range.

    >>> run = Setting(records=1, index=1, batch_size=1, sensitivity=2.0, noise_std=20.0)
    >>> round(local_classic(run).rule(math.log(1e-5)), 12)
    0.484480526261
    """
    mu = local(run).mu

    def rule(log_delta: float) -> float:
        epsilon = up(mu * conversions.factor(log_delta), 8.0)
        return epsilon if epsilon <= conversions.epsilon_max(log_delta) else math.inf

    return Point(rule)


@theorem(
    "scheduled.pnsgd",
    title="Amplification by iteration with a schedule, mu-GDP form",
    needs=("schedule", "index", *GAUSSIAN_STEP),
    algorithms=("pnsgd",),
    reference="feldman2018",
    locator="Theorem 22 for one use with the optimal shifts, per-step step sizes and noise",
    formula="mu^2 = (P_t eta_t Delta)^2/sum_{j>=t} P_j^2 eta_j^2 sigma_j^2, P_j = prod_{u>j} c_u",
    conditions=(INDEX_IN_RANGE, LIPSCHITZ_CHAIN, GAUSSIAN_NOISE),
    assumes=(FIXED_ORDER, CONVEX_SMOOTH + " in every step", GAUSSIAN, ONE_RELEASE, NO_CLIPPING),
    weakly_convex=True,
)
def scheduled_pnsgd(run: Setting) -> Gdp:
    """With a step size and noise for every step, the shift of the record's step is spent on all the noise that follows.

    mu is infinite if it exceeds the doubles.
    """
    mu = _at_unit_noise(run.schedule, run.index, run.sensitivity) / run.noise_std
    return Gdp(up(mu, 4.0) if mu < MAX else math.inf)


def _at_unit_noise(chain: Chain, index: int, sensitivity: float) -> float:
    """Return mu for the schedule's noise with a multiplier of 1, rounded up."""
    own = slice(index - 1, None)
    later = chain.contraction[index:]
    spread = float(remaining_variance(chain.step_size[own], chain.noise[own], chain.contraction[own])[0])
    shift = float(chain.step_size[index - 1]) * sensitivity
    if spread == 0.0 or math.isinf(shift):
        return math.inf
    # Per step of the recursion: two roundings each for the variance and the quotients, one for the sum; the root halves
    # them.
    slack = 4.0 * (len(later) + 1) + 16.0 if (later != 1.0).any() else 24.0
    mu = max(shift, 5e-324) / math.sqrt(spread)
    return up(mu, slack) if mu < MAX else math.inf


def worst_index(chain: Chain) -> int:
    """Return the 1-based step at which one use costs the most (the last such step)."""
    spread = remaining_variance(chain.step_size, chain.noise, chain.contraction)
    with np.errstate(over="ignore", divide="ignore"):
        ratio = chain.step_size / np.sqrt(spread)
    return len(ratio) - int(np.argmax(ratio[::-1]))


def remaining_variance(step_size: Array, noise_std: Array, contraction: Array) -> Array:
    """Return R_t = sum_{j>=t} (P_j/P_t)^2 eta_j^2 sigma_j^2 for every t, shape (T,), within 8 (T - t + 2) units.

    If every later contraction is 1, the sums are exact to one rounding. After a step that forgets everything the
    variance is so large that mu is nearly 0.
    """
    with np.errstate(over="ignore", under="ignore"):
        # A smaller variance is safe: underflow is lost and overflow is cut.
        variance = np.minimum(np.square(step_size * noise_std), MAX / (4.0 * len(step_size)))
    if (contraction[1:] == 1.0).all():
        return _exact_suffix_sums(variance)
    following = [*contraction[1:].tolist(), 1.0]
    spread, result = 0.0, np.empty(len(variance))
    for t in range(len(variance) - 1, -1, -1):
        c = following[t]
        spread = min(spread / c / c, MAX / 4.0) if c > 0.0 else MAX / 4.0
        spread += float(variance[t])
        result[t] = spread
    return result


def _exact_suffix_sums(values: Array) -> Array:
    """Return suffix sums of non-negative values, in two doubles each, so that 1e7 of them lose no visible digits."""
    total, error = 0.0, 0.0
    result: Array = np.empty(len(values))
    for t, value in enumerate(reversed(values.tolist())):
        s = total + value
        b = s - total
        error += (total - (s - b)) + (value - b)
        total = s
        result[len(values) - 1 - t] = total + error
    return result * (1.0 - 4.0 * UNIT)
