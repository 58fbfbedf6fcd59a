"""Several passes with the iterate released after each: composition, which nothing hidden between the passes undoes.

Within a pass iterates stay hidden, so that a pass has the privacy of one pass from any start. Over passes that may be
composed: of one order, used again and again, only for each position; of fresh orders, as a whole curve. Which of the
two it is makes all the difference: with one public order a late position is late in every pass.

What is not here: an (epsilon, delta) guarantee of a pass turned into a Renyi divergence. That direction is false, since
a mechanism that tells everything with probability delta is (0, delta)-private. The whole curve gives one.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dpcalc.bounds import contraction, hidden_position, shuffle
from dpcalc.bounds.contraction import DOMAIN, FRESH, LIPSCHITZ_STEPS, expands_nothing, later_ratio, own_ratio
from dpcalc.bounds.recursion import log_one_step
from dpcalc.bounds.steps import FIXED_ORDER, GAUSSIAN_NOISE, INDEX_IN_RANGE, LIPSCHITZ, STEP_WITHIN, batch_of
from dpcalc.notions import composition, gaussian
from dpcalc.numerics.floats import product_up, up
from dpcalc.registry import Requirement, bound

if TYPE_CHECKING:
    from dpcalc.notions.pld import Pair

_EACH = "the iterate after every pass is released, and nothing between"
_SAME = "the same order in every pass"
_FRESH = "every pass in a fresh uniformly random order, drawn without looking at the data; the orders may be published"
_WHERE = ("where used: " + DOMAIN, "where used: " + LIPSCHITZ_STEPS)
_PASSES = "shuffled-epochs-released"


@bound(
    "released.own_noise",
    title="Released passes, a record's own noise alone",
    gives="mu",
    algorithms=("cyclic-released", "shuffle-once-released", "shuffled-epochs-released"),
    reference="dong2022",
    locator="composition of Gaussian mechanisms",
    formula="mu = sqrt(E) Delta/(b sigma)",
    requires=(GAUSSIAN_NOISE,),
    assumes=("each record is used once in every pass", FRESH, "every iterate may be released"),
    erratum="Sordello, Bu and Dong call a shuffled pass mu-GDP for the mu of its (epsilon, delta). It is mu-GDP for "
    "this mu and no smaller one: as epsilon grows its curve needs all of Delta/(b sigma).",
)
def own_noise(*, records: int, batch_size: int, epochs: int, sensitivity: float, noise: str, scale: float) -> float:
    """Whatever the order and the losses, the noise of its own steps hides a record, and that composes.

    Args:
        records, batch_size: n and b; a short last batch, divided by its own size, counts.
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta.
        noise, scale: ``gaussian`` and its standard deviation.

    Returns:
        mu, rounded up.
    """
    size = records % batch_size or batch_size if batch_size < records else records
    return _over(own_ratio(sensitivity, scale, size), epochs)


def _over(mu: float, epochs: int) -> float:
    """Return mu sqrt(epochs), rounded up."""
    return up(mu * math.sqrt(epochs), 4.0)


@bound(
    "released.cyclic",
    title="Released passes in one order, shift bound of a pass",
    gives="mu",
    algorithms=("cyclic-released",),
    reference="bok2024",
    locator="shifted interpolation for each pass, composed",
    formula="mu = sqrt(E) mu_i, mu_i of one pass for position i (as contraction.shift)",
    requires=(INDEX_IN_RANGE, GAUSSIAN_NOISE, LIPSCHITZ),
    assumes=(FIXED_ORDER, _SAME, LIPSCHITZ_STEPS, FRESH, _EACH),
)
def cyclic(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, loss_class: str, smoothness: float, strong_convexity: float, diameter: float = math.inf,
) -> float:  # fmt: skip
    """A record at the same place in every pass: the mu of one pass, E times.

    Args:
        records, index, batch_size: n, the record's 1-based position, records per step.
        epochs: E >= 1.
        sensitivity, noise, scale, step_size, loss_class, smoothness, strong_convexity, diameter: as in
            `contraction.shift`.

    Returns:
        mu, rounded up.
    """
    single = contraction.shift(
        records=records, index=index, batch_size=batch_size, sensitivity=sensitivity, noise=noise, scale=scale,
        step_size=step_size, loss_class=loss_class, smoothness=smoothness, strong_convexity=strong_convexity,
        diameter=diameter,
    )  # fmt: skip
    return _over(single, epochs)


@bound(
    "released.cyclic_curve",
    title="Released passes in one order, contraction curve of a pass",
    gives="parts",
    algorithms=("cyclic-released",),
    reference="dpcalc",
    locator="the curve of one pass for a position, composed by the law of the privacy loss",
    formula="E-fold composition of delta(eps) = A B^(n-i)",
    requires=(INDEX_IN_RANGE,),
    assumes=(FIXED_ORDER, _SAME, FRESH, DOMAIN, contraction.DISPLACED, _EACH),
    slack="the lattice of losses, some 1e-4 in ln delta",
    coarse=True,
)
def cyclic_curve(
    *, records: int, index: int, batch_size: int, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, displacement: float, diameter: float,
) -> Any:  # fmt: skip
    """A record at the same place in every pass: the product bound of one pass, composed E times.

    Args:
        records, index, batch_size, epochs, sensitivity: as in `cyclic`.
        noise, scale, step_size, displacement, diameter: as in `contraction.product`.

    Returns:
        [(pair of laws, E)].
    """
    from dpcalc.bounds import curves
    from dpcalc.notions import pld

    size, steps = batch_of(records, index, batch_size)
    own = own_ratio(sensitivity, scale, size)
    curve = curves.fixed(noise, own, later_ratio(displacement, diameter, step_size, scale), steps - 1)
    return [(pld.from_curve(curve), epochs)]


@bound(
    "released.shuffle_once",
    title="Released passes in one random order",
    gives="log_delta",
    algorithms=("shuffle-once-released",),
    reference="dpcalc",
    locator="shift bound of each pass for a position, composed, then averaged over positions",
    formula="delta(eps) = (1/n) sum_k delta_G(eps; sqrt(E) mu_1/sqrt(k))",
    requires=(GAUSSIAN_NOISE, STEP_WITHIN),
    assumes=(
        "one uniformly random order, drawn without looking at the data and used in every pass; it may be published",
        LIPSCHITZ_STEPS, FRESH, _EACH,
    ),
)  # fmt: skip
def shuffle_once(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, smoothness: float, epsilon: float,
) -> float:  # fmt: skip
    """A record that falls late is late in every pass: composition first, and the average over positions last.

    Args:
        records, batch_size, last_batch, noise, scale, step_size, smoothness, epsilon: as in `shuffle.mixture`.
        epochs: E >= 1.
        sensitivity: gradient sensitivity Delta.

    Returns:
        ln delta, rounded up.
    """
    return shuffle.mixture(
        records=records, batch_size=batch_size, last_batch=last_batch, sensitivity=_over(sensitivity, epochs),
        noise=noise, scale=scale, step_size=step_size, smoothness=smoothness, epsilon=epsilon,
    )  # fmt: skip


# --- one (epsilon, delta), again and again ----------------------------------------------------------------------------


@bound(
    "released.optimal",
    title="Optimal composition of one (epsilon, delta)",
    gives="log_delta",
    kind="exact",
    algorithms=("repeated",),
    reference="kairouz2015",
    locator="Theorem 3.3, in closed form",
    formula="delta = 1 - (1 - delta_0)^E (1 - P[Bin(E, p) >= k] + e^eps P[Bin(E, 1-p) >= k]), p = 1/(1 + e^-eps_0)",
    assumes=("every pass is (epoch_epsilon, epoch_delta)-private, whatever came before it",),
)
def optimal(*, epochs: int, epoch_epsilon: float, epoch_delta: float, epsilon: float) -> float:
    """What any number of passes costs if one (epsilon, delta) is all that is known of each; no less is true of all.

    Args:
        epochs: E, 1 to 1e15.
        epoch_epsilon, epoch_delta: of one pass.
        epsilon: >= 0.

    Returns:
        ln delta, rounded up; -inf where it is 0.
    """
    log_delta0 = up(math.log(epoch_delta), 2.0) if epoch_delta > 0.0 else -math.inf
    return composition.log_delta(epsilon0=up(epoch_epsilon), log_delta0=log_delta0, count=epochs, epsilon=epsilon)


def _pure(values: Mapping[str, Any]) -> tuple[str, str] | None:
    if values["epoch_delta"] == 0.0:
        return None
    return "a single (epsilon, delta) with delta > 0 is mu-GDP for no mu", "--epoch-delta 0, if it is"


@bound(
    "released.pure",
    title="Pure privacy, composed as Gaussian",
    gives="mu",
    algorithms=("repeated",),
    reference="dong2022",
    locator="pure privacy is mu-GDP, composed",
    formula="mu = sqrt(E) 2 Phi^-1(e^eps_0/(1 + e^eps_0))",
    requires=(Requirement("epoch_delta = 0", _pure),),
    assumes=("every pass is epoch_epsilon-private, whatever came before it",),
)
def pure(*, epochs: int, epoch_epsilon: float, epoch_delta: float) -> float:
    """Every pure mechanism is Gaussian-private for the least mu whose trade-off curve it cannot beat.

    Args:
        epochs: E >= 1.
        epoch_epsilon: of one pass.
        epoch_delta: 0.

    Returns:
        mu, rounded up.
    """
    return _over(gaussian.pure_mu(epsilon=epoch_epsilon), epochs)


# --- fresh orders: the curve of a pass, composed ----------------------------------------------------------------------

_GIVEN = ("records", "batch_size", "last_batch", "sensitivity", "noise", "scale", "step_size")


def _profile(values: dict[str, Any]) -> Callable[[float], float]:
    """Return epsilon -> ln delta of one shuffled pass, the least of the bounds in closed form that apply."""
    given = {name: values[name] for name in _GIVEN}
    own = _own_ratio(*(values[name] for name in ("records", "batch_size", "last_batch", "sensitivity", "scale")))
    found: list[Callable[[float], float]] = [lambda e: log_one_step(values["noise"], e, own)]
    if values["displacement"] is not None and math.isfinite(values["diameter"]):
        found.append(
            lambda e: shuffle.product(
                **given, displacement=values["displacement"], diameter=values["diameter"], epsilon=e
            )
        )
    if expands_nothing(values["loss_class"], values["step_size"], values["smoothness"]):
        smooth = {**given, "smoothness": values["smoothness"]}
        if values["noise"] == "gaussian":
            found.append(lambda e: shuffle.mixture(**smooth, epsilon=e))
        elif values["dimension"] == 1:
            found.append(lambda e: shuffle.laplace_mixture(**smooth, epsilon=e))
    return functools.cache(lambda e: min(bound(e) for bound in found))


@functools.lru_cache(maxsize=8)
def _pair(
    records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    displacement: float | None, diameter: float, nonexpansive: bool,
) -> Pair:  # fmt: skip
    """Return the pair of laws of one shuffled pass."""
    from dpcalc.bounds import curves
    from dpcalc.notions import pld, profiles

    plan = shuffle.layout(records, batch_size, last_batch)
    own = _own_ratio(records, batch_size, last_batch, sensitivity, scale)
    found = [curves.own_step(noise, own)]
    if displacement is not None and math.isfinite(diameter):
        found.append(
            curves.shuffled_product(
                plan, noise=noise, scale=scale, sensitivity=sensitivity, step_size=step_size,
                displacement=displacement, diameter=diameter,
            )
        )  # fmt: skip
    if nonexpansive and noise == "gaussian":
        found.append(curves.shuffled_mixture(plan, scale=scale, sensitivity=sensitivity))
    top = min(own, 2.0**60) if noise == "laplace" else gaussian.epsilon(mu=min(own, 1e6), log_delta_target=-1e5)
    return pld.from_curve(profiles.tabulated(curves.least(*found), max(top, 1e-100)))


@bound(
    "released.shuffled_epochs",
    title="Released passes in fresh random orders, whole curve composed",
    gives="parts",
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="the curve of one shuffled pass, composed by the law of the privacy loss",
    formula="E-fold composition of the least of shuffle.product, shuffle.mixture and the record's own noise",
    assumes=(_FRESH, FRESH, *_WHERE, _EACH),
    slack="chords of the curve and the lattice of losses: some 1e-3 in ln delta",
    coarse=True,
)
def shuffled_epochs(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, loss_class: str, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None,
) -> Any:  # fmt: skip
    """A fresh order for every pass makes the passes independent: the whole curve of one is composed.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size: as in `shuffle.product`.
        epochs: E, 1 to 1e15.
        loss_class, smoothness: of the losses; see `dpcalc.spec.loss`.
        displacement, diameter: of a bounded domain, if any.

    Returns:
        [(pair of laws, E)].
    """
    nonexpansive = expands_nothing(loss_class, step_size, smoothness)
    pair = _pair(
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, displacement, diameter, nonexpansive
    )
    return [(pair, epochs)]


@bound(
    "released.shuffled_epochs_point",
    title="Released passes in fresh random orders, best single point composed",
    gives="log_delta",
    algorithms=(_PASSES,),
    reference="kairouz2015",
    locator="optimal composition of one (epsilon, delta) of a pass, at the best epsilon",
    formula="least over eps_0 of the optimal E-fold composition of (eps_0, delta_0 = delta(eps_0))",
    assumes=(_FRESH, FRESH, *_WHERE, _EACH),
    coarse=True,
)
def shuffled_epochs_point(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, loss_class: str, epsilon: float, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None, dimension: int = 1,
) -> float:  # fmt: skip
    """One point of a pass's curve, composed exactly in closed form; looser than the curve, for any number of passes.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise, scale, step_size, loss_class, displacement,
            diameter, smoothness: as in `shuffled_epochs`.
        epsilon: >= 0.
        dimension: of the parameter, for Laplace noise.

    Returns:
        ln delta, rounded up.
    """
    return _best_point(_profile(locals()), epochs, epsilon)


def _best_point(profile: Callable[[float], float], epochs: int, epsilon: float, tries: int = 24) -> float:
    """Return the least ln delta over points of the curve: scanned from epsilon/E to epsilon, then refined."""

    def composed(x: float) -> float:
        e = math.exp(x)
        return composition.log_delta(epsilon0=e, log_delta0=profile(e), count=epochs, epsilon=epsilon)

    if epsilon == 0.0:
        return composition.log_delta(epsilon0=0.0, log_delta0=profile(0.0), count=epochs, epsilon=0.0)
    high = math.log(epsilon)
    low = high - math.log(epochs) - 1.0
    points = {low + (high - low) * j / tries: 0.0 for j in range(tries + 1)}
    points = {x: composed(x) for x in points}
    width = (high - low) / tries
    for _ in range(tries // 4):
        best = min(points, key=lambda x: (points[x], x))
        width *= 0.5
        for x in (best - width, best + width):
            if x not in points:
                points[x] = composed(x)
    return min(points.values())


@bound(
    "released.shuffled_epochs_rdp",
    title="Released passes in fresh random orders, Renyi form",
    gives="rdp",
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="Renyi divergence from the whole curve of a pass, added up",
    formula="RDP(a) = E ln(1 + a (a-1) int_0^inf (e^((a-1) x) + e^(-a x)) delta(x) dx)/(a-1)",
    assumes=(_FRESH, FRESH, *_WHERE, _EACH),
    erratum="Sordello, Bu and Dong turn (epsilon, delta) of a pass into RDP epsilon + ln(delta)/(a-1). That is false: "
    "it reads the conversion from RDP backwards, and can even be negative.",
    coarse=True,
)
def shuffled_epochs_rdp(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, loss_class: str, order: float, displacement: float | None = None, diameter: float = math.inf,
    smoothness: float | None = None,
) -> float:  # fmt: skip
    """The Renyi divergence that the whole curve of a pass allows, times the number of passes.

    Args:
        records, batch_size, last_batch, epochs, sensitivity, noise, scale, step_size, loss_class, displacement,
            diameter, smoothness: as in `shuffled_epochs`.
        order: a >= 1.

    Returns:
        RDP at the order, rounded up.
    """
    nonexpansive = expands_nothing(loss_class, step_size, smoothness)
    single = _renyi(
        order, records, batch_size, last_batch, sensitivity, noise, scale, step_size, displacement, diameter,
        nonexpansive,
    )  # fmt: skip
    return product_up(single, float(epochs)) if single < math.inf else single


@functools.lru_cache(maxsize=256)
def _renyi(
    order: float, records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float,
    step_size: float, displacement: float | None, diameter: float, nonexpansive: bool,
) -> float:  # fmt: skip
    from dpcalc.bounds import curves
    from dpcalc.notions import profiles

    pair = _pair(
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, displacement, diameter, nonexpansive
    )
    own = _own_ratio(records, batch_size, last_batch, sensitivity, scale)
    if order == math.inf:
        return own if noise == "laplace" else math.inf  # the greatest loss of the record's own step
    breaks = [own] if noise == "laplace" else []
    if breaks and displacement is not None and math.isfinite(diameter):
        breaks.append(later_ratio(displacement, diameter, step_size, scale))
    alone = curves.own_step(noise, own)
    curve = curves.least(pair.forward, alone)  # which ends: the table is constant behind its last point
    return profiles.renyi(curve, order=order, scale=own, own=alone, breaks=breaks, rounds=1)


def _own_ratio(records: int, batch_size: int, last_batch: str, sensitivity: float, scale: float) -> float:
    """Return the largest distance of a record's own step in units of its noise, over the batches it may be in."""
    plan = shuffle.layout(records, batch_size, last_batch)
    return own_ratio(sensitivity, scale, plan.divisor if plan.short else plan.size)


@bound(
    "released.shuffled_epochs_secret",
    title="Released passes in fresh secret orders, best single point composed",
    gives="log_delta",
    algorithms=(_PASSES,),
    reference="dpcalc",
    locator="hidden position for every pass; optimal composition of its best point",
    formula="as released.shuffled_epochs_point, with delta(eps_0) of hidden_position.shuffled",
    requires=(GAUSSIAN_NOISE, STEP_WITHIN, hidden_position.SECRET),
    assumes=(
        "every pass in a fresh random order, all orders equally likely and drawn without looking at the data",
        "the orders, the seed that made them and logs of single steps stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        LIPSCHITZ_STEPS, FRESH, _EACH,
    ),
    coarse=True,
    unsolved=("records",),
)  # fmt: skip
def shuffled_epochs_secret(
    *, records: int, batch_size: int, last_batch: str, epochs: int, sensitivity: float, noise: str, scale: float,
    step_size: float, smoothness: float, adjacency: str, epsilon: float,
) -> float:  # fmt: skip
    """The place of a record in every pass stays hidden, although the iterates between passes do not.

    Args:
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, smoothness, adjacency, epsilon: as in
            `hidden_position.shuffled`.
        epochs: E >= 1.

    Returns:
        ln delta, rounded up.
    """
    profile = _secret_profile(
        records, batch_size, last_batch, sensitivity, noise, scale, step_size, smoothness, adjacency
    )
    return _best_point(profile, epochs, epsilon, tries=8)


@functools.lru_cache(maxsize=4)
def _secret_profile(
    records: int, batch_size: int, last_batch: str, sensitivity: float, noise: str, scale: float, step_size: float,
    smoothness: float, adjacency: str,
) -> Callable[[float], float]:  # fmt: skip
    return functools.cache(
        lambda e: hidden_position.shuffled(
            records=records, batch_size=batch_size, last_batch=last_batch, sensitivity=sensitivity, noise=noise,
            scale=scale, step_size=step_size, smoothness=smoothness, adjacency=adjacency, epsilon=e,
        )
    )  # fmt: skip
