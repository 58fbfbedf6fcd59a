"""``dpcalc schema``."""

from __future__ import annotations

import click

from dpcalc.references import DATA


@click.command("schema")
@click.argument("name", type=click.Choice(["report"]), default="report")
def command(name: str) -> None:
    """Print a JSON schema."""
    click.echo((DATA / f"{name}-1.schema.json").read_text(encoding="utf-8"), nl=False)
