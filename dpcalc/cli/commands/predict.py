"""``dpcalc predict``."""

from __future__ import annotations

import click

from dpcalc.cli.help.option import WithHelp
from dpcalc.cli.types import FILE
from dpcalc.files.output import check_outputs, in_pieces, say
from dpcalc.inert import printable


@click.command("predict", cls=WithHelp)
@click.argument("model", metavar="MODEL", type=FILE)
@click.option("--data", type=FILE, required=True, help="The rows: CSV with a header, NPY, NPZ or Parquet.")
@click.option("--threshold", metavar="P", help="Predict +1 if its probability is larger than this (default 0.5).")
@click.option("--output", "-o", type=FILE, help="Write to FILE, atomically, instead of stdout (also: -).")
def command(model: str, data: str, threshold: str | None, output: str | None) -> None:
    """Predict the target of every row with a model that `dpcalc train -o` wrote; the output is CSV.

    The model's columns are found by name, in any order; other columns are ignored, and no target is needed. Each line
    has the prediction (a class, or a number in the units of the target). It also has the probability of the class +1
    (logistic), the probability of the predicted class (softmax), or the score (hinge).

    \b
    Train a model, and predict with it:
      dpcalc train --data example:breast-cancer -e 1 -d 1e-5 -o model.json
      dpcalc predict model.json --data example:breast-cancer -o predicted.csv
    """
    from dpcalc.training import one_blas_thread

    one_blas_thread()
    check_outputs([(output, "-o")], (model, data))
    from dpcalc.model.numbers import parse_number
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor, write_csv

    predicting = predictor(load(model)).above(None if threshold is None else parse_number(threshold))
    with in_pieces(output) as write:
        count = write_csv(predicting, data, write)
    if output not in (None, "-"):
        say(printable(f"{count} predictions written to {output}"))
