"""Blocks as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dpcalc.render.blocks import Block, Style, Table

_BOLD = (Style.ANSWER, Style.BAD)


def markdown(blocks: Iterable[Block]) -> str:
    """Return blocks as GitHub-flavoured Markdown: a gap stands before and after a table, and none after a gap."""
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
    if block.row:  # it is Markdown as it stands
        yield block.text
    elif block.item:
        yield f"- {label}{text}"
    elif block.style in _BOLD:
        yield f"**{block.text}**  "
    else:
        yield f"{label}{text}{'  ' if text and block.style != Style.QUIET else ''}"


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table, the first row of which is the head, of cells that are escaped."""
    return ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(rows[0]), *rows[1:])]


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;").replace("_", "\\_")
