"""The softmax loss of several classes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import Loss, check, power_of
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_ROOT_2 = math.sqrt(2.0)


class Softmax(Loss):
    """ln(sum_j e^(z_j)) - z_y, for scores z = x W of K classes and a label y in 0..K-1. W has the Frobenius norm.

    The slope is q - e_y, q the softmax of z: at most sqrt(2) (1 - q_y) long, and as a function of z 1/2-Lipschitz, as
    the eigenvalues of diag q - q q' are at most 1/2. So the gradient is Hoelder of any exponent a in [0, 1], with the
    constant sqrt(2) (2 sqrt(2))^-a B^(1+a). The reach is how far another score may be above that of the label,
    sqrt(2) |z|.

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
        """Return the loss of every row of scores, shape (n, K); labels are n whole numbers from 0."""
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
