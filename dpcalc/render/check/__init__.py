"""Reports of ``dpcalc check`` for other programs and for people.

Each kind is a module of its own, imported when asked for: a pure function of the report, without a clock, so that the
same recipes give the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.render import Asked, Kind
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


def _json(report: Report, asked: Asked) -> str:
    from dpcalc.render.machine import render_json

    return render_json(report)


def _junit(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.junit import render_junit

    return render_junit(report, asked.precision)


def _sarif(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.sarif import render_sarif

    return render_sarif(report, asked.precision)


def _github(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.github import render_github

    return render_github(report, asked.precision)


def _markdown(report: Report, asked: Asked) -> str:
    from dpcalc.render.check.markdown import render_markdown

    return render_markdown(report, asked.precision, asked.baseline)


KINDS: dict[str, Kind] = {
    "json": Kind(_json),
    "junit": Kind(_junit),
    "sarif": Kind(_sarif),
    GITHUB: Kind(_github),
    MARKDOWN: Kind(_markdown),
}
"""The kinds of report of a check."""
