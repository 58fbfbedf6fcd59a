"""A tuned run: what it costs, worked out apart; how its number of runs is drawn; and what of it is released."""

import json
import math
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cards import card
from dpcalc.cards.card import refuse_untrained
from dpcalc.cli.main import main
from dpcalc.errors import DpcalcError, MissingParameter, NotApplicable, SpecError
from dpcalc.notions.guarantee import Box, Gdp, Profile, Rdp
from dpcalc.notions.tuning import Law, tuning_of
from dpcalc.training.data import tables
from dpcalc.training.data.bounds import Prepared
from dpcalc.training.release.model import load
from dpcalc.training.rule.candidates import TuneRequest
from dpcalc.training.rule.draft import Draft
from dpcalc.training.run import single
from dpcalc.training.run.rounding import Rounding
from dpcalc.training.tune import fit as tuned
from dpcalc.training.tune import run_count
from dpcalc.training.tune.fit import score_of
from dpcalc.training.tune.guarantee import costliest, envelope, executed

CANCER = "example:breast-cancer"
TUNE = {"clip": [0.05, 0.1, 0.3], "travel": [10, 30]}


def delta_of(mu: float, epsilon: float) -> float:
    """Return delta of mu-Gaussian privacy, written out."""

    def tail(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    return tail(epsilon / mu - 0.5 * mu) - math.exp(epsilon) * tail(epsilon / mu + 0.5 * mu)


def best_of(mu: float, mean: float, epsilon: float) -> float:
    """Return delta of the best of a geometric number of mu-GDP runs: E K delta(epsilon - 2 ln R)."""
    gamma, low, high = 1.0 / mean, 0.0, math.log(mean)
    for _ in range(200):
        middle = 0.5 * (low + high)
        larger = (1.0 - gamma) * delta_of(mu, middle) > gamma * math.expm1(middle)
        low, high = (middle, high) if larger else (low, middle)
    return mean * delta_of(mu, max(0.0, epsilon - 2.0 * high))


def pure_best_of(epsilon: float, mean: float) -> float:
    gamma = 1.0 / mean
    return epsilon + 2.0 * math.log((gamma + math.exp(epsilon)) / (1.0 + gamma * math.exp(epsilon)))


def case_of(**given: Any) -> Any:
    return dpcalc.train(**{"data": CANCER, "epsilon": 1, "delta": 1e-5, "tune": TUNE, "seed": 1, **given}).cases[0]


def gaussian_mu(case: Any, found: dict[str, Any], columns: int = 1) -> float:
    """Return mu of a full-batch run of 100 steps, of which a record moves each by 2 C/n."""
    records = case.training["records"]
    return 2.0 * found["clip"] * math.sqrt(case.training["steps"]) / (records * found["noise_std"])


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "mean"), [(1.0, 10.0), (0.3, 3.0), (6.0, 50.0)])
def test_the_best_of_all_runs_keeps_the_budget_and_takes_nearly_all_of_it(epsilon: float, mean: float) -> None:
    case = case_of(epsilon=epsilon, tune_runs=mean)
    told = case.training["tuning"]
    best = case.best
    assert best.quantity == "epsilon"
    assert 0.995 * epsilon < best.value <= epsilon
    assert len(told["candidates"]) == 6
    for candidate in told["candidates"]:
        mu = gaussian_mu(case, candidate)
        assert candidate["mu"] == pytest.approx(mu, rel=1e-9)
        assert best_of(mu, mean, best.value) <= 1e-5
        assert best_of(1.01 * mu, mean, best.value) > 1e-5
    score = told["score"]["epsilon"]
    assert 0.99 * epsilon < pure_best_of(score, mean) <= epsilon


def test_a_public_score_costs_nothing_and_all_records_are_trained_on(tmp_path: Path) -> None:
    public = tmp_path / "public.csv"
    rows = (Path(dpcalc.__file__).parent / "data" / "breast-cancer.csv").read_text().splitlines()
    public.write_text("\n".join(rows[:101]) + "\n")
    case = case_of(tune_score=str(public))
    assert case.training["records"] == 569
    score = case.training["tuning"]["score"]
    assert (score["on"], score["records"], score["epsilon"]) == ("public records", 100, None)
    assert score["accuracy"] * 100 == pytest.approx(round(score["accuracy"] * 100), abs=1e-9)


def test_public_records_have_the_columns_of_those_that_are_trained_on(tmp_path: Path) -> None:
    own, public = tmp_path / "own.csv", tmp_path / "public.csv"
    own.write_text("a,b,y\n" + "0.1,0.2,1\n0.3,0.1,0\n" * 50)
    public.write_text("b,a,y\n" + "0.1,0.2,1\n" * 9)
    with pytest.raises(SpecError, match="have the columns b, a, y"):
        case_of(data=str(own), labels=("0", "1"), tune_score=str(public))


@pytest.mark.filterwarnings("ignore:there is no privacy card")
def test_a_run_that_is_known_by_a_profile_keeps_the_budget_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    given: dict[str, Any] = {
        "algorithm": "shuffled-epochs", "radius": 5, "step_size": 0.5, "tune": {"epochs": [1, 2]},
        "data": (rng.normal(size=(60, 2)), rng.integers(0, 2, 60)), "loss": "logistic",
    }  # fmt: skip
    output = tmp_path / "m.json"
    case = case_of(**given, seed=None, output=str(output))
    assert 0.9 < case.best.value <= 1.0
    assert any("no privacy card" in warning for warning in case.warnings)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json"]
    noise = {found["epochs"]: found["noise_std"] for found in case.training["tuning"]["candidates"]}
    for epochs, sigma in noise.items():
        one = dpcalc.train(**{**given, "tune": ()}, epochs=epochs, delta=1e-5, noise_std=sigma, seed=1).cases[0]
        assert one.best.value < 0.8  # of one run: what the choice costs comes on top


def test_a_candidate_drawn_at_random_is_no_worse_than_the_worst() -> None:
    rng = random.Random(3)
    for _ in range(50):
        pairs = []
        for _ in range(3):
            p, q = ([rng.random() + 0.05 for _ in range(4)] for _ in range(2))
            pairs.append(([x / sum(p) for x in p], [x / sum(q) for x in q]))

        def hockey(pairs: Any, epsilon: float) -> float:
            return max(
                math.fsum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(p, q, strict=True))
                for p, q in (pairs, pairs[::-1])
            )

        parts = [Profile(lambda e, pair=pair: math.log(hockey(pair, e) + 1e-300)) for pair in pairs]
        found = envelope(parts)
        mixed = tuple([x / 3.0 for pair in pairs for x in pair[side]] for side in (0, 1))
        for epsilon in (0.0, 0.3, 1.0):
            assert hockey(mixed, epsilon) <= math.exp(found.log_delta(epsilon).value) * (1.0 + 1e-12)
    assert envelope([Gdp(0.1), Gdp(0.3)]).mu == 0.3
    assert envelope([Rdp(lambda a: a), Rdp(lambda a: 2.0)]).rdp(1.5) == 2.0


def test_what_rounding_costs_one_run_is_counted_in_its_profile() -> None:
    rng = random.Random(4)
    for _ in range(200):
        p, q = ([rng.random() + 0.05 for _ in range(4)] for _ in range(2))
        p, q = [x / sum(p) for x in p], [x / sum(q) for x in q]
        miss = 10.0 ** rng.uniform(-6.0, -1.0)
        moved = []
        for law in (p, q):  # the run as executed is another one with probability miss
            place, instead = rng.randrange(4), list(law)
            for k in range(4):
                instead[k] *= 1.0 - miss
            instead[place] += miss
            moved.append(instead)
        epsilon = rng.uniform(0.0, 2.0)

        def hockey(one: list[float], other: list[float], e: float) -> float:
            return math.fsum(max(0.0, x - math.exp(e) * y) for x, y in zip(one, other, strict=True))

        curve = executed(lambda e, p=p, q=q: math.log(hockey(p, q, e) + 1e-300), Rounding(miss))
        assert hockey(*moved, epsilon) <= math.exp(curve(epsilon)) * (1.0 + 1e-12)


def test_the_costliest_rounding_costs_as_much_as_each() -> None:
    each = [Rounding(1e-9, shift=(1e-3, 1e-18)), Rounding(1e-8, shift=(1e-4, 1e-7))]
    for epsilon in (0.0, 1.0):
        cost = costliest(each).cost(epsilon)
        for one in each:
            assert all(cost[k] >= one.cost(epsilon)[k] for k in range(3))


# --- how it is drawn --------------------------------------------------------------------------------------------------


def chances(law: Law, mean: float) -> dict[int, float]:
    if law is Law.POISSON:
        return {k: math.exp(-mean) * mean**k / math.factorial(k) for k in range(9)}
    gamma = 1.0 / mean
    if law is Law.GEOMETRIC:
        return {k: gamma * (1.0 - gamma) ** (k - 1) for k in range(1, 9)}
    low, high = 1e-9, 1.0 - 1e-9
    for _ in range(200):  # the mean is (1/g - 1)/ln(1/g)
        gamma = 0.5 * (low + high)
        low, high = (gamma, high) if (1.0 / gamma - 1.0) / -math.log(gamma) > mean else (low, gamma)
    return {k: (1.0 - gamma) ** k / k / -math.log(gamma) for k in range(1, 9)}


@pytest.mark.parametrize("law", [Law.GEOMETRIC, Law.LOGARITHMIC, Law.POISSON])
def test_the_number_of_runs_has_its_law(law: Law) -> None:
    number, mean = 6000, 2.5
    below = random.Random(5).randrange
    drawn = Counter(run_count.draw(tuning_of(law, mean), mean, below) for _ in range(number))
    for k, chance in chances(law, mean).items():
        assert abs(drawn[k] - number * chance) < 4.5 * math.sqrt(number * chance) + 1.0
    assert max(drawn) > 8  # nothing caps it


@pytest.mark.parametrize("loss", ["logistic", "squares"])
def test_a_record_moves_a_score_by_no_more_than_what_noise_is_for(loss: str) -> None:
    rng = np.random.default_rng(6)
    draft = Draft.of(loss=loss, feature_bound=1.0, **({"label_bound": 1.0} if loss == "squares" else {}))
    most = 0
    for _ in range(100):
        features, labels = rng.normal(size=(5, 2)), rng.uniform(-1.0, 1.0, 5)
        weights = rng.normal(size=2) * 10.0 ** rng.uniform(-2.0, 3.0)
        before = score_of(weights, Prepared(features, labels, {}), draft)
        features[2], labels[2] = rng.normal(size=2), rng.uniform(-1.0, 1.0)
        most = max(most, abs(score_of(weights, Prepared(features, labels, {}), draft) - before))
    assert 0 < most <= tuned._most(draft)
    assert most == tuned._most(draft) or loss == "squares"


# --- what is released -------------------------------------------------------------------------------------------------


def test_only_the_best_is_released(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    train, scored = single.train, tuned._scored
    seen: list[tuple[int, Any]] = []

    def spied(plan: Any, *arguments: Any, **more: Any) -> Any:
        found = train(plan, *arguments, **more)
        seen.append((0, found.weights))
        return found

    def scoring(weights: Any, *arguments: Any) -> int:
        seen[-1] = scored(weights, *arguments), weights
        return seen[-1][0]

    monkeypatch.setattr(single, "train", spied)
    monkeypatch.setattr(tuned, "_scored", scoring)
    monkeypatch.setattr(run_count, "draw", lambda *_: 7)
    output = tmp_path / "m.json"
    report = dpcalc.train(
        data=CANCER, epsilon=1, delta=1e-5, tune=["clip=0.05,0.1", " travel=10,30"], output=str(output)
    )
    assert len(seen) == 7
    best = max(seen, key=lambda each: each[0])
    assert load(str(output)).weights == pytest.approx(best[1][:-1], abs=0.0)
    said = report.cases[0].training["tuning"]
    assert set(said) == {"distribution", "mean", "candidates", "score", "chosen"}
    assert set(said["score"]) == {"on", "records", "epsilon", "accuracy"}
    assert said["score"]["accuracy"] == pytest.approx(min(1.0, max(0, best[0]) / 114))
    chosen = said["candidates"][said["chosen"]]
    assert report.cases[0].inputs["clip"][0] == chosen["clip"]
    assert report.cases[0].inputs["noise_std"][0] == chosen["noise_std"]
    kept = json.loads(output.read_text())["privacy"]["tuning"]
    assert kept == said


def test_where_no_run_is_drawn_nothing_is_released(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run_count, "draw", lambda *_: 0)
    report = dpcalc.train(
        data=CANCER, epsilon=1, delta=1e-5, tune=TUNE, tune_law="poisson", output=str(tmp_path / "m.json")
    )
    assert report.cases[0].training is None
    assert any("nothing is released" in note for note in report.cases[0].notes)
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = []
    train = single.train

    def interrupted(*arguments: Any, **more: Any) -> Any:
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*arguments, **more)

    monkeypatch.setattr(single, "train", interrupted)
    monkeypatch.setattr(run_count, "draw", lambda *_: 5)
    with pytest.raises(KeyboardInterrupt):
        dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, tune=TUNE, output=str(tmp_path / "m.json"))
    assert not list(tmp_path.iterdir())


def test_a_number_is_predicted_and_the_score_is_in_its_units() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(-0.5, 0.5, (4000, 2))
    y = 50.0 + 40.0 * x[:, 0] + rng.uniform(-10.0, 10.0, 4000)
    case = case_of(data=(x, y), target_range=(0, 100), tune={"clip": [0.1, 0.2]}, epsilon=4)
    assert case.training["tuning"]["score"]["mae"] == pytest.approx(5.0, abs=1.5)
    assert case.training["records"] == 3200


def test_the_card_is_verified_and_a_changed_one_is_not(tmp_path: Path) -> None:
    output, card = tmp_path / "m.json", tmp_path / "m.card.json"
    dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, tune={"clip": [0.05, 0.1]}, output=str(output))
    assert not dpcalc.verify(str(card), model=str(output), certify=False).mismatches
    one, best = (dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, seed=1, **more).cases[0].best.assumes for more in (
        {}, {"tune": {"clip": [0.1]}, "tune_runs": 1}
    ))  # fmt: skip
    assert set(one) < set(best)
    assert best[-2:] == one[-2:]
    written = json.loads(card.read_text())
    assert [case["asked"]["command"] for case in written["cases"]] == ["ledger", "compare", "compare"]
    fewer = {**written, "cases": written["cases"][:1]}
    with pytest.raises(SpecError, match="carried the run out"):
        dpcalc.verify(fewer, certify=False)
    other = json.loads(card.read_text())
    other["cases"][2]["unit"]["neighbours"] = "null_record"
    with pytest.raises(SpecError, match="carried the run out"):
        refuse_untrained(other)
    model = json.loads(output.read_text())
    model["privacy"]["tuning"]["candidates"][1]["noise_std"] *= 0.5
    output.write_text(json.dumps(model))
    found = dpcalc.verify(str(card), model=str(output), certify=False).mismatches
    assert any("tuning: candidates" in each.place for each in found)


def test_a_card_is_of_the_theorem_that_rounding_leaves(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    output = tmp_path / "m.json"
    case = dpcalc.train(
        data=(rng.normal(size=(60, 2)), rng.integers(0, 2, 60)), algorithm="shuffled-epochs", epochs=2, loss="hinge",
        radius=5, step_size=0.5, epsilon=1, delta=1e-5, output=str(output),
    ).cases[0]  # fmt: skip
    assert case.best.bound == "expanding.composition"
    written = json.loads((tmp_path / "m.card.json").read_text())
    (stated,) = written["cases"]
    assert stated["asked"]["bound"] == stated["theorems"][0]["bound"] == case.best.bound
    assert not dpcalc.verify(written, model=str(output), certify=False).mismatches


def test_what_choosing_would_have_cost_is_said() -> None:
    case = dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, seed=1).cases[0]
    (note,) = (note for note in case.note_data if note.kind == "cost_of_tries")
    mu = 2.0 * case.inputs["clip"][0] * math.sqrt(case.inputs["steps"][0]) / (569 * case.best.value)
    assert best_of(mu, 10.0, note.value) == pytest.approx(1e-5, rel=1e-3)
    assert delta_of(mu * math.sqrt(10.0), note.fixed_number) == pytest.approx(1e-5, rel=1e-3)
    assert note.epsilon == 1.0


@pytest.mark.parametrize("tune", [{}, {"tune": {"clip": [0.1]}, "tune_runs": 1}])
def test_what_is_released_is_said_alike(tune: dict[str, Any]) -> None:
    """The rule's model is a mean of iterates, all of which are accounted as public."""
    report = dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, seed=1, **tune)
    for form in ("statement", "markdown", "plain"):
        said = dpcalc.format_report(report, form)
        assert "every iterate is released" in said
        assert "last iterate" not in said


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tune": ["clip"]}, "names no values"),
        ({"tune": ["radius=1,2"]}, "cannot be tuned"),
        ({"tune": ["clip=0.1", "clip=0.2"]}, "twice"),
        ({"tune": ["clip=-1"]}, "clip"),
        ({"tune": ["steps=1.5"]}, "steps"),
        ({"tune": ["travel=0"]}, "travel"),
        ({"tune": ["travel=1", "step_size=1"]}, "travel"),
        ({"tune_runs": 0.5}, "mean number"),
        ({"tune_law": "uniform"}, "number of runs"),
        ({"tune_score": 1.5}, "held out"),
        ({"tune_score": CANCER}, "without noise"),
        ({"tune_score": tables.example_file("breast-cancer")}, "without noise"),
        ({"tune_score": ([[1.0]], [1.0])}, "given as a tuple"),
        ({"tune_runs": [3]}, "given as a list"),
        ({"tune": {"steps": range(1, 101)}}, "100 candidates"),
        ({"tune": (), "tune_runs": 5}, "--tune-runs"),
        ({"replicas": 3}, "replicas"),
        ({"reference": True}, "non-private fit"),
        ({"noise_std": 1}, "noise"),
        ({"clip": 0.1}, "also tuned"),
        ({"epsilon": [1, 2]}, "cases"),
        ({"algorithm": "noisy-gd", "radius": 1, "tune": {"travel": [1]}}, "default rule"),
    ],
)
def test_what_cannot_be_tuned_is_refused(given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(single, "train", never)
    with pytest.raises(DpcalcError, match=message):
        case_of(**given)


@pytest.mark.parametrize("link", [os.link, os.symlink, shutil.copy])
def test_the_training_file_by_another_name_is_not_public(link: Any, tmp_path: Path) -> None:
    one, other = tmp_path / "a.csv", tmp_path / "b.csv"
    shutil.copy(tables.example_file("breast-cancer"), one)
    link(one, other)
    for path in (str(one), CANCER):
        with pytest.raises(SpecError, match="without noise"):
            case_of(data=path, tune_score=other)


@pytest.mark.parametrize("name", ["m.json", "m.card.json"])
def test_no_older_model_stays_where_nothing_may_be_released(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("old")
    with pytest.raises(SpecError, match="is there already"):
        case_of(tune_law="poisson", output=str(tmp_path / "m.json"))


@pytest.mark.parametrize("form", ["explain", "bibtex"])
def test_formats_that_explain_a_theorem_are_refused_first(
    form: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    options = ["--data", CANCER, "-e", "1", "-d", "1e-5", "--tune", "clip=0.1", "-o", str(tmp_path / "m.json")]
    with pytest.raises(SystemExit) as stop:
        main(["train", *options, "--format", form])
    assert stop.value.code
    assert "explains one theorem, and the guarantee of a tuned run is a total" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_model_whose_card_cannot_be_written_is_returned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(card, "MOST_CASES", 0)
    with pytest.warns(UserWarning, match="no privacy card"):
        report = dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, output=str(tmp_path / "m.json"))
    assert any(note.endswith("m.json") for note in report.cases[0].notes)
    with pytest.raises(SystemExit) as stop:
        main(["train", "--data", CANCER, "-e", "1", "-d", "1e-5", "-o", str(tmp_path / "n.json"), "-v"])
    assert not stop.value.code
    out, err = capsys.readouterr()
    assert "the privacy card beside the model could not be written" in err
    assert "its privacy card" not in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.json", "n.json"]


def test_the_worst_of_candidates_needs_curves() -> None:
    with pytest.raises(NotApplicable, match="of a candidate"):
        envelope([Gdp(0.1), Box(1.0)])


def test_a_budget_is_needed() -> None:
    with pytest.raises(MissingParameter, match="cost"):
        case_of(epsilon=None)


def test_texts_and_mappings_mean_the_same() -> None:
    assert TuneRequest(["clip=0.1, 0.2; steps=5"]).tune() == TuneRequest({"clip": [0.1, 0.2], "steps": 5}).tune()
