"""``dpcalc hockey-stick``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("hockey-stick", cls=Command)
@parameter_options("hockey-stick")
def command(**flags: Any) -> None:
    """One record's delta(epsilon) along a fixed-order pass, or one stopped at random; Gaussian or Laplace noise.

    \b
    How well are 50000 later steps on a set of diameter 2 hiding record 50000?
      dpcalc hockey-stick -n 100000 -i 50000 -L 1 --smoothness 1 --eta 0.1 \\
        --sigma 2 -D 2 -e 0.1
    Clipped gradients, nothing else known of the loss:
      dpcalc hockey-stick -n 100 -i 1 -L 1 --loss-class lipschitz --eta 1 \\
        --sigma 2 -D 1 -e 1
    What Laplace noise does it need?
      dpcalc hockey-stick -n 1000 -i 900 -L 1 --smoothness 1 --eta 0.1 -D 1 \\
        --noise laplace -e 1 -d 1e-6
    """
    run_query("hockey-stick", flags)
