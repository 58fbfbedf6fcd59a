"""One vocabulary: every parameter's name, symbol, flags, domain and help, read by the CLI, the API and the reports."""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.spec.loss import LOSS_CLASSES, LOSSES

MAX_RECORDS = 10**15
ALGORITHM_NAMES = (
    "pnsgd", "skip", "stop", "local", "shuffled", "rotation", "shuffled-stop", "online", "cyclic", "shuffle-once",
    "shuffled-epochs", "noisy-sgd", "noisy-gd", "repeated", "dp-sgd-output", "dp-sgd-gradient",
)  # fmt: skip


class Symbol(NamedTuple):
    """A parameter a user can set.

    ``low`` and ``high`` bound its domain; they are themselves allowed unless named in ``open_ends``.
    """

    name: str
    letter: str
    help: str
    flags: tuple[str, ...] = ()
    integer: bool = False
    choices: tuple[str, ...] = ()
    low: float = 0.0
    high: float = math.inf
    open_ends: str = "both"

    @property
    def flag(self) -> str:
        """The long flag, for messages."""
        return "--" + self.name.replace("_", "-")

    @property
    def domain(self) -> str:
        """The allowed values in words, for messages."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.integer:
            return f"a whole number from {self.low:.0f} to {self.high:g}"
        left = ">" if self.open_ends in ("both", "low") else ">="
        if math.isinf(self.high):
            return f"a number {left} {self.low:g}"
        right = "<" if self.open_ends in ("both", "high") else "<="
        return f"a number {left} {self.low:g} and {right} {self.high:g}"


def _whole(name: str, letter: str, help: str, *flags: str) -> Symbol:
    return Symbol(name, letter, help, flags, integer=True, low=1, high=MAX_RECORDS, open_ends="none")


SYMBOLS: dict[str, Symbol] = {
    s.name: s
    for s in (
        Symbol("algorithm", "", "what is run and released", choices=ALGORITHM_NAMES),
        Symbol(
            "adjacency",
            "",
            "what neighbouring data sets differ in: one record replaced by another, or by a null record "
            "(zero gradient)",
            choices=("replace-one", "null-record"),
        ),
        _whole("records", "n", "number of records; one pass uses each once", "-n"),
        _whole("index", "i", "1-based position of the differing record (default: the worst one)", "-i"),
        _whole("batch_size", "b", "records per step; their mean gradient is used"),
        _whole("steps", "T", "number of steps"),
        _whole("epochs", "E", "number of passes over the records"),
        Symbol(
            "epoch_epsilon",
            "",
            "epsilon of one pass, of an algorithm known by its (epsilon, delta) alone",
            open_ends="high",
        ),
        Symbol("epoch_delta", "", "delta of one pass, 0 for pure privacy", high=1.0, open_ends="high"),
        Symbol(
            "release",
            "",
            "what is released: the last iterate alone, or the iterate after every epoch",
            choices=("last", "epoch"),
        ),
        Symbol("lipschitz", "L", "Lipschitz constant of the loss in the parameter", ("-L",)),
        Symbol(
            "holder_exponent",
            "alpha",
            "exponent of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w, v: 1 where smooth, 0 where Lipschitz",
            high=1.0,
            open_ends="none",
        ),
        Symbol("holder_constant", "L", "constant of |grad l(w) - grad l(v)| <= L |w - v|^alpha, for all w and v"),
        Symbol("gradient_at_zero", "M", "bound on the gradient of every record's loss at w = 0", open_ends="high"),
        Symbol("loss_at_zero", "M0", "bound on every record's loss at w = 0; losses are >= 0", open_ends="high"),
        Symbol("radius", "R", "radius of a ball around 0 that holds the constraint set; 0 lies in the set", ("-R",)),
        Symbol("failure_probability", "gamma", "probability with which a bound on the risk may fail", high=1.0),
        Symbol("smoothness", "beta", "Lipschitz constant of the gradient of the loss", open_ends="high"),
        Symbol("strong_convexity", "m", "strong convexity of the loss; 0 when merely convex", open_ends="high"),
        Symbol("step_size", "eta", "step size of w - eta (gradient + Z)", ("--eta",)),
        Symbol("noise_std", "sigma", "standard deviation per coordinate of the Gaussian Z", ("--sigma",)),
        Symbol("langevin_std", "", "sigma of w - eta gradient + sqrt(2 eta) sigma N(0, 1), in place of noise_std"),
        Symbol("laplace_scale", "v", "scale of the Laplace Z (one dimension)"),
        Symbol("noise", "", "kind of noise, where its scale is derived or solved for", choices=("gaussian", "laplace")),
        Symbol("diameter", "D", "diameter of the constraint set", ("-D",)),
        Symbol(
            "dimension",
            "d",
            "dimension of the parameter, for Laplace noise and for risks (default 1)",
            integer=True,
            low=1,
            high=MAX_RECORDS,
            open_ends="none",
        ),
        Symbol(
            "loss_class",
            "",
            "what is known of every loss; lipschitz (a bounded gradient only) covers clipping. "
            "Default: convex-smooth if a smoothness is given, else lipschitz",
            choices=LOSS_CLASSES,
        ),
        Symbol(
            "displacement",
            "M",
            "how far apart a gradient step leaves two points, over the diameter; for Laplace noise in the 1-norm "
            "(default: derived from the loss class)",
            open_ends="high",
        ),
        Symbol(
            "last_batch",
            "",
            "a short last batch: divided by its own size, by the nominal one, or dropped",
            choices=("own", "nominal", "drop"),
        ),
        Symbol(
            "permutation",
            "",
            "whether the random order and its seed stay secret for ever",
            choices=("public", "secret"),
        ),
        Symbol("c1", "C1", "constant of the noise schedule"),
        Symbol("c2", "C2", "constant of the noise schedule", low=-math.inf),
        Symbol("decay_exponent", "alpha", "exponent of the noise schedule of a stream", high=64.0, open_ends="low"),
        Symbol(
            "window",
            "w",
            "speak of all records that at least so many others follow",
            ("-w",),
            integer=True,
            high=MAX_RECORDS,
            open_ends="none",
        ),
        Symbol("noise_multiplier", "", "factor on every noise scale of the schedule"),
        _whole("tasks", "k", "number of losses trained on the same records"),
        Symbol(
            "public_records",
            "m",
            "how many of the records need no privacy; they come last",
            integer=True,
            high=MAX_RECORDS,
            open_ends="none",
        ),
        Symbol("loss", "", "a loss of a linear model, from which its constants follow", choices=LOSSES),
        Symbol("feature_bound", "B", "largest norm of a feature vector"),
        Symbol(
            "label_bound", "Y", "largest size of a label (hinge and logistic: labels are +1 and -1)", open_ends="high"
        ),
        Symbol(
            "power", "q", "power of the hinge, absolute and insensitive losses", low=1.0, high=2.0, open_ends="none"
        ),
        Symbol("huber_threshold", "kappa", "size of a residual past which the huber loss is linear"),
        Symbol("tube", "tau", "size of a residual up to which the insensitive loss is 0", open_ends="high"),
        Symbol("regularisation", "lambda", "weight of the regulariser (lambda/2) |w|^2", open_ends="high"),
        Symbol("epsilon", "epsilon", "privacy loss bound", ("-e",), open_ends="high"),
        Symbol("delta", "delta", "probability of exceeding epsilon", ("-d",), high=1.0),
        Symbol("order", "alpha", "order of Renyi divergence", low=1.0, open_ends="none"),
        Symbol("shift", "s", "distance the two runs' maps can be apart in a step", open_ends="high"),
        Symbol("contraction", "c", "Lipschitz factor of a step's map", open_ends="high"),
        Symbol("start_distance", "z0", "distance of the two starting points", open_ends="high"),
    )
}


def check(name: str, value: float | int | str) -> float | int | str:
    """Return ``value`` if it lies in the domain of the parameter ``name``.

    Raises:
        SpecError: it does not, or is not a number where one is needed.
    """
    symbol = SYMBOLS[name]
    if symbol.choices:
        if value not in symbol.choices:
            import difflib

            near = difflib.get_close_matches(str(value), symbol.choices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"see {symbol.flag}"
            raise SpecError(f"{name} is {value!r}; it must be {symbol.domain}", hint)
        return value
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SpecError(f"{name} is {value!r}; it must be {symbol.domain}", f"write {symbol.flag} as a plain number")
    if isinstance(value, int) and abs(value) > 10**300:
        raise SpecError(f"{name} has more than 300 digits; it must be {symbol.domain}", "check the unit")
    if symbol.integer and value != int(value if math.isfinite(value) else 0):
        raise SpecError(f"{name} is {value!r}; it must be {symbol.domain}")
    low_ok = value > symbol.low if symbol.open_ends in ("both", "low") else value >= symbol.low
    high_ok = value < symbol.high if symbol.open_ends in ("both", "high") else value <= symbol.high
    if not (low_ok and high_ok):
        raise SpecError(f"{name} is {value!r}; it must be {symbol.domain}", f"see {symbol.flag}")
    return int(value) if symbol.integer else float(value)
