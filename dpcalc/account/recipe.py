"""Recipes and ledgers: one as the plan of a run, and the one that keeps an account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.account.answer import COMMAND, composed, kept_delta, parameters
from dpcalc.account.described import Described
from dpcalc.account.facts import FACTS, Said
from dpcalc.account.forms import Phase, RunFile, read_run
from dpcalc.errors import SpecError
from dpcalc.files.reading import document_place
from dpcalc.inert import printable
from dpcalc.render.numbers import SIX, Side

NAME = "what-ran"


def recipe_of(run: Described, epsilon: float) -> str:
    """Return a recipe of one case, which passes as long as the run stays within this epsilon."""
    return "\n".join(_lines(run, epsilon)) + "\n"


def _lines(run: Described, epsilon: float) -> Iterator[str]:
    yield f"# Written by `dpcalc account` from {printable(run.shown)}, read as {run.kind}."
    yield from ("dpcalc: recipe/1", "cases:", f"  {NAME}:")
    group = [f"group_size: {run.group_size}"] if run.group_size > 1 else []
    delta = kept_delta(run)
    if delta < run.delta[0]:
        yield f"    # delta = {run.delta[0]!r} with the steps that workers skip"
    shared = [f"adjacency: {run.adjacency}", *group, f"delta: {delta!r}"]
    phases = composed(run.phases)
    if len(phases) == 1:
        fields = [*_fields(run, phases[0]), *shared]
    else:
        fields = ["command: ledger", *shared, "entries:"]
        fields += [f"  phase-{n}: {{{', '.join(_fields(run, phase))}}}" for n, phase in enumerate(phases, 1)]
    yield from (f"    {field}" for field in [*fields, f"assert: epsilon <= {SIX.number(epsilon, Side.UP)}"])


def _fields(run: Described, phase: Phase) -> Iterator[str]:
    yield f"command: {COMMAND}"
    for name, value in parameters(run, phase).items():
        yield f"{name}: {value!r}" if isinstance(value, float) else f"{name}: {value}"


def read_plan(path: str) -> RunFile:
    """Return what a file says of a run; of a recipe or a ledger of dpcalc, what its one run of DP-SGD is.

    Raises:
        SpecError: it has several cases, or describes something else.
    """
    run = read_run(path)
    if not run.facts and not run.phases:
        return _of_ledger(path) if run.kind.startswith("ledger") else _of_recipe(path)
    return run


def _of_recipe(path: str) -> RunFile:
    from dpcalc.recipes.reading.read import read

    shown, cases = str(document_place(path)), list(read(path).every())
    if len(cases) > 1:
        raise SpecError(f"{shown} has {len(cases)} cases, and a plan is one", "name a recipe of one case")
    (case,) = cases
    if case.unread is not None:
        raise case.unread
    question = case.question
    asked = {"delta": None if question.log_delta is None else (question.delta, question.log_delta)}
    if "ledger" in case.parameters:
        return _of_entries(shown, case.parameters["ledger"], asked)
    facts = _facts(shown, {**case.parameters, **asked})
    return RunFile(shown, "a recipe", facts, (), tuple(name for name in case.parameters if name not in facts))


def _of_ledger(path: str) -> RunFile:
    from dpcalc.recipes.ledgers.ledger import read_ledger

    ledger, question = read_ledger(path)
    asked = {"delta": None if question.log_delta is None else (question.delta, question.log_delta)}
    return _of_entries(str(document_place(path)), ledger, asked)


def _of_entries(shown: str, ledger: Any, asked: Mapping[str, Any]) -> RunFile:
    """Return a ledger of Poisson runs as their phases.

    Raises:
        SpecError: an entry is something else.
    """
    phases = []
    for entry in ledger.entries:
        given = [entry.given.get(name) for name in ("noise_multiplier", "sample_rate", "steps")]
        if None in given or str(entry.given.get("sampling")) != "poisson" or entry.part or entry.tuning:
            raise SpecError(f"{shown}: {entry.name} is no Poisson run of DP-SGD", "name a recipe of one run")
        phases.append(Phase(float(given[0]), float(given[1]), int(given[2]) * entry.times))
    facts = {"sampling": "poisson", "adjacency": ledger.adjacency, "group_size": ledger.group_size, **asked}
    return RunFile(shown, "a ledger", _facts(shown, facts), tuple(phases))


def _facts(shown: str, given: Mapping[str, Any]) -> dict[str, Said]:
    """Return parameters of dp-sgd as facts."""
    named = {{"group_size": "max_records_per_user"}.get(name, name): value for name, value in given.items()}
    return {
        name: Said(value if isinstance(value, (int, float, tuple)) else str(value), f"{shown}: {name}", str(value))
        for name, value in named.items()
        if name in FACTS and value is not None
    }
