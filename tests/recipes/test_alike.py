"""The verdicts on cases that share work are those on each of them alone, whatever a recipe holds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dpcalc.errors import SpecError
from dpcalc.recipes.judging.verdict import judged
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.evaluate import Limits, evaluate
from dpcalc.recipes.running.selection import Options, Selection, read_all
from dpcalc.render import render
from dpcalc.render.notes import report

RUN = {"records": "60", "lipschitz": "1", "smoothness": "1", "step_size": "0.1", "noise_std": "2"}
ASKED = ("order: 8", "order: [2, 8]", "order: 2.5", "delta: 1e-6", "delta: 0.02", "epsilon: 0.3", "description: mu")
CHANGED = (
    "", "batch_size: 7, last_batch: drop", "batch_size: 7, last_batch: balanced", "strong_convexity: 0.5",
    "algorithm: shuffled, permutation: secret", "algorithm: stop", "adjacency: null-record", "group_size: 2",
)  # fmt: skip
VARIED = (
    "index: '1:62:3'", "index: '2:58:2'", "index: [7, 8, 9, 10, 30], noise_std: [1, 2]", "index: [1, 2, 59, 60, 3]",
    "index: [60, 59, 61, 58]", "records: [10, 100, 1000]", "index: [1, 2, 60], noise_std: [0.1, 2]",
    "algorithm: [pnsgd, stop, skip], index: [3, 4]", "window: [1, 5, 70]", "index: [5, 54, 53], batch_size: [1, 7]",
    "step_size: [0.1, 1, 2.5], index: [7, 8]",
)  # fmt: skip
GATED = (
    "rdp <= 0.05, rdp < 7", "epsilon <= 0.9", "rdp <= 1", "log_delta <= -0.1", "rdp <= 0.02", "rdp <= 100",
    "epsilon <= 0.5", "epsilon < 4", "delta <= 0.3", "delta <= 1", "log_delta <= -3", "mu <= 0.2",
    "bound == iteration.pnsgd", "bound == iteration.pnsgd_rdp", "advantage <= 0.9", "rdp <= 0.02, mu <= 9",
)  # fmt: skip
ACCEPTED = (
    "one-index",
    "one-index",
    "one-index",
    "one-index, large-delta",
    "secret-order",
    "large-delta",
    "one-index, secret-order",
)
MORE = (
    "expect: {error: not_applicable}",
    "expect: {rdp: 0.01}",
    "skip: not now",
    "include: [{index: 9}]",
)


def recipe(draw: random.Random) -> str:
    """Return a recipe of some random cases, of which many are wrong in one way or another."""
    cases = []
    for number in range(draw.randint(1, 3)):
        varied = draw.choice(VARIED)
        fields = {"accept": f"[{draw.choice(ACCEPTED)}]", "assert": f"[{draw.choice(GATED)}]"}
        parts = [f"{name}: {value}" for name, value in fields.items() if draw.random() < 0.9]
        parts += [draw.choice(ASKED), f"matrix: {{{varied}}}"]
        changed = draw.choice(CHANGED) if draw.random() < 0.4 else ""
        names = [part.partition(":")[0].strip() for part in changed.split(",")]
        parts += [changed] if changed and not any(f"{name}:" in varied for name in names) else []
        parts += [draw.choice(MORE)] if draw.random() < 0.15 else []
        parts += [f"{name}: {value}" for name, value in RUN.items() if f"{name}:" not in varied]
        cases.append(f"  case{number}: {{command: rdp, {', '.join(parts)}}}\n")
    return f"dpcalc: recipe/1\ncases:\n{''.join(cases)}"


def compare(path: Path, text: str, *, certify: bool = False, limits: Limits = Limits()) -> list[int]:  # noqa: B008
    """Compare the verdicts on a recipe with those on cases that share nothing; return the exit code of each."""
    path.write_text(text, encoding="utf-8")
    try:
        recipes = read_all([str(path)])
    except SpecError:
        return [2]
    alone = [
        judged(recipe, entry, lambda e: evaluate(e, certify=certify), certify=certify)
        for recipe in recipes for entry in recipe.every()
    ]  # fmt: skip
    together = checked(Selection(recipes, options=Options(certify=certify), limits=limits))
    apart = report("check", alone)
    for case, expected in zip(together.cases, apart.cases, strict=True):
        assert case._asdict() == expected._asdict()
    for format in ("plain", "json", "csv"):
        assert render(together, format) == render(apart, format)
    return [case.check.exit_code for case in together.cases if case.check]


@pytest.mark.parametrize("rounds", [40, pytest.param(300, marks=pytest.mark.campaign)])
def test_random_recipes_are_judged_as_each_case_alone(rounds: int, tmp_path: Path) -> None:
    draw, codes = random.Random(rounds), list[int]()
    for _ in range(rounds):
        codes += compare(tmp_path / "recipe.yaml", recipe(draw))
    assert {0, 1, 2, 3} == {*codes}


SWEEP = "dpcalc: recipe/1\ncases: {case: {command: rdp, records: 60, lipschitz: 1, smoothness: 1, step_size: 0.1, "
SWEEP += "noise_std: 2, accept: one-index, order: 8, matrix: {index: '1:59:2'}, assert: GATE}}\n"


@pytest.mark.parametrize("options", [{"limits": Limits(usual=60.0, memory=4.0)}, {"certify": True}, {}])
@pytest.mark.parametrize("gate", ["rdp <= 0.1", "rdp <= 0.05", "[rdp <= 1, rdp <= 0.05]", "rdp <= 1e400"])
def test_a_sweep_is_judged_as_each_case_alone(tmp_path: Path, gate: str, options: dict[str, Any]) -> None:
    compare(tmp_path / "recipe.yaml", SWEEP.replace("GATE", gate), **options)


def test_the_worst_position_is_no_exception(tmp_path: Path) -> None:
    text = SWEEP.replace("'1:59:2'", "[60, 58, 59]").replace("GATE", "rdp <= 10")
    assert compare(tmp_path / "recipe.yaml", text.replace("accept: one-index, ", "")) == [0, 1, 1]
    assert compare(tmp_path / "recipe.yaml", text.replace("[60, 58", "[58, 60")) == [0, 0, 0]
