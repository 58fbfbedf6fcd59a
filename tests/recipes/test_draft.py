"""`dpcalc init`: a recipe from a configuration in the words of other programs."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpcalc.cli.main import main

TRAIN = """\
data: {dataset_size: 50000, batch_size: 500}
optim: {lr: 0.1, momentum: 0.9, num_epochs: 20, max_iter: 100}
privacy: {noise_multiplier: 1.1, max_grad_norm: 1.0, target_delta: 1e-5, target_epsilon: 3, sampling: poisson}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "train.yaml").write_text(TRAIN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ended(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    printed = capsys.readouterr()
    return int(stop.value.code or 0), printed.out, printed.err


def case_of(text: str) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(text)["cases"]["released-model"]
    return case


def test_a_configuration_becomes_a_recipe_of_references(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text, err = ended(capsys, "init train.yaml")
    assert code == 0
    assert case_of(text) == {
        "command": "dp-sgd",
        "records": {"from": "train.yaml#/data/dataset_size"},
        "batch_size": {"from": "train.yaml#/data/batch_size"},
        "step_size": {"from": "train.yaml#/optim/lr"},
        "epochs": {"from": "train.yaml#/optim/num_epochs"},
        "noise_multiplier": {"from": "train.yaml#/privacy/noise_multiplier"},
        "clip": {"from": "train.yaml#/privacy/max_grad_norm"},
        "delta": {"from": "train.yaml#/privacy/target_delta"},
        "sampling": {"from": "train.yaml#/privacy/sampling"},
        "assert": "epsilon <= 3.0",
    }
    assert "# max_iter: means steps in some programs and not in others" in text
    assert err.startswith("as it stands: epsilon <= 3.65593 at delta = 1e-05 (")


def test_the_recipe_gates_what_is_trained(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Replacement costs 3.66, which is over the budget; half as much again of noise is not."""
    assert ended(capsys, "init train.yaml -o budget.yaml")[0] == 0
    code, text, _ = ended(capsys, "check budget.yaml")
    assert code == 1
    assert "train.yaml" not in text  # the recipe says where its values are read
    (folder / "train.yaml").write_text(TRAIN.replace("1.1", "1.6"), encoding="utf-8")
    assert ended(capsys, "check budget.yaml")[0] == 0


def test_json_and_toml_and_folders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "c.json").write_text(json.dumps({"x/y": [{"sample_size": 5}, {"num_examples": 100}]}))
    _, text, _ = ended(capsys, "init a/c.json --algorithm cyclic -o a/budget.yaml")
    case = case_of((folder / "a" / "budget.yaml").read_text())
    assert case == {"command": "compare", "algorithm": "cyclic", "records": {"from": "c.json#/x~1y/1/num_examples"}}
    (folder / "c.toml").write_text("[train]\nweight_decay = 0.1\nlearning_rate = 0.5\n")
    _, text, err = ended(capsys, "init c.toml --command multi-epoch")
    assert case_of(text)["regularisation"] == {"from": "c.toml#/train/weight_decay"}
    assert err.startswith("still to add: ")


def test_nothing_is_guessed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.yaml").write_text("a: {lr: 0.1, epochs: 3, steps: 9}\nb: {learning_rate: 0.2, loss: resnet}\n")
    code, text, _ = ended(capsys, "init train.yaml --algorithm cyclic")
    assert code == 0
    assert "step_size" not in case_of(text)
    assert "steps" not in case_of(text)
    assert "# step_size: train.yaml#/a/lr and train.yaml#/b/learning_rate both mean it; choose one" in text
    assert "# loss: no value of loss" in text


@pytest.mark.parametrize("said", ["disable_dp: true", "noise_type: laplace", "per_sample_clipping: no"])
def test_a_configuration_without_privacy_is_refused(
    said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "train.yaml").write_text(f"{OPACUS}{said}\n", encoding="utf-8")
    code, out, err = ended(capsys, "init train.yaml")
    assert (code, out) == (3, "")
    assert said.partition(":")[0] in err


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x: 1\n", "init train.yaml", "no value that describes a run"),
        ("lr: 0.1\n", "init train.yaml", "Which algorithm? It is not in 'train.yaml'"),
        ("lr: 0.1\n", "init train.yaml --command nothing", "unknown command"),
        ("lr: 0.1\n", "init train.yaml --algorithm nothing", "unknown algorithm"),
        ("lr: 0.1\n", "init ../other.yaml", "the recipe may not read '../other.yaml'"),
        ("lr: 0.1\n", "init none.yaml", "cannot"),
        ("lr: 0.1\n", "init ''", "'' is not a path"),
        ("lr: [0.1\n", "init train.yaml", "train.yaml"),
    ],
)
def test_refusals(text: str, line: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.yaml").write_text(text, encoding="utf-8")
    code, out, err = ended(capsys, line)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") <= 2


OPACUS = """\
model: resnet
optimizer: {name: sgd, momentum: 0.9, lr: 0.1}
poisson_sampling: true
epochs: 2
batch_size: 64
dataset_size: 6400
noise_multiplier: 1.1
max_grad_norm: 1.0
target_delta: 1e-5
"""


def test_what_is_no_parameter_is_said_or_passed_over(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.yaml").write_text(OPACUS)
    code, text, err = ended(capsys, "init train.yaml")
    assert code == 0
    assert case_of(text)["sampling"] == "poisson"
    assert "    sampling: poisson  # poisson_sampling: true, which is copied and not read: change both\n" in text
    assert "# momentum: With dp-sgd, where every iterate may be public, leave it out" in text
    assert "resnet" not in text
    assert "# not understood, and left out: model, optimizer.name\n" in text
    assert err.startswith("as it stands: epsilon <= ")


def test_what_is_not_understood_is_listed_by_its_key(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = ["n", "per_device_train_batch_size", "gradient_accumulation_steps", "a\tb", *(f"k{i}" for i in range(60))]
    settings = {**dict.fromkeys(keys, "secret"), "deep": {"n": [1, {"m": None}]}, "noise_multiplier": 1}
    (folder / "train.json").write_text(json.dumps(settings), encoding="utf-8")
    code, text, _ = ended(capsys, "init train.json")
    listed = " ".join(line[1:].strip() for line in text.partition("uncomment this line\n")[2].splitlines())
    assert code == 0
    assert listed.startswith(
        "not understood, and left out: n, per_device_train_batch_size, gradient_accumulation_steps,"
    )
    assert listed.endswith("k45 and 16 more")
    assert "secret" not in text
    assert case_of(text) == {"command": "dp-sgd", "noise_multiplier": {"from": "train.json#/noise_multiplier"}}


def test_what_is_not_used_is_not_remarked_upon(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "train.yaml").write_text(OPACUS.replace("0.9", "0.0").replace("true", "false"))
    _, text, err = ended(capsys, "init train.yaml")
    assert "momentum" not in text
    assert "sampling" not in case_of(text)
    assert "# poisson_sampling: false says what sampling is not; write what it is, such as sampling: shuffle" in text
    assert err.startswith("still to add: How are batches drawn? Give --sampling.")
    (folder / "train.yaml").write_text(OPACUS + "sampling: shuffle\n")
    text = ended(capsys, "init train.yaml")[1]
    assert "sampling" not in case_of(text)
    assert "# sampling: train.yaml#/poisson_sampling and train.yaml#/sampling both mean it; choose one" in text


def test_a_recipe_is_written_where_it_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a project around them, a recipe reads what lies below its own folder; the hint is typed as it is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "recipes").mkdir(parents=True)
    (tmp_path / "a" / "train.yaml").write_text(OPACUS)
    code, _, err = ended(capsys, "init a/train.yaml -o a/recipes/mine.yaml")
    assert code == 2
    assert "the recipe may not read 'a/train.yaml': it reads files below" in err
    assert err.endswith("hint: write the recipe beside the configuration: -o a/mine.yaml\n")
    assert ended(capsys, "init a/train.yaml -o a/mine.yaml")[0] == 0
    assert "released-model" in ended(capsys, "check a/mine.yaml")[1]


def test_a_hostile_configuration_adds_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Keys with line ends stay within their comment and their reference; aliases do not multiply."""
    hostile = {"lr\n    assert: epsilon <= 9": 0.1, "a\n# b": {"epochs": 3}, "loss": "x\n    skip: because"}
    (folder / "c.json").write_text(json.dumps(hostile))
    _, text, _ = ended(capsys, "init c.json --algorithm cyclic")
    assert case_of(text) == {
        "command": "compare", "algorithm": "cyclic", "epochs": {"from": "c.json#/a\n# b/epochs"},
    }  # fmt: skip
    bomb = "a0: &a0 {epochs: 1}\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12))
    (folder / "train.yaml").write_text(bomb)
    assert ended(capsys, "init train.yaml --algorithm cyclic")[0] in (0, 2)


@pytest.mark.parametrize(
    ("said", "instead", "words"),
    [
        ("batch_size: 64", "batch_size: 60", "short last batch left out?\n  hint: state drop_last in train.yaml\n"),
        ("dataset_size", "people", "needs records (needed by sampled.poisson)\n  hint: state records in train.yaml\n"),
    ],
)
def test_what_the_configuration_lacks_is_to_be_stated_there(
    folder: Path, capsys: pytest.CaptureFixture[str], said: str, instead: str, words: str
) -> None:
    """`init` takes no parameters, so the flags of other commands are no help."""
    (folder / "train.yaml").write_text(OPACUS.replace(said, instead))
    assert ended(capsys, "init train.yaml")[2].endswith(words)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("gradient_accumulation_steps: 16", "is 64 the batch size on one of 1 devices x 16 accumulated"),
        ("n_critic: 5\nsteps: 100", "not a single value of steps"),
        ("steps_per_epoch: 50", "by `dpcalc account` the run spends"),
    ],
)
def test_no_epsilon_is_printed_below_that_of_account(
    folder: Path, capsys: pytest.CaptureFixture[str], said: str, words: str
) -> None:
    (folder / "train.yaml").write_text(f"{OPACUS}{said}\n")
    code, _, err = ended(capsys, "init train.yaml")
    assert code == 0
    assert err.startswith("still to add: ")
    assert words in err
    assert "as it stands" not in err
