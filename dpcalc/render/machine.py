"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpcalc.inert import json_text, printable, spreadsheet_text
from dpcalc.render import CHECK
from dpcalc.report import SCHEMA, Case, Report, case_fields, strict_json
from dpcalc.version import __version__

_PIECE = 1 << 16
"""Characters of CSV that are kept before they are written: a write a row is slow."""


def json_pieces(report: Report) -> Iterator[str]:
    """Yield the envelope as indented JSON, in whole lines, one case at a time."""
    envelope = report.envelope()
    if not report.cases:
        yield json_text(envelope, 2) + "\n"
        return
    gap = '"cases": ['
    before, _, after = json_text(envelope, 2).partition(gap)
    lead = f"{before}{gap}\n    "
    for case in report.cases:
        yield lead + _strict_text(case, {}, 2, 2)
        lead = ",\n    "
    yield f"\n  {after}\n"


def _strict_text(case: Case, before: Mapping[str, str], indent: int | None = None, depth: int = 0) -> str:
    """Return the JSON of a case; numbers that are not finite are rare, and only then `strict_json` is needed."""
    fields = {**before, **case_fields(case)}
    try:
        return json_text(fields, indent, depth)
    except (TypeError, ValueError):
        return json_text(strict_json(fields), indent, depth)


def jsonl_pieces(report: Report) -> Iterator[str]:
    """Yield one line per case; of a check, one more that ends it: without the last line it is not complete."""
    written = getattr(report.cases, "lines", None)  # of a check whose cases are on the disk
    for line in written() if written else (case_line(report.command, case) for case in report.cases):
        yield f"{line}\n"
    if report.command == CHECK:
        yield end_line(report)


def end_line(report: Report) -> str:
    """Return the last line of a check: the envelope without cases, with ``exit_code`` and ``verdict``."""
    envelope = report.envelope()
    del envelope["cases"]
    code = report.exit_code
    return json_text({**envelope, "exit_code": code, "verdict": "failed" if code else "passed"}) + "\n"


def case_line(command: str, case: Case) -> str:
    """Return a case as a line of JSON, with the schema and the command."""
    return _strict_text(case, {"schema": SCHEMA, "dpcalc": __version__, "command": command})


def csv_pieces(report: Report) -> Iterator[str]:
    """Yield lines of CSV: one row per result, as `Report.rows` has them."""
    import csv
    import io

    buffer = io.StringIO()
    writer, columns = csv.writer(buffer, lineterminator="\n"), report.columns
    rows = ([_cell(value) for value in row.values()] for row in report.each_row(columns))
    writer.writerow(columns)
    for row in rows:
        writer.writerow(row)
        if buffer.tell() > _PIECE:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return spreadsheet_text(value)
    return repr(value) if isinstance(value, float) else printable(str(value))
