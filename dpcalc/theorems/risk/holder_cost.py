"""The cost of privacy for Hölder losses: excess population risk of DP-SGD with noise on the output or the gradients.

Records are independent draws from one law, losses are >= 0, and the domain lies in a ball of radius R around 0 that
holds a minimiser of the risk R(w) = E l(w; z). The run starts at w_1 = 0, and the model is the average of the iterates
before each step, (w_1 + ... + w_T)/T. Its excess risk is over the risk of that minimiser. The noise is the least that
keeps the budget, and the step size is the best one if none is given.
"""

from __future__ import annotations

from dpcalc.model.run import Run
from dpcalc.notions.conversions import Risk
from dpcalc.numerics.floats import up
from dpcalc.theorems.holder import dp_sgd
from dpcalc.theorems.record import Condition, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.risk.holder_sgd import LikelyRisk, PrivateSgd, expected_risk
from dpcalc.theorems.risk.sgd import Sgd

# --- conditions -------------------------------------------------------------------------------------------------------


def _step_if_given(run: Run) -> Obstacle | None:
    return dp_sgd.step_fits(run) if run.step_size is not None else None


_GRADIENT = requires(
    "a bound on the gradient: lipschitz or gradient_at_zero",
    lambda run: run.lipschitz is not None or run.gradient_at_zero is not None,
    Unmet("knows no bound on the gradient", "give --lipschitz, or --gradient-at-zero"),
)
_NO_L2 = requires(
    "strong_convexity = 0",
    lambda run: not run.strong_convexity,
    Unmet("is for losses without an l2 term", "leave out --strong-convexity", ("strong_convexity",)),
)
_STEP = Condition("step_size <= 2/holder_constant where holder_exponent = 1", _step_if_given)
_REQUIRES = (_GRADIENT, _NO_L2, _STEP)
_ASSUMES = (
    "records are independent draws from one law",
    "every loss is >= 0 on the domain, convex, and its gradient Hölder continuous on all of R^d",
    "the domain is convex, holds 0 and the minimiser compared with, and lies in the ball of the radius given",
    "steps from w_1 = 0 with one step size; the average (w_1 + ... + w_T)/T of the iterates before each step is used",
)
_ONE = "every step draws one record, uniformly and with replacement"
_ON_OUTPUT = (*_ASSUMES, _ONE, "noise on the average, which is not projected")
_ON_GRADIENT = (*_ASSUMES, _ONE, "noise in every step")
_V1 = "gap of Bousquet, Klochkov and Zhivotovskiy 2020, Theorem 4, with Theorem 7 of Wang, Lei, Ying and Zhang 2022"
_V2 = "the same gap with smaller constants, and the exact quantile of hits"
_V3 = "the same gap with each record's own number of hits"
_OUTPUT_TAIL = "R^2/(2 eta T) + eta G^2/2 + G sigma z + L (sigma^2 chi^2_d)^((1+alpha)/2)/(1+alpha) + "
_GRADIENT_TAIL = "R^2/(2 eta T) + eta G^2/2 + (eta sigma^2/(2T)) chi^2_(Td) + sigma (2R + eta G) sqrt(2 l/T) + "
_SAMPLING = "min(2B, 4GR) sqrt(l/(2T)) + B sqrt(l/(2n)), l = ln({}/gamma)"


_GRADIENT_EXPECTED = (
    "records", "steps", "dimension", "radius", "holder_exponent", "holder_constant", "epsilon", "log_delta",
    "lipschitz?", "gradient_at_zero?", "step_size?",
)  # fmt: skip


@theorem(
    "holder_cost.gradient_expected",
    title="Expected excess risk, noise on every gradient",
    needs=_GRADIENT_EXPECTED,
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator="regret of projected SGD and stability in expectation",
    formula="R^2/(2 eta T) + (eta/2)(G^2 + d sigma^2) + G (eta G (T-1)/n + (2/3) a sqrt(T))",
    conditions=_REQUIRES,
    assumes=_ON_GRADIENT,
    slow=True,
)
def gradient_expected(run: PrivateSgd) -> Risk:
    """The expected excess risk of SGD with the least noise in every step that keeps the budget.

    >>> run = PrivateSgd(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, epsilon=2.0, log_delta=-9.210340371976182)
    >>> round(gradient_expected(run).excess_risk, 6)
    0.145084
    """
    return run.with_step_noise(lambda eta, sigma: expected_risk(run.sgd, eta, sigma))


@theorem(
    "holder_cost.output_expected",
    title="Expected excess risk, noise on the output",
    needs=_GRADIENT_EXPECTED,
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator="regret of projected SGD, stability in expectation, and noise of mean zero",
    formula="R^2/(2 eta T) + eta G^2/2 + G (eta G (T-1)/n + (2/3) a sqrt(T)) + L (d sigma^2)^((1+alpha)/2)/(1+alpha)",
    conditions=_REQUIRES,
    assumes=_ON_OUTPUT,
    slow=True,
)
def output_expected(run: PrivateSgd) -> Risk:
    """The expected excess risk of the average iterate of SGD with the least noise on it that keeps the budget.

    >>> run = PrivateSgd(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, epsilon=2.0, log_delta=-9.210340371976182)
    >>> round(output_expected(run).excess_risk, 9)
    0.130031714
    """
    sgd = run.sgd
    return run.with_output_noise(
        lambda eta, sigma: up(expected_risk(sgd, eta, 0.0) + sgd.output_noise_expected(sigma), 2.0)
    )


_GRADIENT_PUBLISHED = (
    "records", "steps", "dimension", "radius", "holder_exponent", "holder_constant", "loss_at_zero",
    "failure_probability", "epsilon", "log_delta", "lipschitz?", "gradient_at_zero?", "step_size?",
)  # fmt: skip


@theorem(
    "holder_cost.gradient_published",
    title="Excess risk with high probability, noise on every gradient, published constants",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-gradient",),
    reference="bousquet2020",
    locator=_V1,
    formula="2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), g = G Delta, + "
    + _GRADIENT_TAIL
    + _SAMPLING.format(7),
    conditions=_REQUIRES,
    assumes=_ON_GRADIENT,
    slow=True,
)
def gradient_published(run: LikelyRisk) -> Risk:
    """The gap with the published constants: above the range of the losses unless there are very many records.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(gradient_published(run).excess_risk, 6)
    41.111053
    """
    return run.likely_with_step_noise(Sgd.published_gap)


@theorem(
    "holder_cost.gradient_uniform",
    title="Excess risk with high probability, noise on every gradient, one stability for all records",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator=_V2,
    formula="2 g + B sqrt(l/(2n)) + 2 g ceil(log2 n) Q, g = G Delta*(k), + " + _GRADIENT_TAIL + _SAMPLING.format(7),
    conditions=_REQUIRES,
    assumes=_ON_GRADIENT,
    slow=True,
)
def gradient_uniform(run: LikelyRisk) -> Risk:
    """The gap with the constants that the proof allows, and a number of hits that all records stay below with high
    probability.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(gradient_uniform(run).excess_risk, 6)
    3.446129
    """
    return run.likely_with_step_noise(Sgd.uniform_gap)


@theorem(
    "holder_cost.gradient_likely",
    title="Excess risk with high probability, noise on every gradient",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-gradient",),
    reference="dpcalc",
    locator=_V3,
    formula="2 G_1 + B sqrt(l/(2n)) + ceil(log2 n) Q G_2 + " + _GRADIENT_TAIL + _SAMPLING.format(7),
    conditions=_REQUIRES,
    assumes=_ON_GRADIENT,
    slow=True,
)
def gradient_likely(run: LikelyRisk) -> Risk:
    """The gap with each record's own number of hits, or the uniform gap if that is less.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(gradient_likely(run).excess_risk, 6)
    2.16983
    """
    return run.likely_with_step_noise(Sgd.least_gap)


@theorem(
    "holder_cost.output_published",
    title="Excess risk with high probability, noise on the output, published constants",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-output",),
    reference="bousquet2020",
    locator=_V1,
    formula="2 g + e (24 sqrt(2) p g ceil(log2 n) + 4 B sqrt(p/n)), g = G Delta, + "
    + _OUTPUT_TAIL
    + _SAMPLING.format(6),
    conditions=_REQUIRES,
    assumes=_ON_OUTPUT,
    slow=True,
)
def output_published(run: LikelyRisk) -> Risk:
    """The gap with the published constants: above the range of the losses unless there are very many records.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(output_published(run).excess_risk, 9)
    39.555066488
    """
    return run.likely_with_output_noise(Sgd.published_gap)


@theorem(
    "holder_cost.output_uniform",
    title="Excess risk with high probability, noise on the output, one stability for all records",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator=_V2,
    formula="2 g + B sqrt(l/(2n)) + 2 g ceil(log2 n) Q, g = G Delta*(k), + " + _OUTPUT_TAIL + _SAMPLING.format(6),
    conditions=_REQUIRES,
    assumes=_ON_OUTPUT,
    slow=True,
)
def output_uniform(run: LikelyRisk) -> Risk:
    """The gap with the constants that the proof allows, and a number of hits that all records stay below with high
    probability.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(output_uniform(run).excess_risk, 9)
    2.867896598
    """
    return run.likely_with_output_noise(Sgd.uniform_gap)


@theorem(
    "holder_cost.output_likely",
    title="Excess risk with high probability, noise on the output",
    needs=_GRADIENT_PUBLISHED,
    algorithms=("dp-sgd-output",),
    reference="dpcalc",
    locator=_V3,
    formula="2 G_1 + B sqrt(l/(2n)) + ceil(log2 n) Q G_2 + " + _OUTPUT_TAIL + _SAMPLING.format(6),
    conditions=_REQUIRES,
    assumes=_ON_OUTPUT,
    slow=True,
)
def output_likely(run: LikelyRisk) -> Risk:
    """The gap with each record's own number of hits, or the uniform gap if that is less.

    >>> run = LikelyRisk(records=200, steps=200, dimension=3, radius=1.0, holder_exponent=1.0, holder_constant=0.25,
    ...                  gradient_at_zero=0.5, loss_at_zero=0.75, failure_probability=0.1, epsilon=2.0,
    ...                  log_delta=-9.210340371976182)
    >>> round(output_likely(run).excess_risk, 9)
    1.811165244
    """
    return run.likely_with_output_noise(Sgd.least_gap)
