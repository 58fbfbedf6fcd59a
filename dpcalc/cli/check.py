"""``dpcalc check``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from dpcalc.cli import plot
from dpcalc.cli.options import color_of, format_of, say
from dpcalc.commands import report
from dpcalc.errors import SpecError
from dpcalc.output import write, write_bytes
from dpcalc.render.check import KINDS, render
from dpcalc.render.check.words import place, printable
from dpcalc.report import Case, Report

_FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown")
_FEW = 20  # cases without a progress bar


@click.command("check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--run", "pattern", metavar="REGEX", help="Only cases whose names match somewhere.")
@click.option("--list", "listing", is_flag=True, help="List the cases, and evaluate nothing.")
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes to share work."
)
@click.option("--fail-fast", is_flag=True, help="Stop after the first case that fails or has no answer.")
@click.option("--certify", is_flag=True, help="Prove the guarantees in ball arithmetic; warn of those not provable so.")
@click.option(
    "--report",
    "reports",
    metavar="KIND=FILE",
    multiple=True,
    help=f"Also write a report: {', '.join(KINDS)}, or plot=FILE.svg. Repeatable.",
)
@click.option("--baseline", metavar="FILE", help="An earlier --report json=FILE, with which markdown compares.")
@click.option("--format", type=click.Choice(_FORMATS), help="Default: table on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--output", "-o", metavar="FILE", help="Write to FILE, atomically, instead of stdout.")
@click.option(
    "--precision",
    type=click.IntRange(2, 17),
    default=6,
    show_default=True,
    help="Significant digits in text; guarantees are rounded up.",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto")
def command(
    files: tuple[str, ...], pattern: str | None, listing: bool, jobs: int, fail_fast: bool, certify: bool, **output: Any
) -> None:
    """Run recipes: YAML files of cases, each a description of a run, a question, and gates on the answer.

    \b
    A recipe, budget.yaml:
      dpcalc: recipe/1
      defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
      cases:
        release:
          algorithm: shuffled
          noise_std: {from: train.yaml#/noise/std}
          assert: epsilon <= 2
    Does every gate hold?
      dpcalc check budget.yaml
    In continuous integration, with a report for the tests' tab:
      dpcalc check budget.yaml --report junit=gates.xml

    Exits with 0 if every gate held; 1 if one did not; 2 if a recipe is malformed, nothing matched, or all is skipped;
    3 if a case has no valid bound or is infeasible; 4 on an internal error, or if --certify finds a guarantee below
    the truth. Where several hold, 2 comes before 4,
    4 before 3, and 3 before 1: after a 1, every gate was judged.
    """
    from dpcalc.recipes.expand import Malformed
    from dpcalc.recipes.run import checked, exit_code, malformed, read_all, select

    destinations = _destinations(output, files)
    baseline = _baseline(output.pop("baseline"), output, destinations)
    try:
        selected = select(read_all(files), pattern)
    except Malformed as error:
        _publish(report("check", malformed(error)), destinations, output["precision"], baseline)
        for earlier in error.errors[:-1]:
            say(_told(earlier))
        raise error.errors[-1] from None
    if listing:
        write(
            "".join(f"{one.entry.name}  {one.entry.command}  {one.entry.place}\n" for one in selected), output["output"]
        )
        return
    due = sum(one.entry.skip is None for one in selected)
    with _progress(checked(selected, jobs=jobs, fail_fast=fail_fast, certify=certify), len(selected)) as cases:
        found = report("check", list(cases))
    for case in found.cases:
        for warning in case.warnings:
            say(f"warning: {case.check.name if case.check else ''}: {warning}")
    text = _text(found, output, baseline)
    _publish(found, destinations, output["precision"], baseline)
    write(text, output["output"])
    if len(found.cases) < len(selected):
        say(f"warning: stopped early: {len(selected) - len(found.cases)} cases were not checked")
    if due and not any(case.assertions for case in found.cases):
        say("warning: no case has a gate: this check fails only where there is no answer")
    if code := exit_code(found.cases):
        say(_first_trouble(found))
        raise click.exceptions.Exit(code)


def _destinations(output: dict[str, Any], files: Sequence[str]) -> list[tuple[str, str]]:
    """Return the reports asked for, kind and file, and check every option that says where something is written.

    Raises:
        SpecError: a kind is unknown, or two things would be written to one place, or one over a recipe.
    """
    output["format"] = format_of(output)
    found = [_destination(text) for text in output.pop("reports")]
    places = [_real(path) for path in (output["output"], *(path for _, path in found))]
    if len(set(places)) < len(places):
        raise SpecError("two outputs go to the same place", "give each a file of its own, with -o and --report")
    for file in files:
        if file != "-" and _real(file) in places:
            raise SpecError(f"the recipe {printable(file)} would be written over", "choose another file for the output")
    return found


def _destination(text: str) -> tuple[str, str]:
    kind, _, path = text.partition("=")
    if kind not in (*KINDS, "plot") or not path:
        raise SpecError(f"--report {text}: not KIND=FILE", f"KIND is one of {', '.join(KINDS)}, plot: junit=gates.xml")
    if kind == "plot":
        plot.check_file(path, "--report plot=")
    return kind, path


def _real(path: str | None) -> str:
    if path is None or path == "-":
        return "-"
    return path if "\0" in path else os.path.realpath(path)  # what is no path is refused where it is written


def _baseline(
    path: str | None, output: Mapping[str, Any], destinations: Sequence[tuple[str, str]]
) -> Mapping[str, Any] | None:
    """Return the report to compare with.

    Raises:
        SpecError: it cannot be read, or nothing that is written compares.
    """
    if path is None:
        return None
    markdown = output["format"] == "markdown" or any(kind == "markdown" for kind, _ in destinations)
    if not markdown and not os.environ.get("GITHUB_STEP_SUMMARY"):
        raise SpecError("--baseline is for Markdown", "add --report markdown=FILE, or --format markdown")
    from dpcalc.render.check.baseline import load

    return load(path)


@contextlib.contextmanager
def _progress(cases: Iterator[Case], count: int) -> Iterator[Iterator[Case]]:
    """Pass the cases on; on a terminal, many of them show how far they are."""
    if count < _FEW or sys.stderr is None or not sys.stderr.isatty():
        yield cases
        return
    with click.progressbar(cases, length=count, label="cases", file=sys.stderr) as bar:
        yield iter(bar)


def _text(found: Report, output: Mapping[str, Any], baseline: Mapping[str, Any] | None) -> str:
    """Return what is printed."""
    from dpcalc import render as rendering

    if output["format"] == "markdown":
        return render(found, "markdown", precision=output["precision"], baseline=baseline)
    color = color_of(output["color"])
    if color is None:
        color = output["output"] is None and sys.stdout is not None and sys.stdout.isatty()
    return rendering.render(found, output["format"], output["precision"], color=color)


def _publish(
    found: Report, destinations: Sequence[tuple[str, str]], precision: int, baseline: Mapping[str, Any] | None
) -> None:
    """Write the reports asked for and, within GitHub Actions, annotations and the summary of the step."""
    for kind, path in destinations:
        if kind != "plot":
            write(render(found, kind, precision=precision, baseline=baseline), path, f"--report {kind}=")
        elif any(case.best for case in found.cases):
            write_bytes(plot.of_cases(found, path), path, "--report plot=")
    if os.environ.get("GITHUB_ACTIONS") == "true":
        say(render(found, "github", precision=precision).rstrip("\n"))
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with open(summary, "a", encoding="utf-8") as stream:
                stream.write(render(found, "markdown", precision=precision, baseline=baseline) + "\n")
        except OSError as error:
            say(f"warning: cannot write the summary of the step: {error.strerror or error}")


def _told(error: SpecError) -> str:
    hint = f"\n  hint: {printable(error.hint)}" if error.hint else ""
    return f"error: {printable(error.message)}{hint}"


def _first_trouble(found: Report) -> str:
    """Return the first case that did not pass, in a line."""
    troubled = [case.check for case in found.cases if case.check and case.check.exit_code]
    first = troubled[0]
    cure = f"\n  hint: {printable(first.hint)}" if first.hint else ""
    count = f"{len(troubled)} of {len(found.cases)} cases did not pass; the first: " if len(troubled) > 1 else ""
    return f"error: {count}{place(first)}: {printable(f'{first.name}: {first.message}')}{cure}"
