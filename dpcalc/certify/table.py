"""The table of definitions: for each bound the formula of its theorem, in balls, and the slack that a value may have.

A definition is a function of `RunInputs`, which have the run's parameters, and ``order``, ``epsilon`` or ``log_delta``
if the bound takes them. It returns the bound's value at the working precision.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.certify.runs.run import RunInputs

if TYPE_CHECKING:
    from dpcalc.certify.guarantee import Guarantee

ROUNDING = 1e-12
"""How far a value may lie above its definition by rounding: relatively, or in ln delta by (1 + |ln delta|) times
this."""

Formula = Callable[[RunInputs], Any]


class Definition(NamedTuple):
    """The formula of one bound.

    Attributes:
        id: the bound's id.
        gives: the notion of privacy of the formula.
        formula: a function of the inputs, at the working precision.
        slack: how far a value may lie above the formula, as stated in docs/method.md: relative, or in ln delta.
        floor: whether the formula is only a lower limit of the bound's value and proves nothing: the optimum of a
        search has no formula.
        lower: whether the bound is a lower bound, which may not exceed the formula.
        weight: roughly the milliseconds of an evaluation, including that of the bound itself.
        limit: the limit beyond which the formula raises `balls.OutOfReach`; empty if there is none.
    """

    id: str
    gives: type[Guarantee]
    formula: Formula
    slack: float = 0.0
    floor: bool = False
    lower: bool = False
    weight: float = 1.0
    limit: str = ""


_TABLE: dict[str, Definition] = {}
_MODULES = (
    "one_pass.iteration", "one_pass.contraction", "one_pass.streams",
    "one_pass.linear", "many_passes.passes",
    "many_passes.random_orders", "sampled.noisy_output",
    "sampled.clipped_steps", "sampled.correlated",
    "hidden.clipped_epochs", "hidden.expanding", "released.renyi",
    "released.compositions",
)  # fmt: skip


def defines(
    id: str,
    gives: type[Guarantee],
    *,
    slack: float = 0.0,
    floor: bool = False,
    lower: bool = False,
    weight: float = 1.0,
    limit: str = "",
) -> Callable[[Formula], Formula]:
    """Register the decorated formula as the definition of the bound ``id`` and return it unchanged."""

    def register(formula: Formula) -> Formula:
        if id in _TABLE:
            raise ValueError(f"repeated definition of {id}")
        _TABLE[id] = Definition(id, gives, formula, slack, floor, lower, weight, limit)
        return formula

    return register


@functools.cache
def definitions() -> dict[str, Definition]:
    """Return every definition by the id of its bound."""
    for module in _MODULES:
        importlib.import_module(f"dpcalc.certify.{module}")
    return _TABLE


def definition_of(bound: str) -> Definition | None:
    """Return the definition of a bound; None if there is none."""
    definition = definitions().get(bound)
    return None if definition is None or definition.floor else definition
