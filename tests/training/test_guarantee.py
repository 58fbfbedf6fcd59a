"""Which theorems let every noisy sum be public."""

from __future__ import annotations

from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.theorems.record import for_algorithm
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
