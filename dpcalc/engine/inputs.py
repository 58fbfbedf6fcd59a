"""What a case records of its inputs, each with its source."""

from __future__ import annotations

import math
from enum import Enum
from typing import Any

from dpcalc.engine.question import Question
from dpcalc.model.run import Description
from dpcalc.model.source import Source

_SMALLEST = -700.0  # below this ln delta, no double holds delta


def inputs_of(description: Description, question: Question) -> dict[str, tuple[Any, Source]]:
    """Return the inputs of the run and of the question: name -> (value, source)."""
    inputs = {name: (_plain(value), description.sources[name]) for name, value in description.values.items()}
    if question.epsilon is not None:
        inputs["epsilon"] = (question.epsilon, question.source)
    if question.log_delta is not None:
        inputs["delta"] = (_typed_delta(question), question.source)
    return inputs


def _typed_delta(question: Question) -> float | str | None:
    """Return delta, as a power of ten where no double can hold it."""
    if question.log_delta is not None and question.log_delta < _SMALLEST:
        return f"10^{question.log_delta / math.log(10.0):.12g}"
    return question.delta


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return value if isinstance(value, (int, float, str)) else str(value)
