"""Compositions from the definition of the privacy loss, without its privacy profile and without a lattice.

A loss is given by nodes and weights, atoms or quadrature points of its law under P. With the moments

    M(s) = E_P exp(s L) = sum w exp(s z),

delta(epsilon) = (1/2 pi i) int M(s)^n e^(-s epsilon)/(s (s + 1)) ds along Re s = tilt > 0: the tilted loss and the
function (1 - e^(epsilon - z))_+ e^(-tilt z) in the frequency domain. On the line the trapezoidal rule converges
exponentially. In doubles ln delta comes out to some 1e-16 times the number composed, times the deviations that fit in
1/tilt: good enough below, where lattices are off by 1e-8 or more.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Loss(NamedTuple):
    """Nodes and ln weights of the law of the privacy loss under P."""

    nodes: Array
    log_weights: Array


def normal(mu: float) -> Loss:
    """N(mu, 1) against N(0, 1)."""
    x, w = _rule(-60.0, 60.0, 0.5)
    return Loss(mu * x + 0.5 * mu * mu, np.log(w) + _log_density(x))


def laplace(ratio: float) -> Loss:
    """Two Laplace laws: x < 0 and x > ratio give atoms, in between the loss is ratio - 2 x."""
    x, w = _rule(0.0, ratio, ratio / 8)
    nodes = np.concatenate(([ratio, -ratio], ratio - 2.0 * x))
    return Loss(nodes, np.concatenate(([math.log(0.5), math.log(0.5) - ratio], np.log(0.5 * w) - x)))


def response(epsilon: float) -> Loss:
    """Randomised response."""
    log_total = math.log1p(math.exp(-epsilon))
    return Loss(np.array([epsilon, -epsilon]), np.array([-log_total, -epsilon - log_total]))


def subsampled(mu: float, rate: float) -> Loss:
    """C_p(G_mu): where the mixture is above N(0, 1) it is P, where it is below the two change places; else 0."""
    x, w = _rule(0.5 * mu, 0.5 * mu + 60.0, 0.25)
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - 0.5 * mu * mu)
    density = _log_density(x) + np.log(w)
    mixture = np.logaddexp(math.log(rate) + _log_density(x - mu) + np.log(w), math.log1p(-rate) + density)
    atom = (1.0 - rate) * math.erf(mu / math.sqrt(8.0))
    return Loss(np.concatenate(([0.0], loss, -loss)), np.concatenate(([math.log(atom)], mixture, density)))


def log_delta(parts: Sequence[tuple[Loss, int]], epsilon: float) -> float:
    """ln delta at epsilon > mean loss of independent sums, to some 1e-9 where the characteristic functions decay."""
    tilt = _saddle(parts, epsilon)
    scale = sum(n * _cumulants(loss, tilt)[0] for loss, n in parts)
    deviation = math.sqrt(sum(n * _cumulants(loss, tilt)[2] for loss, n in parts))
    # Aliases at epsilon - period: e^(-tilt period) of their delta, below what a double sees.
    spacing = 2.0 * math.pi / max(40.0 * deviation, 50.0 / tilt)
    t, values = characteristic(parts, tilt, spacing, math.ceil(60.0 / deviation / spacing), 1e-12)
    mean = sum(n * _cumulants(loss, tilt)[1] for loss, n in parts)
    s = tilt + 1j * t
    terms = (values * np.exp(1j * t * (mean - epsilon)) / (s * (s + 1.0))).real
    integral = spacing / math.pi * (math.fsum(terms) - 0.5 * terms[0])
    # Powers of rounded values: where the terms all but cancel, their errors are what is left.
    lost = 1e-16 * sum(n for _, n in parts) * spacing / math.pi * math.fsum(np.abs(terms))
    if integral <= 0.0 or lost > 1e-6 * integral:
        raise ArithmeticError("the terms cancel")
    return scale - tilt * epsilon + math.log(integral)


def characteristic(
    parts: Sequence[tuple[Loss, int]], tilt: float, spacing: float, least: int, floor: float
) -> tuple[Array, NDArray[np.complex128]]:
    """Frequencies 0, spacing, ..., and at them the characteristic function of the tilted sum less its mean.

    At ``least`` so many, and on until it stays below ``floor``: a small delta of a sampled law is that of few nodes,
    whose function decays late.

    Raises:
        ArithmeticError: it does not: there is nothing but atoms, or too few nodes.
    """
    tilted = []
    for loss, n in parts:
        w = loss.log_weights + tilt * loss.nodes
        w = np.exp(w - w.max())
        heavy = w > 1e-25
        w, z = w[heavy] / w.sum(), loss.nodes[heavy]
        tilted.append((w, z - float(np.sum(w * z)), n))
    t, values = np.empty(0), np.empty(0, dtype=complex)
    while len(t) < least or np.max(np.abs(values[-16:])) > floor:
        if len(t) > 200_000:
            raise ArithmeticError("the characteristic function does not decay")
        block = spacing * (len(t) + np.arange(256.0))
        found = np.ones(256, dtype=complex)
        for w, z, n in tilted:
            found *= (np.exp(1j * np.outer(block, z)) @ w) ** n
        t, values = np.concatenate((t, block)), np.concatenate((values, found))
    return t, values


def _saddle(parts: Sequence[tuple[Loss, int]], epsilon: float) -> float:
    low, high = 1e-9, 1.0
    while sum(n * _cumulants(loss, high)[1] for loss, n in parts) < epsilon:
        high *= 2.0
    for _ in range(60):
        middle = math.sqrt(low * high)
        mean = sum(n * _cumulants(loss, middle)[1] for loss, n in parts)
        low, high = (middle, high) if mean < epsilon else (low, middle)
    # A little to the right of 0, where there is a pole.
    deviation = math.sqrt(sum(n * _cumulants(loss, low)[2] for loss, n in parts))
    return max(low, 0.3 / deviation)


def _cumulants(loss: Loss, tilt: float) -> tuple[float, float, float]:
    exponents = loss.log_weights + tilt * loss.nodes
    peak = float(exponents.max())
    w = np.exp(exponents - peak)
    total = math.fsum(w)
    mean = math.fsum(w * loss.nodes) / total
    return peak + math.log(total), mean, math.fsum(w * (loss.nodes - mean) ** 2) / total


def _rule(low: float, high: float, panel: float) -> tuple[Array, Array]:
    """Gauss and Legendre's rule of 20 points on panels."""
    x, w = np.polynomial.legendre.leggauss(20)
    count = math.ceil((high - low) / panel)
    half = 0.5 * (high - low) / count
    middles = low + half * (2.0 * np.arange(count) + 1.0)
    return (middles[:, None] + half * x[None, :]).ravel(), np.tile(half * w, count)


def _log_density(x: Array) -> Array:
    return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi)


def subsampled_twice(mu: float, rate: float, epsilon: float, digits: int = 30) -> mpmath.mpf:
    """delta of two subsampled Gaussians, by quadrature of the second's hockey-stick over the first's loss."""
    with mpmath.workdps(digits):
        m, p, e = mpmath.mpf(mu), mpmath.mpf(rate), mpmath.mpf(epsilon)

        def stick(gamma: mpmath.mpf) -> mpmath.mpf:
            """int (dN(m, 1) - gamma dN(0, 1))_+."""
            x = mpmath.log(gamma) / m
            return mpmath.ncdf(m / 2 - x) - gamma * mpmath.ncdf(-m / 2 - x)

        def once(y: mpmath.mpf) -> mpmath.mpf:
            if y >= 0:
                return p * stick(1 + (mpmath.exp(y) - 1) / p)
            return 1 - mpmath.exp(y) * (1 - once(-y))

        def loss(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log(1 - p + p * mpmath.exp(m * x - m * m / 2))

        def place(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.log((mpmath.exp(y) - 1 + p) / p) / m + m / 2

        marks = sorted({m / 2 + j * mpmath.mpf(3) / 2 for j in range(26)} | {place(e)})
        above = mpmath.quad(lambda x: (p * mpmath.npdf(x, m) + (1 - p) * mpmath.npdf(x)) * once(e - loss(x)), marks)
        below = mpmath.quad(lambda x: mpmath.npdf(x) * once(e + loss(x)), marks)
        atom = (1 - p) * (2 * mpmath.ncdf(m / 2) - 1)
        return above + below + atom * once(e)


def laplace_twice(ratio: float, epsilon: float, digits: int = 40) -> mpmath.mpf:
    """delta of two Laplace mechanisms, by quadrature of the second's profile over the first's loss."""
    with mpmath.workdps(digits):
        s, e = mpmath.mpf(ratio), mpmath.mpf(epsilon)

        def once(y: mpmath.mpf) -> mpmath.mpf:
            if y >= s:
                return mpmath.mpf(0)
            return -mpmath.expm1((y - s) / 2) if y >= -s else -mpmath.expm1(y)

        marks = sorted({mpmath.mpf(0), s} | {x for x in ((s - e - s) / 2, (s - e + s) / 2) if 0 < x < s})
        between = mpmath.quad(lambda x: mpmath.exp(-x) / 2 * once(e - s + 2 * x), marks)
        return once(e - s) / 2 + mpmath.exp(-s) / 2 * once(e + s) + between


def poisson(mu: float, rate: float) -> Loss:
    """The mixture rate N(mu, 1) + (1 - rate) N(0, 1) against N(0, 1)."""
    x, w = _rule(-40.0, 40.0 + mu, 0.25)
    loss = np.logaddexp(math.log1p(-rate), math.log(rate) + mu * x - 0.5 * mu * mu)
    return Loss(loss, _log_density(x) + np.log(w) + loss)


def swapped(loss: Loss) -> Loss:
    """The loss with P and Q in each other's place."""
    return Loss(-loss.nodes, loss.log_weights - loss.nodes)


def log_delta_of_frequent(loss: Loss, copies: int, epsilon: float, about: float) -> float:
    """ln delta at epsilon of ``copies`` losses with a heavy tail, where it is ``about`` that, to some 1e-9.

    Losses so rare that they add less than 1e-11 of delta are left out: with them the moments would be the tail's.
    """
    order = np.argsort(loss.nodes)
    nodes, log_weights = loss.nodes[order], loss.log_weights[order]
    beyond = np.logaddexp.accumulate((log_weights + np.log(np.clip(nodes, 1e-300, 1.0)))[::-1])[::-1]
    last = int(np.searchsorted(-beyond, -(about - math.log(copies) - 25.0)))
    return log_delta([(Loss(nodes[:last], log_weights[:last]), copies)], epsilon)
