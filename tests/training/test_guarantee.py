"""Which theorems let every noisy sum be public."""

from __future__ import annotations

import mpmath as mp

import dpcalc
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


def test_the_epsilon_achieved_is_of_the_rounded_release() -> None:
    """The run on real numbers is mu-GDP: its own epsilon at this delta, plus what rounding adds, is no more than said."""
    case = dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-12).cases[0]
    assert case.best is not None
    details = case.best.details
    assert details is not None
    told = details["floating_point"]
    mu = mp.mpf(told["mu"])

    def excess(epsilon: mp.mpf) -> mp.mpf:
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu) - mp.mpf("1e-12")

    with mp.workdps(40):
        ideal = mp.findroot(excess, (0.9, 1.0), solver="anderson")
        assert told["epsilon"] > 1e-6
        assert ideal + told["epsilon"] <= details["achieved"]["epsilon"] <= 1.0
