"""Centred rows: what is released of them, what it costs, when the rule centres, and what becomes of a row."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.files import reading
from dpcalc.model.loss import of
from dpcalc.model.run import describe
from dpcalc.training.data.bounds import Prepared
from dpcalc.training.data.cells import NUMBERS
from dpcalc.training.release import calibration, centring
from dpcalc.training.release.centring import centred
from dpcalc.training.release.model import load
from dpcalc.training.rule.full_batches import Centring
from dpcalc.training.rule.records import Records
from dpcalc.training.run.exact_sums import ExactSums, rounded_sum
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import plan
from dpcalc.training.run.rounding import Rounding
from tests.training.test_rule import CANCER, case_of, mu_of, numbers

REST = math.sqrt(1.0 - 0.2**2)


class Drawn:
    """A generator that remembers what it drew, times a factor."""

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self.noise, self.generator = factor, [], np.random.default_rng(4)

    def standard_normal(self, shape: tuple[int, ...]) -> np.ndarray:
        self.noise.append(self.factor * self.generator.standard_normal(shape))
        return self.noise[-1]


def rows_of(n: int, d: int, bound: float, seed: int = 1) -> np.ndarray:
    """Return rows about a point that is not 0, of a length of at most ``bound``."""
    z = np.random.default_rng(seed).standard_normal((n, d)) * 0.3 + 0.4
    return z * bound / np.maximum(1.0, np.linalg.norm(z, axis=1, keepdims=True)) * (1.0 - 1e-12)


HOW = Centring(4, 1)


def centred_of(
    z: np.ndarray, bound: float, drawn: Drawn, noise_std: float = 0.01, how: Centring = HOW, **more: Any
) -> centring.Centred:
    n, d = z.shape
    x = np.hstack([z, np.full((n, 1), 0.2 * bound)])
    prepared = Prepared(np.ascontiguousarray(x), np.ones(n), {})
    test = Prepared(x[:5].copy(), np.ones(5), {})
    records = Records(prepared, test, ("x",) * (d + 1), None, NUMBERS, 0.2 * bound, REST * bound, True)
    given = {"release": "epoch", "records": n, "steps": 15, "step_size": 1.0, "lipschitz": 0.1, "noise_std": noise_std}
    planned = plan(describe("noisy-gd", given), n, d + 1)
    source = Source(drawn, False, "")  # type: ignore[arg-type]
    return centred(planned, of("logistic", feature_bound=bound), records, source, Rounding(1e-9, **more), how)


@pytest.mark.parametrize(("bound", "units", "constant"), [(1.0, 1.0, 0.2), (3.0, 1.0, 0.2), (3.0, 1.4, 0.3)])
def test_the_centre_and_what_becomes_of_a_row(bound: float, units: float, constant: float) -> None:
    """A mean of four noisy sums, a noisy sum of distances, and rows written out one by one."""
    rest = math.sqrt(1.0 - constant**2)
    n, d, noise_std = 300, 3, 0.002
    z, drawn = rows_of(n, d, bound), Drawn()
    found = centred_of(z, bound, drawn, noise_std, Centring(4, 1, units, constant))
    assert (found.records.constant, found.records.bound) == pytest.approx((constant * bound, rest * bound))
    scale = n * noise_std * bound / 0.1
    grid = scale / 8.0
    mean, distance = drawn.noise
    assert (mean.shape, distance.shape) == ((4, d), (1, 1))
    m = z.mean(axis=0) + scale * mean.mean(axis=0) / n
    assert found.centre.shift == pytest.approx(m, abs=grid / n + 1e-5 * bound)
    m = found.centre.shift
    lengths = [min(math.dist(row, m), 2.0 * bound) - bound for row in z]
    r = 1.0 + (sum(lengths) + scale * float(distance[0, 0])) / (n * bound)
    r *= units
    assert 0.02 < r < 1.0
    assert found.centre.scale == pytest.approx(r, abs=grid / n / bound + 1e-5)
    for part, rows in ((found.records.train, z), (found.records.test, z[:5])):
        assert isinstance(part, Prepared)
        for row, x in zip(rows, part.features, strict=True):
            u = (row - m) / found.centre.scale
            u *= min(1.0, rest * bound / np.linalg.norm(u))
            assert x == pytest.approx([*u, constant * bound], abs=1e-9)
            assert np.linalg.norm(x) <= bound
    assert found.plan.steps == 10


def test_a_mean_is_shortened_and_a_distance_has_limits() -> None:
    for factor, scales in ((1e4, {0.02, 1.0}),):
        found = centred_of(rows_of(50, 3, 1.0), 1.0, Drawn(factor), 0.001)
        assert np.linalg.norm(found.centre.shift) <= 1.0
        assert np.linalg.norm(found.centre.shift) > 0.99
        assert found.centre.scale in scales
    found = centred_of(rows_of(300, 3, 1.0), 1.0, Drawn(0.0), how=Centring(4, 1, 50.0))
    assert found.centre.scale == 1.0
    same = centred_of(np.full((50, 3), 0.5), 1.0, Drawn(0.0), 0.001)
    assert (same.centre.shift == 0.5).all()
    assert same.centre.scale == 0.02


@pytest.mark.parametrize(("noise_std", "how", "scale"), [
    (0.01, Centring(4, 1), 0.1), (0.01, Centring(4, 4), 0.05), (0.01, Centring(4, 1, 2.0), 0.2),
    (0.5, Centring(4, 1), 1.0),
])  # fmt: skip
def test_a_distance_is_no_less_than_the_deviation_of_its_noise(noise_std: float, how: Centring, scale: float) -> None:
    """Of equal rows, without noise: sigma/L over the root of the number of sums, in units of the bound."""
    for bound in (1.0, 2.0):
        found = centred_of(np.full((50, 3), 0.5), bound, Drawn(0.0), noise_std, how)
        assert found.centre.scale == pytest.approx(scale, rel=1e-9)


def sums_of(monkeypatch: pytest.MonkeyPatch, z: np.ndarray, bound: float, m: np.ndarray | None = None) -> list[Any]:
    """Return the exact sums that noise is added to; those of distances about ``m`` where it is given."""
    sums: list[Any] = []

    def recorded(total: np.ndarray, noise: np.ndarray, scale: float) -> np.ndarray:
        sums.append(total.copy())
        found = rounded_sum(total, noise, scale)
        return len(z) * m if m is not None and len(sums) <= 4 else found

    with monkeypatch.context() as patch:
        patch.setattr(centring, "rounded_sum", recorded)
        centred_of(z, bound, Drawn())
    assert len(sums) == 5
    return [sums[0], sums[4]]


def test_no_replaced_record_moves_a_sum_further_than_accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    bound, rng = 1.0, np.random.default_rng(6)
    m, moves = np.array([1.0, 0.0, 0.0]), []
    z = rows_of(40, 3, bound)
    for one, other in [([1.0, 0, 0], [-1.0, 0, 0]), *(rng.uniform(-1, 1, (2, 3)) for _ in range(20))]:
        pair = []
        for each in (one, other):
            z[7] = np.asarray(each) / max(1.0, float(np.linalg.norm(each))) * (1.0 - 1e-12)
            pair.append(sums_of(monkeypatch, z, bound, m))
        moves.append([float(np.linalg.norm(a - b)) for a, b in zip(*pair, strict=True)])
    most = np.max(moves, axis=0)
    assert (most <= 2.0 * bound).all()
    assert (most > 1.999 * bound).all()  # the first pair: from one end to the other


def test_sums_are_exact_in_any_order_and_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    z = rows_of(500, 6, 3.0)
    mean, distance = sums_of(monkeypatch, z, 3.0, np.full(6, 0.3))
    unit = Fraction(2) ** (2 - 20)
    for column, total in zip(z.T, mean, strict=True):
        assert Fraction(float(total)) == sum(math.trunc(Fraction(float(each)) / unit) for each in column) * unit
    monkeypatch.setattr(centring, "_PIECE", 49)
    mixed = sums_of(monkeypatch, z[np.random.default_rng(3).permutation(500)], 3.0, np.full(6, 0.3))
    assert (mixed[0] == mean).all()
    assert (mixed[1] == distance).all()


def test_what_is_spent_is_what_is_guaranteed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every noisy sum that is taken is recorded: a record moves it by 2 B, 2 C, or 2, over its noise."""
    spent: list[tuple[float, float]] = []
    taken: list[int] = []

    def recorded(total: Any, noise: Any, scale: float) -> Any:
        spent.append((2.0, scale))
        return rounded_sum(total, noise, scale)

    moves, rounded_move = ExactSums.moves, ExactSums._rounded_move

    def moves_of(self: Any, stretch: Any, eta: Any, scale: Any, noise: Any) -> Any:
        spent.extend((0.2, each) for each in scale * stretch.divisor)
        return moves(self, stretch, eta, scale, noise)

    def counted(*given: Any) -> Any:
        taken.append(len(given))
        return rounded_move(*given)

    monkeypatch.setattr(centring, "rounded_sum", recorded)
    monkeypatch.setattr(calibration, "rounded_sum", recorded)
    monkeypatch.setattr(ExactSums, "moves", moves_of)
    monkeypatch.setattr(ExactSums, "_rounded_move", counted)
    case = case_of(data=CANCER)
    assert [most for most, _ in spent] == [2.0] * 12 + [0.2] * 100 + [2.0] * 4
    assert len(taken) == 100
    mu = math.sqrt(sum((most / scale) ** 2 for most, scale in spent))
    told = case.best.details["floating_point"]
    assert mu == pytest.approx(told["mu"], rel=1e-9)
    assert 0.997 * mu_of(1.0, 1e-5) <= mu <= mu_of(1.0, 1e-5)
    assert case.inputs["steps"][0] == 116
    assert (case.training["steps"], case.training["centre"]["mean"], case.training["centre"]["distance"]) == (
        100,
        11,
        1,
    )
    plain = case_of(data=CANCER, centre=False).best.details["floating_point"]
    assert told["probability"] == pytest.approx(1.12 * plain["probability"], rel=1e-9)


def test_hidden_iterates_and_rows_out_of_bounds_are_refused() -> None:
    with pytest.raises(NotApplicable):
        centred_of(rows_of(50, 3, 1.0), 1.0, Drawn(), grid=0.1)
    with pytest.raises(SpecError, match="record 3 has"):
        centred_of(np.vstack([rows_of(2, 3, 1.0), np.full((1, 3), 0.6)]), 1.0, Drawn())
    with pytest.raises(SpecError, match="lost in rounding"):
        centred_of(rows_of(50, 3, 1.0), 1.0, Drawn(), 1e-17)


@pytest.mark.parametrize(
    "more",
    [
        {"feature_bound": 4e-121, "label_bound": 1e-84, "loss": "squares"},
        {"feature_bound": 1e-120, "label_bound": 1e-84, "clip": 1e-205, "loss": "squares"},
        {"feature_bound": 1e-120, "label_bound": 1e-84, "clip": 1e-207, "loss": "squares"},
        {"feature_bound": 3.0},
    ],
    ids=str,
)
def test_noise_is_as_large_as_accounted_whatever_the_units(
    more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scale against n sigma B/L as a fraction, where sigma B is no normal double."""
    found: list[tuple[float, Fraction]] = []
    scale_of = centring.scale_of

    def recorded(noise_std: float, lipschitz: float, divisor: float, bound: float) -> float:
        scale = scale_of(noise_std, lipschitz, divisor, bound)
        found.append((scale, Fraction(noise_std) * Fraction(divisor) * Fraction(bound) / Fraction(lipschitz)))
        return scale

    monkeypatch.setattr(centring, "scale_of", recorded)
    x, y = numbers(2000)
    kind = {"target_range": (0, 10)} if "loss" in more else {"positive": "1"}
    labels = y if "loss" in more else (np.arange(2000) % 2)
    case_of(data=(x, labels), centre=True, **kind, **more)
    [(scale, exact)] = found
    assert exact <= Fraction(scale) <= exact * (1 + Fraction(1, 10**14))


@pytest.mark.parametrize("given", [(1.0, 1e-300, 100.0, 1.0), (1e-300, 1.0, 100.0, 1.0), (1e-200, 1.0, 9.0, 1e-120)])
def test_noise_out_of_range_is_refused(given: tuple[float, float, float, float]) -> None:
    with pytest.raises(SpecError, match="out of range"):
        centring.scale_of(*given)


# --- when -------------------------------------------------------------------------------------------------------------


def table(kappa: float, kind: str) -> dict[str, Any]:
    """Return what is trained on, with so much signal at epsilon 1 and delta 1e-5."""
    rows = math.ceil(kappa * 2.0 * math.sqrt(4) / mu_of(1.0, 1e-5))
    x, y = numbers(rows)
    if kind == "numbers":
        return {"data": (x, y), "target_range": (0, 10)}
    if kind == "two":
        return {"data": (x, np.arange(rows) % 2), "positive": "1"}
    return {"data": (x, np.arange(rows) % 3), "labels": "0,1,2"}


@pytest.mark.parametrize(("kind", "least"), [("two", 5.0), ("several", 10.0), ("numbers", 8.0)])
def test_rows_are_centred_where_the_signal_is_strong_enough(kind: str, least: float) -> None:
    below, above = case_of(**table(0.97 * least, kind)), case_of(**table(1.01 * least, kind))
    assert below.training["rule"]["kappa"] < least < above.training["rule"]["kappa"]
    assert "centre" not in below.training
    assert "centre" not in below.training["rule"]["picked"]
    assert above.training["centre"]["mean"] == 11
    assert above.training["rule"]["picked"]["centre"]["value"] is True
    asked = case_of(**table(0.97 * least, kind), centre=True)
    assert asked.training["centre"]["mean"] == 11
    assert "centre" not in asked.training["rule"]["picked"]
    assert "centre" not in case_of(**table(1.01 * least, kind), centre=False).training


def test_numbers_have_shorter_rows_and_a_larger_constant_where_noise_weighs_more_than_bias(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distance by hand, of sums without noise, and the room that the constant leaves."""
    monkeypatch.setattr(centring, "rounded_sum", lambda total, noise, scale: total)
    found = []
    for kappa in (29.0, 31.0):
        path = tmp_path / f"{kappa:g}.json"
        given = table(kappa, "numbers")
        case = case_of(**given, epsilon=1, output=str(path))
        model = load(str(path))
        x = given["data"][0]  # without ranges rows are as they come, and these are shorter than 1
        assert model.centre == pytest.approx(x.mean(axis=0), abs=1e-5)
        mean = float(np.mean(np.linalg.norm(x - model.centre, axis=1)))
        found.append((model.scale / mean, model.centred_bound))
        assert case.inputs["steps"][0] == 112
        assert case.training["rule"]["picked"]["intercept"]["why"].startswith(
            "a constant column of 0.3" if kappa < 30.0 else "a constant column of 0.2"
        )
    (low, shorter), (high, longer) = found
    assert (low, high) == pytest.approx((2.0, 1.0), rel=1e-4)
    assert (shorter, longer) == pytest.approx((math.sqrt(1.0 - 0.3**2), REST))


@pytest.mark.parametrize(("columns", "kind", "units"), [(4, "several", 2.0), (5, "several", 1.0), (4, "two", 1.0)])
def test_several_classes_in_few_columns_have_longer_units(
    columns: int, kind: str, units: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distance by hand, of sums without noise."""
    monkeypatch.setattr(centring, "rounded_sum", lambda total, noise, scale: total)
    x, _ = numbers(1500, columns)
    path, count = tmp_path / "model.json", 3 if kind == "several" else 2
    named = {"labels": "0,1,2"} if kind == "several" else {"positive": "1"}
    case = case_of(data=(x / 3.0, np.arange(1500) % count), output=str(path), **named)
    model = load(str(path))
    mean = float(np.mean(np.linalg.norm(x / 3.0 - model.centre, axis=1)))
    assert model.scale / mean == pytest.approx(units, rel=1e-4)
    assert model.centred_bound == pytest.approx(REST)
    assert ("twice their mean distance" in case.training["rule"]["picked"]["centre"]["why"]) == (units == 2.0)


def test_what_is_described_is_not_centred_unless_asked() -> None:
    for more in (
        {"clip": 0.1}, {"steps": 50}, {"step_size": 1.0}, {"regularisation": 0.1}, {"intercept": False},
        {"average": "none"}, {"algorithm": "noisy-gd", "steps": 9}, {"batch_size": 100},
    ):  # fmt: skip
        assert "centre" not in case_of(data=CANCER, **more).training
    case = case_of(data=CANCER, steps=50, clip=0.2, centre=True)
    assert (case.training["steps"], case.inputs["steps"][0], case.training["centre"]["distance"]) == (50, 57, 1)
    x, y = numbers(40000)
    sums = case_of(data=(x, y), target_range=(0, 10)).training
    assert sums["solver"] == "sums"
    assert "centre" not in sums
    assert "solver" not in case_of(data=(x, y), target_range=(0, 10), centre=True).training


@pytest.mark.parametrize(
    "more",
    [
        {"intercept": False}, {"average": "none"}, {"tune": ["clip=0.1,0.2"]}, {"solver": "sums"},
        {"algorithm": "noisy-gd"}, {"batch_size": 100}, {"noise_std": 0.1}, {"feature_bound": 1e125},
        {"loss": "squares", "solver": "sums"},
    ],
    ids=str,
)  # fmt: skip
def test_refusals(more: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="centre"):
        case_of(data=CANCER, centre=True, **more)


# --- the model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "npz"])
def test_the_model_says_of_raw_rows_what_training_saw(tmp_path: Path, ending: str) -> None:
    path, rng = tmp_path / f"m.{ending}", np.random.default_rng(5)
    x = rng.uniform(-0.4, 1.5, (3000, 2))
    y = (x[:, 0] > 0.2).astype(float) + (x[:, 1] > 0.6)
    case = case_of(data=(x.copy(), y), labels="0,1,2", epsilon=8, output=str(path), feature_bound=2.0)
    model = load(str(path))
    assert (model.bound, model.centred_bound) == (2.0, pytest.approx(2.0 * REST))
    assert model.scale == case.training["centre"]["scale"]
    scores = []
    for row in x:
        z = row * min(1.0, 2.0 / np.linalg.norm(row))
        u = (z - model.centre) / model.scale
        u *= min(1.0, 2.0 * REST / np.linalg.norm(u))
        scores.append(u @ model.weights + model.intercept)
    assert model.scores(x) == pytest.approx(np.array(scores), rel=1e-9, abs=1e-9)
    accuracy = np.mean(np.argmax(scores, axis=1) == y)
    assert accuracy == pytest.approx(case.training["uncovered"]["metrics"]["train"]["accuracy"], abs=2e-3)
    assert accuracy > 0.8
    assert dpcalc.predict(str(path), x[:50])["prediction"].tolist() == [
        str(int(each)) for each in np.argmax(scores[:50], axis=1)
    ]


def test_damaged_centres_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    case_of(data=CANCER, output=str(path))
    described = json.loads(path.read_text())
    load(str(path))
    for wrong in (
        {"centre": described["centre"][:-1]}, {"centre": None}, {"centre": [math.nan] * 30}, {"scale": 0.0},
        {"scale": None}, {"scale": "1"}, {"centred_bound": None}, {"centred_bound": -1.0}, {"norm": 1},
        {"scale": math.inf}, {"scale": 1e-320}, {"scale": 0.0199}, {"scale": 1.0001}, {"centred_bound": 0.0},
    ):  # fmt: skip
        path.write_text(json.dumps({**described, **wrong}))
        with pytest.raises(SpecError, match="not a model file"):
            load(str(path))
    del described["scale"]
    path.write_text(json.dumps(described))
    with pytest.raises(SpecError, match="not a model file"):
        load(str(path))


def test_a_model_has_the_same_bits_as_one_from_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = np.random.default_rng(8).standard_normal((1500, 5)) + 0.4
    cells[:, -1] = cells[:, 0] > 0.4
    np.save(tmp_path / "t.npy", cells)
    found = []
    for _ in range(2):
        case = case_of(data=str(tmp_path / "t.npy"), output=str(tmp_path / "m.json"), test_fraction=0.1, positive="1")
        model = json.loads((tmp_path / "m.json").read_text())
        found.append([*(model[name] for name in ("weights", "centre", "scale")), case.training["uncovered"]["metrics"]])
        monkeypatch.setattr(reading, "HELD_CELLS", 100)
        monkeypatch.setattr(centring, "_PIECE", 500)
    assert found[0][:3] == found[1][:3]
    for part in ("train", "test"):
        assert found[0][3][part] == pytest.approx(found[1][3][part], rel=1e-9)


def test_the_card_is_verified_and_says_what_the_steps_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    path = tmp_path / "m.json"
    dpcalc.train(data=CANCER, epsilon=1, delta=1e-5, output=str(path))
    card = json.loads((tmp_path / "m.card.json").read_text())
    assert card["cases"][0]["asked"]["given"]["steps"] == 116
    statement = json.loads(path.read_text())["privacy"]["statement"]
    assert "The first 12 of the 116 accounted steps are noisy sums too" in statement
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(tmp_path / "m.card.json"), "--model", str(path)])
    assert not stop.value.code
    assert "verified" in capsys.readouterr().out


def test_rows_that_lie_close_together_are_told_apart() -> None:
    """Two classes on either side of a point far from 0: what centring is for."""
    rng = np.random.default_rng(9)
    x = 0.5 + 0.02 * rng.standard_normal((3000, 3))
    given: dict[str, Any] = {"data": (x, x[:, 0] > 0.5), "positive": "1"}
    accuracy = [
        case_of(**given, centre=each).training["uncovered"]["metrics"]["train"]["accuracy"] for each in (True, False)
    ]
    assert accuracy[0] > 0.9 > accuracy[1] + 0.2
