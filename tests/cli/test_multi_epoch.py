"""``multi-epoch`` as it is used: every ordering and release, every unknown, plain refusals."""

import math
from typing import Any

import pytest

import dpcalc
from dpcalc.engine.advice import improvements
from tests.cli.conftest import best

RUN = "-n 60000 --batch-size 240 -L 1 --smoothness 1 --eta 0.1"
SMALL = "-n 100 --batch-size 5 -L 1 --smoothness 1 --eta 0.1"
ORDERS = ("cyclic", "shuffle-once", "shuffled-epochs", "noisy-sgd")


def by_id(case: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {result["bound"]: result for result in case["results"]}


def test_how_the_records_are_ordered_is_spoken_of(ask_json: Any) -> None:
    found = {}
    for name in ORDERS:
        [case] = ask_json(f"multi-epoch --algorithm {name} {RUN} --epochs 20 --sigma 0.05 -d 1e-6")
        found[name] = best(case)["value"]
        orders = [note for note in case["note_data"] if note["kind"] == "other_order"]
        told = {note["options"]: note["value"] for note in orders}
    assert told == {}  # nothing is better than noisy-sgd
    [case] = ask_json(f"multi-epoch --algorithm cyclic {RUN} --epochs 20 --sigma 0.05 -d 1e-6")
    [note] = [note for note in case["note_data"] if note["kind"] == "other_order"]
    assert note["options"] == "--algorithm noisy-sgd"
    assert 1.0 <= note["value"] / found["noisy-sgd"] <= 1.00001
    assert found["noisy-sgd"] < found["shuffled-epochs"] < found["shuffle-once"] < found["cyclic"]


@pytest.mark.parametrize("name", ["noisy-gd", "noisy-sgd", "shuffle-once", "rotation-epochs", "shuffled-epochs"])
def test_a_record_without_a_position_is_any_record(ask: Any, ask_json: Any, name: str) -> None:
    run = f"multi-epoch --algorithm {name} -n 100 -L 1 --smoothness 1 --eta 0.1 --epochs 2 --sigma 2 -d 1e-3"
    [case], [other] = ask_json(f"{run} --index 4"), ask_json(run)
    assert best(case) == best(other)
    assert "index" not in case["inputs"]
    assert f"{name} has no index: it was left out" in case["notes"]
    assert "values a record has" in " ".join(ask(f"{run} --index 4").split())


def test_a_record_in_a_fixed_order_has_a_position(ask: Any) -> None:
    run = "multi-epoch --algorithm cyclic -n 100 -L 1 --smoothness 1 --eta 0.1 --epochs 2 --sigma 2 -d 1e-3"
    assert "values the record at position 4 has" in " ".join(ask(f"{run} --index 4").split())


@pytest.mark.parametrize("batches", ["", "--batch-size 7", "--batch-size 7 --last-batch drop", "--batch-size 50"])
def test_one_pass_from_a_random_record_on_is_a_rotation(ask_json: Any, batches: str) -> None:
    run = f"-n 50 {batches} -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-5"
    [several] = ask_json(f"multi-epoch --algorithm rotation-epochs --epochs 1 {run}")
    [one] = ask_json(f"shuffle --algorithm rotation {run}")
    mixture = by_id(one)["shuffle.mixture"]["value"]
    assert best(several)["value"] == pytest.approx(mixture, rel=1e-6)


def test_rotations_are_no_secret_orders(ask_json: Any) -> None:
    run = "multi-epoch --algorithm rotation-epochs --epochs 3 -n 20 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-5"
    [public], [secret] = ask_json(run), ask_json(f"{run} --permutation secret")
    assert best(public)["value"] == best(secret)["value"]
    [once] = ask_json(run.replace("rotation-epochs", "shuffle-once"))
    assert best(public)["value"] == by_id(once)["shuffled_epochs.once"]["value"]


def test_released_rotations_cost_more_than_hidden_ones(ask_json: Any) -> None:
    run = "multi-epoch --algorithm rotation-epochs --epochs 3 -n 20 -L 1 --smoothness 1 --eta 0.5 --sigma 2 -d 1e-5"
    [hidden], [released] = ask_json(run), ask_json(f"{run} --release epoch")
    assert best(hidden)["value"] < best(released)["value"]


def test_hidden_saturates_and_composition_grows(ask_json: Any) -> None:
    run = "multi-epoch --algorithm noisy-gd -n 100 -L 1 --smoothness 1 --strong-convexity 0.2 --eta 0.5 --sigma 0.2"
    cases = ask_json(f"{run} --steps 10,1000,100000 -d 1e-6")
    hidden = [by_id(case)["noisy_gd.contraction"]["mu"] for case in cases]
    composed = [by_id(case)["noisy_gd.composition"]["mu"] for case in cases]
    assert hidden[2] == pytest.approx(hidden[1], rel=1e-9)
    assert composed[2] == pytest.approx(10 * composed[1], rel=1e-12)
    assert [best(case)["bound"] for case in cases] == ["noisy_gd.contraction"] * 3


@pytest.mark.campaign
def test_releasing_every_pass_costs_and_a_reused_order_costs_more(ask_json: Any) -> None:
    found = {}
    for name in ("cyclic", "shuffle-once", "shuffled-epochs"):
        for release in ("last", "epoch"):
            [case] = ask_json(f"multi-epoch --algorithm {name} --release {release} {RUN} --epochs 5 --sigma 0.05 -e 1")
            found[name, release] = best(case)["log_delta"]
        assert found[name, "last"] < found[name, "epoch"]
    assert found["shuffled-epochs", "epoch"] < found["shuffle-once", "epoch"] < found["cyclic", "epoch"]


def test_one_epsilon_and_delta_again_and_again(ask_json: Any) -> None:
    run = "multi-epoch --algorithm repeated --epoch-epsilon 0.1"
    [case] = ask_json(f"{run} --epoch-delta 1e-8 --epochs 1e6 -d 1e-2")
    assert best(case)["value"] == pytest.approx(5383.24438885, rel=1e-11)
    assert best(case)["kind"] == "exact"
    [case] = ask_json(f"{run} --epochs 100 -d 1e-6")
    assert best(case)["value"] == pytest.approx(4.77456758811, rel=1e-11)
    assert by_id(case)["released.pure"]["value"] > best(case)["value"]
    [case] = ask_json(f"{run} --epoch-delta 1e-8 --epochs 1e9 -e 5e6")
    assert 0.9 < best(case)["value"] < 1.0


def test_units_of_langevin_dynamics(ask_json: Any) -> None:
    given = "-n 100 --steps 50 -L 1 --smoothness 1 --strong-convexity 0.2 --eta 0.5 -d 1e-6"
    run = f"multi-epoch --algorithm noisy-gd {given}"
    [inside] = ask_json(f"{run} --sigma 0.2")
    [outside] = ask_json(f"{run} --langevin-std 0.1")
    assert best(outside)["value"] == pytest.approx(best(inside)["value"], rel=1e-12)


def test_numerical_errors_are_part_of_the_answer(ask_json: Any) -> None:
    [case] = ask_json(f"multi-epoch --algorithm noisy-sgd {RUN} --epochs 20 --sigma 0.05 -e 0.1")
    row = by_id(case)["noisy_sgd.composition"]
    assert 0.0 < row["rounding"] < 1e-4
    assert 0.0 < row["lattice"] < 1e-2


def test_a_secret_order_hides_more(ask_json: Any) -> None:
    run = "multi-epoch -n 20 --epochs 2 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --algorithm shuffle-once"
    [public], [secret] = ask_json(run), ask_json(f"{run} --permutation secret")
    assert best(secret)["value"] < best(public)["value"]
    assert best(secret)["bound"] == "shuffled_epochs.once_secret"
    assert by_id(public)["shuffled_epochs.once_secret"]["kind"] == "conditional"


@pytest.mark.campaign
def test_a_secret_order(ask_json: Any) -> None:
    run = "multi-epoch -n 100000 --epochs 2 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"
    [public] = ask_json(f"{run} --algorithm shuffle-once")
    [secret] = ask_json(f"{run} --algorithm shuffle-once --permutation secret")
    assert best(public)["value"] == pytest.approx(1.3154, abs=2e-3)
    assert best(secret)["value"] == pytest.approx(0.0245, abs=3e-4)
    assert by_id(public)["shuffled_epochs.once_secret"]["kind"] == "conditional"


def test_composed_deltas_may_be_very_small(ask_json: Any) -> None:
    [case] = ask_json("multi-epoch --algorithm noisy-sgd -n 1000 --batch-size 10 --steps 100 -L 1 --sigma 1 -e 3")
    assert -1000.0 < best(case)["log_delta"] < -300.0
    assert math.exp(best(case)["log_delta"]) == pytest.approx(best(case)["value"])


def test_notes_ask_only_bounds_that_may_be_best(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note must not cost more than the question."""
    asked: list[str] = []
    right = improvements.best_guarantee

    def counted(run: Any, question: Any, bounds: Any, **changes: Any) -> Any:
        asked.extend(bound.id for bound in bounds)
        return right(run, question, bounds, **changes)

    monkeypatch.setattr(improvements, "best_guarantee", counted)
    given = {"algorithm": "shuffled-epochs", "release": "epoch", "records": 60000, "batch_size": 256, "epochs": 3,
             "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "noise_std": 0.05, "delta": 1e-6}  # fmt: skip
    case = dpcalc.multi_epoch(**given).cases[0]
    assert len(case.notes) == 2
    assert {"noisy_sgd.composition", "released.shuffled_epochs"} <= set(asked)
    assert not {"released.shuffled_epochs_point", "released.shuffled_epochs_rdp"} & set(asked)
    assert {"released.shuffled_epochs_point", "released.shuffled_epochs_rdp"} <= {r.bound for r in case.results}
