"""What is compared of an answer: without what changes by itself; and a digest of it that other machines share."""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

_MASKS = (
    (re.compile(r'("seconds": )[0-9.e+-]+'), r"\g<1>0"),
    (re.compile(r'("(?:dpcalc|version|semanticVersion)": ?)"\d+\.\d+[^"]*"'), r'\1"VERSION"'),
    (re.compile(r'((?:dpcalc|version)[ =,"]*v?)\d+\.\d+\.\d+[\w.+]*'), r"\1VERSION"),
    (re.compile(r'\b(time|timestamp)="[^"]*"'), r'\1=""'),
)
"""Timings, versions and dates."""
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.?\d*(?:[eE][+-]?\d+)?(?![\w.]*[A-Za-z_])")
DIGITS = 9
NEWER = ("note_data",)
"""Fields that reports did not have when the digests were made: a digest leaves them out."""

_DIFFERENCES = ("slack", "optimality_gap")
"""Fields that are differences of nearly equal numbers: rounded to so many decimals instead."""


def normalised(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer without timings, versions and dates."""
    return {
        **answer,
        "stdout": masked(answer["stdout"]),
        "stderr": masked(answer["stderr"]),
        "written": {name: masked(text) for name, text in answer["written"].items()},
    }


def masked(text: str) -> str:
    """Return the text without timings, versions and dates."""
    for pattern, instead in _MASKS:
        text = pattern.sub(instead, text)
    return text


def digest(answer: Mapping[str, Any]) -> str:
    """Return a digest of the exit code, stdout, the first line of stderr and the files, numbers rounded."""
    first = answer["stderr"].partition("\n")[0]
    written = [[name, _rounded(text)] for name, text in sorted(answer["written"].items())]
    told = [answer["code"], _rounded(answer["stdout"]), _rounded(first), written]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:10]


def _rounded(text: str) -> Any:
    try:
        return _rounded_value(json.loads(text))
    except ValueError:
        lines = "".join(map(_without_newer, text.splitlines(keepends=True)))
        return _NUMBER.sub(lambda match: _rounded_number(match[0]), lines)


def _without_newer(line: str) -> str:
    """Return a line of JSON lines without the fields that are newer than the digests; any other as it is."""
    try:
        fields = dict(json.loads(line))
    except (TypeError, ValueError):
        return line
    kept = {name: value for name, value in fields.items() if name not in NEWER}
    return line if len(kept) == len(fields) else json.dumps(kept) + "\n"


def _rounded_value(value: Any, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _rounded_value(inner, key) for key, inner in value.items() if key not in NEWER}
    if isinstance(value, list):
        return [_rounded_value(inner, name) for inner in value]
    if isinstance(value, str):
        return _NUMBER.sub(lambda match: _rounded_number(match[0]), value)
    if isinstance(value, float):
        return f"{round(value, DIGITS) + 0.0!r}" if name in _DIFFERENCES else f"{value:.{DIGITS - 1}e}"
    return value


def _rounded_number(text: str) -> str:
    return text if text.lstrip("-").isdigit() else f"{float(text):.{DIGITS - 1}e}"
