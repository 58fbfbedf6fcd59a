"""A report in a notebook: the answer, what it means, and one row a case; it needs nothing that is not installed."""

from __future__ import annotations

from collections.abc import Iterator

from dpcalc.inert import inert
from dpcalc.render.check.verdicts import summary as verdicts
from dpcalc.render.numbers import SIX
from dpcalc.render.page.case import headlines, reasons
from dpcalc.render.page.outcome import warnings, word_of
from dpcalc.render.page.svg import element, text
from dpcalc.render.several import common_lines, summary, summary_counts
from dpcalc.render.words import training
from dpcalc.render.words.meaning import meaning
from dpcalc.report import Case, Report

MAX_ROWS = 100


def render_notebook(report: Report) -> str:
    """Return the report as HTML for a notebook, which has styles of its own: text is escaped, and nothing is loaded."""
    return inert(element("div", *_parts(report)).encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _parts(report: Report) -> Iterator[str]:
    yield from (element("p", element("strong", text(line))) for line in warnings(report))
    if any(case.assertions or case.check for case in report.cases):
        yield element("p", element("strong", text(word_of(report))), *map(text, _counts(report)))
    if why := [line for place, case in enumerate(report.cases, 1) for line in _why(report, case, place)]:
        more = [f"{len(why) - MAX_ROWS} more are not shown"] if len(why) > MAX_ROWS else []
        yield element("ul", *(element("li", text(line)) for line in (*why[:MAX_ROWS], *more)))
    if len(report.cases) == 1:
        case = report.cases[0]
        yield from (element("p", element("strong", text(line))) for line in headlines(case, SIX))
        if not training.warning(case) and (meant := meaning(case)):
            yield element("p", text(meant))
        if case.best:
            yield element("p", text(f"by {case.best.reference} ({case.best.bound})"))
            yield element("ul", *(element("li", text(assumed)) for assumed in case.best.assumes))
    else:
        yield _table(summary(report, SIX))
    yield from (element("p", element("small", text(line))) for line in common_lines(report))


def _why(report: Report, case: Case, place: int) -> list[str]:
    """Return why a case did not pass, with its name where there are several."""
    name = case.check.name if case.check else f"case {place}"
    return [f"{name}: {line}" if len(report.cases) > 1 else line for line in reasons(case, SIX)]


def _counts(report: Report) -> list[str]:
    lines = [verdicts(report)] if report.command == "check" else list(summary_counts(report))
    return [f"; {line}" for line in lines]


def _table(rows: list[tuple[str, ...]]) -> str:
    head, *body = rows
    shown = [element("tr", *(element("td", text(cell) or " ") for cell in row)) for row in body[:MAX_ROWS]]
    left = len(body) - MAX_ROWS
    more = element("p", text(f"{left} more rows are not shown")) if left > 0 else ""
    named = element("tr", *(element("th", text(cell) or " ") for cell in head))
    return element("table", element("thead", named), element("tbody", *shown)) + more
