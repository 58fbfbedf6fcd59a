"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from typing import Any

from dpcalc.inert import json_text, printable, spreadsheet_text
from dpcalc.report import Report


def render_json(report: Report) -> str:
    """Return the envelope as indented JSON."""
    return json_text(report.to_dict(), 2) + "\n"


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
