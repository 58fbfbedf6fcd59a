"""`predict` and `evaluate`: what comes after training."""

import csv
import io
import json
import os
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import SpecError
from dpcalc.recipes.ledgers.charge import LedgerFile
from dpcalc.recipes.ledgers.ledger import read_ledger
from dpcalc.training.data import tables
from dpcalc.training.release import model
from dpcalc.training.release.model import load, save
from dpcalc.training.rule.account import Release
from dpcalc.training.run import single
from tests.training.test_model import MODEL
from tests.training.test_prediction import REGRESSION

TABLE = "b,note,a,y\n1,x,0.5,no\n-1,x,2,yes\n0.5,x,1.25,yes\n"
CANCER = "example:breast-cancer"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with two models and test rows."""
    monkeypatch.chdir(tmp_path)
    save(MODEL._replace(negative="no"), "model.json")
    save(REGRESSION, "numbers.npz")
    (tmp_path / "rows.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "numbers.csv").write_text("a,b,y\n0.5,1,12\n2,-1,25\n1.25,0.5,word\n", encoding="utf-8")
    return tmp_path


def failed(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    assert (stop.value.code, captured.out) == (2, "")
    return captured.err


def test_train_predict_evaluate(folder: Path, ask: Any) -> None:
    """What train measured is what evaluate measures of the model that it wrote, from predictions as well."""
    ask(f"train --data {CANCER} --radius 5 -e 1 -d 1e-5 --seed 1 --intercept -o trained.json --json")
    found = json.loads(ask(f"evaluate trained.json --data {CANCER} --json"))
    ask(f"predict trained.json --data {CANCER} -o predicted.csv")
    with open("predicted.csv", newline="", encoding="utf-8") as file:
        predicted = [row["prediction"] for row in csv.DictReader(file)]
    with open(tables.example_file("breast-cancer"), newline="", encoding="utf-8") as file:
        truth = [row["diagnosis"] for row in csv.DictReader(file)]
    right = sum(p == t for p, t in zip(predicted, truth, strict=True))
    assert set(predicted) == {"malignant", "benign"}
    assert found["metrics"]["accuracy"] == right / 569
    report = dpcalc.train(
        data=CANCER, radius=5, epsilon=1, delta=1e-5, seed=1, intercept=True, output="trained.json",
        show_unprotected_metrics=True,
    )  # fmt: skip
    metrics = report.cases[0].training["uncovered"]["metrics"]["train"]  # type: ignore[index]
    assert found["metrics"]["accuracy"] == metrics["accuracy"]
    assert found["metrics"]["log_loss"] == pytest.approx(metrics["loss"], rel=1e-9)


def test_the_commands_of_the_page_run_one_after_the_other(folder: Path, ask: Any) -> None:
    path = Path(__file__).resolve().parents[2] / "docs" / "after-training.md"
    if not path.exists():
        pytest.skip("the documentation is not part of this distribution")
    lines = re.findall(r"^    dpcalc (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["train", "model", "predict", "evaluate", "evaluate"]
    for line in lines:
        ask(line)
    assert {"model.json", "predicted.csv", "spent.yaml"} <= set(os.listdir())


def test_predictions_go_to_a_file_or_to_standard_output(folder: Path, ask: Any) -> None:
    printed = ask("predict model.json --data rows.csv")
    assert printed.splitlines()[0] == "prediction,probability"
    assert ask("predict model.json --data rows.csv -o -") == printed
    assert ask("predict model.json --data rows.csv -o out.csv") == ""
    assert (folder / "out.csv").read_text(encoding="utf-8") == printed
    found = dpcalc.predict("model.json", "rows.csv", output="again.csv")
    assert (folder / "again.csv").read_text(encoding="utf-8") == printed
    rows = [line.split(",") for line in printed.splitlines()[1:]]
    assert found["prediction"].tolist() == [row[0] for row in rows]
    assert found["probability"].tolist() == [float(row[1]) for row in rows]
    assert dpcalc.predict("model.json", np.empty((0, 2)))["prediction"].tolist() == []


def test_a_failure_leaves_the_old_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "out.csv").write_text("old", encoding="utf-8")
    (folder / "short.csv").write_text("a,c\n1,2\n", encoding="utf-8")
    before = sorted(os.listdir())
    assert "has no column 'b', which the model needs" in failed(
        "predict model.json --data short.csv -o out.csv", capsys
    )
    assert "cannot write none/out.csv" in failed("predict model.json --data rows.csv -o none/out.csv", capsys)
    assert (folder / "out.csv").read_text(encoding="utf-8") == "old"
    assert sorted(os.listdir()) == before


def test_metrics_without_noise_say_that_they_are_not_private(folder: Path, ask: Any) -> None:
    found = json.loads(ask("evaluate model.json --data rows.csv --json"))
    assert (found["private"], found["records"], found["task"]) == (False, 3, "classification")
    assert "epsilon" not in found
    assert set(found["metrics"]) == {"accuracy", "auc", "log_loss", "calibration_error"}
    assert "NOT PRIVATE" in ask("evaluate model.json --data rows.csv")
    found = json.loads(ask("evaluate numbers.npz --data numbers.csv --json"))
    assert set(found["metrics"]) == {"rmse", "mae", "r2"}
    assert "in the original units of the target" in ask("evaluate numbers.npz --data numbers.csv")
    assert dpcalc.evaluate("numbers.npz", "numbers.csv") == found


def test_a_private_evaluation_has_a_guarantee_of_its_own(folder: Path, ask: Any) -> None:
    found = json.loads(ask("evaluate model.json --data rows.csv --private -e 0.5 --json"))
    assert (found["private"], found["epsilon"], found["delta"]) == (True, 0.5, 0.0)
    assert found["adjacency"] == "replace_one"
    assert set(found["metrics"]) == {"accuracy"}
    assert found["ledger"] == {"file": None, "entry": "evaluation: {epsilon: 0.5, adjacency: replace-one}"}
    text = ask("evaluate numbers.npz --data numbers.csv --private -e 0.5 --error-bound 3")
    assert "private for the test rows: epsilon = 0.5, delta = 0" in text
    assert "errors are cut to 3" in text


def test_a_private_evaluation_is_charged_to_the_ledger(folder: Path, ask: Any) -> None:
    line = "evaluate model.json --data rows.csv --private --ledger spent.yaml"
    assert "charged to spent.yaml: evaluation: {epsilon: 0.5" in ask(f"{line} -e 0.5")
    assert "evaluation-2: {epsilon: 0.25" in ask(f"{line} -e 1/4")
    ledger, _ = read_ledger("spent.yaml")
    assert {entry.name: entry.given["epsilon"] for entry in ledger.entries} == {"evaluation": 0.5, "evaluation-2": 0.25}
    total = json.loads(ask("ledger spent.yaml -d 1e-12 --json"))["cases"][0]["results"][0]
    assert total["epsilon"] == pytest.approx(0.75, rel=1e-6)


def charge(path: str, name: str, epsilon: float) -> str:
    return LedgerFile(path).take(Release(name, epsilon)).entry


LEDGERS = {
    "a.yaml": "dpcalc: ledger/1\nentries:\n    old: {mu: 1}  # the first\n",
    "b.yaml": "entries:\n  evaluation:\n    mu: 1\n    times: 2\ndpcalc: ledger/1\n",
    "c.yaml": "dpcalc: ledger/1\nentries: {evaluation: {mu: 1}}",
    "d.json": '{"dpcalc": "ledger/1", "entries": {"old": {"mu": 1}}}',
    "e.yaml": "dpcalc: ledger/1\nentries:\n  old: {mu: 1}",
}


@pytest.mark.parametrize("name", LEDGERS)
def test_an_entry_is_added_to_any_ledger_or_the_file_stays(folder: Path, name: str) -> None:
    Path(name).write_text(LEDGERS[name], encoding="utf-8")
    if name in ("b.yaml", "c.yaml"):
        with pytest.raises(dpcalc.SpecError, match="no entry can be added") as caught:
            charge(name, "evaluation", 0.5)
        assert "evaluation-2: {epsilon: 0.5, adjacency: replace-one}" in str(caught.value.hint)
        assert Path(name).read_text(encoding="utf-8") == LEDGERS[name]
        return
    before, _ = read_ledger(name)
    assert charge(name, "evaluation", 0.5) == "evaluation"
    after, _ = read_ledger(name)
    assert after.entries[:-1] == before.entries
    assert after.entries[-1].given == {"epsilon": 0.5}
    assert after.entries[-1].adjacency == "replace-one"


def test_no_entry_is_lost_where_several_charge_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: charge("spent.yaml", "evaluation", 0.5), range(8)))
    assert len(names) == 8
    assert {entry.name for entry in read_ledger("spent.yaml")[0].entries} == names
    with pytest.raises(dpcalc.SpecError, match=r"cannot read none/spent\.yaml"):
        charge("none/spent.yaml", "evaluation", 0.5)


def test_a_new_ledger_may_be_json(folder: Path) -> None:
    assert [charge("new.json", "evaluation", e) for e in (0.5, 0.25)] == ["evaluation", "evaluation-2"]
    assert [entry.given["epsilon"] for entry in read_ledger("new.json")[0].entries] == [0.5, 0.25]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate model.json --data rows.csv -e 1", "--epsilon goes with a private evaluation"),
        ("evaluate model.json --data rows.csv --ledger l.yaml", "--ledger goes with a private evaluation"),
        ("evaluate model.json --data rows.csv --private", "needs an epsilon"),
        ("evaluate model.json --data rows.csv --threshold 1", "the threshold is 1"),
        ("evaluate numbers.npz --data numbers.csv --threshold 0.2", "has no threshold"),
        ("evaluate numbers.npz --data numbers.csv --plot a.svg", "nothing to draw"),
        ("evaluate model.json --data rows.csv --plot a.txt", "the kind of picture is not known"),
        ("evaluate model.json --data rows.csv --private -e 0", "epsilon is 0"),
        ("evaluate model.json --data rows.csv --private -e 1 --ledger rows.csv", "rows.csv"),
        ("evaluate model.json --data numbers.csv --private -e 1 --error-bound 1", "predicts classes"),
        ("evaluate rows.csv --data rows.csv", "not a model file"),
        ("predict none.json --data rows.csv", "cannot read none.json"),
        ("predict model.json --data none.csv", "cannot read none.csv"),
    ],
)
def test_what_makes_no_sense_is_refused(
    folder: Path, line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(os.listdir())
    assert message in failed(line, capsys)
    assert sorted(os.listdir()) == before


def test_python_refuses_what_the_command_refuses(folder: Path) -> None:
    for wrong in ({"private": True}, {"epsilon": 1.0}, {"ledger": "l.yaml"}, {"error_bound": 1.0}):
        with pytest.raises(dpcalc.SpecError, match="epsilon of its own"):
            dpcalc.evaluate("model.json", "rows.csv", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_every_iterate_that_is_released_is_written(folder: Path, ending: str, ask: Any) -> None:
    run = (
        "train --synthetic logistic -n 60 --dimension 2 -R 1 --algorithm cyclic --epochs 4 --eta 0.5 --sigma 4 -d 1e-5"
    )
    path = f"released.{ending}"
    case = json.loads(ask(f"{run} --release epoch --intercept --seed 1 -o {path} --json"))["cases"][0]
    trained = load(path)
    assert trained.released is not None
    assert trained.released.shape == (case["training"]["iterates_released"], 3) == (4, 3)
    assert trained.released[-1].tolist() == [*trained.weights, trained.intercept]
    assert len({tuple(row) for row in trained.released.tolist()}) == 4
    rows = np.array([[0.3, -0.2]])
    assert dpcalc.predict(path, rows)["probability"][0] == pytest.approx(
        1.0 / (1.0 + np.exp(-float(trained.scores(rows)[0]))), rel=1e-12
    )
    ask(f"{run} --seed 1 -o {path}")
    assert load(path).released is None


@pytest.mark.parametrize(
    ("more", "count"),
    [
        ("--labels 0,1", 100), ("--labels 0,1,2", 100), ("--target-range 0,1", 100), ("--labels 0,1 --steps 7", 7),
        pytest.param("--labels 0,1 --batch-size 30 --epochs 1", 2, marks=pytest.mark.campaign),
    ],
)  # fmt: skip
def test_the_default_rule_writes_every_iterate_where_that_is_asked(
    more: str, count: int, folder: Path, ask: Any
) -> None:
    """All of them are public in its guarantee, so that the run is the same and costs the same."""
    path = Path("t.csv")
    path.write_text("a,b,y\n" + "0.3,-0.2,1\n-0.1,0.5,0\n" * 30)
    run = f"train --data {path} {more} -e 8 -d 1e-5 --seed 1"
    [plain] = json.loads(ask(f"{run} --average tail -o plain.json --json"))["cases"]
    [case] = json.loads(ask(f"{run} --average tail --release epoch -o all.json --json"))["cases"]
    assert case["results"][0]["value"] == plain["results"][0]["value"]
    assert case["training"]["iterates_released"] == count
    one, every = load("plain.json"), load("all.json")
    assert every.weights.tolist() == one.weights.tolist()
    assert one.released is None
    assert every.released is not None
    scores = 3 if "0,1,2" in more else 1
    assert every.released.shape == (count, 3 * scores)
    later = every.released[count // 2 :].mean(axis=0)
    assert later == pytest.approx([*every.weights.reshape(-1), *np.atleast_1d(every.intercept)], rel=1e-9, abs=1e-12)


def test_more_iterates_than_a_file_holds_are_refused_before_training(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("something was trained")

    monkeypatch.setattr(single, "train", never)
    monkeypatch.setattr(model, "MODEL_BYTES", (1 << 20) + 1000)
    run = "train --synthetic logistic -n 60 --dimension 2 -R 1 --algorithm cyclic --epochs 20 --eta 0.5 --sigma 9"
    message = failed(f"{run} -d 1e-5 --release epoch -o r.json", capsys)
    assert "62 numbers are released" in message
    assert "write an .npz file" in message
    assert not os.path.exists("r.json")


def test_numbers_that_no_double_holds_are_undefined(folder: Path, ask: Any) -> None:
    """Nor does numpy warn of them: a warning is an error in the tests."""
    huge = REGRESSION._replace(target_range=(-1e308, 1e308), weights=np.array([1e308, 1e308]))
    save(huge, "huge.json")
    found = json.loads(ask("evaluate huge.json --data numbers.csv --json"))
    assert found["metrics"]["rmse"] is None
    ask("evaluate huge.json --data numbers.csv")
    ask("predict huge.json --data numbers.csv")


@pytest.mark.parametrize(
    ("line", "lost"),
    [
        ("evaluate model.json --data rows.csv --private -e .5 --ledger L.yaml -o L.yaml", "L.yaml"),
        ("evaluate model.json --data rows.csv -o model.json", "model.json"),
        ("evaluate model.json --data rows.csv -o ./link.csv", "rows.csv"),
        ("predict model.json --data rows.csv -o rows.csv", "rows.csv"),
        ("predict model.json --data rows.csv -o model.json", "model.json"),
        ("train --data t.npz --positive 1 -e 2 -d 1e-5 -o t.npz", "t.npz"),
        ("train --data t.npz --positive 1 -e 2 -d 1e-5 --ranges s.json -o s.json", "s.json"),
        ("train --data t.npz --positive 1 -e 2 -d 1e-5 --ranges s.card.json -o s.npz", "s.card.json"),
    ],
)
def test_no_output_goes_over_an_input(folder: Path, line: str, lost: str, capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.dumps({"columns": {"1": {"low": 0, "high": 1}, "2": {"low": 0, "high": 1}}})
    for name in ("s.json", "s.card.json"):
        (folder / name).write_text(schema, encoding="utf-8")
    np.savez("t.npz", X=np.ones((9, 2)), y=np.arange(9) % 2)
    (folder / "L.yaml").write_text("dpcalc: 1\nadjacency: replace-one\nentries:\n  a: {epsilon: 1}\n", encoding="utf-8")
    os.symlink("rows.csv", "link.csv")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert "would be written over" in failed(line, capsys)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert lost in before


def test_python_writes_over_no_input(folder: Path) -> None:
    for output in ("rows.csv", "model.json"):
        with pytest.raises(SpecError, match="would be written over"):
            dpcalc.predict("model.json", "rows.csv", output=output)


def test_targets_that_are_words_are_counted(folder: Path, ask: Any) -> None:
    found = json.loads(ask("evaluate numbers.npz --data numbers.csv --json"))
    said = (
        "1 of 3 targets are no finite number, and count as the middle of the target's range (counted in the test rows "
        "without noise)"
    )
    assert (found["unreadable"], found["remarks"]) == (1, [said])
    assert said in " ".join(ask("evaluate numbers.npz --data numbers.csv").split())
    assert json.loads(ask("evaluate model.json --data rows.csv --json"))["remarks"] == []


@pytest.mark.parametrize(
    "text",
    [
        "dpcalc: ledger/1\nadjacency: add-remove\nentries:\n  old: {mu: 1}\n",
        "dpcalc: ledger/1\nadjacency: replace-one\nentries:\n  old: {epsilon: 1, adjacency: add-remove}\n",
    ],
)
def test_a_ledger_for_another_adjacency_is_not_charged(
    folder: Path, text: str, ask: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("l.yaml").write_text(text, encoding="utf-8")
    ask("ledger l.yaml -d 1e-6")
    said = failed("evaluate model.json --data rows.csv --private -e 0.5 --ledger l.yaml", capsys)
    assert "for adjacency add-remove, and what is charged for replace-one" in said
    assert Path("l.yaml").read_text(encoding="utf-8") == text


def test_what_keeps_the_default_rule_away_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = "train --data numbers.csv --target-range 0,30 -e 2 -d 1e-5"
    said = failed(f"{line} --release last", capsys)
    assert "--release describes a run of its own" in said
    assert "--radius" in said
    assert "--epsilon" not in said
    said = failed(f"{line} --epochs 3", capsys)
    assert "--epochs describes a run of its own" in said
    assert "give --radius; or leave out --epochs" in said


def test_training_says_in_which_units_errors_are(folder: Path, ask: Any) -> None:
    rows = np.tile([[0.5, 0.25, 3.0]], (40, 1))
    np.save("t.npy", rows)
    line = "train --data t.npy -e 2 -d 1e-5 --show-unprotected-metrics"
    assert "in units of the mapped target: 0 to 30 goes to [-1, 1]" in ask(f"{line} --target-range 0,30 -vv")
    assert "in units of the mapped target" not in ask(f"{line} --positive 3 -vv")


def test_the_command_says_it_in_a_few_rows_and_all_of_it_when_asked(folder: Path, ask: Any) -> None:
    ask("train --data example:breast-cancer -e 1 -d 1e-5 -o m.json")
    short = ask("model m.json").splitlines()
    assert len(short) <= 8
    assert all(len(line) <= 80 for line in short)
    everything = ask("model m.json -v")
    assert all(name in everything for name in load("m.json").columns)
    assert "no confidence interval" in " ".join(everything.split())
    found = json.loads(ask("model m.json --json"))
    rows = list(csv.DictReader(io.StringIO(ask("model m.json --format csv"))))
    assert [row["column"] for row in rows] == [row["column"] for row in found["coefficients"]]
    assert [float(row["value"]) for row in rows] == [row["value"] for row in found["coefficients"]]
    assert found["privacy"]["epsilon"] == 1.0
    assert "| column | per unit |" in ask("model m.json --format markdown")
    assert {**dpcalc.coefficients("m.json"), "readings": found["readings"]} == found


def test_names_of_columns_from_a_hostile_file_stay_text(folder: Path, ask: Any) -> None:
    path = "m.json"
    save(MODEL._replace(columns=("=cmd()", "\x1b[31m")), path)
    assert "\x1b" not in ask(f"model {path} -v")
    assert "'=cmd()" in ask(f"model {path} --format csv")


def test_the_first_screen_of_an_evaluation_is_short_and_every_number_says_that_it_is_uncovered(
    folder: Path, ask: Any
) -> None:
    lines = ask("evaluate model.json --data rows.csv").splitlines()
    assert len(lines) <= 8
    assert all(len(line) <= 80 for line in lines)
    metrics, (head, *of_classes) = lines[1:5], lines[5:]
    assert all("uncovered" in line for line in (*metrics, head))
    assert [line.split()[0] for line in of_classes] == ["no", "yes"]
    blocks = ask("evaluate model.json --data rows.csv -v").strip().split("\n\n")
    assert len(blocks) == 4
    assert all("uncovered" in block.splitlines()[0] for block in blocks[1:])


def test_a_threshold_moves_rows_from_one_class_to_the_other(folder: Path) -> None:
    chances = dpcalc.predict("model.json", "rows.csv")["probability"]
    middle = float(np.sort(chances)[1])
    for threshold, above in ((middle - 1e-6, 2), (middle + 1e-6, 1)):
        found = dpcalc.evaluate("model.json", "rows.csv", threshold=threshold)
        assert sum(row[1] for row in found["confusion"]) == above == int((chances > threshold).sum())
        noisy = dpcalc.evaluate("model.json", "rows.csv", threshold=threshold, private=True, epsilon=1000.0)
        assert noisy["metrics"]["accuracy"]["value"] == pytest.approx(found["metrics"]["accuracy"], abs=0.01)


def test_a_model_and_its_evaluation_are_drawn(folder: Path, ask: Any) -> None:
    pytest.importorskip("matplotlib")
    pytest.importorskip("plotext")
    for line, words in (
        ("model model.json", "half of its range"), ("evaluate model.json --data rows.csv", "false-positive rate"),
    ):  # fmt: skip
        assert words in ask(f"{line} --plot -")
        assert ask(f"{line} --plot drawn.svg") == ask(line)
        assert Path("drawn.svg").read_text(encoding="utf-8").count("<path") > 5


def test_a_single_run_is_drawn_with_its_coefficients(folder: Path, ask: Any) -> None:
    pytest.importorskip("plotext")
    drawn = ask(f"train --data {CANCER} -e 1 -d 1e-5 --plot -")
    assert drawn.count("_") > 10
    assert "two standard deviations of the privacy noise" in drawn
    case = json.loads(ask(f"train --data {CANCER} -e 1 -d 1e-5 -o m.json --json"))["cases"][0]
    stated = case["training"]["coefficients"]
    everything = dpcalc.coefficients("m.json")["coefficients"]
    assert [row["name"] for row in stated] == [row["name"] for row in everything[:16]]
    assert [row["weight"] for row in stated] == [row["weight"] for row in everything[:16]]
