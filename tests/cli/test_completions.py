"""Completion scripts and the manual page: as shipped they are fresh, and a shell completes what there is."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dpcalc.cli.described import described
from dpcalc.cli.help import page
from dpcalc.cli.main import COMMANDS
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


def complete(words: list[str], folder: Path | None = None) -> list[str]:
    """Return what bash offers for the last of the words of a command line that starts with dpcalc."""
    line = " ".join(f"'{word}'" for word in ["dpcalc", *words])
    program = (
        f"source '{SHIPPED['bash']}'; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _dpcalc; "
        """printf '%s\\n' "${COMPREPLY[@]}" """
    )
    return shell("bash", "--norc", "-c", program, folder=folder).split("\n")[:-1]


bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


@pytest.mark.parametrize("kind", SHIPPED)
def test_what_is_shipped_is_fresh(kind: str, ask: Any) -> None:
    fresh = ask(f"completions {kind}")
    assert SHIPPED[kind].read_text(encoding="utf-8") == fresh, "run `sh completions/update.sh`"


@pytest.mark.parametrize("kind", SHIPPED)
def test_every_command_and_option_is_in_every_script(kind: str) -> None:
    text = SHIPPED[kind].read_text(encoding="utf-8").replace("\\-", "-")
    assert {entry.name for entry in described()} == set(COMMANDS)
    for entry in described():
        assert re.search(rf"\b{entry.name}\b", text)
        for option in entry.options:
            name = option.names[0]
            assert (f"-l {name[2:]} " if kind == "fish" else name) in text


@bash
def test_bash_completes_commands() -> None:
    assert complete([""]) == [*COMMANDS, "--help", "--version"]
    assert complete(["sh"]) == ["shifted", "shuffle"]
    assert complete(["--v"]) == ["--version"]


@bash
def test_bash_completes_options_and_their_words() -> None:
    assert complete(["rdp", "--feature"]) == ["--feature-bound"]
    assert complete(["rdp", "--release"]) == [""]
    assert set(complete(["compare", "--algorithm", ""])) == {*NAMED, "all"}
    assert set(complete(["compare", "-n", "10", "--algorithm", "shuffled-"])) == {"shuffled-epochs", "shuffled-stop"}
    assert complete(["rdp", "--algorithm", "s"]) == ["skip", "stop"]
    assert complete(["rdp", "--algorithm", "pnsgd,sk"]) == ["pnsgd,skip"]
    assert complete(["rdp", "--algorithm", "=", "sk"]) == ["skip"]
    assert complete(["rdp", "--algorithm", "="]) == ["pnsgd", "skip", "stop", "local"]
    assert set(complete(["utility", "--loss", ""])) == set(LOSSES)
    assert complete(["rdp", "--records", ""]) == [""]
    assert complete(["rdp", "-n", "10", "--json", "--permutation"]) == [""]
    assert complete(["shuffle", "-n", "10", "--json", "--permutation", "s"]) == ["secret"]


@bash
def test_bash_completes_bounds() -> None:
    assert complete(["explain", ""]) == list(all_bounds())
    assert complete(["explain", "iteration.pnsgd", "iteration.sk"]) == ["iteration.skip", "iteration.skip_rdp"]
    assert complete(["compare", "--plot-bounds", "iteration.skip_"]) == ["iteration.skip_rdp"]
    assert complete(["completions", ""]) == ["bash", "zsh", "fish", "man"]


@bash
def test_bash_completes_files(tmp_path: Path) -> None:
    for name in ("steps.csv", "a b.csv"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()
    assert set(complete(["shifted", "--schedule", ""], tmp_path)) == {"steps.csv", "a b.csv", "folder"}
    assert complete(["shifted", "--schedule", "s"], tmp_path) == ["steps.csv"]


@bash
def test_bash_completes_recipes_and_reports(tmp_path: Path) -> None:
    for name in ("budget.yaml", "other.yml", "steps.csv"):
        (tmp_path / name).touch()
    assert set(complete(["check", ""], tmp_path)) == {"budget.yaml", "other.yml"}
    assert complete(["check", "budget.yaml", "--report", "s"], tmp_path) == ["sarif="]


LISTS = {
    "dpcalc dp-sgd --sampling poisson,fi": "poisson,fixed",
    "dpcalc dp-sgd --sampling=poisson,fi": "--sampling=poisson,fixed",
    "dpcalc dp-sgd --sampling fi": "fixed",
    "dpcalc compare --algorithm pnsgd,skip,shuffle-o": "pnsgd,skip,shuffle-once",
    "dpcalc rdp --plot-bounds iteration.skip,iteration.pnsgd_r": "iteration.skip,iteration.pnsgd_rdp",
    "dpcalc rdp --format csv": "csv",
}
"""What is typed -> what the only completion makes of its last word."""

ZSH = r"""
zmodload zsh/zpty
zpty it zsh -f -i
zpty -w it "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; PS1=rea''dy
    shown() { print -r -- \"<<\$BUFFER>\"'>'; BUFFER= }
    zle -N shown; bindkey '^X' shown; bindkey '^I' expand-or-complete"
zpty -r it out '*ready*'
for line in ${@:2}; do
    zpty -w -n it "$line"$'\t\x18'
    zpty -r it out '*<<*>>*'
    print -r -- ${${out##*<<}%%>>*}
done
zpty -d it
"""
"""Type lines, and TAB after each, into a shell whose completions are in a folder; print what became of them."""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_lists() -> None:
    done = shell("zsh", "-f", "-c", ZSH, "zsh", str(SHIPPED["zsh"].parent), *LISTS)
    words = [line.split()[-1].rstrip(",") for line in done.splitlines()]  # the next TAB or space takes the comma away
    assert words == list(LISTS.values())


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
def test_fish_completes_lists() -> None:
    asked = "; ".join(f"complete -C '{line}'" for line in LISTS)
    done = shell("fish", "--no-config", "-c", f"source '{SHIPPED['fish']}'; {asked}")
    assert [line.split("\t")[0] for line in done.splitlines()] == list(LISTS.values())


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


@bash
def test_bash_completes_lists() -> None:
    for line, wanted in LISTS.items():
        if "=" not in line:  # which bash splits into words
            assert complete(line.split()[1:]) == [wanted]


def test_zsh_reads_back_every_option() -> None:
    """Unquote the specifications as zsh does, and take them apart as its _arguments does."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for line in SHIPPED["zsh"].read_text(encoding="utf-8").splitlines():
        spec = re.fullmatch(r" +\[\[ \$words\[1\] == \(([a-z|-]+)\) \]\] && specs\+=\((.*)\)", line)
        if spec is None or spec[2].startswith("'*:"):
            continue
        names, what = re.fullmatch(r"'\*'(\{[^}]+\}|[^']+)('.*')", spec[2]).groups()  # type: ignore[union-attr]
        [text] = shlex.split(what)
        help, rest = re.fullmatch(r"\[((?:\\.|[^]\\])*)\](.*)", text).groups()  # type: ignore[union-attr]
        for command in spec[1].split("|"):
            for name in names.strip("{}").split(","):
                found[command, name.rstrip("=+")] = re.sub(r"\\(.)", r"\1", help), rest
    for entry in described():
        for option in entry.options:
            for name in option.names:
                help, rest = found.pop((entry.name, name))
                assert help == option.help
                assert bool(rest) == (option.takes is not None)
                assert not option.takes or all(word in rest for word in option.takes.words)
    assert not found


def test_fish_reads_back_every_option() -> None:
    """Split the lines as fish does: within single quotes a backslash escapes a quote or itself."""
    found = set()
    for line in SHIPPED["fish"].read_text(encoding="utf-8").splitlines():
        if not line.startswith("complete "):
            assert not line or line.startswith(("#", "function __dpcalc_list", "    ", "end"))
            continue
        tokens = re.findall(r"(?:[^\s'\\]|'(?:\\['\\]|[^'\\])*')+", line)
        assert " ".join(tokens) == line
        words = [re.sub(r"\\(['\\])", r"\1", t[1:-1]) if t[0] == "'" else t for t in tokens]
        given = dict(pairwise(words))
        if "-d" in given and "__fish_seen_subcommand_from" in given["-n"]:
            takes = "-x" in words or "-r" in words
            names = [{"-l": "--", "-s": "-"}[a] + b for a, b in pairwise(words) if a in ("-l", "-s")]
            found |= {(command, name, given["-d"], takes) for command in given["-n"].split()[1:] for name in names}
    wanted = {
        (entry.name, name, option.help, option.takes is not None)
        for entry in described()
        for option in entry.options
        for name in option.names
    }
    assert found == wanted


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
