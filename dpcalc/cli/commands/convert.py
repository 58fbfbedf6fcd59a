"""``dpcalc convert``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.output.printing import emit
from dpcalc.cli.query import Askers, Command, conversion_options, run_cases
from dpcalc.engine.convert import convert, convert_among_others
from dpcalc.render.notes import report


@click.command("convert", cls=Command, usual=("mu", "rho", "pure", "rdp", "epsilon", "delta", "order", "to", "as_json"))
@conversion_options
def command(rdp: tuple[str, ...], **flags: Any) -> None:
    """Convert a guarantee to another notion of privacy.

    \b
    Gaussian and concentrated privacy as epsilon, or as delta:
      dpcalc convert --mu 1 -d 1e-5
      dpcalc convert --rho 0.5 -d 1e-6
      dpcalc convert --mu 1 -e 2
    Pure privacy as Gaussian or concentrated privacy, or as a Renyi divergence:
      dpcalc convert --pure 1 --to mu,rho
      dpcalc convert --pure 1 --order 2,8
    A Renyi divergence as epsilon:
      dpcalc convert --rdp 'order=8 epsilon=1' -d 1e-6
    Which mu is enough for a budget? (The budget alone implies no mu.)
      dpcalc convert -e 1 -d 1e-5 --to mu

    A guarantee that follows is rounded up. One that does not follow is refused with the reason: (epsilon, delta)
    implies no mu, rho or Renyi divergence. For these the answer is how much is enough for the budget, rounded down.
    """
    if rdp:
        flags["rdp"] = [[rdp]]
    cases, output = run_cases("convert", flags, Askers(convert, convert_among_others))
    emit(report("convert", cases), output)
