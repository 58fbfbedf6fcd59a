"""The plan of every algorithm, against what its description says, written down by hand."""

from typing import Any

import numpy as np
import pytest

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.algorithm import Length, Order
from dpcalc.model.chain import Chain
from dpcalc.model.run import ALGORITHMS, describe
from dpcalc.training.run import orders
from dpcalc.training.run.domain import Ball
from dpcalc.training.run.kernel import seeded
from dpcalc.training.run.plan import Plan, plan

N = 100
BASE: dict[str, Any] = {"records": N, "step_size": 0.5, "lipschitz": 1.0, "smoothness": 1.0, "noise_std": 3.0}

# algorithm: (given, order, passes, batches as (steps, size, divisor), steps in all, release)
PLANS: dict[str, tuple[dict[str, Any], str, int, list[tuple[int, int, int]], int, str]] = {
    "pnsgd": ({"batch_size": 30}, "fixed", 1, [(3, 30, 30), (1, 10, 10)], 4, "last"),
    "skip": ({}, "fixed", 1, [(100, 1, 1)], 100, "last"),
    "stop": ({}, "fixed", 1, [(100, 1, 1)], 100, "last"),
    "local": ({"batch_size": 200}, "fixed", 1, [(1, 100, 100)], 1, "step"),
    "shuffled": ({"batch_size": 30, "last_batch": "nominal"}, "shuffle", 1, [(3, 30, 30), (1, 10, 30)], 4, "last"),
    "rotation": ({"batch_size": 30, "last_batch": "drop"}, "rotation", 1, [(3, 30, 30)], 3, "last"),
    "shuffled-stop": ({}, "shuffle", 1, [(100, 1, 1)], 100, "last"),
    "cyclic": ({"epochs": 7, "batch_size": 25}, "fixed", 7, [(4, 25, 25)], 28, "last"),
    "shuffle-once": ({"epochs": 7, "batch_size": 30}, "shuffle-once", 7, [(3, 30, 30), (1, 10, 10)], 28, "last"),
    "rotation-epochs": ({"epochs": 7, "batch_size": 30}, "rotation", 7, [(3, 30, 30), (1, 10, 10)], 28, "last"),
    "shuffled-epochs": (
        {"epochs": 7, "batch_size": 200, "last_batch": "nominal"}, "shuffle", 7, [(1, 100, 200)], 7, "last",
    ),
    "noisy-sgd": ({"epochs": 7, "batch_size": 30}, "sample", 1, [(28, 30, 30)], 28, "last"),
    "noisy-gd": ({"steps": 9}, "full", 1, [(9, 100, 100)], 9, "last"),
    "cyclic-released": ({"epochs": 7, "batch_size": 30}, "fixed", 7, [(3, 30, 30), (1, 10, 10)], 28, "pass"),
    "shuffle-once-released": ({"epochs": 7}, "shuffle-once", 7, [(100, 1, 1)], 700, "pass"),
    "rotation-epochs-released": ({"epochs": 7}, "rotation", 7, [(100, 1, 1)], 700, "pass"),
    "shuffled-epochs-released": ({"epochs": 7}, "shuffle", 7, [(100, 1, 1)], 700, "pass"),
    "noisy-sgd-released": ({"steps": 9, "batch_size": 30}, "sample", 1, [(9, 30, 30)], 9, "step"),
    "noisy-gd-released": ({"epochs": 9}, "full", 1, [(9, 100, 100)], 9, "step"),
    "dp-sgd-output": ({}, "draw", 1, [(100, 1, 1)], 100, "average"),
    "dp-sgd-gradient": ({"steps": 9, "batch_size": 30}, "sample", 1, [(9, 30, 30)], 9, "average"),
    "correlated": (
        {
            "epochs": 2, "batch_size": 30, "mechanism": "blt", "clip": 2.0, "noise_multiplier": 45.0,
            "lipschitz": None, "smoothness": None, "noise_std": None,
        }, "fixed", 2, [(3, 30, 30), (1, 10, 30)], 8, "last",
    ),
}  # fmt: skip
ONLINE = {"c1": 2.0, "c2": 1.5, "decay_exponent": 1.5, "diameter": 3.0, "schedule_factor": 0.5}


def planned(algorithm: str, **given: Any) -> Plan:
    return plan(describe(algorithm, {**BASE, **given}), N, 4)


def test_every_algorithm_is_planned_or_refused() -> None:
    assert set(PLANS) | {"online", "repeated", "chain", "unlearning", "dp-sgd"} == set(ALGORITHMS)


@pytest.mark.parametrize("algorithm", PLANS)
def test_plans(algorithm: str) -> None:
    given, order, passes, batches, steps, release = PLANS[algorithm]
    result = planned(algorithm, **given)
    assert (result.algorithm, result.records, result.columns) == (algorithm, N, 4)
    assert (result.order, result.passes, list(result.batches)) == (order, passes, batches)
    assert (result.steps, result.release) == (steps, release)
    assert result.step_size == 0.5
    on_output = algorithm == "dp-sgd-output"
    assert (result.scale, result.output_scale) == ((0.0, 3.0) if on_output else (pytest.approx(3.0, abs=1e-14), 0.0))
    assert not result.scale < 3.0 or on_output
    assert result.noise == "gaussian"
    assert result.longest_skip == (50 if algorithm == "skip" else 0)
    assert result.stops == (algorithm in ("stop", "shuffled-stop"))
    assert result.from_zero == on_output
    assert result.domain == Ball()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_stream_never_has_less_noise_than_accounted(noise: str) -> None:
    """Scales against 40 digits of the schedule's own formula, and exactly against the reach that bounds are fed."""
    from fractions import Fraction

    import mpmath

    from dpcalc.theorems.contraction.stream_noise import Stream

    given = {k: v for k, v in BASE.items() if k != "noise_std"}
    run = describe("online", {**given, **ONLINE, "noise": noise})
    result = plan(run, N, 1)
    assert isinstance(result.scale, np.ndarray)
    unit = mpmath.mpf(run.values["displacement"]) * mpmath.mpf(3.0) / mpmath.mpf(0.5) / 2
    with mpmath.workdps(40):
        for j, scale in enumerate(result.scale.tolist(), start=1):
            x = mpmath.mpf(j) ** mpmath.mpf(1.5)
            if noise == "laplace":
                exact = unit / mpmath.log(x / 2 + mpmath.mpf(1.5))
            else:
                exact = unit / mpmath.sqrt(mpmath.lambertw(x**2 / (2 * mpmath.pi * 4) + mpmath.mpf(1.5)).real)
            assert abs(mpmath.mpf(scale) / (exact / 2) - 1) < mpmath.mpf(2) ** -42  # half: the noise multiplier
    accounted = Stream.of(run)
    moved = Fraction(run.values["displacement"]) * Fraction(3.0) / Fraction(0.5)
    for j, scale in enumerate(result.scale.tolist(), start=1):
        assert moved / Fraction(scale) <= Fraction(accounted.reach(j)[1])
    assert (result.noise, result.order, result.steps) == (noise, "fixed", N)
    assert result.domain == Ball(1.5)


def test_a_tuned_schedule_is_executed_at_the_accounted_double() -> None:
    given = {k: v for k, v in BASE.items() if k != "noise_std"}
    run = describe("shuffled", {**given, "c1": 1.0, "c2": 2.0, "diameter": 2.0})
    assert plan(run, N, 4).scale == run.values["scale"]
    langevin = describe("noisy-gd", {**given, "langevin_std": 0.7, "steps": 3})
    assert plan(langevin, N, 4).scale == langevin.values["noise_std"]


def chain(probability: Any = None) -> Chain:
    rng = np.random.default_rng(1)
    return Chain(
        step_size=rng.uniform(0.1, 1.0, N), noise=rng.uniform(1.0, 2.0, N), contraction=np.ones(N), shift=None,
        spend=None, path="file", probability=probability,
    )  # fmt: skip


def test_a_schedule_is_executed_step_by_step() -> None:
    schedule = chain()
    result = planned("shuffled", schedule=schedule, noise_std=1.5)
    np.testing.assert_array_equal(result.step_size, schedule.step_size)
    np.testing.assert_array_equal(result.scale, 1.5 * schedule.noise)
    with pytest.raises(SpecError, match="schedule has 100 steps"):
        plan(describe("pnsgd", {**BASE, "records": 99, "schedule": schedule}), 99, 4)


def test_a_law_of_the_stop_is_kept_and_that_of_a_position_refused() -> None:
    law = np.arange(N) / (N * (N - 1) / 2)
    result = planned("stop", schedule=chain(law))
    assert result.stop_law is law
    skips, stops = orders.extents(result, seeded(4).generator, 20_000)
    assert not skips.any()
    assert stops.min() >= 2  # the law gives the first step no chance
    from scipy.stats import chisquare

    assert chisquare(np.bincount(stops - 1, minlength=N)[1:], 20_000 * law[1:]).pvalue > 1e-6
    with pytest.raises(NotApplicable, match="probability"):
        planned("shuffled", schedule=chain(law))


def test_the_domain_is_within_what_was_accounted() -> None:
    assert planned("pnsgd", radius=2.0).domain == Ball(2.0)
    assert planned("pnsgd", diameter=3.0).domain == Ball(1.5)
    assert planned("pnsgd", diameter=3.0, radius=4.0).domain == Ball(1.5)
    assert planned("pnsgd", diameter=9.0, radius=4.0).domain == Ball(4.0)
    assert planned("pnsgd").domain == Ball()


@pytest.mark.parametrize(
    ("algorithm", "given", "shape", "message"),
    [
        ("pnsgd", {}, (N + 1, 4), "100 records, and the data have 101"),
        ("pnsgd", {"dimension": 3}, (N, 4), "dimension 3"),
        ("pnsgd", {"noise_std": None, "laplace_scale": 1.0}, (N, 4), "dimension 1"),
        ("pnsgd", {"noise_std": None}, (N, 4), "no noise"),
        ("pnsgd", {"step_size": None}, (N, 4), "no step_size"),
        ("pnsgd", {"records": None}, (N, 4), "no records"),
        ("cyclic", {}, (N, 4), "no epochs"),
        ("noisy-gd", {}, (N, 4), "no steps"),
        ("skip", {"batch_size": 2}, (N, 4), "single records"),
        ("stop", {"batch_size": 2}, (N, 4), "single records"),
        ("shuffled-stop", {"batch_size": 2}, (N, 4), "single records"),
        ("dp-sgd-output", {"batch_size": 2}, (N, 4), "single records"),
        ("noisy-gd", {"steps": 10**14}, (N, 4), "at most"),
        ("online", {"noise_std": None}, (N, 4), "no c1"),
    ],
)
def test_a_run_that_the_data_do_not_fit_is_refused(
    algorithm: str, given: dict[str, Any], shape: tuple[int, int], message: str
) -> None:
    run = describe(algorithm, {**BASE, **given})
    with pytest.raises(SpecError, match=message):
        plan(run, *shape)


def test_laplace_noise_in_several_dimensions_counts_in_the_one_norm() -> None:
    given = {**BASE, "noise_std": None, "laplace_scale": 1.0}
    result = plan(describe("pnsgd", {**given, "dimension": 4}), N, 4)
    assert (result.noise, result.norm) == ("laplace", 1)
    assert plan(describe("pnsgd", given), N, 1).norm == 2
    assert planned("pnsgd").norm == 2


def test_what_is_no_algorithm_is_refused() -> None:
    with pytest.raises(NotApplicable, match="repeated"):
        plan(describe("repeated", {"epoch_epsilon": 1.0, "epochs": 3, "records": N}), N, 4)


def test_a_message_depends_on_no_other_record() -> None:
    run = describe("local", {k: v for k, v in BASE.items() if k != "records"})
    assert plan(run, 17, 4).batches == ((17, 1, 1),)
    with pytest.raises(SpecError, match="records"):
        plan(describe("local", {**BASE, "records": 1}), 17, 4)


@pytest.mark.parametrize("algorithm", [name for name in PLANS if PLANS[name][1] not in ("sample", "draw", "full")])
def test_every_pass_uses_every_record_once(algorithm: str) -> None:
    result = planned(algorithm, **PLANS[algorithm][0])
    stretches = list(orders.stretches(result, seeded(3).generator))
    assert [s.first for s in stretches] == list(np.cumsum([0] + [s.steps for s in stretches])[:-1])
    rows = np.concatenate([s.rows.ravel() for s in stretches if s.rows is not None]).reshape(result.passes, -1)
    used = sum(batch.steps * batch.size for batch in result.batches)
    assert rows.shape == (result.passes, used)
    assert all(len(set(row.tolist())) == used for row in rows)
    assert sum(s.ends_pass for s in stretches) == result.passes
    fresh = len({tuple(row.tolist()) for row in rows})
    assert fresh == (result.passes if result.order is Order.SHUFFLE else 1)


def test_random_orders_skips_and_stops_are_uniform() -> None:
    from scipy.stats import chisquare

    skips, _ = orders.extents(planned("skip"), seeded(1).generator, 30_000)
    assert (skips.min(), skips.max()) == (0, 50)
    assert chisquare(np.bincount(skips)).pvalue > 1e-6
    _, stops = orders.extents(planned("stop"), seeded(2).generator, 30_000)
    assert (stops.min(), stops.max()) == (1, N)
    assert chisquare(np.bincount(stops)[1:]).pvalue > 1e-6
    generator = seeded(3).generator
    small = {name: plan(describe(name, {**BASE, "records": 4}), 4, 1) for name in ("shuffled", "rotation")}
    seen: dict[str, dict[tuple[int, ...], int]] = {name: {} for name in small}
    for name, result in small.items():
        for _ in range(6000):
            rows = next(iter(orders.stretches(result, generator))).rows
            assert rows is not None
            key = tuple(rows[:, 0].tolist())
            seen[name][key] = seen[name].get(key, 0) + 1
    assert len(seen["shuffled"]) == 24
    assert set(seen["rotation"]) == {(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)}
    for counts in seen.values():
        assert chisquare(list(counts.values())).pvalue > 1e-6


@pytest.mark.parametrize(("step_size", "noise_std"), [(1e-150, 1e-150), (1e-300, 1.0), (1e80, 1e80), (1e300, 1e300)])
def test_steps_beyond_double_precision_are_refused(step_size: float, noise_std: float) -> None:
    with pytest.raises(SpecError, match="a step's noise, its factors"):
        planned("noisy-gd", steps=2, step_size=step_size, noise_std=noise_std)


@pytest.mark.parametrize("last", ["own", "balanced", "front"])
@pytest.mark.parametrize("algorithm", ["pnsgd", "cyclic", "shuffled", "rotation", "shuffle-once", "shuffled-epochs"])
def test_batches_of_two_sizes_come_in_the_order_accounted(algorithm: str, last: str) -> None:
    epochs = {"epochs": 2} if ALGORITHMS[algorithm].length is Length.PASSES else {}
    given = {"batch_size": 30, "last_batch": last, **epochs}
    expected = {
        "own": [(3, 30, 30), (1, 10, 10)], "balanced": [(4, 25, 25)], "front": [(1, 10, 10), (3, 30, 30)],
    }  # fmt: skip
    assert list(planned(algorithm, **given).batches) == expected[last]
    assert list(planned(algorithm, **{**given, "batch_size": 15, "last_batch": "balanced"}).batches) == [
        (5, 14, 14), (2, 15, 15),
    ]  # fmt: skip
