"""The README: every command in it runs, and what it says of the tests is what CI runs."""

import os
import re
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dpcalc.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.exists(), reason="the README is not part of this distribution")


def text_of_readme() -> str:
    """Return what the page says."""
    return README.read_text(encoding="utf-8") if README.exists() else ""


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of one language."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text_of_readme(), re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(body) for name, body in found if name == language]


def shown() -> dict[str, str]:
    """Return the commands whose answers are shown, with what is shown."""
    parts = (part.partition("\n") for block in blocks("console") for part in ("\n" + block).split("\n$ ")[1:])
    return {command: answer.strip() for command, _, answer in parts if answer.strip()}


CONSOLE = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
FILES = {block.partition("\n")[0].removeprefix("# "): block for block in blocks("yaml")}
SHELL = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
PARTS = [part.strip().removeprefix(".venv/bin/") for line in SHELL for part in line.split("&&")]
QUERIES = [part for part in PARTS if part.startswith("dpcalc ")]
COMMANDS = [*QUERIES, *CONSOLE]


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line of the README, with this interpreter's dpcalc, failing if any part of a pipeline does."""
    python = shlex.quote(sys.executable)
    command = re.sub(r"(^|\|\s*|&&\s*)dpcalc ", rf"\1{python} -m dpcalc ", command)
    command = re.sub(r"(^|\|\s*|&&\s*)python ", rf"\1{python} ", command)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_there_is_something_to_check() -> None:
    assert len(CONSOLE) >= 7
    assert len(shown()) >= 6
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 120
    assert len(QUERIES) >= 1
    assert blocks("python")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that the README shows."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", [command for command in COMMANDS if "|" not in command])
def test_commands(command: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(command)
    assert program == "dpcalc"
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    printed = capsys.readouterr()
    assert not stop.value.code, printed.err
    assert printed.out.strip()
    assert printed.err == ""
    assert sorted(os.listdir(folder)) == sorted(FILES)


@pytest.mark.parametrize("command", [*QUERIES, *(command for command in COMMANDS if "|" in command)])
def test_commands_of_a_shell(command: str, folder: Path) -> None:
    done = shell(command, folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert done.stderr == ""
    assert shown().get(command, done.stdout.strip()) == done.stdout.strip(), "stale: run `python docs/build.py`"


@pytest.mark.parametrize("program", blocks("python"))
def test_programs(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    assert "iteration.pnsgd" in capsys.readouterr().out


def test_ci_runs_the_shell_commands_as_printed() -> None:
    gate = ROOT / ".ci" / "run"
    if not gate.exists():
        pytest.skip(".ci/run is not part of this distribution")
    assert [part for part in PARTS if "pytest" in part] == ["python -m pytest"]
    assert len([part for part in PARTS if part.startswith("pip install")]) == len(SHELL) == 3
    assert "README.md" in gate.read_text(encoding="utf-8")


def test_exit_codes_and_options_are_those_there_are() -> None:
    """Every long option that the README names is one of some command."""
    import click

    from dpcalc.cli.main import cli

    group = click.Context(cli)
    known = {"--help", "--version"}
    for name in cli.list_commands(group):
        command = cli.get_command(group, name)
        assert command is not None
        known |= {option for parameter in command.params for option in parameter.opts}
    text = re.sub(r"^```sh\n.*?^```", "", text_of_readme(), flags=re.DOTALL | re.MULTILINE)
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) <= known
