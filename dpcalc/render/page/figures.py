"""The figures of a page: the tightness of an answer in words, delta against epsilon, and what attacks achieve.

It also has the names of cases on a page, and other words that its sections share.
"""

from __future__ import annotations

import base64
import importlib.util
import math
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dpcalc.model.quantities import Kind, Quantity
from dpcalc.render.chart import GUESSING, Axis, Panel, Series
from dpcalc.render.chart.measured import coefficients_panel
from dpcalc.render.check.verdicts import gate_limit
from dpcalc.render.layout import listed
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.several import varying
from dpcalc.render.words.sentences import unbeaten
from dpcalc.report import Case, Curves, Report, Result, Tightness, uncertified

MISSING = "Figures need matplotlib: pip install 'dpcalc[plot]'"
"""Replaces the figures if matplotlib is not installed."""

_LN10 = math.log(10.0)
_DECADES = 12  # the most powers of ten of delta below the answer: smaller values are negligible
_DEEP = -290.0  # below this power of ten an axis shows the power: a drawing extends 9 powers below it
_LEAST_FPR = 1e-5
_TOLD_FPR = 1e-3  # rates from here on are named in a sentence
_ROUNDOFF = 1.0 + 2.0**-40
"""More than the rounding of a floating-point operation."""


class Figure(NamedTuple):
    """A picture: its title, its panel, the words for readers who cannot see it, and the caption."""

    title: str
    panel: Panel
    words: str
    caption: str

    @property
    def source(self) -> str:
        """The picture as a data URL."""
        from dpcalc.render.chart.figure import draw_panel

        return f"data:image/svg+xml;base64,{base64.b64encode(draw_panel(self.panel)).decode('ascii')}"


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def bracket(case: Case, digits: Digits) -> str:
    """Return the range of the true value in words; empty for an answer that is no epsilon, delta or mu."""
    best, floor = case.best, case.tightness
    if best is None or best.quantity not in (Quantity.EPSILON, Quantity.MU, Quantity.DELTA):
        return ""
    delta = best.quantity == Quantity.DELTA
    size = best.log_delta if delta else best.value
    if size is None or not math.isfinite(size):
        return ""
    name, upper = best.quantity, digits.value(best)
    lower = digits.number(floor.value, Side.DOWN) if floor and not (delta and floor.value <= 0.0) else ""
    steep = floor is not None and floor.by_difference
    if not lower:
        text = f"{name} is at most {upper}."
    elif lower == upper and not steep:
        text = f"{name} is {upper}, exactly: no smaller value holds for what is known of the run."
    else:
        none = unbeaten(steep) + ("" if steep else " for what is known of the run")
        text = f"{name} is at most {upper}, and {none} is below {lower}."
    limits = filter(None, (gate_limit(gate, name) for gate in case.assertions))
    words = [words for value, words in limits if value > 0.0 or not delta]
    return " ".join([text, *(f"The limit of a gate is {limit}." for limit in words[:3])])


def figures(case: Case, digits: Digits) -> Iterator[Figure]:
    """Yield the figures of a case with known curves, and of one that trained a model."""
    if rows := (case.training or {}).get("coefficients"):
        words = ", ".join(f"{row['name']} {row['weight']:.3g}" for row in rows)
        caption = "Bars: about two standard deviations of the privacy noise to either side."
        yield Figure("The largest coefficients", coefficients_panel(rows), f"Over half a range: {words}.", caption)
    if case.curves is not None and case.best is not None:
        yield from _profile(case.curves, case.best, digits)
        yield from _trade_off(case.curves)


def _profile(curves: Curves, best: Result, digits: Digits) -> Iterator[Figure]:
    """Yield delta against epsilon: the guarantee, and what no guarantee can beat; nothing without a curve."""
    upper = [(epsilon, log_delta) for epsilon, log_delta in curves.profile if math.isfinite(log_delta)]
    if len(upper) < 2 or upper[-1][0] <= 0.0:
        return
    asked = best.log_delta / _LN10 if best.log_delta is not None else upper[-1][1] / _LN10
    bottom = float(math.floor(max(min(upper[-1][1] / _LN10, asked - 1.0), min(asked - 2.0, -6.0), asked - _DECADES)))
    axis = Axis("log10 delta", low=bottom) if bottom < _DEEP else Axis("delta", True, 10.0**bottom)
    series = [_curve("guaranteed", upper, axis)]
    floor = [(epsilon, log_delta) for epsilon, log_delta in curves.floor if math.isfinite(log_delta)]
    dashed = f" {_dashed(curves.tightness)}" if floor else ""
    series += [_curve("impossible below", floor, axis, Kind.LOWER)] if floor else []
    answer = ""
    if best.epsilon is not None and best.log_delta is not None and asked >= bottom:
        epsilon, delta = digits.number(best.epsilon, Side.UP), digits.delta(best.delta, best.log_delta, Side.UP)
        series.append(_curve("the answer", [(best.epsilon, best.log_delta)], axis))
        answer = f" The answer is the point epsilon {epsilon}, delta {delta}."
    (_, first), (end, last) = curves.profile[0], curves.profile[-1]
    words = f"From at most {_share(first)} at epsilon 0, delta falls to at most {_share(last)} at epsilon {end:.4g}."
    yield Figure(
        "Delta at every epsilon",
        Panel("", Axis("epsilon"), axis, tuple(series)),
        words + dashed + answer,
        f"The line is guaranteed: the truth lies on it or below.{dashed}",
    )


def _curve(label: str, points: list[tuple[float, float]], axis: Axis, kind: Kind = Kind.UPPER) -> Series:
    """Return a curve of deltas from their logarithms."""
    ys = (math.exp(log_delta) if axis.log else log_delta / _LN10 for _, log_delta in points)
    return Series(label, tuple(epsilon for epsilon, _ in points), tuple(ys), kind)


def _dashed(floor: Tightness | None) -> str:
    """Return the sentence about the dashed line."""
    return f"The dashed line is what {unbeaten(floor is not None and floor.by_difference)} can beat."


def _share(log_delta: float) -> str:
    return Digits(3).delta(math.exp(log_delta) * _ROUNDOFF, log_delta, Side.UP)


def _trade_off(curves: Curves) -> Iterator[Figure]:
    """Yield the largest true-positive rate of any attack at each false-positive rate; nothing without a curve."""
    points = [(fpr, tpr) for fpr, tpr in curves.trade_off if fpr >= _LEAST_FPR]
    if len(points) < 2:
        return
    xs, ys = zip(*points, (1.0, 1.0), strict=True)
    rates = "; ".join(
        f"at {100.0 * fpr:.4g}% false-positive rate a true-positive rate of at most {_percent(tpr)}"
        for fpr, tpr in points
        if fpr >= _TOLD_FPR * (1.0 - 1e-9) and _is_power_of_ten(fpr)
    )
    yield Figure(
        "What any attack can find out",
        Panel(
            "",
            Axis("false-positive rate", True),
            Axis("true-positive rate, at most"),
            (Series("at most", xs, ys), Series(GUESSING, xs, xs)),
        ),
        f"For any attack: {rates}. The dashed line is guessing blindly.",
        "No attack lies above the line, whatever it does. The dashed line is guessing blindly.",
    )


def _is_power_of_ten(share: float) -> bool:
    power = math.log10(share)
    return abs(power - round(power)) < 1e-9


def _percent(share: float) -> str:
    return f"{Digits(3).number(min(100.0, 100.0 * share * _ROUNDOFF), Side.UP)}%"


MAX_NAME = 120
MAX_NAMES = 10


def name_of(report: Report, case: Case, place: int, several: bool = False) -> str:
    """Return the name of a case."""
    if case.check is not None:
        name = f"{case.check.file}: {case.check.name}" if several else case.check.name
    else:
        named = [case.algorithm] if case.algorithm else []
        varied = [name for name in varying(report) if name in case.inputs] if len(report.cases) > 1 else []
        values = [f"{name} = {number(case.inputs[name][0], side=Side.AS_GIVEN)}" for name in varied]
        name = ", ".join((*named, *values)) if values or len(report.cases) == 1 else f"{case.algorithm} {place}"
    return clipped(name)


def clipped(name: str) -> str:
    """Return a name; a long one is cut."""
    return name if len(name) <= MAX_NAME else name[:MAX_NAME] + "..."


def names_of(names: Sequence[str]) -> str:
    """Return names of cases; of many only the first ones."""
    return listed([*map(clipped, names)], MAX_NAMES)


def why_not(case: Case) -> str:
    """Return why a case has no guarantee, or did not pass."""
    if case.check is not None:
        return case.check.message or "The case did not pass."
    if uncertified(case):
        return "The guarantee is not certified."
    return f"There is no guarantee: {case.obstacles[0].because}." if case.obstacles else "There is no guarantee."


def typed(words: Sequence[str]) -> str:
    """Return the command line of these words; empty without words."""
    return shlex.join(("dpcalc", *words)) if words else ""
