"""The manual page, in the roff that ``man`` reads."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpcalc.cli.described import Described, Entry

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


def manual(entries: Sequence[Entry]) -> str:
    """Return the page: every command with its help and the names of its options, then every option once."""
    commands = "".join(_command(entry) for entry in entries)
    options: dict[str, Described] = {}
    for entry in entries:
        for option in entry.options:
            options.setdefault(option.names[0], option)
    listed = "".join(_option(options[name]) for name in sorted(options))
    return f"{_HEAD}.SH COMMANDS\n{commands}.SH OPTIONS\nEach command takes those named with it.\n{listed}{_TAIL}"


def _command(entry: Entry) -> str:
    arguments = "".join(f" {metavar}" for metavar, _ in entry.arguments)
    names = ", ".join(option.names[0] for option in entry.options)
    return (
        f".SS {_roff(entry.name + arguments)}\n{''.join(map(_paragraph, _paragraphs(entry.help)))}"
        f".PP\nOptions: {_roff(names)}.\n"
    )


def _paragraphs(text: str) -> list[str]:
    return [part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip()]


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return f".PP\n.nf\n{_roff(text[2:])}\n.fi\n"
    return f".PP\n{_roff(' '.join(text.split()))}\n"


def _option(option: Described) -> str:
    names = ", ".join(f"\\fB{_roff(name)}\\fR" for name in option.names)
    # The algorithms of one command are not those of another; each command's --help has its own.
    value = "NAME" if option.names[0] == "--algorithm" else option.metavar
    value = f" \\fI{_roff(value)}\\fR" if value else ""
    return f".TP\n{names}{value}\n{_roff(option.help or '...')}\n"


def _roff(text: str) -> str:
    """Return text in which nothing is a request or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in text.split("\n"))
