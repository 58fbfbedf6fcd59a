"""Steps on fresh uniform batches drawn without replacement: subsampling, and the hiding of early steps.

Every step uses b of n records and the mean of their gradients. A record is in the batch with probability p = b/n, and
the step satisfies C_p(G_mu), mu = 2 L/(b sigma) (Dong, Roth and Su). The comparison is between batches with and without
the record, which differ in a real record, so the sensitivity is 2 L against a null record too.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Self

from dpcalc.model import loss_class as loss
from dpcalc.model.quantities import Adjacency
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition, Hints
from dpcalc.notions.profiles import COMPOSED, Certificate
from dpcalc.numerics.floats import UNIT, down, ratio_up, up
from dpcalc.theorems.conditions import (
    BATCH_WITHIN,
    CONVEX_SMOOTH,
    GAUSSIAN,
    GAUSSIAN_NOISE,
    NO_CLIPPING,
    ONE_RELEASE,
    STEP_WITHIN,
    WHERE_BOUNDED,
)
from dpcalc.theorems.record import theorem
from dpcalc.theorems.sampled import pairs
from dpcalc.theorems.sampled.hidden_past import (
    Chain,
    Draws,
    Past,
    Plan,
    Search,
    log_grid,
    loss_variance,
    past_pair,
    sample_mu,
    shift_mu,
    split_certificate,
    use_cost,
)
from dpcalc.theorems.setting import CURVED_STEP, Setting

if TYPE_CHECKING:
    from collections.abc import Callable

    from dpcalc.notions.pld import Pair

_SAMPLED = "every step uses a fresh uniform batch of batch_size records, drawn without replacement"

_MOST_MU = 1e8  # no visible privacy is left at a larger mu
_LARGE_MU = 300.0  # a larger mu reveals which batches had the record, and the lattice of losses is coarse
_FARTHEST_MU = 1e90
_GROUP_MU = 20.0  # a larger mu reveals nearly every use of a group, and a chain is as good


class SampledSteps(Setting):
    """Steps on fresh batches."""

    @property
    def ratio(self) -> float:
        """mu = 2 L/(b sigma) of a step whose batch holds the record, rounded up."""
        return step_ratio(self.lipschitz, self.noise_std, self.batch_size)

    def step(self, mu: float) -> Pair:
        """Return the pair of a step with this mu if its batch has the record, or one of a group."""
        if self.group_size == 1:
            return sampled(mu, self.records, self.batch_size)
        from dpcalc.notions import pld

        draws = pld.Draws(self.batch_size, self.group_size, self.records, replacement=False)
        return pairs.drawn_pair(0.5 * mu, draws, Adjacency.REPLACE_ONE)

    @property
    def in_chain(self) -> bool:
        """Whether groups are chains of records: no batch without members is possible, or there is little noise."""
        return self.group_size > 1 and (self.group_size > self.records - self.batch_size or self.ratio > _GROUP_MU)

    def chained(self, of_one: Callable[[Self], Composition]) -> Composition:
        """Return a theorem's guarantee for the group as a chain of records, or if every step uses all members."""
        least = up(self.ratio * min(self.group_size, self.batch_size) * math.sqrt(self.steps), 4.0)
        chain = of_one(self.changed(group_size=1)).grouped(self.group_size)
        return Composition([(pairs.one_gaussian(least), 1)], hints=Hints(besides=chain))


class HiddenSteps(SampledSteps):
    """Such steps over convex smooth losses, with only the last iterate released."""

    @property
    def chain(self) -> Chain:
        """The steps as maps, uses and noise."""
        factor = loss.contraction(
            step_size=self.step_size, smoothness=self.smoothness, strong_convexity=self.strong_convexity
        )
        use = ratio_up(2.0 * self.lipschitz * self.step_size * (1.0 + UNIT), float(self.batch_size))
        return Chain(self.steps, factor, use, down(self.step_size * self.noise_std, 2.0), self.diameter)

    @property
    def search(self) -> Search:
        """The plans of the run; which early batches had the record may be public.

        A member of a group is in with at most the chance b/(n-k+1), whichever others are.
        """
        from fractions import Fraction

        rate = Fraction(min(self.batch_size, self.records), self.records - self.group_size + 1)
        any_of_them = min(1.0, self.group_size * float(rate))
        return Search(self.chain, Draws(self.group_size, rate), Past.TOLD, self.ratio, any_of_them)

    def planned(self, plan: Plan) -> Composition:
        """Return the guarantee of a plan; every plan gives one."""
        parts = [
            (past_pair(self.chain, plan, self.search.draws), 1),
            (self.step(sample_mu(self.ratio, plan.fraction)), plan.split),
            (self.step(self.ratio), plan.composed - plan.split),
        ]
        return Composition([part for part in parts if part[1]], certificate=lambda _: split_certificate(plan))


@theorem(
    "noisy_sgd.composition",
    title="Subsampled steps, composed",
    needs=("records", "batch_size", "steps", "lipschitz", "noise_std", "group_size?"),
    algorithms=("noisy-sgd", "noisy-sgd-released"),
    reference="dong2022",
    locator="subsampling without replacement and composition, by the law of the privacy loss",
    formula="C_{b/n}(G(2 L/(b sigma))) composed T times; k records: as sampled.fixed",
    conditions=(BATCH_WITHIN, GAUSSIAN_NOISE),
    assumes=(
        _SAMPLED, "each record's gradient has norm at most lipschitz (by clipping, for instance)", GAUSSIAN,
        "every iterate may be released",
    ),
    slack="the lattice of losses, some 1e-4 in ln delta",
    slow=True,
    public_sums=True,
)  # fmt: skip
def composition(run: SampledSteps) -> Composition:
    """Each step is a subsampled Gaussian, for any losses; all iterates may be public.

    >>> run = SampledSteps(records=10, batch_size=1, steps=1, lipschitz=1.0, noise_std=2.0)
    >>> round(math.exp(composition(run).log_delta(0.0).value), 6)  # (2 Phi(1/2) - 1)/10
    0.038292
    """
    if run.in_chain:
        return run.chained(composition)
    if run.group_size > 1:
        return Composition([(run.step(run.ratio), run.steps)])
    return Composition([taken(run.ratio, run.records, run.batch_size, run.steps)])


def steps_to_reach(run: SampledSteps, mu: float) -> float:
    """Return an estimate (no bound) of the number of steps whose composition has this GDP parameter."""
    single = use_cost(run.ratio, run.batch_size / run.records)
    return mu * mu / single if single > 0.0 else math.inf


def steps_to_hide(run: HiddenSteps) -> float:
    """Return an estimate (no bound) of the number of steps from which hiding early ones beats composition; inf for
    never."""
    chain, single = run.chain._replace(steps=10**15), use_cost(run.ratio, run.batch_size / run.records)
    if single <= 0.0:
        return math.inf
    costs = (shift_mu(chain, Plan(m, m, 1.0)) + math.sqrt(m * single) for m in log_grid(chain.steps - 1))
    return steps_to_reach(run, min(costs))


@theorem(
    "noisy_sgd.hidden",
    title="Subsampled steps with hidden iterates",
    needs=("records", "batch_size", "steps", "lipschitz", "noise_std", *CURVED_STEP, "diameter?", "group_size?"),
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="shifted interpolation with the same batches, split noise, the mean over earlier uses",
    formula="sum_z P(z) G(c^k z/(eta sigma sqrt(q (1 + c^2 + ... + c^(2j-2))))) with C_{b/n}(G(2 L/(b sigma))) "
    "composed k - j times and C_{b/n}(G(2 L/(b sigma sqrt(1-q)))) j times, z = min(D, (2 eta L/b) sum_i c^i h_i), "
    "h_i = 1 with probability b/n; k records: h_i of Bin(k, b/(n-k+1)), and the curve of a group for C",
    conditions=(BATCH_WITHIN, STEP_WITHIN, GAUSSIAN_NOISE),
    assumes=(_SAMPLED, CONVEX_SMOOTH, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE, NO_CLIPPING),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size"),
    steps_to_hide=steps_to_hide,
)
def hidden(run: HiddenSteps) -> Composition:
    """Before the last k steps the runs differ by the trace of earlier uses, and a share of the noise of these steps
    hides that.

    It is plain composition if hiding does not help.
    """
    if run.in_chain:
        return run.chained(hidden)
    plan = run.search.best()[1]
    return (
        composition(run).replacing(certificate=lambda _: Certificate(COMPOSED)) if plan is None else run.planned(plan)
    )


# --- one step ---------------------------------------------------------------------------------------------------------


def step_ratio(lipschitz: float, noise_std: float, batch_size: int) -> float:
    """Return mu = 2 L/(b sigma) of a step whose batch has the record, rounded up."""
    return ratio_up(2.0 * lipschitz, noise_std * batch_size * (1.0 - UNIT))


@functools.lru_cache(maxsize=64)
def sampled(mu: float, records: int, batch_size: int) -> Pair:
    """Return the dominating pair of one step, C_{b/n}(G_mu)."""
    from dpcalc.notions import pld

    rate = min(1.0, up(batch_size / records))
    if mu > _MOST_MU:
        log_rate = min(0.0, math.log(rate) + 4.0 * UNIT)
        return pld.from_curve(lambda e: e * 0.0 + log_rate)  # the batch is practically disclosed
    return pld.subsampled_gaussian(mu=max(mu, 1e-30), rate=rate)


def taken(mu: float, records: int, batch_size: int, steps: int) -> tuple[Pair, int]:
    """Return a dominating pair and its count, for ``steps`` steps.

    If mu is large it is the pair of all steps, with the batches that had the record public.
    """
    if not _LARGE_MU < mu < _FARTHEST_MU:
        return sampled(mu, records, batch_size), steps
    return _known_uses(mu, min(1.0, up(batch_size / records)), steps), 1


@functools.lru_cache(maxsize=64)
def _known_uses(mu: float, rate: float, steps: int) -> Pair:
    from dpcalc.notions import pld

    return pld.known_uses(mu=mu, rate=rate, steps=steps)


# --- approximations, no bounds ----------------------------------------------------------------------------------------


def clt_mu(*, mu: float, rate: float, steps: int) -> float:
    """Return the GDP parameter that the central limit theorem suggests for T steps: an approximation, no bound.

    ``mu`` is that of a step whose batch has the record, ``rate`` is b/n.
    """
    return math.sqrt(steps * loss_variance(mu, rate))


def likely_noise_std(
    *, records: int, batch_size: int, steps: int, lipschitz: float, epsilon: float, log_delta: float
) -> float:
    """Return about the noise that a composition needs, by the central limit theorem: a first guess, no bound."""
    whole = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)
    step = 2.0 * lipschitz / batch_size
    low, high, rate = step * 1e-3, step * math.sqrt(steps) / whole, batch_size / records
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        enough = clt_mu(mu=step / middle, rate=rate, steps=steps) <= whole
        low, high = (low, middle) if enough else (middle, high)
    return high
