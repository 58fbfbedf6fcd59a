"""``dpcalc evaluate``."""

from __future__ import annotations

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.output.printing import check_picture, format_of, put_picture
from dpcalc.cli.output.terminal import show
from dpcalc.cli.types import FILE
from dpcalc.errors import SpecError
from dpcalc.files.output import check_outputs


@click.command("evaluate", cls=WithHelp)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option("--data", type=FILE, required=True, help="The test rows: CSV with a header, NPY, NPZ or Parquet.")
@click.option("--private", is_flag=True, help="Release noisy metrics, with a guarantee for the test rows; needs -e.")
@click.option("--epsilon", "-e", metavar="NUM", help="Epsilon of the private evaluation; delta is 0.")
@click.option(
    "--error-bound", metavar="NUM", help="Clip errors to this bound (private; default: the width of the target range)."
)
@click.option("--ledger", type=FILE, help="Charge the private evaluation to this ledger; a new one is created.")
@click.option("--threshold", metavar="P", help="Predict +1 if its probability is larger than this (default 0.5).")
@click.option("--verbose", "-v", is_flag=True, help="Also show every class, the confusion matrix and the calibration.")
@click.option(
    "--plot",
    type=FILE,
    help="Also draw reliability and ROC, to FILE.svg, .png or .pdf; -: in the terminal instead of the report.",
)
@click.option("--format", type=click.Choice(["plain", "json"]), help="Default: plain.")
@click.option("--json", "as_json", is_flag=True, help="Short for --format json.")
@click.option("--output", "-o", type=FILE, help="Write to FILE, atomically, instead of stdout.")
def command(
    model: str, data: str, private: bool, epsilon: str | None, error_bound: str | None, ledger: str | None,
    threshold: str | None, verbose: bool, plot: str | None, format: str | None, as_json: bool, output: str | None,
) -> None:  # fmt: skip
    """Evaluate a model that `dpcalc train -o` wrote on test rows.

    The metrics are accuracy, AUC, log loss, calibration, precision and recall, or RMSE, MAE and R2 in the units of the
    target. They are computed without noise: publish them only if the test rows are public. --private releases the
    accuracy, or RMSE and MAE of clipped errors, with exact integer noise and a separate guarantee for the test rows
    (pure, replace-one).

    \b
    Metrics for those who may see the test rows:
      dpcalc train --data example:breast-cancer -e 1 -d 1e-5 -o model.json
      dpcalc evaluate model.json --data example:breast-cancer
    A number to publish, charged to the ledger of the test rows:
      dpcalc evaluate model.json --data example:breast-cancer --private -e 0.5 \\
        --ledger spent.yaml
    """
    from dpcalc.training import one_blas_thread

    one_blas_thread()
    check_outputs([(output, "-o"), *check_picture(plot)], (model, data, ledger))
    check_outputs([(ledger, "--ledger")], (model, data))
    as_json = format_of(format, as_json, output) == "json"
    only_private = {"--epsilon": epsilon, "--error-bound": error_bound, "--ledger": ledger}
    strange = [flag for flag, value in only_private.items() if value is not None]
    if strange and not private:
        raise SpecError(f"{strange[0]} goes with a private evaluation", "add --private")
    if private and epsilon is None:
        raise SpecError("a private evaluation needs an epsilon", "for example --epsilon 0.5")
    from dpcalc.inert import json_text
    from dpcalc.model.numbers import parse_number
    from dpcalc.recipes.ledgers.charge import evaluate
    from dpcalc.render.models import evaluation_text

    report = evaluate(
        model, data, epsilon=None if epsilon is None else parse_number(epsilon), ledger=ledger,
        error_bound=None if error_bound is None else parse_number(error_bound),
        threshold=None if threshold is None else parse_number(threshold),
    )  # fmt: skip
    if plot is not None:
        from dpcalc.render.chart.measured import evaluation_chart

        if not put_picture(evaluation_chart(report), plot):
            return
    as_text = json_text(report, 2) + "\n" if as_json else evaluation_text(report, everything=verbose)
    show(as_text, output)
