"""From scores to log-odds: slopes that are clipped push scores apart, and a public temperature undoes that on average.

Where both classes are there at a score, a fit with slopes of at most c < 1/2 settles where p min(sg(-s), c) =
(1 - p) min(sg(s), c): a true chance of 0.6 is reported as 0.933 for c = 0.1, however many records there are. For rows
whose law is the same in all directions the clipped risk is least at a multiple of the true weights, so that one number,
the temperature, is what a linear model is wrong by. How large it is depends on how predictable the classes are, which
is not public. From kappa = 10 on, noisy counts of the records correct it: `dpcalc.training.release.calibration`.

The constants were chosen on some seventy tables: `docs/training.md` says how good the probabilities are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

COUNTED_FROM = 10.0
"""The kappa from which records are counted: below it, noise drowns the counts."""

SIZES = 3
"""How many sizes of a score are told apart: right and wrong answers are counted at each."""

SUMS, MORE_SUMS = 4, 8
"""How many noisy sums there are of these counts, of which the mean is used: the more where kappa is in `MORE`.

Each costs 0.4 % more noise in all others. On tables of which none was chosen on, eight in place of four take 0.006 off
the calibration error and 0.003 off the log loss; twelve take no more, and cost accuracy.
"""

MORE = 15.0, 50.0
"""The kappas where there are more sums: below, accuracy falls by 0.001; above, counts are precise enough."""

_STEEPEST, _ROOT = 6.0, 3.0
"""The temperature is 6 d^(-1/3), and at least 1: with many columns the scores of a row are smaller."""

_FEW = 18.0
"""The n mu/2 below which noise on the weights pushes scores apart as well."""


class Calibrating(NamedTuple):
    """How scores become log-odds.

    Attributes:
        temperature: what scores are divided by; a public number, or None where they stay what they are.
        sums: how many noisy sums of counts correct it after the descent; 0 where nothing is counted.
    """

    temperature: float | None = None
    sums: int = 0

    @property
    def entries(self) -> int:
        """How many numbers these sums have together."""
        return 2 * SIZES * self.sums


def calibrating(records: int, mu: float, columns: int, classes: int, kappa: float) -> Calibrating:
    """Return how the scores of a clipped classifier become log-odds, by public numbers.

    Args:
        records, mu, columns, kappa: as of `dpcalc.training.rule.full_batches`.
        classes: K, 2 for one score.

    >>> calibrating(455, 0.27, 31, 2, 11.0)
    Calibrating(temperature=1.99, sums=4)
    """
    steepness = max(1.0, _STEEPEST * columns ** (-1.0 / _ROOT) * math.sqrt(2.0 / classes))
    few = _FEW / max(0.5 * records * mu, 1e-9)
    sums = (MORE_SUMS if MORE[0] <= kappa < MORE[1] else SUMS) if kappa >= COUNTED_FROM else 0
    return Calibrating(float(f"{steepness * math.hypot(1.0, few):.4g}"), sums)
