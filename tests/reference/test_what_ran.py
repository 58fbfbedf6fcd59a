"""Reference values of audits from scores: lower bounds at most, p-values at least, and all of them near."""

import json
from pathlib import Path
from typing import Any

import pytest

from .evaluate import evaluate

CASES = json.loads((Path(__file__).parent / "what_ran.json").read_text())
LOWER, UPPER, NEITHER = -1, 1, 0
SIDES = {
    "threshold_epsilon": LOWER, "threshold_mu": LOWER, "one_run_epsilon": LOWER, "order_statistic_upper": UPPER,
    "one_run_p": UPPER, "one_run_walk_p": UPPER, "one_run_p_quoted": NEITHER, "one_run_gdp_p_upper": NEITHER,
}  # fmt: skip
NEAR = {"one_run_gdp_p_upper": 1e-6, "threshold_mu": 1e-11}


@pytest.mark.parametrize("case", [c for c in CASES if c["quantity"] in SIDES], ids=lambda case: case["id"])
def test_a_bound_from_scores_is_near_and_on_its_side(case: dict[str, Any]) -> None:
    found, value, side = evaluate(case["quantity"], case["inputs"]), float(case["value"]), SIDES[case["quantity"]]
    assert isinstance(found, float)
    assert found == pytest.approx(value, rel=NEAR.get(case["quantity"], 1e-11))
    assert side * (found - value) >= -1e-15 * value
