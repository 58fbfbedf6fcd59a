"""The columns of a schedule: numbers by name, one per step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files.place import FileError, Place

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ALIASES = {
    "eta": "step_size",
    "sigma": "noise_std",
    "c": "contraction",
    "s": "shift",
    "a": "spend",
    "v": "laplace_scale",
    "b": "batch_size",
}

REPEAT = "repeat"
"""The column of a CSV file that says for how many steps a row stands."""


class Columns(NamedTuple):
    """The names that a schedule may have, and those that it must have."""

    allowed: Sequence[str]
    required: Sequence[str] = ()

    def canonical(self, place: Place, names: Sequence[str], extra: tuple[str, ...] = ()) -> list[str]:
        """Return the names of the columns at a place of a file, aliases resolved; ``extra`` ones are allowed as well.

        Raises:
            SpecError: one is unknown or there twice, a required one is missing, or there is none.
        """
        allowed = (*self.allowed, *extra)
        result: list[str] = []
        for number, typed in enumerate(names, start=1):
            name = typed.strip().lower().replace("-", "_")
            name = name if name in allowed else ALIASES.get(name, name)
            if name not in allowed:
                raise _unknown(place, number, typed, name, allowed)
            if name in result:
                raise place.error(f"column {name} is there twice", "keep one of the two")
            result.append(name)
        for name in self.required:
            if name not in result:
                raise place.error(f"column {name} is missing", "columns found: " + (", ".join(result) or "none"))
        if not set(result).difference(extra):
            raise place.error("there are no columns", "columns may be " + ", ".join(self.allowed))
        return result


def _unknown(place: Place, number: int, typed: str, name: str, allowed: Sequence[str]) -> FileError:
    import difflib

    near = difflib.get_close_matches(name[:40], allowed, n=1)
    hint = f"did you mean {near[0]}?" if near else "columns may be " + ", ".join(allowed)
    discreet = f"column {number} has a name that is unknown; columns may be " + ", ".join(allowed)
    return place.error(f"unknown column {typed[:40]!r}", hint, discreet=discreet)


def checked(shown: str, table: dict[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]]:
    """Return the columns of the file ``shown``, contiguous and read-only.

    Raises:
        SpecError: their lengths differ or are 0, or a value is not finite.
    """
    import numpy as np

    lengths = {name: len(column) for name, column in table.items()}
    if len(set(lengths.values())) > 1:
        raise SpecError(f"{shown}: columns differ in length: {lengths}", "every column needs one value per step")
    if 0 in lengths.values():
        raise SpecError(f"{shown} has no steps", "add at least one row")
    for name, column in table.items():
        array = np.ascontiguousarray(column)
        if not np.isfinite(array).all():
            step = int(np.isfinite(array).argmin())
            raise SpecError(f"{shown}: {name} of step {step + 1} is {array[step]}", "every value must be finite")
        array.setflags(write=False)
        table[name] = array
    return table
