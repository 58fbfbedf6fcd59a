"""A slow reference: the algorithms written down once more, and a generator that tells what it drew."""

from typing import Any

import numpy as np

from dpcalc.model.loss import Loss
from dpcalc.model.run import Run, describe
from dpcalc.training.run.problem import Problem

Batches = list[tuple[np.ndarray, int]]


class Recorder:
    """A generator that remembers what it gave: noise in the order drawn, and all else by the name of the call."""

    def __init__(self, seed: int) -> None:
        self.inner = np.random.Generator(np.random.PCG64(seed))
        self.noise: list[np.ndarray] = []
        self.calls: list[tuple[str, Any]] = []

    def standard_normal(self, out: np.ndarray) -> None:
        self.inner.standard_normal(out=out)
        self.noise.append(out.copy())

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            answer = getattr(self.inner, name)(*given, **named)
            self.calls.append((name, np.array(answer)))
            return answer

        return call

    def drawn(self, name: str) -> list[np.ndarray]:
        return [answer for called, answer in self.calls if called == name]


def loop(
    loss: Loss, x: np.ndarray, y: np.ndarray, batches: Batches, eta: Any, scale: Any, noise: np.ndarray, radius: float,
    w: np.ndarray,
) -> list[np.ndarray]:  # fmt: skip
    """Return all iterates, the start first."""
    iterates = [w]
    eta, scale = np.broadcast_to(eta, len(batches)), np.broadcast_to(scale, len(batches))
    for t, (rows, divisor) in enumerate(batches):
        gradient = np.zeros_like(w)
        for i in rows:
            gradient = gradient + loss.gradient(w, x[i : i + 1], y[i : i + 1])[0]
        w = w - eta[t] * (gradient / divisor + scale[t] * noise[t])
        size = np.linalg.norm(w)
        w = w * (radius / size) if size > radius else w
        iterates.append(w)
    return iterates


def cut(order: Any, size: int, last: str = "own") -> Batches:
    """Return the batches of one pass in this order."""
    order = np.asarray(order)
    left = len(order) % size
    ends = np.arange(left if last == "front" and left else size, len(order) + size, size).clip(max=len(order))
    if last == "balanced":
        least, more = divmod(len(order), len(ends))
        ends = np.cumsum([least] * (len(ends) - more) + [least + 1] * more)
    batches = np.split(order, ends[:-1])
    divisors = [size if last == "nominal" else len(rows) for rows in batches]
    kept = len(batches) - (last == "drop" and len(batches[-1]) < size and len(batches) > 1)
    return list(zip(batches, divisors, strict=True))[:kept]


def floyd(drawn: list[np.ndarray], run: int, records: int, size: int) -> list[np.ndarray]:
    """Return the batches of one column of the draws, by Floyd's algorithm, as in Bentley and Floyd (1987)."""
    subsets = []
    for first in range(0, len(drawn), size):
        chosen: list[int] = []
        for k, j in enumerate(range(records - size, records)):
            t = int(drawn[first + k][run])
            assert 0 <= t <= j
            chosen.append(j if t in chosen else t)
        assert len(set(chosen)) == size
        subsets.append(np.array(chosen))
    return subsets


def data(rows: int, columns: int, seed: int, *, signed: bool, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return features of norm below 1 and labels: +-1, or between -scale and scale."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    x /= np.linalg.norm(x, axis=1)[:, np.newaxis] * (1.0 + rng.random((rows, 1)))
    y = rng.choice([-1.0, 1.0], size=rows) if signed else rng.uniform(-scale, scale, size=rows)
    return np.ascontiguousarray(x), y


def run_of(algorithm: str, loss: Loss, records: int, **given: Any) -> Run:
    """Describe a run by the constants of the loss."""
    values: dict[str, Any] = {
        "records": records,
        "lipschitz": loss.lipschitz,
        "strong_convexity": loss.strong_convexity,
    }
    if loss.smoothness is not None:
        values["smoothness"] = loss.smoothness
    if loss.radius is not None:
        values["radius"] = loss.radius
    if loss.regularisation:
        values["regularisation"] = loss.regularisation
    return describe(algorithm, {**values, **given})


def problem_of(loss: Loss, rows: int, columns: int, seed: int = 0) -> Problem:
    """Return data that fit a loss with feature_bound 1 and label_bound 1."""
    x, y = data(rows, columns, seed, signed=loss.name in ("hinge", "logistic"))
    return Problem(x, y, loss)
