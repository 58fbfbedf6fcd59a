"""Budget in, model out: a run is described, accounted, executed and measured, in this order.

What is executed is derived from what was accounted and from nothing else (`dpcalc.training.plan`). No choice is made by
looking at the records: steps and step sizes that are not given follow from the constants of the loss, the budget and
the size of the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcalc import losses
from dpcalc.commands import COMMANDS, ask, run_of, taken_by
from dpcalc.errors import DpcalcError, Infeasible, MissingParameter, NotApplicable, NotConverged, SpecError
from dpcalc.gate import Gate
from dpcalc.query import Question, answer
from dpcalc.registry import for_algorithm
from dpcalc.report import Case, Result

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpcalc.training.data import Prepared, Ranges
    from dpcalc.training.metrics import Optimum
    from dpcalc.training.model import Model
    from dpcalc.training.plan import Plan
    from dpcalc.training.problem import Problem

    Array = NDArray[np.float64]

Progress = Callable[[int, int], None]

MAX_STEPS = 1000
"""Full-batch steps that are chosen at most."""

UNCOVERED = "computed from the records without noise: not covered by the guarantee"
EXPERIMENT = "an experiment: many models from the same records, which is not what was accounted; none is released"


class Setup(NamedTuple):
    """What is trained on, and how; everything that no bound asks for.

    Attributes:
        data: path of a file, ``example:NAME``, or a pair (features, target) of arrays.
        synthetic: ``logistic`` or ``linear``, in place of data.
        target, positive, ignore, ranges: see `dpcalc.training.data`.
        intercept: whether the model has one.
        test_fraction: share of the records set aside at random for testing.
        seed: of noise, order and split; the run is then not private. None: the operating system's.
        noise_source: ``os`` or ``secure``.
        replicas: how many independent runs; 1 trains a model.
        workers: of the replicas; None: as many as there are processors.
        output: where the model is written, or None.
    """

    data: Any = None
    synthetic: str | None = None
    target: str | None = None
    positive: str | None = None
    ignore: tuple[str, ...] = ()
    ranges: str | None = None
    intercept: bool = False
    test_fraction: float = 0.0
    seed: int | None = None
    noise_source: str = "os"
    replicas: int = 1
    workers: int | None = None
    output: str | None = None


class _Records(NamedTuple):
    train: Prepared
    test: Prepared | None
    names: tuple[str, ...]
    ranges: Ranges | None


class Fitted(NamedTuple):
    """A case with what was measured, and the model if one was trained."""

    case: Case
    model: Model | None


def check_setup(setup: Setup, cases: int = 1) -> None:
    """Refuse what contradicts itself, before anything is read.

    Raises:
        SpecError: no data or two sources of it, or a model to be written where none is released.
    """
    if (setup.data is None) == (setup.synthetic is None):
        raise SpecError("what to train on is not known", "give either --data FILE or --synthetic logistic|linear")
    if not 0.0 <= setup.test_fraction < 1.0:
        raise SpecError(f"the test fraction is {setup.test_fraction:g}; it must be a number >= 0 and < 1", "try 0.2")
    if setup.replicas < 1:
        raise SpecError(f"replicas is {setup.replicas}; it must be a whole number from 1", "1 trains a model")
    if setup.workers is not None and setup.workers < 1:
        raise SpecError(f"workers is {setup.workers}; it must be a whole number from 1", "leave it out for all")
    if setup.seed is not None and not 0 <= setup.seed < 1 << 64:
        raise SpecError(f"seed is {setup.seed}; it must be a whole number from 0 to 2^64 - 1", "leave it out")
    if setup.seed is not None and setup.noise_source == "secure":
        raise SpecError("a seed and the secure source contradict each other", "leave out --seed")
    if setup.replicas > 1 and setup.noise_source == "secure":
        raise SpecError("replicas are drawn from a seed, and the secure source has none", "leave out --noise-source")
    only_files = [name for name in ("target", "positive", "ignore", "ranges") if getattr(setup, name)]
    if setup.synthetic is not None and only_files:
        flags = ", ".join("--" + name for name in only_files)
        raise SpecError(f"synthetic data take no {flags}", f"leave out {flags}")
    if setup.output is not None:
        if setup.replicas > 1:
            raise SpecError("replicas are an experiment: no model is released", "leave out -o, or --replicas")
        if cases > 1:
            raise SpecError(
                f"{cases} models would be trained, and a guarantee is of one alone", "leave out -o, or choose one case"
            )
        from dpcalc.training.model import check_path

        check_path(setup.output)


def fitted(
    given: Mapping[str, Any],
    question: Question,
    setup: Setup,
    *,
    sources: Mapping[str, str] | None = None,
    gates: Sequence[Gate] = (),
    progress: Progress | None = None,
) -> Fitted:
    """Return the case of a run that was accounted and then executed; nothing is executed where a gate fails.

    Args:
        given: parameter name -> value, None where not given.
        question: epsilon and delta; with noise given as well they are checked.
        setup: data and circumstances.
        sources: parameter name -> source.
        gates: parsed assertions.
        progress: called with (done, in all).

    Raises:
        SpecError: description or data are malformed.
        NotApplicable, Infeasible: see `dpcalc.query.answer`; or what is guaranteed says nothing.
    """
    values = {name: value for name, value in given.items() if value is not None}
    unknown = sorted(set(values) - set(COMMANDS["train"].parameters))
    if unknown:
        raise SpecError(
            f"train does not take {', '.join(unknown)}", f"it takes {', '.join(COMMANDS['train'].parameters)}"
        )
    origin = {name: (sources or {}).get(name, "argument") for name in values}
    algorithm = str(values.setdefault("algorithm", "noisy-gd"))
    if algorithm not in COMMANDS["train"].algorithms:
        raise SpecError(
            f"algorithm is {algorithm!r}; to train it must be one of {', '.join(COMMANDS['train'].algorithms)}"
        )
    _describe_loss(values, origin, setup)
    records = _records(values, setup)
    n, d = records.train.features.shape
    values["records"] = n
    origin.setdefault("records", "data")
    values.pop("dimension", None)
    if "dimension" in taken_by(algorithm) and (values.get("noise") == "laplace" or "laplace_scale" in values):
        values["dimension"] = d
        origin.setdefault("dimension", "data")
    _choose(values, origin, question, d)
    case = _accounted(values, question, gates)
    case = case._replace(inputs=_told(case, origin))
    if case.best is not None and case.best.delta == 1.0:
        raise NotApplicable("nothing is guaranteed: delta is 1", "use more noise, or a larger --epsilon")
    if case.failed:
        return Fitted(case._replace(notes=(*case.notes, "a gate failed: nothing was trained")), None)
    return _executed(case, values, records, setup, progress)


# --- the records ------------------------------------------------------------------------------------------------------


def _describe_loss(values: dict[str, Any], origin: dict[str, str], setup: Setup) -> None:
    """Fill in the loss and its bounds where they are not given."""
    from dpcalc.training.data import EXAMPLES, example_of

    defaults: dict[str, Any] = {}
    example = example_of(setup.data) if isinstance(setup.data, str) else None
    if example:
        defaults["loss"] = EXAMPLES[example][2]
    elif setup.synthetic:
        defaults["loss"] = "logistic" if setup.synthetic == "logistic" else "squares"
    defaults["feature_bound"] = 1.0
    name = values.get("loss", defaults.get("loss"))
    if name is None:
        raise MissingParameter("what is minimised is not known: train needs a loss", "give --loss logistic or squares")
    if name not in losses.SIGNED:
        defaults["label_bound"] = 1.0
    for key, value in defaults.items():
        if key not in values:
            values[key], origin[key] = value, "default"


def _records(values: Mapping[str, Any], setup: Setup) -> _Records:
    """Return the records within their bounds, split."""
    import numpy as np

    from dpcalc.training import data, synthetic

    norm = _norm(values)
    drawn = np.random.default_rng(None if setup.seed is None else (setup.seed, 1))
    bound = float(values["feature_bound"])
    ranges = None
    if setup.synthetic is not None:
        missing = [f"--{name}" for name in ("records", "dimension") if name not in values]
        if missing:
            raise MissingParameter(f"synthetic data need {', '.join(missing)}", f"give {', '.join(missing)}")
        table = synthetic.generate(
            setup.synthetic, records=int(values["records"]), dimension=int(values["dimension"]),
            radius=values.get("radius"), feature_bound=bound,
            generator=np.random.default_rng((setup.seed or 0, 2)),
        )  # fmt: skip
    else:
        told = [name for name in ("records", "dimension") if name in values]
        if told:
            raise SpecError(f"{', '.join(told)} follow from the data", f"leave out --{told[0]}")
        table, ranges = _table(setup)
    ready = data.prepared(
        table, feature_bound=bound, label_bound=values.get("label_bound"), signed=values["loss"] in losses.SIGNED,
        ranges=ranges, intercept=setup.intercept, norm=norm,
    )  # fmt: skip
    train, test = data.split(ready, setup.test_fraction, drawn)
    return _Records(train, test, table.names, ranges)


def _table(setup: Setup) -> Any:
    """Return the table of a file, of a shipped example or of arrays, and its map if it has one."""
    from dpcalc.training import data

    if not isinstance(setup.data, str):
        return data.of_arrays(*setup.data, positive=setup.positive), None
    example = data.example_of(setup.data)
    path, target, positive, ranges = setup.data, setup.target, setup.positive, setup.ranges
    if example:
        path = data.example_file(example)
        target, positive = target or data.EXAMPLES[example][0], positive or data.EXAMPLES[example][1]
        ranges = ranges or data.example_file(example, ".ranges.csv")
    table = data.read(path, target=target, positive=positive, ignore=setup.ignore)
    return table, data.read_ranges(ranges, table) if ranges else None


def _norm(values: Mapping[str, Any]) -> int:
    """Return the norm of rows: 1 where Laplace noise needs it."""
    return 1 if values.get("noise") == "laplace" or "laplace_scale" in values else 2


# --- what is not given ------------------------------------------------------------------------------------------------


def _choose(values: dict[str, Any], origin: dict[str, str], question: Question, dimension: int) -> None:
    """Fill in steps and step size by the bound R^2/(2 eta T) + eta (V + d sigma^2)/2 on the excess risk.

    It is that of averaged noisy SGD on convex losses, with V the variance of a batch's gradient and sigma the noise at
    T steps; it is used as advice, whatever the algorithm releases. With full batches and eta = 1/smoothness the noise
    is sigma = s sqrt(T), and T = R/(eta sqrt(d) s) balances the two.
    """
    full = values["algorithm"] == "noisy-gd"
    loss = _loss(values)
    if full and "steps" not in values and "epochs" not in values:
        values["steps"], origin["steps"] = _full_steps(values, question, loss, dimension), "default"
    if "step_size" not in values:
        if any(name in values for name in ("c1", "decay_exponent")):
            raise MissingParameter("this noise depends on the step size", "give --step-size")
        values["step_size"], origin["step_size"] = _step_size(values, question, loss, dimension), "default"


def _full_steps(values: Mapping[str, Any], question: Question, loss: losses.Loss, dimension: int) -> int:
    radius = values.get("radius")
    if radius is None or question.epsilon is None:
        raise MissingParameter("how many steps suit is not known", "give --steps; or --radius, --epsilon and --delta")
    smoothness = loss.smoothness
    single = {**values, "steps": 1, "step_size": 1.0 / smoothness if smoothness else radius / loss.lipschitz}
    noise = math.sqrt(dimension) * _noise(single, question)
    found = radius * smoothness / noise if smoothness else (loss.lipschitz / noise) ** 2
    return max(1, min(MAX_STEPS, math.ceil(found)))


def _step_size(values: Mapping[str, Any], question: Question, loss: losses.Loss, dimension: int) -> float:
    radius = values.get("radius")
    longest = 1.0 / loss.smoothness if loss.smoothness else None
    if radius is None:
        if longest is None or values["algorithm"] != "noisy-gd":
            raise MissingParameter("which step size suits is not known", "give --step-size, or --radius")
        return longest
    first = longest or radius / loss.lipschitz
    noise = math.sqrt(dimension) * _noise({**values, "step_size": first}, question)
    single = values["algorithm"] != "noisy-gd" or not longest
    variance = loss.lipschitz**2 / values.get("batch_size", 1) if single else 0.0
    advised = radius / math.sqrt(_steps(values) * (variance + noise * noise))
    found = advised if longest is None else min(longest, advised)
    return float(f"{found:.3g}") if found < first else found


def _steps(values: Mapping[str, Any]) -> int:
    if "steps" in values:
        return int(values["steps"])
    each = 1 if values["algorithm"] == "noisy-gd" else -(-values["records"] // values.get("batch_size", 1))
    return int(values.get("epochs", 1)) * each


def _noise(values: Mapping[str, Any], question: Question) -> float:
    """Return the scale of the noise that the described run has, or needs for the budget."""
    for name in ("noise_std", "laplace_scale"):
        if name in values:
            return float(values[name])
    _, run, _ = run_of(COMMANDS["compare"], dict(values), {})
    quick = [b for b in for_algorithm(run.algorithm) if b.guarantee and not b.coarse and not b.unmet(run.values)]
    try:
        best = answer(run, question, quick).best  # advice: the noise that is used comes from all bounds
    except DpcalcError:
        best = _accounted(values, question, ()).best
    assert best is not None
    return best.value


# --- accounting -------------------------------------------------------------------------------------------------------


def _accounted(values: Mapping[str, Any], question: Question, gates: Sequence[Gate]) -> Case:
    try:
        case = ask("compare", values, question, gates=gates, notes=False)
    except DpcalcError as error:
        error.hint = _cure(error.hint or "")
        raise
    case = case._replace(obstacles=tuple(each._replace(hint=_cure(each.hint)) for each in case.obstacles))
    kept = tuple(note for note in case.notes if "project every iterate" not in note)
    if "radius" in values:
        kept += (f"every iterate is projected onto the ball |w| <= {values['radius']:g}",)
    return case._replace(notes=kept)


_CURES = {
    "--strong-convexity": "give --regularisation",
    "--diameter": "leave out --radius",
    "--smoothness": "take a smooth --loss: logistic, huber or squares",
    "--schedule": "dpcalc compare takes schedules; they are not trained",
}
"""Flags that train does not take, as constants follow from its loss -> what to do instead."""


def _cure(hint: str) -> str:
    """Return the hint of a bound in the words of train."""
    return next((cure for flag, cure in _CURES.items() if flag in hint), hint)


def _told(case: Case, origin: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    """Return the inputs of a case with the sources that a reader is told."""
    return {
        name: (value, origin.get(name, source) if source == "argument" else source)
        for name, (value, source) in case.inputs.items()
    }


# --- training ---------------------------------------------------------------------------------------------------------


def _executed(case: Case, values: dict[str, Any], records: _Records, setup: Setup, progress: Progress | None) -> Fitted:
    from dpcalc.training.metrics import minimise
    from dpcalc.training.plan import plan
    from dpcalc.training.problem import Problem

    best = case.best
    assert best is not None
    noisy = {best.quantity: best.value} if best.quantity in ("noise_std", "laplace_scale") else {}
    _, run, _ = run_of(COMMANDS["compare"], {**values, **noisy}, {})
    loss = _loss(values)
    n, d = records.train.features.shape
    planned = plan(run, n, d)
    train = Problem(records.train.features, records.train.labels, loss)
    test = Problem(records.test.features, records.test.labels, loss) if records.test else None
    found, weights = _trained(planned, train, test, setup, progress)
    optimum = minimise(train, values.get("radius"))
    training = {
        **_circumstances(planned, records, setup),
        **found,
        "non_private": _reference(optimum, train, test),
        "metrics_are": UNCOVERED,
        **_promised_risk(case, {**run.values, **noisy}, values, d),
    }
    _add_excess(training, optimum)
    case = case._replace(training=training, notes=(*case.notes, *_remarks(training, records, setup)))
    return Fitted(case, None if weights is None else _model(case, weights, values, records, setup, training))


def _loss(values: Mapping[str, Any]) -> losses.Loss:
    parameters = {name: float(values[name]) for name in losses.PARAMETERS if name in values}
    return losses.of(str(values["loss"]), **parameters)


def _trained(
    planned: Plan, train: Problem, test: Problem | None, setup: Setup, progress: Progress | None
) -> tuple[dict[str, Any], Array | None]:
    """Return the metrics of the model and its weights; of many replicas, quantiles and none."""
    import numpy as np

    from dpcalc.training import metrics, noise

    parts = {"train": train, **({"test": test} if test else {})}
    if setup.replicas > 1:
        import time

        from dpcalc.training import ensemble

        seed = 0 if setup.seed is None else setup.seed
        begun = time.perf_counter()
        everyone = ensemble.train(planned, train, setup.replicas, seed, workers=setup.workers, progress=progress)
        seconds = round(time.perf_counter() - begun, 3)  # of one run it could tell when a random stop came
        measured = {name: metrics.ensemble(everyone, part) for name, part in parts.items()}
        spread = {
            name: {metric: metrics.quantiles(column) for metric, column in row.items()}
            for name, row in measured.items()
        }
        middle = {name: {m: float(column.mean()) for m, column in row.items()} for name, row in measured.items()}
        spread_of = {"probabilities": list(metrics.QUANTILES), **spread}
        return {
            "private": False, "why_not_private": EXPERIMENT, "noise_source": f"seed {seed}", "seed": seed,
            "replicas": setup.replicas, "seconds": seconds, "metrics": middle, "quantiles": spread_of,
        }, None  # fmt: skip
    from dpcalc.training.single import train as train_one

    if setup.seed is None:
        source = noise.secure() if setup.noise_source == "secure" else noise.from_os()
    else:
        source = noise.seeded(setup.seed)
    weights = train_one(planned, train, source, progress=progress).weights
    if not np.isfinite(weights).all():
        raise SpecError("the weights overflowed: nothing is released", "use a smaller step size, or --radius")
    told: dict[str, Any] = {"private": source.private, "noise_source": source.label}
    if setup.seed is not None:
        told.update(seed=setup.seed, why_not_private=f"seeded: the noise can be drawn again from the seed {setup.seed}")
    return {**told, "metrics": {name: metrics.measured(weights, part) for name, part in parts.items()}}, weights


def _circumstances(planned: Plan, records: _Records, setup: Setup) -> dict[str, Any]:
    n, d = records.train.features.shape
    return {
        "records": n,
        "test_records": len(records.test.labels) if records.test else 0,
        "dimension": d,
        "intercept": setup.intercept,
        "norm": planned.norm,
        "steps": planned.steps,
        "rows_clipped": records.train.clipped,
        **({"labels_clipped": records.train.labels_clipped} if records.train.labels_clipped else {}),
        "released": setup.output,
    }


def _reference(optimum: Optimum, train: Problem, test: Problem | None) -> dict[str, Any]:
    """Return what the non-private minimiser over the same domain attains."""
    from dpcalc.training.metrics import measured

    found: dict[str, Any] = {"train": measured(optimum.weights, train)}
    if test is not None:
        found["test"] = measured(optimum.weights, test)
    return {**found, "optimality_gap": optimum.gap}


def _add_excess(training: dict[str, Any], optimum: Optimum) -> None:
    """Add the empirical excess risk: how far the loss is above the least that the domain allows."""
    training["metrics"]["train"]["excess_risk"] = training["metrics"]["train"]["loss"] - optimum.loss
    if "quantiles" in training:
        spread = training["quantiles"]["train"]
        spread["excess_risk"] = [value - optimum.loss for value in spread["loss"]]


def _promised_risk(case: Case, ran: Mapping[str, Any], values: Mapping[str, Any], dimension: int) -> dict[str, Any]:
    """Return the least bound on the excess risk that covers exactly this run, or why there is none."""
    described = {name: values[name] for name in (*losses.PARAMETERS, "loss") if name in values}
    described.update(
        algorithm=values["algorithm"], records=values["records"], dimension=dimension, step_size=ran.get("step_size"),
        noise_std=ran.get("noise_std"), steps=ran.get("steps", values["records"]),
    )  # fmt: skip
    best = case.best
    budgets = [Question()]
    if best is not None and best.log_delta is not None and best.epsilon is not None:
        budgets.append(Question(best.epsilon, best.delta, best.log_delta))
    found: list[Result] = []
    for question in budgets:
        try:
            found += ask("utility", described, question).results
        except DpcalcError:
            continue
    same = [result for result in found if result.guarantee and _is_of(result, described)]
    if not same:
        return {"excess_risk_bound": None, "excess_risk_bound_because": "no known bound covers exactly this run"}
    least = min(same, key=lambda result: result.value)
    told = {"bound": least.bound, "quantity": least.quantity, "value": least.value, "assumes": list(least.assumes)}
    return {"excess_risk_bound": {**told, "vacuous": bool((least.details or {}).get("vacuous"))}}


def _is_of(result: Result, described: Mapping[str, Any]) -> bool:
    """Whether a cost is of the run described: the same noise, steps and step size."""
    details = result.details or {}
    told = [details.get(name) for name in ("noise_std", "step_size", "steps")]
    wanted = [described[name] for name in ("noise_std", "step_size", "steps")]
    return result.quantity != "smoothing_error" and told == wanted


def _remarks(training: Mapping[str, Any], records: _Records, setup: Setup) -> list[str]:
    found, labels = [], records.train.labels
    if labels.min() == labels.max():  # no refusal: whether there is a model must not tell of the records
        found.append(f"the target is {labels[0]:g} for every training record: there is nothing to learn")
    if training.get("why_not_private"):
        found.append(f"NOT PRIVATE: {training['why_not_private']}")
    found.append(f"metrics are {UNCOVERED}")
    total = training["records"] + training["test_records"]
    if setup.synthetic is None and records.ranges is None and training["rows_clipped"] == total:
        found.append(
            "every row was shortened, so that only directions are left: --ranges maps columns to [-1, 1] first"
        )
    if not training["test_records"]:
        found.append("no records were set aside: --test-fraction 0.2 tells how the model does on others")
    if setup.replicas == 1:
        where = f"written to {setup.output}" if setup.output else "not kept: give -o MODEL.json or MODEL.npz"
        found.append(f"the model is {where}")
    return found


def _model(
    case: Case, weights: Array, values: Mapping[str, Any], records: _Records, setup: Setup, training: Mapping[str, Any]
) -> Model:
    from dpcalc.render.prose import render_statement
    from dpcalc.report import Report
    from dpcalc.training.data import EXAMPLES, example_of, intercept_of
    from dpcalc.training.model import Model

    norm, bound = _norm(values), float(values["feature_bound"])
    example = example_of(setup.data) if isinstance(setup.data, str) else None
    constant = intercept_of(bound, norm)
    best = case.best
    assert best is not None
    ranges = records.ranges
    privacy: dict[str, Any] = {
        "private": training["private"],
        **{name: training[name] for name in ("why_not_private", "seed") if name in training},
        "noise_source": training["noise_source"],
        **{name: getattr(best, name) for name in ("epsilon", "delta", "log_delta", "mu", "bound", "reference")},
        "adjacency": best.adjacency,
        "assumes": list(best.assumes),
        "statement": render_statement(Report("train", (case,))).strip(),
    }
    return Model(
        weights=weights[:-1] if setup.intercept else weights,
        intercept=float(weights[-1] * constant) if setup.intercept else 0.0,
        columns=records.names[:-1], target=records.names[-1],
        positive=setup.positive or (EXAMPLES[example][1] if example else None),
        low=ranges.low if ranges else None, high=ranges.high if ranges else None,
        target_range=ranges.target if ranges else None, bound=constant if setup.intercept else bound, norm=norm,
        loss={name: values[name] for name in ("loss", *losses.PARAMETERS) if name in values}, privacy=privacy,
    )  # fmt: skip


def side_by_side(given: Mapping[str, Any], question: Question, setup: Setup, **more: Any) -> Fitted:
    """Return `fitted`; a case of which nothing can be guaranteed is not trained and says why.

    Raises:
        SpecError: description or data are malformed.
    """
    from dpcalc.commands import nothing

    try:
        case, model = fitted(given, question, setup, **more)
        if setup.replicas == 1 and case.training:
            case = case._replace(
                notes=(*case.notes, "several models from the same records: a guarantee is of one alone")
            )
        return Fitted(case, model)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return Fitted(nothing("train", given, question, error, more.get("gates", ())), None)
