"""From scores to log-odds: clipped slopes push scores apart, and a public temperature corrects that on average.

Let a score s occur with both classes, +1 with probability p. A fit with slopes of at most c < 1/2 converges to
p min(sg(-s), c) = (1 - p) min(sg(s), c): for c = 0.1 it predicts 0.933 where p = 0.6, however many records there are.
For rows with a rotationally symmetric distribution, the minimiser of the clipped risk is a multiple of the true
weights. So one number, the temperature, corrects a linear model. It depends on how predictable the classes are, which
is not public. From kappa = 10 on, noisy counts of the records correct it: `dpcalc.training.release.calibration`.

The constants were chosen on about seventy tables; `docs/training.md` reports the quality of the probabilities.
"""

from __future__ import annotations

import math
from typing import NamedTuple

COUNTED_FROM = 10.0
"""The kappa from which records are counted: below it, noise drowns the counts."""

SIZES = 3
"""The number of sizes of a score; right and wrong predictions are counted at each."""

SUMS, MORE_SUMS = 4, 8
"""The number of noisy sums of these counts, whose mean is used; `MORE_SUMS` for kappa in the range `MORE`.

Each sum adds 0.4 % of noise to all others. On held-out tables, eight sums instead of four lower the calibration error
by 0.006 and the log loss by 0.003; twelve lower them no further, and cost accuracy.
"""

MORE = 15.0, 50.0
"""The kappas with more sums: below them accuracy would fall by 0.001; above them counts are precise enough."""

CLASSES_FROM, CLASS_SUMS = 50.0, 4
"""The kappa from which several classes get a bias each, and the number of noisy sums for that.

On held-out tables at kappa >= 50 biases lower the log loss from 0.892 to 0.878, and 25 pairs of a table and an
epsilon, not 70 of 604, lose more than 0.02 to the base rate or to the scores as they are. Two classes would gain
0.002, and below 50 noise takes most of the gain.
"""

_STEEPEST, _ROOT = 6.0, 3.0
"""The temperature is 6 d^(-1/3), and at least 1: with many columns the scores of a row are smaller."""

_FEW = 18.0
"""The n mu/2 below which noise on the weights pushes scores apart as well."""


class Calibrating(NamedTuple):
    """How scores become log-odds.

    Attributes:
        temperature: scores are divided by it; a public number, or None where scores stay as they are.
        sums: the number of noisy sums of counts that correct it after the descent; 0 for no correction.
        class_sums: the number of noisy sums, after those, for a bias of each of several classes; 0 for no biases.
    """

    temperature: float | None = None
    sums: int = 0
    class_sums: int = 0

    @property
    def steps(self) -> int:
        """The number of accounted steps that are such sums."""
        return self.sums + self.class_sums

    def entries(self, classes: int) -> int:
        """The number of entries of these sums together."""
        return 2 * SIZES * self.sums + 2 * classes * self.class_sums


def calibrating(records: int, mu: float, columns: int, classes: int, kappa: float, biased: bool = False) -> Calibrating:
    """Return how the scores of a clipped classifier become log-odds, from public numbers.

    Args:
        records, mu, columns, kappa: as of `dpcalc.training.rule.full_batches`.
        classes: K, 2 for one score.
        biased: whether classes may have biases.

    >>> calibrating(455, 0.27, 31, 2, 11.0)
    Calibrating(temperature=1.99, sums=4, class_sums=0)
    """
    steepness = max(1.0, _STEEPEST * columns ** (-1.0 / _ROOT) * math.sqrt(2.0 / classes))
    few = _FEW / max(0.5 * records * mu, 1e-9)
    sums = (MORE_SUMS if MORE[0] <= kappa < MORE[1] else SUMS) if kappa >= COUNTED_FROM else 0
    class_sums = CLASS_SUMS if biased and kappa >= CLASSES_FROM else 0
    return Calibrating(float(f"{steepness * math.hypot(1.0, few):.4g}"), sums, class_sums)
