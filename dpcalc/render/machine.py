"""Formats for programs: JSON, JSON lines, CSV. Full precision, strict, deterministic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpcalc.checked import Check, Status
from dpcalc.inert import json_text, printable, spreadsheet_text, strict_json
from dpcalc.model.quantities import RAN, RISKS
from dpcalc.render import CHECK
from dpcalc.report import PARTS, SCHEMA, Case, Report, Result
from dpcalc.version import __version__

_NUMBERS = (
    "case", "algorithm", "bound", "quantity", "value", "kind", "epsilon", "delta", "log_delta", "mu", "order",
)  # fmt: skip
"""The first columns."""

_PIECE = 1 << 16
"""The number of characters of CSV in a write: one write per row would be slow."""


def json_pieces(report: Report) -> Iterator[str]:
    """Yield the envelope as indented JSON, in whole lines, one case at a time."""
    envelope = _envelope(report)
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
    """Return the JSON of a case; `strict_json` is only needed for numbers that are not finite, which are rare."""
    fields = {**before, **case_fields(case)}
    try:
        return json_text(fields, indent, depth)
    except (TypeError, ValueError):
        return json_text(strict_json(fields), indent, depth)


def jsonl_pieces(report: Report) -> Iterator[str]:
    """Yield one line per case; a check has one more at its end, without which it is incomplete."""
    written = getattr(report.cases, "lines", None)  # a check with its cases on the disk
    for line in written() if written else (case_line(report.command, case) for case in report.cases):
        yield f"{line}\n"
    if report.command == CHECK:
        yield end_line(report)


def end_line(report: Report) -> str:
    """Return the last line of a check: the envelope without cases, with ``exit_code`` and ``verdict``."""
    envelope = _envelope(report)
    del envelope["cases"]
    code = report.exit_code
    return json_text({**envelope, "exit_code": code, "verdict": "failed" if code else "passed"}) + "\n"


def case_line(command: str, case: Case) -> str:
    """Return a case as a line of JSON, with the schema and the command."""
    return _strict_text(case, {"schema": SCHEMA, "dpcalc": __version__, "command": command})


def csv_pieces(report: Report) -> Iterator[str]:
    """Yield lines of CSV: one row per result, as in `Report.rows`."""
    import csv
    import io

    buffer = io.StringIO()
    writer, names = csv.writer(buffer, lineterminator="\n"), columns(report)
    writer.writerow(names)
    for row in rows(report, names):
        writer.writerow([_cell(value) for value in row.values()])
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


def columns(report: Report) -> tuple[str, ...]:
    """Return the columns of a report: the result, the run of a cost, inputs, and measurements."""
    cases, found = report.cases, set[str]()
    costs = checked = False
    measured, attacks = set[str](), dict[str, None]()
    for case in cases:
        found.update(case.inputs)
        measured.update(_measured(case))
        attacks.update(dict.fromkeys((*case.attack_numbers, *_audited(case))))
        costs = costs or any(result.quantity in RISKS for result in case.results)
        checked = checked or case.check is not None
    return (
        *_NUMBERS,
        *(RAN if costs else ()),
        "adjacency",
        "best",
        "reference",
        *(("check", "status", "accepted") if checked else ()),
        *(f"input_{name}" for name in sorted(found)),
        *sorted(measured),
        *attacks,
    )


def rows(report: Report, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one flat dict of these columns per result."""
    for number, case in enumerate(report.cases, start=1):
        beside = {f"input_{name}": value for name, (value, _) in case.inputs.items()}
        beside |= {**_measured(case), **case.attack_numbers, **_audited(case)}
        if check := case.check:
            beside |= {"check": check.name, "status": check.status, "accepted": " ".join(check.accepted)}
        for result in case.results:
            run = {"case": number, "algorithm": case.algorithm, **{n: (result.details or {}).get(n) for n in RAN}}
            cells = {**run, **result._asdict(), "adjacency": result.written_adjacency, **beside}
            yield {name: cells.get(name) for name in columns}


def to_dict(report: Report) -> dict[str, Any]:
    """Return the report as `Report.to_dict` does."""
    return {**_envelope(report), "cases": [strict_json(case_fields(case)) for case in report.cases]}


def _envelope(report: Report) -> dict[str, Any]:
    """Return the report with an empty list of cases."""
    statuses, beside = report.statuses, dict[str, Any]()
    if report.not_selected:
        beside["not_selected"] = [{"file": file, "name": name} for file, name in report.not_selected]
    if report.changes is not None:
        beside["changes"] = [change._asdict() for change in report.changes]
    if report.shard is not None:
        beside["shard"] = report.shard._asdict()
    summary = {"cases": len(report.cases), "failed": report.failed}
    if statuses:
        keys = {"passed": Status.PASSED, "skipped": Status.SKIPPED, "errors": Status.ERROR}
        summary |= {key: statuses.get(status, 0) for key, status in keys.items()}
        summary["not_selected"] = len(report.not_selected)
    head = {"schema": SCHEMA, "dpcalc": __version__, "command": report.command, "cases": []}
    envelope: dict[str, Any] = strict_json({**head, **beside, "summary": summary})
    return envelope


def _measured(case: Case) -> dict[str, Any]:
    """Return the metrics of an executed run, as columns ``uncovered_train_loss`` and the like."""
    if not case.training:
        return {}
    cells: dict[str, Any] = {"model_private": case.training["private"]}
    for name, value in (case.training.get("evaluation") or {"metrics": {}})["metrics"].items():
        cells.update({f"private_{name}": value["value"], f"private_{name}_low": value["low"]})
        cells.update({f"private_{name}_high": value["high"]})
    for model, prefix in (("metrics", ""), ("non_private", "non_private_")):
        for part in PARTS:
            values = case.not_covered.get(model, {}).get(part, {})
            cells.update({f"uncovered_{prefix}{part}_{name}": value for name, value in values.items()})
    return cells


def _audited(case: Case) -> dict[str, Any]:
    """Return the results of an audit, as columns ``audit_attack``, ``audit_epsilon_lower``, ..."""
    return {f"audit_{name}": case.audit[name] for name in _AUDITED} if case.audit else {}


_AUDITED = ("attack", "epsilon_lower", "mu_lower", "confidence", "replicas", "exceeded")


def case_fields(case: Case) -> dict[str, Any]:
    """Return a case as in `Report.to_dict`, but with numbers that may not be finite."""
    return {
        "algorithm": case.algorithm,
        "inputs": {name: {"value": value, "source": source} for name, (value, source) in case.inputs.items()},
        "results": [_result_fields(result) for result in case.results],
        "not_applicable": [{"bound": o.bound, "because": o.because, "hint": o.hint} for o in case.obstacles],
        "assertions": [a._asdict() for a in case.assertions],
        **({"guess": case.guess._asdict()} if case.guess else {}),
        "warnings": list(case.warnings),
        "notes": list(case.notes),
        "note_data": [note.as_json() for note in case.note_data],
        **({"tightness": case.tightness._asdict()} if case.tightness else {}),
        **({"training": dict(case.training)} if case.training else {}),
        **({"check": _check_fields(case.check)} if case.check else {}),
        **({"ledger": dict(case.ledger)} if case.ledger else {}),
        **({"risk": dict(case.risk)} if case.risk else {}),
        **({"audit": dict(case.audit)} if case.audit else {}),
    }


def _check_fields(check: Check) -> dict[str, Any]:
    """Return the place and the outcome of a case of a recipe."""
    return {**check._asdict(), "accepted": list(check.accepted), "objections": list(check.objections)}


_ALWAYS = ("bound", "quantity", "value", "kind", "adjacency", "assumes", "reference", "best")


def _result_fields(result: Result) -> dict[str, Any]:
    """Return one bound's answer, without unknown fields."""
    fields = result._asdict()
    del fields["title"]
    fields["assumes"], fields["adjacency"] = list(result.assumes), result.written_adjacency
    details = fields.pop("details") or {}
    return {**{k: v for k, v in fields.items() if v is not None or k in _ALWAYS}, **details}
