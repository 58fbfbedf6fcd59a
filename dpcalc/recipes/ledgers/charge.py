"""Charging a release to a ledger file: one more entry, written before the release is made.

An accountant: what several fits about the same records cost together, and a budget that stops the next one.

The evaluation of a model file: what is reported, and what it is charged to.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import threading
from collections.abc import Iterator
from typing import Any, NoReturn, Self

from dpcalc.engine.ledgers.entries import of_one_adjacency
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import GateFailed, NotApplicable, SpecError
from dpcalc.files.output import write_bytes
from dpcalc.files.reading import read_document, reported
from dpcalc.inert import json_text
from dpcalc.model.parameter import check
from dpcalc.model.question import Ledger
from dpcalc.recipes.ledgers.ledger import VERSION, ledger_of, parse_ledger, with_asked
from dpcalc.render.notes import report
from dpcalc.report import Case, Report
from dpcalc.version import __version__

_OPTION = "--ledger"


def entry_of(epsilon: float) -> dict[str, float | str]:
    """Return the entry of a pure release under replace-one adjacency."""
    return {"epsilon": epsilon, "adjacency": "replace-one"}


def line_of(name: str, epsilon: float) -> str:
    """Return the entry as a line of a ledger in YAML."""
    fields = ", ".join(
        f"{key}: {value!r}" if key == "epsilon" else f"{key}: {value}" for key, value in entry_of(epsilon).items()
    )
    return f"{name}: {{{fields}}}"


def charge(path: str, name: str, epsilon: float) -> str:
    """Add a pure release to the ledger in a file, which is made where there is none, and return the entry's name.

    Processes that charge at the same time wait for each other, where the system has locks.

    Args:
        path: YAML or JSON.
        name: of the entry; a number is added to it where it is taken.
        epsilon: of the release, with delta = 0, under replace-one adjacency.

    Raises:
        SpecError: the file is no ledger, or an entry cannot be added to it; it is as it was.
    """
    with alone(path):
        return _charge(path, name, epsilon)


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """Wait until no other process charges a ledger of the same folder."""
    try:
        import fcntl
    except ImportError:  # Windows has none of these
        yield
        return
    with reported(path):
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _charge(path: str, name: str, epsilon: float) -> str:
    if not os.path.exists(path):
        if path.endswith(".json"):
            new = json_text({"dpcalc": VERSION, "adjacency": "replace-one", "entries": {name: entry_of(epsilon)}}, 2)
        else:
            new = f"dpcalc: {VERSION}\nadjacency: replace-one\nentries:\n  {line_of(name, epsilon)}"
        write_bytes((new + "\n").encode(), path, _OPTION, link=False)
        return name
    raw = read_document(path, "ledger")
    ledger, column = parse_ledger(path, raw)
    names = [entry.name for entry in ledger.entries]
    spellings = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
    free = next(spelling for spelling in spellings if spelling not in names)
    new_raw = _with_entry(path, raw, column, free, epsilon)
    if not _holds(path, new_raw, [*names, free]):
        raise SpecError(
            f"{path}: no entry can be added to the end of this file",
            f"write it under entries: by hand: {line_of(free, epsilon)}",
        )
    _refuse_mixed(path, parse_ledger(path, new_raw)[0])
    write_bytes(new_raw, path, _OPTION, link=False)
    return free


def _refuse_mixed(path: str, ledger: Ledger) -> None:
    """Refuse a ledger that could not be answered, as its adjacencies do not compose.

    Raises:
        SpecError: they do not.
    """
    try:
        of_one_adjacency(ledger)
    except SpecError:
        kept = {str(entry.adjacency or ledger.adjacency) for entry in ledger.entries[:-1]} | {str(ledger.adjacency)}
        others = " and ".join(sorted(kept - {"replace-one"}))
        raise SpecError(
            f"{path} is for adjacency {others}, and a private evaluation for replace-one: nothing composes both",
            "charge it to a ledger for replace-one, whose entries are all for replace-one",
        ) from None


def _with_entry(path: str, raw: bytes, column: int, name: str, epsilon: float) -> bytes:
    if path.endswith(".json"):
        body = json.loads(raw)
        body["entries"][name] = entry_of(epsilon)
        return (json_text(body, 2) + "\n").encode()
    end = b"" if raw.endswith(b"\n") else b"\n"
    return raw + end + (" " * (column - 1) + line_of(name, epsilon) + "\n").encode()


def _holds(path: str, raw: bytes, names: list[str]) -> bool:
    """Return whether a text is a ledger with these entries."""
    try:
        return [entry.name for entry in parse_ledger(path, raw)[0].entries] == names
    except SpecError:
        return False


Entry = dict[str, float | str]


class Accountant:
    """An account of releases about the same records, under replace-one adjacency, composed as `dpcalc.ledger` does.

    Every release enters as (epsilon, delta), which is all that is promised of it. How many there are and what each may
    spend must be fixed beforehand: it may not depend on what earlier ones released.

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
        entry: Entry = {"epsilon": epsilon, "adjacency": "replace-one", **({"delta": delta} if delta else {})}
        with self._lock:
            count = sum(1 for taken in self._entries if taken == name or taken.startswith(f"{name}-"))
            name = f"{name}-{count + 1}" if count else name
            after = {**self._entries, name: entry}
            if self.epsilon is not None:
                self._refuse_more(name, after, self.epsilon)
            self._entries = after

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
        return report("ledger", [_total(self.entries, asked)])

    def _refuse_more(self, name: str, entries: dict[str, Entry], budget: float) -> None:
        assert self.delta is not None
        hint = "nothing was trained; use a larger budget, or less epsilon and delta for each release"
        try:
            best = _total(entries, self.delta).best
        except NotApplicable as error:
            raise GateFailed(f"{name} does not fit into the budget: {error.message}", hint) from None
        assert best is not None
        assert best.epsilon is not None
        if not best.epsilon <= budget:
            cost = f"{len(entries)} releases cost epsilon = {best.epsilon:.6g} at delta = {self.delta:g}"
            raise GateFailed(f"with {name}, {cost}, and the budget is {budget:g}", hint)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise SpecError(
            "an accountant is of one process, and would lose what others spend",
            "use n_jobs=1; to store an estimator, set_params(accountant=None) first",
        )


def _total(entries: dict[str, Entry], delta: float) -> Case:
    return answer_ledger(*with_asked(*ledger_of(entries), delta=repr(delta)), [])


SCHEMA = "dpcalc.evaluation/1"
NAME = "evaluation"
"""Of the entry in a ledger."""

NOT_PRIVATE = "computed from the test rows without noise: private only if the test rows are public"


def _remarks(unreadable: int, records: int) -> Iterator[str]:
    """Yield what the test rows give reason to say: as little private as the metrics."""
    if unreadable:
        yield (
            f"{unreadable} of {records} targets are no finite number, and count as the middle of the target's range "
            "(counted in the test rows without noise)"
        )


def evaluate(
    model: str, data: Any, *, epsilon: float | None = None, error_bound: float | None = None,
    ledger: str | None = None, threshold: float | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return how good a model is on test rows, JSON types only; ``private`` says whether a guarantee covers it.

    Args:
        model: path of the model.
        data: as of `dpcalc.training.release.model.Model.scored`.
        epsilon: of a private evaluation; None for metrics without noise.
        error_bound: what errors of a regression are cut to.
        ledger: path of the ledger that a private evaluation is charged to.
        threshold: the probability above which a row counts as +1, fixed beforehand; None: 1/2.

    Raises:
        SpecError: a file cannot be read, or a number is out of range.
    """
    from dpcalc.training.release import metrics
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor

    loaded = load(model)
    predicting = predictor(loaded) if threshold is None else predictor(loaded).above(threshold)
    head = {
        "schema": SCHEMA, "dpcalc": __version__, "command": "evaluate",
        "task": "regression" if predicting.classes is None else "classification",
        "model": {name: loaded.privacy.get(name) for name in ("private", "epsilon", "delta", "bound")},
        **({} if threshold is None else {"threshold": threshold}),
    }  # fmt: skip
    if epsilon is None:
        measured = metrics.measured(predicting, data)
        names, classified = predicting.classes, measured.classified
        of_classes = {} if names is None or classified is None else classified.to_json(names)
        return {**head, "records": measured.records, "private": False, "why_not_private": NOT_PRIVATE,
                "metrics": measured.metrics, **of_classes, "unreadable": measured.unreadable,
                "remarks": list(_remarks(measured.unreadable, measured.records))}  # fmt: skip
    charged = [NAME]

    def charging() -> None:
        if ledger is not None:
            charged[0] = charge(ledger, NAME, epsilon)

    released = metrics.released(predicting, data, epsilon, error_bound=error_bound, charge=charging)
    return {
        **head, "records": released.records, "private": True, "epsilon": epsilon, "delta": 0.0,
        "adjacency": "replace_one", "noise": "discrete Laplace, sampled exactly", "noise_std": released.noise_std,
        "error_bound": released.error_bound, "confidence": metrics.CONFIDENCE,
        "metrics": {name: interval._asdict() for name, interval in released.metrics.items()},
        "population": None if released.population is None else list(released.population),
        "ledger": {"file": ledger, "entry": line_of(charged[0], epsilon)},
    }  # fmt: skip
