"""Reports of ``dpcalc check`` for other programs and for people.

Each kind is a module of its own, imported when asked for: a pure function of the report, without a clock, so that the
same recipes give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.render import SHARED, Asked, Kind
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.render.check.baseline import Snapshot

GITHUB, MARKDOWN = "github", "markdown"


def render(report: Report, kind: str, *, precision: int = 6, baseline: Snapshot | None = None) -> str:
    """Return a report of checked recipes in one of `KINDS`.

    Args:
        report: its cases carry a `dpcalc.report.Check` each; one without is left out.
        kind: ``junit`` is XML for the tests' tab of a CI server, ``sarif`` for code scanning, ``github`` the
            annotations of a workflow's log, ``markdown`` a comment on a pull request or the summary of a step.
        precision: significant digits in text; guarantees are rounded up. JSON has full precision.
        baseline: an earlier report (`dpcalc.render.check.baseline.load`), with which ``markdown`` compares.

    Raises:
        SpecError: there is no such kind.
    """
    if kind not in KINDS:
        raise SpecError(f"there is no report of kind {kind!r}", f"one of {', '.join(KINDS)}")
    return KINDS[kind].write(report, Asked(precision, baseline=baseline))


def _github(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.github import render_github

    return render_github(report, asked.precision)


def _markdown(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.markdown import render_markdown

    return render_markdown(report, asked.precision, asked.baseline)


def _json_pieces(report: Report, asked: Asked) -> Iterator[str]:
    from dpcalc.render.machine import json_pieces

    return json_pieces(report)


def _jsonl_pieces(report: Report, asked: Asked) -> Iterator[str]:
    from dpcalc.render.machine import jsonl_lines

    return jsonl_lines(report)


def _csv_pieces(report: Report, asked: Asked) -> Iterator[str]:
    from dpcalc.render.machine import csv_pieces

    return csv_pieces(report)


def _junit(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.junit import render_junit

    return render_junit(report, asked.precision)


def _sarif(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.sarif import render_sarif

    return render_sarif(report, asked.precision)


def _junit_pieces(report: Report, asked: Asked) -> Iterator[str]:
    from dpcalc.render.check.junit import junit_pieces

    return junit_pieces(report, asked.precision)


def _sarif_pieces(report: Report, asked: Asked) -> Iterator[str]:
    from dpcalc.render.check.sarif import sarif_pieces

    return sarif_pieces(report, asked.precision)


def _of_pieces(pieces: Callable[[Report, Asked], Iterator[str]]) -> Kind:
    return Kind(lambda report, asked: "".join(pieces(report, asked)), pieces=pieces)


KINDS: dict[str, Kind] = {
    "json": _of_pieces(_json_pieces),
    "junit": Kind(_junit, pieces=_junit_pieces),
    "sarif": Kind(_sarif, pieces=_sarif_pieces),
    GITHUB: Kind(_github, excerpt=True),
    MARKDOWN: Kind(_markdown, excerpt=True),
    "jsonl": _of_pieces(_jsonl_pieces),
    "csv": _of_pieces(_csv_pieces),
    **SHARED,
}
"""The kinds of report of a check."""
