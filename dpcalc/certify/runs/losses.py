"""Displacement and Lipschitz factor: how far a step on the described losses can take two points apart."""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import Inputs, OutOfReach, least
from dpcalc.model.choices import LossClass


def displacement(v: Inputs) -> arb | None:
    """Return the least bound on how far a step takes two points of the domain apart, over the diameter.

    None where no bound applies, or where the domain is unbounded.
    """
    if v.diameter is None:
        return None
    factors: list[arb] = []
    kind = v.loss_class or LossClass.CONVEX_SMOOTH
    lipschitz = _sides(v)
    if lipschitz is not None:
        spread = 2 * v.step_size * lipschitz / v.diameter
        factors.append(1 + spread)
        if kind in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
            factors.append((1 + spread * spread).sqrt())
    if v.smoothness is not None and kind in (LossClass.SMOOTH, LossClass.CONVEX_SMOOTH):
        factors.append(arb(factor(v)))
    return least(*factors) if factors else None


def _sides(v: Inputs) -> arb | None:
    """Return the Lipschitz constant L that bounds a step's displacement; None where there is none.

    It is that of the loss alone where eta lambda <= 1. A longer step on the regulariser reverses directions: the bound
    is then L + lambda R on the whole gradient, in a ball of radius R.
    """
    if v.lipschitz is None or v.exact("step_size") * v.exact("regularisation") <= 1:
        return v.lipschitz
    return None if v.radius is None else v.lipschitz + v.regularisation * v.radius


def factor(v: Inputs) -> fmpq:
    """Return the Lipschitz factor of a step's map: 1 + eta beta, or max(|1 - eta m|, |1 - eta beta|) if convex."""
    eta, beta = v.exact("step_size"), v.exact("smoothness")
    if v.loss_class == LossClass.SMOOTH:
        return 1 + eta * beta
    return max(abs(1 - eta * v.exact("strong_convexity")), abs(1 - eta * beta))


def level(v: Inputs) -> bool:
    """Return whether the maps are 1-Lipschitz: convex and smooth losses with eta beta <= 2.

    Raises:
        OutOfReach: eta beta is above 2 by rounding alone: 0.2 as a double is more than the decimal.
    """
    if v.smoothness is None or v.loss_class != LossClass.CONVEX_SMOOTH:
        return False
    product = v.exact("step_size") * v.exact("smoothness")
    if 2 < product <= 2 + fmpq(1, 1 << 49):
        raise OutOfReach("the step size is a little above 2/smoothness, in this reading of the two")
    return bool(product <= 2)
