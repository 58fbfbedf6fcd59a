"""The parameters that a case, the defaults or a matrix set: which names there are, and what a reference stands for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.convert import TAKEN as CONVERTED
from dpcalc.engine.premises import STARTS
from dpcalc.files.nodes import Field, Node, Scalar, Table, text
from dpcalc.files.place import Place, clipped, near
from dpcalc.model.parameter import RATES, conversion, meant_by, name_of, not_covered
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.recipes.reading.values import ATTACKED, QUESTION, referred, several, single
from dpcalc.training.rule.setup import Setup

SHARED_KEYS = ("command", "from", "assert", "timeout")
"""The keys that are no parameters and may stand in a case and under defaults."""

CASE_KEYS = (*SHARED_KEYS, "description", "expect", "accept", "skip", "matrix", "include", "exclude")
"""The keys of a case that are no parameters."""

LEDGER_KEYS = ("entries", "file", "partition")
"""The keys of a case of `ledger` that are no parameters."""

SETUP = tuple(name for name in Setup._fields if name not in ("output", "card"))
"""What `train` takes beside the parameters of its run; a recipe writes no model."""


BESIDE = {
    "ledger": ("adjacency", "group_size", "epsilon", "delta", "solve"),
    "convert": (*CONVERTED, "epsilon", "delta", "order"),
    "risk": (*STARTS, "epsilon", "delta", *RATES),
}
"""The commands of a recipe that describe no run, and what a case of them may set."""


def read_command(field: Field | None, otherwise: str) -> str:
    """Return the command that a field names.

    Raises:
        SpecError: there is no such command.
    """
    if field is None:
        return otherwise
    name = text(field.node, "command")
    if name == "audit":
        why = "a recipe takes no audit: what it proves is a lower bound, and gates are on guarantees"
        raise field.node.place.error(
            why, "run `dpcalc audit` beside the check: it exits with 1 where the two contradict"
        )
    if name not in (*COMMANDS, *BESIDE):
        raise field.node.place.error(f"unknown command {clipped(name)}", near(name, (*COMMANDS, *BESIDE)))
    return name


def parameters_of(command: str) -> tuple[str, ...]:
    """Return the parameters that a case of a command may set."""
    if command in BESIDE:
        return BESIDE[command]
    described = COMMANDS[command]
    setup = SETUP if described.trains else ()
    attacked = () if described.trains or described.prices else ATTACKED
    return (*described.parameters, *QUESTION, *attacked, *(("schedule",) if described.columns else ()), *setup)


def all_parameters() -> set[str]:
    """Return the parameters that some command takes."""
    return {name for command in (*COMMANDS, *BESIDE) for name in parameters_of(command)}


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the hint for a name that is unknown: the parameter whose flag it is, or a name that is spelt alike."""
    listed = sorted(names)
    if why := not_covered(name):
        return why
    meant = meant_by(name, listed)
    return f"did you mean {meant}?{conversion(meant)}" if meant else near(name.replace("-", "_"), listed)


class Setting(NamedTuple):
    """A parameter as written, references followed.

    Attributes:
        place: where its name stands.
        node: what it is set to.
        origin: the reference that led to the node, or "".
        unread: why the reference could not be followed: only a case that takes the parameter has that fault.
    """

    place: Place
    node: Node
    origin: str = ""
    unread: Unreadable | None = None

    @property
    def null(self) -> bool:
        """Whether it is set to YAML's null, which takes a default away."""
        return isinstance(self.node, Scalar) and self.node.null

    def value(self, name: str, files: Files, choices: tuple[str, ...] | None) -> Any:
        """Return what is set.

        Raises:
            SpecError: it is not such a value.
        """
        return self._read(name, files, choices, many=False)

    def values(self, name: str, files: Files, choices: tuple[str, ...] | None) -> list[Any]:
        """Return what is set, a list.

        Raises:
            SpecError: it is not a list of such values.
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
        SpecError: a parameter is set twice, or is no value.
    """
    fields = by_name({name: field for name, field in body.fields.items() if name not in CASE_KEYS})
    own = {name: follow(field.place, field.node, files) for name, field in fields.items()}
    if "from" not in body.fields:
        return own
    node = body.fields["from"].node
    place, reference = node.place, text(node, "from")
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
    """Return fields by the names of their parameters, where they have those of other programs.

    Raises:
        FileError: two of them are one parameter.
    """
    words: dict[str, str] = {}
    for word, field in fields.items():
        name = name_of(word)
        if name in words:
            raise field.place.error(f"{name} is set twice, as {words[name]} and as {word}", "keep one of the two")
        words[name] = word
    return {name: fields[word] for name, word in words.items()}


def follow(place: Place, node: Node, files: Files) -> Setting:
    """Return a setting, with the value that it refers to where it is ``{from: file#/path}``.

    Raises:
        SpecError: it is another mapping, or the reference is none.
    """
    if not isinstance(node, Table):
        return Setting(place, node)
    if set(node.fields) != {"from"}:
        raise node.place.error("a value is a mapping", "write a value, or {from: config.yaml#/path}")
    reference = node.fields["from"].node
    typed = text(reference, "from")
    try:
        return Setting(place, files.value(typed, reference.place), typed)
    except Unreadable as error:
        return Setting(place, node, typed, error)
