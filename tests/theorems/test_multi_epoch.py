"""Passes in one order, and descent on full batches: what papers print, who is below whom, brute force, extremes.

Our own bounds are compared with their definitions in `tests.soundness`.
"""

import itertools
import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpcalc.certify.runs.run import RunInputs
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
    position,
    tight,
    typed,
    whole,
)

BLOG = {  # losses 5 |w - x|^2, ten records, Delta = sigma_C = 1, one step
    "records": 10, "steps": 1, "sensitivity": 1.0, "noise_std": math.sqrt(40.0), "step_size": 0.05,
    "smoothness": 10.0, "strong_convexity": 10.0,
}  # fmt: skip


def smooth(r: random.Random) -> dict[str, float]:
    """Step size, smoothness and strong convexity, from hardly contracting to almost forgetting."""
    beta = log_uniform(r, 1e-3, 1e3)
    m = beta * r.choice((1.0, r.random(), 10 ** r.uniform(-18, 0)))
    return {"step_size": r.choice((1.0, 1.9, r.random())) / beta, "smoothness": beta, "strong_convexity": m}


def balanced(loss: dict[str, Any]) -> dict[str, Any]:
    """The same losses at a step size that the lower bounds allow."""
    limit = 2.0 / (loss["smoothness"] + loss["strong_convexity"])
    return {**loss, "step_size": min(loss["step_size"], 0.999 * limit)}


def factor(loss: dict[str, float], of: Any) -> Fraction:
    eta, beta, m = (of(loss[name]) for name in ("step_size", "smoothness", "strong_convexity"))
    return max(abs(1 - eta * m), abs(1 - eta * beta))


def passes(r: random.Random) -> dict[str, Any]:
    n = whole(r, 1, 10**15)
    return {
        "records": n, "index": position(r, n), "batch_size": r.choice((1, whole(r, 1, n), n)),
        "epochs": whole(r, 1, 10**12), "sensitivity": log_uniform(r, 1e-6, 1e6), "noise_std": log_uniform(r, 1e-6, 1e6),
    }  # fmt: skip


def descent(r: random.Random) -> dict[str, Any]:
    """A strongly convex run with step_size <= 2/smoothness."""
    run = {"records": whole(r, 1, 10**15), "steps": whole(r, 1, 10**15)}
    return {**run, "sensitivity": log_uniform(r, 1e-6, 1e6), "noise_std": log_uniform(r, 1e-6, 1e6), **smooth(r)}


def without(run: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in names}


def shape(run: dict[str, Any]) -> tuple[int, int, int]:
    """(size of the record's batch, steps to the end of the pass, steps of a pass)."""
    inputs = RunInputs({"last_batch": "own", **run}, True)
    return (*inputs.batch(), inputs.period())


def test_descent_is_a_cyclic_run_of_one_step() -> None:
    for r in draws("one step", 200, cost=10):
        run = descent(r)
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


# --- what papers print ------------------------------------------------------------------------------------------------


def test_printed_formulas() -> None:
    for r in draws("printed", 300, cost=10):
        run, loss = passes(r), smooth(r)
        size, tail, period = shape(run)
        r1 = typed(run["sensitivity"]) / (size * typed(run["noise_std"]))
        diameter = log_uniform(r, 1e-3, 1e3)
        flat = without(run, "epochs") | {"step_size": loss["step_size"], "diameter": diameter}
        far = typed(diameter) * size / (typed(loss["step_size"]) * typed(run["sensitivity"]))
        if abs(far - round(far)) < far / 10**12:
            continue  # whole or not: a matter of the reading
        share = 1 + (3 * far + math.ceil(far)) / period
        value = adaptive(lambda r1=r1, share=share: ball(r1) * ball(share).sqrt())
        tight(evaluated(multi_epoch.passes_domain, **flat), value, call(multi_epoch.passes_domain, **flat))
        c, epochs = factor(loss, typed), run["epochs"]
        if not Fraction(1, 1000) < c < 1:
            continue

        def power(n: int, c: Fraction = c) -> Any:
            return (ball(c).log() * n).exp()

        def printed(period: int = period, epochs: int = epochs, r1: Fraction = r1, c: Fraction = c) -> Any:
            gone = power(period * (epochs - 1))
            first = power(2 * period - 2) * (1 - ball(c * c)) / (1 - power(period)) ** 2 * (1 - gone) / (1 + gone)
            return ball(r1) * (1 + first).sqrt()

        what = call(multi_epoch.passes_contraction, **run, **loss)
        tight(evaluated(multi_epoch.passes_contraction, **run, **loss), adaptive(printed, bits=60), what, 1e-11)
        half = period // 2
        if not half or -math.log(c) * period > 300.0:
            continue

        def dynamics(
            period: int = period, epochs: int = epochs, r1: Fraction = r1, c: Fraction = c, tail: int = tail,
            half: int = half,
        ) -> Any:  # fmt: skip
            def single(j: int) -> Any:
                return power(2 * j - 2) * (1 - ball(c * c)) / (1 - power(2 * j))

            again = (1 - power(2 * (epochs - 1) * (period - half))) / (1 - power(2 * (period - half)))
            return 3 * ball(r1) ** 2 / 2 * (single(tail) + single(half) * again)

        found = evaluated(multi_epoch.passes_dynamics, **run, **loss, order=3.0)
        tight(found, adaptive(dynamics, bits=60), call(multi_epoch.passes_dynamics, **run, **loss, order=3.0), 1e-11)


def announced(run: dict[str, Any], order: float, of: Any) -> Any:
    """order Delta^2/(m sigma_C^2 n^2) (1 - e^(-eta T/2)), sigma_C^2 = eta sigma^2/2."""
    eta, m = of(run["step_size"]), of(run["strong_convexity"])
    front = of(run["sensitivity"]) ** 2 / (m * eta * of(run["noise_std"]) ** 2 / 2 * run["records"] ** 2)
    return adaptive(lambda: ball(of(order) * front) * -(-ball(eta * run["steps"]) / 2).expm1())


def plotted(run: dict[str, Any], order: float, of: Any) -> Any:
    c, ratio = factor(run, of), of(run["sensitivity"]) / (run["records"] * of(run["noise_std"]))

    def value() -> Any:
        gone = (ball((1 + c) / 2).log() * run["steps"]).exp()
        return ball(of(order) * ratio**2 * (1 + c) / (1 - c)) * (1 - gone)

    return adaptive(value)


@pytest.mark.parametrize(
    ("function", "value"),
    [(multi_epoch.descent_langevin, announced), (multi_epoch.descent_dynamics, plotted)],
)
def test_printed_renyi_formulas(function: Callable[..., float], value: Callable[..., Any]) -> None:
    for r in draws(function.__name__, 300, cost=10):
        run, order = balanced(descent(r)), r.choice((1.0, 2.0, log_uniform(r, 1.0, 1e6)))
        if function is multi_epoch.descent_dynamics and factor(run, exact) >= 1 - Fraction(1, 10**200):
            continue
        found, what = evaluated(function, **run, order=order), call(function, **run, order=order)
        for of in READINGS:
            not_below(found, value(run, order, of), what)
            tight(found, value(run, order, of), what, 3e-14)


def test_printed_domain_form_is_right_where_it_is_whole() -> None:
    for delta, eta in ((0.25, 0.1), (0.25, 0.05), (0.5, 0.2), (1.0, 0.2), (0.125, 0.01)):
        run = {"records": 1, "sensitivity": delta, "noise_std": 8.0, "step_size": eta, "diameter": 1.0}
        value = adaptive(lambda delta=delta, eta=eta: (4 * ball(typed(delta) / typed(eta))).sqrt() / 8)
        found = evaluated(multi_epoch.descent_domain, **run)
        tight(found, value, call(multi_epoch.descent_domain, **run), 1e-14)
        long = evaluated(noisy_gd.domain, **run, steps=10**9, smoothness=1.0, strong_convexity=0.0)
        assert long == pytest.approx(found, rel=1e-13)


def test_the_announced_exponent_is_false() -> None:
    truth = gaussian.renyi(mu=evaluated(quadratic.descent, **BLOG), order=2.0)
    assert truth == pytest.approx(2.5e-4, rel=1e-12)
    printed, ours = (evaluated(f, **BLOG, order=2.0) for f in (multi_epoch.descent_langevin, noisy_gd.langevin))
    assert printed < 0.2 * truth < ours


def test_units_of_langevin_dynamics() -> None:
    for r in draws("units", 300, cost=10):
        outside, eta = log_uniform(r, 1e-6, 1e6), log_uniform(r, 1e-6, 1e6)
        inside = langevin_noise_std(langevin_std=outside, step_size=eta)
        back = noisy_gd.langevin_std(noise_std=inside, step_size=eta)
        for of in READINGS:
            assert ball(inside) ** 2 * ball(of(eta)) < 2 * ball(of(outside)) ** 2
            assert 2 * ball(back) ** 2 > ball(inside) ** 2 * ball(exact(eta))
        assert back == pytest.approx(outside, rel=1e-14)


# --- who is below whom ------------------------------------------------------------------------------------------------


def test_order_of_the_bounds_of_passes() -> None:
    for r in draws("order", 1500, cost=4):
        run, loss = passes(r), smooth(r)
        size, _, period = shape(run)
        diameter = loss["step_size"] * run["sensitivity"] / size * log_uniform(r, 1e-3, 1e12)
        plain, composed = evaluated(multi_epoch.cyclic, **run), evaluated(multi_epoch.composition, **run)
        contracting = evaluated(multi_epoch.cyclic_contraction, **run, **loss)
        bounded = evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter)
        room = 1.0 + 1e-13
        assert bounded <= contracting * room <= plain * room**2 <= composed * room**3, (run, loss, diameter)
        printed = evaluated(multi_epoch.passes_contraction, **run, **loss)
        assert contracting <= printed * (1.0 + 4e-12), (run, loss)
        convex = evaluated(multi_epoch.cyclic_domain, **run, **{**loss, "strong_convexity": 0.0}, diameter=diameter)
        flat = without(run, "epochs")
        ever = evaluated(multi_epoch.passes_domain, **flat, step_size=loss["step_size"], diameter=diameter)
        assert convex <= room * ever, (run, loss, diameter)
        if period > 1:
            dynamics = evaluated(multi_epoch.passes_dynamics, **run, **loss, order=2.0)
            assert contracting**2 <= dynamics * (1.0 + 1e-11), (run, loss)
        lower = evaluated(quadratic.passes, **run, **balanced(loss))
        assert lower <= evaluated(multi_epoch.cyclic_contraction, **run, **balanced(loss))
        linear = evaluated(quadratic.passes, **run, **{**balanced(loss), "strong_convexity": 0.0})
        assert linear <= plain <= linear * math.sqrt(1.0 + period / run["epochs"]) * room


def test_order_of_the_bounds_of_descent() -> None:
    """Lower bound <= exact = shifts <= refined <= min(composition, Theorem 1); Theorem 1 within (1.57, 4) of shifts."""
    room = 1.0 + 1e-13
    for r in draws("langevin order", 3000, cost=4):
        run = balanced(descent(r))
        if r.random() < 0.5:  # where the orders are close: y near 1 to 4
            y = r.uniform(0.3, 5.0)
            run["steps"] = max(1, min(10**15, round(y / (run["step_size"] * run["strong_convexity"]))))
        low, high = evaluated(quadratic.descent, **run), evaluated(noisy_gd.contraction, **run)
        assert low <= high <= low * (1.0 + 2e-14) + 1e-320, run
        shifts = gaussian.renyi(mu=high, order=2.0)
        best, printed, plotted_value = (
            evaluated(function, **run, order=2.0)
            for function in (noisy_gd.langevin_refined, noisy_gd.langevin, multi_epoch.descent_dynamics)
        )
        composition = evaluated(noisy_gd.composition, **without(run, "step_size", "smoothness", "strong_convexity"))
        assert evaluated(quadratic.langevin, **run, order=2.0) <= shifts, run
        assert shifts <= best * room <= min(gaussian.renyi(mu=composition, order=2.0), printed) * room**2, run
        assert shifts <= plotted_value * room, run
        if shifts > 1e-290:
            assert 1.57 < printed / shifts < 4.0, run
        diameter = run["step_size"] * run["sensitivity"] / run["records"] * log_uniform(r, 1e-3, 1e12)
        convex = evaluated(noisy_gd.domain, **{**run, "strong_convexity": 0.0}, diameter=diameter)
        ever = evaluated(
            multi_epoch.descent_domain,
            **without(run, "steps", "smoothness", "strong_convexity"),
            diameter=diameter,
        )
        assert evaluated(noisy_gd.domain, **run, diameter=diameter) <= convex * room <= ever * room**2, (run, diameter)
        assert convex <= composition * room


# --- extremes ---------------------------------------------------------------------------------------------------------


EXTREME = (5e-324, 1e-300, 1.0, 1e300)
LOSSES = [
    {"step_size": step_size, "smoothness": max(m, 1e-300), "strong_convexity": m}
    for step_size, m in (
        (1.0, 0.0), (1.0, 1.0), (1e-300, 1e300), (1e300, 1e-300), (1.0, 1e-9), (0.5, 1.0), (5e-324, 1e-300)
    )
]  # fmt: skip


@pytest.mark.parametrize("sensitivity", EXTREME)
@pytest.mark.parametrize("noise_std", EXTREME)
def test_extreme_scales(sensitivity: float, noise_std: float) -> None:
    noise = {"sensitivity": sensitivity, "noise_std": noise_std}
    for n, b, loss in itertools.product((1, 3, 10**15), (1, 2, 10**15), LOSSES):
        for index in (1, n):
            run = {"records": n, "index": index, "batch_size": min(b, n), "epochs": 10**15, **noise}
            found = [
                *(evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=d) for d in (1e-300, 1.0, 1e300)),
                evaluated(multi_epoch.cyclic_contraction, **run, **loss), evaluated(multi_epoch.cyclic, **run),
                evaluated(multi_epoch.composition, **run),
                *(evaluated(multi_epoch.cyclic_rdp, **run, order=order) for order in (1.0, 2.0)),
                evaluated(multi_epoch.passes_contraction, **run, **loss),
                evaluated(multi_epoch.passes_dynamics, **run, **loss, order=2.0),
            ]  # fmt: skip
            assert all(x > 0.0 for x in found), (run, loss, found)  # no nan either
            assert found[0] <= found[1] <= found[2] <= found[3] <= found[4] * (1.0 + 1e-12)
            assert evaluated(quadratic.passes, **run, **loss) >= 0.0
    for n, steps, loss in itertools.product((1, 10**15), (1, 2, 10**15), LOSSES):
        run = {"records": n, "steps": steps, **noise}
        functions = [noisy_gd.langevin, noisy_gd.langevin_refined, multi_epoch.descent_dynamics]
        functions += [multi_epoch.descent_langevin] if loss["strong_convexity"] else []
        found = [evaluated(function, **run, **loss, order=2.0) for function in functions]
        ever = {"records": n, **noise, "step_size": loss["step_size"], "diameter": 1.0}
        found += [evaluated(noisy_gd.composition, **run), evaluated(multi_epoch.descent_domain, **ever)]
        assert all(x > 0.0 for x in found), (run, loss, found)
        assert evaluated(quadratic.langevin, **run, **loss, order=2.0) >= 0.0


def test_closed_forms_are_rounded_up_by_next_to_nothing() -> None:
    """Squares of mu, and Renyi divergences, against fractions and 40 digits, at random numbers."""
    for r in draws("closed forms", 40):
        run = {
            "records": r.randrange(2, 10**6), "steps": r.randrange(1, 10**6), "sensitivity": log_uniform(r, 1e-3, 1e3),
            "noise_std": log_uniform(r, 1e-3, 1e3), "step_size": log_uniform(r, 1e-4, 1.0), "smoothness": 1.0,
            "strong_convexity": log_uniform(r, 1e-4, 1.0),
        }  # fmt: skip
        order, descent = log_uniform(r, 1.1, 100.0), noisy_gd.Descent(**run)
        place = {"records": run["records"], "index": 1, "batch_size": 1, "epochs": r.randrange(1, 1000)}
        passes = multi_epoch.Passes(**place, sensitivity=run["sensitivity"], noise_std=run["noise_std"])
        found = {
            "mu": noisy_gd.composition(descent).mu, "passes": multi_epoch.composition(passes).mu,
            "cyclic": multi_epoch.cyclic_rdp(passes).curve(order), "langevin": noisy_gd.langevin(descent).curve(order),
            "refined": noisy_gd.langevin_refined(descent).curve(order),
        }  # fmt: skip
        for of in READINGS:
            a, n, steps, epochs = of(order), run["records"], run["steps"], place["epochs"]
            use = of(run["sensitivity"]) / of(run["noise_std"])
            y = of(run["step_size"]) * of(run["strong_convexity"]) * steps
            with mpmath.workdps(40):
                z = mpmath.mpf(y.numerator) / y.denominator
                share = (1 - mpmath.exp(-z / 2)) / (z / 2)
                refined = mpmath.mpf(1) / 2 if z <= 1 else 2 * (1 - mpmath.exp((1 - z) / 2) / 2) ** 2 / z
                shares = [Fraction(int(x * 10**35)) / 10**35 for x in (share, refined)]
            truth = {
                "mu": (use / n) ** 2 * steps, "passes": use**2 * epochs,
                "cyclic": a * use**2 / 2 * (Fraction(epochs - 1, n) + Fraction(1, n)),
                "langevin": a * (use / n) ** 2 * steps * shares[0], "refined": a * (use / n) ** 2 * steps * shares[1],
            }  # fmt: skip
            for name, value in truth.items():
                square = Fraction(found[name]) ** (2 if name in ("mu", "passes") else 1)
                assert 0 <= square / value - 1 < 2e-14, (name, run, order)
