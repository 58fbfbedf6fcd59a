"""A bound, and the parameter of the run that is solved for."""

from __future__ import annotations

import functools

from dpcalc.engine.evaluate import COARSE, ROUGH, WIDE, Application, guarantee_of
from dpcalc.engine.solving.search import DIRECTIONS, Direction
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Guarantee, Profile
from dpcalc.theorems.record import Theorem

_THROUGH = {
    "lipschitz": "sensitivity",
    "noise_std": "scale",
    "laplace_scale": "scale",
    "window": "index",
    "epochs": "steps",
}
"""A parameter -> the parameter of a theorem through which it acts."""


class Problem(Application):
    """A bound, and the parameter of the run to solve for so that the bound meets the budget.

    Attributes:
        unknown: the parameter.
        excess: value of the unknown -> by how much it misses the budget; each value is evaluated once.
        guarantee_at: value of the unknown -> the bound's guarantee.
    """

    def __init__(self, bound: Theorem, run: Run, question: Question, unknown: str) -> None:
        super().__init__(bound, run, question)
        self.unknown = unknown
        self.excess = functools.cache(self._excess)
        self.guarantee_at = functools.lru_cache(maxsize=4)(self._guarantee_at)

    def _excess(self, value: float) -> float:
        """Return by how much a value of the unknown misses the budget; <= 0 where it meets it."""
        guarantee = self.guarantee_at(value)
        if self.exact:
            return guarantee.sign(*self.budget)  # the search asks for no more than that
        return guarantee.excess(*self.budget)

    @property
    def direction(self) -> Direction:
        """How privacy moves with the unknown, and the range searched."""
        return DIRECTIONS[self.unknown]

    @property
    def exact(self) -> bool:
        """Whether a value found by the search needs no correction: an integer does not."""
        return self.direction.integer

    @property
    def width(self) -> int:
        """The accuracy of a search over this bound, in representable numbers."""
        if self.bound.slow:
            return ROUGH if self.unmet else COARSE
        if self.question.targets:  # a curve is asked at many epsilons each time
            return 4 if self.bound.gives is Gdp else COARSE
        return 4 if self.bound.gives in (Gdp, Profile) else WIDE

    def _guarantee_at(self, value: float) -> Guarantee:
        """Return the bound's guarantee for a value of the unknown."""
        changed = self.run.replacing(**{self.unknown: int(value) if self.direction.integer else value})
        return guarantee_of(self.bound, changed, self.question.orders)

    @property
    def takes(self) -> bool:
        """Whether the bound takes the unknown, or a parameter through which it acts."""
        parameters = self.bound.parameters
        return self.unknown in parameters or _THROUGH.get(self.unknown) in parameters
