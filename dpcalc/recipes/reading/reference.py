"""References such as ``from: config.yaml#/training/lr``, and the files that a recipe may name.

A recipe may come from anybody. It only reads files of its own project: no absolute path, and nothing outside the
nearest folder above it with a ``.git`` or a ``pyproject.toml`` (or outside its own folder, if there is none), also
not through a symbolic link. No error quotes such a file: whoever sees the error may not see the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM, reading
from dpcalc.files.documents import KINDS, Items, Node, Rules, Table, items, parse_json, parse_toml, parse_yaml
from dpcalc.files.place import FileError, LeavesProject, Place, ProjectFile, clipped, ending, inside, project_of
from dpcalc.files.reading import read_document


class Unreadable(FileError):
    """An unusable file or value, which is an error of the cases that refer to it."""


class Files:
    """The files that one recipe may name, each configuration read once."""

    def __init__(self, recipe: str, documents: Mapping[str, bytes] | None = None) -> None:
        """Take the path of the recipe, ``-`` for standard input (which stands in the current folder).

        ``documents`` has the contents of files read elsewhere, by name: then no other file is read.

        Raises:
            SpecError: the recipe is a link that leads out of its project.
        """
        self.folder = "" if recipe == STANDARD_STREAM else os.path.dirname(recipe)
        try:
            self.home = os.path.realpath(self.folder or ".")
            self.root = project_of(self.folder or ".")
            self.recipe = recipe if recipe == STANDARD_STREAM else inside(self.root, recipe, recipe)
        except LeavesProject:
            raise Place(recipe).error(
                f"the recipe leads out of the project {self._project}", "name the file that the link leads to"
            ) from None
        except ValueError:
            raise Place(recipe).error("is not a path", "give the path of a recipe") from None
        self._read: dict[tuple[str, ...], Node | SpecError] = {}
        self.documents, self._given = dict(documents or {}), documents is not None
        self._bytes, self._lookups = reading.CONFIGURATION_BYTES, reading.CONFIGURATION_LOOKUPS

    @property
    def _project(self) -> str:
        return os.path.basename(self.root) or self.root

    def path(self, name: str, place: Place, origin: str = "") -> ProjectFile:
        """Return a file named relative to the recipe; messages show ``origin`` if the name came by a reference.

        Raises:
            SpecError: it leaves the project, or is not a path.
        """
        cure = f"name a file inside {self._project}, relative to the recipe"
        shown = f"the path in {clipped(origin)}" if origin else clipped(name)
        absolute = os.path.isabs(name) or os.path.splitdrive(name)[0] or name.startswith(("~", "\\"))
        place.refuse(
            (not name.strip() or not name.isprintable() or len(name) > 1000, f"{shown} is not a path", cure),
            (os.path.normpath(name) == STANDARD_STREAM,
             f"{shown} is no file: a recipe does not read standard input", cure),
            (absolute, f"{shown} is an absolute path", cure),
        )  # fmt: skip
        path = os.path.join(self.folder, name)
        try:
            return inside(self.root, path, origin or _plainest(path))
        except LeavesProject:
            raise place.error(f"{shown} leads out of the project", cure) from None
        except ValueError:
            raise place.error(f"{shown} is not a path", cure) from None

    def text(self, path: str, what: str) -> bytes:
        """Return the text of a file; it is cached.

        Raises:
            FileError: it cannot be read, or is too long.
        """
        if path not in self.documents:
            if self._given:
                raise Place(path).error("was not read where the recipe was")
            self.documents[path] = read_document(path, what)
        return self.documents[path]

    def document(self, name: str, place: Place) -> Node:
        """Return a whole configuration, named relative to the recipe.

        Raises:
            SpecError: it cannot be read, or is outside the project.
        """
        return self._configuration(self.path(name, place))

    def value(self, reference: str, place: Place) -> Node:
        """Return the node that ``file#/pointer`` (RFC 6901) refers to.

        Raises:
            Unreadable: the file cannot be read, or has no such value.
            SpecError: it is not a reference, or the file is outside the project.
        """
        name, mark, pointer = reference.partition("#")
        if not mark or not pointer.startswith("/") or len(pointer) > 1000:
            raise place.error(f"{clipped(reference)} is not a reference", "write file#/path, as config.yaml#/train/lr")
        path = self.path(name, place)
        try:
            node = self._configuration(path)
            for part in pointer[1:].split("/"):
                node = self._child(node, part.replace("~1", "/").replace("~0", "~"), clipped(reference))
        except SpecError as error:
            raise Unreadable(place, error.message, error.hint) from None
        return node

    def _configuration(self, path: ProjectFile) -> Node:
        if path.parts not in self._read:
            try:
                self._read[path.parts] = self._parsed(path)
            except SpecError as error:
                self._read[path.parts] = error
            except RecursionError:
                self._read[path.parts] = SpecError(f"{Place(path)} is nested too deep")
        result = self._read[path.parts]
        if isinstance(result, SpecError):
            raise result
        return result

    def _parsed(self, path: ProjectFile) -> Node:
        parse = _PARSERS.get(ending(path))
        if parse is None:
            raise SpecError(f"{clipped(path)}: an unknown kind of configuration", f"one of {', '.join(_PARSERS)}")
        if self._bytes <= 0:
            most = reading.CONFIGURATION_BYTES
            raise SpecError(f"{clipped(path)}: a recipe refers to at most {most} bytes", "refer to fewer files")
        raw = self.text(path, "configuration")
        self._bytes -= len(raw)
        return parse(str(path), raw)

    def _child(self, node: Node, key: str, reference: str) -> Node:
        if isinstance(node, Items):
            if key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(node.items):
                return node.items[int(key)]
            raise SpecError(f"{reference}: no item {clipped(key)} in a list of {len(node.items)}", "items count from 0")
        if not isinstance(node, Table):
            raise SpecError(f"{reference}: {clipped(key)} is looked for in {KINDS[type(node)]}", "shorten the path")
        child = self._field(node, key)
        if child is None:
            raise SpecError(f"{reference}: there is no {clipped(key)}", "write the path as the file spells it")
        return child

    def _field(self, table: Table, key: str) -> Node | None:
        """Return a mapping's value: its own, or the first that YAML's ``<<`` merges into it."""
        seen: set[int] = set()
        waiting: list[Node] = [table]
        while waiting:
            node = waiting.pop()
            if not isinstance(node, Table) or id(node) in seen:
                continue
            self._lookups -= 1
            if self._lookups < 0:
                most = reading.CONFIGURATION_LOOKUPS
                raise SpecError(
                    f"the references of a recipe look into more than {most} mappings", "merge fewer of them"
                )
            seen.add(id(node))
            if key in node.fields and not node.fields[key].merges:
                return node.fields[key].node
            merged = node.fields.get("<<")
            if merged is not None and merged.merges:
                waiting += reversed(items(merged.node))
        return None


def _plainest(path: str) -> str:
    """Return a path without detours, unless that would be another file."""
    plain = os.path.normpath(path)
    return plain if os.path.realpath(plain) == os.path.realpath(path) else path


def _parse_yaml(path: str, raw: bytes) -> Node:
    node = parse_yaml(path, raw, _CONFIGURATION)
    if node is None:
        raise SpecError(f"{path} is empty")
    return node


_CONFIGURATION = Rules(foreign=True, depth_hint="a recipe needs four levels")

_PARSERS: dict[str, Callable[[str, bytes], Node]] = {
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": parse_json,
    ".toml": parse_toml,
}
