"""``dpcalc model``."""

from __future__ import annotations

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.output.printing import check_picture, format_of, put_picture
from dpcalc.cli.output.terminal import show
from dpcalc.cli.types import FILE
from dpcalc.files.output import check_outputs


@click.command("model", cls=WithHelp)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option("--verbose", "-v", is_flag=True, help="Show all coefficients, and how to interpret them.")
@click.option(
    "--plot",
    type=FILE,
    help="Also draw the largest ones, to FILE.svg, .png or .pdf; -: in the terminal instead of the report.",
)
@click.option("--format", type=click.Choice(["plain", "json", "csv", "markdown"]), help="Default: plain.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--output", "-o", type=FILE, help="Write to FILE, atomically, instead of stdout.")
def command(model: str, verbose: bool, plot: str | None, format: str | None, as_json: bool, output: str | None) -> None:
    """Show a model that `dpcalc train -o` wrote: coefficients in the units of the columns, and their privacy noise.

    This uses only the released file, so it costs no privacy.

    \b
      dpcalc train --data example:breast-cancer -e 1 -d 1e-5 -o model.json
      dpcalc model model.json
      dpcalc model model.json -v --format markdown -o coefficients.md
    """
    check_outputs([(output, "-o"), *check_picture(plot)], (model,))
    format = format_of(format, as_json, output)
    from dpcalc.render.models import coefficients_text
    from dpcalc.training.release.coefficients import coefficients_of
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor

    found = coefficients_of(predictor(load(model)))
    if plot is not None:
        from dpcalc.render.chart.measured import coefficients_chart

        if not put_picture(coefficients_chart(found.largest, model), plot):
            return
    show(coefficients_text(found.to_json(), format, everything=verbose), output)
