"""The Renyi divergence of passes in random order as its definition has it: closed forms, and a lowered answer."""

import math
from typing import Any

import pytest
from flint import arb
from mpmath import mp, mpf, ncdf, quad

from dpcalc.certify.case import certify
from dpcalc.certify.numerics.balls import log_delta, precision
from dpcalc.certify.released import renyi as released_renyi
from dpcalc.certify.runs.run import RunInputs
from dpcalc.engine.answer import answer
from dpcalc.model.quantities import Noise
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.theorems.record import lookup, without_definition

RUNS: tuple[dict[str, Any], ...] = (
    {"records": 23, "batch_size": 3, "noise_std": 0.7, "smoothness": 1.0},
    {"records": 23, "batch_size": 3, "noise_std": 0.7, "smoothness": 1.0, "strong_convexity": 0.4,
     "last_batch": "balanced"},
    {"records": 23, "batch_size": 3, "noise_std": 0.7, "loss_class": "convex", "diameter": 0.5,
     "last_batch": "nominal"},
    {"records": 23, "batch_size": 3, "laplace_scale": 0.7, "loss_class": "convex", "diameter": 0.5},
    {"records": 23, "batch_size": 3, "laplace_scale": 0.7},
)  # fmt: skip


@pytest.mark.parametrize("given", RUNS)
@pytest.mark.parametrize("order", [1.0, 1.5, 8.0])
def test_a_reported_divergence_is_just_above_its_definition(given: dict[str, Any], order: float) -> None:
    """By the chords of the table that the reported one integrates."""
    run = describe("shuffled-epochs-released", {**given, "lipschitz": 0.5, "step_size": 1.0, "epochs": 4})
    reported = lookup("released.shuffled_epochs_rdp").prove(run).curve(order)
    with precision(128):
        truth = float(released_renyi._shuffled_epochs(RunInputs({**run.values, "order": order}, False)))
    assert truth <= reported <= truth * 1.003


@pytest.mark.parametrize(("order", "mu"), [(1.0, 0.5), (2.0, 1.0), (7.5, 0.8)])
def test_the_integral_of_a_gaussian_curve_is_its_moment(order: float, mu: float) -> None:
    with precision(128):
        a, own = arb(order), arb(mu)
        found = released_renyi._integral(lambda z: log_delta(z, own).exp(), a, own, Noise.GAUSSIAN)
        told = released_renyi._divergence(a * (a - 1) * found, found, a)
        truth = a * own * own / 2
        assert truth < told < truth * arb("1.0003")


@pytest.mark.parametrize("order", [1.0, 3.0])
def test_what_lies_beyond_the_end_is_bounded(order: float) -> None:
    mu, end = mpf("0.6"), mpf(2)
    with mp.workdps(30):

        def integrand(x: Any) -> Any:
            delta = ncdf(mu / 2 - x / mu) - mp.exp(x) * ncdf(-mu / 2 - x / mu)
            return (mp.exp((order - 1) * x) + mp.exp(-order * x)) * delta

        truth = float(quad(integrand, [end, 3, 5, 9, 20]))
    with precision(128):
        told = float(released_renyi._beyond(arb(2), arb(order), arb("0.6")))
    assert truth <= told <= 2.0 * truth


def test_the_moment_of_laplace_noise() -> None:
    with mp.workdps(30):
        for r, a in ((0.3, 1.0), (0.3, 2.0), (5.0, 3.5)):

            def moment(x: Any, r: float = r, a: float = a) -> Any:
                p, loss = mp.exp(-abs(x)) / 2, abs(x - r) - abs(x)
                return p * loss if a == 1.0 else p * mp.exp((a - 1) * loss)

            whole = quad(moment, [-60, 0, r, 60])
            truth = float(whole if a == 1.0 else mp.log(whole) / (a - 1))
            with precision(128):
                assert float(released_renyi._laplace(arb(r), arb(a))) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("given", [RUNS[0], RUNS[2]])
def test_an_answer_is_proved_and_a_lower_one_is_not(given: dict[str, Any]) -> None:
    run = describe("shuffled-epochs-released", {**given, "lipschitz": 0.5, "step_size": 1.0, "epochs": 4})
    bound, question = lookup("released.shuffled_epochs_rdp"), Question(delta=1e-5, log_delta=math.log(1e-5))
    case = answer(run, question, [bound])
    for share, what in ((1.0, "certified"), (0.995, "not_certified")):
        moved = case._replace(results=(case.results[0]._replace(value=case.results[0].value * share),))
        told = certify(moved, run, question, without_definition(), {bound.id: bound.parameters}).results[0].details
        assert what in (told or {}), told
