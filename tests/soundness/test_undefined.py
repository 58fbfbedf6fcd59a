"""Costs whose noise is solved for, and bounds that no other campaign draws: more privacy never costs less."""

import random
from typing import Any

import pytest

from dpcalc.errors import DpcalcError
from dpcalc.theorems.record import all_bounds
from tests.formulas import number, run_of
from tests.oracles import draws, log_uniform
from tests.soundness import costs
from tests.soundness.generate import chain_of

PRICES = [
    id for id, bound in all_bounds().items() if bound.price and (id.startswith("holder_cost") or id == "tasks.stop")
]
ROUNDING = 1e-9


def run_and_budget(id: str, r: random.Random) -> dict[str, Any]:
    constants = {"gradient_at_zero": log_uniform(r, 0.1, 10.0), "loss_at_zero": log_uniform(r, 0.1, 10.0)}
    values = {**constants, "failure_probability": log_uniform(r, 1e-3, 0.5), **costs.draw(id, r)}
    if id.startswith("holder_cost"):  # seconds a case for hundreds of records
        values.update(records=r.randint(2, 9), steps=r.randint(1, 9))
    return {name: value for name, value in values.items() if name in all_bounds()[id].reads}


def harder(values: dict[str, Any]) -> dict[str, Any]:
    """Half the budget, or where there is none twice the noise."""
    if "epsilon" in values:
        return {**values, "epsilon": values["epsilon"] / 2.0}
    return {**values, "noise_std": 2.0 * values["noise_std"]}


@pytest.mark.campaign
@pytest.mark.parametrize("id", PRICES)
def test_less_budget_or_more_noise_costs_no_less(id: str) -> None:
    compared = 0
    for r in draws(f"costs {id}", 3 if id.startswith("holder_cost") else 20, 500):
        values = run_and_budget(id, r)
        try:
            risk, more = (costs.priced(id, each).excess_risk for each in (values, harder(values)))
        except DpcalcError:
            continue
        assert 0.0 < risk <= more * (1.0 + ROUNDING), values
        compared += 1
    assert compared


@pytest.mark.campaign
@pytest.mark.parametrize("id", ["shifted.laplace", "shifted.laplace_domain"])
def test_more_laplace_noise_tells_no_more(id: str) -> None:
    for r in draws(f"chains {id}", 12, 500):
        steps = r.randint(1, 4)
        chain = chain_of(r, steps, log_uniform)
        run = {"schedule": chain, "steps": steps, "start_distance": 0.0, "diameter": log_uniform(r, 0.1, 10.0)}
        told = [
            number(all_bounds()[id].prove(run_of({**run, "noise": "laplace", "laplace_scale": scale})), order=2.0)
            for scale in (1.0, 2.0)
        ]
        assert 0.0 <= told[1] <= told[0] * (1.0 + ROUNDING), chain
