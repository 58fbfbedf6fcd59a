"""The optimal allocation against independent oracles: exact enumeration, 50-digit pooling, closed forms."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcalc.numerics.isotonic import Allocation, allocate, cost_of, remaining, spend
from tests.oracles import cases

CASES = json.loads((Path(__file__).parents[1] / "reference" / "iteration.json").read_text())
TIGHT = 1e-13
DIGITS = 50


# --- oracles ------------------------------------------------------------------------------------------------


def spends_of_block(z: Any, s: list[Any], v: list[Any], c: list[Any]) -> tuple[Any, list[Any]] | None:
    """Cost and spends of one block that spends z and all its inflow at constant slope; None if infeasible."""
    carried = [math.prod(c[t + 1 :], start=Fraction(1)) for t in range(len(s))]
    total = sum(p * x for p, x in zip(carried, s, strict=True)) + math.prod(c, start=Fraction(1)) * z
    room = sum(p * p * x for p, x in zip(carried, v, strict=True))
    if room == 0 < total:
        return None
    spent = [total / room * p * x if room else Fraction(0) for p, x in zip(carried, v, strict=True)]
    for a, s_t, c_t in zip(spent, s, c, strict=True):
        z = c_t * z + s_t - a
        if z < 0:
            return None
    return (total * total / room if room else Fraction(0)), spent


def exact_suffix(s: list[Any], v: list[Any], c: list[Any], z: Any) -> Any:
    """Least cost over all partitions into feasible blocks, or None if every one is infinite."""
    best = None
    for cuts in itertools.product((False, True), repeat=len(s) - 1):
        bounds = [0, *(t + 1 for t, cut in enumerate(cuts) if cut), len(s)]
        cost = Fraction(0)
        for lo, hi in itertools.pairwise(bounds):
            block = spends_of_block(z if lo == 0 else Fraction(0), s[lo:hi], v[lo:hi], c[lo:hi])
            if block is None:
                break
            cost += block[0]
        else:
            best = cost if best is None or cost < best else best
    return best


def exact(s: Any, v: Any, c: Any, start: float = 0.0, cap: float | None = None) -> Any:
    columns = [[Fraction(x) for x in np.asarray(column).tolist()] for column in (s, v, c)]
    costs = [exact_suffix(*columns, Fraction(start))]
    if cap is not None:
        costs += [exact_suffix(*(x[tau:] for x in columns), Fraction(cap)) for tau in range(1, len(s))]
    return min((x for x in costs if x is not None), default=None)


def pooled(s: Any, v: Any, c: Any, start: float = 0.0) -> Any:
    """Left-to-right pooling in 50-digit arithmetic of unbounded exponent."""
    blocks: list[tuple[Any, Any, Any]] = [(mpmath.mpf(start), mpmath.mpf(0), mpmath.mpf(1))] if start else []
    for step in zip(*(np.asarray(x).tolist() for x in (s, v, c)), strict=True):
        total, room, product = map(mpmath.mpf, step)
        while blocks and blocks[-1][0] * room >= product * total * blocks[-1][1]:
            left = blocks.pop()
            total, room = product * left[0] + total, product**2 * left[1] + room
            product *= left[2]
        blocks.append((total, room, product))
    if any(room == 0 < total for total, room, _ in blocks):
        return mpmath.inf
    return mpmath.fsum(total**2 / room for total, room, _ in blocks if total)


def pooled_with_cap(s: Any, v: Any, c: Any, start: float, cap: float) -> Any:
    return min(pooled(s, v, c, start), *(pooled(s[tau:], v[tau:], c[tau:], cap) for tau in range(1, len(s))))


def assert_just_above(cost: float, truth: Any) -> None:
    assert mpmath.mpf(cost) >= truth * (1 - mpmath.mpf(10) ** (5 - DIGITS)), f"{cost} < {truth}"
    assert cost <= truth * (1 + mpmath.mpf(TIGHT)), f"{cost} >> {truth}"


def arrays(*columns: Any) -> tuple[np.ndarray, ...]:
    return tuple(np.array(column, dtype=float) for column in columns)


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(DIGITS):
        yield


# --- exact enumeration --------------------------------------------------------------------------------------

CARRIES = {
    "unit": (1.0,),
    "contracting": (0.5, 0.9, 0.999, 1.0),
    "mixed": (0.0, 0.3, 1.0, 1.7, 3.0),
    "tiny": (1e-300, 1.0, 1e-160, 1e200),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", CARRIES)
def test_exact_enumeration(kind: str, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if wide:
        monkeypatch.setattr("dpcalc.numerics.isotonic.pooling.plain_floor", lambda *_: None)
    rng = np.random.default_rng(len(kind))
    for trial in range(cases(600)):
        size = int(rng.integers(1, 7))
        s = rng.choice([0.0, 0.0, 1.0, rng.random(), 5 * rng.random(), 1e-3], size)
        v = rng.choice([0.0, 1.0, rng.random(), 4.0, 1e-4], size, p=[0.1, 0.3, 0.3, 0.2, 0.1])
        c = rng.choice(CARRIES[kind], size)
        start = float(rng.choice([0.0, 0.7, 3.0]))
        cap = [None, 0.0, 0.25, 1.5, 20.0][trial % 5]
        truth = exact(s, v, c, start, cap)
        allocation = allocate(s, v, c, start=start, cap=cap)
        if truth is None:
            assert allocation.cost == math.inf
            continue
        if truth > Fraction(1e308) or 0 < truth < Fraction(1e-300):
            assert Fraction(min(allocation.cost, 1e308)) >= min(truth, Fraction(1e308))
            continue
        assert Fraction(allocation.cost) >= truth, (s, v, c, start, cap)
        assert Fraction(allocation.cost) <= truth * (1 + Fraction(TIGHT)), (s, v, c, start, cap)


def test_near_ties_never_fall_below() -> None:
    """Slopes equal up to a few units in the last place, where pooling decisions are decided by rounding."""
    rng = np.random.default_rng(7)
    for _ in range(200):
        size = int(rng.integers(2, 7))
        v, c = rng.random(size) + 0.1, rng.choice([1.0, 1 - 2.0**-30, 0.7], size)
        after = np.append(np.cumprod(c[::-1])[::-1][1:], 1.0)
        s = v * after * 0.3 * (1 + rng.integers(-3, 4, size) * 2.0**-52)
        truth = exact(s, v, c)
        assert truth <= Fraction(allocate(s, v, c).cost) <= truth * (1 + Fraction(TIGHT))


# --- recorded cases -----------------------------------------------------------------------------------------


def recorded(quantity: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["quantity"] == quantity]


def floats(text: list[str]) -> np.ndarray:
    return np.array([float(x) for x in text])


@pytest.mark.parametrize("case", recorded("alloc_cost"))
def test_recorded_allocation(case: dict[str, Any]) -> None:
    s, v, c = (floats(case["inputs"][name]) for name in "svc")
    start = float(case["inputs"]["z0"])
    allocation = allocate(s, v, c, start=start)
    # The record is for decimal inputs: up to a few units in the last place from those of the doubles.
    assert allocation.cost == pytest.approx(float(case["value"]), rel=1e-13)
    assert_just_above(allocation.cost, pooled(s, v, c, start))
    spent = spend(allocation, s, v, c)
    assert spent == pytest.approx(floats(case["arrays"]["a"]), rel=1e-13)
    left = remaining(spent, s, c, start=start)
    assert left == pytest.approx(floats(case["arrays"]["z"]), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("case", recorded("alloc_cost_domain"))
def test_recorded_cap(case: dict[str, Any]) -> None:
    s, v, c = (floats(case["inputs"][name]) for name in "svc")
    allocation = allocate(s, v, c, cap=float(case["inputs"]["D"]))
    assert allocation.cost == pytest.approx(float(case["value"]), rel=1e-13)
    assert allocation.start == int(case["tau"])
    assert allocation.start_value == float(case["inputs"]["D"])


def test_all_recorded_cases_are_there() -> None:
    assert len(recorded("alloc_cost")) == 8
    assert len(recorded("alloc_cost_domain")) == 3


# --- fifty digits -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_random_runs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 2000
    s = rng.random(size) * (rng.random(size) < [1.0, 0.5, 0.01][seed % 3])
    v = rng.random(size) ** 2 + 1e-6
    c = 1 - [1e-4, 0.1, -1e-3][seed % 3] * rng.random(size)
    start = float(seed)
    assert_just_above(allocate(s, v, c, start=start).cost, pooled(s, v, c, start))


@pytest.mark.parametrize("seed", [2, 3, *(pytest.param(s, marks=pytest.mark.campaign) for s in (0, 1, 4, 5, 6, 7))])
def test_random_runs_with_cap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 80
    s = rng.random(size) * (rng.random(size) < [1.0, 0.2][seed % 2])
    v = rng.random(size) + 0.1
    c = 1 - [0.0, 1e-3, 0.3, -0.05][seed % 4] * rng.random(size)
    for cap in (0.0, 0.1, 1.0, 4.0, 30.0):
        allocation = allocate(s, v, c, start=2.0, cap=cap)
        assert_just_above(allocation.cost, pooled_with_cap(s, v, c, 2.0, cap))


@pytest.mark.parametrize("size", [100, pytest.param(300, marks=pytest.mark.campaign)])
@pytest.mark.parametrize("shape", ["rising", "falling"])
def test_cap_on_a_hull_of_many_blocks(shape: str, size: int) -> None:
    rate = np.sqrt(np.arange(1.0, size + 1))
    s = 1 / rate if shape == "rising" else rate
    v, c = s * s, np.ones(size)
    for cap in (0.5, 3.0, 12.0):
        assert_just_above(allocate(s, v, c, cap=cap).cost, pooled_with_cap(s, v, c, 0.0, cap))


# --- extremes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("s", "v", "c", "start"),
    [
        ([1.0] * 9, [1.0] * 9, [1e-300] * 9, 5.0),
        ([1.0] + [0.0] * 4999, [1.0] * 5000, [2.0] * 5000, 0.0),
        ([1.0] * 5000, [1.0] * 5000, [2.0] * 5000, 3.0),
        ([1.0] + [0.0] * 2999 + [1.0], [1.0] * 3001, [0.25] * 3001, 0.0),
        ([1.0, 0.0, 0.0, 1.0] * 500, [1.0, 0.0] * 999 + [0.0, 2.0], [2.0, 0.5, 1e-9, 1e9] * 500, 0.1),
        ([1e250, 0.0, 3e249], [1e250, 1e251, 3e250], [1.0, 0.9, 0.8], 1e249),
        ([1e-150, 0.0, 3e-149], [1e-250, 1e-251, 3e-250], [1.0, 0.9, 0.8], 1e-149),
        ([1e-250, 1e-200, 1e-270], [1e-250, 1e-280, 1e-300], [0.9, 0.9, 0.9], 0.0),
        ([1e-300, 1.0, 1e-200], [1e-300, 1e300, 1.0], [1e200, 1e-200, 1.0], 1e-100),
        ([5e-324, 5e-324], [5e-324, 5e-324], [1.0, 1.0], 0.0),
        ([1e-310, 0.0, 2e-300], [0.0, 1e-310, 1e-305], [1.0, 1.0, 1.0], 0.0),
        ([2.0], [3.0], [0.1], 4.0),
        ([0.0], [0.0], [1.0], 0.0),
    ],
)
def test_extreme_ranges(s: list[float], v: list[float], c: list[float], start: float) -> None:
    truth = pooled(s, v, c, start)
    cost = allocate(*arrays(s, v, c), start=start).cost
    if truth > 1.7e308:
        assert cost == math.inf
    elif 0 < truth < 1e-300:
        assert truth <= mpmath.mpf(cost) <= truth * (1 + mpmath.mpf(TIGHT)) + len(s) * 1e-322
    else:
        assert_just_above(cost, truth)


def test_surviving_nothing_costs_the_smallest_double() -> None:
    s, v, c = arrays([1.0] + [0.0] * 5000, [1.0] * 5001, [0.5] * 5001)
    assert 0 < allocate(s, v, c).cost < 1e-320


def test_infinite_costs() -> None:
    one = np.ones(3)
    last_weightless = np.array([1.0, 1.0, 0.0])
    assert allocate(one, last_weightless, one).cost == math.inf
    assert allocate(one, last_weightless, one, cap=0.5).cost == math.inf
    assert allocate(one, 0 * one, one).cost == math.inf
    assert allocate(0 * one, 0 * one, one).cost == 0
    assert allocate(0 * one, 0 * one, one, start=1.0).cost == math.inf
    stuck = allocate(one, last_weightless, one)
    assert remaining(spend(stuck, one, last_weightless, one), one, one)[-1] == 0
    assert cost_of(spend(stuck, one, last_weightless, one), last_weightless) == math.inf


def test_zero_cap_discards_all_but_the_last_inflow() -> None:
    s, v, c = arrays([3.0, 2.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0])
    allocation = allocate(s, v, c, cap=0.0)
    assert (allocation.cost, allocation.start) == (0.0, 2)
    assert allocate(0 * s, v, c, cap=0.0).start == 0


def test_a_useless_cap_discards_nothing() -> None:
    s, v, c = arrays([1.0] * 20, [1.0] * 20, [0.5] * 20)
    free, capped = allocate(s, v, c), allocate(s, v, c, cap=2.0)
    assert capped.start == 0
    assert capped.cost == free.cost


def test_zero_carry_forgets() -> None:
    s, v, c = arrays([9.0, 1.0, 5.0, 0.0], [1.0] * 4, [1.0, 1.0, 0.0, 1.0])
    allocation = allocate(s, v, c, start=7.0)
    assert allocation.cost == pytest.approx(12.5, rel=1e-14)
    assert spend(allocation, s, v, c).tolist() == [0.0, 0.0, 2.5, 2.5]


# --- the allocation itself ----------------------------------------------------------------------------------


def assert_consistent(allocation: Allocation, s: np.ndarray, v: np.ndarray, c: np.ndarray) -> None:
    """Its spends are feasible up to rounding, cost what it says, and leave nothing where a block ends."""
    spent = spend(allocation, s, v, c)
    left = remaining(spent, s, c, start=allocation.start_value, skip=allocation.start)
    level = max(float(left.max()), float(s.max()), allocation.start_value)
    assert (spent[: allocation.start] == 0).all()
    assert (spent >= 0).all()
    assert left.min() >= -1e-12 * level
    assert np.abs(left[allocation.block_ends - 1]).max() <= 1e-12 * level
    assert cost_of(spent, v) == pytest.approx(allocation.cost, rel=1e-11)
    assert allocation.block_ends[-1] == len(s)
    assert (np.diff(allocation.block_ends, prepend=allocation.start) > 0).all()
    assert math.fsum(allocation.block_costs) <= allocation.cost


@pytest.mark.parametrize("cap", [None, 0.5, 3.0])
@pytest.mark.parametrize("density", [1.0, 0.02])
def test_spends_are_feasible(cap: float | None, density: float) -> None:
    rng = np.random.default_rng(3)
    size = 3000
    s = rng.random(size) * (rng.random(size) < density)
    s[-1] = 0.3
    v, c = rng.random(size) * (rng.random(size) < 0.9), 1 - 0.01 * rng.random(size)
    v[-1] = 1.0
    assert_consistent(allocate(s, v, c, start=1.0, cap=cap), s, v, c)


@pytest.mark.campaign
@pytest.mark.parametrize("size", [80_000, 150_000])
def test_long_blocks_span_the_pieces(size: int) -> None:
    """Blocks longer than one tree, with carry factors that grow and shrink by turns."""
    s, v = np.zeros(size), np.ones(size)
    s[[0, 40_000, 70_000]] = 1.0, 2.0, 0.01
    c = np.where(np.arange(size) % 7, 1.0001, 0.9994)
    allocation = allocate(s, v, c)
    assert_just_above(allocation.cost, pooled(s, v, c))
    assert_consistent(allocation, s, v, c)


def test_plain_and_wide_numbers_choose_the_same_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    for cap in (None, 0.7, 40.0):
        s, v, c = rng.random(4000), rng.random(4000) + 1e-3, 1 - 1e-3 * rng.random(4000)
        plain = allocate(s, v, c, start=0.3, cap=cap)
        with monkeypatch.context() as patch:
            patch.setattr("dpcalc.numerics.isotonic.pooling.plain_floor", lambda *_: None)
            wide = allocate(s, v, c, start=0.3, cap=cap)
        assert plain.start == wide.start
        assert plain.block_ends.tolist() == wide.block_ends.tolist()
        assert plain.cost == wide.cost


# --- cost_of ------------------------------------------------------------------------------------------------


def test_cost_of_is_an_upper_bound() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        a, v = rng.random(40) * 10.0 ** rng.integers(-100, 100, 40), 10.0 ** rng.integers(-30, 30, 40)
        truth = sum(Fraction(x) ** 2 / Fraction(y) for x, y in zip(a.tolist(), v.tolist(), strict=True))
        assert truth <= Fraction(cost_of(a, v)) <= truth * (1 + Fraction(1e-14))


def test_cost_of_conventions() -> None:
    assert cost_of(*arrays([0.0, 1.0], [0.0, 4.0])) == pytest.approx(0.25, rel=1e-14)
    assert cost_of(*arrays([1e-200], [0.0])) == math.inf
    assert cost_of(*arrays([1e200], [1.0])) == math.inf
    assert cost_of(*arrays([1e-200], [1.0])) > 0
    assert cost_of(*arrays([0.0], [0.0])) == 0


# --- monotonicity -------------------------------------------------------------------------------------------

RUNS = st.lists(
    st.tuples(
        st.floats(0, 10, allow_subnormal=False),
        st.floats(1e-3, 10),
        st.one_of(st.just(1.0), st.floats(0, 2, allow_subnormal=False)),
        st.floats(0, 3, allow_subnormal=False),
    ),
    min_size=1,
    max_size=12,
)
LEVELS = st.floats(0, 20, allow_subnormal=False)


def at_most(smaller: float, larger: float) -> bool:
    return smaller <= larger * (1 + 2 * TIGHT) + 1e-320


@settings(max_examples=150, deadline=None)
@given(RUNS, LEVELS, LEVELS, LEVELS)
def test_monotone(run: list[tuple[float, ...]], start: float, cap: float, more: float) -> None:
    s, v, c, extra = arrays(*zip(*run, strict=True))
    base = allocate(s, v, c, start=start, cap=cap).cost
    assert at_most(base, allocate(s + extra, v, c, start=start, cap=cap).cost)
    assert at_most(base, allocate(s, v, c, start=start + more, cap=cap).cost)
    assert at_most(base, allocate(s, v, c, start=start, cap=cap + more).cost)
    assert at_most(base, allocate(s, v, c, start=start).cost)
    assert at_most(allocate(s, v + extra, c, start=start, cap=cap).cost, base)
    assert at_most(base, allocate(s, v, c + extra, start=start, cap=cap).cost)


@settings(max_examples=60, deadline=None)
@given(RUNS, LEVELS)
def test_any_feasible_spending_costs_at_least_as_much(run: list[tuple[float, ...]], start: float) -> None:
    """Spending a fixed fraction of what is there, and the rest at the end, is feasible."""
    s, v, c, _ = arrays(*zip(*run, strict=True))
    for fraction in (0.0, 0.3, 1.0):
        z, spent = start, []
        for t in range(len(s)):
            here = c[t] * z + s[t]
            spent.append(here if t == len(s) - 1 else fraction * here)
            z = here - spent[-1]
        assert at_most(allocate(s, v, c, start=start).cost, cost_of(np.array(spent), v))


# --- long runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lost", [pytest.param(2.0**-k, marks=pytest.mark.campaign if k != 20 else ()) for k in (10, 20, 24)]
)
def test_a_million_equal_steps(lost: float) -> None:
    """Constant steps: cost = s^2 / v tanh(T h / 2) / tanh(h / 2), h = -ln c."""
    size = 1_000_000
    s, v, c = np.full(size, 3.0), np.full(size, 2.0), np.full(size, 1 - lost)
    h = -mpmath.log1p(-mpmath.mpf(lost))
    assert_just_above(allocate(s, v, c).cost, mpmath.mpf("4.5") * mpmath.tanh(size * h / 2) / mpmath.tanh(h / 2))


@pytest.mark.campaign
def test_a_million_random_steps() -> None:
    rng = np.random.default_rng(1)
    size = 1_000_000
    s, v, c = rng.random(size), rng.random(size) + 0.5, 1 - 1e-3 * rng.random(size)
    allocation = allocate(s, v, c)
    assert 0 < allocation.slack < 3e-14
    assert_consistent(allocation, s, v, c)


def test_a_million_steps_with_cap() -> None:
    """Constant steps without contraction: cost = min over k of (cap + k s)^2 / (k v)."""
    size, cap = 1_000_000, 1000.0
    one = np.ones(size)
    allocation = allocate(one, one, one, cap=cap)
    assert_just_above(allocation.cost, mpmath.mpf(4 * cap))
    assert allocation.start == size - 1000


# --- arguments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "text"),
    [
        ({"inflow": [[1.0]]}, "inflow must be a 1-D"),
        ({"weight": []}, "weight must be a 1-D"),
        ({"carry": [1.0, -1.0]}, "carry must be finite and >= 0"),
        ({"inflow": [1.0, math.nan]}, "inflow must be finite"),
        ({"weight": [1.0, math.inf]}, "weight must be finite"),
        ({"carry": [1.0]}, "equal lengths, got inflow 2, weight 2, carry 1"),
        ({"start": -1.0}, "start must be"),
        ({"start": math.nan}, "start must be"),
        ({"cap": math.inf}, "cap must be"),
    ],
)
def test_bad_arguments(bad: dict[str, Any], text: str) -> None:
    given = {"inflow": [1.0, 1.0], "weight": [1.0, 1.0], "carry": [1.0, 1.0], **bad}
    named = {name: np.array(x) if isinstance(x, list) else x for name, x in given.items()}
    with pytest.raises(ValueError, match=text):
        allocate(**named)


def test_bad_arguments_elsewhere() -> None:
    one = np.ones(3)
    with pytest.raises(ValueError, match="covers 3 steps, the arrays have 2"):
        spend(allocate(one, one, one), one[:2], one[:2], one[:2])
    with pytest.raises(ValueError, match=r"skip must be in 0\.\.2, got 3"):
        remaining(one, one, one, skip=3)
    with pytest.raises(ValueError, match="spent must be finite"):
        cost_of(-one, one)
