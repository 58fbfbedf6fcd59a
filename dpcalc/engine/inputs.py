"""What a case records of its inputs, each with its source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dpcalc.engine.question import Question
from dpcalc.model.quantities import ATTACKS
from dpcalc.model.source import Source

_SMALLEST = -700.0  # below this ln delta, no double holds delta


def inputs_of(
    values: Mapping[str, Any], sources: Mapping[str, Source], question: Question
) -> dict[str, tuple[Any, Source]]:
    """Return the inputs of the run, of which the values and their sources are given, and those of the question."""
    inputs = {
        name: (value if type(value) in _PLAIN else _plain(value), sources.get(name, Source.ARGUMENT))
        for name, value in values.items()
    }
    if question.epsilon is not None:
        inputs["epsilon"] = (question.epsilon, question.source)
    if question.log_delta is not None:
        inputs["delta"] = (_typed_delta(question), question.source)
    for target in question.targets:
        inputs[target.name] = (target.limit, question.source)
        if target.at is not None:
            inputs[ATTACKS[target.name]] = (target.at, question.source)
    return inputs


def _typed_delta(question: Question) -> float | str | None:
    """Return delta, as a power of ten where no double can hold it."""
    if question.log_delta is not None and question.log_delta < _SMALLEST:
        return f"10^{question.log_delta / math.log(10.0):.12g}"
    return question.delta


_PLAIN = frozenset((int, float, str))


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, (int, float, str)) else str(value)
