"""A noise multiplier that was typed as noise_std: the warning, and that ordinary runs have none."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dpcalc.cli import query
from dpcalc.cli.main import main
from dpcalc.engine.advice.missing import _is_suspicious
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.errors import NotApplicable
from dpcalc.model.draft import Description
from tests.cli.conftest import best

ROOT = Path(__file__).parents[2]
DP_SGD = "dp-sgd -n 50000 --batch-size 500 --epochs 20 --clip 1 -d 1e-5 --sampling shuffle --adjacency zero-out"
PASSES = "--smoothness 1 --eta 0.1 -L 1 -d 1e-5"
MISREAD = [
    f"{DP_SGD} --noise-std 1.1",
    "dp-sgd -n 5000 --batch-size 64 --epochs 2 --clip 1 -d 1e-5 --sampling fixed --noise-std 0.8",
    "dp-sgd -n 50000 --steps 20 --clip 1 -d 1e-5 --sampling full --noise-std 3",
    "multi-epoch --algorithm noisy-sgd -n 50000 --batch-size 64 --steps 200 --noise-std 0.5 -L 1 -d 1e-5",
    "multi-epoch --algorithm noisy-gd -n 50000 --steps 20 --noise-std 3 -L 1 -d 1e-5",
    f"multi-epoch --algorithm cyclic -n 5000 --batch-size 64 --epochs 20 --noise-std 1 {PASSES}",
    f"rdp -n 60000 --batch-size 256 --noise-std 2 {PASSES}",
    f"compare --algorithm pnsgd -n 60000 --batch-size 256 --noise-std 2 {PASSES}",
]


@pytest.mark.few(4)
@pytest.mark.parametrize("line", MISREAD)
def test_it_is_said_what_the_other_reading_gives(ask_json: Any, line: str) -> None:
    [case] = ask_json(line)
    [warning] = case["warnings"]
    match = re.search(r"say (--noise-multiplier ([\d.]+)): epsilon would be ([\d.]+)$", warning)
    assert match
    assert f"--noise-std {match[2]}" in line
    [other] = ask_json(line.replace(f"--noise-std {match[2]}", match[1]))
    assert best(other)["value"] <= float(match[3]) <= best(other)["value"] * 1.002
    assert best(other)["value"] > best(case)["value"]
    assert other["warnings"] == []


def test_it_is_said_in_a_sweep_of_every_case(ask_json: Any) -> None:
    cases = ask_json(f"{DP_SGD} --noise-std 0.0022,1.1,1.2")
    assert [len(case["warnings"]) for case in cases] == [0, 1, 1]
    assert cases[1]["warnings"][0].endswith("say --noise-multiplier 1.1")


def test_the_text_has_it_on_the_side(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(f"{DP_SGD} --noise-std 1.1"))
    printed = capsys.readouterr()
    assert "warning: noise_std 1.1 on the mean gradient is a noise multiplier" in printed.err
    assert "warning" not in printed.out


@pytest.mark.parametrize(
    "line",
    [
        f"{DP_SGD} --noise-std 0.0022",
        f"{DP_SGD} --noise-multiplier 1.1",
        "dp-sgd -n 1000000 --steps 100 --clip 1 -d 1e-5 --sampling full --noise-std 0.02",
        f"rdp -n 60000 --noise-std 2 {PASSES}",
        f"rdp -n 60000 --noise-std 1000 {PASSES}",
        f"rdp -n 60000 --batch-size 256 -e 0.001 {PASSES}",
        f"multi-epoch --algorithm cyclic -n 60000 --batch-size 60 --epochs 50 --noise-std 0.1 {PASSES}",
        "multi-epoch --algorithm noisy-gd -n 1000 --steps 100 --noise-std 0.15 -L 1 -d 1e-5",
    ],
)
def test_ordinary_runs_have_none(ask_json: Any, line: str) -> None:
    assert ask_json(line)[0]["warnings"] == []


def examples() -> list[str]:
    """Return the queries of the documentation that give noise_std and a batch or all records at a time."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    lines = {line for page in pages for line in re.findall(r"^\$ dpcalc (.*)$", page.read_text(), re.MULTILINE)}
    noisy = [line for line in sorted(lines) if re.search(r"--(sigma|noise-std) ", line)]
    return [re.sub(r" --plot \S+| \|.*", "", line) for line in noisy if re.search("--batch-size|noisy-gd|dp-sgd", line)]


def test_no_example_of_the_documentation_is_misread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run that an example describes is looked at, whatever is asked of it."""
    found: list[tuple[str, bool]] = []

    def look(command: str, given: dict[str, Any], *_: Any, **__: Any) -> Any:
        run = run_of(COMMANDS[command], Description(given))[1]
        found.append((command, _is_suspicious(run, run.noise_std or 0.0, run.noise_multiplier or 0.0)))
        raise NotApplicable("is only looked at", "")

    for name in ("ask", "best_of", "side_by_side"):
        monkeypatch.setattr(query, name, look)
    for line in examples():
        before = len(found)
        with pytest.raises(SystemExit):
            main(shlex.split(line))
        assert len(found) > before or line.startswith(("train", "statement", "explain"))
    assert len(found) >= 3
    assert not [command for command, suspicious in found if suspicious]


def test_a_solution_is_never_misread(ask_json: Any) -> None:
    """Nobody typed it."""
    [case] = ask_json("multi-epoch --algorithm noisy-gd -n 50000 --steps 20 -e 1e-4 -L 1 -d 1e-5")
    assert best(case)["value"] > 0.1
    assert case["warnings"] == []


def test_a_sweep_warns_of_what_it_shows_of_all_its_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """Whether the best answers alone are computed or all bounds, as with -v, the warnings are the same."""
    line = "rdp -n 50000 -L 1 --smoothness 1 --eta 0.1 --sigma 1 --batch-size 500 -d 1e-5 -i 1:50000:log14"
    warnings = []
    for more in ([], ["-v"]):
        with pytest.raises(SystemExit):
            main([*shlex.split(line), *more])
        warnings.append(capsys.readouterr().err)
    assert warnings[0] == warnings[1]
    assert "noise multiplier" in warnings[0]
