"""Convolution powers of non-negative weights by the fast Fourier transform, each with an upper bound on its error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.numerics.floats import UNIT, Array, Integers, np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Complex = NDArray[np.complex128]

_WRAPPED = 1e-15  # weight that may wrap around at either end: a few units of roundoff
_NEGLIGIBLE = 100.0  # frequencies with less than e^-100 of the weight are dropped
_FEW = 2  # a factor with at most this many points is added by shifts, which is exact
_LONG = 1 << 13  # points: shorter transforms are not worth a window
_LARGEST_TABLE = 1 << 15  # entries of a table of frequencies that stays in the cache


class Shares(NamedTuple):
    """How weights are split between starts of rows: place r of a row gives lower[r] to its start, upper[r] to the next.

    ``first`` is the place of index 0 of the weights; a row starts at every multiple of the size.
    """

    lower: Array
    upper: Array
    first: int

    @property
    def size(self) -> int:
        """Return the number of places of a row, a power of 2."""
        return len(self.lower)


def convolution_power(
    x: Array, times_x: int, y: Array, times_y: int, shares: Shares | None = None
) -> tuple[Array, int, float, bool]:
    """Return the convolution power x^times_x y^times_y by FFT, the index it starts at, and its error in the 1-norm.

    Every value of a transform of length at most 2^k is assumed accurate to 8 k units of roundoff of the 1-norm, and the
    inverse transform to as many of the 2-norm: Higham (2002, Theorem 24.2) gives less than 7 k for radix 2, and a step
    of radix 3 is accurate to 13 units. If a transform F has the error e, its power F^m has an error of at most
    m e (|F| + e)^(m - 1), and the 1-norm of the error of the result is at most the 2-norm of that over all frequencies.
    If most of a law is in one point, so may be most of its power, which is then added at the end. Weights below 0 are
    set to 0, which is no farther from the exact ones. The transform is cyclic: the weight outside a window of its
    length is small by Chernoff's bound, and is an error in two places.

    With ``shares`` and few frequencies that matter, a short inverse transform gives the weights of rows, and the index
    is the number of a row. The last value returned says whether this was done.
    """
    full = times_x * (len(x) - 1) + times_y * (len(y) - 1) + 1
    if not x.any():
        return np.zeros(1), 0, 0.0, False
    low, high = _window(x, times_x, y, times_y) if full > _LONG else (0, full)
    wrapped = 4.0 * _WRAPPED
    if high - low >= full:
        low, high, wrapped = 0, full, 0.0
    if x is y:  # one transform is enough
        times_x, times_y = times_x + times_y, 0
    length = _length(high - low)
    bits = (length - 1).bit_length()
    factors = [(_transform(z, length, bits), times) for z, times in ((x, times_x), (y, times_y)) if times]
    sparse = _is_sparse(factors)
    power, change, atom = _sparse_product(factors) if sparse else _product(factors)
    shift = sum(times * f.start for f, times in factors)
    mass = max(float(x.sum()), 1.0) ** times_x * max(float(y.sum()), 1.0) ** times_y
    grown = math.exp(8.0 * UNIT * (times_x + times_y)) * 1.01
    if shares is not None and not sparse:
        rows = _rows(power, change, length, shift, (low, min(high, full)), shares)
        if rows is not None:
            weights, row, error = rows
            return weights, row, error * grown + 1.01 * wrapped * mass * float(shares.upper.max() + 1.0), True
    weights = np.fft.irfft(power, length)
    weights[0] += atom
    weights = np.roll(np.maximum(weights, 0.0, out=weights), (shift - low) % length)
    # Half of the frequencies are not stored: they are conjugate to the others.
    rounding = math.sqrt(2.0) * (change + 8.0 * bits * UNIT * _norm(np.abs(power))) + 8.0 * UNIT * atom
    return weights[: full - low], low, rounding * grown + 1.01 * wrapped * mass, False


def product_of_means(laws: Array, places: Integers, shares: Array, counts: Array) -> tuple[Array, int, float]:
    """Return the product of the powers of means of laws, the index it starts at, and its error in the 1-norm.

    As `convolution_power`. Factor i is the sum of shares[i, j] laws[places[i, j]] over j, with exponent counts[i].
    Frequencies at which every law is small are dropped before any mean is formed.

    Args:
        laws: weights of shape (laws, points), all starting at the same index.
        places, shares: of shape (factors, parts).
        counts: of shape (factors,), whole numbers from 1.
    """
    copies, points = float(counts.sum()), laws.shape[1]
    whole = shares * laws.sum(axis=1)[places]
    full = int(copies) * (points - 1) + 1
    low, high = _window_of_means(laws, places, shares, counts)
    length = _length(min(high - low, full))
    wrapped = 4.0 * _WRAPPED if length < full else 0.0
    bits = (length - 1).bit_length()
    error = 8.0 * bits * UNIT * float(whole.sum(axis=1).max()) + 16.0 * UNIT
    kept = np.flatnonzero(_largest_modulus(laws, length) + error > math.exp(-_NEGLIGIBLE / copies))
    transforms = np.stack([np.fft.rfft(_wrapped(x, length))[kept] for x in laws])
    power, logs, change = np.ones(len(kept), dtype=complex), np.zeros(len(kept)), np.zeros(len(kept))
    for start in range(0, len(counts), rows := max(1, _LARGEST_TABLE * 16 // max(1, len(kept)))):
        of_rows = slice(start, start + rows)
        values = np.einsum("ij,ijf->if", shares[of_rows], transforms[places[of_rows]])
        sizes, times = np.abs(values) + error, counts[of_rows, None]
        logs += (times * np.log(sizes)).sum(axis=0)
        change += error * (times / sizes).sum(axis=0)
        power *= _powers(values, counts[of_rows])
    with np.errstate(over="ignore", invalid="ignore"):
        change = np.where(logs > -_NEGLIGIBLE, change * np.exp(logs), (1.0 + copies) * math.exp(-_NEGLIGIBLE))
    rounding = _norm(change) + (1.0 + copies) * length * math.exp(-_NEGLIGIBLE)
    spectrum = np.zeros(length // 2 + 1, dtype=complex)
    spectrum[kept] = np.where(logs > -_NEGLIGIBLE, power, 0.0)
    weights = np.maximum(np.fft.irfft(spectrum, length), 0.0)
    weights = np.roll(weights, -low % length)[: max(1, min(length, full - low))]
    mass = math.exp(float(np.sum(counts * np.log(np.maximum(whole.sum(axis=1), 1.0)))))
    grown = math.exp(16.0 * UNIT * copies) * 1.01
    rounding = math.sqrt(2.0) * (rounding + 8.0 * bits * UNIT * _norm(np.abs(spectrum)))
    return weights, low, rounding * grown + 1.01 * wrapped * mass


def _powers(values: Complex, counts: Array) -> Complex:
    """Return the product of the rows, each raised to its count, by multiplications only."""
    result = np.ones(values.shape[1], dtype=complex)
    exponents = counts.astype(np.int64)
    for bit in reversed(range(int(exponents.max()).bit_length())):
        result = result * result * values[(exponents >> bit) & 1 == 1].prod(axis=0)
    return result


def _largest_modulus(laws: Array, length: int) -> Array:
    """Return, for every frequency, the largest modulus of the laws' transforms."""
    result = np.zeros(length // 2 + 1)
    for x in laws:
        np.maximum(result, np.abs(np.fft.rfft(_wrapped(x, length))), out=result)
    return result


def _wrapped(x: Array, length: int) -> Array:
    """Return weights wrapped around to this length."""
    if len(x) <= length:
        return np.pad(x, (0, length - len(x)))
    return np.pad(x, (0, -len(x) % length)).reshape(-1, length).sum(axis=0)


def _window_of_means(laws: Array, places: Integers, shares: Array, counts: Array) -> tuple[int, int]:
    """Return a window outside which the product of means has at most `_WRAPPED` on either side (Chernoff)."""
    block = max(1, laws.shape[1] // 2048)
    ends = np.stack([_on_block_ends(x, block) for x in laws])
    index = block * np.arange(ends.shape[1], dtype=float)
    means = (ends * index).sum(axis=1) / ends.sum(axis=1)
    spread = (ends * (index - means[:, None]) ** 2).sum(axis=1)
    mean = (shares * means[places]).sum(axis=1)
    variance = (shares * (spread[places] + (means[places] - mean[:, None]) ** 2)).sum(axis=1)
    deviation = math.sqrt(float((counts * variance).sum())) + block
    widest = index[-1] * float(counts.sum()) + 1.0
    thetas = np.geomspace(min(1.0 / widest, 0.1 / deviation), 20.0 / deviation, 24)

    def logs(moments: Array) -> Array:
        return np.asarray(
            (counts[:, None] * np.log((shares[:, :, None] * moments[places]).sum(axis=1) + 1e-300)).sum(axis=0)
        )

    decay = np.exp(-np.outer(thetas, index))
    falling = logs(ends @ decay.T)
    rising = logs(ends[:, ::-1] @ decay.T) + thetas * index[-1] * float(counts.sum())
    low = float(((math.log(_WRAPPED) - falling) / thetas).max())
    high = float(((rising - math.log(_WRAPPED)) / thetas).min())
    last = int(counts.sum()) * (laws.shape[1] - 1)
    first = min(max(math.floor(low) - 1, 0), last)
    return first, max(math.ceil(high), first) + 1


def _length(least: int) -> int:
    """Return a length above ``least`` with a fast transform: 2^k or 3 2^k."""
    whole = 1 << least.bit_length()
    return 3 * whole // 4 if whole >= _LONG and 3 * whole // 4 > least else whole


def _rows(
    power: Complex, change: float, length: int, shift: int, window: tuple[int, int], shares: Shares
) -> tuple[Array, int, float] | None:
    """Return the weights of rows, the number of the first, and their error in the 1-norm; None if it takes too long.

    For rows of m places let u_i be the sum over r of lower_r v_(i m + r) + upper_r v_((i - 1) m + r), and V the
    transform of v. That of u at g is the mean of V K over the m frequencies f that equal g modulo length/m, with
    K(f) = sum (lower_r + upper_r e^(-2 pi i f m/length)) e^(2 pi i f r/length). The mean of |K|^2 over these f is at
    most the sum of (lower_r + upper_r)^2, so the 2-norm of an error grows by at most the root of the mean of that.

    Args:
        power, change: V at half of the frequencies, and the 2-norm of its error.
        length, shift: the length of the transform, and the index of v at its index 0.
        window: the first place of v, and the end.
        shares: how weights go to rows.
    """
    size, (low, high) = shares.size, window
    low -= (shares.first + low) % size
    count, kept = length // size, np.flatnonzero(power)
    if count % 2 or high - low > length - size or not 0 < len(kept) * size <= _LARGEST_TABLE:
        return None
    table = _turns(kept[:, None] * np.arange(-size, size), length) * np.concatenate((shares.upper, shares.lower))
    values = power[kept] * _turns(kept * ((low - shift) % length), length) * table.sum(axis=1) / size
    transform = _folded(kept, values, length, count)
    weights = np.maximum(np.fft.irfft(transform, count), 0.0)
    growth = _norm(shares.lower + shares.upper) / math.sqrt(size)
    folds = math.sqrt(min(size, 2 * len(kept)))  # an error of K counts once for every frequency of a fold
    change = growth * (change + folds * (2.0 * size + 128.0) * UNIT * _norm(np.abs(power[kept])))
    change += 8.0 * (count - 1).bit_length() * UNIT * _norm(np.abs(transform))
    return weights[: -(-(high - low) // size) + 1], (shares.first + low) // size, 1.01 * math.sqrt(2.0) * change


def _folded(places: Integers, values: Complex, length: int, count: int) -> Complex:
    """Return the sums over frequencies equal modulo ``count``; input and output hold half of the frequencies."""
    folded = np.zeros(count, dtype=complex)
    np.add.at(folded, places % count, values)
    twice = (places > 0) & (2 * places < length)  # the other half is conjugate to these
    np.add.at(folded, -places[twice] % count, np.conj(values[twice]))
    return folded[: count // 2 + 1]


def _turns(numerators: Integers, length: int) -> Complex:
    """Return e^(2 pi i k/length), accurate to 32 units of roundoff."""
    turns: Complex = np.exp(2j * math.pi / length * (numerators % length))
    return turns


class _Transform(NamedTuple):
    """Weights with the heaviest moved to the front: that weight, its index, the rest's transform, and its error."""

    heaviest: float
    start: int
    rest: Complex
    error: float


def _is_sparse(factors: list[tuple[_Transform, int]]) -> bool:
    """Return whether rests are at most half as heavy, so no transform is near 0, and the power's atom matters."""
    light = all(2.0 * float(f.rest[0].real) <= f.heaviest for f, _ in factors)
    return light and sum(times * math.log(f.heaviest) for f, times in factors) > -30.0


def _transform(x: Array, length: int, bits: int) -> _Transform:
    """Return the transform of x, wrapped around to a length of 2^bits; by definition if few weights are not 0."""
    start = int(np.argmax(x))
    rest = np.zeros(length)
    if len(x) <= length:
        rest[: len(x) - start] = x[start:]
        rest[length - start :] = x[:start]
        rest[0] = 0.0
    else:
        padded = np.pad(x, (0, -len(x) % length))
        padded[start] = 0.0
        rest = np.roll(padded.reshape(-1, length).sum(axis=0), -(start % length))
    if np.count_nonzero(rest) > _FEW:
        return _Transform(float(x[start]), start, np.fft.rfft(rest), 8.0 * bits * UNIT * float(rest.sum()))
    points = np.flatnonzero(rest)
    angles = [-2.0 * math.pi / length * (j * np.arange(length // 2 + 1) % length) for j in points]
    values = np.zeros(length // 2 + 1, dtype=complex)
    for j, angle in zip(points, angles, strict=True):
        values += rest[j] * np.exp(1j * angle)
    return _Transform(float(x[start]), start, values, 16.0 * UNIT * float(rest.sum()))


def _product(factors: list[tuple[_Transform, int]]) -> tuple[Complex, float, float]:
    """Return the product of powers of transforms, the 2-norm of its error, and 0. Values below e^-100 count as 0."""
    values = [f.heaviest + f.rest for f, _ in factors]
    moduli = [np.abs(v) for v in values]
    errors = [f.error + 4.0 * UNIT * modulus for modulus, (f, _) in zip(moduli, factors, strict=True)]
    sizes = [modulus + error for modulus, error in zip(moduli, errors, strict=True)]
    first, *others = (times * np.log(size) for size, (_, times) in zip(sizes, factors, strict=True))
    logs = sum(others, start=first)
    kept = np.flatnonzero(logs > -_NEGLIGIBLE)
    product, change = np.ones(len(kept), dtype=complex), np.zeros(len(kept))
    for v, error, size, (_, times) in zip(values, errors, sizes, factors, strict=True):
        product *= _powered(v[kept], times)
        change += times * error[kept] / size[kept]
    power = np.zeros(len(logs), dtype=complex)
    power[kept] = product
    copies = sum(times for _, times in factors)
    return power, _norm(change * np.exp(logs[kept])) + (1.0 + copies) * len(power) * math.exp(-_NEGLIGIBLE), 0.0


def _sparse_product(factors: list[tuple[_Transform, int]]) -> tuple[Complex, float, float]:
    """Return prod (a + f)^m - prod a^m for transforms a + f with |f| <= a/2, its error, and prod a^m.

    ln(1 + f/a) is accurate to 40 units of roundoff of |f|/a, so weights beside the heaviest keep their precision.
    """
    atom = 1.0
    real, imaginary, error = np.zeros((3, len(factors[0][0].rest)))
    for f, times in factors:
        x, y = f.rest.real / f.heaviest, f.rest.imag / f.heaviest
        real = real + times * 0.5 * np.log1p(x * (2.0 + x) + y * y)
        imaginary = imaginary + times * np.arctan2(y, 1.0 + x)
        error = error + times * (f.error / f.heaviest + 40.0 * UNIT * np.hypot(x, y))
        atom *= f.heaviest**times
    half = np.sin(0.5 * imaginary)
    grown = np.exp(real)
    power = atom * (np.expm1(real) - 2.0 * grown * half * half + 1j * grown * np.sin(imaginary))
    change = atom * (grown * np.expm1(error) + 16.0 * UNIT * (grown + 1.0) * np.minimum(np.hypot(real, imaginary), 1.0))
    return power, _norm(change), atom


def _powered(f: Complex, times: int) -> Complex:
    """Return f^times by multiplication: ``**`` of complex numbers takes logarithms, and 30 times the time."""
    result = f
    for bit in map(int, bin(times)[3:]):
        result = result * result
        if bit:
            result = result * f
    return result


def _window(x: Array, times_x: int, y: Array, times_y: int) -> tuple[int, int]:
    """Return a window outside which the convolution power has at most `_WRAPPED` on either side (Chernoff)."""
    block = max(1, max(len(x), len(y)) // 2048)
    masses = [(_on_block_ends(z, block), times) for z, times in ((x, times_x), (y, times_y)) if times]
    deviation = block * math.sqrt(sum(times * _variance(split) for split, times in masses)) + 1.0
    widest = block * sum(len(split) for split, _ in masses)
    thetas = np.geomspace(min(1.0 / widest, 0.1 / deviation), 20.0 / deviation, 24)
    falling, rising = 0.0, 0.0  # ln of the moment generating functions at -theta and at theta
    for split, times in masses:
        powers = np.exp(-block * np.outer(thetas, np.arange(len(split))))
        falling = falling + times * np.log((powers * split).sum(axis=1) + 1e-300)
        top = thetas * (block * (len(split) - 1))
        rising = rising + times * (top + np.log((powers * split[::-1]).sum(axis=1) + 1e-300))
    ends = (
        float(((math.log(_WRAPPED) - falling) / thetas).max()),
        float(((rising - math.log(_WRAPPED)) / thetas).min()),
    )
    last = times_x * (len(x) - 1) + times_y * (len(y) - 1)
    low = min(max(math.floor(ends[0]) - 1, 0), last)
    return low, max(math.ceil(ends[1]), low) + 1


def _on_block_ends(x: Array, size: int) -> Array:
    """Return weights on multiples of ``size`` with the total and the mean of x, and larger in convex order.

    Every weight is split between the ends of its block.
    """
    starts = np.arange(0, len(x), size)
    within = np.tile(np.arange(size, dtype=float), len(starts))[: len(x)]
    upper = np.add.reduceat(x * within, starts) / size
    return np.append(np.add.reduceat(x, starts) - upper, 0.0) + np.append(0.0, upper)


def _variance(x: Array) -> float:
    """Return the variance of the index under the weights x."""
    index = np.arange(len(x), dtype=float)
    total = float(x.sum())
    centred = index - float(np.sum(x * index)) / total
    return float(np.sum(x * centred * centred)) / total


def _norm(x: Array) -> float:
    # No BLAS: its threads cost more than they save here, and its result may depend on their number.
    with np.errstate(over="ignore"):  # infinite above 1e154: then the error is infinite, and another method is used
        return math.sqrt(float(np.sum(x * x)))
