"""A report as a chart: its axes, curves and labels. Data only; `figure` and `terminal` draw it."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.model.quantities import Kind
from dpcalc.report import Report

MAX_SERIES = 8

ENVELOPE = "best guarantee"
"""The label of the curve of the best guarantees, if several bounds are best in turn."""

GUESSING = "guessing blindly: both rates are equal"
"""The label of the diagonal of true against false positives."""

RATE = ": grows like"
"""Joins the name of a curve and its rate of growth."""

Number = float | int


class Axis(NamedTuple):
    """The label of an axis, whether it is logarithmic, and the lowest value to show (None: the lowest in the data).

    ``names`` label the places 0, -1, -2, ... on the axis, which then has no numbers.
    """

    label: str
    log: bool = False
    low: float | None = None
    names: tuple[str, ...] = ()


class Series(NamedTuple):
    """A curve.

    An entry of ``ys`` is None if there is nothing to draw there. ``kind`` is the kind of the results of the curve, and
    ``band`` has the edges of a band around it. Points with ``spans`` are not joined: each has a horizontal bar.
    """

    label: str
    xs: tuple[Number, ...]
    ys: tuple[float | None, ...]
    kind: Kind = Kind.UPPER
    best: bool = False
    band: tuple[tuple[float | None, ...], tuple[float | None, ...]] | None = None
    spans: tuple[tuple[float, float], ...] = ()

    @property
    def dashed(self) -> bool:
        """Whether the curve is dashed, because it is no guarantee."""
        return not Kind(self.kind).guarantee


class Panel(NamedTuple):
    """Curves over common axes."""

    title: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]


class Chart(NamedTuple):
    """The chart of a report: the panels (the first is the answer), the fixed parameters, and notes."""

    title: str
    subtitle: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()


def chart(report: Report, only: Sequence[str] = ()) -> Chart:
    """Return the chart of a report: its sweep, the allocation of a single ``shifted`` case, or what an attacker can do.

    Args:
        report: the report of a command.
        only: the bounds to draw; empty for the usual choice: every bound if a single parameter varies, else the best
            guarantee of every combination and the limits.

    Raises:
        SpecError: the report has no sweep of a number, or lacks a bound of ``only``.
    """
    name, takes_bounds = "bounds.sweep_chart", True
    if len(report.cases) == 1 and (report.cases[0].risk or {}).get("curve") is not None:
        name = "measured.trade_off_chart"
    elif report.command in _OF_COMMANDS and (report.command != _SHIFTED or len(report.cases) == 1):
        name, takes_bounds = _OF_COMMANDS[report.command], False
    module, _, function = name.partition(".")
    made: Chart = getattr(importlib.import_module(f"{__name__}.{module}"), function)(
        report, *([only] if takes_bounds else [])
    )
    return made


RISK, _SHIFTED = "risk", "shifted"
_OF_COMMANDS = {
    "train": "measured.trained_chart",
    _SHIFTED: "figure.allocation_chart",
    RISK: "measured.risk_chart",
}
"""The charts of commands that are not about bounds, and take no choice of bounds: module and function."""


def is_wide(values: Sequence[Number]) -> bool:
    """Whether the values are positive and span two powers of ten."""
    return bool(values) and min(values) > 0 and max(values) >= 100 * min(values)
