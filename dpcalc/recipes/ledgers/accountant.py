"""The total cost of several fits, or of the steps of a training loop, on the same records, and a budget for it."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from typing import Any, NoReturn, Self

from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.engine.solving.search import DIRECTIONS, extreme_integer
from dpcalc.errors import Infeasible, SpecError
from dpcalc.files import Fields
from dpcalc.files.output import write_bytes
from dpcalc.files.reading import read_document
from dpcalc.inert import json_text
from dpcalc.model.numbers import parse_delta
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Adjacency
from dpcalc.model.question import Ledger as LedgerEntries
from dpcalc.model.question import Question
from dpcalc.notes import Charged
from dpcalc.recipes.ledgers.charge import LedgerFile, alone, charged_of, entry_of, within_budget
from dpcalc.recipes.ledgers.ledger import VERSION, ledger_of, parse_ledger, with_asked
from dpcalc.render.notes import report
from dpcalc.report import Report
from dpcalc.training.rule.account import Release

_MOST_STEPS = 10**12  # the largest number of steps searched


class Ledger(LedgerFile):
    """The spending of DP-SGD in phases of equal steps, saved before each; `dpcalc ledger FILE` reads the same file.

    Steps are charged before they are taken, so a process that dies has spent no more than the file says. Rates,
    noise and the largest number of steps must not be chosen from what was released. A stop because of the budget looks
    at no data. After one that looks at results, as early stopping, quote what the planned steps cost (`epsilon_after`),
    not what was taken.

    `dpcalc.train` and the estimators take it as well, under replace-one adjacency, and charge their fits to it.

    Args:
        path: of a JSON file; its entries count as spent.
        delta: in (0, 1), at which epsilon is asked.
        adjacency: as of `dpcalc.dp_sgd`.
        sampling: how batches are drawn; a sample rate describes Poisson batches alone.
        epsilon: budget of all that is charged; None: that of the file, or none.

    Raises:
        SpecError: the file is not a ledger of this adjacency, or a value is out of range.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        delta: float,
        adjacency: str = "add-remove",
        sampling: str = "poisson",
        epsilon: float | None = None,
    ) -> None:
        super().__init__(os.fspath(path))
        if not self.path.endswith(".json"):
            raise SpecError(f"{self.path} is not named as JSON", "use a name that ends in .json")
        self.delta = float(check("delta", delta))
        self.adjacency, self.sampling = str(check("adjacency", adjacency)), str(check("sampling", sampling))
        self._most = None if epsilon is None else float(check("epsilon", epsilon))
        self._read()

    def _budget(self, stated: Question) -> Question:
        """Return the budget, by default that of the file, at the delta given here."""
        if self.adjacency != Adjacency.REPLACE_ONE:
            raise SpecError(f"the ledger is for {self.adjacency}, and fits are for replace-one", "use another ledger")
        epsilon = stated.epsilon if self._most is None else self._most
        return Question(epsilon, self.delta, parse_delta(repr(self.delta))[1])

    @property
    def epsilon(self) -> float:
        """The cost of all steps in the file, including those of other processes."""
        return self._total(self._read())

    def spend(self, steps: int = 1, *, noise_multiplier: float, sample_rate: float) -> None:
        """Charge so many steps and save the ledger, waiting for other processes that charge the same file.

        Args:
            steps: about to be taken, 1 or more.
            noise_multiplier: of each.
            sample_rate: with which a record is in a batch.

        Raises:
            SpecError: a value is out of range, or the file cannot be written; nothing is charged.
        """
        with alone(self.path):
            entries = self._with(self._read(), steps, noise_multiplier, sample_rate)
            body = {**self._body(), "dpcalc": VERSION, "adjacency": self.adjacency, "entries": entries}
            write_bytes((json_text(body, 2) + "\n").encode(), self.path, "Ledger", link=False)

    def epsilon_after(self, steps: int, *, noise_multiplier: float, sample_rate: float) -> float:
        """Return epsilon after so many further steps."""
        return self._total(self._with(self._read(), steps, noise_multiplier, sample_rate))

    def remaining(self, epsilon: float, *, noise_multiplier: float, sample_rate: float) -> int:
        """Return how many such steps still keep epsilon; 0 if it is spent."""
        step = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate}
        with contextlib.suppress(Infeasible):
            return extreme_integer(
                lambda count: self.epsilon_after(count, **step) - epsilon, DIRECTIONS["steps"], 1, _MOST_STEPS
            )
        return 0

    def stop_before(self, epsilon: float, *, noise_multiplier: float, sample_rate: float, steps: int = 1) -> bool:
        """Return whether so many further steps would exceed epsilon: then stop before them."""
        return not self.epsilon_after(steps, noise_multiplier=noise_multiplier, sample_rate=sample_rate) <= epsilon

    def _read(self) -> Mapping[str, Fields]:
        body = self._body()
        if body and body.get("adjacency") != self.adjacency:
            raise SpecError(
                f"{self.path} is for adjacency {body.get('adjacency')}, and {self.adjacency} is asked",
                "use the same adjacency, or another file",
            )
        entries: Mapping[str, Fields] = body.get("entries", {})
        return entries

    def _body(self) -> dict[str, Any]:
        """Return the content of the file; empty if there is none."""
        if not os.path.exists(self.path):
            return {}
        raw = read_document(self.path, "ledger")
        parse_ledger(self.path, raw, empty=True)  # refuses anything but a ledger
        body: dict[str, Any] = json.loads(raw)
        return body

    def _with(
        self, entries: Mapping[str, Fields], steps: int, noise_multiplier: float, sample_rate: float
    ) -> Mapping[str, Fields]:
        """Return the entries with further steps added to those of their kind."""
        kind = {
            "algorithm": "dp-sgd", "sampling": self.sampling, "sample_rate": check("sample_rate", sample_rate),
            "noise_multiplier": check("noise_multiplier", noise_multiplier),
        }  # fmt: skip
        count = int(check("steps", steps))
        for name, entry in entries.items():
            if {**kind, "steps": entry.get("steps")} == entry:
                return {**entries, name: {**kind, "steps": entry["steps"] + count}}
        return {**entries, f"phase-{len(entries) + 1}": {**kind, "steps": count}}

    def _total(self, entries: Mapping[str, Fields]) -> float:
        if not entries:
            return 0.0
        asked = with_asked(*ledger_of(entries), delta=repr(self.delta), adjacency=self.adjacency)
        best = answer_ledger(*asked, []).best
        assert best is not None
        assert best.epsilon is not None
        return best.epsilon


Entry = dict[str, float | str]


class Accountant:
    """An account of releases about the same records, under replace-one adjacency, composed as `dpcalc.ledger` does.

    Fits enter by what is proved of them, other releases by (epsilon, delta). Their number and what each may spend
    must be fixed beforehand, independently of earlier releases.

    Copies are the same accountant, so that scikit-learn's copies of an estimator share it.

    Args:
        epsilon: the budget of all releases together; without it nothing is refused.
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
            name: of the release; a number is added if it is taken.
            epsilon, delta: its guarantee.

        Raises:
            dpcalc.GateFailed: all together would exceed the budget; nothing is added.
            dpcalc.SpecError: epsilon or delta is out of range.
        """
        self.take(Release(name, epsilon, delta))

    def take(self, *releases: Release) -> Charged:
        """Add releases as training describes them, possibly near Gaussian private ones, before they are made.

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
        """Do nothing: this account ends with the process."""

    def report(self, delta: float | None = None) -> Report:
        """Return the cost of all releases together, as `dpcalc.ledger` does.

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


def _asked(entries: dict[str, Entry], epsilon: float | None, delta: float | None) -> tuple[LedgerEntries, Question]:
    budget, at = (None if value is None else repr(value) for value in (epsilon, delta))
    return with_asked(*ledger_of(entries), epsilon=budget, delta=at)
