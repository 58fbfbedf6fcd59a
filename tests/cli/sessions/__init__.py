"""Recorded sessions: command lines, what each prints and its exit code, in text files that a reviewer reads.

A line ``$ dpcalc ...`` is followed by what it prints, and by its exit code in brackets; all other lines are headings.
`python -m tests.cli.sessions` records what is printed today, and the diff of the files is what a change does.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpcalc
from dpcalc.cli.main import main

PACKAGE = str(Path(dpcalc.__file__).parent)
FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.txt"))


class Entry(NamedTuple):
    """A command line with what it printed, and its exit code; or a heading alone."""

    line: str
    printed: str = ""
    code: int | None = None

    def __str__(self) -> str:
        return self.line if self.code is None else f"$ dpcalc {self.line}".rstrip() + f"\n{self.printed}[{self.code}]"


def read(path: Path) -> Iterator[Entry]:
    """Return what a file has, in its order; an exit code is left out where none has been recorded."""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if not line.startswith("$ dpcalc"):
            yield Entry(line)
            continue
        printed = ""
        for answer in lines:
            if code := re.fullmatch(r"\[(\d+)\]", answer):
                yield Entry(line[9:], printed, int(code[1]))
                break
            printed += f"{answer}\n"


def typed(line: str) -> Entry:
    """Return a command line with what it prints now: standard output, then standard error."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(shlex.split(line))
        except SystemExit as stop:
            printed = (out.getvalue() + err.getvalue()).replace(PACKAGE, "dpcalc")
            return Entry(line, printed, int(stop.code or 0))
    raise AssertionError("the program returned")


def replayed(path: Path) -> str:
    """Return the text of a file as it would be recorded now."""
    entries = (entry if entry.code is None else typed(entry.line) for entry in read(path))
    return "".join(f"{entry}\n" for entry in entries)
