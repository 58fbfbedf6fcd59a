"""DP-SGD on clipped gradients, every iterate public: batches drawn by each of the usual schemes, for every adjacency.

A step releases the sum of the clipped gradients of its batch plus N(0, (z C)^2 I), C the clipping norm and z the noise
multiplier; what divides the sum is a constant. Nothing is asked of the losses or of the dimension. The pairs of laws
that dominate a step are those of `dpcalc.notions.pld.sampled_gaussian`; an epoch of balls-in-bins has its own pair.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dpcalc.model.choices import Adjacency, Releases, Sampling
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition, Gdp, Hints, Profile
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.normal import LN_SQRT_2PI, mills
from dpcalc.theorems.conditions import STEP_WITHIN
from dpcalc.theorems.record import Condition, Missing, NotNeeded, Obstacle, Unmet, theorem
from dpcalc.theorems.sampled.noisy_sgd import use_cost
from dpcalc.theorems.setting import Setting

if TYPE_CHECKING:
    from dpcalc.notions.composed import Parts
    from dpcalc.notions.pld import Draws, Pair

_CLIPPED = "each record's gradient is clipped to norm clip; any loss, any model"
_NOISE = "fresh Gaussian noise of standard deviation noise_multiplier x clip on the sum, in every coordinate and step"
_SEEN = "every iterate may be released"
_CONSTANT = (
    "the sum is divided by a constant, not by the size of the batch that was drawn, and no batch size is released"
)
_MOST_MU = 300.0  # past this one a step shows that it used a record; the lattice of losses is coarse there
_LARGE_MU = 10.0  # from here on the losses of uses that are known may be nearer than those on a lattice
_MOST_MU_OF_MIXTURES = 1e6  # of steps that may use several records, or one several times
_FARTHEST_MU = 1e90  # past this one no step hides anything
_MOST_DRAWS = 10**15
_LEAST_RATE = 1e-15
_LARGEST_GROUP = 32


class SampledRun(Setting):
    """Steps on batches drawn at random."""

    @property
    def mu(self) -> float:
        """The clipping norm over the standard deviation of the noise, rounded up."""
        return up(1.0 / self.noise_multiplier)

    def composed(self, pair: Pair, known: Callable[[], Composition] | None = None) -> Composition:
        """Return the composition of one pair for all steps, in the orders that the adjacency asks for.

        Where losses are large it has ``known`` besides: what holds if it is known which steps the record was in.
        """
        whole = in_each_order(self.adjacency, [(pair, self.steps)])
        return whole if known is None or self.mu < _LARGE_MU else whole.replacing(hints=Hints(besides=known()))

    def disclosed(self, apart: float, rate: float, *, replaced: bool = False) -> Composition:
        """Return what holds if it is known which steps the record was in.

        Where the noise hides next to nothing this is close, but for a record that is added: runs with it that never use
        it are as frequent as ever, and this bounds all that can be learnt.

        Args:
            apart: how far one use moves a sum, in units of the clipping norm.
            rate: the probability of a use, at most 1.
            replaced: whether another record, with uses of its own, is in the place of the record.
        """
        rate = max(rate, _LEAST_RATE)
        if self.mu > _FARTHEST_MU:
            whole = apart * math.sqrt(self.steps) * (2.0 if replaced else 1.0)
            pair = _one_gaussian(up(whole / self.noise_multiplier, 4.0))
        else:
            pair = known_uses(up(apart * self.mu, 2.0), rate, self.steps, replaced=replaced)
        return Composition([(_added(pair, rate, self.steps) if self.adjacency == Adjacency.ADD else pair, 1)])


class DrawnRun(Setting):
    """Steps on records drawn one by one, with replacement."""

    @property
    def mu(self) -> float:
        """The clipping norm over the standard deviation of the noise, rounded up."""
        return up(1.0 / self.noise_multiplier)

    def draws(self, log_rest: float) -> Draws:
        """Return how often a record is drawn in a step, but for a rest of this ln of its weights."""
        from dpcalc.notions.pld import Draws

        return Draws(self.batch_size, self.group_size, self.records, log_rest)

    @property
    def disclosed(self) -> Composition:
        """What holds if it is known which draws were of a record that differs."""
        apart = 1.0 if self.adjacency == Adjacency.NULL_RECORD else 2.0
        mu, rate, draws = up(apart * self.mu, 2.0), up(self.group_size / self.records), self.batch_size * self.steps
        if self.mu > _FARTHEST_MU or draws > _MOST_DRAWS:
            pair = _one_gaussian(up(mu * self.batch_size * math.sqrt(self.steps), 4.0))
        else:
            pair = known_uses(mu, rate, draws, replaced=False, at_once=self.batch_size)
        return Composition([(_added(pair, rate, draws) if self.adjacency == Adjacency.ADD else pair, 1)])


EPOCHS_OF_BATCHES = ("sampling", "adjacency", "records", "batch_size", "steps", "noise_multiplier")


class EpochsOfBatches(Setting):
    """Epochs in each of which a record is used once, in a random step."""

    @property
    def bins(self) -> int:
        """The number of steps of an epoch."""
        return -(-self.records // self.batch_size)

    @property
    def passes(self) -> int:
        """The number of epochs, a last one that is cut short counted whole."""
        return -(-self.steps // self.bins)

    @property
    def mu(self) -> float:
        """The clipping norm over the standard deviation of the noise, rounded up."""
        return up(1.0 / self.noise_multiplier)

    @property
    def public(self) -> Gdp:
        """What holds if the step of every record is known: one use in every epoch."""
        return Gdp(composed_mu(self.adjacency, self.noise_multiplier, self.passes))


# --- conditions -------------------------------------------------------------------------------------------------------


def sampling_is(allowed: Sampling) -> Condition:
    """Return the condition that batches are drawn in this way."""

    def check(run: Run) -> Obstacle | None:
        if run.sampling is None:
            return Missing(("sampling",), "needs to know how batches are drawn", "give --sampling")
        if run.sampling == allowed:
            return None
        return NotNeeded(f"speaks of {allowed} sampling", f"use --sampling {allowed}", ("sampling",))

    return Condition(f"sampling is {allowed}", check)


def _nothing_is_forgotten(run: Run) -> Obstacle | None:
    """Return what is wrong with full batches whose early steps the last iterate forgets: another value is sharper."""
    forgets = (
        run.convex_if_clipped and (run.regularisation or run.diameter is not None) and STEP_WITHIN.check(run) is None
    )
    if run.release != Releases.LAST or not forgets:
        return None
    return NotNeeded("is for runs of which every iterate is seen", "see sampled.hidden_full", ("release",))


def _every_iterate_seen(run: Run) -> Obstacle | None:
    if run.release != Releases.LAST:
        return None
    return NotNeeded("speaks of runs of which every iterate is seen", "leave out --release last", ("release",))


def _no_neighbour_without(run: Run) -> Obstacle | None:
    """Return what is wrong with batches of fixed size where a record leaves or comes."""
    if run.records is not None and run.batch_size is not None and run.batch_size >= run.records:
        return Unmet(
            f"a batch of {run.batch_size} is all {run.records} records: no draw of another one is left",
            "use --sampling full, or a smaller --batch-size",
        )
    return None


def _ends_in_shuffled(run: Run) -> Obstacle | None:
    if run.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD):
        return None
    return Unmet(
        f"with adjacency {run.adjacency} one record more or less moves all later ones to other batches",
        "use --adjacency zero-out or replace-one, or --sampling balls-in-bins",
        ("adjacency",),
    )


ENDS_IN_SHUFFLED = Condition("adjacency zero-out or replace-one", _ends_in_shuffled)


def _others_are_drawn(run: Run) -> Obstacle | None:
    """Return what is wrong with draws that leave no other record to be drawn."""
    if run.records is None or (run.group_size or 1) < run.records:
        return None
    return Unmet("all records differ, and no draw of another one is left", "use more --records", ("records",))


def _group_is_small(run: Run) -> Obstacle | None:
    if (run.group_size or 1) <= _LARGEST_GROUP:
        return None
    return Unmet(f"is for groups of up to {_LARGEST_GROUP} records", "use a smaller --group-size", ("group_size",))


_SMALL_GROUP = Condition(f"group_size <= {_LARGEST_GROUP}", _group_is_small)
_SOME_ALIKE = Condition("group_size < records", _others_are_drawn)
_LEAVES_ONE_OUT = Condition("batch_size < records", _no_neighbour_without)


# --- guarantees -------------------------------------------------------------------------------------------------------


@theorem(
    "sampled.poisson",
    title="Poisson sampling, composed",
    needs=("sampling", "adjacency", "sample_rate", "steps", "noise_multiplier", "group_size?"),
    algorithms=("dp-sgd",),
    reference="zhu2022",
    locator="dominating pairs, composed by the law of the privacy loss; replacement: docs/method.md",
    formula="remove: ((1-q) N(0,1) + q N(1/z,1), N(0,1))^T; add: exchanged; replace: ((1-q) N(0,1) + q N(1/z,1), "
    "(1-q) N(0,1) + q N(-1/z,1))^T; k records: sum_j C(k,j) q^j (1-q)^(k-j) N(j/z,1) for the mixture",
    conditions=(sampling_is(Sampling.POISSON), _SMALL_GROUP),
    assumes=(
        "every step takes each record by itself with probability sample_rate, afresh", _CLIPPED, _NOISE, _CONSTANT,
        _SEEN,
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
)  # fmt: skip
def poisson(run: SampledRun) -> Composition:
    """The exact privacy of Poisson sampling: linear losses attain it, at every number of steps.

    >>> run = SampledRun(sampling="poisson", adjacency="remove", sample_rate=0.1, steps=1, noise_multiplier=1.0)
    >>> round(math.exp(poisson(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """
    replaced = run.adjacency == Adjacency.REPLACE_ONE
    size = run.group_size

    def known() -> Composition:
        return run.disclosed(size, min(1.0, up(size * run.sample_rate, 2.0)), replaced=replaced)

    if run.mu > (_MOST_MU if size == 1 else _MOST_MU_OF_MIXTURES):
        return known()
    return run.composed(poisson_pair(run.mu, run.sample_rate, replaced=replaced, size=size), known)


@theorem(
    "sampled.fixed",
    title="Batches of fixed size, composed",
    needs=("sampling", "adjacency", "sample_rate", "steps", "noise_multiplier"),
    algorithms=("dp-sgd",),
    reference="dong2022",
    locator="subsampling without replacement for replacement; the other adjacencies: docs/method.md",
    formula="M_a = (1-q) N(0,1) + q N(a/z,1); remove: (M_2, N(0,1))^T, add: exchanged; replace: the curve of "
    "(M_2, N(0,1)) in either order; zero-out: the curve of (M_2, M_1) above threshold 1, (N(0,1), M_1) below",
    conditions=(sampling_is(Sampling.FIXED), _LEAVES_ONE_OUT),
    assumes=(
        "every step draws batch_size of the records uniformly, without replacement, afresh",
        "for add and remove: records counts the larger data set, and data sets of at least so many are spoken of",
        _CLIPPED, _NOISE, _SEEN,
    ),
    slack="the lattice of losses; replace-one and zero-out compose a curve that no single run attains",
    slow=True,
)  # fmt: skip
def fixed(run: SampledRun) -> Composition:
    """A record that leaves a batch of fixed size makes room for another one: two sums are up to twice the clip apart.

    >>> run = SampledRun(sampling="fixed", adjacency="replace-one", sample_rate=0.1, steps=1, noise_multiplier=2.0)
    >>> round(math.exp(fixed(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    def known() -> Composition:
        return run.disclosed(1.0 if run.adjacency == Adjacency.NULL_RECORD else 2.0, run.sample_rate)

    return known() if run.mu > _MOST_MU else run.composed(fixed_pair(run.mu, run.sample_rate, run.adjacency), known)


@theorem(
    "sampled.with_replacement",
    title="Batches drawn with replacement, composed",
    needs=(*EPOCHS_OF_BATCHES, "group_size?"),
    algorithms=("dp-sgd",),
    reference="ballesub2018",
    locator="Theorem 10, with one half-line for all numbers of draws and the pair itself for a removed record: "
    "docs/method.md",
    formula="w_j = C(b,j) (k/n)^j (1-k/n)^(b-j); remove: (sum_j w_j N(2j/z,1), N(0,1))^T, add: exchanged; replace: the "
    "curve min sum_j w_j delta_G(ln(g + t_j); 2j/z) over t_j >= 0 with sum_j w_j t_j = (g-1) w_0; zero-out: the same "
    "with j/z in one order, in the other min sum_j w_j (x_j delta_G(ln(g/x_j); j/z) + y_j delta_G(ln(t_j/y_j); 2j/z)) "
    "over x_j + y_j = 1",
    conditions=(sampling_is(Sampling.WITH_REPLACEMENT), _SOME_ALIKE, _SMALL_GROUP),
    assumes=(
        "every step makes batch_size draws, each of one record, uniformly and by itself; a record that comes several "
        "times counts as often",
        "for add and remove: records counts the larger data set, and data sets of at least so many are spoken of",
        _CLIPPED, _NOISE, _SEEN,
    ),
    slack="the lattice of losses; replace-one and zero-out compose a curve that no single run attains",
    slow=True,
)  # fmt: skip
def with_replacement(run: DrawnRun) -> Composition:
    """A record comes j times with binomial weight, and in the place of j others: two sums are 2j clips apart.

    >>> run = DrawnRun(sampling="with-replacement", adjacency="replace-one", records=10, batch_size=1, steps=1,
    ...                noise_multiplier=2.0)
    >>> round(math.exp(with_replacement(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """
    if run.mu > _MOST_MU_OF_MIXTURES:
        return run.disclosed
    forward, backward = (functools.partial(_draws, run, back) for back in (False, True))
    return (
        Composition(forward) if run.adjacency == Adjacency.REPLACE_ONE else _asked_for(run.adjacency, forward, backward)
    )


@theorem(
    "sampled.full",
    title="Full batches, composed",
    needs=("sampling", "adjacency", "steps", "noise_multiplier"),
    algorithms=("dp-sgd",),
    kind="exact",
    reference="dong2022",
    locator="composition of Gaussian mechanisms",
    formula="mu = sqrt(T)/z, for replacement 2 sqrt(T)/z",
    conditions=(sampling_is(Sampling.FULL), Condition("no step is forgotten", _nothing_is_forgotten)),
    assumes=("every step uses all records", _CLIPPED, _NOISE, _CONSTANT, _SEEN),
)
def full(run: Setting) -> Gdp:
    """Every step is a Gaussian mechanism.

    >>> run = Setting(sampling="full", adjacency="null-record", steps=100, noise_multiplier=20.0)
    >>> round(full(run).mu, 9)
    0.5
    """
    return Gdp(composed_mu(run.adjacency, run.noise_multiplier, run.steps))


@theorem(
    "sampled.balls_in_bins",
    title="Balls in bins: one random step in every epoch, composed",
    needs=EPOCHS_OF_BATCHES,
    algorithms=("dp-sgd",),
    reference="chua2025",
    locator="the law of the likelihood ratio in convex order; adaptive epochs: docs/method.md",
    formula="an epoch of t steps: P = (1/t) sum_j N(e_j/z, I_t), Q = N(0, I_t), E(S - g)_+ and E(1 - g S)_+ for the "
    "mean S of t independent e^{y/z - 1/(2 z^2)}; replace: the least over a of E(S - a)_+ + E(a - g S)_+; composed "
    "over epochs",
    conditions=(sampling_is(Sampling.BALLS_IN_BINS),),
    assumes=(
        "in every epoch each record falls into one of the steps by itself, all equally likely",
        "an epoch has records/batch_size steps, rounded up",
        _CLIPPED, _NOISE, _CONSTANT, _SEEN,
    ),
    slack="the grid of likelihood ratios, some 1e-3 of epsilon; replace-one: by way of the run without the record, up "
    "to some 30 % of epsilon",
    slow=True,
)  # fmt: skip
def balls_in_bins(run: EpochsOfBatches) -> Composition:
    """What a record adds is hidden among the steps of an epoch, and the sizes of the batches vary.

    >>> run = EpochsOfBatches(sampling="balls-in-bins", adjacency="null-record", records=20, batch_size=10, steps=2,
    ...                       noise_multiplier=1.0)
    >>> round(math.exp(balls_in_bins(run).log_delta(1.0).value), 3)
    0.059
    """
    if not 1e-6 <= run.mu <= 30.0:
        return Composition([(_one_gaussian(run.public.mu), 1)])
    if run.adjacency == Adjacency.REPLACE_ONE:
        coarse = [functools.partial(_replaced_epochs, run, coarser=times) for times in (2, 4)]
        return Composition(functools.partial(_replaced_epochs, run), hints=Hints(coarser=tuple(coarse)))
    forward, backward = (functools.partial(_epochs, run, back) for back in (False, True))
    coarse = [functools.partial(_epochs, run, run.adjacency == Adjacency.ADD, coarser=times) for times in (2, 4)]
    return _asked_for(run.adjacency, forward, backward).replacing(hints=Hints(coarser=tuple(coarse)))


@theorem(
    "sampled.shuffle",
    title="Shuffled batches: as if the order were known",
    needs=EPOCHS_OF_BATCHES,
    algorithms=("dp-sgd",),
    reference="dong2022",
    locator="one use in every epoch, composed",
    formula="mu = sqrt(E)/z, for replacement 2 sqrt(E)/z",
    conditions=(sampling_is(Sampling.SHUFFLE), ENDS_IN_SHUFFLED),
    assumes=(
        "in every epoch the records are cut into batches, in any order that does not depend on the data; it may be "
        "published", _CLIPPED, _NOISE, _CONSTANT, _SEEN,
    ),
    slack="what a secret order hides: see sampled.shuffle_lower for how much that can be",
)  # fmt: skip
def shuffle(run: EpochsOfBatches) -> Gdp:
    """Every record is used once in an epoch. What Poisson sampling or balls in bins would give holds for no such run.

    >>> run = EpochsOfBatches(sampling="shuffle", adjacency="null-record", records=1000, batch_size=10, steps=400,
    ...                       noise_multiplier=4.0)
    >>> round(shuffle(run).mu, 9)
    0.5
    """
    return run.public


# --- what no guarantee can be below -----------------------------------------------------------------------------------


def _batches_are_full(run: Run) -> Obstacle | None:
    n, b = run.records, run.batch_size
    if n is None or b is None or n % b == 0:
        return None
    return Unmet(f"is for batches of one size, and {b} does not divide {n}", "use another --batch-size")


def _one_whole_epoch(run: Run) -> Obstacle | None:
    n, b, steps = run.records, run.batch_size, run.steps
    if n is None or b is None or steps is None or steps * b >= n:
        return None
    return Unmet("looks at one whole epoch, and the run is shorter", "use more steps", ("steps",))


@theorem(
    "sampled.shuffle_lower",
    title="Shuffled batches: a run that tells so much",
    needs=EPOCHS_OF_BATCHES,
    algorithms=("dp-sgd",),
    kind="lower",
    reference="chua2024",
    locator="the set where the largest sum exceeds a threshold; over epochs, the largest sums, composed; or all sums",
    formula="delta >= sup_c 1 - Phi((c-2)/z) Phi(c/z)^(t-1) - e^eps (1 - Phi((c-m)/z) Phi(c/z)^(t-1)), m = 1 "
    "(zero-out), 0 (replace-one); E epochs: P(A) - e^eps Q(A), A: E log-likelihood ratios of the largest sums, added, "
    "exceed a threshold; or all sums, added, do: delta_G(eps; (2-m) sqrt(E/t)/z)",
    conditions=(
        sampling_is(Sampling.SHUFFLE), ENDS_IN_SHUFFLED,
        Condition("batch_size divides records", _batches_are_full),
        Condition("at least one whole epoch", _one_whole_epoch),
        Condition("every iterate may be released", _every_iterate_seen),
    ),
    assumes=("all other gradients are -C, the record's is C; every epoch has a fresh order, and whole ones count",),
    caution="It says what no guarantee for these runs can be below, and guarantees nothing itself.",
    slack="of an epoch only the largest sum is looked at, or the total, and of more than 4096 epochs so many",
    slow=True,
)  # fmt: skip
def shuffle_lower(run: EpochsOfBatches) -> Profile:
    """The batch with the record stands out twice: it is in, and the one it displaced is not.

    >>> run = EpochsOfBatches(sampling="shuffle", adjacency="null-record", records=1000, batch_size=1, steps=1000,
    ...                       noise_multiplier=0.5)
    >>> round(math.exp(shuffle_lower(run).profile(4.0)), 6)
    0.073798
    """
    moved = 1.0 if run.adjacency == Adjacency.NULL_RECORD else 0.0
    bins, noise, epochs = run.bins, run.noise_multiplier, run.steps // run.bins
    total = down((2.0 - moved) * math.sqrt(epochs / bins) / noise, 8.0)

    def profile(epsilon: float) -> float:
        best = max(_largest_sum(bins, noise, moved, epsilon), gaussian.log_delta_down(mu=total, epsilon=epsilon))
        return best if epochs == 1 else max(best, _largest_sums(bins, noise, moved, epochs, epsilon))

    return Profile(profile)


def _largest_sums(bins: int, noise: float, moved: float, epochs: int, epsilon: float) -> float:
    """Return ln of a lower bound on delta from the largest sum of every epoch; with less noise no less is told."""
    from dpcalc.numerics import largest_sums

    if noise > largest_sums.WIDEST or epsilon > 1e6:
        return -math.inf
    apart, noise = 2.0 - moved, max(noise, largest_sums.NARROWEST)
    enough = (largest_sums.MOST_APART * noise / apart) ** 2
    epochs = min(epochs, largest_sums.MOST_EPOCHS, math.ceil(enough))
    noise = max(noise, apart * math.sqrt(epochs) / largest_sums.MOST_APART)
    scores, step = largest_sums.total_scores(bins, noise, 2.0, moved, epochs)
    return largest_sums.log_delta_down(scores, step, epsilon)


def _largest_sum(bins: int, noise: float, moved: float, epsilon: float) -> float:
    """Return ln of the best lower bound on delta over thresholds, rounded down; -inf where it is below 1e-290."""

    def log_delta(c: float) -> float:
        # ln P(some sum exceeds c): of all but one, and of the one; 1 - A B = (1 - A) + A (1 - B).
        others = (bins - 1) * _log_cdf(c / noise)
        first = -math.expm1(others + _log_cdf((c - 2.0) / noise))
        second = -math.expm1(others + _log_cdf((c - moved) / noise))
        if first < 1e-280:
            return -math.inf
        log_second = math.log(second) if second > 1e-200 else _log_any(bins, c / noise, (c - moved) / noise)
        log_ratio = epsilon + log_second - math.log(first)
        error = 1e-9 * (1.0 + abs(epsilon))  # far above the rounding of the terms
        gain = -math.expm1(log_ratio + error) if log_ratio + error < 0.0 else 0.0
        return math.log(first) + math.log(gain) if gain > 0.0 else -math.inf

    spread = 2.0 + noise * (3.0 + math.sqrt(2.0 * math.log(bins + 1.0)) + math.sqrt(2.0 * min(epsilon, 1e3)))
    best, where = max((log_delta(c), c) for c in (spread * j / 256.0 for j in range(-64, 257)))
    for power in range(9, 24):
        step = spread * 2.0**-power
        best, where = max((log_delta(c), c) for c in (where - step, where, where + step))
    return best - 1e-9 if best > -650.0 else -math.inf


def _log_any(bins: int, others: float, own: float) -> float:
    """Return an upper bound on ln P(one of t normal variables is so large), of t - 1 and of one; for small ones."""
    tails = [_log_tail(own)] + ([math.log(bins - 1) + _log_tail(others)] if bins > 1 else [])
    return max(tails) + math.log(len(tails))


def _log_tail(x: float) -> float:
    """Return ln P(y > x) of a normal variable, or 0 for x < 0."""
    return -0.5 * x * x - LN_SQRT_2PI + math.log(mills(x)) if x >= 0.0 else 0.0


def _log_cdf(x: float) -> float:
    """Return ln Phi(x), to nearest, for x > -37."""
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * math.sqrt(0.5)))
    value = 0.5 * math.erfc(-x * math.sqrt(0.5))
    return math.log(value) if value > 0.0 else -745.0


# --- where to look for a solution, no bound ---------------------------------------------------------------------------


def likely(run: Run, unknown: str, *, epsilon: float, log_delta: float) -> float | None:
    """Return about the value of the unknown that meets the budget, by the central limit theorem; None for no idea."""
    whole = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta) / (run.group_size or 1)
    fixed = run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)
    apart = 2.0 if run.adjacency == Adjacency.REPLACE_ONE or fixed else 1.0
    rate, steps, noise = run.sample_rate, run.steps, run.noise_multiplier

    def cost(mu: float, rate: float) -> float:
        return use_cost(mu, rate) if fixed else _likely_cost(mu, apart, rate)

    if unknown in ("noise_multiplier", "noise_std") and rate is not None and steps is not None:
        mu = _largest(lambda mu: steps * cost(mu, rate), whole * whole, 1e-6, 20.0)
        factor = run.clip / run.batch_size if unknown == "noise_std" and run.clip and run.batch_size else 1.0
        return apart / mu * factor
    if noise is None:
        return None
    if unknown in ("steps", "epochs") and rate is not None:
        likely_steps = whole * whole / max(cost(apart / noise, rate), 1e-300)
        return likely_steps if unknown == "steps" else likely_steps * rate
    if unknown == "sample_rate" and steps is not None:
        return _largest(lambda q: steps * cost(apart / noise, q), whole * whole, 1e-12, 1.0)
    return None


def _likely_cost(mu: float, apart: float, rate: float) -> float:
    """Return about the variance of the loss of a step that has the record with a probability of ``rate``.

    With L the likelihood ratio of a use, it is that of rate (L - 1) where the record is left out, and where it is
    replaced by another one that of rate (L - L'), L' the mirror image.
    """
    square = min((mu / apart) ** 2, 600.0)
    spread = math.expm1(square) if apart == 1.0 else 4.0 * math.sinh(square)
    return min(rate * rate * spread, mu * mu)


def _largest(cost: Callable[[float], float], budget: float, low: float, high: float) -> float:
    """Return about the largest argument of a growing function with a value of at most ``budget``."""
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low


# --- pairs ------------------------------------------------------------------------------------------------------------


def composed_mu(adjacency: Adjacency, noise_multiplier: float, uses: int) -> float:
    """Return mu of so many Gaussian mechanisms, rounded up: a record replaced moves a sum by twice the clip."""
    apart = 2.0 if adjacency == Adjacency.REPLACE_ONE else 1.0
    return up(apart * math.sqrt(uses) / noise_multiplier, 4.0)


def in_each_order(adjacency: Adjacency, parts: Sequence[tuple[Pair, int]]) -> Composition:
    """Return the composition of pairs whose forward order is that of a removed record, as the adjacency asks."""
    from dpcalc.notions import pld

    others = [(pld.exchanged(pair), count) for pair, count in parts]
    same = all(other is pair for (other, _), (pair, _) in zip(others, parts, strict=True))
    return _asked_for(adjacency, parts, () if same else others)


def _asked_for(adjacency: Adjacency, removed: Parts, added: Parts) -> Composition:
    """Return the composition in the orders that the adjacency asks for."""
    if adjacency == Adjacency.ADD and added:
        return Composition(added)
    return Composition(removed) if adjacency == Adjacency.REMOVE else Composition(removed, added)


def _one_gaussian(mu: float) -> Pair:
    """Return the pair of a Gaussian mechanism, whatever its mu."""
    from dpcalc.notions import pld

    return pld.gaussian_sum([(mu, 1)])


@functools.lru_cache(maxsize=64)
def _added(pair: Pair, rate: float, steps: int) -> Pair:
    """Return the pair of all steps for a record that is added, from that for one that is removed."""
    from dpcalc.notions import pld

    return pld.exchanged(pld.seldom_used(pair, rate=rate, steps=steps))


def _epochs(run: EpochsOfBatches, backward: bool, log_delta: float, *, coarser: int = 1) -> list[tuple[Pair, int]]:
    """Return the pair of an epoch and how many there are, on a grid that suits this ln delta."""
    from dpcalc.notions import pld

    pair = pld.random_place(mu=run.mu, bins=run.bins, log_tail=_log_infinite(run, log_delta), coarser=coarser)
    return [(pld.exchanged(pair) if backward else pair, run.passes)]


def _replaced_epochs(run: EpochsOfBatches, log_delta: float, *, coarser: int = 1) -> list[tuple[Pair, int]]:
    """Return the same for a record that is replaced by another."""
    from dpcalc.notions import pld

    log_tail = _log_infinite(run, log_delta)
    return [(pld.replaced_place(mu=run.mu, bins=run.bins, log_tail=log_tail, coarser=coarser), run.passes)]


def _draws(run: DrawnRun, backward: bool, log_delta: float) -> list[tuple[Pair, int]]:
    """Return the pair of a step on repeated draws, with as many numbers of draws as matter for this ln delta."""
    from dpcalc.notions import pld

    pair = drawn_pair(run.mu, run.draws(_log_rare(run.steps, log_delta)), run.adjacency)
    return [(pld.exchanged(pair) if backward else pair, run.steps)]


def _log_infinite(run: EpochsOfBatches, log_delta: float) -> float:
    """Return ln of what may count as an infinite loss in an epoch."""
    return _log_rare(run.passes, log_delta)


def _log_rare(times: int, log_delta: float) -> float:
    """Return ln of a probability that does not matter for this ln delta, even so many times."""
    return max(-640.0, 8.0 * math.floor((log_delta - math.log(times) - 12.0) / 8.0))


@functools.lru_cache(maxsize=64)
def poisson_pair(mu: float, rate: float, *, replaced: bool, size: int = 1) -> Pair:
    """Return the pair of a step on a Poisson sample, for groups of so many records."""
    from dpcalc.notions import pld

    if size > 1:
        make_group = pld.replaced_group if replaced else pld.removed_group
        return make_group(mu=max(mu, 1e-6), rate=max(rate, _LEAST_RATE), size=size)
    make = pld.replaced_poisson if replaced else pld.removed
    return make(mu=max(mu, 1e-30), rate=max(rate, _LEAST_RATE))


@functools.lru_cache(maxsize=64)
def known_uses(mu: float, rate: float, steps: int, *, replaced: bool, at_once: int = 1) -> Pair:
    """Return the pair of all steps where it may be known which of them used the record."""
    from dpcalc.notions import pld

    if replaced:
        return pld.replaced_known_uses(mu=mu, rate=rate, steps=steps)
    return pld.known_uses(mu=mu, rate=rate, steps=steps, at_once=at_once)


@functools.lru_cache(maxsize=64)
def fixed_pair(mu: float, rate: float, adjacency: Adjacency) -> Pair:
    """Return the pair of a step on a batch of fixed size."""
    from dpcalc.notions import pld

    mu, rate = max(mu, 1e-30), max(rate, _LEAST_RATE)
    if adjacency == Adjacency.REPLACE_ONE:
        return pld.subsampled_gaussian(mu=2.0 * mu, rate=rate)
    if adjacency == Adjacency.NULL_RECORD:
        return pld.nulled_fixed(mu=mu, rate=rate)
    return pld.removed(mu=2.0 * mu, rate=rate)


@functools.lru_cache(maxsize=64)
def drawn_pair(mu: float, draws: Draws, adjacency: Adjacency) -> Pair:
    """Return the pair of a step on records drawn with replacement."""
    from dpcalc.notions import pld

    make = {Adjacency.REPLACE_ONE: pld.replaced_draws, Adjacency.NULL_RECORD: pld.nulled_draws}
    return make.get(adjacency, pld.removed_draws)(mu=max(mu, 1e-6), draws=draws)
