"""Excess risk on Hölder losses, whole theorems: at the noise and step size of the answer, against fifty digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import pytest
from scipy import stats

from dpcalc.notions.conversions import Risk
from dpcalc.theorems.risk import holder_cost, holder_sgd
from dpcalc.theorems.sampled import noisy_sgd
from tests.formulas import evaluated

BUDGET = {"epsilon": 2.0, "log_delta": math.log(1e-4)}
LIKELY = {"loss_at_zero": 0.75, "failure_probability": 0.1}
RUNS: list[dict[str, Any]] = [
    {"records": 200, "steps": 200, "dimension": 3, "radius": 1.0, "holder_exponent": 1.0, "holder_constant": 0.25,
     "gradient_at_zero": 0.5, "step_size": 0.125},
    {"records": 200, "steps": 200, "dimension": 7, "radius": 1.5, "holder_exponent": 0.5, "holder_constant": 1.5,
     "gradient_at_zero": 0.25, "lipschitz": 1.75, "step_size": 0.03},
    {"records": 200, "steps": 200, "dimension": 1, "radius": 0.5, "holder_exponent": 0.0, "holder_constant": 0.5,
     "gradient_at_zero": 1.0},
]  # fmt: skip


class Formulas:
    """The terms of the bounds in fifty digits, of a run and the noise and step size of the answer."""

    def __init__(self, run: dict[str, Any], cost: Risk) -> None:
        self.n, self.t, self.d = run["records"], run["steps"], run["dimension"]
        self.r, self.alpha, self.c = (mp.mpf(run[k]) for k in ("radius", "holder_exponent", "holder_constant"))
        m, m0 = mp.mpf(run["gradient_at_zero"]), mp.mpf(LIKELY["loss_at_zero"])
        assert cost.step_size is not None
        assert cost.noise_std is not None
        self.eta, self.sigma = mp.mpf(cost.step_size), mp.mpf(cost.noise_std)
        self.g = min(mp.mpf(run.get("lipschitz", mp.inf)), m + self.c * self.r**self.alpha)
        curved = self.c * self.r ** (1 + self.alpha) / (1 + self.alpha)
        self.b = min(m0 + self.g * self.r, m0 + m * self.r + curved)

    @property
    def hit(self) -> mp.mpf:
        return 2 * self.eta * self.g

    @property
    def drift(self) -> mp.mpf:
        if self.alpha == 1:
            return mp.mpf(0)
        root = mp.sqrt((1 - self.alpha) / (1 + self.alpha))
        return root * (2**-self.alpha * self.c * self.eta) ** (1 / (1 - self.alpha))

    def regret(self) -> mp.mpf:
        return self.r**2 / (2 * self.eta * self.t) + self.eta * self.g**2 / 2

    def expected_gap(self) -> mp.mpf:
        a = min(self.drift, self.hit)
        return self.g * (self.eta * self.g * (self.t - 1) / self.n + 2 * a * mp.sqrt(self.t) / 3)

    def curved(self, square: mp.mpf) -> mp.mpf:
        """L x^(1 + alpha)/(1 + alpha), of x^2."""
        return self.c * square ** ((1 + self.alpha) / 2) / (1 + self.alpha)

    def levels(self) -> int:
        return next(k for k in range(64) if 2**k >= self.n)

    def published_gap(self, share: mp.mpf) -> mp.mpf:
        x = 3 * mp.mpf(self.n) / self.t * mp.log(self.n / share)
        kappa = mp.mpf(self.t) / self.n * (1 + max(x, mp.sqrt(x)))
        apart = mp.sqrt(mp.e * (self.drift**2 * self.t + self.hit**2 * (1 + kappa) * kappa))
        stability, p = self.g * apart, max(2, -mp.log(2 * share))
        chained = 24 * mp.sqrt(2) * p * stability * self.levels()
        return 2 * stability + mp.e * (chained + 4 * self.b * mp.sqrt(p / self.n))

    def uniform_gap(self, share: mp.mpf) -> mp.mpf:
        hits = int(stats.binom.isf(float(share / self.n), self.t, 1.0 / self.n))
        a = min(self.drift, self.hit)
        stability = self.g * ((hits - 1) * self.hit + mp.sqrt(self.hit**2 + (self.t - hits) * a**2))
        return 2 * stability + self.mean(share) + 2 * stability * self.levels() * chaining(share)

    def gap_by_index(self, share: mp.mpf) -> mp.mpf:
        a, t, n = min(self.drift, self.hit), mp.mpf(self.t), mp.mpf(self.n)
        v = t * (t - 1) / (2 * n)
        collisions = min(v + mp.sqrt(v * (1 - 1 / n) * (1 / share - 1)), t * (t - 1) / 2)
        one = self.g * (self.hit * t / n + a * mp.sqrt(t) * min(1, t / n))
        two = 2 * self.g / mp.sqrt(n) * (self.hit * mp.sqrt(t + 2 * collisions) + a * mp.sqrt(t * min(n, t)))
        return 2 * one + self.mean(share) + chaining(share) * self.levels() * two

    def least_gap(self, share: mp.mpf) -> mp.mpf:
        return min(self.gap_by_index(share), self.uniform_gap(share))

    def mean(self, share: mp.mpf) -> mp.mpf:
        return self.b * mp.sqrt(-mp.log(share) / (2 * self.n))

    def sampling(self, share: mp.mpf) -> mp.mpf:
        over_steps = min(2 * self.b, 4 * self.g * self.r) * mp.sqrt(-mp.log(share) / (2 * self.t))
        return over_steps + self.mean(share)

    def step_noise(self, share: mp.mpf) -> mp.mpf:
        square = mp.mpf(stats.chi2.isf(float(share), self.t * self.d))
        along = self.sigma * (2 * self.r + self.eta * self.g) * mp.sqrt(-2 * mp.log(share) / self.t)
        return self.eta * self.sigma**2 / (2 * self.t) * square + along

    def output_noise(self, share: mp.mpf) -> mp.mpf:
        half = float(share / 2)
        along = self.g * self.sigma * mp.mpf(stats.norm.isf(half))
        return along + self.curved(self.sigma**2 * mp.mpf(stats.chi2.isf(half, self.d)))


def chaining(share: mp.mpf) -> mp.mpf:
    """The least of share^(-1/p) sqrt((p - 1)/2) (2 Gamma(p/2 + 1))^(1/p) over p >= 2, on a fine grid around it."""

    def at(p: mp.mpf) -> mp.mpf:
        return share ** (-1 / p) * mp.sqrt((p - 1) / 2) * (2 * mp.gamma(p / 2 + 1)) ** (1 / p)

    low, high = mp.mpf(2), mp.mpf(200)
    for _ in range(60):
        grid = [low + (high - low) * k / 10 for k in range(11)]
        best = min(range(11), key=lambda k: at(grid[k]))
        low, high = grid[max(best - 1, 0)], grid[min(best + 1, 10)]
    return at((low + high) / 2)


def agrees(found: float, exact: mp.mpf) -> None:
    """Rounded up, and by no more than the quantiles of SciPy are good for."""
    assert exact * (1 - mp.mpf("1e-12")) <= found <= exact * (1 + mp.mpf("1e-9"))


@pytest.mark.parametrize("run", RUNS, ids=["smooth", "between", "Lipschitz"])
@pytest.mark.parametrize("place", ["gradient", "output"])
def test_expected_risk(place: str, run: dict[str, Any]) -> None:
    cost = evaluated(getattr(holder_cost, f"{place}_expected"), **run, **BUDGET)
    with mp.workdps(50):
        f = Formulas(run, cost)
        square = f.d * f.sigma**2
        noise = f.eta * square / 2 if place == "gradient" else f.curved(square)
        agrees(cost.excess_risk, f.regret() + f.expected_gap() + noise)


@pytest.mark.parametrize("run", RUNS, ids=["smooth", "between", "Lipschitz"])
@pytest.mark.parametrize("gap", ["published", "uniform", "likely"])
@pytest.mark.parametrize("place", ["gradient", "output"])
def test_likely_risk(place: str, gap: str, run: dict[str, Any]) -> None:
    """Noise in the steps takes seven shares of the chance, on the output six; a gap takes three of them."""
    cost = evaluated(getattr(holder_cost, f"{place}_{gap}"), **run, **BUDGET, **LIKELY)
    with mp.workdps(50):
        f = Formulas(run, cost)
        share = mp.mpf(LIKELY["failure_probability"]) / (7 if place == "gradient" else 6)
        noise = f.step_noise(share) if place == "gradient" else f.output_noise(share)
        gaps = {"published": f.published_gap, "uniform": f.uniform_gap, "likely": f.least_gap}
        agrees(cost.excess_risk, gaps[gap](share) + f.regret() + noise + f.sampling(share))
    assert cost.failure_probability == LIKELY["failure_probability"]
    assert cost.step_size == run.get("step_size", cost.step_size)


@pytest.mark.parametrize("run", [(200, 200, 2.0, 1e-4), (10**4, 10**4, 0.1, 1e-8), (50, 5000, 3.0, 1e-3)])
def test_the_least_noise_keeps_the_budget_and_hardly_less_does_not(run: tuple[int, int, float, float]) -> None:
    records, steps, epsilon, delta = run
    s = holder_sgd.step_noise_ratio(records, steps, epsilon, math.log(delta))

    def log_delta(ratio: float) -> float:
        sampled = noisy_sgd.SampledSteps(
            records=records, batch_size=1, steps=steps, lipschitz=0.5, noise_std=ratio
        )  # fmt: skip
        return noisy_sgd.composition(sampled).log_delta(epsilon).value

    assert log_delta(s) <= math.log(delta) < log_delta(s * (1.0 - 4e-4))
