"""The questions: each function mirrors a command, takes its parameters as keywords and returns its report."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dpcalc.api.asked import QUESTION, Asked, answered, read
from dpcalc.engine.ask import ask, side_by_side
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import SpecError
from dpcalc.model.parameter import PARAMETERS, Parameter
from dpcalc.model.quantities import Given
from dpcalc.report import Case, Report

if TYPE_CHECKING:
    from concurrent.futures import Executor

Function = TypeVar("Function", bound=Callable[..., Any])

_OF_TRAINING = ("epsilon", "delta", "gates")
_SCHEDULE = "path of per-step values (CSV, NPY, NPZ, YAML)"
_DEFAULTS: dict[str, Any] = {"order": (), "gates": (), "certify": False, "risk": False}
_TYPES = {
    "delta": "float | str | Iterable[float | str] | None",
    "order": "float | Iterable[float]",
    "solve": "str | None",
    "gates": "str | Sequence[str]",
    "certify": "bool",
    "risk": "bool",
    "fpr": "float | Iterable[float]",
    "prior": "float | Iterable[float]",
    "baseline": "float | Iterable[float]",
    "schedule": "str | os.PathLike[str] | None",
}
"""The types of the keywords that are not one number or several."""


def mirrors(command: str) -> Callable[[Function], Function]:
    """Return the decorator that shows the command's parameters as those of the function, with types and help."""
    record = COMMANDS[command]
    help = {name: _help(PARAMETERS[name]) for name in record.parameters}
    defaults = dict(_DEFAULTS)
    if "algorithm" in help:
        help["algorithm"] = f"{PARAMETERS['algorithm'].help}; one of {', '.join(record.algorithms)}"
        if not (record.compares or record.prices):
            defaults["algorithm"] = record.default
    asked = {name: QUESTION[name] for name in _OF_TRAINING} if record.trains else QUESTION
    help |= ({"schedule": _SCHEDULE} if record.columns else {}) | asked

    def decorate(function: Function) -> Function:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        named = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name), annotation=_type(name))
            for name in help
        ]
        function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [*own, *named], return_annotation=function.__annotations__["return"]
        )
        doc = function.__doc__ or ""
        lines = "".join(f"        {name}: {text}.\n" for name, text in help.items())
        head = "" if "    Args:\n" in doc else "\n    Args:\n"
        function.__doc__ = doc.replace("\n    Returns:\n", f"{head}{lines}\n    Returns:\n", 1)
        return function

    return decorate


def _type(name: str) -> str:
    """Return the type of a keyword; a parameter may have one value or several."""
    parameter = PARAMETERS.get(name)
    if name in _TYPES or parameter is None:
        return _TYPES.get(name, "Real")
    return "Word" if parameter.choices else "Whole" if parameter.integer else "Real"


def _help(parameter: Parameter) -> str:
    unit = f" ({parameter.unit})" if parameter.unit else ""
    return f"{parameter.help}; {parameter.domain}{unit}"


@mirrors("compare")
def compare(**given: Any) -> Report:
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
    return report_on("compare", **given)


@mirrors("rdp")
def rdp(**given: Any) -> Report:
    """Return what is true of one fixed-order pass of noisy SGD whose iterates stay hidden.

    Of ``epsilon``, ``delta`` and ``noise_std``, what is left out is solved for. A parameter may be a list: there is one
    case for each value, and for every combination of several lists.

    The words of other programs that mean exactly the same are taken here and everywhere: ``lr`` for ``step_size``,
    ``sigma`` for ``noise_std``, ``target_delta`` for ``delta``.

    Returns:
        A report; ``report.epsilon``, ``report.noise_std`` and so on are the numbers to quote, ``print(report)`` shows
        the answer, ``report.rows()`` is a flat table of all bounds. Of a list, iterate over the cases.

    Raises:
        SpecError: malformed or incomplete parameters; ``certify`` without python-flint.
        NotApplicable: no theorem covers the run; of several cases one such has no results and says why.
        Infeasible: no value of the unknown meets the budget.
        Disproved: with ``certify``, a guarantee is below the truth; its ``report`` has all that is known of it.

    >>> round(rdp(records=100, index=1, lipschitz=1, smoothness=1, step_size=0.5, noise_std=1,
    ...           delta=1e-5).value, 12)
    0.725521750858
    """
    return report_on("rdp", **given)


@mirrors("shifted")
def shifted(**given: Any) -> Report:
    """Return what the general shifted-divergence theorem proves of a chain of noisy Lipschitz steps.

    What a ``schedule`` lacks is taken from the other arguments; the parameter-space noise of a step has scale
    ``step_size`` times ``noise_std`` or ``laplace_scale``.

    Returns:
        A report as in `rdp`; the best result's ``details["allocation"]`` is where the shifts are spent.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.
    """
    return report_on("shifted", **given)


@mirrors("unlearn")
def unlearn(**given: Any) -> Report:
    """Return how well noisy steps on the records kept make a model forget the others.

    ``start`` says what is known of the model: a ``start_distance`` to one that never saw the records, that it is a
    ``"minimiser"``, or the last iterate of a noisy ``"run"``. ``solve="clean_steps"`` gives the least number of steps.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> unlearn(start_distance=0.02, contraction=0.99, step_size=0.1, noise_std=0.5, epsilon=0.1, delta=1e-5,
    ...         solve="clean_steps").value
    70
    """
    return report_on("unlearn", **given)


@mirrors("hockey-stick")
def hockey_stick(**given: Any) -> Report:
    """Return one record's delta(epsilon) along a fixed-order pass, by contraction, shift and mixture bounds.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(hockey_stick(records=100, index=50, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2,
    ...                    epsilon=1).cases[0].best.log_delta, 9)
    -31.874272984
    """
    return report_on("hockey-stick", **given)


@mirrors("shuffle")
def shuffle(**given: Any) -> Report:
    """Return what is true of one pass in a random order.

    The column ``probability`` of a ``schedule`` is the law of the record's position.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(shuffle(records=10**5, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6
    ...               ).value, 7)
    1.3153396
    """
    return report_on("shuffle", **given)


@mirrors("online")
def online(**given: Any) -> Report:
    """Return what is true of a growing stream whose noise decays from record to record.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(online(records=100, lipschitz=10, smoothness=1, step_size=0.01, diameter=1, c1=100, c2=100,
    ...              decay_exponent=1.5, epsilon=1).value, 8)
    0.04950353
    """
    return report_on("online", **given)


@mirrors("multi-epoch")
def multi_epoch(**given: Any) -> Report:
    """Return what is true of many passes over the records.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(multi_epoch(records=60000, epochs=20, batch_size=250, lipschitz=1, smoothness=1, step_size=0.1,
    ...                   noise_std=0.05, delta=1e-6).value, 9)
    0.68377813
    """
    return report_on("multi-epoch", **given)


@mirrors("dp-sgd")
def dp_sgd(**given: Any) -> Report:
    """Return what is true of DP-SGD, as Opacus and others run it: clipped gradients, noise on the sum of a batch.

    ``sampling`` says how batches are drawn, and must be given: the answer depends on it. ``adjacency`` is replace-one
    unless it is given; accountants of other libraries assume ``add-remove``. `epsilon` and `noise_multiplier` answer by
    one float. Two more algorithms need no clipping and release the average iterate: ``dp-sgd-gradient`` with noise in
    every step, ``dp-sgd-output`` with noise on the average alone.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = dp_sgd(records=50000, batch_size=500, epochs=20, noise_multiplier=1.1, sampling="shuffle",
    ...                 adjacency="zero-out", delta=1e-5)
    >>> round(report.epsilon, 4)
    24.9225
    """
    return report_on("dp-sgd", **given)


@mirrors("dp-ftrl")
def dp_ftrl(**given: Any) -> Report:
    """Return what is true of SGD on clipped gradients whose noise a matrix correlates.

    Returns:
        A report as in `rdp`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> report = dp_ftrl(mechanism="sqrt", steps=1000, epochs=5, noise_multiplier=5, adjacency="zero-out", delta=1e-6)
    >>> round(report.cases[0].best.value, 9)
    5.096496116
    """
    return report_on("dp-ftrl", **given)


@mirrors("utility")
def utility(**given: Any) -> Report:
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
    return report_on("utility", **given)


def epsilon(
    *,
    noise_multiplier: float,
    delta: float | str,
    sampling: str,
    adjacency: str,
    sample_rate: float | None = None,
    records: int | None = None,
    batch_size: int | None = None,
    steps: int | None = None,
    epochs: int | None = None,
) -> float:
    """Return epsilon of a run of DP-SGD of which every iterate may be seen: one float, rounded up.

    What privacy depends on has no default. `dp_sgd` answers the same with bounds, assumptions and what would better it.

    Args:
        noise_multiplier: standard deviation of the noise on the sum of a batch, over the clipping norm.
        delta: in (0, 1).
        sampling: how batches are really drawn: ``poisson``, ``shuffle``, ``fixed``, ``balls-in-bins``, ... (`dp_sgd`).
        adjacency: ``add-remove``, ``zero-out`` or ``replace-one``.
        sample_rate: probability of a record to be in a batch; of Opacus' loader, 1/len(loader).
        records, batch_size: in place of the rate.
        steps: number of batches, of all epochs.
        epochs: in place of the steps.

    Raises:
        SpecError, NotApplicable: as in `rdp`.

    >>> round(epsilon(noise_multiplier=1.1, delta=1e-5, sampling="poisson", adjacency="add-remove",
    ...               sample_rate=0.01, steps=2000), 5)
    2.15973
    """
    run = {"sample_rate": sample_rate, "records": records, "batch_size": batch_size, "steps": steps, "epochs": epochs}
    asked = {"noise_multiplier": noise_multiplier, "delta": delta}
    return _on_dp_sgd(sampling=sampling, adjacency=adjacency, **asked, **run).epsilon


def noise_multiplier(
    *,
    epsilon: float,
    delta: float | str,
    sampling: str,
    adjacency: str,
    sample_rate: float | None = None,
    records: int | None = None,
    batch_size: int | None = None,
    steps: int | None = None,
    epochs: int | None = None,
) -> float:
    """Return the noise multiplier that keeps a run of DP-SGD within a budget: one float, rounded up.

    Args:
        epsilon, delta: the budget.
        sampling, adjacency, sample_rate, records, batch_size, steps, epochs: as in `epsilon`.

    Raises:
        SpecError, NotApplicable, Infeasible: as in `rdp`.

    >>> round(noise_multiplier(epsilon=2.16, delta=1e-5, sampling="poisson", adjacency="add-remove",
    ...                        sample_rate=0.01, steps=2000), 4)
    1.0999
    """
    run = {"sample_rate": sample_rate, "records": records, "batch_size": batch_size, "steps": steps, "epochs": epochs}
    asked = {"epsilon": epsilon, "delta": delta, "solve": "noise_multiplier"}
    return _on_dp_sgd(sampling=sampling, adjacency=adjacency, **asked, **run).noise_multiplier


def _on_dp_sgd(**given: Any) -> Report:
    """Return the report on a run of DP-SGD; None must leave nothing to a default that privacy depends on."""
    for name in ("sampling", "adjacency"):
        if given[name] is None:
            raise SpecError(f"{name} is None, and privacy depends on it", f"one of {PARAMETERS[name].domain}")
    if given["sample_rate"] is None and None in (given["records"], given["batch_size"]) and given["sampling"] != "full":
        raise SpecError("the size of batches is missing", "give sample_rate, or records and batch_size")
    return report_on("dp-sgd", **given)


def report_on(command: str, /, **given: Any) -> Report:
    """Return the report of a command on the keywords given."""
    return answered(command, read(command, **given), ask, side_by_side)


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
    from dpcalc.recipes.running.shards import spread_queries

    checked = (_one_run(command, run)[1] for run in runs)
    ahead = max(1, in_flight)
    cases = spread_queries(command, checked, executor, run_queries, in_flight=ahead, patience=patience)
    return Report(command, tuple(cases))


def run_queries(document: str) -> str:
    """Return the answers to queries that `sweep` sends to an executor, as text: nobody else has to call it."""
    from dpcalc.recipes.running.shards import answered
    from dpcalc.render.machine import case_line

    return answered(document, lambda command, run: case_line(command, _query(command, run)))


def _one_run(command: str, run: Given) -> tuple[Asked, dict[str, Any]]:
    """Return what a run of a sweep asks, and its keywords as they travel.

    Raises:
        SpecError: it is malformed, has several values of a keyword, or names a file.
    """
    asked = read(command, **run)
    if len(asked.runs) != 1:
        raise SpecError("a keyword of a run has several values", "give each run one, as another item of runs")
    if asked.runs[0].get("schedule") is not None:
        raise SpecError("a run of a sweep names no schedule", f"ask it alone, as dpcalc.{command.replace('-', '_')}")
    travelling = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in run.items()}
    return asked, {name: list(value) if isinstance(value, tuple) else value for name, value in travelling.items()}


def _query(command: str, run: Given) -> Case:
    """Return the case of one run of a sweep."""
    asked, _ = _one_run(command, run)
    return asked.answer(command, asked.runs[0], side_by_side, notes=False, brief=True)
