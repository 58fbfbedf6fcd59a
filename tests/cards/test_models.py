"""A card is of one model: that of another run is refused, though its hash is on the card."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cards.asked import hash_of_file, seal_of
from dpcalc.cards.card import card_text, refuse_untrained
from dpcalc.cli.main import main
from dpcalc.errors import SpecError

ROWS = (np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
BASE: dict[str, Any] = {"loss": "logistic", "radius": 1, "epsilon": 1, "delta": 1e-3, "feature_bound": 1}


def trained(path: Path, **more: Any) -> dpcalc.Report:
    return dpcalc.train(data=ROWS, output=str(path), **{**BASE, **more})


def forged(card: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the card with the hash of another model."""
    card = {**card, "model": {**card["model"], **hash_of_file(str(path))}}
    return {**card, "sha256": seal_of(card)}


OTHERS: dict[str, dict[str, Any]] = {
    "a larger epsilon": {"epsilon": 5},
    "a smaller epsilon": {"epsilon": 0.5},
    "a larger delta": {"delta": 1e-2},
    "a smaller delta": {"delta": 1e-4},
    "another loss": {"loss": "hinge"},
    "another radius": {"radius": 2},
    "other steps": {"algorithm": "noisy-gd", "steps": 3},
    "not private": {"seed": 3},
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_model_of_another_run_is_refused(name: str, tmp_path: Path) -> None:
    report = trained(tmp_path / "model.json")
    other = tmp_path / "other.json"
    trained(other, **OTHERS[name])
    card = dpcalc.card(report, model=tmp_path / "model.json")
    assert dpcalc.verify(card, model=tmp_path / "model.json", certify=False).passed
    found = dpcalc.verify(forged(card, other), model=other, certify=False)
    assert any(each.place.startswith("/model: ") for each in found.mismatches)
    with pytest.raises(SpecError, match="does not belong to the report"):
        dpcalc.card(report, model=other)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "private": lambda privacy: privacy.update(private=False),
    "nothing of privacy": lambda privacy: privacy.pop("private"),
    "epsilon": lambda privacy: privacy.update(epsilon=1.01),
    "a text": lambda privacy: privacy.update(epsilon="1"),
    "delta": lambda privacy: privacy.update(delta=1.01e-3, log_delta=float(np.log(1.01e-3))),
    "log_delta": lambda privacy: privacy.update(log_delta=-20.0),
    "bound": lambda privacy: privacy.update(bound="iteration.local"),
    "adjacency": lambda privacy: privacy.update(adjacency="add_remove"),
    "assumes": lambda privacy: privacy["assumes"].insert(0, "all is well"),
    "less assumed": lambda privacy: privacy["assumes"].clear(),
    "mu": lambda privacy: privacy["floating_point"].update(mu=0.1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_model_says_of_its_privacy_is_compared(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    card = dpcalc.card(trained(path, algorithm="noisy-gd", steps=5), model=path)
    document = json.loads(path.read_text())
    CHANGES[name](document["privacy"])
    path.write_text(json.dumps(document))
    assert not dpcalc.verify(forged(card, path), model=path, certify=False).passed


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "more",
    [
        {}, {"algorithm": "noisy-gd", "steps": 5}, {"algorithm": "noisy-sgd", "steps": 5, "batch_size": 2},
        {"algorithm": "pnsgd"}, {"algorithm": "stop"}, {"algorithm": "shuffled"}, {"epsilon": 5},
        {"epsilon": None, "noise_std": 2, "algorithm": "noisy-gd", "steps": 4},
        {"delta": None, "noise_std": 2, "algorithm": "noisy-gd", "steps": 4},
    ],
)  # fmt: skip
def test_every_model_is_that_of_its_card(more: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    given = {name: value for name, value in {**BASE, **more}.items() if value is not None}
    dpcalc.train(data=ROWS, output=str(path), **given)
    assert dpcalc.verify(tmp_path / "model.card.json", model=path, certify=False).mismatches == ()


def test_what_is_no_model_has_no_card(tmp_path: Path) -> None:
    report = trained(tmp_path / "model.json")
    (tmp_path / "a.yaml").write_text("entries: {}\n")
    with pytest.raises(SpecError, match="is not a model file"):
        dpcalc.card(report, model=tmp_path / "a.yaml")


def test_without_the_model_the_headline_says_what_was_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.json"
    trained(path)
    card = tmp_path / "model.card.json"
    heads = []
    for more in ([], ["--model", str(path)]):
        with pytest.raises(SystemExit) as stop:
            main(["verify", str(card), "--no-certify", *more])
        assert not stop.value.code
        heads.append(capsys.readouterr().out.splitlines()[0])
    assert heads[0].startswith("verified in part: ")
    assert "NOT CHECKED: the model" in heads[0]
    assert heads[1] == f"verified: {card}"
    assert dpcalc.verify(card, certify=False).unchecked
    assert not dpcalc.verify(card, model=path, certify=False).unchecked


def test_only_a_card_of_training_speaks_of_a_model() -> None:
    card = dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5).card()
    card["model"] = {"sha256": "0" * 64, "bytes": 1, "noise_source": "certified", "epsilon": 9.0, "delta": 1e-5}
    for each in card["cases"][0]["assumptions"]:
        if each["text"].startswith("what was run"):
            each["by"] = "carried out"
    card["sha256"] = seal_of(card)
    with pytest.raises(SpecError, match="dpcalc train has no such run"):
        dpcalc.verify(json.loads(card_text(card)), certify=False)


STRANGE: list[tuple[str, Any]] = [
    ("adjacency", "null-record"), ("model", "capped"), ("index", 1), ("lipschitz", 0.1), ("diameter", 0.1),
    ("group_size", 1), ("smoothness", 0.1),
]  # fmt: skip
SUMS: dict[str, Any] = {"loss": "squares", "label_bound": 1, "solver": "sums"}


@pytest.mark.parametrize("run", [BASE, {**BASE, **SUMS, "radius": None}])
def test_a_run_that_training_never_makes_was_not_carried_out(run: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    dpcalc.train(data=ROWS, output=str(path), **{name: value for name, value in run.items() if value is not None})
    card = json.loads((tmp_path / "model.card.json").read_text())
    refuse_untrained(card)
    given = card["cases"][0]["asked"]["given"]
    for name, value in (*STRANGE, ("step_size", 0.5) if "solver" in run else ("epoch_epsilon", 0.1)):
        card["cases"][0]["asked"]["given"] = {**given, name: value}
        with pytest.raises(SpecError, match="dpcalc train has no such run"):
            refuse_untrained(card)


def test_a_card_states_the_budget_of_the_model_as_released(tmp_path: Path) -> None:
    """Rounding costs some delta, which the run on real numbers leaves."""
    path = tmp_path / "model.json"
    report = trained(path, algorithm="pnsgd")
    best = report.cases[0].best
    card = dpcalc.card(report, model=path)
    assert best is not None
    assert (card["model"]["epsilon"], card["model"]["delta"]) == (best.epsilon, best.delta)
    [number] = card["cases"][0]["guarantee"]["numbers"]
    assert number["delta"] < best.delta
    stronger = {**card, "model": {**card["model"], "delta": number["delta"] * 0.99}}
    assert not dpcalc.verify({**stronger, "sha256": seal_of(stronger)}, certify=False).passed
