"""Several passes in random order with hidden iterates: one order for all passes, or a fresh one for each.

The public forms average over the record's position and hold for published orders; see `epochs`. The secret forms hide
the position within a pass (`hidden_position`). With one order for all epochs the swap of two records changes two steps
of every epoch. With fresh orders those of the earlier epochs count as public, and only the last one is secret
(`fresh_places`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from dpcalc.model.algorithm import Release, in_one_random_order
from dpcalc.model.quantities import Adjacency
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Gdp, Hints, Profile
from dpcalc.notions.profiles import HIDDEN, KNOWN, WORST, Certificate
from dpcalc.theorems.batch_layout import Positions
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, ONE_ORDER, ONE_RELEASE, STEP_WITHIN, WHERE_BOUNDED
from dpcalc.theorems.contraction.laplace import own_ratio
from dpcalc.theorems.contraction.shuffle import shifted_pass
from dpcalc.theorems.hidden.fresh_places import Cases, cases_of
from dpcalc.theorems.hidden.hidden_position import SECRET, least_of, secret_order, swaps_of
from dpcalc.theorems.hidden.position_certificates import Cell, Mixture
from dpcalc.theorems.hidden.positions import places_of
from dpcalc.theorems.many_passes.epochs import fresh_log_delta, known_cases, once_log_delta
from dpcalc.theorems.many_passes.repeated_allocation import Passes, Uses, bounded_mu, contracting_mu
from dpcalc.theorems.record import theorem
from dpcalc.theorems.setting import BATCHES, GAUSSIAN_STEP, Setting

_SECRET_PARTS, _FEWER = 12, 2  # pieces of the law of the last position but one: in the likeliest case, and otherwise
_LARGEST = 1e90  # no privacy is left at a larger ratio

_STEPS = "every loss is convex and smooth, step_size <= 2/smoothness"
_FRESH = (
    "a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the data; "
    "they may be published after the run"
)
_NOISE = "fresh Gaussian noise in every step"
_SECRET_DATA = "the sensitivity holds between all records that may occur, not only between the two compared"


# --- settings ---------------------------------------------------------------------------------------------------------


class RandomOrders(Setting):
    """Several passes in random order with Gaussian noise and steps that are Lipschitz maps."""

    @functools.cached_property
    def sharper(self) -> Passes:
        """The passes with strong convexity and the domain."""
        return Passes.of(self, self.noise_std, self.epochs)

    @functools.cached_property
    def passes(self) -> Passes:
        """The passes with only 1-Lipschitz maps."""
        return self.sharper.plain

    @functools.cached_property
    def worst(self) -> float:
        """mu of a record in the same position of every pass, for the worst position."""
        return max(self._mu_in_last_of(alike) for alike in self.layout.positions)

    def _mu_in_last_of(self, alike: Positions) -> float:
        plan, rate = self.layout, self.sharper.pace.slowest
        uses = Uses(self.sensitivity, alike.divisor, self.noise_std, plan.steps, alike.first, self.epochs)
        if math.isinf(self.diameter):
            return contracting_mu(uses, rate)
        return bounded_mu(uses, rate, self.step_size, self.diameter)


PUBLIC_ORDERS = (*BATCHES, "epochs", *GAUSSIAN_STEP, "step_size", "smoothness", "strong_convexity?", "diameter?")


SECRET_ORDERS = (*PUBLIC_ORDERS, "adjacency")


# --- public orders ----------------------------------------------------------------------------------------------------


@theorem(
    "shuffled_epochs.once",
    title="One random order for all epochs, position mixture",
    needs=PUBLIC_ORDERS,
    algorithms=in_one_random_order(Release.LAST),
    reference="dpcalc",
    locator="optimal shifts of a cyclic run for each position, averaged",
    formula="delta(eps) = (1/l) sum_{k=1}^{l} delta_G(eps; mu_1 sqrt((E-1)/l + 1/k)), mu_1 = Delta/(b sigma)",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(ONE_ORDER, _STEPS, _NOISE, WHERE_BOUNDED, ONE_RELEASE),
    slack="below 0.3 % of delta",
)
def once(run: RandomOrders) -> Profile:
    """The record keeps its position in every epoch: a whole epoch hides every use but the last, and the rest of the
    epoch hides the last one.

    >>> run = RandomOrders( records=1000, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=2.0,
    ...                    step_size=1.0, smoothness=1.0, )
    >>> round(once(run).profile(1.0), 2)
    -8.51
    """
    return Profile(lambda epsilon: _public(run, epsilon, once_log_delta), whole_mu=run.worst)


@theorem(
    "shuffled_epochs.worst_position",
    title="One random rotation for all epochs, worst position",
    needs=PUBLIC_ORDERS,
    algorithms=("rotation-epochs",),
    reference="dpcalc",
    locator="a cyclic run at its last position, of which all others are post-processed",
    formula="mu = mu_1 sqrt((E-1)/l + 1), or as multi_epoch.cyclic_contraction and cyclic_domain at k = 1; "
    "mu_1 = Delta/(b sigma) in the smallest batch",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(ONE_ORDER, _STEPS, _NOISE, WHERE_BOUNDED, ONE_RELEASE),
)
def worst_position(run: RandomOrders) -> Gdp:
    """For every position, the iterate after the record's last use is that of a cyclic run with the record in the last
    position; later steps hide it further. It needs no random start, but the mean over positions is better.

    >>> run = RandomOrders( records=100, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=1.0,
    ...                    step_size=1.0, smoothness=1.0, )
    >>> round(worst_position(run).mu, 12)
    2.088061301782
    """
    return Gdp(run.worst)


@theorem(
    "shuffled_epochs.fresh",
    title="A fresh random order for every epoch, position mixture",
    needs=PUBLIC_ORDERS,
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="optimal shifts for each sequence of positions, most of them delayed to the end of their epoch, averaged",
    formula="delta(eps) = E delta_G(eps; mu_1 sqrt(S)), S <= (E-2)/l + 1/(l+1-k) + 1/k, or (E-2)/l + 4/(l+1) where "
    "2k > l+1; k uniform on 1..l",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    assumes=(_FRESH, _STEPS, _NOISE, WHERE_BOUNDED, ONE_RELEASE),
    slack="up to 5 % of delta against the mean over all positions; more with few steps in an epoch, and with strong "
    "convexity, a domain or a short batch at very small deltas",
)
def fresh(run: RandomOrders) -> Profile:
    """For every position in the earlier epochs, a use there costs little more than 1/l; the mean over the last epoch's
    position decides.

    >>> run = RandomOrders( records=1000, batch_size=1, last_batch="own", epochs=10, sensitivity=2.0, noise_std=2.0,
    ...                    step_size=1.0, smoothness=1.0, )
    >>> round(fresh(run).profile(1.0), 2)
    -8.51
    """
    return Profile(
        lambda epsilon: _public(run, epsilon, fresh_log_delta),
        certificate=lambda epsilon: _fresh_certificate(run, epsilon),
        hints=Hints(floor=lambda epsilon: _floor(run, epsilon)),
    )


def _floor(run: RandomOrders, epsilon: float) -> float:
    """Return a lower limit of the bound on ln delta: the uses of the last pass alone, and the worst position."""
    if run.passes.ratio > _LARGEST:
        return 0.0
    return min(
        once_log_delta(run.sharper._replace(epochs=1), epsilon), gaussian.log_delta(mu=run.worst, epsilon=epsilon)
    )


def _public(run: RandomOrders, epsilon: float, log_delta: Callable[[Passes, float], float]) -> float:
    """Return the least of ln delta without the contraction and the domain, with them, and at the worst position."""
    return min(value for value, _ in _ways(run, epsilon, log_delta))


def _ways(
    run: RandomOrders, epsilon: float, log_delta: Callable[[Passes, float], float]
) -> list[tuple[float, Certificate]]:
    """Return the values of the theorems that apply, each with its name."""
    if run.passes.ratio > _LARGEST:
        return [(0.0, Certificate(KNOWN))]
    plain = Certificate(KNOWN, contracts=False)
    if run.epochs == 1:
        own = own_ratio(run.sensitivity, run.noise_std, run.layout.size)
        ways = [(shifted_pass(run.layout, own, epsilon), plain)]
    else:
        worst = gaussian.log_delta(mu=run.worst, epsilon=epsilon)
        ways = [(log_delta(run.passes, epsilon), plain), (worst, Certificate(WORST))]
    if not run.sharper.bare:
        ways.append((log_delta(run.sharper, epsilon), Certificate(KNOWN, contracts=True)))
    return ways


def _fresh_certificate(run: RandomOrders, epsilon: float) -> Certificate:
    """Return which theorem gives the least ln delta for fresh orders, with the cases of its mean."""
    chosen = min(_ways(run, epsilon, fresh_log_delta), key=lambda way: way[0])[1]
    if chosen.contracts is None or run.epochs == 1:
        return chosen
    earlier, blocks = known_cases(run.sharper if chosen.contracts else run.passes)
    return chosen._replace(earlier=earlier, blocks=blocks)


# --- secret orders -------------------------------------------------------------------------------------------------


_SECRET_ASSUMES = (
    "the orders, the seed that made them, logs of single steps and every intermediate iterate stay secret for ever",
    _SECRET_DATA,
    _STEPS,
    _NOISE,
    WHERE_BOUNDED,
    ONE_RELEASE,
)


@theorem(
    "shuffled_epochs.once_secret",
    title="One secret random order for all epochs, hidden position",
    needs=SECRET_ORDERS,
    algorithms=("shuffle-once",),
    reference="dpcalc",
    locator="hidden position, with the swap of two records carried through all epochs",
    formula="delta(eps) = sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km), mu_km the optimal allocation for uses at k "
    "and m in every epoch; equal batches, c = 1: mu_kk^2 = mu_1^2 ((E-1)/l + 1/k)",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    promises=(SECRET,),
    assumes=("one order for all epochs, all orders equally likely and drawn without looking at the data (no rotation)",
             *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.once",
    slow=True,
    not_monotone_in=("records",),
)  # fmt: skip
def once_secret(run: RandomOrders) -> Profile:
    """An observer of the last iterate does not know the record's position in the secret order. Two positions differ by
    twice the earlier uses, so many epochs remove the gain.
    """
    return _secret(run, once_log_delta, secret_order)


@theorem(
    "shuffled_epochs.fresh_secret",
    title="A fresh secret random order for every epoch, hidden last position",
    needs=SECRET_ORDERS,
    algorithms=("shuffled-epochs",),
    reference="dpcalc",
    locator="hidden position in the last epoch, given the orders of the others",
    formula="delta(eps) = E_u sum_km w_k R_km delta_G(ln(M_km/R_km); mu_km(u)), mu(u) the optimal allocation for the "
    "uses before the last epoch and those at k, or at k and m",
    conditions=(STEP_WITHIN, CONVEXITY_WITHIN),
    promises=(SECRET,),
    assumes=("a fresh order for every epoch, all orders equally likely, independent, and drawn without looking at the "
             "data (no rotation)", *_SECRET_ASSUMES),
    slack="as hidden_position.shuffled; at most shuffled_epochs.fresh",
    slow=True,
    not_monotone_in=("records",),
)  # fmt: skip
def fresh_secret(run: RandomOrders) -> Profile:
    """The orders of all epochs but the last may become public; the record's position in the last one stays hidden."""
    profile = _secret(run, fresh_log_delta, _fresh_orders)

    def certificate(epsilon: float) -> Certificate:
        assert profile.certificate is not None
        proof = profile.certificate(epsilon)
        if proof.theorem != HIDDEN:
            return _fresh_certificate(run, epsilon)
        return proof if run.epochs == 1 else proof._replace(earlier=_cases(run.sharper).earlier)

    hints = profile.hints._replace(rough=None)  # a rough mixture may be far above for small deltas
    return profile.replacing(certificate=certificate, hints=hints)


def _cases(passes: Passes) -> Cases:
    return cases_of(passes, _SECRET_PARTS, _FEWER)


@functools.lru_cache(maxsize=32)
def _fresh_orders(passes: Passes, adjacency: Adjacency) -> Mixture:
    """Return the mixture of fresh orders, the last of them secret: a cell for each case of the earlier uses."""
    if passes.epochs == 1:
        return secret_order(passes, adjacency)
    cases = _cases(passes)
    cells = [Cell(math.log(weight), cases.single(i)) for i, weight in enumerate(cases.weight.ravel().tolist())]
    return Mixture(places_of(passes.plan, swaps_of(adjacency)), cells)


def _secret(
    run: RandomOrders,
    log_delta: Callable[[Passes, float], float],
    mixture: Callable[[Passes, Adjacency], Mixture],
) -> Profile:
    """Return the lesser of the bounds for a published and for a secret order."""
    return least_of(
        functools.lru_cache(maxsize=32)(lambda epsilon: _public(run, epsilon, log_delta)),
        (lambda: mixture(run.sharper, run.adjacency)) if run.passes.ratio <= _LARGEST else None,
    )
