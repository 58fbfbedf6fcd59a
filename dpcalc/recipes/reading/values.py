"""A parameter's value from its text: the number grammar of the command line, and none of YAML 1.1's surprises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.files.nodes import KINDS, Items, Node, Scalar, items, repeated, text
from dpcalc.files.place import clipped
from dpcalc.model.numbers import MAX_SWEEP, parse_delta, parse_integer, parse_number, parse_sweep
from dpcalc.model.parameter import EVERY, RATES, TARGETS, check
from dpcalc.model.quantities import Quantity
from dpcalc.recipes.reading.reference import Files, Unreadable

PATHS = ("schedule", "data", "ranges")
"""Parameters that name a file: relative to the recipe, inside its project."""

COUNTS = ("seed", "replicas", "workers")
"""Whole numbers of training that no bound asks for."""

FRACTIONS = ("test_fraction",)
SWITCHES = ("intercept", "reference")

BOOLEANS = {"true": True, "false": False}
"""How a recipe writes yes and no."""

QUESTION = ("epsilon", "delta", "order", "solve")
"""What a case asks; everything else describes what is run."""

ATTACKED = (*TARGETS, *RATES)
"""What a case asks about attacks, where it is of one run."""

MANY = ("order", "ignore", "labels", "rdp", "target_range", *RATES)
"""Parameters that a case may give several values of."""

MAX_TEXT = 1000
"""Characters of one value: it is repeated in the names of cases, and in every report."""

_OCTAL = re.compile(r"[+-]?0[0-9_]+")
_LONGEST = MAX_SWEEP * 20


class Delta(NamedTuple):
    """A delta as typed: its double (never 0) and its exact logarithm."""

    value: float
    log: float

    def __str__(self) -> str:
        return repr(self.value) if self.log > -690.0 else f"e^{self.log!r}"


def referred(name: str, node: Node, files: Files, choices: tuple[str, ...] | None, origin: str, *, many: bool) -> Any:
    """Return the value, or with ``many`` the values, of a parameter that stands in another file.

    A number, a word that the parameter knows, or the path of a file of the project: nothing else is taken, so that no
    message can show a text that was never meant for a log.

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
    """Return whether a parameter's value may stand in another file: it is no free text."""
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
    """Return the value of a parameter that is set once; a tuple for ``order``.

    Args:
        name: the parameter.
        node: what was written.
        files: for parameters that name a file.
        choices: the words allowed, where they are fewer than those of the parameter.
        origin: the reference it came by, if it did.

    Raises:
        SpecError: it is not such a value; the message says where.
    """
    if name in MANY:
        return tuple(_one(name, item, files, choices, origin) for item in items(node))
    if isinstance(node, Items):
        raise node.place.error(f"{name} is a list", f"to try several values, put them under matrix: {name}: [...]")
    return _one(name, node, files, choices, origin)


def several(name: str, node: Node, files: Files, choices: tuple[str, ...] | None = None, origin: str = "") -> list[Any]:
    """Return the values of a parameter that is varied: a list, of which an item may be a range ``1:10:0.5``.

    Raises:
        SpecError: as `single`, or there is none, or one is there twice.
    """
    values: list[Any] = []
    for place, item in enumerate(items(node)):
        if isinstance(item, Scalar) and ":" in item.text and _is_number(name):
            values += _sweep(name, item)
        else:
            values.append(_one(name, item, files, choices, origin and f"{origin}/{place}"))
        if len(values) > MAX_SWEEP:
            raise item.place.error(f"more than {MAX_SWEEP} values of {name}", "use fewer")
    if not values:
        raise node.place.error(f"{name} has no values", f"write {name}: [1, 2], or leave it out")
    if len(set(values)) < len(values):
        raise node.place.error(f"{name} has the value {repeated(values)} twice", "keep one")
    return values


def _is_number(name: str) -> bool:
    if name in EVERY:
        return not EVERY[name].choices
    return name in (*COUNTS, *FRACTIONS)


def _one(name: str, node: Node, files: Files, choices: tuple[str, ...] | None, origin: str) -> Any:
    typed = text(node, name).strip(" ")
    assert isinstance(node, Scalar)
    if node.null:
        raise node.place.error(f"{name} is null", "null takes away a default of a case, and stands nowhere else")
    if len(typed) > MAX_TEXT:
        raise node.place.error(f"{name} has {len(typed)} characters", f"at most {MAX_TEXT}")
    if name in PATHS:
        shipped = name == "data" and typed.startswith("example:")
        if shipped and origin:
            from dpcalc.training.data.tables import example_of

            example_of(typed)  # a name that is not known would be shown later
        return typed if shipped else files.path(typed, node.place, origin)
    if name in SWITCHES:
        if typed not in BOOLEANS:
            raise node.place.error(f"{name} is {typed!r}; it must be true or false")
        return BOOLEANS[typed]
    if not _is_number(name):
        return _word(name, node, typed, choices)
    return _number(name, node, typed)


def _word(name: str, node: Scalar, typed: str, choices: tuple[str, ...] | None) -> str:
    if name not in EVERY:
        return typed
    if choices is not None and typed not in choices and typed in EVERY[name].choices:
        raise node.place.error(f"{name} is {typed!r}; here it must be one of {', '.join(choices)}")
    try:
        return str(check(name, typed))
    except SpecError as error:
        raise node.place.error(error.message, error.hint) from None


def _number(name: str, node: Scalar, typed: str) -> Any:
    if _OCTAL.fullmatch(typed):
        raise node.place.error(
            f"{name} is {typed}, which some YAML readers take for {int(typed.replace('_', ''))} and some for an octal",
            "write it without the leading zero",
        )
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
    """Return a hint with the keys of a recipe where it names flags."""
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda flag: flag[1].replace("-", "_"), hint) if hint else hint
