"""Full-batch descent against exact allocations, exact quadratics, the papers' formulas and brute force."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from dpcalc.model.noise import langevin_noise_std
from dpcalc.notions import gaussian
from dpcalc.theorems.lower import quadratic
from dpcalc.theorems.many_passes import multi_epoch, noisy_gd
from tests.formulas import evaluated
from tests.oracles import (
    READINGS,
    adaptive,
    ball,
    call,
    draws,
    exact,
    log_uniform,
    not_below,
    passes,
    tight,
    typed,
    whole,
)
from tests.oracles import iteration as oracle
from tests.oracles.chains import constant, hockey_stick, last_law, nodes, spring, step

BLOG = {  # losses 5 |w - x|^2, ten records, Delta = sigma_C = 1, one step
    "records": 10, "steps": 1, "sensitivity": 1.0, "noise_std": math.sqrt(40.0), "step_size": 0.05,
    "smoothness": 10.0, "strong_convexity": 10.0,
}  # fmt: skip


def described(r: random.Random, most: int = 10**15) -> dict[str, Any]:
    """A strongly convex run with step_size <= 2/smoothness."""
    beta = log_uniform(r, 1e-3, 1e3)
    return {
        "records": whole(r, 1, 10**15),
        "steps": whole(r, 1, most),
        "sensitivity": log_uniform(r, 1e-6, 1e6),
        "noise_std": log_uniform(r, 1e-6, 1e6),
        "step_size": r.choice((1.0, 1.9, r.random())) / beta,
        "smoothness": beta,
        "strong_convexity": beta * r.choice((1.0, r.random(), 10 ** r.uniform(-18, 0))),
    }


def balanced(run: dict[str, Any]) -> dict[str, Any]:
    limit = 2.0 / (run["smoothness"] + run["strong_convexity"])
    return {**run, "step_size": min(run["step_size"], 0.999 * limit)}


def without(run: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in names}


def plain(run: dict[str, Any]) -> dict[str, Any]:
    return without(run, "step_size", "smoothness", "strong_convexity")


def factor(run: dict[str, Any], of: Any) -> Fraction:
    return oracle.contraction(of(run["step_size"]), of(run["smoothness"]), of(run["strong_convexity"]))


def ratio(run: dict[str, Any], of: Any) -> Fraction:
    return of(run["sensitivity"]) / (run["records"] * of(run["noise_std"]))


def reach(run: dict[str, Any], diameter: float, of: Any) -> Fraction:
    return of(diameter) * run["records"] / (of(run["step_size"]) * of(run["sensitivity"]))


# --- the optimal allocation -------------------------------------------------------------------------------------------


def saturated(run: dict[str, Any], of: Any) -> Any:
    """r sqrt((1-c^T)(1+c)/((1+c^T)(1-c)))."""
    c = factor(run, of)

    def value() -> Any:
        if c == 1:
            return ball(ratio(run, of)) * ball(run["steps"]).sqrt()
        gone = (ball(c).log() * run["steps"]).exp() if c else ball(0)
        return ball(ratio(run, of)) * ((1 - gone) * (1 + ball(c)) / ((1 + gone) * (1 - ball(c)))).sqrt()

    return adaptive(value)


def test_domain_step_by_step() -> None:
    for r in draws("noisy gd steps", 60, cost=200):
        run = described(r, most=18)
        diameter = run["step_size"] * run["sensitivity"] / run["records"] * log_uniform(r, 0.01, 30.0)
        found = evaluated(noisy_gd.domain, **run, diameter=diameter)
        for of in READINGS:
            c = factor(run, of)
            if c == 0:
                continue
            cost = passes.least(1, 1, run["steps"], c, reach(run, diameter, of))
            value = passes.cyclic_mu(ratio(run, of), ball(cost))
            not_below(found, value, call(noisy_gd.domain, **run, diameter=diameter))
            tight(found, value, call(noisy_gd.domain, **run, diameter=diameter), 2e-12)


def test_it_is_a_cyclic_run_of_one_step() -> None:
    for r in draws("one step", 200, cost=10):
        run = described(r)
        n = run["records"]
        cyclic = {**without(run, "steps"), "epochs": run["steps"], "batch_size": n, "index": whole(r, 1, n)}
        diameter = run["step_size"] * log_uniform(r, 1e-6, 1e6)
        assert evaluated(noisy_gd.contraction, **run) == evaluated(multi_epoch.cyclic_contraction, **cyclic)
        assert evaluated(noisy_gd.domain, **run, diameter=diameter) == evaluated(
            multi_epoch.cyclic_domain, **cyclic, diameter=diameter
        )
        assert evaluated(quadratic.descent, **balanced(run)) == evaluated(
            quadratic.passes, **{**cyclic, "step_size": balanced(run)["step_size"]}
        )


# --- the truth --------------------------------------------------------------------------------------------------------


def test_quadratic_losses_attain_the_bound() -> None:
    for r in draws("noisy gd quadratic", 400, cost=5):
        run = balanced(described(r))
        if r.random() < 0.2:
            run["strong_convexity"] = 0.0
        low, high = evaluated(quadratic.descent, **run), evaluated(noisy_gd.contraction, **run)
        what = call(quadratic.descent, **run)
        assert low <= high <= low * (1.0 + 2e-14) + 1e-320, what
        for of in READINGS:
            value = saturated(run, of)
            assert not ball(low) > value, what


def test_exact_mean_and_variance() -> None:
    for r in draws("noisy gd affine", 200, cost=20):
        run = described(r, most=30)
        eta, beta, m = (exact(run[k]) for k in ("step_size", "smoothness", "strong_convexity"))
        curvatures = [r.choice((m, m, beta, m + (beta - m) * Fraction(r.random()))) for _ in range(run["steps"])]
        square = passes.affine_square([1 - eta * h for h in curvatures], [1] * run["steps"])
        not_below(
            evaluated(noisy_gd.contraction, **run),
            passes.cyclic_mu(ratio(run, exact), ball(square)),
            call(noisy_gd.contraction, **run),
        )
        same = passes.affine_square([1 - eta * m] * run["steps"], [1] * run["steps"])
        if eta * m <= 1 and 2 / eta >= beta + m:
            value = passes.cyclic_mu(ratio(run, exact), ball(same))
            tight(evaluated(noisy_gd.contraction, **run), value, call(noisy_gd.contraction, **run), 1e-13)


def test_no_run_on_an_interval_is_above_the_bounds() -> None:
    for r in draws("noisy gd interval", 12, cost=1000):
        steps, width, sigma = r.randint(1, 30), log_uniform(r, 0.3, 5.0), log_uniform(r, 0.3, 2.0)
        curvature = r.choice((0.0, 0.05, 0.3))
        low, high = -width / 2, width / 2
        if curvature:
            pair, delta = [spring(curvature, x, low, high) for x in (low, high)], curvature * width
        else:
            delta = width * r.choice((0.02, 0.1, 0.5, 2.0))
            pair = [constant(s * delta / 2, low, high) for s in (-1, 1)]
        grid = nodes(low, high, sigma / 2, start=r.choice((low, 0.0, high)), count=400)
        laws = [
            last_law(grid.start, [step(grid, grid.points - g(grid.points), sigma, "gaussian")] * steps) for g in pair
        ]
        run = {
            "records": 1, "steps": steps, "sensitivity": delta, "noise_std": sigma, "step_size": 1.0,
            "smoothness": max(curvature, 1e-9), "strong_convexity": curvature, "diameter": width,
        }  # fmt: skip
        mu = evaluated(noisy_gd.domain, **run)
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            truth = hockey_stick(*laws, epsilon, 1e-9)
            assert truth <= gaussian.delta(mu=mu, epsilon=epsilon) * (1.0 + 1e-7), (run, epsilon)


# --- Langevin dynamics ------------------------------------------------------------------------------------------------


def in_langevin(run: dict[str, Any], of: Any) -> tuple[Fraction, Fraction, Fraction]:
    """(Delta^2/(m sigma_C^2 n^2), y, eta m) with sigma_C^2 = eta sigma^2/2."""
    eta, m = of(run["step_size"]), of(run["strong_convexity"])
    variance = eta * of(run["noise_std"]) ** 2 / 2
    return of(run["sensitivity"]) ** 2 / (m * variance * run["records"] ** 2), m * eta * run["steps"], eta * m


def theorem(run: dict[str, Any], order: float, of: Any) -> Any:
    front, y, _ = in_langevin(run, of)
    return adaptive(lambda: ball(of(order) * front) * -(-ball(y) / 2).expm1())


def refined(run: dict[str, Any], order: float, of: Any) -> Any:
    front, y, _ = in_langevin(run, of)
    if y <= 1:
        return adaptive(lambda: ball(of(order) * front * y / 4))
    return adaptive(lambda: ball(of(order) * front) * (1 - (-(ball(y) - 1) / 2).exp() / 2) ** 2)


def announced(run: dict[str, Any], order: float, of: Any) -> Any:
    front, _, _ = in_langevin(run, of)
    steps = of(run["step_size"]) * run["steps"]
    return adaptive(lambda: ball(of(order) * front) * -(-ball(steps) / 2).expm1())


def plotted(run: dict[str, Any], order: float, of: Any) -> Any:
    c = factor(run, of)

    def value() -> Any:
        gone = (ball((1 + c) / 2).log() * run["steps"]).exp()
        return ball(of(order) * ratio(run, of) ** 2 * (1 + c) / (1 - c)) * (1 - gone)

    return adaptive(value)


@pytest.mark.parametrize(
    ("function", "value"),
    [
        (noisy_gd.langevin, theorem),
        (noisy_gd.langevin_refined, refined),
        (multi_epoch.descent_langevin, announced),
        (multi_epoch.descent_dynamics, plotted),
    ],
)
def test_renyi_formulas(function: Callable[..., float], value: Callable[..., Any]) -> None:
    for r in draws(function.__name__, 300, cost=10):
        run, order = balanced(described(r)), r.choice((1.0, 2.0, log_uniform(r, 1.0, 1e6)))
        if function is multi_epoch.descent_dynamics and factor(run, exact) >= 1 - Fraction(1, 10**200):
            continue
        found, what = evaluated(function, **run, order=order), call(function, **run, order=order)
        for of in READINGS:
            not_below(found, value(run, order, of), what)
            tight(found, value(run, order, of), what, 3e-14)


def test_order_of_the_bounds() -> None:
    """Lower bound <= exact = shifts <= refined <= min(composition, Theorem 1); Theorem 1 within (1.57, 4) of shifts."""
    room = 1.0 + 1e-13
    for r in draws("langevin order", 3000, cost=4):
        run = balanced(described(r))
        if r.random() < 0.5:  # where the orders are close: y near 1 to 4
            y = r.uniform(0.3, 5.0)
            run["steps"] = max(1, min(10**15, round(y / (run["step_size"] * run["strong_convexity"]))))
        shifts = gaussian.renyi(mu=evaluated(noisy_gd.contraction, **run), order=2.0)
        best, printed = (
            evaluated(noisy_gd.langevin_refined, **run, order=2.0),
            evaluated(noisy_gd.langevin, **run, order=2.0),
        )
        composed = gaussian.renyi(mu=evaluated(noisy_gd.composition, **plain(run)), order=2.0)
        assert evaluated(quadratic.langevin, **run, order=2.0) <= shifts, run
        assert shifts <= best * room <= min(composed, printed) * room**2, run
        assert shifts <= evaluated(multi_epoch.descent_dynamics, **run, order=2.0) * room, run
        if shifts > 1e-290:
            assert 1.57 < printed / shifts < 4.0, run
        diameter = run["step_size"] * run["sensitivity"] / run["records"] * log_uniform(r, 1e-3, 1e12)
        bounded = evaluated(noisy_gd.domain, **run, diameter=diameter)
        assert bounded <= evaluated(noisy_gd.contraction, **run) * room, run
        merely_convex = evaluated(noisy_gd.domain, **{**run, "strong_convexity": 0.0}, diameter=diameter)
        ever = evaluated(
            multi_epoch.descent_domain,
            **without(run, "steps", "smoothness", "strong_convexity"),
            diameter=diameter,
        )
        assert bounded <= merely_convex * room <= ever * room**2, (run, diameter)
        assert merely_convex <= evaluated(noisy_gd.composition, **plain(run)) * room


def test_printed_domain_form_is_right_where_it_is_whole() -> None:
    for delta, eta in ((0.25, 0.1), (0.25, 0.05), (0.5, 0.2), (1.0, 0.2), (0.125, 0.01)):
        run = {"records": 1, "sensitivity": delta, "noise_std": 8.0, "step_size": eta, "diameter": 1.0}
        value = adaptive(lambda delta=delta, eta=eta: (4 * ball(typed(delta) / typed(eta))).sqrt() / 8)
        tight(
            evaluated(multi_epoch.descent_domain, **run),
            value,
            call(multi_epoch.descent_domain, **run),
            1e-14,
        )
        long = evaluated(noisy_gd.domain, **run, steps=10**9, smoothness=1.0, strong_convexity=0.0)
        assert long == pytest.approx(evaluated(multi_epoch.descent_domain, **run), rel=1e-13)


def test_the_announced_exponent_is_false() -> None:
    truth = gaussian.renyi(mu=evaluated(quadratic.descent, **BLOG), order=2.0)
    assert truth == pytest.approx(2.5e-4, rel=1e-12)
    assert (
        evaluated(multi_epoch.descent_langevin, **BLOG, order=2.0)
        < 0.2 * truth
        < evaluated(noisy_gd.langevin, **BLOG, order=2.0)
    )


def test_units_of_langevin_dynamics() -> None:
    for r in draws("units", 300, cost=10):
        outside, eta = log_uniform(r, 1e-6, 1e6), log_uniform(r, 1e-6, 1e6)
        inside = langevin_noise_std(langevin_std=outside, step_size=eta)
        back = noisy_gd.langevin_std(noise_std=inside, step_size=eta)
        for of in READINGS:
            assert ball(inside) ** 2 * ball(of(eta)) < 2 * ball(of(outside)) ** 2
            assert 2 * ball(back) ** 2 > ball(inside) ** 2 * ball(exact(eta))
        assert back == pytest.approx(outside, rel=1e-14)


# --- inverse, limits, extremes ----------------------------------------------------------------------------------------


def test_noise_ends_on_the_safe_side() -> None:
    for r in draws("noisy gd noise", 200, cost=20):
        run = without(described(r), "noise_std")
        e, log_delta = log_uniform(r, 1e-3, 100.0), -log_uniform(r, 0.1, 1e3)
        sigma = noisy_gd.contraction_noise_std(**run, epsilon=e, log_delta=log_delta)
        mu = evaluated(noisy_gd.contraction, **run, noise_std=sigma)
        most = gaussian.largest_mu(epsilon=e, log_delta_target=log_delta)
        assert not saturated({**run, "noise_std": sigma}, exact) > ball(most), (run, e, log_delta)
        assert mu >= most * (1.0 - 1e-13)


def test_limits() -> None:
    for r in draws("noisy gd limits", 300, cost=10):
        run = described(r)
        run["step_size"] = min(run["step_size"], 1.0 / run["smoothness"])
        flat = {**run, "strong_convexity": min(1e-18 / run["steps"] / run["step_size"], run["smoothness"])}
        composed = evaluated(noisy_gd.composition, **plain(run))
        assert evaluated(noisy_gd.contraction, **flat) == pytest.approx(composed, rel=1e-13)
        wide = run["step_size"] * run["sensitivity"] / run["records"] * run["steps"] * 10.0
        assert evaluated(noisy_gd.domain, **run, diameter=wide) == pytest.approx(
            evaluated(noisy_gd.contraction, **run), rel=1e-13
        )
        assert evaluated(noisy_gd.contraction, **{**run, "steps": 1}) == pytest.approx(
            evaluated(noisy_gd.composition, **{**plain(run), "steps": 1}), rel=1e-13
        )
        x = run["step_size"] * run["strong_convexity"]
        if x * run["steps"] > 50.0:
            ever = run["sensitivity"] / run["records"] / run["noise_std"] * math.sqrt((2.0 - x) / x)
            assert evaluated(noisy_gd.contraction, **run) == pytest.approx(ever, rel=1e-12)


EXTREME = (5e-324, 1e-300, 1.0, 1e300)


@pytest.mark.parametrize("sensitivity", EXTREME)
@pytest.mark.parametrize("noise_std", EXTREME)
@pytest.mark.parametrize("steps", [1, 2, 10**15])
def test_extreme_scales(sensitivity: float, noise_std: float, steps: int) -> None:
    for n in (1, 10**15):
        run = {"records": n, "steps": steps, "sensitivity": sensitivity, "noise_std": noise_std}
        for step_size, m in ((1.0, 0.0), (1.0, 1.0), (1e-300, 1e300), (1e300, 1e-300), (1.0, 1e-9), (5e-324, 1e-300)):
            loss = {"step_size": step_size, "smoothness": max(m, 1e-300), "strong_convexity": m}
            found = [
                evaluated(noisy_gd.composition, **run),
                evaluated(noisy_gd.contraction, **run, **loss),
                *(evaluated(noisy_gd.domain, **run, **loss, diameter=d) for d in (1e300, 1.0, 1e-300)),
                evaluated(noisy_gd.langevin, **run, **loss, order=2.0),
                evaluated(noisy_gd.langevin_refined, **run, **loss, order=2.0),
                evaluated(multi_epoch.descent_dynamics, **run, **loss, order=2.0),
                evaluated(
                    multi_epoch.descent_domain,
                    records=n,
                    sensitivity=sensitivity,
                    noise_std=noise_std,
                    step_size=step_size,
                    diameter=1.0,
                ),
            ]
            if m:
                found.append(evaluated(multi_epoch.descent_langevin, **run, **loss, order=2.0))
            assert all(x > 0.0 for x in found), (run, loss, found)  # no nan either
            assert evaluated(quadratic.descent, **run, **loss) >= 0.0
            assert evaluated(quadratic.langevin, **run, **loss, order=2.0) >= 0.0
            assert found[4] <= found[3] <= found[2] <= found[1] * (1.0 + 1e-12) <= found[0] * (1.0 + 2e-12)
