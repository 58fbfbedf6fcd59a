"""Recipes and ledgers as plans of a run, and the recipe that asserts an account."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.account.answer import COMMAND, LEAST_MU, SKIPPED, asked_parts, log_skipped
from dpcalc.account.described import Described
from dpcalc.account.facts import FACTS, Said
from dpcalc.account.forms import Phase, RunFile, read_run
from dpcalc.errors import SpecError
from dpcalc.files.place import Place
from dpcalc.inert import printable
from dpcalc.numerics.floats import down, up
from dpcalc.render.numbers import SIX, Side

NAME = "what-ran"


def recipe_of(run: Described, epsilon: float) -> str:
    """Return a recipe with one case that asserts this epsilon."""
    return "\n".join(_lines(run, epsilon)) + "\n"


def _lines(run: Described, epsilon: float) -> Iterator[str]:
    yield f"# Written by `dpcalc account` from {printable(run.shown)}, read as {run.kind}."
    yield from ("dpcalc: recipe/1", "cases:", f"  {NAME}:")
    group = [f"group_size: {run.group_size}"] if run.group_size > 1 else []
    shared = [f"adjacency: {run.adjacency}", *group, f"delta: {run.delta[0]!r}"]
    parts, log_skips = asked_parts(run), log_skipped(run)
    if len(parts) == 1 and log_skips is None:
        fields = [*_fields(parts[0]), *shared]
    else:
        fields = ["command: ledger", *shared, "entries:"]
        fields += [f"  phase-{n}: {{{', '.join(_fields(part))}}}" for n, part in enumerate(parts, 1)]
    if log_skips is not None:  # the total variation distance to a run without skipped steps
        fields += [f"  {SKIPPED}: {{mu: {LEAST_MU!r}, delta: {up(math.exp(log_skips), 2.0)!r}}}"]
    yield from (f"    {field}" for field in [*fields, f"assert: epsilon <= {SIX.number(epsilon, Side.UP)}"])


def _fields(given: Mapping[str, Any]) -> Iterator[str]:
    yield f"command: {COMMAND}"
    for name, value in given.items():
        yield f"{name}: {value!r}" if isinstance(value, float) or name == "schedule" else f"{name}: {value}"


def read_plan(path: str) -> RunFile:
    """Return the facts of a run file, or of the one DP-SGD run of a recipe or ledger of dpcalc.

    Raises:
        SpecError: it has several cases, or describes something else.
    """
    run = read_run(path)
    if not run.facts and not run.phases:
        return _of_ledger(path) if run.kind.startswith("ledger") else _of_recipe(path)
    return run


def _of_recipe(path: str) -> RunFile:
    from dpcalc.recipes.reading.read import read

    shown, cases = str(Place(path)), list(read(path).every())
    if len(cases) > 1:
        raise SpecError(f"{shown} has {len(cases)} cases; a plan has one", "name a recipe of one case")
    (case,) = cases
    if case.unread is not None:
        raise case.unread
    question = case.question
    asked = {"delta": None if question.log_delta is None else (question.delta, question.log_delta)}
    if "ledger" in case.parameters:
        return _of_entries(shown, case.parameters["ledger"], asked)
    facts = _facts(shown, {**case.parameters, **asked})
    phases = _scheduled(case.parameters)
    return RunFile(shown, "a recipe", facts, phases, tuple(name for name in case.parameters if name not in facts))


def _scheduled(given: Mapping[str, Any]) -> tuple[Phase, ...]:
    """Return the phases of a dp-sgd run with a schedule; empty for other runs.

    Raises:
        SpecError: the schedule cannot be read.
    """
    if "schedule" not in given:
        return ()
    from dpcalc.engine.commands import COMMANDS
    from dpcalc.engine.question import run_of
    from dpcalc.model.draft import Description

    _, run, _ = run_of(COMMANDS[COMMAND], Description(given))
    scale, kinds = run.schedule_factor or 1.0, run.schedule.kinds(len(run.schedule))
    return tuple(Phase(z if scale == 1.0 else down(z * scale), rate, steps) for rate, z, steps in kinds)


def _of_ledger(path: str) -> RunFile:
    from dpcalc.recipes.ledgers.ledger import read_ledger

    ledger, question = read_ledger(path)
    asked = {"delta": None if question.log_delta is None else (question.delta, question.log_delta)}
    return _of_entries(str(Place(path)), ledger, asked)


def _of_entries(shown: str, ledger: Any, asked: Mapping[str, Any]) -> RunFile:
    """Return a ledger of Poisson runs as their phases.

    Raises:
        SpecError: an entry is not a Poisson run.
    """
    phases = []
    for entry in ledger.entries:
        given = [entry.given.get(name) for name in ("noise_multiplier", "sample_rate", "steps")]
        known = entry.command == COMMAND and ("schedule" in entry.given or None not in given)
        if not known or str(entry.given.get("sampling")) != "poisson" or entry.part or entry.tuning:
            raise SpecError(f"{shown}: {entry.name} is not a Poisson run of DP-SGD", "name a recipe of one run")
        own = _scheduled(entry.given) or (Phase(float(given[0]), float(given[1]), int(given[2])),)
        phases += [phase._replace(steps=phase.steps * entry.times) for phase in own]
    facts = {"sampling": "poisson", "adjacency": ledger.adjacency, "group_size": ledger.group_size, **asked}
    return RunFile(shown, "a ledger", _facts(shown, facts), tuple(phases))


def _facts(shown: str, given: Mapping[str, Any]) -> dict[str, Said]:
    """Return parameters of dp-sgd as facts."""
    named = {{"group_size": "max_records_per_user"}.get(name, name): value for name, value in given.items()}
    return {
        name: Said(value if isinstance(value, (int, float, tuple)) else str(value), f"{shown}: {name}", str(value))
        for name, value in named.items()
        if name in FACTS and name != "schedule" and value is not None
    }
