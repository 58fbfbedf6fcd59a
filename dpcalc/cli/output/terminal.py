"""What standard output is, and whether to colour it."""

from __future__ import annotations

import os
import sys


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
