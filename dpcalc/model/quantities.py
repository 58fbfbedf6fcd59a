"""What is reported beside parameters.

The words that a parameter may be. Each member is the word itself, as it is typed and as JSON has it.

`dpcalc.model.run.describe` makes members of the words that are given, so that a run has no others. Formulas that are
also called by themselves compare with ``==``, which takes the plain word for the member.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.plain_enum import PlainEnum

Given = Mapping[str, Any]
"""What is said of a run, by the names of its parameters."""


class Quantity(PlainEnum):
    """What a result may be of, beside a parameter that is solved for."""

    EPSILON = "epsilon"
    DELTA = "delta"
    MU = "mu"
    RDP = "rdp"
    RHO = "rho"
    PURE = "pure"
    ADVANTAGE = "advantage"
    EXCESS_RISK = "excess_risk"
    EMPIRICAL_EXCESS_RISK = "empirical_excess_risk"
    SMOOTHING_ERROR = "smoothing_error"


class Kind(PlainEnum):
    """What may be said with a number."""

    UPPER = "upper"
    EXACT = "exact"
    LOWER = "lower"  # nothing can beat it
    ASYMPTOTIC = "asymptotic"
    PUBLISHED = "published"  # what a paper prints, kept for comparison where it is wrong or superseded
    HEURISTIC = "heuristic"  # plausible, and proved of no run but of a simpler one
    CONDITIONAL = "conditional"  # its theorem needs a promise that the run does not make, or that a seed breaks

    @property
    def guarantee(self) -> bool:
        """Whether the number may be promised, gated and solved with, and be the best."""
        return self in (Kind.UPPER, Kind.EXACT)


SUFFICIENT: dict[str, str] = {
    "sufficient_pure": "pure privacy with epsilon",
    "sufficient_rho": "concentrated privacy with rho",
    "sufficient_mu": "Gaussian privacy with mu",
    "sufficient_rdp": "a Renyi divergence",
}
"""What a conversion may find enough for a budget, and what that is called: no guarantee follows the other way."""

RISKS: dict[str, str] = {
    Quantity.EXCESS_RISK: "excess risk",
    Quantity.EMPIRICAL_EXCESS_RISK: "empirical excess risk",
    Quantity.SMOOTHING_ERROR: "risk added by smoothing",
}
"""What a cost may be of, and what that is called."""

CHOSEN = ("noise_std", "step_size", "steps")
"""What a cost may choose itself."""

RAN = (*CHOSEN, "failure_probability")
"""What the run behind a cost is described by."""

ATTACKS = {"advantage": "", "tpr": "fpr", "success": "prior", "reconstruction": "baseline"}
"""What an attacker can do, and what it is asked at: the number after @ in an assertion, as in ``tpr@1%<=0.05``."""


class Adjacency(PlainEnum):
    """What neighbouring data sets differ in."""

    REPLACE_ONE = "replace-one"
    NULL_RECORD = "null-record"  # also called zero-out
    ADD_REMOVE = "add-remove"
    ADD = "add"  # the run with one record more, against the run
    REMOVE = "remove"


class Noise(PlainEnum):
    """The law of the noise in every coordinate."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


class Permutation(PlainEnum):
    """Whether the random order may become public."""

    PUBLIC = "public"
    SECRET = "secret"


class LastBatch(PlainEnum):
    """What becomes of the records that are left over where the batch size does not divide their number."""

    OWN = "own"  # a short last batch, its sum divided by its own size
    NOMINAL = "nominal"  # a short last batch, its sum divided by the size of the others
    DROP = "drop"
    BALANCED = "balanced"  # as many batches, of sizes that differ by at most one, the larger ones last
    FRONT = "front"  # a short first batch, its sum divided by its own size


class LossClass(PlainEnum):
    """What is known of every loss."""

    CONVEX_SMOOTH = "convex-smooth"
    CONVEX = "convex"
    SMOOTH = "smooth"
    LIPSCHITZ = "lipschitz"


class Model(PlainEnum):
    """What is known of the model: what clipped gradients are depends on it."""

    LINEAR = "linear"  # a record's loss is a convex function of one number, <w, x>
    CAPPED = "capped"  # several scores, whose softmax is capped (`dpcalc.training.run.capped`)
    ANY = "any"


class Sampling(PlainEnum):
    """How the batch of a step is drawn, where every iterate is public."""

    POISSON = "poisson"  # every record by itself, with the same probability
    FIXED = "fixed"  # so many records, uniformly, without replacement, afresh in every step
    WITH_REPLACEMENT = "with-replacement"  # so many draws of single records, each uniform, by itself
    BALLS_IN_BINS = "balls-in-bins"  # every epoch each record falls into one step by itself
    SHUFFLE = "shuffle"  # every epoch the records are shuffled and cut into batches
    FULL = "full"  # all records


class Mechanism(PlainEnum):
    """Which matrix correlates the noise of the steps."""

    IDENTITY = "identity"  # independent noise
    TREE = "tree"  # sums over dyadic ranges of steps
    SQRT = "sqrt"  # the square root of the matrix of prefix sums
    BANDED_SQRT = "banded-sqrt"  # its first bands
    BISR = "bisr"  # the inverse of the first bands of its inverse
    BLT = "blt"  # a sum of geometric sequences, close to the square root
    FILE = "file"
    BEST = "best"  # of all but that of a file, the one with the least noise in prefix sums


BANDED = (Mechanism.BANDED_SQRT, Mechanism.BISR)
"""The mechanisms that have a number of bands of their own."""


class Scaling(PlainEnum):
    """What a noise multiplier of correlated noise is over: the clipping norm times..."""

    MATRIX = "matrix"  # 1: the noise is added to C times the gradients, C as its mechanism has it
    COLUMNS = "columns"  # the largest norm of a column of C
    SENSITIVITY = "sensitivity"  # how far one record moves C times the gradients


class Releases(PlainEnum):
    """What a command is told that is released."""

    LAST = "last"
    EPOCH = "epoch"


class Start(PlainEnum):
    """How the model that is to forget came about."""

    DISTANCE = "distance"
    MINIMISER = "minimiser"
    RUN = "run"


class LossName(PlainEnum):
    """A loss of a linear model; `dpcalc.model.loss` has a class for each."""

    HINGE = "hinge"
    ABSOLUTE = "absolute"
    INSENSITIVE = "insensitive"
    LOGISTIC = "logistic"
    HUBER = "huber"
    SQUARES = "squares"
    SOFTMAX = "softmax"
