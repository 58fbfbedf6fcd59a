"""The quick tier asks about every command, every algorithm and every theorem."""

import pytest

from dpcalc.cli import main
from dpcalc.engine import ask
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.theorems.record import all_bounds
from tests.quick.questions import OTHERS, QUESTIONS

pytestmark = pytest.mark.quick

ADD = "add a question to tests/quick/questions.txt"


def test_every_command_is_asked() -> None:
    asked = {line.split()[0] for line in (*(question.line for question in QUESTIONS), *OTHERS)}
    missing = sorted({*main.COMMANDS, *ask.COMMANDS} - asked)
    assert not missing, f"{ADD} with the command {', '.join(missing)}"


def test_every_algorithm_is_asked_about() -> None:
    missing = sorted(set(ALGORITHMS) - {question.algorithm for question in QUESTIONS})
    assert not missing, f"{ADD} about a run of {', '.join(missing)}"


def test_every_theorem_answers() -> None:
    missing = sorted(set(all_bounds()) - {id for question in QUESTIONS for id in question.theorems.split()})
    assert not missing, f"{ADD} that is answered by {', '.join(missing)}"
