"""Where it is not said how batches are drawn: what each way to draw them would give."""

from __future__ import annotations

import math

from dpcalc.engine.answer import answer
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.choices import Sampling
from dpcalc.model.run import Run
from dpcalc.theorems.record import for_algorithm

_NOISE = ("noise_multiplier", "noise_std")
_AT_MOST = ("steps", "epochs")


def with_choices(error: NotApplicable, run: Run, question: Question) -> NotApplicable:
    """Return the error with the best answer for every sampling in its hint; the same one where there is none."""
    found = [f"{sampling} {value}" for sampling in Sampling if (value := _answer(run, question, sampling))]
    if not found:
        return error
    return type(error)(
        "it is not said how batches are drawn, and the answer depends on it",
        f"give --sampling; with adjacency {run.adjacency} it would be: {', '.join(found)}. A loader that shuffles the "
        "records is shuffle, also where a library's accountant assumes Poisson",
        parameters=("sampling",),
    )


def _answer(run: Run, question: Question, sampling: Sampling) -> str:
    """Return the best answer in a few words; empty where no bound speaks of the run."""
    if (sampling is Sampling.FULL and run.batch_size is not None) or question.solve in ("sample_rate", "sample-rate"):
        return ""
    try:
        best = answer(run.replacing(sampling=sampling), question, for_algorithm(run.algorithm.name)).best
    except DpcalcError:
        return ""
    if best is None:
        return ""
    if best.quantity in _AT_MOST:
        return f"{best.quantity} <= {math.floor(best.value)}"
    sign = ">=" if best.quantity in _NOISE else "<="
    return f"{best.quantity} {sign} {best.value * (1.0 + 5e-4):.4g}"
