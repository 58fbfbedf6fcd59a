"""Tables and paragraphs fitted to a width. Words are never broken: if columns do not fit, rows are stacked."""

from __future__ import annotations

import re
from collections.abc import Sequence

_GAP = "  "
_INDENT = "    "
_GLUE = "\xa0"  # a non-breaking space

_EQUATION = re.compile(r"(?:[\w-]+ )?[\w-]+ <?= (?=\S)")
"""The left side of an equation or a bound: a name, with its symbol."""

Row = Sequence[str]


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun.

    >>> counted(2, "case")
    '2 cases'
    """
    return f"{count} {one if count == 1 else several or one + 's'}"


def listed(names: Sequence[str], most: int) -> str:
    """Return the first of some names, and the number of others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def cut(text: str, width: int) -> str:
    """Return a text, cut to a width."""
    return text if len(text) <= width else text[: width - 3] + "..."


def wrapped(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Return a paragraph in lines of a width; ``first`` and ``others`` are their prefixes. Equations are not broken."""
    import textwrap

    glued = _EQUATION.sub(lambda match: match[0].replace(" ", _GLUE), text)
    lines = textwrap.wrap(
        glued, max(width, 20), initial_indent=first, subsequent_indent=others, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace(_GLUE, " ") for line in lines] or [first]


def laid_out(rows: Sequence[Row], width: int) -> list[list[str]]:
    """Return the lines of each row of a table whose first row is the head."""
    columns = list(zip(*rows, strict=True))
    natural = [max(map(len, column)) for column in columns]
    least = [max((len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    room = width - len(_GAP) * (len(columns) - 1)
    stacked = _stacked(rows, natural, width)
    if sum(least) > room:
        return stacked
    widths = _shared(natural, least, room)
    lines = [_side_by_side(row, widths) for row in rows]
    return stacked if sum(map(len, stacked)) < sum(map(len, lines)) else lines


def _shared(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Return the widths of columns: what each needs, narrow ones first, while there is room."""
    widths, spare = list(least), room - sum(least)
    order = sorted(range(len(least)), key=lambda place: natural[place] - least[place])
    for rank, place in enumerate(order):
        more = min(natural[place] - least[place], spare // (len(order) - rank))
        widths[place] += more
        spare -= more
    return widths


def _side_by_side(row: Row, widths: Sequence[int]) -> list[str]:
    import textwrap

    cells = [
        textwrap.wrap(cell, max(width, 1), break_long_words=False, break_on_hyphens=False) or [""]
        for cell, width in zip(row, widths, strict=True)
    ]
    lines = []
    for line in range(max(map(len, cells))):
        texts = [cell[line] if line < len(cell) else "" for cell in cells]
        lines.append(_GAP.join(text.ljust(width) for text, width in zip(texts, widths, strict=True)).rstrip())
    return lines


def _stacked(rows: Sequence[Row], natural: Sequence[int], width: int) -> list[list[str]]:
    """Return each row as a line of its first cells, and below it the others with the names of their columns."""
    first = 1
    while first < len(natural) and sum(natural[: first + 1]) + len(_GAP) * first <= 3 * width // 4:
        first += 1
    head, widths = rows[0], [min(natural[0], width), *natural[1:first]]
    stacked = []
    for row in rows:
        rest = "; ".join(f"{name} {cell}".strip() for name, cell in zip(head[first:], row[first:], strict=True) if cell)
        under = wrapped(rest, width, _INDENT, _INDENT) if rest and row is not head else []
        stacked.append([*_side_by_side(row[:first], widths), *under])
    return stacked
