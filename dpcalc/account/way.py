"""The account of a run, or of a run against its plan, from files and flags."""

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
"""Asks the user a question, and returns the typed answer."""


def accounted(
    files: Sequence[str],
    flags: Mapping[str, str],
    gates: Sequence[Gate] = (),
    ask: Ask | None = None,
    *,
    curves: bool = False,
) -> tuple[Case, str]:
    """Return the case of a run, and the recipe that asserts its epsilon.

    Args:
        files: the file of the run; or the files of a plan and of the run.
        flags: fact -> the typed value.
        gates: gates on the account.
        ask: asks the user for a missing fact; None: the error names the flag.
        curves: whether to return the curves behind the answer.

    Raises:
        Missing: a necessary fact is unknown.
        SpecError, NotApplicable: as `read_run` and `described`.
    """
    said = {name: _typed(name, text) for name, text in flags.items()}
    files_read = [read_plan(path) for path in files]
    plans = [
        _described(
            plan,
            {n: one for n, one in said.items() if n in _SHARED or n not in plan.facts or plan.facts[n].value is None},
            ask,
        )
        for plan in files_read[:-1]
    ]  # where the plan states a fact, the flag is for the run alone
    for plan in plans:  # the run uses the delta and the adjacency of its plan
        said = {**{name: plan.facts[name] for name in _SHARED if name in plan.facts}, **said}
    run = _described(files_read[-1], said, ask)
    case = account(run, [*gates, *_budget(run)], curves=curves)
    assert case.best is not None
    recipe = recipe_of(run, case.best.epsilon or 0.0)
    return (against(plans[0], run, case) if plans else case), recipe


def _budget(run: Described) -> list[Gate]:
    """Return the gate of the budget, if there is one."""
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
    """Return the described run; ask the user for missing facts if possible."""
    while True:
        try:
            return described(run, said)
        except Missing as question:
            if ask is None or question.fact in said or not FACTS[question.fact].help:
                raise
            said[question.fact] = _typed(question.fact, ask(f"{question.message}\n{FACTS[question.fact].help}"))


def against(plan: Described, run: Described, case: Case) -> Case:
    """Return the case of a run with its differences from the plan, and a gate: it must not spend more.

    Raises:
        SpecError: delta or the adjacency differ.
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
    gate = Assertion(f"epsilon <= {most:.6g}, the epsilon of the plan", value <= most, value, most - value)
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
        texts.append("the run stopped early: if its releases decided that, quote the account of the whole plan")
    if rates[1] > rates[0] or noises[1] < noises[0]:
        texts.append("a higher rate or less noise than planned is covered only if it was fixed before the run")
    return texts or ["the run is as planned"]


def _said_by_both(plan: Described, run: Described) -> list[tuple[str, Sequence[object]]]:
    names = ("clip", "divisor", "epochs", "records")
    values = [(name, [one.facts[name].value for one in (plan, run) if name in one.facts]) for name in names]
    return [(name, pair) for name, pair in values if len(pair) == 2]


def _shown(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
