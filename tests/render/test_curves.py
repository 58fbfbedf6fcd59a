"""The curves behind an answer: what is drawn as guaranteed is, and what is drawn as impossible is below it."""

import itertools
import math

import mpmath
import pytest

from dpcalc.engine.ask import ask
from dpcalc.model.question import Question
from dpcalc.notions.guarantee import Box, Gdp, Profile
from dpcalc.report import Case
from dpcalc.theorems.record import lookup
from tests.render.test_page import QUESTION, RUN

ONE_PASS = {"records": 1000, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
CLIPPED = {
    "records": 1000, "batch_size": 100, "steps": 20, "noise_multiplier": 2.0, "sampling": "poisson",
    "adjacency": "add-remove",
}  # fmt: skip


def gaussian_log_delta(mu: float, epsilon: float) -> mpmath.mpf:
    one, other = mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu, -mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu
    return mpmath.log(mpmath.ncdf(one) - mpmath.exp(epsilon) * mpmath.ncdf(other))


def gaussian_tpr(mu: float, fpr: float) -> mpmath.mpf:
    quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(fpr) - 1)
    return mpmath.ncdf(quantile + mu)


def curves(command: str = "rdp", given: dict[str, object] = RUN, question: Question = QUESTION) -> Case:  # type: ignore[assignment]
    found = ask(command, given, question, notes=False, best_only=True)
    assert found.curves is not None
    return found


def test_of_gaussian_privacy_the_curves_are_exact() -> None:
    found = curves()
    assert found.best is not None
    mu = found.best.mu
    assert mu is not None
    with mpmath.workdps(40):
        for epsilon, log_delta in found.curves.profile:  # type: ignore[union-attr]
            true = gaussian_log_delta(mu, epsilon)
            assert true <= log_delta
            assert log_delta == pytest.approx(float(true), rel=1e-9)
        for fpr, tpr in found.curves.trade_off:  # type: ignore[union-attr]
            true = gaussian_tpr(mu, fpr)
            assert true <= tpr
            assert tpr == pytest.approx(float(true), rel=1e-9)


@pytest.mark.parametrize(
    ("command", "given"),
    [("rdp", RUN), ("shuffle", ONE_PASS), pytest.param("dp-sgd", CLIPPED, marks=pytest.mark.campaign)],
    ids=["rdp", "shuffle", "dp-sgd"],
)
def test_curves_go_the_right_way_through_the_answer(command: str, given: dict[str, object]) -> None:
    found = curves(command, given)
    profile, floor, attacks, *_ = found.curves or ()
    assert all(after[1] <= before[1] + 1e-12 for before, after in itertools.pairwise(profile))
    assert all(lower[1] <= upper[1] for lower, upper in zip(floor, profile, strict=bool(floor)))
    assert all(before[1] <= after[1] for before, after in itertools.pairwise(attacks))
    assert all(fpr <= tpr <= 1.0 for fpr, tpr in attacks)
    assert found.best is not None
    above = [log_delta for epsilon, log_delta in profile if epsilon >= found.best.value]
    assert max(above) <= QUESTION.log_delta + 1e-9 if QUESTION.log_delta else False


def test_the_answer_does_not_depend_on_whether_its_curves_are_asked_for() -> None:
    plain = ask("rdp", RUN, QUESTION._replace(curves=False))
    assert plain.curves is None
    assert ask("rdp", RUN, QUESTION)._replace(curves=None, query=plain.query) == plain


def test_of_a_solved_parameter_the_curves_keep_the_budget() -> None:
    given = {name: value for name, value in RUN.items() if name != "noise_std"}
    found = curves("rdp", given, QUESTION._replace(epsilon=1.0))
    past = [log_delta for epsilon, log_delta in (found.curves.profile if found.curves else ()) if epsilon >= 1.0]
    assert past
    assert max(past) <= math.log(1e-6)


def test_a_release_of_one_order_has_no_curves() -> None:
    assert ask("dp-sgd", {**CLIPPED, "adjacency": "add"}, QUESTION, notes=False, best_only=True).curves is None


@pytest.mark.parametrize("fpr", [1e-5, 0.001, 0.1, 0.5, 0.9])
def test_through_points_is_no_less_than_the_truth(fpr: float) -> None:
    points = {e / 4: float(gaussian_log_delta(1.0, e / 4)) + 1e-12 for e in range(20)}
    (found,) = Profile(points.__getitem__).tprs((fpr,), tuple(points))
    assert gaussian_tpr(1.0, fpr) <= found + 1e-12
    assert found <= 1.3 * Gdp(1.0).trade_off().tpr(fpr)
    box = Box(1.0, math.log(1e-5)).trade_off().tpr(fpr)
    if fpr < math.exp(-1.0):
        one = Profile(lambda _: math.log(1e-5)).tprs((fpr,), (1.0,))
        assert one == pytest.approx([box], rel=1e-9)


def test_a_slow_bound_is_asked_no_more_than_once() -> None:
    run = {**ONE_PASS, "algorithm": "shuffled", "records": 60000, "permutation": "secret"}
    found = ask("compare", run, QUESTION, notes=False)
    assert found.best is not None
    assert lookup(found.best.bound).slow
    profile = found.curves.profile if found.curves else ()
    assert max(d for e, d in profile if e >= found.best.value) == pytest.approx(math.log(1e-6), rel=1e-9)
