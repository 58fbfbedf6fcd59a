"""The settings of DP-SGD: steps on randomly drawn batches, and epochs of such batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.model.quantities import Adjacency
from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.floats import down, up
from dpcalc.theorems.setting import Setting

if TYPE_CHECKING:
    from dpcalc.model.phases import Phases

EPOCHS_OF_BATCHES = ("sampling", "adjacency", "records", "batch_size", "steps", "noise_multiplier")


class SampledSteps(Setting):
    """Steps on batches drawn at random."""

    def kinds(self, most: int) -> list[tuple[float, float, int]]:
        """Return the rate, the clipping norm over the noise, rounded up, and the number of steps of every phase.

        Of more than so many kinds alike ones have the worst of each.
        """
        phases: Phases = self.known["schedule"]
        factor = self.known.get("schedule_factor", 1.0)
        return [
            (rate, up(1.0 / down(multiplier * factor)), steps)
            for rate, multiplier, steps in phases.kinds(most)
            if steps
        ]

    def rates_differ(self, most: int) -> bool:
        """Return whether there are more kinds of steps than so many: steps may then count at a larger rate."""
        return len(self.known["schedule"]) > most

    @property
    def cap(self) -> int | None:
        """The largest size of a batch; None without a limit."""
        most: int | None = self.known.get("max_batch_size")
        return most

    @property
    def mu(self) -> float:
        """The clipping norm over the standard deviation of the noise, rounded up."""
        return up(1.0 / self.noise_multiplier)


class EpochsOfBatches(SampledSteps):
    """Epochs in which a record is used in a fixed number of random steps, usually one."""

    uses: int = 1

    @property
    def bins(self) -> int:
        """The number of steps of an epoch."""
        return -(-self.uses * self.records // self.batch_size)

    @property
    def sections(self) -> list[tuple[int, int]]:
        """(size, count) of the sections of an epoch, in each of which a record is in one step.

        A uniform choice of steps of an epoch is one step from every section, for uniformly drawn sections.
        """
        size, larger = divmod(self.bins, self.uses)
        return [(bins, count) for bins, count in ((size + 1, larger), (size, self.uses - larger)) if count]

    @property
    def passes(self) -> int:
        """The number of epochs; a last, shorter one counts as whole."""
        return -(-self.steps // self.bins)

    @property
    def public(self) -> Gdp:
        """The guarantee with the steps of every record public."""
        return Gdp(composed_mu(self.adjacency, self.noise_multiplier, self.uses * self.passes))


def composed_mu(adjacency: Adjacency, noise_multiplier: float, uses: int) -> float:
    """Return mu of ``uses`` Gaussian mechanisms, rounded up: a replaced record moves a sum by twice the clipping
    norm."""
    apart = 2.0 if adjacency == Adjacency.REPLACE_ONE else 1.0
    return up(apart * math.sqrt(uses) / noise_multiplier, 4.0)
