"""Inert text: it contains no character that controls a terminal and no command to a CI server.

Servers read a job's output for commands: GitHub ``::name`` at the start of a line and ``##[name]`` anywhere, Azure
Pipelines ``##[name]`` and ``##vso[name]`` anywhere, TeamCity ``##teamcity[name]``. Names, paths and messages come from
files that others wrote, so every output is made inert.
"""

from __future__ import annotations

import re
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


def xml_text(document: str) -> str:
    """Return the XML document, of printable lines, with every command escaped; its meaning stays the same."""
    return re.sub(_XML_START, r"\1&#58;", re.sub(_DOUBLE_HASH, "&#35;", document))
