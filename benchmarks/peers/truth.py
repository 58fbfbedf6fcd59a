"""The exact answers, by other means than any accountant here: many digits, or quadrature without a lattice.

Used as an adapter: each kind of question has one method, "truth". Gaussian and repeated mechanisms are worked out in
`DIGITS` decimal digits. For the others the laws of the privacy loss are those of `tests.oracles.pld`, and delta is the
inverse transform of their moments along a line, on two lines that must agree to a tenth of `QUADRATURE`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mpmath
import numpy as np  # noqa: TID253

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.oracles import pld as oracle

DIGITS = 60
SHARP = dict.fromkeys(("gaussian", "gaussian noise", "repeated", "square root", "tree"), 1e-15)
QUADRATURE = 1e-8
"""What a truth may be off by, relatively, where `SHARP` does not say."""

Given = dict[str, Any]
Laws = Callable[[float, float], Sequence[oracle.Loss]]


def exact_gaussian_delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu) (Balle and Wang 2018)."""
    half, ratio = mu / 2, epsilon / mu
    return mpmath.ncdf(half - ratio) - mpmath.exp(epsilon) * mpmath.ncdf(-half - ratio)


def gaussian(given: Given) -> float:
    """Epsilon of ``count`` Gaussian mechanisms of standard deviation ``sigma``, sensitivity 1."""
    with mpmath.workdps(DIGITS):
        mu = mpmath.sqrt(given["count"]) / mpmath.mpf(given["sigma"])
        target = mpmath.log(mpmath.mpf(given["delta"]))
        end = mu * mu / 2 + mu * mpmath.sqrt(-2 * target)
        return float(_bisected(lambda e: mpmath.log(exact_gaussian_delta(mu, e)) - target, mpmath.mpf(0), end))


def gaussian_noise(given: Given) -> float:
    """The least ``sigma`` that keeps to epsilon and delta."""
    with mpmath.workdps(DIGITS):
        epsilon, target = mpmath.mpf(given["epsilon"]), mpmath.log(mpmath.mpf(given["delta"]))
        low, high = mpmath.mpf("1e-30"), mpmath.sqrt(2 * epsilon) + 1
        excess = _bisected(lambda mu: target - mpmath.log(exact_gaussian_delta(mu, epsilon)), low, high)
        return float(mpmath.sqrt(given["count"]) / excess)


def repeated_log_delta(epsilon0: mpmath.mpf, delta0: mpmath.mpf, count: int, epsilon: mpmath.mpf) -> mpmath.mpf:
    """ln delta of ``count`` times randomised response that tells its secret with probability delta0 (KOV 2015)."""
    log_keep = count * mpmath.log1p(-delta0)
    first = max(0, int(mpmath.floor((epsilon / epsilon0 + count) / 2)) + 1)
    total, x = mpmath.mpf(0), first
    if first <= count:
        log_p = -mpmath.log1p(mpmath.exp(-epsilon0))
        log_choose = mpmath.loggamma(count + 1) - mpmath.loggamma(first + 1) - mpmath.loggamma(count - first + 1)
        mass = mpmath.exp(log_choose + count * log_p - (count - first) * epsilon0)
        gain, step = mpmath.exp(epsilon - (2 * first - count) * epsilon0), mpmath.exp(-2 * epsilon0)
        odds = mpmath.exp(epsilon0)
        while x <= count:
            term = mass * (1 - gain)
            total += term
            if x > first + 2 and mass < total * mpmath.mpf(10) ** -30:
                break
            mass *= odds * (count - x) / (x + 1)
            gain *= step
            x += 1
    return mpmath.log(-mpmath.expm1(log_keep) + mpmath.exp(log_keep) * total)


def repeated(given: Given) -> float:
    """Epsilon of the optimal composition of ``count`` (epsilon0, delta0)-private mechanisms; inf if there is none."""
    with mpmath.workdps(40):
        epsilon0, delta0 = mpmath.mpf(given["epsilon0"]), mpmath.mpf(given["delta0"])
        count, target = given["count"], mpmath.log(mpmath.mpf(given["delta"]))
        least = mpmath.log(-mpmath.expm1(count * mpmath.log1p(-delta0))) if delta0 else -mpmath.inf
        if least > target:
            return math.inf

        def excess(epsilon: mpmath.mpf) -> mpmath.mpf:
            return repeated_log_delta(epsilon0, delta0, count, epsilon) - target

        mean = count * epsilon0 * mpmath.tanh(epsilon0 / 2)
        end = min(count * epsilon0, mean + epsilon0 * mpmath.sqrt(2 * count * -target) * 3)
        return float(_falsi(excess, mpmath.mpf(0), end, mpmath.mpf(10) ** -20))


def _sampled(laws: Laws) -> Callable[[Given], float]:
    def answer(given: Given) -> float:
        return max(_spent(law, given) for law in laws(1.0 / given["sigma"], _rate(given)))

    return answer


def _sampled_noise(laws: Laws) -> Callable[[Given], float]:
    def answer(given: Given) -> float:
        def excess(log_sigma: float) -> float:
            found = laws(math.exp(-log_sigma), _rate(given))
            return max(_spent(law, given, twice=False) for law in found) - given["epsilon"]

        low = high = 0.0
        while excess(high) > 0.0:
            low, high = high, high + 0.3
        while low == high or excess(low) < 0.0:
            low -= 0.3
        return math.exp(float(_falsi(excess, low, high, 1e-10)))

    return answer


def _rate(given: Given) -> float:
    return float(given["rate"]) if "rate" in given else given["batch"] / given["records"]


def _poisson_laws(mu: float, rate: float) -> Sequence[oracle.Loss]:
    removed = oracle.poisson(mu, rate)
    return removed, oracle.swapped(removed)


def _batch_laws(mu: float, rate: float) -> Sequence[oracle.Loss]:
    return (oracle.subsampled(mu, rate),)


def laplace(given: Given) -> float:
    """Epsilon of ``count`` Laplace mechanisms of scale ``scale``, sensitivity 1."""
    return _spent(oracle.laplace(1.0 / given["scale"]), given)


def _spent(law: oracle.Loss, given: Given, *, twice: bool = True) -> float:
    """Epsilon of so many of a law at delta; found along two lines, which must agree."""
    target, count = math.log(given["delta"]), given["count"]
    tilt = _tilt(law, count, target)
    found = _at(law, count, target, tilt, 1.0)
    beside = tilt + 0.5 / math.sqrt(count * oracle._cumulants(law, tilt)[2])
    if twice and abs(_at(law, count, target, beside, 1.3) - found) > 0.1 * QUADRATURE * found:
        raise ArithmeticError("the two lines of the inverse transform do not agree")
    return found


def _at(law: oracle.Loss, count: int, target: float, tilt: float, fine: float) -> float:
    """Epsilon where ln delta is the target, from the moments on the line Re s = tilt."""
    scale, slope, curve = (count * c for c in oracle._cumulants(law, tilt))
    deviation = math.sqrt(curve)
    spacing = 2.0 * math.pi / (fine * max(60.0 * deviation, 60.0 / tilt))
    t, values = oracle.characteristic([(law, count)], tilt, spacing, 1, 1e-17)
    values /= (tilt + 1j * t) * (tilt + 1.0 + 1j * t)
    values[0] *= 0.5

    def excess(epsilon: float) -> float:
        total = math.fsum((values * np.exp(1j * t * (slope - epsilon))).real)
        return scale - tilt * epsilon + math.log(spacing / math.pi * total) - target

    width = min(deviation, 1.0 / tilt)
    low = high = slope
    while excess(high) > 0.0:
        low, high = high, high + width
    while low == high or excess(low) < 0.0:
        low -= width
    return float(_falsi(excess, low, high, 1e-13))


def _tilt(law: oracle.Loss, count: int, target: float) -> float:
    """About where the line crosses the axis best: K(s) - s K'(s) = ln delta."""
    low, high = 1e-9, 1.0

    def exponent(tilt: float) -> float:
        scale, slope, _ = oracle._cumulants(law, tilt)
        return count * (scale - tilt * slope)

    while exponent(high) > target:
        high *= 2.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if exponent(middle) > target else (low, middle)
    return low


def _bisected(decreasing: Callable[[Any], Any], low: Any, high: Any) -> Any:
    """The root of a function that is positive at ``low`` and not at ``high``, to 20 digits."""
    while high - low > 1e-20 * high:
        middle = (low + high) / 2 if low > 0 or high < 1e-25 else high / 2
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return high


def _falsi(decreasing: Callable[[Any], Any], low: Any, high: Any, tolerance: Any) -> Any:
    """The same by the Illinois rule, for functions that cost much; by halves where the value is infinite."""
    at_low, at_high = decreasing(low), decreasing(high)
    side = 0
    while high - low > tolerance * abs(high):
        flat = not math.isfinite(at_high)
        middle = (low + high) / 2 if flat else (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            break
        value = decreasing(middle)
        before, side = side, 1 if value > 0 else -1
        step = middle - low if value > 0 else high - middle
        if value > 0:
            low, at_low, at_high = middle, value, at_high / 2 if before == side else at_high
        else:
            high, at_high, at_low = middle, value, at_low / 2 if before == side else at_low
        if not flat and step < tolerance * abs(high):
            return middle
    return high


def square_root(given: Given) -> float:
    """Epsilon of the sum of the columns that a record uses, epochs of them in equal distances, in many digits."""
    steps, apart = given["steps"], given["steps"] // given["epochs"]
    with mpmath.workdps(DIGITS):
        column = [mpmath.mpf(1)]
        for j in range(1, steps):
            column.append(column[-1] * (2 * j - 1) / (2 * j))
        used = [mpmath.fsum(column[row - start] for start in range(0, row + 1, apart)) for row in range(steps)]
        return gaussian(given | {"count": mpmath.fsum(entry**2 for entry in used)})


def tree(given: Given) -> float:
    """Epsilon of the complete nodes of a binary tree that hold one leaf, where that is in the most."""
    return gaussian(given | {"count": given["steps"].bit_length()})


def banded(given: Given) -> float:
    """Epsilon of the rounds of one group."""
    rounds = given | {"rate": given["bands"] * given["rate"], "count": -(-given["steps"] // given["bands"])}
    return METHODS["poisson"]["truth"](rounds)


METHODS: dict[str, dict[str, Callable[[Given], float]]] = {
    "gaussian": {"truth": gaussian},
    "gaussian noise": {"truth": gaussian_noise},
    "poisson": {"truth": _sampled(_poisson_laws)},
    "poisson noise": {"truth": _sampled_noise(_poisson_laws)},
    "batches": {"truth": _sampled(_batch_laws)},
    "batches noise": {"truth": _sampled_noise(_batch_laws)},
    "laplace": {"truth": laplace},
    "repeated": {"truth": repeated},
    "square root": {"truth": square_root},
    "tree": {"truth": tree},
    "banded": {"truth": banded},
}
