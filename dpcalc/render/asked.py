"""Options of writing a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot
    from dpcalc.render.numbers import Digits


FULL = 2
"""The number of ``-v`` that shows everything."""


class Asked(NamedTuple):
    """Options of writing a report.

    Attributes:
        precision: significant digits in text; guarantees are rounded up.
        file: its path; the suffix chooses the form if a kind has several.
        baseline: an earlier report of ``dpcalc check`` to compare with.
        typed: the words of the command line after ``dpcalc``, if known.
    """

    precision: int = 6
    file: str = ""
    baseline: Snapshot | None = None
    typed: tuple[str, ...] = ()

    @property
    def digits(self) -> Digits:
        """The format of numbers."""
        from dpcalc.render.numbers import Digits

        return Digits(self.precision)
