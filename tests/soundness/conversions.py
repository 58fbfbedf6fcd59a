"""Conversions between notions as subjects of their own: what Gaussian DP and Renyi DP say at an (epsilon, delta)."""

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from flint import arb

from dpcalc.certify.numerics import balls
from dpcalc.certify.numerics.balls import Undecided, log
from dpcalc.certify.runs.run import RunInputs
from dpcalc.notions import gaussian, renyi
from tests.oracles import log_uniform


class Conversion(NamedTuple):
    """A function of doubles, and either its formula or, for an inverse, the test that its value must pass.

    ``holds(v, x)``: whether x is at or above the truth, for certain; the value is to pass, and ``slack`` less must not.
    """

    draw: Callable[[random.Random], dict[str, Any]]
    function: Callable[..., float]
    formula: Callable[[RunInputs], arb] | None = None
    holds: Callable[[RunInputs, arb], bool] | None = None
    logarithm: bool = False
    slack: float = 1e-12
    falling: bool = False
    weight: float = 1.0


def _mu(r: random.Random) -> float:
    return r.choice((log_uniform(r, 1e-3, 30.0), log_uniform(r, 1e-12, 1e12), log_uniform(r, 1e-300, 1e90)))


def _epsilon(r: random.Random) -> float:
    return r.choice((0.0, log_uniform(r, 1e-3, 30.0), log_uniform(r, 1e-300, 1e9)))


def _point(r: random.Random) -> dict[str, float]:
    """Anywhere, and half the time where two parts of delta nearly cancel or a series takes over."""
    mu = _mu(r)
    if r.random() < 0.5 or not 1e-100 < mu < 1e6:
        return {"mu": mu, "epsilon": _epsilon(r)}
    x = r.choice((r.uniform(-40.0, 40.0), r.choice((-1.25, -1.0, 0.0, 1.0, 4.125)), log_uniform(r, 1e-3, 1e3)))
    bend = 0.5 * mu * mu * (1.0 + r.choice((0.0, r.uniform(-1.0, 1.0) * log_uniform(r, 1e-17, 1.0))))
    return {"mu": mu, "epsilon": max(0.0, bend + mu * r.choice((0.0, x)))}


def _log_target(r: random.Random) -> float:
    return -r.choice((log_uniform(r, 0.1, 50.0), log_uniform(r, 1e-6, 1e6), 690.7755278982137))


def _reaches(v: RunInputs, epsilon: arb, mu: arb) -> bool:
    log_delta = balls.log_delta(epsilon, mu)
    if log_delta <= v.log_delta_target:
        return True
    if log_delta > v.log_delta_target:
        return False
    raise Undecided


def _renyi(r: random.Random) -> dict[str, Any]:
    order = 1.0 + r.choice((log_uniform(r, 1e-9, 1.0), log_uniform(r, 0.1, 100.0), log_uniform(r, 1.0, 1e12)))
    return {"order": order, "rdp": log_uniform(r, 1e-9, 1e3), "log_delta": _log_target(r)}


def _exact(r: random.Random) -> dict[str, Any]:
    order = 1.0 + r.choice((log_uniform(r, 1e-3, 1.0), log_uniform(r, 0.1, 100.0), log_uniform(r, 1.0, 1e6)))
    return {"order": order, "rdp": log_uniform(r, 1e-6, 30.0), "log_delta": -log_uniform(r, 0.1, 600.0)}


def _with_epsilon(r: random.Random) -> dict[str, Any]:
    return {**{k: v for k, v in _renyi(r).items() if k != "log_delta"}, "epsilon": _epsilon(r)}


def laplace(v: RunInputs) -> arb:
    """ln(a/(2a-1) e^((a-1)u) + (a-1)/(2a-1) e^(-a u))/(a-1)."""
    a, u = v.order, v.shift / v.scale
    if a == 1:
        return u + (-u).expm1()
    w = 2 * a - 1
    grown = (a - 1) * u
    inner = a / w + (a - 1) / w * (-w * u).exp()
    return (grown + log(inner)) / (a - 1)


CONVERSIONS: dict[str, Conversion] = {
    "gaussian.log_delta": Conversion(
        _point, gaussian.log_delta, lambda v: balls.log_delta(v.epsilon, v.mu), logarithm=True, slack=1e-14, weight=0.5,
    ),
    "gaussian.epsilon": Conversion(
        lambda r: {"mu": r.choice((log_uniform(r, 1e-3, 30.0), log_uniform(r, 1e-9, 1e9))),
                   "log_delta_target": _log_target(r)},
        gaussian.epsilon, holds=lambda v, x: _reaches(v, x, v.mu), slack=1e-10, weight=2.0,
    ),
    "gaussian.largest_mu": Conversion(
        lambda r: {"epsilon": r.choice((0.0, log_uniform(r, 1e-3, 30.0), log_uniform(r, 1e-9, 1e6))),
                   "log_delta_target": _log_target(r)},
        gaussian.largest_mu, holds=lambda v, x: _reaches(v, v.epsilon, x), falling=True, slack=1e-9, weight=2.0,
    ),
    "gaussian.noise_std": Conversion(
        lambda r: {"sensitivity": log_uniform(r, 1e-6, 1e6), "epsilon": log_uniform(r, 1e-6, 1e3),
                   "log_delta_target": _log_target(r)},
        gaussian.noise_std, holds=lambda v, x: _reaches(v, v.epsilon, v.sensitivity / x), slack=1e-9, weight=2.0,
    ),
    "gaussian.renyi": Conversion(
        lambda r: {"mu": _mu(r), "order": 1.0 + log_uniform(r, 1e-9, 1e9)}, gaussian.renyi,
        lambda v: v.order * v.mu * v.mu / 2, weight=0.5,
    ),
    "renyi.gaussian": Conversion(
        lambda r: {"order": 1.0 + log_uniform(r, 1e-9, 1e9), "shift": _mu(r), "scale": log_uniform(r, 1e-30, 1e30)},
        renyi.gaussian, lambda v: v.order * (v.shift / v.scale) ** 2 / 2, weight=0.5,
    ),
    "renyi.laplace": Conversion(
        lambda r: {"order": r.choice((1.0, 2.0, 1.0 + log_uniform(r, 1e-9, 1e6))), "shift": log_uniform(r, 1e-9, 1e3),
                   "scale": log_uniform(r, 1e-3, 1e3)},
        renyi.laplace, laplace, slack=1e-11,
    ),
    "renyi.mironov": Conversion(
        _renyi, renyi.mironov, lambda v: balls.mironov(v.order, v.rdp, v.log_delta), weight=0.5),
    "renyi.canonne": Conversion(
        _renyi, renyi.canonne, lambda v: balls.canonne(v.order, v.rdp, v.log_delta), slack=math.inf, weight=0.5),
    "renyi.canonne_log_delta": Conversion(
        _with_epsilon, renyi.canonne_log_delta,
        lambda v: balls.capped(balls.canonne_log_delta(v.order, v.rdp, v.epsilon)), logarithm=True, slack=math.inf,
        weight=0.5,
    ),
    "renyi.asoodeh": Conversion(
        _renyi, renyi.asoodeh, lambda v: balls.asoodeh(v.order, v.rdp, v.log_delta), slack=1e-9, weight=0.5),
    "renyi.exact_one_order": Conversion(
        _exact, renyi.exact_one_order,
        holds=lambda v, x: balls.exact_suffices(v.order, v.rdp, v.log_delta, x), slack=math.inf, weight=30.0,
    ),
}  # fmt: skip
