"""The parameters, one record each, as the command line, recipes, Python, reports and docs use them."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import NAMED, algorithm_meant_by
from dpcalc.model.quantities import (
    Adjacency,
    Given,
    LastBatch,
    LossClass,
    LossName,
    Mechanism,
    Model,
    Noise,
    Permutation,
    Releases,
    Sampling,
    Scaling,
    Start,
)
from dpcalc.plain_enum import PlainEnum

T = TypeVar("T")

MAX_RECORDS = 10**15


class Ends(PlainEnum):
    """Which ends of a domain are themselves not allowed."""

    LOW = "low"
    HIGH = "high"
    BOTH = "both"
    NONE = "none"


class Parameter(NamedTuple):
    """A parameter that a user can set.

    Attributes:
        name: as in Python, recipes and JSON.
        symbol: the letter that the papers use.
        help: one line about it.
        aliases: short flags.
        unit: its unit; empty for a pure number or a word.
        integer: whether only whole numbers are allowed.
        choices: the allowed words, if it is not a number.
        low, high: the ends of its domain, allowed themselves unless ``open_ends`` excludes them.
        synonyms: its names in other programs and papers; a user who types one gets a hint.
    """

    name: str
    symbol: str
    help: str
    aliases: tuple[str, ...] = ()
    unit: str = ""
    integer: bool = False
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    open_ends: Ends = Ends.BOTH
    synonyms: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        """The long flag."""
        return "--" + self.name.replace("_", "-")

    @property
    def low_is_open(self) -> bool:
        """Whether the lower end is excluded."""
        return self.open_ends in (Ends.BOTH, Ends.LOW)

    @property
    def high_is_open(self) -> bool:
        """Whether the upper end is excluded."""
        return self.open_ends in (Ends.BOTH, Ends.HIGH)

    @property
    def domain(self) -> str:
        """The allowed values, for messages."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.integer:
            return f"a whole number from {self.low:.0f} to {self.high:g}"
        left = ">" if self.low_is_open else ">="
        if math.isinf(self.low):
            return "a number"
        if math.isinf(self.high):
            return f"a number {left} {self.low:g}"
        return f"a number {left} {self.low:g} and {'<' if self.high_is_open else '<='} {self.high:g}"

    def allows(self, value: float) -> bool:
        """Return whether a number lies in the domain."""
        if value == self.low:
            return not self.low_is_open
        return self.low < value < self.high or (value == self.high and not self.high_is_open)


def _count(
    name: str, symbol: str, help: str, *aliases: str, unit: str = "", low: int = 1, synonyms: tuple[str, ...] = ()
) -> Parameter:
    return Parameter(
        name,
        symbol,
        help,
        aliases,
        unit,
        integer=True,
        low=low,
        high=MAX_RECORDS,
        open_ends=Ends.NONE,
        synonyms=synonyms,
    )


_WORDS: dict[str, type[PlainEnum]] = {
    "adjacency": Adjacency,
    "noise": Noise,
    "permutation": Permutation,
    "last_batch": LastBatch,
    "loss_class": LossClass,
    "mechanism": Mechanism,
    "model": Model,
    "scaling": Scaling,
    "release": Releases,
    "sampling": Sampling,
    "start": Start,
}
"""The enums of parameters whose values are words."""

_SAME_WORD: dict[str, dict[str, str]] = {
    "adjacency": {
        "zero-out": "null-record", "replace-special": "null-record", "add-or-remove": "add-remove",
        "add-or-remove-one": "add-remove", "unbounded": "add-remove", "replace": "replace-one",
        "substitution": "replace-one", "substitute-one": "replace-one", "bounded": "replace-one",
    },
    "sampling": {
        "ball-in-bins": "balls-in-bins", "balls-and-bins": "balls-in-bins", "poisson-sampling": "poisson",
        "without-replacement": "fixed", "fixed-size": "fixed", "bootstrap": "with-replacement",
        "shuffling": "shuffle", "full-batch": "full",
    },
}  # fmt: skip
"""Words of other programs and papers that mean exactly one of ours, in small letters with hyphens."""

PARAMETERS: dict[str, Parameter] = {
    p.name: p
    for p in (
        Parameter("algorithm", "", "what is run and released", choices=NAMED, synonyms=("method",)),
        Parameter(
            "adjacency", "",
            "how neighbouring data sets differ: one record replaced by another, or by a null record (zero "
            "gradient; also called zero-out); with dp-sgd also a record added or removed, or either (add-remove)",
            choices=tuple(Adjacency), synonyms=("neighboring_relation", "neighbouring_relation"),
        ),
        _count(
            "group_size", "k", "this many records differ, such as those of one person (default: 1)", unit="records",
            synonyms=("group", "records_per_user", "max_records_per_user", "user_group_size"),
        ),
        _count(
            "records", "n", "number of records; one pass uses each once", "-n", unit="records",
            synonyms=(
                "sample_size", "dataset_size", "num_examples", "number_of_examples", "n_samples", "num_samples",
                "train_size", "n_train", "num_train", "num_train_examples",
            ),
        ),
        _count("index", "i", "1-based position of the differing record (default: the worst one)", "-i"),
        _count(
            "batch_size", "b", "records per step; their mean gradient is used", unit="records",
            synonyms=("lot_size", "batch", "minibatch_size", "expected_batch_size"),
        ),
        _count(
            "steps", "T", "number of steps", unit="steps",
            synonyms=("iterations", "num_steps", "max_iter", "num_updates"),
        ),
        _count("epochs", "E", "number of passes over the records", unit="passes", synonyms=("num_epochs", "passes")),
        Parameter(
            "epoch_epsilon", "", "epsilon of one pass, of an algorithm known by its (epsilon, delta) alone",
            open_ends=Ends.HIGH,
        ),
        Parameter("epoch_delta", "", "delta of one pass, 0 for pure privacy", high=1.0, open_ends=Ends.HIGH),
        Parameter(
            "release", "",
            "what is released: the last iterate alone, or the iterate after every epoch (dp-sgd: every iterate, unless "
            "this says last)",
            choices=tuple(Releases),
        ),
        Parameter(
            "lipschitz", "L", "Lipschitz constant of the loss in the parameter", ("-L",), "gradient units",
            synonyms=("clip", "clipping_norm", "max_grad_norm", "l2_norm_clip", "l2_clip_norm"),
        ),
        Parameter(
            "holder_exponent", "alpha",
            "exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz",
            high=1.0, open_ends=Ends.NONE,
        ),
        Parameter(
            "holder_constant", "L", "constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v",
            unit="gradient units per parameter unit^alpha",
        ),
        Parameter(
            "gradient_at_zero", "M", "bound on the gradient of every record's loss at w = 0", unit="gradient units",
            open_ends=Ends.HIGH,
        ),
        Parameter(
            "loss_at_zero", "M0", "bound on every record's loss at w = 0; losses are >= 0", unit="loss units",
            open_ends=Ends.HIGH,
        ),
        Parameter(
            "radius", "R", "radius of a ball around 0 that contains the constraint set; 0 lies in the set", ("-R",),
            "parameter units",
        ),
        Parameter(
            "failure_probability", "gamma", "probability with which a bound on the risk may fail", high=1.0
        ),
        Parameter(
            "smoothness", "beta", "Lipschitz constant of the gradient of the loss",
            unit="gradient units per parameter unit", open_ends=Ends.HIGH, synonyms=("beta", "gradient_lipschitz"),
        ),
        Parameter(
            "strong_convexity", "m",
            "strong convexity of the loss: no curvature is below it; 0 when merely convex, negative when weakly convex",
            unit="gradient units per parameter unit", low=-math.inf, synonyms=("convexity",),
        ),
        Parameter(
            "step_size", "eta", "step size; a step is w - eta (gradient + Z)", ("--eta",),
            "parameter units per gradient unit", synonyms=("lr", "learning_rate", "stepsize"),
        ),
        Parameter(
            "noise_std", "sigma", "standard deviation per coordinate of the Gaussian Z", ("--sigma",),
            "gradient units", synonyms=("noise_scale", "stddev", "std"),
        ),
        Parameter(
            "noise_multiplier", "z",
            "standard deviation of the noise on the sum of a batch's gradients, divided by the clipping norm (or the "
            "Lipschitz constant): noise_std = z x norm / batch_size, for full batches z x norm / records",
        ),
        Parameter(
            "clip", "C", "norm to which every record's gradient is clipped", ("--max-grad-norm",), "gradient units",
            synonyms=("l2_norm_clip", "clipping_norm", "l2_clip_norm", "clip_norm", "max_grad_norm"),
        ),
        Parameter(
            "model", "",
            "what clipping is applied to: a linear model, where the loss of a record is a convex function of one "
            "number, <w, x> (an intercept is a feature), so that clipped gradients are those of a convex loss; "
            "capped, for a softmax whose slopes are capped and not shortened; or any",
            choices=tuple(Model), synonyms=("linear_model",),
        ),
        Parameter(
            "sampling", "",
            "how a batch is drawn: every record by itself with the same probability (poisson); batch_size records, "
            "uniformly, afresh in every step (fixed); batch_size draws of single records, which may come several "
            "times (with-replacement); every epoch each record in one step chosen at random (balls-in-bins); every "
            "epoch the records shuffled and cut into batches (shuffle); all records (full)",
            choices=tuple(Sampling),
        ),
        Parameter(
            "sample_rate", "q", "probability with which a record is in the batch of a step", high=1.0,
            open_ends=Ends.LOW, synonyms=("sampling_probability", "sampling_rate"),
        ),
        _count(
            "max_batch_size", "B",
            "largest size of a Poisson batch: a larger one is cut to this many records, uniformly", unit="records",
            synonyms=("truncated_batch_size",),
        ),
        _count(
            "uses", "k",
            "steps of an epoch that each record is in, with balls-in-bins; an epoch then has uses x records/batch_size "
            "steps (default: 1)",
            unit="steps", synonyms=("num_selected",),
        ),
        Parameter(
            "langevin_std", "", "sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std",
            synonyms=("temperature",),
        ),
        Parameter("laplace_scale", "v", "scale of the Laplace Z (one dimension)", unit="gradient units"),
        Parameter("noise", "", "kind of noise, where its scale is derived or solved for", choices=tuple(Noise)),
        Parameter("diameter", "D", "diameter of the constraint set", ("-D",), "parameter units"),
        _count(
            "dimension", "d", "dimension of the parameter, for Laplace noise and for risks (default 1)",
            unit="coordinates", synonyms=("num_features", "n_features", "num_parameters"),
        ),
        Parameter(
            "loss_class", "",
            "what is known of every loss; lipschitz (a bounded gradient only) covers clipping. "
            "Default: convex-smooth if a smoothness is given, else lipschitz",
            choices=tuple(LossClass),
        ),
        Parameter(
            "displacement", "M",
            "how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm "
            "(default: derived from the loss class)",
            open_ends=Ends.HIGH,
        ),
        Parameter(
            "last_batch", "",
            "how left-over records are handled: a short last batch divided by its own size (own) or by the batch "
            "size (nominal), no batch (drop), batches that differ by at most one record (balanced), or a short first "
            "batch (front)",
            choices=tuple(LastBatch), synonyms=("drop_last",),
        ),
        Parameter(
            "permutation", "", "whether the random order and its seed stay secret for ever",
            choices=tuple(Permutation),
        ),
        Parameter("c1", "C1", "constant of the noise schedule"),
        Parameter("c2", "C2", "constant of the noise schedule", low=-math.inf),
        Parameter("decay_exponent", "alpha", "exponent of the noise schedule of a stream",
                  high=64.0, open_ends=Ends.LOW),
        _count(
            "window", "w", "cover every record that at least this many others follow", "-w", unit="records", low=0
        ),
        Parameter("schedule_factor", "", "factor on every noise scale of the schedule"),
        _count("tasks", "k", "number of losses trained on the same records", unit="losses"),
        _count(
            "public_records", "m", "how many of the records need no privacy; they come last", unit="records", low=0
        ),
        Parameter("loss", "", "a loss of a linear model, from which its constants follow", choices=tuple(LossName)),
        Parameter(
            "feature_bound", "B", "largest norm of a feature vector", unit="feature units",
            synonyms=("data_norm", "feature_norm"),
        ),
        Parameter(
            "label_bound", "Y", "largest size of a label (hinge and logistic: labels are +1 and -1)",
            unit="label units", open_ends=Ends.HIGH,
        ),
        Parameter(
            "power", "q", "power of the hinge, absolute and insensitive losses", low=1.0, high=2.0, open_ends=Ends.NONE
        ),
        Parameter(
            "huber_threshold", "kappa", "size of a residual past which the huber loss is linear", unit="label units"
        ),
        _count("classes", "K", "number of classes of the softmax loss, each with a score of its own", low=2),
        Parameter(
            "tube", "tau", "size of a residual up to which the insensitive loss is 0", unit="label units",
            open_ends=Ends.HIGH,
        ),
        Parameter(
            "regularisation", "lambda", "weight of the regulariser (lambda/2) |w|^2",
            unit="gradient units per parameter unit", open_ends=Ends.HIGH,
            synonyms=("regularization", "weight_decay", "l2", "l2_regularizer"),
        ),
        Parameter(
            "epsilon", "epsilon", "privacy loss bound", ("-e",), open_ends=Ends.HIGH,
            synonyms=("target_epsilon", "eps"),
        ),
        Parameter("delta", "delta", "probability of exceeding epsilon", ("-d",), high=1.0, synonyms=("target_delta",)),
        Parameter(
            "order", "alpha", "order of Renyi divergence", low=1.0, open_ends=Ends.NONE,
            synonyms=("alphas", "rdp_order", "renyi_order"),
        ),
        Parameter(
            "shift", "s", "distance the two runs' maps can be apart in a step", unit="parameter units",
            open_ends=Ends.HIGH,
        ),
        Parameter("contraction", "c", "Lipschitz factor of a step's map", open_ends=Ends.HIGH),
        Parameter(
            "start_distance", "z0", "distance of the two starting points", unit="parameter units", open_ends=Ends.HIGH,
            synonyms=("distance",),
        ),
        Parameter(
            "start", "",
            "how the model that is to forget was trained: nothing is known of it but the start distance "
            "(distance), it minimises a strongly convex mean loss (minimiser), or it is the last iterate of noisy SGD "
            "(run)",
            choices=tuple(Start),
        ),
        Parameter(
            "gradient_norm", "G",
            "gradient of the mean loss at a minimiser, at most, with the records and without: 0 for an exact one "
            "(default); on a convex set its distance from an outward normal, with the sign changed",
            unit="gradient units", open_ends=Ends.HIGH, synonyms=("tolerance", "gradient_tolerance"),
        ),
        _count(
            "clean_steps", "T", "noisy steps on the records kept alone, after all that used the others", unit="steps",
            synonyms=("unlearning_steps", "finetuning_steps"),
        ),
        Parameter(
            "mechanism", "",
            "which matrix C correlates the noise of the steps: none (identity), a binary tree, the square root of the "
            "matrix of prefix sums (sqrt), its first bands, the inverse of the bands of its inverse (bisr), or a sum "
            "of geometric sequences close to it (blt), or that of --matrix FILE (file); best takes the one with the "
            "least noise in the iterates",
            choices=tuple(Mechanism), synonyms=("strategy",),
        ),
        _count("bands", "p", "bands of the matrix C, or of its inverse (bisr)", unit="bands", synonyms=("num_bands",)),
        Parameter(
            "momentum", "", "share of the last update that the next one keeps; for the noise in the iterates alone",
            high=1.0, open_ends=Ends.HIGH,
        ),
        Parameter(
            "decay", "",
            "share of the iterate that a step takes away: learning rate times weight decay; for the noise in iterates "
            "alone",
            high=1.0, open_ends=Ends.HIGH,
        ),
        Parameter(
            "cool_down", "",
            "share of the steps, the last ones, over which the learning rate falls to 0; for the noise in the iterates "
            "alone",
            high=1.0, open_ends=Ends.NONE,
        ),
        _count(
            "participations", "k", "in how many steps a record is used at most (default: epochs)", unit="steps",
            synonyms=("max_participations",),
        ),
        _count(
            "separation", "b", "steps from one use of a record to its next one, at least (default: those of an epoch)",
            unit="steps", synonyms=("min_separation", "min_sep"),
        ),
        Parameter(
            "scaling", "",
            "what the noise multiplier is over: the clipping norm alone, with noise added to C times the gradients "
            "(matrix); times the largest norm of a column of C (columns); or times what one record moves C times the "
            "gradients by (sensitivity)",
            choices=tuple(Scaling),
        ),
        _count(
            "requests", "R", "requests to forget so far, this one included, each answered by so many steps",
            unit="requests",
        ),
    )
}  # fmt: skip
"""Every parameter by its name."""


def _level(name: str, symbol: str, help: str, synonyms: tuple[str, ...] = ()) -> Parameter:
    return Parameter(name, symbol, help, low=1e-9, high=1e9, open_ends=Ends.NONE, synonyms=synonyms)


KNOWN: dict[str, Parameter] = {
    p.name: p
    for p in (
        _level("mu", "mu", "mu of a known guarantee, Gaussian privacy"),
        _level("rho", "rho", "rho of a known guarantee, zero-concentrated privacy", synonyms=("zcdp", "zcdp_rho")),
        _level("pure", "epsilon", "epsilon of a known guarantee, pure privacy"),
        Parameter(
            "to", "", "what is sought (default: epsilon at --delta, delta at --epsilon, or rdp at --order)",
            choices=("epsilon", "delta", "mu", "rho", "rdp", "pure"),
        ),
    )
}  # fmt: skip
"""The levels of privacy that conversions start from and lead to; they do not describe a run."""


def _share(name: str, help: str, high: float = 1.0) -> Parameter:
    return Parameter(name, "", help, high=high)


TARGETS: dict[str, Parameter] = {
    p.name: p
    for p in (
        _share("advantage", "solve for what keeps true-positive less false-positive rate of any attack at most this"),
        _share("tpr", "solve for what keeps the true-positive rate at --fpr at most this"),
        _share("success", "solve for what keeps how often a guess is right, at --prior, at most this"),
        _share(
            "reconstruction", "solve for what keeps how often a secret is guessed, --baseline without, at most this"
        ),
    )
}
"""Limits on attackers, when a parameter is solved for."""

RATES: dict[str, Parameter] = {
    p.name: p
    for p in (
        _share("fpr", "false-positive rate"),
        _share("prior", "prior probability that the record is there"),
        _share("baseline", "probability to guess a secret of the record right without the release"),
    )
}
"""The rates and probabilities at which attacks are evaluated."""

NOISE_SCALES = ("noise_multiplier", "noise_std")
"""The parameters that a number given as the noise may be, the one of DP-SGD first."""

EVERY = {**PARAMETERS, **KNOWN, **TARGETS, **RATES}
"""Every parameter of any question."""

_NEAR = frozenset({"lipschitz"})
"""Parameters that a word means if it means no other one: a clipping norm is a Lipschitz constant."""

_CLIPPED = "clipped gradients are of loss class lipschitz, unless --model is linear"
"""The remark where a clipping norm is taken for a Lipschitz constant."""

_MEANT_WORDS = {
    "ridge": "squares, with --regularisation",
    "mse": "squares",
    "squared": "squares",
    "least-squares": "squares",
    "quadratic": "squares",
    "l2": "squares",
    "mae": "absolute",
    "l1": "absolute",
    "svm": "hinge",
    "linear-svm": "hinge",
    "cross-entropy": "logistic",
    "bce": "logistic",
    "log-loss": "logistic",
    "logit": "logistic",
}
"""Losses by their names in other programs. They only lead to a hint, as most differ from ours by a factor."""
_OTHER_UNITS = frozenset({
    "noise_scale", "stddev", "std", "temperature", "convexity", "max_iter", "beta", "sample_size", "drop_last",
    "linear_model", "mechanism", "method", "neighboring_relation", "neighbouring_relation", "l2_regularizer",
})  # fmt: skip
"""Words for about the same as a parameter, in another unit or with other values."""


def other_words(name: str) -> Mapping[str, str]:
    """Return other programs' and papers' words for the values of a parameter -> the value meant.

    >>> other_words("sampling")["bootstrap"], other_words("loss")["svm"], other_words("records")
    ('with-replacement', 'hinge', {})
    """
    return _MEANT_WORDS if name == "loss" else _SAME_WORD.get(name, {})


def spellings(name: str) -> tuple[str, ...]:
    """Return the words of other programs that mean exactly this parameter, as flags.

    >>> spellings("delta"), spellings("lipschitz")
    (('--target-delta',), ())
    """
    if name not in PARAMETERS or name in _NEAR:
        return ()
    words = [word for word in PARAMETERS[name].synonyms if word not in _OTHER_UNITS]
    return tuple(["--" + word.replace("_", "-") for word in words])


@functools.cache
def _named() -> dict[str, str]:
    """Return every word that means exactly one parameter: its name, those of `spellings`, and its long flags."""
    words: dict[str, str] = {}
    for name, parameter in PARAMETERS.items():
        flags = (*spellings(name), *(alias for alias in parameter.aliases if alias.startswith("--")))
        words.update({flag.removeprefix("--").replace("-", "_"): name for flag in flags})
    return {**words, **{name: name for name in PARAMETERS}}


def name_of(word: str) -> str:
    """Return the name of the parameter that a word means exactly, in dpcalc or elsewhere; else the word itself.

    >>> name_of("lr"), name_of("sigma"), name_of("max_grad_norm"), name_of("noise_scale"), name_of("step_size")
    ('step_size', 'noise_std', 'clip', 'noise_scale', 'step_size')
    """
    return _named().get(word, word)


def synonyms() -> tuple[str, ...]:
    """Return the words of `name_of` that are not themselves parameter names."""
    return tuple(word for word, name in _named().items() if word != name)


def renamed(given: Mapping[str, T]) -> dict[str, T]:
    """Return the given values by the names of their parameters (`name_of`).

    Raises:
        SpecError: two words stand for one parameter.
    """
    words: dict[str, str] = {}
    for word in given:
        name = name_of(word)
        if name in words:
            raise SpecError(f"{name} is given twice, as {words[name]} and as {word}", "keep one of the two")
        words[name] = word
    return {name: given[word] for name, word in words.items()}


def means_exactly(word: str, name: str) -> bool:
    """Return whether another program's word means a parameter in the same unit and with the same values.

    >>> means_exactly("lr", "step_size"), means_exactly("max_iter", "steps")
    (True, False)
    """
    return "--" + word.replace("_", "-") in spellings(name)


def meant_by(word: str, taken: Iterable[str]) -> str:
    """Return the name of the parameter that a user means by a word: one of ``taken``, else the empty string.

    A word is a flag or a name with or without hyphens, a short flag, or what another program calls the parameter.

    >>> meant_by("--max-grad-norm", ["records", "lipschitz"]), meant_by("--l2-norm-clip", ["lipschitz", "clip"])
    ('lipschitz', 'clip')
    """
    bare = word.lstrip("-")
    typed = bare.replace("-", "_").lower()
    for parameter in map(PARAMETERS.get, sorted(taken, key=_NEAR.__contains__)):
        if parameter and (typed in parameter.synonyms or bare in (alias.lstrip("-") for alias in parameter.aliases)):
            return parameter.name
    return ""


def named_by(word: str, names: Iterable[str]) -> str:
    """Return the name that a word means exactly: itself, a short flag, or another program's word for it.

    An unknown word is returned unchanged.

    >>> named_by("eta", ["step_size"]), named_by("lr", ["step_size"]), named_by("max_iter", ["steps"])
    ('step_size', 'step_size', 'max_iter')
    """
    typed = word.lstrip("-").replace("-", "_")
    meant = meant_by(word, names)
    if not meant:
        return word
    exact = (*PARAMETERS[meant].aliases, *spellings(meant))
    return meant if "--" + typed.replace("_", "-") in exact or "-" + typed in exact else word


def conversion(meant: str) -> str:
    """Return a remark in brackets on how a parameter differs from its synonym; empty if they are the same."""
    return f" ({_CLIPPED})" if meant == "lipschitz" else ""


def not_covered(word: str) -> str:
    """Return why a word of another program has no parameter; empty for all other words.

    >>> not_covered("--actual-batch-size").partition(",")[0]
    'A sum divided by the size of the batch that was drawn tells that size'
    """
    from dpcalc.topics import refusing

    topic = refusing(word)
    return topic.says if topic else ""


def check(name: str, value: float | int | str) -> float | int | str:
    """Return ``value`` if it lies in the domain of the parameter ``name``; a word becomes a member of its enum.

    Raises:
        SpecError: it does not, or is not a number where one is needed.
    """
    parameter = EVERY[name]
    return _word(parameter, value) if parameter.choices else _number(parameter, value)


def _word(parameter: Parameter, value: float | int | str) -> float | int | str:
    if value not in parameter.choices and parameter.name in _SAME_WORD:
        plain = str(value).lower().replace("_", "-")
        value = plain if plain in parameter.choices else _SAME_WORD[parameter.name].get(plain, value)
    if value not in parameter.choices:
        if why := not_covered(str(value)):
            raise SpecError(f"{parameter.name} is {value!r}: {why}", f"use {parameter.domain}")
        import difflib

        close = difflib.get_close_matches(str(value), parameter.choices, n=1)
        meant = algorithm_meant_by(str(value)) if parameter.choices is NAMED else ""
        if parameter.choices is PARAMETERS["loss"].choices:
            meant = _MEANT_WORDS.get(str(value).strip().lower().replace("_", "-"), "")
        near = [meant] if meant else close
        if parameter.name == "noise" and str(value).replace(".", "", 1).isdecimal():
            scales = " or ".join(f"{PARAMETERS[name].flag} {value}" for name in NOISE_SCALES)
            raise SpecError(f"noise is {value!r}; it is {parameter.domain}", f"did you mean {scales}?")
        hint = f"did you mean {near[0]}?" if near else f"see `dpcalc help {parameter.flag[2:]}`"
        raise SpecError(f"{parameter.name} is {value!r}; it must be {parameter.domain}", hint)
    return _WORDS[parameter.name](value) if parameter.name in _WORDS else value


_COUNTABLE = 1 << 53
"""Every integer up to here is a double."""

_LEAST = sys.float_info.min
"""Below it doubles lose digits: 7e-324 is read as 4.9e-324."""


def _number(parameter: Parameter, value: float | int | str) -> float | int:
    if type(value) is int and abs(value) <= _COUNTABLE and parameter.allows(value):
        return value if parameter.integer else float(value)
    if type(value) is float and not parameter.integer and parameter.allows(value) and not 0.0 < abs(value) < _LEAST:
        return value
    refusal, flag = f"it must be {parameter.domain}", parameter.flag
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(f"{parameter.name} is {value!r}; {refusal}", f"write {flag} as a plain number")
    if isinstance(value, int) and abs(value) > 10**300:
        raise SpecError(f"{parameter.name} has more than 300 digits; {refusal}", "check the unit")
    if parameter.integer and value != int(value if math.isfinite(value) else 0):
        raise SpecError(f"{parameter.name} is {value!r}; {refusal}")
    if not parameter.allows(value):
        example = typed({parameter.name: example_of(parameter.name)})
        raise SpecError(f"{parameter.name} is {value!r}; {refusal}", f"for example {example}")
    if 0.0 < abs(value) < _LEAST:
        what = f"{parameter.name} is {value!r}; so small a number is not kept to all digits"
        raise SpecError(what, "at least 2.3e-308")
    return int(value) if parameter.integer else float(value)


# --- examples of values --------------------------------------------------------------------------------------------


def example_of(name: str) -> Any:
    """Return a usual value of a parameter."""
    from dpcalc.model.algorithm import EXAMPLES

    return EXAMPLES.get(name, 1 if name in EVERY and EVERY[name].integer else 1.0)


def typed(values: Given) -> str:
    """Return parameters and values as on the command line.

    >>> typed({"records": 100, "delta": 1e-6})
    '--records 100 --delta 1e-6'
    """
    shown = ((EVERY[n].flag, f"{x:g}" if isinstance(x, float) else str(x)) for n, x in values.items())
    return " ".join(f"{flag} {value}".replace("e-0", "e-") for flag, value in shown)


def to_give(names: Iterable[str]) -> str:
    """Return the hint that asks for parameters, with an example of each.

    >>> to_give(["records", "lipschitz"])
    'give --records, --lipschitz; for example --records 10000 --lipschitz 1'
    """
    names = list(names)
    flags = ", ".join(EVERY[name].flag for name in names)
    return f"give {flags}; for example {typed({name: example_of(name) for name in names})}"
