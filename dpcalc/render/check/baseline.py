"""An earlier report of ``dpcalc check``, and what has changed since."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.render.text import MAXIMISED, delta_text, number
from dpcalc.report import SCHEMA

MAX_BYTES = 64 << 20
MOVED = 1e-9
"""Relative change above which a number has moved; below it, two machines' libraries may differ."""

_HINT = "save one with `dpcalc check ... --report json=FILE`"

_Key = tuple[str, str, str, float | None]
"""File and name of a case, quantity and order of a number in it."""


class Change(NamedTuple):
    """A number, a verdict, a gate or a case that is not what it was; what there was not is empty."""

    file: str
    name: str
    quantity: str
    before: str
    after: str
    what: str


def load(path: str) -> dict[str, Any]:
    """Return the report saved in a file.

    Raises:
        SpecError: the file cannot be read, is larger than `MAX_BYTES`, or holds no report of ``dpcalc check``.
    """
    shown = path if path.isprintable() else ascii(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise SpecError(f"cannot read the baseline {shown}: {error.strerror or error}", _HINT) from None
    except ValueError:  # a NUL, or what no file system encodes
        raise SpecError(f"the baseline {shown} is not a path", _HINT) from None
    if len(data) > MAX_BYTES:
        raise SpecError(f"the baseline {shown} is larger than {MAX_BYTES} bytes", _HINT)
    try:
        found = json.loads(data.decode("utf-8"), parse_constant=_refuse)
        numbers_of(found)
        _gates(found)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise SpecError(f"the baseline {shown} is no JSON report of dpcalc check", _HINT) from None
    return dict(found)


def _refuse(word: str) -> float:
    raise ValueError(word)


def numbers_of(envelope: Mapping[str, Any]) -> dict[_Key, Mapping[str, Any]]:
    """Return the best results of an envelope of ``dpcalc check`` by where they stand.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it is no such envelope.
    """
    if (envelope["schema"], envelope["command"]) != (SCHEMA, "check"):
        raise ValueError(envelope["schema"])
    numbers = {}
    for case in _checked(envelope):
        file, name = _where(case)
        for result in case["results"]:
            if result["best"] and _size(result) is not None:
                numbers[file, name, _text(result["quantity"]), result.get("order")] = result
    return numbers


def _checked(envelope: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [case for case in envelope["cases"] if "check" in case]


def _where(case: Mapping[str, Any]) -> tuple[str, str]:
    check = case["check"]
    _text(check["status"])
    return os.path.normpath(_text(check["file"])), _text(check["name"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def _size(result: Mapping[str, Any]) -> float | None:
    """Return the number that is compared: a delta by its logarithm. None where there is none."""
    size = result.get("log_delta") if result["quantity"] == "delta" else result["value"]
    if isinstance(size, bool) or not isinstance(size, (int, float, type(None))):
        raise TypeError(size)
    if size is not None and not math.isfinite(size):
        raise ValueError(size)
    return None if size is None else float(size)


def changes(before: Mapping[str, Any], after: Mapping[str, Any], precision: int) -> list[Change]:
    """Return what differs between two envelopes: cases removed and new, verdicts, gates, and numbers that moved."""
    old, new = _verdicts(before), _verdicts(after)
    found = [Change(*where, "", status, "", "removed") for where, status in old.items() if where not in new]
    found += [Change(*where, "", "", status, "new") for where, status in new.items() if where not in old]
    found += [
        Change(*where, "", old[where], status, "verdict")
        for where, status in new.items()
        if where in old and old[where] != status
    ]
    found += _other_gates(_gates(before), _gates(after))
    return found + _moved(numbers_of(before), numbers_of(after), precision)


def _verdicts(envelope: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    return {_where(case): case["check"]["status"] for case in _checked(envelope)}


def _gates(envelope: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Return the texts of the gates of every case that was judged."""
    judged = [case for case in _checked(envelope) if case["check"]["status"] in ("passed", "failed")]
    return {_where(case): [_text(gate["text"]) for gate in case["assertions"]] for case in judged}


def _other_gates(old: dict[tuple[str, str], list[str]], new: dict[tuple[str, str], list[str]]) -> list[Change]:
    """Return the gates that were taken away and those that came: a gate made weaker would else look unchanged."""
    found = []
    for where, gates in new.items():
        was = old.get(where, gates)
        gone, come = [g for g in was if g not in gates], [g for g in gates if g not in was]
        if gone or come:
            found.append(Change(*where, "", "; ".join(gone), "; ".join(come), "gates"))
    return found


def _moved(old: dict[_Key, Mapping[str, Any]], new: dict[_Key, Mapping[str, Any]], precision: int) -> list[Change]:
    found = []
    for key, result in new.items():
        was, now = _size(old.get(key, {"quantity": "", "value": None})), _size(result)
        if was is None or now is None or _same(was, now, result["quantity"]):
            continue
        file, name, quantity, order = key
        at = f"{quantity} at order {order:g}" if quantity == "rdp" and order is not None else quantity
        values = _shown(old[key], precision), _shown(result, precision)
        found.append(Change(file, name, at, *values, _direction(was, now, quantity)))
    return found


def _same(was: float, now: float, quantity: str) -> bool:
    return abs(now - was) <= MOVED * (1.0 if quantity == "delta" else max(abs(was), abs(now)))


def _shown(result: Mapping[str, Any], precision: int) -> str:
    side = "down" if result["quantity"] in MAXIMISED else "up"
    if result["quantity"] == "delta":
        return delta_text(result["value"], result["log_delta"], precision, side)
    return number(result["value"], precision, side)


def _direction(was: float, now: float, quantity: str) -> str:
    """Return which way a number went, by which factor, and whether that is for the better."""
    up = now > was
    word = "better" if up == (quantity in MAXIMISED) else "worse"
    return f"{'up' if up else 'down'}{_factor(was, now, quantity)}, {word}"


def _factor(was: float, now: float, quantity: str) -> str:
    if quantity == "delta":
        ten = (now - was) / math.log(10.0)
        return f" x{10.0**ten:.4g}" if abs(ten) < 4.0 else f" x10^{ten:.4g}"
    ratio = now / was if was > 0.0 and now > 0.0 else math.inf
    return f" x{ratio:.4g}" if math.isfinite(ratio) else ""
