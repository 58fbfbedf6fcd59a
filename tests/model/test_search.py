"""Searches for whole numbers: a guess, good or bad, changes no answer, and few evaluations find one."""

from __future__ import annotations

import math

import pytest

from dpcalc.engine.search import Direction, extreme_integer, roughly
from dpcalc.errors import Infeasible

LESS, MORE = Direction(False, integer=True), Direction(True, integer=True)


@pytest.mark.parametrize("direction", [LESS, MORE])
@pytest.mark.parametrize("last", [0, 1, 2, 7, 399, 998, 999, 1000])
def test_a_guess_changes_no_answer(direction: Direction, last: int) -> None:
    def excess(value: int) -> float:
        return (value - last - 0.5) * (-1.0 if direction.more_is_private else 1.0)

    expected = last + 1 if direction.more_is_private else last
    for guess in (None, 1, 2, 6, 399, 400, 1000, 5000):
        if 1 <= expected <= 1000:
            assert extreme_integer(excess, direction, 1, 1000, guess) == expected
        else:
            with pytest.raises(Infeasible):
                extreme_integer(excess, direction, 1, 1000, guess)


@pytest.mark.parametrize("root", [1.5, 3.2, 1e3, 123456.7, 999998.5])
@pytest.mark.parametrize("power", [-1.0, 0.3, 1.0, 40.0])
def test_a_guess_takes_few_evaluations(root: float, power: float) -> None:
    asked = []

    def excess(value: int) -> float:
        asked.append(value)
        return min(100.0, max(-100.0, (value**power - root**power) * math.copysign(1.0, power)))

    found = roughly(excess, 1, 10**6, 0.0)
    assert found is not None
    assert found <= root < found + 1
    assert len(asked) <= 32


def test_no_guess_where_no_value_meets_the_budget() -> None:
    assert roughly(lambda value: 1.0, 1, 10**6, 0.1) is None
