"""Matrices from files: sensitivities against all uses and gradients, adaptive runs, and files that are refused."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files import reading
from dpcalc.model.matrix_file import Matrix, read_matrix
from dpcalc.model.quantities import Mechanism
from dpcalc.model.strategy import Strategy
from dpcalc.notions import gaussian
from tests.oracles.correlated import dense, matrix_of
from tests.theorems.test_correlated import patterns

ZERO_OUT: dict[str, Any] = {"adjacency": "zero-out", "delta": 1e-6}


def attained(gram: np.ndarray, rng: np.random.Generator) -> float:
    """The largest norm that is reached from some starts by turning one vector at a time: a lower bound."""
    best = 0.0
    for _ in range(6):
        vectors = rng.standard_normal((len(gram), len(gram)))
        vectors /= np.linalg.norm(vectors, axis=1)[:, None]
        for _ in range(60):
            for i in range(len(gram)):
                towards = gram[i] @ vectors - gram[i, i] * vectors[i]
                length = float(np.linalg.norm(towards))
                vectors[i] = towards / length if length > 1e-12 else vectors[i]
        best = max(best, float(np.sum((vectors @ vectors.T) * gram)))
    return math.sqrt(best)


@pytest.mark.few(1)
@pytest.mark.parametrize("repeats", [True, False])
def test_no_pattern_and_no_gradients_move_more(repeats: bool) -> None:
    r, rng = random.Random(5), np.random.default_rng(5)
    for _ in range(60):
        steps, uses, separation = r.randint(1, 8), r.randint(1, 4), r.randint(1, 4)
        matrix = matrix_of(r, steps)
        x = matrix.entries.T @ matrix.entries
        starts = [range(first, steps, separation)[:uses] for first in range(steps)]
        of = [tuple(at) for at in starts] if repeats else patterns(steps, uses, separation, exactly=False)
        grams = [x[np.ix_(pattern, pattern)] for pattern in of]
        bound = Strategy(Mechanism.FILE, steps, matrix.bands, uses, matrix, repeats).sensitivity(separation)
        absolute = math.sqrt(max(float(abs(gram).sum()) for gram in grams))
        assert bound >= absolute * (1 - 1e-14) or matrix.falls
        assert bound >= max(attained(gram, rng) for gram in grams) * (1 - 1e-12)
        if repeats or matrix.bands <= separation or matrix.falls:
            assert bound == pytest.approx(absolute, rel=1e-12)


def test_what_repeats_moves_no_more_than_what_need_not() -> None:
    r = random.Random(6)
    for _ in range(40):
        steps, uses, separation = r.randint(1, 40), r.randint(1, 6), r.randint(1, 9)
        matrix = matrix_of(r, steps)
        free, fixed = (
            Strategy(Mechanism.FILE, steps, 1, uses, matrix, repeats).sensitivity(separation)
            for repeats in (False, True)
        )
        assert fixed <= free * (1 + 1e-12)


def test_many_uses_are_bounded_by_their_largest_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = matrix_of(random.Random(7), 12)
    exact = matrix.sensitivity(3, 2, repeats=False)
    monkeypatch.setattr("dpcalc.model.matrix_file._MOST_CHOICES", 0.0)
    assert Matrix(matrix.entries, "").sensitivity(3, 2, repeats=False) >= exact


def test_three_columns_at_120_degrees_move_more_than_any_signs() -> None:
    """Signs reach a norm of 2, vectors 3/sqrt 2; the columns are those of a matrix that is all but singular."""
    turned = np.array([[math.cos(2 * math.pi * k / 3), math.sin(2 * math.pi * k / 3), 1e-9] for k in range(3)]).T
    lower = np.linalg.cholesky((turned.T @ turned)[::-1, ::-1] + 1e-9 * np.eye(3))[::-1, ::-1].T
    matrix = Matrix(np.ascontiguousarray(np.tril(lower)), "")
    assert np.allclose(matrix.entries.T @ matrix.entries, turned.T @ turned, atol=1e-8)
    signs = max(
        float(np.linalg.norm(matrix.entries @ np.array(chosen))) for chosen in itertools.product((1, -1), repeat=3)
    )
    assert signs == pytest.approx(2.0, rel=1e-6)
    assert attained(matrix.entries.T @ matrix.entries, np.random.default_rng(0)) == pytest.approx(math.sqrt(4.5))
    assert matrix.sensitivity(3, 1, repeats=True) == pytest.approx(math.sqrt(6.0), rel=1e-6)


def test_gradients_that_depend_on_releases_gain_nothing(tmp_path: Path) -> None:
    """P(A) - e^eps Q(A) of an adaptive run with a matrix of both signs, by simulation, is not above the bound."""
    steps, sigma, epsilon, used = 6, 2.0, 0.3, (0, 2, 4)
    c = np.eye(steps) + np.tril(np.random.default_rng(3).uniform(-0.7, 0.7, (steps, steps)), -1)
    np.save(tmp_path / "c.npy", c)
    rng, x = np.random.default_rng(7), np.linalg.inv(c)
    noise = rng.standard_normal((200_000, steps)) @ x.T * sigma
    released, shifts, drift = np.zeros_like(noise), np.zeros_like(noise), c.T @ c
    for t in range(steps):
        if t in used:  # the gradient that agrees best with what earlier ones have added, as far as releases tell
            seen = (released[:, :t] @ c[:t, :t].T) @ c[:t, :t] @ np.sign(drift[:t, t]) if t else np.ones(len(noise))
            shifts[:, t] = np.where(seen > 0, 1.0, -1.0)
        released[:, t] = shifts[:, t] + noise[:, t]
    white = (released - shifts) @ c.T / sigma, released @ c.T / sigma
    ratio = 0.5 * (white[1] ** 2 - white[0] ** 2).sum(axis=1)
    delta = float(np.maximum(1.0 - np.exp(epsilon - ratio), 0.0).mean())
    case = dpcalc.dp_ftrl(
        schedule=tmp_path / "c.npy", epochs=3, noise_multiplier=sigma, adjacency="zero-out", epsilon=epsilon
    ).cases[0]
    assert delta <= math.exp(case.best.log_delta) + 4e-3
    mu = math.sqrt(max(float(abs(drift[np.ix_(p, p)]).sum()) for p in ((0, 2, 4), (1, 3, 5)))) / sigma
    assert case.best.log_delta == pytest.approx(gaussian.log_delta(mu=mu, epsilon=epsilon), rel=1e-9)


@pytest.mark.parametrize("scaling", ["matrix", "columns", "sensitivity"])
@pytest.mark.parametrize("name", ["c.npy", "c.csv"])
def test_a_file_with_the_square_root_is_the_square_root(tmp_path: Path, scaling: str, name: str) -> None:
    c = dense("banded-sqrt", 24, 5)
    c = np.tril([[c[abs(i - j), 0] for j in range(24)] for i in range(24)])  # a matrix function errs a little
    np.save(tmp_path / "c.npy", c)
    np.savetxt(tmp_path / "c.csv", c, delimiter=",", fmt="%.17g")
    given = {**ZERO_OUT, "noise_multiplier": 3.0, "scaling": scaling, "epochs": 3}
    of_file = dpcalc.dp_ftrl(schedule=tmp_path / name, **given).cases[0].best.value
    named = dpcalc.dp_ftrl(mechanism="banded-sqrt", bands=5, steps=24, **given).cases[0].best.value
    assert of_file == pytest.approx(named, rel=1e-9)


def test_a_banded_file_is_amplified_by_sampling(tmp_path: Path) -> None:
    c = dense("banded-sqrt", 40, 4)
    np.save(tmp_path / "c.npy", c)
    given = {"adjacency": "remove", "delta": 1e-6, "noise_multiplier": 3.0, "sampling": "poisson", "sample_rate": 0.05}
    case = dpcalc.dp_ftrl(schedule=tmp_path / "c.npy", **given).cases[0]
    named = dpcalc.dp_ftrl(mechanism="banded-sqrt", bands=4, steps=40, **given).cases[0].best.value
    assert case.best.bound == "correlated.banded_poisson"
    assert case.best.value == pytest.approx(named, rel=1e-6)


GOOD = "1,0\n0.5,1\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "has no rows"),
        ("1,0\n0.5,1\n0,0\n", "3 rows and 2 columns"),
        ("1,0\n0.5\n", "1 numbers, and the first row has 2"),
        ("1,0\nnan,1\n", "not finite"),
        ("1,0\n1e400,1\n", "not finite"),
        ("1,2\n0,1\n", "above the diagonal"),
        ("1,0\n1,0\n", "0 on the diagonal"),
        ("1,0\nx,1\n", "c.csv:2:1"),
        ("1e-120,0\n0,1e-120\n", "no entry as large"),
        ("1e120,0\n0,1\n", "above 1e100"),
    ],
)
def test_files_that_are_no_such_matrix_are_refused(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "c.csv"
    path.write_text(text)
    with pytest.raises(SpecError, match=why):
        read_matrix(str(path))


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.ones(3), "shape"),
        (np.ones((2, 2, 2)), "shape"),
        (np.ones((1, reading.MATRIX_STEPS + 1)), "shape"),
        (np.eye(2, dtype=complex), "type"),
        (np.eye(2, dtype=bool), "type"),
        (np.eye(2, dtype=np.longdouble), "type"),
        (np.array([[1, None]], dtype=object), "readable numpy file"),
    ],
)
def test_arrays_that_are_no_such_matrix_are_refused(tmp_path: Path, array: np.ndarray, why: str) -> None:
    if array.dtype == np.float64 and why == "type":
        pytest.skip("long doubles are doubles here")
    np.save(tmp_path / "c.npy", array, allow_pickle=True)
    with pytest.raises(SpecError, match=why):
        read_matrix(str(tmp_path / "c.npy"))


def test_a_header_that_claims_more_than_the_file_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.npy"
    np.save(path, np.eye(3))
    path.write_bytes(path.read_bytes().replace(b"(3, 3)", b"(9, 9)"))
    with pytest.raises(SpecError, match="readable numpy file"):
        read_matrix(str(path))


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"mechanism": "sqrt"}, "mechanism is that of the matrix"),
        ({"bands": 2}, "bands is that of the matrix"),
        ({"steps": 3}, "steps is that of the matrix"),
        ({"mechanism": "file", "schedule": None, "steps": 2}, "which matrix"),
        ({"adjacency": "add-remove"}, "moves all later ones"),
        ({"schedule": "c.txt"}, "unknown kind"),
        ({"schedule": "missing.npy"}, "cannot read"),
    ],
)
def test_what_contradicts_the_file_is_refused(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    (tmp_path / "c.csv").write_text(GOOD)
    asked = {**ZERO_OUT, "schedule": tmp_path / "c.csv", "epochs": 1, "noise_multiplier": 2.0, **given}
    with pytest.raises(DpcalcError, match=why):
        dpcalc.dp_ftrl(**asked)


def test_a_recipe_names_the_file_beside_it_and_reads_it_as_it_is_then(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text(GOOD)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "dpcalc: recipe/1\ncases:\n  ftrl:\n    command: dp-ftrl\n    schedule: c.csv\n    epochs: 2\n"
        "    noise_multiplier: 20\n    adjacency: zero-out\n    delta: 1e-6\n    assert: epsilon <= 1\n"
    )
    assert dpcalc.check(recipe).exit_code == 0
    (tmp_path / "c.csv").write_text("1,0\n40,1\n")
    assert dpcalc.check(recipe).exit_code == 1


def test_a_card_knows_the_file_by_its_hash(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(GOOD)
    card = dpcalc.dp_ftrl(schedule=path, epochs=2, noise_multiplier=5.0, **ZERO_OUT).card()
    assert str(path) not in str(card)
    assert dpcalc.verify(card, schedule=path).passed
    path.write_text("1,0\n0.75,1\n")
    assert not dpcalc.verify(card, schedule=path).passed
