"""The softmax and the capped softmax: constants against numeric gradients, and what shortening a gradient breaks."""

import math
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import DpcalcError
from dpcalc.model.loss import of
from dpcalc.model.loss.scalar import Softmax
from dpcalc.training.run.capped import capped_descents, lowered

CLASSES = pytest.mark.parametrize("classes", [2, 3, 5, 10])


def softmax(classes: int, **more: Any) -> Softmax:
    found = of("softmax", **{"feature_bound": 1.3, "classes": classes, **more})
    assert isinstance(found, Softmax)
    return found


def scores(r: np.random.Generator, count: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows from small to far out, in few directions a half of the time."""
    z = r.normal(size=(count, classes)) * 10.0 ** r.uniform(-2, 2, size=(count, 1))
    z[::2] = np.round(z[::2])
    return z, r.integers(0, classes, count)


def capped_slopes(z: np.ndarray, y: np.ndarray, cap: float) -> np.ndarray:
    return -capped_descents(z, y.astype(float), np.full(len(z), cap)).T


# --- constants --------------------------------------------------------------------------------------------------------


@CLASSES
def test_slopes_are_derivatives(classes: int) -> None:
    r, loss, h = np.random.default_rng(1), softmax(classes, regularisation=0.3), 1e-6
    x, y = r.normal(size=(20, 4)), r.integers(0, classes, 20)
    w = r.normal(size=(4, classes))
    gradients = loss.gradient(w, x, y)
    for place in np.ndindex(w.shape):
        moved = np.zeros_like(w)
        moved[place] = h
        slope = (loss.value(w + moved, x, y) - loss.value(w - moved, x, y)) / (2 * h)
        assert gradients[:, *place] == pytest.approx(slope, abs=1e-7)


@CLASSES
@pytest.mark.parametrize("radius", [None, 0.1, 2.0, 300.0])
def test_constants_hold_and_are_near(classes: int, radius: float | None) -> None:
    r, loss = np.random.default_rng(2), softmax(classes, radius=radius)
    reach = loss.feature_bound * (1e3 if radius is None else radius)
    z, y = scores(r, 4000, classes)
    z *= np.minimum(1.0, reach / np.maximum(np.linalg.norm(z, axis=1), 1e-9))[:, None]
    worst = np.zeros((1, classes))
    worst[0, :2] = reach / math.sqrt(2.0), -reach / math.sqrt(2.0)  # towards another class, away from its own
    z, y = np.vstack((z, worst)), np.append(y, 1)
    lengths = loss.feature_bound * np.linalg.norm(loss.data_slopes(z, y), axis=1)
    assert lengths.max() <= loss.lipschitz
    assert lengths.max() >= (0.99 if classes == 2 else 0.4) * loss.lipschitz
    if radius is not None:
        assert loss.data_values(z, y).max() <= loss.range
    at_zero = np.linalg.norm(loss.data_slopes(np.zeros((1, classes)), np.array([0])))
    assert loss.feature_bound * at_zero <= loss.gradient_at_zero * (1 + 1e-15)
    assert loss.loss_at_zero == pytest.approx(math.log(classes), rel=1e-14)


@CLASSES
def test_smoothness_holds_and_is_attained(classes: int) -> None:
    """The Hessian diag q - q q' has an eigenvalue 1/2 where two classes have 1/2 each, and none above."""
    r, loss = np.random.default_rng(3), softmax(classes)
    assert loss.smoothness == pytest.approx(1.3**2 / 2, rel=1e-14)
    z, _ = scores(r, 500, classes)
    z[0] = [50.0, 50.0, *[0.0] * (classes - 2)]
    largest = 0.0
    for q in np.exp(z - np.logaddexp.reduce(z, axis=1, keepdims=True)):
        largest = max(largest, np.linalg.eigvalsh(np.diag(q) - np.outer(q, q))[-1])
    assert largest == pytest.approx(0.5, rel=1e-12)


@CLASSES
@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_any_exponent_holds(classes: int, exponent: float) -> None:
    r, loss = np.random.default_rng(4), softmax(classes, feature_bound=1.0)
    z, y = scores(r, 3000, classes)
    v, _ = scores(r, 3000, classes)
    gaps = np.linalg.norm(z - v, axis=1)
    apart = np.linalg.norm(loss.data_slopes(z, y) - loss.data_slopes(v, y), axis=1)
    assert (apart <= loss.hoelder_constant(exponent) * gaps**exponent * (1 + 1e-12)).all()


# --- the cap ----------------------------------------------------------------------------------------------------------


@CLASSES
@pytest.mark.parametrize("cap", [0.02, 0.1, 0.5, 1.2, 2.0])
def test_capped_slopes_are_those_of_a_convex_smooth_function(classes: int, cap: float) -> None:
    """Cocoercive with 2, the inverse of the smoothness: what a gradient is of no other than a convex 1/2-smooth one."""
    r = np.random.default_rng(5)
    z, y = scores(r, 240, classes)
    v = np.where(r.random((240, 1)) < 0.5, z + r.normal(size=z.shape) * 0.1, scores(r, 240, classes)[0])
    at_z, at_v = capped_slopes(z, y, cap), capped_slopes(v, y, cap)
    assert np.linalg.norm(at_z, axis=1).max() <= cap * (1 + 1e-9)
    gain = ((at_z - at_v) * (z - v)).sum(axis=1)
    assert (gain >= 2.0 * ((at_z - at_v) ** 2).sum(axis=1) - 1e-9).all()
    plain = softmax(classes).data_slopes(z, y)
    short = np.linalg.norm(plain, axis=1) <= lowered(np.array([cap]))
    assert at_z[short] == pytest.approx(plain[short], abs=1e-12)
    assert at_z.sum(axis=1) == pytest.approx(0.0, abs=1e-9)


def test_the_cap_is_the_slope_of_the_infimal_convolution() -> None:
    from scipy.optimize import minimize

    r, cap, h = np.random.default_rng(6), 0.3, 1e-4
    z, y = np.array([[1.0, -0.5, 0.2], [3.0, 1.0, -2.0]]), np.array([1, 2])
    slopes = capped_slopes(z, y, cap)

    def least(point: np.ndarray, label: int) -> float:
        """inf_u f(u) + c |z - u|, by way of the dual: max <p, z> - sum q ln q, p = q - e_y, |p| <= c."""
        mark = np.eye(3)[label]

        def dual(q: np.ndarray) -> float:
            return float(np.sum(q * np.log(np.maximum(q, 1e-300))) - (q - mark) @ point)

        limits = (
            {"type": "eq", "fun": lambda q: q.sum() - 1.0},
            {"type": "ineq", "fun": lambda q: cap**2 - np.sum((q - mark) ** 2)},
        )
        start = mark + 0.5 * cap * (np.full(3, 1 / 3) - mark)
        found = minimize(dual, start, bounds=[(1e-12, 1.0)] * 3, constraints=limits, options={"ftol": 1e-15})
        return float(-found.fun)

    for row in range(2):
        direction = r.normal(size=3)
        change = (least(z[row] + h * direction, int(y[row])) - least(z[row] - h * direction, int(y[row]))) / (2 * h)
        assert slopes[row] @ direction == pytest.approx(change, abs=2e-4)


def shortened(z: np.ndarray, y: np.ndarray, cap: float) -> np.ndarray:
    """Ordinary clipping: the slope in its own direction."""
    found = softmax(z.shape[1]).data_slopes(z, y)
    return np.asarray(found * np.minimum(1.0, cap / np.linalg.norm(found, axis=1))[:, None])


def test_shortened_slopes_are_those_of_no_convex_function() -> None:
    """At q = (0.5, 0.3, 0.2), y = 1, c = 0.1 the Jacobian has a direction in which slopes fall, and a step expands."""
    z, y, h = np.log([[0.5, 0.3, 0.2]]), np.array([0]), 1e-5
    jacobian = np.stack(
        [(shortened(z + h * e, y, 0.1) - shortened(z - h * e, y, 0.1))[0] / (2 * h) for e in np.eye(3)], axis=1
    )
    assert np.linalg.eigvalsh((jacobian + jacobian.T) / 2)[0] == pytest.approx(-1.27645e-4, rel=1e-4)
    assert np.linalg.norm(np.eye(3) - jacobian, 2) == pytest.approx(1.000130154, abs=1e-8)
    assert np.linalg.norm(np.eye(3) - 4 * jacobian, 2) == pytest.approx(1.000553222, abs=1e-8)
    capped = np.stack(
        [(capped_slopes(z + h * e, y, 0.1) - capped_slopes(z - h * e, y, 0.1))[0] / (2 * h) for e in np.eye(3)], axis=1
    )
    assert np.linalg.eigvalsh((capped + capped.T) / 2)[0] >= -1e-8
    assert np.linalg.norm(np.eye(3) - 4 * capped, 2) <= 1.0 + 1e-7


def test_of_two_classes_both_are_the_same() -> None:
    z, y = scores(np.random.default_rng(7), 200, 2)
    assert capped_slopes(z, y, 0.2) == pytest.approx(shortened(z, y, 0.2), abs=1e-9)


# --- through the front door -------------------------------------------------------------------------------------------

RUN: dict[str, Any] = {
    "records": 1000, "epochs": 5, "step_size": 1.0, "loss": "softmax", "feature_bound": 1.0, "delta": 1e-5,
}  # fmt: skip


def test_a_cap_hides_and_a_shortened_gradient_does_not() -> None:
    clipped = {**RUN, "clip": 0.5, "batch_size": 10, "sampling": "shuffle", "noise_multiplier": 5.0, "release": "last"}
    plain = dpcalc.dp_sgd(**clipped, classes=5).cases[0]
    capped = dpcalc.dp_sgd(**clipped, classes=5, model="capped").cases[0]
    assert plain.best is not None
    assert capped.best is not None
    assert (plain.best.bound, capped.best.bound) == ("sampled.shuffle", "sampled.hidden_shuffle")
    assert any("--model capped" in str(obstacle) for obstacle in plain.obstacles)
    two = dpcalc.dp_sgd(**clipped, classes=2).cases[0]
    assert two.best == capped.best


def test_constants_are_those_of_the_softmax_and_of_its_cap() -> None:
    here = dpcalc.multi_epoch(**RUN, classes=4, noise_std=1.0).cases[0]
    assert here.inputs["lipschitz"][0] == pytest.approx(math.sqrt(2.0))
    assert here.inputs["smoothness"][0] == pytest.approx(0.5)
    capped = dpcalc.multi_epoch(**RUN, classes=4, noise_std=1.0, clip=0.25, model="capped").cases[0]
    assert capped.inputs["lipschitz"][0] == 0.25
    assert any("capped" in note for note in capped.notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clip": 1.0}, 'model="capped"'),
        ({"clip": 1.0, "model": "linear"}, 'model="capped"'),
        ({"classes": None}, "give classes"),
        ({"classes": 1}, "classes"),
        ({"label_bound": 1.0}, "leave out label_bound"),
        ({"loss": "logistic", "classes": 3}, "leave out classes"),
        ({"loss": "logistic", "classes": None, "clip": 1.0, "model": "capped"}, 'loss="softmax"'),
        ({"noise_std": None, "laplace_scale": 1.0}, "use noise_std"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DpcalcError) as caught:
        dpcalc.multi_epoch(**{**RUN, "classes": 4, "noise_std": 1.0, **changes})
    assert words in str(caught.value)
