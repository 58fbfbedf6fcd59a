"""``dpcalc cite``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.output.terminal import show
from dpcalc.cli.query import Command, is_described, parameter_options, run_query
from dpcalc.cli.types import BOUND
from dpcalc.inert import json_text


@click.command("cite", cls=Command, usual=("as_json", "output"))
@click.argument("ids", metavar="[ID]...", type=BOUND, nargs=-1)
@parameter_options("compare")
def command(ids: tuple[str, ...], **flags: Any) -> None:
    """BibTeX of what the given bounds (default: all) rest on, or of the best answer for the run described.

    \b
      dpcalc cite iteration.pnsgd
      dpcalc cite feldman2018
      dpcalc cite --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 \\
        --sigma 2 -d 1e-6
    """
    if is_described(flags) and not ids:
        run_query("compare", flags if flags["as_json"] else {**flags, "format": flags["format"] or "bibtex"})
        return
    from dpcalc.render.several import cited

    text = cited(ids)
    show(json_text({"bibtex": text}, 2) + "\n" if flags["as_json"] else text, flags["output"])
