"""A report in a notebook: the blocks of its text on a screen, as HTML, without other packages."""

from __future__ import annotations

import html
from collections.abc import Iterator

from dpcalc.inert import inert, printable
from dpcalc.render import CHECK
from dpcalc.render.blocks import Block, Paragraph, Style, Table
from dpcalc.render.check import text as verdicts
from dpcalc.render.document import document
from dpcalc.render.layout import Row
from dpcalc.render.numbers import SIX
from dpcalc.render.page.verdict import warnings, word_of
from dpcalc.report import Report

MAX_ROWS = 100
"""The largest number of rows of a table, or of lines of a check's verdicts."""

_EMPHASIS = {Style.BAD: "strong", Style.ANSWER: "strong", Style.QUIET: "small"}
"""The element for each style of a paragraph: a notebook has its own styles."""


def render_notebook(report: Report) -> str:
    """Return the report as HTML for a notebook: text is escaped, and nothing is loaded."""
    text = "".join(_written(block) for block in _blocks(report))
    return inert(f"<div>{text}</div>".encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _blocks(report: Report) -> Iterator[Block]:
    if report.command == CHECK:
        yield from (Paragraph(line, style=Style.BAD) for line in warnings(report))
        lines = list(filter(None, verdicts.render(report).splitlines()))
        left_out = [f"{len(lines) - MAX_ROWS} lines are left out"] if len(lines) > MAX_ROWS else []
        yield Paragraph(lines[-1], word_of(report), Style.ANSWER if not report.exit_code else Style.BAD)
        yield Paragraph(facts=(*lines[: MAX_ROWS - 1], *left_out))
        return
    said = dict.fromkeys(warnings(report) if len(report.cases) != 1 else ())
    said |= dict.fromkeys(f"warning: {text}" for case in report.cases for text in case.warnings)
    yield from (Paragraph(text, style=Style.BAD) for text in list(said)[:MAX_ROWS])
    *blocks, _ = document(report, SIX, verbose=int(len(report.cases) == 1))  # the last one names the flags for more
    yield from blocks


def _written(block: Block) -> str:
    """Return the HTML of a block."""
    if isinstance(block, Table):
        head, *body = block.rows
        more = f"<p>{len(body) - MAX_ROWS} more rows are not shown</p>" if len(body) > MAX_ROWS else ""
        rows = "".join(_row(row, "td") for row in body[:MAX_ROWS])
        return f"<table><thead>{_row(head, 'th')}</thead><tbody>{rows}</tbody></table>{more}"
    label = f"<strong>{_text(block.label)}</strong> " if block.label else ""
    tag = _EMPHASIS.get(block.style)
    listed = "".join(f"<li>{_text(fact)}</li>" for fact in block.facts)
    return (
        f"<p>{label}{f'<{tag}>{_text(block.text)}</{tag}>' if tag else _text(block.text)}</p>"
        f"{f'<ul>{listed}</ul>' if listed else ''}"
    )


def _row(cells: Row, tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(words: str) -> str:
    return html.escape(printable(words).replace("<=", "\u2264").replace(">=", "\u2265"))
