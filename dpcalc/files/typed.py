"""JSON values as the records that annotations describe: every field has its type, and none is unknown.

Numbers that are not finite are null in JSON, with a field ``reason`` beside them (`dpcalc.inert.strict_json`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from dpcalc.files import Fields


class Garbled(ValueError):
    """A value is not of the expected form."""


# --- JSON -------------------------------------------------------------------------------------------------------------


def loads(text: bytes | str, digits: int = 308) -> Any:
    """Return the value of a JSON text in which no name is repeated and every number is a finite double.

    Args:
        text: the text.
        digits: the most digits of an integer; numbers of 308 digits can be compared with doubles.

    Raises:
        Garbled: it holds something else.
        ValueError, RecursionError: it is no JSON, or is nested too deep.
    """
    import json

    def whole(written: str) -> int:
        if len(written) > digits:
            raise Garbled("a number is too large")
        return int(written)

    return json.loads(text, parse_constant=_constant, parse_int=whole, parse_float=_finite, object_pairs_hook=_once)


def _constant(written: str) -> float:
    raise Garbled(f"{written} is not a number of JSON")


def _finite(written: str) -> float:
    if not math.isfinite(value := float(written)):
        raise Garbled("a number is too large")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object; no name may repeat."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise Garbled("an object has a name twice")
    return fields


# --- records ----------------------------------------------------------------------------------------------------------

_PLAIN: dict[Any, tuple[Any, str]] = {
    str: (str, "a text"), int: (int, "a whole number"), float: ((int, float), "a number"),
    bool: (bool, "a truth value"), list: (list, "a list"), dict: (dict, "an object"),
    float | str: ((int, float, str), "a number or a text"),
}  # fmt: skip


@cache
def reader(kind: Any) -> Callable[[Any], Any]:  # noqa: PLR0911 (one return a kind)
    """Return a reader of values of a kind, which raises ValueError or TypeError for any other value.

    Args:
        kind: a plain type, an enum, a named tuple, a tuple of kinds, or one of these or None; any other kind gives a
            tree.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        return partial(_plain, *_PLAIN[kind])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if hasattr(kind, "_fields"):
        return partial(_record, kind)
    if origin is tuple and inner[-1] is Ellipsis:
        return lambda written: tuple(map(reader(inner[0]), items(written)))
    if origin is tuple:
        return lambda written: tuple(reader(one)(item) for one, item in zip(inner, items(written), strict=True))
    if origin in (Union, UnionType) and NoneType in inner:
        some = reader(Union[tuple(one for one in inner if one is not NoneType)])  # noqa: UP007 (of as many as there are)
        return lambda written: None if written is None else some(written)
    return tree


def _plain(types: Any, what: str, written: Any) -> Any:
    if not isinstance(written, types) or (isinstance(written, bool) and types is not bool):
        raise Garbled(f"{what} is expected")
    return written


items: Callable[[Any], list[Any]] = reader(list)
"""Return the value, which must be a list."""

fields_of: Callable[[Any], dict[str, Any]] = reader(dict)
"""Return the value, which must be an object."""


def _record(kind: Any, written: Any) -> Any:
    return kind(**read_fields(kind, infinite(written)))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def read_fields(kind: Any, fields: Fields) -> dict[str, Any]:
    """Return the fields of a named tuple, read according to its annotations.

    Raises:
        ValueError, TypeError: a field has another type, is unknown, or is missing and has no default.
    """
    hints = _hints(kind)
    if not fields.keys() <= hints.keys():
        raise Garbled(f"{min(fields.keys() - hints.keys())} is not known of a {kind.__name__}")
    if missing := [name for name in kind._fields if name not in fields and name not in kind._field_defaults]:
        raise Garbled(f"{missing[0]} is missing")
    return {name: reader(hints[name])(value) for name, value in fields.items()}


# --- numbers that are not finite --------------------------------------------------------------------------------------

_WORDS = {"infinite": math.inf, "below all numbers": -math.inf, "not a number": math.nan}
_EXACTLY_0 = "delta is exactly 0"


def infinite(written: Any) -> dict[str, Any]:
    """Return an object with its numbers that are not finite, instead of nulls and the reason.

    Raises:
        ValueError, KeyError: the reason names a missing field.
    """
    fields = dict(fields_of(written))
    if not isinstance(fields.get("reason"), str):
        return fields
    for reason in fields.pop("reason").split("; "):
        name, _, words = reason.partition(" is ")
        name, value = ("log_delta", -math.inf) if reason == _EXACTLY_0 else (name, _WORDS[words])
        if fields.get(name, 0) is not None:
            raise Garbled("a reason is given for a number that is there")
        fields[name] = value
    return fields


def tree(written: Any) -> Any:
    """Return a tree with its numbers that are not finite restored."""
    if isinstance(written, dict):
        return {name: tree(value) for name, value in infinite(written).items()}
    return [tree(value) for value in written] if isinstance(written, list) else written
