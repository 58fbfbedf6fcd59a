"""What privacy costs: monotone, at the best number of steps, as printed, refused with advice that helps.

Risks and the privacy of their noise are compared with their definitions in `tests.soundness`.
"""

import math
import random
import re
from typing import Any

import mpmath as mp
import pytest

from dpcalc.errors import MissingParameter, NotApplicable
from dpcalc.model.loss import of
from dpcalc.model.parameter import PARAMETERS
from dpcalc.notions import gaussian
from dpcalc.notions.conversions import Risk
from dpcalc.references import SHORT, entries
from dpcalc.theorems.record import Theorem, costs, for_algorithm
from dpcalc.theorems.risk import generalisation, langevin, tasks, utility
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform, whole

BOUNDS = {bound.id: bound for bound in costs() if not bound.id.startswith("holder_cost.")}
EVERY = pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS.keys())
BUDGET = {"epsilon": 1.0, "log_delta": math.log(1e-5)}


def parameters(r: random.Random) -> dict[str, Any]:
    n = whole(r, 50, 10**6)
    lip, beta = log_uniform(r, 0.1, 10.0), log_uniform(r, 0.1, 10.0)
    return {
        "records": n, "index": whole(r, 1, n), "public_records": whole(r, 1, n // 3), "tasks": whole(r, 2, 1000),
        "dimension": whole(r, 1, 1000), "lipschitz": lip, "radius": log_uniform(r, 0.1, 10.0),
        "smoothness": beta, "strong_convexity": beta * r.uniform(0.05, 1.0), "noise_std": log_uniform(r, 0.1, 10.0),
        "step_size": log_uniform(r, 1e-3, 1.0), "steps": whole(r, 1, 10**6),
        "epsilon": log_uniform(r, 0.05, 0.99), "log_delta": -r.uniform(1.0, 60.0),
    }  # fmt: skip


def ask(bound: Theorem, values: dict[str, Any]) -> Risk:
    risk: Risk = evaluated(bound.function, **values)
    return risk


def applicable(bound: Theorem, r: random.Random) -> dict[str, Any]:
    """Parameters that meet every requirement: the smoothness is small enough for the step."""
    values = parameters(r)
    if "smoothness" in bound.parameters and "strong_convexity" not in bound.parameters and "kernel" not in bound.id:
        values["smoothness"] = 1e-9
    for _ in range(12):
        if not bound.obstacle(run_of(values)):
            return values
        values["records"] *= 10
    raise AssertionError(bound.obstacle(run_of(values)))


# --- the record -------------------------------------------------------------------------------------------------------


@EVERY
def test_record(bound: Theorem) -> None:
    assert bound.notion == "cost"
    assert not any(bound in for_algorithm(name) for name in bound.algorithms)
    assert bound.reference in SHORT
    assert bound.reference in entries()
    assert set(bound.parameters) <= set(PARAMETERS)
    assert ">>>" in (bound.function.__doc__ or "")
    values = applicable(bound, random.Random(1))
    for name in bound.parameters:
        found = bound.obstacle(run_of({k: v for k, v in values.items() if k != name}))
        assert found is not None
        assert name in found.because
    with pytest.raises(MissingParameter):
        bound.prove(run_of({}))


@EVERY
def test_a_cost_is_a_number_and_a_run(bound: Theorem) -> None:
    for r in draws(bound.id, 20, cost=100):
        values = applicable(bound, r)
        cost = ask(bound, values)
        assert 0.0 < cost.excess_risk < math.inf
        for part in cost[:-1]:
            assert part is None or (part > 0 and math.isfinite(part))
        if "step size" in " ".join(requirement.text for requirement in bound.conditions):
            assert cost.step_size is not None
            assert cost.step_size * values["smoothness"] <= 2.0


# --- monotone ---------------------------------------------------------------------------------------------------------

SIGNS = {
    "records": -1, "epsilon": -1, "log_delta": -1, "dimension": 1, "lipschitz": 1, "radius": 1, "tasks": 1, "index": 1,
    "public_records": -1, "noise_std": 1, "smoothness": 1, "strong_convexity": -1,
}  # fmt: skip


def grown(values: dict[str, Any], name: str, r: random.Random) -> dict[str, Any] | None:
    value = values[name]
    if name == "log_delta":
        return {**values, name: value * r.uniform(0.3, 1.0)}
    if name == "epsilon":
        return {**values, name: value + (1.0 - value) * 0.9 * r.random()}
    if name == "strong_convexity":
        return {**values, name: value + (values["smoothness"] - value) * r.random()}
    if name in ("index", "public_records"):
        top = values["records"] if name == "index" else values["records"] // 3
        return {**values, name: r.randint(value + 1, top)} if value < top else None
    return {**values, name: value * r.randint(2, 5) if isinstance(value, int) else value * (1.0 + r.random())}


@EVERY
def test_monotone(bound: Theorem) -> None:
    if bound.kind == "published":
        pytest.skip("what is printed wrongly need not be monotone")
    names = [name for name in bound.reads if name in SIGNS]
    searched = bound.id in ("tasks.stop", "langevin.shifted", "langevin.boundary")
    for r in draws(bound.id, 12, cost=200):
        values = applicable(bound, r)
        before = ask(bound, values).excess_risk
        for name in names:
            if name in bound.not_monotone_in or (name == "smoothness" and "strong_convexity" not in names):
                continue  # the latter decides whether the bound applies
            more = grown(values, name, r)
            if more is None or bound.obstacle(run_of(more)):
                continue
            after = ask(bound, more).excess_risk
            room = (1e-2 if bound.id == "tasks.stop" else 1e-3 if searched else 1e-11) * max(before, after)
            sign = -1 if bound.id == "smoothing.kernel" and name == "smoothness" else SIGNS[name]
            if bound.id == "langevin.iterated" and name == "log_delta":
                continue  # it moves the number of steps
            assert (after - before) * sign >= -room, (bound.id, values, name, more[name], before, after)


# --- as printed ----------------------------------------------------------------------------------------------


def test_printed_noise_for_public_records_is_not_private() -> None:
    for m, lowest in ((6, 1.14e-5), (100, 3.47e-5), (10**4, 3.73e-5)):
        given = {"records": 3 * m, "public_records": m, "dimension": 2, "lipschitz": 1.0, "smoothness": 1e-9}
        right, wrong = (
            evaluated(f, **given, radius=1.0, **BUDGET) for f in (utility.public_classic, utility.public_published)
        )
        assert wrong.noise_std is not None
        mu = 2.0 / (math.sqrt(m + 1.0) * wrong.noise_std)  # of the last private record, which m others follow
        assert math.exp(gaussian.log_delta(mu=mu, epsilon=BUDGET["epsilon"])) > lowest
        assert right.noise_std == pytest.approx(math.sqrt(2.0 * m / (m + 1.0)) * wrong.noise_std, rel=1e-12)


def test_printed_risks_are_what_the_paper_prints() -> None:
    """Theorems 28 and 32 and Corollary 34, and the order that Chourasia, Ye and Shokri quote, in forty digits."""
    n, d, k, lip, radius = 10**6, 7, 10**5, mp.mpf("0.75"), mp.mpf("1.5")
    given = {"records": n, "dimension": d, "lipschitz": float(lip), "radius": float(radius)}
    small = {"epsilon": 0.5, "log_delta": math.log(1e-5)}
    with mp.workdps(40):
        epsilon, log_delta = mp.mpf(0.5), mp.mpf(small["log_delta"])
        unit = radius * lip / mp.sqrt(n)
        load = max(2 * k * mp.log(n) / n, -2 * log_delta)
        log_classic = mp.log(mp.mpf(5) / 4) - log_delta
        averaged = 4 * radius * mp.sqrt(lip**2 + d * mp.mpf(4)) / mp.sqrt(1000)
        smoothed = (
            4
            * mp.sqrt(2)
            * unit
            * (mp.sqrt(1 + 8 * d * log_classic / epsilon**2) + epsilon * mp.sqrt(d) / (2 * log_classic))
        )
        printed = {
            "utility.average_published": averaged,
            "tasks.published": 4 * unit * mp.sqrt(1 - 16 * d * load * log_delta / epsilon**2),
            "smoothing.skip_published": smoothed,
            "langevin.least_order": d / (epsilon * n) ** 2,
        }
        for id, exact in printed.items():
            values = {**given, **small, "tasks": k, "smoothness": 1e-9, "noise_std": 2.0, "steps": 1000}
            assert ask(BOUNDS[id], values).excess_risk == pytest.approx(float(exact), rel=1e-12), id


# --- improved against stated ------------------------------------------------------------------------------------------

PAIRS = [
    ("utility.stop", "utility.stop_classic"),
    ("utility.stop_from_centre", "utility.stop"),
    ("utility.skip", "utility.skip_classic"),
    ("utility.skip_from_centre", "utility.skip"),
    ("utility.person", "utility.skip"),
    ("utility.public", "utility.public_classic"),
    ("utility.public", "utility.skip"),
    ("tasks.stop", "tasks.harmonic"),
    ("smoothing.skip", "smoothing.skip_classic"),
    ("langevin.iterated", "langevin.explicit"),
    ("langevin.shifted", "langevin.iterated"),
]


@pytest.mark.parametrize(("better", "stated"), PAIRS)
def test_improved_is_never_above_stated(better: str, stated: str) -> None:
    for r in draws(better + stated, 40, cost=50):
        values = applicable(BOUNDS[stated], r)
        if BOUNDS[better].obstacle(run_of(values)):
            continue
        ours, theirs = ask(BOUNDS[better], values), ask(BOUNDS[stated], values)
        assert ours.excess_risk <= theirs.excess_risk * (1.0 + 1e-12), values


def test_one_task_costs_less_than_a_local_budget_and_many_no_more_than_sqrt() -> None:
    given = {"records": 10**4, "dimension": 10, "lipschitz": 1.0, "radius": 1.0, **BUDGET}
    local = evaluated(utility.stop, **given).excess_risk
    one, many = (evaluated(tasks.stop, **given, tasks=k, smoothness=1e-9).excess_risk for k in (1, 1000))
    assert one < 0.5 * local
    assert many < 1.6 * local
    table = tasks.comparison(records=10**4, tasks=25, dimension=10, epsilon=1.0)
    assert [row.many_tasks / row.one_task for row in table] == pytest.approx([1.0, 5.0, 5.0, 1.0])


# --- at the best step size and number of steps ------------------------------------------------------------------------


def test_the_mean_length_of_a_normal_vector() -> None:
    for d in (1, 2, 3, 10, 299, 300, 301, 302, 1000, 10**6, 10**15):
        with mp.workdps(60):
            exact = mp.sqrt(2) * mp.exp(mp.loggamma(mp.mpf(d + 1) / 2) - mp.loggamma(mp.mpf(d) / 2))
            assert 0 <= generalisation.norm_mean(d) / exact - 1 < mp.mpf("2e-13")


def test_the_best_descent_balances_its_two_parts() -> None:
    for r in draws("balance", 60, cost=40):
        v = parameters(r)
        cost = ask(BOUNDS["langevin.shifted"], v)
        with mp.workdps(40):
            beta, m, lip = (mp.mpf(v[name]) for name in ("smoothness", "strong_convexity", "lipschitz"))
            mu = mp.mpf(gaussian.largest_mu(epsilon=v["epsilon"], log_delta_target=v["log_delta"]))
            a, b = 2 * beta * (lip / m) ** 2, 2 * beta * v["dimension"] * (lip / (v["records"] * m * mu)) ** 2
            exact = a * b / (a + b)
            assert -mp.mpf("1e-13") <= mp.mpf(cost.excess_risk) / exact - 1 <= mp.mpf("1e-9"), v


def test_the_number_of_steps_of_convex_descent_is_the_best() -> None:
    for r in draws("convex descent", 30, cost=60):
        v = {**parameters(r), "smoothness": log_uniform(r, 1e-3, 10.0), "records": whole(r, 1, 10**4)}
        cost = ask(BOUNDS["descent.least_noise"], v)
        with mp.workdps(30):
            mu = mp.mpf(gaussian.largest_mu(epsilon=v["epsilon"], log_delta_target=v["log_delta"]))
            reach, single = mp.mpf(v["radius"]), 2 * mp.mpf(v["lipschitz"]) / (v["records"] * mu)
            d, longest = v["dimension"], 1 / mp.mpf(v["smoothness"])

            def at(steps: int, d: int = d, reach: Any = reach, single: Any = single, longest: Any = longest) -> Any:
                noise = d * single**2 * steps * mp.harmonic(steps)
                eta = min(longest, reach / mp.sqrt(2 * steps * noise))
                return reach**2 / (2 * eta * steps) + eta * noise

            assert cost.steps is not None
            tried = {1, 2, 3, *(max(1, cost.steps + more) for more in range(-5, 6)), 2 * cost.steps, 5 * cost.steps}
            least = min(at(steps) for steps in tried)
            assert -mp.mpf("1e-12") <= mp.mpf(cost.excess_risk) / least - 1 <= mp.mpf("1e-11"), v
            private = single / (mp.mpf(cost.noise_std) / mp.sqrt(cost.steps)) * mu
            assert private <= mu


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id",
    [
        "utility.skip",
        "utility.skip_from_centre",
        "utility.skip_classic",
        "utility.public",
        "utility.person",
        "tasks.stop",
        "tasks.harmonic",
    ],
)
def test_a_step_too_long_is_refused_with_enough_records(id: str) -> None:
    bound = BOUNDS[id]
    values = {
        "records": 100, "index": 10, "public_records": 5, "tasks": 3, "dimension": 4, "lipschitz": 1.0, "radius": 3.0,
        "smoothness": 1e-9, "epsilon": 0.9, "log_delta": math.log(1e-4),
    }  # fmt: skip
    step = ask(bound, values).step_size
    assert step is not None
    values["smoothness"] = 4.0 / step
    with pytest.raises(NotApplicable) as caught:
        bound.prove(run_of(values))
    assert "2/smoothness" in caught.value.message
    assert ask(bound, values).excess_risk == math.inf
    advised = re.search(r"--records from (\d+)", caught.value.hint or "")
    assert advised
    enough = int(advised[1])
    assert bound.obstacle(run_of({**values, "records": enough})) is None
    assert ask(bound, {**values, "records": enough}).excess_risk < math.inf
    assert bound.obstacle(run_of({**values, "records": enough // 2})) is not None
    assert "smoothing.skip" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("id", "change", "words"),
    [
        ("utility.stop_classic", {"epsilon": 20.0}, "classic"),
        ("utility.stop_classic", {"epsilon": 0.0}, "classic"),
        ("smoothing.skip_classic", {"epsilon": 9.0}, "classic"),
        ("utility.public", {"public_records": 1000}, "public"),
        ("utility.public_published", {"public_records": 0}, "public"),
        ("utility.person", {"index": 1001}, "index"),
        ("tasks.harmonic", {"epsilon": 1.5}, "epsilon < 1"),
        ("tasks.published", {"log_delta": -0.1}, "delta < 1/2"),
        ("langevin.explicit", {"records": 3}, "positive"),
        ("descent.last", {"step_size": 1.1, "smoothness": 1.0}, "exceeds 1/smoothness"),
        ("descent.least_noise", {"smoothness": 0.0}, "linear"),
        ("langevin.shifted", {"strong_convexity": 0.0}, "strongly convex"),
        ("langevin.boundary", {"strong_convexity": 3.0}, "strong convexity"),
    ],
)
def test_refused(id: str, change: dict[str, Any], words: str) -> None:
    values = {
        "records": 1000, "index": 10, "public_records": 50, "tasks": 3, "dimension": 4, "lipschitz": 1.0,
        "radius": 1.0, "smoothness": 0.01, "strong_convexity": 0.005, "epsilon": 0.9, "log_delta": math.log(1e-5),
        "noise_std": 1.0, "step_size": 0.1, "steps": 10,
    }  # fmt: skip
    assert BOUNDS[id].obstacle(run_of(values)) is None
    found = BOUNDS[id].obstacle(run_of({**values, **change}))
    assert found is not None
    assert words in found.because
    assert "--" in found.cure or "ask " in found.cure or "curve" in found.cure
    if "classic" in id or id.startswith("tasks") or id == "langevin.explicit":
        assert ask(BOUNDS[id], {**values, **change}).excess_risk == math.inf


@EVERY
@pytest.mark.parametrize("size", [1e-300, 1e300])
@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 0.5, 1e300])
@pytest.mark.parametrize("log_delta", [-1e-6, -1e4])
def test_extremes_are_answered_without_a_promise_too_small(
    bound: Theorem, size: float, epsilon: float, log_delta: float
) -> None:
    for records in (1, 10**15):
        values = {
            "records": records, "index": 1, "public_records": 0, "tasks": 2, "dimension": 1, "lipschitz": size,
            "radius": size, "smoothness": 1.0, "strong_convexity": 0.5, "noise_std": size, "step_size": size,
            "steps": 1, "epsilon": epsilon, "log_delta": log_delta,
        }  # fmt: skip
        cost = ask(bound, values)
        assert cost.excess_risk > 0.0 or bound.kind in ("published", "asymptotic")
        assert not any(part is not None and math.isnan(part) for part in cost[:-1])


def test_costs_from_the_catalogue_of_losses() -> None:
    """A loss of the catalogue feeds the bounds: its gradient bound, smoothness and strong convexity."""
    loss = of("logistic", feature_bound=1.0, radius=1.0, regularisation=0.1)
    cost = evaluated(langevin.shifted,
        records=10000, dimension=10, lipschitz=loss.gradient_bound, smoothness=loss.smoothness or 0.0,
        strong_convexity=loss.strong_convexity, **BUDGET,
    )  # fmt: skip
    assert cost.excess_risk < 0.01
