"""Blocks fitted to a terminal, coloured by rich."""

from __future__ import annotations

from collections.abc import Iterable

from dpcalc.render.blocks import Block


def table(blocks: Iterable[Block], color: bool | None) -> str:
    """Return blocks fitted to the terminal, with colour if ``color`` (None: as rich detects)."""
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=color, no_color=color is False, highlight=False, emoji=False, markup=False)
    with console.capture() as captured:
        for block in blocks:
            for lines, style in block.laid_out(console.width):
                for line in lines:
                    console.print(Text(line, style=style), soft_wrap=True)
    return captured.get()
