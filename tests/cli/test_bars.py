"""How far training is, on a terminal."""

import io
import sys

import pytest

from dpcalc.cli.commands import train
from dpcalc.cli.commands.train import _Bars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal_of(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    shown = Terminal()  # within the test, as pytest has a stream of its own for every phase of one
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(train, "_PAUSE", 0.0)
    return shown


def test_every_phase_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    bars = _Bars()
    for phase in ("records read", "steps"):
        progress = bars(phase)
        assert progress is not None
        for done in (1, 2, 4):
            progress(done, 4)
    bars.close()
    lines = terminal.getvalue().replace("\x1b[?25l", "").replace("\x1b[?25h", "").splitlines()
    last = [line.rsplit("\r", 1)[-1] for line in lines if line.strip()]
    assert any("records read" in line and "4/4" in line for line in lines)
    assert any("steps" in line and "4/4" in line for line in lines)
    assert all("records read" not in line or "steps" not in line for line in last)


def test_a_phase_that_is_over_at_once_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    progress = _Bars()("steps")
    assert progress is not None
    progress(7, 7)
    assert not terminal.getvalue()


def test_looks_are_not_more_frequent_than_eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_of(monkeypatch)
    monkeypatch.setattr(train, "_PAUSE", 1e9)
    bars = _Bars()
    progress = bars("steps")
    assert progress is not None
    for done in range(1, 1001):
        progress(done, 1000)
    bars.close()
    assert terminal.getvalue().count("/1000") <= 4
    assert "1000/1000" in terminal.getvalue()


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert _Bars()("steps") is None
