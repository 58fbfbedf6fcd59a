"""Steps on fresh uniform batches drawn without replacement: subsampling, and the hiding of early steps.

Every step uses b of n records and the mean of their gradients. A record is in the batch with probability p = b/n, and
the step satisfies C_p(G_mu), mu = 2 L/(b sigma) (Dong, Roth and Su). Which record was replaced by which is asked of
batches with and without it, which differ in a real record: the sensitivity is 2 L against a null record, too.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.model import loss_class as loss
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition
from dpcalc.notions.profiles import COMPOSED, SPLIT, Certificate
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
from dpcalc.theorems.setting import CURVED_STEP, Setting

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair

_SAMPLED = "every step uses a fresh uniform batch of batch_size records, drawn without replacement"

_MOST_MU = 1e8  # past this one a Gaussian mechanism hides nothing that shows
_LARGE_MU = 300.0  # past this one it shows which batches held the record, and the lattice of losses is coarse
_FARTHEST_MU = 1e90


class SampledSteps(Setting):
    """Steps on batches that are drawn afresh."""

    @property
    def ratio(self) -> float:
        """mu = 2 L/(b sigma) of a step whose batch holds the record, rounded up."""
        return step_ratio(self.lipschitz, self.noise_std, self.batch_size)

    def step(self, mu: float) -> Pair:
        """Return the pair of laws of a step whose mu is this one where its batch holds the record."""
        return sampled(mu, self.records, self.batch_size)


class HiddenSteps(SampledSteps):
    """Such steps over convex smooth losses, of which only the last iterate is seen."""

    @property
    def chain(self) -> Chain:
        """The steps as maps, uses and noise."""
        factor = loss.contraction(
            step_size=self.step_size, smoothness=self.smoothness, strong_convexity=self.strong_convexity
        )
        use = ratio_up(2.0 * self.lipschitz * self.step_size * (1.0 + UNIT), float(self.batch_size))
        return Chain(self.steps, factor, use, down(self.step_size * self.noise_std, 2.0), self.diameter)


class Chain(NamedTuple):
    """Steps that contract, move by a use of the record, and add noise.

    Attributes:
        steps: T.
        factor: c, Lipschitz factor of a step's map, in [0, 1].
        use: how far one use of the record moves a step, eta 2 L/b, rounded up.
        noise: eta sigma, rounded down.
        diameter: D, inf where unbounded.
    """

    steps: int
    factor: float
    use: float
    noise: float
    diameter: float


class Plan(NamedTuple):
    """Compose the last ``composed`` steps; in the last ``split`` of them the share ``fraction`` of the noise's variance
    hides what was done before, and the rest the step's own use.
    """

    composed: int
    split: int
    fraction: float


@theorem(
    "noisy_sgd.composition",
    title="Subsampled steps, composed",
    needs=("records", "batch_size", "steps", "lipschitz", "noise_std"),
    algorithms=("noisy-sgd", "noisy-sgd-released"),
    reference="dong2022",
    locator="subsampling without replacement and composition, by the law of the privacy loss",
    formula="C_{b/n}(G(2 L/(b sigma))) composed T times",
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
    """Each step is a subsampled Gaussian, whatever the losses; all iterates may be seen.

    >>> run = SampledSteps(records=10, batch_size=1, steps=1, lipschitz=1.0, noise_std=2.0)
    >>> round(math.exp(composition(run).log_delta(0.0).value), 6)  # (2 Phi(1/2) - 1)/10
    0.038292
    """
    return Composition([taken(run.ratio, run.records, run.batch_size, run.steps)])


def steps_to_reach(run: SampledSteps, mu: float) -> float:
    """Return about the number of steps whose composition is as bad as this GDP parameter; no bound."""
    single = use_cost(run.ratio, run.batch_size / run.records)
    return mu * mu / single if single > 0.0 else math.inf


def steps_to_hide(run: HiddenSteps) -> float:
    """Return about the number of steps from which hiding the early ones beats composition; no bound. inf for never."""
    chain, single = run.chain._replace(steps=10**15), use_cost(run.ratio, run.batch_size / run.records)
    if single <= 0.0:
        return math.inf
    costs = (shift_mu(chain, Plan(m, m, 1.0)) + math.sqrt(m * single) for m in _log_grid(chain.steps - 1))
    return steps_to_reach(run, min(costs))


@theorem(
    "noisy_sgd.hidden",
    title="Subsampled steps with hidden iterates",
    needs=("records", "batch_size", "steps", "lipschitz", "noise_std", *CURVED_STEP, "diameter?"),
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="shifted interpolation with the same batches, split noise",
    formula="G(c^k z/(eta sigma sqrt(q (1 + c^2 + ... + c^(2j-2))))) with C_{b/n}(G(2 L/(b sigma))) composed k - j "
    "times and C_{b/n}(G(2 L/(b sigma sqrt(1-q)))) j times, z = min(D, (2 eta L/b)(1 + c + ... + c^(T-k-1)))",
    conditions=(BATCH_WITHIN, STEP_WITHIN, GAUSSIAN_NOISE),
    assumes=(_SAMPLED, CONVEX_SMOOTH, GAUSSIAN, WHERE_BOUNDED, ONE_RELEASE, NO_CLIPPING),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size"),
    steps_to_hide=steps_to_hide,
)
def hidden(run: HiddenSteps) -> Composition:
    """What was done before the last k steps is at most z away, and a share of their noise hides that.

    It is the plain composition where hiding does not help.
    """
    from dpcalc.notions import pld

    chain, mu = run.chain, run.ratio
    plan = best_plan(chain, mu, run.batch_size / run.records)
    if plan is None or mu > _MOST_MU or (shift := shift_mu(chain, plan)) > _MOST_MU:
        return composition(run).replacing(certificate=lambda _: Certificate(COMPOSED))
    parts = [
        (pld.gaussian(mu=max(shift, 1e-30)), 1),
        (run.step(sample_mu(mu, plan.fraction)), plan.split),
        (run.step(mu), plan.composed - plan.split),
    ]
    return Composition([(pair, count) for pair, count in parts if count], certificate=lambda _: split_certificate(plan))


def split_certificate(plan: Plan) -> Certificate:
    """Return what a plan is: the theorem proves a bound for every one."""
    return Certificate(SPLIT, values=plan._asdict())


# --- one step ---------------------------------------------------------------------------------------------------------


def step_ratio(lipschitz: float, noise_std: float, batch_size: int) -> float:
    """Return mu = 2 L/(b sigma) of a step whose batch holds the record, rounded up."""
    return ratio_up(2.0 * lipschitz, noise_std * batch_size * (1.0 - UNIT))


@functools.lru_cache(maxsize=64)
def sampled(mu: float, records: int, batch_size: int) -> Pair:
    """Return the pair of laws of one step, C_{b/n}(G_mu)."""
    from dpcalc.notions import pld

    rate = min(1.0, up(batch_size / records))
    if mu > _MOST_MU:
        log_rate = min(0.0, math.log(rate) + 4.0 * UNIT)
        return pld.from_curve(lambda e: e * 0.0 + log_rate)  # who was in the batch is all but disclosed
    return pld.subsampled_gaussian(mu=max(mu, 1e-30), rate=rate)


def taken(mu: float, records: int, batch_size: int, steps: int) -> tuple[Pair, int]:
    """Return a pair of laws and how often it is composed, for so many steps.

    Where mu is large it is the pair of all of them, where it is known which batches held the record.
    """
    if not _LARGE_MU < mu < _FARTHEST_MU:
        return sampled(mu, records, batch_size), steps
    return _known_uses(mu, min(1.0, up(batch_size / records)), steps), 1


@functools.lru_cache(maxsize=64)
def _known_uses(mu: float, rate: float, steps: int) -> Pair:
    from dpcalc.notions import pld

    return pld.known_uses(mu=mu, rate=rate, steps=steps)


def sample_mu(mu: float, fraction: float) -> float:
    """Return mu of a step where only the share 1 - fraction of the noise's variance hides its own use, rounded up."""
    return up(mu / math.sqrt(1.0 - fraction), 4.0)


# --- the hiding of early steps ----------------------------------------------------------------------------------------


def shift_mu(chain: Chain, plan: Plan) -> float:
    """Return the GDP parameter of hiding what was done before the steps that a plan composes, rounded up."""
    done, factor = chain.steps - plan.composed, chain.factor
    apart = min(chain.diameter, up(chain.use * _geometric(factor, done), 8.0)) if done else 0.0
    if apart == 0.0:
        return 0.0
    log_shrunk = max(-745.0, plan.composed * math.log(factor)) if factor > 0.0 else -745.0
    kept = math.exp(log_shrunk) * (1.0 + UNIT * (8.0 + 2.0 * abs(log_shrunk)))
    # _geometric is rounded up by at most 64 units; what is divided by must not be.
    squared = factor * factor * (1.0 - 2.0 * UNIT) if factor < 1.0 else 1.0
    spread = _geometric(squared, plan.split) * (1.0 - 256.0 * UNIT)
    return up(apart * kept / (chain.noise * math.sqrt(plan.fraction * max(1.0, spread))), 16.0)


def _geometric(factor: float, terms: int) -> float:
    """Return 1 + c + ... + c^(terms-1), within 64 units of roundoff and above."""
    if factor >= 1.0:
        return float(terms) * (1.0 + 2.0 * UNIT)
    if factor == 0.0:
        return 1.0
    rate = -math.log(factor)
    if rate * terms < 1e-8:
        return min(float(terms), terms * (1.0 - 0.5 * rate * (terms - 1) + (rate * terms) ** 2)) * (1.0 + 32.0 * UNIT)
    return min(float(terms), math.expm1(-rate * terms) / math.expm1(-rate) * (1.0 + 48.0 * UNIT))


def best_plan(chain: Chain, mu: float, rate: float) -> Plan | None:
    """Return the plan that is best by a central limit approximation of the uses; None for the plain composition."""
    if chain.steps < 2 or (chain.factor >= 1.0 and math.isinf(chain.diameter) and mu == 0.0):
        return None
    single = use_cost(mu, rate)
    least, best = chain.steps * single, None
    for composed in _log_grid(chain.steps - 1):
        # What a plan costs at least: splitting all of the steps leaves the least shift, and no share is above 1.
        if _cost_floor(shift_mu(chain, Plan(composed, composed, 1.0)), composed, 0, single) > least:
            continue
        for split in _log_grid(composed):
            whole = shift_mu(chain, Plan(composed, split, 1.0))
            if _cost_floor(whole, composed, split, single) > least:
                continue
            # The least of whole^2/q + j v/(1 - q) for v the variance of a step, which grows faster where mu is large.
            balanced = whole / (whole + math.sqrt(split * single)) if whole else 0.5
            for fraction in (balanced, 0.6 * balanced, 0.3 * balanced):
                if not 1e-12 < fraction < 1.0 - 1e-12:
                    continue
                cost = whole * whole / fraction + (composed - split) * single
                cost += split * use_cost(mu / math.sqrt(1.0 - fraction), rate)
                if cost < least:
                    least, best = cost, Plan(composed, split, fraction)
    return best


def _cost_floor(whole: float, composed: int, split: int, single: float) -> float:
    """Return a little less than the least cost of a plan over all shares: a use costs the more, the larger its mu^2.

    That is (whole + sqrt(j v))^2 for the j steps that are split, and v for each other one.
    """
    reach = whole + math.sqrt(split * single)
    return ((composed - split) * single + reach * reach) * (1.0 - 1e-6)  # inf, not an error, where it overflows


def _log_grid(most: int) -> list[int]:
    """Return whole numbers from 1 to ``most``, some ten a decade, the last among them."""
    count = max(1, round(12 * math.log10(most))) if most > 1 else 0
    return sorted({*(round(most ** (j / count)) for j in range(count)), most}) if count else [1]


def use_cost(mu: float, rate: float) -> float:
    """Return what a use costs in the choice of a plan: the variance of its loss, where that means anything."""
    return min(_variance(mu, rate), mu * mu)


def _variance(mu: float, rate: float) -> float:
    """Return about the variance of one step's privacy loss, as Dong, Roth and Su's central limit theorem has it."""
    square = mu * mu
    if square > 600.0:
        return math.inf
    if square < 1e-4:
        return rate * rate * square

    def normal(x: float) -> float:
        return 0.5 * math.erfc(-x * math.sqrt(0.5))

    return 2.0 * rate * rate * (math.exp(square) * normal(1.5 * mu) + 3.0 * normal(-0.5 * mu) - 2.0)


# --- approximations, no bounds ----------------------------------------------------------------------------------------


def clt_mu(*, mu: float, rate: float, steps: int) -> float:
    """Return the GDP parameter that the central limit theorem suggests for T steps; an approximation, no bound.

    ``mu`` is that of a step whose batch holds the record, ``rate`` is b/n.
    """
    return math.sqrt(steps * _variance(mu, rate))


def likely_noise_std(
    *, records: int, batch_size: int, steps: int, lipschitz: float, epsilon: float, log_delta: float
) -> float:
    """Return about the noise that a composition needs, by the central limit theorem: where to look, no bound."""
    whole = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta)
    step = 2.0 * lipschitz / batch_size
    low, high, rate = step * 1e-3, step * math.sqrt(steps) / whole, batch_size / records
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        enough = clt_mu(mu=step / middle, rate=rate, steps=steps) <= whole
        low, high = (low, middle) if enough else (middle, high)
    return high
