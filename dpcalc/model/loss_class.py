"""Classes of losses, and for each the largest distance of two points after a gradient step.

| loss class    | every loss is                                   | displacement of two points D apart, over D |
|---------------|-------------------------------------------------|--------------------------------------------|
| convex-smooth | convex (rho-strongly) and beta-smooth, any eta  | max(|1 - eta rho|, |1 - eta beta|)          |
| convex        | convex and L-Lipschitz                          | sqrt(D^2 + 4 eta^2 L^2)/D                   |
| smooth        | beta-smooth, not convex                         | 1 + eta beta                                |
| lipschitz     | L-Lipschitz only; also clipped gradients        | (D + 2 eta L)/D                             |

The least factor that applies is used. With rho = 0 and eta <= 2/beta the first is exactly 1. For the first and the
third class the step is a Lipschitz map with that factor; for the others the factor only bounds the distance of two
points of the domain after the step.

Losses of the last two classes may be weakly convex: a strong convexity rho = -m < 0 says that f + (m/2)|w|^2 is convex.
With smoothness the Hessians lie in [-m, beta] and the factor is max(1 + eta m, eta beta - 1). With L, a step leaves two
points z apart at most z + 2 eta L apart, and at most sqrt((1 + 2 eta m) z^2 + (2 eta L)^2), or for smooth losses and
eta > 2/(beta - m) at most sqrt(q z^2 + w^2), q = 1 + 2 eta m beta/(beta - m), w^2 = 4 L^2 eta (eta - 2/(beta - m)).

A difference of gradients is A u for the points' difference u, A symmetric with eigenvalues in [-m, beta]. So it is a
gradient difference g with (g + m u).(g - beta u) <= 0, from which |u - eta g| is bounded as above, where |g| <= 2 L.
"""

from __future__ import annotations

import math

from dpcalc.errors import NotApplicable
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.quantities import LossClass, LossName, Model
from dpcalc.numerics.floats import down, is_short, up

LIPSCHITZ_MAPS = (LossClass.CONVEX_SMOOTH, LossClass.SMOOTH)


def default_class(smoothness: float | None, strong_convexity: float = 0.0) -> LossClass:
    """Return the default class: Lipschitz, or convex and smooth if a smoothness is known.

    With a negative strong convexity the losses are not convex.
    """
    if smoothness is None:
        return LossClass.LIPSCHITZ
    return LossClass.SMOOTH if strong_convexity < 0.0 else LossClass.CONVEX_SMOOTH


def lowest_curvature(loss_class: str, smoothness: float | None, strong_convexity: float) -> float:
    """Return the largest known lower bound on the curvature of the losses; -inf if none is known.

    A strong convexity >= 0 says nothing about a class that need not be convex.
    """
    if loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
        return strong_convexity
    weak = strong_convexity if strong_convexity < 0.0 else -math.inf
    return max(weak, -smoothness) if loss_class == LossClass.SMOOTH and smoothness is not None else weak


def contraction(*, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return c = max(|1 - eta rho|, |1 - eta beta|), rounded up: exactly 1 for rho = 0, eta <= 2/beta.

    rho is negative for losses that are only weakly convex, and c is then above 1.

    >>> contraction(step_size=0.5, smoothness=1.0, strong_convexity=0.5)
    0.75
    >>> round(contraction(step_size=0.05, smoothness=1.0, strong_convexity=-0.01), 12)
    1.0005
    """
    # With |rho| <= beta the larger of the two absolute values is that of 1 - eta rho or of eta beta - 1.
    if not strong_convexity and not exceeds_two(step_size, smoothness):
        return 1.0
    if strong_convexity < 0.0:
        return max(up(1.0 + up(step_size * -strong_convexity, 2.0)), up(up(step_size * smoothness, 2.0) - 1.0))
    if is_short(step_size) and is_short(smoothness) and is_short(strong_convexity):
        return max(1.0 - step_size * strong_convexity, step_size * smoothness - 1.0)  # exact except for one rounding
    below = up(1.0 - down(step_size * strong_convexity, 2.0)) if strong_convexity else 1.0
    return max(0.0, below, up(up(step_size * smoothness, 2.0) - 1.0))


def rate(*, loss_class: str, step_size: float, smoothness: float | None, strong_convexity: float) -> float | None:
    """Return -ln of the maps' Lipschitz factor, rounded down (inf for a factor 0); None if they have none."""
    if smoothness is None or loss_class not in LIPSCHITZ_MAPS:
        return None
    least = lowest_curvature(loss_class, smoothness, strong_convexity)
    shrunk, reached = down(step_size * least, 4.0), up(step_size * smoothness, 4.0)
    if not least and not exceeds_two(step_size, smoothness):
        return 0.0
    below = math.log1p(-shrunk) if shrunk < 1.0 else -math.inf
    above = math.log(reached - 1.0) if reached > 1.0 else -math.inf
    return down(-max(below, above), 4.0)


def stretch(
    *, loss_class: str, step_size: float, lipschitz: float, smoothness: float | None, strong_convexity: float
) -> tuple[float, float] | None:
    """Return (q, w), rounded up: a step leaves two points z apart at most sqrt(q z^2 + w^2) apart.

    None if the losses are not known to be weakly convex, or if the Lipschitz factor of a smooth step or z + 2 eta L is
    always at least as good.
    """
    weak = max(0.0, -lowest_curvature(loss_class, smoothness, strong_convexity))
    if weak == math.inf:
        return None
    if smoothness is None or loss_class not in LIPSCHITZ_MAPS:
        return up(1.0 + 2.0 * step_size * weak, 4.0) if weak else 1.0, up(2.0 * step_size * lipschitz, 2.0)
    gap = down(smoothness - weak)
    if gap <= 0.0 or step_size * gap <= 2.0:
        return None
    longer = up(step_size - down(2.0 / gap, 2.0))
    raised = up(1.0 + up(2.0 * step_size * weak * (smoothness / gap), 8.0)) if weak else 1.0
    return raised, up(2.0 * lipschitz * math.sqrt(step_size) * math.sqrt(longer), 8.0)


def displacement(
    *,
    loss_class: str,
    step_size: float,
    diameter: float,
    lipschitz: float | None = None,
    smoothness: float | None = None,
    strong_convexity: float = 0.0,
    regularised: bool = False,
) -> float | None:
    """Return the least factor of the table that applies, rounded up; None if there is none.

    Args:
        loss_class: a `LossClass`.
        step_size, diameter: eta > 0 and D > 0.
        lipschitz, smoothness, strong_convexity: L, beta and rho; None if unknown.
        regularised: whether the losses have an l2 term, whose gradient is not included in L.
    """
    factors = []
    if lipschitz is not None:
        spread = 2.0 * step_size * lipschitz / diameter
        factors.append(up(1.0 + spread, 6.0))
        bent = stretch(
            loss_class=loss_class, step_size=step_size, lipschitz=lipschitz,
            smoothness=None if regularised else smoothness, strong_convexity=strong_convexity,
        )  # fmt: skip
        if bent is not None:
            factors.append(up(math.hypot(math.sqrt(bent[0]), bent[1] / diameter), 8.0))
    if smoothness is not None and loss_class in LIPSCHITZ_MAPS:
        least = lowest_curvature(loss_class, smoothness, strong_convexity)
        factors.append(contraction(step_size=step_size, smoothness=smoothness, strong_convexity=least))
    return min(factors, default=None)


def published_factor(*, step_size: float, smoothness: float, strong_convexity: float) -> float:
    """Return M = sqrt(1 - 2 eta beta rho/(beta + rho)), rounded up (1 for beta = rho = 0).

    It bounds the displacement only for eta <= 2/(beta + rho), and is never below `contraction` for those.

    Raises:
        NotApplicable: eta > 2/(beta + rho), for which the factor is wrong.
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

    context = Context(prec=80)  # only its methods round to 80 digits: the operators of Decimal keep 28
    factor = 0.0
    for read in (Decimal, lambda x: Decimal(repr(x))):  # the doubles, and the decimals that they print as
        eta, beta, rho = map(read, (step_size, smoothness, strong_convexity))
        twice = context.multiply(context.multiply(context.add(eta, eta), beta), rho)
        left = context.subtract(Decimal(1), context.divide(twice, context.add(beta, rho)))
        factor = max(factor, up(float(context.sqrt(left)), 4.0) if left > 0 else 0.0)
    return factor


def exceeds_two(eta: float, *curvatures: float) -> bool:
    """Return whether eta times the sum of the curvatures exceeds 2, exactly.

    Doubles are read as the decimals that they print as: 0.2 times 10 does not exceed 2.
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
    """Return whether clipped gradients are the gradients of a convex loss: see `dpcalc.model.clipping`."""
    if loss == LossName.SOFTMAX and classes != 2:
        return model == Model.CAPPED
    return loss is not None or model == Model.LINEAR
