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


OCTAL = {
    "r.yaml": "dpcalc: recipe/1\ndefaults: {lipschitz: 1, smoothness: 1, delta: 1e-6}\ncases:\n"
    "  a: {algorithm: pnsgd, index: 1, schedule: s.yaml, accept: one-index, assert: epsilon <= 9}\n",
    "s.yaml": "step_size: 0.1\nnoise_std: [%s, 10]\n",
    "l.yaml": "dpcalc: ledger/1\nbudget: {epsilon: 9, delta: 1e-6}\nentries: {x: {noise_multiplier: %s}}\n",
    "run.yaml": "{dataset_size: 60000, batch_size: 256, drop_last: true, epochs: 8, noise_multiplier: %s, "
    "poisson_sampling: true}\n",
}


@pytest.mark.parametrize("line", ["check r.yaml", "ledger l.yaml", "account run.yaml -d 1e-5 --assert 'epsilon <= 9'"])
def test_a_number_of_yaml_has_no_leading_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(tmp_path)
    for number, code in (("10", 0), ("010", 2)):  # 010 is 8 for PyYAML, with less noise
        for name, text in OCTAL.items():
            Path(name).write_text(text.replace("%s", number), encoding="utf-8")
        assert exits(line) == code


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
