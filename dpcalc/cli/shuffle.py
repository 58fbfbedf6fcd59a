"""``dpcalc shuffle``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("shuffle", cls=Command)
@parameter_options("shuffle")
def command(**flags: Any) -> None:
    """One pass in a random order; only the last iterate is released.

    The order may be published, unless --permutation secret promises that it, its seed and all logs of single steps stay
    secret for ever: the record's position is then hidden as well, which is worth orders of magnitude.

    \b
    How private is one shuffled pass?
      dpcalc shuffle -n 100000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -D 2 \\
        --delta 1e-6
    The noise schedule of Sordello et al., tuned to n, beside its limit:
      dpcalc shuffle -n 1e6:1e9:log4 -L 10 --loss-class convex-smooth \\
        --smoothness 1 --eta 0.1 -D 1 --c1 1e5 --c2 100 -e 1
    """
    run_query("shuffle", flags)
