"""Definitions of `hidden_position` and `shuffled_epochs`: passes in random order, evaluated at their certificates.

If the position is known, delta is the mean over positions; if it is secret, delta is the value that Theorem HW proves
at the certificate. The certificate names the theorem with the least value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile, Searched
from dpcalc.certify.many_passes.fresh_orders import Law, Runs, cases, law
from dpcalc.certify.numerics import sums
from dpcalc.certify.numerics.balls import OutOfReach, least, log, log_delta
from dpcalc.certify.runs.matching import Places, blocks_of, hockey_stick, known_mean, matched, rows_of
from dpcalc.certify.runs.run import HIDDEN, KNOWN, OF_ANOTHER_RUN, WORST, RunInputs, Stretch, passes_cost, restarts_cost
from dpcalc.certify.runs.uses import Pace, SamePlaces, classes, cost
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Adjacency, Noise

MOST_POSITIONS = 1500
FINE, COARSE = (1000, 0.002), (100, 0.01)
"""Blocks of known positions: for one order, and for each case of the earlier uses."""


# --- runs ------------------------------------------------------------------------------------------------------------


def _places(v: RunInputs) -> Places:
    """Return the possible places of a record; sizes are relative to a use in a full batch."""
    batches = classes(v)
    full = max(alike.divisor for alike in batches)
    used = sum(alike.steps * alike.size for alike in batches)
    return Places(batches, [arb(full) / alike.divisor for alike in batches], v.records - used)


def _ratio(v: RunInputs, noise: str = "noise_std") -> arb:
    """Return Delta/(d sigma), d the divisor of a full batch."""
    return v.quotient(["sensitivity"], [max(alike.divisor for alike in classes(v)), noise])


def _reach(v: RunInputs) -> arb | None:
    """Return the diameter in units of a use in a full batch; None if there is none."""
    if v.diameter is None or v.exact("sensitivity") == 0:
        return None
    return v.quotient(["diameter", max(alike.divisor for alike in classes(v))], ["step_size", "sensitivity"])


def _swaps(v: RunInputs) -> tuple[tuple[int, int], ...]:
    """Return the weights of a use by the record and by its replacement; a null record moves half as far."""
    return ((2, 1), (1, 2)) if v.adjacency == Adjacency.NULL_RECORD else ((1, 1),)


def _same_places(v: RunInputs, epochs: int) -> SamePlaces:
    return SamePlaces(Pace(v), epochs, _reach(v), max(_places(v).sizes, key=lambda size: float(size.mid())))


def _root(ratio: arb) -> Callable[[arb], arb]:
    return lambda squared: ratio * squared.sqrt()


# --- one order -------------------------------------------------------------------------------------------------------


def _pass_mean(v: RunInputs, ratio: arb) -> arb:
    """Return ln of the mean of delta_G(eps; r_k/sqrt k) over the positions of one pass."""
    places, total = _places(v), arb(0)
    for alike, size in zip(places.classes, places.sizes, strict=True):
        total += alike.size * sums.hockey_sticks(v.epsilon, ratio * size, alike.first + alike.steps - 1, alike.first)
    return log(total / places.records)


def _mean(v: RunInputs, ratio: arb, costs: Sequence[SamePlaces]) -> arb:
    """Return ln of the mean over all positions, each at the least of the costs."""
    places = _places(v)
    if sum(alike.steps for alike in places.classes) > MOST_POSITIONS:
        raise OutOfReach(f"more than {MOST_POSITIONS} steps in a pass")
    total = arb(0)
    for alike, size in zip(places.classes, places.sizes, strict=True):
        for k in range(alike.first, alike.first + alike.steps):
            mu = ratio * least(*(places.own(k, size) for places in costs)).sqrt()
            total += alike.size * log_delta(v.epsilon, mu).exp()
    return log(total / places.records)


@defines("shuffled_epochs.once", Profile, slack=5e-3, weight=25.0, limit=f"{MOST_POSITIONS} steps a pass")
def _once(v: RunInputs) -> arb:
    plain = SamePlaces(Pace(v, contracts=False), v.epochs, None, arb(1))
    return _mean(v, _ratio(v), [plain, _same_places(v, v.epochs)])


@defines("released.shuffle_once", Profile, slack=5e-3, weight=25.0, limit=f"{MOST_POSITIONS} steps a pass that forget")
def _released_once(v: RunInputs) -> arb:
    ratio = _ratio(v, "scale") * arb(v.epochs).sqrt()
    if v.diameter is None and v.exact("strong_convexity") == 0:
        return _pass_mean(v, ratio)
    return _mean(v, ratio, [SamePlaces(Pace(v, contracts=False), 1, None, arb(1)), _same_places(v, 1)])


def places_curve(v: RunInputs, *, deep: bool = True) -> Callable[[arb], arb] | None:
    """Return delta of one pass, the mean over positions; None if steps need not contract and the domain is unbounded.

    Args:
        v: the run.
        deep: whether even a tiny delta must be relatively accurate, which takes longer.
    """
    by_place = places_of_pass(v)
    if by_place is None:
        return None
    if not deep:
        return lambda z: sum((share * hockey_stick(z, mu) for share, mu in by_place), arb(0))
    return lambda z: sum((share * log_delta(z, mu).exp() for share, mu in by_place), arb(0))


def places_of_pass(v: RunInputs) -> list[tuple[arb, arb]] | None:
    """Return the share of the records at every position of one pass, and mu there; None as for `places_curve`."""
    smooth = v.noise == Noise.GAUSSIAN and v.is_nonexpansive()
    if not smooth or v.exact("strong_convexity") > v.exact("smoothness"):
        return None
    if v.diameter is None and v.exact("strong_convexity") == 0:
        return None
    places, ratio, costs = _places(v), _ratio(v, "scale"), _same_places(v, 1)
    if sum(alike.steps for alike in places.classes) > MOST_POSITIONS:
        raise OutOfReach(f"more than {MOST_POSITIONS} steps in a pass")
    return [
        (arb(fmpq(alike.size, places.records)), ratio * costs.own(k, size).sqrt())
        for alike, size in zip(places.classes, places.sizes, strict=True)
        for k in range(alike.first, alike.first + alike.steps)
    ]


@defines("shuffled_epochs.worst_position", Gdp, slack=1e-8, weight=15.0)
def _worst_position(v: RunInputs) -> arb:
    batches, c = classes(v), v.contraction_factor()
    period = sum(alike.steps for alike in batches)
    if any(alike.size < alike.divisor for alike in batches):
        c = Pace(v).slowest
    worst = arb(0)
    for alike in batches:
        one = v.quotient(["sensitivity"], [alike.divisor, "noise_std"])
        squared = arb(v.epochs - 1) / period + arb(1) / alike.first
        if v.diameter is None or v.exact("sensitivity") == 0:
            squared = squared.min(passes_cost(period, alike.first, v.epochs, c))
        else:
            reach = v.quotient(["diameter", alike.divisor], ["step_size", "sensitivity"])
            squared = squared.min(restarts_cost(period, alike.first, v.epochs, c, reach))
        worst = worst.max(one * squared.sqrt())
    return worst


def _hidden(v: RunInputs, ratio: arb, costs: SamePlaces, known: Callable[[], arb]) -> arb:
    """Return ln delta by the theorem that the certificate names.

    Args:
        v: the run, the epsilon and the certificate.
        ratio: mu of a use in a full batch.
        costs: the costs of positions.
        known: ln delta for a known order.
    """
    certificate = v.certified()
    if certificate["theorem"] == KNOWN:
        return known()
    matchings, swaps, places = certificate.get("matchings", ()), _swaps(v), _places(v)
    if certificate["theorem"] != HIDDEN or len(matchings) != len(swaps) or any(len(m) != 1 for m in matchings):
        raise OutOfReach(OF_ANOTHER_RUN)
    worst = arb(0)
    for swap, (matching,) in zip(swaps, matchings, strict=True):
        if matching is None:
            worst = worst.max(known_mean(rows_of(places, blocks_of(places, *FINE), _root(ratio), costs), v.epsilon))
        else:
            worst = worst.max(matched(places, matching, swap, _root(ratio), costs, v.epsilon))
    return log(worst / places.records)


@defines("hidden_position.shuffled", Searched, slack=1e-3, weight=300.0)
def shuffled(v: RunInputs) -> arb:
    """Return ln delta of one pass in a secret order."""
    ratio = _ratio(v, "scale")
    return _hidden(v, ratio, _same_places(v, 1), lambda: _pass_mean(v, ratio))


def shuffled_at(v: RunInputs) -> Callable[[arb, Sequence[Any]], arb]:
    """Return (epsilon, matchings) -> delta of one pass in a secret order, with one matching per swap.

    None instead of a matching stands for a known position.
    """
    places, ratio, costs = _places(v), _ratio(v, "scale"), _Remembered(_same_places(v, 1))
    swaps, mu_of = _swaps(v), _root(ratio)

    def at(epsilon: arb, matchings: Sequence[Any]) -> arb:
        worst = arb(0)
        for swap, matching in zip(swaps, matchings, strict=True):
            if matching is not None:
                worst = worst.max(matched(places, matching, swap, mu_of, costs, epsilon))
            else:
                rows = rows_of(places, blocks_of(places, *FINE), mu_of, costs)
                known = _pass_mean(v.changed(epsilon=epsilon), ratio).exp() * places.records
                worst = worst.max(known_mean(rows, epsilon).min(known))
        return worst / places.records

    return at


class _Remembered:
    """Costs of positions, with a cache for the costs of one use."""

    def __init__(self, costs: SamePlaces) -> None:
        self.pair, self.unused, self._own = costs.pair, costs.unused, costs.own
        self._known: dict[tuple[int, float], arb] = {}

    def own(self, k: int, size: arb) -> arb:
        """Return the cost of uses of this size at k."""
        at = (k, float(size.mid()))
        if at not in self._known:
            self._known[at] = self._own(k, size)
        return self._known[at]


@defines("released.shuffle_once_secret", Searched, slack=1e-3, weight=300.0)
def _shuffle_once_secret(v: RunInputs) -> arb:
    ratio = _ratio(v, "scale") * arb(v.epochs).sqrt()
    return _hidden(v, ratio, _same_places(v, 1), lambda: _pass_mean(v, ratio))


@defines(
    "shuffled_epochs.once_secret",
    Searched,
    slack=1e-3,
    weight=300.0,
    limit=f"{MOST_POSITIONS} steps a pass where known",
)
def _once_secret(v: RunInputs) -> arb:
    return _hidden(v, _ratio(v), _same_places(v, v.epochs), lambda: _once(v))


# --- fresh orders ----------------------------------------------------------------------------------------------------


@defines(
    "shuffled_epochs.fresh", Searched, slack=5e-2, weight=500.0, limit=f"{MOST_POSITIONS} steps a pass of like batches"
)
def fresh(v: RunInputs) -> arb:
    """Return ln delta of the last iterate of passes in fresh orders."""
    certificate = v.certified()
    if certificate["theorem"] == WORST:
        return log_delta(v.epsilon, _worst_position(v))
    if certificate["theorem"] != KNOWN:
        raise OutOfReach(OF_ANOTHER_RUN)
    contracts, blocks = certificate.get("contracts"), certificate.get("blocks")
    if contracts is None:
        return arb(0)
    if v.epochs == 1:
        return _mean(v, _ratio(v), [_same_places(v, 1)]) if contracts else _pass_mean(v, _ratio(v))
    if blocks is None:
        return _alike_mean(v, certificate["earlier"]["parts"])
    runs = Runs(_places(v), Pace(v, contracts), v.epochs, _reach(v) if contracts else None)
    mu_of, total = _root(_ratio(v)), arb(0)
    for chance, costs in cases(runs, certificate["earlier"]):
        total += chance * known_mean(rows_of(runs.places, blocks, mu_of, costs), v.epsilon)
    return log(total / v.records)


@defines("shuffled_epochs.fresh_secret", Searched, slack=5e-2, weight=900.0)
def _fresh_secret(v: RunInputs) -> arb:
    certificate = v.certified()
    if certificate["theorem"] != HIDDEN:
        return fresh(v)
    if v.epochs == 1:
        return _hidden(v, _ratio(v), _same_places(v, 1), lambda: arb(0))
    runs, mu_of, worst = Runs(_places(v), Pace(v), v.epochs, _reach(v)), _root(_ratio(v)), arb(0)
    cases_of_pass = list(cases(runs, certificate["earlier"]))
    swaps, matchings = _swaps(v), certificate["matchings"]
    if len(matchings) != len(swaps) or any(len(rows) != len(cases_of_pass) for rows in matchings):
        raise OutOfReach(OF_ANOTHER_RUN)
    for swap, rows in zip(swaps, matchings, strict=True):
        total = arb(0)
        for (chance, costs), matching in zip(cases_of_pass, rows, strict=True):
            if matching is None:
                rows = rows_of(runs.places, blocks_of(runs.places, *COARSE), mu_of, costs)
                total += chance * known_mean(rows, v.epsilon)
            else:
                total += chance * matched(runs.places, matching, swap, mu_of, costs, v.epsilon)
        worst = worst.max(total)
    return log(worst / v.records)


def _alike_mean(v: RunInputs, parts: Sequence[int]) -> arb:
    """Return ln of the mean for 1-Lipschitz maps and batches of equal weight; see docs/method.md.

    The last use but one is at u and the first at v; with two passes they are the same use. All other uses count as in
    the last step of their pass.
    """
    places, epochs = _places(v), v.epochs
    length = sum(alike.steps for alike in places.classes)
    if length > MOST_POSITIONS or len({alike.divisor for alike in places.classes}) > 1:
        raise OutOfReach(f"more than {MOST_POSITIONS} steps in a pass")
    if len(parts) != min(2, epochs - 1):
        raise OutOfReach(OF_ANOTHER_RUN)
    laws, ratio, total = [law(length, part) for part in parts], _ratio(v), arb(0)
    for alike in places.classes:
        for k in range(alike.first, alike.first + alike.steps):
            total += alike.size * _at_last(v.epsilon, ratio, laws, length, epochs, k)
    if places.out:
        unused = cost(*([_steps(epochs - 2, length * (epochs - 2))] if epochs > 2 else []), _steps(1, length + 1))
        total += places.out * hockey_stick(v.epsilon, ratio * unused.sqrt())
    return log(total / places.records)


def _steps(size: int, count: int) -> Stretch:
    return Stretch(arb(size), arb(count), arb(1))


def _at_last(epsilon: arb, ratio: arb, laws: Sequence[Law], length: int, epochs: int, k: int) -> arb:
    """Return the mean of delta over the other places, with the last use at k."""
    later = laws[0]
    ends_of_cases: list[tuple[arb, arb, arb]] = []  # cost, and the two weights
    for u, flat, bent in zip(*later, strict=True):
        ends = [_steps(1, length + u - k), _steps(1, k)]
        if epochs == 2:
            ends_of_cases.append((cost(*ends), flat, bent))
            continue
        for first, flat_too, bent_too in zip(*laws[1], strict=True):
            if epochs == 3:
                squared = cost(_steps(1, length + first - u), *ends)
            else:
                squared = arb(1) / (length + first - 1) + arb(epochs - 4) / length
                squared += cost(_steps(1, length + 1 - u), *ends)
            ends_of_cases.append((squared, flat * flat_too, bent * bent_too))
    deltas = [hockey_stick(epsilon, ratio * squared.sqrt()) for squared, _, _ in ends_of_cases]
    mean = sum((x * flat for x, (_, flat, _) in zip(deltas, ends_of_cases, strict=True)), arb(0))
    largest = ratio * ratio * _largest([squared for squared, _, _ in ends_of_cases])
    if epsilon * epsilon >= largest + largest * largest / 4:  # delta_G is convex in mu^2
        return mean.min(sum((x * bent for x, (_, _, bent) in zip(deltas, ends_of_cases, strict=True)), arb(0)))
    smallest = ratio * ratio * least(*(squared for squared, _, _ in ends_of_cases))
    if epsilon * epsilon <= smallest + smallest * smallest / 4:  # it is concave: at most its value at the mean
        squared = sum((squared * bent for squared, _, bent in ends_of_cases), arb(0))
        return mean.min(hockey_stick(epsilon, ratio * squared.sqrt()))
    return mean


def _largest(values: Sequence[arb]) -> arb:
    """Return the largest of the balls."""
    largest = values[0]
    for value in values[1:]:
        largest = largest.max(value)
    return largest
