"""``dpcalc schema``."""

from __future__ import annotations

import click

from dpcalc.output import write
from dpcalc.references import read


@click.command("schema")
@click.argument("name", type=click.Choice(["report"]), default="report")
def command(name: str) -> None:
    """Print a JSON schema."""
    write(read(f"{name}-1.schema.json"), None)
