"""Distances of positions in fresh orders: of several cases together, and of each alone."""

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcalc.theorems.hidden.fresh_places import SamePlaces, _numbers, cases_of, nodes
from dpcalc.theorems.many_passes.repeated_allocation import Pace
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


def test_probabilities_of_places_are_rounded_up() -> None:
    for records, size, parts in ((103, 10, 3), (7, 1, 7), (23, 3, 5), (1000003, 1000, 24)):
        plan = _passes(records=records, batch_size=size).plan
        used = plan.records - plan.dropped
        told: dict[float, Fraction] = {}
        for _, weight, share in nodes(plan, parts):
            told[weight] = told.get(weight, Fraction(0)) + Fraction(share)
        for alike in plan.positions:
            assert told[plan.weight(alike)] >= Fraction(alike.records, used)


@pytest.mark.parametrize(("trials", "one_in"), [(5, 3), (12, 7), (50, 10)])
def test_probabilities_of_heavy_uses_are_rounded_up(trials: int, one_in: int) -> None:
    """For no number is the probability of more heavy uses below that of a binomial law."""
    chance, told = Fraction(1.0 / one_in), _numbers(trials, 1.0 / one_in)
    masses = [math.comb(trials, j) * chance**j * (1 - chance) ** (trials - j) for j in range(trials + 1)]
    for x in range(-1, trials):
        assert sum(Fraction(weight) for number, weight in told if number > x) >= sum(masses[x + 1 :])


def test_costs_of_same_places_are_rounded_up() -> None:
    """r^2 ((E-1)/l + 1/k), and for two places the larger of what they cost apart and together, as fractions."""
    r = random.Random(7)
    for _ in range(300):
        epochs, length = r.randrange(1, 50), r.randrange(2, 1000)
        a, b = sorted(r.sample(range(1, length + 1), 2))
        early, late = r.uniform(1.0, 3.0), r.uniform(1.0, 3.0)
        places = SamePlaces(Pace(length, ((float(length), 0.0),)), epochs, 1.0)
        assert places.bare
        e, s = Fraction(early), Fraction(late)
        own = e * e * (Fraction(epochs - 1, length) + Fraction(1, b))
        last = e * e / (b - a) + s * s / a if e * a <= s * (b - a) else (e + s) ** 2 / b
        pair = (epochs - 1) * (e + s) ** 2 / length + last
        found = (
            places.own(np.array([float(b)]), early),
            places.pair(*map(np.array, ([float(b)], [early], [float(a)], [late]))),
        )
        for mu, truth in zip(found, (own, pair), strict=True):
            assert 0 <= Fraction(float(mu[0])) ** 2 / truth - 1 < 1e-14
