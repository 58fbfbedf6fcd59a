"""Linear models without projection: the noise before a record's (last) step also helps to hide it.

The gradient of a record of a linear model is its features times a slope. A short step moves the slope little, so the
record's effect on the iterate is nearly known m steps in advance, and the noise of these steps can compensate for it.
Their maps multiply a displacement by at least 1 - eta beta, so it is not erased. Projections would erase it: they
remove everything beyond a wall. With R the room of the record's own step and the steps after it (k of them, or more if
they contract), b the divisor of its batch and

    S = c^2 + ... + c^(2m), c = 1 - eta beta,   V = R + S,   u = a (eta beta/b) sqrt(m) (1 + S)/V,   e = u (X + 1),
    mu_X^2 = r^2/V + 2 e r/V + e^2,

where mu_X also gets a term for slopes that move by more than X + 1 standard deviations, one has delta(eps) <=
max(delta_G(eps; mu_X), Phi(mu_X - X)) for every X >= mu_X/2 and m. The number a of slopes that move is 2 if a record is
replaced by another, and 1 if by a null record. Proofs are in docs/method.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.draft import Frozen, once
from dpcalc.model.numbers import plain, shown_below
from dpcalc.model.quantities import Adjacency, LossName, Model
from dpcalc.model.run import Run
from dpcalc.notions.gaussian import log_delta
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import UNIT, Array, down, np, ratio_up, up
from dpcalc.numerics.normal import LN_SQRT_2PI, log_ndtr, quantile
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.conditions import (
    CONVEXITY_WITHIN,
    FIXED_ORDER,
    GAUSSIAN,
    INDEX_IN_RANGE,
    NO_CLIPPING,
    ONE_ORDER,
    ONE_RELEASE,
    RANDOM_ORDER,
    STEP_WITHIN,
    UNBOUNDED,
)
from dpcalc.theorems.record import Condition, Obstacle, Unmet, lacking, theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP, PLACE, Setting, decay_rate

_ROUNDED = 1.0 + 1e-13  # more than the rounding of some twenty operations with numbers of one sign
_LONGEST = 1 << 20  # at most this many steps before the record's are tried if steps contract
_ROOMIEST = 570.0  # of ln c'^(-2(k-1)): a larger room counts as this one
_LARGEST = 1e90  # no privacy is left at a larger r
_SMALLEST = 1e-140  # a smaller r or mu counts as this one: squares of smaller ones lose digits
_LEAST_SQUARE = _SMALLEST * _SMALLEST
_NO_USE = 1e100  # an error that makes earlier noise useless
_SPARED = math.log(1000.0)  # no position needs less than this part of delta
_ROUNDS, _FEW_ROUNDS = 6, 3  # of the iteration for X, which starts too large and balances both terms
_LEAST = 1e60  # of -ln delta, beyond which X is too large to be useful
_SINGLY = 64  # the last positions are counted singly; farther ones in blocks, each as its nearest
_TAIL = 2.0 * math.sqrt(2.0 / math.pi) * math.exp(-0.5)


def _one_score(run: Run) -> Obstacle | None:
    if run.adjacency == Adjacency.NULL_RECORD and run.strong_convexity:
        return Unmet(
            "speaks of a regulariser that all records share, and a null record has none",
            "use --adjacency replace-one",
            ("adjacency",),
        )
    if run.model == Model.LINEAR or (run.loss is not None and run.loss != LossName.SOFTMAX):
        return None
    return Unmet(
        "speaks of linear models: the gradient of a record is its features times a slope",
        "give --loss with its --feature-bound, if it is one of these losses",
        ("loss",),
    )


def _least_factor(step_size: float, smoothness: float) -> float:
    """Return 1 - eta beta, rounded down."""
    moved = up(step_size * smoothness, 4.0)
    return down(1.0 - moved, 4.0) if moved else 1.0


def _short_steps(run: Run) -> Obstacle | None:
    eta, beta = run.step_size, run.smoothness
    if eta is None or beta is None:
        return lacking(run, "step_size", "smoothness")
    if _least_factor(eta, beta) > 0.0:
        return None
    return Unmet(
        f"with a step size of {plain(eta)} a step may erase all noise before it",
        f"use --step-size < 1/smoothness = {shown_below(1.0 / beta)}",
    )


ONE_SCORE = Condition("a linear model", _one_score)
SHORT_STEPS = Condition("step_size < 1/smoothness", _short_steps)
_CONDITIONS = (ONE_SCORE, STEP_WITHIN, SHORT_STEPS, CONVEXITY_WITHIN, UNBOUNDED)
_MODEL = (
    "a record's loss is a convex and smooth function of one number, <w, x>; a regulariser is the same for all records"
)
_WHOLE = "iterates are not projected (if they are, --radius or --diameter says so)"
_FORMULA = (
    "mu_X = sqrt(r^2/V + 2 e r/V + e^2) + 2 u sqrt(2/pi) e^(-X-1/2)/(X+1)^2, X >= mu_X/2, e = u (X + 1), "
    "u = a (eta beta/b) sqrt(m) (1 + S)/V, V = R + S, S = c^2 + ... + c^(2m), c = 1 - eta beta, r = Delta/(b sigma), "
    "R = k, or the room of k contracting steps"
)


class _Before(NamedTuple):
    """The noise used before a record's last step, and the cost of its earlier steps.

    Attributes:
        own: r, how far the record moves its step, in units of the noise.
        volume: V, at least 1.
        error: u, how far its slope moves meanwhile, in units of the noise.
        past: the contribution of earlier uses to mu^2.
    """

    own: float
    volume: float
    error: float
    past: float

    @property
    def least(self) -> float:
        """About mu, if no slope moved."""
        return math.sqrt(self.own * self.own / self.volume + self.past)

    def mu(self, spread: float) -> float:
        """Return mu_X for X = ``spread`` > 0, rounded up."""
        moved = self.error * (spread + 1.0)
        square = (self.own * self.own + 2.0 * self.own * moved) / self.volume + moved * moved + self.past
        square = max(square, _LEAST_SQUARE)
        return (math.sqrt(square) + self.error * _TAIL * math.exp(-spread) / (spread + 1.0) ** 2) * _ROUNDED


class _Maps(Frozen):
    """How the steps of a pass map a displacement, and how far one record's slope moves with it.

    Attributes:
        least: c, the least factor by which a step multiplies a displacement.
        rate: -ln of the largest such factor.
        slope: a eta beta, for a divisor of 1.
        steps: l.
        epochs: E.
    """

    least: float
    rate: float
    slope: float
    steps: int
    epochs: int

    @once
    def windows(self) -> tuple[int, ...]:
        """Increasing numbers of earlier steps whose noise is worth using."""
        windows: list[int] = []
        m = 1
        while m < self.steps and m <= _LONGEST and (not windows or 2.0 * windows[-1] * -math.log(self.least) < 5.0):
            windows.append(m)
            m += max(1, m // 2)
        return tuple(windows)

    def earlier(self, m: int) -> float:
        """Return S of m steps, rounded down."""
        if self.least == 1.0:
            return float(m)
        square = self.least * self.least
        return square * -math.expm1(m * math.log(square)) / (1.0 - square) / _ROUNDED

    def room(self, behind: int) -> float:
        """Return R of a record's own step and the steps after it, ``behind`` of them in all, rounded down."""
        if self.rate == 0.0 or behind == 1:
            return float(behind)
        lag = min(2.0 * self.rate * (behind - 1), _ROOMIEST)
        whole = math.expm1(-2.0 * self.rate * behind) / math.expm1(-2.0 * self.rate)  # 1 + c'^2 + ... + c'^(2(k-1))
        return whole * math.exp(lag) / _ROUNDED**10

    def plain(self, own: float, behind: int) -> float:
        """Return mu from the noise of the record's own steps and the steps after them alone, rounded up."""
        if self.epochs == 1:
            return own / math.sqrt(self.room(behind)) * _ROUNDED
        return self._by_noise_behind(own, behind, self.epochs)

    def _by_noise_behind(self, own: float, behind: int, uses: int) -> float:
        from dpcalc.theorems.many_passes.repeated_allocation import Uses, contracting_mu

        return contracting_mu(Uses(own, 1, 1.0, self.steps, behind, uses), self.rate) * _ROUNDED

    def before(self, own: float, divisor: int, nearest: int, farthest: int) -> Iterator[_Before]:
        """Yield the noise that hides a record followed by ``nearest`` to ``farthest`` steps, its own included."""
        room, there = self.room(nearest), self.steps - (farthest if self.epochs == 1 else 1)
        for m in sorted({min(m, there) for m in (*self.windows, self.steps) if there}):
            earlier, past = self.earlier(m), 0.0
            if self.epochs > 1:  # the use one pass ago has the steps up to the window
                past = self._by_noise_behind(own, self.steps - m, self.epochs - 1) ** 2 * _ROUNDED
            volume = room + earlier
            error = self.slope / divisor * math.sqrt(m) * (1.0 + earlier) / volume
            yield _Before(own, volume, error * _ROUNDED, past)


def _maps(run: Setting | Setting) -> _Maps:
    """Return how the steps of a run map a displacement."""
    moved = up(run.step_size * run.smoothness, 4.0)
    contracts = run.strong_convexity and all(alike.size == alike.divisor for alike in run.layout.positions)
    rate = decay_rate(run.step_size, run.smoothness, run.strong_convexity) if contracts else 0.0
    slopes = 1.0 if run.adjacency == Adjacency.NULL_RECORD else 2.0
    least = _least_factor(run.step_size, run.smoothness)
    epochs = run.epochs or 1  # None for one pass
    return _Maps(least=least, rate=rate, slope=slopes * moved, steps=run.layout.steps, epochs=epochs)


# --- a fixed order ----------------------------------------------------------------------------------------------------


@theorem(
    "iteration.linear_model",
    title="One pass over a linear model, with the noise before the record",
    needs=(*PLACE, *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?", "adjacency?"),
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="noise before a record's step, used along what its gradients are expected to differ by",
    formula="delta(eps) = min over X and m of max(delta_G(eps; mu_X), Phi(mu_X - X)), " + _FORMULA,
    conditions=(INDEX_IN_RANGE, *_CONDITIONS),
    assumes=(FIXED_ORDER, _MODEL, GAUSSIAN, _WHOLE, ONE_RELEASE, NO_CLIPPING),
)
def one_pass(run: Setting) -> Profile:
    """Short steps forget little, so the noise of the steps before the record's own also hides it: some 1/(2 eta beta)
    steps of noise for every record, including the last one.

    >>> run = Setting(records=10000, index=10000, batch_size=100, sensitivity=2.0, noise_std=0.05, step_size=0.1,
    ...               smoothness=0.25)
    >>> round(one_pass(run).profile(0.5), 6)
    -18.733358
    """
    return _of_place(run)


@theorem(
    "multi_epoch.linear_model",
    title="Cyclic passes over a linear model, with the noise before the last use",
    needs=(*PLACE, *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?", "adjacency?", "epochs"),
    algorithms=("cyclic",),
    reference="dpcalc",
    locator="noise before a record's last step, used along what its gradients are expected to differ by",
    formula="as iteration.linear_model, and for E >= 2 r^2 ((E-2)/l + 1/(l-m)) in mu_X^2 for the uses before the last",
    conditions=(INDEX_IN_RANGE, *_CONDITIONS),
    assumes=("the same fixed order in every pass", _MODEL, GAUSSIAN, _WHOLE, ONE_RELEASE, NO_CLIPPING),
)
def cyclic(run: Setting) -> Profile:
    """Nearly a pass of noise follows each use but the last. The last one costs most, and the noise right before it
    helps to hide it.

    >>> run = Setting(records=10000, index=10000, batch_size=100, sensitivity=2.0, noise_std=0.05, step_size=0.1,
    ...               smoothness=0.25, epochs=20)
    >>> round(cyclic(run).profile(0.5), 6)
    -7.435969
    """
    return _of_place(run)


def _of_place(run: Setting) -> Profile:
    place = run.layout.place(run.index)
    own, maps = max(_SMALLEST, ratio_up(run.sensitivity, place.divisor * run.noise_std)), _maps(run)
    return Profile(lambda epsilon: _at(epsilon, maps, own, place.divisor, place.tail))


def _at(epsilon: float, maps: _Maps, own: float, divisor: int, behind: int) -> float:
    """Return ln delta of a record followed by ``behind`` steps, its own included; rounded up."""
    if own > _LARGEST:
        return 0.0
    plain_mu = maps.plain(own, behind)
    least = log_delta(mu=plain_mu, epsilon=epsilon)
    for before in maps.before(own, divisor, behind, behind):
        mu, left = plain_mu, log_delta(mu=before.least, epsilon=epsilon)
        for _ in range(_ROUNDS):
            if not -_LEAST < left < 0.0:
                break
            spread = mu + max(0.0, quantile(left, upwards=False))
            mu = before.mu(spread)
            tail = log_ndtr(mu - spread)
            tail += UNIT * (64.0 + 16.0 * abs(tail) + 4.0 * spread * spread)
            left = log_delta(mu=mu, epsilon=epsilon)
            least = min(least, max(left, tail))
    return least


# --- a random order ---------------------------------------------------------------------------------------------------


@theorem(
    "shuffle.linear_model",
    title="Shuffled pass over a linear model, with the noise before the record",
    needs=(*BATCHES, *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?", "adjacency?"),
    algorithms=("shuffled", "rotation"),
    reference="dpcalc",
    locator="noise before a record's step, averaged over where the record falls",
    formula="delta(eps) = (1/n) sum over records of min over X and m of max(delta_G(eps; mu_X), Phi(mu_X - X)), "
    + _FORMULA,
    conditions=_CONDITIONS,
    assumes=(RANDOM_ORDER, _MODEL, GAUSSIAN, _WHOLE, ONE_RELEASE, NO_CLIPPING),
    slow=True,
)
def shuffled(run: Setting) -> Profile:
    """At each position the noise before and after the record's step hides it. With a public order the last few batches
    reveal most about a record, and these have the most noise before them.

    >>> run = Setting(records=10000, batch_size=100, sensitivity=2.0, noise_std=0.05,
    ...                     step_size=0.1, smoothness=0.25)
    >>> round(shuffled(run).profile(0.1), 6)
    -6.747947
    """
    return Profile(_Places.of(run).log_delta)


@theorem(
    "shuffled_epochs.once_linear_model",
    title="One random order for all epochs over a linear model, with the noise before the last use",
    needs=(*BATCHES, *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?", "adjacency?", "epochs"),
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="noise before a record's last step, averaged over where the record falls",
    formula="delta(eps) = (1/n) sum over records of what multi_epoch.linear_model says of their places",
    conditions=_CONDITIONS,
    assumes=(ONE_ORDER, _MODEL, GAUSSIAN, _WHOLE, ONE_RELEASE, NO_CLIPPING),
    slow=True,
)
def one_order(run: Setting) -> Profile:
    """The record keeps its position in every epoch: its last use, which costs most, is also hidden by the noise before
    it.

    >>> run = Setting(records=10000, batch_size=100, sensitivity=2.0, noise_std=0.05,
    ...                     step_size=0.1, smoothness=0.25, epochs=20)
    >>> round(one_order(run).profile(0.1), 6)
    -3.327119
    """
    return Profile(_Places.of(run).log_delta)


class _Places(NamedTuple):
    """The positions of a record in a pass, in blocks.

    Attributes:
        shares: the probabilities of the blocks, shape (blocks,).
        plain: mu of each from the noise after the record alone, shape (blocks,).
        own, volume, error, past: as in `_Before`, shape (windows, blocks); a volume of 1 and a huge error if a block
        has no such window.
    """

    shares: Array
    plain: Array
    own: Array
    volume: Array
    error: Array
    past: Array

    @classmethod
    def of(cls, run: Setting) -> _Places:
        """Return the positions of a run."""
        maps = _maps(run)
        columns: list[tuple[float, float, list[_Before]]] = []
        windows = len(maps.windows) + 1
        for alike in run.layout.positions:
            own = max(_SMALLEST, min(_LARGEST, ratio_up(run.sensitivity, alike.divisor * run.noise_std)))
            for nearest, places in _blocks(alike):
                befores = list(maps.before(own, alike.divisor, nearest, nearest + places - 1))
                befores += [_Before(own, 1.0, _NO_USE, 0.0)] * (windows - len(befores))
                plain_mu = maps.plain(own, nearest)
                columns.append((places * alike.size / run.records, plain_mu, befores))
        shares, plain_mus, rows = zip(*columns, strict=True)
        table = np.array(rows).reshape(len(columns), windows, 4).transpose(2, 1, 0)
        return cls(np.array(shares), np.array(plain_mus), *table)

    def log_delta(self, epsilon: float) -> float:
        """Return ln delta, rounded up."""
        from dpcalc.numerics.normal_arrays import log_hockey_stick_up

        def left_by(mus: Array) -> Array:
            return log_hockey_stick_up(epsilon, mus)

        if float(self.own.max(initial=0.0)) == _LARGEST:
            return 0.0
        known = left_by(self.plain)
        least = np.sqrt(self.own * self.own / self.volume + self.past).min(axis=0, initial=math.inf)
        left = left_by(np.minimum(self.plain, least))
        mus, least_known = self.plain, known
        for _ in range(_FEW_ROUNDS):
            total = self._mean(np.minimum(least_known, left))
            if not total > -_LEAST:
                break
            spreads = mus + _quantiles(np.maximum(left, total - _SPARED))
            mus = np.minimum(self.plain, self._mus(spreads))
            left = left_by(mus)
            least_known = np.minimum(least_known, np.maximum(left, _log_tails(spreads - mus)))
        return self._mean(least_known)

    def _mus(self, spreads: Array) -> Array:
        """Return the least mu_X of every block for its X in ``spreads``, as in `_Before.mu`."""
        moved = self.error * (spreads + 1.0)
        with np.errstate(over="ignore"):  # useless values may be infinite
            square = (self.own * self.own + 2.0 * self.own * moved) / self.volume + moved * moved + self.past
        square = np.maximum(square, _LEAST_SQUARE)
        farther = self.error * (_TAIL * np.exp(-spreads) / (spreads + 1.0) ** 2)
        least: Array = (np.sqrt(square) + farther).min(axis=0, initial=math.inf) * _ROUNDED
        return least

    def _mean(self, left: Array) -> float:
        """Return ln of the average over the positions, rounded up and at most 0."""
        from dpcalc.numerics.normal_arrays import log_sum_exp

        total = log_sum_exp(left + np.log(self.shares))
        return min(0.0, total + UNIT * (64.0 + 8.0 * abs(total) + 8.0 * len(left)))


def _log_tails(x: Array) -> Array:
    """Return ln Phi(-x), rounded up; 0 for x < 0."""
    from dpcalc.numerics.normal_arrays import mills

    x = np.minimum(x, _LARGEST)
    inside = np.maximum(x, 0.0)
    value = np.log(mills(inside)) - 0.5 * inside * inside - LN_SQRT_2PI
    return np.where(x < 0.0, 0.0, np.minimum(0.0, value + UNIT * (64.0 + 8.0 * np.abs(value))))


def _quantiles(logs: Array) -> Array:
    """Return about x >= 0 with ln Phi(-x) = ``logs``: three steps of Newton's method from an upper bound."""
    from dpcalc.numerics.normal_arrays import mills

    x = np.sqrt(np.maximum(0.0, -2.0 * (logs + math.log(2.0))))
    for _ in range(3):
        x = np.maximum(0.0, x + (_log_tails(x) - logs) * mills(x))
    return x


def _blocks(alike: Positions) -> Iterator[tuple[int, int]]:
    """Yield the positions of a class of batches in blocks: (the one nearest to the end, their number)."""
    at, end = alike.first, alike.first + alike.steps
    while at < end:
        places = min(end - at, max(1, at // _SINGLY))
        yield at, places
        at += places
