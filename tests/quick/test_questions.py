"""Every question of the quick tier is answered, by the theorems listed, and what has a definition is proved."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from dpcalc.certify.case import may_stay_open
from dpcalc.cli.main import main
from dpcalc.theorems.record import all_bounds
from tests.quick.questions import FILES, OTHERS, QUESTIONS, Question
from tests.schema import conforms

pytestmark = pytest.mark.quick

CERTIFY = os.environ.get("DPCALC_TEST_CERTIFY", "yes") == "yes"
"""Whether answers are proved as well, which takes most of the time: `.ci/oldest` asks for the answers alone."""

Ran = tuple[int, str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs a command line beside the files of the questions."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")

    def ran(line: str) -> Ran:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
        return int(stop.value.code or 0), capsys.readouterr().out

    return ran


EVERY_QUESTION = pytest.mark.parametrize("question", QUESTIONS, ids=[question.line for question in QUESTIONS])


@EVERY_QUESTION
def test_question(run: Any, question: Question) -> None:
    code, printed = run(f"{question.line} --json")
    report = json.loads(printed)
    conforms(report)
    [case] = report["cases"]
    assert case["algorithm"] == question.algorithm
    assert {row["bound"] for row in case["results"]} == set(question.theorems.split())
    lower_values_are_below_guarantees(case["results"])
    assert code == 0


@pytest.mark.skipif(not CERTIFY, reason="answers alone are asked for")
@pytest.mark.few(32)
@EVERY_QUESTION
def test_answers_are_proved(run: Any, question: Question) -> None:
    code, printed = run(f"{question.line} --json --certify")
    report = json.loads(printed)
    conforms(report)
    [case] = report["cases"]
    for row in case["results"]:
        promised = row["kind"] != "conditional"
        if "not_certified" in row and may_stay_open(row["bound"]):
            continue
        assert ("certified" in row) == (promised and all_bounds()[row["bound"]].certifiable), row["bound"]
    proved = all("certified" in row for row in case["results"] if row["best"])
    assert code == (0 if proved else 3)


def lower_values_are_below_guarantees(rows: list[dict[str, Any]]) -> None:
    for low in rows:
        for high in rows:
            if low["kind"] == "lower" and high["kind"] in ("upper", "exact"):
                assert low["quantity"] == high["quantity"]
                assert low["value"] <= high["value"], f"{low['bound']} is above {high['bound']}"


@pytest.mark.parametrize(("line", "word"), OTHERS.items())
def test_other_command(run: Any, line: str, word: str) -> None:
    code, printed = run(line)
    assert code == 0
    assert word in printed
