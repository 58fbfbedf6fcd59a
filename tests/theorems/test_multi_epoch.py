"""Several passes in one order, against exact allocations, exact affine runs and brute force on a bounded domain."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from dpcalc.certify.runs.batches import restarts_cost
from dpcalc.notions import gaussian
from dpcalc.theorems.lower import quadratic
from dpcalc.theorems.many_passes import multi_epoch
from dpcalc.theorems.one_pass import iteration
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
    position,
    tight,
    whole,
)
from tests.oracles import iteration as oracle
from tests.oracles.chains import constant, hockey_stick, last_law, nodes, spring, step


def smooth(r: random.Random) -> dict[str, float]:
    """Step size, smoothness and strong convexity, from hardly contracting to almost forgetting."""
    beta = log_uniform(r, 1e-3, 1e3)
    m = beta * r.choice((1.0, r.random(), 10 ** r.uniform(-18, 0)))
    return {"step_size": r.choice((1.0, 1.9, r.random())) / beta, "smoothness": beta, "strong_convexity": m}


def factor(loss: dict[str, float], of: Any) -> Fraction:
    return oracle.contraction(of(loss["step_size"]), of(loss["smoothness"]), of(loss["strong_convexity"]))


def balanced(loss: dict[str, float]) -> dict[str, float]:
    """The same losses at a step size that the lower bounds allow."""
    limit = 2.0 / (loss["smoothness"] + loss["strong_convexity"])
    return {**loss, "step_size": min(loss["step_size"], 0.999 * limit)}


def small(r: random.Random) -> dict[str, Any]:
    n, b = r.randint(1, 12), r.randint(1, 4)
    steps = -(-n // b)
    return {
        "records": n,
        "index": r.randint(1, n),
        "batch_size": b,
        "epochs": r.randint(1, max(1, 18 // steps)),
        "sensitivity": log_uniform(r, 0.1, 10.0),
        "noise_std": log_uniform(r, 0.1, 10.0),
    }


def large(r: random.Random) -> dict[str, Any]:
    n = whole(r, 1, 10**15)
    return {
        "records": n,
        "index": position(r, n),
        "batch_size": r.choice((1, whole(r, 1, n), n)),
        "epochs": whole(r, 1, 10**12),
        "sensitivity": log_uniform(r, 1e-6, 1e6),
        "noise_std": log_uniform(r, 1e-6, 1e6),
    }


def shape(run: dict[str, Any]) -> tuple[int, int, int]:
    """(size of the record's batch, steps to the end of the pass, steps of a pass)."""
    size, tail = oracle.batch(run["records"], run["index"], run["batch_size"])
    return size, tail, (run["records"] + run["batch_size"] - 1) // run["batch_size"]


def ratio(run: dict[str, Any], of: Any) -> Fraction:
    return of(run["sensitivity"]) / (shape(run)[0] * of(run["noise_std"]))


def reach(run: dict[str, Any], loss: dict[str, float], diameter: float, of: Any) -> Fraction:
    return of(diameter) * shape(run)[0] / (of(loss["step_size"]) * of(run["sensitivity"]))


# --- the optimal allocation -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounded", [False, True])
def test_every_step_allocated_exactly(bounded: bool) -> None:
    for r in draws(f"steps {bounded}", 80, cost=200):
        run, loss = small(r), smooth(r)
        if r.random() < 0.2:
            loss["strong_convexity"] = 0.0
        if bounded:
            shift = loss["step_size"] * run["sensitivity"] / shape(run)[0]
            given = {**run, **loss, "diameter": shift * log_uniform(r, 0.01, 30.0)}
            function = multi_epoch.cyclic_domain
        else:
            given, function = {**run, **loss}, multi_epoch.cyclic_contraction
        _, tail, period = shape(run)
        found = evaluated(function, **given)
        for of in READINGS:
            c = factor(loss, of)
            if c == 0:
                continue
            diameter = reach(run, loss, given["diameter"], of) if bounded else None
            cost = passes.least(period, tail, run["epochs"], c, diameter)
            value = passes.cyclic_mu(ratio(run, of), ball(cost))
            not_below(found, value, call(function, **given))
            if c > Fraction(1, 10**6):  # below, c itself is known to few digits
                tight(found, value, call(function, **given), 1e-9)


def test_restarts_are_best_right_after_a_use() -> None:
    for r in draws("restarts", 60, cost=60):
        uses, period = r.randint(1, 5), r.randint(1, 5)
        tail, c = r.randint(1, period), r.choice((Fraction(1), Fraction(r.randint(1, 99), 100)))
        diameter = Fraction(r.randint(1, 500), 100)
        value = restarts_cost(period, tail, uses, ball(c), ball(diameter))
        cost = passes.least(period, tail, uses, c, diameter)
        assert abs(value - ball(cost)) < ball(cost) / 10**20, (period, tail, uses, c, diameter)


def test_limits() -> None:
    for r in draws("limits", 300, cost=10):
        run, loss = large(r), smooth(r)
        plain = evaluated(multi_epoch.cyclic, **run)
        loss["step_size"] = min(loss["step_size"], 1.0 / loss["smoothness"])
        far = 1.0 / (loss["step_size"] * run["records"] * run["epochs"]) / run["records"]
        flat = {**loss, "strong_convexity": min(1e-18 * far, loss["smoothness"])}
        assert evaluated(multi_epoch.cyclic_contraction, **run, **flat) == pytest.approx(plain, rel=1e-13)
        wide = loss["step_size"] * run["sensitivity"] * run["epochs"] * 10.0
        contracting = evaluated(multi_epoch.cyclic_contraction, **run, **loss)
        assert evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=wide) == pytest.approx(
            contracting, rel=1e-13
        )
        once = {**run, "epochs": 1}
        one_pass = {k: v for k, v in run.items() if k != "epochs"}
        assert evaluated(multi_epoch.cyclic, **once) == pytest.approx(evaluated(iteration.pnsgd, **one_pass), rel=1e-14)
        assert evaluated(multi_epoch.cyclic_rdp, **once, order=3.0) == pytest.approx(
            evaluated(iteration.pnsgd_rdp, **one_pass, order=3.0), rel=1e-13
        )
        assert evaluated(multi_epoch.cyclic_contraction, **once, **loss) == pytest.approx(
            evaluated(iteration.pnsgd_contraction, **one_pass, **loss), rel=1e-12, abs=1e-300
        )
        after = evaluated(
            iteration.pnsgd_domain, **{k: v for k, v in one_pass.items() if k != "sensitivity"}, **loss, diameter=1.0
        )
        assert evaluated(multi_epoch.cyclic_domain, **once, **loss, diameter=1.0) <= (1.0 + 1e-12) * after + 1e-300


def test_monotone_in_position_and_diameter() -> None:
    for r in draws("monotone", 300, cost=10):
        run, loss = {**large(r), "batch_size": 1}, smooth(r)
        later = {**run, "index": r.randint(run["index"], run["records"])}
        diameter = loss["step_size"] * run["sensitivity"] * log_uniform(r, 1e-3, 1e9)
        for given in (run, {**run, "epochs": run["epochs"] + whole(r, 1, 100)}):
            a, b = (evaluated(multi_epoch.cyclic_domain, **x, **loss, diameter=diameter) for x in (given, later))
            if given is run:
                assert a <= b * (1.0 + 1e-12), (run, later, loss, diameter)
            else:
                assert a >= evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter) * (1.0 - 1e-12)
        wider = evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter * (1.0 + r.random()))
        assert wider >= evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter) * (1.0 - 1e-12)


# --- who is below whom ------------------------------------------------------------------------------------------------


def test_order_of_the_bounds() -> None:
    for r in draws("order", 1500, cost=4):
        run, loss = large(r), smooth(r)
        size, _, period = shape(run)
        diameter = loss["step_size"] * run["sensitivity"] / size * log_uniform(r, 1e-3, 1e12)
        plain, composed = evaluated(multi_epoch.cyclic, **run), evaluated(multi_epoch.composition, **run)
        contracting = evaluated(multi_epoch.cyclic_contraction, **run, **loss)
        bounded = evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter)
        room = 1.0 + 1e-13
        assert bounded <= contracting * room <= plain * room**2 <= composed * room**3, (run, loss, diameter)
        printed = evaluated(multi_epoch.passes_contraction, **run, **loss)
        assert contracting <= printed * (1.0 + 4e-12), (run, loss)
        flat = {k: v for k, v in run.items() if k != "epochs"}
        merely_convex = evaluated(
            multi_epoch.cyclic_domain, **run, **{**loss, "strong_convexity": 0.0}, diameter=diameter
        )
        assert merely_convex <= room * evaluated(
            multi_epoch.passes_domain, **flat, step_size=loss["step_size"], diameter=diameter
        ), (run, loss, diameter)
        if period > 1:
            dynamics = evaluated(multi_epoch.passes_dynamics, **run, **loss, order=2.0)
            last = evaluated(multi_epoch.passes_dynamics, **{**run, "index": run["records"]}, **loss, order=2.0)
            assert contracting**2 <= dynamics * (1.0 + 1e-11), (run, loss)
            assert printed**2 <= last * (1.0 + 1e-11) or period % 2 or shape({**run, "index": run["records"]})[0] > size
        assert evaluated(quadratic.passes, **run, **balanced(loss)) <= evaluated(
            multi_epoch.cyclic_contraction, **run, **balanced(loss)
        )
        linear = evaluated(quadratic.passes, **run, **{**balanced(loss), "strong_convexity": 0.0})
        assert linear <= plain <= linear * math.sqrt(1.0 + period / run["epochs"]) * room


def test_printed_formulas() -> None:
    for r in draws("printed", 300, cost=10):
        run, loss = large(r), smooth(r)
        _, tail, period = shape(run)
        diameter = log_uniform(r, 1e-3, 1e3)
        flat = {k: v for k, v in run.items() if k != "epochs"} | {"step_size": loss["step_size"], "diameter": diameter}
        typed = READINGS[1]
        far, r1 = reach(run, loss, diameter, typed), ratio(run, typed)
        if abs(far - round(far)) < far / 10**12:
            continue  # whole or not: a matter of the reading
        share = 1 + (3 * far + math.ceil(far)) / period
        value = passes.cyclic_mu(r1, ball(share))
        tight(
            evaluated(multi_epoch.passes_domain, **flat),
            value,
            call(multi_epoch.passes_domain, **flat),
            1e-12,
        )
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

        what = call(multi_epoch.passes_dynamics, **run, **loss, order=3.0)
        tight(
            evaluated(multi_epoch.passes_dynamics, **run, **loss, order=3.0),
            adaptive(dynamics, bits=60),
            what,
            1e-11,
        )


# --- the truth --------------------------------------------------------------------------------------------------------


def test_quadratic_losses_are_what_they_are_said_to_be() -> None:
    for r in draws("quadratic", 400, cost=10):
        run, loss = small(r), balanced(smooth(r))
        if r.random() < 0.3:
            loss["strong_convexity"] = 0.0
        _, tail, period = shape(run)
        used = passes.shifts(period, tail, run["epochs"])
        found, what = evaluated(quadratic.passes, **run, **loss), call(quadratic.passes, **run, **loss)
        guarantee = evaluated(multi_epoch.cyclic_contraction, **run, **loss)
        for of in READINGS:
            q = 1 - of(loss["step_size"]) * of(loss["strong_convexity"])
            if q < 0:
                continue
            square = passes.affine_square([q] * len(used), used)
            value = passes.cyclic_mu(ratio(run, of), ball(square))
            assert not ball(found) > value, what
            not_below(guarantee, value, what)
            if q > Fraction(1, 1000):
                tight(found, value, what, 1e-11)


def test_no_affine_run_is_above_the_bounds() -> None:
    """Every step its own curvature between m and beta, whether or not it uses the record."""
    for r in draws("affine", 400, cost=10):
        run, loss = small(r), smooth(r)
        _, tail, period = shape(run)
        eta, beta, m = (exact(loss[k]) for k in ("step_size", "smoothness", "strong_convexity"))
        curvatures = [r.choice((m, beta, m + (beta - m) * Fraction(r.random()))) for _ in range(period)]
        slopes = [1 - eta * h for h in curvatures] * run["epochs"]
        used = passes.shifts(period, tail, run["epochs"])
        value = passes.cyclic_mu(ratio(run, exact), ball(passes.affine_square(slopes, used)))
        for function in (multi_epoch.cyclic_contraction, multi_epoch.passes_contraction):
            not_below(evaluated(function, **run, **loss), value, call(function, **run, **loss))
        if eta * beta <= 2:
            not_below(evaluated(multi_epoch.cyclic, **run), value, call(multi_epoch.cyclic, **run))


def test_no_run_on_an_interval_is_above_the_bounds() -> None:
    """Two laws computed by quadrature: springs and constant pulls on an interval, up to a few passes."""
    for r in draws("interval", 12, cost=1000):
        period, epochs = r.randint(1, 4), r.randint(1, 8)
        index, eta, width = r.randint(1, period), 1.0, log_uniform(r, 0.3, 5.0)
        sigma = log_uniform(r, 0.3, 2.0)
        curvature = r.choice((0.0, 0.05, 0.3))
        low, high = -width / 2, width / 2
        if curvature:
            pulls = [spring(curvature, r.uniform(low, high), low, high) for _ in range(period)]
            x, x_prime = spring(curvature, low, low, high), spring(curvature, high, low, high)
            delta = curvature * width
        else:
            delta = width * r.choice((0.1, 0.5, 2.0))
            pulls = [constant(r.uniform(-delta, delta) / 2, low, high) for _ in range(period)]
            x, x_prime = constant(-delta / 2, low, high), constant(delta / 2, low, high)
        start = r.choice((low, 0.0, high))
        grid = nodes(low, high, sigma / 2, start=start, count=400)
        laws = []
        for own in (x, x_prime):
            order = [own if t == index - 1 else pulls[t] for t in range(period)]
            made = [step(grid, grid.points - eta * g(grid.points), eta * sigma, "gaussian") for g in order]
            laws.append(last_law(grid.start, made * epochs))
        run = {
            "records": period, "index": index, "batch_size": 1, "epochs": epochs, "sensitivity": delta,
            "noise_std": sigma, "step_size": eta, "smoothness": max(curvature, 1e-9), "strong_convexity": curvature,
            "diameter": width,
        }  # fmt: skip
        mu = evaluated(multi_epoch.cyclic_domain, **run)
        for epsilon in (0.0, 0.3, 1.0, 3.0):
            truth = hockey_stick(*laws, epsilon, 1e-9)
            assert truth <= gaussian.delta(mu=mu, epsilon=epsilon) * (1.0 + 1e-7), (run, epsilon)
        assert hockey_stick(*laws, 0.0, 1e-9) > 0.0


# --- inverse, the paper's corollary, extremes -------------------------------------------------------------------------


def test_noise_ends_on_the_safe_side() -> None:
    for r in draws("noise", 300, cost=20):
        n = whole(r, 1, 10**9)
        run = {"records": n, "index": position(r, n), "batch_size": whole(r, 1, n), "epochs": whole(r, 1, 10**4)}
        run["sensitivity"] = 2.0
        e, log_delta = log_uniform(r, 1e-3, 100.0), -log_uniform(r, 0.1, 1e3)
        sigma = multi_epoch.cyclic_noise_std(**run, epsilon=e, log_delta=log_delta)
        mu = evaluated(multi_epoch.cyclic, **run, noise_std=sigma)
        most = gaussian.largest_mu(epsilon=e, log_delta_target=log_delta)
        size, tail, period = shape(run)
        value = oracle.cyclic_mu(period, period - tail + 1, run["epochs"], exact(2.0) / size, exact(sigma))
        assert not value > ball(most), (run, e, log_delta)
        assert mu >= most * (1.0 - 1e-13), (run, e, log_delta)


def test_corollary_certifies_what_it_promises() -> None:
    for r in draws("corollary", 300, cost=20):
        e = log_uniform(r, 1e-3, 10.0)
        log_delta = -2.5 * e * log_uniform(r, 1.0, 100.0)
        assert multi_epoch.corollary_epsilon(lipschitz=1.5, epsilon=e, log_delta=log_delta) <= e, (e, log_delta)


EXTREME = (5e-324, 1e-300, 1.0, 1e300)


@pytest.mark.parametrize("sensitivity", EXTREME)
@pytest.mark.parametrize("noise_std", EXTREME)
@pytest.mark.parametrize("diameter", [1e-300, 1.0, 1e300])
def test_extreme_scales(sensitivity: float, noise_std: float, diameter: float) -> None:
    for n, b in ((1, 1), (10**15, 1), (10**15, 10**15), (10**15 - 1, 2), (3, 2)):
        for index in (1, n):
            for step_size, m in ((1.0, 0.0), (1.0, 1.0), (1e-300, 1e300), (1e300, 1e-300), (1.0, 1e-9), (0.5, 1.0)):
                run = {
                    "records": n, "index": index, "batch_size": b, "epochs": 10**15, "sensitivity": sensitivity,
                    "noise_std": noise_std,
                }  # fmt: skip
                loss = {"step_size": step_size, "smoothness": max(m, 1e-300), "strong_convexity": m}
                found = [
                    evaluated(multi_epoch.cyclic, **run),
                    evaluated(multi_epoch.cyclic_rdp, **run, order=2.0),
                    evaluated(multi_epoch.cyclic_rdp, **run, order=1.0),
                    evaluated(multi_epoch.composition, **run),
                    evaluated(multi_epoch.cyclic_contraction, **run, **loss),
                    evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter),
                    evaluated(multi_epoch.passes_contraction, **run, **loss),
                    evaluated(multi_epoch.passes_dynamics, **run, **loss, order=2.0),
                ]
                assert all(x > 0.0 for x in found), (run, loss, found)  # no nan either
                assert evaluated(quadratic.passes, **run, **loss) >= 0.0
                assert found[5] <= found[4] <= found[0] * (1.0 + 1e-12)


def test_extreme_ratios_against_the_truth() -> None:
    """Where products of the parameters leave the doubles although mu does not."""
    for r in draws("wide", 400, cost=10):
        period = r.randint(1, 6)
        run = {"records": period, "index": r.randint(1, period), "batch_size": 1, "epochs": whole(r, 1, 10**6)}
        run["sensitivity"], run["noise_std"] = log_uniform(r, 1e-300, 1e300), log_uniform(r, 1e-300, 1e300)
        eta = log_uniform(r, 1e-300, 1e300)
        diameter = log_uniform(r, 1e-300, 1e300)
        loss = {"step_size": eta, "smoothness": 1.0 / eta, "strong_convexity": 0.0}
        value = passes.cyclic_mu(
            ratio(run, exact),
            passes.optimum(
                period, period - run["index"] + 1, run["epochs"], Fraction(1), reach(run, loss, diameter, exact)
            ),
        )
        found = evaluated(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter)
        what = call(multi_epoch.cyclic_domain, **run, **loss, diameter=diameter)
        not_below(found, value, what)
        if value < ball(Fraction(10) ** 308) and value > ball(1 / Fraction(10) ** 300):
            tight(found, value, what, 1e-12)
