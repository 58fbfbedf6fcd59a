"""The softmax loss of several classes, and its cap."""

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
_HALVINGS, _STEPS = 60, 60


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


def capped_slopes(z: Array, labels: Array, cap: float) -> Array:
    """Return the gradients in z of the capped softmax, the infimal convolution of the loss with ``cap`` times the norm.

    A slope q - e_y no longer than the cap stays. Else it is g = softmax(u) - e_y with u = z - s g, |g| = cap and
    s > 0. With c = C/|x| the gradient g x' of a record is at most C long, and it is that of a convex function of the
    weights, |x|^2/2-smooth. To shorten q - e_y without turning it is the gradient of no convex function.

    Args:
        z: scores, shape (n, K).
        labels: n whole numbers from 0.
        cap: c > 0.

    Returns:
        Rows no longer than the cap, shape (n, K).
    """
    import numpy as np

    marked = _indicator(z, labels)
    found: Array = _softmax(z) - marked
    long = np.linalg.norm(found, axis=1) > cap
    if not long.any():
        return found
    z, marked = z[long], marked[long]
    low, high = np.zeros(len(z)), np.ones(len(z))
    while (short := np.linalg.norm(_spread(z, marked, high), axis=1) > cap).any():
        high[short] *= 2.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = np.linalg.norm(_spread(z, marked, middle), axis=1) > cap
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    found[long] = _spread(z, marked, high)
    return found


def _spread(z: Array, marked: Array, s: Array) -> Array:
    """Return g = softmax(z - s g) - e_y for every row and its s.

    With q = g + e_y, ln q_j + s q_j = z_j + s e_yj - L. The sum of q falls with L and is convex: Newton's method comes
    from where it is at least 1 and stays on that side.
    """
    import numpy as np

    s = s[:, None]
    level = z + s * marked
    normaliser = level.max(axis=1, keepdims=True) - s
    for _ in range(_STEPS):
        q = _share(level - normaliser, s)
        excess = q.sum(axis=1, keepdims=True) - 1.0
        if (excess <= 1e-13).all():
            break
        normaliser = normaliser + np.maximum(excess, 0.0) / (q / (1.0 + s * q)).sum(axis=1, keepdims=True)
    spread: Array = q / q.sum(axis=1, keepdims=True) - marked
    return spread


def _share(x: Array, s: Array) -> Array:
    """Return q with ln q + s q = x, by the Wright omega function of x + ln s."""
    import numpy as np
    from scipy.special import wrightomega

    shares: Array = wrightomega(x + np.log(s)) / s
    return shares


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
