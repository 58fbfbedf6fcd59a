"""Lower bounds in random orders, for guarantees that use only how far the gradients of two records are apart.

All losses are m (w - center)^2/2 of one curvature, with equal centers except that of the record. A step on s records
over the divisor d shrinks the iterate by f = 1 - (1-q) s/d, q = 1 - eta m. The record in position k, counted from the
end of a pass, then moves the last iterate by

    mu_k = (Delta/(d_k sigma)) P_k T/sqrt(V),   P_k = the product of f over the steps after k,   V = sum_k P_k^2,
    T^2 = (1+Q) (1-Q^E)/((1-Q) (1+Q^E)),   Q = the product of f over a pass,

of its standard deviation. With q = 0 every step is a reset, and only the last batch counts; q = 1 are linear losses.
If the order is published, delta is the average over these Gaussians; if it is secret, it is that of their mixture
against N(0, 1). Every value rounds down.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.quantities import Permutation
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, Array, down, log_add_exp, np, quotient_down, up
from dpcalc.theorems.batch_layout import Layout
from dpcalc.theorems.conditions import (
    BALANCED,
    BATCHES_OF_ONE,
    CONVEXITY_WITHIN,
    GAUSSIAN,
    ONE_RELEASE,
    STEP_WITHIN,
    UNBOUNDED,
)
from dpcalc.theorems.lower.common_losses import CURVED, NO_SUCH_GUARANTEE, largest
from dpcalc.theorems.lower.linear_losses import gaussian_log_delta, log_average, log_sum, log_sum_of_gaussians
from dpcalc.theorems.lower.random_linear_losses import after_fresh_noise, times
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.setting import BATCHES, CURVED_STEP, GAUSSIAN_STEP, Setting

if TYPE_CHECKING:
    from dpcalc.numerics.normal_arrays import Mixture

_SEARCH = "the best curvature of a search, and blocks of many positions as one"
_SAFE = 1.0 - 1e-13  # a generous allowance for the rounding of a mu
_SHARPEST = 1e6  # a larger mu counts as this one


PUBLISHED = requires(
    "permutation = public",
    lambda run: run.permutation != Permutation.SECRET,
    Unmet("is for an order that may be published, and it is secret", "--permutation public, if it may be published"),
)
SECRET = requires(
    "permutation = secret",
    lambda run: run.permutation == Permutation.SECRET,
    Unmet("says less of an order that may be published than of a secret one", "--permutation secret, if it is"),
)
_CLASS = (STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED)


CURVED_ORDER = (*BATCHES, *GAUSSIAN_STEP, *CURVED_STEP, "epochs")


# --- the pulls of the positions -----------------------------------------------------------------------------------


class _Class(NamedTuple):
    """Positions ``first`` .. ``last``, each with ``size`` records that pull by top |f|^(k-first) there."""

    first: int
    last: int
    size: int
    top: float
    factor: float

    def mu(self, k: int) -> float:
        """Return mu_k."""
        return self.top * self.factor ** (k - self.first) * _SAFE

    def mus(self, k: Array) -> Array:
        """Return mu_k for an array of positions."""
        powers: Array = self.factor ** (k - self.first)
        return self.top * powers * _SAFE


def _classes(run: Setting, epochs: int, q: float, afresh: bool = False) -> list[_Class]:
    """Return the positions of a pass with their pulls; ``q`` is taken as exact.

    If the order is drawn ``afresh`` in every pass, the pulls are those of the last pass alone.
    """
    plan = run.layout
    factors = [abs(1.0 - (1.0 - q) * (alike.size / alike.divisor)) for alike in plan.positions]
    behind, variance, heads = 1.0, 0.0, []
    for factor, alike in zip(factors, plan.positions, strict=True):
        heads.append(behind)
        variance += behind * behind * _geometric(factor, alike.steps)
        if alike.size != alike.divisor:
            factor = max(0.0, factor - 8.0 * UNIT)
        behind *= factor**alike.steps
    kept = after_fresh_noise(behind, epochs, plan.steps) if afresh else times(behind, epochs)
    whole = kept / math.sqrt(variance)
    return [
        _Class(
            alike.first,
            alike.first + alike.steps - 1,
            alike.size,
            quotient_down((run.sensitivity,), (alike.divisor, run.noise_std), 4.0) * head * whole,
            factor,
        )
        for factor, head, alike in zip(factors, heads, plan.positions, strict=True)
    ]


def _geometric(factor: float, count: int) -> float:
    """Return 1 + f^2 + ... + f^(2 count - 2)."""
    if factor == 0.0 or count == 1:
        return 1.0
    x = 2.0 * math.log(factor)
    return float(count) if x == 0.0 else math.expm1(x * count) / math.expm1(x)


def _best(run: Setting, at: Callable[[float], float], *, rough: bool = False, past_reset: bool = False) -> float:
    """Return the largest value of a function of q over the allowed curvatures.

    Past a reset, q < 0, nothing is gained if all steps shrink equally. A rough search tries half as many.
    """
    lowest = math.nextafter(1.0 - down(run.step_size * run.smoothness, 4.0), math.inf)
    highest = math.nextafter(1.0 - up(run.step_size * run.strong_convexity, 4.0), 0.0) if run.strong_convexity else 1.0
    lowest = min(highest, lowest if past_reset else max(lowest, 0.0))

    once = functools.cache(at)  # several of those tried are at the same end

    def of_shrunk(shrunk: float) -> float:
        return once(min(max(1.0 - shrunk, lowest), highest))

    return max(of_shrunk(1.0), largest(of_shrunk, 1.0 - highest, 1.0 - lowest, *((4, 3) if rough else (8, 6))))


# --- published orders ---------------------------------------------------------------------------------------------


@theorem(
    "linear.shuffled_curved",
    title="A published random order over losses of the worst common curvature",
    needs=(*BATCHES, *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="average over positions, at the best curvature",
    formula="max over q of sum over positions of (s_k/n) delta_G(eps; mu_k), mu_k = r_k P_k/sqrt(sum_j P_j^2), P_k the "
    "product of the factors of the later steps, q or 1 - (1-q) s/b",
    conditions=(*_CLASS, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, "the order is published"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    slow=True,
    uncertified="the best curvature of a search",
)
def shuffled_curved(run: Setting) -> Profile:
    """With a published order delta is the average over the record's positions, and at each of them quadratics of one
    curvature leave a Gaussian. With a reset in every step only the last batch counts, and a short one counts most.
    """
    return _published_profile(run, 1)


@theorem(
    "linear.once_curved",
    title="One published random order for all epochs over losses of the worst common curvature",
    needs=CURVED_ORDER,
    kind="lower",
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="average over positions, at the best curvature",
    formula="as linear.shuffled_curved, with mu_k times sqrt((1+Q)(1-Q^E)/((1-Q)(1+Q^E))), Q the product of a pass",
    conditions=(*_CLASS, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, ONE_RELEASE, "the order is published"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    slow=True,
    uncertified="the best curvature of a search",
)
def once_curved(run: Setting) -> Profile:
    """The record has the same position in every epoch, and quadratics of one curvature add up the traces of its
    uses."""
    return _published_profile(run, run.epochs)


@theorem(
    "linear.once_curved_released",
    title="One published random order, every pass released, over losses of the worst common curvature",
    needs=CURVED_ORDER,
    kind="lower",
    algorithms=in_one_random_order(Release.PASS),
    reference="dpcalc",
    locator="average over positions of composed Gaussians, at the best curvature",
    formula="as linear.shuffled_curved, with mu_k sqrt(E)",
    conditions=(*_CLASS, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, "the iterate after every pass is released", "the order is published"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    slow=True,
    uncertified="the best curvature of a search",
)
def once_curved_released(run: Setting) -> Profile:
    """Given the order and its start, a pass over quadratics of one curvature is a Gaussian, and the record moves it by
    the same amount from any start. Independent Gaussians compose exactly.
    """
    return _published_profile(run, 1, released=run.epochs)


@theorem(
    "linear.epochs_curved",
    title="Fresh published random orders over losses of the worst common curvature",
    needs=CURVED_ORDER,
    kind="lower",
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="average over the positions of the last pass, at the best curvature",
    formula="as linear.shuffled_curved, with mu_k sqrt((1-Q^2)/(1-Q^(2E))), Q the product of a pass",
    conditions=(*_CLASS, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, ONE_RELEASE, "the orders are published"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=f"{_SEARCH}; what earlier passes add to the shift is not counted",
    slow=True,
    uncertified="the best curvature of a search",
)
def epochs_curved(run: Setting) -> Profile:
    """Given all orders the last iterate is Gaussian. Every pass moves it in the same direction, the last one by as much
    as a single pass, and the noise of all passes counts.
    """
    return _published_profile(run, run.epochs, afresh=True)


@theorem(
    "linear.epochs_curved_released",
    title="Fresh published random orders, every pass released, over losses of the worst common curvature",
    needs=CURVED_ORDER,
    kind="lower",
    algorithms=("shuffled-epochs-released",),
    reference="dpcalc",
    locator="the passes in which the record is one of the last, at the best curvature",
    formula="max over q and K of sum_j P(Bin(E, w_K) = j) delta_G(eps; mu_K sqrt(j)), w_K the share of the records at "
    "the positions up to K, mu_K of linear.shuffled_curved",
    conditions=(*_CLASS, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, "the iterate after every pass is released", "the orders are published"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=f"{_SEARCH}; passes count as the least of those up to K, or as none",
    slow=True,
    uncertified="the best curvature of a search",
)
def epochs_curved_released(run: Setting) -> Profile:
    """Given all orders the passes are independent Gaussians with mu_k of the record's positions k, which compose to
    the root of the sum of their squares. In a binomial number of passes k is at most K, and then mu_k >= mu_K.
    """
    from fractions import Fraction

    from dpcalc.numerics.binomial import binomial_blocks
    from dpcalc.numerics.normal_arrays import log_hockey_stick_down

    laws = functools.cache(lambda used: binomial_blocks(run.epochs, Fraction(used, run.records)))

    def among_the_last(positions: _Class, count: int, epsilon: float) -> float:
        """Return ln delta, counting the passes in which the record is at one of the last ``count`` positions."""
        mu = min(positions.mu(positions.first + count - 1), _SHARPEST)
        law = laws(count * positions.size)
        mus = mu * np.sqrt(np.asarray(law.low, dtype=np.float64)) * _SAFE
        usable = mus > max(1e-90, epsilon / 1e90)
        if not usable.any():
            return -math.inf
        logs = log_hockey_stick_down(np.full(int(usable.sum()), epsilon), mus[usable]) + law.log_below[usable]
        peak = float(logs.max())
        if peak == -math.inf:
            return peak
        value = peak + math.log(float(np.exp(logs - peak).sum()))
        return value - UNIT * (8.0 * abs(value) + 8.0 * len(logs) + 64.0)

    def profile(epsilon: float) -> float:
        def at(q: float) -> float:
            best = -math.inf
            for kind in _classes(run, 1, q):
                most = kind.last - kind.first + 1
                counts = {min(most, 4**power) for power in range(min(30, most.bit_length() // 2 + 2))}
                best = max(best, *(among_the_last(kind, count, epsilon) for count in counts))
            return best

        return min(0.0, _best(run, at, rough=True))

    return Profile(profile)


@theorem(
    "linear.shuffled_stop_curved",
    title="A published random order and a random stop over losses of the worst common curvature",
    needs=(*BATCHES, *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("shuffled-stop",),
    reference="dpcalc",
    locator="average over positions and numbers of steps, in the limit of a steep common slope",
    formula="max over q of (1/n) sum_{k=1}^{n} (1 - (k-1)/n) delta_G(eps; r q^(k-1) sqrt(1-q^2))",
    conditions=(*_CLASS, BATCHES_OF_ONE, PUBLISHED),
    assumes=(CURVED, GAUSSIAN, "the order is published", "the last iterate reveals the number of steps"),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=f"{_SEARCH}; the noise of endlessly many earlier steps counts",
    slow=True,
    uncertified="the best curvature of a search",
)
def shuffled_stop_curved(run: Setting) -> Profile:
    """A steep slope in a direction without curvature reveals the number of steps. Of the n^2 pairs of a position and a
    number of steps, n - k + 1 have k steps from the record's own to the end.
    """
    n, ratio = run.records, quotient_down((run.sensitivity,), (run.noise_std,), 4.0)

    def profile(epsilon: float) -> float:
        def at(q: float) -> float:
            if q >= 1.0:
                return -math.inf
            top = ratio * math.sqrt((1.0 - q) * (1.0 + q)) * _SAFE
            return log_sum(
                lambda _, k: gaussian_log_delta(top * q ** (k - 1) * _SAFE, epsilon) + math.log((n - k + 1) / n), 1, n
            )

        return log_average(_best(run, at), math.log(n))

    return Profile(profile)


def _published_profile(run: Setting, epochs: int, released: int = 1, afresh: bool = False) -> Profile:
    shrinks_unevenly = any(alike.size != alike.divisor for alike in run.layout.positions)

    def profile(epsilon: float) -> float:
        def at(q: float) -> float:
            total = -math.inf
            for plain in _classes(run, epochs, q, afresh):
                kind = plain._replace(top=plain.top * math.sqrt(released)) if released > 1 else plain
                total = log_add_exp(total, _log_sum(kind, epsilon) + math.log(kind.size))
            return total

        return log_average(
            _best(run, at, rough=epochs > 1, past_reset=shrinks_unevenly and epochs == 1), math.log(run.records)
        )

    return Profile(profile)


def _log_sum(positions: _Class, epsilon: float) -> float:
    """Return ln of the sum of delta_G(eps; mu_k) over the positions."""
    return log_sum_of_gaussians(positions.mus, epsilon, positions.first, positions.last)


# --- secret orders ------------------------------------------------------------------------------------------------


@theorem(
    "linear.shuffled_curved_secret",
    title="A secret random order over losses of the worst common curvature",
    needs=(*BATCHES, *GAUSSIAN_STEP, *CURVED_STEP),
    kind="lower",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="mixture over positions against one Gaussian, at the best curvature",
    formula="max over q and z of sum_k (s_k/n) Phi(mu_k - z) - e^eps Phi(-z), mu_k as in linear.shuffled_curved; with "
    "a reset in every step w_1 delta_G(ln(1 + (e^eps - 1)/w_1); r_1), w_1 the last batch's share of the records",
    conditions=(*_CLASS, SECRET),
    assumes=(CURVED, GAUSSIAN, ONE_RELEASE),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    slow=True,
    uncertified="the best curvature of a search",
)
def shuffled_curved_secret(run: Setting) -> Profile:
    """Among equal records, one that pulls in another direction leaves a mixture over its positions. If the last batch
    is very short, its few records stand out even in a secret order.
    """
    return _secret_profile(run, 1)


@theorem(
    "linear.once_curved_secret",
    title="One secret random order for all epochs over losses of the worst common curvature",
    needs=CURVED_ORDER,
    kind="lower",
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="mixture over positions against one Gaussian, at the best curvature",
    formula="as linear.shuffled_curved_secret, with mu_k of linear.once_curved",
    conditions=(*_CLASS, SECRET),
    assumes=(CURVED, GAUSSIAN, ONE_RELEASE),
    caution=NO_SUCH_GUARANTEE,
    by_difference=True,
    slack=_SEARCH,
    slow=True,
    uncertified="the best curvature of a search",
)
def once_curved_secret(run: Setting) -> Profile:
    """Passes in one order are like a single pass with the sum of the uses of all epochs."""
    return _secret_profile(run, run.epochs)


def _secret_profile(run: Setting, epochs: int) -> Profile:
    from dpcalc.numerics.normal_arrays import likelihood_ratio_threshold, log_advantage_down

    def profile(epsilon: float) -> float:
        def at(q: float) -> float:
            moved, still = _mixture(run.layout, _classes(run, epochs, q))
            return log_advantage_down(moved, still, epsilon, likelihood_ratio_threshold(moved, still, epsilon))

        return min(0.0, _best(run, at, rough=True))

    return Profile(profile)


def _mixture(plan: Layout, classes: list[_Class]) -> tuple[Mixture, Mixture]:
    """Return the law of the output, in its standard deviations, with the record and without; P counted from below."""
    from dpcalc.numerics.normal_arrays import Mixture

    parts = [(plan.dropped, 0.0)] if plan.dropped else []
    parts += [((high - low + 1) * c.size, min(c.mu(high), _SHARPEST)) for c in classes for low, high in _blocks(c)]
    weights = np.log([weight for weight, _ in parts]) - math.log(plan.records)
    weights -= UNIT * (8.0 * np.abs(weights) + 8.0 * math.log(plan.records) + 8.0)
    means = np.array([mean for _, mean in parts])
    return Mixture(weights, means, np.ones(len(means))), Mixture(np.zeros(1), np.zeros(1), np.ones(1))


def _blocks(positions: _Class) -> Iterator[tuple[int, int]]:
    """Yield (first, last) of blocks of positions, which grow."""
    low = positions.first
    while low <= positions.last:
        steps = low - positions.first
        high = min(positions.last, low if steps < 128 else positions.first + int(steps * 1.02))
        if positions.factor == 1.0 or positions.mu(low) < 1e-9:
            high = positions.last  # all alike, or next to nothing
        yield low, high
        low = high + 1
