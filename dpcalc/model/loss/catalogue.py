"""Every loss by its name. A new loss is a class and a line here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from dpcalc.errors import MissingParameter, SpecError
from dpcalc.model.loss.base import Loss, flag_of
from dpcalc.model.loss.scalar import Absolute, Hinge, Huber, Insensitive, Logistic, Softmax, Squares

CATALOGUE: dict[str, type[Loss]] = {
    kind.name: kind for kind in (Hinge, Absolute, Insensitive, Logistic, Huber, Squares, Softmax)
}

LOSSES = tuple(CATALOGUE)

SIGNED = tuple(name for name, kind in CATALOGUE.items() if kind.signed)
"""Losses whose labels are +1 or -1."""

POWERED = tuple(name for name, kind in CATALOGUE.items() if "power" in kind.fields)

_SHARES = Counter(name for kind in CATALOGUE.values() for name in kind.fields if name not in Loss.fields)

PARAMETERS = (
    "feature_bound", "label_bound", *sorted(_SHARES, key=lambda name: (-_SHARES[name], name)), "radius",
    "regularisation",
)  # fmt: skip
"""The parameters of all losses. Those of only some losses are in the middle, the most shared first."""


def of(name: str, **parameters: float | None) -> Loss:
    """Return the loss of this name. Power defaults to 1 and tube to 0.

    Args:
        name: one of `LOSSES`.
        parameters: some of `PARAMETERS`; None means not given.

    Raises:
        SpecError: a value is outside its range, or the loss has no such parameter.
        MissingParameter: the loss needs a parameter that is not given.

    >>> of("absolute", feature_bound=2.0).lipschitz <= 2.0 * (1.0 + 1e-15)
    True
    """
    if name not in CATALOGUE:
        raise SpecError(f"no loss is called {name!r}", "use one of " + ", ".join(LOSSES))
    kind = CATALOGUE[name]
    values = {key: value for key, value in parameters.items() if value is not None}
    for parameter in PARAMETERS:
        if parameter in values and parameter not in kind.fields:
            raise SpecError(f"the {name} loss has no {parameter}", f"leave out {flag_of(parameter)}")
    needed = [parameter for parameter in kind.fields if parameter not in kind.optional and parameter not in values]
    if needed:
        from dpcalc.model.parameter import to_give

        raise MissingParameter(f"the {name} loss needs {', '.join(needed)}", to_give(needed))
    return kind(**values)


def constants(
    name: str, parameters: Mapping[str, float], *, risk: bool = False, clip: float = math.inf
) -> dict[str, Any]:
    """Return the parameters of bounds that follow from a loss, by name.

    ``strong_convexity`` is that of the regulariser. The Hoelder exponent and constant are those of the loss without it.

    Args:
        name: one of `LOSSES`.
        parameters: name -> value; those that are not in `PARAMETERS` are ignored.
        risk: whether ``lipschitz`` bounds the regularised gradient, as bounds on the risk need. For privacy it bounds
            the gradient of the data part.
        clip: the norm to which the gradients of the data part are clipped; the smaller bound is used.

    Raises:
        SpecError, MissingParameter: as `of`.
    """
    loss = of(name, **{key: parameters[key] for key in PARAMETERS if key in parameters})
    data = loss.changed(regularisation=0.0)
    values: dict[str, Any] = {
        "lipschitz": loss.gradient_bound if risk else _clipped(loss, clip),
        "loss_class": "convex" if loss.smoothness is None else "convex-smooth",
        "strong_convexity": loss.strong_convexity,
        "holder_exponent": data.exponent,
        "holder_constant": data.hoelder_constant(),
    }
    if loss.smoothness is not None:
        values["smoothness"] = loss.smoothness
    if loss.label_bound is not None or loss.signed or loss.classified:
        values["gradient_at_zero"], values["loss_at_zero"] = loss.gradient_at_zero, loss.loss_at_zero
        if loss.radius is not None:
            values["loss_range"] = loss.range
    return values


def _clipped(loss: Loss, clip: float) -> float:
    """Return the bound on the clipped gradients of the data part: the clip if the loss has no bound."""
    try:
        return min(clip, loss.lipschitz)
    except MissingParameter:
        if math.isinf(clip):
            raise
        return clip
