"""Printing a report: its options, and the way from the cases to the output and the exit code.

``--plot``: the possible pictures, and the way from a report to one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc.cli.output.terminal import REPORTS, Lost, attempt, color_of, lost_by, on_terminal, show, tell, worst
from dpcalc.cli.types import BOUND, FILE, Word
from dpcalc.engine.large_delta import REASON, has_large_delta
from dpcalc.errors import SpecError
from dpcalc.files import STANDARD_STREAM
from dpcalc.files.output import check_outputs, say, write, write_bytes
from dpcalc.inert import printable
from dpcalc.render import FORMATS, render
from dpcalc.report import Case, Report, uncertified

if TYPE_CHECKING:
    from dpcalc.cli.output.reports import Destination
    from dpcalc.render.chart import Chart


class Output(NamedTuple):
    """The output options; each field is an option of this name, and ``file`` is ``--output``."""

    format: str | None
    as_json: bool
    file: str | None
    precision: int
    plot: str | None
    plot_bounds: tuple[str, ...]
    color: str
    verbose: int = 0
    reports: tuple[Destination, ...] = ()

    @property
    def on_stdout(self) -> bool:
        """Whether the report goes to standard output."""
        return self.file in (None, STANDARD_STREAM)

    @classmethod
    def of(cls, flags: dict[str, Any]) -> Output:
        """Take the output options out of the flags, and refuse impossible outputs before anything is computed.

        Raises:
            SpecError: a file cannot be written, or a plot cannot be drawn.
        """
        flags["file"] = flags.pop("output")
        output = cls(*map(flags.pop, cls._fields))
        written = [(output.file, "-o")]
        if output.reports:
            output = output._with_reports()
            written += [(report.path, report.option) for report in output.reports]
        if output.plot is not None or output.plot_bounds:
            output._check_plot()
        if output.plot not in (None, STANDARD_STREAM):
            written.append((output.plot, "--plot"))
        check_outputs(written, _typed())
        return output

    def _check_plot(self) -> None:
        """Refuse a plot that cannot be drawn.

        Raises:
            SpecError: the suffix is unknown, a package is missing, or the report and the plot would mix.
        """

        if self.plot is None:
            raise SpecError("--plot-bounds chooses what --plot draws", "add --plot FILE.svg, or --plot -")
        if self.plot != STANDARD_STREAM:
            check_picture(self.plot)
            if not self.on_stdout and os.path.realpath(str(self.file)) == os.path.realpath(self.plot):
                raise SpecError("--plot and -o name the same file", "give them two names")
            return
        if self.on_stdout and (self.as_json or self.format):
            raise SpecError(
                "--plot - and the report would mix on standard output", "write one of them to a file: -o or --plot FILE"
            )
        check_picture(self.plot)

    @property
    def best_only(self) -> bool:
        """Whether only the best answers of several cases are shown."""
        brief = format_of(self.format, self.as_json, self.file) in _BRIEF and not self.verbose
        return brief and self.plot is None and not self.reports

    def _with_reports(self) -> Output:
        """Return the output with the typed reports parsed into destinations."""
        from dpcalc.cli.output.reports import destinations

        typed: Any = self.reports
        return self._replace(reports=tuple(destinations(typed, REPORTS, example="json=answer.json")))

    @property
    def curves(self) -> bool:
        """Whether a report shows the curves behind the answers."""
        return any(REPORTS[report.kind].curves for report in self.reports)


def _typed() -> Iterator[str]:
    """Yield the values of options that write nothing, which include the files that are read."""
    context = click.get_current_context(silent=True)
    for name, value in context.params.items() if context else ():
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and name not in _WRITTEN:
                yield from (text, text.partition("=")[2])


_WRITTEN = ("output", "plot", "reports")

_BRIEF = ("table", "plain")
"""The formats that are brief unless asked to be verbose."""

REPORTED = ("table", "plain", "json", "jsonl", "csv", "markdown")
"""The formats of reports other than a single query's."""

_PLOTS = (
    click.option(
        "--plot", type=FILE,
        help="Also draw the sweep, or with --risk the attacks on one run, to FILE.svg, .png or .pdf; -: in the "
        "terminal instead of the report.",
    ),
    click.option(
        "--plot-bounds", metavar="ID,ID...", type=BOUND, multiple=True,
        help="Draw only these bounds (default: all bounds along one parameter, else the best).",
    ),
)  # fmt: skip


def reports_option(kinds: Iterable[str], more: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the decorator that adds ``--report``; ``more`` describes further kinds."""
    return click.option(
        "--report", "reports", metavar="KIND=FILE", type=Word(lambda: [f"{kind}=" for kind in kinds]), multiple=True,
        help=f"Also write a report: {', '.join(kinds)}{more}. Repeatable.",
    )  # fmt: skip


verbose_option = click.option(
    "--verbose", "-v", count=True,
    help="Show assumptions, inputs, all bounds and why some do not apply, and notes, on one screen; -vv shows all.",
)  # fmt: skip


def output_options(
    function: Callable[..., Any], *, written: str = "Write to FILE, atomically, instead of stdout."
) -> Callable[..., Any]:
    """Add the options of output and plots."""
    return _printed(verbose_option(function), FORMATS, written, (reports_option(REPORTS), *_PLOTS))


def sweep_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of output and plots for a report without registered bounds."""
    options = (reports_option(REPORTS), *_PLOTS)
    return _printed(verbose_option(function), REPORTED, "Write to FILE, atomically, instead of stdout.", options)


def report_options(
    function: Callable[..., Any], *, written: str = "Write to FILE, atomically, instead of stdout."
) -> Callable[..., Any]:
    """Add the options of output for a report without a plot or its own ``--report``."""
    return _printed(function, REPORTED, written, ())


def _printed(
    function: Callable[..., Any], formats: Sequence[str], written: str, more: Sequence[Callable[..., Any]]
) -> Callable[..., Any]:
    for option in reversed(
        (
            click.option("--format", "format", type=click.Choice(formats), help="Default: table on a terminal."),
            click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
            click.option("--output", "-o", type=FILE, help=written),
            click.option(
                "--precision", type=click.IntRange(2, 17), default=6, show_default=True,
                help="Significant digits in text; guarantees are rounded up.",
            ),
            *more,
            click.option(
                "--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
                help="Whether to colour the text; auto: on a terminal.",
            ),
        )
    ):  # fmt: skip
        function = option(function)
    return function


def emit(result: Report, output: Output, said: Sequence[str] = ()) -> None:
    """Print or write the report and its plot, each even if the other fails; warnings go to stderr.

    Args:
        result: the report.
        output: the options.
        said: warnings printed already.

    Raises:
        SpecError: the report has nothing to draw.
        click.exceptions.Exit: a gate failed, there is no guarantee, or something could not be written.
    """
    picture, lost = (None, list[Lost]()) if output.plot is None else _picture(result, output)
    warnings = [warning for case in result.cases for warning in case.warnings]
    if any(not case.assertions and has_large_delta(case, None) for case in result.cases):  # a gate fails for it
        warnings.append(REASON)
    for warning in dict.fromkeys(warnings):
        if warning not in said:
            say(printable(f"warning: {warning}"))
    if isinstance(picture, bytes):
        path = str(output.plot)
        lost += attempt(f"--plot {path}", lambda: _write_picture(picture, path))
    if not isinstance(picture, str) or not output.on_stdout:
        lost += attempt("the report", lambda: _write_report(result, output))
    if output.reports:
        from dpcalc.cli.output.reports import write_reports

        lost += write_reports(result, output.reports, REPORTS, output.precision)
    if isinstance(picture, str):
        lost += attempt("--plot -", lambda: write(picture, None))
    code = verdict(result)
    if lost:
        tell(lost)
        code = worst([code, *(one.exit_code for one in lost)])
    if code:
        raise click.exceptions.Exit(code)


def _write_picture(picture: bytes, path: str) -> None:
    write_bytes(picture, path, "--plot")
    say(printable(f"plot written to {path}"))


def _write_report(result: Report, output: Output) -> None:
    format = format_of(output.format, output.as_json, output.file)
    color = color_of(output.color)
    show(render(result, format, output.precision, color=color, verbose=output.verbose), output.file)


def verdict(result: Report) -> int:
    """Report failed gates, missing guarantees and missing certificates; return the exit code."""
    cases = result.cases
    if result.failed:
        for number, case in enumerate(cases, start=1):
            for gate in case.assertions:
                if not gate.passed:
                    verdict = f"{gate.text} (value {gate.value}, slack {gate.slack})"
                    say(printable(f"error: gate failed{_place(number, cases)}: {verdict}"))
        return 1
    without = [case for case in cases if not case.best]
    if without and len({case.algorithm for case in cases}) == 1:
        why = without[0].obstacles[0]
        say(printable(f"error: {len(without)} of {len(cases)} cases have no guarantee; the first: {why.because}"))
        say(printable(f"  hint: {why.hint}"))
        return 3
    return _say_uncertified(cases)


def _say_uncertified(cases: Sequence[Case]) -> int:
    """Return 3, and say why, if --certify was given and a best guarantee could not be proved."""
    rows = [(number, result) for number, case in enumerate(cases, start=1) for result in uncertified(case)]
    for number, result in rows:
        why = (result.details or {})["not_certified"]
        place = _place(number, cases)
        say(printable(f"error: the best guarantee{place} is not certified: {result.bound}: {why}"))
    if rows:
        proved = dict.fromkeys(r.bound for case in cases for r in case.results if (r.details or {}).get("certified"))
        which = f" ({', '.join(proved)})" if proved else ""
        say(f"  hint: it is none the less proved on paper; name a certifiable bound{which}, or leave out --certify")
    return 3 if rows else 0


def _place(number: int, cases: Sequence[Case]) -> str:
    return f" in case {number} of {len(cases)}" if len(cases) > 1 else ""


def _picture(result: Report, output: Output) -> tuple[str | bytes | None, list[Lost]]:
    """Return the picture of a report, drawn before anything is printed so that a refusal stands alone; or its loss.

    Raises:
        SpecError: the report has nothing to draw.
    """
    target = str(output.plot)
    try:
        only = [bound.strip() for part in output.plot_bounds for bound in part.split(",")]
        return picture(result, target, only, color_of(output.color)), []
    except SpecError:
        raise
    except Exception as error:  # an error of the drawing: the numbers are unaffected
        return None, [lost_by(f"--plot {target}", error)]


def format_of(format: str | None, as_json: bool, file: str | None) -> str:
    """Return the format: by default a table on a terminal and plain text elsewhere.

    Raises:
        SpecError: two are given.
    """
    if as_json and format not in (None, "json"):
        raise SpecError(f"--json and --format {format} contradict each other", "leave one out")
    if as_json:
        return "json"
    return format or ("table" if file is None and on_terminal() else "plain")


PLOT = "plot"
"""The kind of report for pictures."""

SUFFIXES = ("svg", "png", "pdf")


def check_terminal() -> None:
    """Raise SpecError if nothing can be drawn in a terminal."""
    otherwise = "--plot FILE.svg, where matplotlib is at hand"
    _need("plotext", "--plot -", otherwise, "'plotext<6'")
    import plotext

    if not hasattr(plotext, "clear_figure"):
        raise SpecError(
            "--plot - needs plotext 5, and another one is installed", f"pip install 'plotext<6', or {otherwise}"
        )


def check_file(path: str, option: str) -> None:
    """Refuse a file that no picture can be written to.

    Raises:
        SpecError: the suffix is unknown, or matplotlib is missing.
    """
    if _suffix(path) not in SUFFIXES:
        raise SpecError(
            f"{option} {path}: the kind of picture is not known", "end the name in .svg, .png or .pdf, or give - alone"
        )
    _need("matplotlib", "a picture in a file", "--plot - to draw in the terminal, where plotext is at hand")


def of_cases(report: Report, path: str) -> bytes:
    """Return the picture of the sweep formed by the cases of a check.

    Raises:
        SpecError: they are not a sweep of a single command.
    """
    from dpcalc.render.chart import chart
    from dpcalc.render.chart.figure import draw

    cases = tuple(case for case in report.cases if case.best)
    commands = {case.check.command for case in cases if case.check}
    if len(commands) == 1:
        with contextlib.suppress(SpecError):  # there is no sweep
            return draw(chart(report._replace(command=commands.pop(), cases=cases)), _suffix(path))
    raise SpecError(
        "the cases are not a sweep, and verdicts are not drawn",
        "--report html=FILE says of every gate how much of its limit is used",
    )


def _need(package: str, what: str, otherwise: str, named: str | None = None) -> None:
    from importlib.util import find_spec

    if find_spec(package) is None:
        hint = f"pip install {named or package}, or {otherwise}"
        raise SpecError(f"{what} needs {package}, which is not installed", hint)


def picture(report: Report, target: str, only: list[str], color: bool | None) -> str | bytes:
    """Return the picture of a report: text for a terminal, or the bytes of a file.

    Args:
        report: to draw.
        target: the file; ``-`` is the terminal.
        only: the bounds to draw; empty: all, or the best.
        color: whether to use colour in a terminal; None: if stdout is one.

    Raises:
        SpecError: the report has nothing to draw.
    """
    from dpcalc.render.chart import chart

    return drawn(chart(report, only), target, color)


def drawn(drawing: Chart, target: str, color: bool | None = None) -> str | bytes:
    """Draw a chart as `picture` draws that of a report."""
    if target != STANDARD_STREAM:
        from dpcalc.render.chart.figure import draw

        return draw(drawing, _suffix(target))
    from shutil import get_terminal_size

    from dpcalc.render.chart import terminal

    width = get_terminal_size().columns if on_terminal() else 80
    unicode = sys.stdout is not None and (sys.stdout.encoding or "").lower().startswith("utf")
    return terminal.draw(drawing, width, color=on_terminal() if color is None else color, unicode=unicode)


def check_picture(target: str | None) -> list[tuple[str | None, str]]:
    """Refuse an impossible target of ``--plot``; return the file to write, with the option."""
    if target == STANDARD_STREAM:
        check_terminal()
    elif target is not None:
        check_file(target, "--plot")
        return [(target, "--plot")]
    return []


def put_picture(drawing: Chart, target: str) -> bool:
    """Draw a chart in the terminal instead of a report, or write it to a file; return whether the report follows."""
    made = drawn(drawing, target)
    if isinstance(made, str):
        write(made, None)
        return False
    _write_picture(made, target)
    return True


def _suffix(target: str) -> str:
    return os.path.splitext(target)[1].removeprefix(".").lower()
