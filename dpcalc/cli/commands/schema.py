"""``dpcalc schema``."""

from __future__ import annotations

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.files.output import write
from dpcalc.references import read


@click.command("schema", cls=WithHelp)
@click.argument("name", type=click.Choice(["report", "recipe", "policy", "card"]), default="report")
def command(name: str) -> None:
    """Print a JSON schema: of a report (the default), of a recipe, of a policy, or of a privacy card.

    \b
    An editor with YAML's language server completes a recipe that starts with
      # yaml-language-server: $schema=recipe-1.schema.json
    beside which this was run:
      dpcalc schema recipe > recipe-1.schema.json
    """
    if name not in ("recipe", "policy"):
        write(read(f"{name}-1.schema.json"), None)
        return
    from dpcalc.inert import json_text
    from dpcalc.recipes.judging.policy_file import policy_schema
    from dpcalc.recipes.reading.schema import recipe_schema

    write(json_text(recipe_schema() if name == "recipe" else policy_schema(), 2) + "\n", None)
