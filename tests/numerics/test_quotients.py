"""Quotients of products against fractions, from the smallest doubles to the largest."""

import math
import random
from fractions import Fraction

from dpcalc.numerics.floats import quotient_down, quotient_up

SMALLEST, LARGEST = 5e-324, 1.7976931348623157e308


def _exact(numerators: list[float], denominators: list[float]) -> Fraction:
    return math.prod(map(Fraction, numerators)) / Fraction(math.prod(map(Fraction, denominators)))


def test_rounded_to_each_side_and_close() -> None:
    r = random.Random(1)
    for _ in range(2000):
        above, below = ([10 ** r.uniform(-300, 300) for _ in range(r.randint(1, 4))] for _ in range(2))
        value, low, high = _exact(above, below), quotient_down(above, below), quotient_up(above, below)
        if value > Fraction(1e308):
            assert high >= 1e308, (above, below)
            continue
        assert Fraction(low) <= value, (above, below)
        assert value <= Fraction(high), (above, below)
        if 1e-300 < value < 1e300:
            assert high - low <= 1e-14 * high, (above, below)


def test_nothing_overflows_or_underflows_on_the_way() -> None:
    assert math.isclose(quotient_up([SMALLEST, LARGEST], [SMALLEST, LARGEST]), 1.0)
    assert math.isclose(quotient_down([LARGEST] * 3, [LARGEST] * 3), 1.0)
    assert quotient_up([LARGEST, LARGEST], []) == math.inf
    assert quotient_down([LARGEST, LARGEST], []) == LARGEST
    assert 0.0 < quotient_up([SMALLEST, SMALLEST], []) < 1e-300
    assert quotient_down([SMALLEST, SMALLEST], []) == 0.0
    assert quotient_up([0.0, LARGEST], [SMALLEST]) == 0.0
