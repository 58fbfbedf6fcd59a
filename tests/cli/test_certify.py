"""--certify: what is proved, what is not, and what a guarantee below the truth looks like."""

import json
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from flint import arb

from dpcalc.certify import table
from dpcalc.certify.risk import costs
from dpcalc.certify.table import definitions
from dpcalc.cli.main import main
from dpcalc.engine import evaluate
from dpcalc.engine.ask import ask
from dpcalc.errors import Disproved
from dpcalc.model import loss_class as loss
from dpcalc.model.question import Question
from tests.schema import conforms


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: str) -> Outcome:
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        captured = capsys.readouterr()
        return Outcome(int(stop.value.code or 0), captured.out, captured.err)

    return run


RUN = "-n 600 -L 1 --smoothness 1 --eta 0.1 --sigma 2"


def proofs(outcome: Outcome) -> dict[str, dict[str, Any]]:
    report = json.loads(outcome.out)
    conforms(report)
    return {result["bound"]: result for result in report["cases"][0]["results"]}


@pytest.mark.parametrize(
    ("line", "quantity"),
    [
        (f"rdp {RUN} -d 1e-6", "epsilon"),
        (f"rdp {RUN} -e 0.7", "delta"),
        (f"rdp {RUN}", "mu"),
        (f"rdp {RUN} --order 8", "rdp"),
        (f"rdp {RUN} --algorithm stop -d 1e-6", "epsilon"),
        (f"rdp {RUN} --algorithm skip -d 1e-300", "epsilon"),
        (f"shuffle {RUN} -D 1 -d 1e-6", "epsilon"),
        (f"multi-epoch {RUN} --epochs 7 -d 1e-6 --strong-convexity 0.2", "epsilon"),
        ("hockey-stick -n 30 -i 20 -L 1 --smoothness 1 --eta 0.1 --laplace-scale 2 -D 1 -e 0.3", "delta"),
    ],
)
def test_values_lie_at_or_above_their_enclosures(cli: Cli, line: str, quantity: str) -> None:
    outcome = cli(*line.split(), "--certify", "--json")
    assert outcome.code == 0, outcome.err
    counted = 0
    for result in proofs(outcome).values():
        if result["kind"] != "upper":
            assert "certified" not in result
            continue
        proof = result["certified"]
        value = result["log_delta" if quantity == "delta" else "value"]
        assert proof["quantity"] == {"delta": "log_delta"}.get(quantity, quantity)
        low, high = Fraction(proof["lower"]), Fraction(proof["upper"])
        assert low <= high
        assert Fraction(value) >= low
        assert abs(Fraction(value) - low) <= Fraction(1, 500) * (1 + abs(low))
        counted += 1
    assert counted


def test_a_step_of_exactly_two_over_the_smoothness_is_judged_by_the_decimals(cli: Cli) -> None:
    """20 times the double 0.1 is more than 2; what bounds take for granted at 2 is not disproved by that."""
    line = "shuffle -n 7 -L 1 --smoothness 0.1 --eta 20 --batch-size 4 --sigma 1 -d 1e-6 --certify --json"
    outcome = cli(*line.split(" "))
    assert outcome.code == 0, outcome.err
    assert "certified" in proofs(outcome)["shuffle.hybrid"]


def test_what_is_solved_for_is_proved_to_meet_the_budget(cli: Cli) -> None:
    outcome = cli(
        *[
            "rdp",
            "-n",
            "600",
            "-L",
            "1",
            "--smoothness",
            "1",
            "--eta",
            "0.1",
            "-e",
            "1",
            "-d",
            "1e-6",
            "--certify",
            "--json",
        ]
    )
    assert outcome.code == 0, outcome.err
    proof = proofs(outcome)["iteration.pnsgd"]["certified"]
    assert proof["quantity"] == "log_delta"
    with_room = arb(proof["upper"])
    assert with_room <= arb("1e-6").log()
    assert with_room > arb("1e-6").log() - arb("1e-9")


def test_text_says_what_was_proved(cli: Cli) -> None:
    outcome = cli(*f"rdp {RUN} -d 1e-6 --certify -vv".split())
    assert outcome.code == 0
    assert "iteration.pnsgd, certified (" in cli(*f"rdp {RUN} -d 1e-6 --certify".split()).out
    assert "certified: iteration.pnsgd: epsilon lies in [" in outcome.out
    prose = cli(*f"rdp {RUN} -d 1e-6 --certify --format statement".split())
    assert "in ball arithmetic the formula was proved not to exceed it" in " ".join(prose.out.split())
    assert "ball arithmetic" not in cli(*f"rdp {RUN} -d 1e-6 --format statement".split()).out
    table = cli(*f"rdp {RUN} -d 1e-6 --certify --format markdown".split())
    assert "certified: iteration.pnsgd: epsilon lies in [" in table.out.replace("\\_", "_")
    sweep = cli(
        *[
            "rdp",
            "-n",
            "600",
            "-i",
            "1,2,3",
            "-L",
            "1",
            "--smoothness",
            "1",
            "--eta",
            "0.1",
            "--sigma",
            "2",
            "-d",
            "1e-6",
            "--certify",
        ]
    )
    assert sweep.code == 0
    assert "certified: 3 of 3 best values" in sweep.out


def test_a_best_value_that_is_not_provable_so_is_said_to_be_that(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    left = {id: one for id, one in definitions().items() if id != "noisy_sgd.composition"}
    monkeypatch.setattr(table, "definitions", lambda: left)
    line = "multi-epoch --algorithm noisy-sgd -n 50 --batch-size 5 --steps 3 -L 1 --sigma 2 -d 1e-5"
    plain = cli(*line.split())
    assert plain.code == 0
    outcome = cli(*line.split(), "--certify", "-vv")
    assert outcome.code == 3
    assert "is not certified" in outcome.err
    assert "not certified: noisy_sgd.composition: no definition of it has been written" in outcome.out
    result = proofs(cli(*line.split(), "--certify", "--json"))["noisy_sgd.composition"]
    assert result["not_certified"]
    assert "certified" not in result


def test_what_else_is_certified_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    left = {id: one for id, one in definitions().items() if id != "hidden_position.shuffled"}
    monkeypatch.setattr(table, "definitions", lambda: left)
    outcome = cli(*f"shuffle {RUN} --permutation secret -d 1e-6 --certify -vv".split())
    assert outcome.code == 3
    assert "hidden_position.shuffled is not certified" in outcome.out
    assert "name a certifiable bound (shuffle" in outcome.err
    assert "the best that is: shuffle." in outcome.out


def test_without_python_flint_the_cure_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    outcome = cli(*f"rdp {RUN} -d 1e-6 --certify".split())
    assert outcome.code == 2
    assert "pip install python-flint" in outcome.err


@pytest.mark.parametrize("question", ["-d 1e-6", "-e 0.7", "", "--order 8"])
def test_a_value_below_the_truth_is_an_error_with_a_report(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    right = definitions()["iteration.pnsgd"]
    wrong = right._replace(formula=lambda v: right.formula(v) * (1 + arb(2) ** -40))
    monkeypatch.setattr(table, "definitions", lambda: {**definitions(), "iteration.pnsgd": wrong})
    outcome = cli(*f"rdp {RUN} {question} --certify".split())
    assert outcome.code == 4
    assert not outcome.out
    for part in ("--- bug report ---", "iteration.pnsgd", "records=600", "proved: ", "dpcalc ", "noise_std=2.0"):
        assert part in outcome.err
    assert "iteration.pnsgd is below the truth" in outcome.err


def test_solved_noise_that_is_too_small_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    right = definitions()["iteration.pnsgd"]
    wrong = right._replace(formula=lambda v: right.formula(v) * (1 + arb(2) ** -30))
    monkeypatch.setattr(table, "definitions", lambda: {**definitions(), "iteration.pnsgd": wrong})
    given = {"records": 600, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1}
    with pytest.raises(Disproved, match=r"iteration\.pnsgd"):
        ask("rdp", given, Question(1.0, 1e-6, -13.815510557964274), certified=True)


def test_what_follows_from_the_inputs_is_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A displacement that is a little too small is noticed, though the bound is right for what it was given."""
    given = {"records": 9, "index": 4, "lipschitz": 0.3, "smoothness": 0.7, "step_size": 0.9, "diameter": 1.1,
             "strong_convexity": 0.1, "noise_std": 0.6}  # fmt: skip
    case = ask("hockey-stick", given, Question(0.4), certified=True)
    assert all("certified" in (result.details or {}) for result in case.results if result.guarantee)
    right = loss.displacement
    monkeypatch.setattr(loss, "displacement", lambda **constants: (right(**constants) or 0.0) * (1.0 - 1e-9))
    with pytest.raises(Disproved, match=r"contraction\."):
        ask("hockey-stick", given, Question(0.4), certified=True)


def test_costs_are_certified_with_the_noise_that_keeps_the_budget(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "utility -L 1 --smoothness 1 -n 1e5 --dimension 20 -R 1 -e 1 -d 1e-6 --certify"
    outcome = cli(*line.split(), "--json")
    assert outcome.code == 0, outcome.err
    results = proofs(outcome)
    for bound in ("utility.stop", "utility.skip_classic", "smoothing.skip"):
        low, value = Fraction(results[bound]["certified"]["lower"]), Fraction(results[bound]["value"])
        assert low <= value <= low * (1 + Fraction(1, 10**11))
    right = costs.PRICES["utility.stop"]
    for wrong in (
        right._replace(risk=lambda v: right.risk(v) * (1 + arb(2) ** -40)),
        right._replace(private=lambda v: right.private(v) + arb(2) ** -30),  # type: ignore[misc]
    ):
        monkeypatch.setitem(costs.PRICES, "utility.stop", wrong)
        assert cli(*line.split()).code == 4


def test_the_cost_of_noise_on_the_output_is_certified(cli: Cli) -> None:
    line = "utility --algorithm dp-sgd-output -L 1 --holder-exponent 0.5 --holder-constant 1 -n 50 --steps 50 -R 1"
    outcome = cli(*line.split(), *["--dimension", "2", "-e", "1", "-d", "1e-3", "--certify", "--json"])
    assert outcome.code == 0, outcome.err
    assert "certified" in proofs(outcome)["holder_cost.output_expected"]


def test_a_delta_below_its_logarithm_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"records": 600, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
    right = evaluate.exp_up
    monkeypatch.setattr(evaluate, "exp_up", lambda x: right(x) * (1.0 - 2.0**-50))
    with pytest.raises(Disproved):
        ask("rdp", given, Question(0.7), certified=True)


def test_a_delta_of_a_renyi_curve_is_held_against_its_order(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    line = f"rdp {RUN} -e 0.7 --certify"
    assert "certified" in proofs(cli(*line.split(), "--json"))["iteration.pnsgd_rdp"]
    right = definitions()["iteration.pnsgd_rdp"]
    wrong = right._replace(formula=lambda v: right.formula(v) * (1 + arb(2) ** -40))
    monkeypatch.setattr(table, "definitions", lambda: {**definitions(), "iteration.pnsgd_rdp": wrong})
    assert cli(*line.split()).code == 4


def test_a_step_at_the_edge_for_its_decimals_is_not_disproved_by_its_doubles(cli: Cli) -> None:
    """0.2 is more than two tenths: ten times it is above 2, where the maps are not known to be 1-Lipschitz."""
    line = "shuffle -n 3 --batch-size 2 -L 0.6 --smoothness 0.2 --eta 10 --sigma 1 -d 1e-5 --certify"
    outcome = cli(*line.split(), "--json")
    assert outcome.code == 0, outcome.err
    results = proofs(outcome)
    assert results["shuffle.hybrid"]["certified"]["alone"].startswith("the doubles: ")
    assert "not for the doubles: the step size is a little above" in cli(*line.split(), "-vv").out


@pytest.mark.parametrize("step_size", ["0.5", "3"])
def test_the_displacement_of_a_regularised_loss_is_recomputed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, step_size: str
) -> None:
    line = (
        f"hockey-stick -n 9 -i 4 --loss absolute --feature-bound 1 --regularisation 0.5 --radius 1 --eta {step_size} "
        "--sigma 2 -e 0.1 --certify"
    )
    outcome = cli(*line.split(), "--json")
    assert outcome.code == 0, outcome.err
    assert "certified" in proofs(outcome)["contraction.product"]
    right = loss.displacement
    monkeypatch.setattr(loss, "displacement", lambda **constants: (right(**constants) or 0.0) * (1.0 - 1e-9))
    assert cli(*line.split()).code == 4


def test_an_enclosure_of_what_meets_the_budget_is_within_it(cli: Cli) -> None:
    """By the exact conversion, which says whether a budget is met and not by how much."""
    line = "rdp -n 1000 -L 1 --smoothness 1 --eta 0.5 -e 1 -d 1e-6 --solve index --sigma 10 --certify --json"
    proof = proofs(cli(*line.split()))["iteration.pnsgd_rdp"]["certified"]
    assert proof["quantity"] == "epsilon"
    assert 0 <= Fraction(proof["lower"]) <= Fraction(proof["upper"]) <= 1


@pytest.mark.parametrize("noise_multiplier", ["0.0033", "0.03"])
def test_losses_that_are_too_large_for_a_proof_are_said_to_be(cli: Cli, noise_multiplier: str) -> None:
    line = "-n 1000 --batch-size 10 --sampling poisson --adjacency replace-one --steps 20 -d 1e-5"
    outcome = cli("dp-sgd", *line.split(), "--noise-multiplier", noise_multiplier, "--certify", "--json")
    reason = proofs(outcome)["sampled.poisson"]["not_certified"]
    assert reason == "losses so large that their exponentials are no doubles"
