"""The end of a check: the verdict is compared, written, printed and turned into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from dpcalc.checked import Check, Status
from dpcalc.cli.output.printing import format_of
from dpcalc.cli.output.reports import Destination
from dpcalc.cli.output.terminal import Lost, color_of, tell, worst
from dpcalc.files.output import say, write
from dpcalc.inert import printable
from dpcalc.render.check import MARKDOWN, render
from dpcalc.render.check.verdicts import MERGE, place
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from dpcalc.render.check.inputs import Snapshot


class Printing(NamedTuple):
    """The output of the verdicts."""

    format: str
    file: str | None
    precision: int
    color: str

    @property
    def in_lines(self) -> bool:
        """Whether verdicts are printed as lines of JSON."""
        return self.format == "jsonl"

    @classmethod
    def of(cls, *, format: str | None, as_json: bool, output: str | None, precision: int, color: str) -> Printing:
        """Take the output options.

        Raises:
            SpecError: two formats are given.
        """
        return cls(format_of(format, as_json, output), output, precision, color)


def load_baseline(path: str | None) -> Snapshot | None:
    """Load the report to compare with.

    Raises:
        SpecError: it cannot be read, or is not such a report.
    """
    if path is None:
        return None
    from dpcalc.render.check.baseline import load

    return load(path)


def conclude(
    result: Report,
    printing: Printing,
    destinations: Sequence[Destination],
    earlier: Snapshot | None,
    *,
    unchecked: int = 0,
    said: bool = False,
) -> None:
    """Write and print a verdict, and exit with its code.

    Args:
        result: of a check.
        printing, destinations: how it is printed, and the reports asked for.
        earlier: what it is compared with.
        unchecked: the number of cases left when the check stopped.
        said: whether the cases and their warnings were printed already.

    Raises:
        click.exceptions.Exit: with the code, where that is not 0.
    """
    from dpcalc.cli.output.publish import publish, shown

    if earlier is not None:
        from dpcalc.recipes.judging.objections import fail_weaker
        from dpcalc.render.check.baseline import compared
        from dpcalc.render.numbers import Digits

        result = fail_weaker(compared(result, earlier, Digits(printing.precision)))
    for case in () if said else result.cases:
        warn(case)
    lost = publish(result, destinations, printing.precision, earlier)
    if not (said and printing.in_lines):
        lost += shown(
            result, "the text", lambda cases: _text(cases, printing, earlier), lambda text: write(text, printing.file)
        )
    answered = any(case.check and case.check.status != Status.SKIPPED for case in result.cases)
    ungated = answered and not any(case.assertions for case in result.cases)
    finish(result, lost, unchecked=unchecked, ungated=ungated, trouble=_first_trouble(result))


def finish(result: Report, lost: Sequence[Lost], *, unchecked: int, ungated: bool, trouble: str) -> None:
    """Say what a check leaves open, and exit with its code.

    Args:
        result: of the check.
        lost: reports that could not be written.
        unchecked: the number of cases left when the check stopped.
        ungated: whether cases were answered and none has a gate.
        trouble: the first case that did not pass; said if the code is not 0.

    Raises:
        click.exceptions.Exit: with the code, where that is not 0.
    """
    if unchecked:
        say(f"warning: stopped early: {unchecked} cases were not checked")
    if ungated and not result.exit_code:
        say("warning: no case has a gate: this check fails only where there is no answer")
    if result.exit_code:
        say(trouble)
    tell(lost)
    if code := worst([result.exit_code, _left_out(result), *(one.exit_code for one in lost)]):
        raise click.exceptions.Exit(code)


def warn(case: Case) -> None:
    """Print the warnings of a case."""
    for warning in case.warnings:
        say(printable(f"warning: {case.check.name if case.check else ''}: {warning}"))


def _left_out(result: Report) -> int:
    """Return 1, and say why, if a strict check is of one shard: the gates of the others were not judged."""
    shard = result.shard
    others = 0 if shard is None else shard.cases - len(shard.places)
    if shard is None or not others or not any(strict for _, strict in shard.recipes):
        return 0
    said = f"error: strict: {others} cases are left to other shards, and this one is no verdict"
    say(f"{said}\n  hint: {MERGE}")
    return 1


def _text(result: Report, printing: Printing, baseline: Snapshot | None) -> str:
    """Return what is printed."""
    from dpcalc import render as rendering

    if printing.format == MARKDOWN:
        return render(result, MARKDOWN, precision=printing.precision, baseline=baseline)
    color = color_of(printing.color)
    if color is None:
        color = printing.file is None and sys.stdout is not None and sys.stdout.isatty()
    return rendering.render(result, printing.format, printing.precision, color=color)


def _first_trouble(result: Report) -> str:
    """Return the first case that did not pass, in a line."""
    troubled = [case.check for case in result.cases if case.check and case.check.exit_code]
    return trouble_of(troubled[0], len(troubled), len(result.cases)) if troubled else ""


def trouble_of(first: Check, number: int, of: int) -> str:
    """Describe the first of so many cases that did not pass, in a line."""
    cure = f"\n  hint: {printable(first.hint)}" if first.hint else ""
    count = f"{number} of {of} cases did not pass; the first: " if number > 1 else ""
    return f"error: {count}{place(first)}: {printable(f'{first.name}: {first.message}')}{cure}"
