"""The general theorem against closed forms, exact linear chains, and feasible allocations found by another solver."""

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize

from dpcalc.errors import SpecError
from dpcalc.model.chain import Chain
from dpcalc.theorems.one_pass import allocation, shifted
from tests.formulas import evaluated


def chain(shift: Any, contraction: Any, scale: Any, spend: Any = None) -> Chain:
    shift = np.asarray(shift, dtype=float)
    return Chain(
        step_size=np.ones(len(shift)),
        noise=np.broadcast_to(np.asarray(scale, dtype=float), shift.shape),
        contraction=np.broadcast_to(np.asarray(contraction, dtype=float), shift.shape),
        shift=shift,
        spend=None if spend is None else np.asarray(spend, dtype=float),
        path="",
    )


def mu(schedule: Chain, start: float = 0.0, noise: float = 1.0) -> float:
    return evaluated(shifted.gaussian, schedule=schedule, start_distance=start, noise_std=noise)


def just_above(found: float, exact: Any, relative: float = 1e-12) -> None:
    assert mp.mpf(found) >= exact
    assert mp.mpf(found) <= exact * (1 + mp.mpf(relative))


@pytest.mark.parametrize("diameter", [0.01, 0.4, 3.0, 1000.0])
def test_full_batch_on_a_bounded_domain(diameter: float) -> None:
    steps, schedule = 60, chain(np.ones(60), 1.0, 1.0)
    found = evaluated(shifted.gaussian_domain, schedule=schedule, start_distance=0.0, noise_std=1.0, diameter=diameter)
    with mp.workdps(40):
        restarts = [(mp.mpf(diameter) + k) ** 2 / k for k in range(1, steps)]
        just_above(found, mp.sqrt(min(mp.mpf(steps), *restarts)))


def test_the_starts_may_be_further_apart_than_the_diameter() -> None:
    """Starts at -5 and 5, a step with noise 0.5, projected onto [-1/2, 1/2]: it shows which start it was."""
    run = {"start_distance": 10.0, "noise_std": 0.5, "diameter": 1.0}
    found = {
        steps: evaluated(shifted.gaussian_domain, schedule=chain(np.zeros(steps), 1.0, 1.0), **run) for steps in (1, 2)
    }
    # P(output > 0) is Phi(10) and Phi(-10): the least mu with Phi(Phi^-1(alpha) + mu) above that is 20.
    just_above(found[1], mp.mpf(20))
    just_above(found[2], mp.mpf(2))  # after the first step they are in the set


def test_own_allocation() -> None:
    steps = chain([0.0, 2.0, 0.0, 2.0], 1.0, 1.0, spend=[0.0, 1.0, 1.0, 2.0])
    found = evaluated(shifted.given_spend, schedule=steps, start_distance=0.0, noise_std=1.0)
    just_above(found, mp.sqrt(6))
    worse = chain([0.0, 2.0, 0.0, 2.0], 1.0, 1.0, spend=[0.0, 2.0, 0.0, 2.0])
    assert evaluated(shifted.given_spend, schedule=worse, start_distance=0.0, noise_std=1.0) > found


@pytest.mark.parametrize("spend", [[0.0, 2.1, 0.0, 1.9], [0.0, 1.0, 0.0, 2.0], [1.0, 1.0, 0.0, 2.0]])
def test_allocations_that_are_none(spend: list[float]) -> None:
    with pytest.raises(SpecError):
        evaluated(
            shifted.given_spend,
            schedule=chain([0.0, 2.0, 0.0, 2.0], 1.0, 1.0, spend=spend),
            start_distance=0.0,
            noise_std=1.0,
        )


def laplace_divergence(order: float, u: Any) -> Any:
    """Return the Renyi divergence of Laplace noise of scale 1 at shift u, by quadrature of its definition."""
    a, u = mp.mpf(order), mp.mpf(u)

    def integrand(x: Any) -> Any:
        return mp.exp(-a * abs(x - u) - (1 - a) * abs(x)) / 2

    tails = mp.exp(a * -u) / 2 + mp.exp((a - 1) * u) / 2
    return mp.log(tails + mp.quad(integrand, [0, u])) / (a - 1)


@pytest.mark.parametrize("order", [1.5, 2.0, 30.0])
@pytest.mark.parametrize("steps", [1, 4, 100])
def test_laplace_in_equal_steps(order: float, steps: int) -> None:
    schedule = chain([3.0] + [0.0] * (steps - 1), 1.0, 2.0)
    found = evaluated(shifted.laplace, schedule=schedule, start_distance=0.0, laplace_scale=0.5, order=order)
    with mp.workdps(30):
        just_above(found, steps * laplace_divergence(order, mp.mpf(3) / steps))


@pytest.mark.parametrize("diameter", [0.5, 2.0, 40.0])
def test_laplace_on_a_bounded_domain(diameter: float) -> None:
    """Equal steps and shifts: all but the last k are forgotten at the price of a diameter, for the best Gaussian k."""
    steps, shift = 30, 1.0
    costs = [(diameter * (k < steps) + k * shift) ** 2 / k for k in range(1, steps + 1)]
    k = 1 + min(range(steps), key=costs.__getitem__)
    found = evaluated(
        shifted.laplace_domain, schedule=chain([shift] * steps, 1.0, 2.0), start_distance=0.0, laplace_scale=0.5,
        diameter=diameter, order=2.0,
    )  # fmt: skip
    with mp.workdps(30):
        just_above(found, k * laplace_divergence(2.0, (diameter * (k < steps) + k * shift) / mp.mpf(k)))


def test_laplace_at_infinite_order_is_pure_privacy() -> None:
    found = evaluated(
        shifted.laplace, schedule=chain([1.0, 1.0], 1.0, 1.0), start_distance=0.0, laplace_scale=1.0, order=math.inf
    )
    just_above(found, mp.mpf(2))


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(s, marks=pytest.mark.campaign) for s in (2, 3, 4, 5))])
@pytest.mark.parametrize("order", [1.5, 4.0, 50.0])
def test_laplace_with_unequal_steps(seed: int, order: float) -> None:
    """Not below what another solver reaches (it is the minimum), and within 1e-3 of it."""
    r = np.random.default_rng(seed)
    scale, c, shift = r.uniform(0.5, 3, 5), r.uniform(0.6, 1.2, 5), r.uniform(0.1, 2, 5)
    found = evaluated(
        shifted.laplace, schedule=chain(shift, c, scale), start_distance=0.0, laplace_scale=1.0, order=order
    )

    def left(a: Any) -> Any:
        z, levels = 0.0, []
        for factor, s, spent in zip(c, shift, a, strict=True):
            z = factor * z + s - spent
            levels.append(z)
        return np.array(levels)

    def cost(a: Any) -> float:
        u = np.maximum(a, 0.0) / scale
        w = 2 * order - 1
        inner = order / w * np.exp((order - 1) * u) + (order - 1) / w * np.exp(-order * u)
        return float(np.log(inner).sum() / (order - 1))

    constraints = [{"type": "ineq", "fun": lambda a: left(a)[:-1]}, {"type": "eq", "fun": lambda a: left(a)[-1]}]
    tries = [
        minimize(cost, r.uniform(0, 1, 5), bounds=[(0, None)] * 5, constraints=constraints, method="SLSQP")
        for _ in range(6)
    ]
    feasible = [t.fun for t in tries if t.success and abs(left(t.x)[-1]) < 1e-9 and left(t.x).min() > -1e-9]
    assert feasible
    assert min(feasible) * (1 - 1e-6) <= found <= min(feasible) * (1 + 1e-3)


def test_where_the_shifts_are_spent() -> None:
    schedule = chain([1.0, 0.0, 0.0, 1.0], 1.0, 1.0)
    found = allocation.describe_allocation(schedule, 0.0, None, own=False)
    assert [(b["first"], b["last"]) for b in found["blocks"]] == [(4, 4), (1, 3)]
    assert found["a"] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1.0])
    assert found["z"] == pytest.approx([2 / 3, 1 / 3, 0.0, 0.0], abs=1e-12)
    assert sum(found["quarters"]) == pytest.approx(1.0)
