"""JUnit XML, as Jenkins, GitLab and others read it: a suite per recipe file, a test per case."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from dpcalc.inert import printable, xml_text
from dpcalc.render.check.verdicts import MERGE, changed, checked, circumstances, findings, place, rows, shard_text
from dpcalc.render.numbers import Digits
from dpcalc.render.words.sentences import headline
from dpcalc.report import Case, Check, Report, Status

_ELEMENT = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}
"""A status and the element that tells it; a test that passed has none."""


def render_junit(report: Report, digits: Digits) -> str:
    """Return the report as XML that keeps to the schema of Jenkins' xUnit plugin (junit-10.xsd). No times are told."""
    return "".join(junit_pieces(report, digits))


def junit_pieces(report: Report, digits: Digits) -> Iterator[str]:
    """Yield the lines of `render_junit`."""
    files: dict[str, Counter[str]] = {}
    for check, _ in checked(report):
        files.setdefault(check.file, Counter())[check.status] += 1
    moved = _changes(report)
    missing: dict[str, list[str]] = {}
    for file, name in report.not_selected:
        missing.setdefault(file, []).append(name)
        files.setdefault(file, Counter())
    everything = sum(files.values(), Counter[str]())
    name = f"dpcalc check ({shard_text(report)}; {MERGE})" if report.shard else "dpcalc check"
    start, end = _tags("testsuites", {"name": name, **_counts(everything, len(report.not_selected))}, bool(files))
    yield f"<?xml version='1.0' encoding='us-ascii'?>\n{start}"
    for file, statuses in files.items():
        left_out = len(missing.get(file, ()))
        skipped = str(statuses[Status.SKIPPED] + left_out)
        attributes = {"name": printable(file), **_counts(statuses, left_out), "skipped": skipped}
        any_test = bool(left_out or statuses.total())
        first, last = _tags("testsuite", {**attributes, "file": printable(file)}, any_test)
        yield f"  {first}"
        for check, case in checked(report):
            if check.file == file:
                changes = moved.get((os.path.normpath(file), check.name), [])
                yield _written(_test(check, case, digits, changes))
        for name in missing.get(file, ()):
            test = ElementTree.Element("testcase", classname=_class(file), name=printable(name))
            ElementTree.SubElement(test, "skipped", message="not selected", type="not selected")
            yield _written(test)
        yield f"  {last}" if last else ""
    yield end


def _tags(name: str, attributes: dict[str, str], inside: bool) -> tuple[str, str]:
    """Return the lines that begin and end an element; without anything ``inside``, it is one."""
    element = ElementTree.Element(name, attributes)
    element.text = "\n" if inside else None
    start, _, end = _text(element).partition("\n")
    return f"{start}\n", f"{end}\n" if inside else ""


def _written(test: ElementTree.Element) -> str:
    """Return the lines of a test at its place in the document."""
    ElementTree.indent(test, level=2)
    return f"    {_text(test)}\n"


def _text(element: ElementTree.Element) -> str:
    text: bytes = ElementTree.tostring(element, encoding="us-ascii")
    return xml_text(text.decode("ascii"))


def _changes(report: Report) -> dict[tuple[str, str], list[str]]:
    """Return what changed since the baseline, by file and name of the case."""
    changes: dict[tuple[str, str], list[str]] = {}
    for change in report.changes or ():
        changes.setdefault((change.file, change.name), []).append(changed(change))
    return changes


def _counts(statuses: Counter[str], left_out: int) -> dict[str, str]:
    return {
        "tests": str(statuses.total() + left_out),
        "failures": str(statuses[Status.FAILED]),
        "errors": str(statuses[Status.ERROR]),
    }


def _test(check: Check, case: Case, digits: Digits, changes: list[str]) -> ElementTree.Element:
    test = ElementTree.Element("testcase", classname=_class(check.file), name=printable(check.name))
    if check.status in _ELEMENT:
        reasons = findings(check, case, digits)
        element = ElementTree.SubElement(test, _ELEMENT[check.status], message=reasons[0], type=_kind(check))
        element.text = "\n".join([place(check), *reasons])
    output = ElementTree.SubElement(test, "system-out")
    output.text = "\n".join([*_lines(check, case, digits), *changes])
    return test


def _class(file: str) -> str:
    """Return a path as servers show classes: ``recipes.budget`` of recipes/budget.yaml."""
    return printable(os.path.splitext(file)[0].replace("\\", "/").replace("/", ".").strip("."))


def _kind(check: Check) -> str:
    return {Status.FAILED: "gate", Status.SKIPPED: "skipped"}.get(check.status, f"exit code {check.exit_code}")


def _lines(check: Check, case: Case, digits: Digits) -> list[str]:
    lines = [place(check), *(printable(line) for line in headline(case, digits))]
    if case.best is not None:
        lines.append(f"by {printable(case.best.reference)} ({case.best.bound}), assuming:")
        lines += [f"- {printable(text)}" for text in case.best.assumes]
    gates = rows(check, case, digits) if case.assertions else []
    lines += [f"{g.status}: {g.quantity} {g.limit} (value {g.value}, slack {g.slack or 'none'})" for g in gates]
    about = circumstances(check, case, digits)
    lines += [*([about] if about else []), *(f"note: {printable(text)}" for text in case.notes)]
    return [*lines, *(f"warning: {printable(text)}" for text in case.warnings)]
