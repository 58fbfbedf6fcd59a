"""What linear losses really have: never above a guarantee, equal to slow independent values, tight where it may be."""

# ruff: noqa: B023 (every function here is used up within its round of the loop)

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.numerics import binomial
from dpcalc.theorems.lower import common_losses, curved_orders, linear_losses, quadratic, random_linear_losses
from dpcalc.theorems.many_passes import noisy_gd
from dpcalc.theorems.one_pass import iteration, random_stop
from dpcalc.theorems.record import all_bounds, for_algorithm, lookup
from tests.formulas import evaluated, run_of
from tests.oracles import draws, log_uniform, whole

LOWER = {name: bound for name, bound in all_bounds().items() if bound.kind == "lower"}
WITHOUT = ("online", "repeated", "chain", "unlearning", "dp-sgd", "dp-sgd-output", "dp-sgd-gradient")
SLOW = ("shuffled-epochs-released", "noisy-sgd", "noisy-sgd-released")
ALGORITHMS = sorted({name for b in all_bounds().values() for name in b.algorithms} - set(WITHOUT))


def described(algorithm: str, r: random.Random) -> dict[str, Any]:
    n = whole(r, 1, r.choice((3, 20, 300)))
    beta = log_uniform(r, 0.1, 10.0)
    given: dict[str, Any] = {
        "records": n,
        "lipschitz": log_uniform(r, 0.2, 5.0),
        "noise_std": log_uniform(r, 0.2, 5.0),
        "smoothness": beta,
        "step_size": r.choice((1.0, r.uniform(0.05, 0.99))) / beta,
        "adjacency": r.choice(("replace-one", "null-record")),
    }
    if r.random() < 0.3:
        given["strong_convexity"] = beta * r.uniform(0.01, 0.9)
    if algorithm in ("pnsgd", "skip", "stop", "local", "cyclic", "cyclic-released") and r.random() < 0.7:
        given["index"] = whole(r, 1, n)
    if algorithm not in ("skip", "stop", "shuffled-stop") and not algorithm.startswith("noisy-gd"):
        given["batch_size"] = r.choice((1, whole(r, 1, n)))
    if algorithm.startswith(("cyclic", "shuffle-once", "rotation-epochs", "shuffled-epochs")):
        given["epochs"] = whole(r, 1, 40)
    if algorithm.startswith("noisy"):
        given["steps"] = whole(r, 1, 40)
    if algorithm.startswith(("shuffle", "rotation")) and algorithm != "shuffled-stop":
        given["last_batch"] = r.choice(("own", "nominal", "drop", "balanced", "front"))
    if algorithm in ("pnsgd", "cyclic", "shuffled", "rotation"):
        given["last_batch"] = r.choice(("own", "nominal", "drop", "balanced", "front"))
    if algorithm.startswith("shuffle"):
        given["permutation"] = r.choice(("public", "secret"))
    return given


def offered(algorithm: str, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The guarantees and the lower bounds of a run, by id."""
    run = describe(algorithm, given)
    found: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for bound in for_algorithm(algorithm):
        if bound.obstacle(run) is None and (bound.kind == "lower" or bound.guarantee) and not bound.unpromised(run):
            found[bound.kind == "lower"][bound.id] = guarantee_of(bound, run)
    return found


def compared(algorithm: str, given: dict[str, Any], epsilons: tuple[float, ...]) -> int:
    """Check every lower bound against every guarantee; how many lower bounds there were."""
    guarantees, lower = offered(algorithm, given)
    for epsilon in epsilons:
        above = {}
        for name, guarantee in guarantees.items():
            try:
                above[name] = guarantee.log_delta(epsilon).value
            except DpcalcError:
                continue
        for name, bound in lower.items():
            if bound.profile is None:
                continue  # a lower bound on the Renyi divergence says nothing of delta
            below = bound.log_delta(epsilon).value
            for other, value in above.items():
                room = 1e-11 * (1.0 + abs(value))
                assert below <= value + room, (
                    f"{name} = {below!r} > {other} = {value!r} of {algorithm} {given!r} at {epsilon!r}"
                )
    return len(lower)


@pytest.mark.parametrize(
    "algorithm",
    [pytest.param(name, marks=pytest.mark.campaign if name in SLOW else ()) for name in ALGORITHMS],
)
def test_never_above_a_guarantee(algorithm: str) -> None:
    cost = 1000 if any(b.notion == "parts" for b in for_algorithm(algorithm)) else 20
    seen = 0
    for r in draws(f"lower {algorithm}", 3 if cost == 1000 else 60, cost):
        seen += compared(algorithm, described(algorithm, r), (0.0, log_uniform(r, 1e-3, 0.3), log_uniform(r, 0.3, 8.0)))
    assert seen


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
            found = bound.obstacle(run_of(values))
            assert found is not None, bound.id
            assert word in found[0]
            assert found[1]
    laplace = describe(algorithm, {**{k: v for k, v in given.items() if k != "noise_std"}, "laplace_scale": 1.0}).values
    assert all(b.obstacle(run_of(laplace)) for b in for_algorithm(algorithm) if b.id.startswith("linear."))


# --- slow independent values ------------------------------------------------------------------------------------------


def normal(x: Any) -> Any:
    return mpmath.ncdf(x) if x > -1 else mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def stick(epsilon: float, mu: Any) -> Any:
    """The Gaussian hockey-stick as its difference."""
    e = mpmath.mpf(epsilon)
    return normal(mu / 2 - e / mu) - mpmath.exp(e) * normal(-mu / 2 - e / mu)


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


def test_short_batches_are_a_binomial_mixture() -> None:
    with mpmath.workdps(40):
        for r in draws("short batches, exactly", 8, 2000):
            n, last = whole(r, 2, 60), r.choice(("own", "nominal", "drop", "balanced", "front"))
            b, epochs = whole(r, 1, n), whole(r, 1, 20)
            full, short = divmod(n, b)
            steps = full + (1 if short and last != "drop" else 0)
            own, chance = mpmath.mpf(1) / b, Fraction(short, n)
            if last == "balanced":
                least, larger = divmod(n, steps)
                own, other, chance = (
                    mpmath.mpf(1) / least,
                    mpmath.mpf(1) / (least + 1),
                    Fraction(larger * (least + 1), n),
                )
            else:
                other = {"nominal": own, "drop": mpmath.mpf(0)}.get(last, mpmath.mpf(1) / max(short, 1))
            sensitivity, noise, epsilon = (
                log_uniform(r, 0.2, 5),
                log_uniform(r, 0.1, 2),
                r.choice((0.0, r.random(), 3.0)),
            )
            scale = mpmath.mpf(sensitivity) / noise / mpmath.sqrt(steps * epochs)
            fresh = binomial_law(epochs, chance, lambda j: scale * (j * other + (epochs - j) * own))
            same = binomial_law(1, chance, lambda j: scale * epochs * (other if j else own))
            run = {
                "records": n, "batch_size": b, "last_batch": last, "sensitivity": sensitivity, "noise_std": noise,
                "adjacency": "replace-one", "epsilon": epsilon,
            }  # fmt: skip
            for law, function, more in (
                (fresh, random_linear_losses.epochs, {"epochs": epochs}),
                (same, random_linear_losses.once, {"epochs": epochs}),
            ):
                spread = len({m for _, m in law}) > 1
                truth = best_of(law, SIDES if spread else SIDES[:1], epsilon)
                close(evaluated(function, **run, **more), truth, 1e-9)
            if epochs == 1:
                assert evaluated(random_linear_losses.shuffled, **run) == evaluated(
                    random_linear_losses.once, **run, epochs=1
                )


def test_stop_and_skip_are_averages() -> None:
    with mpmath.workdps(40):
        for r in draws("stop and skip, exactly", 8, 2000):
            n = whole(r, 1, 1000)
            i, sensitivity, noise = whole(r, 1, n), log_uniform(r, 0.2, 5), log_uniform(r, 0.2, 5)
            epsilon = r.choice((0.0, r.random(), 3.0))
            run = {"records": n, "sensitivity": sensitivity, "noise_std": noise, "epsilon": epsilon}
            ratio = mpmath.mpf(sensitivity) / noise

            def term(j: int, e: Any = epsilon, ratio: Any = ratio) -> Any:
                return stick(e, ratio / mpmath.sqrt(j))

            h = n // 2
            stop = mpmath.fsum(term(j) for j in range(i, n + 1)) / n
            skip = mpmath.fsum(term(n - j) for j in range(min(i, h + 1))) / (h + 1)
            both = mpmath.fsum(j * term(j) for j in range(1, n + 1)) / mpmath.mpf(n) ** 2
            hidden = (
                mpmath.fsum(j * term(j, mpmath.log(1 + mpmath.expm1(epsilon) * n / j)) for j in range(1, n + 1)) / n**2
            )
            close(evaluated(common_losses.stop, **run, index=i), stop, 0.03)
            close(evaluated(common_losses.skip, **run, index=i), skip, 0.03)
            close(evaluated(common_losses.shuffled_stop, **run, batch_size=1, permutation="public"), both, 0.03)
            close(evaluated(common_losses.shuffled_stop, **run, batch_size=1, permutation="secret"), hidden, 0.03)


def quadratic_pass(n: int, tail: int, q: Any) -> Any:
    """mu of one pass by its recursion: what is left of a shift of 1, over the root of the variance of n steps."""
    variance, left = mpmath.mpf(0), mpmath.mpf(0)
    for step in range(n, 0, -1):
        variance, left = q * q * variance + 1, q * left + (1 if step == tail else 0)
    return left / mpmath.sqrt(variance)


def test_curved_is_the_best_of_the_quadratics() -> None:
    with mpmath.workdps(40):
        for r in draws("curved, exactly", 6, 2000):
            n = whole(r, 1, 60)
            i, beta = whole(r, 1, n), log_uniform(r, 0.1, 10)
            eta = r.uniform(0.05, 1.0) / beta
            m = r.choice((0.0, beta * r.random()))
            found = evaluated(common_losses.curved,
                records=n, index=i, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=eta, smoothness=beta,
                strong_convexity=m,
            )  # fmt: skip
            curvatures = [m + (beta - m) * j / 400 for j in range(401)]
            truth = max(2 * quadratic_pass(n, n + 1 - i, 1 - mpmath.mpf(eta) * c) for c in curvatures)
            finer = 2 * quadratic_pass(n, n + 1 - i, mpmath.sqrt(mpmath.mpf(n - i) / (n + 1 - i)))
            assert found >= float(truth) * (1.0 - 1e-9)
            assert found <= float(truth) * 1.002 or found <= float(finer) * 1.002


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


def test_tight_where_theorems_are() -> None:
    for r in draws("tight", 60, 20):
        n, steps = whole(r, 1, 10**6), whole(r, 1, 10**6)
        a, s = log_uniform(r, 0.1, 10), log_uniform(r, 0.1, 10)
        run = {"records": n, "batch_size": 1, "sensitivity": a, "noise_std": s}
        pairs = [
            (evaluated(linear_losses.single_pass, **run, index=1), evaluated(iteration.pnsgd, **run, index=1)),
            (evaluated(linear_losses.local, **run, index=n), evaluated(iteration.local, **run, index=n)),
            (
                evaluated(linear_losses.descent, records=n, steps=steps, sensitivity=a, noise_std=s),
                evaluated(noisy_gd.composition, records=n, steps=steps, sensitivity=a, noise_std=s),
            ),
            (
                evaluated(common_losses.curved, **run, index=n, step_size=0.5, smoothness=2.0, strong_convexity=0.0),
                evaluated(iteration.pnsgd, **run, index=n),
            ),
        ]
        for below, above in pairs:
            assert below <= above
            assert below == pytest.approx(above, rel=1e-12)
        e = log_uniform(r, 0.05, 3)
        stop = {"records": n, "index": 1, "sensitivity": a, "noise_std": s, "epsilon": e}
        assert evaluated(common_losses.stop, **stop) == pytest.approx(
            evaluated(random_stop.stop, **stop), rel=0.02, abs=0.02
        )


def test_a_fixed_order_is_within_the_root_of_e() -> None:
    """Where the smoothness allows the best curvature, no position is off by more."""
    for r in draws("root of e", 60, 20):
        n = whole(r, 1, 10**5)
        i = whole(r, 1, n)
        run = {"records": n, "index": i, "batch_size": 1, "sensitivity": 2.0, "noise_std": 1.0}
        found = evaluated(common_losses.curved, **run, step_size=1.0, smoothness=1.0, strong_convexity=0.0)
        above = evaluated(iteration.pnsgd, **run)
        assert above / math.sqrt(math.e) * (1.0 - 1e-9) <= found <= above


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
def test_binomial_blocks_enclose(trials: int, chance: Fraction) -> None:
    found = binomial.binomial_blocks(trials, chance)
    with mpmath.workdps(40):
        exact = [w for w, _ in binomial_law(trials, chance, lambda j: j)]
        for low, high, below, above in zip(*found, strict=True):
            truth = mpmath.log(mpmath.fsum(exact[int(low) : int(high) + 1]))
            assert below <= truth <= above
    assert sum(found.high - found.low + 1) == trials + 1


@pytest.mark.parametrize("trials", [10**6, 10**12, 10**15])
@pytest.mark.parametrize("chance", [Fraction(1, 2), Fraction(1, 10**5), Fraction(1, 10**15)])
def test_binomial_blocks_add_up(trials: int, chance: Fraction) -> None:
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
