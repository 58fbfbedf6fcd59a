"""What is known before a run whose records say little above its noise: from public numbers alone.

Easy tables teach much where others teach nothing, so that kappa alone does not tell which it will be. What is said is
what was seen on 18 tables, each with eight splits: shares that are right on new records, from the fifth to the
ninety-fifth part of all runs, and how many runs were no better than the commonest class.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.model.question import Question

FAINT = 3.0
"""The kappa below which it is left to the noise what is learned."""

HOPELESS = 1.0
"""The kappa below which a model keeps a fifth of what its scores could tell, and most are worse than a constant."""

WIDE = 10.0
"""The same where there are as many columns as records: they had nothing to tell without noise, either."""

RARE = 6.0
"""The kappa of the rarest class, 2 n_min mu/(2 sqrt d), below which it is told apart badly: see `docs/training.md`."""


_DEAREST = 100.0  # an epsilon beyond which none is advised


class _Seen(NamedTuple):
    """What runs came to up to a kappa: shares that are right, and runs of ten no better than a constant."""

    kappa: float
    low: float
    high: float
    useless: int


_SEEN = (_Seen(0.7, 0.32, 0.88, 6), _Seen(1.4, 0.37, 0.92, 5), _Seen(3.0, 0.46, 0.96, 4), _Seen(WIDE, 0.48, 0.98, 3))


class Signal(NamedTuple):
    """What is known of a run: kappa and mu as of `dpcalc.training.rule.full_batches`, the table, and the budget."""

    kappa: float
    mu: float
    records: int
    columns: int
    question: Question

    def warning(self, *, classifies: bool) -> str | None:
        """Return what is to be expected of a run, and what would help; None where the signal is strong enough.

        Args:
            classifies: whether classes are predicted, and no number.
        """
        wide = self.columns > self.records and self.kappa < WIDE
        if self.kappa >= FAINT and not wide:
            return None
        told = (
            "it is likely that nothing can be learned at this budget"
            if wide or self.kappa < HOPELESS
            else "at this budget it is left to the noise how much is learned, and it may be nothing"
        )
        seen = next(one for one in _SEEN if self.kappa <= one.kappa)
        known = (
            f"on 18 tables such models were right for {seen.low:g} to {seen.high:g} of new records, by how easy the "
            f"table is and by the noise, and {seen.useless} of 10 were no better than always answering the commonest "
            "class"
            if classifies
            else "such a model may be worse than always answering the middle of the range"
        )
        return (
            f"kappa, the signal to noise of {self.records} records in {self.columns} columns, is {self.kappa:.2g}: "
            f"{told}; {known}; {self._cure(self.kappa, WIDE if wide else FAINT)}; --regularisation 0.01 keeps scores "
            "small, but learns no more"
        )

    def warning_of_class(self, share: float) -> str | None:
        """Return what is to be expected where the rarest class is so rare; None where it is common enough."""
        kappa = 2.0 * share * self.kappa
        if kappa >= RARE:
            return None
        return (
            f"kappa of the rarest class, some {math.floor(share * self.records)} records, is {kappa:.2g}: below "
            f"{RARE:g}, models kept 0.4 to 0.8 of the AUC above 1/2 that a fit without privacy has; "
            f"{self._cure(kappa, RARE)}; answers at 1/2 may all be one class: choose a "
            "probability of the rarest (--threshold of predict and evaluate)"
        )

    def _cure(self, kappa: float, wanted: float) -> str:
        """Return what gives the kappa that is wanted, which is as mu/sqrt(d)."""
        from dpcalc.notions.gaussian import epsilon

        fewer = math.floor(self.columns * (kappa / wanted) ** 2) - 1
        ways = [f"{wanted / kappa:.2g} times as many records"]
        if self.question.log_delta is not None:
            more = epsilon(mu=self.mu * wanted / kappa, log_delta_target=self.question.log_delta)
            ways += [f"epsilon {math.ceil(10.0 * more) / 10.0:g}"] if more <= _DEAREST else []
        if fewer >= 1:
            ways.append(f"at most {fewer} columns")
        return f"{' or '.join(ways)} would make it {wanted:g}"
