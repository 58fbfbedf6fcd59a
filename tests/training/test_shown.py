"""Every lower value of `compare` has an attack that comes near it, or a reason; so has every run that is trained."""

from typing import Any, NamedTuple

import pytest

from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.run import describe
from dpcalc.theorems.record import all_bounds, lookup
from dpcalc.training.audit.attacks import Attack, pairs
from dpcalc.training.audit.case import plan_of
from dpcalc.training.audit.estimate import Setup, audit
from tests.training.attacks_of_lower_bounds import SHOWN_BY
from tests.truth.asking import front

DELTA = 0.1
LINEAR: dict[str, Any] = {"lipschitz": 1.0, "smoothness": 1.0, "step_size": 1.0, "noise_std": 2.0}
CURVED: dict[str, Any] = {**LINEAR, "noise_std": 0.5, "batch_size": 4}
LATE: dict[str, Any] = {**LINEAR, "noise_std": 0.5, "records": 20}
SECRET = {"permutation": "secret"}


class Near(NamedTuple):
    """A run, and the share of the lower value of epsilon that its attack shows."""

    algorithm: str
    given: dict[str, Any]
    share: float


NEAR: dict[str, Near] = {
    "linear.pass": Near("pnsgd", {**LINEAR, "records": 2}, 0.8),
    "linear.passes": Near("cyclic", {**LINEAR, "records": 3, "epochs": 2}, 0.8),
    "linear.descent": Near("noisy-gd", {**LINEAR, "records": 2, "steps": 4}, 0.8),
    "linear.local": Near("local", {**LINEAR, "records": 2}, 0.8),
    "linear.shuffled": Near("shuffled", {**LINEAR, "noise_std": 1.0, "records": 3, "batch_size": 2}, 0.8),
    "linear.once": Near("rotation-epochs", {**LINEAR, "records": 3, "batch_size": 2, "epochs": 2}, 0.8),
    "linear.epochs": Near("shuffled-epochs", {**LINEAR, "records": 3, "batch_size": 2, "epochs": 2}, 0.8),
    "linear.sampled": Near("noisy-sgd", {**LINEAR, "records": 2, "steps": 3}, 0.8),
    "linear.sampled_curved": Near("noisy-sgd", {**LINEAR, "records": 2, "steps": 4, "strong_convexity": 0.25}, 0.8),
    "multi_epoch.quadratic": Near("cyclic", {**LINEAR, "records": 2, "epochs": 2, "strong_convexity": 0.25}, 0.8),
    "noisy_gd.quadratic": Near("noisy-gd", {**LINEAR, "records": 2, "steps": 4, "strong_convexity": 0.25}, 0.8),
    "linear.curved": Near("pnsgd", {**CURVED, "records": 8, "index": 8}, 0.7),
    "linear.epochs_curved": Near("shuffled-epochs", {**CURVED, "records": 8, "epochs": 2}, 0.7),
    "linear.epochs_curved_released": Near("shuffled-epochs-released", {**CURVED, "records": 8, "epochs": 2}, 0.7),
    "linear.forgetting": Near("pnsgd", {**LATE, "index": 7}, 0.7),
    "linear.forgetting_passes": Near("cyclic", {**CURVED, "records": 8, "epochs": 2, "index": 8}, 0.7),
    "linear.once_curved_released": Near("shuffle-once-released", {**CURVED, "records": 8, "epochs": 2}, 0.7),
    "linear.curved_passes": Near("cyclic", {**CURVED, "records": 8, "epochs": 2, "index": 8}, 0.7),
    "linear.shuffled_curved": Near("shuffled", {**CURVED, "records": 8}, 0.7),
    "linear.once_curved": Near("shuffle-once", {**CURVED, "records": 8, "epochs": 2}, 0.7),
    "linear.shuffled_curved_secret": Near("rotation", {**CURVED, **SECRET, "records": 8}, 0.7),
    "linear.once_curved_secret": Near("shuffle-once", {**CURVED, **SECRET, "records": 8, "epochs": 2}, 0.7),
}
NO_EPSILON = {"noisy_gd.langevin_lower"}


def lower_bounds() -> set[str]:
    return {name for name in all_bounds() if lookup(name).kind == "lower"}


def test_every_lower_value_has_an_attack_or_a_reason() -> None:
    assert set(SHOWN_BY) == lower_bounds()
    assert all(shown.how for shown in SHOWN_BY.values())
    assert set(NEAR) | NO_EPSILON == {bound for bound, shown in SHOWN_BY.items() if shown.attacks}
    for bound, near in NEAR.items():
        assert near.algorithm in lookup(bound).algorithms


@pytest.mark.few(8)
@pytest.mark.parametrize("bound", NEAR)
def test_the_attack_comes_near_the_lower_value(bound: str) -> None:
    algorithm, given, share = NEAR[bound]
    case = front(algorithm, given, delta=DELTA)
    [lower] = [result.value for result in case.results if result.bound == bound]
    run = describe(algorithm, given)
    tried = [pair for attack in SHOWN_BY[bound].attacks for pair in pairs(run, plan_of(run), attack)]
    found = audit(tried, DELTA, Setup(40_000, confidence=0.9))
    assert found.epsilon is not None
    assert case.best is not None
    assert share * lower <= found.epsilon <= case.best.value


SIZES: dict[str, dict[str, Any]] = {
    "online": {
        "smoothness": 1.0, "step_size": 0.5, "lipschitz": 1.0, "diameter": 2.0, "noise": "gaussian", "c1": 2.0,
        "c2": 1.5, "decay_exponent": 1.5, "strong_convexity": 0.25,
    },
    "dp-sgd-output": {
        "lipschitz": 1.0, "noise_std": 1.0, "step_size": 0.5, "radius": 4.0, "holder_exponent": 1.0,
        "holder_constant": 1.0,
    },
    "dp-sgd-gradient": {"lipschitz": 1.0, "noise_std": 1.0, "step_size": 0.5},
    "correlated": {
        "clip": 1.0, "noise_multiplier": 1.0, "step_size": 0.5, "batch_size": 1, "epochs": 2, "mechanism": "tree",
    },
}  # fmt: skip


@pytest.mark.parametrize("algorithm", [a.name for a in ALGORITHMS.values() if a.executed])
def test_every_run_that_is_trained_has_an_attack(algorithm: str) -> None:
    parameters = ALGORITHMS[algorithm].parameters
    more: dict[str, Any] = {name: 2 for name in ("epochs", "steps") if name in parameters and algorithm not in SIZES}
    if {"epochs", "steps"} <= set(more):
        del more["steps" if ALGORITHMS[algorithm].length == "epochs" else "epochs"]
    run = describe(algorithm, {"records": 3, **SIZES.get(algorithm, LINEAR), **more})
    found = pairs(run, plan_of(run))
    assert Attack.LINEAR in {pair.attack for pair in found}
