"""The base class of losses: bounds on the data and on the domain, and the constants that follow from the slope.

A loss is a convex function of z = <w, x> and of the label y. Its slope and its height depend on one number, its reach:
|y - z|, or for labels +1 and -1 how far the margin y z falls short. Both rise with the reach, so a bound on the reach
gives every constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from dpcalc.errors import MissingParameter, NotApplicable, SpecError
from dpcalc.model.draft import Frozen
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ScalarDescent = Callable[[float, float], float]
"""(z, y) -> minus the derivative of the loss in z."""

ArrayDescent = Callable[["Array", Any], None]
"""Overwrites an array z with minus the derivatives at (z, y); y broadcasts to its shape."""


class ScaledDescent(NamedTuple):
    """Minus the derivatives at (z, y), as ``outer`` f(``inner`` z, y), so that matrix products can absorb the factors.

    Attributes:
        inner, outer: powers of two.
        overwrite: overwrites an array u with f(u, y); y broadcasts to its shape.
    """

    inner: float
    outer: float
    overwrite: ArrayDescent


class Loss(Frozen):
    """A loss with the bounds on the data and on the domain. `dpcalc.model.loss.of` makes one by its name.

    A subclass adds its own parameters, its slope and its height.

    Attributes:
        name: as in ``--loss``.
        signed: whether labels are +1 and -1.
        classified: whether labels are classes, each with its own score.
        feature_bound: B > 0.
        label_bound: Y >= 0, None if unknown; a loss with signed labels has none. Constants that need it raise without
        it.
        radius: R > 0 if w stays in the ball of this radius about 0; None for the whole space.
        regularisation: lambda >= 0.

    Raises:
        SpecError: a value is outside its range.
    """

    name: ClassVar[str]
    signed: ClassVar[bool] = False
    classified: ClassVar[bool] = False

    feature_bound: float
    label_bound: float | None = None
    radius: float | None = None
    regularisation: float = 0.0

    def __init__(self, **parameters: float | None) -> None:
        super().__init__(**parameters)
        self._check_own()
        check("feature_bound", self.feature_bound, 0.0, closed=False)
        check("regularisation", self.regularisation, 0.0)
        if self.radius is not None:
            check("radius", self.radius, 0.0, closed=False)
        if self.label_bound is not None:
            if self.signed:
                raise SpecError(f"labels of the {self.name} loss are +1 and -1", "leave out --label-bound")
            if self.classified:
                raise SpecError(f"labels of the {self.name} loss are classes", "leave out --label-bound")
            check("label_bound", self.label_bound, 0.0)

    @property
    def scores(self) -> int:
        """The number of scores of a record: one, except for losses of several classes."""
        return 1

    # --- defined by each loss -----------------------------------------------------------------------------------------

    def _check_own(self) -> None:
        """Refuse values of the loss's own parameters that are outside their range."""

    @property
    def exponent(self) -> float:
        """The largest Hoelder exponent of the gradient, in [0, 1]."""
        return 1.0

    @property
    def _steepest(self) -> float | None:
        """A bound on the slope at every reach, if that is the best one; None if the bound depends on the reach."""
        return None

    @property
    def _reach_at_zero(self) -> float:
        """The largest reach at w = 0: the largest |y|, except for losses with signed labels."""
        return self._need("label_bound", "the constant is finite")

    def _slope(self, reach: float) -> float:
        """Return the largest slope in z at this reach, good to 4 units."""
        raise NotImplementedError

    def _height(self, reach: float) -> float:
        """Return the largest value at this reach, rounded up."""
        raise NotImplementedError

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        """Return the Hoelder constant of the gradient without the regulariser, rounded up."""
        raise NotImplementedError

    def data_values(self, z: Array, labels: Array) -> Array:
        """Return the loss without the regulariser, entry by entry."""
        raise NotImplementedError

    def scalar_descent(self) -> ScalarDescent:
        """Return minus the derivative of `data_values` in z as a function of two numbers, for loops over records."""
        raise NotImplementedError

    def array_descent(self) -> ArrayDescent:
        """Return a function that overwrites an array z with minus the derivatives, for loops over batches.

        Overflow of e^(y z) is harmless; the caller has to silence it (``np.errstate(over="ignore")``).
        """
        raise NotImplementedError

    def scaled_descent(self) -> ScaledDescent:
        """Return `array_descent` with its factors separate, where that is less work."""
        return ScaledDescent(1.0, 1.0, self.array_descent())

    # --- constants ----------------------------------------------------------------------------------------------------

    @property
    def lipschitz(self) -> float:
        """The largest gradient norm of the data part on the domain: the L of privacy theorems.

        Raises:
            MissingParameter: it is finite only on a ball, or needs the label bound.
        """
        steepest = self._steepest
        if steepest is not None:
            return up(self.feature_bound * steepest, 2.0)
        return up(self.feature_bound * self._slope(self._reach_on_ball("its gradient is bounded")), 8.0)

    @property
    def sensitivity(self) -> float:
        """How far replacing one record can move the gradient: twice `lipschitz`, regularised or not."""
        return 2.0 * self.lipschitz

    @property
    def gradient_bound(self) -> float:
        """The largest gradient norm with the regulariser, `lipschitz` + lambda R: for utility, not privacy."""
        if not self.regularisation:
            return self.lipschitz
        return up(self.lipschitz + self.regularisation * self._need("radius", "the regulariser is Lipschitz"), 4.0)

    @property
    def smoothness(self) -> float | None:
        """The Lipschitz constant of the gradient, regulariser included; None if there is none (q < 2)."""
        return self.hoelder_constant() if self.exponent == 1.0 else None

    @property
    def strong_convexity(self) -> float:
        """The strong convexity of the regulariser: the data part is flat in directions orthogonal to x."""
        return self.regularisation

    def hoelder_constant(self, exponent: float | None = None) -> float:
        """Return the constant C of |grad f(w) - grad f(w')| <= C |w - w'|^exponent on the whole space.

        Args:
            exponent: in [0, 1], for logistic and huber; other losses have only `exponent`.

        Raises:
            NotApplicable: regularised, with an exponent below 1: then it holds only on a ball.
        """
        exponent = self.exponent if exponent is None else exponent
        constant = self._checked_constant(exponent)
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
        constant = self._checked_constant(exponent)
        diameter = 2.0 * self._need("radius", "the regulariser's gradient is Hoelder of an exponent below 1")
        return up(constant + self.regularisation * up(power_of(diameter, 1.0 - exponent), 8.0), 4.0)

    @property
    def gradient_at_zero(self) -> float:
        """M: the largest gradient norm at w = 0."""
        return up(self.feature_bound * self._slope(self._reach_at_zero), 8.0)

    @property
    def loss_at_zero(self) -> float:
        """M0: the largest loss at w = 0."""
        return self._height(self._reach_at_zero)

    @property
    def range(self) -> float:
        """The largest value on the ball of radius R, regulariser included; the least is never below 0."""
        highest = self._height(self._reach_on_ball("the loss is bounded"))
        if not self.regularisation:
            return highest
        radius = self._need("radius", "the loss is bounded")
        return up(highest + 0.5 * self.regularisation * radius * radius, 6.0)

    # --- the function itself ------------------------------------------------------------------------------------------

    def value(self, w: Array, features: Array, labels: Array) -> Array:
        """Return the loss of every record: features has shape (n, d), labels (n,)."""
        import numpy as np

        values: Array = self.data_values(features @ w, labels) + 0.5 * self.regularisation * np.dot(w, w)
        return values

    def gradient(self, w: Array, features: Array, labels: Array) -> Array:
        """Return a subgradient of `value` for every record, as rows; 0 if that is one."""
        import numpy as np

        slopes = self.data_slopes(features @ w, labels)
        gradients: Array = slopes[:, np.newaxis] * features + self.regularisation * w
        return gradients

    def data_slopes(self, z: Array, labels: Array) -> Array:
        """Return the derivative of `data_values` in z, entry by entry."""
        import numpy as np

        slopes = np.array(z, dtype=np.float64)
        self.array_descent()(slopes, labels)
        return np.negative(slopes, out=slopes)

    # --- parts --------------------------------------------------------------------------------------------------------

    def _need(self, name: str, why: str) -> float:
        value: float | None = getattr(self, name)
        if value is None:
            at = "on a ball only" if name == "radius" else "for bounded labels only"
            raise MissingParameter(f"{why} {at}: the {self.name} loss needs {name}", f"give {flag_of(name)}")
        return value

    def _reach_on_ball(self, why: str) -> float:
        """Return the largest reach on the ball, rounded up."""
        return up(self._reach_at_zero + self.feature_bound * self._need("radius", why), 3.0)

    def _checked_constant(self, exponent: float) -> float:
        if not 0.0 <= exponent <= 1.0:
            raise SpecError(f"exponent is {exponent!r}; it must be a number >= 0 and <= 1")
        return self._hoelder_constant_of_data(exponent)

    def _refuse_other(self, exponent: float) -> None:
        """Refuse an exponent other than the loss's only one."""
        if exponent != self.exponent:
            raise NotApplicable(
                f"the gradient of this {self.name} loss is Hoelder of exponent {self.exponent:g}, not {exponent:g}",
                f"ask for {self.exponent:g}, or use logistic or huber, which have any",
            )


def flag_of(name: str) -> str:
    """Return the flag of a parameter."""
    return "--" + name.replace("_", "-")


def check(name: str, value: Any, low: float, high: float = math.inf, *, closed: bool = True) -> None:
    """Refuse a value that is not a finite number in [low, high], or in (low, high) unless ``closed``.

    Raises:
        SpecError: it is outside.
    """
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not (low <= value <= high if closed else low < value < high):
        sign = ">=" if closed else ">"
        upper = f" and <= {high:g}" if math.isfinite(high) else ""
        raise SpecError(f"{name} is {value!r}; it must be a number {sign} {low:g}{upper}", f"see {flag_of(name)}")


def power_of(base: float, exponent: float) -> float:
    """Return base^exponent, good to 2 units; 1 for an exponent of 0, inf where it overflows."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
