"""DP-SGD on clipped gradients of a linear model, with only the last iterate released.

Clipped gradients of a linear model are those of a convex loss (`dpcalc.model.clipping`).

With Poisson or fixed batches a step contracts if its batch is not too large: the sum of a batch is divided by a
constant, and a Poisson batch may be large. Lengths are in units of step_size clip/batch_size, the effect of one clipped
gradient; the noise of a step is then z.

With shuffled or full batches the run is one of `shuffled_epochs` or of `noisy_gd`: a batch is divided by a constant,
and a shorter one contracts no less than the regulariser does. A record moves the sum of its batch by the clipping norm
C, and by 2 C if another record replaces it; the noise on the sum is z C.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from dpcalc.model import loss_class as loss
from dpcalc.model.quantities import Adjacency, LastBatch, Releases, Sampling
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Composition, Gdp, Hints, Profile
from dpcalc.notions.profiles import COMPOSED, Certificate
from dpcalc.numerics.floats import down, ratio_up, up
from dpcalc.theorems.conditions import NOT_LINEAR, ONE_RELEASE, STEP_WITHIN
from dpcalc.theorems.many_passes import shuffled_epochs
from dpcalc.theorems.many_passes.repeated_allocation import Uses, bounded_mu, contracting_mu
from dpcalc.theorems.record import Condition, Missing, NotNeeded, Obstacle, Unmet, requires, theorem
from dpcalc.theorems.sampled import pairs
from dpcalc.theorems.sampled.hidden_past import (
    Chain,
    Draws,
    Past,
    Plan,
    Search,
    TooLarge,
    past_pair,
    sample_mu,
    split_certificate,
)
from dpcalc.theorems.sampled.sampled_steps import ENDS_IN_SHUFFLED, LARGEST_GROUP, sampling_is
from dpcalc.theorems.sampled.settings import EpochsOfBatches
from dpcalc.theorems.setting import Setting, decay_rate

if TYPE_CHECKING:
    from fractions import Fraction

    from dpcalc.notions.pld import Pair


CONVEX_IF_CLIPPED = (
    "clipped gradients are those of a convex and smooth loss, as for a linear model; step_size <= 2/smoothness"
)


_ROUNDED_TO = 2**46  # K may be smaller by this share, for what rounded its factors up before it was a whole number

_LEAST_NOISE, _LEAST_NOISE_OF_EPOCHS = 0.1, 0.05  # with less of it all is composed, by pairs that are made for that
_MANY_STEPS = 1 << 44  # so many larger factors would be noticed


class HiddenRun(Setting):
    """Steps on batches drawn at random, over a linear model."""

    @property
    def apart(self) -> float:
        """The distance of two steps after a use of the record: 2 if another record replaces it."""
        moved = self._of_one_size and self.adjacency in (Adjacency.ADD, Adjacency.REMOVE, Adjacency.ADD_REMOVE)
        return 2.0 if moved or self.adjacency == Adjacency.REPLACE_ONE else 1.0

    @property
    def _of_one_size(self) -> bool:
        """Whether all batches have one size: the record then displaces another one, and every batch contracts."""
        return self.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)

    @property
    def _counts_draws(self) -> bool:
        """Whether several draws of a batch may be of the group, or of the record, in the place of others."""
        return self.sampling == Sampling.WITH_REPLACEMENT or (self.sampling == Sampling.FIXED and self.group_size > 1)

    @property
    def _of_mixtures(self) -> bool:
        """Whether a step may use records of the group several times."""
        return self._counts_draws or self.group_size > 1

    @property
    def factor(self) -> float:
        """c, the contraction of a step on a batch that is not too large, rounded up."""
        beta = self.smoothness if self._of_one_size else self.regularisation
        return loss.contraction(step_size=self.step_size, smoothness=beta, strong_convexity=self.regularisation)

    @property
    def chain(self) -> Chain:
        """The steps as maps, uses and noise."""
        wide = math.inf
        if self.clip is not None and math.isfinite(self.diameter):
            wide = ratio_up(up(self.diameter * self.batch_size), down(self.step_size * self.clip))
        noise = self.noise_multiplier
        if self.spoilt:  # T such factors are at most e^(2^-45 T) times c^T, and so is a shift
            noise = down(noise / (1.0 + 2.0**-44 * self.steps), 4.0)
        return Chain(self.steps, self.factor, self.apart, noise, wide)

    @property
    def bins(self) -> int:
        """The number of steps of an epoch."""
        return -(-self.records // self.batch_size)

    @property
    def draws(self) -> Draws:
        """The law of the uses of the record, or of a group, in a batch; for groups an upper bound in stochastic
        order."""
        from fractions import Fraction

        if self.sampling == Sampling.BALLS_IN_BINS:
            return Draws(1, Fraction(1, self.bins), self.bins)
        size = self.group_size
        if self.sampling == Sampling.WITH_REPLACEMENT:
            return Draws(self.batch_size, Fraction(size, self.records))
        # Without replacement a member is in with at most this chance, whichever others are.
        left = self.records - (size - 1 if self.sampling == Sampling.FIXED else 0)
        return Draws(size, Fraction(self.batch_size, left))

    @property
    def searches(self) -> list[Search]:
        """The plans of the applicable theorems, by what becomes known about early batches.

        Where one of the two data sets is as good as without the record, nothing need be; where both are compared with a
        run without it, each of them is half as far from that. Else it may be told which batches had the record.
        """
        mu, whole, draws = self.apart / self.noise_multiplier, self.chain, self.draws
        rate = min(1.0, draws.trials * float(draws.chance))
        told = Search(whole, draws, Past.TOLD, mu, rate, self.too_large)
        if self._of_one_size and self.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD):
            return [told]
        if self.adjacency == Adjacency.REPLACE_ONE:
            return [told, told._replace(chain=whole._replace(use=1.0), past=Past.MIRRORED)]
        return [told._replace(past=Past.SECRET)]

    @property
    def plan(self) -> Plan | None:
        """The best plan by approximations; None for plain composition."""
        if self._of_mixtures and self.noise_multiplier < _LEAST_NOISE:
            return None
        if self.sampling == Sampling.BALLS_IN_BINS and not _LEAST_NOISE_OF_EPOCHS <= self.noise_multiplier <= 1e6:
            return None
        return min((search.best() for search in self.searches), key=lambda found: found[0])[1]

    def planned(self, plan: Plan) -> Composition:
        """Return the guarantee of a plan: every one holds."""
        chain = self.chain._replace(use=1.0) if plan.past == Past.MIRRORED else self.chain
        past = past_pair(chain, plan, self.draws)
        if self.sampling in (Sampling.POISSON, Sampling.FIXED) and not self._counts_draws:
            composed = pairs.in_each_order(self.adjacency, [(past, 1), *self._last(plan, 0.0)])
        else:  # pairs that are best made for a certain delta

            def order(backward: bool, log_delta: float) -> list[tuple[Pair, int]]:
                from dpcalc.notions import pld

                parts = [(past, 1), *self._last(plan, log_delta)]
                return [(pld.exchanged(pair), count) for pair, count in parts] if backward else parts

            one, other = (functools.lru_cache(maxsize=8)(functools.partial(order, back)) for back in (False, True))
            replaced = self.adjacency == Adjacency.REPLACE_ONE
            composed = Composition(one) if replaced else pairs.asked_for(self.adjacency, one, other)
        failure = self.too_large.log_chance(plan.contracting(chain))
        return composed.replacing(certificate=lambda _: split_certificate(plan), log_failure=failure)

    @property
    def all_composed(self) -> Composition:
        """The guarantee if every iterate is public."""
        whole = {
            Sampling.POISSON: pairs.poisson, Sampling.FIXED: pairs.fixed, Sampling.BALLS_IN_BINS: pairs.balls_in_bins,
            Sampling.WITH_REPLACEMENT: pairs.with_replacement,
        }  # fmt: skip
        return whole[self.sampling](self.part(EpochsOfBatches))

    @property
    def in_chain(self) -> Composition:
        """What holds of a group as of a chain of records, and of known places: balls in bins have no pair of groups."""
        both = Adjacency.ADD_REMOVE if self.adjacency in (Adjacency.ADD, Adjacency.REMOVE) else self.adjacency
        places = pairs.one_gaussian(up(self.group_size * self.part(EpochsOfBatches).public.mu))
        chain = hidden(self.changed(group_size=1, adjacency=both)).grouped(self.group_size)
        return Composition([(places, 1)], hints=Hints(besides=chain))

    def _last(self, plan: Plan, log_delta: float) -> list[tuple[Pair, int]]:
        """Return the pairs of the last steps, as good as they need be for this ln delta."""
        if self.sampling == Sampling.BALLS_IN_BINS:
            return self._epochs(plan, log_delta)
        both = ((plan.fraction, plan.split), (0.0, plan.composed - plan.split))
        if self._counts_draws:
            return [(self._draws(share, log_delta), count) for share, count in both if count]
        return [(self.step(share), count) for share, count in both if count]

    def _draws(self, share: float, log_delta: float) -> Pair:
        """Return the pair of a step where several draws may be of the group, or of the record."""
        from dpcalc.notions import pld

        again = self.sampling == Sampling.WITH_REPLACEMENT
        rare = pairs.log_rare(self.steps, log_delta)
        draws = pld.Draws(self.batch_size, self.group_size, self.records, rare, again)
        return pairs.drawn_pair(sample_mu(up(1.0 / self.noise_multiplier), share), draws, self.adjacency)

    def _epochs(self, plan: Plan, log_delta: float) -> list[tuple[Pair, int]]:
        """Return the pairs of the last epochs of balls in bins, in one of which the noise may be shared in part."""
        from dpcalc.notions import pld

        epochs, mu = plan.composed // self.bins, up(1.0 / self.noise_multiplier)
        shared, rest = divmod(plan.split, self.bins)
        heavy = sample_mu(mu, plan.fraction)
        replaced = self.adjacency == Adjacency.REPLACE_ONE
        make = functools.partial(
            pld.replaced_place if replaced else pld.random_place, bins=self.bins,
            log_tail=pairs.log_rare(epochs, log_delta),
        )  # fmt: skip
        kinds = [
            (make(mu=heavy), shared), (make(mu=mu, heavier=(rest, heavy)), 1 if rest else 0),
            (make(mu=mu), epochs - shared - (1 if rest else 0)),
        ]  # fmt: skip
        return [(pair, count) for pair, count in kinds if count]

    @property
    def most_contracting(self) -> int:
        """K: a step on at most so many records contracts by the factor; eta (2 lambda + K beta/b) <= 2, in decimals.

        Where a number that was rounded up makes it one less, the factor is `spoilt` instead.
        """
        if (room := self._room) is None:
            return self.records
        return math.floor(room + room / _ROUNDED_TO) if self.steps < _MANY_STEPS else math.floor(room)

    @property
    def spoilt(self) -> bool:
        """Whether a step on K records may have a factor of c (1 + 2^-45)."""
        return self._room is not None and math.floor(self._room) < self.most_contracting

    @property
    def _room(self) -> Fraction | None:
        """K but for rounding to a whole number; None for no limit."""
        from fractions import Fraction

        eta, beta, weight = (Fraction(repr(x)) for x in (self.step_size, self.smoothness, self.regularisation))
        return (2 - 2 * eta * weight) * self.batch_size / (eta * beta) if beta else None

    @property
    def too_large(self) -> TooLarge:
        """Batches of more than K records, which may include those of the group."""
        from fractions import Fraction

        if self._of_one_size or self.most_contracting >= self.records:
            return TooLarge()
        binned = self.sampling == Sampling.BALLS_IN_BINS
        chance = Fraction(1, self.bins) if binned else Fraction(self.batch_size, self.records)
        least = max(0, self.most_contracting - self.group_size + 1)
        return TooLarge(least, self.records - self.group_size, chance, independent=not binned)

    def step(self, fraction: float) -> Pair:
        """Return the pair of a step in which this share of the noise's variance hides earlier ones."""
        mu = sample_mu(up(1.0 / self.noise_multiplier), fraction)
        if self.sampling == Sampling.FIXED:
            return pairs.fixed_pair(mu, self.sample_rate, self.adjacency)
        replaced = self.adjacency == Adjacency.REPLACE_ONE
        return pairs.poisson_pair(mu, self.sample_rate, replaced=replaced, size=self.group_size)


# --- conditions -------------------------------------------------------------------------------------------------------


def _linear(run: Run) -> Obstacle | None:
    if run.convex_if_clipped:
        return None
    if run.loss is not None:
        return Unmet(
            "speaks of gradients of convex losses, and clipped ones of a softmax of more than two classes are none",
            "give --model capped, if the softmax is capped (see `dpcalc help method`)", ("model",),
        )  # fmt: skip
    return NotNeeded(NOT_LINEAR.because, NOT_LINEAR.cure, NOT_LINEAR.parameters)


def _drawn_afresh(run: Run) -> Obstacle | None:
    if run.sampling is None:
        return Missing(("sampling",), "needs to know how batches are drawn", "give --sampling")
    if run.sampling in (Sampling.SHUFFLE, Sampling.FULL):
        own = f"see sampled.hidden_{run.sampling}"
        return NotNeeded("speaks of batches that are drawn afresh in every step", own, ("sampling",))
    if run.sampling == Sampling.BALLS_IN_BINS:
        return _whole_epochs(run)
    return None


def _whole_epochs(run: Run) -> Obstacle | None:
    n, b, steps = run.records, run.batch_size, run.steps
    if n is None or b is None or steps is None or steps % -(-n // b) == 0:
        return None
    return Unmet(
        "is for whole epochs, and the last one is cut short", f"use a multiple of {-(-n // b)} steps", ("steps",)
    )


LINEAR_MODEL = Condition("the model is linear", _linear)
DRAWN_AT_RANDOM = Condition("batches are drawn by themselves", _drawn_afresh)
LEAVES_ONE_OUT = requires(
    "batch_size < records",
    lambda run: run.records is None or run.batch_size is None or run.batch_size < run.records,
    lambda run: Unmet(
        f"a batch of {run.batch_size} is all {run.records} records",
        "use --algorithm noisy-gd, or a smaller --batch-size",
    ),
)
LEAVES_OTHERS = requires(
    f"group_size <= {LARGEST_GROUP}, and a batch of others is left",
    lambda run: (
        (size := run.group_size or 1) == 1
        or (size <= LARGEST_GROUP and (run.records is None or size <= run.records - (run.batch_size or 1)))
    ),
    Unmet(f"is for groups of up to {LARGEST_GROUP} records, beside which a batch of others is left",
          "use a smaller --group-size", ("group_size",)),
)  # fmt: skip
ONLY_THE_LAST = requires(
    "only the last iterate is released",
    lambda run: run.release == Releases.LAST,
    Unmet("speaks of the last iterate alone", "give --release last, if no other one is seen", ("release",)),
)


# --- the guarantee ----------------------------------------------------------------------------------------------------


@theorem(
    "sampled.hidden",
    title="Random batches with hidden iterates",
    needs=(
        "sampling", "adjacency", "records", "batch_size", "sample_rate", "steps", "noise_multiplier", "step_size",
        "smoothness", "regularisation?", "clip?", "diameter?", "group_size?",
    ),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="shifted interpolation with the same batches, split noise, the mean over earlier uses: the hidden past",
    formula="(sum_x P(x) N(mu(x), 1), N(0, 1)), mu(x) = c^k x/(z sqrt(s (1 + c^2 + ... + c^(2j-2)))), with the pair of "
    "a step k - j times, and that with noise z sqrt(1-s) j times; x = min(D b/(eta C), a sum_i c^i N_i), N_i uses in a "
    "step, a = 1 or 2; replaced: N(-mu(x), 1) for N(0, 1), or x is told; Poisson, balls in bins: delta grows by the "
    "chance of a batch of more than K = floor((2 - 2 eta lambda) b/(eta beta))",
    conditions=(
        LINEAR_MODEL, DRAWN_AT_RANDOM,
        LEAVES_ONE_OUT, LEAVES_OTHERS, STEP_WITHIN,
        ONLY_THE_LAST,
    ),
    assumes=(
        "every step draws its batch afresh: each record by itself with probability batch_size/records (Poisson), or "
        "batch_size records without replacement (fixed), or one by one; or in every epoch each record falls into one "
        "of the steps by itself, all equally likely (balls in bins)",
        "nobody ever learns which steps used a record: seeds, logs and batch sizes stay secret",
        "for add and remove: records counts the larger data set; of Poisson batches and balls in bins, data sets of at "
        "most so many records are spoken of, and of the others, of just so many",
        "each record's gradient is clipped to norm clip, an intercept with the rest; a regulariser's is added after",
        "the sum of a batch is divided by batch_size, whatever the size of the batch that was drawn",
        "fresh Gaussian noise of standard deviation noise_multiplier x clip on the sum, in every coordinate and step",
        "where a diameter is given, every iterate is projected onto a set of that diameter", CONVEX_IF_CLIPPED,
        ONE_RELEASE,
    ),
    slow=True,
    slack="the split is optimised for a Gaussian approximation, and evaluated exactly",
    not_monotone_in=("records", "batch_size", "sample_rate", "step_size"),
)  # fmt: skip
def hidden(run: HiddenRun) -> Composition:
    """A share of the noise of the last steps hides all earlier ones, unless a batch is too large to contract.

    >>> run = HiddenRun(sampling="poisson", adjacency="remove", records=100, batch_size=10, sample_rate=0.1, steps=1,
    ...                 noise_multiplier=1.0, step_size=1.0, smoothness=0.25)
    >>> round(math.exp(hidden(run).log_delta(0.0).value), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """
    if run.group_size > 1 and run.sampling == Sampling.BALLS_IN_BINS:
        return run.in_chain
    plan = run.plan
    return (
        run.all_composed.replacing(certificate=lambda _: Certificate(COMPOSED)) if plan is None else run.planned(plan)
    )


_GRADIENTS = (
    "each record's gradient is clipped to norm clip, an intercept with the rest; a regulariser's is added after"
)
_NOISE = "fresh Gaussian noise of standard deviation noise_multiplier x clip on the sum, in every coordinate and step"
_PROJECTED = "where a diameter is given, every iterate is projected onto a set of that diameter"


class HiddenEpochs(Setting):
    """Epochs of shuffled batches over a linear model."""

    @functools.cached_property
    def orders(self) -> shuffled_epochs.RandomOrders:
        """The same run as one of gradients that need no clipping."""
        bins = -(-self.records // self.batch_size)
        clip = 1.0 if self.clip is None else self.clip
        return shuffled_epochs.RandomOrders(
            records=self.records, batch_size=self.batch_size, last_batch=LastBatch.NOMINAL, epochs=self.steps // bins,
            sensitivity=moved(self.adjacency) * clip,
            noise_std=down(self.noise_multiplier * clip / self.batch_size, 4.0),
            step_size=self.step_size, smoothness=max(self.smoothness, self.regularisation),
            strong_convexity=self.regularisation, diameter=math.inf if self.clip is None else self.diameter,
        )  # fmt: skip


def moved(adjacency: Adjacency) -> float:
    """Return by how much a record moves the sum of its batch, in clipping norms."""
    return 2.0 if adjacency == Adjacency.REPLACE_ONE else 1.0


@theorem(
    "sampled.hidden_shuffle",
    title="Shuffled batches with hidden iterates",
    needs=(
        "sampling", "adjacency", "records", "batch_size", "steps", "noise_multiplier", "step_size", "smoothness",
        "regularisation?", "clip?", "diameter?",
    ),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="shuffled_epochs.fresh for clipped gradients, which are those of a convex loss",
    formula="as shuffled_epochs.fresh with mu_1 = a/z, a = 1 (zero-out) or 2 (replace-one)",
    conditions=(
        LINEAR_MODEL, sampling_is(Sampling.SHUFFLE), ENDS_IN_SHUFFLED, Condition("whole epochs", _whole_epochs),
        STEP_WITHIN, ONLY_THE_LAST,
    ),
    assumes=(
        "in every epoch the records are cut into batches in a fresh random order, all orders equally likely and drawn "
        "without looking at the data; the orders may be published after the run",
        _GRADIENTS, "the sum of a batch is divided by batch_size, whatever its size", _NOISE, _PROJECTED,
        CONVEX_IF_CLIPPED, ONE_RELEASE,
    ),
    slack="as shuffled_epochs.fresh",
)  # fmt: skip
def shuffled(run: HiddenEpochs) -> Profile:
    """Later steps hide a use of the record in an earlier epoch; its position in the last epoch decides.

    >>> run = HiddenEpochs(sampling="shuffle", adjacency="zero-out", records=1000, batch_size=1, steps=10**4,
    ...                    noise_multiplier=1.0, step_size=1.0, smoothness=1.0)
    >>> round(shuffled(run).profile(1.0), 2)  # as shuffled_epochs.fresh, with Delta = sigma
    -8.51
    """
    return shuffled_epochs.fresh(run.orders)


@theorem(
    "sampled.hidden_full",
    title="Full batches of clipped gradients with hidden iterates",
    needs=(
        "sampling", "adjacency", "steps", "noise_multiplier", "step_size", "smoothness", "regularisation?", "records?",
        "clip?", "diameter?",
    ),
    algorithms=("dp-sgd",),
    reference="dpcalc",
    locator="noisy_gd.contraction and noisy_gd.domain for clipped gradients, which are those of a convex loss",
    formula="as noisy_gd.contraction and noisy_gd.domain with r = a/z, a = 2 (replace-one) or 1, m = lambda",
    conditions=(LINEAR_MODEL, sampling_is(Sampling.FULL), STEP_WITHIN, ONLY_THE_LAST),
    assumes=(
        "every step uses all records", _GRADIENTS,
        "the sum is divided by a constant: for add and remove, by the number of records of the larger data set",
        _NOISE, _PROJECTED, CONVEX_IF_CLIPPED, ONE_RELEASE,
    ),
)  # fmt: skip
def descent(run: Setting) -> Gdp:
    """With a regulariser, or on a bounded domain, a run forgets its early steps.

    >>> run = Setting(sampling="full", adjacency="zero-out", steps=10**6, noise_multiplier=10.0, step_size=1.0,
    ...               smoothness=0.01, regularisation=0.01)
    >>> round(descent(run).mu, 9)  # r sqrt((1 + c)/(1 - c)), c = 0.99
    1.410673598
    """
    uses = Uses(moved(run.adjacency), 1, run.noise_multiplier, period=1, tail=1, times=run.steps)
    rate = decay_rate(run.step_size, max(run.smoothness, run.regularisation), run.regularisation)
    if run.records is None or run.clip is None or math.isinf(run.diameter):
        return Gdp(contracting_mu(uses, rate))
    return Gdp(bounded_mu(uses, rate, down(run.step_size * run.clip / run.records, 4.0), run.diameter))
