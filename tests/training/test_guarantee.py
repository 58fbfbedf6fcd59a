"""Which theorems let every noisy sum be public, and what is assumed where none may be."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import dpcalc
from dpcalc.model.algorithm import ALGORITHMS
from dpcalc.model.loss import Loss, of
from dpcalc.model.question import Question
from dpcalc.notes import DearRounding
from dpcalc.theorems.record import for_algorithm
from dpcalc.training.rule import guarantee
from dpcalc.training.rule.draft import Draft
from dpcalc.training.run.kernel import descents
from dpcalc.training.run.rounding import FUNCTIONS, LOSS_FUNCTIONS

SAID = ("iterates may all be public", "order and iterates may all be public", "every iterate may be released")


def test_theorems_with_public_sums_are_those_that_say_so() -> None:
    executed = [each for each in ALGORITHMS.values() if each.executed]
    theorems = {bound.id: bound for each in executed for bound in for_algorithm(each.name) if bound.guarantee}
    said = {
        name for name, bound in theorems.items() if any(text.startswith(SAID) for text in bound.assumes)
    }  # fmt: skip
    assert said == {name for name, bound in theorems.items() if bound.public_sums}
    hidden = ("only the last iterate is released", "and nothing between", "the latest iterate is released once")
    assert not [name for name in said if any(word in text for text in theorems[name].assumes for word in hidden)]


def test_the_epsilon_achieved_is_of_the_rounded_release(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    details = guarantee._Rounded._details

    def spied(rounded: Any, row: Any, rounding: Any, cost: Any) -> Any:
        found = details(rounded, row, rounding, cost)
        seen.append((row.details["achieved"]["epsilon"], cost.epsilon, found["achieved"]["epsilon"]))
        return found

    monkeypatch.setattr(guarantee._Rounded, "_details", spied)
    case = dpcalc.train(data="example:breast-cancer", epsilon=1, delta=1e-12).cases[0]
    assert seen
    for ideal, added, told in seen:
        assert added > 1e-6
        assert Fraction(ideal) + Fraction(added) <= Fraction(told) <= 1
    assert case.best is not None
    assert case.best.details is not None
    assert case.best.details["achieved"]["epsilon"] in {told for _, _, told in seen}


# --- at real sizes ----------------------------------------------------------------------------------------------------


def of_sizes(shape: tuple[int, int], **given: Any) -> tuple[float, guarantee.Guaranteed]:
    """Return the noise of a run on real numbers, and what is guaranteed of the run that is carried out."""
    question = Question(given.pop("epsilon", 1.0), 1e-6, math.log(1e-6))
    draft = Draft.of(loss="logistic", feature_bound=1.0, records=shape[0], **given).asking(question)
    best = guarantee.account(draft).best
    assert best is not None
    return best.value, guarantee.guarantee(guarantee.Accounting(draft, shape))


LARGE: list[Any] = [
    ({"algorithm": "pnsgd"}, 1.0), ({"algorithm": "shuffled"}, 1.0),
    ({"algorithm": "cyclic", "epochs": 3, "batch_size": 64}, 0.1),
    *(
        pytest.param({"algorithm": "shuffled", "permutation": "secret"}, epsilon, marks=pytest.mark.campaign)
        for epsilon in (0.1, 1.0, 8.0)
    ),
    pytest.param(
        {"algorithm": "shuffled-epochs", "epochs": 4, "permutation": "secret"}, 1.0, marks=pytest.mark.campaign
    ),
]  # fmt: skip


@pytest.mark.few(2)
@pytest.mark.parametrize("step_size", [1e-4, 1.0])
@pytest.mark.parametrize(("given", "epsilon"), LARGE)
def test_rounding_costs_less_than_a_hundredth_of_the_noise_at_real_sizes(
    given: dict[str, Any], epsilon: float, step_size: float
) -> None:
    for shape, radius in (((10**5, 50), 1.0), ((10**7, 1000), 100.0 if epsilon == 1.0 else 1.0)):
        real, made = of_sizes(shape, **given, epsilon=epsilon, radius=radius, step_size=step_size)
        best = made.case.best
        assert best is not None
        assert 1.0 <= best.value / real < 1.01
        dear = [note for note in made.case.note_data if isinstance(note, DearRounding)]
        assert epsilon < 1.0 or not dear  # noise that hides a position goes down slowly: 2% of .1 cost .3% of it


def test_a_bound_whose_rounding_is_dear_is_kept_where_it_needs_the_least_noise() -> None:
    """Without a ball, at long steps: the noise is within a tenth of that on real numbers, and the report says so."""
    real, made = of_sizes((10**7, 1000), algorithm="shuffled", permutation="secret", step_size=1.0)
    best = made.case.best
    assert best is not None
    assert 1.01 < best.value / real < 1.1
    assert [note for note in made.case.note_data if isinstance(note, DearRounding)]


def test_the_first_screen_says_where_rounding_is_dear() -> None:
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2000, 4)), rng.choice([-1.0, 1.0], 2000)
    given: dict[str, Any] = {"data": data, "loss": "logistic", "radius": 1.0, "epsilon": 1, "delta": 1e-6}
    texts = [
        " ".join(str(dpcalc.train(**given, algorithm="pnsgd", step_size=step_size)).split())
        for step_size in (1e-11, 1e-2)
    ]
    assert ["of epsilon is for rounding" in text for text in texts] == [True, False]


# --- what is assumed of functions -------------------------------------------------------------------------------------

USED = {"math.exp", "numpy.exp", "numpy.tanh", "numpy.log", "numpy.log1p", "numpy.power", "numpy.logaddexp"}


def functions_of(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the functions that the slopes of a loss are made of, by calling them in all the ways that steps do."""
    called: set[str] = set()

    def watched(name: str) -> None:
        of, own = name.split(".")
        function = getattr({"math": math, "numpy": np}[of], own)
        monkeypatch.setattr(name, lambda *given, **how: called.add(name) or function(*given, **how))

    for name in USED:
        watched(name)
    z, y = np.array([0.3, -0.2]), np.array([1.0, -1.0])
    if loss.classified:
        descents(np.array([[0.3, -0.2, 0.1]]), np.array([1.0]), None)
    else:
        loss.scalar_descent()(0.3, 1.0)
        loss.array_descent()(z.copy(), y)
        loss.scaled_descent().overwrite(z.copy(), y)
    monkeypatch.undo()
    return called


@pytest.mark.parametrize(
    ("loss", "used"),
    [
        (of("logistic", feature_bound=1.0), {"math.exp", "numpy.exp", "numpy.tanh"}),
        (of("softmax", feature_bound=1.0, classes=3), {"numpy.exp"}),
        (of("squares", feature_bound=1.0, label_bound=1.0, radius=1.0), set()),
        (of("huber", feature_bound=1.0, huber_threshold=1.0), set()),
        (of("hinge", feature_bound=1.0, power=2.0, radius=1.0), set()),
        (of("insensitive", feature_bound=1.0, power=2.0, tube=0.1, label_bound=1.0, radius=1.0), set()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_function_in_the_slopes_of_a_smooth_loss_is_named(
    loss: Loss, used: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert loss.smoothness is not None
    assert functions_of(loss, monkeypatch) == used
    said = LOSS_FUNCTIONS.get(loss.name, "")
    assert {word for word in ("exp", "tanh", "log", "log1p", "power") if word in said.split()} == {
        name.partition(".")[2] for name in used
    }
    assert ("C library" in said) == ("math.exp" in used)


@pytest.mark.parametrize("name", ["numpy.exp", "numpy.tanh", "math.exp"])
def test_the_installed_functions_are_as_good_as_is_assumed(name: str) -> None:
    z = np.concatenate([np.random.default_rng(1).uniform(-30.0, 30.0, 200), np.geomspace(1e-300, 1.0, 100)])
    of_one = math.exp if name == "math.exp" else getattr(np, name.partition(".")[2])
    found = [float(of_one(each)) for each in z.tolist()] if name == "math.exp" else of_one(z).tolist()
    with mpmath.workdps(40):
        exact = mpmath.tanh if name == "numpy.tanh" else mpmath.exp
        assert all(abs(exact(a) - b) <= 4.0 * math.ulp(b) for a, b in zip(z.tolist(), found, strict=True))


HIDDEN: dict[str, Any] = {
    "algorithm": "cyclic", "epochs": 2, "radius": 1.0, "step_size": 0.5, "noise_std": 1.0, "delta": 1e-5,
}  # fmt: skip


LOGISTIC = "exp and tanh of the installed numpy and C library are within 4 units in the last place"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"loss": "logistic", "batch_size": 20}, [LOGISTIC]),
        ({"loss": "logistic", "algorithm": "shuffle-once", "batch_size": 20, "release": "epoch"}, [LOGISTIC]),
        ({"loss": "logistic", "batch_size": 1}, [LOGISTIC]),
        ({"loss": "softmax", "labels": "-1,1"}, ["exp of the installed numpy is within 4 units in the last place"]),
        ({"loss": "squares", "batch_size": 20}, []),
        ({"loss": "logistic", "algorithm": "noisy-gd", "steps": 3, "epochs": None, "radius": None}, []),
    ],
)  # fmt: skip
def test_hidden_runs_say_what_they_assume_of_functions(more: dict[str, Any], said: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((200, 3)), rng.choice([-1.0, 1.0], 200)
    path = tmp_path / "m.json"
    given = {name: value for name, value in {**HIDDEN, **more}.items() if value is not None}
    best = dpcalc.train(data=(x, y), output=str(path), **given).cases[0].best
    assert best is not None
    assert [text for text in best.assumes if text in FUNCTIONS] == said
    hidden = given["algorithm"] != "noisy-gd"
    assert (best.details or {})["floating_point"]["of"] == ("what is released" if hidden else "every noisy sum")
    assert json.loads(path.read_text())["privacy"]["assumes"] == list(best.assumes)
    assert dpcalc.verify(str(tmp_path / "m.card.json"), model=str(path), certify=False).mismatches == ()
