"""Least squares from noisy sums of products, as in AdaSSP (Wang 2018), without a descent.

A record has features x with |x| <= B and a target y with |y| <= Y. The run releases the sums of x x'/B^2, a symmetric
matrix, and of x y/(B Y), a vector, with normal noise: of standard deviation s on the diagonal and on the vector, and
s/sqrt(2) on the entries off the diagonal, each of which occurs twice in the matrix. In units of the noise, replacing a
record moves these sums by at most sqrt(4.5)/s, so the release is (sqrt(4.5)/s)-GDP; the fit is computed from it alone.
`docs/method.md` has the proof.

The release is accounted as one step of noisy gradient descent on linear losses, whose gradients are the terms of the
sums in units in which all noise is the same: with s = n sigma and half of sqrt(4.5) as the bound on a gradient.
`dpcalc.training.run.products` executes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpcalc.errors import SpecError
from dpcalc.model.algorithm import Source
from dpcalc.model.draft import Description
from dpcalc.model.loss.base import flag_of
from dpcalc.model.quantities import LossName
from dpcalc.numerics.floats import up
from dpcalc.training.rule.draft import DEFAULT_ALGORITHM, Draft
from dpcalc.training.rule.setup import Average, Setup

HALF_MOVE = up(0.5 * math.sqrt(4.5), 4.0)
"""Half of the distance by which a replaced record moves the sums, in units in which the noise is s."""

_LARGEST = 2.0**400  # bounds up to it, and from its inverse, have products within the range of doubles

_TAKEN = ("loss", "feature_bound", "label_bound", "records", "dimension", "noise_std")
"""The parameters that this solver takes."""

_ACCOUNTED = ("algorithm", "records", "noise_std")

_STEP = {"steps": 1, "step_size": 1.0, "lipschitz": HALF_MOVE}


def check(draft: Draft, setup: Setup) -> None:
    """Refuse a run that the solver does not cover.

    Raises:
        SpecError: another loss, an option that only a descent has, or bounds too far from 1.
    """
    if draft["loss"] != LossName.SQUARES:
        raise SpecError(f"sums of products solve least squares, and the loss is {draft['loss']}", "take --loss squares")
    strange = [name for name in draft if draft.given(name) and name not in _TAKEN]
    if setup.average == Average.TAIL:
        strange.append("average")
    if setup.replicas > 1:
        strange.append("replicas")
    if setup.tune is not None:
        strange.append("tune")
    if strange:
        raise SpecError(
            f"least squares by sums of products takes no {strange[0]}",
            f"leave out {flag_of(strange[0])}, or --solver sums",
        )
    for name in ("feature_bound", "label_bound"):
        if not 1.0 / _LARGEST <= float(draft[name]) <= _LARGEST:
            raise SpecError(f"{name} is {draft[name]:g}: products of such numbers are no doubles", "use other units")


def suits(draft: Draft, setup: Setup) -> bool:
    """Return whether no given option asks for a descent."""
    try:
        check(draft, setup)
    except SpecError:
        return False
    return setup.solver is None and setup.average is None and not setup.centre


def described(draft: Draft) -> Draft:
    """Return the run as accounted: one step of noisy gradient descent on linear losses."""
    given = {name: draft[name] for name in _ACCOUNTED[1:] if name in draft}
    sources = {"records": Source.DATA, **dict.fromkeys(_STEP, Source.DEFAULT)}
    return Draft(Description({"algorithm": DEFAULT_ALGORITHM, **given, **_STEP}, sources), draft.question)


def describes(given: object) -> bool:
    """Return whether these parameters are those of `described`."""
    return (
        isinstance(given, Mapping)
        and given.get("algorithm") == DEFAULT_ALGORITHM
        and _STEP.items() <= given.items()
        and set(given) <= {*_ACCOUNTED, *_STEP}
    )
