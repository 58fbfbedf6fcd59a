"""``dpcalc cite``."""

from __future__ import annotations

import click

from dpcalc.output import write
from dpcalc.references import entries
from dpcalc.registry import all_bounds, lookup


@click.command("cite")
@click.argument("ids", metavar="[ID]...", nargs=-1)
def command(ids: tuple[str, ...]) -> None:
    """BibTeX of what the given bounds (default: all) rest on."""
    chosen = [lookup(id) for id in ids] or list(all_bounds().values())
    known = entries()
    keys = dict.fromkeys(bound.reference for bound in chosen)
    write("\n\n".join(known[key] for key in keys) + "\n", None)
