"""The rule for batches: whichever way to draw them needs less noise."""

import math
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.model.draft import Description
from dpcalc.model.question import Question
from dpcalc.training.rule import batches as rule_batches
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.setup import Setup

QUESTION = Question(8.0, 1e-5, math.log(1e-5))
GIVEN = {"loss": "logistic", "feature_bound": 1.0, "batch_size": 24}


def case_of(**given: Any) -> Any:
    rng = np.random.default_rng(2)
    x = rng.uniform(-0.5, 0.5, (240, 2))
    data = (x, (x[:, 0] > 0.0) * 1)
    return dpcalc.train(**{"data": data, "positive": "1", "delta": 1e-5, "seed": 1, **given}).cases[0]


@pytest.mark.parametrize(("sampled", "hidden"), [(0.02, 0.01), (0.01, 0.02)])
@pytest.mark.parametrize("given", [{}, {"epochs": 3, "clip": 0.3}])
def test_less_noise_decides(
    sampled: float, hidden: float, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = {"noisy-sgd": sampled, "shuffled-epochs": hidden}
    monkeypatch.setattr(rule_batches, "noise_scale", lambda draft: noise[draft["algorithm"]])
    draft = Draft(Description({**GIVEN, **given}), QUESTION)
    draft.take_shape(250, 3, with_dimension=False)
    assert rule_batches.applies(draft)
    rule, average = rule_batches.fill(draft, Setup(), 3)
    hides = hidden < sampled
    assert draft["algorithm"] == ("shuffled-epochs" if hides else "noisy-sgd")
    assert (average, draft.get("release")) == (("none", None) if hides else ("tail", "epoch"))
    assert draft.get("permutation") == ("secret" if hides else None)
    clip, steps = given.get("clip", 0.1), 11 * given.get("epochs", 10)
    kappa = clip * math.sqrt(steps / 3.0) / 0.01
    assert rule.kappa == pytest.approx(kappa)
    step_size = min(30.0 * kappa, 1e4) / (clip * steps)
    assert draft["step_size"] == pytest.approx(min(step_size, 8.0) if hides else step_size, rel=1e-3)
    assert "0.01" in rule.picks["algorithm"].why
    assert "0.02" in rule.picks["algorithm"].why


def test_what_is_given_leaves_fewer_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = {"noisy-sgd": 0.02, "shuffled-epochs": 0.01}
    monkeypatch.setattr(rule_batches, "noise_scale", lambda draft: noise[draft["algorithm"]])
    for given, asked in (({}, Setup(average="tail")), ({"loss": "hinge"}, Setup()), ({"step_size": 9.0}, Setup())):
        draft = Draft(Description({**GIVEN, **given}), QUESTION)
        draft.take_shape(250, 3, with_dimension=False)
        _, average = rule_batches.fill(draft, asked, 3)
        assert (draft["algorithm"], average) == ("noisy-sgd", "tail")
    for given in ({"steps": 5}, {"algorithm": "cyclic"}, {"radius": 1.0}, {"batch_size": None}):
        assert not rule_batches.applies(Draft(Description({**GIVEN, **given}), QUESTION))


@pytest.mark.campaign
@pytest.mark.parametrize(("epsilon", "epochs", "algorithm"), [(8, 12, "shuffled-epochs"), (1, 1, "noisy-sgd-released")])
def test_no_other_way_has_less_noise(epsilon: float, epochs: int, algorithm: str) -> None:
    case = case_of(epsilon=epsilon, epochs=epochs, batch_size=24)
    assert case.algorithm == algorithm
    hides = algorithm == "shuffled-epochs"
    other = {"algorithm": "noisy-sgd", "release": "epoch"} if hides else {
        "algorithm": "shuffled-epochs", "permutation": "secret"
    }  # fmt: skip
    size = min(case.inputs["step_size"][0], 8.0)
    instead = case_of(epsilon=epsilon, step_size=size, clip=0.1, intercept=True, batch_size=24, epochs=epochs, **other)
    assert instead.training["rule"] is None
    assert case.best.value < instead.best.value


def test_ways_whose_rounding_the_budget_cannot_pay_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rounding errors of 1e8 steps on slopes that are not exact cost too much of epsilon = 8."""
    noise = {"noisy-sgd": 0.02, "shuffled-epochs": 0.01}
    monkeypatch.setattr(rule_batches, "noise_scale", lambda draft: noise[draft["algorithm"]])
    for rows, classes, expected in ((240, 3, "shuffled-epochs"), (10**7, 10, "noisy-sgd")):
        draft = Draft(Description({**GIVEN, "loss": "softmax", "classes": classes}), QUESTION)
        draft.take_shape(rows, 6, with_dimension=False)
        rule_batches.fill(draft, Setup(), 6)
        assert draft["algorithm"] == expected
        assert draft["model"] == ("capped" if expected == "shuffled-epochs" else "any")
