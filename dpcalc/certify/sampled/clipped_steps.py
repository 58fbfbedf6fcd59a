"""Definitions of `sampled`: clipped gradients of batches drawn at random, every iterate public.

Lengths are in units of the noise: N(m) is a normal law of variance 1, mu = 1/z, and M_a = (1-q) N(0) + q N(a mu).
"""

from __future__ import annotations

import math

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, InOrders
from dpcalc.certify.numerics.balls import ZERO, OutOfReach, log, log_sum, power, upper_tail
from dpcalc.certify.numerics.composition import Curve, Part
from dpcalc.certify.numerics.moments import ALONE, Loss, Piece, either_order, with_rate
from dpcalc.certify.released.compositions import geometric, plan_of
from dpcalc.certify.runs.matching import hockey_stick
from dpcalc.certify.runs.run import OF_ANOTHER_RUN, RunInputs, room
from dpcalc.certify.sampled.balls_in_bins import Epoch
from dpcalc.certify.sampled.hidden_past import Shifts, Uses
from dpcalc.certify.sampled.noisy_output import Draws
from dpcalc.certify.table import defines
from dpcalc.files import Fields
from dpcalc.model.quantities import Adjacency, Sampling

_LIMIT = "compositions that would take too many points"
_SPARED = 9.0  # -ln of the share of delta that rare draws may take
_MOST_KINDS = 32  # of steps: each kind is enclosed separately


# --- every use seen ---------------------------------------------------------------------------------------------------


def _composed(adjacency: Adjacency, mu: arb, uses: int) -> arb:
    """Return sqrt(uses) mu, or twice that if a record is replaced by another."""
    return (2 if adjacency == Adjacency.REPLACE_ONE else 1) * arb(uses).sqrt() * mu


def _bins(v: RunInputs) -> int:
    """Return the number of steps of an epoch."""
    return -(-_uses(v) * int(v.records) // int(v.batch_size))


def _uses(v: RunInputs) -> int:
    """Return the number of steps of an epoch that use a record."""
    return int(v.uses or 1)


def _epochs(v: RunInputs) -> int:
    """Return the number of epochs, counting a partial last one as whole."""
    return -(-int(v.steps) // _bins(v))


@defines("sampled.full", Gdp)
def _full(v: RunInputs) -> arb:
    return _composed(v.adjacency, 1 / v.noise_multiplier, v.steps)


@defines("sampled.shuffle", Gdp)
def _shuffle(v: RunInputs) -> arb:
    return _composed(v.adjacency, 1 / v.noise_multiplier, _epochs(v))


# --- one step ---------------------------------------------------------------------------------------------------------


def _gaussian(mu: arb) -> Curve:
    return lambda z: hockey_stick(z, mu)


def _removed(mu: arb, q: arb) -> Curve:
    """Return the profile of (M_1, N(0)): q delta_G(ln(1 + (g-1)/q))."""
    return lambda z: q * hockey_stick((z.expm1() / q).log1p(), mu)


def _added(mu: arb, q: arb) -> Curve:
    """Return the profile of (N(0), M_1): a delta_G(ln(g q/a)), a = 1 - g (1-q); it is at most a, and 0 for a <= 0."""

    def curve(z: arb) -> arb:
        a = q - z.expm1() * (1 - q)
        if not a > 0:
            return a.max(arb(0))
        return a * hockey_stick(z + (q / a).log(), mu)

    return curve


def _replaced(mu: arb, q: arb) -> Curve:
    """Return the profile of (M_1, M_-1): that of the half-line y > t/mu, beyond which P exceeds g Q.

    There q e^{-mu^2/2} (w - g/w) = K for w = e^t and K = (g-1)(1-q).
    """

    def curve(z: arb) -> arb:
        g, k, a = z.exp(), z.expm1() * (1 - q), q * (-mu * mu / 2).exp()
        y = ((k + (k * k + 4 * g * a * a).sqrt()) / (2 * a)).log() / mu
        return q * upper_tail(y - mu) - g * q * upper_tail(y + mu) - k * upper_tail(y)

    return curve


def _nulled(mu: arb, q: arb) -> Curve:
    """Return the profile of (M_2, M_1): that of the half-line y > t/mu, with A w^2 - B w = K for w = e^t.

    A = q e^{-2 mu^2}, B = g q e^{-mu^2/2} and K = (g-1)(1-q).
    """

    def curve(z: arb) -> arb:
        g, k = z.exp(), z.expm1() * (1 - q)
        a, b = q * (-2 * mu * mu).exp(), g * q * (-mu * mu / 2).exp()
        y = ((b + (b * b + 4 * a * k).sqrt()) / (2 * a)).log() / mu
        return q * upper_tail(y - 2 * mu) - g * q * upper_tail(y - mu) - k * upper_tail(y)

    return curve


def _loss_replaced(mu: arb, q: arb) -> Loss:
    """Return the loss of (M_1, M_-1)."""
    return Loss((Piece(with_rate(q, mu), with_rate(q, -mu)),))


def _loss_removed(mu: arb, q: arb) -> Loss:
    """Return the loss of (M_1, N(0))."""
    return Loss((Piece(with_rate(q, mu), ALONE),))


def _loss_nulled(mu: arb, q: arb) -> Loss:
    """Return the loss of the profiles of (M_2, M_1), beyond 3 mu/2, and of (M_1, N(0)) backward, beyond mu/2."""
    near, far = mu / 2, 3 * mu / 2
    pieces = (Piece(with_rate(q, 2 * mu), with_rate(q, mu), far), Piece(ALONE, with_rate(q, mu), near, rises=False))
    return Loss(pieces, (1 - q) * (1 - upper_tail(near) - upper_tail(far)))


def _rate(v: RunInputs) -> arb:
    """Return q: b/n if both are known."""
    if v.records is not None and v.batch_size is not None:
        return arb(fmpq(int(v.batch_size), int(v.records)))
    return arb(v.exact("sample_rate"))


@defines("sampled.poisson", InOrders, weight=20000.0, limit=_LIMIT)
def _poisson(v: RunInputs) -> list[Part]:
    return poisson(v.adjacency, _rate(v), 1 / v.noise_multiplier, v.steps)


def poisson(adjacency: Adjacency, rate: arb, mu: arb, steps: int) -> list[Part]:
    """Return ``steps`` steps on Poisson batches."""
    if rate == 1:
        return [Part(_gaussian(_composed(adjacency, mu, steps)), 1)]
    return [_step_poisson(adjacency, rate, mu, steps)]


def _step_poisson(adjacency: Adjacency, q: arb, mu: arb, steps: int) -> Part:
    if adjacency == Adjacency.REPLACE_ONE:
        return Part(_replaced(mu, q), steps, loss=_loss_replaced(mu, q))
    return Part(_removed(mu, q), steps, other=_added(mu, q), loss=_loss_removed(mu, q))


@defines("sampled.fixed", InOrders, weight=20000.0, limit=_LIMIT)
def _fixed(v: RunInputs) -> list[Part]:
    return [_step_fixed(v, 1 / v.noise_multiplier, v.steps)]


def _step_fixed(v: RunInputs, mu: arb, steps: int, rate: arb | None = None) -> Part:
    """Return ``steps`` steps on batches of fixed size that contain a record at this rate; None: the rate of the run."""
    q = _rate(v) if rate is None else rate
    if v.adjacency == Adjacency.NULL_RECORD:
        return Part(_nulled(mu, q), steps, other=_removed(mu, q), loss=_loss_nulled(mu, q))
    if v.adjacency == Adjacency.REPLACE_ONE:
        return Part(_removed(2 * mu, q), steps, loss=either_order(2 * mu, q))
    return Part(_removed(2 * mu, q), steps, other=_added(2 * mu, q), loss=_loss_removed(2 * mu, q))


@defines("sampled.scheduled", InOrders, weight=60000.0, limit=_LIMIT)
def _scheduled(v: RunInputs) -> list[Part]:
    if len(v.schedule) > _MOST_KINDS:
        raise OutOfReach(f"a schedule of more than {_MOST_KINDS} kinds of steps")
    return [_phase(v, arb(rate), arb(z) * (v.schedule_factor or 1), steps) for rate, z, steps in v.schedule.kinds()]


def _phase(v: RunInputs, rate: arb, noise_multiplier: arb, steps: int) -> Part:
    """Return ``steps`` equal steps of a schedule."""
    mu = 1 / noise_multiplier
    if v.max_batch_size is not None:
        return _step_cut(v, mu, rate, steps)
    if rate == 1:
        whole = _composed(v.adjacency, mu, 1)
        return Part(_gaussian(whole), steps, loss=Loss(mu=whole))
    return (
        _step_poisson(v.adjacency, rate, mu, steps)
        if v.sampling == Sampling.POISSON
        else _step_fixed(v, mu, steps, rate)
    )


@defines("sampled.truncated", InOrders, weight=20000.0, limit=_LIMIT)
def _truncated(v: RunInputs) -> list[Part]:
    return [_step_cut(v, 1 / v.noise_multiplier, _rate(v), v.steps)]


def _step_cut(v: RunInputs, mu: arb, q: arb, steps: int) -> Part:
    """Return the mean of the curves of Poisson batches and, if the other records fill one, of batches of fixed size."""
    cap, n, whole = int(v.max_batch_size), int(v.records), _step_poisson(v.adjacency, q, mu, steps)
    if cap >= n:
        return whole
    filled, larger = (
        q.beta_lower(arb(least), arb(m - least + 1), regularized=1) for least, m in ((cap, n - 1), (cap + 1, n))
    )
    of_one_size = v.adjacency in (Adjacency.REPLACE_ONE, Adjacency.NULL_RECORD)
    kept = (arb(cap) / n * larger / filled).min(q) if of_one_size and filled > 0 else q
    return _either(whole, _step_fixed(v, mu, steps, kept), filled)


def _either(one: Part, other: Part, chance: arb) -> Part:
    """Return a part that is the second one with probability ``chance`` and else the first; the choice is public."""

    def mean(curve: Curve, beside: Curve) -> Curve:
        return lambda z: (1 - chance) * curve(z) + chance * beside(z)

    back = None if one.other is None and other.other is None else mean(one.back, other.back)
    loss = None
    if one.loss is not None and other.loss is not None and 0 < chance < 1:
        parts = one.loss.weighted(1 - chance), other.loss.weighted(chance)
        loss = Loss(parts[0].pieces + parts[1].pieces, parts[0].at_zero + parts[1].at_zero)
    return Part(mean(one.curve, other.curve), one.copies, other=back, loss=loss)


def _draws(v: RunInputs, steps: int) -> Draws:
    """Return the draws of a step; the rare ones that are left out hardly add to delta in ``steps`` steps."""
    return Draws(int(v.batch_size), int(v.records), v.as_double("about") - _SPARED - math.log(steps))


def _left_out(v: RunInputs, steps: int) -> arb:
    """Return ln of the probability that a draw of one of the steps is left out; only draws with replacement are."""
    return log(steps * _draws(v, steps).lost.upper()) if steps and v.sampling == Sampling.WITH_REPLACEMENT else ZERO


def _step_drawn(v: RunInputs, mu: arb, steps: int) -> Part:
    """Return ``steps`` steps on records drawn with replacement."""
    of = _draws(v, steps)
    if v.adjacency == Adjacency.REPLACE_ONE:
        return Part(of.replaced(2 * mu), steps, loss=of.loss_either(2 * mu))
    if v.adjacency == Adjacency.NULL_RECORD:
        return Part(of.nulled(mu), steps, other=of.replaced(mu))
    return Part(of.removed(mu), steps, other=of.added(mu), loss=of.loss_removed(2 * mu))


@defines("sampled.with_replacement", InOrders, weight=40000.0, limit=_LIMIT)
def _with_replacement(v: RunInputs) -> tuple[list[Part], arb]:
    return [_step_drawn(v, 1 / v.noise_multiplier, v.steps)], _left_out(v, v.steps)


# --- hidden iterates --------------------------------------------------------------------------------------------------


@defines("sampled.hidden", InOrders, weight=20000.0, limit=_LIMIT)
def _hidden(v: RunInputs) -> tuple[list[Part], arb]:
    plan, mu = plan_of(v), 1 / v.noise_multiplier
    if plan is None:
        return _all_composed(v), _left_out(v, v.steps)
    c, q, done = _contraction(v), arb(plan["fraction"]), v.steps - plan["composed"]
    use, uses = _apart(v, plan.get("past")), _drawn(v, c)
    apart, wide, outright = use * uses.trials * geometric(c, done), None, False
    if v.clip is not None and v.diameter is not None:
        wide = v.diameter * v.batch_size / (v.step_size * v.clip)
        outright, apart = wide <= apart, apart.min(wide)
    unit = power(c, plan["composed"]) * mu / (q * room(c, plan["split"])).sqrt()
    if _most_contracting(v)[1]:
        unit *= (arb(v.steps) / 2**45).exp()
    shift, steps = apart * unit, plan["composed"] if outright else v.steps
    hides = [Part(_gaussian(shift), 1, loss=Loss(mu=shift))] if done and not shift.is_zero() else []
    failures: list[arb] = []
    if counted := plan.get("counted", 0):
        if counted > done or (counted < done and wide is None) or counted % uses.period:
            raise OutOfReach(OF_ANOTHER_RUN)
        start = arb(0) if counted == done or wide is None else wide * power(c, counted)
        shifts = Shifts.of(uses.law(counted), arb(use), start, wide, unit)
        hides, steps = [_of_past(v, plan["past"], shifts)], v.steps if counted == done else plan["composed"] + counted
        failures.append(log(shifts.lost))
    failures += [_left_out(v, plan["split"]), _left_out(v, plan["composed"] - plan["split"]), _too_large(v, steps)]
    return [*hides, *_last(v, plan, mu, q)], log_sum(*failures)


def _of_past(v: RunInputs, past: str, shifts: Shifts) -> Part:
    """Return the part of the past: secret if one data set acts as if without the record, else mirrored or told.

    Raises:
        OutOfReach: the certificate is of another run.
    """
    replaced, real = v.adjacency == Adjacency.REPLACE_ONE, _of_one_size(v) and v.adjacency == Adjacency.NULL_RECORD
    if past == "told":
        return shifts.told()
    if past == "secret" and not replaced and not real:
        return shifts.secret()
    if past == "secret of both" and replaced and not _of_one_size(v):
        return shifts.mirrored()
    raise OutOfReach(OF_ANOTHER_RUN)


def _last(v: RunInputs, plan: Fields, mu: arb, q: arb) -> list[Part]:
    """Return the last steps of a plan."""
    split, whole = plan["split"], plan["composed"] - plan["split"]
    if v.sampling == Sampling.BALLS_IN_BINS:
        bins, heavy = _bins(v), mu / (1 - q).sqrt()
        if plan["composed"] % bins:
            raise OutOfReach(OF_ANOTHER_RUN)
        parts = [
            balls_in_bins(v.adjacency, at, bins, n) for at, n in ((heavy, split // bins), (mu, whole // bins)) if n
        ]
        # In one epoch some steps may share their noise while others do not.
        return [*parts, balls_in_bins(v.adjacency, mu, bins, 1, (split % bins, heavy))] if split % bins else parts
    return [_step(v, at, count) for at, count in ((mu / (1 - q).sqrt(), split), (mu, whole)) if count]


def _all_composed(v: RunInputs) -> list[Part]:
    if v.sampling == Sampling.BALLS_IN_BINS:
        return _balls_in_bins(v)
    return [_step(v, 1 / v.noise_multiplier, v.steps)]


def _of_one_size(v: RunInputs) -> bool:
    return v.sampling in (Sampling.FIXED, Sampling.WITH_REPLACEMENT)


def _drawn(v: RunInputs, c: arb) -> Uses:
    """Return the law of the number of uses of a record."""
    if v.sampling == Sampling.BALLS_IN_BINS:
        return Uses(1, fmpq(1, _bins(v)), c, _bins(v))
    if v.sampling == Sampling.WITH_REPLACEMENT:
        return Uses(int(v.batch_size), fmpq(1, int(v.records)), c)
    return Uses(1, fmpq(int(v.batch_size), int(v.records)), c)


def _step(v: RunInputs, mu: arb, steps: int) -> Part:
    """Return ``steps`` steps on independent batches."""
    if v.sampling == Sampling.POISSON:
        return _step_poisson(v.adjacency, _rate(v), mu, steps)
    return (_step_fixed if v.sampling == Sampling.FIXED else _step_drawn)(v, mu, steps)


def _apart(v: RunInputs, past: str | None = None) -> int:
    """Return the distance that one use adds, in clipping norms: 2 if another record replaces this one."""
    alone = v.adjacency == Adjacency.NULL_RECORD or (not _of_one_size(v) and v.adjacency != Adjacency.REPLACE_ONE)
    return 1 if alone or past == "secret of both" else 2


def _contraction(v: RunInputs) -> arb:
    """Return the Lipschitz factor of a step on a batch of at most K records.

    Raises:
        OutOfReach: it is above 1.
    """
    eta, weight = v.exact("step_size"), v.exact("regularisation")
    beta = v.exact("smoothness") if _of_one_size(v) else weight
    c = max(abs(1 - eta * weight), abs(1 - eta * beta))
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    return arb(c)


def _most_contracting(v: RunInputs) -> tuple[int, bool]:
    """Return K, and whether it belongs to a factor larger by 2^-45, used if rounding could make K one less."""
    eta, weight, beta = v.exact("step_size"), v.exact("regularisation"), v.exact("smoothness")
    if _of_one_size(v) or not beta:
        return int(v.records), False
    room = (2 - 2 * eta * weight) * v.batch_size / (eta * beta)
    near = room * (1 + fmpq(1, 2**46)) if v.steps < 1 << 44 else room
    return max(int(near.floor()), 0), near.floor() > room.floor()


def _too_large(v: RunInputs, steps: int) -> arb:
    """Return ln of 1 - (1 - P(Bin(n-1, q) >= K))^s for s steps, K = floor((2 - 2 eta lambda) b/(eta beta)).

    A step on K records contracts.
    """
    most, _ = _most_contracting(v)
    if most >= v.records:
        return ZERO
    rate = arb(fmpq(1, _bins(v))) if v.sampling == Sampling.BALLS_IN_BINS else _rate(v)
    tail = rate.beta_lower(arb(most), arb(v.records - most), regularized=1) if most else arb(1)
    if v.sampling == Sampling.BALLS_IN_BINS:  # steps of an epoch are not independent
        return log(steps * tail).min(arb(0))
    return log(-(steps * (-tail).log1p()).expm1()) if tail < 1 else arb(0)


# --- an epoch of balls in bins ----------------------------------------------------------------------------------------


@defines("sampled.balls_in_bins", InOrders, weight=60000.0, limit="epochs of very many steps")
def _balls_in_bins(v: RunInputs) -> list[Part]:
    size, larger = divmod(_bins(v), _uses(v))
    sections = [(bins, count * _epochs(v)) for bins, count in ((size + 1, larger), (size, _uses(v) - larger)) if count]
    return [balls_in_bins(v.adjacency, 1 / v.noise_multiplier, bins, count) for bins, count in sections]


def balls_in_bins(adjacency: Adjacency, mu: arb, bins: int, count: int, heavier: tuple[int, arb] | None = None) -> Part:
    """Return ``count`` sections of ``bins`` steps; a record is in one step of each section; see `Epoch`."""
    if bins == 1:
        return Part(_gaussian(_composed(adjacency, mu, count)), 1)
    epoch = Epoch.of(mu, bins, heavier)
    if adjacency == Adjacency.REPLACE_ONE:
        return Part(epoch.replaced, count)
    return Part(epoch.removed, count, other=epoch.added)
