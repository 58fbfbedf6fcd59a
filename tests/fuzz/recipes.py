"""Recipes, the configurations that they refer to, and the earlier reports with which a check is compared."""

import contextlib
import random
import tempfile
from functools import cache
from pathlib import Path

from dpcalc.recipes.reading.matrix import MAX_CASES
from dpcalc.recipes.reading.read import MAX_ERRORS, read
from dpcalc.recipes.reading.recipe import Malformed
from dpcalc.recipes.running.checking import checked, malformed
from dpcalc.recipes.running.selection import Selection
from dpcalc.render.check import KINDS, render
from dpcalc.render.check.baseline import load
from dpcalc.render.check.text import MAX_CHARACTERS
from dpcalc.render.notes import report
from dpcalc.report import Report
from tests.fuzz.files import refusable
from tests.fuzz.mutate import mutated

RECIPES = (
    b"dpcalc: recipe/1\ndescription: a budget\ndefaults: {records: 50, lipschitz: 1, smoothness: 1, step_size: 0.5}\n"
    b"cases:\n  base:\n    algorithm: pnsgd\n    noise_std: {from: config.yaml#/noise/std}\n    delta: 1e-6\n"
    b"    assert: epsilon <= 2\n  half:\n    algorithm: pnsgd\n    noise_std: 4\n    delta: 1e-6\n"
    b"    assert: [epsilon <= cases.base.epsilon * 2 + 0.1, delta <= 1/60000]\n",
    b"dpcalc: recipe/1\ncases:\n  sweep:\n    command: rdp\n    records: 50\n    lipschitz: 1\n    smoothness: 1\n"
    b"    step_size: 1\n    noise_std: 2\n    matrix: {index: [1, 10], order: ['2:8:2']}\n"
    b"    exclude: [{index: 1, order: 2}]\n    include: {index: 3, order: 4}\n    expect: {rdp: 0.1, tolerance: 1%}\n"
    b"  none:\n    skip: not yet\n    algorithm: stop\n",
    b"dpcalc: recipe/1\ndefaults:\n  command: shifted\n  delta: 1e-5\ncases:\n  file:\n    schedule: steps.csv\n"
    b"    assert: epsilon <= 100\n  from-json:\n    from: config.json#/run\n  from-toml: {from: config.toml#/run/0}\n"
    b"  refused:\n    steps: 5\n    shift: 1\n    noise_std: 1\n    expect: {error: infeasible}\n",
)
CONFIGURATIONS = {
    "config.yaml": (b"noise: &n\n  std: 2\nrun: {<<: *n, steps: !tag 3}\n", b"noise: {std: [1, 2]}\n"),
    "config.json": (b'{"run": {"steps": 20, "shift": 0.1, "contraction": 0.9, "noise_std": 1e0}}', b"[[[]]]"),
    "config.toml": (
        b'run = [{steps = 20, shift = 0.1, noise_std = 1.5}]\n[a."b/c~d"]\ne = 1979-05-27\n',
        b"a.b.c = 1\n",
    ),
    "steps.csv": (b"shift,noise_std\n0.1,1\n0.2,2\n",),
}
"""Files beside a recipe."""


def write(r: random.Random, folder: Path) -> Path:
    """Write a recipe and what it may refer to, each with mistakes; return its path."""
    for name, seeds in CONFIGURATIONS.items():
        (folder / name).write_bytes(mutated(r, seeds) if r.random() < 0.5 else seeds[0])
    path = folder / "budget.yaml"
    path.write_bytes(mutated(r, RECIPES))
    return path


def recipes(r: random.Random, folder: Path) -> None:
    """A recipe is read, within its limits, or everything that is wrong is said with its place."""
    path = str(write(r, folder))
    try:
        found = read(path)
    except Malformed as error:
        _refused(error)
        return
    assert 1 <= len(found.entries) <= MAX_CASES
    assert all(entry.name == name for name, entry in found.entries.items())


def _refused(error: Malformed) -> None:
    assert 1 <= len(error.errors) <= MAX_ERRORS
    for one in error.errors:
        assert one.place.file, repr(one)
        assert "\n" not in one.message, repr(one.message)
    for kind in KINDS:
        render(report("check", malformed(error)), kind)


@cache
def _report() -> Report:
    """Return the report of a check."""
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        for other, seeds in CONFIGURATIONS.items():
            Path(other).write_bytes(seeds[0])
        Path("budget.yaml").write_bytes(RECIPES[0])
        return checked(Selection([read("budget.yaml")]))


def baselines(r: random.Random, folder: Path) -> None:
    """A baseline is refused, or compared with in a table that fits a comment."""
    path = folder / "baseline.json"
    path.write_bytes(mutated(r, [render(_report(), "json").encode()]))
    found = refusable(lambda: load(str(path)))
    if found is not None:
        assert len(render(_report(), "markdown", baseline=found)) <= MAX_CHARACTERS + 100
