"""What every query of the README costs: whole processes, each timed beside ``python -c 'import numpy'``.

Run ``python benchmarks/queries.py``, or with ``--only WORD`` the queries that have a word in them. Each round starts
the two processes one after the other. The table shows the least processor time of a query over the rounds, and its
ratio to the least of the processes that import numpy. Beside those, there are two comparisons of shuffled runs,
and two generated recipes of 10000 cases each: the closed form of a pass, and the exact epsilon of its Gaussian bound.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import textwrap
from pathlib import Path

from prompt import ENVIRONMENT, cost

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
CASES = 10_000
MATRIX = {
    f"check, {CASES} closed forms": ("order: 8", "rdp"),
    f"check, {CASES} exact epsilons": ("delta: 1e-6", "epsilon"),
}
"""The recipes, by what one case of them asks, and what is gated."""
MORE = (
    "compare --algorithm shuffled -n 60000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6",
    "compare --algorithm shuffled-epochs -n 60000 --batch-size 256 --epochs 20 -L 1 --smoothness 1 --eta 0.1 "
    "--sigma 0.05 -d 1e-6",
)
"""Queries that it does not show."""


def recipe(asked: str, gated: str) -> str:
    """Return a recipe with as many cases as ``CASES``, each with an index of its own."""
    return textwrap.dedent(f"""\
        dpcalc: recipe/1
        cases:
          pass:
            command: rdp
            accept: one-index
            records: 60000
            lipschitz: 1
            smoothness: 1
            step_size: 0.1
            noise_std: 2
            {asked}
            matrix: {{index: "1:{CASES}:1"}}
            assert: {gated} <= 10
    """)


def blocks(language: str) -> list[str]:
    """Return the blocks of one language in the README."""
    text = README.read_text(encoding="utf-8")
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(body) for name, body in found if name == language]


def queries(folder: Path) -> dict[str, str]:
    """Return the lines of shell to time, by name, with the files that they read written into ``folder``."""
    for block in blocks("yaml"):
        (folder / block.partition("\n")[0].removeprefix("# ")).write_text(block, encoding="utf-8")
    shown = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    lines = {line.removeprefix("dpcalc "): line for line in (*shown, *(f"dpcalc {query}" for query in MORE))}
    for number, (name, (asked, gated)) in enumerate(MATRIX.items()):
        (folder / f"{number}.yaml").write_text(recipe(asked, gated), encoding="utf-8")
        lines[name] = f"dpcalc check {number}.yaml"
    return lines


def least(line: str, rounds: int) -> tuple[float, float]:
    """Return the least processor seconds of a line of shell, and of a process that imports numpy."""
    command, reference = ["bash", "-c", line], [sys.executable, "-c", "import numpy"]
    cost(command)  # the first run writes the compiled modules
    pairs = [(cost(command)[0], cost(reference)[0]) for _ in range(rounds)]
    return min(query for query, _ in pairs), min(numpy for _, numpy in pairs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="a word of the queries to time")
    given = parser.parse_args()
    ENVIRONMENT["PATH"] = os.path.dirname(sys.executable) + os.pathsep + ENVIRONMENT.get("PATH", "")
    with tempfile.TemporaryDirectory() as name:
        lines = {shown: line for shown, line in queries(Path(name)).items() if given.only in shown}
        os.chdir(name)
        found = {shown: least(line, given.rounds) for shown, line in lines.items()}
        os.chdir(ROOT)
    numpy = min(reference for _, reference in found.values())
    print(f"seconds  ratio  query   (python -c 'import numpy' = {numpy:.2f} s = 1)")
    for shown, (seconds, _) in sorted(found.items(), key=lambda item: -item[1][0]):
        print(f"{seconds:7.2f} {seconds / numpy:6.2f}  {shown}")


if __name__ == "__main__":
    main()
