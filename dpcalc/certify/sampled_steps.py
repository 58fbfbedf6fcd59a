"""Definitions of `sampled`: clipped gradients of batches drawn at random, every iterate public.

Lengths are in units of the noise: N(m) is a normal law of variance 1, mu = 1/z, and M_a = (1-q) N(0) + q N(a mu).
"""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.balls import Inputs
from dpcalc.certify.bins import Epoch
from dpcalc.certify.composition import Curve, Part
from dpcalc.certify.gaussian import upper_tail
from dpcalc.certify.guarantee import Gdp, InOrders
from dpcalc.certify.hidden import hockey_stick
from dpcalc.certify.table import defines
from dpcalc.model.choices import Adjacency

_LIMIT = "compositions that would take too many points"


# --- every use seen ---------------------------------------------------------------------------------------------------


def _composed(v: Inputs, uses: int) -> arb:
    """Return sqrt(uses)/z, twice that where a record is replaced by another."""
    apart = 2 if v.adjacency == Adjacency.REPLACE_ONE else 1
    return apart * arb(uses).sqrt() / v.noise_multiplier


def _bins(v: Inputs) -> int:
    """Return the number of steps of an epoch."""
    return -(-int(v.records) // int(v.batch_size))


def _epochs(v: Inputs) -> int:
    """Return the number of epochs, a last one that is cut short counted whole."""
    return -(-int(v.steps) // _bins(v))


@defines("sampled.full", Gdp)
def _full(v: Inputs) -> arb:
    return _composed(v, v.steps)


@defines("sampled.shuffle", Gdp)
def _shuffle(v: Inputs) -> arb:
    return _composed(v, _epochs(v))


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


def _rate(v: Inputs) -> arb:
    """Return q, b/n where both are known."""
    if v.records is not None and v.batch_size is not None:
        return arb(fmpq(int(v.batch_size), int(v.records)))
    return arb(v.exact("sample_rate"))


@defines("sampled.poisson", InOrders, weight=20000.0, limit=_LIMIT)
def _poisson(v: Inputs) -> list[Part]:
    mu, q = 1 / v.noise_multiplier, _rate(v)
    replaced = v.adjacency == Adjacency.REPLACE_ONE
    if q == 1:
        return [Part(_gaussian(_composed(v, v.steps)), 1)]
    if replaced:
        return [Part(_replaced(mu, q), v.steps)]
    return [Part(_removed(mu, q), v.steps, other=_added(mu, q))]


@defines("sampled.fixed", InOrders, weight=20000.0, limit=_LIMIT)
def _fixed(v: Inputs) -> list[Part]:
    mu, q = 1 / v.noise_multiplier, _rate(v)
    if v.adjacency == Adjacency.NULL_RECORD:
        return [Part(_nulled(mu, q), v.steps, other=_removed(mu, q))]
    other = None if v.adjacency == Adjacency.REPLACE_ONE else _added(2 * mu, q)
    return [Part(_removed(2 * mu, q), v.steps, other=other)]


# --- an epoch of balls in bins ----------------------------------------------------------------------------------------


@defines("sampled.balls_in_bins", InOrders, weight=60000.0, limit="epochs of very many steps")
def _balls_in_bins(v: Inputs) -> list[Part]:
    if _bins(v) == 1:
        return [Part(_gaussian(_composed(v, _epochs(v))), 1)]
    epoch = Epoch.of(1 / v.noise_multiplier, _bins(v))
    if v.adjacency == Adjacency.REPLACE_ONE:
        return [Part(epoch.replaced, _epochs(v))]
    return [Part(epoch.removed, _epochs(v), other=epoch.added)]
