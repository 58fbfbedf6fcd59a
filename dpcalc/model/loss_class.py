"""Classes of losses, and how far apart one gradient step can leave two points for a loss of each class.

| loss class    | every loss is                                   | displacement of two points D apart, over D |
|---------------|-------------------------------------------------|--------------------------------------------|
| convex-smooth | convex (rho-strongly) and beta-smooth, any eta  | max(|1 - eta rho|, |1 - eta beta|)          |
| convex        | convex and L-Lipschitz                          | sqrt(D^2 + 4 eta^2 L^2)/D                   |
| smooth        | beta-smooth, not convex                         | 1 + eta beta                                |
| lipschitz     | L-Lipschitz only; also clipped gradients        | (D + 2 eta L)/D                             |

The least factor that applies is used. With rho = 0 and eta <= 2/beta the first is exactly 1. For the first and the
third class the step is a Lipschitz map with that factor; for the others the factor only bounds the distance of two
points of the domain after the step.
"""

from __future__ import annotations

import math

from dpcalc.errors import NotApplicable
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.quantities import LossClass, LossName, Model
from dpcalc.numerics.floats import down, is_short, up

LIPSCHITZ_MAPS = (LossClass.CONVEX_SMOOTH, LossClass.SMOOTH)


def default_class(smoothness: float | None) -> LossClass:
    """Return the class assumed where none is stated: convex and smooth for a known smoothness, else Lipschitz."""
    return LossClass.LIPSCHITZ if smoothness is None else LossClass.CONVEX_SMOOTH


def contraction(*, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return c = max(|1 - eta rho|, |1 - eta beta|), rounded up: exactly 1 for rho = 0, eta <= 2/beta.

    >>> contraction(step_size=0.5, smoothness=1.0, strong_convexity=0.5)
    0.75
    """
    # With rho <= beta the larger of the two absolute values is that of 1 - eta rho or of eta beta - 1.
    if not strong_convexity and not exceeds_two(step_size, smoothness):
        return 1.0
    if is_short(step_size) and is_short(smoothness) and is_short(strong_convexity):
        return max(1.0 - step_size * strong_convexity, step_size * smoothness - 1.0)  # exact, but for one rounding
    below = up(1.0 - down(step_size * strong_convexity, 2.0)) if strong_convexity else 1.0
    return max(0.0, below, up(up(step_size * smoothness, 2.0) - 1.0))


def rate(*, loss_class: str, step_size: float, smoothness: float | None, strong_convexity: float) -> float | None:
    """Return -ln of the maps' Lipschitz factor, rounded down (inf for a factor 0); None where the maps have none."""
    if smoothness is None or loss_class not in LIPSCHITZ_MAPS:
        return None
    if loss_class == LossClass.SMOOTH:
        return -up(math.log1p(up(step_size * smoothness, 2.0)), 4.0)
    shrunk, reached = down(step_size * strong_convexity, 4.0), up(step_size * smoothness, 4.0)
    if not strong_convexity and not exceeds_two(step_size, smoothness):
        return 0.0
    below = math.log1p(-shrunk) if shrunk < 1.0 else -math.inf
    above = math.log(reached - 1.0) if reached > 1.0 else -math.inf
    return down(-max(below, above), 4.0)


def displacement(
    *,
    loss_class: str,
    step_size: float,
    diameter: float,
    lipschitz: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
) -> float | None:
    """Return the least factor of the table that applies, rounded up; None where none can be formed.

    Args:
        loss_class: one of `LOSS_CLASSES`.
        step_size, diameter: eta > 0 and D > 0.
        lipschitz, smoothness, strong_convexity: L, beta and rho; None where unknown.
    """
    factors = []
    if lipschitz is not None:
        spread = 2.0 * step_size * lipschitz / diameter
        factors.append(up(1.0 + spread, 6.0))
        if loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
            factors.append(up(math.hypot(1.0, spread), 8.0))
    if smoothness is not None and loss_class == LossClass.SMOOTH:
        factors.append(up(1.0 + step_size * smoothness, 4.0))
    if smoothness is not None and loss_class == LossClass.CONVEX_SMOOTH:
        factors.append(contraction(step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity))
    return min(factors, default=None)


def published_factor(*, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return M = sqrt(1 - 2 eta beta rho/(beta + rho)), rounded up (1 for beta = rho = 0).

    It bounds the displacement only for eta <= 2/(beta + rho), and is never below `contraction` for those.

    Raises:
        NotApplicable: eta > 2/(beta + rho), for which the factor is false.
    """
    if exceeds_two(step_size, smoothness, strong_convexity):
        most = shown_below(two_over(smoothness, strong_convexity))
        raise NotApplicable(
            f"step size {plain(step_size)} exceeds 2/(smoothness + strong_convexity) = {most}, past which M is false",
            f"use --step-size <= {most}, or a bound with the corrected factor",
        )
    if strong_convexity == 0.0:
        return 1.0
    from decimal import Context, Decimal

    context = Context(prec=80)  # its methods alone round to that: the operators of Decimal keep 28 digits
    factor = 0.0
    for read in (Decimal, lambda x: Decimal(repr(x))):  # the doubles, and the decimals that they print as
        eta, beta, rho = map(read, (step_size, smoothness, strong_convexity))
        twice = context.multiply(context.multiply(context.add(eta, eta), beta), rho)
        left = context.subtract(Decimal(1), context.divide(twice, context.add(beta, rho)))
        factor = max(factor, up(float(context.sqrt(left)), 4.0) if left > 0 else 0.0)
    return factor


def exceeds_two(eta: float, *curvatures: float) -> bool:
    """Return whether eta times the sum of the curvatures exceeds 2, exactly.

    Doubles count as the decimals that they print as: 0.2 times 10 does not exceed 2.
    """
    product = eta * math.fsum(curvatures)
    if abs(product - 2.0) > 1e-14:
        return product > 2.0
    from decimal import Context, Decimal

    context = Context(prec=60)
    total = Decimal(0)
    for curvature in curvatures:
        total = context.add(total, Decimal(repr(curvature)))
    return context.multiply(Decimal(repr(eta)), total) > 2


def two_over(*curvatures: float) -> float:
    """Return the longest step size that does not exceed 2 over the positive sum, as `exceeds_two` judges it."""
    longest = 2.0 / math.fsum(curvatures)
    while exceeds_two(longest, *curvatures):
        longest = math.nextafter(longest, 0.0)
    return longest


def convex_if_clipped(loss: str | None, model: Model | None, classes: int | None) -> bool:
    """Return whether clipped gradients are those of a convex loss: see `dpcalc.model.clipping`."""
    if loss == LossName.SOFTMAX and classes != 2:
        return model == Model.CAPPED
    return loss is not None or model == Model.LINEAR
