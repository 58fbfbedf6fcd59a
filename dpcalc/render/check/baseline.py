"""An earlier report of ``dpcalc check``, and the changes since."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dpcalc.checked import Change, Difference, Status
from dpcalc.errors import SpecError
from dpcalc.files import Fields, reading
from dpcalc.files.place import shown_path
from dpcalc.model.quantities import Quantity
from dpcalc.render.asked import Asked
from dpcalc.render.check.inputs import (
    MOVED,
    Key,
    Number,
    Promise,
    Snapshot,
    Where,
    comparable,
    input_changes,
    inputs_of,
    loosened,
)
from dpcalc.render.check.verdicts import AT_MOST, parts_of
from dpcalc.render.numbers import MAXIMISED, Digits, Side
from dpcalc.report import SCHEMA, Report

MAX_CASES = 100_000
MAX_GATES = 1000  # of a case
MAX_TEXT = 10_000
"""The limits exceed what a check writes: a forged report must not delay the verdict or fill the reports."""

_WHOLE = "check"
_JUDGED = (Status.PASSED, Status.FAILED)
_HINT = "save one with `dpcalc check ... --report json=FILE`"


def load(path: str) -> Snapshot:
    """Return the report saved in a file.

    Links are followed, and pipes are read: the user typed the path on the command line, unlike the paths of a recipe.
    No error quotes the file.

    Raises:
        SpecError: the file cannot be read, is larger than `BASELINE_BYTES`, or holds no report of ``dpcalc check``.
    """
    shown = shown_path(path)
    try:
        with open(path, "rb") as stream:
            data = stream.read(reading.BASELINE_BYTES + 1)
    except OSError as error:
        raise SpecError(f"cannot read the baseline {shown}: {error.strerror or error}", _HINT) from None
    except ValueError:  # a NUL, or characters that no file system encodes
        raise SpecError(f"the baseline {shown} is not a path", _HINT) from None
    if len(data) > reading.BASELINE_BYTES:
        raise SpecError(f"the baseline {shown} is larger than {reading.BASELINE_BYTES} bytes", _HINT)
    try:
        return snapshot(json.loads(data.decode("utf-8"), parse_constant=_refuse))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise SpecError(f"the baseline {shown} is no JSON report of dpcalc check", _HINT) from None


_NO_CASE = {"command": _WHOLE}
"""The check of everything that is no case of a recipe."""


def snapshot(envelope: Fields) -> Snapshot:
    """Summarise an envelope of ``dpcalc check``.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, OverflowError: it is not such an envelope.
    """
    if (envelope["schema"], envelope["command"]) != (SCHEMA, _WHOLE):
        raise ValueError(envelope["schema"])
    if len(envelope["cases"]) > MAX_CASES:
        raise ValueError(len(envelope["cases"]))
    # An error of a whole recipe is not one of its cases.
    cases = [case for case in envelope["cases"] if case.get("check", _NO_CASE)["command"] != _WHOLE]
    verdicts = {_where(case): case["check"]["status"] for case in cases}
    if len(verdicts) < len(cases):  # two cases with one name cannot be compared
        raise ValueError(len(cases))
    inputs = {_where(case): inputs_of(case) for case in cases if case["results"]}
    return Snapshot(verdicts, _gates(cases), inputs, _numbers(cases))


def _refuse(word: str) -> float:
    raise ValueError(word)


def _numbers(cases: Iterable[Fields]) -> dict[Key, Number]:
    numbers = {}
    for case in cases:
        file, name = _where(case)
        for result in case["results"]:
            if not result["best"]:
                continue
            value, log_delta = _finite(result.get("value")), _finite(result.get("log_delta"))
            best = Number(result["quantity"], value, log_delta)
            if best.size is not None:
                numbers[file, name, _text(result["quantity"]), result.get("order")] = best
    return numbers


def _gates(cases: Iterable[Fields]) -> dict[Where, list[Promise]]:
    """Return the gates of every judged case."""
    judged = [case for case in cases if case["check"]["status"] in _JUDGED]
    if any(len(case["assertions"]) > MAX_GATES for case in judged):
        raise ValueError(MAX_GATES)
    return {_where(case): [_promise(gate) for gate in case["assertions"]] for case in judged}


def _promise(gate: Fields) -> Promise:
    """Return a gate; where it names other cases, their numbers decide whether it asks for less."""
    text, slack = _text(gate["text"]), _finite(gate["slack"])
    _, right = parts_of(text)
    if "cases." not in right or slack is None:
        return Promise(text)
    value = _finite(gate["value"]) or 0.0
    return Promise(text, value + slack if right.startswith(AT_MOST) else value - slack)


def _where(case: Fields) -> Where:
    check = case["check"]
    _text(check["status"])
    return os.path.normpath(_text(check["file"])), _text(check["name"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    if len(value) > MAX_TEXT:
        raise ValueError(len(value))
    return value


def _finite(number: Any) -> float | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(number)
    if not math.isfinite(number):
        raise ValueError(number)
    return number


def changes(before: Snapshot, report: Report, digits: Digits) -> list[Change]:
    """Return the changes in a report: cases, verdicts, questions, gates, and numbers that moved."""
    after = snapshot(report.to_dict())
    inputs = _other_inputs(before, after)
    other = {(change.file, change.name) for change in inputs if not comparable([change])}
    return [
        *_other_verdicts(before, after, report),
        *_other_gates(before.gates, after.gates),
        *inputs,
        *_other_numbers(before.numbers, after.numbers, digits, other),
    ]


def compared(report: Report, before: Snapshot, digits: Digits) -> Report:
    """Return the report with its `Change`s since an earlier one."""
    return report._replace(changes=tuple(changes(before, report, digits)))


def changes_since(report: Report, asked: Asked) -> list[Change] | None:
    """Return the changes since an earlier report, stored or computed; None without an earlier one."""
    if report.changes is not None or asked.baseline is None:
        return None if report.changes is None else list(report.changes)
    return changes(asked.baseline, report, asked.digits)


def _other_verdicts(before: Snapshot, after: Snapshot, report: Report) -> Iterator[Change]:
    """Yield the cases that disappeared, new ones, and those with another outcome."""
    old, new = before.verdicts, after.verdicts
    left_out = {(os.path.normpath(file), name) for file, name in report.not_selected}
    for where, status in old.items():
        if where not in new:
            what = Difference.NOT_SELECTED if where in left_out else Difference.REMOVED
            yield Change(*where, "", status, "", what, True)
    for where, status in new.items():
        if where not in old:
            yield Change(*where, "", "", status, Difference.NEW)
    for where, status in new.items():
        if where in old and old[where] != status:
            yield Change(*where, "", old[where], status, Difference.VERDICT, status == Status.SKIPPED)


def _other_inputs(before: Snapshot, after: Snapshot) -> list[Change]:
    both = [where for where in after.inputs if where in before.inputs]
    return [change for where in both for change in input_changes(where, before.inputs[where], after.inputs[where])]


def _other_gates(old: Mapping[Where, list[Promise]], new: Mapping[Where, list[Promise]]) -> Iterator[Change]:
    """Yield the gates that disappeared and new ones: a weaker gate would otherwise look unchanged."""
    for where, gates in new.items():
        was = old.get(where, gates)
        weaker = loosened(was, gates)
        before, after = ([gate.in_full if weaker else gate.text for gate in some] for some in (was, gates))
        gone, come = [text for text in before if text not in after], [text for text in after if text not in before]
        if gone or come:
            yield Change(*where, "", "; ".join(gone), "; ".join(come), Difference.GATES, weaker)


def _other_numbers(
    old: Mapping[Key, Number], new: Mapping[Key, Number], digits: Digits, other: set[Where]
) -> Iterator[Change]:
    """Yield the numbers that moved; the cases in ``other`` have a new question."""
    for key, result in new.items():
        was, now = old[key].size if key in old else None, result.size
        if was is None or now is None or _same(was, now, result.quantity):
            continue
        file, name, quantity, order = key
        at = f"{quantity} at order {order:g}" if quantity == Quantity.RDP and order is not None else quantity
        values = _number_text(old[key], digits), _number_text(result, digits)
        what = Difference.OTHER_QUESTION if (file, name) in other else _direction(was, now, quantity)
        yield Change(file, name, at, *values, what)


def _same(was: float, now: float, quantity: str) -> bool:
    return abs(now - was) <= MOVED * (1.0 if quantity == Quantity.DELTA else max(abs(was), abs(now)))


def _number_text(result: Number, digits: Digits) -> str:
    side = Side.DOWN if result.quantity in MAXIMISED else Side.UP
    if result.quantity == Quantity.DELTA:
        return digits.delta(result.value, result.log_delta, side)
    return "" if result.value is None else digits.number(result.value, side)


def _direction(was: float, now: float, quantity: str) -> str:
    """Return the direction and the factor of a change, and whether it is an improvement."""
    up = now > was
    word = "better" if up == (quantity in MAXIMISED) else "worse"
    return f"{'up' if up else 'down'}{_factor(was, now, quantity)}, {word}"


def _factor(was: float, now: float, quantity: str) -> str:
    if quantity == Quantity.DELTA:
        ten = (now - was) / math.log(10.0)
        return f" x{10.0**ten:.4g}" if abs(ten) < 4.0 else f" x10^{ten:.4g}"
    ratio = now / was if was > 0.0 and now > 0.0 else math.inf
    return f" x{ratio:.4g}" if math.isfinite(ratio) else ""
