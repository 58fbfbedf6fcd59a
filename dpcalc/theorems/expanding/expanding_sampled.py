"""Steps on fresh uniform batches on a bounded domain, of maps that may drive two runs apart."""

from __future__ import annotations

import math

from dpcalc.model.choices import LossClass
from dpcalc.model.run import Run
from dpcalc.notions.certificate import COMPOSED, Certificate
from dpcalc.notions.guarantee import Composition
from dpcalc.numerics.floats import up
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.conditions import BATCH_WITHIN, DOMAIN, GAUSSIAN, GAUSSIAN_NOISE, ONE_RELEASE
from dpcalc.theorems.expanding.expanding_maps import CLASS, EXPANDS, MILD, carried, carried_convex, grid, growth_of
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, lacking, theorem
from dpcalc.theorems.sampled import noisy_sgd
from dpcalc.theorems.setting import Setting


class SampledSteps(Setting):
    """Steps on fresh uniform batches on a bounded domain, of losses that are smooth or convex."""

    def carried(self, steps: int) -> float:
        """Return mu of the diameter hidden by the noise of so many steps, rounded up."""
        reach = quotient_up((self.diameter,), (self.step_size, self.noise_std))
        growth = growth_of(self.loss_class, self.step_size, self.smoothness, self.strong_convexity)
        ways = [] if growth is None else [carried(reach, growth, steps)]
        if self.loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH):
            ways.append(carried_convex(reach, quotient_up((2.0, self.lipschitz), (self.noise_std,)), steps))
        return min(ways)


def _hides_sampled(run: Run) -> Obstacle | None:
    if run.loss_class == LossClass.LIPSCHITZ:
        return NotNeeded("is for smooth or convex losses", "of merely Lipschitz ones expanding.domain speaks")
    return lacking(run, "smoothness") if run.loss_class == LossClass.SMOOTH and run.smoothness is None else None


def steps_to_hide(run: SampledSteps) -> float:
    """Return about the number of steps from which hiding the early ones beats composition; no bound. inf for never."""
    composed = run.part(noisy_sgd.SampledSteps)
    single = noisy_sgd.use_cost(composed.ratio, run.batch_size / run.records)
    return noisy_sgd.steps_to_reach(composed, min(run.carried(m) + math.sqrt(m * single) for m in grid()))


@theorem(
    "expanding.sampled",
    title="Subsampled steps with hidden iterates, maps that may expand",
    needs=(
        "records", "batch_size", "steps", "lipschitz", "noise_std", "step_size", "diameter", "loss_class",
        "smoothness?", "strong_convexity?",
    ),
    algorithms=("noisy-sgd",),
    reference="dpcalc",
    locator="as noisy_sgd.hidden, with the shift recursion of the loss class",
    formula="G(sqrt(A_m/q)) with C_{b/n}(G(2 L/(b sigma sqrt(1-q)))) composed m times, A_m as in expanding.domain",
    conditions=(
        BATCH_WITHIN, GAUSSIAN_NOISE, EXPANDS, MILD, Condition("loss_class is smooth or convex", _hides_sampled),
    ),
    assumes=("every step uses a fresh uniform batch of batch_size records, drawn without replacement", CLASS, DOMAIN,
             GAUSSIAN, ONE_RELEASE),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size"),
    steps_to_hide=steps_to_hide,
)  # fmt: skip
def sampled(run: SampledSteps) -> Composition:
    """What was done before the last m steps is at most the diameter away, and a share of their noise hides that.

    It is the plain composition where hiding does not help.
    """
    from dpcalc.notions import pld

    mu = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size)
    plan = best_split(run)
    if plan is None:
        composed = [noisy_sgd.taken(mu, run.records, run.batch_size, run.steps)]
        return Composition(composed, certificate=lambda _: Certificate(COMPOSED))
    hidden = up(run.carried(plan.composed) / math.sqrt(plan.fraction), 8.0)
    step = noisy_sgd.sampled(noisy_sgd.sample_mu(mu, plan.fraction), run.records, run.batch_size)
    parts = [(pld.gaussian(mu=max(hidden, 1e-30)), 1), (step, plan.composed)]
    return Composition(parts, certificate=lambda _: noisy_sgd.split_certificate(plan))


def best_split(run: SampledSteps) -> noisy_sgd.Plan | None:
    """Return the plan that is best by a central limit approximation of the uses; None for the plain composition."""
    mu, rate = noisy_sgd.step_ratio(run.lipschitz, run.noise_std, run.batch_size), run.batch_size / run.records
    single = noisy_sgd.use_cost(mu, rate)
    least, best = run.steps * single, None
    for steps in grid():
        if steps >= run.steps:
            break
        whole = run.carried(steps)
        balanced = whole / (whole + math.sqrt(steps * single))
        for fraction in (balanced, 0.6 * balanced, 0.3 * balanced):
            if not 1e-12 < fraction < 1.0 - 1e-12 or whole > 1e7 * math.sqrt(fraction):
                continue
            cost = whole * whole / fraction + steps * noisy_sgd.use_cost(mu / math.sqrt(1.0 - fraction), rate)
            if cost < least:
                least, best = cost, noisy_sgd.Plan(steps, steps, fraction)
    return best
