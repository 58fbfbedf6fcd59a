"""Public shares of classes, and weights of classes, as given or from the shares.

A clipped gradient times a public number of at most 1 is no longer than before, so weights with a maximum of 1 cost no
privacy. Shares counted among the records would; nothing here looks at records.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

from dpcalc.errors import SpecError, refuse
from dpcalc.model.numbers import parse_number

BALANCED = {"balanced": 1.0, "sqrt": 0.5}
"""Names of weights that are shares to the power -p, and p.

Balanced weights count all classes alike. Their square roots rank records best: `docs/training.md` says by how much.
"""

_MOST = 1e15  # the largest count of records in a class: doubles represent all integers up to it
_ROUNDED = 0.005  # the rounding error of a share with two digits
_UNIT = 2.0**-20  # weights are multiples of it, so that their sums are exact


def shares_of(typed: Any, count: int) -> tuple[float, ...]:
    """Return the shares of the classes, which sum to 1, from shares or from numbers of records.

    Args:
        typed: a text "0.98,0.02" or "9800,200", or numbers.
        count: of classes.

    Raises:
        SpecError: they are neither.
    """
    shares = _numbers(typed)
    total = math.fsum(shares)
    whole = all(share == math.floor(share) for share in shares)
    fits = whole or abs(total - 1.0) <= _ROUNDED * count + 1e-9
    if len(shares) != count or not 1.0 / _MOST <= min(shares) <= max(shares) <= _MOST or not fits:
        summing = "" if fits or not shares else f", and sum to {total:g}"
        example = ",".join(["0.9"] + [f"{0.1 / (count - 1):.2g}"] * (count - 1))
        raise SpecError(
            f"the shares of the classes are {_shown(typed)}{summing}",
            f"give {count} public shares that sum to 1, as --class-shares {example}, or whole numbers of records",
        )
    return tuple(share / total for share in shares)


def weights_of(typed: Any, shares: tuple[float, ...] | None, count: int) -> tuple[float, ...]:
    """Return the weights of the classes, scaled to a maximum of 1: multiples of 2^-20, rounded down, at least 2^-20.

    Args:
        typed: a name from `BALANCED`; or a text "1,10", or numbers.
        shares: of the classes, if they are given.
        count: of classes.

    Raises:
        SpecError: they are malformed, or the shares that they follow from are not given.
    """
    if isinstance(typed, str) and typed in BALANCED:
        if shares is None:
            raise SpecError(
                f"{typed} weights follow from public shares of the classes, which are not given",
                f"give --class-shares, or the weights: --class-weight {','.join(['1'] + ['9'] * (count - 1))}",
            )
        given = [share ** -BALANCED[typed] for share in shares]
    else:
        given = _numbers(typed)
        refuse(
            (
                len(given) != count,
                f"the weights of the classes are {_shown(typed)}",
                f"give {' or '.join(BALANCED)}, or {count} public numbers above 0 in the order of the labels",
            )
        )
    largest = max(given)
    return tuple(max(1.0, math.floor(weight / largest / _UNIT)) * _UNIT for weight in given)


def _numbers(typed: Any) -> list[float]:
    """Return the numbers of a text with commas, or of a sequence; an empty list if one is not finite and positive."""
    if isinstance(typed, (Mapping, Set)):
        return []  # neither is in the order of the labels
    try:
        parts = typed.split(",") if isinstance(typed, str) else list(typed)
        numbers = [parse_number(part.strip()) if isinstance(part, str) else float(part) for part in parts]
    except (SpecError, ValueError, TypeError):
        return []
    return numbers if all(0.0 < number < math.inf for number in numbers) else []


def _shown(typed: Any) -> str:
    return repr(typed if isinstance(typed, str) else str(typed))[:60]
