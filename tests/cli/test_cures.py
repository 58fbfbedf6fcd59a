"""Every cure that is printed works: typed to the letter it leads to an answer in at most two steps."""

from __future__ import annotations

import re
import shlex

import pytest

from dpcalc.cli.main import main
from dpcalc.model.parameter import PARAMETERS, spellings
from tests.cli.test_errors import INFEASIBLE, USAGE


def ended(capsys: pytest.CaptureFixture[str], words: list[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(words)
    return int(stop.value.code or 0), capsys.readouterr().err


_NAMES = {
    name: (parameter.flag, *parameter.aliases, *spellings(parameter.name))
    for parameter in PARAMETERS.values()
    for name in (parameter.flag, *parameter.aliases)
}
"""Every flag of a parameter -> all of its spellings."""


def without(words: list[str], flag: str) -> list[str]:
    """Return a command line without a parameter and its value."""
    kept, skipped = [], False
    for word in words:
        bare = re.sub(r"=.*", "", word)
        if bare in _NAMES.get(flag, (flag,)):
            skipped = "=" not in word
        elif skipped:
            skipped = False
        else:
            kept.append(word)
    return kept


def followed(words: list[str], error: str) -> list[str] | None:
    """Return the command line with what a hint says, to the letter; None where it says nothing to type."""
    hint = error.partition("hint: ")[2].split("; the nearest")[0].strip()
    if meant := re.search(r"for example (--\S[^;]*)", hint):
        typed = shlex.split(meant[1])
        for flag in typed[::2]:
            words = without(words, flag)
        return [*words, *typed]
    if meant := re.match(r"use (--[\w-]+) (?:<= |between \d+ and )?([\w.e+-]+)", hint):
        return [*without(words, meant[1]), meant[1], meant[2]]
    if meant := re.match(r"leave out (--[\w-]+)", hint):
        return without(words, meant[1])
    if meant := re.match(r"see `dpcalc (help [^`]*)`|`dpcalc (bounds)` lists", hint):
        return shlex.split(meant[1] or meant[2])
    if meant := re.match(r"see dpcalc (.*)--help$", hint):
        return [*shlex.split(meant[1]), "--help"]
    return None


REFUSED = [line for line, _ in (*USAGE, *INFEASIBLE)]


def test_what_a_refusal_says_to_type_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    typed = 0
    for line in REFUSED:
        words = shlex.split(line)
        code, error = ended(capsys, words)
        cured = followed(words, error)
        if cured is None:
            continue
        typed += 1
        code, again = ended(capsys, cured)
        if code and (further := followed(cured, again)):
            code, again = ended(capsys, further)
        assert code == 0, (line, error, cured, again)
    assert typed >= 50


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
    "train --synthetic logistic --dimension 2",
    "train --synthetic linear -n 20 --dimension 2 --algorithm noisy-gd -e 5 -d 1e-5",
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
