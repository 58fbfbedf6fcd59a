"""What is said of a parameter that was solved for holds in all of the range that is named, and nowhere else."""

import json
import random
import shlex
from typing import Any

import pytest

from dpcalc.cli.main import main

STEP = (
    "compare --algorithm cyclic --epochs 50 -n 10 -L 1 --smoothness 1 --strong-convexity 0.5 --sigma 2 -d 1e-2 -e 3 "
    "--solve step-size"
)
BATCH = "compare --algorithm pnsgd -L 1 --smoothness 1 --eta 0.5 --sigma 1 -n 21 -e 0.5 -d 0.05 --solve batch-size"
CONVEX = "compare --algorithm pnsgd -L 1 --smoothness 1 --sigma 1 -n 21 -e 5 -d 0.05 --solve step-size"


def test_a_step_size_is_enough_up_to_where_steps_contract_least(capsys: pytest.CaptureFixture[str]) -> None:
    holds = best(capsys, STEP)["holds"]
    assert holds["end"] == "2/(smoothness + strong_convexity)"
    assert 0.06 < holds["from"] < holds["to"] == pytest.approx(4 / 3)
    r = random.Random(1)
    inside = [r.uniform(holds["from"], holds["to"]) for _ in range(5)]
    asked = STEP.replace(" -e 3 --solve step-size", " --eta ")
    for step_size in (holds["from"], *inside, holds["to"]):
        assert best(capsys, f"{asked}{step_size!r}")["value"] <= 3.0
    assert best(capsys, f"{asked}2")["value"] > 3.0


@pytest.mark.parametrize("batches", ["full", pytest.param("shuffle --batch-size 100", marks=pytest.mark.campaign)])
def test_a_regulariser_of_clipped_gradients_is_curvature_too(batches: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        f"dp-sgd --sampling {batches} --adjacency zero-out --epochs 1000 --noise-multiplier 5 --release last "
        "--loss logistic --feature-bound 1 --regularisation 0.1 --clip 1 -n 100 -d 1e-5"
    )
    holds = best(capsys, f"{line} -e 4 --solve step-size")["holds"]
    assert holds["end"] == "2/(smoothness + regularisation)"
    assert holds["to"] == pytest.approx(2.0 / 0.45)
    for step_size in (holds["from"], 1.0, holds["to"]):
        assert best(capsys, f"{line} --eta {step_size!r}")["value"] <= 4.0 + 1e-9
    assert best(capsys, f"{line} --eta 5.7")["value"] > 4.0


def test_a_lower_rate_may_be_worse_where_epochs_then_have_more_steps(capsys: pytest.CaptureFixture[str]) -> None:
    run = "dp-sgd --sampling poisson --adjacency remove --noise-multiplier 0.8 -d 1e-3"
    at = {rate: best(capsys, f"{run} --epochs 1 --sample-rate {rate}")["value"] for rate in (0.205, 0.1999)}
    assert at[0.205] < 3.551 < at[0.1999]
    assert exits(f"{run} -e 3.55 --epochs 1 --solve sample-rate") == 2
    capsys.readouterr()
    assert best(capsys, f"{run} -e 3.55 --steps 5 --solve sample-rate")["value"] > 0.204


def test_every_rate_may_be_enough(capsys: pytest.CaptureFixture[str]) -> None:
    run = "dp-sgd --sampling poisson --adjacency remove --noise-multiplier 2 --steps 1 -d 1e-3"
    assert best(capsys, f"{run} -e 8 --solve sample-rate")["value"] == 1.0


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (STEP, "step_size from 0.0628839 to 2/(smoothness + strong_convexity) = 1.33333"),
        (CONVEX, "any step_size up to 2/smoothness = 2"),
        (BATCH, "batch_size = 7"),
        (STEP.replace("--strong-convexity 0.5", "--eta 0.5").replace("step-size", "strong-convexity"),
         "strong_convexity from 0.0628839 to smoothness = 1"),
    ],
)  # fmt: skip
def test_every_form_names_the_range(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("plain", "markdown"):
        assert f"{sentence} is enough for epsilon" in " ".join(shown(capsys, f"{line} --format {form}").split())
    statement = " ".join(shown(capsys, line.replace("compare", "statement", 1)).split())
    assert f"With {sentence} the result is (" in statement


def test_a_value_rounded_up_stays_in_its_range(capsys: pytest.CaptureFixture[str]) -> None:
    limit = best(capsys, STEP.replace(" -e 3 --solve step-size", " --eta 1.333331"))["value"]
    text = shown(capsys, STEP.replace("-e 3", f"-e {limit!r}"))
    value = text.partition("step_size from ")[2].split()[0]
    assert 1.3333 < float(value) <= 4 / 3


def test_a_larger_batch_may_be_worse(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a record has a place, not even a larger divisor of the records need do: 16 is the first of a batch of 4."""
    line = BATCH.replace("-n 21", "-n 20 --index 16").replace("compare", "rdp", 1)
    found = best(capsys, line)
    assert found["holds"] == {"from": 4, "to": 4}
    asked = line.replace(" -d 0.05 --solve batch-size", " --batch-size ")
    deltas = {size: best(capsys, f"{asked}{size}")["value"] for size in (4, 5)}
    assert deltas[4] <= 0.05
    assert deltas[5] > deltas[4]


@pytest.mark.parametrize(
    ("line", "gate", "code"),
    [
        (STEP, "step_size <= 1.3", 0),
        (STEP, "step_size <= 0.06", 1),
        (STEP, "step_size <= 1.4", 2),
        (STEP, "step_size < 1e9", 2),
        (CONVEX, "step_size <= 2", 0),
        (CONVEX, "step_size <= 2.1", 2),
        (BATCH, "batch_size <= 7", 0),
        (BATCH, "batch_size == 7", 0),
        (BATCH, "batch_size <= 6", 1),
        (BATCH, "batch_size <= 10", 2),
        (BATCH, "batch_size < 8", 2),
    ],
)
def test_a_gate_holds_only_where_its_limit_is_enough(line: str, gate: str, code: int, capsys: Any) -> None:
    """Deltas so large fail a gate of their own, which is none of a limit."""
    assert exits(f"{line} --assert '{gate}' --json") == (2 if code == 2 else 1)
    if code != 2:
        verdicts = json.loads(capsys.readouterr().out)["cases"][0]["assertions"]
        assert [(each["text"], each["passed"]) for each in verdicts] == [(gate, code == 0), ("large-delta", False)]


def test_more_records_may_let_a_random_stop_come_later(capsys: pytest.CaptureFixture[str]) -> None:
    run = "rdp --algorithm stop -L 1 --smoothness 1 --eta 0.5 --sigma 1 -e 0.5"
    deltas = [best(capsys, f"{run} --index 14 -n {n}")["value"] for n in (14, 20, 60)]
    assert deltas[0] < deltas[2] < deltas[1]
    assert exits(f"{run} -d 0.06 --index 14 --solve records") == 2
    assert exits(f"{run} -d 0.06 --solve records") == 0


def best(capsys: pytest.CaptureFixture[str], line: str) -> dict[str, Any]:
    """The best result of a query."""
    results = json.loads(shown(capsys, f"{line} --format json"))["cases"][0]["results"]
    return next(result for result in results if result["best"])


def shown(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """What a command prints."""
    assert exits(line) == 0
    return capsys.readouterr().out


def exits(line: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return int(stop.value.code or 0)


@pytest.mark.few(1)
@pytest.mark.parametrize("run", ["noisy-gd --steps 10", "noisy-sgd --batch-size 10 --epochs 1"])
def test_noise_below_what_is_searched_is_not_said_to_be_any(run: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Noise is as large as the clip: none at all is not enough, however short gradients are."""
    line = f"compare --algorithm {run} --records 1000 -e 1 -d 1e-6 --clip "
    tiny, one = best(capsys, f"{line}1e-99")["value"], best(capsys, f"{line}1")["value"]
    assert tiny == pytest.approx(1e-99 * one, rel=1e-4)
    for clip in ("1e-300", "1e-200"):
        found = best(capsys, f"{line}{clip}")
        assert found["value"] / float(clip) > 0.999 * one
        assert "any" not in found.get("details", {})
        assert "any noise_std" not in shown(capsys, f"{line}{clip}")


def test_noise_is_found_for_the_longest_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    line = "compare --algorithm noisy-sgd --batch-size 10 --epochs 1 --records 1000 -e 1 -d 1e-6 --clip "
    huge, one = best(capsys, f"{line}1e250")["value"], best(capsys, f"{line}1")["value"]
    assert one * 0.9999 < huge / 1e250
