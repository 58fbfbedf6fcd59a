"""The combinations that a case stands for: ``matrix``, ``include`` and ``exclude``.

How many cases a matrix makes is counted before any is made, and each is made when it is asked for.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS
from dpcalc.files.nodes import Field, Table, items, table
from dpcalc.files.place import Place, clipped, near
from dpcalc.recipes.reading.reference import Files
from dpcalc.recipes.reading.settings import Setting, by_name, follow, parameters_of, suggestion
from dpcalc.recipes.reading.values import MANY

MAX_CASES = 10_000
"""Of a recipe, unless more are asked for; so many are also held in memory, and more are made when they are needed."""

MOST_CASES = 10_000_000
"""That can be asked for."""

MAX_EXCLUDES = 1000

Combination = Mapping[str, Any]
"""Parameters that vary, and their values in one case."""


class Vocabulary(NamedTuple):
    """What a case of a command may set, and the files that it may name."""

    command: str
    files: Files

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters."""
        return parameters_of(self.command)

    def check(self, name: str, place: Place) -> None:
        """Refuse a name that the command does not take.

        Raises:
            FileError: it is none.
        """
        if name not in self.names:
            raise place.error(f"{self.command} takes no {clipped(name)}", suggestion(name, self.names))

    def value(self, name: str, setting: Setting) -> Any:
        """Return the value of a parameter that is set once."""
        return setting.value(name, self.files, self._choices(name))

    def values(self, name: str, setting: Setting) -> list[Any]:
        """Return the values of a parameter that is varied."""
        values = setting.values(name, self.files, self._choices(name))
        return [(value,) if name in MANY else value for value in values]

    def _choices(self, name: str) -> tuple[str, ...] | None:
        return COMMANDS[self.command].algorithms if name == "algorithm" and self.command in COMMANDS else None


class Combinations:
    """What varies in each case of a matrix, and where it is written: worked out from the place in the sequence."""

    def __init__(
        self, axes: dict[str, list[Any]], place: Place, included: Sequence[tuple[Combination, Place]], base: bool
    ) -> None:
        self._axes, self._place, self._included = axes, place, included
        self._count = math.prod(len(values) for values in axes.values()) if base else 0
        self._kept: array[int] | None = None  # places in the product, where some are excluded

    def without(self, excluded: Mapping[tuple[str, ...], set[tuple[Any, ...]]]) -> Combinations:
        """Return those that are not excluded; what is included stays."""
        if excluded:
            made = (self._chosen(place) for place in range(self._count))
            self._kept = array("Q", (n for n, chosen in enumerate(made) if not _is_excluded(chosen, excluded)))
            self._count = len(self._kept)
        return self

    def __len__(self) -> int:
        return self._count + len(self._included)

    def __getitem__(self, place: int) -> tuple[Combination, Place]:
        if place >= self._count:
            return self._included[place - self._count]
        return self._chosen(place if self._kept is None else self._kept[place]), self._place

    def _chosen(self, place: int) -> Combination:
        """Return a combination of the product, whose last axis moves fastest."""
        chosen: dict[str, Any] = dict.fromkeys(self._axes)
        for name, values in reversed(self._axes.items()):
            place, rest = divmod(place, len(values))
            chosen[name] = values[rest]
        return chosen

    @property
    def plainly_different(self) -> bool:
        """Whether the names of all cases differ, seen without making them."""
        return not self._included and all(len({*map(shown, v)}) == len(v) for v in self._axes.values())


class Matrix:
    """What varies in a case as written.

    Args:
        body: the case.
        vocabulary: what it may set.
        own: the parameters that the case itself sets, which cannot vary.

    Raises:
        SpecError: an axis is no parameter, is set in the case too, or has no values.
    """

    def __init__(self, body: Table, vocabulary: Vocabulary, own: Mapping[str, Setting]) -> None:
        self._body, self._vocabulary = body, vocabulary
        self.axes = self._read_axes(own)

    def _read_axes(self, own: Mapping[str, Setting]) -> dict[str, list[Any]]:
        field = self._body.fields.get("matrix")
        if field is None:
            return {}
        axes = {}
        for name, axis in by_name(table(field.node, "matrix").fields).items():
            self._vocabulary.check(name, axis.place)
            if name in own:
                raise axis.place.error(f"{name} is set in the case and in its matrix", "keep one of the two")
            axes[name] = self._vocabulary.values(name, follow(axis.place, axis.node, self._vocabulary.files))
        if not axes:
            raise field.place.error("matrix is empty", "write name: [values], or leave it out")
        return axes

    def combinations(self, case: str, place: Place, room: int, most: int = MAX_CASES) -> Combinations:
        """Return what varies in each case, at most ``room`` of the recipe's ``most`` cases, and where it is written.

        Raises:
            SpecError: there are more, or none is left, or what is included or excluded is not understood.
        """
        has_base = bool(self.axes) or "include" not in self._body.fields
        count = math.prod(len(values) for values in self.axes.values()) if has_base else 0
        included = list(self._included())
        if count + len(included) > room:
            raise place.error(
                f"case {case} makes {_shown_count(count + len(included))} cases; a recipe has at most {most}",
                f"vary fewer values, or split the recipe{_RAISE if most < MOST_CASES else ''}",
            )
        made = Combinations(self.axes, place, included, has_base).without(self._excluded())
        if not made:
            raise place.error(f"case {case}: exclude leaves no case", "exclude less")
        return made

    def _included(self) -> Iterator[tuple[Combination, Place]]:
        for body in self._listed("include"):
            fields = by_name(body.fields)
            for name, field in fields.items():
                self._vocabulary.check(name, field.place)
            settings = {n: follow(f.place, f.node, self._vocabulary.files) for n, f in fields.items()}
            yield {name: self._vocabulary.value(name, setting) for name, setting in settings.items()}, body.place

    def _excluded(self) -> dict[tuple[str, ...], set[tuple[Any, ...]]]:
        """Return what is excluded: names -> combinations of their values."""
        excluded: dict[tuple[str, ...], set[tuple[Any, ...]]] = {}
        for body in self._listed("exclude"):
            fields = by_name(body.fields)
            values = tuple(self._excluded_value(name, field) for name, field in fields.items())
            excluded.setdefault(tuple(fields), set()).add(values)
        return excluded

    def _excluded_value(self, name: str, field: Field) -> Any:
        if name not in self.axes:
            raise field.place.error(f"{clipped(name)} is not in the matrix", near(name, self.axes))
        value = self._vocabulary.value(name, Setting(field.place, field.node))
        if value not in self.axes[name]:
            raise field.node.place.error(f"no case has {name} = {shown(value)}", "it excludes nothing")
        return value

    def _listed(self, key: str) -> Iterator[Table]:
        """Yield the mappings under ``include`` or ``exclude``."""
        field = self._body.fields.get(key)
        if field is None:
            return
        nodes = items(field.node)
        if len(nodes) > MAX_EXCLUDES:
            raise field.place.error(f"{len(nodes)} entries of {key}; at most {MAX_EXCLUDES} are read")
        for node in nodes:
            body = table(node, f"an entry of {key}")
            if not body.fields:
                raise body.place.error(f"an entry of {key} is empty", "write {name: value}")
            yield body


_RAISE = "; dpcalc check --max-cases N takes more"


def _is_excluded(chosen: Combination, excluded: Mapping[tuple[str, ...], set[tuple[Any, ...]]]) -> bool:
    return any(tuple(chosen[name] for name in names) in values for names, values in excluded.items())


def _shown_count(count: int) -> str:
    return str(count) if count < 10**15 else "far too many"


def shown(value: Any) -> str:
    """Return a value as the name of a case shows it."""
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple):
        return "/".join(map(shown, value)) if type(value) is tuple else shown(str(value))
    return re.sub(r"[^A-Za-z0-9_.+^/-]", "_", str(value))
