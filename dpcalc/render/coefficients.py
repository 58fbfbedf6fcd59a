"""The coefficients of a model in words: what they are, how far noise moved them, and what can be read from them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpcalc.inert import json_text, printable, spreadsheet_text
from dpcalc.render.blocks import COLUMNS, Block, Paragraph, Table, markdown, plain
from dpcalc.render.layout import cut
from dpcalc.render.numbers import Side, number

CLEAR = 2.0
"""How many standard deviations of its noise from 0 a coefficient is called clear: noise alone is so in 1 of 22."""

_FIRST, _DIGITS, _NAME = 4, 4, 36  # rows, digits and letters of a name on the first screen
_CELLS = ("column", "level", "of_class", "value", "noise", "over_range")


def coefficients_text(report: Mapping[str, Any], format: str, *, everything: bool) -> str:
    """Return a model as `dpcalc.training.release.coefficients` reports it, in a format of `dpcalc model`."""
    if format == "json":
        return json_text({**report, "readings": list(_readings(report))}, 2) + "\n"
    if format == "csv":
        return _csv(report)
    blocks = _blocks(report, everything=everything or format == "markdown")
    return markdown(blocks) if format == "markdown" else plain(blocks, COLUMNS)


def _csv(report: Mapping[str, Any]) -> str:
    """Return a line for every coefficient, with all digits."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_CELLS)
    for row in report["coefficients"]:
        cells = (row[name] for name in _CELLS)
        writer.writerow([cell if isinstance(cell, float) else spreadsheet_text(cell or "") for cell in cells])
    return buffer.getvalue()


def _blocks(report: Mapping[str, Any], *, everything: bool) -> Iterator[Block]:
    """Yield the largest coefficients, or all of them and what can be read from them."""
    rows = report["coefficients"]
    yield Paragraph(_head(report))
    table: list[Sequence[str]] = [("column", "per unit", "noise", "over its range")]
    for row in rows if everything else rows[:_FIRST]:
        cells = ("" if row[cell] is None else number(row[cell], _DIGITS) for cell in ("value", "noise", "over_range"))
        table.append((row["name"] if everything else cut(row["name"], _NAME), *cells))
    yield Table(table)
    of = [f" [{name}]" for name in report["classes"]] if report["several"] else [""]
    ends = [f"{number(value, _DIGITS)}{name}" for value, name in zip(report["middle"], of, strict=True)]
    yield Paragraph(f"in the middle of all ranges: {', '.join(ends if everything else ends[:_FIRST])}")
    clear = sum(abs(row["value"]) > CLEAR * row["noise"] for row in rows if row["noise"] is not None)
    counts = [] if report["noise_std"] is None else [f"{clear} of {len(rows)} are above {CLEAR:g} times their noise"]
    if everything:
        yield from map(Paragraph, (*counts, *_readings(report)))
        return
    left = len(rows) - _FIRST
    yield Paragraph(
        "; ".join([*counts, f"-v: {left} more, and how to read them" if left > 0 else "-v: how to read them"])
    )


def _readings(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what can be read from the numbers, and what cannot."""
    bound = f"{report['bound']:g}"
    if report["noise_std"] is None:
        yield "noise: not known of this model, whose iterates stay hidden or whose file does not say"
    else:
        yield (
            "noise: about the standard deviation of the privacy noise, the same for all weights, estimated from "
            "released iterates at no cost, to a factor of about 2. That records are a sample is not in it: it makes no "
            "confidence interval"
        )
    yield (
        f"per unit: what one unit of the column adds to {_unit(report)} of a row of mapped length up to {bound}; a row "
        f"of length r > {bound} is shortened, and one unit adds about {bound}/r as much"
    )
    if report["temperature"] is not None:
        yield f"all were divided by {report['temperature']:.4g}, to be log-odds; the noise of that is common to all"
    if report["centred_bound"] is not None:
        yield f"rows are then centred and shortened to {report['centred_bound']:.4g}: far from the mean units add less"
    yield (
        "not to be read: effects of one cause (columns that move together share theirs), and sizes as of a fit without "
        "clipping (clipped slopes change them; their order and signs less)"
    )


def _unit(report: Mapping[str, Any]) -> str:
    """Return what the coefficients add to."""
    if report["classes"] is None:
        return str(report["target"])
    if report["several"]:
        return "the score of the class"
    return f"{'the log-odds' if report['probable'] else 'the score'} of {report['classes'][1]}"


def _head(report: Mapping[str, Any]) -> str:
    """Return what the model is."""
    epsilon, delta = (report["privacy"][name] for name in ("epsilon", "delta"))
    cost = "NOT PRIVATE"
    if report["privacy"]["private"] is True and isinstance(epsilon, float) and isinstance(delta, float):
        cost = f"epsilon <= {number(epsilon, side=Side.ECHO)} at delta = {number(delta, side=Side.ECHO)}"
    return printable(f"{report['loss']}, {_unit(report)}; {report['columns']} columns; {cost}")
