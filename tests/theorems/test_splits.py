"""Batches of unequal size: who is where, what a pass in each split hides, and what cannot be hidden."""

import itertools
import math
from typing import Any

import mpmath
import pytest

from dpcalc.engine.answer import answer
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import LastBatch
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.notions.guarantee import Gdp
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.lower import curved_orders
from dpcalc.theorems.record import lookup
from dpcalc.theorems.setting import Setting
from tests.oracles import draws, log_uniform, whole
from tests.oracles.sampled import cut

SPLITS = tuple(LastBatch)
RUN = {"lipschitz": 1.0, "noise_std": 0.05, "smoothness": 1.0, "step_size": 0.1, "batch_size": 256}


@pytest.mark.parametrize("split", SPLITS)
def test_every_record_is_where_the_batches_put_it(split: LastBatch) -> None:
    for n, b in itertools.product(range(1, 14), range(1, 16)):
        plan, batches = layout(n, b, split), cut(range(1, n + 1), b, split)
        assert plan.steps == len(batches)
        assert plan.dropped == n - sum(len(batch) for batch, _ in batches)
        expanded = [(alike.size, alike.divisor) for alike in plan.positions for _ in range(alike.steps)]
        assert expanded == [(len(batch), divisor) for batch, divisor in reversed(batches)]
        assert [alike.first for alike in plan.positions] == [
            1 + sum(a.steps for a in plan.positions[:j]) for j in range(len(plan.positions))
        ]
        for tail, (batch, divisor) in enumerate(reversed(batches), start=1):
            assert all(plan.place(index) == (divisor, tail) for index in batch)
        assert set(plan.latest()) <= {batch[-1] for batch, _ in batches}
        for index in range(n - plan.dropped + 1, n + 1):
            with pytest.raises(NotApplicable, match="dropped"):
                plan.place(index)


def test_balanced_batches_differ_by_one_and_grow() -> None:
    for n, b in itertools.product(range(1, 60), range(1, 30)):
        sizes = [len(batch) for batch, _ in cut(range(n), b, "balanced")]
        assert (sum(sizes), len(sizes)) == (n, math.ceil(n / b))
        assert sizes == sorted(sizes)
        assert sizes[-1] <= min(b, sizes[0] + 1)


def test_all_splits_are_one_where_the_batch_size_divides() -> None:
    for n, b in ((1, 1), (6, 1), (6, 2), (6, 6), (512, 256)):
        assert len({layout(n, b, split) for split in SPLITS}) == 1


def test_what_was_proved_for_a_short_last_batch_is_not_told_of_another_split() -> None:
    for split in (LastBatch.BALANCED, LastBatch.FRONT):
        plan = layout(10, 4, split)
        for name in ("full", "held", "after", "short", "divisor", "heavy"):
            with pytest.raises(NotApplicable, match="own, nominal or drop"):
                getattr(plan, name)
    assert layout(6, 4, LastBatch.BALANCED).size == 3  # two batches of three


# --- passes in one order ----------------------------------------------------------------------------------------------


def epsilon_of(algorithm: str, **given: Any) -> float:
    case = answer(describe(algorithm, {**RUN, **given}), Question(delta=1e-6, log_delta=math.log(1e-6)))
    assert case.best is not None
    return case.best.value


@pytest.mark.parametrize("split", SPLITS)
def test_the_record_that_is_worst_off_is_covered(split: LastBatch) -> None:
    """Where no record is named, the answer is that of whichever has the largest: tried one by one."""
    told = {"noise_std": 2.0, "last_batch": split}
    for r in draws(f"worst record {split}", 12, 40):
        n, b, epochs = whole(r, 2, 9), whole(r, 1, 6), r.choice((1, 2, 30))
        algorithm = r.choice(("cyclic", "cyclic-released", "pnsgd"))
        run = {**told, "records": n, "batch_size": b, **({} if algorithm == "pnsgd" else {"epochs": epochs})}
        if r.random() < 0.5 and split is not LastBatch.NOMINAL:
            run["strong_convexity"] = r.choice((0.5, 1.0))
        used = n - layout(n, b, split).dropped
        each = [epsilon_of(algorithm, **run, index=index) for index in range(1, used + 1)]
        assert epsilon_of(algorithm, **run) == max(each)


def test_an_earlier_smaller_batch_may_be_the_worse() -> None:
    """One record in front, alone, against the last of a batch of three."""
    run = {"records": 4, "batch_size": 3, "last_batch": "front", "noise_std": 2.0, "epochs": 3}
    assert epsilon_of("cyclic", **run) == epsilon_of("cyclic", **run, index=1)
    assert epsilon_of("cyclic", **run) > epsilon_of("cyclic", **run, index=4)


@pytest.mark.parametrize("split", ["nominal", "drop", "balanced"])
def test_fixed_orders_are_continuous_in_the_records(split: str) -> None:
    """One record more changes little: at most what one step more changes, to which all batches give their share."""
    for epochs, size in itertools.product((1, 20), (1, 8, 64)):
        first = 15 * size
        found = [
            mu_of(records=n, epochs=epochs, batch_size=size, last_batch=split) for n in range(first, first + 5 * size)
        ]
        assert all(abs(b - a) <= a / 14 for a, b in itertools.pairwise(found))


def mu_of(**given: Any) -> float:
    guarantee = guarantee_of(lookup("multi_epoch.cyclic"), describe("cyclic", {**RUN, **given}))
    assert isinstance(guarantee, Gdp)
    return guarantee.mu


# --- one pass in a published order ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("split", "epsilon"),
    [("own", 1.15156), ("balanced", 0.41563), ("front", 0.41563), ("nominal", 0.36795), ("drop", 0.41563)],
)
def test_one_shuffled_pass_over_60000_records(split: str, epsilon: float) -> None:
    assert epsilon_of("rotation", records=60000, last_batch=split) == pytest.approx(epsilon, rel=2e-5)


# --- what cannot be hidden --------------------------------------------------------------------------------------------


def is_lower_epsilon(theorem: Any, setting: Any, epsilon: float, **given: Any) -> bool:
    """Whether the bound rules out what is 0.2 % below an epsilon at delta = 1e-6, and not what is 0.2 % above it."""
    run = {"batch_size": 256, "sensitivity": 2.0, "noise_std": 0.05, "smoothness": 1.0, "strong_convexity": 0.0}
    profile = theorem(setting(**{**run, **given})).profile
    return bool(profile(0.998 * epsilon) > math.log(1e-6) > profile(1.002 * epsilon))


SECRET, PUBLIC = curved_orders.shuffled_curved_secret, curved_orders.shuffled_curved


@pytest.mark.parametrize(
    ("theorem", "records", "size", "split", "step_size", "epsilon"),
    [
        (SECRET, 59905, 256, "own", 1.0, 850.24), (SECRET, 59912, 256, "own", 1.0, 14.93),
        (SECRET, 59920, 256, "own", 1.0, 1.247), (SECRET, 1000, 32, "own", 1.0, 25.2356),
        (SECRET, 1000, 32, "balanced", 1.0, 2.033), (SECRET, 1000, 32, "nominal", 1.0, 0.92858),
        (SECRET, 60000, 256, "balanced", 1e-9, 0.0345), (PUBLIC, 59905, 256, "own", 1.0, 861.24),
        (PUBLIC, 60000, 256, "own", 1.0, 1.15155855667957), (PUBLIC, 60000, 256, "balanced", 1.0, 0.41504),
        (PUBLIC, 60000, 256, "nominal", 1.0, 0.30064), (PUBLIC, 60000, 256, "nominal", 1.6, 0.3194),
        (PUBLIC, 60000, 256, "own", 0.1, 0.4346), (PUBLIC, 60000, 256, "nominal", 0.1, 0.1580),
        (PUBLIC, 60000, 256, "balanced", 0.1, 0.1695),
    ],
)  # fmt: skip
def test_lower_values_of_the_sheet(
    theorem: Any, records: int, size: int, split: str, step_size: float, epsilon: float
) -> None:
    given = {"records": records, "batch_size": size, "last_batch": split, "step_size": step_size}
    assert is_lower_epsilon(theorem, Setting, epsilon, **given)


@pytest.mark.parametrize(("split", "epsilon"), [("own", 0.2807), ("balanced", 0.2805)])
def test_fifty_passes_of_linear_losses_in_one_secret_order(split: str, epsilon: float) -> None:
    given = {"records": 60000, "last_batch": split, "step_size": 1e-9, "epochs": 50}
    assert is_lower_epsilon(curved_orders.once_curved_secret, Setting, epsilon, **given)


def gaussian_delta(epsilon: Any, mu: Any) -> Any:
    e = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def pulls(n: int, b: int, split: str, epochs: int, q: Any, ratio: Any) -> list[tuple[Any, Any]]:
    """(share of the records, mu) of every batch, from the maps themselves: products and sums one by one."""
    batches = cut(range(n), b, split) * epochs
    slopes = [1 - (1 - q) * mpmath.mpf(len(batch)) / divisor for batch, divisor in batches]
    behind = [mpmath.mpf(1)]
    for slope in reversed(slopes[1:]):
        behind.append(behind[-1] * slope)
    behind.reverse()
    deviation = mpmath.sqrt(mpmath.fsum(p * p for p in behind))
    length = len(batches) // epochs
    found = [
        (mpmath.mpf(len(batch)) / n, ratio / divisor * mpmath.fsum(behind[k::length]) / deviation)
        for k, (batch, divisor) in enumerate(batches[:length])
    ]
    return [*found, (1 - mpmath.fsum(w for w, _ in found), mpmath.mpf(0))]


def mixture_delta(gamma: Any, places: list[tuple[Any, Any]]) -> Any:
    """delta of the mixture of N(mu, 1) against N(0, 1), at the threshold where the likelihood ratio is gamma."""
    low, high = mpmath.mpf(-50), mpmath.mpf(10**5)
    for _ in range(120):
        z = (low + high) / 2
        ratio = mpmath.fsum(w * mpmath.exp(mu * z - mu * mu / 2) for w, mu in places)
        low, high = (low, z) if ratio > gamma else (z, high)
    return mpmath.fsum(w * mpmath.ncdf(mu - low) for w, mu in places) - gamma * mpmath.ncdf(-low)


@pytest.mark.parametrize("split", SPLITS)
def test_lower_values_are_below_those_of_the_maps_themselves(split: LastBatch) -> None:
    """With one curvature allowed the search has no choice: the value is that of the maps, to its blocks."""
    for r in draws(f"pulls {split}", 12, 2000):
        n, b, epochs = whole(r, 1, 30), whole(r, 1, 9), r.choice((1, 1, 2, 5))
        curvature, epsilon, noise = r.choice((1.0, r.random())), r.choice((0.1, 1.0)), log_uniform(r, 0.1, 2.0)
        run = Setting(
            records=n, batch_size=b, last_batch=split, epochs=epochs, sensitivity=2.0, noise_std=noise, step_size=1.0,
            smoothness=curvature, strong_convexity=curvature,
        )  # fmt: skip
        with mpmath.workdps(30):
            places = pulls(n, b, split, epochs, 1 - mpmath.mpf(curvature), 2 / mpmath.mpf(noise))
            public = mpmath.log(mpmath.fsum(w * gaussian_delta(epsilon, mu) for w, mu in places if mu))
            found = curved_orders.once_curved(run).profile(epsilon)
            assert public - mpmath.mpf("1e-6") <= found <= public
            secret = mixture_delta(mpmath.exp(epsilon), places)
            found = curved_orders.once_curved_secret(run).profile(epsilon)
            assert found <= mpmath.log(secret)
            assert secret < mpmath.mpf(10) ** -30 or found >= mpmath.log(secret) - mpmath.mpf("1e-5")
