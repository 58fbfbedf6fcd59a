"""Metrics and the non-private minimiser, against independent computations."""

from typing import Any

import numpy as np
import pytest

from dpcalc.model import loss as losses
from dpcalc.training.release.metrics import measure, measure_all, minimise, quantiles
from dpcalc.training.run.problem import Problem

CASES: list[tuple[str, dict[str, Any]]] = [
    ("logistic", {}), ("hinge", {}), ("hinge", {"power": 2.0}), ("squares", {}), ("squares", {"regularisation": 0.1}),
    ("huber", {"huber_threshold": 0.3}), ("absolute", {}), ("absolute", {"power": 1.5}), ("insensitive", {"tube": 0.1}),
]  # fmt: skip


def problem(name: str, rows: int = 60, columns: int = 3, **more: Any) -> Problem:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((rows, columns))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, np.newaxis]
    score = x @ np.arange(1.0, columns + 1.0) + 0.5 * generator.standard_normal(rows)
    signed = name in losses.SIGNED
    y = np.where(score > 0, 1.0, -1.0) if signed else np.clip(score, -1.0, 1.0)
    loss = losses.of(name, feature_bound=1.0, label_bound=None if signed else 1.0, radius=1.5, **more)
    return Problem(x, y, loss)


@pytest.mark.parametrize(("name", "more"), CASES)
def test_the_mean_loss_is_that_of_the_catalogue(name: str, more: dict[str, Any]) -> None:
    given = problem(name, **more)
    weights = np.random.default_rng(4).standard_normal((5, 3))
    losses_of_rows = measure_all(weights, given)["loss"]
    expected = [given.loss.value(w, given.features, given.labels).mean() for w in weights]
    assert losses_of_rows == pytest.approx(expected, rel=1e-13)


def test_accuracy_rmse_and_r2_are_what_they_are_called() -> None:
    x, y = np.array([[1.0], [0.5], [-0.5], [0.0]]), np.array([1.0, -1.0, -1.0, 1.0])
    signs = Problem(x, y, losses.of("logistic", feature_bound=1.0))
    assert measure(np.array([2.0]), signs)["accuracy"] == 0.5
    line = Problem(x, np.array([1.0, 0.0, -1.0, 0.0]), losses.of("squares", feature_bound=1.0, label_bound=1.0))
    metrics = measure(np.array([1.0]), line)
    assert metrics["rmse"] == pytest.approx(np.sqrt(0.5 / 4.0))
    assert metrics["r2"] == pytest.approx(1.0 - 0.5 / 2.0)


@pytest.mark.few(6)
@pytest.mark.parametrize(("name", "more"), CASES)
@pytest.mark.parametrize("radius", [0.4, 1.5])
def test_no_point_of_the_ball_is_better_than_the_minimiser_by_more_than_the_gap(
    name: str, more: dict[str, Any], radius: float
) -> None:
    given = problem(name, **more)
    best = minimise(given, radius)
    assert np.linalg.norm(best.weights) <= radius * (1 + 1e-12)
    assert best.gap is not None
    assert best.gap < (6e-4 if getattr(given.loss, "power", None) == 1.0 else 1e-7)
    # Projected subgradient descent, written here: its best iterate is a point of the ball like any other.
    w, least = np.zeros(3), np.inf
    for step in range(4000):
        w = w - 0.5 / np.sqrt(step + 1.0) * given.loss.gradient(w, given.features, given.labels).mean(axis=0)
        w *= min(1.0, radius / max(np.linalg.norm(w), 1e-300))
        least = min(least, float(given.loss.value(w, given.features, given.labels).mean()))
    assert best.loss <= least + best.gap + 1e-13  # the rounding of two means of 60 numbers


def test_least_squares_is_solved_to_machine_precision() -> None:
    given = problem("squares")
    exact = np.linalg.lstsq(given.features, given.labels, rcond=None)[0]
    optimum = minimise(given, 10.0)
    assert optimum.weights == pytest.approx(exact, rel=1e-6)
    assert optimum.gap is not None
    assert optimum.gap < 1e-8
    assert minimise(given, None).gap is None
    ridge = problem("squares", regularisation=0.1)
    x, y = ridge.features, ridge.labels
    exact = np.linalg.solve(x.T @ x / 60 + 0.1 * np.eye(3), x.T @ y / 60)
    optimum = minimise(ridge, None)
    assert optimum.weights == pytest.approx(exact, rel=1e-6)
    assert optimum.gap is not None


def test_quantiles_are_in_order() -> None:
    assert quantiles(np.arange(101.0)) == [5.0, 25.0, 50.0, 75.0, 95.0]
