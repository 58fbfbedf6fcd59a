"""Clipped gradients: those of a convex loss where the model is linear, by brute force, and of none where it is not."""

import math
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import DpcalcError, NotApplicable, SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.loss import Loss, constants, of
from dpcalc.model.quantities import LossClass
from dpcalc.model.run import describe
from tests.model.test_losses import VARIANTS, ball, labels_of, norms

CLIPS = pytest.mark.parametrize("clip", [0.05, 0.4, 1.1, 3.0])
EVERY = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v['name']}-{v.get('power', '')}")
BOUND = 1.3


def clipped(rows: np.ndarray, clip: float) -> np.ndarray:
    """Every row shortened to the clip, as programs do it: by itself, and by one factor."""
    return rows * np.minimum(1.0, clip / np.maximum(norms(rows), 1e-300))[:, np.newaxis]


def pairs(loss: Loss, clip: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Differences of points, of clipped gradients there, and the gradients; an intercept is the last feature."""
    r = np.random.default_rng(seed)
    d, count = int(r.integers(1, 4)), 2000
    x = np.hstack([ball(r, count, d, math.sqrt(BOUND * BOUND - 0.25)), np.full((count, 1), 0.5)])
    y = labels_of(r, loss, count)
    v = 4.0 * r.normal(size=(count, d + 1))
    w = v + r.normal(size=(count, d + 1)) * 10.0 ** r.uniform(-3.0, 1.0, size=(count, 1))
    plain = loss.changed(regularisation=0.0)
    rows = [clipped(plain.data_slopes(np.sum(at * x, axis=1), y)[:, np.newaxis] * x, clip) for at in (v, w)]
    return w - v, rows[1] - rows[0], rows[0]


@EVERY
@CLIPS
def test_clipped_gradients_of_a_linear_model_are_those_of_a_convex_loss(variant: dict[str, Any], clip: float) -> None:
    loss = of(**{"feature_bound": BOUND, **variant})
    told = constants(variant["name"], {"feature_bound": BOUND, **{k: v for k, v in variant.items() if k != "name"}},
                     clip=clip)  # fmt: skip
    longest = 0.0
    for seed in range(4):
        moved, turned, rows = pairs(loss, clip, seed)
        along = np.sum(moved * turned, axis=1)
        assert along.min() >= -1e-13
        longest = max(longest, float(norms(rows).max()))
        if "smoothness" in told:
            beta = told["smoothness"]
            assert (along - norms(turned) ** 2 / beta).min() >= -1e-12  # co-coercive: what contraction rests on
            assert (norms(moved - (2.0 / beta) * turned) - norms(moved)).max() <= 1e-12
        spread = told["holder_constant"] * norms(moved) ** told["holder_exponent"]
        assert (norms(turned) - spread).max() <= 1e-12
    assert longest <= told["lipschitz"] * (1.0 + 1e-12)
    assert longest >= 0.95 * told["lipschitz"]


@CLIPS
def test_a_regulariser_after_clipping_contracts_and_moves_nothing(clip: float) -> None:
    told = constants("logistic", {"feature_bound": BOUND, "regularisation": 0.3}, clip=clip)
    beta, weight = told["smoothness"], told["strong_convexity"]
    assert weight == 0.3
    assert told["lipschitz"] <= clip
    for seed in range(4):
        moved, turned, _ = pairs(of("logistic", feature_bound=BOUND), clip, seed)
        for eta in (0.3 / beta, 2.0 / (beta + weight), 2.0 / beta):
            factor = max(abs(1.0 - eta * weight), abs(1.0 - eta * beta))
            after = norms(moved - eta * (turned + weight * moved))
            assert (after - factor * norms(moved)).max() <= 1e-12


def test_a_smooth_loss_that_is_not_convex_stays_as_smooth() -> None:
    """Of z = <w, x> alone: the slope sin z of 1 - cos z, clipped."""
    r = np.random.default_rng(3)
    x = ball(r, 2000, 3, BOUND)
    v, w = r.normal(size=(2, 2000, 3)) * 2.0
    rows = [clipped(np.sin(np.sum(at * x, axis=1))[:, np.newaxis] * x, 0.4) for at in (v, w)]
    assert (norms(rows[1] - rows[0]) - BOUND * BOUND * norms(w - v)).max() <= 1e-12


# --- where it is not so -----------------------------------------------------------------------------------------------


def least_along(field: Any, points: np.ndarray) -> float:
    """The least <G(w) - G(v), w - v>/|w - v|^2 among points and near neighbours: below 0 the field is not monotone."""
    r = np.random.default_rng(0)
    moves = 1e-4 * r.normal(size=points.shape)
    along = [float(np.dot(field(p + m) - field(p), m) / np.dot(m, m)) for p, m in zip(points, moves, strict=True)]
    return min(along)


def shortened(g: np.ndarray, clip: float) -> np.ndarray:
    return np.asarray(g * min(1.0, clip / max(float(np.linalg.norm(g)), 1e-300)))


def test_clipping_classes_together_is_no_gradient_of_a_convex_loss() -> None:
    def field(z: np.ndarray) -> np.ndarray:
        q = np.exp(z - z.max())
        return shortened(q / q.sum() - np.array([1.0, 0.0, 0.0]), 0.1)

    points = np.log([[0.5, 0.3, 0.2]]) + np.random.default_rng(1).normal(size=(2000, 3))
    assert least_along(field, points) < -1e-4


def test_clipping_the_regulariser_as_well_is_no_gradient_of_a_convex_loss() -> None:
    x = np.array([1.0, 0.5])

    def field(w: np.ndarray) -> np.ndarray:
        return shortened(-x / (1.0 + math.exp(float(w @ x))) + 0.3 * w, 0.2)

    assert least_along(field, 2.0 * np.random.default_rng(1).normal(size=(2000, 2))) < -1e-3


def test_clipping_the_intercept_by_itself_is_no_gradient_of_a_convex_loss() -> None:
    x = np.array([1.0, 2.0])

    def field(w: np.ndarray) -> np.ndarray:
        slope = float(w[:2] @ x + w[2])
        return np.append(shortened(slope * x, 0.2), np.clip(slope, -0.2, 0.2))

    assert least_along(field, np.random.default_rng(1).normal(size=(2000, 3))) < -1e-2


# --- what a run makes of it -------------------------------------------------------------------------------------------


def test_a_clip_bounds_the_gradient_where_the_loss_does_not() -> None:
    told = {"feature_bound": 1.0, "label_bound": 1.0}
    assert constants("squares", told, clip=0.5)["lipschitz"] == 0.5
    assert constants("squares", {**told, "radius": 1.0}, clip=5.0)["lipschitz"] == pytest.approx(2.0)
    with pytest.raises(DpcalcError, match="radius"):
        constants("squares", told)


def test_the_class_of_clipped_gradients_depends_on_the_model() -> None:
    alone = describe("cyclic", {"records": 10, "clip": 2.0, "smoothness": 1.0})
    assert alone.loss_class is LossClass.LIPSCHITZ
    assert alone.lipschitz == 2.0
    assert alone.sensitivity == 4.0
    linear = {"records": 10, "clip": 2.0, "model": "linear"}
    assert describe("cyclic", {**linear, "smoothness": 1.0}).loss_class is LossClass.CONVEX_SMOOTH
    assert describe("cyclic", linear).loss_class is LossClass.CONVEX
    assert describe("cyclic", {**linear, "smoothness": 1.0, "loss_class": "smooth"}).loss_class is LossClass.SMOOTH
    again = describe("cyclic", {"records": 10, "clip": 2.0}).replacing(clip=3.0)
    assert again.lipschitz == 3.0
    assert again.loss_class is LossClass.LIPSCHITZ


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"clip": 1.0, "lipschitz": 1.0}, "also follows from clip"),
        ({"clip": 1.0, "smoothness": 1.0, "loss_class": "convex-smooth"}, "only where the model is linear"),
        ({"clip": 1.0, "model": "any", "loss_class": "smooth"}, "only where the model is linear"),
        ({"clip": 1.0, "model": "any", "loss": "logistic"}, "losses that have a name"),
        (
            {"clip": 1.0, "model": "linear", "smoothness": 1.0, "strong_convexity": 0.1},
            "not those of a strongly convex",
        ),
        ({"clip": 1.0, "smoothness": 1.0, "strong_convexity": 0.1}, "not those of a strongly convex"),
        ({"model": "linear", "lipschitz": 1.0}, "none are clipped"),
    ],
)
def test_what_contradicts_clipping_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        describe("noisy-gd", {"records": 10, "epochs": 3, **given}, dict.fromkeys(given, Source.FLAG))


def test_hidden_iterates_refuse_clipped_gradients_but_of_linear_models() -> None:
    import dpcalc

    run: dict[str, Any] = {
        "algorithm": "noisy-sgd", "records": 100, "batch_size": 10, "steps": 4000, "clip": 1.0, "step_size": 1.0,
        "noise_std": 0.5, "delta": 1e-5, "diameter": 1.0,
    }  # fmt: skip
    public = dpcalc.multi_epoch(**run, smoothness=1.0).cases[0]
    assert "noisy_sgd.hidden" not in {r.bound for r in public.results}
    linear = dpcalc.multi_epoch(**run, smoothness=1.0, model="linear").cases[0]
    named = dpcalc.multi_epoch(**run, loss="huber", huber_threshold=9.0, feature_bound=1.0).cases[0]
    typed = dpcalc.multi_epoch(**{**run, "clip": None}, smoothness=1.0, lipschitz=1.0).cases[0]
    assert linear.best is not None
    assert named.best is not None
    assert typed.best is not None
    assert public.best is not None
    assert linear.best.bound == "noisy_sgd.hidden"
    assert linear.best.value == typed.best.value == named.best.value
    assert linear.best.value < 0.9 * public.best.value
    with pytest.raises(NotApplicable, match="only where the model is linear"):
        dpcalc.rdp(records=10, clip=1.0, smoothness=1.0, step_size=1.0, noise_std=1.0, delta=1e-5)


def test_a_schedule_knows_of_clipped_gradients(tmp_path: Any) -> None:
    import dpcalc

    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n" + "1,1\n" * 5)
    run: dict[str, Any] = {"schedule": str(path), "clip": 0.2, "smoothness": 1.0, "delta": 1e-5, "index": 1}
    typed = dpcalc.rdp(**{**run, "clip": None}, lipschitz=0.2).cases[0].best
    assert typed is not None
    assert dpcalc.rdp(**run, model="linear").cases[0].best == typed
    with pytest.raises(NotApplicable):
        dpcalc.rdp(**run)
