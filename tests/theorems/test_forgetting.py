"""Losses that forget the noise before the record: lower values against the recursion of the steps."""

import itertools
import math
import random
from typing import Any

import mpmath
import pytest

from dpcalc.theorems.lower import curved_orders, forgetting
from dpcalc.theorems.setting import Setting
from tests.oracles import draws, log_uniform, whole


def mu_of(factors: list[Any], record: int, epochs: int) -> Any:
    """mu of passes of steps with these factors, where one step (from 0) moves the mean by 1: step by step."""
    mean, variance = mpmath.mpf(0), mpmath.mpf(0)
    for _ in range(epochs):
        for step, factor in enumerate(factors):
            mean, variance = factor * mean + (step == record), factor * factor * variance + 1
    return mean / mpmath.sqrt(variance)


def forgetful(before: Any, behind: Any, steps: int, tail: int, epochs: int = 1) -> Any:
    """The same, with one factor up to the record's step and one behind it."""
    first = steps - tail
    return mu_of([before] * (first + 1) + [behind] * (tail - 1), first, epochs)


def stick(epsilon: Any, mu: Any) -> Any:
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def near(found: float, truth: Any, below: float = 1e-9) -> None:
    """Not above the truth, nor far below it, relatively."""
    assert mpmath.mpf(found) <= truth
    assert found >= truth * (1 - mpmath.mpf(below))


def constants(r: random.Random) -> tuple[float, float, float]:
    """A step size, a smoothness and a strong convexity."""
    beta = log_uniform(r, 0.1, 10.0)
    return r.choice((1.0, r.uniform(0.02, 1.0))) / beta, beta, r.choice((0.0, 0.0, beta * r.random() * 0.2))


def test_a_pass_is_the_recursion() -> None:
    with mpmath.workdps(40):
        for r in draws("forgetting passes", 20, 2000):
            eta, beta, m = constants(r)
            b, steps = whole(r, 1, 4), whole(r, 1, 40)
            n = b * steps
            index, epochs = whole(r, 1, n), whole(r, 1, 5)
            given: dict[str, Any] = {
                "records": n, "index": index, "batch_size": b, "sensitivity": 2.0, "noise_std": 0.5, "step_size": eta,
                "smoothness": beta, "strong_convexity": m,
            }  # fmt: skip
            tail = steps - (index - 1) // b
            ratio, shrunk = mpmath.mpf(4) / b, mpmath.mpf(eta) * mpmath.mpf(m)
            least = max(mpmath.mpf(0), 1 - mpmath.mpf(eta) * mpmath.mpf(beta))
            truth = ratio * forgetful(least, 1 - shrunk, steps, tail)
            near(forgetting.forgetting(Setting(**given)).mu, truth)
            run = Setting(**given, epochs=epochs)
            near(forgetting.forgetting_released(run).mu, truth * mpmath.sqrt(epochs))
            tried = [least + (1 - shrunk - least) * j / 60 for j in range(61)]
            best = max(ratio * forgetful(q, 1 - shrunk, steps, tail, epochs) for q in tried)
            found = forgetting.forgetting_passes(run).mu
            assert found >= best * (1 - mpmath.mpf("1e-9"))
            assert found <= best * 1.01
            maps = forgetting._Maps.of(run)
            q = r.uniform(maps.least, maps.most)
            near(
                forgetting._mu(run, maps, q, epochs), ratio * forgetful(mpmath.mpf(q), 1 - shrunk, steps, tail, epochs)
            )


def test_no_other_curvatures_tell_more_of_a_pass() -> None:
    """Of random factors within the class none has a larger mu."""
    for r in draws("forgetting, other factors", 40, 4000):
        eta, beta, m = constants(r)
        steps = whole(r, 1, 8)
        index = whole(r, 1, steps)
        run = Setting(
            records=steps, index=index, batch_size=1, sensitivity=1.0, noise_std=1.0, step_size=eta, smoothness=beta,
            strong_convexity=m,
        )  # fmt: skip
        curvatures = [r.choice((m, beta, r.uniform(m, beta))) for _ in range(steps)]
        factors = [max(0.0, 1.0 - eta * c) for c in curvatures]
        assert mu_of(factors, index - 1, 1) <= forgetting.forgetting(run).mu * (1.0 + 1e-9)


def test_stop_and_skip_are_averages_of_passes() -> None:
    with mpmath.workdps(40):
        for r in draws("forgetting stop and skip", 6, 1000):
            eta, beta, m = constants(r)
            n, epsilon = whole(r, 1, 60), r.choice((0.0, 0.1, 1.0))
            t = whole(r, 1, n)
            run = Setting(
                records=n, index=t, sensitivity=2.0, noise_std=1.0, step_size=eta, smoothness=beta, strong_convexity=m
            )
            least = max(mpmath.mpf(0), 1 - mpmath.mpf(eta) * mpmath.mpf(beta))
            most = 1 - mpmath.mpf(eta) * mpmath.mpf(m)
            stop = mpmath.fsum(stick(epsilon, 2 * forgetful(least, most, j, j - t + 1)) for j in range(t, n + 1)) / n
            found = forgetting.stop_forgetting(run).profile(epsilon)
            assert mpmath.log(stop) - mpmath.mpf("0.03") <= found <= mpmath.log(stop)
            h = n // 2
            skips = range(min(t, h + 1))
            skip = mpmath.fsum(stick(epsilon, 2 * forgetful(least, most, n - s, n - t + 1)) for s in skips) / (h + 1)
            with_none = stick(epsilon, 2 * forgetful(least, most, n, n - t + 1)) * len(skips) / (h + 1)
            found = forgetting.skip_forgetting(run).profile(epsilon)
            assert found <= mpmath.log(skip)
            assert found >= mpmath.log(with_none) - mpmath.mpf("1e-9")


def test_where_a_step_forgets_all_a_pass_is_as_promised() -> None:
    """`iteration.pnsgd` says r/sqrt(k)."""
    for index in (1, 37, 100):
        run = Setting(
            records=100, index=index, batch_size=1, sensitivity=2.0, noise_std=1.0, step_size=1.0, smoothness=1.0,
            strong_convexity=0.0,
        )  # fmt: skip
        assert forgetting.forgetting(run).mu == pytest.approx(2.0 / math.sqrt(101 - index), rel=1e-12)


def test_nothing_is_said_without_a_choice_of_curvatures() -> None:
    given: dict[str, Any] = {"sensitivity": 2.0, "noise_std": 1.0, "step_size": 0.5, "smoothness": 0.3}
    curved = {**given, "strong_convexity": 0.3, "records": 7, "index": 3}
    run = Setting(**curved, batch_size=1, epochs=2)
    assert forgetting.forgetting_passes(run).mu == 0.0
    assert forgetting.stop_forgetting(Setting(**curved)).profile(0.1) == -math.inf
    assert forgetting.skip_forgetting(Setting(**curved)).profile(0.1) == -math.inf


@pytest.mark.parametrize("steps", [10**6, 10**15])
def test_many_steps(steps: int) -> None:
    given: dict[str, Any] = {
        "records": steps, "batch_size": 1, "sensitivity": 2.0, "noise_std": 1.0, "step_size": 0.1, "smoothness": 1.0,
    }  # fmt: skip
    noise = 0.81 / 0.19
    for m, index in ((0.0, steps - 9), (0.0, 1), (1e-3, steps - 9), (1e-3, 1)):
        run = Setting(**given, index=index, epochs=7, strong_convexity=m)
        tail = steps - index + 1
        behind = tail if not m else math.fsum((1.0 - 0.1 * m) ** (-2 * k) for k in range(10))
        if m and index == 1:
            assert forgetting.forgetting_released(run).mu < 1e-40
        else:
            before = noise if index > 1 else 0.0
            exact = 2.0 * math.sqrt(7.0 / (before + behind))
            assert forgetting.forgetting_released(run).mu == pytest.approx(exact, rel=1e-9)
        assert forgetting.forgetting_passes(run).mu >= 0.0


def test_random_places() -> None:
    """Of one curvature, and of a random stop: the average over all positions and stops, each by its recursion."""
    with mpmath.workdps(30):
        for r in draws("shuffled stop, curved", 5, 400):
            n, curvature, epsilon = whole(r, 1, 12), r.choice((1.0, 0.5, r.uniform(0.05, 1.0))), r.choice((0.1, 1.0))
            given: dict[str, Any] = {
                "records": n, "batch_size": 1, "last_batch": "own", "sensitivity": 2.0, "noise_std": 1.0,
                "step_size": 1.0, "smoothness": curvature, "strong_convexity": curvature,
            }  # fmt: skip
            q = 1 - mpmath.mpf(curvature)
            mus = [[2 * forgetful(q, q, j, k) for k in range(1, j + 1)] for j in range(1, n + 1)]
            truth = mpmath.fsum(stick(epsilon, mu) for row in mus for mu in row if mu) / n**2
            found = curved_orders.shuffled_stop_curved(Setting(**given)).profile(epsilon)
            assert found <= mpmath.log(truth)
            endless = [2 * q ** (k - 1) * mpmath.sqrt(1 - q * q) for k in range(1, n + 1)]
            least = mpmath.fsum((n - k) * stick(epsilon, mu) for k, mu in enumerate(endless) if mu) / n**2
            assert found >= mpmath.log(least) - mpmath.mpf("1e-6")
            epochs = whole(r, 1, 6)
            passes = mpmath.fsum(stick(epsilon, mu * mpmath.sqrt(epochs)) for mu in mus[-1] if mu) / n
            found = curved_orders.once_curved_released(Setting(**given, epochs=epochs)).profile(epsilon)
            assert mpmath.log(passes) - mpmath.mpf("1e-6") <= found <= mpmath.log(passes)


def test_fresh_places() -> None:
    """Of one curvature, fresh orders: the average over all positions in all passes, each by its recursion."""
    with mpmath.workdps(30):
        for r in draws("fresh orders, curved", 5, 400):
            n, curvature, epsilon = whole(r, 1, 4), r.choice((1.0, 0.5, r.uniform(0.05, 1.0))), r.choice((0.1, 1.0))
            epochs, q = whole(r, 1, 3), 1 - mpmath.mpf(curvature)
            run = Setting(
                records=n, batch_size=1, last_batch="own", sensitivity=2.0, noise_std=1.0, step_size=1.0, epochs=epochs,
                smoothness=curvature, strong_convexity=curvature,
            )  # fmt: skip
            one = [2 * forgetful(q, q, n, k) for k in range(1, n + 1)]
            hidden, seen = mpmath.mpf(0), mpmath.mpf(0)
            for places in itertools.product(range(1, n + 1), repeat=epochs):
                mean, variance = mpmath.mpf(0), mpmath.mpf(0)
                for step in range(epochs * n):
                    mean = q * mean + (2 if n - step % n == places[step // n] else 0)
                    variance = q * q * variance + 1
                both = mpmath.sqrt(mpmath.fsum(one[k - 1] ** 2 for k in places))
                hidden += stick(epsilon, mean / mpmath.sqrt(variance)) if mean else 0
                seen += stick(epsilon, both) if both else 0
            found = curved_orders.epochs_curved(run).profile(epsilon)
            assert found <= mpmath.log(hidden / n**epochs)
            fresh = mpmath.sqrt(mpmath.fsum(q ** (2 * j * n) for j in range(epochs)))
            least = mpmath.fsum(stick(epsilon, mu / fresh) for mu in one if mu) / n
            assert found >= mpmath.log(least) - mpmath.mpf("1e-6")
            found = curved_orders.epochs_curved_released(run).profile(epsilon)
            assert found <= mpmath.log(seen / n**epochs)
            for count in {1, n}:
                share, mu = mpmath.mpf(count) / n, one[count - 1]
                weights = [
                    mpmath.binomial(epochs, j) * share**j * (1 - share) ** (epochs - j) for j in range(epochs + 1)
                ]
                terms = (weights[j] * stick(epsilon, mu * mpmath.sqrt(j)) for j in range(1, epochs + 1))
                assert not mu or found >= mpmath.log(mpmath.fsum(terms)) - mpmath.mpf("1e-6")
