"""The least argument at which a falling formula meets a target, bracketed about a reported value."""

from __future__ import annotations

import functools
from collections.abc import Callable

from flint import arb

from dpcalc.certify.numerics.balls import CAP, double, precision
from dpcalc.certify.numerics.enclose import BELOW, PROVED, UNDECIDED, place_of
from dpcalc.certify.proof import Proof, proof_between

_EXPONENTS = range(50, 0, -2)
"""The arguments tried beside a value differ from it by the share 2^-k for these k, the nearest first."""

Excess = Callable[[arb], arb]


def least_argument(quantity: str, value: float, excess: Excess) -> Proof:
    """Return where the value lies relative to the least argument at which the excess is <= 0."""
    place, bits = place_of(lambda: excess(double(value)))
    if place == UNDECIDED:
        return Proof(quantity, "", "", bits, UNDECIDED)
    if place == PROVED:
        return _from_below(quantity, value, excess, bits)
    return _from_above(quantity, value, excess, bits)


def _from_below(quantity: str, value: float, excess: Excess, bits: int) -> Proof:
    """Return the proof for a value that meets the target: an argument below it does not."""
    x = double(value)
    for k in _EXPONENTS if value else ():
        with precision(CAP):
            smaller = x * (1 - arb(2) ** -k)
        place, spent = place_of(functools.partial(excess, smaller))
        bits = max(bits, spent)
        if place == BELOW:
            return proof_between(quantity, smaller, x, bits, PROVED)
    return proof_between(quantity, arb(0), x, bits, PROVED)


def _from_above(quantity: str, value: float, excess: Excess, bits: int) -> Proof:
    """Return the disproof of a value that misses the target: an argument above it meets it, if one is near."""
    x = double(value)
    for k in _EXPONENTS:
        with precision(CAP):
            larger = x * (1 + arb(2) ** -k) + arb(2) ** -1000
        place, spent = place_of(functools.partial(excess, larger))
        bits = max(bits, spent)
        if place == PROVED:
            return proof_between(quantity, x, larger, bits, BELOW)
    return Proof(quantity, repr(value), "inf", bits, BELOW)
