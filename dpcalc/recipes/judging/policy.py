"""Parse policy files into rules, every mistake with its place."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate, parse, refuse_vacuous
from dpcalc.files.documents import Field, Rules, Scalar, Table, items, mapping, parse_yaml, table, text, truth, word
from dpcalc.files.place import Place, clipped, near
from dpcalc.files.reading import read_document
from dpcalc.inert import printable
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.numbers import parse_integer
from dpcalc.model.parameter import PARAMETERS, check
from dpcalc.model.quantities import ATTACKS, Kind
from dpcalc.recipes.judging.objections import EXCEPTIONS
from dpcalc.recipes.reading.recipe import Entry, Policy, Recipe, Rule, trains
from dpcalc.recipes.reading.settings import BESIDE

VERSION = "policy/1"
KEYS = ("dpcalc", "description", "defaults", "cases")
LIMITS = ("epsilon", "delta", "mu", *ATTACKS)
RULE_KEYS = (
    *LIMITS, "adjacency", "commands", "kinds", "records", "group_size", "accept", "strict", "certified", "required",
)  # fmt: skip
DESCRIBED = tuple(name for name, command in COMMANDS.items() if not command.prices)
"""The commands about runs, allowed by default. Ledgers are not: their entries may be bare numbers."""

BY_SHIFT, AS_GIVEN = "by-shift", "as-given"
"""The adjacencies of answers that compare no data sets: of `shifted`, and of commands that convert a guarantee."""

_LONGEST = 100  # characters of a pattern
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"  # days in this form are compared as text
_PATTERN = re.compile(f"[A-Za-z0-9_*?-]{{1,{_LONGEST}}}")
_SYNTAX = Rules(anchor_hint="put what rules share under defaults", depth_hint="a policy needs four levels")


def read_policy(path: str, *, strict: bool = False, today: datetime.date | None = None) -> Policy:
    """Return the policy in a file.

    Args:
        path: of the file.
        strict: whether every rule is strict, whatever it says.
        today: the date on which exceptions are judged; None: the current one (UTC).

    Raises:
        SpecError: it is not a policy; the message says where.
    """
    day = (today or datetime.datetime.now(datetime.UTC).date()).isoformat()
    raw = read_document(path, "policy")
    shown = str(Place(path))
    dates = re.findall(_DAY, repr(parse_yaml(shown, raw, _SYNTAX)))  # as parsed, escapes undone
    passed = max((date for date in dates if date < day), default="")  # the same on most days
    return again(json.dumps([shown, raw.decode("latin-1"), passed, strict]))


def policy_of(path: str | None, *, strict: bool) -> Policy:
    """Return the policy in a file, or the built-in one."""
    return Policy(strict=strict, source=json.dumps(strict)) if path is None else read_policy(path, strict=strict)


def again(source: str) -> Policy:
    """Rebuild from its ``source`` a policy that another process read."""
    document = json.loads(source)
    if isinstance(document, bool):
        return Policy(strict=document, source=source)
    shown, raw, passed, strict = document
    node = parse_yaml(shown, raw.encode("latin-1"), _SYNTAX)
    if node is None:
        raise Place(shown).error("is empty", f"a policy starts with dpcalc: {VERSION}")
    top = table(node, "the policy")
    if top.read("dpcalc", word) != VERSION:
        raise top.place.error("this is not a policy", f"start with dpcalc: {VERSION}")
    _check_keys(top, KEYS)
    top.read("description", word)
    shared: Mapping[str, Field] = top.read("defaults", _fields, {})
    cases: Table = top.read("cases", mapping, Table(top.place, {}))
    if not cases.fields:
        raise top.place.error("there are no rules", "write them under cases:, each with a pattern of names")
    rules = {pattern: _rule(pattern, one, shared, passed) for pattern, one in cases.fields.items()}
    for number, pattern in enumerate(rules):
        if earlier := next((other for other in list(rules)[:number] if _covers(other, pattern)), None):
            raise cases.fields[pattern].place.error(
                f"rule {pattern} is never reached: {earlier} fits all its names", f"write {pattern} before {earlier}"
            )
    return Policy(top.fields["cases"].place, rules, strict, source)


def _covers(one: str, other: str) -> bool:
    """Return whether a pattern fits every name that another one fits.

    The names that are tried hold a letter of no pattern, which wildcards alone fit, for every wildcard of the other.
    """
    names = (other.replace("?", "\0").replace("*", "\0" * count) for count in (0, _LONGEST + 1))
    return all(fnmatchcase(name, one) for name in names)


def _check_keys(body: Table, names: Sequence[str]) -> None:
    for name, field in body.fields.items():
        if name.partition("@")[0] not in names:
            raise field.place.error(f"unknown key {clipped(name)}", near(name, names))


def _fields(field: Field, what: str) -> Mapping[str, Field]:
    body = table(field.node, what)
    _check_keys(body, RULE_KEYS)
    return body.fields


def _rule(pattern: str, field: Field, shared: Mapping[str, Field], passed: str) -> Rule:
    if not _PATTERN.fullmatch(pattern):
        raise field.place.error(
            f"{clipped(pattern)} is no pattern of names", "letters, digits, - and _; * stands for any, ? for one"
        )
    fields = {**shared, **_fields(field, f"rule {pattern}")}
    fields = {key: one for key, one in fields.items() if not (isinstance(one.node, Scalar) and one.node.null)}
    body = Table(field.place, fields)
    gates = {key: _limit(key, one) for key, one in fields.items() if key.partition("@")[0] in LIMITS}
    limits = tuple(gates.values())
    names = {gate.name for gate in limits}
    if (not names - {"epsilon", "delta"} and len(names) < 2) or names & {"epsilon", "delta"} == {"epsilon"}:
        raise field.place.error(
            f"rule {pattern} limits no budget", "give epsilon and delta, or mu, advantage or tpr@RATE"
        )
    adjacency: tuple[str, ...] | None = body.read("adjacency", _adjacencies)
    if adjacency is None:
        raise field.place.error(f"rule {pattern} has no adjacency", "write, for example, adjacency: replace-one")
    strict: bool = body.read("strict", truth, True)
    allowed: Mapping[str, bool] = body.read("accept", partial(_exceptions, passed), {})
    kinds = [str(kind) for kind in Kind if kind.guarantee]
    places = {key: one.place for key, one in fields.items()}
    places.update((gate.text, fields[key].place) for key, gate in gates.items())
    return Rule(
        place=field.place, strict=strict, certified=body.read("certified", truth, strict),
        required=body.read("required", truth, False), limits=limits, adjacency=adjacency,
        commands=body.read("commands", partial(_listed, (*COMMANDS, *BESIDE)), DESCRIBED),
        kinds=body.read("kinds", partial(_listed, kinds), tuple(kinds)),
        records=body.read("records", _count), group_size=body.read("group_size", _count, 1),
        accept=tuple(name for name, holds in allowed.items() if holds),
        expired=tuple(name for name, holds in allowed.items() if not holds), places=places,
    )  # fmt: skip


def _limit(key: str, field: Field) -> Gate:
    """Return the limit that a key sets.

    Raises:
        SpecError: it is invalid, or every answer keeps it, or none does.
    """
    with field.place.blamed():
        gate = parse(f"{key} <= {word(field, key)}")
        refuse_vacuous(gate)
    if isinstance(gate.limit, float) and gate.limit < 0.0:
        raise field.place.error(f"no answer keeps {gate.text}", "write a number that is not negative")
    return gate


def _words(field: Field, key: str) -> list[str]:
    words = [text(node, key) for node in items(field.node)]
    if not words:
        raise field.place.error(f"{key} is an empty list", "name what is allowed")
    return words


def _adjacencies(field: Field, key: str) -> tuple[str, ...]:
    with field.place.blamed(f"{key}: "):
        return tuple(
            word if word in (BY_SHIFT, AS_GIVEN) else str(check("adjacency", word)) for word in _words(field, key)
        )


def _listed(names: Sequence[str], field: Field, key: str) -> tuple[str, ...]:
    words = tuple(_words(field, key))
    for typed in words:
        if typed not in names:
            raise field.place.error(f"{key}: unknown {clipped(typed)}", near(typed, names))
    return words


def _count(field: Field, key: str) -> int:
    with field.place.blamed(f"{key}: "):
        count = parse_integer(word(field, key))
    if count < 1:
        raise field.place.error(f"{key} is {count}; it must be at least 1", "write a whole number")
    return count


def _exceptions(passed: str, field: Field, key: str) -> dict[str, bool]:
    """Return the exceptions, each with whether it is allowed or has expired."""
    allowed: dict[str, bool] = {}
    for name, one in mapping(field, key).fields.items():
        if name not in EXCEPTIONS:
            raise one.place.error(f"accept: there is no exception {clipped(name)}", near(name, EXCEPTIONS))
        day = text(one.node, name)
        try:
            datetime.date.fromisoformat(day if re.fullmatch(_DAY, day) else "")
        except ValueError:
            raise one.place.error(f"{name}: {clipped(day)} is no day", "the last one, such as 2030-12-31") from None
        allowed[name] = day > passed
    return allowed


def drafted(recipe: Recipe) -> str:
    """Draft a policy for the cases of a recipe: each required, with the budget that it asserts."""
    lines = [
        f"# Written by `dpcalc init --policy` from {printable(recipe.file)}: read it before you rely on it.",
        f"dpcalc: {VERSION}",
        "cases:  # the first pattern of names that fits counts; a case that none fits fails",
    ]
    for group, entries in recipe.made.items():
        limits = {gate.gate.name: gate.gate.limit for gate in entries[0].gates if gate.gate.at_most and not gate.terms}
        question = entries[0].question
        epsilon, delta = limits.get("epsilon", question.epsilon), limits.get("delta", question.delta)
        ledger = entries[0].parameters.get("ledger")
        runs = [one.command for one in ledger.entries if one.command] if ledger else []
        lines += [
            f"  {group}:",
            "    required: true",
            "    epsilon: 1  # write your budget" if epsilon is None else f"    epsilon: {epsilon!r}",
            "    delta: 1e-6  # write your budget" if delta is None else f"    delta: {delta!r}",
            f"    adjacency: {_adjacency_of(entries[0])}",
            f"    commands: [{', '.join(dict.fromkeys((entries[0].command, *runs)))}]",
        ]
        if any(map(trains, (entries[0].command, *runs))):
            lines.append("    certified: false  # a number of train is not")
    return "\n".join(lines) + "\n"


def _adjacency_of(entry: Entry) -> str:
    """Return the adjacency of a case's answer."""
    if (ledger := entry.parameters.get("ledger")) is not None:
        return str(ledger.adjacency)
    if entry.command in BESIDE:
        return AS_GIVEN
    algorithm = entry.parameters.get("algorithm") or COMMANDS[entry.command].algorithms[0]
    return str(entry.parameters.get("adjacency") or ALGORITHMS[algorithm].defaults.get("adjacency", BY_SHIFT))


def policy_schema() -> dict[str, Any]:
    """Return the schema of ``policy/1`` (JSON Schema 2020-12)."""

    def some(names: Sequence[str]) -> dict[str, Any]:
        one = {"enum": list(names)}
        return {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}

    number = {"type": ["number", "string", "null"]}
    rule: dict[str, Any] = {
        "type": "object",
        "properties": {
            **{name: number for name in (*LIMITS, "records", "group_size") if not ATTACKS.get(name)},
            "adjacency": some([*PARAMETERS["adjacency"].choices, "zero-out", BY_SHIFT, AS_GIVEN]),
            "commands": some([*COMMANDS, *BESIDE]),
            "kinds": some([str(kind) for kind in Kind if kind.guarantee]),
            "accept": {"type": "object", "propertyNames": {"enum": list(EXCEPTIONS)},
                       "additionalProperties": {"type": "string", "format": "date"}},
            **{name: {"type": "boolean"} for name in ("strict", "certified", "required")},
        },
        "patternProperties": {f"^({'|'.join(name for name in ATTACKS if ATTACKS[name])})@": number},
        "additionalProperties": False,
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "dpcalc.policy/1",
        "title": "dpcalc policy",
        "description": "What `dpcalc check --policy` allows, whatever the recipes assert.",
        "type": "object",
        "required": ["dpcalc", "cases"],
        "additionalProperties": False,
        "properties": {
            "dpcalc": {"const": VERSION},
            "description": {"type": "string"},
            "defaults": rule,
            "cases": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": f"^{_PATTERN.pattern}$"},
                      "additionalProperties": rule},
        },
    }  # fmt: skip
