"""Accuracy on what comes next, after one pass over a stream of records: python -m benchmarks.streams

The direction that tells two classes apart turns by a right angle, or rests. Batches are taken in order with correlated
noise, at random (DP-SGD), or whole. The table of docs/training.md has means over eight streams.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np  # noqa: TID253

import dpcalc
from dpcalc.training.release.model import load

RECORDS, COLUMNS, NEXT, STREAMS = 20_000, 10, 5_000, 8
BATCHES = {"batch_size": 100, "epochs": 1}
WAYS: dict[str, dict[str, Any]] = {
    "full batches": {},
    "random batches": BATCHES,
    "in order, mean of the later iterates": {**BATCHES, "algorithm": "correlated"},
    "in order, last iterate": {**BATCHES, "algorithm": "correlated", "average": "none"},
}


def stream(angle: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of norm 1 in their order, their labels, and the last direction."""
    generator = np.random.default_rng(seed)
    rows = generator.standard_normal((RECORDS + NEXT, COLUMNS))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    turned = angle * np.minimum(np.arange(len(rows)) / RECORDS, 1.0)
    scores = 3.0 * COLUMNS**0.5 * (np.cos(turned) * rows[:, 0] + np.sin(turned) * rows[:, 1])
    labels = (generator.random(len(rows)) < 1.0 / (1.0 + np.exp(-scores))).astype(float)
    return rows, labels, np.cos(angle) * rows[:, 0] + np.sin(angle) * rows[:, 1]


def main() -> None:
    """Print mean accuracies and their standard errors."""
    for angle in (np.pi / 2.0, 0.0):
        best = np.mean([(s[RECORDS:] > 0) == y[RECORDS:] for _, y, s in (stream(angle, k) for k in range(10, 18))])
        print(f"turning by {angle:.2f}; the last direction itself: {best:.3f}")
        for epsilon in (1.0, 4.0):
            for name, way in WAYS.items():
                found = [accuracy(angle, seed, epsilon, way) for seed in range(10, 10 + STREAMS)]
                error = np.std(found) / STREAMS**0.5
                print(f"  epsilon {epsilon:g}, {name}: {np.mean(found):.3f} +- {error:.3f}", flush=True)


def accuracy(angle: float, seed: int, epsilon: float, way: dict[str, Any]) -> float:
    """Return the share of the next records that a model of the others gets right."""
    rows, labels, _ = stream(angle, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.json")
        data = rows[:RECORDS], labels[:RECORDS]
        dpcalc.train(data=data, loss="logistic", epsilon=epsilon, delta=1e-6, output=path, card=False, **way)
        scores = np.asarray(load(path).scores(rows[RECORDS:])).ravel()
    return float(np.mean((scores > 0) == (labels[RECORDS:] > 0)))


if __name__ == "__main__":
    main()
