"""SARIF 2.1.0, as code scanning reads it: a rule per kind of gate, a result per gate that failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from dpcalc.inert import json_text, printable
from dpcalc.model.parameter import PARAMETERS
from dpcalc.render.check.verdicts import Judged, changed, checked, gate_name, judged
from dpcalc.render.numbers import Digits
from dpcalc.report import Check, Report, Status
from dpcalc.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_JUDGED = "not-judged"
_OBJECTION = "not-accepted"


_RESULTS, _CASES = "@results@", "@cases@"


def sarif_pieces(report: Report, digits: Digits) -> Iterator[str]:
    """Yield lines of the gates that failed, and the cases that could not be judged, as a SARIF log.

    What passed or was skipped is left out: code scanning would show it as an alert.
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
    """Yield what stands before a list, and its items, at a depth of the document."""
    for text in texts:
        yield before + text
        before = ",\n" + "  " * depth


def _about(report: Report, digits: Digits) -> Iterator[str]:
    """Yield the circumstances of every verdict, each by its name."""
    for one in judged(report, digits):
        texts = [one.circumstances, *map(printable, one.case.notes)]
        yield f"{json_text(one.title(True))}: {json_text(texts, 2, 5)}"


def _properties(report: Report) -> dict[str, Any]:
    """Return what is no alert: the circumstances of the verdicts, the cases that were not selected, and the changes."""
    about = {_CASES: None} if next(checked(report), None) is not None else {}
    missing = [f"{printable(file)}: {printable(name)}" for file, name in report.not_selected]
    lists = {"changes": [f"{printable(c.name)}: {changed(c)}" for c in report.changes or ()], "notSelected": missing}
    return {"cases": about, **{name: texts for name, texts in lists.items() if texts}}


def _alerts(one: Judged) -> Iterator[tuple[str, str]]:
    """Yield rule and text of everything wrong with a case."""
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
        "message": {"text": f"{printable(check.name)}: {text}".replace("](", "] (")},  # which would be a link
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(check.file)}, "region": region}}],
        # Where the case stands may change; what it is called and which gate failed identify the finding.
        "partialFingerprints": {"caseAndRule/v1": f"{printable(check.name)} {rule}"},
    }


def _uri(path: str) -> str:
    """Return a path as a URI reference: relative to the root of the checkout, unless it is absolute."""
    quoted = quote(path.encode("utf-8", "surrogatepass").replace(b"\\", b"/"))
    return f"file://{quoted}" if quoted.startswith("/") else quoted
