"""What numpy does at a higher price: `numpy.unique` imports the masked arrays, a sixth of what numpy itself takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scalar = TypeVar("Scalar", bound=np.generic)


def distinct(*parts: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of the parts, rising and without repetitions; none is nan.

    >>> import numpy as np
    >>> distinct(np.array([3, 1]), np.array([1, 2])).tolist()
    [1, 2, 3]
    """
    import numpy as np

    values = np.sort(np.concatenate(parts))
    kept: NDArray[Scalar] = values[np.append(True, values[1:] != values[:-1])[: len(values)]]
    return kept
