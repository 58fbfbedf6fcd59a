"""Types of callbacks for progress and warnings."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called with (done, all)."""

Phases = Callable[[str], Progress | None]
"""Name of a phase -> its progress callback, or None. A phase may make no calls."""


Warned = Callable[[str], None]
"""Called with each warning before records are used."""


def unheard(text: str) -> None:
    """Ignore a warning; the report has it, too."""


def silent(phase: str) -> Progress | None:
    """Return no callback."""
    return None
