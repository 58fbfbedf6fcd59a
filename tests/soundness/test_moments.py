"""Moments of losses, and deltas from them, against quadrature: of each pair of a step, far out, and of two steps."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.special import ndtr

pytest.importorskip("flint")

from flint import arb

from dpcalc.certify.numerics import composition, moments, products
from dpcalc.certify.numerics.balls import precision
from dpcalc.certify.numerics.moments import Loss, Mixture, Piece
from dpcalc.certify.sampled import clipped_steps
from tests.oracles import draws, log_uniform

Q, MU = 0.125, 0.75
LOSSES = {
    "removed": clipped_steps._loss_removed,
    "replaced": clipped_steps._loss_replaced,
    "either": moments.either_order,
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
    return complex(mpmath.quad(value, [start + k for k in range(math.ceil(24.0 - start))]))


@pytest.mark.campaign
@pytest.mark.parametrize("exchanged", [False, True])
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.campaign if k else ()) for k, n in enumerate(LOSSES)]
)
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
                if k == 20 or (k % 20 == 0 and c < 1.0):
                    exact = sum(integral(piece, complex(c, t)) for piece in loss.pieces)
                    assert complex(at) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@pytest.mark.few(2)
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


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "exchanged"), [("removed", False), ("replaced", False), ("replaced", True)])
def test_two_steps(name: str, exchanged: bool) -> None:
    with precision(128):
        loss = loss_of(name, 1.0, 0.25, exchanged=exchanged)
        product = products.Product([(loss.moments(arb(6.0)), 2)])
        delta = products.sum_of_terms(product, arb(0), arb(6.0), arb(0.4), 30.0, arb(0))
        assert delta is not None
        assert float(delta) == pytest.approx(two_steps(loss, 0.4), rel=1e-6)


def test_hardly_any_mass_at_zero() -> None:
    """The integral of n q^-s, against quadrature with 40 digits: its ball holds it and is small."""
    t = 5.0
    weights, c = ((arb(10) ** -60, 0.0), (arb("0.6"), 0.125), (arb("0.4"), 0.5)), 20.0
    with mpmath.workdps(40):
        masses = ((mpmath.mpf(10) ** -60, 0.0), (mpmath.mpf("0.6"), 0.125), (mpmath.mpf("0.4"), 0.5))

        def integrand(y: mpmath.mpf) -> mpmath.mpc:
            q = mpmath.fsum(w * mpmath.exp(a * y - mpmath.mpf(a) ** 2 / 2) for w, a in masses)
            return mpmath.npdf(y) * mpmath.exp(-mpmath.mpc(c, t) * mpmath.log(q))

        truth = mpmath.quad(integrand, [*range(-40, 22, 2)])
    with precision(192):
        below = Mixture(tuple((weight, arb(shift)) for weight, shift in weights))
        found = Loss((Piece(moments.ALONE, below, rises=False),)).moments(arb(c)).at(arb(t))
        for part, exact in ((found.real, truth.real), (found.imag, truth.imag)):
            assert abs(part - arb(mpmath.nstr(exact, 38))) < abs(found) * arb(10) ** -18
            assert part.overlaps(arb(mpmath.nstr(exact, 38)))


def test_no_term_where_errors_are_not_bounded() -> None:
    """Of noise ten thousand times the clipping norm the terms would go on beyond the largest t."""
    with precision(128):
        loss = moments.either_order(arb(1e-4), arb(0.01))
        c, epsilon, period = 365_000.0, 5.5e-6, 2.4e-4
        product = products.Product([(loss.moments(arb(c)), 30)])
        assert products.sum_of_terms(product, arb(0), arb(c), arb(epsilon), period, arb(0)) is None


@pytest.mark.campaign
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
            near = composition.log_delta([part], epsilon, float(lattice))
            assert float(lattice) - 0.02 <= float(near) <= float(lattice)


# --- few steps, against nested quadrature -----------------------------------------------------------------------------

FEW = (("removed", 1.0, 0.1, 1.5), ("added", 1.0, 0.1, 0.19), ("added", 0.5, 0.1, 0.15), ("either", 1.0, 0.05, 2.0),
       ("nulled", 1.0, 0.3, 3.5), ("backward", 1.0, 0.3, 0.65))  # fmt: skip


def part_of(name: str, mu: float, q: float, copies: int) -> composition.Part:
    m, rate = arb(mu), arb(q)
    poisson = composition.Part(
        clipped_steps._removed(m, rate), copies,
        other=clipped_steps._added(m, rate), loss=clipped_steps._loss_removed(m, rate),
    )  # fmt: skip
    nulled = composition.Part(
        clipped_steps._nulled(m, rate), copies,
        other=clipped_steps._removed(m, rate), loss=clipped_steps._loss_nulled(m, rate),
    )  # fmt: skip
    either = composition.Part(clipped_steps._removed(m, rate), copies, loss=moments.either_order(m, rate))
    parts = {"removed": poisson, "nulled": nulled, "either": either}
    return {**parts, "added": poisson.exchanged(), "backward": nulled.exchanged()}[name]


class Nested:
    """delta of few steps by one integral for every step but the last, of which the excess over x Q is in closed form.

    Of a pair of laws with densities p and q over y that cross once the excess is that of a half-line. A profile of both
    orders has a loss for each where it is positive, and an atom of what is left.
    """

    def __init__(self, name: str, mu: float, q: float, epsilon: float) -> None:
        self.name, self.mu, self.q = name, mu, q
        ends = [-14.0, mu / 2, 1.5 * mu, 14.0 + 3 * mu]
        for x in (math.exp(epsilon), math.exp(-epsilon)):
            with np.errstate(invalid="ignore", divide="ignore"):
                ends += [float(self._edge(far, x)) for far in (False, True)]
        ends = sorted(y for y in ends if -14.0 <= y <= 14.0 + 3 * mu)
        points, weights = np.polynomial.legendre.leggauss(24)
        nodes, sizes = [], []
        for left, right in itertools.pairwise(ends):
            cuts = np.linspace(left, right, math.ceil((right - left) / 0.25) + 1)
            for a, b in itertools.pairwise(cuts):
                nodes.append((a + b) / 2 + (b - a) / 2 * points)
                sizes.append((b - a) / 2 * weights)
        y = np.concatenate(nodes)
        size = np.concatenate(sizes) * np.exp(-y * y / 2) / math.sqrt(2 * math.pi)
        near, far = self._density(False, y), self._density(True, y)
        above, beyond = y > mu / 2, y > 1.5 * mu
        none = np.zeros(0)
        up, down = {
            "removed": ((size * near, 1 / near), (none, none)),
            "added": ((none, none), (size, near)),
            "either": (((size * near)[above], 1 / near[above]), (size[above], near[above])),
            "nulled": (((size * far)[beyond], (near / far)[beyond]), (size[above], near[above])),
            "backward": (((size * near)[above], 1 / near[above]), ((size * near)[beyond], (far / near)[beyond])),
        }[name]
        self.weights, self.falls = (np.concatenate(column) for column in zip(up, down, strict=True))
        self.atom = 0.0 if name in ("removed", "added") else 1.0 - float(self.weights.sum())

    def _density(self, far: bool, y: Any) -> Any:
        """M_1, or M_2, over N(0)."""
        shift = 2 * self.mu if far else self.mu
        return 1 - self.q + self.q * np.exp(shift * y - shift * shift / 2)

    def _edge(self, far: bool, x: Any) -> Any:
        """Where M_1 over N(0), or M_2 over M_1, is x."""
        mu, q = self.mu, self.q
        if not far:
            return (np.log((x - 1 + q) / q) + mu * mu / 2) / mu
        a, b, c = q * math.exp(-2 * mu * mu), x * q * math.exp(-mu * mu / 2), (x - 1) * (1 - q)
        return np.log((b + np.sqrt(b * b + 4 * a * c)) / (2 * a)) / mu

    def _up(self, far: bool, x: Any) -> Any:
        """The excess of M_1 over x N(0), or of M_2 over x M_1."""
        mu, q = self.mu, self.q
        y = self._edge(far, x)
        tails = [ndtr(shift - y) for shift in (0.0, mu, 2 * mu)]
        near = (1 - q) * tails[0] + q * tails[1]
        return (1 - q) * tails[0] + q * tails[2] - x * near if far else near - x * tails[0]

    def _down(self, x: Any) -> Any:
        """The excess of N(0) over x M_1."""
        y = self._edge(False, 1 / x)
        return ndtr(y) - x * ((1 - self.q) * ndtr(y) + self.q * ndtr(y - self.mu))

    def one(self, x: Any) -> Any:
        """The excess of one step over x."""
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.name == "removed":
                return np.where(x > 1 - self.q, self._up(False, x), 1 - x)
            if self.name == "added":
                return np.where(x * (1 - self.q) < 1, self._down(x), 0.0)
            forward, back = self.name == "nulled", self.name == "backward"
            return np.where(x >= 1, self._up(forward, x), 1 - x + x * self._up(back, 1 / x))

    def more(self, x: Any, steps: int) -> Any:
        """The excess of so many steps over each x."""
        if steps == 1:
            return self.one(x)
        rest = self.more(np.multiply.outer(x, self.falls), steps - 1)
        return rest @ self.weights + self.atom * self.more(x, steps - 1)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "mu", "q", "epsilon", "steps"),
    [(*case, 2) for case in FEW] + [("removed", 1.0, 0.1, 2.0, 3), ("added", 1.0, 0.1, 0.28, 3)],
)
def test_few_steps_are_proved_next_to_the_truth(name: str, mu: float, q: float, epsilon: float, steps: int) -> None:
    truth = math.log(float(Nested(name, mu, q, epsilon).more(np.array([math.exp(epsilon)]), steps)[0]))
    with precision(128):
        part = part_of(name, mu, q, steps)
        proved = composition.log_delta([part], arb(epsilon), truth)
        assert -1e-9 < float(proved - arb(truth)) < 1e-7
        lattice = composition.log_delta([part], arb(epsilon), truth, 2)
        assert float(proved) - 1e-9 < float(lattice) < float(proved) + 1e-3
