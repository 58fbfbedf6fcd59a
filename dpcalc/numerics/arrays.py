"""numpy, imported when it is first used; and what numpy does at a higher price.

A question that needs no arrays does not wait for numpy, which takes longer to import than most answers take. Modules
that compute with arrays import ``np`` from here, and need no import in each function. `numpy.unique` imports the masked
arrays, a sixth of what numpy itself takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["Array", "Booleans", "Integers", "distinct", "np"]

if TYPE_CHECKING:
    from typing import TypeVar

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Booleans = NDArray[np.bool_]
    Integers = NDArray[np.int64]
    Scalar = TypeVar("Scalar", bound=np.generic)
else:
    Array = Booleans = Integers = Any

    class _Numpy:
        def __getattr__(self, name: str) -> Any:
            import numpy

            if not self.__dict__:
                numpy.empty(1 << 21)  # glibc keeps freed memory for later arrays once one of 16 MiB has been freed
            value = self.__dict__[name] = getattr(numpy, name)
            return value

    np = _Numpy()


def distinct(*parts: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the values of the parts, rising and without repetitions; none is nan.

    >>> import numpy as np
    >>> distinct(np.array([3, 1]), np.array([1, 2])).tolist()
    [1, 2, 3]
    """
    values = np.sort(np.concatenate(parts))
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]
