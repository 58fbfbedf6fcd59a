"""Numbers and sweeps as text."""

import math
import random
from pathlib import Path

from dpcalc.model.numbers import MAX_SWEEP, parse_integer, parse_log, parse_number, parse_sweep
from tests.fuzz.files import refusable
from tests.fuzz.mutate import NUMBERS, mutated

_SEEDS = tuple(text.encode() for text in (*NUMBERS, "1:10:0.5", "1:1000:log7", "1,2,4", "1:2:1e-9", "-5:5:1"))


def numbers(r: random.Random, _: Path) -> None:
    """Every reading of a text is a number in range, or refused; where two readings give one, they agree."""
    text = mutated(r, _SEEDS, longest=400).decode("utf-8", "surrogateescape")
    value = refusable(lambda: parse_number(text))
    log = refusable(lambda: parse_log(text))
    whole = refusable(lambda: parse_integer(text))
    assert value is None or math.isfinite(value), text
    assert whole is None or (isinstance(whole, int) and abs(whole) <= 10**18), text
    if value is not None and whole is not None:
        assert value == float(whole), text
    if value is not None:
        assert (log is not None) == (value > 0.0), text
    if value is not None and log is not None and value > 1e-300:
        assert abs(log - math.log(value)) <= 1e-15 * abs(log) + 1.2e-16, text
    for parse in (parse_number, parse_integer):
        many = refusable(lambda parse=parse: parse_sweep(text, parse))
        assert many is None or 1 <= len(many) <= MAX_SWEEP, text
