"""How good models of several classes and of numbers are: test accuracy and R2 by the default rule, on public tables.

Means and standard errors over random splits, a fifth of the records for testing; split k and its noise are drawn from
the seed k. To run it: pip install scikit-learn, then `python benchmarks/classes_and_numbers.py [SPLITS]`.

Ranges are round numbers of the quantities. A table of diamonds (ggplot2's, as CSV) may be named after the splits.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import dpcalc

if TYPE_CHECKING:
    import numpy as np

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
DELTA = 1e-5


class Table(NamedTuple):
    """Rows mapped to [-1, 1], a target, and what `dpcalc.train` is told of it."""

    name: str
    rows: np.ndarray
    target: np.ndarray
    told: dict[str, Any]
    metric: str


def mapped(rows: np.ndarray, low: Any, high: Any) -> np.ndarray:
    """Return rows whose intervals go to [-1, 1]."""
    import numpy as np

    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    return np.asarray((rows - 0.5 * (low + high)) / (0.5 * (high - low)))


def tables(diamonds: str | None) -> Iterator[Table]:
    """Yield the tables."""
    from sklearn import datasets

    x, y = datasets.load_wine(return_X_y=True)
    low = [11, 0.5, 1, 10, 70, 0.5, 0, 0.1, 0.4, 1, 0.4, 1, 250]
    high = [15, 6, 3.5, 30, 165, 4, 5.5, 0.7, 4, 13, 1.8, 4, 1700]
    yield Table("wine, 3 classes", mapped(x, low, high), y, {"labels": "0,1,2"}, "accuracy")
    x, y = datasets.load_iris(return_X_y=True)
    yield Table("iris, 3 classes", mapped(x, [4, 2, 1, 0], [8, 5, 7, 3]), y, {"labels": "0,1,2"}, "accuracy")
    x, y = datasets.load_digits(return_X_y=True)
    yield Table("digits, 10 classes", mapped(x, 0, 16), y, {"labels": ",".join("0123456789")}, "accuracy")
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    low, high = [18, 1, 15, 60, 90, 30, 20, 1, 3, 55], [80, 2, 45, 140, 310, 250, 100, 10, 6.5, 130]
    yield Table("diabetes", mapped(x, low, high), y, {"target_range": (0, 350)}, "r2")
    if diamonds is not None:
        yield Table("diamonds", *_diamonds(diamonds), {"target_range": (0, 20000)}, "r2")


def _diamonds(path: str) -> tuple[np.ndarray, np.ndarray]:
    import numpy as np

    with open(path) as stream:
        records = list(csv.DictReader(stream))
    names = ("carat", "depth", "table", "x", "y", "z")
    numbers = np.array([[float(record[name]) for name in names] for record in records])
    columns = [mapped(numbers, [0, 45, 45, 0, 0, 0], [5, 80, 95, 10, 10, 10])]
    for name in ("cut", "color", "clarity"):
        words = np.array([record[name] for record in records])
        columns.append((words[:, np.newaxis] == np.unique(words)).astype(float))
    return np.hstack(columns), np.array([float(record["price"]) for record in records])


def measured(table: Table, epsilon: float, seed: int, **more: Any) -> float:
    """Return the metric of one split on its test records."""
    data = table.rows.copy(), table.target
    case = dpcalc.train(
        data=data, epsilon=epsilon, delta=DELTA, test_fraction=0.2, seed=seed, **table.told, **more
    ).cases[0]
    assert case.training is not None
    return float(case.training["uncovered"]["metrics"]["test"][table.metric])


def main(splits: int = 10, diamonds: str | None = None) -> None:
    """Print a line for each table and solver."""
    import numpy as np

    for table in tables(diamonds):
        ways: list[dict[str, Any]] = [{}] if table.metric == "accuracy" else [{}, {"solver": "sums"}]
        for more in ways:
            cells = []
            for epsilon in EPSILONS:
                found = np.array([measured(table, epsilon, seed, **more) for seed in range(splits)])
                cells.append(f"{found.mean():.3f}+-{found.std(ddof=1) / math.sqrt(splits):.3f}")
            print(f"{table.name} {more or ''}: {' '.join(cells)}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10, sys.argv[2] if sys.argv[2:] else None)
