"""Answers in a real terminal: they fit it, whatever its width and colours, and say what matters first."""

import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

pty = pytest.importorskip("pty", reason="there are no terminals here")

ROOT = Path(__file__).resolve().parents[2]
CODES = re.compile(r"\x1b\[[0-9;]*m")
RUN = "-n 60000 -L 1 --smoothness 1 --eta 0.1"
CYCLIC = f"compare --algorithm cyclic {RUN} --batch-size 60 --epochs 50 --sigma 0.1 -d 1e-6"
LOGISTIC = "--loss logistic --feature-bound 1 -n 100000 --dimension 20 -R 1"
LINES = [
    f"rdp {RUN} --sigma 2 -d 1e-6",
    CYCLIC,
    f"compare --algorithm pnsgd,shuffled,noisy-sgd {RUN} --sigma 2 -d 1e-6",
    f"utility {LOGISTIC} -e 1 -d 1e-6",
    "dp-sgd -n 50000 --batch-size 500 --epochs 20 --noise-multiplier 1.1 --sampling poisson --adjacency add-remove "
    "-d 1e-5",
    f"rdp {RUN} -i 30000 -e 0.5 -d 1e-6",
    "multi-epoch -n 1000 -L 1 --smoothness 1 --sigma 2 --epochs 50 -d 1e-6",
    "shifted --steps 1000 --shift 0.0002 --contraction 0.99 --eta 0.1 --sigma 0.02 --delta 1e-6",
    "online -n 1e6 --window 1000 -L 10 --smoothness 1 --eta 0.01 -D 1 --c1 100 --c2 100 --decay-exponent 1.5 -e 1",
    "ledger --add 'epsilon=0.1 times=100' --add 'mu=0.5' -d 1e-6",
]  # fmt: skip


def on_a_terminal(line: str, columns: int, **environment: str) -> str:
    """Return what a command prints on a terminal of so many columns."""
    import fcntl
    import struct
    import termios

    process, terminal = pty.fork()
    if process == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "FORCE_COLOR")}
        settings = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment}
        os.execve(sys.executable, [sys.executable, "-m", "dpcalc", *shlex.split(line)], settings)
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the program ended
            break
        if not part:
            break
        parts.append(part)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0, b"".join(parts)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.mark.few(4)
@pytest.mark.parametrize("line", LINES)
def test_an_answer_fits_the_smallest_screen(line: str) -> None:
    shown = CODES.sub("", on_a_terminal(line, 80)).splitlines()
    assert len(shown) <= (10 if line.startswith("compare") else 8), "\n".join(shown)
    assert max(map(len, shown)) <= 80
    assert re.match(r"(best of 3: noisy-sgd: )?(epsilon|delta|noise_std|excess risk) [<>]= ", shown[0])
    assert "-v adds " in " ".join(shown[-2:])


@pytest.mark.few(1)
@pytest.mark.parametrize("columns", [100, 160])
def test_a_wide_screen_has_the_same_words_in_fewer_lines(columns: int) -> None:
    narrow, wide = (CODES.sub("", on_a_terminal(CYCLIC, width)) for width in (80, columns))
    assert wide.split() == narrow.split()
    assert len(wide.splitlines()) < len(narrow.splitlines())
    assert max(map(len, wide.splitlines())) <= columns


def test_plain_text_has_the_words_of_the_terminal(ask: Any) -> None:
    for more in ("", " -v"):
        assert ask(CYCLIC + more).split() == CODES.sub("", on_a_terminal(CYCLIC + more, 300)).split()


def test_all_of_it_is_shown_on_demand(ask: Any, ask_json: Any) -> None:
    [case] = ask_json(CYCLIC)
    brief, screen, text = (ask(CYCLIC + more) for more in ("", " -v", " -vv"))
    for row in (*case["results"], *case["not_applicable"]):
        assert row["bound"] in text
    assert not all(row["bound"] in brief for row in case["results"])
    for assumed in {words for result in case["results"] for words in result["assumes"]}:
        assert assumed in text
    for assumed in case["results"][0]["assumes"]:
        assert assumed in " ".join(screen.split())


@pytest.mark.parametrize("columns", [80, 100])
def test_no_row_of_the_full_answer_breaks_a_word(columns: int, ask_json: Any) -> None:
    line = f"utility {LOGISTIC} -e 1 -d 1e-6"
    shown = CODES.sub("", on_a_terminal(f"{line} -vv", columns, PAGER="cat"))
    assert max(map(len, shown.splitlines())) <= columns
    [case] = ask_json(line)
    for row in (*case["results"], *case["not_applicable"]):
        assert row["bound"] in shown.split()


def test_colours_are_those_that_dark_and_light_screens_show() -> None:
    """No foreground is black, white or grey by number, and no background is set."""
    shown = on_a_terminal(CYCLIC, 80)
    codes = {code for group in re.findall(r"\x1b\[([0-9;]*)m", shown) for code in group.split(";")}
    assert codes <= {"0", "1", "2", "31", "32"}
    assert "32" in codes


def test_without_colour_or_unicode() -> None:
    assert "\x1b" not in on_a_terminal(CYCLIC, 80, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(CYCLIC, 80, TERM="dumb")
    for more in ("", " -v"):
        settings = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
        assert on_a_terminal(f"utility {LOGISTIC} -e 1 -d 1e-6{more}", 80, **settings).isascii()


def test_of_several_algorithms_the_best_comes_first(ask: Any) -> None:
    rows = re.findall(r"^(\*| ) +(pnsgd|shuffled|noisy-sgd) +([0-9.]+)", ask(LINES[2]), re.MULTILINE)
    assert [mark for mark, _, _ in rows] == ["*", " ", " "]
    assert [float(value) for _, _, value in rows] == sorted(float(value) for _, _, value in rows)
    run = "multi-epoch --algorithm cyclic,noisy-sgd -n 1000 --batch-size 10 -L 1 --smoothness 1 --eta 0.1 --sigma 1"
    solved = ask(f"{run} -e 1 -d 1e-6 --solve epochs")
    most, *others = [int(row) for row in re.findall(r"^(?:\*| ) +[a-z-]+ +(\d+)", solved, re.MULTILINE)]
    assert others
    assert all(most >= other for other in others)
    assert re.match(rf"best of 2: [a-z-]+: epochs <= {most} is enough", solved)


def test_a_symbol_has_one_meaning_on_a_screen(ask: Any) -> None:
    for line in (f"utility {LOGISTIC} -e 1 -d 1e-6", CYCLIC):
        symbols = re.findall(r"(?:^|, |: +|  )[a-z_]+ (\S+) = ", ask(f"{line} -v"))
        assert len(symbols) == len(set(symbols)) > 2
