"""A growing stream in which every record gets less noise than the last (Sordello, Bu and Dong, Theorems 6 and 7).

Record j is used in step j with the noise scale of `stream_noise.Stream`, which falls with j. For record i of n,

    A_i = h(eps, Delta/scale_i),   B_t = h(eps, c D/(eta scale_t)),   delta_n = A_i prod_{t=i+1}^n B_t.

delta_n falls with n towards a limit, and grows with i: the newest record has A_n, which tends to 1. The paper's
guarantee is an upper bound on the limit, delta* = A_i exp(int_{i+1}^inf ln B_x dx). It holds for a finite stream only
once delta_n has fallen to it.
"""

from __future__ import annotations

import bisect
import functools
import math
from typing import NamedTuple

from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Noise
from dpcalc.notions.guarantee import Gdp, Profile
from dpcalc.numerics.floats import UNIT, down, log_expm1, up
from dpcalc.theorems.conditions import DOMAIN, GAUSSIAN_NOISE, INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN
from dpcalc.theorems.contraction import laplace, recursion
from dpcalc.theorems.contraction.chords import drift, next_length
from dpcalc.theorems.contraction.contraction import DISPLACED, FRESH, LIPSCHITZ_STEPS, PAPER
from dpcalc.theorems.contraction.laplace import expands_nothing
from dpcalc.theorems.contraction.stream_noise import Stream
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BOUNDED_STEP, Setting

_STREAM = "one pass over the stream in order of arrival, each record used once, with the noise of its schedule"
_ONCE = "the latest iterate is released once; releases at several times compose"
_LINEAR = (_STREAM, FRESH, DOMAIN, DISPLACED, _ONCE)
_EXACT_STEPS = 4096
_STRIDE = 2e-3
_LITTLE = 1e-7  # of a logarithm: the loss of blocks that double the stream; a walk may lose 1e-3
_COMPOSED_ONE_BY_ONE = 8  # the Laplace shift bound is tried after each of this many records, then after 2^j
_LIMIT_ERRATUM = (
    "The paper states (eps, delta*)-DP as n grows. delta* bounds the limit only: in its Figures 4 and 5 delta_n is "
    "above delta* until n = 1.9e9 and 1.5e8. Its equation 13 has e^(-eps/2) for e^(eps/2), its equation 15 the "
    "exponential of the integral inside the argument of theta; the rate is n^-(alpha-1), not 1/ln n. The worst record "
    "is the newest, whose delta tends to 1: there is no guarantee for all records at once."
)


# --- settings ---------------------------------------------------------------------------------------------------------


class OnStream(Setting):
    """A record of a stream, on a bounded domain. Every setting includes the fields of `Stream`.

    Attributes:
        records, index: n so far, and the record's 1-based position.
        sensitivity: gradient sensitivity Delta >= 0.
        noise, c1, c2, decay_exponent, schedule_factor: the schedule of the noise, see `Stream`.
        step_size: eta > 0.
        displacement, diameter: c >= 0 and D > 0.
    """

    @functools.cached_property
    def stream(self) -> Stream:
        """The noise of the stream."""
        return Stream.of(self)

    @functools.cached_property
    def shifts(self) -> bool:
        """Whether the Gaussian shift bound holds with 1-Lipschitz maps."""
        return self.noise == Noise.GAUSSIAN and expands_nothing(self.loss_class, self.step_size, self.smoothness)


SMOOTH_STREAM = (
    "records", "index", "sensitivity", "noise", "c1", "c2", "decay_exponent", "schedule_factor", "step_size",
    "smoothness", "displacement", "diameter",
)  # fmt: skip


ENDLESS_STREAM = ("index", "sensitivity", "noise", "c1", "c2", "decay_exponent", "schedule_factor", *BOUNDED_STEP)


# --- finite streams ---------------------------------------------------------------------------------------------------


@theorem(
    "online.product",
    title="Stream, product of contraction coefficients",
    needs=("records", *ENDLESS_STREAM),
    algorithms=("online",),
    reference=PAPER,
    locator="Theorems 6 and 7 at a finite n, with the displacement factor corrected",
    formula="delta_n(eps) = A_i prod_{t=i+1}^{n} B_t",
    conditions=(INDEX_IN_RANGE,),
    assumes=_LINEAR,
    erratum=_LIMIT_ERRATUM,
    slack="1e-9 relative to the logarithm; the product over up to 1e15 records is enclosed",
    slow=True,
    weakly_convex=True,
)
def product(run: OnStream) -> Profile:
    """Every later record shrinks the trace of an earlier one, by less and less as the noise decays.

    >>> run = OnStream(records=100, index=2, sensitivity=1.0, noise=Noise.LAPLACE, c1=1.0, c2=0.0, decay_exponent=1.0,
    ...                schedule_factor=1.0, step_size=1.0, displacement=1.0, diameter=1.0)
    >>> round(math.exp(product(run).profile(0.0)), 9)  # 1/2 2/3 ... 99/100
    0.01
    """
    return Profile(lambda epsilon: run.stream.log_product(epsilon, run.sensitivity, run.index, run.records))


@theorem(
    "online.shift",
    title="Stream, shift bound, mu-GDP",
    needs=SMOOTH_STREAM,
    algorithms=("online",),
    reference="bok2024",
    locator="shifted interpolation for one use with decaying noise",
    formula="mu^2 = min(Delta^2/sum_{t=i}^{n} sigma_t^2, (D/eta)^2/sum_{t=i+1}^{n} sigma_t^2)",
    conditions=(INDEX_IN_RANGE, GAUSSIAN_NOISE, STEP_WITHIN),
    assumes=(_STREAM, LIPSCHITZ_STEPS, "fresh Gaussian noise in every step", _ONCE),
)
def shift(run: OnStream) -> Gdp:
    """All the noise from the record's step on together hides its shift."""
    own = shift_mu(run.sensitivity, run.stream.total_variance(run.index, run.records))
    if run.records == run.index:
        return Gdp(own)
    whole = shift_mu(run.diameter / run.step_size, run.stream.total_variance(run.index + 1, run.records))
    return Gdp(min(own, whole))


def shift_mu(distance: float, variance: float) -> float:
    """Return distance/sqrt(variance), rounded up: the GDP parameter of a shift that this much noise hides."""
    return max(5e-324, up(distance / math.sqrt(variance), 8.0)) if variance > 0.0 else math.inf


@theorem(
    "online.laplace_shift",
    title="Stream, Laplace shift bounds",
    needs=SMOOTH_STREAM,
    algorithms=("online",),
    reference="dpcalc",
    locator="shifted interpolation with Laplace noise: optimal composition, or mixtures of Gaussians",
    formula="least of the composition of epsilon Delta/sum v_t, and E delta_G(eps; (Delta/v_m)/sqrt(2 G)) over m <= n",
    conditions=(INDEX_IN_RANGE, LAPLACE_NOISE, ONE_DIMENSION, STEP_WITHIN),
    assumes=(_STREAM, LIPSCHITZ_STEPS, "fresh Laplace noise in every step, one dimension", _ONCE),
    slow=True,
    not_monotone_in=("records",),  # only some of the possible ends of the shift are tried
)
def laplace_shift(run: OnStream) -> Profile:
    """All the noise from the record's step on together hides its shift, with every step at the least scale among
    them."""

    def profile(epsilon: float) -> float:
        best = run.stream.log_first(epsilon, run.sensitivity, run.index)
        later = run.records - run.index
        for count in sorted({later, *range(min(later, _COMPOSED_ONE_BY_ONE)), *laplace.powers_less_one(later)}):
            if best == -math.inf:
                break
            best = min(best, _laplace_shift(run, count, epsilon))
        return best

    return Profile(profile)


def _laplace_shift(run: OnStream, later: int, epsilon: float) -> float:
    """Return the least shift bound on ln delta that uses the noise of ``later`` records."""
    last = run.index + later
    share = shift_share(run.stream, run.sensitivity, run.index, last)
    ratio = up(run.sensitivity / run.stream.scale(last), 4.0)
    return min(
        laplace.composed_shares(share=share, count=later + 1, epsilon=epsilon),
        laplace.LaplaceShift(ratio, epsilon).mixture(later),
    )


def shift_share(stream: Stream, sensitivity: float, index: int, last: int) -> float:
    """Return epsilon of each step, Delta/sum_{t=index}^{last} v_t, rounded up."""
    total = stream.total_scale(index, last)
    return up(sensitivity / total, 4.0) if total > 0.0 else math.inf


@theorem(
    "online.hybrid",
    title="Stream, least of contraction and shift",
    needs=("records", *ENDLESS_STREAM, "loss_class", "smoothness?"),
    algorithms=("online",),
    reference="dpcalc",
    locator="the non-linear recursion with decaying noise, restarted wherever the shift bound is smaller",
    formula="e_t = min(e_(t-1) h(ln(1 + (e^eps - 1)/e_(t-1)), r_B(t)), shift bound at t), e_i = A_i",
    conditions=(INDEX_IN_RANGE,),
    assumes=(_STREAM, FRESH, DOMAIN, DISPLACED, "where used: " + LIPSCHITZ_STEPS, _ONCE),
    slack=f"beyond {_EXACT_STEPS} later records, 1e-3 relative to the logarithm",
    slow=True,
    weakly_convex=True,
)
def hybrid(run: OnStream) -> Profile:
    """Both bounds hold of the same number at every step, so the smaller of the two may go into the next."""

    def profile(epsilon: float) -> float:
        linear = run.stream.log_product(epsilon, run.sensitivity, run.index, run.records)
        return min(linear, _walk(run, epsilon)) if linear > -math.inf else linear

    return Profile(profile)


def _walk(run: OnStream, epsilon: float) -> float:
    """Return ln e at the end, in blocks: each uses e at its start and the noise at its end."""
    exact = run.records - run.index <= _EXACT_STEPS
    return _walk_of(run.changed(records=run.index), epsilon, exact).log_e(run.records)


class _State(NamedTuple):
    """The state of a walk after record t: ln e, the variance of the shift bound, and what decides the next block."""

    t: int
    log_e: float
    variance: float
    length: int = 1
    before: float = 0.0
    ease: float = 1.0

    @property
    def ended(self) -> bool:
        """Whether the walk has ended."""
        return self.log_e <= -1e290


class _Walk:
    """The walk along a stream, as far as it was needed: shorter streams end within one of its blocks.

    A search over the number of records evaluates many lengths of one stream, which share the walk.
    """

    def __init__(self, run: OnStream, epsilon: float, exact: bool) -> None:
        self._run, self._epsilon, self._exact, self._gap = run, epsilon, exact, log_expm1(epsilon)
        variance = down(run.stream.scale(run.index) ** 2, 4.0) if run.shifts else 0.0
        first = _State(run.index, run.stream.log_first(epsilon, run.sensitivity, run.index), variance)
        self._states, self._ends = [first], [first.t]

    def log_e(self, records: int) -> float:
        """Return ln e of a stream of this many records, at least the index."""
        while self._ends[-1] < records and not self._states[-1].ended:
            self._states.append(self._after(self._states[-1]))
            self._ends.append(self._states[-1].t)
        state = self._states[bisect.bisect_right(self._ends, records) - 1]
        return state.log_e if state.t == records or state.ended else self._after(state, records - state.t).log_e

    def _after(self, state: _State, most: int | None = None) -> _State:
        """Return the state after a further block of at most ``most`` records."""
        run, stream = self._run, self._run.stream
        length = 1 if self._exact else max(1, min(state.length, int(_STRIDE * state.t / stream.sharpness)))
        if self._idle(state):
            length = state.t
        length = length if most is None else min(length, most)
        t, variance = state.t + length, state.variance
        reach = stream.reach(float(t))[1]
        factor = recursion.log_one_step(run.noise, recursion.shrunk_epsilon(self._gap, state.log_e), reach)
        if factor == -math.inf:
            return _State(t, factor, variance)
        after = state.log_e + length * factor
        if run.shifts:
            # Scales decrease, so the variance of a block is at least its length times the last scale's square.
            variance = down(variance + length * stream.scale(float(t)) ** 2, 4.0)
            after = min(after, _log_shifted(run.sensitivity, variance, self._epsilon))
        strain = drift(state.before, factor) / 1e-3 if state.before else 4.0
        length = next_length(length, max(strain, (state.log_e - after) / (0.02 * state.ease)))
        ease = max(1.0, 0.2 * abs(after))
        return _State(t, min(0.0, after + 2.0 * UNIT * abs(after)), variance, length, factor, ease)

    def _idle(self, state: _State) -> bool:
        """Return whether doubling the records changes little: then a block of them may use the noise of its end."""
        room = _LITTLE / state.t
        if not 0.0 < -state.before <= room * -state.log_e:
            return False
        return not self._run.shifts or self._run.stream.scale(float(state.t)) ** 2 <= room * state.variance


@functools.lru_cache(maxsize=8)
def _walk_of(run: OnStream, epsilon: float, exact: bool) -> _Walk:
    return _Walk(run, epsilon, exact)


def _log_shifted(distance: float, variance: float, epsilon: float) -> float:
    """Return the Gaussian shift bound on ln delta, rounded up."""
    log_mu = math.log(distance) - 0.5 * math.log(variance) if distance > 0.0 and variance > 0.0 else math.inf
    return recursion.log_delta_of_log_mu(epsilon, log_mu + UNIT * 16.0 * (1.0 + abs(log_mu))) if log_mu < 600.0 else 0.0


# --- limits -----------------------------------------------------------------------------------------------------------

_GROWS = "the stream grows without bound"


def _converging(stream: Stream) -> Stream:
    """Return the stream if its product over all records is above 0 and can be evaluated.

    Raises:
        NotApplicable: otherwise.
    """
    if stream.power > 1.0:
        return stream
    vanishes = stream.power <= 0.98
    raise NotApplicable(
        "tends to 0: with this decay exponent the product over a growing stream vanishes"
        if vanishes
        else "converges too slowly to be evaluated at this decay exponent",
        "a larger --decay-exponent",
    )


@theorem(
    "online.limit",
    title="Stream, limit of the product bound",
    needs=ENDLESS_STREAM,
    kind="asymptotic",
    slow=True,
    algorithms=("online",),
    reference=PAPER,
    locator="Theorems 6 and 7, the limit itself",
    formula="delta_inf = A_i prod_{t>i} B_t",
    conditions=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
    limit_of=("online.product", 1e-6),
)
def limit(run: OnStream) -> Profile:
    """The limit of the product bound for this record as the stream grows; no guarantee at any finite length."""

    def profile(epsilon: float) -> float:
        return _converging(run.stream).log_product(epsilon, run.sensitivity, run.index, math.inf)

    return Profile(profile)


@theorem(
    "online.limit_above",
    title="Stream, the paper's delta* with its misprints corrected",
    needs=ENDLESS_STREAM,
    kind="asymptotic",
    slow=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, corrected",
    formula="delta* = A_i exp(int_{i+1}^inf ln B_x dx), above the limit",
    conditions=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_above(run: OnStream) -> Profile:
    """The upper end of the bracket around the limit; an upper bound on the limit, not on any finite stream."""
    return Profile(lambda epsilon: _log_bracket(run, epsilon, run.index + 1.0))


@theorem(
    "online.limit_below",
    title="Stream, lower end of the bracket around the limit",
    needs=ENDLESS_STREAM,
    kind="asymptotic",
    slow=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, with the integral from i",
    formula="A_i exp(int_i^inf ln B_x dx), below the limit",
    conditions=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_below(run: OnStream) -> Profile:
    """The lower end of the bracket around the limit."""
    return Profile(lambda epsilon: _log_bracket(run, epsilon, float(run.index)))


def _log_bracket(run: OnStream, epsilon: float, lower: float) -> float:
    """Return ln(A_i exp(int_lower^inf ln B_x dx)), to rounding."""
    stream = _converging(run.stream)
    first = stream.log_first(epsilon, run.sensitivity, run.index)
    if first == -math.inf or stream.log_factor(epsilon, lower) == -math.inf:
        return -math.inf
    return min(0.0, first + stream.log_integral(epsilon, lower))


@theorem(
    "online.limit_printed",
    title="Stream, delta* as printed",
    needs=ENDLESS_STREAM,
    kind="published",
    slow=True,
    algorithms=("online",),
    reference=PAPER,
    locator="equations 13 and 15, literally",
    formula="13: e^(-eps/2) in A_i; 15: theta(r_A exp(int_{i+1}^inf ln B_x dx))",
    conditions=(INDEX_IN_RANGE,),
    assumes=(*_LINEAR, _GROWS),
    erratum=_LIMIT_ERRATUM,
)
def limit_printed(run: OnStream) -> Profile:
    """What the paper's formulas give if taken literally: too large for Laplace noise, absurdly small for Gaussian."""

    def profile(epsilon: float) -> float:
        stream = _converging(run.stream)
        own, integral = stream.own_ratio(run.sensitivity, run.index), stream.log_integral(epsilon, run.index + 1.0)
        if run.noise == Noise.LAPLACE:
            inner = -math.expm1(-0.5 * (epsilon + own))
            return min(0.0, math.log(inner) + integral) if inner > 0.0 else -math.inf
        return recursion.log_delta_of_log_mu(epsilon, math.log(own) + integral)

    return Profile(profile)
