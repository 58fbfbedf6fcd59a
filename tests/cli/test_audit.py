"""`audit`: a right engine is within its guarantee, and a broken one is caught."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.training.audit import estimate as audit
from dpcalc.training.run import ensemble, kernel

PASS = "-n 6 -L 1 --smoothness 1 --eta 0.5 --sigma 1.5"
MANY = f"{PASS} --epochs 2"
STEPS = f"{PASS} --steps 4 --batch-size 2"
SAMPLED = "-n 6 --loss logistic --feature-bound 1 -R 1 --sigma 1 --steps 6 --eta 0.1"
RUNS = {
    "pnsgd": f"{PASS} -D 2",
    "skip": PASS,
    "stop": PASS,
    "local": PASS,
    "shuffled": f"{PASS} --adjacency null-record",
    "rotation": f"{PASS} -D 2",
    "shuffled-stop": PASS,
    "online": "-n 12 -i 12 -L 2 --smoothness 1 --eta 0.1 -D 1 --c1 100 --c2 100 --decay-exponent 1.5",
    "cyclic": MANY,
    "shuffle-once": MANY,
    "rotation-epochs": MANY,
    "shuffled-epochs": MANY,
    "noisy-sgd": STEPS,
    "noisy-gd": f"{PASS} --steps 4",
    "dp-sgd-gradient": f"{SAMPLED} --batch-size 2",
    "dp-sgd-output": SAMPLED,
    "correlated": "-n 6 --loss logistic --feature-bound 1 --batch-size 2 --epochs 2 --clip 0.5 --eta 0.5 "
    "--mechanism sqrt --noise-multiplier 1.5 --adjacency zero-out",
}
EXACT = "audit --algorithm noisy-gd -n 3 --steps 4 -L 1 --smoothness 1 --eta 0.5 --sigma 1 -d 0.05 --replicas 2e4"


def answered(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    captured = capsys.readouterr()
    assert (stop.value.code or 0) == code, captured.err
    return captured.out, captured.err


def test_the_python_function_gives_the_report_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--algorithm noisy-gd -n 5,6 --steps 3 -L 1 --eta 0.5 --sigma 2 -d 0.05 --replicas 2000 --seed 4 --json"
    with pytest.raises(SystemExit):
        main(["audit", *line.split()])
    printed = json.loads(capsys.readouterr().out)
    given: dict[str, Any] = {"algorithm": "noisy-gd", "records": [5, 6], "steps": 3, "lipschitz": 1, "step_size": 0.5}
    found = dpcalc.audit(**given, noise_std=2, delta=0.05, replicas=2e3, seed=4)
    assert [case["audit"] for case in printed["cases"]] == [case.audit for case in found.cases]
    assert found.to_dict()["command"] == printed["command"]
    assert found.failed == 0
    for wrong, text in (
        ({"attack": "worst"}, "attack is 'worst'"), ({"replicas": 2000.5}, "whole number"),
        ({"replicas": 10}, "replicas is 10"), ({"certify": True}, "does not take certify"),
        ({"data": "one.csv"}, "custom attack"), ({"order": 2}, "epsilon at a delta"),
    ):  # fmt: skip
        with pytest.raises(dpcalc.SpecError, match=text):
            dpcalc.audit(**{**given, "noise_std": 2, **({} if "order" in wrong else {"delta": 0.05}), **wrong})


def test_all_that_can_be_carried_out_is_audited() -> None:
    assert set(RUNS) == {name for name in COMMANDS["compare"].algorithms if ALGORITHMS[name].executed}


@pytest.mark.few(9)
@pytest.mark.parametrize("algorithm", RUNS)
def test_every_algorithm_is_within_its_guarantee(ask_json: Any, algorithm: str) -> None:
    releases = ("last", "epoch") if "release" in ALGORITHMS[algorithm].parameters else ("",)
    for release in releases:
        flag = f"--release {release}" if release else ""
        [case] = ask_json(f"audit --algorithm {algorithm} {RUNS[algorithm]} {flag} -d 0.1 --replicas 2000")
        told = case["audit"]
        assert not told["exceeded"]
        assert 0.0 <= told["epsilon_lower"] <= told["epsilon"]
        assert told["mu"] is None or 0.0 < told["mu_lower"] <= told["mu"]
        assert case["assertions"][-1]["passed"]


def test_a_lower_bound_beside_the_guarantee(ask_json: Any, ask: Any) -> None:
    [case] = ask_json(EXACT)
    told = case["audit"]
    assert told["mu"] == pytest.approx(4.0 / 3.0)
    assert 0.8 * told["mu"] < told["mu_lower"] <= told["mu"]
    assert (told["attack"], told["confidence"], told["replicas"], told["pilot"]) == ("linear", 0.99, 20000, 2000)
    for format in ("plain", "table", "markdown"):
        text = " ".join(ask(f"{EXACT} --format {format} -v").replace("\\", "").split())
        assert f"mu &gt;= {told['mu_lower']:.4f}"[:-1] in text.replace("mu >=", "mu &gt;=")
    assert "audited:" in ask(EXACT)
    assert "audit_mu_lower" in ask(f"{EXACT} --format csv")


def test_the_same_report_for_any_number_of_workers(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensemble, "_ENTRIES", 512)
    reports = {ask(f"{EXACT} --json --workers {workers}") for workers in (1, 2, 7)}
    assert len(reports) == 1


# --- broken engines ---------------------------------------------------------------------------------------------------


def test_half_the_noise_is_noticed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fill = ensemble.fill

    def weaker(generator: Any, kind: str, out: Any) -> None:
        fill(generator, kind, out)
        out *= 0.5

    monkeypatch.setattr(ensemble, "fill", weaker)
    out, err = answered(f"{EXACT} --json", 1, capsys)
    assert json.loads(out)["cases"][0]["audit"]["exceeded"] is True
    assert json.loads(out)["summary"]["failed"] == 1
    assert "--- bug report ---" in err
    assert "noise_std=1.0" in err
    assert "gate failed" in err
    for format in ("plain", "statement", "explain"):
        assert "CONTRADICT" in answered(f"{EXACT} --format {format}", 1, capsys)[0]


def test_a_clip_that_is_left_out_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = (
        "audit --algorithm noisy-gd -n 3 --steps 4 --loss logistic --feature-bound 2 --clip 1 --eta 0.5 --sigma 1 "
        "-d 0.05 --replicas 2e4"
    )
    answered(line, 0, capsys)
    monkeypatch.setattr(kernel, "slope_caps", lambda *_: None)
    answered(line, 1, capsys)


def test_an_order_that_is_not_random_is_noticed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A strong contraction shows the last record alone, and the record is always the last."""
    line = (
        "audit --algorithm shuffled -n 20 -L 1 --smoothness 1 --strong-convexity 0.9 --eta 1 --sigma 1 -d 0.15 "
        "--replicas 2e4"
    )
    answered(line, 0, capsys)
    generator = ensemble._generator

    class Ordered:
        """A generator whose orders all end with the first record."""

        def __init__(self, *arguments: Any) -> None:
            self.drawn = generator(*arguments)

        def permuted(self, order: Any, *, axis: int, out: Any) -> None:
            out[...] = np.flip(np.sort(order, axis=axis), axis=axis)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.drawn, name)

    monkeypatch.setattr(ensemble, "_generator", Ordered)
    answered(line, 1, capsys)


# --- data sets of one's own -------------------------------------------------------------------------------------------

LOGISTIC = "audit --attack custom --algorithm noisy-gd -n 3 --steps 4 --loss logistic --feature-bound 1 --eta 0.5"
NOISE = "--sigma 0.5 -d 0.1 --replicas 5e3"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = {"a": "1,0,1", "b": "-1,0,1", "none": "1,0,1", "two": "-1,0,1", "long": "3,0,1", "null": "0,0,1"}
    for name, row in rows.items():
        second = "0.5,0.5,1" if name == "two" else "0,1,1"
        (tmp_path / f"{name}.csv").write_text(f"x,z,y\n{row}\n{second}\n0,0,-1\n")
    (tmp_path / "turned.csv").write_text("z,x,y\n-1,0,1\n0,1,1\n0,0,-1\n")
    return tmp_path


@pytest.mark.usefixtures("files")
def test_data_sets_of_ones_own(ask_json: Any) -> None:
    [case] = ask_json(f"{LOGISTIC} {NOISE} --data a.csv --neighbour b.csv")
    told = case["audit"]
    assert told["attack"] == "custom"
    assert 0.3 * told["mu"] < told["mu_lower"] < told["mu"]
    [turned] = ask_json(f"{LOGISTIC} {NOISE} --data b.csv --neighbour a.csv")
    assert turned["audit"]["mu_lower"] == pytest.approx(told["mu_lower"], rel=0.2)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("--data a.csv --neighbour none.csv", "differ in 0 records"),
        ("--data a.csv --neighbour two.csv", "differ in 2 records"),
        ("--data a.csv --neighbour long.csv", "feature_bound is 1"),
        ("--data a.csv", "needs two data sets"),
        ("--data a.csv --neighbour turned.csv", "another order"),
        ("--data a.csv --neighbour b.csv --adjacency null-record", "is none in either"),
        ("--data a.csv --neighbour missing.csv", "missing.csv"),
    ],
)
def test_data_sets_that_are_no_neighbours(more: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert why in answered(f"{LOGISTIC} {NOISE} {more}", 2, capsys)[1]


@pytest.mark.usefixtures("files")
def test_a_null_record(ask_json: Any) -> None:
    [case] = ask_json(f"{LOGISTIC} {NOISE} --data a.csv --neighbour null.csv --adjacency null-record")
    assert 0.0 < case["audit"]["mu_lower"] < case["audit"]["mu"]


@pytest.mark.usefixtures("files")
def test_a_place_that_the_guarantee_is_not_of(capsys: pytest.CaptureFixture[str]) -> None:
    line = "audit --attack custom --algorithm pnsgd -n 3 --loss logistic --feature-bound 1 --eta 0.5 --sigma 1 -d 0.1"
    files = "--data a.csv --neighbour b.csv --replicas 2e3"
    assert "--index 1" in answered(f"{line} {files} -i 2", 2, capsys)[1]
    answered(f"{line} {files} -i 1", 0, capsys)


def test_runs_as_they_are_released(ask_json: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "LEAST", 100)
    run = "-n 2 -L 4 --smoothness 1 --eta 0.5 --sigma 2 -d 0.1"
    for algorithm in ("noisy-gd --steps 4", "shuffled"):
        [case] = ask_json(f"audit --algorithm {algorithm} {run} --as-released --attack linear --replicas 200")
        told = case["audit"]
        assert told["as_released"] is True
        assert 0.2 * told["epsilon"] < told["epsilon_lower"] <= told["epsilon"]


# --- questions and refusals -------------------------------------------------------------------------------------------


def test_noise_that_is_sought_and_a_mu_that_is_asked(ask_json: Any) -> None:
    [case] = ask_json("audit --algorithm shuffled -n 9 -L 1 --smoothness 1 --eta 0.1 -e 1 -d 0.1 --replicas 2e3")
    assert (case["audit"]["epsilon"], case["audit"]["delta"]) == (1.0, 0.1)
    [case] = ask_json(f"audit --algorithm pnsgd {PASS} --replicas 2e3")
    assert case["audit"]["epsilon_lower"] is None
    assert case["audit"]["mu_lower"] > 0.0


def test_where_the_noise_is_sought_the_mu_is_that_of_the_noise_that_is_found(ask_json: Any) -> None:
    """Of several bounds each finds a noise of its own, and says a mu at that."""
    line = "--algorithm rotation-epochs -n 100 --epochs 2 -L 1 --smoothness 1 --eta 1 -d 1e-3"
    [case] = ask_json(f"audit {line} -e 0.5 --replicas 1e3")
    [best] = [result for result in case["results"] if result["best"]]
    [known] = ask_json(f"compare {line} --sigma {best['value']!r}")
    mus = [each["mu"] for each in known["results"] if each["kind"] == "upper" and "mu" in each]
    assert case["audit"]["mu"] == min(mus) > 0.5
    assert case["audit"]["epsilon"] == 0.5


def test_numbers_of_the_statement_are_not_rounded_against_the_guarantee(ask: Any) -> None:
    line = EXACT.replace("-d 0.05", "-d 0.0123456789").replace("2e4", "1e3")
    text = ask(f"{line} --confidence 0.99999999 -vv")
    assert "at delta = 0.0123456789 (" in text
    assert "with confidence 0.99999999\n" in text


def test_several_cases_stand_side_by_side(ask: Any) -> None:
    text = " ".join(ask(f"audit --algorithm pnsgd,shuffled,dp-sgd {PASS} -d 0.1 --replicas 2e3").split())
    assert "audited epsilon" in text
    assert "the bounds on each case hold with confidence 0.99; attacks:" in text
    assert "2000 runs on each of two data sets, seed 0" in text
    assert "dp-sgd: is no algorithm that can be executed" in text or "dp-sgd: takes no" in text


def test_the_picture_has_what_was_seen_below_what_is_guaranteed(
    ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("dpcalc.render.chart.figure.draw", lambda chart, _: drawn.append(chart) or b"picture")
    ask(f"{EXACT} --plot {tmp_path / 'a.svg'}")
    guaranteed, seen = drawn[0].panels[0].series[:2]
    assert "0.99" in seen.label
    assert seen.dashed
    assert not guaranteed.dashed
    rates = list(zip(seen.xs, guaranteed.ys, seen.ys, strict=False))
    assert all(x <= low <= high for x, high, low in rates)
    assert max(low - x for x, _, low in rates) > 0.7 * max(high - x for x, high, _ in rates)
    ask(f"{EXACT.replace('--sigma 1', '--sigma 1,2')} --plot {tmp_path / 'b.svg'}")  # a sweep is drawn as for compare
    assert "audit" not in drawn[1].panels[0].series[0].label


def test_an_interrupt_reports_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit.ensemble, "train", interrupted)
    out, err = answered(EXACT, 130, capsys)
    assert out == ""
    assert "nothing is reported" in err
