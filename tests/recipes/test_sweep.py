"""Cases that share work answer as each of them does alone."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from dpcalc.engine.ask import ask
from dpcalc.engine.moved import Pattern
from dpcalc.engine.question import Query, Question
from dpcalc.engine.sweep import Sweep
from dpcalc.errors import DpcalcError
from dpcalc.model.run import Run
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.evaluate import Answers, Limits
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.report import Case

PASS: dict[str, Any] = {"records": 100, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
AT_DELTA = Question(None, 1e-6, -13.815510557964274)
AT_EPSILON = Question(0.25)
AT_ORDERS = Question(orders=(2.0, 8.0))
CHECKED = Question(0.25, 1e-6, -13.815510557964274)

VARIED: list[tuple[str, dict[str, Any], dict[str, list[Any]]]] = [
    ("rdp", PASS, {"index": [1, 2, 50, 99, 100, 101]}),
    ("rdp", {**PASS, "strong_convexity": 0.5}, {"index": [1, 100], "step_size": [0.1, 1.0, 1.9, 2.0, 2.5]}),
    ("rdp", {**PASS, "diameter": 1.0}, {"noise_std": [0.1, 2.0, 300.0], "index": [100, 1]}),
    ("rdp", PASS, {"batch_size": [1, 7, 10, 100, 101], "last_batch": ["own", "drop", "balanced", "front", "nominal"]}),
    ("rdp", {**PASS, "batch_size": 7, "last_batch": "drop"}, {"index": [97, 98, 99, 100, 1]}),
    ("rdp", PASS, {"algorithm": ["pnsgd", "stop", "skip", "pnsgd"], "index": [3, 4]}),
    ("rdp", PASS, {"group_size": [1, 2, 1], "index": [3, 4]}),
    ("rdp", PASS, {"adjacency": ["replace-one", "null-record", "add-remove"], "index": [3, 4]}),
    ("rdp", PASS, {"loss_class": ["convex-smooth", "smooth", "lipschitz"], "index": [3, 4]}),
    ("rdp", {"loss": "logistic", "feature_bound": 1.0, "step_size": 0.1, "noise_std": 1.0, "records": 9},
     {"radius": [1.0, 2.0], "index": [1, 2]}),
    ("hockey-stick", {**PASS, "diameter": 1.0, "index": 3}, {"noise": ["gaussian", "laplace"], "records": [10, 2]}),
    ("shuffle", {**PASS, "diameter": 1.0}, {"records": [10, 20], "noise_std": [1.0, 2.0]}),
    ("shuffle", PASS, {"records": [10, 20], "permutation": ["public", "secret"]}),
    ("shuffle", PASS, {"step_size": [0.1, 2.5], "permutation": ["secret", "public"], "records": [10, 20]}),
    ("multi-epoch", {**PASS, "epochs": 3, "algorithm": "shuffle-once"},
     {"noise_std": [1.0, 2.0], "permutation": ["public", "secret"]}),
    ("dp-sgd", {"records": 100, "batch_size": 10, "sampling": "shuffle", "adjacency": "null-record"},
     {"epochs": [1, 2], "noise_multiplier": [1.0, 2.0]}),
    ("online", {"window": 10, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "diameter": 1.0, "c1": 100.0,
                "c2": 100.0, "decay_exponent": 1.5}, {"records": [100, 1000]}),
]  # fmt: skip


def alone(command: str, given: dict[str, Any], question: Question) -> object:
    try:
        return ask(command, given, question, notes=False, best_only=True)
    except DpcalcError as error:
        return error


@pytest.mark.parametrize(
    "question", [AT_DELTA, AT_EPSILON, AT_ORDERS, CHECKED, Question()], ids=["eps", "delta", "rdp", "checked", "mu"]
)
@pytest.mark.parametrize("number", range(len(VARIED)))
def test_every_case_answers_as_it_does_alone(number: int, question: Question) -> None:
    command, base, axes = VARIED[number]
    sweep, answered = Sweep(), 0
    for chosen in itertools.product(*axes.values()):
        given = {**base, **dict(zip(axes, chosen, strict=True))}
        case, expected = sweep.ask(command, given, question), alone(command, given, question)
        assert case is None or case == expected
        answered += case is not None
    assert answered or all(
        isinstance(alone(command, {**base, **dict(zip(axes, chosen, strict=True))}, question), DpcalcError)
        for chosen in itertools.product(*axes.values())
    )


def test_one_sweep_takes_whatever_comes() -> None:
    sweep = Sweep()
    every = [
        (command, {**base, **dict(zip(axes, chosen, strict=True))}, question)
        for command, base, axes in VARIED[:9]
        for chosen in itertools.islice(itertools.product(*axes.values()), 4)
        for question in (AT_DELTA, AT_ORDERS)
    ]
    for command, given, question in [*every, *every[::3], *every[::-1]]:
        case = sweep.ask(command, given, question)
        assert case is None or case == alone(command, given, question)


def test_promises_that_are_made_for_some_cases_alone() -> None:
    sweep = Sweep()
    base = {**PASS, "algorithm": "shuffled", "diameter": 1.0}
    for permutation in ("public", "secret", "public"):
        given = {**base, "permutation": permutation}
        case = sweep.ask("rdp", given, AT_DELTA)
        assert case is None or case == alone("rdp", given, AT_DELTA)


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


@pytest.mark.parametrize(
    "question", [AT_DELTA, AT_EPSILON, AT_ORDERS, CHECKED, Question()], ids=["eps", "delta", "rdp", "checked", "mu"]
)
@pytest.mark.parametrize(
    "given", [PASS, {**PASS, "strong_convexity": 0.5}, {**PASS, "batch_size": 7, "last_batch": "drop"}]
)
def test_positions_in_a_row_follow_a_pattern(
    given: dict[str, Any], question: Question, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, follow = list[Case | None](), Pattern.at

    def at(self: Pattern, run: Run, query: Query) -> Case | None:
        followed.append(follow(self, run, query))
        return followed[-1]

    sweep = Sweep()
    monkeypatch.setattr(Pattern, "at", at)
    for index in (1, 2, 3, 98, 99, 4, 100):
        moved = {**given, "index": index}
        case, expected = sweep.ask("rdp", moved, question), alone("rdp", moved, question)
        assert case is None or case == expected
        assert case is not None or isinstance(expected, DpcalcError)
    assert sum(found is not None for found in followed) >= 3
