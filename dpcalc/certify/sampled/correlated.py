"""Definitions of `correlated`: the sensitivity of C times the gradients, and banded matrices with sampling.

Matrices are lower triangular with equal diagonals, given by their first column c.
"""

from __future__ import annotations

from collections.abc import Iterator

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, InOrders
from dpcalc.certify.numerics.balls import OutOfReach
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.sampled.clipped_steps import balls_in_bins, poisson
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Adjacency, Mechanism, Scaling

_MOST_PRODUCTS = 2_000_000  # a few seconds
_LIMIT = "matrices of very many steps"


@defines("correlated.gaussian", Gdp, slack=1e-8, weight=500.0, limit=_LIMIT)
@defines("correlated.matrix", Gdp, slack=1e-8, weight=500.0, limit="large matrices, and uses whose order varies")
def _gaussian(v: RunInputs) -> arb:
    apart = arb(2 if v.adjacency == Adjacency.REPLACE_ONE else 1)
    if v.scaling == Scaling.SENSITIVITY:
        return apart / v.noise_multiplier
    scale = _sensitivity(v, 1) if v.scaling == Scaling.COLUMNS else arb(1)
    return apart * _sensitivity(v, _uses(v)) / (scale * v.noise_multiplier)


@defines("correlated.banded_poisson", InOrders, weight=20000.0, limit="compositions that would take too many points")
def _banded_poisson(v: RunInputs) -> list[Part]:
    bands = int(v.bands or 1)
    rate = fmpq(bands) * v.exact("sample_rate")
    return poisson(v.adjacency, arb(min(rate, fmpq(1))), 1 / _columns_multiplier(v), -(-int(v.steps) // bands))


@defines("correlated.banded_balls", InOrders, weight=60000.0, limit="epochs of very many steps")
def _banded_balls(v: RunInputs) -> list[Part]:
    bins, epochs = int(v.separation) // int(v.bands or 1), -(-int(v.steps) // int(v.separation))
    return [balls_in_bins(v.adjacency, 1 / _columns_multiplier(v), bins, epochs)]


def _columns_multiplier(v: RunInputs) -> arb:
    """Return the noise multiplier for columns of norm 1."""
    return v.noise_multiplier if v.scaling == Scaling.COLUMNS else v.noise_multiplier / _sensitivity(v, 1)


def _uses(v: RunInputs) -> int:
    return min(int(v.participations), -(-int(v.steps) // int(v.separation)))


# --- the matrices -----------------------------------------------------------------------------------------------------


def _sensitivity(v: RunInputs, uses: int) -> arb:
    """Return the norm of the sum of the columns of the earliest ``uses`` uses; for a file a bound on the worst sum."""
    steps, separation = int(v.steps), int(v.separation or 1)
    if v.mechanism == Mechanism.FILE:
        return _of_any_signs(v, steps, separation, uses)
    if v.mechanism == Mechanism.TREE:
        if uses == 1:
            return arb(steps.bit_length()).sqrt()
        return arb(max(_nodes(steps, [s + separation * j for j in range(uses)]) for s in range(separation))).sqrt()
    if steps * uses > _MOST_PRODUCTS:
        raise OutOfReach("a matrix of so many steps and uses")
    entries = _column(v, steps)
    total = arb(0)
    for row in range(steps):
        places = range(row, max(row - uses * separation, -1), -separation)
        entry = sum((entries[place] for place in places if place < len(entries)), arb(0))
        total += entry * entry
    return total.sqrt()


def _of_any_signs(v: RunInputs, steps: int, separation: int, uses: int) -> arb:
    """Return the root of the largest sum of |<c_i, c_j>| over uses s, s + b, ... of a matrix with columns c."""
    if uses > 1 and (v.epochs is None or v.sampling is not None):
        raise OutOfReach("uses whose order varies")
    if steps * steps * uses > _MOST_PRODUCTS:
        raise OutOfReach("a matrix of so many steps and uses")
    columns = [list(map(arb, column)) for column in v.schedule.entries.T.tolist()]
    starts = range(max(min(separation, steps), steps - (uses - 1) * separation))
    places = (range(start, steps, separation)[:uses] for start in starts)
    sums = [sum((abs(_product(columns[i], columns[j])) for i in at for j in at), arb(0)) for at in places]
    return max(sums, key=lambda total: float(total.mid())).sqrt()


def _product(one: list[arb], other: list[arb]) -> arb:
    return sum((x * y for x, y in zip(one, other, strict=True)), arb(0))


def _nodes(steps: int, used: list[int]) -> int:
    """Return the sum over the complete nodes of a binary tree of (number of uses in the node)^2."""
    total = 0
    for height in range(steps.bit_length()):
        counts: dict[int, int] = {}
        for place in used:
            if ((place >> height) + 1) << height <= steps:
                counts[place >> height] = counts.get(place >> height, 0) + 1
        total += sum(count * count for count in counts.values())
    return total


def _column(v: RunInputs, steps: int) -> list[arb]:
    """Return the first entries of c; later entries are 0."""
    bands = min(int(v.bands or 1), steps)
    if v.mechanism == Mechanism.IDENTITY:
        return [arb(1)]
    if v.mechanism == Mechanism.BLT:
        return _geometric(v, steps)
    if v.mechanism == Mechanism.BISR:
        if steps * bands > _MOST_PRODUCTS:
            raise OutOfReach("a matrix of so many steps and bands")
        return _inverted([entry for entry, _ in zip(_binomial(fmpq(1, 2)), range(bands), strict=False)], steps)
    length = bands if v.mechanism == Mechanism.BANDED_SQRT else steps
    return [entry for entry, _ in zip(_binomial(fmpq(-1, 2)), range(length), strict=False)]


def _geometric(v: RunInputs, steps: int) -> list[arb]:
    """Return c_n = sum_j w_j th_j^n: th_j = 1/(1 + e^-u_j), u_j equally spaced, and w_j as sqrt(th_j (1 - th_j))."""
    if 40 * steps > _MOST_PRODUCTS:  # a step takes the time of forty products
        raise OutOfReach("a matrix of so many steps and buffers")
    end = arb(fmpq(steps, _uses(v))).log() + 1
    points = [(end + 3) * arb(fmpq(j, 5)) - 3 for j in range(6)]
    ratios = [1 / (1 + (-point).exp()) for point in points]
    terms = [(ratio * (1 - ratio)).sqrt() for ratio in ratios]
    total, entries = sum(terms, arb(0)), []
    for _ in range(steps):
        entries.append(sum(terms, arb(0)) / total)
        terms = [term * ratio for term, ratio in zip(terms, ratios, strict=True)]
    return entries


def _binomial(power: fmpq) -> Iterator[arb]:
    """Yield the coefficients of (1 - x)^power."""
    entry, j = arb(1), 0
    while True:
        yield entry
        j += 1
        entry = entry * arb((fmpq(j - 1) - power) / j)


def _inverted(inverse: list[arb], steps: int) -> list[arb]:
    """Return the first coefficients of 1 over a power series that begins with 1."""
    entries: list[arb] = [arb(1)]
    for n in range(1, steps):
        entries.append(-sum((inverse[j] * entries[n - j] for j in range(1, min(n + 1, len(inverse)))), arb(0)))
    return entries
