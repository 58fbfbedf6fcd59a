"""Whether a document conforms to a JSON schema: the part of the language that the schema of cards is written in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
KEYWORDS = frozenset(
    (
        "$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum", "pattern", "maxLength",
        "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "anyOf",
    )
)  # fmt: skip
"""The words that a schema may use; others would be passed over."""


def objection(document: Any, schema: Mapping[str, Any]) -> str:
    """Return the first thing in which a document differs from a schema, with its place; empty where it conforms.

    >>> objection({"a": 1, "b": 2}, {"type": "object", "properties": {"a": {}}, "additionalProperties": False})
    '/b: a field that is not known'
    """
    return next(_objections(document, schema, schema, ""), "")


def _objections(value: Any, part: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if "$ref" in part:
        yield from _objections(value, schema["$defs"][part["$ref"].removeprefix("#/$defs/")], schema, place)
        return
    if "anyOf" in part:
        found = [next(_objections(value, each, schema, place), "") for each in part["anyOf"]]
        if all(found):
            yield found[-1] if value is None else found[0]
        return
    types = part.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[name](value) for name in types):
        yield f"{place or '/'}: is not {' or '.join(types)}"
        return
    if "const" in part and value != part["const"]:
        yield f"{place}: must be {part['const']}"
    if "enum" in part and value not in part["enum"]:
        yield f"{place}: must be one of {', '.join(part['enum'])}"
    if isinstance(value, str):
        yield from _text(value, part, place)
    elif isinstance(value, list):
        if not part.get("minItems", 0) <= len(value) <= part.get("maxItems", len(value)):
            yield f"{place}: has {len(value)} items"
        for number, item in enumerate(value):
            yield from _objections(item, part.get("items", {}), schema, f"{place}/{number}")
    elif isinstance(value, dict):
        yield from _fields(value, part, schema, place)


def _text(value: str, part: Mapping[str, Any], place: str) -> Iterator[str]:
    if len(value) > part.get("maxLength", len(value)):
        yield f"{place}: longer than {part['maxLength']} characters"
    elif "pattern" in part and not re.search(part["pattern"].replace("$", r"\Z"), value):
        yield f"{place}: is not {part['pattern']}"


def _fields(value: dict[str, Any], part: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    known, others = part.get("properties", {}), part.get("additionalProperties", True)
    yield from (f"{place}/{name}: is missing" for name in part.get("required", ()) if name not in value)
    for name, field in value.items():
        if name not in known and others is False:
            yield f"{place}/{name}: a field that is not known"
        elif name in known or isinstance(others, dict):
            yield from _objections(field, known.get(name, others), schema, f"{place}/{name}")
