"""Gates that compare cases: the other case must exist, and must not be the case itself.

A gate that compares a case with itself holds, or fails, whatever the case guarantees. The way back may lead through the
case's own matrix, through a case that asks the same, or through the gates of others. Two cases that are written
differently and come down to the same computation are distinguished only by their answers: see `same_computation`.
"""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from dpcalc.engine.premises import STARTS
from dpcalc.files.place import FileError, clipped, near
from dpcalc.model.quantities import Quantity
from dpcalc.recipes.reading.gates import RecipeGate
from dpcalc.recipes.reading.recipe import Entry, Recipe, group_of
from dpcalc.report import Case, Result

_HINT = "compare with another run, or with a number; assert: null in a case takes the gates of the defaults away"


def check_comparisons(recipe: Recipe, most: int) -> list[FileError]:
    """Return what is wrong with the comparisons of a recipe, at most ``most`` errors of one kind."""
    return _dangling(recipe, most) or list(_with_itself(recipe)) or list(_through_others(recipe))


def _dangling(recipe: Recipe, most: int) -> list[FileError]:
    """Return the comparisons with cases that do not exist, are several, or are skipped."""
    gates = {id(gate): gate for group in recipe.made.values() for gate in group[0].gates}  # of all
    errors = (_unmet(recipe, gate, reference.name) for gate in gates.values() for reference in gate.references)
    return list(itertools.islice((error for error in errors if error is not None), most))


def _unmet(recipe: Recipe, gate: RecipeGate, name: str) -> FileError | None:
    base = recipe.entries.get(group_of(name))
    if base is not None and base.unread is not None:
        return None  # which cases it would have made is not known; the comparison has no answer
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
        return False  # what is asked is not known
    return (one.command, one.parameters, one.question) == (other.command, other.parameters, other.question)


def _through_others(recipe: Recipe) -> Iterator[FileError]:
    """Yield the gate that closes a circle of comparisons, if there is one."""
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
    if "schedule" in one.inputs and "schedule" in other.inputs:
        return one.best.value == other.best.value and one.best.log_delta == other.best.log_delta
    if (_value(one, "group_size") or 1) != (_value(other, "group_size") or 1):
        return False
    names = tuple(name for name in _parameters(one.best) if name != "group_size")
    return all(_value(one, name) == _value(other, name) for name in names)


def _account(case: Case) -> tuple[Any, ...]:
    """Return what a ledger composes, whatever its entries are called."""
    entries = [
        repr({key: value for key, value in line.items() if key not in ("name", "epsilon", "form")})
        for line in (case.ledger or {}).get("entries", ())
    ]
    return sorted(entries), _value(case, "adjacency"), _value(case, "group_size") or 1


def _question(best: Result) -> tuple[Any, ...]:
    """Return what was asked: the parts of a result that are not its answer."""
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


def _value(case: Case, name: str) -> Any:
    return case.inputs.get(name, (None, ""))[0]
