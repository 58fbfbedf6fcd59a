"""Hölder losses: privacy against brute force, questions there and back, refusals, and what privacy costs.

Constants, distances and risks are compared with their definitions in `tests.soundness`.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcalc.engine.answer import answer
from dpcalc.errors import DpcalcError, NotApplicable
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.notions.guarantee import Composition
from dpcalc.report import Case
from dpcalc.theorems.holder import dp_sgd, holder
from dpcalc.theorems.holder.published_gradient_noise import Theorem11
from dpcalc.theorems.record import all_bounds, costs, lookup
from dpcalc.theorems.risk import generalisation, holder_cost, holder_sgd
from dpcalc.theorems.risk.sgd import Sgd
from dpcalc.theorems.sampled import noisy_sgd
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform, whole

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


@pytest.mark.few(10)
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
    runs = [{**RISK, "holder_exponent": exponent, "holder_constant": 1.0} for exponent in (0.0, 0.5, 1.0)]
    less = {"dimension": 1, "radius": 0.5, "holder_exponent": 0.0, "holder_constant": 0.5, "gradient_at_zero": 1.0}
    runs += [{**RISK, **less, "lipschitz": slope} for slope in (0.25, 0.5, 1.0, 1.5)]
    for run in runs:
        cost = evaluated(holder_cost.output_expected, **run)
        names = ("records", "steps", "holder_exponent", "holder_constant", "lipschitz", "epsilon")
        spent = evaluated(
            dp_sgd.output, **{name: run[name] for name in names}, batch_size=1, step_size=cost.step_size,
            noise_std=cost.noise_std, strong_convexity=0.0,
        )  # fmt: skip
        assert RISK["log_delta"] - 1e-6 <= spent <= RISK["log_delta"]
    cost = evaluated(holder_cost.gradient_expected, **RISK)
    parts = evaluated(
        dp_sgd.gradient, records=200, batch_size=1, steps=200, noise_std=cost.noise_std, lipschitz=RISK["lipschitz"]
    )
    assert Composition(parts).log_delta(2.0).value <= RISK["log_delta"]


@pytest.mark.few(1)
@pytest.mark.parametrize("run", [(200, 200, 2.0, 1e-4), (10**4, 10**4, 0.1, 1e-8), (50, 5000, 3.0, 1e-3)])
def test_the_least_noise_keeps_the_budget_and_hardly_less_does_not(run: tuple[int, int, float, float]) -> None:
    records, steps, epsilon, delta = run
    s = holder_sgd.step_noise_ratio(records, steps, epsilon, math.log(delta))

    def log_delta(ratio: float) -> float:
        sampled = noisy_sgd.SampledSteps(records=records, batch_size=1, steps=steps, lipschitz=0.5, noise_std=ratio)
        return noisy_sgd.composition(sampled).log_delta(epsilon).value

    assert log_delta(s) <= math.log(delta) < log_delta(s * (1.0 - 4e-4))


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


def test_more_records_may_cost_more_where_a_chance_is_over_all_of_them() -> None:
    """Of the published split; the exact ones fall with the records."""
    few, many = (
        {
            result.bound: result.value
            for result in ask(
                "dp-sgd-output", at(None, 0.01), records=records, steps=10, lipschitz=0.57, radius=1.85,
                holder_exponent=0.5, holder_constant=0.35, gradient_at_zero=1.0, step_size=0.022, noise_std=19.4,
            ).results
        }
        for records in (1, 10**6)
    )  # fmt: skip
    rises = {bound for bound in few if few[bound] < many[bound]}
    assert rises == {"dp_sgd.output_published"}
    assert "records" in all_bounds()["dp_sgd.output_published"].not_monotone_in
