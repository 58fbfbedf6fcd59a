"""Least squares from noisy sums of products: sensitivity, exact sums, what is released, and when the rule takes it."""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import SpecError
from dpcalc.model.loss import of
from dpcalc.model.run import describe
from dpcalc.training.rule.sums_of_products import HALF_MOVE
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.products import entries, exact_products, solved
from tests.training.reference import Recorder


def moved(x: np.ndarray, y: float, other: np.ndarray, target: float) -> float:
    """Return the square of how far the sums move, in units of the noise: every entry over the variance on it."""
    matrix, vector = np.outer(x, x) - np.outer(other, other), x * y - other * target
    total = float(np.sum(vector**2))
    for i, j in itertools.combinations_with_replacement(range(len(x)), 2):
        total += matrix[i, j] ** 2 / (1.0 if i == j else 0.5)
    return total


def test_no_replaced_record_moves_the_sums_further_than_accounted() -> None:
    rng, most = np.random.default_rng(1), (2.0 * HALF_MOVE) ** 2
    assert most == pytest.approx(4.5, rel=1e-14)
    assert most >= 4.5
    largest = 0.0
    for columns in (1, 2, 3):
        for _ in range(4000):
            x, other = (v / max(1.0, np.linalg.norm(v)) for v in 2.0 * rng.standard_normal((2, columns)))
            largest = max(largest, moved(x, *rng.choice([-1.0, 1.0, 0.3], 1), other, *rng.choice([-1.0, 1.0], 1)))
    assert 4.4 < largest <= most
    # The worst two records are at 60 degrees, with opposite targets where they point the same way.
    angle = math.pi / 3.0
    worst = moved(np.array([1.0, 0.0]), 1.0, np.array([math.cos(angle), math.sin(angle)]), -1.0)
    assert worst == pytest.approx(4.5, rel=1e-12)


def in_pieces(x: np.ndarray, y: np.ndarray) -> Callable[[int], Iterator[tuple[np.ndarray, np.ndarray]]]:
    return lambda step: ((x[first : first + step], y[first : first + step]) for first in range(0, len(x), step))


def test_sums_are_exact_in_any_order() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-1.5, 1.5, (300, 4)), rng.uniform(-7.0, 7.0, 300)
    matrix, vector = exact_products(in_pieces(x, y), x.shape, 3.0, 7.0)
    order = rng.permutation(300)
    mixed, targets = np.ascontiguousarray(x[order]), y[order]
    again = exact_products(in_pieces(mixed, targets), x.shape, 3.0, 7.0)
    assert (matrix == again[0]).all()
    assert (vector == again[1]).all()
    unit, of_targets = 2.0 ** (2 - 20), 2.0 ** (3 - 20)
    cut = [[int(each / unit) for each in row] for row in x]
    targets = [int(each / of_targets) for each in y]
    for i, j in itertools.product(range(4), repeat=2):
        assert Fraction(float(matrix[i, j])) == sum(row[i] * row[j] for row in cut) * Fraction(unit) ** 2
    for i in range(4):
        expected = sum(row[i] * t for row, t in zip(cut, targets, strict=True)) * Fraction(unit) * Fraction(of_targets)
        assert Fraction(float(vector[i])) == expected


@pytest.mark.parametrize(("bound", "height"), [(1.0, 1.0), (2.0, 0.3)])
def test_what_is_released(bound: float, height: float) -> None:
    """The sums with noise of the accounted size, an entry at a time, and ridge regression on them."""
    rows, d, noise_std = 400, 3, 0.004
    rng = np.random.default_rng(3)
    x = rng.standard_normal((rows, d))
    x *= bound / np.linalg.norm(x, axis=1)[:, np.newaxis] * 0.999
    y = np.clip(height * (x @ [0.5, -0.2, 0.1]) / bound + 0.05 * height * rng.standard_normal(rows), -height, height)
    given = {"records": rows, "steps": 1, "step_size": 1.0, "lipschitz": HALF_MOVE, "noise_std": noise_std}
    executed = plan(describe("noisy-gd", given), rows, entries(d))
    recorder = Recorder(4)
    problem = Problem(np.ascontiguousarray(x), y, of("squares", feature_bound=bound, label_bound=height))
    weights, drawn = solved(executed, problem, Source(recorder, False, ""))  # type: ignore[arg-type]
    [z] = recorder.noise
    assert drawn == len(z) == entries(d) == 9
    s = rows * noise_std
    noise = np.diag(z[:d])
    for place, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        noise[i, j] = noise[j, i] = z[d + place] / math.sqrt(2.0)
    matrix = x.T @ x / bound**2 + s * noise
    vector = x.T @ y / (bound * height) + s * z[6:]
    ridge = max(0.0, 0.5 * s * math.sqrt(2.0 * d) - np.linalg.eigvalsh(matrix)[0])
    expected = np.linalg.solve(matrix + ridge * np.eye(d), vector) * height / bound
    assert weights == pytest.approx(expected, abs=0.02 * height / bound)  # a grid of at most s/8
    exact = np.linalg.solve(x.T @ x, x.T @ y)
    assert weights == pytest.approx(exact, abs=0.1 * height / bound)
    assert not np.allclose(weights, exact, atol=1e-3 * height / bound)


def numbers(rows: int, columns: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    x = rng.uniform(-0.5, 0.5, (rows, columns))
    return x, 5.0 + 4.0 * x.sum(axis=1) / columns + 0.1 * rng.standard_normal(rows)


def case_of(**given: Any) -> Any:
    return dpcalc.train(
        **{"epsilon": 1, "delta": 1e-5, "seed": 1, "show_unprotected_metrics": True, "target_range": (0, 10), **given}
    ).cases[0]


def test_the_rule_takes_sums_where_the_signal_is_strong() -> None:
    x, y = numbers(40000)
    case, descent = case_of(data=(x.copy(), y)), case_of(data=(x.copy(), y), solver="descent")
    weaker = case_of(data=numbers(14000)).training
    assert weaker["rule"]["kappa"] < 1000 < case.training["rule"]["kappa"]
    assert "solver" not in weaker
    assert case.training["rule"]["picked"]["solver"]["value"] == "sums"
    assert (case.training["solver"], case.training["steps"]) == ("sums", 1)
    assert "solver" not in descent.training
    assert descent.training["steps"] == 200
    found = case.training["uncovered"]["metrics"]["train"]["r2"]
    assert found > 0.97
    mu = case.training["rule"]["mu"]
    assert case.best.bound == "noisy_gd.composition"
    # The noise s = n sigma on a sum: the move, sqrt(4.5), over mu, and a little more for rounding.
    assert math.sqrt(4.5) / mu <= 40000 * case.best.value <= math.sqrt(4.5) / mu * 1.003
    for more in ({"clip": 0.1}, {"steps": 50}, {"average": "none"}, {"regularisation": 0.1}, {"loss": "huber",
                 "huber_threshold": 1.0}, {"radius": 2.0, "steps": 5, "step_size": 0.1}):  # fmt: skip
        assert "solver" not in case_of(data=(x.copy(), y), **more).training


def test_sums_that_are_asked_for() -> None:
    case = case_of(data=numbers(400), solver="sums")
    assert case.training["solver"] == "sums"
    assert case.training["rule"]["kappa"] < 500
    assert "solver" not in case.training["rule"]["picked"]
    (tries,) = (note for note in case.notes if "such runs (geometric" in note)
    assert "--tune" not in tries
    checked = case_of(data=numbers(400), solver="sums", noise_std=0.1, epsilon=None)
    mu = math.sqrt(4.5) / (400 * 0.1)
    assert checked.best.details["floating_point"]["mu"] == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(
    "more",
    [
        {"clip": 1.0}, {"loss": "huber", "huber_threshold": 1.0}, {"algorithm": "noisy-gd"}, {"average": "tail"},
        {"replicas": 3}, {"steps": 4}, {"radius": 3.0}, {"regularisation": 0.1}, {"batch_size": 10},
        {"feature_bound": 1e140}, {"release": "epoch"},
    ],
    ids=str,
)  # fmt: skip
def test_refusals(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        case_of(data=numbers(50), solver="sums", **more)


def test_the_card_of_a_model_is_verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.json"
    report = dpcalc.train(
        data=numbers(400), target_range=(0, 10), epsilon=1, delta=1e-5, solver="sums", output=str(path)
    )
    for form in ("statement", "markdown", "plain"):
        text = " ".join(dpcalc.format_report(report, form).split())  # a statement is wrapped
        assert "(half the distance of two gradients, replace-one only)" in text
    card = json.loads((tmp_path / "m.card.json").read_text())
    assert card["cases"][0]["asked"]["given"]["lipschitz"] == HALF_MOVE
    assert "sums of products" in json.loads(path.read_text())["privacy"]["statement"]
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(tmp_path / "m.card.json"), "--model", str(path)])
    assert not stop.value.code
    assert "verified" in capsys.readouterr().out
    assert np.isfinite(dpcalc.predict(str(path), numbers(5)[0])["prediction"]).all()
