"""Distances of positions in fresh orders: of several cases together, and of each alone."""

import math
from typing import Any

import numpy as np
import pytest

from dpcalc.theorems.hidden.fresh_places import cases_of
from dpcalc.theorems.many_passes.shuffled_epochs import RandomOrders


def _passes(**changes: Any) -> Any:
    known = {
        "records": 103, "batch_size": 10, "last_batch": "own", "epochs": 9, "sensitivity": 2.0, "noise_std": 0.3,
        "step_size": 0.1, "smoothness": 1.0, "adjacency": "replace-one",
    }  # fmt: skip
    return RandomOrders(**{**known, **changes}).sharper


@pytest.mark.parametrize("changes", [{}, {"strong_convexity": 0.5}, {"diameter": 0.4}, {"epochs": 2}])
def test_cases_together_have_the_distances_of_each_alone(changes: dict[str, Any]) -> None:
    """Padding a case that has fewer stretches, or fewer ways to account for its uses, changes nothing."""
    passes = _passes(**changes)
    cases = cases_of(passes, 5, 2)
    alone = [cases.single(number) for number in range(len(cases.weight))]
    length = passes.plan.steps
    k, m = (part.ravel().astype(float) for part in np.meshgrid(np.arange(2, length + 1), np.arange(1, length)))
    k, m = k[m < k], m[m < k]
    early, late = 1.0 + (k % 3.0), 1.0 + (m % 2.0)
    together = alone[0].among([(one, len(k)) for one in alone])
    many = len(alone)
    own = together.own(np.tile(k, many), np.tile(early, many)).reshape(many, -1)
    pair = together.pair(*(np.tile(part, many) for part in (k, early, m, late))).reshape(many, -1)
    assert len({math.fsum(row) for row in own.tolist()}) > 1
    for number, one in enumerate(alone):
        np.testing.assert_allclose(own[number], one.own(k, early), rtol=1e-12)
        np.testing.assert_allclose(pair[number], one.pair(k, early, m, late), rtol=1e-12)
