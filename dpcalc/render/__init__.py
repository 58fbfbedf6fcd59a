"""Renderers turn a report into text. Each is imported on demand."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from dpcalc.inert import Inert, inert
from dpcalc.render.asked import FULL as FULL
from dpcalc.render.asked import Asked as Asked
from dpcalc.report import Report

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "statement", "explain", "bibtex")
_TABLE, _PLAIN, _MARKDOWN, _STATEMENT = FORMATS[0], FORMATS[1], FORMATS[5], FORMATS[6]

PIECES = {"json": "machine.json_pieces", "jsonl": "machine.jsonl_pieces", "csv": "machine.csv_pieces"}
"""Formats for programs, written in pieces: module and function of the report."""

_WRITERS = {
    "statement": "models.render_statement",
    "explain": "several.render_explain",
    "bibtex": "several.render_bibtex",
}
"""Formats without blocks: module and function, from a report and the digits of numbers to a text."""

CHECK = "check"
"""The command whose reports have verdicts."""


def named(function: str) -> Callable[..., Any]:
    """Return a function of a renderer by ``module.name``; its module is imported when it is called."""

    def call(*arguments: Any) -> Any:
        module, _, name = function.rpartition(".")
        return getattr(importlib.import_module(f"dpcalc.render.{module}"), name)(*arguments)

    return call


def render(report: Report, format: str, precision: int = 6, *, color: bool | None = None, verbose: int = FULL) -> str:
    """Return the report in one of `FORMATS`.

    ``precision`` and ``color`` only affect human-readable formats, ``verbose`` the table and the plain text: with 0
    an answer has a few rows, with 1 it fits a screen, with `FULL` it has everything.
    """
    digits, coloured = Asked(precision).digits, format == _TABLE and color is not False
    if format in PIECES:
        text = "".join(named(PIECES[format])(report))
    elif format in _WRITERS:
        text = str(named(_WRITERS[format])(report, digits))
        text = _paragraphs(text) if format == _STATEMENT else text
    elif report.command == CHECK and format != _MARKDOWN:
        from dpcalc.render.check import text as verdicts

        text = verdicts.render(report, digits, color=coloured)
    else:
        from dpcalc.render import blocks, document

        if format == _MARKDOWN:
            text = blocks.markdown(document.page_document(report, digits))
        elif format == _PLAIN:
            tree = document.document(report, digits, verbose)
            text = blocks.plain(tree, None if verbose >= FULL else blocks.COLUMNS)
        else:
            text = blocks.table(document.document(report, digits, verbose), color)
    return Inert(inert(text, coloured=coloured))


def _paragraphs(text: str) -> str:
    """Wrap paragraphs, one per line, to the width of a screen."""
    from dpcalc.render.blocks import COLUMNS, Paragraph, plain

    return plain(map(Paragraph, text.splitlines()), COLUMNS)


MOST_CURVES = 100
"""The largest number of cases for which the curves behind the answers are computed."""


class Kind(NamedTuple):
    """A kind of report that ``--report KIND=FILE`` writes.

    Attributes:
        write: makes the text from a report and options of writing.
        suffixes: allowed suffixes of the file's name; empty for any.
        package: an optional package that it needs.
        curves: whether it shows the curves behind the answers, which are computed on demand.
        pieces: yields the text of ``write`` in pieces, for any number of cases; None if it cannot.
        excerpt: whether it shows only the cases that did not pass if there are very many.
    """

    write: Callable[[Report, Asked], str]
    suffixes: tuple[str, ...] = ()
    package: str = ""
    curves: bool = False
    pieces: Callable[[Report, Asked], Iterator[str]] | None = None
    excerpt: bool = False


def _in_format(format: str) -> Kind:
    """Return the kind of report for one of `FORMATS`."""
    return Kind(lambda report, asked: render(report, format, asked.precision, color=False))


SHARED: dict[str, Kind] = {
    "html": Kind(named("page.render_html"), package="jinja2", curves=True),
    "badge": Kind(named("badge.render_badge"), suffixes=(".json", ".svg")),
}
"""The kinds of every command with a report."""

REPORTS: dict[str, Kind] = {
    **{format: _in_format(format) for format in ("json", "jsonl", "csv", "markdown")},
    **SHARED,
}
"""The kinds of every query; ``dpcalc check`` has its own kinds and `SHARED`."""
