"""The parts of a ledger as text: entries, counts, tuning and the budget, every mistake with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.ledgers.entries import MECHANISM, MOST_TIMES
from dpcalc.errors import SpecError
from dpcalc.files.documents import KINDS, Field, Scalar, Table, table, text
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
    field = body.fields.get("entries")
    return {} if field is None else table(field.node, "entries").fields


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
        own = {key: body.fields.get(key) for key in OWN}
        rest = Table(body.place, {key: value for key, value in body.fields.items() if key not in OWN})
        adjacency = adjacency_of(rest.fields.get("adjacency"))
        times = self.whole(own["times"], "times", MOST_TIMES)
        part = _part(own["part"])
        tuning, runs = self._tuning(own["tuning"])
        described = any(key in rest.fields for key in _RUN)
        command, given = self._run(name, rest) if described else ("", self._mechanism(name, rest))
        if times * runs > MOST_TIMES:
            raise field.place.error(f"more than {MOST_TIMES} runs", "use fewer")
        stated = adjacency or (None if command else self._stated)
        return Entry(name, command, given, times * runs, part, tuning, stated, _begun(own["state"]))

    def entry_or_case(self, name: str, field: Field, earlier: Mapping[str, Sequence[Case]]) -> Entry:
        """Return an entry of a case of a recipe: ``{case: NAME}`` is the run of an earlier case.

        Raises:
            SpecError: it is no entry, or there is no such case.
        """
        body = table(field.node, f"entry {name}")
        reference = body.fields.get("case")
        if reference is None:
            return self.entry(name, field)
        other = text(reference.node, "case")
        strange = next((key for key in body.fields if key not in ("case", *OWN)), None)
        if strange is not None:
            raise body.fields[strange].place.error(
                f"entry {name}: {clipped(strange)} beside case", f"an entry of a case takes {', '.join(OWN)}"
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
        own = {key: value for key, value in body.fields.items() if key in OWN}
        read = self.entry(name, Field(field.place, Table(body.place, {**typed("mu=1", body.place), **own})))
        given = dict(case.parameters)
        adjacency = given.pop("adjacency", None)
        return read._replace(
            command=case.command, given=given, adjacency=None if adjacency is None else Adjacency(str(adjacency))
        )

    def _run(self, name: str, body: Table) -> tuple[str, Mapping[str, Any]]:
        """Return the command and the parameters of a described run."""
        command = read_command(body.fields.get("command"), "compare")
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
                given["delta"], given["log_delta"] = self._delta(field)
                if not given["log_delta"] < 0.0:
                    hint = "leave out delta where it is 0"
                    raise field.place.error(f"entry {name}: delta must be > 0 and < 1", hint)
                continue
            given[key] = self._positive(field, key)
            if not _UNITS[0] <= given[key] <= _UNITS[1]:
                raise field.place.error(f"entry {name}: {key} must be from 1e-9 to 1e9", "write it in other units")
        return given

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _number(self, field: Field, name: str, parse: Callable[[str], Any]) -> Any:
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

    def _positive(self, field: Field, name: str) -> float:
        return float(self._number(field, name, parse_number))

    def _delta(self, field: Field) -> tuple[float, float]:
        """Return delta and its logarithm."""
        delta, log_delta = self._number(field, "delta", parse_delta)
        return delta, log_delta

    def whole(self, field: Field | None, name: str, most: int) -> int:
        """Return a count from 1 on; 1 where none is written.

        Raises:
            SpecError: it is none.
        """
        if field is None:
            return 1
        value = int(self._number(field, name, parse_integer))
        if not 1 <= value <= most:
            raise field.place.error(f"{name} must be a whole number from 1 to {most}")
        return value

    def budget(self, field: Field | None) -> Question:
        """Return the question that the budget asks; delta alone asks for epsilon."""
        if field is None:
            return Question()
        fields = by_name(table(field.node, "budget").fields)
        refuse_keys(fields, ("epsilon", "delta"), "epsilon and delta")
        epsilon, delta = fields.get("epsilon"), fields.get("delta")
        return Question(
            None if epsilon is None else self._positive(epsilon, "epsilon"),
            *((None, None) if delta is None else self._delta(delta)),
        )

    def _tuning(self, field: Field | None) -> tuple[Tuning | None, int]:
        """Return the law of a secret number of runs, and a number of runs that is fixed."""
        if field is None:
            return None, 1
        words = (*Law, _FIXED)
        if not isinstance(field.node, Table):
            raise field.node.place.error(
                f"tuning is {KINDS[type(field.node)]}, and has a distribution and a mean", _TUNING
            )
        body = field.node
        refuse_keys(body.fields, ("distribution", "mean", "shape"), "distribution, mean and shape")
        distribution, mean, shape = (body.fields.get(key) for key in ("distribution", "mean", "shape"))
        if distribution is None or mean is None:
            raise body.place.error("tuning needs distribution and mean", _TUNING)
        word = text(distribution.node, "distribution")
        if word not in words:
            raise distribution.place.error(
                f"distribution is {clipped(word)}; it must be one of {', '.join(words)}", near(word, words)
            )
        if word == _FIXED:
            if shape is not None:
                raise shape.place.error("shape is of negative-binomial alone", "leave it out")
            return None, self.whole(mean, "mean", MOST_TIMES)
        try:
            average = self._positive(mean, "mean")
            return tuning_of(Law(word), average, None if shape is None else self._positive(shape, "shape")), 1
        except SpecError as error:
            if error.message.startswith(f"{mean.place}:"):
                raise
            raise body.place.error(error.message, error.hint) from None


def _check_describes(name: str, command: str, place: Place) -> None:
    """Refuse a command that describes no run of records."""
    record = COMMANDS.get(command)
    if record is None or record.trains or record.prices or ALGORITHMS[record.default].chained:
        raise place.error(f"entry {name}: {command} describes no run of records", "use compare, or dp-sgd")


def adjacency_of(field: Field | None) -> Adjacency | None:
    """Return the adjacency that a field states; None where there is no field."""
    if field is None:
        return None
    try:
        return Adjacency(str(check("adjacency", text(field.node, "adjacency"))))
    except SpecError as error:
        raise field.place.error(error.message, error.hint) from None


def _begun(field: Field | None) -> bool:
    if field is None:
        return False
    if text(field.node, "state") != BEGUN:
        raise field.place.error(f"state can only be {BEGUN}", "leave it out where the release was made")
    return True


def _part(field: Field | None) -> str:
    if field is None:
        return ""
    name = text(field.node, "part").strip()
    if not _WORD.fullmatch(name):
        raise field.place.error("part is not a name", "use letters, digits, blanks, . - and _")
    return name


def typed(line: str, place: Place) -> dict[str, Field]:
    """Return the fields of an entry that a line of ``key=value`` pairs spells.

    ``tuning.mean=10`` is inside ``tuning``.

    Raises:
        SpecError: it is no such line.
    """
    fields: dict[str, Field] = {}
    inside: dict[str, dict[str, Field]] = {"tuning": {}}
    for word in line.replace(",", " ").split():
        name, mark, value = word.partition("=")
        if not mark or not name or not value:
            raise SpecError(f"{place}: {clipped(word)} is not key=value", "for example --add 'epsilon=0.1 times=100'")
        whole = name.replace("-", "_")
        outer, _, inner = whole.partition(".")
        into, key = (inside[outer], inner) if inner and outer in inside else (fields, whole)
        if key in into:
            raise SpecError(f"{place}: {clipped(name)} is given twice", "keep one")
        into[key] = Field(place, Scalar(place, value))
    return fields | {name: Field(place, Table(place, inner)) for name, inner in inside.items() if inner}
