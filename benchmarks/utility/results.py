"""One line for every fit, in results.csv: a rerun of a set or a tool replaces its lines and no others."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from benchmarks.utility.contest import SETS, TITLES

FILE = Path(__file__).with_name("results.csv")


class Key(NamedTuple):
    """What a fit was asked. ``epsilon`` is 0 for what is not private."""

    set: str
    tool: str
    epsilon: float
    seed: int


Scores = dict[Key, float]


def read(file: Path = FILE) -> Scores:
    """Return every score by its key; nothing where there is no file."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as lines:
        return {
            Key(row["set"], row["tool"], float(row["epsilon"]), int(row["seed"])): float(row["score"])
            for row in csv.DictReader(lines)
        }


def write(scores: Scores, file: Path = FILE) -> None:
    """Write every score, in the order of `contest`; the file changes once all are written."""
    sets, tools = list(SETS), list(TITLES)
    order = sorted(scores, key=lambda key: (sets.index(key.set), tools.index(key.tool), key.epsilon, key.seed))
    part = file.with_suffix(".part")
    with part.open("w", encoding="utf-8", newline="") as lines:
        out = csv.writer(lines, lineterminator="\n")
        out.writerow([*Key._fields, "score"])
        out.writerows([key.set, key.tool, f"{key.epsilon:g}", key.seed, f"{scores[key]:.4f}"] for key in order)
    part.replace(file)
