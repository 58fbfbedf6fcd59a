"""The closed form of equal steps against the pooling of steps one by one, and against exact sums."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

from dpcalc.model.chain import Chain
from dpcalc.numerics.isotonic import allocate, remaining, spend
from dpcalc.theorems.one_pass.allocation import EqualSteps, describe, equal_steps


def _chain(r: Random, steps: int) -> Chain:
    def column(value: float) -> np.ndarray:
        return np.broadcast_to(np.float64(value), (steps,))

    factor = r.choice((1.0, 1.0 - 10.0 ** r.uniform(-9.0, -0.1)))
    shift = r.choice((0.0, 10.0 ** r.uniform(-4.0, 2.0)))
    return Chain(
        step_size=column(r.uniform(0.1, 2.0)), noise=column(r.uniform(0.1, 2.0)), contraction=column(factor),
        shift=column(shift), spend=None, path="",
    )  # fmt: skip


def _exact_cost(steps: EqualSteps, factor: float) -> Fraction:
    """The cost of one block, S^2/V, by its recursion."""
    carried, room, c = Fraction(steps.start), Fraction(0), Fraction(factor)
    for _ in range(steps.steps):
        carried, room = c * carried + Fraction(steps.shift), c * c * room + Fraction(steps.variance)
    return carried * carried / room


@pytest.mark.parametrize("seed", range(60))
def test_equal_steps_are_those_that_are_pooled_one_by_one(seed: int) -> None:
    r = Random(seed)
    chain = _chain(r, r.randint(2, 300))
    start, cap = r.choice((0.0, r.uniform(0.0, 5.0))), r.choice((None, 10.0 ** r.uniform(-3.0, 2.0)))
    steps, pooled = equal_steps(chain, start, cap), None
    assert chain.shift is not None
    pooled = allocate(chain.shift, chain.variance, chain.contraction, start=start, cap=cap)
    if steps is None:
        assert start == 0.0 == chain.shift[0]
        return
    assert steps.cost >= _exact_cost(steps, float(chain.contraction[0]))
    assert steps.cost == pytest.approx(pooled.cost, rel=1e-11)
    skipped = len(chain) - steps.steps
    shown = describe(steps, skipped, len(chain))["sampled"]
    spent = spend(pooled, chain.shift, chain.variance, chain.contraction)
    if skipped == pooled.start:
        left = remaining(spent, chain.shift, chain.contraction, start=pooled.start_value, skip=skipped)
        assert shown["steps"] == list(range(1, len(chain) + 1))
        assert shown["a"] == pytest.approx(spent.tolist(), rel=1e-9, abs=1e-12 * float(spent.max()))
        assert shown["z"] == pytest.approx(left.tolist(), abs=1e-9 * (start + float(spent.max()) + float(left.max())))


@pytest.mark.parametrize("change", [{"contraction": 1.01}, {"shift": None}, {"spend": 1.0}, {"one": 2.0}])
def test_other_steps_have_no_closed_form(change: dict[str, float | None]) -> None:
    columns = {name: np.broadcast_to(np.float64(1.0), (5,)) for name in ("step_size", "noise", "contraction", "shift")}
    if "one" in change:
        columns["shift"] = np.array([1.0, 1.0, 2.0, 1.0, 1.0])
    values = {name: None if v is None else np.broadcast_to(np.float64(v), (5,)) for name, v in change.items()}
    chain = Chain(**{**columns, "spend": None, "path": "", **{k: v for k, v in values.items() if k != "one"}})  # type: ignore[arg-type]
    assert equal_steps(chain, 1.0, None) is None
