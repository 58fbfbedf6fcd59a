"""Correlated noise: reference values, dense matrices, every pattern of uses, adaptive gradients, and small runs."""

import itertools
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.matrix_file import Matrix
from dpcalc.model.quantities import Mechanism
from dpcalc.model.run import describe
from dpcalc.model.strategy import Strategy, noise_at
from dpcalc.model.workload import Workload
from dpcalc.notions import gaussian
from dpcalc.render.chart import chart
from tests.oracles import sampling as oracle
from tests.oracles.correlated import best_of_three, best_of_two_rounds, dense
from tests.reference.correlated import CORRELATED
from tests.reference.evaluate import evaluate

CASES = json.loads((Path(__file__).parents[1] / "reference" / "correlated.json").read_text())
ABOVE = {
    "sensitivity": 1e-10, "gaussian_epsilon": 1e-10, "tree_sensitivity_squared": 0.0, "banded_poisson_epsilon": 1e-4,
}  # fmt: skip
"""How far above a reference value a guarantee may lie, relatively."""


MATRICES = [m for m in Mechanism if m not in ("blt", "file", "best")]


def patterns(steps: int, uses: int, separation: int, exactly: bool) -> list[tuple[int, ...]]:
    if exactly:
        return [tuple(range(first, steps, separation))[:uses] for first in range(min(separation, steps))]
    return [
        pattern
        for size in range(1, uses + 1)
        for pattern in itertools.combinations(range(steps), size)
        if all(b - a >= separation for a, b in itertools.pairwise(pattern))
    ]


@pytest.mark.parametrize("case", [c for c in CASES if c["quantity"] in ABOVE], ids=lambda case: case["id"])
def test_guarantees_are_just_above_the_reference(case: dict[str, Any]) -> None:
    value = float(case["value"])
    assert value * (1 - 2e-8 * (case["quantity"] == "banded_poisson_epsilon")) <= evaluate(
        case["quantity"], case["inputs"]
    ) <= value * (1 + ABOVE[case["quantity"]])  # fmt: skip


@pytest.mark.parametrize("case", [c for c in CASES if "prefix_error" in c["quantity"]], ids=lambda case: case["id"])
def test_errors_are_those_of_the_reference(case: dict[str, Any]) -> None:
    assert evaluate(case["quantity"], case["inputs"]) == pytest.approx(float(case["value"]), rel=1e-10)


def test_the_reference_is_covered() -> None:
    assert {*ABOVE, "prefix_error_rms", "prefix_error_max"} == set(CORRELATED)


@pytest.mark.parametrize("mechanism", MATRICES)
def test_sensitivity_is_that_of_the_worst_of_all_patterns(mechanism: Mechanism) -> None:
    r = random.Random(str(mechanism))
    for _ in range(25):
        steps, uses, separation = r.randint(1, 9), r.randint(1, 4), r.randint(1, 4)
        bands = r.randint(1, steps)
        c = dense(mechanism, steps, bands)
        of = patterns(steps, uses, separation, mechanism == "tree")
        truth = max(float(np.linalg.norm(c[:, pattern].sum(axis=1))) for pattern in of)
        value = Strategy(mechanism, steps, bands, uses).sensitivity(separation)
        assert value == pytest.approx(truth, rel=1e-9)
        assert value >= truth * (1 - 1e-12)  # of the dense matrix, which errs by so much


@pytest.mark.parametrize("mechanism", MATRICES)
def test_errors_of_prefix_sums_are_those_of_dense_matrices(mechanism: Mechanism) -> None:
    steps, bands = 12, 4
    sums = np.tril(np.ones((steps, steps)))
    c = dense(mechanism, steps, bands)
    if mechanism == "tree":  # nodes are used online: a node is averaged with what its own children say
        variances = [online_variance(t) for t in range(1, steps + 1)]
    else:
        variances = list(((sums @ np.linalg.inv(c)) ** 2).sum(axis=1))
    error = Strategy(mechanism, steps, bands).noise()
    assert error.rms == pytest.approx(math.sqrt(np.mean(variances)), rel=1e-9)
    assert error.largest == pytest.approx(math.sqrt(max(variances)), rel=1e-9)


def online_variance(prefix: int) -> float:
    """The least variance of a sum of the tree's nodes below each binary digit, by generalised least squares."""
    total = 0.0
    for height in range(prefix.bit_length()):
        if prefix >> height & 1:
            below, ones = dense("tree", 1 << height, 1), np.ones(1 << height)
            total += float(ones @ np.linalg.inv(below.T @ below) @ ones)
    return total


def test_the_column_of_blt_is_close_to_the_square_root_and_falls() -> None:
    of = Strategy(Mechanism.BLT, 1000, uses=1)
    root = Strategy(Mechanism.SQRT, 1000)
    product = of.sensitivity(1000) * of.noise().largest
    assert product <= 1.02 * root.sensitivity(1000) * root.noise().largest


def test_gradients_that_depend_on_releases_gain_nothing() -> None:
    """The best adaptive play against three steps of any matrix, of any signs; where C'C >= 0 it attains the bound."""
    r, ratios = random.Random(3), []
    for number in range(6):
        c = np.tril([[r.gauss(0.0, 1.0) for _ in range(3)] for _ in range(3)])
        c[np.diag_indices(3)] = [r.uniform(0.3, 1.5) for _ in range(3)]
        matrix = Matrix(abs(c) if number == 0 else c, "c.npy")
        mu, epsilon = r.uniform(0.5, 2.5), r.uniform(0.0, 1.5)
        truth = best_of_three(matrix.entries, matrix.sensitivity(3, 1, repeats=False) / mu, epsilon)
        ratios.append(truth / math.exp(gaussian.log_delta(mu=mu, epsilon=epsilon)))
    assert max(ratios) <= 1.0 + 1e-9
    assert ratios[0] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("adjacency", ["remove", "add", "replace-one"])
def test_gradients_that_depend_on_releases_gain_nothing_on_two_rounds_of_bands(adjacency: str) -> None:
    """Four steps with two bands: the record's second gradient may be any function of what its first one did."""
    lengths = (1.0, 0.5, 0.0, -1.0)
    moves = {
        "remove": [(x, 0.0) for x in lengths], "add": [(0.0, x) for x in lengths],
        "replace-one": [(x, y) for x in lengths for y in lengths],
    }  # fmt: skip
    for rate, z, epsilon in ((0.1, 0.7, 0.5), (0.3, 1.0, 0.2), (0.45, 2.0, 1.0)):
        truth = best_of_two_rounds(moves[adjacency], 2.0 * rate, z, epsilon)
        bound = dpcalc.dp_ftrl(
            mechanism="banded-sqrt", bands=2, steps=4, sampling="poisson", sample_rate=rate, noise_multiplier=z,
            scaling="columns", adjacency=adjacency, epsilon=epsilon,
        ).cases[0].best  # fmt: skip
        # The grid errs by its spacing squared where an excess turns positive: from 401 to 1601 points by 2e-5 at most.
        assert truth * (1.0 - 3e-5) <= math.exp(bound.log_delta) <= truth * (1.0 + 1e-4)


@pytest.mark.few(2)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("sampling", ["poisson", "balls-in-bins"])
def test_no_small_banded_run_is_less_private(sampling: str, adjacency: str) -> None:
    """Two bands, four steps: two rounds of a group, in which the sum along the column tells all there is."""
    r = random.Random(sampling + adjacency)
    for _ in range(10):
        z, epsilon, rate = r.uniform(0.5, 3.0), r.uniform(0.0, 2.0), r.uniform(0.05, 0.5)
        given = {
            "mechanism": "banded-sqrt", "bands": 2, "steps": 4, "noise_multiplier": z, "scaling": "columns",
            "sampling": sampling, "adjacency": adjacency,
        }  # fmt: skip
        given |= {"sample_rate": rate} if sampling == "poisson" else {"epochs": 1}
        law = {
            "poisson": lambda n, rate=rate: list(oracle.poisson(n, 2 * rate, 2)),
            "balls-in-bins": lambda n: list(oracle.balls_in_bins(n, 2, 1)),
        }[sampling]
        x = r.choice((1.0, -1.0, 0.7))
        longer, shorter = [0.0, x], [0.0, -x] if adjacency == "replace-one" else [0.0]
        p, q = (longer, law(2)), (shorter, law(len(shorter)))
        truth = max(oracle.hockey_stick(*pair, z, epsilon) for pair in ((p, q), (q, p)))
        bound = dpcalc.dp_ftrl(**given, epsilon=epsilon).cases[0].best
        assert truth <= math.exp(bound.log_delta) * (1 + 1e-9) + 1e-12


def test_the_columns_of_a_banded_matrix_are_used_whole() -> None:
    """A matrix scaled to columns of norm 1 is the matrix itself with noise larger by the norm of its first column."""
    given: dict[str, Any] = {
        "mechanism": "banded-sqrt", "bands": 4, "steps": 40, "epochs": 2, "sampling": "poisson", "delta": 1e-6,
        "adjacency": "remove",
    }  # fmt: skip
    norm = Strategy(Mechanism.BANDED_SQRT, 40, 4).column_norm()
    assert norm[0] <= math.sqrt(1 + 1 / 4 + 9 / 64 + 25 / 256) <= norm[1]
    plain = dpcalc.dp_ftrl(**given, noise_multiplier=3.0, scaling="columns").cases[0].best.value
    scaled = dpcalc.dp_ftrl(**given, noise_multiplier=3.0 * norm[1]).cases[0].best.value
    assert scaled == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mechanism": "bisr"}, "bands"),
        ({"mechanism": "sqrt", "adjacency": "add-remove"}, "moves all later ones"),
        ({"mechanism": "sqrt", "sampling": "poisson"}, "banded"),
        ({"mechanism": "banded-sqrt", "bands": 3, "sampling": "balls-in-bins"}, "do not divide"),
        ({"mechanism": "banded-sqrt", "bands": 16, "sampling": "poisson"}, "would exceed 1"),
        ({"mechanism": "banded-sqrt", "bands": 2, "sampling": "poisson", "scaling": "sensitivity"}, "number of uses"),
        ({"mechanism": "tree", "sampling": "shuffle"}, "same order"),
        ({"mechanism": "sqrt", "sampling": "fixed"}, "public orders"),
    ],
)  # fmt: skip
def test_what_is_not_covered_is_refused(changes: dict[str, Any], why: str) -> None:
    given = {"steps": 80, "epochs": 8, "noise_multiplier": 2.0, "adjacency": "zero-out", "delta": 1e-6}
    with pytest.raises(NotApplicable, match=why):
        dpcalc.dp_ftrl(**{**given, **changes})


def test_a_tree_needs_passes_that_repeat() -> None:
    with pytest.raises(SpecError, match="same order"):
        describe("correlated", {"mechanism": "tree", "steps": 80, "participations": 3, "separation": 10})


@pytest.mark.parametrize("given", [{"separation": 50}, {"participations": 2}, {"participations": 2, "separation": 50}])
def test_what_follows_from_the_epochs_is_not_given_too(given: dict[str, int]) -> None:
    """Five passes use a record five times: a wider separation would leave uses out of the account."""
    with pytest.raises(SpecError, match="follow from the epochs"):
        describe("correlated", {"mechanism": "sqrt", "steps": 100, "epochs": 5, **given})


def test_a_recursion_over_too_many_bands_is_refused() -> None:
    run = {"mechanism": "bisr", "bands": 10_000, "steps": 10**6, "epochs": 1, "adjacency": "zero-out"}
    with pytest.raises(NotApplicable, match="take too long"):
        dpcalc.dp_ftrl(**run, noise_multiplier=2.0, delta=1e-6)


def test_shuffled_passes_may_use_a_record_twice_in_a_row() -> None:
    run = describe("correlated", {"mechanism": "sqrt", "steps": 80, "epochs": 8, "sampling": "shuffle"})
    assert (run.participations, run.separation) == (8, 1)


def noise_of(**given: Any) -> dict[str, Any]:
    report = dpcalc.dp_ftrl(adjacency="zero-out", delta=1e-6, **given)
    [note] = [
        n.as_json() for n in report.cases[0].note_data
        if n.kind == "prefix_noise"
    ]  # fmt: skip
    return note


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("uses", "epsilon", "sampled", "unsampled"),
    [(1, 1.0, 15.6, 12.9), (1, 4.0, 11.4, 3.64), (20, 1.0, 63.1, 88.6), (20, 4.0, 23.6, 25.0)],
)
def test_noise_in_prefix_sums_at_the_same_guarantee(
    uses: int, epsilon: float, sampled: float, unsampled: float
) -> None:
    """Of a thousand steps, as tabulated by another program: DP-SGD with Poisson batches, and the best matrix."""
    note = noise_of(mechanism="best", steps=1000, epochs=uses, epsilon=epsilon)
    [dp_sgd] = [other["rms"] for other in note["others"] if other.get("algorithm") == "dp-sgd"]
    assert dp_sgd == pytest.approx(sampled, rel=4e-3)
    # Its best is by a search of its own, which left out bands as many as the steps of an epoch.
    assert 0.95 * unsampled <= note["rms"] <= 1.015 * unsampled


@pytest.mark.parametrize(
    ("mechanism", "bands", "value"), [("identity", 1, 213.5), ("sqrt", 1, 23.66), ("bisr", 256, 23.54)]
)
def test_noise_with_momentum_and_decay_is_as_tabulated(mechanism: Mechanism, bands: int, value: float) -> None:
    """Of a thousand steps, one use, momentum 0.9 and decay 1e-4: sensitivity times root mean square."""
    of, workload = Strategy(Mechanism(mechanism), 1000, bands), Workload(0.9, 1e-4)
    assert of.sensitivity(1000) * of.noise(workload).rms == pytest.approx(value, rel=3e-4)


@pytest.mark.parametrize("workload", [Workload(0.9), Workload(0.5, 0.1), Workload(0.8, 0.05, 0.4), Workload(0, 0, 1)])
@pytest.mark.parametrize("mechanism", ["identity", "sqrt", "bisr", "file"])
def test_noise_of_iterates_is_that_of_the_loop(mechanism: str, workload: Workload) -> None:
    """Each column of C^-1 is carried through the loop of the optimiser, step by step."""
    steps, bands = 40, 5
    c = dense("sqrt" if mechanism == "file" else mechanism, steps, bands)
    update, iterate, variances = np.zeros(steps), np.zeros(steps), []
    cooled = round(workload.cool_down * steps)
    for t, row in enumerate(np.linalg.inv(c)):
        rate = 1.0 if t < steps - cooled else (steps - t) / cooled
        update = workload.momentum * update + row
        iterate = (1.0 - workload.decay * rate) * iterate + rate * update
        variances.append(float(iterate @ iterate))
    matrix = Matrix(np.tril(c), "") if mechanism == "file" else None
    noise = Strategy(Mechanism(mechanism), steps, bands, matrix=matrix).noise(workload)
    assert noise.rms == pytest.approx(math.sqrt(np.mean(variances)), rel=1e-9)
    assert noise.largest == pytest.approx(math.sqrt(max(variances)), rel=1e-9)


@pytest.mark.campaign
def test_a_long_cool_down_is_interpolated_closely() -> None:
    steps, workload = 1500, Workload(0.9, 1e-3, 0.5)
    c = dense("bisr", steps, 4)
    long = Strategy(Mechanism.BISR, steps, 4).noise(workload)
    whole = Strategy(Mechanism.FILE, steps, matrix=Matrix(np.tril(c), "")).noise(workload)
    assert long.rms == pytest.approx(whole.rms, rel=1e-3)
    assert long.largest == pytest.approx(whole.largest, rel=1e-3)


def test_what_is_not_said_of_the_matrix_is_chosen_where_the_noise_is_sought() -> None:
    given: dict[str, Any] = {"steps": 400, "epochs": 4}
    asked = [dict[str, Any](), {"mechanism": "bisr"}, {"mechanism": "banded-sqrt"}]
    chosen = [describe("correlated", {**given, **more}) for more in asked]
    noise = [noise_at(Strategy(run.mechanism, 400, run.bands or 1, 4), 100) for run in chosen]
    assert noise[0] <= 1.03 * min(noise)
    for run, value in zip(chosen[1:], noise[1:], strict=True):
        tried = [noise_at(Strategy(run.mechanism, 400, bands, 4), 100) for bands in range(1, 400)]
        assert value <= 1.05 * min(tried)
    with pytest.raises(NotApplicable, match="needs mechanism"):
        dpcalc.dp_ftrl(**given, noise_multiplier=3.0, adjacency="zero-out", delta=1e-6)
    again = dpcalc.dp_ftrl(**given, adjacency="zero-out", delta=1e-6, epsilon=4.0).cases[0]
    assert (again.value("mechanism"), again.value("bands")) == (chosen[0].mechanism, chosen[0].bands)


def test_the_best_matrix_is_that_for_the_iterates_that_are_asked_about() -> None:
    """With an iterate that forgets at once independent noise is best, for sums it is the worst."""
    runs = [describe("correlated", {"steps": 300, "epochs": 3, "decay": decay}) for decay in (0.999, 0.0)]
    assert runs[0].mechanism == Mechanism.IDENTITY != runs[1].mechanism


@pytest.mark.campaign
def test_a_sweep_draws_the_noise_beside_that_of_dp_sgd() -> None:
    """Against epochs the curves go on where the matrix that is chosen changes."""
    given: dict[str, Any] = {"steps": 240, "epsilon": 4.0, "delta": 1e-6, "adjacency": "zero-out"}
    by_epochs = dpcalc.dp_ftrl(epochs=[1, 12], **given)
    by_bands = dpcalc.dp_ftrl(epochs=4, mechanism="banded-sqrt", bands=[2, 60], **given)
    for report in (by_epochs, by_bands):
        panel = chart(report).panels[-1]
        assert [series.label for series in panel.series] == ["noise", "DP-SGD"]
        for case, own, sampled in zip(report.cases, *(series.ys for series in panel.series), strict=True):
            of = Strategy(Mechanism(case.value("mechanism")), 240, case.value("bands") or 1, case.value("epochs"))
            assert own == pytest.approx(case.best.value * of.noise().rms, rel=1e-9)
            rate = case.value("epochs") / 240
            alone = dpcalc.noise_multiplier(
                epsilon=4.0, delta=1e-6, sampling="poisson", adjacency="zero-out", sample_rate=rate, steps=240
            )
            assert sampled == pytest.approx(alone * math.sqrt(241 / 2), rel=1e-3)
    assert len({case.value("mechanism") for case in by_epochs.cases}) > 1


@pytest.mark.parametrize(
    ("unknown", "given", "tried"),
    [
        ("epochs", {"mechanism": "sqrt", "steps": 60, "noise_multiplier": 5.0}, [1, 2, 3, 4, 5, 6, 10, 12]),
        ("epochs", {"mechanism": "tree", "steps": 60, "noise_multiplier": 9.0}, [1, 2, 3, 4, 5, 6, 10, 12]),
        ("bands", {"mechanism": "banded-sqrt", "steps": 60, "epochs": 6, "noise_multiplier": 4.0}, range(1, 61)),
        ("bands", {"mechanism": "bisr", "steps": 60, "epochs": 3, "noise_multiplier": 3.0}, range(1, 61)),
        (
            "bands",
            {"mechanism": "banded-sqrt", "steps": 60, "epochs": 2, "noise_multiplier": 1.0, "scaling": "columns",
             "sampling": "balls-in-bins"},
            [1, 2, 3, 5, 6, 10, 15, 30],
        ),
    ],
)  # fmt: skip
def test_what_is_solved_for_is_the_most_of_all_that_are_tried(
    unknown: str, given: dict[str, Any], tried: Sequence[int]
) -> None:
    shared: dict[str, Any] = {**given, "delta": 1e-6, "adjacency": "zero-out"}
    solved = dpcalc.dp_ftrl(**shared, epsilon=4.0, solve=unknown).cases[0].best
    enough = [
        value for value in tried if dpcalc.dp_ftrl(**shared, **{unknown: value}).cases[0].best.value <= 4.0
    ]  # fmt: skip
    assert solved.value == max(enough) < max(tried)


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        ({"mechanism": "sqrt", "noise_multiplier": 5.0}, SpecError, "have a number of them"),
        ({"mechanism": "bisr"}, SpecError, "the best ones are chosen"),
        ({"mechanism": "bisr", "noise_multiplier": 0.1}, Infeasible, "at bands = 1 epsilon is"),
    ],
)
def test_bands_that_cannot_be_solved_for_are_refused(given: dict[str, Any], error: type[DpcalcError], why: str) -> None:
    with pytest.raises(error, match=why):
        dpcalc.dp_ftrl(steps=200, epochs=2, epsilon=4.0, delta=1e-6, solve="bands", **given)


def test_the_best_mechanism_needs_passes() -> None:
    with pytest.raises(SpecError, match="public order"):
        describe("correlated", {"mechanism": "best", "steps": 80})
    with pytest.raises(SpecError, match="public order"):
        describe("correlated", {"mechanism": "best", "steps": 80, "epochs": 4, "sampling": "poisson"})
