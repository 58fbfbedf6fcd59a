"""Every renderer on reports built by hand: empty, failed, published, tiny and hostile ones."""

import csv
import io
import json
import math
import random
import re
from decimal import Decimal
from typing import Any

import mpmath
import pytest

from dpcalc.checked import Assertion
from dpcalc.render import FORMATS, render
from dpcalc.render.numbers import Digits, number
from dpcalc.render.words.brief import obstacle_rows
from dpcalc.report import Case, Obstacle, Report, Result, Tightness
from tests.schema import conforms

GOOD = Result(
    "iteration.stop", "Random stop", "epsilon", 0.123456789, "upper", epsilon=0.123456789, delta=1e-6,
    log_delta=math.log(1e-6), conversion="profile", assumes=("one pass", "w - step_size (gradient + Z)"),
    reference="Somebody 2018, Theorem 1", best=True,
)  # fmt: skip
PRINTED = GOOD._replace(
    bound="iteration.stop_published", value=0.01, epsilon=0.01, kind="published", best=False, mu=0.5, conversion="exact"
)
BY_ORDER = GOOD._replace(
    bound="iteration.stop_rdp", value=0.2, epsilon=0.2, best=False, order=7.5, conversion="canonne"
)
INPUTS: dict[str, tuple[Any, str]] = {
    "records": (1000, "flag"),
    "noise_std": (2.0, "flag"),
    "index": (1, "worst case"),
    "sensitivity": (2.0, "derived"),
    "delta": (1e-6, "flag"),
}


def report(*cases: Case, command: str = "rdp") -> Report:
    return Report(command, cases)


def case(*results: Result, **more: Any) -> Case:
    return Case("stop", more.pop("inputs", INPUTS), results, **more)


PASSED = case(GOOD)
FAILED = case(
    GOOD,
    BY_ORDER,
    PRINTED,
    obstacles=(Obstacle("iteration.pnsgd_domain", "needs diameter", "give --diameter"),),
    assertions=(Assertion("epsilon<=0.1", False, 0.123456789, -0.023456789), Assertion("delta<=1", True, 1e-6, 1.0)),
    warnings=("more orders would tighten it",),
    notes=("earlier records are better hidden",),
)
TINY = case(
    GOOD._replace(quantity="delta", value=5e-324, epsilon=1.0, delta=5e-324, log_delta=-11513.0, mu=0.01),
    inputs={"records": (1000, "flag"), "epsilon": (1.0, "flag")},
)
MU = case(GOOD._replace(quantity="mu", value=0.25, epsilon=None, delta=None, log_delta=None, mu=0.25, conversion=None))
ORDERS = case(
    *(
        GOOD._replace(quantity="rdp", value=v, epsilon=None, delta=None, log_delta=None, order=a, conversion=None)
        for v, a in ((0.5, 2.0), (1.0, 4.0))
    )
)
NOISE = case(GOOD._replace(quantity="noise_std", value=1.23456789, epsilon=1.0, mu=0.3, conversion="exact"))
INDEX = case(GOOD._replace(quantity="index", value=123, epsilon=1.0, mu=0.3, conversion="exact"))
NO_BEST = case(PRINTED, obstacles=(Obstacle("iteration.stop", "needs records", "give --records"),))
NOTHING = case()
CASES = {
    "passed": PASSED, "failed": FAILED, "tiny": TINY, "mu": MU, "orders": ORDERS, "noise": NOISE, "index": INDEX,
    "no best": NO_BEST, "nothing": NOTHING,
}  # fmt: skip


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_every_renderer_takes_every_case(format: str, name: str) -> None:
    text = render(report(CASES[name]), format, color=False)
    assert text.endswith("\n")
    assert not re.search(r"\bnan\b", text.lower())
    assert "\x1b" not in text
    assert render(report(CASES[name]), format, color=False) == text
    for line in text.splitlines():
        assert line == line.rstrip() or format in ("markdown", "table")


@pytest.mark.parametrize("format", FORMATS)
def test_every_renderer_takes_a_report_without_cases(format: str) -> None:
    assert isinstance(render(report(), format, color=False), str)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("format", ["plain", "json", "jsonl", "csv", "markdown", "statement"])
def test_all_but_the_table_is_ascii(format: str, name: str) -> None:
    assert render(report(CASES[name]), format).isascii()


@pytest.mark.parametrize("name", CASES)
def test_json_keeps_to_the_schema(name: str) -> None:
    found = json.loads(render(report(CASES[name]), "json"))
    conforms(found)
    assert found["summary"] == {"cases": 1, "failed": int(name == "failed")}


def test_json_has_no_infinity() -> None:
    text = render(report(case(PRINTED._replace(value=math.inf, epsilon=None))), "json")
    [result] = json.loads(text)["cases"][0]["results"]
    assert result["value"] is None
    assert result["reason"]
    assert "Infinity" not in text


NOWHERE = case(
    GOOD._replace(mu=math.inf, order=math.nan, log_delta=-math.inf, details={"achieved": {"epsilon": math.inf}}),
    BY_ORDER._replace(value=-math.inf, details={"allocation": {"a": [1.0, math.nan], "z": [math.inf]}}),
    inputs={**INPUTS, "diameter": (math.inf, "flag")},
    assertions=(Assertion("epsilon<=1", False, math.inf, -math.inf),),
    tightness=Tightness("linear.pass", math.inf, math.nan),
    training={"private": True, "metrics": {"train": {"loss": math.nan}}, "non_private": {}},
)


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_everything_that_is_not_finite_is_null_and_says_why(format: str) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    text = render(report(NOWHERE), format)
    found = json.loads(text, parse_constant=refuse)
    if format == "json":
        conforms(found)
    [told] = found["cases"] if format == "json" else [found]
    first, second = told["results"]
    assert [first[name] for name in ("mu", "order", "log_delta")] == [None] * 3
    assert first["reason"] == "delta is exactly 0; mu is infinite; order is not a number"
    assert first["value"] == GOOD.value
    assert first["achieved"] == {"epsilon": None, "reason": "epsilon is infinite"}
    assert second["value"] is None
    assert second["reason"] == "value is below all numbers"
    assert second["allocation"] == {"a": [1.0, None], "z": [None]}
    assert told["inputs"]["diameter"] == {"value": None, "source": "flag", "reason": "value is infinite"}
    assert told["assertions"][0]["reason"] == "value is infinite; slack is below all numbers"
    assert told["tightness"]["reason"] == "value is infinite; ratio is not a number"
    assert told["training"]["metrics"]["train"] == {"loss": None, "reason": "loss is not a number"}


@pytest.mark.parametrize("format", ["csv", "markdown", "statement", "plain", "table", "explain"])
def test_every_other_format_takes_what_is_not_finite(format: str) -> None:
    assert render(report(NOWHERE._replace(training=None)), format, color=False)


def test_json_says_why_a_bound_does_not_apply() -> None:
    [found] = json.loads(render(report(FAILED), "json"))["cases"]
    assert found["not_applicable"] == [
        {"bound": "iteration.pnsgd_domain", "because": "needs diameter", "hint": "give --diameter"}
    ]
    assert found["warnings"] == ["more orders would tighten it"]
    assert [check["passed"] for check in found["assertions"]] == [False, True]


def test_bounds_for_another_noise_or_schedule_are_listed_last() -> None:
    """The parameters of an obstacle decide, whatever words its sentence has."""
    obstacles = (
        Obstacle("scheduled.pnsgd", "is for another kind of run", "describe the steps", ("schedule",)),
        Obstacle("contraction.laplace_shift", "is for another kind of run", "choose it", ("laplace_scale",)),
        Obstacle("iteration.pnsgd_domain", "needs diameter against the noise", "give --diameter", ("diameter",)),
    )
    head, *body = obstacle_rows(case(obstacles=obstacles))
    assert head == ("not applicable", "because", "cure")
    assert [row[0] for row in body] == ["iteration.pnsgd_domain", "scheduled.pnsgd", "contraction.laplace_shift"]


def test_plain_shows_everything() -> None:
    text = render(report(FAILED), "plain")
    for part in (
        "epsilon <= 0.123457 at delta = 1e-06",
        "index i = 1 (worst case)",
        "*  iteration.stop ",
        "   iteration.stop_published",
        "published",
        "RDP at order 7.5, Canonne et al.'s conversion",
        "mu = 0.5, exact conversion",
        "by Somebody 2018, Theorem 1 (iteration.stop), assuming 1 2:",
        "  2  w - step_size (gradient + Z)",
        "note: earlier records are better hidden",
        "iteration.pnsgd_domain  needs diameter  give --diameter",
        "FAIL: epsilon<=0.1",
        "pass: delta<=1",
    ):
        assert part in text
    assert "sensitivity" not in text


def test_several_cases_are_one_table() -> None:
    other = case(GOOD._replace(value=0.5, epsilon=0.5), inputs={**INPUTS, "records": (10, "flag")})
    refused = Case("shuffled", {}, (), (Obstacle("shuffled", "takes no epochs", "leave it out"),))
    for format in ("plain", "table", "markdown"):
        text = render(report(PASSED, other, refused), format, color=False)
        rows = [" ".join(re.split(r"[\s|│]+", line)).strip() for line in text.splitlines()]
        assert "stop 1000 0.123457 iteration.stop" in rows
        assert "stop 10 0.5 iteration.stop" in rows
        assert "shuffled none" in {row.strip("- ") for row in rows}
        assert "shuffled: takes no epochs" in text
        assert text.count("by Somebody 2018, Theorem 1") == 1
        assert "noise\\_std sigma = 2" in text or "noise_std sigma = 2" in text


def test_gates_that_failed_name_their_case() -> None:
    text = render(report(PASSED, FAILED), "plain")
    assert "FAIL: case 2: epsilon<=0.1" in text
    assert "gates: 1 of 2 held" in text


def test_tightness_is_a_factor_and_names_what_cannot_be_beaten() -> None:
    text = render(report(PASSED._replace(tightness=Tightness("multi_epoch.quadratic", 0.1, 1.23456789))), "plain")
    assert "within a factor 1.235; nothing below epsilon 0.1 holds" in text
    steep = Tightness("linear.forgetting", 0.1, 1.23456789, by_difference=True)
    text = render(report(PASSED._replace(tightness=steep)), "plain")
    assert (
        "no guarantee that uses only how far two gradients are apart is below epsilon 0.1 (linear.forgetting)" in text
    )
    assert "nothing below" not in text
    exact = Tightness("iteration.stop", 0.123456789, 1.0)
    assert "tightness: exact" in render(report(PASSED._replace(tightness=exact)), "plain")


def test_explained_with_the_numbers_of_the_run() -> None:
    text = render(report(case(GOOD, inputs={**INPUTS, "adjacency": ("replace-one", "default")})), "explain")
    for part in ("with       records n = 1000", "index i = 1 (worst case)", "sensitivity = 2 (2 lipschitz)", "[ ] ",
                 "[x] 1 <= index <= records", "@inproceedings{feldman2018", "epsilon <= 0.123457"):  # fmt: skip
        assert part in text


def test_the_table_has_the_content_of_the_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")
    table = re.sub(r"[│┃━╇┼─|]", " ", render(report(FAILED), "table", color=False))
    plain = render(report(FAILED), "plain")
    assert [word for word in plain.split() if word not in table.split()] == []


def test_the_table_fits_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (80, 60):
        monkeypatch.setenv("COLUMNS", str(width))
        assert max(map(len, render(report(FAILED), "table", color=False).splitlines())) <= width


def test_colour_is_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in render(report(FAILED), "table", color=True)
    assert "\x1b" not in render(report(FAILED), "table", color=False)


def test_what_is_published_is_never_the_headline() -> None:
    for format in ("plain", "markdown", "table"):
        assert "epsilon <= 0.01" not in render(report(NO_BEST), format, color=False)
    assert render(report(NO_BEST), "statement") == "No guarantee applies.\n"


def test_a_tiny_delta_is_a_power_of_ten() -> None:
    for format in ("plain", "statement", "markdown"):
        text = render(report(TINY), format)
        assert "9.28175e-5001" in text  # by mpmath, rounded up
        assert "e-324" not in text
    row = next(csv.DictReader(io.StringIO(render(report(TINY), "csv"))))
    assert float(row["log_delta"]) == -11513.0


def test_solved_parameters() -> None:
    assert "noise_std >= 1.23457 is enough for epsilon = 1 and delta = 1e-06" in render(report(NOISE), "plain")
    assert "index <= 123 is enough for epsilon = 1" in render(report(INDEX), "plain")
    assert "any record at positions 1 to 123" in render(report(INDEX), "statement")


def test_the_statement_names_what_a_reader_needs() -> None:
    text = " ".join(render(report(PASSED), "statement").split())
    for part in ("(0.123457, 1e-06)-differentially private", "replace-one", "one pass", "Somebody 2018, Theorem 1"):
        assert part in text
    assert max(map(len, render(report(PASSED), "statement").splitlines())) <= 80


def test_markdown_escapes() -> None:
    hostile = case(
        GOOD._replace(assumes=("a|b *bold* <b>x</b> under_score",), reference="A|B <i>2018</i>"),
        inputs={"records": (1000, "flag"), "schedule": ("<img src=x>|*a*_b_.csv", "file")},
        notes=("a|b <script>",),
    )
    text = render(report(hostile), "markdown")
    for raw in ("<b>", "<i>", "<img", "<script>", "*bold*", " a|b "):
        assert raw not in text.replace("\\*", "").replace("\\|", "")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    columns = {len(re.findall(r"(?<!\\)\|", row)) for row in rows}
    assert columns == {7}


@pytest.mark.parametrize("path", ["=cmd()", "+1", "-1", "@x", "\t=1", "\r=1"])
def test_csv_cells_are_never_formulas(path: str) -> None:
    hostile = case(GOOD, inputs={"schedule": (path, "file"), "records": (5, "flag"), "epsilon": (-0.5, "flag")})
    [row] = csv.DictReader(io.StringIO(render(report(hostile), "csv"), newline=""))
    assert row["input_schedule"][:1] not in ("=", "+", "-", "@", "\t", "\r")
    assert row["input_schedule"].endswith(path.replace("\r", " ").replace("\t", "\\t"))
    assert row["input_epsilon"] == "-0.5"


def test_csv_quotes_and_keeps_full_precision() -> None:
    value = 0.1 + 0.2
    tricky = case(GOOD._replace(value=value, reference='A "B", C'), inputs={"schedule": ('a,"b"\n.csv', "file")})
    [row] = csv.DictReader(io.StringIO(render(report(tricky), "csv"), newline=""))
    assert float(row["value"]) == value
    assert row["reference"] == 'A "B", C'
    assert row["input_schedule"] == 'a,"b"\\n.csv'  # a line break could start a line that a CI server obeys


def test_csv_cases_with_different_inputs_share_columns() -> None:
    text = render(report(PASSED, TINY), "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["case"] for row in rows] == ["1", "2"]
    assert [row["input_noise_std"] for row in rows] == ["2.0", ""]
    assert None not in rows[0]


def test_numbers_round_to_their_side() -> None:
    assert [number(1.00001, 3, side) for side in ("up", "down", "nearest")] == ["1.01", "1", "1"]
    assert number(0.1, 17, "up") == "0.10000000000000001"
    assert number(0.1, 2, "up") == "0.11"
    assert number(0.5, 2, "up") == "0.5"
    assert number(9.99999, 3, "up") == "10"
    assert number(1.001e-7, 3, "up") == "1.01e-07"
    assert number(123456789.0, 3, "up") == "1.24e+08"
    assert number(math.inf, 3, "up") == "inf"
    assert number(0.0, 3, "up") == "0"
    assert number(60000, 2, "up") == "60000"
    assert float(number(5e-324, 3, "up")) == 5e-324
    assert float(number(5e-324, 3, "down")) in (0.0, 5e-324)


def test_rounding_down_keeps_its_digits_below_a_power_of_ten() -> None:
    assert number(0.99999, 3, "down") == "0.999"


@pytest.mark.parametrize("precision", range(2, 18))
def test_random_numbers_round_to_their_side(precision: int) -> None:
    rng = random.Random(precision)
    for _ in range(500):
        value = rng.uniform(1, 10) * 10.0 ** rng.randrange(-320, 308)
        for each in (value, -value):
            assert Decimal(number(each, precision, "down")) <= Decimal(each) <= Decimal(number(each, precision, "up"))
        assert (
            float(number(value, precision, "up"))
            <= value * (1 + 2 * 10.0 ** (1 - precision)) + math.ulp(value) + 1e-307
        )


def test_deltas_beyond_doubles_round_up() -> None:
    with mpmath.workdps(40):
        for log in (-691.0, -1000.0, -11513.0, -11512.925464970229, -1e5, -1e9, -1e12):
            up, down = (mpmath.mpf(Digits().delta(0.0, log, side)) for side in ("up", "down"))
            assert down < mpmath.exp(log) < up < down * (1 + mpmath.mpf(10) ** -5)
        for log in (-1.1e12, -1e300):
            text = Digits().delta(0.0, log, "up")
            assert text.startswith("10^-")
            assert float(text[3:]) >= log / math.log(10.0)
            assert float(Digits().delta(0.0, log, "down")[3:]) <= log / math.log(10.0)
