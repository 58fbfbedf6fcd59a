"""The absolute loss and its powers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, ScalarDescent
from dpcalc.model.loss.powers import PowerLoss, to_slopes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


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
