"""JUnit XML, as Jenkins, GitLab and others read it: a suite per recipe file, a test per case."""

from __future__ import annotations

from xml.etree import ElementTree

from dpcalc.render.check.words import checked, findings, place, printable, rows
from dpcalc.render.text import headline
from dpcalc.report import Case, Check, Report

_ELEMENT = {"failed": "failure", "error": "error", "skipped": "skipped"}
"""A status and the element that tells it; a test that passed has none."""


def render_junit(report: Report, precision: int) -> str:
    """Return the report as XML that keeps to the schema of Jenkins' xUnit plugin (junit-10.xsd). No times are told."""
    files: dict[str, list[tuple[Check, Case]]] = {}
    for check, case in checked(report):
        files.setdefault(check.file, []).append((check, case))
    everything = [check for cases in files.values() for check, _ in cases]
    root = ElementTree.Element("testsuites", {"name": "dpcalc check", **_counts(everything)})
    for file, cases in files.items():
        statuses = [check for check, _ in cases]
        told = {"name": printable(file), **_counts(statuses), "skipped": _count(statuses, "skipped")}
        suite = ElementTree.SubElement(root, "testsuite", {**told, "file": printable(file)})
        for check, case in cases:
            _add_test(suite, check, case, precision)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _counts(checks: list[Check]) -> dict[str, str]:
    return {
        "tests": str(len(checks)),
        "failures": _count(checks, "failed"),
        "errors": _count(checks, "error"),
    }


def _count(checks: list[Check], status: str) -> str:
    return str(sum(check.status == status for check in checks))


def _add_test(suite: ElementTree.Element, check: Check, case: Case, precision: int) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname=printable(check.file), name=printable(check.name))
    if check.status in _ELEMENT:
        told = findings(check, case, precision)
        element = ElementTree.SubElement(test, _ELEMENT[check.status], message=told[0], type=_kind(check))
        element.text = "\n".join([place(check), *told])
    output = ElementTree.SubElement(test, "system-out")
    output.text = "\n".join(_lines(check, case, precision))


def _kind(check: Check) -> str:
    return {"failed": "gate", "skipped": "skipped"}.get(check.status, f"exit code {check.exit_code}")


def _lines(check: Check, case: Case, precision: int) -> list[str]:
    lines = [place(check), *(printable(line) for line in headline(case, precision))]
    if case.best is not None:
        lines.append(f"by {printable(case.best.reference)} ({case.best.bound}), assuming:")
        lines += [f"- {printable(text)}" for text in case.best.assumes]
    gates = rows(check, case, precision) if case.assertions else []
    lines += [f"{g.status}: {g.quantity} {g.limit} (value {g.value}, slack {g.slack or 'none'})" for g in gates]
    return [*lines, *(f"warning: {printable(text)}" for text in case.warnings)]
