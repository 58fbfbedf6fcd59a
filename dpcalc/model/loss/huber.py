"""Huber's loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, Loss, ScalarDescent, check, power_of
from dpcalc.numerics.floats import up

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
