"""What is guaranteed of the run that is to be executed, and the noise that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.engine.answer import answer
from dpcalc.engine.ask import ask
from dpcalc.engine.commands import COMMANDS, taken_by
from dpcalc.engine.description import run_of
from dpcalc.engine.gate import Gate
from dpcalc.engine.question import Question
from dpcalc.engine.solving.budget import likely_noise_std
from dpcalc.errors import DpcalcError
from dpcalc.model.algorithm import Algorithm
from dpcalc.model.draft import NOISE_SCALES, Description
from dpcalc.model.quantities import Quantity
from dpcalc.model.run import Run
from dpcalc.notes import LossDomain, Note
from dpcalc.report import Case, Result
from dpcalc.theorems.record import for_algorithm
from dpcalc.training.rule.draft import Draft

_CURES = {
    "strong_convexity": "give --regularisation",
    "diameter": "leave out --radius",
    "smoothness": "take a smooth --loss: logistic, huber or squares",
    "schedule": "dpcalc compare takes schedules; they are not trained",
}
"""The hint for each parameter that train does not take: the loss and the radius determine these constants."""


class RiskBound(NamedTuple):
    """A bound on the excess risk that covers exactly the run that is executed.

    Attributes:
        bound: its id.
        quantity: what is bounded: the excess risk on the records, or under the law that they are drawn from.
        value: the number.
        assumes: what it assumes.
        vacuous: whether any model meets it.
    """

    bound: str
    quantity: str
    value: float
    assumes: tuple[str, ...]
    vacuous: bool


def takes_dimension(algorithm: Algorithm) -> bool:
    """Return whether some bound for the algorithm depends on the dimension."""
    return "dimension" in taken_by(algorithm.name)


def account(draft: Draft, gates: Sequence[Gate] = ()) -> Case:
    """Return what is guaranteed of a run. Hints speak of the flags of train.

    Raises:
        SpecError, NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`.
    """
    try:
        case = ask("compare", draft, draft.question, gates=gates, notes=False)
    except DpcalcError as error:
        error.hint = _cure(error.parameters, error.hint or "")
        raise
    obstacles = tuple(one._replace(hint=_cure(one.parameters, one.hint)) for one in case.obstacles)
    case = case._replace(obstacles=obstacles)
    notes: tuple[Note, ...] = tuple(note for note in case.note_data if not isinstance(note, LossDomain))
    if draft.radius is not None:
        notes += (LossDomain(radius=draft.radius, projected=True),)
    return case._replace(note_data=notes)


def _cure(parameters: Sequence[str], hint: str) -> str:
    """Return the hint of train where a parameter is one that train does not take, else the hint given."""
    return next((cure for name, cure in _CURES.items() if name in parameters), hint)


def noise_scale(draft: Draft) -> float:
    """Return the scale of the noise that the described run has, or needs for the budget.

    It is advice, from the bounds that take little time, or of samples from an approximation: the noise that is used
    comes from all bounds.
    """
    for name in NOISE_SCALES:
        if name in draft:
            return float(draft[name])
    run = described_run(draft)
    bounds = [b for b in for_algorithm(run.algorithm.name) if b.guarantee and not b.unpromised(run)]
    try:
        best = answer(run, draft.question, [bound for bound in bounds if not bound.slow]).best
    except DpcalcError:
        likely = [likely_noise_std(bound, run, draft.question) for bound in bounds]
        if known := [noise_std for noise_std in likely if noise_std is not None]:
            return min(known)
        best = account(draft).best
    assert best is not None
    return best.value


def accounted_run(draft: Draft, best: Result) -> Run:
    """Return the run as accounted, with the noise that it needs where that was sought."""
    return described_run(draft.replacing(**{best.quantity: best.value}) if best.quantity in NOISE_SCALES else draft)


def described_run(draft: Draft) -> Run:
    """Return the run that is described."""
    _, run, _ = run_of(COMMANDS["compare"], Description(draft))
    return run


def least_risk(draft: Draft, run: Run, best: Result, dimension: int) -> RiskBound | None:
    """Return the least bound on the excess risk that covers exactly this run, None where there is none.

    Args:
        draft, run: what is executed.
        best: its best guarantee.
        dimension: of the data.
    """
    if draft.clip is not None:
        return None  # the theorems on the risk are of the loss itself
    described = Draft.of(
        **draft.described_loss, algorithm=draft["algorithm"], records=draft["records"], dimension=dimension,
        step_size=run.step_size, noise_std=run.noise_std, steps=draft["records"] if run.steps is None else run.steps,
    )  # fmt: skip
    budgets = [Question()]
    if best.log_delta is not None and best.epsilon is not None:
        budgets.append(Question(best.epsilon, best.delta, best.log_delta))
    results = [result for budget in budgets for result in _risks(described, budget)]
    same = [result for result in results if result.guarantee and _is_of(result, described)]
    if not same:
        return None
    least = min(same, key=lambda result: result.value)
    vacuous = bool((least.details or {}).get("vacuous"))
    return RiskBound(least.bound, least.quantity, least.value, least.assumes, vacuous)


def _risks(described: Draft, budget: Question) -> tuple[Result, ...]:
    try:
        return ask("utility", described, budget).results
    except DpcalcError:
        return ()


def _is_of(result: Result, described: Draft) -> bool:
    """Return whether a bound on the risk is of the run described: the same noise, steps and step size."""
    details = result.details or {}
    same = all(details.get(name) == described.get(name) for name in ("noise_std", "step_size", "steps"))
    return same and result.quantity != Quantity.SMOOTHING_ERROR
