"""The losses: Huber's, squares, absolute, hinge, insensitive, logistic and softmax; powers q in [1, 2] of some."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, Loss, ScalarDescent, ScaledDescent, check, power_of
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class Huber(Loss):
    """r^2/2 for |r| <= k, else k |r| - k^2/2, with r = y - z. The reach is |r|.

    The gradient is Hoelder of any exponent a in [0, 1], with the constant (2k)^(1-a) B^(1+a).

    Attributes:
        huber_threshold: k > 0.
    """

    name: ClassVar[str] = "huber"

    huber_threshold: float

    def data_values(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_values`."""
        import numpy as np

        k, size = self.huber_threshold, np.abs(labels - z)
        return np.where(size <= k, 0.5 * size * size, k * size - 0.5 * k * k)

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        k = self.huber_threshold
        return lambda z, y: max(-k, min(k, y - z))

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""
        import numpy as np

        k = self.huber_threshold

        def overwrite(z: Array, y: Any) -> None:
            np.subtract(y, z, out=z)
            np.clip(z, -k, k, out=z)

        return overwrite

    def _check_own(self) -> None:
        check("huber_threshold", self.huber_threshold, 0.0, closed=False)

    @property
    def _steepest(self) -> float | None:
        return self.huber_threshold if self.radius is None or self.label_bound is None else None

    def _slope(self, reach: float) -> float:
        return min(self.huber_threshold, reach)

    def _height(self, reach: float) -> float:
        k = self.huber_threshold
        return up(0.5 * reach * reach if reach <= k else k * up(reach - 0.5 * k), 6.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        saturation = up(power_of(2.0 * self.huber_threshold, 1.0 - exponent), 6.0)
        return up(saturation * power_of(self.feature_bound, 1.0 + exponent), 12.0)


class Squares(Loss):
    """(y - z)^2/2. The reach is |y - z|."""

    name: ClassVar[str] = "squares"

    def data_values(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_values`."""
        import numpy as np

        size = np.abs(labels - z)
        return 0.5 * size * size

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        return lambda z, y: y - z

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""
        import numpy as np

        def overwrite(z: Array, y: Any) -> None:
            np.subtract(y, z, out=z)

        return overwrite

    def _slope(self, reach: float) -> float:
        return reach

    def _height(self, reach: float) -> float:
        return up(0.5 * reach * reach, 4.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        self._refuse_other(exponent)
        return up(self.feature_bound * self.feature_bound, 2.0)


class PowerLoss(Loss):
    """max(0, excess)^q, where the excess is linear in z, with at most one corner.

    The gradient is Hoelder of exponent q - 1 with the constant q B^q, times 2^(2-q) if the excess has a corner.

    Attributes:
        power: q in [1, 2].
    """

    power: float = 1.0

    def excess(self, z: Array, labels: Array) -> tuple[Array, Array]:
        """Return the excess, and minus its derivative in z."""
        raise NotImplementedError

    def data_values(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_values`."""
        import numpy as np

        values: Array = np.maximum(0.0, self.excess(z, labels)[0]) ** self.power
        return values

    @property
    def exponent(self) -> float:
        """As `Loss.exponent`: q - 1."""
        from decimal import Decimal

        return float(Decimal(repr(float(self.power))) - 1)  # of the decimal typed: 1 - exponent may be tiny

    def _check_own(self) -> None:
        check("power", self.power, 1.0, 2.0)

    @property
    def _steepest(self) -> float | None:
        return 1.0 if self.power == 1.0 else None

    @property
    def _free(self) -> float:
        """The largest reach without a loss."""
        return 0.0

    @property
    def _spread(self) -> float:
        """How much faster the gradient changes across a corner than on one side of it."""
        return 1.0

    def _slope(self, reach: float) -> float:
        return self.power * up(power_of(max(0.0, up(reach - self._free)), self.power - 1.0), 4.0)

    def _height(self, reach: float) -> float:
        return 0.0 if reach <= self._free else up(power_of(up(reach - self._free), self.power), 6.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        self._refuse_other(exponent)
        return up(self.power * self._spread * up(power_of(self.feature_bound, self.power), 6.0), 8.0)


def to_slopes(excess: Array, power: float) -> None:
    """Overwrite every excess with q max(0, excess)^(q-1), and with 0 unless it is positive."""
    import numpy as np

    if power == 1.0:
        np.greater(excess, 0.0, out=excess)
        return
    np.maximum(excess, 0.0, out=excess)
    if power != 2.0:
        np.power(excess, power - 1.0, out=excess)
    np.multiply(excess, power, out=excess)


class Absolute(PowerLoss):
    """|y - z|^q. The reach is |y - z|."""

    name: ClassVar[str] = "absolute"

    def excess(self, z: Array, labels: Array) -> tuple[Array, Array]:
        """As `PowerLoss.excess`."""
        import numpy as np

        residual = labels - z
        return np.abs(residual) - self._free, np.sign(residual)

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        power, free = self.power, self._free

        def descent(z: float, y: float) -> float:
            excess = abs(y - z) - free
            return math.copysign(power * excess ** (power - 1.0), y - z) if excess > 0.0 else 0.0

        return descent

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""
        import numpy as np

        power, free = self.power, self._free

        def overwrite(z: Array, y: Any) -> None:
            np.subtract(y, z, out=z)
            sign = np.sign(z)
            np.abs(z, out=z)
            np.subtract(z, free, out=z)
            to_slopes(z, power)
            np.multiply(z, sign, out=z)

        return overwrite

    @property
    def _spread(self) -> float:
        return float(2.0 ** (2.0 - self.power))


class Hinge(PowerLoss):
    """max(0, 1 - y z)^q, for labels +1 and -1. The reach is 1 - y z."""

    name: ClassVar[str] = "hinge"
    signed: ClassVar[bool] = True

    def excess(self, z: Array, labels: Array) -> tuple[Array, Array]:
        """As `PowerLoss.excess`."""
        return 1.0 - labels * z, labels

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        power = self.power

        def descent(z: float, y: float) -> float:
            excess = 1.0 - y * z
            return y * (power * excess ** (power - 1.0)) if excess > 0.0 else 0.0

        return descent

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""
        import numpy as np

        power = self.power

        def overwrite(z: Array, y: Any) -> None:
            np.multiply(z, y, out=z)
            np.subtract(1.0, z, out=z)
            to_slopes(z, power)
            np.multiply(z, y, out=z)

        return overwrite

    @property
    def _reach_at_zero(self) -> float:
        return 1.0


class Insensitive(Absolute):
    """max(0, |y - z| - tube)^q: residuals within the tube cost nothing.

    Attributes:
        tube: half the width of the tube without a loss, >= 0.
    """

    name: ClassVar[str] = "insensitive"

    tube: float = 0.0

    @property
    def gradient_at_zero(self) -> float:
        """As `Loss.gradient_at_zero`: 0 if every label lies in the tube."""
        return 0.0 if self._reach_at_zero < self.tube else super().gradient_at_zero

    def _check_own(self) -> None:
        super()._check_own()
        check("tube", self.tube, 0.0)

    @property
    def _free(self) -> float:
        return self.tube


_LONG = 700.0  # e to this power is still a double


class Logistic(Loss):
    """ln(1 + e^(-y z)), for labels +1 and -1. The reach is -y z.

    The gradient is Hoelder of any exponent a in [0, 1], with the constant B^(1+a) sup_h tanh(h/4)/h^a.
    """

    name: ClassVar[str] = "logistic"
    signed: ClassVar[bool] = True

    def data_values(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_values`."""
        import numpy as np

        values: Array = np.logaddexp(0.0, -(labels * z))
        return values

    def data_slopes(self, z: Array, labels: Array) -> Array:
        """As `Loss.data_slopes`, without overflow."""
        import numpy as np

        slopes: Array = -labels * np.exp(-np.logaddexp(0.0, labels * z))
        return slopes

    def scalar_descent(self) -> ScalarDescent:
        """As `Loss.scalar_descent`."""
        exp = math.exp

        def descent(z: float, y: float) -> float:
            margin = y * z
            return y / (1.0 + exp(margin)) if margin < _LONG else 0.0

        return descent

    def array_descent(self) -> ArrayDescent:
        """As `Loss.array_descent`."""
        import numpy as np

        def overwrite(z: Array, y: Any) -> None:
            np.multiply(z, y, out=z)
            np.exp(z, out=z)
            np.add(z, 1.0, out=z)
            np.divide(y, z, out=z)

        return overwrite

    def scaled_descent(self) -> ScaledDescent:
        """As `Loss.scaled_descent`: y/(1 + e^(y z)) = (y - tanh(z/2))/2 where y is +1 or -1."""
        import numpy as np

        tanh, subtract = np.tanh, np.subtract

        def overwrite(halves: Array, y: Any) -> None:
            tanh(halves, halves)
            subtract(y, halves, halves)

        return ScaledDescent(0.5, 0.5, overwrite)

    @property
    def _steepest(self) -> float | None:
        return 1.0 if self.radius is None else None

    @property
    def _reach_at_zero(self) -> float:
        return 0.0

    def _slope(self, reach: float) -> float:
        return 1.0 / (1.0 + math.exp(-reach))

    def _height(self, reach: float) -> float:
        return up(reach + math.log1p(math.exp(-reach)), 4.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        return up(up(power_of(self.feature_bound, 1.0 + exponent), 6.0) * _largest_ratio(exponent), 8.0)


def _largest_ratio(exponent: float) -> float:
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


_ROOT_2 = math.sqrt(2.0)


class Softmax(Loss):
    """ln(sum_j e^(z_j)) - z_y, for scores z = x W of K classes and a label y in 0..K-1. W has the Frobenius norm.

    The slope is q - e_y, q the softmax of z: at most sqrt(2) (1 - q_y) long, and 1/2-Lipschitz in z, since the
    eigenvalues of diag q - q q' are at most 1/2. So the gradient is Hoelder of any exponent a in [0, 1], with the
    constant sqrt(2) (2 sqrt(2))^-a B^(1+a). The reach bounds how far another score is above the label's: sqrt(2) |z|.

    Attributes:
        classes: K >= 2.
    """

    name: ClassVar[str] = "softmax"
    classified: ClassVar[bool] = True

    classes: int

    @property
    def scores(self) -> int:
        """One for each class."""
        return int(self.classes)

    def data_values(self, z: Array, labels: Array) -> Array:
        """Return the loss of every row of scores, shape (n, K); labels are n integers from 0."""
        import numpy as np

        values: Array = np.logaddexp.reduce(z, axis=-1) - np.take_along_axis(z, _rows(labels), -1)[..., 0]
        return values

    def data_slopes(self, z: Array, labels: Array) -> Array:
        """Return the gradients of `data_values` in z, shape (n, K)."""
        slopes: Array = _softmax(z) - _indicator(z, labels)
        return slopes

    def gradient(self, w: Array, features: Array, labels: Array) -> Array:
        """Return the gradients of `value` for weights of shape (d, K), shape (n, d, K)."""
        slopes = self.data_slopes(features @ w, labels)
        gradients: Array = features[:, :, None] * slopes[:, None, :] + self.regularisation * w
        return gradients

    def value(self, w: Array, features: Array, labels: Array) -> Array:
        """Return the loss of every record for weights of shape (d, K)."""
        import numpy as np

        values: Array = self.data_values(features @ w, labels) + 0.5 * self.regularisation * np.sum(w * w)
        return values

    def _check_own(self) -> None:
        check("classes", self.classes, 2.0)

    @property
    def _steepest(self) -> float | None:
        return _ROOT_2 if self.radius is None else None

    @property
    def _reach_at_zero(self) -> float:
        return 0.0

    def _reach_on_ball(self, why: str) -> float:
        return up(_ROOT_2 * self.feature_bound * self._need("radius", why), 4.0)

    def _slope(self, reach: float) -> float:
        return _ROOT_2 / (1.0 + math.exp(-reach) / (self.classes - 1.0))

    def _height(self, reach: float) -> float:
        return up(reach + math.log(self.classes - 1.0 + math.exp(-reach)), 6.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        saturation = up(_ROOT_2 * power_of(2.0 * _ROOT_2, -exponent), 8.0) if exponent < 1.0 else 0.5
        return up(saturation * power_of(self.feature_bound, 1.0 + exponent), 12.0)


def _softmax(z: Array) -> Array:
    import numpy as np

    values: Array = np.exp(z - np.logaddexp.reduce(z, axis=-1, keepdims=True))
    return values


def _rows(labels: Array) -> Any:
    """Return the labels as a column of whole numbers."""
    return labels.astype(int)[..., None]


def _indicator(z: Array, labels: Array) -> Array:
    import numpy as np

    marked: Array = np.zeros_like(z)
    np.put_along_axis(marked, _rows(labels), 1.0, -1)
    return marked
