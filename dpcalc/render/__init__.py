"""Renderers: a report becomes text. Each is imported when its format is asked for."""

from __future__ import annotations

from dpcalc.report import Report

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "statement", "explain", "bibtex")


def render(report: Report, format: str, precision: int = 6, *, color: bool | None = None) -> str:
    """Return the report in one of `FORMATS`; ``precision`` and ``color`` matter to human-readable ones only."""
    if format in ("json", "jsonl", "csv"):
        from dpcalc.render import machine

        return {"json": machine.render_json, "jsonl": machine.render_jsonl, "csv": machine.render_csv}[format](report)
    if format in ("markdown", "statement"):
        from dpcalc.render import prose

        return (prose.render_markdown if format == "markdown" else prose.render_statement)(report, precision)
    if format in ("explain", "bibtex"):
        from dpcalc.render import explain

        return explain.render_explain(report, precision) if format == "explain" else explain.render_bibtex(report)
    if report.command == "check":
        from dpcalc.render import checks

        return checks.render(report, precision, color=format == "table" and color is not False)
    if format == "table":
        from dpcalc.render import table

        return table.render(report, precision, color=color)
    from dpcalc.render import plain

    return plain.render(report, precision)
