"""A ledger: the total guarantee of its entries, the noise of the last one, and what is left of the budget."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dpcalc.engine.evaluate import implied_gate
from dpcalc.engine.gate import judged
from dpcalc.engine.ledgers.entries import (
    ONE_WAY,
    Chosen,
    apart,
    check_entries,
    chosen_of,
    described_run,
    known_of,
    line_of,
    of_one_adjacency,
)
from dpcalc.engine.question import check_question
from dpcalc.engine.solving.search import DIRECTIONS, extreme
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError, isolate_failure, refuse
from dpcalc.model.algorithm import Source
from dpcalc.model.parameter import name_of
from dpcalc.model.quantities import Adjacency, Kind, Quantity
from dpcalc.model.question import Entry, Ledger, Question, query_of
from dpcalc.notions.conversions import Total, compose_all
from dpcalc.notions.guarantee import Box, Composition, Gdp, Guarantee, Rdp, worst
from dpcalc.notions.randomised_response import with_pure
from dpcalc.numerics.floats import exp_up, up
from dpcalc.report import Case, Guess, Result

SOLVABLE = ("noise_std", "noise_multiplier", "laplace_scale")
"""The parameters of the last entry that can be solved for."""

_WIDTH = 1 << 36  # width of the final bracket, in representable numbers: relatively 1e-5
_RESOLUTION = 128  # of a lattice accurate to about 0.002 in ln delta, and 1e-4 in noise
_LOOSE = 1.003  # the factor of noise that a rough bound may cost
_LEAST, _REMAINING = 1e-6, 24  # the least remainder that is sought, and the halvings of its logarithm
_GAPS = (0.0, 1e-3, 4e-3, 0.016, 0.064, 0.256, 1.0)  # by which an estimate may exceed what the ledger accepts
_FAR = 1e6  # at this epsilon only the deltas of (epsilon, delta) entries remain

ASSUMES = (
    "every entry is about the same records, draws its randomness afresh, and may depend on what the earlier ones gave",
    "what each entry is, and how many there are, is fixed beforehand: no noise is chosen by what was released",
    "what is assumed of each run holds of it (`dpcalc compare` says what)",
)
_DISJOINT = (
    "which part a record is in is decided by chance, or by a rule that looks at this record alone, fixed beforehand; "
    "an entry of a part uses no record of another part"
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
    "groups": ("pairs of groups, by the law of the privacy loss", "dpcalc", "sampled steps, groups"),
    "renyi": ("Renyi curves add up", "mironov2017", "Proposition 1"),
}

_ADDED = "gdp"
_WITH_A_FORMULA = frozenset({_ADDED, "exact"})
"""The forms of a total that need no lattice."""

BOUNDS = tuple(f"ledger.{form}" for form in _TITLES)
"""The ids of the rows."""


def answer_ledger(ledger: Ledger, question: Question, gates: Sequence[Any] | None = None) -> Case:
    """Return the case of a ledger: epsilon at delta, delta at epsilon, or the noise of the last entry.

    Raises:
        SpecError: the ledger or the question is malformed, or no theorem covers its mix of adjacencies.
        NotApplicable: no guarantee is known for an entry, or for groups of records.
        Infeasible: no noise of the last entry meets the budget.
    """
    check_question(question)
    asked = ledger
    ledger, chained = of_one_adjacency(ledger)
    check_entries(ledger)
    if question.log_delta is None and question.epsilon is None:
        raise SpecError("a ledger is asked for epsilon at a delta", "give --delta, or delta in its budget")
    details: dict[str, Any] = {}
    solved: tuple[str, float] | None = None
    if question.solve:
        solved, ledger, known = _solved(ledger, question, chained)
    else:
        known = known_of(ledger, question)
    totals = totals_of(ledger, known, chained)
    rows, deciding = rows_of(ledger, totals, question, chained)
    if solved is not None:
        kept = [row for row in rows if row.best or row.value <= question.safe_epsilon]
        rows = [_as_solved(row, solved, question) for row in kept]  # others may need more noise
    details["entries"] = [line_of(one) for one in known]
    if deciding or len(totals) > 1:
        details["part"] = deciding
    stated = question.epsilon is not None and question.log_delta is not None
    if solved is not None:
        details["remaining"] = {"epsilon": 0.0}  # the noise that was solved for uses up the budget
    elif stated and ledger.adjacency not in ONE_WAY:  # what is left needs the curves of both orders
        details["remaining"] = _remaining(ledger, known, totals, question, chained)
    if chained:
        details["chained"] = True
    query = query_of("ledger", {"ledger": asked}, question)
    case = Case("ledger", _inputs(ledger, question, chained), tuple(rows), ledger=details, query=query)
    parts = list(totals.values())
    case = case._replace(guess=_guess(case, parts))
    if question.curves and ledger.adjacency not in ONE_WAY:
        case = _with_curves(case, _worst_of(parts))
    case = case._replace(warnings=tuple(_misread(asked, question, case)))
    case = case._replace(assertions=implied_gate(question, case))
    return case._replace(assertions=judged(gates, case))


def _misread(ledger: Ledger, question: Question, case: Case) -> Iterator[str]:
    """Yield a warning for each noise_std that may be meant as a noise multiplier, with the total in that case."""
    from dpcalc.engine.advice.missing import is_misread, words

    for place, entry in enumerate(ledger.entries):
        typed = entry.given.get("noise_std") if entry.command else None
        if typed is None or not is_misread(run := described_run(entry, ledger)):
            continue
        given = {**entry.given, "noise_multiplier": typed, "noise_std": None}
        entries = (*ledger.entries[:place], entry._replace(given=given), *ledger.entries[place + 1 :])
        try:
            other = answer_ledger(ledger._replace(entries=entries), question).best
        except DpcalcError:
            other = None
        assert case.best is not None
        yield f"{entry.name}: {words(run, case.best, other)}"


def _with_curves(case: Case, totals: Sequence[Total]) -> Case:
    """Return the case with the curves behind its answer, or without them if one cannot be computed."""
    from dpcalc.engine.attack.curves import curves_of

    assert case.best is not None
    try:
        with isolate_failure():
            return case._replace(curves=curves_of(_named(totals), case.best, guess=case.guess))
    except DpcalcError:
        return case


def _guess(case: Case, parts: Sequence[Sequence[Total]]) -> Guess | None:
    """Return how often an attacker guesses right about a record of the least private part."""
    from dpcalc.engine.attack.guess import guess_of_answer, least_guess

    best = case.best
    if best is None or guess_of_answer(best) is None:
        return None
    try:
        with isolate_failure():
            alone = best if len(parts) == 1 else best._replace(mu=None)  # mu is of one part
            return max((least_guess(_named(totals), alone) for totals in parts), key=lambda guess: guess.advantage)
    except DpcalcError:
        return guess_of_answer(best)


def _worst_of(parts: Sequence[Sequence[Total]]) -> list[Total]:
    """Return the worst totals over all parts, in the forms that every part has."""
    if len(parts) == 1:
        return list(parts[0])
    forms = [{total.form: total.guarantee for total in totals} for totals in parts]
    return [Total(form, worst([known[form] for known in forms])) for form in forms[0] if all(form in k for k in forms)]


def _named(totals: Sequence[Total]) -> list[tuple[str, Guarantee]]:
    return [(f"ledger.{composed.form}", composed.guarantee) for composed in totals]


# --- inputs -----------------------------------------------------------------------------------------------------------


def _inputs(ledger: Ledger, question: Question, chained: bool) -> dict[str, tuple[Any, Source]]:
    inputs = {
        "entries": (len(ledger.entries), Source.ARGUMENT),
        "adjacency": (str(Adjacency.REPLACE_ONE if chained else ledger.adjacency), Source.ARGUMENT),
        "group_size": (ledger.group_size if ledger.group_size > 1 else None, Source.ARGUMENT),
        "epsilon": (question.epsilon, question.source),
        "delta": (question.delta, question.source),
    }
    return {name: one for name, one in inputs.items() if one[0] is not None}


# --- totals -----------------------------------------------------------------------------------------------------------


def _names(ledger: Ledger) -> list[str]:
    """Return the names of the parts of the records, or one empty name if no entry names a part."""
    return sorted({entry.part for entry in ledger.entries if entry.part}) or [""]


def totals_of(ledger: Ledger, chosen: Sequence[Chosen], chained: bool) -> dict[str, list[Total]]:
    """Return the total guarantees of every part of the records, by its name."""
    return {part: _totals(ledger, chosen, part, chained) for part in _names(ledger)}


def _totals(ledger: Ledger, chosen: Sequence[Chosen], part: str, chained: bool) -> list[Total]:
    """Return the total guarantees of all entries that use records of this part."""
    about = [one for one in chosen if one.entry.part in ("", part)]
    one_way = ledger.adjacency in ONE_WAY
    of_groups = [] if chained or ledger.group_size == 1 else _in_groups(about)
    entries = [one.entry for one in about]
    if of_groups and not any(isinstance(one.group, Box) for one in about):
        return [apart(total, entries) for total in of_groups]  # pairs of groups are exact, and the chain is not
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
            composed = compose_all(
                [(part, one.entry.times) for part, one in zip(selection, about, strict=True)],
                one_way=one_way,
            )
        except NotApplicable:
            continue
        for total in composed:
            totals.setdefault(total.form, total)
    if not totals:
        raise NotApplicable("nothing composes these entries", "give each in another form")
    size = ledger.group_size * (2 if chained else 1)
    found = of_groups + [total._replace(guarantee=total.guarantee.grouped(size)) for total in totals.values()]
    return [apart(total, entries) for total in found]


def _in_groups(about: Sequence[Chosen]) -> list[Total]:
    """Return the total of the entries' guarantees for groups; nothing where the chain is exact, or needed."""
    if not any(isinstance(one.group, Composition) for one in about):
        return []
    parts = [(one.group, one.entry.times) for one in about if one.group is not None]
    if len(parts) < len(about):
        return []
    return [total._replace(form="groups") for total in compose_all(parts)][:1]


def _selection(about: Sequence[Chosen], kind: Any) -> list[Guarantee] | None:
    """Return a guarantee of this kind for every entry, or None if an entry has none."""
    forms = [next((part for part in one.parts if isinstance(part, kind)), None) for one in about]
    return None if any(part is None for part in forms) else [part for part in forms if part is not None]


def rows_of(
    ledger: Ledger, totals: Mapping[str, Sequence[Total]], question: Question, chained: bool
) -> tuple[list[Result], str]:
    """Return the rows of the least private part, best first, and its name.

    Raises:
        NotApplicable: there is no finite epsilon.
    """
    worst: tuple[float, list[Result], str] | None = None
    for name, several in totals.items():
        rows = sorted((_row(total, ledger, question, chained) for total in several), key=_size)
        if worst is None or _size(rows[0]) > worst[0]:
            worst = (_size(rows[0]), rows, name)
    assert worst is not None
    size, rows, name = worst
    if math.isinf(size) and size > 0.0:
        raise _no_epsilon([total.guarantee for total in totals[name]], question)
    rows = [row for row in rows if math.isfinite(row.value)]
    return [rows[0]._replace(best=True), *rows[1:]], name


def _no_epsilon(known: Sequence[Guarantee], question: Question) -> NotApplicable:
    """Return why there is no finite epsilon: the entries may fail more often than the budget's delta allows."""
    log_least = min(guarantee.log_delta(_FAR).value for guarantee in known)
    if log_least <= question.safe_log_delta:
        return NotApplicable("gives no finite epsilon here", "more noise, or a larger delta")
    least = exp_up(log_least)
    enough = float(f"{1.1 * least:.1e}")
    larger = f"use --delta {enough:g}, or" if least < enough < 0.5 else "have"
    return NotApplicable(
        f"no epsilon has this delta: the deltas of the entries come to {least:.3g} together",
        f"{larger} fewer entries that are known by (epsilon, delta) alone",
    )


def _size(row: Result) -> float:
    return row.log_delta if row.quantity == Quantity.DELTA and row.log_delta is not None else row.value


def _row(total: Total, ledger: Ledger, question: Question, chained: bool) -> Result:
    from dpcalc.references import SHORT

    title, reference, locator = _TITLES[total.form]
    guarantee = total.guarantee
    parted = any(entry.part for entry in ledger.entries)
    more = {
        _DISJOINT: parted,
        _NULL_STAYS: parted and ledger.adjacency is Adjacency.NULL_RECORD,
        _STAYS: parted and ledger.adjacency is Adjacency.REPLACE_ONE,
        _TUNED: any(entry.tuning is not None for entry in ledger.entries),
    }
    fields: dict[str, Any] = {
        "adjacency": "replace-one" if chained else str(ledger.adjacency),
        "assumes": (*ASSUMES, *(text for text, holds in more.items() if holds)),
        "reference": f"{SHORT[reference]}, {locator}",
        "mu": guarantee.mu,
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
    conversion = "exact" if total.form == _ADDED and guarantee.mu is not None else answer.conversion
    return Result(
        f"ledger.{total.form}", title, quantity, value, Kind.UPPER, epsilon=epsilon, delta=delta, log_delta=log_delta,
        conversion=conversion, **fields,
    )  # fmt: skip


# --- the noise of the last entry --------------------------------------------------------------------------------------


def _changed(entry: Entry, name: str, value: float) -> Entry:
    return entry._replace(given={**entry.given, name: value})


def _solved(ledger: Ledger, question: Question, chained: bool) -> tuple[tuple[str, float], Ledger, list[Chosen]]:
    """Return the noise of the last entry with which the total meets the budget, rounded to the safe side.

    Also the ledger with this noise, and the guarantees of its entries.

    Raises:
        SpecError: the parameter cannot be solved for, or the budget is not known.
        Infeasible: no noise meets the budget.
    """
    name, last = name_of(str(question.solve).replace("-", "_")), ledger.entries[-1]
    refuse(
        (name not in SOLVABLE, f"a ledger cannot be solved for {question.solve}", f"one of {', '.join(SOLVABLE)}"),
        (question.epsilon is None or question.log_delta is None, f"solving for {name} needs the budget",
         "give --epsilon and --delta, or budget in the ledger"),
        (last.given.get(name) is not None, f"{last.name} has {name}, and it is also to be solved for",
         "leave out one of the two"),
    )  # fmt: skip
    log_delta, epsilon = question.safe_log_delta, question.safe_epsilon
    total = sum(entry.times for entry in ledger.entries)
    others = [chosen_of(entry, ledger, log_delta, total) for entry in ledger.entries[:-1]]

    @functools.cache
    def excess(value: float, rough: bool) -> float:
        own = chosen_of(_changed(last, name, value), ledger, log_delta, total, quickly=True)
        try:
            return max(
                min(
                    _excess(composed, epsilon, log_delta, rough)
                    for composed in _totals(ledger, [*others, own], part, chained)
                )
                for part in _names(ledger)
            )
        except Infeasible:
            return 1e300

    start = float(last.given.get("sensitivity") or 1.0)
    try:
        value = _least_noise(excess, name, start)
    except Infeasible:
        raise Infeasible(
            f"no {name} of {last.name} meets epsilon = {question.epsilon:g} at this delta: the other entries take too "
            "much",
            "allow a larger epsilon or delta",
        ) from None
    changed = _changed(last, name, value)
    known = [*others, chosen_of(changed, ledger, log_delta, total)]
    return (name, value), ledger._replace(entries=(*ledger.entries[:-1], changed)), known


def _least_noise(excess: Callable[[float, bool], float], name: str, start: float) -> float:
    """Return the least noise found with excess <= 0.

    The search uses a rough upper bound first, which is quick and mostly as good. If slightly less noise still meets the
    budget by the fine bound, the search continues with that one.

    Raises:
        Infeasible: no noise meets the budget.
    """
    direction = DIRECTIONS[name]
    try:
        noise = extreme(lambda value: excess(value, True), direction, start, _WIDTH, stride=2.0)
    except Infeasible:
        return extreme(lambda value: excess(value, False), direction, start, _WIDTH, stride=2.0)
    less = noise / _LOOSE
    if less < direction.low or excess(less, False) > 0.0:
        return noise
    return extreme(lambda value: excess(value, False), direction, less, _WIDTH, stride=_LOOSE)


def _excess(total: Total, epsilon: float, log_delta: float, rough: bool = False) -> float:
    """Return a number that is <= 0 if the total keeps the budget; with ``rough`` it may be > 0 even then."""
    if isinstance(total.guarantee, Rdp):
        return total.guarantee.epsilon(log_delta).value - epsilon
    if isinstance(total.guarantee, Composition):
        if rough and epsilon > 0.0:
            return total.guarantee.upper_excess(epsilon, log_delta, _RESOLUTION)
        return total.guarantee.sign(epsilon, log_delta)
    return min(100.0, total.guarantee.log_delta(epsilon).value - log_delta)


def _as_solved(row: Result, solved: tuple[str, float], question: Question) -> Result:
    """Return the row of epsilon as a row of the noise that was solved for, with the epsilon as a detail."""
    name, value = solved
    details = {**(row.details or {}), "achieved": {"epsilon": row.value}}
    return row._replace(quantity=name, value=value, epsilon=question.epsilon, details=details)


# --- what is left -----------------------------------------------------------------------------------------------------


def _remaining(
    ledger: Ledger, chosen: Sequence[Chosen], totals: Mapping[str, Sequence[Total]], question: Question, chained: bool
) -> dict[str, float]:
    """Return what is left for one more release about all records: a pure epsilon, and a mu; rounded down.

    Both are first estimated from the totals, and then the ledger is asked whether it accepts them. mu is returned only
    where the total has a formula: with a lattice it would take longer than everything else.
    """
    epsilon, log_delta = question.safe_epsilon, question.safe_log_delta
    size = ledger.group_size * (2 if chained else 1)
    best = [min(several, key=lambda total: total.guarantee.epsilon(log_delta).value) for several in totals.values()]
    if any(total.guarantee.epsilon(log_delta).value > epsilon for total in best):
        return {"epsilon": 0.0}
    curves = [total.guarantee.privacy_profile() for total in best]

    def accepts(name: str, value: float) -> bool:
        longer = ledger._replace(entries=(*ledger.entries, Entry("next", "", {name: value})))
        known = known_of(longer, question)
        try:
            rows, _ = rows_of(longer, totals_of(longer, known, chained), question, chained)
        except NotApplicable:
            return False
        return rows[0].value <= epsilon

    def keeps_pure(value: float) -> bool:
        box = up(size * value)
        return box <= epsilon and max(with_pure(curve, box, epsilon) for curve in curves) <= log_delta

    pure = _largest(keeps_pure, _LEAST, epsilon)
    left = {"epsilon": _accepted(functools.partial(accepts, "epsilon"), pure)}
    about = [(one.parts[0], one.entry.times) for one in chosen]
    if len(best) > 1 or size > 1 or best[0].form not in _WITH_A_FORMULA:
        return left

    def keeps(value: float) -> bool:
        totals_with = [apart(total, ledger.entries) for total in compose_all([*about, (Gdp(value), 1)])]
        return all(_excess(composed, epsilon, log_delta) <= 0.0 for composed in totals_with)

    mu = _largest(keeps, _LEAST, 10.0 * epsilon + 10.0)
    return {**left, "mu": _accepted(functools.partial(accepts, "mu"), mu)}


def _accepted(accepts: Callable[[float], bool], guess: float) -> float:
    """Return the guess if it is accepted, or else about the largest smaller value that is; 0 where none is."""
    high = guess
    for gap in _GAPS:
        low = max(_LEAST, guess * (1.0 - gap))
        if accepts(low):
            return _largest(accepts, low, high) if low < high else low
        high = low
    return 0.0


def _largest(keeps: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest value that keeps the budget, to a relative 1e-3; 0 where not even the least does."""
    if not low < high or not keeps(low):
        return 0.0
    for _ in range(_REMAINING):
        middle = math.sqrt(low * high)
        if not high > low * (1.0 + 1e-3):
            break
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
