"""`train`: budget in, model out; and nothing is called private that is not."""

import itertools
import json
import math
import os
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.engine.commands import COMMANDS
from dpcalc.theorems.risk import utility
from dpcalc.training.release import metrics
from dpcalc.training.release.model import load
from dpcalc.training.rule.setup import card_path
from dpcalc.training.run import ensemble, single
from tests.cli.conftest import best
from tests.formulas import evaluated

CANCER = "train --data example:breast-cancer"
LINE = f"{CANCER} --loss logistic --radius 5 -e 1 -d 1e-5"
SYNTHETIC = "train --synthetic logistic -n 300 --dimension 2 -R 1"


def failed(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what stands on stderr of a command that fails with this code."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    assert stop.value.code == code, captured.err
    return captured.err


def never(*arguments: Any, **more: Any) -> None:
    raise AssertionError("something was trained")


# --- one line ---------------------------------------------------------------------------------------------------------


def test_one_line_trains_a_good_model_and_says_how_good(ask_json: Any) -> None:
    [case] = ask_json(f"{LINE} --seed 1 --reference")
    training = case["training"]
    assert training["uncovered"]["non_private"]["train"]["accuracy"] == pytest.approx(0.9561, abs=1e-4)
    assert training["uncovered"]["metrics"]["train"]["accuracy"] > 0.9
    assert 0.0 < training["uncovered"]["metrics"]["train"]["excess_risk"] < 0.15
    assert "not covered" in training["uncovered"]["why"]
    assert training["records"] == case["inputs"]["records"]["value"] == 569
    assert case["inputs"]["records"]["source"] == "data"


def test_the_statement_can_be_pasted(ask: Any) -> None:
    text = " ".join(ask(f"{LINE} --format statement").split())
    assert "the result is (1, 1e-05)-differentially private, under replace-one adjacency" in text
    assert "records n = 569" in text
    assert "shortened to Euclidean norm at most 1 by a rule that does not depend on the data" in text
    assert "NOT PRIVATE" not in text


def test_the_table_shows_both_models(ask: Any) -> None:
    text = ask(f"{LINE} --test-fraction 0.2 --reference --format plain -vv")
    assert "train (455 records)" in text
    assert "test (114 records)" in text
    assert "accuracy, uncovered     this model" in text
    assert "accuracy, uncovered     non-private fit" in text
    assert "not covered by the guarantee" in text
    assert "non-private" not in ask(f"{LINE} --test-fraction 0.2 --format plain -vv")


def test_what_costs_time_is_done_where_it_is_asked_for(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "minimise", never)
    [case] = ask_json(f"{LINE} --show-unprotected-metrics")
    assert "non_private" not in case["training"]["uncovered"]
    assert "excess_risk" not in case["training"]["uncovered"]["metrics"]["train"]
    with pytest.raises(AssertionError, match="something was trained"):
        ask_json(f"{LINE} --reference")


def test_noise_from_the_system_is_never_the_same(tmp_path: Path, ask: Any) -> None:
    weights = []
    for name in ("a.json", "b.json"):
        ask(f"{LINE} -o {tmp_path / name}")
        weights.append(load(str(tmp_path / name)).weights)
    assert not np.array_equal(*weights)


# --- what is executed is what is accounted ----------------------------------------------------------------------------


def test_the_run_that_is_executed_is_the_one_accounted(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Any] = []
    genuine = single.train
    monkeypatch.setattr(single, "train", lambda plan, *a, **k: (plans.append(plan), genuine(plan, *a, **k))[1])
    [case] = ask_json(f"{LINE} --test-fraction 20%")
    [plan] = plans
    assert (plan.records, plan.columns, plan.order, plan.steps) == (455, 30, "full", case["inputs"]["steps"]["value"])
    assert plan.scale == best(case)["value"]
    assert plan.step_size == case["inputs"]["step_size"]["value"] <= 4.0
    assert plan.domain.radius == 5.0
    # Gaussian differential privacy of so many full-batch steps, written out; |gradient| <= 1/(1 + e^-5).
    mu = math.sqrt(plan.steps) * 2.0 / (1.0 + math.exp(-5.0)) / (455 * plan.scale)

    def tail(x: float) -> float:
        return 0.5 * math.erfc(x / math.sqrt(2.0))

    delta = tail(1.0 / mu - 0.5 * mu) - math.e * tail(1.0 / mu + 0.5 * mu)
    rounding = best(case)["floating_point"]
    # Td entries of noisy sums, each rounded to another point with a probability below 3.9e-14.
    assert rounding["delta"] == pytest.approx((1.0 + math.e) * plan.steps * 30 * 3.83e-14, rel=0.01)
    assert 0.999e-5 <= delta + rounding["delta"] <= best(case)["delta"] == 1e-5


def test_batches_are_balanced_where_nothing_else_is_asked(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Any] = []
    genuine = single.train
    monkeypatch.setattr(single, "train", lambda plan, *a, **k: (plans.append(plan), genuine(plan, *a, **k))[1])
    run = "train --synthetic logistic -n 100 --dimension 2 --algorithm shuffled --batch-size 30 --eta 0.5 -R 2 --seed 1"
    noise = {}
    for more, batches in (
        ("", [(4, 25, 25)]), ("--last-batch own", [(3, 30, 30), (1, 10, 10)]),
        ("--last-batch front", [(1, 10, 10), (3, 30, 30)]),
    ):  # fmt: skip
        [case] = ask_json(f"{run} -e 1 -d 1e-5 {more}")
        assert list(plans.pop().batches) == batches
        noise[case["inputs"]["last_batch"]["value"]] = best(case)["value"]
    assert noise["balanced"] < noise["front"] < noise["own"]
    [asked] = ask_json("shuffle -n 100 --batch-size 30 -L 1 --smoothness 1 --eta 0.5 --sigma 1 -d 1e-5")
    assert asked["inputs"]["last_batch"]["value"] == "own"


def test_defaults_do_not_depend_on_the_records(tmp_path: Path, ask_json: Any) -> None:
    generator = np.random.default_rng(7)
    chosen = []
    for scale in (1.0, 1e-3):
        path = tmp_path / "t.npy"
        np.save(path, np.column_stack([generator.standard_normal((200, 3)) * scale, np.arange(200) % 2]))
        [case] = ask_json(f"train --data {path} --loss logistic --positive 1 -R 2 -e 1 -d 1e-6")
        chosen.append((case["inputs"]["steps"], case["inputs"]["step_size"], best(case)["value"]))
    assert chosen[0] == chosen[1]


@pytest.mark.few(8)
@pytest.mark.parametrize("algorithm", COMMANDS["train"].algorithms)
def test_every_algorithm_trains(algorithm: str, ask_json: Any) -> None:
    more = "--steps 20 --sigma 2 -d 1e-5" if algorithm in ("noisy-sgd", "dp-sgd-gradient") else "-e 1 -d 1e-5"
    if algorithm == "online":
        more = "-d 1e-5 --eta 0.1 --c1 100 --c2 100 --decay-exponent 1.5"
    if algorithm == "correlated":
        more += " --batch-size 20 --epochs 2 --clip 0.5 --eta 0.1"
    [case] = ask_json(f"{SYNTHETIC} --algorithm {algorithm} {more} --reference")
    training = case["training"]
    assert training["private"] is True
    # 1e-9: the optimum is known to its gap.
    assert training["uncovered"]["metrics"]["train"]["excess_risk"] > -1e-9
    assert set(case["inputs"]) >= {"records", "step_size", "loss"}


def test_laplace_noise_bounds_rows_in_its_norm(ask_json: Any) -> None:
    line = "train --synthetic linear -n 300 --dimension 3 -R 1 --algorithm shuffled --noise laplace -e 2 -d 1e-5"
    [case] = ask_json(f"{line} --eta 0.05")
    assert best(case)["quantity"] == "laplace_scale"
    assert case["training"]["norm"] == 1
    assert case["inputs"]["dimension"]["value"] == 3


def test_a_bound_on_the_risk_says_which_risk(ask: Any) -> None:
    text = ask(f"{SYNTHETIC} --algorithm stop --eta 0.01 --sigma 2 -d 1e-5 --format plain -vv")
    assert "expected excess risk under the law of the records, if they are independent draws from one, <= " in text


def test_a_bound_on_the_risk_is_shown_where_it_covers_the_run(ask_json: Any) -> None:
    [case] = ask_json(f"{SYNTHETIC} --algorithm stop --eta 0.01 --sigma 2 -d 1e-5")
    found = case["training"]["excess_risk_bound"]
    expected = evaluated(utility.average,
        radius=1.0, lipschitz=case["inputs"]["lipschitz"]["value"], dimension=2, noise_std=2.0, step_size=0.01,
        steps=300,
    )  # fmt: skip
    assert (found["bound"], found["value"]) == ("utility.average", expected.excess_risk)
    [case] = ask_json(f"{SYNTHETIC} --algorithm shuffled --eta 0.01 --sigma 2 -d 1e-5")
    assert case["training"]["excess_risk_bound"] is None


def test_whether_there_is_a_model_tells_nothing_of_the_labels(tmp_path: Path, ask: Any) -> None:
    written = tmp_path / "m.json"
    for last in (0, 1):  # neighbours: the second has one label only
        path = tmp_path / "t.csv"
        path.write_text("x,y\n" + "0.5,1\n" * 9 + f"0.5,{last}\n")
        line = f"train --data {path} --labels 0,1 -R 1 -e 1 -d 1e-5 -o {written}"
        text = ask(f"{line} --show-unprotected-metrics -vv")
        assert load(str(written)).privacy["private"] is True
        assert ("the target is 1 for every training record" in text) == (last == 1)
        written.unlink()


@pytest.mark.parametrize(("more", "said"), [("", True), ("--ranges {}", False)])
def test_rows_that_all_were_shortened_are_remarked_upon(more: str, said: bool, tmp_path: Path, ask: Any) -> None:
    (tmp_path / "r.csv").write_text("column,low,high\nage,0,100\n")
    path = tmp_path / "t.csv"
    path.write_text("age,y\n" + "".join(f"{20 + k},{k % 2}\n" for k in range(20)))
    line = f"train --data {path} --loss logistic --positive 1 -R 1 -e 1 -d 1e-5 --show-unprotected-metrics -vv"
    line += f" {more.format(tmp_path / 'r.csv')}"
    assert ("every row was shortened, so that only directions are left" in ask(line)) == said


@pytest.mark.parametrize(
    ("table", "more", "said", "not_said"),
    [
        ("x,w,y\n" + "0.1,red,1\n0.2,blue,0\n" * 20, "--positive 1", "as a whole column has: --ranges declares", "cut"),
        ("x,w,y\n" + "0.1,red,1\n0.2,,0\n0.1,2,1\n" * 9, "--positive 1", None, "as a whole column has"),
        ("x,y\n" + "0.1,0\n0.2,0\n" * 20, "--positive 1", "nothing to learn", "--labels"),
        ("x,y\n" + "0.1,Yes\n0.2,No\n" * 20, "--labels no,yes", "the target is no for every", "--labels"),
        ("x,y\n" + "0.1,Yes\n0.2,No\n" * 20, "--labels no,yes", "none of the labels, letter by letter", "--labels"),
        ("x,y\n" + "0.1,Yes\n0.2,No\n" * 20, "--positive yes", "the target is not yes for every", "--labels"),
        ("x,y\n" + "0.1,yes\n0.2,yes\n" * 20, "--labels no,yes", "the target is yes for every", "letter by letter"),
        ("x,y\n" + "0.1,A\n0.2,B\n" * 20, "--labels a,b,c", "the target is a for every", "--labels"),
        ("x,y\n" + "0.1,300\n0.2,200\n" * 20, "--loss squares", "every target was cut", "every row"),
        ("x,y\n" + "0.1,300\n0.2,200\n" * 20, "--target-range 0,400", None, "every target was cut"),
        ("x,y\n" + "0,30\n0.1,20\n" * 20, "--target-range 0,1e9", "records than always answering their mean", "cut"),
        ("x,y\n" + "0,1\n0,0\n0,1\n" * 20, "--labels 0,1", "is right for 0.6667 of them", "cut"),
        ("x,y\n" + "0,a\n0,b\n0,c\n0,c\n" * 20, "--labels a,b,c", "is right for 0.5 of them", "cut"),
        ("x,y\n" + "-1,0\n1,1\n" * 20, "--labels 0,1", None, "always answering"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stored", [False, True])
def test_what_a_newcomer_overlooks_is_remarked_upon(
    table: str, more: str, said: str | None, not_said: str, stored: bool, tmp_path: Path, ask: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if stored:
        monkeypatch.setattr("dpcalc.files.reading.HELD_CELLS", 1)
    path = tmp_path / "t.csv"
    path.write_text(table)
    text = ask(f"train --data {path} {more} -e 20 -d 1e-5 --seed 3 --show-unprotected-metrics -vv")
    above, remarks = text.split("not covered by the guarantee", 1)
    remarks = remarks.split("assumes", 1)[0]
    if said is not None:
        assert said in remarks
    assert not_said not in remarks
    assert "always answering" not in above


# --- gates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["--assert 'bound==iteration.pnsgd'", "--sigma 0.01", "--assert 'noise_std<=1e-9'"])
def test_nothing_is_trained_where_a_gate_fails(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(single, "train", never)
    path = tmp_path / "m.json"
    assert "gate failed" in failed(f"{LINE} {more} -o {path}", 1, capsys)
    assert not path.exists()


def test_noise_that_is_enough_passes(ask_json: Any) -> None:
    [case] = ask_json(f"{LINE} --sigma 0.07 --assert 'epsilon<=1'")
    assert [gate["passed"] for gate in case["assertions"]] == [True, True]
    assert case["training"]["private"] is True


# --- what is not private says so --------------------------------------------------------------------------------------


def test_a_seed_marks_everything(tmp_path: Path, ask: Any, ask_json: Any) -> None:
    path = tmp_path / "m.json"
    assert "NOT PRIVATE: seeded" in ask(f"{LINE} --seed 3 -o {path} --format plain -vv")
    assert ask(f"{LINE} --seed 3 --format statement").startswith("NOT PRIVATE: seeded")
    assert "**NOT PRIVATE: seeded" in ask(f"{LINE} --seed 3 --format markdown")
    for form in ("plain", "table", "markdown"):
        text = ask(f"{LINE} --seed 3 --format {form}")
        assert text.lstrip("*").startswith("Not of this model, only with noise that nobody can draw again: ")
        assert "An attacker who knows" not in text
    [case] = ask_json(f"{LINE} --seed 3")
    assert case["training"]["private"] is False
    assert "guess" not in case
    model = load(str(path))
    assert model.privacy["private"] is False
    assert model.privacy["seed"] == 3
    assert str(model.privacy["statement"]).startswith("NOT PRIVATE")


def test_replicas_are_an_experiment(ask: Any, ask_json: Any, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"{SYNTHETIC} --algorithm shuffled --eta 0.005 --sigma 0.5 -d 1e-5 --replicas 50"
    [case] = ask_json(f"{line} --seed 2")
    training = case["training"]
    assert training["private"] is False
    assert "experiment" in training["why_not_private"]
    assert training["released"] is None
    for spread in training["uncovered"]["quantiles"]["train"].values():
        assert spread == sorted(spread)
        assert len(spread) == 5
    [again] = ask_json(f"{line} --seed 2 --workers 1")
    assert again["training"]["uncovered"]["quantiles"] == training["uncovered"]["quantiles"]
    assert "an experiment" in ask(f"{line} --format plain -vv")
    assert "replicas are an experiment" in failed(f"{line} -o m.json", 2, capsys)


def test_several_models_are_not_written(capsys: pytest.CaptureFixture[str], ask: Any) -> None:
    assert "2 models would be trained" in failed(f"{CANCER} -R 5 -e 1,2 -d 1e-5 -o m.json", 2, capsys)
    text = ask(f"{CANCER} -R 5 -e 1,2 -d 1e-5 --reference --format plain -vv")
    assert "several models were trained on the same records: the guarantee covers one of them, not all" in text
    assert "uncovered train excess_risk" in text


@pytest.mark.parametrize("replicas", [1, 3])
def test_an_interrupted_run_releases_nothing(
    replicas: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*arguments: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(single, "train", stop)
    monkeypatch.setattr(ensemble, "train", stop)
    path = tmp_path / "m.json"
    more = f"-o {path}" if replicas == 1 else f"--replicas {replicas}"
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(f"{LINE} {more}"))
    captured = capsys.readouterr()
    assert ended.value.code == 130
    assert "nothing was released" in captured.err
    assert captured.out == ""
    assert not os.listdir(tmp_path)


def test_a_run_whose_weights_might_overflow_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.npz"
    line = "train --synthetic logistic -n 50 --dimension 3 --algorithm noisy-gd --release epoch --steps 300 --sigma 10"
    assert "the weights might overflow" in failed(f"{line} --eta 1e130 --regularisation 1 -d 1e-5 -o {path}", 2, capsys)
    assert not path.exists()


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_the_model_does_on_raw_rows_what_the_report_says(tmp_path: Path, ending: str, ask_json: Any) -> None:
    generator = np.random.default_rng(8)
    raw = generator.uniform(0.0, 10.0, (2000, 3))
    y = 20.0 + raw @ [1.0, -2.0, 0.5] + generator.standard_normal(2000)
    rows = "\n".join(",".join(map(repr, [*row, target])) for row, target in zip(raw.tolist(), y.tolist(), strict=True))
    (tmp_path / "t.csv").write_text(f"a,b,c,out\n{rows}\n")
    (tmp_path / "r.csv").write_text("column,low,high\na,0,10\nb,0,10\nc,0,10\nout,0,40\n")
    path = tmp_path / f"m.{ending}"
    line = f"train --data {tmp_path / 't.csv'} --target out --ranges {tmp_path / 'r.csv'} --loss squares"
    [case] = ask_json(f"{line} -R 1 --intercept --seed 1 -e 8 -d 1e-5 -o {path} --show-unprotected-metrics")
    model = load(str(path))
    predicted = model.scores(raw)
    labels = np.clip((y - 20.0) / 20.0, -1.0, 1.0)
    assert np.sqrt(np.mean((predicted - labels) ** 2)) == pytest.approx(
        case["training"]["uncovered"]["metrics"]["train"]["rmse"], rel=1e-9
    )
    assert case["training"]["uncovered"]["metrics"]["train"]["r2"] > 0.5
    assert model.columns == ("a", "b", "c")
    assert model.target_range == (0.0, 40.0)
    assert model.privacy["epsilon"] == 8.0
    assert model.privacy["bound"] == best(case)["bound"]
    assert case["training"]["released"] == str(path)


def test_classes_are_those_that_the_user_named(tmp_path: Path, ask: Any) -> None:
    path = tmp_path / "m.json"
    ask(f"{LINE} --seed 1 -o {path}")
    model = load(str(path))
    assert (model.positive, model.target, len(model.columns)) == ("malignant", "diagnosis", 30)
    assert model.negative == "benign"  # named by whoever shipped the table
    ask(f"{LINE} --seed 1 --positive malignant -o {path}")
    assert load(str(path)).negative is None
    assert "benign" not in path.read_text()


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_name_that_no_file_can_have_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not a path" in failed(f"{CANCER} -R 5 -e 1 -d 1e-5 -o '\0.json'", 2, capsys)


OWN_FLAGS = {"--" + name.replace("_", "-") for name in COMMANDS["train"].parameters}


@pytest.mark.parametrize(("algorithm", "more"), [("noisy-gd", "--steps 3"), ("shuffled", ""), ("cyclic", "")])
@pytest.mark.parametrize("loss", ["logistic", "huber --huber-threshold 1"])
def test_cures_name_flags_that_there_are(algorithm: str, more: str, loss: str, ask_json: Any) -> None:
    line = f"{SYNTHETIC} --loss {loss} --algorithm {algorithm} --eta 0.1 --sigma 2 -d 1e-5 {more}"
    [case] = ask_json(line)
    named = {flag for each in case["not_applicable"] for flag in re.findall(r"--[a-z0-9-]+", each["hint"])}
    assert named
    assert named <= OWN_FLAGS


def test_the_hint_where_nothing_applies_names_a_flag_that_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    error = failed(f"{SYNTHETIC} --loss hinge --algorithm skip --eta 0.1 --sigma 1 -d 1e-5", 2, capsys)
    assert "smooth --loss" in error
    assert set(re.findall(r"--[a-z0-9-]+", error)) <= OWN_FLAGS


@pytest.mark.parametrize(("asked", "more"), [(60, "-d 1e-5"), (10**6, "-d 1e-5"), (40, "-d 1e-9")])
def test_an_epsilon_at_which_rounding_is_dear_is_refused_with_one_that_is_not(
    asked: int, more: str, capsys: pytest.CaptureFixture[str], ask_json: Any
) -> None:
    line = f"train --data example:breast-cancer {more}"
    found = re.search(r"give an epsilon of (\d+) or less", failed(f"{line} -e {asked}", 3, capsys))
    assert found is not None
    least = int(found[1])
    assert 5 < least < asked
    [case] = ask_json(f"{line} -e {least}")
    assert best(case)["epsilon"] == least


def test_a_delta_below_what_a_miss_has_costs_a_little_epsilon(ask_json: Any) -> None:
    [case] = ask_json(f"{SYNTHETIC} --steps 3 --eta 0.1 -e 1 -d 1e-12")
    assert 0.0 < best(case)["floating_point"]["epsilon"] < 1e-6
    assert best(case)["floating_point"]["delta"] < 1e-14


@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        *itertools.product(["noisy-gd --steps 5", "stop"], ["-e 1 -d 1e-5", "--sigma 2 -d 1e-5", "--sigma 2 -e 1"]),
        ("noisy-gd --steps 5", "-e 12 -d 1e-5"),
        ("stop", "-e 4 -d 1e-5"),
    ],
)
def test_the_guarantee_of_the_run_and_of_its_rounding_keep_the_budget(algorithm: str, more: str, ask_json: Any) -> None:
    """The run on real numbers is asked about by another command."""
    [case] = ask_json(f"{SYNTHETIC} --eta 0.1 --algorithm {algorithm} {more}")
    found = best(case)
    noise = found["value"] if found["quantity"] == "noise_std" else 2.0
    given = {name: case["inputs"][name]["value"] for name in ("lipschitz", "smoothness", "records")}
    flags = " ".join(f"--{name} {value!r}" for name, value in given.items()) + " --radius 1"
    epsilon = found["epsilon"] - found["floating_point"]["epsilon"]
    [other] = ask_json(f"compare --eta 0.1 --algorithm {algorithm} {flags} --sigma {noise!r} -e {epsilon!r}")
    [row] = [each for each in other["results"] if each["bound"] == found["bound"]]
    total = row["delta"] + found["floating_point"]["delta"]
    assert 0.99 * found["delta"] <= total <= found["delta"] * (1.0 + 1e-6)


# --- sweeps, plots and Python -----------------------------------------------------------------------------------------


def test_a_sweep_is_drawn_with_bands(tmp_path: Path, ask: Any) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "f.svg"
    line = "train --synthetic linear --dimension 2 -R 1 -n 100:200:100 --algorithm shuffled,stop --eta 0.01 --sigma 0.5"
    ask(f"{line} -d 1e-5 --replicas 20 --plot {path}")
    text = path.read_text()
    assert len(re.findall(r'id="\w*PolyCollection_\d+"', text)) == 2
    for word in ("excess empirical risk", "shuffled", "stop", "median of 20 runs"):
        assert word in text


def test_bands_hold_their_medians() -> None:
    from dpcalc.render.chart import chart

    found = [
        dpcalc.train(synthetic="logistic", records=n, dimension=2, radius=1, step_size=0.005, noise_std=0.5, delta=1e-5,
                     algorithm=["shuffled", "stop"], replicas=30, reference=True).cases
        for n in (100, 300)
    ]  # fmt: skip
    without = [case._replace(training={**case.training, "uncovered": {}}) for case in found[0]]
    with pytest.raises(dpcalc.SpecError, match="the excess risk was not measured"):
        chart(dpcalc.Report("train", (*without, *found[1])))
    drawn = chart(dpcalc.Report("train", (*found[0], *found[1])))
    [panel] = drawn.panels
    assert [series.label for series in panel.series] == ["shuffled", "stop"]
    for series in panel.series:
        assert series.xs == (100, 300)
        assert series.band is not None
        low, high = series.band
        assert all(a is not None and b is not None and c is not None and a <= b <= c
                   for a, b, c in zip(low, series.ys, high, strict=True))  # fmt: skip


def test_python_and_the_shell_agree(ask_json: Any) -> None:
    [shell] = ask_json(f"{LINE} --seed 5 --test-fraction 0.3")
    python = dpcalc.train(
        data="example:breast-cancer", loss="logistic", radius=5, epsilon=1, delta=1e-5, seed=5, test_fraction=0.3
    ).to_dict()["cases"][0]
    assert "seconds" not in shell["training"]  # they could tell when a random stop came
    assert shell["training"] == python["training"]
    assert best(shell) == best(python)


def test_arrays_are_taken_and_left_alone() -> None:
    generator = np.random.default_rng(9)
    x, y = generator.standard_normal((100, 2)) * 5.0, np.arange(100) % 2
    kept = x.copy()
    case = dpcalc.train(data=(x, y), loss="logistic", radius=1, epsilon=1, delta=1e-5, seed=1,
                        show_unprotected_metrics=True).cases[0]  # fmt: skip
    assert np.array_equal(x, kept)
    assert case.training is not None
    assert case.training["records"] == 100
    assert case.training["uncovered"]["rows_clipped"] > 50
    with pytest.raises(dpcalc.SpecError, match=r"features have shape \(100,\)"):
        dpcalc.train(data=(y, y), loss="logistic", radius=1, epsilon=1, delta=1e-5)


def test_reports_are_strict_json_of_what_was_given(ask: Any) -> None:
    lines = ask(f"{CANCER} -R 5 -e 1,2 -d 1e-5 --format jsonl").splitlines()
    assert [json.loads(line)["inputs"]["epsilon"]["value"] for line in lines] == [1.0, 2.0]
    head, row = ask(f"{LINE} --reference --format csv").splitlines()[:2]
    assert "uncovered_train_accuracy" in head
    assert "uncovered_non_private_train_accuracy" in head
    assert len(row.split(",")) >= len(head.split(","))


# --- the documentation ------------------------------------------------------------------------------------------------

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "training.md"
COMMANDS_SHOWN = (
    re.findall(r"^\$ dpcalc (train .*)$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    if DOCUMENT.exists()
    else []
)


@pytest.mark.few(2)
@pytest.mark.parametrize("line", COMMANDS_SHOWN)
def test_what_the_documentation_shows_runs(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ask: Any
) -> None:
    if "--plot" in line:
        pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    text = ask(line.replace("--replicas 1000", "--replicas 20").replace("200:1000:200", "200:400:200"))
    assert "differentially private" in text or "epsilon" in text
    written = re.findall(r"(?:-o|--plot) (\S+)", line)
    cards = [card_path(model) for model in re.findall(r"-o (\S+)", line)]
    assert sorted(os.listdir(tmp_path)) == sorted([*written, *cards])


def test_rounding_leaves_pure_privacy_a_small_delta(ask: Any, tmp_path: Path) -> None:
    """On real numbers its delta is exactly 0."""
    path = tmp_path / "model.json"
    ask(
        "train --synthetic logistic -n 40 --dimension 3 --loss logistic --feature-bound 1 --algorithm rotation -R 0.66 "
        f"--eta 0.0277 --laplace-scale 2 -e 1 --seed 3 -o {path}"
    )
    privacy = json.loads(path.read_text(encoding="utf-8"))["privacy"]
    assert 0.0 < privacy["delta"] < 1e-6
    assert privacy["log_delta"] == pytest.approx(math.log(privacy["delta"]))
