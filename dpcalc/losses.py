"""The loss catalogue: convex losses of a linear model, and the constants by which theorems know them.

Features x and labels y lie in known balls: |x| <= B (``feature_bound``) and |y| <= Y (``label_bound``), or y = +-1 for
hinge and logistic. Below z = <w, x>, r = y - z and q is ``power``.

| loss        | value                                  | exponent of the gradient | its Hoelder constant        |
|-------------|----------------------------------------|--------------------------|-----------------------------|
| hinge       | max(0, 1 - y z)^q                      | q - 1                    | q B^q                       |
| absolute    | |r|^q                                  | q - 1                    | q 2^(2-q) B^q               |
| insensitive | max(0, |r| - tube)^q                   | q - 1                    | q 2^(2-q) B^q               |
| logistic    | ln(1 + e^(-y z))                       | any a in [0, 1]          | B^(1+a) sup_h tanh(h/4)/h^a |
| huber       | r^2/2 for |r| <= k, else k |r| - k^2/2 | any a in [0, 1]          | (2k)^(1-a) B^(1+a)          |
| squares     | r^2/2                                  | 1                        | B^2                         |

A regulariser (lambda/2) |w|^2 makes each lambda-strongly convex. It does not depend on the data: what privacy needs is
twice the gradient bound of the data part alone. Constants are rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpcalc.errors import MissingParameter, NotApplicable, SpecError
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import least
from dpcalc.spec.loss import LOSSES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

POWERED = ("hinge", "absolute", "insensitive")
SIGNED = ("hinge", "logistic")
"""Losses whose labels are +1 or -1."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss of the catalogue, with what is known of the data and the domain.

    Args:
        name: one of `LOSSES`.
        feature_bound: B > 0.
        label_bound: Y >= 0, for all but `SIGNED`; constants that need it refuse without.
        power: q in [1, 2], for `POWERED`.
        huber_threshold: k > 0, for huber.
        tube: half the width of the free tube, >= 0, for insensitive.
        radius: R > 0 where w stays in the ball of this radius about 0; None for the whole space.
        regularisation: lambda >= 0.

    Raises:
        SpecError: a value is outside its range, or a parameter that this loss does not have is given.
        MissingParameter: one that it has is missing.

    >>> loss = Loss(name="squares", feature_bound=1.0, label_bound=1.0, radius=2.0, regularisation=0.5)
    >>> round(loss.lipschitz, 12), round(loss.smoothness, 12), loss.strong_convexity
    (3.0, 1.5, 0.5)
    """

    name: str
    feature_bound: float
    label_bound: float | None = None
    power: float | None = None
    huber_threshold: float | None = None
    tube: float | None = None
    radius: float | None = None
    regularisation: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise SpecError(f"no loss is called {self.name!r}", "use one of " + ", ".join(LOSSES))
        own = {
            "power": (self.name in POWERED, 1.0, 2.0, True),
            "huber_threshold": (self.name == "huber", 0.0, math.inf, False),
            "tube": (self.name == "insensitive", 0.0, math.inf, True),
        }
        for parameter, (taken, low, high, closed) in own.items():
            value = getattr(self, parameter)
            flag = _flag(parameter)
            if taken and value is None:
                raise MissingParameter(f"the {self.name} loss needs {parameter}", f"give {flag}")
            if not taken and value is not None:
                raise SpecError(f"the {self.name} loss has no {parameter}", f"leave out {flag}")
            if taken:
                _check(parameter, value, low, high, closed)
        _check("feature_bound", self.feature_bound, 0.0, math.inf, False)
        _check("regularisation", self.regularisation, 0.0, math.inf, True)
        if self.radius is not None:
            _check("radius", self.radius, 0.0, math.inf, False)
        if self.label_bound is not None:
            if self.name in SIGNED:
                raise SpecError(f"labels of the {self.name} loss are +1 and -1", "leave out --label-bound")
            _check("label_bound", self.label_bound, 0.0, math.inf, True)

    # --- constants ----------------------------------------------------------------------------------------------------

    @property
    def lipschitz(self) -> float:
        """The largest gradient norm of the data part on the domain: what a theorem calls L when it speaks of privacy.

        Raises:
            MissingParameter: it is finite on a ball only, or needs the label bound.
        """
        steepest = self._steepest
        if steepest is not None:
            return up(self.feature_bound * steepest, 2.0)
        return up(self.feature_bound * self._slope(self._reach("its gradient is bounded")), 8.0)

    @property
    def sensitivity(self) -> float:
        """How far one record can move the gradient when it is replaced: twice `lipschitz`, regularised or not."""
        return 2.0 * self.lipschitz

    @property
    def gradient_bound(self) -> float:
        """The largest gradient norm with the regulariser, lambda R more than `lipschitz`: for utility, not privacy."""
        if not self.regularisation:
            return self.lipschitz
        return up(self.lipschitz + self.regularisation * self._needed("radius", "the regulariser is Lipschitz"), 4.0)

    @property
    def smoothness(self) -> float | None:
        """The Lipschitz constant of the gradient, regulariser included; None where there is none (q < 2)."""
        return self.hoelder_constant() if self.exponent == 1.0 else None

    @property
    def strong_convexity(self) -> float:
        """The strong convexity: that of the regulariser, for a linear model has no other."""
        return self.regularisation

    @property
    def exponent(self) -> float:
        """The largest Hoelder exponent of the gradient, in [0, 1]."""
        if self.power is None:
            return 1.0
        from decimal import Decimal

        return float(Decimal(repr(float(self.power))) - 1)  # of the decimal typed: 1 - exponent may be tiny

    def hoelder_constant(self, exponent: float | None = None) -> float:
        """Return the constant C of |grad f(w) - grad f(w')| <= C |w - w'|^exponent on the whole space.

        Args:
            exponent: in [0, 1], for logistic and huber; others have `exponent` alone.

        Raises:
            NotApplicable: regularised, with an exponent below 1: then it holds on a ball only.
        """
        exponent = self.exponent if exponent is None else exponent
        constant = self._data_constant(exponent)
        if not self.regularisation:
            return constant
        if exponent < 1.0:
            raise NotApplicable(
                f"with a regulariser the gradient is not Hoelder of exponent {exponent:g} on the whole space",
                "leave out --regularisation, or take a loss and an exponent of 1",
            )
        return up(constant + self.regularisation)

    def hoelder_constant_on_ball(self, exponent: float | None = None) -> float:
        """Return `hoelder_constant` for pairs in the ball of radius R: lambda (2R)^(1 - exponent) is added."""
        exponent = self.exponent if exponent is None else exponent
        if exponent == 1.0 or not self.regularisation:
            return self.hoelder_constant(exponent)
        constant = self._data_constant(exponent)
        width = 2.0 * self._needed("radius", "the regulariser's gradient is Hoelder of an exponent below 1")
        return up(constant + self.regularisation * up(_power(width, 1.0 - exponent), 8.0), 4.0)

    @property
    def gradient_at_zero(self) -> float:
        """M: the largest gradient norm at w = 0."""
        if self.name == "insensitive" and self._labels < self._given("tube"):
            return 0.0
        return up(self.feature_bound * self._slope(self._labels), 8.0)

    @property
    def loss_at_zero(self) -> float:
        """M0: the largest loss at w = 0."""
        return self._height(self._labels)

    @property
    def range(self) -> float:
        """The largest value on the ball of radius R, regulariser included; the least is never below 0."""
        highest = self._height(self._reach("the loss is bounded"))
        if not self.regularisation:
            return highest
        radius = self._needed("radius", "the loss is bounded")
        return up(highest + 0.5 * self.regularisation * radius * radius, 6.0)

    # --- the function itself ------------------------------------------------------------------------------------------

    def value(self, w: Array, features: Array, labels: Array) -> Array:
        """Return the loss of every record: features is an array of rows, labels one of as many numbers."""
        import numpy as np

        z = features @ w
        if self.name in SIGNED:
            margin = labels * z
            data = np.logaddexp(0.0, -margin) if self.name == "logistic" else np.maximum(0.0, 1.0 - margin)
            data = data if self.name == "logistic" else data ** self._given("power")
        else:
            size = np.abs(labels - z)
            if self.name == "huber":
                k = self._given("huber_threshold")
                data = np.where(size <= k, 0.5 * size * size, k * size - 0.5 * k * k)
            elif self.name == "squares":
                data = 0.5 * size * size
            else:
                data = np.maximum(0.0, size - (self.tube or 0.0)) ** self._given("power")
        found: Array = data + 0.5 * self.regularisation * np.dot(w, w)
        return found

    def gradient(self, w: Array, features: Array, labels: Array) -> Array:
        """Return a subgradient of `value` for every record, as rows; 0 is taken where it may be."""
        import numpy as np

        z = features @ w
        found: Array = self._derivative(z, labels)[:, np.newaxis] * features + self.regularisation * w
        return found

    def _derivative(self, z: Array, labels: Array) -> Any:
        """Return the derivative of the data part in z."""
        import numpy as np

        if self.name == "logistic":
            return -labels * np.exp(-np.logaddexp(0.0, labels * z))
        if self.name == "hinge":
            return -labels * _slopes(1.0 - labels * z, self._given("power"))
        r = labels - z
        if self.name == "squares":
            return -r
        if self.name == "huber":
            return -np.clip(r, -self._given("huber_threshold"), self._given("huber_threshold"))
        return -np.sign(r) * _slopes(np.abs(r) - (self.tube or 0.0), self._given("power"))

    # --- parts --------------------------------------------------------------------------------------------------------

    def _given(self, name: str) -> float:
        value: float = getattr(self, name)
        return value

    def _needed(self, name: str, why: str) -> float:
        value: float | None = getattr(self, name)
        if value is None:
            at = "on a ball only" if name == "radius" else "for bounded labels only"
            raise MissingParameter(f"{why} {at}: the {self.name} loss needs {name}", f"give {_flag(name)}")
        return value

    @property
    def _labels(self) -> float:
        """The largest |y|, that is |r| at w = 0; the 1 of the hinge."""
        if self.name in SIGNED:
            return 1.0 if self.name == "hinge" else 0.0
        return self._needed("label_bound", "the constant is finite")

    def _reach(self, why: str) -> float:
        """Return the largest |r| (hinge: margin, logistic: -y z) on the ball, rounded up."""
        start = self._labels
        return up(start + self.feature_bound * self._needed("radius", why), 3.0)

    @property
    def _steepest(self) -> float | None:
        """The bound on the derivative in z over the whole line where it decides; None where the ball does."""
        if self.power == 1.0:
            return 1.0
        if self.radius is None and self.name == "logistic":
            return 1.0
        if self.name == "huber" and (self.radius is None or self.label_bound is None):
            return self.huber_threshold
        return None

    def _slope(self, reach: float) -> float:
        """Return the largest derivative at |r| = reach, which rises with it; good to 4 units."""
        if self.name == "logistic":
            return 1.0 / (1.0 + math.exp(-reach))
        if self.name == "huber":
            return min(self._given("huber_threshold"), reach)
        if self.name == "squares":
            return reach
        q = self._given("power")
        return q * up(_power(max(0.0, up(reach - (self.tube or 0.0))), q - 1.0), 4.0)

    def _height(self, reach: float) -> float:
        """Return the largest value at |r| = reach, rounded up."""
        if self.name == "logistic":
            return up(reach + math.log1p(math.exp(-reach)), 4.0)
        if self.name == "huber":
            k = self._given("huber_threshold")
            return up(0.5 * reach * reach if reach <= k else k * up(reach - 0.5 * k), 6.0)
        if self.name == "squares":
            return up(0.5 * reach * reach, 4.0)
        if reach <= (self.tube or 0.0):
            return 0.0
        return up(_power(up(reach - (self.tube or 0.0)), self._given("power")), 6.0)

    def _data_constant(self, exponent: float) -> float:
        if not 0.0 <= exponent <= 1.0:
            raise SpecError(f"exponent is {exponent!r}; it must be a number >= 0 and <= 1")
        b = self.feature_bound
        if self.name == "logistic":
            return up(up(_power(b, 1.0 + exponent), 6.0) * _logistic_share(exponent), 8.0)
        if self.name == "huber":
            k = self._given("huber_threshold")
            return up(up(_power(2.0 * k, 1.0 - exponent), 6.0) * _power(b, 1.0 + exponent), 12.0)
        if exponent != self.exponent:
            raise NotApplicable(
                f"the gradient of this {self.name} loss is Hoelder of exponent {self.exponent:g}, not {exponent:g}",
                f"ask for {self.exponent:g}, or use logistic or huber, which have any",
            )
        if self.name == "squares":
            return up(b * b, 2.0)
        q = self._given("power")
        spread = 1.0 if self.name == "hinge" else 2.0 ** (2.0 - q)
        return up(q * spread * up(_power(b, q), 6.0), 8.0)


def of(
    name: str,
    *,
    feature_bound: float,
    label_bound: float | None = None,
    power: float | None = None,
    huber_threshold: float | None = None,
    tube: float | None = None,
    radius: float | None = None,
    regularisation: float = 0.0,
) -> Loss:
    """Return the loss of this name, with power 1 and tube 0 where they are not given.

    >>> of("absolute", feature_bound=2.0).lipschitz <= 2.0 * (1.0 + 1e-15)
    True
    """
    return Loss(
        name=name, feature_bound=feature_bound, label_bound=label_bound,
        power=1.0 if power is None and name in POWERED else power,
        huber_threshold=huber_threshold, tube=0.0 if tube is None and name == "insensitive" else tube, radius=radius,
        regularisation=regularisation,
    )  # fmt: skip


PARAMETERS = (
    "feature_bound", "label_bound", "power", "huber_threshold", "tube", "radius", "regularisation",
)  # fmt: skip
"""What a loss of the catalogue is described by, beside its name."""


def constants(name: str, parameters: Mapping[str, float], *, risk: bool = False) -> dict[str, Any]:
    """Return what a loss tells of the parameters that bounds take.

    ``strong_convexity`` is that of the regulariser, and what the Hoelder constants say is of the loss without it.

    Args:
        name: one of `LOSSES`.
        parameters: those of `PARAMETERS` that are given.
        risk: whether ``lipschitz`` is to bound the regularised gradient, as the risk needs; privacy needs the data's.

    Raises:
        SpecError, MissingParameter: as `Loss`.
    """
    if "feature_bound" not in parameters:
        raise MissingParameter(f"the {name} loss needs feature_bound", "give --feature-bound")
    loss = of(name, **{key: parameters[key] for key in PARAMETERS if key in parameters})
    data = replace(loss, regularisation=0.0)
    found: dict[str, Any] = {
        "lipschitz": loss.gradient_bound if risk else loss.lipschitz,
        "loss_class": "convex" if loss.smoothness is None else "convex-smooth",
        "strong_convexity": loss.strong_convexity,
        "holder_exponent": data.exponent,
        "holder_constant": data.hoelder_constant(),
    }
    if loss.smoothness is not None:
        found["smoothness"] = loss.smoothness
    if loss.label_bound is not None or loss.name in SIGNED:
        found["gradient_at_zero"], found["loss_at_zero"] = loss.gradient_at_zero, loss.loss_at_zero
    if loss.radius is not None and "loss_at_zero" in found:
        found["loss_range"] = loss.range
    return found


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _check(name: str, value: Any, low: float, high: float, closed: bool) -> None:
    """Refuse a value outside [low, high], or at an end of it unless ``closed``; never infinite."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not (low <= value <= high if closed else low < value < high):
        sign = ">=" if closed else ">"
        upper = f" and <= {high:g}" if math.isfinite(high) else ""
        raise SpecError(f"{name} is {value!r}; it must be a number {sign} {low:g}{upper}", f"see {_flag(name)}")


def _power(base: float, exponent: float) -> float:
    """Return base^exponent, good to 2 units; 1 for an exponent of 0, inf where it overflows."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf


def _slopes(excess: Any, power: float) -> Any:
    """Return q max(0, excess)^(q-1), the derivative of max(0, excess)^q; 0 at excess = 0."""
    import numpy as np

    if power == 1.0:
        return np.where(excess > 0.0, 1.0, 0.0)
    return power * np.maximum(0.0, excess) ** (power - 1.0)


def _logistic_share(exponent: float) -> float:
    """Return sup_h tanh(h/4)/h^exponent, rounded up: tanh(u)/(4u)^exponent where 2u/sinh(2u) = exponent."""
    if exponent in (0.0, 1.0):
        return 1.0 if exponent == 0.0 else 0.25
    top = 354.0

    def past(u: float) -> float:
        return 2.0 * u / math.sinh(2.0 * u) - exponent

    if past(top) > 0.0:
        return 1.0
    u = least(past, 1e-9, top, ulps=1 << 20)
    # The maximum is flat: an error in u is squared. tanh(h/4) <= min(1, h/4) gives 4^-exponent at most.
    return min(up(math.tanh(u) / (4.0 * u) ** exponent, 16.0), up(0.25**exponent, 4.0))
