"""Blocks of steps along a chord against every step taken one by one, with fifty digits."""

import math
from collections.abc import Callable

import mpmath
import pytest

from dpcalc.model.quantities import Noise
from dpcalc.theorems.contraction.chords import chords
from dpcalc.theorems.contraction.recursion import log_one_step, shrunk_epsilon
from tests.oracles import draws

STEPS = 300


def constant(width: float) -> Callable[[], float]:
    return lambda: width


def hidden(noise: Noise, gap: mpmath.mpf, e: mpmath.mpf, ratio: float) -> mpmath.mpf:
    """e times the hockey-stick divergence at e^level = 1 + gap/e, from its definition."""
    level = mpmath.log1p(gap / e)
    if noise == Noise.LAPLACE:
        return e * max(mpmath.mpf(0), -mpmath.expm1((level - ratio) / 2))
    a = level / ratio - mpmath.mpf(ratio) / 2
    return e * (mpmath.ncdf(-a) - mpmath.exp(level) * mpmath.ncdf(-a - ratio))


def trace(noise: Noise, epsilon: float, log_e: float, ratio: float) -> list[mpmath.mpf]:
    gap, e = mpmath.expm1(epsilon), mpmath.exp(log_e)
    found = [e]
    for _ in range(STEPS):
        e = hidden(noise, gap, e, ratio) if e > mpmath.mpf("1e-60") else mpmath.mpf(0)
        found.append(e)
    return found


@pytest.mark.parametrize("noise", [Noise.GAUSSIAN, Noise.LAPLACE])
def test_blocks_are_above_every_step_and_hardly_so(noise: Noise) -> None:
    long = 0
    for r in draws(f"chords {noise}", 25, 20):
        epsilon, log_e = r.choice((0.0, 10.0 ** r.uniform(-5, 0.5))), -r.choice((1e-9, 10.0 ** r.uniform(-3, 1)))
        ratio = r.uniform(5.0, 13.0) if noise == Noise.GAUSSIAN else epsilon - log_e + r.uniform(5.0, 25.0)
        width = r.choice((0.03, 0.03, 0.3))

        def factor(at: float, epsilon: float = epsilon, ratio: float = ratio, noise: Noise = noise) -> float:
            log_gap = math.log(math.expm1(epsilon)) if epsilon else -math.inf
            return log_one_step(noise, shrunk_epsilon(log_gap, at), ratio)

        with mpmath.workdps(50):
            exact = trace(noise, epsilon, log_e, ratio)
            reached, total = 0, mpmath.mpf(0)
            for block in chords(factor, log_e, STEPS, floor=-130.0, width=constant(width)):
                assert block.start == reached
                reached += block.length
                parts = exact[block.start : reached]
                assert mpmath.exp(block.log_e) * (1 + mpmath.mpf(1e-15)) >= parts[0]
                assert mpmath.exp(block.log_e) * block.total * (1 + mpmath.mpf(1e-15)) >= mpmath.fsum(parts)
                assert mpmath.exp(block.after) * (1 + mpmath.mpf(1e-15)) >= exact[reached]
                total += mpmath.exp(block.log_e) * block.total
                long += block.length > 3
            assert total <= mpmath.fsum(exact[:reached]) * (1 + (1e-3 if width < 0.1 else 0.05))
    assert long
