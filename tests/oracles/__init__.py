"""Slow, independent evaluations in ball arithmetic: every value is a rigorous enclosure, good to 100 bits or more.

RunInputs are exact rationals (`exact` for a double, `typed` for the shortest decimal that denotes it). Nothing here
imports the package under test.
"""

import math
import os
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from flint import arb, ctx, fmpq

from tests.spending import random_case

BITS = 100
_LIMIT = 1 << 17
ctx.prec = 256


def exact(x: Any) -> Fraction:
    """The rational that a double is."""
    return Fraction(x)


def typed(x: Any) -> Fraction:
    """The rational that the shortest decimal of a double denotes: what its user meant."""
    return Fraction(repr(x)) if isinstance(x, float) else Fraction(x)


READINGS = (exact, typed)


def ball(q: Any) -> arb:
    """A rational as a ball at the working precision."""
    if isinstance(q, arb):
        return q
    q = Fraction(q)
    return arb(fmpq(q.numerator, q.denominator))


def adaptive(function: Callable[[], arb], bits: int = BITS) -> arb:
    """Evaluate at growing precision until the ball is relatively small."""
    before = ctx.prec
    try:
        prec = 192
        while prec < _LIMIT:
            ctx.prec = prec
            value = function()
            if value.is_zero() or (value.is_finite() and value.rel_accuracy_bits() >= bits):
                return value
            prec *= 2
    finally:
        ctx.prec = before
    raise ArithmeticError("the oracle needs more precision than it may use")


def root(
    function: Callable[[Fraction], arb], low: Fraction, high: Fraction, bits: int = 90
) -> tuple[Fraction, Fraction]:
    """A relatively tiny bracket of the sign change of a monotone function, by bisection."""
    sign = function(high) > 0
    while high - low > low / 2**bits and high > 0:
        wide = low > 0 and high > 4 * low
        middle = Fraction(2) ** round((_log2(low) + _log2(high)) / 2) if wide else (low + high) / 2
        if not low < middle < high:
            middle = (low + high) / 2
        if bool(function(middle) > 0) == bool(sign):
            high = middle
        else:
            low = middle
    return low, high


def _log2(q: Fraction) -> float:
    return float(q.numerator.bit_length() - q.denominator.bit_length())


FULL, MANY, FEW = 20000, 4000, 1000
"""DPCALC_TEST_CASES with which a test runs all its random cases; of a campaign; and of all else."""


def cases(default: int, cost: int = 1, least: int = 2) -> int:
    """Return how many random cases a test runs: DPCALC_TEST_CASES, shared out by how costly one case is.

    Of `FULL` it is at most ``default``, of more or less in proportion, so that no test takes over a campaign; but not
    fewer than four, or than ``least`` in the default tier: a test which asks that some case is answered needs more.
    """
    chosen = int(os.environ.get("DPCALC_TEST_CASES") or FEW)
    least = min(default, 4 if chosen > FEW else least)
    return min(max(2 * least, chosen // cost), max(math.ceil(default * chosen / FULL), least))


def draws(seed: str, default: int, cost: int = 1, least: int = 2) -> Iterator[random.Random]:
    """One seeded generator, as often as there are cases."""
    generator = random.Random(seed)
    for _ in range(cases(default, cost, least)):
        with random_case():
            yield generator


def log_uniform(r: random.Random, low: float, high: float) -> float:
    """A double whose logarithm is uniform, sometimes with few digits, as people type them."""
    x = math.exp(r.uniform(math.log(low), math.log(high)))
    short = float(f"{x:.{r.randint(0, 3)}e}")
    return short if r.random() < 0.5 and low <= short <= high else min(max(x, low), high)


def whole(r: random.Random, low: int, high: int) -> int:
    """A whole number, log-uniform, with the ends drawn more often."""
    if r.random() < 0.1:
        return r.choice((low, high))
    return min(max(round(math.exp(r.uniform(math.log(low), math.log(high)))), low), high)


def position(r: random.Random, n: int) -> int:
    """An index in 1..n: the ends, near the end, or anywhere."""
    kind = r.randrange(5)
    if kind < 2:
        return (1, n)[kind]
    return max(1, n - whole(r, 1, n) + 1) if kind < 4 else whole(r, 1, n)


def not_below(found: float, value: arb, what: str) -> None:
    """``found`` may be promised as an upper bound on ``value``."""
    assert not math.isnan(found), f"nan: {what}"
    if math.isinf(found):
        assert found > 0, what
        return
    assert not ball(found) < value, (
        f"{what} = {found!r} is below {value.str(25, radius=False)} by {excess(found, value):.3g}"
    )


def tight(found: float, value: arb, what: str, relative: float = 1e-12, absolute: float = 0.0) -> None:
    """``found`` is not needlessly above ``value``."""
    # Four of the smallest doubles: among subnormal numbers a relative error means nothing.
    room = abs(value) * ball(relative) + ball(absolute) + ball(Fraction(1, 2**1072))
    assert math.isfinite(found), f"not finite: {what}"
    assert not abs(ball(found) - value) > room, (
        f"{what} = {found!r} is off {value.str(25, radius=False)} by {excess(found, value):.3g}"
    )


def excess(found: float, value: arb) -> float:
    """(found - value)/|value|, as a float for messages."""
    return float((ball(found) - value) / abs(value)) if not value.is_zero() else math.inf


def call(function: Any, **arguments: Any) -> str:
    """A one-line reproducer."""
    inside = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{function.__module__}.{function.__name__}({inside})"
