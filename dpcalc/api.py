"""The Python API: each function mirrors a command, takes its parameters as keywords and returns its report."""

from __future__ import annotations

import inspect
import itertools
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

from dpcalc import keywords
from dpcalc.engine.ask import FEW, applying, ask, side_by_side
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.gate import Gate, parse
from dpcalc.engine.question import Question, aimed
from dpcalc.errors import DpcalcError, SpecError
from dpcalc.model.parameter import PARAMETERS, RATES, Parameter, conversion, meant_by, not_covered, renamed
from dpcalc.model.parameter import check as check_value
from dpcalc.model.source import Source
from dpcalc.render.notes import report
from dpcalc.report import SHOWN_IN_NOTEBOOKS, Case, Report
from dpcalc.theorems.record import all_bounds, lookup

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpcalc.cards.verify import Verification
    from dpcalc.engine.attack_risk import RiskQuestion


def _in_notebooks(found: Report) -> str:
    from dpcalc.render.notebook import render_notebook

    return render_notebook(found)


SHOWN_IN_NOTEBOOKS[:] = [_in_notebooks]

Function = TypeVar("Function", bound=Callable[..., Any])

QUESTION = {
    "epsilon": "the budget",
    "delta": 'the budget; a string such as "1e-5000" where no float can hold it',
    "order": "order or orders of Renyi divergence; without a budget the divergence itself is reported",
    "solve": "name of a parameter to solve for instead, given both epsilon and delta",
    "gates": 'assertions on the best guarantee such as "epsilon<=1"; report.failed counts the cases that fail one',
    "certify": 'prove every guarantee in ball arithmetic: details["certified"] has what, details["not_certified"] why '
    "not",
    "risk": "what an attacker can do, beside the answer: case.risk",
    "fpr": "rates of false positives at which risk gives those of true ones",
    "prior": "prior probabilities that the record is there, for how often a guess is right",
    "baseline": "probabilities to guess a secret of the record right without the release",
    "advantage": "solve for what keeps true positives less false ones of any attack at most this",
    "tpr": "solve for what keeps the rate of true positives at fpr at most this",
    "success": "solve for what keeps how often a guess is right, at prior, at most this",
    "reconstruction": "solve for what keeps how often a secret is guessed, baseline without, at most this",
}
_OF_TRAINING = ("epsilon", "delta", "gates")
_SCHEDULE = "path of per-step values (CSV, NPY, NPZ, YAML)"


def _mirrors(command: str) -> Callable[[Function], Function]:
    """Return the decorator that shows the command's parameters as those of the function: in ``help``, in notebooks.

    The records of the commands and of the parameters say what they are; `dpcalc.keywords` repeats the names, which type
    checkers must be able to read.
    """
    record = COMMANDS[command]
    help = {name: _help(PARAMETERS[name]) for name in record.parameters}
    defaults: dict[str, Any] = {"order": (), "gates": (), "certify": False, "risk": False}
    if "algorithm" in help:
        help["algorithm"] = f"{PARAMETERS['algorithm'].help}; one of {', '.join(record.algorithms)}"
        if not (record.compares or record.prices):
            defaults["algorithm"] = record.default
    asked = {name: QUESTION[name] for name in _OF_TRAINING} if record.trains else QUESTION
    help |= ({"schedule": _SCHEDULE} if record.columns else {}) | asked

    def decorate(function: Function) -> Function:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(n)) for n in help]
        function.__signature__ = inspect.Signature([*own, *named])  # type: ignore[attr-defined]
        doc = function.__doc__ or ""
        lines = "".join(f"        {name}: {text}.\n" for name, text in help.items())
        head = "" if "    Args:\n" in doc else "\n    Args:\n"
        function.__doc__ = doc.replace("\n    Returns:\n", f"{head}{lines}\n    Returns:\n", 1)
        return function

    return decorate


def _help(parameter: Parameter) -> str:
    unit = f" ({parameter.unit})" if parameter.unit else ""
    return f"{parameter.help}; {parameter.domain}{unit}"


@_mirrors("compare")
def compare(**given: Unpack[keywords.Compare]) -> Report:
    """Return every bound that applies to the described run, best first, and why the others do not.

    ``algorithm`` says what is run and must be given; ``"all"`` stands for every one.

    Returns:
        A report; beside its results each case has ``tightness`` (how far the best is from what nothing can beat, where
        that is known) and ``notes`` on what knowing or promising more would give, which ``note_data`` has as data.
        Where several algorithms are asked, one that cannot be so described has no results and says why in
        ``obstacles``.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = compare(algorithm=["pnsgd", "shuffled"], records=10**5, lipschitz=1, smoothness=1, step_size=0.1,
    ...                  noise_std=2, delta=1e-6)
    >>> [round(case.best.value, 4) for case in report.cases]
    [4.8866, 1.3153]
    """
    return _report("compare", **given)


@_mirrors("rdp")
def rdp(**given: Unpack[keywords.Rdp]) -> Report:
    """Return what is true of one fixed-order pass of noisy SGD whose iterates stay hidden.

    Of ``epsilon``, ``delta`` and ``noise_std``, what is left out is solved for. A parameter may be a list: there is one
    case for each value, and for every combination of several lists.

    The words of other programs that mean exactly the same are taken here and everywhere: ``lr`` for ``step_size``,
    ``sigma`` for ``noise_std``, ``target_delta`` for ``delta``.

    Returns:
        A report; ``report.cases[0].best`` is the number to quote, ``report.rows()`` a flat table of all.

    Raises:
        SpecError: malformed or incomplete parameters; ``certify`` without python-flint.
        NotApplicable: no theorem covers the run; of several cases one such has no results and says why.
        Infeasible: no value of the unknown meets the budget.
        Disproved: with ``certify``, a guarantee is below the truth; its ``report`` has all that is known of it.

    >>> round(rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1,
    ...           delta=1e-5).cases[0].best.value, 12)
    0.725521750858
    """
    return _report("rdp", **given)


@_mirrors("shifted")
def shifted(**given: Unpack[keywords.Shifted]) -> Report:
    """Return what the general shifted-divergence theorem proves of a chain of noisy Lipschitz steps.

    What a ``schedule`` lacks is taken from the other arguments; the parameter-space noise of a step has scale
    ``step_size`` times ``noise_std`` or ``laplace_scale``.

    Returns:
        A report as in `rdp`; the best result's ``details["allocation"]`` is where the shifts are spent.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    return _report("shifted", **given)


@_mirrors("unlearn")
def unlearn(**given: Unpack[keywords.Unlearn]) -> Report:
    """Return how well noisy steps on the records kept make a model forget the others.

    ``start`` says what is known of the model: a ``start_distance`` to one that never saw the records, that it is a
    ``"minimiser"``, or the last iterate of a noisy ``"run"``. ``solve="clean_steps"`` gives the least number of steps.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> unlearn(start_distance=0.02, contraction=0.99, step_size=0.1, noise_std=0.5, epsilon=0.1, delta=1e-5,
    ...         solve="clean_steps").cases[0].best.value
    70
    """
    return _report("unlearn", **given)


@_mirrors("hockey-stick")
def hockey_stick(**given: Unpack[keywords.HockeyStick]) -> Report:
    """Return one record's delta(epsilon) along a fixed-order pass, by contraction, shift and mixture bounds.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(hockey_stick(records=100, index=50, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2,
    ...                    epsilon=1).cases[0].best.log_delta, 9)
    -31.874272984
    """
    return _report("hockey-stick", **given)


@_mirrors("shuffle")
def shuffle(**given: Unpack[keywords.Shuffle]) -> Report:
    """Return what is true of one pass in a random order.

    The column ``probability`` of a ``schedule`` is the law of the record's position.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(shuffle(records=10**5, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6
    ...               ).cases[0].best.value, 7)
    1.3153396
    """
    return _report("shuffle", **given)


@_mirrors("online")
def online(**given: Unpack[keywords.Online]) -> Report:
    """Return what is true of a growing stream whose noise decays from record to record.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(online(records=100, lipschitz=10, smoothness=1, step_size=0.01, diameter=1, c1=100, c2=100,
    ...              decay_exponent=1.5, epsilon=1).cases[0].best.value, 8)
    0.04950353
    """
    return _report("online", **given)


@_mirrors("multi-epoch")
def multi_epoch(**given: Unpack[keywords.MultiEpoch]) -> Report:
    """Return what is true of many passes over the records.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(multi_epoch(records=60000, epochs=20, batch_size=250, lipschitz=1, smoothness=1, step_size=0.1,
    ...                   noise_std=0.05, delta=1e-6).cases[0].best.value, 9)
    0.68377813
    """
    return _report("multi-epoch", **given)


@_mirrors("dp-sgd")
def dp_sgd(**given: Unpack[keywords.DpSgd]) -> Report:
    """Return what is true of SGD on uniformly sampled records whose losses need not be smooth.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = dp_sgd(algorithm="dp-sgd-gradient", records=1000, lipschitz=1.0, noise_std=2.0, delta=1e-6)
    >>> round(report.cases[0].best.value, 2)
    0.22
    """
    return _report("dp-sgd", **given)


@_mirrors("utility")
def utility(**given: Unpack[keywords.Utility]) -> Report:
    """Return what a budget costs: every bound on the excess risk that applies, with the run that has it.

    The domain lies in a ball of the given ``radius`` about 0. A loss is given by name with what its constants depend
    on, or by its constants.

    Returns:
        A report as in `rdp`. Each result's ``value`` is an excess risk, and its ``details`` have ``algorithms``,
        ``noise_std``, ``step_size``, ``steps`` and ``vacuous`` where the value says nothing.

    Raises:
        SpecError, NotApplicable: as in `rdp`.

    >>> case = utility(loss="logistic", feature_bound=1.0, records=10**5, dimension=20, radius=1.0, algorithm="stop",
    ...                epsilon=1.0, delta=1e-6).cases[0]
    >>> case.best.bound, round(case.best.value, 5)
    ('utility.stop_from_centre', 0.08739)
    """
    return _report("utility", **given)


@_mirrors("train")
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
    tune: Mapping[str, Sequence[float]] | Sequence[str] = (),
    tune_runs: float | None = None,
    tune_law: str | None = None,
    tune_score: float | str | None = None,
    solver: str | None = None,
    centre: bool | None = None,
    executor: Executor | None = None,
    unlearn: str | None = None,
    **given: Unpack[keywords.Train],
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
        tune: settings to choose from, such as ``{"clip": [0.05, 0.1], "travel": [10, 30]}``: the best of a random
            number of runs is released, and what the choice costs is part of the guarantee.
        tune_runs: the mean of that number, 10 by default.
        tune_law: ``geometric`` (default), ``logarithmic`` or ``poisson``.
        tune_score: the share of the training records that runs are scored on, 0.2 by default, or the path of a public
            file.
        unlearn: path of a model that is trained on until it has forgotten the records that are not in ``data``, a path;
            with ``start_distance`` (docs/after-training.md).
        solver: ``descent``, or ``sums`` for least squares from noisy sums of products. By default as the rule has it.
        centre: whether rows are centred on a noisy mean, which is part of what is accounted. By default as the rule has
            it.
        executor: what computes the replicas in place of this machine: any `concurrent.futures.Executor`. It is sent the
            records as text.

    Returns:
        A report; ``training`` of a case has ``metrics``, those of the ``non_private`` fit if that is asked for, and
        whether the result is ``private``. Metrics are computed without noise: the guarantee does not cover them.

    Raises:
        SpecError: malformed parameters or data.
        NotApplicable, Infeasible: as in `rdp`.

    >>> found = train(data="example:breast-cancer", epsilon=1, delta=1e-5).cases[0]
    >>> found.training["steps"], round(found.best.value, 4), found.training["private"]
    (100, 0.0139, True)
    """
    from dpcalc.training import fit as fitting
    from dpcalc.training import with_one_blas_thread
    from dpcalc.training.rule.candidates import tune_of
    from dpcalc.training.rule.setup import Setup, check_setup

    setup = Setup(
        data=data, synthetic=synthetic, target=target, positive=positive, ignore=tuple(ignore), ranges=ranges,
        intercept=intercept, test_fraction=test_fraction, seed=seed, noise_source=noise_source, replicas=replicas,
        workers=workers, output=output, labels=labels, card=card, target_range=target_range, average=average,
        reference=reference, tune=tune_of(tune, tune_runs, tune_law, tune_score), solver=solver, centre=centre,
        executor=executor, unlearn=unlearn,
    )  # fmt: skip
    asked = _read("train", **given)
    check_setup(setup, len(asked.runs))
    models, cases = [], []

    def asker(fit: Callable[..., Any]) -> Callable[..., Case]:
        def answer(
            _: str, run: Mapping[str, Any], question: Question, *, notes: bool, brief: bool, gates: Sequence[Gate]
        ) -> Case:
            fitted = fit(run, question, setup, gates=gates)
            models.append(fitted.model)
            case: Case = fitted.case
            cases.append(case)
            return case

        return answer

    with with_one_blas_thread():
        found = _answered("train", asked, asker(fitting.fit), asker(fitting.fit_one_of_several))
    if output is not None and models[0] is not None:
        from dpcalc.training.release.model import save

        save(models[0], output, statement=format_report(found, "statement").strip())
        if card:
            from dpcalc.cards.card import without_card, write_beside

            try:
                write_beside(found, output)
            except DpcalcError as error:
                warnings.warn(f"there is no privacy card beside the model: {error.message}", stacklevel=2)
                found = report("train", [without_card(case) for case in cases])
    return found


@_mirrors("compare")
def audit(
    *,
    attack: str = "best",
    data: str | os.PathLike[str] | None = None,
    neighbour: str | os.PathLike[str] | None = None,
    replicas: float = 100_000,
    confidence: float = 0.99,
    as_released: bool = False,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    **given: Unpack[keywords.Compare],
) -> Report:
    """Attack a described run: an epsilon that it has at least, with a confidence, beside what is guaranteed.

    The run is carried out many times, on two data sets that differ in one record (docs/audit.md). One seed gives one
    report, whatever ``workers`` and ``executor`` are.

    Args:
        attack: ``best``, ``linear``, ``wall``, ``reset``, ``low-bits`` or ``custom``.
        data, neighbour: of a custom attack, the paths of two tables that differ in one record, the target last.
        replicas: runs on each of the two data sets.
        confidence: with which all bounds on a case hold.
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
    from dpcalc.training.audit.case import audited, audited_among_others, paths_of_custom
    from dpcalc.training.audit.estimate import Setup, check_setup
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

    def asker(answer: Callable[..., Case]) -> Callable[..., Case]:
        def asked(
            _: str, run: Mapping[str, Any], question: Question, *, notes: bool, brief: bool, gates: Sequence[Gate]
        ) -> Case:
            return answer(
                run, question, attack, setup, custom=custom, as_released=as_released, gates=gates, brief=brief,
                there=there,
            )  # fmt: skip

        return asked

    with with_one_blas_thread():
        return _answered("audit", _read("compare", **given), asker(audited), asker(audited_among_others))


def predict(
    model: str | os.PathLike[str], data: Any, *, output: str | os.PathLike[str] | None = None
) -> dict[str, Any]:
    """Return what a model says of rows: arrays by name, in the order of the rows.

    Args:
        model: path of a file that `train` wrote.
        data: a path (CSV, NPY, NPZ, Parquet) with the model's columns among others, ``"example:breast-cancer"``, or an
            array of rows in the order of the model's columns.
        output: path of a CSV that is written as well.

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
    predicting = predictor(load(os.fspath(model)))
    if output is not None:
        with in_pieces(os.fspath(output), "output") as write:
            write_csv(predicting, source, write)
    no_rows = np.empty((0, len(predicting.model.columns)))
    found = list(predicted(predicting, source)) or [predicting.read(predicting.model.scores(no_rows))]
    return {name: np.concatenate([each[name] for each in found]) for name in predicting.names}


def evaluate(
    model: str | os.PathLike[str],
    data: Any,
    *,
    private: bool = False,
    epsilon: float | None = None,
    error_bound: float | None = None,
    ledger: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    """Return how good a model is on test rows, as the JSON of `dpcalc evaluate`.

    Args:
        model: path of a file that `train` wrote.
        data: as in `predict`, with the target; or a pair of arrays (rows, target).
        private: whether the metrics are a release with noise, and have a guarantee for the test rows (delta is 0).
        epsilon: of that release.
        error_bound: errors of a regression are cut to it; by default the width of the target's range.
        ledger: path of the ledger that the release is charged to.

    Returns:
        ``metrics`` by name, and ``private``: without noise they are private only if the test rows are public.

    Raises:
        SpecError: a file cannot be read, a column is missing, or epsilon is given without ``private`` or not with it.
    """
    from dpcalc.recipes.evaluation import evaluate

    if private != (epsilon is not None) or (not private and (error_bound is not None or ledger is not None)):
        raise SpecError("a private evaluation has an epsilon of its own", "give private=True and epsilon, or neither")
    source = os.fspath(data) if isinstance(data, os.PathLike) else data
    return evaluate(
        os.fspath(model), source, epsilon=epsilon, error_bound=error_bound,
        ledger=None if ledger is None else os.fspath(ledger),
    )  # fmt: skip


def ledger(
    entries: Mapping[str, Any] | Sequence[Any] = (),
    *,
    file: str | os.PathLike[str] | None = None,
    epsilon: Any = None,
    delta: Any = None,
    adjacency: Any = None,
    group_size: Any = None,
    partition: str | None = None,
    solve: str | None = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what several runs, releases and queries about the same records cost together.

    Args:
        entries: name -> entry, or a list of entries. An entry is a dict: a run (``algorithm`` and what describes it),
            ``mu``, ``noise_multiplier``, ``noise_std`` or ``laplace_scale`` with ``sensitivity``, or ``epsilon`` and
            ``delta``; with ``times``, ``part``, ``tuning`` and ``adjacency``, as docs/ledger.md says. A text such as
            ``"epsilon=0.1 times=100"`` is one as well.
        file: path of a ledger; the entries are added to those in it.
        epsilon: budget of all entries together; without delta, delta at it is sought. A list is a sweep.
        delta: of all entries together.
        adjacency: what neighbouring data sets differ in; by default what the file says, else what all entries say, else
            replace-one.
        group_size: so many records of one person differ.
        partition: ``"kept"``: a record that is replaced stays in its part.
        solve: noise_std, noise_multiplier or laplace_scale of the last entry is solved for; needs the budget.
        gates: assertions on the total such as "epsilon<=3".

    Returns:
        A report as in `rdp`; ``ledger`` of a case has the ``entries``, and what is ``remaining`` of the budget.

    Raises:
        SpecError: an entry or the budget is malformed, or adjacencies are mixed in a way that nothing covers.
        NotApplicable: nothing is known of an entry.
        Infeasible: no noise of the last entry meets the budget.

    >>> round(ledger([{"epsilon": 0.1, "times": 100}], delta=1e-6).cases[0].best.value, 4)
    4.7746
    >>> round(ledger({"census": {"mu": 0.2}, "model": {"mu": 1}}, delta=1e-5).cases[0].best.mu, 6)
    1.019804
    """
    from dpcalc.engine.ledger import answer_ledger
    from dpcalc.recipes.ledger import ledger_of, with_asked

    path = None if file is None else os.fspath(file)
    read = ledger_of(entries, path, partition)
    asked = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency, "group_size": group_size}
    sweeps = {name: _several(name, value) for name, value in asked.items() if value is not None}
    wanted = [_gate(text) for text in _several("gates", gates)]
    cases = []
    for chosen in _product(sweeps):
        written: dict[str, Any] = {
            name: value if isinstance(value, str) else repr(value) for name, value in chosen.items()
        }
        cases.append(
            answer_ledger(*with_asked(read[0], read[1], **written, solve=solve, source=Source.ARGUMENT), wanted)
        )
    return report("ledger", cases)


def convert(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    order: Any = (),
    to: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return a guarantee in the words of another notion of privacy, rounded up.

    One of ``mu``, ``rho``, ``pure`` and ``rdp`` is known; without them, ``epsilon`` and ``delta`` are. What does not
    follow is refused: (epsilon, delta) implies no mu. With ``to="mu"`` it is answered by the most mu that implies it,
    ``sufficient_mu``, rounded down.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: delta at it is sought; or known.
        delta: epsilon at it is sought; or known.
        order: order or orders at which the Renyi divergence is sought.
        to: what is sought: epsilon, delta, mu, rho, rdp or pure; by default what epsilon, delta or order ask for.
        gates: assertions such as "epsilon<=1".

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError: what is known or asked is malformed.
        NotApplicable: what is sought does not follow.
        Infeasible: nothing is enough for the budget.

    >>> round(convert(mu=1, delta=1e-5).cases[0].best.value, 6)
    4.377178
    >>> best = convert(epsilon=1, delta=1e-5, to="mu").cases[0].best
    >>> best.quantity, round(best.value, 6)
    ('sufficient_mu', 0.268051)
    """
    from dpcalc.engine.convert import convert as converted
    from dpcalc.engine.convert import convert_among_others

    known = _known(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta, to=to)
    orders = tuple(float(check_value("order", one)) for one in _several("order", order))
    asked = _Asked(known, orders, None, [_gate(text) for text in _several("gates", gates)])
    return _answered("convert", asked, converted, convert_among_others)


def risk(
    *,
    mu: Any = None,
    rho: Any = None,
    pure: Any = None,
    rdp: Any = None,
    epsilon: Any = None,
    delta: Any = None,
    fpr: Any = None,
    prior: Any = None,
    baseline: Any = None,
    gates: Sequence[str] = (),
) -> Report:
    """Return what an attacker can do against a guarantee, rounded up; of a run, ask any query with ``risk=True``.

    Args:
        mu: of Gaussian privacy; a list is a sweep, as everywhere.
        rho: of zero-concentrated privacy.
        pure: epsilon of pure privacy.
        rdp: bounds on the Renyi divergence, order -> epsilon; or a text such as ``"order=8 epsilon=1"``.
        epsilon: with delta, one point that is known; without, pure privacy.
        delta: with epsilon, one point that is known.
        fpr: rates of false positives, in (0, 1), at which the rates of true ones are told.
        prior: prior probabilities, in (0, 1), for how often a guess whether the record was there is right.
        baseline: probabilities, in (0, 1), to guess a secret of the record right without the release.
        gates: assertions such as "advantage<=0.1" or "tpr@1%<=0.05".

    Returns:
        A report; each case has ``risk``, a mapping of ``advantage``, ``tpr``, ``success``, ``reconstruction``, ``mu``.

    Raises:
        SpecError: what is known or asked is malformed.

    >>> told = risk(mu=1, fpr=0.01).cases[0].risk
    >>> round(told["advantage"]["value"], 6), round(told["tpr"][0]["value"], 6)
    (0.382925, 0.092362)
    """
    from dpcalc.engine.attack_risk import risk_of_known

    known = _known(rdp, mu=mu, rho=rho, pure=pure, epsilon=epsilon, delta=delta)
    rates = {"fpr": fpr, "prior": prior, "baseline": baseline}
    risks = _risks(True, {name: _several(name, value) for name, value in rates.items() if value is not None})
    asked = _Asked(known, (), None, [_gate(text) for text in _several("gates", gates)], False, risks)
    return _answered("risk", asked, risk_of_known, risk_of_known)


@_mirrors("compare")
def statement(**given: Unpack[keywords.Compare]) -> str:
    """Return the paragraph for a paper's appendix or a model card about the described run, one for each case.

    Returns:
        Plain text: what is run, what holds of it, and every assumption.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    return format_report(_report("compare", **given), "statement")


@_mirrors("compare")
def explain(*ids: str, **given: Unpack[keywords.Compare]) -> str:
    """Return what the bounds ``ids`` say, of the run if one is described; without ids, what the best one for it says.

    Returns:
        Plain text: statement, assumptions, formula, source and errata; with a run its numbers as well.

    Raises:
        SpecError: an id is unknown, or neither a bound nor a run is given.
        NotApplicable, Infeasible: as in `rdp`.

    >>> print(explain("iteration.pnsgd").partition(":")[0])
    iteration.pnsgd
    """
    from dpcalc.render.explain import describe, explain_bounds

    bounds = [lookup(id) for id in ids]
    if not given:
        if not bounds:
            raise SpecError("nothing to explain: neither a bound nor a run is given", "`list_bounds()` has the bounds")
        return "\n\n".join(describe(bound) for bound in bounds) + "\n"
    if not bounds:
        return format_report(_report("compare", **given), "explain")
    named = {"algorithm": bounds[0].algorithms[0].removesuffix("-released"), **given}
    return explain_bounds(_report("compare", **named), ids)


@_mirrors("compare")
def cite(*ids: str, **given: Unpack[keywords.Compare]) -> str:
    """Return the BibTeX of what the bounds ``ids`` rest on; without ids of the best for the described run, or of all.

    Returns:
        BibTeX entries, each once.

    Raises:
        SpecError: an id is unknown.
        NotApplicable, Infeasible: as in `rdp`.
    """
    from dpcalc.render.explain import cited

    if given and not ids:
        return format_report(_report("compare", **given), "bibtex")
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
        raise SpecError("what is run is not known", "give algorithm")
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
    from dpcalc.recipes.policy_file import policy_schema
    from dpcalc.recipes.schema import recipe_schema
    from dpcalc.references import read

    if name == "recipe":  # what is shipped is a frame, which the records of the parameters fill
        return recipe_schema()
    if name == "policy":
        return policy_schema()
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

    >>> card(rdp(records=100, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1, delta=1e-5))["schema"]
    'dpcalc.card/1'
    """
    from dpcalc.cards.card import card_of, model_of

    if model is None:
        return card_of(report)
    training = report.cases[0].training if len(report.cases) == 1 else None
    if not training:
        raise SpecError("the report is of no model", "leave out model")
    from dpcalc.cards.models import refuse_another

    made = card_of(report, model=model_of(os.fspath(model), report.cases[0]))
    refuse_another(os.fspath(model), made)
    return made


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

    >>> stated = card(convert(mu=1, delta=1e-5))
    >>> verify(stated).passed
    True
    >>> stated["cases"][0]["guarantee"]["numbers"][0]["value"] -= 0.1
    >>> verify(stated).mismatches[0].place
    '/cases/0/guarantee/numbers/0/value'
    """
    from dpcalc.cards.read import card_of_mapping, read_card
    from dpcalc.cards.verify import verify as verified

    document = card_of_mapping(card) if isinstance(card, Mapping) else read_card(os.fspath(card))
    paths = [None if path is None else os.fspath(path) for path in (model, schedule)]
    return verified(document, model=paths[0], schedule=paths[1], certify=certify)


class _Asked(NamedTuple):
    """Every combination of the values given, and what is asked of each."""

    runs: list[dict[str, Any]]
    orders: tuple[float, ...]
    solve: str | None
    gates: list[Gate]
    certify: bool = False
    risks: RiskQuestion | None = None
    listed: Mapping[str, Sequence[float]] = {}


def _report(command: str, /, **given: Any) -> Report:
    return _answered(command, _read(command, **given), ask, side_by_side)


def _read(command: str, /, **given: Any) -> _Asked:
    """Return what the keywords ask.

    Raises:
        SpecError: a gate does not parse, a list is empty, certify is no bool, or a keyword is unknown, be it None.
    """
    record = COMMANDS[command]
    given = renamed(given)
    for name in given:
        if name not in (*record.parameters, "schedule", *QUESTION):
            raise _unknown(command, name)
    values = {name: value for name, value in given.items() if value is not None}
    orders = tuple(float(check_value("order", order)) for order in _several("order", values.pop("order", ())))
    gates = [_gate(text) for text in _several("gates", values.pop("gates", ()))]
    solve = values.pop("solve", None)
    certify = False if record.trains else values.pop("certify", False)
    listed = {name: _several(name, values.pop(name)) for name in RATES if name in values}
    risks = _risks(values.pop("risk", False), listed)
    if not isinstance(certify, bool):
        raise SpecError(f"certify is {certify!r}; it must be True or False")
    if record.compares and values.get("algorithm") == "all":
        values["algorithm"] = record.algorithms
    if "schedule" in values:
        values["schedule"] = os.fspath(values["schedule"])
    runs = _product({name: _several(name, value) for name, value in values.items()})
    return _Asked(runs, orders, solve, gates, certify, risks, listed)


def _risks(asked: Any, listed: Mapping[str, Sequence[float]]) -> RiskQuestion | None:
    """Return what is asked about attacks; None where nothing is.

    Raises:
        SpecError: risk is no bool, or a rate or probability is outside (0, 1).
    """
    if not isinstance(asked, bool):
        raise SpecError(f"risk is {asked!r}; it must be True or False")
    if not asked and not listed:
        return None
    from dpcalc.engine.attack_risk import risk_question

    return risk_question(**listed)


def sweep(
    runs: Iterable[Mapping[str, Any]],
    *,
    command: str = "compare",
    executor: Executor | None = None,
    in_flight: int = 32,
    patience: float = 600.0,
) -> Report:
    """Return the answers to many queries of a command, a case for each; one that nothing covers says why.

    Args:
        runs: the keywords of each query, as `compare` and the others take them, each with one value.
        command: such as ``compare`` or ``multi-epoch``.
        executor: what computes in place of this process: any `concurrent.futures.Executor`, of threads, of processes or
            of other machines that have this version of dpcalc. It is sent JSON and the name of a function, and every
            answer is checked. The cases then have no ``curves``, and make no `card`.
        in_flight: chunks of queries that the executor has at once.
        patience: seconds without any answer after which the executor counts as lost.

    Returns:
        A report as in `rdp`, its cases in the order of the runs.

    Raises:
        SpecError: a run is malformed, names a file, or has several values of a keyword.
        WorkerLost: a worker of the executor died, did not answer in time, or answered something else.

    >>> run = {"records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "delta": 1e-5, "index": 1}
    >>> found = sweep([{**run, "noise_std": noise} for noise in (1, 2)], command="rdp")
    >>> [round(case.best.value, 6) for case in found.cases]
    [0.725522, 0.340669]
    """
    if command not in COMMANDS or COMMANDS[command].trains:
        raise SpecError(f"{command!r} answers no queries", "for example command='compare'")
    if executor is None:
        return Report(command, tuple(_query(command, run) for run in runs))
    from dpcalc.recipes.queries import spread_queries

    checked = (_one_run(command, run)[1] for run in runs)
    ahead = max(1, in_flight)
    found = spread_queries(command, checked, executor, run_queries, in_flight=ahead, patience=patience)
    return Report(command, tuple(found))


def run_queries(document: str) -> str:
    """Return the answers to queries that `sweep` sends to an executor, as text: nobody else has to call it."""
    from dpcalc.recipes.queries import answered
    from dpcalc.render.machine import case_line

    return answered(document, lambda command, run: case_line(command, _query(command, run)))


def _one_run(command: str, run: Mapping[str, Any]) -> tuple[_Asked, dict[str, Any]]:
    """Return what a run of a sweep asks, and its keywords as they travel.

    Raises:
        SpecError: it is malformed, has several values of a keyword, or names a file.
    """
    asked = _read(command, **run)
    if len(asked.runs) != 1:
        raise SpecError("a keyword of a run has several values", "give each run one, as another item of runs")
    if "schedule" in asked.runs[0]:
        raise SpecError("a run of a sweep names no schedule", f"ask it alone, as dpcalc.{command.replace('-', '_')}")
    travelling = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in run.items()}
    return asked, {name: list(value) if isinstance(value, tuple) else value for name, value in travelling.items()}


def _query(command: str, run: Mapping[str, Any]) -> Case:
    """Return the case of one run of a sweep."""
    asked, _ = _one_run(command, run)
    given = dict(asked.runs[0])
    question = _question(given.pop("epsilon", None), given.pop("delta", None), asked.orders, asked.solve)
    question = aimed(question._replace(risks=asked.risks), given, asked.listed)
    options: dict[str, Any] = {"notes": False, "brief": True, **({"certified": True} if asked.certify else {})}
    case = side_by_side(command, given, question, gates=asked.gates, **options)
    return report(command, [case]).cases[0]


def _known(rdp: Any, **sweeps: Any) -> list[dict[str, Any]]:
    """Return every combination of what is known of a mechanism and asked about it.

    Raises:
        SpecError: a list is empty, or the bounds on the Renyi divergence are malformed.
    """
    from dpcalc.engine.convert import points_of

    given = {name: _several(name, value) for name, value in sweeps.items() if value is not None}
    return _product({**given, **({"rdp": [points_of(rdp)]} if rdp is not None else {})})


def _product(sweeps: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """Return every combination of values.

    Raises:
        SpecError: a list is empty.
    """
    empty = [name for name, several in sweeps.items() if not several]
    if empty:
        raise SpecError(f"{empty[0]} has no value", "give one, or leave it out")
    return [dict(zip(sweeps, chosen, strict=True)) for chosen in itertools.product(*sweeps.values())]


def _unknown(command: str, name: str) -> SpecError:
    """Return the error about a keyword that a function does not take."""
    from dpcalc.files.place import near

    taken = (*COMMANDS[command].parameters, *QUESTION)
    meant = meant_by(name, taken)
    hint = f"did you mean {meant}?{conversion(meant)}" if meant else near(name, taken)
    return SpecError(f"{command} does not take {name}", not_covered(name) or hint)


def _gate(text: Any) -> Gate:
    if not isinstance(text, str):
        raise SpecError(f"{text!r} is not an assertion", "write it as text, for example 'epsilon<=1'")
    return parse(text)


def _answered(command: str, asked: _Asked, alone: Callable[..., Case], among_others: Callable[..., Case]) -> Report:
    """Return the report on every combination; ``alone`` raises where nothing holds, ``among_others`` says why."""
    single = len(asked.runs) == 1
    options = {"notes": len(asked.runs) <= FEW, "brief": not single, **({"certified": True} if asked.certify else {})}

    def answer(by: Callable[..., Case], /, **run: Any) -> Case:
        question = _question(run.pop("epsilon", None), run.pop("delta", None), asked.orders, asked.solve)
        question = aimed(question._replace(risks=asked.risks), run, asked.listed)
        return by(command, run, question, gates=asked.gates, **options)

    cases = [answer(alone if single else among_others, **run) for run in asked.runs]
    if not any(case.best for case in cases):
        answer(alone, **asked.runs[0])  # nothing holds anywhere: say why as for a single case
    return report(command, cases)


def _several(name: str, value: Any) -> list[Any]:
    """Return the values of a parameter, one or several, as Python's own numbers (those of numpy become so)."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        raise SpecError(f"{name} is {value!r}; it must be a value or a list of values")
    return list(value) if isinstance(value, Iterable) and not isinstance(value, (str, bytes)) else [value]


def _question(
    epsilon: float | None, delta: float | str | None, orders: tuple[float, ...] = (), solve: str | None = None
) -> Question:
    value, log_delta = _delta(delta)
    epsilon = None if epsilon is None else float(check_value("epsilon", epsilon))
    return Question(epsilon, value, log_delta, orders, solve)


def _delta(delta: float | str | None) -> tuple[float | None, float | None]:
    if delta is None:
        return None, None
    if isinstance(delta, str):
        from dpcalc.model.numbers import parse_delta

        return parse_delta(delta)
    value = float(check_value("delta", delta))
    return value, math.log(value)


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
    from dpcalc.recipes.evaluate import limits_of
    from dpcalc.recipes.matrix import MAX_CASES
    from dpcalc.recipes.policy_file import policy_of
    from dpcalc.recipes.run import checked, read_all, refuse_all_skipped, select, summed_up
    from dpcalc.recipes.shards import of_share, parse_share, taken

    limits = limits_of(timeout, memory_limit)
    demanded = policy_of(None if policy is None else os.fspath(policy), strict=strict)
    recipes = read_all(_paths(paths), MAX_CASES if max_cases is None else max_cases, demanded)
    large = sum(len(recipe.entries) for recipe in recipes) > MAX_CASES
    if large or executor is not None or checkpoint is not None:
        from dpcalc.recipes.chunks import Options
        from dpcalc.recipes.stream import Asked, places_of, streamed

        most = MAX_CASES if max_cases is None else max_cases
        asked = Asked(recipes, _paths(paths), most, places_of(recipes, run), Options(certify, demanded.source), limits)
        asked = asked if shard is None else asked.of_share(parse_share(shard))
        kept = None if checkpoint is None else os.fspath(checkpoint)
        return streamed(asked, jobs=jobs, executor=executor, fail_fast=fail_fast, checkpoint=kept)
    every = select(recipes, run)
    refuse_all_skipped(every)
    share = None if shard is None else parse_share(shard)
    places, here, elsewhere = taken(every, share)
    judged = list(checked(here, jobs=jobs, fail_fast=fail_fast, limits=limits, certify=certify))
    result = summed_up(recipes, judged, elsewhere=elsewhere)
    if share is None:
        return result
    return of_share(result, recipes, every, places[: len(judged)], share, certify=certify, policy=demanded.source)


def merge(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Report:
    """Return the verdict on a recipe from the reports of its shards, as one check of all cases has it.

    Args:
        paths: of the JSON reports of every shard: `check` with ``shard``, or ``dpcalc check --shard``.

    Raises:
        SpecError: a file is no report of a shard by this version, or a shard is missing, doubled, or of another recipe
            or other options.
    """
    from dpcalc.recipes.saved import read_report
    from dpcalc.recipes.shards import merged

    return merged([(path, read_report(path)) for path in _paths(paths)])


def _paths(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    several = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fsdecode(path) for path in several]
