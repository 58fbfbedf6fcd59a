"""Option stacks, built from the commands' and the parameters' records, and the one path from flags to output."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from dpcalc.cli.types import Choice, Delta, DeltaSweep, Sweep
from dpcalc.commands import COMMANDS, ask, report, side_by_side
from dpcalc.errors import SpecError
from dpcalc.gate import parse
from dpcalc.query import Question
from dpcalc.render import FORMATS, render
from dpcalc.report import Case, Report, uncertified
from dpcalc.spec.symbols import SYMBOLS, Symbol

MAX_CASES = 10_000
OUTPUT = ("format", "as_json", "output", "precision", "plot", "plot_bounds", "color")
"""The options that say how and where to print."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def parameter_options(command: str) -> Decorator:
    """Return the decorator that adds a command's parameters and the question's as options."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        question = ("epsilon", "delta", "order")
        function = _question_options(function)
        for name in reversed((*COMMANDS[command].parameters, *question)):
            function = _option(_shown(command, SYMBOLS[name]))(function)
        return function

    return decorate


def training_options(command: str) -> Decorator:
    """Return the decorator that adds a command's parameters, the budget, gates and how to print; -o is the model's."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = output_options(function, written="Write the model to FILE.json or FILE.npz, atomically.")
        function = _GATES(function)
        for name in reversed((*COMMANDS[command].parameters, "epsilon", "delta")):
            function = _option(_shown(command, SYMBOLS[name]))(function)
        return function

    return decorate


def _shown(command: str, symbol: Symbol) -> Symbol:
    if symbol.name == "algorithm":
        several = ("all",) if command == "compare" else ()
        return symbol._replace(choices=(*COMMANDS[command].algorithms, *several))
    return symbol


def _option(symbol: Symbol) -> Decorator:
    kind: click.ParamType[Any]
    if symbol.choices:
        kind = Choice(symbol)
    elif symbol.name == "delta":
        kind = DeltaSweep(symbol)
    else:
        kind = Sweep(symbol)
    letter = f"{symbol.letter}: " if symbol.letter and symbol.letter != symbol.name else ""
    return click.option(symbol.flag, *symbol.flags, symbol.name, type=kind, multiple=True, help=letter + symbol.help)


_GATES = click.option(
    "--assert", "gates", metavar="TEXT", multiple=True,
    help="Gate on the best guarantee, e.g. 'epsilon<=1'; exit 1 if it fails.",
)  # fmt: skip


def _question_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("--schedule", metavar="FILE", help="Per-step values: CSV with a header, NPY, NPZ or YAML."),
            click.option("--solve", metavar="NAME", help="Solve for this parameter; needs --epsilon and --delta."),
            _GATES,
            click.option(
                "--certify", is_flag=True,
                help="Prove every guarantee in ball arithmetic; exit 3 if the best is not provable so.",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return output_options(function)


def output_options(
    function: Callable[..., Any], *, written: str = "Write to FILE, atomically, instead of stdout."
) -> Callable[..., Any]:
    """Add the options that say how and where to print."""
    for option in reversed(
        (
            click.option("--format", "format", type=click.Choice(FORMATS), help="Default: table on a terminal."),
            click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
            click.option("--output", "-o", metavar="FILE", help=written),
            click.option(
                "--precision", type=click.IntRange(2, 17), default=6, show_default=True,
                help="Significant digits in text; guarantees are rounded up.",
            ),
            click.option(
                "--plot", metavar="FILE",
                help="Also draw the sweep, to FILE.svg, .png or .pdf; with -, in the terminal instead of the report.",
            ),
            click.option(
                "--plot-bounds", metavar="ID,ID...", multiple=True,
                help="Draw these bounds only (default: all along one parameter, else the best).",
            ),
            click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto"),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def run_query(command: str, flags: dict[str, Any]) -> None:
    """Evaluate every case that the flags describe and print the report.

    Raises:
        SpecError: the flags are malformed.
        click.exceptions.Exit: with 1 when a gate failed.
    """
    cases, output = run_cases(command, flags)
    emit(command, cases, output)


def run_cases(
    command: str, flags: dict[str, Any], askers: tuple[Callable[..., Case], Callable[..., Case]] | None = None
) -> tuple[list[Case], dict[str, Any]]:
    """Return every case that the flags describe, and the flags that say how to print them.

    Args:
        command: a key of `COMMANDS`.
        flags: as click parsed them.
        askers: what answers one case alone, and what answers one of several (None: `ask` and `side_by_side`).

    Raises:
        SpecError: the flags are malformed.
    """
    output = {name: flags.pop(name) for name in OUTPUT}
    if output["plot"] is not None or output["plot_bounds"]:
        from dpcalc.cli.plot import check

        check(output)
    gates = [parse(text) for text in flags.pop("gates")]
    orders = tuple(order for part in flags.pop("order", ()) for order in part)
    solve, schedule, certified = flags.pop("solve", None), flags.pop("schedule", None), flags.pop("certify", False)
    if solve == "":
        raise SpecError("--solve: an empty name", "for example --solve index")
    sweeps = {name: [v for part in parts for v in part] for name, parts in flags.items() if parts}
    combinations = _product(sweeps)
    alone = len(combinations) == 1
    by_itself, among_others = askers or (ask, side_by_side)
    also = {"certified": True} if certified else {}

    def evaluated(chosen: dict[str, Any], asked: Callable[..., Case]) -> Case:
        given = dict(chosen)
        delta: Delta | None = given.pop("delta", None)
        question = Question(
            given.pop("epsilon", None), delta.value if delta else None, delta.log if delta else None, orders, solve
        )
        if schedule is not None:
            given["schedule"] = schedule
        return asked(command, given, question, sources=dict.fromkeys(given, "flag"), gates=gates, notes=alone, **also)

    with _progress(combinations) as chosen_ones:
        cases = [evaluated(chosen, by_itself if alone else among_others) for chosen in chosen_ones]
    if cases and not any(case.best for case in cases):
        evaluated(combinations[0], by_itself)  # nothing holds anywhere: say why as for a single case
    return cases, output


def _progress(combinations: list[dict[str, Any]]) -> Any:
    """Return a context whose value iterates over the cases; on a terminal, many of them show how far they are."""
    few = len(combinations) < 20 or sys.stderr is None or not sys.stderr.isatty()
    if few:
        return contextlib.nullcontext(combinations)
    return click.progressbar(combinations, label="cases", file=sys.stderr)


def is_described(flags: dict[str, Any]) -> bool:
    """Return whether any flag describes a run or a question."""
    return any(flags[name] for name in (*COMMANDS["compare"].parameters, "epsilon", "delta", "schedule", "order"))


def _product(sweeps: dict[str, list[Any]]) -> list[dict[str, Any]]:
    count = 1
    for values in sweeps.values():
        count *= len(values)
    if count > MAX_CASES:
        raise SpecError(f"the sweep has {count} cases; at most {MAX_CASES} are run at once", "use fewer values")
    return [dict(zip(sweeps, chosen, strict=True)) for chosen in itertools.product(*sweeps.values())]


def emit(command: str, cases: list[Case], output: dict[str, Any]) -> None:
    """Print or write the report and its plot; warnings go to stderr."""
    from dpcalc.output import write, write_bytes

    result = report(command, cases)
    picture = _picture(result, output)
    for case in cases:
        for warning in case.warnings:
            say(f"warning: {warning}")
    if isinstance(picture, bytes):
        write_bytes(picture, output["plot"], "--plot")
    if not isinstance(picture, str) or output["output"] not in (None, "-"):
        write(render(result, format_of(output), output["precision"], color=color_of(output["color"])), output["output"])
    if isinstance(picture, str):
        write(picture, None)
    if result.failed:
        for number, case in enumerate(cases, start=1):
            where = f" in case {number} of {len(cases)}" if len(cases) > 1 else ""
            for gate in case.assertions:
                if not gate.passed:
                    say(f"error: gate failed{where}: {gate.text} (value {gate.value}, slack {gate.slack})")
        raise click.exceptions.Exit(1)
    without = [case for case in cases if not case.best]
    if without and len({case.algorithm for case in cases}) == 1:
        why = without[0].obstacles[0]
        say(f"error: {len(without)} of {len(cases)} cases have no guarantee; the first: {why.because}")
        say(f"  hint: {why.hint}")
        raise click.exceptions.Exit(3)
    _refuse_uncertified(cases)


def _refuse_uncertified(cases: list[Case]) -> None:
    """Exit with 3 where --certify was asked for and a best guarantee could not be proved."""
    opened = [(number, result) for number, case in enumerate(cases, start=1) for result in uncertified(case)]
    for number, result in opened:
        where = f" in case {number} of {len(cases)}" if len(cases) > 1 else ""
        why = (result.details or {})["not_certified"]
        say(f"error: the best guarantee{where} is not certified: {result.bound}: {why}")
    if opened:
        say("  hint: it is none the less proved on paper; name a certifiable bound, or leave out --certify")
        raise click.exceptions.Exit(3)


def _picture(result: Report, output: dict[str, Any]) -> str | bytes | None:
    """Return the picture of a report, drawn before anything is printed so that a refusal stands alone."""
    if output["plot"] is None:
        return None
    from dpcalc.cli.plot import picture

    return picture(result, output)


def say(text: str) -> None:
    """Write a line to stderr, if there is one."""
    if sys.stderr is not None:
        click.echo(text, err=True)


def format_of(output: dict[str, Any]) -> str:
    """Return the format asked for: a table on a terminal and plain text elsewhere, if none was."""
    if output["as_json"]:
        if output["format"] not in (None, "json"):
            raise SpecError(f"--json and --format {output['format']} contradict each other", "leave one out")
        return "json"
    if output["format"]:
        return str(output["format"])
    on_terminal = output["output"] is None and sys.stdout is not None and sys.stdout.isatty()
    return "table" if on_terminal else "plain"


def color_of(choice: str) -> bool | None:
    """Return whether to colour: the flag, then NO_COLOR, FORCE_COLOR and TERM, then whether stdout is a terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None
