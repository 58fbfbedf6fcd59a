"""Definitions of `multi_epoch`: many passes in one order."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Gdp, Rdp
from dpcalc.certify.numerics.balls import Inputs
from dpcalc.certify.runs.allocation import passes_cost, quadratic_cost, restarts_cost
from dpcalc.certify.runs.batches import batch, contraction, period, ratio
from dpcalc.certify.table import defines


@defines("multi_epoch.cyclic", Gdp)
def _cyclic(v: Inputs) -> arb:
    r, k = ratio(v)
    return r * (arb(v.epochs - 1) / period(v) + arb(1) / k).sqrt()


@defines("multi_epoch.cyclic_rdp", Rdp)
def _cyclic_rdp(v: Inputs) -> arb:
    r, k = ratio(v)
    return v.order * r * r / 2 * (arb(v.epochs - 1) / period(v) + arb(1) / k)


@defines("multi_epoch.cyclic_contraction", Gdp, slack=1e-11)
def _cyclic_contraction(v: Inputs) -> arb:
    r, k = ratio(v)
    return r * passes_cost(period(v), k, v.epochs, contraction(v)).sqrt()


@defines("multi_epoch.cyclic_domain", Gdp, slack=1e-8, weight=15.0)
def _cyclic_domain(v: Inputs) -> arb:
    (r, k), size = ratio(v), batch(v)[0]
    reach = v.diameter * size / (v.step_size * v.sensitivity)
    return r * restarts_cost(period(v), k, v.epochs, contraction(v), reach).sqrt()


@defines("multi_epoch.composition", Gdp)
def _composition(v: Inputs) -> arb:
    return ratio(v)[0] * arb(v.epochs).sqrt()


@defines("multi_epoch.quadratic", Gdp, lower=True)
def _quadratic(v: Inputs) -> arb:
    (r, k), q = ratio(v), arb(1 - v.exact("step_size") * v.exact("strong_convexity"))
    return r * quadratic_cost(q, period(v), k, v.epochs).sqrt()
