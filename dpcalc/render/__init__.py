"""Renderers: a report becomes text. Each is imported when its format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from dpcalc.inert import Inert, inert
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.render.check.baseline import Snapshot

Renderer = Callable[[Report, int, bool | None], str]
"""From a report, the precision of text and whether to colour (None: as the terminal is) to text."""

_TABLE = "table"


def render(report: Report, format: str, precision: int = 6, *, color: bool | None = None, verbose: bool = True) -> str:
    """Return the report in one of `FORMATS`.

    ``precision`` and ``color`` matter to human-readable ones only, ``verbose`` to the table and the plain text: without
    it an answer is no longer than a screen.
    """
    renderers = _RENDERERS if verbose else {**_RENDERERS, **_BRIEF}
    text = renderers[format](report, precision, color)
    return Inert(inert(text, coloured=format == _TABLE and color is not False))


def _table(report: Report, precision: int, color: bool | None) -> str:
    if _is_check(report):
        from dpcalc.render import checks

        return checks.render(report, precision, color=color is not False)
    from dpcalc.render import table

    return table.render(report, precision, color=color)


def _plain(report: Report, precision: int, color: bool | None) -> str:
    if _is_check(report):
        from dpcalc.render import checks

        return checks.render(report, precision)
    from dpcalc.render import plain

    return plain.render(report, precision)


def _brief_table(report: Report, precision: int, color: bool | None) -> str:
    if _is_check(report):
        return _table(report, precision, color)
    from dpcalc.render import table

    return table.render(report, precision, color=color, verbose=False)


def _brief_plain(report: Report, precision: int, color: bool | None) -> str:
    if _is_check(report):
        return _plain(report, precision, color)
    from dpcalc.render import brief

    return brief.render(report, precision)


def _is_check(report: Report) -> bool:
    return report.command == "check"


def _json(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.machine import render_json

    return render_json(report)


def _jsonl(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.machine import render_jsonl

    return render_jsonl(report)


def _csv(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.machine import render_csv

    return render_csv(report)


def _markdown(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.markdown import render_markdown

    return render_markdown(report, precision)


def _statement(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.statement import render_statement

    return render_statement(report, precision)


def _explain(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.explain import render_explain

    return render_explain(report, precision)


def _bibtex(report: Report, precision: int, color: bool | None) -> str:
    from dpcalc.render.explain import render_bibtex

    return render_bibtex(report)


_RENDERERS: dict[str, Renderer] = {
    _TABLE: _table,
    "plain": _plain,
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "markdown": _markdown,
    "statement": _statement,
    "explain": _explain,
    "bibtex": _bibtex,
}

_BRIEF: dict[str, Renderer] = {_TABLE: _brief_table, "plain": _brief_plain}
"""The renderers that have a short form."""

FORMATS = tuple(_RENDERERS)


class Asked(NamedTuple):
    """How a report is to be written.

    Attributes:
        precision: significant digits in text; guarantees are rounded up.
        file: where it goes; its name says which form it has, where a kind has several.
        baseline: an earlier report of ``dpcalc check`` to compare with.
        typed: the words of the command line after ``dpcalc``; none where they are not known.
    """

    precision: int = 6
    file: str = ""
    baseline: Snapshot | None = None
    typed: tuple[str, ...] = ()


MOST_CURVES = 100
"""The curves behind the answers are computed for so many cases at most."""


class Kind(NamedTuple):
    """A kind of report that ``--report KIND=FILE`` writes.

    Attributes:
        write: from a report and how it is to be written to its text.
        suffixes: how the name of its file ends; anyhow where there are none.
        package: that it needs and that not every installation has.
        curves: whether it shows the curves behind the answers, which are computed where they are asked for.
        pieces: what ``write`` returns, in pieces, of any number of cases; None where there is no such way.
        excerpt: whether of very many cases it shows those that did not pass.
    """

    write: Callable[[Report, Asked], str]
    suffixes: tuple[str, ...] = ()
    package: str = ""
    curves: bool = False
    pieces: Callable[[Report, Asked], Iterator[str]] | None = None
    excerpt: bool = False


def _in_format(format: str) -> Kind:
    """Return the kind of report that is one of `FORMATS`."""
    return Kind(lambda report, asked: render(report, format, asked.precision, color=False))


def _html(report: Report, asked: Asked) -> str:
    from dpcalc.render.page import render_html

    return render_html(report, asked)


def _badge(report: Report, asked: Asked) -> str:
    from dpcalc.render.badge import render_badge

    return render_badge(report, asked)


SHARED: dict[str, Kind] = {
    "html": Kind(_html, package="jinja2", curves=True),
    "badge": Kind(_badge, suffixes=(".json", ".svg")),
}
"""What every command writes that has a report."""

REPORTS: dict[str, Kind] = {
    **{format: _in_format(format) for format in ("json", "jsonl", "csv", "markdown")},
    **SHARED,
}
"""What every query writes; ``dpcalc check`` has kinds of its own beside `SHARED`."""
