"""Scores that become log-odds: the public temperature, the noisy counts that correct it, and what they cost."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.loss import of
from dpcalc.model.run import describe
from dpcalc.training.release import calibration
from dpcalc.training.release.calibration import answers, biases, by_class, corrected, shrunk, temperature
from dpcalc.training.release.model import load
from dpcalc.training.release.prediction import predictor, probabilities
from dpcalc.training.rule.calibration import Calibrating
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.kernel import probabilities as softmax
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import Rounding, sum_miss
from tests.training.test_centring import Drawn
from tests.training.test_rule import CANCER, case_of, mu_of, value

MIDDLES, ENDS = (0.4, 1.4, 3.2), (0.8, 2.2)
WRONG_AND_RIGHT, WITH_BIASES = Calibrating(1.5, 4), Calibrating(1.5, 4, 4)


def problem_of(n: int, d: int, classes: int = 2, seed: int = 3) -> Problem:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * (1.0 + 1e-12)
    if classes > 2:
        return Problem(x, rng.integers(classes, size=n).astype(float), of("softmax", feature_bound=1.0, classes=3.0))
    return Problem(x, rng.choice([-1.0, 1.0], size=n), of("logistic", feature_bound=1.0))


def plan_of(problem: Problem, noise_std: float = 0.01, steps: int = 5) -> Plan:
    n, weights = problem.shape
    given = {"release": "epoch", "records": n, "steps": steps, "step_size": 1.0, "lipschitz": 0.1}
    return plan(describe("noisy-gd", {**given, "noise_std": noise_std}), n, weights)


def cell(scores: list[Fraction], label: float, t: float) -> tuple[int, int]:
    """Return (right, size) of a record, written out with fractions: of one score, or of several classes."""
    if len(scores) == 1:
        right, gap = (scores[0] > 0) == (label > 0.0), abs(scores[0])
    else:
        best = max(range(len(scores)), key=lambda k: (scores[k], -k))
        right, gap = label == best, scores[best] - max(s for k, s in enumerate(scores) if k != best)
    return int(right), sum(float(gap) / t >= end for end in ENDS)


@pytest.mark.parametrize("classes", [2, 3])
def test_counts_are_those_of_exact_scores(classes: int) -> None:
    problem = problem_of(400, 5, classes)
    scores = 1 if classes == 2 else classes
    w = np.random.default_rng(1).standard_normal(5 * scores) * 4.0
    expected = np.zeros((2, 3))
    for row, label in zip(problem.features, problem.labels, strict=True):
        cut = [Fraction(math.trunc(Fraction(float(one)) * 2**20), 2**20) for one in row]
        found = [sum(c * Fraction(float(u)) for c, u in zip(cut, w[k::scores], strict=True)) for k in range(scores)]
        expected[cell(found, label, 1.5)] += 1.0
    assert (answers(problem, w, 1.5) == expected).all()
    assert expected.min() > 0.0


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weights", ["usual", "huge", "nan", "zero"])
def test_a_record_adds_one_to_one_count_whatever_it_and_the_weights_are(classes: int, weights: str) -> None:
    problem = problem_of(60, 4, classes)
    size = 4 * (1 if classes == 2 else classes)
    w = np.random.default_rng(1).standard_normal(size) * {"huge": 1e300, "zero": 0.0}.get(weights, 4.0)
    if weights == "nan":
        w[0] = math.nan
    with np.errstate(all="ignore"):
        before = answers(problem, w, 1.5)
        assert before.sum() == 60
        for row in ([0.0] * 4, [1.0, 0.0, 0.0, 0.0], [-0.5] * 4, [5e-324, 0.0, 0.0, 1e-200]):
            for label in (-1.0, 1.0) if classes == 2 else (0.0, 1.0, 2.0):
                features, labels = problem.features.copy(), problem.labels.copy()
                features[17], labels[17] = row, label
                moved = answers(problem._replace(features=features, labels=labels), w, 1.5) - before
                assert np.abs(moved).max(initial=0.0) <= 1.0
                assert np.linalg.norm(moved) <= math.sqrt(2.0)


def test_counts_do_not_depend_on_how_records_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor on the other records: what one adds is what it adds alone, in its place."""
    problem = problem_of(300, 7)
    w = np.random.default_rng(1).standard_normal(7) * 4.0
    whole = answers(problem, w, 1.5)
    monkeypatch.setattr(calibration, "_PIECE", 21)
    assert (answers(problem, w, 1.5) == whole).all()


def test_the_noise_is_that_of_every_other_sum() -> None:
    """n sigma/L on every count, to which a record adds a vector of norm at most 1."""
    problem = problem_of(500, 3)
    w, drawn = np.array([3.0, -2.0, 1.0]), Drawn()
    found = temperature(
        WRONG_AND_RIGHT,
        plan_of(problem, 0.002),
        problem,
        w,
        Source(drawn, False, ""),
        Rounding(1e-9),  # type: ignore[arg-type]
    )
    [noise] = drawn.noise
    z = 500 * 0.002 / 0.1
    noisy = answers(problem, w, 1.5) + z * noise.mean(axis=0)
    # rounded to a grid of an eighth of the noise at most, which moves the fit by little
    near = [1.5 * corrected(noisy + shift, z / 2.0) for shift in (-z / 16.0, 0.0, z / 16.0)]
    assert min(near) - 0.04 <= found <= max(near) + 0.04
    assert noise.shape == (4, 2, 3)


@pytest.mark.parametrize("records", [1, 499, 500])
def test_noisy_counts_are_points_of_a_public_grid(records: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the records are: no bit below the noise tells one of them."""
    problem, seen = problem_of(500, 3), []
    labels = np.where(np.arange(500) < records, 1.0, -1.0)
    monkeypatch.setattr(calibration, "corrected", lambda noisy, *rest: seen.append(noisy) or 1.0)
    for seed in range(5):
        given = WRONG_AND_RIGHT, plan_of(problem, 0.00213), problem._replace(labels=labels), np.array([3.0, -2.0, 1.0])
        temperature(*given, Source(np.random.default_rng(seed), False, ""), Rounding(1e-9))
    grid = 2.0 ** math.floor(math.log2(500 * 0.00213 / 0.1 / 8.0))
    assert all((np.fmod(4.0 * noisy, grid) == 0.0).all() for noisy in seen)
    assert len({noisy.tobytes() for noisy in seen}) == 5


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_all_noisy_sums_together_are_within_the_budget(epsilon: float) -> None:
    """11 + 1 sums of rows, 100 steps and four sums of counts: each moves by at most two units in z."""
    case = case_of(data=CANCER, epsilon=epsilon)
    assert case.training["calibration"]["sums"] == 4
    assert value(case, "steps") == 116
    z = 569 * case.best.value / 0.1
    assert math.sqrt(116.0) * 2.0 / z <= mu_of(epsilon, 1e-5)
    uncounted = case_of(data=CANCER, epsilon=epsilon, clip=0.1, centre=True)
    assert value(uncounted, "steps") == 112
    assert case.best.value == pytest.approx(uncounted.best.value * math.sqrt(116.0 / 112.0), rel=1e-3)


def test_more_sums_are_accounted_where_they_pay() -> None:
    case = case_of(data=CANCER, epsilon=2)
    assert 15.0 <= case.training["rule"]["kappa"] < 50.0
    assert (case.training["calibration"]["sums"], value(case, "steps")) == (8, 120)
    z = 569 * case.best.value / 0.1
    assert math.sqrt(120.0) * 2.0 / z <= mu_of(2.0, 1e-5)


def test_counts_are_among_the_rounded_numbers() -> None:
    """With one column, the six counts are more than a step releases."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, (2000, 1))
    case = case_of(data=(x, np.sign(x[:, 0] + 0.1)), positive="1", intercept=False)
    assert value(case, "steps") == 104
    lost = case.best.details["floating_point"]
    assert lost["probability"] >= (100 * 1 + 24) * sum_miss("gaussian")
    assert lost["delta"] >= (1.0 + math.e) * (100 * 1 + 24) * sum_miss("gaussian")


def test_hidden_iterates_have_no_counts() -> None:
    problem = problem_of(50, 3)
    given = WRONG_AND_RIGHT, plan_of(problem), problem, np.ones(3), Source(Drawn(), False, "")  # type: ignore[arg-type]
    with pytest.raises(NotApplicable, match="every noisy sum may be public"):
        temperature(*given, Rounding(1e-9, grid=0.5))
    with pytest.raises(NotApplicable):
        temperature(*given, None)
    with pytest.raises(SpecError, match="lost in rounding"):
        temperature(WRONG_AND_RIGHT, plan_of(problem, 1e-18), *given[2:], Rounding(1e-9))


# --- biases of several classes ----------------------------------------------------------------------------------------


def test_sums_by_class_are_those_of_a_softmax() -> None:
    problem = problem_of(400, 5, 3)
    w = np.random.default_rng(1).standard_normal(15) * 4.0
    labels, chances = np.zeros(3), np.zeros(3)
    for row, label in zip(problem.features, problem.labels, strict=True):
        powers = [math.exp(float(row @ w[k::3]) / 1.5) for k in range(3)]
        labels[int(label)] += 1.0
        chances += np.array(powers) / sum(powers)
    found = by_class(problem, w, 1.5)
    assert (found[0] == labels).all()
    assert found[1] == pytest.approx(chances, abs=400 * 2.0**-17)
    assert chances.max() > 1.2 * chances.min()


@pytest.mark.parametrize("of_classes", [None, (0.25, 1.0, 0.75)])
@pytest.mark.parametrize("weights", ["usual", "huge", "nan", "zero"])
def test_a_record_moves_sums_by_class_by_two_at_most(weights: str, of_classes: tuple[float, ...] | None) -> None:
    problem = problem_of(60, 4, 3)._replace(weights=None if of_classes is None else np.array(of_classes))
    w = np.random.default_rng(1).standard_normal(12) * {"huge": 1e300, "zero": 0.0}.get(weights, 400.0)
    if weights == "nan":
        w[0] = math.nan
    seen = []
    with np.errstate(all="ignore"):
        for row in ([0.0] * 4, [1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]):
            for label in (0.0, 1.0, 2.0):
                features, labels = problem.features.copy(), problem.labels.copy()
                features[17], labels[17] = row, label
                seen.append(by_class(problem._replace(features=features, labels=labels), w, 1.5))
    moves = [np.linalg.norm(one - other) for one in seen for other in seen]
    assert max(moves) <= 2.0
    assert max(moves) >= (1.9 if weights == "usual" and of_classes is None else 1.0)


def test_sums_by_class_do_not_depend_on_how_records_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problem_of(300, 7, 3)._replace(weights=np.array([0.375, 1.0, 0.75]))
    w = np.random.default_rng(1).standard_normal(21) * 4.0
    whole = by_class(problem, w, 1.5)
    monkeypatch.setattr(calibration, "_PIECE", 21)
    assert (by_class(problem, w, 1.5) == whole).all()


def test_the_noise_of_biases_is_that_of_every_other_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, drawn, seen = problem_of(500, 3, 3), Drawn(), []
    w = np.random.default_rng(1).standard_normal(9)
    monkeypatch.setattr(calibration, "shrunk", lambda *given: seen.append(given) or shrunk(*given))
    rest = plan_of(problem, 0.002), problem, w
    biases(1.5, WITH_BIASES, *rest, Source(drawn, False, ""), Rounding(1e-9))  # type: ignore[arg-type]
    [noise], [(noisy, scale)], z = drawn.noise, seen, 500 * 0.002 / 0.1
    assert scale == pytest.approx(z / 2.0)
    assert noise.shape == (4, 2, 3)
    assert noisy == pytest.approx(by_class(problem, w, 1.5) + z * noise.mean(axis=0), abs=z / 16.0)
    assert (np.fmod(4.0 * noisy, 2.0 ** math.floor(math.log2(z / 8.0))) == 0.0).all()
    with pytest.raises(NotApplicable):
        biases(1.5, WITH_BIASES, *rest, Source(drawn, False, ""), Rounding(1e-9, grid=0.5))  # type: ignore[arg-type]


def test_biases_are_the_most_likely_ones() -> None:
    """By the likelihood of the difference of the two noisy sums, and a normal prior of deviation 0.25."""
    from scipy.optimize import minimize_scalar

    sums = np.array([[700.0, 180.0, 120.0], [500.0, 300.0, 200.0]])
    for size, missed, found in zip((600.0, 240.0, 160.0), (200.0, -120.0, -80.0), shrunk(sums, 50.0), strict=True):
        variance = 2.0 * 50.0**2 * 2.0 / 3.0
        best = minimize_scalar(lambda b: (missed - size * b) ** 2 / variance + (b / 0.25) ** 2)  # noqa: B023
        assert found == pytest.approx(best.x, rel=1e-6)
    assert np.isfinite(shrunk(np.zeros((2, 3)), 0.0)).all()
    assert np.abs(shrunk(sums, 1e9)).max() < 1e-6


def test_a_table_that_says_nothing_of_its_classes_gets_their_shares(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    x, shares = rng.uniform(-1.0, 1.0, (6000, 3)), np.array([0.65, 0.25, 0.1])
    y = rng.choice(3, size=6000, p=shares)
    model = model_of(tmp_path, (x, y.astype(float)), loss="softmax", classes=3, seed=1)
    assert softmax(model.scores(x)).mean(axis=0) == pytest.approx(shares, abs=0.03)


def test_biases_are_accounted_where_they_pay() -> None:
    """11 + 1 sums of rows, 100 steps, four sums of counts and four by class; the entries of all are rounded."""
    rng = np.random.default_rng(4)
    data = rng.uniform(-1.0, 1.0, (2000, 3)), rng.integers(3, size=2000).astype(float)
    given = {"data": data, "loss": "softmax", "classes": 3}
    case = case_of(**given)
    assert case.training["rule"]["kappa"] >= 50.0
    assert case.training["calibration"]["class_sums"] == 4
    assert value(case, "steps") == 120
    z = 2000 * case.best.value / 0.1
    assert math.sqrt(120.0) * 2.0 / z <= mu_of(1.0, 1e-5)
    bare = case_of(**given, intercept=False)
    assert (bare.training["calibration"]["class_sums"], value(bare, "steps")) == (0, 104)
    assert case_of(**given | {"epsilon": 0.2}).training["calibration"]["class_sums"] == 0
    assert Calibrating(1.5, 4, 4).entries(3) == 4 * 6 + 4 * 2 * 3


# --- how good it is ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "scale"), [(1.0, 0.0), (2.5, 0.0), (0.3, 0.0), (2.5, 300.0), (2.5, 3000.0)])
def test_the_fit_is_the_most_likely_one(factor: float, scale: float) -> None:
    """By the likelihood of noisy counts with the number of answers at each size as a parameter of its own."""
    from scipy.optimize import minimize_scalar

    n = 40000.0
    right = np.array([n / (1.0 + math.exp(-size / factor)) / 3.0 for size in MIDDLES])
    counts = np.array([n / 3.0 - right, right])

    def at_a_size(chance: float, wrong: float, right: float) -> float:
        """Minus twice the log-likelihood of p wrong - (1 - p) right, for the number of answers that fits best."""
        mixed = np.array([1.0 - chance, chance])
        answered = max(float(np.linalg.lstsq(mixed[:, np.newaxis], np.array([wrong, right]), rcond=None)[0][0]), 0.0)
        across = np.array([chance, chance - 1.0])
        variance = max(scale, 1.0) ** 2 * float(across @ across) + answered * chance * (1.0 - chance)
        return float(across @ [wrong, right]) ** 2 / variance + math.log(variance)

    def loss(move: float) -> float:
        chances = [1.0 / (1.0 + math.exp(-size * math.exp(-move))) for size in MIDDLES]
        return ((move - 0.15) / 0.5) ** 2 + sum(map(at_a_size, chances, *counts))

    best = min(
        (minimize_scalar(loss, bounds=(low, low + 0.5), method="bounded", options={"xatol": 1e-9}) for low in
         np.arange(-2.0, 3.0, 0.5)), key=lambda one: one.fun,
    ).x  # fmt: skip
    found = corrected(counts, scale)
    assert math.log(found) == pytest.approx(best, abs=0.011)
    if scale == 0.0:
        assert found == pytest.approx(factor, rel=0.05)
    else:
        assert math.exp(0.15) < found < factor


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("factor", [0.3, 2.5, 15.0])
def test_the_fit_finds_the_factor_of_a_softmax_of_equal_gaps(classes: int, factor: float) -> None:
    """A class that is as far below the best as the size says, and each further one 1 below the one before it."""
    right = []
    for size in MIDDLES:
        scores = np.array([0.0, *(-size - np.arange(classes - 1.0))]) / factor
        right.append(float(1.0 / np.exp(scores).sum()))
    counts = 1e7 * np.array([1.0 - np.array(right), right])
    assert corrected(counts, 1.0, classes) == pytest.approx(factor, rel=0.011)


def test_counts_of_noise_alone_leave_the_temperature_near_what_is_usual() -> None:
    rng = np.random.default_rng(7)
    found = [math.log(corrected(1e6 * rng.standard_normal((2, 3)), 1e6)) for _ in range(400)]
    assert np.quantile(np.abs(np.array(found) - 0.15), 0.9) <= 0.6


def drawn_table(n: int, seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows, labels and the true log-odds."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.standard_normal((n, 6)) * 0.35, -1.0, 1.0)
    odds = x @ np.array([3.0, -2.0, 1.0, 2.0, -1.0, 0.5])
    return x, np.where(rng.uniform(size=n) < 1.0 / (1.0 + np.exp(-odds)), 1.0, -1.0), odds


def model_of(tmp_path: Path, data: Any, name: str = "m.json", **given: Any) -> Any:
    dpcalc.train(**{"data": data, "epsilon": 1, "delta": 1e-5, "output": str(tmp_path / name), "card": False, **given})
    return load(str(tmp_path / name))


def log_loss(odds: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean(np.logaddexp(0.0, -y * odds)))


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    tenth = np.minimum((p * 10.0).astype(int), 9)
    parts = [(tenth == k) for k in range(10) if (tenth == k).any()]
    return sum(float(part.mean()) * abs(float(p[part].mean() - (y[part] > 0.0).mean())) for part in parts)


def test_probabilities_are_those_that_records_are_drawn_by(tmp_path: Path) -> None:
    x, y, _ = drawn_table(4000)
    fresh, labels, odds = drawn_table(20000, 6)
    model = model_of(tmp_path, (x, y), positive="1", seed=3)
    scores, raw = model.scores(fresh), model.raw_scores(fresh)
    assert log_loss(scores, labels) <= log_loss(odds, labels) + 0.02
    assert log_loss(raw, labels) >= log_loss(odds, labels) + 0.1
    assert calibration_error(probabilities(scores), labels) <= 0.03
    assert calibration_error(probabilities(raw), labels) >= 0.08
    assert ((scores > 0.0) == (raw > 0.0)).all()
    assert raw == pytest.approx(model.temperature * scores)


def test_several_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    w = rng.standard_normal((5, 3)) * 4.0

    def table(n: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.clip(rng.standard_normal((n, 5)) * 0.35, -1.0, 1.0)
        return x, (x @ w + rng.gumbel(size=(n, 3))).argmax(axis=1)

    x, y = table(6000)
    fresh, labels = table(5000)
    model = model_of(tmp_path, (x, y.astype(float)), loss="softmax", classes=3, seed=1)
    losses = {}
    for name, scores in (("raw", model.raw_scores(fresh)), ("as used", model.scores(fresh)), ("true", fresh @ w)):
        own = np.take_along_axis(scores, labels[:, np.newaxis], 1)[:, 0]
        losses[name] = float(np.mean(np.logaddexp.reduce(scores, axis=1) - own))
    assert losses["as used"] <= losses["true"] + 0.03 <= losses["raw"]
    assert (model.scores(fresh).argmax(axis=1) == model.raw_scores(fresh).argmax(axis=1)).all()


# --- when, and what is kept -------------------------------------------------------------------------------------------


def test_few_records_have_a_public_temperature_alone() -> None:
    x, y, _ = drawn_table(120)
    case = case_of(data=(x, y), positive="1")
    kappa = 120 * mu_of(1.0, 1e-5) / (2.0 * math.sqrt(7.0))
    assert 5.0 < kappa < 10.0
    assert value(case, "steps") == 112
    few = 18.0 / (0.5 * 120 * mu_of(1.0, 1e-5))
    expected = 6.0 / 7.0 ** (1.0 / 3.0) * math.sqrt(1.0 + few * few)
    public = {"temperature": pytest.approx(expected, rel=1e-3), "sums": 0, "class_sums": 0}
    assert case.training["calibration"] == public
    assert case_of(data=(x, -y), positive="1").training["calibration"] == case.training["calibration"]


@pytest.mark.parametrize(
    "given",
    [
        {"clip": 0.2}, {"steps": 50}, {"step_size": 3}, {"regularisation": 0.01}, {"average": "none"},
        {"loss": "hinge"}, {"loss": "squares"}, {"radius": 5}, {"release": "last", "radius": 1},
        {"loss": "softmax", "classes": 2}, {"batch_size": 50},
    ],
    ids=str,
)  # fmt: skip
def test_runs_that_it_was_not_measured_on_are_left_alone(given: dict[str, Any]) -> None:
    x, y, _ = drawn_table(300)
    y = (y > 0.0).astype(float) if given.get("loss") == "softmax" else y
    case = case_of(data=(x, y), **{"loss": "logistic", **given})
    assert "calibration" not in case.training


def test_a_tuned_run_is_left_alone() -> None:
    x, y, _ = drawn_table(300)
    case = case_of(data=(x, y), loss="logistic", tune={"clip": [0.1, 0.2]}, tune_runs=1)
    assert "calibration" not in case.training


def test_released_iterates_have_the_units_of_the_model(tmp_path: Path) -> None:
    x, y, _ = drawn_table(300)
    model = model_of(tmp_path, (x, y), positive="1", release="epoch")
    half = model.released[50:]
    assert len(model.released) == 100
    assert half.mean(axis=0) == pytest.approx(np.append(model.weights, model.intercept), rel=1e-9)


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_a_file_keeps_it_and_older_files_have_none(tmp_path: Path, ending: str) -> None:
    x, y, _ = drawn_table(300)
    model = model_of(tmp_path, (x, y), f"m.{ending}", positive="1")
    assert model.temperature > 1.0
    old = model_of(tmp_path, (x, y), f"old.{ending}", positive="1", clip=0.1)
    assert old.temperature is None
    assert (old.raw_scores(x) == old.scores(x)).all()
    assert predictor(old).read(old.scores(x))["probability"] == pytest.approx(probabilities(old.scores(x)))


@pytest.mark.parametrize("temperature", [0.0, -1.0, "2", True, [1.0]])
def test_a_file_with_another_temperature_is_no_model(tmp_path: Path, temperature: Any) -> None:
    x, y, _ = drawn_table(100)
    model_of(tmp_path, (x, y), positive="1")
    path = tmp_path / "m.json"
    fields = json.loads(path.read_text())
    assert "temperature" in fields
    path.write_text(json.dumps({**fields, "temperature": temperature}))
    with pytest.raises(SpecError, match="is not a model file"):
        load(str(path))


def test_the_statement_says_which_step_it_is(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, output=str(path))
    statement = json.loads(path.read_text())["privacy"]["statement"]
    assert "The first 12 of the 116 accounted steps are noisy sums too" in statement
    assert "The last 4 of the accounted steps are noisy sums" in statement
    assert "for a bias of each class" not in statement
    rng = np.random.default_rng(4)
    data = rng.uniform(-1.0, 1.0, (2000, 3)), rng.integers(3, size=2000).astype(float)
    dpcalc.train(data=data, loss="softmax", classes=3, epsilon=1, delta=1e-5, output=str(path))
    statement = json.loads(path.read_text())["privacy"]["statement"]
    assert "The last 8 of the accounted steps are noisy sums" in statement
    assert "and 4 sums of labels and predicted probabilities, for a bias of each class." in statement


def test_predict_and_evaluate_use_log_odds(tmp_path: Path) -> None:
    x, y, _ = drawn_table(2000)
    model = model_of(tmp_path, (x, y), positive="1")
    path = str(tmp_path / "m.json")
    raw = model.raw_scores(x)
    found = dpcalc.predict(path, x)["probability"]
    assert found == pytest.approx(1.0 / (1.0 + np.exp(-raw / model.temperature)), rel=1e-9)
    metrics = dpcalc.evaluate(path, (x, y))["metrics"]
    assert metrics["log_loss"] == pytest.approx(log_loss(raw / model.temperature, y), rel=1e-9)
    assert metrics["log_loss"] < log_loss(raw, y) - 0.05
    assert metrics["accuracy"] == pytest.approx(float(np.mean((raw > 0.0) == (y > 0.0))))
