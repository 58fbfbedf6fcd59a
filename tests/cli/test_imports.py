"""What each invocation imports: a query pays only for what it needs."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dpcalc.engine.commands import COMMANDS
from dpcalc.theorems.record import FAMILIES

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"numpy", "scipy", "rich", "yaml", "matplotlib", "jsonschema", "asyncio", "unittest"}
EXACT = {"decimal", "fractions"}
QUERY = "rdp -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6"

CLOSED = """
dpcalc: recipe/1
cases:
  pass:
    {command: rdp, records: 60, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 2, order: 8,
     matrix: {index: [1, 2, 60]}, accept: one-index, assert: rdp <= 10}
"""


def imported(*command: str) -> set[str]:
    """Return the top-level names of every module that ``python command`` imports."""
    return {name.partition(".")[0] for name in modules(*command)}


def modules(*command: str) -> set[str]:
    """Return the names of every module that ``python command`` imports."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = [row for row in done.stderr.splitlines() if row.startswith("import time:") and row.count("|") == 2]
    assert len(rows) > 10
    return {row.rsplit("|", 1)[1].strip() for row in rows}


BARE = imported("-c", "pass")
"""What the interpreter of this environment imports on its own, by .pth files for instance."""


@pytest.mark.parametrize(
    "line",
    ["--help", "--version", "rdp --help", "train --help", f"{QUERY} --json", f"{QUERY} --format csv", "bounds", "cite",
     "schema", "explain iteration.pnsgd"],
)  # fmt: skip
def test_no_heavy_module(line: str) -> None:
    found = imported("-m", "dpcalc", *shlex.split(line)) - BARE
    assert "click" in found
    assert not found & (HEAVY | EXACT)


@pytest.mark.parametrize("line", [f"{QUERY} --format plain", f"{QUERY} --algorithm stop", f"{QUERY} --format markdown"])
def test_text_needs_decimal_at_most(line: str) -> None:
    assert not (imported("-m", "dpcalc", *shlex.split(line)) - BARE) & (HEAVY | {"fractions"})


def test_the_package_alone_imports_nothing() -> None:
    assert not (imported("-c", "import dpcalc") - BARE) & (HEAVY | EXACT | {"click", "json", "dataclasses"})


def test_the_python_interface_needs_no_command_line() -> None:
    program = (
        "import dpcalc; dpcalc.rdp(records=60000, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6)"
    )
    assert not (imported("-c", program) - BARE) & (HEAVY | EXACT | {"click"})


def test_a_check_of_closed_forms_imports_nothing_that_trains(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(CLOSED, encoding="utf-8")
    found = modules("-m", "dpcalc", "check", str(recipe))
    assert "dpcalc.recipes.running.evaluate" in found
    assert not {name.partition(".")[0] for name in found} & (HEAVY - {"yaml"})
    assert "dpcalc.training.fit" not in found
    assert not found & {"subprocess", "concurrent.futures", "tempfile", "dpcalc.recipes.running.workers"}


def test_training_imports_no_special_functions() -> None:
    """They take longer to import than to train, and nothing but a capped softmax and a reference uses them."""
    found = modules("-m", "dpcalc", *shlex.split("train --data example:breast-cancer -e 1 -d 1e-5 --format json"))
    assert "dpcalc.training.run.capped" in found
    assert "numpy" in found
    assert not {name for name in found if name.startswith("scipy.")}


@pytest.mark.parametrize("line", [QUERY, f"{QUERY} --json", f"{QUERY} --format markdown"])
def test_what_certifies_is_imported_only_where_it_is_asked(line: str) -> None:
    found = modules("-m", "dpcalc", *shlex.split(line))
    assert "dpcalc.engine.answer" in found
    assert not [name for name in found if name.partition(".")[0] == "flint" or name.startswith("dpcalc.certify")]


def test_what_certifies_loads_no_arithmetic_of_what_it_certifies() -> None:
    program = (
        "import pkgutil, importlib, dpcalc.certify as room; "
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(room.__path__, 'dpcalc.certify.')]"
    )
    rooms = {".".join(name.split(".")[:2]) for name in modules("-c", program)}
    assert "dpcalc.certify" in rooms
    assert not rooms & {"dpcalc.theorems", "dpcalc.notions", "dpcalc.numerics"}


ROOMS = {
    "cli": "help help.option main output output.printing output.terminal query runs types",
    "engine": "advice advice.improvements advice.notes answer ask attack attack.guess commands evaluate large_delta "
    "question solving solving.search",
    "files": "output",
    "model": "algorithm draft loss_class noise numbers parameter phases quantities question run",
    "notions": "composed composition conversions curves gaussian guarantee notion randomised_response renyi trade_off",
    "numerics": "floats normal roots sums",
    "render": "asked layout notes numbers words words.positions",
    "theorems": "batch_layout conditions record setting",
}
ALONE = "checked errors inert notes plain_enum references report version"
STANDARD = {
    "_json", "_locale", "_struct", "atexit", "gc", "json", "json.decoder", "json.encoder", "json.scanner", "signal",
    "struct",
}  # fmt: skip


def test_a_query_imports_what_it_uses() -> None:
    """Modules named in the source; those of the families asked are imported by name."""
    program = f"from dpcalc.cli.main import main; main({shlex.split(f'{QUERY} --json')!r})"
    names = modules("-c", program) - modules("-c", "import click")
    ours = {"dpcalc", *(f"dpcalc.{name}" for name in ALONE.split()), *(f"dpcalc.{room}" for room in ROOMS)}
    ours |= {f"dpcalc.{room}.{name}" for room, listed in ROOMS.items() for name in listed.split()}
    assert {name for name in names if name.startswith("dpcalc")} == ours
    assert {name for name in names if not name.startswith("dpcalc")} <= STANDARD


def test_a_query_imports_the_families_asked_alone() -> None:
    program = (
        f"import sys; from dpcalc.cli.main import _run; _run({shlex.split(f'{QUERY} --json')!r}); "
        "print(*(name for name in sys.modules if name.startswith('dpcalc.theorems.')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    every = {path for paths in FAMILIES.values() for path in paths}
    asked = {path for family in COMMANDS["rdp"].families for path in FAMILIES[family]}
    assert {name.removeprefix("dpcalc.theorems.") for name in done.stderr.split()} & every == asked
