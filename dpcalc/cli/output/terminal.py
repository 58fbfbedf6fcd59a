"""Standard output and its screen; the kinds of reports, and messages of failures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dpcalc import render
from dpcalc.errors import PRECEDENCE, DpcalcError, debugging
from dpcalc.files import output
from dpcalc.files.output import say
from dpcalc.inert import inert, printable
from dpcalc.render import Asked, Kind
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.cards.fields import Card


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
"""The key under which a context keeps ``dpcalc --no-pager``."""


def show(text: str, path: str | None) -> None:
    """Write a text to a file or to standard output; on a terminal, page a text longer than the screen.

    The pager is that of ``PAGER``; nothing is paged if that is empty or ``cat``, or with ``dpcalc --no-pager``.

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


_SECONDS, _GIB = 60.0, 4.0
"""The limits of a recipe's case on a card: it is computed again, and others wrote it."""


def _card(report: Report, asked: Asked) -> str:
    from dpcalc.cards.card import card_of, trained_model

    return _text(card_of(report, model=trained_model(report)), asked)


def _card_of_check(report: Report, asked: Asked) -> str:
    from dpcalc.cards.verify import card_within
    from dpcalc.recipes.running.evaluate import Limits

    return _text(card_within(report, Limits(_SECONDS, _GIB)), asked)


def _text(card: Card, asked: Asked) -> str:
    if not asked.file.lower().endswith(".md"):
        from dpcalc.cards.card import card_text

        return card_text(card)
    from dpcalc.cards.markdown import card_markdown

    return card_markdown(card)


def _export(report: Report, asked: Asked) -> str:
    from dpcalc.cards.card import card_of, trained_model
    from dpcalc.cards.registry import exported

    return exported(card_of(report, model=trained_model(report)), asked.file)


_SUFFIXES = (".json", ".md")

REPORTS = {**render.REPORTS, "card": Kind(_card, _SUFFIXES), "registry": Kind(_export, (".yaml", ".md"))}
"""The kinds of a query; an entry of the registry of deployments is also made from a card."""

CARD = {"card": Kind(_card_of_check, _SUFFIXES)}
"""The kind of a check that is written entirely or not at all."""


CLOSED_PIPE = 141


class Lost(NamedTuple):
    """An output that was not written completely, and the exit code for that alone."""

    what: str
    why: str
    hint: str | None
    exit_code: int


def attempt(what: str, work: Callable[[], Any]) -> list[Lost]:
    """Do some work, and return the loss if it fails."""
    try:
        work()
    except Exception as error:  # no failure may prevent the other outputs
        return [lost_by(what, error)]
    return []


def lost_by(what: str, error: Exception) -> Lost:
    """Return the loss caused by an error."""
    if debugging():
        import traceback

        say("".join(traceback.format_exception(error)))
    if isinstance(error, DpcalcError):
        return Lost(what, error.message, error.hint, error.exit_code)
    if isinstance(error, BrokenPipeError):
        return Lost(what, "", None, CLOSED_PIPE)
    if isinstance(error, OSError):
        return Lost(what, error.strerror or str(error), None, 2)
    if isinstance(error, MemoryError):
        return Lost(what, "not enough memory", "fewer cases at once, with --run REGEX", 3)
    message = " ".join(str(error).split())
    return Lost(what, f"internal error: {type(error).__name__}: {message}", "set DPCALC_DEBUG=1 and report it", 4)


def worst(codes: Iterable[int]) -> int:
    """Return the most important exit code, by `PRECEDENCE`."""
    present = set(codes)
    return next((code for code in (CLOSED_PIPE, *PRECEDENCE) if code in present), max(present, default=0))


def tell(lost: Sequence[Lost]) -> None:
    """Report what was not written, and why."""
    for one in lost:
        if one.why:
            hint = f"\n  hint: {printable(one.hint)}" if one.hint else ""
            say(f"error: {printable(f'not written, or not whole: {one.what}: {one.why}')}{hint}")
