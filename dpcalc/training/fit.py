"""Budget in, model out: a run is described, accounted, executed and measured, in this order.

What is executed is derived from what was accounted and from nothing else (`dpcalc.training.run.plan`).
"""

from __future__ import annotations

from dpcalc.engine.ask import without_guarantee
from dpcalc.errors import Infeasible, NotApplicable, NotConverged
from dpcalc.notes import SeveralModels
from dpcalc.training.release.fitting import Fit, fit_described
from dpcalc.training.rule.setup import Task


def fit(task: Task) -> Fit:
    """Return the case of a run that was accounted and then executed; nothing is executed where a gate fails.

    Where the noise can be drawn again, or there are replicas, the numbers of the case are no guarantees.

    Raises:
        SpecError: description or data are malformed.
        NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`; or the guarantee says nothing.
    """
    setup = task.setup
    if setup.tune is not None:
        from dpcalc.training.tune.fit import fit_tuned

        fitted = fit_tuned(task)
    elif setup.unlearn is not None:
        from dpcalc.training.release.unlearning import fit_unlearned

        fitted = fit_unlearned(task)
    else:
        fitted = fit_described(task)
    fitted = _with_coefficients(fitted)
    if setup.seed is None and setup.replicas == 1:
        return fitted
    return fitted._replace(case=fitted.case.uncovered())


def _with_coefficients(fitted: Fit) -> Fit:
    """Return the outcome with the largest coefficients of its model in the report: they are released with it."""
    if fitted.model is None:
        return fitted
    from dpcalc.training.release.coefficients import coefficients_of
    from dpcalc.training.release.prediction import predictor

    rows = coefficients_of(predictor(fitted.model)).largest
    return fitted._replace(case=fitted.case._replace(training={**(fitted.case.training or {}), "coefficients": rows}))


def fit_one_of_several(task: Task) -> Fit:
    """As `fit`, for one of several cases: one without a guarantee is not trained, and the case says why.

    Raises:
        SpecError: description or data are malformed.
    """
    try:
        case, model = fit(task)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return Fit(without_guarantee("train", task.given, task.question, error, task.gates), None)
    if task.setup.replicas == 1 and case.training:
        case = case._replace(note_data=(*case.note_data, SeveralModels()))
    return Fit(case, model)
