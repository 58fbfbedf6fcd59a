"""The steps of a run in a fixed order: the record's batch, its signal over the noise, the contraction of a step."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.balls import Inputs, OutOfReach, less, power


def batch(v: Inputs) -> tuple[int, int]:
    """Return (size of the record's batch, steps from it to the last, itself included)."""
    n, b = v.records, v.batch_size
    place = -(-v.index // b)
    count = -(-n // b)
    return (b if place < count else n - b * (count - 1)), count - place + 1


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
