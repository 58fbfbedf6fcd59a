"""What several releases of small one-dimensional runs say together.

`batched` and `passes` give exact joint laws of iterates: the last one in fine cells, those before it in coarse ones,
which is post-processing and therefore a lower bound. On a grid of ``cells`` the coarse ones are the states themselves;
on one of ``nodes`` they are its panels, whose mass the quadrature has exactly.
Nothing here imports the package under test.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.oracles.chains import Array, Case, Grid, Step, mean, nodes, step

_POINTS = 16  # of a panel of a grid of nodes


# --- joint laws


def fine_nodes(case: Case, pieces: int = 4, count: int = 60) -> Grid:
    """Nodes on panels ``pieces`` times narrower than the run needs."""
    usual = case.nodes()
    middle = usual.points[1:-2].reshape(-1, _POINTS).mean(axis=1)
    width = float(np.min(np.diff(middle), initial=case.diameter)) / pieces
    return nodes(case.low, case.high, width, case.kinks(), case.start, count)


def groups(grid: Grid) -> list[slice]:
    """The coarse cells of what is released before the end."""
    states = len(grid.points) - 1  # never the start
    if grid.weights is None:
        return [slice(j, j + 1) for j in range(states)]
    return [slice(0, 1), *(slice(j, j + _POINTS) for j in range(1, states - 1, _POINTS)), slice(states - 1, states)]


def split(law: Array, grid: Grid) -> Array:
    """Every row into one for every coarse cell."""
    out = np.zeros((len(law), len(cells := groups(grid)), law.shape[1]))
    for k, cell in enumerate(cells):
        out[:, k, cell] = law[:, cell]
    return out.reshape(-1, law.shape[1])


def cut(order: Sequence[int], batch_size: int, last_batch: str) -> list[tuple[tuple[int, ...], int]]:
    """The batches of a pass, each with what it divides by."""
    count, left = -(-len(order) // batch_size), len(order) % batch_size
    sizes = [batch_size] * (len(order) // batch_size) + [left] * (left > 0)
    if last_batch == "drop" and len(sizes) > 1 and left:
        sizes.pop()
    if last_batch == "front":
        sizes.reverse()
    if last_batch == "balanced":
        sizes = [(len(order) + i) // count for i in range(count)]
    ends = [*itertools.accumulate(sizes)]
    batches = [tuple(order[end - size : end]) for size, end in zip(sizes, ends, strict=True)]
    return [(b, batch_size if last_batch == "nominal" else len(b)) for b in batches]


class Maker:
    """The steps on batches of a data set, on a grid; the record that differs is the last of ``everyone``."""

    def __init__(self, case: Case, grid: Grid, record: Any) -> None:
        self.case, self.grid, self.everyone = case, grid, (*case.others, record)
        self.made: dict[Any, Step] = {}

    def step(self, batch: Sequence[int], divisor: int | None = None) -> Step:
        key = (tuple(sorted(batch)), divisor or len(batch))
        if key not in self.made:
            mapped = self.case.psi(mean([self.everyone[j] for j in key[0]], key[1]), self.grid.points)
            self.made[key] = step(self.grid, mapped, self.case.step_size * self.case.scale, self.case.noise)
        return self.made[key]

    def fresh(self, batch_size: int) -> Step:
        """A step on a uniform batch drawn without replacement."""
        batches = list(itertools.combinations(range(len(self.everyone)), batch_size))
        made = [self.step(batch) for batch in batches]
        return Step(sum(one.inner for one in made) / len(made), sum(one.last for one in made) / len(made))

    def order(self, order: Sequence[int], batch_size: int, last_batch: str) -> list[Step]:
        """The steps of a pass."""
        return [self.step(batch, divisor) for batch, divisor in cut(order, batch_size, last_batch)]


def batched(case: Case, grid: Grid, record: Any, batch_size: int, steps: int, all_released: bool = False) -> Array:
    """The law of the last iterate after steps on fresh batches, or of all the iterates together."""
    one = Maker(case, grid, record).fresh(batch_size)
    law = grid.start[None, :]
    for _ in range(steps - 1):
        law = law @ one.inner
        if all_released:
            law = split(law, grid)
    return (law @ one.last).ravel()


Batches = dict[tuple[int, ...], float]
"""The batches of a step, each with its probability: the places of their records in a pool."""


def poisson(records: Sequence[int], rate: float) -> Batches:
    """The Poisson batches of a data set."""
    n = len(records)
    return {
        taken: rate ** len(taken) * (1.0 - rate) ** (n - len(taken))
        for size in range(n + 1) for taken in itertools.combinations(records, size)
    }  # fmt: skip


def uniform(records: Sequence[int], size: int) -> Batches:
    """The batches of fixed size of a data set."""
    batches = list(itertools.combinations(records, size))
    return dict.fromkeys(batches, 1.0 / len(batches))


def mixed(
    case: Case, grid: Grid, pool: Sequence[Any], sets: Sequence[Batches], divisor: int, steps: int, weight: float = 0.0
) -> list[Array]:
    """The law of the last iterate, for every data set, after steps on batches whose sums are divided by a constant.

    A regulariser of this weight adds its gradient to every step's. The step on a batch that several sets have is made
    once.
    """
    states, cells = len(grid.points), len(grid.edges) + 1
    laws = [Step(np.zeros((states, states)), np.zeros((states, cells))) for _ in sets]
    for batch in dict.fromkeys(itertools.chain(*sets)):
        total = mean([pool[j] for j in batch], divisor)
        mapped = case.psi(lambda w, f=total: f(w) + weight * np.asarray(w), grid.points)
        one = step(grid, mapped, case.step_size * case.scale, case.noise)
        for law, chances in zip(laws, sets, strict=True):
            if batch in chances:
                for sum_, part in zip(law, one, strict=True):
                    sum_ += chances[batch] * part
    return [_after(grid, law, steps) for law in laws]


def _after(grid: Grid, one: Step, steps: int) -> Array:
    law = grid.start[None, :]
    for _ in range(steps - 1):
        law = law @ one.inner
    return (law @ one.last).ravel()


def passes(
    case: Case, grid: Grid, record: Any, orders: Sequence[Sequence[int]], batch_size: int, last_batch: str, same: bool
) -> Array:
    """The joint laws of the iterates after two passes: one row for every pair of orders (or every order, if the
    ``same`` is used again), all equally likely.
    """
    maker = Maker(case, grid, record)
    made = [maker.order(order, batch_size, last_batch) for order in orders]
    rows = []
    for first in made:
        law = grid.start[None, :]
        for one in first:
            law = law @ one.inner
        law = split(law, grid)
        for second in [first] if same else made:
            after = law
            for one in second[:-1]:
                after = after @ one.inner
            rows.append((after @ second[-1].last).ravel())
    return np.array(rows)
