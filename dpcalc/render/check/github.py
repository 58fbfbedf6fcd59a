"""Reports of checks for CI servers: annotations of GitHub Actions, SARIF and JUnit XML.

Annotations are workflow commands that mark the places of cases that did not pass. SARIF 2.1.0 is for code scanning: a
rule per kind of gate, a result per failed gate. JUnit XML is for Jenkins, GitLab and others: a suite per recipe file, a
test per case.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from dpcalc.checked import Check, Status
from dpcalc.inert import json_text, printable, xml_text
from dpcalc.model.parameter import PARAMETERS
from dpcalc.render.asked import Asked
from dpcalc.render.check.verdicts import (
    MERGE,
    Judged,
    changed,
    checked,
    gate_name,
    judged,
    place,
    shard_text,
    summary,
)
from dpcalc.render.layout import listed
from dpcalc.render.numbers import Digits
from dpcalc.render.words.sentences import headline
from dpcalc.report import Report
from dpcalc.version import __version__

MAX = 50
_LEVEL = {Status.FAILED: "error", Status.ERROR: "error", Status.SKIPPED: "notice"}


def render_github(report: Report, asked: Asked) -> str:
    """Return one annotation per case that did not pass or warned, and one that counts them all."""
    lines = [line for one in judged(report, asked.digits) for line in _annotations(one)]
    names = [printable(name) for _, name in report.not_selected]
    counts = [summary(report), *([f"not selected: {listed(names, MAX)}"] if names else [])]
    total = f"::notice title=dpcalc check::{_data(chr(10).join(counts))}"
    return "".join(f"{line}\n" for line in [*lines, *_changes(report), total])


def _changes(report: Report) -> list[str]:
    """Return a warning for each change that asks for less than the baseline, and a notice for each other one."""
    changes = report.changes or ()
    lines = []
    for change in changes[:MAX]:
        level, title = "warning" if change.weaker else "notice", _property(f"dpcalc check: {change.name}")
        lines.append(f"::{level} file={_property(change.file)},title={title}::{_data(changed(change))}")
    left_out = len(changes) - MAX
    return [
        *lines,
        *([f"::notice title=dpcalc check::{left_out} more changes since the baseline"] if left_out > 0 else []),
    ]


def _annotations(one: Judged) -> Iterator[str]:
    check, case = one.check, one.case
    yield from (_command("warning", check, printable(text)) for text in case.warnings)
    if check.status in _LEVEL:
        about = [text] if (text := one.circumstances) else []
        notes = [f"note: {printable(note)}" for note in case.notes]
        yield _command(_LEVEL[check.status], check, "\n".join([*one.findings, *about, *notes]))
    elif check.accepted:
        yield _command("notice", check, one.circumstances)


def _command(level: str, check: Check, message: str) -> str:
    properties = {
        "file": check.file,
        "line": str(check.line),
        "col": str(check.column),
        "title": f"dpcalc check: {check.name}",
    }
    where = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {where}::{_data(message)}"


def _data(text: str) -> str:
    """Escape a message for a workflow command; line breaks are kept."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(printable(text)).replace(":", "%3A").replace(",", "%2C")


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_JUDGED = "not-judged"
_OBJECTION = "not-accepted"


_RESULTS, _CASES = "@results@", "@cases@"


def sarif_pieces(report: Report, digits: Digits) -> Iterator[str]:
    """Yield lines of a SARIF log of the gates that failed and the cases that could not be judged.

    Passed and skipped cases are omitted: code scanning would show them as alerts.
    """

    def alerts() -> Iterator[tuple[str, Check, str]]:
        return ((rule, one.check, text) for one in judged(report, digits) for rule, text in _alerts(one))

    rules = {rule: place for place, rule in enumerate(dict.fromkeys(rule for rule, _, _ in alerts()))}
    driver = {"name": "dpcalc", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_RESULTS] if rules else [],
        "properties": _properties(report),
    }
    text = json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, 2) + "\n"
    if rules:
        before, _, text = text.partition(f'"{_RESULTS}"')
        results = (_result(rule, rules[rule], check, alert) for rule, check, alert in alerts())
        yield from _listed(before, (json_text(result, 2, 4) for result in results), 4)
    if next(checked(report), None) is not None:
        before, _, text = text.partition(f'"{_CASES}": null')
        yield from _listed(before, _about(report, digits), 5)
    yield text


def _listed(before: str, texts: Iterator[str], depth: int) -> Iterator[str]:
    """Yield the text before a list and its items, at a depth of the document."""
    for text in texts:
        yield before + text
        before = ",\n" + "  " * depth


def _about(report: Report, digits: Digits) -> Iterator[str]:
    """Yield the circumstances of every verdict by the name of its case."""
    for one in judged(report, digits):
        texts = [one.circumstances, *map(printable, one.case.notes)]
        yield f"{json_text(one.title(True))}: {json_text(texts, 2, 5)}"


def _properties(report: Report) -> dict[str, Any]:
    """Return all but the alerts: the circumstances of the verdicts, the unselected cases, and the changes."""
    about = {_CASES: None} if next(checked(report), None) is not None else {}
    missing = [f"{printable(file)}: {printable(name)}" for file, name in report.not_selected]
    lists = {"changes": [f"{printable(c.name)}: {changed(c)}" for c in report.changes or ()], "notSelected": missing}
    return {"cases": about, **{name: texts for name, texts in lists.items() if texts}}


def _alerts(one: Judged) -> Iterator[tuple[str, str]]:
    """Yield the rule and the text of every fault of a case."""
    case, check = one.case, one.check
    failed = [gate for gate in case.assertions if not gate.passed]
    about = [text] if (text := one.circumstances) else []
    if check.status in (Status.FAILED, Status.ERROR) and not failed and not check.objections:
        yield _NOT_JUDGED if check.status == Status.ERROR else "gate", "\n".join([*one.findings, *about])
    for gate in failed if check.status != Status.SKIPPED else ():
        alone = Judged(case._replace(assertions=(gate,), check=check._replace(objections=())), one.digits)
        name = gate_name(gate.text).replace("_", "-")
        yield f"gate/{name}" if name else "gate", "\n".join([*alone.findings, *about])
    if check.objections:
        yield _OBJECTION, "\n".join([*map(printable, check.objections), *about])


def _rule(rule: str) -> dict[str, Any]:
    if rule == _NOT_JUDGED:
        short, full = (
            "The case could not be judged",
            "Its recipe is malformed, or no theorem answers it: none of its gates is known to hold.",
        )
    elif rule == _OBJECTION:
        short, full = (
            "The case fails although its gates may hold",
            "What its gates are about is weaker than a reader takes it for, or less than a strict check demands.",
        )
    else:
        name = rule.partition("/")[2].replace("-", "_")
        short = f"A gate on {name} failed" if name else "An expectation failed"
        meaning = f" ({PARAMETERS[name].help})" if name in PARAMETERS else ""
        full = f"The best guarantee{meaning} does not keep what the recipe promises; unrounded values are compared."
    return {
        "id": rule,
        "shortDescription": {"text": short},
        "fullDescription": {"text": full},
        "help": {"text": f"{full} `dpcalc explain` states the theorem that the result names and what it assumes."},
        "defaultConfiguration": {"level": "error"},
    }


def _result(rule: str, index: int, check: Check, text: str) -> dict[str, Any]:
    region = {"startLine": max(check.line, 1), "startColumn": max(check.column, 1)}
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": f"{printable(check.name)}: {text}".replace("](", "] (")},  # "](" would make a link
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(check.file)}, "region": region}}],
        # The place of a case may change; its name and the failed gate identify the finding.
        "partialFingerprints": {"caseAndRule/v1": f"{printable(check.name)} {rule}"},
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference: relative to the root of the checkout, unless it is absolute."""
    quoted = quote(path.encode("utf-8", "surrogatepass").replace(b"\\", b"/"))
    return f"file://{quoted}" if quoted.startswith("/") else quoted


_ELEMENT = {Status.FAILED: "failure", Status.ERROR: "error", Status.SKIPPED: "skipped"}
"""The element for each status; a test that passed has none."""


def junit_pieces(report: Report, digits: Digits) -> Iterator[str]:
    """Yield lines of XML in the schema of Jenkins' xUnit plugin (junit-10.xsd), without times."""
    files: dict[str, Counter[str]] = {}
    for check, _ in checked(report):
        files.setdefault(check.file, Counter())[check.status] += 1
    moved = _junit_changes(report)
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
    """Return the lines that begin and end an element; a single line if nothing is ``inside``."""
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


def _junit_changes(report: Report) -> dict[tuple[str, str], list[str]]:
    """Return the changes since the baseline, by file and name of the case."""
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
        kind = {Status.FAILED: "gate", Status.SKIPPED: "skipped"}.get(check.status, f"exit code {check.exit_code}")
        reasons = one.findings
        element = ElementTree.SubElement(test, _ELEMENT[check.status], message=reasons[0], type=kind)
        element.text = "\n".join([place(check), *reasons])
    ElementTree.SubElement(test, "system-out").text = "\n".join([*_lines(one), *changes])
    return test


def _class(file: str) -> str:
    """Return a path as servers show classes: ``recipes.budget`` of recipes/budget.yaml."""
    return printable(os.path.splitext(file)[0].replace("\\", "/").replace("/", ".").strip("."))


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
