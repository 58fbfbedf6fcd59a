"""``dpcalc unlearn``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.options import Command, parameter_options
from dpcalc.cli.query import run_query


@click.command("unlearn", cls=Command)
@parameter_options("unlearn")
def command(**flags: Any) -> None:
    """Make a model forget records by noisy steps on those kept: w -> w - eta (gradient + noise).

    What is compared with is the model without the records, trained on by the same steps (Sekhari et al. 2021, with a
    request to forget nothing that takes the steps too). It is also the model without them itself (Guo et al. 2020) if
    that one's last steps were these. Who holds the old model has what its training tells.

    \b
    A minimiser of 1000 strongly convex losses; how many steps?
      dpcalc unlearn --start minimiser -n 1000 -L 1 --smoothness 1 \\
        --strong-convexity 0.1 --eta 0.1 --sigma 0.5 -e 0.1 -d 1e-6 \\
        --solve clean_steps
    The last iterate of noisy SGD:
      dpcalc unlearn --start run -n 1000 --batch-size 10 --epochs 20 -L 1 \\
        --smoothness 1 --strong-convexity 0.1 --eta 0.1 --sigma 0.5 \\
        --clean-steps 50 -d 1e-6
    From a known distance; columns contraction, step_size, noise_std:
      dpcalc unlearn --start-distance 0.02 --schedule steps.csv -d 1e-6
    """
    run_query("unlearn", flags)
