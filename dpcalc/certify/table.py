"""The table of definitions: for each bound the formula of its theorem, in balls, and how far above it a value may lie.

A definition is a function of `balls.Inputs` (which carry ``order``, ``epsilon`` or ``log_delta`` where the bound takes
them) and returns what the bound gives, at the working precision. It may be of a side: ``floor`` where it encloses
something that no value of the bound can be below (a search whose optimum is not written down), and then proves nothing.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import NamedTuple

from flint import arb

from dpcalc.certify.balls import Inputs

ROUNDING = 1e-12
"""How far above its definition a value may lie by rounding: relatively, or in ln delta by (1 + |ln delta|) times it."""


class Definition(NamedTuple):
    """The formula of one bound.

    Attributes:
        id: the bound's.
        gives: mu, rdp, log_delta or epsilon.
        formula: of the inputs, at the working precision.
        slack: how far above the formula a value may lie, as stated in docs/method.md: relative, or in ln delta.
        floor: the formula is only below what the bound may say.
        lower: the bound is one from below, never to be above the formula.
        weight: roughly how many thousandths of a second an evaluation takes, with that of the bound itself.
        known_to: about what the formula says nothing and raises `balls.OutOfReach`; empty if it always speaks.
    """

    id: str
    gives: str
    formula: Callable[[Inputs], arb]
    slack: float = 0.0
    floor: bool = False
    lower: bool = False
    weight: float = 1.0
    known_to: str = ""


_TABLE: dict[str, Definition] = {}
_FAMILIES = ("passes", "contraction", "streams", "released", "sampled", "linear")

NOT_DEFINED = {
    "shifted.laplace": "an optimum found by iteration, whose allocation is not recorded",
    "shifted.laplace_domain": "an optimum found by iteration, whose allocation is not recorded",
    "hidden_position.shuffled": "a certificate found by a search, which is not recorded",
    "noisy_sgd.composition": "composed by the law of the privacy loss on a lattice",
    "noisy_sgd.hidden": "composed by the law of the privacy loss on a lattice",
    "released.cyclic_curve": "composed by the law of the privacy loss on a lattice",
    "released.shuffled_epochs": "composed by the law of the privacy loss on a lattice",
    "released.shuffled_epochs_point": "the point composed is found by a search and is not recorded",
    "released.shuffled_epochs_secret": "the point composed is found by a search and is not recorded",
    "released.shuffled_epochs_rdp": "an integral over a curve that is itself a search",
    "shuffled_epochs.fresh": "a mean over blocks of positions, whose ends are not recorded",
    "shuffled_epochs.once_secret": "a certificate found by a search, which is not recorded",
    "shuffled_epochs.fresh_secret": "a certificate found by a search, which is not recorded",
    "dp_sgd.gradient": "composed by the law of the privacy loss on a lattice",
    "linear.shuffled_curved": "the best curvature of a search",
}
"""Why a bound is not certified, where the reason is more than that no definition has been written."""


def defines(
    id: str,
    gives: str,
    *,
    slack: float = 0.0,
    floor: bool = False,
    lower: bool = False,
    weight: float = 1.0,
    known_to: str = "",
) -> Callable[[Callable[[Inputs], arb]], Callable[[Inputs], arb]]:
    """Register the decorated formula as the definition of the bound ``id`` and return it unchanged."""

    def register(formula: Callable[[Inputs], arb]) -> Callable[[Inputs], arb]:
        if id in _TABLE:
            raise ValueError(f"repeated definition of {id}")
        _TABLE[id] = Definition(id, gives, formula, slack, floor, lower, weight, known_to)
        return formula

    return register


@functools.cache
def definitions() -> dict[str, Definition]:
    """Return every definition by the id of its bound."""
    for family in _FAMILIES:
        importlib.import_module(f"dpcalc.certify.{family}")
    return _TABLE


def why_not(id: str) -> str:
    """Return why a bound has no definition."""
    return NOT_DEFINED.get(id, "no definition of it has been written")
