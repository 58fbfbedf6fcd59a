"""Asking the command line and reading its answers."""

import json
import shlex
from typing import Any

import pytest

from dpcalc.cli.main import main
from tests.schema import conforms


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(line: str, expected: int = 0) -> str:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
        captured = capsys.readouterr()
        assert (stop.value.code or 0) == expected, captured.err
        return captured.out

    return run


@pytest.fixture
def ask_json(ask: Any) -> Any:
    """Return the cases of a query's JSON, validated against the schema and against what JSON allows."""

    def run(line: str, expected: int = 0) -> list[dict[str, Any]]:
        def refuse(word: str) -> None:
            raise AssertionError(f"{word} is not JSON")

        report = json.loads(ask(f"{line} --json", expected), parse_constant=refuse)
        conforms(report)
        assert report["summary"]["cases"] == len(report["cases"])
        for case in report["cases"]:
            assert any(result["best"] for result in case["results"])
            covered = (case.get("training") or {"private": True})["private"]
            kinds = ("upper", "exact") if covered else ("conditional",)
            assert all(result["kind"] in kinds for result in case["results"] if result["best"])
        cases: list[dict[str, Any]] = report["cases"]
        return cases

    return run


def best(case: dict[str, Any]) -> dict[str, Any]:
    return next(result for result in case["results"] if result["best"])
