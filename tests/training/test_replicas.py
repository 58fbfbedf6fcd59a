"""Replicas are runs of the same algorithm as a single model: centred, calibrated and rounded alike."""

from typing import Any

import numpy as np
import pytest

import dpcalc

CANCER: dict[str, Any] = {"data": "example:breast-cancer", "delta": 1e-5, "show_unprotected_metrics": True}


@pytest.mark.few(1)
@pytest.mark.parametrize("more", [{}, {"centre": False}, {"reference": True}])
def test_replicas_are_the_runs_of_their_seeds(more: dict[str, Any]) -> None:
    """At epsilon 3 rows are centred where that is not refused, and records are counted."""
    seeds = np.random.SeedSequence(5).generate_state(4, np.uint64).tolist()
    alone = [dpcalc.train(epsilon=3, seed=seed, **CANCER, **more).cases[0] for seed in seeds]
    many = dpcalc.train(epsilon=3, seed=5, replicas=4, **CANCER, **more).cases[0]
    assert many.training is not None
    assert many.training["steps"] == (alone[0].training or {})["steps"]
    assert many.training["rule"] == (alone[0].training or {})["rule"]
    for name, mean in many.not_covered["metrics"]["train"].items():
        single = [case.not_covered["metrics"]["train"][name] for case in alone]
        assert mean == pytest.approx(np.mean(single), rel=1e-12)
        middle = many.not_covered["quantiles"]["train"][name][2]
        assert middle == pytest.approx(np.median(single), rel=1e-12)


def test_replicas_that_take_the_same_steps_have_the_temperature_of_one() -> None:
    """Below the signal from which records are counted, the temperature is public and the same for all."""
    given = {**CANCER, "epsilon": 0.2}
    many = dpcalc.train(seed=1, replicas=300, **given).cases[0].not_covered["metrics"]["train"]["loss"]
    alone = [dpcalc.train(seed=seed, **given).cases[0].not_covered["metrics"]["train"]["loss"] for seed in range(60)]
    assert many == pytest.approx(np.mean(alone), abs=4.0 * np.std(alone) / 60**0.5)


def test_another_machine_is_not_asked_for_runs_that_it_would_not_take() -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool, pytest.raises(dpcalc.SpecError, match="computed on this machine"):
        dpcalc.train(epsilon=3, replicas=4, executor=pool, **CANCER)
