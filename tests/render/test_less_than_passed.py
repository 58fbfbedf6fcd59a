"""What is less than a verdict on a private model is never shown as one: by no page, badge, notebook or text."""

import json
import re
from xml.etree import ElementTree

import pytest

from dpcalc.checked import Assertion, Shard
from dpcalc.engine.ask import ask
from dpcalc.render import Asked
from dpcalc.render.badge import render_badge
from dpcalc.render.check import render
from dpcalc.render.check.text import render as render_text
from dpcalc.render.notebook import render_notebook
from dpcalc.report import Case, Report
from tests.render.test_check_reports import EPSILON, ERROR, FAILED, PASSED, case, junit_errors
from tests.render.test_page import QUESTION, RUN, Tree, inert, page

TRAINING = {
    "private": False, "why_not_private": "seeded: the noise can be drawn again from the seed 3", "metrics": {},
    "non_private": None, "records": 9, "test_records": 0, "norm": 2,
}  # fmt: skip
SEEDED = case(EPSILON)._replace(training=TRAINING)
UNSAID = SEEDED._replace(training={**TRAINING, "why_not_private": None})
REFUSED = case(gates=[Assertion("error==not_applicable", True, "not_applicable", None)])
SHARD = Shard(3, 3, 7, (2,), (("a.yaml", False),), "0", "{}")


def badge(report: Report) -> tuple[object, object]:
    found = json.loads(render_badge(report, Asked(file="a.json")))
    return found["message"], found["color"]


def notebook(*cases: Case, command: str = "check", shard: Shard | None = None) -> str:
    return Tree(render_notebook(Report(command, cases, shard=shard))).text


# --- models that are not private --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [SEEDED, UNSAID])
@pytest.mark.parametrize("checked", [True, False])
def test_the_badge_of_a_model_that_is_not_private_is_red(seeded: Case, checked: bool) -> None:
    found = seeded if checked else seeded._replace(check=None)
    assert badge(Report("check" if checked else "train", (found,))) == ("not private", "red")
    assert badge(Report("check" if checked else "train", (PASSED, found))) == ("not private", "red")


def test_the_page_of_a_model_that_is_not_private_says_so_in_its_headline() -> None:
    for report in (Report("check", (SEEDED,)), Report("train", (SEEDED._replace(check=None),))):
        tree = inert(page(report))
        assert tree.all("header")[0]["class"] == "bad"
        assert "Not private" in " ".join(words for tag, words in tree.texts if tag == "h1")
        answers = re.findall(r"(.{70})epsilon \u2264 1.23457", tree.text)
        assert len(answers) == 3
        for answer in answers:
            assert "Not of this model, only with noise that nobody can draw again: " in answer
        assert "What holds" not in tree.text
        assert "NOT PRIVATE: seeded" in tree.text


def test_no_picture_says_what_holds_of_a_model_that_is_not_private() -> None:
    drawn = ask("rdp", RUN, QUESTION)
    assert inert(page(Report("rdp", (drawn,)))).all("figure")
    tree = inert(page(Report("train", (drawn._replace(training=TRAINING),))))
    assert not tree.all("img")
    assert "How tight it is" not in tree.text
    assert "What an attacker can do, with noise that nobody can draw again" in tree.text


def test_a_notebook_says_first_that_a_model_is_not_private() -> None:
    for cases in ((SEEDED,), (SEEDED, PASSED), (SEEDED._replace(check=None),)):
        assert notebook(*cases).startswith("NOT PRIVATE: seeded")


def test_a_check_counts_the_models_that_are_not_private() -> None:
    report = Report("check", (SEEDED, PASSED))
    assert "2 of 2 cases passed, 1 NOT PRIVATE" in render_text(report)
    assert "1 NOT PRIVATE" in render(report, "markdown")


@pytest.mark.parametrize("seeded", [SEEDED, UNSAID])
def test_no_table_says_that_a_model_that_is_not_private_passed(seeded: Case) -> None:
    report = Report("check", (seeded, PASSED))
    first, second = render_text(report).splitlines()[1:3]
    assert (first.startswith("NOT PRIVATE  "), second.startswith("pass  ")) == (True, True)
    first, second = render_text(report, color=True).splitlines()[1:3]
    assert (first.startswith("\x1b[1;31mNOT PRIVATE"), second.startswith("\x1b[32mpass")) == (True, True)
    table = [line for line in render(report, "markdown").splitlines() if line.startswith("| ")]
    assert [line.split(" | ")[0] for line in table[2:]] == ["| **NOT PRIVATE**", "| pass"]


# --- cases that did not pass ------------------------------------------------------------------------------------------


def test_a_notebook_shows_the_verdict_of_cases_without_gates() -> None:
    strict = case(EPSILON, status="failed", message="strict: no gate", code=1)
    assert notebook(strict).startswith("Not passed 0 of 1 cases passed, 1 failed")
    assert "strict: no gate" in notebook(strict)
    assert "no guarantee applies" in notebook(ERROR)
    assert "hint: give --records" in notebook(ERROR)
    several = notebook(ERROR, FAILED)
    assert re.search("ERROR impossible at [^:]+:3:5 no guarantee applies", several)
    assert re.search("FAIL too much at [^:]+:9:5 epsilon\u22641 failed: value 1.23457", several)


# --- a shard alone ----------------------------------------------------------------------------------------------------


def test_one_shard_is_never_green() -> None:
    assert badge(Report("check", (PASSED,), shard=SHARD)) == ("shard 3 of 3: passed so far", "yellow")
    assert badge(Report("check", (FAILED,), shard=SHARD)) == ("shard 3 of 3: not passed", "red")
    tree = inert(page(Report("check", (PASSED,), shard=SHARD)))
    assert tree.all("header")[0]["class"] == "part"
    assert "Shard 3 of 3: passed so far" in " ".join(words for tag, words in tree.texts if tag == "h1")


def test_every_report_of_a_shard_names_it_and_the_merge() -> None:
    report = Report("check", (PASSED,), shard=SHARD)
    shown = (render_text(report), notebook(PASSED, shard=SHARD), *(render(report, kind) for kind in _KINDS))
    for text in (*shown, Tree(page(report)).text):
        assert "shard 3 of 3" in text.lower()
        assert "dpcalc merge gives the verdict" in text
    assert "shard 3 of 3" in render_text(report).splitlines()[-1]
    assert junit_errors(render(report, "junit")) == []
    assert "shard" in ElementTree.fromstring(render(report, "junit")).attrib["name"]


_KINDS = ("markdown", "github", "junit")


# --- less than a gate -------------------------------------------------------------------------------------------------


def test_a_case_without_a_gate_is_a_reservation() -> None:
    report = Report("check", (PASSED, case(EPSILON)))
    assert badge(report) == ("passed, 1 case without a gate: epsilon 1.24 (<= 2)", "yellow")
    text = Tree(page(report)).text
    assert "Passed, with reservations" in text
    assert "1 case has no gate" in text


def test_a_refusal_that_is_expected_guarantees_nothing() -> None:
    assert badge(Report("check", (REFUSED,))) == ("refused as expected", "lightgrey")
    tree = inert(page(Report("check", (REFUSED,))))
    assert tree.all("header")[0]["class"] == "plain"
    assert "Refused as expected 1 refusal as expected; no gate guarantees anything." in tree.text
    assert notebook(REFUSED).startswith("Refused as expected")
    assert badge(Report("check", (REFUSED, PASSED)))[1] == "brightgreen"
    assert "1 case was refused as expected and has no guarantee" in Tree(page(Report("check", (REFUSED, PASSED)))).text
