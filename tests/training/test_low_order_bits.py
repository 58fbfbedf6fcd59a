"""A hunt for a record in the low-order bits of what every algorithm releases: it is found in plain doubles alone."""

import math
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import NotApplicable
from dpcalc.model.algorithm import ALGORITHMS, Release
from dpcalc.model.run import describe
from dpcalc.training.audit.attacks import Linear
from dpcalc.training.rule.guarantee import rounding_of
from dpcalc.training.run import kernel, single
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding, output_rounding

COLUMNS, ETA, BITS = 1000, 0.3, 16
LOSS = Linear(feature_bound=0.9, label_bound=1.0)
EACH = LOSS.feature_bound / math.sqrt(COLUMNS) * (1.0 - 1e-9)
DRIFT = ETA * EACH
TOLD = 6.0
"""Standard deviations by which two shares differ only where a record is told: by chance once in some 1e6 hunts."""

STEPS: dict[str, dict[str, Any]] = {
    "online": {"noise_std": None, "c1": 1.0, "c2": 1.0, "decay_exponent": 1.5, "diameter": 2.0},
    "dp-sgd-gradient": {"steps": 2}, "dp-sgd-output": {"steps": 2},
    "correlated": {
        "mechanism": "blt", "batch_size": 1, "epochs": 1, "clip": 0.9, "noise_multiplier": 1.0 / 0.9, "noise_std": None,
        "lipschitz": None, "smoothness": None,
    },
} | {name: {"steps": 1} for name in ("noisy-sgd", "noisy-gd", "noisy-sgd-released", "noisy-gd-released")}  # fmt: skip
"""What makes few steps of an algorithm; others have one in every pass over one record."""

ALL = sorted(name for name, algorithm in ALGORITHMS.items() if algorithm.executed)
ROUNDED = ("correlated",)  # always: no plain doubles are drawn
MIXED = "online"  # it projects, which mixes bits
SOME = {"correlated", "dp-sgd-output", "noisy-gd", "pnsgd"}


def planned(algorithm: str, records: int, batch: int = 1) -> Plan:
    """Return a short run, in whose first step a record is hidden by nothing but noise."""
    given = {"records": records, "lipschitz": 0.9, "smoothness": 1.0, "step_size": ETA, "noise_std": 1.0}
    given |= STEPS.get(algorithm, {"epochs": 1} if "epochs" in algorithm or "cyclic" in algorithm else {})
    if algorithm.startswith("shuffle-once"):
        given["epochs"] = 1
    if records > 1 and "steps" in given:
        given["steps"] = max(given["steps"], records // batch)  # of one step the bits of a drift are whole
    if batch > 1:
        given["batch_size"] = batch
    run = describe(algorithm, {name: value for name, value in given.items() if value is not None})
    return plan(run, records, COLUMNS)


def problem(records: int, present: bool) -> Problem:
    """Return records that rest, but for the last one where it is present: it pulls a little in every coordinate."""
    features, labels = np.zeros((records, COLUMNS)), np.zeros(records)
    features[-1], labels[-1] = EACH, float(present)
    return Problem(features, labels, LOSS)


def looked_at(weights: np.ndarray) -> list[float]:
    """Return shares of entries that low-order bits tell, and whether the small ones are multiples of one."""
    bits = weights.view(np.int64)
    shares = [float(np.mean(bits >> k & 1)) for k in range(BITS)]
    shares += [float(np.mean(np.fmod(weights, math.ldexp(math.ulp(DRIFT), k)) == 0.0)) for k in range(-2, 3)]
    small = weights[(weights != 0.0) & (np.abs(weights) < DRIFT / 64.0)]
    return [*shares, float(len(small) > 0 and bool((np.fmod(small, 0.25 * math.ulp(DRIFT)) == 0.0).all()))]


def told(algorithm: str, rounding: Rounding | None, runs: int, records: int = 1, batch: int = 1) -> float:
    """Return by how many standard deviations the shares differ at most, with and without the record."""
    chosen, worlds = planned(algorithm, records, batch), []
    for present in (True, False):
        source = kernel.seeded(17 + present)
        trained = (single.train(chosen, problem(records, present), source, rounding=rounding) for _ in range(runs))
        worlds.append(np.array([looked_at(each.released[-1]) for each in trained]))
    first, second = worlds
    spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / runs)
    apart = np.abs(first.mean(axis=0) - second.mean(axis=0))
    return float(np.max(np.divide(apart, spread, out=np.where(apart > 0.0, np.inf, 0.0), where=spread > 0.0)))


def roundings(algorithm: str, records: int = 1, batch: int = 1) -> list[Rounding]:
    """Return how a run may be rounded: what is released, or every noisy sum."""
    chosen, found = planned(algorithm, records, batch), []
    try:
        found.append(output_rounding(chosen, LOSS))
    except NotApplicable:
        assert chosen.release.value == "step" or chosen.strategy is not None
    if not chosen.output_scale:
        found.append(rounding_of("noisy_gd.composition", chosen, LOSS))
    return found


def some(names: list[str]) -> list[Any]:
    return [name if name in SOME else pytest.param(name, marks=pytest.mark.campaign) for name in names]


@pytest.mark.parametrize("algorithm", some([name for name in ALL if name not in (MIXED, *ROUNDED)]))
def test_plain_doubles_tell_a_record(algorithm: str) -> None:
    assert told(algorithm, None, 60) > TOLD


@pytest.mark.parametrize("algorithm", some(ALL))
def test_what_is_released_does_not(algorithm: str) -> None:
    for rounding in roundings(algorithm):
        assert told(algorithm, rounding, 60) < TOLD


@pytest.mark.campaign
@pytest.mark.parametrize("algorithm", ALL)
def test_what_is_released_after_more_steps_does_not(algorithm: str) -> None:
    for rounding in roundings(algorithm, 3):
        assert told(algorithm, rounding, 400, 3) < TOLD


@pytest.mark.few(1)
@pytest.mark.parametrize("algorithm", some([name for name in ALL if ALGORITHMS[name].release is Release.LAST]))
def test_what_is_released_after_100_steps_does_not(algorithm: str) -> None:
    for rounding in roundings(algorithm, 100):
        assert told(algorithm, rounding, 40, 100) < TOLD


BATCHED = [name for name in ALL if not (ALGORITHMS[name].single or ALGORITHMS[name].full_batch or name == "online")]


@pytest.mark.parametrize("algorithm", some([name for name in BATCHED if name not in ROUNDED]))
def test_batches_tell_a_record_in_plain_doubles_alone(algorithm: str) -> None:
    assert told(algorithm, None, 40, 2, 2) > TOLD
    for rounding in roundings(algorithm, 2, 2):
        assert told(algorithm, rounding, 40, 2, 2) < TOLD
