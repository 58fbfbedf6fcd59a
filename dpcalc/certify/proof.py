"""The proof of one result: an enclosure of the true value, as decimals, and where the reported value lies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from flint import arb

from dpcalc.certify.numerics.sums import BELOW, PROVED, UNDECIDED, Enclosure
from dpcalc.errors import NotConverged

LOG_DELTA = "log_delta"
"""The quantity that is enclosed where a delta is reported."""

_DIGITS = 20


class Open(NotConverged):
    """A result cannot be certified; the text says why."""


class Proof(NamedTuple):
    """An enclosure of the true value of ``quantity``.

    Attributes:
        quantity: what is enclosed, by its name in JSON.
        lower, upper: the ends as decimals, rounded outwards.
        bits: the working precision that the proof took.
        place: where the reported value lies: `PROVED`, `BELOW` or `UNDECIDED`.
        alone: why the theorem does not speak of the other reading of the inputs; empty if it speaks of both.
    """

    quantity: str
    lower: str
    upper: str
    bits: int
    place: str
    alone: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the proof as the field ``certified`` of a result."""
        fields = {"quantity": self.quantity, "lower": self.lower, "upper": self.upper, "bits": self.bits}
        return {**fields, "alone": self.alone} if self.alone else fields


def proof_by(quantity: str, enclosure: Enclosure) -> Proof:
    """Return the proof that an enclosure gives of a quantity."""
    lower, upper = enclosure.ends(_DIGITS)
    return Proof(quantity, lower, upper, enclosure.bits, enclosure.place)


def proof_between(quantity: str, low: arb, high: arb, bits: int, place: str) -> Proof:
    """Return the proof that a quantity lies between two balls; their union would be wider."""
    lower = Enclosure(low, bits, place).ends(_DIGITS)[0]
    return Proof(quantity, lower, Enclosure(high, bits, place).ends(_DIGITS)[1], bits, place)


def weakest(proofs: Iterable[Proof]) -> Proof:
    """Return the proof that says the least.

    Raises:
        Open: it says nothing.
    """
    rank = (PROVED, UNDECIDED, BELOW)
    proof = max(proofs, key=lambda one: rank.index(one.place))
    if proof.place == UNDECIDED:
        raise Open(f"open at {proof.bits} bits")
    return proof
