"""The entries of a ledger: the guarantees of one run of each, and which entries may be composed."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.evaluate import contenders, guarantee_of, refuse_groups
from dpcalc.engine.question import run_of
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError, refuse
from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.draft import Description
from dpcalc.model.quantities import Adjacency, Quantity
from dpcalc.model.question import Entry, Ledger, Question
from dpcalc.model.run import Run
from dpcalc.notions.composition import Profile
from dpcalc.notions.conversions import Total, compose_all
from dpcalc.notions.guarantee import Box, Composition, Gdp, Guarantee, Point
from dpcalc.notions.tuning import tuned
from dpcalc.numerics.floats import UNIT, log_add_exp, log_sum_exp, ratio_up, up
from dpcalc.numerics.roots import near_minimum
from dpcalc.report import LOG_DELTA_ALONE
from dpcalc.theorems.record import for_algorithm

MECHANISM = ("mu", "epsilon", "delta", "noise_multiplier", "noise_std", "laplace_scale", "sensitivity")
"""The parameters of a release that is not a run: a Gaussian or Laplace mechanism, or (epsilon, delta) alone."""

MOST_ENTRIES = 200
MOST_TIMES = 10**12
_MANY = 10**8  # repetitions from which the rounding of a lattice may matter
MOST_IN_A_GROUP = 1000
"""Larger groups are for Gaussian privacy alone, where k mu is exact."""

ONE_WAY = (Adjacency.ADD, Adjacency.REMOVE)
"""One-directional adjacencies: a record is only added, or only removed."""


class Chosen(NamedTuple):
    """An entry and its guarantees for one run, the one with the least epsilon first.

    ``group`` is a guarantee for groups of the ledger's size, where one is known without a chain of single records.
    """

    entry: Entry
    parts: tuple[Guarantee, ...]
    epsilon: float
    group: Guarantee | None = None


def check_entries(ledger: Ledger) -> None:
    """Refuse ledgers that no theorem covers.

    Raises:
        SpecError: there are no entries or too many, or parts, groups, tuning and the adjacency do not go together.
    """
    entries, parted = ledger.entries, any(entry.part for entry in ledger.entries)
    size, one_way = ledger.group_size, ledger.adjacency in ONE_WAY
    both, cure = f"needs both directions, and the adjacency is {ledger.adjacency}", "use adjacency add-remove"
    refuse(
        (not 1 <= len(entries) <= MOST_ENTRIES, f"the ledger has {len(entries)} entries",
         f"from 1 to {MOST_ENTRIES} are read"),
        (not 1 <= size <= 10**6, f"group_size is {size}; it must be from 1 to 1e6", None),
        (size > 1 and one_way, f"what groups cost {both}", cure),
        (parted and size > 1, "a group of records may be in several parts", "leave out part or group_size"),
        (parted and ledger.adjacency is Adjacency.REPLACE_ONE and not ledger.kept,
         "a record that is replaced may move to another part, and then both parts change",
         "write partition: kept if it stays in its part, or use adjacency add-remove"),
    )  # fmt: skip
    for entry in (entry for entry in entries if entry.tuning is not None):
        refuse(
            (not entry.command and _is_near(entry), f"{entry.name}: mu with a delta is not that of a tuned release",
             "leave out delta"),
            (one_way, f"{entry.name}: what tuning costs {both}", cure),
        )  # fmt: skip


def of_one_adjacency(ledger: Ledger) -> tuple[Ledger, bool]:
    """Return the ledger with one adjacency for all entries, and whether replacement follows as removal plus addition.

    Raises:
        SpecError: no theorem covers this mix of adjacencies.
    """
    own = [entry.adjacency or ledger.adjacency for entry in ledger.entries]
    if all(adjacency is ledger.adjacency for adjacency in own):
        return ledger, False
    if ledger.adjacency in ONE_WAY and all(adjacency in (ledger.adjacency, Adjacency.ADD_REMOVE) for adjacency in own):
        return ledger, False
    if ledger.adjacency is Adjacency.REPLACE_ONE and all(adjacency is Adjacency.ADD_REMOVE for adjacency in own):
        if ledger.kept or any(entry.part for entry in ledger.entries):
            raise SpecError("parts and the chain from add-remove to replacement are not combined", "leave out part")
        return ledger._replace(adjacency=Adjacency.ADD_REMOVE), True
    strange = next(entry for entry, kind in zip(ledger.entries, own, strict=True) if kind is not ledger.adjacency)
    raise SpecError(
        f"{strange.name} is for adjacency {strange.adjacency}, and the ledger for {ledger.adjacency}: nothing composes "
        "the two",
        "give every entry one adjacency; a ledger for replace-one may have entries that are all for add-remove, and "
        "one for add or remove may have entries for add-remove",
    )


def known_of(ledger: Ledger, question: Question) -> list[Chosen]:
    """Return the guarantees of every entry, ranked at the delta of the question."""
    total = sum(entry.times for entry in ledger.entries)
    log_delta = question.safe_log_delta if question.log_delta is not None else LOG_DELTA_ALONE
    return [chosen_of(entry, ledger, log_delta, total) for entry in ledger.entries]


def chosen_of(entry: Entry, ledger: Ledger, log_delta: float, total: int, *, quickly: bool = False) -> Chosen:
    """Return the guarantees of an entry, first the one with the least epsilon for all its repetitions alone.

    ``quickly`` leaves out that epsilon where there is one guarantee.
    """
    replaced = ledger.adjacency is Adjacency.REPLACE_ONE
    parts = _runs_parts(entry, ledger) if entry.command else [mechanism(entry, replaced=replaced)]
    parts = [_without_point(part, log_delta, total) for part in parts]
    if ledger.adjacency in ONE_WAY and entry.adjacency is not Adjacency.ADD_REMOVE:
        _refuse_points(entry, parts, ledger)
    parts += _pure_forms(entry, parts)
    if entry.tuning is not None:
        parts = [form for part in parts for form in tuned(part, entry.tuning)]
    one_way = ledger.adjacency in ONE_WAY
    group = in_groups(entry, ledger) if ledger.group_size > 1 else None
    if quickly and len(parts) == 1:
        return Chosen(entry, tuple(parts), math.nan, group)
    ranked = []
    for place, part in enumerate(parts):
        try:
            totals = [apart(total, [entry]) for total in compose_all([(part, entry.times)], one_way=one_way)]
            ranked.append((min(_epsilon(composed, log_delta) for composed in totals), place))
        except (NotApplicable, Infeasible):
            continue
    if not ranked:
        raise NotApplicable(f"nothing is known of {entry.name}", "`dpcalc compare` says what is of such a run")
    ranked.sort()
    return Chosen(entry, tuple(parts[place] for _, place in ranked), ranked[0][0], group)


def _refuse_points(entry: Entry, parts: Sequence[Guarantee], ledger: Ledger) -> None:
    """Refuse (epsilon, delta) for one direction alone: randomised response is not the worst mechanism for it.

    Raises:
        SpecError: a guarantee of the entry is (epsilon, delta).
    """
    if any(isinstance(part, Box) for part in parts):
        raise SpecError(
            f"{entry.name} is known by (epsilon, delta), which is composed for both orders, and the adjacency is "
            f"{ledger.adjacency}",
            "write adjacency: add-remove for the entry if it holds for both, or for the whole ledger",
        )


def _epsilon(total: Total, log_delta: float) -> float:
    return total.guarantee.epsilon(log_delta).value


def _without_point(part: Guarantee, log_delta: float, total: int) -> Guarantee:
    """Return a part; a rule for epsilon becomes (epsilon, delta), at a small share of the total delta."""
    if not isinstance(part, Point):
        return part
    share = log_delta - math.log(8.0 * total)
    return Box(part.rule(share), share)


def _pure_forms(entry: Entry, parts: Sequence[Guarantee]) -> list[Guarantee]:
    """Return pure epsilon, the largest loss, for a Laplace mechanism that is composed very often.

    The lattice that composes its privacy loss adds about 1e-13 of delta at each repetition; a loss with two values
    needs no lattice.
    """
    if entry.times < _MANY or entry.given.get("laplace_scale") is None or entry.command:
        return []
    pairs = [part.parts[0][0] for part in parts if isinstance(part, Composition) and not callable(part.parts)]
    return [Box(pair.atom) for pair in pairs if pair.atom is not None]


def _box(epsilon: float, _: float, log_delta: float) -> Guarantee:
    return Box(up(epsilon), log_delta + 2.0 * UNIT * (1.0 + abs(log_delta)) if log_delta > -math.inf else log_delta)


def _laplace(scale: float, sensitivity: float, _: float) -> Guarantee:
    from dpcalc.notions import pld

    return Composition([(pld.laplace(ratio=ratio_up(sensitivity, scale)), 1)])


def _gaussian(noise: float, sensitivity: float, _: float) -> Guarantee:
    return Gdp(ratio_up(sensitivity, noise))


class _Kind(NamedTuple):
    """A way to describe a mechanism by a number.

    Attributes:
        proves: (number, sensitivity, ln delta) -> the guarantee.
        scaled: whether the number is the noise of a sum, so that the sensitivity must be given too.
        near: whether a delta may be given too.
    """

    proves: Callable[[float, float, float], Guarantee]
    scaled: bool = False
    near: bool = False


_KINDS = {
    "mu": _Kind(lambda mu, *_: Gdp(up(mu)), near=True),
    "epsilon": _Kind(_box, near=True),
    "noise_multiplier": _Kind(_gaussian),
    "noise_std": _Kind(_gaussian, scaled=True),
    "laplace_scale": _Kind(_laplace, scaled=True),
}


def mechanism(entry: Entry, *, replaced: bool = False) -> Guarantee:
    """Return the guarantee of a mechanism that is described by its noise, its mu or its (epsilon, delta).

    A noise multiplier is relative to the largest norm that one record adds; a ``replaced`` record moves the sum by
    twice that.

    Raises:
        SpecError: it is described twice, or not at all.
    """
    given = {name: value for name, value in entry.given.items() if value is not None}
    given.pop("delta", None)
    names = [name for name in _KINDS if name in given]
    kind = _KINDS[names[0]] if len(names) == 1 else None
    log_delta, sensitivity = given.get("log_delta"), given.get("sensitivity")
    if kind is None or (sensitivity is not None) != kind.scaled or (log_delta is not None and not kind.near):
        raise SpecError(
            _incomplete(entry.name, names, list(given)),
            "give mu (and delta), or epsilon (and delta), or noise_multiplier, or noise_std and sensitivity, or "
            "laplace_scale and sensitivity; or algorithm and the parameters of a run",
        )
    if sensitivity is None:
        sensitivity = 2.0 if replaced else 1.0
    return kind.proves(float(given[names[0]]), float(sensitivity), -math.inf if log_delta is None else log_delta)


def apart(total: Total, entries: Sequence[Entry]) -> Total:
    """Return a total that also covers entries described by mu and a delta, which are only near mu-GDP.

    If the released entries together are within T of the composed ones in total variation, for all records, then delta
    at epsilon grows by at most (1 + e^epsilon) T. That sum is convex in e^epsilon; beyond its minimum, the minimum is
    used, since delta does not grow with epsilon.
    """
    near = [e.given["log_delta"] + math.log(e.times) for e in entries if not e.command and _is_near(e)]
    if not near:
        return total
    log_distance, curve = log_sum_exp(near), total.guarantee.privacy_profile()
    log_distance += UNIT * (16.0 + 8.0 * abs(log_distance))  # rounding of log, log_sum_exp and the typed decimals

    def sum_at(epsilon: float) -> float:
        value = log_add_exp(curve(epsilon), log_distance + epsilon + math.log1p(math.exp(-epsilon)))
        return value + UNIT * (32.0 + 16.0 * abs(value) + 4.0 * epsilon)  # rounding of about ten operations

    @functools.cache
    def end() -> tuple[float, float]:
        least = near_minimum(sum_at, 0.0, max(0.0, -log_distance), _SECTIONS)
        return least, sum_at(least)

    def log_delta(epsilon: float) -> float:
        least, at_least = end()
        return min(0.0, at_least if epsilon >= least else max(sum_at(epsilon), at_least))

    return total._replace(guarantee=Profile(log_delta))


_SECTIONS = 40  # each leaves 0.618 of an interval of at most 745: 3e-6 in the end; any point gives an upper bound


def _is_near(entry: Entry) -> bool:
    return entry.given.get(Quantity.MU) is not None and entry.given.get("log_delta") is not None


def _incomplete(name: str, kinds: Sequence[str], given: Sequence[str]) -> str:
    """Return what is missing in an entry, or that it is described twice or not at all."""
    if len(kinds) == 1 and _KINDS[kinds[0]].scaled:
        return f"{name}: {kinds[0]} also needs sensitivity"
    if len(kinds) == 1:
        return f"{name}: {kinds[0]} does not go with {', '.join(other for other in given if other != kinds[0])}"
    return f"{name}: {' and '.join(kinds)} describe it twice" if kinds else f"{name}: what it guarantees is not given"


def in_groups(entry: Entry, ledger: Ledger) -> Guarantee | None:
    """Return the guarantee of one run of an entry for groups of the ledger's size; None where only the chain is known.

    A group of k moves a sum by k times as much as a record; steps on Poisson samples have their own pairs for groups;
    (epsilon, delta) becomes (k epsilon, delta (1 + e^epsilon + ... + e^((k-1) epsilon))).
    """
    size = ledger.group_size
    if entry.tuning is not None or size > MOST_IN_A_GROUP:
        return None
    if entry.command:
        return _run_in_groups(entry, ledger)
    if entry.given.get("laplace_scale") is not None and entry.given.get("sensitivity") is not None:
        moved = {**entry.given, "sensitivity": up(size * float(entry.given["sensitivity"]))}
        return mechanism(entry._replace(given=moved))
    part = mechanism(entry, replaced=ledger.adjacency is Adjacency.REPLACE_ONE)
    if isinstance(part, Box):
        log_delta = part.log_delta0
        if log_delta > -math.inf:
            whole = log_sum_exp([log_delta + j * part.epsilon0 for j in range(size)])
            log_delta = whole + UNIT * (16.0 * (abs(log_delta) + size * part.epsilon0) + 8.0 * size + 16.0)
        return Box(up(size * part.epsilon0), min(0.0, log_delta))
    return part.grouped(size) if part.mu is not None else None


def _run_in_groups(entry: Entry, ledger: Ledger) -> Guarantee | None:
    """Return the guarantee of a run for groups, from a theorem about groups or as k mu; None where neither is known."""
    run = described_run(entry, ledger, ledger.group_size)
    families = COMMANDS[entry.command].families or run.algorithm.families
    for bound in contenders(for_algorithm(run.algorithm.name, families), run):
        if not bound.guarantee or bound.unpromised(run):
            continue
        try:
            proved = guarantee_of(bound, run) if "group_size" in bound.reads or bound.gives is Gdp else None
        except DpcalcError:
            continue
        if isinstance(proved, (Composition, Gdp)):
            return proved
    return None


def described_run(entry: Entry, ledger: Ledger, size: int = 1) -> Run:
    """Return the run that an entry describes, for the adjacency of the ledger and groups of this size.

    Raises:
        SpecError: the entry describes no valid run; the message names it.
        NotApplicable: no theorem covers groups of its records.
    """
    given = {name: value for name, value in entry.given.items() if value is not None}
    algorithm = str(given.get("algorithm", COMMANDS[entry.command].default))
    if algorithm in ALGORITHMS and "adjacency" in ALGORITHMS[algorithm].parameters:
        given["adjacency"] = str(ledger.adjacency)
    if given.get("group_size", 1) != 1:
        raise SpecError(f"{entry.name}: groups are of the whole ledger", "write group_size beside entries")
    if size > 1:
        given["group_size"] = size
    sources = dict.fromkeys(given, Source.ARGUMENT)
    try:
        run = run_of(COMMANDS[entry.command], Description(given, sources))[1]
    except DpcalcError as error:
        raise type(error)(f"{entry.name}: {error.message}", error.hint) from None
    if run.algorithm.chained:
        raise SpecError(f"{entry.name}: data sets that differ by a shift are not composed", "describe a run of records")
    if ledger.group_size > 1:
        try:
            refuse_groups(run)
        except NotApplicable as error:
            raise NotApplicable(f"{entry.name}: {error.message}", error.hint) from None
    return run


def _runs_parts(entry: Entry, ledger: Ledger) -> list[Guarantee]:
    """Return the guarantees of a described run by all theorems.

    Raises:
        NotApplicable: no theorem covers it.
    """
    run = described_run(entry, ledger)
    families = COMMANDS[entry.command].families or run.algorithm.families
    bounds = contenders(for_algorithm(run.algorithm.name, families), run)
    parts: list[Guarantee] = []
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


def line_of(one: Chosen) -> dict[str, Any]:
    """Return the fields of an entry in the report."""
    entry = one.entry
    part = one.parts[0]
    tuning, run = entry.tuning, COMMANDS[entry.command] if entry.command else None
    known = {
        "algorithm": run and str(entry.given.get("algorithm", run.default)),
        "mu": part.mu,
        "begun": entry.begun or None,
        "part": entry.part or None,
        "tuning": tuning and {"distribution": str(tuning.law), "mean": tuning.mean, "stop": tuning.stop},
        "given": {name: value for name, value in entry.given.items() if value is not None},
    }
    line: dict[str, Any] = {"name": entry.name, "times": entry.times, "form": part.form, "epsilon": one.epsilon}
    return line | {name: value for name, value in known.items() if value is not None}
