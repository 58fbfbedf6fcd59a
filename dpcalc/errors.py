"""What dpcalc raises: every failure carries a message, a cure, and the exit code a shell sees."""

from __future__ import annotations


class DpcalcError(Exception):
    """Base of every error dpcalc raises on purpose.

    Args:
        message: what was given and what is allowed, one line.
        hint: what to do about it, or None.
    """

    exit_code = 4

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class SpecError(DpcalcError):
    """The description of the run or the question is malformed (exit 2)."""

    exit_code = 2


class NotApplicable(DpcalcError):
    """A theorem's assumptions do not hold for the described run (exit 3)."""

    exit_code = 3


class MissingParameter(NotApplicable):
    """A theorem needs a parameter that was not given (exit 2)."""

    exit_code = 2


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


class GateFailed(DpcalcError):
    """An assertion on a result is false (exit 1)."""

    exit_code = 1


class Disproved(DpcalcError):
    """A guarantee was found to be below the truth (exit 4); ``report`` is what a report of it should contain."""

    def __init__(self, message: str, report: str) -> None:
        super().__init__(message, "please report this, with what is printed above")
        self.report = report
