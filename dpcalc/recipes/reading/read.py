"""Parse recipes into cases, every mistake with its place.

Nothing is evaluated here, so a recipe with a mistake is refused before any number is computed.

A case as written is expanded to the cases that it stands for; every name and value is checked.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.engine.gate import risks_of
from dpcalc.engine.question import aimed
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Node, Rules, Scalar, Table, mapping, parse_yaml, repeated, table, truth, word
from dpcalc.files.place import FileError, Place, clipped
from dpcalc.model.numbers import MAX_SWEEP, parse_number
from dpcalc.model.parameter import RATES
from dpcalc.model.quantities import ATTACKS, Given
from dpcalc.model.question import Question
from dpcalc.notes import Referenced
from dpcalc.recipes.judging.objections import accepted
from dpcalc.recipes.ledgers.ledger import of_ledger, read_ledger_case
from dpcalc.recipes.reading.gates import Expected, RecipeGate, read_expected, read_gates
from dpcalc.recipes.reading.matrix import MAX_CASES, Combination, Matrix, Vocabulary, check_comparisons, shown
from dpcalc.recipes.reading.recipe import LENIENT, Cases, Entry, Lazy, Malformed, Policy, Recipe, body_of, refuse_keys
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.recipes.reading.settings import (
    ATTACKED,
    CASE_KEYS,
    KEYS_OF,
    MAX_TEXT,
    SHARED_KEYS,
    Setting,
    all_parameters,
    read_command,
    read_settings,
    suggestion,
    without_flags,
)

if TYPE_CHECKING:
    from dpcalc.model.question import RiskQuestion


MAX_TIMEOUT = 86_400

_ASKED = frozenset(("delta", "epsilon", "order", "solve", *RATES, *ATTACKS))
"""The parameters of the question, as opposed to the run."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}")
_NO_REASON = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "null", "none")


class Defaults(NamedTuple):
    """The defaults of a recipe.

    Attributes:
        files: those that the recipe may name.
        command: the default command.
        settings: the parameters.
        gates: those of every case.
        timeout: the default time limit in seconds.
        unread: why the defaults cannot be used, if a file that they refer to is invalid.
        policy: the rules for the cases.
        most: the largest number of cases.
    """

    files: Files
    command: str
    settings: Mapping[str, Setting]
    gates: tuple[RecipeGate, ...]
    timeout: float | None = None
    unread: Unreadable | None = None
    policy: Policy = LENIENT
    most: int = MAX_CASES


def read_case(
    name: str, field: Field, defaults: Defaults, room: int, earlier: Mapping[str, Sequence[Entry]] | None = None
) -> Sequence[Entry]:
    """Expand a case of the text, to at most ``room`` cases; a ledger may name ``earlier`` ones.

    If a file that it refers to cannot be used, that is one case with nothing to evaluate, which is never skipped.

    Raises:
        SpecError: it is malformed.
    """
    try:
        return _CaseReader(name, field, defaults, earlier or {}).entries(room)
    except Unreadable as error:
        body = table(field.node, f"case {name}")
        command = body.read("command", read_command, defaults.command)
        return [
            Entry(
                name,
                field.place,
                command,
                {},
                Question(None, None, None, (), None),
                unread=error,
                rule=defaults.policy.rule_of(name),
            )
        ]


def read_timeout(field: Field, name: str) -> float:
    """Parse a time limit in seconds.

    Raises:
        SpecError: it is not a time limit.
    """
    with field.node.place.blamed(f"{name}: "):
        return check_timeout(parse_number(word(field, name)))


def check_timeout(seconds: float) -> float:
    """Check a time limit and return it.

    Raises:
        SpecError: it is invalid.
    """
    if not 0.0 < seconds <= MAX_TIMEOUT:
        raise SpecError(f"a time limit of {seconds:g} s; it must be > 0 and <= {MAX_TIMEOUT}", "60 is usual")
    return seconds


class _CaseReader:
    """The parts of a case, read and checked in the order in which errors are reported."""

    def __init__(self, name: str, field: Field, defaults: Defaults, earlier: Mapping[str, Sequence[Entry]]) -> None:
        if not _NAME.fullmatch(name):
            raise field.place.error(
                f"{clipped(name)} is not a name of a case", "use letters, digits, - and _, at most 100 of them"
            )
        self.name, self.place = name, field.place
        self.body = table(field.node, f"case {name}")
        if defaults.unread is not None:
            raise defaults.unread
        self.command: str = self.body.read("command", read_command, defaults.command)
        self.vocabulary = Vocabulary(self.command, defaults.files)
        _, body = self.body.parted(KEYS_OF.get(self.command, ()))
        self.ledger = read_ledger_case(self.body, defaults.files, earlier) if self.command in KEYS_OF else None
        own = read_settings(body, defaults.files)
        self.matrix = Matrix(self.body, self.vocabulary, own)
        settings = {**defaults.settings, **own}
        self.base = {
            key: self.vocabulary.value(key, setting)
            for key, setting in settings.items()
            if self._is_taken(key, setting) and key not in self.matrix.axes
        }
        origins = {key: settings[key].origin for key in self.base}
        self.notes = tuple(Referenced(parameter=key, origin=str(origin)) for key, origin in origins.items() if origin)
        own_gates = self.body.read("assert", _gates)
        # The gates of the defaults, unless removed by `assert: null`, and those of the case.
        self.gates: tuple[RecipeGate, ...] = (*(defaults.gates if own_gates != () else ()), *(own_gates or ()))
        self.expected = self._expected(own_gates is not None)
        self.accept: tuple[str, ...] = self.body.read("accept", self._accept, ())
        self.rule, self.most = defaults.policy.rule_of(name), defaults.most
        self.skip: str | None = self.body.read("skip", _skip)
        self.timeout: float | None = self.body.read("timeout", read_timeout, defaults.timeout)

    def _is_taken(self, name: str, setting: Setting) -> bool:
        """Return whether a parameter is set; ``null`` removes a default, but only in the case itself."""
        if setting.null and setting.origin:  # else the run's own default, such as one epoch, would be used
            raise Unreadable(
                setting.place,
                f"{name} is null in {clipped(setting.origin)}",
                f"give it a value there, or write {name}: null in the case instead of referring to it",
            )
        if name in self.vocabulary.names:
            return not setting.null
        if name not in all_parameters():
            hint = suggestion(name, (*self.vocabulary.names, *CASE_KEYS))
            raise setting.place.error(f"unknown key {clipped(name)}", hint)
        if not setting.null:
            raise setting.place.error(
                f"case {self.name}: {self.command} takes no {name}",
                f"write {name}: null in the case, or choose another command",
            )
        return False

    def _expected(self, asserted: bool) -> Expected | None:
        expected: Expected | None = self.body.read("expect", read_expected)
        if expected is None or expected.error is None or not self.gates:
            return expected
        if asserted:
            raise expected.place.error("an error is expected, and something asserted", "keep one of the two")
        first = self.gates[0]
        raise expected.place.error(
            f"an error is expected, and the defaults assert {clipped(first.gate.text)} ({first.place})",
            "write assert: null in the case if this gate is not meant for it",
        )

    def _accept(self, field: Field, name: str) -> tuple[str, ...]:
        if self.expected and self.expected.error:
            raise field.place.error("an error is expected, and an exception accepted", "leave out accept")
        return accepted(field, name)

    def entries(self, room: int) -> Sequence[Entry]:
        """Return the cases that this one stands for, at most ``room``; very many are made on demand."""
        combinations = self.matrix.combinations(self.name, self.place, room, self.most)
        made: Sequence[Entry] = Lazy(len(combinations), lambda place: self.entry(*combinations[place]))
        if len(made) > MAX_CASES:
            differ = combinations.plainly_different
            if any(name in ATTACKED for name in (*self.base, *self.matrix.axes)) or self.ledger:
                for _ in made:  # the question may be refused, which must be known before anything is evaluated
                    pass
        else:
            made, differ = [*made], False
        twice = None if differ else repeated(entry.name for entry in made)
        if twice is not None:
            raise self.place.error(f"{clipped(twice)} is given twice", "an include adds a case: leave it out")
        return made

    def entry(self, chosen: Combination, place: Place) -> Entry:
        if self.ledger is None and place is self.place and _ASKED.isdisjoint(chosen):  # they ask one question
            shared, question = self._shared
            parameters: dict[str, Any] = {**shared, **chosen}
        else:
            parameters, question = self._asked({**self.base, **chosen}, place)
        if self.ledger is not None:
            parameters, question = of_ledger(*self.ledger, parameters, question)
        return Entry(
            _case_name(self.name, chosen.items()), place, self.command, parameters, question, self.gates,
            self.expected, self.skip, self.notes, self.timeout, None, self.accept, self.rule,
        )  # fmt: skip

    @functools.cached_property
    def _shared(self) -> tuple[dict[str, Any], Question]:
        """The parameters and the question of all cases whose combination does not change the question."""
        return self._asked(self.base, self.place)

    def _asked(self, given: Given, place: Place) -> tuple[dict[str, Any], Question]:
        """Split parameters into those of the run and the question.

        Raises:
            SpecError: the question is incomplete.
        """
        parameters = {**given}
        delta = parameters.pop("delta", None)
        listed = {name: parameters.pop(name) for name in RATES if name in parameters}
        question = Question(
            parameters.pop("epsilon", None), delta.value if delta else None, delta.log if delta else None,
            parameters.pop("order", ()), parameters.pop("solve", None),
            risks=risks_of((*(gate.gate for gate in self.gates), *self.rule.limits), _risks(listed)),
        )  # fmt: skip
        try:
            return parameters, aimed(question, parameters, listed)
        except SpecError as error:
            raise place.error(f"case {self.name}: {without_flags(error.message)}", without_flags(error.hint)) from None


def _gates(field: Field, name: str) -> tuple[RecipeGate, ...]:
    """Return the gates of a case; none for null."""
    return () if isinstance(field.node, Scalar) and field.node.null else read_gates(field, name)


def _skip(field: Field, name: str) -> str:
    reason = word(field, name)
    none = reason.strip().lower() in _NO_REASON or not any(letter.isalpha() for letter in reason)
    field.node.place.refuse(
        (none, "skip needs a reason", "write why, or leave skip out"),
        # each case of a matrix repeats them in every report
        (len(reason) > MAX_TEXT, f"skip has {len(reason)} characters", f"at most {MAX_TEXT}"),
    )
    return " ".join(reason.split())


def _risks(listed: Mapping[str, Sequence[float]]) -> RiskQuestion | None:
    """Return the question about attacks; None without a rate or a probability."""
    if not listed:
        return None
    from dpcalc.model.question import RiskQuestion

    return RiskQuestion.of(**listed)


def _case_name(name: str, chosen: Iterable[tuple[str, Any]]) -> str:
    choice = ",".join([f"{key}={shown(value)}" for key, value in chosen])
    return f"{name}[{choice}]" if choice else name


VERSION = "recipe/1"
MAX_ERRORS = 20
"""The number of mistakes after which reading stops."""

KEYS = ("dpcalc", "description", "strict", "defaults", "cases")
"""The keys of a recipe."""

SYNTAX = Rules(
    items=MAX_SWEEP, anchor_hint="put what cases share under defaults", depth_hint="a recipe needs four levels"
)
"""How a recipe's YAML is read: no list has more values than a sweep."""


def read(
    path: str, most: int = MAX_CASES, documents: Mapping[str, bytes] | None = None, policy: Policy = LENIENT
) -> Recipe:
    """Return the recipe in a file, ``-`` for standard input.

    Args:
        path: of the file.
        most: how many cases it may have.
        documents: the contents of the recipe and the files that it refers to, if they were read elsewhere.
        policy: the rules for its cases; the recipe itself may make them all strict.

    Raises:
        Malformed: it is not a recipe; the first `MAX_ERRORS` mistakes are named.
    """
    try:
        files = Files(path, documents)
        shown = str(Place(path))
        node = parse_yaml(shown, files.text(files.recipe, "recipe"), SYNTAX)
        return _read_recipe(shown, node, files, most, policy)._replace(path=path)
    except Malformed:
        raise
    except FileError as error:
        raise Malformed([error]) from None


def _read_recipe(shown: str, node: Node | None, files: Files, most: int, policy: Policy) -> Recipe:
    top = body_of(node, shown, VERSION)
    refuse_keys(top.fields, KEYS)
    cases = _cases(top)
    policy = policy._replace(strict=top.read("strict", truth, False) or policy.strict)
    defaults = _defaults(top, files)._replace(policy=policy, most=most)
    made, errors = _read_cases(cases, defaults)
    few = sum(map(len, made.values())) <= MAX_CASES
    entries = {entry.name: entry for group in made.values() for entry in group} if few else Cases(made)
    recipe = Recipe(shown, entries, policy, made, files.documents)
    errors = errors or check_comparisons(recipe, MAX_ERRORS)
    if errors:
        raise Malformed(errors)
    return recipe


def _cases(top: Table) -> Table:
    cases: Table = top.read("cases", mapping, Table(top.place, {}))
    if not cases.fields:
        raise cases.place.error("there are no cases", "write them under cases:, each with a name of its own")
    return cases


def _defaults(top: Table, files: Files) -> Defaults:
    body: Table = top.read("defaults", mapping, Table(Place(""), {}))
    for name in CASE_KEYS:
        if name in body.fields and name not in SHARED_KEYS:
            raise body.fields[name].place.error(f"{name} cannot be a default", "write it in each case")
    gates, command = body.read("assert", read_gates, ()), body.read("command", read_command, "compare")
    try:
        settings = read_settings(body, files)
    except Unreadable as error:
        return Defaults(files, command, {}, gates, unread=error)
    names = all_parameters()
    for name, setting in settings.items():
        if name not in names:
            hint = suggestion(name, (*SHARED_KEYS, *names))
            raise setting.place.error(f"unknown parameter {clipped(name)}", hint)
    return Defaults(files, command, settings, gates, body.read("timeout", read_timeout))


def _read_cases(cases: Table, defaults: Defaults) -> tuple[dict[str, Sequence[Entry]], list[FileError]]:
    """Return the cases that each case of the text stands for, and the errors."""
    made: dict[str, Sequence[Entry]] = {}
    room = defaults.most
    errors: list[FileError] = []
    for name, field in cases.fields.items():
        try:
            made[name] = read_case(name, field, defaults, room, made)
        except FileError as error:
            errors.append(error)
            if len(errors) == MAX_ERRORS:
                break
            continue
        room -= len(made[name])
    return made, errors
