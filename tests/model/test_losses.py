"""The losses: constants hold and are nearly attained, every form is the derivative, and refusals say why."""

import math
import subprocess
import sys
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from dpcalc.errors import MissingParameter, NotApplicable, SpecError
from dpcalc.model.loss import LOSSES, PARAMETERS, POWERED, SIGNED, Loss, PowerLoss, of
from dpcalc.model.loss.scalar import Insensitive
from dpcalc.model.quantities import LossName

VARIANTS: list[dict[str, Any]] = [
    {"name": "hinge", "power": 1.0},
    {"name": "hinge", "power": 1.4},
    {"name": "hinge", "power": 2.0},
    {"name": "absolute", "power": 1.0, "label_bound": 0.7},
    {"name": "absolute", "power": 1.5, "label_bound": 0.7},
    {"name": "absolute", "power": 2.0, "label_bound": 2.0},
    {"name": "insensitive", "power": 1.0, "tube": 0.3, "label_bound": 0.7},
    {"name": "insensitive", "power": 1.6, "tube": 0.3, "label_bound": 1.5},
    {"name": "logistic"},
    {"name": "huber", "huber_threshold": 0.8, "label_bound": 0.5},
    {"name": "huber", "huber_threshold": 40.0, "label_bound": 1.5},
    {"name": "squares", "label_bound": 1.2},
]
EVERY = pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v['name']}-{v.get('power', '')}")
REGULARISED = pytest.mark.parametrize("regularisation", [0.0, 0.3])


def build(variant: dict[str, Any], **more: Any) -> Loss:
    return of(**{"feature_bound": 1.3, "radius": 2.0, **variant, **more})


def ball(r: np.random.Generator, count: int, d: int, radius: float) -> np.ndarray:
    """Points of the ball, a half of them on its sphere, on few directions, so that extremes are met."""
    x = r.normal(size=(count, d)) * (r.random((count, 1)) < 0.5) + np.sign(r.normal(size=(count, 1))) * np.eye(d)[0]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(radius * x * np.where(r.random((count, 1)) < 0.5, 1.0, r.random((count, 1)) ** (1.0 / d)))


def labels_of(r: np.random.Generator, loss: Loss, count: int) -> np.ndarray:
    signs = np.sign(r.normal(size=count))
    if loss.signed:
        return np.asarray(signs)
    assert loss.label_bound is not None
    return np.asarray(loss.label_bound * signs * np.where(r.random(count) < 0.5, 1.0, r.random(count)))


def draw(loss: Loss, seed: int, count: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r = np.random.default_rng(seed)
    assert loss.radius is not None
    d = int(r.integers(1, 4))
    return ball(r, 60, d, loss.radius), ball(r, count, d, loss.feature_bound), labels_of(r, loss, count)


def seen(loss: Loss) -> dict[str, float]:
    """The largest of everything that a constant bounds, in a random search."""
    best = dict.fromkeys(("lipschitz", "gradient_bound", "range", "at_zero", "loss_at_zero"), 0.0)
    for seed in range(6):
        ws, features, labels = draw(loss, seed)
        plain = loss.changed(regularisation=0.0)
        for w in ws:
            best["lipschitz"] = max(best["lipschitz"], norms(plain.gradient(w, features, labels)).max())
            best["gradient_bound"] = max(best["gradient_bound"], norms(loss.gradient(w, features, labels)).max())
            best["range"] = max(best["range"], loss.value(w, features, labels).max())
            assert loss.value(w, features, labels).min() >= 0.0
        zero = np.zeros(ws.shape[1])
        best["at_zero"] = max(best["at_zero"], norms(loss.gradient(zero, features, labels)).max())
        best["loss_at_zero"] = max(best["loss_at_zero"], loss.value(zero, features, labels).max())
    return best


def norms(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(rows, axis=1))


@EVERY
@REGULARISED
def test_constants_hold_and_are_attained(variant: dict[str, Any], regularisation: float) -> None:
    loss = build(variant, regularisation=regularisation)
    largest = seen(loss)
    bounds = {
        "lipschitz": loss.lipschitz, "gradient_bound": loss.gradient_bound, "range": loss.range,
        "at_zero": loss.gradient_at_zero, "loss_at_zero": loss.loss_at_zero,
    }  # fmt: skip
    for name, value in bounds.items():
        assert largest[name] <= value * (1.0 + 1e-12), name
        if name != "gradient_bound":  # the two gradients need not point the same way
            assert largest[name] >= 0.98 * value, name
    assert loss.sensitivity == 2.0 * loss.lipschitz
    assert loss.strong_convexity == regularisation
    assert loss.gradient_bound >= loss.lipschitz


@EVERY
@REGULARISED
def test_gradient_against_differences(variant: dict[str, Any], regularisation: float) -> None:
    loss = build(variant, regularisation=regularisation)
    step = 1e-6
    for seed in range(3):
        ws, features, labels = draw(loss, 100 + seed, 50)
        for w in ws[:10]:
            gradient = loss.gradient(w, features, labels)
            for j in range(w.size):
                e = step * np.eye(w.size)[j]
                difference = (loss.value(w + e, features, labels) - loss.value(w - e, features, labels)) / (2 * step)
                smooth = smooth_at(loss, w, features, labels)
                assert np.abs(difference - gradient[:, j])[smooth].max(initial=0.0) < 2e-5


def smooth_at(loss: Loss, w: np.ndarray, features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Where no kink is near."""
    if isinstance(loss, PowerLoss):
        return np.asarray(np.abs(loss.excess(features @ w, labels)[0]) > 1e-2)
    return np.ones(labels.size, dtype=bool)


def exact_value(variant: dict[str, Any], z: mp.mpf, y: mp.mpf) -> mp.mpf:
    """The table of the losses, written down once more."""
    r, q, k = abs(y - z), mp.mpf(variant.get("power", 1.0)), mp.mpf(variant.get("huber_threshold", 0.0))
    values = {
        "hinge": lambda: max(mp.mpf(0), 1 - y * z) ** q,
        "absolute": lambda: r**q,
        "insensitive": lambda: max(mp.mpf(0), r - mp.mpf(variant["tube"])) ** q,
        "logistic": lambda: mp.log1p(mp.exp(-y * z)),
        "huber": lambda: r**2 / 2 if r <= k else k * r - k**2 / 2,
        "squares": lambda: r**2 / 2,
    }
    return values[variant["name"]]()


def corners(variant: dict[str, Any], y: float) -> list[float]:
    """The scores at which the slope may jump."""
    tube = variant.get("tube", 0.0)
    return [y] if variant["name"] == "hinge" else [y - tube, y + tube] if "power" in variant else []


def grid(variant: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels, dense where a loss bends, and some far out; none nearer to a corner than a hundredth."""
    scores = [*np.linspace(-4.0, 4.0, 161), -800.0, -720.0, -90.0, 90.0, 690.0, 705.0, 800.0]
    labels = (-1.0, 1.0) if variant["name"] in SIGNED else (-0.7, 0.0, 0.3, 0.7)
    pairs = [(z, y) for y in labels for z in scores if all(abs(z - at) > 0.01 for at in corners(variant, y))]
    z, y = np.array(pairs).T
    return z, y


def forms(loss: Loss, z: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """The derivative in z by every form that a loss has."""
    descent, overwritten = loss.scalar_descent(), z.copy()
    with np.errstate(over="ignore"):
        loss.array_descent()(overwritten, y)
    rows = np.ones((1, 1))
    return {
        "scalar": -np.array([descent(a, b) for a, b in zip(z.tolist(), y.tolist(), strict=True)]),
        "in place": -overwritten,
        "slopes": loss.data_slopes(z, y),
        "gradient": np.array([loss.gradient(z[i : i + 1], rows, y[i : i + 1])[0, 0] for i in range(len(z))]),
    }


@EVERY
def test_every_form_is_the_derivative_of_the_value(variant: dict[str, Any]) -> None:
    loss = build(variant)
    z, y = grid(variant)
    with mp.workdps(40):
        points = [(mp.mpf(a), mp.mpf(b)) for a, b in zip(z.tolist(), y.tolist(), strict=True)]
        values = [float(exact_value(variant, a, b)) for a, b in points]
        slopes = [float(mp.diff(lambda x, b=b: exact_value(variant, x, b), a, h=mp.mpf("1e-14"))) for a, b in points]
    np.testing.assert_allclose(loss.data_values(z, y), values, rtol=1e-13, atol=1e-300)
    for name, form in forms(loss, z, y).items():
        np.testing.assert_allclose(
            form, slopes, rtol=1e-13, atol=1e-14 if variant["name"] == "huber" else 1e-300, err_msg=name
        )


@EVERY
def test_the_forms_agree(variant: dict[str, Any]) -> None:
    """At corners as well, where 0 is taken."""
    loss = build(variant)
    z, y = grid(variant)
    at = [(corner, label) for label in np.unique(y) for corner in corners(variant, label)]
    z, y = np.concatenate([z, [a for a, _ in at]]), np.concatenate([y, [b for _, b in at]])
    different = forms(loss, z, y)
    for name, form in different.items():
        np.testing.assert_allclose(form, different["slopes"], rtol=1e-14, atol=1e-300, err_msg=name)


@EVERY
def test_the_form_with_its_factors_apart(variant: dict[str, Any]) -> None:
    """The same in every bit; of the logistic loss to 2.5 units of roundoff, which is what rounding allows for."""
    loss = build(variant)
    z, y = grid(variant)
    inner, outer, overwrite = loss.scaled_descent()
    assert all(math.frexp(factor)[0] == 0.5 for factor in (inner, outer))
    apart = inner * z
    overwrite(apart, y)
    if variant["name"] != "logistic":
        np.testing.assert_array_equal(outer * apart, -loss.data_slopes(z, y))
        return
    with mp.workdps(40):
        exact = [b / (1 + mp.exp(mp.mpf(a) * b)) for a, b in zip(z.tolist(), y.tolist(), strict=True)]
        worst = max(abs(mp.mpf(a) - b) for a, b in zip((outer * apart).tolist(), exact, strict=True))
    assert 0.0 < worst <= 2.5 * 2.0**-53


@EVERY
@REGULARISED
def test_convex_strongly_and_hoelder(variant: dict[str, Any], regularisation: float) -> None:
    loss = build(variant, regularisation=regularisation)
    a, worst = loss.exponent, 0.0
    local = loss.hoelder_constant_on_ball()
    for seed in range(6):
        ws, features, labels = draw(loss, 200 + seed, 100)
        for v, w in zip(ws, ws[::-1], strict=True):
            gap = np.linalg.norm(v - w)
            if gap < 1e-6:
                continue
            at_v, at_w = loss.gradient(v, features, labels), loss.gradient(w, features, labels)
            above = loss.value(w, features, labels) - loss.value(v, features, labels) - at_v @ (w - v)
            assert above.min() >= 0.5 * loss.strong_convexity * gap**2 - 1e-12
            worst = max(worst, norms(at_v - at_w).max() / gap**a)
    assert worst <= local * (1.0 + 1e-12)
    if loss.smoothness is not None:
        assert local == loss.smoothness


@pytest.mark.parametrize("name", ["logistic", "huber"])
@pytest.mark.parametrize("exponent", [0.0, 1e-3, 0.2, 0.5, 0.9, 1.0])
def test_any_exponent_holds_and_is_tight(name: str, exponent: float) -> None:
    more = {"huber_threshold": 0.8, "label_bound": 0.5} if name == "huber" else {}
    loss = of(name, feature_bound=1.3, **more)  # type: ignore[arg-type]
    constant = loss.hoelder_constant(exponent)
    x, y = np.array([[1.3]]), np.array([1.0 if name == "logistic" else 0.5])
    center = 0.0 if name == "logistic" else 0.5 / 1.3
    ratios = []
    for h in np.geomspace(1e-3, 1e5, 4000):
        left, right = (loss.gradient(np.array([center + s * h / 2]), x, y)[0, 0] for s in (-1, 1))
        ratios.append(abs(left - right) / h**exponent)
    assert max(ratios) <= constant * (1.0 + 1e-12)
    assert max(ratios) >= 0.99 * constant


@pytest.mark.parametrize(
    "variant", [v for v in VARIANTS if v["name"] in POWERED], ids=lambda v: f"{v['name']}-{v['power']}"
)
def test_the_global_constants_of_powers_are_attained(variant: dict[str, Any]) -> None:
    """Far out for the tube, whose width does not matter then; across the kink elsewhere."""
    loss = build(variant)
    x, y = np.array([[loss.feature_bound]]), np.array([0.5 if variant["name"] != "hinge" else 1.0])
    center, h = y[0] / loss.feature_bound, 1e5
    pairs = ((-1, 1),) if variant["name"] != "hinge" else ((-1, 0),)
    ratios = [
        abs(loss.gradient(np.array([center + a * h]), x, y) - loss.gradient(np.array([center + b * h]), x, y))[0, 0]
        / ((b - a) * h) ** loss.exponent
        for a, b in pairs
    ]
    assert 0.99 * loss.hoelder_constant() <= max(ratios) <= loss.hoelder_constant() * (1.0 + 1e-12)


def test_logistic_constants_to_forty_digits() -> None:
    for exponent in ("0.0001", "0.3", "0.5", "0.77", "0.9999999"):
        with mp.workdps(40):
            a = mp.mpf(float(exponent))
            start = mp.sqrt(1.5 * (1 - a)) if a > 0.5 else mp.log(20 / a) / 2
            u = mp.findroot(lambda x, a=a: 2 * x / mp.sinh(2 * x) - a, start)
            exact = mp.tanh(u) / (4 * u) ** a
            constant = mp.mpf(of("logistic", feature_bound=1.0).hoelder_constant(float(exponent)))
            assert 0 <= constant / exact - 1 < mp.mpf("1e-14")
    for exponent in (5e-324, 1e-300, 1e-17, 1.0 - 2.0**-53):
        assert 0.25 <= of("logistic", feature_bound=1.0).hoelder_constant(exponent) <= 1.0 + 1e-14


def test_constants_need_no_numpy() -> None:
    program = (
        "import sys; from dpcalc.model.loss import of; "
        "of('logistic', feature_bound=1.0).hoelder_constant(0.5); "
        "sys.exit('numpy' in sys.modules or 'scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_lists_follow_from_the_losses() -> None:
    assert tuple(LossName) == LOSSES == ("hinge", "absolute", "insensitive", "logistic", "huber", "squares", "softmax")
    assert SIGNED == ("hinge", "logistic")
    assert POWERED == ("hinge", "absolute", "insensitive")
    assert PARAMETERS == (
        "feature_bound", "label_bound", "power", "classes", "huber_threshold", "tube", "radius", "regularisation",
    )  # fmt: skip


def test_closed_forms() -> None:
    squares = of("squares", feature_bound=2.0, label_bound=3.0, radius=1.0, regularisation=0.5)
    close = {"rel": 1e-14}
    assert squares.lipschitz == pytest.approx(10.0, **close)
    assert squares.gradient_bound == pytest.approx(10.5, **close)
    assert squares.smoothness == pytest.approx(4.5, **close)
    assert squares.gradient_at_zero == pytest.approx(6.0, **close)
    assert squares.loss_at_zero == pytest.approx(4.5, **close)
    assert squares.range == pytest.approx(12.75, **close)
    logistic = of("logistic", feature_bound=2.0)
    assert logistic.lipschitz == pytest.approx(2.0, **close)
    assert logistic.smoothness == pytest.approx(1.0, **close)
    assert logistic.gradient_at_zero == pytest.approx(1.0, **close)
    assert logistic.loss_at_zero == pytest.approx(math.log(2.0), **close)
    assert of("logistic", feature_bound=2.0, radius=0.1).lipschitz < 2.0
    huber = of("huber", feature_bound=2.0, huber_threshold=0.5)
    assert huber.lipschitz == pytest.approx(1.0, **close)  # for labels of any size
    assert of("hinge", feature_bound=2.0).smoothness is None
    assert of("hinge", feature_bound=2.0, power=2.0).smoothness == pytest.approx(8.0, **close)
    assert of("insensitive", feature_bound=1.0, tube=2.0, label_bound=1.0).gradient_at_zero == 0.0
    assert of("insensitive", feature_bound=1.0, tube=2.0, label_bound=1.0).loss_at_zero == 0.0


@pytest.mark.parametrize("size", [1e-300, 1e-200, 1e200, 1e300])
def test_extreme_bounds_are_never_below_the_truth(size: float) -> None:
    for variant in VARIANTS:
        loss = build({**variant, "feature_bound": size, "radius": size})
        with mp.workdps(30):
            b = mp.mpf(size)
            lowest = b if variant.get("power") == 1.0 else mp.mpf(0)
        for constant in (loss.lipschitz, loss.range, loss.hoelder_constant(), loss.gradient_at_zero, loss.sensitivity):
            assert constant >= 0.0
            assert not math.isnan(constant)
        assert loss.lipschitz > 0.0
        assert loss.lipschitz >= lowest


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"name": "cubes"}, SpecError, "cubes"),
        ({"name": "hinge", "power": 2.5}, SpecError, "power"),
        ({"name": "hinge", "power": 0.5}, SpecError, "power"),
        ({"name": "huber"}, MissingParameter, "huber_threshold"),
        ({"name": "huber", "huber_threshold": 0.0}, SpecError, "huber_threshold"),
        ({"name": "insensitive", "power": 1.0, "tube": -1.0}, SpecError, "tube"),
        ({"name": "squares", "feature_bound": None}, MissingParameter, "feature_bound"),
        ({"name": "logistic", "power": 1.0}, SpecError, "power"),
        ({"name": "logistic", "label_bound": 1.0}, SpecError, "labels"),
        ({"name": "squares", "tube": 1.0}, SpecError, "tube"),
        ({"name": "squares", "feature_bound": 0.0}, SpecError, "feature_bound"),
        ({"name": "squares", "feature_bound": math.inf}, SpecError, "feature_bound"),
        ({"name": "squares", "feature_bound": True}, SpecError, "feature_bound"),
        ({"name": "squares", "label_bound": -1.0}, SpecError, "label_bound"),
        ({"name": "squares", "radius": math.nan}, SpecError, "radius"),
        ({"name": "squares", "regularisation": -0.1}, SpecError, "regularisation"),
    ],
)
def test_refused_when_built(given: dict[str, Any], error: type[SpecError], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        of(**{"feature_bound": 1.0, **given})
    assert caught.value.hint


def test_what_is_not_given() -> None:
    loss = of("insensitive", feature_bound=1.0, power=None)
    assert isinstance(loss, Insensitive)
    assert (loss.power, loss.tube, loss.label_bound, loss.radius, loss.regularisation) == (1.0, 0.0, None, None, 0.0)


def test_refused_when_asked() -> None:
    plain = {"feature_bound": 1.0}
    refusals: list[tuple[Any, type[NotApplicable], str]] = [
        (lambda: of("squares", **plain).gradient_at_zero, MissingParameter, "--label-bound"),
        (lambda: of("squares", **plain, label_bound=1.0).lipschitz, MissingParameter, "--radius"),
        (lambda: of("hinge", **plain, power=1.5).lipschitz, MissingParameter, "--radius"),
        (lambda: of("hinge", **plain).range, MissingParameter, "--radius"),
        (lambda: of("absolute", **plain, radius=1.0).loss_at_zero, MissingParameter, "--label-bound"),
        (lambda: of("hinge", **plain, regularisation=1.0).gradient_bound, MissingParameter, "--radius"),
        (lambda: of("hinge", **plain, regularisation=1.0).hoelder_constant(), NotApplicable, "--regularisation"),
        (lambda: of("hinge", **plain, regularisation=1.0).hoelder_constant_on_ball(), MissingParameter, "--radius"),
        (lambda: of("hinge", **plain).hoelder_constant(0.5), NotApplicable, "ask for 0"),
    ]
    for ask, error, hint in refusals:
        with pytest.raises(error) as caught:
            ask()
        assert hint in (caught.value.hint or "")
    with pytest.raises(SpecError, match="exponent"):
        of("logistic", **plain).hoelder_constant(1.5)
    assert of("hinge", **plain).lipschitz == pytest.approx(1.0)
