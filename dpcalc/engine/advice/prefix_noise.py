"""The noise that correlated noise leaves in the iterates, beside that of other matrices and of sampling."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpcalc.engine.answer import best_guarantee
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.quantities import Given, Mechanism, Sampling, Scaling
from dpcalc.model.question import Question
from dpcalc.model.run import Run, describe
from dpcalc.model.strategy import Strategy, noise_at, strategies
from dpcalc.model.workload import SUMS, Workload
from dpcalc.notes import PrefixNoise
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    from dpcalc.engine.advice.improvements import Asked

_BANDS = (4, 16, 64, 256)
"""Bands that are tried with sampling: each is a search of its own."""
_MOST_STEPS = 100_000
"""Steps up to which sampled batches are solved beside every answer: of a million the search takes six seconds more."""


def prefix_noise(asked: Asked) -> Iterator[PrefixNoise]:
    """Yield the noise in the iterates, and at the same guarantee that of other matrices and of sampled batches.

    Independent noise on Poisson batches is there unless its search is long, the other matrices where every bound is
    asked for: in a public order they need no search, but each column is summed and filtered anew.
    """
    run, best = asked.solution, asked.best
    multiplier = run.noise_multiplier
    workload = Workload.of(run.value)
    if run.steps is None or multiplier is None or run.scaling is None:
        return
    own = Strategy.of(run.value)
    if own.mechanism is Mechanism.TREE and workload != SUMS:
        return
    unit, noise = multiplier * _unit(own, run.scaling, run.separation or run.steps), own.noise(workload)
    if not math.isfinite(noise.largest):  # a matrix that is as good as singular
        return
    others: list[dict[str, Any]] = []
    if asked.command.compares and run.sampling is None and run.separation:
        factor = unit / own.sensitivity(run.separation)
        given = run.typed("participations") or run.typed("separation")
        others += [
            {
                "mechanism": str(of.mechanism), "bands": of.bands,
                "rms": factor * noise_at(of, run.separation, workload),
            }
            for of in strategies(run.steps, own.uses, run.separation, repeats=not given, workload=workload)
        ]  # fmt: skip
    others += _sampled(asked, run, best, workload)
    yield PrefixNoise(
        rms=unit * noise.rms, largest=unit * noise.largest,
        workload={name: value for name, value in workload._asdict().items() if value},
        others=sorted(others, key=lambda other: float(other["rms"])),
    )  # fmt: skip


def _unit(of: Strategy, scaling: Scaling, separation: int) -> float:
    """Return what the noise multiplier is over, in clipping norms."""
    if scaling is Scaling.SENSITIVITY:
        return of.sensitivity(separation)
    return of.column_norm()[1] if scaling is Scaling.COLUMNS else 1.0


def _sampled(asked: Asked, run: Run, best: Any, workload: Workload) -> Iterator[dict[str, Any]]:
    """Yield the noise with Poisson batches of the same mean size, by the budget that the answer has."""
    rate = run.sample_rate if run.sampling is Sampling.POISSON else up(1.0 / run.separation) if run.separation else None
    epsilon = asked.question.epsilon if asked.solved else best.epsilon
    log_delta = asked.question.log_delta if asked.solved else best.log_delta
    if (run.steps or 1) > _MOST_STEPS and not asked.command.compares:
        return
    if rate is None or rate > 1.0 or not epsilon or log_delta is None or not math.isfinite(log_delta):
        return
    question = Question(epsilon=epsilon, delta=math.exp(log_delta), log_delta=log_delta, rough=True)
    shared = {
        "steps": run.steps, "sampling": Sampling.POISSON, "sample_rate": rate, "adjacency": run.adjacency,
    }  # fmt: skip
    identity = Strategy(Mechanism.IDENTITY, run.steps or 1)
    yield from _solved(run.algorithm.nearest[0], shared, identity, question, workload)
    for bands in _BANDS if asked.command.compares else ():
        banded = {**shared, "mechanism": Mechanism.BANDED_SQRT, "bands": bands, "scaling": Scaling.COLUMNS}
        yield from _solved(
            run.algorithm.name, banded, Strategy(Mechanism.BANDED_SQRT, run.steps or 1, bands), question, workload
        )


def _solved(
    algorithm: str, given: Given, of: Strategy, question: Question, workload: Workload
) -> Iterator[dict[str, Any]]:
    """Yield the noise of a run whose noise multiplier, over columns of norm 1, meets the budget; if there is one."""
    multiplier = _multiplier(algorithm, tuple(given.items()), question)
    if multiplier is not None:
        rms = multiplier * of.column_norm()[1] * of.noise(workload).rms
        yield {
            "algorithm": ALGORITHMS[algorithm].name, "mechanism": str(of.mechanism), "bands": of.bands,
            "sampling": str(Sampling.POISSON), "noise_multiplier": multiplier, "rms": rms,
        }  # fmt: skip


@functools.lru_cache(maxsize=16)  # the cases of a sweep are beside the same run of DP-SGD
def _multiplier(algorithm: str, given: tuple[tuple[str, Any], ...], question: Question) -> float | None:
    """Return the noise multiplier that is enough for the question; None if nothing is."""
    try:
        run = describe(algorithm, dict(given), dict.fromkeys(dict(given), Source.ARGUMENT))
    except DpcalcError:
        return None
    best = best_guarantee(run, question)
    return None if best is None else best.value
