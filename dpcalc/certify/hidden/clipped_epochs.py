"""Definitions of `sampled.hidden_shuffle` and `sampled.hidden_full`: clipped gradients, only the last iterate seen.

The loss is convex, so these runs are shuffled epochs and noisy gradient descent. A record moves the sum of its batch by
a C: a = 2 if another record replaces it, else 1. The noise has standard deviation z C.
"""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Searched
from dpcalc.certify.many_passes.random_orders import MOST_POSITIONS, fresh
from dpcalc.certify.numerics.balls import OutOfReach
from dpcalc.certify.runs.run import RunInputs, passes_cost, restarts_cost
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Adjacency, LastBatch


def _moved(v: RunInputs) -> int:
    """Return a."""
    return 2 if v.adjacency == Adjacency.REPLACE_ONE else 1


def _smoothness(v: RunInputs) -> fmpq:
    """Return the smoothness including the regulariser: at least the regulariser's weight."""
    return max(v.exact("smoothness"), v.exact("regularisation"))


@defines("sampled.hidden_full", Gdp, slack=1e-8, weight=10.0)
def _full(v: RunInputs) -> arb:
    eta, weight = v.exact("step_size"), v.exact("regularisation")
    c = max(abs(1 - eta * weight), abs(1 - eta * _smoothness(v)))
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    if v.records is None or v.clip is None or v.diameter is None:
        squared = passes_cost(1, 1, v.steps, arb(c))
    else:
        reach = v.quotient(["diameter", "records"], ["step_size", "clip", _moved(v)])
        squared = restarts_cost(1, 1, v.steps, arb(c), reach)
    return _moved(v) / v.noise_multiplier * squared.sqrt()


@defines(
    "sampled.hidden_shuffle", Searched, slack=5e-2, weight=500.0, limit=f"{MOST_POSITIONS} steps a pass of like batches"
)
def _shuffle(v: RunInputs) -> arb:
    """Return ln delta of the same run as shuffled epochs. Every batch is divided by b, also a smaller last one."""
    clip = fmpq(1) if v.clip is None else v.exact("clip")
    return fresh(
        v.alone(
            records=v.records, batch_size=v.batch_size, last_batch=LastBatch.NOMINAL,
            epochs=v.steps // -(-v.records // v.batch_size),
            sensitivity=_moved(v) * clip, noise_std=v.exact("noise_multiplier") * clip / v.batch_size,
            step_size=v.exact("step_size"), smoothness=_smoothness(v), strong_convexity=v.exact("regularisation"),
            diameter=None if v.clip is None or v.diameter is None else v.exact("diameter"),
            epsilon=v.epsilon, certificate=v.certificate,
        )
    )  # fmt: skip
