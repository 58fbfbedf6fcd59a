"""``dpcalc statement``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("statement", cls=Command)
@parameter_options("compare")
def command(**flags: Any) -> None:
    """A paragraph for a paper's appendix or a model card: what is run, what holds of it, and every assumption.

    \b
      dpcalc statement --algorithm shuffled -n 60000 -L 1 --smoothness 1 \\
        --eta 0.1 --sigma 2 -d 1e-6
    """
    run_query("compare", {**flags, "format": flags["format"] or "statement"})
