"""Shares of a check for several machines, and the merging of their reports.

The cases are shared out by their content: every shard of the same recipes finds the same shares without communication.
Long ones are spread first. Every report names its share, its cases and its options, so that
a merge can refuse what is missing, doubled, damaged or of another check. No hash prevents a forged report: a
merge trusts the machines that checked the shards.

Many queries may also be spread over workers: each is a command and its keywords in JSON, and each answer is a case.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.checked import Shard, Status
from dpcalc.cluster.calls import Row, in_lines, in_order, lines_of, received, spread, through
from dpcalc.errors import DpcalcError, SpecError, WorkerLost, refuse
from dpcalc.files.reading import digest_of
from dpcalc.files.typed import Garbled
from dpcalc.inert import strict_json
from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.parameter import renamed
from dpcalc.recipes.running.saved import refuse_other_inputs, verified_case
from dpcalc.render.layout import listed
from dpcalc.render.machine import case_fields
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from concurrent.futures import Executor


_MOST = 100_000  # shards


class Share(NamedTuple):
    """Shard ``number`` of ``of``, from 1 on."""

    number: int
    of: int


def parse_share(text: str) -> Share:
    """Parse a share ``i/n``.

    Raises:
        SpecError: it has another form, or there is no such share.
    """
    number, slash, of = text.partition("/")
    if not (slash and number.isascii() and number.isdigit() and of.isascii() and of.isdigit() and len(text) < 20):
        raise SpecError(f"--shard {text}: not NUMBER/OF", "for example --shard 1/4, the first of four")
    share = Share(int(number), int(of))
    if not 1 <= share.number <= share.of <= _MOST:
        raise SpecError(f"--shard {text}: there is no such shard", f"they are 1/{of} to {of}/{of}, at most {_MOST}")
    return share


# --- sharing out ------------------------------------------------------------------------------------------------------


def cost(command: str, algorithm: str, *, solved: bool) -> int:
    """Estimate the time of a query, in units of a closed form."""
    known = {"train": 100, "utility": 20, "ledger": 20, "compare": 10, "dp-sgd": 20}.get(command, 1)
    known *= ALGORITHMS[algorithm].cost if algorithm in ALGORITHMS else 1
    return known * (10 if solved else 1)


def dealt_out(cases: Iterable[tuple[int, str]], share: Share) -> list[int]:
    """Return the places of a share's cases among all, in order, given the cost and the name of each case.

    The longest cases are dealt out first, each to the share with the least work; the name of a case decides among
    equals. So the shares do not depend on the order of the recipes' files.
    """
    costs, names = array("Q"), array("Q")
    for costs_about, name in cases:
        costs.append(costs_about)
        names.append(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))
    order = sorted(range(len(costs)), key=names.__getitem__)
    order.sort(key=costs.__getitem__, reverse=True)  # a stable sort
    return sorted(place for place, number in _dealt(order, costs, share.of) if number == share.number)


def _dealt(order: Sequence[int], costs: Sequence[int], of: int) -> Iterator[tuple[int, int]]:
    """Yield each place with the number of the share that takes it."""
    import heapq

    work = [(0, number) for number in range(1, of + 1)]
    for place in order:
        done, number = work[0]
        yield place, number
        heapq.heapreplace(work, (done + costs[place], number))


def of_sweep(result: Report, asked: Sequence[str], places: Sequence[int], share: Share, *, certify: bool) -> Report:
    """Return the report on a share of the cases of a sweep, with the description of its share.

    Args:
        result: on the cases of the share.
        asked: the question of each case of all shares, and last what they have in common.
        places: of the cases of the share.
        share: which one.
        certify: whether guarantees were to be proved.
    """
    shard = Shard(
        number=share.number, of=share.of, cases=len(asked) - 1, places=tuple(places), recipes=(),
        digest=hashlib.sha256("\n".join(asked).encode("utf-8", "backslashreplace")).hexdigest(),
        options=json.dumps({"certify": certify, "policy": ""}, sort_keys=True),
    )  # fmt: skip
    return sealed(result, shard)


def sealed(result: Report, shard: Shard) -> Report:
    """Return the report with the description of its share, and the hash of both."""
    return result._replace(shard=shard._replace(content=_content(result, shard)))


def _content(result: Report, shard: Shard) -> str:
    """Return the hash of a share's cases and its description."""
    whole = hashlib.sha256()
    for part in itertools.chain([shard._replace(content="")], map(case_fields, result.cases), [result.not_selected]):
        whole.update(json.dumps(strict_json(part)).encode() + b"\n")
    return whole.hexdigest()


def hash_of(path: str) -> str:
    """Return the hash of a data file; empty if it cannot be read, which its case will report."""
    try:
        return digest_of(path).sha256
    except SpecError:
        return ""


# --- merging ----------------------------------------------------------------------------------------------------------


def merged(reports: Sequence[tuple[str, Report]]) -> Report:
    """Return the report on the cases of all shards, as one check of them would have it.

    Args:
        reports: of all shards, each with the name of its file.

    Raises:
        SpecError: one is not a shard, is missing or doubled, they have different cases or options, a case is missing
            in its shard, or all are skipped.
    """
    shards = [(name, _shard_of(name, report)) for name, report in reports]
    refuse(
        (not shards, "no report of a shard was given", "dpcalc check RECIPE --shard 1/2 --report json=1.json"),
        (len({report.command for _, report in reports}) > 1, "the shards are of different commands",
         "merge the shards of one check, or of one comparison"),
    )  # fmt: skip
    _refuse_others(shards)
    _refuse_missing(shards)
    placed: dict[int, Case] = {}
    for name, report in reports:
        for place, case in _placed(name, report):
            if place in placed:
                raise SpecError(f"{name} has a case that another shard has as well", "write both again")
            placed[place] = case
    every = shards[0][1].cases
    skipped = all(case.check is not None and case.check.status == Status.SKIPPED for case in placed.values())
    refuse(
        (sorted(placed) != list(range(every)), f"{every - len(placed)} of {every} cases were not checked",
         "a check that stopped early, as with --fail-fast, cannot be merged"),
        (skipped, f"all {every} cases are skipped: nothing was checked", "remove a skip"),
    )  # fmt: skip
    first = reports[0][1]
    on_recipes = (case for case in first.cases if _is_on_recipe(case))
    return first._replace(cases=(*(placed[place] for place in range(every)), *on_recipes), shard=None)


_WHOLE = "check"
"""The command of remarks on a whole recipe."""


def _is_on_recipe(case: Case) -> bool:
    return case.check is not None and case.check.command == _WHOLE


def _placed(name: str, report: Report) -> Iterator[tuple[int, Case]]:
    """Return the cases of a shard, each with its place among all."""
    places = _shard_of(name, report).places
    cases = [case for case in report.cases if not _is_on_recipe(case)]
    if len(cases) != len(places):
        raise SpecError(f"{name} has {len(cases)} cases and says {len(places)}", "write it again")
    return zip(places, cases, strict=True)


def _shard_of(name: str, report: Report) -> Shard:
    judged = all((case.check is not None) is (report.command == _WHOLE) for case in report.cases)
    if not judged or report.command not in (_WHOLE, "compare") or report.shard is None or report.changes is not None:
        raise SpecError(f"{name} is not the report of a shard", "dpcalc check RECIPE --shard 1/2 --report json=1.json")
    if report.shard.content != _content(report, report.shard):
        raise SpecError(f"{name} was changed after it was written", "check the shard again")
    return report.shard


def _refuse_others(shards: Sequence[tuple[str, Shard]]) -> None:
    """Refuse shards of different checks."""
    first_name, first = shards[0]
    for name, shard in shards[1:]:
        for field, what in _EQUAL.items():
            if getattr(shard, field) != getattr(first, field):
                raise SpecError(f"{name} and {first_name} differ in {what}", "merge the shards of one check")


_EQUAL = {
    "options": "the options of the check", "of": "the number of shards", "recipes": "their recipes",
    "cases": "the number of cases", "digest": "what their cases ask",
}  # fmt: skip


def _refuse_missing(shards: Sequence[tuple[str, Shard]]) -> None:
    """Refuse a set of shards in which one is missing or repeated."""
    names: dict[int, str] = {}
    for name, shard in shards:
        if shard.number in names:
            raise SpecError(f"{name} and {names[shard.number]} are both shard {shard.number}", "leave one out")
        names[shard.number] = name
    of = shards[0][1].of
    if missing := [number for number in range(1, of + 1) if number not in names]:
        names_of = listed([f"{number}/{of}" for number in missing], 10)
        raise SpecError(f"shards are missing: {names_of}", "every shard must be there")


SCHEMA = "dpcalc.queries/1"
_LARGEST = 100  # queries of a piece

Run = Mapping[str, Any]
"""Keywords of a query, each with one value."""


class Queries(Row):
    """Some queries, answered one after the other.

    Args:
        command: the one that answers them.
        first: the place of the first among all.
        runs: the keywords of each.
    """

    def __init__(self, command: str, first: int, runs: Sequence[Run]) -> None:
        self._command, self._runs = command, runs
        try:
            super().__init__(SCHEMA, runs, first, command=command, runs=runs)
        except (TypeError, ValueError) as error:
            raise SpecError(f"a run is no JSON: {error}", "give numbers, words and lists of them") from None

    def read(self, text: str) -> list[Case]:
        """Return the answers.

        Raises:
            Garbled, WorkerLost, ValueError: it is not an answer to these queries.
        """
        lines = lines_of(self.document, text)
        return [self._case(line, run) for line, run in zip(lines, self._runs, strict=True)]

    def _case(self, line: str, run: Run) -> Case:
        case = verified_case(line, self._command)
        numbers = {name: value for name, value in renamed(run).items() if type(value) in (int, float)}
        refuse_other_inputs({name: (value, Source.ARGUMENT) for name, value in numbers.items()}, case)
        gates = run.get("gates", ())
        if len(case.assertions) < (1 if isinstance(gates, str) else len(gates)):
            raise Garbled("a gate was not judged")
        return case

    def part(self, start: int, end: int) -> Queries:
        """Return some of the queries."""
        return Queries(self._command, self.first + start, self._runs[start:end])

    def stopped(self, why: DpcalcError) -> list[Case]:
        """Raise the error that ended the computation, with the place of the run."""
        raise WorkerLost(f"run {self.first + 1} of the sweep has no answer: {why.message}", why.hint)


def answered(document: str, answer: Callable[[str, Run], str]) -> str:
    """Return the answer to a piece; ``answer`` makes the line of a case.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked = received(document, SCHEMA)
    return in_lines(document, [answer(asked["command"], run) for run in asked["runs"]])


def spread_queries(
    command: str,
    runs: Iterator[Run],
    executor: Executor,
    function: Callable[[str], str],
    *,
    in_flight: int,
    patience: float,
    attempts: int = 2,
) -> list[Case]:
    """Return the cases of some runs in their order, computed by an executor.

    Args:
        command: that answers them.
        runs: the keywords of each.
        executor: computes them.
        function: sent to it, by name, with the document of a `Queries`.
        in_flight: the number of pieces that it has at once.
        patience: seconds without an answer after which it counts as lost.
        attempts: how often a piece is sent before it counts as lost.

    Raises:
        WorkerLost: a piece has no answer.
    """

    def pieces() -> Iterator[Queries]:
        first, size = 0, 1
        while some := list(islice(runs, size)):
            yield Queries(command, first, some)
            first, size = first + len(some), min(2 * size, _LARGEST)

    submit = through(executor, function)
    return in_order(spread(pieces(), submit, ahead=in_flight, attempts=attempts, patience=patience))
