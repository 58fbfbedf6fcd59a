"""Who is told how far a run is."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, in all)."""

Phases = Callable[[str], Progress | None]
"""Name of a phase -> what is called during it, None where nobody asks. A phase may have no calls."""


Warned = Callable[[str], None]
"""Takes what is to be said before records are used."""


def unheard(text: str) -> None:
    """Say nothing: the report has it."""


def silent(phase: str) -> Progress | None:
    """Tell nobody."""
    return None
