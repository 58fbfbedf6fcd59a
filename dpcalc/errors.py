"""The errors that dpcalc raises: each has a message, a hint, and the exit code of the command."""

from __future__ import annotations

import os

PRECEDENCE = (2, 4, 3, 1)
"""Exit codes in order of precedence: malformed input or output not written, an internal error, no valid answer, a
failed gate."""


class DpcalcError(Exception):
    """Base of every error dpcalc raises on purpose.

    Args:
        message: what was given and what is allowed, one line.
        hint: what to do about it, or None.
        parameters: the names of the parameters that the hint asks to give, change or leave out.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str | None = None, *, parameters: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.parameters = parameters

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})" if self.hint else self.message


class SpecError(DpcalcError):
    """The description of the run or the question is malformed (exit 2)."""

    exit_code = 2


def refuse(*refusals: tuple[bool, str, str | None]) -> None:
    """Refuse the first of these that holds: each is a condition, the message, and what to do.

    Raises:
        SpecError: one holds.
    """
    for holds, message, hint in refusals:
        if holds:
            raise SpecError(message, hint)


class GateRefused(SpecError):
    """A gate that says nothing of the run: it holds, or fails, whatever is found."""


class NotApplicable(DpcalcError):
    """A theorem's assumptions do not hold for the described run (exit 3)."""

    exit_code = 3


class MissingParameter(NotApplicable):
    """A theorem needs a parameter that was not given (exit 2)."""

    exit_code = 2


class DeltaMissing(NotApplicable):
    """The question is for mu, which the run has not: a delta must be asked about (exit 2)."""

    exit_code = 2


class Superseded(NotApplicable):
    """A theorem is for other runs, and sharper ones speak of this one."""


class Infeasible(DpcalcError):
    """No value of the unknown reaches the target (exit 3).

    ``reached`` is the most private value tried, ``epsilon`` what holds there.
    """

    exit_code = 3

    def __init__(
        self, message: str, hint: str | None = None, *, reached: float | None = None, epsilon: float | None = None
    ) -> None:
        super().__init__(message, hint)
        self.reached = reached
        self.epsilon = epsilon


class NotConverged(DpcalcError):
    """A numerical procedure could not certify an answer (exit 3)."""

    exit_code = 3


class WorkerLost(DpcalcError):
    """A worker of an executor died, did not answer, or answered something else: there is no verdict (exit 4)."""


class WorkerDied(WorkerLost):
    """A worker ended while it had a piece of work: that may be why (exit 4)."""


class Stopped(DpcalcError):
    """A computation was ended before its result was there (exit 3)."""

    exit_code = 3


class BoundFailed(DpcalcError):
    """The code of a bound failed unexpectedly (exit 4, where nothing else answers)."""

    exit_code = 4


class GateFailed(DpcalcError):
    """An assertion on a result is false (exit 1)."""

    exit_code = 1


class PrivacyWarning(UserWarning):
    """What was computed is less private than its budget says, or may be, or may not be what was meant."""


_ON_THE_WAY = ("dpcalc", "sklearn", "joblib", "contextlib")


def warn(message: str, category: type[Warning] = PrivacyWarning) -> None:
    """Warn at the line outside dpcalc and scikit-learn that led here, past decorators."""
    import sys
    import warnings

    frame, level = sys._getframe(1), 2
    while frame.f_back and str(frame.f_globals.get("__name__")).split(".")[0] in _ON_THE_WAY:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Disproved(DpcalcError):
    """A guarantee is below the truth (exit 4); ``report`` is the text of a report of it."""

    def __init__(self, message: str, report: str = "") -> None:  # without one while it is unpickled
        super().__init__(message, "please report this, with what is printed above")
        self.report = report


def debugging() -> bool:
    """Return whether DPCALC_DEBUG=1 asks for the traceback of an unexpected exception."""
    return os.environ.get("DPCALC_DEBUG") == "1"


class isolate_failure:  # noqa: N801 (it is used as a function)
    """Turn an unexpected exception in the code of a bound into an error of that bound alone.

    DPCALC_DEBUG=1 lets the exception through.

    Raises:
        BoundFailed: an exception other than a `DpcalcError`.
        NotConverged: there was not enough memory.
    """

    def __enter__(self) -> None:
        """Begin what may fail."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """Raise the error of the bound alone where the exception is another one."""
        if error is None or isinstance(error, DpcalcError) or not isinstance(error, Exception):
            return
        if isinstance(error, MemoryError):
            raise NotConverged("not enough memory", "fewer records or steps") from None
        if debugging():
            return
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise BoundFailed(f"failed: {what}", "please report it (DPCALC_DEBUG=1 shows where)") from error
