"""The combinations that a case stands for: ``matrix``, ``include`` and ``exclude``.

The cases of a matrix are counted before any is made, and each is made on demand.

Gates that compare cases: the other case must exist, and must not be the case itself.

A gate that compares a case with itself holds or fails whatever the case guarantees. The circle may lead through the
case's own matrix, through a case that asks the same, or through the gates of others. Two cases that are written
differently but are the same computation are recognised only by their answers: see `same_computation`.
"""

from __future__ import annotations

import graphlib
import itertools
import math
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.premises import STARTS
from dpcalc.files.documents import Field, Table, items, table
from dpcalc.files.place import FileError, Place, clipped, near
from dpcalc.model.quantities import Quantity
from dpcalc.recipes.reading.gates import RecipeGate
from dpcalc.recipes.reading.recipe import Entry, Recipe, group_of
from dpcalc.recipes.reading.reference import Files
from dpcalc.recipes.reading.settings import MANY, Setting, by_name, follow, parameters_of, suggestion
from dpcalc.report import Case, Result

MAX_CASES = 10_000
"""The default limit of a recipe; up to so many cases are held in memory, more are made on demand."""

MOST_CASES = 10_000_000
"""The largest limit that can be set."""

MAX_EXCLUDES = 1000

Combination = Mapping[str, Any]
"""The varying parameters with their values in one case."""


class Vocabulary(NamedTuple):
    """The parameters that a case of a command may set, and the files that it may name."""

    command: str
    files: Files

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters."""
        return parameters_of(self.command)

    def check(self, name: str, place: Place) -> None:
        """Refuse a parameter that the command does not take.

        Raises:
            FileError: it is unknown.
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
        words = {"algorithm": COMMANDS[self.command].algorithms} if self.command in COMMANDS else {}
        return words.get(name)


class Combinations:
    """The varying parameters of each case of a matrix and their places, computed from its place in the sequence."""

    def __init__(
        self, axes: dict[str, list[Any]], place: Place, included: Sequence[tuple[Combination, Place]], base: bool
    ) -> None:
        self._axes, self._place, self._included = axes, place, included
        self._count = math.prod(len(values) for values in axes.values()) if base else 0
        self._kept: array[int] | None = None  # places in the product, if some are excluded

    def without(self, excluded: Mapping[tuple[str, ...], set[tuple[Any, ...]]]) -> Combinations:
        """Return the combinations without the excluded ones; included ones stay."""
        if excluded:
            self._kept = array("Q")
            for number in range(self._count):
                chosen = self._chosen(number)
                if not any(tuple(map(chosen.get, names)) in values for names, values in excluded.items()):
                    self._kept.append(number)
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
        """Whether the names of all cases differ, judged without making them."""
        return not self._included and all(len({*map(shown, v)}) == len(v) for v in self._axes.values())


class Matrix:
    """The matrix of a case as written.

    Args:
        body: the case.
        vocabulary: what it may set.
        own: the parameters that the case itself sets, which cannot vary.

    Raises:
        SpecError: an axis is not a parameter, is also set in the case, or has no values.
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
        """Return the combinations with their places: at most ``room`` of the recipe's ``most`` cases.

        Raises:
            SpecError: there are more, or none is left, or ``include`` or ``exclude`` is malformed.
        """
        has_base = bool(self.axes) or self._body.fields.get("include") is None
        count = math.prod(len(values) for values in self.axes.values()) if has_base else 0
        included = list(self._included())
        total = count + len(included)
        if total > room:
            raise place.error(
                f"case {case} makes {total if total < 10**15 else 'far too many'} cases; a recipe has at most {most}",
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
        """Return the excluded combinations: names -> tuples of values."""
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


def shown(value: Any) -> str:
    """Return a value as the name of a case shows it."""
    if type(value) is int:
        return str(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, tuple):
        return "/".join(map(shown, value)) if type(value) is tuple else shown(str(value))
    return re.sub(r"[^A-Za-z0-9_.+^/-]", "_", str(value))


_HINT = "compare with another run, or with a number; assert: null in a case takes the gates of the defaults away"


def check_comparisons(recipe: Recipe, most: int) -> list[FileError]:
    """Return the errors in the comparisons of a recipe, at most ``most`` of one kind."""
    return _dangling(recipe, most) or list(_with_itself(recipe)) or list(_through_others(recipe))


def _dangling(recipe: Recipe, most: int) -> list[FileError]:
    """Return the comparisons with cases that do not exist, are ambiguous, or are skipped."""
    gates = {id(gate): gate for group in recipe.made.values() for gate in group[0].gates}  # of all
    errors = (_unmet(recipe, gate, reference.name) for gate in gates.values() for reference in gate.references)
    return list(itertools.islice((error for error in errors if error is not None), most))


def _unmet(recipe: Recipe, gate: RecipeGate, name: str) -> FileError | None:
    base = recipe.entries.get(group_of(name))
    if base is not None and base.unread is not None:
        return None  # its cases are unknown, so the comparison has no answer
    if name not in recipe.entries and name not in recipe.made:
        return gate.place.error(f"there is no case {clipped(name)}", near(name, recipe.made))
    if name not in recipe.entries and len(recipe.made[name]) > 1:
        return gate.place.error(f"{name} is {len(recipe.made[name])} cases", f"name one: {recipe.made[name][0].name}")
    if recipe.named(name).skip is not None:
        return gate.place.error(f"case {name} is skipped, so nothing can be compared with it")
    return None


def _with_itself(recipe: Recipe) -> Iterator[FileError]:
    """Yield the first gate of each group that compares with the group, or with a case that asks the same."""
    for group, entries in recipe.made.items():
        error = next(_own_references(recipe, group, entries), None)
        if error is not None:
            yield error


def _own_references(recipe: Recipe, group: str, entries: Sequence[Entry]) -> Iterator[FileError]:
    for gate in entries[0].gates:
        for reference in gate.references:
            if reference.name == group or (group_of(reference.name) == group and reference.name in recipe.entries):
                yield gate.place.error(f"{gate.gate.name} of case {group} is compared with itself", _HINT)
                return
            other = recipe.named(reference.name)
            twin = next((entry for entry in entries if _asks_the_same(entry, other)), None)
            if twin is not None:
                yield gate.place.error(
                    f"{gate.gate.name} of case {twin.name} is compared with itself: {other.name} asks the same", _HINT
                )
                return


def _asks_the_same(one: Entry, other: Entry) -> bool:
    if one.unread is not None or other.unread is not None:
        return False  # the question is unknown
    return (one.command, one.parameters, one.question) == (other.command, other.parameters, other.question)


def _through_others(recipe: Recipe) -> Iterator[FileError]:
    """Yield the gate that closes a circle of comparisons, if any."""
    compared = {
        group: {recipe.named(r.name).group for gate in entries[0].gates for r in gate.references}
        for group, entries in recipe.made.items()
    }
    try:
        graphlib.TopologicalSorter(compared).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1][::-1]  # from a case to the one that its gate names
        gates = recipe.made[circle[0]][0].gates
        gate = next(g for g in gates if any(recipe.named(r.name).group == circle[1] for r in g.references))
        path = " -> ".join(circle if len(circle) <= 6 else [*circle[:3], "...", *circle[-2:]])
        yield gate.place.error(f"cases are compared with each other in a circle: {path}", _HINT)


def same_computation(one: Case, other: Case) -> bool:
    """Return whether the best guarantees of two cases are the same function of the same arguments.

    Two files of steps are not compared: equal numbers count as the same computation.
    """
    if one.best is None or other.best is None or one.best.bound != other.best.bound:
        return False
    if _question(one.best) != _question(other.best):
        return False
    if one.ledger or other.ledger:
        return _account(one) == _account(other)
    if one.value("schedule") is not None and other.value("schedule") is not None:
        return one.best.value == other.best.value and one.best.log_delta == other.best.log_delta
    if (one.value("group_size") or 1) != (other.value("group_size") or 1):
        return False
    return all(one.value(name) == other.value(name) for name in {*_parameters(one.best)} - {"group_size"})


_NO_PART = frozenset({"name", "epsilon", "form"})
"""The fields of an entry that do not affect the composition: its name and derived values."""


def _account(case: Case) -> tuple[Any, ...]:
    """Return what a ledger composes, without the names of its entries."""
    entries = [
        repr({key: value for key, value in line.items() if key not in _NO_PART})
        for line in (case.ledger or {}).get("entries", ())
    ]
    return sorted(entries), case.value("adjacency"), case.value("group_size") or 1


def _question(best: Result) -> tuple[Any, ...]:
    """Return the question of a result: its fields other than the answer."""
    asked = {name: getattr(best, name) for name in ("epsilon", "delta", "log_delta")}
    if best.quantity in (Quantity.EPSILON, Quantity.DELTA):
        del asked[best.quantity]
        if best.quantity == Quantity.DELTA:
            del asked["log_delta"]
    return best.quantity, best.order if best.quantity == Quantity.RDP else None, tuple(asked.items())


def _parameters(best: Result) -> tuple[str, ...]:
    from dpcalc.theorems.record import all_bounds, lookup

    if best.bound not in all_bounds():
        return tuple(STARTS)
    return tuple(name for name in lookup(best.bound).parameters if name != best.quantity)
