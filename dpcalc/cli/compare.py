"""``dpcalc compare``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("compare", cls=Command)
@parameter_options("compare")
@click.option(
    "--shard",
    metavar="I/N",
    help="Only shard I of N of a sweep, for one of N machines; dpcalc merge makes one report of their --report "
    "json=FILE.",
)
def command(**flags: Any) -> None:
    """Describe what is run; every bound that applies is evaluated, best first, and the others say why they do not.

    \b
    One pass in a random order: how private, and what would make it better?
      dpcalc compare --algorithm shuffled -n 60000 -L 1 --smoothness 1 \\
        --eta 0.1 --sigma 2 -d 1e-6
    What does shuffling buy?
      dpcalc compare --algorithm pnsgd,shuffled,noisy-sgd -n 60000 -L 1 \\
        --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
    The noise for several budgets:
      dpcalc compare --algorithm cyclic --epochs 10 -n 60000 -L 1 \\
        --smoothness 1 --eta 0.1 -d 1e-6 -e 0.5,1,2
    """
    run_query("compare", flags)
