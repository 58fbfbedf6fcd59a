"""Audits from scores: their coverage in simulations, honest choices, and files."""

import itertools
import math
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.notions import gaussian
from dpcalc.training.audit import one_run
from dpcalc.training.audit.scores import Scores, _below, _looks, _mu_of_one_run, read_scores

RUN = {
    "algorithm": "dp-sgd", "sample_rate": 0.01, "steps": 2000, "sampling": "poisson", "adjacency": "add-remove",
    "noise_multiplier": 1.1, "delta": 1e-5,
}  # fmt: skip


def drawn(seed: int, mu: float, canaries: int, *, coins: bool = False, **said: object) -> Scores:
    """Scores of a Gaussian mechanism: of so many canaries on each side, or of all with a coin for each."""
    r = np.random.default_rng(seed)
    inside = int(r.binomial(2 * canaries, 0.5)) if coins else canaries
    values = r.normal(size=2 * canaries)
    return Scores("drawn", values[:inside] + mu, values[inside:], coins, confidence=0.8, **said)  # type: ignore[arg-type]


@pytest.mark.few(1)
@pytest.mark.parametrize("said", [{}, {"threshold": 0.5}, {"coins": True}, {"coins": True, "guesses": 40}])
@pytest.mark.parametrize("mu", [0.0, pytest.param(1.0, marks=pytest.mark.campaign)])
def test_bounds_hold_as_often_as_they_say(said: dict[str, object], mu: float) -> None:
    delta, times = 1e-5, 10 if said == {"coins": True} else 100
    truth = gaussian.epsilon(mu=mu, log_delta_target=math.log(delta)) if mu else 0.0
    cuts = [(e, math.exp(gaussian.log_delta(mu=mu, epsilon=e)) if mu else 0.0) for e in (0.0, 0.5, 1.0, 2.0)]
    proved = [drawn(seed, mu, 60, **said).prove(delta, cuts) for seed in range(times)]  # type: ignore[arg-type]
    wrong = sum(one.epsilon > truth or one.mu > mu or one.refuted for one in proved if one.epsilon is not None)
    assert wrong <= 0.2 * times + 3.0 * math.sqrt(0.16 * times)
    if mu == 0.0:
        assert np.mean([one.epsilon for one in proved]) < 0.1


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("hits", "of", "rank", "others"), [(30, 60, 8, 60), (59, 60, 1, 60), (5, 9, 4, 500), (0, 5, 1, 5)]
)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (1.0, 0.01), (4.0, 1e-5)])
def test_the_p_value_of_a_rank_is_the_integral_over_its_rate(
    hits: int, of: int, rank: int, others: int, epsilon: float, delta: float
) -> None:
    def tail(q: mp.mpf) -> mp.mpf:
        p = min(mp.mpf(1), mp.exp(epsilon) * q + mp.mpf(delta))
        return mp.betainc(hits, of - hits + 1, 0, p, regularized=True) if hits else mp.mpf(1)

    with mp.workdps(30):
        law = rank, others - rank + 1
        density = lambda q: q ** (law[0] - 1) * (1 - q) ** (law[1] - 1) / mp.beta(*law)  # noqa: E731
        middle = mp.mpf(law[0]) / (others + 1)
        cuts = sorted(
            {mp.mpf(0), mp.mpf(1), middle, *(min(middle * k, mp.mpf(1)) for k in (0.3, 0.6, 1.5, 2.5, 5, 10))}
        )
        exact = float(mp.quad(lambda q: density(q) * tail(q), cuts))
    first = np.concatenate((np.full(hits, 2.0), np.zeros(of - hits)))
    second = np.concatenate((np.full(rank - 1, 3.0), [1.0], np.full(others - rank, -1.0)))
    (look,) = (one for one in _looks(True, first, second, second) if one.rank == rank)
    assert (look.hits, look.of, look.others) == (hits, of, others)
    assert exact <= look.p_value(_below([(epsilon, delta)])) <= exact * 1.25 + 2e-9


@pytest.mark.campaign
def test_thresholds_are_nearer_than_bounds_on_each_rate_apart() -> None:
    """Another program (JAX-Privacy 2.0) proves 0.765 on average of randomised response, 3.071 at most of mu = 2."""
    r, p = np.random.default_rng(3), math.e / (1.0 + math.e)
    ties = [((r.random(500) < p) * 1.0, (r.random(500) < 1.0 - p) * 1.0) for _ in range(12)]
    normal = [(r.normal(size=1000) + 2.0, r.normal(size=1000)) for _ in range(12)]
    for sets, least, truth in ((ties, 0.8, 1.0), (normal, 3.071, 9.997)):
        lower = [Scores("drawn", *sides, confidence=0.95).prove(1e-5, []).epsilon for sides in sets]
        assert least < np.mean([one for one in lower if one is not None]) < truth


@pytest.mark.parametrize(("canaries", "single", "joint"), [(1000, 0.9106, 0.9805), (10000, 0.7512, 0.7884)])
def test_all_points_of_a_curve_prove_more_of_mu_than_one(canaries: int, single: float, joint: float) -> None:
    """98 of 100 guesses are right; reference values of linear programmes with 25 cuts, a thousandth of mu apart."""
    mu = _mu_of_one_run(98, 100, canaries, 0.05)
    assert single * 1.02 < mu
    assert mu == pytest.approx(joint, rel=6e-3)


@pytest.mark.campaign
def test_far_scores_prove_much_and_refute_a_curve() -> None:
    for said in ({}, {"coins": True}, {"coins": True, "guesses": 100}):
        proved = drawn(3, 3.0, 500, **said).prove(1e-5, [(1.0, 1e-3)])  # type: ignore[arg-type]
        assert proved.epsilon is not None
        assert proved.epsilon > 1.5
        assert 0.5 < proved.mu < 3.0
        assert proved.refuted


def test_the_p_value_is_that_of_the_worst_mechanism_of_one_coin() -> None:
    for epsilon, delta in itertools.product((0.0, 0.7, 2.0), (0.0, 0.1, 0.6)):
        q = 1.0 / (1.0 + math.exp(-epsilon))
        assert one_run.p_value(1, 1, 1, epsilon, delta) == pytest.approx(q + delta * (1.0 - q), rel=1e-12)


@pytest.mark.parametrize("correct", [0, 2, 5, 9, 12])
def test_without_delta_the_walk_of_one_number_is_the_binomial_tail(correct: int) -> None:
    alone = one_run.p_value(correct, 12, 40, 0.8, 0.0)
    assert one_run.walk_p_value([correct], [12], 40, 0.8, 0.0) == pytest.approx(alone, rel=1e-11)


def test_what_delta_adds_to_a_walk_is_rounded_up() -> None:
    found = one_run.walk_p_value([4000], [4000], 4000, 4.6, 0.0125)
    with mp.workprec(200):
        assert found >= mp.mpf(0.0125) * 4000 / (1 + mp.exp(mp.mpf(4.6)))


def test_no_choice_looks_at_who_is_in() -> None:
    """With scores that are all equal, and the file in order, half of the guesses are right."""
    same = Scores("equal", np.zeros(600), np.zeros(400), True)
    right = same._right_guesses()
    assert abs(int(right[:100].sum()) - 40) < 25


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("in,score\n1,2.5\n0,1\n", [2.5]),
        ("score,in\n2.5,True\n1,False\n", [2.5]),
        ("In,Out\n2.5,1\n3,\n", [2.5, 3.0]),
    ],
)
def test_files_of_either_form(tmp_path: Path, text: str, inside: list[float]) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    found = read_scores(str(path))
    assert (found[0].tolist(), found[1].tolist()) == (inside, [1.0])


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "in,score\n1,3,1\n0,1\n", "in,score\n2,1\n", "in,score\n1,nan\n0,1\n", "in,score\n1,1\n"]
)
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(SpecError):
        read_scores(str(path))


def test_a_guarantee_that_scores_contradict_fails(tmp_path: Path) -> None:
    path, r = tmp_path / "scores.csv", np.random.default_rng(5)
    path.write_text("in,out\n" + "".join(f"{4.0 + a},{b}\n" for a, b in r.normal(size=(500, 2))))
    report = dpcalc.audit(scores=path, **RUN)
    assert report.failed
    assert report.cases[0].audit["epsilon_lower"] > report.cases[0].best.value
    recipe = tmp_path / "recipe.yaml"
    given = "".join(f"    {name}: {value}\n" for name, value in RUN.items())
    recipe.write_text(f"dpcalc: recipe/1\ncases:\n  canaries:\n    command: audit\n    scores: scores.csv\n{given}")
    assert dpcalc.check(str(recipe)).failed == 1
    with pytest.raises(SpecError, match="both directions"):
        dpcalc.audit(scores=path, **{**RUN, "adjacency": "remove"})


@pytest.mark.parametrize(("shift", "failed"), [(0.0, 0), (4.0, 1)])
def test_scores_stand_beside_a_claim(tmp_path: Path, shift: float, failed: int) -> None:
    path, r = tmp_path / "scores.csv", np.random.default_rng(6)
    path.write_text("in,out\n" + "".join(f"{shift + a},{b}\n" for a, b in r.normal(size=(500, 2))))
    report = dpcalc.audit(scores=path, epsilon=2.0, delta=1e-5)
    assert report.failed == failed
    with pytest.raises(SpecError, match="nothing is said"):
        dpcalc.audit(scores=path, epsilon=2.0)
    with pytest.raises(SpecError, match="Which algorithm"):
        dpcalc.audit(scores=path, epsilon=2.0, delta=1e-5, records=100)


@pytest.mark.parametrize("one_run", [False, True])
def test_a_claim_beyond_all_doubles_is_not_contradicted(tmp_path: Path, one_run: bool) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("in,out\n" + "".join(f"{9 + k},{-k}\n" for k in range(50)))
    assert dpcalc.audit(scores=path, one_run=one_run, epsilon=1e9, delta=1e-5).failed == 0
