"""The recipes that come with dpcalc: each passes, and what it expects comes from the reference values."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dpcalc.cli.main import main
from dpcalc.recipes.reading.schema import recipe_schema
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.selection import Selection, read_all

ROOT = Path(__file__).resolve().parents[1]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
REFERENCE = {
    case["id"]: case
    for path in sorted((ROOT / "tests" / "reference").glob("*.json"))
    for case in json.loads(path.read_text(encoding="utf-8"))
}
NUMBER = r"([0-9.]+(?:e[+-]?[0-9]+)?)"
CITED = re.compile(rf"    (?:expect: {{\w+: {NUMBER}, tolerance: 1e-9}}|assert: \w+ <= {NUMBER})  # (?P<id>[\w.-]+)")

pytestmark = pytest.mark.skipif(not RECIPES, reason="the recipes are not part of this distribution")


SLOW = ("note", "sordello2021-figure-1", "wang2021")


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.campaign if path.stem in SLOW else (), id=path.stem) for path in RECIPES],
)
def test_recipes_pass(path: Path) -> None:
    report = checked(Selection(read_all([str(path)])))
    cases = report.cases
    assert [(case.check.name, case.check.message) for case in cases if case.check and case.check.exit_code] == []
    assert report.exit_code == 0
    assert all(case.assertions for case in cases)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_recipes_keep_to_the_schema(path: Path) -> None:
    jsonschema.Draft202012Validator(recipe_schema()).validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "case",
    ["asert: epsilon <= 1", "assert: 1", "noise_std: yes", "skip: 0", "expect: {epsilom: 1}", "expect: {error: none}",
     "matrix: {noise_st: 1}", "algorithm: shufled", "from: config.txt#/a", "noise_std: {from: c.yaml#/x, more: 1}"],
)  # fmt: skip
def test_the_schema_refuses_what_is_no_recipe(case: str) -> None:
    recipe = yaml.safe_load(f"dpcalc: recipe/1\ncases:\n  a: {{{case}}}\n")
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(recipe_schema()).validate(recipe)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_listed(path: Path) -> None:
    assert f"[{path.name}]({path.name})" in (ROOT / "recipes" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_what_is_expected_is_a_reference_value(path: Path) -> None:
    for line in path.read_text(encoding="utf-8").splitlines():
        cited = CITED.fullmatch(line)
        if "expect:" in line or re.search(r"  # \S+$", line):
            assert cited, line
        if cited:
            value = float(cited[1] or cited[2])
            assert value == pytest.approx(float(REFERENCE[cited["id"]]["value"]), rel=1e-12), line


def test_a_change_of_the_configuration_that_costs_too_much_fails(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "digits").mkdir()
    config = (ROOT / "recipes" / "digits" / "config.yaml").read_text(encoding="utf-8")
    (tmp_path / "digits" / "config.yaml").write_text(config.replace("noise_std: 0.05", "noise_std: 0.02"))
    (tmp_path / "budget.yaml").write_bytes((ROOT / "recipes" / "budget.yaml").read_bytes())
    reports = {kind: tmp_path / f"report.{kind}" for kind in ("junit", "sarif", "markdown")}
    options = [option for kind, file in reports.items() for option in ("--report", f"{kind}={file}")]
    with pytest.raises(SystemExit) as stop:
        main(["check", str(tmp_path / "budget.yaml"), "--run", "release", *options])
    assert stop.value.code == 1
    assert "epsilon <= 2" in capsys.readouterr().err
    for file in reports.values():
        assert "epsilon" in file.read_text(encoding="utf-8")
        assert "shuffled_epochs.fresh" in file.read_text(encoding="utf-8")
