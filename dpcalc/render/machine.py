"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpcalc.inert import Written, json_text, printable, spreadsheet_text
from dpcalc.report import Case, Report, case_fields, input_fields, obstacle_fields, strict_json


def render_json(report: Report) -> str:
    """Return the envelope as indented JSON."""
    envelope, write = report.envelope(), _Cases().written
    return json_text({**envelope, "cases": [write(case) for case in report.cases]}, 2) + "\n"


class _Cases:
    """Writes cases at their place in the envelope; what several have in common is written once.

    The cases outlive it, so that the values of their inputs are told apart by identity: 0, 0.0 and -0.0 are equal.
    """

    def __init__(self) -> None:
        self._known: dict[Any, Written] = {}

    def written(self, case: Case) -> Written:
        """Return the text of a case."""
        fields = case_fields(case._replace(inputs={}, obstacles=()))
        fields["inputs"] = {
            name: self._once((name, id(value), source), 4, input_fields, value, source)
            for name, (value, source) in case.inputs.items()
        }
        fields["not_applicable"] = [self._once(obstacle, 4, obstacle_fields, obstacle) for obstacle in case.obstacles]
        for result, named in zip(case.results, fields["results"], strict=True):
            named["assumes"] = self._once(result.assumes, 5, list, result.assumes)
        return _text(fields, 2)

    def _once(self, key: Any, depth: int, make: Callable[..., Any], *values: Any) -> Written:
        """Return the text of what is made from some values, at a depth of the envelope; the key stands for them."""
        text = self._known.get(key)
        if text is None:
            text = self._known[key] = _text(make(*values), depth)
        return text


def _text(tree: Any, depth: int) -> Written:
    """Return the text of a tree at a depth of the envelope; a number that is not finite is told as `strict_json` does.

    Nearly all numbers are finite, and nothing but the encoder has to look.
    """
    try:
        return Written(json_text(tree, 2, depth))
    except (TypeError, ValueError):
        return Written(json_text(strict_json(tree), 2, depth))


def render_jsonl(report: Report) -> str:
    """Return one line of JSON per case, each with the schema and command."""
    envelope = report.to_dict()
    head = {key: envelope[key] for key in ("schema", "dpcalc", "command")}
    return "".join(json_text({**head, **case}) + "\n" for case in envelope["cases"])


def render_csv(report: Report) -> str:
    """Return one row per result, as `Report.rows` has them."""
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(report.columns)
    writer.writerows([_cell(value) for value in row.values()] for row in report.rows())
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return spreadsheet_text(value)
    return repr(value) if isinstance(value, float) else printable(str(value))
