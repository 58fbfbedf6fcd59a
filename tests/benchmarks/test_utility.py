"""The contestants of benchmarks.utility against closed forms, and the page that it writes.

The packages are not installed here: what they are told is tested, not what they answer.
"""

import math
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

from benchmarks.utility import gradients, objectives, packages, report, results
from benchmarks.utility.budgets import DELTA, added_or_removed, gaussian_mu, kappa
from benchmarks.utility.contest import BINARY, CLASSES, EPSILONS, NUMBERS, OPEN, ROLES, SETS, TITLES
from benchmarks.utility.gradients import Descent
from benchmarks.utility.problem import CONSTANT, Problem, Table, split
from benchmarks.utility.results import Key

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_gaussian_mu_has_the_delta_that_was_asked(epsilon):
    with mpmath.workdps(40):
        mu = mpmath.mpf(gaussian_mu(epsilon, DELTA))
        delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
    assert float(delta) == pytest.approx(DELTA, rel=1e-9)


def test_two_steps_of_an_added_or_removed_record_are_one_replacement():
    epsilon, delta = added_or_removed(1.0, DELTA)
    assert 2.0 * epsilon == 1.0
    assert delta + math.exp(epsilon) * delta == pytest.approx(DELTA, rel=1e-14)


def test_kappa_is_what_the_default_rule_goes_by():
    from dpcalc.notions.gaussian import largest_mu
    from dpcalc.training.rule.full_batches import signal_of

    mu = largest_mu(epsilon=1.0, log_delta_target=math.log(DELTA))
    assert kappa(1.0, 455, 30) == pytest.approx(signal_of(455, mu, 31), rel=1e-6)


def test_the_noise_of_descent_is_what_dpcalc_says_of_the_same_run():
    import dpcalc

    run = Descent(0.1, 30, 20.0)
    sigma = gradients.noise_of(run, 500, gaussian_mu(1.0, DELTA))
    report = dpcalc.compare(
        algorithm="noisy-gd", records=500, steps=30, lipschitz=0.1, step_size=20.0, release="epoch",
        noise_std=sigma, delta=DELTA,
    )  # fmt: skip
    assert report.cases[0].best.value == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("guess", [0.3, 1.999, 2.0, 2.01, 9.0])
def test_the_search_for_noise_ends_just_above_the_least(guess):
    found = packages.least(lambda noise: noise >= 2.0, guess)
    assert 2.0 <= found <= 2.0 * 1.005


def test_the_search_for_noise_starts_near_full_batches_of_one_law():
    # T steps of noise s are sqrt(T)/s together; with sampling, and for large s, rate times that in the limit.
    assert packages.clt(0.1, 1.0, 100) == pytest.approx(100.0, rel=1e-4)
    assert packages.clt(0.1, 0.5, 100) == pytest.approx(50.0, rel=1e-3)


@pytest.mark.parametrize("kind", [BINARY, CLASSES, NUMBERS])
def test_slopes_are_derivatives_of_the_loss(kind):
    rng = np.random.default_rng(0)
    columns = 3 if kind == CLASSES else 1
    scores = rng.normal(size=(5, columns))
    targets = np.array([0, 1, 1, 0, 1 if columns == 1 else 2]) if kind != NUMBERS else rng.normal(size=5)

    def loss(z, y):
        if kind == NUMBERS:
            return 0.5 * (z[0] - y) ** 2
        if kind == BINARY:
            return math.log1p(math.exp(z[0])) - y * z[0]
        return math.log(sum(map(math.exp, z))) - z[int(y)]

    found, h = gradients.slopes_of(scores, targets, kind), 1e-6
    for i, k in np.ndindex(scores.shape):
        step = h * np.eye(columns)[k]
        expected = (loss(scores[i] + step, targets[i]) - loss(scores[i] - step, targets[i])) / (2.0 * h)
        assert found[i, k] == pytest.approx(expected, abs=1e-8)


def test_a_replaced_record_moves_a_mean_gradient_by_no_more_than_the_noise_is_for():
    rows = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    other = rows.copy()
    other[0] = -rows[0]
    run = Descent(0.1, 1, 1.0)
    one, two = (gradients.descend(x, np.ones(3), NUMBERS, 0, run, 0.0, 0) for x in (rows, other))
    assert np.linalg.norm(one - two) == pytest.approx(2.0 * run.clip / 3.0)
    assert gradients.noise_of(run, 3, 2.0) == pytest.approx(np.linalg.norm(one - two) / 2.0)


@pytest.mark.parametrize(("epsilon", "records", "ridge"), [(1.0, 1000, 0.01), (0.1, 50, 0.01), (0.1, 200, 0.01)])
def test_objective_perturbation_spends_epsilon_and_no_more(epsilon, records, ridge):
    noise = objectives.perturbation(epsilon, records, ridge)
    strong = records * (ridge + noise.extra)
    jacobian = 2.0 * math.log1p(objectives.CURVATURE / strong)
    density = 2.0 / noise.scale  # the noise vector of a neighbour is at most 2 away, its density e^(-|b|/scale)
    assert jacobian + density <= epsilon * (1.0 + 1e-12)
    assert jacobian + density == pytest.approx(epsilon) or noise.extra > 0.0


def test_the_perturbed_objective_is_minimised():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = (rows[:, 0] > 0.0).astype(float)
    w = objectives.perturbed_logistic(rows, labels, 1e9, 0)  # no noise to speak of
    slopes = 1.0 / (1.0 + np.exp(-rows @ w)) - labels
    assert np.linalg.norm(rows.T @ slopes / 200 + objectives.RIDGE * w) < 1e-6


def test_the_three_releases_of_adassp_have_mu_together():
    noise, mu = objectives.sums(0.7), 0.7
    rng = np.random.default_rng(2)
    worst = np.zeros(3)
    for _ in range(200):
        x, z = (v / np.linalg.norm(v) for v in rng.normal(size=(2, 4)))
        moved = np.outer(x, x) - np.outer(z, z)
        scaled = moved / noise.products * np.where(np.eye(4, dtype=bool), 1.0, math.sqrt(2.0))
        sides = (x + z) / noise.targets
        upper = scaled[np.triu_indices(4)]
        eigen = np.abs(np.linalg.eigvalsh(moved)).max() / noise.smallest
        worst = np.maximum(worst, [np.linalg.norm(upper), np.linalg.norm(sides), eigen])
    assert np.all(worst <= mu / math.sqrt(3.0) * (1.0 + 1e-12))
    assert np.all(worst >= 0.9 * mu / math.sqrt(3.0))


def test_the_noise_that_adassp_draws_has_the_scales_that_are_accounted(monkeypatch):
    kept = {}
    monkeypatch.setattr(np.linalg, "lstsq", lambda products, sides, rcond: kept.update(p=products, s=sides) or [0.0])
    monkeypatch.setattr(objectives, "ridge_of", lambda *given: 0.0)
    drawn = []
    for seed in range(400):
        objectives.adassp(np.zeros((1, 3)), np.zeros(1), 0.7, DELTA, seed)
        assert np.array_equal(kept["p"], kept["p"].T)
        drawn.append([kept["p"][0, 0], kept["p"][0, 1], kept["s"][0]])
    noise = objectives.sums(0.7)
    expected = [noise.products, noise.products / math.sqrt(2.0), noise.targets]
    assert np.std(drawn, axis=0) == pytest.approx(expected, rel=0.15)


def test_adassp_with_no_noise_is_least_squares():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(50, 3))
    targets = rows @ [1.0, -2.0, 0.5]
    assert objectives.adassp(rows, targets, 1e12, DELTA, 0) == pytest.approx([1.0, -2.0, 0.5], abs=1e-6)


def _table(kind):
    rng = np.random.default_rng(5)
    x = rng.uniform(-3.0, 9.0, size=(40, 4))
    x[:, 3] = 7.0
    y = rng.normal(size=40) if kind == NUMBERS else np.arange(40.0) % (2 if kind == BINARY else 3)
    return Table(x, y, x.min(axis=0), x.max(axis=0))


def test_rows_are_as_long_as_the_noise_is_for():
    problem = split(_table(BINARY), BINARY, 0)
    rows = problem.rows(problem.x, CONSTANT)
    assert rows.shape == (32, 5)
    assert np.linalg.norm(rows, axis=1).max() <= 1.0 + 1e-12
    assert np.all(rows[:, -1] == CONSTANT)


def test_a_split_is_a_partition_and_the_same_again():
    table = _table(CLASSES)
    one, two = split(table, CLASSES, 3), split(table, CLASSES, 3)
    assert np.array_equal(one.x, two.x)
    assert one.classes == 3
    assert len(one.test) == 8
    both = np.vstack([one.x, one.test])
    assert np.array_equal(both[np.lexsort(both.T)], table.x[np.lexsort(table.x.T)])


def test_r2_is_of_predictions_cut_to_the_public_range():
    problem = split(_table(NUMBERS), NUMBERS, 0)
    assert problem.score(problem.answers) == 1.0
    assert problem.score(np.full(8, 1e9)) == problem.score(np.full(8, problem.target[1]))
    assert problem.in_units(problem.unit_targets()) == pytest.approx(problem.y)


def test_accuracy_is_the_share_of_right_answers():
    problem = Problem(BINARY, *[np.zeros(1)] * 4, 2, (0.0, 1.0), np.zeros(4), np.array([0.0, 1.0, 1.0, 0.0]))
    assert problem.score(np.array([False, True, False, False])) == 0.75


def _scores():
    """Return scores in which dpcalc loses at epsilon 1 on one set, wins elsewhere, and lacks a set."""
    found = {}
    for seed in range(4):
        for epsilon in EPSILONS:
            lead = -0.05 if epsilon == 1.0 else 0.05
            found[Key("spam", "dpcalc", epsilon, seed)] = 0.8 + 0.002 * seed
            found[Key("spam", "opacus", epsilon, seed)] = 0.8 - lead + 0.004 * seed
            found[Key("wine", "opacus", epsilon, seed)] = 0.5
        found[Key("spam", "not-private", 0.0, seed)] = 0.9
        found[Key("spam", "constant", 0.0, seed)] = 0.6
    return found


def test_losses_come_first_and_are_counted():
    page = report.render(_scores())
    assert page.index("## Where dpcalc loses") < page.index("## Won, lost, open") < page.index("### spam")
    assert "dpcalc loses 1 of 5 comparisons" in page
    assert "| spam (new) | 1 | 0.803 ± 0.001 | Opacus, batch 128 | 0.856 ± 0.003 | 0.053 ± 0.001 |" in page
    assert "Not covered yet: wine." in page
    assert "| two classes, new | 1 / 0 / 0 | 1 / 0 / 0 | 0 / 1 / 0 | 1 / 0 / 0 | 1 / 0 / 0 |" in page


def test_a_difference_is_taken_split_by_split():
    cells = report.cells_of(_scores())
    duel = next(duel for duel in report.duels(cells) if duel.epsilon == 1.0)
    apart = np.array([0.05 + 0.002 * seed for seed in range(4)])
    assert duel.difference == pytest.approx(apart.mean())
    assert duel.error == pytest.approx(apart.std(ddof=1) / 2.0)


def test_few_splits_decide_nothing():
    few = {key: score for key, score in _scores().items() if key.seed < report.FEW - 1}
    assert all(duel.verdict == "open" for duel in report.duels(report.cells_of(few)))


def test_results_are_kept_line_by_line(tmp_path):
    file = tmp_path / "results.csv"
    results.write(_scores(), file)
    assert results.read(file) == pytest.approx(_scores(), abs=5e-5)
    again = {**results.read(file), Key("spam", "opacus", 8.0, 0): 0.25}
    results.write(again, file)
    assert results.read(file) == again
    assert not results.read(tmp_path / "none.csv")


def test_the_page_is_what_the_results_say():
    page = (ROOT / "docs" / "utility.md").read_text(encoding="utf-8")
    assert page == report.render(results.read()), "run python -m benchmarks.utility --render"


def test_results_are_of_known_sets_and_tools():
    for key in results.read():
        assert key.set in SETS
        assert key.tool in TITLES
        assert key.epsilon in ((0.0,) if key.tool in OPEN else EPSILONS)


def test_every_set_has_a_known_kind_and_role():
    assert all(about.kind in (BINARY, CLASSES, NUMBERS) and about.role in ROLES for about in SETS.values())
    assert sum(about.role == ROLES[0] for about in SETS.values()) >= 2


def test_every_set_and_tool_can_be_asked():
    from benchmarks.utility.sets import LOADERS
    from benchmarks.utility.tools import TOOLS

    assert set(LOADERS) == set(SETS)
    assert list(TOOLS) == list(TITLES)


def test_rendering_needs_the_standard_library_alone():
    heavy = "'numpy', 'scipy', 'sklearn', 'torch', 'pandas'"
    code = f"import sys, benchmarks.utility.__main__; print([m for m in ({heavy}) if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "[]"


def test_packages_are_imported_when_they_are_asked():
    code = (
        "import sys, benchmarks.utility.tools, benchmarks.utility.sets; "
        "print([m for m in ('sklearn', 'torch', 'opacus', 'pandas', 'diffprivlib') if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == "[]"
