"""What a model's weights say in the units of its columns, and how far the privacy noise moves them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dpcalc.inert import printable, spreadsheet_text
from dpcalc.render.blocks import Block, Paragraph, Table
from dpcalc.render.numbers import Side, number
from dpcalc.training.data.ranges import middles_and_halves
from dpcalc.training.release.model import Model
from dpcalc.training.release.prediction import Predictor
from dpcalc.version import __version__

SCHEMA = "dpcalc.coefficients/1"
CLEAR = 2.0
"""How many standard deviations of its noise from 0 a coefficient is called clear: noise alone is so in 1 of 22."""

_FIRST, _DIGITS, _NAME = 4, 4, 36  # rows, digits and letters of a name on the first screen


class Coefficient(NamedTuple):
    """The weight of a column in a score.

    Attributes:
        column: its name.
        level: of a column of words, the word.
        of_class: of several classes, whose score it is.
        value: what one unit of the column adds to the score of a row that is not shortened; of a level, its presence.
        noise: the standard deviation of the privacy noise on it, about; None where it is not known.
        over_range: what the column adds from the low to the high end of its range; None where it has none.
    """

    column: str
    level: str | None
    of_class: str | None
    value: float
    noise: float | None
    over_range: float | None

    @property
    def name(self) -> str:
        """The column, its level and the class."""
        level = "" if self.level is None else f" = {self.level}"
        return f"{self.column}{level}" + ("" if self.of_class is None else f" [{self.of_class}]")

    @property
    def signal(self) -> float:
        """How many standard deviations of the noise it is from 0; 0 where that is not known."""
        return abs(self.value) / self.noise if self.noise else 0.0


class Coefficients(NamedTuple):
    """A model in the units of its columns.

    Attributes:
        predicting: the model.
        rows: the coefficients, those first that move a score most within the range of their column.
        middle: the scores of a row with every number in the middle of its range and no level: one, or one a class.
    """

    predicting: Predictor
    rows: tuple[Coefficient, ...]
    middle: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all of it, JSON types only."""
        model, classes = self.predicting.model, self.predicting.classes
        return {
            "schema": SCHEMA, "dpcalc": __version__, "command": "model", "loss": model.loss["loss"],
            "target": model.target, "classes": None if classes is None else list(classes), "score": self._unit,
            "middle": list(self.middle),
            "coefficients": [row._asdict() for row in self.rows], "readings": list(self.readings()),
            "privacy": {name: model.privacy.get(name) for name in ("private", "epsilon", "delta", "bound")},
        }  # fmt: skip

    def table(self, most: int | None = None) -> list[list[str]]:
        """Return the head and the first rows, as texts."""
        rows = [["column", "per unit", "noise", "over its range"]]
        for row in self.rows[:most]:
            name = row.name if most is None or len(row.name) <= _NAME else row.name[: _NAME - 3] + "..."
            rows.append([name, *(_said(value) for value in (row.value, row.noise, row.over_range))])
        return rows

    def csv(self) -> str:
        """Return a line for every coefficient, with all digits."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(Coefficient._fields)
        words = (
            (cell if isinstance(cell, float) else spreadsheet_text(cell or "") for cell in row) for row in self.rows
        )
        writer.writerows(words)
        return buffer.getvalue()

    def blocks(self, *, everything: bool) -> Iterator[Block]:
        """Yield what is printed: in short the largest coefficients, or all of them and what can be read from them."""
        yield Paragraph(self._head())
        yield Table(self.table(None if everything else _FIRST))
        named = self.predicting.model.classes
        ends = [
            f"{_said(value)}{f' [{of}]' if of else ''}" for value, of in zip(self.middle, named or ("",), strict=True)
        ]
        yield Paragraph(f"in the middle of all ranges: {', '.join(ends if everything else ends[:_FIRST])}")
        known = [row for row in self.rows if row.noise is not None]
        clear = sum(row.signal > CLEAR for row in known)
        counts = [f"{clear} of {len(known)} are above {CLEAR:g} times their noise"] if known else []
        left = len(self.rows) - _FIRST
        if not everything:
            yield Paragraph("; ".join([*counts, f"-v: {left} more, and how to read them" if left > 0 else "-v: more"]))
            return
        yield from map(Paragraph, (*counts, *self.readings()))

    def readings(self) -> Iterator[str]:
        """Yield what can be read from the numbers, and what cannot."""
        model = self.predicting.model
        if model.noise_std is None:
            yield "noise: not known of this model, whose iterates stay hidden or whose file does not say"
        else:
            yield (
                "noise: about the standard deviation of the privacy noise, the same for all weights, estimated from "
                "released iterates at no cost, to a factor of about 2. That records are a sample is not in it: it "
                "makes no confidence interval"
            )
        yield (
            f"per unit: what one unit of the column adds to {self._unit} of a row of mapped length up to "
            f"{model.bound:g}; a row of length r > {model.bound:g} is shortened, and one unit adds about "
            f"{model.bound:g}/r as much"
        )
        if model.centre is not None:
            yield f"rows are then centred and shortened to {model.centred_bound:.4g}: far from the mean units add less"
        yield (
            "not to be read: effects of one cause (columns that move together share theirs), and sizes as of a fit "
            "without clipping (clipped slopes change them; their order and signs less)"
        )

    @property
    def _unit(self) -> str:
        """What the coefficients add to."""
        predicting = self.predicting
        if predicting.classes is None:
            return predicting.model.target
        if predicting.several:
            return "the score of the class"
        return f"{'the log-odds' if predicting.probable else 'the score'} of {predicting.classes[1]}"

    def _head(self) -> str:
        """Return what the model is, in one line."""
        model = self.predicting.model
        epsilon, delta = (model.privacy.get(name) for name in ("epsilon", "delta"))
        cost = "NOT PRIVATE"
        if model.privacy.get("private") is True and isinstance(epsilon, float) and isinstance(delta, float):
            cost = f"epsilon <= {number(epsilon, side=Side.ECHO)} at delta = {number(delta, side=Side.ECHO)}"
        return printable(f"{model.loss['loss']}, {self._unit}; {len(model.columns)} columns; {cost}")


def _said(value: float | None) -> str:
    return "" if value is None else number(value, _DIGITS)


def coefficients_of(predicting: Predictor) -> Coefficients:
    """Return the coefficients of a model, of a regression in the units of the target."""
    model = predicting.model
    unit = predicting.half / (1.0 if model.scale is None else model.scale)
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
            found.append((abs(value), Coefficient(column, level, of_class, value / each, deviation, ranged)))
    found.sort(key=lambda pair: -pair[0])
    return Coefficients(predicting, tuple(row for _, row in found), _middle(predicting))


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
