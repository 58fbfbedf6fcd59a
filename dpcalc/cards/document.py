"""From an answer to the fields of a card: pure functions of the case, without a clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.cards.hashes import hash_of
from dpcalc.model.algorithm import ALGORITHMS, Order
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.quantities import SUFFICIENT, Quantity
from dpcalc.model.source import Source
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.statement import claim
from dpcalc.render.words.meaning import meaning
from dpcalc.render.words.promise import promise
from dpcalc.render.words.sentences import headline, released
from dpcalc.report import Case, Result, strict_json
from dpcalc.theorems.record import all_bounds

SCHEMA = "dpcalc.card/1"

CHECKED, PROMISED, CARRIED_OUT = "checked", "promised", "carried out"
"""Who vouches for an assumption: dpcalc saw that it holds; the author of the card promises it; dpcalc train did it."""

_PRECISION = 6

_NEIGHBOURS = {
    "replace_one": "{unit} replaced by {others}",
    "null_record": "{unit} replaced by {null}",
    "add_remove": "{unit} added or removed",
    "add": "{unit} added",
    "remove": "{unit} removed",
    "by_shift": "the shifts between two chains of steps",
    "as_given": "whatever the guarantee that is known is about",
}

_DEFINITIONS: dict[str, str] = {
    Quantity.MU: "Gaussian differential privacy",
    Quantity.RDP: "Renyi differential privacy",
    Quantity.RHO: "zero-concentrated differential privacy",
    Quantity.PURE: "pure differential privacy",
    Quantity.ADVANTAGE: "a bound on the advantage of every attack",
}

_ORDERS: dict[Order, str] = {
    Order.FIXED: "passes in one fixed order",
    Order.ROTATION: "passes from a random start",
    Order.SHUFFLE: "passes, each in a fresh random order",
    Order.SHUFFLE_ONCE: "passes in one random order",
    Order.SAMPLE: "a fresh uniform batch without replacement in every step",
    Order.DRAW: "a uniformly drawn record in every step",
    Order.FULL: "all records in every step",
    Order.UNKNOWN: "not part of the description",
}

_GROUPS = {
    "sampling": ("sampling", "batch_size", "sample_rate", "last_batch", "permutation", "index", "window"),
    "clipping": ("clip", "lipschitz", "sensitivity", "feature_bound", "radius", "diameter"),
    "noise": ("noise", "noise_std", "noise_multiplier", "laplace_scale", "langevin_std", "c1", "c2", "decay_exponent"),
    "steps": ("records", "epochs", "steps", "step_size"),
}
"""The inputs that a reader looks for in one place."""

_DETAILS = ("holds", "noise_multiplier", "slack")
"""What a result says of its number."""

_REAL_NOISE = "what floating-point arithmetic and the random generator lose: the guarantee is for noise of real numbers"
_TUNING = "settings that were chosen by looking at the data, and models that were trained to choose them"
_OTHER_RELEASES = "anything else that is released about the same records"
_METRICS = "accuracy and other figures that are computed from the records without noise"


def case_of(asked: Mapping[str, Any], case: Case, *, name: str | None, trained: bool) -> dict[str, Any]:
    """Return what a card says of one case, JSON types only.

    Args:
        asked: what was asked, as a card has it.
        case: the answer, with a guarantee.
        name: of the case, where it has one.
        trained: whether dpcalc carried the run out as well.
    """
    best = case.best
    assert best is not None
    fields = {
        "name": name,
        "asked": asked,
        "inputs": _inputs(case),
        "unit": _unit(case, best),
        "trust": _trust(case),
        "released": released(case).partition(": ")[2],
        "mechanism": _mechanism(case, best),
        "guarantee": _guarantee(case, best),
        "risk": case.risk,
        "assumptions": _assumptions(case, trained=trained),
        "not_covered": _not_covered(case),
        "theorems": [_theorem(result) for result in _quoted(case)],
        "configuration_sha256": hash_of(asked),
    }
    strict: dict[str, Any] = strict_json(fields)
    return strict


def _inputs(case: Case) -> dict[str, Any]:
    """Return the inputs; a schedule is known by its hash, and where it was is nobody's business."""
    return {
        name: {"value": value, "source": _source(source)}
        for name, (value, source) in case.inputs.items()
        if name != "schedule"
    }


def _source(source: Source) -> str:
    return "given" if source.typed else "default" if source is Source.DEFAULT else "derived"


def _unit(case: Case, best: Result) -> dict[str, Any]:
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    unit = "one record" if size == 1 else f"any {size} records together"
    if best.forgetting:
        words_of = f"{unit} that was to be forgotten" if size == 1 else f"{unit} that were to be forgotten"
        return {"records": size, "neighbours": best.adjacency, "in_words": words_of}
    words = {"others": "another", "null": "a null record (zero gradient)"}
    if size > 1:
        words = {"others": "others", "null": "null records (zero gradient)"}
    return {
        "records": size,
        "neighbours": best.adjacency,
        "in_words": _NEIGHBOURS[best.adjacency].format(unit=unit, **words),
    }


def _trust(case: Case) -> dict[str, str]:
    algorithm = ALGORITHMS.get(case.algorithm)
    if algorithm is None:
        return {"model": "as given", "in_words": "that of the releases it is about"}
    if algorithm.local:
        return {"model": "local", "in_words": "each record is protected before it leaves its owner"}
    who = "whoever runs the training sees all records and is trusted; readers of the release are not"
    return {"model": "central", "in_words": who}


def _mechanism(case: Case, best: Result) -> dict[str, Any]:
    algorithm = ALGORITHMS.get(case.algorithm)
    known = {name: value for name, (value, _) in case.inputs.items()}
    if best.quantity in known or best.quantity in (name for names in _GROUPS.values() for name in names):
        known[best.quantity] = best.value  # what was solved for
    groups = {group: {n: known[n] for n in names if n in known} for group, names in _GROUPS.items()}
    order = _ORDERS[algorithm.order] if algorithm else _ORDERS[Order.UNKNOWN]
    if algorithm and algorithm.clipped:
        order = "a random batch in every step"
    return {
        "algorithm": case.algorithm,
        "order": order,
        **groups,
        "entries": case.ledger["entries"] if case.ledger else None,
    }


def _quoted(case: Case) -> list[Result]:
    """Return the results that are quoted: one, or one for each order of a Renyi divergence."""
    return [result for result in case.results if result.best]


def _guarantee(case: Case, best: Result) -> dict[str, Any]:
    lines = zip(_quoted(case), headline(case, Digits(_PRECISION)), strict=True)
    return {
        "headline": [_headline(result, line) for result, line in lines],
        "statement": promise(case),
        "meaning": meaning(case),
        "definition": _definition(best),
        "numbers": [_numbers(result) for result in _quoted(case)],
    }


def _headline(result: Result, line: str) -> str:
    """Return the line; where a parameter was solved for, what holds with it."""
    solved = result.quantity in PARAMETERS and result.quantity not in (Quantity.EPSILON, Quantity.DELTA)
    return claim(result, Digits(_PRECISION)) if solved else line


def _numbers(result: Result) -> dict[str, Any]:
    names = ("value", "epsilon", "delta", "log_delta", "mu", "order")
    details = result.details or {}
    return {
        "quantity": str(result.quantity),
        **{name: getattr(result, name) for name in names},
        "kind": str(result.kind),
        "details": {name: details[name] for name in _DETAILS if name in details},
    }


def _definition(best: Result) -> str:
    if best.forgetting:
        return "unlearning as Sekhari et al. 2021 define it, and no differential privacy of the records kept"
    if best.quantity in SUFFICIENT:
        return f"what is enough for a budget: {SUFFICIENT[best.quantity]}"
    return _DEFINITIONS.get(best.quantity, "(epsilon, delta)-differential privacy")


def _assumptions(case: Case, *, trained: bool) -> list[dict[str, str]]:
    """Return what the guarantee rests on, each once, and who vouches for it."""
    quoted = _quoted(case)
    theorems = [all_bounds()[result.bound] for result in quoted if result.bound in all_bounds()]
    found = [(each.text, CHECKED) for theorem in theorems for each in theorem.conditions]
    found.append(("what was run is what the inputs of this card say", CARRIED_OUT if trained else PROMISED))
    found += [(text, PROMISED) for result in quoted for text in result.assumes]
    found += [(each.text, PROMISED) for theorem in theorems for each in theorem.promises]
    return [{"text": text, "by": by} for text, by in dict.fromkeys(found)]


def _not_covered(case: Case) -> list[str]:
    if case.ledger:
        return [_OTHER_RELEASES + " and is no entry", _REAL_NOISE]
    if case.algorithm not in ALGORITHMS:
        return [_REAL_NOISE]
    return [_OTHER_RELEASES, _TUNING, _METRICS, _REAL_NOISE]


def _theorem(result: Result) -> dict[str, Any]:
    details: Mapping[str, Any] = result.details or {}
    return {
        "bound": result.bound,
        "title": result.title,
        "reference": result.reference,
        "conversion": result.conversion,
        "certified": details.get("certified"),
        "not_certified": details.get("not_certified"),
    }


def released_line(model: Mapping[str, Any]) -> str:
    """Return what a card says of its model, in a sentence."""
    epsilon, delta = (number(model[name], side=Side.ECHO) for name in ("epsilon", "delta"))
    return (
        f"The model as released, its numbers rounded, is ({epsilon}, {delta})-differentially private; what follows is "
        "of the run on real numbers, which leaves room for the rounding"
    )
