"""A walk along a stream does not depend on the lengths that were asked about before, and is the plain recursion."""

import math
from typing import Any

import pytest

from dpcalc.engine.solving.budget import _epsilon_beyond
from dpcalc.model.loss_class import LossClass
from dpcalc.model.quantities import Noise
from dpcalc.notions.guarantee import Profile
from dpcalc.theorems.contraction import online, recursion
from dpcalc.theorems.contraction.online import OnStream, hybrid

LENGTHS = (7, 8, 30, 4103, 4104, 5000, 20_000, 10**6, 10**9)
STREAM: dict[str, Any] = {
    "index": 7, "sensitivity": 2.0, "c1": 1.0, "c2": 2.0, "decay_exponent": 1.5, "schedule_factor": 1.0,
    "step_size": 0.1, "displacement": 1.0, "diameter": 1.0, "smoothness": 1.0, "loss_class": LossClass.CONVEX_SMOOTH,
}  # fmt: skip


def stream(noise: Noise, records: int) -> OnStream:
    return OnStream(**STREAM, noise=noise, records=records)


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [Noise.GAUSSIAN, Noise.LAPLACE])
@pytest.mark.parametrize("lengths", [LENGTHS, LENGTHS[::-1]])
def test_the_lengths_asked_before_do_not_matter(noise: Noise, lengths: tuple[int, ...]) -> None:
    online._walk_of.cache_clear()
    together = {n: hybrid(stream(noise, n)).profile(0.5) for n in lengths}
    for n, value in together.items():
        online._walk_of.cache_clear()
        assert hybrid(stream(noise, n)).profile(0.5) == value


def test_laplace_walk_is_the_recursion_step_by_step() -> None:
    run, epsilon = stream(Noise.LAPLACE, 300), 0.3
    log_e, gap = run.stream.log_first(epsilon, run.sensitivity, run.index), math.log(math.expm1(epsilon))
    for t in range(run.index + 1, run.records + 1):
        threshold = math.log1p(math.exp(gap - log_e))
        log_e += recursion.log_one_step(run.noise, threshold, run.stream.reach(float(t))[1])
    assert online._walk(run, epsilon) == pytest.approx(log_e, rel=1e-9)


@pytest.mark.parametrize("missed", [0.0, 1e-9, 0.1, 1.9])
def test_what_can_be_reached_is_no_less_than_the_least_epsilon(missed: float) -> None:
    profile = Profile(lambda epsilon: -(epsilon**2) - 0.1)
    reached, least = _epsilon_beyond(missed, profile, -4.1), 2.0
    assert least <= reached <= 1.01 * least


def test_nothing_can_be_reached() -> None:
    assert _epsilon_beyond(0.5, Profile(lambda epsilon: -0.1), -1.0) == math.inf
