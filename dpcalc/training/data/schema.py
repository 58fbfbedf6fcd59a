"""A public schema of a table's columns: intervals, levels, and replacements of missing cells.

A YAML or JSON file has a mapping ``columns`` with an entry for every feature, and one for the target if its interval is
mapped to [-Y, Y]:

    columns:
      age: {low: 0, high: 100, missing: 40}
      colour: {levels: [red, green], missing: red}

Numbers are mapped from [low, high] to [-1, 1]; ``missing`` replaces a missing one: a number of the interval, ``low``,
``high`` or ``middle``, the default. A column with levels becomes one column of 0 and 1 for each level. An undeclared
level is 0 in all of them, and so is an empty cell, unless ``missing`` names its level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dpcalc.errors import SpecError
from dpcalc.files.documents import Node, Rules, Table, items, parse_json, parse_yaml, repeated, table, text
from dpcalc.files.place import Place, clipped, ending
from dpcalc.files.reading import read_document
from dpcalc.model.numbers import parse_number
from dpcalc.training.data.cells import Levels
from dpcalc.training.data.intervals import is_interval, why_not
from dpcalc.training.data.ranges import Ranges
from dpcalc.training.data.tables import unquoted

ENDINGS = (".yaml", ".yml", ".json")
MAX_LEVELS = 1000

_SHAPE = "write columns: {age: {low: 0, high: 100}, colour: {levels: [red, green]}}"


class Column(NamedTuple):
    """A column as declared: an interval, or levels.

    Attributes:
        place: its place in the file, for messages.
        low, high: the interval of a number.
        missing: replaces a missing number; None for the middle.
        levels: the rule of a column of words, else None.
    """

    place: Place
    low: float = -1.0
    high: float = 1.0
    missing: float | None = None
    levels: Levels | None = None


class Schema(NamedTuple):
    """The declared columns by name, and the path of the file."""

    path: str
    columns: Mapping[str, Column]

    @property
    def words(self) -> dict[str, Levels]:
        """The rules of the columns of words."""
        return {name: column.levels for name, column in self.columns.items() if column.levels is not None}

    def ranges(self, names: Sequence[str]) -> Ranges:
        """Return the map of the columns of these names, the target last.

        Raises:
            SpecError: a feature is not declared, a name is unknown, or the target has levels.
        """
        with unquoted(self.path):
            known = set(names)
            for name, column in self.columns.items():
                if name not in known:
                    raise column.place.error(f"the data have no column {clipped(name)}", "leave it out")
            undeclared = [name for name in names[:-1] if name not in self.columns]
            if undeclared:
                first = clipped(undeclared[0])
                hint = f"declare every feature, or --ignore {first}"
                raise Place(self.path).error(f"column {first} is not declared", hint)
            target = self.columns.get(names[-1])
            if target is not None and target.levels is not None:
                raise target.place.error("the target has levels", "leave it out, and give its --labels")
        features = [self.columns[name] for name in names[:-1]]
        return Ranges(
            np.array([column.low for column in features]), np.array([column.high for column in features]),
            None if target is None else (target.low, target.high),
            tuple(column.levels for column in features), tuple(column.missing for column in features),
        )  # fmt: skip


def is_schema(path: str) -> bool:
    """Return whether the ending is that of a schema; a CSV file has intervals alone."""
    return ending(path) in ENDINGS


def read_schema(path: str) -> Schema:
    """Return the schema in a YAML or JSON file; nothing in it is evaluated.

    Raises:
        SpecError: the file cannot be read, or holds no schema.
    """
    with unquoted(path):
        raw, shown = read_document(path, "schema"), Place(path)
        node = parse_json(shown.file, raw) if ending(path) == ".json" else parse_yaml(shown.file, raw, Rules())
        if node is None:
            raise shown.error("no schema", _SHAPE)
        fields = table(node, "the schema").fields
        if set(fields) != {"columns"}:
            raise shown.error("a schema has the key columns, and no other", _SHAPE)
        columns = table(fields["columns"].node, "columns").fields
        return Schema(path, {name: _column(name, field.node) for name, field in columns.items()})


def _column(name: str, node: Node) -> Column:
    entry = table(node, f"column {clipped(name)}")
    keys = set(entry.fields)
    if "levels" in keys and keys <= {"levels", "missing"}:
        return Column(entry.place, levels=_levels(entry))
    if not ({"low", "high"} <= keys <= {"low", "high", "missing"}):
        raise entry.place.error(f"column {clipped(name)} needs low and high, or levels", _SHAPE)
    low, high = (_number(entry.fields[key].node, key) for key in ("low", "high"))
    if not is_interval(low, high):
        raise entry.place.error(*why_not(low, high))
    return Column(entry.place, low, high, _stand_in(entry, low, high))


def _number(node: Node, what: str) -> float:
    try:
        return parse_number(text(node, what).strip())
    except SpecError as error:
        raise node.place.error(f"{what}: {error.message}", "write a number") from None


def _stand_in(entry: Table, low: float, high: float) -> float | None:
    """Return the replacement of a missing number; None for the middle."""
    field = entry.fields.get("missing")
    if field is None:
        return None
    node = field.node
    words = {"middle": None, "low": low, "high": high}
    typed = text(node, "missing").strip()
    if typed in words:
        return words[typed]
    value = _number(node, "missing")
    if not low <= value <= high:
        raise node.place.error(f"missing is {value:g}, outside the interval", "a number of it, low, high or middle")
    return value


def _levels(entry: Table) -> Levels:
    nodes = items(entry.fields["levels"].node)
    levels = tuple(text(node, "a level").strip() for node in nodes)
    place = entry.fields["levels"].place
    if not 1 <= len(levels) <= MAX_LEVELS:
        raise place.error(f"{len(levels)} levels", f"from 1 to {MAX_LEVELS}")
    if (twice := repeated(levels)) is not None:
        raise place.error(f"the level {clipped(twice)} is given twice", "keep one")
    field = entry.fields.get("missing")
    if field is None:
        return Levels(levels)
    node = field.node
    missing = text(node, "missing").strip()
    if missing not in levels:
        raise node.place.error("missing is no level of the column", "name one of the levels, or leave it out")
    return Levels(levels, missing)
