"""Blocks of runs computed on other machines.

A request holds the plan, the records and the numbers of some blocks; the answer is one array for each block. Every
block has its own random stream, so its outcome is the same wherever it is computed.

Plans, problems and their parts are sent as JSON and restored bit for bit, with classes of this package only: a named
tuple, a frozen class or a dataclass as its class and fields, an array as its bytes.
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
        SpecError: a part of it cannot be sent, such as an open file.
    """
    return json.dumps(_tree(value), sort_keys=True)


def read(text: str) -> Any:
    """Return the value in a text from `written`.

    Raises:
        SpecError, ValueError, TypeError, KeyError: it holds none.
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
    if not isinstance(kind, type) or kind.__module__ != module:  # not a class that the module imports
        raise SpecError("something came that is no record")
    return kind(**{key: _value(one) for key, one in fields.items()}) if isinstance(fields, dict) else kind(fields)


Array = NDArray[np.float64]
Progress = Callable[[int, int], None]

SCHEMA = "dpcalc.blocks/1"
MOST_BYTES = 1 << 24
"""The size limit of a request, records included."""

_NUMBERS = 1 << 24  # noise variables of a piece, some tenths of a second of work
_PATIENCE = 3600.0  # seconds without any answer


class There(NamedTuple):
    """The other machines.

    Attributes:
        executor: any `concurrent.futures.Executor`.
        ahead: the largest number of pieces under way, or a function that returns it.
        attempts: how often a piece is sent before it counts as lost.
    """

    executor: Executor
    ahead: int | Callable[[], int] = 32
    attempts: int = 4

    @classmethod
    def of(cls, executor: Executor) -> There:
        """Return the machines of an executor; a cluster has its own ``ahead``."""
        return cls(executor, getattr(executor, "ahead", 32))


class Rows(NamedTuple):
    """The expected answer of a block: an array of this shape; of integers from 0 to ``most`` if that is given."""

    shape: tuple[int, int]
    most: int | None


class Blocks(Row):
    """Consecutive blocks.

    Args:
        common: the part of the request that all pieces share, as JSON.
        first: the number of the first block.
        rows: the expected answer of each block.
    """

    def __init__(self, common: str, first: int, rows: Sequence[Rows]) -> None:
        super().__init__(SCHEMA, rows, first, first=first, count=len(rows), common=common)
        self._common, self._rows = common, rows

    def read(self, text: str) -> list[Array]:
        """Return the outcome of every block.

        Raises:
            WorkerLost, ValueError: the text is not the expected answer.
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
        """Raise WorkerLost: the other blocks are useless without this one."""
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
    """Compute all blocks by an executor and return their outcomes, concatenated in order.

    Args:
        there: the other machines.
        function: takes the document of a `Blocks`; workers find it by its name.
        common: the part of the request that all pieces share.
        rows: the expected answer of each block.
        cost: the number of noise variables that a block draws.
        progress: called with the number of newly finished blocks.

    Raises:
        SpecError: the request is too large, or a part of it cannot be sent.
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
    """Return the answer to a request; ``outcomes`` computes some blocks from the common part.

    Raises:
        SpecError: the request comes from another version of dpcalc.
    """
    asked = received(document, SCHEMA)
    first = asked["first"]
    arrays = outcomes(read(asked["common"]), range(first, first + asked["count"]))
    return in_lines(document, [written(tuple(arrays))])
