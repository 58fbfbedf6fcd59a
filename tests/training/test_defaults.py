"""The noise from which a step size is chosen, against the budget that it is to keep to."""

import math
from typing import Any

import pytest

import dpcalc
from dpcalc.model.question import Question
from dpcalc.training.rule import guarantee
from dpcalc.training.rule.draft import Draft

RUN = {"lipschitz": 1.0, "smoothness": 0.25, "step_size": 4.0}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("records", "batch_size", "epsilon"), [(1000, 1, 1.0), (1000, 1, 0.1), (1000, 100, 1.0), (100, 100, 3.0)]
)
def test_noise_of_sampled_steps_is_advised_without_a_solution(
    monkeypatch: pytest.MonkeyPatch, records: int, batch_size: int, epsilon: float
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved")

    given: dict[str, Any] = {**RUN, "records": records, "batch_size": batch_size, "epochs": 2}
    with monkeypatch.context() as patched:
        patched.setattr(guarantee, "account", refuse)
        question = Question(epsilon=epsilon, delta=1e-5, log_delta=math.log(1e-5))
        advised = guarantee.noise_scale(Draft.of(algorithm="noisy-sgd", **given).asking(question))
    enough, little = (
        dpcalc.compare(algorithm="noisy-sgd", **given, noise_std=advised * off, delta=1e-5).cases[0].best
        for off in (1.2, 0.8)
    )
    assert enough is not None
    assert little is not None
    assert enough.value < epsilon < little.value
