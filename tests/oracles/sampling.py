"""Steps on random batches by brute force: the laws of all sums on a grid, and the hockey-stick divergence between them.

Every record's gradient is a number in [-1, 1]; a step adds those of its batch and N(0, z^2). Steps see no other steps,
so that a run is a mixture, over the batches of all steps, of products of normal laws.
"""

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Batches = tuple[tuple[int, ...], ...]
"""The records of the batch of every step."""


def poisson(records: int, rate: float, steps: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches)."""
    subsets = [s for size in range(records + 1) for s in itertools.combinations(range(records), size)]
    for batches in itertools.product(subsets, repeat=steps):
        chosen = sum(map(len, batches))
        yield rate**chosen * (1.0 - rate) ** (records * steps - chosen), batches


def truncated(records: int, rate: float, cap: int, steps: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches): of a batch that is larger than the cap a part of that size, all equally likely."""
    for chance, [batch] in poisson(records, rate, 1):
        kept = list(itertools.combinations(batch, min(cap, len(batch))))
        for one in kept:
            if steps == 1:
                yield chance / len(kept), (one,)
            else:
                yield from (
                    (chance / len(kept) * rest, (one, *later))
                    for rest, later in truncated(records, rate, cap, steps - 1)
                )


def several_bins(records: int, bins: int, uses: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches) of an epoch in which each record is in so many different steps."""
    places = list(itertools.combinations(range(bins), uses))
    for choices in itertools.product(places, repeat=records):
        yield (
            len(places) ** -float(records),
            tuple(tuple(i for i in range(records) if j in choices[i]) for j in range(bins)),
        )


def fixed(records: int, size: int, steps: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches)."""
    subsets = list(itertools.combinations(range(records), size))
    for batches in itertools.product(subsets, repeat=steps):
        yield len(subsets) ** -float(steps), batches


def with_replacement(records: int, draws: int, steps: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches); a record is in a batch as often as it was drawn."""
    drawn = list(itertools.product(range(records), repeat=draws))
    for batches in itertools.product(drawn, repeat=steps):
        yield len(drawn) ** -float(steps), batches


def balls_in_bins(records: int, bins: int, epochs: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches)."""
    chance = float(bins) ** -(records * epochs)
    for choices in itertools.product(range(bins), repeat=records * epochs):
        batches = []
        for epoch in range(epochs):
            of_epoch = choices[epoch * records : (epoch + 1) * records]
            batches += [tuple(i for i in range(records) if of_epoch[i] == j) for j in range(bins)]
        yield chance, tuple(batches)


def shuffle(records: int, size: int, epochs: int) -> Iterator[tuple[float, Batches]]:
    """Yield (probability, batches)."""
    orders = list(itertools.permutations(range(records)))
    for chosen in itertools.product(orders, repeat=epochs):
        yield (
            len(orders) ** -float(epochs),
            tuple(order[k : k + size] for order in chosen for k in range(0, records, size)),
        )


def hockey_stick(
    first: tuple[Sequence[float], Sequence[tuple[float, Batches]]],
    second: tuple[Sequence[float], Sequence[tuple[float, Batches]]],
    noise: float,
    epsilon: float,
    nodes: int = 160,
) -> float:
    """Return a lower bound, good to the grid, on sup_A P(A) - e^epsilon Q(A) of two runs of one or two steps.

    Args:
        first, second: (gradient of every record, law of the batches) of P and of Q.
        noise: z.
        epsilon: the threshold.
        nodes: cells per step; all mass in a cell counts together, which makes the divergence smaller.
    """
    reach = max(len(first[0]), len(second[0])) + 1.0 + 7.0 * noise
    edges = np.concatenate(([-math.inf], np.linspace(-reach, reach, nodes), [math.inf]))
    laws = [_law(gradients, batches, noise, edges) for gradients, batches in (first, second)]
    return float(np.sum(np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0.0)))


def hockey_stick_of_sums(
    first: tuple[Sequence[float], Sequence[tuple[float, Batches]]],
    second: tuple[Sequence[float], Sequence[tuple[float, Batches]]],
    noise: float,
    epsilon: float,
    nodes: int = 4000,
) -> float:
    """As `hockey_stick`, where the sum of all steps alone is seen: the last iterate of a run over linear losses."""
    laws = []
    for gradients, batches in (first, second):
        sums: dict[float, float] = {}
        for chance, several in batches:
            total = sum(gradients[i] for batch in several for i in batch)
            sums[total] = sums.get(total, 0.0) + chance
        laws.append((sums, noise * math.sqrt(len(batches[0][1]))))
    centres = [total for sums, _ in laws for total in sums]
    reach = 9.0 * max(spread for _, spread in laws)
    edges = np.concatenate(([-math.inf], np.linspace(min(centres) - reach, max(centres) + reach, nodes), [math.inf]))
    p, q = (
        sum(chance * np.diff(_cdf(edges, total, spread)) for total, chance in sums.items()) for sums, spread in laws
    )
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


def _cdf(edges: Array, mean: float, spread: float) -> Array:
    """Return the normal distribution function at the edges."""
    return np.array([0.5 * math.erfc(-(x - mean) / (spread * math.sqrt(2.0))) for x in edges])


def _law(gradients: Sequence[float], batches: Sequence[tuple[float, Batches]], noise: float, edges: Array) -> Array:
    """Return the probabilities of the cells of all steps."""
    steps = len(batches[0][1])
    below: dict[float, Array] = {}
    total: Array = np.zeros((len(edges) - 1,) * steps)
    merged: dict[tuple[float, ...], float] = {}
    for chance, chosen in batches:
        sums = tuple(sum(gradients[i] for i in batch) for batch in chosen)
        merged[sums] = merged.get(sums, 0.0) + chance
    for sums, chance in merged.items():
        cells = [below.setdefault(m, _cells(edges, m, noise)) for m in sums]
        product = cells[0]
        for other in cells[1:]:
            product = np.multiply.outer(product, other)
        total += chance * product
    return total


def _cells(edges: Array, mean: float, noise: float) -> Array:
    cdf = _cdf(edges, mean, noise)
    cells: Array = np.diff(cdf)
    return cells
