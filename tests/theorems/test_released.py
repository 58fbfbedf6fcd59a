"""Passes whose iterates are released: exact compositions, and what reuse breaks."""

# ruff: noqa: PT017 (a refusal is one of two good outcomes)
import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dpcalc
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import describe
from dpcalc.notions import gaussian, optimal_composition
from dpcalc.notions.guarantee import Composition
from dpcalc.theorems.hidden import hidden_position
from dpcalc.theorems.record import for_algorithm, lookup
from dpcalc.theorems.released import released, released_fresh_orders
from tests.formulas import evaluated
from tests.oracles import draws, log_uniform
from tests.oracles import pld as losses
from tests.oracles.chains import (
    contraction_instance_log_delta,
)

ALGORITHMS = ("cyclic-released", "shuffle-once-released", "shuffled-epochs-released")
FRESH = "shuffled-epochs-released"
ORDERS = (1.25, 2.0, 5.0, 20.0)  # a search over all of them takes long
REFERENCE = json.loads((Path(__file__).parent.parent / "reference" / "contraction.json").read_text())


def offered(algorithm: str, told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bounds that may be promised for this run, each with its guarantee."""
    run = describe(algorithm, told)
    for bound in for_algorithm(algorithm):
        if bound.guarantee and not bound.unpromised(run) and bound.obstacle(run) is None:
            yield bound.id, guarantee_of(bound, run, ORDERS)


# --- one order, used again --------------------------------------------------------------------------------------------

RESETS = {
    "records": 100, "batch_size": 1, "last_batch": "own", "epochs": 100, "sensitivity": 0.5, "noise": "gaussian",
    "scale": 1.0, "step_size": 1.0,
}  # fmt: skip


def resets(epsilon: float, n: int, epochs: int, ratio: float) -> float:
    """ln delta of passes in which every step forgets all: only a record that comes last tells, and in every pass."""
    return gaussian.log_delta(mu=ratio * math.sqrt(epochs), epsilon=epsilon) - math.log(n)


def test_composing_the_shuffled_curve_is_false_for_one_order() -> None:
    truth = resets(5.0, 100, 100, 0.5)
    assert math.exp(truth) == pytest.approx(9.0e-3, rel=5e-3)
    parts = evaluated(
        released_fresh_orders.shuffled_epochs, **RESETS, loss_class="lipschitz", displacement=0.0, diameter=1.0
    )
    composed = Composition(parts).log_delta(5.0).value
    assert math.exp(composed) == pytest.approx(8.7e-8, rel=5e-3)
    once = evaluated(released.shuffle_once, **RESETS, smoothness=1.0, epsilon=5.0)
    assert truth <= once
    assert composed < truth - 11.0


def test_no_composed_curve_is_offered_for_one_order() -> None:
    for algorithm in ("cyclic-released", "shuffle-once-released"):
        assert not [b.id for b in for_algorithm(algorithm) if "shuffled_epochs" in b.id]
    assert lookup("released.shuffled_epochs").algorithms == (FRESH,)
    assert lookup("released.shuffled_epochs_rdp").algorithms == (FRESH,)


def test_passes_that_reset_in_one_order() -> None:
    for r in draws("resets", 100, 60):
        n, epochs, ratio = r.randint(1, 50), r.randint(1, 200), log_uniform(r, 0.05, 2.0)
        epsilon = log_uniform(r, 0.01, 10.0)
        truth = resets(epsilon, n, epochs, ratio)
        told = {
            "records": n, "epochs": epochs, "lipschitz": ratio / 2, "noise_std": 1.0, "step_size": 1.0,
            "smoothness": 1.0, "strong_convexity": 1.0,
        }  # fmt: skip
        for id, guarantee in offered("shuffle-once-released", told):
            assert guarantee.log_delta(epsilon).value >= truth - 1e-12 * abs(truth), (id, told, epsilon)
        # The last place of a fixed order.
        fixed = gaussian.log_delta(mu=ratio * math.sqrt(epochs), epsilon=epsilon)
        found = dict(offered("cyclic-released", told))
        assert {"released.own_noise", "released.cyclic"} <= set(found)
        for id, guarantee in found.items():
            value = guarantee.log_delta(epsilon).value
            assert fixed - 1e-12 * abs(fixed) <= value <= fixed + 1e-9 * (1 - fixed), (id, told, epsilon)


# --- compositions of whole curves -------------------------------------------------------------------------------------


def curve_run(noise: str, own: float, following: float, n: int, epochs: int, order: float | None = None) -> Any:
    """Products alone: nothing but the displacement is known."""
    given: dict[str, Any] = {
        "records": n, "batch_size": 1, "last_batch": "own", "epochs": epochs, "sensitivity": own, "noise": noise,
        "scale": 1.0, "step_size": 1.0, "loss_class": "lipschitz", "displacement": 1.0, "diameter": following,
    }  # fmt: skip
    if order is None:
        return Composition(evaluated(released_fresh_orders.shuffled_epochs, **given))
    return evaluated(released_fresh_orders.shuffled_epochs_rdp, **given, order=order)


def references(quantity: str) -> list[Any]:
    found = [row for row in REFERENCE if row["quantity"] == quantity]
    assert found
    return [pytest.param(row["inputs"], row["value"], id=row["id"]) for row in found]


def near(found: float, value: float, what: Any, above: float = 5e-3) -> None:
    """Never below, and above by what chords and the lattice may cost."""
    assert value - 1e-9 * (1 + abs(value)) <= found, (what, found, value)
    assert found <= value + above, (what, found, value)


@pytest.mark.parametrize(("inputs", "value"), references("compose_curve_exact"))
def test_reference_values_of_two_passes(inputs: dict[str, str], value: str) -> None:
    run = curve_run(inputs["noise"], float(inputs["rA"]), float(inputs["rB"]), int(inputs["n"]), int(inputs["E"]))
    near(run.log_delta(float(inputs["eps"])).value, math.log(float(value)), inputs)


def test_fixed_order_composes_exactly() -> None:
    """Without later steps the curve is the record's own Gaussian, and its composition another."""
    for epochs, ratio in ((1, 0.5), (7, 0.3), (1000, 0.02)):
        parts = evaluated(released.cyclic_curve,
            records=5, index=5, batch_size=1, epochs=epochs, sensitivity=ratio, noise="gaussian", scale=1.0,
            step_size=1.0, displacement=1.0, diameter=1.0,
        )  # fmt: skip
        for epsilon in (0.0, 0.5, 3.0):
            value = gaussian.log_delta(mu=ratio * math.sqrt(epochs), epsilon=epsilon)
            near(Composition(parts).log_delta(epsilon).value, value, (epochs, ratio, epsilon), 1e-3 * (1 - value))


# --- a point of the curve ---------------------------------------------------------------------------------------------


def test_own_noise_is_composition() -> None:
    mu = evaluated(released.own_noise, records=7, batch_size=3, epochs=9, sensitivity=0.5, noise="gaussian", scale=2.0)
    assert 0.75 <= mu <= 0.75 * (1 + 1e-14)  # a short last batch of one record
    mu = evaluated(released.own_noise, records=3, batch_size=8, epochs=4, sensitivity=0.75, noise="gaussian", scale=0.5)
    assert 1.0 <= mu <= 1.0 + 1e-14


# --- Renyi ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("inputs", "value"), references("rdp_from_shuffled_curve"))
def test_reference_values_of_renyi(inputs: dict[str, str], value: str) -> None:
    given = (inputs["noise"], float(inputs["rA"]), float(inputs["rB"]), int(inputs["n"]))
    found = curve_run(*given, 1, float(inputs["alpha"]))
    assert float(value) * (1 - 1e-12) <= found <= float(value) * (1 + 3e-3)
    assert curve_run(*given, 12, float(inputs["alpha"])) == pytest.approx(12 * found, rel=1e-14)


def test_renyi_of_infinite_order_is_the_greatest_loss() -> None:
    assert curve_run("laplace", 0.7, 2.0, 3, 5, math.inf) == pytest.approx(5 * 0.7, rel=1e-14)
    assert curve_run("gaussian", 0.7, 2.0, 3, 5, math.inf) == math.inf


# --- secret orders ----------------------------------------------------------------------------------------------------

SECRET = {
    "batch_size": 1, "last_batch": "own", "noise": "gaussian", "scale": 1.0, "step_size": 1.0, "smoothness": 1.0,
    "adjacency": "replace-one",
}  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 10, pytest.param(60, marks=pytest.mark.campaign)])
def test_secret_order_of_contractions(n: int) -> None:
    """Equal contractions by c towards centres that differ in one record, one pass: the truth."""
    for ratio, c in itertools.product((0.3, 2.0), (0.0, 0.9, 1.0)):
        for epsilon in (0.1, 1.0, 4.0):
            truth = contraction_instance_log_delta(n, ratio, c, epsilon)
            found = evaluated(released_fresh_orders.shuffled_epochs_secret,
                records=n, sensitivity=ratio, epochs=1, epsilon=epsilon, **SECRET
            )  # fmt: skip
            assert truth <= found + 1e-9 * (1 + abs(found)), (n, ratio, c, epsilon)
            single = evaluated(hidden_position.shuffled, records=n, sensitivity=ratio, epsilon=epsilon, **SECRET)
            assert found >= single - 1e-9 * (1 + abs(single))


def instance(n: int, ratio: float, c: float) -> losses.Loss:
    """The loss of a pass of equal contractions: (1/n) sum_k N(m_k, 1) against N(0, 1)."""
    powers = c ** np.arange(n)
    means = ratio * powers / math.sqrt(float(np.sum(powers**2)))
    x, w = losses._rule(-30.0, 30.0 + ratio, 0.25)
    log_ratio = np.logaddexp.reduce(means[None, :] * x[:, None] - means[None, :] ** 2 / 2, axis=1) - math.log(n)
    return losses.Loss(log_ratio, losses._log_density(x) + np.log(w) + log_ratio)


LONGER = [pytest.param(*run, marks=pytest.mark.campaign) for run in ((10, 3.0, 1.0, 10), (5, 2.0, 0.9, 20))]


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "ratio", "c", "epochs"), [(3, 0.5, 0.5, 10), *LONGER])
def test_secret_orders_of_contractions_in_several_passes(n: int, ratio: float, c: float, epochs: int) -> None:
    """The next pass of such a run starts from what was released, which moves its law and changes nothing else."""
    loss = instance(n, ratio, c)
    told = {
        "records": n, "epochs": epochs, "lipschitz": ratio / 2, "noise_std": 1.0, "step_size": 1.0,
        "smoothness": 1.0, "permutation": "secret",
    }  # fmt: skip
    found = dict(offered(FRESH, told))
    assert "released.shuffled_epochs_secret" in found
    for epsilon in (1.0, 3.0):
        truth = max(losses.log_delta([(one, epochs)], epsilon) for one in (loss, losses.swapped(loss)))
        for id, guarantee in found.items():
            value = guarantee.log_delta(epsilon).value
            assert truth <= value + 1e-6 * (1 + abs(value)), (id, told, c, epsilon, truth, value)


def test_a_secret_has_to_be_told_to_be_kept() -> None:
    told = {"records": 10, "epochs": 3, "lipschitz": 0.5, "noise_std": 1.0, "step_size": 1.0, "smoothness": 1.0}
    assert "released.shuffled_epochs_secret" not in dict(offered(FRESH, told))
    assert "released.shuffled_epochs_secret" in dict(offered(FRESH, {**told, "permutation": "secret"}))


# --- extremes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("noise", ["noise_std", "laplace_scale"])
@pytest.mark.parametrize("epochs", [1, pytest.param(10**15, marks=pytest.mark.campaign)])
def test_extremes(algorithm: str, noise: str, epochs: int) -> None:
    """An answer or a refusal; never less than the last place of one pass, or its share of the records, tells."""
    scales = list(itertools.product((1e-300, 1.0, 1e300), (1e-9, 1.0)))
    place = ALGORITHMS.index(algorithm) + (noise == "laplace_scale")
    some = [each for j, each in enumerate(scales[1::2]) if (j + place) % 3 != 2]  # any two of the parameters meet
    for lipschitz, scale in scales if epochs == 1 else some:
        told = {
            "records": 3, "epochs": epochs, "lipschitz": lipschitz, noise: scale, "step_size": 1.0, "smoothness": 1.0,
            "diameter": 1.0,
        }  # fmt: skip
        try:
            run = list(offered(algorithm, told))
        except DpcalcError as refusal:
            assert refusal.hint, told
            continue
        for id, guarantee in run:
            if id == "released.shuffled_epochs_rdp":
                continue
            what = f"{id} {algorithm} {told!r}"
            try:
                log_delta = guarantee.log_delta(1.0).value
                slow = noise == "laplace_scale" and id == "released.shuffled_epochs_point"
                epsilon = math.inf if slow else guarantee.epsilon(-10.0).value
            except DpcalcError as refusal:
                assert refusal.hint, what
                continue
            assert log_delta <= 0.0, what
            assert epsilon >= 0.0, what
            ratio = 2.0 * lipschitz / scale
            if 1.0 <= ratio < 1e200:
                share = 1.0 if algorithm == "cyclic-released" else 1.0 / 3.0
                assert math.exp(log_delta) >= share * own_delta(noise, ratio, 1.0) * (1 - 1e-9), what
                assert share * own_delta(noise, ratio, epsilon) <= math.exp(-10.0) * (1 + 1e-6), what


def own_delta(noise: str, ratio: float, epsilon: float) -> float:
    if noise == "noise_std":
        return gaussian.delta(mu=ratio, epsilon=epsilon) if epsilon < math.inf else 0.0
    return -math.expm1(min(0.0, epsilon - ratio) / 2)


# --- steps that contract, in fresh orders


CONTRACTING: dict[str, Any] = {
    "lipschitz": 1.0, "smoothness": 0.9, "strong_convexity": 0.6, "step_size": 0.5, "noise_std": 0.8,
}  # fmt: skip


def places_of(told: dict[str, Any]) -> list[tuple[float, float]]:
    """(share of the records, mu) of every step of a pass over quadratics of one curvature, the last step first.

    A record moves its step by 2/(s sigma), every later one shrinks that by c, and all noise from then on counts.
    """
    n, b, last = told["records"], told["batch_size"], told["last_batch"]
    sizes = [b] * (n // b)
    if last == "balanced":
        count = -(-n // b)
        sizes = [n // count] * (count - n % count) + [n // count + 1] * (n % count)
    elif n % b and last != "drop":
        sizes = [n % b, *sizes] if last == "front" else [*sizes, n % b]
    c = 1.0 - told["step_size"] * told["strong_convexity"]
    return [
        (s / n, 2.0 / (s * told["noise_std"]) * c**k / math.sqrt(sum(c ** (2 * j) for j in range(k + 1))))
        for k, s in enumerate(reversed(sizes))
    ]


@pytest.mark.few(2)
@pytest.mark.parametrize("last", ["own", "drop", "balanced", "front"])
def test_contraction_in_fresh_orders_is_that_of_quadratics(last: str) -> None:
    """Given the places, passes of quadratics are independent Gaussians: the composed curve is the truth for them."""
    told = {**CONTRACTING, "records": 11, "batch_size": 3, "last_batch": last, "epochs": 2}
    places = places_of(told)
    places.append((1.0 - sum(share for share, _ in places), 1e-9))
    found = dict(offered(FRESH, told))
    unaware = dict(offered(FRESH, {**told, "strong_convexity": 0.0}))
    for epsilon in (0.0, 0.3, 1.5):
        truth = math.log(
            sum(
                p * q * math.exp(gaussian.log_delta(mu=math.hypot(mu, nu), epsilon=epsilon))
                for (p, mu), (q, nu) in itertools.product(places, repeat=2)
            )
        )
        composed = found["released.shuffled_epochs"].log_delta(epsilon).value
        assert truth - 1e-9 <= composed <= truth + 1e-2
        assert composed < unaware["released.shuffled_epochs"].log_delta(epsilon).value - 0.1
        for id in ("released.shuffled_epochs_point", "released.shuffled_epochs_rdp"):
            assert truth <= found[id].log_delta(epsilon).value <= unaware[id].log_delta(epsilon).value + 1e-9


@pytest.mark.parametrize("last", ["own", "balanced", "front"])
def test_contraction_behind_unequal_batches_is_that_of_quadratics(last: str) -> None:
    told = {**CONTRACTING, "records": 11, "batch_size": 3, "last_batch": last}
    places = places_of(told)
    hybrid = guarantee_of(lookup("shuffle.hybrid"), describe("shuffled", told))
    released_once = dict(offered(FRESH, {**told, "epochs": 1}))["released.shuffled_epochs_point"]
    for epsilon in (0.0, 0.3, 1.5):
        truth = math.log(sum(p * math.exp(gaussian.log_delta(mu=mu, epsilon=epsilon)) for p, mu in places))
        assert truth - 1e-9 <= hybrid.log_delta(epsilon).value <= truth + 1e-6
        assert truth - 1e-9 <= released_once.log_delta(epsilon).value <= truth + 1e-6


@pytest.mark.parametrize("told", [{}, {"diameter": 0.7}, {"diameter": 0.7, "strong_convexity": 0.0}])
def test_one_released_pass_is_the_pass(told: dict[str, Any]) -> None:
    given = {**CONTRACTING, "records": 12, "batch_size": 1, **told}
    one = describe("shuffled", given)
    least = [guarantee_of(lookup(f"shuffle.{id}"), one) for id in ("hybrid", "mixture")]
    released_once = dict(offered(FRESH, {**given, "epochs": 1}))["released.shuffled_epochs_point"]
    for epsilon in (0.0, 0.2, 1.0):
        known = min(each.log_delta(epsilon).value for each in least)
        assert released_once.log_delta(epsilon).value <= known + 1e-12


@pytest.mark.parametrize("order", [1.5, 2.0, 20.0, 300.0])
@pytest.mark.parametrize(("split", "sizes"), [("front", [4, *[7] * 7]), ("own", [*[7] * 7, 4]), ("drop", [7] * 7)])
def test_the_renyi_divergence_is_at_most_the_mean_over_places(split: str, sizes: list[int], order: float) -> None:
    """Of 53 records in batches of 7: the last step before the end hides a place by the noise of all steps after it."""
    report = dpcalc.multi_epoch(
        algorithm="shuffled-epochs", release="epoch", records=53, batch_size=7, last_batch=split, epochs=3, lipschitz=1,
        smoothness=1, step_size=0.1, noise_std=0.5, order=order,
    )  # fmt: skip
    moment = mpmath.mp.mpf(53 - sum(sizes)) / 53
    for later, size in enumerate(reversed(sizes)):
        moment += (
            mpmath.mp.mpf(size) / 53 * mpmath.mp.e ** (order * (order - 1) / 2 * (2 / (0.5 * size)) ** 2 / (later + 1))
        )
    [value] = [row.value for row in report.cases[0].results if row.bound == "released.shuffled_epochs_rdp"]
    assert value <= 3 * mpmath.mp.log(moment) / (order - 1) * (1 + mpmath.mp.mpf(10) ** -9)


def test_the_best_point_is_the_least_of_the_whole_scan() -> None:
    """Points that are left out, as epsilon alone costs more there, hold nothing better."""
    for r in draws("best point", 25, 20):
        mu, epochs, epsilon = 10.0 ** r.uniform(-2, 0.5), int(10.0 ** r.uniform(0.4, 5)), 10.0 ** r.uniform(-2, 2)

        def profile(e: float, mu: float = mu) -> float:
            return gaussian.log_delta(mu=mu, epsilon=e)

        found, _ = released_fresh_orders._best_point(profile, epochs, epsilon)
        low, high = math.log(epsilon / epochs) - 1.0, math.log(epsilon)
        width = 2.0 ** round(math.log2((high - low) / 24))
        for j in range(math.ceil(low / width), math.floor(high / width) + 1):
            e = math.exp(j * width)
            at = optimal_composition.log_delta(epsilon0=e, log_delta0=profile(e), count=epochs, epsilon=epsilon)
            assert found <= at
