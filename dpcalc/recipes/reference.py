"""``from: config.yaml#/training/lr``: values of a project's own configuration, and the files a recipe may name.

A recipe may come from anybody. It reads files of its own project alone: no absolute path, and nothing outside the
nearest folder above it that holds a ``.git`` or a ``pyproject.toml`` (or outside its own folder, where none does), also
not through a symbolic link.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.recipes.load import MAX_DEPTH, parse_yaml, read_bytes
from dpcalc.recipes.nodes import KINDS, Field, Items, Node, Place, Scalar, Table, clipped, items, near, repeated

MAX_LINE = 10_000  # of TOML, whose parser takes the square of a key's length
_MARKERS = (".git", "pyproject.toml")


class Files:
    """The files that one recipe may name, each configuration read once."""

    def __init__(self, recipe: str) -> None:
        """Take the path of the recipe, ``-`` for standard input (which stands in the current folder)."""
        self.folder = "" if recipe == "-" else os.path.dirname(recipe)
        self.home = os.path.realpath(self.folder or ".")
        self.root = _project(self.home)
        self._read: dict[str, Node] = {}

    def path(self, name: str, place: Place) -> str:
        """Return the path, from the current folder, of a file that is named relative to the recipe.

        Raises:
            SpecError: it leaves the project.
        """
        cure = f"name a file inside {os.path.basename(self.root) or self.root}, relative to the recipe"
        if not name.strip() or "\0" in name or not name.isprintable():
            raise place.error(f"{clipped(name)} is not a path", cure)
        if os.path.isabs(name) or os.path.splitdrive(name)[0] or name.startswith(("~", "\\")):
            raise place.error(f"{clipped(name)} is an absolute path", cure)
        real = os.path.realpath(os.path.join(self.home, name))
        if os.path.commonpath([real, self.root]) != self.root:
            raise place.error(f"{clipped(name)} leads out of the project", cure)
        return os.path.normpath(os.path.join(self.folder, name))

    def value(self, reference: str, place: Place) -> Node:
        """Return what ``file#/pointer`` (RFC 6901) refers to.

        Raises:
            SpecError: the file is not read, or has no such value.
        """
        name, mark, pointer = reference.partition("#")
        if not mark or not pointer.startswith("/") or len(pointer) > 1000:
            raise place.error(f"{clipped(reference)} is not a reference", "write file#/path, as config.yaml#/train/lr")
        path = self.path(name, place)
        if path not in self._read:
            self._read[path] = _configuration(path, place)
        node = self._read[path]
        for part in pointer[1:].split("/"):
            try:
                node = _child(node, part.replace("~1", "/").replace("~0", "~"))
            except SpecError as error:
                raise place.error(f"{clipped(reference)}: {error.message}", error.hint) from None
        return node


def _project(home: str) -> str:
    """Return the nearest folder at or above ``home`` that is a project's; ``home`` where there is none."""
    folder = home
    while not any(os.path.exists(os.path.join(folder, marker)) for marker in _MARKERS):
        above = os.path.dirname(folder)
        if above == folder:
            return home
        folder = above
    return folder


def _child(node: Node, key: str) -> Node:
    if isinstance(node, Items):
        if key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(node.items):
            return node.items[int(key)]
        raise SpecError(f"no item {clipped(key)} in a list of {len(node.items)}", "items count from 0")
    if isinstance(node, Table):
        found = _field(node, key, set())
        if found is not None:
            return found
        raise SpecError(f"there is no {clipped(key)}", near(key, list(node.fields)[:100]))
    raise SpecError(f"{clipped(key)} is looked for in {KINDS[type(node)]}", "shorten the path")


def _field(node: Node, key: str, seen: set[int]) -> Node | None:
    """Return a mapping's value: its own, or one that YAML's ``<<`` merges into it; each mapping is looked at once."""
    if not isinstance(node, Table) or id(node) in seen:
        return None
    seen.add(id(node))
    if key in node.fields:
        return node.fields[key].node
    merged = node.fields.get("<<")
    sources = items(merged.node) if merged else ()
    return next((found for source in sources if (found := _field(source, key, seen)) is not None), None)


def _configuration(path: str, place: Place) -> Node:
    reader = _READERS.get(os.path.splitext(path)[1].lower())
    if reader is None:
        raise place.error(f"{clipped(path)}: an unknown kind of configuration", f"one of {', '.join(_READERS)}")
    try:
        return reader(path, read_bytes(path, "configuration"))
    except SpecError as error:
        raise place.error(error.message, error.hint) from None
    except RecursionError:
        raise place.error(f"{clipped(path)} is nested too deep") from None


def _yaml(path: str, raw: bytes) -> Node:
    node = parse_yaml(path, raw, foreign=True)
    if node is None:
        raise SpecError(f"{path} is empty")
    return node


class _Literal(str):
    """A number as it was typed."""

    __slots__ = ()


def _json(path: str, raw: bytes) -> Node:
    import json

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = str(repeated(name for name, _ in pairs))
            raise SpecError(f"{path}: {clipped(twice)} is there twice", "keep one")
        return found

    try:
        found = json.loads(
            raw, object_pairs_hook=unique, parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal
        )
    except ValueError as error:
        raise SpecError(f"{path} is not JSON: {error}") from None
    return _node(found, Place(path), MAX_DEPTH)


def _toml(path: str, raw: bytes) -> Node:
    import tomllib

    if max(map(len, raw.splitlines()), default=0) > MAX_LINE:
        raise SpecError(f"{path}: a line is longer than {MAX_LINE} bytes", "break the line")
    try:
        found = tomllib.loads(raw.decode("utf-8"), parse_float=_Literal)
    except ValueError as error:
        raise SpecError(f"{path} is not TOML: {error}") from None
    return _node(found, Place(path), MAX_DEPTH)


def _node(value: Any, place: Place, room: int) -> Node:
    """Return a value of JSON or TOML as a node."""
    if room < 0:
        raise SpecError(f"{place.file} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        return Table(place, {str(name): Field(place, _node(v, place, room - 1)) for name, v in value.items()})
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Items(place, tuple(_node(v, place, room - 1) for v in value))
    if value is None or isinstance(value, bool):
        return Scalar(place, "null" if value is None else str(value).lower())
    return Scalar(place, str(value), not isinstance(value, str) or isinstance(value, _Literal))


_READERS: dict[str, Callable[[str, bytes], Node]] = {".yaml": _yaml, ".yml": _yaml, ".json": _json, ".toml": _toml}
