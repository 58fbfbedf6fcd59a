"""Checks that data, loss and start are as accounted, and that the run cannot overflow on any records."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.loss import Loss
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import Problem, verify

Array = NDArray[np.float64]
_MAX_RELEASED = 1 << 28  # numbers held in memory: 2 GiB
_WIDEST = 1e150  # the square of a norm is a double
_STEEPEST = 1e290  # the largest sum of the gradients of all records
_MOST_CORRELATED = 2.0**10  # an upper bound on the sum of absolute values in a row of the inverse matrix
_LARGEST_DRAW = 100.0  # an upper bound on normal and exponential variables from a generator of doubles


def starting_point(plan: Plan, problem: Problem, start: Array | None) -> Array:
    """Check that data, loss and start are as accounted, and return the first iterate.

    Raises:
        SpecError: they are not, or too many iterates are to be released.
    """
    if problem.shape != (plan.records, plan.columns):
        raise SpecError(f"the plan is for data of shape {plan.records, plan.columns}, not {problem.shape}", "plan anew")
    check_loss(plan, problem.loss)
    verify(problem, norm=plan.norm)
    count = plan.iterates_released
    if count * plan.columns > _MAX_RELEASED:
        raise SpecError(f"{count} iterates of {plan.columns} numbers are released: too many to hold", "fewer steps")
    if start is None:
        return np.zeros(plan.columns)
    w = np.array(start, dtype=np.float64)
    if w.shape != (plan.columns,) or not np.isfinite(w).all():
        raise SpecError(
            f"the start has shape {w.shape}; it must be {plan.columns} finite numbers", "leave it out for 0"
        )
    if plan.from_zero and w.any():
        raise SpecError("this algorithm starts at 0", "leave out the start")
    if not plan.domain.contains(w):
        raise SpecError("the start lies outside the constraint set", "choose one within")
    return w


def check_loss(plan: Plan, loss: Loss) -> None:
    """Refuse a loss whose constants exceed the accounted ones.

    Raises:
        SpecError: one does.
        MissingParameter: an accounted constant is not finite for this loss on the domain.
    """
    accounted = plan.accounted
    weight = accounted.get("regularisation", accounted.get("strong_convexity", 0.0))
    if loss.regularisation != weight:
        raise SpecError(
            f"the loss has regularisation {loss.regularisation:g}, accounted was {weight:g}", "use the same"
        )
    data = loss.changed(regularisation=0.0)
    constants: dict[str, Callable[[], float | None]] = {
        "lipschitz": lambda: gradient_bound(data, plan),
        "smoothness": lambda: loss.smoothness,
        "holder_constant": lambda: data.hoelder_constant(accounted.get("holder_exponent")),
        "gradient_at_zero": lambda: data.gradient_at_zero,
        "loss_at_zero": lambda: data.loss_at_zero,
    }
    for name in (name for name in constants if name in accounted):
        value = constants[name]()
        if value is None or not value <= accounted[name]:
            shown = "none" if value is None else f"{value:.17g}"
            raise SpecError(
                f"the {loss.name} loss has {name} {shown}, accounted was {accounted[name]:.17g}",
                "describe the run by the loss that is trained",
            )


def lipschitz_of(plan: Plan, loss: Loss) -> float:
    """Return the accounted bound on gradients of the data part, or else that of the loss on the domain."""
    bound = plan.accounted.get("lipschitz") or gradient_bound(loss.changed(regularisation=0.0), plan)
    return bound if plan.clip is None else min(bound, plan.clip)


def gradient_bound(loss: Loss, plan: Plan) -> float:
    """Return the least bound on the gradients of single records, on the domain and with the clip of the plan.

    Raises:
        MissingParameter: no bound is finite.
    """
    try:
        bound = _lipschitz(loss, plan.domain.radius)
    except MissingParameter:
        if plan.clip is None:
            raise
        return plan.clip
    return bound if plan.clip is None else min(bound, plan.clip)


def _lipschitz(loss: Loss, radius: float) -> float:
    """Return the least bound on the gradients where |w| <= radius.

    Raises:
        MissingParameter: no bound is finite.
    """
    forms = [loss.changed(radius=radius)] if math.isfinite(radius) else []
    if loss.radius is not None and radius <= loss.radius:
        forms.append(loss)
    forms.append(loss.changed(radius=None))
    bounds = []
    for form in forms:
        try:
            bounds.append(form.lipschitz)
        except MissingParameter as error:
            missing = error
    if not bounds:
        raise missing
    return min(bounds)


def refuse_overflow(plan: Plan, loss: Loss) -> None:
    """Refuse a run that could overflow on some records.

    Without a projection a step takes w to (1 - eta lambda) w minus eta times a gradient and noise.

    Raises:
        SpecError: it could overflow.
    """
    eta = float(np.max(plan.step_size))
    growth = max(1.0, abs(1.0 - eta * loss.regularisation))
    gradient = loss.lipschitz if plan.clip is None else plan.clip
    draw = _LARGEST_DRAW * plan.columns
    noise = 0.0 if plan.output_scale else draw * float(np.max(plan.scale)) * _MOST_CORRELATED
    bounded = math.isfinite(plan.domain.radius)
    steps = 1 if bounded else plan.steps
    start = plan.domain.radius if bounded else 0.0
    furthest = start + steps * eta * (gradient + noise) + draw * plan.output_scale
    if not (
        steps * math.log(growth) + math.log(max(1.0, furthest)) < math.log(_WIDEST)
        and gradient * plan.records < _STEEPEST
    ):
        raise SpecError("the weights might overflow: nothing was trained", "use a smaller step size, or --radius")
