"""Steps on fresh batches: exact shifts, known limits, order of the bounds."""

# ruff: noqa: PT017 (a refusal is one of two good outcomes)
import itertools
import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import DpcalcError
from dpcalc.model.run import describe
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Composition
from dpcalc.theorems.record import for_algorithm
from dpcalc.theorems.sampled import hidden_past, noisy_sgd
from tests.formulas import evaluated
from tests.oracles import adaptive, ball, call, draws, exact, log_uniform, not_below, tight, whole


def offered(algorithm: str, told: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The bounds that may be promised for this run, each with its guarantee."""
    run = describe(algorithm, told)
    for bound in for_algorithm(algorithm):
        if bound.guarantee and not bound.unpromised(run) and bound.obstacle(run) is None:
            yield bound.id, guarantee_of(bound, run)


# --- the truth --------------------------------------------------------------------------------------------------------


def test_composition_is_nearly_attained() -> None:
    """Linear losses far from any wall, one step: the bound for one step is the truth, and is not asked of hiding."""
    for n, b, ratio in ((2, 1, 1.0), (5, 2, 0.5), (3, 3, 2.0)):
        p, mu = b / n, ratio
        told = {"records": n, "batch_size": b, "steps": 1, "lipschitz": ratio * b / 2, "noise_std": 1.0}
        told.update({"step_size": 1.0, "smoothness": 1.0})
        for e in (0.0, 0.5, 2.0):
            truth = p * gaussian.delta(mu=mu, epsilon=math.log1p(math.expm1(e) / p))
            for id, guarantee in offered("noisy-sgd", told):
                value = math.exp(guarantee.log_delta(e).value)
                assert truth * (1 - 1e-12) <= value <= truth * (1 + 1e-4), id


def test_a_linear_run_attains_the_shift() -> None:
    """Full batches of linear losses are one Gaussian: hiding never claims less than the sum of all the uses."""
    for r in draws("full batches", 12, 550):
        n, steps, ratio = r.choice((1, 2, 5)), r.choice((1, 2, 5, 40)), log_uniform(r, 0.02, 2.0)
        told = {"records": n, "batch_size": n, "steps": steps, "lipschitz": ratio * n / 2, "noise_std": 1.0}
        told.update({"step_size": 1.0, "smoothness": 1.0})
        for id, guarantee in offered("noisy-sgd", told):
            for e in (0.0, 0.3, 2.0):
                truth = gaussian.log_delta(mu=ratio * math.sqrt(steps), epsilon=e)
                assert guarantee.log_delta(e).value >= truth - 1e-9 * (1 + abs(truth)), (id, told, e)


# --- the shift --------------------------------------------------------------------------------------------------------


def geometric(c: Fraction, terms: int) -> Any:
    """1 + c + ... + c^(terms-1)."""
    if c == 1:
        return ball(terms)
    if c == 0:
        return ball(1)
    return (1 - power(c, terms)) / (1 - ball(c))


def power(c: Fraction, n: int) -> Any:
    return (ball(c).log() * n).exp() if n and c else ball(0 if n else 1)


def shift(run: dict[str, Any]) -> Any:
    """c^k min(D, s (1 + ... + c^(T-k-1)))/(eta sigma sqrt(q (1 + ... + c^(2j-2))))."""
    c, k = exact(run["factor"]), run["composed"]

    def value() -> Any:
        apart = ball(exact(run["use"])) * geometric(c, run["steps"] - k)
        if math.isfinite(run["diameter"]):
            wide = ball(exact(run["diameter"]))
            apart = apart if apart < wide else wide
        spread = ball(exact(run["fraction"])) * geometric(c * c, run["split"])
        return apart * power(c, k) / (ball(exact(run["noise"])) * spread.sqrt())

    return adaptive(value)


def shift_case(r: random.Random) -> dict[str, Any]:
    steps = whole(r, 2, r.choice((10, 10**4, 10**15)))
    composed = min(steps - 1, whole(r, 1, steps))
    factor = r.choice((1.0, r.random(), 1.0 - 10 ** r.uniform(-16, 0), 1.0 - 2.0**-53, 10 ** r.uniform(-20, 0)))
    return {
        "steps": steps,
        "composed": composed,
        "split": min(composed, whole(r, 1, composed)),
        "factor": factor,
        "use": log_uniform(r, 1e-6, 1e6),
        "noise": log_uniform(r, 1e-6, 1e6),
        "fraction": log_uniform(r, 1e-12, 0.999),
        "diameter": r.choice((math.inf, log_uniform(r, 1e-6, 1e6), log_uniform(r, 1.0, 1e12))),
    }


def shift_mu(
    *, steps: int, composed: int, split: int, factor: float, use: float, noise: float, fraction: float, diameter: float
) -> float:
    chain = noisy_sgd.Chain(steps, factor, use, noise, diameter)
    return noisy_sgd.shift_mu(chain, noisy_sgd.Plan(composed, split, fraction))


def test_shift() -> None:
    for r in draws("shift", 400, cost=16):
        run = shift_case(r)
        found, what = shift_mu(**run), call(shift_mu, **run)
        if -math.log(run["factor"]) * run["composed"] > 600.0:
            assert 0.0 <= found < 1e-200, what
            continue
        value = shift(run)
        not_below(found, value, what)
        tight(found, value, what, 1e-12 + 2.0**-52 * run["composed"] * (run["factor"] < 1.0))


def test_nothing_done_before_is_nothing_to_hide() -> None:
    run = {"steps": 7, "composed": 7, "split": 3, "factor": 0.5, "use": 1.0, "noise": 1.0, "fraction": 0.5}
    assert shift_mu(**run, diameter=math.inf) == 0.0
    # Everything is forgotten at once; what is left is above 0, not nan.
    assert 0.0 <= shift_mu(**{**run, "composed": 3, "factor": 0.0}, diameter=math.inf) < 1e-300


def test_shift_without_contraction() -> None:
    """D/(eta sigma sqrt(q k)) on a bounded domain, s (T - k)/(eta sigma sqrt(q k)) before it matters."""
    for steps, k in ((10, 3), (10**15, 10**7), (1000, 999)):
        run = {"steps": steps, "composed": k, "split": k, "factor": 1.0, "use": 0.5, "noise": 2.0, "fraction": 0.25}
        far = shift_mu(**run, diameter=math.inf)
        assert far == pytest.approx(0.5 * (steps - k) / (2.0 * math.sqrt(0.25 * k)), rel=1e-13)
        near = shift_mu(**run, diameter=0.25)
        assert near == pytest.approx(0.25 / (2.0 * math.sqrt(0.25 * k)), rel=1e-13)


# --- behaviour --------------------------------------------------------------------------------------------------------


def some_run(r: random.Random) -> dict[str, Any]:
    n = whole(r, 1, 10**5)
    beta = log_uniform(r, 0.1, 10.0)
    eta = r.choice((1.0, r.random())) / beta
    return {
        "records": n,
        "batch_size": whole(r, 1, n),
        "steps": whole(r, 1, 10**5),
        "lipschitz": log_uniform(r, 0.1, 10.0),
        "noise_std": log_uniform(r, 0.1, 10.0),
        "step_size": eta,
        "smoothness": beta,
        "strong_convexity": beta * r.choice((0.0, 10 ** r.uniform(-6, 0))),
        "diameter": r.choice((math.inf, log_uniform(r, 0.1, 1e3))),
    }


def settled(r: random.Random) -> dict[str, Any]:
    """A run whose delta is neither 0 nor 1, most of the time: 2 L/(b sigma) below 5 or so."""
    run = some_run(r)
    run["noise_std"] = max(run["noise_std"], 0.4 * run["lipschitz"] / run["batch_size"])
    mu = noisy_sgd.clt_mu(
        mu=2.0 * run["lipschitz"] / run["batch_size"] / run["noise_std"], rate=run["batch_size"] / run["records"],
        steps=run["steps"],
    )  # fmt: skip
    if mu > 10.0:
        run["noise_std"] *= min(mu / 3.0, 1e3)
    return run


def composed(run: dict[str, Any]) -> Composition:
    names = ("records", "batch_size", "steps", "lipschitz", "noise_std")
    return Composition(evaluated(noisy_sgd.composition, **{name: run[name] for name in names}))


def hidden(run: dict[str, Any]) -> Composition:
    return Composition(evaluated(noisy_sgd.hidden, **run))


def test_hidden_is_no_looser() -> None:
    helped = 0
    for r in draws("noisy sgd, hidden", 30, 220):
        run = settled(r)
        whole_run, last = composed(run), hidden(run)
        for wanted in (math.log(0.1), math.log(1e-5), math.log(1e-20)):
            e = whole_run.epsilon(wanted).value
            if not 1e-3 < e < 1e3:
                continue
            value = last.epsilon(wanted).value
            assert value <= e * 1.02, (run, e, wanted, value)
            helped += value < 0.9 * e
    assert helped


@pytest.mark.parametrize(
    ("name", "falling"),
    [
        pytest.param("strong_convexity", (0.0, 1e-3, 1e-2, 0.1, 0.5, 1.0), marks=pytest.mark.campaign),
        pytest.param("diameter", (math.inf, 100.0, 10.0, 1.0, 0.1, 1e-3), marks=pytest.mark.campaign),
        pytest.param("steps", (10**6, 10**5, 10**4, 1000, 100, 1), marks=pytest.mark.campaign),
        ("noise_std", (0.1, 0.2, 1.0)),
        ("lipschitz", (1.0, 0.5, 0.1)),
        ("records", (1000, 2000, 10**5)),
    ],
)
def test_more_of_what_helps_helps(name: str, falling: tuple[float, ...]) -> None:
    """Strong convexity, a smaller domain, fewer steps: each up to what the grid of plans and the lattice leave."""
    base = {
        "records": 1000, "batch_size": 20, "steps": 3000, "lipschitz": 1.0, "noise_std": 0.1, "step_size": 0.1,
        "smoothness": 1.0, "strong_convexity": 0.0, "diameter": 1.0,
    }  # fmt: skip
    wanted = math.log(1e-6)

    def epsilon(**changes: Any) -> float:
        return hidden({**base, **changes}).epsilon(wanted).value

    found = [epsilon(**{name: value}) for value in falling]
    for more, less in itertools.pairwise(found):
        assert less <= more * 1.02, (name, falling, found)
    assert epsilon(strong_convexity=0.5, diameter=math.inf) < 0.7 * composed(base).epsilon(wanted).value


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "loss",
    [
        pytest.param({"strong_convexity": 0.0, "diameter": 0.5}, marks=pytest.mark.campaign),
        pytest.param({"strong_convexity": 0.3, "diameter": math.inf}, marks=pytest.mark.campaign),
        {"strong_convexity": 0.3, "diameter": 0.5},
    ],
)
def test_it_saturates(loss: dict[str, float]) -> None:
    """With a diameter, or strong convexity, the number of steps matters no further."""
    base = {
        "records": 1000, "batch_size": 20, "lipschitz": 1.0, "noise_std": 0.1, "step_size": 0.1, "smoothness": 1.0,
    }  # fmt: skip
    found = [hidden({**base, **loss, "steps": t}).epsilon(math.log(1e-6)).value for t in (10**4, 10**8, 10**15)]
    assert found[2] <= found[1] * 1.02 <= found[0] * 1.02 * 1.3, (loss, found)
    assert found[2] < 0.1 * composed({**base, "steps": 10**8}).epsilon(math.log(1e-6)).value


def test_parts_are_a_whole_plan() -> None:
    """The steps composed, the shift and its share of the noise add up, whichever plan was chosen."""
    for r in draws("plans", 60, cost=110):
        run = settled(r)
        parts = evaluated(noisy_sgd.hidden, **run)
        mu = 2.0 * run["lipschitz"] / (run["batch_size"] * run["noise_std"])
        rate = run["batch_size"] / run["records"]

        def single(mu: float, e: float, rate: float = rate) -> float:
            return math.log(rate) + gaussian.log_delta(mu=mu, epsilon=math.log1p(math.expm1(e) / rate))

        e = 0.1
        steps = parts if len(parts) == 1 else parts[1:]
        assert sum(count for _, count in steps) <= run["steps"], run
        if len(parts) == 1:
            assert parts[0][1] == run["steps"]
        for pair, _ in steps:  # none with less than the step's own share of the noise
            assert float(pair.forward(np.array([e]))[0]) >= single(mu, e) * (1 + 1e-13) - 1e-13, run
        if len(parts) == 3:
            assert float(parts[2][0].forward(np.array([e]))[0]) == pytest.approx(single(mu, e), rel=1e-10)
        if len(parts) > 1:
            before = run["steps"] - sum(count for _, count in steps)
            c = 1.0 - run["step_size"] * run["strong_convexity"]
            c = max(c, abs(run["step_size"] * run["smoothness"] - 1.0))
            use = 2.0 * run["lipschitz"] * run["step_size"] / run["batch_size"]
            apart = min(run["diameter"], use * float(geometric(exact(c), before)))
            # Even the whole noise of the last steps would leave this much.
            spread = math.sqrt(float(geometric(exact(c) ** 2, parts[1][1])))
            least = apart * c ** (run["steps"] - before) / (run["step_size"] * run["noise_std"] * spread)
            assert parts[0][0].mu >= least * (1 - 1e-9)
            own_share = 1.0 - (least / parts[0][0].mu) ** 2
            if own_share > 1e-9:
                value = float(parts[1][0].forward(np.array([e]))[0])
                assert value >= single(mu / math.sqrt(own_share), e) - 1e-6, run


# --- the central limit ------------------------------------------------------------------------------------------------


def test_the_central_limit_is_the_limit() -> None:
    for mu, rate, steps in ((1.0, 0.001, 10**6), (0.5, 0.001, 10**6)):
        told = {"records": round(1 / rate), "batch_size": 1, "steps": steps, "lipschitz": mu / 2, "noise_std": 1.0}
        found = composed(told).epsilon(math.log(1e-3)).value
        limit = noisy_sgd.clt_mu(mu=mu, rate=rate, steps=steps)
        assert found == pytest.approx(gaussian.epsilon(mu=limit, log_delta_target=math.log(1e-3)), rel=0.05)


# --- extremes ---------------------------------------------------------------------------------------------------------

EXTREME = (1e-300, 1.0, 1e300)


@pytest.mark.parametrize("factor", [0.0, 1e-300, 0.5, 1.0 - 2.0**-53, 1.0])
def test_extreme_shifts(factor: float) -> None:
    for use, noise, fraction in itertools.product(EXTREME, EXTREME, (1e-12, 0.5, 1.0)):
        for steps, composed_, split in (
            (2, 1, 1),
            (10**15, 1, 1),
            (10**15, 10**15 - 1, 10**15 - 1),
            (10**15, 10**8, 7),
        ):
            for diameter in (math.inf, *EXTREME):
                found = shift_mu(
                    steps=steps, composed=composed_, split=split, factor=factor, use=use, noise=noise,
                    fraction=fraction, diameter=diameter,
                )  # fmt: skip
                assert found >= 0.0  # no nan


@pytest.mark.parametrize("lipschitz", EXTREME)
@pytest.mark.parametrize("steps", [1, pytest.param(10**15, marks=pytest.mark.campaign)])
def test_extreme_runs(lipschitz: float, steps: int) -> None:
    """An answer or a refusal, whatever the scales; never less than a single step tells."""
    scales = list(itertools.product(EXTREME, (1e-300, 1e300), (None, 1.0)))
    pairs = [each for j, each in enumerate(scales) if (j // 4 + j // 2 + j) % 2 == 0]  # any two of them meet
    for noise_std, eta, diameter in scales if steps == 1 else pairs:
        told = {
            "records": 3, "batch_size": 1, "steps": steps, "lipschitz": lipschitz, "noise_std": noise_std,
            "step_size": eta, "smoothness": 1.0 / eta, "diameter": diameter, "strong_convexity": 0.5 / eta,
        }  # fmt: skip
        try:
            guarantees = list(offered("noisy-sgd", told))
            answers = [(id, g.log_delta(1.0).value, g.epsilon(-10.0).value) for id, g in guarantees]
        except DpcalcError as refusal:
            assert refusal.hint, told
            continue
        for id, log_delta, epsilon in answers:
            what = f"{id} {told!r}: {log_delta!r} {epsilon!r}"
            assert log_delta <= 0.0, what
            assert epsilon >= 0.0, what
            mu = 2.0 * lipschitz / noise_std
            if 1e-6 < mu < 1e200:
                assert log_delta >= math.log(single_step(mu, 1 / 3, 1.0)) - 1e-9, what
                assert single_step(mu, 1 / 3, epsilon) <= math.exp(-10.0) * (1 + 1e-6), what


def single_step(mu: float, rate: float, epsilon: float) -> float:
    threshold = math.log1p(math.expm1(epsilon) / rate) if epsilon < 30 else epsilon - math.log(rate)
    return rate * gaussian.delta(mu=mu, epsilon=threshold) if math.isfinite(epsilon) else 0.0


@pytest.mark.parametrize("ratio", [1e7, 1e8, 1e9, 1e20])
def test_little_noise_is_not_more_than_there_is(ratio: float) -> None:
    """One full batch is a Gaussian mechanism, however large its mu."""
    told = {"records": 1, "batch_size": 1, "steps": 1, "lipschitz": ratio / 2, "noise_std": 1.0}
    for id, guarantee in offered("noisy-sgd", told):
        value = gaussian.epsilon(mu=ratio, log_delta_target=math.log(1e-6))
        assert guarantee.epsilon(math.log(1e-6)).value >= value * (1 - 1e-12), id


def test_a_long_way_is_not_less_than_it_is() -> None:
    """A shift may be larger than any mechanism that is composed here: 1e15 uses behind one step."""
    told = {
        "records": 1, "batch_size": 1, "steps": 10**15, "lipschitz": 5.0, "noise_std": 1.0, "step_size": 1.0,
        "smoothness": 1.0,
    }  # fmt: skip
    value = gaussian.epsilon(mu=10.0 * math.sqrt(1e15), log_delta_target=math.log(1e-6))  # linear losses
    for id, guarantee in offered("noisy-sgd", told):
        assert guarantee.epsilon(math.log(1e-6)).value >= value * (1 - 1e-9), id


def test_plans_that_are_left_out_are_no_better(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for r in draws("plans", 40, cost=400):
        factor = r.choice([1.0, 1.0 - log_uniform(r, 1e-4, 0.9)])
        diameter = r.choice([math.inf, log_uniform(r, 1e-2, 10.0)])
        noise, use, rate = log_uniform(r, 1e-3, 10.0), log_uniform(r, 1e-4, 1.0), log_uniform(r, 1e-4, 1.0)
        runs.append((noisy_sgd.Chain(whole(r, 2, 10**5), factor, use, noise, diameter), use / noise, rate))
    found = [hidden_past.best_plan(*run) for run in runs]
    assert any(plan is not None for plan in found)
    monkeypatch.setattr(hidden_past, "_cost_floor", lambda *_: -math.inf)
    for run, plan in zip(runs, found, strict=True):
        assert hidden_past.best_plan(*run) == plan, run


def test_the_epsilon_of_a_composition_has_no_jump_where_noise_is_small() -> None:
    """Of 100 steps at rate 0.01 more than 7 have the record with probability 1.0e-5 - 1.6e-7: 7 uses of mu^2/2 each."""
    mus = (299.9, 300.1, 1e3, 0.99e8, 1.01e8, 1e40)
    runs = [
        noisy_sgd.SampledSteps(records=1000, batch_size=10, steps=100, lipschitz=1.0, noise_std=0.2 / mu) for mu in mus
    ]
    found = [noisy_sgd.composition(run).epsilon(math.log(1e-5)).value for run in runs]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(3.5e80, rel=1e-9)
