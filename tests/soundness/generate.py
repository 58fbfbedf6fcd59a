"""Runs to try: plain ones, and those at the edges of every domain. A case is a function of (seed, number) alone."""

import functools
import math
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dpcalc.certify.case import may_stay_open
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.table import definitions
from dpcalc.errors import DpcalcError
from dpcalc.model.chain import Chain
from dpcalc.theorems.record import Theorem, all_bounds
from tests.formulas import run_of
from tests.oracles import log_uniform, position, whole
from tests.oracles.correlated import matrix_of

MOST = 10**15
_FRONT = 60.0  # milliseconds that a question takes through the front door
COMPOSED_COSTS = tuple(id for id, price in PRICES.items() if price.parts)
"""Costs whose noise is solved for through a composition: seconds each."""


class Case(NamedTuple):
    """A bound's parameters and its question (order, epsilon or log_delta)."""

    subject: str
    values: dict[str, Any]


@functools.cache
def chances() -> dict[str, float]:
    """Return the subjects and how often they are drawn, the costly ones more rarely."""
    from tests.soundness import front
    from tests.soundness.conversions import CONVERSIONS

    table, bounds = definitions(), all_bounds()
    weights = {id: 1.0 / (table[id].weight + 1.0) for id, bound in bounds.items() if id in table and comparable(bound)}
    weights.update({id: 1.0 / conversion.weight for id, conversion in CONVERSIONS.items()})
    weights.update(dict.fromkeys((f"ask.{algorithm}" for algorithm in front.RUNS), 1.0 / _FRONT))
    weights.update({id: 0.02 if bounds[id].slow else 0.2 for id in PRICES})
    weights.update(dict.fromkeys(COMPOSED_COSTS, 0.001))
    return weights


def comparable(bound: Theorem) -> bool:
    """Return whether a bound is of privacy and is to be met: a guarantee, or a lower value.

    Compositions, and integrals over the curve of a pass, take seconds each, and have tests of their own.
    """
    return not bound.price and not may_stay_open(bound.id) and (bound.guarantee or bound.kind == "lower")


def draw(seed: int, number: int, only: tuple[str, ...] = ()) -> Case:
    """Return a case; the same for the same arguments, on every machine."""
    from tests.soundness import costs, front
    from tests.soundness.conversions import CONVERSIONS

    r = random.Random(f"{seed}/{number}")
    drawn = {id: chance for id, chance in chances().items() if not only or {id, id.partition(".")[0]} & set(only)}
    subject = r.choices(list(drawn), list(drawn.values()))[0]
    if subject in CONVERSIONS:
        return Case(subject, CONVERSIONS[subject].draw(r))
    if subject in PRICES:
        return Case(subject, costs.draw(subject, r))
    if subject.startswith("ask."):
        return Case(subject, front.draw(subject.removeprefix("ask."), r))
    return Case(subject, parameters(all_bounds()[subject], r))


def parameters(bound: Theorem, r: random.Random) -> dict[str, Any]:
    """Return parameters that meet every requirement of the bound, and a question."""
    for attempt in range(200):
        values = _drawn(bound, r, r.choice(_REGIMES) if attempt < 150 else _plain)
        try:
            if bound.obstacle(run_of(values)) is None and not bound.unpromised(run_of(values)):
                break
        except DpcalcError:
            continue
    else:
        raise AssertionError(f"no run meets the requirements of {bound.id}")
    kept = [name for name in values if name in {*bound.parameters, *_ASKED} and values[name] is not None]
    return {**{name: values[name] for name in kept}, **question(bound, r, values)}


_ASKED = (
    "records", "index", "batch_size", "step_size", "smoothness", "loss_class", "noise", "permutation", "model",
    "release", "start", "requests", "contraction",
)  # fmt: skip
"""What requirements ask for that the bound itself may not take."""


# --- numbers ---------------------------------------------------------------------------------------------------------

Regime = Callable[[random.Random, float, float], float]


def _plain(r: random.Random, low: float, high: float) -> float:
    return log_uniform(r, low, high)


def _wide(r: random.Random, low: float, high: float) -> float:
    """Many orders of magnitude around the usual ones."""
    middle = math.sqrt(low * high)
    return log_uniform(r, max(middle * 1e-12, 1e-150), min(middle * 1e12, 1e150))


def _typed(r: random.Random, low: float, high: float) -> float:
    """A number of few digits, as people type them: 0.1, 3, 2.5e-4."""
    return float(f"{log_uniform(r, low, high):.{r.randint(0, 2)}e}")


def _bare(r: random.Random, low: float, high: float) -> float:
    """All digits, next to a power of two or of ten, or on it."""
    x = log_uniform(r, low, high)
    anchor = r.choice((2.0 ** round(math.log2(x)), 10.0 ** round(math.log10(x))))
    return r.choice((anchor, math.nextafter(anchor, 0.0), math.nextafter(anchor, math.inf)))


_REGIMES: tuple[Regime, ...] = (_plain, _plain, _typed, _wide, _bare)


def _records(bound: Theorem, r: random.Random) -> int:
    definition = definitions()[bound.id]
    if definition.limit or definition.floor or bound.slow or "diameter" in bound.parameters:
        top = r.choice((1, 2, 3, 7, 20, 20, 60, 60, 300 if definition.weight < 15.0 else 100))
        if not definition.limit and not bound.slow:
            top = r.choice((top, MOST))
        return whole(r, 1, top)
    return whole(r, 1, r.choice((1, 2, 5, 100, 10**4, 10**6, MOST)))


def _step(r: random.Random, beta: float, low_share: float = 0.1) -> float:
    """A step size up to 2/smoothness, the end included."""
    kind = r.randrange(6)
    if kind == 0:
        return 2.0 / beta
    if kind == 1:
        return math.nextafter(2.0 / beta, 0.0)
    if kind == 2:
        return 1.0 / beta
    if kind == 3:
        return 2.0 / beta * log_uniform(r, 1e-12, 1.0)
    return float(f"{r.uniform(low_share, 1.99) / beta:.{r.randint(0, 16)}e}")


def _convexity(r: random.Random, beta: float) -> float:
    """A strong convexity up to the smoothness, the end included."""
    return r.choice((beta, beta * r.random(), beta * log_uniform(r, 1e-12, 1.0), beta * log_uniform(r, 1e-3, 1.0)))


def _drawn(bound: Theorem, r: random.Random, number: Regime) -> dict[str, Any]:
    n = _records(bound, r)
    batch = r.choice((1, 1, whole(r, 1, n), n, max(1, n - 1)))
    beta = number(r, 0.1, 10.0)
    laplace = "laplace" in bound.id or (r.random() < 0.3 and "noise" in bound.parameters)
    unit = number(r, 0.3, 30.0)
    values: dict[str, Any] = {
        "records": n, "index": position(r, n), "batch_size": batch,
        "last_batch": r.choice(("own", "nominal", "drop", "balanced", "front")),
        "adjacency": r.choice(("replace-one", "null-record")),
        "epochs": whole(r, 1, r.choice((1, 2, 10, 1000, 1000 if definitions()[bound.id].limit else MOST))),
        "steps": whole(r, 1, r.choice((1, 2, 30, 1000, 1000 if bound.id.startswith("dp_sgd") else MOST))),
        "sensitivity": unit * number(r, 0.05, 20.0), "noise_std": unit, "laplace_scale": unit, "scale": unit,
        "smoothness": beta, "step_size": _step(r, beta), "strong_convexity": _convexity(r, beta),
        "diameter": number(r, 0.1, 100.0), "start_distance": r.choice((0.0, number(r, 0.1, 10.0))),
        "lipschitz": unit * number(r, 0.05, 20.0),
        "epoch_epsilon": number(r, 1e-3, 1.0), "epoch_delta": r.choice((0.0, min(0.9, number(r, 1e-12, 1e-3)))),
        "noise": "laplace" if laplace else "gaussian",
        "loss_class": r.choice(("convex-smooth", "convex-smooth", "smooth", "convex", "lipschitz")),
        "displacement": r.choice((1.0, r.uniform(0.1, 2.0))), "dimension": 1,
        "c1": log_uniform(r, 0.1, 1e4), "c2": log_uniform(r, 1.0, 1e3), "decay_exponent": r.uniform(1.1, 3.0),
        "schedule_factor": r.choice((1.0, r.uniform(0.5, 2.0))), "permutation": "secret",
        "holder_exponent": r.choice((0.0, 1.0, 0.5, r.random())), "holder_constant": log_uniform(r, 0.1, 10.0),
        "gradient_at_zero": log_uniform(r, 0.1, 10.0), "loss_at_zero": log_uniform(r, 0.1, 10.0),
        "radius": log_uniform(r, 0.1, 10.0),
    }  # fmt: skip
    if "diameter" in bound.parameters:  # so that r_B says something
        values["diameter"] = values["step_size"] * unit * log_uniform(r, 0.01, 100.0)
    if values["loss_class"] == "smooth":
        values["step_size"] *= r.choice((1.0, 2.0))
    del values["noise_std" if laplace else "laplace_scale"]
    if bound.kind == "lower":
        del values["diameter"]
        values["strong_convexity"] = r.choice((0.0, values["strong_convexity"]))
    elif r.random() < 0.2 and bound.id not in ("online.shift", "online.hybrid"):
        for name in ("diameter", "displacement", "strong_convexity", "smoothness"):
            if name in bound.optional and r.random() < 0.5:
                del values[name]
    weak = values["loss_class"] in ("smooth", "lipschitz") or bound.family == "unlearning"
    if weak and bound.weakly_convex and "strong_convexity" in values and r.random() < 0.4:
        values["strong_convexity"] *= -1.0
    if bound.id.endswith("linear_model"):
        del values["diameter"]
        steep = values["smoothness"] = values["smoothness"] * r.choice((1.0, 0.01))
        values.update(model="linear", step_size=r.choice((0.9, 0.1, log_uniform(r, 1e-12, 0.999))) / steep)
        if values["adjacency"] == "null-record" or r.random() < 0.5:
            values["strong_convexity"] = 0.0
    if bound.algorithms[0] in ("skip", "stop", "shuffled-stop", "online"):
        values["batch_size"] = 1
    if bound.id == "released.pure":
        values["epoch_delta"] = 0.0
    if bound.id.startswith("dp_sgd"):
        _sampled(bound, r, values)
    if bound.family == "sampled":
        values["sampling"] = bound.id.removeprefix("sampled.").removesuffix("_lower").replace("_", "-")
        if bound.id == "sampled.hidden":
            values.update(sampling=r.choice(("poisson", "fixed")))
        if bound.id.startswith("sampled.hidden"):
            values.update(release="last", model="linear")
        if bound.id.startswith("sampled.hidden_"):
            values.update(sampling=bound.id.removeprefix("sampled.hidden_"), clip=unit)
            values.update(adjacency=r.choice(("replace-one", "zero-out")), regularisation=values["strong_convexity"])
            if r.random() < 0.3:
                values.pop(r.choice(("clip", "diameter", "regularisation")), None)
        if bound.id == "sampled.hidden_shuffle":
            values["steps"] = values["epochs"] * -(-n // batch)
        values["noise_multiplier"] = number(r, 0.1, 100.0)
    if bound.family == "correlated":
        _correlated(bound, r, values, number)
    if bound.family == "unlearning":
        _continued(bound, r, values)
    if "schedule" in bound.parameters:
        steps = r.choice((1, 2, 3, r.randint(1, 12), r.randint(1, 40)))
        chain = chain_of(r, steps, number, spend=bound.id == "shifted.given_spend")
        values.update(schedule=chain, records=steps, index=r.randint(1, steps))
        if bound.id == "shifted.given_spend":
            values["start_distance"] = 0.0
        if bound.family == "unlearning":
            chain.shift *= 0.0
        if "index" in bound.optional and r.random() < 0.3:
            del values["index"]
    if bound.id == "correlated.matrix":
        values.update(schedule=matrix_of(r, values["steps"]), mechanism="file")
    return values


def _continued(bound: Theorem, r: random.Random, values: dict[str, Any]) -> None:
    """What makes a start and the steps after it fit together."""
    start = bound.id.removeprefix("unlearning.").removeprefix("whole_")
    values["start"] = start if start in ("minimiser", "run") else "distance"
    if values["start"] == "distance":
        values["adjacency"] = "null-record"
    values["clean_steps"] = whole(r, 1, r.choice((1, 2, 30, 1000, MOST)))
    values["requests"] = r.choice((1, 1, whole(r, 1, 1000))) if bound.id == "unlearning.distance" else 1
    if r.random() < 0.5:
        values.pop("diameter", None)
    if values["start"] == "minimiser" and r.random() < 0.5:
        values["gradient_norm"] = log_uniform(r, 1e-12, 10.0)
    if values["start"] != "distance":
        values["records"] = values["batch_size"] * whole(r, 1, r.choice((1, 2, 30, 10**6)))
    if values["start"] != "minimiser" and r.random() < 0.5:
        for name in ("smoothness", "strong_convexity"):
            values.pop(name, None)
        top = (1.0, 1.0, r.random(), 1.0 - log_uniform(r, 1e-15, 0.5))
        values["contraction"] = r.choice((*top, 1.0 + log_uniform(r, 1e-15, 1.0)) if start == "distance" else top)


def _correlated(bound: Theorem, r: random.Random, values: dict[str, Any], number: Regime) -> None:
    """What makes a matrix, the passes and the way to sample fit together."""
    length, bands = whole(r, 1, r.choice((1, 2, 7, 60))), whole(r, 1, r.choice((1, 2, 5)))
    sampled = bound.id.removeprefix("correlated.banded_") if "banded" in bound.id else ""
    matrices = ("identity", "banded-sqrt") if sampled else ("identity", "banded-sqrt", "bisr", "sqrt", "tree", "blt")
    values.update(
        bands=bands, noise_multiplier=number(r, 0.3, 30.0),
        scaling=r.choice(("matrix", "columns") if sampled else ("matrix", "columns", "sensitivity")),
        mechanism=r.choice(matrices),
        sampling={"": None, "poisson": "poisson", "balls": "balls-in-bins"}[sampled],
    )  # fmt: skip
    if values["mechanism"] == "identity":
        values["bands"] = 1
    length *= values["bands"] if sampled else 1
    values.update(separation=length, steps=whole(r, 1, 5 * length), participations=whole(r, 1, 7))


def _sampled(bound: Theorem, r: random.Random, values: dict[str, Any]) -> None:
    """What makes the constants of Hoelder losses fit together."""
    values["noise_std"] = log_uniform(r, 0.1, 100.0)
    values["lipschitz"] = log_uniform(r, 0.1, 10.0)
    if r.random() < 0.5:
        del values["lipschitz"]
    if bound.id.startswith("dp_sgd.output"):
        total = values["holder_constant"] + 2.0 * values["strong_convexity"]
        values.update(batch_size=1, step_size=min(1.0, log_uniform(r, 1e-4, 1.0) / total))
        values["strong_convexity"] = r.choice((0.0, values["strong_convexity"]))


def chain_of(r: random.Random, steps: int, number: Regime, spend: bool = False) -> Chain:
    """Return a schedule; with ``spend`` all of each step's shift is spent at once."""

    def column(low: float, high: float) -> Any:
        return np.array([number(r, low, high) for _ in range(steps)])

    shift = np.array([r.choice((0.0, number(r, 0.01, 1.0))) for _ in range(steps)])
    law = np.array([r.random() for _ in range(steps)])
    return Chain(
        step_size=column(0.1, 1.0), noise=column(0.5, 2.0),
        contraction=np.array([r.choice((1.0, r.uniform(0.5, 1.0), r.uniform(0.0, 1.2))) for _ in range(steps)]),
        shift=shift, spend=shift.copy() if spend else None, path="",
        displacement=np.array([r.choice((1.0, r.uniform(0.5, 1.5))) for _ in range(steps)]),
        probability=None if r.random() < 0.7 else law / law.sum(),
    )  # fmt: skip


# --- questions -------------------------------------------------------------------------------------------------------


def question(bound: Theorem, r: random.Random, values: Mapping[str, Any]) -> dict[str, float]:
    """Return an order, an epsilon or a ln delta, where the bound takes one."""
    if bound.notion == "rdp":
        near = 1.0 + log_uniform(r, 1e-9, 1.0)
        return {"order": r.choice((1.0, 2.0, near, log_uniform(r, 1.0, 100.0), log_uniform(r, 1.0, 1e9)))}
    if bound.notion in ("log_delta", "parts"):
        return {"epsilon": _epsilon(r, values)}
    if bound.notion == "epsilon":
        return {"log_delta": -r.choice((log_uniform(r, 0.1, 40.0), log_uniform(r, 1e-3, 1e6), 690.7755278982137))}
    return {}


def _epsilon(r: random.Random, values: Mapping[str, Any]) -> float:
    kind = r.randrange(8)
    if kind == 0:
        return 0.0
    if kind == 1:
        return log_uniform(r, 1e-300, 1e-6)
    if kind == 2:
        return log_uniform(r, 10.0, 1e4)
    scale = values.get("scale") or values.get("noise_std")
    if kind == 3 and scale and values.get("sensitivity"):  # where Laplace bounds change their form, and steps tell all
        ratio = values["sensitivity"] / scale
        ratio = r.choice((ratio, 0.5 * ratio, ratio * ratio / 2.0, math.nextafter(ratio, 0.0)))
        return ratio if 0.0 < ratio < 1e6 else 1.0
    return log_uniform(r, 1e-3, 10.0)
