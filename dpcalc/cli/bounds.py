"""``dpcalc bounds``."""

from __future__ import annotations

import json
from typing import Any

import click

from dpcalc.cli.options import parameter_options
from dpcalc.commands import COMMANDS, applying
from dpcalc.errors import SpecError
from dpcalc.output import write
from dpcalc.registry import all_bounds
from dpcalc.render.plain import aligned


@click.command("bounds")
@parameter_options("compare")
def command(**flags: Any) -> None:
    """List the bounds; of a run that is described, which apply and why the others do not.

    \b
      dpcalc bounds --algorithm shuffled
      dpcalc bounds --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2
    """
    chosen = [name for part in flags["algorithm"] for name in part]
    found = [b for b in all_bounds().values() if not chosen or set(chosen) & set(b.algorithms)]
    if flags["as_json"]:
        write(json.dumps([bound.to_dict() for bound in found], indent=2) + "\n", flags["output"])
        return
    given = {name: flags[name][0][0] for name in COMMANDS["compare"].parameters if flags[name] and name != "algorithm"}
    if given:
        table = _applying(chosen, given)
    else:
        table = [("id", "kind", "gives", "algorithm", "title")]
        table += [(b.id, b.kind, b.gives, ", ".join(b.algorithms), b.title) for b in found]
    write("\n".join(line.rstrip() for line in aligned(table)) + "\n", flags["output"])


def _applying(chosen: list[str], given: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return one row per algorithm and bound: whether it applies, and if not, why and what would make it."""
    if not chosen:
        raise SpecError("what is run is not known", "give --algorithm")
    table: list[tuple[str, ...]] = [("algorithm", "id", "kind", "applies", "because")]
    for algorithm in chosen:
        table += [(ran, bound.id, bound.kind, *why) for ran, bound, *why in applying(algorithm, given)]
    return table
