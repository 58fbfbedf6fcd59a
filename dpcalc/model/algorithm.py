"""The algorithms, one record each: what is run and released, the parameters of a run, and how it is executed.

Usual values of parameters, which errors show as examples.

The source of each value of a run.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dpcalc.model.quantities import Adjacency, LastBatch, Permutation, Scaling, Start
from dpcalc.plain_enum import PlainEnum


class Order(PlainEnum):
    """How the records of a step are chosen."""

    FIXED = "fixed"
    ROTATION = "rotation"
    SHUFFLE = "shuffle"  # a new order in every pass
    SHUFFLE_ONCE = "shuffle-once"
    SAMPLE = "sample"  # fresh uniform batches without replacement
    DRAW = "draw"  # single records with replacement
    FULL = "full"
    UNKNOWN = "unknown"  # not specified: a chain of steps, or passes known only by their guarantee


class Length(PlainEnum):
    """What determines the number of steps."""

    ONE_PASS = "one pass"
    PASSES = "epochs"
    STEPS = "steps"
    STREAM = "stream"
    UNKNOWN = "unknown"


class Release(PlainEnum):
    """What is released."""

    LAST = "last"
    PASS = "pass"
    STEP = "step"
    AVERAGE = "average"


class Algorithm(NamedTuple):
    """An algorithm: what it runs and what it releases.

    Attributes:
        name: as in ``--algorithm``; with ``-released`` where an iterate is released after every epoch.
        gloss: what is run and released, in one line.
        order, length, release: how records are chosen, what ends the run, and what is released.
        parameters: the parameters that describe a run.
        families: the families of privacy theorems about it.
        defaults: default values of parameters.
        indexed: whether a record has a fixed position.
        first_is_worst: whether the first position is the worst one; otherwise the last one is.
        stops: whether the run ends after a uniformly random number of steps.
        skips: whether a uniformly random prefix of the records is skipped.
        single: whether a step takes one record.
        local: whether a record's privacy depends on no other record.
        own_noise: whether the noise follows from parameters other than its scale.
        tuned: whether the noise may follow from the schedule of Sordello et al.
        noisy_output: whether noise is added only to the output, not to the steps.
        executed: whether ``dpcalc train`` can run it.
        continues: whether it starts from a trained model, which is to forget records.
        synonyms: its names in papers and other programs; a user who types one gets a hint.
        shuffled_as: the algorithm with the same passes in a random order, which costs only one shuffle more.
        nearest: similar algorithms to suggest where no bound covers this one, the nearest first.
        cost: about how long a query takes, relative to a closed form; used to balance shards.
        published: the bound in the literature that other bounds are compared with.
        base: the name without the suffix for the release.
    """

    name: str
    gloss: str
    order: Order
    length: Length
    release: Release = Release.LAST
    parameters: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    defaults: dict[str, Any] = {}  # noqa: RUF012
    indexed: bool = True
    first_is_worst: bool = False
    stops: bool = False
    skips: bool = False
    single: bool = False
    local: bool = False
    own_noise: bool = False
    tuned: bool = False
    noisy_output: bool = False
    executed: bool = True
    continues: bool = False
    synonyms: tuple[str, ...] = ()
    shuffled_as: str = ""
    nearest: tuple[str, ...] = ()
    published: str = ""
    cost: int = 1

    @property
    def base(self) -> str:
        """The name without the suffix for the release."""
        return self.name.removesuffix(_RELEASED)

    @property
    def fixed_order(self) -> bool:
        """Whether the batches of every pass come in the same order."""
        whole = not (self.stops or self.skips or self.single or self.release is Release.STEP)
        return whole and self.order is Order.FIXED

    @property
    def one_pass_by_default(self) -> bool:
        """Whether the default number of steps is the number of records."""
        return self.release is Release.AVERAGE

    @property
    def clipped(self) -> bool:
        """Whether gradients are clipped and batches drawn by ``sampling``."""
        return "sampling" in self.parameters

    @property
    def asks_what_is_released(self) -> bool:
        """Whether ``release`` says which iterates are seen."""
        return "release" in self.parameters

    @property
    def correlated(self) -> bool:
        """Whether a matrix correlates the noise of the steps."""
        return "mechanism" in self.parameters

    @property
    def full_batch(self) -> bool:
        """Whether every step uses all records."""
        return self.order is Order.FULL

    @property
    def one_pass(self) -> bool:
        """Whether every record is used once."""
        return self.length is Length.ONE_PASS

    @property
    def grows(self) -> bool:
        """Whether the records are a growing stream."""
        return self.length is Length.STREAM

    @property
    def chained(self) -> bool:
        """Whether a run is described only by its sequence of steps."""
        return self.length is Length.UNKNOWN

    def worst_index(self, records: int) -> int:
        """Return the position of the record with the least privacy if all steps are equal.

        Later noise hides a record, so the worst position is the last one, unless a random stop may never reach that.
        """
        return 1 if self.first_is_worst else records


_RELEASED = "-released"
_PLAIN = {"batch_size": 1, "adjacency": Adjacency.REPLACE_ONE}
_CURVED = {**_PLAIN, "strong_convexity": 0.0}
_SHUFFLED = {**_CURVED, "last_batch": LastBatch.OWN, "permutation": Permutation.PUBLIC}

CATALOGUE = (
    "loss", "feature_bound", "label_bound", "power", "classes", "huber_threshold", "tube", "radius", "regularisation",
)  # fmt: skip
"""The name of a loss of a linear model, and the parameters that its constants depend on."""

HOLDER = ("holder_exponent", "holder_constant", "gradient_at_zero", "loss_at_zero")
"""The constants of a loss that need not be smooth."""

_CLIP = ("clip", "model")
_LOSS = (
    "lipschitz", "loss_class", "smoothness", "strong_convexity", "displacement", "diameter", *CATALOGUE, *_CLIP,
)  # fmt: skip
_NOISE = ("noise_std", "noise_multiplier", "laplace_scale", "noise", "dimension")
_MESSAGE = (
    "records", "index", "batch_size", "last_batch", "lipschitz", "smoothness", "strong_convexity", "step_size",
    "noise_std", "noise_multiplier", "diameter", "adjacency", "group_size", *CATALOGUE, *_CLIP,
)  # fmt: skip
_ONE_PASS = ("records", "index", "batch_size", "last_batch", *_LOSS, "step_size", *_NOISE, "adjacency", "group_size")
_RANDOM_PASS = (
    "records", "batch_size", "last_batch", "permutation", *_LOSS, "step_size", *_NOISE, "c1", "c2", "adjacency",
    "group_size",
)  # fmt: skip
_STREAM = (
    "records", "index", "window", *_LOSS, "step_size", "noise", "dimension", "c1", "c2", "decay_exponent",
    "schedule_factor", "adjacency", "group_size",
)  # fmt: skip
_PASSES = (
    "release", "records", "epochs", "steps", "index", "batch_size", "last_batch", "permutation", *_LOSS, "step_size",
    *_NOISE, "langevin_std", "epoch_epsilon", "epoch_delta", "adjacency", "group_size",
)  # fmt: skip
_SAMPLED = (
    "records", "epochs", "steps", "batch_size", "lipschitz", *HOLDER, "strong_convexity", *CATALOGUE, "step_size",
    "noise_std", "adjacency", "group_size",
)  # fmt: skip
_CLIPPED = (
    "release", "records", "epochs", "steps", "batch_size", "sample_rate", "sampling", "max_batch_size", "uses",
    "schedule_factor", "clip", "noise_multiplier", "noise_std", "model", "smoothness", "step_size", "diameter",
    *CATALOGUE, "adjacency", "group_size",
)  # fmt: skip
_CORRELATED = (
    "records", "epochs", "steps", "batch_size", "sample_rate", "sampling", "mechanism", "bands", "participations",
    "separation", "clip", "noise_multiplier", "scaling", "momentum", "decay", "cool_down", "adjacency",
    "group_size",
)  # fmt: skip
OF_TRAINING = ("step_size", "model", *CATALOGUE)
"""Parameters of training with correlated noise that do not affect its guarantee."""
_CHAIN = (
    "steps", "index", "shift", "contraction", "step_size", "noise_std", "laplace_scale", "start_distance", "diameter",
)  # fmt: skip
_CONTINUED = (
    "start", "start_distance", "gradient_norm", "requests", "clean_steps", "contraction", "smoothness",
    "strong_convexity", "step_size", "noise_std", "records", "batch_size", "epochs", "lipschitz", "diameter",
    "adjacency", "group_size",
)  # fmt: skip

ALGORITHMS: dict[str, Algorithm] = {
    a.name: a
    for a in (
        Algorithm(
            "pnsgd",
            "one pass of noisy SGD in the given order; the last iterate is released",
            Order.FIXED, Length.ONE_PASS, Release.LAST, _ONE_PASS,
            ("iteration", "scheduled", "contraction", "stepwise", "linear"), defaults=_CURVED,
            synonyms=("sgd", "psgd", "one-pass", "noisy-sgd-one-pass"), shuffled_as="shuffled", nearest=("local",),
        ),
        Algorithm(
            "skip",
            "as pnsgd, after skipping a uniformly random prefix of at most half the records",
            Order.FIXED, Length.ONE_PASS, Release.LAST, _MESSAGE, ("iteration", "linear"),
            defaults=_PLAIN, skips=True, single=True, synonyms=("random-start",), nearest=("pnsgd", "local"),
            cost=4,
        ),
        Algorithm(
            "stop",
            "as pnsgd, stopped after a uniformly random number of steps",
            Order.FIXED, Length.ONE_PASS, Release.LAST, _ONE_PASS, ("iteration", "contraction", "stepwise", "linear"),
            defaults=_PLAIN, first_is_worst=True, stops=True, single=True,
            synonyms=("random-stop", "random-stopping"), nearest=("pnsgd", "local"),
            cost=4,
        ),
        Algorithm(
            "local",
            "one record's noisy gradient message; order and iterates may be public",
            Order.FIXED, Length.ONE_PASS, Release.STEP, _MESSAGE, ("iteration", "linear"),
            defaults=_PLAIN, local=True, synonyms=("ldp", "local-dp"),
        ),
        Algorithm(
            "shuffled",
            "one pass of noisy SGD in a uniformly random order; the last iterate is released",
            Order.SHUFFLE, Length.ONE_PASS, Release.LAST, _RANDOM_PASS,
            ("shuffle", "hidden_position", "stepwise", "linear"), defaults=_SHUFFLED, indexed=False, tuned=True,
            synonyms=("random-order", "without-replacement"), nearest=("local",), published="shuffle.product",
            cost=4,
        ),
        Algorithm(
            "rotation",
            "one pass from a uniformly random record on, in cyclic order; the last iterate is released",
            Order.ROTATION, Length.ONE_PASS, Release.LAST, _RANDOM_PASS, ("shuffle", "stepwise", "linear"),
            defaults=_SHUFFLED, indexed=False, tuned=True, synonyms=("random-rotation",), nearest=("local",),
        ),
        Algorithm(
            "shuffled-stop",
            "one pass in a uniformly random order, stopped after a uniformly random number of steps",
            Order.SHUFFLE, Length.ONE_PASS, Release.LAST, _RANDOM_PASS, ("shuffle", "linear"),
            defaults=_SHUFFLED, indexed=False, stops=True, single=True, tuned=True, nearest=("pnsgd", "local"),
            cost=4,
        ),
        Algorithm(
            "online",
            "one pass over a growing stream, each record's noise below the last; the latest iterate is released once",
            Order.FIXED, Length.STREAM, Release.LAST, _STREAM, ("online",),
            defaults={"adjacency": Adjacency.REPLACE_ONE, "strong_convexity": 0.0, "schedule_factor": 1.0},
            single=True, own_noise=True, synonyms=("stream", "streaming"),
        ),
        Algorithm(
            "cyclic",
            "several passes in one fixed order; the last iterate is released",
            Order.FIXED, Length.PASSES, Release.LAST, _PASSES, ("multi_epoch", "expanding", "linear"),
            defaults=_CURVED, synonyms=("incremental", "multi-epoch"), shuffled_as="shuffle-once",
        ),
        Algorithm(
            "shuffle-once",
            "several passes in one uniformly random order; the last iterate is released",
            Order.SHUFFLE_ONCE, Length.PASSES, Release.LAST, _PASSES, ("shuffled_epochs", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False, synonyms=("single-shuffle",),
            cost=4,
        ),
        Algorithm(
            "rotation-epochs",
            "several passes in cyclic order, all from one uniformly random record on; the last iterate is released",
            Order.ROTATION, Length.PASSES, Release.LAST, _PASSES, ("shuffled_epochs", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False, synonyms=("random-cyclic-shift", "cyclic-random-start"),
        ),
        Algorithm(
            "shuffled-epochs",
            "several passes, each in a fresh uniformly random order; the last iterate is released",
            Order.SHUFFLE, Length.PASSES, Release.LAST, _PASSES, ("shuffled_epochs", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False, synonyms=("random-reshuffling", "reshuffle"),
            cost=4,
        ),
        Algorithm(
            "noisy-sgd",
            "steps on fresh uniform batches drawn without replacement; the last iterate is released",
            Order.SAMPLE, Length.STEPS, Release.LAST, _PASSES, ("noisy_sgd", "expanding", "linear"),
            defaults=_CURVED, indexed=False, synonyms=("subsampled", "subsampled-gaussian"),
            cost=10,
        ),
        Algorithm(
            "noisy-gd",
            "steps on the mean gradient of all records; the last iterate is released",
            Order.FULL, Length.STEPS, Release.LAST, _PASSES, ("noisy_gd", "expanding", "linear"),
            defaults=_CURVED, indexed=False, synonyms=("gd", "dp-gd", "full-batch", "langevin", "lmc"),
        ),
        Algorithm(
            "cyclic-released",
            "several passes in one fixed order; the iterate after every pass is released",
            Order.FIXED, Length.PASSES, Release.PASS, _PASSES, ("released", "expanding", "linear"),
            defaults=_CURVED,
        ),
        Algorithm(
            "shuffle-once-released",
            "several passes in one uniformly random order; the iterate after every pass is released",
            Order.SHUFFLE_ONCE, Length.PASSES, Release.PASS, _PASSES, ("released", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False,
        ),
        Algorithm(
            "rotation-epochs-released",
            "several passes in cyclic order, all from one uniformly random record on; the iterate after every pass is "
            "released",
            Order.ROTATION, Length.PASSES, Release.PASS, _PASSES, ("released", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False,
        ),
        Algorithm(
            "shuffled-epochs-released",
            "several passes, each in a fresh uniformly random order; the iterate after every pass is released",
            Order.SHUFFLE, Length.PASSES, Release.PASS, _PASSES, ("released", "expanding", "linear"),
            defaults=_SHUFFLED, indexed=False,
        ),
        Algorithm(
            "noisy-sgd-released",
            "steps on fresh uniform batches drawn without replacement; every iterate is released",
            Order.SAMPLE, Length.STEPS, Release.STEP, _PASSES, ("noisy_sgd", "expanding", "linear"),
            defaults=_CURVED, indexed=False,
            cost=10,
        ),
        Algorithm(
            "noisy-gd-released",
            "steps on the mean gradient of all records; every iterate is released",
            Order.FULL, Length.STEPS, Release.STEP, _PASSES, ("noisy_gd", "expanding", "linear"),
            defaults=_CURVED, indexed=False,
        ),
        Algorithm(
            "repeated",
            "passes of which no more is known than the (epsilon, delta) of one; everything each gives is released",
            Order.UNKNOWN, Length.PASSES, Release.PASS, _PASSES, ("released",),
            defaults={"adjacency": Adjacency.REPLACE_ONE, "epoch_delta": 0.0}, own_noise=True, executed=False,
            synonyms=("composition",),
            cost=10,
        ),
        Algorithm(
            "dp-sgd",
            "steps on random batches of clipped gradients, noise on their sum; every iterate may be released",
            Order.SAMPLE, Length.STEPS, Release.STEP, _CLIPPED, ("sampled",),
            defaults={"adjacency": Adjacency.REPLACE_ONE}, indexed=False, executed=False,
            synonyms=("dpsgd", "dp-adam", "opacus", "tensorflow-privacy", "jax-privacy"),
            cost=10,
        ),
        Algorithm(
            "dp-sgd-output",
            "steps on single records drawn with replacement, without noise; their average plus noise is released",
            Order.DRAW, Length.STEPS, Release.AVERAGE, _SAMPLED, ("dp_sgd",),
            defaults=_CURVED, indexed=False, single=True, noisy_output=True, synonyms=("output-perturbation",),
            nearest=("dp-sgd-gradient",),
            cost=10,
        ),
        Algorithm(
            "dp-sgd-gradient",
            "steps on fresh uniform batches, with noise; every iterate may be released, and the average is",
            Order.SAMPLE, Length.STEPS, Release.AVERAGE, (*_SAMPLED, "noise_multiplier"), ("dp_sgd",),
            defaults=_CURVED, indexed=False, synonyms=("gradient-perturbation",),
            cost=10,
        ),
        Algorithm(
            "correlated",
            "steps on clipped gradients whose noise is correlated by a matrix; every iterate may be released",
            Order.FIXED, Length.STEPS, Release.STEP, (*_CORRELATED, *OF_TRAINING), ("correlated",),
            defaults={"adjacency": Adjacency.REPLACE_ONE, "scaling": Scaling.MATRIX}, indexed=False,
            synonyms=("dp-ftrl", "ftrl", "matrix-factorization", "matrix-factorisation", "dp-mf", "blt", "tree"),
            nearest=("dp-sgd",),
        ),
        Algorithm(
            "chain",
            "any sequence of noisy Lipschitz steps, described step by step; the last iterate is released",
            Order.UNKNOWN, Length.UNKNOWN, Release.LAST, _CHAIN, ("shifted",),
            defaults={"start_distance": 0.0}, executed=False,
        ),
        Algorithm(
            "unlearning",
            "noisy steps on the records kept, from a model that is to forget the others; the last iterate is released",
            Order.UNKNOWN, Length.UNKNOWN, Release.LAST, _CONTINUED, ("unlearning",),
            defaults={
                "start": Start.DISTANCE, "requests": 1, "strong_convexity": 0.0, "adjacency": Adjacency.NULL_RECORD,
            },
            indexed=False, executed=False, continues=True,
        ),
    )
}  # fmt: skip
"""Every algorithm by its name."""

NAMED = tuple(name for name, algorithm in ALGORITHMS.items() if name == algorithm.base and not algorithm.chained)
"""The algorithms that ``--algorithm`` may name."""

FULL_BATCH, FRESH_BATCHES, FRESH_ORDERS, FORGETTING = "noisy-gd", "noisy-sgd", "shuffled-epochs", "unlearning"
"""The algorithms that the default rule chooses from, and the one that makes a model forget."""

ORDERS = ("noisy-sgd", "shuffled-epochs", "shuffle-once", "cyclic")
"""The orders of several passes, the likely best first: then one evaluation each shows that the others are no better."""

ANY = Algorithm("any", "whichever has a bound on its risk", Order.UNKNOWN, Length.UNKNOWN, executed=False)
"""The algorithm of a question about several of them."""


def in_one_random_order(release: Release) -> tuple[str, ...]:
    """Return the multi-pass algorithms in which a record has the same uniformly random position in every pass.

    A theorem about them may not depend on the law of the other records' positions.
    """
    orders = (Order.SHUFFLE_ONCE, Order.ROTATION)
    several = (a for a in ALGORITHMS.values() if a.length is Length.PASSES)
    return tuple(a.name for a in several if a.order in orders and a.release is release)


def released(name: str) -> str:
    """Return the name of the variant that releases the iterate after every epoch; the same name if it does so
    anyway."""
    return name if ALGORITHMS[name].release in (Release.PASS, Release.STEP) else name + _RELEASED


def algorithm_meant_by(word: str) -> str:
    """Return the algorithm that papers and other programs call ``word``; the empty string if there is none.

    >>> algorithm_meant_by("Opacus")
    'dp-sgd'
    """
    typed = word.strip().lower().replace("_", "-")
    return next((name for name in NAMED if typed in ALGORITHMS[name].synonyms), "")


EXAMPLES: dict[str, Any] = {
    "records": 10000, "batch_size": 100, "epochs": 10, "steps": 1000, "index": 1, "window": 1000, "step_size": 0.1,
    "noise_std": 10.0, "delta": 1e-6, "c1": 100.0, "c2": 100.0, "decay_exponent": 1.5, "shift": 0.01,
    "contraction": 0.9, "epoch_epsilon": 0.1, "dimension": 10, "sampling": "poisson", "loss": "logistic",
    "epoch_delta": 1e-6, "failure_probability": 0.1, "classes": 3, "advantage": 0.1, "tpr": 0.05, "success": 0.6,
    "reconstruction": 0.01, "start_distance": 0.01, "gradient_norm": 1e-6, "clean_steps": 100, "fpr": 0.01,
    "prior": 0.5, "baseline": 0.001, "momentum": 0.9, "decay": 0.01, "cool_down": 0.2,
}  # fmt: skip
"""Usual values of parameters, and of the rates that attacks are evaluated at; 1 for all others."""


class Source(PlainEnum):
    """Where a value came from, as it is written in JSON."""

    FLAG = "flag"
    ARGUMENT = "argument"
    FILE = "file"
    LOSS = "loss"
    DATA = "data"
    DEFAULT = "default"
    WORST_CASE = "worst case"
    DERIVED = "derived"
    CHOSEN = "chosen"  # the best of several for the given run

    @property
    def typed(self) -> bool:
        """Whether the user gave the value, on the command line or in Python."""
        return self in (Source.FLAG, Source.ARGUMENT)

    @property
    def given(self) -> bool:
        """Whether the value was given or chosen, or comes from a given file or a named loss."""
        return self.typed or self in (Source.FILE, Source.LOSS, Source.CHOSEN)
