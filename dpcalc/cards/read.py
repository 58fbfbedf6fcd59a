"""Reading a card that others wrote: its size, depth, numbers and fields are checked before anything is computed."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from typing import Any

from dpcalc.cards.schema import objection
from dpcalc.errors import SpecError
from dpcalc.files.limits import DOCUMENT_DEPTH, DOCUMENT_VALUES
from dpcalc.files.reading import document_place, read_document
from dpcalc.inert import printable
from dpcalc.references import read

_DIGITS = 19  # of a whole number, with its sign: no parameter is larger
_HINT = "give the JSON that --report card=FILE.json or dpcalc train -o wrote"


def read_card(path: str) -> dict[str, Any]:
    """Return the card in a file, of which nothing is evaluated and which names no other file.

    Raises:
        SpecError: it cannot be read, is no JSON, or does not conform to the schema of cards.
    """
    shown = str(document_place(path))
    return card_of_text(shown, read_document(path, "card"))


def card_of_text(shown: str, raw: bytes) -> dict[str, Any]:
    """Return the card that a file holds.

    Args:
        shown: the file's name, for messages.
        raw: its bytes.

    Raises:
        SpecError: as `read_card`.
    """
    try:
        document = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite,
            parse_int=_countable,
        )  # fmt: skip
    except UnicodeDecodeError:
        raise SpecError(f"{shown} is not UTF-8", _HINT) from None
    except json.JSONDecodeError as error:
        raise SpecError(f"{shown}:{error.lineno}:{error.colno}: not JSON", _hint(shown)) from None
    except RecursionError:
        raise SpecError(f"{shown} is nested more than {DOCUMENT_DEPTH} deep", _HINT) from None
    except _Refused as error:
        raise SpecError(f"{shown}: {error}", _HINT) from None
    return _checked(document, shown)


def card_of_mapping(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the card that Python has, as it would be read from a file.

    Raises:
        SpecError: it is none.
    """
    try:
        text = json.dumps(card, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise SpecError("the card is not made of JSON types", _HINT) from None
    return card_of_text("the card", text.encode())


def _checked(document: Any, shown: str) -> dict[str, Any]:
    """Return a document that conforms to the schema of cards.

    Raises:
        SpecError: it does not.
    """
    _bounded(document, shown)
    if why := objection(document, _schema()):
        raise SpecError(f"{shown} is not a card: {printable(why)}", _HINT)
    card: dict[str, Any] = document
    return card


@functools.cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(read("card-1.schema.json"))
    return schema


def _hint(shown: str) -> str:
    return "a recipe is run with `dpcalc check`" if shown.endswith((".yaml", ".yml")) else _HINT


class _Refused(ValueError):
    """Something that JSON allows, or that Python's reader does, and a card must not have."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise _Refused("an object has a name twice")
    return fields


def _no_number(word: str) -> float:
    raise _Refused(f"{word} is not a number of JSON")


def _finite(word: str) -> float:
    value = float(word)
    if not math.isfinite(value):
        raise _Refused("a number is too large")
    return value


def _countable(word: str) -> int:
    if len(word) > _DIGITS:
        raise _Refused("a number is too large")
    return int(word)


def _bounded(document: Any, shown: str) -> None:
    """Refuse a document that is nested too deep or has too many values, without recursion."""
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
