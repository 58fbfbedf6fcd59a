"""Reading untrusted files: size and depth are bounded, nothing is constructed, and every value keeps its place.

YAML is read from the parser's events, so that no tag runs, no alias multiplies, and no word or number is anything but
the text that was typed: ``1e-5``, ``1:30`` and ``no`` mean what they mean on the command line.
"""

from __future__ import annotations

import os
import stat
import sys
from typing import Any, NamedTuple

from dpcalc.recipes.nodes import KINDS, Field, Items, Node, Place, Scalar, Table, clipped

MAX_BYTES = 1_000_000
MAX_DEPTH = 32


def read_bytes(path: str, what: str) -> bytes:
    """Return the bytes of a regular file (or, for ``-``, of standard input) of at most `MAX_BYTES`.

    Raises:
        SpecError: it cannot be read, is no regular file, or is too long.
    """
    place = Place(shown_path(path))
    try:
        raw = _standard_input(place) if path == "-" else _regular(place, path)
    except OSError as error:
        raise place.error(f"cannot be read: {error.strerror or error}", f"give the path of a {what}") from None
    except ValueError:
        raise place.error("is not a path", f"give the path of a {what}") from None
    if len(raw) > MAX_BYTES:
        raise place.error(f"more than {MAX_BYTES} bytes", f"split the {what}")
    return raw


def shown_path(path: str) -> str:
    """Return the path as messages show it: one line, without control characters."""
    if path == "-":
        return "<stdin>"
    return path if path.isprintable() else ascii(path)


def _standard_input(place: Place) -> bytes:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise place.error("cannot be read", "give the path of a file")
    raw: bytes = stream.read(MAX_BYTES + 1)
    return raw


def _regular(place: Place, path: str) -> bytes:
    # Not blocking, so that opening a pipe that nobody writes to does not wait.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise place.error("is a folder", "name the files, for example recipes/*.yaml")
        if not stat.S_ISREG(mode):
            raise place.error("is not a regular file", "give the path of a file")
        with open(handle, "rb", closefd=False) as stream:
            return stream.read(MAX_BYTES + 1)
    finally:
        os.close(handle)


class _Open(NamedTuple):
    """A list or mapping being read; ``key`` holds a mapping's key that waits for its value."""

    place: Place
    anchor: str | None
    fields: dict[str, Field] | None
    items: list[Node]
    key: list[tuple[str, Place]]


def parse_yaml(shown: str, raw: bytes, *, foreign: bool = False) -> Node | None:
    """Return the one document of a YAML text, or None where there is none.

    Args:
        shown: the file's name, for messages.
        raw: its bytes, UTF-8.
        foreign: whether it was written for another program: anchors and tags are then part of it (an alias is the
            node it names, not a copy), and a tagged value is marked.

    Raises:
        SpecError: it is not YAML, is nested too deep, has a key twice, or something that is not read.
    """
    import yaml

    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise Place(shown, line, column).error("not UTF-8", "save the file as UTF-8") from None
    try:
        return _Builder(shown, foreign).built(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Place(shown, mark.line + 1, mark.column + 1) if mark else Place(shown)
        problem = str(getattr(error, "problem", None) or "a character it must not have")
        raise place.error(f"not valid YAML: {problem}", _cure(problem)) from None


def _cure(problem: str) -> str:
    if "\\t" in problem or "tab" in problem:
        return "indent with spaces, not tabs"
    return "put a text that has any of : # [ ] { } , & * ! | > % @ in quotes"


class _Builder:
    """From events to one node, without recursion."""

    def __init__(self, shown: str, foreign: bool) -> None:
        self.shown, self.foreign = shown, foreign
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None

    def built(self, events: Any) -> Node | None:
        import yaml

        documents = 0
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                # The tag "!" is how the parser says that a text was quoted.
                tagged = bool(event.tag and event.tag != "!")
                self._refuse_marks(event, tagged)
                self._put(Scalar(self._place(event), event.value, event.style in (None, ""), tagged), event.anchor)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._refuse_marks(event, bool(event.tag))
                self._open(event, {} if isinstance(event, yaml.MappingStartEvent) else None)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                done = self.stack.pop()
                closed: Node = (
                    Items(done.place, tuple(done.items)) if done.fields is None else Table(done.place, done.fields)
                )
                self._put(closed, done.anchor)
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._place(event).error("a second document", "one file holds one document: remove the ---")
        return self.root

    def _place(self, event: Any) -> Place:
        return Place(self.shown, event.start_mark.line + 1, event.start_mark.column + 1)

    def _refuse_marks(self, event: Any, tagged: bool) -> None:
        if self.foreign:
            return
        if tagged:
            raise self._place(event).error(f"the tag {clipped(event.tag)}: tags are not read", "write the value alone")
        if event.anchor:
            raise self._place(event).error("anchors and aliases are not read", "put what cases share under defaults")

    def _open(self, event: Any, fields: dict[str, Field] | None) -> None:
        place = self._place(event)
        if len(self.stack) >= MAX_DEPTH:
            raise place.error(f"nested more than {MAX_DEPTH} deep", "a recipe needs four levels")
        if self._awaits_key():
            raise place.error("a key that is not plain text", "write name: value")
        self.stack.append(_Open(place, event.anchor, fields, [], []))

    def _alias(self, event: Any) -> None:
        if not self.foreign:
            raise self._place(event).error("anchors and aliases are not read", "put what cases share under defaults")
        if event.anchor not in self.anchors:
            raise self._place(event).error(f"the alias {clipped(event.anchor)} names nothing before it")
        self._put(self.anchors[event.anchor], None)

    def _awaits_key(self) -> bool:
        return bool(self.stack) and self.stack[-1].fields is not None and not self.stack[-1].key

    def _put(self, node: Node, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        inside = self.stack[-1]
        if inside.fields is None:
            inside.items.append(node)
        elif not inside.key:
            inside.key.append(self._key(node, inside.fields))
        else:
            name, place = inside.key.pop()
            inside.fields[name] = Field(place, node)

    def _key(self, node: Node, fields: dict[str, Field]) -> tuple[str, Place]:
        if not isinstance(node, Scalar):
            raise node.place.error(f"a key is {KINDS[type(node)]}", "write name: value")
        if node.text in fields:
            first = fields[node.text].place
            raise node.place.error(f"{clipped(node.text)} is there twice, first in line {first.line}", "keep one")
        return node.text, node.place
