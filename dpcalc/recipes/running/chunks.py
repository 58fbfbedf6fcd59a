"""Chunks of a check: some of its cases, computed wherever the text of their recipes is sent.

What travels is text, and one function that is known by its name: `run_chunk`. It needs nothing but this version of
dpcalc. A chunk names its cases by their places; whoever computes it expands them from the recipe, and keeps what was
read for the next chunk. The answer repeats which chunk it is of, and has a line of JSON for every case.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from dpcalc.cluster.spread import Piece
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files.paths import ProjectFile
from dpcalc.recipes.judging.policy import LENIENT
from dpcalc.recipes.judging.policy_file import again
from dpcalc.recipes.judging.verdict import Seen, error, given_by, judged, judged_again
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Entry, Recipe
from dpcalc.recipes.running.evaluate import Limits, Outcome, broken, evaluate
from dpcalc.recipes.running.saved import Garbled, case_of_line, refuse_other_inputs, whole_case_of_line
from dpcalc.render.machine import case_line
from dpcalc.render.notes import in_words
from dpcalc.report import Case, Status, strict_json
from dpcalc.version import __version__

SCHEMA = "dpcalc.chunk/1"
_KEPT = 1000  # answers to other cases, which comparisons ask for
_SOON = 0.5  # seconds after which a chunk answers what it has


class Options(NamedTuple):
    """What verdicts depend on beside the recipes."""

    certify: bool = False
    policy: str = LENIENT.source


class Located:
    """The cases of some recipes by their places, from 0 on, one recipe after the other.

    Args:
        recipes: as read.
        options: of the check.
    """

    def __init__(self, recipes: Sequence[Recipe], options: Options | None = None) -> None:
        self.recipes, self.options = recipes, options or Options()
        self._groups = [(recipe, group) for recipe in recipes for group in recipe.made.values()]
        self._ends = list(accumulate(len(group) for _, group in self._groups))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def at(self, place: int) -> tuple[Recipe, Entry]:
        """Return the case at a place, and its recipe.

        Raises:
            IndexError: there is none.
        """
        if not 0 <= place < len(self):
            raise IndexError(place)
        number = bisect_right(self._ends, place)
        recipe, group = self._groups[number]
        return recipe, group[place - self._ends[number] + len(group)]


def written_check(recipes: Sequence[Recipe], paths: Sequence[str], most: int, options: Options) -> str:
    """Return the text from which another process reads the same recipes, with the files that they refer to."""
    files = [
        {"path": path, "documents": {name: raw.decode("latin-1") for name, raw in recipe.documents.items()}}
        for path, recipe in zip(paths, recipes, strict=True)
    ]
    return json.dumps({"recipes": files, "most": most, **options._asdict()}, sort_keys=True)


def travels(entry: Entry) -> bool:
    """Return whether a case can be computed on another machine: it reads no file there and names no other case."""
    if entry.command in ("ledger", "train") or any(isinstance(v, ProjectFile) for v in entry.parameters.values()):
        return False
    return not any(gate.terms for gate in entry.gates)


class Chunk(Piece):
    """Some cases that are computed one after the other.

    Args:
        check: as `written_check` has it.
        located: the same recipes, for what is expected of the answer.
        places: of the cases.
        limits: of each case.
        trusted: whether the answer comes from a process of this program, and is not read in every detail.
    """

    def __init__(
        self, check: str, located: Located, places: Sequence[int], limits: Limits, trusted: bool = False
    ) -> None:
        self._check, self._located, self.places = check, located, tuple(places)
        self._limits, self._trusted = limits, trusted
        each = (limits.seconds(located.at(place)[1]) for place in self.places)
        self.seconds = min((limit for limit in each if limit is not None), default=None)
        if self.seconds is not None and len(self.places) > 1:
            self.seconds += _SOON
        asked = {"schema": SCHEMA, "dpcalc": __version__, "check": check, "places": self.places, "soon": _SOON}
        self.document = json.dumps(asked)

    def read(self, text: str) -> list[tuple[str, Verdict]]:
        """Return the lines of the first cases of the chunk, and the verdicts that they give.

        Raises:
            Garbled: this is no answer to it.
        """
        if not isinstance(text, str):
            raise Garbled("a worker answered with something that is no text")
        head, *lines = text.split("\n")
        try:
            said = json.loads(head)
        except ValueError:
            raise Garbled("the answer has no head") from None
        if said != _head(self.document, lines) or not 1 <= len(lines) <= len(self.places):
            raise Garbled("the answer is not to what was asked, or was damaged on its way")
        return [
            (line, refuse_another(self._located, place, line, thoroughly=not self._trusted))
            for place, line in zip(self.places, lines, strict=False)
        ]

    def after(self, answer: list[tuple[str, Verdict]]) -> Chunk | None:
        """Return the cases that were not answered."""
        left = self.places[len(answer) :]
        return self._of(left) if left else None

    def parts(self) -> list[Piece]:
        """Return a chunk for every case."""
        return [self._of((place,)) for place in self.places]

    def halves(self) -> list[Piece]:
        """Return the chunk in two, or itself where it is one case."""
        middle = len(self.places) // 2
        return [self._of(self.places[:middle]), self._of(self.places[middle:])] if middle else [self]

    def stopped(self, why: DpcalcError) -> list[tuple[str, Verdict]]:
        """Return the line and the verdict of the only case, whose computation was ended."""
        _, entry = self._located.at(self.places[0])
        outcome = Outcome(None, type(why).__name__, why.message, why.hint, why.exit_code)
        line = case_line("check", in_words("check", error(entry, entry.place, outcome)))
        return [(line, Verdict.of(line))]

    def _of(self, places: Sequence[int]) -> Chunk:
        return Chunk(self._check, self._located, places, self._limits, self._trusted)


def _head(document: str, lines: Sequence[str]) -> dict[str, Any]:
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    asked = hashlib.sha256(document.encode()).hexdigest()
    return {"schema": SCHEMA, "dpcalc": __version__, "chunk": asked, "cases": len(lines), "sha256": digest}


class Verdict(NamedTuple):
    """What became of a case: its status, what it alone exits with, and how many gates it has and held."""

    status: str
    exit_code: int
    gates: int
    held: int

    @classmethod
    def of(cls, line: str) -> Verdict:
        """Return the verdict that a line gives.

        Raises:
            Garbled: it gives none.
        """
        return cls._of(case_of_line(line, thoroughly=False))

    @classmethod
    def _of(cls, fields: Mapping[str, Any]) -> Verdict:
        check, gates = fields["check"], fields["assertions"]
        return cls(check["status"], check["exit_code"], len(gates), sum(gate["passed"] for gate in gates))


def refuse_another(located: Located, place: int, line: str, *, thoroughly: bool) -> Verdict:
    """Return the verdict on a case; refuse a line that is not the verdict on it.

    Args:
        located: the cases.
        place: of the case.
        line: of JSON.
        thoroughly: whether every field is read, what is read is written again and compared, and every gate of the
            recipe is judged again on the numbers that were read.

    Raises:
        Garbled: it is another case, no case, or has another verdict than its numbers.
    """
    _, entry = located.at(place)
    case: Case | None = None
    if thoroughly:
        fields, case = whole_case_of_line(line)
    else:
        fields = case_of_line(line, thoroughly=False)
    check = fields["check"]
    if (check["name"], check["file"], check["command"]) != (entry.name, entry.place.file, entry.command):
        raise Garbled("the answer is about another case")
    if check["status"] == "passed" and len(fields["assertions"]) < len(entry.gates):
        raise Garbled("a case is said to pass of which a gate was not judged")
    if case is not None:
        _refuse_other_verdict(entry, case, located.options.certify)
    return Verdict._of(fields)


def _refuse_other_verdict(entry: Entry, case: Case, certify: bool) -> None:
    """Refuse a case with other inputs than the recipe gives, or with another verdict than follows from its numbers."""
    public = bool(case.training) and not (case.training or {})["private"]  # its numbers are no guarantees
    if not public and any(result.best and not result.kind.guarantee for result in case.results):
        raise Garbled("what is no guarantee is said to be the best one")
    if case.check is not None and case.check.status in (Status.PASSED, Status.FAILED):
        refuse_other_inputs(given_by(entry), case)
    try:
        wanted = judged_again(entry, case, certify=certify)
    except DpcalcError as error:
        raise Garbled(f"it cannot be the verdict on this case: {error.message}") from None
    if _said(wanted) != _said(case):
        raise Garbled("its verdict is not the one that follows from the recipe and its numbers")


def _said(case: Case) -> object:
    return strict_json((case.assertions, case.check))


# --- where they are computed ------------------------------------------------------------------------------------------


def run_chunk(document: str) -> str:
    """Return the answer to a chunk: the head, and a line of JSON for each of its first cases, one at least.

    Args:
        document: of a `Chunk`.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    return _answered(document, raising=False)


def run_chunk_or_end(document: str) -> str:
    """Do as `run_chunk`, and raise MemoryError where memory is short: the process is not to be used again."""
    return _answered(document, raising=True)


def _answered(document: str, *, raising: bool) -> str:
    asked = json.loads(document)
    if (asked.get("schema"), asked.get("dpcalc")) != (SCHEMA, __version__):
        raise SpecError(f"the worker has dpcalc {__version__}, and the check was started by another version")
    computed = _prepared(asked["check"])
    late, lines = time.monotonic() + asked["soon"], list[str]()
    for place in asked["places"]:
        lines.append(computed.line(place, raising=raising))
        if time.monotonic() > late:
            break
    return "\n".join([json.dumps(_head(document, lines)), *lines])


def _as_bytes(documents: Mapping[str, str]) -> dict[str, bytes]:
    return {name: text.encode("latin-1") for name, text in documents.items()}


class _Prepared:
    """Recipes that were read."""

    def __init__(self, check: str) -> None:
        asked = json.loads(check)
        self.check = check
        self._options = Options(asked["certify"], asked["policy"])
        policy = again(asked["policy"])
        recipes = [read(one["path"], asked["most"], _as_bytes(one["documents"]), policy) for one in asked["recipes"]]
        self._located = Located(recipes, self._options)
        self._seen = Seen()
        self._known: dict[tuple[int, str], Outcome] = {}

    def line(self, place: int, *, raising: bool) -> str:
        """Return the verdict on a case as a line; with ``raising``, raise MemoryError where memory is short."""
        recipe, entry = self._located.at(place)

        def outcomes(other: Entry) -> Outcome:
            key = id(recipe), other.name
            if key not in self._known:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                found = evaluate(other, certify=self._options.certify)
                if raising and found.kind == MemoryError.__name__:
                    raise MemoryError
                self._known[key] = found
            return self._known[key]

        try:
            case = judged(recipe, entry, outcomes, certify=self._options.certify, seen=self._seen)
        except Exception as unexpected:
            if raising and isinstance(unexpected, MemoryError):
                raise
            case = error(entry, entry.place, broken(unexpected))
        return case_line("check", in_words("check", case))


_OF_THREAD = threading.local()
"""What each thread has read."""


def _prepared(check: str) -> _Prepared:
    if getattr(_OF_THREAD, "prepared", None) is None or _OF_THREAD.prepared.check != check:
        _OF_THREAD.prepared = _Prepared(check)
    found: _Prepared = _OF_THREAD.prepared
    return found


def case_of(line: str) -> Case:
    """Return the case of a line that was checked."""
    from dpcalc.recipes.running.saved import read_line

    return read_line(line)
