"""Every reference case that dpcalc covers: within 1e-12, and on the safe side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest

from .evaluate import evaluate

CASES = json.loads((Path(__file__).parent / "iteration.json").read_text())

ROUNDED_DOWN = {"gdp_mu", "classic_eps_max"}
NOT_GUARANTEES = {"zcdp_alpha_cks", "thm26_paper_rdp"}


def _known() -> list[Any]:
    known = []
    for case in CASES:
        try:
            evaluate(case["quantity"], case["inputs"])
        except KeyError:
            continue
        known.append(pytest.param(case, id=case["id"]))
    return known


def test_the_adapter_covers_what_it_should() -> None:
    assert len(_known()) >= 150


def test_unknown_quantities_are_refused() -> None:
    with pytest.raises(KeyError):
        evaluate("no_such_quantity", {})


@pytest.mark.parametrize("case", _known())
def test_reference(case: dict[str, Any]) -> None:
    with mp.workdps(60):
        exact = mp.mpf(case["value"])
        found = mp.mpf(evaluate(case["quantity"], case["inputs"]))
        if 0 < exact < mp.mpf("1e-320"):
            assert 0 < found < mp.mpf("1e-320")
            return
        if 0 < exact < mp.mpf("1e-100"):
            exact, found = mp.log(exact), mp.log(found)
        error = found - exact
        assert abs(error) <= mp.mpf("1e-12") * abs(exact), mp.nstr(error / exact, 3)
        if case["quantity"] in ROUNDED_DOWN:
            assert error <= 0
        elif case["quantity"] not in NOT_GUARANTEES:
            assert error >= 0
