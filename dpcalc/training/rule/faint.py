"""Warnings before a run whose signal is weak against its noise, from public numbers alone.

At the same kappa, a model may learn much from an easy table and nothing from another. So a warning quotes the accuracy
seen on new records of 18 tables, each with eight splits: from the 5th to the 95th percentile of all runs, and the share
of runs that were no better than the commonest class.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.model.question import Question

FAINT = 3.0
"""The kappa below which chance decides what is learned."""

HOPELESS = 1.0
"""The kappa below which a model keeps a fifth of the information of its scores, and most are worse than a constant."""

WIDE = 10.0
"""The kappa below which tables with more columns than records are hopeless; those seen were so even without noise."""

RARE = 6.0
"""The kappa of the rarest class, 2 n_min mu/(2 sqrt d), below which it is predicted badly: see `docs/training.md`."""


_DEAREST = 100.0  # the largest epsilon that is advised


class _Seen(NamedTuple):
    """Results of runs up to a kappa: the range of accuracy, and how many of ten were no better than a constant."""

    kappa: float
    low: float
    high: float
    useless: int


_SEEN = (_Seen(0.7, 0.32, 0.88, 6), _Seen(1.4, 0.37, 0.92, 5), _Seen(3.0, 0.46, 0.96, 4), _Seen(WIDE, 0.48, 0.98, 3))


class Signal(NamedTuple):
    """The public numbers of a run: kappa and mu of `dpcalc.training.rule.full_batches`, the table, and the budget."""

    kappa: float
    mu: float
    records: int
    columns: int
    question: Question

    def warning(self, *, classifies: bool) -> str | None:
        """Return a warning of what to expect and what would help; None where the signal is strong enough.

        Args:
            classifies: whether classes are predicted, not numbers.
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
        """Return a warning for a rarest class of this share; None where it is common enough."""
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
        """Return what would give the wanted kappa, which is proportional to n mu/sqrt(d)."""
        from dpcalc.notions.gaussian import epsilon

        fewer = math.floor(self.columns * (kappa / wanted) ** 2) - 1
        ways = [f"{math.ceil(10.0 * wanted / kappa) / 10.0:g} times as many records"]
        if self.question.log_delta is not None:
            more = epsilon(mu=self.mu * wanted / kappa, log_delta_target=self.question.log_delta)
            ways += [f"epsilon {math.ceil(10.0 * more) / 10.0:g}"] if more <= _DEAREST else []
        if fewer >= 1:
            ways.append(f"at most {fewer} columns")
        return f"{' or '.join(ways)} would make it {wanted:g}"
