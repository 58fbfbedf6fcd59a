"""What the command line answers: every unknown, sweep, format and gate, and where it writes."""

import csv
import io
import json
import math
import os
import random
import re
import shlex
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from dpcalc.render import FORMATS
from tests.cli.conftest import best
from tests.schema import SCHEMA

ROOT = Path(__file__).resolve().parents[2]
PASS = "rdp -n 1000 -i 500 -L 1 --smoothness 1 --eta 0.1"
CHAIN = "shifted --steps 20 --shift 0.1 --eta 1"


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


# The unknowns.


@pytest.mark.parametrize("algorithm", ["pnsgd", "skip", "stop", "local"])
def test_epsilon_delta_and_noise_agree(ask_json: Any, algorithm: str) -> None:
    run = f"{PASS} --algorithm {algorithm}"
    [case] = ask_json(f"{run} --sigma 3 -d 1e-4")
    epsilon = best(case)["value"]
    assert best(case)["quantity"] == "epsilon"
    [case] = ask_json(f"{run} --sigma 3 -e {epsilon!r}")
    assert best(case)["quantity"] == "delta"
    assert best(case)["value"] == pytest.approx(1e-4, rel=1e-6)
    [case] = ask_json(f"{run} -e {epsilon!r} -d 1e-4")
    assert best(case)["quantity"] == "noise_std"
    assert best(case)["value"] == pytest.approx(3.0, rel=1e-6)
    assert best(case)["achieved"]["epsilon"] <= epsilon
    assert "noise_std" not in case["inputs"]
    # The solution is fed back: it must pass its own check.
    [case] = ask_json(f"{run} --sigma {best(case)['value']!r} -e {epsilon!r} -d 1e-4")
    assert [check["passed"] for check in case["assertions"]] == [True]


def test_mu_alone(ask_json: Any) -> None:
    [case] = ask_json(f"{PASS} --sigma 2")
    assert best(case)["quantity"] == "mu"
    assert 1 / math.sqrt(501) <= best(case)["value"] <= 1 / math.sqrt(501) * (1 + 1e-14)


@pytest.mark.parametrize("algorithm", ["pnsgd", "skip", "stop", "local"])
def test_orders(ask_json: Any, algorithm: str) -> None:
    [case] = ask_json(f"{PASS} --algorithm {algorithm} --sigma 2 --order 2,4 --order 1.5")
    marked = [result for result in case["results"] if result["best"]]
    assert {result["quantity"] for result in marked} == {"rdp"}
    assert sorted(result["order"] for result in marked) == [1.5, 2.0, 4.0]
    values = [result["value"] for result in sorted(marked, key=lambda result: result["order"])]
    assert values == sorted(values)


def test_orders_restrict_the_conversion(ask_json: Any) -> None:
    [case] = ask_json(f"{PASS} --algorithm stop --sigma 2 -d 1e-4 --order 3,5")
    assert {result["order"] for result in case["results"] if "order" in result} <= {3.0, 5.0}


def test_all_three_are_checked(ask_json: Any) -> None:
    [case] = ask_json(f"{PASS} --sigma 2 -e 1 -d 1e-6")
    [check] = case["assertions"]
    assert check["passed"]
    assert check["slack"] == pytest.approx(1 - check["value"])
    [case] = ask_json(f"{PASS} --sigma 2 -e 0.1 -d 1e-6", expected=1)
    [check] = case["assertions"]
    assert not check["passed"]
    assert check["slack"] < 0


@pytest.mark.parametrize(
    ("line", "name", "check"),
    [
        ("rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2", "index", "-n 1000 -L 1 -i"),
        ("rdp -i 5 -L 1 --smoothness 1 --eta 0.1 --sigma 2", "records", "-i 5 -L 1 -n"),
        ("rdp -n 1000 -i 500 --smoothness 1 --eta 0.1 --sigma 2", "lipschitz", "-n 1000 -i 500 -L"),
        ("rdp -n 1000 -i 990 -L 1 --smoothness 1 --eta 0.1 --sigma 2", "diameter", "-n 1000 -i 990 -L 1 -D"),
        (
            "rdp -n 1000 -i 990 -L 1 --smoothness 1 --eta 0.1 --sigma 2",
            "strong_convexity",
            "-n 1000 -i 990 -L 1 --strong-convexity",
        ),
    ],
)
def test_solving(ask_json: Any, line: str, name: str, check: str) -> None:
    [case] = ask_json(f"{line} -e 0.8 -d 1e-5 --solve {name.replace('_', '-')}")
    found = best(case)
    assert found["quantity"] == name
    assert found["achieved"]["epsilon"] <= 0.8
    run = f"rdp {check} {found['value']!r} --smoothness 1 --eta 0.1 --sigma 2"
    [case] = ask_json(f"{run} -e 0.8 -d 1e-5")
    assert case["assertions"][0]["passed"]
    if isinstance(found["value"], int):
        beyond = found["value"] + (1 if name == "index" else -1)
        ask_json(f"rdp {check} {beyond} --smoothness 1 --eta 0.1 --sigma 2 -e 0.8 -d 1e-5", expected=1)


def test_a_delta_below_every_double(ask: Any, ask_json: Any) -> None:
    [case] = ask_json(f"{PASS} --sigma 2 -d 1e-5000")
    assert best(case)["log_delta"] == pytest.approx(-5000 * math.log(10), rel=1e-15)
    assert case["inputs"]["delta"]["value"] == "10^-5000"
    assert re.search(r"at delta = 1e-5000 +replace-one", ask(f"{PASS} --sigma 2 -d 1e-5000"), re.MULTILINE)
    epsilon = best(case)["value"]
    [case] = ask_json(f"{PASS} --sigma 2 -e {epsilon!r}")
    assert best(case)["log_delta"] <= -5000 * math.log(10) * (1 - 1e-9)
    [case] = ask_json(f"{PASS} -e {epsilon!r} -d 1e-5000")
    assert best(case)["value"] == pytest.approx(2, rel=1e-9)


# Sweeps.


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("--sigma 1,2,4", [1.0, 2.0, 4.0]),
        ("--sigma 1:2:0.5", [1.0, 1.5, 2.0]),
        ("--sigma 2:1:-0.5", [2.0, 1.5, 1.0]),
        ("--sigma 1:100:log3", [1.0, 10.0, 100.0]),
        ("--sigma 1 --sigma 2,3", [1.0, 2.0, 3.0]),
        ("--sigma 1/2,2^-3,50%,1_0", [0.5, 0.125, 0.5, 10.0]),
        ("--sigma 0.1:0.5:0.1", [0.1, 0.2, 0.3, 0.4, 0.5]),
    ],
)
def test_sweeps(ask_json: Any, flags: str, expected: list[float]) -> None:
    cases = ask_json(f"{PASS} {flags} -d 1e-6")
    assert [case["inputs"]["noise_std"]["value"] for case in cases] == expected


def test_the_product_of_sweeps(ask_json: Any) -> None:
    line = "rdp -n 10,1e3 -L 1 --smoothness 1 --eta 0.1 --sigma 1,2 -d 1e-6,1e-7 --algorithm pnsgd,stop"
    cases = ask_json(line)
    assert len(cases) == 16
    described = [
        (case["algorithm"], *(case["inputs"][name]["value"] for name in ("records", "noise_std", "delta")))
        for case in cases
    ]
    assert len(set(described)) == 16
    assert all(isinstance(row[1], int) for row in described)


# Formats.


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "question", ["--sigma 2 -d 1e-6", "--sigma 2 -e 1", "-e 1 -d 1e-6", "--sigma 2", "--sigma 2 --order 2,3"]
)
def test_every_format_twice(ask: Any, format: str, question: str) -> None:
    line = f"{PASS} {question} --format {format}"
    first = ask(line)
    assert first.endswith("\n")
    assert first == ask(line)
    assert "\x1b" not in first


@pytest.mark.parametrize("format", [f for f in FORMATS if f not in ("table", "bibtex")])
def test_shown_numbers_and_json_agree(ask: Any, ask_json: Any, format: str) -> None:
    line = f"{PASS} --sigma 2 -d 1e-6"
    value = best(ask_json(line)[0])["value"]
    text = ask(f"{line} --format {format} --precision 17")
    assert repr(value) in text


def test_jsonl_is_one_case_a_line(ask: Any, ask_json: Any) -> None:
    line = f"{PASS} --sigma 1,2,3 -d 1e-6"
    rows = [json.loads(row) for row in ask(f"{line} --format jsonl").splitlines()]
    assert [{k: v for k, v in row.items() if k not in ("schema", "dpcalc", "command")} for row in rows] == ask_json(
        line
    )


def test_csv_has_one_row_a_result(ask: Any, ask_json: Any) -> None:
    line = f"{PASS} --algorithm stop --sigma 1,2,3 -d 1e-6"
    rows = list(csv.DictReader(io.StringIO(ask(f"{line} --format csv"))))
    results = [result for case in ask_json(line) for result in case["results"]]
    assert [(row["bound"], float(row["value"])) for row in rows] == [(r["bound"], r["value"]) for r in results]
    assert {row["input_noise_std"] for row in rows} == {"1.0", "2.0", "3.0"}
    assert sum(row["best"] == "true" for row in rows) == 3


def test_json_is_short_for_format_json(ask: Any) -> None:
    line = f"{PASS} --sigma 2 -d 1e-6"
    assert ask(f"{line} --json") == ask(f"{line} --format json") == ask(f"{line} --json --format json")


def test_plain_is_the_default_where_there_is_no_terminal(ask: Any) -> None:
    line = f"{PASS} --sigma 2 -d 1e-6"
    assert ask(line) == ask(f"{line} --format plain")
    assert ask(line).isascii()


def test_colour_is_the_flags_to_say(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"{PASS} --sigma 2 -d 1e-6 --format table"
    assert "\x1b[" in ask(f"{line} --color always")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in ask(line)
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b" not in ask(f"{line} --color never")


def test_repeated_processes_print_the_same_bytes() -> None:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    line = f"{PASS} --algorithm stop,skip --sigma 1:3:0.5 -d 1e-6 --json"
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "dpcalc", *shlex.split(line)],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed}, capture_output=True, check=True,
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(outputs) == 1


# Gates.


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("epsilon<=1", 0),
        ("epsilon < 1", 0),
        ("epsilon<=0.01", 1),
        ("mu<=0.1", 0),
        ("mu<=0.01", 1),
        ("bound==iteration.pnsgd", 0),
        ("bound==iteration.local", 1),
        ("epsilon<=100%", 0),
    ],
)
def test_gates(ask_json: Any, gate: str, code: int) -> None:
    [case] = ask_json(f"{PASS} --sigma 2 -d 1e-6 --assert '{gate}'", expected=code)
    [verdict] = case["assertions"]
    assert verdict["text"] == gate
    assert verdict["passed"] is (code == 0)


def test_epsilon_is_found_again_where_it_is_given_with_delta_and_the_noise(ask_json: Any) -> None:
    line = f"{PASS} --sigma 0.1 -e 9 -d 1e-6"
    ask_json(f"{line} --assert 'epsilon<=8'")
    ask_json(f"{line} --assert 'epsilon<=0.1'", expected=1)


def test_a_gate_on_delta_where_it_is_found(ask_json: Any) -> None:
    ask_json(f"{PASS} --sigma 2 -e 1 --assert 'log_delta<=-13'")


def test_several_gates_and_cases(ask_json: Any) -> None:
    cases = ask_json(f"{PASS} --sigma 0.2,20 -d 1e-6 --assert 'epsilon<=0.5' --assert 'mu<=1'", expected=1)
    assert [[gate["passed"] for gate in case["assertions"]] for case in cases] == [[False, True], [True, True]]


def test_a_gate_on_what_was_solved_for(ask_json: Any) -> None:
    line = f"{PASS} -e 1 -d 1e-6"
    ask_json(f"{line} --assert 'noise_std<=10'")
    ask_json(f"{line} --assert 'noise_std<=0.001'", expected=1)
    line = "rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -e 1 -d 1e-6 --solve index"
    ask_json(f"{line} --assert 'index>=10'")
    ask_json(f"{line} --assert 'index>=1000'", expected=1)


@pytest.mark.parametrize("orders", ["2,64", "64,2"])
def test_a_gate_on_rdp_holds_at_every_order(ask_json: Any, orders: str) -> None:
    ask_json(f"{PASS} --sigma 2 --order {orders} --assert 'rdp<=0.01'", expected=1)


def test_a_gate_on_a_delta_below_every_double(ask: Any) -> None:
    ask(f"{PASS} --sigma 2000 -e 1 --assert 'delta<=1e-5000'")
    ask(f"{PASS} --sigma 2 -e 1 --assert 'delta<=1e-5000'", expected=1)


# Files.


def test_output_replaces_a_file_whole(ask: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old" * 10_000)
    target.chmod(0o640)
    line = f"{PASS} --sigma 2 -d 1e-6 --json"
    assert ask(f"{line} -o {target}") == ""
    assert target.read_text() == ask(line)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["report.json"]
    ask(f"{PASS} --sigma 2 -d 1e-6 --assert 'epsilon<=0.01' --json -o {target}", expected=1)
    assert json.loads(target.read_text())["summary"]["failed"] == 1


def test_output_to_a_dash_is_stdout(ask: Any) -> None:
    line = f"{PASS} --sigma 2 -d 1e-6"
    assert ask(f"{line} -o -") == ask(line)


def test_output_that_cannot_be_written_changes_nothing(ask: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    for target in (tmp_path / "none" / "x.json", tmp_path / "file" / "x.json", tmp_path):
        assert ask(f"{PASS} --sigma 2 -d 1e-6 --json -o {target}", expected=2) == ""
    assert os.listdir(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_output_that_fails_half_way_leaves_the_old_file(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    ask(f"{PASS} --sigma 2 -d 1e-6 --json -o {target}", expected=2)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_refused_question_does_not_touch_the_file(ask: Any, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    ask(f"{PASS.replace('0.1', '3')} --sigma 2 -d 1e-6 -o {target}", expected=3)
    ask(f"{PASS.replace('0.1', '3,4')} --sigma 2 -d 1e-6 -o {target}", expected=3)
    assert target.read_text() == "old"


def test_a_sweep_goes_on_past_what_cannot_be_answered(ask: Any) -> None:
    line = f"{PASS} --eta 3 --sigma 2 -d 1e-6"
    cases = json.loads(ask(f"{line} --json", expected=3))["cases"]
    assert [len(case["results"]) > 0 for case in cases] == [True, False]
    assert cases[1]["inputs"]["step_size"] == {"value": 3.0, "source": "flag"}
    assert "exceeds 2/smoothness" in cases[1]["not_applicable"][0]["because"]
    gated = json.loads(ask(f"{line} --json --assert 'epsilon<=9'", expected=1))["cases"]
    assert [case["assertions"][0]["passed"] for case in gated] == [True, False]


# Chains.


def test_the_same_schedule_from_every_kind_of_file(ask_json: Any, tmp_path: Path) -> None:
    columns = {
        "shift": [0.1, 0.0, 0.2],
        "contraction": [1.0, 0.9, 1.1],
        "step_size": [0.5, 0.25, 0.125],
        "noise_std": [1.0, 2.0, 4.0],
    }
    rows = "\n".join(",".join(map(repr, row)) for row in zip(*columns.values(), strict=True))
    (tmp_path / "a.csv").write_text(",".join(columns) + "\n" + rows + "\n")
    np.savez(tmp_path / "a.npz", **{name: np.array(column) for name, column in columns.items()})
    table = np.array(list(zip(*columns.values(), strict=True)), dtype=[(name, float) for name in columns])
    np.save(tmp_path / "a.npy", table)
    (tmp_path / "a.yaml").write_text("".join(f"{name}: {column}\n" for name, column in columns.items()))
    answers = [ask_json(f"shifted --schedule {tmp_path / name} -d 1e-6")[0] for name in sorted(os.listdir(tmp_path))]
    assert len(answers) == 4
    assert all(answer["results"] == answers[0]["results"] for answer in answers)
    allocation = best(answers[0])["allocation"]
    assert allocation["z"][-1] == pytest.approx(0.0, abs=1e-9)


def test_equal_steps_from_flags_and_from_a_file(ask_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("shift,contraction,step_size,noise_std,repeat\n0.1,1,1,3,20\n")
    [flags] = ask_json(f"{CHAIN} --sigma 3 -d 1e-6")
    [file] = ask_json(f"shifted --schedule {path} -d 1e-6")
    assert best(flags)["value"] == pytest.approx(best(file)["value"], rel=1e-12)


def test_an_allocation_of_ones_own(ask_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("shift,contraction,step_size,noise_std,spend\n" + "0.1,1,1,3,0.1\n" * 3)
    [case] = ask_json(f"shifted --schedule {path} -d 1e-6")
    own = next(result for result in case["results"] if result["bound"] == "shifted.given_spend")
    assert own["mu"] == pytest.approx(0.1 / 3 * math.sqrt(3), rel=1e-12)
    path.write_text("shift,contraction,step_size,noise_std,spend\n0.3,1,1,3,0.2\n0,1,1,3,0.1\n")
    [case] = ask_json(f"shifted --schedule {path} -d 1e-6")
    values = {result["bound"]: result["value"] for result in case["results"]}
    assert values["shifted.gaussian"] < values["shifted.given_spend"]


def test_laplace_noise(ask_json: Any) -> None:
    [case] = ask_json(f"{CHAIN} --laplace-scale 5 -d 1e-6")
    assert best(case)["bound"] == "shifted.laplace"
    [case] = ask_json(f"{CHAIN} --laplace-scale 5 --order 2,4")
    assert {result["order"] for result in case["results"] if result["best"]} == {2.0, 4.0}


def test_a_schedule_for_a_pass(ask_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n" + "0.1,2\n" * 50)
    [case] = ask_json(f"rdp --schedule {path} -i 10 -L 1 --smoothness 1 -d 1e-6")
    [plain] = ask_json("rdp -n 50 -i 10 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6")
    assert best(case)["value"] == pytest.approx(best(plain)["value"], rel=1e-9)
    [case] = ask_json(f"rdp --schedule {path} -L 1 --smoothness 1 -d 1e-6")
    assert case["inputs"]["index"] == {"value": 50, "source": "worst case"}


@pytest.mark.parametrize("solve", ["", " --solve noise-std"])
def test_the_noise_of_a_chain(ask_json: Any, solve: str) -> None:
    [case] = ask_json(f"{CHAIN} -e 1 -d 1e-6{solve}")
    found = best(case)
    assert found["quantity"] == "noise_std"
    [case] = ask_json(f"{CHAIN} --sigma {found['value']!r} -e 1 -d 1e-6")
    assert case["assertions"][0]["passed"]


# Rounding of what is printed.

NUMBER = r"([0-9.]+(?:e[-+]?\d+)?)"


def shown(pattern: str, text: str) -> Decimal:
    """Return the number printed, exactly."""
    match = re.search(pattern, text)
    assert match, text
    return Decimal(match[1])


def random_run(rng: random.Random, precision: int) -> str:
    def log(low: float, high: float) -> str:
        return repr(10 ** rng.uniform(low, high))

    return (
        f"rdp -n {rng.randrange(100, 10**6)} -i {rng.randrange(1, 100)} --smoothness 1 "
        f"--eta {rng.uniform(0.01, 2)!r} --precision {precision} -L {log(-1, 1)}"
    )


@pytest.mark.few(5)
@pytest.mark.parametrize("precision", range(2, 18))
def test_guarantees_are_printed_no_smaller(ask: Any, ask_json: Any, precision: int) -> None:
    rng = random.Random(precision)
    for _ in range(2):
        run = random_run(rng, precision)
        sigma, epsilon, delta = 10 ** rng.uniform(-1, 2), 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-12, -3)
        questions = [
            (f"--sigma {sigma!r} -d {delta!r}", rf"epsilon <= {NUMBER} at"),
            (f"--sigma {sigma!r}", rf"mu <= {NUMBER} \("),
            (f"--sigma {sigma!r} --order {1 + epsilon!r}", rf"RDP <= {NUMBER} at"),
            (f"-e {epsilon!r} -d {delta!r}", rf"noise_std >= {NUMBER} is enough for"),
        ]
        for question, pattern in questions:
            line = f"{run} {question}"
            assert shown(pattern, ask(line)) >= Decimal(best(ask_json(line)[0])["value"]), line


@pytest.mark.few(5)
@pytest.mark.parametrize("precision", range(2, 18))
def test_a_printed_delta_is_no_smaller(ask: Any, ask_json: Any, precision: int) -> None:
    rng = random.Random(precision)
    for _ in range(3):
        epsilon = 10 ** rng.uniform(-3, 1)
        line = f"{random_run(rng, precision)} --sigma {10 ** rng.uniform(-1, 1)!r} -e {epsilon!r}"
        found = best(ask_json(line)[0])
        printed = shown(rf"delta <= {NUMBER} at", ask(line))
        tiny = Decimal(found["value"]) < Decimal("1e-290")
        assert printed >= (Decimal(found["log_delta"]).exp() if tiny else Decimal(found["value"])), line


@pytest.mark.parametrize(
    ("question", "pattern", "given"),
    [
        ("--sigma 2 -d 1.24e-6", rf"at delta = {NUMBER}", "1.24e-6"),
        ("--sigma 2 -e 1.24", rf"at epsilon = {NUMBER}", "1.24"),
        ("-e 1.24 -d 1e-6", rf"is enough for epsilon = {NUMBER}", "1.24"),
        ("-e 1 -d 1.24e-6", rf"and delta = {NUMBER}", "1.24e-6"),
    ],
)
def test_the_other_half_of_a_pair_is_rounded_up_too(ask: Any, question: str, pattern: str, given: str) -> None:
    """An epsilon that holds at delta = 1.24e-6 need not hold at 1.2e-6."""
    assert shown(pattern, ask(f"{PASS} {question} --precision 2")) >= Decimal(given)


def test_an_order_is_printed_no_larger(ask: Any) -> None:
    """What holds at order 9.96 need not hold at order 10."""
    assert shown(rf"at order {NUMBER}", ask(f"{PASS} --sigma 2 --order 9.96 --precision 2")) <= Decimal("9.96")


@pytest.mark.few(4)
@pytest.mark.parametrize("name", ["index", "lipschitz", "diameter"])
@pytest.mark.parametrize("precision", [2, 3, 6, 17])
def test_the_largest_value_that_will_do_is_printed_no_larger(
    ask: Any, ask_json: Any, name: str, precision: int
) -> None:
    rng = random.Random(precision)
    fixed = {
        "index": "-n 100000 -L 1",
        "lipschitz": "-n 1000 -i 500",
        "diameter": "-n 1000 -i 995 -L 1",
    }[name]
    for _ in range(3):
        epsilon = rng.uniform(0.3, 1.5)
        line = f"rdp {fixed} --smoothness 1 --eta 0.1 --sigma 2 -e {epsilon!r} -d 1e-5 --solve {name}"
        found = best(ask_json(line)[0])["value"]
        assert shown(rf"{name} <= {NUMBER} is enough for", ask(f"{line} --precision {precision}")) <= Decimal(found)


@pytest.mark.parametrize("typed", ["1/n", "1/N", "1/records"])
def test_delta_over_the_number_of_records(ask_json: Any, typed: str) -> None:
    line = "rdp -L 1 --smoothness 1 --eta 0.1 --sigma 2"
    cases = ask_json(f"{line} -n 100,30000 -d {typed}")
    for case, records in zip(cases, (100, 30000), strict=True):
        [alone] = ask_json(f"{line} -n {records} -d 1/{records}")
        assert case["inputs"]["delta"]["value"] == alone["inputs"]["delta"]["value"] == 1.0 / records
        assert case["results"] == alone["results"]
