"""Lower bounds from linear losses, for algorithms that use a record a random number of times.

Any event A gives delta >= P(A) - e^eps Q(A), and the best event tried is used. Notation as in `linear_losses`. Every
value rounds down.

Also the sum of several passes that each multiply their start by a factor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.quantities import Adjacency
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, np, quotient_down
from dpcalc.theorems.conditions import BATCH_WITHIN, GAUSSIAN, ONE_RELEASE
from dpcalc.theorems.lower.linear_losses import LARGEST, LINEAR, SMALLEST, WHOLE_SPACE, gaussian_log_delta
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP, Setting

if TYPE_CHECKING:
    from fractions import Fraction

    from dpcalc.numerics.normal_arrays import Mixture


_LAST_OR_MORE = "the last iterate is released, and perhaps others, which reveal no less"
_EVENT = "the best event tried, with blocks of many numbers as one: a few per cent too low at most"


SHUFFLED_PASSES = (*BATCHES, "epochs", *GAUSSIAN_STEP, "adjacency")


@theorem(
    "linear.shuffled",
    title="A pass in random order over linear losses",
    needs=(*BATCHES, *GAUSSIAN_STEP, "adjacency"),
    kind="lower",
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1/sqrt(l)) for batches of one size; else P(A) - e^eps Q(A), counting 1/b or 1/b'",
    conditions=WHOLE_SPACE,
    assumes=(LINEAR, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    slack=_EVENT,
    slow=True,
    weakly_convex=True,
)
def shuffled(run: Setting) -> Profile:
    """A sum depends on the order only through the divisor of a batch of another size: if the record is in that batch,
    it counts more, less, or not at all. Any event then gives a lower bound.

    >>> run = Setting(records=100, batch_size=1, last_batch="own", sensitivity=2.0, noise_std=1.0,
    ...                   adjacency="replace-one")
    >>> round(shuffled(run).profile(0.3), 12)
    -4.992989007062
    """
    return _in_random_order(run, orders=1, passes_each=1)


@theorem(
    "linear.once",
    title="One random order for all passes over linear losses",
    needs=SHUFFLED_PASSES,
    kind="lower",
    algorithms=(*in_one_random_order(Release.LAST), *in_one_random_order(Release.PASS)),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1 sqrt(E/l)) for batches of one size; else P(A) - e^eps Q(A)",
    conditions=WHOLE_SPACE,
    assumes=(LINEAR, GAUSSIAN, _LAST_OR_MORE),
    caution=NO_GUARANTEE,
    slack=_EVENT,
    slow=True,
    weakly_convex=True,
)
def once(run: Setting) -> Profile:
    """With one order for all E passes the record is in the short last batch always or never. Otherwise it is as for one
    pass, with E times the shift and the noise of E l steps.
    """
    return _in_random_order(run, orders=1, passes_each=run.epochs)


@theorem(
    "linear.epochs",
    title="Fresh random orders over linear losses",
    needs=SHUFFLED_PASSES,
    kind="lower",
    algorithms=("shuffled-epochs", "shuffled-epochs-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="delta_G(eps; mu_1 sqrt(E/l)) for batches of one size; else P(A) - e^eps Q(A), the number of short batches "
    "Binomial(E, b'/n)",
    conditions=WHOLE_SPACE,
    assumes=(LINEAR, GAUSSIAN, _LAST_OR_MORE),
    caution=NO_GUARANTEE,
    slack=_EVENT,
    slow=True,
    weakly_convex=True,
)
def epochs(run: Setting) -> Profile:
    """With fresh orders the record is in the short last batch a binomial number of times, and each of these uses is
    larger, or missing. Otherwise it is as for one pass, with the noise of E l steps.
    """
    return _in_random_order(run, orders=run.epochs, passes_each=1)


@theorem(
    "linear.sampled",
    title="Steps on random batches of linear losses",
    needs=("records", "batch_size", "steps", *GAUSSIAN_STEP, "adjacency"),
    kind="lower",
    algorithms=("noisy-sgd", "noisy-sgd-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise; the best event",
    formula="P(A) - e^eps Q(A), the record counting Binomial(T, b/n) times",
    conditions=(BATCH_WITHIN, *WHOLE_SPACE),
    assumes=(LINEAR, GAUSSIAN, _LAST_OR_MORE),
    caution=NO_GUARANTEE,
    slack=_EVENT,
    slow=True,
    not_monotone_in=("records", "batch_size", "steps", "epochs"),
    weakly_convex=True,
)
def sampled(run: Setting) -> Profile:
    """The record is drawn Binomial(T, b/n) times, and each time it displaces another record; all others have the same
    gradient. The likelihood ratio is monotone, so the best event is all above one threshold.

    It is exact for one step.

    >>> run = Setting(records=100, batch_size=10, steps=1, sensitivity=2.0, noise_std=0.2, adjacency="replace-one")
    >>> round(sampled(run).profile(1.0), 6)
    -8.482205
    """
    from fractions import Fraction

    ratio = quotient_down((run.sensitivity,), (run.batch_size, run.noise_std, math.sqrt(run.steps)), 8.0)
    draws = _Count(base=Fraction(0), step=Fraction(1), trials=run.steps, chance=Fraction(run.batch_size, run.records))
    return Profile(_count_profile(draws, ratio, run.adjacency))


def _in_random_order(run: Setting | Setting, orders: int, passes_each: int) -> Profile:
    """Return epsilon -> ln delta after ``orders`` random orders, each used for ``passes_each`` passes."""
    plan, moved = run.layout, math.sqrt(orders * passes_each)
    *others, most = plan.positions
    ratio = quotient_down((run.sensitivity, moved), (most.divisor, run.noise_std, math.sqrt(run.period)), 12.0)
    if most.records == run.records:
        return Profile(lambda epsilon: gaussian_log_delta(ratio, epsilon))
    from fractions import Fraction

    elsewhere = Fraction(most.divisor, others[0].divisor) if others else Fraction(0)
    uses = _Count(
        base=Fraction(1), step=(elsewhere - 1) / orders, trials=orders,
        chance=Fraction(run.records - most.records, run.records),
    )  # fmt: skip
    return Profile(_count_profile(uses, ratio, run.adjacency))


class _Count(NamedTuple):
    """A record counts base + step Binomial(trials, chance) times."""

    base: Fraction
    step: Fraction
    trials: int
    chance: Fraction


def counted(
    trials: int, chance: Fraction, ratio: float, gradients: Sequence[tuple[float, float]]
) -> Callable[[float], float]:
    """Return epsilon -> ln delta, rounded down, of a record that is in the sum Binomial(trials, chance) times.

    Args:
        trials, chance: of the binomial law.
        ratio: what moves the sum by 1, in standard deviations of its noise.
        gradients: pairs of what the record and what the other one move it by, each time.
    """
    from fractions import Fraction

    return _profile(_Count(base=Fraction(0), step=Fraction(1), trials=trials, chance=chance), ratio, gradients)


def _count_profile(count: _Count, ratio: float, adjacency: Adjacency) -> Callable[[float], float]:
    """Return epsilon -> ln delta, rounded down, of a record that moves the sum by ``ratio`` each time it counts.

    All other records have the gradient 0, that of the record, or its opposite, and one takes the record's place.
    """
    gradients = [(0.5, -0.5), (1.0, 0.0), (0.0, -1.0)]
    if adjacency == Adjacency.NULL_RECORD:
        gradients += [(2.0, 1.0), (-1.0, -2.0)]
    return _profile(count, ratio, gradients)


def _profile(count: _Count, ratio: float, gradients: Sequence[tuple[float, float]]) -> Callable[[float], float]:
    """Return epsilon -> ln delta, rounded down, of two records whose gradients are one of these pairs."""
    if not ratio > SMALLEST:
        return lambda epsilon: -math.inf
    if count.step == 0 or count.chance in (0, 1):
        times = count.base + (count.step * count.trials if count.chance == 1 else 0)
        mu = min(ratio, LARGEST) * float(times) * (1.0 - 4.0 * UNIT)
        return lambda epsilon: gaussian_log_delta(mu, epsilon)

    @functools.cache
    def pairs() -> list[tuple[Mixture, Mixture]]:
        return _laws(count, min(ratio, 1e6), gradients)  # a smaller gradient is in the class, too

    def profile(epsilon: float) -> float:
        from dpcalc.numerics.normal_arrays import likelihood_ratio_threshold, log_advantage_down

        thresholds = [(p, q, likelihood_ratio_threshold(p, q, epsilon)) for p, q in pairs()]
        return min(0.0, max(log_advantage_down(p, q, epsilon, above) for p, q, above in thresholds))

    return profile


def _laws(count: _Count, ratio: float, gradients: Sequence[tuple[float, float]]) -> list[tuple[Mixture, Mixture]]:
    """Return pairs (P, Q) of laws of the sum with one record and with the other, P from below and Q from above."""
    from dpcalc.numerics.binomial import binomial_blocks
    from dpcalc.numerics.normal_arrays import Mixture

    masses = binomial_blocks(count.trials, count.chance)
    ends = [float(count.base) + float(count.step) * times for times in (masses.low, masses.high)]
    least, most = np.maximum(0.0, np.minimum(*ends)), np.maximum(*ends)
    ones = np.ones(len(least))
    unmoved = Mixture(np.zeros(1), np.zeros(1), np.ones(1))

    def moved_down(by: float) -> Mixture:
        return Mixture(masses.log_below, ratio * by * (least if by > 0.0 else most), ones) if by else unmoved

    def moved_up(by: float) -> Mixture:
        return Mixture(masses.log_above, ratio * by * (least if by < 0.0 else most), ones) if by else unmoved

    return [(moved_down(a), moved_up(b)) for a, b in gradients]


def times(product: float, epochs: int) -> float:
    """Return T for the product Q of the factors of a pass, rounded down; it grows with Q."""
    if epochs == 1 or product == 0.0:
        return 1.0
    half = -0.5 * math.log(product * (1.0 - 64.0 * UNIT))
    return math.sqrt(math.tanh(epochs * half) / math.tanh(half))


def after_fresh_noise(product: float, epochs: int, steps: int) -> float:
    """Return sqrt((1-Q^2)/(1-Q^(2E))), rounded down: what the noise of E passes leaves of the last one.

    Args:
        product: Q, which makes it smaller, as good as the product of as many factors as a pass has steps.
        epochs: E >= 1.
        steps: of a pass.
    """
    above = product * (1.0 + UNIT * (64.0 + 16.0 * steps))
    if epochs == 1 or above == 0.0:
        return 1.0
    if above >= 1.0:
        return 1.0 / math.sqrt(epochs) * (1.0 - 4.0 * UNIT)
    rate = -2.0 * math.log(above)
    return math.sqrt(math.expm1(-rate) / math.expm1(-rate * epochs)) * (1.0 - 32.0 * UNIT)
