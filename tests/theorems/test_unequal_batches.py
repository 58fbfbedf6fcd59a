"""Batches of unequal size in random order: costs against exact hulls, runs by brute force, known values, sweeps."""

import functools
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpcalc.notions import gaussian
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.hidden import fresh_places, hidden_position
from dpcalc.theorems.many_passes import shuffled_epochs
from dpcalc.theorems.many_passes.repeated_allocation import Pace, Passes
from tests.formulas import evaluated
from tests.oracles import draws
from tests.oracles.epochs import Passes as ExactPasses
from tests.oracles.epochs import least_cost
from tests.reference import published

LOG_MILLIONTH = math.log(1e-6)
LAST_BATCHES = ("own", "nominal", "drop", "balanced", "front")
SIXTY = {"records": 60000, "batch_size": 256}


def pass_bound(epsilon: float, **given: Any) -> float:
    """ln delta of one pass in a secret order; Delta = 2, sigma = 0.05 unless something else is given."""
    values = {
        "last_batch": "own", "sensitivity": 2.0, "noise": "gaussian", "scale": 0.05, "step_size": 0.1,
        "smoothness": 1.0, "adjacency": "replace-one", **given,
    }  # fmt: skip
    return float(evaluated(hidden_position.shuffled, epsilon=epsilon, **values))


def epochs_bound(bound: Callable[..., Any], epsilon: float, **given: Any) -> float:
    """ln delta of several passes, with the same defaults."""
    values = {
        "last_batch": "own", "sensitivity": 2.0, "noise_std": 0.05, "step_size": 0.1, "smoothness": 1.0,
        "adjacency": "replace-one", **given,
    }  # fmt: skip
    return float(evaluated(bound, epsilon=epsilon, **values))


def reaches(log_delta: Callable[[float], float], epsilon: float, room: float) -> None:
    """The epsilon at delta = 1e-6 is within ``room`` of a known one, or smaller, but not by half."""
    assert log_delta(epsilon * (1.0 + room)) <= LOG_MILLIONTH
    assert log_delta(epsilon * 0.5) > LOG_MILLIONTH


# --- costs of one order, by exact hulls


def pace_of(factors: list[Fraction]) -> Pace:
    """The pace of a pass whose steps have these factors, in the order of time."""
    pieces = []
    for position, factor in enumerate(reversed(factors), 1):
        rate = -math.log(factor) if factor < 1 else 0.0
        if pieces and pieces[-1][1] == rate:
            pieces.pop()
        pieces.append((float(position), rate))
    return Pace(len(factors), tuple(pieces))


def test_the_renyi_divergence_of_one_order_counts_contraction_and_domain() -> None:
    assert published.once_rdp(steps=20, epochs=50, ratio=0.2, order=4.0, contraction=0.99) == pytest.approx(
        0.046297, rel=1e-4
    )
    for r in draws("once rdp", 40, 10):
        steps, epochs, order = r.randint(1, 8), r.randint(1, 5), r.choice((1.5, 2.0, 4.0, 32.0))
        c = r.choice((Fraction(1), Fraction(9, 10), Fraction(1, 2), Fraction(0)))
        reach = r.choice((None, Fraction(1, 3), Fraction(2), Fraction(5)))
        ratio = r.choice((1e-6, 0.1, 1.0, 5.0))
        costs = []
        for k in range(1, steps + 1):
            flow = [Fraction(int(t % steps == steps - k)) for t in range(steps * epochs)]
            costs.append(float(least_cost(flow, [c or Fraction(1, 10**9)] * len(flow), reach)))
        x = 0.5 * (order - 1.0) * order * ratio * ratio
        with mpmath.workdps(40):
            total = mpmath.fsum(mpmath.exp(mpmath.mpf(x) * cost) for cost in costs)
            wanted = float(mpmath.log(total / steps)) / (order - 1.0)
        far = math.inf if reach is None else float(reach)
        found = published.once_rdp(
            steps=steps, epochs=epochs, ratio=ratio, order=order, contraction=float(c), reach=far
        )
        assert wanted * (1 - 1e-9) <= found <= wanted * 1.02


# --- the law of the cost in fresh orders, by every sequence of places


def test_the_law_of_the_earlier_uses_is_dominated(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least as much probability lies at and above every cost, for every window."""
    for r in draws("places in fresh orders", 40, 60):
        exact = ExactPasses(
            r.randint(1, 9), r.choice((1, 2, 3, 4)), r.choice(LAST_BATCHES), r.randint(2, 5),
            r.choice((Fraction(1), Fraction(9, 10), Fraction(1, 2))),
            r.choice((None, Fraction(1, 2), Fraction(2), Fraction(6))),
        )  # fmt: skip
        if len(exact.sizes) ** (exact.epochs - 1) > 60:
            continue
        window = r.choice((None, 1, 2))
        if window is not None:
            chosen = max(1, min(window, exact.epochs - 2))
            monkeypatch.setattr(fresh_places, "_window", lambda *_, chosen=chosen: chosen)
        fresh_places.cases_of.cache_clear()
        plan = layout(exact.records, exact.batch_size, exact.last)
        reach = math.inf if exact.reach is None else float(exact.reach)
        passes = Passes(plan, exact.epochs, 1.0, pace_of(exact.contractions()), reach)
        parts = r.choice((1, 2, 50))
        cases = fresh_places.cases_of(passes, parts, r.choice((1, parts)))
        monkeypatch.undo()
        places = list(exact.places())
        _, last, size = r.choice(places)
        later = [place for place in places if last is not None and place[1] is not None and place[1] > last]
        second = r.choice([None, *later])
        law: dict[Fraction, Fraction] = {}
        for earlier in itertools.product(places, repeat=exact.epochs - 1):
            flow = [Fraction(0)] * (plan.steps * exact.epochs)
            for epoch, (_, place, used) in enumerate(earlier):
                if place is not None:
                    flow[epoch * plan.steps + place] += used
            for place, used in ((last, size), second[1:] if second else (None, size)):
                if place is not None:
                    flow[(exact.epochs - 1) * plan.steps + place] += used
            found = least_cost(flow, exact.contractions() * exact.epochs, exact.reach) if any(flow) else Fraction(0)
            law[found] = law.get(found, Fraction(0)) + math.prod((p for p, _, _ in earlier), start=Fraction(1))
        told = [np.array([float(x)]) for x in ((plan.steps - last, size) if last is not None else ())]
        if last is None:
            mu = cases.places.unused_in_all()
        elif second is None or second[1] is None:
            mu = cases.places.own(*told)
        else:
            mu = cases.places.pair(*told, np.array([float(plan.steps - second[1])]), np.array([float(second[2])]))
        costs = np.broadcast_to(mu**2, cases.weight.shape).ravel()
        for cost in law:
            tail = float(sum(p for other, p in law.items() if other >= cost))
            had = float(cases.weight.ravel()[costs >= float(cost) * (1 - 1e-13)].sum())
            assert had >= tail - 1e-12, (exact, window, parts, last, second, float(cost))


# --- known values


@pytest.mark.parametrize(("convexity", "epsilon"), [(0.01, 0.0701), (0.03, 0.0644), (0.1, 0.0487)])
def test_one_secret_pass_of_strongly_convex_losses(convexity: float, epsilon: float) -> None:
    given = {"records": 60000, "batch_size": 256, "strong_convexity": convexity}
    reaches(lambda e: pass_bound(e, **given), epsilon, 0.01)


@pytest.mark.parametrize(
    ("last_batch", "convexity", "secret", "public"),
    [
        ("drop", 0.0, 0.3085, 0.4650),
        ("own", 0.01, 0.1309, 1.1708),
        ("drop", 0.01, 0.1288, 0.4226),
        ("own", 0.1, 0.0497, 1.1517),
        ("drop", 0.1, 0.0476, 0.4156),
    ],
)
def test_one_order_of_fifty_passes(last_batch: str, convexity: float, secret: float, public: float) -> None:
    given = {**SIXTY, "epochs": 50, "last_batch": last_batch, "strong_convexity": convexity}
    reaches(lambda e: epochs_bound(shuffled_epochs.once_secret, e, **given), secret, 0.01)
    reaches(lambda e: epochs_bound(shuffled_epochs.once, e, **given), public, 0.01)


@pytest.mark.parametrize(
    ("epochs", "last_batch", "sharp", "epsilon"),
    [
        (10**3, "own", {"strong_convexity": 0.01}, 1.1543),
        (10**3, "own", {"diameter": 2.0}, 1.545),
        (10**5, "own", {"diameter": 2.0}, 5.073),
        (10**5, "drop", {"diameter": 0.05}, 0.697),
    ],
)
def test_fresh_orders_of_very_many_passes(
    epochs: int, last_batch: str, sharp: dict[str, float], epsilon: float
) -> None:  # fmt: skip
    given = {**SIXTY, "epochs": epochs, "last_batch": last_batch, **sharp}
    reaches(lambda e: epochs_bound(shuffled_epochs.fresh, e, **given), epsilon, 0.01)


def test_fresh_secret_orders_of_a_thousand_passes() -> None:
    for last_batch, epsilon in (("own", 0.140), ("drop", 0.134)):
        given = {**SIXTY, "epochs": 1000, "last_batch": last_batch, "strong_convexity": 0.01}
        reaches(functools.partial(epochs_bound, shuffled_epochs.fresh_secret, **given), epsilon, 0.02)


@pytest.mark.parametrize(
    ("records", "short", "sigma", "epsilon", "log_delta"),
    [
        (60000, 96, 0.05, 0.1, -61.6228096772319009),
        (60000, 96, 0.02, 0.5, -24.6575813611441244),
        (59920, 16, 0.05, 1.0, -13.3988023357350716),
        (59905, 1, 0.05, 50.0, -11.0005152530739994),
    ],
)
def test_not_below_runs_that_reset_at_every_step(
    records: int, short: int, sigma: float, epsilon: float, log_delta: float
) -> None:
    """w delta_G(ln(1 + (e^eps - 1)/w); mu of the last batch), which a run of this class attains."""
    mu, share = 2.0 / (short * sigma), short / records
    level = math.log1p(math.expm1(epsilon) / share)
    lower = math.log(share) + gaussian.log_delta(mu=mu, epsilon=level)
    assert lower == pytest.approx(log_delta, rel=1e-12)
    assert pass_bound(epsilon, records=records, batch_size=256, scale=sigma) >= log_delta


# --- sweeps


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("last_batch", "epochs", "room"),
    [("nominal", 1, 0.05), ("nominal", 50, 0.05), ("drop", 1, 0.005), ("drop", 50, 0.02)],
)
def test_continuous_in_the_number_of_records(last_batch: str, epochs: int, room: float) -> None:
    """One record more changes epsilon by little, whatever it leaves over: a nominal batch of one is one more step, and
    with 255 records left out one more fills a batch.
    """

    def log_delta(records: int, factor: float) -> float:
        given = {"records": records, "batch_size": 256, "last_batch": last_batch}
        if epochs == 1:
            return pass_bound(0.07 * factor, **given)
        return epochs_bound(shuffled_epochs.once_secret, 0.3 * factor, **given, epochs=epochs)

    for few, many in itertools.pairwise((59903, 59904, 59905, 59912, 60158, 60159, 60160)):
        assert log_delta(many, 1.0 + room) <= log_delta(few, 1.0)
        assert log_delta(few, 1.0 + room) <= log_delta(many, 1.0)


@pytest.mark.few(2)
@pytest.mark.parametrize("bound", [shuffled_epochs.fresh, shuffled_epochs.once])
@pytest.mark.parametrize(
    "sharp",
    [
        {"strong_convexity": 0.01},
        {"diameter": 0.05},
        *(
            pytest.param(sharp, marks=pytest.mark.campaign)
            for sharp in ({"diameter": 2.0}, {"strong_convexity": 1e-3, "diameter": 0.5})
        ),
    ],
    ids=str,
)
def test_bounded_in_the_number_of_passes(bound: Callable[..., Any], sharp: dict[str, float]) -> None:
    sweep = (1, 2, 3, 4, 5, 10, 30, 100, 10**3, 10**4, 10**5, 10**6, 10**9, 10**15)
    for last_batch in LAST_BATCHES:
        given = {**SIXTY, "last_batch": last_batch, **sharp}
        values = [epochs_bound(bound, 1.2, epochs=epochs, **given) for epochs in sweep]
        assert all(b >= a - 1e-9 * abs(a) for a, b in itertools.pairwise(values)), values
        assert values[-1] == pytest.approx(values[-3], rel=1e-9)
        for epochs, value in zip(sweep, values, strict=True):
            mu = evaluated(
                shuffled_epochs.worst_position, **given, epochs=epochs, sensitivity=2.0, noise_std=0.05, step_size=0.1,
                smoothness=1.0,
            )  # fmt: skip
            assert value <= gaussian.log_delta(mu=mu, epsilon=1.2) + 1e-12


def test_two_directions_of_a_null_record_lie_between_one_sensitivity_and_two() -> None:
    """A swap with a real record moves its step twice as far on one side: between L and 2 L for two real records."""
    for records, batch_size in ((1000, 32), (60000, 256)):
        given = {"records": records, "batch_size": batch_size, "last_batch": "nominal", "epsilon": 0.1}
        low = pass_bound(**given, sensitivity=1.0)
        null = pass_bound(**given, sensitivity=1.0, adjacency="null-record")
        assert low <= null <= pass_bound(**given, sensitivity=2.0)
