"""docs/tightness.md is what its command prints, no guarantee in it is below the truth, and the truth is proven."""

import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dpcalc.model.run import ALGORITHMS
from dpcalc.theorems.record import all_bounds
from tests.truth import table
from tests.truth.asking import front
from tests.truth.laws import Runs
from tests.truth.lower import affine, affine_renyi, family, interval, quadrature_error, rounding_error
from tests.truth.realistic import SIZES, Size, floor, gap
from tests.truth.runs import BASE, EPSILONS, LAPLACE, ROUND, RUNS, Run
from tests.truth.table import (
    BelowTheTruth,
    Row,
    check,
    check_renyi,
    gap_row,
    markdown,
    rows,
    section,
    share,
    summary,
    widest_gap,
)

PAGE = Path(__file__).parents[2] / "docs" / "tightness.md"


GAPS = "Open gaps"
PARTS = {part.partition("\n")[0]: f"## {part}" for part in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]}
SLOW = (
    "shuffled-epochs-released", "online", "pnsgd", "shuffled", "shuffled-epochs", "rotation", "noisy-sgd",
    "noisy-sgd-released", "dp-sgd", "shuffle-once", "shuffle-once-released", "cyclic-released", "dp-sgd-gradient",
    "rotation-epochs", "correlated",
)  # fmt: skip


def of(*algorithms: str) -> list[Row]:
    return rows([run for run in RUNS if run.algorithm in algorithms])


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=pytest.mark.campaign if name in SLOW else ()) for name in ALGORITHMS]
)
def test_the_page_is_what_the_command_prints(algorithm: str) -> None:
    """Made anew with ``python -m tests.truth --write docs/tightness.md``."""
    made = of(algorithm)
    assert PARTS[algorithm].rstrip() == section(algorithm, made).rstrip()
    assert summary(algorithm, made) in PARTS["The best guarantee of each algorithm"].splitlines()
    widest = widest_gap(made)
    assert widest is None or gap_row(widest) in PARTS[GAPS].splitlines()


def test_the_page_is_of_every_algorithm_in_order() -> None:
    text, first = PAGE.read_text(encoding="utf-8"), "The best guarantee of each algorithm"
    assert list(PARTS) == [first, GAPS, *ALGORITHMS]
    assert PARTS[first].count("\n| [") == len(ALGORITHMS)
    assert text.partition("## ")[0] == markdown([]).partition("## ")[0]


QUICK = ("pnsgd", "skip", "rotation-epochs", "dp-sgd")


@pytest.mark.parametrize(
    "size", [pytest.param(size, marks=() if size.algorithm in QUICK else pytest.mark.campaign) for size in SIZES]
)
def test_the_page_has_the_gap_of_a_realistic_run(size: Size) -> None:
    found = gap(size)
    assert found.row() in PARTS[GAPS].splitlines()
    assert 0.0 < found.least <= found.epsilon * (1.0 + 1e-12)


def test_gaps_are_in_order() -> None:
    small, realistic = PARTS[GAPS].split("### Of realistic runs")
    shares = [float(line.split("|")[1]) for line in small.splitlines() if re.match(r"\| [0-9]", line)]
    ratios = [float(line.split("|")[1]) for line in realistic.splitlines() if re.match(r"\| [0-9]", line)]
    assert shares == sorted(shares)
    assert ratios == sorted(ratios, reverse=True)
    assert (len(shares) > 15, len(ratios)) == (True, len(SIZES))


def test_digits_of_lower_values_round_down() -> None:
    assert floor(1.23456) == "1.234"
    assert floor(0.00098765) == "0.0009876"
    assert floor(2.5) == "2.5"


def test_every_algorithm_has_its_runs() -> None:
    assert {run.algorithm for run in RUNS} == set(ALGORITHMS)


def test_every_guarantee_is_compared() -> None:
    compared = set(re.findall(r"^(?:\||\*) `([a-z_.]+)`[ ,]", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    promised = {bound.id for bound in all_bounds().values() if bound.guarantee and bound.notion != "cost"}
    assert compared == promised - {"sampled.scheduled"}  # its phases are compared one by one, as sampled.poisson


def test_a_guarantee_below_the_truth_is_found() -> None:
    told = {**BASE, "records": 5, "index": 1}
    truths = affine("pnsgd", {**told, "noise_std": 1.5 * (1.0 - 1e-9)}, EPSILONS)
    with pytest.raises(BelowTheTruth, match=r"--epsilon 0\.125: iteration\.pnsgd promises delta"):
        rows([Run("pnsgd", told, (lambda *_: truths,))])


def test_an_epsilon_below_the_truth_is_found() -> None:
    [row, _] = rows(RUNS[:1])
    bound, value = next(iter(row.converse.items()))
    check(row._replace(converse={bound: row.epsilon}))
    with pytest.raises(BelowTheTruth, match="promises epsilon"):
        check(row._replace(converse={bound: row.epsilon * (1.0 - 1e-9)}))
    assert value == pytest.approx(row.epsilon)


def test_a_divergence_below_the_truth_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {**BASE, "records": 5, "index": 1}
    assert affine_renyi("pnsgd", told, 8.0) == pytest.approx(0.8)
    assert sum(check_renyi(run) for run in RUNS if affine in run.lowers) > 40
    louder = {**told, "noise_std": 1.5 * (1.0 - 1e-9)}
    monkeypatch.setattr(table, "affine_renyi", lambda name, _, order: affine_renyi(name, louder, order))
    with pytest.raises(BelowTheTruth, match=r"--order [28]: iteration\.pnsgd_rdp promises"):
        check_renyi(Run("pnsgd", told, (affine,)))


def test_shares() -> None:
    shown = {0.0: "0", 1e-5: "1.0e-05", 0.0999: "1.0e-01", 0.1: "0.100", 0.9994: "0.999", 1.0: "1.000"}
    assert {value: share(value) for value in shown} == shown


# --- the errors that are subtracted ---------------------------------------------------------------------------------


def test_quadrature_is_far_better_than_what_is_shown() -> None:
    for case in family({**ROUND, "records": 6}):
        assert 0.0 < quadrature_error(case, 20) < 1e-9


def test_rounding_errs_by_less_than_is_proven() -> None:
    """Of two grids, neither is off by more than its bound; and the bound is of second order."""
    told = {**LAPLACE, "records": 4, "index": 1}
    for case in family(told):
        runs = Runs(replace(case, index=1, epsilons=EPSILONS), "pnsgd", told)
        coarse, fine = 40, 280
        errors = [rounding_error(case, 4, count) for count in (coarse, fine)]
        assert errors[1] < errors[0] / 40.0
        for e, a, b in zip(EPSILONS, *(runs.values(case.cells(n), True) for n in (coarse, fine)), strict=True):
            assert abs(a - b) <= (1.0 + math.exp(e)) * sum(errors)


def test_a_wide_interval_is_like_none() -> None:
    """Two ways to the same number: quadrature on an interval that is hardly left, and ball arithmetic."""
    told = {**BASE, "smoothness": 0.0, "records": 4, "index": 2}
    whole = affine("pnsgd", told, EPSILONS)
    wide = interval()("pnsgd", {**told, "diameter": 32.0}, EPSILONS)
    for a, b in zip(wide, whole, strict=True):
        assert a <= b
        assert a == pytest.approx(b, rel=1e-3)


@pytest.mark.parametrize(
    "algorithm",
    ["local", "noisy-gd", pytest.param("pnsgd", marks=pytest.mark.campaign)],
)
def test_the_front_door_knows_the_lower_values(algorithm: str) -> None:
    """Where `compare` itself prints a lower value of linear losses, the proven one is as high."""
    seen = 0
    for row in of(algorithm):
        if "schedule" not in row.run.told:
            case = front(row.run.algorithm, row.run.told, epsilon=row.epsilon)
            for result in case.results:
                if result.kind == "lower" and result.bound in ("linear.pass", "linear.descent", "linear.local"):
                    assert row.truth >= result.value * (1.0 - 1e-8)
                    seen += 1
    assert seen > 1
