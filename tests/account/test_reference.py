"""What loaders do, and accounts of histories, against values of another program and closed forms of 25 digits."""

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest

from tests.reference.evaluate import evaluate

ROUNDED_DOWN, ROUNDED_UP = ("adaptive_clipping_true_multiplier",), ("empty_local_batch_delta",)
SAME = ("opacus_sampler_rate", "opacus_epoch_steps", "opacus_history_rate", "opacus_divisor")
SEARCHED = {"history_epsilon": (1e-6, 5e-3), "shared_coin_epsilon_below": (1e-6, 1e-6)}
"""How far below and above the value a number may be: values of histories have seven digits."""

CASES = [
    case
    for case in json.loads((Path(__file__).parents[1] / "reference" / "what_ran.json").read_text(encoding="utf-8"))
    if case["quantity"] in (*ROUNDED_DOWN, *ROUNDED_UP, *SAME, *SEARCHED)
]


def test_all_quantities_are_there() -> None:
    assert {case["quantity"] for case in CASES} == {*ROUNDED_DOWN, *ROUNDED_UP, *SAME, *SEARCHED}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reference(case: dict[str, Any]) -> None:
    value = evaluate(case["quantity"], case["inputs"])
    assert isinstance(value, float)
    if case["quantity"] in SAME:
        assert value == float(case["value"])
        return
    with mp.workdps(40):
        error = mp.mpf(value) / mp.mpf(case["value"]) - 1
        below, above = SEARCHED.get(case["quantity"], (1e-11, 1e-11))
        assert -below <= error <= above
        assert error <= 0 or case["quantity"] not in ROUNDED_DOWN
        assert error >= 0 or case["quantity"] not in ROUNDED_UP
