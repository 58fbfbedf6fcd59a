"""Charge releases to a ledger file before they are made, under a lock; a release beyond the budget is refused.

Evaluate a model file, and charge a private evaluation to a ledger.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from dpcalc.engine.ledgers.entries import of_one_adjacency
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import GateFailed, NotApplicable, SpecError
from dpcalc.files.output import write_bytes
from dpcalc.files.place import Place
from dpcalc.files.reading import read_document, reported
from dpcalc.inert import json_text
from dpcalc.model.quantities import Adjacency
from dpcalc.model.question import Ledger, Question
from dpcalc.notes import Charged
from dpcalc.recipes.ledgers.ledger import BEGUN, VERSION, parse_ledger
from dpcalc.render.notes import words_of
from dpcalc.report import Case
from dpcalc.training.rule.account import Release
from dpcalc.version import __version__

_OPTION = "--ledger"
_ADJACENCY = str(Adjacency.REPLACE_ONE)
"""The adjacency of every release charged here."""


def entry_of(release: Release, *, begun: bool = False) -> dict[str, float | str]:
    """Return the entry of a release under replace-one adjacency, by its mu and delta if they are known."""
    if release.mu is not None:
        known, delta = {"mu": release.mu}, release.distance
    else:
        known, delta = {"epsilon": release.epsilon}, release.delta
    return {
        **known,
        **({"delta": delta} if delta else {}),
        "adjacency": _ADJACENCY,
        **({"state": BEGUN} if begun else {}),
    }


def line_of(name: str, release: Release, *, begun: bool = False) -> str:
    """Return the entry as a line of a ledger in YAML."""
    fields = entry_of(release, begun=begun).items()
    return f"{name}: {{{', '.join(f'{key}: {value}' for key, value in fields)}}}"


class LedgerFile:
    """A ledger file to which releases are charged before they are made; it is created if missing.

    Only the caller ties it to a data set: it holds neither the records nor their hash, which would reveal them.

    Args:
        path: YAML or JSON. Its ``budget`` says how much all entries may cost together; without one nothing is refused.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._open: list[tuple[str, Release]] = []

    def take(self, *releases: Release) -> Charged:
        """Add all releases or none, and return what is left.

        Concurrent processes wait for each other, where the system has locks. The entry says that the
        release is begun until `finish` is called, also if the process is killed before.

        Raises:
            GateFailed: all entries together would exceed the budget; the file is as it was.
            SpecError: the file is no ledger for replace-one adjacency, or cannot be written; it is as it was.
        """
        with alone(self.path):
            raw, names = self._text(), []
            for release in releases:
                name, raw, ledger, question = self._held(raw, release)
                names.append(name)
            question = self._budget(question)
            case = within_budget(self.path, " and ".join(names), ledger, question, exact=_LONG.search(raw) is None)
            write_bytes(raw, self.path, _OPTION, link=False)
        self._open += zip(names, releases, strict=True)
        return charged_of(self.path, names, ledger, question, case)

    def finish(self) -> None:
        """Mark the entries charged here as released.

        Raises:
            SpecError: the file cannot be read or written.
        """
        if not self._open:
            return
        with alone(self.path):
            raw = read_document(self.path, "ledger")
            for name, release in self._open:
                raw = _finished(self.path, raw, name, release)
            write_bytes(raw, self.path, _OPTION, link=False)
        self._open.clear()

    @property
    def begun(self) -> bool:
        """Whether some charged release is not known to have been made."""
        return bool(self._open)

    def _budget(self, stated: Question) -> Question:
        """Return the budget, given the one that the file states."""
        return stated

    def _text(self) -> bytes:
        """Return the text of the file, or that of an empty ledger if there is none."""
        if os.path.exists(self.path):
            return read_document(self.path, "ledger")
        if self.path.endswith(".json"):
            return (json_text({"dpcalc": VERSION, "adjacency": _ADJACENCY}, 2) + "\n").encode()
        return f"dpcalc: {VERSION}\nadjacency: {_ADJACENCY}\n".encode()

    def _held(self, raw: bytes, release: Release) -> tuple[str, bytes, Ledger, Question]:
        """Return the name of the new entry, a text of the ledger with it, that ledger, and its budget."""
        path = self.path
        before, _ = parse_ledger(path, raw, empty=True)
        names = [entry.name for entry in before.entries]
        spellings = itertools.chain([release.name], (f"{release.name}-{n}" for n in itertools.count(2)))
        name = next(spelling for spelling in spellings if spelling not in names)
        longer = _longer(path, raw, before, name, release)
        ledger, question = _holding(path, longer, [*names, name], line_of(name, release))
        _refuse_mixed(path, before, ledger)
        return name, longer, ledger, question


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """Wait until no other process charges a ledger of the same folder."""
    try:
        import fcntl
    except ImportError:  # Windows has none of these
        yield
        return
    with reported(Place(path)):
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


# --- the text of a ledger ---------------------------------------------------------------------------------------------


def _longer(path: str, raw: bytes, before: Ledger, name: str, release: Release) -> bytes:
    """Return a text with one more entry at its end."""
    if path.endswith(".json"):
        body = json.loads(raw)
        body.setdefault("entries", {})[name] = entry_of(release, begun=True)
        return (json_text(body, 2) + "\n").encode()
    end = b"" if raw.endswith(b"\n") else b"\n"
    indent = _indent(raw) if before.entries else 2
    head = "" if before.entries else "entries:\n"
    return raw + end + f"{head}{' ' * indent}{line_of(name, release, begun=True)}\n".encode()


def _indent(raw: bytes) -> int:
    """Return how far entries are indented, by the first of them."""
    found = re.search(rb"^entries:[^\n]*\n(?:[ ]*(?:#[^\n]*)?\n)*([ ]*)", raw, re.M)
    return len(found[1]) if found else 2


def _finished(path: str, raw: bytes, name: str, release: Release) -> bytes:
    """Return the text with an entry no longer marked as begun; unchanged if the entry was edited."""
    if path.endswith(".json"):
        body = json.loads(raw)
        body["entries"].get(name, {}).pop("state", None)
        return (json_text(body, 2) + "\n").encode()
    begun, done = (f" {line_of(name, release, begun=state)}".encode() for state in (True, False))
    return raw.replace(begun, done) if raw.count(begun) == 1 else raw


def _holding(path: str, raw: bytes, names: list[str], line: str) -> tuple[Ledger, Question]:
    """Parse a text with a new entry.

    Raises:
        SpecError: it is not a ledger with these entries.
    """
    try:
        ledger, question = parse_ledger(path, raw)
        held = [entry.name for entry in ledger.entries] == names
    except SpecError:
        held = False
    if not held:
        raise SpecError(
            f"{path}: no entry can be added to the end of this file", f"write it under entries: by hand: {line}"
        )
    return ledger, question


def _refuse_mixed(path: str, before: Ledger, ledger: Ledger) -> None:
    """Refuse a ledger whose adjacencies do not compose.

    Raises:
        SpecError: they do not.
    """
    try:
        of_one_adjacency(ledger)
    except SpecError:
        kept = {str(entry.adjacency or before.adjacency) for entry in before.entries} | {str(before.adjacency)}
        others = " and ".join(sorted(kept - {_ADJACENCY}))
        raise SpecError(
            f"{path} is for adjacency {others}, and what is charged for {_ADJACENCY}: nothing composes both",
            f"charge it to a ledger for {_ADJACENCY}, whose entries are all for {_ADJACENCY}",
        ) from None


# --- the budget -------------------------------------------------------------------------------------------------------


def within_budget(owner: str, name: str, ledger: Ledger, question: Question, *, exact: bool = True) -> Case | None:
    """Return the answer of a ledger that keeps its budget; None if no theorem is needed or there is no budget.

    Args:
        owner: of the budget, for errors.
        name: of the last entry.
        ledger: with that entry.
        question: the budget; epsilon alone has a delta of 0.
        exact: whether every number is the shortest decimal of its double.

    Raises:
        GateFailed: it exceeds the budget.
    """
    if question.epsilon is None:
        return None
    hint = "nothing was released; use a larger budget, or less epsilon and delta for each release"
    case, why = None, "nothing composes the entries"
    try:
        case = answer_ledger(ledger, question)
    except NotApplicable as error:
        why = error.message
    if case is not None and not case.failed and _delta_kept(case, question):
        return case
    if exact and _adds_up(ledger, question):
        return None
    if case is None or case.best is None:
        raise GateFailed(f"{name} does not fit into the budget of {owner}: {why}", hint)
    reached = (
        "" if question.log_delta is None else f" cost epsilon = {case.best.value:.6g} at delta = {question.delta:g}"
    )
    count = sum(entry.times for entry in ledger.entries)
    releases = "release" if count == 1 else "releases"
    raise GateFailed(
        f"with {name}, {count} {releases}{reached or ' have a delta above 0'}, and the budget of {owner} is epsilon = "
        f"{question.epsilon:g}", hint,
    )  # fmt: skip


def _delta_kept(case: Case, question: Question) -> bool:
    """Return whether epsilon is kept at the budget's delta (default 0)."""
    best = case.best
    if best is None:
        return False
    if question.log_delta is None:
        return best.delta == 0.0
    return best.value <= question.safe_epsilon


def _adds_up(ledger: Ledger, question: Question) -> bool:
    """Return whether the epsilons and deltas of the entries add up to no more than the budget, in exact arithmetic.

    Rounded outwards, entries that take the budget to its last digit would seem to exceed it.
    """
    if ledger.group_size > 1 or question.epsilon is None:
        return False
    sums = [Fraction(0), Fraction(0)]
    for entry in ledger.entries:
        small = entry.given.get("log_delta") is not None and not entry.given["delta"] > 0.0
        if entry.command or entry.tuning is not None or entry.given.get("epsilon") is None or small:
            return False
        for place, key in enumerate(("epsilon", "delta")):
            sums[place] += entry.times * Fraction(repr(entry.given.get(key) or 0.0))
    budget = (question.epsilon, question.delta or 0.0)
    return all(total <= Fraction(repr(most)) for total, most in zip(sums, budget, strict=True))


_LONG = re.compile(rb"[0-9][0-9._]{15,}")
"""A number with more digits than a double holds: the shortest decimal of its double may be smaller."""


def charged_of(path: str, names: Sequence[str], ledger: Ledger, question: Question, case: Case | None) -> Charged:
    """Describe a charge: the cost of all entries, and what is left."""
    begun = [entry.name for entry in ledger.entries if entry.begun and entry.name not in names]
    if case is None and question.log_delta is not None and question.epsilon is None:
        with contextlib.suppress(NotApplicable):  # it is charged, and without a budget nothing else is asked
            case = answer_ledger(ledger, question)
    best = case.best if case is not None else None
    spent = best.value if best is not None and question.log_delta is not None else question.epsilon
    remaining = (case.ledger or {}).get("remaining") if case is not None else None
    if question.epsilon is not None and case is None:
        remaining = {"epsilon": 0.0}  # it was kept to the last digit
    return Charged(
        file=path, entry=names[0], entries=len(ledger.entries), spent=spent, epsilon=question.epsilon,
        delta=question.delta, group_size=ledger.group_size, remaining=remaining, begun=begun,
    )  # fmt: skip


SCHEMA = "dpcalc.evaluation/1"
NAME = "evaluation"
"""The name of the entry in a ledger."""

NOT_PRIVATE = "computed from the test rows without noise: private only if the test rows are public"


def _remarks(unreadable: int, records: int) -> Iterator[str]:
    """Yield remarks on the test rows, which are no more private than the metrics."""
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
    predicting = predictor(loaded).above(threshold)
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
    account, release = LedgerFile(ledger) if ledger is not None else None, Release(NAME, epsilon)
    charges: list[Charged] = []

    def charging() -> None:
        if account is not None:
            charges.append(account.take(release))

    released = metrics.released(predicting, data, epsilon, error_bound=error_bound, charge=charging)
    if account is not None:
        account.finish()
    return {
        **head, "records": released.records, "private": True, "epsilon": epsilon, "delta": 0.0,
        "adjacency": "replace_one", "noise": "discrete Laplace, sampled exactly", "noise_std": released.noise_std,
        "error_bound": released.error_bound, "confidence": metrics.CONFIDENCE,
        "metrics": {name: interval._asdict() for name, interval in released.metrics.items()},
        "population": None if released.population is None else list(released.population),
        "ledger": {
            "file": ledger, "entry": line_of(charges[0].entry if charges else NAME, release),
            **({"says": words_of(charges[0])} if charges else {}),
        },
    }  # fmt: skip
