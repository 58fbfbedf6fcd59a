"""What a card says it was asked has one spelling, leads to no file, and nothing beside it passes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.cards.asked import hash_of, seal_of
from dpcalc.cards.card import card_of
from dpcalc.errors import SpecError

PASS: dict[str, Any] = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5}
LEDGER = {"one": {"mu": 0.5, "times": 3}, "two": {"epsilon": 0.3, "delta": 1e-7}}
SAMPLED = {"records": 1000, "batch_size": 100, "epochs": 2, "noise_multiplier": 2, "clip": 1, "sampling": "poisson"}


def altered(card: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    """Return the card with another value in its first case, and with hashes that fit."""
    card = copy.deepcopy(card)
    inside: Any = card["cases"][0]
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    card["cases"][0]["configuration_sha256"] = hash_of(card["cases"][0]["asked"])
    return {**card, "sha256": seal_of(card)}


def passes(card: dict[str, Any]) -> bool:
    try:
        return dpcalc.verify(card, certify=False).passed
    except SpecError:
        return False


def run() -> dict[str, Any]:
    return card_of(dpcalc.rdp(**PASS, noise_std=1, delta=1e-5))


def ledger() -> dict[str, Any]:
    return card_of(dpcalc.ledger(LEDGER, delta=1e-5))


@pytest.mark.parametrize(
    "given",
    [
        {"mu": 0.5, "description": "harmless"}, {"mu": 0.5, "times": 1}, {"mu": 0.5, "times": 30},
        {"mu": 0.5, "part": "a"}, {"mu": "0.5"}, {"mu": "1/2"}, {"mu": 0.5, "adjacency": "replace-one"},
    ],
)  # fmt: skip
def test_an_entry_has_nothing_that_is_not_part_of_it(given: dict[str, Any]) -> None:
    card = ledger()
    assert passes(card)
    assert not passes(altered(card, "asked", "ledger", "entries", 0, "given", value=given))


@pytest.mark.parametrize("spelled", ["1e-7", "10^-7", "10^-7.0"])
def test_a_delta_of_an_entry_has_one_spelling(spelled: str) -> None:
    given = {"epsilon": 0.3, "delta": spelled}
    assert not passes(altered(ledger(), "asked", "ledger", "entries", 1, "given", value=given))


def test_an_entry_without_a_command_reads_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(json.dumps({"r": SAMPLED}))
    card = card_of(dpcalc.ledger({"one": {"command": "dp-sgd", **SAMPLED}}, delta=1e-5))
    assert passes(card)
    entry = {**card["cases"][0]["asked"]["ledger"]["entries"][0], "command": ""}
    entry["given"] = {"command": "dp-sgd", "from": "run.json#/r"}
    with pytest.raises(SpecError, match="which a mechanism on a card cannot have"):
        dpcalc.verify(altered(card, "asked", "ledger", "entries", 0, value=entry))


def test_a_ledger_has_one_spelling() -> None:
    card = ledger()
    for name, value in (("kept", True), ("adjacency", "Replace-One")):
        assert not passes(altered(card, "asked", "ledger", name, value=value))


def test_the_mean_of_a_tuning_is_read_back() -> None:
    tuned = {"mu": 0.1, "tuning": {"distribution": "negative-binomial", "mean": 3, "shape": 0.5}}
    card = card_of(dpcalc.ledger({"best": tuned}, delta=1e-5))
    assert passes(card)
    mean = ("asked", "ledger", "entries", 0, "tuning", "mean")
    assert not passes(altered(card, *mean, value=2.5))


@pytest.mark.parametrize("name", ["ledger", "convert", "risk"])
def test_nothing_is_certified_of_what_has_no_definition(name: str) -> None:
    reports = {
        "ledger": lambda: dpcalc.ledger(LEDGER, delta=1e-5),
        "convert": lambda: dpcalc.convert(mu=1, delta=1e-5),
        "risk": lambda: dpcalc.risk(mu=1),
    }
    card = card_of(reports[name]())
    assert passes(card)
    assert not passes(altered(card, "asked", "certified", value=True))


def test_what_a_command_does_not_take_is_refused() -> None:
    entries = ledger()["cases"][0]["asked"]["ledger"]
    assert not passes(altered(run(), "asked", "ledger", value=entries))
    assert not passes(altered(ledger(), "asked", "given", value={"x": 1}))
    risk = {"fpr": [0.01], "prior": [], "baseline": []}
    assert not passes(altered(ledger(), "asked", "risk", value=risk))
    assert not passes(altered(ledger(), "asked", "orders", value=[2.0]))


@pytest.mark.parametrize("spelled", ["1e-6", " 1e-6", "1e-0006", "10^-6", 0.1])
def test_delta_has_one_spelling(spelled: Any) -> None:
    card = card_of(dpcalc.rdp(**PASS, noise_std=1, delta=1e-6))
    assert not passes(altered(card, "asked", "delta", value=spelled))


@pytest.mark.parametrize("delta", ["1e-5000", "3e-1234", "7.123456789123e-98765", "1e-700", "1e-310"])
def test_a_tiny_delta_is_read_back(delta: str) -> None:
    assert passes(card_of(dpcalc.convert(mu=1, delta=delta)))


def test_words_have_one_spelling() -> None:
    once: dict[str, Any] = {**SAMPLED, "epochs": 1}
    card = card_of(dpcalc.compare(algorithm="dp-sgd", **once, adjacency="Add_Remove", delta=1e-5))
    assert card["cases"][0]["asked"]["given"]["adjacency"] == "add-remove"
    assert passes(card)
    assert not passes(altered(card, "asked", "given", "adjacency", value="Add_Remove"))


def test_an_order_is_there_once() -> None:
    card = card_of(dpcalc.convert(rdp={2: 0.1, 8: 0.4}, delta=1e-5))
    assert passes(card)
    for points in ([[2.0, 50.0], [2.0, 0.1], [8.0, 0.4]], [[2, 0.1], [8.0, 0.4]]):
        assert not passes(altered(card, "asked", "given", "rdp", value=points))


@pytest.mark.parametrize("version", ["0.1.0 (audited)", "0.1.0\u200b", "", "1.0\n", "x"])
def test_a_version_is_one(version: str) -> None:
    card = {**run(), "dpcalc": version}
    with pytest.raises(SpecError, match="dpcalc"):
        dpcalc.verify({**card, "sha256": seal_of(card)})


@pytest.mark.parametrize(
    "targets", [{"advantage": 0.1}, {"tpr": 0.05, "fpr": [0.01]}, {"success": 0.6, "prior": [0.5]}]
)
def test_a_card_holds_what_an_attacker_may_do(targets: dict[str, Any]) -> None:
    report = dpcalc.compare(algorithm="noisy-gd", **PASS, steps=5, solve="noise_std", **targets)
    card = card_of(report)
    [held] = card["cases"][0]["asked"]["targets"]
    assert held["limit"] == next(iter(targets.values()))
    best = report.cases[0].best
    assert best is not None
    assert card["cases"][0]["guarantee"]["numbers"][0]["value"] == best.value
    assert dpcalc.verify(card).passed
    assert not passes(altered(card, "asked", "targets", 0, "limit", value=held["limit"] * 0.9))
    assert not passes(altered(card, "asked", "targets", value=[]))
    assert not passes(altered(card, "asked", "targets", 0, "name", value="reconstruction"))
