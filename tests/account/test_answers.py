"""Accounts: the numbers, what other readings say, skipped batches, and a run against its plan."""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.account.answer import composed
from dpcalc.account.described import Described
from dpcalc.account.forms import Phase
from dpcalc.account.recipe import read_plan
from dpcalc.account.way import accounted
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.quantities import Adjacency, Sampling
from dpcalc.notes import OtherReading, RunRead, RunRemark
from dpcalc.report import Case

from .test_runs import KERAS, PRINTED, SNIPPET, TRUNCATED, Written, written

__all__ = ["written"]
ROOT = Path(__file__).resolve().parents[2]
DDP = {**SNIPPET, "history": [[1.1, 0.01, 2000]], "records": 50000, "rate": None, "divisor": 62.5, "epoch_steps": 100,
       "sampler": "DistributedUniformWithReplacementSampler"}  # fmt: skip


def case_of(*files: str, **flags: str) -> Case:
    return accounted(files, {"delta": "1e-5", **flags})[0]


def epsilon_of(case: Case) -> float:
    assert case.best is not None
    assert case.best.epsilon is not None
    return case.best.epsilon


def test_both_numbers_of_a_loader_that_drops_its_last_batch(written: Written) -> None:
    case = case_of(written("run.json", {**SNIPPET, "batch_size": 200}), delta="1e-4")
    assert epsilon_of(case) == pytest.approx(9.2683464, rel=1e-6)
    (other,) = (note for note in case.note_data if isinstance(note, OtherReading))
    assert other.value == pytest.approx(7.8053455, rel=1e-6)
    assert "200/570" in other.reading
    read = next(note for note in case.note_data if isinstance(note, RunRead))
    assert read.taken["loader_length"].endswith(": epoch_steps")
    assert list(read.unused) == ["reduction"]


def test_a_history_of_several_phases_is_composed(written: Written) -> None:
    case = case_of(written("event.txt", PRINTED))
    assert epsilon_of(case) == pytest.approx(2.0671011, rel=1e-6)


def test_batches_that_are_cut(written: Written) -> None:
    event = {"class_name": "SelfComposedDpEvent", "event": TRUNCATED, "count": 2000}
    assert epsilon_of(case_of(written("event.json", event))) == pytest.approx(2.16209, rel=1e-5)


def test_two_releases_from_each_batch(written: Written) -> None:
    content = {"sample_rate": 0.01, "steps": 2000, "noise_multiplier": 1.1, "releases_per_batch": 2}
    case = case_of(written("run.json", content), sampling="poisson")
    assert epsilon_of(case) == pytest.approx(3.3966619, rel=1e-6)
    (other,) = (note for note in case.note_data if isinstance(note, OtherReading))
    assert other.value == pytest.approx(2.15973, rel=1e-5)


@pytest.mark.parametrize(("said", "flags", "failed"), [({"target_epsilon": 9}, {}, True), ({"epsilon": 9}, {}, False),
                                                       ({"target_epsilon": 9}, {"epsilon": "9.3"}, False)])  # fmt: skip
def test_a_budget_is_a_gate(written: Written, said: dict[str, Any], flags: dict[str, str], failed: bool) -> None:
    assert case_of(written("run.json", {**SNIPPET, **said}), delta="1e-4", **flags).failed is failed


def test_microbatches_of_a_shuffled_run_cost_twice(written: Written) -> None:
    config = {**KERAS["config"], "num_microbatches": 50}  # type: ignore[dict-item]
    case = case_of(written("run.json", {**KERAS, "config": config, "epochs": 4}), sampling="shuffle")
    assert case.best is not None
    assert case.best.mu == pytest.approx(2.0 * math.sqrt(4) / 1.1, rel=1e-12)


def test_records_of_a_user_are_a_group(written: Written) -> None:
    content = {"sample_rate": 0.01, "steps": 100, "noise_multiplier": 1.1, "unit": "user", "max_records_per_user": 3}
    case = case_of(written("run.json", content), sampling="poisson")
    report = dpcalc.dp_sgd(sample_rate=0.01, steps=100, noise_multiplier=1.1, sampling="poisson",
                           adjacency="zero-out", group_size=3, delta=1e-5)  # fmt: skip
    assert report.cases[0].best is not None
    assert epsilon_of(case) == report.cases[0].best.epsilon
    alone = case_of(written("run.json", {**content, "clip_per": "user"}), sampling="poisson")
    assert epsilon_of(alone) < epsilon_of(case)


POISSON = {"sample_rate": 0.01, "steps": 2000, "noise_multiplier": 1.1, "sampling": "poisson"}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("said", "flags", "reading", "other", "right"),
    [  # values of another program: 2.15973 at z 1.1, 2.23030 at z 1.080563
        ({"unit": "user", "max_records_per_user": 3}, {}, "one record at a time", 2.15973, None),
        ({"unit": "user", "max_records_per_user": 3, "clip_per": "user"}, {}, "the rate of one record", 2.15973, None),
        ({"count_noise_std": 2.886751346, "count": "centred"}, {}, "the gradients' noise alone", 2.15973, 2.2303),
        ({"records": 50000, "physical_batch_size": 50}, {}, "the 50 records in memory", None, 2.15973),
        ({"adjacency": "replace-one", "divisor": "constant"}, {}, "the same noise for records added", 2.15973, 3.65592),
    ],
)  # fmt: skip
def test_another_reading_is_told_with_both_numbers(
    written: Written,
    said: dict[str, Any],
    flags: dict[str, str],
    reading: str,
    other: float | None,
    right: float | None,
) -> None:
    case = case_of(written("run.json", {**POISSON, **said}), **flags)
    (note,) = (note for note in case.note_data if isinstance(note, OtherReading))
    assert note.reading.startswith(reading)
    told = float(note.truth.rpartition("epsilon ")[2])  # rounded up
    assert epsilon_of(case) <= told <= epsilon_of(case) * (1.0 + 1e-5)
    assert other is None or note.value == pytest.approx(other, rel=1e-5)
    assert right is None or epsilon_of(case) == pytest.approx(right, rel=1e-4)
    assert note.value != pytest.approx(epsilon_of(case), rel=1e-3)


@pytest.mark.parametrize(("run", "q", "readings"), [
    ({**SNIPPET, "history": [[2.0, 0.3, 1]], "rate": 0.1, "epoch_steps": 10, "records": 1000, "divisor": 100},
     0.1, 1),
    ({"records": 900, "per_device_batch_size": 100, "devices": 1, "steps": 1, "noise_multiplier": 2,
      "sampling": "poisson"}, 1 / 9, 2),
])  # fmt: skip
def test_batches_drawn_by_coins_of_their_own_are_told_with_both_numbers(
    written: Written, run: dict[str, Any], q: float, readings: int
) -> None:
    """A record is in J of 3 batches, J binomial: one step at rates q, against the integral of that mixture."""
    case = case_of(written("run.json", run), accumulation="3", delta="1e-2")
    note, *others = (note for note in case.note_data if isinstance(note, OtherReading))
    assert len(others) == readings - 1
    assert all(other.value < note.value for other in others)  # the records of one device as the batch
    grid = [k / 1000.0 for k in range(-12_000, 16_000)]

    def truth(weights: list[float], epsilon: float) -> float:
        removed = added = 0.0
        for y in grid:
            density = math.exp(-y * y / 8.0) / math.sqrt(8.0 * math.pi) / 1000.0
            ratio = sum(w * math.exp((2.0 * j * y - j * j) / 8.0) for j, w in enumerate(weights))
            removed += density * max(0.0, ratio - math.exp(epsilon))
            added += density * max(0.0, 1.0 - math.exp(epsilon) * ratio)
        return max(removed, added)

    delta = 1e-2 * (1.0 + 1e-6)  # the sum over the grid is off by 1e-7
    of_each, of_all = [math.comb(3, j) * q**j * (1.0 - q) ** (3 - j) for j in range(4)], [1.0 - 3.0 * q, 3.0 * q]
    assert truth(of_each, epsilon_of(case)) <= delta <= truth(of_each, epsilon_of(case) - 1e-3)
    assert truth(of_all, note.value) <= delta <= truth(of_all, note.value - 1e-3)
    assert epsilon_of(case) > note.value


def test_each_accumulated_batch_of_keras_has_noise_of_its_own(written: Written) -> None:
    config = {**KERAS["config"], "gradient_accumulation_steps": 4}  # type: ignore[dict-item]
    case = case_of(written("run.json", {**KERAS, "config": config, "epochs": 1}), sampling="shuffle")
    assert case.best is not None
    assert case.best.mu == pytest.approx(1.0 / 2.2, rel=1e-12)
    other = next(n for n in case.note_data if isinstance(n, OtherReading) and "accumulated" in n.reading)
    plain = case_of(written("run.json", {**KERAS, "epochs": 1}), sampling="shuffle")
    assert other.value == pytest.approx(epsilon_of(plain), rel=1e-9)


def test_what_is_refused_is_told_with_both_numbers(written: Written) -> None:
    """2.1597, 2.2303 and 10.186 are of another program."""
    adaptive = {**SNIPPET, "history": [[1.1, 0.01, 2000]], "rate": 0.01, "epoch_steps": 100, "unclipped_num_std": 5}
    with pytest.raises(NotApplicable, match=r"epsilon 2\.2303 instead of 2\.1597"):
        case_of(written("run.json", adaptive))
    with pytest.raises(NotApplicable, match=r"about 10\.1[89]\d* or more; with separate seeds it would be 2\.16"):
        case_of(written("run.json", {**POISSON, "same_seed": True, "devices": 2}))


def test_phases_are_one_run_with_a_schedule_which_recipes_and_cards_keep(written: Written, tmp_path: Path) -> None:
    history = written("h.json", [[1.5, 0.01, 1000], [0.9, 0.01, 1000]])
    case, recipe = accounted([history], {"delta": "1e-5", "sampling": "poisson"})
    assert epsilon_of(case) == pytest.approx(2.505995, rel=1e-6)  # of two programs
    below = tmp_path / "below" / "kept.yaml"
    below.parent.mkdir()
    below.write_text(recipe, encoding="utf-8")
    assert not dpcalc.check(str(below)).cases[0].failed
    assert not accounted([str(below), history], {"sampling": "poisson"})[0].failed
    card = dpcalc.dp_sgd(schedule="steps=1000 noise_multiplier=1.5; steps=1000 noise_multiplier=0.9", sample_rate=0.01,
                         sampling="poisson", delta=1e-5).card()  # fmt: skip
    assert card["cases"][0]["asked"]["given"]["schedule"].startswith("steps=1000")
    assert dpcalc.verify(card, certify=False).passed


def test_skipped_batches_are_paid_for_by_delta(written: Written) -> None:
    plain = epsilon_of(case_of(written("run.json", {**DDP, "sampler": "UniformWithReplacementSampler"})))
    case = case_of(written("run.json", DDP), devices="8")
    assert case.best is not None
    assert plain <= epsilon_of(case) <= plain * (1.0 + 1e-5)
    assert case.best.delta == 1e-5
    few = case_of(written("run.json", {**DDP, "records": 20000}), devices="8")
    log_skips = math.log(2000 * 8) + (20000 // 8 - 1) * math.log1p(-0.01)
    added = (1.0 + math.exp(epsilon_of(few))) * math.exp(log_skips)
    assert 1e-8 < added < 1e-5
    kept = dpcalc.dp_sgd(sample_rate=0.01, steps=2000, noise_multiplier=1.1, sampling="poisson", adjacency="zero-out",
                         epsilon=epsilon_of(few))  # fmt: skip
    assert kept.cases[0].best is not None
    assert kept.cases[0].best.value + added <= 1e-5
    with pytest.raises(NotApplicable, match="too often"):
        case_of(written("run.json", {**DDP, "records": 15000}), devices="8")


@pytest.mark.campaign
def test_a_run_with_skipped_batches_has_a_card_and_a_recipe(written: Written, tmp_path: Path) -> None:
    written("run.json", {**DDP, "records": 20000})
    done = _command("run.json", "--devices", "8", "-d", "1e-5", "-o", "kept.yaml", "--report", "card=card.json",
                    "--json", folder=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["cases"][0]["results"][0]["epsilon"]
    [kept] = dpcalc.check(str(tmp_path / "kept.yaml")).cases
    assert not kept.failed
    assert epsilon_of(kept) == pytest.approx(found, rel=1e-9)
    card = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert dpcalc.verify(card, certify=False).passed
    assert '"skipped-steps"' in json.dumps(card)


@pytest.mark.parametrize(
    ("run", "words", "kept"),
    [
        ({}, "as planned", True),
        ({"history": [[2.0, 0.5, 80]]}, "20 steps more", False),
        ({"history": [[2.0, 0.5, 40]]}, "stopped early", True),
        ({"history": [[1.9, 0.5, 60]]}, "noise multiplier: planned 2, ran 1.9", False),
        ({"history": [[2.0, 0.5, 60], [2.0, 0.5, 60]]}, "60 steps more", False),
        ({"sampler": "shuffle"}, "sampling: planned poisson, ran shuffle", False),
    ],
)
def test_a_run_against_its_plan(written: Written, run: dict[str, Any], words: str, kept: bool) -> None:
    plan = written("plan.yaml", accounted([written("old.json", SNIPPET)], {"delta": "1e-4"})[1])
    case, _ = accounted([plan, written("run.json", {**SNIPPET, **run})], {})
    assert any(words in note.says for note in case.note_data if isinstance(note, RunRemark))
    assert case.failed is not kept


def test_cut_batches_of_groups_are_those_of_one_group(written: Written) -> None:
    """As JAX-Privacy's truncated_amplified_bandmf_event: records // bands in a group, and its rounds alone."""
    plan = {"iterations": 100, "expected_participations": 2, "strategy": [1, 0.5, 0.25], "noise_multiplier": 1.2,
            "truncated_batch_size": 80, "num_examples": 3001}  # fmt: skip
    found = epsilon_of(case_of(written("plan.json", plan)))
    one = dpcalc.dp_sgd(records=1000, sample_rate=0.06, steps=34, noise_multiplier=1.2, sampling="poisson",
                        max_batch_size=80, adjacency="zero-out", delta=1e-5)  # fmt: skip
    assert one.epsilon is not None
    assert one.epsilon <= found <= one.epsilon * (1.0 + 1e-9)


def test_phases_of_cut_batches_are_never_merged() -> None:
    """A larger rate may hide more there; of other batches 1200 phases are written as 1000 at most."""
    phases = tuple(Phase(1.0, 0.5 + k / 10**4, 1) for k in range(1200))
    for shape in ({}, {"records": 3, "max_batch_size": 1}):
        run = Described(
            "run.json", "a history", phases, Sampling.POISSON, Adjacency.REPLACE_ONE, 1, shape, (1e-5, -11.5), None,
            (), (), {}, (),
        )  # fmt: skip
        assert (tuple(composed(run)) == phases) is bool(shape)


def test_a_recipe_is_read_with_all_of_its_phases(written: Written) -> None:
    phases = "; ".join(f"steps=1 noise_multiplier={8 + k}" for k in range(40))
    given = f"adjacency: remove, schedule: {phases!r}, sample_rate: 0.01, sampling: poisson, delta: 1e-5"
    case = f"{{command: dp-sgd, {given}}}"
    run = read_plan(written("plan.yaml", f"dpcalc: recipe/1\ncases:\n  a: {case}\n"))
    assert [phase.noise_multiplier for phase in run.phases] == [8.0 + k for k in range(40)]


@pytest.mark.campaign
def test_phases_that_all_differ_are_composed_and_kept(written: Written) -> None:
    history = [[8.0 + k / 1000, 0.01, 1] for k in range(240)]
    case, recipe = accounted([written("h.json", history)], {"delta": "1e-5", "sampling": "poisson"})
    least, most = (
        epsilon_of(case_of(written("r.json", [[z, 0.01, 240]]), sampling="poisson")) for z in (8.24, 8.0)
    )  # fmt: skip
    assert least <= epsilon_of(case) <= most
    assert recipe.count("steps=") == 240


def test_a_flag_beside_a_plan_is_about_the_run(written: Written) -> None:
    plan = written("plan.yaml", "sampling: poisson\nsample_rate: 0.5\nsteps: 60\nnoise_multiplier: 2\ndelta: 1e-4")
    case, _ = accounted([plan, written("run.json", {**SNIPPET, "sampler": "BatchSampler"})], {"sampling": "shuffle"})
    assert case.failed


def test_a_plan_is_one_case_and_of_the_same_question(written: Written) -> None:
    body = "dpcalc: ledger/1\nadjacency: add-remove\nbudget: {delta: 1e-6}\nentries:\n  a: {mu: 1}\n"
    with pytest.raises(SpecError, match="not a Poisson run"):
        accounted([written("plan.yaml", body), written("run.json", SNIPPET)], {})
    config = "sample_rate: 0.5\nsteps: 60\nnoise_multiplier: 2\nsampling: poisson\ndelta: 1e-6"
    run = written("run.json", {**SNIPPET, "target_delta": 1e-5, "max_records_per_user": 2})
    with pytest.raises(SpecError, match="group size of the plan"):
        accounted([written("plan.yaml", config), run], {})


def _command(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    run: Sequence[str] = [sys.executable, "-m", "dpcalc", "account", *words]
    return subprocess.run(run, cwd=folder, env={"PYTHONPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True,
                          check=False, stdin=subprocess.DEVNULL)  # fmt: skip


def test_the_command_asks_writes_a_recipe_and_gates(written: Written, tmp_path: Path) -> None:
    written("run.json", SNIPPET)
    asked = _command("run.json", folder=tmp_path)
    assert asked.returncode == 2
    assert "--delta" in asked.stderr
    done = _command("run.json", "-d", "1e-4", "-o", "kept.yaml", "--json", "--assert", "epsilon<=9", folder=tmp_path)
    assert done.returncode == 1
    case = json.loads(done.stdout)["cases"][0]
    assert {note["kind"] for note in case["note_data"]} >= {"run_read", "run_remark"}
    report = dpcalc.check(str(tmp_path / "kept.yaml"))
    assert report.failed == 0
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04")
    refused = _command("model.pt", folder=tmp_path)
    assert refused.returncode == 2
    assert "engine.accountant.history" in refused.stderr
