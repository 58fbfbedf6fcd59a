"""DP-SGD on clipped gradients, every iterate public: batches drawn by each of the usual schemes, for every adjacency.

A step releases the sum of the clipped gradients of its batch plus N(0, (z C)^2 I), C the clipping norm and z the noise
multiplier; the divisor of the sum is a constant. Losses and dimension are arbitrary. The pairs of laws
that dominate a step are those of `dpcalc.notions.pld.sampled_gaussian`; an epoch of balls-in-bins has its own pair.
"""

from __future__ import annotations

from dpcalc.model.quantities import Adjacency, Releases, Sampling
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition, Gdp
from dpcalc.theorems.conditions import STEP_WITHIN
from dpcalc.theorems.record import Condition, Missing, NotNeeded, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.sampled import pairs
from dpcalc.theorems.sampled.settings import EPOCHS_OF_BATCHES, EpochsOfBatches, SampledSteps, composed_mu
from dpcalc.theorems.setting import Setting

CLIPPED = "each record's gradient is clipped to norm clip; any loss, any model"
NOISE = "fresh Gaussian noise of standard deviation noise_multiplier x clip on the sum, in every coordinate and step"
SEEN = "every iterate may be released"
CONSTANT = (
    "the sum is divided by a constant, not by the size of the batch that was drawn, and no batch size is released"
)
LARGEST_GROUP = 32
_MOST_TRUNCATED = 10**10  # records: the sums over batch sizes then have millions of terms


# --- conditions -------------------------------------------------------------------------------------------------------


def sampling_is(allowed: Sampling, *, asked: bool = True) -> Condition:
    """Return the condition that batches are drawn in this way; ``asked`` is False for runs without that choice."""

    def check(run: Run) -> Obstacle | None:
        if asked and run.sampling is None:
            return Missing(("sampling",), "needs to know how batches are drawn", "give --sampling")
        if run.sampling == allowed:
            return None
        return NotNeeded(f"speaks of {allowed} sampling", f"use --sampling {allowed}", ("sampling",))

    return Condition(f"sampling is {allowed}", check)


def _nothing_is_forgotten(run: Run) -> Obstacle | None:
    """Return an obstacle for full batches whose last iterate forgets early steps: another value is sharper."""
    forgets = (
        run.convex_if_clipped and (run.regularisation or run.diameter is not None) and STEP_WITHIN.check(run) is None
    )
    if run.release != Releases.LAST or not forgets:
        return None
    return NotNeeded("is for runs of which every iterate is seen", "see sampled.hidden_full", ("release",))


ENDS_IN_SHUFFLED = requires(
    "adjacency zero-out or replace-one",
    lambda run: run.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD),
    lambda run: Unmet(
        f"with adjacency {run.adjacency} one record more or less moves all later ones to other batches",
        "use --adjacency zero-out or replace-one, or --sampling balls-in-bins",
        ("adjacency",),
    ),
)


def _cut_from_known(run: Run) -> Obstacle | None:
    """Return an obstacle for batches that are cut to a largest size."""
    if run.max_batch_size is None:
        return None
    if run.sampling != Sampling.POISSON or (run.records or 0) > _MOST_TRUNCATED:
        return Unmet("cuts Poisson batches of up to 1e10 records", "leave out --max-batch-size", ("max_batch_size",))
    if run.records is None:
        return Missing(("records",), "needs to know of how many records a batch is cut", "give --records")
    return None


WHOLE_EPOCH = requires(
    "at least one whole epoch",
    lambda run: (
        run.records is None
        or run.batch_size is None
        or run.steps is None
        or run.steps >= -(-(run.uses or 1) * run.records // run.batch_size)
    ),
    Unmet("looks at one whole epoch, and the run is shorter", "use more steps", ("steps",)),
)
_SMALL_GROUP = requires(
    f"group_size <= {LARGEST_GROUP}",
    lambda run: (run.group_size or 1) <= LARGEST_GROUP,
    Unmet(f"is for groups of up to {LARGEST_GROUP} records", "use a smaller --group-size", ("group_size",)),
)
_SOME_ALIKE = requires(
    "group_size < records",
    lambda run: run.records is None or (run.group_size or 1) < run.records,
    Unmet("all records differ, and no draw of another one is left", "use more --records", ("records",)),
)
_LEAVES_A_BATCH = requires(
    "group_size <= records - batch_size, for add and remove",
    lambda run: (
        run.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD)
        or (run.group_size or 1) <= max(1, (run.records or 0) - (run.batch_size or 0))
    ),
    Unmet("the records that are left are no batch", "use a smaller --group-size", ("group_size",)),
)
_LEAVES_ONE_OUT = requires(
    "batch_size < records",
    lambda run: run.records is None or run.batch_size is None or run.batch_size < run.records,
    lambda run: Unmet(
        f"a batch of {run.batch_size} is all {run.records} records: no draw of another one is left",
        "use --sampling full, or a smaller --batch-size",
    ),
)


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
        "every step takes each record by itself with probability sample_rate, afresh", CLIPPED, NOISE, CONSTANT,
        SEEN,
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
)  # fmt: skip
def poisson(run: SampledSteps) -> Composition:
    """The exact privacy of Poisson sampling: linear losses attain it, at every number of steps.

    >>> import math
    >>> run = SampledSteps(sampling="poisson", adjacency="remove", sample_rate=0.1, steps=1, noise_multiplier=1.0)
    >>> round(math.exp(poisson(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    return pairs.poisson(run)


@theorem(
    "sampled.truncated",
    title="Poisson batches of at most so many records, composed",
    needs=("sampling", "adjacency", "records", "sample_rate", "max_batch_size", "steps", "noise_multiplier"),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="sampled steps: the curves of fixed batches where the others fill one; published (arXiv:2508.15089): a "
    "pair with shifts 2 and -2",
    formula="p = P(Bin(n-1,q) >= B), q' = (B/n) P(Bin(n,q) > B)/p, for add and remove q' = q: (1-p) times the curve of "
    "sampled.poisson at rate q, plus p times that of sampled.fixed at rate q'",
    conditions=(
        sampling_is(Sampling.POISSON),
        requires(
            f"records <= {_MOST_TRUNCATED:.0e}", lambda run: (run.records or 0) <= _MOST_TRUNCATED,
            Unmet("sums over the sizes of batches, and these are too many", "leave out --max-batch-size", ("records",)),
        ),
    ),
    assumes=(
        "every step takes each record by itself with probability sample_rate, afresh; of more than max_batch_size it "
        "keeps so many, all such parts equally likely",
        "for zero-out a null record is drawn and counts as any other; for add and remove records counts the larger "
        "data set, or more than it has",
        CLIPPED, NOISE, CONSTANT, SEEN,
    ),
    slack="the lattice of losses; the curves are met by single steps, and a composition of them by no run",
    slow=True,
    not_monotone_in=("records", "batch_size", "sample_rate"),
)  # fmt: skip
def truncated(run: SampledSteps) -> Composition:
    """If the other records fill a batch, it has its largest size, and a record that is kept displaces another one.

    >>> import math
    >>> run = SampledSteps(sampling="poisson", adjacency="null-record", records=3, sample_rate=0.5, max_batch_size=1,
    ...                    steps=1, noise_multiplier=1.0)
    >>> round(math.exp(truncated(run).log_delta(0.0).value), 6)  # (1/8 + 1/6) (2 Phi(1/2) - 1)
    0.111686
    """
    return pairs.truncated(run)


@theorem(
    "sampled.scheduled",
    title="Steps whose rate and noise follow a schedule, composed",
    needs=(
        "sampling", "adjacency", "schedule", "schedule_factor?", "records?", "max_batch_size?", "group_size?",
    ),
    algorithms=("dp-sgd",),
    reference="zhu2022",
    locator="dominating pairs of all phases, composed; many kinds of steps as means of few: docs/method.md",
    formula="the product over phases of sampled.poisson, sampled.truncated or sampled.fixed, each with its own q, z "
    "and number of steps; k records: of their own pairs where Poisson batches are not cut, else a chain",
    conditions=(
        requires(
            "sampling is poisson or fixed",
            lambda run: run.sampling in (Sampling.POISSON, Sampling.FIXED),
            Unmet("composes Poisson batches, or batches of fixed size", "use --sampling poisson", ("sampling",)),
        ),
        requires(
            "a schedule of sampled steps", lambda run: run.schedule is not None,
            NotNeeded("is for steps that follow a schedule", "give --schedule", ("schedule",)),
        ),
        Condition("batches that are cut are Poisson samples of a known number of records", _cut_from_known),
        requires(
            "groups of Poisson batches, or under zero-out or replace-one",
            lambda run: (
                (run.group_size or 1) == 1
                or run.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD)
                or (run.sampling is Sampling.POISSON and run.max_batch_size is None)
            ),
            Unmet(
                "says nothing of groups in such batches that are added or removed", "use --adjacency zero-out",
                ("adjacency",),
            ),
        ),
        _SMALL_GROUP,
    ),
    assumes=(
        "the schedule is fixed before the run: no rate and no noise is chosen from what was released; a step draws as "
        "sampling says, at the rate of its phase, afresh",
        "fixed batches, for add and remove: the rates are of the larger data set, and data sets of at least so many "
        "are spoken of",
        CLIPPED, NOISE, CONSTANT, SEEN,
    ),
    slack="the lattice of losses; of more than 96 kinds of steps, means of those at the corners of cells, up to 1e-3",
    slow=True,
)  # fmt: skip
def scheduled(run: SampledSteps) -> Composition:
    """Different steps compose as equal ones do, as long as the schedule was fixed beforehand.

    >>> import math
    >>> import numpy as np
    >>> from dpcalc.model.phases import Phases
    >>> phases = Phases(np.array([0.1, 0.1]), np.array([1.0, 1.0]), np.array([1.0, 1.0]), "two equal phases")
    >>> run = SampledSteps(sampling="poisson", adjacency="remove", schedule=phases)
    >>> same = SampledSteps(sampling="poisson", adjacency="remove", sample_rate=0.1, steps=2, noise_multiplier=1.0)
    >>> math.isclose(scheduled(run).log_delta(0.5).value, poisson(same).log_delta(0.5).value, rel_tol=1e-6)
    True
    """
    return pairs.scheduled(run)


@theorem(
    "sampled.fixed",
    title="Batches of fixed size, composed",
    needs=(
        "sampling", "adjacency", "sample_rate", "steps", "noise_multiplier", "records?", "batch_size?", "group_size?",
    ),
    algorithms=("dp-sgd",),
    reference="dong2022",
    locator="subsampling without replacement for replacement; the other adjacencies: docs/method.md",
    formula="M_a = (1-q) N(0,1) + q N(a/z,1); remove: (M_2, N(0,1))^T, add: exchanged; replace: the curve of "
    "(M_2, N(0,1)) in either order; zero-out: the curve of (M_2, M_1) above threshold 1, (N(0,1), M_1) below; "
    "k records: as with replacement, with w_j = C(k,j) C(n-k,b-j)/C(n,b)",
    conditions=(sampling_is(Sampling.FIXED), _LEAVES_ONE_OUT, _LEAVES_A_BATCH),
    assumes=(
        "every step draws batch_size of the records uniformly, without replacement, afresh",
        "for add and remove: records counts the larger data set, and data sets of at least so many are spoken of",
        CLIPPED, NOISE, SEEN,
    ),
    slack="the lattice of losses; replace-one and zero-out compose a curve that no single run attains",
    slow=True,
)  # fmt: skip
def fixed(run: EpochsOfBatches) -> Composition:
    """A record in a batch of fixed size displaces another one, so two sums are up to twice the clipping norm apart.

    >>> import math
    >>> run = EpochsOfBatches(sampling="fixed", adjacency="replace-one", sample_rate=0.1, steps=1, noise_multiplier=2.0)
    >>> round(math.exp(fixed(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    return pairs.fixed(run)


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
        CLIPPED, NOISE, SEEN,
    ),
    slack="the lattice of losses; replace-one and zero-out compose a curve that no single run attains",
    slow=True,
)  # fmt: skip
def with_replacement(run: SampledSteps) -> Composition:
    """A record is drawn j times with binomial probability and displaces j others, so two sums are 2j clipping norms
    apart.

    >>> import math
    >>> run = SampledSteps(sampling="with-replacement", adjacency="replace-one", records=10, batch_size=1, steps=1,
    ...                noise_multiplier=2.0)
    >>> round(math.exp(with_replacement(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """

    return pairs.with_replacement(run)


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
    assumes=("every step uses all records", CLIPPED, NOISE, CONSTANT, SEEN),
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
    needs=(*EPOCHS_OF_BATCHES, "uses?"),
    algorithms=("dp-sgd",),
    reference="chua2025",
    locator="the law of the likelihood ratio in convex order; adaptive epochs: docs/method.md",
    formula="an epoch of t steps: P = (1/t) sum_j N(e_j/z, I_t), Q = N(0, I_t), E(S - g)_+ and E(1 - g S)_+ for the "
    "mean S of t independent e^{y/z - 1/(2 z^2)}; replace: the least over a of E(S - a)_+ + E(a - g S)_+; composed "
    "over epochs; k uses: k sections of t/k steps, rounded down and up, and their pairs composed",
    conditions=(sampling_is(Sampling.BALLS_IN_BINS),),
    assumes=(
        "in every epoch each record falls into one of the steps by itself, all equally likely; with uses: into so many "
        "different steps, all choices equally likely",
        "an epoch has records/batch_size steps, with uses so many times more, rounded up",
        CLIPPED, NOISE, CONSTANT, SEEN,
    ),
    slack="the grid of likelihood ratios, some 1e-3 of epsilon; replace-one: by way of the run without the record, up "
    "to some 30 % of epsilon",
    slow=True,
)  # fmt: skip
def balls_in_bins(run: EpochsOfBatches) -> Composition:
    """A record's contribution is hidden among the steps of an epoch, and batch sizes vary.

    >>> import math
    >>> run = EpochsOfBatches(sampling="balls-in-bins", adjacency="null-record", records=20, batch_size=10, steps=2,
    ...                       noise_multiplier=1.0)
    >>> round(math.exp(balls_in_bins(run).log_delta(1.0).value), 3)
    0.059
    """

    return pairs.balls_in_bins(run)


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
        "published", CLIPPED, NOISE, CONSTANT, SEEN,
    ),
    slack="what a secret order hides: see sampled.shuffle_lower for how much that can be",
)  # fmt: skip
def shuffle(run: EpochsOfBatches) -> Gdp:
    """Every record is used once in an epoch. Bounds for Poisson sampling or balls in bins do not hold for shuffled
    batches.

    >>> run = EpochsOfBatches(sampling="shuffle", adjacency="null-record", records=1000, batch_size=10, steps=400,
    ...                       noise_multiplier=4.0)
    >>> round(shuffle(run).mu, 9)
    0.5
    """
    return run.public
