"""The quantities that are reported, and the words that are values of parameters.

Each enum member is the word itself, as it is typed and as it appears in JSON.

`dpcalc.model.run.describe` turns given words into members, so a run has nothing else. Formulas that are also called
directly compare with ``==``, which accepts the plain word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.plain_enum import PlainEnum

Given = Mapping[str, Any]
"""The given values of a run, by parameter name."""


class Quantity(PlainEnum):
    """The quantity of a result, if no parameter is solved for."""

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
    """The kind of a result: what it proves."""

    UPPER = "upper"
    EXACT = "exact"
    LOWER = "lower"  # nothing can beat it
    ASYMPTOTIC = "asymptotic"
    PUBLISHED = "published"  # printed in a paper; kept for comparison if it is wrong or superseded
    HEURISTIC = "heuristic"  # plausible, but proved only for a simpler run
    CONDITIONAL = "conditional"  # its theorem needs a promise that the run does not make or that a seed breaks

    @property
    def guarantee(self) -> bool:
        """Whether the number is a guarantee: it may be gated, solved for and be the best."""
        return self in (Kind.UPPER, Kind.EXACT)


SUFFICIENT: dict[str, str] = {
    "sufficient_pure": "pure privacy with epsilon",
    "sufficient_rho": "concentrated privacy with rho",
    "sufficient_mu": "Gaussian privacy with mu",
    "sufficient_rdp": "a Renyi divergence",
}
"""The quantities that a conversion can find sufficient for a budget, and their names; the reverse gives no
guarantee."""

RISKS: dict[str, str] = {
    Quantity.EXCESS_RISK: "excess risk",
    Quantity.EMPIRICAL_EXCESS_RISK: "empirical excess risk",
    Quantity.SMOOTHING_ERROR: "risk added by smoothing",
}
"""The quantities that a cost can be, and their names."""

CHOSEN = ("noise_std", "step_size", "steps")
"""The parameters that a cost may choose."""

RAN = (*CHOSEN, "failure_probability")
"""The parameters of the run behind a cost."""

ATTACKS = {"advantage": "", "tpr": "fpr", "success": "prior", "reconstruction": "baseline"}
"""What an attacker can do -> the parameter that it is evaluated at, the number after @ in ``tpr@1%<=0.05``."""


class Adjacency(PlainEnum):
    """How neighbouring data sets differ."""

    REPLACE_ONE = "replace-one"
    NULL_RECORD = "null-record"  # also called zero-out
    ADD_REMOVE = "add-remove"
    ADD = "add"  # the run with one more record, against the run
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
    """What happens to the remaining records if the batch size does not divide their number."""

    OWN = "own"  # a short last batch, its sum divided by its own size
    NOMINAL = "nominal"  # a short last batch, its sum divided by the size of the others
    DROP = "drop"
    BALANCED = "balanced"  # the same number of batches, with sizes that differ by at most one, the larger ones last
    FRONT = "front"  # a short first batch, its sum divided by its own size


class LossClass(PlainEnum):
    """What is known about every loss."""

    CONVEX_SMOOTH = "convex-smooth"
    CONVEX = "convex"
    SMOOTH = "smooth"
    LIPSCHITZ = "lipschitz"


class Model(PlainEnum):
    """What is known about the model; it decides what clipped gradients are."""

    LINEAR = "linear"  # a record's loss is a convex function of one number, <w, x>
    CAPPED = "capped"  # several scores, whose softmax is capped (`dpcalc.training.run.capped`)
    ANY = "any"


class Sampling(PlainEnum):
    """How the batch of a step is drawn when every iterate is public."""

    POISSON = "poisson"  # every record independently, with the same probability
    FIXED = "fixed"  # a fixed number of records, uniformly without replacement, independently in every step
    WITH_REPLACEMENT = "with-replacement"  # a fixed number of independent uniform draws of single records
    BALLS_IN_BINS = "balls-in-bins"  # in every epoch each record independently falls into one step
    SHUFFLE = "shuffle"  # in every epoch the records are shuffled and cut into batches
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
    BEST = "best"  # the one of the above with the least noise in prefix sums


BANDED = (Mechanism.BANDED_SQRT, Mechanism.BISR)
"""The mechanisms with a number of bands as a parameter."""


class Scaling(PlainEnum):
    """The unit of the noise multiplier of correlated noise: the clipping norm times..."""

    MATRIX = "matrix"  # 1: the noise is added to C times the gradients, with C as defined by its mechanism
    COLUMNS = "columns"  # the largest norm of a column of C
    SENSITIVITY = "sensitivity"  # how far one record moves C times the gradients


class Releases(PlainEnum):
    """The values of ``--release``."""

    LAST = "last"
    EPOCH = "epoch"


class Start(PlainEnum):
    """How the model that is to forget was made."""

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
