"""``dpcalc utility``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import parameter_options, run_query


@click.command("utility")
@parameter_options("utility")
def command(**flags: Any) -> None:
    """What a budget costs: the excess risk, noise, step size and steps by every theorem that applies, best first.

    \b
    Logistic regression on 100000 records with 20 features of norm at most 1: what does epsilon = 1 cost?
      dpcalc utility --loss logistic --feature-bound 1 -n 1e5 --dimension 20 -R 1 -e 1 -d 1e-6
    Risk against budget:
      dpcalc utility --loss logistic --feature-bound 1 -n 1e5 --dimension 20 -R 1 -e 0.25:4:log5 -d 1e-6
    With constants of your own:
      dpcalc utility -L 1 --smoothness 1 -n 1e5 --dimension 20 -R 1 -e 1 -d 1e-6
    """
    run_query("utility", flags)
