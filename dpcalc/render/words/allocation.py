"""The lines on where the shifts of ``shifted`` are spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpcalc.render.layout import counted

_COSTLIEST = 5
"""How many blocks are listed."""


def allocation_lines(allocation: Mapping[str, Any]) -> list[str]:
    """Return what is said of an allocation as `dpcalc.theorems.one_pass.allocation` describes it."""
    lines, restart = [], allocation["restart"]
    if restart:
        lines.append(f"steps 1 to {restart} are forgotten: the runs are then at most the diameter apart")
    if blocks := allocation.get("block_count"):
        lines.append(f"{counted(blocks, 'block')} of constant slope; the costliest:")
    for block in allocation.get("blocks", ())[:_COSTLIEST]:
        lines.append(f"  steps {block['first']} to {block['last']}: {block['share']:.1%} of mu^2")
    quarters = allocation["quarters"]
    lines.append(f"shares of mu^2 in the four quarters of the run: {', '.join(f'{q:.1%}' for q in quarters)}")
    return lines if all(map(math.isfinite, quarters)) else lines[:1]
