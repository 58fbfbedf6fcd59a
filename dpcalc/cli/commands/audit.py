"""``dpcalc audit``."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from dpcalc.cli.cluster import cluster_options, there_of
from dpcalc.cli.output.printing import emit
from dpcalc.cli.query import Askers, Command, audit_options, run_cases
from dpcalc.cli.types import FILE, number_of
from dpcalc.errors import SpecError
from dpcalc.files.output import say
from dpcalc.inert import printable
from dpcalc.render.notes import report

if TYPE_CHECKING:
    from dpcalc.report import Case


@click.command(
    "audit",
    cls=Command,
    usual=("attack", "replicas", "confidence", "as_released", "seed", "workers", "algorithm", "noise_std", "delta"),
)
@click.option(
    "--attack", type=click.Choice(["best", "linear", "wall", "reset", "low-bits", "custom"]), default="best",
    show_default=True, help="The attack; best: of linear, wall and reset, the strongest in pilot runs.",
)  # fmt: skip
@click.option("--scores", type=FILE, help="Use these canary scores instead of an attack: CSV with in,score or in,out.")
@click.option(
    "--one-run", is_flag=True, help="scores: all from one run; a fair coin decided for each canary whether it was in."
)
@click.option("--threshold", metavar="NUM", help="scores: a threshold fixed before you saw them.")
@click.option("--guesses", type=int, help="scores of one run: number of coins to guess, fixed beforehand.")
@click.option("--data", type=FILE, help="custom: a table with the target last; CSV with a header, NPY or Parquet.")
@click.option("--neighbour", type=FILE, help="custom: the same data set with one record replaced.")
@click.option("--replicas", metavar="NUM", default="1e5", show_default=True, help="Runs on each of the two data sets.")
@click.option("--as-released", is_flag=True, help="Use the code that trains one model, with its rounding; slow.")
@click.option(
    "--confidence",
    metavar="NUM",
    default="0.99",
    show_default=True,
    help="Confidence with which all bounds of a case hold.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of all randomness: the same seed gives the same report.",
)
@click.option(
    "--workers", type=int, help="Number of processes (default: one per processor). It does not change the numbers."
)
@cluster_options("runs")
@audit_options
def command(
    *, attack: str, scores: str | None, one_run: bool, threshold: str | None, guesses: int | None, data: str | None,
    neighbour: str | None, replicas: str, as_released: bool, confidence: str,
    seed: int, workers: int | None, cluster: str | None, insecure: bool, **flags: Any,
) -> None:  # fmt: skip
    """Attack a described run: a lower confidence bound on its epsilon, beside the guarantee.

    The code behind `dpcalc train --replicas` carries out the run many times, on two neighbouring data sets that are
    chosen to be easy to distinguish. The attack's error counts give a lower bound on epsilon, and on mu.

    \b
    Does the guarantee hold, and how close does the attack come?
      dpcalc audit --algorithm noisy-gd -n 20 --steps 50 -L 1 --smoothness 1 \\
        --eta 0.5 --sigma 2 -d 0.01
    Iterates pushed to the boundary of the domain, a million runs:
      dpcalc audit --algorithm pnsgd -n 20 -L 1 --smoothness 1 --eta 0.5 \\
        --sigma 2 --diameter 2 -d 1e-3 --attack wall --replicas 1e6

    \b
    Scores of canaries that you computed, canaries.csv:
        in,score
        1,3.1
        1,2.4
        0,0.2
        0,0.9
    What do they prove, next to a claimed epsilon or the guarantee of a run?
      dpcalc audit --scores canaries.csv -e 2 -d 1e-5
      dpcalc audit --scores canaries.csv --algorithm dp-sgd --sample-rate 0.01 \\
        --steps 2000 --sampling poisson --adjacency add-remove \\
        --noise-multiplier 1.1 -d 1e-5

    Exits with 1 if a lower bound is above the guarantee: then one of the two is wrong, or the confidence bound failed
    by chance. After an interrupt, nothing is reported. The options that describe a run are those of `dpcalc compare`.
    """
    from dpcalc.training import one_blas_thread

    one_blas_thread()
    from dpcalc.training.audit.case import Inquiry, paths_of_custom
    from dpcalc.training.audit.estimate import Setup, check_setup
    from dpcalc.training.audit.scores import scores_of

    count = _number("--replicas", replicas)
    if count != math.floor(count):
        raise SpecError(f"--replicas is {replicas}; it must be a whole number", "try 1e5")
    setup = Setup(int(count), seed, workers, _number("--confidence", confidence))
    check_setup(setup)
    custom = paths_of_custom(attack, data, neighbour)
    limit = None if threshold is None else _number("--threshold", threshold)
    of_canaries = scores_of(scores, setup, one_run=one_run, threshold=limit, guesses=guesses)
    machines = there_of(cluster, insecure, workers)
    entered = machines.runs() if machines is not None else contextlib.nullcontext(None)
    there: Any = None

    def asker(answer: Callable[..., Case]) -> Callable[..., Case]:
        def asked(_: str, given: Any, question: Any, *, notes: bool, brief: bool, **more: Any) -> Case:
            with _bar() as progress:
                return answer(
                    Inquiry(
                        given, question, attack, setup, custom=custom, as_released=as_released, progress=progress,
                        brief=brief, there=there, scores=of_canaries, **more,
                    )
                )  # fmt: skip

        return asked

    if flags.get("plot") and _is_one(flags.values()):
        flags["risk"] = True  # the plot shows the attacks
    try:
        with entered as there:
            askers = Askers(asker(Inquiry.case), asker(Inquiry.case_among_others))
            cases, printing = run_cases("compare", flags, askers)
    except KeyboardInterrupt:
        say("nothing is reported: the counts of an interrupted audit prove no bound")
        raise
    for case in cases:
        if case.audit and case.audit["exceeded"] and scores is None:
            _say_contradicted(case)
    emit(report("audit", cases), printing)


def _is_one(values: Iterable[object]) -> bool:
    """Return whether the flags describe one case; each may hold several lists of values."""
    lists = [given for given in values if isinstance(given, tuple) and given and isinstance(given[0], list)]
    return all(sum(map(len, given)) == 1 for given in lists)


def _number(flag: str, typed: str) -> float:
    number = number_of(flag, typed)
    if not math.isfinite(number):
        raise SpecError(f"{flag} is {typed}; it must be finite")
    return number


def _say_contradicted(case: Case) -> None:
    """Print the contents of a bug report about a contradicted guarantee."""
    from dpcalc.training.audit.case import bug_report

    lines = ["command: dpcalc " + " ".join(sys.argv[1:]), *bug_report(case).splitlines()]
    say("\n".join(["--- bug report ---", *map(printable, lines), "---"]))
    say("  hint: repeat it with another --seed; if it happens again, please report the lines above")


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """Show the progress of the runs on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=1, label="steps of runs", file=sys.stderr) as bar:

        def progress(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield progress
