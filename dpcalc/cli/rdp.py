"""``dpcalc rdp``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("rdp", cls=Command)
@parameter_options("rdp")
def command(**flags: Any) -> None:
    """One fixed-order pass of noisy SGD whose iterates stay hidden.

    \b
    How private is one pass over 60000 records?
      dpcalc rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 --delta 1e-6
    What noise gives epsilon 1 to the first half of the records?
      dpcalc rdp -n 60000 -i 30000 -L 1 --smoothness 1 --eta 0.1 -e 1 -d 1e-6

    Numeric flags take a value, a list 1,2,4, a range 1:10:0.5 or a log range 1:1000:log7.
    """
    run_query("rdp", flags)
