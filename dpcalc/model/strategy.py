"""The matrices C of correlated noise: their sensitivity, and the error that C^-1 Z leaves in prefix sums.

Step t releases g_t + (C^-1 Z)_t. Except for the tree and matrices from files, they are lower-triangular Toeplitz
matrices whose first column is non-negative and does not increase. The worst uses of such a matrix are then the
earliest: 0, b, ..., (k-1) b (Kalinin and Lampert 2024, Theorem 2; the proof term by term is in docs/method.md).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.model.quantities import BANDED, Mechanism
from dpcalc.model.workload import SUMS, Workload
from dpcalc.numerics.floats import Array, down, np, up

if TYPE_CHECKING:
    from dpcalc.model.matrix_file import Matrix

BUFFERS = 6
"""Geometric sequences of the BLT mechanism: with six of them its error is within 1.3 % of the square root's."""


class Column(NamedTuple):
    """The first column of a Toeplitz matrix: non-negative, not increasing.

    Attributes:
        entries: shape (steps,).
        ulps: the largest relative error of an entry, in units of roundoff.
    """

    entries: Array
    ulps: float


# --- the first columns ------------------------------------------------------------------------------------------------


def _sqrt(steps: int, bands: int, uses: int) -> Column:
    """Return the coefficients of (1-x)^(-1/2): each is the one before it times (j - 1/2)/j."""
    j = np.arange(1.0, steps, dtype=np.float64)
    # Two roundings a factor ((j - 1/2) is exact; the quotient and the product round), and one to spare.
    return Column(_products((j - 0.5) / j), 3.0 * steps)


def _banded_sqrt(steps: int, bands: int, uses: int) -> Column:
    first = _sqrt(bands, bands, uses)
    return Column(np.concatenate((first.entries, np.zeros(steps - bands))), first.ulps)


def _bisr(steps: int, bands: int, uses: int) -> Column:
    """Return the inverse of the first coefficients of (1-x)^(1/2): c_n = sum_j a_j c_{n-j}, all terms positive."""
    return Column(_reciprocal(_inverse_sqrt(bands), steps), 5.0 * steps)  # see `_reciprocal`


def _inverse_sqrt(bands: int) -> Array:
    """Return the first coefficients of (1-x)^(1/2): 1, -1/2, -1/8, ..."""
    j = np.arange(1.0, bands)
    return _products((j - 1.5) / j)


def _products(factors: Array) -> Array:
    """Return 1 followed by the cumulative products of the factors."""
    products = np.ones(factors.size + 1)
    np.cumprod(factors, out=products[1:])
    return products


def _blt(steps: int, bands: int, uses: int) -> Column:
    """Return a sum of geometric sequences with ratios in (0, 1) and weights > 0, which always falls."""
    ratios, weights = _buffers(steps, uses)
    entries = np.zeros(steps)
    for ratio, weight in zip(ratios, weights, strict=True):
        entries += weight * _products(np.full(steps - 1, ratio))
    # A point errs by at most 64 units, from its logarithm of at most 17 and the spacing, and so does each of the
    # factors. So the column holds for the exact numbers as well as for the doubles that the noise is drawn with.
    return Column(entries, 80.0 * steps)


def _buffers(steps: int, uses: int) -> tuple[Array, Array]:
    """Return the ratios and weights of BLT by the trapezoid rule for the square root's moments; no search.

    Its points end at ln(steps/uses) + 1: a record that returns sooner needs a shorter memory.
    """
    points = np.linspace(-3.0, math.log(steps / uses) + 1.0, BUFFERS)
    ratios = 1.0 / (1.0 + np.exp(-points))
    weights = np.sqrt(ratios * (1.0 - ratios))
    return ratios, weights / weights.sum()


_COLUMNS: dict[Mechanism, Callable[[int, int, int], Column]] = {
    Mechanism.IDENTITY: lambda steps, _, uses: _banded_sqrt(steps, 1, uses),
    Mechanism.SQRT: _sqrt, Mechanism.BANDED_SQRT: _banded_sqrt, Mechanism.BISR: _bisr, Mechanism.BLT: _blt,
}  # fmt: skip


def _reciprocal(series: Array, steps: int) -> Array:
    """Return the first coefficients of 1 over a power series that begins with 1: c_n = -sum_j b_j c_{n-j}, j >= 1.

    The first terms are computed one by one; then their number doubles at a time, as c times the remainder of -b c. If
    b_j < 0 and errs by at most 2 j units of roundoff, all terms are positive and c_n errs by at most 5 n units: a term
    with b_j costs 2 j + 1 and at most j sums behind it, so 4 n at first, and one of the at most 2 n/m later products 4
    p of m >= 4 p.
    """
    left = -np.append(series[1:steps], 0.0)
    entries = np.zeros(min(steps, 4 * series.size))
    entries[0] = 1.0
    for n in range(entries.size - 1):
        behind = entries[n + 1 : n + 1 + left.size]
        behind += left[: behind.size] * entries[n]
    while entries.size < steps:
        over = np.convolve(left, entries[-left.size :])[left.size - 1 :]
        entries = np.append(entries, np.convolve(entries, over)[: entries.size])
    return entries[:steps]


@functools.lru_cache(maxsize=8)
def _column(strategy: Strategy) -> Column:
    if strategy.matrix is not None:
        return Column(strategy.matrix.entries[:, 0], 1.0)  # integers may have been rounded
    return _COLUMNS[strategy.mechanism](strategy.steps, min(strategy.bands, strategy.steps), strategy.uses)


# --- the matrix -------------------------------------------------------------------------------------------------------


class NoiseOfIterates(NamedTuple):
    """Standard deviations of the noise in iterates, such as prefix sums, for entries of Z with standard deviation 1.

    Attributes:
        rms: the root of the mean variance over steps.
        largest: the standard deviation of the noisiest iterate.
    """

    rms: float
    largest: float


class Strategy(NamedTuple):
    """The matrix C of a mechanism.

    Attributes:
        mechanism: the kind of matrix.
        steps: T >= 1, its size.
        bands: p >= 1, for banded mechanisms.
        uses: k >= 1, the most steps that use a record; the matrix of BLT depends on it too.
        matrix: C if it is from a file.
        repeats: whether a record is always used again exactly `separation` steps later; always true for a tree.
    """

    mechanism: Mechanism
    steps: int
    bands: int = 1
    uses: int = 1
    matrix: Matrix | None = None
    repeats: bool = False

    @classmethod
    def of(cls, value: Callable[[str], Any]) -> Strategy:
        """Return the strategy of a run; ``value`` maps a parameter's name to its value. None if one is unknown."""
        steps = value("steps") or 1
        uses = at_most(value("participations") or 1, steps, value("separation") or steps)
        repeats = value("epochs") is not None and value("sampling") is None
        return cls(
            value("mechanism") or Mechanism.IDENTITY, steps, value("bands") or 1, uses, value("schedule"), repeats
        )

    def sensitivity(self, separation: int) -> float:
        """Return the norm of what one record adds to C G, in clipping norms, rounded up.

        Args:
            separation: b >= 1, the least number of steps from a use to the next one.
        """
        uses = at_most(self.uses, self.steps, separation)
        if self.matrix is not None and not self.matrix.falls:
            return self.matrix.sensitivity(uses, separation, repeats=self.repeats)
        if self.mechanism == Mechanism.TREE:
            return up(math.sqrt(tree_sensitivity_squared(steps=self.steps, uses=uses, separation=separation)), 2.0)
        first = _column(self)
        return _norm(_at_uses(first.entries, uses, separation), first.ulps + 2.0 * uses.bit_length())[1]

    def column(self) -> Column:
        """Return the first column of a Toeplitz matrix: any mechanism except the tree."""
        return _column(self)

    def inverse(self) -> Array:
        """Return the first column of the inverse of a Toeplitz matrix, shape (steps,), to nearest."""
        steps, bands = self.steps, min(self.bands, self.steps)
        if self.mechanism == Mechanism.BISR:
            return np.concatenate((_inverse_sqrt(bands), np.zeros(steps - bands)))
        if self.mechanism == Mechanism.SQRT:
            return _inverse_sqrt(steps)
        if self.mechanism == Mechanism.BLT:
            ratios, weights = self.buffers()
            return np.append(1.0, -(weights * ratios) @ self.responses()[:, : steps - 1])
        return _reciprocal(_column(self).entries[:bands], steps)

    def buffers(self) -> tuple[Array, Array]:
        """Return the ratios and the weights of the geometric sequences that add up to the column of BLT."""
        return _buffers(self.steps, self.uses)

    def responses(self) -> Array:
        """Return the response of each buffer of BLT to a row of Z in the later steps, shape (buffers, steps), to
        nearest.

        With v the weights times the ratios, buffers follow diag(ratios) - 1 v', which is symmetric in other units.
        """
        ratios, weights = self.buffers()
        units = np.sqrt(weights * ratios)
        values, vectors = np.linalg.eigh(np.diag(ratios) - np.outer(units, units))
        parts = vectors / units[:, np.newaxis] * (vectors.T @ units)
        responses: Array = parts @ np.power(values[:, np.newaxis], np.arange(self.steps))
        return responses

    def column_norm(self) -> tuple[float, float]:
        """Return the largest norm of a column of C, rounded down and up."""
        if self.matrix is not None:
            return self.matrix.column_norm
        if self.mechanism == Mechanism.TREE:
            norm = math.sqrt(tree_sensitivity_squared(steps=self.steps, uses=1, separation=self.steps))
            return down(norm, 2.0), up(norm, 2.0)
        first = _column(self)
        return _norm(first.entries, first.ulps)

    def noise(self, workload: Workload = SUMS) -> NoiseOfIterates:
        """Return the noise of all iterates, to nearest: a measure of utility, not a guarantee.

        The nodes of a tree are added up to prefix sums for every workload.
        """
        if self.mechanism == Mechanism.TREE:
            variances = _tree_variances(self.steps)
        else:
            variances = workload.variances(self.matrix.inverse if self.matrix is not None else self.inverse())
        return NoiseOfIterates(math.sqrt(float(variances.mean())), math.sqrt(float(variances.max())))


def at_most(uses: int, steps: int, separation: int) -> int:
    """Return the most uses of a record, at most ``uses``, that fit into ``steps`` with this separation."""
    return min(uses, -(-steps // separation))


def _norm(entries: Array, ulps: float) -> tuple[float, float]:
    """Return the norm of non-negative entries, each with an error of ``ulps``, rounded down and up."""
    # The squares and their sum of n terms lose at most n + 2 units of the squared norm, half of that of the norm.
    norm, ulps = math.sqrt(float(np.sum(entries * entries))), ulps + entries.size / 2.0 + 8.0
    return down(norm, ulps), up(norm, ulps)


def _at_uses(entries: Array, uses: int, separation: int) -> Array:
    """Return the sum of the column shifted by 0, b, ..., (k-1) b: by doubling, as a difference would lose digits."""
    rows = -(-entries.size // separation)
    shifted = np.zeros((rows, separation))
    shifted.ravel()[: entries.size] = entries
    total, done, width = np.zeros_like(shifted), 0, 1
    while done < uses:
        if uses & width:
            total[done:] += shifted[: rows - done]
            done += width
        if width < rows:
            shifted[width:] += shifted[: rows - width].copy()
        width *= 2
    summed: Array = total.ravel()[: entries.size]
    return summed


def tree_sensitivity_squared(*, steps: int, uses: int, separation: int) -> int:
    """Return the squared norm of what one record adds to the nodes of a binary tree: exact.

    Every node that is complete after ``steps`` steps is released. A record is used at steps phase + b j, j < k, with
    the worst phase.
    """
    at = np.arange(separation)[:, None] + separation * np.arange(uses)[None, :]
    total = np.zeros(separation, dtype=np.int64)
    for height in range(steps.bit_length()):
        whole = (steps >> height) << height  # the steps that complete nodes of this height cover
        inside = at < whole
        if 1 << height <= separation:
            total += inside.sum(axis=1)
            continue
        nodes = whole >> height
        place = np.where(inside, at >> height, nodes) + (nodes + 1) * np.arange(separation)[:, None]
        counts = np.bincount(place.ravel(), minlength=(nodes + 1) * separation).reshape(separation, nodes + 1)
        total += (counts[:, :nodes] ** 2).sum(axis=1)
    return int(total.max())


def _tree_variances(steps: int) -> Array:
    """Return the variance of every prefix of a binary tree whose nodes are averaged with their children's sums.

    A node of height h then has variance v_h = 1/(1 + 1/(2 v_{h-1})); a prefix adds those of its binary digits.
    """
    prefixes, total, variance = np.arange(1, steps + 1), np.zeros(steps), 1.0
    for height in range(steps.bit_length()):
        total += variance * ((prefixes >> height) & 1)
        variance = 1.0 / (1.0 + 0.5 / variance)
    return total


# --- the best of them -------------------------------------------------------------------------------------------------

_BANDS = (4, 16, 64, 256)
"""Numbers of bands that are tried if all mechanisms are: between them the error changes by some 10 %."""
_MORE_BANDS = tuple(2**k for k in range(11))
"""Numbers of bands that are tried for one mechanism: between them the error changes by some 3 %."""
_MOST_PRODUCTS = 1e8
"""The most steps times bands to try: a tenth of a second each."""


def noise_at(strategy: Strategy, separation: int, workload: Workload = SUMS) -> float:
    """Return the root mean square of the noise in iterates at the same guarantee, up to a common factor."""
    return strategy.sensitivity(separation) * strategy.noise(workload).rms


def strategies(
    steps: int,
    uses: int,
    separation: int,
    wanted: Mechanism = Mechanism.BEST,
    *,
    repeats: bool,
    workload: Workload = SUMS,
) -> list[Strategy]:
    """Return the candidate matrices.

    Args:
        steps, uses, separation: T, k and b. With b bands no two uses of a record overlap, which is often best.
        wanted: one mechanism, or `BEST` for all.
        repeats: whether every pass repeats the order of the first; otherwise the tree is left out.
        workload: the one in which their noise is compared; the tree is only for sums.
    """
    every = wanted is Mechanism.BEST
    trees = [Mechanism.TREE] if repeats and workload == SUMS else []
    tried = [Mechanism.IDENTITY, Mechanism.SQRT, Mechanism.BLT, *trees, *BANDED] if every else [wanted]
    most = min(steps - 1.0, _MOST_PRODUCTS / steps)
    bands = sorted(p for p in {*(_BANDS if every else _MORE_BANDS), separation, 2 * separation} if p <= most) or [1]
    return [Strategy(m, steps, p, uses) for m in tried for p in (bands if m in BANDED else (1,))]


def best(candidates: list[Strategy], separation: int, workload: Workload = SUMS) -> Strategy:
    """Return the matrix with the least noise in iterates if batches come in a public order."""
    return min(candidates, key=lambda of: noise_at(of, separation, workload))
