"""Numbers as people type them."""

from __future__ import annotations

import contextlib
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcalc.errors import SpecError
from dpcalc.spec.numbers import parse_integer, parse_log, parse_number, parse_sweep


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("1/60000", 1 / 60000), ("2^-20", 2.0**-20), ("2**-20", 2.0**-20), ("1_000", 1000.0),
        ("1%", 0.01), (".5", 0.5), ("+3", 3.0), ("-1e3", -1000.0), ("0", 0.0), ("2^-1074", 5e-324), ("1e308", 1e308),
        (" 7 ", 7.0), ("1/3", 1 / 3), ("50%", 0.5),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "nan", "NaN", "inf", "-inf", "1,5", "1e999", "0x10", "1 2", "٣", "²", "1e-400", "2^999999999", "1/0",
        "9" * 101, "1__0", "1e", "--1", "1e5000000", "one", "1/2/3x", "2^0.5", "0^-1", "1e-5%%", "\x00", "1\n2", "(1)",
    ],
)  # fmt: skip
def test_not_numbers(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_number(text)
    assert "\n" not in caught.value.message.replace(repr(text), "")


def test_infinity_where_it_has_a_meaning() -> None:
    assert parse_number("inf", allow_inf=True) == math.inf


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_trip(value: float) -> None:
    assert parse_number(repr(value)) == value


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_quotients_are_correctly_rounded(a: int, b: int) -> None:
    assert parse_number(f"{a}/{b}") == float(Fraction(a, b))


@given(st.text(max_size=30))
@settings(max_examples=500)
def test_any_text_is_a_number_or_refused(text: str) -> None:
    for parse in (parse_number, parse_log, parse_integer):
        with contextlib.suppress(SpecError):
            parse(text)


@pytest.mark.parametrize("text", ["1e-5", "1e-5000", "2^-20000", "1/3", "1%", "5e-324", "1e-300", "0.999999", "1e999"])
def test_logarithms(text: str) -> None:
    exact = {"2^-20000": -20000 * Decimal(2).ln(), "1/3": -Decimal(3).ln(), "1%": -Decimal(100).ln()}
    expected = exact.get(text) or Decimal(text).ln()
    assert parse_log(text) == pytest.approx(float(expected), rel=2e-16)


@pytest.mark.parametrize("text", ["0", "-1", "0.0", "nan", "inf"])
def test_logarithms_need_positive_numbers(text: str) -> None:
    with pytest.raises(SpecError):
        parse_log(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("60000", 60000), ("60_000", 60000), ("1e6", 10**6), ("1e15", 10**15), ("2^20", 2**20), ("-3", -3)],
)
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize("text", ["1.5", "1e-3", "1e19", "x", "1/3"])
def test_not_integers(text: str) -> None:
    with pytest.raises(SpecError):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3.0]), ("1,2,4", [1.0, 2.0, 4.0]), ("1:2:0.5", [1.0, 1.5, 2.0]), ("0:0.3:0.1", [0.0, 0.1, 0.2, 0.3]),
        ("10:1:-3", [10.0, 7.0, 4.0, 1.0]), ("1:1000:log4", [1.0, 10.0, 100.0, 1000.0]), ("1:2:1,5", [1.0, 2.0, 5.0]),
    ],
)  # fmt: skip
def test_sweeps(text: str, values: list[float]) -> None:
    assert parse_sweep(text, parse_number) == values


def test_integer_log_sweeps_drop_repeats() -> None:
    assert parse_sweep("1:4:log7", parse_integer) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1,,2",
        "1:2",
        "1:2:0",
        "1:10:-1",
        "0:1:1e-9",
        "1:10:log1",
        "0:10:log3",
        "1:2:3:4",
        "a:b:c",
        ":",
        "1" + ",1" * 20000,
    ],
)
def test_bad_sweeps(text: str) -> None:
    with pytest.raises(SpecError):
        parse_sweep(text, parse_number)
