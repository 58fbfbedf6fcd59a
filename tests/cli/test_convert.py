"""``dpcalc convert``: what it answers, on which side, and what it refuses."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dpcalc
from dpcalc.cli.main import cli
from dpcalc.engine.premises import points_of
from dpcalc.errors import Infeasible, SpecError
from tests.schema import conforms


def best(**asked: Any) -> dpcalc.Result:
    found = dpcalc.convert(**asked).cases[0].best
    assert found is not None
    return found


def told(line: str) -> str:
    result = CliRunner().invoke(cli, ["convert", *shlex.split(line)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(
    ("asked", "quantity", "value"),
    [
        ({"mu": 1, "delta": 1e-5}, "epsilon", 4.377178095681),  # Balle and Wang's analytic mechanism
        ({"mu": 1, "epsilon": 1}, "delta", 0.126936737507),
        ({"mu": 2, "to": "rho"}, "rho", 2.0),
        ({"mu": 1, "order": 8}, "rdp", 4.0),
        ({"rho": 0.5, "order": 3}, "rdp", 1.5),
        ({"pure": 1, "to": "mu"}, "mu", 1.232035385345),  # 2 Phi^-1(e/(1 + e))
        ({"pure": 1, "to": "rho"}, "rho", 0.462117157260),  # tanh(1/2)
        ({"epsilon": 1, "to": "rho"}, "rho", 0.462117157260),
        ({"pure": 1, "epsilon": 0.5}, "delta", 0.287649136645),  # (e - e^0.5)/(1 + e)
        ({"rdp": {math.inf: 2.0}, "to": "pure"}, "pure", 2.0),
        ({"epsilon": 1, "delta": 1e-5, "to": "mu"}, "sufficient_mu", 0.268051123211),
        ({"epsilon": 1, "delta": 1e-5, "to": "pure"}, "sufficient_pure", 1.000013678846),  # ln((e + d)/(1 - d))
    ],
)
def test_answers(asked: dict[str, Any], quantity: str, value: float) -> None:
    found = best(**asked)
    assert found.quantity == quantity
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found.adjacency == "as-given"


def test_a_renyi_divergence_at_one_order_is_converted_as_well_as_can_be() -> None:
    found = best(rdp="order=8 epsilon=1", delta=1e-6)
    mironov = 1.0 + math.log(1e6) / 7.0
    canonne = 1.0 + math.log(7.0 / 8.0) - (math.log(1e-6) + math.log(8.0)) / 7.0
    assert 1.0 < found.value <= canonne < mironov
    assert found.order == 8.0


def test_delta_of_a_renyi_divergence() -> None:
    for epsilon in (1.5, 3.0):
        found = best(rdp={8: 1.0}, epsilon=epsilon)
        exact = 7.0 * (1.0 - epsilon) - math.log(7.0) + 8.0 * math.log(7.0 / 8.0)  # Canonne, Kamath and Steinke 2020
        assert found.log_delta == pytest.approx(exact, rel=1e-9)
        assert found.log_delta is not None
        assert found.log_delta >= exact
    pure = best(rdp={math.inf: 1.0}, epsilon=0.5)
    assert pure.value == pytest.approx(best(pure=1.0, epsilon=0.5).value, rel=1e-9)
    assert best(rdp={math.inf: 1.0}, delta=0.01).value == pytest.approx(best(pure=1.0, delta=0.01).value, rel=1e-9)


def test_more_orders_say_no_less() -> None:
    alone = [best(rdp={order: value}, delta=1e-5).value for order, value in ((2, 0.1), (64, 3.0))]
    assert best(rdp={2: 0.1, 64: 3.0}, delta=1e-5).value <= min(alone)


def test_epsilon_of_pure_privacy_is_never_above_it() -> None:
    assert best(pure=1, delta=1e-300).value <= 1.0 + 1e-15
    assert best(pure=1, delta=0.01).value == pytest.approx(math.log(math.e - 0.01 * (1.0 + math.e)), rel=1e-9)
    assert best(pure=1, epsilon=1).value == 0.0
    assert best(pure=1, epsilon=0.999999).value > 0.0
    assert 0.0 < best(pure=0.1, epsilon=0.1).value < 1e-15  # what was typed may be a hair off the double
    assert best(pure=0.1, epsilon=0.1000001).value == 0.0


def test_a_guarantee_is_needed() -> None:
    for asked, words in (({"mu": [], "delta": 1e-5}, "mu has no value"), ({}, "no guarantee is known")):
        with pytest.raises(SpecError, match=words):
            dpcalc.convert(**asked)


@pytest.mark.parametrize(
    "text",
    ["order=8", "epsilon=1", "order=8 epsilon=0", "order=1 epsilon=1", "order=8 epsilon=1 delta=1", "8 1", "",
     "order=2,4 epsilon=1", "order=2,2 epsilon=1,2", "order=1e30 epsilon=1", "order=8 epsilon=nan", "order=8 order=9"],
)  # fmt: skip
def test_points_that_are_none(text: str) -> None:
    with pytest.raises(SpecError):
        points_of(text)


def test_what_does_not_follow_is_told_beside_what_does() -> None:
    cases = dpcalc.convert(rdp={8: 1.0}, delta=1e-5, to=["epsilon", "rho"]).cases
    assert [case.best is not None for case in cases] == [True, False]
    assert "rho does not follow" in cases[1].obstacles[0].because


def test_a_sweep_and_its_formats() -> None:
    assert "convert.gdp" in told("--mu 0.5,1 -d 1e-5")
    document = json.loads(told("--mu 0.5,1 --delta 1e-5 --json"))
    conforms(document)
    assert [case["inputs"]["mu"]["value"] for case in document["cases"]] == [0.5, 1.0]
    assert told("--mu 1 -d 1e-5 --format csv").startswith("case,algorithm,bound")
    assert "0.126937" in told("--mu 1 -e 1 --format markdown")


def test_gates_take_the_side_that_can_be_promised() -> None:
    assert dpcalc.convert(epsilon=1, delta=1e-5, to="mu", gates=["sufficient_mu>=0.26"]).failed == 0
    assert dpcalc.convert(epsilon=1, delta=1e-5, to="mu", gates=["sufficient_mu>=0.27"]).failed == 1
    with pytest.raises(SpecError, match="only >= and >"):
        dpcalc.convert(epsilon=1, delta=1e-5, to="mu", gates=["sufficient_mu<=1"])
    with pytest.raises(SpecError, match="reports no mu"):
        dpcalc.convert(epsilon=1, delta=1e-5, to="mu", gates=["mu<=1"])
    with pytest.raises(SpecError, match="cannot fail"):
        dpcalc.convert(epsilon=1, delta=1e-5, to="mu", gates=["sufficient_mu>=0"])
    assert dpcalc.convert(pure=1, to="rho", gates=["rho<=0.46"]).failed == 1


def test_nothing_is_enough_for_a_budget_that_is_too_small() -> None:
    with pytest.raises(Infeasible, match="no rho is enough"):
        dpcalc.convert(epsilon=1e-9, delta="1e-5000", to="rho")


RECIPE = """
dpcalc: recipe/1
cases:
  a: {command: convert, mu: 1, delta: 1e-5, assert: epsilon <= 4.4, expect: {bound: convert.gdp}}
  b: {command: convert, rdp: order=8 epsilon=1, delta: 1e-6, assert: epsilon <= cases.a.epsilon}
  c: {command: convert, epsilon: 1, delta: 1e-5, to: mu, assert: sufficient_mu >= 0.26}
  d: {command: convert, rho: 1, to: mu, expect: {error: not_applicable}}
  e: {command: convert, matrix: {pure: [0.5, 1]}, to: rho, assert: rho <= 0.4}
"""


def test_recipes(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(RECIPE, encoding="utf-8")
    report = dpcalc.check(path)
    status = {case.check.name: str(case.check.status) for case in report.cases if case.check}
    assert status == {
        "a": "passed",
        "b": "passed",
        "c": "passed",
        "d": "passed",
        "e[pure=0.5]": "passed",
        "e[pure=1]": "failed",
    }


def test_a_case_compared_with_the_same_conversion_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    twice = "dpcalc: recipe/1\ncases:\n  a: {command: convert, pure: 1, to: rho}\n"
    path.write_text(f"{twice}  b: {{command: convert, epsilon: 1, to: rho, assert: rho <= cases.a.rho}}\n")
    (case,) = (case for case in dpcalc.check(path).cases if case.check and case.check.name == "b")
    assert case.check is not None
    assert "compared with itself" in str(case.check.message)


def test_nothing_is_certified_and_a_recipe_says_so(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text("dpcalc: recipe/1\ncases:\n  a: {command: convert, mu: 1, delta: 1e-5, assert: epsilon <= 5}\n")
    (case,) = dpcalc.check(path, certify=True).cases
    assert "convert.gdp is not certified" in case.warnings[0]
