"""The noise multiplier, wherever noise on a mean gradient is given or sought."""

import math
from fractions import Fraction
from typing import Any

import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.model import noise
from dpcalc.model.algorithm import Source
from dpcalc.model.run import describe
from tests.cli.conftest import best

BATCHES = {"records": 1000, "batch_size": 50, "lipschitz": 3.0}
HIDDEN = {**BATCHES, "smoothness": 1.0, "step_size": 0.1}


# --- against composition, in which a noise multiplier z stands for N(0, z^2) on a sum of gradients of norm 1 --------


@pytest.mark.parametrize("adjacency", ["replace-one", "null-record"])
@pytest.mark.parametrize("noise", [0.7, 20.0])
def test_full_batches_are_gaussian_mechanisms(noise: float, adjacency: str) -> None:
    """A record adds 1 to the sum, and one that is replaced moves it by 2: mu = sqrt(T)/z, or twice that."""
    report = dpcalc.multi_epoch(
        algorithm="noisy-gd", release="epoch", records=1000, lipschitz=3.0, steps=100, noise_multiplier=noise,
        adjacency=adjacency,
    )  # fmt: skip
    found = report.cases[0].best
    assert found is not None
    exact = (2 if adjacency == "replace-one" else 1) * 10 / noise
    assert exact <= found.value <= exact * (1 + 1e-13)


def test_batches_of_one_size_are_those_of_dp_sgd() -> None:
    """2000 steps of 500 of 50000 records, z = 1.1, delta = 1e-5: 15.34371 by a contour integral."""
    found = dpcalc.multi_epoch(
        algorithm="noisy-sgd", release="epoch", records=50000, batch_size=500, lipschitz=3.0, steps=2000,
        noise_multiplier=1.1, delta=1e-5,
    ).cases[0].best  # fmt: skip
    assert found is not None
    assert 15.34371 <= found.value <= 15.34371 * 1.001


def test_single_records_have_the_multiplier_of_their_message() -> None:
    """A message of norm 1 plus N(0, z^2): mu = 2/z."""
    found = dpcalc.rdp(algorithm="local", lipschitz=0.25, noise_multiplier=4.0).cases[0].best
    assert found is not None
    assert 0.5 <= found.value <= 0.5 * (1 + 1e-13)


@pytest.mark.parametrize("algorithm", ["cyclic", "noisy-sgd", "noisy-gd"])
@pytest.mark.parametrize("noise", [0.3, 1.1, 7.7])
def test_a_run_of_libraries_is_no_less_private_than_is_said(algorithm: str, noise: float) -> None:
    """Their noise on the mean is z L over the size, exactly; ours is that or a hair less."""
    length = {} if algorithm == "cyclic" else {"steps": 9, "epochs": None}
    run = describe(algorithm, {**BATCHES, **({"batch_size": None} if algorithm == "noisy-gd" else {}), **length,
                               "noise_multiplier": noise})  # fmt: skip
    size = 1000 if algorithm == "noisy-gd" else 50
    exact = Fraction(str(noise)) * 3 / size
    assert run.noise_std is not None
    assert exact * (1 - Fraction(1, 10**14)) <= Fraction(run.noise_std) <= exact
    assert run.source("noise_std") is Source.DERIVED


# --- the same run in either word ------------------------------------------------------------------------------------

COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("rdp", HIDDEN),
    ("rdp", {"algorithm": "stop", **{**HIDDEN, "batch_size": 1}}),
    ("hockey_stick", {**HIDDEN, "diameter": 2.0, "index": 1}),
    ("shuffle", {**HIDDEN, "records": 20, "batch_size": 2}),
    ("multi_epoch", {**HIDDEN, "algorithm": "cyclic", "epochs": 3}),
    ("compare", {**HIDDEN, "algorithm": "noisy-sgd", "epochs": 3}),
    ("dp_sgd", {**BATCHES, "algorithm": "dp-sgd-gradient", "steps": 30}),
]


@pytest.mark.parametrize(("command", "run"), COMMANDS)
def test_either_word_gives_the_same_answer(command: str, run: dict[str, Any]) -> None:
    ask = getattr(dpcalc, command)
    size = run["batch_size"]
    by_multiplier = ask(**run, noise_multiplier=2.0 * size, delta=1e-6).cases[0]
    by_noise_std = ask(**run, noise_std=6.0, delta=1e-6).cases[0]
    assert by_multiplier.best.value == pytest.approx(by_noise_std.best.value, rel=1e-12)
    # The noise is a hair less. Sums over a lattice are monotone in it but for their last digit.
    assert by_multiplier.best.value >= by_noise_std.best.value * (1.0 - 2.0**-51)
    assert by_multiplier.inputs["noise_std"][1] == by_noise_std.inputs["noise_multiplier"][1] == Source.DERIVED
    assert by_noise_std.inputs["noise_multiplier"][0] == pytest.approx(2.0 * size, rel=1e-15)


@pytest.mark.parametrize(
    ("command", "run"),
    [
        *COMMANDS[:3],
        COMMANDS[4],
        *(pytest.param(*each, marks=pytest.mark.campaign) for each in (COMMANDS[3], *COMMANDS[5:])),
    ],
)
def test_it_is_solved_for_and_meets_the_budget_when_asked_again(command: str, run: dict[str, Any]) -> None:
    ask = getattr(dpcalc, command)
    found = ask(**run, epsilon=1.0, delta=1e-6, solve="noise_multiplier").cases[0].best
    assert found.quantity == "noise_multiplier"
    again = ask(**run, noise_multiplier=found.value, delta=1e-6).cases[0].best
    assert 0.999 <= again.value <= 1.0
    std = ask(**run, epsilon=1.0, delta=1e-6).cases[0].best
    assert std.details["noise_multiplier"] == found.value
    assert found.value == pytest.approx(std.value / 3.0 * run["batch_size"], rel=1e-12)


def test_a_certificate_is_of_the_noise_that_follows(ask_json: Any) -> None:
    line = "rdp -n 100 -L 3 --smoothness 1 --eta 0.1 --batch-size 7 --certify -d 1e-6"
    for more in ("--noise-multiplier 1.7", "-e 1 --solve noise_multiplier"):
        [case] = ask_json(f"{line} {more}")
        assert "certified" in best(case)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "run", "because"),
    [
        ("rdp", {**BATCHES, "noise_multiplier": 1.0, "noise_std": 1.0}, "both noise_std and noise_multiplier"),
        ("shuffle", {**BATCHES, "noise_multiplier": 1.0, "laplace_scale": 1.0}, "both laplace_scale and noise_mult"),
        ("multi_epoch", {**BATCHES, "step_size": 1.0, "noise_multiplier": 1.0, "langevin_std": 1.0}, "both "),
        ("rdp", {"records": 10, "noise_multiplier": 1.0}, "lipschitz is not known"),
        ("multi_epoch", {"algorithm": "noisy-gd", "lipschitz": 1.0, "noise_multiplier": 1.0}, "records is not known"),
        ("multi_epoch", {**BATCHES, "batch_size": 2000, "noise_multiplier": 1.0}, "exceeds the 1000 records"),
        ("rdp", {**BATCHES, "lipschitz": 1e-300, "noise_multiplier": 1e-9}, "out of range"),
        ("rdp", {**BATCHES, "lipschitz": 1e300, "noise_multiplier": 1e300}, "out of range"),
        ("rdp", {**HIDDEN, "noise_multiplier": 1.0, "epsilon": 1.0, "solve": "lipschitz"}, "multiple of it"),
        ("rdp", {**HIDDEN, "noise_multiplier": 1.0, "epsilon": 1.0, "solve": "batch_size"}, "moves with it"),
        ("rdp", {**HIDDEN, "noise_std": 1.0, "epsilon": 1.0, "solve": "noise_multiplier"}, "the noise is given"),
        ("multi_epoch", {"algorithm": "noisy-gd", "lipschitz": 1.0, "records": 9, "steps": 2, "noise_multiplier": 1.0,
                         "epsilon": 1.0, "solve": "records"}, "moves with it"),
        ("dp_sgd", {**BATCHES, "algorithm": "dp-sgd-output", "noise_multiplier": 1.0}, "takes no noise_multiplier"),
    ],
)  # fmt: skip
def test_what_has_no_noise_multiplier_is_refused(command: str, run: dict[str, Any], because: str) -> None:
    with pytest.raises(SpecError, match=because):
        getattr(dpcalc, command)(**{"delta": 1e-6, **run})


def test_noise_on_the_output_is_no_noise_on_a_mean() -> None:
    run = describe("dp-sgd-output", {**BATCHES, "batch_size": None, "noise_std": 1.0})
    assert run.noise_multiplier is None
    assert run.multiplier_at(1.0) is None


@pytest.mark.parametrize("value", [1e-3, 0.1, 1.1, 3.3, 1e6])
@pytest.mark.parametrize(("norm", "size"), [(1.0, 1), (0.1, 3), (7.7, 60000), (1e-8, 10**15)])
def test_a_multiplier_rounded_up_gives_the_noise_or_more(value: float, norm: float, size: int) -> None:
    run = describe("noisy-gd", {"records": size, "lipschitz": norm, "steps": 1})
    above, below = (run.multiplier_at(value, rounded_up=up) for up in (True, False))
    assert above is not None
    assert below is not None
    assert noise.std_of(above, norm, size) >= value > noise.std_of(below, norm, size)
    assert math.isclose(above, below, rel_tol=1e-14)
