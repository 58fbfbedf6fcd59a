"""Whole questions, asked through the front door and certified: what a user sees, with all that lies between.

The inputs are the user's (lipschitz, step_size, ...), so that what follows from them is checked as well: sensitivities,
displacement factors, tuned schedules, conversions, and what is solved for.
"""

import math
import random
from collections.abc import Callable
from typing import Any

from dpcalc.certify.case import certify
from dpcalc.certify.table import definitions
from dpcalc.engine.answer import answer
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.theorems.record import Theorem, for_algorithm, without_definition
from tests.oracles import log_uniform, position, whole

QUESTION = ("epsilon", "delta", "orders", "solve")
_KINDS = ("epsilon", "epsilon", "delta", "noise", "mu", "rdp", "solve")


def _few(r: random.Random) -> int:
    return whole(r, 1, r.choice((1, 3, 20, 60)))


def _many(r: random.Random) -> int:
    return whole(r, 1, r.choice((1, 100, 10**6, 10**15)))


def _typed(r: random.Random, low: float, high: float) -> float:
    """A number as people type it, or any."""
    x = log_uniform(r, low, high)
    return float(f"{x:.{r.randint(0, 3)}g}") if r.random() < 0.7 else x


def _losses(r: random.Random) -> dict[str, Any]:
    beta = r.choice((0.1, 0.2, 0.3, 1.0, 3.0, _typed(r, 0.1, 10.0)))
    step = r.choice((2.0 / beta, 1.0 / beta, 0.1 / beta, _typed(r, 0.01, 1.9) / beta))
    given = {"lipschitz": _typed(r, 0.1, 10.0), "smoothness": beta, "step_size": step}
    if r.random() < 0.5:
        given["strong_convexity"] = beta * r.choice((1.0, 0.1, r.random()))
    if r.random() < 0.5:
        given["diameter"] = step * _typed(r, 0.1, 30.0)
    return given


def _pass(count: Callable[[random.Random], int], **flags: bool) -> Callable[[random.Random], dict[str, Any]]:
    def draw(r: random.Random) -> dict[str, Any]:
        n = count(r)
        given = {"records": n, **_losses(r)}
        if flags.get("index"):
            given["index"] = position(r, n)
        if flags.get("batches") and r.random() < 0.4:
            given["batch_size"] = whole(r, 1, n)
        if flags.get("epochs"):
            given["epochs"] = whole(r, 1, r.choice((1, 10, 1000)))
        if flags.get("steps"):
            given["steps"] = whole(r, 1, r.choice((1, 10, 10**6)))
        return given

    return draw


RUNS: dict[str, Callable[[random.Random], dict[str, Any]]] = {
    "pnsgd": _pass(_few, index=True, batches=True),
    "skip": _pass(_many, index=True),
    "stop": _pass(_few, index=True),
    "local": _pass(_many, index=True, batches=True),
    "shuffled": _pass(_few, batches=True),
    "rotation": _pass(_few),
    "shuffled-stop": _pass(_few),
    "cyclic": _pass(_many, index=True, batches=True, epochs=True),
    "cyclic-released": _pass(_few, index=True, epochs=True),
    "rotation-epochs": _pass(_few, batches=True, epochs=True),
    "noisy-gd": _pass(_many, steps=True),
}


def draw(algorithm: str, r: random.Random) -> dict[str, Any]:
    """Return a run and a question about it, as flags."""
    given = RUNS[algorithm](r)
    if r.random() < 0.3 and algorithm != "cyclic-released":
        given["adjacency"] = "null-record"
    kind = r.choice(_KINDS)
    noise = "laplace_scale" if algorithm in ("shuffled", "stop", "pnsgd") and r.random() < 0.25 else "noise_std"
    if kind != "noise":
        given[noise] = given["lipschitz"] * _typed(r, 0.1, 10.0)
    elif noise == "laplace_scale":
        given["noise"] = "laplace"
    if kind in ("epsilon", "noise", "solve"):
        given["delta"] = r.choice((1e-5, 1e-6, 0.1, _typed(r, 1e-12, 0.5), log_uniform(r, 1e-300, 1e-12)))
    if kind in ("delta", "noise", "solve"):
        given["epsilon"] = r.choice((1.0, 0.5, _typed(r, 0.01, 10.0), log_uniform(r, 1e-6, 50.0)))
    if kind == "rdp":
        given["orders"] = (1.0 + _typed(r, 0.01, 100.0),)
    if kind == "solve":
        names = [name for name in ("lipschitz", "index", "epochs") if name in given]
        given["solve"] = r.choice(names)
        del given[given["solve"]]
        if given["solve"] == "lipschitz":
            given[noise] = _typed(r, 0.1, 10.0)
    return given


def bounds_of(algorithm: str) -> list[Theorem]:
    """Return the bounds that are asked: those that are certifiable within a second."""
    return [b for b in for_algorithm(algorithm) if b.id in definitions() and definitions()[b.id].weight < 10_000.0]


def answered(algorithm: str, values: dict[str, Any]) -> tuple[int, int]:
    """Return how many guarantees of the answer are proved, and how many are open.

    Raises:
        Disproved: one is below the truth.
        DpcalcError: there is no answer.
    """
    given = {name: value for name, value in values.items() if name not in QUESTION}
    delta = values.get("delta")
    question = Question(
        values.get("epsilon"), delta, math.log(delta) if delta else None, values.get("orders", ()), values.get("solve")
    )
    run = describe(algorithm, given)
    case = certify(answer(run, question, bounds_of(algorithm)), run, question, without_definition())
    answers = [result.details or {} for result in case.results if result.guarantee]
    failed = [obstacle.because for obstacle in case.obstacles] + [
        str(details.get("not_certified")) for details in answers
    ]
    assert not any(text.startswith("failed: ") for text in failed), (failed, values)
    return sum("certified" in details for details in answers), sum("not_certified" in details for details in answers)
