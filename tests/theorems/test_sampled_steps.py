"""DP-SGD on clipped gradients: by brute force, against integrals of the definition, and against published values."""

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.model.phases import MOST, Phases
from dpcalc.model.run import describe
from dpcalc.notions import pld
from dpcalc.notions.pld.repeated_draws import weights_of
from dpcalc.numerics import binomial
from dpcalc.numerics.total_scores import law_of_largest_sums, log_delta_of_largest_sums_down
from dpcalc.theorems.record import for_algorithm, lookup
from tests.oracles import draws, log_uniform
from tests.oracles import sampling as oracle

ADJACENCIES = ("replace-one", "zero-out", "add", "remove", "add-remove")


def guarantees(**given: Any) -> dict[str, Any]:
    run = describe("dp-sgd", given)
    found = [b for b in for_algorithm("dp-sgd") if b.obstacle(run) is None]
    return {bound.id: guarantee_of(bound, run) for bound in found}


def uppers(**given: Any) -> dict[str, Any]:
    return {id: found for id, found in guarantees(**given).items() if not id.endswith("_lower")}


# --- the truth of small runs ------------------------------------------------------------------------------------------


def neighbours(r: random.Random, adjacency: str, records: int) -> list[tuple[list[float], list[float]]]:
    """The gradients of pairs of data sets (P, Q); the record that differs is the last."""
    others = [r.choice((-1.0, 1.0, r.uniform(-1, 1))) for _ in range(records - 1)]
    x = r.choice((1.0, -1.0, r.uniform(-1, 1)))
    if r.random() < 0.3:
        others, x = [-1.0] * (records - 1), 1.0
    other = {"replace-one": [r.choice((-x, -math.copysign(1.0, x)))], "zero-out": [0.0]}.get(adjacency, [])
    longer, shorter = [*others, x], [*others, *other]
    if adjacency == "remove":
        return [(longer, shorter)]
    if adjacency == "add":
        return [(shorter, longer)]
    return [(longer, shorter), (shorter, longer)]


def laws_of(r: random.Random, sampling: str, adjacency: str) -> tuple[dict[str, Any], Callable[[int], Any], int]:
    """What describes a run, the law of its batches for so many records, and how many there are."""
    records = r.choice((2, 3))
    if sampling == "poisson":
        rate, steps = r.uniform(0.05, 0.95), r.choice((1, 2))
        return {"sample_rate": rate, "steps": steps}, lambda n: list(oracle.poisson(n, rate, steps)), records
    if sampling == "truncated":
        rate, steps, cap = r.uniform(0.05, 0.95), r.choice((1, 2)) if records == 2 else 1, r.choice((1, 1, 2))
        told = {"sample_rate": rate, "steps": steps, "max_batch_size": cap, "sampling": "poisson"}
        most = records + (r.choice((0, 2)) if adjacency in ("add", "remove", "add-remove") else 0)
        return {**told, "records": most}, lambda n: list(oracle.truncated(n, rate, cap, steps)), records
    if sampling == "several-bins":
        told = {"records": 3, "batch_size": 2, "epochs": 1, "uses": 2, "sampling": "balls-in-bins"}
        return told, lambda n: list(oracle.several_bins(n, 3, 2)), 2
    if sampling == "full":
        steps = r.choice((1, 2))
        return {"steps": steps}, lambda n: [(1.0, (tuple(range(n)),) * steps)], records
    if sampling == "fixed":
        size, steps = r.randint(1, records - 1), r.choice((1, 2))
        told = {"records": records, "batch_size": size, "steps": steps}
        return told, lambda n: list(oracle.fixed(n, size, steps)), records
    if sampling == "with-replacement":
        size = r.randint(1, records)
        steps = r.choice((1, 2)) if records + size < 4 else 1
        told = {"records": records, "batch_size": size, "steps": steps}
        return told, lambda n: list(oracle.with_replacement(n, size, steps)), records
    if sampling == "shuffle":
        told = {"records": 2, "batch_size": 1, "epochs": 1}
        return told, lambda n: list(oracle.shuffle(n, 1, 1)), 2
    told = {"records": 2 * records, "batch_size": records, "epochs": 1}
    return told, lambda n: list(oracle.balls_in_bins(n, 2, 1)), records


@pytest.mark.few(6)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "sampling",
    ["poisson", "truncated", "fixed", "with-replacement", "full", "balls-in-bins", "several-bins", "shuffle"],
)
def test_no_small_run_is_less_private(sampling: str, adjacency: str) -> None:
    checked, tight = 0, 0.0
    for r in draws(f"sampled {sampling} {adjacency}", 12, cost=60, least=4):
        told, batches, records = laws_of(r, sampling, adjacency)
        noise = log_uniform(r, 0.3, 4.0)
        found = guarantees(**{"sampling": sampling, **told}, adjacency=adjacency, noise_multiplier=noise)
        uppers = [g for id, g in found.items() if not id.endswith("_lower")]
        if sampling == "shuffle" and adjacency not in ("replace-one", "zero-out"):
            assert not found
            continue
        assert uppers
        for first, second in neighbours(r, adjacency, records):
            laws = (first, batches(len(first))), (second, batches(len(second)))
            for epsilon in (0.0, r.uniform(0.1, 1.0), r.uniform(1.0, 4.0)):
                truth = oracle.hockey_stick(*laws, noise, epsilon, nodes=60 if "uses" in told else 160)
                for guarantee in uppers:
                    bound = math.exp(guarantee.log_delta(epsilon).value)
                    assert truth <= bound + 1e-12, (told, first, second, noise, epsilon)
                    if truth > 1e-3:
                        tight = max(tight, truth / bound)
                        checked += 1
    if sampling == "shuffle" and adjacency not in ("replace-one", "zero-out"):
        return
    assert checked > 0
    assert tight > 0.5


@pytest.mark.few(4)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sampling", ["fixed", "with-replacement"])
def test_no_small_run_is_less_private_of_a_group(sampling: str, adjacency: str) -> None:
    """Two or three records differ; those that are left may be fewer than a batch where others take their places."""
    constant, tight = adjacency in ("replace-one", "zero-out"), 0.0
    for r in draws(f"groups {sampling} {adjacency}", 12, cost=60, least=4):
        size, batch = r.choice((2, 3)), r.choice((1, 2))
        records = size + batch + r.randint(-1 if constant and batch > 1 else 0, 1)
        steps = 2 if math.comb(records, batch) < 7 and sampling == "fixed" else 1
        told = {"records": records, "batch_size": batch, "steps": steps, "noise_multiplier": log_uniform(r, 0.3, 4.0)}
        about = guarantees(**told, sampling=sampling, adjacency=adjacency, group_size=size)
        found = about[f"sampled.{sampling.replace('-', '_')}"]
        group, others = [1.0] * size, [-1.0] * (records - size)  # what attains the pairs of removal
        if r.random() < 0.5:
            group, others = ([r.choice((-1.0, r.uniform(-1, 1), 1.0)) for _ in part] for part in (group, others))
        instead = {"replace-one": [-1.0] * size, "zero-out": [0.0] * size}.get(adjacency, [])
        law = oracle.fixed if sampling == "fixed" else oracle.with_replacement
        laws = [(x, list(law(len(x), batch, steps))) for x in ([*group, *others], [*instead, *others])]
        for pair in [laws] * (adjacency != "add") + [laws[::-1]] * (adjacency != "remove"):
            for epsilon in (0.0, r.uniform(0.1, 1.0), r.uniform(1.0, 4.0)):
                truth = oracle.hockey_stick(*pair, told["noise_multiplier"], epsilon, 160 if steps == 2 else 1000)
                bound = math.exp(found.log_delta(epsilon).value)
                assert truth <= bound + 1e-12, (told, group, others, epsilon)
                tight = max(tight, truth / bound if truth > 1e-3 else 0.0)
    assert tight > (0.6 if constant else 0.99)


@pytest.mark.parametrize(("records", "batch", "size"), [(9, 3, 6), (10**6, 1000, 32), (300, 290, 10), (5000, 70, 900)])
def test_weights_of_groups_in_batches_of_fixed_size_enclose_the_exact_ones(records: int, batch: int, size: int) -> None:
    weights = weights_of(pld.Draws(batch, size, records, -1e9, replacement=False))
    assert weights.draws.tolist() == list(range(1, min(batch, size) + 1))
    for j, low, high in zip(range(1, 70), weights.low, weights.high, strict=False):
        ways = math.comb(size, j) * math.comb(records - size, batch - j)
        exact = float(mpmath.log(mpmath.mpf(ways) / math.comb(records, batch)))
        assert exact - 1e-10 < low <= exact + 1e-14 * abs(exact)
        assert exact - 1e-14 * abs(exact) <= high < exact + 1e-10


@pytest.mark.parametrize("size", [1, 2, 3])
def test_draws_with_replacement_are_exact_for_a_removed_record(size: int) -> None:
    """The record's gradient is 1 and all others are -1; of a replacement, the others may also be larger."""
    batches = list(oracle.with_replacement(3, size, 1))
    fewer = list(oracle.with_replacement(2, size, 1))
    told = {"records": 3, "batch_size": size, "steps": 1, "noise_multiplier": 1.2, "sampling": "with-replacement"}
    removed, added, replaced, nulled = (
        guarantees(**told, adjacency=adjacency)["sampled.with_replacement"]
        for adjacency in ("remove", "add", "replace-one", "zero-out")
    )
    for epsilon in (0.0, 0.1, 0.4, 1.5):
        runs = ([-1.0, -1.0, 1.0], batches), ([-1.0, -1.0], fewer)
        for found, pair in ((removed, runs), (added, runs[::-1])):
            truth = oracle.hockey_stick(*pair, 1.2, epsilon, 4000)
            assert truth <= math.exp(found.log_delta(epsilon).value) + 1e-12 <= truth + 1e-5
        for found, other, close in ((replaced, -1.0, 0.94), (nulled, 0.0, 0.8)):
            truth = max(
                oracle.hockey_stick(([y, y, 1.0], batches), ([y, y, other], batches), 1.2, epsilon, 1000)
                for y in (-1.0, -0.5, 0.0)
            )
            assert close * math.exp(found.log_delta(epsilon).value) < truth <= math.exp(found.log_delta(epsilon).value)


@pytest.mark.parametrize("sampling", ["poisson", "full", "balls-in-bins"])
def test_a_record_of_a_smaller_gradient_has_more_noise_over_its_norm(sampling: str) -> None:
    """Its gradient is 0.4 at most, those of the others up to 1: never less private than at noise 1/0.4 of its clip."""
    r, small, noise = random.Random(sampling), 0.4, 0.7
    for _ in range(6):
        told, batches, records = laws_of(r, sampling, "zero-out")
        all_found = guarantees(**told, sampling=sampling, adjacency="zero-out", noise_multiplier=noise / small)
        found = all_found[f"sampled.{sampling.replace('-', '_')}"]
        others = [r.choice((-1.0, 1.0, r.uniform(-1, 1))) for _ in range(records - 1)]
        laws = [([*others, x], batches(records)) for x in (r.choice((-small, small)), 0.0)]
        for epsilon in (0.0, 0.3, 1.0):
            bound = math.exp(found.log_delta(epsilon).value) + 1e-12
            assert max(oracle.hockey_stick(*pair, noise, epsilon) for pair in (laws, laws[::-1])) <= bound


def test_a_group_is_drawn_as_one_record_of_so_many_times_the_chance() -> None:
    """Two of four records are replaced: all gradients of 1 by -1, the others are -1."""
    batches = list(oracle.with_replacement(4, 3, 1))
    told = {"records": 4, "batch_size": 3, "steps": 1, "noise_multiplier": 2.0, "sampling": "with-replacement"}
    for adjacency, other in (("replace-one", [-1.0, -1.0]), ("remove", [])):
        found = guarantees(**told, adjacency=adjacency, group_size=2)["sampled.with_replacement"]
        fewer = batches if other else list(oracle.with_replacement(2, 3, 1))
        for epsilon in (0.0, 0.5, 2.0):
            truth = oracle.hockey_stick(
                ([-1.0, -1.0, 1.0, 1.0], batches), ([-1.0, -1.0, *other], fewer), 2.0, epsilon, 2000
            )
            assert truth <= math.exp(found.log_delta(epsilon).value) + 1e-12 <= 1.06 * truth


def test_one_draw_is_a_batch_of_one_record() -> None:
    told = {"records": 30, "batch_size": 1, "steps": 7, "noise_multiplier": 0.8}
    for adjacency in ADJACENCIES:
        [drawn] = uppers(**told, adjacency=adjacency, sampling="with-replacement").values()
        [fixed] = uppers(**told, adjacency=adjacency, sampling="fixed").values()
        assert drawn.epsilon(math.log(1e-6)).value == pytest.approx(fixed.epsilon(math.log(1e-6)).value, rel=1e-9)


def test_the_rest_of_the_weights_counts_as_if_all_draws_were_of_the_record() -> None:
    """The fewer weights are kept, the larger the bound; next to nothing of it is due to the rest."""
    e = np.array([0.0, 0.1, 1.0, 5.0, 20.0])
    for make in (pld.removed_draws, pld.replaced_draws, pld.nulled_draws):
        pairs = [make(mu=0.9, draws=pld.Draws(60, 1, 600, log_rest)) for log_rest in (-1e9, -60.0, -20.0, -4.0)]
        for curves in ([pair.forward(e) for pair in pairs], [pair.backward(e) for pair in pairs]):
            assert all(np.all(a <= b + 1e-9) for a, b in itertools.pairwise(curves))
            assert curves[1] == pytest.approx(curves[0], rel=1e-12)


def test_the_lower_value_of_shuffled_batches_is_one() -> None:
    """Two batches of one record, whose gradients are 1 and -1: below the truth of these very runs."""
    batches = list(oracle.shuffle(2, 1, 1))
    for adjacency, other in (("zero-out", 0.0), ("replace-one", -1.0)):
        for noise in (0.4, 1.0, 3.0):
            found = guarantees(
                records=2, batch_size=1, epochs=1, sampling="shuffle", adjacency=adjacency, noise_multiplier=noise
            )
            for epsilon in (0.0, 0.5, 2.0):
                truth = oracle.hockey_stick(([-1.0, 1.0], batches), ([-1.0, other], batches), noise, epsilon, 600)
                lower = math.exp(found["sampled.shuffle_lower"].log_delta(epsilon).value)
                assert lower <= truth * 1.001 + 1e-9
                assert lower >= 0.3 * truth


def test_the_lower_value_of_shuffled_batches_is_below_the_guarantee() -> None:
    for r in draws("lower values of shuffled batches", 200, cost=10):
        found = guarantees(
            records=10 * r.choice((1, 2, 10, 10**5)), batch_size=10, epochs=r.choice((1, 2, 50, 10**4)),
            sampling="shuffle", adjacency=r.choice(("zero-out", "replace-one")),
            noise_multiplier=log_uniform(r, 1e-6, 1e3),
        )  # fmt: skip
        log_delta, epsilon = -log_uniform(r, 1e-3, 700.0), log_uniform(r, 1e-6, 1e10)
        lower, upper = found["sampled.shuffle_lower"], found["sampled.shuffle"]
        assert lower.epsilon(log_delta).value <= upper.epsilon(log_delta).value
        assert lower.log_delta(epsilon).value <= upper.log_delta(epsilon).value


@pytest.mark.parametrize(("bins", "noise", "moved"), [(1, 0.7, 1.0), (2, 1.0, 0.0), (5, 0.4, 1.0), (300, 0.6, 1.0)])
def test_the_lower_value_of_two_epochs_is_that_of_their_largest_sums(bins: int, noise: float, moved: float) -> None:
    """The integral of (p(x) p(y) - e^eps q(x) q(y))_+ over cells of the largest sums of two epochs."""
    edges = np.linspace(-6.0 * noise, 2.0 + 8.0 * noise, 1201)

    def cells(mean: float) -> Any:
        return np.diff(norm.cdf((edges - mean) / noise) * norm.cdf(edges / noise) ** (bins - 1))

    p, q = (np.multiply.outer(cells(mean), cells(mean)) for mean in (2.0, moved))
    found = guarantees(
        records=bins, batch_size=1, epochs=2, sampling="shuffle", noise_multiplier=noise,
        adjacency="zero-out" if moved else "replace-one",
    )["sampled.shuffle_lower"]  # fmt: skip
    for epsilon in (0.0, 1.0, 4.0, 10.0):
        truth = float(np.maximum(0.0, p - math.exp(epsilon) * q).sum())
        lower = math.exp(found.log_delta(epsilon).value)
        assert lower <= truth * (1.0 + 1e-3)  # the total says less at these noises
        assert lower >= truth * (1.0 - 1e-3)


def test_with_one_batch_an_epoch_the_lower_value_is_the_truth() -> None:
    """Every epoch is a Gaussian mechanism: nothing is shuffled."""
    for epochs, noise in ((3, 1.0), (64, 9.0), (4096, 300.0)):
        found = guarantees(
            records=5, batch_size=5, epochs=epochs, sampling="shuffle", adjacency="zero-out", noise_multiplier=noise
        )
        lower, exact = (found[f"sampled.{name}"].log_delta(1.0).value for name in ("shuffle_lower", "shuffle"))
        assert exact - 0.15 < lower <= exact


def test_more_epochs_and_less_noise_tell_more() -> None:
    told = {"records": 100, "batch_size": 10, "sampling": "shuffle", "adjacency": "zero-out"}

    def lower(epochs: int, noise: float) -> float:
        found = guarantees(**told, epochs=epochs, noise_multiplier=noise)["sampled.shuffle_lower"]
        return float(found.epsilon(-11.5).value)

    by_epochs = [lower(epochs, 1.0) for epochs in (1, 2, 3, 10, 100, 1000)]
    by_noise = [lower(7, noise) for noise in (30.0, 1.0, 0.3, 0.09, 0.07, 0.01)]
    assert by_epochs == sorted(by_epochs)
    assert by_noise == sorted(by_noise)


def test_under_large_noise_the_total_of_all_sums_is_looked_at() -> None:
    told = {"records": 100, "batch_size": 1, "epochs": 900, "sampling": "shuffle", "noise_multiplier": 5.0}
    for adjacency, mu in (("zero-out", 0.6), ("replace-one", 1.2)):
        lower = guarantees(**told, adjacency=adjacency)["sampled.shuffle_lower"].log_delta(1.0).value
        exact = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
        assert lower == pytest.approx(math.log(exact), abs=1e-9)
        assert lower <= math.log(exact)


def test_what_falls_outside_the_scores_that_are_kept_counts_against_the_lower_value() -> None:
    law, step = law_of_largest_sums(3, 1.0, 2.0, 1.0, 5)
    worse = law._replace(lost=law.lost + 1e-3)
    assert log_delta_of_largest_sums_down(worse, step, 1.0) < log_delta_of_largest_sums_down(law, step, 1.0) - 1e-4


def test_a_run_shorter_than_an_epoch_has_no_lower_value() -> None:
    told = {"records": 1000, "batch_size": 1, "noise_multiplier": 0.5, "sampling": "shuffle", "adjacency": "zero-out"}
    assert "sampled.shuffle_lower" not in guarantees(**told, steps=999)
    assert "sampled.shuffle_lower" in guarantees(**told, steps=1000)


# --- balls in bins, far out -------------------------------------------------------------------------------------------


def test_probabilities_that_are_no_numbers_under_the_other_law_are_not_lost() -> None:
    """Two steps, z = 0.05, epsilon 572: the set where the larger of two sums exceeds c has more than 4e-78."""
    given = guarantees(
        records=2, batch_size=1, steps=2, noise_multiplier=0.05, sampling="balls-in-bins", adjacency="remove"
    )
    found = given["sampled.balls_in_bins"]
    assert given["sampled.total_lower"].log_delta(572.0).value <= found.log_delta(572.0).value
    with mpmath.workdps(900):
        mu, epsilon, c = mpmath.mpf(20), mpmath.mpf(572), mpmath.mpf("38.6")
        tail = [mpmath.erfc(x / mpmath.sqrt(2)) / 2 for x in (c, c - mu)]
        truth = 1 - (1 - tail[0]) * (1 - tail[1]) - mpmath.exp(epsilon) * (1 - (1 - tail[0]) ** 2)
        assert truth > mpmath.mpf("1e-80")
        assert found.log_delta(572.0).value >= float(mpmath.log(truth))


@pytest.mark.parametrize(
    ("n", "q", "cap"), [(9, 0.3, 4), (400, 0.05, 31), (400, 0.5, 10), (30, 1.0, 20), (5000, 1e-3, 90)]
)
def test_what_a_cap_does_to_a_batch_is_enclosed(n: int, q: float, cap: int) -> None:
    with mpmath.workdps(40):
        p = [mpmath.binomial(m, k) * mpmath.mpf(q) ** k * (1 - mpmath.mpf(q)) ** (m - k) for m, least in
             ((n - 1, cap), (n, cap + 1)) for k in range(least, m + 1)]  # fmt: skip
        filled, larger = mpmath.fsum(p[: n - cap]), mpmath.fsum(p[n - cap :])
        cut = binomial.truncation(n, q, cap)
        for found, truth in ((cut.chance, filled), (cut.rest, 1 - filled), (cut.rate, larger / filled * cap / n)):
            assert truth <= found <= truth * (1 + mpmath.mpf("1e-10")) + mpmath.mpf("1e-12")


def test_a_schedule_of_very_many_kinds_is_rounded_to_the_unsafe_side() -> None:
    count = 3000
    rate, noise = np.linspace(0.001, 0.002, count), np.linspace(2.0, 1.5, count)
    phases = Phases(rate, noise, np.ones(count), "test")
    kinds = phases.kinds()
    assert len(kinds) <= MOST
    assert sum(steps for *_, steps in kinds) == count
    for q, z, _ in (*kinds, (rate[0], noise[0], 1)):
        assert q <= 0.002
        assert z >= 1.5
    # Every step is counted among those of at least its rate and at most its noise: by the two orders of the kinds.
    for least in (0.0012, 0.0017):
        assert sum(steps for q, *_, steps in kinds if q >= least) >= np.count_nonzero(rate >= least)
    told = {"sampling": "poisson", "adjacency": "remove"}
    [whole] = uppers(**told, schedule=phases).values()
    [equal] = uppers(**told, sample_rate=0.0015, noise_multiplier=1.72, steps=count).values()
    assert whole.epsilon(-11.5).value == pytest.approx(equal.epsilon(-11.5).value, rel=0.1)


def test_a_schedule_of_one_phase_is_a_run_of_equal_steps() -> None:
    for told in ({"sampling": "poisson", "sample_rate": 0.03}, {"sampling": "fixed", "batch_size": 3, "records": 100}):
        phases = Phases(np.full(2, 0.03), np.full(2, 1.3), np.array([20.0, 30.0]), "test")
        for adjacency in ("remove", "add", "zero-out", "replace-one"):
            said = {**told, "adjacency": adjacency}
            [one] = uppers(**said, schedule=phases).values()
            [other] = uppers(**said, noise_multiplier=1.3, steps=50).values()
            assert one.epsilon(-11.5).value == pytest.approx(other.epsilon(-11.5).value, rel=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ["remove", "add", "replace-one"])
def test_groups_in_two_different_steps_are_above_the_integral_of_their_laws(adjacency: str) -> None:
    """Two records, each with a coin of its own in each step: the pair of laws is summed up on a grid of the plane."""
    kinds, y = ((0.3, 1.0), (0.1, 0.7)), np.linspace(-6.0, 8.0, 1401)
    laws = []
    for sign in (1.0, -1.0 if adjacency == "replace-one" else 0.0):
        steps = [
            sum(math.comb(2, j) * q**j * (1.0 - q) ** (2 - j) * norm.pdf(y, sign * j, z) for j in range(3))
            for q, z in kinds
        ]
        laws.append(np.outer(*steps))
    p, q = reversed(laws) if adjacency == "add" else laws
    rate, noise = np.array(kinds).T
    run = {"sampling": "poisson", "adjacency": adjacency, "schedule": Phases(rate, noise, np.ones(2), "test")}
    proved = guarantees(**run, group_size=2)["sampled.scheduled"]
    for epsilon in (0.1, 0.5, 1.5):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) * float(y[1] - y[0]) ** 2
        found = math.exp(proved.log_delta(epsilon).value)
        assert truth * (1.0 - 1e-3) <= found <= truth * (1.0 + 0.01), epsilon


@pytest.mark.parametrize(("cap", "adjacency", "epsilon"), [
    (600, "zero-out", 2.16209), (550, "zero-out", 3.59688), (550, "replace-one", 5.02536),
])  # fmt: skip
def test_a_schedule_of_batches_that_are_cut(cap: int, adjacency: str, epsilon: float) -> None:
    """Of another program: 2000 steps, of which half have a noise that differs in the tenth digit."""
    phases = Phases(np.full(2, 0.01), np.array([1.1, 1.1000000001]), np.full(2, 1000.0), "test")
    said = {"sampling": "poisson", "adjacency": adjacency, "records": 50000, "max_batch_size": cap}
    [whole] = uppers(**said, schedule=phases).values()
    assert epsilon * (1.0 - 2e-6) <= whole.epsilon(math.log(1e-5)).value <= epsilon * (1.0 + 2e-5)


@pytest.mark.campaign
def test_a_group_in_batches_that_are_cut_is_a_chain_and_fixed_batches_lose_no_members() -> None:
    phases = Phases(np.full(2, 0.03), np.array([1.3, 2.0]), np.array([20.0, 30.0]), "test")
    for said in ({"sampling": "poisson", "max_batch_size": 5}, {"sampling": "fixed"}):
        run = {**said, "records": 100, "schedule": phases, "group_size": 2}
        assert uppers(**run, adjacency="add-remove") == {}
        [two] = uppers(**run, adjacency="zero-out").values()
        [one] = uppers(**{**run, "group_size": 1}, adjacency="zero-out").values()
        assert one.epsilon(-11.5).value * 2.0 < two.epsilon(-11.5).value < math.inf


@pytest.mark.parametrize("bins", [10**7, pytest.param(10**15, marks=pytest.mark.campaign)])
def test_more_steps_to_choose_from_are_no_worse(bins: int) -> None:
    few, many = (pld.random_place(mu=1.0, bins=t) for t in (10**6, bins))
    e = np.array([1e-6, 1e-3, 0.1])
    assert np.all(np.isfinite(many.forward(e)))
    assert np.all(many.forward(e) <= few.forward(e) + 0.05)


# --- one step, from the definition ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.2, 1.0, 2.0])
def test_a_replaced_record_in_two_bins_is_above_the_integral_of_its_definition(mu: float) -> None:
    y = np.linspace(-7.0 - mu, 7.0 + mu, 1201)
    normal = {m: np.exp(-0.5 * (y - m) ** 2) / math.sqrt(2.0 * math.pi) for m in (-mu, 0.0, mu)}
    p, q = (0.5 * (np.outer(normal[m], normal[0.0]) + np.outer(normal[0.0], normal[m])) for m in (mu, -mu))
    pair = pld.replaced_place(mu=mu, bins=2)
    for epsilon in (0.0, 0.02 * mu, 0.2 * mu, mu, 2.0 * mu, 4.0 * mu):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum()) * float(y[1] - y[0]) ** 2
        found = math.exp(pair.forward(np.array([epsilon]))[0])
        assert truth * (1.0 - 1e-4) < found <= math.exp(pld.gaussian(mu=2.0 * mu).forward(np.array([epsilon]))[0])


@pytest.mark.parametrize(
    ("bins", "noise", "epsilon", "delta"),
    [(2, 1.0, 0.5, 0.40005), (2, 1.0, 2.0, 0.11453), (10, 1.0, 1.0, 0.029721), (10, 1.0, 2.0, 6.8216e-4),
     (10, 2.0, 0.2, 0.055908), (100, 2.0, 0.1, 8.8795e-3), (100, 2.0, 0.3, 4.7012e-5)],
)  # fmt: skip
def test_a_replaced_record_is_above_the_exact_curve_and_not_far(
    bins: int, noise: float, epsilon: float, delta: float
) -> None:
    """The values were computed by one convolution for every epsilon, good to 1e-3."""
    found = math.exp(pld.replaced_place(mu=1.0 / noise, bins=bins).forward(np.array([epsilon]))[0])
    assert 0.999 * delta < found < 8.0 * delta
    coarse = pld.replaced_place(mu=1.0 / noise, bins=bins, coarser=4).forward(np.array([epsilon]))[0]
    assert math.log(found) - 1e-3 <= coarse <= math.log(found) + 0.1


def test_coarser_places_tell_what_finer_ones_give() -> None:
    given = {"sampling": "balls-in-bins", "adjacency": "remove", "records": 50_000, "batch_size": 500, "epochs": 5,
             "noise_multiplier": 1.0}  # fmt: skip
    found = guarantees(**given)["sampled.balls_in_bins"]
    exact, rough = found.excess_about(1.0, -11.0), found.rough_excess(1.0, -11.0)
    coarse = found.replacing(parts=found.hints.coarser[0]).log_delta(1.0).value + 11.0
    assert abs(rough - exact) < 0.3 * (coarse - exact) < 3e-3


def test_a_hidden_place_is_worth_much_to_a_replaced_record() -> None:
    given = {"sampling": "balls-in-bins", "adjacency": "replace-one", "records": 60_000, "batch_size": 256,
             "epochs": 50, "noise_multiplier": 1.0}  # fmt: skip
    epsilon = guarantees(**given)["sampled.balls_in_bins"].epsilon(math.log(1e-6)).value
    assert 4.9 < epsilon < 6.1  # some 5.06 is exact; 166 where the places are known


def integral(p: dict[float, float], q: dict[float, float], noise: float, epsilon: float) -> float:
    """int (p - e^epsilon q)_+ of two mixtures of normal laws, mean -> weight, by a fine midpoint rule."""
    reach = 2.0 + 12.0 * noise
    x = np.linspace(-reach, reach, 400_001)
    x = 0.5 * (x[1:] + x[:-1])

    def density(law: dict[float, float]) -> Any:
        scale = noise * math.sqrt(2.0 * math.pi)
        return sum(weight * np.exp(-0.5 * ((x - mean) / noise) ** 2) / scale for mean, weight in law.items())

    return float(np.sum(np.maximum(density(p) - math.exp(epsilon) * density(q), 0.0)) * (x[1] - x[0]))


@pytest.mark.parametrize("kind", ["removed", "replaced", "nulled"])
def test_one_step_is_the_integral_of_its_definition(kind: str) -> None:
    for r in draws(f"one sampled step {kind}", 40, cost=2):
        noise, q, epsilon = (
            log_uniform(r, 0.2, 10.0),
            log_uniform(r, 1e-4, 0.95),
            r.choice((0.0, log_uniform(r, 1e-3, 5.0))),
        )
        base = {0.0: 1.0}
        one, minus, two = ({0.0: 1.0 - q, m: q} for m in (1.0, -1.0, 2.0))
        pair, forward, backward = {
            "removed": (pld.removed, (one, base), (base, one)),
            "replaced": (pld.replaced_poisson, (one, minus), (minus, one)),
            "nulled": (pld.nulled_fixed, (two, one), (one, base)),
        }[kind]
        made = pair(mu=1.0 / noise, rate=q)
        for curve, laws in ((made.forward, forward), (made.backward, backward)):
            found = float(np.exp(curve(np.array([epsilon]))[0]))
            assert found == pytest.approx(integral(*laws, noise, epsilon), rel=1e-5, abs=1e-9)


def test_one_step_is_never_below_for_any_rate_and_noise() -> None:
    """Far out, where only logarithms are numbers, halfspaces give the truth from below."""
    for r in draws("extreme sampled steps", 200, cost=1):
        mu, q, e = log_uniform(r, 1e-6, 1e3), log_uniform(r, 1e-12, 0.999), log_uniform(r, 1e-9, 1e3)
        for pair in (pld.removed(mu=mu, rate=q), pld.replaced_poisson(mu=mu, rate=q), pld.nulled_fixed(mu=mu, rate=q)):
            for curve in (pair.forward, pair.backward):
                value = float(curve(np.array([e]))[0])
                assert -math.inf <= value <= 0.0
                assert value <= math.log(q) + 1e-9


# --- published values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sampling", "adjacency", "epsilon"),
    [("poisson", "add-remove", 2.159726), ("poisson", "replace-one", 3.655922), ("fixed", "replace-one", 15.34371)],
)
def test_a_run_of_twenty_epochs(sampling: str, adjacency: str, epsilon: float) -> None:
    [found] = uppers(
        records=50000, batch_size=500, epochs=20, noise_multiplier=1.1, sampling=sampling, adjacency=adjacency
    ).values()
    assert found.epsilon(math.log(1e-5)).value == pytest.approx(epsilon, rel=2e-6)


def test_zero_out_of_fixed_batches_is_far_above_what_the_clip_alone_suggests() -> None:
    [found] = uppers(
        records=50000, batch_size=500, epochs=20, noise_multiplier=1.1, sampling="fixed", adjacency="zero-out"
    ).values()
    assert found.epsilon(math.log(1e-5)).value == pytest.approx(10.38638, rel=2e-6)


def test_with_next_to_no_noise_the_number_of_uses_decides() -> None:
    """Of ten steps at rate 0.01 more than 2 have the record with probability 1e-4, more than 3 with 2e-6: three uses
    of mu^2/2 each. No warning of an overflow is shown.
    """
    told = {"sampling": "poisson", "adjacency": "replace-one", "sample_rate": 0.01, "steps": 10}
    bound = lookup("sampled.poisson")
    found = guarantee_of(bound, describe("dp-sgd", {**told, "noise_multiplier": 1e-5})).epsilon(math.log(1e-5)).value
    assert 1.5e10 < found < 1.5e10 * (1 + 1e-3)


@pytest.mark.parametrize(
    ("sampling", "adjacency", "each"),
    [
        ("poisson", "replace-one", 1.0),
        ("fixed", "replace-one", 4.0),
        *(
            pytest.param(*run, 1.0, marks=pytest.mark.campaign)
            for run in (("poisson", "add-remove"), ("fixed", "zero-out"))
        ),
    ],
)
def test_the_epsilon_has_no_jump_where_noise_is_small(sampling: str, adjacency: str, each: float) -> None:
    """Of 100 steps at rate 0.01 more than 7 have the record with probability 1.0e-5 - 1.6e-7: 7 uses of mu^2/2 each."""
    noises = (1 / 299.9, 1 / 300.1, 1e-3, 1.001e-6, 0.999e-6, 1e-8, 1e-12, 1e-60)
    told = {"records": 1000, "batch_size": 10, "steps": 100, "sampling": sampling, "adjacency": adjacency}
    found = [
        guarantees(**told, noise_multiplier=z)[f"sampled.{sampling}"].epsilon(math.log(1e-5)).value for z in noises
    ]
    assert found == sorted(found)
    uses = [epsilon * 2.0 * z * z / each for z, epsilon in zip(noises, found, strict=True)]
    assert uses == sorted(uses, reverse=True)
    assert 7.0 < uses[-1] < 7.0 * (1.0 + 1e-9)
    assert uses[0] < 7.06


_LONG = [pytest.param("with-replacement", adjacency, marks=pytest.mark.campaign) for adjacency in ADJACENCIES[:2]]


@pytest.mark.few(5)
@pytest.mark.parametrize(
    ("sampling", "adjacency"),
    [*itertools.product(("poisson", "fixed"), ADJACENCIES), ("with-replacement", "add"), *_LONG],
)
def test_the_epsilon_is_continuous_where_the_noise_multiplier_is_a_300th(sampling: str, adjacency: str) -> None:
    """Epsilon times z^2 is about constant for large uses, and for an added record epsilon itself is."""
    told = {"records": 1000, "batch_size": 10, "steps": 20, "sampling": sampling, "adjacency": adjacency}
    bound = lookup(f"sampled.{sampling.replace('-', '_')}")
    above, below = (
        guarantee_of(bound, describe("dp-sgd", {**told, "noise_multiplier": z})).epsilon(math.log(1e-5)).value
        for z in (1.0 / 299.99, 1.0 / 300.01)
    )
    scale = 1.0 if adjacency == "add" else (300.01 / 299.99) ** 2
    assert below == pytest.approx(scale * above, rel=3e-4)


@pytest.mark.parametrize(
    ("sampling", "adjacency"),
    [
        ("fixed", "add"),
        *(pytest.param("fixed", each, marks=pytest.mark.campaign) for each in ("replace-one", "zero-out", "remove")),
        *(
            pytest.param("poisson", each, marks=pytest.mark.campaign)
            for each in ("replace-one", "zero-out", "add", "remove")
        ),
    ],
)  # fmt: skip
def test_large_losses_cost_no_more_than_to_know_the_steps(sampling: str, adjacency: str) -> None:
    """More noise tells no more: the lattice below mu = 300 is not above what holds beyond it, nor its delta 1."""
    told = {"records": 1000, "batch_size": 1, "steps": 100, "sampling": sampling, "adjacency": adjacency}
    more, less = (guarantees(**told, noise_multiplier=1.0 / mu)[f"sampled.{sampling}"] for mu in (299.99, 300.01))
    assert more.epsilon(math.log(1e-5)).value <= less.epsilon(math.log(1e-5)).value * (1.0 + 1e-9)
    for epsilon in (0.0, 0.05):
        value = more.log_delta(epsilon).value
        assert math.log(-math.expm1(epsilon + 100 * math.log1p(-1e-3))) - 1e-14 <= value
        assert value <= less.log_delta(epsilon).value + 1e-6


@pytest.mark.parametrize("sampling", ["poisson", "fixed", "with-replacement"])
@pytest.mark.parametrize("noise_multiplier", [0.0033, 1e-7, 1e-100])
def test_what_an_added_record_may_cost_is_bounded_by_the_runs_that_never_use_it(
    sampling: str, noise_multiplier: float
) -> None:
    """For laws that are disjoint but for these runs delta = 1 - e^epsilon (1-q)^T is exact."""
    told = {"records": 1000, "batch_size": 10, "steps": 20, "sampling": sampling, "adjacency": "add"}
    bound = lookup(f"sampled.{sampling.replace('-', '_')}")
    found = guarantee_of(bound, describe("dp-sgd", {**told, "noise_multiplier": noise_multiplier}))
    log_none = 20 * mpmath.log1p(-mpmath.mpf(10) / 1000)
    if sampling == "with-replacement":
        log_none = 200 * mpmath.log1p(-mpmath.mpf(1) / 1000)
    exact = float(mpmath.log1p(-mpmath.mpf(1e-5)) - log_none)
    assert exact <= found.epsilon(math.log(1e-5)).value <= exact * (1.0 + 1e-9)


def test_a_rough_epsilon_is_near_where_few_large_losses_count() -> None:
    told = {"sampling": "fixed", "adjacency": "replace-one", "records": 1703, "batch_size": 1, "epochs": 3}
    bound = guarantees(**told, noise_multiplier=0.0536)["sampled.fixed"]
    best, rough = bound.epsilon(math.log(1e-5)).value, bound.epsilon(math.log(1e-5), rough=True).value
    assert best <= rough <= best * (1.0 + 2e-5)


def test_groups_that_are_added_are_bounded_by_the_runs_that_use_none_of_them() -> None:
    told = {"sampling": "poisson", "adjacency": "add", "sample_rate": 0.001, "steps": 10, "group_size": 3}
    for z in (1e-7, 1e-100):
        found = guarantees(**told, noise_multiplier=z)["sampled.poisson"].epsilon(math.log(1e-5)).value
        assert -30 * math.log1p(-0.001) - 2e-5 < found < -10 * math.log1p(-0.003)


@pytest.mark.parametrize(
    ("adjacency", "each"), [("replace-one", 4.0), pytest.param("zero-out", 1.0, marks=pytest.mark.campaign)]
)
def test_little_noise_on_draws_with_replacement_has_no_jump(adjacency: str, each: float) -> None:
    """Twice 2 of 6 draws at 1 in 200 and 4 alone, or what is as rare: 12 (each/z^2)/2.

    Where it is known which draws of the 120 were of the record, some 7 may have been in two steps: at most 7 * 6.
    """
    told = {"records": 200, "batch_size": 6, "steps": 20, "sampling": "with-replacement", "adjacency": adjacency}
    bound = lookup("sampled.with_replacement")
    above, below, known = (
        guarantee_of(bound, describe("dp-sgd", {**told, "noise_multiplier": z})).epsilon(math.log(1e-6)).value * z * z
        for z in (1 / 290, 1 / 310, 1e-7)
    )
    assert above == pytest.approx(6.0 * each, rel=2e-3)
    assert below == pytest.approx(6.0 * each, rel=2e-3)
    assert 6.0 * each < known < 0.5 * 7 * 6 * each * 1.01


def test_groups_have_more_to_lose_with_less_noise() -> None:
    told = {"sampling": "poisson", "adjacency": "add-remove", "sample_rate": 0.001, "steps": 10, "group_size": 3}
    found = [
        guarantees(**told, noise_multiplier=z)["sampled.poisson"].epsilon(math.log(1e-5)).value
        for z in (0.99e-6, 1e-8, 1e-30)
    ]
    assert found == sorted(found)
    assert found[-1] < 10.0 * 4.5e60  # where all steps use all three it is 45 mu^2
