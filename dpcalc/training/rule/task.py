"""Everything that one call of `dpcalc.training.fit.fit` was given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.engine.gate import Gate
from dpcalc.engine.question import Question
from dpcalc.model.source import Source
from dpcalc.training.data.progress import Phases, silent
from dpcalc.training.rule.setup import Setup


class Task(NamedTuple):
    """What is to be accounted and trained.

    Attributes:
        given: parameter name -> value, None where not given.
        question: epsilon and delta; if noise is given as well, they are checked.
        setup: data and circumstances.
        sources: parameter name -> source.
        gates: parsed assertions; nothing is executed where one fails.
        phases: makes the progress callback of each phase of the work.
        accepting: whether gates are judged although the model is not private; the caller then says that it is not.
    """

    given: Mapping[str, Any]
    question: Question
    setup: Setup
    sources: Mapping[str, Source] = {}
    gates: Sequence[Gate] = ()
    phases: Phases = silent
    accepting: bool = False
