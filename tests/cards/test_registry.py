"""What a card exports has the fields of the registry's schema, and the numbers of the card."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

import dpcalc
from dpcalc.cards.card import card_of
from dpcalc.cards.registry import answers, registry_entry
from dpcalc.cli.main import cli
from dpcalc.errors import SpecError

FIELDS: dict[str, tuple[str, ...]] = {
    "basic": ("name", "data_curators", "intended_use", "data_product_type", "data_product_region", "description",
              "publication_date", "data_product_sector"),
    "dp_variant": ("variant_name", "data_domain", "unprotected_quantities"),
    "privacy_loss": ("privacy_unit", "privacy_unit_details", "privacy_parameters", "privacy_parameters_details"),
    "deployment_model": ("model_name", "model_name_details", "actors", "release_type", "release_type_details",
                         "data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    "accounting": ("post_processing", "composition"),
    "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    "administrative": ("sources", "notes", "registry_authors"),
}  # fmt: skip
"""The fields that the registry knows (schemas/deployments-schema.yaml of July 2026): it refuses others."""
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")
RUN: dict[str, Any] = {"records": 1000, "batch_size": 100, "epochs": 2, "noise_multiplier": 2, "sampling": "poisson"}
REPORTS = {
    "sgd": lambda: dpcalc.dp_sgd(**RUN, adjacency="zero-out", delta=1e-5),
    "group": lambda: dpcalc.dp_sgd(**RUN, adjacency="zero-out", group_size=3, delta=1e-5),
    "solved": lambda: dpcalc.dp_sgd(**{**RUN, "noise_multiplier": None}, epsilon=1, delta=1e-5),
    "ledger": lambda: dpcalc.ledger({"one": {"mu": 0.5, "times": 3}, "two": {"epsilon": 0.3}}, delta=1e-7),
    "tiny": lambda: dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta="1e-5000"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", REPORTS)
def test_an_entry_has_the_fields_of_the_registry(name: str) -> None:
    report = REPORTS[name]()
    entry = yaml.safe_load(registry_entry(card_of(report)))
    assert set(entry) == {"url_slug", "status", "tier", "deployment"}
    assert (entry["status"], entry["tier"]) == ("Draft", 3)
    deployment = entry["deployment"]
    assert set(deployment) <= set(FIELDS)
    for section, fields in deployment.items():
        assert set(fields) <= set(FIELDS[section])
        lists = ("data_curators", "registry_authors")
        for field, value in fields.items():
            kind = list if field in lists else dict if field == "privacy_parameters" else str
            assert isinstance(value, kind), field
    assert deployment["basic"]["data_product_type"] == "Machine learning model"
    assert deployment["dp_variant"]["variant_name"] in VARIANTS
    assert deployment["deployment_model"]["model_name"] in ("Central", "Local", "Varies")
    best = report.cases[0].best
    assert best is not None
    parameters = deployment["privacy_loss"]["privacy_parameters"]
    assert parameters["epsilon"] == best.epsilon
    assert parameters["delta"] == (best.delta if best.delta else f"e^({best.log_delta})")
    assert "{" not in json.dumps(list(_texts(deployment)))


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        value = list(value.values())
    return [text for one in value for text in _texts(one)] if isinstance(value, list) else [value]


@pytest.mark.campaign
def test_a_group_is_named_as_the_unit() -> None:
    entry = yaml.safe_load(registry_entry(card_of(REPORTS["group"]())))
    assert entry["deployment"]["privacy_loss"]["privacy_unit"] == "any 3 records together"


def test_questions_are_answered_or_left_to_who_publishes() -> None:
    text = answers(card_of(REPORTS["sgd"]()))
    assert text.count("\n## ") == text.count("(SP 800-226, ") == 12
    assert text.count("To be answered by who publishes the release.") == 4
    assert "Approximate DP: epsilon <=" in text


def test_an_entry_is_of_one_run() -> None:
    report = dpcalc.dp_sgd(**{**RUN, "noise_multiplier": [2, 3]}, delta=1e-5)
    with pytest.raises(SpecError, match="of 2 runs"):
        registry_entry(card_of(report))


def test_a_card_is_exported_once_it_is_verified(tmp_path: Path) -> None:
    place, export = tmp_path / "card.json", tmp_path / "entry.yaml"
    card = card_of(dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5))
    place.write_text(json.dumps(card), encoding="utf-8")
    done = CliRunner().invoke(cli, ["verify", str(place), "--no-certify", "--export", str(export)])
    assert done.exit_code == 0, done.output
    assert yaml.safe_load(export.read_text(encoding="utf-8"))["deployment"]["administrative"]["notes"]
    export.unlink()
    card["cases"][0]["guarantee"]["numbers"][0]["epsilon"] = 1e-9  # type: ignore[index]
    place.write_text(json.dumps(card), encoding="utf-8")
    assert CliRunner().invoke(cli, ["verify", str(place), "--no-certify", "--export", str(export)]).exit_code == 1
    assert not export.exists()
