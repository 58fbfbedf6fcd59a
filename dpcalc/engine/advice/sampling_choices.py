"""Where it is not said how batches are drawn: what each way to draw them would give, and what the others lack."""

from __future__ import annotations

import math

from dpcalc.engine.answer import answer
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.choices import Sampling
from dpcalc.model.parameter import name_of
from dpcalc.model.run import Run
from dpcalc.theorems.record import for_algorithm

_NOISE = ("noise_multiplier", "noise_std")
_AT_MOST = ("steps", "epochs")


def with_choices(error: NotApplicable, run: Run, question: Question) -> NotApplicable:
    """Return the error with the best answer for every sampling in its hint; the same one where there is none."""
    other, instead = _without_rate(run)
    answers: dict[str, list[str]] = {}
    lacking: dict[str, list[str]] = {}
    for sampling in Sampling:
        poisson = sampling is Sampling.POISSON
        meant = run if poisson else other
        if sampling is Sampling.FULL and (run.batch_size is not None or run.sample_rate is not None):
            continue
        if flags := _lacks(meant, question, sampling):
            lacking.setdefault(flags, []).append(sampling)
        elif value := _answer(meant, question, sampling):
            answers.setdefault("" if poisson else instead, []).append(f"{sampling} {value}")
    if not (answers or lacking):
        return error
    listed = "; ".join(f"{options}{', '.join(values)}" for options, values in answers.items())
    would = f"with adjacency {run.adjacency} it would be: {listed}" if listed else ""
    short = "; ".join(f"{', '.join(names)} also need{'s' * (len(names) == 1)} {x}" for x, names in lacking.items())
    said = "; ".join(filter(None, (would, short)))
    return type(error)(
        "it is not said how batches are drawn, and the answer depends on it",
        f"give --sampling; {said}. A loader that shuffles the records is shuffle, also "
        "where a library's accountant assumes Poisson",
        parameters=("sampling",),
    )


def _lacks(run: Run, question: Question, sampling: Sampling) -> str:
    """Return the flags without which nothing is known of the run, however batches are drawn so."""
    sized = sampling is Sampling.FULL or (sampling is Sampling.POISSON and run.sample_rate is not None)
    names = [name for name in ("records", "batch_size") if not sized and run.value(name) is None]
    if run.steps is None and run.epochs is None and question.solve not in _AT_MOST:
        names.append("epochs")
    return " and ".join("--" + name.replace("_", "-") for name in names)


def _without_rate(run: Run) -> tuple[Run, str]:
    """Return the run with a batch size for the rate that was given, where one follows, and what is then typed.

    The rate is a probability of Poisson sampling; the other ways to draw batches have a size.
    """
    if not run.typed("sample_rate") or run.sample_rate is None:
        return run, ""
    size = round(run.sample_rate * run.records) if run.records else 0
    if run.records and size and math.isclose(size, run.sample_rate * run.records, rel_tol=1e-9):
        return run.replacing(sample_rate=None, batch_size=size), f"with --batch-size {size} for --sample-rate: "
    return run.replacing(sample_rate=None), ""


def _answer(run: Run, question: Question, sampling: Sampling) -> str:
    """Return the best answer in a few words; empty where no bound speaks of the run."""
    if name_of(str(question.solve).replace("-", "_")) == "sample_rate":
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
