"""``dpcalc multi-epoch``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query
from dpcalc.engine.commands import COMMANDS
from dpcalc.model.algorithm import ALGORITHMS

_HELP = """\
Many passes over the records; the last iterate is released, or with --release epoch the iterate after every pass.

\b
--algorithm says how the records are ordered, and that is no detail:
{algorithms}
A guarantee for one does not hold for another.

\b
Twenty passes over 60000 records in batches of 256:
  dpcalc multi-epoch -n 60000 --batch-size 256 --epochs 20 -L 1 --smoothness 1 --eta 0.1 --sigma 0.05 -d 1e-6
How many may it be?
  dpcalc multi-epoch -n 60000 --batch-size 256 -L 1 --smoothness 1 --eta 0.1 --sigma 0.05 -e 2 -d 1e-6 \\
      --solve epochs
Laplace noise on one parameter, every pass released, or only the last:
  dpcalc multi-epoch -n 1000 --epochs 20 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 20 --release epoch -d 1e-6
  dpcalc multi-epoch -n 1000 --epochs 20 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 20 -d 1e-6
Privacy against time:
  dpcalc multi-epoch --algorithm cyclic,shuffled-epochs -n 60000 --epochs 1:1000:log7 ... --format csv
"""


def _order(name: str) -> str:
    """Return a line on how an algorithm orders the records."""
    default = " (default)" if name == COMMANDS["multi-epoch"].default else ""
    return f"  {name:<15}  {ALGORITHMS[name].gloss.partition(';')[0]}{default}"


@click.command(
    "multi-epoch",
    cls=Command,
    help=_HELP.format(algorithms="\n".join(_order(name) for name in COMMANDS["multi-epoch"].algorithms)),
)
@parameter_options("multi-epoch")
def command(**flags: Any) -> None:
    """Run ``dpcalc multi-epoch``."""
    run_query("multi-epoch", flags)
