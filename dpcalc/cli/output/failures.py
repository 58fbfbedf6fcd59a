"""What could not be written: told at the end, after everything that could, and part of the exit code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import PRECEDENCE, DpcalcError, debugging
from dpcalc.files.output import say
from dpcalc.inert import printable

CLOSED_PIPE = 141


class Lost(NamedTuple):
    """Something that was not written, or not whole, and what dpcalc alone would exit with for it."""

    what: str
    why: str
    hint: str | None
    exit_code: int


def attempt(what: str, work: Callable[[], Any]) -> list[Lost]:
    """Do some work, and return what is lost where it fails."""
    try:
        work()
    except Exception as error:  # whatever it is, it must not keep the rest from being written
        return [lost_by(what, error)]
    return []


def lost_by(what: str, error: Exception) -> Lost:
    """Return what an error costs."""
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
    """Return the exit code that tells most, by `PRECEDENCE`."""
    present = set(codes)
    return next((code for code in (CLOSED_PIPE, *PRECEDENCE) if code in present), max(present, default=0))


def tell(lost: Sequence[Lost]) -> None:
    """Say what was not written, and why."""
    for one in lost:
        if one.why:
            hint = f"\n  hint: {printable(one.hint)}" if one.hint else ""
            say(f"error: {printable(f'not written, or not whole: {one.what}: {one.why}')}{hint}")
