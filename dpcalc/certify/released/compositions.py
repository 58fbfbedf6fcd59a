"""Definitions of compositions: the profiles of one step or one pass, and their counts."""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from flint import arb, fmpq, fmpz

from dpcalc.certify.guarantee import Composition, Gdp, Profile, Searched
from dpcalc.certify.hidden.expanding import carried, factor, room_of
from dpcalc.certify.many_passes.random_orders import places_curve, shuffled, shuffled_at
from dpcalc.certify.numerics.balls import (
    ZERO,
    OutOfReach,
    Undecided,
    infinite,
    least,
    log,
    log_step,
    log_upper_tail,
    power,
    rational,
)
from dpcalc.certify.numerics.composition import Curve, Part
from dpcalc.certify.numerics.moments import Loss, either_order
from dpcalc.certify.one_pass.contraction import averaged, hybrid
from dpcalc.certify.runs.divergence import (
    laplace_left,
    positions_left,
    product_last,
    product_left,
    run_of,
    run_without_shift,
    shift_log_mu,
)
from dpcalc.certify.runs.matching import hockey_stick
from dpcalc.certify.runs.run import COMPOSED, HIDDEN, OF_ANOTHER_RUN, SPLIT, RunInputs, room
from dpcalc.certify.runs.uses import classes
from dpcalc.certify.sampled.hidden_past import Shifts, Uses
from dpcalc.certify.sampled.noisy_output import gradient
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Noise

MOST_PASSES = 3000
MOST_STEPS = 1500


@defines("released.own_noise", Gdp)
def _own_noise(v: RunInputs) -> arb:
    return arb(v.epochs).sqrt() * v.quotient(["sensitivity"], [min(divisor for _, _, divisor in v.sizes()), "scale"])


@defines("released.cyclic", Gdp)
def _cyclic(v: RunInputs) -> arb:
    size, later = v.batch_behind()
    log_mu = shift_log_mu(run_of(v, size), later)
    return arb(0) if infinite(log_mu) else arb(v.epochs).sqrt() * log_mu.exp()


@defines("released.optimal", Profile, slack=1e-11, weight=4.0, limit=f"{MOST_PASSES} passes")
def _optimal(v: RunInputs) -> arb:
    log_each = ZERO if v.epoch_delta.is_zero() else v.epoch_delta.log()
    return optimal(v.epochs, v.exact("epoch_epsilon"), log_each, v.exact("epsilon"))


def optimal(count: int, each: fmpq, log_each: arb, epsilon: arb | fmpq) -> arb:
    """Return ln delta at epsilon of ``count`` passes, each (``each``, exp(``log_each``))-private.

    Raises:
        OutOfReach: there are more than `MOST_PASSES`.
    """
    if count > MOST_PASSES:
        raise OutOfReach(f"more than {MOST_PASSES} passes, whose outcomes are added one by one")
    odds = (-arb(each)).exp()
    total, weight = arb(0), arb(1)
    for x in range(count, -1, -1):
        exact = (2 * x - count) * each
        gap = arb(exact) - epsilon
        if not gap > 0:
            if gap <= 0 or (isinstance(epsilon, fmpq) and exact == epsilon):
                break
            raise Undecided
        total -= fmpz(math.comb(count, x)) * weight * (-gap).expm1()
        weight *= odds
    log_pure = ZERO if total.is_zero() else total.log() - count * odds.log1p()  # ln delta at epoch_delta = 0
    if infinite(log_each):
        return log_pure
    kept = count * (-log_each.exp()).log1p()  # ln (1 - delta_0)^E
    hidden = arb(0) if total.is_zero() else -log_pure.exp()
    return (-(kept + hidden.log1p()).expm1()).log()


@defines("released.advanced", Profile, slack=1e-9)
def _advanced(v: RunInputs) -> arb:
    spare = v.epsilon - v.epochs * v.epoch_epsilon * v.epoch_epsilon.expm1()
    if spare <= 0:
        return arb(0)
    if not spare > 0:
        raise Undecided
    return (v.epochs * v.epoch_delta + (-((spare / v.epoch_epsilon) ** 2) / (2 * v.epochs)).exp()).log().min(0)


@defines("released.pure", Gdp, slack=math.inf, weight=2.0)
def _pure(v: RunInputs) -> arb:
    # erfc is inverted by bisection: Q(h) = 1/(1 + e^eps), mu = 2 h sqrt(E).
    e = v.epoch_epsilon
    target = -e - (-e).exp().log1p()
    low, high = arb(0), (2 + (2 * e).sqrt() + e).upper()
    for _ in range(400):
        middle = ((low + high) / 2).mid()
        tail = log_upper_tail(middle)
        if tail > target:
            low = middle
        elif tail < target:
            high = middle
        else:
            break
        if high - low < high * arb(2) ** -90:
            break
    return 2 * low.union(high) * arb(v.epochs).sqrt()


MOST_POSITIONS = 300
_LIMIT = "compositions that would take too many points"


def _gaussian(mu: arb) -> Curve:
    return lambda z: hockey_stick(z, mu)


def _sampled(curve: Curve, share: fmpq) -> Curve:
    """Return p delta(ln(1 + (e^z - 1)/p)), of a step that uses the record with probability p, in either order."""
    p = arb(share)
    return lambda z: p * curve((z.expm1() / p).log1p())


def sampled_steps(mu: arb, v: RunInputs, steps: int) -> list[Part]:
    """Return ``steps`` steps on fresh batches; a step whose batch has the record has this mu."""
    if not steps or mu.is_zero():
        return []
    if v.batch_size >= v.records:
        return [_one_gaussian(mu * arb(steps).sqrt())]
    rate = fmpq(v.batch_size, v.records)
    return [Part(_sampled(_gaussian(mu), rate), steps, loss=either_order(mu, arb(rate)))]


def _one_gaussian(mu: arb) -> Part:
    return Part(_gaussian(mu), 1, loss=Loss(mu=mu))


def _step_mu(v: RunInputs) -> arb:
    """Return mu = 2 L/(b sigma)."""
    return 2 * v.quotient(["lipschitz"], [v.batch_size, "noise_std"])


# --- fresh batches ---------------------------------------------------------------------------------------------------


@defines("noisy_sgd.composition", Composition, weight=20000.0, limit=_LIMIT)
def _composition(v: RunInputs) -> list[Part]:
    return sampled_steps(_step_mu(v), v, v.steps)


@defines("dp_sgd.gradient", Composition, weight=20000.0, limit=_LIMIT)
def _gradient(v: RunInputs) -> list[Part]:
    return sampled_steps(2 * gradient(v, unconstrained=False) / (v.batch_size * v.noise_std), v, v.steps)


def plan_of(v: RunInputs) -> Mapping[str, Any] | None:
    """Return the split of the noise; None if all steps are composed.

    Raises:
        OutOfReach: the certificate belongs to another run.
    """
    certificate = v.certified()
    if certificate["theorem"] == COMPOSED:
        return None
    plan = certificate.get("values", {})
    if certificate["theorem"] != SPLIT or not {"composed", "split", "fraction"} <= set(plan):
        raise OutOfReach(OF_ANOTHER_RUN)
    if not (1 <= plan["split"] <= plan["composed"] <= v.steps and 0.0 < plan["fraction"] < 1.0):
        raise OutOfReach(OF_ANOTHER_RUN)
    return plan


@defines("noisy_sgd.hidden", Composition, weight=20000.0, limit=_LIMIT)
def _hidden(v: RunInputs) -> tuple[list[Part], arb]:
    plan, mu = plan_of(v), _step_mu(v)
    if plan is None:
        return _composition(v), ZERO
    c, q, done = v.lipschitz_factor(), arb(plan["fraction"]), v.steps - plan["composed"]
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    use = 2 * v.step_size * v.lipschitz / v.batch_size
    apart = use * geometric(arb(c), done)
    if v.diameter is not None:
        apart = apart.min(v.diameter)
    unit = power(arb(c), plan["composed"]) / (v.step_size * v.noise_std * (q * room(arb(c), plan["split"])).sqrt())
    split = sampled_steps(mu / (1 - q).sqrt(), v, plan["split"])
    failure = ZERO
    hides = [_one_gaussian(apart * unit)] if done and not (apart * unit).is_zero() else []
    if (counted := plan.get("counted", 0)) and not unit.is_zero():
        uses, wide = Uses(1, fmpq(min(v.batch_size, v.records), v.records), arb(c)), v.diameter
        start = arb(0) if counted == done or wide is None else wide * power(arb(c), counted)
        if counted > done or (counted < done and wide is None) or plan["past"] != "told":
            raise OutOfReach(OF_ANOTHER_RUN)
        shifts = Shifts.of(uses.law(counted), use, start, wide, unit)
        hides, failure = [shifts.told()], log(shifts.lost)
    return [*hides, *split, *sampled_steps(mu, v, plan["composed"] - plan["split"])], failure


def geometric(c: arb, terms: int) -> arb:
    """Return 1 + c + ... + c^(terms-1)."""
    return arb(terms) if c == 1 else (1 - power(c, terms)) / (1 - c)


@defines("expanding.sampled", Composition, weight=20000.0, limit=_LIMIT)
def _expanding_sampled(v: RunInputs) -> list[Part]:
    plan, mu = plan_of(v), _step_mu(v)
    if plan is None:
        return _composition(v)
    m, q = plan["composed"], arb(plan["fraction"])
    if plan["split"] != m or m >= v.steps:
        raise OutOfReach(OF_ANOTHER_RUN)
    return [_one_gaussian(carried(v, m) / q.sqrt()), *sampled_steps(mu / (1 - q).sqrt(), v, m)]


# --- passes ----------------------------------------------------------------------------------------------------------


@defines("released.cyclic_curve", Composition, weight=20000.0, limit=_LIMIT)
def _cyclic_curve(v: RunInputs) -> list[Part]:
    size, later = v.batch_behind()

    run = run_without_shift(v, size)

    def curve(z: arb) -> arb:
        return delta_of(product_last(run._replace(epsilon=z), later))

    return [Part(curve, v.epochs)]


def delta_of(log: arb) -> arb:
    """Return delta from its logarithm."""
    return arb(0) if infinite(log) else log.exp()


def _own_step(v: RunInputs) -> Curve:
    """Return the curve of the record's own step in the smallest batch."""
    ratio = own_ratio(v)
    return lambda z: delta_of(log_step(v.noise, z, ratio))


def own_ratio(v: RunInputs) -> arb:
    """Return Delta/(d scale), d the smallest divisor of a batch."""
    return v.quotient(["sensitivity"], [min(divisor for _, _, divisor in v.sizes()), "scale"])


def _least(*curves: Curve) -> Curve:
    return lambda z: least(*(curve(z) for curve in curves))


def few_steps(v: RunInputs) -> None:
    """Raise OutOfReach if a pass has too many steps to add up at every knot."""
    if sum(alike.steps for alike in classes(v)) > MOST_POSITIONS:
        raise OutOfReach(f"more than {MOST_POSITIONS} steps in a pass")


@defines("released.shuffled_epochs", Composition, weight=20000.0, limit=_LIMIT)
def _shuffled_epochs(v: RunInputs) -> list[Part]:
    return [Part(_least(*pass_curves(v)), v.epochs)]


@defines("released.shuffled_epochs_point", Searched, slack=1e-3, weight=60.0, limit=f"{MOST_PASSES} passes")
def _point(v: RunInputs) -> arb:
    at = rational(float(v.certified()["point"]), typed=False)
    there = v.changed(epsilon=at)
    ways = [log_step(v.noise, there.epsilon, own_ratio(v))]
    if v.displacement is not None and v.diameter is not None:
        ways.append(averaged(there, product_left))
    if v.is_nonexpansive() and v.noise == Noise.GAUSSIAN:
        ways.append(averaged(there, positions_left))
    if v.is_nonexpansive() and v.noise == Noise.LAPLACE and v.dimension in (None, 1):
        ways.append(averaged(there, laplace_left))
    if places := places_curve(v):
        ways.append(log(places(there.epsilon)))
    if v.epochs == 1:
        ways.append(hybrid(there))
    return _point_composed(v, at, least(*ways))


@defines("released.shuffled_epochs_secret", Searched, slack=1e-3, weight=300.0, limit=f"{MOST_PASSES} passes")
def _secret_point(v: RunInputs) -> arb:
    certificate = v.certified()
    at = rational(float(certificate["point"]), typed=False)
    return _point_composed(v, at, shuffled(v.changed(epsilon=at, certificate=certificate["inner"])))


@defines("released.shuffled_epochs_secret_curve", Composition, weight=60000.0, limit=_LIMIT)
def _secret_curve(v: RunInputs) -> list[Part]:
    """Return the curve of a pass: the chords in e^z between the certificate's points, or the record's own noise."""
    certificate = v.certified()
    points = (certificate.get("values") or {}).get("points", ())
    if certificate["theorem"] != HIDDEN or any(len(rows) != len(points) for rows in certificate["matchings"]):
        raise OutOfReach(OF_ANOTHER_RUN)
    if len(points) < 2 or points[0] != 0.0 or any(not a < b for a, b in pairwise(points)):
        raise OutOfReach(OF_ANOTHER_RUN)
    at, nodes = shuffled_at(v), [arb(float(point)) for point in points]
    matchings = list(zip(*certificate["matchings"], strict=True))

    @functools.cache
    def delta_at(i: int) -> arb:
        here = at(nodes[i], matchings[i]).min(arb(1))
        return here if i == 0 else here.min(delta_at(i - 1))  # delta decreases

    def chord(z: arb) -> arb:
        i = bisect.bisect_right(points, float(z.mid())) - 1
        if i and not z >= nodes[i]:  # the double was rounded up
            i -= 1
        if i + 1 == len(points):
            return delta_at(i)
        share = (z - nodes[i]).expm1() / (nodes[i + 1] - nodes[i]).expm1()
        return delta_at(i) + share.min(arb(1)) * (delta_at(i + 1) - delta_at(i))

    return [Part(_least(_own_step(v), chord), v.epochs)]


def _point_composed(v: RunInputs, at: fmpq, log_each: arb) -> arb:
    """Return ln delta of all passes if each is (``at``, exp(``log_each``))-private."""
    if log_each >= 0:
        return arb(0)
    if not log_each < 0:
        raise Undecided
    return optimal(v.epochs, at, log_each, v.epsilon)


def pass_curves(v: RunInputs) -> list[Curve]:
    """Return the applicable curves of one pass in a random order."""
    curves = [_own_step(v)]
    if v.displacement is not None and v.diameter is not None:
        curves.append(lambda z: delta_of(averaged(v.changed(epsilon=z), product_left)))
    if v.noise == Noise.GAUSSIAN and v.is_nonexpansive():
        few_steps(v)
        curves.append(lambda z: delta_of(averaged(v.changed(epsilon=z), positions_left)))
        if places := places_curve(v, deep=False):
            curves.append(places)
    return curves


@defines("expanding.fresh", Composition, weight=20000.0, limit=_LIMIT)
def _expanding_fresh(v: RunInputs) -> list[Part]:
    named = v.changed(noise=Noise.GAUSSIAN, scale=v.exact("noise_std"))
    curves, batches, c = [_own_step(named)], classes(v), factor(v)
    if v.displacement is not None and v.diameter is not None:
        curves.append(lambda z: delta_of(averaged(named.changed(epsilon=z), product_left)))
    if c is not None or len(batches) > 1:
        few_steps(v)
        ratios = [v.quotient(["sensitivity"], [alike.divisor, "noise_std"]) for alike in batches]
        by_place = [
            (arb(fmpq(alike.size, v.records)), ratio / (arb(1) if c is None else room_of(c, k)).sqrt())
            for alike, ratio in zip(batches, ratios, strict=True)
            for k in range(alike.first, alike.first + alike.steps)
        ]
        curves.append(lambda z: sum((share * hockey_stick(z, mu) for share, mu in by_place), arb(0)))
    return [Part(_least(*curves), v.epochs)]


# --- Laplace noise ---------------------------------------------------------------------------------------------------


@defines("expanding.laplace", Composition, weight=20000.0, limit=_LIMIT)
def _laplace(v: RunInputs) -> list[Part]:
    if v.steps is None:
        divisor = min(d for _, _, d in v.sizes()) if v.batch_size is not None else v.records
        ratio = v.quotient(["sensitivity"], [divisor, "scale"])
        return [Part(laplace_step(ratio), v.epochs or 1, ratio)]
    size = v.records if v.batch_size is None else v.batch_size
    if size >= v.records:
        ratio = v.quotient(["sensitivity"], [v.records, "scale"])
        return [Part(laplace_step(ratio), v.steps, ratio)]
    ratio = 2 * v.quotient(["lipschitz"], [size, "scale"])
    share = fmpq(size, v.records)
    return [Part(_sampled(laplace_step(ratio), share), v.steps, (arb(share) * ratio.expm1()).log1p())]


def laplace_step(ratio: arb) -> Curve:
    """Return (1 - exp((z - r)/2))_+."""
    return lambda z: (-((z - ratio) / 2).min(arb(0)).expm1()).max(arb(0))
