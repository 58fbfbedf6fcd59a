"""Bracketed inversion: the returned point satisfies the condition and its neighbour does not."""

import math
from collections.abc import Callable

import pytest

from dpcalc.errors import NotConverged
from dpcalc.numerics.floats import from_ordinal, ordinal
from dpcalc.numerics.roots import greatest, least
from tests.oracles import draws

SHAPES: dict[str, Callable[[float, float], float]] = {
    "linear": lambda x, root: x - root,
    "step": lambda x, root: 1.0 if x > root else -1.0,
    "cubic": lambda x, root: math.copysign(max(min(abs(x - root), 1e100) ** 3, 5e-324), x - root) if x != root else 0.0,
    "flat": lambda x, root: math.copysign(min(abs(x - root), 1e-300), x - root),
    "log": lambda x, root: math.log(max(x, 5e-324)) - math.log(root),
    "steep": lambda x, root: math.expm1(min((x - root) / root, 700.0)),
    "infinite": lambda x, root: math.inf if x > root else -math.inf,
    "huge": lambda x, root: 1e308 if x > root else -1e-308,
    "staircase": lambda x, root: float(ordinal(x) // 1000 - ordinal(root) // 1000),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_both_searches_end_beside_the_root(shape: str) -> None:
    function = SHAPES[shape]
    for r in draws(f"roots {shape}", 150, cost=20):
        root = 10.0 ** r.uniform(*r.choice(((-300, 300), (-3, 3), (-320, -300))))
        low, high = r.choice(((0.0, 1e305), (root / 16.0, root * 16.0), (0.0, root * 1.0000001 + 1e-321)))
        evaluated: list[float] = []

        def up(x: float, root: float = root, evaluated: list[float] = evaluated) -> float:
            evaluated.append(x)
            return function(x, root)

        x = greatest(up, low, high)
        assert function(x, root) <= 0.0, (shape, root, low, high)
        assert x == high or function(math.nextafter(x, math.inf), root) > 0.0, (shape, root, low, high)
        y = least(lambda t, root=root: -function(t, root), low, high)
        assert -function(y, root) <= 0.0, (shape, root, low, high)
        assert y == low or -function(math.nextafter(y, 0.0), root) > 0.0, (shape, root, low, high)
        assert len(evaluated) <= 300, (shape, root, low, high)


def test_ends_of_the_bracket_may_be_the_answer() -> None:
    assert least(lambda x: -1.0, 2.0, 3.0) == 2.0
    assert greatest(lambda x: -1.0, 2.0, 3.0) == 3.0
    assert least(lambda x: 0.0 if x == 3.0 else 1.0, 2.0, 3.0) == 3.0
    assert greatest(lambda x: 0.0 if x == 2.0 else 1.0, 2.0, 3.0) == 2.0


@pytest.mark.parametrize("search", [least, greatest])
def test_no_solution_is_an_error(search: Callable[..., float]) -> None:
    with pytest.raises(NotConverged, match="no solution"):
        search(lambda x: 1.0, 0.0, 1.0)


@pytest.mark.parametrize("search", [least, greatest])
def test_nan_is_an_error(search: Callable[..., float]) -> None:
    with pytest.raises(NotConverged):
        search(lambda x: math.nan, 0.0, 1.0)
    with pytest.raises(NotConverged):
        search(lambda x: math.nan if 0.0 < x < 1.0 else (x - 0.5) * (1.0 if search is greatest else -1.0), 0.0, 1.0)


def test_wider_brackets_stop_earlier_on_the_safe_side() -> None:
    for r in draws("ulps", 50, cost=50):
        root, ulps = 10.0 ** r.uniform(-5, 5), 1 << r.randint(0, 30)
        x = least(lambda t, root=root: root - t, 0.0, 1e9, ulps=ulps)
        assert root <= x
        assert ordinal(x) - ordinal(root) <= ulps


def test_ordinals() -> None:
    assert ordinal(0.0) == 0
    assert ordinal(5e-324) == 1
    for r in draws("ordinal", 100, cost=50):
        x = 10.0 ** r.uniform(-320, 308)
        assert from_ordinal(ordinal(x)) == x
        assert from_ordinal(ordinal(x) + 1) == math.nextafter(x, math.inf)
