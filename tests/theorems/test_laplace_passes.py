"""Several passes with Laplace noise and hidden iterates: brute-force runs, linear losses, and limits."""

import math
from dataclasses import replace
from typing import Any

import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.quantities import Noise
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.theorems.many_passes import laplace_passes
from dpcalc.theorems.record import lookup
from tests.oracles import draws
from tests.oracles.chains import constant, hockey_stick, laplace_linear_delta, random_case
from tests.theorems.test_expanding import SPLITS, law_of, told_of

BOUNDS = {
    "cyclic": "multi_epoch.laplace",
    "shuffle-once": "shuffled_epochs.once_laplace",
    "rotation-epochs": "shuffled_epochs.once_laplace",
    "noisy-gd": "noisy_gd.laplace",
}


def brute_force(algorithm: str, number: int) -> float:
    """Compare random small runs with the bound; return the largest truth over bound."""
    bound, worst = lookup(BOUNDS[algorithm]), 0.0
    for r in draws(f"laplace passes {algorithm}", number, 300):
        case = random_case(r, "laplace", "convex-smooth", records=r.randint(1, 3))
        adjacency = "replace-one"
        if r.random() < 0.3:
            case, adjacency = replace(case, x_prime=constant(0.0, case.low, case.high)), "null-record"
        size = case.records if algorithm == "noisy-gd" else r.randint(1, case.records)
        last = "own" if algorithm in ("cyclic", "noisy-gd") else r.choice(SPLITS)
        count = r.choice((1, 2, 3, 5))
        coarse, fine = (
            tuple(
                law_of(algorithm, case, case.cells(cells), record, size, last, count)
                for record in (case.x, case.x_prime)
            )
            for cells in (60, 120)
        )  # rounded maps are no contractions: the errors of both chains are of second order
        told = told_of(algorithm, case, size, last, count, adjacency)
        run = describe(algorithm, told)
        if (obstacle := bound.obstacle(run)) is not None:
            assert "2/smoothness" in str(obstacle)  # as decimals the two multiply to more than 2
            continue
        found = guarantee_of(bound, run)
        for epsilon in case.epsilons:
            rough, truth = (hockey_stick(p, q, epsilon, 1e-9) for p, q in (coarse, fine))
            truth -= abs(truth - rough)
            said = math.exp(found.log_delta(epsilon).value)
            assert truth <= said * (1 + 1e-8) + 1e-13, f"{told!r} at {epsilon!r}"
            if truth > 1e-6:
                worst = max(worst, truth / said)
    return worst


@pytest.mark.few(2)
@pytest.mark.parametrize("algorithm", BOUNDS)
def test_few_runs_are_no_less_private(algorithm: str) -> None:
    assert brute_force(algorithm, 3) > 0.0


@pytest.mark.campaign
@pytest.mark.parametrize("algorithm", BOUNDS)
def test_no_run_is_less_private(algorithm: str) -> None:
    assert brute_force(algorithm, 60) > 0.5


# --- linear losses and limits -----------------------------------------------------------------------------------------


LONGER = ((3, 2, 0.5), (10, 3, 0.2))


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("batches", "epochs", "ratio"),
    [(1, 1, 0.7), (4, 1, 2.0), (2, 5, 1.5), *(pytest.param(*run, marks=pytest.mark.campaign) for run in LONGER)],
)
@pytest.mark.parametrize("index", [1, -1])
def test_linear_losses_are_no_less_private(batches: int, epochs: int, ratio: float, index: int) -> None:
    """Without a projection linear losses leave a sum of Laplace variables, of which the tails are known."""
    told: dict[str, Any] = {
        "records": batches, "batch_size": 1, "index": 1 if index == 1 else batches, "epochs": epochs,
        "lipschitz": ratio,
        "smoothness": 0.0, "step_size": 1.0, "laplace_scale": 2.0,
    }  # fmt: skip
    found = guarantee_of(lookup("multi_epoch.laplace"), describe("cyclic", told))
    shuffled = {name: value for name, value in told.items() if name != "index"}
    once = guarantee_of(lookup("shuffled_epochs.once_laplace"), describe("shuffle-once", shuffled))
    behind = batches if index == 1 else 1
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        steps = behind if epochs == 1 else batches * epochs  # of one pass only those behind the record add to its noise
        truth = laplace_linear_delta(steps, epochs * ratio, epsilon)
        said = math.exp(found.log_delta(epsilon).value)
        assert truth <= said * (1 + 1e-9) + 1e-14
        assert laplace_linear_delta(batches * epochs, epochs * ratio, epsilon) <= math.exp(
            once.log_delta(epsilon).value
        )
        if epochs == 1 and truth > 1e-6:
            assert truth >= 0.3 * said


def test_pure_privacy_of_contractions_is_attained() -> None:
    """Quadratics leave a weighted sum of Laplace variables: its largest loss is the whole shift over the last scale."""
    run = laplace_passes.LaplaceDescent(
        records=4, steps=20, sensitivity=2.0, noise=Noise.LAPLACE, scale=0.5, step_size=0.25, smoothness=1.0,
        strong_convexity=1.0,
    )  # fmt: skip
    whole = 1.0 * (1 - 0.75**20) / 0.25
    assert laplace_passes.descent(run).epsilon(-math.inf).value == pytest.approx(whole, rel=1e-9)
    assert laplace_passes.descent(run).profile(whole * (1 - 1e-9)) > -math.inf


def test_a_domain_bounds_pure_privacy() -> None:
    run = laplace_passes.LaplaceDescent(
        records=4, steps=10**12, sensitivity=2.0, noise=Noise.LAPLACE, scale=0.5, step_size=0.25, smoothness=1.0,
        diameter=0.5,
    )  # fmt: skip
    # the diameter, 4 in units of the noise, and one use
    assert laplace_passes.descent(run).epsilon(-math.inf).value == pytest.approx(5.0, rel=1e-9)


def test_shares_can_be_spent() -> None:
    """Equal shares of the last h steps leave nothing and are never more than what has come."""
    run = laplace_passes.LaplaceDescent(
        records=1, steps=37, sensitivity=0.3, noise=Noise.LAPLACE, scale=1.0, step_size=1.0, smoothness=0.2,
        strong_convexity=0.2, diameter=4.0,
    )  # fmt: skip
    bare = run.changed(diameter=math.inf)
    for last in (1, 2, 5, 36, 37):
        for share, z in ((laplace_passes._whole(bare, last), None), (laplace_passes._from_diameter(run, last), 4.0)):
            z = 0.3 * (1 - 0.8 ** (37 - last)) / 0.2 if z is None else z
            for _ in range(last):
                z = 0.8 * z + 0.3 - share
                assert z > -1e-12
            assert z == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("epochs", "log_delta"), [(1, -60.0), (5, -100.0), (200, -300.0)])
def test_far_out_many_steps_are_nearly_gaussian(epochs: int, log_delta: float) -> None:
    """A use of 2 that a million steps hide: noise of variance 2 a step. The table once ended at ln delta = -50."""
    told = {"records": 10**6, "batch_size": 1, "index": 1, "epochs": epochs, "lipschitz": 2.0, "smoothness": 0.0,
            "step_size": 1.0, "laplace_scale": 1.0, "adjacency": "null-record"}  # fmt: skip
    found = guarantee_of(lookup("multi_epoch.laplace"), describe("cyclic", told)).epsilon(log_delta).value
    near = gaussian.epsilon(mu=math.sqrt(2e-6 * epochs), log_delta_target=log_delta)
    assert found == pytest.approx(near, rel=5e-3)


def test_far_out_in_a_random_order_the_last_place_counts_once() -> None:
    """The last step is seen with its own noise, with probability 1/n: from a loss of 2 on the earlier uses decide."""
    told = {"records": 10**6, "batch_size": 1, "epochs": 5, "lipschitz": 2.0, "smoothness": 0.0, "step_size": 1.0,
            "laplace_scale": 1.0, "adjacency": "null-record"}  # fmt: skip
    found = guarantee_of(lookup("shuffled_epochs.once_laplace"), describe("shuffle-once", told)).epsilon(-300.0).value
    assert 2.0 < found < 2.0 + gaussian.epsilon(mu=math.sqrt(8e-6), log_delta_target=-300.0)
