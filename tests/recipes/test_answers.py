"""Cases of a recipe answer and are judged as each of them is alone, whichever process answers them."""

import random
from pathlib import Path
from typing import Any

import pytest

from dpcalc.engine.ask import ask
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.model.question import Question
from dpcalc.recipes.judging.verdict import judged
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.evaluate import Answers, Limits, evaluate
from dpcalc.recipes.running.selection import Options, Selection, read_all
from dpcalc.render import render
from dpcalc.render.notes import report


def alone(command: str, given: dict[str, Any], question: Question) -> object:
    try:
        return ask(command, given, question, notes=False, best_only=True)
    except DpcalcError as error:
        return error


RECIPE = """
dpcalc: recipe/1
defaults: {records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 2, command: rdp, accept: one-index}
cases:
  positions: {delta: 1e-6, matrix: {index: "1:120:1"}, assert: epsilon <= 0.7}
  steps: {index: 1, delta: 1e-6, step_size: null, matrix: {smoothness: [1, 2, 30]}, assert: epsilon <= 0.1}
  orders: {index: 1, matrix: {order: [1, 2, 8]}, assert: rdp <= 0.01}
  missing: {index: 1, lipschitz: null, delta: 1e-6}
  dropped: {batch_size: 7, last_batch: drop, delta: 1e-6, matrix: {index: "90:100:1"}, assert: epsilon <= 1}
"""


@pytest.mark.parametrize("limits", [Limits(), Limits(usual=60.0, memory=4.0), Limits(timeout=60.0)])
def test_a_recipe_is_judged_alike_wherever_its_cases_are_answered(tmp_path: Any, limits: Limits) -> None:
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.replace(", accept: one-index", ""), encoding="utf-8")
    recipes = read_all([str(path)])
    entries = list(recipes[0].every())
    with Answers(1, False, limits) as answers:
        found = [answers(recipes[0], entry) for entry in entries]
    for entry, answered in zip(entries, found, strict=True):
        by_itself = alone(entry.command, dict(entry.parameters), entry.question)
        if isinstance(by_itself, DpcalcError):
            assert (answered.case, answered.message) == (None, by_itself.message)
        else:
            assert answered.case == by_itself
    statuses = [case.check.status for case in checked(Selection(recipes, limits=limits)).cases if case.check]
    assert {"passed", "failed", "error"} >= {str(status) for status in statuses} > {"failed"}


RUN = {"records": "60", "lipschitz": "1", "smoothness": "1", "step_size": "0.1", "noise_std": "2"}
ASKED = ("order: 8", "order: [2, 8]", "order: 2.5", "delta: 1e-6", "delta: 0.02", "epsilon: 0.3", "description: mu")
CHANGED = (
    "", "batch_size: 7, last_batch: drop", "batch_size: 7, last_batch: balanced", "strong_convexity: 0.5",
    "algorithm: shuffled, permutation: secret", "algorithm: stop", "adjacency: null-record", "group_size: 2",
)  # fmt: skip
VARIED = (
    "index: '1:62:3'", "index: '2:58:2'", "index: [7, 8, 9, 10, 30], noise_std: [1, 2]", "index: [1, 2, 59, 60, 3]",
    "index: [60, 59, 61, 58]", "records: [10, 100, 1000]", "index: [1, 2, 60], noise_std: [0.1, 2]",
    "algorithm: [pnsgd, stop, skip], index: [3, 4]", "window: [1, 5, 70]", "index: [5, 54, 53], batch_size: [1, 7]",
    "step_size: [0.1, 1, 2.5], index: [7, 8]",
)  # fmt: skip
GATED = (
    "rdp <= 0.05, rdp < 7", "epsilon <= 0.9", "rdp <= 1", "log_delta <= -0.1", "rdp <= 0.02", "rdp <= 100",
    "epsilon <= 0.5", "epsilon < 4", "delta <= 0.3", "delta <= 1", "log_delta <= -3", "mu <= 0.2",
    "bound == iteration.pnsgd", "bound == iteration.pnsgd_rdp", "advantage <= 0.9", "rdp <= 0.02, mu <= 9",
)  # fmt: skip
ACCEPTED = ("one-index", "one-index", "one-index", "one-index, large-delta", "secret-order", "large-delta",
            "one-index, secret-order")  # fmt: skip
MORE = ("expect: {error: not_applicable}", "expect: {rdp: 0.01}", "skip: not now", "include: [{index: 9}]")


def recipe(draw: random.Random) -> str:
    """Return a recipe of some random cases, of which many are wrong in one way or another."""
    cases = []
    for number in range(draw.randint(1, 3)):
        varied = draw.choice(VARIED)
        fields = {"accept": f"[{draw.choice(ACCEPTED)}]", "assert": f"[{draw.choice(GATED)}]"}
        parts = [f"{name}: {value}" for name, value in fields.items() if draw.random() < 0.9]
        parts += [draw.choice(ASKED), f"matrix: {{{varied}}}"]
        changed = draw.choice(CHANGED) if draw.random() < 0.4 else ""
        names = [part.partition(":")[0].strip() for part in changed.split(",")]
        parts += [changed] if changed and not any(f"{name}:" in varied for name in names) else []
        parts += [draw.choice(MORE)] if draw.random() < 0.15 else []
        parts += [f"{name}: {value}" for name, value in RUN.items() if f"{name}:" not in varied]
        cases.append(f"  case{number}: {{command: rdp, {', '.join(parts)}}}\n")
    return f"dpcalc: recipe/1\ncases:\n{''.join(cases)}"


def compare(path: Path, text: str, certify: bool, limits: Limits) -> list[int]:
    """Compare the verdicts on a recipe with those on cases that share nothing; return the exit code of each."""
    path.write_text(text, encoding="utf-8")
    try:
        recipes = read_all([str(path)])
    except SpecError:
        return [2]
    selection = Selection(recipes, options=Options(certify=certify), limits=limits)
    if all(entry.skip is not None for recipe in recipes for entry in recipe.every()):
        with pytest.raises(SpecError, match="skipped"):
            checked(selection)
        return [2]
    alone = [
        judged(recipe, entry, lambda e: evaluate(e, certify=certify), certify=certify)
        for recipe in recipes for entry in recipe.every()
    ]  # fmt: skip
    together = checked(selection)
    apart = report("check", alone)
    for case, expected in zip(together.cases, apart.cases, strict=True):
        assert case._asdict() == expected._asdict()
    for format in ("plain", "json", "csv"):
        assert render(together, format) == render(apart, format)
    return [case.check.exit_code for case in together.cases if case.check]


WAYS = [*[(False, Limits())] * 8, (False, Limits(usual=60.0, memory=4.0)), (True, Limits())]


@pytest.mark.parametrize("rounds", [40, pytest.param(300, marks=pytest.mark.campaign)])
def test_random_recipes_are_judged_as_each_case_alone(rounds: int, tmp_path: Path) -> None:
    """Also where cases may be sent to other processes, and where they are to be proved."""
    draw, codes = random.Random(rounds), list[int]()
    for number in range(rounds):
        certify, limits = WAYS[number % len(WAYS)]
        codes += compare(tmp_path / "recipe.yaml", recipe(draw), certify, limits)
    assert {0, 1, 2, 3} == {*codes}
