"""Groups of records under shuffled batches and balls in bins, with their places public.

If members of a group are c_s times in step s, that step moves by at most a c_s clips, a = 1, or 2 for replacement.
Given all places the steps are Gaussian mechanisms, together of mu = a sqrt(N)/z, N = sum_s c_s^2. Places have one law
under both data sets, so delta(eps) <= sum_N P(N) delta_G(eps; a sqrt(N)/z), in either order. A group that shares no
batch costs k an epoch, one that shares all of them k^2, which is rare.
"""

from __future__ import annotations

import functools
import math

from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition
from dpcalc.notions.pld.gaussian_mixture import revealed_shift
from dpcalc.numerics.floats import UNIT, Array, np
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.sampled.sampled_steps import (
    CLIPPED,
    CONSTANT,
    ENDS_IN_SHUFFLED,
    NOISE,
    SEEN,
    sampling_is,
)
from dpcalc.theorems.sampled.settings import EPOCHS_OF_BATCHES, EpochsOfBatches

_LARGEST_GROUP, _MOST_EPOCHS = 32, 10**5
_LONGEST = 2048  # distinct values of N: with more, two of them count as the larger
_NEGLIGIBLE = 1e-280  # less likely values count as the worst
_ROUNDED = 512.0  # units of roundoff of the probability of a way to share batches, a product of fewer numbers


def _falls_into_batches(run: Run) -> Obstacle | None:
    shuffled = run.sampling == Sampling.SHUFFLE
    return (ENDS_IN_SHUFFLED if shuffled else sampling_is(Sampling.BALLS_IN_BINS)).check(run)


IN_EPOCHS = Condition("sampling is balls-in-bins, or shuffle and zero-out or replace-one", _falls_into_batches)


def _small(run: Run) -> bool:
    epochs = (run.steps or 1) * (run.batch_size or 1) / (run.records or 1)
    return (run.group_size or 1) <= _LARGEST_GROUP and epochs <= _MOST_EPOCHS


@theorem(
    "sampled.known_places",
    title="Groups whose places are known, averaged over them",
    needs=(*EPOCHS_OF_BATCHES, "group_size?"),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="Gaussian mechanisms given the places, averaged by joint convexity",
    formula="delta(eps) = sum_N P(N) delta_G(eps; a sqrt(N)/z), N = sum over all steps of (members in it)^2, a = 1; "
    "2 for replacement",
    conditions=(
        IN_EPOCHS,
        requires(
            "group_size >= 2", lambda run: (run.group_size or 1) > 1,
            NotNeeded("is of groups of several records", "give --group-size", ("group_size",)),
        ),
        requires(
            f"group_size <= {_LARGEST_GROUP}, at most {_MOST_EPOCHS} epochs", _small,
            Unmet("adds up over all ways to share batches, and these are too many", "use a smaller --group-size"),
        ),
    ),
    assumes=(
        "in every epoch the records fall into batches afresh: all orders equally likely, the last batch taking what is "
        "left (shuffle), or each record into one of the steps by itself (balls in bins); the places may be published",
        CLIPPED, NOISE, CONSTANT, SEEN,
    ),
    slack="many epochs: values of N in steps, rounded up",
    slow=True,
    uncertified="it adds up over all ways in which a group shares batches, which has no definition in ball arithmetic",
)  # fmt: skip
def known_places(run: EpochsOfBatches) -> Composition:
    """In the worst case k records share batches in every epoch, but that is very unlikely.

    >>> import math
    >>> run = EpochsOfBatches(sampling="balls-in-bins", adjacency="null-record", records=4, batch_size=2, steps=2,
    ...                       noise_multiplier=1.0, group_size=2)
    >>> round(math.exp(known_places(run).log_delta(0.5).value), 9)  # (delta_G(0.5; 2) + delta_G(0.5; sqrt 2))/2
    0.499618444
    """
    apart = 2.0 if run.adjacency == Adjacency.REPLACE_ONE else 1.0
    sizes = (run.records, run.batch_size) if run.sampling == Sampling.SHUFFLE else None
    squares, masses = _squares(run.group_size, run.bins, sizes, run.passes)
    mus = apart * np.sqrt(squares) / run.noise_multiplier * (1.0 + 8.0 * UNIT)
    return Composition([(revealed_shift(mus, masses), 1)])


@functools.lru_cache(maxsize=16)
def _squares(size: int, bins: int, sizes: tuple[int, int] | None, epochs: int) -> tuple[Array, Array]:
    """Return rising values of N and their probabilities, both rounded up. Very unlikely values count as the worst."""
    one = _shared(size, bins, sizes)
    law, unit, error, rare = one, 1, _ROUNDED, 0.0
    for bit in map(int, f"{epochs:b}"[1:]):
        base = _coarser(one, unit) if bit else np.ones(1)
        error = 2.0 * error + _ROUNDED + len(law) + len(base) + 8.0
        law = np.convolve(np.convolve(law, law), base)
        kept = max(1, int((np.cumsum(law[::-1])[::-1] > _NEGLIGIBLE).sum()))
        law, rare = law[:kept], 2.0 * (rare + _NEGLIGIBLE)
        while len(law) > _LONGEST:
            law, unit = _coarser(law, 2), 2 * unit
    law = np.append(law * (1.0 + 2.0 * UNIT * error), rare + _NEGLIGIBLE)
    return np.append(size * epochs + 2.0 * unit * np.arange(len(law) - 1), float(size * size * epochs)), law


def _coarser(law: Array, factor: int) -> Array:
    """Return the law of a whole number divided by the factor, rounded up."""
    place = -(-np.arange(len(law)) // factor)
    coarse: Array = np.bincount(place, weights=law).astype(float)
    return coarse


def _shared(size: int, bins: int, sizes: tuple[int, int] | None) -> Array:
    """Return the probabilities of 0, 1, ... pairs of members that share a batch, in one epoch; to `_ROUNDED` units.

    i members in a short batch of l and j in each of m_j of t full ones of b, r of these in all, have probability
    k!/(n)_k (l)_i/i! (t)_r prod_j ((b)_j/j!)^m_j/m_j!, where (t)_r = t (t-1) ... (t-r+1). Balls in bins, without
    ``sizes`` n and b: 1 for (b)_j, t^k for (n)_k, and no short batch.
    """
    records, batch = (bins, 0) if sizes is None else sizes
    full, short = (bins, 0) if sizes is None else divmod(records, batch)
    ways = {
        (i, i * (i - 1) // 2, 0): math.prod((short - h) / records for h in range(i)) / math.factorial(i)
        for i in range(min(short, size) + 1)
    }  # members, pairs of them, full batches
    for j in range(1, size + 1):
        share = math.prod((1.0 if sizes is None else batch - h) / records for h in range(j))
        weight = full * share / math.factorial(j)
        grown: dict[tuple[int, int, int], float] = {}
        for (members, pairs, used), mass in ways.items():
            for m in range((size - members) // j + 1):
                state = (members + m * j, pairs + m * (j * (j - 1) // 2), used + m)
                if mass > 0.0 and state[2] <= full:
                    grown[state] = grown.get(state, 0.0) + mass
                mass *= weight / (m + 1)
        ways = grown
    law = np.zeros(size * (size - 1) // 2 + 1)
    scale = math.factorial(size) / (1.0 if sizes is None else _falling(records, size))
    for (members, pairs, used), mass in ways.items():
        if members == size:
            law[pairs] += mass * scale * _falling(full, used)
    return law[: int(np.flatnonzero(law)[-1]) + 1]


def _falling(n: int, count: int) -> float:
    """Return n (n-1) ... (n-count+1)/n^count."""
    return math.prod((n - i) / n for i in range(count))
