"""Inert text: it contains no character that controls a terminal and no command to a CI server.

Servers read a job's output for commands: GitHub ``::name`` at the start of a line and ``##[name]`` anywhere, Azure
Pipelines ``##[name]`` and ``##vso[name]`` anywhere, TeamCity ``##teamcity[name]``. Names, paths and messages come from
files that others wrote, so every output is made inert.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_COLOUR = r"\x1b\[[0-9;]*m"
_IN_A_LINE = r"[^ -~]"
_IN_LINES = r"[^\n\t -~]"
_IN_COLOURED_LINES = rf"{_COLOUR}|[^\n\t -~]"
_INVISIBLE = "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
"""Characters that Python takes for printable and that show nothing."""

_FORMULA = ("=", "+", "-", "@", "\t")
"""How a cell begins that a spreadsheet would run."""

_ANYWHERE = r"(?<=##)(?=\w*\[)"
_AT_THE_START = rf"(?m)^((?:[ \t]|{_COLOUR})*)(?=::)"
_DOUBLE_HASH = r"#(?=#)"
_XML_START = r"(?m)^(\s*):(?=:)"


_PLAIN = b"\n\t" + bytes(range(0x20, 0x7F))
"""The characters of lines that say nothing to a terminal."""


def printable(text: str) -> str:
    """Return the text on one line, with characters that control a terminal or break a document as escape codes."""
    if text.isascii() and text.isprintable() and "##" not in text:
        return text
    return re.sub(_ANYWHERE, r"\\", re.sub(_IN_A_LINE, _escaped, text))


class Inert(str):
    """Lines of text that were made inert already, colours allowed."""

    __slots__ = ()


def inert(text: str, *, coloured: bool = False) -> str:
    """Return lines of text without commands and control characters; ``coloured`` keeps the codes of colours."""
    # A search over a long text is quick for a word, and slow for a pattern.
    if not (text.isascii() and not text.encode("ascii").translate(None, _PLAIN)):
        text = re.sub(_IN_COLOURED_LINES if coloured else _IN_LINES, _escaped, text)
    if "##" not in text and "::" not in text:
        return text
    return re.sub(_AT_THE_START, r"\1\\", re.sub(_ANYWHERE, r"\\", text))


def _escaped(match: re.Match[str]) -> str:
    text = match[0]
    harmless = (text.isprintable() and not re.match(_INVISIBLE, text)) or len(text) > 1  # longer: the code of a colour
    return text if harmless else ascii(text)[1:-1]


def spreadsheet_text(text: str) -> str:
    """Return a text as a cell of CSV: on one line, and as text where a spreadsheet would run it as a formula."""
    text = printable(text.replace("\r", " "))
    return "'" + text if text.startswith(_FORMULA) else text


def json_text(value: Any, indent: int | None = None, depth: int = 0) -> str:
    """Return strict JSON in which every command inside a string is escaped; the value stays the same.

    Args:
        value: the tree.
        indent: the number of blanks by which a level is indented; None for one line.
        depth: the level of a larger tree at which the value stands.

    Raises:
        ValueError: a number is not finite.
    """
    import json  # text needs none

    text = json.dumps(value, indent=indent, allow_nan=False)
    if depth and indent:  # no string of JSON has a raw line feed
        text = text.replace("\n", "\n" + " " * (indent * depth))
    if "##" in text:
        text = re.sub(_DOUBLE_HASH, r"\\u0023", text)
    return text.replace("\x7f", r"\u007f")


def strict_json(tree: Any) -> Any:
    """Return the tree with null for every number that is not finite, and beside it the reason."""
    if type(tree) is dict or isinstance(tree, Mapping):
        strict = {name: value if type(value) in _AS_THEY_ARE else strict_json(value) for name, value in tree.items()}
        reasons = [
            _reason(name, tree[name]) for name, value in strict.items() if value is None and _infinite(tree[name])
        ]
        return {**strict, "reason": "; ".join(reasons)} if reasons else strict
    if isinstance(tree, (list, tuple)):
        return [value if type(value) in _AS_THEY_ARE else strict_json(value) for value in tree]
    if isinstance(tree, str):
        return str(tree)  # a member of an enum is a plain string to every encoder
    return None if _infinite(tree) else tree


_AS_THEY_ARE = frozenset((str, int, bool, type(None)))


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _reason(name: str, value: float) -> str:
    if name == "log_delta" and value < 0.0:
        return "delta is exactly 0"
    what = "not a number" if math.isnan(value) else "infinite" if value > 0.0 else "below all numbers"
    return f"{name} is {what}"


def xml_text(document: str) -> str:
    """Return the XML document, of printable lines, with every command escaped; its meaning stays the same."""
    return re.sub(_XML_START, r"\1&#58;", re.sub(_DOUBLE_HASH, "&#35;", document))
