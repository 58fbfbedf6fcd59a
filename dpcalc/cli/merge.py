"""``dpcalc merge``."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from dpcalc.cli.conclusion import Printing, conclude, load_baseline
from dpcalc.cli.options import Command
from dpcalc.cli.printing import report_options, reports_option
from dpcalc.cli.reports import destinations, refuse_all_unwritable
from dpcalc.errors import SpecError
from dpcalc.files.output import place_of, refuse_unwritable
from dpcalc.inert import printable
from dpcalc.render.check import KINDS


@click.command("merge", cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@reports_option(KINDS)
@click.option(
    "--baseline",
    metavar="FILE",
    help="An earlier --report json=FILE to compare with; what asks for less in a strict recipe fails.",
)
@report_options
def command(files: tuple[str, ...], reports: tuple[str, ...], baseline: str | None, **output: Any) -> None:
    """Make one verdict of the reports of all shards of a check.

    \b
    Two machines take half of the cases each, and a third has the verdict:
      dpcalc check budget.yaml --shard 1/2 --report json=1.json
      dpcalc check budget.yaml --shard 2/2 --report json=2.json
      dpcalc merge 1.json 2.json --report junit=gates.xml --report json=all.json

    The report is the one that a check of all cases writes, whichever the order of the files. A shard that is missing,
    doubled, damaged, of another version, recipe or set of options is an error, and no verdict is given.

    Exits as dpcalc check does: with 0 if every gate held, 1 if one did not, 2 if the shards do not belong together, 3
    if a case has no answer.
    """
    from dpcalc.recipes.saved import read_report
    from dpcalc.recipes.shards import merged

    printing = Printing.of(**output)
    found = destinations(reports, KINDS, others=(printing.file,), example="json=all.json")
    inputs = {place_of(file) for file in files}
    for path in (printing.file, *(each.path for each in found)):
        if path is not None and place_of(path) in inputs:
            raise SpecError(f"{printable(path)} is a shard, and would be written over", "choose another file")
    refuse_unwritable(printing.file, "-o")
    refuse_all_unwritable(found)
    earlier = load_baseline(baseline)
    shards = [(os.fsdecode(file), read_report(file)) for file in files]
    result = merged(shards)
    shard = shards[0][1].shard
    assert shard is not None
    strictly = [file for file, strict in shard.recipes if strict or json.loads(shard.options)["strict"]]
    conclude(result, printing, found, earlier, strictly)
