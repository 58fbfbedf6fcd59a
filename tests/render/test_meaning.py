"""What an answer says of an attacker, against mechanisms that reach it and against mpmath."""

import math

import mpmath
import pytest

from dpcalc.engine.attack.guess import guess_of_answer
from dpcalc.model.quantities import Kind
from dpcalc.render.words.risk import meaning
from dpcalc.report import Case, Result

EPSILONS = (0.0, 1e-9, 0.1, 1.0, 3.0, 10.0, 40.0, 800.0)
DELTAS = (0.0, 1e-300, 1e-6, 0.01, 0.5, 1.0)


def answer(epsilon: float, delta: float, adjacency: str = "replace-one", **more: object) -> Result:
    log = math.log(delta) if delta else -math.inf
    base = Result("a.b", "", "epsilon", epsilon, Kind.UPPER, epsilon, delta, log, adjacency=adjacency, best=True)
    return base._replace(**more)


def accuracy(result: Result) -> float:
    """What is said of an answer of which no curve is known."""
    guess = guess_of_answer(result)
    assert guess is not None
    return guess.probability


def reached(one: list[mpmath.mpf], other: list[mpmath.mpf]) -> mpmath.mpf:
    """How often the best guess is right, outcome by outcome, where both laws are equally likely."""
    return sum(max(p, q) for p, q in zip(one, other, strict=True)) / 2


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_no_mechanism_is_guessed_more_often(epsilon: float, delta: float) -> None:
    with mpmath.workdps(400):
        factor, rest = mpmath.exp(mpmath.mpf(epsilon)), 1 - mpmath.mpf(delta)
        one = [mpmath.mpf(delta), rest * factor / (1 + factor), rest / (1 + factor), mpmath.mpf(0)]
        both_ways, said = reached(one, one[::-1]), accuracy(answer(epsilon, delta))
        assert both_ways <= said <= both_ways * (1 + mpmath.mpf(10) ** -11)
        certain = rest / factor  # P = (1, 0) against Q: one way P <= e^eps Q + delta, with equality
        one_way = reached([mpmath.mpf(1), mpmath.mpf(0)], [certain, 1 - certain])
        for adjacency in ("add", "remove"):
            said = accuracy(answer(epsilon, delta, adjacency))
            assert one_way <= said <= one_way * (1 + mpmath.mpf(10) ** -11)


@pytest.mark.parametrize("mu", [0.0, 1e-8, 0.1, 1.0, 5.0, 60.0])
def test_gaussian_privacy_is_guessed_like_two_gaussians(mu: float) -> None:
    with mpmath.workdps(60):
        exact = mpmath.ncdf(mpmath.mpf(mu) / 2)
        assert exact <= accuracy(answer(1.0, 1e-6, mu=mu)) <= exact * (1 + mpmath.mpf(10) ** -11)


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (
            answer(1.0, 0.0),
            "the record at position 7 has is right at most 73.2% of the time, by this point",
        ),
        (answer(0.0, 0.0), "is right at most 50.1% of the time, by this point alone (a coin: 50%)"),
        (answer(20.0, 0.0), "does not rule out an almost perfect guess"),
        (answer(1.0, 0.0, "zero_out"), "whether the record at position 7 was used or left out"),
        (answer(1.0, 0.0, "add-remove"), "whether one more record was used is right"),
        (answer(1.0, 0.0, "add"), "is right at most 81.7% of the time"),
    ],
)
def test_the_sentence(result: Result, words: str) -> None:
    assert words in meaning(Case("pnsgd", {"index": (7, "flag")}, (result,), guess=guess_of_answer(result)))


def test_nothing_is_said_where_no_sentence_is_true() -> None:
    for result in (answer(1.0, 0.0, "by-shift"), answer(1.0, 0.0, quantity="rdp"), answer(1.0, 0.0, best=False)):
        case = Case("pnsgd", {}, (result,))
        assert meaning(case) == ""
        assert not result.best or guess_of_answer(result) is None


def test_several_records() -> None:
    alone = answer(1.0, 0.0)
    said = meaning(Case("pnsgd", {"group_size": (3, "flag")}, (alone,), guess=guess_of_answer(alone)))
    assert "which of two values any 3 records have" in said
