"""The cases of a record's earlier uses in fresh random orders, and the cost of the last use in each."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from flint import arb, fmpq

from dpcalc.certify.numerics.balls import OutOfReach
from dpcalc.certify.runs.matching import Places
from dpcalc.certify.runs.run import OF_ANOTHER_RUN, Stretch
from dpcalc.certify.runs.uses import FreshPlaces, Pace, passes_left
from dpcalc.files import Fields

_NARROW = 64  # up to this many probabilities are added directly
_MOST_CASES = 3000


class Case(NamedTuple):
    """A case of the earlier uses: its probability, and the costs of positions in it."""

    chance: arb
    costs: FreshPlaces


class Runs(NamedTuple):
    """Several passes in fresh orders: a record's places, the contraction of steps, E, and the diameter in uses."""

    places: Places
    pace: Pace
    epochs: int
    reach: arb | None


def cases(runs: Runs, earlier: Fields) -> Iterator[Case]:
    """Yield the cases of at least two passes; None stands for the rest.

    Args:
        runs: the passes.
        earlier: a `dpcalc.notions.profiles.Earlier` in JSON.

    Raises:
        OutOfReach: the cases belong to another run.
    """
    window, numbers, parts = earlier["window"], earlier["numbers"], earlier["parts"]
    if len(numbers) != len(parts) or not _fits(window, numbers, runs.epochs):
        raise OutOfReach(OF_ANOTHER_RUN)
    heavy, light, chance = _sizes(runs.places, numbers)
    before = -1
    for number, pieces in zip(numbers, parts, strict=True):
        weight = arb(1) if numbers == [0] else _between(window, chance, before, number)
        before = number
        for at, size, share in nodes(runs, pieces):
            heads = _heads(runs, heavy, light, window, number, at)
            yield Case(weight * share, FreshPlaces(runs.pace, runs.reach, heads, at, size))


def _fits(window: int, numbers: list[int], epochs: int) -> bool:
    """Return whether a window and the numbers of heavy uses in it fit this many passes."""
    rising = all(a < b for a, b in pairwise(numbers))
    return (
        isinstance(window, int) and bool(numbers) and rising and numbers[0] >= 0
        and (window == 0 if epochs == 2 else 1 <= window <= epochs - 2)
        and (numbers == [0] or (len(numbers) < _MOST_CASES and numbers[-1] == window))
    )  # fmt: skip


def _sizes(places: Places, numbers: list[int]) -> tuple[arb, arb, fmpq]:
    """Return the largest size, the next, and the probability of the largest; if all sizes count as the largest, both
    are the largest."""
    divisors = sorted({alike.divisor for alike in places.classes})
    largest = {alike.divisor: size for alike, size in zip(places.classes, places.sizes, strict=True)}
    heavy = largest[divisors[0]]
    if numbers == [0]:
        return heavy, heavy, fmpq(0)
    if len(divisors) == 1:
        raise OutOfReach(OF_ANOTHER_RUN)
    held = sum(alike.steps * alike.size for alike in places.classes if alike.divisor == divisors[0])
    return heavy, largest[divisors[1]], fmpq(held, places.records - places.out)


def _between(trials: int, chance: fmpq, low: int, high: int) -> arb:
    """Return P(low < Bin <= high)."""
    if high - low <= _NARROW:
        return sum((_mass(trials, chance, h) for h in range(low + 1, high + 1)), arb(0))
    below = _at_most(trials, chance, low) if low >= 0 else arb(0)
    return _at_most(trials, chance, high) - below


def _mass(trials: int, chance: fmpq, number: int) -> arb:
    """Return P(Bin = number)."""
    log_ways = arb(trials + 1).lgamma() - arb(number + 1).lgamma() - arb(trials - number + 1).lgamma()
    return (log_ways + number * arb(chance).log() + (trials - number) * arb(1 - chance).log()).exp()


def _at_most(trials: int, chance: fmpq, number: int) -> arb:
    """Return P(Bin <= number)."""
    if number >= trials:
        return arb(1)
    return arb(1 - chance).beta_lower(arb(trials - number), arb(number + 1), regularized=1).min(arb(1)).max(arb(0))


def nodes(runs: Runs, parts: int) -> Iterator[tuple[int, arb, arb]]:
    """Yield (position, size, probability) of a random position in a pass, each block at its lower end."""
    if not (isinstance(parts, int) and 1 <= parts <= _MOST_CASES):
        raise OutOfReach(OF_ANOTHER_RUN)
    places = runs.places
    for alike, size in zip(places.classes, places.sizes, strict=True):
        share = max(1, min(alike.steps, round(parts * alike.steps / runs.pace.steps)))
        lows = sorted({alike.first + alike.steps * i // share for i in range(share)})
        for low, end in zip(lows, [*lows[1:], alike.first + alike.steps], strict=True):
            yield low, size, arb(fmpq((end - low) * alike.size, places.records - places.out))


def _heads(runs: Runs, heavy: arb, light: arb, window: int, number: int, at: int) -> list[list[Stretch]]:
    """Return the allocations for the uses of all passes but the last two."""
    if runs.epochs == 2:
        return [[]]
    pace, reach = runs.pace, runs.reach
    before = runs.epochs - 2 - window
    head = [pace.repeat(pace.turn(heavy, 1, 1), before)] if before else []
    heads = [[*head, *_delayed(pace, heavy, light, window, number, at)]]
    if reach is None:
        return heads
    heads.append([pace.entry(reach, (pace.steps, at))])
    q = pace.quiet(pace.steps, 0).factor
    tried = {j for size in (heavy, light) for j in passes_left(reach, size, q, runs.epochs - 3)}
    for left in sorted(tried):
        among = min(number, left) if left <= window else left
        heads.append([pace.entry(reach, (pace.steps, 1)), *_delayed(pace, heavy, light, left, among, at)])
    return heads


def _delayed(pace: Pace, heavy: arb, light: arb, count: int, among: int, at: int) -> list[Stretch]:
    """Return the stretches of ``count`` >= 1 uses in the last steps of their passes; the last ``among`` are heavy."""
    first = count - among - (among == 0)
    stretches = [pace.repeat(pace.turn(light, 1, 1), first)] if first else []
    if among > 1:
        stretches.append(pace.repeat(pace.turn(heavy, 1, 1), among - 1))
    return [*stretches, pace.turn(heavy if among else light, 1, at)]


# --- known positions, 1-Lipschitz maps, batches of equal weight ------------------------------------------------------


class Law(NamedTuple):
    """Nodes of a uniform position on 1..l, with weights for decreasing functions and for those that are also convex."""

    at: list[int]
    flat: list[arb]
    bent: list[arb]


def law(steps: int, parts: int) -> Law:
    """Return the law in ``parts`` parts.

    Between two nodes a decreasing function is at most its value at the first, and a convex one at most its chord.
    """
    if not (isinstance(parts, int) and 1 <= parts <= _MOST_CASES):
        raise OutOfReach(OF_ANOTHER_RUN)
    at = sorted({*(min(steps, 1 + int(i * (steps / parts))) for i in range(parts)), 1, steps})
    counts = [*(b - a for a, b in pairwise(at)), 1]
    bent = [arb(count + 1) / 2 for count in counts]
    for i in range(1, len(at)):
        bent[i] += arb(counts[i - 1] - 1) / 2
    return Law(at, [arb(fmpq(count, steps)) for count in counts], [weight / steps for weight in bent])
