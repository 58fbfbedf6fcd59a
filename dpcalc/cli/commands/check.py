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

_TIMEOUT = 60.0  # seconds, where neither the command nor the recipe says how many


@click.command("check", cls=Command)
@click.argument("files", metavar="FILE...", type=FILE, nargs=-1, required=True)
@click.option("--run", "pattern", metavar="REGEX", help="Only cases whose names match somewhere.")
@click.option("--list", "listing", is_flag=True, help="List the cases, and evaluate nothing.")
@click.option(
    "--jobs", "-j", type=click.IntRange(1, 256), default=1, show_default=True, help="Processes to share work."
)
@click.option("--fail-fast", is_flag=True, help="Stop after the first case that fails or has no answer.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    help="Longest time for a case, whatever its recipe says; 0 for none. Default: timeout: of the case, or 60.",
)
@click.option(
    "--memory-limit", metavar="GIB", default="4", show_default=True, help="Most memory for a case's process; 0 for any."
)
@click.option(
    "--certify",
    is_flag=True,
    help="Prove the guarantees in ball arithmetic; a gated one that could be and is not fails.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Fail where a case is skipped, not selected, without a gate, not certified although it could be, or accepts.",
)
@click.option(
    "--policy",
    type=FILE,
    help="A policy, held by whoever runs the check: what it does not allow fails, whatever the recipes assert.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Only shard I of N, for one of N machines; dpcalc merge makes one verdict of their --report json=FILE.",
)
@click.option(
    "--max-cases",
    type=click.IntRange(1, MOST_CASES),
    default=MAX_CASES,
    show_default=True,
    metavar="N",
    help="Most cases of a recipe; beyond the default, they are never all in memory, and texts show those that fail.",
)
@click.option(
    "--checkpoint",
    type=FILE,
    help="Write each verdict to FILE as it comes, and take up there a check that was interrupted.",
)
@cluster_options("cases")
@reports_option(CHECKED, ", or plot=FILE.svg (a sweep)")
@click.option(
    "--baseline",
    type=FILE,
    help="An earlier --report json=FILE to compare with; what asks for less fails.",
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
    """Run recipes: YAML files of cases, each a description of a run, a question, and gates on the answer.

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
    The configuration that it reads the noise from, train.yaml:
      noise: {std: 2}
    Does every gate hold?
      dpcalc check budget.yaml
    In continuous integration, with a report for the tests' tab:
      dpcalc check budget.yaml --report junit=gates.xml

    A gate on a seeded model, one record, a large delta or a secret order fails unless the case accepts that by name,
    such as accept: one-index. --strict, or strict: true in a recipe, accepts nothing. --policy POLICY.yaml holds limits
    that no recipe can change: take it from the base branch, or keep it outside the checkout.

    Exits with 0 if every gate held; 1 if one did not; 2 if a recipe is malformed, nothing matched, all is skipped, or
    a report could not be written; 3 if a case has no valid bound or is infeasible; 4 on an internal error, or if
    --certify finds a guarantee below the truth. Where several hold, 2 comes before 4, 4 before 3, and 3 before 1: after
    a 1, every gate was judged. A case that takes too long or too much memory is an error of that case alone, with 3. A
    report that fails costs no other. After an interrupt, no report is written.
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
        raise SpecError("a shard is compared with no baseline", "give --baseline to dpcalc merge")
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
    """Return the folder of the first file that is written; a stream, a device or a pipe says of none that has room."""
    files = [path for path in paths if path and is_file(path)]
    return os.path.dirname(files[0]) or "." if files else None


def _limits(timeout: str | None, memory: str) -> Limits:
    """Return what a case may use; 0 takes a limit away.

    Raises:
        SpecError: a number is no limit.
    """
    from dpcalc.recipes.running.evaluate import limits_of

    seconds = None if timeout is None else number_of("--timeout", timeout)
    usual = _TIMEOUT if seconds is None else None
    return limits_of(seconds or None, number_of("--memory-limit", memory) or None, usual)


def _destinations(reports: Sequence[str]) -> list[Destination]:
    """Return the reports asked for.

    Raises:
        SpecError: a kind is unknown.
    """
    kinds = {**CHECKED, PLOT: Kind(lambda report, asked: "")}  # a picture is drawn, and no text
    wanted = destinations(reports, kinds, example="junit=gates.xml")
    for destination in wanted:
        if destination.kind == PLOT:
            printing.check_file(destination.path, destination.option)
    return wanted


def _error_text(error: SpecError) -> str:
    hint = f"\n  hint: {printable(error.hint)}" if error.hint else ""
    return f"error: {printable(error.message)}{hint}"
