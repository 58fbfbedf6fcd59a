"""The shape of the package: which module may import which, what is public, what is documented."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dpcalc
from dpcalc.model.parameter import PARAMETERS
from dpcalc.model.run import ALGORITHMS
from dpcalc.references import SHORT, entries
from dpcalc.render.several import describe
from dpcalc.theorems.record import GIVES, KINDS, all_bounds

ROOT = Path(__file__).resolve().parents[1]


def test_imports_flow_one_way() -> None:
    if not (ROOT / "pyproject.toml").exists():
        pytest.skip("the contract is not part of this distribution")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    program = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_error_is_a_dpcalc_error_with_an_exit_code() -> None:
    expected = {"GateFailed": 1, "SpecError": 2, "NotApplicable": 3, "Infeasible": 3, "NotConverged": 3}
    for name, code in expected.items():
        error = getattr(dpcalc, name)
        assert issubclass(error, dpcalc.DpcalcError)
        assert error.exit_code == code


@pytest.mark.parametrize("id", sorted(all_bounds()))
def test_bounds_are_described(id: str) -> None:
    bound = all_bounds()[id]
    assert bound.notion in GIVES.values()
    assert bound.kind in KINDS
    assert set(bound.algorithms) <= set(ALGORITHMS)
    assert all((bound.title, bound.statement, bound.formula, bound.locator, bound.assumes))
    assert bound.reference in SHORT
    assert bound.reference in entries()
    unknown = set(bound.parameters) - set(PARAMETERS) - {"sensitivity", "scale", "schedule", "epochs"}
    assert not unknown
    assert bound.guarantee or bound.erratum or bound.caution
    text = describe(bound)
    assert id in text
    assert ("\nerratum: " in text, "\nnote: " in text) == (bool(bound.erratum), bool(bound.caution))
    assert not (bound.guarantee and bound.caution)
    assert all(name in text for name in bound.parameters)


def test_every_bound_is_in_the_method_document() -> None:
    document = ROOT / "docs" / "method.md"
    if not document.exists():
        pytest.skip("docs/method.md is not part of this distribution")
    text = document.read_text(encoding="utf-8")
    assert not [id for id in all_bounds() if f"`{id}`" not in text]
