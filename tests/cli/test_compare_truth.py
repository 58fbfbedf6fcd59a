"""For every algorithm, no guarantee of `compare` is below the truth, and no value it solves for misses the budget.

The truth is worked out by brute force: every order, stop or batch of a small run on an interval, with the exact laws of
`tests.oracles.chains`; closed forms of linear and quadratic losses; exact sums. All is asked by the front door.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcalc.engine.commands import COMMANDS
from dpcalc.errors import Infeasible, NotApplicable, SpecError
from dpcalc.model.algorithm import ALGORITHMS, Length
from tests.oracles import draws, log_uniform, pld
from tests.oracles.chains import (
    LOSS_CLASSES,
    Case,
    constant,
    random_case,
)
from tests.truth.asking import flags, front, promised
from tests.truth.laws import (
    RELEASED,
    SAMPLED,
    SMOOTH,
    SPRINGS,
    WIDE,
    Runs,
    Truth,
    after_a_reset,
    average_and_noise,
    clipped_steps,
    described,
    every_full_batch,
    first_of_linear,
    full_batches,
    of_laplace,
    one_message,
    optimal,
    ratio,
    sampled_steps,
    stream_scale,
    stream_truths,
    together,
)

LAST_BATCHES = ("own", "nominal", "drop", "balanced", "front")


# --- small runs ------------------------------------------------------------------------------------------------------


def weaker(r: random.Random, told: dict[str, Any]) -> dict[str, Any]:
    """The same run, of which less is said."""
    told = dict(told)
    kind = r.randrange(3)
    if kind == 0 and "loss_class" in told:
        told.update(loss_class="lipschitz", strong_convexity=None, smoothness=None)
    elif kind == 1:
        told["diameter"] = None
    else:
        told["strong_convexity"] = None
    return told


def check(algorithm: str, told: dict[str, Any], epsilons: Sequence[float], truths: Any, secret: bool = False) -> int:
    """Nothing promised is below the truth: delta at every epsilon, and epsilon at one of the true deltas."""
    count = 0
    for epsilon, (truth, error) in zip(epsilons, truths, strict=True):
        floor = (truth - 2.0 * error) * (1.0 - 1e-8)
        what = f"{flags(algorithm, told)} -e {epsilon!r}: truth {truth!r}"
        try:
            answers = promised(front(algorithm, told, epsilon=epsilon), secret)
        except (NotApplicable, Infeasible):
            continue
        for result in answers:
            assert floor <= result.value, f"{what}, {result.bound} says {result.value!r}"
            count += 1
        if not 1e-250 < floor < 1.0 or epsilon != sorted(epsilons)[len(epsilons) // 2]:
            continue
        try:
            answers = promised(front(algorithm, told, delta=floor), secret)
        except (NotApplicable, Infeasible):
            continue
        for result in answers:
            assert epsilon * (1.0 - 1e-12) <= result.value, f"{what}, {result.bound} says epsilon {result.value!r}"
    return count


SMALL = {
    "pnsgd": (1, 2, 3, 4, 6),
    "skip": (1, 2, 3, 4, 6),
    "stop": (1, 2, 4, 6),
    "shuffled": (1, 2, 3, 4),
    "rotation": (2, 3, 4, 6),
    "shuffled-stop": (2, 3, 4),
    "cyclic": (1, 2, 3, 4),
    "shuffle-once": (2, 3, 4),
    "rotation-epochs": (2, 3, 4, 6),
    "shuffled-epochs": (2, 3),
    "noisy-sgd": (2, 3, 4),
    "noisy-gd": (1, 2, 5),
    "cyclic-released": (1, 2, 3),
    "shuffle-once-released": (2, 3),
    "rotation-epochs-released": (2, 3),
    "shuffled-epochs-released": (2, 3),
    "noisy-sgd-released": (2, 3),
    "noisy-gd-released": (1, 3),
}
OFTEN = {
    "rotation": 8, "shuffled": 8, "shuffle-once": 8, "shuffled-epochs": 8, "shuffled-epochs-released": 1,
    "cyclic-released": 5,
}  # fmt: skip

SINGLE = ("skip", "stop", "shuffled-stop", "noisy-gd", "noisy-gd-released")
SLOW = ("shuffled-epochs-released",)
SECRET = ("shuffled", "shuffle-once", "shuffled-epochs", "shuffle-once-released", "shuffled-epochs-released")
NO_LAPLACE = ("skip", "noisy-sgd", "noisy-gd", "noisy-sgd-released", "noisy-gd-released", "cyclic", "shuffle-once",
              "rotation-epochs", "shuffled-epochs", "shuffle-once-released", "rotation-epochs-released")  # fmt: skip


def small_run(r: random.Random, algorithm: str) -> tuple[Case, dict[str, Any]]:
    """A run of this algorithm, of a class and with noise that it has bounds for, often with a short last batch."""
    name = algorithm.removesuffix(RELEASED)
    noise = "gaussian" if algorithm in NO_LAPLACE or r.random() < 0.5 else "laplace"
    hidden_maps = algorithm in NO_LAPLACE and not algorithm.endswith(RELEASED)
    loss_class = "convex-smooth" if hidden_maps or r.random() < 0.4 else r.choice(LOSS_CLASSES)
    case = random_case(r, noise, loss_class, r.choice(SMALL[algorithm]))
    case = replace(case, epsilons=(0.0, log_uniform(r, 0.05, 0.5), log_uniform(r, 0.5, 3.0)))
    more: dict[str, Any] = {}
    if r.random() < 0.25:
        case, more = replace(case, x_prime=constant(0.0, case.low, case.high)), {"adjacency": "null-record"}
    if algorithm not in SINGLE:
        more["batch_size"] = r.choice((1, 2, 2, 3))
        if name.startswith("noisy"):
            more["batch_size"] = min(more["batch_size"], case.records)
        else:
            more["last_batch"] = r.choice(LAST_BATCHES)
    if name in ("noisy-sgd", "noisy-gd"):
        more["steps"] = r.choice((1, 2) if algorithm == "noisy-sgd-released" else (1, 2, 3, 6))
        if algorithm == "noisy-gd-released":
            more["steps"] = min(more["steps"], 2)
    elif algorithm.endswith(RELEASED):
        more["epochs"] = 2
    elif ALGORITHMS[name].length is Length.PASSES:
        more["epochs"] = r.choice((1, 2, 3)) if name != "shuffled-epochs" or case.records == 2 else r.choice((1, 2))
    return case, described(case, algorithm, **more)


@pytest.mark.few(5)
@pytest.mark.parametrize("algorithm", SMALL)
def test_no_small_run_is_less_private(algorithm: str) -> None:
    count = 0
    for r in draws(f"front door {algorithm}", OFTEN.get(algorithm, 12), 2000):
        case, told = small_run(r, algorithm)
        runs = Runs(case, algorithm, told)
        truths = runs.truths(True)
        count += check(algorithm, told, case.epsilons, truths)
        if algorithm not in SLOW:
            count += check(algorithm, weaker(r, told), case.epsilons, truths)
        if algorithm in SECRET:
            hidden = {**told, "permutation": "secret"}
            truths = runs.truths(False)
            count += check(algorithm, hidden, case.epsilons, truths)
            count += check(algorithm, {**told, "permutation": "public"}, case.epsilons, truths, True)
    assert count


def test_every_algorithm_has_its_truth() -> None:
    covered = {name.removesuffix(RELEASED) for name in SMALL} | {"local", "repeated", "online"}
    covered |= {algorithm.removesuffix(RELEASED) for algorithm, *_ in CLOSED}
    # Correlated noise has no order of records to enumerate: tests/theorems/test_correlated.py.
    assert covered == {*COMMANDS["compare"].algorithms} - {"correlated"}


@pytest.mark.parametrize("algorithm", ["pnsgd", "cyclic", "cyclic-released"])
def test_how_a_short_batch_is_treated_matters_only_where_there_is_one(algorithm: str) -> None:
    told: dict[str, Any] = {"records": 3, "batch_size": 2, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.5}
    told.update(noise_std=1.0, index=1)
    with pytest.raises(SpecError, match="dropped in every pass"):
        front(algorithm, {**told, "last_batch": "drop", "index": 3}, epsilon=1.0)
    for last in LAST_BATCHES[1:]:
        for size in (1, 3):
            values = [
                front(algorithm, {**told, "batch_size": size, "last_batch": x}, epsilon=1.0) for x in (None, last)
            ]
            assert values[0].best.value == values[1].best.value  # type: ignore[union-attr]
    assert front(algorithm, {**told, "last_batch": "own"}, epsilon=1.0).best is not None


def test_how_many_records_is_not_asked_where_one_more_may_break_the_budget() -> None:
    """The worst record of a pass moves into ever other last batches: 8 records may do where 9 do not."""
    told = {**SMOOTH, "batch_size": 4}
    epsilons = [front("pnsgd", {**told, "records": n}, delta=1e-2).best.value for n in (8, 9)]  # type: ignore[union-attr]
    assert epsilons[0] < epsilons[1]
    with pytest.raises(SpecError, match="a short last batch"):
        front("pnsgd", told, epsilon=1.01 * epsilons[0], delta=1e-2, solve="records")


# --- a stream ---------------------------------------------------------------------------------------------------------


def stream_run(r: random.Random) -> tuple[Case, dict[str, Any]]:
    case = random_case(r, None, "convex-smooth", r.choice((1, 2, 3, 5)))
    told = described(
        case, "online", noise=case.noise, c1=log_uniform(r, 0.5, 30.0), c2=log_uniform(r, 1.2, 20.0),
        decay_exponent=r.uniform(1.1, 2.5), schedule_factor=r.choice((None, 0.9, 1.25)), index=case.index,
    )  # fmt: skip
    for name in ("noise_std", "laplace_scale"):
        told.pop(name, None)
    return case, told


def test_no_stream_is_less_private() -> None:
    count = 0
    for r in draws("front door online", 6, 2000):
        case, told = stream_run(r)
        if stream_scale(told, 1) * case.step_size < 0.02 * case.diameter:
            continue  # too fine for the grid
        count += check("online", told, case.epsilons, stream_truths(case, told))
    assert count > 20


# --- closed forms -----------------------------------------------------------------------------------------------------


LAPLACE = {**SMOOTH, "noise_std": None, "laplace_scale": 1.0}
CLIPPED = {"records": 2, "batch_size": 1, "epochs": 1, "noise_multiplier": 1.0}
CLOSED: list[tuple[str, dict[str, Any], Truth, float]] = [
    ("pnsgd", {**SMOOTH, "records": 5, "index": 1}, first_of_linear, 1e-9),
    ("pnsgd", {**SMOOTH, "records": 6, "index": 2, "batch_size": 3}, first_of_linear, 1e-9),
    ("pnsgd", {**SMOOTH, "smoothness": 2.0, "records": 5, "index": 3}, after_a_reset, 1e-9),
    ("pnsgd", {**SMOOTH, "smoothness": 2.0, "records": 5, "index": 3, "batch_size": 2}, after_a_reset, 1e-9),
    ("pnsgd", {**SMOOTH, "smoothness": 2.0, "records": 5, "batch_size": 2}, after_a_reset, 1e-9),
    ("pnsgd", {**LAPLACE, "records": 1, "index": 1}, of_laplace, math.inf),
    ("local", {"lipschitz": 0.75, "noise_std": 1.5}, one_message, 1e-9),
    ("cyclic", {**SMOOTH, "records": 5, "index": 1, "epochs": 7}, first_of_linear, 1e-9),
    ("cyclic", {**SMOOTH, "records": 6, "index": 2, "batch_size": 2, "epochs": 40}, first_of_linear, 1e-9),
    ("cyclic-released", {**SMOOTH, "records": 5, "index": 1, "epochs": 7}, first_of_linear, 1e-9),
    ("cyclic-released", {**SMOOTH, "records": 6, "index": 2, "batch_size": 2, "epochs": 3}, first_of_linear, 1e-9),
    ("noisy-gd", {**SMOOTH, "records": 3, "steps": 20}, full_batches, 1e-9),
    ("noisy-gd", {**SPRINGS, "records": 3, "steps": 20}, full_batches, 1e-9),
    ("noisy-gd", {**SPRINGS, "records": 1, "epochs": 2, "batch_size": None}, full_batches, 1e-9),
    ("noisy-gd-released", {**SPRINGS, "records": 3, "steps": 20}, every_full_batch, 1e-9),
    ("noisy-sgd-released", {**SMOOTH, "records": 4, "batch_size": 1, "steps": 6}, sampled_steps, math.inf),
    ("noisy-sgd-released", {**SMOOTH, "records": 4, "batch_size": 2, "steps": 1}, sampled_steps, 0.05),
    ("noisy-sgd-released", {**SMOOTH, "records": 5, "batch_size": 2, "steps": 12}, sampled_steps, math.inf),
    ("noisy-sgd-released", {**SMOOTH, "records": 100, "batch_size": 1, "steps": 7}, sampled_steps, math.inf),
    ("noisy-sgd-released", {**SMOOTH, "records": 2, "batch_size": 2, "steps": 4}, sampled_steps, 5e-3),
    ("noisy-sgd", {**SMOOTH, "records": 2, "batch_size": 2, "steps": 4}, every_full_batch, 2e-3),
    ("dp-sgd", {**CLIPPED, "sampling": "poisson", "adjacency": "remove"}, clipped_steps, 0.05),
    ("dp-sgd", {**CLIPPED, "sampling": "fixed", "adjacency": "replace-one"}, clipped_steps, math.inf),
    (
        "dp-sgd",
        {**CLIPPED, "batch_size": 2, "sampling": "with-replacement", "adjacency": "remove"},
        clipped_steps,
        0.01,
    ),
    ("dp-sgd", {**CLIPPED, "sampling": "balls-in-bins", "adjacency": "add-remove"}, clipped_steps, 0.1),
    ("dp-sgd-gradient", {**SAMPLED, "records": 4, "batch_size": 1, "steps": 6}, sampled_steps, math.inf),
    ("dp-sgd-gradient", {**SAMPLED, "records": 5, "batch_size": 2, "steps": 1}, sampled_steps, 0.05),
    ("dp-sgd-output", {**SAMPLED, **WIDE, "noise_std": 0.3, "records": 3, "steps": 5}, average_and_noise, math.inf),
    ("dp-sgd-output", {**SAMPLED, **WIDE, "noise_std": 1.0, "records": 1, "steps": 9}, average_and_noise, math.inf),
    ("repeated", {"epochs": 1, "epoch_epsilon": 0.3, "epoch_delta": 1e-3}, optimal, 1e-9),
    ("repeated", {"epochs": 9, "epoch_epsilon": 0.3, "epoch_delta": 1e-6}, optimal, 1e-9),
    ("repeated", {"epochs": 60, "epoch_epsilon": 0.05}, optimal, 1e-9),
]


LONGER: list[tuple[str, dict[str, Any], Truth, float]] = [
    ("pnsgd", {**LAPLACE, "records": 4, "index": 1}, of_laplace, math.inf),
    ("noisy-sgd-released", {**SMOOTH, "records": 100, "batch_size": 1, "steps": 60}, sampled_steps, math.inf),
]


@pytest.mark.few(9)
@pytest.mark.parametrize(
    ("algorithm", "told", "truth", "near"),
    [*CLOSED, *(pytest.param(*run, marks=pytest.mark.campaign) for run in LONGER)],
)
def test_closed_forms(ask_json: Any, algorithm: str, told: dict[str, Any], truth: Truth, near: float) -> None:
    for epsilon in (0.0, 0.2, 1.0):
        value = truth(told, epsilon)
        [case] = ask_json(f"{flags(algorithm, told)} -e {epsilon!r}")
        best = math.inf
        for result in case["results"]:
            if result["kind"] in ("upper", "exact"):
                assert result["value"] >= value * (1.0 - 1e-12), (result["bound"], epsilon, value)
                best = min(best, result["value"])
        assert best <= value * (1.0 + near) + 1e-15, (epsilon, value, best)
        if truth(told, epsilon + 1e-6) >= value * (1.0 - 1e-9):
            continue  # no epsilon is the least
        [case] = ask_json(f"{flags(algorithm, told)} -d {value!r}")
        found = [result["value"] for result in case["results"] if result["kind"] in ("upper", "exact")]
        assert min(found) >= epsilon * (1.0 - 1e-9) - 1e-12
        assert near > 0.1 or min(found) <= epsilon * (1.0 + near) + 1.5 * near, (epsilon, value, min(found))


def test_steps_on_batches_are_as_good_as_their_composition() -> None:
    """No pair of runs attains the composed curve for one step at every epsilon; above it nothing is lost."""
    for n, size, steps, epsilon in ((4, 1, 6, 1.0), (5, 2, 30, 1.0), (100, 1, 60, 0.2)):
        told = {**SMOOTH, "records": n, "batch_size": size, "steps": steps}
        loss = pld.subsampled(ratio(told), size / n)  # half a cell, so that it is rounded to the nearest
        value = together(loss.nodes + 2e-4, np.exp(loss.log_weights), steps, epsilon)
        found = front("noisy-sgd-released", told, epsilon=epsilon).best
        assert found is not None
        assert value * 0.999 <= found.value <= value * 1.01


# --- what is solved for -----------------------------------------------------------------------------------------------

TIGHT: list[tuple[str, dict[str, Any], str, Truth, float, float]] = [
    ("pnsgd", {**SMOOTH, "index": 1}, "records", first_of_linear, 0.3, 1e-3),
    ("pnsgd", {**SMOOTH, "index": 1, "batch_size": 3}, "records", after_a_reset, 0.2, 1e-3),
    ("pnsgd", {**SMOOTH, "smoothness": 2.0, "records": 40}, "index", after_a_reset, 0.3, 1e-2),
    ("pnsgd", {**SMOOTH, "smoothness": 2.0, "records": 41, "batch_size": 3}, "index", after_a_reset, 0.3, 1e-3),
    ("pnsgd", {**SMOOTH, "records": 24, "index": 17}, "batch_size", after_a_reset, 0.1, 1e-3),
    ("pnsgd", {**SMOOTH, "records": 24}, "batch_size", after_a_reset, 0.1, 1e-3),
    ("pnsgd", {**SMOOTH, "records": 5, "index": 1, "lipschitz": None}, "lipschitz", first_of_linear, 0.5, 1e-4),
    ("pnsgd", {**SMOOTH, "records": 5, "index": 1, "noise_std": None}, "noise_std", first_of_linear, 0.5, 1e-4),
    ("local", {"lipschitz": 0.75}, "noise_std", one_message, 1.0, 1e-5),
    ("local", {"noise_std": 0.75}, "lipschitz", one_message, 1.0, 1e-5),
    ("cyclic", {**SMOOTH, "records": 50, "index": 1}, "epochs", first_of_linear, 1.0, 1e-3),
    ("cyclic", {**SMOOTH, "records": 50, "index": 1, "batch_size": 5}, "epochs", first_of_linear, 1.0, 1e-3),
    ("cyclic", {**SMOOTH, "epochs": 9, "index": 1}, "records", first_of_linear, 0.5, 1e-3),
    ("cyclic-released", {**SMOOTH, "records": 50, "index": 1}, "epochs", first_of_linear, 1.0, 1e-3),
    ("cyclic-released", {**SMOOTH, "epochs": 9, "index": 1}, "records", first_of_linear, 0.5, 1e-3),
    ("noisy-gd", {**SMOOTH, "records": 20}, "steps", full_batches, 0.7, 1e-3),
    ("noisy-gd", {**SMOOTH, "records": 20}, "epochs", full_batches, 0.7, 1e-3),
    ("noisy-gd", {**SPRINGS, "steps": 7}, "records", full_batches, 0.3, 1e-3),
    ("noisy-gd", {**SPRINGS, "records": 4, "steps": 7, "noise_std": None}, "noise_std", full_batches, 0.3, 1e-3),
    ("noisy-gd", {**SMOOTH, "records": 8, "steps": 30}, "strong_convexity", full_batches, 1.0, 1e-2),
    ("noisy-gd-released", {**SMOOTH, "records": 20}, "steps", every_full_batch, 0.7, 1e-3),
    ("repeated", {"epoch_epsilon": 0.1, "epoch_delta": 1e-6}, "epochs", optimal, 1.0, 1e-4),
    ("repeated", {"epoch_epsilon": 0.4}, "epochs", optimal, 3.0, 1e-3),
]
WHOLE = ("records", "index", "batch_size", "epochs", "steps")
RISING = ("index", "epochs", "steps", "lipschitz")


@pytest.mark.parametrize(("algorithm", "told", "name", "truth", "epsilon", "delta"), TIGHT)
def test_what_is_solved_for_is_the_truth(
    ask_json: Any, algorithm: str, told: dict[str, Any], name: str, truth: Truth, epsilon: float, delta: float
) -> None:
    """Where a bound is attained, its solution meets the budget and the next value, which asks for less, does not."""
    solve = "" if name == "noise_std" else f"--solve {name.replace('_', '-')}"
    [case] = ask_json(f"{flags(algorithm, told)} -e {epsilon!r} -d {delta!r} {solve}")
    best = next(result for result in case["results"] if result["best"])
    value = best["value"]
    assert best["quantity"] == name
    assert truth({**told, name: value}, epsilon) <= delta
    for result in case["results"]:
        if result["kind"] in ("upper", "exact"):
            assert truth({**told, name: result["value"]}, epsilon) <= delta, result
    further = 1 if name in RISING else -1
    if name == "batch_size":
        cheaper = max(b for b in range(1, value) if told["records"] % b == 0)
    else:
        cheaper = value + further if name in WHOLE else value * (1.0 + further * 1e-8)
    assert truth({**told, name: cheaper}, epsilon) > delta
    if name == "index":  # every record up to there
        assert all(truth({**told, name: i}, epsilon) <= delta for i in range(1, value + 1))


BOUNDED = {"lipschitz": 1.0, "smoothness": 1.0, "step_size": 1.0, "noise_std": 1.0, "diameter": 2.5}
CURVED = {**BOUNDED, "strong_convexity": 0.25}
BACK: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("pnsgd", {**CURVED, "records": 4, "index": 2}, ("diameter", "strong_convexity", "step_size", "records", "index")),
    ("skip", {**CURVED, "records": 4, "index": 2}, ("diameter", "lipschitz")),
    ("stop", {**CURVED, "records": 4, "index": 2}, ("diameter", "lipschitz", "strong_convexity")),
    ("shuffled", {**CURVED, "records": 4}, ("diameter", "lipschitz", "strong_convexity", "records", "step_size")),
    ("rotation", {**CURVED, "records": 4}, ("diameter", "lipschitz", "records")),
    ("shuffled-stop", {**CURVED, "records": 3}, ("diameter", "lipschitz", "records")),
    ("cyclic", {**CURVED, "records": 3, "index": 2, "epochs": 3}, ("diameter", "epochs", "strong_convexity", "index")),
    ("shuffle-once", {**CURVED, "records": 3, "epochs": 2}, ("diameter", "epochs", "lipschitz", "records")),
    ("shuffled-epochs", {**CURVED, "records": 3, "epochs": 2}, ("diameter", "epochs", "lipschitz")),
    ("noisy-gd", {**BOUNDED, "records": 3, "steps": 12}, ("diameter", "step_size", "steps", "records")),
    ("noisy-sgd", {**BOUNDED, "noise_std": 2.0, "records": 3, "steps": 2}, ("diameter", "steps")),
    ("noisy-sgd", {**BOUNDED, "noise_std": 2.0, "records": 3, "steps": 12}, ("diameter", "steps")),
    ("cyclic-released", {**CURVED, "records": 3, "index": 1, "epochs": 2}, ("diameter", "lipschitz", "index")),
    ("shuffle-once-released", {**CURVED, "records": 3, "epochs": 2}, ("lipschitz",)),
]
