"""Numbers as people type them."""

import contextlib
import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcalc.errors import SpecError
from dpcalc.model.numbers import MAX_SWEEP, parse_integer, parse_log, parse_number, parse_sweep
from tests.oracles import cases


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("1/60000", 1 / 60000), ("2^-20", 2.0**-20), ("2**-20", 2.0**-20), ("1_000", 1000.0),
        ("1%", 0.01), (".5", 0.5), ("+3", 3.0), ("-1e3", -1000.0), ("0", 0.0), ("2^-1074", 5e-324),
        ("1e308", 1e308),
        (" 7 ", 7.0), ("1/3", 1 / 3), ("50%", 0.5), ("1.", 1.0), ("-0.0", 0.0), ("0e999999", 0.0),
        ("0/7", 0.0),
        ("1/2^3", 0.125), ("1e400/1e399", 10.0), ("-2^3", -8.0), ("100_000e-5", 1.0), ("4.9e-324", 5e-324),
    ],
)  # fmt: skip
def test_numbers(text: str, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "nan", "NaN", "inf", "-inf", "1,5", "1e999", "0x10", "1 2", "٣", "²", "1e-400",
        "2^999999999", "1/0",
        "9" * 101, "1__0", "1e", "--1", "1e5000000", "one", "1/2/3x", "2^0.5", "0^-1", "1e-5%%", "\x00",
        "1\n2", "(1)",
        "++inf", "2^", "^2", "/2", "1/", "%", "1/3/5", "2^3^4", "1_", "_1", "1 /3", "\t7",
        "1e99999^100000", "2^-1076",
        "99999999999999999999^-100000", "\uff11", "1\u2028", "-1e999",
    ],
)  # fmt: skip
def test_not_numbers(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_number(text)
    assert len(caught.value.message.splitlines()) == 1
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("1,5", "'1,5' is not a number", "write 1.5 (a comma separates the values of a sweep)"),
        ("10,500", "'10,500' is not a number", "write 10500 or 10.500 (a comma separates the values of a sweep)"),
        ("1,000,500", "'1,000,500' is not a number", "write 1000500 (a comma separates the values of a sweep)"),
        ("a,b", "'a,b' is not a number", "a comma separates the values of a sweep"),
        ("1e-400", "'1e-400' is too small for a number: it would round to 0", "at least 5e-324"),
        ("1/0", "'1/0' divides by zero", "write a quotient with another denominator"),
    ],
)
def test_refusals_say_what_to_do(text: str, message: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_number(text)
    assert (caught.value.message, caught.value.hint) == (message, hint)


@pytest.mark.parametrize("text", ["inf", "+inf", "Infinity"])
def test_infinity_where_it_has_a_meaning(text: str) -> None:
    assert parse_number(text, allow_inf=True) == math.inf


@pytest.mark.parametrize("text", ["-inf", "1e999", "nan", "inf/2", "2^inf"])
def test_nothing_else_is_infinite(text: str) -> None:
    with pytest.raises(SpecError):
        parse_number(text, allow_inf=True)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_round_trip(value: float) -> None:
    assert parse_number(repr(value)) == value


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_quotients_are_correctly_rounded(a: int, b: int) -> None:
    assert parse_number(f"{a}/{b}") == float(Fraction(a, b))


@given(st.text(max_size=30) | st.text("0123456789eE+-_./^*%,: infalog", max_size=30))
@settings(max_examples=cases(1000))
def test_any_text_is_a_number_or_refused(text: str) -> None:
    for parse in (parse_number, parse_log, parse_integer):
        with contextlib.suppress(SpecError):
            assert math.isfinite(parse(text))
        with contextlib.suppress(SpecError):
            assert len(parse_sweep(text, parse)) <= MAX_SWEEP


@pytest.mark.parametrize(
    "text",
    ["1e-5", "1e-5000", "2^-20000", "1/3", "1%", "5e-324", "1e-300", "0.999999", "1e999"],
)
def test_logarithms(text: str) -> None:
    exact = {"2^-20000": -20000 * Decimal(2).ln(), "1/3": -Decimal(3).ln(), "1%": -Decimal(100).ln()}
    expected = exact.get(text) or Decimal(text).ln()
    assert parse_log(text) == pytest.approx(float(expected), rel=2e-16)


@pytest.mark.parametrize(
    "text",
    ["0.9999999999", "1.0000001", "0.99", "1.5", "0." + "9" * 98, "1." + "0" * 97 + "1", "64.5", "0.015"],
)
def test_logarithms_near_one_are_of_the_number_typed(text: str) -> None:
    with localcontext(prec=250):
        expected = float(Decimal(text).ln())
    assert abs(parse_log(text) - expected) <= math.ulp(expected)


@given(st.floats(min_value=5e-324, allow_infinity=False))
def test_logarithms_of_doubles(value: float) -> None:
    expected = Decimal(repr(value)).ln(Context(prec=60))
    assert abs(Decimal(parse_log(repr(value))) - expected) <= Decimal(math.ulp(float(expected)))


def test_the_logarithm_of_one() -> None:
    assert parse_log("1") == parse_log("5/5") == 0.0


@pytest.mark.parametrize("text", ["0", "-1", "0.0", "nan", "inf", "-1e-5000", "0%"])
def test_logarithms_need_positive_numbers(text: str) -> None:
    with pytest.raises(SpecError):
        parse_log(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("60000", 60000),
        ("60_000", 60000),
        ("1e6", 10**6),
        ("1e15", 10**15),
        ("2^20", 2**20),
        ("-3", -3),
        ("6/3", 2),
        ("1e18", 10**18),
        ("50k", 50000),
        ("1.5K", 1500),
        ("2M", 2 * 10**6),
    ],
)
def test_integers(text: str, value: int) -> None:
    assert parse_integer(text) == value


@pytest.mark.parametrize(
    "text", ["1.5", "1e-3", "1e19", "x", "1/3", "1e99999", "-1e19", "\u0663", "inf", "", "k", "-M", "1kk"]
)
def test_not_integers(text: str) -> None:
    with pytest.raises(SpecError):
        parse_integer(text)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3.0]), ("1,2,4", [1.0, 2.0, 4.0]), ("1:2:0.5", [1.0, 1.5, 2.0]),
        ("0:0.3:0.1", [0.0, 0.1, 0.2, 0.3]),
        ("10:1:-3", [10.0, 7.0, 4.0, 1.0]), ("0:1:0.1", [k / 10 for k in range(11)]),
        ("1:10:4", [1.0, 5.0, 9.0]),
        ("0:1:1/3", [0.0, 1 / 3, 2 / 3, 1.0]), ("5:5:1", [5.0]),
        ("0:3e-300:1e-300", [0.0, 1e-300, 2e-300, 3e-300]),
        ("100:1:log3", [100.0, 10.0, 1.0]), ("1, 2", [1.0, 2.0]), ("2^-2:1:1/4", [0.25, 0.5, 0.75, 1.0]),
        ("1:1000:log4", [1.0, 10.0, 100.0, 1000.0]), ("1:2:1,5", [1.0, 2.0, 5.0]),
    ],
)  # fmt: skip
def test_sweeps(text: str, values: list[float]) -> None:
    assert parse_sweep(text, parse_number) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1:4:log7", [1, 2, 3, 4]), ("1:1e15:log16", [10**k for k in range(16)]), ("1:7:3", [1, 4, 7]),
        ("1e18:1e18:1", [10**18]), ("9e17:1e18:1e17", [9 * 10**17, 10**18]),
        ("50,000", [50000]), ("1,000,000", [10**6]), ("10,050", [10050]),  # thousands
        ("1, 200", [1, 200]), ("100, 200,300", [100, 200, 300]), ("10,50", [10, 50]), ("1,50,000", [1, 50, 0]),  # lists
    ],
)  # fmt: skip
def test_integer_sweeps(text: str, values: list[int]) -> None:
    found = parse_sweep(text, parse_integer)
    assert found == values
    assert all(isinstance(value, int) for value in found)


def test_integer_sweeps_have_whole_steps() -> None:
    with pytest.raises(SpecError, match="not a whole number"):
        parse_sweep("1:2:0.5", parse_integer)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.integers(2, 50))
def test_log_sweeps_go_one_way_between_exact_ends(first: float, last: float, points: int) -> None:
    values = parse_sweep(f"{first!r}:{last!r}:log{points}", parse_number)
    assert (values[0], values[-1]) == (first, last)
    assert values == sorted(values, reverse=first > last)


def test_a_sweep_of_the_greatest_length() -> None:
    assert len(parse_sweep("1:10000:1", parse_integer)) == MAX_SWEEP
    assert len(parse_sweep(",".join(["1"] * MAX_SWEEP), parse_integer)) == MAX_SWEEP
    for text in ("1:10000:1,1", "1,1:10000:1", "1:5000:1,1:5001:1", "0:1:1e-300", "5e-324:1e308:log10001"):
        with pytest.raises(SpecError, match="at most 10000"):
            parse_sweep(text, parse_number)


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
        "1e5000:2e5000:1e5000",
        "0:1e5000:1",
        "1:10:log",
        "1:10:log\u0663",
        "1:2:0.1\n",
        "1" + ",1" * 20000,
    ],
)
def test_bad_sweeps(text: str) -> None:
    with pytest.raises(SpecError):
        parse_sweep(text, parse_number)


@pytest.mark.parametrize("text", ["10,500", "1,100,500", "60.000", "1.000.500"])
def test_a_count_with_separated_thousands_is_asked_back(text: str) -> None:
    with pytest.raises(SpecError, match="may be something else") as caught:
        parse_sweep(text, parse_integer)
    assert (caught.value.hint or "").startswith(f"write {text.replace(',', '').replace('.', '')};")


def test_what_can_be_no_list_and_no_fraction_is_a_count() -> None:
    assert parse_sweep("60,000", parse_integer) == [60000]
    assert parse_sweep("10, 500", parse_integer) == [10, 500]
    assert parse_sweep("10,50", parse_integer) == [10, 50]
    assert parse_sweep("60.0", parse_integer) == [60]
    assert parse_sweep("10,500", parse_number) == [10.0, 500.0]
