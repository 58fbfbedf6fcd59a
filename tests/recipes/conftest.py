"""Writing recipes to try."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Malformed, Recipe

HEAD = """\
dpcalc: recipe/1
defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
cases:
"""
"""Three lines, so that the first case stands in line 4."""

Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Return a function that writes a file of the current folder, cases under `HEAD` by default."""
    monkeypatch.chdir(tmp_path)

    def written(text: str, name: str = "r.yaml", head: str = HEAD) -> str:
        Path(name).write_text(head + textwrap.indent(textwrap.dedent(text), "  " if head else ""), encoding="utf-8")
        return name

    return written


@pytest.fixture
def good(write: Write) -> Callable[..., Recipe]:
    return lambda *text, **more: read(write(*text, **more))


@pytest.fixture
def unread(good: Callable[..., Recipe]) -> Callable[..., str]:
    """Return a function that gives why the case ``a`` has nothing to evaluate: message and hint, in a line."""

    def why(*text: str, **more: str) -> str:
        error = good(*text, **more).entries["a"].unread
        assert error is not None
        return f"{error.message} | {error.hint}"

    return why


@pytest.fixture
def bad(write: Write) -> Callable[..., str]:
    """Return a function that gives what is wrong with a recipe: message and hint of the first error, in a line."""

    def refused(*text: str, **more: str) -> str:
        with pytest.raises(Malformed) as caught:
            read(write(*text, **more))
        return f"{caught.value.message} | {caught.value.hint}"

    return refused
