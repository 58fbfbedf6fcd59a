"""SVG from numbers: elements with every value escaped, and the scale of an axis. The page's styles have the colours."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dpcalc.inert import printable

Point = tuple[float, float]


def element(tag: str, *children: str, **attributes: str | float) -> str:
    """Return an element of SVG or HTML; children are elements, or texts made by `text`.

    >>> element("circle", cx=1.5, r=2, class_="dot")
    '<circle cx="1.5" r="2" class="dot"/>'
    """
    inside = "".join(children)
    given = "".join(f' {_name(name)}="{_value(value)}"' for name, value in attributes.items())
    return f"<{tag}{given}>{inside}</{tag}>" if inside else f"<{tag}{given}/>"


def text(words: str) -> str:
    """Return words as they may stand in an element."""
    return html.escape(printable(words))


def _name(name: str) -> str:
    """Return an attribute as it is written: Python has no word ``class`` and no hyphens."""
    return "viewBox" if name == "viewBox" else name.rstrip("_").replace("_", "-")


def _value(value: str | float) -> str:
    return text(value) if isinstance(value, str) else short(value)


def short(value: float) -> str:
    """Return a coordinate to a tenth of a unit."""
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written


def picture(name: str, size: tuple[float, float], title: str, description: str, *children: str) -> str:
    """Return a picture with a text alternative.

    Args:
        name: tells its ids from those of other pictures on the page.
        size: width and height, in the units of its coordinates.
        title, description: what a screen reader says.
        children: its elements.
    """
    return element(
        "svg",
        element("title", text(title), id=f"{name}-title"),
        element("desc", text(description), id=f"{name}-desc"),
        *children,
        viewBox=f"0 0 {short(size[0])} {short(size[1])}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def line(start: Point, end: Point, style: str) -> str:
    """Return a straight line."""
    return lines([(start, end)], style)


def lines(ends: Iterable[tuple[Point, Point]], style: str) -> str:
    """Return some straight lines, as one element."""
    drawn = "".join(f"M{short(x)} {short(y)}L{short(u)} {short(v)}" for (x, y), (u, v) in ends)
    return element("path", d=drawn, class_=style)


def path(points: Iterable[Point], style: str, close: bool = False) -> str:
    """Return a line through some points, or the area that it encloses; nothing where there are too few."""
    found = [f"{short(x)} {short(y)}" for x, y in points]
    if len(found) < (3 if close else 2):
        return ""
    return element("path", d=f"M{'L'.join(found)}{'Z' if close else ''}", class_=style)


def label(place: Point, words: str, style: str = "", anchor: str = "") -> str:
    """Return some words at a place; ``anchor`` is the end of them that is there, where that is not the first."""
    more = {"text_anchor": anchor} if anchor else {}
    return element("text", text(words), x=place[0], y=place[1], **more, **({"class_": style} if style else {}))


def labels(places: Iterable[tuple[Point, str]], anchor: str) -> str:
    """Return some labels with the same end at their places."""
    return element("g", *(label(place, words) for place, words in places), text_anchor=anchor)


class Scale(NamedTuple):
    """Where the values from ``low`` to ``high`` are drawn: linearly from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the coordinate of a value; what is outside is drawn at the edge."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round values from low to high, at most so many and one.

    >>> ticks(0.0, 7.3)
    [0.0, 2.0, 4.0, 6.0]
    """
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1.0, 2.0, 5.0, 10.0) if each * power >= rough * (1.0 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [place * step for place in range(first, last + 1)]


class Frame(NamedTuple):
    """The axes of a chart."""

    x: Scale
    y: Scale

    def at(self, point: Point) -> Point:
        """Return the coordinates of a point."""
        return self.x(point[0]), self.y(point[1])

    def grid(
        self, xs: Sequence[tuple[float, str]], ys: Sequence[tuple[float, str]], x_name: str, y_name: str
    ) -> list[str]:
        """Return the grid, its labels and the names of the axes; values come with their words."""
        left, right, bottom, top = self.x.start, self.x.end, self.y.start, self.y.end
        across = [((left, self.y(y)), (right, self.y(y))) for y, _ in ys]
        marks = [((self.x(x), bottom), (self.x(x), bottom + 4.0)) for x, _ in xs]
        return [
            lines(across, "grid"),
            lines([((left, bottom), (right, bottom)), *marks], "axis"),
            labels([((left - 6.0, self.y(y) + 4.0), words) for y, words in ys], "end"),
            labels([((self.x(x), bottom + 17.0), words) for x, words in xs], "middle"),
            label((right, bottom + 34.0), x_name, "name", "end"),
            label((4.0, top - 14.0), y_name, "name"),
        ]
