"""The gap between the risk in the population and that on the data: high-probability bounds by uniform stability.

Losses lie in [0, B]. gamma_s bounds how much the loss at the output changes when a record is replaced. Every value is
rounded up. Proofs are in docs/method.md.
"""

from __future__ import annotations

import math

from dpcalc.numerics.floats import up


def chaining(log_chance: float) -> float:
    """Return the least over p >= 2 of gamma^(-1/p) Q_p, Q_p = sqrt((p - 1)/2) (2 Gamma(p/2 + 1))^(1/p), rounded up.

    Every p gives a bound, so an inexact minimum is only a little looser.

    >>> round(chaining(math.log(0.05)), 12)
    3.660459459916
    """

    def log_at(p: float) -> float:
        moment = (0.6931471805599453 + math.lgamma(0.5 * p + 1.0)) / p
        return -log_chance / p + 0.5 * math.log(0.5 * (p - 1.0)) + moment

    low, high = 2.0, 8.0 + 8.0 * -log_chance
    ratio = 0.6180339887498949
    for _ in range(90):
        c, d = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, d) if log_at(c) <= log_at(d) else (c, high)
    best = min(log_at(0.5 * (low + high)), log_at(2.0))
    return up(math.exp(best), 32.0 + 8.0 * abs(best)) if best < 709.0 else math.inf


def _levels(records: int) -> int:
    """Return the least whole number k with 2^k >= n."""
    return (records - 1).bit_length()


def gap_published(*, stability: float, loss_range: float, records: int, log_chance: float) -> float:
    """Return 2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), p = max(2, ln(1/chance)), rounded up.

    Bousquet, Klochkov and Zhivotovskiy (2020), Theorem 4 with its constants.

    Args:
        stability: gamma_s.
        loss_range: B.
        records: n.
        log_chance: ln of the probability that the bound fails.

    >>> round(gap_published(stability=1e-4, loss_range=2.0, records=10000, log_chance=math.log(0.05)), 12)
    0.763535414414
    """
    p = max(2.0, -log_chance)
    moved = 24.0 * math.sqrt(2.0) * p * stability * _levels(records)
    return up(2.0 * stability + math.e * (moved + 4.0 * loss_range * math.sqrt(p / records)), 32.0)


def gap_uniform(*, stability: float, loss_range: float, records: int, log_share: float) -> float:
    """Return 2 g + B sqrt(ln(1/gamma)/(2n)) + 2 g ceil(log2 n) min_p gamma^(-1/p) Q_p, rounded up.

    Args:
        stability: gamma_s.
        loss_range: B.
        records: n.
        log_share: ln gamma; the bound fails with probability at most 2 gamma.

    >>> round(gap_uniform(stability=1e-4, loss_range=2.0, records=10000, log_share=math.log(0.025)), 12)
    0.039431101163
    """
    mean = loss_range * math.sqrt(-log_share / (2.0 * records))
    return up(2.0 * stability + mean + 2.0 * stability * _levels(records) * chaining(log_share), 32.0)


def gap_by_index(
    *, gradient: float, use: float, drift: float, loss_range: float, records: int, steps: int, log_share: float
) -> float:
    """Return 2 G_1 + B sqrt(ln(1/gamma)/(2n)) + ceil(log2 n) min_p gamma^(-1/p) Q_p G_2, rounded up.

    The stability of record j is G Delta*(K_j), K_j the number of times that it was drawn:
    G_1 = G (b T/n + a sqrt(T) min(1, T/n)) and G_2 = (2 G/sqrt(n)) (b sqrt(S) + a sqrt(T min(n, T))), S = T + 2 C,
    C = v + sqrt(v (1 - 1/n) (1/gamma - 1)), v = T (T - 1)/(2 n). C bounds the number of pairs of steps that drew the
    same record, by Cantelli's inequality.

    Args:
        gradient, use, drift: G, b = 2 eta G and a.
        loss_range: B.
        records, steps: n and T.
        log_share: ln gamma; the bound fails with probability at most 3 gamma.

    >>> round(gap_by_index(gradient=2.0, use=0.004, drift=0.0, loss_range=4.0, records=10000, steps=10000,
    ...                    log_share=math.log(0.01)), 6)
    1.763822
    """
    n, t = float(records), float(steps)
    a = min(drift, use)
    pairs = t * (t - 1.0) / (2.0 * n)
    odds = math.exp(-log_share) - 1.0 if -log_share < 700.0 else math.inf
    most = t * (t - 1.0) / 2.0
    same = min(pairs + math.sqrt(pairs * (1.0 - 1.0 / n) * odds), most) if pairs < most else most
    average = gradient * (use * t / n + a * math.sqrt(t) * min(1.0, t / n))
    spread = 2.0 * gradient / math.sqrt(n) * (use * math.sqrt(t + 2.0 * same) + a * math.sqrt(t * min(n, t)))
    mean = loss_range * math.sqrt(-log_share / (2.0 * n))
    return up(2.0 * average + mean + chaining(log_share) * _levels(records) * spread, 64.0)
