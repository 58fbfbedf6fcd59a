"""The JSON schema of recipes: the shipped frame, with every command's parameters filled in from their records."""

from __future__ import annotations

import json
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import QUANTITIES
from dpcalc.model.parameter import EVERY, name_of, synonyms
from dpcalc.recipes.judging.exceptions import EXCEPTIONS
from dpcalc.recipes.reading.settings import BESIDE, parameters_of
from dpcalc.recipes.reading.values import COUNTS, FRACTIONS, MANY, SWITCHES, may_be_referred
from dpcalc.references import read

_BESIDE = (
    "ledger: several runs, releases and queries about the same records, composed",
    "convert: a guarantee in the words of another notion of privacy",
    "risk: what an attacker can do against a guarantee",
)


def recipe_schema() -> dict[str, Any]:
    """Return the schema of ``recipe/1`` (JSON Schema 2020-12)."""
    schema: dict[str, Any] = json.loads(read("recipe-1.schema.json"))
    names = dict.fromkeys(name for command in (*COMMANDS, *BESIDE) for name in parameters_of(command))
    words = [*names, *(word for word in synonyms() if name_of(word) in names)]
    schema["$defs"]["command"] = {
        "enum": [*COMMANDS, *BESIDE],
        "description": "; ".join((*(f"{command.name}: {command.help}" for command in COMMANDS.values()), *_BESIDE)),
    }
    exception = {"enum": list(EXCEPTIONS)}
    several = {"type": "array", "minItems": 1, "uniqueItems": True, "items": exception}
    meanings = "; ".join(f"{name}: {meaning}" for name, meaning in EXCEPTIONS.items())
    schema["$defs"]["accept"] = {
        "description": f"what the gates hold in spite of. {meanings}",
        "anyOf": [exception, several],
    }
    schema["$defs"]["expect"]["propertyNames"] = {"enum": ["tolerance", "error", *QUANTITIES]}
    schema["$defs"]["settings"] = {"properties": {word: _setting(name_of(word)) for word in words}}
    schema["$defs"]["varied"] = {
        "properties": {word: _axis(name_of(word)) for word in words}, "additionalProperties": False,
    }  # fmt: skip
    return schema


def _setting(name: str) -> dict[str, Any]:
    several = [{"type": "array", "items": _value(name)}] if name in MANY else []
    kinds = [_value(name), *_referred(name), {"type": "null"}, *several]
    return {"description": _help(name), "anyOf": kinds}


def _axis(name: str) -> dict[str, Any]:
    kinds = [_value(name), *_referred(name), {"type": "array", "minItems": 1, "items": _value(name)}]
    return {"description": _help(name), "anyOf": kinds}


def _referred(name: str) -> list[dict[str, Any]]:
    return [{"$ref": "#/$defs/referred"}] if may_be_referred(name) else []


def _value(name: str) -> dict[str, Any]:
    if name == "algorithm":
        return {"enum": list(dict.fromkeys(word for command in COMMANDS.values() for word in command.algorithms))}
    if name in SWITCHES:
        return {"type": "boolean"}
    if name in (*COUNTS, *FRACTIONS):
        return {"$ref": "#/$defs/number"}
    if name not in EVERY:
        return {"type": "string"}
    return {"enum": list(EVERY[name].choices)} if EVERY[name].choices else {"$ref": "#/$defs/number"}


def _help(name: str) -> str:
    if name in EVERY:
        return EVERY[name].help
    return {"schedule": "file of per-step values", "solve": "parameter to solve for"}.get(name, name)
