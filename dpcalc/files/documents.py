"""YAML, JSON, TOML and printed Python values as nodes: depth and number of values are bounded, and nothing is run.

Every value is the text as typed; of a printed Python value, the number or text that Python reads.

YAML is read from the parser's events. So no tag runs, no alias multiplies, and ``1e-5``, ``1:30`` and ``no`` mean what
they mean on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from dpcalc.errors import SpecError
from dpcalc.files.place import FileError, Place, clipped
from dpcalc.files.reading import DOCUMENT_DEPTH, DOCUMENT_VALUES, TOML_LINE

T = TypeVar("T")


_NULLS = ("null", "Null", "NULL", "~")


class Scalar(NamedTuple):
    """A text; ``plain`` if it was written without quotes."""

    place: Place
    text: str
    plain: bool = True
    tagged: bool = False

    @property
    def null(self) -> bool:
        """Whether this is YAML's null, written out."""
        return self.plain and self.text in _NULLS


class Items(NamedTuple):
    """A list."""

    place: Place
    items: tuple[Node, ...]


class Field(NamedTuple):
    """A value of a mapping and the place of its key; ``merges`` if the key is YAML's ``<<`` without quotes."""

    place: Place
    node: Node
    merges: bool = False


class Table(NamedTuple):
    """A mapping, in the order written."""

    place: Place
    fields: Mapping[str, Field]

    def read(self, key: str, reader: Callable[[Field, str], Any], otherwise: Any = None) -> Any:
        """Return ``reader(field, key)``; ``otherwise`` if there is no such key."""
        field = self.fields.get(key)
        return otherwise if field is None else reader(field, key)

    def parted(self, names: Collection[str]) -> tuple[Table, Table]:
        """Return a mapping of these keys, and one of all others."""
        own = {key: field for key, field in self.fields.items() if key in names}
        rest = {key: field for key, field in self.fields.items() if key not in names}
        return Table(self.place, own), Table(self.place, rest)


Node = Scalar | Items | Table

KINDS = {Scalar: "a single value", Items: "a list", Table: "a mapping"}
"""Names of the kinds of nodes in messages."""


def table(node: Node, what: str) -> Table:
    """Return the node if it is a mapping.

    Raises:
        SpecError: it is not.
    """
    if not isinstance(node, Table):
        raise node.place.error(f"{what} is {KINDS[type(node)]}; it must be a mapping", "write name: value")
    return node


def text(node: Node, what: str) -> str:
    """Return the text of a single nonempty value.

    Raises:
        SpecError: the node is something else.
    """
    if not isinstance(node, Scalar):
        raise node.place.error(f"{what} is {KINDS[type(node)]}; it must be a single value")
    if node.tagged:
        raise node.place.error(f"{what} has a tag; tags are not read", "write the value alone")
    if not node.text.strip():
        raise node.place.error(f"{what} is empty", f"write a value, or leave out {what}")
    return node.text


_OCTAL = re.compile(r"[+-]?0[0-9_]{1,98}")


def number_text(node: Node, what: str) -> str:
    """Return the text of a number.

    Raises:
        SpecError: the node is something else, or programs read the number in two ways.
    """
    typed = text(node, what).strip(" ")
    if _OCTAL.fullmatch(typed):
        raise node.place.error(
            f"{what} is {typed}, which some YAML readers take for {int(typed.replace('_', ''))} and some for an octal",
            "write it without the leading zero", discreet=f"{what} has a leading zero",
        )  # fmt: skip
    return typed


# --- readers of `Table.read` ------------------------------------------------------------------------------------------


def mapping(field: Field, name: str) -> Table:
    """Return a mapping."""
    return table(field.node, name)


def word(field: Field, name: str) -> str:
    """Return a nonempty text."""
    return text(field.node, name)


def one_of(words: Collection[str], hint: Callable[[str], str | None] = lambda _: None) -> Callable[[Field, str], str]:
    """Return a reader that accepts one of ``words``; ``hint`` gives the cure for any other."""

    def read(field: Field, name: str) -> str:
        typed = text(field.node, name)
        if typed not in words:
            what = f"{name} is {clipped(typed)}; it must be one of {', '.join(words)}"
            raise field.node.place.error(what, hint(typed))
        return typed

    return read


BOOLEANS = {"true": True, "false": False}
"""The spellings of yes and no."""


def truth(field: Field, name: str) -> bool:
    """Return a boolean."""
    typed = text(field.node, name)
    if typed not in BOOLEANS:
        raise field.node.place.error(f"{name} is {clipped(typed)}; it must be true or false", f"write {name}: true")
    return BOOLEANS[typed]


def items(node: Node) -> tuple[Node, ...]:
    """Return the items of a list; a single value counts as a list of one."""
    return node.items if isinstance(node, Items) else (node,)


def repeated(values: Iterable[T]) -> T | None:
    """Return the first value that repeats an earlier one, or None."""
    seen: set[T] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


# --- YAML -------------------------------------------------------------------------------------------------------------


class Rules(NamedTuple):
    """How a kind of YAML file is read.

    Attributes:
        foreign: whether it was written for another program: anchors and tags are then allowed (an alias is the node it
            names, not a copy), a tagged value is marked, and no error quotes the file.
        values: the most values and keys; None if the size of the file is limit enough.
        items: the most values of a list, or None.
        anchor_hint: what to write instead of an anchor.
        depth_hint: what to write instead of deep nesting.
    """

    foreign: bool = False
    values: int | None = DOCUMENT_VALUES
    items: int | None = None
    anchor_hint: str | None = None
    depth_hint: str | None = None


_HIDDEN = re.compile("\r(?!\n)|[\x85\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Line breaks of YAML 1.1 that YAML 1.2 and most editors do not show as such, and marks that reorder what is shown."""


def parse_yaml(shown: str, raw: bytes, rules: Rules) -> Node | None:
    """Return the only document of a YAML text, or None if it is empty.

    Args:
        shown: the file's name, for messages.
        raw: its bytes, UTF-8.
        rules: what it may hold.

    Raises:
        FileError: it is not YAML, is too long or nested too deep, repeats a key, or has something that is not read.
    """
    import yaml

    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise Place(shown, line, column).error("not UTF-8", "save the file as UTF-8") from None
    if hidden := _HIDDEN.search(text):
        line, column = text.count("\n", 0, hidden.start()) + 1, hidden.start() - text.rfind("\n", 0, hidden.start())
        what = f"the character {hidden[0]!a} makes text look different from what is read"
        raise Place(shown, line, column).error(what, "remove it; in quotes, write an escape")
    try:
        return _Builder(shown, rules).build(yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = Place(shown, mark.line + 1, mark.column + 1) if mark else Place(shown)
        problem = str(getattr(error, "problem", None) or "a character it must not have")
        if "nesting depth" in problem:  # the parser, which reads ahead, has its own limit
            raise place.error(f"nested more than {DOCUMENT_DEPTH} deep", rules.depth_hint) from None
        what = "not valid YAML" if rules.foreign else f"not valid YAML: {problem}"
        raise place.error(what, _syntax_hint(problem), discreet="not valid YAML") from None


def _syntax_hint(problem: str) -> str:
    if re.search(r"\\t|tab", problem):
        return "indent with spaces, not tabs"
    return "put a text that has any of : # [ ] { } , & * ! | > % @ in quotes"


class _Open(NamedTuple):
    """A list or mapping being read; ``key`` is a mapping's key whose value is still to come."""

    place: Place
    anchor: str | None
    fields: dict[str, Field] | None
    items: list[Node]
    key: list[Scalar]


class _Builder:
    """Builds one node from events, without recursion."""

    def __init__(self, shown: str, rules: Rules) -> None:
        self.shown, self.rules = shown, rules
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node] = {}
        self.root: Node | None = None
        self.count = 0

    def build(self, events: Any) -> Node | None:
        import yaml

        documents = 0
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                # The parser gives quoted text the tag "!".
                tagged = bool(event.tag and event.tag != "!")
                self._refuse_marks(event, tagged)
                self._put(Scalar(self._place(event), event.value, event.style in (None, ""), tagged), event.anchor)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._refuse_marks(event, bool(event.tag))
                self._open(event, {} if isinstance(event, yaml.MappingStartEvent) else None)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self._close()
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
        if self.rules.foreign:
            return
        if tagged:
            raise self._place(event).error(
                f"the tag {clipped(event.tag)}: tags are not read", "write the value alone",
                discreet="a tag: tags are not read",
            )  # fmt: skip
        if event.anchor:
            raise self._anchored(event)

    def _anchored(self, event: Any) -> FileError:
        return self._place(event).error("anchors and aliases are not read", self.rules.anchor_hint)

    def _open(self, event: Any, fields: dict[str, Field] | None) -> None:
        place = self._place(event)
        if len(self.stack) >= DOCUMENT_DEPTH:
            raise place.error(f"nested more than {DOCUMENT_DEPTH} deep", self.rules.depth_hint)
        if self.stack and self.stack[-1].fields is not None and not self.stack[-1].key:
            raise place.error("a key that is not plain text", "write name: value")
        self.stack.append(_Open(place, event.anchor, fields, [], []))

    def _close(self) -> None:
        done = self.stack.pop()
        closed: Node = Items(done.place, tuple(done.items)) if done.fields is None else Table(done.place, done.fields)
        self._put(closed, done.anchor)

    def _alias(self, event: Any) -> None:
        if not self.rules.foreign:
            raise self._anchored(event)
        if event.anchor not in self.anchors:
            raise self._place(event).error("an alias names nothing before it")
        self._put(self.anchors[event.anchor], None)

    def _put(self, node: Node, anchor: str | None) -> None:
        self.count += 1
        if self.rules.values is not None and self.count > self.rules.values:
            raise _too_many(node.place, self.rules.values)
        if anchor:
            self.anchors[anchor] = node
        if not self.stack:
            self.root = node
            return
        inside = self.stack[-1]
        if inside.fields is None:
            if len(inside.items) == self.rules.items:
                raise inside.place.error(f"a list of more than {self.rules.items} values", "use fewer")
            inside.items.append(node)
        elif not inside.key:
            inside.key.append(self._key(node, inside.fields))
        else:
            key = inside.key.pop()
            inside.fields[key.text] = Field(key.place, node, self.rules.foreign and key.plain and key.text == "<<")

    def _key(self, node: Node, fields: dict[str, Field]) -> Scalar:
        if not isinstance(node, Scalar):
            raise node.place.error(f"a key is {KINDS[type(node)]}", "write name: value")
        if node.text in fields:
            twice = f"is given twice, first in line {fields[node.text].place.line}"
            what = "a key" if self.rules.foreign else clipped(node.text)
            raise node.place.error(f"{what} {twice}", "keep one", discreet=f"a key {twice}")
        return node


def _too_many(place: Place, values: int) -> FileError:
    return place.error(f"more than {values} values", "write fewer, or split the file")


# --- JSON and TOML, without places ------------------------------------------------------------------------------------

_LONG_KEY = re.compile(  # one pass without backtracking: parts of a dotted key, the dots between them
    rb"""(?<![\w-])(?>(?:[\w-]++|"(?:\\.|[^"\\\n])*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % DOCUMENT_DEPTH
)


class _Literal(str):
    """A number as typed."""

    __slots__ = ()


def parse_json(path: str, raw: bytes) -> Node:
    """Return a JSON text as a node; no error quotes it.

    Raises:
        SpecError: it is not JSON, is too long or nested too deep, or repeats a name in a mapping.
    """
    import json

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise SpecError(f"{path}: a mapping has a name twice", "keep one")
        return fields

    try:
        value = json.loads(
            raw, object_pairs_hook=unique, parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal
        )
    except json.JSONDecodeError as error:
        raise SpecError(f"{path}:{error.lineno}:{error.colno}: not JSON", "check the file") from None
    except ValueError:
        raise SpecError(f"{path} is not JSON", "save the file as UTF-8") from None
    except RecursionError:
        raise _too_deep(path) from None
    return _node(value, Place(path))


def parse_toml(path: str, raw: bytes) -> Node:
    """Return a TOML text as a node; no error quotes it.

    Raises:
        SpecError: it is not TOML, is too long or nested too deep, or has a line or a key that is too long.
    """
    import tomllib

    if max(map(len, raw.splitlines()), default=0) > TOML_LINE:
        raise SpecError(f"{path}: a line is longer than {TOML_LINE} bytes", "break the line")
    if long := _LONG_KEY.search(raw):
        line = raw.count(b"\n", 0, long.start()) + 1
        raise SpecError(f"{path}:{line}: a key has more than {DOCUMENT_DEPTH} parts", "shorten the key")
    try:
        value = tomllib.loads(raw.decode("utf-8"), parse_float=_Literal)
    except ValueError as error:
        at = re.search(r"at line (\d+), column (\d+)\)$", str(error))  # the text before it quotes the file
        raise SpecError(f"{path}{f':{at[1]}:{at[2]}' if at else ''}: not TOML", "check the file") from None
    return _node(value, Place(path))


_SHOWN_OBJECT = re.compile(r"<([\w.]+)[^<>\n]{0,200}>")  # a printed member of an enum, or function
_PROMPT = re.compile(r"^[\w. ]{1,80}[:=]\s*(?=[\[({])")  # text printed before a list: ``history: [...]``
_WRAPPERS = ("array", "list", "tuple", "deque", "float64", "float32", "int64", "int32")


def parse_python(path: str, raw: bytes) -> Node:
    """Return a printed Python value: lists, tuples, dicts, and objects by their class and fields.

    ``Name(field=value)`` is a mapping whose ``class_name`` is Name; nothing is looked up or called.

    Raises:
        SpecError: it is no such value, is too long or nested too deep, or holds anything but values.
    """
    import ast
    import warnings

    refusal = SpecError(f"{path} is no printed Python value", "print a list, a dict or an object, or write JSON")
    try:
        text = _SHOWN_OBJECT.sub(r"'\1'", _PROMPT.sub("", raw.decode("utf-8-sig").strip()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = _printed(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError):
        raise refusal from None
    return _node(value, Place(path))


def _printed(node: Any) -> Any:  # noqa: PLR0911 (one return a kind)
    """Return the value of a Python syntax tree, in JSON types.

    Raises:
        ValueError: it is not a plain value.
    """
    import ast

    match node:
        case ast.Constant(value=bool() | int() | float() | str() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_printed(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return _once((_printed(key), _printed(value)) for key, value in zip(keys, values, strict=True))
        case ast.Call(func=function, args=[], keywords=fields):
            named = [(field.arg, _printed(field.value)) for field in fields]
            return {"class_name": _name(function)} | _once(named)
        case ast.Call(func=function, args=[ast.List(elts=pairs)]) if _name(function) == "OrderedDict":
            return _once(_printed(pair) for pair in pairs)
        case ast.Call(func=function, args=[one]) if _name(function) in _WRAPPERS:
            return _printed(one)
        case ast.Name() | ast.Attribute():
            return _name(node)
    raise ValueError(node)


def _name(node: Any) -> str:
    """Return the last part of a dotted name."""
    return str(getattr(node, "id", None) or node.attr)


def _once(pairs: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    listed = list(pairs)
    fields = {key: value for key, value in listed if isinstance(key, str)}
    if len(fields) < len(listed):
        raise ValueError(listed[0])
    return fields


def _node(value: Any, place: Place) -> Node:
    """Return a value of JSON, TOML or Python as a node."""
    return _bounded_node(value, place, DOCUMENT_DEPTH, iter(range(DOCUMENT_VALUES)))


def _too_deep(path: str) -> SpecError:
    return SpecError(f"{path} is nested more than {DOCUMENT_DEPTH} deep")


def _bounded_node(value: Any, place: Place, room: int, budget: Iterator[int]) -> Node:
    if room < 0:
        raise _too_deep(place.file)
    if next(budget, None) is None:
        raise _too_many(place, DOCUMENT_VALUES)
    if isinstance(value, Mapping):
        fields = {str(name): Field(place, _bounded_node(v, place, room - 1, budget)) for name, v in value.items()}
        return Table(place, fields)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Items(place, tuple(_bounded_node(v, place, room - 1, budget) for v in value))
    if value is None or isinstance(value, bool):
        return Scalar(place, "null" if value is None else str(value).lower())
    try:
        return Scalar(place, str(value), not isinstance(value, str) or isinstance(value, _Literal))
    except ValueError:  # an integer with too many digits to print
        raise SpecError(f"{place.file}: a number is too long", "shorten it") from None
