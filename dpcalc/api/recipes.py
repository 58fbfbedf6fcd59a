"""Recipe files and their verdicts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpcalc.api.asked import paths_of
from dpcalc.report import Report

if TYPE_CHECKING:
    from concurrent.futures import Executor


def check(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    run: str | None = None,
    jobs: int = 1,
    fail_fast: bool = False,
    certify: bool = False,
    timeout: float | None = None,
    memory_limit: float | None = None,
    strict: bool = False,
    policy: str | os.PathLike[str] | None = None,
    shard: str | None = None,
    max_cases: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
) -> Report:
    """Return the verdict on every case of some recipe files.

    Args:
        paths: one file or several.
        run: a regular expression; only cases whose names match it somewhere are checked.
        jobs: how many processes share the work.
        fail_fast: whether to stop after the first case that fails or has no answer.
        certify: whether to prove the guarantees in ball arithmetic; a gated case fails of which one could be
            and was not; where no definition exists, that is among the case's ``warnings``.
        timeout: how many seconds a case may take at most, whatever its recipe says; None: as many as the recipe says.
        memory_limit: how many GiB the process of a case may hold; None: as many as there are.
        strict: whether to demand that nothing is skipped, left out or accepted, and all is gated and certified.
        policy: path of a policy: limits on the answers themselves, whatever the recipes assert. What it does not allow
            fails. Keep it where whoever writes the recipes cannot change it.
        shard: such as ``"1/4"``: the cases of the first of four shards alone. `merge` makes one report of them.
        max_cases: how many cases a recipe may have; None: 10^4. The cases of a larger check are on the disk, and each
            is read whenever ``report.cases`` comes to it.
        checkpoint: path of a file that each verdict is written to as it comes, and from which a check that was
            interrupted is taken up.
        executor: what computes in place of this process: any `concurrent.futures.Executor`, of threads, of processes or
            of other machines that have this version of dpcalc. It is sent text and the name of a function, and every
            answer is checked; cases that read files or compare with others are computed here. Limits of time and memory
            end no computation of an executor's: where nobody answers for longer, it counts as lost. The cases then make
            no `card`, as those of a checkpoint.

    A case that exceeds a limit is an error of that case alone. Cases with a limit are evaluated in processes of their
    own, as with ``jobs`` > 1; so this works in every thread.

    Returns:
        A report whose cases have ``check``: name, file, line and column, ``status`` (passed, failed, skipped or error),
        and why. ``report.failed`` counts the cases of which a gate failed; a case without an answer is an error.

    Raises:
        SpecError: a recipe is malformed, no case is left to check, a limit is none, or the checkpoint is damaged, in
            use or of another check.
        WorkerLost: a worker of the executor died, did not answer in time, or answered something else.
    """
    from dpcalc.recipes.judging.policy_file import policy_of
    from dpcalc.recipes.reading.matrix import MAX_CASES
    from dpcalc.recipes.running.checking import checked
    from dpcalc.recipes.running.evaluate import limits_of
    from dpcalc.recipes.running.selection import Options, Selection, read_all
    from dpcalc.recipes.running.shards import parse_share

    limits = limits_of(timeout, memory_limit)
    demanded = policy_of(None if policy is None else os.fspath(policy), strict=strict)
    recipes = read_all(paths_of(paths), MAX_CASES if max_cases is None else max_cases, demanded)
    share = None if shard is None else parse_share(shard)
    selection = Selection(recipes, run, options=Options(certify, demanded.source), limits=limits, share=share)
    kept = None if checkpoint is None else os.fspath(checkpoint)
    return checked(selection, jobs=jobs, executor=executor, fail_fast=fail_fast, checkpoint=kept)


def merge(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Report:
    """Return the verdict on a recipe from the reports of its shards, as one check of all cases has it.

    Args:
        paths: of the JSON reports of every shard: `check` with ``shard``, or ``dpcalc check --shard``.

    Raises:
        SpecError: a file is no report of a shard by this version, or a shard is missing, doubled, or of another recipe
            or other options.
    """
    from dpcalc.recipes.running.saved import read_report
    from dpcalc.recipes.running.shards import merged

    return merged([(path, read_report(path)) for path in paths_of(paths)])
