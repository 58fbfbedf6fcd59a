"""Inert text: it contains no character that controls a terminal and no command to a CI server.

Servers read a job's output for commands: GitHub ``::name`` at the start of a line and ``##[name]`` anywhere, Azure
Pipelines ``##[name]`` and ``##vso[name]`` anywhere, TeamCity ``##teamcity[name]``. Names, paths and messages come from
files that others wrote, so every output is made inert.
"""

from __future__ import annotations

import re
from typing import Any

_COLOUR = r"\x1b\[[0-9;]*m"
_IN_A_LINE = re.compile(r"[^ -~]")
_IN_LINES = re.compile(r"[^\n\t -~]")
_IN_COLOURED_LINES = re.compile(rf"{_COLOUR}|[^\n\t -~]")
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python takes for printable and that show nothing."""

_ANYWHERE = re.compile(r"(?<=##)(?=\w*\[)")
_AT_THE_START = re.compile(rf"^((?:[ \t]|{_COLOUR})*)(?=::)", re.MULTILINE)
_DOUBLE_HASH = re.compile(r"#(?=#)")
_XML_START = re.compile(r"^(\s*):(?=:)", re.MULTILINE)


def printable(text: str) -> str:
    """Return the text on one line, with characters that control a terminal or break a document as escape codes."""
    return _ANYWHERE.sub(r"\\", _IN_A_LINE.sub(_escaped, text))


def inert(text: str, *, coloured: bool = False) -> str:
    """Return lines of text without commands and control characters; ``coloured`` keeps the codes of colours."""
    text = (_IN_COLOURED_LINES if coloured else _IN_LINES).sub(_escaped, text)
    return _AT_THE_START.sub(r"\1\\", _ANYWHERE.sub(r"\\", text))


def _escaped(match: re.Match[str]) -> str:
    text = match[0]
    harmless = (text.isprintable() and not _INVISIBLE.match(text)) or len(text) > 1  # longer: the code of a colour
    return text if harmless else ascii(text)[1:-1]


def json_text(value: Any, indent: int | None = None) -> str:
    """Return strict JSON in which every command inside a string is escaped; the value stays the same."""
    import json  # text needs none

    text = json.dumps(value, indent=indent, allow_nan=False)
    return _DOUBLE_HASH.sub(r"\\u0023", text).replace("\x7f", r"\u007f")


def xml_text(document: str) -> str:
    """Return the XML document, of printable lines, with every command escaped; its meaning stays the same."""
    return _XML_START.sub(r"\1&#58;", _DOUBLE_HASH.sub("&#35;", document))
