"""The logistic loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from dpcalc.model.loss.base import ArrayDescent, Loss, ScalarDescent, ScaledDescent, power_of
from dpcalc.numerics.floats import up
from dpcalc.numerics.roots import least

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

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
