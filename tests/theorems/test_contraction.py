"""Contraction, shift and hidden-position bounds: very many steps, published figures and values known in closed form.

Runs of few steps are compared with their definitions in `tests.soundness`, and with tables in `tests.reference`.
"""

import math
from fractions import Fraction
from typing import Any

import mpmath as mp
import pytest
from flint import arb

from dpcalc.certify.numerics import balls as certified
from dpcalc.certify.numerics.balls import log_step, log_sum, settle
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.errors import NotApplicable
from dpcalc.model import loss_class as loss
from dpcalc.model import noise
from dpcalc.model.run import describe
from dpcalc.theorems.contraction import contraction, laplace, online, recursion, shuffle
from dpcalc.theorems.hidden import hidden_position
from dpcalc.theorems.record import lookup
from tests.formulas import evaluated
from tests.oracles import call, draws, log_uniform, not_below, whole
from tests.soundness.campaign import campaign, report
from tests.soundness.compare import PROVED, judged
from tests.soundness.generate import Case

N = 10**15
NOISES = ("gaussian", "laplace")


# --- products


def test_where_pure_privacy_holds_delta_is_zero() -> None:
    """Equal to the last bit where every number is a short binary fraction: epsilon = r_A, or r_B."""
    given = {"records": 9, "batch_size": 1, "noise": "laplace", "scale": 2.0, "step_size": 0.5, "displacement": 1.0}
    own = {**given, "sensitivity": 2.0, "diameter": 64.0, "epsilon": 1.0}
    later = {**given, "sensitivity": 2000.0, "diameter": 1.0, "epsilon": 1.0}
    assert evaluated(contraction.product, **own, index=9) == -math.inf
    assert evaluated(contraction.product, **own, index=1) == -math.inf
    assert evaluated(contraction.product, **later, index=8) == -math.inf
    assert evaluated(contraction.product, **later, index=9) > -1e-200
    assert evaluated(contraction.product, **{**own, "epsilon": 1.0 - 2**-53}, index=9) > -45.0


# --- the shift bound


def test_shift_of_the_last_record_and_with_equal_steps() -> None:
    given = {
        "batch_size": 1, "sensitivity": 2.0, "noise": "gaussian", "scale": 2.0, "step_size": 0.5,
        "loss_class": "convex-smooth", "smoothness": 1.0, "strong_convexity": 0.0,
    }  # fmt: skip
    assert evaluated(contraction.shift, records=7, index=7, **given) == pytest.approx(1.0, rel=1e-14)
    assert evaluated(contraction.shift, records=100, index=1, **given) == pytest.approx(0.1, rel=1e-14)
    # (2 L/sigma) c^k/sqrt(1 + ... + c^(2k)) for c = 0.9, k = 10.
    curved = {**given, "step_size": 0.1, "strong_convexity": 1.0}
    assert evaluated(contraction.shift, records=11, index=1, **curved) == pytest.approx(0.1600713143859905, rel=1e-12)


# --- recursions in blocks


@pytest.mark.parametrize(
    "subject",
    ["contraction.nonlinear", "contraction.hybrid", "contraction.stop_nonlinear", "contraction.stop_hybrid",
     "shuffle.nonlinear", "shuffle.hybrid", "shuffle.stop_hybrid"],
)  # fmt: skip
def test_blocks_of_steps_are_above_every_step_and_hardly_so(subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As runs of more than 4096 steps are walked, on runs that the definition walks one by one."""
    monkeypatch.setattr(recursion, "_EXACT_STEPS", 8)
    tally = campaign(100, 34, only=(subject,))
    assert not tally.failures, report(tally)
    assert not tally.loose, report(tally)


@pytest.mark.parametrize(
    ("epsilon", "diameter", "sensitivity"), [(6.0, 8.4, 1e6), (47.677, 29.968, 147.42), (1.0, 6.0, 1e6)]
)
@pytest.mark.parametrize("subject", ["contraction.stop_hybrid", "shuffle.hybrid", "shuffle.stop_hybrid"])
def test_blocks_across_the_bend_of_the_shift_bound(
    subject: str, epsilon: float, diameter: float, sensitivity: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing happens for a while, then delta falls within a few steps."""
    given = {
        "records": 2000, "batch_size": 1, "index": 1, "noise": "gaussian", "scale": 1.0, "step_size": 1.0,
        "epsilon": epsilon, "sensitivity": sensitivity, "displacement": 1.0, "diameter": diameter, "smoothness": 1.0,
        "strong_convexity": 0.0, "loss_class": "convex-smooth", "last_batch": "own",
    }  # fmt: skip
    monkeypatch.setattr(recursion, "_EXACT_STEPS", 8)
    assert judged(Case(subject, given)).outcome == PROVED


# --- Laplace noise in one dimension


def gamma_mixture(ratio: float, steps: int, epsilon: float) -> mp.mpf:
    """ln E theta(epsilon, ratio/sqrt(2 G)), G ~ Gamma(steps), by quadrature in ln G around its peak."""

    def log_theta(mu: mp.mpf) -> mp.mpf:
        return mp.log(mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu))

    def exponent(t: mp.mpf) -> mp.mpf:
        return log_theta(ratio / mp.sqrt(2 * steps * mp.exp(t))) - steps * (mp.expm1(t) - t)

    low, high = mp.mpf(-20), mp.mpf(0)
    while high - low > mp.mpf("1e-9"):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (a, high) if exponent(a) < exponent(b) else (low, b)
    top, width = exponent(low), 1 / mp.sqrt(-mp.diff(exponent, low, 2))
    area = mp.quad(lambda t: mp.exp(exponent(t) - top), [low + k * width for k in (-20, -6, -2, 0, 2, 6, 20)])
    return top + mp.log(area) + steps * (mp.log(steps) - 1) - mp.loggamma(steps)


@pytest.mark.few(1)
@pytest.mark.parametrize("later", [5000, 10**9, 10**15 - 1])
def test_laplace_mixture_of_very_many_steps(later: int) -> None:
    """As good as that of 1e9 steps, at least."""
    ratio, epsilon = 0.01847821597706903, 0.0055
    found = laplace.LaplaceShift(ratio, epsilon).mixture(later)
    with mp.workdps(40):
        assert gamma_mixture(ratio, later + 1, epsilon) <= found
        assert found <= gamma_mixture(ratio, min(later, 10**9) + 1, epsilon) + 1e-3


@pytest.mark.parametrize(("ratio", "epsilon"), [(0.5, 0.2), (2.0, 0.5), (2.0, 1.0), (6.0, 1.0)])
@pytest.mark.parametrize("n", [20, 60])
def test_shuffled_laplace_mixture_is_a_few_per_cent_off(ratio: float, epsilon: float, n: int) -> None:
    given = {
        "batch_size": 1, "last_batch": "own", "sensitivity": ratio, "noise": "laplace", "scale": 1.0, "step_size": 1.0,
        "smoothness": 1.0, "epsilon": epsilon,
    }  # fmt: skip

    def places() -> arb:
        own = log_step("laplace", arb(epsilon), arb(ratio))
        return log_sum(*(own.min(certified.mixture(arb(ratio), k, arb(epsilon))) for k in range(n))) - arb(n).log()

    found, value = evaluated(shuffle.laplace_mixture, records=n, **given), settle(places)
    not_below(found, value, f"{n} {ratio} {epsilon}")
    assert found <= float(value) + 0.08


# --- a secret order


def hidden(records: int, epsilon: float, sigma: float = 1.0, **more: Any) -> float:
    given = {
        "batch_size": 1, "last_batch": "own", "sensitivity": 2.0, "noise": "gaussian", "step_size": 1.0,
        "smoothness": 1.0, "adjacency": "replace-one", **more,
    }  # fmt: skip
    return evaluated(hidden_position.shuffled, records=records, scale=sigma, epsilon=epsilon, **given)


HIDDEN = [
    # n, sigma, eps, log10 of: position public, Theorem H, the best exact instance
    (10**3, 0.5, 0.1, -1.224, -1.228, -1.790),
    (10**3, 0.5, 0.5, -1.810, -2.145, -3.162),
    (10**3, 0.5, 1, -2.125, -2.790, -3.264),
    (10**3, 0.5, 2, -2.457, -3.197, -3.434),
    (10**3, 0.5, 4, -2.827, -3.615, -3.763),
    (10**3, 2, 0.1, -2.334, -2.738, -5.150),
    (10**3, 2, 0.5, -3.182, -8.891, -12.805),
    (10**3, 2, 1, -3.709, -13.294, -15.651),
    (10**3, 2, 2, -4.652, -18.686, -20.124),
    (10**3, 2, 4, -7.327, -27.804, -28.921),
    (10**3, 8, 0.1, -3.700, -11.834, -39.435),
    (10**3, 8, 0.5, -5.541, -92.295, -151.2),
    (10**3, 8, 1, -8.534, -162.9, -198.2),
    (10**3, 8, 2, -19.293, -250.4, -272.0),
    (10**3, 8, 4, -61.139, -399.4, -416.9),
    (10**5, 0.5, 0.1, -3.099, -4.852, -5.507),
    (10**5, 0.5, 0.5, -3.810, -5.637, -5.793),
    (10**5, 0.5, 1, -4.125, -5.855, -5.961),
    (10**5, 0.5, 2, -4.457, -6.149, -6.219),
    (10**5, 0.5, 4, -4.827, -6.678, -6.720),
    (10**5, 2, 0.1, -4.334, -20.204, -24.012),
    (10**5, 2, 0.5, -5.182, -30.815, -31.805),
    (10**5, 2, 1, -5.709, -35.959, -36.559),
    (10**5, 2, 2, -6.652, -43.245, -43.611),
    (10**5, 2, 4, -9.327, -56.356, -56.606),
    (10**5, 8, 0.1, -5.700, -238.1, -305.1),
    (10**5, 8, 0.5, -7.541, -418.5, -433.4),
    (10**5, 8, 1, -10.534, -502.6, -511.6),
    (10**5, 8, 2, -21.293, -621.9, -627.4),
    (10**5, 8, 4, -63.139, -836.5, -840.3),
]


@pytest.mark.parametrize(("n", "sigma", "epsilon", "public", "known", "lower"), HIDDEN)
def test_hidden_position_table(n: int, sigma: float, epsilon: float, public: float, known: float, lower: float) -> None:
    found = hidden(n, float(epsilon), float(sigma)) / math.log(10)
    digit = 0.06 if lower < -100 else 6e-4
    assert lower - digit <= found
    assert found <= known + 0.004 + digit  # 1 % in delta
    given = {"sensitivity": 2.0, "noise": "gaussian", "step_size": 1.0, "smoothness": 1.0, "last_batch": "own"}
    mixture = evaluated(shuffle.mixture, records=n, batch_size=1, scale=float(sigma), epsilon=float(epsilon), **given)
    assert mixture / math.log(10) == pytest.approx(public, abs=1e-3)


# --- figures


def log_delta(bound: str, algorithm: str, epsilon: float, **told: Any) -> float:
    """Through the public path."""
    run = describe(algorithm, told)
    assert lookup(bound).obstacle(run) is None
    return guarantee_of(lookup(bound), run).log_delta(epsilon).value


TUNED = {"lipschitz": 10.0, "loss_class": "convex-smooth", "smoothness": 1.0, "diameter": 1.0, "c1": 1e5}
FIGURE_2 = {**TUNED, "step_size": 0.1, "c2": 2.0, "noise": "laplace"}
FIGURE_3 = {**TUNED, "c2": 100.0, "noise": "gaussian"}


def test_figure_2_nears_its_limit_from_above_as_1_over_n() -> None:
    limit = log_delta("shuffle.limit", "shuffled", 1.0, **FIGURE_2, records=10**12)
    found = log_delta("shuffle.product", "shuffled", 1.0, **FIGURE_2, records=10**12)
    assert math.expm1(found - limit) * 10**12 == pytest.approx(2e5, rel=1e-3)


STREAM = {
    "lipschitz": 10.0, "loss_class": "convex-smooth", "smoothness": 1.0, "diameter": 1.0, "step_size": 0.01,
    "c1": 100.0, "c2": 100.0, "decay_exponent": 1.5, "index": 100,
}  # fmt: skip


@pytest.mark.parametrize(("eta", "delta"), [(0.1, 1.108e-7), (0.02, 3.955e-9), (0.01, 6.947e-10)])
def test_figure_3_hybrid(eta: float, delta: float) -> None:
    """As published without the diameter's own shift bound, which is the less of the two at eta = 0.1 (kappa = 2)."""
    found = math.exp(log_delta("shuffle.hybrid", "shuffled", 1.0, **FIGURE_3, step_size=eta, records=10**9))
    assert found == pytest.approx(delta, rel=2e-3) if eta < 0.1 else found < delta


@pytest.mark.parametrize(("kind", "log10"), [("laplace", -7.47612), ("gaussian", -1.05e42)])
def test_printed_limit_of_a_stream(kind: str, log10: float) -> None:
    printed = log_delta("online.limit_printed", "online", 1.0, **STREAM, noise=kind, records=10**6)
    assert printed / math.log(10) == pytest.approx(log10, rel=1e-2 if kind == "gaussian" else 1e-4)


def test_stream_nears_its_limit_as_a_power() -> None:
    """delta_n/delta_inf - 1 ~ C1 e^(eps/2) n^(1-alpha)/(alpha-1)."""
    told = {**STREAM, "noise": "laplace"}
    limit = log_delta("online.limit", "online", 1.0, **told, records=N)
    for n, rel in ((10**9, 0.02), (10**12, 1e-3)):
        found = log_delta("online.product", "online", 1.0, **told, records=n)
        assert math.expm1(found - limit) * math.sqrt(n) == pytest.approx(329.74, rel=rel)


# --- which way they go


def test_more_c1_is_more_noise_for_a_stream() -> None:
    for r in draws("more c1", 40, 40):
        given = {
            "records": 3000, "index": whole(r, 1, 100), "sensitivity": log_uniform(r, 0.1, 100),
            "noise": r.choice(NOISES), "c2": r.choice((2.0, 100.0)), "decay_exponent": log_uniform(r, 1.0, 3.0),
            "schedule_factor": 1.0, "step_size": 0.01, "displacement": 1.0, "diameter": 1.0,
            "epsilon": log_uniform(r, 1e-2, 3),
        }  # fmt: skip
        c1 = log_uniform(r, 1.0, 1e4)
        less, more = (evaluated(online.product, c1=c, **given) for c in (c1, c1 * r.uniform(1.01, 5)))
        assert more <= less + 1e-10 * (1 + min(abs(less), 1e300)), call(online.product, c1=c1, **given)
        doubled = evaluated(online.product, c1=c1, **{**given, "schedule_factor": 2.0})
        assert doubled <= less + 1e-10 * (1 + min(abs(less), 1e300)), call(online.product, c1=c1, **given)


def test_the_tuned_schedule_is_not_monotone_in_n() -> None:
    """Why no one may solve for n along it: at eta = 0.02 delta dips to 1.7e-6 and rises again."""
    told = {**FIGURE_3, "step_size": 0.02}
    deltas = [math.exp(log_delta("shuffle.product", "shuffled", 1.0, **told, records=10**k)) for k in (6, 7, 8, 9)]
    assert deltas[0] > deltas[1] < deltas[2] < deltas[3]


# --- what a step does


@pytest.mark.parametrize(
    ("known", "eta", "lipschitz", "beta", "rho", "expected"),
    [
        ("convex-smooth", 0.5, None, 1.0, 0.5, Fraction(3, 4)),
        ("convex-smooth", 1.75, None, 1.0, 0.5, Fraction(3, 4)),
        ("convex-smooth", 3.0, None, 1.0, 0.5, Fraction(2)),
        ("convex-smooth", 2.0, None, 1.0, 0.0, Fraction(1)),
        ("convex-smooth", 0.2, None, 10.0, 0.0, Fraction(1)),
        ("convex-smooth", 2.5, None, 1.0, 0.0, Fraction(3, 2)),
        ("convex", 3.0, 0.125, None, 0.0, Fraction(5, 4)),
        ("smooth", 0.5, None, 1.0, 0.0, Fraction(3, 2)),
        ("smooth", 0.5, 0.25, 1.0, 0.0, Fraction(5, 4)),
        ("lipschitz", 0.5, 1.0, 1.0, 0.0, Fraction(2)),
    ],
)
def test_displacement_rows(
    known: str, eta: float, lipschitz: float | None, beta: float | None, rho: float, expected: Fraction
) -> None:
    found = loss.displacement(
        loss_class=known, step_size=eta, diameter=1.0, lipschitz=lipschitz, smoothness=beta, strong_convexity=rho
    )
    assert found is not None
    assert Fraction(found) >= expected
    assert found == pytest.approx(float(expected), rel=4e-15)


def test_a_long_step_of_smooth_convex_losses_counts_two_over_beta_less() -> None:
    """eta = 3, beta = 1, L = 1/8, D = 1: at most sqrt(D^2 + 4 L^2 eta (eta - 2/beta))/D = sqrt(19)/4 < 5/4, attained.

    Gradients differ by d = A u, 0 <= A <= beta, so that <d, u> >= |d|^2/beta and |u - eta d|^2 is at most
    |u|^2 + eta |d|^2 (eta - 2/beta), |d| <= 2 L. Huber's loss of one coordinate of two has all this with equality.
    """
    eta, lipschitz = 3.0, 0.125
    found = loss.displacement(
        loss_class="convex-smooth", step_size=eta, diameter=1.0, lipschitz=lipschitz, smoothness=1.0
    )
    assert found is not None
    assert Fraction(found) ** 2 >= Fraction(19, 16)
    assert found == pytest.approx(math.sqrt(19.0) / 4.0, rel=4e-15)
    ends = [(side * lipschitz, side * math.sqrt(1.0 - 4.0 * lipschitz**2) / 2.0) for side in (-1.0, 1.0)]
    assert math.dist(*ends) == pytest.approx(1.0)
    after = [(x - eta * min(max(x, -lipschitz), lipschitz), y) for x, y in ends]
    assert math.dist(*after) == pytest.approx(found, rel=1e-14)


# --- noise schedules


@pytest.mark.parametrize(
    ("kind", "x", "c1", "c2"),
    [
        ("laplace", 1, 1.0, 0.0),
        ("laplace", 10, 10.0, 0.0),
        ("laplace", 10, 20.0, 0.5),
        ("laplace", 5, 1.0, -4.5),
        ("gaussian", 1, 1.0, -1.0),
        ("gaussian", 1000, 1e5, -0.1),
    ],
)
def test_undefined_schedules(kind: str, x: int, c1: float, c2: float) -> None:
    """x/C1 + C2 <= 1, or x^2/(2 pi C1^2) + C2 <= 0: infinite or negative noise."""
    with pytest.raises(NotApplicable):
        noise.scale(kind, log_x=math.log(x), c1=c1, c2=c2, displacement=1.0, diameter=1.0, step_size=1.0)
