"""One row's failure costs no other row, what is not finite stays JSON, and lower values stay below."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest

from dpcalc.cli.main import main
from dpcalc.engine import ask, price
from dpcalc.errors import NotConverged
from dpcalc.theorems.record import Theorem, costs, for_algorithm

NONE_APPLIES = "compare --algorithm pnsgd -n 10 -L 1 --smoothness 1 --eta 3 --sigma 2"
PASS = "-n 10 -L 1 --smoothness 1 --eta 0.5 --sigma 2"
NO_NOISE_LEFT = "compare --algorithm stop -n 1000 -L 1 --smoothness 1 --strong-convexity 1 --eta 1 --sigma 2 -D 1 -e 1"


def breaking(*ids: str, error: BaseException | None = None) -> Callable[[Theorem], Theorem]:
    """What makes these bounds raise."""

    def broken(bound: Theorem) -> Theorem:
        if bound.id not in ids:
            return bound

        def function(_: Any) -> float:
            raise error or ZeroDivisionError("float division by zero")

        return bound._replace(function=function, conditions=())

    return broken


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(*ids: str, error: BaseException | None = None) -> None:
        change = breaking(*ids, error=error)
        privacy = [change(bound) for bound in for_algorithm("pnsgd", ("iteration", "linear"))]
        monkeypatch.setattr(ask, "for_algorithm", lambda *_: privacy)
        risks = [change(bound) for bound in costs()]
        monkeypatch.setattr(price, "costs", lambda: risks)

    return install


# --- a row that fails -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ZeroDivisionError("x"), OverflowError("x"), ValueError("x"), KeyError("x")])
def test_a_row_for_comparison_that_fails_is_an_obstacle(ask_json: Any, broken: Any, error: Exception) -> None:
    broken("linear.pass", error=error)
    [case] = ask_json(f"compare --algorithm pnsgd {PASS} -d 1e-5")
    assert [row["bound"] for row in case["results"] if row["best"]] == ["iteration.pnsgd"]
    [obstacle] = [o for o in case["not_applicable"] if o["bound"] == "linear.pass"]
    assert obstacle["because"].startswith(f"failed: {type(error).__name__}: ")
    assert "report" in obstacle["hint"]
    assert not any("linear.pass" in warning for warning in case["warnings"])


@pytest.mark.parametrize("question", ["-d 1e-5", "-e 1", "", "--order 2"])
def test_a_guarantee_that_fails_is_warned_of(ask_json: Any, broken: Any, question: str) -> None:
    broken("iteration.pnsgd")
    [case] = ask_json(f"rdp {PASS} {question}".strip()) if question else ask_json(f"rdp {PASS} --strong-convexity 1")
    assert any(row["best"] for row in case["results"])
    [warning] = case["warnings"]
    assert warning.startswith("iteration.pnsgd failed: ZeroDivisionError: float division by zero")


def test_where_no_guarantee_is_left_the_failure_is_internal(ask: Any, broken: Any) -> None:
    guarantees = [bound.id for bound in for_algorithm("pnsgd") if bound.guarantee]
    broken(*guarantees)
    assert ask(f"compare --algorithm pnsgd {PASS} -d 1e-5", 4) == ""


def test_a_row_for_comparison_is_never_the_failure_shown(capsys: pytest.CaptureFixture[str], broken: Any) -> None:
    broken("linear.pass", "linear.curved")
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(f"{NONE_APPLIES} -d 1e-5"))
    assert stop.value.code == 3
    assert "exceeds" in capsys.readouterr().err


def test_too_little_memory_is_one_row_s_trouble(ask_json: Any, broken: Any) -> None:
    broken("iteration.pnsgd_rdp", error=MemoryError())
    [case] = ask_json(f"rdp {PASS} -d 1e-5")
    assert {"bound": "iteration.pnsgd_rdp", "because": "not enough memory", "hint": "fewer records or steps"} in case[
        "not_applicable"
    ]


def test_a_cost_that_fails_is_one_row_s_error(ask_json: Any, broken: Any) -> None:
    line = "utility -n 1000 -L 1 --smoothness 1 --dimension 10 --radius 1 -e 1 -d 1e-6"
    [before] = ask_json(line)
    first = before["results"][0]["bound"]
    broken(first)
    [case] = ask_json(line)
    assert first not in {row["bound"] for row in case["results"]}
    assert any(row["best"] for row in case["results"])
    assert case["warnings"]


def test_notes_that_fail_leave_the_answer(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("float division by zero")

    monkeypatch.setattr("dpcalc.engine.advice.notes.notes_on", fails)
    [case] = ask_json(f"rdp {PASS} -d 1e-5")
    assert case["results"][0]["best"]
    assert case["warnings"] == [
        "the notes failed: ZeroDivisionError: float division by zero (please report it (DPCALC_DEBUG=1 shows where))"
    ]


def test_a_proof_that_fails_is_no_proof(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("no such ball")

    monkeypatch.setattr("dpcalc.certify.result_proof.proof_of", fails)
    [case] = ask_json(f"rdp {PASS} -d 1e-5 --certify", 3)
    assert {row["not_certified"] for row in case["results"]} == {"failed: ValueError: no such ball"}


def test_debugging_lets_a_failure_through(ask: Any, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    broken("linear.pass")
    monkeypatch.setenv("DPCALC_DEBUG", "1")
    ask(f"compare --algorithm pnsgd {PASS} -d 1e-5", 4)


def test_a_refusal_on_purpose_is_no_failure(ask_json: Any, broken: Any) -> None:
    broken("iteration.pnsgd_rdp", error=NotConverged("did not converge", "try again"))
    [case] = ask_json(f"rdp {PASS} -d 1e-5")
    assert not case["warnings"]


def test_steps_that_forget_everything_break_no_row(ask_json: Any) -> None:
    """A step that contracts to a point once divided by zero in the published row for a random stop."""
    [case] = ask_json(NO_NOISE_LEFT)
    assert "contraction.stop_published" in {row["bound"] for row in case["results"]}
    assert not any("failed" in obstacle["because"] for obstacle in case["not_applicable"])


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("shifted --contraction 1 --shift 10 --start-distance 1 --eta 1e300 --steps 2 --laplace-scale 2 --order 64", 0),
        ("shifted --contraction 1 --shift 10 --eta 1e300 --steps 2 --sigma 1e300 -d 1e-5", 0),
        (
            "multi-epoch --algorithm shuffled-epochs --epochs 1 -L 0.25 -n 1 --release epoch --smoothness 4 --eta 0.1 "
            "--strong-convexity 4 --laplace-scale 1e-300 -e 1e300",
            None,
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_numbers_at_the_ends_break_no_row(line: str, code: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Squares of noise, and sums of Renyi terms, that overflow a double."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    shown = capsys.readouterr()
    assert stop.value.code in ((0, 3) if code is None else (code,)), shown.err
    assert "failed: " not in shown.out + shown.err


# --- what is not finite -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["json", "jsonl"])
def test_an_infinite_detail_stays_json(ask: Any, format: str) -> None:
    line = "compare --algorithm pnsgd -n 1 -i 1 -L 1 --smoothness 4 --eta 0.5 -D 1 --sigma 1 -e 1"

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    found = json.loads(ask(f"{line} --format {format}"), parse_constant=refuse)
    [case] = found["cases"] if format == "json" else [found]
    assert all(row["value"] is not None for row in case["results"] if row["best"])
    [why] = [o["because"] for o in case["not_applicable"] if o["bound"] == "iteration.pnsgd_domain"]
    assert why == "gives no finite mu here"


# --- what is missing, and what is violated ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("rdp -n 10 -L 1 --eta 0.5 --sigma 2 -d 1e-5", 2, "needs smoothness"),
        ("rdp -n 10 -L 1 --sigma 2 -d 1e-5", 2, "needs step_size, smoothness"),
        ("rdp -n 10 -L 1 --smoothness 1 --eta 3 --sigma 2 -d 1e-5", 3, "step size 3 exceeds 2/smoothness = 2"),
        (
            "rdp -n 10 -L 1 --smoothness 6.666666666666667 --eta 0.3 --sigma 1 -d 1e-5",
            3,
            "step size 0.3 exceeds 2/smoothness = 0.299999",
        ),
        (
            "rdp -n 10 -L 1 --smoothness 4 --eta 0.5000000000000001 --sigma 1 -d 1e-5",
            3,
            "step size 0.5000000000000001 exceeds 2/smoothness = 0.5,",
        ),
        (
            "rdp -n 10 -L 1 --smoothness 0.3 --strong-convexity 0.30000000000000004 --eta 1 --sigma 1 -d 1e-5",
            2,
            "strong convexity 0.30000000000000004 exceeds smoothness 0.3",
        ),
    ],
)
def test_what_is_wrong_is_told(ask: Any, capsys: pytest.CaptureFixture[str], line: str, code: int, words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert words in capsys.readouterr().err
    assert stop.value.code == code


def test_the_step_size_advised_is_taken(ask: Any) -> None:
    """2/3 rounded to six digits is above 2/3."""
    ask("rdp -n 10 -L 1 --smoothness 3 --eta 0.666667 --sigma 1 -d 1e-5", 3)
    ask("rdp -n 10 -L 1 --smoothness 3 --eta 0.666666 --sigma 1 -d 1e-5")


# --- lower values -----------------------------------------------------------------------------------------------------

DESCENT = "compare --algorithm noisy-gd -n 100 -L 1 --smoothness 1 --strong-convexity 0.5 --eta 0.1 --steps 100"


@pytest.mark.parametrize("question", ["--sigma 0.1 -d 1e-6", "--sigma 0.1 -e 1", "-e 1 -d 1e-6"])
def test_a_lower_divergence_says_nothing_of_epsilon_delta_or_noise(ask_json: Any, question: str) -> None:
    [case] = ask_json(f"{DESCENT} {question}")
    assert "noisy_gd.langevin_lower" not in {row["bound"] for row in case["results"]}
    [why] = [o["because"] for o in case["not_applicable"] if o["bound"] == "noisy_gd.langevin_lower"]
    assert why.startswith("bounds the Renyi divergence from below")


def test_a_lower_divergence_answers_at_an_order(ask_json: Any) -> None:
    """(a r^2/(2x)) (1 - e^(-x T)) with r = 0.2, x = 0.05, T = 100, a = 2."""
    [case] = ask_json(f"{DESCENT} --sigma 0.1 --order 2")
    [row] = [row for row in case["results"] if row["bound"] == "noisy_gd.langevin_lower"]
    assert row["value"] == pytest.approx(0.79460964240073, rel=1e-12)


@pytest.mark.parametrize("order", ["1", "1.5", "32"])
def test_a_lower_value_is_printed_below_the_guarantee_it_equals(ask: Any, order: str) -> None:
    """Rounded to nearest, both would be 0.0200001, and one above the truth."""
    text = ask(f"compare --algorithm noisy-gd -n 100 -L 1 --steps 1 --sigma 0.7 --order {order} --format plain -vv")
    shown = {line.split()[0]: line.split()[1] for line in text.replace("* ", "").splitlines() if "(order" in line}
    assert float(shown["linear.descent"]) < float(shown["noisy_gd.composition"])
