"""The joint privacy cost of a few uses of one record: the optimal allocation, over numpy arrays.

Times are counted in steps, costs in squares of mu_1 = Delta/(b sigma), sizes in units of one use of a full batch. A
`Stretch` is the run of steps from one use to the next, described at its own end: what it carries, the variance it
offers, and the product of its contractions. `cost` pools neighbours as in `dpcalc.numerics.isotonic`, from the right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.numerics.floats import UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

_STEEPEST = 100.0  # c = exp(-100) stands for all that is smaller, 0 included: that is on the safe side
_FLATTEST = 1e-290
_NEGLIGIBLE = 1e-290  # above what is lost to underflow in a cost


class Stretch(NamedTuple):
    """Steps in a row: the shift they carry to their end, their variance there, and the product of their factors."""

    carried: Any
    room: Any
    factor: Any


def rate_in_range(rate: float) -> float:
    """Return -ln c within the range that the formulas here take, never larger."""
    return min(rate, _STEEPEST) if rate > _FLATTEST else 0.0


def stretch(size: Any, steps: Any, rate: float = 0.0) -> Stretch:
    """Return a use of this size followed by ``steps`` >= 0 steps, its own included, each contracting by exp(-rate)."""
    import numpy as np

    steps = np.asarray(steps, float)
    if rate == 0.0:
        return Stretch(size, steps, 1.0)
    carried = size * np.exp(-np.minimum(rate * (steps - 1.0), 745.0))
    room = np.expm1(-2.0 * rate * steps) / np.expm1(-2.0 * rate)
    return Stretch(carried, room, np.exp(-np.minimum(rate * steps, 745.0)))


def periods(count: Any, steps: float, rate: float = 0.0) -> Stretch:
    """Return ``count`` >= 0 uses of size 1, each followed by ``steps`` >= 1 steps: one block in every allocation."""
    import numpy as np

    count = np.asarray(count, float)
    if rate == 0.0:
        return Stretch(count, count * steps, 1.0)
    whole = stretch(1.0, count * steps, rate)
    carried = np.exp(-rate * (steps - 1.0)) * np.expm1(-rate * steps * count) / np.expm1(-rate * steps)
    return Stretch(carried, whole.room, whole.factor)


def cost(*stretches: Stretch) -> Array:
    """Return the least sum of a_t^2/v_t that lets every use be spent by the end, rounded up.

    inf where something is carried and there is no step to spend it in. Two stretches that rounding joins or keeps apart
    wrongly differ so little that the cost changes by the square of the rounding.
    """
    import numpy as np

    first = np.broadcast_arrays(*(part for piece in stretches for part in piece))
    blocks = [[np.array(part, float) for part in first[3 * i : 3 * i + 3]] for i in range(len(stretches))]
    alive = [np.ones(first[0].shape, bool) for _ in stretches]
    for i in range(len(blocks) - 2, -1, -1):
        carried, room, factor = blocks[i]
        going = np.ones(first[0].shape, bool)
        for j in range(i + 1, len(blocks)):
            right, wide, shrink = blocks[j]
            joined = going & alive[j] & (carried * wide >= shrink * right * room)
            going &= joined | ~alive[j]
            alive[j] &= ~joined
            carried = np.where(joined, shrink * carried + right, carried)
            room = np.where(joined, shrink * shrink * room + wide, room)
            factor = np.where(joined, factor * shrink, factor)
        blocks[i] = [carried, room, factor]
    total = np.zeros(first[0].shape)
    with np.errstate(divide="ignore", over="ignore"):
        for (carried, room, _), kept in zip(blocks, alive, strict=True):
            # The order matters: the square of a small number may be 0.
            total += np.where(kept & (carried > 0.0), np.where(carried > 0.0, carried, 1.0) / room * carried, 0.0)
    # 64 units for the sums; exp(-x) is off by x units, x < 745.
    result: Array = total * (1.0 + 8192.0 * UNIT) + _NEGLIGIBLE
    return result
