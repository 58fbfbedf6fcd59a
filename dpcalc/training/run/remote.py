"""Blocks of runs computed on other machines: what is sent, and what is checked of the answers.

Every block draws from a stream of its own, and its outcome is the same wherever it is computed. What is sent is the
plan, the records and the numbers of some blocks; what comes back, one array for each block.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.cluster.spread import Piece, spread, through
from dpcalc.errors import DpcalcError, SpecError, WorkerLost
from dpcalc.training.run import encoding as travel
from dpcalc.version import __version__

Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

SCHEMA = "dpcalc.blocks/1"
MOST_BYTES = 1 << 24
"""Of what is sent with every piece: records are part of it."""

_NUMBERS = 1 << 24  # of noise that the runs of a piece draw, some tenths of a second
_PATIENCE = 3600.0  # seconds without any answer


class There(NamedTuple):
    """Who computes.

    Attributes:
        executor: any `concurrent.futures.Executor`.
        ahead: pieces on their way at most, or what says so at any time.
        attempts: how often a piece is sent before it counts as lost.
    """

    executor: Executor
    ahead: int | Callable[[], int] = 32
    attempts: int = 4

    @classmethod
    def of(cls, executor: Executor) -> There:
        """Return any executor; a cluster says by itself how much it takes."""
        return cls(executor, getattr(executor, "ahead", 32))


class Rows(NamedTuple):
    """What a block must answer: an array of this shape, of numbers; of whole numbers from 0 to ``most`` where given."""

    shape: tuple[int, int]
    most: int | None


class Blocks(Piece):
    """Some blocks in a row.

    Args:
        common: what all pieces are sent, as JSON.
        first: the number of the first block.
        rows: what each of them is to answer.
    """

    def __init__(self, common: str, first: int, rows: Sequence[Rows]) -> None:
        self.first, self._common, self._rows = first, common, rows
        asked = {"schema": SCHEMA, "dpcalc": __version__, "first": first, "count": len(rows), "common": common}
        self.document = json.dumps(asked)

    def read(self, text: str) -> list[Array]:
        """Return the outcome of every block.

        Raises:
            ValueError: this is no answer.
        """
        said = json.loads(text)
        if (said["schema"], said["dpcalc"], said["first"]) != (SCHEMA, __version__, self.first):
            raise ValueError("the answer is to something else")
        arrays = travel.read(said["outcomes"])
        if not isinstance(arrays, tuple) or len(arrays) != len(self._rows):
            raise ValueError("the answer is of other blocks")
        for outcome, rows in zip(arrays, self._rows, strict=True):
            _refuse_other(outcome, rows)
        return list(arrays)

    def halves(self) -> list[Piece]:
        """Return the blocks in two, or these where it is one."""
        middle = len(self._rows) // 2
        if not middle:
            return [self]
        return [
            Blocks(self._common, self.first, self._rows[:middle]),
            Blocks(self._common, self.first + middle, self._rows[middle:]),
        ]

    def stopped(self, why: DpcalcError) -> list[Array]:
        """Raise that there is no outcome: nothing is said of the others without it."""
        raise WorkerLost(f"block {self.first} of the runs has no outcome: {why.message}", why.hint)


def _refuse_other(outcome: Any, rows: Rows) -> None:
    if not isinstance(outcome, np.ndarray) or outcome.dtype != np.float64 or outcome.shape != rows.shape:
        raise ValueError("the outcome of a block has another shape")
    if rows.most is None:
        return
    if not (np.all(outcome >= 0) and np.all(outcome <= rows.most) and np.all(outcome == np.floor(outcome))):
        raise ValueError("what was counted in a block is no count of its runs")


def run_all(
    there: There,
    function: Callable[[str], str],
    common: Any,
    rows: Sequence[Rows],
    cost: int,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """Return the outcomes of all blocks one below the other, computed by an executor.

    Args:
        there: who computes.
        function: that is given the document of a `Blocks`, by its name.
        common: what all pieces are sent.
        rows: what each block is to answer.
        cost: numbers of noise that a block draws.
        progress: called with how many blocks were added to those that are done.

    Raises:
        SpecError: this cannot be sent.
        WorkerLost: a block has no outcome.
    """
    text = travel.written(common)
    if len(text) > MOST_BYTES:
        raise SpecError(f"{len(text)} bytes would be sent with every piece of work", "run this without --cluster")
    size = max(1, _NUMBERS // max(1, cost))

    def pieces() -> Iterator[Piece]:
        for first in range(0, len(rows), size):
            yield Blocks(text, first, rows[first : first + size])

    done: dict[int, list[Array]] = {}
    submit = through(there.executor, function)
    for piece, outcomes in spread(
        pieces(), submit, ahead=there.ahead, attempts=there.attempts, patience=_PATIENCE
    ):  # fmt: skip
        assert isinstance(piece, Blocks)
        done[piece.first] = outcomes
        if progress is not None:
            progress(len(outcomes))
    return np.concatenate([outcome for first in sorted(done) for outcome in done[first]])


def answered(document: str, outcomes: Callable[[Any, range], Sequence[Array]]) -> str:
    """Return the answer to a piece, given what makes the outcomes of some blocks from what all are sent.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked = json.loads(document)
    if (asked.get("schema"), asked.get("dpcalc")) != (SCHEMA, __version__):
        raise SpecError(f"the worker has dpcalc {__version__}, and the runs are asked for by another version")
    first = asked["first"]
    arrays = outcomes(travel.read(asked["common"]), range(first, first + asked["count"]))
    return json.dumps(
        {"schema": SCHEMA, "dpcalc": __version__, "first": first, "outcomes": travel.written(tuple(arrays))}
    )
