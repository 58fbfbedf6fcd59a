"""The decaying noise of a stream."""

from __future__ import annotations

from flint import arb

from dpcalc.model.choices import Noise


def schedule_reach(noise: Noise, x: arb, c1: arb, c2: arb) -> arb:
    """Return r_B: 2 ln(x/C1 + C2), or 2 sqrt(W(x^2/(2 pi C1^2) + C2))."""
    if noise == Noise.LAPLACE:
        return 2 * (x / c1 + c2).log()
    return 2 * (x * x / (2 * arb.pi() * c1 * c1) + c2).lambertw().sqrt()
