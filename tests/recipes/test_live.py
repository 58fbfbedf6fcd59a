"""A ledger for a training loop, and the callbacks of the examples with stubs of what they are for."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpcalc
from dpcalc.errors import SpecError

STEP = {"noise_multiplier": 1.0, "sample_rate": 0.01}
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "live_budget.py"


def ledger(folder: Path, **said: Any) -> dpcalc.Ledger:
    return dpcalc.Ledger(folder / "spent.json", **{"delta": 1e-5, **said})


def steps_in(folder: Path) -> int:
    return int(json.loads((folder / "spent.json").read_text())["entries"]["phase-1"]["steps"])


def test_it_counts_as_one_run_does_and_survives(tmp_path: Path) -> None:
    spent = ledger(tmp_path)
    assert spent.epsilon == 0.0
    spent.spend(60, **STEP)
    spent.spend(40, **STEP)
    whole = dpcalc.dp_sgd(steps=100, sampling="poisson", adjacency="add-remove", delta=1e-5, **STEP).cases[0].best
    assert spent.epsilon == pytest.approx(whole.value, rel=1e-5)
    before, again = spent.epsilon, ledger(tmp_path)
    assert again.epsilon == before
    again.spend(10, noise_multiplier=2.0, sample_rate=0.01)
    assert again.epsilon == spent.epsilon > before
    report = dpcalc.ledger(file=tmp_path / "spent.json", delta=1e-5)
    assert report.value == again.epsilon


def test_two_that_share_a_file_see_what_the_other_spent(tmp_path: Path) -> None:
    one, other = ledger(tmp_path), ledger(tmp_path)
    one.spend(5, **STEP)
    other.spend(7, **STEP)
    assert steps_in(tmp_path) == 12


@pytest.mark.campaign
def test_what_remains_is_the_most_that_fits(tmp_path: Path) -> None:
    spent = ledger(tmp_path)
    spent.spend(30, **STEP)
    left = spent.remaining(1.0, **STEP)
    assert left > 0
    assert spent.epsilon_after(left, **STEP) <= 1.0 < spent.epsilon_after(left + 1, **STEP)
    assert not spent.stop_before(1.0, steps=left, **STEP)
    assert spent.stop_before(1.0, steps=left + 1, **STEP)
    assert spent.remaining(0.001, **STEP) == 0


@pytest.mark.parametrize("said", [{"adjacency": "replace-one"}, {"delta": 2.0}, {"sampling": "none"}])
def test_another_ledger_is_refused(tmp_path: Path, said: dict[str, Any]) -> None:
    ledger(tmp_path).spend(1, **STEP)
    with pytest.raises(SpecError):
        ledger(tmp_path, **said)


def test_callbacks_charge_each_step_and_stop(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("live_budget", EXAMPLES)
    assert spec is not None
    assert spec.loader is not None
    examples = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    spent = ledger(tmp_path)
    budget = examples.Budget(spent, spent.epsilon_after(3, **STEP), **STEP)
    assert budget.left == 3
    seen: list[str] = []
    optimizer = SimpleNamespace(step_hook=lambda _: seen.append("own"))
    optimizer.attach_step_hook = lambda hook: setattr(optimizer, "step_hook", hook)
    examples.attach_to_opacus(optimizer, budget)
    optimizer.step_hook(optimizer)
    assert (seen, budget.left) == (["own"], 2)
    trainer, control = SimpleNamespace(should_stop=False), SimpleNamespace(should_training_stop=False)
    assert examples.LightningBudget(budget).on_train_batch_start(trainer, None, None, 0) is None
    callback = examples.TransformersBudget(budget)
    callback.on_step_begin(None, None, control)
    assert callback.on_step_end(None, None, control).should_training_stop
    assert examples.LightningBudget(budget).on_train_batch_start(trainer, None, None, 1) == -1
    assert trainer.should_stop
    with pytest.raises(RuntimeError):
        budget.charge()
    assert steps_in(tmp_path) == 3
