"""What privacy costs, as subjects: the risk is no less than the formula's at the run reported, which is private."""

import math
import random
from typing import Any

from dpcalc.certify.runs.run import RunInputs
from dpcalc.errors import DpcalcError
from dpcalc.notions.conversions import Risk
from dpcalc.theorems.record import all_bounds
from tests.formulas import QUESTIONS, number, run_of
from tests.oracles import log_uniform, whole


def draw(id: str, r: random.Random) -> dict[str, Any]:
    """Return parameters and a budget for which the bound speaks, if some trials draw one."""
    bound = all_bounds()[id]
    values: dict[str, Any] = {}
    for _ in range(60):
        n = whole(r, 1, r.choice((10, 10**5, 10**9)))
        beta = log_uniform(r, 0.1, 10.0)
        values = {
            "records": n, "index": whole(r, 1, n), "public_records": whole(r, 1, n), "tasks": whole(r, 1, 20),
            "dimension": whole(r, 1, r.choice((1, 30, 10**4))), "lipschitz": log_uniform(r, 0.1, 10.0),
            "smoothness": beta, "strong_convexity": beta * r.choice((1.0, r.random(), log_uniform(r, 1e-3, 1.0))),
            "radius": log_uniform(r, 0.1, 10.0), "noise_std": log_uniform(r, 0.1, 10.0),
            "step_size": log_uniform(r, 1e-4, 1.0), "steps": whole(r, 1, n),
            "holder_exponent": r.choice((0.0, 1.0, r.random())), "holder_constant": log_uniform(r, 0.1, 10.0),
        }  # fmt: skip
        if id.startswith("holder_cost"):
            values.update(records=whole(r, 2, 300), strong_convexity=0.0, loss_at_zero=log_uniform(r, 0.1, 10.0))
            values.update(failure_probability=log_uniform(r, 1e-6, 0.5), gradient_at_zero=log_uniform(r, 0.1, 10.0))
            values["steps"] = whole(r, 1, values["records"])
            del values["step_size"]
        values["epsilon"], values["log_delta"] = log_uniform(r, 0.01, 10.0), -log_uniform(r, 1.0, 60.0)
        try:
            if bound.obstacle(run_of(values)) is None:
                break
        except DpcalcError:
            continue
    return {name: value for name, value in values.items() if name in bound.reads}


def priced(id: str, values: dict[str, Any]) -> Risk:
    """Return what the bound says.

    Raises:
        NotApplicable: nothing.
    """
    asked = {name: values[name] for name in QUESTIONS if name in values}
    run = {name: value for name, value in values.items() if name not in QUESTIONS}
    cost: Risk = number(all_bounds()[id].prove(run_of({**run, **asked})), **asked)
    return cost


def inputs_of(values: dict[str, Any], cost: Risk, typed: bool) -> RunInputs:
    """Return the inputs of the definitions: the parameters, and the run behind the cost."""
    chosen = {"sigma": cost.noise_std, "eta": cost.step_size, "count": cost.steps}
    return RunInputs({**values, **chosen}, typed, exactly=QUESTIONS)


def speaks(cost: Risk) -> bool:
    """Return whether a cost says anything."""
    return math.isfinite(cost.excess_risk)
