"""Where a value of a run came from."""

from __future__ import annotations

from dpcalc.plain_enum import PlainEnum


class Source(PlainEnum):
    """Where a value came from; its text is what JSON says."""

    FLAG = "flag"
    ARGUMENT = "argument"
    FILE = "file"
    LOSS = "loss"
    DATA = "data"
    DEFAULT = "default"
    WORST_CASE = "worst case"
    DERIVED = "derived"

    @property
    def typed(self) -> bool:
        """Whether a person gave the value, on the command line or in Python."""
        return self in (Source.FLAG, Source.ARGUMENT)

    @property
    def given(self) -> bool:
        """Whether the value was given, or is that of what was: of a file, or of a loss by its name."""
        return self.typed or self in (Source.FILE, Source.LOSS)
