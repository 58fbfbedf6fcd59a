"""Slopes of the capped softmax: how far from the true ones they are, what a run of them is, and what it costs."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.draft import Description
from dpcalc.model.loss import of
from dpcalc.model.question import Question
from dpcalc.training.release.model import load
from dpcalc.training.rule import batches as rule_batches
from dpcalc.training.rule.draft import Draft
from dpcalc.training.rule.setup import Setup
from dpcalc.training.run import capped, rounding, single
from dpcalc.training.run.exact_sums import ExactSums
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem, slope_caps
from dpcalc.training.run.rounding import Rounding, output_rounding
from tests.oracles.capped import distance, slope
from tests.training.reference import Recorder, cut

N, D, K, CLIP = 12, 3, 4, 0.3


def slopes(z: np.ndarray, y: Any, c: Any) -> np.ndarray:
    """Return slopes, a row each."""
    return -capped.capped_descents(z, np.asarray(y, dtype=float), np.broadcast_to(c, len(z)).astype(float)).T


def hard(r: np.random.Generator, classes: int) -> tuple[np.ndarray, int, float]:
    """Return scores, a label and a cap: ties, huge and tiny scores, saturated slopes, caps just below their length."""
    z = r.normal(size=classes) * 10.0 ** r.uniform(-3, 4)
    z, y = np.round(z) if r.random() < 0.3 else z, int(r.integers(classes))
    c = float(r.choice([10.0 ** r.uniform(-4, 0), 1e-9, 0.1, 0.5, 63 / 64]))
    if r.random() < 0.2:
        z /= np.abs(z).max() + 1e-3
        length = np.linalg.norm(slopes(z[np.newaxis], [y], [2.0]))
        c = float(length * (1.0 - 10.0 ** r.uniform(-17, -3)))
    return z, y, min(c, capped.LARGEST_CAP)


# --- slopes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5, 10, 50])
def test_slopes_are_within_the_error_that_is_declared(classes: int) -> None:
    r = np.random.default_rng(classes)
    for _ in range(40 if classes < 50 else 4):
        z, y, c = hard(r, classes)
        found = slopes(z[np.newaxis], [y], [c])[0]
        declared = capped.slope_error(classes, float(z.max() - z.min()), abs(math.log(c)))
        assert distance(found, slope(z, y, c, found)) <= declared
        assert np.linalg.norm(found) <= c * (1.0 + 1e-13)


@pytest.mark.campaign
def test_slopes_of_many_records() -> None:
    r = np.random.default_rng(1)
    for _ in range(3000):
        z, y, c = hard(r, int(r.integers(2, 20)))
        found = slopes(z[np.newaxis], [y], [c])[0]
        declared = capped.slope_error(len(z), float(z.max() - z.min()), abs(math.log(c)))
        assert distance(found, slope(z, y, c, found)) <= declared


@pytest.mark.parametrize("way", ["bisected", "slowly"])
def test_what_newtons_method_leaves_is_solved(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No start is near enough: everything is bisected, or solved with 40 digits."""
    r = np.random.default_rng(7)
    cases = [hard(r, 3) for _ in range(30)] if way == "bisected" else [hard(r, 2) for _ in range(2)]
    if way == "slowly":
        nothing = lambda state, share: (share, np.zeros(share.shape[1], dtype=bool))  # noqa: E731
        monkeypatch.setattr(capped, "_slopes_and_errors", nothing)
        monkeypatch.setattr(capped, "_HALVINGS", 1)
    monkeypatch.setattr(capped, "_ITERATIONS", 0)
    asked: list[float] = []
    slowly = capped._slowly
    monkeypatch.setattr(capped, "_slowly", lambda apart, cap: asked.append(cap) or slowly(apart, cap))
    for z, y, c in cases:
        found = slopes(z[np.newaxis], [y], [c])[0]
        declared = capped.slope_error(len(z), float(z.max() - z.min()), abs(math.log(c)))
        assert distance(found, slope(z, y, c, found)) <= declared
    assert bool(asked) == (way == "slowly")


def test_a_slope_depends_on_its_record_alone() -> None:
    """Bit for bit, wherever the record stands and whatever stands beside it."""
    r = np.random.default_rng(3)
    for classes in (2, 3, 9, 40):
        z, y = 10.0 ** r.uniform(-1, 2, (301, 1)) * r.standard_normal((301, classes)), r.integers(classes, size=301)
        caps = r.uniform(0.01, 2.0, 301)
        whole = slopes(z, y, caps)
        for some in (r.permutation(301), np.arange(7, 8), np.arange(5, 30), np.arange(300, -1, -3)):
            assert (slopes(z[some], y[some], caps[some]) == whole[some]).all()
        z[::2] = np.nan
        assert (slopes(z, y, caps)[1::2] == whole[1::2]).all()
        assert not slopes(z, y, caps)[::2].any()


def moved_by_others(seed: int, classes: int, every: int) -> bool:
    """Return whether a slope is another one alone, in a smaller batch, or where one other record is replaced."""
    r, rows = np.random.default_rng(seed), 60
    z, y = 10.0 * r.standard_normal((rows, classes)), r.integers(classes, size=rows)
    caps = 10.0 ** -r.uniform(0.0, 12.0, rows)
    whole = slopes(z, y, caps)
    alone = [slice(k, k + 1) for k in range(0, rows, every)]
    batches = [slice(k, k + size) for size in (7, 30) for k in range(0, rows, size)]
    moved = any((slopes(z[some], y[some], caps[some]) != whole[some]).any() for some in alone + batches)
    for place in range(0, rows, 5 * every):
        others = np.arange(rows) != place
        moved |= bool((slopes(z * others[:, np.newaxis], y, caps) != whole)[others].any())
    return moved


@pytest.mark.parametrize("classes", [3, 10, 50])
def test_slow_records_do_not_move_others(classes: int) -> None:
    """Scores far apart and tiny caps take many iterations, and each record another number of them."""
    assert not moved_by_others(31, classes, 12)


@pytest.mark.campaign
@pytest.mark.parametrize("classes", [3, 10, 50])
def test_slow_records_do_not_move_others_in_many_batches(classes: int) -> None:
    assert not any(moved_by_others(seed, classes, 2) for seed in range(8))


@pytest.mark.parametrize("classes", [3, 50])
def test_levels_of_a_record_do_not_depend_on_others(classes: int) -> None:
    """All records are bisected here, not the few that Newton's method leaves."""
    r = np.random.default_rng(2)
    apart, spread = 10.0 * r.standard_normal((classes - 1, 80)), 10.0 ** r.uniform(-3.0, 12.0, 80)
    together = capped._levels_at(apart, spread)
    for k in range(80):
        assert (capped._levels_at(apart[:, k : k + 1], spread[k : k + 1])[:, 0] == together[:, k]).all()


def test_caps_are_lowered_where_slopes_are_not_known_well() -> None:
    assert capped.lowered(np.array([0.1, 0.99, 1.4, 1.5, np.inf])).tolist() == [0.1, 63 / 64, 63 / 64, np.inf, np.inf]
    z, y = np.array([[40.0, 0.0, 0.0]] * 2), [1, 1]
    assert np.linalg.norm(slopes(z, y, [1.2, 1.5]), axis=1) == pytest.approx([63 / 64, math.sqrt(2.0)], rel=1e-12)
    wide = slopes(np.array([[1e12, 0.0, -1e300]]), [1], [0.2])  # known to be no longer, and nothing else
    assert np.linalg.norm(wide) == pytest.approx(0.2)


def test_gradients_in_exact_sums_are_those_of_the_capped_loss() -> None:
    problem = problem_of(60)
    sums, w = ExactSums(problem, 0.1, 60, capped=True), 5.0 * np.random.default_rng(5).standard_normal(D * K)
    for i in range(20):
        one = sums.descent(w, np.array([i]))
        assert sum(Fraction(float(each)) ** 2 for each in one) < Fraction(0.1) ** 2
        x, y, cap = problem.features[i], int(problem.labels[i]), 0.1 / np.linalg.norm(problem.features[i])
        z = x @ w.reshape(D, K)
        true = [float(each) for each in slope(z, y, cap, slopes(z[np.newaxis], [y], cap)[0])]
        assert one == pytest.approx(-np.outer(x, true).reshape(-1), abs=1e-5)


# --- what is executed -------------------------------------------------------------------------------------------------


def problem_of(rows: int = N, classes: int = K, **more: float) -> Problem:
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, D))
    x /= np.linalg.norm(x, axis=1)[:, np.newaxis] * (1.0 + rng.random((rows, 1)))
    y = rng.integers(classes, size=rows).astype(float)
    return Problem(np.ascontiguousarray(x), y, of("softmax", feature_bound=1.0, classes=classes, **more))


def planned(**changes: Any) -> Any:
    given: dict[str, Any] = {
        "algorithm": "cyclic", "records": N, "loss": "softmax", "feature_bound": 1.0, "clip": CLIP,
        "classes": K, "model": "capped", "step_size": 3.9, "noise_std": 0.2, "batch_size": 5, "epochs": 2,
    }  # fmt: skip
    _, run, _ = run_of(COMMANDS["compare"], Description({**given, **changes}))
    described = {**given, **changes}
    return plan(run, described["records"], D * described["classes"])


def test_a_run_is_within_its_error_of_one_with_the_true_slopes() -> None:
    problem, executed, recorder = problem_of(), planned(), Recorder(5)
    trained = single.train(executed, problem, Source(recorder, False, ""))  # type: ignore[arg-type]
    noise = np.concatenate([drawn.reshape(-1, D, K) for drawn in recorder.noise])
    caps = capped.lowered(slope_caps(problem.features, CLIP))  # type: ignore[arg-type]
    w, met = np.zeros((D, K)), 0
    for (rows, divisor), drawn in zip(2 * cut(range(N), 5), noise, strict=True):
        total = np.zeros((D, K))
        for i in rows:
            z, y = problem.features[i] @ w, int(problem.labels[i])
            g = slope(z, y, caps[i], slopes(z[np.newaxis], [y], [caps[i]])[0])
            met += abs(math.hypot(*map(float, g)) - caps[i]) < 1e-9
            total += np.outer(problem.features[i], [float(each) for each in g])
        w = w - 3.9 * (total / divisor + 0.2 * drawn)
    assert met > N  # most slopes are capped
    errors = rounding._Errors(executed, problem.loss)
    error = executed.steps * float(errors.before_noise() + errors.after_noise(0.0))
    assert np.linalg.norm(trained.weights.reshape(D, K) - w) <= error < 1e-9


def test_a_descent_ends_at_the_minimiser_of_the_infimal_convolution() -> None:
    """Found by minimising f(u_i) + c_i |x_i W - u_i| over all u_i and W at once."""
    from scipy.optimize import minimize

    weight, rows = 0.05, 6
    problem = problem_of(rows, classes=3, regularisation=weight)
    x, y = problem.features, problem.labels.astype(int)
    executed = planned(
        algorithm="noisy-gd", steps=300, step_size=1.5, epochs=None, batch_size=None, records=rows, classes=3,
        regularisation=weight, noise_std=1e-9, clip=0.2,
    )  # fmt: skip
    trained = single.train(executed, problem, Source(Recorder(1), False, ""))  # type: ignore[arg-type]
    caps = 0.2 / np.linalg.norm(x, axis=1)

    def value(v: np.ndarray) -> float:
        w, u = v[: D * 3].reshape(D, 3), v[D * 3 :].reshape(rows, 3)
        losses = np.logaddexp.reduce(u, axis=1) - u[np.arange(rows), y]
        moved = np.sqrt(((x @ w - u) ** 2).sum(axis=1) + 1e-10)
        return float(np.mean(losses + caps * moved) + 0.5 * weight * np.sum(w * w))

    best = minimize(
        value, np.zeros(D * 3 + rows * 3) + 0.01, method="L-BFGS-B", options={"maxiter": 3000, "maxfun": 10**6}
    )
    assert trained.weights == pytest.approx(best.x[: D * 3], abs=2e-3)
    assert np.abs(trained.weights).max() > 0.1


# --- what it costs ----------------------------------------------------------------------------------------------------


def test_both_forms_count_the_shift() -> None:
    exact = Rounding(1e-9, 1e-4, 1e-12, 0.5)
    for slopes_cost in ((1e-5, 4e-33), (1e-3, 1e-20)):
        inexact = exact._replace(shift=slopes_cost)
        h, tau = slopes_cost
        for epsilon in (0.5, 8.0):
            plain, small = inexact.cost(epsilon), inexact.cost_in_epsilon(epsilon)
            assert plain.epsilon >= 2.0 * h
            assert plain.delta >= math.exp(h) * (1.0 + math.exp(epsilon + 2.0 * h)) * (1e-9 + tau)
            assert small.epsilon >= 2.0 * (h + 1e-4)
            assert small.factor >= math.exp(h + 1e-4)
            assert small.delta >= (1.0 + math.exp(epsilon)) * (1e-12 + tau)
            assert small.epsilon <= 2.1 * (h + 1e-4)
    assert exact.cost(1.0).epsilon == 0.0


def test_rounding_of_hidden_runs() -> None:
    problem = problem_of()
    with pytest.raises(NotApplicable, match="more than two classes"):
        output_rounding(planned()._replace(capped=False), problem.loss)
    found, longer = (output_rounding(planned(epochs=epochs), problem.loss) for epochs in (2, 200))
    assert 0.0 < found.shift[0] < longer.shift[0] < 1e-6
    quiet = output_rounding(planned(noise_std=0.01), problem.loss)
    assert quiet.shift[0] > found.shift[0]
    assert output_rounding(planned(noise_std=1e-12), problem.loss).cost(1.0) == (math.inf, 1.0, 1.0)
    with pytest.raises(NotApplicable, match="too far apart"):
        output_rounding(planned(noise_std=1e9), problem.loss)


# --- through the front door -------------------------------------------------------------------------------------------


def classes(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    centres, y = 0.5 * rng.standard_normal((3, 5)), rng.integers(3, size=rows)
    return centres[y] + 0.15 * rng.standard_normal((rows, 5)), y


HIDDEN: dict[str, Any] = {
    "labels": "0,1,2", "epsilon": 2, "delta": 1e-5, "algorithm": "cyclic", "epochs": 3, "batch_size": 30, "clip": 0.1,
    "step_size": 1.0,
}  # fmt: skip


def test_from_hidden_iterates_to_a_card(tmp_path: Path) -> None:
    path, (x, y) = tmp_path / "m.json", classes(1000)
    case = dpcalc.train(data=(x, y), **HIDDEN, output=str(path)).cases[0]
    assert case.inputs["model"] == ("capped", "default")
    best: Any = case.best
    assert best.bound == "multi_epoch.cyclic"
    assert best.epsilon <= 2.0
    told = best.details["floating_point"]
    assert told["of"] == "what is released"
    functions = "exp, log and log1p of the installed numpy are within 4 units in the last place"
    assert functions in best.assumes
    assert json.loads(path.read_text())["privacy"]["assumes"] == list(best.assumes)
    assert any("its softmax capped" in text for text in best.assumes)
    assert 0.0 < told["epsilon"] < 0.01
    found = dpcalc.predict(str(path), x)
    assert np.mean(found["prediction"] == y.astype(str)) > 0.7
    assert dpcalc.evaluate(str(path), (x, y))["metrics"]["accuracy"] > 0.7
    verified = dpcalc.verify(str(tmp_path / "m.card.json"), model=str(path), certify=False)
    assert verified.passed
    composed = {key: HIDDEN[key] for key in ("labels", "epsilon", "delta", "clip")}
    public: Any = dpcalc.train(data=(x, y), **composed, algorithm="noisy-gd", steps=3, seed=1).cases[0].best
    assert functions not in public.assumes  # whatever the slopes are, sums of gradients that are cut off are exact


def test_what_is_released_lies_on_a_grid_whatever_the_records(tmp_path: Path) -> None:
    """Neighbours differ in one record: no low-order bit is left that could tell them apart."""
    x, y = classes(300)
    other = x.copy()
    other[7] = [1e-9, 0.0, 0.3, -1e-300, 1e3]
    for k, rows in enumerate((x, other)):
        path = tmp_path / f"m{k}.json"
        case = dpcalc.train(data=(rows, y), **HIDDEN, seed=1, output=str(path)).cases[0]
        grid = case.best.details["floating_point"]["grid"]  # type: ignore[union-attr,index]
        model = load(str(path))
        for weights in (model.weights, np.asarray(model.intercept) / 0.2):
            cells = np.asarray(weights) / grid
            assert np.abs(cells - np.round(cells)).max() < 1e-6


def test_which_model_is_trained() -> None:
    data = classes(200)
    given: dict[str, Any] = {"data": data, "labels": "0,1,2", "epsilon": 2, "delta": 1e-4, "seed": 1}
    given["show_unprotected_metrics"] = True
    full = dpcalc.train(**given, model="capped").cases[0]
    plain = dpcalc.train(**given).cases[0]
    assert (full.best.bound, plain.best.bound) == ("noisy_gd.composition",) * 2  # type: ignore[union-attr]
    assert full.inputs["model"] == ("capped", "argument")
    assert full.training["uncovered"]["metrics"] != plain.training["uncovered"]["metrics"]  # type: ignore[index]
    ridge = {"algorithm": "noisy-gd", "steps": 60, "step_size": 1.0, "regularisation": 0.1, "clip": 0.3}
    assert dpcalc.train(**given, **ridge, model="capped").cases[0].best.bound == "noisy_gd.contraction"  # type: ignore[union-attr]
    with pytest.raises(SpecError, match="what is capped is a softmax"):
        dpcalc.train(data=data, positive="1", epsilon=1, delta=1e-4, clip=0.1, model="capped")


@pytest.mark.parametrize("asked", [None, "any", "capped"])
@pytest.mark.parametrize("hidden", [0.01, 0.03])
def test_less_noise_decides_for_batches(asked: str | None, hidden: float, monkeypatch: pytest.MonkeyPatch) -> None:
    noise, seen = {"noisy-sgd": 0.02, "shuffled-epochs": hidden}, {}

    def of_draft(draft: Draft) -> float:
        seen[draft["algorithm"]] = draft["model"]
        return noise[draft["algorithm"]]

    monkeypatch.setattr(rule_batches, "noise_scale", of_draft)
    given = {"loss": "softmax", "classes": 3, "feature_bound": 1.0, "batch_size": 24}
    described = Description({**given, **({} if asked is None else {"model": asked})})
    draft = Draft(described, Question(8.0, 1e-5, math.log(1e-5)))
    draft.take_shape(250, 3, with_dimension=False)
    rule_batches.fill(draft, Setup(), 3)
    hides = hidden < 0.02 and asked != "any"
    assert draft["algorithm"] == ("shuffled-epochs" if hides else "noisy-sgd")
    assert draft["model"] == (asked or ("capped" if hides else "any"))
    assert seen["noisy-sgd"] == (asked or "any")
    assert seen.get("shuffled-epochs") == (None if asked == "any" else "capped")
    assert draft["step_size"] <= 4.0 or not hides
