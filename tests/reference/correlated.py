"""Reference quantities of correlated noise: they rename inputs and call."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.quantities import Mechanism
from dpcalc.model.run import describe
from dpcalc.model.strategy import Strategy, tree_sensitivity_squared
from dpcalc.theorems.record import lookup

RunInputs = Mapping[str, Any]


def _strategy(i: RunInputs) -> Strategy:
    mechanism = Mechanism(str(i["family"]).replace("_", "-"))
    return Strategy(mechanism, int(i["steps"]), int(i.get("bands", 1)), int(i.get("uses", 1)))


def _epsilon(bound: str, i: RunInputs, **more: Any) -> float:
    given = {"steps": int(i["steps"]), "noise_multiplier": float(i["multiplier"]), **more}
    guarantee = guarantee_of(lookup(bound), describe("correlated", given))
    return guarantee.epsilon(math.log(float(i["delta"]))).value


def _in_order(i: RunInputs) -> float:
    of = _strategy(i)
    return _epsilon(
        "correlated.gaussian", i, mechanism=of.mechanism, bands=of.bands, participations=of.uses,
        separation=int(i["separation"]), adjacency=str(i.get("adjacency", "zero-out")),
    )  # fmt: skip


def _banded_poisson(i: RunInputs) -> float:
    return _epsilon(
        "correlated.banded_poisson", i, mechanism="banded-sqrt", bands=int(i["bands"]), scaling="columns",
        sample_rate=float(i["overall_rate"]), sampling="poisson", adjacency=str(i["direction"]),
    )  # fmt: skip


CORRELATED: dict[str, Callable[[RunInputs], float]] = {
    "sensitivity": lambda i: _strategy(i).sensitivity(int(i["separation"])),
    "prefix_error_rms": lambda i: _strategy(i).noise().rms,
    "prefix_error_max": lambda i: _strategy(i).noise().largest,
    "tree_sensitivity_squared": lambda i: tree_sensitivity_squared(
        steps=int(i["steps"]), uses=int(i["uses"]), separation=int(i["separation"])
    ),
    "gaussian_epsilon": _in_order,
    "banded_poisson_epsilon": _banded_poisson,
}
