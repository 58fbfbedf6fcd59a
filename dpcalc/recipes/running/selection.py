"""The cases of a check: those of some recipes whose names match, or one machine's share of them."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

from dpcalc.checked import Shard
from dpcalc.errors import SpecError, refuse
from dpcalc.files.documents import repeated
from dpcalc.files.place import FileError, ProjectFile, shown_path
from dpcalc.recipes.judging.objections import check_installed
from dpcalc.recipes.judging.policy import again
from dpcalc.recipes.reading.matrix import MAX_CASES, MOST_CASES
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import LENIENT, Entry, Malformed, Policy, Recipe
from dpcalc.recipes.running.evaluate import Limits
from dpcalc.recipes.running.journal import SCHEMA
from dpcalc.recipes.running.shards import Share, cost, dealt_out, hash_of, sealed
from dpcalc.render import MOST_CURVES
from dpcalc.report import Report
from dpcalc.version import __version__


class Options(NamedTuple):
    """The options that verdicts depend on."""

    certify: bool = False
    policy: str = LENIENT.source


def read_all(paths: Sequence[str], most: int = MAX_CASES, policy: Policy = LENIENT) -> list[Recipe]:
    """Read recipes, each of at most ``most`` cases, under a policy.

    Raises:
        Malformed: some are not recipes; its ``errors`` are those of all files.
        SpecError: there are no files, or one is given twice.
    """
    twice = repeated(map(os.path.normpath, paths))  # its cases would have the names of others in every report
    refuse(
        (not paths, "no recipe was given", "name at least one file"),
        (twice is not None, f"{shown_path(twice or '')} is given twice", "name each recipe once"),
    )
    recipes, errors = list[Recipe](), list[FileError]()
    for path in paths:
        try:
            recipes.append(read(path, most, policy=policy))
        except Malformed as refusal:
            errors += refusal.errors
    if errors:
        raise Malformed(errors)
    return recipes


class Selection:
    """The cases of a check, by their places among those of all recipes; each is made on demand.

    Args:
        recipes: as read.
        pattern: a regular expression that matches the names of the cases somewhere; None for all.
        options: those that verdicts depend on.
        limits: of each case.
        share: of several machines; None for all cases.
        curves: whether to compute the curves behind the answers, if the cases are few.

    Attributes:
        places: of the cases to check, ascending.
        all_places: those of all shares.

    Raises:
        SpecError: the pattern is no regular expression, or no case matches.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        pattern: str | None = None,
        *,
        options: Options = Options(),  # noqa: B008 (a tuple)
        limits: Limits = Limits(),  # noqa: B008 (a tuple)
        share: Share | None = None,
        curves: bool = False,
    ) -> None:
        self.recipes, self.options, self.limits, self.share = recipes, options, limits, share
        self._groups = [(recipe, group) for recipe in recipes for group in recipe.made.values()]
        self._ends = list(itertools.accumulate(len(group) for _, group in self._groups))
        self._curves = False
        self.all_places = self.places = self._matching(pattern)
        if share is not None:
            costs = ((_cost(entry), entry.name) for entry in self._entries(self.all_places))
            self.places = array("Q", (self.all_places[number] for number in dealt_out(costs, share)))
        self._curves = curves and len(self.places) <= MOST_CURVES

    def __len__(self) -> int:
        """Return the number of cases of the recipes."""
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
        entry = group[place - self._ends[number] + len(group)]
        return recipe, entry._replace(question=entry.question._replace(curves=True)) if self._curves else entry

    def entries(self) -> Iterator[Entry]:
        """Yield the cases to check."""
        return self._entries(self.places)

    def _entries(self, places: Sequence[int]) -> Iterator[Entry]:
        return (self.at(place)[1] for place in places)

    def _matching(self, pattern: str | None) -> Sequence[int]:
        every = range(len(self))
        if pattern is None:
            return every
        try:
            matches = re.compile(pattern).search
        except (re.error, OverflowError, RecursionError) as why:
            raise SpecError(f"{pattern!r} is not a regular expression: {why}", "for example 'sweep|budget'") from None
        chosen = array("Q", (place for place in every if matches(self.at(place)[1].name)))
        if not chosen:
            first = self.at(0)[1].name
            raise SpecError(f"no case matches {pattern!r}", f"there are {len(self)}, {first} the first")
        return chosen

    def refuse_all_skipped(self) -> None:
        """Raise SpecError if every case of all shares is skipped."""
        if all(entry.skip is not None for entry in self._entries(self.all_places)):
            raise SpecError(f"all {len(self.all_places)} cases are skipped: nothing was checked", "remove a skip")

    def refuse_uncertifiable(self) -> None:
        """Raise SpecError if a rule demands certificates and nothing can be certified."""
        demanded = any(group[0].rule.certified for _, group in self._groups)
        if demanded and any(entry.rule.certified for entry in self.entries()):
            check_installed()

    def not_checked(self, done: int) -> Iterator[tuple[str, str]]:
        """Yield file and name of every case that is neither among the first ``done`` ones nor of another share."""
        if done == len(self.places) and len(self.all_places) == len(self):
            return
        for place in range(len(self)):
            if not _has(self.all_places, place) or _has(self.places, place, done):
                recipe, entry = self.at(place)
                yield recipe.file, entry.name

    def of_share(self, report: Report, done: int) -> Report:
        """Return the report on the first ``done`` cases, with a description of its share if it is of one."""
        if self.share is None:
            return report
        places = (bisect_left(self.all_places, place) for place in self.places[:done])
        strict = tuple((one.file, one.policy.strict or bool(one.policy.rules)) for one in self.recipes)
        policy = hashlib.sha256(self.options.policy.encode()).hexdigest()
        shard = Shard(
            number=self.share.number, of=self.share.of, cases=len(self.all_places), places=tuple(places),
            recipes=strict, digest=self._digest(self.all_places),
            options=json.dumps({"certify": self.options.certify, "policy": policy}, sort_keys=True),
        )  # fmt: skip
        return sealed(report, shard)

    def _digest(self, places: Sequence[int]) -> str:
        """Return a hash of all questions, including values from other files and files of data."""
        whole, hashes = hashlib.sha256(), dict[str, str]()
        for entry in itertools.chain(self._entries(places), self._consulted(places)):
            whole.update(repr(entry).encode("utf-8", "backslashreplace") + b"\n")
            for value in entry.parameters.values():
                if isinstance(value, ProjectFile):
                    if value not in hashes:
                        hashes[value] = hash_of(value)
                    whole.update(hashes[value].encode())
        return whole.hexdigest()

    def _consulted(self, places: Sequence[int]) -> Iterator[Entry]:
        """Yield the cases on which some verdicts depend: those compared with, and the matrices that accept."""
        for number in dict.fromkeys(bisect_right(self._ends, place) for place in places):
            recipe, group = self._groups[number]
            for gate in group[0].gates:
                yield from (recipe.named(reference.name) for reference in gate.references)
            if group[0].accept:
                yield from group

    def header(self) -> dict[str, object]:
        """Return the header that a checkpoint of this check has."""
        options = self.options._asdict()
        return {"schema": SCHEMA, "dpcalc": __version__, "options": options, "digest": self._digest(self.places)}

    # --- for other processes ------------------------------------------------------------------------------------------

    @functools.cached_property
    def text(self) -> str:
        """The text from which another process reads the same recipes, with the files that they refer to."""
        files = [
            {"path": one.path, "documents": {name: raw.decode("latin-1") for name, raw in one.documents.items()}}
            for one in self.recipes
        ]
        return json.dumps({"recipes": files, **self.options._asdict()}, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Self:
        """Return the cases of all recipes in a text."""
        written = json.loads(text)
        policy, recipes = again(written["policy"]), list[Recipe]()
        for one in written["recipes"]:
            documents = {name: raw.encode("latin-1") for name, raw in one["documents"].items()}
            recipes.append(read(one["path"], MOST_CASES, documents, policy))
        return cls(recipes, options=Options(written["certify"], written["policy"]))


def _has(places: Sequence[int], place: int, start: int = 0) -> bool:
    number = bisect_left(places, place, start)
    return number < len(places) and places[number] == place


def _cost(entry: Entry) -> int:
    """Estimate the time of a case in units of a closed form: a wrong guess only makes shards less equal."""
    if entry.skip is not None or entry.unread is not None:
        return 1
    return cost(entry.command, str(entry.parameters.get("algorithm") or ""), solved=entry.question.solve is not None)
