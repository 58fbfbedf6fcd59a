"""The dominating pairs of a step on a randomly drawn batch, in the orders of an adjacency.

They are those of `dpcalc.notions.pld`, clamped to their domain and cached.

Also first guesses (no bounds) for the noise, the steps or the rate of sampled steps that meet a budget.

By the central limit theorem the composition of many steps is near a Gaussian mechanism whose mu^2 is the sum of the
variances of their losses.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc.model.phases import MOST
from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.model.run import Run
from dpcalc.notions import gaussian, pld
from dpcalc.notions.composition import check_group
from dpcalc.notions.guarantee import Composition, Gdp, Hints
from dpcalc.notions.pld import Draws, Pair
from dpcalc.numerics import binomial
from dpcalc.numerics.floats import up
from dpcalc.theorems.sampled.hidden_past import use_cost
from dpcalc.theorems.sampled.settings import EpochsOfBatches, SampledSteps, composed_mu

if TYPE_CHECKING:
    from dpcalc.notions.notion import Parts
    from dpcalc.notions.pld import ManyKinds


_MOST_MU = 300.0  # a larger mu reveals that a step used a record; the lattice of losses is coarse there
_LARGE_MU = 10.0  # from here on bounds with public uses may be closer than a lattice
_MOST_MU_OF_MIXTURES = 1e6  # of steps that may use several records, or one several times
_FARTHEST_MU = 1e90  # no step hides anything at a larger mu
_FEW_KINDS = 3  # of steps: so many are composed one by one
_MOST_KINDS = 4096  # of steps that are told apart: rounding noise to them costs some 1e-4 of it
_MOST_DRAWS = 10**15  # the largest count for which draws are defined
_LEAST_RATE = 1e-15  # a rarer use counts as this one: the limit of loss lattices
_LEAST_MU, _LEAST_MU_OF_MIXTURES = 1e-30, 1e-6  # the domain of pairs; a smaller mu counts as this one
_LEAST_MU_OF_EPOCHS, _MOST_MU_OF_EPOCHS = 1e-6, 30.0  # of balls in bins, where the grid of ratios is fine


# --- whole runs ----------------------------------------------------------------------------------------------------


def poisson(run: SampledSteps) -> Composition:
    """Return the composition of steps on Poisson samples."""
    replaced, size = run.adjacency == Adjacency.REPLACE_ONE, run.group_size

    def known() -> Composition:
        return _disclosed(run, size, min(1.0, up(size * run.sample_rate, 2.0)), replaced=replaced)

    if run.mu > (_MOST_MU if size == 1 else _MOST_MU_OF_MIXTURES):
        return known()
    return _composed(run, poisson_pair(run.mu, run.sample_rate, replaced=replaced, size=size), known)


def scheduled(run: SampledSteps) -> Composition:
    """Return the composition of phases of steps on Poisson samples or on batches of fixed size.

    Poisson samples of any size have a pair for groups; otherwise a group is a chain of single records.
    """
    kinds, size = run.kinds(MOST), run.group_size
    largest = max(mu for _, mu, _ in kinds)
    whole_shift = up(2.0 * size * largest * math.sqrt(sum(steps for *_, steps in kinds)), 4.0)
    public = Composition([(one_gaussian(whole_shift), 1)])  # batches public, all steps with the least noise
    if largest > _MOST_MU:
        return public
    replaced, coins = run.adjacency == Adjacency.REPLACE_ONE, run.sampling == Sampling.POISSON and run.cap is None
    # Of a record that is removed or added, or that a null record replaces, the coins are the same.
    of_step = (
        Adjacency.REMOVE if coins and not replaced else run.adjacency, None if coins else run.records, run.cap,
        run.rates_differ(MOST),
    )  # fmt: skip
    if size == 1 and len(kinds) > _FEW_KINDS and largest <= _LARGE_MU:
        steps, exchanged = _of_many_kinds(tuple(run.kinds(_MOST_KINDS)), *of_step)
        return asked_for(run.adjacency, _as_parts(steps), () if exchanged is steps else _as_parts(exchanged))
    if coins:
        return in_each_order(
            run.adjacency, [(poisson_pair(mu, rate, replaced=replaced, size=size), steps) for rate, mu, steps in kinds]
        )
    whole = in_each_order(run.adjacency, [(_pair_of_step(mu, rate, *of_step), steps) for rate, mu, steps in kinds])
    return whole if size == 1 else public.replacing(hints=Hints(besides=whole.grouped(size)))


def _pair_of_step(
    mu: float, rate: float, adjacency: Adjacency, records: int | None, cap: int | None, at_most: bool
) -> Pair:
    """Return the pair of a step of a schedule, for one record; without records that of a Poisson sample.

    With ``at_most`` the rate may be less: a batch that is cut can hide more at a larger one, and one that is not tells
    more.
    """
    if records is not None and cap is None:
        return fixed_pair(mu, rate, adjacency)
    whole = poisson_pair(mu, rate, replaced=adjacency == Adjacency.REPLACE_ONE)
    if records is None or cap is None:
        return whole
    cut = cut_pair(mu, rate, adjacency, records, cap)
    return pld.larger(cut, whole) if at_most else cut


@functools.lru_cache(maxsize=4)
def _of_many_kinds(kinds: tuple[tuple[float, float, int], ...], *of_step: Any) -> tuple[ManyKinds, ManyKinds]:
    """Return steps of many kinds in either order, each at most a mean of pairs at the corners of a cell."""
    from dpcalc.theorems.sampled.corners import at_corners

    corners, places, shares, counts = at_corners(kinds, linear=of_step[2] is None)
    steps = pld.ManyKinds([_pair_of_step(mu, rate, *of_step) for rate, mu in corners], places, shares, counts)
    return steps, steps.exchanged()


def _as_parts(steps: ManyKinds) -> Callable[[float], list[tuple[Pair, int]]]:
    return lambda log_delta: [(steps.pair(log_delta), 1)]


def truncated(run: SampledSteps) -> Composition:
    """Return the composition of steps on Poisson samples that are cut to a largest size.

    The other records fill a batch with the same probability under both data sets. If they do not, the record is in by
    its own coin. If they do, the step is one on a batch of fixed size that has the record at the reduced rate.
    """
    public = Gdp(composed_mu(Adjacency.REPLACE_ONE, run.noise_multiplier, run.steps))  # with public batches
    if run.mu > _MOST_MU:
        return Composition([(one_gaussian(public.mu), 1)])
    pair = cut_pair(run.mu, run.sample_rate, run.adjacency, run.records, run.max_batch_size)
    composed = in_each_order(run.adjacency, [(pair, run.steps)])
    return composed if run.mu < _LARGE_MU else composed.replacing(hints=Hints(besides=public))


def fixed(run: EpochsOfBatches) -> Composition:
    """Return the composition of steps on batches of fixed size."""
    apart = 1.0 if run.adjacency == Adjacency.NULL_RECORD else 2.0

    def known() -> Composition:
        return _disclosed(run, apart, run.sample_rate)

    if run.group_size > 1:
        return _fixed_groups(run, apart)
    return known() if run.mu > _MOST_MU else _composed(run, fixed_pair(run.mu, run.sample_rate, run.adjacency), known)


def _fixed_groups(run: EpochsOfBatches, apart: float) -> Composition:
    """Return the composition for groups: their own pair, if the others fill a batch and the noise is not too small.

    The bound with public uses is also given, as if each such step used as many members as it can.
    """
    size = run.group_size
    check_group(size)
    known = _disclosed(run, apart * min(size, run.batch_size), min(1.0, up(size * run.sample_rate, 2.0)))
    if size <= run.records - run.batch_size and run.mu <= _MOST_MU_OF_MIXTURES:
        whole = _drawn(run, replacement=False)
        return whole if run.mu < _LARGE_MU else whole.replacing(hints=Hints(besides=known))
    if run.adjacency not in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD):
        return known  # no chain: removing a record raises the rate of the next one
    chain = fixed(EpochsOfBatches(**{**run.known, "group_size": 1})).grouped(size)
    return known.replacing(hints=Hints(besides=chain))


def _composed(run: SampledSteps, pair: Pair, known: Callable[[], Composition]) -> Composition:
    """Return the composition of one pair for all steps, in the orders of the adjacency.

    If losses are large it also has ``known``, the bound with the record's steps public.
    """
    whole = in_each_order(run.adjacency, [(pair, run.steps)])
    return whole if run.mu < _LARGE_MU else whole.replacing(hints=Hints(besides=known()))


def _disclosed(run: SampledSteps, apart: float, rate: float, *, replaced: bool = False) -> Composition:
    """Return the bound with the record's steps public.

    With very little noise this is close, except for an added record: runs that never use it keep their probability,
    which bounds all that can be learnt.

    Args:
        apart: how far one use moves a sum, in units of the clipping norm.
        rate: the probability of a use, at most 1.
        replaced: whether another record, with its own uses, replaces the record.
    """
    rate = max(rate, _LEAST_RATE)
    if run.mu > _FARTHEST_MU:
        whole = apart * math.sqrt(run.steps) * (2.0 if replaced else 1.0)
        pair = one_gaussian(up(whole / run.noise_multiplier, 4.0))
    else:
        pair = known_uses(up(apart * run.mu, 2.0), rate, run.steps, replaced=replaced)
    return Composition([(added(pair, rate, run.steps) if run.adjacency == Adjacency.ADD else pair, 1)])


def with_replacement(run: SampledSteps) -> Composition:
    """Return the composition of steps on records drawn one by one, with replacement."""
    return _disclosed_draws(run) if run.mu > _MOST_MU_OF_MIXTURES else _drawn(run, replacement=True)


def _drawn(run: SampledSteps, *, replacement: bool) -> Composition:
    """Return the composition of steps on draws of records, several of which may belong to the group."""
    forward, backward = (functools.partial(_draws, run, replacement, back) for back in (False, True))
    return (
        Composition(forward) if run.adjacency == Adjacency.REPLACE_ONE else asked_for(run.adjacency, forward, backward)
    )


def _draws(run: SampledSteps, replacement: bool, backward: bool, log_delta: float) -> list[tuple[Pair, int]]:
    """Return the pair of a step on such draws, with the numbers of draws that matter for this ln delta."""
    draws = pld.Draws(run.batch_size, run.group_size, run.records, log_rare(run.steps, log_delta), replacement)
    pair = drawn_pair(run.mu, draws, run.adjacency)
    return [(pld.exchanged(pair) if backward else pair, run.steps)]


def _disclosed_draws(run: SampledSteps) -> Composition:
    """Return the bound if the draws of differing records are public."""
    apart = 1.0 if run.adjacency == Adjacency.NULL_RECORD else 2.0
    mu, rate, draws = up(apart * run.mu, 2.0), up(run.group_size / run.records), run.batch_size * run.steps
    if run.mu > _FARTHEST_MU or draws > _MOST_DRAWS:
        pair = one_gaussian(up(mu * run.batch_size * math.sqrt(run.steps), 4.0))
    else:
        pair = known_uses(mu, rate, draws, replaced=False, at_once=run.batch_size)
    return Composition([(added(pair, rate, draws) if run.adjacency == Adjacency.ADD else pair, 1)])


def balls_in_bins(run: EpochsOfBatches) -> Composition:
    """Return the composition of epochs in which a record falls into one random step each."""
    if not _LEAST_MU_OF_EPOCHS <= run.mu <= _MOST_MU_OF_EPOCHS:
        return Composition([(one_gaussian(run.public.mu), 1)])
    replaced = run.adjacency == Adjacency.REPLACE_ONE
    forward = functools.partial(_epochs, run, replaced=replaced)
    one = functools.partial(forward, backward=run.adjacency == Adjacency.ADD)
    hints = Hints(coarser=tuple(functools.partial(one, coarser=times) for times in (2, 4)))
    if replaced:
        return Composition(forward, hints=hints)
    return asked_for(run.adjacency, forward, functools.partial(forward, backward=True)).replacing(hints=hints)


def _epochs(
    run: EpochsOfBatches, log_delta: float, *, replaced: bool = False, backward: bool = False, coarser: int = 1
) -> list[tuple[Pair, int]]:
    """Return the pairs of an epoch with their counts, on a grid for this ln delta."""
    log_tail = log_rare(run.passes * run.uses, log_delta)
    make = pld.replaced_place if replaced else pld.random_place
    pairs = [
        (make(mu=run.mu, bins=bins, log_tail=log_tail, coarser=coarser), run.passes * count)
        for bins, count in run.sections
    ]
    return [(pld.exchanged(pair) if backward else pair, count) for pair, count in pairs]


# --- single steps ----------------------------------------------------------------------------------------------------


def in_each_order(adjacency: Adjacency, parts: Sequence[tuple[Pair, int]]) -> Composition:
    """Return the composition in the adjacency's orders, for pairs whose forward order is that of a removed record."""
    others = [(pld.exchanged(pair), count) for pair, count in parts]
    same = all(other is pair for (other, _), (pair, _) in zip(others, parts, strict=True))
    return asked_for(adjacency, parts, () if same else others)


def asked_for(adjacency: Adjacency, removed: Parts, added: Parts) -> Composition:
    """Return the composition in the adjacency's orders."""
    if adjacency == Adjacency.ADD and added:
        return Composition(added)
    return Composition(removed) if adjacency == Adjacency.REMOVE else Composition(removed, added)


def one_gaussian(mu: float) -> Pair:
    """Return the pair of a Gaussian mechanism, for any mu."""
    return pld.gaussian_sum([(mu, 1)])


@functools.lru_cache(maxsize=64)
def added(pair: Pair, rate: float, steps: int) -> Pair:
    """Return the pair of all steps for an added record, from that for a removed one."""
    return pld.exchanged(pld.seldom_used(pair, rate=rate, steps=steps))


@functools.lru_cache(maxsize=64)
def poisson_pair(mu: float, rate: float, *, replaced: bool, size: int = 1) -> Pair:
    """Return the pair of a step on a Poisson sample, for groups of ``size`` records."""
    if size > 1:
        make_group = pld.replaced_group if replaced else pld.removed_group
        return make_group(mu=max(mu, _LEAST_MU_OF_MIXTURES), rate=max(rate, _LEAST_RATE), size=size)
    make = pld.replaced_poisson if replaced else pld.removed
    return make(mu=max(mu, _LEAST_MU), rate=max(rate, _LEAST_RATE))


@functools.lru_cache(maxsize=64)
def known_uses(mu: float, rate: float, steps: int, *, replaced: bool, at_once: int = 1) -> Pair:
    """Return the pair of all steps with the record's steps public."""
    if replaced:
        return pld.replaced_known_uses(mu=mu, rate=rate, steps=steps)
    return pld.known_uses(mu=mu, rate=rate, steps=steps, at_once=at_once)


@functools.lru_cache(maxsize=64)
def fixed_pair(mu: float, rate: float, adjacency: Adjacency) -> Pair:
    """Return the pair of a step on a batch of fixed size."""
    mu, rate = max(mu, _LEAST_MU), max(rate, _LEAST_RATE)
    if adjacency == Adjacency.REPLACE_ONE:
        return pld.subsampled_gaussian(mu=2.0 * mu, rate=rate)
    if adjacency == Adjacency.NULL_RECORD:
        return pld.nulled_fixed(mu=mu, rate=rate)
    return pld.removed(mu=2.0 * mu, rate=rate)


def cut_pair(mu: float, rate: float, adjacency: Adjacency, records: int, most: int) -> Pair:
    """Return the pair of a step on a Poisson sample of ``records`` that is cut to ``most``."""
    cut = binomial.truncation(records, rate, most)
    kept = cut.rate if adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD) else rate
    whole = poisson_pair(mu, rate, replaced=adjacency == Adjacency.REPLACE_ONE)
    return pld.mixed([(cut.rest, whole), (cut.chance, fixed_pair(mu, kept, adjacency))])


@functools.lru_cache(maxsize=64)
def drawn_pair(mu: float, draws: Draws, adjacency: Adjacency) -> Pair:
    """Return the pair of a step on records drawn with replacement."""
    make = {Adjacency.REPLACE_ONE: pld.replaced_draws, Adjacency.NULL_RECORD: pld.nulled_draws}
    return make.get(adjacency, pld.removed_draws)(mu=max(mu, _LEAST_MU_OF_MIXTURES), draws=draws)


def log_rare(times: int, log_delta: float) -> float:
    """Return ln of a probability that does not matter for this ln delta, even ``times`` times."""
    # e^-12 of delta is negligible; steps of 8 let similar questions share a grid; e^-640 is near the least double.
    return max(-640.0, 8.0 * math.floor((log_delta - math.log(times) - 12.0) / 8.0))


_LEAST_COST = 1e-300  # of a step: a quotient by it is still finite


class _Steps(NamedTuple):
    """Steps that may cost ``budget`` together: the square of a GDP parameter."""

    run: Run
    budget: float

    @property
    def draws_a_size(self) -> bool:
        """Whether every batch has one size: the record then displaces another one."""
        return self.run.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)

    @property
    def apart(self) -> float:
        """The distance of two sums after a use, in clipping norms."""
        return 2.0 if self.run.adjacency == Adjacency.REPLACE_ONE or self.draws_a_size else 1.0

    def cost(self, mu: float, rate: float) -> float:
        """Return about the variance of the loss of a step."""
        return use_cost(mu, rate) if self.draws_a_size else _likely_cost(mu, self.apart, rate)

    def noise_multiplier(self) -> float | None:
        """Return about the least noise multiplier."""
        rate, steps = self.run.sample_rate, self.run.steps
        if rate is None or steps is None:
            return None
        return self.apart / _largest(lambda mu: steps * self.cost(mu, rate), self.budget, 1e-6, 20.0)

    def noise_std(self) -> float | None:
        """Return about the least noise on the mean gradient."""
        run, noise = self.run, self.noise_multiplier()
        return noise * (run.clip / run.batch_size if run.clip and run.batch_size else 1.0) if noise else None

    def steps(self) -> float | None:
        """Return about the largest number of steps."""
        noise, rate = self.run.noise_multiplier, self.run.sample_rate
        if noise is None or rate is None:
            return None
        return self.budget / max(self.cost(self.apart / noise, rate), _LEAST_COST)

    def epochs(self) -> float | None:
        """Return about the largest number of epochs."""
        steps, rate = self.steps(), self.run.sample_rate
        return None if steps is None or rate is None else steps * rate

    def sample_rate(self) -> float | None:
        """Return about the largest rate."""
        noise, steps = self.run.noise_multiplier, self.run.steps
        if noise is None or steps is None:
            return None
        return _largest(lambda rate: steps * self.cost(self.apart / noise, rate), self.budget, 1e-12, 1.0)


_LIKELY: dict[str, Callable[[_Steps], float | None]] = {
    "noise_multiplier": _Steps.noise_multiplier, "noise_std": _Steps.noise_std, "steps": _Steps.steps,
    "epochs": _Steps.epochs, "sample_rate": _Steps.sample_rate,
}  # fmt: skip


def likely(run: Run, unknown: str, *, epsilon: float, log_delta: float) -> float | None:
    """Return about the value of the unknown that meets the budget; None if there is no guess."""
    mu = gaussian.largest_mu(epsilon=epsilon, log_delta_target=log_delta) / (run.group_size or 1)
    return _LIKELY[unknown](_Steps(run, mu * mu)) if unknown in _LIKELY else None


def _likely_cost(mu: float, apart: float, rate: float) -> float:
    """Return about the variance of the loss of a step that has the record with a probability of ``rate``.

    With L the likelihood ratio of a use, it is that of rate (L - 1) for a record that is left out, and that of rate (L
    - L'), L' the mirror image, for a replaced one.
    """
    square = min((mu / apart) ** 2, 600.0)
    spread = math.expm1(square) if apart == 1.0 else 4.0 * math.sinh(square)
    return min(rate * rate * spread, mu * mu)


def _largest(cost: Callable[[float], float], budget: float, low: float, high: float) -> float:
    """Return about the largest argument of a growing function with a value of at most ``budget``."""
    while high > 1.0001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if cost(middle) <= budget else (low, middle)
    return low
