"""Which theorems let every noisy sum be public."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import dpcalc
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.theorems.record import for_algorithm
from dpcalc.training import guarantee
from dpcalc.training.guarantee import PUBLIC_SUMS

SAID = ("iterates may all be public", "order and iterates may all be public", "every iterate may be released")


def test_theorems_with_public_sums_are_those_that_say_so() -> None:
    executed = [each for each in ALGORITHMS.values() if each.executed]
    theorems = {bound.id: bound for each in executed for bound in for_algorithm(each.name) if bound.guarantee}
    said = {
        name for name, bound in theorems.items() if any(text.startswith(SAID) for text in bound.assumes)
    }  # fmt: skip
    assert said == PUBLIC_SUMS
    hidden = ("only the last iterate is released", "and nothing between", "the latest iterate is released once")
    assert not [name for name in said if any(word in text for text in theorems[name].assumes for word in hidden)]


def test_the_epsilon_achieved_is_of_the_rounded_release(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    of_release = guarantee._of_release

    def spied(row: Any, question: Any, rounding: Any, cost: Any, planned: Any) -> Any:
        found = of_release(row, question, rounding, cost, planned)
        seen.append((row.details["achieved"]["epsilon"], cost.epsilon, found.details["achieved"]["epsilon"]))
        return found

    monkeypatch.setattr(guarantee, "_of_release", spied)
    case = dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-12).cases[0]
    assert seen
    for ideal, added, told in seen:
        assert added > 1e-6
        assert Fraction(ideal) + Fraction(added) <= Fraction(told) <= 1
    assert case.best is not None
    assert case.best.details is not None
    assert case.best.details["achieved"]["epsilon"] in {told for _, _, told in seen}
