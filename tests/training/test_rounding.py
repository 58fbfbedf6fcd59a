"""What is released tells no low-order bits: exact sums, grids, and the bounds on what rounding can tell."""

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from dpcalc.errors import NotApplicable
from dpcalc.model.loss import of
from dpcalc.model.loss.base import ScaledDescent
from dpcalc.training.run import domain, kernel, single
from dpcalc.training.run.exact_sums import ExactSums, bits_kept, cut_iterate, grid_of, rounded, rounded_sum
from dpcalc.training.run.orders import Stretch
from dpcalc.training.run.plan import Plan, plan
from dpcalc.training.run.problem import Problem
from dpcalc.training.run.rounding import (
    LAWS,
    Rounding,
    _Errors,
    output_miss,
    output_rounding,
    shifted,
    stretch,
    sum_error,
    sum_miss,
)
from tests.training.reference import Recorder, cut, data, problem_of, run_of

LOGISTIC = of("logistic", feature_bound=1.0)
SUMS = Rounding(1e-10)


# --- sums -------------------------------------------------------------------------------------------------------------


SUMMED = [
    (LOGISTIC, False), (of("squares", feature_bound=0.7, label_bound=3.0, radius=9.0), False),
    *((of("softmax", feature_bound=1.0, classes=classes), False) for classes in (2, 3, 11)),
    (of("softmax", feature_bound=1.0, classes=4), True),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "capped"), SUMMED, ids=str)
@pytest.mark.parametrize("columns", [1, 7])
def test_sums_are_exact_in_any_order(loss: Any, capped: bool, columns: int) -> None:
    x, y = data(300, columns, 5, signed=loss.signed, scale=3.0)
    if loss.classified:
        y = np.random.default_rng(3).integers(loss.scores, size=300).astype(float)
    problem = Problem(np.ascontiguousarray(x * loss.feature_bound), y, loss)
    sums = ExactSums(problem, 0.1, 300, capped=capped)
    w = 3.0 * np.random.default_rng(1).normal(size=columns * loss.scores)
    order = np.random.default_rng(2).permutation(300)
    ones = [[Fraction(float(entry)) for entry in sums.descent(w, np.array([i]))] for i in range(300)]
    expected = [sum(column) for column in zip(*ones, strict=True)]
    for rows in (None, np.arange(300), order, order[::-1].copy()):
        assert [Fraction(float(each)) for each in sums.descent(w, rows)] == expected
    assert all(sum(entry**2 for entry in one) < Fraction(0.1) ** 2 for one in ones)


@pytest.mark.parametrize("loss", [loss for loss, _ in SUMMED if not loss.classified], ids=str)
def test_one_record_is_summed_as_several_are(loss: Any) -> None:
    """A slope may be another by its last place, and is cut far above that: but for a unit they agree."""
    problem = problem_of(loss, 60, 5)
    sums, rows, ones = ExactSums(problem, 0.3, 1), np.arange(60)[:, np.newaxis], []
    w = 2.0 * np.random.default_rng(4).normal(size=5)
    sums.released = lambda total, noise: (ones.append(total), noise)[1]
    still = Stretch(0, rows, 60, 1, 1, ends_pass=False), np.zeros(60), np.full(60, 8.0), np.zeros((60, 5))
    assert (sums.singly(*still).taken(w, np.ones(60), domain.Ball()) == w).all()
    assert len(ones) == 60
    for i, one in enumerate(ones):
        whole = sums._sum([(sums.features[i : i + 1], problem.labels[i : i + 1], sums.steepest[i : i + 1])], w)
        assert np.abs(one - whole).max() <= sums.slope_unit * np.abs(sums.features[i]).max()
        assert [Fraction(float(each)) % Fraction(sums.unit * sums.slope_unit) for each in one] == [0] * 5
        assert sum(Fraction(float(each)) ** 2 for each in one) < Fraction(0.3) ** 2
    assert max(np.abs(one).max() for one in ones) > 0.1


def test_a_gradient_is_that_of_the_loss_cut_off_at_its_bound() -> None:
    problem = problem_of(LOGISTIC, 50, 4)
    w = np.array([3.0, -1.0, 0.5, 2.0])
    sums = ExactSums(problem, 0.2, 50)
    for i in range(50):
        x, y = problem.features[i], problem.labels[i]
        gradient = LOGISTIC.gradient(w, x[np.newaxis], y[np.newaxis])[0]
        length = np.linalg.norm(gradient)
        descent = sums.descent(w, np.array([i]))
        assert descent == pytest.approx(-gradient * min(1.0, 0.2 / length), abs=1e-5)
        assert sum(Fraction(float(each)) ** 2 for each in descent) < Fraction(0.2) ** 2


@pytest.mark.parametrize("norm", [1, 2])
def test_replacing_a_record_moves_a_sum_by_its_own_gradients_alone(norm: int) -> None:
    """Bit for bit: no other record's slope depends on it, even where its own is not finite."""
    problem = problem_of(LOGISTIC, 40, 3)
    for new in ([0.9, 0.1, 0.0], [0.0, 0.0, 0.0], [1e-300, 0.0, 0.0]):
        features = problem.features.copy()
        features[17] = new
        other = Problem(features, problem.labels, LOGISTIC)
        for w in (np.array([1.0, -2.0, 3.0]), np.array([1e140, 1e-9, -1e140])):
            before, after = (ExactSums(each, 1.0, 40, norm) for each in (problem, other))
            with np.errstate(over="ignore"):
                change = after.descent(w, None) - before.descent(w, None)
                own = after.descent(w, np.array([17])) - before.descent(w, np.array([17]))
            assert change.tolist() == own.tolist()
            assert np.linalg.norm(change, norm) <= 2.0


def test_a_slope_that_is_not_finite_is_cut_off_like_others() -> None:
    problem = problem_of(LOGISTIC, 5, 2)
    sums = ExactSums(problem, 1.0, 5)

    def overwrite(z: np.ndarray, y: np.ndarray) -> None:
        z[:] = [math.nan, 1.0, -math.inf, math.inf, 1.0]

    sums.scaled = ScaledDescent(1.0, 1.0, overwrite)
    sizes = np.array([np.linalg.norm(row) for row in sums.features])
    steepest = np.floor((1.0 - 2.0**-40) / sizes / sums.slope_unit) * sums.slope_unit
    slopes = np.array([1.0, 1.0, -1.0, 1.0, 1.0]) * [steepest[0], 1.0, steepest[2], steepest[3], 1.0]
    assert sums.descent(np.ones(2), None).tolist() == (slopes @ sums.features).tolist()


@pytest.mark.parametrize("length", [1.0, 3e154, 1e150, 2e-170, 1e-145])
def test_sums_are_exact_where_squares_of_weights_are_no_doubles(length: float) -> None:
    """Scores are 0, and others in some order of summation if the weights keep all their bits."""
    count = 67
    x = np.array([3.0, -1.0, -1.0, -1.0, 5.0, -2.0, -3.0, 0.0, 0.0]) / 16.0
    w = length * 1.2345 * np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0])
    problem = Problem(np.tile(x, (count, 1)), np.ones(count), LOGISTIC)
    sums = ExactSums(problem, 1.0, count)
    with np.errstate(over="ignore"):
        kept = cut_iterate(w, sums.kept, 0.5)
        one = sums.descent(w, np.array([0]))
        expected = [count * Fraction(float(each)) for each in one]
        for rows in (None, np.arange(count)):
            assert [Fraction(float(each)) for each in sums.descent(w, rows)] == expected
    assert one == pytest.approx(0.5 * x, rel=1e-5)
    mantissa = int(math.ldexp(math.frexp(kept[0])[0], 53))
    assert mantissa % 2**20 == 0  # 33 bits at most are kept
    assert kept[0] == pytest.approx(0.5 * w[0], rel=1e-8)


@pytest.mark.parametrize(("size", "bits"), [(1, 20), (4096, 20), (4097, 19), (43152, 18), (2**30, 11)])
def test_fewer_bits_are_kept_of_longer_sums(size: int, bits: int) -> None:
    assert bits_kept(size) == bits
    assert size <= 2 ** (52 - 2 * bits)


@pytest.mark.parametrize("scale", [1.0, 0.999, 1.001, 3e-9, 7e20, math.nextafter(2.0, 0.0)])
def test_a_scale_is_8_to_16_cells(scale: float) -> None:
    grid = grid_of(scale)
    assert math.frexp(grid)[0] == 0.5
    assert 8.0 <= scale / grid < 16.0


def test_a_noisy_sum_is_the_nearest_point_of_the_grid() -> None:
    rng = np.random.default_rng(3)
    total, drawn = rng.integers(-(2**45), 2**45, size=2000) * 2.0**-40, rng.normal(size=2000)
    found = rounded_sum(total, drawn, 0.9)
    for t, z, value in zip(total, drawn, found, strict=True):
        assert Fraction(float(value)) == round(
            (Fraction(float(t)) + Fraction(0.9) * Fraction(float(z))) * 16
        ) / Fraction(16)


def test_nothing_is_minus_0() -> None:
    assert not np.signbit(rounded(np.array([-0.01, -0.0, 0.01]), 1.0)).any()
    assert not np.signbit(rounded_sum(np.zeros(2), np.array([-0.01, 0.01]), 1.0)).any()


# --- the bounds -------------------------------------------------------------------------------------------------------


def density(law: str, z: Any) -> Any:
    return mpmath.npdf(z) if law == "gaussian" else mpmath.exp(-abs(z)) / 2


def between(law: str, low: Any, high: Any) -> Any:
    if law == "gaussian":
        return mpmath.ncdf(-low) - mpmath.ncdf(-high) if low > 0 else mpmath.ncdf(high) - mpmath.ncdf(low)
    if low < 0 < high:
        return 1 - (mpmath.exp(low) + mpmath.exp(-high)) / 2
    near, far = sorted((abs(low), abs(high)))
    return (mpmath.exp(-near) - mpmath.exp(-far)) / 2


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [8.0, 11.3, 15.999])
def test_misses_of_a_noisy_sum_are_as_rare_as_said(law: str, scale: float) -> None:
    """The probability of the points within the error of the middle between two cells, to first order in the error."""
    unit, relative, absolute = mpmath.mpf(2) ** -53, LAWS[law].relative, LAWS[law].absolute
    for offset in (0.0, 0.25, 0.5):
        near = mpmath.mpf(0)
        for cell in range(-400, 401):
            z = (cell + 0.5 + offset) / mpmath.mpf(scale)
            error = unit * (1 + (3 + relative) * scale * abs(z) + absolute * scale)
            near += 2 * error * density(law, z) / scale
        assert 0.4 * sum_miss(law) < near < sum_miss(law)


@pytest.mark.parametrize("scale", [8.0, 11.3, 15.999])
def test_a_machine_of_11_bits_misses_no_more_often_than_said(scale: float) -> None:
    """Noise and sums in half precision against the same in double, which stand for real numbers."""
    drawn = np.random.default_rng(7).normal(size=500_000)
    short, within = np.float16(scale), np.float16(0.37)
    ideal = np.rint(float(within) + float(short) * drawn)
    machine = np.rint(within + short * drawn.astype(np.float16))
    missed = np.count_nonzero(ideal != machine) / len(drawn)
    assert 1e-3 < missed < sum_miss("gaussian") * 2.0**42  # units of 2^-11


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("scale", [8.0, 15.999])
def test_a_cell_changes_by_no_larger_factor_than_said(law: str, scale: float) -> None:
    """Of single cells: their probability with the largest error at both ends, over that without."""
    with mpmath.workdps(60):
        for error in (sum_error(law), 1e-6, 0.01):
            log_factor, _ = stretch(law, 1.0, error)
            for offset in (0.0, 0.3):
                for far in range(0, int(scale * LAWS[law].near), 7):
                    low, high = ((far + offset + side) / mpmath.mpf(scale) for side in (0, 1))
                    wide = between(law, low - error / scale, high + error / scale)
                    narrow = between(law, low + error / scale, high - error / scale)
                    middle = between(law, low, high)
                    assert wide <= mpmath.exp(log_factor) * middle
                    assert middle <= mpmath.exp(log_factor) * narrow


@pytest.mark.parametrize(
    ("law", "last", "top"), [("gaussian", 3.6541528853610088, 12.2259), ("laplace", 7.6971174701310497, 44.434)]
)
def test_what_is_rare_and_far_apart_in_the_tail_of_a_generator(law: str, last: float, top: float) -> None:
    """Draws past the last layer: their spacing by the derivative of -ln(1 - U), U a multiple of 2^-53."""
    known, unit = LAWS[law], mpmath.mpf(2) ** -53
    rate = last if law == "gaussian" else 1.0

    def spacing(z: Any) -> Any:
        return unit * mpmath.exp(rate * (z - last)) / rate

    assert 3 * spacing(known.near + 0.5) < known.spacing * unit
    slivers = 2 * mpmath.quad(lambda z: density(law, z) * 2 * 16 * spacing(z), [known.near, known.near + 2, top])
    beyond = 2 * between(law, top, mpmath.mpf(1000))
    compared = mpmath.mpf(10) ** -10 * 2 * between(law, known.near, mpmath.mpf(1000))
    assert 3 * (slivers + beyond + compared) < known.rare
    far = 7 if law == "gaussian" else 14
    assert 3 * spacing(far) < known.coarse * unit
    error = 2 * mpmath.quad(lambda z: density(law, z) * spacing(z), [far, far + 2, top])
    excess = 2 * mpmath.quad(lambda z: density(law, z) * (z - top), [top, top + 5, top + 50])
    usual = 2 * between(law, far, mpmath.mpf(1000)) * (3 * top + 8) * unit
    assert 3 * (error + excess + usual) < known.tail
    edge = known.near - 0.25
    assert 2 * (between(law, edge, mpmath.mpf(1000)) + density(law, edge) / 8) < known.above


def test_the_tail_of_the_generator_is_on_its_lattice() -> None:
    """Of the largest of many draws: 2^53 exp(-c (z - c)) is whole, but for the rounding of z."""
    generator, last = np.random.Generator(np.random.SFC64(5)), 3.6541528853610088
    drawn = np.concatenate([np.abs(generator.standard_normal(1 << 20)) for _ in range(16)])
    steps = 2.0**53 * np.exp(-last * (drawn[drawn > 5.2] - last))
    assert len(steps) > 1
    assert np.abs(steps - np.rint(steps)).max() < 0.1


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_misses_of_a_released_number_are_as_rare_as_said(law: str) -> None:
    """A number uniform in its law's cell, against the comb of middles; the density is unimodal."""
    for scale, grid in ((1.0, 0.125), (1.0, 1.0), (0.3, 2.0)):
        error = 1e-3 * grid
        near = sum(
            between(law, (cell * grid - error) / scale, (cell * grid + error) / scale)
            for cell in range(-int(40 * scale / grid) - 2, int(40 * scale / grid) + 3)
        )
        assert near <= output_miss(law, error, scale, grid)


@pytest.mark.parametrize(
    ("scale", "shift", "epsilon", "expected"),
    [
        (8, 8, 1, "0.12627768581622620616"),
        (4, 2, "0.5", "0.051361647639742168752"),
        (2, 3, 2, "0.13630003814889917678"),
        ("0.5", 1, 1, "0.41007505231710774978"),
    ],
)
def test_rounded_noise_is_no_less_private_than_noise(scale: Any, shift: Any, epsilon: Any, expected: str) -> None:
    """The laws on a lattice, in cells, against the closed form of the Gaussian mechanism."""
    with mpmath.workdps(40):
        s, a, e = mpmath.mpf(scale), mpmath.mpf(shift), mpmath.mpf(epsilon)

        def cell(k: int, mean: Any) -> Any:
            return mpmath.ncdf((k + mpmath.mpf("0.5") - mean) / s) - mpmath.ncdf((k - mpmath.mpf("0.5") - mean) / s)

        delta = sum(max(mpmath.mpf(0), cell(k, a) - mpmath.exp(e) * cell(k, 0)) for k in range(-60, 90))
        mu = a / s
        continuous = mpmath.ncdf(-e / mu + mu / 2) - mpmath.exp(e) * mpmath.ncdf(-e / mu - mu / 2)
        assert delta == pytest.approx(mpmath.mpf(expected), rel=1e-15)
        assert delta <= continuous


def test_costs_put_the_two_forms_side_by_side() -> None:
    log_factor, tail = stretch("gaussian", 6500.0, sum_error("gaussian"))
    rounding = Rounding(6500.0 * sum_miss("gaussian"), log_factor, tail)
    assert rounding.cost(1.0).delta == pytest.approx(6500 * 3.83e-14 * (1.0 + math.e), rel=0.01)
    assert rounding.cost(1.0).epsilon == 0.0
    assert rounding.cost(800.0).delta == 1.0
    small = rounding.cost_in_epsilon(8.0)
    assert small.epsilon < 1e-5
    assert small.delta < 0.01 * rounding.cost(8.0).delta
    assert rounding.cost_in_epsilon(70.0).delta >= 1.0  # nothing is drawn beyond 12.23, which tells


# --- hidden iterates --------------------------------------------------------------------------------------------------


def step_on_real_numbers(chosen: Plan, problem: Problem, w: np.ndarray, rows: Any, noise: np.ndarray) -> np.ndarray:
    """Return what a step makes of an iterate that is not projected yet, in extended precision."""
    long, loss = np.longdouble, problem.loss
    held, size = long(chosen.domain.inner(chosen.columns)[0]), np.sqrt(w @ w)
    w = w * (held / size) if size > held else w
    x, y = problem.features[rows].astype(long), problem.labels[rows].astype(long)
    z = x @ w
    slopes = 1 / (1 + np.exp(y * z)) * y if loss.name == "logistic" else y - z
    if chosen.clip is not None:
        caps = long(chosen.clip * (1.0 - 1e-12)) / np.sqrt((x * x).sum(axis=1))
        slopes = np.clip(slopes, -caps, caps)
    eta, scale = long(float(chosen.step_size)), long(float(chosen.scale))
    moved = (slopes @ x) / len(rows) - loss.regularisation * w - scale * noise.astype(long)
    return np.asarray(w + eta * moved)


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no extended precision")
@pytest.mark.parametrize("columns", [6, 64, 65, 1000, 10**4])
@pytest.mark.parametrize("size", [1.0 - 1e-14, 1.0, 1.0 + 1e-14, 3.0])
def test_a_projection_is_as_near_as_said(columns: int, size: float) -> None:
    """Squares of which all but the first are lost one by one, and random ones."""
    ball, rng = domain.Ball(2.0), np.random.default_rng(columns)
    held = ball.inner(columns)[0]
    for w in (np.append(1.0, np.full(columns - 1, math.sqrt(0.9 * 2.0**-53))), rng.standard_normal(columns)):
        w *= size * held / float(np.sqrt(np.sum(w.astype(np.longdouble) ** 2)))
        exact = w.astype(np.longdouble)
        long = np.sqrt(np.sum(exact**2))
        exact *= min(np.longdouble(1.0), np.longdouble(held) / long)
        for moved in (w.copy(), np.stack((w, w))):
            ball.project(moved)
            off = float(np.sqrt(np.sum((np.atleast_2d(moved)[0] - exact) ** 2)))
            assert off <= 2.0**-53 * domain.projection_error(columns) * 2.0


STEPS: list[tuple[str, Any, dict[str, Any]]] = [
    ("pnsgd", "logistic", {}), ("pnsgd", "squares", {"step_size": 1.9}), ("pnsgd", "logistic", {"step_size": 1e-4}),
    ("cyclic", "logistic", {"epochs": 3, "batch_size": 4}), ("cyclic", "squares", {"epochs": 2, "step_size": 0.01}),
    ("cyclic", "logistic", {"epochs": 3, "batch_size": 20, "clip": 0.45}),
    ("cyclic", "logistic", {"epochs": 2, "batch_size": 5, "regularisation": 0.03}),
    ("pnsgd", "logistic", {"step_size": 1e-4, "radius": None}),
    ("cyclic", "logistic", {"epochs": 3, "batch_size": 4, "step_size": 1e-4, "radius": None}),
    ("noisy-gd", "logistic", {"steps": 60}), ("noisy-gd", "logistic", {"steps": 60, "radius": None}),
]  # fmt: skip


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no extended precision")
@pytest.mark.parametrize(("algorithm", "name", "given"), STEPS)
def test_a_step_is_nearer_to_that_on_real_numbers_than_said(
    algorithm: str, name: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step by step, from the program's own iterate."""
    monkeypatch.setattr(single, "_STEPS", 1)
    radius = given.get("radius", 0.5)
    labels = {"label_bound": 1.0} if name == "squares" else {}
    loss = of(name, feature_bound=1.0, radius=radius, regularisation=given.get("regularisation", 0.0), **labels)
    problem = problem_of(loss, 40, 6)
    clip = {"lipschitz": given["clip"], "clip": given["clip"]} if "clip" in given else {}
    described = {name: value for name, value in given.items() if name not in ("clip", "radius", "regularisation")}
    chosen = plan(run_of(algorithm, loss, 40, **{"step_size": 7.0, "noise_std": 0.05, **described}), 40, 6)
    chosen = chosen._replace(accounted=chosen.accounted | clip)
    errors = _Errors(chosen, loss)
    most = float(errors.before_noise() + errors.after_noise(0.0))
    recorder, states = Recorder(11), [np.full(6, 0.2 if radius else 0.0)]  # nearly 0.5 long; without a ball from 0
    run = single._Run(
        chosen, problem, kernel.Source(recorder, False, ""),  # type: ignore[arg-type]
        states[0].copy(), output_rounding(chosen, loss),
    )  # fmt: skip
    run.execute(lambda done, of_all: states.append(np.array(run.kernel.unprojected)))
    size = {"noisy-gd": 40}.get(algorithm, given.get("batch_size", 1))
    passes = given.get("epochs", given.get("steps", 1))
    batches = [rows for rows, _ in cut(np.arange(40), size)] * passes
    assert len(states) == len(batches) + 1
    worst = 0.0
    for before, after, rows, noise in zip(states, states[1:], batches, np.concatenate(recorder.noise), strict=False):
        ideal = step_on_real_numbers(chosen, problem, before.astype(np.longdouble), rows, noise)
        worst = max(worst, float(np.linalg.norm((after - ideal).astype(float))))
    assert 5e-5 * most < worst <= most


@pytest.mark.parametrize("shift", [1e-12, 1e-6, 1e-3, 0.1])
def test_a_shift_of_gaussians_costs_no_more_than_stated(shift: float) -> None:
    log_factor, tail = shifted(shift)
    with mpmath.workdps(60):
        s, h = mpmath.mpf(shift), mpmath.mpf(log_factor)
        delta = mpmath.ncdf(s / 2 - h / s) - mpmath.exp(h) * mpmath.ncdf(-s / 2 - h / s)
        assert 0 < delta <= tail


def moment_of_loss(law: str, power: Any, mean: Any, other: Any) -> Any:
    """Return E e^(t L) of noise about the mean, L = ln of its density over that of noise about the other mean."""

    def loss(z: Any) -> Any:
        return (
            (abs(z - other) - abs(z - mean)) * (abs(z - other) + abs(z - mean)) / 2
            if law == "gaussian"
            else abs(z - other) - abs(z - mean)
        )

    ends = sorted((mpmath.mpf(0), mean + power * (mean - other), mean, other))
    points = [ends[0] - 60, *dict.fromkeys(ends), ends[-1] + 60]
    return mpmath.quad(lambda z: density(law, z - mean) * mpmath.exp(power * loss(z)), points)


@pytest.mark.few(2)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("shift", ["0.001", "0.1", "1"])
def test_moments_of_the_loss_of_a_shift_are_as_the_proof_has_them(law: str, shift: str) -> None:
    """E e^(t L) <= e^((t + t^2) nu^2/2) under the shifted law and, of -L, under the other: so they multiply."""
    nu = mpmath.mpf(shift)
    with mpmath.workdps(30):
        for t in map(mpmath.mpf, ("0.1", "1", "9", "40")):
            for first, second in ((nu, mpmath.mpf(0)), (mpmath.mpf(0), nu)):
                assert moment_of_loss(law, t, first, second) <= mpmath.exp((t + t**2) * nu**2 / 2) * (1 + 1e-12)


@pytest.mark.parametrize("drift", [0.0, 0.02])
def test_a_machine_that_always_rounds_down_is_as_near_to_real_numbers_as_said(drift: float) -> None:
    """w -> 0.8 w + 1/8 + Z, its mean too small by the drift before the noise, and rounded down after it.

    On real numbers the outcome is normal; the machine is a chain on multiples of its unit, whose law is computed.
    Released are the outcomes rounded down, so that the last rounding is no error.
    """
    from scipy.stats import norm

    unit, steps, factor, push = 2.0**-6, 60, 0.8, 0.125
    points = unit * np.arange(-900, 980)
    law = (points == 0.0).astype(float)
    ends = np.append(points, math.inf)
    chain = np.diff(norm.cdf(ends - (factor * points + push - drift)[:, np.newaxis]), axis=1)
    for _ in range(steps):
        law = law @ chain
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    mean = push * (1 - factor**steps) / (1 - factor)
    real = np.diff(norm.cdf(ends, mean, math.sqrt((1 - factor ** (2 * steps)) / (1 - factor**2))))
    nu = math.sqrt(steps) * (drift + unit)
    for depth in (0.25, 0.5, 1.0, 2.0):
        h, tau = depth * nu + 0.5 * nu * nu, math.exp(-0.5 * depth * depth)
        for one, other in ((law, real), (real, law)):
            assert np.maximum(0.0, one - math.exp(h) * other).sum() <= tau
    assert 0.5 * np.abs(law - real).sum() > 0.4 * (0.5 * unit + drift)  # one step's error is not all that there is


def test_errors_of_many_steps_add_up_as_their_root() -> None:
    loss = of("logistic", feature_bound=1.0, radius=1.0)
    one, more = (
        _Errors(plan(run_of("pnsgd", loss, n, step_size=1e-3, noise_std=0.5), n, 20), loss).shift()
        for n in (10**4, 10**6)
    )
    assert more == pytest.approx(10.0 * one, rel=1e-9)


def test_every_released_pass_is_rounded() -> None:
    loss = of("logistic", feature_bound=1.0, radius=50.0)
    run = run_of("cyclic-released", loss, 30, step_size=1.0, noise_std=0.5, epochs=3)
    chosen = plan(run, 30, 2)
    rounding = output_rounding(chosen, loss)
    released = single.train(chosen, problem_of(loss, 30, 2), kernel.seeded(1), rounding=rounding).released
    assert rounding.grid is not None
    assert released.shape == (3, 2)
    assert (released / rounding.grid == np.rint(released / rounding.grid)).all()
    assert math.isinf(rounding.log_factor)
    once = output_rounding(plan(run_of("cyclic", loss, 30, step_size=1.0, noise_std=0.5, epochs=3), 30, 2), loss)
    assert rounding.miss > 2.0 * once.miss


def test_an_average_with_noise_is_rounded() -> None:
    loss = of("logistic", feature_bound=1.0, radius=2.0)
    run = run_of("dp-sgd-output", loss, 30, step_size=0.5, noise_std=0.3, steps=50)
    chosen, problem = plan(run, 30, 3), problem_of(loss, 30, 3)
    rounding = output_rounding(chosen, loss)
    assert rounding.grid == grid_of(0.3)
    weights = single.train(chosen, problem, kernel.seeded(1), rounding=rounding).weights
    plain = single.train(chosen, problem, kernel.seeded(1)).weights
    assert (weights == np.rint(plain / rounding.grid) * rounding.grid).all()


def test_iterates_that_are_all_released_are_not_taken_for_hidden_ones() -> None:
    run = run_of("noisy-gd-released", LOGISTIC, 30, step_size=1.0, noise_std=0.5, steps=3)
    with pytest.raises(NotApplicable, match="every iterate is released"):
        output_rounding(plan(run, 30, 2), LOGISTIC)


# --- the attack -------------------------------------------------------------------------------------------------------

COLUMNS, RELEASES = 2000, 400


def telling(rounding: Rounding | None, *, there: bool) -> int:
    """Return how many releases of one step have small entries, all of them sums of a drift and of noise near it."""
    features = np.zeros((20, COLUMNS))
    if there:
        features[0] = (1.0 - 1e-9) / math.sqrt(COLUMNS)
    problem = Problem(features, np.ones(20), LOGISTIC)
    chosen = plan(run_of("noisy-gd", LOGISTIC, 20, step_size=1.0, noise_std=0.373, steps=1), 20, COLUMNS)
    drift = 0.5 / 20.0 / math.sqrt(COLUMNS)
    found = 0
    for seed in range(RELEASES):
        w = single.train(chosen, problem, kernel.seeded(seed), rounding=rounding).weights
        small = w[(w != 0.0) & (np.abs(w) < drift / 64.0)]
        found += bool(len(small)) and bool((np.fmod(small, 0.5 * math.ulp(drift)) == 0.0).all())
    return found


def test_low_order_bits_of_plain_doubles_tell_a_record_from_none() -> None:
    """Where noise cancels a drift, what is left is a multiple of the drift's last bit; noise alone is finer."""
    there, absent = telling(None, there=True), telling(None, there=False)
    assert there > 4.0 * math.e * max(1, absent)  # the noise is enough for an epsilon of 1 on real numbers


def test_rounded_sums_have_no_such_bits() -> None:
    assert telling(SUMS, there=True) == telling(SUMS, there=False) == 0
