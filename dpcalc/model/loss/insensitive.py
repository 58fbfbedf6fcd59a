"""The epsilon-insensitive loss of support vector regression, and its powers."""

from __future__ import annotations

from typing import ClassVar

from dpcalc.model.loss.absolute import Absolute
from dpcalc.model.loss.base import check


class Insensitive(Absolute):
    """max(0, |y - z| - tube)^q: residuals within the tube cost nothing.

    Attributes:
        tube: half the width of the free tube, >= 0.
    """

    name: ClassVar[str] = "insensitive"

    tube: float = 0.0

    @property
    def gradient_at_zero(self) -> float:
        """As `Loss.gradient_at_zero`: 0 where every label lies in the tube."""
        return 0.0 if self._reach_at_zero < self.tube else super().gradient_at_zero

    def _check_own(self) -> None:
        super()._check_own()
        check("tube", self.tube, 0.0)

    @property
    def _free(self) -> float:
        return self.tube
