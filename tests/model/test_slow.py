"""The largest share of a grid that a slow lower bound rules out, against a walk that evaluates every choice."""

import math
import random

import pytest

from dpcalc.engine.solving.attacks import _HALVINGS, _SHARES, _largest_ruled_out
from dpcalc.errors import NotApplicable


def walked(root: float) -> float | None:
    """Return the share by halvings, for a bound that rules out all below the root."""
    enough = 1.0
    for low in _SHARES:
        if low < root:
            break
        enough = low
    else:
        return None
    for _ in range(_HALVINGS if low < _SHARES[0] else 0):
        middle = math.sqrt(low * enough)
        low, enough = (middle, enough) if middle < root else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(300))
def test_few_evaluations_find_the_share_and_evaluate_it(seed: int) -> None:
    draw = random.Random(seed)
    root, power, bend = 10.0 ** draw.uniform(-2.3, 0.05), draw.uniform(0.5, 3.0), draw.uniform(-0.05, 0.05)
    asked: dict[float, float] = {}

    def excess(share: float) -> float:
        far = math.log(share / root)
        asked[share] = far * (power + bend * abs(far))
        return asked[share]

    expected = walked(root)
    if expected is None:
        with pytest.raises(NotApplicable):
            _largest_ruled_out(excess)
        return
    found = _largest_ruled_out(excess)
    assert found == expected
    assert asked[found] < 0.0
    assert len(asked) <= 6


@pytest.mark.parametrize("root", [0.0005, 0.02, 0.3, 0.95, 0.99, 2.0])
def test_a_bound_that_tells_only_the_sign_is_searched_by_halvings(root: float) -> None:
    def excess(share: float) -> float:
        return -math.inf if share < root else math.inf

    expected = walked(root)
    if expected is None:
        with pytest.raises(NotApplicable):
            _largest_ruled_out(excess)
    else:
        assert _largest_ruled_out(excess) == expected
