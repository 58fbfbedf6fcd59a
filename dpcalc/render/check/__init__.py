"""Reports of ``dpcalc check`` for other programs and for people.

Each kind is a separate module, imported on demand: a pure function of the report, without a clock, so the same recipes
give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dpcalc.errors import SpecError
from dpcalc.render import PIECES, SHARED, Asked, Kind, named
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot

GITHUB, MARKDOWN = "github", "markdown"


def render(report: Report, kind: str, *, precision: int = 6, baseline: Snapshot | None = None) -> str:
    """Return a report of checked recipes in one of `KINDS`.

    Args:
        report: its cases have a `dpcalc.checked.Check` each; a case without one is omitted.
        kind: ``junit`` is XML for the tests' tab of a CI server, ``sarif`` for code scanning, ``github`` the
            annotations of a workflow's log, ``markdown`` a comment on a pull request or the summary of a step.
        precision: significant digits in text; guarantees are rounded up. JSON has full precision.
        baseline: an earlier report (`dpcalc.render.check.baseline.load`) for ``markdown`` to compare with.

    Raises:
        SpecError: there is no such kind.
    """
    if kind not in KINDS:
        raise SpecError(f"there is no report of kind {kind!r}", f"one of {', '.join(KINDS)}")
    return KINDS[kind].write(report, Asked(precision, baseline=baseline))


def _of_pieces(function: str) -> Kind:
    """Return a kind whose text is made in pieces by a function of the report and the digits of texts."""
    digits = function not in PIECES.values()

    def pieces(report: Report, asked: Asked) -> Iterator[str]:
        written: Iterator[str] = named(function)(report, *([asked.digits] if digits else []))
        return written

    return Kind(lambda report, asked: "".join(pieces(report, asked)), pieces=pieces)


KINDS: dict[str, Kind] = {
    "json": _of_pieces(PIECES["json"]),
    "junit": _of_pieces("check.github.junit_pieces"),
    "sarif": _of_pieces("check.github.sarif_pieces"),
    GITHUB: Kind(named("check.github.render_github"), excerpt=True),
    MARKDOWN: Kind(named("check.text.render_markdown"), excerpt=True),
    "jsonl": _of_pieces(PIECES["jsonl"]),
    "csv": _of_pieces(PIECES["csv"]),
    **SHARED,
}
"""The kinds of report of a check."""
