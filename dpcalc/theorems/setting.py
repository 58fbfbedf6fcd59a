"""The parameters of a run as a theorem reads them: typed, and known if its `needs` name them.

Powers and sums of powers of the factor c = exp(-rate) by which a step contracts, accurate for every rate >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from dpcalc.model.draft import once
from dpcalc.model.quantities import Adjacency, LastBatch, LossClass, Mechanism, Noise, Permutation, Sampling, Scaling
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.theorems import batch_layout
from dpcalc.theorems.batch_layout import Layout

if TYPE_CHECKING:
    from dpcalc.model.chain import Chain
    from dpcalc.model.run import Run

DEEPEST = 2800.0
"""Larger exponents make no difference: exp(-2800) times the ratio of the largest and the smallest double is below the
smallest double."""


def in_range(rate: float) -> float:
    """Return the rate, moved down into the range of these functions.

    Rates outside that range differ from c = 1 or c = 0 by less than the rounding.
    """
    return min(rate, 1e4) if rate > 1e-200 else 0.0


def lost(rate: float, steps: int) -> float:
    """Return 1 - c^steps."""
    return -math.expm1(-rate * steps)


def kept(rate: float, steps: int) -> float:
    """Return c^steps, rounded up, at least e^-700."""
    exponent = min(rate * steps, 700.0)
    return math.exp(-exponent) * (1.0 + (4.0 * exponent + 4.0) * UNIT) if exponent else 1.0


def factors(rate: float, steps: int) -> tuple[tuple[float, ...], float]:
    """Return factors whose product is c^steps, none of them subnormal, and their error in units of roundoff."""
    exponent = min(rate * steps, DEEPEST)
    return ((math.exp(-0.25 * exponent),) * 4, 4.0 * exponent + 16.0) if exponent else ((), 0.0)


def total(rate: float, steps: int, count: int) -> float:
    """Return 1 + c^steps + ... + c^(steps (count-1))."""
    return float(count) if rate == 0.0 else math.expm1(-rate * (steps * count)) / math.expm1(-rate * steps)


def variance(rate: float, steps: int) -> float:
    """Return G = 1 + c^2 + ... + c^(2 (steps-1)), the variance after ``steps`` steps of unit noise."""
    return float(steps) if rate == 0.0 else math.expm1(-2.0 * rate * steps) / math.expm1(-2.0 * rate)


def half_tanh(exponent: float) -> float:
    """Return (1 - e^-x)/(1 + e^-x), that is tanh(x/2)."""
    return -math.expm1(-exponent) / (1.0 + math.exp(-exponent))


S = TypeVar("S", bound="Setting")

_UNKNOWN: Any = None  # the value of an optional parameter that is unknown; the theorem checks for it
# Parameters that many theorems need; a name with a question mark may be unknown.
PLACE = ("records", "index", "batch_size", "last_batch?")
BATCHES = ("records", "batch_size", "last_batch")
GAUSSIAN_STEP = ("sensitivity", "noise_std")
NOISY_STEP = ("sensitivity", "noise", "scale")
CURVED_STEP = ("step_size", "smoothness", "strong_convexity")
BOUNDED_STEP = ("step_size", "displacement", "diameter")


def decay_rate(step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return -ln c, rounded down, for c = max(|1 - eta m|, |1 - eta beta|); 0 when c = 1, inf when c = 0.

    Raises:
        ValueError: m < 0, for which c is above 1; the conditions of theorems refuse it before.
    """
    if strong_convexity < 0.0:
        raise ValueError(f"losses of strong convexity {strong_convexity} do not contract")
    # Each product is rounded to its unsafe side before 1 is subtracted, which would magnify its rounding.
    shrunk = down(step_size * strong_convexity, 4.0)
    from_convexity = -math.log1p(-shrunk) if shrunk < 1.0 else math.inf
    overshoot = up(step_size * smoothness, 4.0) - 1.0
    from_smoothness = -math.log(overshoot) if overshoot > 0.0 else math.inf
    return max(0.0, down(min(from_convexity, from_smoothness), 4.0))


class Setting:
    """The parameters of a run that a theorem reads; `dpcalc.model.parameter` has their units and domains.

    The parameters that a theorem needs are known. An unknown one has a default here that assumes nothing, such as no
    strong convexity or an unbounded domain, or is None. A family whose formulas share more has a subclass, which adds
    only properties.

    Attributes:
        fields: the names of all parameters.
        known: name -> value of every known parameter.
    """

    fields: ClassVar[frozenset[str]]
    known: Mapping[str, Any]

    adjacency: Adjacency = Adjacency.REPLACE_ONE
    group_size: int = 1
    records: int = _UNKNOWN
    index: int = _UNKNOWN
    batch_size: int = _UNKNOWN
    last_batch: LastBatch = LastBatch.OWN
    steps: int = _UNKNOWN
    epochs: int = _UNKNOWN
    permutation: Permutation
    public_records: int
    tasks: int
    epoch_epsilon: float
    epoch_delta: float
    lipschitz: float = math.inf
    sensitivity: float
    loss_class: LossClass
    smoothness: float = _UNKNOWN
    strong_convexity: float = 0.0
    holder_exponent: float = _UNKNOWN
    holder_constant: float = _UNKNOWN
    gradient_at_zero: float = _UNKNOWN
    loss_at_zero: float = _UNKNOWN
    regularisation: float = 0.0
    diameter: float = math.inf
    radius: float = math.inf
    displacement: float = _UNKNOWN
    dimension: int = 1
    failure_probability: float
    step_size: float = _UNKNOWN
    noise: Noise
    scale: float
    noise_std: float
    laplace_scale: float
    c1: float
    c2: float
    decay_exponent: float
    schedule_factor: float
    sampling: Sampling
    sample_rate: float
    max_batch_size: int
    clip: float = _UNKNOWN
    noise_multiplier: float
    epsilon: float
    log_delta: float
    schedule: Chain
    contraction: float = _UNKNOWN
    start_distance: float
    gradient_norm: float = 0.0
    requests: int = 1
    clean_steps: int
    mechanism: Mechanism
    bands: int = 1
    participations: int
    separation: int
    scaling: Scaling = Scaling.MATRIX

    def __init__(self, **known: Any) -> None:
        if strange := known.keys() - self.fields:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(strange))}")
        self.__dict__.update(known, known=known)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Setting) and self.known == other.known

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.known.items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.known.items())})"

    @classmethod
    def of(cls, run: Run, names: tuple[str, ...] = ()) -> Self:
        """Return the setting of a run: all known parameters, or only those of these names."""
        known = run.values
        return cls(**{name: known[name] for name in names or cls.fields if name in known})

    def part(self, setting: type[S], *, without: str = "") -> S:
        """Return the same parameters as another family's setting, without the one named ``without``."""
        return setting(**{name: value for name, value in self.known.items() if name != without})

    def changed(self, **changes: Any) -> Self:
        """Return a copy with some parameters changed."""
        return type(self)(**{**self.known, **changes})

    @once
    def layout(self) -> Layout:
        """How the records of a pass are divided into steps."""
        return batch_layout.layout(self.records, self.batch_size, self.last_batch)

    @once
    def _step(self) -> batch_layout.Place:
        return self.layout.place(self.index)

    @property
    def own_batch(self) -> int:
        """b, the divisor of the record's own batch: its size, except for `nominal`."""
        return self._step.divisor

    @property
    def steps_to_end(self) -> int:
        """k, the number of steps from the record's own to the last, both included."""
        return self._step.tail

    @property
    def period(self) -> int:
        """l, the number of steps in a pass."""
        return self.layout.steps

    @once
    def rate(self) -> float:
        """-ln c, the contraction of a step, rounded down; smooth losses."""
        return decay_rate(self.step_size, self.smoothness, self.strong_convexity)


# Only `EpochsOfBatches` has the uses of an epoch; for other families that name follows from the run.
Setting.fields = (frozenset(Setting.__annotations__) - {"fields", "known"}) | {"uses"}
