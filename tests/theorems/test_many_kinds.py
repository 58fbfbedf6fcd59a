"""Schedules of many kinds of steps: the lemma about means, and compositions against those of other codes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcalc.model.phases import Phases
from dpcalc.notions import pld
from dpcalc.notions.pld import ManyKinds, Pair
from dpcalc.theorems.record import all_bounds
from dpcalc.theorems.sampled import pairs
from dpcalc.theorems.sampled.corners import at_corners

from .test_sampled_steps import uppers

LOG_DELTA = math.log(1e-5)
ADJACENCIES = ("remove", "add", "null-record", "replace-one")


def step_of(sampling: str, adjacency: str, mu: float, rate: float) -> Pair:
    of = pairs.Adjacency(adjacency)
    if sampling == "poisson":
        return pairs.poisson_pair(mu, rate, replaced=adjacency == "replace-one")
    if sampling == "fixed":
        return pairs.fixed_pair(mu, rate, of)
    return pairs.cut_pair(mu, rate, of, 200, 40)


@pytest.mark.few(3)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "cut"])
def test_a_step_is_at_most_the_mean_of_those_at_the_corners_of_its_cell(sampling: str, adjacency: str) -> None:
    chance = np.random.default_rng(1)
    epsilons = np.concatenate(([0.0], np.geomspace(1e-6, 30.0, 200)))
    for _ in range(40):
        mus = chance.uniform(0.01, 6.0) * (1.0 + chance.uniform(0.0, 2.0) * np.sort(chance.random(130)))
        rates = chance.uniform(0.001, 0.4) * (1.0 + chance.uniform(0.0, 1.0) * chance.random(130))
        kinds = [(q, mu, 1) for q, mu in zip(rates.tolist(), mus.tolist(), strict=True)]
        corners, places, shares, _ = at_corners(kinds, linear=sampling != "cut")
        assert len(corners) <= 96
        assert (shares >= 0.0).all()
        assert (shares.sum(axis=1) >= 1.0).all()
        chosen = int(chance.integers(len(kinds)))
        for order in ("forward", "backward"):
            one = getattr(step_of(sampling, adjacency, mus[chosen], rates[chosen]), order)(epsilons)
            mean = sum(
                share * np.exp(getattr(step_of(sampling, adjacency, corners[p][1], corners[p][0]), order)(epsilons))
                for share, p in zip(shares[chosen], places[chosen], strict=True)
            )
            assert (np.exp(one) <= mean * (1.0 + 1e-9) + 1e-290).all()


@pytest.mark.few(1)
@pytest.mark.parametrize(("rate", "noise", "steps"), [
    ([0.01] * 5, [1.5, 1.3, 1.1, 0.9, 0.8], [200, 300, 100, 50, 400]),
    ([0.3, 0.1, 0.02, 0.5], [2.0, 1.0, 0.7, 4.0], [1, 2, 3, 1]),
    ([1e-4, 2e-4, 3e-4, 1e-3], [0.5, 0.6, 0.7, 0.8], [1000, 1, 7, 40]),
])  # fmt: skip
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_few_kinds_are_composed_as_by_laws_of_their_own(
    rate: list[float], noise: list[float], steps: list[int], adjacency: str
) -> None:
    parts = [(step_of("poisson", adjacency, 1.0 / z, q), n) for q, z, n in zip(rate, noise, steps, strict=True)]
    backward = [(pld.exchanged(pair), n) for pair, n in parts]
    orders = {"remove": [parts], "add": [backward]}.get(adjacency, [parts, backward])
    least = max(pld.epsilon(order, log_delta_target=LOG_DELTA).value for order in orders)
    phases = Phases(np.array(rate), np.array(noise), np.array(steps, dtype=float), "test")
    [whole] = uppers(sampling="poisson", adjacency=adjacency, schedule=phases).values()
    assert least * (1.0 - 2e-6) <= whole.epsilon(LOG_DELTA).value <= least * (1.0 + 4e-4)
    at = pld.log_delta(orders[0], epsilon=0.5 * least).value
    assert at - 1e-5 <= whole.log_delta(0.5 * least).value
    if len(orders) == 1:
        assert whole.log_delta(0.5 * least).value <= at + 2e-3


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_step_on_a_cut_batch_may_have_a_lower_rate(adjacency: str) -> None:
    """Its curve may fall with the rate, where nearly all batches are cut."""
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    of, rates = pairs.Adjacency(adjacency), np.linspace(0.05, 0.9999, 20)
    for mu, records, cap in ((0.3, 3, 1), (0.3, 10, 3), (1.0, 50, 10)):
        for order in ("forward", "backward"):
            curves = np.array([getattr(pairs.cut_pair(mu, q, of, records, cap), order)(epsilons) for q in rates])
            most = [getattr(pairs._pair_of_step(mu, q, of, records, cap, at_most=True), order)(epsilons) for q in rates]
            assert (np.maximum.accumulate(curves) <= np.array(most) + 1e-9).all()
            if (mu, records, order) == (0.3, 3, "forward") and adjacency in ("null-record", "replace-one"):
                assert (np.diff(curves, axis=0) < -0.01).any()
                assert "sample_rate" in all_bounds()["sampled.truncated"].not_monotone_in


@pytest.mark.campaign
@pytest.mark.parametrize("adjacency", ["null-record", "replace-one"])
def test_many_kinds_of_cut_batches_are_not_below_one_of_them(adjacency: str) -> None:
    """One of three records is kept of a batch; the other 99 kinds of steps have too much noise to count."""
    rates = np.linspace(0.9, 0.9999, 100)
    phases = Phases(rates, np.where(rates > 0.9, 1e7, 1.0 / 0.3), np.ones(100), "test")
    [whole] = uppers(sampling="poisson", adjacency=adjacency, schedule=phases, records=3, max_batch_size=1).values()
    one = pairs.cut_pair(0.3, 0.9, pairs.Adjacency(adjacency), 3, 1).forward(np.array([1.0]))
    assert float(one[0]) <= whole.log_delta(1.0).value + 1e-9


def test_one_step_may_outweigh_all_others() -> None:
    """The tilt is that of the step with little noise; by that of the others no law would have an end."""
    phases = Phases(np.linspace(0.5, 0.6, 100), np.append(3.0, np.full(99, 1e4)), np.ones(100), "test")
    [whole] = uppers(sampling="poisson", adjacency="remove", schedule=phases).values()
    alone = pld.epsilon([(pld.removed(mu=1.0 / 3.0, rate=0.5), 1)], log_delta_target=LOG_DELTA).value
    assert alone <= whole.epsilon(LOG_DELTA).value <= 1.01 * alone


@pytest.mark.campaign
def test_no_delta_is_left_beyond_all_losses() -> None:
    """An added record that is nearly never used reveals at most -ln of the chance that no step uses it: 0.0077."""
    rates = np.geomspace(1e-9, 1e-3, 100)
    [whole] = uppers(
        sampling="poisson", adjacency="add", schedule=Phases(rates, np.ones(100), np.ones(100), "test")
    ).values()
    assert -np.log1p(-rates).sum() < 0.0077
    assert whole.log_delta(1.0).value < -1000.0


@pytest.mark.campaign
def test_means_of_many_kinds_are_between_two_roundings() -> None:
    """The noise of each of 400 steps differs; 10 groups have their most noise, or their mean square of 1/z."""
    noise = np.linspace(2.0, 1.0, 400)
    groups = np.array_split(noise, 10)
    private, about = (
        [(pld.removed(mu=mu(z), rate=0.05), len(z)) for z in groups]
        for mu in (lambda z: 1.0 / float(z.max()), lambda z: float(np.sqrt((z**-2.0).mean())))
    )  # fmt: skip
    least, near = (pld.epsilon(parts, log_delta_target=LOG_DELTA).value for parts in (private, about))
    phases = Phases(np.full(400, 0.05), noise, np.ones(400), "test")
    [whole] = uppers(sampling="poisson", adjacency="remove", schedule=phases).values()
    found = whole.epsilon(LOG_DELTA).value
    assert least < near * (1.0 - 1e-3) < found < near * (1.0 + 2e-3)


def test_mixed_steps_are_those_of_a_mixed_pair() -> None:
    """Of another way: the pair whose curves are the means, composed by itself."""
    two = [pld.removed(mu=1.0, rate=0.1), pld.removed(mu=0.5, rate=0.1)]
    steps = ManyKinds(two, np.array([[0, 1]]), np.array([[0.25, 0.75]]), np.array([50.0]))
    mixed = pld.mixed([(0.25, two[0]), (0.75, two[1])])
    for exchanged in (False, True):
        pair = (steps.exchanged() if exchanged else steps).pair(LOG_DELTA)
        one = pld.exchanged(mixed) if exchanged else mixed
        for epsilon in (0.2, 1.0, 2.0):
            truth = pld.log_delta([(one, 50)], epsilon=epsilon).value
            assert truth - 1e-6 <= float(pair.forward(np.array([epsilon]))[0]) <= truth + 2e-3
