"""Completion scripts and the manual page: as shipped they are fresh, and a shell completes what there is."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dpcalc.cli.commands.help import page
from dpcalc.cli.main import COMMANDS, COMPLETE
from dpcalc.model.algorithm import NAMED
from dpcalc.model.loss import LOSSES
from dpcalc.theorems.record import all_bounds

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = {
    "bash": ROOT / "completions" / "dpcalc.bash",
    "zsh": ROOT / "completions" / "_dpcalc",
    "fish": ROOT / "completions" / "dpcalc.fish",
    "man": ROOT / "docs" / "dpcalc.1",
}

pytestmark = pytest.mark.skipif(not SHIPPED["bash"].exists(), reason="not part of this distribution")


def shell(*command: str, text: str = "", folder: Path | None = None) -> str:
    done = subprocess.run(command, input=text, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def complete(*words: str) -> list[tuple[str, str]]:
    """Return what the program offers for the last of the words: kind, and word."""
    line = shlex.join(["dpcalc", *words])
    asked = {**os.environ, COMPLETE: "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}
    done = subprocess.run([sys.executable, "-m", "dpcalc"], env=asked, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return [(kind, word) for kind, _, word in (line.partition(",") for line in done.stdout.split())]


def words(*typed: str) -> set[str]:
    """Return the words offered, of which none is the name of a file."""
    offered = complete(*typed)
    assert {kind for kind, _ in offered} <= {"plain"}
    return {word for _, word in offered}


bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.mark.parametrize("kind", SHIPPED)
def test_what_is_shipped_is_fresh(kind: str, ask: Any) -> None:
    fresh = ask(f"completions {kind}")
    assert SHIPPED[kind].read_text(encoding="utf-8") == fresh, "run `sh completions/update.sh`"


def test_commands_are_completed() -> None:
    assert words("") == set(COMMANDS)
    assert words("sh") == {"shifted", "shuffle"}
    assert words("--v") == {"--version"}
    assert words("completions", "") == {"bash", "zsh", "fish", "man"}
    assert "order" in words("help", "or")


def test_options_and_their_words_are_completed() -> None:
    assert words("rdp", "--feature") == {"--feature-bound"}
    assert words("rdp", "--release") == set()
    assert words("compare", "--algorithm", "") == {*NAMED, "all"}
    assert words("compare", "-n", "10", "--algorithm", "shuffled-") == {"shuffled-epochs", "shuffled-stop"}
    assert words("rdp", "--algorithm", "pnsgd,sk") == {"pnsgd,skip"}
    assert words("utility", "--loss", "") == set(LOSSES)
    assert words("rdp", "--records", "") == set()
    assert words("shuffle", "-n", "10", "--json", "--permutation", "s") == {"secret"}
    assert "noise-multiplier" in words("rdp", "--solve", "noise-m")


def test_bounds_are_completed() -> None:
    assert words("explain", "") == set(all_bounds())
    assert words("explain", "iteration.pnsgd", "iteration.sk") == {"iteration.skip", "iteration.skip_rdp"}
    assert words("compare", "--plot-bounds", "iteration.a,iteration.skip_") == {"iteration.a,iteration.skip_rdp"}


@pytest.mark.few(2)
@pytest.mark.parametrize("line", ["shifted --schedule s", "check s", "train --data s", "predict s", "rdp -o s"])
def test_the_shell_completes_files(line: str) -> None:
    assert complete(*line.split()) == [("file", "s")]


def test_kinds_of_reports_are_completed() -> None:
    assert words("check", "budget.yaml", "--report", "s") == {"sarif="}


@bash
def test_bash_asks_the_program(tmp_path: Path) -> None:
    program = tmp_path / "dpcalc"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dpcalc "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    asked = (
        f"source '{SHIPPED['bash']}'; PATH='{tmp_path}':$PATH; COMP_WORDS=(dpcalc rdp --algorithm s); COMP_CWORD=3; "
        """_dpcalc_completion dpcalc 2>/dev/null; printf '%s\\n' "${COMPREPLY[@]}" """
    )
    assert shell("bash", "--norc", "-c", asked).split() == ["skip", "stop"]


KNOWN = {"bash": "complete -p dpcalc", "zsh": "print $_comps[dpcalc]", "fish": "complete -c dpcalc"}
"""What prints how dpcalc is completed, in each shell."""


@pytest.mark.parametrize("name", KNOWN)
def test_the_line_for_a_virtual_environment_works(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for source, target in project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"].items():
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, tmp_path / target)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    [line] = re.findall(rf"^ +{name}  +(.*)$", page("completions"), re.MULTILINE)
    before = f"autoload -Uz compinit; ZDOTDIR='{tmp_path}'; " if name == "zsh" else ""
    quiet = {"bash": "--norc", "zsh": "-f", "fish": "--no-config"}[name]
    assert "dpcalc" in shell(name, quiet, "-c", f"{before}{line}; {KNOWN[name]}")


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_scripts_parse(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    shell(name, "-n", str(SHIPPED[name]))


def test_the_manual_page_is_clean() -> None:
    if shutil.which("groff") is None:
        pytest.skip("needs groff")
    text = shell("groff", "-man", "-ww", "-Tascii", "-P-cbou", str(SHIPPED["man"]))
    assert "dpcalc rdp -n 60000 -L 1" in text
    assert "--noise-std, --sigma NUM" in text
