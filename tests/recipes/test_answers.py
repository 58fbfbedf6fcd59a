"""Cases of a recipe answer as each of them does alone, whichever process answers them."""

from __future__ import annotations

from typing import Any

import pytest

from dpcalc.engine.ask import ask
from dpcalc.engine.question import Question
from dpcalc.errors import DpcalcError
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.evaluate import Answers, Limits
from dpcalc.recipes.running.selection import Selection, read_all


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
