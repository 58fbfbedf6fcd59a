"""One run, one meaning: every surface says the same epsilon, guess, adjacency and steps."""

import csv
import html
import json
import math
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

import dpcalc
from dpcalc.render.numbers import SIX, Digits
from dpcalc.render.words.risk import meaning
from dpcalc.report import Case, Report

SAMPLED = [
    (f"dp-sgd -n {n} --batch-size {size} --epochs {epochs} --noise-multiplier {z} --sampling shuffle -d {delta}")
    for n, size, epochs in ((1000, 64, 2), (60000, 256, 50), (500, 100, 3))
    for z in (4, 30)
    for delta in ("1e-6", "1e-8")
]
FULL = [
    f"dp-sgd -n {n} --steps {steps} --noise-multiplier {z} --sampling full -d 1e-6"
    for n, steps, z in ((1000, 10, 5), (1000, 100, 50), (10, 1, 0.7))
]
ONE_PASS = [
    f"rdp -n {n} -L 1 --smoothness 1 --eta {eta} --sigma {sigma} -d {delta}"
    for n in (60, 60000)
    for eta in (0.1, 0.5)
    for sigma in (2, 8)
    for delta in ("1e-6", "1e-9")
]
OTHERS = [
    "shuffle -n 100 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6",
    "shuffle -n 1000 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
    "multi-epoch -n 60 --batch-size 6 --epochs 5 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-5",
    "multi-epoch --algorithm noisy-gd -n 20 --steps 9 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-6",
    "multi-epoch --algorithm repeated --epochs 5 --epoch-epsilon 0.5 -d 1e-5",
    "rdp --algorithm skip -n 30 -i 10 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-6",
    "rdp --algorithm local -n 30 -L 1 --smoothness 1 --eta 0.5 --sigma 8 -d 1e-5",
    "rdp --algorithm stop -n 60 -L 1 --smoothness 1 --eta 0.5 --sigma 4 -d 1e-5",
    "dp-sgd -n 1000 --steps 5 --noise-multiplier 9 --sampling full --adjacency zero-out -d 1e-6",
    "dp-sgd -n 6000 --batch-size 256 --epochs 2 --noise-multiplier 2 --sampling poisson --adjacency add-remove -d 1e-6",
]
RUNS = [*SAMPLED, *FULL, *ONE_PASS, *OTHERS]

_SHORT = {"n": "records", "L": "lipschitz", "d": "delta", "i": "index", "eta": "step_size", "sigma": "noise_std"}


def described(line: str) -> tuple[str, dict[str, Any]]:
    """Return the command, and the parameters by their names, as Python and a recipe take them."""
    command, *words = shlex.split(line)
    names = [word.lstrip("-").replace("-", "_") for word in words[::2]]
    values = [yaml.safe_load(re.sub(r"^(\d+)e", r"\1.0e", word)) for word in words[1::2]]
    return command, {_SHORT.get(name, name): value for name, value in zip(names, values, strict=True)}


def test_there_are_forty() -> None:
    assert len(set(RUNS)) >= 40


@pytest.mark.few(4)
@pytest.mark.parametrize("line", RUNS)
def test_every_surface(line: str, ask: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, given = described(line)
    in_python: Report = getattr(dpcalc, command.replace("-", "_"))(**given)
    case: Case = in_python.cases[0]
    best, guess = case.best, case.guess
    assert best is not None
    assert guess is not None
    epsilon, said, adjacency = SIX.value(best), meaning(case), best.adjacency.replace("_", "-")
    assert f"{math.ceil(guess.probability * 1000) / 10:.1f}%" in said or guess.probability > 0.999

    shell = ask(f"{line} --report json=r.json --report html=r.html --report card=c.json --report badge=b.json")
    [asked] = json.loads(Path("r.json").read_text())["cases"]
    [card] = json.loads(Path("c.json").read_text())["cases"]
    page = html.unescape(Path("r.html").read_text())
    statement = " ".join(ask(f"statement {_as_statement(line)}").split())

    top = next(row for row in asked["results"] if row["best"])
    assert (top["value"], asked["guess"]) == (best.value, guess._asdict())
    assert card["guarantee"]["numbers"][0]["value"] == best.value
    assert card["guarantee"]["meaning"] == said
    words = " ".join(shell.split())
    assert said in words
    assert said in page
    assert said in " ".join(ask("risk r.json -v").split())
    notebook = html.unescape(str(in_python._repr_html_()))
    headline = f"epsilon <= {epsilon} at delta = "
    assert shell.startswith(headline)
    assert card["guarantee"]["headline"][0].startswith(headline)
    assert f"({epsilon}, " in statement
    assert ask(f"{line} --format markdown").startswith(f"**{headline}")
    for text in (page, notebook):
        assert said in text
        assert set(re.findall("epsilon \u2264 (\\S+) at delta", text)) == {epsilon}
    assert f"epsilon <= {Digits(3).value(best)} at" in json.loads(Path("b.json").read_text())["message"]
    [row] = [row for row in csv.DictReader(ask(f"{line} --format csv").splitlines()) if row["best"] == "true"]
    assert (float(row["value"]), row["adjacency"]) == (best.value, best.written_adjacency)
    assert top["adjacency"] == card["unit"]["neighbours"] == best.written_adjacency
    assert re.search(rf"\b{adjacency.replace('null-record', 'zero-out')}\b", words) or "adjacency" not in case.inputs
    assert adjacency in statement
    for text in (page, notebook):
        assert re.search(rf"adjacency\b.{{0,40}}{adjacency}", text) or "adjacency" not in case.inputs
    risk = json.loads(ask(f"{line} --risk --json"))["cases"][0]
    assert risk["guess"] == guess._asdict()
    assert risk["risk"]["advantage"] == {**risk["risk"]["advantage"], "value": guess.advantage}
    assert risk["risk"]["success"][0]["value"] == guess.probability

    proved = json.loads(ask(f"{line} --certify --json"))["cases"][0]
    certified = next(row for row in proved["results"] if row["best"])
    certificate = certified["certified"]
    assert (certified["value"], proved["guess"]) == (best.value, guess._asdict())
    number = {"epsilon": best.value, "log_delta": best.log_delta}[certificate["quantity"]]
    assert number is not None
    assert float(certificate["lower"]) <= float(certificate["upper"]) <= number
    assert float(certificate["lower"]) > number - 1e-4 * abs(number)
    ask("verify c.json")

    if "steps" in case.inputs:
        steps = case.inputs["steps"][0]
        assert f"{steps} steps" in words
        assert f"steps T = {steps}" in statement
        assert f"steps T = {steps}" in notebook
        assert re.search(rf"steps T\D*{steps}\b", page)
        assert card["mechanism"]["steps"]["steps"] == steps

    accepted = {"accept": ["one-index"]} if "index" in given else {}
    gated = {"command": command, **given, **accepted, "assert": f"epsilon <= {epsilon}"}
    recipe = {"dpcalc": "recipe/1", "cases": {"run": gated}}
    Path("budget.yaml").write_text(yaml.safe_dump(recipe, sort_keys=False))
    ask("check budget.yaml --report json=v.json")
    [verdict] = json.loads(Path("v.json").read_text())["cases"]
    [judged] = [row for row in verdict["results"] if row["best"]]
    expected = (best.value, best.written_adjacency, guess._asdict())
    assert (judged["value"], judged["adjacency"], verdict["guess"]) == expected
    assert [of["inputs"].get("steps", {}).get("value") for of in (verdict, asked)] == 2 * [
        case.inputs.get("steps", (None, ""))[0]
    ]
    for form in ("plain", "markdown"):
        text = ask(f"check budget.yaml --format {form}")
        assert re.search(rf"\brun\b.*\bepsilon[ |`]+{re.escape(epsilon)}[ |`]", text)
        assert adjacency in text or form == "markdown"


def _as_statement(line: str) -> str:
    command, _, rest = line.partition(" ")
    algorithms = {"dp-sgd": "dp-sgd", "rdp": "pnsgd", "shuffle": "shuffled", "multi-epoch": "cyclic"}
    return rest if "--algorithm" in rest else f"--algorithm {algorithms[command]} {rest}"
