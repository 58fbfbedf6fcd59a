"""``dpcalc risk``, ``--risk`` on queries, and gates on what an attacker can do."""

from __future__ import annotations

import contextlib
import io
import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mpmath import mp

import dpcalc
from dpcalc.cli.main import main
from tests.schema import conforms

PASS = "-n 1000 -L 1 --smoothness 1 --eta 0.1"
RUN = {"records": 1000, "lipschitz": 1, "smoothness": 1, "step_size": 0.1}


class Typed(NamedTuple):
    """How a command line ended, and what it printed."""

    exit_code: int
    stdout: str
    output: str


def typed(line: str) -> Typed:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    return Typed(int(stop.value.code or 0), out.getvalue(), out.getvalue() + err.getvalue())


def told(line: str) -> dict[str, Any]:
    result = typed(f"{line} --json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    conforms(report)
    risk: dict[str, Any] = report["cases"][0]["risk"]
    return risk


def gaussian_tpr(mu: float, fpr: str) -> float:
    """Return Phi(mu - z(fpr)) to many digits."""
    with mp.workdps(40):
        z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(fpr))
        return float(mp.ncdf(mu - z))


def test_of_gaussian_privacy() -> None:
    risk = told("risk --mu 1 --fpr 0.001,0.2 --prior 0.1 --baseline 0.01")
    for row, fpr in zip(risk["tpr"], ("0.001", "0.2"), strict=True):
        assert 0.0 <= row["value"] / gaussian_tpr(1.0, fpr) - 1.0 < 1e-12
    assert risk["success"][0]["value"] == pytest.approx(0.901336306099, abs=1e-11)  # against risk.json of the sheets
    assert 0.0 <= risk["reconstruction"][0]["value"] / gaussian_tpr(1.0, "0.01") - 1.0 < 1e-12
    assert risk["mu"] == {"value": 1.0, "delta": 0.0, "regret": 0.0, "bound": "risk.gdp"}
    assert not risk["from_point"]


def test_of_a_run_is_that_of_its_mu() -> None:
    """One pass over 1000 records, the last one worst off: its one step is a Gaussian mechanism with mu = 2/2."""
    risk = told(f"rdp {PASS} --sigma 2 -d 1e-6 --risk --fpr 0.001")
    assert 0.0 <= risk["tpr"][0]["value"] / gaussian_tpr(1.0, "0.001") - 1.0 < 1e-9


def test_of_solved_noise_is_that_of_the_run_with_it() -> None:
    noise = json.loads(typed(f"rdp {PASS} -e 1 -d 1e-6 --json").stdout)["cases"][0]["results"][0]["value"]
    solved = told(f"rdp {PASS} -e 1 -d 1e-6 --risk")
    assert solved == told(f"rdp {PASS} --sigma {noise!r} -d 1e-6 --risk")


def test_the_curve_says_less_than_its_point() -> None:
    curve = told(f"shuffle {PASS} --sigma 2 -d 1e-6 --risk")
    best = json.loads(typed(f"shuffle {PASS} --sigma 2 -d 1e-6 --json").stdout)["cases"][0]["results"][0]
    point = told(f"risk -e {best['value']!r} -d 1e-6")
    assert point["from_point"]
    assert curve["advantage"]["value"] < 0.1 * point["advantage"]["value"]


def test_a_published_order_leaves_an_attack() -> None:
    risk = told(f"compare --algorithm shuffled {PASS} --sigma 2 -d 1e-6 --risk")
    assert 0.0 < risk["advantage"]["at_least"] <= risk["advantage"]["value"]


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("tpr@1%<=0.1", 0),
        ("tpr@0.01<=0.09", 1),
        ("advantage<=0.383", 0),
        ("advantage<0.38", 1),
        ("success@0.5<=0.7", 0),
        ("reconstruction@0.001<=0.01", 1),
        ("tpr<=0.1", 2),
        ("tpr@<=0.1", 2),
        ("tpr@0<=0.1", 2),
        ("tpr@1.5<=0.1", 2),
        ("tpr@x<=0.1", 2),
        ("epsilon@1<=0.1", 2),
        ("advantage@0.1<=0.1", 2),
        ("advantage>=0.1", 2),
        ("advantage<=1", 2),  # cannot fail
    ],
)
@pytest.mark.parametrize("query", ["risk --mu 1", f"rdp {PASS} --sigma 2 -d 1e-6"])
def test_a_gate(query: str, gate: str, code: int) -> None:
    result = typed(f"{query} --assert '{gate}'")
    assert result.exit_code == code, result.output


def test_a_gate_of_a_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    case = "{command: rdp, records: 1000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6"
    recipe.write_text(
        f"dpcalc: recipe/1\ncases:\n  good: {case}, noise_std: 2, assert: ['tpr@1%<=0.1', epsilon<=5]}}\n"
        f"  bad: {case}, noise_std: 1, assert: 'tpr@1%<=0.1'}}\n"
    )
    result = typed(f"check {recipe}")
    assert result.exit_code == 1
    rows = [line.split()[:3] for line in result.stdout.splitlines()]
    assert ["FAIL", "bad", "tpr@1%"] in rows
    assert ["pass", "good", "tpr@1%"] in rows


def test_a_gate_that_is_not_answered_fails(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("dpcalc: recipe/1\ncases:\n  a: {command: convert, mu: 1, delta: 1e-6, assert: advantage<=0.9}\n")
    result = typed(f"check {recipe}")
    assert result.exit_code == 2
    assert "this answer has no advantage" in result.output


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("risk", "no guarantee is known"),
        ("risk --mu 1 --rho 1", "starts from one guarantee"),
        ("risk --mu 1 -d 1e-5", "a budget beside what is known"),
        ("risk --mu 1 --fpr 0", "fpr is 0.0"),
        ("risk --mu 1 --prior 1", "prior is 1.0"),
        ("risk --mu 1 --baseline two", "two"),
        ("risk --mu -1", "mu"),
        ("utility --loss logistic --feature-bound 1 -n 100 -R 1 -e 1 -d 1e-5 --risk", "is asked of one run"),
    ],
)
def test_what_is_refused(line: str, said: str) -> None:
    result = typed(line)
    assert result.exit_code == 2
    assert said in result.output


def test_in_python() -> None:
    report = dpcalc.rdp(**RUN, noise_std=2, delta=1e-6, risk=True, fpr=[0.001, 0.01], gates="advantage<=0.3")
    case = report.cases[0]
    assert case.risk is not None
    assert [row["fpr"] for row in case.risk["tpr"]] == [0.001, 0.01]
    assert report.failed == 1
    assert dpcalc.rdp(**RUN, noise_std=2, delta=1e-6).cases[0].risk is None
    assert dpcalc.risk(mu=[1, 2], gates="advantage<=0.5").failed == 1
    with pytest.raises(dpcalc.SpecError, match="risk is 'yes'"):
        dpcalc.rdp(**RUN, noise_std=2, delta=1e-6, risk="yes")


def test_a_mu_that_says_nothing_is_not_told() -> None:
    """With next to no noise delta is 1 wherever it is looked at: no mu is known, and none is said to hold above 1."""
    line = f"shuffle {PASS} --sigma 1e-6 -d 1e-6 --risk"
    assert told(line)["mu"] is None
    assert "no finite mu" in typed(line).output


def test_in_words() -> None:
    run = "dp-sgd -n 100 --steps 10 --noise-multiplier 1 --batch-size 50 --sampling poisson -d 1e-5 --risk --fpr 0.001"
    text = typed(f"{run} --adjacency add-remove").output
    assert "of 1000 people who are not in the data 1 are flagged; then of 1000 who are, on average at most " in text
    assert "guess right whether it was there, prior 50%" in text
    assert "| advantage: true less false positives | 0.383 |" in typed("risk --mu 1 --format markdown").output
    assert "no mu is known for the whole curve" in typed("risk -e 1 -d 1e-5").output


def test_the_words_say_whose_risk_it_is() -> None:
    """Of replacement nobody is in the data or not, and a record at a position of its own is not any record."""
    third = typed(f"rdp {PASS} --sigma 2 -d 1e-6 --index 3 --risk").output
    assert "what an attacker can do about the record at position 3" in third
    assert "guess right which of two it is, prior 50%" in third
    for text in (third, typed(f"rdp {PASS} --sigma 2 -d 1e-6 --risk").output, typed("risk --mu 1").output):
        assert "people" not in text
    grouped = typed(f"rdp {PASS} --sigma 2 -d 1e-6 --group-size 3 --adjacency zero-out --risk").output
    assert "about 3 records together" in grouped
    assert "people" not in grouped


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_one_order_of_the_data_sets_is_not_enough(adjacency: str) -> None:
    """delta of a removed record bounds true positives by false ones; that of an added one does not."""
    line = f"dp-sgd -n 100 --steps 10 --noise-multiplier 1 --batch-size 50 --sampling poisson --adjacency {adjacency}"
    for asked in ("--risk", "--assert 'advantage<=0.9'"):
        result = typed(f"{line} -d 1e-5 {asked}")
        assert result.exit_code == 3
        assert "needs both orders" in result.output
    assert told(f"{line.removesuffix(adjacency)}add-remove -d 1e-5 --risk")["advantage"]["value"] > 0.5


def test_the_picture_of_a_run_has_the_curves_of_its_bounds(tmp_path: Path) -> None:
    """Above what any attack does, and beside it the curve that no guarantee is below, and guessing."""
    run = "compare --algorithm pnsgd -n 50 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"
    curve = told(f"{run} --risk --plot {tmp_path / 'a.svg'}")["curve"]
    mu = next(row for row in curve["at_most"] if row["bound"] == "iteration.pnsgd")
    for fpr, tpr in list(zip(curve["fpr"], mu["tpr"], strict=True))[::8]:
        assert 0.0 <= tpr / gaussian_tpr(1.0, repr(fpr)) - 1.0 < 1e-9
    assert curve["at_least"]
    assert all(low <= high for low, high in zip(curve["at_least"][0]["tpr"], mu["tpr"], strict=True))
    text = (tmp_path / "a.svg").read_text()
    for label in ("Amplification by iteration, mu-GDP form", "guessing", "no guarantee is below"):
        assert sum(label in line for line in text.split("\n")) == 1  # one legend for both panels
    assert "curve" not in told(f"{run} --risk")


def test_the_picture_of_a_sweep_has_a_panel_of_risks() -> None:
    drawn = typed(f"rdp {PASS} --sigma 1,2,4 -d 1e-6 --risk --fpr 0.01 --baseline 0.1 --plot -").stdout
    assert "what an attacker can do: at most" in drawn
    for label in ("advantage", "true positives at false ones of 1%", "right that without is with 10%"):
        assert label in drawn
    assert drawn.startswith("pnsgd: epsilon at delta = 1e-06 against noise std sigma")
    alone = typed("risk --mu 0.5,1,2 --plot -").stdout
    assert alone.startswith("what an attacker can do against mu")
    assert "epsilon" not in alone
