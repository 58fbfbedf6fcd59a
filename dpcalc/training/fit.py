"""Budget in, model out: a run is described, accounted, executed and measured, in this order.

What is executed is derived from what was accounted and from nothing else (`dpcalc.training.run.plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpcalc.engine.ask import without_guarantee
from dpcalc.engine.question import Question
from dpcalc.errors import Infeasible, NotApplicable, NotConverged
from dpcalc.notes import SeveralModels
from dpcalc.training.release.fitting import Fit, fit_described
from dpcalc.training.rule.setup import Setup, Task


def fit(given: Mapping[str, Any], question: Question, setup: Setup, **more: Any) -> Fit:
    """Return the case of a run that was accounted and then executed; nothing is executed where a gate fails.

    Where the noise can be drawn again, or there are replicas, the numbers of the case are no guarantees.

    Args:
        given, question, setup, more: the fields of a `Task`.

    Raises:
        SpecError: description or data are malformed.
        NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`; or the guarantee says nothing.
    """
    fitted = _fit(Task(given, question, setup, **more), setup)
    if setup.seed is None and setup.replicas == 1:
        return fitted
    return fitted._replace(case=fitted.case.uncovered())


def _fit(task: Task, setup: Setup) -> Fit:
    if setup.tune is not None:
        from dpcalc.training.tune.fit import fit_tuned

        return fit_tuned(task)
    if setup.unlearn is not None:
        from dpcalc.training.release.unlearning import fit_unlearned

        return fit_unlearned(task)
    return fit_described(task)


def fit_one_of_several(given: Mapping[str, Any], question: Question, setup: Setup, **more: Any) -> Fit:
    """As `fit`, for one of several cases: one without a guarantee is not trained, and the case says why.

    Raises:
        SpecError: description or data are malformed.
    """
    try:
        case, model = fit(given, question, setup, **more)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return Fit(without_guarantee("train", given, question, error, more.get("gates", ())), None)
    if setup.replicas == 1 and case.training:
        case = case._replace(note_data=(*case.note_data, SeveralModels()))
    return Fit(case, model)
