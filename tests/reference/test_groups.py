"""Weakly convex losses and groups of records: every reference case, at the tolerance that its note gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest

from .evaluate import evaluate

HERE = Path(__file__).parent
WEAK = ("weak_factor", "step_expansion", "hide_cost_min", "hide_cost_sqrt", "weak_cyclic_epsilon")
CASES = [case for case in json.loads((HERE / "hidden_batches.json").read_text()) if case["quantity"] in WEAK]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_reference(case: dict[str, Any]) -> None:
    exact, found = mp.mpf(case["value"]), mp.mpf(evaluate(case["quantity"], case["inputs"]))
    assert -mp.mpf("1e-24") <= found / exact - 1 <= mp.mpf("1e-12")
