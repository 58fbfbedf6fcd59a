"""A ledger for a training loop: what was spent so far, what is left, and a file that survives the process."""

from __future__ import annotations

import json
import os
from typing import Any

from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import SpecError
from dpcalc.files.output import write_bytes
from dpcalc.files.reading import read_document
from dpcalc.inert import json_text
from dpcalc.model.numbers import parse_delta
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Adjacency
from dpcalc.model.question import Question
from dpcalc.recipes.ledgers.charge import LedgerFile, alone
from dpcalc.recipes.ledgers.ledger import VERSION, ledger_of, parse_ledger, with_asked

_MOST_STEPS = 10**12  # no more are looked for


class Ledger(LedgerFile):
    """What DP-SGD has spent, in phases of equal steps, saved before each; `dpcalc ledger FILE` reads the same file.

    Steps are charged before they are taken, so that a process that dies has spent no more than the file says. Rates,
    noise and the largest number of steps must not be chosen from what was released. A stop because of the budget looks
    at no data. After one that looks at results, as early stopping, quote what the planned steps cost (`epsilon_after`),
    not what was taken.

    `dpcalc.train` and the estimators take it as well, under replace-one adjacency, and charge their fits to it.

    Args:
        path: of a JSON file; what is in it was spent.
        delta: in (0, 1), at which epsilon is asked.
        adjacency: as of `dpcalc.dp_sgd`.
        sampling: how batches are drawn; a sample rate describes Poisson batches alone.
        epsilon: budget of all that is charged; None: that of the file, or none.

    Raises:
        SpecError: the file is no ledger of this adjacency, or a value is out of range.
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
        """Return the budget of the file where none is given here, at the delta given here."""
        if self.adjacency != Adjacency.REPLACE_ONE:
            raise SpecError(f"the ledger is for {self.adjacency}, and fits are for replace-one", "use another ledger")
        epsilon = stated.epsilon if self._most is None else self._most
        return Question(epsilon, self.delta, parse_delta(repr(self.delta))[1])

    @property
    def epsilon(self) -> float:
        """What all steps in the file cost, those of other processes among them."""
        return self._total(self._read())

    def spend(self, steps: int = 1, *, noise_multiplier: float, sample_rate: float) -> None:
        """Charge so many steps, and save the ledger; other processes that charge the same file are waited for.

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
        """Return what so many further steps would bring epsilon to."""
        return self._total(self._with(self._read(), steps, noise_multiplier, sample_rate))

    def remaining(self, epsilon: float, *, noise_multiplier: float, sample_rate: float) -> int:
        """Return how many such steps still keep epsilon; 0 where it is spent."""
        step = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate}
        low, high = 0, 1
        while high < _MOST_STEPS and self.epsilon_after(high, **step) <= epsilon:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.epsilon_after(middle, **step) <= epsilon else (low, middle)
        return low

    def stop_before(self, epsilon: float, *, noise_multiplier: float, sample_rate: float, steps: int = 1) -> bool:
        """Return whether so many further steps would exceed epsilon: then stop before them."""
        return not self.epsilon_after(steps, noise_multiplier=noise_multiplier, sample_rate=sample_rate) <= epsilon

    def _read(self) -> dict[str, dict[str, Any]]:
        body = self._body()
        if body and body.get("adjacency") != self.adjacency:
            raise SpecError(
                f"{self.path} is for adjacency {body.get('adjacency')}, and {self.adjacency} is asked",
                "use the same adjacency, or another file",
            )
        entries: dict[str, dict[str, Any]] = body.get("entries", {})
        return entries

    def _body(self) -> dict[str, Any]:
        """Return what is in the file; nothing where there is none."""
        if not os.path.exists(self.path):
            return {}
        raw = read_document(self.path, "ledger")
        parse_ledger(self.path, raw, empty=True)  # refuses what is no ledger
        body: dict[str, Any] = json.loads(raw)
        return body

    def _with(
        self, entries: dict[str, dict[str, Any]], steps: int, noise_multiplier: float, sample_rate: float
    ) -> dict[str, dict[str, Any]]:
        """Return the entries with further steps, among those of their kind."""
        kind = {
            "algorithm": "dp-sgd", "sampling": self.sampling, "sample_rate": check("sample_rate", sample_rate),
            "noise_multiplier": check("noise_multiplier", noise_multiplier),
        }  # fmt: skip
        count = int(check("steps", steps))
        for name, entry in entries.items():
            if {key: value for key, value in entry.items() if key != "steps"} == kind:
                return {**entries, name: {**kind, "steps": entry["steps"] + count}}
        return {**entries, f"phase-{len(entries) + 1}": {**kind, "steps": count}}

    def _total(self, entries: dict[str, dict[str, Any]]) -> float:
        if not entries:
            return 0.0
        asked = with_asked(*ledger_of(entries), delta=repr(self.delta), adjacency=self.adjacency)
        best = answer_ledger(*asked, []).best
        assert best is not None
        assert best.epsilon is not None
        return best.epsilon
