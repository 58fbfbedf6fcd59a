"""The label of a certified result names what its definition reads: adjacency, domain, losses, and a secret order."""

import random
from typing import Any

import pytest

from dpcalc.certify.case import certify
from dpcalc.certify.guarantee import Composition
from dpcalc.certify.numerics.balls import OutOfReach, Undecided, precision
from dpcalc.certify.result_proof import check_label
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import definitions
from dpcalc.engine.answer import answer
from dpcalc.errors import DpcalcError
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.report import Result
from dpcalc.theorems.record import all_bounds, lookup, without_definition
from tests.formulas import QUESTIONS, number, run_of
from tests.soundness.compare import found
from tests.soundness.generate import parameters

PASSES: dict[str, Any] = {
    "records": 20, "batch_size": 3, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5, "noise_std": 2.0,
    "diameter": 0.8, "permutation": "secret",
}  # fmt: skip


def told(bound: str, **changed: Any) -> dict[str, Any]:
    """What --certify says of a result whose label was changed."""
    run = describe(all_bounds()[bound].algorithms[0], {**PASSES, **({"epochs": 2} if "epochs" in bound else {})})
    question = Question(epsilon=0.5)
    case = answer(run, question, [lookup(bound)])
    moved = case._replace(results=(case.results[0]._replace(**changed),))
    return dict(
        certify(moved, run, question, without_definition(), {bound: all_bounds()[bound].parameters}).results[0].details
        or {}
    )


@pytest.mark.parametrize("bound", ["hidden_position.shuffled", "shuffled_epochs.once_secret", "shuffle.hybrid"])
def test_a_label_that_says_less_than_the_definition_uses_is_not_certified(bound: str) -> None:
    assert "certified" in told(bound)
    assert "null-record" in told(bound, adjacency="null-record")["not_certified"]
    assumed = all_bounds()[bound].assumes
    left_out = [("project", "the domain is bounded")]
    if "hidden" in bound or "secret" in bound:
        left_out.append(("secret", "the order stays secret"))
    for word, what in left_out:
        fewer = tuple(each for each in assumed if word not in each)
        assert len(fewer) < len(assumed)
        assert what in told(bound, assumes=fewer)["not_certified"]


def says_what_it_reads(id: str) -> int:
    """Draw runs of a theorem, and compare its assumptions with what its definition reads of them."""
    bound, definition, seen = all_bounds()[id], definitions()[id], 0
    for trial in range(4):
        values = parameters(bound, random.Random(f"labels {id} {trial}"))
        asked = {name: values[name] for name in QUESTIONS if name in values}
        try:
            proved = bound.prove(run_of({name: value for name, value in values.items() if name not in QUESTIONS}))
            number(proved, **asked)
            read: set[str] = set()
            with precision(256):
                definition.formula(RunInputs({**values, **found(proved, asked)}, True, exactly=QUESTIONS, read=read))
        except (DpcalcError, OutOfReach, Undecided):
            continue
        label = Result(id, "", "delta", 0.0, "upper", assumes=bound.assumes)
        check_label(label, "replace-one", read & set(bound.parameters))
        seen += 1
    return seen


IDS = [
    id for id, definition in definitions().items()
    if all_bounds()[id].guarantee and not definition.floor and not issubclass(definition.gives, Composition)
]  # fmt: skip


@pytest.mark.campaign
@pytest.mark.parametrize("id", IDS)
def test_every_theorem_assumes_what_its_definition_reads(id: str) -> None:
    says_what_it_reads(id)


def test_some_theorems_assume_what_their_definitions_read() -> None:
    assert sum(says_what_it_reads(id) for id in ("contraction.shift", "released.cyclic", "shuffle.product")) >= 3
