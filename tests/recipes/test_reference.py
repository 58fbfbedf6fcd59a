"""``from:``: the values of a project's own configuration, and nothing outside the project."""

import os
from pathlib import Path
from typing import Any

import pytest

from dpcalc.notes import Referenced
from dpcalc.recipes.reading.read import read
from tests.recipes.conftest import HEAD

YAML = """\
base: &base {lr: 1e-1, std: 2}
train:
  <<: [*base, {lr: 5, clip: 1}]
  std: 3e0
  epochs: [1, 2]
a/b~c: {'0': 7}
tagged: !float 3
"""


@pytest.mark.parametrize(
    ("name", "text", "pointer"),
    [
        ("c.yaml", YAML, "/train/std"),
        ("c.yml", YAML, "/train/std"),
        ("c.json", '{"train": {"std": 3.0}}', "/train/std"),
        ("c.json", '{"a": [1, {"std": 3e0}]}', "/a/1/std"),
        ("c.toml", "[train]\nstd = 3.0\n", "/train/std"),
        ("c.toml", "std = 3\n", "/std"),
    ],
)
def test_a_value(good: Any, name: str, text: str, pointer: str) -> None:
    Path(name).write_text(text, encoding="utf-8")
    entry = good(f"a: {{algorithm: pnsgd, noise_std: {{from: '{name}#{pointer}'}}}}").entries["a"]
    assert entry.parameters["noise_std"] == 3.0
    assert entry.notes == (Referenced(parameter="noise_std", origin=f"{name}#{pointer}"),)


@pytest.mark.parametrize(
    ("pointer", "value"), [("/train/lr", 0.1), ("/train/clip", 1.0), ("/base/std", 2.0), ("/a~1b~0c/0", 7.0)]
)
def test_merged_and_escaped_keys(good: Any, pointer: str, value: float) -> None:
    Path("c.yaml").write_text(YAML, encoding="utf-8")
    assert good(f"a: {{noise_std: {{from: 'c.yaml#{pointer}'}}}}").entries["a"].parameters["noise_std"] == value


def test_a_list_is_a_matrix_and_a_mapping_sets_many(good: Any) -> None:
    Path("c.yaml").write_text(YAML + "run: {noise_std: 2, algorithm: cyclic}\n", encoding="utf-8")
    recipe = good("a: {from: c.yaml#/run, matrix: {epochs: {from: c.yaml#/train/epochs}}}")
    assert list(recipe.entries) == ["a[epochs=1]", "a[epochs=2]"]
    assert recipe.entries["a[epochs=2]"].parameters["noise_std"] == 2.0
    assert recipe.entries["a[epochs=2]"].parameters["algorithm"] == "cyclic"


REFUSED = [
    ("c.yaml", "4:25: 'c.yaml' is not a reference"),
    ("c.yaml#train/lr", "is not a reference"),
    ("/etc/passwd#/a", "'/etc/passwd' is an absolute path"),
    ("~/x.yaml#/a", "is an absolute path"),
    ("../x.yaml#/a", "'../x.yaml' leads out of the project"),
    ("a/../../x.yaml#/a", "leads out of the project"),
    ("link.yaml#/a", "'link.yaml' leads out of the project"),
    ("folder/x.yaml#/a", "leads out of the project"),
    ("folder/../c.yaml#/a", "leads out of the project"),
    ("c.yaml\\0#/a", "is not a path"),
    ("-#/a", "does not read standard input"),
]

UNREAD = [
    ("c.yaml#/train/lrr", "there is no 'lrr'"),
    ("c.yaml#/tain", "there is no 'tain'"),
    ("c.yaml#/train/epochs/2", "no item '2' in a list of 2"),
    ("c.yaml#/train/epochs/-1", "no item '-1'"),
    ("c.yaml#/train/lr/x", "'x' is looked for in a single value"),
    (
        "c.yaml#/train/epochs",
        "c.yaml:5:11: noise_std is that of 'c.yaml#/train/epochs', a list; it must be a number > 0",
    ),
    ("c.yaml#/train", "a mapping; it must be a number"),
    ("c.yaml#/tagged", "c.yaml:7:9: noise_std is that of"),
    ("nothing.yaml#/a", "4:25: nothing.yaml: cannot be read: No such file"),
    ("r.py#/a", "an unknown kind of configuration"),
    ("twice.json#/a", "a name twice"),
    ("nan.json#/a", "nan.json: noise_std is that of 'nan.json#/a', a text that is not shown; it must be a number > 0"),
    ("deep.json#/a", "deep"),
    ("deep.toml#/a", "deep"),
    ("deep.yaml#/a", "nested more than 32 deep"),
    ("long.toml#/a", "a line is longer than"),
    ("parts.toml#/a", "parts.toml:2: a key has more than 32 parts"),
    ("digits.toml#/a", "a number is too long"),
    ("bool.json#/a", "a text that is not shown"),
    ("octal.yaml#/a", "octal.yaml:1:4: noise_std is that of"),
    ("bad.json#/a", "bad.json:1:2: not JSON"),
    ("bad.toml#/a", "bad.toml: not TOML"),
    ("empty.yaml#/a", "empty.yaml is empty"),
    ("pipe.yaml#/a", "is not a regular file"),
    ("large.json#/a", "more than 1000000 bytes"),
]


@pytest.mark.parametrize(("reference", "message"), REFUSED, ids=[reference for reference, _ in REFUSED])
def test_what_is_refused(bad: Any, reference: str, message: str, tmp_path: Path) -> None:
    _files(tmp_path)
    assert message in bad(f'a: {{noise_std: {{from: "{reference}"}}}}')


@pytest.mark.parametrize(("reference", "message"), UNREAD, ids=[reference for reference, _ in UNREAD])
def test_what_is_the_fault_of_one_case(unread: Any, reference: str, message: str, tmp_path: Path) -> None:
    _files(tmp_path)
    assert message in unread(f'a: {{noise_std: {{from: "{reference}"}}}}\nb: {{noise_std: 2}}')


def _files(tmp_path: Path) -> None:
    for name, text in {
        "c.yaml": YAML, "twice.json": '{"a": 1, "a": 2}', "nan.json": '{"a": NaN}', "deep.json": '{"a":' * 50_000,
        "deep.toml": "a=" + "[" * 5000 + "]" * 5000, "deep.yaml": "{a: " * 50, "long.toml": "a." * 6000 + "a = 1",
        "bool.json": '{"a": true}', "octal.yaml": "a: 010", "bad.json": "{", "bad.toml": "[", "empty.yaml": "",
        "large.json": "[" + "1," * 600_000 + "1]", "parts.toml": "b = 1\n" + "a." * 4000 + "a = 1",
        "digits.toml": "a = 0x" + "f" * 9000,
    }.items():  # fmt: skip
        Path(name).write_text(text, encoding="utf-8")
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir(exist_ok=True)
    (outside / "x.yaml").write_text("a: 1", encoding="utf-8")
    os.symlink(outside / "x.yaml", "link.yaml")
    os.symlink(outside, "folder")
    os.mkfifo("pipe.yaml")


@pytest.mark.parametrize("marker", [".git", "pyproject.toml"])
def test_the_project_is_the_nearest_folder_that_is_one(write: Any, marker: str) -> None:
    Path("a/b").mkdir(parents=True)
    Path("c.yaml").write_text("a: 3", encoding="utf-8")
    path = write("a: {noise_std: {from: '../../c.yaml#/a'}}", "a/b/r.yaml")
    with pytest.raises(Exception, match="leads out of the project"):
        read(path)
    Path(marker).mkdir()
    assert read(path).entries["a"].parameters["noise_std"] == 3.0
    Path("a", marker).mkdir()
    with pytest.raises(Exception, match="leads out of the project"):
        read(path)


def test_a_schedule_is_a_file_of_the_project(good: Any, bad: Any) -> None:
    Path("a").mkdir()
    assert good("a: {schedule: steps.csv}", "a/r.yaml").entries["a"].parameters["schedule"] == "a/steps.csv"
    assert "is an absolute path" in bad("a: {schedule: /etc/steps.csv}")
    assert "leads out" in bad("a: {schedule: ../steps.csv}")
    assert "leads out" in bad("a: {matrix: {schedule: [../steps.csv]}}")


def test_what_both_a_case_and_its_mapping_set_is_refused(bad: Any, unread: Any) -> None:
    Path("c.yaml").write_text("run: {noise_std: 2, colour: 3}", encoding="utf-8")
    assert "noise_std is set here and in 'c.yaml#/run'" in bad("a: {noise_std: 3, from: c.yaml#/run}")
    assert "'c.yaml#/run' has a key that is no parameter" in unread("a: {from: c.yaml#/run}")
    assert "is no mapping of parameters" in unread("a: {from: c.yaml#/run/colour}")
    assert HEAD.startswith("dpcalc")


@pytest.mark.parametrize(
    "text",
    [
        "a: {algorithm: shuffled-epochs, noise_std: 2, epochs: {from: 'c.yaml#/train/epochs'}}",
        "a: {algorithm: shuffled-epochs, noise_std: 2, from: 'c.yaml#/train'}",
    ],
)
def test_a_null_in_a_configuration_is_no_answer(unread: Any, text: str) -> None:
    # Read as "not given", the number of epochs would be 1, and a gate on many of them would hold.
    Path("c.yaml").write_text("train: {epochs: ~}\n", encoding="utf-8")
    assert "epochs is null in 'c.yaml#/train/epochs' | give it a value there" in unread(text)


def test_a_null_by_default_that_a_case_replaces(good: Any) -> None:
    Path("c.json").write_text('{"epochs": null}', encoding="utf-8")
    head = "dpcalc: recipe/1\ndefaults: {algorithm: cyclic, noise_std: 2, epochs: {from: 'c.json#/epochs'}}\ncases:\n"
    assert good("a: {epochs: 3}", head=head).entries["a"].parameters["epochs"] == 3
