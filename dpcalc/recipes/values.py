"""A parameter's value from its text: the number grammar of the command line, and none of YAML 1.1's surprises."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.recipes.nodes import Items, Node, Scalar, items, repeated, text
from dpcalc.recipes.reference import Files
from dpcalc.spec.numbers import MAX_SWEEP, parse_delta, parse_integer, parse_number, parse_sweep
from dpcalc.spec.symbols import SYMBOLS, check

PATHS = ("schedule", "data", "ranges")
"""Parameters that name a file: relative to the recipe, inside its project."""

COUNTS = ("seed", "replicas", "workers")
"""Whole numbers of training that no bound asks for."""

QUESTION = ("epsilon", "delta", "order", "solve")
"""What a case asks; everything else describes what is run."""

MANY = ("order", "ignore")
"""Parameters that a case may give several values of."""

_OCTAL = re.compile(r"[+-]?0[0-9_]+")
_LONGEST = MAX_SWEEP * 20


class Delta(NamedTuple):
    """A delta as typed: its double (never 0) and its exact logarithm."""

    value: float
    log: float

    def __str__(self) -> str:
        return repr(self.value) if self.log > -690.0 else f"e^{self.log!r}"


class Setting(NamedTuple):
    """A value of one parameter, and the reference it came by, if it did."""

    value: Any
    origin: str = ""


def single(name: str, node: Node, files: Files, words: tuple[str, ...] | None = None) -> Any:
    """Return the value of a parameter that is set once; a tuple for ``order``.

    Args:
        name: the parameter.
        node: what was written.
        files: for parameters that name a file.
        words: the words allowed, where they are fewer than the parameter knows.

    Raises:
        SpecError: it is not such a value; the message says where.
    """
    if name in MANY:
        return tuple(_one(name, item, files, words) for item in items(node))
    if isinstance(node, Items):
        raise node.place.error(f"{name} is a list", f"to try several values, put them under matrix: {name}: [...]")
    return _one(name, node, files, words)


def several(name: str, node: Node, files: Files, words: tuple[str, ...] | None = None) -> list[Any]:
    """Return the values of a parameter that is varied: a list, of which an item may be a range ``1:10:0.5``.

    Raises:
        SpecError: as `single`, or there is none, or one is there twice.
    """
    found: list[Any] = []
    for item in items(node):
        if isinstance(item, Scalar) and ":" in item.text and _is_number(name):
            found += _sweep(name, item)
        else:
            found.append(_one(name, item, files, words))
        if len(found) > MAX_SWEEP:
            raise item.place.error(f"more than {MAX_SWEEP} values of {name}", "use fewer")
    if not found:
        raise node.place.error(f"{name} has no values", f"write {name}: [1, 2], or leave it out")
    if len(set(found)) < len(found):
        raise node.place.error(f"{name} has the value {repeated(found)} twice", "keep one")
    return found


def _is_number(name: str) -> bool:
    if name in SYMBOLS:
        return not SYMBOLS[name].choices
    return name in COUNTS or name == "test_fraction"


def _one(name: str, node: Node, files: Files, words: tuple[str, ...] | None) -> Any:
    typed = text(node, name).strip(" ")
    assert isinstance(node, Scalar)
    if node.null:
        raise node.place.error(f"{name} is null", "null takes away a default of a case, and stands nowhere else")
    if name in PATHS:
        return typed if typed.startswith("example:") else files.path(typed, node.place)
    if name == "intercept":
        if typed not in ("true", "false"):
            raise node.place.error(f"intercept is {typed!r}; it must be true or false")
        return typed == "true"
    if not _is_number(name):
        return _word(name, node, typed, words)
    return _number(name, node, typed)


def _word(name: str, node: Scalar, typed: str, words: tuple[str, ...] | None) -> str:
    if name not in SYMBOLS:
        return typed
    if words is not None and typed not in words and typed in SYMBOLS[name].choices:
        raise node.place.error(f"{name} is {typed!r}; here it must be one of {', '.join(words)}")
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
        if name == "delta":
            return Delta(*parse_delta(typed))
        value = _parser(name)(typed)
        return check(name, value) if name in SYMBOLS else value
    except SpecError as error:
        raise node.place.error(f"{name}: {error.message}", in_words(error.hint)) from None


def _sweep(name: str, node: Scalar) -> list[Any]:
    if len(node.text) > _LONGEST:
        raise node.place.error(f"{name}: a range of {len(node.text)} characters is too long")
    try:
        values = parse_sweep(node.text, _parser(name))
        if name == "delta":
            return [Delta(*parse_delta(repr(v))) for v in values]
        return [check(name, v) for v in values] if name in SYMBOLS else values
    except SpecError as error:
        raise node.place.error(f"{name}: {error.message}", in_words(error.hint)) from None


def _parser(name: str) -> Callable[[str], float]:
    integer = SYMBOLS[name].integer if name in SYMBOLS else name in COUNTS
    return parse_integer if integer else parse_number


def in_words(hint: str | None) -> str | None:
    """Return a hint that speaks of flags in a recipe's words."""
    return re.sub(r"--([a-z][a-z0-9-]*)", lambda found: found[1].replace("-", "_"), hint) if hint else hint
