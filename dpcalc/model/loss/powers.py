"""Powers q in [1, 2] of how far a record is from costing nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcalc.model.loss.base import Loss, check, power_of
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]


class PowerLoss(Loss):
    """max(0, excess)^q, where the excess is linear in z but for a corner at most.

    The gradient is Hoelder of exponent q - 1 with the constant q B^q, times 2^(2-q) where the excess has a corner.

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
        """How far the reach may go at no cost."""
        return 0.0

    @property
    def _spread(self) -> float:
        """How much faster the gradient changes across a corner than on one side of it."""
        return 1.0

    def _slope(self, reach: float) -> float:
        return self.power * up(power_of(max(0.0, up(reach - self._free)), self.power - 1.0), 4.0)

    def _height(self, reach: float) -> float:
        if reach <= self._free:
            return 0.0
        return up(power_of(up(reach - self._free), self.power), 6.0)

    def _hoelder_constant_of_data(self, exponent: float) -> float:
        self._refuse_other(exponent)
        return up(self.power * self._spread * up(power_of(self.feature_bound, self.power), 6.0), 8.0)


def to_slopes(excess: Array, power: float) -> None:
    """Overwrite every excess with q max(0, excess)^(q-1), and with 0 where it is not above 0."""
    import numpy as np

    if power == 1.0:
        np.greater(excess, 0.0, out=excess)
        return
    np.maximum(excess, 0.0, out=excess)
    if power != 2.0:
        np.power(excess, power - 1.0, out=excess)
    np.multiply(excess, power, out=excess)
