"""The bound on compositions by their characteristic function: against closed forms, and where the answer is lowered."""

import math
from typing import Any

import pytest
from flint import arb

from dpcalc.certify import guarantee
from dpcalc.certify.case import certify
from dpcalc.certify.many_passes import passes
from dpcalc.certify.numerics.balls import log_delta as log_gaussian
from dpcalc.certify.numerics.balls import precision
from dpcalc.certify.numerics.composition import Part, log_delta
from dpcalc.certify.reading import _same, readings_of
from dpcalc.certify.runs.matching import hockey_stick
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import definitions
from dpcalc.engine.answer import answer
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.model.draft import Description
from dpcalc.model.question import Question
from dpcalc.model.run import Run, describe
from dpcalc.theorems.record import all_bounds, without_definition
from tests.oracles.chains import laplace_linear_delta


@pytest.mark.parametrize(("mu", "count", "epsilon"), [(1.0, 3, 2.0), (0.3, 40, 5.0), (0.01, 20_000, 3.0)])
def test_gaussians_compose_to_a_gaussian(mu: float, count: int, epsilon: float) -> None:
    with precision(192):
        each, e = arb(mu), arb(epsilon)
        truth = log_gaussian(e, each * arb(count).sqrt())
        about = float(truth.mid())
        bounds = [log_delta([Part(lambda z: hockey_stick(z, each), count)], e, about, fineness) for fineness in (1, 2)]
        assert bounds[0] > bounds[1] > truth
        assert bounds[0] < truth + arb("1e-3")
        assert bounds[1] < truth + arb("3e-4")


def test_randomised_response_composes_to_a_binomial_law() -> None:
    """Two of (1, 0): the loss is 2 with probability p^2, p = e/(1 + e), and delta is p^2 (1 - e^(eps - 2)) above 0."""
    with precision(192):
        p = arb(1).exp() / (1 + arb(1).exp())

        def curve(z: arb) -> arb:
            return (p - z.exp() * (1 - p)).max(arb(0))

        bound = log_delta([Part(curve, 2, arb(1))], arb("0.5"), -1.0, 1)
        truth = (p * p * (1 - arb("-1.5").exp())).log()
        assert bound > truth - arb("1e-30")
        assert bound < truth + arb("1e-6")


RUNS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"algorithm": "noisy-sgd", "records": 50, "batch_size": 5, "steps": 3, "noise_std": 2.0}, "noisy_sgd.composition"),
    ({"algorithm": "noisy-sgd", "records": 1000, "batch_size": 10, "steps": 2000, "noise_std": 0.2,
      "smoothness": 1.0, "step_size": 0.1, "diameter": 0.01}, "noisy_sgd.hidden"),
    ({"algorithm": "shuffled-epochs", "records": 60, "batch_size": 10, "epochs": 4, "noise_std": 0.5,
      "smoothness": 1.0, "step_size": 0.1, "loss_class": "smooth"}, "expanding.fresh"),
    ({"algorithm": "shuffled-epochs", "release": "epoch", "records": 40, "batch_size": 7, "epochs": 3, "noise_std": 0.3,
      "smoothness": 1.0, "step_size": 0.5, "strong_convexity": 0.4, "diameter": 2.0}, "released.shuffled_epochs"),
)  # fmt: skip


def run_and_values(given: dict[str, Any]) -> tuple[Run, dict[str, Any]]:
    run = run_of(COMMANDS["multi-epoch"], Description({**given, "lipschitz": 1.0}, {}))[1]
    return run, dict(run.values)


@pytest.mark.few(2)
@pytest.mark.parametrize(("given", "bound"), RUNS)
def test_two_ways_to_compose_agree(given: dict[str, Any], bound: str) -> None:
    """The truth is below both, and at most what the lattice says of itself below the reported value."""
    question = Question(epsilon=0.5)
    run, values = run_and_values(given)
    result = answer(run, question, [all_bounds()[bound]]).results[0]
    details = dict(result.details or {})
    assert result.log_delta is not None
    values.update(epsilon=0.5, certificate=details.get("certificate"))
    with precision(128):
        said = definitions()[bound].formula(RunInputs(values, False))
        found = log_delta(said[0] if isinstance(said, tuple) else said, arb(0.5), result.log_delta, 1)
        chords = (
            0.05 if bound in ("expanding.fresh", "released.shuffled_epochs") else 0.0
        )  # of the curve of a pass, as the slack says
        assert found > result.log_delta - details["lattice"] - chords - 1e-9
        assert found < result.log_delta + 5e-3


@pytest.mark.campaign
def test_a_composition_is_proved_and_a_lower_value_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarantee, "FINENESS", (0, 2, 5))  # enough for this one; finer knots only take longer
    given = {"algorithm": "noisy-sgd", "records": 1000, "batch_size": 100, "steps": 100, "noise_std": 0.02}
    question = Question(epsilon=8.0)
    run, _ = run_and_values(given)
    case = answer(run, question, [all_bounds()["noisy_sgd.composition"]])
    result = case.results[0]
    assert result.log_delta is not None
    for less, what in ((0.0, "certified"), (1e-3, "not_certified")):
        moved = result._replace(log_delta=result.log_delta - less, value=result.value * (1.0 - 0.99 * less))
        told = certify(case._replace(results=(moved,)), run, question, without_definition()).results[0].details or {}
        assert what in told, told


LAPLACE: dict[str, Any] = {"lipschitz": 1.0, "laplace_scale": 0.5, "step_size": 1.0, "smoothness": 1.0}


def proofs(algorithm: str, bound: str, given: dict[str, Any], question: Question, *shares: float) -> list[str]:
    """What becomes of an answer of which so large a share is told: certified or not_certified."""
    run = describe(algorithm, given)
    case, taken = answer(run, question, [all_bounds()[bound]]), {bound: all_bounds()[bound].parameters}
    found = []
    for share in shares:
        moved = case._replace(results=(case.results[0]._replace(value=case.results[0].value * share),))
        details = certify(moved, run, question, without_definition(), taken).results[0].details or {}
        found.append("certified" if "certified" in details else "not_certified")
    return found


@pytest.mark.parametrize("index", [1, 9])
def test_one_use_with_laplace_noise_is_proved_and_a_lower_value_is_not(index: int) -> None:
    given = {**LAPLACE, "records": 12, "batch_size": 3, "index": index, "epochs": 1}
    question = Question(delta=1e-3, log_delta=math.log(1e-3))
    assert proofs("cyclic", "multi_epoch.laplace", given, question, 1.0, 0.98) == ["certified", "not_certified"]
    given.pop("index")
    told = proofs("shuffle-once", "shuffled_epochs.once_laplace", given, question, 1.0, 0.98)
    assert told == ["certified", "not_certified"]


@pytest.mark.campaign
@pytest.mark.parametrize(("batch_size", "index"), [(10, 100), (10, 80), (7, 1)])
def test_laplace_passes_are_proved_and_a_lower_value_is_not(
    batch_size: int, index: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee, "FINENESS", (2,))
    given = {**LAPLACE, "records": 103, "batch_size": batch_size, "index": index, "epochs": 4}
    question = Question(delta=1e-6, log_delta=math.log(1e-6))
    assert proofs("cyclic", "multi_epoch.laplace", given, question, 1.0, 0.98) == ["certified", "not_certified"]
    given.pop("index")
    told = proofs("shuffle-once", "shuffled_epochs.once_laplace", given, question, 1.0, 0.98)
    assert told == ["certified", "not_certified"]


SECRET: dict[str, Any] = {"lipschitz": 1.0, "noise_std": 1.5, "step_size": 1.0, "smoothness": 1.0,
                          "permutation": "secret", "records": 31, "batch_size": 4}  # fmt: skip


@pytest.mark.parametrize(
    "told",
    [{"epochs": 1}, {"epochs": 1, "adjacency": "null-record", "last_batch": "drop"},
     pytest.param({"epochs": 3, "strong_convexity": 0.3}, marks=pytest.mark.campaign),
     pytest.param({"epochs": 20, "diameter": 1.0, "noise_std": 4.0}, marks=pytest.mark.campaign)],
)  # fmt: skip
def test_secret_orders_are_proved_point_by_point_and_a_lower_value_is_not(
    told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarantee, "FINENESS", (2,) if told["epochs"] == 1 else (24,))
    question = Question(delta=1e-5, log_delta=math.log(1e-5))
    bound = "released.shuffled_epochs_secret_curve"
    found = proofs("shuffled-epochs-released", bound, {**SECRET, **told}, question, 1.0, 0.98)
    assert found == ["certified", "not_certified"]


def test_a_curve_of_another_run_proves_nothing() -> None:
    """The points of less noise are those of larger numbers, and fewer receive."""
    question, bound = Question(delta=1e-5, log_delta=math.log(1e-5)), "released.shuffled_epochs_secret_curve"
    told = [{**SECRET, "epochs": 1, "noise_std": noise_std} for noise_std in (3.0, 1.5)]
    quiet, loud = (describe("shuffled-epochs-released", given) for given in told)
    case = answer(quiet, question, [all_bounds()[bound]])
    assert "not_certified" in (certify(case, loud, question, without_definition()).results[0].details or {})


def test_what_steps_hide_with_laplace_noise_is_below_a_step_and_above_a_gaussian() -> None:
    """Two steps hide no more than independent Laplace noise of both: the curve is above that of their sum."""
    for steps, ratio in ((2, 1.0), (5, 3.0), (40, 2.0)):
        with precision(128):
            part = passes._hidden(arb(ratio), steps)
            for share in (0.0, 0.1, 0.4, 0.6, 0.9, 1.0):
                z = share * ratio
                told = float(part.curve(arb(z)).upper())
                assert laplace_linear_delta(steps, ratio, z) <= told + 1e-12
                assert told <= max(-math.expm1((z - ratio) / 2.0), 1e-30)


@pytest.mark.parametrize(
    ("noise_multiplier", "first"),
    [
        (1.0, "the doubles"),
        (1.1, "the decimals"),
        (0.3, "the doubles"),
    ],  # the double of 1.1 is more than it, of 0.3 less
)
def test_what_is_proved_of_less_noise_is_not_proved_again(noise_multiplier: float, first: str) -> None:
    sampled = {"records": 4, "batch_size": 2, "steps": 3, "sampling": "poisson", "adjacency": "replace-one"}
    run = describe("dp-sgd", {**sampled, "noise_multiplier": noise_multiplier})
    question = Question(epsilon=8.0)
    [result] = answer(run, question, [all_bounds()["sampled.poisson"]]).results
    readings = list(readings_of(result, run, question))
    for reading in readings:
        with precision(128):
            definitions()["sampled.poisson"].formula(reading.inputs())
    assert readings[0].name == first
    assert readings[0].upper_bounds() is readings[1].upper_bounds()


def test_readings_of_other_numbers_share_nothing() -> None:
    for noise_std, same in ((0.5, True), (0.1, False)):
        run, _ = run_and_values(
            {"algorithm": "noisy-sgd", "records": 4, "batch_size": 2, "steps": 3, "noise_std": noise_std}
        )
        question = Question(epsilon=8.0)
        [result] = answer(run, question, [all_bounds()["noisy_sgd.composition"]]).results
        doubles, decimals = readings_of(result, run, question)
        for reading in (doubles, decimals):
            with precision(128):
                definitions()["noisy_sgd.composition"].formula(reading.inputs())
        assert (doubles.upper_bounds() is decimals.upper_bounds()) is same


def test_nothing_is_only_the_same_as_nothing() -> None:
    assert _same(None, None)
    assert not any(_same(None, other) or _same(other, None) for other in (0, "a", math.inf, (), (1,)))
