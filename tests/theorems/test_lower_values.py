"""No lower value is above any guarantee of the same question: whole questions about random runs of every algorithm."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from dpcalc.engine.answer import answer
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.errors import BoundFailed, DpcalcError
from dpcalc.model.question import Question
from dpcalc.model.run import describe
from dpcalc.report import Case, Result
from dpcalc.theorems.record import all_bounds, for_algorithm
from tests.oracles import draws, log_uniform, position, whole

SPOKEN_OF = sorted({name for bound in all_bounds().values() if bound.kind == "lower" for name in bound.algorithms})
PLACED = ("pnsgd", "skip", "stop", "local", "cyclic", "cyclic-released")
COMPOSED = tuple(name for name in SPOKEN_OF if any(bound.notion == "parts" for bound in for_algorithm(name)))
KINDS = ("epsilon", "delta", "noise_std", "mu", "rdp", "solved")


def drawn(algorithm: str, kind: str, r: random.Random) -> dict[str, Any]:
    """A run, without its noise where that is asked."""
    small = algorithm in COMPOSED or algorithm.startswith(("shuffle", "rotation"))
    n = whole(r, 1, r.choice((1, 3, 8) if algorithm in COMPOSED else (1, 3, 20, 60 if small else 3000)))
    beta = r.choice((1.0, 4.0, log_uniform(r, 0.1, 10.0)))
    given: dict[str, Any] = {
        "records": n,
        "lipschitz": r.choice((1.0, log_uniform(r, 0.1, 10.0))),
        "smoothness": beta,
        "step_size": r.choice((2.0, 1.0, 0.1, r.uniform(0.01, 1.9))) / beta,
        "adjacency": r.choice(("replace-one", "null-record")),
    }
    if kind != "noise_std":
        given["noise_std"] = log_uniform(r, *((0.3, 5.0) if algorithm in COMPOSED else (0.01, 100.0)))
    if r.random() < 0.4:
        given["strong_convexity"] = beta * r.choice((1.0, 0.5, r.uniform(0.001, 1.0)))
    if r.random() < 0.1:
        given["diameter"] = log_uniform(r, 0.1, 10.0)
    if algorithm in PLACED and r.random() < 0.7:
        given["index"] = position(r, n)
    if algorithm not in ("skip", "stop", "shuffled-stop") and not algorithm.startswith("noisy-gd"):
        given["batch_size"] = r.choice((1, whole(r, 1, n)))
    if algorithm.startswith(("cyclic", "shuffle-once", "rotation-epochs", "shuffled-epochs")):
        given["epochs"] = whole(r, 1, r.choice((1, 3, 3 if algorithm in COMPOSED else 30)))
    if algorithm.startswith("noisy"):
        given["steps"] = whole(r, 1, r.choice((1, 3, 8 if algorithm in COMPOSED else 30)))
    if algorithm.startswith(("shuffle", "rotation", "cyclic", "pnsgd")) and algorithm != "shuffled-stop":
        given["last_batch"] = r.choice(("own", "nominal", "drop", "balanced", "front"))
    if algorithm.startswith("shuffle"):
        given["permutation"] = r.choice(("public", "secret"))
    return given


def asked(kind: str, given: dict[str, Any], r: random.Random) -> Question:
    """A question of this kind about the run; what is solved for is taken out of it."""
    epsilon = r.choice((1.0, 0.5, log_uniform(r, 1e-3, 20.0)))
    delta = r.choice((1e-5, 1e-6, 0.1, log_uniform(r, 1e-30, 0.5)))
    both = {"epsilon": epsilon, "delta": delta, "log_delta": math.log(delta)}
    if kind == "epsilon":
        return Question(**{**both, "epsilon": None})
    if kind == "delta":
        return Question(epsilon=r.choice((0.0, epsilon)))
    if kind == "noise_std":
        return Question(**both)
    if kind == "rdp":
        return Question(orders=(r.choice((1.0, 2.0, 1.5, 32.0, 1.0 + log_uniform(r, 1e-6, 1e3))),))
    if kind == "mu":
        return Question()
    solve = r.choice([name for name in ("lipschitz", "index", "epochs", "steps") if name in given])
    del given[solve]
    return Question(**both, solve=solve)


def size(result: Result) -> float:
    """What is larger the less private it is."""
    if result.quantity == "delta":
        assert result.log_delta is not None
        return result.log_delta
    maximised = result.quantity in DIRECTIONS and not DIRECTIONS[result.quantity].more_is_private
    return -result.value if maximised else result.value


def pairs(case: Case) -> Iterator[tuple[Result, Result]]:
    """Every lower value with every guarantee of the same question."""
    for low in case.results:
        for high in case.results:
            if low.kind == "lower" and high.guarantee:
                yield low, high


def answered(algorithm: str, kind: str, r: random.Random) -> tuple[Case | None, str]:
    given = drawn(algorithm, kind, r)
    question = asked(kind, given, r)
    what = f"{algorithm} {given!r} {question!r}"
    try:
        return answer(describe(algorithm, given), question), what
    except BoundFailed:
        raise
    except DpcalcError:
        return None, what


def tiers() -> Iterator[Any]:
    """Every algorithm with every kind of question; what searches through compositions is left to the campaign."""
    for algorithm in SPOKEN_OF:
        for kind in KINDS:
            searched = (
                (*COMPOSED, "shuffled-epochs") if kind in ("noise_std", "solved") else ("shuffled-epochs-released",)
            )
            slow = algorithm in searched
            yield pytest.param(algorithm, kind, marks=pytest.mark.campaign if slow else ())


@pytest.mark.parametrize(("algorithm", "kind"), list(tiers()))
def test_no_lower_value_is_above_a_guarantee(algorithm: str, kind: str) -> None:
    default, cost = (1, 2000) if algorithm in COMPOSED else (6, 200)
    for r in draws(f"lower values {algorithm} {kind}", default, cost):
        case, what = answered(algorithm, kind, r)
        for low, high in pairs(case) if case else ():
            assert size(low) <= size(high), f"{low.bound} {size(low)!r} > {high.bound} {size(high)!r}: {what}"
        assert not any("failed" in obstacle.because for obstacle in (case.obstacles if case else ())), what
