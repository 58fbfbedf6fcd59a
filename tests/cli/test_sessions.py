"""Recorded sessions are printed as recorded, and a refusal is one line that says what is wrong, with a hint."""

import difflib
from pathlib import Path

import pytest

from tests.cli.sessions import FILES, read, replayed


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_session_is_printed_as_recorded(path: Path) -> None:
    recorded = path.read_text(encoding="utf-8").splitlines()
    changed = difflib.unified_diff(recorded, replayed(path).splitlines(), "recorded", "printed", lineterm="")
    assert not (diff := "\n".join(changed)), f"{diff}\nwhere this is meant: python -m tests.cli.sessions"


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_refusal_is_one_line_and_a_hint(path: Path) -> None:
    for entry in read(path):
        if entry.code in (2, 3) and entry.line:
            error, *hints = entry.printed.splitlines()
            assert error.startswith("error: "), entry.line
            assert len(hints) <= 1, entry.line
            assert all(hint.startswith("  hint: ") for hint in hints), entry.line
