"""The cost of privacy for one pass: excess risk of noisy projected SGD (Feldman, Mironov, Talwar and Thakurta 2018).

Records are drawn independently from a law P, losses are convex and L-Lipschitz on a domain inside a ball of radius R,
and the risk is F(w) = E_P f(w, x). By `averaging`, c consecutive iterates of a pass have on average an excess risk of
at most

    |w_first - w*|^2/(2 eta c) + eta G^2/2,

and a run that ends at a uniformly random one of them has that risk. The gradient at the last of them is never taken.
From 0, all n + 1 iterates count and |w_0 - w*| <= R. Neighbours differ in one replaced record, which moves its gradient
by at most 2L.

Any point of the domain has an excess risk of at most 2RL, so a larger bound is vacuous.
"""

from __future__ import annotations

from dpcalc.notions.risk import NO_BOUND, Risk
from dpcalc.numerics.floats import up
from dpcalc.numerics.quotients import quotient_up
from dpcalc.theorems.conditions import GAUSSIAN
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.risk.averaging import CLASSIC_RANGE, Budget, OnBall

PAPER = "feldman2018"
SAMPLED = "records are independent draws from one law; excess risk is that of their mean loss under the law"
BALL = "every loss is convex and Lipschitz on a closed convex domain inside a ball of the given radius about 0"
CENTRE = "the domain holds 0, where the run starts"
LOCAL = "(epsilon, delta) holds even against an observer of the record's own noisy gradient"
CLASSIC = (
    "The paper uses the classic noise for every epsilon; it gives (epsilon, delta) up to an epsilon_max(delta) only, "
    "8.42 at delta = 1e-5. The constant 4 may be 2: w_1 is within 2R of the minimiser."
)
STOPPED = (SAMPLED, BALL, GAUSSIAN, "the iterate after a uniformly random number 1..n of steps is released")


# --- conditions -------------------------------------------------------------------------------------------------------


WITHIN_PASS = requires(
    "steps <= records, each used once",
    lambda run: run.records is None or run.steps is None or run.steps <= run.records,
    lambda run: Unmet(
        f"{run.steps} steps are more than one pass over {run.records} records", f"use --steps up to {run.records}"
    ),
)


# --- settings ---------------------------------------------------------------------------------------------------------


# --- any run ----------------------------------------------------------------------------------------------------------


@theorem(
    "utility.average",
    title="Noisy projected SGD stopped at a random step, any noise and step size",
    needs=("radius", "lipschitz", "dimension", "noise_std", "step_size", "steps"),
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 28, for every step size",
    formula="2 R^2/(eta T) + eta (L^2 + d sigma^2)/2",
    conditions=(WITHIN_PASS,),
    assumes=(*STOPPED, "any start in the domain"),
    erratum="The paper prints w + eta G in the update; the sign is minus.",
)
def average(run: OnBall) -> Risk:
    """The expected excess risk of a uniformly random iterate has two parts: the distance of the start over the time,
    and the noise times the step size.

    >>> run = OnBall(radius=1.0, lipschitz=1.0, dimension=10, noise_std=1.0, step_size=0.01, steps=10000)
    >>> round(average(run).excess_risk, 12)
    0.075
    """
    norm = run.noisy_norm(run.noise_std)
    start = quotient_up((2.0, run.radius, run.radius), (run.step_size, run.steps), 2.0)
    noise = quotient_up((0.5, run.step_size, norm, norm), (), 4.0)
    return Risk(up(start + noise, 2.0), run.noise_std, run.step_size, run.steps)


@theorem(
    "utility.average_published",
    title="Noisy projected SGD stopped at a random step, as printed",
    needs=("radius", "lipschitz", "dimension", "noise_std", "steps"),
    kind="published",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 28",
    formula="4 R sqrt(L^2 + d sigma^2)/sqrt(T) at eta = 2R/sqrt(T (L^2 + d sigma^2))",
    conditions=(WITHIN_PASS,),
    assumes=(*STOPPED, "any start in the domain"),
    erratum="True; the constant 2 is enough at the same step size, which utility.average gives.",
)
def average_published(run: OnBall) -> Risk:
    """The paper's bound at its best step size.

    It is twice as large as needed.

    >>> run = OnBall(radius=1.0, lipschitz=1.0, dimension=1, noise_std=0.0, steps=100)
    >>> round(average_published(run).excess_risk, 12)
    0.4
    """
    return run.averaged(run.noise_std, run.steps, constant=4.0, factor=2.0)._replace(steps=run.steps)


# --- a local budget, random stop --------------------------------------------------------------------------------------


@theorem(
    "utility.stop",
    title="Random stop at the exact noise",
    needs=("records", "dimension", "lipschitz", "radius", "epsilon", "log_delta"),
    algorithms=("stop", "local"),
    reference=PAPER,
    locator="Theorem 29, with the exact Gaussian noise and the constant of its proof",
    formula="2 R G/sqrt(n), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), eta = 2R/(G sqrt(n))",
    assumes=(*STOPPED, "any start in the domain", LOCAL),
)
def stop(run: Budget) -> Risk:
    """One pass in which every single message is private costs about sqrt(d)/(eps sqrt(n)), also without smoothness.

    >>> run = Budget(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0, log_delta=-11.512925464970229)
    >>> round(stop(run).excess_risk, 12)
    0.472315358966
    """
    return run.averaged(run.exact_noise, run.records, constant=2.0, factor=2.0)


@theorem(
    "utility.stop_from_centre",
    title="Random stop at the exact noise, from the centre",
    needs=("records", "dimension", "lipschitz", "radius", "epsilon", "log_delta"),
    algorithms=("stop", "local"),
    reference="dpcalc",
    locator="Theorem 29 of Feldman et al. 2018, all iterates of the pass counted",
    formula="R G sqrt(n+1)/n, G and sigma as in utility.stop, eta = R/(G sqrt(n+1))",
    assumes=(*STOPPED, CENTRE, LOCAL),
)
def stop_from_centre(run: Budget) -> Risk:
    """Starting at the centre of the ball halves the distance to the minimiser, and the risk.

    >>> run = Budget(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0, log_delta=-11.512925464970229)
    >>> round(stop_from_centre(run).excess_risk, 12)
    0.236169487072
    """
    constant = up((run.records + 1) / run.records, 2.0)
    return run.averaged(run.exact_noise, run.records + 1, constant=constant, factor=1.0)


@theorem(
    "utility.stop_classic",
    title="Random stop at the classic noise",
    needs=("records", "dimension", "lipschitz", "radius", "epsilon", "log_delta"),
    algorithms=("stop", "local"),
    reference=PAPER,
    locator="Theorem 29, inside the range of the classic noise",
    formula="(4 R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/eps^2) at eta = 2R/(G sqrt(n)), "
    "sigma = 2L sqrt(2 ln(1.25/delta))/eps",
    conditions=(CLASSIC_RANGE,),
    assumes=(*STOPPED, "any start in the domain", LOCAL),
    erratum=CLASSIC,
)
def stop_classic(run: Budget) -> Risk:
    """The paper's bound for a random stop, in the range where it is true.

    >>> run = Budget(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0, log_delta=-11.512925464970229)
    >>> round(stop_classic(run).excess_risk, 12)
    1.226302097399
    """
    if not run.in_classic_range:
        return NO_BOUND
    return run.averaged(run.classic_noise, run.records, constant=4.0, factor=2.0)
