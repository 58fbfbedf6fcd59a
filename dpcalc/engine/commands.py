"""The commands, one record each: shared by the command line, recipes, Python and the docs.

The recorded inputs of a case, each with its source.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from dpcalc.model.algorithm import ALGORITHMS, CATALOGUE, HOLDER, NAMED, OF_TRAINING, Source
from dpcalc.model.phases import COLUMNS as PHASES
from dpcalc.model.quantities import ATTACKS, Given
from dpcalc.model.question import Question

MATRIX = ("matrix",)
"""The columns of a command whose schedule is one matrix."""

_USUAL = (
    "algorithm", "records", "epochs", "batch_size", "lipschitz", "smoothness", "step_size", "noise_std", "epsilon",
    "delta", "release", "diameter", "as_json", "verbose",
)  # fmt: skip


class Command(NamedTuple):
    """A command that answers a question.

    Attributes:
        name, help: as on the command line.
        algorithms: the algorithms that it covers, the default one first.
        parameters: what it accepts, in the order of its help.
        columns: of a schedule that it accepts; empty if it takes none.
        families: of its theorems; empty for all about the algorithm.
        compares: whether the algorithm must be named, and all bounds for it are compared.
        chooses_index: whether it finds the worst-off record under a schedule.
        prices: whether it asks for the cost of a budget.
        trains: whether it executes the run; it then takes a budget and gates, and no other question.
        usual: the most used parameters and options: they come first, and the short page shows only these.
    """

    name: str
    help: str
    algorithms: tuple[str, ...]
    parameters: tuple[str, ...]
    columns: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    compares: bool = False
    chooses_index: bool = False
    prices: bool = False
    trains: bool = False
    usual: tuple[str, ...] = _USUAL

    @property
    def default(self) -> str:
        """The default algorithm."""
        return self.algorithms[0]


_COLUMNS = ("step_size", "noise_std", "laplace_scale", "contraction", "displacement", "probability")
_CHAIN_COLUMNS = ("shift", "contraction", "step_size", "noise_std", "laplace_scale", "spend")


_RELEASING = tuple(
    [name for name, a in ALGORITHMS.items() if name in NAMED and "release" in a.parameters and not a.clipped]
)
"""The named algorithms that may release one iterate or several, except those with clipped gradients."""

_DP_SGD = ("dp-sgd", "dp-sgd-gradient", "dp-sgd-output")


def _command(
    name: str, help: str, algorithms: tuple[str, ...], families: tuple[str, ...], columns: tuple[str, ...] = (),
    *, chooses_index: bool = False, usual: tuple[str, ...] = _USUAL, immaterial: tuple[str, ...] = (),
) -> Command:  # fmt: skip
    """Make a command with the parameters that its algorithms share, except those immaterial to it."""
    lists = sorted([ALGORITHMS[name].parameters for name in algorithms], key=len)
    taken = set(lists[0]).intersection(*lists).difference(immaterial)
    meant = ["algorithm"] if len(algorithms) > 1 else []
    parameters = (*meant, *filter(taken.__contains__, lists[0]))
    return Command(name, help, algorithms, parameters, columns, families, chooses_index=chooses_index, usual=usual)


COMMANDS: dict[str, Command] = {
    command.name: command
    for command in (
        _command(
            "rdp",
            "One fixed-order pass of noisy SGD whose iterates stay hidden: epsilon, delta, mu, RDP, or the noise.",
            ("pnsgd", "skip", "stop", "local"),
            ("iteration", "scheduled"),
            ("step_size", "noise_std", "contraction"),
            chooses_index=True,
        ),
        _command(
            "shifted",
            "Any sequence of noisy Lipschitz steps: the general theorem with the optimal allocation of shifts.",
            ("chain",),
            ("shifted",),
            _CHAIN_COLUMNS,
            usual=(
                "steps",
                "shift",
                "contraction",
                "step_size",
                "noise_std",
                "schedule",
                "epsilon",
                "delta",
                "solve",
            ),
        ),
        _command(
            "unlearn",
            "Make a model forget records by noisy steps on those kept: epsilon, delta, mu, the steps or the noise.",
            ("unlearning",),
            ("unlearning",),
            ("contraction", "step_size", "noise_std"),
            usual=(
                "start",
                "start_distance",
                "contraction",
                "strong_convexity",
                "step_size",
                "noise_std",
                "clean_steps",
                "epsilon",
                "delta",
                "solve",
            ),
        ),
        _command(
            "hockey-stick",
            "One record's delta(epsilon) along a fixed-order pass, Gaussian or Laplace, or stopped at random.",
            ("pnsgd", "stop"),
            ("contraction", "stepwise"),
            _COLUMNS,
        ),
        _command(
            "shuffle",
            "One pass in a random order, with fixed noise or noise tuned to the number of records.",
            ("shuffled", "rotation", "shuffled-stop"),
            ("shuffle", "hidden_position", "stepwise"),
            _COLUMNS,
        ),
        _command(
            "multi-epoch",
            "Many passes: hidden iterates, or one released after every epoch; ordered, shuffled, sampled, full batch.",
            _RELEASING,
            ("multi_epoch", "noisy_gd", "shuffled_epochs", "noisy_sgd", "expanding", "released"),
        ),
        _command(
            "online",
            "A growing stream with noise that decays from record to record: what holds now, and the limit.",
            ("online",),
            ("online",),
            usual=(
                "records",
                "index",
                "lipschitz",
                "smoothness",
                "step_size",
                "c1",
                "c2",
                "decay_exponent",
                "epsilon",
                "delta",
            ),
        ),
        Command(
            "dp-sgd",
            "DP-SGD with clipped gradients, for every way to draw batches; or for losses that need not be smooth.",
            _DP_SGD,
            ("algorithm", *dict.fromkeys([name for a in _DP_SGD for name in ALGORITHMS[a].parameters])),
            families=("sampled", "dp_sgd"),
            columns=PHASES,
            usual=(
                "records",
                "sample_rate",
                "batch_size",
                "steps",
                "epochs",
                "sampling",
                "noise_multiplier",
                "adjacency",
                "epsilon",
                "delta",
            ),
        ),
        _command(
            "dp-ftrl",
            "Correlated noise: DP-FTRL, trees and banded matrices, in a fixed order or amplified by sampling.",
            ("correlated",),
            ("correlated",),
            columns=MATRIX,
            immaterial=OF_TRAINING,
            usual=(
                "mechanism",
                "bands",
                "steps",
                "epochs",
                "noise_multiplier",
                "scaling",
                "sampling",
                "adjacency",
                "epsilon",
                "delta",
                "json",
                "verbose",
            ),
        ),
    )
}

_DESCRIBING = tuple([command for command in COMMANDS.values() if command.algorithms[0] in NAMED])
"""The commands that describe a run of a named algorithm."""

COMMANDS["compare"] = Command(
    "compare",
    "Every bound that applies to one described run, best first, and why the others do not.",
    tuple(dict.fromkeys([name for command in _DESCRIBING for name in command.algorithms])),
    tuple(dict.fromkeys([name for command in _DESCRIBING for name in command.parameters])),
    _COLUMNS,
    compares=True,
)

COMMANDS["utility"] = Command(
    "utility",
    "What a budget costs: excess risk, noise, step size and steps, by every theorem that applies.",
    ("stop", "skip", "local", "noisy-gd", "dp-sgd-gradient", "dp-sgd-output"),
    (
        "algorithm", "records", "dimension", "index", "public_records", "tasks", "steps", "lipschitz", "smoothness",
        "strong_convexity", *HOLDER, *CATALOGUE, "step_size", "noise_std", "failure_probability",
    ),
    prices=True,
    usual=(
        "loss", "feature_bound", "records", "dimension", "radius", "lipschitz", "smoothness", "algorithm", "epsilon",
        "delta",
    ),
)  # fmt: skip

_EXECUTED = tuple(
    [
        name
        for name in dict.fromkeys(("noisy-gd", "noisy-sgd", *_RELEASING, *COMMANDS["compare"].algorithms))
        if ALGORITHMS[name].executed and not ALGORITHMS[name].local
    ]
)
"""The executable algorithms that release a model, the default one first."""

COMMANDS["train"] = Command(
    "train",
    "Run an algorithm on data, privately accounted: budget in, model out.",
    _EXECUTED,
    (
        "algorithm", "release", *CATALOGUE, "records", "dimension", "epochs", "steps", "batch_size", "last_batch",
        "permutation", "step_size", "clip", "model", "noise_std", "noise_multiplier", "laplace_scale", "noise", "c1",
        "c2", "decay_exponent", "schedule_factor",  # no index: a model must protect the worst-off record
        "mechanism", "bands", "sampling",
        "start_distance", "clean_steps",
    ),
    trains=True,
    usual=("data", "target", "labels", "loss", "radius", "algorithm", "epsilon", "delta", "noise_std", "output"),
)  # fmt: skip


def columns_of(algorithm: str) -> tuple[str, ...]:
    """Return the columns of a schedule that `compare` accepts for this algorithm."""
    return _COLUMNS if any(command.columns for command in _DESCRIBING if algorithm in command.algorithms) else ()


@functools.cache
def taken_by(algorithm: str) -> frozenset[str]:
    """Return the parameters that `compare` takes for this algorithm."""
    return frozenset({"algorithm", *ALGORITHMS[algorithm].parameters})


def inputs_of(values: Given, sources: Mapping[str, Source], question: Question) -> dict[str, tuple[Any, Source]]:
    """Return the inputs of the run, from their values and sources, and those of the question."""
    inputs = {}
    for name, value in values.items():
        if type(value) not in _PLAIN:
            value = value.value if isinstance(value, Enum) else value if isinstance(value, _PLAIN) else str(value)
        inputs[name] = (value, sources.get(name, Source.ARGUMENT))
    if question.epsilon is not None:
        inputs["epsilon"] = (question.epsilon, question.source)
    if question.log_delta is not None:
        inputs["delta"] = (question.typed_delta, question.source)
    for target in question.targets:
        inputs[target.name] = (target.limit, question.source)
        if target.at is not None:
            inputs[ATTACKS[target.name]] = (target.at, question.source)
    return inputs


_PLAIN = (int, float, str)
