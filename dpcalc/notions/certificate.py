"""What a search found, as records of a few numbers: the theorem alone then proves the value, without the search.

A guarantee that is the best of many leaves one of these for each of its answers. `dpcalc.certify` reads it as JSON, and
evaluates the theorem at it in ball arithmetic.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

KNOWN, HIDDEN, WORST = "known position", "hidden position", "worst position"
"""Theorems that a bound takes the least of: the mean over known positions, Theorem HW, the worst fixed position."""
COMPOSED, SPLIT, POINT, ALLOCATION = "composed", "split noise", "point composed", "allocation"
"""The same for steps: all composed, or a share of the noise hides the early ones; one point of a pass's curve; what is
spent in each step.
"""


class Blocks(NamedTuple):
    """How positions are put together: single ones up to ``alone``, then blocks whose ends grow by exp(``growth``).

    ``growth`` is 0 where all positions are single.
    """

    alone: int
    growth: float


class Matching(NamedTuple):
    """The matrices (R, M) of Theorem HW, by what they are made from; see docs/method.md, "Hidden position".

    Attributes:
        level: z of the common level ln gamma = mu z - mu^2/2.
        receivers: of each class of like positions, how many rows may receive, counted from the last position on.
        blocks: what the rows are.
        rows: how many they are, a record that is left out included.
    """

    level: float
    receivers: tuple[int, ...]
    blocks: Blocks
    rows: int


class Earlier(NamedTuple):
    """The cases of where a record was used before the last pass of fresh orders.

    Attributes:
        window: J, of how many passes before the last two the number of heavy uses counts.
        numbers: the numbers of heavy uses that are told apart; one between two of them counts as the larger.
        parts: for each number, into how many blocks the positions of the last pass but one fall.
    """

    window: int
    numbers: tuple[int, ...]
    parts: tuple[int, ...]


class Certificate(NamedTuple):
    """What proves an answer.

    Attributes:
        theorem: which of the theorems that the bound takes the least of.
        earlier: the cases of the earlier uses, in fresh orders.
        blocks: of positions that are known.
        contracts: whether what strong convexity and the domain give is used.
        matchings: for each way to put the null record, and each case in the order of `Earlier`: the matching, or None
            where the position counts as known.
        point: epsilon of a pass, where one point of its curve is composed.
        inner: what proves the curve of the pass there.
        values: further numbers by name: split points, orders, shares of noise.
    """

    theorem: str
    earlier: Earlier | None = None
    blocks: Blocks | None = None
    contracts: bool | None = None
    matchings: tuple[tuple[Matching | None, ...], ...] = ()
    point: float | None = None
    inner: Certificate | None = None
    values: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what is set, as JSON types, and a digest of it, by which a slip in a copy is noticed."""
        fields = {name: _plain(value) for name, value in self._asdict().items() if value is not None and value != ()}
        return {**fields, "digest": digest(fields)}


def digest(fields: dict[str, Any]) -> str:
    """Return a check sum of a certificate in JSON; it protects from slips, and proves nothing."""
    return f"{zlib.crc32(repr(fields).encode()):08x}"


def _plain(value: Any) -> Any:
    """Return a value as JSON types."""
    if isinstance(value, Certificate):
        return value.as_json()
    if isinstance(value, tuple):
        if hasattr(value, "_asdict"):
            return {name: _plain(item) for name, item in value._asdict().items()}
        return [_plain(item) for item in value]
    return value
