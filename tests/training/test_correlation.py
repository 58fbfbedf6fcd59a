"""Correlated noise as it is drawn: the law of what is released, what doubles err by, and the memory that it takes."""

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import binom

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.algorithm import Release
from dpcalc.model.loss import of
from dpcalc.model.quantities import Mechanism
from dpcalc.model.run import describe
from dpcalc.model.strategy import Strategy
from dpcalc.training.rule.guarantee import rounding_of
from dpcalc.training.run import correlation, ensemble, kernel, orders, single
from dpcalc.training.run.correlation import nodes, released_by, shift_of
from dpcalc.training.run.exact_sums import grid_of
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding

FAR = 4.9  # standard errors: once in a million
CELLS = 12.0  # a standard deviation of Z
TOEPLITZ = [
    Strategy(Mechanism.IDENTITY, 9), Strategy(Mechanism.SQRT, 40, uses=2), Strategy(Mechanism.BANDED_SQRT, 40, 7),
    Strategy(Mechanism.BANDED_SQRT, 5, 64), Strategy(Mechanism.BISR, 40, 7), Strategy(Mechanism.BLT, 40, uses=3),
    Strategy(Mechanism.BANDED_SQRT, 6, 1), Strategy(Mechanism.SQRT, 1),
]  # fmt: skip


def matrix(of: Strategy) -> np.ndarray:
    """Return C, from the definition of the mechanism."""
    n = np.arange(of.steps)
    if of.mechanism == Mechanism.BLT:
        ratios, weights = of.buffers()
        column = (weights[:, np.newaxis] * ratios[:, np.newaxis] ** n).sum(axis=0)
    else:
        sign = -1.0 if of.mechanism == Mechanism.BISR else 1.0  # of the square root of 1 - x, or of its inverse
        column = binom(-0.5 * sign, n) * (-1.0) ** n
        bands = {Mechanism.IDENTITY: 1, Mechanism.SQRT: of.steps}.get(of.mechanism, of.bands)
        column[bands:] = 0.0
    lower = np.array([[column[t - s] if t >= s else 0.0 for s in n] for t in n])
    return np.linalg.inv(lower) if of.mechanism == Mechanism.BISR else lower


def totals(steps: int, columns: int) -> np.ndarray:
    return np.floor(1000.0 * np.random.default_rng(1).standard_normal((steps, columns))) / 64.0


@pytest.mark.parametrize("of", TOEPLITZ, ids=str)
def test_what_is_released_is_the_rounding_of_a_gaussian_about_c_g(of: Strategy) -> None:
    """C (R - g) is the fresh noise, rounded: by at most half a cell, whatever was released before."""
    columns, generator = 50, np.random.default_rng(2)
    exact, fresh = totals(of.steps, columns), CELLS * generator.standard_normal((of.steps, columns))
    step = released_by(of, columns, lambda: pytest.fail("no noise beside a row a step"))
    released = np.array([step(g.copy(), z.copy()) for g, z in zip(exact, fresh, strict=True)])
    assert (released == np.rint(released)).all()
    rounding = matrix(of) @ (released - exact) - fresh
    assert np.abs(rounding).max() <= 0.5 + 1e-9
    assert np.abs(rounding).max() > 0.4  # it is rounded


def test_a_tree_releases_noisy_nodes_and_their_best_estimates() -> None:
    """Every prefix is the best linear unbiased estimate from all nodes that are complete."""
    steps, columns, generator = 13, 4, np.random.default_rng(3)
    exact = totals(steps, columns)
    drawn: list[np.ndarray] = []

    def draw() -> np.ndarray:
        drawn.append(CELLS * generator.standard_normal(columns))
        return drawn[-1].copy()

    step, prefix = released_by(Strategy(Mechanism.TREE, steps), columns, draw), np.zeros(columns)
    rows: list[np.ndarray] = []
    noisy: list[np.ndarray] = []
    for t, g in enumerate(exact, start=1):
        before = len(drawn)
        fresh = CELLS * generator.standard_normal(columns)
        prefix = prefix + step(g.copy(), fresh.copy())
        for height in range(before, len(drawn) + 1):
            row = np.zeros(steps)
            row[t - (1 << (height - before)) : t] = 1.0
            rows.append(row)
            noisy.append(np.rint(row @ exact + [fresh, *drawn[before:]][height - before]))
        seen = np.array(rows)[:, :t]
        best = np.linalg.lstsq(seen, np.array(noisy), rcond=None)[0].sum(axis=0)
        assert prefix == pytest.approx(best, abs=1e-8)
    assert len(rows) == nodes(steps) == 23


SQUARES = of("squares", feature_bound=1.0, label_bound=1.0)


def planned(mechanism: str, records: int, columns: int, **given: Any) -> Plan:
    described = {
        "records": records, "batch_size": 2, "epochs": 2, "mechanism": mechanism, "clip": 0.5, "noise_multiplier": 3.0,
        "step_size": 0.3, "loss": "squares", "feature_bound": 1.0, "label_bound": 1.0,
    }  # fmt: skip
    run = describe("correlated", {**described, **given})
    return plan(run, records, columns)


@pytest.mark.parametrize(
    ("mechanism", "bands"), [("identity", None), ("banded-sqrt", 3), ("bisr", 3), ("blt", None), ("sqrt", None)]
)
def test_the_law_of_all_iterates_of_a_linear_run(mechanism: str, bands: int | None) -> None:
    """Records that push along one column alone: all others move by -eta/b s C^-1 Z, whose law is known exactly."""
    columns, records = 20_000, 7
    chosen = planned(mechanism, records, columns, bands=bands)._replace(release=Release.STEP)
    features = np.zeros((records, columns))
    features[:, 0] = 1.0
    problem = Problem(features, np.ones(records), SQUARES)
    rounding = rounding_of("correlated.gaussian", chosen, SQUARES)
    trained = single.train(chosen, problem, kernel.seeded(5), rounding=rounding)
    steps = np.diff(np.vstack([np.zeros(columns), trained.released]), axis=0)
    assert steps.shape == (8, columns)
    assert chosen.strategy is not None
    scale, grid = 3.0 * 0.5, grid_of(1.5)
    fresh = matrix(chosen.strategy) @ steps[:, 1:] * 2.0 / 0.3 / scale
    variance = 1.0 + (grid / scale) ** 2 / 12.0  # that of rounding added
    products = fresh @ fresh.T / (columns - 1)
    spread = np.sqrt(1.0 + np.eye(8)) * variance / math.sqrt(columns)
    assert (np.abs(products - variance * np.eye(8)) < FAR * spread).all()
    assert (np.abs(fresh.mean(axis=1)) < FAR * math.sqrt(variance / columns)).all()


@pytest.mark.parametrize("mechanism", ["tree", "blt", "bisr"])
def test_runs_side_by_side_have_the_same_law(mechanism: str) -> None:
    """The last iterate of many small runs beside that of one wide run, whose columns are as independent."""
    chosen = planned(mechanism, 7, 4, bands=3)
    problem = Problem(np.zeros((7, 4)), np.ones(7), SQUARES)
    many = ensemble.train(chosen, problem, 5000, seed=3).ravel()
    wide = planned(mechanism, 7, 20_000, bands=3)
    alone = Problem(np.zeros((7, 20_000)), np.ones(7), SQUARES)
    one = single.train(
        wide, alone, kernel.seeded(4), rounding=rounding_of("correlated.gaussian", wide, SQUARES)
    ).weights
    assert stats.ks_2samp(many, one).pvalue > 1e-6
    assert chosen.strategy is not None
    if mechanism != "tree":
        last = np.linalg.inv(matrix(chosen.strategy)).sum(axis=0)  # of the prefix sum of all steps
        deviation = 0.3 / 2.0 * 1.5 * float(np.linalg.norm(last))
        assert many.std() == pytest.approx(deviation, rel=FAR / math.sqrt(2.0 * many.size))


@pytest.mark.parametrize(
    "of", [Strategy(Mechanism.SQRT, 300), Strategy(Mechanism.BANDED_SQRT, 300, 64), Strategy(Mechanism.BISR, 300, 8),
           Strategy(Mechanism.BLT, 120)], ids=str
)  # fmt: skip
def test_doubles_move_means_by_less_than_is_accounted_for(of: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean of every step beside that of the same recursion in rational numbers, given all that was released."""
    means: list[float] = []

    def recorded(total: np.ndarray, noise: np.ndarray) -> np.ndarray:
        means.append(float(total[0]))
        released: np.ndarray = np.rint(total + noise)
        return released

    monkeypatch.setattr(correlation, "rounded_cells", recorded)
    generator = np.random.default_rng(7)
    exact, fresh = totals(of.steps, 1), CELLS * generator.standard_normal((of.steps, 1))
    step = released_by(of, 1, lambda: pytest.fail("no noise beside a row a step"))
    rows = [Fraction(0)] * of.steps  # of W, or of Z where the inverse is banded
    if of.mechanism == Mechanism.BLT:
        ratios, weights = ([Fraction(x) for x in values] for values in of.buffers())
        column = [sum(w * r**n for r, w in zip(ratios, weights, strict=True)) for n in range(of.steps)]
    else:
        of_ring = -of.inverse() if of.mechanism == Mechanism.BISR else of.column().entries
        column = [Fraction(c) for c in of_ring]
    errors = []
    for t in range(of.steps):
        released = Fraction(float(step(exact[t].copy(), fresh[t].copy())[0]))
        past = sum((column[j] * rows[t - j] for j in range(1, t + 1) if column[j]), Fraction(0))
        g = Fraction(float(exact[t, 0]))
        errors.append(float(Fraction(means[t]) - (g - past)) / CELLS)
        rows[t] = released - g + (past if of.mechanism == Mechanism.BISR else 0)
    longest = float(np.abs(exact).max()) / CELLS
    assert 0.0 < math.hypot(*errors) < shift_of(of, 1, longest) < 1e-9


@pytest.mark.few(1)
@pytest.mark.parametrize(("mechanism", "bands"), [("banded-sqrt", 8), ("bisr", 8), ("blt", None), ("tree", None)])
@pytest.mark.parametrize(("passes", "columns"), [(25, 300), pytest.param(1000, 30, marks=pytest.mark.campaign)])
def test_memory_does_not_grow_with_the_steps(mechanism: str, bands: int | None, passes: int, columns: int) -> None:
    """The noise of all steps takes 6 or 24 MB; a run that keeps its iterates shows that this would be seen."""
    chosen = planned(mechanism, 100, columns, bands=bands, batch_size=1, epochs=passes)
    rounding = rounding_of("correlated.gaussian", chosen, SQUARES)
    whole = 8 * columns * chosen.steps
    assert peak_of(chosen, rounding) < 3_000_000 < 0.6 * whole
    assert passes > 25 or peak_of(chosen._replace(release=Release.STEP), rounding) > whole


def peak_of(chosen: Plan, rounding: Rounding) -> int:
    """Return the bytes that a run takes at most."""
    problem = Problem(np.zeros((chosen.records, chosen.columns)), np.ones(chosen.records), SQUARES)
    tracemalloc.start()
    try:
        single.train(chosen, problem, kernel.seeded(1), rounding=rounding)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_what_cannot_be_carried_out_is_refused() -> None:
    with pytest.raises(NotApplicable, match="keeps 199999 rows of 1000 numbers"):
        released_by(Strategy(Mechanism.SQRT, 200_000), 1000, lambda: np.zeros(1))
    chosen = planned("sqrt", 8, 3)
    problem = Problem(np.zeros((8, 3)), np.ones(8), SQUARES)
    with pytest.raises(SpecError, match="drawn for sums that are rounded"):
        single.train(chosen, problem, kernel.seeded(1))
    with pytest.raises(NotApplicable, match="side by side"):
        ensemble.train(planned("banded-sqrt", 8, 3, bands=2, sampling="poisson"), problem, 3)
    with pytest.raises(SpecError, match="no whole passes"):
        planned("sqrt", 8, 3, epochs=None, steps=6)
    with pytest.raises(SpecError, match="not over columns"):
        planned("sqrt", 8, 3, scaling="columns")


@pytest.mark.parametrize("sampling", ["poisson", "balls-in-bins"])
def test_of_batches_with_one_record_on_average_all_are_used(sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are empty, and others have several: every record that is drawn moves the iterate by a clip."""
    drawn, stretches = [], orders.stretches

    def counted(*given: Any) -> Any:
        for stretch in stretches(*given):
            assert stretch.rows is not None
            drawn.append(stretch.rows.size)
            yield stretch

    monkeypatch.setattr(orders, "stretches", counted)
    few = {"batch_size": 1, "epochs": 3, "noise_multiplier": 1e-6, "step_size": 0.01}
    chosen = planned("banded-sqrt", 12, 2, bands=2, sampling=sampling, **few)
    problem = Problem(np.tile([1.0, 0.0], (12, 1)), np.ones(12), SQUARES)
    rounding = rounding_of("noisy_gd.composition", chosen, SQUARES)
    trained = single.train(chosen, problem, kernel.seeded(1), rounding=rounding)
    assert 0 in drawn
    assert max(drawn) > 1
    assert trained.weights == pytest.approx([0.005 * sum(drawn), 0.0], abs=1e-5)


def test_batches_are_drawn_from_the_groups_of_the_bands() -> None:
    records, bands, passes = 30, 3, 400
    drawn = {}
    for sampling in ("poisson", "balls-in-bins"):
        chosen = planned("banded-sqrt", records, 2, bands=bands, batch_size=5, epochs=passes, sampling=sampling)
        taken = [step for stretch in orders.stretches(chosen, kernel.seeded(3).generator) for step in stretch.each()]
        assert [step.number for step in taken] == list(range(6 * passes))
        assert {(step.size, step.divisor) for step in taken} == {(5, 5)}
        drawn[sampling] = counts = np.zeros((len(taken), records))
        for step in taken:
            assert step.rows is not None
            assert (step.rows % bands == step.number % bands).all()
            counts[step.number, step.rows] = 1.0
            assert counts[step.number].sum() == len(step.rows)  # none is drawn twice
    by_pass = drawn["balls-in-bins"].reshape(passes, 6, records)
    assert (by_pass.sum(axis=1) == 1.0).all()
    first = by_pass[:, :3].sum(axis=1)  # one of two rounds, each half of the time
    assert abs(first.mean() - 0.5) < FAR * 0.5 / math.sqrt(first.size)
    own = np.array([[counts[i % bands :: bands, i].mean() for i in range(records)] for counts in [drawn["poisson"]]])
    assert abs(own.mean() - 0.5) < FAR * 0.5 / math.sqrt(records * 2 * passes)  # 3 bands x 5/30
