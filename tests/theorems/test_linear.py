"""What linear losses really have: never above exact mixtures where a search chooses, and refusals."""

# ruff: noqa: B023 (every function here is used up within its round of the loop)

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.numerics import binomial
from dpcalc.theorems.lower import common_losses, curved_orders, linear_losses, quadratic, random_linear_losses
from dpcalc.theorems.record import all_bounds, for_algorithm, lookup
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform, whole

WITHOUT = ("online", "repeated", "chain", "unlearning", "dp-sgd", "dp-sgd-output", "dp-sgd-gradient", "correlated")
ALGORITHMS = sorted({name for b in all_bounds().values() for name in b.algorithms} - set(WITHOUT))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_has_one(algorithm: str) -> None:
    ids = [b.id for b in for_algorithm(algorithm) if b.kind == "lower" and b.id.startswith("linear.")]
    assert ids
    assert not any(lookup(name).guarantee for name in ids)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_refused_where_the_losses_are_not_in_the_class(algorithm: str) -> None:
    given = {"records": 10, "lipschitz": 1.0, "noise_std": 1.0, "epochs": 3, "step_size": 0.5, "smoothness": 1.0}
    for change, word in (({"diameter": 1.0}, "diameter"), ({"strong_convexity": 0.5}, "strong convexity")):
        values = describe(algorithm, {**given, **change}).values
        for bound in for_algorithm(algorithm):
            if not bound.id.startswith("linear.") or (bound.id == "linear.local" and "diameter" in change):
                continue
            if bound.id.endswith("_secret"):
                values = {**values, "permutation": "secret"}
            if re.search("curved|forgetting", bound.id) and "strong_convexity" in change:
                assert bound.obstacle(run_of(values)) is None
                continue
            more = {"strong_convexity": 0.5} if bound.id == "linear.sampled_curved" else {}
            found = bound.obstacle(run_of({**values, **more}))
            assert found is not None, bound.id
            assert word in found[0]
            assert found[1]
    laplace = describe(algorithm, {**{k: v for k, v in given.items() if k != "noise_std"}, "laplace_scale": 1.0}).values
    assert all(b.obstacle(run_of(laplace)) for b in for_algorithm(algorithm) if b.id.startswith("linear."))


# --- slow independent values ------------------------------------------------------------------------------------------


def normal(x: Any) -> Any:
    return mpmath.ncdf(x) if x > -1 else mpmath.erfc(-x / mpmath.sqrt(2)) / 2


Law = list[tuple[Any, Any]]


def mixture_divergence(p: Law, q: Law, epsilon: float) -> Any:
    """The hockey-stick of two mixtures of unit normals whose likelihood ratio grows: [(weight, mean), ...]."""
    e = mpmath.mpf(epsilon)

    def log_ratio(x: Any) -> Any:
        top, bottom = (mpmath.fsum(w * mpmath.exp(-((x - m) ** 2) / 2) for w, m in law) for law in (p, q))
        return mpmath.log(top / bottom) - e

    low, high = mpmath.mpf(-1), mpmath.mpf(1)
    while log_ratio(high) < 0:
        high *= 2
        if high > 10**7:
            return mpmath.mpf(0)  # the ratio stays below e^epsilon
    while log_ratio(low) > 0:
        low *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_ratio(middle) > 0 else (middle, high)
    tails = [mpmath.fsum(w * normal(m - low) for w, m in law) for law in (p, q)]
    return tails[0] - mpmath.exp(e) * tails[1]


def binomial_law(trials: int, chance: Fraction, at: Callable[[int], Any]) -> Law:
    return [
        (mpmath.mpf(w.numerator) / w.denominator, at(j))
        for j in range(trials + 1)
        if (w := math.comb(trials, j) * chance**j * (1 - chance) ** (trials - j))
    ]


def placed(law: Law, factor: Any) -> Law:
    return [(w, m * factor) for w, m in law]


def best_of(law: Law, factors: list[tuple[float, float]], epsilon: float) -> Any:
    return max(mixture_divergence(placed(law, a), placed(law, b), epsilon) for a, b in factors)


SIDES = [(0.5, -0.5), (1.0, 0.0), (0.0, -1.0)]


def close(found: float, truth: Any, room: float) -> None:
    """``found`` is ln of at most the truth, and not below by more than ``room``."""
    value = float(mpmath.log(truth))
    assert found <= value + 1e-15 * (1.0 + abs(value)), (found, value)
    assert found >= value - room * (1.0 + abs(value)), (found, value)


def test_sampled_is_a_binomial_mixture() -> None:
    with mpmath.workdps(40):
        for r in draws("sampled, exactly", 8, 2000):
            n = whole(r, 2, 100)
            b, steps = whole(r, 1, n - 1), whole(r, 1, 40)
            sensitivity, noise, epsilon = (
                log_uniform(r, 0.2, 5),
                log_uniform(r, 0.1, 2),
                r.choice((0.0, r.random(), 3.0)),
            )
            law = binomial_law(steps, Fraction(b, n), lambda j: mpmath.mpf(sensitivity) * j / b / noise)
            law = placed(law, 1 / mpmath.sqrt(steps))
            found = evaluated(random_linear_losses.sampled,
                records=n, batch_size=b, steps=steps, sensitivity=sensitivity, noise_std=noise,
                adjacency="replace-one", epsilon=epsilon,
            )  # fmt: skip
            close(found, best_of(law, SIDES, epsilon), 1e-9)


def test_one_sampled_step_is_exact() -> None:
    for r in draws("one sampled step", 30, 30):
        n = whole(r, 2, 10**6)
        b, epsilon = whole(r, 1, n - 1), log_uniform(r, 1e-2, 5)
        ratio = log_uniform(r, 0.1, 5)
        found = evaluated(random_linear_losses.sampled,
            records=n, batch_size=b, steps=1, sensitivity=ratio * b, noise_std=1.0, adjacency="replace-one",
            epsilon=epsilon,
        )  # fmt: skip
        p = b / n
        truth = math.log(p) + gaussian.log_delta(mu=ratio, epsilon=math.log1p(math.expm1(epsilon) / p))
        assert found == pytest.approx(truth, rel=1e-9)
        assert found <= truth + 1e-12 * abs(truth)


def test_shuffled_curved_is_an_average() -> None:
    """At curvature 0 that of linear losses, at 1/eta only the last step counts."""
    for n, epsilon in itertools.product((1, 5, 40), (0.0, 0.3, 2.0)):
        run = {
            "records": n, "batch_size": 1, "last_batch": "own", "sensitivity": 2.0, "noise_std": 3.0,
            "strong_convexity": 0.0, "epsilon": epsilon,
        }  # fmt: skip
        flat = evaluated(curved_orders.shuffled_curved, **run, step_size=1.0, smoothness=0.0)
        assert flat == pytest.approx(gaussian.log_delta(mu=2.0 / 3.0 / math.sqrt(n), epsilon=epsilon), rel=1e-12)
        last = evaluated(curved_orders.shuffled_curved, **run, step_size=1.0, smoothness=1.0)
        assert last >= gaussian.log_delta(mu=2.0 / 3.0, epsilon=epsilon) - math.log(n) - 1e-9
        assert last >= flat - 1e-12


# --- tight ------------------------------------------------------------------------------------------------------------


def test_passes_are_the_quadratics_without_curvature() -> None:
    for r in draws("passes", 60, 20):
        n = whole(r, 1, 10**6)
        run = {
            "records": n, "index": whole(r, 1, n), "batch_size": whole(r, 1, n), "epochs": whole(r, 1, 1000),
            "sensitivity": log_uniform(r, 0.1, 10), "noise_std": log_uniform(r, 0.1, 10),
        }  # fmt: skip
        same = evaluated(quadratic.passes, **run, step_size=0.5, smoothness=1.0, strong_convexity=0.0)
        assert evaluated(linear_losses.passes, **run) == pytest.approx(same, rel=1e-13)
        more = evaluated(common_losses.curved_passes, **run, step_size=0.5, smoothness=1.0, strong_convexity=0.0)
        assert more >= same * (1.0 - 1e-12)


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("trials", "chance"),
    [(1, Fraction(1, 2)), (10, Fraction(1, 3)), (700, Fraction(99, 100)), (1000, Fraction(1, 3000))],
)  # fmt: skip
def test_binomial_enclose(trials: int, chance: Fraction) -> None:
    found = binomial.binomial_blocks(trials, chance)
    with mpmath.workdps(40):
        exact = [w for w, _ in binomial_law(trials, chance, lambda j: j)]
        for low, high, below, above in zip(*found, strict=True):
            truth = mpmath.log(mpmath.fsum(exact[int(low) : int(high) + 1]))
            assert below <= truth <= above
    assert sum(found.high - found.low + 1) == trials + 1


@pytest.mark.parametrize("trials", [10**6, 10**12, 10**15])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 10**5), Fraction(1, 10**15)])
def test_binomial_add_up(trials: int, chance: Fraction) -> None:
    found = binomial.binomial_blocks(trials, chance)
    below, above = (sum(math.exp(x) for x in side) for side in (found.log_below, found.log_above))
    assert 1.0 - 1e-3 < below <= 1.0 <= above < 1.0 + 1e-3


@pytest.mark.parametrize("steps", [10**6, 10**15])
def test_many_steps_are_quick_and_monotone(steps: int) -> None:
    run = {"records": 10**6, "batch_size": 100, "steps": steps, "sensitivity": 2.0, "noise_std": 1.0}
    for adjacency in ("replace-one", "null-record"):
        values = [
            evaluated(random_linear_losses.sampled, **run, adjacency=adjacency, epsilon=e)
            for e in (0.0, 0.01, 0.1, 1.0)
        ]
        assert all(a >= b - 1e-9 for a, b in itertools.pairwise(values))
        assert all(v <= 0.0 for v in values)
