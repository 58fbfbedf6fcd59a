"""Definitions of `noisy_gd`: steps on the mean gradient of all records."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Gdp, Profile, Rdp
from dpcalc.certify.numerics.balls import Inputs, OutOfReach, least, power, square
from dpcalc.certify.numerics.gaussian import log_step
from dpcalc.certify.numerics.laplace import composed
from dpcalc.certify.runs.allocation import passes_cost, quadratic_cost, restarts_cost
from dpcalc.certify.runs.batches import contraction
from dpcalc.certify.table import defines
from dpcalc.model.choices import Noise

_MOST_SHARES = 1500


def full_ratio(v: Inputs) -> arb:
    """Return Delta/(n sigma)."""
    return v.quotient(["sensitivity"], [v.records, "noise_std"])


@defines("noisy_gd.contraction", Gdp)
def _gd_contraction(v: Inputs) -> arb:
    return full_ratio(v) * passes_cost(1, 1, v.steps, contraction(v)).sqrt()


@defines("noisy_gd.domain", Gdp, slack=1e-8, weight=10.0)
def _gd_domain(v: Inputs) -> arb:
    reach = v.diameter * v.records / (v.step_size * v.sensitivity)
    return full_ratio(v) * restarts_cost(1, 1, v.steps, contraction(v), reach).sqrt()


@defines("noisy_gd.composition", Gdp)
def _gd_composition(v: Inputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


def _fading(v: Inputs) -> tuple[arb, arb]:
    """Return (a r^2, eta m)."""
    r = full_ratio(v)
    return v.order * r * r, v.step_size * v.strong_convexity


@defines("noisy_gd.langevin", Rdp)
def _langevin(v: Inputs) -> arb:
    scale, x = _fading(v)
    return 2 * scale / x * -(-x * v.steps / 2).expm1()


@defines("noisy_gd.langevin_refined", Rdp)
def _langevin_refined(v: Inputs) -> arb:
    scale, x = _fading(v)
    y = x * v.steps
    rho = y / 4 if y <= 1 else square(1 - (-(y - 1) / 2).exp() / 2)
    if not (y <= 1 or y > 1):  # at y = 1 both say 1/4
        rho = rho.union(y / 4)
    return 2 * scale / x * rho


@defines("noisy_gd.quadratic", Gdp, lower=True)
def _gd_quadratic(v: Inputs) -> arb:
    q = arb(1 - v.exact("step_size") * v.exact("strong_convexity"))
    return full_ratio(v) * quadratic_cost(q, 1, 1, v.steps).sqrt()


@defines("noisy_gd.langevin_lower", Rdp, lower=True)
def _langevin_lower(v: Inputs) -> arb:
    scale, x = _fading(v)
    return scale / (2 * x) * -(-x * v.steps).expm1()


@defines("noisy_gd.laplace", Profile, slack=1e-9, weight=20.0, limit=f"{_MOST_SHARES} steps")
def _gd_laplace(v: Inputs) -> arb:
    """The least over h = 1, 2, 3, 4, 6, 8, 12, ... and T of h equal shares of the last h steps, composed.

    Raises:
        OutOfReach: more than 1500 steps.
    """
    if v.steps > _MOST_SHARES:
        raise OutOfReach(f"a composition over more than {_MOST_SHARES} steps")
    powers = {k << j for j in range(v.steps.bit_length()) for k in (1, 3)}
    ways = [log_step(Noise.LAPLACE, v.epsilon, _share(v, 1))]
    ways += [composed(h * _share(v, h), h, v.epsilon) for h in sorted({v.steps, *powers}) if 1 < h <= v.steps]
    return least(*ways)


def _share(v: Inputs, last: int) -> arb:
    """Return what each of the last h steps spends, in units of the noise."""
    use, c = v.quotient(["sensitivity"], [v.records, "scale"]), contraction(v)

    def powers(terms: int) -> arb:
        return arb(terms) if c == 1 else (1 - power(c, terms)) / (1 - c)

    whole = use * powers(v.steps) / powers(last)
    if v.diameter is None:
        return whole
    return least(whole, use + v.quotient(["diameter"], ["step_size", "scale"]) * power(c, last) / powers(last))
