"""Mechanisms with few outcomes, composed, chained and tuned by going through all outcomes."""

import itertools
import math
from collections.abc import Sequence

Law = Sequence[float]


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Return sup_S P(S) - e^epsilon Q(S), for an epsilon of either sign."""
    return math.fsum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))


def product(laws: Sequence[Law]) -> list[float]:
    """Return the law of independent outcomes."""
    return [math.prod(chosen) for chosen in itertools.product(*laws)]


def response(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Return the worst pair of (epsilon, delta)-DP: what says the secret, and randomised response."""
    w = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    p = [delta, (1.0 - delta) * w, (1.0 - delta) * (1.0 - w), 0.0]
    return p, p[::-1]


def renyi(p: Law, q: Law, order: float) -> float:
    """Return D_order(P || Q) for an order > 1."""
    logs = [order * math.log(a) + (1.0 - order) * math.log(b) for a, b in zip(p, q, strict=True)]
    return (max(logs) + math.log(math.fsum(math.exp(x - max(logs)) for x in logs))) / (order - 1.0)


def best_of(p: Law, generating: object) -> list[float]:
    """Return the law of the largest of K outcomes, ordered as listed; its last entry is K = 0."""
    law, below = [], 0.0
    for mass in p:
        law.append(generating(below + mass) - generating(below))  # type: ignore[operator]
        below += mass
    return [*law, generating(0.0)]  # type: ignore[operator]
