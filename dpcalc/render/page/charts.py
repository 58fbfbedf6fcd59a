"""The pictures of a page: the bracket of an answer, delta against epsilon, and what attacks achieve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dpcalc.model.quantities import Quantity
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.render.page.svg import Frame, Point, Scale, element, label, labels, line, lines, path, picture, ticks
from dpcalc.render.words.sentences import unbeaten
from dpcalc.report import Curves, Result, Tightness

_WIDTH, _HEIGHT = 440.0, 268.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 428.0, 30.0, 224.0
_LN10 = math.log(10.0)
_DECADES = 12
_LEAST_FPR = -5
_ROUNDOFF = 1.0 + 2.0**-40
"""More than an operation in floating point loses."""


class Bracket(NamedTuple):
    """Between which two values the truth lies, as a picture needs it.

    Attributes:
        upper: the guarantee, and its words.
        lower: what no guarantee can beat; None where it is not known.
        limits: those of gates on the same quantity.
        name: of the quantity.
        decades: whether the values are powers of ten.
        by_difference: whether ``lower`` is of guarantees alone that use only how far two gradients are apart.
    """

    upper: tuple[float, str]
    lower: tuple[float, str] | None
    limits: tuple[tuple[float, str], ...]
    name: str
    decades: bool
    by_difference: bool


def bracket_of(
    best: Result, tightness: Tightness | None, limits: Sequence[tuple[float, str]], digits: Digits
) -> Bracket | None:
    """Return the bracket of an answer; None of one that is no epsilon, delta or mu, or not finite."""
    steep = tightness is not None and tightness.by_difference
    if best.quantity == Quantity.DELTA and best.log_delta is not None:
        upper = best.log_delta / _LN10, digits.delta(best.delta, best.log_delta, Side.UP)
        floor = None
        if tightness and tightness.value > 0.0:
            floor = math.log10(tightness.value), digits.number(tightness.value, Side.DOWN)
        logs = tuple((math.log10(value), words) for value, words in limits if value > 0.0)
        return Bracket(upper, floor, logs, "delta", True, steep) if math.isfinite(upper[0]) else None
    if best.quantity not in (Quantity.EPSILON, Quantity.MU) or not math.isfinite(best.value):
        return None
    floor = (tightness.value, digits.number(tightness.value, Side.DOWN)) if tightness else None
    upper = best.value, digits.number(best.value, Side.UP)
    return Bracket(upper, floor, tuple(limits), str(best.quantity), False, steep)


def bracket(name: str, shown: Bracket) -> str:
    """Return the picture of a bracket on a line of numbers."""
    upper, lower = shown.upper, shown.lower
    exact = lower is not None and lower[0] >= upper[0] * (1.0 - 1e-9) and not shown.decades
    low, high = _range(shown)
    x = Scale(low, high, 10.0, _WIDTH - 10.0)
    middle = 62.0
    places = ticks(low, high, 5)
    marks = [((x(tick), middle), (x(tick), middle + 5.0)) for tick in places]
    drawn = [lines([((x.start, middle), (x.end, middle)), *marks], "axis")]
    drawn.append(labels([((x(tick), middle + 20.0), _tick(tick, shown.decades)) for tick in places], "middle"))
    start, end = x(lower[0]) if lower else x.start, x(upper[0])
    box = {"x": start, "y": middle - 7.0, "width": max(end - start, 1.0), "height": 14.0}
    drawn.append(element("rect", class_="band", **box))
    for value, words in shown.limits[:3]:
        drawn.append(line((x(value), middle - 32.0), (x(value), middle + 10.0), "limit"))
        drawn.append(label((x(value), middle - 40.0), f"limit {words}", anchor=_anchor(x, value)))
    if lower and not exact:
        below = "impossible by gradient differences below" if shown.by_difference else "impossible below"
        drawn.append(line((start, middle - 10.0), (start, middle + 10.0), "floor"))
        drawn.append(label((start, middle + 40.0), f"{below} {lower[1]}", anchor=_anchor(x, lower[0])))
    drawn.append(line((end, middle - 14.0), (end, middle + 10.0), "here"))
    side = "end" if end > 0.5 * (x.start + x.end) else ""
    drawn.append(label((end, middle - 20.0), f"guaranteed {upper[1]}", "strong", side))
    return picture(name, (_WIDTH, 108.0), f"How tight the guarantee on {shown.name} is", said(shown), *drawn)


def said(shown: Bracket) -> str:
    """Return in words what a bracket shows."""
    upper, lower = shown.upper, shown.lower
    if lower is None:
        text = f"{shown.name} is at most {upper[1]}."
    elif lower[1] == upper[1] and not shown.by_difference:
        text = f"{shown.name} is {upper[1]}, exactly: no smaller value holds for what is known of the run."
    else:
        none = unbeaten(shown.by_difference) + ("" if shown.by_difference else " for what is known of the run")
        text = f"{shown.name} is at most {upper[1]}, and {none} is below {lower[1]}."
    return " ".join([text, *(f"The limit of a gate is {words}." for _, words in shown.limits[:3])])


def _range(shown: Bracket) -> tuple[float, float]:
    values = [shown.upper[0], *(value for value, _ in shown.limits[:3])]
    if not shown.decades:
        return 0.0, (max(values) or 1.0) * 1.12
    values += [shown.lower[0]] if shown.lower else []
    return min(values) - 1.0, min(0.0, max(values) + 1.0) if max(values) < 0.0 else 0.5


def _tick(value: float, decades: bool) -> str:
    if decades:
        return f"1e{value:.0f}" if value == round(value) else ""
    return f"{value:.6g}"


def _anchor(x: Scale, value: float) -> str:
    """Return which end of a label keeps it within the picture."""
    share = (x(value) - x.start) / (x.end - x.start)
    return "" if share < 0.12 else "end" if share > 0.88 else "middle"


def _decade(power: float) -> str:
    return "1" if power == 0 else f"1e{power:.0f}"


def profile(name: str, curves: Curves, best: Result, digits: Digits) -> str:
    """Return delta against epsilon: what is guaranteed and what no guarantee can beat; nothing without a curve."""
    upper = [(e, d / _LN10) for e, d in curves.profile if math.isfinite(d)]
    if len(upper) < 2 or upper[-1][0] <= 0.0:
        return ""
    asked = best.log_delta / _LN10 if best.log_delta is not None else upper[-1][1]
    bottom = float(math.floor(max(min(upper[-1][1], asked - 1.0), min(asked - 2.0, -6.0), asked - _DECADES)))
    frame = Frame(Scale(0.0, upper[-1][0], _LEFT, _RIGHT), Scale(bottom, 0.0, _BOTTOM, _TOP))
    floor = [(e, d / _LN10) for e, d in curves.floor if math.isfinite(d)]
    ys = [(y, _decade(y)) for y in ticks(bottom, 0.0, 5) if y == round(y)]
    xs = [(x, f"{x:.6g}") for x in ticks(0.0, upper[-1][0])]
    shown, under = _above(upper, bottom), _above(floor, bottom)
    edge = under[::-1] if under else [(shown[-1][0], bottom), (0.0, bottom)]
    drawn = frame.grid(xs, ys, "epsilon", "delta")
    drawn.append(path(map(frame.at, (*shown, *edge)), "band", close=True))
    drawn.append(path(map(frame.at, under), "floor"))
    drawn.append(path(map(frame.at, shown), "curve"))
    answer = ""
    if best.epsilon is not None and best.log_delta is not None and asked >= bottom:
        drawn += _marked(frame, (best.epsilon, asked))
        at = digits.delta(best.delta, best.log_delta, Side.UP)
        answer = f" The answer is the point epsilon {digits.number(best.epsilon, Side.UP)}, delta {at}."
    (_, first), (end, last) = curves.profile[0], curves.profile[-1]
    told = f"From at most {_share(first)} at epsilon 0, delta falls to at most {_share(last)} at epsilon {end:.4g}."
    beaten = f" {dashed(curves.tightness)}" if under else ""
    return picture(name, (_WIDTH, _HEIGHT), "The largest delta at every epsilon", told + beaten + answer, *drawn)


def dashed(floor: Tightness | None) -> str:
    """Return in a sentence what the dashed line is."""
    return f"The dashed line is what {unbeaten(floor is not None and floor.by_difference)} can beat."


def _above(points: Sequence[Point], bottom: float) -> list[Point]:
    """Return the points down to where they leave the chart, and where they do so."""
    kept: list[Point] = []
    for point in points:
        if point[1] < bottom:
            if kept:
                (x, y) = kept[-1]
                kept.append((x + (point[0] - x) * (y - bottom) / (y - point[1]), bottom))
            break
        kept.append(point)
    return kept


def _share(log_delta: float) -> str:
    return Digits(3).delta(math.exp(log_delta) * _ROUNDOFF, log_delta, Side.UP)


def _marked(frame: Frame, point: Point) -> list[str]:
    x, y = frame.at(point)
    return [
        lines([((x, y), (x, frame.y.start)), ((frame.x.start, y), (x, y))], "guide"),
        element("circle", cx=x, cy=y, r=4.5, class_="dot"),
    ]


def trade_off(name: str, curves: Curves) -> str:
    """Return the most true positives of any attack against its false ones; nothing without a curve."""
    points = [(math.log10(fpr), tpr) for fpr, tpr in curves.trade_off]
    if len(points) < 2:
        return ""
    frame = Frame(Scale(_LEAST_FPR, 0.0, _LEFT, _RIGHT), Scale(0.0, 1.0, _BOTTOM, _TOP))
    whole = [*points, (0.0, 1.0)]
    guess = [(place / 8.0, 10.0 ** (place / 8.0)) for place in range(8 * _LEAST_FPR, 1)]
    xs = [(x, f"{100.0 * 10.0**x:.6g}%") for x in range(_LEAST_FPR, 1)]
    ys = [(share / 4.0, f"{25 * share}%") for share in range(5)]
    drawn = frame.grid(xs, ys, "false positives of an attack", "true positives, at most")
    below = [(_LEAST_FPR, 0.0), *whole, (0.0, 0.0)]
    drawn.append(path(map(frame.at, below), "band", close=True))
    drawn.append(path(map(frame.at, guess), "floor"))
    drawn.append(path(map(frame.at, whole), "curve"))
    at = {round(x): y for x, y in points if abs(x - round(x)) < 1e-9}
    told = "; ".join(
        f"with {100.0 * 10.0**x:.4g}% false positives at most {_percent(y)} true ones" for x, y in at.items() if x >= -3
    )
    alternative = f"For any attack: {told}. The dashed line is guessing blindly."
    return picture(name, (_WIDTH, _HEIGHT), "What any attack can find out", alternative, *drawn)


def _percent(share: float) -> str:
    return f"{number(min(100.0, 100.0 * share * _ROUNDOFF), 3, Side.UP)}%"
