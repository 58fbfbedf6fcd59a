"""The tree of a report: paragraphs and tables, and its writers.

Blocks are written as GitHub-flavoured Markdown, or as plain text: aligned columns, only ASCII, the terminal's content.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dpcalc.inert import printable
from dpcalc.plain_enum import PlainEnum
from dpcalc.render.layout import Row, laid_out, wrapped

COLUMNS = 80
"""The width of the screen for answers."""

LABEL = 9
"""The width of the labels at the left."""

_MEASURED = 12
"""The lines reserved for measurements."""

STAYS = 0
"""The rank of blocks that are always shown."""


class Style(PlainEnum):
    """The role of a block, as a style of rich."""

    TEXT = ""
    QUIET = "dim"
    ANSWER = "bold green"
    STRONG = "bold"
    BAD = "bold red"


class Paragraph(NamedTuple):
    """A paragraph with the label at its left, its style and its rank.

    If the screen is full, blocks of the highest rank are dropped first. Blocks that are not ``counted`` depend on
    records, and the choice must not. A ``row`` of a table is not wrapped, and an ``item`` is one of a list. ``facts``
    are below the text, on separate lines. A paragraph without text is a gap.
    """

    text: str = ""
    label: str = ""
    style: Style = Style.TEXT
    rank: int = STAYS
    row: bool = False
    counted: bool = True
    item: bool = False
    facts: tuple[str, ...] = ()

    def lines(self, width: int | None) -> list[str]:
        """Return the lines of the paragraph, wrapped to a width; a single line for None."""
        label = f"{self.label}:".ljust(LABEL) if self.label else ""
        if self.facts:
            return [line for text in self.texts for line in Paragraph(text).lines(width)]
        text = printable(self.text)
        if width is None or self.row or not text:
            return [label + text]
        rest = text.lstrip()
        indent = label or " " * (len(text) - len(rest))
        return wrapped(rest, width, indent, " " * (len(indent) + (0 if label else _hanging(text, rest))))

    def laid_out(self, width: int | None) -> Iterator[tuple[Sequence[str], Style]]:
        """Yield the lines of the paragraph with their style."""
        yield self.lines(width), self.style

    def in_line(self) -> Paragraph:
        """Return the paragraph with its label at the start of its text."""
        return self._replace(label="", text=f"{self.label}: {self.text}") if self.label else self

    @property
    def texts(self) -> tuple[str, ...]:
        """The text and the facts below it, as they are written."""
        return (self.text, *(f"  - {fact}" for fact in self.facts))


def _hanging(text: str, rest: str) -> int:
    """Return the extra indentation of further lines: past the sign of an assumption."""
    if text == rest:
        return 0
    sign, gap, words = rest.partition("  ")
    return len(sign + gap) if words else 2


class Table(NamedTuple):
    """A table: its head, its rows, and their style; without a head the first row serves as one."""

    rows: Sequence[Row]
    styles: Sequence[Style] = ()
    rank: int = STAYS
    counted: bool = True

    def in_line(self) -> Table:
        """Return the table itself, which has no label."""
        return self

    def lines(self, width: int | None) -> list[str]:
        """Return the table in lines of a width, its columns aligned; one line per row for None."""
        return [line for lines, _ in self.laid_out(width) for line in lines]

    def laid_out(self, width: int | None) -> Iterator[tuple[Sequence[str], Style]]:
        """Yield the lines of each row with their style."""
        rows = [tuple(map(printable, row)) for row in self.rows]
        styles = [Style.STRONG, *(self.styles or [Style.TEXT] * len(rows))]
        lines = [[line] for line in aligned(rows)] if width is None else laid_out(rows, width)
        return zip(lines, styles, strict=False)


Block = Paragraph | Table

GAP = Paragraph()


def aligned(table: Sequence[Row]) -> list[str]:
    """Return rows with their columns padded to a common width."""
    padded = "  ".join(f"%-{max(map(len, column))}s" for column in zip(*table, strict=True))
    return [padded % tuple(row) for row in table]


def fitted(blocks: Iterable[Block], lines: int) -> list[Block]:
    """Return the blocks that fit into ``lines`` lines, and those that are always shown."""
    kept = list(blocks)
    room = lines - (_MEASURED if not all(block.counted for block in kept) else 0)
    while sum(len(block.lines(COLUMNS)) for block in kept if block.counted) > room:
        highest = max(block.rank for block in kept)
        if highest == STAYS:
            break
        del kept[max(place for place, block in enumerate(kept) if block.rank == highest)]
    return kept


_BOLD = (Style.ANSWER, Style.BAD)


def markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as GitHub-flavoured Markdown: a gap before and after every table, but no two gaps in a row."""
    lines = [""]
    for block in blocks:
        written = ["", *_lines(block), ""] if isinstance(block, Table) else list(_lines(block))
        lines += written[1:] if lines[-1] == written[0] == "" else written
    return "\n".join(lines[1:]) + "\n"


def _lines(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from markdown_table([tuple(map(_escape, row)) for row in block.rows])
        return
    text = _escape("; ".join(block.texts))
    label = f"{block.label}: " if block.label else ""
    if block.row:  # already Markdown
        yield block.text
    elif block.item:
        yield f"- {label}{text}"
    elif block.style in _BOLD:
        yield f"**{block.text}**  "
    else:
        yield f"{label}{text}{'  ' if text and block.style != Style.QUIET else ''}"


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table of escaped cells, with the head as its first row."""
    return ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")


def plain(blocks: Iterable[Block], width: int | None) -> str:
    """Return blocks as plain text of a width; every paragraph in one line for None."""
    return "".join(f"{line.rstrip()}\n" for block in blocks for line in block.lines(width))


def table(blocks: Iterable[Block], color: bool | None) -> str:
    """Return blocks fitted to the terminal, with colour if ``color`` (None: as rich detects)."""
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=color, no_color=color is False, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        for block in blocks:
            for lines, style in block.laid_out(console.width):
                for line in lines:
                    console.print(Text(line, style=style), soft_wrap=True)
    return captured.get()
