"""Synthetic records follow the model that they are said to follow."""

import numpy as np
import pytest

from dpcalc.errors import SpecError
from dpcalc.training.data.synthetic import NOISE, generate


def test_linear_labels_are_the_score_and_noise() -> None:
    table = generate(
        "linear", records=200_000, dimension=2, radius=1.0, feature_bound=1.0, generator=np.random.default_rng(1)
    )
    x, y = table.cells[:, :-1], table.cells[:, -1]
    assert table.cells.shape == (200_000, 3)
    assert np.linalg.norm(x, axis=1).max() <= 1.0 + 1e-15
    residual = y - x @ (np.array([1.0, 2.0]) / np.sqrt(5.0))
    assert abs(residual.mean()) < 5 * NOISE / np.sqrt(200_000)
    assert residual.std() == pytest.approx(NOISE, rel=0.01)


def test_logistic_labels_have_the_stated_probability() -> None:
    table = generate(
        "logistic", records=200_000, dimension=1, radius=None, feature_bound=3.0, generator=np.random.default_rng(2)
    )
    x, y = table.cells[:, 0], table.cells[:, 1]
    assert set(y.tolist()) == {0.0, 1.0}
    near = np.abs(x - 1.0) < 0.1
    assert y[near].mean() == pytest.approx(1.0 / (1.0 + np.exp(-1.0)), abs=0.02)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(SpecError, match="no synthetic data 'cubic'"):
        generate("cubic", records=5, dimension=1, radius=None, feature_bound=1.0, generator=np.random.default_rng(0))
