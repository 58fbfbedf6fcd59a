"""Least squares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, Loss, ScalarDescent
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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
