"""The theorems on hidden iterates, from their formulas, with exact products and direct or enclosed sums."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb, arb_series, ctx, fmpq

from tests.oracles import adaptive, ball, root
from tests.oracles.gaussian import log_delta as gaussian_log_delta
from tests.oracles.gaussian import upper_tail

_DIRECT = 2000


def batch(n: int, i: int, b: int) -> tuple[int, int]:
    """(size of the batch of record i, steps from it to the last), by listing the batches' ends."""
    j = (i + b - 1) // b
    total = (n + b - 1) // b
    return (b if j < total else n - b * (total - 1)), total - j + 1


def pass_mu(n: int, i: int, b: int, s: Fraction, sigma: Fraction) -> arb:
    """Theorem 23 as mu: Delta/(b sigma sqrt k)."""
    size, k = batch(n, i, b)
    return adaptive(lambda: ball(s / (size * sigma)) / arb(k).sqrt())


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


def domain_mu(
    n: int, i: int, b: int, sigma: Fraction, eta: Fraction, beta: Fraction, m: Fraction, diameter: Fraction
) -> arb:
    """The bounded-domain restart right after the record's step (k >= 2)."""
    _, k = batch(n, i, b)
    return one_use_mu(diameter / (eta * sigma), contraction(eta, beta, m), k - 1, k - 1)


def scheduled_mu(
    step_size: Sequence[Fraction],
    noise: Sequence[Fraction],
    c: Sequence[Fraction],
    index: int,
    s: Fraction,
    sigma: Fraction,
) -> arb:
    """One use at step ``index``: (P_t eta_t Delta)^2/sum_{k>=t} P_k^2 eta_k^2 sigma_k^2 with exact products."""

    def value() -> arb:
        product, total = arb(1), arb(0)
        for j in range(len(step_size) - 1, index - 2, -1):
            total += (product * ball(step_size[j] * noise[j] * sigma)) ** 2
            if j >= index:
                product *= ball(c[j])
        return product * ball(step_size[index - 1] * s) / total.sqrt()

    return adaptive(value)


def used(n: int, i: int) -> Fraction:
    """Probability that a skipped prefix of 0..floor(n/2) records leaves record i in."""
    h = n // 2
    return Fraction(sum(1 for _ in range(min(i, h + 1))) if h < 100 else min(i, h + 1), h + 1)


def skip_log_delta(n: int, i: int, mu: Fraction, epsilon: Fraction) -> arb:
    """ln(p delta_G(epsilon; mu)) for an exact mu."""
    return adaptive(lambda: gaussian_log_delta(epsilon, mu) + ball(used(n, i)).log(), bits=80)


def skip_rdp(n: int, i: int, s: Fraction, sigma: Fraction, order: Fraction) -> arb:
    """ln(1 + p (e^((a-1) eps_t) - 1))/(a-1)."""
    full, p = pass_rdp(n, i, 1, s, sigma, order), used(n, i)

    def value() -> arb:
        if order == 1:
            return ball(p * full)
        return (ball(p) * ball((order - 1) * full).expm1()).log1p() / ball(order - 1)

    return adaptive(value)


def harmonic(n: int) -> arb:
    """H_n, directly or by the digamma function."""
    if n <= _DIRECT:
        return adaptive(lambda: ball(sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))))
    return adaptive(lambda: (arb(n) + 1).digamma() + arb.const_euler())


def sum_expm1_reciprocals(x: Fraction | arb, n: int) -> arb:
    """sum_{k<=n} (e^(x/k) - 1): direct, then Hurwitz zeta functions of the power series."""

    def value() -> arb:
        y = ball(x)
        total = arb(0)
        cut = min(n, 64 if y < 30 else int(float(y.upper()) * 2) if y < 5000 else 10**9)
        for k in range(1, cut + 1):
            term = (y / k).expm1()
            total += term
            if k > 1 and term * n < total * arb(2) ** -150:
                return total + (term * (n - k)).union(arb(0))
        if cut < n:
            power = arb(1)
            for j in range(1, 400):
                power *= y / j
                if j == 1:
                    part = (arb(n) + 1).digamma() - (arb(cut) + 1).digamma()
                else:
                    part = arb.zeta(arb(j), arb(cut) + 1) - arb.zeta(arb(j), arb(n) + 1)
                total += power * part
                # What is left is below a geometric series of ratio x/cut <= 1/2 that starts no higher than this.
                rest = power * y / (j + 1) * (cut + 1) / arb(cut + 1) ** (j + 1) * 4
                if rest < total * arb(2) ** -150:
                    return total + rest.union(arb(0))
        return total

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
    """sum_{k<=n} H(epsilon, r/sqrt k): direct, beyond by Euler-Maclaurin with a closed-form integral."""
    if n <= _DIRECT:
        return adaptive(lambda: _direct(epsilon, r, 1, n))
    return adaptive(lambda: _far(epsilon, r, n), bits=60)


def _one(epsilon: Fraction, r: Fraction, k: int) -> arb:
    mu = ball(r) / arb(k).sqrt()
    ratio = ball(epsilon / r) * arb(k).sqrt()
    return upper_tail(ratio - mu / 2) - ball(epsilon).exp() * upper_tail(ratio + mu / 2)


def _direct(epsilon: Fraction, r: Fraction, first: int, last: int) -> arb:
    total = arb(0)
    for k in range(first, last + 1):
        term = _one(epsilon, r, k)
        total += term
        if k > first and term * last < total * arb(2) ** -150:
            return total + (term * (last - k)).union(arb(0))
    return total


def _far(epsilon: Fraction, r: Fraction, n: int) -> arb:
    # Beyond the cut a step changes little: the transition at k = r^2/(2 eps) is wide there (width^2 = k^3/r^2).
    cut = 200
    middle = int(r * r / (2 * epsilon)) if epsilon > 0 else 0
    width = 1 + int(float(r * r) / (2 * float(epsilon) ** 1.5)) if epsilon > 0 else 0
    if epsilon > 0 and width < 64 and middle < 20000:
        cut = middle + 40 * width + 200
    if cut >= n:
        return _direct(epsilon, r, 1, n)
    head = _direct(epsilon, r, 1, cut)
    return head + _integral(epsilon, r, n) - _integral(epsilon, r, cut) + _ends(epsilon, r, n) - _ends(epsilon, r, cut)


def _integral(epsilon: Fraction, r: Fraction, k: int) -> arb:
    """An antiderivative of k -> H: k H minus that of k H', an inverse Gaussian integral."""
    e, mu, t = ball(epsilon), ball(r), arb(k)
    b = mu * mu / 8
    front = mu / (2 * (2 * arb.pi()).sqrt())
    if epsilon == 0:
        part = 2 * t.sqrt() * (-b / t).exp() - 2 * (arb.pi() * b).sqrt() * (b / t).sqrt().erfc()
        return t * _one(epsilon, r, k) + front * part
    a = e * e / (2 * mu * mu)
    low, high = (a * t).sqrt() - (b / t).sqrt(), (a * t).sqrt() + (b / t).sqrt()
    # e^(eps/2) is multiplied in, and constants dropped, so that no large numbers cancel at the far end.
    part = (arb.pi().sqrt() / (2 * a.sqrt())) * (-(low.erfc()) - e.exp() * high.erfc())
    return t * _one(epsilon, r, k) + front * part


def _ends(epsilon: Fraction, r: Fraction, k: int, terms: int = 24) -> arb:
    """f/2 + sum_j B_2j/(2j)! f^(2j-1) at k."""
    e, mu = ball(epsilon), ball(r)
    a, b = e * e / (2 * mu * mu), mu * mu / 8
    front = mu / (2 * (2 * arb.pi()).sqrt())
    before, ctx.cap = ctx.cap, 2 * terms
    try:
        t = arb_series([arb(k), 1])
        slope = -front * ((e / 2 - a * t - b / t).exp() * (t.log() * arb(-1.5)).exp())
        total = _one(epsilon, r, k) / 2
        factorial = arb(1)
        last = arb(0)
        for j in range(1, terms):
            # f^(2j-1) = (2j-2)! [t^(2j-2)] f'
            derivative = slope[2 * j - 2] * arb(2 * j - 2).gamma() * (2 * j - 2) if j > 1 else slope[0]
            factorial = arb(2 * j + 1).gamma()
            last = ball(_bernoulli(2 * j)) / factorial * derivative
            total += last
        return total + abs(last).union(-abs(last)) * 4
    finally:
        ctx.cap = before


def _bernoulli(j: int) -> Fraction:
    value = fmpq.bernoulli(j)
    return Fraction(int(value.p), int(value.q))


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
    return (2 * (ball(Fraction(5, 4)).log() - ball(log_delta))).sqrt()


def classic_holds(epsilon: Fraction, log_delta: Fraction) -> bool:
    """Whether the classic sigma for (epsilon, delta) is really (epsilon, delta)-DP."""
    factor = classic_factor(log_delta)
    mu = Fraction(int((ball(epsilon) / factor * 2**160).mid().floor().unique_fmpz()), 2**160)
    return not gaussian_log_delta(epsilon, mu) > ball(log_delta)


def classic_epsilon_max(log_delta: Fraction) -> tuple[Fraction, Fraction]:
    """A bracket of the largest epsilon at which the classic sigma holds."""
    return root(
        lambda e: arb(-1) if classic_holds(e, log_delta) else arb(1), Fraction(1, 1000), Fraction(1000), bits=60
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


def linear_loss_mu(n: int, epochs: int, s: Fraction, sigma: Fraction) -> arb:
    """A lower bound on any cyclic guarantee: linear losses without projection give exactly this Gaussian output."""
    return adaptive(lambda: ball(s / sigma) * ball(Fraction(epochs, n)).sqrt())
