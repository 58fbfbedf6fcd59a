"""JUnit XML, as Jenkins, GitLab and others read it: a suite per recipe file, a test per case."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from dpcalc.inert import printable, xml_text
from dpcalc.render.check.verdicts import MERGE, Judged, changed, checked, judged, place, shard_text
from dpcalc.render.numbers import Digits
from dpcalc.render.words.sentences import headline
from dpcalc.report import Check, Report, Status

_ELEMENT = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}
"""A status and the element that tells it; a test that passed has none."""


def junit_pieces(report: Report, digits: Digits) -> Iterator[str]:
    """Yield lines of XML that keeps to the schema of Jenkins' xUnit plugin (junit-10.xsd). No times are told."""
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
        for one in judged(report, digits):
            if one.check.file == file:
                yield _written(_test(one, moved.get((os.path.normpath(file), one.check.name), [])))
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


def _test(one: Judged, changes: list[str]) -> ElementTree.Element:
    check = one.check
    test = ElementTree.Element("testcase", classname=_class(check.file), name=one.name)
    if check.status in _ELEMENT:
        reasons = one.findings
        element = ElementTree.SubElement(test, _ELEMENT[check.status], message=reasons[0], type=_kind(check))
        element.text = "\n".join([place(check), *reasons])
    output = ElementTree.SubElement(test, "system-out")
    output.text = "\n".join([*_lines(one), *changes])
    return test


def _class(file: str) -> str:
    """Return a path as servers show classes: ``recipes.budget`` of recipes/budget.yaml."""
    return printable(os.path.splitext(file)[0].replace("\\", "/").replace("/", ".").strip("."))


def _kind(check: Check) -> str:
    return {Status.FAILED: "gate", Status.SKIPPED: "skipped"}.get(check.status, f"exit code {check.exit_code}")


def _lines(one: Judged) -> Iterator[str]:
    case = one.case
    yield place(one.check)
    yield from map(printable, headline(case, one.digits))
    if case.best is not None:
        yield f"by {printable(case.best.reference)} ({case.best.bound}), assuming:"
        yield from (f"- {printable(text)}" for text in case.best.assumes)
    for row in one.rows if case.assertions else ():
        yield f"{row.status}: {row.quantity} {row.limit} (value {row.value}, slack {row.slack or 'none'})"
    yield from filter(None, [one.circumstances])
    yield from (f"note: {printable(text)}" for text in case.notes)
    yield from (f"warning: {printable(text)}" for text in case.warnings)
