"""Shards of a check, and the one report that they are merged into."""

import copy
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.checked import Status
from dpcalc.errors import SpecError
from dpcalc.recipes.reading.read import read
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.saved import read_report, report_of
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.recipes.running.shards import Share, parse_share
from dpcalc.render.check import KINDS
from dpcalc.report import Report
from tests.recipes.conftest import Write

ROOT = Path(__file__).parents[2]
CASES = """\
sweep:
  algorithm: shuffled
  matrix: {noise_std: [1, 2, 3, 4, 5]}
  assert: epsilon <= 2
tight: {algorithm: pnsgd, noise_std: 2, assert: epsilon <= 0.1}
late: {algorithm: pnsgd, noise_std: 2, skip: later, assert: epsilon <= 5}
none: {algorithm: dp-sgd, assert: epsilon <= 5}
renyi: {command: compare, algorithm: pnsgd, noise_std: 2}
mean: {algorithm: pnsgd, noise_std: 3, assert: epsilon <= cases.tight.epsilon}
"""
"""Cases that pass, fail, are skipped, have no answer, and compare with others."""


def _shards(path: str, of: int, **options: Any) -> list[str]:
    """Check every shard, and return the files of their reports."""
    names = []
    for number in range(1, of + 1):
        names.append(f"{number}.json")
        report = dpcalc.check(path, shard=f"{number}/{of}", **options)
        Path(names[-1]).write_text(json.dumps(report.to_dict()), encoding="utf-8")
    return names


def _kinds(report: Report) -> dict[str, str]:
    from dpcalc import render
    from dpcalc.render import Asked

    texts = {name: KINDS[name].write(report, Asked(6)) for name in ("json", "junit", "sarif", "github", "markdown")}
    return {**texts, **{name: render.render(report, name) for name in ("plain", "csv", "jsonl")}}


@pytest.fixture
def recipe(write: Write) -> str:
    return write(CASES)


@pytest.mark.parametrize("of", [1, 2, 3, 20])
def test_merged_shards_are_the_whole_check(recipe: str, of: int) -> None:
    """Every kind of report has the same bytes, whichever the order of the files."""
    names = _shards(recipe, of)
    random.Random(of).shuffle(names)
    assert _kinds(dpcalc.merge(names)) == _kinds(dpcalc.check(recipe))


def test_merged_shards_of_a_strict_check(recipe: str) -> None:
    """The cases that were not selected fail it, once."""
    options = {"strict": True, "run": "sweep|tight"}
    whole = dpcalc.check(recipe, **options)
    assert _kinds(dpcalc.merge(_shards(recipe, 2, **options))) == _kinds(whole)
    assert sum(case.check is not None and case.check.name == "strict" for case in whole.cases) == 1


def test_every_case_is_in_one_shard_whatever_the_order_of_the_recipes(write: Write) -> None:
    first, second = write(CASES), write("other: {algorithm: cyclic, epochs: 3, noise_std: 2}", "s.yaml")
    for of in (1, 2, 5, 30):
        taken = {}
        for files in ([first, second], [second, first]):
            recipes = read_all(files)
            shares = [{e.name for e in Selection(recipes, share=Share(n + 1, of)).entries()} for n in range(of)]
            assert sum(map(len, shares)) == len(Selection(recipes))
            taken[files[0]] = shares
        assert taken[first] == taken[second]


def test_long_cases_are_spread(write: Write) -> None:
    """Solving costs more than a closed form: each of two shards has one of two solved cases."""
    cases = "".join(f"a{n}: {{algorithm: pnsgd, noise_std: 2}}\n" for n in range(10))
    cases += "".join(f"b{n}: {{command: dp-sgd, algorithm: dp-sgd, batch_size: 100, steps: 10, epsilon: 1, "
                     f"clip: 1, solve: noise_multiplier}}\n" for n in range(2))  # fmt: skip
    recipes = read_all([write(cases, head="dpcalc: recipe/1\ndefaults: {records: 1000, delta: 1.0e-6}\ncases:\n")])
    for number in (1, 2):
        assert sum(e.name.startswith("b") for e in Selection(recipes, share=Share(number, 2)).entries()) == 1


def test_another_process_finds_the_same_digest(recipe: str) -> None:
    """No address, no order of a set: whatever the seed of the hashes."""
    program = f"import dpcalc; print(dpcalc.check({recipe!r}, shard='1/9').shard)"
    shown = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(shown) == 1
    assert " at 0x" not in repr(list(read(recipe).every()))


# --- what does not belong together ------------------------------------------------------------------------------------


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["1.json", "2.json"], "missing: 3/3"),
        (["1.json", "2.json", "2.json", "3.json"], "both shard 2"),
        (["whole.json"], "not the report of a shard"),
        (["1.json", "2.json", "other.json"], "what their cases ask"),
        (["1.json", "2.json", "strict.json"], "options"),
        (["1.json", "2.json", "four.json"], "number of shards"),
    ],
)
def test_what_is_missing_doubled_or_of_another_check_is_refused(
    recipe: str, write: Write, names: list[str], words: str
) -> None:
    _shards(recipe, 3)
    others = {
        "whole": dpcalc.check(recipe), "strict": dpcalc.check(recipe, shard="3/3", strict=True),
        "four": dpcalc.check(recipe, shard="3/4"),
        "other": dpcalc.check(write(CASES.replace("<= 0.1", "<= 0.2")), shard="3/3"),
    }  # fmt: skip
    for name, report in others.items():
        Path(f"{name}.json").write_text(json.dumps(report.to_dict()), encoding="utf-8")
    with pytest.raises(SpecError, match=words):
        dpcalc.merge(names)


def test_a_shard_that_stopped_early_is_refused(recipe: str) -> None:
    names = _shards(recipe, 2, fail_fast=True)
    with pytest.raises(SpecError, match="were not checked"):
        dpcalc.merge(names)


def test_skips_alone_are_no_check(write: Write) -> None:
    """A shard may have only skipped cases, a check may not."""
    path = write("a: {algorithm: pnsgd, skip: later}\nb: {algorithm: pnsgd, skip: later}")
    with pytest.raises(SpecError, match="nothing was checked"):
        dpcalc.check(path, shard="1/2")
    every = Selection([read(path)])
    with pytest.raises(SpecError, match="nothing was checked"):
        every.refuse_all_skipped()


def _leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(tree, dict):
        return [leaf for name, value in tree.items() for leaf in _leaves(value, (*path, name))]
    if isinstance(tree, list):
        return [leaf for place, value in enumerate(tree) for leaf in _leaves(value, (*path, place))]
    return [path]


def _changed(tree: Any, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    tree = copy.deepcopy(tree)
    inner = tree
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = change(inner[path[-1]])
    return tree


def test_no_changed_word_turns_a_verdict(recipe: str) -> None:
    """A report in which one value is of another type, or turned round, is refused or gives the same verdict."""
    whole = dpcalc.check(recipe)
    verdicts = [case.check.status for case in whole.cases if case.check]
    assert set(verdicts) == set(Status)
    tree = json.loads(json.dumps(whole.to_dict()))

    def turned(value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        words = {"failed": "passed", "error": "passed", "skipped": "passed"}
        return words.get(value, [value]) if isinstance(value, str) else [value] if value is None else -value - 1

    refused = 0
    for path in _leaves(tree):
        try:
            read = report_of(_changed(tree, path, turned))
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            refused += 1
            continue
        assert [case.check.status for case in read.cases if case.check] == verdicts, path
    assert refused > len(_leaves(tree)) / 3


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "{}", "{" * 100000, '{"schema": 1, "schema": 2}', '{"schema": "dpcalc.report/1"}', "\udcff",
        '{"schema": "dpcalc.report/1", "dpcalc": "0", "command": "check", "cases": [], "summary": {}}', "NaN",
    ],
)  # fmt: skip
def test_no_report_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(SpecError, match="no JSON report"):
        read_report(str(path))


def test_cut_off_anywhere(recipe: str, tmp_path: Path) -> None:
    whole = json.dumps(dpcalc.check(recipe, shard="1/2").to_dict())
    path = tmp_path / "cut.json"
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        path.write_text(whole[:length], encoding="utf-8")
        with pytest.raises(SpecError, match="no JSON report"):
            read_report(str(path))


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "a/b", "1/1000000", "١/٢", " 1/2"])
def test_shards_that_are_none(text: str) -> None:
    with pytest.raises(SpecError, match="--shard"):
        parse_share(text)


# --- reading back -----------------------------------------------------------------------------------------------------


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["budget", "readme", "wang2021", "stream", "feldman2018", "account"])
def test_reports_read_back_are_as_they_were(name: str) -> None:
    """Every kind of report has the same bytes."""
    recipes = read_all([str(ROOT / "recipes" / f"{name}.yaml")])
    report = checked(Selection(recipes))
    assert _kinds(report_of(json.loads(json.dumps(report.to_dict())))) == _kinds(report)
