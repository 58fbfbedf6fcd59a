"""The parts of the comparison with other packages that need none of them."""

import ast
import json
import math
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

from benchmarks.peers import report, shell, truth
from benchmarks.peers.environments import PINS, ROOT, Environment
from benchmarks.peers.questions import KINDS, QUESTIONS, SECTIONS, quick
from benchmarks.peers.session import HERE, Session
from dpcalc import __version__
from tests.oracles import gaussian as oracle
from tests.oracles import pld

ADAPTERS = sorted((HERE / "adapters").glob("*.py"))


def kinds(adapter: Path) -> set[str]:
    """The keys of an adapter's METHODS, read without importing the package it is for."""
    for node in ast.parse(adapter.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "METHODS":
            assert isinstance(node.value, ast.Dict)
            return {str(ast.literal_eval(key)) for key in node.value.keys if key is not None}
    raise AssertionError(f"{adapter.name} has no METHODS")


# ---- questions -------------------------------------------------------------------------------------------------------


def test_questions_are_distinct_complete_and_plain_data() -> None:
    asked = [(q.kind, json.dumps(q.given)) for q in QUESTIONS]
    assert len(set(asked)) == len(asked)
    for question in QUESTIONS:
        assert question.section in SECTIONS
        assert question.kind in KINDS
        assert 0.0 < question.given["delta"] < 1.0
        assert all(value >= 0.0 for value in question.given.values())
    assert {q.section for q in quick()} == set(SECTIONS)


def test_the_extremes_are_those_that_were_promised() -> None:
    extremes = [q.given for q in QUESTIONS if q.section == "extremes"]
    assert {1e-20, 1e-100, 1e-300} <= {given["delta"] for given in extremes}
    assert any(given["count"] == 10**6 for given in extremes)
    assert any(given["sigma"] == 0.01 for given in extremes if "sigma" in given)


def test_every_adapter_speaks_of_known_kinds_and_every_kind_has_an_answer() -> None:
    assert {path.stem.replace("_", "-") for path in ADAPTERS} == set(PINS) - {"truth"}
    for path in ADAPTERS:
        assert kinds(path) <= set(KINDS), path.name
    own = kinds(HERE / "adapters" / "dpcalc.py")
    assert {q.kind for q in QUESTIONS} <= own
    assert {q.kind for q in QUESTIONS if q.section != "hidden"} - {"balls"} == set(truth.METHODS)


def test_the_page_is_of_this_version() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert f"\n| dpcalc | {__version__} |" in page, "stale: run `python -m benchmarks.peers`"
    assert "no command for" not in page


def test_commands_name_packages_that_are_installed() -> None:
    for cold in shell.COLD:
        assert cold.commands[0].package == "dpcalc"  # what ratios are relative to
        assert {command.package for command in cold.commands} <= set(PINS)


# ---- truth -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sigma", "count", "delta"), [(20.0, 1000, 1e-6), (20.0, 1000, 1e-300), (0.01, 1, 1e-6)])
def test_gaussian_truth_lies_in_the_bracket_of_ball_arithmetic(sigma: float, count: int, delta: float) -> None:
    value = truth.gaussian({"sigma": sigma, "count": count, "delta": delta})
    with mpmath.workdps(50):
        mu = Fraction(str(mpmath.sqrt(count) / mpmath.mpf(sigma)))
        target = Fraction(str(mpmath.log(mpmath.mpf(delta))))
    low, high = oracle.epsilon(mu, target)
    assert low * (1 - Fraction(1, 2**52)) <= Fraction(value) <= high * (1 + Fraction(1, 2**52))


def test_gaussian_noise_is_the_inverse_of_epsilon() -> None:
    sigma = truth.gaussian_noise({"count": 1000, "epsilon": 8.0, "delta": 1e-5})
    assert truth.gaussian({"sigma": sigma, "count": 1000, "delta": 1e-5}) == pytest.approx(8.0, rel=1e-14)


@pytest.mark.parametrize(("epsilon0", "delta0", "delta"), [(0.5, 1e-3, 0.05), (0.25, 0.0, 0.01)])
def test_repeated_truth_against_every_outcome_of_a_few_mechanisms(epsilon0: float, delta0: float, delta: float) -> None:
    count = 12
    epsilon = truth.repeated({"epsilon0": epsilon0, "delta0": delta0, "count": count, "delta": delta})
    p = math.exp(epsilon0) / (1.0 + math.exp(epsilon0))
    pure = 0.0
    for told in range(count + 1):
        first = math.comb(count, told) * p**told * (1.0 - p) ** (count - told)
        second = math.comb(count, told) * (1.0 - p) ** told * p ** (count - told)
        pure += max(0.0, first - math.exp(epsilon) * second)
    keep = (1.0 - delta0) ** count
    assert 1.0 - keep + keep * pure == pytest.approx(delta, rel=1e-12)


def test_repeated_truth_is_infinite_where_no_epsilon_will_do() -> None:
    assert truth.repeated({"epsilon0": 0.1, "delta0": 1e-8, "count": 10**6, "delta": 1e-4}) == math.inf


@pytest.mark.parametrize("delta", [1e-6, 1e-100])
def test_the_inverse_transform_agrees_with_the_closed_form(delta: float) -> None:
    given = {"sigma": 20.0, "count": 1000, "delta": delta}
    found = truth._spent(pld.normal(1.0 / 20.0), given)
    assert found == pytest.approx(truth.gaussian(given), rel=0.1 * truth.QUADRATURE)


def test_the_inverse_transform_agrees_with_its_elder() -> None:
    given = {"sigma": 1.0, "records": 60000, "batch": 600, "count": 1000, "delta": 1e-5}
    epsilon = truth.METHODS["batches"]["truth"](given)
    assert pld.log_delta([(pld.subsampled(1.0, 0.01), 1000)], epsilon) == pytest.approx(math.log(1e-5), rel=1e-9)


@pytest.mark.campaign
def test_noise_on_batches_is_the_inverse_of_epsilon() -> None:
    given = {"records": 1000, "batch": 100, "count": 100, "delta": 1e-5}
    sigma = truth.METHODS["batches noise"]["truth"]({**given, "epsilon": 2.0})
    epsilon = truth.METHODS["batches"]["truth"]({**given, "sigma": sigma})
    assert epsilon == pytest.approx(2.0, rel=truth.QUADRATURE)


# ---- asking ----------------------------------------------------------------------------------------------------------

TOY = """
import os, time

def spend(given):
    return bytearray(given["bytes"])[0]

METHODS = {"toy": {
    "double": lambda given: 2.0 * given["x"],
    "delta": lambda given: given["delta"],
    "nan": lambda given: float("nan"),
    "wait": lambda given: time.sleep(3600),
    "spend": spend,
    "end": lambda given: os._exit(7),
    "talk": lambda given: print("nonsense") or 1.0,
}}
"""


@pytest.fixture
def session(tmp_path: Path):
    adapter = tmp_path / "toy.py"
    adapter.write_text(TOY)
    here = Environment("toy", str(Path(sys.executable).parent.parent))
    found = Session(here, adapter, memory=4 << 30)
    yield found
    found.close()


def ask(session: Session, method: str, times: int = 0, patience: float = 600.0, **given: float):
    return session.ask("toy", method, {"delta": 1e-6, **given}, patience=patience, times=times)


def test_a_session_answers(session: Session) -> None:
    assert session.methods["toy"][0] == "double"
    assert ask(session, "double", x=3.0)["value"] == 6.0
    assert math.isnan(ask(session, "nan")["value"])
    assert ask(session, "talk")["value"] == 1.0


def test_the_answer_is_to_the_question_and_timings_are_of_others(session: Session) -> None:
    assert ask(session, "delta")["value"] == 1e-6
    others = [ask(session, "delta", times=3)["value"] for _ in range(2)]
    assert len({1e-6, *others}) == 3
    assert others == pytest.approx([1e-6, 1e-6], rel=1e-8)
    assert ask(session, "delta")["value"] == 1e-6


def test_failures_are_told_and_the_next_question_is_answered(session: Session) -> None:
    assert ask(session, "double")["failed"] == "KeyError"
    assert ask(session, "spend", bytes=64 << 30)["failed"] == "MemoryError"
    assert ask(session, "wait", patience=0.5)["failed"] == "timeout"
    assert ask(session, "end")["failed"] == "killed"
    assert ask(session, "double", x=1.0)["value"] == 2.0


# ---- the page --------------------------------------------------------------------------------------------------------


def row(package: str, method: str, value: float | None = None, ms: float = 1.0, failed: str = "") -> dict:
    if failed:
        return {"package": package, "method": method, "failed": failed, "says": "longer than 30 s"}
    return {"package": package, "method": method, "value": value, "median": ms / 1000.0}


def answer(*rows: dict, kind: str = "gaussian", section: str = "everyday", exact: float | None = 2.0) -> dict:
    given = {"sigma": 1.0, "count": 10, "delta": 1e-6}
    return {"section": section, "kind": kind, "given": given, "truth": exact, "no truth": "", "rows": list(rows)}


OURS = row("dpcalc", "command", 2.0 * (1.0 + 1e-10), ms=2.0)


def test_an_answer_below_the_truth_is_named() -> None:
    found = answer(OURS, row("autodp", "exact", 1.9), row("opacus", "RDP", 2.2))
    assert list(report.below(found, "dpcalc")) == []
    assert len(list(report.below(found, "autodp"))) == 1
    assert "below the truth" in report._judged(found, found["rows"][1])
    assert report._judged(found, found["rows"][2]) == "+10 %"


def test_a_shortfall_of_rounding_is_called_so() -> None:
    found = answer(row("autodp", "exact", 2.0 * (1.0 - 4e-16)))
    assert list(report.below(found, "autodp")) == []
    assert report._judged(found, found["rows"][0]) == "-4.4e-16 (rounding)"


def test_quadrature_cannot_tell_the_ninth_digit() -> None:
    found = answer(row("dpcalc", "function", 2.0 * (1.0 - 1e-9)), kind="laplace")
    assert list(report.below(found, "dpcalc")) == []
    assert report._judged(found, found["rows"][0]) == "within 1e-8"


def test_tighter_and_faster_peers_are_found_and_wrong_ones_are_no_tighter() -> None:
    tight, wrong = row("autodp", "exact", 2.0, ms=3.0), row("opacus", "GDP", 1.5, ms=1.0)
    found = answer(OURS, tight, wrong, row("riskcal", "PLD", failed="timeout"), row("riskcal", "other", math.inf))
    assert list(report.tighter(found)) == [tight]
    assert [r["package"] for r in report.faster(found)] == ["opacus", "riskcal"]


def test_an_infinite_truth_is_met_by_infinity_alone() -> None:
    found = answer(row("dpcalc", "command", math.inf), row("autodp", "KOV", 7.0), kind="repeated", exact=math.inf)
    assert report.error(found, found["rows"][0]) == 0.0
    assert len(list(report.below(found, "autodp"))) == 1


def test_the_page_says_what_was_measured() -> None:
    installed = {"failed": "", "versions": {"dpcalc": "1.2.3", "numpy": "2.0"}, "mebibytes": 222.4, "seconds": 31.0}
    missing = {"failed": "ERROR: no such package", "versions": {}, "mebibytes": 0.0, "seconds": 0.0}
    cold = {
        "title": "a question",
        "repeats": 7,
        "rows": [
            {"package": "dpcalc", "method": "command", "line": "dpcalc ask", "seconds": 0.1, "cpu": 0.1,
             "mebibytes": 17.0, "ratio": 1.0, "failed": ""},
            {"package": "autodp", "method": "exact", "line": "python -c 'x'", "seconds": 0.9, "cpu": 1.0,
             "mebibytes": 97.0, "ratio": 9.1, "failed": ""},
        ],
    }  # fmt: skip
    hidden = answer(
        row("dpcalc", "last iterate", 0.5), row("autodp", "every iterate, exact", 2.0), kind="run: fixed order",
        section="hidden", exact=None,
    )  # fmt: skip
    page = report.render({
        "repeats": 7, "timeout": 30.0, "memory": 8, "options": " --quick", "minutes": 11.2,
        "machine": {"cores": 2, "load": 0.25, "system": "Linux on x86_64", "python": "3.11.7"},
        "environments": {"dpcalc": installed, "autodp": missing, "truth": installed},
        "cold": [cold],
        "answers": [answer(OURS, row("autodp", "exact", 1.0, ms=0.5), row("autodp", "RDP", failed="timeout")), hidden],
    })  # fmt: skip
    assert "python -m benchmarks.peers --quick\n" in page
    assert "dpcalc answered 1 of 1 questions whose exact answer is known; none of its answers is below" in page
    assert "autodp has methods for 1 of them and bounds 0 by at least one; answers below the truth: 1." in page
    assert "| autodp |  | not asked: ERROR: no such package |  |" in page
    assert "| a question | dpcalc, command | 1 | 17 |\n|  | autodp, exact | 9.1 | 97 |" in page
    assert "|  | autodp, exact | 1 | **-50 %, below the truth** | 0.25 |" in page
    assert "|  | autodp, RDP | **longer than 30 s** |  |  |" in page
    assert "|  | autodp, every iterate, exact | 2 |  |" in page
