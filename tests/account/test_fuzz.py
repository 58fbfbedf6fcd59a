"""Random run files end in a described run or in an error of dpcalc, and a run that is described spends what it says."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from dpcalc.account.facts import FACTS
from dpcalc.account.way import _described, _typed, read_plan
from dpcalc.errors import DpcalcError

from .test_runs import EVENT, KERAS, SNIPPET, TRUNCATED

CASES = int(os.environ.get("DPCALC_TEST_CASES", "600"))
WORDS = (
    *(word for fact in FACTS.values() for word in (fact.name, *fact.words)),
    "val_split", "n_critic", "sweep", "noise_decay_rate", "oversample", "noise_cohort_size", "clip_per_layer",
    "command",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    1, 2, 200, 570, 60000, 0.01, 0.5, 1.0, 1.1, -1, 0, 1e-5, 1e308, True, False, None, "", "auto", "poisson", "shuffle",
    "full", "1/3", "yes", "UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler", "BatchSampler",
    "constant", "user", "raw", "skip", "AdaClipDPOptimizer", "add-remove", "nan", "9" * 400, [], [1], {}, [[1, 0.1, 2]],
    {"name": "none"}, {"value": 2, "type": "int"}, {"0": 4}, "train.py --epochs 3 --dp",
)  # fmt: skip
FLAGS = {"sampling": ("poisson", "shuffle", "fixed", "full", "balls-in-bins"), "delta": ("1e-5",), "devices": ("2",),
         "drop_last": ("true", "false"), "records": ("1000",), "adjacency": ("zero-out", "replace-one")}  # fmt: skip


def mutated(chance: random.Random, value: Any, depth: int = 0) -> Any:
    """Return a tree with parts replaced, left out or added."""
    if chance.random() < 0.02:
        return chance.choice(VALUES)
    if isinstance(value, dict):
        kept = {key: mutated(chance, part, depth + 1) for key, part in value.items() if chance.random() > 0.03}
        for _ in range(chance.choice((0, 0, 0, 0, 1, 3))):
            kept[chance.choice(WORDS)] = chance.choice(VALUES)
        return kept
    if isinstance(value, list):
        return [mutated(chance, part, depth + 1) for part in value] * chance.choice((1, 1, 1, 2))
    return value


@pytest.mark.parametrize("seed", range(4))
def test_random_files_end_in_a_run_or_an_error(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    described = 0
    for _ in range(CASES // 4):
        seedling: Any = chance.choice((SNIPPET, EVENT, TRUNCATED, KERAS, {}))
        path = tmp_path / chance.choice(("run.json", "run.yaml", "run.txt"))
        text = json.dumps(mutated(chance, seedling))
        if chance.random() < 0.1:
            text = text[: chance.randrange(len(text) + 1)]
        path.write_text(text, encoding="utf-8")
        flags = {name: _typed(name, chance.choice(words)) for name, words in FLAGS.items() if chance.random() < 0.6}
        try:
            run = _described(read_plan(str(path)), flags, None)
        except DpcalcError:
            continue
        described += 1
        assert run.steps >= 1
        assert all(phase.noise_multiplier > 0.0 and 0.0 < (phase.rate or 1.0) <= 1.0 for phase in run.phases)
    assert described > CASES // 400
