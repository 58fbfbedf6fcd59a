"""Exports of a card: an entry for the registry of deployments, and answers to the questions of NIST SP 800-226.

The texts are in ``data/registry.toml``; gaps for facts that dpcalc does not know are marked there.
"""

from __future__ import annotations

import math
import tomllib
from typing import Any

from dpcalc.cards.fields import Card, Case
from dpcalc.errors import SpecError
from dpcalc.inert import printable
from dpcalc.model.quantities import Quantity
from dpcalc.references import read
from dpcalc.render.numbers import equation

_VARIANTS = {
    Quantity.PURE: "Pure DP", Quantity.RHO: "Zero-concentrated DP", Quantity.RDP: "Renyi DP", Quantity.MU: "Custom",
}  # fmt: skip
"""The registry's names of definitions other than (epsilon, delta)."""
_MODELS = {"central": "Central", "local": "Local"}
_OPEN = "To be answered by who publishes the release."


def exported(card: Card, file: str) -> str:
    """Return the registry entry if the file name ends in yaml, else the answers.

    Raises:
        SpecError: the card is of several runs.
    """
    return registry_entry(card) if file.lower().endswith((".yaml", ".yml")) else answers(card)


def registry_entry(card: Card) -> str:
    """Return the entry of the registry of deployments, as YAML that conforms to its schema.

    Raises:
        SpecError: the card is of several runs.
    """
    import yaml

    case = _only_case(card)
    entry: dict[str, Any] = _filled(_texts()["entry"], _said(card, case))
    entry["deployment"]["privacy_loss"]["privacy_parameters"] = _parameters(card, case)
    head = "# Written by dpcalc: replace whatever says TO FILL IN, and the date.\n"
    return head + str(yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=math.inf))


def answers(card: Card) -> str:
    """Return the questions of SP 800-226 with the answers that follow from the card, as Markdown.

    Raises:
        SpecError: the card is of several runs.
    """
    said = _said(card, _only_case(card))
    lines = ["# Questions of NIST SP 800-226", ""]
    for question in _texts()["questions"]:
        answer = _filled(question["answer"], said) or _OPEN
        lines += [f"## {question['asks']}", "", answer, "", f"(SP 800-226, {question['section']})", ""]
    return "\n".join(lines)


def _texts() -> dict[str, Any]:
    return tomllib.loads(read("registry.toml"))


def _only_case(card: Card) -> Case:
    """Return the main case of a card; further cases must be candidates of tuning."""
    first, *others = card["cases"]
    if any(not str(case["name"]).startswith("one run of candidate") for case in others):
        raise SpecError(
            f"the card is of {len(card['cases'])} runs, but an entry describes one", "make a card of one run"
        )
    return first


def _parameters(card: Card, case: Case) -> dict[str, float | str]:
    """Return epsilon and delta, those of the released model if there is one, or the registry's other parameters."""
    best, model = case["guarantee"]["numbers"][0], card["model"]
    if model is not None:
        return {"epsilon": model["epsilon"], "delta": model["delta"]}
    if best["quantity"] == Quantity.RHO:
        return {"rho": best["value"]}
    known: dict[str, float | str] = {name: best[name] for name in ("epsilon", "delta") if best[name] is not None}
    if known.get("delta") is None and best["log_delta"] is not None:
        known["delta"] = f"e^({best['log_delta']})"  # too small for a double
    return known


def _variant(case: Case) -> str:
    best = case["guarantee"]["numbers"][0]
    usual = "Approximate DP" if best["delta"] or best["log_delta"] is not None else "Pure DP"
    return usual if best["epsilon"] is not None else _VARIANTS.get(best["quantity"], "Custom")


def _filled(texts: Any, said: dict[str, str]) -> Any:
    """Return texts with the names in braces replaced by values of the card."""
    if isinstance(texts, dict):
        return {name: _filled(text, said) for name, text in texts.items()}
    if isinstance(texts, list):
        return [_filled(text, said) for text in texts]
    return " ".join(texts.format(**said).split()) if isinstance(texts, str) else texts


def _said(card: Card, case: Case) -> dict[str, str]:
    """Return the values of a card that the texts quote, as printable lines."""
    mechanism, guarantee = case["mechanism"], case["guarantee"]
    groups = [
        equation(n, v) for group in ("sampling", "clipping", "noise", "steps") for n, v in mechanism[group].items()
    ]
    given = {name: field["value"] for name, field in case["inputs"].items() if field["source"] != "derived"}
    texts = {
        "released": case["released"],
        "variant": _variant(case),
        "inputs": ", ".join(equation(name, value) for name, value in given.items()),
        "unit": "one record" if case["unit"]["records"] == 1 else f"any {case['unit']['records']} records together",
        "neighbours": case["unit"]["neighbours"],
        "neighbouring": case["unit"]["in_words"],
        "headline": ". ".join(guarantee["headline"]),
        "statement": guarantee["statement"],
        "meaning": guarantee["meaning"],
        "model": _MODELS.get(case["trust"]["model"], "Varies"),
        "trust": case["trust"]["in_words"],
        "theorems": "; ".join(f"{one['title']} ({one['reference']})" for one in case["theorems"]),
        "not_covered": "; ".join(case["not_covered"]),
        "mechanism": ", ".join([f"{mechanism['algorithm']}: {mechanism['order']}", *groups]),
        "assumptions": " ".join(f"{one['by'].capitalize()}: {one['text']}." for one in case["assumptions"]),
        "dpcalc": card["dpcalc"],
        "sha256": card["sha256"],
    }
    return {name: printable(text) for name, text in texts.items()}
