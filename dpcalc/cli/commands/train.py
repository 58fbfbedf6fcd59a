"""``dpcalc train``."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dpcalc.cli.cluster import cluster_options, there_of
from dpcalc.cli.output.printing import emit
from dpcalc.cli.query import Askers, Command, Flags, run_cases, training_options
from dpcalc.cli.types import FILE, ONE_OVER_RECORDS, number_of
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.files.output import check_outputs, say
from dpcalc.inert import printable
from dpcalc.render.notes import report

if TYPE_CHECKING:
    from dpcalc.recipes.ledgers.charge import LedgerFile
    from dpcalc.report import Case

_OWN = (
    "data", "synthetic", "target", "labels", "positive", "ignore", "ranges", "intercept", "test_fraction", "seed",
    "noise_source", "replicas", "workers", "target_range", "average",
    "reference", "show_unprotected_metrics", "evaluate_share", "solver", "centre", "unlearn",
    "class_shares", "class_weight",
)  # fmt: skip


_OF_THEOREMS = ("explain", "bibtex")

_PAUSE = 0.1  # seconds between two updates of a progress bar


@click.command("train", cls=Command)
@click.option("--data", type=FILE, help="CSV with a header, NPY, NPZ or Parquet; or example:breast-cancer.")
@click.option(
    "--synthetic", type=click.Choice(["logistic", "linear"]), help="Synthetic records (-n, --dimension) instead."
)
@click.option(
    "--target", metavar="COLUMN", help="Name of the target column, or its number in a matrix (default: the last)."
)
@click.option(
    "--labels",
    metavar="NO,YES",
    help="The second label is +1, all others -1; or more than two classes: A,B,C (softmax).",
)
@click.option("--positive", metavar="LABEL", help="The label that counts as +1; all others count as -1.")
@click.option("--class-shares", metavar="A,B", help="Public shares of the classes: warns if the rarest is too rare.")
@click.option(
    "--class-weight",
    metavar="balanced|sqrt|A,B",
    help="Public weights of the classes' gradients; words: computed from the class shares.",
)
@click.option("--ignore", metavar="COLUMN", multiple=True, help="Leave a column out (repeatable).")
@click.option(
    "--ranges",
    type=FILE,
    help="Public column ranges: CSV column,low,high, or a schema (YAML, JSON), also with levels. Not from the records!",
)
@click.option(
    "--target-range", metavar="LOW,HIGH", help="Predict a number: this interval of the target is scaled to [-1, 1]."
)
@click.option(
    "--intercept/--no-intercept", default=None, help="Add a constant feature; it counts in the feature bound."
)
@click.option(
    "--average", type=click.Choice(["tail", "none"]), help="Release the mean of the last half of the iterates."
)
@click.option(
    "--solver", type=click.Choice(["descent", "sums"]), help="Solver of least squares; sums: noisy sums of products."
)
@click.option(
    "--centre/--no-centre",
    default=None,
    help="Subtract a noisy mean, which costs budget. Default: if the signal is strong enough.",
)
@click.option(
    "--test-fraction",
    metavar="SHARE",
    default="0",
    callback=lambda _context, _option, typed: number_of("--test-fraction", typed),
    help="Share of the records held out for testing (default 0).",
)
@click.option(
    "--tune",
    metavar="KEY=V1,V2",
    multiple=True,
    help="Choose among these values; the choice costs budget (repeatable).",
)
@click.option("--tune-runs", metavar="MEAN", help="Mean number of runs to choose from (default 10).")
@click.option("--tune-law", type=click.Choice(["geometric", "logarithmic", "poisson"]), help="Default: geometric.")
@click.option(
    "--tune-score", metavar="SHARE|FILE", type=FILE, help="Score on this share of the records, or on a public file."
)
@click.option("--reference", is_flag=True, help="Compare with the non-private fit, which takes longer than training.")
@click.option(
    "--show-unprotected-metrics", is_flag=True, help="Measure on the training records without noise: NOT covered."
)
@click.option("--evaluate-share", metavar="SHARE", help="Spend this share of epsilon, as 5%, on a private evaluation.")
@click.option(
    "--unlearn",
    metavar="MODEL",
    type=FILE,
    help="Train this model further until it has forgotten the records that are not in --data.",
)
@click.option(
    "--ledger", type=FILE, help="Charge this ledger before training; refuse to train if its budget is too small."
)
@click.option("--seed", type=int, help="Draw noise and order from a seed: for experiments. The result is NOT PRIVATE.")
@click.option("--noise-source", type=click.Choice(["os", "secure"]), default="os", help="secure: AES in counter mode.")
@click.option(
    "--replicas", type=int, default=1, help="Number of independent runs: gives quantiles of the metrics, no model."
)
@click.option("--workers", type=int, help="Processes for the replicas (default: one per processor).")
@cluster_options("replicas")
@click.option("--no-card", is_flag=True, help="Write no privacy card beside the model.")
@training_options("train")
def command(
    *, cluster: str | None, insecure: bool, no_card: bool, tune: tuple[str, ...], tune_runs: str | None,
    tune_law: str | None, tune_score: str | None, ledger: str | None, **flags: Any,
) -> None:  # fmt: skip
    """Train a linear model by an algorithm whose privacy is accounted: budget in, model out.

    Data, a task and a budget are enough: a default rule chooses the rest from public numbers alone, and reports its
    choices (docs/training.md). Every number computed from the records is covered by the guarantee, unless you ask for
    others; those are marked as not covered.

    \b
    Logistic regression on the shipped data:
      dpcalc train --data example:breast-cancer -e 1 -d 1e-5
    A model, its card model.card.json and a paragraph, with a named target:
      dpcalc train --data example:breast-cancer --target diagnosis \\
        --labels benign,malignant -e 1 -d 1e-6 -o model.json --format statement
    Tune settings privately; the budget covers the choice:
      dpcalc train --data example:breast-cancer -e 1 -d 1e-5 \\
        --tune clip=0.05,0.1,0.3 --tune travel=10,30

    A table of your own needs public ranges of its columns, table.csv:

    \b
    A table, table.csv:
        size,age,price
        80,12,310
        120,3,640
        65,40,200
    The ranges of its columns, columns.yaml:
        columns: {size: {low: 20, high: 200}, age: {low: 0, high: 100}}
    Predict a number:
      dpcalc train --data table.csv --target price --target-range 0,1000 \\
        --ranges columns.yaml -e 1 -d 1e-6
    A ledger of the releases from this table, spent.yaml; a run that would
    exceed its budget is refused before training:
        dpcalc: ledger/1
        adjacency: replace-one
        budget: {epsilon: 3, delta: 1e-5}
      dpcalc train --data example:breast-cancer -e 1 -d 1e-6 --ledger spent.yaml
    Unlearning; the second --data would lack the records to forget:
      dpcalc train --data example:breast-cancer --regularisation 0.01 -R 5 \\
        --no-centre -e 1 -d 1e-6 -o old.json
      dpcalc train --data example:breast-cancer --unlearn old.json -R 5 \\
        --start-distance 0.02 --regularisation 0.01 -e 1 -d 1e-6 -o forgot.json
    A run that you describe, compared with the non-private fit:
      dpcalc train --data example:breast-cancer --radius 5 -e 1 -d 1e-5 \\
        --reference
    Algorithms side by side on synthetic records, 100 runs each:
      dpcalc train --synthetic logistic -n 1000 --dimension 2 -R 1 \\
        --algorithm shuffled,stop --eta 0.005 --sigma 0.5 -d 1e-5 \\
        --replicas 100
    """
    from dpcalc.training import one_blas_thread

    one_blas_thread()
    from dpcalc.training import fit as fitting
    from dpcalc.training.rule.candidates import TuneRequest
    from dpcalc.training.rule.setup import Setup, Task, check_setup

    output = flags["output"]
    choice = TuneRequest(tune, tune_runs, tune_law, tune_score).tune()
    account = _account(ledger, flags)
    setup = Setup(
        **{name: flags.pop(name) for name in _OWN}, output=output, card=not no_card, tune=choice, account=account
    )
    if flags.get("plot") and (setup.replicas > 1 or _cases(flags) > 1):
        setup = setup._replace(reference=True)  # the plot shows the excess risk
    machines = there_of(cluster, insecure, setup.workers)
    if machines is not None and setup.replicas < 2:
        raise SpecError("--cluster goes with --replicas: one model is trained on this machine", "leave it out")
    if choice is not None:
        _refuse_explaining(flags.get("format"))
    if setup.data is not None and any(ONE_OVER_RECORDS in part for part in flags.get("delta") or ()):
        raise SpecError("--delta 1/n needs --records, which come from the data here", "write a number, as 1e-6")
    check_setup(setup, _cases(flags))
    models: list[Any] = []
    said: list[str] = []
    entered = machines.entered() if machines is not None else contextlib.nullcontext(None)

    def warned(text: str) -> None:
        said.append(text)
        say(printable(f"warning: {text}"))

    def asker(answer: Callable[..., Any]) -> Callable[..., Case]:
        def asked(command: str, given: Any, question: Any, *, notes: bool, brief: bool, **more: Any) -> Case:
            with contextlib.closing(_Bars()) as bars:
                settled = setup._replace(executor=executor)
                fitted = answer(Task(given, question, settled, phases=bars, warned=warned, **more))
            models.append(fitted.model)
            case: Case = fitted.case
            return case

        return asked

    try:
        with entered as executor:
            cases, printing = run_cases("train", flags, Askers(asker(fitting.fit), asker(fitting.fit_one_of_several)))
    except KeyboardInterrupt:
        kept = "" if account is None or not account.begun else f"; {ledger} keeps what was charged"
        say(f"nothing was released: no model and no metrics{kept}")
        raise
    if output is not None and models[0] is not None:
        from dpcalc.render.models import render_statement
        from dpcalc.training.release.model import save

        save(models[0], output, statement=render_statement(report("train", cases)).strip())
        if setup.card:
            cases = _write_card(cases, output)
    if account is not None:
        _finish(account)
    emit(report("train", cases), printing._replace(file=None), said=said)


def _account(ledger: str | None, flags: Flags) -> LedgerFile | None:
    """Return the named ledger, after checking that it can be written and is not also an input."""
    if ledger is None:
        return None
    from dpcalc.recipes.ledgers.charge import LedgerFile

    inputs = [flags[name] for name in ("data", "ranges", "unlearn", "output")]
    check_outputs([(ledger, "--ledger")], [path for path in inputs if isinstance(path, str)])
    return LedgerFile(ledger)


def _finish(account: LedgerFile) -> None:
    """Record in the ledger that the model was released; a failure is only a warning, as the model exists."""
    try:
        account.finish()
    except DpcalcError as error:
        say(f"warning: the ledger could not record that the release is complete: {error.message}")


def _write_card(cases: list[Case], model: str) -> list[Case]:
    """Write the card beside a model, and return the cases; a failure is only a warning, as the model exists."""
    from dpcalc.cards.card import without_card, write_beside

    try:
        write_beside(report("train", cases), model)
    except DpcalcError as error:
        say(f"warning: the privacy card beside the model could not be written: {error.message}")
        return [without_card(case) for case in cases]
    return cases


def _refuse_explaining(form: str | None) -> None:
    """Refuse formats that explain one theorem before a tuned run, whose guarantee is a total."""
    if form in _OF_THEOREMS:
        raise SpecError(
            f"--format {form} explains one theorem, and the guarantee of a tuned run is a total",
            "take another format; `dpcalc explain` explains the bound of one run",
        )


def _cases(flags: Flags) -> int:
    """Return how many cases the flags describe; each may hold several lists of values."""
    values = (parts for name, parts in flags.items() if name != "gates")
    swept = [lists for lists in values if isinstance(lists, tuple) and lists and isinstance(lists[0], list)]
    return math.prod(sum(map(len, lists)) for lists in swept)


class _Bars:
    """Progress bars for the phases of a run, on a terminal only."""

    def __init__(self) -> None:
        self._shown, self._last = "", 0.0
        self._bar: Any = None

    def __call__(self, phase: str) -> Callable[[int, int], None] | None:
        """Return the callback of a phase, called with (done, total); None without a terminal."""
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        return functools.partial(self._show, phase)

    def _show(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if phase == self._shown and done < total and now - self._last < _PAUSE:
            return
        if phase != self._shown:
            self.close()
            if done == total:
                return  # at once
            self._shown = phase
            self._bar = click.progressbar(length=total, label=phase, file=sys.stderr, show_pos=True)
            self._bar.render_progress()
        self._last = now
        if self._bar is not None:
            self._bar.update(done - self._bar.pos)

    def close(self) -> None:
        """Finish the bar that is shown."""
        if self._bar is not None:
            self._bar.render_finish()
        self._shown, self._bar = "", None
