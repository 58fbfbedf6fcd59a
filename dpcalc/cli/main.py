"""The entry point: loads commands on use, and turns every failure into one line, a hint and an exit code."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.output.terminal import NO_PAGER
from dpcalc.cli.types import BESIDE, COMMANDS, MORE, SECTIONS, refuse_files
from dpcalc.errors import Disproved, DpcalcError
from dpcalc.files import output
from dpcalc.inert import printable
from dpcalc.references import read
from dpcalc.version import __version__

COMPLETE = "_DPCALC_COMPLETE"
"""The environment variable of a completion script."""


class _NoSuchCommand(click.UsageError):
    """A word that is not a command."""

    def __init__(self, word: str, context: click.Context) -> None:
        super().__init__(f"No such command {word!r}.", context)
        self.word = word


class _LazyGroup(WithHelp, click.Group):
    """A group whose commands are imported on use, so that each query pays only for what it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in MORE:
            module = importlib.import_module(f"dpcalc.cli.commands.{BESIDE.get(cmd_name, cmd_name)}")
            command: click.Command = getattr(module, cmd_name if cmd_name in BESIDE else "command")
            return command
        from dpcalc.cli.runs import RUNS

        return RUNS[cmd_name].made(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command, the command and the other words.

        Raises:
            click.UsageError: there is no such command.
        """
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            raise _NoSuchCommand(args[0], ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections; the two options stand in the last line."""
        *sections, (rare, names) = SECTIONS.items()
        for title, commands in sections:
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))
        formatter.write(f"\n{rare}: {', '.join(names)}.\nOptions: --version, --no-pager, -h, --help\n")

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters without --help-all: this page has one length."""
        return [*self.params, *self._help_options(ctx)[:1]]


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    """Print the version, as `click.version_option` does, but without looking for translations."""
    if asked and not context.resilient_parsing:
        click.echo(f"dpcalc, version {__version__}", color=context.color)
        context.exit()


def _page_nothing(context: click.Context, _: click.Parameter, asked: bool) -> None:
    context.meta[NO_PAGER] = asked


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version,
    help="Show the version and exit.",
)  # fmt: skip
@click.option(
    "--no-pager", is_flag=True, expose_value=False, is_eager=True, callback=_page_nothing,
    help="Print long answers without a pager.",
)  # fmt: skip
def cli() -> None:
    """How private is this training run, what noise does it need, what does it cost?
    Give two of --epsilon, --delta and the noise; the third is solved for. What to type first: dpcalc help
    """


class _Terminated(KeyboardInterrupt):
    """SIGTERM, handled as cleanly as an interrupt."""


def _terminate(*_: Any) -> None:
    raise _Terminated


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line (default: ``sys.argv``), and raise SystemExit.

    The codes are 0 ok, 1 a gate failed, 2 usage, 3 no valid bound, 4 internal, 130, 141, 143.
    """
    if arguments is not None:
        sys.exit(_code_of(arguments))
    sys.exit(_code_of_process())


def run() -> NoReturn:
    """Run the command line and end the process.

    It is the script ``dpcalc``; programs that continue call `main`.
    """
    _leave(_code_of_process())


def _code_of_process() -> int:
    """Run the command line that started this process and return the exit code.

    If numpy loads OpenBLAS, that starts a thread for every core. A query does not need them, and each thread spins
    for a while before it sleeps: a fifth of the time to import numpy. A number of threads set by the user is kept.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with _terminated_cleanly():
        return _code_of(sys.argv[1:])


@contextlib.contextmanager
def _terminated_cleanly() -> Iterator[None]:
    """Let SIGTERM raise `_Terminated`, unless it is handled already or this is not the main thread."""
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL:
        yield
        return
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTERM, before)


def _code_of(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    if asked := os.environ.get(COMPLETE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "dpcalc", COMPLETE, asked)
    with output.whole_streams() as streams:
        code = _run(list(arguments))
    # A warning that could not be printed must not look like success.
    return 2 if code == 0 and streams.lost else code


def _leave(code: int) -> NoReturn:
    """End the process at once: the usual clean-up of modules is a tenth of a query's time."""
    import atexit

    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):  # failures to write were already reported
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    os._exit(code)


def _run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        refuse_files(arguments)
        # Not cli.main, which turns a closed pipe into exit code 1.
        with cli.make_context("dpcalc", arguments, obj=tuple(arguments)) as context:
            code = cli.invoke(context)
        sys.stdout.flush()
    except BrokenPipeError:
        return 141
    except Exception as error:  # the outermost frame: every failure becomes a line and a code
        return _failure(error)
    except _Terminated:
        return _say("terminated", None, 143)
    except KeyboardInterrupt:
        return _failure(click.Abort())
    return code if isinstance(code, int) else 0


def _failure(error: BaseException) -> int:  # noqa: PLR0911 (one return a kind of failure)
    if os.environ.get("DPCALC_DEBUG") == "1":
        import traceback

        output.say(traceback.format_exc())
    if isinstance(error, Disproved):
        _report(error)
    if isinstance(error, DpcalcError):
        return _say(error.message, error.hint, error.exit_code)
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort):
        return _say("interrupted", None, 130)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        output.say(read("help/start.txt").rstrip("\n"))
        return 2
    if isinstance(error, click.ClickException):
        return _say(_refusal(error), _help_hint(error), 2)
    if isinstance(error, OSError):
        return _say(f"cannot write the output: {error.strerror or error}", "write elsewhere with -o FILE", 2)
    if isinstance(error, MemoryError):
        return _say("not enough memory", "a shorter schedule, or fewer cases in the sweep", 3)
    return _say(
        f"internal error: {type(error).__name__}: {_first_line(str(error))}", "set DPCALC_DEBUG=1 and report it", 4
    )


def _report(error: Disproved) -> None:
    """Print the details for a bug report of a guarantee below the truth."""
    lines = ["command: dpcalc " + " ".join(sys.argv[1:]), *error.report.splitlines()]
    output.say("\n".join(["--- bug report ---", *map(printable, lines), "---"]))


def _refusal(error: click.ClickException) -> str:
    """Return the message; for an unknown option without click's guesses, as the hint has our own."""
    if isinstance(error, click.NoSuchOption):
        return f"No such option '{error.option_name}'."
    return _first_line(error.format_message())


def _help_hint(error: click.ClickException) -> str:
    context: Any = getattr(error, "ctx", None)
    if context and isinstance(error, click.NoSuchOption):
        from dpcalc.cli.help.meant import about_option

        if said := about_option(error.option_name, context.command):
            return said
    if isinstance(error, _NoSuchCommand):
        from dpcalc.cli.help.meant import about_command

        return about_command(error.word, COMMANDS) or "`dpcalc help` says what to type first"
    takes = {parameter.name for parameter in context.command.params} if context else set()
    if "data" in takes and context.params.get("data") is None and type(error) in _NO_FILE:
        return "give the file by --data FILE"
    return f"see {context.command_path} --help" if context else "see dpcalc --help"


_NO_FILE = (click.UsageError, click.MissingParameter)
"""The classes of errors for an argument too many, such as a file without its option, and for one too few."""


def _first_line(text: str) -> str:
    return " ".join(text.split())


def _say(message: str, hint: str | None, code: int) -> int:
    output.say(f"error: {printable(message)}" + (f"\n  hint: {printable(hint)}" if hint else ""))
    return code
