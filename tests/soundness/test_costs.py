"""What Hölder losses and several losses cost, as the definitions have it: quantiles, and answers that are too low."""

import math
from typing import Any

import pytest
from flint import arb
from scipy import optimize, special, stats

from dpcalc.certify import case as certified_case
from dpcalc.certify.guarantee import Open
from dpcalc.certify.numerics.balls import precision
from dpcalc.certify.numerics.sums import BELOW
from dpcalc.certify.result_proof import proof_of_cost
from dpcalc.certify.risk import holder_costs
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.runs.run import RunInputs
from dpcalc.engine.ask import ask
from dpcalc.errors import Disproved
from dpcalc.model.question import Question
from dpcalc.report import Case, Result
from dpcalc.theorems.record import all_bounds, without_definition

BUDGET = Question(1.0, 1e-3, math.log(1e-3))
HOLDER: dict[str, Any] = {
    "records": 100, "steps": 60, "dimension": 3, "radius": 1.0, "holder_exponent": 0.5, "holder_constant": 1.0,
    "gradient_at_zero": 0.5, "loss_at_zero": 0.7, "failure_probability": 0.1,
}  # fmt: skip
TASKS: dict[str, Any] = {
    "records": 1000, "dimension": 5, "lipschitz": 1.0, "smoothness": 1.0, "radius": 1.0,
}  # fmt: skip


@pytest.mark.parametrize("share", [0.1, 1e-3, 1e-9])
def test_quantiles_are_those_of_another_program(share: float) -> None:
    with precision(128):
        assert float(holder_costs.normal_quantile(arb(share))) == pytest.approx(stats.norm.isf(share), rel=1e-12)
        for freedom in (1, 2, 7, 1000, 5000):
            found = holder_costs.chi_square_quantile(arb(share), freedom)
            assert float(found) == pytest.approx(stats.chi2.isf(share, freedom), rel=1e-9)
        for steps, records in ((1, 5), (100, 100), (5000, 30), (10**6, 10**6)):
            k = holder_costs.hits_quantile(arb(share), steps, records)
            assert stats.binom.sf(k, steps, 1 / records) <= share < stats.binom.sf(k - 1, steps, 1 / records)


@pytest.mark.parametrize("share", [0.4, 0.05, 1e-3, 1e-20])
def test_the_best_moment_is_that_of_a_plain_search(share: float) -> None:
    def log_at(p: float) -> float:
        moment = (math.log(2.0) + special.gammaln(0.5 * p + 1.0)) / p
        return float(-math.log(share) / p + 0.5 * math.log(0.5 * (p - 1.0)) + moment)

    best = optimize.minimize_scalar(log_at, bounds=(2.0, 300.0), method="bounded", options={"xatol": 1e-9})
    with precision(128):
        assert float(holder_costs.chaining(arb(share))) == pytest.approx(math.exp(min(best.fun, log_at(2.0))), rel=1e-9)


def answered(algorithm: str, given: dict[str, Any]) -> Case:
    return ask("utility", {"algorithm": algorithm, **given}, BUDGET)


def told(case: Case, bound: str, lower: float) -> dict[str, Any]:
    """What is told of an answer of which the noise, or without noise the risk, is a little lower."""
    result = next(one for one in case.results if one.bound == bound)
    details = dict(result.details or {})
    details["noise_std"] *= 1.0 - lower
    moved = case._replace(results=(result._replace(details=details),))
    return dict(certified_case.certify(moved, None, BUDGET, without_definition()).results[0].details or {})


@pytest.mark.parametrize(
    ("algorithm", "given", "bound"),
    [
        ("dp-sgd-output", HOLDER, "holder_cost.output_expected"),
        ("dp-sgd-output", HOLDER, "holder_cost.output_likely"),
        ("dp-sgd-output", HOLDER, "holder_cost.output_uniform"),
        ("dp-sgd-output", HOLDER, "holder_cost.output_published"),
        ("stop", {**TASKS, "tasks": 1}, "tasks.stop"),
        ("stop", {**TASKS, "tasks": 7}, "tasks.stop"),
        ("stop", {**TASKS, "tasks": 900}, "tasks.stop"),
    ],
)
def test_less_noise_than_reported_is_disproved(algorithm: str, given: dict[str, Any], bound: str) -> None:
    case = answered(algorithm, given)
    assert "certified" in told(case, bound, 0.0)
    with pytest.raises(Disproved, match=bound.replace(".", r"\.")):
        told(case, bound, 0.02)


@pytest.mark.campaign
def test_less_noise_in_every_step_is_not_certified() -> None:
    """A composition is bounded from above only, so that nothing is disproved."""
    case = answered("dp-sgd-gradient", HOLDER)
    for bound in ("holder_cost.gradient_expected", "holder_cost.gradient_likely"):
        assert "certified" in told(case, bound, 0.0)
        assert "not_certified" in told(case, bound, 2e-3)


@pytest.mark.parametrize("bound", sorted(id for id in PRICES if id.startswith("holder_cost.gradient")))
def test_a_risk_a_little_lower_is_disproved(bound: str) -> None:
    """At given noise, apart from the composition that takes seconds."""
    from dpcalc.certify.numerics.sums import BELOW, PROVED, enclosed

    run = {**HOLDER, "epsilon": 1.0, "log_delta": BUDGET.log_delta, "sigma": 0.5, "eta": 0.01, "count": 60}
    theorem = all_bounds()[bound]
    known = theorem.setting(**{name: value for name, value in run.items() if name in theorem.reads})
    risk = _risk_at(bound, known)
    for lower, place in ((0.0, PROVED), (1e-11, BELOW)):
        v = RunInputs(run, typed=False, exactly=("log_delta",))
        assert enclosed(lambda v=v: PRICES[bound].risk(v), risk * (1.0 - lower)).place == place  # type: ignore[misc]


def _risk_at(bound: str, run: Any) -> float:
    """Return what the program says of the risk at a step size of 0.01 and noise 0.5 in every step."""
    from dpcalc.theorems.risk import holder_sgd
    from dpcalc.theorems.risk.sgd import Sgd

    gaps = {"published": Sgd.published_gap, "uniform": Sgd.uniform_gap, "likely": Sgd.least_gap}
    name = bound.rpartition("_")[2]
    if name == "expected":
        return holder_sgd.expected_risk(run.sgd, 0.01, 0.5)
    return holder_sgd.likely_step_risk(run.sgd, gaps[name], 0.01, 0.5, run.log_chance)


def _proved(result: Result, case: Case) -> bool:
    try:
        return proof_of_cost(result, case, BUDGET).place != BELOW
    except Open:
        return False


@pytest.mark.parametrize("factor", [1e-4, 1e4])
@pytest.mark.parametrize("algorithm", ["stop", "skip", "noisy-gd"])
def test_a_cost_is_not_proved_of_another_step_size(algorithm: str, factor: float) -> None:
    """What a paper prints is of its own step size: of one far from it no such cost holds."""
    case = answered(algorithm, TASKS)
    tried = 0
    for result in case.results:
        step = (result.details or {}).get("step_size")
        if result.guarantee and step:
            moved = result._replace(details={**(result.details or {}), "step_size": step * factor})
            assert not _proved(moved, case)
            tried += 1
    assert tried
