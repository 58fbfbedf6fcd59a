"""From files and flags to the account of a run, or of a run against its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dpcalc.account.answer import account
from dpcalc.account.described import Described, described
from dpcalc.account.facts import FACTS, Said, value_of
from dpcalc.account.forms import RunFile
from dpcalc.account.recipe import read_plan, recipe_of
from dpcalc.account.stated import Missing
from dpcalc.checked import Assertion
from dpcalc.errors import SpecError
from dpcalc.files.documents import Scalar
from dpcalc.files.place import Place
from dpcalc.notes import RunRemark
from dpcalc.report import Case

if TYPE_CHECKING:
    from dpcalc.engine.gate import Gate

_SHARED = ("delta", "adjacency")

Ask = Callable[[str], str]
"""Puts a question to a person, and returns what was typed."""


def accounted(
    files: Sequence[str],
    flags: Mapping[str, str],
    gates: Sequence[Gate] = (),
    ask: Ask | None = None,
    *,
    curves: bool = False,
) -> tuple[Case, str]:
    """Return the case of a run, and the recipe that keeps it.

    Args:
        files: of the run; or of a plan, and of the run.
        flags: fact -> what was typed for it.
        gates: on the account.
        ask: puts the question where a fact is missing; None: the error names the flag.
        curves: whether the curves behind the answer are asked for.

    Raises:
        Missing: a fact is needed that nothing says.
        SpecError, NotApplicable: as `read_run` and `described`.
    """
    said = {name: _typed(name, text) for name, text in flags.items()}
    files_read = [read_plan(path) for path in files]
    plans = [
        _described(plan, {n: one for n, one in said.items() if n in _SHARED or n not in plan.facts}, ask)
        for plan in files_read[:-1]
    ]  # what a plan says of itself, a flag says of the run
    for plan in plans:  # a run is asked at the delta of its plan, and under its adjacency
        said = {**{name: plan.facts[name] for name in _SHARED if name in plan.facts}, **said}
    run = _described(files_read[-1], said, ask)
    case = account(run, [*gates, *_budget(run)], curves=curves)
    assert case.best is not None
    recipe = recipe_of(run, case.best.epsilon or 0.0)
    return (against(plans[0], run, case) if plans else case), recipe


def _budget(run: Described) -> list[Gate]:
    """Return the gate of a budget, where one is said."""
    if "epsilon" not in run.facts:
        return []
    from dpcalc.engine.gate import parse

    return [parse(f"epsilon<={run.facts['epsilon'].value!r}")]


def _typed(name: str, text: str) -> Said:
    flag = FACTS[name].flag
    try:
        return Said(value_of(name, Scalar(Place(flag), text)), flag, text[:40])
    except SpecError as error:
        raise SpecError(f"{flag}: {error.message}", error.hint) from None


def _described(run: RunFile, said: dict[str, Said], ask: Ask | None) -> Described:
    """Return the described run; each question that it leaves open is put to a person, if there is one."""
    while True:
        try:
            return described(run, said)
        except Missing as question:
            if ask is None or question.fact in said or not FACTS[question.fact].help:
                raise
            said[question.fact] = _typed(question.fact, ask(f"{question.message}\n{FACTS[question.fact].help}"))


def against(plan: Described, run: Described, case: Case) -> Case:
    """Return the case of a run with how it differs from its plan, and a gate: it must not spend more.

    Raises:
        SpecError: they answer at different deltas, or under different adjacencies.
    """
    for what, one, other in (
        ("delta", plan.delta[1], run.delta[1]),
        ("adjacency", plan.adjacency, run.adjacency),
        ("group size", plan.group_size, run.group_size),
    ):
        if one != other:
            raise SpecError(f"{what} of the plan and of the run differ", "give one for both, as --delta or --adjacency")
    planned, spent = account(plan).best, case.best
    assert planned is not None
    assert spent is not None
    most, value = planned.epsilon or 0.0, spent.epsilon or 0.0
    gate = Assertion(f"epsilon <= {most:.6g}, that of the plan", value <= most, value, most - value)
    notes = tuple(RunRemark(says=text) for text in _differences(plan, run))
    return case._replace(note_data=(*notes, *case.note_data), assertions=(*case.assertions, gate))


def _differences(plan: Described, run: Described) -> list[str]:
    texts: list[str] = []
    if plan.sampling is not run.sampling:
        texts.append(f"sampling: planned {plan.sampling}, ran {run.sampling}")
    rates = [max((phase.rate or 0.0) for phase in one.phases) for one in (plan, run)]
    noises = [min(phase.noise_multiplier for phase in one.phases) for one in (plan, run)]
    pairs: list[tuple[str, Sequence[object]]] = [
        ("rate", rates), ("noise multiplier", noises), ("steps", [plan.steps, run.steps]), *_said_by_both(plan, run)
    ]  # fmt: skip
    for name, (one, other) in pairs:
        if one != other:
            texts.append(f"{name}: planned {_shown(one)}, ran {_shown(other)}")
    if run.steps > plan.steps:
        texts.append(f"{run.steps - plan.steps} steps more than planned: a resumed or longer run spends them too")
    elif run.steps < plan.steps:
        texts.append("the run stopped early: if what it released decided that, quote the account of the whole plan")
    if rates[1] > rates[0] or noises[1] < noises[0]:
        texts.append("a rate above the plan's or less noise is covered only if it was fixed before the run")
    return texts or ["the run is as planned"]


def _said_by_both(plan: Described, run: Described) -> list[tuple[str, Sequence[object]]]:
    names = ("clip", "divisor", "epochs", "records")
    values = [(name, [one.facts[name].value for one in (plan, run) if name in one.facts]) for name in names]
    return [(name, pair) for name, pair in values if len(pair) == 2]


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
