"""What standard output is, whether to colour it, and texts that are longer than its screen."""

from __future__ import annotations

import os
import sys

import click

from dpcalc.files import output
from dpcalc.inert import inert


def on_terminal() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def color_of(choice: str) -> bool | None:
    """Return whether to colour: the flag, then NO_COLOR, FORCE_COLOR and TERM, then whether stdout is a terminal."""
    chosen = {"always": True, "never": False}.get(choice)
    if chosen is not None:
        return chosen
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return True if os.environ.get("FORCE_COLOR") else None


NO_PAGER = "dpcalc.no_pager"
"""Where a context keeps whether ``dpcalc --no-pager`` was typed."""


def show(text: str, path: str | None) -> None:
    """Write a text to a file or to standard output; on a terminal, page one that is longer than the screen.

    The pager is that of ``PAGER``; nothing is paged where that is empty or ``cat``, or with ``dpcalc --no-pager``.

    Raises:
        SpecError: the file cannot be written.
    """
    context = click.get_current_context(silent=True)
    wanted = os.environ.get("PAGER", "less") not in ("", "cat") and os.environ.get("TERM") != "dumb"
    if context is not None and context.meta.get(NO_PAGER):
        wanted = False
    if output.is_stdout(path) and on_terminal() and wanted and _longer_than_the_screen(text):
        click.echo_via_pager(inert(text, coloured=True), color=True)
    else:
        output.write(text, path)


def _longer_than_the_screen(text: str) -> bool:
    from shutil import get_terminal_size

    return text.count("\n") >= get_terminal_size().lines
