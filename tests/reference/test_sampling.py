"""Reference values of sampled steps: at most a little above, never below."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from .evaluate import evaluate

CASES = [
    case
    for name in ("sampling", "correlated")
    for case in json.loads((Path(__file__).parent / f"{name}.json").read_text())
]
ABOVE = {
    "sampling_step_delta": 1e-11,
    "sampling_run_epsilon": 1e-4,
    "allocation_epoch_delta": 1e-2,
    "allocation_epoch_epsilon_upper": 1e-2,
    "sampling_group_delta": 1e-11,
    "truncation_probability": 1e-10,
    "truncated_rate": 1e-10,
    "truncated_epsilon_zero_out": 1e-4,
    "truncated_epsilon_wide": 1e-4,
    "random_allocation_epsilon": 1e-3,
    "schedule_epsilon": 1e-4,
}
LATER = {
    "sensitivity", "prefix_error_rms", "prefix_error_max", "tree_sensitivity_squared",
    "banded_poisson_epsilon", "adaptive_clipping_multiplier", "per_layer_multiplier", "gaussian_epsilon",
}  # fmt: skip
"""What is not covered: noise that is correlated from step to step."""


@pytest.mark.parametrize("case", [c for c in CASES if c["quantity"] in ABOVE], ids=lambda case: case["id"])
def test_a_guarantee_is_just_above(case: dict[str, Any]) -> None:
    found, value = evaluate(case["quantity"], case["inputs"]), float(case["value"])
    above = ABOVE[case["quantity"]]
    if isinstance(found, dict):
        log_delta = float(case["log_delta"])
        assert -1e-12 * (1 - log_delta) <= found["log_delta"] - log_delta <= above * (1 - log_delta)
        return
    lowest = value * (1 - (2e-8 if "contour" in case["note"] else 1e-10))
    if case["quantity"] == "random_allocation_epsilon":
        lowest = 2.47659  # as its note says
    if case["quantity"] == "allocation_epoch_epsilon_upper":  # the value is above the truth, too
        lowest = float(case["note"].split("[")[1].split(",")[0])
    assert lowest <= found <= value * (1 + above)


@pytest.mark.parametrize(
    "case", [c for c in CASES if c["quantity"] == "shuffled_batches_lower_delta"], ids=lambda case: case["id"]
)
def test_a_lower_value_is_just_below(case: dict[str, Any]) -> None:
    found = evaluate(case["quantity"], case["inputs"])
    assert isinstance(found, dict)
    assert -1e-5 <= found["log_delta"] - float(case["log_delta"]) <= 0.0
    assert math.isfinite(found["value"])


def test_all_cases_are_covered() -> None:
    assert {case["quantity"] for case in CASES} == {*ABOVE, "shuffled_batches_lower_delta"} | LATER
