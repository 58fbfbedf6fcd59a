"""Reports of checked recipes: their schemas, what they say, and names that would break out of them."""

import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpcalc import render as rendering
from dpcalc.checked import Assertion, Check
from dpcalc.errors import SpecError
from dpcalc.render.check import KINDS, render
from dpcalc.render.check.baseline import load, snapshot
from dpcalc.report import SCHEMA, Case, Report, Result
from tests.render.xsd import Schema
from tests.schema import conforms

DATA = Path(__file__).resolve().parents[1] / "data"
JUNIT = Schema(DATA / "junit-10.xsd")
SARIF = json.loads((DATA / "sarif-2.1.0.schema.json").read_text(encoding="utf-8"))

EPSILON = Result(
    "iteration.pnsgd", "One pass", "epsilon", 1.23456789, "upper", epsilon=1.23456789, delta=1e-6,
    log_delta=math.log(1e-6), mu=0.3, conversion="exact", assumes=("one pass", "convex"),
    reference="Somebody 2018, Theorem 1", best=True,
)  # fmt: skip
DELTA = EPSILON._replace(quantity="delta", value=2**-30, epsilon=1.0, delta=2**-30, log_delta=-30 * math.log(2))
TINY = EPSILON._replace(quantity="delta", value=5e-324, epsilon=1.0, delta=5e-324, log_delta=-11513.0)
INDEX = EPSILON._replace(quantity="index", value=123)

HOSTILE = (
    "a\n::error::x", "\x1b[31mred", "a|b`c\\|d", "<script>alert(1)</script>", "]]>&<!--", "\ud800\udcff", "\u202eevil",
    "@everyone #1 [x](https://example.org)", "%0A,file=x:y", "```\n# head", "\x00\ufffe\r", "x" * 5000, " ", "",
    "##vso[task.complete result=Succeeded;]x", "###[error]x", "##teamcity[testFinished name='x']", "\x7f\u200b\ufeff",
    "a\r::error::x", " ::set-output name=a::b", "a\n\t::add-mask::x",
)  # fmt: skip


def case(
    *results: Result, name: str = "budget", status: str = "passed", file: str = "recipes/a.yaml", line: int = 3,
    gates: Sequence[Assertion] = (), message: str | None = None, hint: str | None = None, code: int = 0,
    warnings: Sequence[str] = (),
) -> Case:  # fmt: skip
    check = Check(name, "rdp", file, line, 5, status, message, hint, code)
    return Case("pnsgd", {}, results, assertions=tuple(gates), warnings=tuple(warnings), check=check)


HELD = Assertion("epsilon <= 2", True, 1.23456789, 2 - 1.23456789)
BROKEN = Assertion("epsilon<=1", False, 1.23456789, 1 - 1.23456789)
PASSED = case(EPSILON, gates=[HELD])
FAILED = case(EPSILON, name="too much", status="failed", gates=[BROKEN, HELD], code=1, line=9)
ERROR = case(
    name="impossible", file="recipes/b c.yaml", status="error", message="no guarantee applies", hint="give --records",
    code=3, warnings=["slow"],
)  # fmt: skip
SKIPPED = case(name="later", status="skipped", message="skipped by --only")
ALL = Report("check", (PASSED, FAILED, ERROR, SKIPPED))


def test_there_are_no_other_kinds() -> None:
    with pytest.raises(SpecError, match="no report of kind 'pdf'"):
        render(ALL, "pdf")


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_the_same_each_time(kind: str) -> None:
    text = render(ALL, kind)
    assert text == render(ALL, kind)
    assert text.endswith("\n")
    assert text.isascii()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cases", [(), (PASSED,), (case(),), (case(status="failed", message="no"),), (case(EPSILON),)])
def test_reports_of_anything(kind: str, cases: tuple[Case, ...]) -> None:
    text = render(Report("check", cases), kind)
    assert {"junit": junit_errors, "sarif": sarif_errors}.get(kind, lambda _: [])(text) == []


def junit_errors(text: str) -> list[str]:
    return JUNIT.errors(text)


def sarif_errors(text: str) -> list[Any]:
    validator = jsonschema.Draft4Validator(SARIF, format_checker=jsonschema.FormatChecker())
    return [error.message for error in validator.iter_errors(json.loads(text))]


def test_json_is_the_envelope() -> None:
    found = json.loads(render(ALL, "json"))
    conforms(found)
    assert [c["check"]["status"] for c in found["cases"]] == ["passed", "failed", "error", "skipped"]


def test_junit_keeps_to_its_schema() -> None:
    text = render(ALL, "junit")
    assert junit_errors(text) == []
    root = ElementTree.fromstring(text)
    assert root.attrib == {"name": "dpcalc check", "tests": "4", "failures": "1", "errors": "1"}
    assert [suite.attrib["name"] for suite in root] == ["recipes/a.yaml", "recipes/b c.yaml"]
    assert [test.attrib["name"] for test in root.iter("testcase")] == ["budget", "too much", "later", "impossible"]
    assert [test.attrib["classname"] for test in root.iter("testcase")] == [*["recipes.a"] * 3, "recipes.b c"]
    [failure], [error], [skipped] = (list(root.iter(tag)) for tag in ("failure", "error", "skipped"))
    assert failure.attrib["type"] == "gate"
    assert "recipes/a.yaml:9:5" in (failure.text or "")
    assert "epsilon<=1 failed: value 1.23457, slack -0.234568" in failure.attrib["message"]
    assert "Somebody 2018, Theorem 1 (iteration.pnsgd)" in failure.attrib["message"]
    assert error.attrib == {"message": "no guarantee applies", "type": "exit code 3"}
    assert "hint: give --records" in (error.text or "")
    assert skipped.attrib["message"] == "skipped by --only"
    outputs = [output.text or "" for output in root.iter("system-out")]
    assert "by Somebody 2018, Theorem 1 (iteration.pnsgd), assuming:\n- one pass\n- convex" in outputs[0]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('name="budget"', 'nom="budget"'),
        (' tests="4"', ' tests="4" time="soon"'),
        ("<system-out>", "<system-out>\n<b/>"),
        ("<failure ", "<mishap/><failure "),
        ("<testcase ", "text <testcase "),
        ('errors="0"', ""),
    ],
)
def test_the_schema_of_junit_refuses(good: str, bad: str) -> None:
    text = render(ALL, "junit")
    assert good in text
    assert junit_errors(text.replace(good, bad, 1)) != []


def test_sarif_keeps_to_its_schema() -> None:
    text = render(ALL, "sarif")
    assert sarif_errors(text) == []
    [run] = json.loads(text)["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["gate/epsilon", "not-judged"]
    gate, error = run["results"]
    assert [r["ruleIndex"] for r in run["results"]] == [0, 1]
    place = gate["locations"][0]["physicalLocation"]
    assert place == {
        "artifactLocation": {"uri": "recipes/a.yaml"}, "region": {"startLine": 9, "startColumn": 5},
    }  # fmt: skip
    assert error["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "recipes/b%20c.yaml"
    assert gate["message"]["text"].startswith("too much: epsilon<=1 failed: value 1.23457, slack -0.234568, by Some")
    assert sarif_errors(text.replace('"ruleIndex"', '"rulePlace"')) != []


def test_sarif_has_a_result_for_every_gate_that_failed() -> None:
    gates = [BROKEN, Assertion("delta<=1e-9", False, 1e-6, 1e-9 - 1e-6), Assertion("bound==a.b", False, "c.d", None)]
    [run] = json.loads(render(Report("check", (case(EPSILON, gates=gates, status="failed"),)), "sarif"))["runs"]
    assert [r["ruleId"] for r in run["results"]] == ["gate/epsilon", "gate/delta", "gate/bound"]
    assert len({r["partialFingerprints"]["caseAndRule/v1"] for r in run["results"]}) == 3


def test_github_annotations() -> None:
    assert render(ALL, "github").splitlines() == [
        "::error file=recipes/a.yaml,line=9,col=5,title=dpcalc check%3A too much::epsilon<=1 failed: value 1.23457, "
        "slack -0.234568, by Somebody 2018, Theorem 1 (iteration.pnsgd)%0Adelta 1e-06, adjacency replace-one",
        "::warning file=recipes/b c.yaml,line=3,col=5,title=dpcalc check%3A impossible::slow",
        "::error file=recipes/b c.yaml,line=3,col=5,title=dpcalc check%3A impossible::no guarantee applies%0Ahint: "
        "give --records",
        "::notice file=recipes/a.yaml,line=3,col=5,title=dpcalc check%3A later::skipped by --only",
        "::notice title=dpcalc check::1 of 4 cases passed, 1 failed, 1 skipped, 1 could not be judged",
    ]


def test_markdown() -> None:
    lines = render(ALL, "markdown").splitlines()
    assert lines.count("  - `warning: slow`") == 1
    assert lines[0] == "### dpcalc check: 1 of 4 cases passed, 1 failed, 1 skipped, 1 could not be judged"
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[2].startswith("| **ERROR** | `recipes/b c.yaml: impossible` |")
    assert rows[3] == (
        "| **FAIL** | `recipes/a.yaml: too much` | `epsilon` | `1.23457` | `<= 1` | `-0.234568` "
        "| Somebody 2018, Theorem 1 (iteration.pnsgd) |"
    )
    assert rows[-1].startswith("| pass | `recipes/a.yaml: too much` | `epsilon` | `1.23457` | `<= 2` | `0.765432` |")
    assert "- **FAIL** `too much` at `recipes/a.yaml:9:5`" in lines
    assert "  - `hint: give --records`" in lines


def test_numbers_stay_on_their_safe_side() -> None:
    gates = [
        Assertion("epsilon<=2", True, 1.00000001, 0.99999999),
        Assertion("epsilon<=1", False, 1.00000001, -0.00000001234567),
        Assertion("index>=100", True, 123.9999999, 23.9999999),
    ]
    text = render(Report("check", (case(EPSILON, gates=gates, status="failed"),)), "markdown", precision=3)
    assert "| `1.01` | `<= 2` | `0.999` |" in text
    assert "| `1.01` | `<= 1` | `-1.24e-08` |" in text
    assert "| `123` | `>= 100` | `23.9` |" in text
    tiny = case(TINY, gates=[Assertion("delta<=1e-300", True, 5e-324, 10822.0)])
    text = render(Report("check", (tiny,)), "markdown")
    assert "| `delta` | `9.28175e-5001` | `<= 1e-300` | `10822 in ln` |" in text


def test_a_delta_at_its_limit_is_printed_as_the_limit() -> None:
    """The double 1e-5 is above the decimal; 1.00001e-05 beside `<= 1e-05` would look like a wrong verdict."""
    at = EPSILON._replace(quantity="delta", value=1e-5, delta=1e-5, log_delta=math.log(1e-5))
    text = render(Report("check", (case(at, gates=[Assertion("delta <= 1e-05", True, 1e-5, 0.0)]),)), "markdown")
    assert "| `delta` | `1e-05` | `<= 1e-05` | `0` |" in text


def test_a_delta_of_zero_leaves_room_without_end() -> None:
    zero = EPSILON._replace(quantity="delta", value=0.0, epsilon=1.0, delta=0.0, log_delta=-math.inf)
    report = Report("check", (case(zero, gates=[Assertion("delta<=1e-9", True, 0.0, math.inf)]),))
    [found] = json.loads(render(report, "json"))["cases"]
    assert found["assertions"] == [
        {**Assertion("delta<=1e-9", True, 0.0, None)._asdict(), "reason": "slack is infinite"},
    ]
    for kind in KINDS:
        assert "Infinity" not in render(report, kind)
    assert changed(report.cases, report.cases) == ["Against the baseline, nothing has changed."]


def hostile(text: str) -> Report:
    gate = Assertion(f"epsilon<={text}", False, 1.5, -0.5)
    failed = case(EPSILON, name=text, file=f"d/{text}", status="failed", gates=[gate], hint=text, warnings=[text])
    broken = case(name=text, file=text, status="error", message=text, hint=text, code=2)
    return Report("check", (failed._replace(notes=(text,)), broken))


def harmless(text: str) -> bool:
    """Whether no line is a command to a CI server and no character steers a terminal."""
    told = all(c.isprintable() or c == "\n" for c in text)
    return told and not re.search(r"##\w*\[|^\s*::", text, re.MULTILINE)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("format", ["table", "plain", "json", "jsonl", "csv"])
def test_what_is_printed_is_harmless(format: str, text: str) -> None:
    assert harmless(rendering.render(hostile(text), format, color=False))
    assert harmless(
        rendering.render(hostile(text), format, color=True).replace("\x1b[1;31m", "").replace("\x1b[0m", "")
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("kind", KINDS)
def test_names_do_not_break_out(kind: str, text: str) -> None:
    found = render(hostile(text), kind)
    if kind == "github":
        assert harmless(re.sub("^::", "", found, flags=re.MULTILINE))
    else:
        assert harmless(found)
    if kind == "junit":
        assert junit_errors(found) == []
        assert len(list(ElementTree.fromstring(found).iter("testcase"))) == 2
    if kind == "sarif":
        assert sarif_errors(found) == []
        [run] = json.loads(found)["runs"]
        assert not [r for r in run["results"] if "](" in r["message"]["text"]]
    if kind == "github":
        starts = [re.match(r"::(error|warning|notice) ", line) for line in found.splitlines()]
        assert [start[1] for start in starts if start] == ["warning", "error", "error", "notice"]
        assert len(starts) == 4
    if kind == "markdown":
        rows = [line for line in found.splitlines() if line.startswith("| ")]
        assert {row.count("|") for row in rows} == {8}
        outside = re.sub(r"<code>[^<`|\\]*</code>|`[^`|\\]*`", "", "\n".join(found.splitlines()[1:]))
        assert not set(outside) & set("<>`\\@#[]&_")


@given(texts=st.lists(st.text(st.characters(), max_size=20), min_size=4, max_size=4))
def test_any_names_keep_to_the_schemas(texts: list[str]) -> None:
    name, file, message, gate = texts
    failed = case(EPSILON, name=name, file=file, status="failed", gates=[Assertion(gate, False, 1.5, -0.5)])
    error = case(name=name, file=file, status="error", message=message, hint=gate, code=2)
    report = Report("check", (failed, error))
    assert junit_errors(render(report, "junit")) == []
    assert sarif_errors(render(report, "sarif")) == []
    assert len(render(report, "github").splitlines()) == 3
    rows = [line for line in render(report, "markdown").splitlines() if line.startswith("| ")]
    assert {row.count("|") for row in rows} == {8}


def test_markdown_fits_a_comment() -> None:
    many = [case(EPSILON, name=f"case {i} {'x' * 200}", gates=[HELD]) for i in range(500)]
    many += [FAILED._replace(check=many[0].check._replace(status="failed")) for _ in range(500) if many[0].check]
    text = render(Report("check", tuple(many)), "markdown")
    assert "1400 more rows are left out." in text
    assert "pass |" not in text
    assert len(text) < 65536


def test_long_messages_are_cut_to_fit_a_comment() -> None:
    many = [case(name=f"case {i}", status="error", message="|" * 2000, hint="&" * 2000) for i in range(500)]
    text = render(Report("check", tuple(many)), "markdown")
    assert 60_000 < len(text) < 65_536
    assert text.endswith("\nThe rest is left out.\n")


def baseline(*cases: Case) -> dict[str, Any]:
    return dict(json.loads(render(Report("check", cases), "json")))


def changed(before: Sequence[Case], after: Sequence[Case]) -> list[str]:
    text = render(Report("check", tuple(after)), "markdown", baseline=snapshot(baseline(*before)))
    told = text[text.index("Against the baseline") :].splitlines()
    return "\n".join(line for line in told if not line.startswith("- ")).rstrip("\n").splitlines()


def test_nothing_changed() -> None:
    for value in (EPSILON.value, EPSILON.value * (1 + 1e-12)):
        before = case(EPSILON._replace(value=value), gates=[HELD])
        assert changed([before], [PASSED]) == ["Against the baseline, nothing has changed."]


def test_numbers_that_moved() -> None:
    def row(before: Result, after: Result) -> str:
        lines = changed([case(before)], [case(after)])
        assert lines[0] == "Against the baseline: 1 number moved."
        return lines[4]

    assert row(EPSILON._replace(value=1.0), EPSILON._replace(value=1.25)) == (
        "| `budget` | `epsilon` | `1` | `1.25` | up x1.25, worse |"
    )
    assert row(EPSILON._replace(value=1.0), EPSILON._replace(value=0.5)).endswith("down x0.5, better |")
    assert row(EPSILON._replace(value=0.0), EPSILON._replace(value=0.5)).endswith("| up, worse |")
    assert row(INDEX, INDEX._replace(value=246)).endswith("| `123` | `246` | up x2, better |")
    assert row(DELTA, DELTA._replace(value=2**-31, delta=2**-31, log_delta=-31 * math.log(2))) == (
        "| `budget` | `delta` | `9.31323e-10` | `4.65662e-10` | down x0.5, better |"
    )
    assert row(DELTA, TINY).endswith("| `9.31323e-10` | `9.28175e-5001` | down x10^-4991, better |")


def test_cases_come_and_go_and_end_differently() -> None:
    lines = changed([PASSED, case(EPSILON, name="old")], [PASSED._replace(check=FAILED.check), ERROR])
    assert lines[0] == "Against the baseline: 0 numbers moved, 2 new, 2 removed, 2 ask for less."
    [_, _, *rows] = [line for line in lines if line.startswith("| ")]
    assert [row.split(" | ")[-1] for row in rows] == ["removed |", "removed |", "new |", "new |"]
    failed = case(EPSILON, gates=[BROKEN], status="failed")
    assert "| `budget` |  | `passed` | `failed` | verdict |" in changed([PASSED], [failed])


def test_gates_that_are_others() -> None:
    weaker = Assertion("epsilon <= 100", True, 1.23456789, 98.0)
    lines = changed([PASSED], [case(EPSILON, gates=[weaker])])
    assert lines[0] == "Against the baseline: 0 numbers moved, 1 ask for less, 1 with other gates."
    assert lines[4:5] == ["| `budget` |  | `epsilon <= 2` | `epsilon <= 100` | gates |"]
    assert "| `budget` |  | `epsilon <= 2` |  | gates |" in changed([PASSED], [case(EPSILON)])
    assert "| `budget` |  |  | `epsilon <= 2` | gates |" in changed([case(EPSILON)], [PASSED])


def test_orders_are_told_apart() -> None:
    at = [EPSILON._replace(quantity="rdp", value=v, order=a) for v, a in ((0.5, 2.0), (1.0, 4.0))]
    lines = changed([case(*at)], [case(at[0], at[1]._replace(value=2.0))])
    assert lines[4] == "| `budget` | `rdp at order 4` | `1` | `2` | up x2, worse |"


def test_a_baseline_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(render(ALL, "json"), encoding="utf-8")
    assert load(str(path)) == snapshot(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "{}", "1", "[" * 100_000, '{"schema": "dpcalc.report/1", "command": "rdp", "cases": []}',
     '{"schema": "dpcalc.report/1", "command": "check", "cases": [{"check": {}, "results": []}]}',
     '{"schema": "dpcalc.report/1", "command": "check", "cases": 1}',
     '{"schema": "dpcalc.report/1", "command": "check", "cases": [{"check": {"file": "a", "name": "b", "status": '
     '"passed"}, "results": [{"best": true, "quantity": "epsilon", "value": VALUE}]}]}',
     '{"schema": "dpcalc.report/1", "command": "check", "cases": [{"check": {"file": "a", "name": "b", "status": '
     '"passed"}, "results": [], "assertions": [{"text": 1}]}]}'],
)  # fmt: skip
@pytest.mark.parametrize("value", ["NaN", '"1"', "1e999", "true", "1" + "0" * 400])
def test_other_files_are_no_baseline(text: str, value: str, tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text(text.replace("VALUE", value), encoding="utf-8")
    with pytest.raises(SpecError, match="is no JSON report of dpcalc check"):
        load(str(path))


def test_a_baseline_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match=r"cannot read the baseline .*nothing\.json: No such file"):
        load(str(tmp_path / "nothing.json"))
    path = tmp_path / "large.json"
    path.write_text(render(ALL, "json"), encoding="utf-8")
    monkeypatch.setattr("dpcalc.files.reading.BASELINE_BYTES", 100)
    with pytest.raises(SpecError, match="is larger than 100 bytes"):
        load(str(path))


@pytest.mark.parametrize(
    "forged", ["a long gate", "many gates", pytest.param("many cases", marks=pytest.mark.campaign)]
)
def test_a_baseline_that_no_check_writes_is_refused(tmp_path: Path, forged: str) -> None:
    check = {"command": "rdp", "file": "a.yaml", "name": "a", "status": "passed"}
    gates = [{"text": "9" * 20_000}] if forged == "a long gate" else [{"text": "epsilon <= 1"}] * 2000
    case = {"algorithm": "pnsgd", "inputs": {}, "results": [], "check": check, "assertions": gates}
    if forged == "many cases":
        case["assertions"] = []
    cases = [{**case, "check": {**check, "name": str(i)}} for i in range(200_000 if forged == "many cases" else 1)]
    file = tmp_path / "before.json"
    file.write_text(json.dumps({"schema": SCHEMA, "command": "check", "cases": cases}))
    with pytest.raises(SpecError, match="no JSON report"):
        load(str(file))
