"""An accountant: what several fits about the same records cost together, and a budget that stops the next one."""

from __future__ import annotations

import threading
from typing import Any, NoReturn, Self

from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import SpecError
from dpcalc.model.parameter import check
from dpcalc.model.question import Ledger, Question
from dpcalc.notes import Charged
from dpcalc.recipes.ledgers.charge import charged_of, entry_of, within_budget
from dpcalc.recipes.ledgers.ledger import ledger_of, with_asked
from dpcalc.render.notes import report
from dpcalc.report import Report
from dpcalc.training.rule.account import Release

Entry = dict[str, float | str]


class Accountant:
    """An account of releases about the same records, under replace-one adjacency, composed as `dpcalc.ledger` does.

    Fits enter as what is proved of them, other releases as (epsilon, delta). How many there are and what each may spend
    must be fixed beforehand: it may not depend on what earlier ones released.

    Copies are the same accountant, so that the copies of an estimator that scikit-learn makes share one account.

    Args:
        epsilon: budget of all releases together; without it nothing is refused.
        delta: of all releases together, above the sum of their deltas.

    Raises:
        dpcalc.SpecError: epsilon is given without delta, or one of the two is out of range.

    >>> account = Accountant(epsilon=1.5, delta=1e-4)
    >>> account.charge("model", epsilon=1.0, delta=1e-6)
    >>> round(account.report().cases[0].best.epsilon, 4)
    0.9999
    """

    def __init__(self, epsilon: float | None = None, delta: float | None = None) -> None:
        if epsilon is not None and delta is None:
            raise SpecError("a budget of epsilon alone", "give delta too, above the sum of the deltas of the releases")
        self.epsilon = None if epsilon is None else float(check("epsilon", epsilon))
        self.delta = None if delta is None else float(check("delta", delta))
        self._entries: dict[str, Entry] = {}
        self._lock = threading.RLock()

    @property
    def entries(self) -> dict[str, Entry]:
        """The releases by name, as the entries of a ledger."""
        with self._lock:
            return {name: dict(entry) for name, entry in self._entries.items()}

    def charge(self, name: str, *, epsilon: float, delta: float = 0.0) -> None:
        """Add a release, before it is made.

        Args:
            name: what is released; a number is added to it where it is taken.
            epsilon, delta: what is promised of it.

        Raises:
            dpcalc.GateFailed: all together would exceed the budget; nothing is added.
            dpcalc.SpecError: epsilon or delta is out of range.
        """
        self.take(Release(name, epsilon, delta))

    def take(self, *releases: Release) -> Charged:
        """Add releases as training describes them, which may be near what is Gaussian private, before they are made.

        Raises:
            dpcalc.GateFailed, dpcalc.SpecError: as `charge`.
        """
        with self._lock:
            after, names = dict(self._entries), []
            for release in releases:
                count = sum(1 for taken in after if taken == release.name or taken.startswith(f"{release.name}-"))
                names.append(f"{release.name}-{count + 1}" if count else release.name)
                after[names[-1]] = entry_of(release)
            ledger, question = _asked(after, self.epsilon, self.delta)
            case = within_budget("the accountant", " and ".join(names), ledger, question)
            self._entries = after
        return charged_of("the accountant", names, ledger, question, case)

    def finish(self) -> None:
        """Do nothing: what was charged in a process ends with it."""

    def report(self, delta: float | None = None) -> Report:
        """Return what all releases together cost, as `dpcalc.ledger`.

        Args:
            delta: at which epsilon is asked; None: that of the budget.

        Raises:
            dpcalc.SpecError: there is no release, or no delta.
            dpcalc.NotApplicable: the deltas of the releases come to more than delta.
        """
        asked = self.delta if delta is None else delta
        if asked is None:
            raise SpecError("the account has no delta to answer at", "give delta")
        return report("ledger", [answer_ledger(*_asked(self.entries, None, asked))])

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise SpecError(
            "an accountant is of one process, and would lose what others spend",
            "use n_jobs=1; to store an estimator, set_params(accountant=None) first",
        )


def _asked(entries: dict[str, Entry], epsilon: float | None, delta: float | None) -> tuple[Ledger, Question]:
    budget, at = (None if value is None else repr(value) for value in (epsilon, delta))
    return with_asked(*ledger_of(entries), epsilon=budget, delta=at)
