"""Plain text: aligned columns, ASCII only, the same content as the terminal's."""

from __future__ import annotations

from collections.abc import Iterable

from dpcalc.render.blocks import Block


def plain(blocks: Iterable[Block]) -> str:
    """Return blocks as plain text, every paragraph in one line."""
    return "".join(f"{line.rstrip()}\n" for block in blocks for line in block.lines(None))
