"""The questions of the quick tier, in `questions.txt`: every command, algorithm and theorem at least once."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import dpcalc
from dpcalc.cards.card import card_text
from dpcalc.checked import Check, Shard, Status
from dpcalc.recipes.running.shards import sealed
from dpcalc.report import Case, Report

_PASSED = Check("run", "compare", "gate.yaml", 3, 3, Status.PASSED)
_ONLY_SHARD = sealed(
    Report("check", (Case("pnsgd", {}, (), check=_PASSED),)),
    Shard(1, 1, 1, (0,), (), "", json.dumps({"certify": False, "policy": ""})),
)

FILES = {
    "release.json": card_text(dpcalc.convert(mu=1, delta=1e-5).card()),
    "signed.csv": "1,0,0,0\n-0.5,1,0,0\n0,0.25,1,0\n0.125,0,-0.5,2\n",
    "steps.csv": "step_size,noise_std\n0.5,1.5\n0.25,2\n0.5,1\n0.5,1.5\n",
    "stops.csv": "step_size,noise_std,probability\n0.5,1.5,0.125\n0.25,2,0.25\n0.5,1,0.125\n0.5,1.5,0.5\n",
    "spent.csv": (
        "step_size,noise_std,shift,contraction,spend\n"
        "0.5,1.5,0,1,0\n0.25,2,0.75,1,0.25\n0.5,1,0,0.75,0.25\n0.5,1.5,0.25,1,0.375\n"
    ),
    "clean.csv": "contraction,step_size,noise_std\n0.9,0.1,1\n0.8,0.2,1\n",
    "train.yaml": "{dataset_size: 100, batch_size: 10, epochs: 2, noise_multiplier: 2, max_grad_norm: 1, delta: 1e-5}",
    "run.json": (
        '{"dataset_size": 60000, "batch_size": 256, "drop_last": true, "epochs": 10, "noise_multiplier": 1.1,\n'
        '"poisson_sampling": true}\n'
    ),
    "model.json": (
        '{"schema": "dpcalc.model/1", "dpcalc": "0.1.0", "weights": [1.0], "intercept": 0.0, "columns": ["a"],\n'
        '"target": "y", "positive": "yes", "negative": "no", "low": null, "high": null, "target_range": null,\n'
        '"bound": 1.0, "norm": 2, "loss": {"loss": "logistic"}, "privacy": {}}\n'
    ),
    "rows.csv": "y,a\nyes,0.5\nno,-0.5\nno,0.25\n",
    "gate.yaml": (
        "dpcalc: recipe/1\n"
        "cases:\n"
        "  run:\n"
        "    {command: compare, algorithm: shuffled, records: 100, lipschitz: 1, smoothness: 1, step_size: 0.1,\n"
        "     noise_std: 2, delta: 1e-6, assert: epsilon <= 6}\n"
    ),
    "shard.json": json.dumps(_ONLY_SHARD.to_dict()),
}
"""The files that the questions read."""


class Question(NamedTuple):
    """A question about a run: the algorithm that is answered for, the command line, and the theorems that answer."""

    algorithm: str
    line: str
    theorems: str


def _read() -> Iterator[Question]:
    """Return the questions of `questions.txt`: an algorithm and a command line, then indented what answers."""
    text = Path(__file__).with_name("questions.txt").read_text(encoding="utf-8")
    for algorithm, line, answer in re.findall(r"^([a-z-]+): (.+)\n((?: {4}.+\n)+)", text, re.MULTILINE):
        yield Question(algorithm, line, " ".join(answer.split()))


_ALL = tuple(_read())
QUESTIONS = tuple(question for question in _ALL if question.algorithm != "-")
OTHERS = {question.line: question.theorems for question in _ALL if question.algorithm == "-"}
"""Command lines that print no table of theorems, and a word of their answer."""
