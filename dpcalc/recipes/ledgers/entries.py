"""The parts of a ledger as text: entries, counts, tuning and the budget, every mistake with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledgers.entries import MECHANISM, MOST_TIMES
from dpcalc.errors import SpecError
from dpcalc.files.documents import KINDS, Field, Scalar, Table, mapping, one_of, table, text, word
from dpcalc.files.place import Place, clipped, near
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.numbers import parse_delta, parse_integer, parse_number
from dpcalc.model.parameter import check
from dpcalc.model.quantities import Adjacency, Quantity
from dpcalc.model.question import Entry, Question
from dpcalc.notions.tuning import Law, Tuning, tuning_of
from dpcalc.recipes.reading.matrix import Vocabulary
from dpcalc.recipes.reading.recipe import Entry as Case
from dpcalc.recipes.reading.recipe import refuse_keys
from dpcalc.recipes.reading.reference import Files
from dpcalc.recipes.reading.settings import QUESTION, by_name, follow, read_command, read_settings, suggestion

OWN = ("times", "part", "tuning", "description", "state")
BEGUN = "begun"
"""The state of an entry that was charged before its release was made, and is not known to have been released."""

_TUNING = "write tuning.distribution=geometric tuning.mean=10; in a file, tuning: {distribution: geometric, mean: 10}"
"""The keys of an entry that describe no run."""

_RUN = ("algorithm", "command", "from")
"""The keys of which an entry that describes a run has one."""

_FIXED = "fixed"  # a number of runs that is no secret
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9 ._-]{0,99}")
_UNITS = (1e-9, 1e9)  # within which mu, noise and the like are: products of them neither overflow nor vanish


def entries_of(body: Table) -> Mapping[str, Field]:
    """Return the entries of a mapping by their names."""
    entries: Table = body.read("entries", mapping, Table(body.place, {}))
    return entries.fields


class Reader:
    """Reads the parts of a ledger, and the values that they take from other files of the project.

    Args:
        files: that the ledger may name.
        stated: the adjacency for which what is known of its mechanisms holds.
    """

    def __init__(self, files: Files, stated: Adjacency | None = None) -> None:
        self._files, self._stated = files, stated

    def entry(self, name: str, field: Field) -> Entry:
        """Return an entry.

        Raises:
            SpecError: it is none.
        """
        if not _NAME.fullmatch(name):
            raise field.place.error(
                f"{clipped(name)} is not a name", "use letters, digits, - and _, at most 100 of them"
            )
        body = table(field.node, f"entry {name}")
        own, rest = body.parted(OWN)
        adjacency: Adjacency | None = rest.read("adjacency", adjacency_of)
        times: int = own.read("times", self.whole(MOST_TIMES), 1)
        part = own.read("part", _part, "")
        tuning, runs = own.read("tuning", self._tuning, (None, 1))
        described = any(key in rest.fields for key in _RUN)
        command, given = self._run(name, rest) if described else ("", self._mechanism(name, rest))
        if times * runs > MOST_TIMES:
            raise field.place.error(f"more than {MOST_TIMES} runs", "use fewer")
        stated = adjacency or (None if command else self._stated)
        return Entry(name, command, given, times * runs, part, tuning, stated, own.read("state", _begun, False))

    def entry_or_case(self, name: str, field: Field, earlier: Mapping[str, Sequence[Case]]) -> Entry:
        """Return an entry of a case of a recipe: ``{case: NAME}`` is the run of an earlier case.

        Raises:
            SpecError: it is no entry, or there is no such case.
        """
        body = table(field.node, f"entry {name}")
        other: str | None = body.read("case", word)
        if other is None:
            return self.entry(name, field)
        reference, (own, rest) = body.fields["case"], body.parted(OWN)
        for key, strange in rest.fields.items():
            if strange is not reference:
                raise strange.place.error(
                    f"entry {name}: {clipped(key)} beside case", f"an entry of a case takes {', '.join(OWN)}"
                )
        cases = earlier.get(other, ())
        if len(cases) != 1:
            what = f"{other} is {len(cases)} cases" if cases else f"there is no earlier case {clipped(other)}"
            hint = "name a case without a matrix" if cases else near(other, earlier)
            raise reference.node.place.error(what, hint)
        (case,) = cases
        if case.unread is not None:
            raise case.unread
        _check_describes(name, case.command, reference.place)
        read = self.entry(name, Field(field.place, Table(body.place, {**typed("mu=1", body.place), **own.fields})))
        given = dict(case.parameters)
        adjacency = given.pop("adjacency", None)
        return read._replace(
            command=case.command, given=given, adjacency=None if adjacency is None else Adjacency(str(adjacency))
        )

    def _run(self, name: str, body: Table) -> tuple[str, Mapping[str, Any]]:
        """Return the command and the parameters of a described run."""
        command = body.read("command", read_command, "compare")
        _check_describes(name, command, body.place)
        vocabulary = Vocabulary(command, self._files)
        given: dict[str, Any] = {}
        for key, setting in read_settings(body, self._files).items():
            if key in QUESTION:
                raise setting.place.error(f"entry {name}: {key} is asked of all entries together", f"leave out {key}")
            if key not in vocabulary.names:
                hint = suggestion(key, (*vocabulary.names, *OWN))
                raise setting.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
            if not setting.null:
                given[key] = vocabulary.value(key, setting)
        given.pop("adjacency", None)
        return command, given

    def _mechanism(self, name: str, body: Table) -> Mapping[str, Any]:
        """Return what describes a mechanism: positive numbers, and delta as its logarithm."""
        fields = by_name(body.fields)
        fields.pop("adjacency", None)
        given: dict[str, Any] = {}
        for key, field in fields.items():
            if key not in MECHANISM:
                hint = f"a mechanism takes {', '.join(MECHANISM)}; a run has algorithm: or command:"
                raise field.place.error(f"entry {name}: unknown key {clipped(key)}", hint)
            if key == Quantity.DELTA:
                given["delta"], given["log_delta"] = self._delta(field, key)
                if not given["log_delta"] < 0.0:
                    hint = "leave out delta where it is 0"
                    raise field.place.error(f"entry {name}: delta must be > 0 and < 1", hint)
                continue
            given[key] = self._number(field, key)
            if not _UNITS[0] <= given[key] <= _UNITS[1]:
                raise field.place.error(f"entry {name}: {key} must be from 1e-9 to 1e9", "write it in other units")
        return given

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _number(self, field: Field, name: str, parse: Callable[[str], Any] = parse_number) -> Any:
        """Return a number; of one that stands in another file no error shows the text."""
        setting = follow(field.place, field.node, self._files)
        if setting.unread is not None:
            raise setting.unread
        try:
            return parse(text(setting.node, name).strip(" "))
        except SpecError as error:
            if setting.origin:
                raise setting.place.error(f"{name} is that of {clipped(setting.origin)}, and no such number") from None
            raise setting.place.error(f"{name}: {error.message}", error.hint) from None

    def _delta(self, field: Field, name: str) -> tuple[float, float]:
        """Return delta and its logarithm."""
        delta, log_delta = self._number(field, name, parse_delta)
        return delta, log_delta

    def whole(self, most: int) -> Callable[[Field, str], int]:
        """Return the reader of a count from 1 to ``most``."""

        def read(field: Field, name: str) -> int:
            value = int(self._number(field, name, parse_integer))
            if not 1 <= value <= most:
                raise field.place.error(f"{name} must be a whole number from 1 to {most}")
            return value

        return read

    def budget(self, field: Field, name: str) -> Question:
        """Return the question that the budget asks; delta alone asks for epsilon."""
        body = mapping(field, name)
        body = Table(body.place, by_name(body.fields))
        refuse_keys(body.fields, ("epsilon", "delta"), "epsilon and delta")
        return Question(body.read("epsilon", self._number), *body.read("delta", self._delta, (None, None)))

    def _tuning(self, field: Field, name: str) -> tuple[Tuning | None, int]:
        """Return the law of a secret number of runs, and a number of runs that is fixed."""
        body = field.node
        if not isinstance(body, Table):
            raise body.place.error(f"{name} is {KINDS[type(body)]}, and has a distribution and a mean", _TUNING)
        refuse_keys(body.fields, ("distribution", "mean", "shape"), "distribution, mean and shape")
        words = (*Law, _FIXED)
        law: str | None = body.read("distribution", one_of(words, lambda typed: near(typed, words)))
        mean, shape = body.fields.get("mean"), body.fields.get("shape")
        if law is None or mean is None:
            raise body.place.error("tuning needs distribution and mean", _TUNING)
        if law == _FIXED and shape is not None:
            raise shape.place.error("shape is of negative-binomial alone", "leave it out")
        if law == _FIXED:
            return None, self.whole(MOST_TIMES)(mean, "mean")
        average, form = self._number(mean, "mean"), body.read("shape", self._number)
        with body.place.blamed():
            return tuning_of(Law(law), average, form), 1


def _check_describes(name: str, command: str, place: Place) -> None:
    """Refuse a command that describes no run of records."""
    record = COMMANDS.get(command)
    if record is None or record.trains or record.prices or ALGORITHMS[record.default].chained:
        raise place.error(f"entry {name}: {command} describes no run of records", "use compare, or dp-sgd")


def adjacency_of(field: Field, name: str) -> Adjacency:
    """Return the adjacency that a field states."""
    with field.place.blamed():
        return Adjacency(str(check(name, word(field, name))))


def _begun(field: Field, name: str) -> bool:
    if word(field, name) != BEGUN:
        raise field.place.error(f"{name} can only be {BEGUN}", "leave it out where the release was made")
    return True


def _part(field: Field, name: str) -> str:
    part = word(field, name).strip()
    if not _WORD.fullmatch(part):
        raise field.place.error(f"{name} is not a name", "use letters, digits, blanks, . - and _")
    return part


def typed(line: str, place: Place) -> dict[str, Field]:
    """Return the fields of an entry that a line of ``key=value`` pairs spells.

    ``tuning.mean=10`` is inside ``tuning``.

    Raises:
        SpecError: it is no such line.
    """
    fields: dict[str, Field] = {}
    inside: dict[str, dict[str, Field]] = {"tuning": {}}
    for pair in line.replace(",", " ").split():
        name, mark, value = pair.partition("=")
        if not mark or not name or not value:
            raise SpecError(f"{place}: {clipped(pair)} is not key=value", "for example --add 'epsilon=0.1 times=100'")
        whole = name.replace("-", "_")
        outer, _, inner = whole.partition(".")
        into, key = (inside[outer], inner) if inner and outer in inside else (fields, whole)
        if key in into:
            raise SpecError(f"{place}: {clipped(name)} is given twice", "keep one")
        into[key] = Field(place, Scalar(place, value))
    return fields | {name: Field(place, Table(place, inner)) for name, inner in inside.items() if inner}
