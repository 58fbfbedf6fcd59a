"""Released passes, each in a fresh random order: passes are independent, so the whole curve of one is composed.

One (epsilon, delta) of a pass implies no Renyi divergence: a mechanism that reveals everything with probability delta
is (0, delta)-private. The whole curve does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from dpcalc.model.quantities import Noise
from dpcalc.notions import gaussian, optimal_composition
from dpcalc.notions.guarantee import Composition, Profile, Rdp
from dpcalc.notions.profiles import POINT, Certificate
from dpcalc.numerics.floats import product_up
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, GAUSSIAN_NOISE, STEP_WITHIN, WHERE_BOUNDED
from dpcalc.theorems.contraction import shuffle
from dpcalc.theorems.contraction.contraction import FRESH, LIPSCHITZ_STEPS
from dpcalc.theorems.contraction.recursion import log_one_step
from dpcalc.theorems.hidden import hidden_position
from dpcalc.theorems.hidden.hidden_position import SecretPass
from dpcalc.theorems.many_passes.epochs import once_log_delta, once_renyi
from dpcalc.theorems.record import theorem
from dpcalc.theorems.released.released import EACH, ReleasedPasses
from dpcalc.theorems.setting import BATCHES, NOISY_STEP

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair

_FRESH = "every pass in a fresh uniformly random order, drawn without looking at the data; the orders may be published"
_WHERE = (WHERE_BOUNDED, "where used: " + LIPSCHITZ_STEPS)
_PASSES = "shuffled-epochs-released"
_CLOSE = 1 << 31  # 5e-7, in representable numbers: every evaluation is a search
_SECRETLY = (
    "every pass in a fresh random order, all orders equally likely and drawn without looking at the data",
    "the orders, the seed that made them and logs of single steps stay secret for ever",
    "the sensitivity holds between all records that may occur, not only between the two compared",
    LIPSCHITZ_STEPS, FRESH, WHERE_BOUNDED, EACH,
)  # fmt: skip


SECRET_ORDERS = (
    *BATCHES, "epochs", *NOISY_STEP, "step_size", "smoothness", "adjacency", "strong_convexity?", "diameter?",
)  # fmt: skip


FRESH_ORDERS = (
    *BATCHES, "epochs", *NOISY_STEP, "step_size", "loss_class", "displacement?", "diameter?", "smoothness?",
    "strong_convexity?",
)  # fmt: skip


class FreshOrders(ReleasedPasses):
    """Passes in fresh random orders, with optional facts about the losses and the domain."""

    @property
    def laplace(self) -> bool:
        """Whether the noise is Laplace rather than Gaussian."""
        return self.noise == Noise.LAPLACE

    @property
    def bounded(self) -> bool:
        """Whether the distance of two points after a later step is bounded."""
        return self.displacement is not None and math.isfinite(self.diameter)

    @property
    def one_pass(self) -> FreshOrders:
        """One of the passes."""
        return self.changed(epochs=1)


@functools.lru_cache(maxsize=8)
def _pair(run: FreshOrders) -> Pair:
    """Return the dominating pair of one shuffled pass."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.contraction import shuffle_curves

    applicable = [shuffle_curves.own_step(run.noise, run.own)]
    if run.bounded:
        applicable.append(
            shuffle_curves.shuffled_product(
                run.layout, noise=run.noise, scale=run.scale, sensitivity=run.sensitivity, step_size=run.step_size,
                displacement=run.displacement, diameter=run.diameter,
            )
        )  # fmt: skip
    if run.expands_nothing and not run.laplace:
        applicable.append(shuffle_curves.shuffled_mixture(run.layout, scale=run.scale, sensitivity=run.sensitivity))
    if run.places:
        applicable.append(shuffle_curves.shuffled_places(run.places))
    top = min(run.own, 2.0**60) if run.laplace else gaussian.epsilon(mu=min(run.own, 1e6), log_delta_target=-1e5)
    return pld.from_curve(profiles.tabulate(shuffle_curves.least(*applicable), max(top, 1e-100)))


@theorem(
    "released.shuffled_epochs",
    title="Released passes in fresh random orders, whole curve composed",
    needs=FRESH_ORDERS,
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="the curve of one shuffled pass, composed by the law of the privacy loss",
    formula="E-fold composition of the least of shuffle.product, shuffle.mixture, sum_k w_k delta_G(eps; mu_k) and the "
    "record's own noise, mu_k of a pass by strong convexity or a domain",
    assumes=(_FRESH, FRESH, *_WHERE, EACH),
    slack="chords of the curve and the lattice of losses: some 1e-3 in ln delta",
    slow=True,
    weakly_convex=True,
)
def shuffled_epochs(run: FreshOrders) -> Composition:
    """A fresh order for every pass makes the passes independent, so the whole curve of one is composed.

    >>> from dpcalc.model.quantities import LastBatch
    >>> run = FreshOrders(records=1, batch_size=1, epochs=4, sensitivity=1.0, scale=1.0,
    ...                   noise=Noise.GAUSSIAN, step_size=1.0, loss_class="convex-smooth", smoothness=1.0)
    >>> round(math.exp(shuffled_epochs(run).log_delta(0.0).value), 2)  # four Gaussians: 2 Phi(1) - 1
    0.68
    """
    return Composition([(_pair(run.one_pass), run.epochs)])


@theorem(
    "released.shuffled_epochs_point",
    title="Released passes in fresh random orders, best single point composed",
    needs=(*FRESH_ORDERS, "dimension?"),
    algorithms=(_PASSES,),
    reference="kairouz2015",
    locator="optimal composition of one (epsilon, delta) of a pass, at the best epsilon",
    formula="least over eps_0 of the optimal E-fold composition of (eps_0, delta_0 = delta(eps_0)); of one pass "
    "the least of all that is known",
    assumes=(_FRESH, FRESH, *_WHERE, EACH),
    slow=True,
    looser_than="released.shuffled_epochs",
    weakly_convex=True,
)
def shuffled_epochs_point(run: FreshOrders) -> Profile:
    """One point of a pass's curve, composed exactly in closed form; looser than the whole curve."""
    profile = _one_pass_profile(run)
    best = functools.lru_cache(maxsize=32)(lambda epsilon: _best_point(profile, run.epochs, epsilon))
    return Profile(
        lambda epsilon: best(epsilon)[0],
        ulps=2 if run.epochs == 1 else _CLOSE,
        certificate=lambda epsilon: Certificate(POINT, point=best(epsilon)[1]),
    )


def _one_pass_profile(run: FreshOrders) -> Callable[[float], float]:
    """Return epsilon -> ln delta of one shuffled pass, the least of the bounds in closed form that apply."""
    applicable: list[Callable[[float], float]] = [lambda epsilon: log_one_step(run.noise, epsilon, run.own)]
    if run.bounded:
        applicable.append(shuffle.product(run).profile)
    if run.expands_nothing and not run.laplace:
        applicable.append(shuffle.mixture(run).profile)
    if run.expands_nothing and run.laplace and run.dimension == 1:
        applicable.append(shuffle.laplace_mixture(run).profile)
    if places := run.places:
        applicable.append(lambda epsilon: once_log_delta(places, epsilon))
    if run.epochs == 1:  # this is the shuffled pass itself, whose other bounds are too slow to search
        applicable.append(shuffle.hybrid(run).profile)
    return functools.cache(lambda epsilon: min(bound(epsilon) for bound in applicable))


def _best_point(profile: Callable[[float], float], epochs: int, epsilon: float, tries: int = 24) -> tuple[float, float]:
    """Return the least ln delta over points of the curve, and its point: scanned from epsilon/E to epsilon, then
    refined.

    Logarithms of points are multiples of powers of two for every epsilon, so a search over epsilon evaluates a cached
    profile at few new points.
    """

    def composed(x: float) -> float:
        e = math.exp(x)
        return optimal_composition.log_delta(epsilon0=e, log_delta0=profile(e), count=epochs, epsilon=epsilon)

    def beyond(x: float, least: float) -> bool:
        """Return whether epsilon_0 alone costs more than the least; then so do all larger ones."""
        if points[x] == least:
            return False
        pure = optimal_composition.log_delta(epsilon0=math.exp(x), log_delta0=-math.inf, count=epochs, epsilon=epsilon)
        return pure > least * (1.0 - 1e-9)

    if epochs == 1:
        return profile(epsilon), epsilon
    if epsilon == 0.0:
        return optimal_composition.log_delta(epsilon0=0.0, log_delta0=profile(0.0), count=epochs, epsilon=0.0), 0.0
    high = math.log(epsilon)
    low = high - math.log(epochs) - 1.0
    width = 2.0 ** round(math.log2((high - low) / tries))
    points: dict[float, float] = {}
    for j in range(math.ceil(low / width), math.floor(high / width) + 1):
        points[j * width] = composed(j * width)
        if beyond(j * width, min(points.values())):
            break
    for _ in range(tries // 8 + 3):
        best = min(points, key=lambda x: (points[x], x))
        width *= 0.5
        for x in (best - width, best + width):
            if x not in points:
                points[x] = composed(x)
    value, x = min((value, x) for x, value in points.items())
    return value, math.exp(x)


@theorem(
    "released.shuffled_epochs_rdp",
    title="Released passes in fresh random orders, Renyi form",
    needs=FRESH_ORDERS,
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="Renyi divergence from the whole curve of a pass, added up",
    formula="RDP(a) = E min(ln(1 + a (a-1) int_0^inf (e^((a-1) x) + e^(-a x)) delta(x) dx), "
    "ln sum_k w_k e^(a (a-1) mu_k^2/2))/(a-1)",
    assumes=(_FRESH, FRESH, *_WHERE, EACH),
    erratum="Sordello, Bu and Dong turn (epsilon, delta) of a pass into RDP epsilon + ln(delta)/(a-1). That is false: "
    "it reads the conversion from RDP backwards, and can even be negative.",
    slow=True,
    weakly_convex=True,
)
def shuffled_epochs_rdp(run: FreshOrders) -> Rdp:
    """The Renyi divergence that the whole curve of a pass allows, times the number of passes."""

    def curve(order: float) -> float:
        single = _renyi(order, run.one_pass)
        return product_up(single, float(run.epochs)) if single < math.inf else single

    return Rdp(curve)


@functools.lru_cache(maxsize=256)
def _renyi(order: float, run: FreshOrders) -> float:
    """Return the Renyi divergence of one shuffled pass at an order, rounded up."""
    from dpcalc.notions import profiles
    from dpcalc.theorems.contraction import shuffle_curves

    pair = _pair(run)
    if order == math.inf:
        return run.own if run.laplace else math.inf  # the largest loss of the record's own step
    breaks = [run.own] if run.laplace else []
    if run.laplace and run.bounded:
        breaks.append(run.following)
    alone = shuffle_curves.own_step(run.noise, run.own)
    curve = shuffle_curves.least(pair.forward, alone)  # which ends, while the table is constant beyond its last point
    by_curve = profiles.renyi(curve, order=order, scale=run.own, own=alone, breaks=breaks, rounds=1)
    one_pass = run.gaussian_pass
    return by_curve if one_pass is None or order <= 1.0 else min(by_curve, once_renyi(one_pass, order))


@theorem(
    "released.shuffled_epochs_secret",
    title="Released passes in fresh secret orders, best single point composed",
    needs=SECRET_ORDERS,
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="hidden position for every pass; optimal composition of its best point",
    formula="as released.shuffled_epochs_point, with delta(eps_0) of hidden_position.shuffled",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN, hidden_position.SECRET),
    assumes=_SECRETLY,
    slow=True,
    not_monotone_in=("records",),
)
def shuffled_epochs_secret(run: ReleasedPasses) -> Profile:
    """The position of a record in every pass stays hidden, although the iterates between passes are public."""
    one_pass = run.part(SecretPass, without="epochs")
    profile = _secret_profile(one_pass)
    best = functools.lru_cache(maxsize=32)(lambda epsilon: _best_point(profile, run.epochs, epsilon, tries=8))

    def certificate(epsilon: float) -> Certificate:
        point, of_pass = best(epsilon)[1], hidden_position.shuffled(one_pass).certificate
        assert of_pass is not None
        return Certificate(POINT, point=point, inner=of_pass(point))

    return Profile(lambda epsilon: best(epsilon)[0], certificate=certificate)


@theorem(
    "released.shuffled_epochs_secret_curve",
    title="Released passes in fresh secret orders, whole curve composed",
    needs=SECRET_ORDERS,
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="hidden position for every pass; its curve composed by the law of the privacy loss",
    formula="E-fold composition of the least of hidden_position.shuffled and the record's own noise",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN, hidden_position.SECRET),
    assumes=_SECRETLY,
    slack="chords of the curve between some hundred points, and the lattice of losses: some 1 % in epsilon",
    slow=True,
    not_monotone_in=("records",),
)
def shuffled_epochs_secret_curve(run: ReleasedPasses) -> Composition:
    """A fresh secret order for every pass makes the passes independent, so the whole curve of one is composed."""
    pair, certificate = _secret_pair(run.part(SecretPass, without="epochs"))
    return Composition([(pair, run.epochs)], certificate=lambda _: certificate())


@functools.lru_cache(maxsize=4)
def _secret_pair(one_pass: SecretPass) -> tuple[Pair, Callable[[], Certificate]]:
    """Return the dominating pair of one pass in a secret order, and the certificate of its curve."""
    from dpcalc.notions import pld, profiles
    from dpcalc.theorems.contraction import shuffle_curves

    own = one_pass.passes.ratio * one_pass.layout.weights[0] * (1.0 + 1e-15)
    alone, curve = shuffle_curves.own_step(Noise.GAUSSIAN, own), hidden_position.PassCurve(one_pass)
    nodes, values = profiles.sparse(curve.at, alone)
    pair = pld.from_curve(shuffle_curves.least(profiles.chords(nodes, values), alone))
    return pair, functools.cache(lambda: curve.certificate(nodes.tolist()))


@functools.lru_cache(maxsize=4)
def _secret_profile(one_pass: SecretPass) -> Callable[[float], float]:
    """Return epsilon -> ln delta of one pass, with a cache that runs with other numbers of passes share."""
    return functools.cache(hidden_position.shuffled(one_pass).profile)
