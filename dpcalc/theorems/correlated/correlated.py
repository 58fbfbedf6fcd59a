"""Correlated noise on clipped gradients, every iterate public: one Gaussian pair, and banded matrices with sampling.

Step t releases g_t + (C^-1 Z)_t, g_t the sum of the clipped gradients of its batch and the entries of Z independent.
The noise has covariance (C'C)^-1, so gradients may depend on all earlier releases, for any C.
"""

from __future__ import annotations

from dpcalc.model.quantities import BANDED, Adjacency, Mechanism, Sampling, Scaling
from dpcalc.model.run import Run
from dpcalc.model.strategy import Strategy
from dpcalc.notions.guarantee import Composition, Gdp
from dpcalc.numerics.floats import down, up
from dpcalc.theorems.record import Condition, Missing, NotNeeded, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.sampled import pairs
from dpcalc.theorems.sampled.sampled_steps import CLIPPED, CONSTANT, ENDS_IN_SHUFFLED, SEEN, sampling_is
from dpcalc.theorems.sampled.settings import EpochsOfBatches, SampledSteps
from dpcalc.theorems.setting import Setting

_MOST_STEPS = 10**7
"""The most entries of a column: ten million doubles are 80 MB."""
_MOST_PRODUCTS = 10**9
"""The most products of a recursion over the bands: some seconds."""

_NOISE = "fresh Gaussian noise of standard deviation noise_multiplier x scaling x clip in every entry of Z"
_GROUPS = (
    "each record belongs to one of as many groups as C has bands, by a rule that ignores the other records; step t "
    "draws from group t mod bands alone, at bands times the overall rate"
)


class CorrelatedSteps(Setting):
    """Steps whose noise is correlated by a matrix."""

    @property
    def rounds(self) -> int:
        """The most steps that draw from one group of records."""
        return -(-self.steps // self.bands)

    @property
    def strategy(self) -> Strategy:
        """The matrix; with sampled batches the uses of a record are unknown, and no mechanism reads them."""
        return Strategy.of(self.known.get)

    @property
    def multiplier_of_columns(self) -> float:
        """The noise multiplier for columns of C scaled to norm 1, rounded down."""
        if self.scaling == Scaling.COLUMNS:
            return self.noise_multiplier
        return down(self.noise_multiplier / self.strategy.column_norm()[1], 4.0)

    @property
    def one_pair(self) -> Gdp:
        """The guarantee of the whole run if a record's steps are public."""
        apart = 2.0 if self.adjacency == Adjacency.REPLACE_ONE else 1.0
        if self.scaling == Scaling.SENSITIVITY:
            return Gdp(up(apart / self.noise_multiplier, 2.0))
        scale = self.strategy.column_norm()[0] if self.scaling == Scaling.COLUMNS else 1.0
        return Gdp(up(apart * self.strategy.sensitivity(self.separation) / (scale * self.noise_multiplier), 4.0))


# --- conditions -------------------------------------------------------------------------------------------------------


def _known_matrix(run: Run) -> Obstacle | None:
    if run.mechanism is None or (run.mechanism == Mechanism.FILE and run.schedule is None):
        what = "needs to know which matrix correlates the noise"
        return Missing(("mechanism",), what, "give --mechanism sqrt or another, or --matrix FILE")
    if run.mechanism in BANDED and run.bands is None:
        return Missing(("bands",), f"needs to know how many bands {run.mechanism} has", "give --bands")
    if run.mechanism == Mechanism.TREE and run.sampling is Sampling.SHUFFLE:
        return Unmet(
            "what a tree is sensitive to is known where every pass has the same order",
            "leave out --sampling if that is so, or use another --mechanism",
            ("mechanism",),
        )
    if run.steps is not None and run.steps > _MOST_STEPS:
        return Unmet(f"sums columns of up to {_MOST_STEPS:g} steps", "use fewer --steps", ("steps",))
    if run.mechanism == Mechanism.BISR and (run.steps or 0) * (run.bands or 0) > _MOST_PRODUCTS:
        return Unmet(
            f"computes a column by steps x bands products, and more than {_MOST_PRODUCTS:g} take too long",
            "use fewer --bands",
            ("bands",),
        )
    return None


_KNOWN_MATRIX = Condition("the matrix is known, and has at most 1e7 rows", _known_matrix)
_NOT_SAMPLED = requires(
    "batches in a public order",
    lambda run: run.sampling in (None, Sampling.SHUFFLE),
    lambda run: NotNeeded(f"is for public orders, and the sampling is {run.sampling}", "leave out --sampling"),
)
_FROM_A_FILE = requires(
    "the matrix is from a file",
    lambda run: run.mechanism in (Mechanism.FILE, None),
    NotNeeded("is for matrices from files", "give --matrix FILE", ("mechanism",)),
)
_NAMED = requires(
    "the matrix is not from a file",
    lambda run: run.mechanism != Mechanism.FILE,
    NotNeeded("is for matrices that a mechanism names", "leave out --matrix", ("mechanism",)),
)
_BANDED_MATRIX = requires(
    "C is banded",
    lambda run: run.mechanism in (Mechanism.BANDED_SQRT, Mechanism.IDENTITY, Mechanism.FILE, None),
    lambda run: Unmet(
        f"is for banded matrices, and that of {run.mechanism} has entries in all rows of a column",
        "use --mechanism banded-sqrt, or leave out --sampling",
        ("mechanism",),
    ),
)
_COLUMNS_KNOWN = requires(
    "scaling matrix or columns",
    lambda run: run.scaling != Scaling.SENSITIVITY,
    Unmet("knows no number of uses, which the sensitivity depends on", "use --scaling columns", ("scaling",)),
)
_RARE = requires(
    "bands x sample_rate <= 1",
    lambda run: (run.bands or 1) * (run.sample_rate or 0.0) <= 1.0 + 1e-12,  # 1/10 is rounded up, 10 times it is 1
    lambda run: Unmet(
        f"draws from one of {run.bands} groups in a step, at {run.bands} times the rate, which would exceed 1",
        "use fewer --bands",
        ("bands",),
    ),
)


_WHOLE_BLOCKS = requires(
    "bands divides the steps of an epoch",
    lambda run: run.separation is None or run.separation % (run.bands or 1) == 0,
    lambda run: Unmet(
        f"needs whole rounds in every epoch, and {run.bands} bands do not divide its {run.separation} steps",
        "use another --bands",
        ("bands",),
    ),
)


# --- guarantees -------------------------------------------------------------------------------------------------------


@theorem(
    "correlated.gaussian",
    title="Correlated noise in a public order",
    needs=(
        "mechanism", "steps", "participations", "separation", "noise_multiplier", "scaling", "adjacency", "bands?",
        "sampling?",
    ),
    algorithms=("correlated",),
    kind="exact",
    reference="denisov2022",
    locator="Theorem 2.1; the worst uses of a matrix by Kalinin and Lampert: docs/method.md",
    formula="mu = L sens/(z s), sens = |c + shift^b c + ... + shift^((k-1) b) c|, L = 1 (zero-out), 2 (replace-one), "
    "s = 1 (matrix), |c| (columns), sens (sensitivity); tree: sens^2 = the largest sum over complete nodes of squared "
    "numbers of uses",
    conditions=(_NAMED, _KNOWN_MATRIX, _NOT_SAMPLED, ENDS_IN_SHUFFLED),
    assumes=(
        "a record is used in at most participations steps, at least separation steps apart (of a tree: exactly so "
        "many), by a rule that ignores the other records; the order may be public", CLIPPED, _NOISE, CONSTANT, SEEN,
    ),
    public_sums=True,
    not_monotone_in=("steps",),  # if noise is relative to columns, a longer column has more noise
    erratum="Sensitivities from a search over the signs of gradients are no guarantee: three columns at 120 degrees "
    "have 4 by signs and 4.5 by vectors.",
)  # fmt: skip
def gaussian(run: CorrelatedSteps) -> Gdp:
    """The whole run is one Gaussian mechanism, even if gradients depend on earlier releases.

    >>> run = CorrelatedSteps(mechanism="sqrt", steps=1000, participations=5, separation=200, noise_multiplier=5.0,
    ...                       scaling="matrix", adjacency="null-record")
    >>> round(gaussian(run).mu, 9)
    1.037606578
    """
    return run.one_pair


@theorem(
    "correlated.matrix",
    title="Noise correlated by any matrix, in a public order",
    needs=(
        "mechanism", "schedule?", "steps", "participations", "separation", "noise_multiplier", "scaling", "adjacency",
        "epochs?", "sampling?",
    ),
    algorithms=("correlated",),
    reference="choquette2023",
    locator="with absolute values, for gradients that depend on what was released: docs/method.md",
    formula="mu = L sens/(z s), sens^2 = max sum of |C'C| over a record's uses (at most, if only their separation is "
    "known), L = 1 (zero-out), 2 (replace-one), s = 1 (matrix), max |column of C| (columns), sens (sensitivity)",
    conditions=(_FROM_A_FILE, _KNOWN_MATRIX, _NOT_SAMPLED, ENDS_IN_SHUFFLED),
    assumes=(
        "C is the matrix of the file, to all digits",
        "a record is used in at most participations steps, at least separation steps apart (with epochs and without "
        "sampling: exactly so many), by a rule that ignores the other records; the order may be public",
        CLIPPED, _NOISE, CONSTANT, SEEN,
    ),
    not_monotone_in=("steps",),
    slack="entries of C'C below 0, and uses whose order varies: sums along their best partners bound the best uses",
    public_sums=True,
)  # fmt: skip
def of_any_matrix(run: CorrelatedSteps) -> Gdp:
    """The whole run is one Gaussian mechanism; the sensitivity bound holds for entries of C of any sign.

    >>> import numpy as np
    >>> from dpcalc.model.matrix_file import Matrix
    >>> signed = Matrix(np.array([[1.0, 0.0], [-0.5, 1.0]]), "signed.npy")
    >>> run = CorrelatedSteps(mechanism="file", schedule=signed, steps=2, participations=2, separation=1,
    ...                       noise_multiplier=2.0, scaling="matrix", adjacency="null-record")
    >>> round(of_any_matrix(run).mu ** 2 * 2.0 ** 2, 9)
    3.25
    """
    return run.one_pair


@theorem(
    "correlated.banded_poisson",
    title="Banded noise with Poisson batches from groups",
    needs=(
        "sampling", "mechanism", "steps", "sample_rate", "noise_multiplier", "scaling", "adjacency", "bands?",
        "schedule?",
    ),
    algorithms=("correlated",),
    reference="choquette2023",
    locator="Theorem 4, for adaptive gradients and every adjacency: docs/method.md",
    formula="sampled.poisson with rate p q, ceil(T/p) steps and noise multiplier z (columns), z/|c| (matrix)",
    conditions=(sampling_is(Sampling.POISSON, asked=False), _KNOWN_MATRIX, _BANDED_MATRIX, _COLUMNS_KNOWN, _RARE),
    assumes=(_GROUPS, "each of its records by itself", CLIPPED, _NOISE, CONSTANT, SEEN),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    public_sums=True,
)  # fmt: skip
def banded_poisson(run: CorrelatedSteps) -> Composition:
    """A use touches as many rows as C has bands, and its group is only sampled again after these.

    >>> run = CorrelatedSteps(sampling="poisson", mechanism="banded-sqrt", steps=1000, bands=10, sample_rate=0.005,
    ...                       noise_multiplier=1.2, scaling="columns", adjacency="remove")
    >>> round(banded_poisson(run).epsilon(-13.815510557964274).value, 3)
    2.857
    """
    return pairs.poisson(
        SampledSteps(
            sampling=Sampling.POISSON, adjacency=run.adjacency, steps=run.rounds,
            sample_rate=min(1.0, up(run.bands * run.sample_rate, 2.0)), noise_multiplier=run.multiplier_of_columns,
        )
    )  # fmt: skip


@theorem(
    "correlated.banded_balls",
    title="Banded noise with balls in bins in groups",
    needs=(
        "sampling", "mechanism", "steps", "separation", "noise_multiplier", "scaling", "adjacency", "bands?",
        "schedule?",
    ),
    algorithms=("correlated",),
    reference="choquette2025",
    locator="with fresh bins every epoch, and the pair of sampled.balls_in_bins: docs/method.md",
    formula="sampled.balls_in_bins with b/p bins in an epoch and noise multiplier z (columns), z/|c| (matrix)",
    conditions=(
        sampling_is(Sampling.BALLS_IN_BINS, asked=False), _KNOWN_MATRIX, _BANDED_MATRIX, _COLUMNS_KNOWN, _WHOLE_BLOCKS,
    ),
    assumes=(
        _GROUPS.partition(", at")[0],
        "an epoch has separation steps, and in each one every record falls into a step of its group by itself",
               CLIPPED, _NOISE, CONSTANT, SEEN,
    ),
    slack="the grid of likelihood ratios, some 1e-3 of epsilon",
    slow=True,
    public_sums=True,
)  # fmt: skip
def banded_balls(run: CorrelatedSteps) -> Composition:
    """A record's contribution is hidden among the rounds of its group in an epoch.

    >>> run = CorrelatedSteps(sampling="balls-in-bins", mechanism="banded-sqrt", steps=1000, bands=10, separation=200,
    ...                       noise_multiplier=1.2, scaling="columns", adjacency="remove")
    >>> round(banded_balls(run).epsilon(-13.815510557964274).value, 2)
    2.43
    """
    bins = run.separation // run.bands
    return pairs.balls_in_bins(
        EpochsOfBatches(
            sampling=Sampling.BALLS_IN_BINS, adjacency=run.adjacency, records=bins, batch_size=1,
            steps=bins * -(-run.steps // run.separation), noise_multiplier=run.multiplier_of_columns,
        )
    )  # fmt: skip
