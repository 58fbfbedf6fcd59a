"""The theorems on hidden iterates, from their formulas, with exact products.

Long sums are those of `dpcalc.certify`, which shares no code with what is tested and is itself tested term by term.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from dpcalc.certify.numerics import gaussian, sums
from tests.oracles import adaptive, ball, root
from tests.oracles.gaussian import log_delta as gaussian_log_delta
from tests.oracles.gaussian import upper_tail


def batch(n: int, i: int, b: int) -> tuple[int, int]:
    """(size of the batch of record i, steps from it to the last), by listing the batches' ends."""
    j = (i + b - 1) // b
    total = (n + b - 1) // b
    return (b if j < total else n - b * (total - 1)), total - j + 1


def pass_rdp(n: int, i: int, b: int, s: Fraction, sigma: Fraction, order: Fraction) -> Fraction:
    """Theorem 23 as RDP."""
    size, k = batch(n, i, b)
    return order * (s / (size * sigma)) ** 2 / (2 * k)


def contraction(eta: Fraction, beta: Fraction, m: Fraction) -> Fraction:
    """The Lipschitz factor of a gradient step."""
    return max(abs(1 - eta * m), abs(1 - eta * beta))


def one_use_mu(ratio: Fraction, c: Fraction, lag: int, steps: int) -> arb:
    """ratio c^lag / sqrt(1 + c^2 + ... + c^(2 (steps - 1)))."""

    def value() -> arb:
        if c == 1:
            return ball(ratio) / arb(steps).sqrt()
        square = ball(c * c)
        total = sum((square**j for j in range(steps)), arb(0)) if steps <= 64 else (1 - square**steps) / (1 - square)
        return ball(ratio) * ball(c) ** lag / total.sqrt()

    return adaptive(value)


def contraction_mu(
    n: int, i: int, b: int, s: Fraction, sigma: Fraction, eta: Fraction, beta: Fraction, m: Fraction
) -> arb:
    """One use under strong convexity."""
    size, k = batch(n, i, b)
    return one_use_mu(s / (size * sigma), contraction(eta, beta, m), k - 1, k)


def used(n: int, i: int) -> Fraction:
    """Probability that a skipped prefix of 0..floor(n/2) records leaves record i in."""
    h = n // 2
    return Fraction(sum(1 for _ in range(min(i, h + 1))) if h < 100 else min(i, h + 1), h + 1)


def skip_rdp(n: int, i: int, s: Fraction, sigma: Fraction, order: Fraction) -> arb:
    """ln(1 + p (e^((a-1) eps_t) - 1))/(a-1)."""
    full, p = pass_rdp(n, i, 1, s, sigma, order), used(n, i)

    def value() -> arb:
        if order == 1:
            return ball(p * full)
        return (ball(p) * ball((order - 1) * full).expm1()).log1p() / ball(order - 1)

    return adaptive(value)


def harmonic(n: int) -> arb:
    """H_n."""
    return adaptive(lambda: sums.harmonic(n))


def sum_expm1_reciprocals(x: Fraction | arb, n: int) -> arb:
    """sum_{k<=n} (e^(x/k) - 1)."""

    def value() -> arb:
        y = ball(x)
        if y > 1 << 40:  # the first term is all there is
            return y.expm1() + (n * (y / 2).exp()).union(arb(0))
        return sums.expm1_reciprocals(y, n)

    return adaptive(value)


def stop_rdp(n: int, i: int, s: Fraction, sigma: Fraction, order: Fraction) -> arb:
    """ln(1 + (1/n) sum_{k<=M} (e^(x/k) - 1))/(a-1)."""
    later = n + 1 - i
    if order == 1:
        h = harmonic(later)
        return adaptive(lambda: h * ball((s / sigma) ** 2 / (2 * n)), bits=80)
    x = order * (order - 1) * (s / sigma) ** 2 / 2
    total = sum_expm1_reciprocals(x, later)
    return adaptive(lambda: (total / n).log1p() / ball(order - 1), bits=80)


def stop_harmonic_rdp(n: int, i: int, s: Fraction, sigma: Fraction, order: Fraction) -> arb:
    """order Delta^2 H_M/(n sigma^2)."""
    h = harmonic(n + 1 - i)
    return adaptive(lambda: h * ball(order * (s / sigma) ** 2 / n), bits=80)


def stop_constant(n: int) -> arb:
    """C_n = n ln((1/n) sum_{k<=n} e^(1/k))."""
    total = sum_expm1_reciprocals(Fraction(1), n)
    return adaptive(lambda: n * (total / n).log1p(), bits=80)


def sum_hockey_sticks(epsilon: Fraction, r: Fraction, n: int) -> arb:
    """sum_{k<=n} H(epsilon, r/sqrt k)."""
    return adaptive(lambda: sums.hockey_sticks(ball(epsilon), ball(r), n), bits=60)


def each_hockey_stick(epsilon: Fraction, r: Fraction, n: int) -> arb:
    """The same, term by term."""

    def value() -> arb:
        roots = [arb(k).sqrt() for k in range(1, n + 1)]
        return sum((_one(ball(epsilon), ball(r) / root) for root in roots), arb(0))

    return adaptive(value)


def _one(epsilon: arb, mu: arb) -> arb:
    return upper_tail(epsilon / mu - mu / 2) - epsilon.exp() * upper_tail(epsilon / mu + mu / 2)


def log_sum_hockey_sticks(epsilon: Fraction, r: Fraction, n: int) -> arb:
    """ln of `sum_hockey_sticks`, wherever it lies."""
    if epsilon / r - r / 2 > 200:
        # Every later term is below e^-20000 of the first.
        first = gaussian_log_delta(epsilon, r)
        return first.union(first + (arb(-10000)).exp())
    return sum_hockey_sticks(epsilon, r, n).log()


def stop_log_delta(n: int, i: int, s: Fraction, sigma: Fraction, epsilon: Fraction) -> arb:
    """ln of (1/n) sum_{j<=M} delta_G(epsilon; Delta/(sigma sqrt j)); good where delta is not within 1e-15 of 1."""
    return log_sum_hockey_sticks(epsilon, s / sigma, n + 1 - i) - arb(n).log()


def classic_factor(log_delta: Fraction) -> arb:
    """sqrt(2 ln(1.25/delta))."""
    return gaussian.classic_factor(ball(log_delta))


def classic_epsilon_max(log_delta: Fraction) -> tuple[Fraction, Fraction]:
    """A bracket of the largest epsilon at which the classic sigma holds."""
    return root(
        lambda e: arb(-1) if gaussian.classic_holds(ball(e), ball(log_delta)) else arb(1),
        Fraction(1, 1000),
        Fraction(1000),
        bits=60,
    )


def cyclic_uses(n: int, i: int, epochs: int) -> Fraction:
    """(E-1)/n + 1/(n-i+1)."""
    return Fraction(epochs - 1, n) + Fraction(1, n - i + 1)


def cyclic_mu(n: int, i: int, epochs: int, s: Fraction, sigma: Fraction) -> arb:
    """Theorem 35 for E passes, as mu."""
    return adaptive(lambda: ball(s / sigma) * ball(cyclic_uses(n, i, epochs)).sqrt())


def cyclic_rdp(n: int, i: int, epochs: int, s: Fraction, sigma: Fraction, order: Fraction) -> arb:
    """Theorem 35 for E passes, as RDP."""
    return adaptive(lambda: ball(order * (s / sigma) ** 2 / 2 * cyclic_uses(n, i, epochs)))
