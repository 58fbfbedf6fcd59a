"""JUnit XML, as Jenkins, GitLab and others read it: a suite per recipe file, a test per case."""

from __future__ import annotations

import os
from xml.etree import ElementTree

from dpcalc.inert import printable, xml_text
from dpcalc.render.check.verdicts import MERGE, changed, checked, circumstances, findings, place, rows, shard_text
from dpcalc.render.sentences import headline
from dpcalc.report import Case, Check, Report, Status

_ELEMENT = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}
"""A status and the element that tells it; a test that passed has none."""


def render_junit(report: Report, precision: int) -> str:
    """Return the report as XML that keeps to the schema of Jenkins' xUnit plugin (junit-10.xsd). No times are told."""
    files: dict[str, list[tuple[Check, Case]]] = {}
    for check, case in checked(report):
        files.setdefault(check.file, []).append((check, case))
    moved = _changes(report)
    missing: dict[str, list[str]] = {}
    for file, name in report.not_selected:
        missing.setdefault(file, []).append(name)
        files.setdefault(file, [])
    everything = [check for cases in files.values() for check, _ in cases]
    name = f"dpcalc check ({shard_text(report)}; {MERGE})" if report.shard else "dpcalc check"
    root = ElementTree.Element("testsuites", {"name": name, **_counts(everything, len(report.not_selected))})
    for file, cases in files.items():
        statuses = [check for check, _ in cases]
        left_out = len(missing.get(file, ()))
        skipped = str(int(_count(statuses, Status.SKIPPED)) + left_out)
        attributes = {"name": printable(file), **_counts(statuses, left_out), "skipped": skipped}
        suite = ElementTree.SubElement(root, "testsuite", {**attributes, "file": printable(file)})
        for check, case in cases:
            _add_test(suite, check, case, precision, moved.get((os.path.normpath(file), check.name), []))
        for name in missing.get(file, ()):
            test = ElementTree.SubElement(suite, "testcase", classname=_class(file), name=printable(name))
            ElementTree.SubElement(test, "skipped", message="not selected", type="not selected")
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return xml_text(text.decode("ascii")) + "\n"


def _changes(report: Report) -> dict[tuple[str, str], list[str]]:
    """Return what changed since the baseline, by file and name of the case."""
    changes: dict[tuple[str, str], list[str]] = {}
    for change in report.changes or ():
        changes.setdefault((change.file, change.name), []).append(changed(change))
    return changes


def _counts(checks: list[Check], left_out: int) -> dict[str, str]:
    return {
        "tests": str(len(checks) + left_out),
        "failures": _count(checks, Status.FAILED),
        "errors": _count(checks, Status.ERROR),
    }


def _count(checks: list[Check], status: Status) -> str:
    return str(sum(check.status == status for check in checks))


def _add_test(suite: ElementTree.Element, check: Check, case: Case, precision: int, changes: list[str]) -> None:
    test = ElementTree.SubElement(suite, "testcase", classname=_class(check.file), name=printable(check.name))
    if check.status in _ELEMENT:
        reasons = findings(check, case, precision)
        element = ElementTree.SubElement(test, _ELEMENT[check.status], message=reasons[0], type=_kind(check))
        element.text = "\n".join([place(check), *reasons])
    output = ElementTree.SubElement(test, "system-out")
    output.text = "\n".join([*_lines(check, case, precision), *changes])


def _class(file: str) -> str:
    """Return a path as servers show classes: ``recipes.budget`` of recipes/budget.yaml."""
    return printable(os.path.splitext(file)[0].replace("\\", "/").replace("/", ".").strip("."))


def _kind(check: Check) -> str:
    return {Status.FAILED: "gate", Status.SKIPPED: "skipped"}.get(check.status, f"exit code {check.exit_code}")


def _lines(check: Check, case: Case, precision: int) -> list[str]:
    lines = [place(check), *(printable(line) for line in headline(case, precision))]
    if case.best is not None:
        lines.append(f"by {printable(case.best.reference)} ({case.best.bound}), assuming:")
        lines += [f"- {printable(text)}" for text in case.best.assumes]
    gates = rows(check, case, precision) if case.assertions else []
    lines += [f"{g.status}: {g.quantity} {g.limit} (value {g.value}, slack {g.slack or 'none'})" for g in gates]
    about = circumstances(check, case, precision)
    lines += [*([about] if about else []), *(f"note: {printable(text)}" for text in case.notes)]
    return [*lines, *(f"warning: {printable(text)}" for text in case.warnings)]
