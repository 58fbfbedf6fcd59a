"""``--plot`` from the command line, and the figures of the documentation."""

import importlib.util
import re
import shlex
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_imports import BARE, QUERY, imported

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures.md"
RUN = "rdp -n 1000 -i 1 -L 1 --smoothness 1 --eta 0.1 --sigma 0.5"
SWEEP = f"{RUN} -e 0.1:2:0.1"
TEXT = FIGURES.read_text(encoding="utf-8") if FIGURES.exists() else ""
SLOW = ("figure-4.svg", "figure-5.svg", "epochs.svg", "attack.svg")
COMMANDS = re.findall(r"^\$ dpcalc (.*) --plot (\S+)$", TEXT, re.MULTILINE)


def test_the_report_is_printed_beside_the_file(ask: Any, tmp_path: Path) -> None:
    plain = ask(SWEEP)
    for name in ("a.svg", "b.PNG", "c.pdf"):
        assert ask(f"{SWEEP} --plot {tmp_path / name}") == plain
        assert (tmp_path / name).stat().st_size > 1000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.PNG", "c.pdf"]
    ElementTree.parse(tmp_path / "a.svg")
    first = (tmp_path / "a.svg").read_bytes()
    ask(f"{SWEEP} --plot {tmp_path / 'a.svg'}")
    assert (tmp_path / "a.svg").read_bytes() == first


def test_what_was_written_is_said_on_stderr(capsys: Any, tmp_path: Path) -> None:
    from dpcalc.cli.main import main

    with pytest.raises(SystemExit):
        main([*shlex.split(SWEEP), "--plot", str(tmp_path / "a.svg")])
    warned, written = capsys.readouterr().err.splitlines()
    assert "delta is at least 1/records" in warned  # of the smallest epsilons
    assert written == f"plot written to {tmp_path / 'a.svg'}"


def test_a_plot_in_the_terminal_takes_the_place_of_the_report(ask: Any, tmp_path: Path) -> None:
    text = ask(f"{SWEEP} --plot -")
    assert set(text) - set("┌┐└┘├┤┬┴┼─│") < set(map(chr, range(128)))
    assert "\x1b" not in text
    assert text.startswith("pnsgd: delta against epsilon\n")
    assert "given:" not in text
    assert "\x1b" in ask(f"{SWEEP} --plot - --color always")
    target = tmp_path / "report.json"
    assert ask(f"{SWEEP} --plot - --json -o {target}") == text
    assert target.read_text().startswith("{")


def test_a_failed_gate_is_drawn_all_the_same(ask: Any, tmp_path: Path) -> None:
    target = tmp_path / "a.svg"
    ask(f"{SWEEP} --assert 'delta<=1e-9' --plot {target}", expected=1)
    assert target.exists()


@pytest.mark.few(6)
@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"{RUN} -d 1e-6 --plot a.svg", "sweep a parameter, for example --delta 1e-9:1e-3:log13"),
        (f"{RUN} -e 1 --plot -", "-e 0.1:5:0.1"),
        (f"{SWEEP} --plot a.jpg", ".svg, .png or .pdf"),
        (f"{SWEEP} --plot svg", ".svg, .png or .pdf"),
        (f"{SWEEP} --plot - --json", "mix on standard output"),
        (f"{SWEEP} --plot - --format csv", "mix on standard output"),
        (f"{SWEEP} --plot a.svg -o ./a.svg", "the same file"),
        (f"{SWEEP} --plot no/such/folder/a.svg", "cannot write"),
        (f"{SWEEP} --plot-bounds iteration.pnsgd", "add --plot"),
        (f"{SWEEP} --plot - --plot-bounds iteration.none", "there is iteration.pnsgd"),
        (f"{RUN} -d 1e-6 --risk --plot - --plot-bounds iteration.none", "there is iteration.pnsgd"),
        (f"{RUN} -d 1e-6 --plot -", "of one run, --risk draws"),
    ],
)
def test_refusals(line: str, said: str, capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcalc.cli.main import main

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("target", "package"), [("-", "'plotext<6'"), ("a.svg", "matplotlib")])
def test_without_its_package_it_says_what_to_install(
    capsys: Any, monkeypatch: pytest.MonkeyPatch, target: str, package: str
) -> None:
    from dpcalc.cli.main import main

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(f"{SWEEP} --plot {target}"))
    assert stop.value.code == 2
    assert f"pip install {package}, or" in capsys.readouterr().err


def test_another_plotext_is_refused_before_anything_is_computed(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import plotext

    from dpcalc.cli.main import main

    monkeypatch.delattr(plotext, "clear_figure")
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(f"{SWEEP} --plot -"))
    captured = capsys.readouterr()
    assert (stop.value.code, captured.out) == (2, "")
    assert "pip install 'plotext<6', or --plot FILE.svg" in captured.err


def test_matplotlib_is_imported_for_a_file_only(tmp_path: Path) -> None:
    sweep = shlex.split(SWEEP)
    assert "matplotlib" not in imported("-m", "dpcalc", *shlex.split(QUERY)) - BARE
    assert "matplotlib" not in imported("-m", "dpcalc", *sweep, "--plot", "-") - BARE
    assert "matplotlib" in imported("-m", "dpcalc", *sweep, "--plot", str(tmp_path / "a.png"))


@pytest.mark.few(2)
@pytest.mark.skipif(not COMMANDS, reason="the documentation is not part of this distribution")
@pytest.mark.parametrize(
    ("command", "name"),
    [pytest.param(*one, id=one[1], marks=pytest.mark.campaign if one[1] in SLOW else ()) for one in COMMANDS],
)
def test_the_figures_of_the_documentation(command: str, name: str, ask: Any, tmp_path: Path) -> None:
    """Each as printed, but with two points along x."""
    coarse = re.sub(r":log\d+", ":log2", command).replace("0:4:0.1", "0:4:4").replace("0.1:4:0.1", "0.1:4:3.9")
    assert ask(f"{coarse} --plot {tmp_path / name}")
    assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")


def test_the_documentation_has_the_papers_figures() -> None:
    if not TEXT:
        pytest.skip("the documentation is not part of this distribution")
    assert {f"figure-{k}.svg" for k in (2, 3, 4, 5)} <= {name for _, name in COMMANDS}
    assert len(COMMANDS) == TEXT.count("$ dpcalc")
