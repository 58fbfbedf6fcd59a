"""Audits: lower bounds that the closed form confirms, whatever the workers, and losses within what was accounted."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from dpcalc.errors import MissingParameter, NotApplicable, SpecError
from dpcalc.model.run import Run, describe
from dpcalc.training.audit import attacks
from dpcalc.training.audit import estimate as audit
from dpcalc.training.audit.attacks import Pair, pairs
from dpcalc.training.audit.estimate import Event, Seen, Setup
from dpcalc.training.rule.guarantee import rounding_of
from dpcalc.training.run import ensemble
from dpcalc.training.run.checks import starting_point
from dpcalc.training.run.plan import plan
from dpcalc.training.run.problem import Problem

PHI = NormalDist().cdf
BASE = {"lipschitz": 0.75, "smoothness": 1.0, "step_size": 0.5, "noise_std": 1.5}
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("pnsgd", {"records": 6, "index": 4}),
    ("pnsgd", {"records": 6, "index": 3, "diameter": 2.0, "adjacency": "null-record"}),
    ("pnsgd", {"records": 6, "strong_convexity": 0.5, "batch_size": 2}),
    ("cyclic", {"records": 5, "epochs": 2, "diameter": 1.0}),
    ("shuffled-epochs", {"records": 5, "epochs": 2, "batch_size": 2, "adjacency": "null-record"}),
    ("noisy-sgd", {"records": 5, "steps": 3, "batch_size": 2}),
    ("noisy-gd", {"records": 5, "steps": 3, "strong_convexity": 0.25}),
    ("noisy-gd", {"records": 5, "steps": 3, "diameter": 1.0}),
]


def pairs_of(algorithm: str, attack: str = "best", **more: Any) -> list[Pair]:
    run = described(algorithm, **more)
    assert run.records
    return pairs(run, plan(run, run.records, 1), attack)


def described(algorithm: str, **more: Any) -> Run:
    return describe(algorithm, {**BASE, **more})


def gaussian(sigma: float = 2.0) -> list[Pair]:
    """The Gaussian mechanism of mu = 2/sigma: one step on one record."""
    return pairs_of("noisy-gd", "linear", records=1, steps=1, lipschitz=1.0, noise_std=sigma)


# --- the data sets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("algorithm", "given"), RUNS)
def test_neighbours_differ_in_one_record_and_their_losses_are_those_described(
    algorithm: str, given: dict[str, Any]
) -> None:
    limits = {**BASE, "strong_convexity": 0.0, **given}
    for pair in pairs_of(algorithm, **given):
        for problem in (pair.first, pair.second):
            starting_point(pair.plan, problem, None)  # which refuses other constants
            if pair.plan.records == given["records"]:
                check_losses(problem, limits)
        same = (pair.first.features == pair.second.features).all(axis=1) & (pair.first.labels == pair.second.labels)
        assert np.count_nonzero(~same) == 1


def check_losses(problem: Problem, limits: dict[str, Any]) -> None:
    """Compare gradients at many points with the class, with no constant that the loss states of itself."""
    points = np.linspace(-20.0, 20.0, 801)
    pulls = []
    for w in points:
        z = problem.features @ np.array([w])
        problem.loss.array_descent()(z, problem.labels)
        pulls.append(-(z[:, np.newaxis] * problem.features)[:, 0])
    gradients = np.array(pulls)
    assert np.abs(gradients).max() <= limits["lipschitz"]
    slopes = np.diff(gradients, axis=0) / np.diff(points)[:, np.newaxis]
    assert slopes.min() >= -1e-12
    assert slopes.max() + limits["strong_convexity"] <= limits["smoothness"] * (1.0 + 1e-9)
    assert problem.loss.regularisation == limits["strong_convexity"]


def test_the_record_pulls_with_all_its_force() -> None:
    for given, others in (({}, [-0.75, 0.75]), ({"adjacency": "null-record"}, [0.0, 0.75])):
        for pair in pairs_of("pnsgd", records=4, index=2, diameter=3.0, **given):
            pulls = [
                float(p.features[1, 0] * p.loss.scalar_descent()(0.0, p.labels[1])) for p in (pair.second, pair.first)
            ]
            assert pulls == pytest.approx(others, rel=1e-8)


def test_the_wall_holds_what_is_pushed_to_it() -> None:
    before = [
        p for p in pairs_of("pnsgd", "wall", records=9, index=9, diameter=2.0, noise_std=0.01) if "before" in p.others
    ]
    [pair] = before
    ends = ensemble.train(pair.plan, pair.first, 200, 1)
    assert ends.min() > 0.9
    assert ends.max() <= 1.0


@pytest.mark.parametrize("weight", [0.0, 0.25])
def test_without_the_records_that_rest_the_runs_are_the_same(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"records": 7, "steps": 4, "strong_convexity": weight}
    [lean] = pairs_of("noisy-gd", "linear", **given)
    monkeypatch.setattr(attacks, "lean", lambda pair, place: pair)
    [full] = pairs_of("noisy-gd", "linear", **given)
    assert (lean.plan.records, full.plan.records) == (1, 7)
    for one, all in ((lean.first, full.first), (lean.second, full.second)):
        ends = [ensemble.train(p.plan, data, 300, 5) for p, data in ((lean, one), (full, all))]
        np.testing.assert_allclose(*ends, rtol=1e-13, atol=1e-15)


# --- the numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.5, 1.0, 3.0])
def test_most_of_the_mu_of_a_gaussian_is_found(mu: float) -> None:
    found = audit.audit(gaussian(2.0 / mu), 1e-3, Setup(100_000))
    assert 0.8 * mu <= found.mu <= mu
    assert found.epsilon is not None
    exact = bisected(lambda eps: PHI(mu / 2 - eps / mu) - math.exp(eps) * PHI(-mu / 2 - eps / mu) - 1e-3)
    assert 0.5 * exact <= found.epsilon <= exact


def bisected(falling: Any) -> float:
    low, high = 0.0, 60.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return low


@pytest.mark.parametrize("adjacency", ["replace-one", "null-record"])
def test_all_public_iterates_are_looked_at_by_their_likelihood(adjacency: str) -> None:
    """Of one step on a batch of two of four records, all laws are mixtures of two Gaussians."""
    found = pairs_of("noisy-sgd-released", "linear", records=4, steps=1, batch_size=2, adjacency=adjacency)
    eta, sigma, absent = 0.5, 1.5, 0.0 if adjacency == "null-record" else -1.0
    pulls = {"the others rest": 0.0, "the others pull down": -1.0, "the others pull up": 1.0}
    looked = [pair for pair in found if pair.steps is not None]
    assert len(looked) == (3 if adjacency == "null-record" else 2)
    for pair in looked:
        pull = pulls[pair.others]

        def density(x: Any, label: float, pull: float = pull) -> Any:
            means = [0.75 * eta * others / 2.0 for others in (2.0 * pull, pull + label)]
            return sum(0.5 * np.exp(-((x - mean) ** 2) / (2.0 * (eta * sigma) ** 2)) for mean in means)

        x = np.linspace(-12.0, 12.0, 20001)
        first, second = density(x, 1.0), density(x, absent)
        assert isinstance(pair.steps, attacks.Steps)
        trace = attacks.Increments(pair.plan, pair.steps)
        trace.see(0, x[np.newaxis])
        np.testing.assert_allclose(trace.result(), np.log(first / second), rtol=0.0, atol=1e-12)
        result = audit.audit([pair], 0.05, Setup(20_000))
        for each in result.seen:
            in_event = each.event.holds(trace.result())
            laws = [law[in_event].sum() / law.sum() for law in (first, second)]
            true, false = laws if each.event.upwards else laws[::-1]
            assert 0.8 * true - 0.005 < each.tpr <= true  # the event may be rare
            assert false <= each.fpr < 1.3 * false + 0.01


def test_steps_add_up_where_the_iterates_are_public() -> None:
    """With a regulariser the last iterate forgets, and all of them do not: mu is that of the composition."""
    found = audit.audit(
        pairs_of("noisy-gd-released", "linear", records=2, steps=9, strong_convexity=1.0), 0.05, Setup(50_000)
    )
    exact = 2.0 * 0.75 / (2.0 * 1.5) * 3.0
    assert found.pair.steps is not None
    assert 0.85 * exact < found.mu <= exact


def test_the_bounds_on_events_hold_for_the_law_of_a_pass() -> None:
    """The end of a pass over linear losses is Gaussian: its mean and variance are sums."""
    [pair] = pairs_of("pnsgd", "linear", records=9, index=4)
    for seed in range(10):
        found = audit.audit([pair], 0.05, Setup(5000, seed))
        for each in found.seen:
            up, down = (1.0 - PHI((each.event.threshold - m) / (0.5 * 1.5 * 3.0)) for m in (0.375, -0.375))
            true, false = (up, down) if each.event.upwards else (1.0 - down, 1.0 - up)
            assert each.tpr <= true
            assert each.fpr >= false
            assert each.tpr > 0.8 * true - 0.01  # the event may be rare


def test_confidence_is_kept() -> None:
    """Of many audits of an exact guarantee no more fail than the confidence allows: with 0.5, far less than half."""
    pair = gaussian()
    failures = sum(audit.audit(pair, None, Setup(1000, seed, confidence=0.5)).mu > 1.0 for seed in range(40))
    assert failures <= 20
    assert all(audit.audit(pair, None, Setup(1000, seed)).mu <= 1.0 for seed in range(40))


@pytest.mark.parametrize("algorithm", ["shuffled", "noisy-sgd"])
def test_workers_change_nothing(algorithm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 256)  # many blocks
    more = {"steps": 4} if algorithm == "noisy-sgd" else {}
    found = [
        audit.to_json(audit.audit(pairs_of(algorithm, records=5, **more), 0.1, Setup(2500, 3, workers)), 1.0, None)
        for workers in (1, 2, 7)
    ]
    assert found[0] == found[1] == found[2]
    other = audit.to_json(audit.audit(pairs_of(algorithm, records=5, **more), 0.1, Setup(2500, 4)), 1.0, None)
    assert other["events"] != found[0]["events"]


def test_pilot_runs_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    train = ensemble.train

    def spied(plan: Any, problem: Any, replicas: int, seed: int, **more: Any) -> Any:
        asked.append((replicas, seed))
        return train(plan, problem, replicas, seed, **more)

    monkeypatch.setattr(ensemble, "train", spied)
    found = audit.audit(gaussian(), 0.1, Setup(10_000))
    assert [replicas for replicas, _ in asked] == [1000, 1000, 9000, 9000]
    assert len({seed for _, seed in asked}) == 4
    assert all(each.true + each.false <= 18_000 for each in found.seen)


def test_what_follows_from_counts() -> None:
    seen = Seen(Event(True, 0.0), 50, 5, 0.4, 0.1)
    assert seen.epsilon(0.2) == pytest.approx(math.log(2.0), rel=1e-12)
    assert seen.epsilon(0.2) <= math.log(2.0)
    assert seen.epsilon(0.35) == 0.0
    assert seen.mu() == pytest.approx(NormalDist().inv_cdf(0.4) - NormalDist().inv_cdf(0.1), rel=1e-9)
    assert Seen(Event(True, 0.0), 5, 50, 0.1, 0.4).mu() == 0.0
    assert Seen(Event(True, 0.0), 5, 50, 0.5, 1.0).epsilon(0.0) == 0.0
    scores = np.array([-1.0, 0.0, 1.0])
    assert Event(True, 0.0).holds(scores).tolist() == [False, True, True]
    assert Event(False, 0.0).holds(scores).tolist() == [True, False, False]


def test_runs_that_tell_nothing_prove_nothing() -> None:
    [pair] = gaussian()
    found = audit.audit([pair._replace(second=pair.first)], 1e-3, Setup(2000))
    assert found.epsilon == 0.0
    assert found.mu == 0.0


def test_the_first_data_set_of_ones_own_stays_the_first() -> None:
    """Its models may have the smaller weights: then the score falls as they grow, and events say what they say."""
    [pair] = gaussian()
    for first, second in ((pair.first, pair.second), (pair.second, pair.first)):
        found = audit.audit([pair._replace(attack="custom", first=first, second=second)], 0.1, Setup(3000))
        assert found.pair.first is first
        assert 0.5 < found.mu < 1.0
        assert found.pair.direction is not None
        assert (found.pair.direction[0] > 0.0) == (first is pair.first)


def test_progress_counts_every_step() -> None:
    calls: list[tuple[int, int]] = []
    audit.audit(pairs_of("noisy-gd", records=2, steps=3), 0.1, Setup(2000), lambda *call: calls.append(call))
    done = [each for each, _ in calls]
    assert done == sorted(done)
    assert calls[-1][0] == calls[-1][1]


# --- runs as they are released ----------------------------------------------------------------------------------------


def test_low_order_bits_tell_a_record_unless_they_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LEAST", 200)
    [pair] = pairs_of("noisy-gd", "low-bits", records=3, steps=1, lipschitz=0.9, noise_std=0.3)
    sums = rounding_of("noisy_gd.composition", pair.plan, pair.first.loss)
    plain, rounded = (
        audit.audit([pair._replace(one_by_one=True, rounding=each)], 0.1, Setup(300)) for each in (None, sums)
    )
    mu = 0.9 / 3.0 / 0.3
    exact = bisected(lambda eps: PHI(mu / 2 - eps / mu) - math.exp(eps) * PHI(-mu / 2 - eps / mu) - 0.1)
    assert plain.epsilon is not None
    assert plain.epsilon > exact
    assert rounded.epsilon == 0.0
    assert all(each.true == each.false for each in rounded.seen)
    with pytest.raises(NotApplicable, match="one step"):
        pairs_of("noisy-gd", "low-bits", records=2, steps=2)


def test_runs_as_they_are_released_have_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LEAST", 200)
    [pair] = gaussian(0.5)
    sums = rounding_of("noisy_gd.composition", pair.plan, pair.first.loss)
    calls: list[tuple[int, int]] = []
    found = audit.audit(
        [pair._replace(one_by_one=True, rounding=sums)], 0.05, Setup(400), lambda *call: calls.append(call)
    )
    assert 2.0 < found.mu <= 4.0
    assert calls[-1] == (800, 800)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_refusals() -> None:
    with pytest.raises(NotApplicable, match="not projected"):
        pairs_of("pnsgd", "wall", records=3)
    with pytest.raises(NotApplicable, match="no curvature"):
        pairs_of("pnsgd", "reset", records=3, smoothness=0.0)
    with pytest.raises(NotApplicable, match="group"):
        pairs_of("pnsgd", records=3, group_size=2)
    with pytest.raises(NotApplicable, match="displacement"):
        pairs_of("pnsgd", records=3, diameter=1.0, displacement=0.5)
    run = describe("pnsgd", {"records": 3, "step_size": 1.0, "noise_std": 1.0})
    with pytest.raises(MissingParameter, match="Lipschitz"):
        pairs(run, plan(run, 3, 1))


@pytest.mark.parametrize(
    "wrong", [{"replicas": 10}, {"confidence": 1.0}, {"confidence": math.nan}, {"workers": 0}, {"seed": -1}]
)
def test_setups_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(SpecError):
        audit.check_setup(Setup()._replace(**wrong))
