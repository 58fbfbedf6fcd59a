"""The noise that correlated noise leaves in prefix sums of gradients, beside that of other matrices and of sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpcalc.engine.answer import answer
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import ALGORITHMS, Source
from dpcalc.model.quantities import Mechanism, Sampling, Scaling
from dpcalc.model.question import Question
from dpcalc.model.run import Run, describe
from dpcalc.model.strategy import Strategy, noise_at, strategies
from dpcalc.notes import PrefixNoise
from dpcalc.numerics.floats import up

if TYPE_CHECKING:
    from dpcalc.engine.advice.improvements import Asked

_BANDS = (4, 16, 64, 256)
"""Bands that are tried with sampling: each is a search of its own."""


def prefix_noise(asked: Asked) -> Iterator[PrefixNoise]:
    """Yield the noise in prefix sums, and at the same guarantee that of other matrices and of sampled batches.

    Where batches come in a public order the guarantee is one Gaussian pair, so that the other matrices need no search.
    Sampled batches do: independent noise always, banded matrices where every bound is asked for.
    """
    run, best = asked.run, asked.best
    multiplier = best.value if best.quantity == "noise_multiplier" else run.noise_multiplier
    if run.steps is None or multiplier is None or run.scaling is None:
        return
    own = _of(run)
    scale = multiplier * _unit(own, run.scaling, run.separation or run.steps)
    error = own.prefix_error()
    others: list[dict[str, Any]] = []
    if run.sampling is None and run.separation:
        factor = multiplier * _unit(own, run.scaling, run.separation) / own.sensitivity(run.separation)
        given = run.typed("participations") or run.typed("separation")
        others += [
            {"mechanism": str(of.mechanism), "bands": of.bands, "rms": factor * noise_at(of, run.separation)}
            for of in strategies(run.steps, own.uses, repeats=not given)
        ]
    others += _sampled(asked, run, best)
    yield PrefixNoise(
        rms=scale * error.rms, largest=scale * error.largest,
        others=sorted(others, key=lambda other: float(other["rms"])),
    )  # fmt: skip


def _of(run: Run) -> Strategy:
    """Return the matrix of a run."""
    uses = min(run.participations or 1, -(-(run.steps or 1) // (run.separation or 1)))
    return Strategy(run.mechanism or Mechanism.IDENTITY, run.steps or 1, run.bands or 1, uses)


def _unit(of: Strategy, scaling: Scaling, separation: int) -> float:
    """Return what the noise multiplier is over, in clipping norms."""
    if scaling is Scaling.SENSITIVITY:
        return of.sensitivity(separation)
    return of.column_norm()[1] if scaling is Scaling.COLUMNS else 1.0


def _sampled(asked: Asked, run: Run, best: Any) -> Iterator[dict[str, Any]]:
    """Yield the noise with Poisson batches of the same mean size, by the budget that the answer has."""
    rate = run.sample_rate if run.sampling is Sampling.POISSON else up(1.0 / run.separation) if run.separation else None
    epsilon = asked.question.epsilon if asked.solved else best.epsilon
    log_delta = asked.question.log_delta if asked.solved else best.log_delta
    if rate is None or rate > 1.0 or not epsilon or log_delta is None or not math.isfinite(log_delta):
        return
    question = Question(epsilon=epsilon, delta=math.exp(log_delta), log_delta=log_delta, rough=True)
    shared = {
        "steps": run.steps, "sampling": Sampling.POISSON, "sample_rate": rate, "adjacency": run.adjacency,
    }  # fmt: skip
    identity = Strategy(Mechanism.IDENTITY, run.steps or 1)
    yield from _solved(run.algorithm.nearest[0], shared, identity, question)
    for bands in _BANDS if asked.command.compares else ():
        banded = {**shared, "mechanism": Mechanism.BANDED_SQRT, "bands": bands, "scaling": Scaling.COLUMNS}
        yield from _solved(run.algorithm.name, banded, Strategy(Mechanism.BANDED_SQRT, run.steps or 1, bands), question)


def _solved(algorithm: str, given: dict[str, Any], of: Strategy, question: Question) -> Iterator[dict[str, Any]]:
    """Yield the noise of a run whose noise multiplier, over columns of norm 1, meets the budget; if there is one."""
    try:
        best = answer(describe(algorithm, given, dict.fromkeys(given, Source.ARGUMENT)), question).best
    except DpcalcError:
        return
    if best is not None:
        rms = best.value * of.column_norm()[1] * of.prefix_error().rms
        yield {
            "algorithm": ALGORITHMS[algorithm].name, "mechanism": str(of.mechanism), "bands": of.bands,
            "sampling": str(Sampling.POISSON), "noise_multiplier": best.value, "rms": rms,
        }  # fmt: skip
