"""``dpcalc check``."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from dpcalc.cli.cluster import cluster_options, there_of
from dpcalc.cli.output import printing
from dpcalc.cli.output.conclusion import Printing, load_baseline
from dpcalc.cli.output.printing import PLOT, report_options, reports_option
from dpcalc.cli.output.publish import CHECKED, publish
from dpcalc.cli.output.reports import Destination, destinations, written_to
from dpcalc.cli.output.streaming import check_all, in_lines, refuse_large
from dpcalc.cli.output.terminal import tell
from dpcalc.cli.query import Command
from dpcalc.cli.types import FILE, number_of, refuse_selecting
from dpcalc.errors import SpecError
from dpcalc.files.output import check_outputs, in_pieces, is_file, say
from dpcalc.inert import printable
from dpcalc.render import Kind
from dpcalc.render.notes import report

if TYPE_CHECKING:
    from dpcalc.recipes.running.evaluate import Limits

MAX_CASES, MOST_CASES = 10_000, 10_000_000
"""As in `dpcalc.recipes.reading.matrix`, which takes long to import."""

_TIMEOUT = 60.0  # seconds, if neither the command nor the recipe sets a limit


@click.command("check", cls=Command)
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1, required=True)
@click.option("--run", "pattern", metavar="REGEX", help="Run only the cases whose names contain a match.")
@click.option("--list", "listing", is_flag=True, help="List the cases without evaluating them.")
@click.option("--jobs", "-j", type=click.IntRange(1, 256), default=1, show_default=True, help="Number of processes.")
@click.option("--fail-fast", is_flag=True, help="Stop after the first case that fails or has no answer.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    help="Time limit for a case; 0: none. Overrides the recipe. Default: the timeout of the case, else 60.",
)
@click.option(
    "--memory-limit",
    metavar="GIB",
    default="4",
    show_default=True,
    help="Memory limit for the process of a case; 0: none.",
)
@click.option(
    "--certify",
    is_flag=True,
    help="Prove the guarantees in ball arithmetic; a gate fails if its guarantee is provable and not proved.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Fail if a case is skipped, not selected, has no gate, uses accept:, or could be certified and is not.",
)
@click.option(
    "--policy",
    type=FILE,
    help="A policy file. Whatever it does not allow fails, even if the recipe accepts it.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Run only shard I of N, on one of N machines; dpcalc merge combines their --report json=FILE.",
)
@click.option(
    "--max-cases",
    type=click.IntRange(1, MOST_CASES),
    default=MAX_CASES,
    show_default=True,
    metavar="N",
    help="Largest number of cases of a recipe. Above the default, reports in text list only the cases that fail.",
)
@click.option(
    "--checkpoint",
    type=FILE,
    help="Append each verdict to FILE, and resume an interrupted check from it.",
)
@cluster_options("cases")
@reports_option(CHECKED, ", or plot=FILE.svg (a sweep)")
@click.option(
    "--baseline",
    type=FILE,
    help="Compare with an earlier --report json=FILE; fail if a case asks for less than there.",
)
@report_options
def command(
    files: tuple[str, ...],
    pattern: str | None,
    listing: bool,
    jobs: int,
    fail_fast: bool,
    timeout: str | None,
    memory_limit: str,
    certify: bool,
    strict: bool,
    policy: str | None,
    shard: str | None,
    max_cases: int,
    checkpoint: str | None,
    cluster: str | None,
    insecure: bool,
    reports: tuple[str, ...],
    baseline: str | None,
    **output: Any,
) -> None:
    """Run recipes: YAML files of cases. A case describes a run, asks a question, and has gates on the answer.

    \b
    A recipe, budget.yaml:
      dpcalc: recipe/1
      defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1,
                 delta: 1e-6}
      cases:
        release:
          algorithm: shuffled
          noise_std: {from: train.yaml#/noise/std}
          assert: epsilon <= 2
    It reads the noise from the configuration train.yaml:
      noise: {std: 2}
    Do all gates hold?
      dpcalc check budget.yaml
    In continuous integration, with a JUnit report:
      dpcalc check budget.yaml --report junit=gates.xml

    A gate on a seeded model, one record, a large delta or a secret order fails unless the case accepts that by name,
    such as accept: one-index. With --strict, or strict: true in a recipe, nothing can be accepted. --policy POLICY.yaml
    sets limits that no recipe can change: take it from the base branch, or keep it outside the checkout.

    Exits with 0 if every gate held; 1 if one did not; 2 if a recipe is malformed, nothing matched, everything was
    skipped, or a report could not be written; 3 if a case has no valid bound, is infeasible, or exceeds its time or
    memory limit; 4 on an internal error, or if --certify finds a guarantee below the truth. If several apply, 2 comes
    before 4, 4 before 3, and 3 before 1: after a 1, every gate was judged. If one report cannot be written, the others
    still are. After an interrupt, no report is written.
    """
    from dpcalc.recipes.judging.policy import policy_of
    from dpcalc.recipes.reading.recipe import Malformed, files_of
    from dpcalc.recipes.running.checking import malformed
    from dpcalc.recipes.running.selection import Options, Selection, read_all
    from dpcalc.recipes.running.shards import parse_share

    refuse_selecting(pattern)
    limits = _limits(timeout, memory_limit)
    there = there_of(cluster, insecure, jobs, limits.memory)
    printing = Printing.of(**output)
    wanted = _destinations(reports)
    outputs = [*written_to(printing.file, wanted), *([(checkpoint, "--checkpoint")] if checkpoint is not None else [])]
    check_outputs(outputs, (*files, baseline, policy))
    demanded = policy_of(policy, strict=strict)
    share = None if shard is None else parse_share(shard)
    if share is not None and baseline is not None:
        raise SpecError("--baseline does not go with --shard", "give --baseline to dpcalc merge")
    earlier = load_baseline(baseline)
    try:
        recipes = read_all(files, max_cases, demanded)
        check_outputs(outputs, (path for recipe in recipes for path in files_of(recipe)))
    except Malformed as error:
        tell(publish(report("check", malformed(error)), wanted, printing.precision, earlier))
        for other in error.errors[:-1]:
            say(_error_text(other))
        raise error.errors[-1] from None
    curves = any(destination.kind != PLOT and CHECKED[destination.kind].curves for destination in wanted)
    options = Options(certify, demanded.source)
    selection = Selection(recipes, pattern, options=options, limits=limits, share=share, curves=curves)
    if listing:
        with in_pieces(printing.file) as put:
            for entry in selection.entries():
                put(printable(f"{entry.name}  {entry.command}  {entry.place}") + "\n")
        return
    refuse_large(len(selection.places), wanted, baseline)
    if checkpoint is not None or there is not None:
        given = "--checkpoint" if there is None else "--cluster"
        if not in_lines(wanted):
            raise SpecError(f"{given}: a page, a badge, a card or a plot shows more than it gives", "leave one out")
        if baseline is not None:
            raise SpecError(f"{given}: what it gives is compared with no baseline", "leave one of the two out")
    selection.refuse_all_skipped()
    how: dict[str, Any] = {"jobs": jobs, "fail_fast": fail_fast, "checkpoint": checkpoint}
    how["beside"] = _folder_of((printing.file, *(destination.path for destination in wanted)))
    with contextlib.ExitStack() as closing:
        if there is not None:
            joined = closing.enter_context(there.entered())
            how |= {"executor": joined, "in_flight": joined.ahead, "attempts": there.attempts}
        check_all(selection, printing, wanted, earlier, **how)


def _folder_of(paths: Iterable[str | None]) -> str | None:
    """Return the folder of the first output file; None for a stream, a device or a pipe."""
    files = [path for path in paths if path and is_file(path)]
    return os.path.dirname(files[0]) or "." if files else None


def _limits(timeout: str | None, memory: str) -> Limits:
    """Return the limits of a case; 0 means none.

    Raises:
        SpecError: a number is not a valid limit.
    """
    from dpcalc.recipes.running.evaluate import limits_of

    seconds = None if timeout is None else number_of("--timeout", timeout)
    usual = _TIMEOUT if seconds is None else None
    return limits_of(seconds or None, number_of("--memory-limit", memory) or None, usual)


def _destinations(reports: Sequence[str]) -> list[Destination]:
    """Return the requested reports.

    Raises:
        SpecError: a kind is unknown.
    """
    kinds = {**CHECKED, PLOT: Kind(lambda report, asked: "")}  # a picture has no text
    wanted = destinations(reports, kinds, example="junit=gates.xml")
    for destination in wanted:
        if destination.kind == PLOT:
            printing.check_file(destination.path, destination.option)
    return wanted


def _error_text(error: SpecError) -> str:
    hint = f"\n  hint: {printable(error.hint)}" if error.hint else ""
    return f"error: {printable(error.message)}{hint}"
