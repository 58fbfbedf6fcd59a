"""Ways to make a gate hold that means nothing: each was one once."""

import json
import shlex
from pathlib import Path

import pytest

from dpcalc.cli.main import main


def test_a_recipe_that_moved_loses_no_case_of_the_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    head = (
        "dpcalc: recipe/1\ndefaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 2}\n"
        "cases:\n"
    )
    Path("a.yaml").write_text(f"{head}  x: {{command: rdp, delta: 1e-6, assert: epsilon <= 5}}\n", encoding="utf-8")
    Path("b.yaml").write_text(f"{head}  x: {{command: rdp, delta: 1e-5, assert: epsilon <= 5000}}\n", encoding="utf-8")
    assert exits("check a.yaml --report json=base.json") == 0
    assert exits("check a.yaml --strict --baseline base.json") == 0
    assert exits("check b.yaml --strict --baseline base.json") == 1


def test_a_forged_value_in_a_baseline_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "dpcalc: recipe/1\ncases:\n  d: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, "
        "noise_std: 2, epsilon: 5, assert: delta <= 1e-5}\n"
    )
    Path("d.yaml").write_text(text, encoding="utf-8")
    assert exits("check d.yaml --report json=base.json") == 0
    report = json.loads(Path("base.json").read_text(encoding="utf-8"))
    for value in ([], "1", {}, True):
        for result in report["cases"][0]["results"]:
            result["value"] = value
        Path("forged.json").write_text(json.dumps(report), encoding="utf-8")
        assert exits("check d.yaml --baseline forged.json") == 2


def test_a_recipe_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("dpcalc: recipe/1\ncases:\n  c: {command: convert, mu: 1, delta: 1e-6}\n")
    assert exits("check c.yaml --report json=base.json") == 0
    assert exits("check c.yaml ./c.yaml --baseline base.json") == 2


def test_an_expected_value_is_no_gate_of_a_strict_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (
        "dpcalc: recipe/1\ncases:\n  e: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, "
        "noise_std: 2, delta: 1e-6, expect: {epsilon: 5000, tolerance: 0.9999}}\n"
    )
    Path("e.yaml").write_text(text, encoding="utf-8")
    assert exits("check e.yaml") == 0
    assert exits("check e.yaml --strict") == 1


def exits(line: str) -> int:
    """Return the exit code of a command line."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return int(stop.value.code or 0)
