"""``dpcalc ledger``."""

from __future__ import annotations

from typing import Any

import click

from dpcalc.cli.output.printing import Output, emit, report_options, reports_option, verbose_option
from dpcalc.cli.output.terminal import REPORTS
from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE
from dpcalc.errors import SpecError
from dpcalc.render.notes import report


@click.command("ledger", cls=Command)
@click.argument("file", metavar="[FILE]", type=FILE, required=False)
@click.option(
    "--add",
    "added",
    metavar="TEXT",
    multiple=True,
    help="Add an entry, as key=value pairs: 'epsilon=0.1 times=100'. Repeatable; FILE is then optional.",
)
@click.option(
    "--epsilon", "-e", metavar="NUM", help="Budget of all entries together; without --delta, compute delta at it."
)
@click.option("--delta", "-d", metavar="NUM", help="delta of all entries together.")
@click.option(
    "--adjacency",
    metavar="WORD",
    help="How neighbouring data sets differ: replace-one, zero-out, add-remove, add or remove.",
)
@click.option("--group-size", metavar="INT", help="Number of records of one person, which differ together.")
@click.option("--solve", metavar="NAME", help="Solve for the noise of the last entry; needs the budget.")
@click.option(
    "--assert", "gates", metavar="TEXT", multiple=True, help="Gate on the total, e.g. 'epsilon<=3'; exit 1 if it fails."
)
@reports_option(REPORTS)
@report_options
@verbose_option
def command(file: str | None, added: tuple[str, ...], gates: tuple[str, ...], **flags: Any) -> None:
    """Compose several runs, releases and queries about the same records in one exact account.

    \b
    A ledger, spent.yaml:
      dpcalc: ledger/1
      adjacency: add-remove
      budget: {epsilon: 3, delta: 1e-5}
      entries:
        model: {algorithm: dp-sgd, sample_rate: 0.01, steps: 2000,
                noise_multiplier: 1.1, sampling: poisson}
        census: {mu: 0.2}
        histogram: {epsilon: 0.01, times: 10}
    What do they cost together, and how much budget is left?
      dpcalc ledger spent.yaml
    How much noise does another model need?
      dpcalc ledger spent.yaml --solve noise_multiplier --add \\
        'algorithm=dp-sgd sample_rate=0.01 steps=500 sampling=poisson'
    A pure mechanism, 100 times:
      dpcalc ledger --add 'epsilon=0.1 times=100' -d 1e-6
    A Laplace mechanism, 1000 times:
      dpcalc ledger --add 'laplace_scale=200 sensitivity=1 times=1000' -d 1e-6

    \b
    An entry is one of
      algorithm, and the run's parameters    any run that `dpcalc compare` takes
      mu                                     Gaussian privacy
      noise_multiplier                       Gaussian noise over sensitivity
      noise_std, sensitivity                 a Gaussian mechanism
      laplace_scale, sensitivity             a Laplace mechanism
      epsilon, or epsilon and delta          any mechanism with that guarantee
    and may have times (repetitions), part (a subset of the records, disjoint
    from other parts), and tuning (the best of a random number of runs:
    {distribution: geometric, mean: 10}; also poisson, logarithmic,
    negative-binomial, threshold, fixed).
    """
    from dpcalc.engine.gate import parse
    from dpcalc.engine.ledgers.total import answer_ledger
    from dpcalc.recipes.ledgers.ledger import read_ledger, with_asked

    if file is None and not added:
        raise SpecError("no ledger was given", "name a file, or --add entries")
    flags.update(plot=None, plot_bounds=())
    output = Output.of(flags)
    ledger, question = with_asked(*read_ledger(file, added), **flags)
    question = question._replace(curves=output.curves)
    case = answer_ledger(ledger, question, [parse(text) for text in gates])
    emit(report("ledger", [case]), output)
