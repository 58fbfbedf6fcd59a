"""What no guarantee can be below: the privacy that linear losses really have, for every algorithm.

A linear loss is convex, smooth for every smoothness, and Lipschitz for the norm of its gradient: it belongs to every
class of losses here, unless strong convexity is promised. On the whole space the last iterate is then the sum of all
gradients and all noise. Where chance decides how often a record counts, or how many steps there are, delta is bounded
below by that of one event, delta >= P(A) - e^eps Q(A), the best of those tried.

Two kinds are told apart. In the first, the losses are Lipschitz as described. Where the assumptions say that only the
gradients of two records are bounded apart, a loss common to all records is free: a curvature that makes the run forget
what came before, or a slope that tells how many steps were made. No guarantee that uses the gradient difference alone,
as all by the shifted-divergence theorem do, can be below these.

Notation: r = Delta/(b sigma), n records, l steps a pass, E passes. Every value rounds down.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dpcalc.bounds.multi_epoch import BALANCED, NO_GUARANTEE, UNBOUNDED, places, quadratic, wide_down
from dpcalc.bounds.noisy_sgd import BATCH_WITHIN
from dpcalc.bounds.shuffle import layout
from dpcalc.bounds.steps import (
    BATCHES_OF_ONE,
    CONVEXITY_WITHIN,
    GAUSSIAN,
    INDEX_IN_RANGE,
    ONE_RELEASE,
    STEP_WITHIN,
    batch_of,
)
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.numerics.logspace import log_exp1p, log_expm1
from dpcalc.numerics.special import log_hockey_stick, log_hockey_stick_error
from dpcalc.registry import Requirement, bound

if TYPE_CHECKING:
    from fractions import Fraction

_LINEAR = "a lower bound: linear losses on the whole space, of the given Lipschitz constant"
_CURVED = "a lower bound: losses of one curvature common to all records, whose gradients differ by Delta"
_SLOPED = "a lower bound: linear losses with a steep slope common to all records, whose gradients differ by Delta"
_EVENT = "the best event that was found, and blocks of many numbers as one: below by a few per cent at most"
_BLOCKS = "blocks of many steps count as one: below by a few per cent at most"
_NO_SUCH_GUARANTEE = (
    "No guarantee, but what certain losses really have: no guarantee that knows only how far the gradients of two "
    "records are apart can be below it. The gradients themselves may be large."
)
_SMALLEST, _LARGEST = 1e-290, 1e90


def _flat(values: Mapping[str, Any]) -> tuple[str, str] | None:
    found = values.get("strong_convexity")
    if found:
        return f"linear losses have no curvature, and strong convexity is {found:g}", "leave out --strong-convexity"
    return None


def _published(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values.get("permutation") != "secret":
        return None
    return "is for an order that may be published, and it is secret", "--permutation public, if it may be published"


FLAT = Requirement("strong_convexity = 0", _flat)
PUBLISHED = Requirement("permutation = public", _published)
_WHOLE = (FLAT, UNBOUNDED)


# --- a sum of steps of known number -----------------------------------------------------------------------------------


@bound(
    "linear.pass",
    title="One pass over linear losses, exactly",
    gives="mu",
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = Delta/(b sigma sqrt(l))",
    requires=(INDEX_IN_RANGE, *_WHOLE),
    assumes=(_LINEAR, GAUSSIAN, ONE_RELEASE),
    erratum=NO_GUARANTEE,
)
def pass_mu(*, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float) -> float:
    """With linear losses the last iterate is the sum of all steps: the record moves it by eta Delta/b, and the noise of
    all l steps, before the record's own and after, has variance l eta^2 sigma^2.

    Args:
        records: n >= 1.
        index: 1-based position of the record; only the size of its batch matters.
        batch_size: records per step; the record's step counts at its own size.
        sensitivity: gradient sensitivity Delta >= 0.
        noise_std: sigma > 0.

    Returns:
        mu of such a run, rounded down.

    >>> round(pass_mu(records=100, index=100, batch_size=1, sensitivity=2.0, noise_std=1.0), 12)
    0.2
    """
    size, _, period = places(records, index, batch_size)
    return wide_down((sensitivity,), (size, noise_std, math.sqrt(period)), 8.0)


@bound(
    "linear.passes",
    title="Passes in one order over linear losses, exactly",
    gives="mu",
    kind="lower",
    algorithms=("cyclic", "cyclic-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(b sigma)) sqrt(E/l)",
    requires=(INDEX_IN_RANGE, *_WHOLE),
    assumes=(_LINEAR, GAUSSIAN, "the last iterate is released; every pass moves it alike and independently"),
    erratum=NO_GUARANTEE,
)
def passes_mu(*, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float) -> float:
    """With linear losses E passes move the last iterate by E eta Delta/b, and the noise of all E l steps hides it. What
    is released between tells no more: the increments of the passes are independent and alike, their sum is sufficient.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pass_mu`.
        epochs: E >= 1.

    Returns:
        mu of such a run, rounded down; of `multi_epoch.quadratic` for m = 0, with nothing asked of the smoothness.

    >>> round(passes_mu(records=100, index=100, batch_size=1, epochs=25, sensitivity=2.0, noise_std=1.0), 12)
    1.0
    """
    size, _, period = places(records, index, batch_size)
    return wide_down((sensitivity, math.sqrt(epochs)), (size, noise_std, math.sqrt(period)), 12.0)


@bound(
    "linear.descent",
    title="Full-batch steps over linear losses, exactly",
    gives="mu",
    kind="lower",
    algorithms=("noisy-gd", "noisy-gd-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(n sigma)) sqrt(T)",
    requires=_WHOLE,
    assumes=(_LINEAR, GAUSSIAN, "the last iterate is released, or every one"),
    erratum=NO_GUARANTEE,
)
def descent_mu(*, records: int, steps: int, sensitivity: float, noise_std: float) -> float:
    """With linear losses T steps move the last iterate by T eta Delta/n, and the noise of all of them hides it. It is
    what composition says of any losses, so that the composition bound is exact.

    Args:
        records, sensitivity, noise_std: as in `pass_mu`.
        steps: T >= 1.

    Returns:
        mu of such a run, rounded down.

    >>> round(descent_mu(records=10, steps=100, sensitivity=1.0, noise_std=1.0), 12)
    1.0
    """
    return wide_down((sensitivity, math.sqrt(steps)), (records, noise_std), 8.0)


@bound(
    "linear.local",
    title="The record's own noisy message, exactly",
    gives="mu",
    kind="lower",
    algorithms=("local",),
    reference="dpcalc",
    locator="a Gaussian mechanism",
    formula="mu = Delta/(b sigma)",
    requires=(INDEX_IN_RANGE, FLAT),
    assumes=("a lower bound: linear losses of the given Lipschitz constant", GAUSSIAN),
    erratum=NO_GUARANTEE,
)
def local_mu(*, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float) -> float:
    """The message is a gradient plus noise, and linear losses have gradients that differ by Delta. It is a Gaussian
    mechanism of exactly this mu, whatever the domain.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pass_mu`.

    Returns:
        mu of the message, rounded down.

    >>> round(local_mu(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0), 12)
    0.5
    """
    size, _ = batch_of(records, index, batch_size)
    return wide_down((sensitivity,), (size, noise_std), 4.0)


# --- a record that counts at random -----------------------------------------------------------------------------------


@bound(
    "linear.shuffled",
    title="A pass in random order over linear losses",
    gives="log_delta",
    kind="lower",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1/sqrt(l)) for batches of one size; else P(A) - e^eps Q(A), counting 1/b or 1/b'",
    requires=_WHOLE,
    assumes=(_LINEAR, GAUSSIAN, ONE_RELEASE),
    erratum=NO_GUARANTEE,
    slack=_EVENT,
    coarse=True,
)
def shuffled(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise_std: float, adjacency: str,
    epsilon: float,
) -> float:  # fmt: skip
    """A sum does not depend on the order, but for what a short last batch is divided by: with its share of the records
    the record counts more there, or not at all. Any event then gives a lower bound.

    Args:
        records, batch_size, sensitivity, noise_std: as in `pass_mu`.
        last_batch: a short last batch: ``own`` (divided by its own size), ``nominal`` or ``drop``.
        adjacency: ``replace-one`` or ``null-record``.
        epsilon: >= 0.

    Returns:
        A lower bound on ln delta of such a run, rounded down.

    >>> round(shuffled(records=100, batch_size=1, last_batch="own", sensitivity=2.0, noise_std=1.0,
    ...                adjacency="replace-one", epsilon=0.3), 12)
    -4.992989007062
    """
    return _in_order(records, batch_size, last_batch, 1, 1, sensitivity, noise_std, adjacency, epsilon)


@bound(
    "linear.once",
    title="One random order for all passes over linear losses",
    gives="log_delta",
    kind="lower",
    algorithms=("shuffle-once", "shuffle-once-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1 sqrt(E/l)) for batches of one size; else P(A) - e^eps Q(A)",
    requires=_WHOLE,
    assumes=(_LINEAR, GAUSSIAN, "the last iterate is released; more is seen where more is released"),
    erratum=NO_GUARANTEE,
    slack=_EVENT,
    coarse=True,
)
def once(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """In one order for all E passes the record is in the short last batch always or never. The rest is as for one pass,
    with E times the shift and the noise of E l steps.

    Args:
        records, batch_size, last_batch, sensitivity, noise_std, adjacency, epsilon: as in `shuffled`.
        epochs: E >= 1.

    Returns:
        A lower bound on ln delta of such a run, rounded down.
    """
    return _in_order(records, batch_size, last_batch, 1, epochs, sensitivity, noise_std, adjacency, epsilon)


@bound(
    "linear.epochs",
    title="Fresh random orders over linear losses",
    gives="log_delta",
    kind="lower",
    algorithms=("shuffled-epochs", "shuffled-epochs-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1 sqrt(E/l)) for batches of one size; else P(A) - e^eps Q(A), the number of short batches "
    "Binomial(E, b'/n)",
    requires=_WHOLE,
    assumes=(_LINEAR, GAUSSIAN, "the last iterate is released; more is seen where more is released"),
    erratum=NO_GUARANTEE,
    slack=_EVENT,
    coarse=True,
)
def epochs_log_delta(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise_std: float,
    adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """In fresh orders the record is in the short last batch a binomial number of times. The rest is as for one pass,
    with that many larger (or no) uses and the noise of E l steps.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise_std, adjacency, epsilon: as in `once`.

    Returns:
        A lower bound on ln delta of such a run, rounded down.
    """
    return _in_order(records, batch_size, last_batch, epochs, 1, sensitivity, noise_std, adjacency, epsilon)


@bound(
    "linear.sampled",
    title="Steps on random batches of linear losses",
    gives="log_delta",
    kind="lower",
    algorithms=("noisy-sgd", "noisy-sgd-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="P(A) - e^eps Q(A), the record counting Binomial(T, b/n) times",
    requires=(BATCH_WITHIN, *_WHOLE),
    assumes=(_LINEAR, GAUSSIAN, "the last iterate is released; more is seen where more is released"),
    erratum=NO_GUARANTEE,
    slack=_EVENT,
    coarse=True,
    unsolved=("records", "batch_size", "steps", "epochs"),
)
def sampled(
    *, records: int, batch_size: int, steps: int, sensitivity: float, noise_std: float, adjacency: str, epsilon: float
) -> float:
    """The record is drawn Binomial(T, b/n) times and moves the sum as often, in the place of others that are all alike
    and anywhere between. The likelihood ratio grows in one direction, so that one threshold is the best event.

    Args:
        records, batch_size: n and b <= n.
        steps: T >= 1.
        sensitivity, noise_std, adjacency, epsilon: as in `shuffled`.

    Returns:
        A lower bound on ln delta of such a run, rounded down; exact for one step.

    >>> round(sampled(records=100, batch_size=10, steps=1, sensitivity=2.0, noise_std=0.2, adjacency="replace-one",
    ...               epsilon=1.0), 6)
    -8.482205
    """
    from fractions import Fraction

    ratio = wide_down((sensitivity,), (batch_size, noise_std, math.sqrt(steps)), 8.0)
    return _counted(steps, Fraction(batch_size, records), Fraction(0), Fraction(1), ratio, adjacency, epsilon)


def _in_order(
    records: int, batch_size: int, last_batch: str, draws: int, each: int, sensitivity: float, noise_std: float,
    adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """Return ln delta of ``draws`` random orders, each used ``each`` times, rounded down."""
    plan = layout(records, batch_size, last_batch)
    uses = draws * each
    period = plan.full + (1 if plan.short else 0)
    ratio = wide_down((sensitivity, math.sqrt(uses)), (plan.size, noise_std, math.sqrt(period)), 12.0)
    held = plan.full * min(plan.size, records)
    if held == records:
        return _gaussian(ratio, epsilon)
    from fractions import Fraction

    other = Fraction(plan.size, plan.divisor) if plan.short else Fraction(0)
    chance = Fraction(records - held, records)
    return _counted(draws, chance, Fraction(1), (other - 1) / draws, ratio, adjacency, epsilon)


def _counted(
    trials: int, chance: Fraction, base: Fraction, step: Fraction, ratio: float, adjacency: str, epsilon: float
) -> float:
    """Return ln delta of a record that counts base + step Binomial(trials, chance) times ``ratio``, rounded down.

    The other records, which count when it does not, are alike and as good as 0, its own gradient or its opposite.
    """
    if not ratio > _SMALLEST:
        return -math.inf
    if step == 0 or chance == 0:
        return _gaussian(min(ratio, _LARGEST) * float(base) * (1.0 - 4.0 * UNIT), epsilon)
    if chance == 1:
        return _gaussian(min(ratio, _LARGEST) * float(base + step * trials) * (1.0 - 4.0 * UNIT), epsilon)
    ratio = min(ratio, 1e6)  # a smaller gradient is in the class as well
    import numpy as np

    from dpcalc.numerics.events import Mixture, binomial, log_advantage, threshold

    masses = binomial(trials, chance)
    ends = [float(base) + float(step) * masses.low, float(base) + float(step) * masses.high]
    least, most = np.maximum(0.0, np.minimum(*ends)), np.maximum(*ends)
    ones = np.ones(len(least))
    single, nothing = np.ones(1), np.zeros(1)
    best = -math.inf
    factors = [(0.5, -0.5), (1.0, 0.0), (0.0, -1.0)]
    if adjacency == "null-record":
        factors += [(2.0, 1.0), (-1.0, -2.0)]
    for a, b in factors:
        # P counts where it is surely not less, Q where it is surely not more.
        p = Mixture(masses.log_below, ratio * a * (least if a > 0.0 else most), ones)
        q = Mixture(masses.log_above, ratio * b * (least if b < 0.0 else most), ones)
        p = Mixture(nothing, nothing, single) if a == 0.0 else p
        q = Mixture(nothing, nothing, single) if b == 0.0 else q
        best = max(best, log_advantage(p, q, epsilon, threshold(p, q, epsilon)))
    return min(0.0, best)


def _gaussian(mu: float, epsilon: float) -> float:
    """Return ln of delta_G(epsilon; mu), rounded down; -inf where mu is too small to say."""
    if not mu > _SMALLEST:
        return -math.inf
    value = log_hockey_stick(epsilon, min(mu, _LARGEST))
    return value - 2.0 * log_hockey_stick_error(value)


# --- gradients that differ by Delta, and a loss common to all ---------------------------------------------------------


@bound(
    "linear.curved",
    title="One pass over losses of the worst common curvature",
    gives="mu",
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="Gaussian output, at the best curvature",
    formula="max over q of r q^(k-1) sqrt((1-q^2)/(1-q^(2l))), 1 - eta beta <= q <= 1 - eta m; r/sqrt(e k) or more "
    "where eta beta >= 1/k",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=(_CURVED, GAUSSIAN, ONE_RELEASE),
    erratum=_NO_SUCH_GUARANTEE,
    slack="the best curvature of a search",
)
def curved_mu(
    *, records: int, index: int, batch_size: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """Quadratics of one curvature on the whole space leave a Gaussian: every step shrinks by q = 1 - eta curvature what
    the record did and the noise of the steps before. With eta beta >= 1 what came before may be forgotten wholly, and
    the last record has mu = r.

    Args:
        records, index, batch_size, sensitivity, noise_std: as in `pass_mu`.
        step_size: eta, 0 < eta <= 2/(smoothness + strong_convexity).
        smoothness, strong_convexity: beta >= m >= 0; any curvature between may be the common one.

    Returns:
        mu of such a run, rounded down.

    >>> round(curved_mu(records=100, index=100, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=1.0,
    ...                 smoothness=1.0, strong_convexity=0.0), 9)
    2.0
    """
    size, tail, period = places(records, index, batch_size)
    return _over_curvatures(sensitivity, size, noise_std, step_size, smoothness, strong_convexity, period, tail, 1)


@bound(
    "linear.curved_passes",
    title="Passes over losses of the worst common curvature",
    gives="mu",
    kind="lower",
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="Gaussian output, at the best curvature",
    formula="max over m <= curvature <= beta, 1/eta of multi_epoch.quadratic",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=("the same fixed order in every pass", _CURVED, GAUSSIAN, ONE_RELEASE),
    erratum=_NO_SUCH_GUARANTEE,
    slack="the best curvature of a search",
)
def curved_passes_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """Losses of a curvature c >= m are m-strongly convex too, and some leave more of a late record than those of m do:
    they forget what hides it. The last iterate is a Gaussian of known mean and variance.

    Args:
        records, index, batch_size, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in `curved_mu`.
        epochs: E >= 1.

    Returns:
        mu of such a run, rounded down.
    """
    size, tail, period = places(records, index, batch_size)
    return _over_curvatures(sensitivity, size, noise_std, step_size, smoothness, strong_convexity, period, tail, epochs)


@bound(
    "linear.curved_released",
    title="Released passes over losses of the worst common curvature",
    gives="mu",
    kind="lower",
    algorithms=("cyclic-released",),
    reference="dpcalc",
    locator="Gaussian passes, at the best curvature, composed",
    formula="sqrt(E) times linear.curved",
    requires=(INDEX_IN_RANGE, STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, UNBOUNDED),
    assumes=("the same fixed order in every pass", _CURVED, GAUSSIAN, "the iterate after every pass is released"),
    erratum=_NO_SUCH_GUARANTEE,
    slack="the best curvature of a search",
)
def curved_released_mu(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float,
) -> float:  # fmt: skip
    """Given where it starts, every pass over quadratics of one curvature is a Gaussian whose mean the record moves
    alike, wherever that is. Independent Gaussians compose exactly.

    Args:
        records, index, batch_size, epochs, sensitivity, noise_std, step_size, smoothness, strong_convexity: as in
            `curved_passes_mu`.

    Returns:
        mu of such a run, rounded down.
    """
    size, tail, period = places(records, index, batch_size)
    one = _over_curvatures(sensitivity, size, noise_std, step_size, smoothness, strong_convexity, period, tail, 1)
    return wide_down((one, math.sqrt(epochs)), (), 8.0)


def _over_curvatures(
    sensitivity: float, size: int, noise_std: float, step_size: float, smoothness: float, strong_convexity: float,
    period: int, tail: int, uses: int,
) -> float:  # fmt: skip
    def at(curvature: float) -> float:
        return quadratic(
            sensitivity=sensitivity, size=size, noise_std=noise_std, curvature=(step_size, curvature), period=period,
            tail=tail, uses=uses,
        )  # fmt: skip

    return (
        at(strong_convexity) if smoothness == 0.0 else _most(at, *_curvatures(step_size, smoothness, strong_convexity))
    )


def _curvatures(step_size: float, smoothness: float, strong_convexity: float) -> tuple[float, float]:
    """Return the least and the largest curvature to try, both allowed; with the largest nothing is left, or little."""
    return strong_convexity, max(strong_convexity, min(smoothness, down(1.0 / step_size, 4.0)))


def _most(at: Callable[[float], float], low: float, high: float, tries: int = 48, rounds: int = 40) -> float:
    """Return the largest value found between two ends, on a scale of ratios."""
    floor = max(low, high * 1e-16, 5e-324)
    if not floor < high:
        return max(at(low), at(high))
    scale = math.log(high) - math.log(floor)
    points = [high * math.exp(-scale * i / tries) for i in range(tries + 1)]
    points = [min(high, max(low, x)) for x in points]
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


_NUMBER = "the number of steps can be read off the last iterate"


@bound(
    "linear.stop",
    title="Random stop that linear losses of a common slope tell",
    gives="log_delta",
    kind="lower",
    algorithms=("stop",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/n) sum_{j=t}^{n} delta_G(eps; Delta/(sigma sqrt(j)))",
    requires=(INDEX_IN_RANGE, BATCHES_OF_ONE, *_WHOLE),
    assumes=(_SLOPED, GAUSSIAN, ONE_RELEASE, _NUMBER),
    erratum=_NO_SUCH_GUARANTEE,
    slack=_BLOCKS,
)
def stop(*, records: int, index: int, sensitivity: float, noise_std: float, epsilon: float) -> float:
    """All records push alike in a direction of its own, and in the limit of a steep push that coordinate tells the
    number of steps j. Given j the last iterate is Gaussian with the noise of all j steps: for the first record this is
    `iteration.stop`, which no bound by the gradient difference can improve on.

    Args:
        records, index, sensitivity, noise_std: as in `pass_mu`.
        epsilon: >= 0.

    Returns:
        The supremum of ln delta over such runs, rounded down.

    >>> round(stop(records=100, index=1, sensitivity=2.0, noise_std=4.0, epsilon=0.1), 2)
    -4.59
    """
    ratio = wide_down((sensitivity,), (noise_std,), 4.0)
    return _mean_sticks(ratio, index, records, records, epsilon)


@bound(
    "linear.skip",
    title="Random skip that linear losses of a common slope tell",
    gives="log_delta",
    kind="lower",
    algorithms=("skip",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/(h+1)) sum_{j=n+1-min(t,h+1)}^{n} delta_G(eps; Delta/(sigma sqrt(j))), h = floor(n/2)",
    requires=(INDEX_IN_RANGE, BATCHES_OF_ONE, *_WHOLE),
    assumes=(_SLOPED, GAUSSIAN, ONE_RELEASE, _NUMBER),
    erratum=_NO_SUCH_GUARANTEE,
    slack=_BLOCKS,
)
def skip(*, records: int, index: int, sensitivity: float, noise_std: float, epsilon: float) -> float:
    """All records push alike, and in the limit of a steep push the last iterate tells how many were skipped. Given that
    it is Gaussian with the noise of all steps made, and the record moved it if it was not skipped.

    Args:
        records, index, sensitivity, noise_std: as in `pass_mu`.
        epsilon: >= 0.

    Returns:
        The supremum of ln delta over such runs, rounded down.
    """
    ratio = wide_down((sensitivity,), (noise_std,), 4.0)
    h = records // 2
    return _mean_sticks(ratio, records + 1 - min(index, h + 1), records, h + 1, epsilon)


@bound(
    "linear.shuffled_stop",
    title="Random order and random stop that linear losses of a common slope tell",
    gives="log_delta",
    kind="lower",
    algorithms=("shuffled-stop",),
    reference="dpcalc",
    locator="average over the number of steps, in the limit of a steep common slope",
    formula="(1/n) sum_{j=1}^{n} p delta_G(eps; Delta/(sigma sqrt(j))), p = j/n; with ln(1 + (e^eps - 1)/p) for eps "
    "where the order is secret",
    requires=(BATCHES_OF_ONE, *_WHOLE),
    assumes=(_SLOPED, GAUSSIAN, "the order is published, unless it is secret", _NUMBER),
    erratum=_NO_SUCH_GUARANTEE,
    slack=_BLOCKS,
    coarse=True,
)
def shuffled_stop(
    *, records: int, batch_size: int, sensitivity: float, noise_std: float, permutation: str, epsilon: float
) -> float:
    """A steep common push tells the number of steps j, and a published order whether the record was among them, as it
    is with probability p = j/n; given both, the last iterate is Gaussian with the noise of j steps. In a secret order
    the Gaussian of a record that pushes as all others do is told from a mixture of it and one that is moved.

    Args:
        records, sensitivity, noise_std: as in `pass_mu`.
        batch_size: 1.
        epsilon: >= 0.
        permutation: ``public`` or ``secret``.

    Returns:
        The supremum of ln delta over such runs, rounded down.
    """
    ratio = wide_down((sensitivity,), (noise_std,), 4.0)
    extra = log_expm1(epsilon) if permutation == "secret" else -math.inf

    def term(low: int, high: int) -> float:
        share = math.log(low) - math.log(records)
        e = up(log_exp1p(extra - share), 16.0 + 4.0 * abs(share)) if extra > -math.inf else epsilon
        return _gaussian(ratio / math.sqrt(high), e) + share

    return _over(_sum_sticks(term, 1, records), math.log(records))


@bound(
    "linear.shuffled_curved",
    title="A published random order over losses of the worst common curvature",
    gives="log_delta",
    kind="lower",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="average over positions, at the best curvature",
    formula="max over q of (1/n) sum over positions of delta_G(eps; r q^(k-1) sqrt((1-q^2)/(1-q^(2l))))",
    requires=(STEP_WITHIN, CONVEXITY_WITHIN, BALANCED, PUBLISHED, UNBOUNDED),
    assumes=(_CURVED, GAUSSIAN, "the order is published"),
    erratum=_NO_SUCH_GUARANTEE,
    slack="the best curvature of a search, full batches only, and blocks of many positions as one",
    coarse=True,
)
def shuffled_curved(
    *, records: int, batch_size: int, last_batch: str, sensitivity: float, noise_std: float, step_size: float,
    smoothness: float, strong_convexity: float, epsilon: float,
) -> float:  # fmt: skip
    """Where the order is published, delta is the average over the record's positions, and at each of them quadratics of
    one curvature leave a Gaussian. What a short last batch adds to the sum is left out.

    Args:
        records, batch_size, last_batch, sensitivity, noise_std, epsilon: as in `shuffled`.
        step_size, smoothness, strong_convexity: as in `curved_mu`.

    Returns:
        A lower bound on ln delta of such a run, rounded down.
    """
    plan = layout(records, batch_size, last_batch)
    after = 1 if plan.short else 0
    period = plan.full + after
    held = min(plan.size, records)
    if plan.size > records or (after and plan.divisor == plan.size):
        # Steps divided by more than they hold shrink less: only the common slope, curvature 0, is the same for all.
        if strong_convexity > 0.0:
            return -math.inf
        smoothness = 0.0

    def at(curvature: float) -> float:
        def term(low: int, high: int) -> float:
            mu = quadratic(
                sensitivity=sensitivity, size=plan.size, noise_std=noise_std, curvature=(step_size, curvature),
                period=period, tail=high, uses=1,
            )  # fmt: skip
            return _gaussian(mu, epsilon)

        return _sum_sticks(term, 1 + after, period)

    if smoothness == 0.0:
        value = at(0.0)
    else:
        value = _most(at, *_curvatures(step_size, smoothness, strong_convexity), tries=8, rounds=6)
    return _over(value + math.log(held), math.log(records))


def _mean_sticks(ratio: float, first: int, last: int, total: int, epsilon: float) -> float:
    return _over(
        _sum_sticks(lambda low, high: _gaussian(ratio / math.sqrt(high), epsilon), first, last), math.log(total)
    )


def _over(log_sum: float, log_total: float) -> float:
    value = log_sum - log_total
    return min(0.0, value - UNIT * (8.0 * abs(value) + 8.0 * log_total + 16.0)) if value > -math.inf else value


def _sum_sticks(term: Callable[[int, int], float], first: int, last: int) -> float:
    """Return ln of the sum over first <= k <= last of the terms, rounded down, from what is below all in low..high.

    Once they have come to nothing against the largest, the rest is left out.
    """
    logs: list[float] = []
    peak, k = -math.inf, first
    while k <= last:
        end = k if k < first + 128 else min(last, max(k, int(first + (k - first) * 1.02)))
        value = term(k, end) + math.log(end - k + 1)
        logs.append(value)
        if value < peak - 60.0 and value < logs[-2]:
            break
        peak = max(peak, value)
        k = end + 1
    if peak == -math.inf:
        return peak
    value = peak + math.log(math.fsum(math.exp(x - peak) for x in logs))
    return value - UNIT * (8.0 * abs(value) + 4.0 * math.log(last + 1) + 64.0)
