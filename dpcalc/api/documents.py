"""What a report or a bound reads like: statements, explanations, citations, schemas, cards.

Recipe files and their verdicts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.api.asked import paths_of
from dpcalc.api.queries import mirrors, report_on
from dpcalc.engine.ask import applying
from dpcalc.errors import SpecError
from dpcalc.model.parameter import renamed
from dpcalc.report import Report
from dpcalc.theorems.record import all_bounds, lookup

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpcalc.cards.verify import Verification


@mirrors("compare")
def statement(**given: Any) -> str:
    """Return the paragraph for a paper's appendix or a model card about the described run, one for each case.

    Returns:
        Plain text: what is run, what holds of it, and every assumption.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    return format_report(report_on("compare", **given), "statement")


@mirrors("compare")
def explain(*ids: str, **given: Any) -> str:
    """Return what the bounds ``ids`` say, of the run if one is described; without ids, what the best one for it says.

    Returns:
        Plain text: statement, assumptions, formula, source and errata; with a run its numbers as well.

    Raises:
        SpecError: an id is unknown, or neither a bound nor a run is given.
        NotApplicable, Infeasible: as in `rdp`.

    >>> print(explain("iteration.pnsgd").partition(":")[0])
    iteration.pnsgd
    """
    from dpcalc.render.several import describe, explain_bounds

    bounds = [lookup(id) for id in ids]
    if not given:
        if not bounds:
            raise SpecError("nothing to explain: neither a bound nor a run is given", "`list_bounds()` has the bounds")
        return "\n\n".join(describe(bound) for bound in bounds) + "\n"
    if not bounds:
        return format_report(report_on("compare", **given), "explain")
    named = {"algorithm": bounds[0].algorithms[0].removesuffix("-released"), **given}
    return explain_bounds(report_on("compare", **named), ids)


@mirrors("compare")
def cite(*ids: str, **given: Any) -> str:
    """Return the BibTeX of what the bounds ``ids`` rest on; without ids of the best for the described run, or of all.

    Returns:
        BibTeX entries, each once.

    Raises:
        SpecError: an id is unknown.
        NotApplicable, Infeasible: as in `rdp`.
    """
    from dpcalc.render.several import cited

    if given and not ids:
        return format_report(report_on("compare", **given), "bibtex")
    return cited(ids)


def list_bounds(algorithm: str | None = None, **given: Any) -> list[dict[str, Any]]:
    """Return what is known of each bound, one dict a bound: the command ``bounds`` (a package has that name here).

    Args:
        algorithm: those that speak of it alone.
        given: a run of it, as in `compare` (without a budget): the dicts then also have ``applies`` (``yes``, ``no``,
            ``if promised``) and ``because``.

    Raises:
        SpecError: the run is malformed, or its algorithm is not given.

    >>> [bound["id"] for bound in list_bounds("local", lipschitz=1, noise_std=1) if bound["applies"] == "yes"][:2]
    ['iteration.local', 'iteration.local_rdp']
    """
    if not given:
        return [
            bound.to_dict() for bound in all_bounds().values() if algorithm is None or algorithm in bound.algorithms
        ]
    if algorithm is None:
        raise SpecError("Which algorithm? Give algorithm.", "`dpcalc help order` says what they are")
    given = renamed(given)
    rows = applying(algorithm, given)
    return [{**bound.to_dict(), "applies": applies, "because": because} for _, bound, applies, because in rows]


def schema(name: str = "report") -> dict[str, Any]:
    """Return a JSON schema, of JSON types.

    Args:
        name: ``report``, ``recipe``, ``policy`` or ``card``.

    Raises:
        SpecError: there is none of this name.
    """
    from dpcalc.recipes.judging.policy import policy_schema
    from dpcalc.recipes.reading.schema import recipe_schema
    from dpcalc.references import read

    if made := {"recipe": recipe_schema, "policy": policy_schema}.get(name):  # which the records of parameters fill
        return made()
    try:
        document: dict[str, Any] = json.loads(read(f"{os.path.basename(name)}-1.schema.json"))
    except FileNotFoundError:
        raise SpecError(f"no schema is called {name!r}", "`dpcalc schema --help` names them") from None
    return document


def format_report(report: Report, format: str = "plain", precision: int = 6) -> str:
    """Return the report as text, as ``--format`` prints it.

    Args:
        report: what a function of this module returned.
        format: ``table``, ``plain``, ``json``, ``jsonl``, ``csv``, ``markdown``, ``statement``, ...
        precision: significant digits in human-readable formats; guarantees are rounded up.

    Raises:
        SpecError: there is no such format.
    """
    from dpcalc.render import FORMATS, render

    if format not in FORMATS:
        raise SpecError(f"format is {format!r}; it must be one of {', '.join(FORMATS)}")
    return render(report, format, precision, color=False)


def card(report: Report, *, model: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return the privacy card of a report: what is guaranteed, of what, and all that it follows from.

    Args:
        report: what a function of this module returned; every case with a guarantee is on the card.
        model: path of the model that `train` saved, whose hash is on the card; it must be that of the report.

    Returns:
        A document of JSON types, which conforms to ``schema("card")``; `verify` recomputes it.

    Raises:
        SpecError: no case has a guarantee of privacy, or the model is not private, or that of another run.

    >>> import dpcalc
    >>> card(dpcalc.rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5))["schema"]
    'dpcalc.card/1'
    """
    from dpcalc.cards.card import card_of, model_of

    if model is None:
        made: Any = card_of(report)
        return dict(made)
    training = report.cases[0].training if len(report.cases) == 1 else None
    if not training:
        raise SpecError("the report is of no model", "leave out model")
    from dpcalc.cards.card import refuse_another

    made = card_of(report, model=model_of(os.fspath(model), report.cases[0]))
    refuse_another(os.fspath(model), made)
    return dict(made)


def verify(
    card: Mapping[str, Any] | str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    schedule: str | os.PathLike[str] | None = None,
    certify: bool | None = None,
) -> Verification:
    """Return whether every field of a privacy card is what this version of dpcalc computes, and what differs.

    Args:
        card: the path of a card, or the document.
        model: path of the model that the card is beside, whose hash and privacy are compared; without it neither is.
        schedule: path of the schedule that the run was described by, whose hash is compared.
        certify: whether to prove the guarantees in ball arithmetic as well; None: if python-flint is at hand.

    Returns:
        A record: ``passed``, ``mismatches`` (each with ``place``, ``given`` and ``recomputed``), what was ``checked``,
        ``unchecked`` and ``remarks``. The computation has no limit of time or memory here; that of the command has.

    Raises:
        SpecError: it is no card, or it needs a file that is not given.
        NotApplicable, Infeasible: there is no such guarantee.

    >>> import dpcalc
    >>> stated = card(dpcalc.convert(mu=1, delta=1e-5))
    >>> verify(stated).passed
    True
    >>> stated["cases"][0]["guarantee"]["numbers"][0]["value"] -= 0.1
    >>> verify(stated).mismatches[0].place
    '/cases/0/guarantee/numbers/0/value'
    """
    from dpcalc.cards.document import card_of_mapping, read_card
    from dpcalc.cards.verify import verify as verified

    document = card_of_mapping(card) if isinstance(card, Mapping) else read_card(os.fspath(card))
    paths = [None if path is None else os.fspath(path) for path in (model, schedule)]
    return verified(document, model=paths[0], schedule=paths[1], certify=certify)


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
    from dpcalc.recipes.judging.policy import policy_of
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
