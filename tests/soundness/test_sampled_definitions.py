"""The curves of sampled steps as the definitions have them: against integrals, and where the answer is lowered."""

import math
import zlib
from typing import Any

import numpy as np
import pytest
from flint import arb, fmpq
from numpy.typing import NDArray
from scipy import stats

from dpcalc.certify import guarantee
from dpcalc.certify.case import certify
from dpcalc.certify.numerics.balls import precision
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.sampled import balls_in_bins as bins
from dpcalc.certify.sampled import clipped_steps as sampled_steps
from dpcalc.certify.sampled import hidden_past
from dpcalc.certify.sampled import noisy_output as draws
from dpcalc.engine.answer import answer
from dpcalc.errors import Disproved
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.notions import pld
from dpcalc.theorems.record import all_bounds, without_definition

Array = NDArray[np.float64]
Y = np.linspace(-30.0, 40.0, 1_400_001)


def density(mean: float) -> Array:
    value: Array = np.exp(-0.5 * (Y - mean) ** 2) / math.sqrt(2.0 * math.pi)
    return value


def mixture(shift: float, rate: float) -> Array:
    return (1.0 - rate) * density(0.0) + rate * density(shift)


def integral(p: Array, q: Array, z: float) -> float:
    """E_g of two laws on the line by the trapezoidal rule, good to some 1e-10 of the integrand."""
    return float(np.maximum(p - math.exp(z) * q, 0.0).sum() * (Y[1] - Y[0]))


@pytest.mark.few(3)
@pytest.mark.parametrize("rate", [0.01, 0.4, 0.97])
@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_one_step_is_the_integral_of_its_definition(mu: float, rate: float) -> None:
    pairs = {
        sampled_steps._removed: (mixture(mu, rate), density(0.0)),
        sampled_steps._added: (density(0.0), mixture(mu, rate)),
        sampled_steps._replaced: (mixture(mu, rate), mixture(-mu, rate)),
        sampled_steps._nulled: (mixture(2.0 * mu, rate), mixture(mu, rate)),
    }
    for make, (p, q) in pairs.items():
        for z in (0.0, 1e-3, 0.1, 0.7, 2.0, 5.0):
            with precision(192):
                found = make(arb(mu), arb(rate))(arb(z))
            assert abs(float(found) - integral(p, q, z)) < 2e-9, (make, z)


def two_bins(mu: float, other: float, g: float) -> tuple[float, float]:
    """E (S - g)_+ and E (g - S)_+ for the mean S of two, of mu and another.

    Given the first, L, it is half of E (L' - x)_+ or E (x - L')_+ at x = 2g - L: both are known in closed form. The
    integrand is smooth, so the trapezoidal rule is exact up to rounding.
    """
    x = 2.0 * g - np.exp(mu * Y - 0.5 * mu * mu)
    y = np.log(np.maximum(x, 1e-300)) / other
    above = stats.norm.sf(y - 0.5 * other) - x * stats.norm.sf(y + 0.5 * other)
    under = x * stats.norm.cdf(y + 0.5 * other) - stats.norm.cdf(y - 0.5 * other)
    curves = np.where(x > 0.0, above, 1.0 - x), np.where(x > 0.0, under, 0.0)
    over, below = (float(0.5 * (curve * density(0.0)).sum() * (Y[1] - Y[0])) for curve in curves)
    return over, below


@pytest.mark.few(1)
@pytest.mark.parametrize(("mu", "other"), [(0.2, 0.2), (1.0, 1.0), (2.0, 2.0), (1.4, 1.0), (2.0, 0.5)])
def test_two_bins_are_the_integral_of_their_definition(
    mu: float, other: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E (1 - g S)_+ = g E (1/g - S)_+."""
    monkeypatch.setattr(bins, "_LENGTH", 1024)
    with precision(128):
        epoch = bins.Epoch(arb(other), 2, (1, arb(mu)))
        for z in (0.0, 0.05 * mu, 0.3 * mu, mu, 2.0 * mu):
            g = math.exp(z)
            removed, added = two_bins(mu, other, g)[0], g * two_bins(mu, other, 1.0 / g)[1]
            # Each step's law goes to neighbours in a lattice of some h, so S falls by at most h. Between multiples of
            # h/2 the value is below the next one. In the far tail, where 1 - g S is rarely above 0, that is the most.
            half = next(float(arb(each.unit)) for each in epoch._lattices if each.at(arb(1.0 / g)) is not None)
            far = g * two_bins(mu, other, 1.0 / g + 3.0 * half)[1] if added < 1e-9 else 0.0
            for found, truth, most in ((epoch.removed(arb(z)), removed, 0.0), (epoch.added(arb(z)), added, far)):
                assert truth * (1.0 - 1e-9) < float(found) < max(most, truth * (1.0 + 5e-3)), (z, found, truth)


@pytest.mark.parametrize(("mu", "t"), [(0.1, 20), (1.0, 3), (1.0, 40), (3.0, 7)])
def test_finer_lattices_prove_more(mu: float, t: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each lattice is a bound, and a lattice of half the step on the same points is a smaller one."""
    found: list[list[float]] = []
    for length in (64, 256):
        monkeypatch.setattr(bins, "_LENGTH", length)
        with precision(128):
            epoch = bins.Epoch(arb(mu), t)
            points = [arb(mu * z / math.sqrt(t)) for z in (0.0, 0.1, 0.5, 1.0, 2.0)]
            found.append([float(curve(z)) for z in points for curve in (epoch.removed, epoch.added)])
    assert all(fine < coarse for coarse, fine in zip(*found, strict=True))


RUNS: tuple[dict[str, Any], ...] = (
    {"sampling": "poisson", "adjacency": "zero-out", "sample_rate": 0.2, "steps": 4, "noise_multiplier": 1.0},
    {"sampling": "poisson", "adjacency": "replace-one", "sample_rate": 0.2, "steps": 4, "noise_multiplier": 1.5},
    {"sampling": "poisson", "adjacency": "zero-out", "records": 9, "batch_size": 3, "max_batch_size": 4, "steps": 3,
     "noise_multiplier": 2.0},
    {"sampling": "fixed", "adjacency": "add", "records": 10, "batch_size": 3, "steps": 3, "noise_multiplier": 2.0},
    {"sampling": "fixed", "adjacency": "zero-out", "records": 9, "batch_size": 2, "steps": 3, "noise_multiplier": 2.0},
    {"sampling": "with-replacement", "adjacency": "replace-one", "records": 20, "batch_size": 4, "steps": 4,
     "noise_multiplier": 2.0},
    {"sampling": "balls-in-bins", "adjacency": "remove", "records": 40, "batch_size": 2, "epochs": 3,
     "noise_multiplier": 1.0},
)  # fmt: skip


@pytest.mark.parametrize(("b", "n", "mu"), [(1, 10, 0.7), (3, 10, 0.7), (5, 5, 0.4), (500, 50000, 0.9)])
def test_both_forms_of_repeated_draws_agree(b: int, n: int, mu: float) -> None:
    """In balls and in doubles, by different ways to find where a half-line begins; the second is rounded up."""
    pairs = [
        make(mu=mu, draws=pld.Draws(b, 1, n)) for make in (pld.removed_draws, pld.replaced_draws, pld.nulled_draws)
    ]
    told = [curve for pair in pairs for curve in (pair.forward, pair.backward)]
    with precision(128):
        of, ball = draws.Draws(b, n), arb(mu)
        defined = (
            of.removed(ball), of.added(ball), of.replaced(2 * ball), of.replaced(2 * ball), of.nulled(ball),
            of.replaced(ball),
        )  # fmt: skip
        for z in (0.0, 0.003, 0.05, 0.5, 2.0, 8.0):
            for curve, other in zip(told, defined, strict=True):
                value, found = other(arb(z)), float(curve(np.array([z]))[0])
                truth = float(value.log()) if value > 0 else -math.inf
                assert truth <= found
                assert found == truth or found == pytest.approx(truth, abs=1e-11)


def test_moments_of_repeated_draws_are_integrals_of_the_laws() -> None:
    """Both orders of the profile with b = n = 3: j draws of a record have probability C(3, j) 2^(3-j)/27."""
    gap, c, inside, width = 0.9, 1.5, abs(Y) < 30.0, Y[1] - Y[0]
    weights = [math.comb(3, j) * 2.0 ** (3 - j) / 27.0 for j in range(4)]
    for kept, log_rare in ((4, -30.0), (3, -3.0)):
        p = sum((w * density(j * gap) for j, w in enumerate(weights[:kept])), np.zeros_like(Y))[inside]
        n = density(0.0)[inside]
        q, lost = sum(weights[:kept]) * n, sum(weights[kept:])
        ahead = p > q  # the sum is off by half a step of the density where this begins
        moment = np.where(ahead, p * (p / q) ** c + q * (q / p) ** c, 0.0)
        rest = p - np.where(ahead, p + q, 0.0)
        with precision(128):
            of = draws.Draws(3, 3, log_rare)
            told = of.loss_either(arb(gap))
            assert float(of.lost) == pytest.approx(lost, rel=1e-12)
            assert float(told.moments(arb(c)).at(arb(0)).real) == pytest.approx(float(moment.sum() * width), rel=1e-5)
            assert float(told.at_zero) == pytest.approx(float(rest.sum() * width), rel=1e-4)
            removed = of.loss_removed(arb(gap)).moments(arb(c)).at(arb(0)).real
            assert float(removed) == pytest.approx(float((p * (p / n) ** c).sum() * width), rel=1e-9)


def test_sums_of_uses_beyond_the_lattice_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twelve uses with weights 0.9^i, each with probability 1/2, all sums are listed here."""
    monkeypatch.setattr(hidden_past, "_POINTS", 64)
    sums = np.array([sum(0.9**i for i in range(12) if k >> i & 1) for k in range(1 << 12)])
    with precision(128):
        law = hidden_past.Uses(1, fmpq(1, 2), arb(0.9)).law(12)
        kept = [(value, mass) for value, mass in law[:-1] if value <= 4.0]  # as on a lattice that ends early
        beyond = (law[-1][0], sum((mass for value, mass in law if value > 4.0), arb(0)))
        shifts = hidden_past.Shifts.of([*kept, beyond], arb(1), arb(0), None, arb(0.1))
    assert float(shifts.lost) >= (sums > 4.0).mean()
    for x in (0.5, 1.0, 2.0, 3.0, 4.0):
        larger = float(sum((mass for mu, mass in shifts.parts if mu > 0.1 * x), shifts.lost))
        assert larger >= (sums > x + 1e-9).mean()


@pytest.mark.campaign
@pytest.mark.parametrize("given", RUNS)
def test_a_sampled_composition_is_proved_and_a_lower_value_is_not(
    given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee, "FINENESS", (0, 2, 5))  # enough for these; finer knots only take longer
    bound = "sampled.truncated" if "max_batch_size" in given else ""
    told = proofs(given, Question(delta=1e-4, log_delta=math.log(1e-4)), bound)
    assert "certified" in told[0], told
    assert "not_certified" in told[1], told


@pytest.mark.parametrize("given", RUNS[:1])
def test_one_sampled_step_is_proved_and_a_lower_value_is_not(given: dict[str, Any]) -> None:
    told = proofs({**given, "steps": 1}, Question(delta=1e-2, log_delta=math.log(1e-2)))
    assert "certified" in told[0], told
    assert "not_certified" in told[1], told


def proofs(given: dict[str, Any], question: Question, bound: str = "", lower: float = 0.998) -> list[dict[str, Any]]:
    """What is told of the answer to a question but for its last digits, and of a lower one."""
    run = describe("dp-sgd", given)
    case = answer(run, question, [all_bounds()[bound or "sampled." + given["sampling"].replace("-", "_")]])
    result = case.results[0]
    moved = [case._replace(results=(result._replace(value=result.value * less),)) for less in (1.00001, lower)]
    return [dict(certify(each, run, question, without_definition()).results[0].details or {}) for each in moved]


# --- hidden iterates --------------------------------------------------------------------------------------------------


HIDDEN: dict[str, Any] = {
    "records": 60, "batch_size": 30, "steps": 30, "clip": 1.0, "noise_multiplier": 5.0, "step_size": 1.0,
    "smoothness": 1.0, "diameter": 0.02, "model": "linear", "release": "last",
}  # fmt: skip


@pytest.mark.parametrize("step_size", [1.2, 1.5])
def test_the_chance_of_a_batch_too_large_is_a_binomial_tail(step_size: float) -> None:
    run = describe("dp-sgd", {**HIDDEN, "step_size": step_size, "adjacency": "remove", "sampling": "poisson"})
    most = int(2 * 30 / step_size + 1e-9)
    with precision(192):
        told = sampled_steps._too_large(RunInputs(dict(run.values), typed=True), 30)
    truth = math.log(-math.expm1(30 * math.log1p(-stats.binom.sf(most - 1, 59, 0.5))))
    assert float(told) == pytest.approx(truth, rel=1e-9)


def test_what_hides_early_steps_is_in_units_of_the_noise() -> None:
    """On a domain of 0.02, in which a record moves a step by 1/30: 0.6 of a use at 1/z = 1/5, over sqrt(q j)."""
    run = describe("dp-sgd", {**HIDDEN, "adjacency": "remove", "sampling": "poisson"})
    fields = {"theorem": "split noise", "values": {"composed": 3, "split": 2, "fraction": 0.5}}
    certificate = {**fields, "digest": f"{zlib.crc32(repr(fields).encode()):08x}"}
    with precision(128):
        parts, _ = sampled_steps._hidden(RunInputs({**run.values, "certificate": certificate}, typed=True))
        assert [part.copies for part in parts] == [1, 2, 1]
        for z in (0.0, 0.3):
            truth = integral(density(0.6 / 5.0), density(0.0), z)
            assert abs(float(parts[0].curve(arb(z))) - truth) < 2e-9


def test_what_is_left_out_counts_as_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past uses beyond the law, and numbers of draws in each of three steps that are too rare."""
    monkeypatch.setattr(
        hidden_past.Uses, "law", lambda *_: [(0.0, arb(0.75)), (1.0, arb(0.25) - arb(2) ** -8), (9.0, arb(2) ** -8)]
    )
    run = describe("dp-sgd", {**HIDDEN, "adjacency": "remove", "sampling": "with-replacement"})
    values = {"composed": 3, "split": 2, "fraction": 0.5, "counted": 27, "past": "secret"}
    fields = {"theorem": "split noise", "values": values}
    certificate = {**fields, "digest": f"{zlib.crc32(repr(fields).encode()):08x}"}
    with precision(128):
        given = {**run.values, "certificate": certificate, "about": math.log(1e-2)}
        _, failure = sampled_steps._hidden(RunInputs(given, typed=True))
    rare = 0.0
    for steps in (2, 1):
        tails = [float(stats.binom.sf(j, 30, 1.0 / 60.0)) for j in range(1, 30)]
        rare += steps * next(tail for tail in tails if tail < 1e-2 * math.exp(-9.0) / steps)
    assert math.exp(float(failure)) == pytest.approx(2.0**-8 + rare, rel=1e-9)


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("sampling", "adjacency"),
    [
        ("poisson", "remove"),
        ("fixed", "replace-one"),
        ("with-replacement", "replace-one"),
        ("with-replacement", "remove"),
    ],
)
def test_hidden_iterates_are_proved_and_a_lower_value_is_not(sampling: str, adjacency: str) -> None:
    """The definition has a finer law of earlier uses than the bound, which is 5 % above it in so short a run."""
    told = {**HIDDEN, "sampling": sampling, "adjacency": adjacency}
    first, second = proofs(told, Question(delta=1e-2, log_delta=math.log(1e-2)), "sampled.hidden", lower=0.93)
    assert "certified" in first, first
    assert "not_certified" in second, second


# --- hidden iterates of shuffled and full batches ---------------------------------------------------------------------


@pytest.mark.parametrize("told", [{}, {"regularisation": 0.1}, {"adjacency": "replace-one", "diameter": 5.0}])
def test_full_batches_are_proved_and_a_lower_value_is_disproved(told: dict[str, Any]) -> None:
    given = {"adjacency": "remove", **{k: v for k, v in HIDDEN.items() if k != "batch_size"}, **told}
    run, question = describe("dp-sgd", {**given, "sampling": "full"}), Question(delta=1e-2, log_delta=math.log(1e-2))
    bound = all_bounds()["sampled.hidden_full"]
    case, taken = answer(run, question, [bound]), {bound.id: bound.parameters}
    result = case.results[0]
    assert "certified" in (certify(case, run, question, without_definition(), taken).results[0].details or {})
    lower = case._replace(results=(result._replace(value=result.value * (1.0 - 1e-6)),))
    with pytest.raises(Disproved):
        certify(lower, run, question, without_definition(), taken)


@pytest.mark.parametrize(("batch_size", "epochs", "adjacency"), [(30, 2, "replace-one"), (25, 3, "zero-out")])
def test_shuffled_batches_are_proved_and_a_lower_value_is_not(batch_size: int, epochs: int, adjacency: str) -> None:
    """60 records in batches of 25 leave a short one, whose sum is divided by 25 all the same."""
    told = {**HIDDEN, "sampling": "shuffle", "batch_size": batch_size, "adjacency": adjacency, "diameter": 1.0}
    told.update(steps=epochs * -(-60 // batch_size), noise_multiplier=1.5)
    first, second = proofs(told, Question(delta=1e-3, log_delta=math.log(1e-3)), "sampled.hidden_shuffle")
    assert "certified" in first, first
    assert "not_certified" in second, second


@pytest.mark.parametrize("sampling", ["poisson", "shuffle", "full"])
def test_a_label_says_that_clipped_gradients_are_of_a_convex_loss(sampling: str) -> None:
    id = "sampled.hidden" if sampling == "poisson" else f"sampled.hidden_{sampling}"
    assert any("convex and smooth loss" in each for each in all_bounds()[id].assumes)


def test_a_secret_shift_that_may_be_none_has_tails_as_small_as_they_are() -> None:
    """Half of the time there is no shift, whose term would be the error of a root."""
    shifts = hidden_past.Shifts([(arb(0), arb(0.5)), (arb(1), arb(0.5))], arb(0))
    p, mirrored = 0.5 * (density(0.0) + density(1.0)), 0.5 * (density(0.0) + density(-1.0))
    with precision(128):
        for curve, p_of, q_of in (
            (shifts.secret().curve, p, density(0.0)), (shifts.secret().back, density(0.0), p),
            (shifts.mirrored().curve, p, mirrored),
        ):  # fmt: skip
            for z in (0.1, 0.5):
                assert float(curve(arb(z))) == pytest.approx(integral(p_of, q_of, z), abs=1e-9)
        assert float(shifts.secret().curve(arb(18)).log()) < -150.0
        assert float(shifts.mirrored().curve(arb(18)).log()) < -150.0
