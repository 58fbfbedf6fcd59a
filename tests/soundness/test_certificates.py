"""What a search leaves in an answer proves it, and what was changed in it by as little as a millionth does not."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from dpcalc.certify.case import certify
from dpcalc.engine.answer import answer
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.question import run_of
from dpcalc.model.draft import Description
from dpcalc.model.question import Question
from dpcalc.model.run import Run
from dpcalc.notions.profiles import digest
from dpcalc.report import Case
from dpcalc.theorems.record import all_bounds, without_definition

HIDDEN = "hidden_position.shuffled"
BATCHES: dict[str, Any] = {"records": 60, "batch_size": 7, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5}
SECRET: dict[str, Any] = {**BATCHES, "noise_std": 0.5, "permutation": "secret"}


def answered(command: str, given: dict[str, Any], bound: str, question: Question) -> tuple[Run, Case]:
    run = run_of(COMMANDS[command], Description(given, {}))[1]
    return run, answer(run, question, [all_bounds()[bound]])


def again(run: Run, question: Question, case: Case, **fields: Any) -> dict[str, Any]:
    """What certification says of the result of a case with some of its fields changed."""
    changed_case = case._replace(results=(case.results[0]._replace(**fields),))
    return dict(certify(changed_case, run, question, without_definition()).results[0].details or {})


def changed(tree: Any) -> Iterator[Any]:
    """The tree with one of its numbers changed: a whole one by 1, another by a millionth; both ways."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from ({**tree, name: other} for other in changed(value))
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from ([*tree[:i], other, *tree[i + 1 :]] for other in changed(value))
    elif isinstance(tree, int) and not isinstance(tree, bool):
        yield from (tree - 1, tree + 1)
    elif isinstance(tree, float):
        yield from (tree * (1.0 - 1e-6), tree * (1.0 + 1e-6)) if tree else (1e-6,)
    elif isinstance(tree, str):
        yield "no theorem"


CASES: list[tuple[str, dict[str, Any], str]] = [
    ("shuffle", {**SECRET, "last_batch": last, "adjacency": adjacency}, "hidden_position.shuffled")
    for last in ("own", "nominal", "drop", "balanced", "front")
    for adjacency in ("replace-one", "null-record")
] + [
    ("multi-epoch", {**SECRET, "algorithm": algorithm, "epochs": 4, **more}, bound)
    for algorithm, bound in (("shuffle-once", "shuffled_epochs.once_secret"),
                             ("shuffled-epochs", "shuffled_epochs.fresh_secret"))
    for more in ({"last_batch": "own"}, {"last_batch": "balanced", "strong_convexity": 0.3},
                 {"last_batch": "nominal", "diameter": 0.5, "strong_convexity": 0.01})
] + [
    ("multi-epoch", {**SECRET, "algorithm": "shuffle-once", "epochs": 4, "release": "epoch"},
     "released.shuffle_once_secret"),
    ("multi-epoch", {**SECRET, "algorithm": "shuffled-epochs", "epochs": 3, "release": "epoch"},
     "released.shuffled_epochs_secret"),
    ("multi-epoch", {**SECRET, "algorithm": "shuffled-epochs", "epochs": 3, "release": "epoch"},
     "released.shuffled_epochs_point"),
    ("multi-epoch", {**SECRET, "algorithm": "shuffled-epochs", "epochs": 5}, "shuffled_epochs.fresh"),
]  # fmt: skip


ASKED = Question(epsilon=0.5)


@pytest.mark.parametrize("question", [Question(delta=1e-6, log_delta=-13.815510557964274), ASKED])
@pytest.mark.parametrize(("command", "given", "bound"), CASES)
def test_a_certificate_proves_its_answer(command: str, given: dict[str, Any], bound: str, question: Question) -> None:
    run, case = answered(command, given, bound, question)
    details = case.results[0].details or {}
    assert "certificate" in details
    assert len(json.dumps(details)) < 20_000
    told = again(run, question, case)
    assert "certified" in told, told


@pytest.mark.parametrize(("command", "given", "bound"), CASES)
def test_a_smaller_number_is_not_proved(command: str, given: dict[str, Any], bound: str) -> None:
    run, case = answered(command, given, bound, ASKED)
    value = case.results[0].log_delta
    assert value is not None
    less = 1e-6 if bound != "shuffled_epochs.fresh" else 1e-2  # a mean over blocks has a margin
    told = again(run, ASKED, case, log_delta=value - less, value=case.results[0].value * (1.0 - less))
    assert "not_certified" in told


@pytest.mark.parametrize(("command", "given", "bound"), CASES)
def test_a_changed_certificate_proves_nothing(command: str, given: dict[str, Any], bound: str) -> None:
    run, case = answered(command, given, bound, ASKED)
    certificate = json.loads(json.dumps((case.results[0].details or {})["certificate"]))
    for other in changed(certificate):
        told = again(run, ASKED, case, details={"certificate": other})
        assert "not_certified" in told, other


@pytest.mark.parametrize(("command", "given", "bound"), [case for case in CASES if case[2] == HIDDEN])
def test_a_level_off_by_a_millionth_proves_nothing(command: str, given: dict[str, Any], bound: str) -> None:
    """By the theorem, whatever the digest says: above it receivers need more than there is, below it delta grows."""
    run, case = answered(command, given, bound, Question(epsilon=0.1))
    certificate = json.loads(json.dumps((case.results[0].details or {})["certificate"]))
    fields = {name: value for name, value in certificate.items() if name != "digest"}
    if "matchings" not in fields:
        pytest.skip("the position may be known at no cost")
    for share in (1.0 - 1e-6, 1.0 + 1e-6):
        moved = [[one and {**one, "level": one["level"] * share} for one in swap] for swap in fields["matchings"]]
        other = {**fields, "matchings": moved}
        told = again(run, Question(epsilon=0.1), case, details={"certificate": {**other, "digest": digest(other)}})
        assert "not_certified" in told or moved == fields["matchings"], other
