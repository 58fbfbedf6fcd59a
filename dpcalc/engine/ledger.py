"""A ledger: several runs, releases and queries about the same records, and what holds of all of them together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dpcalc.engine.ask import contenders, implied_gate, judged
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.description import run_of
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.groups import refuse_groups
from dpcalc.engine.question import Question, check_question
from dpcalc.engine.search import DIRECTIONS, extreme
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.choices import Adjacency
from dpcalc.model.parameter import name_of
from dpcalc.model.quantities import Kind, Quantity
from dpcalc.model.run import Description, Run
from dpcalc.model.source import Source
from dpcalc.named_tuple import NamedTuple
from dpcalc.notions.account import Box, Part, Total, compose_all, with_pure
from dpcalc.notions.curves import profile_of
from dpcalc.notions.groups import grouped
from dpcalc.notions.guarantee import Composition, Gdp, Point, Profile, Rdp
from dpcalc.notions.tuning import Tuning, tuned
from dpcalc.numerics.floats import UNIT, ratio_up, up
from dpcalc.numerics.logspace import exp_up
from dpcalc.report import LOG_DELTA_ALONE, Case, Result
from dpcalc.theorems.record import for_algorithm

MECHANISM = ("mu", "epsilon", "delta", "noise_multiplier", "noise_std", "laplace_scale", "sensitivity")
"""What describes a release that is no run: a Gaussian or Laplace mechanism, or (epsilon, delta) alone."""

SOLVABLE = ("noise_std", "noise_multiplier", "laplace_scale")
"""What the last entry can be solved for."""

MOST_ENTRIES = 200
MOST_TIMES = 10**12

_ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)
_WIDTH = 1 << 36  # of the bracket in which a solution is found, in representable numbers: 1e-5
_REMAINING = 24

ASSUMES = (
    "every entry is about the same records, draws its randomness afresh, and may depend on what the earlier ones gave",
    "what each entry is, and how many there are, is fixed beforehand: no noise is chosen by what was released",
    "what is assumed of each run holds of it (`dpcalc compare` says what)",
)
_DISJOINT = (
    "which part a record is in is decided by a rule that looks at this record alone, fixed beforehand; an entry of a "
    "part uses no record of another part"
)
_TUNED = (
    "the number of runs of a tuned entry is drawn from its law, independently of the data, stays secret, and nothing "
    "caps it; each run draws its settings afresh, the score by which the best is chosen is part of what the run's "
    "guarantee covers, and only the best is released"
)
_NULL_STAYS = "a null record belongs to the part of the record that it replaces"
_STAYS = "a record and the one that replaces it are in the same part"

_TITLES = {
    "own": ("what holds of the entry", "dpcalc", "by the theorem of the entry"),
    "gdp": ("mu^2 adds up", "dong2022", "Corollary 3.3"),
    "exact": ("Gaussian parts and boxes, exactly", "kairouz2015", "Theorem 3.3 for each box; docs/ledger.md"),
    "pld": ("the law of the privacy loss", "zhu2022", "Theorem 10: dominating pairs, in either order"),
    "renyi": ("Renyi curves add up", "mironov2017", "Proposition 1"),
}


BOUNDS = tuple(f"ledger.{form}" for form in _TITLES)
"""The ids of the rows."""


class Entry(NamedTuple):
    """One line of a ledger.

    Attributes:
        name: as written.
        command: of a described run; empty for a mechanism.
        given: the parameters of the run, or those of `MECHANISM`; delta as its logarithm, ``log_delta``.
        times: how often it is done.
        part: the part of the records that it is about; empty for all of them.
        tuning: how many runs the best is chosen from; None for a run whose settings were fixed.
        adjacency: its own, where it says so.
    """

    name: str
    command: str
    given: Mapping[str, Any]
    times: int = 1
    part: str = ""
    tuning: Tuning | None = None
    adjacency: Adjacency | None = None


class Ledger(NamedTuple):
    """The entries, what neighbouring data sets differ in, and the budget of all together.

    ``kept`` is whether a record that replaces another one stays in its part.
    """

    entries: tuple[Entry, ...]
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    group_size: int = 1
    kept: bool = False


class _Chosen(NamedTuple):
    """An entry and what holds of one run of it, in every form that is known, the best alone first."""

    entry: Entry
    parts: tuple[Part, ...]
    epsilon: float


def answer_ledger(ledger: Ledger, question: Question, gates: Sequence[Any] = ()) -> Case:
    """Return the case of a ledger: epsilon at delta, delta at epsilon, or the noise of the last entry.

    Raises:
        SpecError: the ledger or the question is malformed, or adjacencies are mixed in a way that nothing covers.
        NotApplicable: nothing is known of an entry, or of groups of records.
        Infeasible: no noise of the last entry meets the budget.
    """
    check_question(question)
    ledger, chained = _of_one_adjacency(ledger)
    _check(ledger)
    if question.log_delta is None and question.epsilon is None:
        raise SpecError("a ledger is asked for epsilon at a delta", "give --delta, or delta in its budget")
    details: dict[str, Any] = {}
    solved: tuple[str, float] | None = None
    if question.solve:
        solved = _solved(ledger, question, chained)
        ledger = ledger._replace(entries=(*ledger.entries[:-1], _changed(ledger.entries[-1], *solved)))
    chosen = _chosen(ledger, question)
    rows, deciding = _rows(ledger, chosen, question, chained)
    if solved is not None:
        kept = [row for row in rows if row.best or row.value <= question.safe_epsilon]
        rows = [_as_solved(row, solved, question) for row in kept]  # others may need more noise
    details["entries"] = [_line(one) for one in chosen]
    if len(_names(ledger)) > 1 or _names(ledger)[0]:
        details["part"] = deciding
    stated = question.epsilon is not None and question.log_delta is not None
    if stated and ledger.adjacency not in _ONE_WAY:  # what is left needs the curves of both orders
        details["remaining"] = _remaining(ledger, chosen, question, chained)
    if chained:
        details["chained"] = True
    case = Case("ledger", _inputs(ledger, question, chained), tuple(rows), ledger=details)
    return case._replace(assertions=(*implied_gate(question, case), *judged(gates, case)))


# --- what is asked ----------------------------------------------------------------------------------------------------


def _check(ledger: Ledger) -> None:
    """Refuse what nothing covers.

    Raises:
        SpecError: there is no entry, or parts or groups are combined with what does not allow them.
    """
    entries, parted = ledger.entries, any(entry.part for entry in ledger.entries)
    if not 1 <= len(entries) <= MOST_ENTRIES:
        raise SpecError(f"the ledger has {len(entries)} entries", f"from 1 to {MOST_ENTRIES} are read")
    if not 1 <= ledger.group_size <= 10**6:
        raise SpecError(f"group_size is {ledger.group_size}; it must be from 1 to 1e6")
    if ledger.group_size > 1 and ledger.adjacency in _ONE_WAY:
        raise SpecError(
            f"what groups cost needs both orders, and the adjacency is {ledger.adjacency}", "use adjacency add-remove"
        )
    if parted and ledger.group_size > 1:
        raise SpecError("a group of records may be in several parts", "leave out part or group_size")
    if parted and ledger.adjacency is Adjacency.REPLACE_ONE and not ledger.kept:
        raise SpecError(
            "a record that is replaced may move to another part, and then both parts change",
            "write partition: kept if it stays in its part, or use adjacency add-remove",
        )
    for entry in entries:
        if entry.tuning is not None and ledger.adjacency in _ONE_WAY:
            raise SpecError(
                f"{entry.name}: what tuning costs needs both orders, and the adjacency is {ledger.adjacency}",
                "use adjacency add-remove",
            )


def _of_one_adjacency(ledger: Ledger) -> tuple[Ledger, bool]:
    """Return the ledger with one adjacency for all entries, and whether replacement is to follow by the chain.

    Raises:
        SpecError: adjacencies are mixed in a way that nothing covers.
    """
    own = [entry.adjacency or ledger.adjacency for entry in ledger.entries]
    if all(each is ledger.adjacency for each in own):
        return ledger, False
    if ledger.adjacency in _ONE_WAY and all(each in (ledger.adjacency, Adjacency.ADD_REMOVE) for each in own):
        return ledger, False
    if ledger.adjacency is Adjacency.REPLACE_ONE and all(each is Adjacency.ADD_REMOVE for each in own):
        if ledger.kept or any(entry.part for entry in ledger.entries):
            raise SpecError("parts and the chain from add-remove to replacement are not combined", "leave out part")
        return ledger._replace(adjacency=Adjacency.ADD_REMOVE), True
    strange = next(entry for entry, each in zip(ledger.entries, own, strict=True) if each is not ledger.adjacency)
    raise SpecError(
        f"{strange.name} is for adjacency {strange.adjacency}, and the ledger for {ledger.adjacency}: nothing composes "
        "the two",
        "give every entry one adjacency; a ledger for replace-one may have entries that are all for add-remove, and "
        "one for add or remove may have entries for add-remove",
    )


def _inputs(ledger: Ledger, question: Question, chained: bool) -> dict[str, tuple[Any, Source]]:
    inputs: dict[str, tuple[Any, Source]] = {"entries": (len(ledger.entries), Source.ARGUMENT)}
    inputs["adjacency"] = (str(Adjacency.REPLACE_ONE if chained else ledger.adjacency), Source.ARGUMENT)
    if ledger.group_size > 1:
        inputs["group_size"] = (ledger.group_size, Source.ARGUMENT)
    if question.epsilon is not None:
        inputs["epsilon"] = (question.epsilon, question.source)
    if question.delta is not None:
        inputs["delta"] = (question.delta, question.source)
    return inputs


# --- what holds of each entry -----------------------------------------------------------------------------------------


def _chosen(ledger: Ledger, question: Question) -> list[_Chosen]:
    total = sum(entry.times for entry in ledger.entries)
    log_delta = question.safe_log_delta if question.log_delta is not None else LOG_DELTA_ALONE
    return [_chosen_of(entry, ledger, log_delta, total) for entry in ledger.entries]


def _chosen_of(entry: Entry, ledger: Ledger, log_delta: float, total: int, *, quickly: bool = False) -> _Chosen:
    """Return what holds of an entry, the form first that has the least epsilon for all its times alone.

    ``quickly`` does without that epsilon where there is one form.
    """
    parts = [_without_point(part, log_delta, total) for part in _parts_of(entry, ledger)]
    if entry.tuning is not None:
        parts = [form for part in parts for form in tuned(part, entry.tuning)]
    one_way = ledger.adjacency in _ONE_WAY
    if quickly and len(parts) == 1:
        return _Chosen(entry, tuple(parts), math.nan)
    ranked = []
    for place, part in enumerate(parts):
        try:
            found = compose_all([(part, entry.times)], one_way=one_way)
            ranked.append((min(_epsilon(each, log_delta) for each in found), place))
        except (NotApplicable, Infeasible):
            continue
    if not ranked:
        raise NotApplicable(f"nothing is known of {entry.name}", "`dpcalc compare` says what is of such a run")
    ranked.sort()
    return _Chosen(entry, tuple(parts[place] for _, place in ranked), ranked[0][0])


def _epsilon(total: Total, log_delta: float) -> float:
    return total.guarantee.epsilon(log_delta).value


def _without_point(part: Part, log_delta: float, total: int) -> Part:
    """Return a part; a rule for epsilon becomes (epsilon, delta) at a delta that is a small share of all."""
    if not isinstance(part, Point):
        return part
    share = log_delta - math.log(8.0 * total)
    return Box(part.rule(share), share)


def _parts_of(entry: Entry, ledger: Ledger) -> list[Part]:
    if entry.command:
        return _runs_parts(entry, ledger)
    return [mechanism(entry, replaced=ledger.adjacency is Adjacency.REPLACE_ONE)]


def mechanism(entry: Entry, *, replaced: bool = False) -> Part:
    """Return what holds of a mechanism that is described by its noise, its mu or its (epsilon, delta).

    A noise multiplier is over what one record adds at most; where a record is ``replaced`` the sum moves by twice that.

    Raises:
        SpecError: it is described twice, or not at all.
    """
    given = {name: value for name, value in entry.given.items() if value is not None and name != "delta"}
    kinds = [name for name in ("mu", "epsilon", "noise_multiplier", "noise_std", "laplace_scale") if name in given]
    scaled = kinds in (["noise_std"], ["laplace_scale"])
    if len(kinds) != 1 or ("sensitivity" in given) != scaled or ("log_delta" in given and kinds != ["epsilon"]):
        raise SpecError(
            f"{entry.name} is no mechanism: it has {', '.join(given) or 'nothing'}",
            "give mu, or epsilon (and delta), or noise_multiplier, or noise_std and sensitivity, or laplace_scale and "
            "sensitivity; or algorithm and the parameters of a run",
        )
    value = float(given[kinds[0]])
    if kinds == ["epsilon"]:
        log_delta = given.get("log_delta", -math.inf)
        return Box(up(value), log_delta + 2.0 * UNIT * (1.0 + abs(log_delta)) if log_delta > -math.inf else log_delta)
    if kinds == ["mu"]:
        return Gdp(up(value))
    whole = 2.0 if replaced and kinds == ["noise_multiplier"] else 1.0
    ratio = ratio_up(float(given.get("sensitivity", whole)), value)
    if kinds == ["laplace_scale"]:
        from dpcalc.notions import pld

        return Composition([(pld.laplace(ratio=ratio), 1)])
    return Gdp(ratio)


def _described(entry: Entry, ledger: Ledger) -> Run:
    """Return the run that an entry describes, for the adjacency of the ledger.

    Raises:
        SpecError: it is none; the message names the entry.
    """
    given = {name: value for name, value in entry.given.items() if value is not None}
    algorithm = str(given.get("algorithm", COMMANDS[entry.command].default))
    if algorithm in ALGORITHMS and "adjacency" in ALGORITHMS[algorithm].parameters:
        given["adjacency"] = str(ledger.adjacency)
    sources = dict.fromkeys(given, Source.ARGUMENT)
    try:
        run = run_of(COMMANDS[entry.command], Description(given, sources))[1]
    except DpcalcError as error:
        raise type(error)(f"{entry.name}: {error.message}", error.hint) from None
    if run.algorithm.chained:
        raise SpecError(f"{entry.name}: data sets that differ by a shift are not composed", "describe a run of records")
    if (run.group_size or 1) > 1:
        raise SpecError(f"{entry.name}: groups are of the whole ledger", "write group_size beside entries")
    if ledger.group_size > 1:
        try:
            refuse_groups(run)
        except NotApplicable as error:
            raise NotApplicable(f"{entry.name}: {error.message}", error.hint) from None
    return run


def _runs_parts(entry: Entry, ledger: Ledger) -> list[Part]:
    """Return what every theorem proves of a described run.

    Raises:
        NotApplicable: no theorem speaks of it.
    """
    run = _described(entry, ledger)
    families = COMMANDS[entry.command].families or run.algorithm.families
    bounds = contenders(for_algorithm(run.algorithm.name, families), run)
    parts: list[Part] = []
    first: DpcalcError | None = None
    for bound in bounds:
        if not bound.guarantee or bound.unpromised(run):
            continue
        try:
            parts.append(guarantee_of(bound, run))
        except SpecError:
            raise
        except DpcalcError as error:
            first = first or error
    if not parts:
        why = f"{first.message}" if first else "no theorem speaks of it"
        raise NotApplicable(f"{entry.name}: {why}", first.hint if first else None)
    return parts


# --- all of them together ---------------------------------------------------------------------------------------------


def _names(ledger: Ledger) -> list[str]:
    """Return the parts of the records; an empty name for all of them, where no entry names one."""
    return sorted({entry.part for entry in ledger.entries if entry.part}) or [""]


def _totals(ledger: Ledger, chosen: Sequence[_Chosen], part: str, chained: bool) -> list[Total]:
    """Return the guarantees of all entries that are about a record of this part."""
    about = [one for one in chosen if one.entry.part in ("", part)]
    one_way = ledger.adjacency in _ONE_WAY
    selections = [
        [one.parts[0] for one in about],
        _selection(about, Gdp),
        _selection(about, (Gdp, Rdp, Box)),
    ]
    totals: dict[str, Total] = {}
    for selection in selections:
        if selection is None:
            continue
        try:
            found = compose_all(
                [(each, one.entry.times) for each, one in zip(selection, about, strict=True)], one_way=one_way
            )
        except NotApplicable:
            continue
        for total in found:
            totals.setdefault(total.form, total)
    if not totals:
        raise NotApplicable("nothing composes these entries", "give each in another form")
    size = ledger.group_size * (2 if chained else 1)
    return [
        total._replace(guarantee=grouped(total.guarantee, size, slow=total.form == "pld")) for total in totals.values()
    ]


def _selection(about: Sequence[_Chosen], kind: Any) -> list[Part] | None:
    """Return one form of this kind for every entry, or None where one has none."""
    found = [next((part for part in one.parts if isinstance(part, kind)), None) for one in about]
    return None if any(part is None for part in found) else [part for part in found if part is not None]


def _rows(ledger: Ledger, chosen: Sequence[_Chosen], question: Question, chained: bool) -> tuple[list[Result], str]:
    """Return the rows of the part that is worst off, best first, and its name."""
    worst: tuple[float, list[Result], str] | None = None
    for name in _names(ledger):
        rows = sorted(
            (_row(total, ledger, question, chained) for total in _totals(ledger, chosen, name, chained)),
            key=_size,
        )
        if worst is None or _size(rows[0]) > worst[0]:
            worst = (_size(rows[0]), rows, name)
    assert worst is not None
    size, rows, name = worst
    if math.isinf(size) and size > 0.0:
        raise NotApplicable("gives no finite epsilon here", "more noise, or a larger delta")
    rows = [row for row in rows if math.isfinite(row.value)]
    return [rows[0]._replace(best=True), *rows[1:]], name


def _size(row: Result) -> float:
    return row.log_delta if row.quantity == Quantity.DELTA and row.log_delta is not None else row.value


def _row(total: Total, ledger: Ledger, question: Question, chained: bool) -> Result:
    from dpcalc.references import SHORT

    title, reference, locator = _TITLES[total.form]
    guarantee = total.guarantee
    assumes = [*ASSUMES]
    if any(entry.part for entry in ledger.entries):
        assumes.append(_DISJOINT)
        if ledger.adjacency is Adjacency.NULL_RECORD:
            assumes.append(_NULL_STAYS)
        if ledger.adjacency is Adjacency.REPLACE_ONE:
            assumes.append(_STAYS)
    if any(entry.tuning is not None for entry in ledger.entries):
        assumes.append(_TUNED)
    fields: dict[str, Any] = {
        "adjacency": "replace_one" if chained else str(ledger.adjacency).replace("-", "_"),
        "assumes": tuple(assumes),
        "reference": f"{SHORT[reference]}, {locator}",
        "mu": guarantee.mu if isinstance(guarantee, Gdp) else None,
    }
    epsilon: float | None
    if question.log_delta is not None:
        answer = guarantee.epsilon(question.safe_log_delta)
        quantity, value, epsilon, delta, log_delta = (
            Quantity.EPSILON, answer.value, answer.value, question.delta, question.log_delta,
        )  # fmt: skip
    else:
        answer = guarantee.log_delta(question.safe_epsilon)
        delta = value = exp_up(answer.value)
        quantity, epsilon, log_delta = Quantity.DELTA, question.epsilon, answer.value
    if answer.order is not None and math.isfinite(answer.order):
        fields["order"] = answer.order
    conversion = "exact" if total.form == "gdp" else "profile" if answer.conversion == "profile" else answer.conversion
    return Result(
        f"ledger.{total.form}", title, quantity, value, Kind.UPPER, epsilon=epsilon, delta=delta, log_delta=log_delta,
        conversion=conversion, **fields,
    )  # fmt: skip


# --- the noise of the last entry --------------------------------------------------------------------------------------


def _changed(entry: Entry, name: str, value: float) -> Entry:
    return entry._replace(given={**entry.given, name: value})


def _solved(ledger: Ledger, question: Question, chained: bool) -> tuple[str, float]:
    """Return the noise of the last entry with which all entries together meet the budget, rounded to the safe side.

    Raises:
        SpecError: it cannot be solved for, or the budget is not known.
        Infeasible: no noise meets the budget.
    """
    name, last = name_of(str(question.solve).replace("-", "_")), ledger.entries[-1]
    if name not in SOLVABLE:
        raise SpecError(f"a ledger cannot be solved for {question.solve}", f"one of {', '.join(SOLVABLE)}")
    if question.epsilon is None or question.log_delta is None:
        raise SpecError(f"solving for {name} needs the budget", "give --epsilon and --delta, or budget in the ledger")
    if last.given.get(name) is not None:
        raise SpecError(f"{last.name} has {name}, and it is also to be solved for", "leave out one of the two")
    log_delta, epsilon = question.safe_log_delta, question.safe_epsilon
    total = sum(entry.times for entry in ledger.entries)
    others = [_chosen_of(entry, ledger, log_delta, total) for entry in ledger.entries[:-1]]

    @functools.cache
    def excess(value: float) -> float:
        own = _chosen_of(_changed(last, name, value), ledger, log_delta, total, quickly=True)
        try:
            return max(
                min(_excess(each, epsilon, log_delta) for each in _totals(ledger, [*others, own], part, chained))
                for part in _names(ledger)
            )
        except Infeasible:
            return 1e300

    start = float(last.given.get("sensitivity") or 1.0)
    try:
        return name, extreme(excess, DIRECTIONS[name], start, _WIDTH, stride=2.0)
    except Infeasible:
        raise Infeasible(
            f"no {name} of {last.name} meets epsilon = {question.epsilon:g} at this delta: the other entries take too "
            "much",
            "allow a larger epsilon or delta",
        ) from None


def _excess(total: Total, epsilon: float, log_delta: float) -> float:
    """Return a number that is <= 0 exactly where the total keeps the budget."""
    if isinstance(total.guarantee, Rdp):
        return total.guarantee.epsilon(log_delta).value - epsilon
    if isinstance(total.guarantee, Composition):
        return total.guarantee.excess(epsilon, log_delta)
    return min(100.0, total.guarantee.log_delta(epsilon).value - log_delta)


def _as_solved(row: Result, solved: tuple[str, float], question: Question) -> Result:
    """Return a row of epsilon as one of the noise that was solved for; the epsilon reached is a detail."""
    name, value = solved
    details = {**(row.details or {}), "achieved": {"epsilon": row.value}}
    return row._replace(quantity=name, value=value, epsilon=question.epsilon, details=details)


# --- what is left -----------------------------------------------------------------------------------------------------


def _remaining(ledger: Ledger, chosen: Sequence[_Chosen], question: Question, chained: bool) -> dict[str, float]:
    """Return what one more release about all records may take: its epsilon if it is pure, and its mu; rounded down.

    mu is told where the total has a formula: with a lattice it would take longer than all the rest.
    """
    epsilon, log_delta = question.safe_epsilon, question.safe_log_delta
    size = ledger.group_size * (2 if chained else 1)
    totals = [
        min(_totals(ledger, chosen, part, chained), key=lambda each: _excess(each, epsilon, log_delta))
        for part in _names(ledger)
    ]
    if any(_excess(total, epsilon, log_delta) > 0.0 for total in totals):
        return {"epsilon": 0.0}
    curves = [profile_of(total.guarantee) for total in totals]

    def keeps_pure(value: float) -> bool:
        box = up(size * value)
        return box <= epsilon and max(with_pure(curve, box, epsilon) for curve in curves) <= log_delta

    left = {"epsilon": _largest(keeps_pure, 1e-6, epsilon)}
    about = [(one.parts[0], one.entry.times) for one in chosen]
    if len(totals) > 1 or size > 1 or totals[0].form not in ("gdp", "exact"):
        return left

    def keeps(value: float) -> bool:
        found = compose_all([*about, (Gdp(value), 1)])
        return all(_excess(each, epsilon, log_delta) <= 0.0 for each in found)

    return {**left, "mu": _largest(keeps, 1e-6, 10.0 * epsilon + 10.0)}


def _largest(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """Return the greatest value found that keeps the budget, to a thousandth; 0 where not even the least does."""
    if not low < high or not keeps(low):
        return 0.0
    for _ in range(_REMAINING):
        middle = math.sqrt(low * high)
        if not high > low * (1.0 + 1e-3):
            break
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _line(one: _Chosen) -> dict[str, Any]:
    """Return what is shown of an entry."""
    entry = one.entry
    kind = {Gdp: "mu", Box: "point", Rdp: "rdp", Profile: "log_delta"}.get(type(one.parts[0]), "parts")
    line: dict[str, Any] = {"name": entry.name, "times": entry.times, "form": kind, "epsilon": one.epsilon}
    if entry.command:
        line["algorithm"] = str(entry.given.get("algorithm", COMMANDS[entry.command].default))
    if isinstance(one.parts[0], Gdp):
        line["mu"] = one.parts[0].mu
    if entry.part:
        line["part"] = entry.part
    if entry.tuning is not None:
        line["tuning"] = {"distribution": str(entry.tuning.law), "mean": entry.tuning.mean, "stop": entry.tuning.stop}
    line["given"] = {name: value for name, value in entry.given.items() if value is not None}
    return line
