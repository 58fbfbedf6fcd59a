"""``dpcalc account``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import click

from dpcalc.account.facts import FACTS, Kind
from dpcalc.cli.output.printing import Output, emit, report_options, reports_option, verbose_option
from dpcalc.cli.output.terminal import REPORTS
from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE
from dpcalc.errors import SpecError
from dpcalc.files.output import say, write
from dpcalc.render.notes import report

SNIPPET = """\
import json
r = dict(tool="opacus", history=engine.accountant.history, records=len(loader.dataset),
         sampler=type(loader.batch_sampler).__name__, rate=getattr(loader, "sample_rate", None),
         epoch_steps=len(loader))
json.dump(r | dict(divisor=optimizer.expected_batch_size, optimizer=type(optimizer).__name__,
                   reduction=optimizer.loss_reduction, secure=optimizer.secure_mode), open("run.json", "w"))
"""
"""Code for the training loop of an Opacus run, which writes the file of the run."""

_FLAGS = {name: fact for name, fact in FACTS.items() if fact.help}


def _fact_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add a flag for every fact that has one."""
    for fact in reversed(_FLAGS.values()):
        if fact.kind is Kind.SWITCH:
            spelt = f"{fact.flag}/--no-{fact.flag[2:]}"
            options: dict[str, Any] = {"default": None}
        else:
            spelt, options = fact.flag, {"metavar": _METAVARS[fact.kind]}
        words = ("--sampler",) if fact.name == "sampling" else ()
        names = (*([fact.short] if fact.short else []), spelt, *words, fact.name)
        function = click.option(*names, help=fact.help, **options)(function)
    return function


_METAVARS = {
    Kind.COUNT: "INT", Kind.NUMBER: "NUM", Kind.RATE: "NUM", Kind.DELTA: "NUM", Kind.WORD: "WORD",
    Kind.NUMBERS: "NUM,NUM...",
}  # fmt: skip


@click.command("account", cls=Command)
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1)
@_fact_options
@click.option(
    "--assert",
    "gates",
    metavar="TEXT",
    multiple=True,
    help="Gate on the account, e.g. 'epsilon<=3'; exit 1 if it fails.",
)
@reports_option(REPORTS)
@functools.partial(report_options, written="Write a recipe that asserts this epsilon to FILE, atomically.")
@verbose_option
def command(files: tuple[str, ...], gates: tuple[str, ...], **flags: Any) -> None:
    """Compute what a training run really spent, from the files that it wrote.

    FILE is an Opacus accountant's history (as JSON, or as printed), an event of dp_accounting, a plan of JAX-Privacy, a
    configuration of TF-Privacy, Transformers, TRL or Lightning, or any YAML, JSON or TOML that describes the training.
    Nothing in it is run, and pickles are not opened. If a fact is missing, the command asks for it and names its flag.

    \b
    A configuration, run.json:
        {"dataset_size": 60000, "batch_size": 256, "drop_last": true,
         "epochs": 10, "noise_multiplier": 1.1, "poisson_sampling": true}
    What did it spend? Write a recipe that asserts it:
      dpcalc account run.json -d 1e-5 -o spent.yaml
    A history as Opacus prints it, history.txt:
        [(1.1, 0.004, 2340)]
    It contains neither the sampling scheme nor delta:
      dpcalc account history.txt --sampling poisson -d 1e-5
    A plan, plan.yaml:
        {dataset_size: 60000, batch_size: 256, drop_last: true,
         epochs: 12, noise_multiplier: 1.1, poisson_sampling: true}
    Did the run stay within its plan? (Exit code 1 if it spent more.)
      dpcalc account plan.yaml run.json -d 1e-5

    \b
    Beside the training loop of Opacus:
      import json
      r = dict(tool="opacus", history=engine.accountant.history,
               records=len(loader.dataset),
               sampler=type(loader.batch_sampler).__name__,
               rate=getattr(loader, "sample_rate", None),
               epoch_steps=len(loader))
      json.dump(r | dict(divisor=optimizer.expected_batch_size,
                         optimizer=type(optimizer).__name__,
                         reduction=optimizer.loss_reduction,
                         secure=optimizer.secure_mode), open("run.json", "w"))
    """
    from dpcalc.account.forms import Pickled
    from dpcalc.account.way import accounted
    from dpcalc.engine.gate import parse

    if not 1 <= len(files) <= 2:
        raise SpecError(f"{len(files)} files", "name a file of the run, or a plan and a run")
    said = {name: str(value) for name in FACTS if (value := flags.pop(name, None)) is not None}
    output = Output.of({**flags, "plot": None, "plot_bounds": ()})
    try:
        asking = sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()
        ask = functools.partial(click.prompt, err=True, type=str) if asking else None
        case, recipe = accounted(files, said, [parse(text) for text in gates], ask, curves=output.curves)
    except Pickled:
        say(SNIPPET)
        raise
    if output.file is not None:
        write(recipe, output.file)
    emit(report("account", [case]), output._replace(file=None))
