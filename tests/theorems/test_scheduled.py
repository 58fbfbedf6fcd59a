"""One use under a schedule against exact products and sums."""

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.engine.ask import ask
from dpcalc.errors import DpcalcError
from dpcalc.model.chain import Chain
from dpcalc.model.question import Question
from dpcalc.theorems.one_pass import iteration
from tests.formulas import evaluated
from tests.oracles import READINGS, ball, draws, log_uniform, not_below, tight


def chain(step_size: Any, noise: Any, contraction: Any) -> Chain:
    arrays = (np.asarray(x, dtype=np.float64) for x in (step_size, noise, contraction))
    eta, sigma, c = arrays
    return Chain(step_size=eta, noise=sigma, contraction=c, shift=None, spend=None, path="")


def drawn(r: random.Random) -> tuple[list[float], list[float], list[float]]:
    steps = r.choice((1, 2, 3, r.randint(1, 30), r.randint(1, 300)))
    spread = r.choice((0.0, 1.0, 6.0))
    eta = [log_uniform(r, 10.0**-spread, 1.01 * 10.0**spread) for _ in range(steps)]
    sigma = [log_uniform(r, 10.0**-spread, 1.01 * 10.0**spread) for _ in range(steps)]
    kind = r.randrange(4)
    c = [
        1.0 if kind == 0 else r.uniform(0.5, 1.0) if kind == 1 else r.choice((1.0, 1.7, 0.3, 1.0 - 1e-12)) if kind == 2
        else log_uniform(r, 1e-3, 1e3)
        for _ in range(steps)
    ]  # fmt: skip
    return eta, sigma, c


def test_worst_index_is_the_worst() -> None:
    for r in draws("worst", 60, cost=200):
        eta, noise, c = drawn(r)
        schedule = chain(eta, noise, c)
        each = [
            evaluated(iteration.scheduled_pnsgd, schedule=schedule, index=i, sensitivity=1.0, noise_std=1.0)
            for i in range(1, len(eta) + 1)
        ]
        assert each[iteration.worst_index(schedule) - 1] >= max(each) * (1.0 - 1e-9), (eta, noise, c)


@pytest.mark.parametrize("eta", [1e-300, 1e-160, 1e-100, 1.0, 1e100, 1e154, 1e300])
@pytest.mark.parametrize("noise", [1e-300, 1e-100, 1.0, 1e100, 1e300])
@pytest.mark.parametrize("c", [0.0, 1e-200, 0.5, 1.0, 2.0, 1e200])
def test_extreme_schedules_never_give_nan(eta: float, noise: float, c: float) -> None:
    schedule = chain([eta] * 5, [noise] * 5, [c] * 5)
    for index in (1, 3, 5):
        for sensitivity in (1e-300, 1.0, 1e300):
            found = evaluated(
                iteration.scheduled_pnsgd, schedule=schedule, index=index, sensitivity=sensitivity, noise_std=1.0
            )
            assert not math.isnan(found)
            assert found > 0.0
            exactly = sensitivity / noise if index == 5 and 1e-300 < sensitivity / noise < 1e300 else 0.0
            assert found >= exactly * (1.0 - 1e-15)
    assert 1 <= iteration.worst_index(schedule) <= 5


def test_no_bound_for_equal_steps_answers_for_a_schedule(tmp_path: Path) -> None:
    """The file's noise is far below 1: a bound that read it as constant 1 would claim mu = 2 for mu = 200."""
    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n0.1,0.01\n0.1,0.01\n")
    for algorithm in ("pnsgd", "local"):
        given = {"schedule": str(path), "lipschitz": 1.0, "smoothness": 1.0, "diameter": 1.0, "algorithm": algorithm}
        if algorithm == "local":
            with pytest.raises(DpcalcError):
                ask("rdp", given, Question(delta=1e-6, log_delta=math.log(1e-6)))
            continue
        case = ask("rdp", given, Question(delta=1e-6, log_delta=math.log(1e-6)))
        assert {result.bound for result in case.results} == {"scheduled.pnsgd"}
        assert case.best is not None
        assert case.best.mu == pytest.approx(200.0)


def test_the_index_is_not_solved_for_where_it_is_not_monotone(tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step_size\n0.1\n0.2\n0.05\n")
    given = {"schedule": str(path), "lipschitz": 1.0, "smoothness": 1.0, "noise_std": 2.0}
    with pytest.raises(DpcalcError, match="monotone"):
        ask("rdp", given, Question(epsilon=10.0, delta=1e-6, log_delta=math.log(1e-6), solve="index"))


def test_long_sums_stay_tight() -> None:
    steps = 200_000
    schedule = chain(np.full(steps, 0.1), np.full(steps, 0.3), np.ones(steps))
    found = evaluated(iteration.scheduled_pnsgd, schedule=schedule, index=1, sensitivity=2.0, noise_std=1.0)
    for of in READINGS:
        value = ball(of(2.0) / of(0.3)) / ball(steps).sqrt()
        not_below(found, value, "200000 equal steps")
        tight(found, value, "200000 equal steps", 1e-13)
