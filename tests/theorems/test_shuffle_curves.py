"""The array forms of one-pass bounds: beside the scalar forms, and never below their definitions."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from dpcalc.certify.table import definitions
from dpcalc.theorems.batch_layout import layout as layout_of
from dpcalc.theorems.contraction import contraction, shuffle, shuffle_curves
from dpcalc.theorems.contraction.laplace import later_ratio, own_ratio
from tests.formulas import evaluated
from tests.oracles import draws, log_uniform, whole
from tests.soundness.compare import BELOW, verdict

NOISES = ("gaussian", "laplace")
LAST_BATCHES = ("own", "nominal", "drop", "balanced", "front")


def epsilons(r: random.Random, around: float) -> list[float]:
    """0, tiny and large ones, and more where the curve is neither 0 nor 1."""
    found = [0.0, log_uniform(r, 1e-15, 1e-3), log_uniform(r, 1.0, 1e3), log_uniform(r, 1e3, 1e9)]
    return [*found, *(around * x for x in (0.3, 0.9, 1.0, 1.0 + 1e-12, 1.1, r.uniform(1.0, 9.0))), around * around]


def layout(r: random.Random) -> dict[str, Any]:
    n = whole(r, 1, r.choice((20, 10**4, 10**15)))
    return {
        "records": n,
        "batch_size": r.choice((1, whole(r, 1, n), whole(r, 1, min(n, 20)), 2 * n)),
        "last_batch": r.choice(LAST_BATCHES),
    }


def beside(found: Any, scalar: list[float], what: Any, relative: float, above: float) -> None:
    """Both are upper bounds: equal up to their rounding, the array by ``above`` in ln delta at most above."""
    for a, b in zip(np.asarray(found).tolist(), scalar, strict=True):
        assert not math.isnan(a), what
        assert a <= 0.0, what
        if b < -1e280 or a < -1e280:
            assert min(a, b) < -1e270, (what, a, b)
            continue
        assert a >= b - relative * (1.0 + abs(b)), (what, a, b)
        assert a <= b + above + relative * (1.0 + abs(b)), (what, a, b)


def never_below(subject: str, given: dict[str, Any], grid: list[float], found: Any) -> None:
    for e, value in zip(grid, np.asarray(found).tolist(), strict=True):
        outcome = verdict(definitions()[subject], {**given, "epsilon": e}, value, False).outcome
        assert outcome != BELOW, (subject, given, e, value)


# --- one position ---------------------------------------------------------------------------------------------------


def test_fixed() -> None:
    for r in draws("fixed curves", 300, 25):
        noise, n = r.choice(NOISES), whole(r, 1, r.choice((5, 10**15)))
        given = {
            "records": n, "index": whole(r, 1, n), "batch_size": 1, "sensitivity": log_uniform(r, 1e-3, 30.0),
            "noise": noise, "scale": 1.0, "step_size": 1.0, "displacement": r.choice((0.0, 1.0, 1.5)),
            "diameter": log_uniform(r, 1e-3, 30.0),
        }  # fmt: skip
        own = own_ratio(given["sensitivity"], 1.0, 1)
        following = later_ratio(given["displacement"], given["diameter"], 1.0, 1.0)
        grid = epsilons(r, own if r.random() < 0.5 else max(following, 1e-3))
        curve = shuffle_curves.fixed(noise, own, following, n - given["index"])
        scalar = [evaluated(contraction.product, **given, epsilon=e) for e in grid]
        beside(curve(np.array(grid)), scalar, (given, grid), 1e-12, 0.0)
        never_below("contraction.product", given, grid[:6], curve(np.array(grid[:6])))


# --- shuffled products ------------------------------------------------------------------------------------------------


def product_case(r: random.Random) -> dict[str, Any]:
    return {
        **layout(r), "noise": r.choice(NOISES), "scale": log_uniform(r, 0.1, 10.0),
        "sensitivity": log_uniform(r, 1e-3, 100.0), "step_size": log_uniform(r, 0.1, 10.0),
        "displacement": r.choice((0.0, 0.5, 1.0, log_uniform(r, 1e-3, 3.0))), "diameter": log_uniform(r, 1e-2, 100.0),
    }  # fmt: skip


def product_curve(given: dict[str, Any]) -> Any:
    plan = layout_of(given["records"], given["batch_size"], given["last_batch"])
    names = ("noise", "scale", "sensitivity", "step_size", "displacement", "diameter")
    return shuffle_curves.shuffled_product(plan, **{name: given[name] for name in names})


def ratios(given: dict[str, Any]) -> tuple[float, float]:
    plan = layout_of(given["records"], given["batch_size"], given["last_batch"])
    own = own_ratio(given["sensitivity"], given["scale"], plan.size)
    if "displacement" not in given:
        return own, own
    return own, later_ratio(given["displacement"], given["diameter"], given["step_size"], given["scale"])


def test_shuffled_product() -> None:
    for r in draws("product curves", 300, 25):
        given = product_case(r)
        grid = epsilons(r, max(r.choice(ratios(given)), 1e-6))
        scalar = [evaluated(shuffle.product, **given, epsilon=e) for e in grid]
        beside(product_curve(given)(np.array(grid)), scalar, (given, grid), 1e-12, 0.0)
        never_below("shuffle.product", given, grid[:6], product_curve(given)(np.array(grid[:6])))


# --- shuffled mixtures ------------------------------------------------------------------------------------------------


def mixture_case(r: random.Random) -> dict[str, Any]:
    return {**layout(r), "scale": log_uniform(r, 0.1, 10.0), "sensitivity": log_uniform(r, 1e-3, 100.0)}


def mixture_curve(given: dict[str, Any]) -> Any:
    plan = layout_of(given["records"], given["batch_size"], given["last_batch"])
    return shuffle_curves.shuffled_mixture(plan, scale=given["scale"], sensitivity=given["sensitivity"])


def test_shuffled_mixture() -> None:
    for r in draws("mixture curves", 150, 45):
        given = mixture_case(r)
        grid = epsilons(r, max(ratios(given)[0], 1e-6))
        scalar = [
            evaluated(shuffle.mixture, **given, noise="gaussian", step_size=1.0, smoothness=1.0, epsilon=e)
            for e in grid
        ]
        beside(mixture_curve(given)(np.array(grid)), scalar, (given, grid), 1e-12, 1e-3)


def test_shuffled_mixture_is_not_below_the_mean() -> None:
    """Single records, few enough to add up one by one; from 64 on in blocks."""
    for r in draws("mixture curves, exact", 20, 330):
        n = r.choice((1, 2, 63, 64, 65, 70, 100, 300, 1000))
        ratio = log_uniform(r, 0.05, 30.0)
        given = {"records": n, "batch_size": 1, "last_batch": "own", "scale": 1.0, "sensitivity": ratio}
        run = {**given, "noise": "gaussian", "step_size": 1.0, "smoothness": 1.0, "loss_class": "convex-smooth"}
        grid = [0.0, log_uniform(r, 1e-3, 1.0), ratio * r.uniform(0.1, 1.0)]
        never_below("shuffle.mixture", run, grid, mixture_curve(given)(np.array(grid)))


def test_blocks_on_either_side_of_the_mode() -> None:
    """As a function of the number of steps a term is concave first, then convex: both kinds of block are met."""
    e, n = 1.0, 10**4
    for ratio in (1.0, 10.0, 60.0, 100.0, 300.0, 1000.0):
        given = {"records": n, "batch_size": 1, "last_batch": "own", "scale": 1.0, "sensitivity": ratio}
        scalar = evaluated(shuffle.mixture, **given, noise="gaussian", step_size=1.0, smoothness=1.0, epsilon=e)
        found = float(mixture_curve(given)(np.array([e]))[0])
        assert scalar * (1 + 1e-12) - 1e-13 <= found <= scalar + 1e-3, ratio


# --- shapes and extremes ----------------------------------------------------------------------------------------------


def test_curves_fall() -> None:
    for r in draws("falling curves", 30, 220):
        product, mixture = product_case(r), mixture_case(r)
        for given, curve in ((product, product_curve(product)), (mixture, mixture_curve(mixture))):
            grid = np.concatenate(([0.0], np.geomspace(1e-6, 1e3, 200) * max(ratios(given)[0], 1e-3)))
            value = np.maximum(curve(grid), -1e290)
            assert np.all(np.diff(value) <= 1e-3 * np.where(value[1:] > -700, 1.0, np.abs(value[1:]))), given
            below = shuffle_curves.least(curve, shuffle_curves.own_step("gaussian", 1.0))(grid)
            assert np.all(below <= curve(grid))
            assert np.all(below <= shuffle_curves.own_step("gaussian", 1.0)(grid))


def test_kinks_of_laplace_noise() -> None:
    """Where a step's support ends delta is 0, or only the records of the short batch remain."""
    for own, following in ((1.0, 2.0), (2.0, 1.0)):
        given = {
            "records": 5, "batch_size": 1, "last_batch": "own", "noise": "laplace", "scale": 1.0, "sensitivity": own,
            "step_size": 1.0, "displacement": 1.0, "diameter": following,
        }  # fmt: skip
        grid = np.array([0.5, 0.999999, 1.0, 1.5, 1.999999, 2.0, 3.0])
        found = product_curve(given)(grid)
        scalar = [evaluated(shuffle.product, **given, epsilon=e) for e in grid.tolist()]
        beside(found, scalar, given, 1e-12, 0.0)
        assert np.all(found[grid > own] == -math.inf)
        inside = grid[(grid > following) & (grid < own)]
        expected = np.log(-np.expm1((inside - own) / 2) / 5)  # only the last record
        assert np.asarray(product_curve(given)(inside)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("noise", NOISES)
def test_extremes(noise: str) -> None:
    grid = np.array([0.0, 5e-324, 1e-300, 1.0, 700.0, 1e6, 2.0**60])
    for sensitivity, diameter, displacement, n, size in itertools.product(
        (1e-300, 1.0, 1e300), (1e-300, 1.0, 1e300), (0.0, 1e-300, 1.0), (1, 7, 10**15), (1, 2, 10**15)
    ):
        given = {
            "records": n, "batch_size": size, "last_batch": "own", "noise": noise, "scale": 1.0,
            "sensitivity": sensitivity, "step_size": 1.0, "displacement": displacement, "diameter": diameter,
        }  # fmt: skip
        made = [product_curve(given)]
        if noise == "gaussian":
            made.append(mixture_curve(given))
        for curve in made:
            found = curve(grid)
            assert np.all(found <= 0.0), given  # no nan either
            if sensitivity == 1e300:
                assert found[-1] >= -math.log(n) - 1e-6, given
