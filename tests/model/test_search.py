"""Searches: a guess, good or bad, changes no answer, and few evaluations find one."""

import math
from types import SimpleNamespace
from typing import Any

import pytest

from dpcalc.engine.solving.budget import _nudged
from dpcalc.engine.solving.search import CLOSE, Direction, by_secants, extreme_integer, near, roughly
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


@pytest.mark.parametrize("more_is_private", [True, False])
@pytest.mark.parametrize("power", [0.3, 1.0, 30.0])
@pytest.mark.parametrize("start", [1e-3, 1.9, 2.0, 2.02, 300.0])
@pytest.mark.parametrize("second", [1.01, 1.0, 0.7])
def test_from_a_near_value_few_steps_lead_to_one_that_meets_the_budget(
    more_is_private: bool, power: float, start: float, second: float
) -> None:
    root, asked = 2.0, []
    direction = Direction(more_is_private, low=1e-6, high=1e9)

    def excess(value: float) -> float:
        if value not in asked:
            asked.append(value)
        sign = 1.0 if more_is_private else -1.0
        return min(100.0, max(-100.0, power * sign * (math.log(root / value) + 0.1 * math.log(root / value) ** 3)))

    found = near(excess, direction, start, 1 << 30, lambda value: start * second)
    assert excess(found) <= 0.0
    assert abs(math.log(found / root)) <= 2.0 ** (30 - 52)
    assert len(asked) <= (8 if 1.5 < start < 2.5 and second > 0.9 else 40)


def test_a_step_in_the_excess_is_closed_in_on_by_brackets() -> None:
    def excess(value: float) -> float:
        return -1.0 if value >= 2.0 else 1.0

    found = near(excess, Direction(True), 1.9, 1 << 30, lambda value: 1.95)
    assert 2.0 <= found <= 2.0 * (1.0 + 2.0 ** (30 - 52))


@pytest.mark.parametrize("more_is_private", [True, False])
@pytest.mark.parametrize("width", [1e-9, 5e-7, 1e-5])
def test_secants_end_within_the_width_and_meet_the_budget(more_is_private: bool, width: float) -> None:
    sign = 1.0 if more_is_private else -1.0

    def excess(value: float) -> float:
        return sign * (math.log(2.0 / value) + 0.1 * math.log(2.0 / value) ** 3)

    direction = Direction(more_is_private, low=1e-6, high=1e9)
    found = near(excess, direction, 1.9, 1 << 30, lambda value: 1.95, width=width)
    assert excess(found) <= 0.0
    assert abs(math.log(found / 2.0)) <= width


def test_near_no_solution_none_is_found() -> None:
    with pytest.raises(Infeasible):
        near(lambda value: 1.0, Direction(True, low=1e-6, high=1e9), 2.0, 1 << 30, lambda value: 2.1)


@pytest.mark.parametrize("more_is_private", [True, False])
@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1.001, 1e-5), (0.7, -0.2), (-1.0, 0.0), (math.nan, 0.0)])
def test_a_search_that_begins_roughly_ends_where_it_would_without(
    more_is_private: bool, scale: float, offset: float
) -> None:
    """However wrong the rough values are; where they are about right, few exact ones are asked for."""
    direction, asked = Direction(more_is_private, low=1e-6, high=1e9), []

    def true(value: float) -> float:
        gap = math.log(2.0 / value)
        return (24.0 if more_is_private else -24.0) * (gap + 0.1 * gap**3)

    def excess(value: float) -> float:
        if value not in asked:
            asked.append(value)
        return true(value)

    found = near(excess, direction, 1.9, 1 << 30, lambda _: 1.97, lambda value: scale * true(value) + offset)
    assert excess(found) <= 0.0
    assert abs(math.log(found / 2.0)) <= 2.0 ** (30 - 52)
    assert len(asked) <= (2 if 0.0 <= offset < 1e-3 and scale > 0.9 else 8)


@pytest.mark.parametrize(("zero", "power", "sign"), [(471.3, 1.0, 1.0), (66698.7, 0.5, -1.0), (6.2e7, 2.0, 1.0)])
def test_secants_end_next_to_the_zero_of_a_monotone_function(zero: float, power: float, sign: float) -> None:
    found = by_secants(lambda x: sign * ((x / zero) ** power - 1.0), int(zero * 1.3), 1, 10**12, sign)
    assert abs(found - zero) <= 2.0


@pytest.mark.parametrize("solution", [300, 10**6 + 1, 1001015458, 10**15 - 7])
def test_a_large_number_is_found_exactly_from_a_guess_by_few_evaluations(solution: int) -> None:
    asked: list[int] = []

    def excess(value: int) -> float:
        asked.append(value)
        return 7.0 * math.log(value / (solution + 0.5)) + 0.3 * math.log(value / (solution + 0.5)) ** 2

    guess = by_secants(excess, round(0.9 * solution), 1, 10**15, 5.0, within=CLOSE)
    assert extreme_integer(excess, LESS, 1, 10**15, guess) == solution
    assert len(asked) < 60


def test_a_value_that_stays_above_the_budget_is_no_answer() -> None:
    def problem(epsilon: float) -> Any:
        guarantee = SimpleNamespace(epsilon=lambda log_delta: SimpleNamespace(value=epsilon))
        bound = SimpleNamespace(slow=False, lower=False)
        return SimpleNamespace(bound=bound, exact=False, direction=MORE, guarantee_at=lambda value: guarantee)

    assert _nudged(problem(1.0), 3.0, 1.0, -10.0)[0] == 3.0
    with pytest.raises(Infeasible):
        _nudged(problem(1.1), 3.0, 1.0, -10.0)
