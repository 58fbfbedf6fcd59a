"""No dead ends: every algorithm, loss class, domain and release has an answer, or an error whose cure leads to one."""

# ruff: noqa: PT017 (a refusal is one of two good outcomes)
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from dpcalc.engine.ask import ask
from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import DpcalcError, MissingParameter, NotApplicable, SpecError
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.question import Question
from dpcalc.notes import HidingPays
from dpcalc.report import Case
from tests.oracles import FULL, cases

LOSSES: dict[str, dict[str, Any]] = {
    "convex and smooth": {"loss_class": "convex-smooth", "smoothness": 1.0},
    "strongly convex": {"loss_class": "convex-smooth", "smoothness": 1.0, "strong_convexity": 0.1},
    "a long step": {"loss_class": "convex-smooth", "smoothness": 5.0},
    "convex": {"loss_class": "convex"},
    "smooth": {"loss_class": "smooth", "smoothness": 1.0},
    "lipschitz": {"loss_class": "lipschitz"},
}
SAMPLES: dict[str, Any] = {
    "smoothness": 1.0, "strong_convexity": 0.1, "step_size": 0.25, "diameter": 2.0, "noise_std": 1.0,
    "laplace_scale": 1.0, "holder_exponent": 1.0, "holder_constant": 1.0, "gradient_at_zero": 1.0, "loss_at_zero": 1.0,
    "epochs": 2, "lipschitz": 1.0, "records": 6, "dimension": 1, "steps": 2, "shift": 0.5, "loss": "logistic",
    "feature_bound": 1.0,
}  # fmt: skip
"""What is given where a cure names a parameter and no value."""
PLACED: dict[str, Any] = {
    "records": 21, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 0.1, "diameter": 10.0,
}  # fmt: skip
WORDS = ("algorithm", "release", "loss_class", "noise", "permutation", "last_batch")
"""What takes a word."""
_FLAG = re.compile(
    r"(leave out |in place of |no )?--([a-z-]+)(?: (?:<= )?([0-9][^\s,;]*|[a-z-]+(?=,|;| if| or|$)))?",
)
QUESTION = Question(delta=1e-6, log_delta=math.log(1e-6))
SEVERAL = ("cyclic", "shuffle-once", "rotation-epochs", "shuffled-epochs", "noisy-sgd", "noisy-gd")
CODES = {SpecError: 2, MissingParameter: 2, NotApplicable: 3}


def described(command: str, algorithm: str, loss: str, diameter: float | None, release: str, noise: str) -> Any:
    """What is said of a run, as far as the command and the algorithm take it."""
    told: dict[str, Any] = {
        "records": 6, "lipschitz": 1.0, "step_size": 0.5, noise: 1.0, "epochs": 2, "release": release,
        "diameter": diameter, **LOSSES[loss],
    }  # fmt: skip
    if ALGORITHMS[algorithm].grows:
        del told[noise]
        told.update(noise="gaussian", c1=2.0, c2=1.5, decay_exponent=1.5, index=3)
    if algorithm == "repeated":
        told["epoch_epsilon"] = 0.5
    taken = set(ALGORITHMS[algorithm].parameters) & set(COMMANDS[command].parameters)
    told = {name: value for name, value in told.items() if name in taken and value is not None}
    return {**told, "algorithm": algorithm} if "algorithm" in COMMANDS[command].parameters else told


def pairwise(*factors: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Combinations in which any two values of two factors meet; all the combinations where all cases are run."""
    every = list(itertools.product(*factors))
    if cases(FULL) >= FULL:
        return every
    pairs = {run: set(itertools.combinations(enumerate(run), 2)) for run in every}
    missing, chosen = set().union(*pairs.values()), []
    while missing:
        chosen.append(max(every, key=lambda run: len(pairs[run] & missing)))
        missing -= pairs[chosen[-1]]
    return chosen


def test_any_two_values_meet() -> None:
    factors = (tuple(LOSSES), (None, 2.0), ("last", "epoch"), ("noise_std", "laplace_scale"))
    chosen = pairwise(*factors)
    for (i, some), (j, others) in itertools.combinations(enumerate(factors), 2):
        assert {(run[i], run[j]) for run in chosen} == set(itertools.product(some, others))


def product(algorithms: tuple[str, ...], releases: tuple[str, ...] = ("last", "epoch")) -> Iterator[tuple[str, Any]]:
    """Runs of these algorithms, with the command that answers for each."""
    for command in COMMANDS.values():
        if command.compares or command.prices or command.trains or ALGORITHMS[command.default].chained:
            continue
        for algorithm in (a for a in command.algorithms if a in algorithms):
            record = ALGORITHMS[algorithm]
            own = releases if "release" in record.parameters else ("last",)
            taken = set(record.parameters) & set(command.parameters)
            noises = [n for n in ("noise_std", "laplace_scale") if n in taken] or ["noise_std"]
            for loss, diameter, release, noise in pairwise(tuple(LOSSES), (None, 2.0), own, noises):
                yield command.name, described(command.name, algorithm, loss, diameter, release, noise)


def answered(command: str, told: dict[str, Any]) -> Case:
    case = ask(command, told, QUESTION, notes=False, best_only=True)
    assert case.best is not None
    assert not case.warnings, case.warnings
    return case


def cured(told: dict[str, Any], message: str, cure: str) -> dict[str, Any] | None:
    """The run with what the cure says, typed to the letter; None where it names no flag."""
    changed = dict(told)
    if cure == "give one of the two":
        first = next(name for name in told if name in message)
        return {name: value for name, value in told.items() if name != first}
    left_out = re.match("leave out (--[a-z-]+(?:, --[a-z-]+)*)", cure)
    flags = [("leave out", flag, "") for flag in left_out[1][2:].split(", --")] if left_out else _FLAG.findall(cure)
    for removed, flag, value in flags:
        name = flag.replace("-", "_")
        if removed:
            changed.pop(name, None)
        elif value and (re.match("[0-9]", value) or name in WORDS):
            changed[name] = float(value) if re.match("[0-9]", value) else value
        else:
            changed[name] = SAMPLES[name]
    return changed if flags else None


def follow(command: str, told: dict[str, Any], message: str, cure: str) -> None:
    """Assert that the cure leads to an answer in at most two steps."""
    path = [cure]
    for _ in range(2):
        changed = cured(told, message, path[-1])
        assert changed is not None, (command, told, path)
        told = changed
        try:
            answered(command, told)
            return
        except DpcalcError as error:
            message, cure = error.message, (error.hint or "").split("; the nearest")[0]
            path.append(cure)
    raise AssertionError(f"{command} {told}: {path} leads to no answer")


def check(command: str, told: dict[str, Any]) -> None:
    try:
        case = answered(command, told)
    except DpcalcError as error:
        assert error.exit_code == CODES[type(error)], (command, told)
        assert re.search(r"\([a-z ]*[a-z_]+\.[a-z_]+\)$", error.message), f"{error.message} names no theorem"
        direct, _, nearest = (error.hint or "").partition("; the nearest run that a bound covers has ")
        follow(command, told, error.message, direct)
        flags, value = re.fullmatch(r"(.*), with epsilon ([0-9.e+-]+)", nearest).groups()  # type: ignore[union-attr]
        elsewhere = cured(told, "", flags)
        assert elsewhere is not None
        own = set(ALGORITHMS[elsewhere.get("algorithm", COMMANDS[command].default)].parameters) | {"algorithm"}
        found = answered(command, {name: x for name, x in elsewhere.items() if name in own}).best
        assert found is not None
        assert found.value <= float(value) <= 1.002 * found.value, (command, told, error.hint)
        return
    for obstacle in case.obstacles:
        if "--" in obstacle.hint and "--schedule" not in obstacle.hint:
            follow(command, told, obstacle.because, obstacle.hint)


@pytest.mark.parametrize("algorithm", [a for a in SEVERAL if not a.startswith(("noisy-sgd", "shuffled"))])
def test_several_passes_have_an_answer(algorithm: str) -> None:
    for command, told in product((algorithm,), ("last",)):
        if "laplace_scale" not in told:
            assert answered(command, told).best


@pytest.mark.parametrize("algorithm", ["skip", "local"])
def test_one_pass_is_no_dead_end(algorithm: str) -> None:
    for command, told in product((algorithm,)):
        check(command, told)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "algorithm", [a.name for a in ALGORITHMS.values() if a.name == a.base and not a.chained and not a.clipped]
)
def test_no_run_is_a_dead_end(algorithm: str) -> None:
    runs = list(product((algorithm,)))
    assert len(runs) >= 12
    for command, told in runs:
        check(command, told)


def test_no_chain_is_a_dead_end() -> None:
    """Whatever is left out of it: each refusal names one thing to give, and then the next, up to an answer."""
    whole = {"steps": 2, "shift": 0.5, "contraction": 0.9, "step_size": 0.5}
    for diameter, left_out in itertools.product(({}, {"diameter": 2.0}), (None, *whole)):
        told = {name: value for name, value in {**whole, **diameter, "noise_std": 1.0}.items() if name != left_out}
        for _ in range(3):
            try:
                answered("shifted", told)
                break
            except DpcalcError as error:
                changed = cured(told, error.message, (error.hint or "").split(", or ")[0])
                assert changed is not None, (told, error.message)
                told = changed
        else:
            raise AssertionError(f"{whole} without {left_out}: no answer")


def test_every_pass_over_several_epochs_is_answered_without_assumptions() -> None:
    """Clipped gradients: merely Lipschitz, with a domain and without."""
    for algorithm, diameter in itertools.product(SEVERAL[:3], (None, 2.0)):
        told = described("multi-epoch", algorithm, "lipschitz", diameter, "last", "noise_std")
        assert answered("multi-epoch", told).best


def test_the_nearest_covered_run_is_named_with_its_number() -> None:
    with pytest.raises(MissingParameter) as caught:
        ask(
            "rdp", {"algorithm": "skip", "records": 100, "lipschitz": 1.0, "step_size": 0.5, "noise_std": 1.0}, QUESTION
        )
    assert caught.value.message == "needs smoothness (needed by iteration.skip)"
    assert caught.value.hint == (
        "give --smoothness; for example --smoothness 1; "
        "the nearest run that a bound covers has --algorithm local, with epsilon 11"
    )


NEIGHBOURS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "no --index": ("hockey-stick", {**PLACED, "group_size": 2, "index": 5}, {"index": None}),
    "no --window": (
        "online",
        {"records": 20, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "diameter": 1.0, "c1": 100.0,
         "c2": 100.0, "decay_exponent": 1.5, "group_size": 2, "window": 0},
        {"window": None},
    ),
    "--adjacency null-record": (
        "unlearn",
        {"start_distance": 0.4, "contraction": 0.9, "step_size": 0.01, "noise_std": 0.2, "clean_steps": 3,
         "adjacency": "replace-one"},
        {"adjacency": "null-record"},
    ),
}  # fmt: skip
"""What is named of the nearest run -> a question that nothing answers, and what changes."""


@pytest.mark.parametrize("named", NEIGHBOURS)
def test_other_neighbours_are_named_with_their_number(named: str) -> None:
    command, told, changes = NEIGHBOURS[named]
    with pytest.raises(NotApplicable) as caught:
        ask(command, told, QUESTION)
    _, _, nearest = str(caught.value.hint).partition("; the nearest run that a bound covers has ")
    flags, _, value = nearest.partition(", with epsilon ")
    assert flags == named
    best = answered(command, {**told, **changes}).best
    assert best is not None
    assert best.value <= float(value) <= 1.002 * best.value


def hiding(**told: Any) -> list[HidingPays]:
    base = {"records": 1000, "batch_size": 10, "lipschitz": 1.0, "step_size": 0.1, "noise_std": 1.0, "epochs": 5}
    case = ask("compare", {**base, **told}, QUESTION)
    return [note for note in case.note_data if isinstance(note, HidingPays)]


def test_a_comparison_says_from_when_on_hiding_helps() -> None:
    """2 D b^2/(eta L) passes for Lipschitz losses, 2 D n/(eta L) steps or so for batches of convex smooth ones."""
    [note] = hiding(algorithm="cyclic", loss_class="lipschitz", diameter=2.0)
    assert note.bound == "expanding.domain"
    assert 4000 <= note.value <= 4250
    [note] = hiding(algorithm="shuffle-once", loss_class="lipschitz", diameter=2.0)
    assert 4000 <= note.value <= 4250
    [note] = hiding(algorithm="noisy-sgd", smoothness=1.0, diameter=2.0, epochs=2)
    assert note.bound == "noisy_sgd.hidden"
    assert note.about
    assert 300 <= note.value <= 500
    assert not hiding(algorithm="cyclic", smoothness=1.0, diameter=2.0)
    assert not hiding(algorithm="cyclic", loss_class="lipschitz", diameter=2.0, epochs=5000)


def test_hiding_helps_from_the_number_said_on() -> None:
    base = {"algorithm": "cyclic", "records": 100, "batch_size": 5, "lipschitz": 1.0, "step_size": 0.1}
    told = {**base, "noise_std": 1.0, "loss_class": "convex", "diameter": 1.0}
    [note] = hiding(**told)
    for epochs, helps in ((note.value, True), (round(note.value / 1.05), False)):
        best = answered("compare", {**told, "epochs": epochs}).best
        assert best is not None
        values = {r.bound: r.value for r in ask("compare", {**told, "epochs": epochs}, QUESTION, notes=False).results}
        assert (values["expanding.domain"] < 0.999 * values["multi_epoch.composition"]) is helps
