"""From an answer to the fields of a card: pure functions of the case, without a clock.

Validation of a document against a JSON schema, for the keywords that the schema of cards uses.

Reading an untrusted card: its size, depth, numbers and fields are checked before anything is computed.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dpcalc.cards import fields
from dpcalc.cards.asked import hash_of
from dpcalc.errors import SpecError
from dpcalc.files import Fields
from dpcalc.files.place import Place
from dpcalc.files.reading import DOCUMENT_DEPTH, DOCUMENT_VALUES, read_document
from dpcalc.files.typed import Garbled, loads
from dpcalc.inert import printable, strict_json
from dpcalc.model.algorithm import ALGORITHMS, Order, Source
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.quantities import SUFFICIENT, Quantity
from dpcalc.references import read
from dpcalc.render.models import claim
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.words.risk import meaning
from dpcalc.render.words.sentences import headline, promise, released
from dpcalc.report import Case, Result
from dpcalc.theorems.record import all_bounds

SCHEMA = "dpcalc.card/1"

CHECKED, PROMISED, CARRIED_OUT = "checked", "promised", "carried out"
"""Who vouches for an assumption: dpcalc saw that it holds; the author of the card promises it; dpcalc train did it."""

_PRECISION = 6

_NEIGHBOURS = {
    "replace-one": "{unit} replaced by {others}",
    "null-record": "{unit} replaced by {null}",
    "add-remove": "{unit} added or removed",
    "add": "{unit} added",
    "remove": "{unit} removed",
    "by-shift": "the shifts between two chains of steps",
    "as-given": "that of the known guarantee",
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
"""The inputs with a fixed place on a card."""

_DETAILS = ("holds", "noise_multiplier", "slack")
"""The fields of a result about its number."""

_REAL_NOISE = "losses from floating-point arithmetic and the random generator: the guarantee assumes exact real noise"
_TUNING = "settings that were chosen by looking at the data, and models that were trained to choose them"
_OTHER_RELEASES = "anything else that is released about the same records"
_METRICS = "accuracy and other figures that are computed from the records without noise"


def case_of(asked: fields.Asked, case: Case, *, name: str | None, trained: bool) -> fields.Case:
    """Return the fields of one case on a card, as JSON types.

    Args:
        asked: the question, in the form of a card.
        case: the answer, with a guarantee.
        name: the name of the case, if it has one.
        trained: whether dpcalc also carried the run out.
    """
    best = case.best
    assert best is not None
    # A schedule is identified by its hash; its path stays private.
    inputs = ((name, *given) for name, given in case.inputs.items() if name != "schedule")
    whole: fields.Case = {
        "name": name,
        "asked": asked,
        "inputs": {name: {"value": value, "source": _source(source)} for name, value, source in inputs},
        "unit": _unit(case, best),
        "trust": _trust(case),
        "released": released(case).partition(": ")[2],
        "mechanism": _mechanism(case, best),
        "guarantee": _guarantee(case, best),
        "risk": None if case.risk is None else dict(case.risk),
        "assumptions": _assumptions(case, trained=trained),
        "not_covered": _not_covered(case),
        "theorems": [_theorem(result) for result in case.answers],
        "configuration_sha256": hash_of(asked),
    }
    strict: fields.Case = strict_json(whole)
    return strict


def _source(source: Source) -> str:
    return "given" if source.typed else "default" if source is Source.DEFAULT else "derived"


def _unit(case: Case, best: Result) -> dict[str, Any]:
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    unit = "one record" if size == 1 else f"any {size} records together"
    if best.forgetting:
        words_of = f"{unit} that was to be forgotten" if size == 1 else f"{unit} that were to be forgotten"
        return {"records": size, "neighbours": best.written_adjacency, "in_words": words_of}
    words = {"others": "another", "null": "a null record (zero gradient)"}
    if size > 1:
        words = {"others": "others", "null": "null records (zero gradient)"}
    return {
        "records": size,
        "neighbours": best.written_adjacency,
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
    inputs = {name: value for name, (value, _) in case.inputs.items()}
    if best.quantity in inputs or best.quantity in (name for names in _GROUPS.values() for name in names):
        inputs[best.quantity] = best.value  # the solved parameter
    groups = {group: {n: inputs[n] for n in names if n in inputs} for group, names in _GROUPS.items()}
    order = _ORDERS[algorithm.order] if algorithm else _ORDERS[Order.UNKNOWN]
    if algorithm and algorithm.clipped:
        order = "a random batch in every step"
    return {
        "algorithm": case.algorithm,
        "order": order,
        **groups,
        "entries": case.ledger["entries"] if case.ledger else None,
    }


def _guarantee(case: Case, best: Result) -> fields.Guarantee:
    lines = zip(case.answers, headline(case, Digits(_PRECISION)), strict=True)
    return {
        "headline": [_headline(result, line) for result, line in lines],
        "statement": promise(case),
        "meaning": meaning(case),
        "definition": _definition(best),
        "numbers": [_numbers(result) for result in case.answers],
    }


def _headline(result: Result, line: str) -> str:
    """Return the line; if a parameter was solved for, also the guarantee that it gives."""
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
        return "unlearning as defined by Sekhari et al. 2021; no differential privacy for the kept records"
    if best.quantity in SUFFICIENT:
        return f"what is enough for a budget: {SUFFICIENT[best.quantity]}"
    return _DEFINITIONS.get(best.quantity, "(epsilon, delta)-differential privacy")


def _assumptions(case: Case, *, trained: bool) -> list[dict[str, str]]:
    """Return the assumptions of the guarantee, without repetition, and who vouches for each."""
    quoted = case.answers
    theorems = [all_bounds()[result.bound] for result in quoted if result.bound in all_bounds()]
    vouched = [(condition.text, CHECKED) for theorem in theorems for condition in theorem.conditions]
    vouched.append(("what was run is what the inputs of this card say", CARRIED_OUT if trained else PROMISED))
    vouched += [(text, PROMISED) for result in quoted for text in result.assumes]
    vouched += [(promise.text, PROMISED) for theorem in theorems for promise in theorem.promises]
    return [{"text": text, "by": by} for text, by in dict.fromkeys(vouched)]


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


def released_line(model: fields.Model) -> str:
    """Return a sentence about the card's model."""
    epsilon, delta = (number(value, side=Side.ECHO) for value in (model["epsilon"], model["delta"]))
    return (
        f"The model as released, its numbers rounded, is ({epsilon}, {delta})-differentially private; what follows is "
        "of the run on real numbers, which leaves room for the rounding"
    )


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and isinstance(value, (int, float)) and value == int(value),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "null": lambda value: value is None,
}
KEYWORDS = frozenset(
    (
        "$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum", "pattern", "maxLength",
        "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "anyOf",
    )
)  # fmt: skip
"""The keywords that a schema may use; others would be ignored."""


def objection(document: Any, schema: Fields) -> str:
    """Return the first violation of a schema, with its place; empty if the document conforms.

    >>> objection({"a": 1, "b": 2}, {"type": "object", "properties": {"a": {}}, "additionalProperties": False})
    '/b: a field that is not known'
    """
    return next(_objections(document, schema, schema.get("$defs", {}), ""), "")


def _objections(value: Any, part: Fields, definitions: Fields, place: str) -> Iterator[str]:
    """Yield the violations of a value against its part of a schema."""
    if reference := part.get("$ref"):
        part = definitions[reference.removeprefix("#/$defs/")]
    if alternatives := part.get("anyOf"):
        first = [next(_objections(value, one, definitions, place), "") for one in alternatives]
        yield from ([first[-1] if value is None else first[0]] if all(first) else [])
        return
    types = part.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[name](value) for name in types):
        yield f"{place or '/'}: is not {' or '.join(types)}"
        return
    if value != part.get("const", value):
        yield f"{place}: must be {part['const']}"
    if value not in part.get("enum", [value]):
        yield f"{place}: must be one of {', '.join(part['enum'])}"
    if isinstance(value, str):
        yield from _against_text(value, part, place)
    elif isinstance(value, list):
        if not part.get("minItems", 0) <= len(value) <= part.get("maxItems", len(value)):
            yield f"{place}: has {len(value)} items"
        for number, item in enumerate(value):
            yield from _objections(item, part.get("items", {}), definitions, f"{place}/{number}")
    elif isinstance(value, dict):
        yield from _against_fields(value, part, definitions, place)


def _against_fields(value: Fields, part: Fields, definitions: Fields, place: str) -> Iterator[str]:
    own, others = part.get("properties", {}), part.get("additionalProperties", True)
    yield from (f"{place}/{name}: is missing" for name in part.get("required", ()) if name not in value)
    for name, field in value.items():
        if name not in own and others is False:
            yield f"{place}/{name}: a field that is not known"
        elif name in own or isinstance(others, dict):
            yield from _objections(field, own.get(name, others), definitions, f"{place}/{name}")


def _against_text(value: str, part: Fields, place: str) -> Iterator[str]:
    if len(value) > part.get("maxLength", len(value)):
        yield f"{place}: longer than {part['maxLength']} characters"
    elif not re.search(part.get("pattern", "").replace("$", r"\Z"), value):
        yield f"{place}: is not {part['pattern']}"


_DIGITS = 19  # the most characters of a whole number with its sign: no parameter is larger
_HINT = "give the JSON that --report card=FILE.json or dpcalc train -o wrote"


def read_card(path: str) -> fields.Card:
    """Return the card in a file, without evaluating anything or opening other files.

    Raises:
        SpecError: it cannot be read, is not JSON, or does not conform to the schema of cards.
    """
    shown = str(Place(path))
    return card_of_text(shown, read_document(path, "card"))


def card_of_text(shown: str, raw: bytes) -> fields.Card:
    """Return the card in the bytes of a file.

    Args:
        shown: the file's name, for messages.
        raw: its bytes.

    Raises:
        SpecError: as `read_card`.
    """
    try:
        document = loads(raw.decode("utf-8"), _DIGITS)
    except UnicodeDecodeError:
        raise SpecError(f"{shown} is not UTF-8", _HINT) from None
    except json.JSONDecodeError as error:
        hint = "a recipe is run with `dpcalc check`" if shown.endswith((".yaml", ".yml")) else _HINT
        raise SpecError(f"{shown}:{error.lineno}:{error.colno}: not JSON", hint) from None
    except RecursionError:
        raise SpecError(f"{shown} is nested more than {DOCUMENT_DEPTH} deep", _HINT) from None
    except Garbled as error:
        raise SpecError(f"{shown}: {error}", _HINT) from None
    _refuse_large(document, shown)
    if why := objection(document, _schema()):
        raise SpecError(f"{shown} is not a card: {printable(why)}", _HINT)
    card: fields.Card = document
    return card


def card_of_mapping(card: object) -> fields.Card:
    """Return the card in a Python mapping, as if read from a file.

    Raises:
        SpecError: it is not a valid card.
    """
    try:
        text = json.dumps(card, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise SpecError("the card is not made of JSON types", _HINT) from None
    return card_of_text("the card", text.encode())


@functools.cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(read("card-1.schema.json"))
    return schema


def _refuse_large(document: Any, shown: str) -> None:
    """Refuse a document that is nested too deeply or has too many values, without recursion."""
    count, level = 0, [document]
    for _ in range(DOCUMENT_DEPTH):
        count += len(level)
        if not level:
            return
        if count > DOCUMENT_VALUES:
            raise SpecError(f"{shown} has more than {DOCUMENT_VALUES} values", _HINT)
        level = [inner for value in level for inner in _inside(value)]
    raise SpecError(f"{shown} is nested more than {DOCUMENT_DEPTH} deep", _HINT)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if isinstance(value, list) else []
