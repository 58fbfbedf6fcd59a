"""A check whose cases are written as they come: of more than are held in memory, or into a checkpoint."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click

from dpcalc.cli.conclusion import Printing, conclude, left_out, trouble
from dpcalc.cli.lost import Lost, attempt, tell, worst
from dpcalc.cli.plot import PLOT
from dpcalc.cli.printing import color_of
from dpcalc.cli.publish import CHECKED
from dpcalc.cli.reports import Destination, asked
from dpcalc.errors import SpecError
from dpcalc.files.output import in_pieces, say, write
from dpcalc.inert import inert, printable
from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.render import render
from dpcalc.render.check import GITHUB, KINDS, MARKDOWN
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.recipes.running.stream import Finished, Stream, Streamed

_NO_WARNING = '"warnings": []'


def in_lines(destinations: Iterable[Destination]) -> bool:
    """Return whether all reports can be made of cases that were written as lines: they have no curves and no query."""
    kinds = [None if each.kind == PLOT else CHECKED[each.kind] for each in destinations]
    return all(kind is not None and (kind.pieces is not None or kind.excerpt) for kind in kinds)


def refuse_large(count: int, destinations: Iterable[Destination], baseline: str | None) -> None:
    """Refuse what a check of so many cases cannot write.

    Raises:
        SpecError: a report shows every case at once, or it is compared with a baseline.
    """
    if count <= MAX_CASES:
        return
    what = f"of {count} cases: at most {MAX_CASES} are"
    for each in destinations:
        if each.kind == PLOT or (CHECKED[each.kind].pieces is None and not CHECKED[each.kind].excerpt):
            written = ", ".join(name for name, kind in KINDS.items() if kind.pieces or kind.excerpt)
            raise SpecError(f"{each.option} {what} shown by it", f"choose among {written}, or check fewer with --run")
    if baseline is not None:
        raise SpecError(f"--baseline {what} compared", "compare parts of the check, with --run")


def check_streamed(
    stream: Stream,
    printing: Printing,
    destinations: Sequence[Destination],
    *,
    count: int,
    finished: Finished,
) -> None:
    """Check the cases of a stream, write what is asked for, and exit with the code of the verdict.

    Args:
        stream: of the cases.
        printing, destinations: how the verdict is printed, and the reports asked for.
        count: of the cases.
        finished: makes the report, once all cases were yielded.

    Raises:
        click.exceptions.Exit: with the code, where that is not 0.
    """
    from dpcalc.cli.check import progress

    tally = stream.tally
    with contextlib.closing(stream.lines()) as lines, progress(lines, count, lambda: tally.failed) as shown:
        if printing.format == "jsonl":
            result = _print_lines(shown, printing.file, finished)
        else:
            for line in shown:
                _warn(line)
            result = finished()
    left = count - (result.tally.cases - finished.more)
    if count <= MAX_CASES:
        whole = Report(**{**result._asdict(), "cases": tuple(result.cases)})
        conclude(whole, printing, destinations, None, unchecked=left, said=True)
        return
    _conclude(result, printing, destinations, left)


def _print_lines(lines: Iterable[str], file: str | None, finished: Finished) -> Streamed:
    """Print the cases as lines as they come, and the verdict as the last one."""
    from dpcalc.render.machine import case_line, end_line

    with in_pieces(file) as put:
        for line in lines:
            put(line + "\n")
            _warn(line)
        result = finished()
        for case in result.cases[len(result.cases) - finished.more :]:
            put(case_line("check", case) + "\n")
        put(end_line(result))
    return result


def _warn(line: str) -> None:
    """Say what a case warns of."""
    if _NO_WARNING not in line:
        fields = json.loads(line)
        for warning in fields["warnings"]:
            say(printable(f"warning: {fields['check']['name']}: {warning}"))


def _conclude(result: Streamed, printing: Printing, destinations: Sequence[Destination], left: int) -> None:
    lost: list[Lost] = []
    some = result.excerpt()
    for each in destinations:
        lost += attempt(f"{each.option}{each.path}", partial(_report, result, some, each, printing.precision))
    lost += attempt("the text", partial(_print, result, some, printing))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = KINDS[GITHUB].write(some, asked(Destination(GITHUB, ""), printing.precision))
        say(text.rstrip("\n"), commands=True)
    if left:
        say(f"warning: stopped early: {left} cases were not checked")
    if not result.gates[0]:
        say("warning: no case has a gate: this check fails only where there is no answer")
    if result.exit_code:
        say(_first(result, some))
    tell(lost)
    if code := worst([result.exit_code, left_out(result), *(one.exit_code for one in lost)]):
        raise click.exceptions.Exit(code)


def _report(result: Streamed, some: Streamed, each: Destination, precision: int) -> None:
    kind, how = CHECKED[each.kind], asked(each, precision)
    if kind.pieces is None:
        write(kind.write(some, how), each.path, each.option, commands=each.kind == GITHUB)
        return
    with in_pieces(each.path, each.option) as put:
        for piece in kind.pieces(result, how):
            put(piece)


def _print(result: Streamed, some: Streamed, printing: Printing) -> None:
    if printing.format == "jsonl":  # printed as it came
        return
    if printing.format in ("json", "csv"):
        _report(result, some, Destination(printing.format, printing.file or "-"), printing.precision)
    elif printing.format == MARKDOWN:
        write(KINDS[MARKDOWN].write(some, asked(Destination(MARKDOWN, ""), printing.precision)), printing.file)
    else:
        color = color_of(printing.color)
        write(inert(render(some, printing.format, printing.precision, color=bool(color)), coloured=True), printing.file)


def _first(result: Streamed, some: Streamed) -> str:
    """Return the first case that did not pass, in a line."""
    troubled = [case.check for case in some.cases if case.check and case.check.exit_code]
    counts = result.statuses
    number = counts.get("failed", 0) + counts.get("error", 0)
    return trouble(troubled[0], number, result.tally.cases) if troubled else f"error: {number} cases did not pass"
