"""``dpcalc risk``, ``--risk`` on queries, and gates on what an attacker can do."""

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
    assert risk["success"][0]["value"] == pytest.approx(0.901336306099, abs=1e-11)  # a reference value
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
    """One (epsilon, delta) with a large delta: no mu is known, and none is said to hold above 0.9."""
    line = "risk -e 1 -d 0.9"
    assert told(line)["mu"] is None
    assert "no finite mu" in typed(f"{line} -vv").output


@pytest.mark.campaign
def test_a_mixture_has_the_mu_of_its_least_private_part() -> None:
    """Next to no noise: the least mu that holds is that of the last record, whose own step alone hides it, 2/sigma."""
    mu = told(f"shuffle {PASS} --sigma 1e-6 -d 1e-6 --risk")["mu"]
    assert mu["delta"] == 0.0
    assert 0.0 <= mu["value"] / 2e6 - 1.0 < 1e-12
    mu = told("dp-sgd -n 1000 --batch-size 100 --steps 9 --noise-multiplier 2 --sampling poisson -d 1e-6 --risk")["mu"]
    assert 0.0 < mu["value"] < mu["everywhere"]["value"]
    assert 0.0 <= mu["everywhere"]["value"] / 3.0 - 1.0 < 1e-12  # replaced: 2 sqrt(9)/2
    line = f"shuffle {PASS} --sigma 2 -d 1e-6 --risk"
    assert "mu = 1 at every epsilon (shuffle.mixture); with mu = 0.67" in typed(f"{line} -vv").output


def test_in_words() -> None:
    run = "dp-sgd -n 100 --steps 10 --noise-multiplier 1 --batch-size 50 --sampling poisson -d 1e-5 --risk --fpr 0.001"
    text = typed(f"{run} --adjacency add-remove -vv").output
    assert "an attack that flags 1 of 1000 people who are not in the data flags on average at most " in text
    assert "right guess whether it was there, prior 50%" in text
    assert (
        "| advantage: true-positive less false-positive rate | 0.383 |" in typed("risk --mu 1 --format markdown").output
    )
    assert "no mu is known for the whole curve" in typed("risk -e 1 -d 1e-5 -vv").output


def test_the_words_say_whose_risk_it_is() -> None:
    """Of replacement nobody is in the data or not, and a record at a position of its own is not any record."""
    third = typed(f"rdp {PASS} --sigma 2 -d 1e-6 --index 3 --risk -vv").output
    assert "what an attacker can do about the record at position 3" in third
    assert "right guess which of two it is, prior 50%" in third
    for text in (third, typed(f"rdp {PASS} --sigma 2 -d 1e-6 --risk").output, typed("risk --mu 1").output):
        assert "people" not in text
    grouped = typed(f"rdp {PASS} --sigma 2 -d 1e-6 --group-size 3 --adjacency zero-out --risk -vv").output
    assert "about 3 records together" in grouped
    assert "people" not in grouped


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_one_order_of_the_data_sets_is_not_enough(adjacency: str) -> None:
    """delta of a removed record bounds true positives by false ones; that of an added one does not."""
    line = f"dp-sgd -n 100 --steps 10 --noise-multiplier 1 --batch-size 50 --sampling poisson --adjacency {adjacency}"
    for asked in ("--risk", "--assert 'advantage<=0.9'"):
        result = typed(f"{line} -d 1e-5 {asked}")
        assert result.exit_code == 3
        assert "needs both directions" in result.output
    assert told(f"{line.removesuffix(adjacency)}add-remove -d 1e-5 --risk")["advantage"]["value"] > 0.5


@pytest.mark.campaign
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
    for label in ("Amplification by iteration, mu-GDP form", "guessing", "(no guarantee by gradient"):
        assert sum(label in line for line in text.split("\n")) == 1  # one legend for both panels
    assert "curve" not in told(f"{run} --risk")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("floor", "says"),
    [
        ("linear.pass", "(no guarantee is below)"),
        ("linear.forgetting", "(no guarantee by gradient differences is below)"),
    ],
)
def test_the_picture_says_which_guarantees_a_lower_curve_rules_out(floor: str, says: str, tmp_path: Path) -> None:
    """The losses of the second have gradients of any size: it says nothing of a guarantee that bounds their size."""
    drawn = f"--plot {tmp_path / 'a.svg'} --plot-bounds iteration.pnsgd,{floor}"
    told(f"compare --algorithm pnsgd -n 50 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 --risk {drawn}")
    lines = (tmp_path / "a.svg").read_text().split("\n")
    comments = " ".join(line.strip().removeprefix("<!-- ").removesuffix(" -->") for line in lines if "<!--" in line)
    assert says in comments


def test_the_picture_of_a_sweep_has_a_panel_of_risks() -> None:
    drawn = typed(f"rdp {PASS} --sigma 1,2,4 -d 1e-6 --risk --fpr 0.01 --baseline 0.1 --plot -").stdout
    assert "what an attacker can do: at most" in drawn
    for label in ("advantage", "true-positive rate at a false-positive rate of 1%", "secret; without the release 10%"):
        assert label in drawn
    assert drawn.startswith("pnsgd: epsilon at delta = 1e-06 against noise std sigma")
    alone = typed("risk --mu 0.5,1,2 --plot -").stdout
    assert alone.startswith("what an attacker can do against mu")
    assert "epsilon" not in alone


def sigma_of(mu: Any) -> float:
    """Return the noise with which the last record of a pass is mu-GDP: mu = 2 lipschitz/sigma."""
    return float(2 / mu)


def probit(share: str) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * mp.mpf(share) - 1)


@pytest.mark.parametrize(
    ("target", "mu"),
    [
        ("--advantage 0.1", lambda: 2 * probit("0.55")),
        ("--tpr 0.05 --fpr 0.01", lambda: probit("0.99") - probit("0.95")),
        ("--success 0.6 --prior 0.5", lambda: 2 * probit("0.6")),
        ("--reconstruction 0.01 --baseline 0.001", lambda: probit("0.999") - probit("0.99")),
        (
            "--success 0.92 --prior 0.1",
            lambda: mp.findroot(lambda mu: success_at(mu, mp.mpf("0.1")) - mp.mpf("0.92"), 1),
        ),
    ],
)
def test_the_least_noise_that_keeps_a_risk(target: str, mu: Any) -> None:
    case = json.loads(typed(f"rdp {PASS} {target} --json").stdout)["cases"][0]
    conforms(
        {
            "schema": "dpcalc.report/1",
            "dpcalc": "0",
            "command": "rdp",
            "cases": [case],
            "summary": {"cases": 1, "failed": 0},
        }
    )
    with mp.workdps(30):
        least = sigma_of(mu())
    assert 0.0 <= case["results"][0]["value"] / least - 1.0 < 1e-9
    told_target = case["results"][0]["targets"][0]
    gate = f"{told_target['name']}@{told_target['at']}" if told_target["at"] else told_target["name"]
    again = f"rdp {PASS} -d 1e-6 --assert '{gate}<={told_target['limit']}' --sigma"
    assert typed(f"{again} {case['results'][0]['value']!r}").exit_code == 0
    assert typed(f"{again} {least * (1.0 - 1e-9)!r}").exit_code == 1


def success_at(mu: Any, prior: Any) -> Any:
    """Return how often the best guess between N(0, 1) and N(mu, 1) is right, the second at this prior."""
    cut = mu / 2 + mp.log((1 - prior) / prior) / mu
    return prior * mp.ncdf(mu - cut) + (1 - prior) * mp.ncdf(cut)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        # Of n = 1000 records the one at position i is 2/(4 sqrt(1001 - i))-GDP, and 2 probit(0.55) = 0.25132...
        (f"rdp {PASS} --sigma 4 --advantage 0.1 --solve index", 997),
        ("rdp -i 5 -L 1 --smoothness 1 --eta 0.1 --sigma 4 --advantage 0.1 --solve records", 8),
        # The ratio of the noise to half the sensitivity.
        (f"rdp {PASS} --advantage 0.1 --solve noise-multiplier", 7.957897),
        (f"rdp {PASS} --sigma 4 --advantage 0.1 --solve lipschitz -i 1000", None),
    ],
)
def test_other_parameters_that_keep_a_risk(line: str, value: float | None) -> None:
    if value is None:
        line = line.replace("-L 1 ", "")
        value = 4.0 / 7.957897
    found = json.loads(typed(f"{line} --json").stdout)["cases"][0]["results"][0]["value"]
    assert found == pytest.approx(value, rel=1e-6)


@pytest.mark.campaign
def test_sampled_steps_that_keep_a_risk_do_so_when_asked_again() -> None:
    run = "dp-sgd -n 1000 --batch-size 100 --steps 5 --sampling poisson --adjacency add-remove"
    noise = json.loads(typed(f"{run} --tpr 0.03 --fpr 0.01 --json").stdout)["cases"][0]["results"][0]["value"]
    again = f"{run} -d 1e-6 --assert 'tpr@0.01<=0.03' --noise-multiplier"
    assert typed(f"{again} {noise!r}").exit_code == 0
    assert typed(f"{again} {noise * (1 - 1e-5)!r}").exit_code == 1


def test_what_is_said_of_a_solution_for_a_risk() -> None:
    text = " ".join(typed(f"rdp {PASS} --tpr 0.05 --fpr 0.01 --format statement").output.split())
    assert "every attack on the result keeps tpr@0.01 <= 0.05" in text
    assert "No attack on the record at position 1000 goes beyond tpr@0.01 <= 0.05" in text
    assert "epsilon" not in text
    assert "is enough for tpr@0.01 <= 0.05" in typed(f"rdp {PASS} --tpr 0.05 --fpr 0.01").output
    drawn = typed(f"rdp {PASS} --advantage 0.1:0.3:0.1 --plot -").stdout
    assert drawn.startswith("pnsgd: noise std sigma against advantage")


def test_a_risk_is_solved_for_in_recipes_and_in_python(tmp_path: Path) -> None:
    found = dpcalc.rdp(**RUN, tpr=[0.05, 0.1], fpr=0.01).cases
    assert found[0].best is not None
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "dpcalc: recipe/1\ndefaults: {command: rdp, records: 1000, lipschitz: 1, smoothness: 1, step_size: 0.1}\n"
        f"cases:\n  a: {{tpr: 0.05, fpr: 0.01, expect: {{noise_std: {found[0].best.value!r}}}}}\n"
        "  b: {matrix: {advantage: [0.1, 0.2]}, assert: noise_std<=8}\n"
        "  c: {noise_std: 2, delta: 1e-6, fpr: [0.01, 0.1], assert: 'tpr@0.001<=0.02'}\n"
    )
    result = typed(f"check {recipe} --json")
    assert result.exit_code == 0, result.output
    cases = json.loads(result.stdout)["cases"]
    assert [row["fpr"] for row in cases[-1]["risk"]["tpr"]] == [0.01, 0.1, 0.001]
    recipe.write_text(recipe.read_text().replace("fpr: 0.01, ", ""))
    assert "case a: tpr needs fpr" in typed(f"check {recipe}").output


def test_the_table_of_a_sweep_has_a_column_for_each_risk() -> None:
    table = typed(f"rdp {PASS} --sigma 1,2 -d 1e-6 --risk --fpr 0.001,0.01").output
    head, *rows = [line.split() for line in table.split("\n")[2:5]]
    assert head == ["noise_std", "epsilon", "advantage", "tpr@0.1%", "tpr@1%", "success@50%", "bound"]
    assert float(rows[1][4]) == pytest.approx(gaussian_tpr(1.0, "0.01"), rel=1e-3)
    assert float(rows[1][4]) >= gaussian_tpr(1.0, "0.01")
    known = typed("risk -e 0.5:1:0.5 -d 1e-6 --fpr 0.01").output
    assert known.split("\n")[1].split() == ["epsilon", "advantage", "tpr@1%", "success@50%", "bound"]
    rows_of = dpcalc.risk(mu=[1, 2], fpr=0.01).rows()
    assert rows_of[0]["tpr@0.01"] == dpcalc.risk(mu=1, fpr=0.01).cases[0].risk["tpr"][0]["value"]  # type: ignore[index]


def test_a_guarantee_alone_is_a_case_of_a_recipe(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "dpcalc: recipe/1\ndefaults: {command: risk}\ncases:\n  a: {mu: 1, assert: advantage<=0.383}\n"
        "  b: {matrix: {epsilon: [1, 2]}, delta: 1e-5, fpr: [0.01, 0.1], assert: ['tpr@1%<=0.03', bound==risk.point]}\n"
        "  c: {rdp: order=8 epsilon=1, baseline: 0.001, expect: {advantage: 0.48, tolerance: 0.01}}\n"
    )
    result = typed(f"check {recipe} --json")
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    conforms(report)
    verdicts = {case["check"]["name"]: case["check"]["status"] for case in report["cases"]}
    assert verdicts == {"a": "passed", "b[epsilon=1]": "passed", "b[epsilon=2]": "failed", "c": "passed"}
    assert [row["baseline"] for row in report["cases"][-1]["risk"]["reconstruction"]] == [0.001]
    recipe.write_text("dpcalc: recipe/1\ncases:\n  a: {command: risk, mu: 1, noise_std: 2}\n")
    assert "risk takes no noise_std" in typed(f"check {recipe}").output


def reported(tmp_path: Path, line: str) -> str:
    path = tmp_path / "report.json"
    assert typed(f"{line} --json -o {path}").exit_code == 0
    return str(path)


def test_of_every_case_of_a_report(tmp_path: Path) -> None:
    path = reported(tmp_path, f"rdp {PASS} --sigma 1,2 -d 1e-6")
    report = json.loads(typed(f"risk {path} --fpr 0.01 --json").stdout)
    conforms(report)
    for case, mu in zip(report["cases"], (2.0, 1.0), strict=True):
        assert 0.0 <= case["risk"]["tpr"][0]["value"] / gaussian_tpr(mu, "0.01") - 1.0 < 1e-9
        assert case["inputs"]["noise_std"]["value"] == 2.0 / mu
    assert typed(f"risk {path} --assert 'advantage<=0.5'").exit_code == 1
    assert typed(f"risk {path} --assert 'advantage<=0.7'").exit_code == 0


@pytest.mark.parametrize("order", ["", " --order 2,8"])
def test_what_a_report_says_of_gaussian_privacy(order: str, tmp_path: Path) -> None:
    found = told(f"risk {reported(tmp_path, f'rdp {PASS} --sigma 2{order}')}")
    assert found["advantage"]["value"] == pytest.approx(told("risk --mu 1")["advantage"]["value"], rel=1e-9)


PROFILES = [
    f"shuffle {PASS} --sigma 2 -d 1e-6",
    f"shuffle {PASS} -e 1 -d 1e-6",
    "dp-sgd -n 1000 --batch-size 50 --steps 20 --noise-multiplier 4 --sampling poisson --adjacency zero-out -d 1e-6",
]
"""Runs of which a report has one point and how often a guess is right."""


@pytest.mark.few(1)
@pytest.mark.parametrize("line", PROFILES)
def test_a_report_gives_the_guess_of_its_run(line: str, tmp_path: Path) -> None:
    run = told(f"{line} --risk --fpr 0.1")
    path = reported(tmp_path, line)
    found = json.loads(typed(f"risk {path} --fpr 0.1 --json").stdout)["cases"][0]
    assert found["risk"]["advantage"]["value"] == run["advantage"]["value"]
    assert found["risk"]["success"] == run["success"]
    assert found["guess"] == json.loads(Path(path).read_text())["cases"][0]["guess"]
    [row] = found["risk"]["tpr"]  # at most the rate of false positives and the advantage, at least what the curve says
    assert run["tpr"][0]["value"] <= row["value"] <= (0.1 + run["advantage"]["value"]) * (1.0 + 1e-12)
    assert "No attack on a record goes beyond advantage" in typed(f"risk {path} --format plain -vv").stdout


def test_a_report_of_a_solution_speaks_of_what_was_solved_for(tmp_path: Path) -> None:
    line = "rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -e 1 -d 1e-6 --solve index"
    path = reported(tmp_path, line)
    index = json.loads(Path(path).read_text())["cases"][0]["results"][0]["value"]
    assert f"the record at position {index:.0f} " in typed(f"risk {path} -vv").stdout


def test_a_report_without_a_guess_says_what_its_point_allows(tmp_path: Path) -> None:
    path = Path(reported(tmp_path, PROFILES[0]))
    report = json.loads(path.read_text())
    del report["cases"][0]["guess"]
    path.write_text(json.dumps(report))
    point = report["cases"][0]["results"][0]["value"]
    assert told(f"risk {path}")["advantage"]["value"] == pytest.approx(
        told(f"risk -e {point!r} -d 1e-6")["advantage"]["value"], rel=1e-9
    )


@pytest.mark.parametrize(
    "wrong", [{"advantage": -0.1}, {"advantage": 2}, {"probability": 0.4}, {"probability": True}, {"advantage": 0.9}]
)
def test_a_guess_that_contradicts_itself_is_no_report(wrong: dict[str, Any], tmp_path: Path) -> None:
    path = Path(reported(tmp_path, PROFILES[0]))
    report = json.loads(path.read_text())
    report["cases"][0]["guess"] |= wrong
    path.write_text(json.dumps(report))
    assert "is no JSON report" in typed(f"risk {path}").output


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "dpcalc.report/1", "cases": []}', '{"schema": "dpcalc.report/1", "cases": [1]}',
     '{"schema": "dpcalc.report/1", "cases": [{"inputs": {}, "results": [{"kind": "upper", "bound": "a", "quantity": '
     '"mu", "value": 1, "mu": -1, "adjacency": "replace_one", "best": true, "reference": ""}]}]}'],
)  # fmt: skip
def test_what_is_no_report(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    result = typed(f"risk {path}")
    assert result.exit_code == 2
    assert "is no JSON report" in result.output


def test_a_report_of_one_order_has_no_risk(tmp_path: Path) -> None:
    run = "dp-sgd -n 100 --steps 10 --noise-multiplier 1 --batch-size 50 --sampling poisson --adjacency remove -d 1e-6"
    result = typed(f"risk {reported(tmp_path, run)}")
    assert result.exit_code == 3
    assert "no guarantee in both orders" in result.output
    assert typed(f"risk {tmp_path / 'report.json'} --mu 1").exit_code == 2


def test_a_model_that_is_not_private_has_no_risk_that_is_known(tmp_path: Path) -> None:
    line = "train --data example:breast-cancer --radius 5 --sigma 0.06 --steps 20 -d 1e-5 --json"
    path = tmp_path / "report.json"
    path.write_text(typed(f"{line} --seed 3").stdout)
    found = typed(f"risk {path} --assert advantage<=0.99")
    assert found.exit_code != 0
    assert "NOT PRIVATE: seeded" in " ".join(found.output.split())
    assert typed(f"risk {path}").exit_code == 3
    path.write_text(path.read_text().replace('"private": false', '"private": null').replace("why_not_private", "other"))
    assert "NOT PRIVATE" in typed(f"risk {path}").output
    path.write_text(typed(line).stdout)
    assert typed(f"risk {path} --assert advantage<=0.99").exit_code == 0


def test_a_case_that_did_not_pass_its_check_is_named(tmp_path: Path) -> None:
    recipe, path = tmp_path / "recipe.yaml", tmp_path / "report.json"
    recipe.write_text(
        "dpcalc: recipe/1\ndefaults: {command: rdp, records: 1000, lipschitz: 1, smoothness: 1, step_size: 0.1, "
        "delta: 1e-6}\ncases:\n  big: {noise_std: 2, assert: epsilon <= 0.5}\n  none: {noise_std: 1e-160}\n"
    )
    path.write_text(typed(f"check {recipe} --json").stdout)
    found = typed(f"risk {path}")
    assert found.exit_code == 3
    assert "warning: case big did not pass its check: epsilon <= 0.5 does not hold" in found.output
    assert "case none ended in an error: gives no finite epsilon" in found.output


def test_a_secret_order_is_told_of_less_than_a_public_one() -> None:
    """And of no more than the line of its own answer says."""
    run = "shuffle -n 8 -L 1 --smoothness 1 --eta 0.1 --sigma 4 -d 1e-2 --risk --permutation"
    public, report = told(f"{run} public"), json.loads(typed(f"{run} secret --json").stdout)["cases"][0]
    best = next(row for row in report["results"] if row["best"])
    assert best["bound"] == "hidden_position.shuffled"
    for row, more in zip(report["risk"]["tpr"], public["tpr"], strict=True):
        assert row["fpr"] < row["value"] <= more["value"], row
        assert row["value"] <= (1e-2 + mp.exp(best["epsilon"]) * row["fpr"]) * (1.0 + 1e-9), row
    assert report["risk"]["tpr"][0]["value"] < 0.9 * public["tpr"][0]["value"]
