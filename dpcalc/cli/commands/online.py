"""``dpcalc online``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.query import Command, parameter_options, run_query
from dpcalc.model.quantities import Noise


@click.command("online", cls=Command)
@parameter_options("online")
@click.option(
    "--print-noise", is_flag=True, help="Print record,scale lines from --index (or 1) to -n (or without end)."
)
def command(print_noise: bool, **flags: Any) -> None:
    """Account for one pass over a growing stream with decaying noise; the latest iterate is released once.

    Only its own noise protects the newest record, and that noise decays: no guarantee holds for all records at once.
    Ask about one record with --index, or about all records that at least --window others follow.

    \b
    After a million records, how private is the 100th?
      dpcalc online -n 1e6 -i 100 -L 10 --loss-class convex-smooth \\
        --smoothness 1 --eta 0.01 -D 1 --noise laplace --c1 100 --c2 100 \\
        --decay-exponent 1.5 -e 1
    How old must a record be?
      dpcalc online -n 1e6 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 \\
        --c2 100 --decay-exponent 1.5 -e 1 -d 1e-6 --solve window
    The noise for each new record:
      dpcalc online -n 5 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 \\
        --decay-exponent 1.5 -e 1 -d 1e-6 --print-noise
    """
    if print_noise:
        _print_noise(**flags)
        return
    run_query("online", flags)


def _print_noise(**flags: Any) -> None:
    """Print one CSV line per record until the reader closes the pipe."""
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.errors import SpecError
    from dpcalc.files.output import write
    from dpcalc.model.parameter import PARAMETERS
    from dpcalc.model.run import describe
    from dpcalc.theorems.contraction.stream_noise import Stream

    given = {name: flags[name][0][0] for name in COMMANDS["online"].parameters if flags.get(name)}
    run = describe("online", {name: value for name, value in given.items() if name not in ("index", "window")})
    missing = [name for name in Stream.fields if run.value(name) is None]
    if missing:
        raise SpecError(
            f"the noise schedule needs {', '.join(missing)}",
            "give " + ", ".join(PARAMETERS[name].flag for name in missing),
        )
    stream = Stream.of(run)
    write("record," + ("laplace_scale" if stream.noise == Noise.LAPLACE else "noise_std") + "\n", None)
    for record, scale in stream.scales(int(given.get("index", 1)), float(given.get("records", float("inf")))):
        write(f"{record},{scale!r}\n", None)
