"""Blocks of runs computed on other machines: what is sent, and what is checked of the answers.

Every block draws from a stream of its own, and its outcome is the same wherever it is computed. What is sent is the
plan, the records and the numbers of some blocks; what comes back, one array for each block.

Plans, problems and what they are made of as JSON, and back: bit for bit, and no classes but those of this package.

A record (a named tuple, a frozen class, a dataclass) travels as its class and its fields, an array as its bytes.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.cluster.calls import Row, in_lines, in_order, lines_of, received, spread, through
from dpcalc.errors import DpcalcError, SpecError, WorkerLost
from dpcalc.model.draft import Frozen

_CLASS, _ARRAY = "class", "array"
_SEVERAL, _FIELDS = "tuple", "fields"
_OURS = "dpcalc."
_KINDS = {"<f8", "<i8", "<i4", "|b1"}


def written(value: Any) -> str:
    """Return a value as JSON.

    Raises:
        SpecError: it holds something that cannot travel, such as an open file.
    """
    return json.dumps(_tree(value), sort_keys=True)


def read(text: str) -> Any:
    """Return the value of a text.

    Raises:
        SpecError, ValueError, TypeError, KeyError: it is none.
    """
    return _value(json.loads(text))


def _tree(value: Any) -> Any:
    if isinstance(value, Enum):
        return {_CLASS: _name(type(value)), _FIELDS: value.value}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        kept = np.ascontiguousarray(value)
        if kept.dtype.str not in _KINDS:
            raise SpecError(f"an array of {kept.dtype} does not travel to other machines")
        raw = base64.b64encode(kept.tobytes()).decode("ascii")
        return {_ARRAY: raw, "kind": kept.dtype.str, "shape": list(kept.shape)}
    if isinstance(value, dict):
        return {_FIELDS: [[_tree(key), _tree(one)] for key, one in value.items()]}
    if (fields := _fields(value)) is not None:
        return {_CLASS: _name(type(value)), _FIELDS: {name: _tree(one) for name, one in fields.items()}}
    if isinstance(value, (tuple, list)):
        return {_SEVERAL: [_tree(one) for one in value]}
    raise SpecError(f"{type(value).__name__} does not travel to other machines", "run this without --cluster")


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    if isinstance(value, Frozen):
        return {name: getattr(value, name) for name in value.fields}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _name(kind: type) -> str:
    if not kind.__module__.startswith(_OURS):
        raise SpecError(f"{kind.__name__} does not travel to other machines", "run this without --cluster")
    return f"{kind.__module__}:{kind.__qualname__}"


def _value(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    if _ARRAY in tree:
        if tree["kind"] not in _KINDS:
            raise SpecError("an array of another kind came")
        raw = base64.b64decode(tree[_ARRAY], validate=True)
        return np.frombuffer(raw, dtype=tree["kind"]).reshape(tree["shape"]).copy()
    if _SEVERAL in tree:
        return tuple(_value(one) for one in tree[_SEVERAL])
    fields = tree[_FIELDS]
    if _CLASS not in tree:
        return {_value(key): _value(one) for key, one in fields}
    module, _, name = tree[_CLASS].partition(":")
    if not module.startswith(_OURS):
        raise SpecError("a record of another package came")
    kind = getattr(importlib.import_module(module), name)
    if not isinstance(kind, type):
        raise SpecError("something came that is no record")
    return kind(**{key: _value(one) for key, one in fields.items()}) if isinstance(fields, dict) else kind(fields)


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


class Blocks(Row):
    """Some blocks in a row.

    Args:
        common: what all pieces are sent, as JSON.
        first: the number of the first block.
        rows: what each of them is to answer.
    """

    def __init__(self, common: str, first: int, rows: Sequence[Rows]) -> None:
        super().__init__(SCHEMA, rows, first, first=first, count=len(rows), common=common)
        self._common, self._rows = common, rows

    def read(self, text: str) -> list[Array]:
        """Return the outcome of every block.

        Raises:
            WorkerLost, ValueError: this is no answer.
        """
        (outcomes,) = lines_of(self.document, text)
        arrays = read(outcomes)
        if not isinstance(arrays, tuple) or len(arrays) != len(self._rows):
            raise ValueError("the answer is of other blocks")
        for outcome, rows in zip(arrays, self._rows, strict=True):
            _refuse_other(outcome, rows)
        return list(arrays)

    def part(self, start: int, end: int) -> Blocks:
        """Return some of the blocks."""
        return Blocks(self._common, self.first + start, self._rows[start:end])

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
    text = written(common)
    if len(text) > MOST_BYTES:
        raise SpecError(f"{len(text)} bytes would be sent with every piece of work", "run this without --cluster")
    size = max(1, _NUMBERS // max(1, cost))

    pieces = (Blocks(text, first, rows[first : first + size]) for first in range(0, len(rows), size))
    submit = through(there.executor, function)
    answers = spread(pieces, submit, ahead=there.ahead, attempts=there.attempts, patience=_PATIENCE)
    return np.concatenate(in_order(answers, progress))


def answered(document: str, outcomes: Callable[[Any, range], Sequence[Array]]) -> str:
    """Return the answer to a piece, given what makes the outcomes of some blocks from what all are sent.

    Raises:
        SpecError: it is of another version of dpcalc.
    """
    asked = received(document, SCHEMA)
    first = asked["first"]
    arrays = outcomes(read(asked["common"]), range(first, first + asked["count"]))
    return in_lines(document, [written(tuple(arrays))])
