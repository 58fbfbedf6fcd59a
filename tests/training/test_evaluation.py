"""Metrics on test rows, without noise and with: by brute force, and what one replaced row can change."""

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.training.release import metrics
from dpcalc.training.release.prediction import predictor
from tests.training.test_model import MODEL
from tests.training.test_prediction import REGRESSION, expected

RNG = np.random.default_rng(5)
X = np.round(RNG.standard_normal((40, 2)) * 2.0, 1)
WORDS = np.where(RNG.random(40) < 0.4, "yes", "no")
TARGETS = 20.0 + 8.0 * RNG.standard_normal(40)
CLASSES, NUMBERS = predictor(MODEL), predictor(REGRESSION)


def test_classification_by_brute_force() -> None:
    scores = [expected(MODEL, a, b) for a, b in X]
    right = [(z > 0.0) == (word == "yes") for z, word in zip(scores, WORDS, strict=True)]
    found = metrics.measured(CLASSES, (X, WORDS))
    assert found.records == 40
    assert found.metrics["accuracy"] == sum(right) / 40
    pairs = [
        (z > w) + 0.5 * (z == w)
        for (z, one), (w, other) in itertools.product(zip(scores, WORDS, strict=True), repeat=2)
        if (one, other) == ("yes", "no")
    ]
    assert found.metrics["auc"] == pytest.approx(sum(pairs) / len(pairs), rel=1e-12)
    losses = [math.log1p(math.exp(-z if w == "yes" else z)) for z, w in zip(scores, WORDS, strict=True)]
    assert found.metrics["log_loss"] == pytest.approx(sum(losses) / 40, rel=1e-12)
    assert metrics.measured(CLASSES, (X, ["no"] * 40)).metrics["auc"] is None
    flat = predictor(MODEL._replace(weights=np.zeros(2)))
    assert metrics.measured(flat, (X, WORDS)).metrics["auc"] == 0.5


def test_regression_by_brute_force() -> None:
    errors = [t - (20.0 + 5.0 * expected(REGRESSION, a, b)) for (b, a), t in zip(X, TARGETS, strict=True)]
    found = metrics.measured(NUMBERS, (X, TARGETS)).metrics
    assert found["mae"] == pytest.approx(sum(map(abs, errors)) / 40, rel=1e-12)
    assert found["rmse"] == pytest.approx(math.sqrt(sum(e * e for e in errors) / 40), rel=1e-12)
    spread = sum((t - TARGETS.mean()) ** 2 for t in TARGETS)
    assert found["r2"] == pytest.approx(1.0 - sum(e * e for e in errors) / spread, rel=1e-9)
    assert metrics.measured(NUMBERS, (X, [1.0] * 40)).metrics["r2"] is None


ODD: tuple[Any, ...] = (math.nan, math.inf, -1e308, 1e308, 0.0, 20.0)


@pytest.mark.parametrize(("predicting", "targets"), [(CLASSES, WORDS), (NUMBERS, TARGETS)])
def test_a_replaced_row_moves_a_sum_by_what_the_noise_covers(predicting: Any, targets: Any) -> None:
    bound = None if predicting is CLASSES else 7.0
    before = metrics.counted(predicting, (X, targets), bound)
    for place, feature, target in itertools.product((0, 17, 39), ODD, ("yes", "no", *ODD)):
        rows, others = X.copy(), targets.astype(object)
        rows[place] = feature
        others[place] = target
        after = metrics.counted(predicting, (rows, others), bound)
        assert after.records == before.records
        assert all(abs(a - b) <= before.most for a, b in zip(after.sums, before.sums, strict=True))
        assert all(0 <= total <= before.most * before.records for total in after.sums)


def test_sums_are_of_errors_cut_to_the_bound() -> None:
    errors = [abs(t - (20.0 + 5.0 * expected(REGRESSION, a, b))) for (b, a), t in zip(X, TARGETS, strict=True)]
    found = metrics.counted(NUMBERS, (X, TARGETS), 7.0)
    shares = [min(1.0, e / 7.0) for e in errors]
    assert found.sums[0] / found.most == pytest.approx(sum(shares), abs=40 / found.most)
    assert found.sums[1] / found.most == pytest.approx(sum(s * s for s in shares), abs=41 / found.most)


@pytest.mark.parametrize(("predicting", "targets", "parts"), [(CLASSES, WORDS, 1), (NUMBERS, TARGETS, 2)])
def test_the_rate_of_the_noise_is_what_epsilon_allows(
    predicting: Any, targets: Any, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates: list[Fraction] = []
    monkeypatch.setattr(metrics.discrete_laplace, "draw", lambda rate, below: rates.append(rate) or 0)
    found = metrics.released(predicting, (X, targets), 0.1)
    most = metrics.counted(predicting, (X, targets), found.error_bound).most
    # A row moves each of the sums by ``most``: together that costs the sum of the rates times ``most``.
    spent = sum(rates) * most
    assert len(rates) == parts
    assert Fraction(1, 10) * (1 - Fraction(1, 1 << 50)) <= spent < Fraction(1, 10)


@pytest.mark.parametrize(("predicting", "targets"), [(CLASSES, WORDS), (NUMBERS, TARGETS)])
def test_intervals_hold_as_often_as_they_say(predicting: Any, targets: Any) -> None:
    below, runs = random.Random(8).randrange, 400
    found = [metrics.released(predicting, (X, targets), 1.0, below=below, error_bound=None) for _ in range(runs)]
    plain = metrics.measured(predicting, (X, targets)).metrics
    errors = np.abs(TARGETS - (20.0 + 5.0 * np.array([expected(REGRESSION, a, b) for b, a in X])))
    assert predicting is CLASSES or errors.max() < found[0].error_bound  # type: ignore[operator]
    names = found[0].metrics
    held = sum(all(run.metrics[n].low <= plain[n] <= run.metrics[n].high for n in names) for run in found)
    assert held >= 0.95 * runs - 3.0 * math.sqrt(0.05 * 0.95 * runs)
    assert all(run.metrics[n].low <= run.metrics[n].value <= run.metrics[n].high for run in found for n in names)
    if predicting is CLASSES:
        for run in found:
            assert run.population is not None
            assert run.population[0] <= run.metrics["accuracy"].low
            assert run.metrics["accuracy"].high <= run.population[1]


def test_the_interval_of_a_share_is_that_of_clopper_and_pearson_rounded_outwards() -> None:
    """At its ends a count that the noise may have left has a quarter of the probability of a miss."""
    rate = Fraction(1, 2)
    _, (low, high) = metrics._accuracy(30, 60, rate)
    wide = metrics.discrete_laplace.margin(rate, 0.5 * (1.0 - metrics.CONFIDENCE))

    def at_least(k: int, p: Fraction) -> Fraction:
        return sum((math.comb(60, j) * p**j * (1 - p) ** (60 - j) for j in range(k, 61)), Fraction(0))

    for tail in (at_least(30 - wide, Fraction(low)), 1 - at_least(30 + wide + 1, Fraction(high))):
        assert Fraction(124999, 10**7) < tail <= Fraction(125, 10**4)
    assert metrics._accuracy(30, 60, Fraction(1, 1000))[1] == (0.0, 1.0)


def test_intervals_miss_with_a_probability_of_at_most_a_twentieth(monkeypatch: pytest.MonkeyPatch) -> None:
    misses = []
    margin = metrics.discrete_laplace.margin
    monkeypatch.setattr(metrics.discrete_laplace, "margin", lambda a, p: misses.append(Fraction(p)) or margin(a, p))
    for bound in ("lower", "upper"):
        monkeypatch.setattr(metrics.clopper_pearson, bound, lambda k, n, p: misses.append(Fraction(p)))
    metrics._accuracy(30, 60, Fraction(1, 2))
    alone, count, low, high = misses
    assert Fraction(499, 10**4) < count + low + high <= Fraction(1, 20)
    assert Fraction(499, 10**4) < alone <= Fraction(1, 20)
    metrics._errors([30, 20], 60, Fraction(1, 2), 1.0)
    assert Fraction(499, 10**4) < 2 * misses[-1] <= Fraction(1, 20)


def test_what_cannot_be_released_is_refused() -> None:
    for epsilon in (0.0, -1.0, 1e-9, math.inf, math.nan, 1e9):
        with pytest.raises(SpecError, match="epsilon is"):
            metrics.released(CLASSES, (X, WORDS), epsilon)
    with pytest.raises(SpecError, match="predicts classes"):
        metrics.released(CLASSES, (X, WORDS), 1.0, error_bound=1.0)
    for bound in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(SpecError, match="bound on errors"):
            metrics.released(NUMBERS, (X, TARGETS), 1.0, error_bound=bound)
    empty = (np.empty((0, 2)), np.empty(0))
    for call in (metrics.measured, lambda *a: metrics.released(*a, 1.0)):
        with pytest.raises(SpecError, match="no test rows"):
            call(CLASSES, empty)
    with pytest.raises(SpecError, match="no pair of arrays"):
        metrics.measured(CLASSES, X)


def test_nothing_is_drawn_before_it_is_charged() -> None:
    def refuse() -> None:
        raise SpecError("no budget is left")

    def never(_: int) -> int:
        raise AssertionError("noise was drawn")

    with pytest.raises(SpecError, match="no budget"):
        metrics.released(CLASSES, (X, WORDS), 1.0, below=never, charge=refuse)
