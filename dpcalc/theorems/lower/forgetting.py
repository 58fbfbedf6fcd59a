"""Lower bounds from losses that forget the noise before a record and keep the record's effect.

In a fixed order every record may have its own curvature. Those before the record, and the record itself, have a large
one: each of their steps multiplies the iterate before it by q_1, and the noise of c steps before the record's leaves
S_1 = q_1^2 + ... + q_1^(2c) of a step's variance. Those after it have the least allowed curvature, and multiply by q_2
= 1 - eta m: relative to the record's shift, the noise of its own step and of the k - 1 steps after it adds up to S_2 =
1 + q_2^-2 + ... + q_2^(-2(k-1)). So

    mu = r/sqrt(S_1 + S_2),   r = Delta/(b sigma).

With q_1 = 0 and m = 0 that is r/sqrt(k), which `iteration.pnsgd` promises. Every value rounds down.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import UNIT, down, quotient_down, up
from dpcalc.theorems.conditions import (
    BALANCED,
    BATCHES_OF_ONE,
    CONVEXITY_WITHIN,
    EQUAL_MAPS,
    GAUSSIAN,
    INDEX_IN_RANGE,
    ONE_RELEASE,
    STEP_WITHIN,
    UNBOUNDED,
)
from dpcalc.theorems.lower.common_losses import largest
from dpcalc.theorems.lower.linear_losses import gaussian_log_delta, log_average, log_sum
from dpcalc.theorems.lower.random_linear_losses import times
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import CURVED_STEP, GAUSSIAN_STEP, PLACE, Setting

_CLASS = (INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED, EQUAL_MAPS)
_FORGETS = "a lower bound: quadratic losses, of one curvature up to the record and of the least one behind it"
_NUMBER = "the last iterate reveals the number of steps, by a steep common slope in another direction"
_ONE_RECORD = (
    "A lower bound: the exact privacy of certain losses. No guarantee that uses only how far the two gradients of the "
    "one record are apart can be below it. The gradients themselves may be large, and differ from record to record."
)


SLOPED_CURVE = ("records", "index", *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?")


class _Maps(NamedTuple):
    """The factors that steps may have.

    Attributes:
        least, most: q_1 may be anything between; least > most if rounding leaves nothing.
        shrunk: eta m, rounded up.
    """

    least: float
    most: float
    shrunk: float

    @classmethod
    def of(cls, run: Setting) -> _Maps:
        """Return the factors of a run."""
        steepest = math.nextafter(1.0 - down(run.step_size * run.smoothness, 4.0), math.inf)
        shrunk = up(run.step_size * run.strong_convexity, 4.0) if run.strong_convexity else 0.0
        most = math.nextafter(1.0 - shrunk, 0.0) if shrunk else 1.0
        return cls(max(0.0, steepest), most, shrunk)

    def behind(self, steps: int) -> float:
        """Return S_2 for k = ``steps``, rounded up."""
        if steps == 1 or not self.shrunk:
            return float(steps)
        if self.shrunk > 1.0 - 1e-9:
            return math.inf
        rate = -2.0 * math.log1p(-self.shrunk)
        if rate * steps > 600.0:
            return math.inf
        slack = 64.0 + 16.0 * rate * steps / (1.0 - self.shrunk)
        return math.expm1(rate * steps) / math.expm1(rate) * (1.0 + UNIT * slack)


def _before(q: float, steps: int) -> float:
    """Return S_1 for c = ``steps``, rounded up."""
    if q == 0.0 or steps == 0:
        return 0.0
    rate = -2.0 * math.log(q)
    whole = float(steps) if rate == 0.0 else math.expm1(-rate * steps) / math.expm1(-rate)
    return q * q * whole * (1.0 + 64.0 * UNIT)


@theorem(
    "linear.forgetting",
    title="One pass over losses that forget the noise before the record",
    needs=(*PLACE, *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="Gaussian output, with the best curvature of every record",
    formula="mu = r/sqrt(S_1 + S_2), S_1 = sum_{i=1}^{l-k} q_1^(2i), S_2 = sum_{i=0}^{k-1} q_2^(-2i), q_1 = max(0, 1 - "
    "eta beta), q_2 = 1 - eta m",
    conditions=_CLASS,
    assumes=(_FORGETS, GAUSSIAN, ONE_RELEASE),
    caution=_ONE_RECORD,
    by_difference=True,
)
def forgetting(run: Setting) -> Gdp:
    """The last iterate is Gaussian. With eta beta >= 1 and m = 0 the bound of `iteration.pnsgd` is attained for every
    record.

    >>> run = Setting(records=100, index=76, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=1.0,
    ...               smoothness=1.0, strong_convexity=0.0)
    >>> round(forgetting(run).mu, 9)
    0.4
    """
    return Gdp(_one_pass(run))


@theorem(
    "linear.forgetting_passes",
    title="Passes over losses that forget the noise before the record",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="Gaussian output, with the best curvatures before the record and behind it",
    formula="max over q_1 of r T/sqrt(S_1 + S_2) as in linear.forgetting, T^2 = (1+Q) (1-Q^E)/((1-Q) (1+Q^E)), "
    "Q = q_1^(l-k+1) q_2^(k-1)",
    conditions=_CLASS,
    assumes=("the same fixed order in every pass", _FORGETS, GAUSSIAN, ONE_RELEASE),
    caution=_ONE_RECORD,
    by_difference=True,
    slack="the best curvature of a search",
)
def forgetting_passes(run: Setting) -> Gdp:
    """A pass multiplies its start by Q: a larger q_1 keeps more of earlier passes, and more noise. With E = 1 it is
    `linear.forgetting`.
    """
    maps = _Maps.of(run)
    if maps.least > maps.most:
        return Gdp(0.0)

    def at(shrunk: float) -> float:
        return _mu(run, maps, min(maps.most, max(maps.least, 1.0 - shrunk)), run.epochs)

    best = largest(at, 1.0 - maps.most, 1.0 - maps.least, tries=48, rounds=40)
    return Gdp(max(best, _mu(run, maps, maps.least, run.epochs)))


@theorem(
    "linear.forgetting_released",
    title="Released passes over losses that forget the noise before the record",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("cyclic-released",),
    reference="dpcalc",
    locator="Gaussian passes, composed",
    formula="sqrt(E) times linear.forgetting",
    conditions=_CLASS,
    assumes=("the same fixed order in every pass", _FORGETS, GAUSSIAN, "the iterate after every pass is released"),
    caution=_ONE_RECORD,
    by_difference=True,
)
def forgetting_released(run: Setting) -> Gdp:
    """Given its start, every pass is a Gaussian that the record moves by the same amount. Independent Gaussians compose
    exactly.
    """
    return Gdp(quotient_down((_one_pass(run), math.sqrt(run.epochs)), (), 8.0))


@theorem(
    "linear.stop_forgetting",
    title="Random stop over losses that forget the noise before the record",
    needs=SLOPED_CURVE,
    kind="lower",
    algorithms=("stop",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/n) sum_{k=1}^{n-t+1} delta_G(eps; mu_k), mu_k of linear.forgetting with t - 1 steps before the record",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED, BATCHES_OF_ONE),
    assumes=(_FORGETS, GAUSSIAN, ONE_RELEASE, _NUMBER),
    caution=_ONE_RECORD,
    by_difference=True,
    slack="blocks of many steps count as one: below by a few per cent at most",
)
def stop_forgetting(run: Setting) -> Profile:
    """Given the number of steps, the last iterate is that of a pass. A steep slope acts in a direction without
    curvature.

    >>> run = Setting(records=100, index=50, sensitivity=2.0, noise_std=4.0, step_size=1.0, smoothness=1.0,
    ...               strong_convexity=0.0)
    >>> round(stop_forgetting(run).profile(0.1), 2)
    -4.65
    """
    maps, ratio = _Maps.of(run), quotient_down((run.sensitivity,), (run.noise_std,), 4.0)
    if maps.least > maps.most:
        return Profile(lambda epsilon: -math.inf)
    before = _before(maps.least, run.index - 1)

    def profile(epsilon: float) -> float:
        def term(_: int, behind: int) -> float:
            return gaussian_log_delta(_over(ratio, before + maps.behind(behind)), epsilon)

        return log_average(log_sum(term, 1, run.records - run.index + 1), math.log(run.records))

    return Profile(profile)


@theorem(
    "linear.skip_forgetting",
    title="Random skip over losses that forget the noise before the record",
    needs=SLOPED_CURVE,
    kind="lower",
    algorithms=("skip",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(min(t, h+1)/(h+1)) delta_G(eps; mu), h = floor(n/2), mu of linear.forgetting without a skip",
    conditions=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED, BATCHES_OF_ONE),
    assumes=(_FORGETS, GAUSSIAN, ONE_RELEASE, _NUMBER),
    caution=_ONE_RECORD,
    by_difference=True,
    slack="the noise of skipped steps counts",
)
def skip_forgetting(run: Setting) -> Profile:
    """The record is skipped or not, and the steps after it are the same. Skipped steps leave less noise before it,
    which is not counted.
    """
    maps, ratio = _Maps.of(run), quotient_down((run.sensitivity,), (run.noise_std,), 4.0)
    if maps.least > maps.most:
        return Profile(lambda epsilon: -math.inf)
    noise = _before(maps.least, run.index - 1) + maps.behind(run.records - run.index + 1)
    mu, lengths = _over(ratio, noise), run.records // 2 + 1
    log_used = math.log(min(run.index, lengths))
    return Profile(lambda epsilon: log_average(gaussian_log_delta(mu, epsilon) + log_used, math.log(lengths)))


def _one_pass(run: Setting) -> float:
    """Return mu of one pass, rounded down."""
    maps = _Maps.of(run)
    return _mu(run, maps, maps.least, 1) if maps.least <= maps.most else 0.0


def _mu(run: Setting, maps: _Maps, q: float, epochs: int) -> float:
    """Return r T/sqrt(S_1 + S_2), rounded down."""
    tail, before = run.steps_to_end, run.period - run.steps_to_end
    noise = _before(q, before) + maps.behind(tail)
    ratio = quotient_down((run.sensitivity,), (run.own_batch, run.noise_std), 4.0)
    if noise == math.inf:
        return 0.0
    if epochs == 1 or q == 0.0:
        return _over(ratio, noise)
    log_kept = (before + 1) * math.log(q) + (tail - 1) * math.log1p(-maps.shrunk)
    if log_kept < -600.0:
        return _over(ratio, noise)
    product = math.exp(log_kept) * (1.0 - UNIT * (64.0 - 16.0 * log_kept / (1.0 - maps.shrunk)))
    return _over(ratio, noise) * times(max(0.0, product), epochs) * (1.0 - 64.0 * UNIT)


def _over(ratio: float, noise: float) -> float:
    """Return ratio/sqrt(noise), rounded down."""
    return 0.0 if noise == math.inf else ratio / math.sqrt(noise) * (1.0 - 8.0 * UNIT)
