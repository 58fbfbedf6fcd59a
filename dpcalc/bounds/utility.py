"""What privacy costs one pass: excess risk of noisy projected SGD (Feldman, Mironov, Talwar and Thakurta 2018).

Records are drawn independently from a law P, losses are convex and L-Lipschitz on a domain inside a ball of radius R,
and the risk is F(w) = E_P f(w, x). A step of w - eta (gradient + N(0, sigma^2 I)) uses a stochastic gradient of F with
mean square at most G^2 = L^2 + d sigma^2. Expanding |w_(t+1) - w*|^2 and summing over any c iterates in a row,

    average of E F(w_t) - F* <= |w_first - w*|^2/(2 eta c) + eta G^2/2,

and two points of the domain are at most 2R apart. A run that ends at a uniformly random one of them has that risk. The
last gradient of the sum is never taken. From 0, all n + 1 iterates count and |w_0 - w*| <= R. Privacy is that of a
replaced record, whose gradient moves by 2L at most.

Any point of the domain has an excess risk of at most 2RL: a number above it says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcalc.bounds import iteration
from dpcalc.bounds.cost import Cost
from dpcalc.bounds.multi_epoch import wide_up
from dpcalc.bounds.steps import GAUSSIAN, INDEX_IN_RANGE, NO_CLIPPING, ONE_RELEASE
from dpcalc.notions import gaussian
from dpcalc.numerics.floats import down, ratio_up, up
from dpcalc.registry import Requirement, bound
from dpcalc.spec.loss import exceeds_two

PAPER = "feldman2018"
SAMPLED = "records are independent draws from one law; excess risk is that of their mean loss under the law"
BALL = "every loss is convex and Lipschitz on a closed convex domain inside a ball of the given radius about 0"
CENTRE = "the domain holds 0, where the run starts"
LOCAL = "(epsilon, delta) holds even for who sees the record's own noisy gradient"
CLASSIC = (
    "The paper uses the classic noise for every epsilon; it gives (epsilon, delta) up to an epsilon_max(delta) only, "
    "8.42 at delta = 1e-5. The constant 4 may be 2: w_1 is within 2R of the minimiser."
)
STOPPED = (SAMPLED, BALL, GAUSSIAN, "the iterate after a uniformly random number 1..n of steps is released")
SKIPPED = (
    SAMPLED, BALL, "every loss is smooth", GAUSSIAN, ONE_RELEASE, NO_CLIPPING,
    "a uniform random prefix of 0..floor(n/2) records is skipped",
)  # fmt: skip


# --- requirements -----------------------------------------------------------------------------------------------------


def _classic_range(values: Mapping[str, Any]) -> tuple[str, str] | None:
    epsilon, log_delta = values.get("epsilon"), values.get("log_delta")
    if epsilon is None or log_delta is None or classic_holds(epsilon, log_delta):
        return None
    most = iteration.classic_epsilon_max(log_delta=log_delta)
    return (
        f"the classic noise gives (epsilon, delta) for 0 < epsilon <= {most:.4g} only, and epsilon is {epsilon:g}",
        f"use --epsilon up to {down(most, 2.0**41):.4g}, or a bound with the exact noise",
    )


def _fewer_public(values: Mapping[str, Any]) -> tuple[str, str] | None:
    n, m = values["records"], values["public_records"]
    if m < n:
        return None
    return f"all {n} records are public, or more ({m})", f"use --public-records below {n}"


def _within_pass(values: Mapping[str, Any]) -> tuple[str, str] | None:
    records, steps = values.get("records"), values.get("steps")
    if records is None or steps is None or steps <= records:
        return None
    return f"{steps} steps are more than one pass over {records} records", f"use --steps up to {records}"


def _some_public(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values["public_records"] > 0:
        return None
    return "no record is public, and its noise is divided by their number", "use --public-records 1 or more"


def small_step(step_of: Callable[..., float], *names: str) -> Requirement:
    """Return the requirement that ``step_of``, called with these parameters, is at most 2/smoothness.

    The hint names the least number of records, to three digits upwards, from which it is.
    """

    def failure(values: Mapping[str, Any]) -> tuple[str, str] | None:
        given = {name: values.get(name) for name in ("records", *names)}
        beta = values.get("smoothness")
        if beta is None or None in given.values():
            return None
        step = step_of(**given)
        if fits(step, beta):
            return None
        return (
            f"its step size {step:.4g} exceeds 2/smoothness = {2.0 / beta:.4g}, which its privacy needs",
            f"{_enough(step_of, given, beta)}, or smooth the loss: smoothing.skip needs no smoothness",
        )

    return Requirement("the step size <= 2/smoothness", failure)


def _enough(step_of: Callable[..., float], given: dict[str, Any], beta: float) -> str:
    """Return advice on how many records make the step small enough: it falls like 1/sqrt(n) or a little slower."""
    n = given["records"]
    for _ in range(40):
        step = step_of(**{**given, "records": n})
        if fits(step, beta):
            return f"use --records from {n}"
        short = max(1.0001, 0.5 * step * beta) ** 2 * n
        if short > 1e15:
            break
        scale = 10 ** max(0, len(str(int(short))) - 4)
        n = -(-int(short + 1.0) // scale) * scale
    return "use a smaller --radius"


def fits(step_size: float, smoothness: float) -> bool:
    """Return whether the step is a contraction's: eta <= 2/beta."""
    return smoothness == 0.0 or not exceeds_two(step_size, smoothness)


def classic_holds(epsilon: float, log_delta: float) -> bool:
    """Return whether the classic noise for (epsilon, delta) gives it."""
    return 0.0 < epsilon <= iteration.classic_epsilon_max(log_delta=log_delta)


CLASSIC_RANGE = Requirement("0 < epsilon <= epsilon_max(delta), the range of the classic noise", _classic_range)
FEWER_PUBLIC = Requirement("public_records < records", _fewer_public)
SOME_PUBLIC = Requirement("public_records >= 1", _some_public)


# --- parts ------------------------------------------------------------------------------------------------------------


def gradient_norm(*, lipschitz: float, dimension: int, noise_std: float) -> float:
    """Return G = sqrt(L^2 + d sigma^2), the root mean square of a noisy gradient, rounded up."""
    return up(math.hypot(lipschitz, wide_up((math.sqrt(dimension), noise_std), (), 4.0)), 4.0)


def averaged_risk(*, radius: float, gradient_norm: float, steps: int, factor: float) -> float:
    """Return (2/k + k/2) R G/sqrt(T), rounded up: Theorem 28 at the step size k R/(G sqrt(T)), any k > 0."""
    return wide_up((2.0 / factor + 0.5 * factor, radius, gradient_norm), (math.sqrt(steps),), 8.0)


def averaged_step(*, radius: float, gradient_norm: float, steps: float, factor: float) -> float:
    """Return the step size k R/(G sqrt(T)), rounded up."""
    return wide_up((factor, radius), (gradient_norm, math.sqrt(steps)), 4.0)


def skip_count(records: int) -> int:
    """Return floor(n/2) + 1: how many iterates a random skip may end at."""
    return records // 2 + 1


def at_most(cost: Cost, smoothness: float) -> Cost:
    """Return the cost, inf where its step size exceeds 2/smoothness."""
    return cost if cost.step_size is not None and fits(cost.step_size, smoothness) else Cost(math.inf)


def _classic(lipschitz: float, epsilon: float, log_delta: float) -> float:
    """Return the classic noise, inf at epsilon = 0."""
    if epsilon == 0.0:
        return math.inf
    return iteration.classic_noise_std(sensitivity=2.0 * lipschitz, epsilon=epsilon, log_delta=log_delta)


def _ending(
    *, constant: float, factor: float, count: float, radius: float, dimension: int, lipschitz: float, noise_std: float
) -> Cost:
    """Return the cost constant R G/sqrt(count) at the step size factor R/(G sqrt(count))."""
    if math.isinf(noise_std):
        return Cost(math.inf)
    norm = gradient_norm(lipschitz=lipschitz, dimension=dimension, noise_std=noise_std)
    risk = wide_up((constant, radius, norm), (math.sqrt(count),), 8.0)
    return Cost(risk, noise_std, averaged_step(radius=radius, gradient_norm=norm, steps=count, factor=factor))


# --- any run ----------------------------------------------------------------------------------------------------------


@bound(
    "utility.average",
    title="Noisy projected SGD stopped at a random step, any noise and step size",
    gives="cost",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 28, for every step size",
    formula="2 R^2/(eta T) + eta (L^2 + d sigma^2)/2",
    requires=(Requirement("steps <= records, each used once", _within_pass),),
    assumes=(*STOPPED, "any start in the domain"),
    erratum="The paper prints w + eta G in the update; the sign is minus.",
)
def average(*, radius: float, lipschitz: float, dimension: int, noise_std: float, step_size: float, steps: int) -> Cost:
    """The expected risk of a uniformly random iterate exceeds the least risk by the start's distance over the time plus
    the noise times the step.

    Args:
        radius: R > 0 of a ball that holds the domain.
        lipschitz: L > 0, or with noise_std = 0 the root mean square of the stochastic gradient.
        dimension: d >= 1.
        noise_std: sigma >= 0.
        step_size: eta > 0.
        steps: T >= 1.

    Returns:
        Cost: an upper bound on the excess risk of w_t, t uniform on 1..T.

    >>> round(average(radius=1.0, lipschitz=1.0, dimension=10, noise_std=1.0, step_size=0.01, steps=10000).excess_risk,
    ...       12)
    0.075
    """
    norm = gradient_norm(lipschitz=lipschitz, dimension=dimension, noise_std=noise_std)
    far = wide_up((2.0, radius, radius), (step_size, steps), 2.0)
    return Cost(up(far + wide_up((0.5, step_size, norm, norm), (), 4.0), 2.0), noise_std, step_size, steps)


@bound(
    "utility.average_published",
    title="Noisy projected SGD stopped at a random step, as printed",
    gives="cost",
    kind="published",
    algorithms=("stop",),
    reference=PAPER,
    locator="Theorem 28",
    formula="4 R sqrt(L^2 + d sigma^2)/sqrt(T) at eta = 2R/sqrt(T (L^2 + d sigma^2))",
    requires=(Requirement("steps <= records, each used once", _within_pass),),
    assumes=(*STOPPED, "any start in the domain"),
    erratum="True; the constant 2 is enough at the same step size, which utility.average gives.",
)
def average_published(*, radius: float, lipschitz: float, dimension: int, noise_std: float, steps: int) -> Cost:
    """What the paper prints for the best step size.

    Args:
        radius, lipschitz, dimension, noise_std, steps: as in `average`.

    Returns:
        Cost: the printed excess risk, twice what holds, with its step size.

    >>> round(average_published(radius=1.0, lipschitz=1.0, dimension=1, noise_std=0.0, steps=100).excess_risk, 12)
    0.4
    """
    return _ending(
        constant=4.0, factor=2.0, count=steps, radius=radius, dimension=dimension, lipschitz=lipschitz,
        noise_std=noise_std,
    )._replace(steps=steps)  # fmt: skip


# --- a local budget, random stop --------------------------------------------------------------------------------------


@bound(
    "utility.stop",
    title="Random stop at the exact noise",
    gives="cost",
    algorithms=("stop", "local"),
    reference=PAPER,
    locator="Theorem 29, with the exact Gaussian noise and the constant of its proof",
    formula="2 R G/sqrt(n), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), eta = 2R/(G sqrt(n))",
    assumes=(*STOPPED, "any start in the domain", LOCAL),
)
def stop(*, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float) -> Cost:
    """One pass in which every record's message is private by itself costs sqrt(d)/(eps sqrt(n)): no smoothness needed.

    Args:
        records, dimension: n and d, >= 1.
        lipschitz, radius: L and R, > 0.
        epsilon, log_delta: the budget of each record, ln delta < 0.

    Returns:
        Cost: an upper bound on the excess risk, and the run.

    >>> cost = stop(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.472315358966
    """
    return _ending(
        constant=2.0, factor=2.0, count=records, radius=radius, dimension=dimension, lipschitz=lipschitz,
        noise_std=_exact(lipschitz, epsilon, log_delta),
    )  # fmt: skip


@bound(
    "utility.stop_from_centre",
    title="Random stop at the exact noise, from the centre",
    gives="cost",
    algorithms=("stop", "local"),
    reference="dpcalc",
    locator="Theorem 29 of Feldman et al. 2018, all iterates of the pass counted",
    formula="R G sqrt(n+1)/n, G and sigma as in utility.stop, eta = R/(G sqrt(n+1))",
    assumes=(*STOPPED, CENTRE, LOCAL),
)
def stop_from_centre(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> Cost:
    """Starting at the centre of the ball halves the distance to the minimiser, and the risk.

    Args:
        records, dimension, lipschitz, radius, epsilon, log_delta: as in `stop`.

    Returns:
        Cost: an upper bound on the excess risk, and the run.

    >>> cost = stop_from_centre(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                         log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.236169487072
    """
    return _ending(
        constant=up((records + 1) / records, 2.0), factor=1.0, count=records + 1, radius=radius, dimension=dimension,
        lipschitz=lipschitz, noise_std=_exact(lipschitz, epsilon, log_delta),
    )  # fmt: skip


@bound(
    "utility.stop_classic",
    title="Random stop at the classic noise",
    gives="cost",
    algorithms=("stop", "local"),
    reference=PAPER,
    locator="Theorem 29, inside the range of the classic noise",
    formula="(4 R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/eps^2) at eta = 2R/(G sqrt(n)), "
    "sigma = 2L sqrt(2 ln(1.25/delta))/eps",
    requires=(CLASSIC_RANGE,),
    assumes=(*STOPPED, "any start in the domain", LOCAL),
    erratum=CLASSIC,
)
def stop_classic(
    *, records: int, dimension: int, lipschitz: float, radius: float, epsilon: float, log_delta: float
) -> Cost:
    """What the paper states for a random stop, where it is true.

    Args:
        records, dimension, lipschitz, radius, epsilon, log_delta: as in `stop`.

    Returns:
        Cost: an upper bound on the excess risk (inf outside the range), and the run.

    >>> cost = stop_classic(records=10000, dimension=10, lipschitz=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    1.226302097399
    """
    if not classic_holds(epsilon, log_delta):
        return Cost(math.inf)
    return _ending(
        constant=4.0, factor=2.0, count=records, radius=radius, dimension=dimension, lipschitz=lipschitz,
        noise_std=_classic(lipschitz, epsilon, log_delta),
    )  # fmt: skip


def _exact(lipschitz: float, epsilon: float, log_delta: float) -> float:
    return gaussian.noise_std(sensitivity=2.0 * lipschitz, epsilon=epsilon, log_delta_target=log_delta)


# --- a budget of every person, random skip ----------------------------------------------------------------------------

_RUN = ("dimension", "lipschitz", "radius", "epsilon", "log_delta")


def _skip_cost(noise_std: float, *, records: int, dimension: int, lipschitz: float, radius: float) -> Cost:
    """Return 2 R G/sqrt(h + 1), h = floor(n/2): the average over the h + 1 last iterates."""
    return _ending(
        constant=2.0, factor=2.0, count=skip_count(records), radius=radius, dimension=dimension, lipschitz=lipschitz,
        noise_std=noise_std,
    )  # fmt: skip


def _printed_skip(noise_std: float, *, records: int, dimension: int, lipschitz: float, radius: float) -> Cost:
    """Return 4 sqrt(2) R G/sqrt(n) at eta = sqrt(8) R/(G sqrt(n)); half of it holds."""
    return _ending(
        constant=4.0, factor=2.0, count=0.5 * records, radius=radius, dimension=dimension, lipschitz=lipschitz,
        noise_std=noise_std,
    )  # fmt: skip


def _centred_skip(noise_std: float, *, records: int, dimension: int, lipschitz: float, radius: float) -> Cost:
    """Return R G sqrt(n+1)/(h+1): the sum over all n + 1 iterates bounds that over the h + 1 last ones."""
    return _ending(
        constant=up((records + 1) / skip_count(records), 2.0), factor=1.0, count=records + 1, radius=radius,
        dimension=dimension, lipschitz=lipschitz, noise_std=noise_std,
    )  # fmt: skip


def _stepping(noise_of: Callable[..., float], cost_of: Callable[..., Cost], *more: str) -> Requirement:
    """Return the requirement that the step of this noise and this cost is at most 2/smoothness."""

    def step(*, records: int, dimension: int, lipschitz: float, radius: float, **asked: Any) -> float:
        sigma = noise_of(records=records, lipschitz=lipschitz, **asked)
        cost = cost_of(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius)
        return 0.0 if cost.step_size is None else cost.step_size

    return small_step(step, *_RUN, *more)


def _local_noise(*, records: int, lipschitz: float, epsilon: float, log_delta: float) -> float:
    del records
    return _exact(lipschitz, epsilon, log_delta)


def _classic_noise(*, records: int, lipschitz: float, epsilon: float, log_delta: float) -> float:
    del records
    return _classic(lipschitz, epsilon, log_delta)


@bound(
    "utility.skip",
    title="Random skip at the exact noise: more privacy for early records",
    gives="cost",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Theorem 30, with the exact Gaussian noise and the constant of its proof",
    formula="2 R G/sqrt(floor(n/2) + 1), G^2 = L^2 + d sigma^2, sigma = 2L/mu(eps, delta), "
    "eta = 2R/(G sqrt(floor(n/2) + 1))",
    requires=(_stepping(_local_noise, _skip_cost),),
    assumes=(*SKIPPED, "any start in the domain", LOCAL),
)
def skip(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """At sqrt(2) times the cost of a random stop, the record at index t has iteration.skip's privacy, which is about
    sqrt(n-t+1) times stronger, as well as its local privacy.

    Args:
        records, dimension, lipschitz, radius, epsilon, log_delta: as in `stop`.
        smoothness: beta >= 0.

    Returns:
        Cost: an upper bound on the excess risk (inf where the step size exceeds 2/smoothness), and the run.

    >>> cost = skip(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...             log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.667888000906
    """
    sigma = _exact(lipschitz, epsilon, log_delta)
    return at_most(
        _skip_cost(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius), smoothness
    )


@bound(
    "utility.skip_from_centre",
    title="Random skip at the exact noise, from the centre",
    gives="cost",
    algorithms=("skip", "local"),
    reference="dpcalc",
    locator="Theorem 30 of Feldman et al. 2018, all iterates of the pass counted",
    formula="R G sqrt(n+1)/(floor(n/2) + 1), G and sigma as in utility.skip, eta = R/(G sqrt(n+1))",
    requires=(_stepping(_local_noise, _centred_skip),),
    assumes=(*SKIPPED, CENTRE, LOCAL),
)
def skip_from_centre(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """Starting at the centre of the ball, the excesses of the whole pass bound those of its second half.

    Args:
        records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `skip`.

    Returns:
        Cost: an upper bound on the excess risk (inf where the step size exceeds 2/smoothness), and the run.

    >>> cost = skip_from_centre(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                         log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.472244525238
    """
    sigma = _exact(lipschitz, epsilon, log_delta)
    return at_most(
        _centred_skip(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius), smoothness
    )


@bound(
    "utility.skip_classic",
    title="Random skip at the classic noise",
    gives="cost",
    algorithms=("skip", "local"),
    reference=PAPER,
    locator="Theorem 30, inside the range of the classic noise",
    formula="(4 sqrt(2) R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/eps^2) at eta = sqrt(8) R/(G sqrt(n)), "
    "sigma = 2L sqrt(2 ln(1.25/delta))/eps",
    requires=(CLASSIC_RANGE, _stepping(_classic_noise, _printed_skip)),
    assumes=(*SKIPPED, "any start in the domain", LOCAL, "(epsilon/sqrt(n-t+1), delta) holds at index t"),
    erratum=CLASSIC + " The privacy at an index does not follow from Theorem 23 by the conversion that the paper has: "
    "that covers epsilon/sqrt(n-t+1) <= 0.45 only; the mu-GDP form covers the range.",
)
def skip_classic(
    *, records: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """What the paper states for a random skip, where it is true.

    Args:
        records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `skip`.

    Returns:
        Cost: an upper bound on the excess risk (inf where it does not apply), and the run.

    >>> cost = skip_classic(records=10000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...                     log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    1.734253057708
    """
    if not classic_holds(epsilon, log_delta):
        return Cost(math.inf)
    sigma = _classic(lipschitz, epsilon, log_delta)
    return at_most(
        _printed_skip(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius), smoothness
    )


def classic_index_epsilon(*, records: int, index: int, epsilon: float) -> float:
    """Return the eps/sqrt(n-t+1) that Theorem 30 claims at an index, rounded up."""
    return ratio_up(epsilon, 1.0, records - index + 1)


def classic_index_log_delta(*, records: int, index: int, epsilon: float, log_delta: float) -> float:
    """Return ln of the delta that a random skip at the classic noise has at `classic_index_epsilon`, rounded up."""
    claimed = classic_index_epsilon(records=records, index=index, epsilon=epsilon)
    return iteration.skip_log_delta(
        records=records, index=index, sensitivity=1.0,
        noise_std=down(iteration.classic_factor(log_delta) / epsilon, 8.0), epsilon=down(claimed, 16.0),
    )  # fmt: skip


# --- a budget of some records -----------------------------------------------------------------------------------------


def _person_noise(*, records: int, lipschitz: float, index: int, epsilon: float, log_delta: float) -> float:
    if index > records:
        return math.inf
    return iteration.skip_noise_std(
        records=records, index=index, sensitivity=2.0 * lipschitz, epsilon=epsilon, log_delta=log_delta
    )


def _public_noise(*, records: int, lipschitz: float, public_records: int, epsilon: float, log_delta: float) -> float:
    return _person_noise(
        records=records, lipschitz=lipschitz, index=max(1, records - public_records), epsilon=epsilon,
        log_delta=log_delta,
    )  # fmt: skip


@bound(
    "utility.person",
    title="Random skip, noise for the first records alone",
    gives="cost",
    algorithms=("skip",),
    reference="dpcalc",
    locator="Theorem 30 of Feldman et al. 2018 solved for the noise, with the exact mixture",
    formula="as utility.skip, sigma = 2L/(sqrt(n-t+1) mu(eps, delta/p_t)), p_t = min(t, h+1)/(h+1), h = floor(n/2)",
    requires=(INDEX_IN_RANGE, _stepping(_person_noise, _skip_cost, "index")),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the records up to the index, no other"),
)
def person(
    *, records: int, index: int, dimension: int, lipschitz: float, smoothness: float, radius: float, epsilon: float,
    log_delta: float,
) -> Cost:  # fmt: skip
    """Where only records up to an index need the budget, what follows them hides them, and less noise is enough.

    Args:
        records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `skip`.
        index: t, the last record with the budget, 1 <= t <= n.

    Returns:
        Cost: an upper bound on the excess risk (inf where the step size exceeds 2/smoothness), and the run.

    >>> cost = person(records=10000, index=5000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0, epsilon=1.0,
    ...               log_delta=math.log(1e-5))
    >>> round(cost.noise_std, 12)
    0.10550637607
    """
    sigma = _person_noise(records=records, lipschitz=lipschitz, index=index, epsilon=epsilon, log_delta=log_delta)
    return at_most(
        _skip_cost(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius), smoothness
    )


@bound(
    "utility.public",
    title="Public records last, at the exact noise",
    gives="cost",
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31, corrected and with the exact noise",
    formula="as utility.person at t = n - m: sigma = 2L/(sqrt(m+1) mu(eps, delta)) for m <= n/2, less beyond",
    requires=(FEWER_PUBLIC, _stepping(_public_noise, _skip_cost, "public_records")),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the private records, which come first"),
)
def public(
    *, records: int, public_records: int, dimension: int, lipschitz: float, smoothness: float, radius: float,
    epsilon: float, log_delta: float,
) -> Cost:  # fmt: skip
    """Of order d ln(1/delta)/eps^2 public records, used last, bring the risk to that of a run without privacy.

    Args:
        records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `skip`; records counts all.
        public_records: m, 0 <= m < n.

    Returns:
        Cost: an upper bound on the excess risk (inf where the step size exceeds 2/smoothness), and the run.

    >>> cost = public(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0, radius=1.0,
    ...               epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.035279877324
    """
    return person(
        records=records, index=records - public_records, dimension=dimension, lipschitz=lipschitz,
        smoothness=smoothness, radius=radius, epsilon=epsilon, log_delta=log_delta,
    )  # fmt: skip


def public_classic_noise_std(*, lipschitz: float, public_records: int, epsilon: float, log_delta: float) -> float:
    """Return the corrected 2L sqrt(2 ln(1.25/delta)/(m+1))/eps, rounded up; inf at epsilon = 0."""
    single = _classic(lipschitz, epsilon, log_delta)
    return single if math.isinf(single) else ratio_up(single, 1.0, public_records + 1)


def public_published_noise_std(*, lipschitz: float, public_records: int, epsilon: float, log_delta: float) -> float:
    """Return the printed 2L sqrt(ln(1.25/delta)/m)/eps; inf at epsilon = 0 or m = 0."""
    if epsilon == 0.0 or public_records == 0:
        return math.inf
    factor = iteration.classic_factor(log_delta)
    return wide_up((math.sqrt(2.0), lipschitz, factor), (math.sqrt(public_records), epsilon), 8.0)


def public_published_log_delta(*, public_records: int, epsilon: float, log_delta: float) -> float:
    """Return ln of the delta that the printed noise has at epsilon, for the last private record, rounded up."""
    factor = iteration.classic_factor(log_delta)
    share = math.sqrt(2.0 * public_records / (public_records + 1.0))
    return gaussian.log_delta(mu=up(epsilon * share / factor, 8.0), epsilon=epsilon)


def _corrected(*, records: int, **asked: Any) -> float:
    del records
    return public_classic_noise_std(**asked)


def _printed(*, records: int, **asked: Any) -> float:
    del records
    return public_published_noise_std(**asked)


@bound(
    "utility.public_classic",
    title="Public records last, at the classic noise",
    gives="cost",
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31, corrected",
    formula="4 sqrt(2) R G/sqrt(n), G^2 = L^2 + d sigma^2, sigma = 2L sqrt(2 ln(1.25/delta)/(m+1))/eps, "
    "eta = sqrt(8) R/(G sqrt(n))",
    requires=(FEWER_PUBLIC, CLASSIC_RANGE, _stepping(_corrected, _printed_skip, "public_records")),
    assumes=(*SKIPPED, "any start in the domain", "(epsilon, delta) holds for the private records, which come first"),
    erratum=CLASSIC,
)
def public_classic(
    *, records: int, public_records: int, dimension: int, lipschitz: float, smoothness: float, radius: float,
    epsilon: float, log_delta: float,
) -> Cost:  # fmt: skip
    """The paper's corollary with the noise that its theorem gives.

    Args:
        records, public_records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `public`.

    Returns:
        Cost: an upper bound on the excess risk (inf where it does not apply), and the run.

    >>> cost = public_classic(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0,
    ...                       radius=1.0, epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(cost.excess_risk, 12)
    0.078749172922
    """
    if not classic_holds(epsilon, log_delta):
        return Cost(math.inf)
    sigma = public_classic_noise_std(
        lipschitz=lipschitz, public_records=public_records, epsilon=epsilon, log_delta=log_delta
    )
    return at_most(
        _printed_skip(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius), smoothness
    )


@bound(
    "utility.public_published",
    title="Public records last, as printed",
    gives="cost",
    kind="published",
    algorithms=("skip",),
    reference=PAPER,
    locator="Corollary 31",
    formula="(4 sqrt(2) R L/sqrt(n)) sqrt(1 + 8 d ln(1.25/delta)/(m eps^2)), sigma = 2L sqrt(ln(1.25/delta)/m)/eps, "
    "eta = sqrt(8) R/sqrt(n (L^2 + d sigma^2))",
    requires=(FEWER_PUBLIC, SOME_PUBLIC, _stepping(_printed, _printed_skip, "public_records")),
    assumes=(*SKIPPED, "any start in the domain"),
    erratum="A factor sqrt(2) is missing in the noise. At (1, 1e-5) the private records have delta = 1.14e-5 by the "
    "mu-GDP form for m = 6, and 3.73e-5 in a realised run for m = 10000; the stated risk is that of the right noise.",
)
def public_published(
    *, records: int, public_records: int, dimension: int, lipschitz: float, smoothness: float, radius: float,
    epsilon: float, log_delta: float,
) -> Cost:  # fmt: skip
    """What the paper prints for public records, for comparison only: its noise does not give the budget.

    Args:
        records, public_records, dimension, lipschitz, smoothness, radius, epsilon, log_delta: as in `public`.

    Returns:
        Cost: the printed excess risk (inf where the step size exceeds 2/smoothness), and the printed run.

    >>> cost = public_published(records=10000, public_records=1000, dimension=10, lipschitz=1.0, smoothness=1.0,
    ...                         radius=1.0, epsilon=1.0, log_delta=math.log(1e-5))
    >>> round(cost.noise_std, 12)
    0.216666278099
    """
    sigma = public_published_noise_std(
        lipschitz=lipschitz, public_records=public_records, epsilon=epsilon, log_delta=log_delta
    )
    run = _printed_skip(sigma, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius)
    right = up(math.sqrt(2.0) * sigma, 4.0)
    risk = _printed_skip(right, records=records, dimension=dimension, lipschitz=lipschitz, radius=radius).excess_risk
    return at_most(run._replace(excess_risk=risk), smoothness)
