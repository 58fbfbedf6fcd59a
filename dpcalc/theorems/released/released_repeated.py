"""Passes of which one (epsilon, delta) is all that is known, composed: what composing says without looking inside."""

from __future__ import annotations

import math

from dpcalc.notions import gaussian, optimal_composition
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.logspace import log_add_exp
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.released.released import composed
from dpcalc.theorems.setting import Setting

EACH_PRIVATE = "every pass is (epoch_epsilon, epoch_delta)-private, whatever came before it"

_SMALLEST, _MOST = 1e-290, 1e150
"""An epsilon of a pass that stands for what is less, and a number of deviations that stands for what is more."""


@theorem(
    "released.optimal",
    title="Optimal composition of one (epsilon, delta)",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    kind="exact",
    algorithms=("repeated",),
    reference="kairouz2015",
    locator="Theorem 3.3, in closed form",
    formula="delta = 1 - (1 - delta_0)^E (1 - P[Bin(E, p) >= k] + e^eps P[Bin(E, 1-p) >= k]), p = 1/(1 + e^-eps_0)",
    assumes=(EACH_PRIVATE,),
)
def optimal(run: Setting) -> Profile:
    """What any number of passes costs if one (epsilon, delta) is all that is known of each; no less is true of all."""
    epsilon0 = up(run.epoch_epsilon)
    log_delta0 = up(math.log(run.epoch_delta), 2.0) if run.epoch_delta > 0.0 else -math.inf
    return Profile(
        lambda epsilon: optimal_composition.log_delta(
            epsilon0=epsilon0, log_delta0=log_delta0, count=run.epochs, epsilon=epsilon
        )
    )


@theorem(
    "released.pure",
    title="Pure privacy, composed as Gaussian",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    algorithms=("repeated",),
    reference="dong2022",
    locator="pure privacy is mu-GDP, composed",
    formula="mu = sqrt(E) 2 Phi^-1(e^eps_0/(1 + e^eps_0))",
    conditions=(
        requires(
            "epoch_delta = 0",
            lambda run: run.epoch_delta == 0.0,
            Unmet("a single (epsilon, delta) with delta > 0 is mu-GDP for no mu", "--epoch-delta 0, if it is"),
        ),
    ),
    assumes=("every pass is epoch_epsilon-private, whatever came before it",),
)
def pure(run: Setting) -> Gdp:
    """Every pure mechanism is Gaussian-private for the least mu whose trade-off curve it cannot beat."""
    return Gdp(composed(gaussian.pure_mu(epsilon=run.epoch_epsilon), run.epochs))


@theorem(
    "released.advanced",
    title="Advanced composition of one (epsilon, delta)",
    needs=("epochs", "epoch_epsilon", "epoch_delta"),
    algorithms=("repeated",),
    reference="dwork2010",
    locator="Theorem III.3",
    formula="delta(eps) = E delta_0 + exp(-x^2/(2 E eps_0^2)), x = eps - E eps_0 (e^eps_0 - 1) >= 0",
    assumes=(EACH_PRIVATE,),
    implied_by="released.optimal",
)
def advanced(run: Setting) -> Profile:
    """The closed form that is usually quoted, eps = sqrt(2 E ln(1/delta')) eps_0 + E eps_0 (e^eps_0 - 1) at
    delta = E delta_0 + delta'; true, and never better than the optimal composition.

    >>> run = Setting(epochs=100, epoch_epsilon=0.1, epoch_delta=0.0)
    >>> round(advanced(run).profile(5.0), 9)
    -7.794500197
    """
    epsilon0 = max(up(run.epoch_epsilon), _SMALLEST)
    drift = up(run.epochs * epsilon0 * math.expm1(min(epsilon0, 700.0)), 8.0)
    spread = up(epsilon0 * math.sqrt(2.0 * run.epochs), 4.0)
    # Each logarithm by itself: where they cancel, their errors do not.
    log_share = up(up(math.log(run.epoch_delta), 2.0) + up(math.log(run.epochs), 2.0)) if run.epoch_delta else -math.inf

    def profile(epsilon: float) -> float:
        deviations = min(down(down(down(epsilon) - drift) / spread, 2.0), _MOST)
        if deviations <= 0.0:
            return 0.0
        total = log_add_exp(log_share, -down(deviations * deviations, 2.0))
        return min(0.0, up(total, 8.0) + 2.0**-50)

    return Profile(profile)
