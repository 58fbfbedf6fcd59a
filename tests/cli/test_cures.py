"""Every cure that is printed works: typed to the letter it leads to an answer in at most two steps."""

from __future__ import annotations

import re
import shlex

import pytest

from dpcalc.cli.main import main


def ended(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0), capsys.readouterr().err


UNFINISHED = [
    "rdp", "rdp -n 100", "rdp -e 1", "rdp -e 1 -d 1e-6", "rdp --algorithm skip", "rdp --algorithm local -n 50 -d 1e-5",
    "rdp -n 100 -L 1 --eta 7 --sigma 2 -d 1e-6", "rdp -n 100 -L 1 --smoothness 30 --sigma 2 -d 1e-6",
    "rdp --loss huber -n 10 -e 1 -d 1e-6", "rdp --noise-multiplier 1 -d 1e-6", "rdp -e 1 --solve index",
    "hockey-stick", "hockey-stick --sigma 2 -e 1", "hockey-stick --laplace-scale 2 -d 1e-5", "shuffle",
    "shuffle -n 100 -d 1e-6", "shuffle --c1 3 -e 1", "multi-epoch", "multi-epoch -n 1000 --sigma 1",
    "multi-epoch --batch-size 70000 -d 1e-5 --sigma 1 --smoothness 30", "multi-epoch --algorithm noisy-gd",
    "multi-epoch --algorithm noisy-sgd -n 100 -e 1 -d 1e-5", "multi-epoch --algorithm repeated -d 1e-5", "online",
    "multi-epoch -e 1 -d 1e-5 --solve epochs", "online -e 1", "dp-sgd", "dp-sgd -n 1000",
    "dp-sgd --algorithm dp-sgd-output -d 1e-5", "compare",
    "compare --algorithm cyclic", "shifted", "shifted -d 1e-5 --sigma 1", "shifted --steps 4 --sigma 2 -d 1e-4",
    "utility", "utility -e 1 -d 1e-5", "utility -e 1 -d 1e-5 --loss logistic", "utility -n 1000 -L 1",
    "train --synthetic logistic --dimension 2", "train --synthetic linear -n 20 --dimension 2 -e 5 -d 1e-5",
]  # fmt: skip
"""What people type first."""


def examples(error: str) -> list[list[str]]:
    """Return the ways to go on that an error shows: what to add, or to add in place of the noise."""
    found = re.search(r"for example ([^;\n]*)(?:; or, in place of the noise, ([^;\n]*))?", error)
    assert found, error
    first = shlex.split(found[1])
    if not found[2]:
        return [first]
    rest = re.sub(r"--noise-(std|multiplier) \S+|--delta \S+", "", found[1])
    return [first, shlex.split(f"{rest} {found[2]}")]


@pytest.mark.parametrize("line", UNFINISHED)
def test_examples_lead_to_an_answer(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.split()
    code, error = ended(capsys, words)
    assert code == 2, error
    for more in examples(error):
        code, again = ended(capsys, [*words, *more])
        if code:
            [further, *_] = examples(again)
            code, again = ended(capsys, [*words, *more, *further])
        assert code == 0, (more, again)
