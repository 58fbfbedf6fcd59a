"""``hockey-stick``, ``shuffle`` and ``online`` as they are used: every unknown, every option, plain refusals."""

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dpcalc.cli.main import main
from tests.cli.conftest import best

SGD = "-L 1 --smoothness 1 --eta 0.1 -D 2"
STREAM = "-L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent 1.5"


def by_id(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["bound"]: result for result in case["results"]}


def refuse(capsys: pytest.CaptureFixture[str], line: str, status: int, *words: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    found = capsys.readouterr()
    assert stop.value.code == status
    assert found.out == ""
    for word in (*words, "hint:"):
        assert word in found.err


# --- the example everybody should try


def test_a_shuffled_pass(ask_json: Any) -> None:
    [case] = ask_json(f"shuffle -n 1e5 {SGD} --sigma 2 -d 1e-6")
    rows = by_id(case)
    assert best(case)["value"] == pytest.approx(1.31534, abs=5e-6)
    assert rows["shuffle.product"]["value"] == pytest.approx(4.82869, abs=1e-5)
    assert rows["hidden_position.shuffled"]["kind"] == "conditional"
    assert "secret" in rows["hidden_position.shuffled"]["demands"][0]
    assert any("noise of all later steps" in note for note in case["notes"])
    assert any("secret" in note for note in case["notes"])


def test_a_shuffled_pass_in_a_secret_order(ask_json: Any) -> None:
    [case] = ask_json(f"shuffle -n 1e5 {SGD} --sigma 2 -d 1e-6 --permutation secret")
    assert best(case)["bound"] == "hidden_position.shuffled"
    assert 0.0097 <= best(case)["value"] <= 0.0212
    assert any("secret for ever" in text for text in best(case)["assumes"])
    assert any("sensitivity holds between all records" in text for text in best(case)["assumes"])


def test_a_gate_does_not_count_on_an_order_that_may_be_public(ask: Any) -> None:
    query = f"shuffle -n 100 {SGD} --sigma 2 -d 1e-6 --assert epsilon<=2 --json"
    ask(query, 1)
    ask(f"{query} --permutation secret", 0)


# --- what is left out is solved for


@pytest.mark.parametrize("window", [2, pytest.param(1000, marks=pytest.mark.campaign)])
def test_a_stream_of_any_length_in_one_multiplier(ask_json: Any, window: int) -> None:
    run = f"online -n 1e12 -w {window} {STREAM}"
    [case] = ask_json(f"{run} -e 1 -d 1e-6 --solve schedule-factor")
    value = best(case)["value"]
    [back] = ask_json(f"{run} --schedule-factor {value!r} -d 1e-6")
    assert best(back)["value"] <= 1.0
    [worse] = ask_json(f"{run} --schedule-factor {value * (1 - 1e-6)!r} -d 1e-6")
    assert best(worse)["value"] > 1.0


# --- batches, positions, schedules


def test_a_short_last_batch_is_spoken_of(ask_json: Any) -> None:
    run = f"shuffle -n 60000 --batch-size 256 {SGD} --sigma 0.05 -d 1e-6"
    found = {how: best(ask_json(f"{run} --last-batch {how}")[0])["value"] for how in ("own", "nominal", "drop")}
    assert max(found["drop"], found["nominal"]) < 0.5 * found["own"]
    [case] = ask_json(run)
    assert best(case)["value"] == found["own"]
    assert any("short last batch of 96" in note for note in case["notes"])


def test_null_records_need_half_the_noise(ask_json: Any) -> None:
    run = f"shuffle -n 1000 {SGD} -d 1e-6"
    [whole] = ask_json(f"{run} --sigma 2")
    [half] = ask_json(f"{run} --sigma 1 --adjacency null-record")
    for name in ("shuffle.mixture", "shuffle.hybrid"):
        assert by_id(half)[name]["value"] == pytest.approx(by_id(whole)[name]["value"], rel=1e-3)
    # Where the place is hidden the other records may still be anything.
    hidden = "hidden_position.shuffled"
    assert by_id(half)[hidden]["value"] > by_id(whole)[hidden]["value"]


def test_a_schedule_of_equal_steps_says_what_its_constants_say(ask_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.csv"
    path.write_text("step_size,noise_std\n" + "0.1,2\n" * 50)
    for command, index in (("hockey-stick", "-i 20"), ("hockey-stick --algorithm stop", "-i 20"), ("shuffle", "")):
        [even] = ask_json(f"{command} -n 50 {index} {SGD} --sigma 2 -e 0.5")
        [file] = ask_json(f"{command} {index} -L 1 --smoothness 1 -D 2 --schedule {path} -e 0.5")
        for name, result in by_id(file).items():
            kind = name.rpartition(".")[2].replace("shuffled_", "").replace("stop", "stop_product")
            twin = f"{command.split()[0].replace('hockey-stick', 'contraction')}.{kind}"
            assert result["log_delta"] == pytest.approx(by_id(even)[twin]["log_delta"], rel=1e-9), name


def test_any_law_of_the_position(ask_json: Any, tmp_path: Path) -> None:
    path = tmp_path / "law.csv"
    path.write_text("step_size,noise_std,probability\n0.1,2,0.2\n0.1,2,0.5\n0.1,2,0.3\n")
    [case] = ask_json(f"shuffle -L 1 --smoothness 1 -D 2 --schedule {path} -e 0.5")
    parts = []
    for index, weight in ((1, 0.2), (2, 0.5), (3, 0.3)):
        [single] = ask_json(f"hockey-stick -n 3 -i {index} {SGD} --sigma 2 -e 0.5")
        parts.append(weight * math.exp(by_id(single)["contraction.product"]["log_delta"]))
    assert math.exp(by_id(case)["stepwise.shuffled_product"]["log_delta"]) == pytest.approx(sum(parts), rel=1e-9)


def test_probabilities_mean_nothing_in_a_fixed_order(capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "law.csv"
    path.write_text("step_size,noise_std,probability\n0.1,2,0.5\n0.1,2,0.5\n")
    refuse(capsys, f"hockey-stick -L 1 --smoothness 1 -D 2 --schedule {path} -e 0.5", 2, "probability")
    path.write_text("step_size,noise_std,probability\n0.1,2,0.5\n0.1,2,0.6\n")
    refuse(capsys, f"shuffle -L 1 --smoothness 1 -D 2 --schedule {path} -e 0.5", 2, "adds up to 1.1")


# --- tuned noise, and streams


def test_the_guarantee_of_tuned_noise_is_the_one_at_n(ask_json: Any) -> None:
    """The paper's Figure 2: constants C1 = 1e5, C2 = 2, Laplace noise."""
    line = "shuffle -n 1e5,1e7 -L 10 --smoothness 1 --eta 0.1 -D 1 --noise laplace --c1 1e5 --c2 2 -e 1"
    for case, printed in zip(ask_json(line), (1.486259e-5, 6.185632e-6), strict=True):
        rows = by_id(case)
        assert rows["shuffle.product"]["value"] == pytest.approx(printed, rel=1e-6)
        assert rows["shuffle.limit"]["kind"] == "asymptotic"
        assert rows["shuffle.limit"]["value"] == pytest.approx(6.065307e-6, rel=1e-6)
        assert not rows["shuffle.limit"]["best"]
    [case] = ask_json(line.replace(",1e7", ""))
    assert any("1/n" in note for note in case["notes"])


def test_streams(ask_json: Any) -> None:
    """The paper's Figure 4."""
    line = f"online -n 1e3,1e6 -i 100 {STREAM} --noise laplace -e 1"
    for case, printed in zip(ask_json(line), (2.597191e-4, 2.151331e-8), strict=True):
        rows = by_id(case)
        assert rows["online.product"]["value"] == pytest.approx(printed, rel=1e-6)
        assert rows["online.limit"]["value"] == pytest.approx(1.5470401e-8, rel=1e-7)
        assert {rows[name]["kind"] for name in ("online.limit", "online.limit_above")} == {"asymptotic"}
        assert rows["online.limit_printed"]["kind"] == "published"


def test_the_newest_record_is_not_amplified(ask_json: Any) -> None:
    [case] = ask_json(f"online -n 1e9 {STREAM} -e 1")
    assert case["inputs"]["index"] == {"value": 10**9, "source": "worst case"}
    assert any("no amplification" in note for note in case["notes"])
    [younger] = ask_json(f"online -n 1e12 {STREAM} -e 1")
    assert best(case)["value"] < best(younger)["value"]


def test_noise_is_streamed(ask: Any) -> None:
    lines = ask(f"online -n 103 -i 100 {STREAM} --noise laplace --print-noise").splitlines()
    assert lines[0] == "record,laplace_scale"
    assert [line.split(",")[0] for line in lines[1:]] == ["100", "101", "102", "103"]
    assert float(lines[1].split(",")[1]) == pytest.approx(10.63721, rel=1e-6)


def test_noise_is_streamed_as_long_as_somebody_reads() -> None:
    argv = [sys.executable, "-m", "dpcalc", "online", *STREAM.split(), "--print-noise"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as stream:
        assert stream.stdout is not None
        assert stream.stderr is not None
        head = list(itertools.islice(stream.stdout, 2000))
        stream.stdout.close()
        assert len(head) == 2000
        assert stream.wait(20) in (0, -13, 141)
        assert stream.stderr.read() == ""


# --- plain refusals


def test_losses_that_are_not_convex_get_no_shift_bound(ask_json: Any) -> None:
    for loss in ("convex", "smooth", "lipschitz"):
        [case] = ask_json(f"shuffle -n 100 {SGD} --loss-class {loss} --sigma 2 -e 1")
        assert set(by_id(case)) == {"shuffle.product", "shuffle.nonlinear", "shuffle.hybrid"}
        reasons = {o["bound"]: o["because"] for o in case["not_applicable"]}
        assert "convex smooth" in reasons["shuffle.mixture"]
        assert "convex smooth" in reasons["hidden_position.shuffled"]


def test_very_small_deltas_are_numbers(ask: Any) -> None:
    report = json.loads(
        ask("hockey-stick -n 1e6 -i 1 -L 1 --loss-class lipschitz --eta 0.1 -D 1 --sigma 20 -e 1 --json")
    )
    [case] = report["cases"]
    row = by_id(case)["contraction.product"]
    assert row["log_delta"] < -1e6
    assert 0.0 < row["value"] < 1e-320
    text = ask("hockey-stick -n 1e6 -i 1 -L 1 --loss-class lipschitz --eta 0.1 -D 1 --sigma 20 -e 1")
    assert "10^-" in text
