"""Objections to a case whose gates hold: what its rule demands (`dpcalc.recipes.judging.policy`).

A strict rule allows no skips, exceptions or omitted cases. Every case must have a gate on a number (so a case that
expects a refusal fails), and gated numbers are certified where a definition exists. The rule of a
policy file has its own limits on the answer itself.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.checked import Assertion, Check, Difference, Status
from dpcalc.engine.advice.missing import ON_MEAN, misread_of
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate, judge, quantity
from dpcalc.engine.large_delta import REASON, has_large_delta
from dpcalc.engine.question import run_of
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files.documents import Field, items, repeated, text
from dpcalc.files.place import Place, clipped, near
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import Description
from dpcalc.model.quantities import Permutation, Quantity
from dpcalc.recipes.reading.recipe import Rule, group_of
from dpcalc.render.layout import listed
from dpcalc.report import Case, Report, uncertified
from dpcalc.theorems.batch_layout import worst_cases

if TYPE_CHECKING:
    from dpcalc.recipes.reading.recipe import Entry, Recipe


EXCEPTIONS = {
    "seeded": "train draws its noise from a seed: whoever knows it can draw the noise again",
    "one-index": "the guarantee does not cover every record: an index, a window or public records were chosen",
    "large-delta": REASON,
    "secret-order": "the random order and its seed must stay secret for ever, for which nobody has vouched",
    ON_MEAN: "the noise is so large that a noise multiplier may be meant, by which the run is far less private",
}
"""The names that ``accept:`` takes, and what each means."""


def accepted(field: Field, key: str) -> tuple[str, ...]:
    """Return the names under ``accept:``, one or a list.

    Raises:
        SpecError: a name is unknown or repeated; the message says where.
    """
    names = []
    for node in items(field.node):
        name = text(node, key)
        if name not in EXCEPTIONS:
            raise node.place.error(f"accept: there is no exception {clipped(name)}", near(name, EXCEPTIONS))
        names.append(name)
    if not names:
        raise field.place.error("accept is an empty list", "leave it out, or name " + ", ".join(EXCEPTIONS))
    twice = repeated(names)
    if twice is not None:
        raise field.place.error(f"accept: {twice} is given twice", "write it once")
    return tuple(names)


def exceptions(entry: Entry, case: Case) -> tuple[str, ...]:
    """Return the names of the exceptions that apply to the guarantee of a case, in the order of `EXCEPTIONS`."""
    applies = (
        bool(case.training) and not (case.training or {})["private"],
        _covers_some(entry, case) or any(_of_entries(entry, name) for name in _CHOOSING),
        has_large_delta(case, entry.parameters.get("ledger")),
        case.value("permutation") == Permutation.SECRET or Permutation.SECRET in _of_entries(entry, "permutation"),
        misread_of(case) is not None,
    )
    return tuple(itertools.compress(EXCEPTIONS, applies))


def objection(name: str) -> str:
    """Return why a case fails that does not accept its exception."""
    return f"{name}: {EXCEPTIONS[name]}; if that is meant, write accept: [{name}] in the case"


_CHOOSING = ("index", "window", "public_records")
"""Parameters by which a ledger entry selects records, whether or not these have the least privacy."""


def _of_entries(entry: Entry, name: str) -> list[Any]:
    """Return a parameter's values in the entries of a ledger."""
    ledger = entry.parameters.get("ledger")
    return [one.given[name] for one in ledger.entries if one.given.get(name) is not None] if ledger else []


def _covers_some(entry: Entry, case: Case) -> bool:
    """Return whether the guarantee is for one position or some records, and not proved for the worst-off record."""
    if case.value("public_records"):
        return True
    solved = {result.quantity: result.value for result in case.answers}
    window = solved.get("window", case.value("window"))
    if window is not None:
        return bool(window)
    index, source = case.inputs.get("index", (None, Source.DEFAULT))
    if (found := solved.get("index")) is not None:
        return bool(found != case.value("records"))
    if index is None or not source.typed:
        return False
    return bool(index != worst_index(entry, case))


def worst_index(entry: Entry, case: Case) -> object:
    """Return the worst-off position; None if it is unknown, as steps or batches may differ."""
    if entry.command not in COMMANDS or COMMANDS[entry.command].prices:
        return case.value("records")
    values = {name: value for name, value in entry.parameters.items() if value is not None}
    values.pop("index", None)
    try:
        return _worst_index_of(entry.command, frozenset(values.items()))  # one for a whole sweep over positions
    except TypeError:  # an unhashable value
        return _worst_index_of.__wrapped__(entry.command, values.items())


@functools.lru_cache(maxsize=64)
def _worst_index_of(command: str, values: Iterable[tuple[str, Any]]) -> object:
    try:
        _, run, _ = run_of(COMMANDS[command], Description(dict(values)))
    except DpcalcError:
        return None
    return run.index if len(worst_cases(run)) == 1 else None


_NAMED = 20

_BUDGET = (Quantity.EPSILON, Quantity.DELTA, Quantity.MU)
"""The quantities of answers about the described run."""


def check_installed() -> None:
    """Raise SpecError if nothing can be certified, as a strict check needs."""
    if importlib.util.find_spec("flint") is None:
        raise SpecError("a strict check certifies, which needs python-flint", "pip install python-flint")


def uncertified_of(case: Case) -> Iterator[str]:
    """Yield why a gated case fails certification: a definition exists and did not prove its number."""
    for result in uncertified(case):
        if certifiable(result.bound):
            reason = (result.details or {})["not_certified"]
            yield f"not certified: {result.bound} has a definition that does not prove its number ({reason})"


def certifiable(bound: str) -> bool:
    """Return whether a guarantee has a definition that proves it if it is right."""
    from dpcalc.certify.case import has_definition

    return has_definition(bound)


# --- a case -----------------------------------------------------------------------------------------------------------


def objections_to(entry: Entry, case: Case) -> Iterator[str]:
    """Yield the objections of a case's rule, apart from its limits."""
    rule = entry.rule
    if rule.place is not None:
        yield from _against_rule(rule, entry, case)
    elif rule.strict and not any(assertion.limits for assertion in case.assertions):
        yield "strict: the case has no gate on a number; write assert"
    if rule.certified and entry.trains and case.best is not None and certifiable(case.best.bound):
        yield "strict: what is trained is not certified; gate the same run in a case of compare"
    for name in entry.accept if rule.accept is not None else ():
        if name in rule.expired:
            yield f"{rule.at('accept')}: the exception {name} has expired"
        elif name not in (rule.accept or ()) and rule.place is None:
            yield f"strict: the case accepts {name}, and a strict check accepts nothing"
        elif name not in (rule.accept or ()):
            yield f"{rule.at('accept')}: the exception {name} is not allowed"


def _against_rule(rule: Rule, entry: Entry, case: Case) -> Iterator[str]:
    """Yield what a policy file's rule does not allow in a case."""
    if not rule.limits:
        yield f"{rule.place}: no rule of the policy fits the name {entry.group}"
        return
    for gate in rule.limits:
        if not kept(gate, case, trained=entry.trains).passed:
            yield f"{rule.at(gate.text)}: {gate.text} is not kept"
    best = case.answers
    ledger = entry.parameters.get("ledger")
    runs = [one for one in ledger.entries if one.command] if ledger else []
    claims = {
        "adjacency": [result.adjacency for result in best],
        "commands": [entry.command, *(one.command for one in runs)],
        "kinds": [str(result.kind) for result in best],
    }
    for key, values in claims.items():
        allowed = getattr(rule, key)
        if strange := next((value for value in values if allowed is not None and value not in allowed), None):
            yield f"{rule.at(key)}: {key} {strange} is not allowed"
    size = case.value("group_size") or 1
    if not size >= rule.group_size:
        yield f"{rule.at('group_size')}: group_size is {size}, and must be at least {rule.group_size}"
    if rule.records is not None:
        claimed = [one.given.get("records") for one in runs] if ledger else [case.value("records")]
        for count in claimed:
            if not (isinstance(count, (int, float)) and count <= rule.records):
                yield f"{rule.at('records')}: records is {count}, and must be at most {rule.records}"


def kept(gate: Gate, case: Case, *, trained: bool) -> Assertion:
    """Return whether a case keeps a limit of its rule; the number may be its answer or given.

    The answer of a ``trained`` case is the noise that was solved for.
    """
    best = case.answers
    try:
        if gate.of_attack and best:
            return judge(gate, case)
        if not (best and all(trained or result.quantity in _BUDGET for result in best)):
            return Assertion(gate.text, False, "no answer about the budget", None)
        value = max(quantity(result, gate.name) for result in best)
    except DpcalcError as error:
        return Assertion(gate.text, False, error.message, None)
    assert not isinstance(gate.limit, str)
    slack = gate.limit - value
    return Assertion(gate.text, value <= gate.limit, value, None if math.isnan(slack) else slack)


def skipped(rule: Rule, reason: str) -> str:
    """Return why a strict check fails a skipped case."""
    return f"{rule.place or 'strict'}: the case is skipped ({reason}), and a strict check skips nothing"


# --- a check ----------------------------------------------------------------------------------------------------------


def left_out(recipes: Sequence[Recipe], missing: Sequence[tuple[str, str]]) -> Iterator[Case]:
    """Yield a failed case for each unchecked case of a strict rule and each required one that is missing."""
    for recipe in {recipe.file: recipe for recipe in recipes}.values():
        names = [name for of, name in missing if of == recipe.file and recipe.policy.rule_of(group_of(name)).strict]
        if names:
            yield _failed(recipe.file, f"strict: {len(names)} cases were not selected: {listed(names, _NAMED)}")
    policy = recipes[0].policy
    required = {pattern for pattern, rule in policy.rules.items() if rule.required}
    if required:
        gone = set(missing)
        for recipe in recipes:
            for group, entries in recipe.made.items():
                pattern = policy.pattern_of(group)
                if pattern in required and any(
                    entry.skip is None and (recipe.file, entry.name) not in gone for entry in entries
                ):
                    required.remove(pattern)
    for pattern in [pattern for pattern in policy.rules if pattern in required]:
        rule = policy.rules[pattern]
        assert rule.place is not None
        message = f"{rule.at('required')}: no case was checked whose name fits {pattern}, and one is required"
        yield _failed(rule.place.file, message, rule.place)


def _failed(file: str, message: str, place: Place | None = None) -> Case:
    line, column = (1, 1) if place is None else (max(1, place.line), max(1, place.column))
    check = Check("strict", "check", file, line, column, Status.FAILED, message, None, 1, (), (message,), True)
    return Case("", {}, (), check=check)


def fail_weaker(report: Report) -> Report:
    """Return a report in which cases that ask for less than the baseline fail."""
    weaker: dict[tuple[str, str], list[str]] = {}
    changes = report.changes or ()
    for change in changes:
        if change.weaker:
            moved = f"{change.quantity or change.what}: {change.before or 'nothing'} -> {change.after or 'nothing'}"
            weaker.setdefault((change.file, change.name), []).append(f"weaker than in the baseline: {moved}")
    cases = [_weakened(case, weaker) for case in report.cases]
    gone = [change for change in changes if change.what == Difference.REMOVED]
    if gone:  # of any file: a recipe that moved takes its cases with it
        names = [f"{change.file}: {change.name}" for change in gone]
        cases.append(_failed(gone[0].file, f"cases of the baseline are gone: {listed(names, _NAMED)}"))
    return report._replace(cases=tuple(cases))


def _weakened(case: Case, weaker: dict[tuple[str, str], list[str]]) -> Case:
    check = case.check
    if check is None or check.status == Status.ERROR:
        return case
    objections = tuple(weaker.get((os.path.normpath(check.file), check.name), ()))
    if not objections:
        return case
    earlier = check.message if check.status == Status.FAILED else None
    message = "; ".join(filter(None, (earlier, *objections)))
    failed = check._replace(
        status=Status.FAILED, message=message, exit_code=1, objections=(*check.objections, *objections)
    )
    return case._replace(check=failed)
