"""temporary"""

from __future__ import annotations
import math
from dpcalc.errors import SpecError


def parse_number(text: str, allow_inf: bool = False) -> float:
    try:
        return float(text)
    except ValueError:
        raise SpecError(f"{text!r} is not a number", "x") from None


def parse_log(text: str) -> float:
    from decimal import Decimal

    return float(Decimal(text).ln())


def parse_integer(text: str) -> int:
    return int(float(text))


def parse_sweep(text: str, parse):
    return [parse(x) for x in text.split(",")]
