"""`compare` and what stands on it: one description, every bound; explained, cited and stated with its numbers."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.engine.commands import COMMANDS
from dpcalc.model.run import ALGORITHMS
from dpcalc.theorems.record import all_bounds
from tests.cli.conftest import best
from tests.quick.questions import FILES, QUESTIONS

CONVEX = "-L 1 --smoothness 1 --eta 0.1"
PASS = f"-n 1000 {CONVEX} --sigma 2"
MANY = f"-n 1000 --epochs 5 --batch-size 10 {CONVEX} --sigma 0.5"
SHORT = PASS.replace("1000", "100")
STREAM = "-n 1000 -i 10 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent 1.5"
SAMPLED = "-n 1000 --loss logistic --feature-bound 1 -R 1 --sigma 2"
DESCRIBED = {
    "pnsgd": PASS,
    "skip": SHORT,
    "stop": SHORT,
    "local": PASS,
    "shuffled": SHORT,
    "rotation": SHORT,
    "shuffled-stop": SHORT,
    "cyclic": MANY,
    "shuffle-once": MANY,
    "rotation-epochs": MANY,
    "shuffled-epochs": MANY.replace("1000 --epochs 5", "100 --epochs 2"),
    "noisy-sgd": MANY,
    "noisy-gd": f"-n 1000 --steps 50 {CONVEX} --sigma 0.01",
    "repeated": "--epochs 5 --epoch-epsilon 0.1 --epoch-delta 1e-8",
    "online": STREAM,
    "dp-sgd": "-n 100 --batch-size 10 --epochs 2 --noise-multiplier 1 --sampling shuffle",
    "correlated": "--mechanism sqrt --steps 20 --epochs 2 --noise-multiplier 5",
    "dp-sgd-gradient": SAMPLED,
    "dp-sgd-output": f"{SAMPLED} --eta 0.001",
}
OWN = {
    "pnsgd": ("rdp", "hockey-stick"),
    "skip": ("rdp",),
    "stop": ("rdp", "hockey-stick"),
    "local": ("rdp",),
    "shuffled": ("shuffle",),
    "rotation": ("shuffle",),
    "shuffled-stop": ("shuffle",),
    "online": ("online",),
    "dp-sgd": ("dp-sgd",),
    "correlated": ("dp-ftrl",),
    "dp-sgd-gradient": ("dp-sgd",),
    "dp-sgd-output": ("dp-sgd",),
}


def compare(algorithm: str, more: str = "-d 1e-6") -> str:
    return f"compare --algorithm {algorithm} {DESCRIBED[algorithm]} {more}"


def test_every_algorithm_that_can_be_described_is_compared_here() -> None:
    assert set(DESCRIBED) <= set(COMMANDS["compare"].algorithms)
    assert {name.removesuffix("-released") for name in ALGORITHMS} - {"chain", "unlearning"} == set(
        COMMANDS["compare"].algorithms
    )


@pytest.mark.few(3)
@pytest.mark.parametrize("algorithm", DESCRIBED)
def test_the_best_is_that_of_the_algorithms_own_commands(ask_json: Any, algorithm: str) -> None:
    [case] = ask_json(compare(algorithm))
    own = []
    for command in OWN.get(algorithm, ("multi-epoch",)):
        name = "" if command in ("online", "dp-ftrl") else f"--algorithm {algorithm}"
        own += ask_json(f"{command} {name} {DESCRIBED[algorithm]} -d 1e-6")
    assert best(case)["value"] == min(best(other)["value"] for other in own)
    known = {bound.id for bound in all_bounds().values() if algorithm in bound.algorithms and bound.notion != "cost"}
    shown = {result["bound"] for result in case["results"]} | {why["bound"] for why in case["not_applicable"]}
    assert shown <= known
    # Bounds for maps that expand or contract, and for other ways to draw batches, are not spoken of where others hold.
    assert {id.partition(".")[0] for id in known - shown} <= {"expanding", "sampled", "correlated", "linear"}
    assert all(why["because"] and why["hint"] for why in case["not_applicable"])


@pytest.mark.campaign
def test_every_bound_is_reached(ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every theorem answers a question of the quick tier; `compare` answers it with the same theorems."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    missing = {}
    for question in QUESTIONS:
        algorithm = ALGORITHMS.get(question.algorithm)
        if algorithm is None or algorithm.chained or question.line.startswith("utility"):
            continue
        _, _, run = re.sub(" --algorithm [a-z-]+", "", question.line).replace("--matrix", "--schedule").partition(" ")
        report = json.loads(ask(f"compare --algorithm {algorithm.base} {run} --json"))
        found = {result["bound"] for case in report["cases"] for result in case["results"]}
        missing[question.line] = set(question.theorems.split()) - found
    assert {line: names for line, names in missing.items() if names} == {}


@pytest.mark.few(6)
@pytest.mark.parametrize("algorithm", DESCRIBED)
@pytest.mark.parametrize("question", ["-d 1e-6", "-e 1"])
def test_no_guarantee_is_below_what_nothing_beats(ask_json: Any, algorithm: str, question: str) -> None:
    [case] = ask_json(compare(algorithm, question))
    floor = case.get("tightness")
    if floor is None:
        return
    if best(case)["quantity"] == "delta":
        assert floor["ratio"] is None or floor["ratio"] >= 1.0 - 1e-9
    else:
        assert best(case)["value"] >= floor["value"] * (1.0 - 1e-12)


@pytest.mark.parametrize(
    ("run", "bound", "by_difference"),
    [
        ("pnsgd -n 2 -i 1", "linear.pass", False),
        ("pnsgd -n 2 -i 2", "linear.forgetting", True),
        ("skip -n 2 -i 1", "linear.skip_forgetting", True),
        ("noisy-gd -n 2 --steps 5", "linear.descent", False),
        ("noisy-gd -n 2 --steps 5 --strong-convexity 0.1", "noisy_gd.quadratic", True),
    ],
)
def test_tightness_says_of_which_guarantees_it_speaks(
    ask: Any, ask_json: Any, run: str, bound: str, by_difference: bool
) -> None:
    """Losses with gradients of any size do not have the Lipschitz constant that is known of the run."""
    line = f"compare --algorithm {run} -L 1 --smoothness 1 --eta 1 --sigma 100 -e 0"
    [case] = ask_json(line)
    assert (case["tightness"]["bound"], case["tightness"]["by_difference"]) == (bound, by_difference)
    said = ask(f"{line} -vv")
    assert ("no guarantee that uses only how far two gradients are apart is below" in said) is by_difference
    assert ("holds for what is known of the run" in said) is not by_difference


def test_one_epoch_of_full_batches_is_known_exactly(ask_json: Any) -> None:
    [case] = ask_json(compare("noisy-gd"))
    assert case["tightness"]["ratio"] == pytest.approx(1.0, abs=1e-9)


def test_algorithms_side_by_side(ask: Any, ask_json: Any) -> None:
    line = f"compare --algorithm pnsgd,shuffled,noisy-sgd,noisy-gd,online {PASS} -i 1000 -d 1e-6"
    cases = json.loads(ask(f"{line} --json"))["cases"]
    assert [case["algorithm"] for case in cases] == ["pnsgd", "shuffled", "noisy-sgd", "noisy-gd", "online"]
    values = [best(case)["value"] for case in cases[:3]]
    assert values == sorted(values, reverse=True)
    assert cases[1]["notes"][-1] == "shuffled has no index: it was left out"
    assert cases[2]["inputs"]["epochs"] == {"value": 1, "source": "default"}
    assert cases[4]["results"] == []
    assert "takes no noise_std" in cases[4]["not_applicable"][0]["because"]
    text = ask(f"{line} -vv")
    assert re.search(r"^ +pnsgd +1000 +4\.8", text, re.M)
    assert re.search(r"^ +online .*none", text, re.M)
    assert text.count("by Feldman") == 1


def test_explained_with_numbers(ask: Any) -> None:
    text = ask(f"explain iteration.pnsgd -i 500 {PASS} -d 1e-6")
    value = ask(f"rdp -i 500 {PASS} -d 1e-6")
    assert re.search(r"epsilon <= ([0-9.]+)", value)[0] in text  # type: ignore[index]
    for part in ("index i = 500", "sensitivity = 2 (2 lipschitz)", "[x] 1 <= index <= records", "@inproceedings"):
        assert part in text
    assert ask(f"explain --algorithm shuffled {SHORT} -d 1e-6").startswith("shuffle.mixture")


def test_the_statement_and_the_citation_of_a_run(ask: Any) -> None:
    line = f"--algorithm shuffled {SHORT} -d 1e-6"
    statement = ask(f"statement {line}")
    words = " ".join(statement.split())
    budget = "1e-06)-differentially private"
    for part in (budget, "replace-one adjacency", "the last iterate is released", "The guarantee assumes: one pass"):
        assert part in words
    assert ask(f"cite {line}").startswith("@inproceedings{bok2024")
    assert ask(f"compare {line} --format statement") == statement


def test_bounds_of_a_described_run(ask: Any) -> None:
    rows = ask(f"bounds --algorithm shuffled,cyclic {PASS}").splitlines()
    assert "  yes  shuffle.mixture" in rows
    assert "  no  shuffle.product: needs diameter (give --diameter)" in rows
    assert any(row.startswith("  if promised  hidden_position.shuffled: ") for row in rows)
    assert "  yes  multi_epoch.cyclic" in rows  # one epoch, where none is said
    assert rows.index("shuffled:") < rows.index("cyclic:")
    assert max(map(len, rows)) <= 80
    named = ask("bounds --algorithm pnsgd -n 10 --loss logistic --feature-bound 1 --eta 1 --sigma 1")
    assert re.search(r"yes  iteration.pnsgd$", named, re.MULTILINE)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "line",
    [
        "noisy-gd -n 600 --steps 1000 -L 1 --smoothness 1 --sigma 0.1 -D {D}",
        "cyclic -n 600 --epochs 50 -L 1 --smoothness 1 --sigma {D}1 -D 5",
        pytest.param(
            "shuffled -n 600 -L 1 --smoothness 1 --sigma 1 -D 3 --strong-convexity 0.1", marks=pytest.mark.campaign
        ),
    ],
)
def test_the_step_size_solved_for_meets_the_budget_and_hardly_less_would(ask_json: Any, line: str) -> None:
    run = f"compare --algorithm {line.format(D='0.05')} -d 1e-6"
    widest = best(ask_json(f"{run} --eta 1.8")[0])["value"]
    target = 1.1 * widest
    [case] = ask_json(f"{run} -e {target!r} --solve step-size")
    found = best(case)
    assert found["quantity"] == "step_size"
    if "any" in found:
        assert best(ask_json(f"{run} --eta 1e-3")[0])["value"] <= target
        return
    assert 0.0 < found["value"] <= 2.0
    assert best(ask_json(f"{run} --eta {found['value']!r}")[0])["value"] <= target
    assert best(ask_json(f"{run} --eta {0.99 * found['value']!r}")[0])["value"] > target


def test_compare_from_python() -> None:
    run = {"records": 1000, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
    report = dpcalc.compare(algorithm=["pnsgd", "noisy-gd", "online"], delta=1e-6, **run)
    assert [bool(case.results) for case in report.cases] == [True, True, False]
    plain = {**run, "noise_std": 0.01}  # which can be no noise multiplier: a gate takes one reading alone
    alone = dpcalc.compare(algorithm="noisy-gd", steps=5, delta=1e-6, gates=["epsilon<=100"], **plain)
    assert alone.cases[0].tightness is not None
    assert math.isclose(alone.cases[0].tightness.ratio or 0.0, 1.0, abs_tol=1e-9)
    with pytest.raises(dpcalc.SpecError, match="does not take colour"):
        dpcalc.compare(algorithm="pnsgd", colour=3, **run)


def test_what_a_bound_depends_on_through_something_else_is_not_any(ask_json: Any) -> None:
    """The contraction bounds take how far a step leaves two points apart, which follows from the strong convexity."""
    line = "compare --algorithm pnsgd -i 50 -n 100 -L 1 --smoothness 1 --eta 0.5 --sigma 1 -D 3 -d 1e-6"
    [case] = ask_json(f"{line} -e 3 --solve strong-convexity")
    rows = {result["bound"]: result for result in case["results"]}
    assert rows["iteration.pnsgd"]["any"]
    assert "any" not in rows["contraction.product"]
    [back] = ask_json(f"{line} --strong-convexity {rows['contraction.product']['value']!r}")
    assert next(r["value"] for r in back["results"] if r["bound"] == "contraction.product") <= 3.0
    [plain] = ask_json(line)
    assert next(r["value"] for r in plain["results"] if r["bound"] == "contraction.product") > 3.0
