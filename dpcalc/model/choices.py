"""The words that a parameter may be. Each member is the word itself, as it is typed and as JSON has it.

`dpcalc.model.run.describe` makes members of the words that are given, so that a run has no others. Formulas that are
also called by themselves compare with ``==``, which takes the plain word for the member.
"""

from __future__ import annotations

from dpcalc.plain_enum import PlainEnum


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
