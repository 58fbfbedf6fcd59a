"""Moments of losses, and deltas from them, against quadrature: of each pair of a step, far out, and of two steps."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

pytest.importorskip("flint")

from flint import arb

from dpcalc.certify.numerics import composition
from dpcalc.certify.numerics.balls import precision
from dpcalc.certify.numerics.moments import Loss, Mixture, Piece
from dpcalc.certify.sampled import clipped_steps
from tests.oracles import draws, log_uniform

Q, MU = 0.125, 0.75
LOSSES = {
    "removed": clipped_steps._loss_removed,
    "replaced": clipped_steps._loss_replaced,
    "either": clipped_steps._loss_either,
    "nulled": clipped_steps._loss_nulled,
}


def loss_of(name: str, mu: float, q: float, *, exchanged: bool) -> Loss:
    loss = LOSSES[name](arb(mu), arb(q))
    return loss.exchanged() if exchanged else loss


def integral(piece: Piece, s: complex) -> complex:
    """Return int n p^(s+1) q^-s by the tanh-sinh rule of another library."""

    def ratio(mixture: Mixture, y: Any) -> Any:
        return mpmath.fsum(
            float(w) * mpmath.exp(float(a) * y - mpmath.mpf(float(a)) ** 2 / 2) for w, a in mixture.parts
        )

    def value(y: Any) -> Any:
        return mpmath.npdf(y) * ratio(piece.above, y) ** (s + 1) * ratio(piece.below, y) ** -s

    start = -16.0 if piece.start is None else float(piece.start)
    return complex(mpmath.quad(value, [start + 0.5 * k for k in range(math.ceil(2 * (24.0 - start)))]))


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_moments(name: str, exchanged: bool) -> None:
    with precision(128):
        loss = loss_of(name, MU, Q, exchanged=exchanged)
        for c in (0.3, 4.0):
            moments = loss.moments(arb(c))
            grid = moments.on_grid(arb(0.5))
            for k, on_grid in zip(range(41), grid, strict=False):
                t = 0.5 * k
                at = moments.at(arb(t))
                assert at.overlaps(on_grid)
                if k % 20 == 0:
                    exact = sum(integral(piece, complex(c, t)) for piece in loss.pieces)
                    assert complex(at) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize("name", LOSSES)
def test_bounds_far_out(name: str, exchanged: bool) -> None:
    """No moment is above the bound for all larger t, or that for the t of an interval."""
    with precision(128):
        moments = loss_of(name, MU, Q, exchanged=exchanged).moments(arb(2.0))
        for start in (0.0, 3.0, 40.0, 700.0):
            beyond, between = moments.beyond(arb(start)), moments.between(arb(start), arb(2.0))
            for k in range(25):
                assert abs(moments.at(arb(start + k / 12.0))) <= between
                assert abs(moments.at(arb(start + k * k))) <= beyond


def two_steps(loss: Loss, epsilon: float) -> float:
    """Return delta of two steps of a pair of laws, by the midpoint rule."""
    piece = loss.pieces[0]
    y = (np.arange(6000) + 0.5) * 0.004 - 12.0
    p, q = (
        sum(float(w) * np.exp(float(a) * y - 0.5 * float(a) ** 2 - 0.5 * y * y) for w, a in mixture.parts)
        for mixture in (piece.above, piece.below)
    )
    scale = (0.004 / math.sqrt(2.0 * math.pi)) ** 2
    excess = np.multiply.outer(p, p)
    excess -= math.exp(epsilon) * np.multiply.outer(q, q)
    return float(np.maximum(excess, 0.0, out=excess).sum() * scale)


@pytest.mark.parametrize(("name", "exchanged"), [("removed", False), ("replaced", False), ("replaced", True)])
def test_two_steps(name: str, exchanged: bool) -> None:
    with precision(128):
        loss = loss_of(name, 1.0, 0.25, exchanged=exchanged)
        product = composition._Product([(loss.moments(arb(6.0)), 2)])
        delta = composition._by_terms(product, arb(0), arb(6.0), arb(0.4), 30.0)
        assert delta is not None
        assert float(delta) == pytest.approx(two_steps(loss, 0.4), rel=1e-6)


def test_no_term_where_errors_are_not_bounded() -> None:
    """Of noise ten thousand times the clipping norm the terms would go on beyond the largest t."""
    with precision(128):
        loss = clipped_steps._loss_either(arb(1e-4), arb(0.01))
        c, epsilon, period = 365_000.0, 5.5e-6, 2.4e-4
        product = composition._Product([(loss.moments(arb(c)), 30)])
        assert composition._by_terms(product, arb(0), arb(c), arb(epsilon), period) is None


def test_moments_are_nearer_than_a_lattice() -> None:
    """Of random runs the bound by moments is below that by a lattice, and hardly below a finer one."""
    for r in draws("moments and a lattice", 6):
        mu, q, copies = log_uniform(r, 0.2, 1.5), log_uniform(r, 0.01, 0.5), r.randrange(8, 200)
        with precision(128):
            arguments = arb(mu), arb(q)
            part = composition.Part(
                clipped_steps._removed(*arguments), copies,
                other=clipped_steps._added(*arguments), loss=clipped_steps._loss_removed(*arguments),
            )  # fmt: skip
            epsilon = arb(0.5 + 2.0 * mu * q * math.sqrt(copies))
            lattice = composition.log_delta([part._replace(loss=None)], epsilon, -10.0, 5)
            near = composition.log_delta([part], epsilon, float(lattice.upper()) + 1e-3, 0)
            assert float(lattice) - 0.02 <= float(near) <= float(lattice)
