"""The steps of a run in a fixed order: the record's batch, its signal over the noise, the contraction of a step."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.numerics.balls import Inputs, OutOfReach, less, power
from dpcalc.model.choices import LastBatch


def sizes(v: Inputs) -> list[tuple[int, int, int]]:
    """Return (number of batches, records in each, what their sums are divided by) of a pass, in the order of time."""
    n, b, last = v.records, v.batch_size, v.last_batch
    if b >= n:
        return [(1, n, b if last == LastBatch.NOMINAL else n)]
    full, left = divmod(n, b)
    if left == 0 or last == LastBatch.DROP:
        return [(full, b, b)]
    if last == LastBatch.BALANCED:
        count = full + 1
        small, large = count - n % count, n % count
        whole = n // count
        return [(small, whole, whole)] + [(large, whole + 1, whole + 1)] * (large > 0)
    short = (1, left, b if last == LastBatch.NOMINAL else left)
    return [short, (full, b, b)] if last == LastBatch.FRONT else [(full, b, b), short]


def period(v: Inputs) -> int:
    """Return the number of steps of a pass."""
    return sum(count for count, _, _ in sizes(v))


def batch(v: Inputs) -> tuple[int, int]:
    """Return (what the sum of the record's batch is divided by, steps from it to the last, itself included).

    Raises:
        OutOfReach: the record is dropped.
    """
    before, steps = 0, 0
    for count, size, divisor in sizes(v):
        place = (v.index - 1 - before) // size
        if place < count:
            return divisor, period(v) - steps - place
        before, steps = before + count * size, steps + count
    raise OutOfReach("a record that every pass drops")


def ratio(v: Inputs) -> tuple[arb, int]:
    """Return (Delta/(b sigma), steps to the end)."""
    size, steps = batch(v)
    return v.quotient(["sensitivity"], [size, "noise_std"]), steps


def contraction(v: Inputs) -> arb:
    """Return c = max(|1 - eta m|, |1 - eta beta|).

    Raises:
        OutOfReach: it is above 1, if by rounding alone: 0.2 as a double is more than the decimal, and 10 * 0.2 above 2.
    """
    eta = v.exact("step_size")
    c = max(abs(1 - eta * v.exact("strong_convexity")), abs(1 - eta * v.exact("smoothness")))
    if c > 1:
        raise OutOfReach("the step size is above 2/smoothness, in this reading of the two")
    return arb(c)


def room(c: arb, steps: int) -> arb:
    """Return 1 + c^2 + ... + c^(2 steps - 2)."""
    if steps <= 64:
        return sum((power(c * c, j) for j in range(steps)), arb(0))
    left = 1 - c * c
    if left.is_zero():
        return arb(steps)
    less(arb(0), left)
    return (1 - power(c * c, steps)) / left
