"""``dpcalc merge``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from dpcalc.cli.output.conclusion import Printing, conclude, load_baseline
from dpcalc.cli.output.printing import report_options, reports_option, verdict
from dpcalc.cli.output.reports import Destination, destinations, write_reports, written_to
from dpcalc.cli.output.terminal import REPORTS, color_of, tell, worst
from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE
from dpcalc.errors import SpecError
from dpcalc.files.output import check_outputs, write
from dpcalc.render import render
from dpcalc.render.check import KINDS
from dpcalc.report import Report


def _conclude_sweep(result: Report, printing: Printing, found: Sequence[Destination], baseline: str | None) -> None:
    """Print and write the report on a sweep of queries, and exit as its command does."""
    if baseline is not None:
        raise SpecError("--baseline goes with the shards of a check", "leave --baseline out")
    others = [destination.kind for destination in found if destination.kind not in REPORTS]
    if others:
        raise SpecError(f"--report {others[0]}= needs shards of a check", f"a comparison writes {', '.join(REPORTS)}")
    color = color_of(printing.color)
    write(render(result, printing.format, printing.precision, color=color, verbose=0), printing.file)
    lost = write_reports(result, found, REPORTS, printing.precision)
    code = verdict(result) if any(case.best for case in result.cases) else 3
    tell(lost)
    if code := worst([code, *(one.exit_code for one in lost)]):
        raise click.exceptions.Exit(code)


@click.command("merge", cls=Command)
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1, required=True)
@reports_option(KINDS)
@click.option(
    "--baseline",
    type=FILE,
    help="Compare with an earlier --report json=FILE; fail if a case asks for less than there.",
)
@report_options
def command(files: tuple[str, ...], reports: tuple[str, ...], baseline: str | None, **output: Any) -> None:
    """Merge the reports of all shards of a check into one verdict, or those of a compare into one report.

    \b
    A recipe, budget.yaml:
        dpcalc: recipe/1
        defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1,
                   algorithm: pnsgd, delta: 1e-6}
        cases:
          first: {noise_std: 20, assert: epsilon <= 1}
          other: {noise_std: 30, assert: epsilon <= 1}
    Two machines evaluate half of the cases each, and a third gives the verdict:
      dpcalc check budget.yaml --shard 1/2 --report json=1.json
      dpcalc check budget.yaml --shard 2/2 --report json=2.json
      dpcalc merge 1.json 2.json --report junit=gates.xml --report json=all.json

    Reports of check may be JSON or lines of JSON (jsonl=FILE), those of compare JSON.

    The result is the report of an unsharded check, in any order of the files. If a shard is missing, given twice,
    damaged, or of another version, recipe or set of options, that is an error, and there is no verdict.

    Exits like dpcalc check: with 0 if every gate held, 1 if one did not, 2 if the shards do not belong together, 3 if
    a case has no answer.
    """
    from dpcalc.recipes.running.saved import read_report
    from dpcalc.recipes.running.shards import merged

    printing = Printing.of(**output)
    wanted = destinations(reports, KINDS, example="json=all.json")
    check_outputs(written_to(printing.file, wanted), (*files, baseline))
    earlier = load_baseline(baseline)
    result = merged([(os.fsdecode(file), read_report(file)) for file in files])
    if result.command != "check":
        _conclude_sweep(result, printing, wanted, baseline)
        return
    conclude(result, printing, wanted, earlier)
