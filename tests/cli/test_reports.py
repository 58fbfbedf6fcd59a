"""``--report KIND=FILE`` on the commands that answer a question."""

import csv
import html
import importlib.util
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from dpcalc.cli.main import main
from dpcalc.render import REPORTS
from tests.cli.test_imports import imported

RUN = "rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"
QUERIES = {
    "rdp": RUN,
    "compare": "compare --algorithm shuffled -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6",
    "statement": "statement --algorithm pnsgd -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6",
    "ledger": "ledger --add epsilon=0.1 -d 1e-6",
    "convert": "convert --mu 1 -d 1e-5",
    "risk": "risk --mu 1",
    "utility": "utility --loss logistic --feature-bound 1 -n 1e5 --dimension 20 -R 1 -e 1 -d 1e-6",
    "train": "train --synthetic logistic -n 100 --dimension 2 -R 1 --algorithm pnsgd --eta 0.005 --sigma 0.5 -d 1e-3",
}


class Done(NamedTuple):
    """What a command left behind."""

    exit_code: int
    stdout: str
    stderr: str


Run = Callable[[str], Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs a command line."""

    def asked(line: str) -> Done:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
        return Done(int(stop.value.code or 0), *capsys.readouterr())

    return asked


@pytest.mark.parametrize("command", QUERIES)
def test_every_query_writes_a_report_beside_its_answer(run: Run, command: str, tmp_path: Path) -> None:
    file = tmp_path / "answer.json"
    done = run(f"{QUERIES[command]} --report json={file}")
    assert done.exit_code == 0
    assert done.stdout
    assert json.loads(file.read_text())["cases"]


def test_a_report_is_what_the_format_prints(run: Run, tmp_path: Path) -> None:
    for kind in ("json", "jsonl", "csv", "markdown"):
        file = tmp_path / kind
        printed = run(f"{RUN} --format {kind} --report {kind}={file}").stdout
        assert file.read_text() == printed


def test_several_reports(run: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "a.csv", tmp_path / "a.json"
    assert run(f"{RUN} --report csv={one} --report json={two}").exit_code == 0
    [row, *_] = csv.DictReader(one.read_text().splitlines())
    assert row["bound"] == json.loads(two.read_text())["cases"][0]["results"][0]["bound"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--report json", "not KIND=FILE"),
        ("--report json=", "not KIND=FILE"),
        ("--report junit={0}", f"KIND is one of {', '.join(REPORTS)}"),
        ("--report json={0} -o {0}", "two outputs go to the same place"),
        ("--report json={0} --report csv={0}", "two outputs go to the same place"),
        ("--report json=-", "two outputs go to the same place"),
        ("--report json={0}/there", "cannot write"),
    ],
)
def test_refused_before_anything_is_computed(run: Run, options: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    done = run(f"{RUN} {options.format(file)}")
    assert done.exit_code == 2
    assert said in done.stderr
    assert not done.stdout
    assert not file.exists()


def test_a_report_is_written_though_a_gate_fails(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    done = run(f"{RUN} --assert epsilon<=1 --report json={file}")
    assert done.exit_code == 1
    assert json.loads(file.read_text())["summary"]["failed"] == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("explain iteration.pnsgd", "--report needs a described run"),
        (f"explain iteration.pnsgd {RUN.removeprefix('rdp ')}", "--report needs a described run"),
        ("utility --orders -n 1000 --dimension 2 -e 1", "--orders does not go with --report"),
    ],
)
def test_refused_where_there_is_no_answer(run: Run, line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    done = run(f"{line} --report json={file}")
    assert done.exit_code == 2
    assert said in done.stderr
    assert not file.exists()


@pytest.mark.few(3)
@pytest.mark.parametrize("command", QUERIES)
def test_every_query_has_a_page(run: Run, command: str, tmp_path: Path) -> None:
    file = tmp_path / "answer.html"
    assert run(f"{QUERIES[command]} --report html={file}").exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert f"dpcalc {QUERIES[command].partition(' ')[0].replace('statement', 'compare')}" in text
    assert "Promised by the author" in text


def test_a_page_says_what_was_typed(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "a b.html"
    run(f"{RUN} --assert 'epsilon<=5' --report 'html={file}'")
    text = html.unescape(file.read_text(encoding="utf-8"))
    assert f"dpcalc {RUN} --assert 'epsilon<=5' --report 'html={file}'" in text


def test_a_check_has_a_page_with_its_curves(run: Run, tmp_path: Path) -> None:
    recipe, file, baseline = tmp_path / "a.yaml", tmp_path / "a.html", tmp_path / "a.json"
    settings = "records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6"
    for noise in (2, 3):
        recipe.write_text(
            f"dpcalc: recipe/1\ncases:\n  one: {{command: rdp, {settings}, noise_std: {noise}, assert: epsilon <= 5}}\n"
        )
        if noise == 2:
            assert run(f"check {recipe} --report json={baseline}").exit_code == 0
    assert run(f"check {recipe} --baseline {baseline} --report html={file}").exit_code == 0
    text = file.read_text(encoding="utf-8")
    assert "The gate held." in text
    assert "Since the baseline" in text
    assert text.count("<img") == 2


def test_a_page_needs_jinja2(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    file = tmp_path / "a.html"
    for line in (RUN, "check a.yaml"):
        done = run(f"{line} --report html={file}")
        assert done.exit_code == 2
        assert "--report html= needs jinja2, which is not installed" in done.stderr
        assert "pip install 'dpcalc[report]'" in done.stderr


def test_what_makes_a_page_is_imported_where_it_is_asked_for() -> None:
    found = imported("-m", "dpcalc", *shlex.split(f"{RUN} --json --report csv=/dev/null"))
    assert not found & {"jinja2", "markupsafe"}
