"""Many queries spread over workers: each is a command and its keywords, in JSON, and each answer is a case."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from dpcalc.cluster.spread import Piece, spread, through
from dpcalc.errors import DpcalcError, SpecError, WorkerLost
from dpcalc.model.parameter import renamed
from dpcalc.model.source import Source
from dpcalc.recipes.running.saved import Garbled, refuse_other_inputs, verified_case
from dpcalc.report import Case
from dpcalc.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor

SCHEMA = "dpcalc.queries/1"
_LARGEST = 100  # queries of a piece

Run = Mapping[str, Any]
"""Keywords of a query, each with one value."""


class Queries(Piece):
    """Some queries that are answered one after the other.

    Args:
        command: that answers them.
        first: the place of the first among all.
        runs: the keywords of each.
    """

    def __init__(self, command: str, first: int, runs: Sequence[Run]) -> None:
        self.first, self._command, self._runs = first, command, runs
        try:
            self.document = json.dumps({"schema": SCHEMA, "dpcalc": __version__, "command": command, "runs": runs})
        except (TypeError, ValueError) as error:
            raise SpecError(f"a run is no JSON: {error}", "give numbers, words and lists of them") from None

    def read(self, text: str) -> list[Case]:
        """Return the answers.

        Raises:
            Garbled: this is no answer to these queries.
        """
        if not isinstance(text, str):
            raise Garbled("a worker answered with something that is no text")
        head, *lines = text.split("\n")
        if head != _head(self.document, lines) or len(lines) != len(self._runs):
            raise Garbled("the answer is not to what was asked, or was damaged on its way")
        return [self._case(line, run) for line, run in zip(lines, self._runs, strict=True)]

    def _case(self, line: str, run: Run) -> Case:
        case = verified_case(line, self._command)
        numbers = {name: value for name, value in renamed(run).items() if type(value) in (int, float)}
        refuse_other_inputs({name: (value, Source.ARGUMENT) for name, value in numbers.items()}, case)
        gates = run.get("gates", ())
        if len(case.assertions) < (1 if isinstance(gates, str) else len(gates)):
            raise Garbled("a gate was not judged")
        return case

    def halves(self) -> list[Piece]:
        """Return the queries in two, or these where it is one."""
        middle = len(self._runs) // 2
        if not middle:
            return [self]
        runs, first = self._runs, self.first
        return [
            Queries(self._command, first, runs[:middle]), Queries(self._command, first + middle, runs[middle:])
        ]  # fmt: skip

    def stopped(self, why: DpcalcError) -> list[Case]:
        """Raise what ended the computation, with the place of the run."""
        raise WorkerLost(f"run {self.first + 1} of the sweep has no answer: {why.message}", why.hint)


def _head(document: str, lines: Sequence[str]) -> str:
    digest = hashlib.sha256("\n".join([document, *lines]).encode()).hexdigest()
    return json.dumps({"schema": SCHEMA, "dpcalc": __version__, "sha256": digest})


def answered(document: str, answer: Callable[[str, Run], str]) -> str:
    """Return the answer to a piece, given what makes the line of a case.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked = json.loads(document)
    if (asked.get("schema"), asked.get("dpcalc")) != (SCHEMA, __version__):
        raise SpecError(f"the worker has dpcalc {__version__}, and the queries are from another version")
    lines = [answer(asked["command"], run) for run in asked["runs"]]
    return "\n".join([_head(document, lines), *lines])


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
        executor: what computes.
        function: that it is given, by name, with the document of a `Queries`.
        in_flight: pieces that it has at once.
        patience: seconds without an answer after which it counts as lost.
        attempts: how often a piece is sent before it counts as lost.

    Raises:
        WorkerLost: a piece has no answer.
    """

    def pieces() -> Iterator[Piece]:
        first, size = 0, 1
        while some := list(islice(runs, size)):
            yield Queries(command, first, some)
            first, size = first + len(some), min(2 * size, _LARGEST)

    found: dict[int, list[Case]] = {}
    submit = through(executor, function)
    for piece, cases in spread(pieces(), submit, ahead=in_flight, attempts=attempts, patience=patience):
        assert isinstance(piece, Queries)
        found[piece.first] = cases
    return [case for first in sorted(found) for case in found[first]]
