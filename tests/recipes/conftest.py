"""Writing recipes to try."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpcalc.recipes.reading.read import read
from dpcalc.recipes.reading.recipe import Malformed, Recipe
from dpcalc.recipes.running.checking import Checking
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.render.machine import case_line

HEAD = """\
dpcalc: recipe/1
defaults: {records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
cases:
"""
"""Three lines, so that the first case stands in line 4."""

Write = Callable[..., str]


def lines_of(paths: Sequence[str], **how: Any) -> list[str]:
    """Return the lines of JSON of the cases of some recipes, whoever computes them."""
    with Checking(Selection(read_all(paths)), **how) as checking:
        return [case_line("check", case) for case in checking.cases()]


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
