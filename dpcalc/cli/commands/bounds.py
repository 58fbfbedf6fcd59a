"""``dpcalc bounds``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.query import Command, parameter_options
from dpcalc.engine.ask import applying
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.files.output import write
from dpcalc.inert import json_text
from dpcalc.render.blocks import aligned
from dpcalc.theorems.record import all_bounds


@click.command("bounds", cls=Command, usual=("algorithm", "as_json", "output"))
@parameter_options("compare")
def command(**flags: Any) -> None:
    """List the bounds; of a run that is described, which apply and why the others do not.

    \b
      dpcalc bounds --algorithm shuffled
      dpcalc bounds --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 \\
        --sigma 2
    """
    chosen = [name for part in flags["algorithm"] for name in part]
    bounds = [b for b in all_bounds().values() if not chosen or set(chosen) & set(b.algorithms)]
    if flags["as_json"]:
        write(json_text([bound.to_dict() for bound in bounds], 2) + "\n", flags["output"])
        return
    given = {name: flags[name][0][0] for name in COMMANDS["compare"].parameters if flags[name] and name != "algorithm"}
    if given:
        table = _applying(chosen, **given)
    else:
        table = [("id", "kind", "--certify", "gives", "algorithm", "title")]
        table += [
            (b.id, b.kind, "yes" if b.certifiable else "no", b.notion, ", ".join(b.algorithms), b.title) for b in bounds
        ]
    write("\n".join(line.rstrip() for line in aligned(table)) + "\n", flags["output"])


def _applying(chosen: list[str], /, **given: Any) -> list[tuple[str, ...]]:
    """Return one row per algorithm and bound: whether it applies, and if not, why and what would make it."""
    if not chosen:
        raise SpecError("what is run is not known", "give --algorithm")
    table: list[tuple[str, ...]] = [("algorithm", "id", "kind", "applies", "because")]
    for algorithm in chosen:
        rows = applying(algorithm, given)
        table += [(row.algorithm, row.bound.id, row.bound.kind, row.applies, row.because) for row in rows]
    return table
