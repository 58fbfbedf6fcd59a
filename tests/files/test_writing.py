"""What is written goes where the command line says, whatever a checkout holds under that name."""

import os
import shlex
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcalc.cli.main import main
from dpcalc.errors import SpecError
from dpcalc.files import output

RECIPE = """\
dpcalc: recipe/1
cases:
  budget: {command: rdp, records: {from: train.yaml#/n}, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 4,
           delta: 1e-6, assert: epsilon <= 3}
  quiet: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 5, delta: 1e-6}
"""
QUERY = "rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 4 -d 1e-6"
TRAIN = "train --data rows.csv --ranges ranges.csv --positive 1 -e 1 -d 1e-4"
RUNS = {
    "-o": (f"{QUERY} -o OUT", "answer.txt", ()),
    "--report": (f"{QUERY} --report json=OUT", "answer.json", ()),
    "card": (f"{QUERY} --report card=OUT", "card.json", ()),
    "--plot": (f"{QUERY} --index 10,50 --plot OUT", "plot.svg", ()),
    "bounds": ("bounds -o OUT", "bounds.txt", ()),
    "init": ("init train.yaml -o OUT", "drafted.yaml", ("train.yaml",)),
    "init --policy": ("init --policy budget.yaml -o OUT", "policy.yaml", ("budget.yaml", "train.yaml")),
    "check -o": (
        "check budget.yaml --baseline base.json -o OUT", "out.txt", ("budget.yaml", "train.yaml", "base.json")
    ),
    "check json": (
        "check budget.yaml --baseline base.json --report json=OUT", "out.json", ("budget.yaml", "base.json")
    ),
    "check jsonl": ("check budget.yaml --report jsonl=OUT", "gates.jsonl", ("budget.yaml", "train.yaml")),
    "check plot": ("check budget.yaml --report plot=OUT", "gates.svg", ("budget.yaml", "train.yaml")),
    "checkpoint": ("check budget.yaml --checkpoint OUT", "check.point", ("budget.yaml", "train.yaml")),
    "merge": ("merge one.json two.json --report json=OUT", "all.json", ("one.json", "two.json")),
    "predict": ("predict model.json --data rows.csv -o OUT", "predicted.csv", ("model.json", "rows.csv")),
    "evaluate": ("evaluate model.json --data rows.csv -o OUT", "score.txt", ("model.json", "rows.csv")),
    "model": ("model model.json -o OUT", "coefficients.txt", ("model.json",)),
    "--ledger": (
        "evaluate model.json --data rows.csv --private -e 1 --ledger OUT", "ledger.yaml", ("model.json", "rows.csv")
    ),
    "train": (f"{TRAIN} -o OUT", "trained.json", ("rows.csv", "ranges.csv")),
    "train report": (f"{TRAIN} --report json=OUT", "run.json", ("rows.csv", "ranges.csv")),
}  # fmt: skip
KEPT = ("checkpoint", "--ledger")
"""What is read and written again: a link in its place is refused, for the file behind it would not be changed."""


def run(line: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return int(stop.value.code or 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with all that the commands read."""
    project = tmp_path_factory.mktemp("made")
    (project / "budget.yaml").write_text(RECIPE)
    (project / "train.yaml").write_text("n: 60000\nnoise_multiplier: 1\nbatch_size: 100\n")
    rng = np.random.default_rng(7)
    rows = rng.uniform(-1, 1, (200, 2))
    lines = [f"{a!r},{b!r},{int(a + b > 0)}" for a, b in rows.tolist()]
    (project / "rows.csv").write_text("\n".join(["a,b,y", *lines]) + "\n")
    (project / "ranges.csv").write_text("column,low,high\na,-1,1\nb,-1,1\n")
    before = Path.cwd()
    os.chdir(project)
    try:
        for line in (
            "check budget.yaml --report json=base.json",
            "check budget.yaml --shard 1/2 --report json=one.json",
            "check budget.yaml --shard 2/2 --report json=two.json",
            f"{TRAIN} -o model.json --no-card",
        ):
            assert run(line) == 0, line
    finally:
        os.chdir(before)
    return project


@pytest.fixture
def project(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of its own, beside files that are none of its business."""
    project = tmp_path / "project"
    (project / ".git" / "hooks").mkdir(parents=True)
    for file in made.iterdir():
        (project / file.name).write_bytes(file.read_bytes())
    program = project / ".git" / "hooks" / "pre-commit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "kept.txt").write_text("kept")
    monkeypatch.chdir(project)
    return project


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What stands in every file below a folder, and its permissions; links are not followed."""
    return {
        str(path.relative_to(folder)): (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def line_of(name: str, path: str) -> str:
    return RUNS[name][0].replace("OUT", path)


@pytest.mark.parametrize("name", RUNS)
def test_every_output_is_written_by_its_own_name(name: str, project: Path) -> None:
    """The other tests of this file mean nothing unless these lines succeed."""
    assert run(line_of(name, RUNS[name][1])) == 0
    found = (project / RUNS[name][1]).lstat()
    assert stat.S_ISREG(found.st_mode)
    assert found.st_size > 0
    assert not found.st_mode & 0o111


@pytest.mark.few(60)
@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("to", ["../outside/kept.txt", ".git/hooks/pre-commit", "../outside/new", "budget.yaml"])
@pytest.mark.parametrize("name", RUNS)
def test_a_link_is_never_followed(name: str, to: str, absolute: bool, project: Path) -> None:
    out = project / RUNS[name][1]
    out.symlink_to(to)
    before = contents(project.parent)
    code = run(line_of(name, str(out) if absolute else out.name))
    after = contents(project.parent)
    written = after.pop(f"project/{out.name}", None)
    after.pop("project/trained.card.json", None)
    assert after == before
    if name in KEPT:
        assert code == 2
    assert (code == 0) == (written is not None and not out.is_symlink())
    assert written is None or not written[1] & 0o111


@pytest.mark.parametrize("to", ["../outside", ".git/hooks", "."])
@pytest.mark.parametrize("name", RUNS)
def test_no_folder_behind_a_link_is_written_in(name: str, to: str, project: Path, capsys: Any) -> None:
    (project / "reports").symlink_to(to)
    before = contents(project.parent)
    assert run(line_of(name, f"reports/{RUNS[name][1]}")) == 2
    assert "reports is a link" in capsys.readouterr().err
    assert contents(project.parent) == before


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("where", [".git", ".git/hooks", ".GIT"])
def test_no_repository_is_written_in(name: str, where: str, project: Path) -> None:
    (project / where).mkdir(exist_ok=True)
    before = contents(project.parent)
    assert run(line_of(name, f"{where}/{RUNS[name][1]}")) == 2
    assert contents(project.parent) == before


@pytest.mark.parametrize("name", RUNS)
def test_no_program_is_written_over(name: str, project: Path) -> None:
    out = project / RUNS[name][1]
    out.write_text("#!/bin/sh\n")
    out.chmod(0o755)
    before = contents(project.parent)
    assert run(line_of(name, out.name)) == 2
    assert contents(project.parent) == before


@pytest.mark.parametrize("way", ["the same", "by ..", "hard link", "link"])
@pytest.mark.parametrize(("name", "input_"), [(name, each) for name, (_, _, inputs) in RUNS.items() for each in inputs])
def test_no_input_is_written_over(name: str, input_: str, way: str, project: Path, capsys: Any) -> None:
    before = contents(project.parent)
    out = RUNS[name][1]
    if way in ("the same", "by .."):
        (project / "sub").mkdir()
        out = input_ if way == "the same" else f"sub/../{input_}"
    if way == "hard link":
        os.link(input_, out)
    if way == "link":
        os.symlink(input_, out)
    code = run(line_of(name, out))
    suffixed = way in ("the same", "by ..") and os.path.splitext(out)[1] != os.path.splitext(RUNS[name][1])[1]
    assert code == 2
    said = capsys.readouterr().err
    assert suffixed or "would be written over" in said
    after = contents(project.parent)
    assert {path: after[path] for path in before} == before


def test_two_names_of_one_file_are_one_place(project: Path, capsys: Any) -> None:
    (project / "a.json").write_text("old")
    os.link("a.json", "b.json")
    assert run("check budget.yaml --report json=a.json --report jsonl=b.json") == 2
    assert "two outputs go to the same place" in capsys.readouterr().err
    assert (project / "a.json").read_text() == "old"


def test_the_same_path_may_be_typed_in_any_way(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the current folder as the shell names it, though that name goes through a link; above it; from the root."""
    (project / "sub").mkdir()
    named = project.parent / "named"
    named.symlink_to(project)
    for current, path in (
        (project, "./x.txt"), (project, "sub/../x.txt"), (project / "sub", "../x.txt"), (project, f"{project}//x.txt"),
    ):  # fmt: skip
        monkeypatch.chdir(current)
        output.write("said", path)
        assert (project / "x.txt").read_text() == "said"
        (project / "x.txt").unlink()
    monkeypatch.chdir(named)
    with pytest.raises(SpecError, match="named is a link"):
        output.write("said", f"{named}/x.txt")
    monkeypatch.setenv("PWD", str(named))
    output.write("said", f"{named}/x.txt")
    assert (project / "x.txt").read_text() == "said"
    monkeypatch.setenv("PWD", str(project.parent / "outside"))  # not where we are: it vouches for nothing
    with pytest.raises(SpecError, match="named is a link"):
        output.write("said", f"{named}/y.txt")


@pytest.mark.parametrize(
    "path", ["", ".", "..", "/", "sub/", "sub/.", "sub/..", "gone/x.txt", "budget.yaml/x.txt", "a\0b"]
)
def test_what_is_no_place_for_a_file_is_refused(path: str, project: Path) -> None:
    (project / "sub").mkdir()
    before = contents(project.parent)
    with pytest.raises(SpecError):
        output.write("said", path)
    with pytest.raises(SpecError):
        output.check_outputs([(path, "-o")])
    assert contents(project.parent) == before


def test_a_repository_is_known_by_any_name(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project / ".git" / "hooks")
    with pytest.raises(SpecError, match="Git keeps its repository there"):
        output.write("said", "commit-msg")
    monkeypatch.chdir(project)
    (project / "worktree").mkdir()
    for path in (".git", "worktree/.git", "worktree/.Git", str(project / ".git" / "config")):
        with pytest.raises(SpecError, match="Git keeps its repository there"):
            output.write("said", path)


def test_devices_pipes_and_streams_are_written_to(project: Path, capfd: Any) -> None:
    for path in ("/dev/null", "/dev/stdout", "-", "/dev/fd/1", "/dev/stderr"):
        assert run(f"bounds -o {path}") == 0
    shown = capfd.readouterr()
    assert shown.out.count("shuffle.hybrid") == 3 * shown.err.count("shuffle.hybrid") > 0
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(Path("pipe").read_text()))
    reader.start()
    output.write("said", "pipe")
    reader.join(30)
    assert read == ["said"]
    assert stat.S_ISFIFO(os.lstat("pipe").st_mode)
    # None of them has a folder for what very many cases need beside their output.
    assert [output.is_file(path) for path in ("/dev/null", "/dev/stdout", "-", "pipe", "budget.yaml", "new")] == [
        False, False, False, False, True, True,
    ]  # fmt: skip


def test_a_link_to_a_device_is_replaced(project: Path) -> None:
    (project / "gates.json").symlink_to("/dev/null")
    output.write("said", "gates.json")
    assert (project / "gates.json").read_text() == "said"
    assert not (project / "gates.json").is_symlink()


def test_the_summary_of_the_step_is_added_to_a_file_and_no_link(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.parent / "summary.md"))
    (project.parent / "summary.md").write_text("before\n")
    assert run("check budget.yaml") == 0
    text = (project.parent / "summary.md").read_text()
    assert text.startswith("before\n")
    assert "budget" in text
    (project / "link.md").symlink_to("../outside/kept.txt")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project / "link.md"))
    assert run("check budget.yaml") == 0
    assert "it is a link" in capsys.readouterr().err
    assert (project.parent / "outside" / "kept.txt").read_text() == "kept"


def test_a_folder_that_becomes_a_link_changes_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who moves the folder away, and puts a link in its place, once it is open."""
    (project / "reports").mkdir()
    true_open = os.open

    def swapped(path: Any, flags: int, *arguments: Any, **named: Any) -> int:
        if str(path).startswith(".dpcalc-") and (project / "reports").is_dir() and not (project / "moved").exists():
            (project / "reports").rename(project / "moved")
            (project / "reports").symlink_to("../outside")
        return true_open(path, flags, *arguments, **named)

    monkeypatch.setattr(os, "open", swapped)
    output.write("said", "reports/x.txt")
    assert (project / "moved" / "x.txt").read_text() == "said"
    assert [file.name for file in (project.parent / "outside").iterdir()] == ["kept.txt"]


def test_a_file_that_becomes_a_link_is_replaced(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who puts a link in the place of the file between the look at it and the writing."""
    (project / "x.txt").write_text("old")
    true_fsync = os.fsync

    def swapped(handle: int) -> None:
        (project / "x.txt").unlink()
        (project / "x.txt").symlink_to("../outside/kept.txt")
        true_fsync(handle)

    monkeypatch.setattr(os, "fsync", swapped)
    output.write("said", "x.txt")
    assert (project.parent / "outside" / "kept.txt").read_text() == "kept"
    assert (project / "x.txt").read_text() == "said"
    assert not (project / "x.txt").is_symlink()


@pytest.mark.parametrize("out", ["reports/x.json", "budget.yaml", "train.yaml", ".git/x.json", "program.json"])
def test_the_work_does_not_begin(out: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (project / "reports").symlink_to("../outside")
    (project / "program.json").touch(0o755)

    def working(*_: Any, **__: Any) -> Any:
        raise AssertionError("the cases are evaluated")

    monkeypatch.setattr("dpcalc.recipes.running.checking.Checking", working)
    assert run(f"check budget.yaml --report json={out}") == 2
    assert out in capsys.readouterr().err
    assert run("check budget.yaml --report json=fine.json") == 4  # so that the above says something
