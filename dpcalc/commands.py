"""The commands, as data and as functions from parameters to a case: shared by the shell, recipes and Python."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import SpecError
from dpcalc.gate import Gate, judge
from dpcalc.query import Question, answer
from dpcalc.registry import Bound, for_algorithm
from dpcalc.report import Assertion, Case, Report, Result
from dpcalc.spec.run import Run, describe


class Command(NamedTuple):
    """A question-answering command: which algorithms it covers (default first), which parameters it accepts, which
    columns of a schedule, and from which families its bounds come.
    """

    name: str
    help: str
    algorithms: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: tuple[str, ...]
    families: tuple[str, ...]


_LOSS = ("lipschitz", "loss_class", "smoothness", "strong_convexity", "displacement", "diameter")
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
                "step_size", "noise_std", "diameter", "adjacency",
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
            ("multi_epoch", "noisy_gd", "shuffled_epochs", "hidden_epochs", "noisy_sgd", "released"),
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
    )
}  # fmt: skip


def ask(
    command: str,
    given: Mapping[str, Any],
    question: Question,
    *,
    sources: Mapping[str, str] | None = None,
    gates: Sequence[Gate] = (),
    notes: bool = True,
) -> Case:
    """Return the case for one set of parameters.

    Args:
        command: a key of `COMMANDS`.
        given: parameter name -> value, None where not given; ``schedule`` may hold a path.
        question: what is sought.
        sources: parameter name -> where it came from.
        gates: parsed assertions.
        notes: whether to say how the answer depends on the position (two more answers).

    Raises:
        SpecError, NotApplicable, Infeasible: see `dpcalc.query.answer`.
    """
    described = COMMANDS[command]
    unknown = sorted(set(given) - {*described.parameters, "schedule"})
    if unknown:
        raise SpecError(f"{command} does not take {', '.join(unknown)}", f"it takes {', '.join(described.parameters)}")
    _check_question(question)
    values = {name: value for name, value in given.items() if value is not None}
    algorithm = values.pop("algorithm", described.algorithms[0])
    if algorithm not in described.algorithms:
        raise SpecError(f"algorithm is {algorithm!r}; it must be one of {', '.join(described.algorithms)}")
    if values.pop("release", "last") == "epoch" and algorithm != "repeated":
        algorithm += "-released"
    origin = dict(sources or {})
    if command == "shifted" or "schedule" in values:
        from dpcalc.spec.chain import resolve

        if not described.columns:
            hint = (
                "the noise follows from --c1, --c2 and --decay-exponent"
                if command == "online"
                else "all steps are alike"
            )
            raise SpecError(f"{command} takes no --schedule", hint)

        values, origin = resolve(command, values, origin, described.columns)
        if algorithm == "pnsgd" and values["schedule"].probability is not None:
            raise SpecError(
                "the schedule has a column probability, and in a fixed order every record has its own step",
                "use --algorithm stop, or `dpcalc shuffle`",
            )
        if command == "rdp" and values.get("index") is None:
            from dpcalc.bounds.scheduled import worst_index

            values["index"], origin["index"] = worst_index(values["schedule"]), "worst case"
    run = describe(algorithm, values, origin)
    case = answer(run, question, _bounds_of(described, run))
    if notes:
        from dpcalc.remarks import remarks

        case = case._replace(notes=(*case.notes, *remarks(run, question, case, _bounds_of(described, run))))
    if command == "shifted":
        case = case._replace(results=tuple(_with_allocation(run, result) for result in case.results))
    return case._replace(assertions=(*_implied(question, case), *(judge(gate, case) for gate in gates)))


def _bounds_of(command: Command, run: Run) -> list[Bound]:
    return [bound for bound in for_algorithm(run.algorithm) if bound.id.partition(".")[0] in command.families]


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
