"""What is known of the losses, and how far apart one gradient step can then leave two points.

| loss class    | every loss is                                   | displacement of two points D apart, over D |
|---------------|-------------------------------------------------|--------------------------------------------|
| convex-smooth | convex (rho-strongly) and beta-smooth, any eta  | max(|1 - eta rho|, |1 - eta beta|)          |
| convex        | convex and L-Lipschitz                          | sqrt(D^2 + 4 eta^2 L^2)/D                   |
| smooth        | beta-smooth, not convex                         | 1 + eta beta                                |
| lipschitz     | L-Lipschitz only; also clipped gradients        | (D + 2 eta L)/D                             |

The least that applies is used. With rho = 0 and eta <= 2/beta the first is exactly 1. The maps of the first and third
class are Lipschitz with that factor; those of the others only keep two points of the domain this close.
"""

from __future__ import annotations

import math

from dpcalc.errors import NotApplicable
from dpcalc.numerics.floats import down, is_short, up

LOSS_CLASSES = ("convex-smooth", "convex", "smooth", "lipschitz")
LIPSCHITZ_MAPS = ("convex-smooth", "smooth")
LOSSES = ("hinge", "absolute", "insensitive", "logistic", "huber", "squares")
"""The catalogue of `dpcalc.losses`."""


def default_class(smoothness: float | None) -> str:
    """Return the class assumed where none is given: convex and smooth if a smoothness is, else a bounded gradient."""
    return "lipschitz" if smoothness is None else "convex-smooth"


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
    if loss_class == "smooth":
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
        lipschitz, smoothness, strong_convexity: L, beta, rho, where known.
    """
    found = []
    if lipschitz is not None:
        spread = 2.0 * step_size * lipschitz / diameter
        found.append(up(1.0 + spread, 6.0))
        if loss_class in ("convex", "convex-smooth"):
            found.append(up(math.hypot(1.0, spread), 8.0))
    if smoothness is not None and loss_class == "smooth":
        found.append(up(1.0 + step_size * smoothness, 4.0))
    if smoothness is not None and loss_class == "convex-smooth":
        found.append(contraction(step_size=step_size, smoothness=smoothness, strong_convexity=strong_convexity))
    return min(found, default=None)


def published_factor(*, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return M = sqrt(1 - 2 eta beta rho/(beta + rho)), rounded up (1 for beta = rho = 0).

    It bounds the displacement only for eta <= 2/(beta + rho); there it is never below `contraction`.

    Raises:
        NotApplicable: eta > 2/(beta + rho), where the factor is false.
    """
    limit = smoothness + strong_convexity
    if exceeds_two(step_size, smoothness, strong_convexity):
        raise NotApplicable(
            f"step size {step_size:g} exceeds 2/(smoothness + strong_convexity) = {2.0 / limit:g}, "
            "past which M is false",
            f"use --step-size <= {2.0 / limit:g}, or a bound with the corrected factor",
        )
    if strong_convexity == 0.0:
        return 1.0
    from decimal import Context, Decimal

    context = Context(prec=80)  # its methods alone round to that: the operators of Decimal keep 28 digits
    found = 0.0
    for read in (Decimal, lambda x: Decimal(repr(x))):  # the doubles, and the decimals that they print as
        eta, beta, rho = map(read, (step_size, smoothness, strong_convexity))
        twice = context.multiply(context.multiply(context.add(eta, eta), beta), rho)
        left = context.subtract(Decimal(1), context.divide(twice, context.add(beta, rho)))
        found = max(found, up(float(context.sqrt(left)), 4.0) if left > 0 else 0.0)
    return found


def exceeds_two(eta: float, *curvatures: float) -> bool:
    """Return whether eta times the sum exceeds 2, exactly, for the decimals that the doubles print as (0.2 times 10
    does not).
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
