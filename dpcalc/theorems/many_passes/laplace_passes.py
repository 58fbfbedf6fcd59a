"""Several passes with Laplace noise in one dimension, hidden iterates and 1-Lipschitz maps.

The shifted-divergence argument holds for any noise. A use of the record moves the parameter by r = Delta/(b v) in units
of the noise, and the steps from it to the next use hide that. For these steps the least of three curves holds, from
every initial state:

* the record's own step hides all of it;
* every step hides an equal share, and the shares compose (`LaplaceShift.composed`);
* the noise of a step is Gaussian with an exponential variance (`LaplaceShift.mixture`).

Guarantees that hold from every state compose, as if the state after the steps were released. In several dimensions a
gradient step is not a contraction in the 1-norm, and nothing is claimed. Every guarantee rounds up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.quantities import Noise
from dpcalc.notions.guarantee import Composition, Profile
from dpcalc.numerics.floats import quotient_up, up
from dpcalc.theorems.conditions import (
    CONVEXITY_WITHIN,
    DOMAIN,
    INDEX_IN_RANGE,
    LAPLACE_NOISE,
    NO_CLIPPING,
    ONE_DIMENSION,
    ONE_RELEASE,
    STEP_WITHIN,
)
from dpcalc.theorems.contraction import laplace, shuffle
from dpcalc.theorems.contraction.recursion import log_one_step
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, NOISY_STEP, PLACE, Setting

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair

_MAPS = "every loss is convex and smooth, step_size <= 2/smoothness"
_NOISE = "fresh Laplace noise in every step, w - step_size (gradient + Z), and a parameter of one dimension"
_HIDDEN = (_MAPS, _NOISE, ONE_RELEASE, NO_CLIPPING)
_SLACK = "chords of a curve between some hundred points, and the lattice of losses: some 1 % in delta"
_MOST, _LEAST = 1e15, 1e-30  # ratios of a use: above the first no epsilon is finite; a smaller one counts as the second
_MOST_SHARES = 10**6
_NEAR = 0.5  # of the largest loss
_ENDS, _POINTS = -800.0, 300  # the least ln delta of a table, and its points


# --- settings ---------------------------------------------------------------------------------------------------------


class LaplaceDescent(Setting):
    """Steps on the mean gradient of all records."""

    @functools.cached_property
    def use(self) -> float:
        """r = Delta/(n v), rounded up."""
        return quotient_up((self.sensitivity,), (float(self.records), self.scale))


# --- what the steps hide ----------------------------------------------------------------------------------------------


def hidden_by(ratio: float, steps: int) -> Callable[[float], float]:
    """Return epsilon -> ln delta of a use of ``ratio`` scales hidden by its own and later steps, ``steps`` in all.

    The least of three upper bounds on one profile. Shares are only composed for epsilon near the largest loss: for
    smaller ones the mixture is less.
    """

    def profile(epsilon: float) -> float:
        shift = laplace.LaplaceShift(ratio, epsilon)
        mixed = shift.mixture(steps - 1)
        return mixed if epsilon < _NEAR * ratio else min(mixed, shift.composed(steps - 1))

    return profile


@functools.lru_cache(maxsize=16)
def _pair(ratio: float, steps: int) -> Pair:
    """Return the dominating pair of a use hidden by ``steps`` steps."""
    from dpcalc.notions import pld

    return pld.laplace(ratio=ratio) if steps == 1 else _tabulated(hidden_by(ratio, steps), ratio)


def _tabulated(log_delta: Callable[[float], float], ratio: float) -> Pair:
    """Return the pair of a profile that is at most that of a Laplace step with this ratio."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.contraction import shuffle_curves

    alone = shuffle_curves.own_step(Noise.LAPLACE, ratio)
    nodes, values = profiles.sparse(log_delta, alone, ends=_ENDS, most=_POINTS)
    return pld.from_curve(shuffle_curves.least(profiles.chords(nodes, values), alone))


def _ratio(sensitivity: float, divisor: int, scale: float) -> float:
    """Return r = Delta/(b v), rounded up, at least the smallest ratio of a pair.

    Raises:
        NotApplicable: it is too large for a finite epsilon.
    """
    from dpcalc.errors import NotApplicable

    ratio = quotient_up((sensitivity,), (float(divisor), scale))
    if ratio > _MOST:
        raise NotApplicable("gives no finite epsilon here", "more noise")
    return max(ratio, _LEAST)


# --- passes -----------------------------------------------------------------------------------------------------------


@theorem(
    "multi_epoch.laplace",
    title="Cyclic passes with Laplace noise",
    needs=(*PLACE, "epochs", *NOISY_STEP),
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="shifted divergence (Feldman et al. 2018, Theorem 22) from use to use, composed by the law of the privacy "
    "loss",
    formula="E-1 uses Delta/(b v) hidden by l steps each, and the last one by k: the least of one step's Laplace "
    "profile, of equal shares composed, and of E delta_G(eps; (Delta/(b v))/sqrt(2 G)), G ~ Gamma(l) and Gamma(k)",
    conditions=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=("the same fixed order in every pass", *_HIDDEN),
    slack=_SLACK,
    slow=True,
)  # fmt: skip
def cyclic(run: Setting) -> Composition:
    """After E passes in one order the Laplace noise of a whole pass hides every use but the last.

    >>> run = Setting(records=1, index=1, batch_size=1, epochs=1, sensitivity=1.0, noise=Noise.LAPLACE, scale=1.0)
    >>> round(math.exp(cyclic(run).log_delta(0.5).value), 6)  # a single Laplace step: 1 - exp(-1/4)
    0.221199
    """
    ratio = _ratio(run.sensitivity, run.own_batch, run.scale)
    return Composition([*_uses(ratio, run.period, run.epochs - 1), (_pair(ratio, run.steps_to_end), 1)])


@theorem(
    "shuffled_epochs.once_laplace",
    title="One random order for all epochs, Laplace noise",
    needs=(*BATCHES, "epochs", *NOISY_STEP, "step_size", "smoothness"),
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="as multi_epoch.laplace, the last use averaged over the places of the record",
    formula="E-1 uses hidden by l steps each, composed with the least of one step's Laplace profile and "
    "shuffle.laplace_mixture",
    conditions=(LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(
        "one order for all epochs, all orders (or rotations) equally likely and drawn without looking at the data; it "
        "may be published",
        *_HIDDEN,
    ),
    slack=_SLACK + "; the earlier uses count as if they were in the smallest batch",
    slow=True,
)
def once(run: Setting) -> Composition:
    """In one random order a whole pass hides every use but the last, for every position of the record."""
    one_pass = run.part(shuffle.ShuffledPass)
    ratio = _ratio(run.sensitivity, one_pass.layout.least_divisor, run.scale)

    def last(epsilon: float) -> float:
        return min(log_one_step(Noise.LAPLACE, epsilon, ratio), shuffle.laplace_mixture(one_pass).profile(epsilon))

    return Composition([*_uses(ratio, one_pass.layout.steps, run.epochs - 1), (_tabulated(last, ratio), 1)])


def _uses(ratio: float, steps: int, count: int) -> list[tuple[Pair, int]]:
    """Return the uses of a record before its last, each hidden by a whole pass."""
    return [(_pair(ratio, steps), count)] if count else []


# --- full batches -----------------------------------------------------------------------------------------------------


@theorem(
    "noisy_gd.laplace",
    title="Noisy gradient descent with Laplace noise",
    needs=("records", "steps", *NOISY_STEP, "step_size", "smoothness", "strong_convexity?", "diameter?"),
    algorithms=("noisy-gd",),
    reference="dpcalc",
    locator="shifted divergence (Feldman et al. 2018, Theorem 22), equal shares of the last steps, composed",
    formula="least over h <= T of h shares r (1-c^T)/(1-c^h), or r + (D/(eta v)) c^h (1-c)/(1-c^h) on a domain, each "
    "pure, composed exactly; r = Delta/(n v)",
    conditions=(LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=("every step uses the mean gradient of all records", *_HIDDEN, "where used: " + DOMAIN),
)
def descent(run: LaplaceDescent) -> Profile:
    """With strong convexity, or on a bounded domain, the privacy of Laplace noise stays bounded for any number of
    steps; pure privacy, with no delta, has r (1-c^T)/(1-c).

    >>> run = LaplaceDescent(records=1, steps=10**9, sensitivity=0.5, noise=Noise.LAPLACE, scale=1.0, step_size=1.0,
    ...                      smoothness=0.5, strong_convexity=0.5)
    >>> descent(run).profile(1.001)  # r/(1 - c) = 1
    -inf
    """

    def profile(epsilon: float) -> float:
        one, *more = ((share, h) for h, share in _shares(run))
        best = log_one_step(Noise.LAPLACE, epsilon, one[0])
        for share, count in more:
            if best == -math.inf:
                break
            best = min(best, laplace.composed_shares(share=share, count=count, epsilon=epsilon))
        return best

    return Profile(profile)


def _shares(run: LaplaceDescent) -> list[tuple[int, float]]:
    """Return (h, share of each of the last h steps) in units of the noise, rounded up, h = 1 first."""
    most = min(run.steps, _MOST_SHARES)
    counts = sorted({most, *(h for j in range(most.bit_length()) for h in (1 << j, 3 << j) if h <= most)})
    return [(h, min(_whole(run, h), _from_diameter(run, h))) for h in counts]


def _whole(run: LaplaceDescent, last: int) -> float:
    """Return r (1-c^T)/(1-c^h), rounded up: all uses, spent in the last h steps."""
    rate = run.rate
    if rate * last < 1e-290:
        return up(run.use * (run.steps / last), 8.0)
    return up(run.use * (math.expm1(-rate * run.steps) / math.expm1(-rate * last)), 32.0)


def _from_diameter(run: LaplaceDescent, last: int) -> float:
    """Return r + D/(eta v) c^h (1-c)/(1-c^h), rounded up: the diameter and the last h uses, spent in these steps."""
    if math.isinf(run.diameter):
        return math.inf
    reach, rate = quotient_up((run.diameter,), (run.step_size, run.scale)), run.rate
    if rate * last < 1e-290:
        left = 1.0 / last
    elif rate * last > 700.0:
        left = 1e-300
    else:
        left = math.exp(-rate * last) * math.expm1(-rate) / math.expm1(-rate * last)
    return up(run.use + reach * left, 64.0 + 4.0 * min(700.0, rate * last))
