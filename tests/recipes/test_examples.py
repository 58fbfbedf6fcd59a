"""The shipped recipes: their gates hold, and would not whatever the numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcalc.recipes.run import checked, exit_code, read_all, select

FOLDER = Path(__file__).resolve().parents[2] / "recipes"
EXAMPLES = [path for path in sorted(FOLDER.glob("*.yaml")) if "\ndpcalc: recipe/" in path.read_text(encoding="utf-8")]

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the recipes are not part of this distribution")


def test_there_are_some() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_every_gate_holds(path: Path) -> None:
    cases = list(checked(select(read_all([str(path)]))))
    assert exit_code(cases) == 0
    assert any(case.assertions for case in cases)


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_a_gate_a_thousand_times_tighter_fails(path: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for other in FOLDER.iterdir():
        (tmp_path / other.name).write_text(other.read_text(encoding="utf-8"), encoding="utf-8")
    text = path.read_text(encoding="utf-8")
    tighter = text.replace("assert: epsilon <= ", "assert: epsilon <= 0.001 * ").replace("0.001 * 1\n", "0.001\n")
    assert tighter != text
    (tmp_path / path.name).write_text(tighter, encoding="utf-8")
    assert exit_code(checked(select(read_all([str(tmp_path / path.name)])))) == 1
