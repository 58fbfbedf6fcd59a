"""Reference values of hidden batches: closed forms, and compositions within what their notes say."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .evaluate import evaluate

CASES = json.loads((Path(__file__).parent / "hidden_batches.json").read_text())
WITHIN = {"theorem_n_epsilon": 0.0, "poisson_epsilon": 0.0, "hidden_one_step": 5e-3}
"""How far above the value a composition may lie, or 0 where the note has the ends."""
CLOSED = {"start_mu", "large_batch_failure", "uses_tail", "uses_cut", "mixture_delta"}


@pytest.mark.parametrize("case", [c for c in CASES if c["quantity"] in CLOSED], ids=lambda case: case["id"])
def test_a_closed_form_is_rounded_up(case: dict[str, Any]) -> None:
    found, value = evaluate(case["quantity"], case["inputs"]), float(case["value"])
    assert isinstance(found, float)
    # Masses count every rounding of the sums that they come from: some 1e-10 of themselves.
    assert value * (1 - 1e-15) <= found <= value * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("case", [c for c in CASES if c["quantity"] in WITHIN], ids=lambda case: case["id"])
def test_a_composition_is_within_its_ends(case: dict[str, Any]) -> None:
    found, value = evaluate(case["quantity"], case["inputs"]), float(case["value"])
    above = WITHIN[case["quantity"]]
    ends = re.search(r"\[([\d.]+), ([\d.]+)\]", case["note"])
    low, high = (float(ends[1]), float(ends[2])) if ends else (value * (1 - 1e-9), value * (1 + above))
    assert low <= found <= high
