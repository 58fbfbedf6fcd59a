"""The commands, as data and as functions from parameters to a case: shared by the shell, recipes and Python."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc import losses
from dpcalc.errors import DpcalcError, Infeasible, MissingParameter, NotApplicable, NotConverged, SpecError
from dpcalc.gate import Gate, judge
from dpcalc.query import Question, answer
from dpcalc.registry import Bound, for_algorithm
from dpcalc.report import Assertion, Case, Obstacle, Report, Result
from dpcalc.spec.run import FIXED_ORDER, Run, describe
from dpcalc.spec.symbols import check


class Command(NamedTuple):
    """A question-answering command: which algorithms it covers (default first), which parameters it accepts, which
    columns of a schedule, and from which families its bounds come (none named: from all).
    """

    name: str
    help: str
    algorithms: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    families: tuple[str, ...]


_CATALOGUE = ("loss", *losses.PARAMETERS)
_LOSS = ("lipschitz", "loss_class", "smoothness", "strong_convexity", "displacement", "diameter", *_CATALOGUE)
_HOLDER = ("holder_exponent", "holder_constant", "gradient_at_zero", "loss_at_zero")
_NOISE = ("noise_std", "laplace_scale", "noise", "dimension")
_COLUMNS = ("step_size", "noise_std", "laplace_scale", "contraction", "displacement", "probability")

COMMANDS: dict[str, Command] = {
    c.name: c
    for c in (
        Command(
            "rdp",
            "One fixed-order pass of noisy SGD whose iterates stay hidden: epsilon, delta, mu, RDP, or the noise.",
            ("pnsgd", "skip", "stop", "local"),
            (
                "algorithm", "records", "index", "batch_size", "lipschitz", "smoothness", "strong_convexity",
                "step_size", "noise_std", "diameter", "adjacency", *_CATALOGUE,
            ),
            ("step_size", "noise_std", "contraction"),
            ("iteration", "scheduled"),
        ),
        Command(
            "shifted",
            "Any sequence of noisy Lipschitz steps: the general theorem with the optimal allocation of shifts.",
            ("chain",),
            (
                "steps", "index", "shift", "contraction", "step_size", "noise_std", "laplace_scale",
                "start_distance", "diameter",
            ),
            ("shift", "contraction", "step_size", "noise_std", "laplace_scale", "spend"),
            ("shifted",),
        ),
        Command(
            "hockey-stick",
            "One record's delta(epsilon) along a fixed-order pass, Gaussian or Laplace, or stopped at random.",
            ("pnsgd", "stop"),
            ("algorithm", "records", "index", "batch_size", *_LOSS, "step_size", *_NOISE, "adjacency"),
            _COLUMNS,
            ("contraction", "stepwise"),
        ),
        Command(
            "shuffle",
            "One pass in a random order, with fixed noise or noise tuned to the number of records.",
            ("shuffled", "rotation", "shuffled-stop"),
            (
                "algorithm", "records", "batch_size", "last_batch", "permutation", *_LOSS, "step_size", *_NOISE, "c1",
                "c2", "adjacency",
            ),
            _COLUMNS,
            ("shuffle", "hidden_position", "stepwise"),
        ),
        Command(
            "multi-epoch",
            "Many passes: hidden iterates, or one released after every epoch; ordered, shuffled, sampled, full batch.",
            ("cyclic", "shuffle-once", "shuffled-epochs", "noisy-sgd", "noisy-gd", "repeated"),
            (
                "algorithm", "release", "records", "epochs", "steps", "index", "batch_size", "last_batch",
                "permutation", *_LOSS, "step_size", *_NOISE, "langevin_std", "epoch_epsilon", "epoch_delta",
                "adjacency",
            ),
            (),
            ("multi_epoch", "noisy_gd", "shuffled_epochs", "noisy_sgd", "released"),
        ),
        Command(
            "online",
            "A growing stream with noise that decays from record to record: what holds now, and the limit.",
            ("online",),
            (
                "records", "index", "window", *_LOSS, "step_size", "noise", "dimension", "c1", "c2", "decay_exponent",
                "noise_multiplier", "adjacency",
            ),
            (),
            ("online",),
        ),
        Command(
            "dp-sgd",
            "Sampled SGD with losses that need not be smooth: noise on the averaged output, or on every gradient.",
            ("dp-sgd-gradient", "dp-sgd-output"),
            (
                "algorithm", "records", "epochs", "steps", "batch_size", "lipschitz", *_HOLDER, "strong_convexity",
                *_CATALOGUE, "step_size", "noise_std", "adjacency",
            ),
            (),
            ("dp_sgd",),
        ),
    )
}  # fmt: skip

_COVERING = [command for command in COMMANDS.values() if command.name != "shifted"]
COMMANDS["compare"] = Command(
    "compare",
    "Every bound that applies to one described run, best first, and why the others do not.",
    tuple(dict.fromkeys(name for command in _COVERING for name in command.algorithms)),
    tuple(dict.fromkeys(name for command in _COVERING for name in command.parameters)),
    _COLUMNS,
    (),
)

COMMANDS["utility"] = Command(
    "utility",
    "What a budget costs: excess risk, noise, step size and steps, by every theorem that applies.",
    ("stop", "skip", "local", "noisy-gd", "dp-sgd-gradient", "dp-sgd-output"),
    (
        "algorithm", "records", "dimension", "index", "public_records", "tasks", "steps", "lipschitz", "smoothness",
        "strong_convexity", *_HOLDER, *_CATALOGUE, "step_size", "noise_std", "failure_probability",
    ),
    (),
    (),
)  # fmt: skip

COMMANDS["train"] = Command(
    "train",
    "Run an algorithm on data, privately accounted: budget in, model out.",
    (
        "noisy-gd", "noisy-sgd", "cyclic", "shuffle-once", "shuffled-epochs", "pnsgd", "skip", "stop", "shuffled",
        "rotation", "shuffled-stop", "online", "dp-sgd-gradient", "dp-sgd-output",
    ),
    (
        "algorithm", "release", *_CATALOGUE, "records", "dimension", "epochs", "steps", "batch_size", "last_batch",
        "permutation", "step_size", "noise_std", "laplace_scale", "noise", "c1", "c2", "decay_exponent",
        "noise_multiplier",  # no index: a model is to protect the record that is worst off
    ),
    (),
    (),
)  # fmt: skip

_IMMATERIAL = ("index", "last_batch", "permutation")
"""Parameters that say nothing of an algorithm which does not take them: a random order has no position to choose."""


def ask(
    command: str,
    given: Mapping[str, Any],
    question: Question,
    *,
    sources: Mapping[str, str] | None = None,
    gates: Sequence[Gate] = (),
    notes: bool = True,
    best_only: bool = False,
    certified: bool = False,
) -> Case:
    """Return the case for one set of parameters.

    Args:
        command: a key of `COMMANDS`.
        given: parameter name -> value, None where not given; ``schedule`` may hold a path.
        question: what is sought.
        sources: parameter name -> where it came from.
        gates: parsed assertions.
        notes: whether to say how the answer depends on the position (two more answers).
        best_only: whether to leave out the bounds that cannot be the best: lower values, limits, what is implied.
        certified: whether to recompute every guarantee in ball arithmetic.

    Raises:
        SpecError, NotApplicable, Infeasible: see `dpcalc.query.answer`.
        Disproved: a guarantee to be certified is below the truth.
    """
    described = COMMANDS[command]
    unknown = sorted(set(given) - {*described.parameters, "schedule"})
    if unknown:
        raise SpecError(f"{command} does not take {', '.join(unknown)}", f"it takes {', '.join(described.parameters)}")
    _check_question(question)
    values = {name: value for name, value in given.items() if value is not None}
    if command == "utility":
        case = _priced(values, question, dict(sources or {}), gates)
        return _certify(case, None, question) if certified else case
    described, run, remarked = run_of(described, values, dict(sources or {}))
    bounds = _bounds_of(described, run)
    if best_only:
        bounds = _contenders(bounds, run, question)
    elif command == "compare" and not notes:  # in a sweep, what a promise not made would give is not worth its time
        bounds = [bound for bound in bounds if not (bound.coarse and bound.unmet(run.values))]
    case = answer(run, question, bounds)
    if command == "compare":
        from dpcalc.comparison import compared

        case = compared(run, question, case, bounds, hints=notes)
    elif notes:
        from dpcalc.remarks import remarks

        case = case._replace(notes=(*case.notes, *remarks(run, question, case, bounds)))
    case = case._replace(notes=(*case.notes, *remarked))
    if command == "shifted":
        case = case._replace(results=tuple(_with_allocation(run, result) for result in case.results))
    if certified:
        case = _certify(case, run, question)
    return case._replace(assertions=(*_implied(question, case), *(judge(gate, case) for gate in gates)))


def _certify(case: Case, run: Run | None, question: Question) -> Case:
    """Return the case with what is proved of its guarantees."""
    from dpcalc.certify.case import certify

    return certify(case, run, question)


def run_of(command: Command, values: dict[str, Any], origin: dict[str, str]) -> tuple[Command, Run, tuple[str, ...]]:
    """Return the command as it speaks of the algorithm, the run that the values describe, and notes on the two.

    Raises:
        SpecError: the description is malformed, or is of something that the algorithm does not do.
    """
    algorithm = _algorithm(command, values)
    dropped: tuple[str, ...] = ()
    taken: Collection[str] = command.parameters
    if command.name == "compare":
        command, dropped = _fitting(algorithm, values, origin)
        taken = taken_by(algorithm)
    of_the_loss(values, origin, taken)
    if "loss" in values and "radius" in values:
        dropped += (f"the constants of the loss hold where |w| <= {values['radius']:g}: project every iterate there",)
    if values.pop("release", "last") == "epoch" and algorithm != "repeated":
        algorithm += "-released"
    if "schedule" in values and values.get("regularisation"):
        raise SpecError("a schedule is not combined with a regularised loss", "describe the steps' maps in the file")
    if command.name == "shifted" or "schedule" in values:
        values, origin = _step_by_step(command, algorithm, values, origin)
    return command, describe(algorithm, values, origin), dropped


def _step_by_step(
    command: Command, algorithm: str, values: dict[str, Any], origin: dict[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values with the schedule read, and the worst index where it is known.

    Raises:
        SpecError: the command or the algorithm takes no such schedule, or the index is needed.
    """
    from dpcalc.spec.chain import resolve

    if not command.columns:
        follows = "the noise follows from --c1, --c2 and --decay-exponent"
        raise SpecError(
            f"{command.name} takes no --schedule", follows if algorithm == "online" else "all steps are alike"
        )
    values, origin = resolve(command.name, values, origin, command.columns)
    if algorithm == "pnsgd" and values["schedule"].probability is not None:
        raise SpecError(
            "the schedule has a column probability, and in a fixed order every record has its own step",
            "use --algorithm stop, or `dpcalc shuffle`",
        )
    if algorithm == "pnsgd" and values.get("index") is None and command.name == "compare":
        raise SpecError("which record is worst off depends on the bound, with a schedule", "give --index")
    if command.name == "rdp" and values.get("index") is None:
        from dpcalc.bounds.scheduled import worst_index

        values["index"], origin["index"] = worst_index(values["schedule"]), "worst case"
    return values, origin


def _algorithm(command: Command, values: dict[str, Any]) -> str:
    """Return the algorithm, taken out of the values.

    Raises:
        SpecError: it is not of this command, or `compare` was not told.
    """
    if "algorithm" not in values and command.name == "compare":
        raise SpecError(
            "what is run is not known",
            f"give --algorithm: {', '.join(command.algorithms)}; or several of them, or all",
        )
    algorithm = str(values.pop("algorithm", command.algorithms[0]))
    if algorithm not in command.algorithms:
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {', '.join(command.algorithms)}")
    return algorithm


def _priced(values: dict[str, Any], question: Question, origin: dict[str, str], gates: Sequence[Gate]) -> Case:
    """Return the case of `utility`."""
    from dpcalc.pricing import priced

    described = COMMANDS["utility"]
    algorithm = _algorithm(described, values) if "algorithm" in values else None
    of_the_loss(values, origin, (*described.parameters, "loss_range"), risk=True)
    case = priced(values, origin, question, algorithm)
    return case._replace(assertions=tuple(judge(gate, case) for gate in gates))


def taken_by(algorithm: str) -> set[str]:
    """Return the parameters that some command takes for this algorithm."""
    return {name for c in _COVERING if algorithm in c.algorithms for name in c.parameters}


def of_the_loss(values: dict[str, Any], origin: dict[str, str], taken: Collection[str], *, risk: bool = False) -> None:
    """Fill in those constants of the loss named, if one is, that are taken.

    Raises:
        SpecError: they are also given, or a parameter of a loss is and no loss.
    """
    if "loss" not in values:
        alone = [name for name in losses.PARAMETERS if name in values and name != "radius"]
        if alone:
            raise SpecError(f"{', '.join(alone)} describes a loss, and none is named", "give --loss")
        return
    checked = {name: float(check(name, values[name])) for name in losses.PARAMETERS if name in values}
    for name, value in losses.constants(str(check("loss", values["loss"])), checked, risk=risk).items():
        if name in values and name in taken and name != "loss_class":
            raise SpecError(f"{name} is given and also follows from the loss", "keep one of the two")
        if name not in values and name in taken:
            values[name], origin[name] = value, "loss"


def _fitting(algorithm: str, values: dict[str, Any], origin: dict[str, str]) -> tuple[Command, tuple[str, ...]]:
    """Return what `compare` accepts for one algorithm, and notes on what was left out of the values as immaterial.

    Raises:
        SpecError: a value describes something that the algorithm does not do.
    """
    covering = [command for command in _COVERING if algorithm in command.algorithms]
    taken = taken_by(algorithm) | {"schedule"}
    if values.get("epochs") == 1:
        taken.add("epochs")  # one pass is what the algorithms without epochs do
    if values.get("last_batch", "own") != "own" and algorithm in FIXED_ORDER:
        taken.add("last_batch")  # `describe` says whether it matters
    left_out = [name for name in values if name not in taken and name in _IMMATERIAL]
    strange = [name for name in values if name not in taken and name not in _IMMATERIAL]
    if strange:
        flags = ", ".join("--" + name.replace("_", "-") for name in strange)
        raise SpecError(f"{algorithm} takes no {', '.join(strange)}", f"leave out {flags}, or choose another algorithm")
    for name in left_out:
        del values[name]
    if not any("epochs" in command.parameters for command in covering):
        values.pop("epochs", None)
    elif "epochs" not in values and "steps" not in values:
        values["epochs"], origin["epochs"] = 1, "default"
    described = COMMANDS["compare"]._replace(columns=_COLUMNS if any(c.columns for c in covering) else ())
    return described, tuple(f"{algorithm} has no {name}: it was left out" for name in left_out)


def applying(algorithm: str, given: Mapping[str, Any]) -> list[tuple[str, Bound, str, str]]:
    """Return what is run and, for every bound that speaks of it, whether it applies and why not.

    Args:
        algorithm: one of those of `compare`.
        given: parameter name -> value.

    Returns:
        (algorithm with what it releases, bound, ``yes``, ``no`` or ``if promised``, why and what would help) a bound.

    Raises:
        SpecError: the description is malformed.
    """
    _, run, _ = run_of(COMMANDS["compare"], {**given, "algorithm": algorithm}, {})
    rows = []
    for bound in for_algorithm(run.algorithm):
        because, cure = bound.obstacle(run.values) or ("", "")
        unmet = "; ".join(bound.unmet(run.values))
        applies = "no" if because else "if promised" if unmet else "yes"
        rows.append((run.algorithm, bound, applies, f"{because} ({cure})" if because else unmet))
    return rows


def _bounds_of(command: Command, run: Run) -> list[Bound]:
    return for_algorithm(run.algorithm, command.families) if command.families else for_algorithm(run.algorithm)


def _contenders(bounds: list[Bound], run: Run, question: Question) -> list[Bound]:
    """Return the bounds of which one will be the best guarantee; all, where none is a guarantee."""
    found = [bound for bound in bounds if bound.guarantee and not bound.unmet(run.values)]
    if question.orders:  # two forms of one bound are there rounded in two ways
        return found or bounds
    there = {bound.id for bound in found}
    return [bound for bound in found if bound.implied_by not in there] or bounds


def side_by_side(
    command: str, given: Mapping[str, Any], question: Question, *, gates: Sequence[Gate] = (), **more: Any
) -> Case:
    """Return the case as `ask` does; one of which nothing can be guaranteed has no results and says why.

    Raises:
        SpecError: the description is malformed; comparing algorithms, one that cannot be so described says why instead.
    """
    try:
        return ask(command, given, question, gates=gates, **more)
    except (SpecError, MissingParameter) as error:
        if command != "compare":
            raise
        return nothing(command, given, question, error, gates)
    except (NotApplicable, Infeasible, NotConverged) as error:
        return nothing(command, given, question, error, gates)


def nothing(
    command: str, given: Mapping[str, Any], question: Question, error: DpcalcError, gates: Sequence[Gate]
) -> Case:
    """Return the case of a run for which there is no guarantee; no gate holds."""
    algorithm = str(given.get("algorithm", COMMANDS[command].algorithms[0]))
    inputs = {name: (value, "flag") for name, value in given.items() if name != "algorithm" and value is not None}
    budget = {"epsilon": question.epsilon, "delta": question.delta}
    inputs.update({name: (value, "flag") for name, value in budget.items() if value is not None})
    failed = tuple(Assertion(gate.text, False, "no guarantee", None) for gate in gates)
    return Case(algorithm, inputs, (), (Obstacle(algorithm, error.message, error.hint or ""),), failed)


def report(command: str, cases: Sequence[Case]) -> Report:
    """Return the report of a command's cases."""
    return Report(command, tuple(cases))


def _check_question(question: Question) -> None:
    if question.log_delta is not None and not question.log_delta < 0.0:
        raise SpecError(f"delta is {question.delta!r}; it must be a number > 0 and < 1", "1e-6 is a usual choice")
    if question.epsilon is not None and not 0.0 <= question.epsilon < math.inf:
        raise SpecError(f"epsilon is {question.epsilon!r}; it must be a number >= 0", "1 is a usual choice")
    if any(not order >= 1.0 for order in question.orders):
        raise SpecError(f"order is {min(question.orders)!r}; it must be a number >= 1", "2 to 64 are usual")


def _implied(question: Question, case: Case) -> tuple[Assertion, ...]:
    """Return the check that is implied by giving epsilon, delta and the noise together."""
    best = case.best
    if best is None or best.quantity != "epsilon" or question.epsilon is None:
        return ()
    slack = question.epsilon - best.value
    return (Assertion(f"epsilon<={question.epsilon!r}", best.value <= question.epsilon, best.value, slack),)


def _with_allocation(run: Run, result: Result) -> Result:
    """Return the best result with where its shifts are spent."""
    if not result.best:
        return result
    from dpcalc.bounds.shifted import describe_allocation

    diameter = run.values.get("diameter") if result.bound.endswith("_domain") else None
    own = result.bound == "shifted.given_spend"
    found = describe_allocation(run.values["schedule"], run.values["start_distance"], diameter, own)
    return result._replace(details={**(result.details or {}), "allocation": found})
