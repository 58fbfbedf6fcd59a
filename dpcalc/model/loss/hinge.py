"""The hinge loss and its powers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, ScalarDescent
from dpcalc.model.loss.powers import PowerLoss, to_slopes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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
