"""A model's weights in the units of its columns, and the privacy noise on them.

The noise of a mean of iterates is estimated from these iterates. All of them are accounted as public, so the estimate
costs no privacy. On a flat loss the noise of the steps adds up to a random walk, and a curved loss pulls it back. So a
weight is modelled as w_(t+1) = a w_t + s Z from 0, with the accounted s. The a in [0, 1] is chosen so that the second
half of such a walk has the same variance as that of the weights, on average over the weights.

On simulated and public tables with kappa from 4 to 2800, the estimate is 0.64 to 1.23 of the root mean square of the
actual noise, over weights and 12 seeds. It may be off by a factor of 2 for one model if only few weights are pulled
back weakly. It is too large where weights still move or oscillate: by a factor of 8 on one of 27 tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.training.data.ranges import middles_and_halves
from dpcalc.training.release.model import Model
from dpcalc.training.release.prediction import Predictor
from dpcalc.version import __version__

if TYPE_CHECKING:
    from dpcalc.training.run.plan import Plan

Array = NDArray[np.float64]
SCHEMA = "dpcalc.coefficients/1"
LARGEST = 16
"""Coefficients in the report of a training run: as many as a picture shows."""


class Coefficient(NamedTuple):
    """The weight of a column in a score.

    Attributes:
        column: its name.
        level: for a column of words, the word.
        of_class: for several classes, the class of the score.
        value: the change of the score of a row that is not scaled down, for one unit of the column or, for a level, if
            it is present.
        noise: the approximate standard deviation of the privacy noise on ``value``; None where it is not known.
        over_range: the change from the low to the high end of the column's range; None where it has none.
        weight: the change as the feature moves by 1: over half of its range, where it has one.
    """

    column: str
    level: str | None
    of_class: str | None
    value: float
    noise: float | None
    over_range: float | None
    weight: float

    @property
    def name(self) -> str:
        """The column, its level and the class."""
        level = "" if self.level is None else f" = {self.level}"
        return f"{self.column}{level}" + ("" if self.of_class is None else f" [{self.of_class}]")


class Coefficients(NamedTuple):
    """A model in the units of its columns.

    Attributes:
        predicting: the model.
        rows: the coefficients, sorted by how much they change a score within the range of their column.
        middle: the scores of a row with every number in the middle of its range and no level: one, or one for each
            class.
    """

    predicting: Predictor
    rows: tuple[Coefficient, ...]
    middle: tuple[float, ...]

    @property
    def largest(self) -> list[dict[str, Any]]:
        """The largest coefficients for a picture: name, weight, and the noise on the weight."""
        noise = self.predicting.model.noise_std
        unit = None if noise is None else noise * _unit_of(self.predicting)
        return [{"name": row.name, "weight": row.weight, "noise": unit} for row in self.rows[:LARGEST]]

    def to_json(self) -> dict[str, Any]:
        """Return the report, JSON types only."""
        model, classes = self.predicting.model, self.predicting.classes
        return {
            "schema": SCHEMA, "dpcalc": __version__, "command": "model", "loss": model.loss["loss"],
            "target": model.target, "classes": None if classes is None else list(classes),
            "several": self.predicting.several, "probable": self.predicting.probable, "columns": len(model.columns),
            "bound": model.bound, "centred_bound": model.centred_bound, "noise_std": model.noise_std,
            "temperature": model.temperature,
            "class_weights": None if model.class_weights is None else list(model.class_weights),
            "middle": list(self.middle), "coefficients": [{"name": row.name, **row._asdict()} for row in self.rows],
            "privacy": {name: model.privacy.get(name) for name in ("private", "epsilon", "delta", "bound")},
        }  # fmt: skip


def coefficients_of(predicting: Predictor) -> Coefficients:
    """Return the coefficients of a model; those of a regression are in the units of the target."""
    model = predicting.model
    unit = _unit_of(predicting)
    weights = np.asarray(model.weights).reshape(len(model.weights), -1)
    names: tuple[str | None, ...] = model.classes or (None,)
    noise = None if model.noise_std is None else model.noise_std * unit
    found = []
    for (column, level, half), several in zip(_features(model), weights, strict=True):
        for of_class, weight in zip(names, several.tolist(), strict=True):
            value = weight * unit
            ranged = None if half is None else 2.0 * value
            each = 1.0 if half is None else half
            deviation = None if noise is None else noise / each
            found.append((abs(value), Coefficient(column, level, of_class, value / each, deviation, ranged, value)))
    found.sort(key=lambda pair: -pair[0])
    return Coefficients(predicting, tuple(row for _, row in found), _middle(predicting))


def _unit_of(predicting: Predictor) -> float:
    """Return the change of the outcome, in its units, as a feature with weight 1 moves by 1."""
    return predicting.half / (1.0 if predicting.model.scale is None else predicting.model.scale)


def _features(model: Model) -> Iterator[tuple[str, str | None, float | None]]:
    """Yield column, level and half the width of the range of each feature."""
    mapped = model.low is not None and model.high is not None
    halves: Any = middles_and_halves(model.low, model.high)[1].tolist() if mapped else [None] * len(model.columns)
    for column, half in zip(model.columns, halves, strict=True):
        if column in model.levels:
            yield from ((column, level, None) for level in model.levels[column])
        else:
            yield column, None, half


def _middle(predicting: Predictor) -> tuple[float, ...]:
    model = predicting.model._replace(missing={})
    scores = model.scores(np.full((1, len(model.columns)), np.nan))
    return tuple(np.atleast_1d(predicting.targets(scores).reshape(-1)).tolist())


# --- the privacy noise on the weights ---------------------------------------------------------------------------------

_HALVINGS = 40  # bisections of [0, 1], which give a to 1e-12


def deviation(plan: Plan, released: Array) -> float | None:
    """Return an estimate of the standard deviation of the privacy noise on a weight, root mean square over weights.

    Args:
        plan: as executed.
        released: shape (k, d), every iterate that was accounted as public.

    Returns:
        None where the weights are not a mean of these iterates, or step sizes or noise vary.
    """
    if not plan.tail or not isinstance(plan.step_size, float) or not isinstance(plan.scale, float):
        return None
    step = plan.step_size * plan.scale * math.sqrt(plan.steps // len(released))
    tail = released[len(released) // 2 :]
    spread = float(np.mean(np.var(tail, axis=0))) / step**2
    if not math.isfinite(spread):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _of_walk(middle, len(released), len(tail))[1] < spread else (low, middle)
    return step * math.sqrt(_of_walk(high, len(released), len(tail))[0])


def _of_walk(a: float, steps: int, kept: int) -> tuple[float, float]:
    """Return the variance of the mean of the last ``kept`` of w_1, ..., w_steps, and their mean squared distance to it.

    Here w_0 = 0 and w_(t+1) = a w_t + Z_t, with independent Z_t of variance 1.
    """
    lag = np.arange(steps - kept + 1, steps + 1) - np.arange(1, steps + 1)[:, np.newaxis]
    effects = np.where(lag >= 0, a ** np.maximum(lag, 0), 0.0)
    means = effects.mean(axis=1)
    return float(means @ means), float(np.square(effects - means[:, np.newaxis]).sum()) / kept
