"""How a report is to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot
    from dpcalc.render.numbers import Digits


FULL = 2
"""How often ``-v`` is said to see everything."""


class Asked(NamedTuple):
    """How a report is to be written.

    Attributes:
        precision: significant digits in text; guarantees are rounded up.
        file: where it goes; its name says which form it has, where a kind has several.
        baseline: an earlier report of ``dpcalc check`` to compare with.
        typed: the words of the command line after ``dpcalc``; none where they are not known.
    """

    precision: int = 6
    file: str = ""
    baseline: Snapshot | None = None
    typed: tuple[str, ...] = ()

    @property
    def digits(self) -> Digits:
        """How numbers are written."""
        from dpcalc.render.numbers import Digits

        return Digits(self.precision)
