"""A check whose cases are written on arrival: more than fit in memory, or into a checkpoint."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dpcalc.cli.output.conclusion import Printing, conclude, finish, trouble_of, warn
from dpcalc.cli.output.printing import PLOT
from dpcalc.cli.output.publish import CHECKED
from dpcalc.cli.output.reports import Destination, asked
from dpcalc.cli.output.terminal import Lost, attempt, color_of
from dpcalc.errors import SpecError
from dpcalc.files.output import in_pieces, say, write
from dpcalc.inert import inert
from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.render import render
from dpcalc.render.check import GITHUB, KINDS, MARKDOWN
from dpcalc.render.machine import case_line, end_line
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from dpcalc.recipes.running.checking import Checking
    from dpcalc.recipes.running.selection import Selection
    from dpcalc.render.check.inputs import Snapshot

_FEW = 20  # cases without a progress bar


def in_lines(destinations: Iterable[Destination]) -> bool:
    """Return whether all reports can be made from cases written as lines, which have no curves and no query."""
    kinds = [None if destination.kind == PLOT else CHECKED[destination.kind] for destination in destinations]
    return all(kind is not None and (kind.pieces is not None or kind.excerpt) for kind in kinds)


def refuse_large(count: int, destinations: Iterable[Destination], baseline: str | None) -> None:
    """Refuse reports that a check of so many cases cannot write.

    Raises:
        SpecError: a report shows every case at once, or it is compared with a baseline.
    """
    if count <= MAX_CASES:
        return
    what = f"of {count} cases: at most {MAX_CASES} are"
    for destination in destinations:
        if destination.kind == PLOT or (
            CHECKED[destination.kind].pieces is None and not CHECKED[destination.kind].excerpt
        ):
            written = ", ".join(name for name, kind in KINDS.items() if kind.pieces or kind.excerpt)
            raise SpecError(
                f"{destination.option} {what} shown by it", f"choose among {written}, or check fewer with --run"
            )
    if baseline is not None:
        raise SpecError(f"--baseline {what} compared", "compare parts of the check, with --run")


def check_all(
    selection: Selection,
    printing: Printing,
    destinations: Sequence[Destination],
    earlier: Snapshot | None,
    **how: Any,
) -> None:
    """Check cases, write the reports, and exit with the code of the verdict.

    Args:
        selection: of the cases.
        printing, destinations: the output of the verdict, and the reports.
        earlier: what it is compared with.
        how: as for `dpcalc.recipes.running.checking.Checking`.

    Raises:
        click.exceptions.Exit: with the code, where that is not 0.
    """
    from dpcalc.recipes.running.checking import Checking

    count = len(selection.places)
    with Checking(selection, **how) as checking, contextlib.closing(checking.cases()) as cases:
        said = checking.large or (printing.in_lines and earlier is None and in_lines(destinations))
        with _progress(cases, count, lambda: checking.tally.failed) as passing:
            if said and printing.in_lines:
                result = _print_lines(passing, printing.file, checking)
            else:
                for case in passing:
                    warn(case) if said else None
                result = checking.report()
        left = count - checking.done
        if checking.large:
            _conclude(result, printing, destinations, left)
        else:
            conclude(result, printing, destinations, earlier, unchecked=left, said=said)


def _print_lines(cases: Iterable[Case], file: str | None, checking: Checking) -> Report:
    """Print the cases as lines on arrival, and the verdict as the last line."""
    with in_pieces(file) as put:
        for case in cases:
            put(case_line("check", case) + "\n")
            warn(case)
        result = checking.report()
        for place in range(checking.done, len(result.cases)):
            put(case_line("check", result.cases[place]) + "\n")
        put(end_line(result))
    return result


@contextlib.contextmanager
def _progress(cases: Iterator[Case], count: int, failed: Callable[[], int]) -> Iterator[Iterator[Case]]:
    """Pass the cases on; on a terminal, show for many the progress, the failures and the time left."""
    if count < _FEW or sys.stderr is None or not sys.stderr.isatty():
        yield cases
        return
    with click.progressbar(
        cases,
        length=count,
        label="cases",
        file=sys.stderr,
        show_pos=True,
        item_show_func=lambda _: f"{failed()} failed",
    ) as bar:
        yield iter(bar)


def _conclude(result: Report, printing: Printing, destinations: Sequence[Destination], left: int) -> None:
    from dpcalc.recipes.running.checking import excerpt

    lost: list[Lost] = []
    some = excerpt(result)
    for destination in destinations:
        lost += attempt(
            f"{destination.option}{destination.path}", partial(_report, result, some, destination, printing.precision)
        )
    lost += attempt("the text", partial(_print, result, some, printing))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = KINDS[GITHUB].write(some, asked(Destination(GITHUB, ""), printing.precision))
        say(text.rstrip("\n"), commands=True)
    finish(result, lost, unchecked=left, ungated=not result.gates[0], trouble=_first_trouble(result, some))


def _report(result: Report, some: Report, each: Destination, precision: int) -> None:
    kind, how = CHECKED[each.kind], asked(each, precision)
    if kind.pieces is None:
        write(kind.write(some, how), each.path, each.option, commands=each.kind == GITHUB)
        return
    with in_pieces(each.path, each.option) as put:
        for piece in kind.pieces(result, how):
            put(piece)


def _print(result: Report, some: Report, printing: Printing) -> None:
    if printing.in_lines:  # printed on arrival
        return
    if printing.format in ("json", "csv"):
        _report(result, some, Destination(printing.format, printing.file or "-"), printing.precision)
    elif printing.format == MARKDOWN:
        write(KINDS[MARKDOWN].write(some, asked(Destination(MARKDOWN, ""), printing.precision)), printing.file)
    else:
        color = color_of(printing.color)
        write(inert(render(some, printing.format, printing.precision, color=bool(color)), coloured=True), printing.file)


def _first_trouble(result: Report, some: Report) -> str:
    """Return the first case that did not pass, in a line."""
    troubled = [case.check for case in some.cases if case.check and case.check.exit_code]
    counts = result.statuses
    number = counts.get("failed", 0) + counts.get("error", 0)
    return trouble_of(troubled[0], number, result.tally.cases) if troubled else f"error: {number} cases did not pass"
