"""Hidden position: one pass in a secret random order (Theorem H, and HW for batches of any sizes).

An observer who does not know the position of the record compares two mixtures over all positions. Swapping
the record at position k *counted from the end* with one at m changes the maps of two steps and nothing else, so the
laws are no further apart than two Gaussians at mu_km, that of two uses. `same_places` has these distances, and
`position_certificates` bounds delta for a position that is secret.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

from dpcalc.model.quantities import Adjacency, Permutation
from dpcalc.notions.guarantee import Hints, Profile
from dpcalc.notions.profiles import HIDDEN, KNOWN, Certificate
from dpcalc.numerics.floats import from_ordinal, ordinal
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, GAUSSIAN_NOISE, ONE_RELEASE, STEP_WITHIN, WHERE_BOUNDED
from dpcalc.theorems.contraction.shuffle import ShuffledPass, mixture
from dpcalc.theorems.hidden.position_certificates import MOST, Cell, Curve, Mixture, Proof, where_met
from dpcalc.theorems.hidden.positions import places_of
from dpcalc.theorems.many_passes.epochs import same_places
from dpcalc.theorems.many_passes.repeated_allocation import Passes
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.setting import BATCHES, NOISY_STEP

SECRET = requires(
    "the order and its seed stay secret for ever (--permutation secret)",
    lambda run: run.permutation == Permutation.SECRET,
    Unmet("the order is not promised to stay secret", "give --permutation secret if it does"),
)


class SecretPass(ShuffledPass):
    """A pass in a secret random order whose steps are Lipschitz maps."""

    @property
    def passes(self) -> Passes:
        """The pass, with strong convexity and the domain."""
        return Passes.of(self, self.scale)


def swaps_of(adjacency: Adjacency) -> tuple[tuple[float, float], ...]:
    """Return what the uses of a swap count, in units of the sensitivity; see `positions.Places`.

    The sensitivity to a null record is half that to another record, and a swap still puts one in place of another:
    where the record itself is, its step moves twice as far as where the null record is.
    """
    return ((2.0, 1.0), (1.0, 2.0)) if adjacency == Adjacency.NULL_RECORD else ((1.0, 1.0),)


@functools.lru_cache(maxsize=32)
def secret_order(passes: Passes, adjacency: Adjacency) -> Mixture:
    """Return the mixture of passes in one secret order, the last iterate seen.

    Args:
        passes: the run.
        adjacency: ``replace-one`` or ``null-record``.
    """
    return Mixture(places_of(passes.plan, swaps_of(adjacency)), [Cell(0.0, same_places(passes))])


def least_of(
    public: Callable[[float], float], mixture: Callable[[], Mixture] | None, *, rough: bool = False
) -> Profile:
    """Return the lesser of the bounds for a published and for a secret order, with its certificate.

    Args:
        public: epsilon -> ln delta for a published order.
        mixture: the secret order; None if it does not apply.
        rough: as of `Mixture.least`.
    """
    nearby: dict[float, Proof] = {}

    @functools.lru_cache(maxsize=32)
    def searched(epsilon: float) -> Proof:
        return Proof(0.0) if mixture is None else mixture().least(epsilon, rough=rough)

    def search(epsilon: float) -> Proof:
        return nearby.get(epsilon) or searched(epsilon)

    def likely(log_delta: float) -> float:
        return math.inf if mixture is None else mixture().likely_epsilon(log_delta)

    def certificate(epsilon: float) -> Certificate:
        proof = search(epsilon)
        if proof.matchings is not None and proof.log_delta < public(epsilon):
            return Certificate(HIDDEN, matchings=proof.matchings())
        return Certificate(KNOWN)

    def budget(log_delta: float, ulps: int) -> float | None:
        if ulps > _CLOSE and log_delta > _RARE and mixture is not None:
            point = _rough_budget(public, mixture(), likely(log_delta), log_delta)
            if point is not None:
                epsilon, nearby[epsilon] = point
                return epsilon
        return _budget(public, search, likely(log_delta), log_delta, ulps)

    return Profile(
        lambda epsilon: min(public(epsilon), search(epsilon).log_delta),
        certificate=certificate,
        hints=Hints(budget, likely, rough=lambda: least_of(public, mixture, rough=True)),
    )


_TANGENTS = 6  # of Newton's method, which ends in three
_HAIR, _CLOSE, _ROUGH = 1 << 12, 1 << 30, 1 << 48  # 1e-12, 2e-7 and 6e-2, in representable numbers
_SLIGHTLY, _CLOSELY, _NEARBY = 1e-5, 5e-5, 0.03  # of epsilon: what is added, allowed, and how far cuts may be moved
_RARE = -30.0  # rough searches are far above for smaller ln delta
_SECANTS, _USUAL_POWER = (
    5,
    1.5,
)  # as many as a full search takes; -ln delta is about in proportion to this power of epsilon


def _rough_budget(
    public: Callable[[float], float], mixture: Mixture, start: float, log_delta: float
) -> tuple[float, Proof] | None:
    """Return an epsilon near the least at which certificates reach ln delta, and what reaches it: the cuts of a search
    nearby. None where that leads nowhere.
    """
    if not 0.0 < start < MOST:
        return None
    there = mixture.least(start, rough=True)
    at = there.at
    x, power, before = 0.0, _USUAL_POWER, None  # ln of epsilon over the start
    for _ in range(_SECANTS):
        epsilon = start * math.exp(x)
        if before is not None and at is not None:
            there = at(epsilon)
        if not -math.inf < there.log_delta < min(0.0, public(epsilon)):
            return None
        beyond = math.log(there.log_delta / log_delta)
        if before is not None:
            power = (beyond - before[1]) / (x - before[0])
        if not power > 0.0:
            return None
        if before is not None and there.log_delta <= log_delta and beyond <= power * _CLOSELY:
            return epsilon, there
        before, x = (x, beyond), x + _SLIGHTLY - beyond / power
        if abs(x) > _NEARBY:
            return None
    return None


def _budget(
    public: Callable[[float], float], search: Callable[[float], Proof], start: float, log_delta: float, ulps: int
) -> float | None:
    """Return the least epsilon at which certificates reach ln delta, but for ``ulps`` or a hair; None where a published
    order gives less, or it is not met soon.

    A search at one epsilon gives a curve above the profile that touches it there. Newton's method on such curves comes
    near the answer in few searches, and the answer is that of a search: it reaches ln delta, and a hair below its own
    curve does not.
    """  # fmt: skip
    ulps = min(max(ulps, _HAIR), _CLOSE)  # closer than a hair there is only rounding to be seen
    epsilon = min(start, Profile(public, _ROUGH).epsilon(log_delta).value)
    for _ in range(_TANGENTS):
        if not 0.0 < epsilon < MOST:
            return None
        proof = search(epsilon)
        at = proof.at
        if at is None or not proof.log_delta < min(0.0, public(epsilon)):
            return None
        if proof.log_delta <= log_delta and at(_beside(epsilon, -ulps)).log_delta > log_delta:
            return epsilon
        epsilon = _beside(where_met(_log_delta_of(at), epsilon, proof.log_delta, log_delta), ulps >> 1)
    return None


def _log_delta_of(at: Callable[[float], Proof]) -> Callable[[float], float]:
    return lambda epsilon: at(epsilon).log_delta


def _beside(epsilon: float, ulps: int) -> float:
    return from_ordinal(max(0, ordinal(epsilon) + ulps))


class PassCurve:
    """ln delta of one pass at many consecutive values of epsilon: with fewer rows and cuts."""

    def __init__(self, run: SecretPass) -> None:
        self._public = mixture(run.part(ShuffledPass)).profile
        self._hidden = Curve(places_of(run.layout, swaps_of(run.adjacency)), same_places(run.passes))

    def at(self, epsilon: float) -> float:
        """Return the lesser of the bounds for a published and for a secret order."""
        return min(self._public(epsilon), self._hidden.at(epsilon))

    def certificate(self, epsilons: Sequence[float]) -> Certificate:
        """Return what proves the values at these epsilons, in each of which one was asked for."""
        matchings = zip(*(self._hidden.matchings(epsilon) for epsilon in epsilons), strict=True)
        return Certificate(HIDDEN, matchings=tuple(matchings), values={"points": list(epsilons)})


@theorem(
    "hidden_position.shuffled",
    title="Shuffled pass in a secret order, hidden position",
    needs=(*BATCHES, *NOISY_STEP, "step_size", "smoothness", "adjacency", "strong_convexity?", "diameter?"),
    algorithms=("shuffled",),
    reference="dpcalc",
    locator="hidden position: swaps of two records, and a common likelihood level for all positions",
    formula="delta(eps) = sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km), sum_m R_km = 1, "
    "sum_k w_k M_km <= e^eps w_m, w_k the share of the records at k",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN),
    promises=(SECRET,),
    assumes=(
        "one pass in a random order, all orders equally likely and drawn without looking at the data (no buffer or "
        "sharded shuffle, no rotation)",
        "the order, the seed that made it, logs of single steps and every intermediate iterate stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        "every loss is convex and smooth, step_size <= 2/smoothness",
        "fresh Gaussian noise in every step",
        WHERE_BOUNDED,
        ONE_RELEASE,
    ),
    slack="within 10 % of the best of its kind for delta > 1e-9; a certificate at every value",
    slow=True,
    not_monotone_in=("records",),
    better_because="hidden_position.shuffled also counts that nobody knows where the record was: the places it could "
    "have held vouch for each other, which the public bounds, averages over a known place, cannot use",
)
def shuffled(run: SecretPass) -> Profile:
    """An observer of the last iterate does not know the record's position in the secret order, and a late position may
    use the likelihood budget of all early ones.

    >>> from dpcalc.model.quantities import LastBatch, Noise
    >>> run = SecretPass(records=2, batch_size=1, sensitivity=1.0, noise=Noise.GAUSSIAN,
    ...                  scale=1.0, step_size=1.0, smoothness=1.0, adjacency=Adjacency.REPLACE_ONE)
    >>> round(math.exp(shuffled(run).profile(0.0)), 6)  # at epsilon 0 the mean of 2 Phi(1/2) - 1 and 2 Phi(1/8^0.5) - 1
    0.329626
    """
    return least_of(mixture(run.part(ShuffledPass)).profile, lambda: secret_order(run.passes, run.adjacency))
