"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

import json
from typing import Any

from dpcalc.bounds.cost import RISKS
from dpcalc.report import Case, Report

_CSV_COLUMNS = ("case", "bound", "quantity", "value", "kind", "epsilon", "delta", "log_delta", "mu", "order")

_RAN = ("noise_std", "step_size", "steps", "failure_probability")
"""What the run behind a cost is described by."""


def render_json(report: Report) -> str:
    """Return the envelope as indented JSON."""
    return json.dumps(report.to_dict(), indent=2, allow_nan=False) + "\n"


def render_jsonl(report: Report) -> str:
    """Return one line of JSON per case, each with the schema and command."""
    envelope = report.to_dict()
    head = {key: envelope[key] for key in ("schema", "dpcalc", "command")}
    return "".join(json.dumps({**head, **case}, allow_nan=False) + "\n" for case in envelope["cases"])


def render_csv(report: Report) -> str:
    """Return one row per result; the inputs of its case follow as columns of their own (prefixed ``input_``)."""
    import csv
    import io

    names = sorted({name for case in report.cases for name in case.inputs})
    ran = _RAN if any(result.quantity in RISKS for case in report.cases for result in case.results) else ()
    measured = sorted({name for case in report.cases for name in _measured(case)})
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        [*_CSV_COLUMNS, *ran, "adjacency", "best", "reference", *(f"input_{name}" for name in names), *measured]
    )
    for number, case in enumerate(report.cases, start=1):
        inputs = [_cell(case.inputs[name][0]) if name in case.inputs else "" for name in names]
        metrics = [_cell(_measured(case).get(name)) for name in measured]
        for result in case.results:
            fields = result._asdict()
            cells = [number, *(_cell(fields[name]) for name in _CSV_COLUMNS[1:])]
            cells += [_cell((result.details or {}).get(name)) for name in ran]
            writer.writerow([*cells, result.adjacency, str(result.best).lower(), result.reference, *inputs, *metrics])
    return buffer.getvalue()


def _measured(case: Case) -> dict[str, Any]:
    """Return what was measured of a run that was carried out, as columns ``train_loss``, ``private``, ..."""
    if not case.training:
        return {}
    found = {"private": str(case.training["private"]).lower()}
    models = {"": case.training["metrics"], "non_private_": case.training["non_private"]}
    for prefix, parts in models.items():
        for part in ("train", "test"):
            found.update({f"{prefix}{part}_{name}": value for name, value in parts.get(part, {}).items()})
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = repr(value) if isinstance(value, float) else str(value).replace("\r", " ")
    # A cell that a spreadsheet would run as a formula is quoted as text.
    return "'" + text if isinstance(value, str) and text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
