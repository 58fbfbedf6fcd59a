"""What a theorem says of given parameters, as a plain number: for tests of one formula at a time."""

import functools
from collections.abc import Callable
from typing import Any

from dpcalc.model.algorithm import ANY
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition, Gdp, Point, Profile, Rdp
from dpcalc.theorems.record import Theorem, all_bounds
from tests.spending import evaluates

QUESTIONS = {"order", "epsilon", "log_delta"}
"""What is asked of a curve; a cost in risk reads the last two as its budget."""


@functools.cache
def _by_function() -> dict[Callable[..., Any], Theorem]:
    return {theorem.function: theorem for theorem in all_bounds().values()}


def theorem_of(function: Callable[..., Any]) -> Theorem:
    """Return the theorem that a function is registered as."""
    return _by_function()[function]


def evaluated(function: Callable[..., Any], **given: Any) -> Any:
    """Return mu, the RDP at ``order``, ln delta at ``epsilon``, epsilon at ``log_delta``, the parts, or the cost.

    Args:
        function: a theorem's; any other function is called as it is.
        given: the parameters that it reads, and where it proves a curve the point of it.
    """
    if function not in _by_function():
        return function(**given)
    theorem = theorem_of(function)
    evaluates(theorem.id)
    return number(function(theorem.setting(**{k: v for k, v in given.items() if k in theorem.reads})), **given)


def number(found: Any, **asked: Any) -> Any:
    """Return what is proved as a plain number, at the point asked."""
    if isinstance(found, Gdp):
        return found.mu
    if isinstance(found, Rdp):
        return found.curve(asked["order"])
    if isinstance(found, Profile):
        return found.profile(asked["epsilon"])
    if isinstance(found, Point):
        return found.rule(asked["log_delta"])
    return found.parts if isinstance(found, Composition) else found


def run_of(values: dict[str, Any]) -> Run:
    """Return the run of some known parameters, whatever its algorithm; what is none of a run is left out."""
    return Run(algorithm=ANY, **{k: v for k, v in values.items() if k in Run.fields})
