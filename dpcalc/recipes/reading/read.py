"""Reading a recipe: its text to its cases, every mistake with its place.

Nothing is evaluated here, so that a recipe with a mistake in it is refused before any of its numbers is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpcalc.files.documents import Node, Rules, Table, mapping, parse_yaml, truth
from dpcalc.files.place import FileError, Place, clipped
from dpcalc.files.reading import document_place
from dpcalc.model.numbers import MAX_SWEEP
from dpcalc.recipes.reading.case import Defaults, read_case, read_timeout
from dpcalc.recipes.reading.gates import read_gates
from dpcalc.recipes.reading.matrix import MAX_CASES, check_comparisons
from dpcalc.recipes.reading.recipe import LENIENT, Cases, Entry, Malformed, Policy, Recipe, body_of, refuse_keys
from dpcalc.recipes.reading.reference import Files, Unreadable
from dpcalc.recipes.reading.settings import (
    CASE_KEYS,
    SHARED_KEYS,
    all_parameters,
    read_command,
    read_settings,
    suggestion,
)

VERSION = "recipe/1"
MAX_ERRORS = 20
"""How many mistakes are looked for before a recipe is refused."""

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
        documents: what stands in the recipe and in the files that it refers to, where it was read elsewhere.
        policy: what is demanded of its cases; the recipe itself may demand that all of that is strict.

    Raises:
        Malformed: it is not one; the first `MAX_ERRORS` mistakes are named.
    """
    try:
        files = Files(path, documents)
        shown = str(document_place(path))
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
    """Return the cases that each case of the text stands for, and what is wrong."""
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
