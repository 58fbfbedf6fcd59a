"""The badge: never green for less than all that was asked."""

import itertools
import json
from xml.etree import ElementTree

import pytest

from dpcalc.checked import Assertion
from dpcalc.render import Asked
from dpcalc.render.badge import render_badge
from dpcalc.report import Report
from tests.render.test_check_reports import EPSILON, ERROR, FAILED, HELD, HOSTILE, PASSED, SKIPPED, case
from tests.render.test_page import contrast

BARE = case(EPSILON)
NAMED = PASSED._replace(assertions=(Assertion("bound==iteration.pnsgd", True, "iteration.pnsgd", None),))
GREEN = "#136533"


def endpoint(report: Report) -> dict[str, object]:
    found: dict[str, object] = json.loads(render_badge(report, Asked(file="a.json")))
    assert set(found) <= {"schemaVersion", "label", "message", "color", "isError"}
    assert found["schemaVersion"] == 1
    return found


def test_green_only_where_every_gate_held_and_nothing_was_left_out() -> None:
    for cases in itertools.product((PASSED, FAILED, ERROR, SKIPPED, BARE, NAMED), repeat=2):
        for not_selected in ((), (("a.yaml", "b"),)):
            report = Report("check", cases, not_selected)
            held = all(one is PASSED for one in cases) and not not_selected
            assert (endpoint(report)["color"] == "brightgreen") == held
            assert (GREEN in render_badge(report, Asked(file="a.svg"))) == held
    assert endpoint(Report("check", ()))["color"] == "lightgrey"


def test_the_gate_with_the_least_room_is_named() -> None:
    assert endpoint(Report("check", (PASSED,)))["message"] == "passed: epsilon 1.24 (<= 2)"
    failed = endpoint(Report("check", (PASSED, FAILED)))
    assert failed["message"] == "not passed: epsilon 1.24 (<=1)"
    assert failed["isError"] is True
    near = HELD._replace(text="epsilon <= 1.3")
    assert endpoint(Report("check", (PASSED, case(EPSILON, gates=[near]))))["message"] == (
        "passed: epsilon 1.24 (<= 1.3)"
    )


def test_a_failure_that_is_no_gate_is_not_told_as_one() -> None:
    assert endpoint(Report("check", (PASSED, ERROR)))["message"] == "not passed: see the report"


def test_without_a_gate_the_answer_is_shown() -> None:
    answer = Report("rdp", (BARE._replace(check=None),))
    assert endpoint(answer) == {
        "schemaVersion": 1, "label": "privacy", "message": "no gate: epsilon <= 1.24 at delta = 1e-06",
        "color": "lightgrey",
    }  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_breaks_out(text: str) -> None:
    report = Report("check", (case(EPSILON, name=text, file=text, gates=[HELD._replace(text=text)]),))
    message = endpoint(report)["message"]
    assert isinstance(message, str)
    assert len(message) <= 60
    root = ElementTree.fromstring(render_badge(report, Asked(file="A.SVG")))
    assert [child.tag.rpartition("}")[2] for child in root] == ["title", "desc", "rect", "rect", "g"]
    assert root.attrib["role"] == "img"
    for rect in root.findall("{*}rect"):
        assert contrast(rect.attrib["fill"], "#fff") >= 4.5
