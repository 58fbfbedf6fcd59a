"""Training, attacking, predicting and evaluating models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.api.asked import answered, read
from dpcalc.api.queries import mirrors
from dpcalc.engine.gate import Gate
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.model.quantities import Given
from dpcalc.model.question import Question
from dpcalc.render.notes import report
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpcalc.training.rule.account import Account


@mirrors("train")
def train(
    *,
    data: Any = None,
    synthetic: str | None = None,
    target: str | None = None,
    positive: str | None = None,
    ignore: Sequence[str] = (),
    ranges: str | None = None,
    intercept: bool | None = None,
    test_fraction: float = 0.0,
    seed: int | None = None,
    noise_source: str = "os",
    replicas: int = 1,
    workers: int | None = None,
    output: str | None = None,
    labels: Sequence[str] | str | None = None,
    card: bool = True,
    target_range: tuple[float, float] | str | None = None,
    average: str | None = None,
    reference: bool = False,
    show_unprotected_metrics: bool = False,
    evaluate_share: float | str | None = None,
    tune: Mapping[str, Sequence[float]] | Sequence[str] = (),
    tune_runs: float | None = None,
    tune_law: str | None = None,
    tune_score: float | str | None = None,
    solver: str | None = None,
    centre: bool | None = None,
    executor: Executor | None = None,
    unlearn: str | None = None,
    ledger: Any = None,
    class_shares: Sequence[float] | str | None = None,
    class_weight: Sequence[float] | str | None = None,
    **given: Any,
) -> Report:
    """Train a linear model by an algorithm whose privacy is accounted first; nothing is trained where a gate fails.

    A run of which nothing is said but data, task and budget follows the default rule (docs/training.md).

    Args:
        data: a path (CSV, NPY, NPZ, Parquet), ``"example:breast-cancer"``, or arrays (features, target).
        synthetic: ``logistic`` or ``linear`` in place of data, with ``records`` and ``dimension``.
        target, ignore: the target's column, columns to leave out.
        labels: two labels of the target, such as ``("no", "yes")``: the second counts as +1, everything else as -1. By
            default finite numbers above 0 count as +1. More than two are classes of a softmax, and everything else
            counts as the first of them.
        positive: the label that counts as +1, alone.
        ranges: path of a CSV ``column,low,high``: each range is mapped to [-1, 1]; or of a schema in YAML or JSON,
            which declares levels and missing cells too (docs/training.md). Never take it from the records.
        intercept: whether to add a constant feature; it counts in the feature bound. By default as the rule has it.
        target_range: the interval of the target, ``(low, high)``: a number is predicted.
        average: ``tail`` releases the mean of the second half of the iterates, ``none`` the last one.
        test_fraction: share of the records set aside for testing.
        seed: of noise, order and split; the result is then not private.
        noise_source: ``os`` (default) or ``secure``.
        replicas, workers: so many independent runs on so many processors: quantiles of the metrics, and no model.
        output: path of the model, .json or .npz; `dpcalc.training.release.model.load` reads it.
        card: whether a privacy card is written beside the model, as ``model.card.json``; none of one that is not
            private. What prevents it is a warning, as the model is there.
        reference: whether to compare with the non-private minimiser, which takes most of the time of a run.
        show_unprotected_metrics: whether the model is measured on the training records without noise.
        evaluate_share: the share of epsilon by which the model is measured with noise, such as 0.05 or ``"5%"``.
        tune: settings to choose from, such as ``{"clip": [0.05, 0.1], "travel": [10, 30]}``: the best of a random
            number of runs is released, and what the choice costs is part of the guarantee.
        tune_runs: the mean of that number, 10 by default.
        tune_law: ``geometric`` (default), ``logarithmic`` or ``poisson``.
        tune_score: the share of the training records that runs are scored on, 0.2 by default, or the path of a public
            file.
        unlearn: path of a model that is trained on until it has forgotten the records that are not in ``data``, a path;
            with ``start_distance`` (docs/after-training.md).
        ledger: what is charged before anything is trained: the path of a ledger, a `dpcalc.Ledger` or a
            `dpcalc.Accountant` that all fits to these records share. Without one, a second fit in a process warns.
        solver: ``descent``, or ``sums`` for least squares from noisy sums of products. By default as the rule has it.
        centre: whether rows are centred on a noisy mean, which is part of what is accounted. By default as the rule has
            it.
        class_shares: public shares of the classes in the order of their labels, such as ``(0.98, 0.02)``, or whole
            numbers of records: a warning says where the rarest is too rare for the budget. Never count them.
        class_weight: ``balanced`` or ``sqrt``, by the shares, or public numbers in the order of the labels: gradients
            of a class are multiplied by its weight over the largest. Predictions follow the weights, probabilities do
            not.
        executor: what computes the replicas in place of this machine: any `concurrent.futures.Executor`. It is sent the
            records as text.

    Returns:
        A report; ``training`` of a case says what was trained, and whether the result is ``private``. What is computed
        of the records without noise is in its ``uncovered`` alone, where it was asked for (``test_fraction``,
        ``show_unprotected_metrics``, ``reference``, ``replicas``, ``synthetic``): no guarantee covers it.

    Raises:
        SpecError: malformed parameters or data.
        GateFailed: the budget of the ledger has no room; nothing is trained.
        NotApplicable, Infeasible: as in `rdp`.

    >>> found = train(data="example:breast-cancer", epsilon=1, delta=1e-5).cases[0]
    >>> found.training["steps"], round(found.best.value, 4), found.training["private"]
    (100, 0.0141, True)
    """
    from dpcalc.training import fit as fitting
    from dpcalc.training import with_one_blas_thread
    from dpcalc.training.rule.candidates import TuneRequest
    from dpcalc.training.rule.setup import Setup, Task, check_setup

    setup = Setup(
        data=data, synthetic=synthetic, target=target, positive=positive, ignore=tuple(ignore), ranges=ranges,
        intercept=intercept, test_fraction=test_fraction, seed=seed, noise_source=noise_source, replicas=replicas,
        workers=workers, output=output, labels=labels, card=card, target_range=target_range, average=average,
        reference=reference, show_unprotected_metrics=show_unprotected_metrics,
        evaluate_share=evaluate_share,
        tune=TuneRequest(tune, tune_runs, tune_law, tune_score).tune(), solver=solver,
        centre=centre, executor=executor, unlearn=unlearn, account=_account(ledger), class_shares=class_shares,
        class_weight=class_weight,
    )  # fmt: skip
    asked = read("train", **given)
    check_setup(setup, len(asked.runs))
    models, cases = [], []

    def asker(fit: Callable[..., Any]) -> Callable[..., Case]:
        def answer(_: str, run: Given, question: Question, *, notes: bool, brief: bool, gates: Sequence[Gate]) -> Case:
            fitted = fit(Task(run, question, setup, gates=gates))
            models.append(fitted.model)
            case: Case = fitted.case
            cases.append(case)
            return case

        return answer

    with with_one_blas_thread():
        whole = answered("train", asked, asker(fitting.fit), asker(fitting.fit_one_of_several))
    if output is not None and models[0] is not None:
        from dpcalc.render.models import render_statement
        from dpcalc.training.release.model import save

        save(models[0], output, statement=render_statement(whole).strip())
        if card:
            from dpcalc.cards.card import without_card, write_beside

            try:
                write_beside(whole, output)
            except DpcalcError as error:
                warnings.warn(f"there is no privacy card beside the model: {error.message}", stacklevel=2)
                whole = report("train", [without_card(case) for case in cases])
    if setup.account is not None:
        setup.account.finish()
    elif trained := [case.training for case in cases if case.training and case.training["private"]]:
        from dpcalc.training.rule.account import warn_if_again

        warn_if_again(trained[0]["dimension"])
    return whole


def _account(ledger: Any) -> Account | None:
    """Return the account that a ledger is, by whatever a user names it.

    Raises:
        SpecError: it is none.
    """
    if ledger is None:
        return None
    if isinstance(ledger, (str, os.PathLike)):
        from dpcalc.recipes.ledgers.charge import LedgerFile

        return LedgerFile(os.fspath(ledger))
    if not hasattr(ledger, "take"):
        raise SpecError(
            f"ledger is a {type(ledger).__name__}", "give the path of a ledger, a dpcalc.Ledger or a dpcalc.Accountant"
        )
    account: Account = ledger
    return account


@mirrors("compare")
def audit(
    *,
    attack: str = "best",
    scores: str | os.PathLike[str] | None = None,
    one_run: bool = False,
    threshold: float | None = None,
    guesses: int | None = None,
    data: str | os.PathLike[str] | None = None,
    neighbour: str | os.PathLike[str] | None = None,
    replicas: float = 100_000,
    confidence: float = 0.99,
    as_released: bool = False,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    **given: Any,
) -> Report:
    """Attack a described run: an epsilon that it has at least, with a confidence, beside what is guaranteed.

    The run is carried out many times, on two data sets that differ in one record (docs/audit.md). One seed gives one
    report, whatever ``workers`` and ``executor`` are.

    Args:
        attack: ``best``, ``linear``, ``wall``, ``reset``, ``low-bits`` or ``custom``.
        scores: the path of scores of canaries, in place of an attack: CSV with columns in, score or in, out.
        one_run: whether they are of one run, each canary in by its own fair coin.
        threshold: of scores, fixed before they were looked at.
        guesses: of one run, how many coins to guess, fixed beforehand.
        data, neighbour: of a custom attack, the paths of two tables that differ in one record, the target last.
        replicas: runs on each of the two data sets.
        confidence: with which all bounds on a case hold together.
        as_released: whether the runs are those of the engine that trains one model, with its rounding; slow.
        seed: of all randomness.
        workers: processors; by default all.
        executor: what computes the runs in place of this machine: any `concurrent.futures.Executor`.

    Returns:
        A report; ``audit`` of a case has ``epsilon_lower``, ``mu_lower``, the counts and every attack that was tried. A
        gate of the case fails, and `Report.failed` counts it, where a lower bound is above the guarantee.

    Raises:
        SpecError: malformed parameters or data.
        NotApplicable, Infeasible: nothing is guaranteed, or there is no such attack on the run.

    >>> found = audit(algorithm="noisy-gd", records=20, steps=50, lipschitz=1, smoothness=1, step_size=0.5, noise_std=2,
    ...               delta=0.01, replicas=10_000).cases[0]
    >>> 0.0 < found.audit["epsilon_lower"] < found.best.value, found.failed
    (True, False)
    """
    from dpcalc.training import with_one_blas_thread
    from dpcalc.training.audit.attacks import Attack
    from dpcalc.training.audit.case import Inquiry, paths_of_custom
    from dpcalc.training.audit.estimate import Setup, check_setup
    from dpcalc.training.audit.scores import scores_of
    from dpcalc.training.run.remote import There

    if attack not in list(Attack):
        raise SpecError(f"attack is {attack!r}; it must be one of {', '.join(Attack)}")
    if given.get("certify"):
        raise SpecError("audit does not take certify", "certify the guarantee by itself: `compare`")
    if replicas != int(replicas):
        raise SpecError(f"replicas is {replicas!r}; it must be a whole number", "try 100000")
    setup = Setup(int(replicas), seed, workers, confidence)
    check_setup(setup)
    custom = paths_of_custom(attack, *(None if path is None else os.fspath(path) for path in (data, neighbour)))
    there = None if executor is None else There.of(executor)
    path = None if scores is None else os.fspath(scores)
    of_canaries = scores_of(path, setup, one_run=one_run, threshold=threshold, guesses=guesses)

    def asker(answer: Callable[..., Case]) -> Callable[..., Case]:
        def asked(_: str, run: Given, question: Question, *, notes: bool, brief: bool, gates: Sequence[Gate]) -> Case:
            return answer(
                Inquiry(
                    run, question, attack, setup, custom=custom, as_released=as_released, gates=gates, brief=brief,
                    there=there, scores=of_canaries,
                )
            )  # fmt: skip

        return asked

    with with_one_blas_thread():
        return answered("audit", read("compare", **given), asker(Inquiry.case), asker(Inquiry.case_among_others))


def predict(
    model: str | os.PathLike[str],
    data: Any,
    *,
    output: str | os.PathLike[str] | None = None,
    threshold: float | None = None,
) -> dict[str, Any]:
    """Return what a model says of rows: arrays by name, in the order of the rows.

    Args:
        model: path of a file that `train` wrote.
        data: a path (CSV, NPY, NPZ, Parquet) with the model's columns among others, ``"example:breast-cancer"``, or an
            array of rows in the order of the model's columns.
        output: path of a CSV that is written as well.
        threshold: of a logistic model, the probability above which a row counts as +1; by default 1/2.

    Returns:
        ``prediction``, the names of classes or targets in their own units; and ``probability`` of the class that counts
        as +1 (logistic), or of the class that is predicted (softmax), or ``score`` (hinge).

    Raises:
        SpecError: a file cannot be read, or a column is missing.
    """
    import numpy as np

    from dpcalc.files.output import check_outputs, in_pieces
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predicted, predictor, write_csv

    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    if output is not None:
        read = (os.fspath(model), source if isinstance(source, str) else None)
        check_outputs([(os.fspath(output), "output")], read)
    predicting = predictor(load(os.fspath(model))).above(threshold)
    if output is not None:
        with in_pieces(os.fspath(output), "output") as write:
            write_csv(predicting, source, write)
    no_rows = np.empty((0, len(predicting.model.columns)))
    batches = list(predicted(predicting, source)) or [predicting.read(predicting.model.scores(no_rows))]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in predicting.names}


def evaluate(
    model: str | os.PathLike[str],
    data: Any,
    *,
    private: bool = False,
    epsilon: float | None = None,
    error_bound: float | None = None,
    ledger: str | os.PathLike[str] | None = None,
    threshold: float | None = None,
) -> dict[str, Any]:
    """Return how good a model is on test rows, as the JSON of `dpcalc evaluate`.

    Args:
        model: path of a file that `train` wrote.
        data: as in `predict`, with the target; or a pair of arrays (rows, target).
        private: whether the metrics are a release with noise, and have a guarantee for the test rows (delta is 0).
        epsilon: of that release.
        error_bound: errors of a regression are cut to it; by default the width of the target's range.
        ledger: path of the ledger that the release is charged to.
        threshold: of a logistic model, the probability above which a row counts as +1, fixed beforehand.

    Returns:
        ``metrics`` by name, and ``private``: without noise they are private only if the test rows are public. Without
        noise and of classes also the ``confusion`` matrix, ``classes`` with precision and recall, ``calibration`` and
        ``roc``, pairs of false- and true-positive rates.

    Raises:
        SpecError: a file cannot be read, a column is missing, or epsilon is given without ``private`` or not with it.
    """
    from dpcalc.recipes.ledgers.charge import evaluate

    if private != (epsilon is not None) or (not private and (error_bound is not None or ledger is not None)):
        raise SpecError("a private evaluation has an epsilon of its own", "give private=True and epsilon, or neither")
    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    return evaluate(
        os.fspath(model), source, epsilon=epsilon, error_bound=error_bound,
        ledger=None if ledger is None else os.fspath(ledger), threshold=threshold,
    )  # fmt: skip


def coefficients(model: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the coefficients of a model in the units of its columns, as the JSON of `dpcalc model`.

    Args:
        model: path of a file that `train` wrote.

    Returns:
        ``coefficients``, each with ``value``, ``noise`` (about the standard deviation of the privacy noise, or None)
        and ``over_range``; and ``middle``, the scores in the middle of all ranges.

    Raises:
        SpecError: the file is no model.
    """
    from dpcalc.training.release.coefficients import coefficients_of
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor

    return coefficients_of(predictor(load(os.fspath(model)))).to_json()


def to_sklearn(model: str | os.PathLike[str]) -> Any:
    """Return a model as a fitted `sklearn.pipeline.Pipeline`, which takes rows in the order of the model's columns.

    Its last step has ``coef_`` and ``intercept_`` in the units of the mapped and shortened rows, which the first step
    makes. In a column of words stand the places of its levels, from 0 on.

    Args:
        model: path of a file that `train` wrote.

    Raises:
        SpecError: the file is no model, or one whose predictions follow weights of classes while its probabilities do
            not; or scikit-learn is not installed.
    """
    from dpcalc.training.release.model import load
    from dpcalc.training.release.prediction import predictor

    return predictor(load(os.fspath(model))).to_sklearn()
