"""Definitions of `sampled.hidden_shuffle` and `sampled.hidden_full`: clipped gradients, only the last iterate seen.

They are those of a convex loss, so that the runs are shuffled epochs and noisy gradient descent in other words. A
record moves the sum of its batch by a C: a = 2 where another one comes in its place, and 1 otherwise. The noise is z C.
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
    """Return the smoothness with the regulariser, which it is never below."""
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
    """Return ln delta of shuffled epochs of the same run, a batch divided by b whatever its size."""
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
