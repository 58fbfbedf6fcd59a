"""``dpcalc multi-epoch``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("multi-epoch", cls=Command)
@parameter_options("multi-epoch")
def command(**flags: Any) -> None:
    """Many passes over the records; the last iterate is released, or with --release epoch the iterate after every pass.

    --algorithm says how the records are ordered: a guarantee for one order does not hold for another.

    \b
    Twenty passes over 60000 records in batches of 256:
      dpcalc multi-epoch -n 60000 --batch-size 256 --epochs 20 -L 1 \\
        --smoothness 1 --eta 0.1 --sigma 0.05 -d 1e-6
    How many may it be?
      dpcalc multi-epoch -n 60000 --batch-size 256 -L 1 --smoothness 1 \\
        --eta 0.1 --sigma 0.05 -e 2 -d 1e-6 --solve epochs
    Laplace noise on one parameter; --release epoch for every pass:
      dpcalc multi-epoch -n 1000 --epochs 20 -L 1 --smoothness 1 \\
        --eta 0.1 --laplace-scale 20 -d 1e-6
    Privacy against time:
      dpcalc multi-epoch --algorithm cyclic,shuffle-once -n 60000 \\
        --epochs 1:1000:log7 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6
    """
    run_query("multi-epoch", flags)
