"""A report in a notebook: the answer, what it means, and one row a case; it needs nothing that is not installed."""

from __future__ import annotations

import html
from collections.abc import Iterator

from dpcalc.inert import inert, printable
from dpcalc.render import CHECK
from dpcalc.render.blocks import Block, Paragraph, Style, Table
from dpcalc.render.check.verdicts import summary as verdicts
from dpcalc.render.layout import Row
from dpcalc.render.numbers import SIX
from dpcalc.render.page.case import headlines, reasons
from dpcalc.render.page.verdict import warnings, word_of
from dpcalc.render.several import common_lines, summary, summary_counts
from dpcalc.render.words.risk import meaning
from dpcalc.report import Case, Report

MAX_ROWS = 100
_BLANK = " "

_EMPHASIS = {Style.BAD: "strong", Style.ANSWER: "strong", Style.QUIET: "small"}
"""The element that shows what a paragraph is: a notebook has styles of its own."""


def render_notebook(report: Report) -> str:
    """Return the report as HTML for a notebook: text is escaped, and nothing is loaded."""
    text = "".join(_written(block) for block in _blocks(report))
    return inert(f"<div>{text}</div>".encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _blocks(report: Report) -> Iterator[Block]:
    yield from (Paragraph(line, style=Style.BAD) for line in warnings(report))
    if any(case.assertions or case.check for case in report.cases):
        counts = [verdicts(report)] if report.command == CHECK else summary_counts(report)
        yield Paragraph("".join(f"; {line}" for line in counts), word_of(report))
    if why := [line for place, case in enumerate(report.cases, 1) for line in _why(report, case, place)]:
        more = [f"{len(why) - MAX_ROWS} more are not shown"] if len(why) > MAX_ROWS else []
        yield Paragraph(facts=(*why[:MAX_ROWS], *more))
    if len(report.cases) == 1:
        yield from _answer(report.cases[0])
    else:
        head, *body = summary(report, SIX)
        yield Table([head, *body[:MAX_ROWS]])
        if len(body) > MAX_ROWS:
            yield Paragraph(f"{len(body) - MAX_ROWS} more rows are not shown")
    said = dict.fromkeys(f"warning: {text}" for case in report.cases for text in case.warnings)
    yield from map(Paragraph, list(said)[:MAX_ROWS])
    yield from (Paragraph(line, style=Style.QUIET) for line in common_lines(report))


def _answer(case: Case) -> Iterator[Block]:
    yield from (Paragraph(line, style=Style.ANSWER) for line in headlines(case, SIX))
    if meant := meaning(case):
        yield Paragraph(meant)
    if case.best:
        yield Paragraph(f"by {case.best.reference} ({case.best.bound})")
        yield Paragraph(facts=case.best.assumes)


def _why(report: Report, case: Case, place: int) -> list[str]:
    """Return why a case did not pass, with its name where there are several."""
    name = case.check.name if case.check else f"case {place}"
    return [f"{name}: {line}" if len(report.cases) > 1 else line for line in reasons(case, SIX)]


def _written(block: Block) -> str:
    """Return the HTML of a block."""
    if isinstance(block, Table):
        head, *body = block.rows
        return (
            f"<table><thead>{_row(head, 'th')}</thead><tbody>{''.join(_row(row, 'td') for row in body)}</tbody></table>"
        )
    if not (block.text or block.label):
        return f"<ul>{''.join(f'<li>{_text(fact)}</li>' for fact in block.facts)}</ul>"
    label = f"<strong>{_text(block.label)}</strong>" if block.label else ""
    tag = _EMPHASIS.get(block.style)
    return f"<p>{label}{f'<{tag}>{_text(block.text)}</{tag}>' if tag else _text(block.text)}</p>"


def _row(cells: Row, tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell) or _BLANK}</{tag}>' for cell in cells)}</tr>"


def _text(words: str) -> str:
    return html.escape(printable(words))
