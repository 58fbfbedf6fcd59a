"""Unlearning against known values and in high precision, and what is refused."""

import json
import math
import random
from pathlib import Path
from typing import Any

import mpmath as mp
import pytest

import dpcalc
from dpcalc.errors import NotApplicable, SpecError
from dpcalc.theorems.many_passes import unlearning
from tests.formulas import evaluated

REFERENCE = Path(__file__).resolve().parents[1] / "reference" / "risk.json"
SHEET = {case["id"]: case for case in json.loads(REFERENCE.read_text())}
STEPS = {"step_size": 0.1, "noise_std": 0.5}


def just_above(found: float, exact: Any, relative: float = 1e-12) -> None:
    assert mp.mpf(found) >= exact
    assert mp.mpf(found) <= exact * (1 + mp.mpf(relative))


def mu(*, start_distance: float = 0.02, clean_steps: int = 100, contraction: float = 0.99, **more: Any) -> float:
    return evaluated(
        unlearning.distance, clean_steps=clean_steps, contraction=contraction, start_distance=start_distance,
        **{**STEPS, **more},
    )  # fmt: skip


@pytest.mark.parametrize("id", ["U-mu-1", "U-mu-2"])
def test_a_start_distance_of_the_sheet(id: str) -> None:
    case = SHEET[id]
    with mp.workdps(30):
        just_above(mu(contraction=float(case["inputs"]["contraction"])), mp.mpf(case["value"]))


def test_least_steps_and_noise_of_the_sheet() -> None:
    least = math.ceil(float(SHEET["U-steps-1"]["value"]))
    assert mu(clean_steps=least) <= 0.01 < mu(clean_steps=least - 1)
    sigma = mp.mpf(SHEET["U-sigma-1"]["value"])
    assert mu(noise_std=float(sigma) * (1 + 1e-12)) <= 0.01 < mu(noise_std=float(sigma) * (1 - 1e-12))
    budget = {"epsilon": dpcalc.convert(mu=0.01, delta=1e-6).cases[0].best.value, "delta": 1e-6}  # type: ignore[union-attr]
    asked = dpcalc.unlearn(start_distance=0.02, contraction=0.99, **STEPS, **budget, solve="clean_steps").cases[0].best
    assert asked is not None
    assert asked.value == least == 174


def test_steps_that_expand_are_not_solved_for_with_several_requests() -> None:
    """More steps are no safer there, so that no number of them is "at least enough"."""
    assert mu(contraction=1.01, requests=3, clean_steps=200) > mu(contraction=1.01, requests=3, clean_steps=50)
    asked = {"start_distance": 0.02, **STEPS, "epsilon": 0.5, "delta": 1e-6, "solve": "clean_steps"}
    for expanding in ({"contraction": 1.01}, {"smoothness": 1.0, "strong_convexity": -0.1}):
        with pytest.raises(SpecError, match="cannot solve for clean_steps: steps that expand"):
            dpcalc.unlearn(**expanding, requests=3, **asked)
    for more in ({"contraction": 1.01}, {"contraction": 1.0, "requests": 3}):
        assert dpcalc.unlearn(**more, **asked).cases[0].best is not None


def test_distances_of_the_sheet() -> None:
    with mp.workdps(30):
        z = mp.mpf(SHEET["U-Z-1"]["value"])
        found = evaluated(
            unlearning.minimiser, clean_steps=1, smoothness=1.0, strong_convexity=0.1, records=1000, sensitivity=2.0,
            step_size=0.5, noise_std=1.0,
        )  # fmt: skip
        just_above(found, z * mp.mpf("0.95") / mp.mpf("0.5"))
        z = mp.mpf(SHEET["U-Z-3"]["value"])
        found = evaluated(
            unlearning.run, clean_steps=1, contraction=0.99, records=100, batch_size=1, epochs=10, sensitivity=0.2,
            **STEPS,
        )  # fmt: skip
        just_above(found, z * mp.mpf("0.99") / mp.mpf("0.05"))
        z = mp.mpf(SHEET["U-seq-1"]["value"])
        just_above(mu(requests=10), z * mp.mpf("0.0221943252849877507953821") / mp.mpf("0.02"))


def test_the_whole_run_of_the_sheet() -> None:
    run = {"clean_steps": 50, "contraction": 0.99, "records": 100, "batch_size": 1, "epochs": 10, "sensitivity": 0.2}
    with mp.workdps(30):
        just_above(evaluated(unlearning.whole_run, **run, **STEPS), mp.mpf(SHEET["U-run-1"]["value"]))
        exact = mp.mpf(SHEET["U-Z-3"]["value"]) * mp.mpf("0.99") ** 50 / mp.mpf("0.05")
        exact *= mp.sqrt((1 - mp.mpf("0.99") ** 2) / (1 - mp.mpf("0.99") ** 100))
        just_above(evaluated(unlearning.run, **run, **STEPS), exact)
        assert float(exact) == pytest.approx(0.0676280484305, rel=1e-12)
    capped = evaluated(unlearning.run, **run, **STEPS, diameter=0.005)
    assert capped == pytest.approx(0.01072, rel=1e-3)


@pytest.mark.parametrize("steps", [1, 7, 1000, 10**15])
@pytest.mark.parametrize("c", [0.0, 1e-9, 0.3, 0.5, 0.99, 1.0 - 1e-15, 1.0, 1.0 + 1e-15, 1.001, 3.0, 1e200])
def test_any_factor(steps: int, c: float) -> None:
    """Both as the double that was typed and as its decimal; not above that of a factor larger by a few roundings."""
    found = mu(contraction=c, clean_steps=steps)
    if c == 0.0:
        assert 0.0 <= found < 1e-300
        return

    def exact(read: Any) -> Any:
        left = mp.mpf(1) / steps if read == 1 else (1 - read**2) / (mp.power(read, -2 * steps) - 1)
        return mp.mpf("0.02") / (mp.mpf("0.1") * mp.mpf("0.5")) * mp.sqrt(left)

    with mp.workdps(450):
        assert found >= max(exact(mp.mpf(c)), exact(mp.mpf(repr(c))))
        more = mp.mpf(c) if c == 1.0 else mp.mpf(c) * (1 + mp.mpf(2) ** -50)
        assert found <= max(exact(more) * (1 + mp.mpf("1e-11")), mp.mpf("1e-290"))


def test_no_models_that_are_nearly_minimisers_are_further_apart() -> None:
    """Quadratics attain it: F = m w^2/2 less a mean slope, minimised up to a gradient of G on either side."""
    m, n, slope, rough = mp.mpf("0.25"), 8, mp.mpf("1.5"), mp.mpf("0.125")
    apart = (rough + slope / n - -rough) / m  # of the points where the derivatives are -G and G
    common = {
        "clean_steps": 1, "contraction": 1.0, "strong_convexity": 0.25, "records": 8, "sensitivity": 1.5,
        "step_size": 1.0, "noise_std": 1.0,
    }  # fmt: skip
    just_above(evaluated(unlearning.minimiser, **common, gradient_norm=0.125), apart)
    assert evaluated(unlearning.minimiser, **common, gradient_norm=0.125, diameter=1.0) == pytest.approx(1.0)
    assert evaluated(unlearning.minimiser, **common, gradient_norm=1e308) == math.inf


def test_counting_the_noise_of_the_training_is_no_worse() -> None:
    r = random.Random(2)
    for _ in range(200):
        size = r.randint(1, 3)
        run = {
            "clean_steps": r.randint(1, 40), "contraction": r.choice((1.0, 0.9, r.uniform(0.1, 1.0))),
            "records": size * r.randint(1, 9), "batch_size": size, "epochs": r.randint(1, 9), "sensitivity": 1.0,
            **STEPS,
        }  # fmt: skip
        assert evaluated(unlearning.whole_run, **run) <= evaluated(unlearning.run, **run) * (1.0 + 1e-12)


def test_several_requests_tend_to_the_limit() -> None:
    limit = 0.02 / (1.0 - 0.99**100)
    assert mu(requests=10**9) == pytest.approx(mu(start_distance=limit), rel=1e-9)
    assert mu(requests=3, contraction=1.0) == pytest.approx(3.0 * mu(contraction=1.0), rel=1e-12)
    assert mu(requests=10**9, contraction=1.0, diameter=0.5) == pytest.approx(mu(start_distance=0.5, contraction=1.0))
    assert mu(requests=10**9, contraction=1.5) == math.inf


RUN = {"start": "run", "records": 10, "epochs": 2, "lipschitz": 1, "clean_steps": 5, "delta": 1e-6, **STEPS}

FLAT = {"start": "minimiser", "records": 9, "lipschitz": 1, "smoothness": 1, **STEPS}


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({**RUN, "start_distance": 0.1}, SpecError, "keep one"),
        ({**RUN, "batch_size": 1, "contraction": 0.9, "requests": 2}, SpecError, "several requests"),
        ({**RUN, "batch_size": 3, "contraction": 0.9}, NotApplicable, "divide"),
        ({**RUN, "batch_size": 1, "contraction": 1.1}, NotApplicable, "expand"),
        ({**RUN, "batch_size": 1, "contraction": 0.9, "smoothness": 1}, NotApplicable, "keep one"),
        ({**RUN, "batch_size": 1}, NotApplicable, "smoothness"),
        ({**RUN, "batch_size": 1, "smoothness": 30}, NotApplicable, "exceeds 2/smoothness"),
        ({**FLAT, "clean_steps": 5, "delta": 1e-6}, NotApplicable, "strongly convex"),
        ({**FLAT, "clean_steps": 5, "strong_convexity": 0.1, "adjacency": "null-record"}, NotApplicable, "replace-one"),
        ({**STEPS, "start_distance": 1, "contraction": 1, "epsilon": 1, "delta": 1e-6, "solve": "steps"}, SpecError,
         "clean_steps"),
    ],
)  # fmt: skip
def test_what_is_refused(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as stop:
        dpcalc.unlearn(**given)
    assert words in f"{stop.value} {getattr(stop.value, 'hint', '')}"


def test_a_known_distance_is_to_the_model_without_the_record() -> None:
    """Two values of a record may leave models twice as far apart as each is from the model without it."""
    given: dict[str, Any] = {"start_distance": 0.02, "contraction": 0.99, "clean_steps": 100, "delta": 1e-6, **STEPS}
    best = dpcalc.unlearn(**given).cases[0].best
    assert best is not None
    assert best.adjacency == "null-record"
    with pytest.raises(NotApplicable) as stop:
        dpcalc.unlearn(**given, adjacency="replace-one")
    assert "null-record" in f"{stop.value} {stop.value.hint}"
    trained = dpcalc.unlearn(**RUN, batch_size=1, contraction=0.9).cases[0].best
    assert trained is not None
    assert trained.adjacency == "replace-one"


def test_a_group_is_so_many_times_as_far() -> None:
    given: dict[str, Any] = {"start": "minimiser", "records": 1000, "lipschitz": 1, "smoothness": 1,
                             "strong_convexity": 0.1, "clean_steps": 100, **STEPS}  # fmt: skip
    one, five = (dpcalc.unlearn(**given, group_size=k).cases[0].best for k in (1, 5))
    assert one is not None
    assert five is not None
    assert five.value == pytest.approx(5.0 * one.value, rel=1e-12)


def test_a_file_of_equal_steps_says_what_flags_say(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("contraction,step_size,noise_std,repeat\n0.99,0.1,0.5,100\n")
    case = dpcalc.unlearn(schedule=str(tmp_path / "steps.csv"), start_distance=0.02).cases[0]
    assert case.best is not None
    assert case.best.bound == "unlearning.schedule"
    assert case.best.value == pytest.approx(mu(), rel=1e-11)
    with pytest.raises(NotApplicable):
        dpcalc.unlearn(schedule=str(tmp_path / "steps.csv"), start_distance=0.02, requests=2)
