"""`utility`, `dp-sgd` and losses by name: what a user learns in one command."""

import csv
import io
import itertools
import json
import re
from typing import Any

import pytest

import dpcalc
from dpcalc.model import loss as losses
from dpcalc.theorems.record import costs
from dpcalc.theorems.risk import holder_cost, utility
from tests.cli.conftest import best
from tests.formulas import evaluated

LOGISTIC = "--loss logistic --feature-bound 1 -n 1e5 --dimension 20 -R 1"
STOP = f"utility --algorithm stop {LOGISTIC}"
OWN = "-L 1 --smoothness 1 --dimension 5 -R 1"


def rows(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["bound"]: result for result in case["results"]}


@pytest.mark.campaign
def test_one_command_says_what_a_budget_costs(ask_json: Any) -> None:
    [case] = ask_json(f"utility {LOGISTIC} -e 1 -d 1e-6")
    found = best(case)
    loss = losses.of("logistic", feature_bound=1.0, radius=1.0)
    expected = evaluated(holder_cost.output_expected,
        records=10**5, steps=10**6, dimension=20, radius=1.0, holder_exponent=1.0,
        holder_constant=loss.hoelder_constant(), lipschitz=loss.lipschitz, epsilon=1.0, log_delta=found["log_delta"],
    )  # fmt: skip
    assert found["bound"] == "holder_cost.output_expected"
    assert found["quantity"] == "excess_risk"
    assert found["value"] == expected.excess_risk
    assert (found["noise_std"], found["step_size"], found["steps"]) == expected[1:4]
    assert case["inputs"]["lipschitz"] == {"value": loss.lipschitz, "source": "loss"}
    assert "vacuous" not in found
    assert not case["notes"]


def test_steps_are_chosen_where_they_are_free(ask_json: Any) -> None:
    line = "utility --algorithm dp-sgd-output --loss hinge --feature-bound 1 -n 1000 --dimension 5 -R 1 -e 1 -d 1e-6"
    chosen = best(ask_json(line)[0])
    tried = [best(ask_json(f"{line} --steps {steps}")[0]) for steps in (10**3, 10**4, 10**6)]
    assert chosen["value"] == min(found["value"] for found in tried)
    assert chosen["steps"] == 10**6


@pytest.mark.parametrize("line", ["-n 300 --dimension 4 -e 1", "-n 2000 --dimension 50 -e 0.1"])
def test_free_steps_are_the_best_of_those_tried(ask_json: Any, line: str) -> None:
    """Some numbers of steps are passed over where less noise than they need would not make them the best."""
    asked = f"utility --loss logistic --feature-bound 1 -R 1 -d 1e-6 {line}"
    records = int(line.split()[1])

    def gradient(more: str) -> float:
        rows = ask_json(f"{asked} {more}")[0]["results"]
        return next(row["value"] for row in rows if row["bound"] == "holder_cost.gradient_expected")

    each = [gradient(f"--steps {steps}") for steps in (records, 10 * records)]
    assert gradient("") == min(each)


def test_the_answer_in_words(ask: Any) -> None:
    short = ask(f"{STOP} -e 1 -d 1e-6")
    assert re.search(r"^excess risk <= 0\.0873\d+ in expectation\nrun: +stop/local with noise_std = 6\.17\d+", short)
    text = ask(f"{STOP} -e 1 -d 1e-6 -vv")
    assert re.search(r"^excess risk <= 0\.0873\d+ in expectation: stop/local with noise_std = 6\.17\d+", text, re.M)
    assert "exceeds that of the best model in the domain" in text
    assert "lipschitz = 0.731059 (of the loss)" in text  # L would also be the Holder constant
    said = ask(f"utility {LOGISTIC.replace('1e5', '1000')} -e 1 -d .1 -vv")
    assert re.search(r"utility.public +needs public_records +give --public-records", said)


@pytest.mark.campaign
def test_every_cost_is_reached(ask: Any) -> None:
    lines = [
        f"{LOGISTIC} -e 0.5 -d 1e-6 --index 5 --tasks 3 --public-records 100 --failure-probability 0.05",
        f"{LOGISTIC} --regularisation 0.1 -e 1 -d 1e-6",
        f"{LOGISTIC} -e 0.5 -d 1e-6 --index 5 --public-records 100 --failure-probability 0.05",
        f"{LOGISTIC} --steps 100 --sigma 1 --eta 0.1",
    ]
    found = {row["bound"] for line in lines for row in json.loads(ask(f"utility {line} --json"))["cases"][0]["results"]}
    assert {bound.id for bound in costs()} == found


def test_what_says_nothing_is_called_vacuous(ask: Any, ask_json: Any) -> None:
    line = f"utility {OWN} -n 50 -e 0.1 -d 1e-6"
    [case] = ask_json(line)
    assert best(case)["vacuous"]
    assert best(case)["value"] > 2.0
    assert "every bound here is vacuous" in case["notes"][0]
    assert "in expectation, vacuous" in ask(line)


def test_empirical_risk_is_its_own_matter(ask_json: Any) -> None:
    [case] = ask_json(f"utility {OWN} --strong-convexity 0.5 -n 1e5 -e 1 -d 1e-6 --failure-probability 0.1")
    marked = {result["quantity"]: result["bound"] for result in case["results"] if result["best"]}
    assert marked["empirical_excess_risk"] == "langevin.shifted"
    assert marked["excess_risk"].startswith("utility.")


def test_trade_offs_side_by_side(ask: Any, tmp_path: Any) -> None:
    line = f"{STOP} -e 0.5,1,2 -d 1e-6"
    text = ask(line)
    row = r"^[0-9.]+ +0\.\d+ +utility.stop_from_centre\s+algorithm=stop/local noise_std="
    assert len(re.findall(row, text, re.M)) == 3
    table = list(csv.DictReader(io.StringIO(ask(f"{line} --format csv"))))
    chosen = [row for row in table if row["best"] == "true"]
    for before, after in itertools.pairwise(chosen):
        assert float(after["value"]) < float(before["value"])
        assert float(after["noise_std"]) < float(before["noise_std"])
    assert float(chosen[1]["step_size"]) == evaluated(utility.stop_from_centre,
        records=10**5, dimension=20, radius=1.0, epsilon=1.0, log_delta=float(chosen[1]["log_delta"]),
        lipschitz=losses.of("logistic", feature_bound=1.0, radius=1.0).lipschitz,
    ).step_size  # fmt: skip
    ask(f"{line} --plot {tmp_path / 'a.svg'}")
    assert "excess risk" in ask(f"{line} --plot -")


@pytest.mark.parametrize(("limit", "code"), [("0.1", 0), ("0.05", 1)])
def test_risk_is_gated(ask: Any, limit: str, code: int) -> None:
    ask(f"{STOP} -e 1 -d 1e-6 --assert 'excess_risk<={limit}'", expected=code)


@pytest.mark.parametrize(
    "line",
    ["rdp", "shuffle", "hockey-stick", "multi-epoch --epochs 3", "compare --algorithm pnsgd"],
)
def test_a_loss_stands_for_its_constants(ask_json: Any, line: str) -> None:
    run = f"{line} -n 100 --eta 0.1 --sigma 2 -d 1e-6"
    [named] = ask_json(f"{run} --loss logistic --feature-bound 1")
    [given] = ask_json(f"{run} -L 1 --smoothness 0.25")
    values = [{r["bound"]: r["value"] for r in case["results"]} for case in (named, given)]
    values[0] = {name: value for name, value in values[0].items() if not name.endswith("linear_model")}  # needs --loss
    assert values[0] == pytest.approx(values[1], rel=1e-12)
    closed = {r["bound"] for r in given["results"] if r.get("order") is None}  # orders are found to their last digits
    assert all(value >= values[1][name] for name, value in values[0].items() if name in closed)
    assert closed


def test_a_regulariser_adds_convexity_and_nothing_to_the_sensitivity(ask_json: Any) -> None:
    line = (
        "compare --algorithm noisy-gd -n 100 --steps 500 --eta 0.1 --sigma 2 -d 1e-6 --loss logistic --feature-bound 1"
    )
    [plain], [regular] = ask_json(line), ask_json(f"{line} --regularisation 0.5")
    assert regular["inputs"]["sensitivity"]["value"] <= plain["inputs"]["sensitivity"]["value"]
    assert regular["inputs"]["strong_convexity"] == {"value": 0.5, "source": "loss"}
    assert best(regular)["value"] < 0.5 * best(plain)["value"]


def test_a_ball_is_a_domain(ask_json: Any) -> None:
    [ball] = ask_json("shuffle -n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 -R 2")
    [interval] = ask_json("shuffle -n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 -D 4")
    assert [r["value"] for r in ball["results"]] == [r["value"] for r in interval["results"]]


@pytest.mark.parametrize(
    "algorithm", [pytest.param("dp-sgd-gradient", marks=pytest.mark.campaign), "dp-sgd-output --eta 0.001"]
)
def test_noise_on_the_gradients_and_on_the_output(ask_json: Any, algorithm: str) -> None:
    hinge = "--loss hinge --feature-bound 1 -R 1 -n 2000 -e 2 -d 1e-6"
    [case] = ask_json(f"dp-sgd --algorithm {algorithm} {hinge}")
    [back] = ask_json(f"dp-sgd --algorithm {algorithm} {hinge} --sigma {best(case)['value']!r}")
    assert back["assertions"][0]["passed"]


def test_from_python() -> None:
    case = dpcalc.utility(
        loss="hinge", feature_bound=1.0, records=10**6, dimension=10, radius=1.0, algorithm="stop", epsilon=1.0,
        delta=1e-9, gates=["excess_risk<=1"],
    ).cases[0]  # fmt: skip
    assert case.best is not None
    assert case.assertions[0].passed
    assert not case.failed
    with pytest.raises(dpcalc.SpecError, match="does not take colour"):
        dpcalc.utility(colour=1)


def test_orders_are_no_guarantees(ask: Any) -> None:
    text = ask("utility --orders -n 1e4 --tasks 25 --dimension 4 -e 0.5")
    assert "none is a guarantee" in text
    assert re.search(r"^random stop with hidden iterates .* 0\.04 +0\.04 +0\.5$", text, re.M)
    ask("utility --orders -n 1e4", expected=2)


def test_noise_that_is_given_keeps_no_budget(ask: Any, ask_json: Any) -> None:
    line = f"utility {OWN} -n 10000 --sigma 1e-9 --eta 0.01 --steps 10000"
    [case] = ask_json(f"{line} -e 1 -d 1e-6")
    assert "utility.average" not in rows(case)
    [alone] = ask_json(line)
    assert best(alone)["bound"] == "utility.average"
    assert "epsilon" not in best(alone)
    assert "no budget was asked for, and none is promised" in " ".join(ask(f"{line} -v").split())


def test_several_tasks_are_paid_for(ask_json: Any) -> None:
    [case] = ask_json(f"utility {OWN} -n 10000 --tasks 1000 -e 1 -d 1e-6")
    assert all(name.startswith(("tasks.", "smoothing.kernel", "langevin.least")) for name in rows(case))


def test_who_is_covered_is_said(ask: Any) -> None:
    text = " ".join(ask(f"utility {OWN} -n 10000 --index 1 -e 1 -d 1e-6 -v").split())
    assert "the noise keeps the budget when one of the records up to 1 is replaced" in text


@pytest.mark.parametrize("name", ["logistic", "absolute"])
@pytest.mark.parametrize("turned", [0.5, 1.5, 3.0, 10.0])
def test_a_regularised_step_moves_two_points_no_further_than_said(ask_json: Any, name: str, turned: float) -> None:
    import numpy as np

    line = f"hockey-stick -n 10 -i 1 --loss {name} --feature-bound 0.5 --regularisation 1 --eta {turned} -R 1 --sigma 1"
    [case] = ask_json(f"{line} -e 1")
    said = case["inputs"]["displacement"]["value"] * 2.0
    loss = losses.of(
        name, feature_bound=0.5, regularisation=1.0, radius=1.0, **({"label_bound": 1.0} if name == "absolute" else {})
    )
    g = np.random.default_rng(5)
    for _ in range(2000):
        v, w = g.uniform(-1, 1, (2, 1))
        x, y = g.uniform(-0.5, 0.5, (1, 1)), np.sign(g.normal(size=1))
        moved = (v - turned * loss.gradient(v, x, y)[0]) - (w - turned * loss.gradient(w, x, y)[0])
        assert np.linalg.norm(moved) <= said * (1.0 + 1e-12)


def test_a_long_step_of_a_regularised_loss_is_not_private_by_its_data_alone(ask_json: Any) -> None:
    """A run of 400000 pairs told the records apart with delta 0.277."""
    line = "hockey-stick -n 10 -i 1 --loss logistic --feature-bound 0.1 --regularisation 1 --eta 10 -R 1 --sigma 0.1"
    [case] = ask_json(f"{line} -e 0.3")
    assert best(case)["value"] >= 0.277


def test_more_told_is_no_less_noise_where_nothing_follows_from_it(ask_json: Any) -> None:
    line = "dp-sgd --algorithm dp-sgd-output -n 1 --steps 6 --eta 1e6 -L 1e6 --holder-exponent 0.5 --holder-constant 1"
    found = [
        best(ask_json(f"{line} --gradient-at-zero 0.01 {more} -e 1 -d 1e-6")[0])["value"]
        for more in ("", "--loss-at-zero 2e-6")
    ]
    assert found[0] == found[1]
