"""Lower bounds on every guarantee that uses only how far the gradients of two records are apart.

Such a guarantee must hold for any loss that all records share. A common curvature makes the run forget earlier noise; a
common slope reveals how many steps were made. All guarantees by the shifted-divergence theorem are of this kind, and
none can be below the values here.

Notation as in `linear_losses`; k is the number of steps from the record's own to the end of the pass, both included.
Every value rounds down.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcalc.model.loss_class import lowest_curvature
from dpcalc.model.quantities import LossClass, Permutation
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import down, log_exp1p, log_expm1, quotient_down, up
from dpcalc.theorems.conditions import (
    BALANCED,
    BATCHES_OF_ONE,
    CONVEXITY_WITHIN,
    EQUAL_MAPS,
    GAUSSIAN,
    INDEX_IN_RANGE,
    ONE_RELEASE,
    STEP_OF_SMOOTH,
    UNBOUNDED,
)
from dpcalc.theorems.lower.linear_losses import WHOLE_SPACE, gaussian_log_delta, log_average, log_sum
from dpcalc.theorems.lower.quadratic import quadratic_mu
from dpcalc.theorems.many_passes.repeated_allocation import Uses
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting

CURVED = "a lower bound: losses of one curvature common to all records, whose gradients differ by Delta"
_SLOPED = "a lower bound: linear losses with a steep slope common to all records, whose gradients differ by Delta"
_SEARCH = "the best curvature of a search"
_BLOCKS = "blocks of many steps count as one: below by a few per cent at most"
NO_SUCH_GUARANTEE = (
    "A lower bound: the exact privacy of certain losses. No guarantee that uses only how far the gradients of two "
    "records are apart can be below it. The gradients themselves may be large."
)
_NUMBER = "the last iterate reveals the number of steps"


_QUADRATIC = (INDEX_IN_RANGE, STEP_OF_SMOOTH, CONVEXITY_WITHIN, BALANCED, UNBOUNDED, EQUAL_MAPS)


_CURVED_PASS = (*PLACE, *GAUSSIAN_STEP, *CURVED_STEP, "loss_class?")
CURVED_PASSES = (*_CURVED_PASS, "epochs")


# --- a common curvature -----------------------------------------------------------------------------------------------


@theorem(
    "linear.curved",
    title="One pass over losses of the worst common curvature",
    needs=_CURVED_PASS,
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="Gaussian output, at the best curvature",
    formula="max over q of r q^(k-1) sqrt((1-q^2)/(1-q^(2l))), 1 - eta beta <= q <= 1 - eta m; r/sqrt(e k) or more "
    "where eta beta >= 1/k",
    conditions=_QUADRATIC,
    assumes=(CURVED, GAUSSIAN, ONE_RELEASE),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    weakly_convex=True,
)
def curved(run: Setting) -> Gdp:
    """Over quadratics of one curvature on the whole space the last iterate is Gaussian: every step multiplies the
    record's shift and the earlier noise by q = 1 - eta curvature. With eta beta >= 1 a step may forget everything
    before it, and then the last record has mu = r.

    >>> run = Setting(records=100, index=100, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=1.0,
    ...               smoothness=1.0, strong_convexity=0.0)
    >>> round(curved(run).mu, 9)
    2.0
    """
    return Gdp(_worst_mu(run, uses=1))


@theorem(
    "linear.curved_passes",
    title="Passes over losses of the worst common curvature",
    needs=CURVED_PASSES,
    kind="lower",
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="Gaussian output, at the best curvature",
    formula="max over m <= curvature <= beta, 1/eta (m = -beta if not convex) of multi_epoch.quadratic",
    conditions=_QUADRATIC,
    assumes=("the same fixed order in every pass", CURVED, GAUSSIAN, ONE_RELEASE),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    weakly_convex=True,
)
def curved_passes(run: Setting) -> Gdp:
    """Losses of a curvature c >= m are m-strongly convex. A larger curvature may reveal more of a late record, since
    it forgets the noise before it. The last iterate is Gaussian with a known mean and variance.
    """
    return Gdp(_worst_mu(run, uses=run.epochs))


@theorem(
    "linear.curved_released",
    title="Released passes over losses of the worst common curvature",
    needs=CURVED_PASSES,
    kind="lower",
    algorithms=("cyclic-released",),
    reference="dpcalc",
    locator="Gaussian passes, at the best curvature, composed",
    formula="sqrt(E) times linear.curved",
    conditions=_QUADRATIC,
    assumes=("the same fixed order in every pass", CURVED, GAUSSIAN, "the iterate after every pass is released"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    weakly_convex=True,
)
def curved_released(run: Setting) -> Gdp:
    """Given its start, every pass over quadratics of one curvature is a Gaussian, and the record moves its mean by the
    same amount from any start. Independent Gaussians compose exactly.
    """
    return Gdp(quotient_down((_worst_mu(run, uses=1), math.sqrt(run.epochs)), (), 8.0))


def _worst_mu(run: Setting, uses: int) -> float:
    """Return the largest mu over the allowed common curvatures."""

    def at(curvature: float) -> float:
        uses_of_record = Uses(run.sensitivity, run.own_batch, run.noise_std, run.period, run.steps_to_end, uses)
        return quadratic_mu(uses_of_record, run.step_size * curvature)

    loss_class = run.known.get("loss_class", LossClass.CONVEX_SMOOTH)
    least = lowest_curvature(loss_class, run.smoothness, run.strong_convexity)
    best = _largest_over_curvatures(at, run.step_size, run.smoothness, max(least, 0.0))
    return max(best, largest(lambda x: at(-x), 0.0, -least, 48, 40)) if least < 0.0 else best


def _largest_over_curvatures(
    at: Callable[[float], float], step_size: float, smoothness: float, strong_convexity: float, tries: int = 48,
    rounds: int = 40,
) -> float:  # fmt: skip
    """Return the largest value found over the allowed curvatures; none beyond 1/eta has a larger one."""
    if smoothness == 0.0:
        return at(strong_convexity)
    steepest = max(strong_convexity, min(smoothness, down(1.0 / step_size, 4.0)))
    return largest(at, strong_convexity, steepest, tries, rounds)


def largest(at: Callable[[float], float], low: float, high: float, tries: int, rounds: int) -> float:
    """Return the largest value found between two ends: on a grid of equal ratios, then by golden section."""
    floor = max(low, high * 1e-16, 5e-324)
    if not floor < high:
        return max(at(low), at(high))
    scale = math.log(high) - math.log(floor)
    points = [min(high, max(low, high * math.exp(-scale * i / tries))) for i in range(tries + 1)]
    values = [at(x) for x in points]
    i = max(range(len(points)), key=values.__getitem__)
    best = max(values[i], at(low))
    a, b = points[min(i + 1, tries)], points[max(i - 1, 0)]
    golden = 0.6180339887498949
    x, y = b - golden * (b - a), a + golden * (b - a)
    at_x, at_y = at(x), at(y)
    for _ in range(rounds):
        if at_x > at_y:
            b, y, at_y = y, x, at_x
            x = b - golden * (b - a)
            at_x = at(x)
        else:
            a, x, at_x = x, y, at_y
            y = a + golden * (b - a)
            at_y = at(y)
    return max(best, at_x, at_y)


# --- a common slope, which reveals the number of steps ----------------------------------------------------------------


@theorem(
    "linear.stop",
    title="Random stop over linear losses whose common slope reveals the number of steps",
    needs=("records", "index", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("stop",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/n) sum_{j=t}^{n} delta_G(eps; Delta/(sigma sqrt(j)))",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE, *WHOLE_SPACE),
    assumes=(_SLOPED, GAUSSIAN, ONE_RELEASE, _NUMBER),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_BLOCKS,
    weakly_convex=True,
)
def stop(run: Setting) -> Profile:
    """All gradients have the same component in one extra direction. In the limit of a large component, that coordinate
    of the last iterate reveals the number of steps j. Given j, the last iterate is Gaussian with the noise of all j
    steps. For the first record this is `iteration.stop`, so no bound by the gradient difference improves on it.

    >>> round(stop(Setting(records=100, index=1, sensitivity=2.0, noise_std=4.0)).profile(0.1), 2)
    -4.59
    """
    return _average_over_steps(run, first=run.index, lengths=run.records)


@theorem(
    "linear.skip",
    title="Random skip over linear losses whose common slope reveals the number of steps",
    needs=("records", "index", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("skip",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/(h+1)) sum_{j=n+1-min(t,h+1)}^{n} delta_G(eps; Delta/(sigma sqrt(j))), h = floor(n/2)",
    conditions=(INDEX_IN_RANGE, BATCHES_OF_ONE, *WHOLE_SPACE),
    assumes=(_SLOPED, GAUSSIAN, ONE_RELEASE, _NUMBER),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_BLOCKS,
    weakly_convex=True,
)
def skip(run: Setting) -> Profile:
    """All gradients have the same component in one extra direction, and in the limit of a large component the last
    iterate reveals how many records were skipped. Given that, it is Gaussian with the noise of all steps made, and the
    record moved it if it was not skipped.
    """
    lengths = run.records // 2 + 1
    return _average_over_steps(run, first=run.records + 1 - min(run.index, lengths), lengths=lengths)


def _average_over_steps(run: Setting, first: int, lengths: int) -> Profile:
    """Return epsilon -> ln of (1/lengths) sum_{j=first}^{n} delta_G(eps; r/sqrt(j)), rounded down."""
    ratio = _ratio(run)

    def profile(epsilon: float) -> float:
        total = log_sum(lambda low, high: gaussian_log_delta(ratio / math.sqrt(high), epsilon), first, run.records)
        return log_average(total, math.log(lengths))

    return Profile(profile)


def _ratio(run: Setting) -> float:
    """Return r = Delta/sigma."""
    return quotient_down((run.sensitivity,), (run.noise_std,), 4.0)


@theorem(
    "linear.shuffled_stop",
    title="Random order and random stop over linear losses whose common slope reveals the number of steps",
    needs=("records", "batch_size", *GAUSSIAN_STEP, "permutation"),
    kind="lower",
    algorithms=("shuffled-stop",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/n) sum_{j=1}^{n} p delta_G(eps; Delta/(sigma sqrt(j))), p = j/n; with ln(1 + (e^eps - 1)/p) for eps "
    "where the order is secret",
    conditions=(BATCHES_OF_ONE, *WHOLE_SPACE),
    assumes=(_SLOPED, GAUSSIAN, "the order is published, unless it is secret", _NUMBER),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_BLOCKS,
    slow=True,
    weakly_convex=True,
)
def shuffled_stop(run: Setting) -> Profile:
    """A large common component of the gradients reveals the number of steps j. A published order reveals whether the
    record was used, which has probability p = j/n; given both, the last iterate is Gaussian with the noise of j steps.
    In a secret order the pair is a Gaussian, and the mixture of that Gaussian (1 - p) and a shifted one (p).
    """
    n, ratio, secret = run.records, _ratio(run), run.permutation == Permutation.SECRET

    def profile(epsilon: float) -> float:
        log_excess = log_expm1(epsilon) if secret else -math.inf

        def term(low: int, high: int) -> float:
            log_share = math.log(low) - math.log(n)
            e = epsilon
            if log_excess > -math.inf:
                e = up(log_exp1p(log_excess - log_share), 16.0 + 4.0 * abs(log_share))
            return gaussian_log_delta(ratio / math.sqrt(high), e) + log_share

        return log_average(log_sum(term, 1, n), math.log(n))

    return Profile(profile)
