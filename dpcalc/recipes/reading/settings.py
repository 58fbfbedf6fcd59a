"""Parameters as set by a case, the defaults or a matrix: their names, and references.

Values are parsed by the number grammar of the command line, without the surprises of YAML 1.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.convert import TAKEN as CONVERTED
from dpcalc.engine.premises import STARTS
from dpcalc.errors import SpecError
from dpcalc.files.documents import (
    BOOLEANS,
    KINDS,
    Field,
    Items,
    Node,
    Scalar,
    Table,
    items,
    number_text,
    repeated,
    text,
    word,
)  # fmt: skip
from dpcalc.files.place import Place, clipped, near
from dpcalc.model.numbers import MAX_SWEEP, parse_delta, parse_integer, parse_number, parse_sweep
from dpcalc.model.parameter import EVERY, RATES, TARGETS, check, conversion, meant_by, name_of, not_covered
from dpcalc.model.phases import is_written
from dpcalc.model.quantities import Quantity
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.training.rule.setup import Setup

PATHS = ("schedule", "data", "ranges", "scores")
"""Parameters that name a file: relative to the recipe, inside its project."""

COUNTS = ("seed", "replicas", "workers", "guesses")
"""Whole numbers of training and audits that no bound needs."""

FRACTIONS = ("test_fraction", "confidence", "threshold")
SWITCHES = ("intercept", "reference", "one_run")

QUESTION = ("epsilon", "delta", "order", "solve")
"""The parameters of the question; all others describe the run."""

ATTACKED = (*TARGETS, *RATES)
"""The parameters of a question about attacks on one run."""

MANY = ("order", "ignore", "labels", "rdp", "target_range", *RATES)
"""Parameters that may have several values in a case."""

MAX_TEXT = 4000
"""The largest length of a value, which is repeated in the names of cases and in every report."""

_LONGEST = MAX_SWEEP * 20


class Delta(NamedTuple):
    """A delta as typed: its double (never 0) and its exact logarithm."""

    value: float
    log: float

    def __str__(self) -> str:
        return repr(self.value) if self.log > -690.0 else f"e^{self.log!r}"


def referred(name: str, node: Node, files: Files, choices: tuple[str, ...] | None, origin: str, *, many: bool) -> Any:
    """Return the value, or with ``many`` the values, of a parameter in another file.

    It must be a number, a word of the parameter, or the path of a file of the project, so that no
    message shows a text that was never meant for a log.

    Raises:
        Unreadable: it is no such value.
    """
    if not may_be_referred(name):
        raise Unreadable(
            node.place, f"{name} is a text, and texts are not taken from other files", f"write {name} in the recipe"
        )
    try:
        return several(name, node, files, choices, origin) if many else single(name, node, files, choices, origin)
    except SpecError:
        what = "a text that is not shown" if isinstance(node, Scalar) else KINDS[type(node)]
        raise Unreadable(
            node.place, f"{name} is that of {clipped(origin)}, {what}; it must be {_allowed(name, choices)}",
            "correct it there, or refer to another value",
        ) from None  # fmt: skip


def may_be_referred(name: str) -> bool:
    """Return whether a parameter's value may come from another file: it is not free text."""
    return _is_number(name) or name in EVERY or name in (*PATHS, *SWITCHES)


def _allowed(name: str, choices: tuple[str, ...] | None) -> str:
    if name in PATHS:
        return "the path of a file inside the project, relative to the recipe"
    if name in SWITCHES:
        return "true or false"
    if choices is not None:
        return "one of " + ", ".join(choices)
    if name in EVERY:
        return EVERY[name].domain
    return "a whole number" if name in COUNTS else "a number"


def single(name: str, node: Node, files: Files, choices: tuple[str, ...] | None = None, origin: str = "") -> Any:
    """Return the value of a parameter; a tuple for ``order``.

    Args:
        name: the parameter.
        node: as written.
        files: for parameters that name a file.
        choices: the words allowed, if fewer than those of the parameter.
        origin: the reference it came by, if it did.

    Raises:
        SpecError: the value is invalid; the message says where.
    """
    if name in MANY:
        return tuple(_one(name, item, files, choices, origin) for item in items(node))
    if isinstance(node, Items):
        raise node.place.error(f"{name} is a list", f"to try several values, put them under matrix: {name}: [...]")
    return _one(name, node, files, choices, origin)


def several(name: str, node: Node, files: Files, choices: tuple[str, ...] | None = None, origin: str = "") -> list[Any]:
    """Return the values of a varied parameter: a list, whose items may be ranges such as ``1:10:0.5``.

    Raises:
        SpecError: as `single`, or there is none, or one is given twice.
    """
    values: list[Any] = []
    for place, item in enumerate(items(node)):
        if isinstance(item, Scalar) and ":" in item.text and _is_number(name):
            values += _sweep(name, item)
        else:
            values.append(_one(name, item, files, choices, origin and f"{origin}/{place}"))
        if len(values) > MAX_SWEEP:
            raise item.place.error(f"more than {MAX_SWEEP} values of {name}", "use fewer")
    twice = repeated(values)
    node.place.refuse(
        (not values, f"{name} has no values", f"write {name}: [1, 2], or leave it out"),
        (twice is not None, f"{name} has the value {twice} twice", "keep one"),
    )
    return values


def _is_number(name: str) -> bool:
    if name in EVERY:
        return not EVERY[name].choices
    return name in (*COUNTS, *FRACTIONS)


def _one(name: str, node: Node, files: Files, choices: tuple[str, ...] | None, origin: str) -> Any:
    typed = (number_text if _is_number(name) else text)(node, name).strip(" ")
    assert isinstance(node, Scalar)
    node.place.refuse(
        (node.null, f"{name} is null", "null takes away a default of a case, and stands nowhere else"),
        (len(typed) > MAX_TEXT, f"{name} has {len(typed)} characters", f"at most {MAX_TEXT}"),
    )
    if name in PATHS:
        return typed if _IS_NO_PATH.get(name, _never)(typed, origin) else files.path(typed, node.place, origin)
    if name in SWITCHES:
        if typed not in BOOLEANS:
            raise node.place.error(f"{name} is {typed!r}; it must be true or false")
        return BOOLEANS[typed]
    if not _is_number(name):
        return _word(name, node, typed, choices)
    return _number(name, node, typed)


def _never(typed: str, origin: str) -> bool:
    return False


def _is_example(typed: str, origin: str) -> bool:
    """Return whether a text names shipped data."""
    if typed.startswith("example:") and origin:
        from dpcalc.training.data.tables import example_of

        example_of(typed)  # an unknown name would be shown later
    return typed.startswith("example:")


_IS_NO_PATH: dict[str, Callable[[str, str], bool]] = {
    "schedule": lambda typed, _: is_written(typed),
    "data": _is_example,
}
"""What parameters that name a file may be instead."""


def _word(name: str, node: Scalar, typed: str, choices: tuple[str, ...] | None) -> str:
    if name not in EVERY:
        return typed
    if choices is not None and typed not in choices and typed in EVERY[name].choices:
        raise node.place.error(f"{name} is {typed!r}; here it must be one of {', '.join(choices)}")
    with node.place.blamed():
        return str(check(name, typed))


def _number(name: str, node: Scalar, typed: str) -> Any:
    try:
        if name == Quantity.DELTA:
            return Delta(*parse_delta(typed))
        value = _parser(name)(typed)
        return check(name, value) if name in EVERY else value
    except SpecError as error:
        raise node.place.error(f"{name}: {error.message}", without_flags(error.hint)) from None


def _sweep(name: str, node: Scalar) -> list[Any]:
    if len(node.text) > _LONGEST:
        raise node.place.error(f"{name}: a range of {len(node.text)} characters is too long")
    try:
        values = parse_sweep(node.text, _parser(name))
        if name == Quantity.DELTA:
            return [Delta(*parse_delta(repr(v))) for v in values]
        return [check(name, v) for v in values] if name in EVERY else values
    except SpecError as error:
        raise node.place.error(f"{name}: {error.message}", without_flags(error.hint)) from None


def _parser(name: str) -> Callable[[str], float]:
    integer = EVERY[name].integer if name in EVERY else name in COUNTS
    return parse_integer if integer else parse_number


def without_flags(hint: str | None) -> str | None:
    """Return a hint with the keys of a recipe in place of flags."""
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), hint) if hint else hint


SHARED_KEYS = ("command", "from", "assert", "timeout")
"""The keys of cases and defaults that are not parameters."""

CASE_KEYS = (*SHARED_KEYS, "description", "expect", "accept", "skip", "matrix", "include", "exclude")
"""The keys of a case that are not parameters."""

_WRITTEN = ("output", "card")
SETUP = tuple(name for name in Setup._fields if name not in _WRITTEN)
"""The options of `train` apart from the parameters of its run; a recipe writes no model."""


OF_SCORES = ("scores", "one_run", "threshold", "guesses", "confidence", "seed")
"""The options for scores of canaries, apart from their run."""


class Beside(NamedTuple):
    """A command of a recipe that is answered separately.

    Attributes:
        help: what it answers.
        parameters: those that a case may set.
        keys: of a case that are not parameters.
        gated: whether its budget is a gate.
    """

    help: str
    parameters: tuple[str, ...]
    keys: tuple[str, ...] = ()
    gated: bool = True


BESIDE = {
    "ledger": Beside(
        "several runs, releases and queries about the same records, composed",
        ("adjacency", "group_size", "epsilon", "delta", "solve"), ("entries", "file", "partition"),
    ),
    "convert": Beside(
        "a guarantee in the words of another notion of privacy", (*CONVERTED, "epsilon", "delta", "order"), gated=False
    ),
    "risk": Beside(
        "what an attacker can do against a guarantee", (*STARTS, "epsilon", "delta", *RATES), gated=False
    ),
    "audit": Beside(
        "what scores of canaries prove, beside what is guaranteed",
        (*COMMANDS["compare"].parameters, *QUESTION, *OF_SCORES),
    ),
}  # fmt: skip
"""The commands of a recipe that are answered separately."""

KEYS_OF = {name: command.keys for name, command in BESIDE.items() if command.keys}
UNGATED = frozenset(name for name, command in BESIDE.items() if not command.gated)


def read_command(field: Field, key: str) -> str:
    """Return the command that a field names.

    Raises:
        SpecError: there is no such command.
    """
    name = word(field, key)
    if name not in (*COMMANDS, *BESIDE):
        raise field.node.place.error(f"unknown command {clipped(name)}", near(name, (*COMMANDS, *BESIDE)))
    return name


def parameters_of(command: str) -> tuple[str, ...]:
    """Return the parameters that a case of a command may set."""
    if command in BESIDE:
        return BESIDE[command].parameters
    described = COMMANDS[command]
    setup = SETUP if described.trains else ()
    attacked = () if described.trains or described.prices else ATTACKED
    return (*described.parameters, *QUESTION, *attacked, *(("schedule",) if described.columns else ()), *setup)


def all_parameters() -> set[str]:
    """Return the parameters that some command takes."""
    return {name for command in (*COMMANDS, *BESIDE) for name in parameters_of(command)}


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the hint for an unknown name: the parameter with this flag, or a similar name."""
    listed = sorted(names)
    if why := not_covered(name):
        return why
    meant = meant_by(name, listed)
    return f"did you mean {meant}?{conversion(meant)}" if meant else near(name.replace("-", "_"), listed)


class Setting(NamedTuple):
    """A parameter as written, references followed.

    Attributes:
        place: of its name.
        node: what it is set to.
        origin: the reference that led to the node, or "".
        unread: why the reference could not be followed: an error of the cases that take the parameter.
    """

    place: Place
    node: Node
    origin: str = ""
    unread: Unreadable | None = None

    @property
    def null(self) -> bool:
        """Whether it is set to YAML's null, which removes a default."""
        return isinstance(self.node, Scalar) and self.node.null

    def value(self, name: str, files: Files, choices: tuple[str, ...] | None) -> Any:
        """Return the value.

        Raises:
            SpecError: the value is invalid.
        """
        return self._read(name, files, choices, many=False)

    def values(self, name: str, files: Files, choices: tuple[str, ...] | None) -> list[Any]:
        """Return the list of values.

        Raises:
            SpecError: it is not a list of valid values.
        """
        read: list[Any] = self._read(name, files, choices, many=True)
        return read

    def _read(self, name: str, files: Files, choices: tuple[str, ...] | None, *, many: bool) -> Any:
        if self.unread is not None:
            raise self.unread
        if self.origin:
            return referred(name, self.node, files, choices, self.origin, many=many)
        return several(name, self.node, files, choices) if many else single(name, self.node, files, choices)


def read_settings(body: Table, files: Files) -> dict[str, Setting]:
    """Return the parameters of a mapping: those under its own keys, and those of the mapping that ``from`` names.

    Raises:
        Unreadable: the mapping that ``from`` names cannot be used.
        SpecError: a parameter is set twice, or its value is invalid.
    """
    fields = by_name({name: field for name, field in body.fields.items() if name not in CASE_KEYS})
    own = {name: follow(field.place, field.node, files) for name, field in fields.items()}
    reference: str | None = body.read("from", word)
    if reference is None:
        return own
    place = body.fields["from"].node.place
    mapping = files.value(reference, place)
    if not isinstance(mapping, Table):
        raise Unreadable(place, f"{clipped(reference)} is no mapping of parameters", "write name: {from: file#/path}")
    names = all_parameters()
    for name, field in by_name(mapping.fields).items():
        if name not in names:
            raise Unreadable(
                field.place, f"{clipped(reference)} has a key that is no parameter", "refer to its values one by one"
            )
        if name in own:
            raise own[name].place.error(f"{name} is set here and in {clipped(reference)}", "keep one of the two")
        own[name] = Setting(place, field.node, f"{reference}/{name}")
    return own


def by_name(fields: Mapping[str, Field]) -> dict[str, Field]:
    """Return fields by the names of their parameters; names of other programs are translated.

    Raises:
        FileError: two of them are the same parameter.
    """
    words: dict[str, str] = {}
    for typed, field in fields.items():
        name = name_of(typed)
        if name in words:
            raise field.place.error(f"{name} is set twice, as {words[name]} and as {typed}", "keep one of the two")
        words[name] = typed
    return {name: fields[typed] for name, typed in words.items()}


def follow(place: Place, node: Node, files: Files) -> Setting:
    """Return a setting; ``{from: file#/path}`` is resolved.

    Raises:
        SpecError: it is another mapping, or not a reference.
    """
    if not isinstance(node, Table):
        return Setting(place, node)
    if set(node.fields) != {"from"}:
        raise node.place.error("a value is a mapping", "write a value, or {from: config.yaml#/path}")
    typed, at = node.read("from", word), node.fields["from"].node.place
    try:
        return Setting(place, files.value(typed, at), typed)
    except Unreadable as error:
        return Setting(place, node, typed, error)
