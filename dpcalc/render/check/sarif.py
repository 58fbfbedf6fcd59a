"""SARIF 2.1.0, as code scanning reads it: a rule per kind of gate, a result per gate that failed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from dpcalc.render.check.words import checked, findings, gate_name, printable
from dpcalc.report import Case, Check, Report
from dpcalc.spec.symbols import SYMBOLS
from dpcalc.version import __version__

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NOT_COMPUTED = "not-computed"


def render_sarif(report: Report, precision: int) -> str:
    """Return the gates that failed, and the cases that could not be computed, as a SARIF log.

    What passed or was skipped is left out: code scanning would show it as an alert.
    """
    found = [f for check, case in checked(report) for f in _found(check, case, precision)]
    rules = list(dict.fromkeys(rule for rule, _, _ in found))
    driver = {"name": "dpcalc", "version": __version__, "rules": [_rule(rule) for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(rule, rules.index(rule), check, text) for rule, check, text in found],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _found(check: Check, case: Case, precision: int) -> Iterator[tuple[str, Check, str]]:
    """Yield rule, place and text of everything wrong with a case."""
    failed = [gate for gate in case.assertions if not gate.passed]
    if check.status in ("failed", "error") and not failed:
        rule = _NOT_COMPUTED if check.status == "error" else "gate"
        yield rule, check, "\n".join(findings(check, case, precision))
    for gate in failed if check.status != "skipped" else ():
        alone = case._replace(assertions=(gate,))
        name = gate_name(gate.text).replace("_", "-")
        yield f"gate/{name}" if name else "gate", check, "\n".join(findings(check, alone, precision))


def _rule(rule: str) -> dict[str, Any]:
    if rule == _NOT_COMPUTED:
        short, full = "The case could not be computed", "No guarantee is known where a gate asks for one."
    else:
        name = rule.partition("/")[2].replace("-", "_")
        short = f"A gate on {name} failed" if name else "An expectation failed"
        meaning = f" ({SYMBOLS[name].help})" if name in SYMBOLS else ""
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
