"""Files whose names are options: a shell, a hook or a script passes them, and they must choose nothing."""

import os
from pathlib import Path
from typing import Any

import pytest

from dpcalc.cli.main import main

RECIPE = """\
dpcalc: recipe/1
defaults: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 4, delta: 1e-6}
cases:
  ok: {assert: epsilon <= 3}
  bad: {assert: epsilon <= 0.01}
"""
NAMES = [
    "--run=^ok$|.yaml", "--run", "--help", "-h", "--list", "--strict", "--version", "-j1", "-j", "--jobs=2.yaml",
    "--baseline=budget.yaml", "--report=json=x.yaml", "-oout.yaml", "-o", "--output=x.yaml", "--shard=1", "--fail-fast",
    "--timeout=1.yaml", "--max-cases=1", "--format=json", "--policy=p.yaml", "--skip=bad.yaml", "--unknown.yaml",
    "-x.yaml", "-",
]  # fmt: skip


def run(words: list[str]) -> int:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "budget.yaml").write_text(RECIPE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("command", ["check", "merge"])
def test_a_file_with_the_name_of_an_option_is_refused(name: str, command: str, folder: Path, capsys: Any) -> None:
    (folder / name).write_text(RECIPE)
    assert run([command, *sorted(os.listdir("."))]) == 2
    said = capsys.readouterr()
    assert f"{name} is " in said.err
    assert "the name of a file here" in said.err
    assert said.out == ""
    assert sorted(os.listdir(".")) == sorted([name, "budget.yaml"])


@pytest.mark.parametrize("name", ["--run=^ok$|", "--help", "--list", "--report=json=", "-o", "-"])
def test_so_is_a_file_in_a_folder_of_that_name(name: str, folder: Path, capsys: Any) -> None:
    (folder / name).mkdir()
    (folder / name / "budget.yaml").write_text(RECIPE)
    for words in (["check", f"{name}/budget.yaml"], ["check", "budget.yaml", f"{name}/budget.yaml"]):
        if name != "-":  # -/budget.yaml is no option
            assert run(words) == 2
            assert "the name of a file here" in capsys.readouterr().err
    assert run(["check", f"{name}/gone.yaml"]) == 2


@pytest.mark.parametrize("name", [name for name in NAMES if name != "-"])
def test_after_two_dashes_a_file_is_a_file(name: str, folder: Path, capsys: Any) -> None:
    (folder / name).write_text(RECIPE.replace("0.01", "3"))
    assert run(["check", "--", name]) == 0
    assert "2 of 2 cases passed" in capsys.readouterr().out
    assert run(["check", f"./{name}"]) == 0


def test_a_dangling_link_is_a_name_as_well(folder: Path) -> None:
    (folder / "--run=^ok$|").symlink_to("nowhere")
    assert run(["check", "budget.yaml", "--run=^ok$|"]) == 2


@pytest.mark.parametrize("pattern", ["budget.yaml", "./budget.yaml", ".", "sub"])
def test_a_file_is_no_selection(pattern: str, folder: Path, capsys: Any) -> None:
    (folder / "sub").mkdir()
    for words in (["--run", pattern], [f"--run={pattern}"]):
        assert run(["check", "budget.yaml", *words]) == 2
        assert "is the name of a file" in capsys.readouterr().err


@pytest.mark.parametrize("strictly", [[], ["--strict"], ["--strict", "--max-cases", "20000"]])
def test_what_is_not_selected_is_in_the_headline_and_fails_a_strict_check(
    strictly: list[str], folder: Path, capsys: Any
) -> None:
    pytest.importorskip("flint")
    assert run(["check", "budget.yaml", "--run", "^ok$", *strictly]) == (1 if strictly else 0)
    assert "1 not selected" in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.few(1)
@pytest.mark.parametrize("more", [[], ["--checkpoint", "c.jsonl"]])
def test_a_shard_alone_is_no_verdict_of_a_strict_check(more: list[str], folder: Path, capsys: Any) -> None:
    pytest.importorskip("flint")
    (folder / "budget.yaml").write_text(RECIPE.replace("0.01", "3"))
    for number in (1, 2):
        words = ["check", "budget.yaml", "--strict", "--shard", f"{number}/2", "--report", f"json={number}.json"]
        assert run([*words, *([*more[:1], f"{number}.{more[1]}"] if more else [])]) == 1
        shown = capsys.readouterr()
        assert f"shard {number} of 2" in shown.out.splitlines()[-1]
        assert "1 cases are left to other shards" in shown.err
        assert "dpcalc merge" in shown.err
    assert run(["merge", "1.json", "2.json"]) == 0
    assert run(["check", "budget.yaml", "--strict", "--shard", "1/1"]) == 0
    assert run(["check", "budget.yaml", "--shard", "1/2"]) == 0
