"""Hölder losses: stability against coupled runs, privacy against brute force, risk against simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from dpcalc.engine.answer import answer
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model import loss as losses
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.notions.conversions import Risk
from dpcalc.notions.guarantee import Composition
from dpcalc.report import Case
from dpcalc.theorems.holder import dp_sgd, holder
from dpcalc.theorems.holder.published_gradient_noise import Theorem11, lemma13_epsilon
from dpcalc.theorems.record import all_bounds, costs, lookup
from dpcalc.theorems.risk import generalisation, holder_cost, holder_sgd
from dpcalc.theorems.risk.sgd import Sgd
from tests.formulas import evaluated, run_of
from tests.oracles import READINGS, draws, log_uniform, whole

Gradient = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


# --- the losses of the simulations ----------------------------------------------------------------------------------


def hinge(q: float) -> Gradient:
    def gradient(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
        slack = 1.0 - y * (w @ x)
        return -q * slack ** (q - 1.0) * y * x if slack > 0.0 else 0.0 * x

    return gradient


def absolute(q: float) -> Gradient:
    def gradient(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
        r = y - w @ x
        return -q * abs(r) ** (q - 1.0) * np.sign(r) * x

    return gradient


def logistic(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return -y * x / (1.0 + math.exp(y * (w @ x)))


def huber(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return -float(np.clip(y - w @ x, -0.5, 0.5)) * x


def squares(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    return -(y - w @ x) * x


def steepest_coordinate(w: np.ndarray, x: np.ndarray, y: float) -> np.ndarray:
    """max_j w_j for most records, a linear loss for the one with y = 2: what moves two runs apart the most."""
    if y == 2.0:
        return x
    unit = np.zeros_like(x)
    unit[int(np.argmax(w))] = 1.0
    return unit


R = 1.5


class Known(NamedTuple):
    """What the bounds need to know of a loss."""

    holder_exponent: float
    holder_constant: float
    gradient_at_zero: float
    loss_at_zero: float
    lipschitz: float


def known(name: str, exponent: float | None = None, **parameters: float) -> Known:
    loss = losses.of(name, feature_bound=1.0, radius=R, **parameters)
    exponent = loss.exponent if exponent is None else exponent
    return Known(exponent, loss.hoelder_constant(exponent), loss.gradient_at_zero, loss.loss_at_zero, loss.lipschitz)


MODELS: dict[str, tuple[Gradient, Known]] = {
    "hinge": (hinge(1.0), known("hinge")),
    "hinge^1.5": (hinge(1.5), known("hinge", power=1.5)),
    "abs": (absolute(1.0), known("absolute", label_bound=1.0)),
    "abs^1.25": (absolute(1.25), known("absolute", label_bound=1.0, power=1.25)),
    "logistic": (logistic, known("logistic")),
    "logistic^0.5": (logistic, known("logistic", 0.5)),
    "huber": (huber, known("huber", label_bound=1.0, huber_threshold=0.5)),
    "squares": (squares, known("squares", label_bound=1.0)),
    "max": (steepest_coordinate, Known(0.0, math.sqrt(2.0), 1.0, 0.0, 1.0)),
}


def project(w: np.ndarray) -> np.ndarray:
    norm = float(np.linalg.norm(w))
    return w * (R / norm) if norm > R else w


def coupled(
    gradient: Gradient, g: np.random.Generator, n: int, steps: int, eta: float, dimension: int, l2: float, most: bool
) -> tuple[int, float]:
    """Run SGD on two data sets with the same draws; return the number of hits and how far apart the runs got."""
    x = g.normal(size=(n, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.sign(g.normal(size=n))
    other, label = -x[0], float(y[0])
    if most:
        y[0] = label = 2.0
    drawn = g.integers(n, size=steps)
    w, v = np.zeros(dimension), np.zeros(dimension)
    apart, sum_w, sum_v = 0.0, w, v
    for i in drawn:
        gw = gradient(w, x[i], float(y[i])) + l2 * w
        gv = (gradient(v, other, label) if i == 0 else gradient(v, x[i], float(y[i]))) + l2 * v
        w, v = project(w - eta * gw), project(v - eta * gv)
        sum_w, sum_v = sum_w + w, sum_v + v
        apart = max(apart, float(np.linalg.norm(w - v)))
    assert float(np.linalg.norm(sum_w - sum_v)) / steps <= apart + 1e-12
    return int((drawn == 0).sum()), apart


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("l2", [0.0, 0.5])
def test_no_coupled_runs_are_further_apart_than_the_hits_allow(name: str, l2: float) -> None:
    gradient, known = MODELS[name]
    assert known.lipschitz is not None
    for seed in range(6):
        g = np.random.default_rng(seed)
        n, steps = (3, 60) if seed % 2 else (20, 150)
        eta = float(g.choice([0.02, 0.2, 0.6]))
        hits, apart = coupled(gradient, g, n, steps, eta, 30 if name == "max" else 3, l2, name == "max")
        allowed = holder.stability(
            steps=steps, step_size=eta, holder_exponent=known.holder_exponent, holder_constant=known.holder_constant,
            gradient=known.lipschitz, strong_convexity=l2,
        )(hits)  # fmt: skip
        assert apart <= allowed * (1.0 + 1e-12), (name, seed, eta, hits)


def test_the_drift_of_losses_that_are_not_smooth_is_real() -> None:
    """Runs that were moved apart once drift further, by about half of what is allowed."""
    gradient, known = MODELS["max"]
    g = np.random.default_rng(3)
    steps, eta = 300, 0.002
    x = g.normal(size=400)
    w, v = 1e-9 * x, -1e-9 * x
    for _ in range(steps):
        w, v = w - eta * gradient(w, x, 1.0), v - eta * gradient(v, x, 1.0)
    apart = float(np.linalg.norm(w - v))
    allowed = holder.stability(
        steps=steps, step_size=eta, holder_exponent=0.0, holder_constant=known.holder_constant, gradient=1.0
    )(1)
    assert 0.3 * allowed <= apart <= allowed


@pytest.mark.parametrize("name", MODELS)
def test_constants_of_losses_are_never_exceeded(name: str) -> None:
    gradient, known = MODELS[name]
    assert known.lipschitz is not None
    g = np.random.default_rng(1)
    for _ in range(400):
        x = g.normal(size=2)
        x /= np.linalg.norm(x)
        w, v = g.normal(size=(2, 2)) * 10.0 ** g.uniform(-3.0, 1.5)
        y = float(np.sign(g.normal()))
        moved = float(np.linalg.norm(gradient(w, x, y) - gradient(v, x, y)))
        distance = float(np.linalg.norm(w - v))
        assert moved <= known.holder_constant * distance**known.holder_exponent * (1.0 + 1e-9)
        assert np.linalg.norm(gradient(0.0 * w, x, y)) <= known.gradient_at_zero * (1.0 + 1e-12)
        assert np.linalg.norm(gradient(project(w), x, y)) <= known.lipschitz * (1.0 + 1e-9)


def test_unconstrained_runs_stay_within_reach() -> None:
    for name in ("hinge", "hinge^1.5", "logistic", "squares", "abs^1.25"):
        gradient, known = MODELS[name]
        for seed in range(3):
            g = np.random.default_rng(seed)
            eta = min(1.0, 1.0 / known.holder_constant) * float(g.choice([0.1, 1.0]))
            w, steps = np.zeros(2), 200
            for _ in range(steps):
                x = g.normal(size=2)
                w = w - eta * gradient(w, x / np.linalg.norm(x), float(np.sign(g.normal())))
                within = holder.reach(
                    steps=steps, step_size=eta, holder_exponent=known.holder_exponent,
                    holder_constant=known.holder_constant, loss_at_zero=known.loss_at_zero,
                )  # fmt: skip
                assert np.linalg.norm(w) <= within


def test_stability_is_never_above_what_is_published() -> None:
    for r in draws("published stability", 60, cost=20):
        n, steps = whole(r, 1, 10**4), whole(r, 1, 10**4)
        given: dict[str, Any] = {
            "step_size": log_uniform(r, 1e-4, 0.2), "holder_exponent": r.choice((0.0, 1.0, r.random())),
            "holder_constant": log_uniform(r, 0.1, 5.0), "gradient": log_uniform(r, 0.1, 5.0),
        }  # fmt: skip
        chance = -log_uniform(r, 3.0, 50.0)
        published = holder.stability_published(records=n, steps=steps, log_chance=chance, **given)
        hits = holder.hits_quantile(records=n, steps=steps, log_chance=chance)
        assert holder.stability(steps=steps, **given)(hits) <= published * (1.0 + 1e-12)


# --- against forty digits --------------------------------------------------------------------------------------------


def mp_drift(alpha: mp.mpf, constant: mp.mpf, eta: mp.mpf) -> mp.mpf:
    return mp.sqrt((1 - alpha) / (1 + alpha)) * (mp.power(2, -alpha) * constant * eta) ** (1 / (1 - alpha))


@pytest.mark.parametrize("reading", READINGS, ids=["double", "decimal"])
def test_constants_are_never_below_forty_digits(reading: Callable[[float], Any]) -> None:
    def number(x: float) -> mp.mpf:
        q = reading(x)
        return mp.mpf(q.numerator) / q.denominator

    with mp.workdps(50):
        for r in draws("holder constants", 150, cost=20):
            alpha = r.choice(
                (r.random(), round(r.random(), 2), 1.0 - log_uniform(r, 1e-6, 0.1), log_uniform(r, 1e-9, 0.1))
            )
            alpha = min(max(alpha, 1e-9), 1.0 - 1e-9)
            constant, eta = log_uniform(r, 1e-3, 1e3), log_uniform(r, 1e-6, 1.0)
            at_zero, loss, steps = log_uniform(r, 1e-3, 1e3), log_uniform(r, 1e-3, 1e3), whole(r, 1, 10**9)
            a, big_l, e, m, m0 = (number(x) for x in (alpha, constant, eta, at_zero, loss))
            known: dict[str, Any] = {"holder_exponent": alpha, "holder_constant": constant}
            power = (2 / (1 - a)) * mp.log(big_l)
            true = {
                "drift": (holder.log_drift(**known, step_size=eta), mp.log(mp_drift(a, big_l, e))),
                "self": (
                    math.log(holder.self_bounding(**known, gradient_at_zero=at_zero)),
                    a / (1 + a) * mp.log(1 + 1 / a) + mp.log(big_l) / (1 + a),
                ),
                "ball": (
                    math.log(holder.gradient_within(radius=eta, **known, gradient_at_zero=at_zero)),
                    mp.log(m + big_l * e**a),
                ),
            }
            if power < 600:
                growth = holder.growth(**known, gradient_at_zero=at_zero, loss_at_zero=loss)
                true["growth"] = (math.log(growth), mp.log((1 - a) / (1 + a) * mp.exp(power) + 2 * m0))
            if eta * constant <= 0.99:
                reach = holder.reach(steps=steps, step_size=eta, **known, loss_at_zero=loss)
                each = (1 - a) / (1 + a) * (e * big_l) ** (2 / (1 - a)) + 2 * e * m0
                true["reach"] = (math.log(reach), mp.log(steps * each) / 2)
            for name, (found, exact) in true.items():
                # The logarithm of what is found is rounded, too.
                room = 2e-16 * (1 + abs(exact)) if name != "drift" else 0
                assert found >= exact - room, (name, alpha, constant, eta)
                assert found <= exact + 1e-8 * (1 + abs(exact)), (name, alpha, constant, eta)


@pytest.mark.parametrize("reading", READINGS, ids=["double", "decimal"])
def test_distances_are_never_below_forty_digits(reading: Callable[[float], Any]) -> None:
    def number(x: float) -> mp.mpf:
        q = reading(x)
        return mp.mpf(q.numerator) / q.denominator

    with mp.workdps(50):
        for r in draws("holder distances", 150, cost=20):
            alpha, constant, eta = r.choice((0.0, 0.5, 0.9, r.random())), log_uniform(r, 1e-3, 10.0), r.random() * 0.9
            g, n, steps = log_uniform(r, 1e-3, 1e3), whole(r, 1, 10**9), whole(r, 1, 10**9)
            chance = -log_uniform(r, 0.1, 1e4)
            hits = min(steps, whole(r, 1, 1000))
            a, big_l, e, big_g, x = (number(v) for v in (alpha, constant, eta, g, -chance))
            b, drift = 2 * e * big_g, mp_drift(a, big_l, e)
            small = min(b, drift)
            given: dict[str, Any] = {
                "step_size": eta, "holder_exponent": alpha, "holder_constant": constant, "gradient": g,
            }  # fmt: skip
            found = holder.stability(steps=steps, **given)(hits)
            exact = (hits - 1) * b + mp.sqrt(b * b + (steps - hits) * small**2)
            assert exact <= found <= exact * (1 + mp.mpf("1e-9"))
            rate = mp.mpf(n) / steps
            kappa = (1 + max(mp.sqrt(3 * rate * x), 3 * rate * x)) / rate
            wide = mp.sqrt(mp.e * (drift**2 * steps + b * b * (1 + kappa) * kappa))
            found = holder.stability_published(records=n, steps=steps, log_chance=chance, **given)
            assert wide <= found <= wide * (1 + mp.mpf("1e-9"))
            m = r.random() * 0.9
            curved = holder.after_hits_curved(hits=hits, use=g, shrink=m)
            exact = big_g * (1 - (1 - number(m)) ** hits) / number(m)
            assert exact <= curved <= exact * (1 + mp.mpf("1e-12"))


# --- privacy, noise on the output ----------------------------------------------------------------------------------


def output_case(**given: Any) -> dict[str, Any]:
    return {
        "records": 3, "steps": 3, "step_size": 0.3, "noise_std": 0.2, "holder_exponent": 1.0, "holder_constant": 1e-9,
        "strong_convexity": 0.0, "batch_size": 1, "lipschitz": 1.0, **given,
    }  # fmt: skip


@pytest.mark.parametrize(("n", "steps"), [(1, 2), (2, 4), (3, 5)])
@pytest.mark.parametrize("noise_std", [0.1, 0.4])
def test_mixture_is_never_below_brute_force(n: int, steps: int, noise_std: float) -> None:
    """Linear losses in one dimension: the output's law is a mixture of normal laws over all draws."""
    eta, grid = 0.3, np.linspace(-6.0, 6.0, 40001)

    def density(first: float) -> np.ndarray:
        total = np.zeros_like(grid)
        for drawn in itertools.product(range(n), repeat=steps):
            w, average = 0.0, 0.0
            for i in drawn:
                w -= eta * (first if i == 0 else (-1.0) ** i)
                average = average + w  # of w_2, ..., w_(T+1): no earlier average is further apart
            total += stats.norm.pdf(grid, average / steps, noise_std)
        return total / n**steps

    p, q = density(1.0), density(-1.0)
    for epsilon in (0.0, 0.5, 2.0):
        told = float(np.sum(np.maximum(0.0, p - math.exp(epsilon) * q)) * (grid[1] - grid[0]))
        given = output_case(records=n, steps=steps, noise_std=noise_std, step_size=eta)
        assert math.exp(evaluated(dp_sgd.output, **given, epsilon=epsilon)) >= told * (1.0 - 1e-6)


def test_mixture_is_the_mean_over_hits() -> None:
    for n, steps, epsilon in ((7, 13, 0.4), (40, 300, 1.5), (500, 500, 0.0), (2, 900, 3.0)):
        given = output_case(
            records=n, steps=steps, holder_exponent=0.5, holder_constant=0.8, step_size=0.05, noise_std=0.5
        )
        apart = holder.stability(steps=steps, step_size=0.05, holder_exponent=0.5, holder_constant=0.8, gradient=1.0)
        weights = stats.binom.pmf(np.arange(steps + 1), steps, 1.0 / n)
        told = math.fsum(
            weights[k] * gaussian.delta(mu=apart(k) / 0.5, epsilon=epsilon) for k in range(steps + 1) if weights[k]
        )
        found = evaluated(dp_sgd.output, **given, epsilon=epsilon)
        assert math.log(told) - 1e-11 <= found <= math.log(told) + 1e-10


def test_splitting_delta_is_never_better_than_the_mixture() -> None:
    for r in draws("split and mixture", 40, cost=50):
        given = output_case(
            records=whole(r, 1, 10**5), steps=whole(r, 1, 10**5), step_size=log_uniform(r, 1e-4, 1.0),
            noise_std=log_uniform(r, 1e-2, 1e2), holder_exponent=r.random(),
        )  # fmt: skip
        epsilon = r.uniform(0.0, 4.0)
        mixed, split = (evaluated(f, **given, epsilon=epsilon) for f in (dp_sgd.output, dp_sgd.output_split))
        assert mixed <= split + 1e-9 * (1.0 + abs(split))


def test_an_l2_term_helps_smooth_losses_alone() -> None:
    smooth = output_case(records=50, steps=2000, noise_std=5.0, holder_constant=0.25)
    assert evaluated(dp_sgd.output, **{**smooth, "strong_convexity": 0.1}, epsilon=1.0) < evaluated(
        dp_sgd.output, **smooth, epsilon=1.0
    )
    # Without a Hölder constant of its own the l2 term only contracts, which is not made use of where alpha < 1.
    rough = {**smooth, "holder_exponent": 0.5}
    assert evaluated(dp_sgd.output, **{**rough, "strong_convexity": 0.1}, epsilon=1.0) >= evaluated(
        dp_sgd.output, **rough, epsilon=1.0
    )


def ask(algorithm: str, question: Question, only: tuple[str, ...] = (), **given: Any) -> Case:
    return answer(describe(algorithm, given), question, [lookup(name) for name in only] or None)


def at(epsilon: float | None, delta: float) -> Question:
    return Question(epsilon, delta, math.log(delta))


OUTPUT = {
    "records": 1000, "step_size": 0.02, "holder_exponent": 0.5, "holder_constant": 1.5, "gradient_at_zero": 1.5,
    "radius": 2.0,
}  # fmt: skip


def test_output_queries_there_and_back() -> None:
    case = ask("dp-sgd-output", at(1.0, 1e-6), **OUTPUT)
    found = {row.bound: row.value for row in case.results}
    assert found["dp_sgd.output"] < found["dp_sgd.output_split"] < found["dp_sgd.output_published"]
    assert found["dp_sgd.output_published"] == pytest.approx(85.2305782567513, rel=1e-8)
    assert case.inputs["steps"] == (1000, "default")
    for name, sigma in found.items():
        back = ask("dp-sgd-output", at(None, 1e-6), (name,), **OUTPUT, noise_std=sigma)
        assert back.best is not None
        assert back.best.value <= 1.0
        less = ask("dp-sgd-output", at(None, 1e-6), (name,), **OUTPUT, noise_std=sigma * 0.999)
        assert less.best is not None
        assert less.best.value > 1.0


@pytest.mark.parametrize(
    ("change", "says", "cure"),
    [
        ({"holder_exponent": 1.0, "step_size": 1.4}, "exceeds 1.33333", "--step-size"),
        ({"radius": None}, "no bound on the gradient", "--radius"),
        ({"radius": None, "loss_at_zero": 1.0, "step_size": 0.7}, "at most min(1, 1/holder_constant)", "--radius"),
        ({"radius": None, "loss_at_zero": 1.0, "strong_convexity": 0.1}, "l2 term", "--lipschitz"),
        ({"strong_convexity": 60.0}, "is not below 1", "--step-size"),
        ({"batch_size": 2}, "batch size is 2", "--batch-size 1"),
        ({"laplace_scale": 1.0}, "needs noise_std", "--noise-std"),
        ({"holder_exponent": None}, "needs holder_exponent", "--holder-exponent"),
    ],
)
def test_output_refusals_name_the_clause_and_a_cure(change: dict[str, Any], says: str, cure: str) -> None:
    with pytest.raises(DpcalcError) as caught:
        ask("dp-sgd-output", at(1.0, 1e-6), **{**OUTPUT, **change})
    assert says in caught.value.message
    assert cure in (caught.value.hint or "")


def test_the_published_output_bound_is_withheld_where_the_classic_mechanism_is_not_private() -> None:
    case = ask("dp-sgd-output", at(None, 1e-6), **OUTPUT, noise_std=5.0)
    assert "dp_sgd.output_published" in {o.bound for o in case.obstacles}


def test_records_are_solved_for_only_at_a_given_number_of_steps() -> None:
    given = {k: v for k, v in OUTPUT.items() if k != "records"}
    with pytest.raises(DpcalcError, match="the number of steps moves with them"):
        ask("dp-sgd-output", Question(1.0, 1e-6, math.log(1e-6), (), "records"), **given, noise_std=3.0)
    case = ask("dp-sgd-output", Question(1.0, 1e-6, math.log(1e-6), (), "records"), **given, noise_std=3.0, steps=1000)
    assert case.best is not None
    n = int(case.best.value)
    for records, met in ((n, True), (n - 1, False)):
        back = ask(
            "dp-sgd-output", at(None, 1e-6), (case.best.bound,), **given, noise_std=3.0, steps=1000, records=records
        )
        assert back.best is not None
        assert (back.best.value <= 1.0) == met


@pytest.mark.parametrize("records", [1, 10**3, 10**9])
@pytest.mark.parametrize("delta", [1e-300, 1e-6])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.999999, 1.0])
def test_extreme_runs_are_solved(records: int, delta: float, alpha: float) -> None:
    given = {
        "records": records, "steps": 10**9, "step_size": 1e-6, "holder_exponent": alpha, "holder_constant": 1.0,
        "gradient_at_zero": 1.0, "loss_at_zero": 1.0,
    }  # fmt: skip
    case = ask("dp-sgd-output", at(1.0, delta), ("dp_sgd.output",), **given)
    assert case.best is not None
    assert 0.0 < case.best.value < math.inf
    back = ask("dp-sgd-output", at(None, delta), ("dp_sgd.output",), **given, noise_std=case.best.value)
    assert back.best is not None
    assert back.best.value <= 1.0


# --- privacy, noise on every gradient ------------------------------------------------------------------------------


def test_gradient_bounds_are_ordered() -> None:
    case = ask("dp-sgd-gradient", at(None, 1e-8), records=10**4, lipschitz=1.0, noise_std=2.0)
    found = {row.bound: row.value for row in case.results}
    assert found["dp_sgd.gradient"] < found["dp_sgd.gradient_renyi"] < found["dp_sgd.gradient_lemma"]


@pytest.mark.campaign
def test_gradient_bounds_are_ordered_and_met() -> None:
    """n = T = 1e4, epsilon = 1, delta = 1e-8: 0.630 2G by the law of the loss, 2.56 2G as published."""
    case = ask("dp-sgd-gradient", at(1.0, 1e-8), records=10**4, lipschitz=1.0)
    found = {row.bound: row.value for row in case.results}
    assert found["dp_sgd.gradient"] == pytest.approx(2.0 * 0.630, rel=2e-3)
    assert found["dp_sgd.gradient_published"] == pytest.approx(2.0 * 2.560, rel=1e-3)
    assert found["dp_sgd.gradient"] < found["dp_sgd.gradient_renyi"] < found["dp_sgd.gradient_lemma"]
    kinds = {row.bound: row.kind for row in case.results}
    assert kinds.pop("dp_sgd.gradient_published") == "published"
    assert set(kinds.values()) == {"upper"}
    ball = {"radius": 1.0, "holder_exponent": 0.0, "holder_constant": 0.5, "gradient_at_zero": 0.5}
    same = [
        ask("dp-sgd-gradient", at(None, 1e-8), ("dp_sgd.gradient_lemma",), records=10**4, noise_std=8.0, **known)
        for known in ({"lipschitz": 1.0}, ball, {**ball, "lipschitz": 3.0})
    ]
    assert len({round(row.best.value, 9) for row in same if row.best}) == 1


def test_batches_and_epochs() -> None:
    by_epochs = describe("dp-sgd-gradient", {"records": 1000, "batch_size": 30, "epochs": 2, "lipschitz": 1.0})
    assert by_epochs.values["steps"] == 68
    few, many = (
        ask("dp-sgd-gradient", at(None, 1e-6), ("dp_sgd.gradient_renyi",), records=10**4, steps=steps, batch_size=m,
            lipschitz=1.0, noise_std=2.0 / m)
        for steps, m in ((10**4, 1), (10**2, 100))
    )  # fmt: skip
    assert few.best is not None
    assert many.best is not None
    assert few.best.value < many.best.value


def test_the_noise_of_theorem_11_alone_is_not_private() -> None:
    """Without its conditions it names a 27th of the noise that is needed at n = T = 1e6."""
    budget = Theorem11(records=10**6, steps=10**6, batch_size=1, epsilon=1.0, log_delta=math.log(1e-12))
    assert math.sqrt(budget.square(budget.best_share)) == pytest.approx(0.0198, rel=1e-2)
    with pytest.raises(NotApplicable, match=r"condition \(32\)") as caught:
        budget.noise_std(budget.best_share, gradient=1.0)
    assert caught.value.hint
    many = budget.changed(steps=10**9, epsilon=0.01)
    with pytest.raises(NotApplicable, match=r"condition \(33\)") as caught:
        many.noise_std(1e-3, gradient=1.0)
    assert caught.value.hint


def test_theorem_11_refuses_where_no_share_is_feasible() -> None:
    case = ask("dp-sgd-gradient", at(None, 1e-8), records=10**4, lipschitz=1.0, noise_std=1.0)
    assert {"dp_sgd.gradient_lemma", "dp_sgd.gradient_published"} <= {o.bound for o in case.obstacles}
    assert case.best is not None
    assert case.best.bound == "dp_sgd.gradient"
    with pytest.raises(DpcalcError) as caught:
        ask("dp-sgd-gradient", at(1.0, 1e-8), records=10**4, holder_exponent=0.5, holder_constant=1.0)
    assert "--radius" in (caught.value.hint or "")
    assert "--gradient-at-zero" in (caught.value.hint or "")


def test_lemma_13_is_sufficient() -> None:
    for n in (18, 25, 44, 219, 1000, 10**6):
        epsilon = max(lemma13_epsilon(records=n)) * (1.0 + 1e-9)
        budget = Theorem11(records=n, steps=n, batch_size=1, epsilon=epsilon, log_delta=-2.0 * math.log(n))
        share = 7.0 * math.log(n) / (9.0 * n * epsilon)
        assert budget.square(share) >= 0.67
        assert budget.slack(share) >= 0.0
    with pytest.raises(NotApplicable):
        lemma13_epsilon(records=17)


def test_renyi_of_a_step_is_never_below_an_instance() -> None:
    """A record that moves the gradient by plus or minus half the sensitivity, in the batch with chance p."""
    for r in draws("sampled instances", 40, cost=20):
        p, s, order = log_uniform(r, 1e-4, 0.5), log_uniform(r, 0.6, 6.0), r.randint(2, 12)
        x = np.linspace(-30.0 * s - 15.0, 30.0 * s + 15.0, 60001)

        def law(place: float, p: float = p, s: float = s, x: np.ndarray = x) -> np.ndarray:
            near, far = stats.norm.logpdf(x, place, s), stats.norm.logpdf(x, 0.0, s)
            return np.logaddexp(math.log1p(-p) + far, math.log(p) + near)

        terms = order * law(0.5) + (1.0 - order) * law(-0.5)
        divergence = math.log(float(np.exp(terms).sum() * (x[1] - x[0]))) / (order - 1)
        bound = holder.renyi(order=order, rate=p, inverse_square=1.0 / s**2)
        assert bound >= divergence - 1e-9
        lemma = holder.lemma_step(order=order, rate=p, square=s * s)
        assert lemma >= bound * (1.0 - 1e-12)


def test_much_noise_is_as_good_as_less() -> None:
    """Condition (33) fails for much noise; the lemma is then used for less."""
    found = [holder.lemma_step(order=8, rate=1e-3, square=s) for s in (50.0, 80.0, 120.0, 1e4, 1e9)]
    assert math.isfinite(found[-1])
    assert all(b <= a * (1.0 + 1e-12) for a, b in itertools.pairwise(found))
    assert math.isinf(holder.lemma_step(order=8, rate=1e-3, square=0.6))
    assert math.isinf(holder.lemma_step(order=800, rate=1e-3, square=10.0))


# --- what privacy costs ---------------------------------------------------------------------------------------------


RISK: dict[str, Any] = {
    "records": 200, "steps": 200, "dimension": 3, "radius": 1.0, "holder_exponent": 1.0, "holder_constant": 0.25,
    "gradient_at_zero": 0.5, "lipschitz": 1.0 / (1.0 + math.exp(-1.0)), "epsilon": 2.0, "log_delta": math.log(1e-4),
}  # fmt: skip
LIKELY = {"loss_at_zero": math.log(2.0) * (1.0 + 1e-15), "failure_probability": 0.1}


def excess_risks(cost: Risk, on_output: bool, runs: int) -> np.ndarray:
    """The excess risks of logistic regression on fresh data, over the best in the unit ball."""
    g = np.random.default_rng(7)
    truth = np.array([0.8, -0.4, 0.2])

    def sample(size: int) -> np.ndarray:
        x = g.normal(size=(size, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        return x * np.where(g.random(size) < 1.0 / (1.0 + np.exp(-6.0 * x @ truth)), 1.0, -1.0)[:, None]

    fresh = sample(20000)
    best = np.zeros(3)
    for _ in range(400):
        best = best + 2.0 * (fresh / (1.0 + np.exp(fresh @ best))[:, None]).mean(axis=0)
        best /= max(1.0, float(np.linalg.norm(best)))
    assert cost.step_size is not None
    assert cost.noise_std is not None
    n, steps = RISK["records"], RISK["steps"]
    data = np.stack([sample(n) for _ in range(runs)])
    w, total = np.zeros((runs, 3)), np.zeros((runs, 3))
    for _ in range(steps):
        total += w
        z = data[np.arange(runs), g.integers(n, size=runs)]
        step = z / (1.0 + np.exp((z * w).sum(axis=1)))[:, None]
        if not on_output:
            step = step + cost.noise_std * g.normal(size=(runs, 3))
        w = w + cost.step_size * step
        w /= np.maximum(1.0, np.linalg.norm(w, axis=1))[:, None]
    average = total / steps + (cost.noise_std * g.normal(size=(runs, 3)) if on_output else 0.0)
    risk = np.log1p(np.exp(-average @ fresh.T)).mean(axis=1)
    return np.asarray(risk - np.log1p(np.exp(-fresh @ best)).mean())


@pytest.mark.parametrize("place", [pytest.param("gradient", marks=pytest.mark.campaign), "output"])
def test_excess_risk_is_not_below_simulation(place: str) -> None:
    expected = evaluated(getattr(holder_cost, f"{place}_expected"), **RISK)
    likely = evaluated(getattr(holder_cost, f"{place}_likely"), **RISK, **LIKELY)
    found = excess_risks(expected, place == "output", 100)
    assert 0.0 < found.mean() <= expected.excess_risk
    assert found.mean() > 0.02 * expected.excess_risk
    assert np.quantile(excess_risks(likely, place == "output", 100), 0.9) <= likely.excess_risk
    assert likely.failure_probability == 0.1
    assert expected.steps == 200


def test_the_three_gaps_are_ordered_and_fall_with_records() -> None:
    """The published constants are vacuous at ten thousand records, ours are not."""
    before = None
    for n in (10**3, 10**4, 10**5):
        run = {**RISK, "records": n, "steps": n}
        found = [
            evaluated(getattr(holder_cost, f"output_{name}"), **run, **LIKELY)
            for name in ("likely", "uniform", "published")
        ]
        risks = [cost.excess_risk for cost in found]
        assert risks == sorted(risks)
        assert before is None or all(a < b for a, b in zip(risks, before, strict=True))
        before = risks
    assert before is not None
    assert before[0] < 0.3 < before[2]


def test_the_noise_of_a_cost_keeps_the_budget() -> None:
    for exponent in (0.0, 0.5, 1.0):
        run = {**RISK, "holder_exponent": exponent, "holder_constant": 1.0}
        cost = evaluated(holder_cost.output_expected, **run)
        spent = evaluated(dp_sgd.output,
            records=200, batch_size=1, steps=200, step_size=cost.step_size, noise_std=cost.noise_std,
            holder_exponent=exponent, holder_constant=1.0, strong_convexity=0.0, lipschitz=RISK["lipschitz"],
            epsilon=2.0,
        )  # fmt: skip
        assert spent <= RISK["log_delta"]
    cost = evaluated(holder_cost.gradient_expected, **RISK)
    parts = evaluated(
        dp_sgd.gradient, records=200, batch_size=1, steps=200, noise_std=cost.noise_std, lipschitz=RISK["lipschitz"]
    )
    assert Composition(parts).log_delta(2.0).value <= RISK["log_delta"]


def test_the_step_size_is_the_best_and_may_be_given() -> None:
    cost = evaluated(holder_cost.gradient_expected, **RISK)
    assert cost.step_size is not None
    assert cost.step_size == pytest.approx(
        Sgd(
            records=200, steps=200, radius=1.0, gradient=RISK["lipschitz"], dimension=3, holder_exponent=1.0,
            holder_constant=0.25,
        ).best_step(cost.noise_std), rel=1e-2,
    )  # fmt: skip
    for factor in (0.5, 0.9, 1.1, 2.0):
        other = evaluated(holder_cost.gradient_expected, **RISK, step_size=factor * cost.step_size)
        assert other.excess_risk >= cost.excess_risk * (1.0 - 1e-9)
    steep = evaluated(holder_cost.gradient_expected, **{**RISK, "holder_constant": 1e4})
    assert steep.step_size is not None
    assert steep.step_size <= 2e-4


def test_every_bound_on_a_risk_is_a_cost() -> None:
    assert costs() == [bound for bound in all_bounds().values() if bound.price]


def test_costs_are_registered_with_their_requirements() -> None:
    ours = [bound for bound in costs() if bound.id.startswith("holder_cost.")]
    assert len(ours) == 8
    for bound in ours:
        values = {**RISK, **LIKELY, "strong_convexity": 0.0, "step_size": 0.1}
        assert bound.obstacle(run_of(values)) is None
        for change, cure in (
            ({"strong_convexity": 0.1}, "--strong-convexity"),
            ({"step_size": 10.0}, "--step-size"),
            ({"lipschitz": None, "gradient_at_zero": None}, "--lipschitz"),
            ({"radius": None}, "--radius"),
        ):
            found = bound.obstacle(run_of({**values, **change}))
            assert found is not None
            assert cure in found.cure


def test_gaps_of_extreme_numbers() -> None:
    assert generalisation.chaining(-700.0) < math.inf
    for n, steps in ((1, 1), (1, 10**9), (10**9, 1), (10**9, 10**9)):
        found = generalisation.gap_by_index(
            gradient=1.0, use=1e-3, drift=1e-5, loss_range=1.0, records=n, steps=steps, log_share=-800.0
        )
        assert 0.0 < found < math.inf
    with pytest.raises(NotApplicable, match="Lemma 22"):
        Sgd(1, 1, 2, radius=1.0, gradient=1.0, holder_exponent=1.0, holder_constant=1.0).output_noise_published(
            1.0, -5.0
        )


def test_rules_for_steps() -> None:
    assert holder_sgd.gradient_complexity(records=100, holder_exponent=0.0) == 10**4
    assert holder_sgd.gradient_complexity(records=100, holder_exponent=0.7) == 100
    below, above = (holder_sgd.steps_exponent_unbounded(holder_exponent=0.386 + d) for d in (-1e-3, 1e-3))
    assert 1.0 == above < below < 1.01
    assert holder_sgd.gradient_complexity(records=100, holder_exponent=0.0, bounded=False) == 10**4
