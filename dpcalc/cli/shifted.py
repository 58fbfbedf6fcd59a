"""``dpcalc shifted``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("shifted", cls=Command)
@parameter_options("shifted")
def command(**flags: Any) -> None:
    """Any sequence of noisy Lipschitz steps: w -> map(w) + noise, where the two runs' maps differ by at most a shift.

    \b
    A record used in every step of 100 (full batch of 1000, L = 1):
      dpcalc shifted --steps 100 --shift 0.0002 --contraction 0.99 --eta 0.1 \\
        --sigma 0.02 --delta 1e-6
    Per-step values from a file with columns shift, contraction, step_size,
    noise_std (and spend, to check your own):
      dpcalc shifted --schedule steps.csv --delta 1e-6
    """
    run_query("shifted", flags)
