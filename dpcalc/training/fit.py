"""From a budget to a model: a run is described, accounted, executed and measured, in this order.

The executed run is derived only from the accounted one (`dpcalc.training.run.plan`).
"""

from __future__ import annotations

from fractions import Fraction

from dpcalc.engine.ask import without_guarantee
from dpcalc.errors import Infeasible, MissingParameter, NotApplicable, NotConverged, SpecError
from dpcalc.model.draft import NOISE_SCALES
from dpcalc.notes import SeveralModels
from dpcalc.numerics.floats import down
from dpcalc.training.release.fitting import Fit, fit_described
from dpcalc.training.rule.setup import Task, share_of


def fit(task: Task) -> Fit:
    """Account for a run, execute it, and return its case; nothing is executed if a gate fails.

    With a seed or replicas, the numbers of the case are not guarantees.

    Raises:
        SpecError: description or data are malformed.
        NotApplicable, Infeasible: see `dpcalc.engine.answer.answer`; or the guarantee is vacuous.
    """
    if task.setup.evaluate_share is not None:
        task = _shared(task)
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
    """Return the outcome with the model's largest coefficients in its report; they are released with the model."""
    if fitted.model is None:
        return fitted
    from dpcalc.training.release.coefficients import coefficients_of
    from dpcalc.training.release.prediction import predictor

    rows = coefficients_of(predictor(fitted.model)).largest
    return fitted._replace(case=fitted.case._replace(training={**(fitted.case.training or {}), "coefficients": rows}))


def _shared(task: Task) -> Task:
    """Return the task with the budget split between the model and its evaluation: their epsilons add up.

    Raises:
        MissingParameter: there is no epsilon to split.
        SpecError: the noise is given, so there is nothing to split, or nothing is left for the model.
    """
    epsilon, share = task.question.epsilon, share_of(task.setup.evaluate_share)
    noisy = next((name for name in (*NOISE_SCALES, "noise_multiplier") if task.given.get(name) is not None), None)
    if epsilon is None:
        raise MissingParameter("a share of epsilon is asked for, and epsilon is not given", "give --epsilon")
    if noisy is not None:
        raise SpecError(f"a share of epsilon is asked for, and {noisy} is given", f"leave out --{noisy}, or the share")
    measured = float(f"{share * epsilon:.4g}")
    rest = float(f"{epsilon - measured:.12g}")
    if not rest > 0.0:
        raise SpecError("the share of epsilon, in four digits, leaves none for the model", "give a smaller share")
    if Fraction(repr(measured)) + Fraction(repr(rest)) > Fraction(repr(epsilon)):
        rest = down(rest, 1e5)  # by more than half a unit of the twelfth digit, so that the sum is at most epsilon
    question = task.question._replace(epsilon=rest)
    return task._replace(question=question, setup=task.setup._replace(evaluate_epsilon=(measured, epsilon)))


def fit_one_of_several(task: Task) -> Fit:
    """As `fit`, for one of several cases: a case without a guarantee is not trained and states the reason.

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
