"""Poisson and fixed batches with hidden iterates: brute force over all batches, and what large batches do."""

import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.run import describe
from dpcalc.theorems.record import lookup
from dpcalc.theorems.sampled.sampled_hidden import HiddenRun
from tests.oracles import draws, log_uniform
from tests.oracles import sampled as oracle
from tests.oracles.chains import Array, Case, Gradient, Grid, constant, hockey_stick, random_case

PAIRS = {
    "replace-one": [("x", "x'"), ("x'", "x")], "zero-out": [("x", "null"), ("null", "x")],
    "add-remove": [("x", ""), ("", "x")], "remove": [("x", "")], "add": [("", "x")],
}  # fmt: skip
"""The records that end the two data sets, of which the first is compared with the second."""


def small_case(r: random.Random) -> Case:
    """Convex smooth losses; one time in three on an interval so wide that it hardly matters."""
    case = random_case(r, "gaussian", "convex-smooth", records=r.choice((2, 2, 3, 3, 4, 5)))
    if r.random() < 0.6:  # a fifth to six standard deviations, which is where hiding helps
        case = replace(case, scale=case.scale * r.choice((1, 1, 3, 10)))
    if r.random() < 0.3:
        case = wide(r, case)
    kind = r.random()
    if kind < 0.25:
        case = replace(case, others=tuple(r.choice((case.x, case.x_prime)) for _ in case.others))
    elif kind < 0.5:
        case = replace(case, others=(case.x_prime,) * (case.records - 1))
    return case


def wide(r: random.Random, case: Case) -> Case:
    """Two walls or linear losses on an interval of up to thirty standard deviations."""
    width = case.step_size * case.scale * r.uniform(8.0, 30.0)
    low, high = -width / 2, width / 2
    level = case.lipschitz
    tilt = min(case.strong_convexity * width / 2, level)

    def record() -> Gradient:
        room = (level - tilt) * r.choice((1.0, -1.0, 1.0, -1.0, r.uniform(-1, 1)))
        return Gradient("linear", (low, high), (room - tilt, room + tilt), level)

    return replace(
        case, low=low, high=high, diameter=width, start=r.uniform(low, high) / 4, strong_convexity=2 * tilt / width,
        x=record(), x_prime=record(), others=tuple(record() for _ in case.others),
    )  # fmt: skip


def null(case: Case) -> Gradient:
    return constant(0.0, case.low, case.high)


def guarantees(**told: Any) -> dict[str, Any]:
    run = describe("dp-sgd", {"model": "linear", "release": "last", **told})
    ids = ("sampled.hidden", f"sampled.{told['sampling']}")
    assert lookup(ids[0]).obstacle(run) is None
    return {id: guarantee_of(lookup(id), run) for id in ids}


def told_of(case: Case, size: int, steps: int, weight: float, **more: Any) -> dict[str, Any]:
    return {
        "records": len(case.others) + 1, "batch_size": size, "steps": steps, "clip": case.lipschitz,
        "noise_std": case.scale, "step_size": case.step_size, "smoothness": case.smoothness + weight,
        "diameter": case.diameter, **({"regularisation": weight} if weight else {}), **more,
    }  # fmt: skip


def contracting(r: random.Random, case: Case, size: int) -> Case:
    """The case with steps so short that a batch of all records contracts, two times in three by far."""
    assert case.smoothness is not None
    longest = 2.0 * size / (len(case.others) + 1) / max(case.smoothness, 1e-9)
    return replace(case, step_size=min(case.step_size, longest * r.choice((0.9, 0.3, 0.1))))


def contracting_case(r: random.Random) -> tuple[Case, int]:
    """A case of up to four records and the size of its batches, on an interval of up to sixty standard deviations."""
    while True:
        case = small_case(r)
        if len(case.others) > 3:
            case = replace(case, records=4, others=case.others[:3])
        size = r.randint(1, len(case.others))
        case = contracting(r, case, size)
        if case.diameter <= 60.0 * case.step_size * case.scale:  # a wider one shows no more and takes minutes
            return case, size


def laws_of(
    case: Case, grid: Grid, sampling: str, ends: tuple[str, str], run: tuple[int, int, float]
) -> dict[str, Array]:
    """The law of the last iterate with either end; the others are the same records."""
    size, steps, weight = run
    end = {"x": case.x, "x'": case.x_prime, "null": null(case)}
    names = [name for name in ends if name]
    n, sets = len(case.others) + 1, []
    for name in ends:
        records = [*range(n - 1), *([n - 1 + names.index(name)] if name else [])]
        sets.append(oracle.poisson(records, size / n) if sampling == "poisson" else oracle.uniform(records, size))
    pool = [*case.others, *(end[name] for name in names)]
    return dict(zip(ends, oracle.mixed(case, grid, pool, sets, size, steps, weight), strict=True))


def is_not_less_private(r: random.Random, sampling: str, adjacency: str) -> bool:
    """Compare a small run with its law, for every batch that may be drawn; return whether hiding helped."""
    case, size = contracting_case(r)
    n = len(case.others) + 1
    steps, weight = r.choice((2, 3, 6, 20, 60)), r.choice((0.0, 0.0, 0.2 / case.step_size))
    assert case.smoothness is not None
    if case.step_size * (case.smoothness * n / size + 2.0 * weight) > 2.0:
        weight = 0.0
    told = told_of(case, size, steps, weight, sampling=sampling, adjacency=adjacency)
    found, grid = guarantees(**told), case.nodes(300)
    epsilon = r.choice(case.epsilons)
    bounds = {id: math.exp(guarantee.log_delta(epsilon).value) for id, guarantee in found.items()}
    laws = laws_of(case, grid, sampling, PAIRS[adjacency][0], (size, steps, weight))
    for first, second in PAIRS[adjacency]:
        truth = hockey_stick(laws[first], laws[second], epsilon, 1e-9)
        for id, bound in bounds.items():
            assert truth <= bound * (1.0 + 1e-8), (id, told, repr(case), epsilon, truth)
    return len(found["sampled.hidden"].parts) > 1


@pytest.mark.campaign
@pytest.mark.parametrize("adjacency", PAIRS)
@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
def test_no_run_is_less_private(sampling: str, adjacency: str) -> None:
    for r in draws(f"hidden {sampling} {adjacency}", 3, 1500):
        is_not_less_private(r, sampling, adjacency)


def test_some_runs_are_not_less_private() -> None:
    assert [is_not_less_private(r, "poisson", "add-remove") for r in draws("some hidden poisson", 1, 2000)]


def test_hiding_helps_and_gives_what_steps_on_fixed_batches_have_elsewhere() -> None:
    told = {
        "records": 60, "batch_size": 6, "steps": 1000, "clip": 0.5, "noise_std": 0.3, "step_size": 1.0,
        "smoothness": 1.0, "diameter": 0.3, "adjacency": "replace-one",
    }  # fmt: skip
    found = guarantees(**told, sampling="fixed")
    del told["clip"]
    run = describe("noisy-sgd", {**told, "lipschitz": 0.5})
    same = guarantee_of(lookup("noisy_sgd.hidden"), run)
    for epsilon in (3.0,):
        hidden, every = (found[id].log_delta(epsilon).value for id in ("sampled.hidden", "sampled.fixed"))
        assert hidden == pytest.approx(same.log_delta(epsilon).value, rel=1e-9)
        assert hidden < every - 0.1


# --- batches that are too large to contract ---------------------------------------------------------------------------


def run_of(**more: Any) -> HiddenRun:
    values = {
        "sampling": "poisson", "adjacency": "remove", "records": 1000, "batch_size": 20, "sample_rate": 0.02,
        "steps": 50, "noise_multiplier": 1.0, "step_size": 1.0, "smoothness": 1.0,
    }  # fmt: skip
    return HiddenRun(**{**values, **more})


def test_so_many_records_contract_and_one_more_need_not() -> None:
    """For the steepest losses of a linear model, all alike: the sum of a batch of k has curvature k beta/b."""
    for r in draws("largest batches that contract", 300):
        eta, beta, b = log_uniform(r, 1e-3, 1e3), log_uniform(r, 1e-3, 1e3), r.randint(1, 500)
        weight = r.choice((0.0, r.random() * min(beta, 1.0 / eta)))
        if Fraction(repr(eta)) * Fraction(repr(beta)) > 2:
            continue
        most = run_of(step_size=eta, smoothness=beta, regularisation=weight, batch_size=b).most_contracting
        exact = [Fraction(repr(x)) for x in (eta, beta, weight)]
        for k, contracts in ((most, True), (most + 1, False)):
            curved = 1 - exact[0] * (exact[2] + k * exact[1] / b)
            assert (abs(curved) <= 1 - exact[0] * exact[2]) == contracts


def test_the_chance_of_a_batch_too_large_is_counted() -> None:
    with mpmath.workdps(40):
        for eta, b in ((1.0, 20), (0.5, 20), (1.6, 100), (1.0, 1), (0.05, 20)):
            run = run_of(step_size=eta, batch_size=b, sample_rate=b / 1000)
            most, q = run.most_contracting, mpmath.mpf(b) / 1000
            true = mpmath.fsum(
                mpmath.binomial(999, k) * q**k * (1 - q) ** (999 - k) for k in range(min(most, 1000), 1000)
            )
            exact = mpmath.log(-mpmath.expm1(50 * mpmath.log1p(-true)))
            assert 0.0 <= run.too_large.log_chance(50) - exact <= 1e-12 * (1.0 - exact)
    assert run_of(step_size=0.04).too_large.log_chance(50) == -math.inf  # all the records together contract
    assert run_of(sampling="fixed").too_large.log_chance(50) == -math.inf
    assert run_of(step_size=2.0).too_large.log_chance(50) == 0.0


def test_delta_is_never_below_the_chance_of_a_batch_too_large() -> None:
    told = {
        "records": 1000, "batch_size": 50, "steps": 3000, "clip": 1.0, "noise_multiplier": 3.0, "step_size": 1.0,
        "smoothness": 1.0, "diameter": 0.05, "adjacency": "remove", "sampling": "poisson",
    }  # fmt: skip
    found = guarantees(**told)["sampled.hidden"]
    assert len(found.parts) > 1
    steps = found.certificate(1.0).values["composed"]  # from the domain, no others have to contract
    log_chance = HiddenRun.of(describe("dp-sgd", {**told, "model": "linear"})).too_large.log_chance(steps)
    assert -20.0 < log_chance < -1.0
    assert found.log_delta(50.0).value >= log_chance - 1e-9
    assert found.log_delta(50.0).value <= log_chance + 0.1
    assert found.epsilon(log_chance - 0.1).value == math.inf
    enough = found.epsilon(log_chance + 1.0).value
    assert found.log_delta(enough).value == pytest.approx(log_chance + 1.0, abs=1e-2)
    assert found.excess(1.1 * enough, log_chance + 1.0) < 0.0 < found.excess(0.9 * enough, log_chance + 1.0)
    assert found.excess(1e6, log_chance - 0.1) > 0.0
    shorter = guarantees(**{**told, "step_size": 0.5, "diameter": 0.025})["sampled.hidden"]
    assert shorter.log_delta(50.0).value < -40.0


@pytest.mark.parametrize(
    ("changes", "cure"),
    [
        ({"release": None}, "--release last"), ({"model": None}, "--model linear"),
        ({"step_size": None}, "--step-size"),
        ({"sampling": "full"}, "hidden_full"), ({"sampling": "shuffle"}, "hidden_shuffle"),
        ({"step_size": 2.5}, "--step-size <= 2"), ({"smoothness": None}, "--smoothness"), ({"steps": None}, "--steps"),
    ],
)  # fmt: skip
def test_what_is_missing_is_said(changes: dict[str, Any], cure: str) -> None:
    told = {
        "records": 100, "batch_size": 10, "steps": 5, "noise_multiplier": 1.0, "step_size": 1.0, "smoothness": 1.0,
        "sampling": "poisson", "model": "linear", "release": "last",
    }  # fmt: skip
    if changes.get("sampling") == "full":
        del told["batch_size"]
    obstacle = lookup("sampled.hidden").obstacle(describe("dp-sgd", {**told, **changes}))
    assert obstacle is not None
    assert cure in obstacle.cure
