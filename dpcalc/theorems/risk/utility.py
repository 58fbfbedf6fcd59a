"""The cost of privacy for one pass: excess risk of noisy projected SGD (Feldman, Mironov, Talwar and Thakurta 2018).

Records are drawn independently from a law P, losses are convex and L-Lipschitz on a domain inside a ball of radius R,
and the risk is F(w) = E_P f(w, x). By `averaging`, c consecutive iterates of a pass have on average an excess risk of
at most

    |w_first - w*|^2/(2 eta c) + eta G^2/2,

and a run that ends at a uniformly random one of them has that risk. The gradient at the last of them is never taken.
From 0, all n + 1 iterates count and |w_0 - w*| <= R. Neighbours differ in one replaced record, which moves its gradient
by at most 2L.

Any point of the domain has an excess risk of at most 2RL, so a larger bound is vacuous.

The cost of privacy for one pass that skips a random prefix; the noise of later steps hides the early records.

As `utility`, but for smooth losses, and the average is over the iterates of the second half of the pass. If some
records need no budget, they come last, and the others need less noise.
"""

from __future__ import annotations

import math

from dpcalc.notions import conversions
from dpcalc.notions.conversions import NO_BOUND, Risk
from dpcalc.numerics.floats import quotient_up, ratio_up, up
from dpcalc.theorems.conditions import GAUSSIAN, INDEX_IN_RANGE, NO_CLIPPING, ONE_RELEASE
from dpcalc.theorems.one_pass import random_stop
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.risk.averaging import CLASSIC_RANGE, Budget, OnBall, require_short_step, short_step_condition

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
    """One pass in which every message is private costs about sqrt(d)/(eps sqrt(n)), even without smoothness.

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


SKIPPED = (
    SAMPLED, BALL, "every loss is smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING,
    "a uniform random prefix of 0..floor(n/2) records is skipped",
)  # fmt: skip


FEWER_PUBLIC = requires(
    "public_records < records",
    lambda run: run.records is None or run.public_records is None or run.public_records < run.records,
    lambda run: Unmet(
        f"there are {run.public_records} public records of {run.records} in all",
        f"use --public-records below {run.records}",
    ),
)
SOME_PUBLIC = requires(
    "public_records >= 1",
    lambda run: run.public_records,
    Unmet("no record is public, and the noise is divided by their number", "use --public-records 1 or more"),
)


SMOOTH_BUDGET = ("records", "dimension", "lipschitz", "smoothness", "radius", "epsilon", "log_delta")


class SmoothBudget(Budget):
    """One pass over smooth losses that skips a random prefix of 0..h records, h = floor(n/2), with a budget."""

    @property
    def ends(self) -> int:
        """h + 1, the number of iterates at which the pass may end."""
        return self.records // 2 + 1

    def second_half(self, noise_std: float) -> Risk:
        """Return 2 R G/sqrt(h + 1): the average over the h + 1 last iterates."""
        return self.averaged(noise_std, self.ends, constant=2.0, factor=2.0)

    def from_centre(self, noise_std: float) -> Risk:
        """Return R G sqrt(n+1)/(h+1): the sum over all n + 1 iterates bounds that over the h + 1 last ones."""
        constant = up((self.records + 1) / self.ends, 2.0)
        return self.averaged(noise_std, self.records + 1, constant=constant, factor=1.0)

    def printed_risk(self, noise_std: float) -> Risk:
        """Return 4 sqrt(2) R G/sqrt(n) at eta = sqrt(8) R/(G sqrt(n)), as printed; half of it is a bound too."""
        return self.averaged(noise_std, 0.5 * self.records, constant=4.0, factor=2.0)

    def noise_up_to(self, last: int) -> float:
        """Return the least sigma at which the records up to ``last`` have the budget after a skip, rounded up."""
        if last > self.records:
            return math.inf
        return random_stop.skip_noise_std(
            records=self.records, index=last, sensitivity=2.0 * self.lipschitz, epsilon=self.epsilon,
            log_delta=self.log_delta,
        )  # fmt: skip


ONE_PERSON = ("records", "index", "dimension", "lipschitz", "smoothness", "radius", "epsilon", "log_delta")


class OnePerson(SmoothBudget):
    """A random skip with a budget for the first records only."""

    @property
    def least_noise(self) -> float:
        """The least sigma that keeps the budget, rounded up."""
        return self.noise_up_to(self.index)


PUBLIC_RECORDS = ("records", "public_records", "dimension", "lipschitz", "smoothness", "radius", "epsilon", "log_delta")


class PublicRecords(SmoothBudget):
    """A random skip in which public records, which need no budget, come last."""

    @property
    def least_noise(self) -> float:
        """The least sigma that keeps the budget of the private records, rounded up."""
        return self.noise_up_to(max(1, self.records - self.public_records))

    @property
    def shared_classic_noise(self) -> float:
        """The corrected 2L sqrt(2 ln(1.25/delta)/(m+1))/eps, rounded up; inf at epsilon = 0."""
        single = self.classic_noise
        return single if math.isinf(single) else ratio_up(single, 1.0, self.public_records + 1)

    @property
    def printed_noise(self) -> float:
        """The printed 2L sqrt(ln(1.25/delta)/m)/eps; inf at epsilon = 0 or m = 0."""
        if self.epsilon == 0.0 or self.public_records == 0:
            return math.inf
        factor = conversions.factor(self.log_delta)
        return quotient_up(
            (math.sqrt(2.0), self.lipschitz, factor), (math.sqrt(self.public_records), self.epsilon), 8.0
        )


@theorem(
    "utility.skip",
    title="Random skip at the exact noise: more privacy for early records",
    needs=SMOOTH_BUDGET,
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Theorem 30, with the exact Gaussian noise and the constant of its proof",
    formula="2 R G/sqrt(floor(n/2) + 1), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), "
    "eta = 2R/(G sqrt(floor(n/2) + 1))",
    conditions=(short_step_condition(SmoothBudget, SMOOTH_BUDGET, lambda run: run.second_half(run.exact_noise)),),
    assumes=(*SKIPPED, "any start in the domain", LOCAL),
)
def skip(run: SmoothBudget) -> Risk:
    """At sqrt(2) times the cost of a random stop, the record at index t also has the privacy of iteration.skip, which
    is about sqrt(n-t+1) times stronger than its local privacy.

    >>> run = SmoothBudget(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                    log_delta=math.log(1e-5))
    >>> round(skip(run).excess_risk, 12)
    0.667888000906
    """
    return require_short_step(run.second_half(run.exact_noise), run.smoothness)


@theorem(
    "utility.skip_from_centre",
    title="Random skip at the exact noise, from the centre",
    needs=SMOOTH_BUDGET,
    algorithms=("skip", "local"),
    reference="dpcalc",
    locator="Theorem 30 of Feldman et al. 2018, all iterates of the pass counted",
    formula="R G sqrt(n+1)/(floor(n/2) + 1), G and sigma as in utility.skip, eta = R/(G sqrt(n+1))",
    conditions=(short_step_condition(SmoothBudget, SMOOTH_BUDGET, lambda run: run.from_centre(run.exact_noise)),),
    assumes=(*SKIPPED, CENTRE, LOCAL),
)
def skip_from_centre(run: SmoothBudget) -> Risk:
    """From the centre of the ball, the sum of the excess risks over the whole pass bounds that over its second half.

    >>> run = SmoothBudget(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                    log_delta=math.log(1e-5))
    >>> round(skip_from_centre(run).excess_risk, 12)
    0.472244525238
    """
    return require_short_step(run.from_centre(run.exact_noise), run.smoothness)


@theorem(
    "utility.skip_classic",
    title="Random skip at the classic noise",
    needs=SMOOTH_BUDGET,
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Theorem 30, inside the range of the classic noise",
    formula="(4 sqrt(2) R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/eps^2) at eta = sqrt(8) R/(G sqrt(n)), "
    "sigma = 2L sqrt(2 ln(1.25/delta))/eps",
    conditions=(
        CLASSIC_RANGE,
        short_step_condition(SmoothBudget, SMOOTH_BUDGET, lambda run: run.printed_risk(run.classic_noise)),
    ),
    assumes=(*SKIPPED, "any start in the domain", LOCAL, "(epsilon/sqrt(n-t+1), delta) holds at index t"),
    erratum=CLASSIC + " The privacy at an index does not follow from Theorem 23 by the conversion that the paper has: "
    "that covers epsilon/sqrt(n-t+1) <= 0.45 only; the mu-GDP form covers the range.",
)
def skip_classic(run: SmoothBudget) -> Risk:
    """The paper's bound for a random skip, in the range where it is true.

    >>> run = SmoothBudget(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                    log_delta=math.log(1e-5))
    >>> round(skip_classic(run).excess_risk, 12)
    1.734253057708
    """
    if not run.in_classic_range:
        return NO_BOUND
    return require_short_step(run.printed_risk(run.classic_noise), run.smoothness)


# --- a budget of some records -----------------------------------------------------------------------------------------


@theorem(
    "utility.person",
    title="Random skip, noise for the first records alone",
    needs=ONE_PERSON,
    algorithms=("skip",),
    reference="dpcalc",
    locator="Theorem 30 of Feldman et al. 2018 solved for the noise, with the exact mixture",
    formula="as utility.skip, sigma = 2L/(sqrt(n-t+1) mu(eps, delta/p_t)), p_t = min(t, h+1)/(h+1), h = floor(n/2)",
    conditions=(
        INDEX_IN_RANGE,
        short_step_condition(OnePerson, ONE_PERSON, lambda run: run.second_half(run.least_noise)),
    ),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the records up to the index, no other"),
)
def person(run: OnePerson) -> Risk:
    """If only the records up to an index need the budget, the later steps help to hide them, and less noise is enough.

    >>> run = OnePerson(records=10000, index=5000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                 log_delta=math.log(1e-5))
    >>> round(person(run).noise_std, 12)
    0.10550637607
    """
    return require_short_step(run.second_half(run.least_noise), run.smoothness)


@theorem(
    "utility.public",
    title="Public records last, at the exact noise",
    needs=PUBLIC_RECORDS,
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31, corrected and with the exact noise",
    formula="as utility.person at t = n - m: sigma = 2L/(sqrt(m+1) mu(eps, delta)) for m <= n/2, less beyond",
    conditions=(
        FEWER_PUBLIC,
        short_step_condition(PublicRecords, PUBLIC_RECORDS, lambda run: run.second_half(run.least_noise)),
    ),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the private records, which come first"),
)
def public(run: PublicRecords) -> Risk:
    """About d ln(1/delta)/eps^2 public records, used last, bring the risk to the order of a run without privacy.

    >>> run = PublicRecords(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...                     epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(public(run).excess_risk, 12)
    0.035279877324
    """
    return require_short_step(run.second_half(run.least_noise), run.smoothness)


@theorem(
    "utility.public_classic",
    title="Public records last, at the classic noise",
    needs=PUBLIC_RECORDS,
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31, corrected",
    formula="4 sqrt(2) R G/sqrt(n), G^2 = L^2 + d sigma^2, sigma = 2L sqrt(2 ln(1.25/delta)/(m+1))/eps, "
    "eta = sqrt(8) R/(G sqrt(n))",
    conditions=(
        FEWER_PUBLIC,
        CLASSIC_RANGE,
        short_step_condition(PublicRecords, PUBLIC_RECORDS, lambda run: run.printed_risk(run.shared_classic_noise)),
    ),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the private records, which come first"),
    erratum=CLASSIC,
)
def public_classic(run: PublicRecords) -> Risk:
    """The paper's corollary with the noise that its theorem gives.

    >>> run = PublicRecords(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...                     epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(public_classic(run).excess_risk, 12)
    0.078749172922
    """
    if not run.in_classic_range:
        return NO_BOUND
    return require_short_step(run.printed_risk(run.shared_classic_noise), run.smoothness)


@theorem(
    "utility.public_published",
    title="Public records last, as printed",
    needs=PUBLIC_RECORDS,
    kind="published",
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31",
    formula="(4 sqrt(2) R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/(m eps^2)), sigma = 2L sqrt(ln(1.25/delta)/m)/eps, "
    "eta = sqrt(8) R/sqrt(n (L^2 + d sigma^2))",
    conditions=(
        FEWER_PUBLIC,
        SOME_PUBLIC,
        short_step_condition(PublicRecords, PUBLIC_RECORDS, lambda run: run.printed_risk(run.printed_noise)),
    ),
    assumes=(*SKIPPED, "any start in the domain"),
    erratum="A factor sqrt(2) is missing in the noise. At (1, 1e-5) the private records have delta = 1.14e-5 by the "
    "mu-GDP form for m = 6, and 3.73e-5 in a concrete run for m = 10000; the stated risk is that of the right noise.",
)
def public_published(run: PublicRecords) -> Risk:
    """The paper's bound for public records, for comparison only: its noise does not keep the budget.

    >>> run = PublicRecords(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...                     epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(public_published(run).noise_std, 12)
    0.216666278099
    """
    sigma = run.printed_noise
    stated = run.printed_risk(up(math.sqrt(2.0) * sigma, 4.0)).excess_risk  # for the right noise
    return require_short_step(run.printed_risk(sigma)._replace(excess_risk=stated), run.smoothness)
