"""The general shifted-divergence theorem (Feldman et al. 2018, Theorem 22; Bok, Su and Altschuler 2024).

Two chains w <- map_t(w) + noise_t whose maps at step t are c_t-Lipschitz and within s_t of each other, started at most
z_0 apart. For any a_t >= 0 with z_t = c_t z_{t-1} + s_t - a_t >= 0 and z_T = 0 the last states differ by no more than
the
noises shifted by a_t: mu^2 = sum a_t^2/v_t for Gaussian noise of variance v_t, and sum_t R_order(a_t) in Renyi
divergence for any noise. The allocation that minimises this is a lower convex hull.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Gdp, Rdp
from dpcalc.numerics.floats import up
from dpcalc.theorems.conditions import (
    DOMAIN,
    ONE_RELEASE,
)
from dpcalc.theorems.one_pass.allocation import optimal, own_shares
from dpcalc.theorems.record import Condition, Missing, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.setting import Setting

if TYPE_CHECKING:
    from dpcalc.numerics.isotonic import Allocation
    from dpcalc.theorems.one_pass.allocation import LaplaceSpending


_STEPS = (
    "step t adds fresh noise of scale step_size times the given one to a c_t-Lipschitz map",
    "the two runs' maps at step t are within s_t of each other everywhere",
    ONE_RELEASE,
)
_ERRATUM = (
    "The paper allows any real a_t; the divergences are defined for a_t >= 0 only, and no optimum needs a negative "
    "one. Its Theorem 1 lacks the square of the starting distance."
)


def _one_noise(run: Run) -> Obstacle | None:
    both = run.noise_std is not None and run.laplace_scale is not None
    return Unmet("both noise_std and laplace_scale are given", "give one of the two") if both else None


_HAS_SHIFT = requires(
    "every step's shift is known",
    lambda run: run.schedule is not None and run.schedule.shift is not None,
    Missing(("shift",), "needs the shift of every step", "give --shift or a column shift"),
)
_HAS_SPEND = requires(
    "the allocation is given",
    lambda run: run.schedule is not None and run.schedule.spend is not None,
    Missing(("spend",), "needs a column spend", "add your own a_t to the file"),
)
_ONE_NOISE = Condition("one kind of noise", _one_noise)


class NoisyChain(Setting):
    """Two chains of noisy Lipschitz steps."""

    @property
    def cap(self) -> float | None:
        """The largest distance of the chains after any step; None if unknown."""
        return self.diameter if self.diameter < math.inf else None

    @property
    def allocation(self) -> Allocation:
        """The optimal allocation for the schedule's Gaussian noise."""
        return optimal(self.schedule, self.start_distance, self.cap)

    @property
    def spending(self) -> LaplaceSpending:
        """The steps that the optimal restart keeps, and allocations of their shifts; Laplace noise."""
        from dpcalc.theorems.one_pass.allocation import LaplaceSpending

        return LaplaceSpending(self.schedule, self.allocation, self.laplace_scale)


@theorem(
    "shifted.gaussian",
    title="Shifted divergence with the optimal allocation",
    needs=("schedule", "start_distance", "noise_std"),
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22, in the Gaussian-DP form of shifted interpolation, optimal a_t",
    formula="mu^2 = min sum a_t^2/v_t over a_t >= 0, z_t = c_t z_(t-1) + s_t - a_t >= 0, z_T = 0",
    conditions=(_HAS_SHIFT, _ONE_NOISE),
    assumes=_STEPS,
    erratum=_ERRATUM,
)
def gaussian(run: NoisyChain) -> Gdp:
    """The last state of a noisy chain is mu-GDP: the noise of the steps hides the difference of the two chains' maps,
    with every shift spent where it is cheapest.

    mu is infinite if a shift can only be spent where there is no noise.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones = np.ones(4)
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=None, path="")
    >>> round(gaussian(NoisyChain(schedule=steps, start_distance=1.0, noise_std=1.0)).mu, 12)  # 1/sqrt(4)
    0.5
    """
    return _spent(run.allocation.cost, run.noise_std)


@theorem(
    "shifted.gaussian_domain",
    title="Shifted divergence with the optimal allocation and restart",
    needs=("schedule", "start_distance", "noise_std", "diameter"),
    algorithms=("chain",),
    reference="bok2024",
    locator="constrained case, with the optimal restart",
    formula="mu^2 = min over tau of the optimum on steps tau+1..T started at z_tau = D",
    conditions=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, DOMAIN),
)
def gaussian_domain(run: NoisyChain) -> Gdp:
    """On a bounded domain everything up to some step may be forgotten: the runs are at most a diameter apart there.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones = np.ones(4)
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=None, path="")
    >>> run = NoisyChain(schedule=steps, start_distance=9.0, noise_std=1.0, diameter=3.0)
    >>> round(gaussian_domain(run).mu ** 2, 12)  # after the first step: three steps for 3
    3.0
    """
    return _spent(run.allocation.cost, run.noise_std)


@theorem(
    "shifted.given_spend",
    title="Shifted divergence with the given allocation",
    needs=("schedule", "start_distance", "noise_std"),
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with the user's a_t",
    formula="mu^2 = sum a_t^2/v_t",
    conditions=(_HAS_SHIFT, _HAS_SPEND, _ONE_NOISE),
    assumes=_STEPS,
    erratum=_ERRATUM,
    given_allocation=True,
)
def given_spend(run: NoisyChain) -> Gdp:
    """Any allocation that spends every shift proves a bound; this is the one in the schedule's column ``spend``.

    Raises:
        SpecError: the allocation spends too much at some step, or leaves a rest at the end.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones, spend = np.ones(4), np.array([0.0, 0.0, 0.0, 1.0])
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=spend, path="")
    >>> round(given_spend(NoisyChain(schedule=steps, start_distance=1.0, noise_std=1.0)).mu, 12)  # all at the end
    1.0
    """
    from dpcalc.numerics.isotonic import cost_of

    return _spent(cost_of(own_shares(run.schedule, run.start_distance), run.schedule.variance), run.noise_std)


def _spent(cost: float, noise_std: float) -> Gdp:
    """Return the guarantee at this noise multiplier, from the cost at noise 1."""
    return Gdp(up(math.sqrt(cost) / noise_std, 4.0) if cost < math.inf else math.inf)


@theorem(
    "shifted.laplace",
    title="Shifted divergence with Laplace noise, one dimension",
    needs=("schedule", "start_distance", "laplace_scale"),
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with Laplace noise",
    formula="RDP(a) = min sum_t R_a(a_t/b_t), R_a the divergence of Laplace noise at a shift",
    conditions=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, "the parameter is one-dimensional and the noise is Laplace"),
    erratum=_ERRATUM,
)
def laplace(run: NoisyChain) -> Rdp:
    """With Laplace noise in one dimension, every step pays the Laplace divergence of its share of the shift.

    An infinite order gives pure differential privacy. The allocation is optimal for equal steps and c = 1, and within
    1e-4 of optimal up to 200 steps (majorise-minimise on the Gaussian problem); up to 1e5 steps it is refined for a few
    orders, and beyond that the Gaussian one is used. All are valid.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones = np.ones(4)
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=None, path="")
    >>> run = NoisyChain(schedule=steps, start_distance=1.0, laplace_scale=1.0)
    >>> round(laplace(run).curve(math.inf), 12)  # four steps of pure privacy 1/4
    1.0
    """
    spending = run.spending
    return Rdp(spending.divergence, certificate=spending.certificate)


@theorem(
    "shifted.laplace_domain",
    title="Shifted divergence with Laplace noise and restart, one dimension",
    needs=("schedule", "start_distance", "laplace_scale", "diameter"),
    algorithms=("chain",),
    reference="feldman2018",
    locator="Theorem 22 with Laplace noise and a bounded domain",
    formula="RDP(a) = min sum_t R_a(a_t/b_t), with the restart of the Gaussian problem",
    conditions=(_HAS_SHIFT, _ONE_NOISE),
    assumes=(*_STEPS, DOMAIN, "the parameter is one-dimensional and the noise is Laplace"),
)
def laplace_domain(run: NoisyChain) -> Rdp:
    """As `laplace`, but everything up to some step is forgotten: the runs are at most a diameter apart there.

    >>> import numpy as np
    >>> from dpcalc.model.chain import Chain
    >>> ones = np.ones(4)
    >>> steps = Chain(step_size=ones, noise=ones, contraction=ones, shift=0.0 * ones, spend=None, path="")
    >>> run = NoisyChain(schedule=steps, start_distance=1.0, laplace_scale=1.0, diameter=0.5)
    >>> round(laplace_domain(run).curve(math.inf), 12)
    0.5
    """
    spending = run.spending
    return Rdp(spending.divergence, certificate=spending.certificate)
