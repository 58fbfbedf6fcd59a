"""``dpcalc dp-sgd``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("dp-sgd", cls=Command)
@parameter_options("dp-sgd")
def command(**flags: Any) -> None:
    """SGD on uniformly sampled records with losses that need not be smooth (Hoelder gradients); the average is used.

    \b
    --algorithm says where the noise is:
      dp-sgd-gradient  on every gradient; the iterates may be released (default)
      dp-sgd-output    on the averaged output alone; the iterates stay hidden

    \b
    How much noise on the gradients of a hinge loss?
      dpcalc dp-sgd --loss hinge --feature-bound 1 -n 10000 -R 1 -e 1 -d 1e-8
    And on the output?
      dpcalc dp-sgd --algorithm dp-sgd-output --loss hinge --feature-bound 1 -n 10000 -R 1 --eta 0.001 -e 1 -d 1e-8
    """
    run_query("dp-sgd", flags)
