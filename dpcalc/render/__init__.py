"""Renderers: a report becomes text. Each is imported when its format is asked for."""

from __future__ import annotations

from dpcalc.report import Report

FORMATS = ("table", "plain", "json", "jsonl", "csv", "markdown", "statement", "explain", "bibtex")


def render(report: Report, format: str, precision: int = 6, *, color: bool | None = None) -> str:
    """Return the report in one of `FORMATS`; ``precision`` and ``color`` matter to human-readable ones only."""
    if format in ("json", "jsonl", "csv"):
        from dpcalc.render import machine

        return {"json": machine.render_json, "jsonl": machine.render_jsonl, "csv": machine.render_csv}[format](report)
    if format == "markdown":
        from dpcalc.render.prose import render_markdown

        return render_markdown(report, precision)
    if format == "statement":
        from dpcalc.render.prose import render_statement

        return render_statement(report, precision)
    if format in ("explain", "bibtex"):
        from dpcalc.render import explain

        return explain.render_explain(report, precision) if format == "explain" else explain.render_bibtex(report)
    if format == "table":
        from dpcalc.render import table

        return table.render(report, precision, color=color)
    from dpcalc.render import plain

    return plain.render(report, precision)
