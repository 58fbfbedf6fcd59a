"""The manual page, in roff."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

_HEAD = """\
.\\" Written by `dpcalc completions man`: do not edit.
.TH DPCALC 1 "" dpcalc "User Commands"
.SH NAME
dpcalc \\- privacy of noisy iterative training whose iterates stay hidden
.SH SYNOPSIS
.B dpcalc
.I COMMAND
.RI [ OPTION ...]
.SH DESCRIPTION
How private is a training run, what noise does it need, and what does that cost?
Give two of
.BR \\-\\-epsilon ,
.B \\-\\-delta
and the noise; the third is solved for.
Every number reported as a guarantee is rounded to the safe side.
Any number may be a list
.RB ( 1,2,4 ),
a range
.RB ( 1:10:0.5 )
or a logarithmic range
.RB ( 1:1000:log7 );
several make a table.
"""

_TAIL = """\
.SH EXIT STATUS
.TP
.B 0
ok
.TP
.B 1
a gate failed
.TP
.B 2
usage, or a malformed file
.TP
.B 3
no valid bound, infeasible, or not converged
.TP
.B 4
internal error
.TP
.B 130
interrupted
.TP
.B 141
closed pipe
.TP
.B 143
terminated
.SH ENVIRONMENT
.TP
.B NO_COLOR, FORCE_COLOR
whether a table has colours
.TP
.B DPCALC_DEBUG
1: print the traceback of an error
"""


def manual() -> str:
    """Return the page: every command with its help and the names of its options, then every option once."""
    commands = ""
    options: dict[str, str] = {}
    for context in _commands():
        commands += _command(context)
        for option in _options(context):
            options.setdefault(_names(option)[0], _option(option, context))
    listed = "".join(options[name] for name in sorted(options))
    return (
        f"{_HEAD}.SH COMMANDS\n{commands}.SH OPTIONS\nEach command takes the options listed with it.\n{listed}{_TAIL}"
    )


def _commands() -> Iterator[click.Context]:
    """Yield the context of every command, in the order in which the help lists them."""
    from dpcalc.cli.main import cli
    from dpcalc.cli.types import COMMANDS

    group = click.Context(cli, info_name="dpcalc", help_option_names=["--help", "-h"])
    for name in COMMANDS:
        command = cli.get_command(group, name)
        assert command is not None
        yield click.Context(command, info_name=name, parent=group)


def _options(context: click.Context) -> list[click.Option]:
    return [p for p in context.command.get_params(context) if isinstance(p, click.Option) and not p.hidden]


def _names(option: click.Option) -> list[str]:
    """Return the names of an option, the long ones first."""
    return [*sorted(option.opts, key=lambda name: not name.startswith("--")), *option.secondary_opts]


def _command(context: click.Context) -> str:
    params = context.command.get_params(context)
    arguments = "".join(f" {p.make_metavar(context)}" for p in params if isinstance(p, click.Argument))
    names = ", ".join(_names(option)[0] for option in _options(context))
    help = inspect.cleandoc(context.command.help or "")
    return (
        f".SS {_roff(str(context.info_name) + arguments)}\n{''.join(map(_paragraph, _paragraphs(help)))}"
        f".PP\nOptions: {_roff(names)}.\n"
    )


def _paragraphs(text: str) -> list[str]:
    return [part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip()]


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return f".PP\n.nf\n{_roff(text[2:])}\n.fi\n"
    return f".PP\n{_roff(' '.join(text.split()))}\n"


def _option(option: click.Option, context: click.Context) -> str:
    names = _names(option)
    listed = ", ".join(f"\\fB{_roff(name)}\\fR" for name in names)
    metavar = "" if option.is_flag or option.count else option.make_metavar(context)
    # Commands differ in their algorithms; the --help of each lists its own.
    value = "NAME" if names[0] == "--algorithm" else metavar
    value = f" \\fI{_roff(value)}\\fR" if value else ""
    return f".TP\n{listed}{value}\n{_roff(option.help or '...')}\n"


def _roff(text: str) -> str:
    """Return text with roff requests and escapes quoted."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))
