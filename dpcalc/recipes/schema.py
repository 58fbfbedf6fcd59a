"""The JSON schema of recipes: the shipped frame, with every command's parameters filled in from their records."""

from __future__ import annotations

import json
from typing import Any

from dpcalc.commands import COMMANDS
from dpcalc.gate import QUANTITIES
from dpcalc.recipes.expand import vocabulary
from dpcalc.recipes.values import COUNTS, MANY
from dpcalc.references import read
from dpcalc.spec.symbols import SYMBOLS


def recipe_schema() -> dict[str, Any]:
    """Return the schema of ``recipe/1`` (JSON Schema 2020-12)."""
    schema: dict[str, Any] = json.loads(read("recipe-1.schema.json"))
    names = dict.fromkeys(name for command in COMMANDS for name in vocabulary(command))
    schema["$defs"]["command"] = {
        "enum": list(COMMANDS),
        "description": "; ".join(f"{command.name}: {command.help}" for command in COMMANDS.values()),
    }
    schema["$defs"]["expect"]["propertyNames"] = {"enum": ["tolerance", "error", *QUANTITIES]}
    schema["$defs"]["settings"] = {"properties": {name: _setting(name) for name in names}}
    schema["$defs"]["varied"] = {
        "properties": {name: _axis(name) for name in names}, "additionalProperties": False,
    }  # fmt: skip
    return schema


def _setting(name: str) -> dict[str, Any]:
    several = [{"type": "array", "items": _value(name)}] if name in MANY else []
    kinds = [_value(name), {"$ref": "#/$defs/referred"}, {"type": "null"}, *several]
    return {"description": _help(name), "anyOf": kinds}


def _axis(name: str) -> dict[str, Any]:
    kinds = [_value(name), {"$ref": "#/$defs/referred"}, {"type": "array", "minItems": 1, "items": _value(name)}]
    return {"description": _help(name), "anyOf": kinds}


def _value(name: str) -> dict[str, Any]:
    if name == "algorithm":
        return {"enum": list(dict.fromkeys(word for command in COMMANDS.values() for word in command.algorithms))}
    if name == "intercept":
        return {"type": "boolean"}
    if name in (*COUNTS, "test_fraction"):
        return {"$ref": "#/$defs/number"}
    if name not in SYMBOLS:
        return {"type": "string"}
    return {"enum": list(SYMBOLS[name].choices)} if SYMBOLS[name].choices else {"$ref": "#/$defs/number"}


def _help(name: str) -> str:
    if name in SYMBOLS:
        return SYMBOLS[name].help
    return {"schedule": "file of per-step values", "solve": "parameter to solve for"}.get(name, name)
