"""A growing stream whose every record gets less noise than the last (Sordello, Bu and Dong, Theorems 6 and 7).

Record j is used in step j with the noise scale of `dpcalc.spec.noise` at x = j^alpha. For record i of a stream of n,

    A_i = h(eps, Delta/scale_i),   B_t = h(eps, c D/(eta scale_t)),   delta_n = A_i prod_{t=i+1}^n B_t.

delta_n falls with n towards a limit, and grows with i: the newest record has A_n, which tends to 1. What the paper
calls the guarantee is an upper bound on the limit, delta* = A_i exp(int_{i+1}^inf ln B_x dx), and covers no finite
stream before delta_n has fallen to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from dpcalc.bounds import laplace, recursion
from dpcalc.bounds.contraction import DISPLACED, DOMAIN, FRESH, LIPSCHITZ_STEPS, PAPER, expands_nothing
from dpcalc.bounds.steps import GAUSSIAN_NOISE, INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN
from dpcalc.errors import NotApplicable
from dpcalc.notions import composition
from dpcalc.numerics.floats import UNIT, down, up
from dpcalc.numerics.logspace import log_expm1
from dpcalc.numerics.quadrature import integrate
from dpcalc.numerics.roots import least
from dpcalc.numerics.series import sum_slow
from dpcalc.registry import bound
from dpcalc.spec.noise import reach

_STREAM = "one pass over the stream in order of arrival, each record used once, with the noise of its schedule"
_ONCE = "the latest iterate is released once; releases at several times compose"
_LINEAR = (_STREAM, FRESH, DOMAIN, DISPLACED, _ONCE)
_EXACT_STEPS = 4096
_STRIDE = 2e-3
_LIMIT_ERRATUM = (
    "The paper states (eps, delta*)-DP as n grows. delta* bounds the limit only: in its Figures 4 and 5 delta_n is "
    "above delta* until n = 1.9e9 and 1.5e8. Its equation 13 has e^(-eps/2) for e^(eps/2), its equation 15 the "
    "exponential of the integral inside the argument of theta; the rate is n^-(alpha-1), not 1/ln n. The worst record "
    "is the newest, whose delta tends to 1: there is no guarantee for all records at once."
)


class Stream(NamedTuple):
    """The schedule and the geometry: all that the noise of a record depends on.

    ``unit`` is c D/eta; record t has the scale ``multiplier`` ``unit``/reach(t).
    """

    noise: str
    c1: float
    c2: float
    exponent: float
    unit: float
    multiplier: float

    def reach(self, t: float) -> tuple[float, float]:
        """Return an enclosure of r_B at step t."""
        low, high = reach(self.noise, self.exponent * math.log(t), self.c1, self.c2)
        if self.multiplier == 1.0:
            return low, high
        return down(low / self.multiplier, 2.0), up(high / self.multiplier, 2.0)

    def scale(self, t: float) -> float:
        """Return the noise scale of record t, rounded down."""
        return down(self.unit / self.reach(t)[1], 8.0)

    def singular(self, epsilon: float) -> float:
        """Return the point on the real line from which on ln B_t is smooth."""
        if self.noise == "gaussian":
            base = -self.c2 * 2.0 * math.pi * self.c1 * self.c1
            return base ** (0.5 / self.exponent) if base > 0.0 else 0.0
        inner = self.c1 * (math.exp(min(700.0, 0.5 * self.multiplier * epsilon)) - self.c2)
        return inner ** (1.0 / self.exponent) if inner > 0.0 else 0.0

    @property
    def sharpness(self) -> float:
        """How much faster than a power 2 of t the terms vary."""
        return max(1.0, self.exponent if self.noise == "gaussian" else 0.5 * self.exponent)

    @property
    def power(self) -> float:
        """The power of 1/t with which ln B_t falls off, a little less for Gaussian noise."""
        s = self.multiplier
        return 0.98 * self.exponent / (s * s) if self.noise == "gaussian" else self.exponent / s


def stream(
    *, noise: str, c1: float, c2: float, decay_exponent: float, displacement: float, diameter: float, step_size: float,
    noise_multiplier: float = 1.0,
) -> Stream:  # fmt: skip
    """Return the stream's schedule; parameters as in `product`."""
    unit = down(displacement * diameter / step_size, 4.0)
    return Stream(noise, c1, c2, decay_exponent, unit, noise_multiplier)


def scales(plan: Stream, first: int, last: float = math.inf) -> Iterator[tuple[int, float]]:
    """Yield (record, noise scale), rounded down, for the records ``first`` .. ``last``.

    Raises:
        NotApplicable: the schedule is undefined at a record.
    """
    record = first
    while record <= last:
        yield record, plan.scale(record)
        record += 1


def log_first(plan: Stream, sensitivity: float, index: int, epsilon: float) -> float:
    """Return ln A_i, rounded up."""
    return recursion.log_one_step(plan.noise, epsilon, _own(plan, sensitivity, index))


def _own(plan: Stream, sensitivity: float, index: int) -> float:
    """Return r_A = Delta/scale_i, rounded up."""
    if plan.unit == 0.0:
        return math.inf
    return up(sensitivity / plan.unit * plan.reach(index)[1], 8.0)


def _log_factor(plan: Stream, epsilon: float) -> Callable[[float], float]:
    """Return t -> ln B_t, rounded up."""
    return lambda t: recursion.log_one_step(plan.noise, epsilon, plan.reach(t)[1])


def _looseness(plan: Stream, value: Callable[[float], float]) -> Callable[[float], float]:
    """Return t -> how far a function of the reach at step t may be off, relatively, as the reach is enclosed only."""

    def relative(t: float) -> float:
        low, high = map(value, plan.reach(t))
        return min(0.5, abs(high - low) / max(abs(high), abs(low), 5e-324) + 250.0 * UNIT)

    return relative


def log_product(plan: Stream, epsilon: float, index: int, last: float) -> tuple[float, float]:
    """Return an enclosure of sum_{t=index+1}^{last} ln B_t; (-inf, -inf) where a factor is 0; last may be inf."""
    if last <= index:
        return 0.0, 0.0
    g = _log_factor(plan, epsilon)
    if g(index + 1.0) == -math.inf:
        return -math.inf, -math.inf
    if math.isinf(last) and plan.power <= 1.0:
        return -math.inf, -math.inf
    singular = min(plan.singular(epsilon), index + 1.0 - 1e-9 * index)
    loose = _looseness(plan, lambda r: recursion.log_one_step(plan.noise, epsilon, r))
    return sum_slow(
        g, index + 1, last, singular=max(0.0, singular), sharpness=plan.sharpness, relative=loose,
        power=plan.power if math.isinf(last) else 0.0,
    )  # fmt: skip


def log_integral(plan: Stream, epsilon: float, lower: float, upper: float = math.inf) -> float:
    """Return int_lower^upper ln B_x dx, to 1e-12 relatively, by Gauss-Legendre on geometric panels."""
    if math.isinf(upper) and plan.power <= 1.0:
        return -math.inf
    g = _log_factor(plan, epsilon)
    base = max(0.0, min(plan.singular(epsilon), lower * (1.0 - 1e-9)))
    left, total, growth = lower, 0.0, 1.0 + 1.0 / plan.sharpness
    while left < upper:
        right = min(upper, base + (left - base) * growth)
        total += integrate(g, left, right, 20)
        left = right
        tail = g(left) * (left - base) / (plan.power - 1.0) if math.isinf(upper) else -math.inf
        if tail > -1e-16 * abs(total) or left > 1e290:
            return total + tail
    return total


@bound(
    "online.product",
    title="Stream, product of contraction coefficients",
    gives="log_delta",
    algorithms=("online",),
    reference=PAPER,
    locator="Theorems 6 and 7 at a finite n, with the displacement factor corrected",
    formula="delta_n(eps) = A_i prod_{t=i+1}^{n} B_t",
    requires=(INDEX_IN_RANGE,),
    assumes=_LINEAR,
    erratum=_LIMIT_ERRATUM,
    slack="1e-9 relative to the logarithm; the product over up to 1e15 records is enclosed",
    coarse=True,
)
def product(
    *, records: int, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """Every record that arrives later shrinks what an earlier one left, by less and less as the noise decays.

    Args:
        records, index: n so far, and the record's 1-based position.
        sensitivity: gradient sensitivity Delta >= 0.
        noise: ``gaussian`` or ``laplace``.
        c1, c2: constants of the schedule, C1 > 0.
        decay_exponent: alpha > 0; with alpha <= 1 the product tends to 0.
        noise_multiplier: factor on every scale.
        step_size: eta > 0.
        displacement, diameter: c >= 0 and D > 0.
        epsilon: >= 0.

    Returns:
        ln delta, rounded up; -inf where a factor is 0.
    """
    plan = stream(
        noise=noise, c1=c1, c2=c2, decay_exponent=decay_exponent, displacement=displacement, diameter=diameter,
        step_size=step_size, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    first = log_first(plan, sensitivity, index, epsilon)
    later = log_product(plan, epsilon, index, records)[1]
    return _joined(first, later)


def _joined(first: float, later: float) -> float:
    if first == -math.inf or later == -math.inf:
        return -math.inf
    value = first + later
    return min(0.0, value + 2.0 * UNIT * abs(value))


@bound(
    "online.shift",
    title="Stream, shift bound, mu-GDP",
    gives="mu",
    algorithms=("online",),
    reference="bok2024",
    locator="shifted interpolation for one use with decaying noise",
    formula="mu^2 = min(Delta^2/sum_{t=i}^{n} sigma_t^2, (D/eta)^2/sum_{t=i+1}^{n} sigma_t^2)",
    requires=(INDEX_IN_RANGE, GAUSSIAN_NOISE, STEP_WITHIN),
    assumes=(_STREAM, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", _ONCE),
)
def shift(
    *, records: int, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, smoothness: float, displacement: float, diameter: float,
) -> float:  # fmt: skip
    """All the noise from the record's step on hides its shift together.

    Args:
        records, index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter:
            as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        mu, rounded up.
    """
    plan = stream(
        noise=noise, c1=c1, c2=c2, decay_exponent=decay_exponent, displacement=displacement, diameter=diameter,
        step_size=step_size, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    best = own_shift_mu(plan, sensitivity, index, records)
    if records > index:
        behind = shift_spread(plan, index + 1, records)
        if behind > 0.0:
            best = min(best, up(diameter / step_size / math.sqrt(behind), 8.0))
    return max(best, 5e-324)


def own_shift_mu(plan: Stream, sensitivity: float, index: int, last: int) -> float:
    """Return Delta/sqrt(sum_{t=index}^{last} sigma_t^2), rounded up."""
    spread = shift_spread(plan, index, last)
    return up(sensitivity / math.sqrt(spread), 8.0) if spread > 0.0 else math.inf


def shift_spread(plan: Stream, first: int, last: int) -> float:
    """Return sum_{t=first}^{last} scale_t^2, rounded down."""
    return _sum_of_scales(plan, first, last, lambda r: (plan.unit / r) ** 2)


def _sum_of_scales(plan: Stream, first: int, last: int, term: Callable[[float], float]) -> float:
    """Return the sum over the steps of a decreasing function of their reach, rounded down."""
    singular = max(0.0, min(_undefined_below(plan), first * (1.0 - 1e-9)))
    low, _ = sum_slow(
        lambda t: term(plan.reach(t)[1]), first, last, singular=singular, sharpness=plan.sharpness,
        relative=_looseness(plan, term),
    )  # fmt: skip
    return max(0.0, low)


def _undefined_below(plan: Stream) -> float:
    """Return where the schedule's scale becomes infinite, if it does."""
    if plan.noise == "gaussian":
        return plan.singular(0.0)
    base = plan.c1 * (1.0 - plan.c2)
    return base ** (1.0 / plan.exponent) if base > 0.0 else 0.0


@bound(
    "online.laplace_shift",
    title="Stream, Laplace shift bounds",
    gives="log_delta",
    algorithms=("online",),
    reference="dpcalc",
    locator="shifted interpolation with Laplace noise: optimal composition, or mixtures of Gaussians",
    formula="least of the composition of epsilon Delta/sum v_t, and E delta_G(eps; (Delta/v_m)/sqrt(2 G)) over m <= n",
    requires=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(_STREAM, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", _ONCE),
    coarse=True,
    unsolved=("records",),  # only some of the places at which a later release could have been cut are tried
)
def laplace_shift(
    *, records: int, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, smoothness: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """All the noise from the record's step on hides its shift together, each step's at the least scale among them.

    Args:
        records, index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter,
            epsilon: as in `product`.
        smoothness: beta, with step_size <= 2/smoothness.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    plan = stream(
        noise=noise, c1=c1, c2=c2, decay_exponent=decay_exponent, displacement=displacement, diameter=diameter,
        step_size=step_size, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    best = recursion.log_one_step("laplace", epsilon, _own(plan, sensitivity, index))
    later = records - index
    for count in sorted({later, *range(min(later, 8)), *(2**j - 1 for j in range(later.bit_length()))}):
        if best == -math.inf:
            break
        share = shift_share(plan, sensitivity, index, index + count)
        best = min(best, composed(share, count + 1, epsilon))
        ratio = up(sensitivity / plan.scale(index + count), 4.0)
        best = min(best, laplace.mixture(ratio=ratio, later=count, epsilon=epsilon))
    return best


def shift_share(plan: Stream, sensitivity: float, index: int, last: int) -> float:
    """Return epsilon of each step, Delta/sum_{t=index}^{last} v_t, rounded up."""
    low = _sum_of_scales(plan, index, last, lambda r: plan.unit / r)
    return up(sensitivity / low, 4.0) if low > 0.0 else math.inf


def composed(share: float, count: int, epsilon: float) -> float:
    """Return ln delta of ``count`` mechanisms of pure privacy ``share`` each, composed, rounded up."""
    return composition.log_delta(epsilon0=share, log_delta0=-math.inf, count=count, epsilon=epsilon)


@bound(
    "online.hybrid",
    title="Stream, least of contraction and shift",
    gives="log_delta",
    algorithms=("online",),
    reference="dpcalc",
    locator="the non-linear recursion with decaying noise, restarted wherever the shift bound is smaller",
    formula="e_t = min(e_(t-1) h(ln(1 + (e^eps - 1)/e_(t-1)), r_B(t)), shift bound at t), e_i = A_i",
    requires=(INDEX_IN_RANGE,),
    assumes=(_STREAM, FRESH, DOMAIN, DISPLACED, "where used: " + LIPSCHITZ_STEPS, _ONCE),
    slack=f"beyond {_EXACT_STEPS} later records, 1e-3 relative to the logarithm",
    coarse=True,
)
def hybrid(
    *, records: int, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, loss_class: str, epsilon: float,
    smoothness: float | None = None,
) -> float:  # fmt: skip
    """Both bounds hold of the same number at every step, so the smaller of the two may go into the next.

    Args:
        records, index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter,
            epsilon: as in `product`.
        loss_class: see `dpcalc.spec.loss`.
        smoothness: beta, where known.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    plan = stream(
        noise=noise, c1=c1, c2=c2, decay_exponent=decay_exponent, displacement=displacement, diameter=diameter,
        step_size=step_size, noise_multiplier=noise_multiplier,
    )  # fmt: skip
    first = log_first(plan, sensitivity, index, epsilon)
    linear = _joined(first, log_product(plan, epsilon, index, records)[1])
    if linear == -math.inf:
        return linear
    shifts = noise == "gaussian" and expands_nothing(loss_class, step_size, smoothness)
    return min(linear, _walk(plan, first, index, records, epsilon, sensitivity if shifts else None))


def _walk(plan: Stream, log_e: float, index: int, last: int, epsilon: float, sensitivity: float | None) -> float:
    """Return ln e at ``last``: in blocks, each with the factor of its start in e and of its end in the noise."""
    gap = log_expm1(epsilon)
    spread = down(plan.scale(index) ** 2, 4.0) if sensitivity is not None else 0.0
    t, length, before, ease = index, 1, 0.0, 1.0
    exact = last - index <= _EXACT_STEPS
    while t < last and log_e > -1e290:
        length = 1 if exact else max(1, min(length, int(_STRIDE * t / plan.sharpness)))
        length = min(length, last - t)
        factor = recursion.log_one_step(
            plan.noise, recursion.shrunk_epsilon(gap, log_e), plan.reach(float(t + length))[1]
        )
        if factor == -math.inf:
            return factor
        after = log_e + length * factor
        t += length
        if sensitivity is not None:
            # Scales decrease, so that a block holds at least its length times the last one's square.
            spread = down(spread + length * plan.scale(float(t)) ** 2, 4.0)
            after = min(after, _shifted(epsilon, sensitivity, spread))
        strain = recursion.drift(before, factor) / 1e-3 if before else 4.0
        strain = max(strain, (log_e - after) / (0.02 * ease))
        length = max(1, int(length * min(4.0, max(0.25, 1.0 / strain if strain else 4.0))))
        ease, before = max(1.0, 0.2 * abs(after)), factor
        log_e = min(0.0, after + 2.0 * UNIT * abs(after))
    return log_e


def _shifted(epsilon: float, sensitivity: float, spread: float) -> float:
    log_mu = math.log(sensitivity) - 0.5 * math.log(spread) if sensitivity > 0.0 and spread > 0.0 else math.inf
    return recursion.log_delta_of_log_mu(epsilon, log_mu + UNIT * 16.0 * (1.0 + abs(log_mu))) if log_mu < 600.0 else 0.0


# --- limits -----------------------------------------------------------------------------------------------------------

_GROWS = "the stream grows without bound"


def _limit_terms(values: dict[str, float | str | int]) -> tuple[Stream, float]:
    plan = stream(**{name: values[name] for name in _PLAN})  # type: ignore[arg-type]
    if plan.power <= 1.0:
        vanishes = plan.power <= 0.98
        raise NotApplicable(
            "tends to 0: with this decay exponent the product over a growing stream vanishes"
            if vanishes
            else "converges too slowly to be evaluated at this decay exponent",
            "a larger --decay-exponent",
        )
    return plan, log_first(plan, float(values["sensitivity"]), int(values["index"]), float(values["epsilon"]))


_PLAN = ("noise", "c1", "c2", "decay_exponent", "displacement", "diameter", "step_size", "noise_multiplier")


@bound(
    "online.limit",
    title="Stream, limit of the product bound",
    gives="log_delta",
    kind="asymptotic",
    coarse=True,
    algorithms=("online",),
    reference=PAPER,
    locator="Theorems 6 and 7, the limit itself",
    formula="delta_inf = A_i prod_{t>i} B_t",
    requires=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit(
    *, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """What the product bound for this record falls to as the stream grows; no guarantee at any finite length.

    Args:
        index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter, epsilon:
            as in `product`.

    Returns:
        ln of the limit, rounded up.
    """
    plan, first = _limit_terms(locals())
    return _joined(first, log_product(plan, epsilon, index, math.inf)[1])


@bound(
    "online.limit_above",
    title="Stream, the paper's delta* with its misprints corrected",
    gives="log_delta",
    kind="asymptotic",
    coarse=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, corrected",
    formula="delta* = A_i exp(int_{i+1}^inf ln B_x dx), above the limit",
    requires=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_above(
    *, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """The upper end of the bracket around the limit; an upper bound on the limit, not on any finite stream.

    Args:
        index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter, epsilon:
            as in `product`.

    Returns:
        ln delta*, to rounding.
    """
    plan, first = _limit_terms(locals())
    return _bracket_end(plan, first, epsilon, index + 1.0)


@bound(
    "online.limit_below",
    title="Stream, lower end of the bracket around the limit",
    gives="log_delta",
    kind="asymptotic",
    coarse=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, with the integral from i",
    formula="A_i exp(int_i^inf ln B_x dx), below the limit",
    requires=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_below(
    *, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """The lower end of the bracket around the limit.

    Args:
        index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter, epsilon:
            as in `product`.

    Returns:
        ln of it, to rounding.
    """
    plan, first = _limit_terms(locals())
    return _bracket_end(plan, first, epsilon, float(index))


def _bracket_end(plan: Stream, first: float, epsilon: float, lower: float) -> float:
    if first == -math.inf or _log_factor(plan, epsilon)(lower) == -math.inf:
        return -math.inf
    return min(0.0, first + log_integral(plan, epsilon, lower))


@bound(
    "online.limit_printed",
    title="Stream, delta* as printed",
    gives="log_delta",
    kind="published",
    coarse=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, literally",
    formula="13: e^(-eps/2) in A_i; 15: theta(r_A exp(int_{i+1}^inf ln B_x dx))",
    requires=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_printed(
    *, index: int, sensitivity: float, noise: str, c1: float, c2: float, decay_exponent: float,
    noise_multiplier: float, step_size: float, displacement: float, diameter: float, epsilon: float,
) -> float:  # fmt: skip
    """What the paper's formulas give if taken literally: too large for Laplace noise, absurdly small for Gaussian.

    Args:
        index, sensitivity, noise, c1, c2, decay_exponent, noise_multiplier, step_size, displacement, diameter, epsilon:
            as in `product`.

    Returns:
        ln of the printed delta*, to rounding.
    """
    plan, _ = _limit_terms(locals())
    own, integral = _own(plan, sensitivity, index), log_integral(plan, epsilon, index + 1.0)
    if noise == "laplace":
        inner = -math.expm1(-0.5 * (epsilon + own))
        return min(0.0, math.log(inner) + integral) if inner > 0.0 else -math.inf
    return recursion.log_delta_of_log_mu(epsilon, math.log(own) + integral)


# --- inverse and averages ---------------------------------------------------------------------------------------------


def overtaken_at(plan: Stream, *, index: int, epsilon: float) -> float:
    """Return the least n at which the product bound has fallen to delta*, up to 1e15; inf if later."""
    target = log_integral(plan, epsilon, index + 1.0)

    def above(n: int) -> float:
        return log_product(plan, epsilon, index, n)[1] - target

    low, high = index, 10**15
    if above(high) > 0.0:
        return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if above(middle) > 0.0 else (low, middle)
    return high


def least_multiplier(
    plan: Stream, *, sensitivity: float, index: int, records: int, epsilon: float, log_delta: float
) -> float:
    """Return the least factor on all scales with which the product bound meets (epsilon, delta), rounded up."""

    def excess(s: float) -> float:
        changed = plan._replace(multiplier=s)
        own = up(_own(plan, sensitivity, index) / s, 2.0)
        first = recursion.log_one_step(plan.noise, epsilon, own)
        return max(-1e300, _joined(first, log_product(changed, epsilon, index, records)[1])) - log_delta

    ceiling = 1.0
    while excess(ceiling) > 0.0:
        ceiling *= 4.0
        if ceiling > 1e100:
            raise NotApplicable("no multiple of the noise meets the budget")
    return least(excess, 1e-100, ceiling, ulps=64)


def uniform_position(plan: Stream, *, sensitivity: float, records: int, epsilon: float) -> float:
    """Return ln of the average of the product bound over all positions, rounded up; O(records), at most 1e6."""
    if records > 10**6:
        raise NotApplicable(f"an average over {records} positions is not evaluated one by one", "at most 1e6")
    g, later, terms = _log_factor(plan, epsilon), 0.0, []
    for i in range(records, 0, -1):
        terms.append(_joined(log_first(plan, sensitivity, i, epsilon), later))
        later += g(float(i))
        if later == -math.inf:
            break
    peak = max(terms)
    if peak == -math.inf:
        return peak
    value = peak + math.log(math.fsum(math.exp(t - peak) for t in terms)) - math.log(records)
    return min(0.0, value + UNIT * (4.0 * abs(value) + 4.0 * records))
