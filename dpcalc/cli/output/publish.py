"""Write the reports of a check separately, so that a failure affects no other report and no verdict."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from dpcalc.checked import Status
from dpcalc.cli.output import printing
from dpcalc.cli.output.reports import Destination, asked
from dpcalc.cli.output.terminal import CARD, Lost, attempt, lost_by
from dpcalc.errors import SpecError
from dpcalc.files.output import append, say, write, write_bytes
from dpcalc.inert import printable
from dpcalc.render.asked import Asked
from dpcalc.render.check import GITHUB, KINDS, MARKDOWN, render
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot


CHECKED = {**KINDS, **CARD}
"""The kinds of report of a check."""


def shown(report: Report, what: str, rendered: Callable[[Report], str], put: Callable[[str], None]) -> list[Lost]:
    """Render a report and write it; a case that cannot be rendered is replaced by an error."""
    lost: list[Lost] = []

    def work() -> None:
        try:
            text = rendered(report)
        except Exception as error:
            kept = tuple(_or_error(case, rendered, report) for case in report.cases)
            text = rendered(report._replace(cases=kept))
            lost.append(lost_by(what, error))
        put(text)

    return attempt(what, work) + lost


def _or_error(case: Case, rendered: Callable[[Report], str], report: Report) -> Case:
    """Return the case if it can be rendered, else an error in its place."""
    try:
        rendered(report._replace(cases=(case,)))
    except Exception as error:
        return _unshown(case, error)
    return case


def _unshown(case: Case, error: Exception) -> Case:
    if case.check is None:
        return Case(case.algorithm, {}, ())
    why = f"internal error: this report cannot show the case: {type(error).__name__}"
    return Case(
        case.algorithm, {}, (), check=case.check._replace(status=Status.ERROR, message=why, hint=None, exit_code=4)
    )


def publish(
    report: Report, destinations: Sequence[Destination], precision: int, baseline: Snapshot | None
) -> list[Lost]:
    """Write the reports asked for and, within GitHub Actions, annotations and the summary of the step.

    Returns:
        What could not be written. For the summary, which is automatic, there is only a warning.
    """

    def renderer(kind: str) -> Callable[[Report], str]:
        return lambda destination: render(destination, kind, precision=precision, baseline=baseline)

    def to_file(destination: Destination) -> Callable[[str], None]:
        return lambda text: write(text, destination.path, destination.option, commands=destination.kind == GITHUB)

    lost: list[Lost] = []
    for destination in destinations:
        what = f"{destination.option}{destination.path}"
        if destination.kind == printing.PLOT:
            lost += attempt(what, partial(_draw, report, destination.path))
        elif destination.kind in CARD:  # written entirely or not at all: no case is replaced by an error
            lost += attempt(what, partial(_write_card, report, destination, asked(destination, precision)))
        else:
            write_it, how = CHECKED[destination.kind].write, asked(destination, precision, baseline)
            lost += shown(report, what, partial(_written, write_it, how), to_file(destination))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        lost += shown(report, "the annotations", renderer(GITHUB), lambda text: say(text.rstrip("\n"), commands=True))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        lost += shown(report, "the summary of the step", renderer(MARKDOWN), lambda text: _append(text, summary))
    return lost


def _written(write_it: Callable[[Report, Asked], str], how: Asked, report: Report) -> str:
    return write_it(report, how)


def _write_card(report: Report, to: Destination, how: Asked) -> None:
    write(CARD[to.kind].write(report, how), to.path, to.option)


def _draw(report: Report, path: str) -> None:
    write_bytes(printing.of_cases(report, path), path, "--report plot=")


def _append(text: str, path: str) -> None:
    try:
        append(text + "\n", path, "GITHUB_STEP_SUMMARY")
    except SpecError as error:
        say(printable(f"warning: the summary of the step: {error.message}"))
