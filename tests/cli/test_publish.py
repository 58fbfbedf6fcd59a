"""Reports of a check that fail: none costs another report, or the verdict on a case."""

import json
import math
import os
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dpcalc.cli.main import main
from dpcalc.cli.output import printing, publish
from dpcalc.cli.output.reports import Destination
from dpcalc.errors import SpecError
from dpcalc.recipes.judging import verdict
from dpcalc.recipes.running import checking, selection
from dpcalc.render.check import KINDS, github, render, text
from dpcalc.report import Report
from tests.cli.test_check import HEAD, RECIPES
from tests.render.test_check_reports import DELTA, EPSILON, FAILED, PASSED, case

CAMPAIGN = [pytest.param(*one, marks=pytest.mark.campaign) for one in (("fail", 4), ("nothing", 2))]
"""A plot that has nothing to draw is a mistake of usage (2), which goes before the internal error (4)."""
FILES = {"json": "a.json", "junit": "a.xml", "sarif": "a.sarif", "github": "a.txt", "markdown": "a.md", "plot": "a.svg"}
REPORTS = " ".join(f"--report {kind}={file}" for kind, file in FILES.items())


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function from a command line to its exit code, stdout and stderr, in a folder with recipes."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "DPCALC_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("pass", "fail", "nothing", "typo"):
        recipe = RECIPES[name].replace("b: {noise_std: 2", "b: {noise_std: 3").replace(", skip: later", "")  # a sweep
        Path(f"{name}.yaml").write_text(HEAD + recipe, encoding="utf-8")

    def asked(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(shlex.split(line))
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return asked


def breaks(*_: Any, **__: Any) -> Any:
    raise RuntimeError("the report is beyond me")


def written() -> set[str]:
    return {kind for kind, file in FILES.items() if Path(file).exists()}


@pytest.mark.parametrize(("recipe", "code"), [("pass", 4), *CAMPAIGN, ("typo", 2)])
@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [("junit", github, "junit_pieces"), ("sarif", github, "sarif_pieces"), ("github", github, "render_github"),
     ("markdown", text, "render_markdown")],
)  # fmt: skip
def test_a_report_that_breaks_costs_no_other(
    run: Any, monkeypatch: pytest.MonkeyPatch, recipe: str, code: int, kind: str, module: Any, name: str
) -> None:
    monkeypatch.setattr(module, name, breaks)
    found, out, err = run(f"check {recipe}.yaml {REPORTS}")
    assert found == code
    assert written() == FILES.keys() - {kind} - ({"plot"} if recipe in ("typo", "nothing") else set())
    assert f"error: not written, or not whole: --report {kind}={FILES[kind]}: internal error: RuntimeError" in err
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["command"] == "check"
    assert (recipe == "typo") == (out == "")


@pytest.mark.parametrize(("recipe", "code"), [("pass", 4), ("fail", 4)])
def test_a_plot_that_breaks_costs_no_report(run: Any, monkeypatch: pytest.MonkeyPatch, recipe: str, code: int) -> None:
    monkeypatch.setattr("dpcalc.render.chart.figure.draw", breaks)
    found, out, err = run(f"check {recipe}.yaml {REPORTS}")
    assert found == code
    assert written() == FILES.keys() - {"plot"}
    assert "cases passed" in out
    assert "--report plot=a.svg: internal error" in err
    assert ("epsilon <= 4 does not hold" in err) == (recipe == "fail")


@pytest.mark.few(4)
@pytest.mark.parametrize(("recipe", "code"), [("pass", 2), ("fail", 2)])
@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_cannot_be_written_after_all(
    run: Any, monkeypatch: pytest.MonkeyPatch, recipe: str, code: int, kind: str
) -> None:
    """The disk may fill up, or the folder go away, while the cases are checked."""
    replace = os.replace

    def refusing(draft: str, target: str, **folders: int) -> None:
        if Path(target).name == FILES[kind]:
            raise OSError(28, "No space left on device")
        replace(draft, target, **folders)

    monkeypatch.setattr(os, "replace", refusing)
    found, out, err = run(f"check {recipe}.yaml {REPORTS}")
    assert found == code
    assert written() == FILES.keys() - {kind}
    assert "cases passed" in out
    assert f"--report {kind}={FILES[kind]}: cannot write {FILES[kind]}: No space left on device" in err
    assert ("epsilon <= 4 does not hold" in err) == (recipe == "fail")


def test_text_that_breaks_costs_no_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcalc.render.check.text.render", breaks)
    found, out, err = run(f"check fail.yaml {REPORTS}")
    assert (found, out) == (4, "")
    assert written() == FILES.keys()
    assert "epsilon <= 4 does not hold" in err


def test_annotations_that_break_cost_no_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setattr(github, "render_github", breaks)
    found, out, err = run("check pass.yaml --report junit=a.xml")
    assert found == 4
    assert "cases passed" in out
    assert "the annotations: internal error" in err
    assert "dpcalc check" in Path("summary.md").read_text(encoding="utf-8")
    assert Path("a.xml").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--report junit=no/where.xml", "cannot write no/where.xml: No such file"),
        ("--report plot=no/where.svg", "cannot write no/where.svg: No such file"),
        ("--report json=.", "cannot write .: Is a directory"),
        ("--report json=fail.yaml/a.json", "cannot write fail.yaml/a.json: Not a directory"),
        ("--report sarif='\0'", "is not a path"),
        ("--report markdown=/dev/fd/987", "cannot write /dev/fd/987: Bad file descriptor"),
        ("--report junit=/dev/stdout", "two outputs go to the same place"),
        ("-o no/where.txt", "cannot write no/where.txt: No such file"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_begun(
    run: Any, monkeypatch: pytest.MonkeyPatch, line: str, said: str
) -> None:
    monkeypatch.setattr(selection, "read_all", breaks)
    before = sorted(Path().iterdir())
    found, out, err = run(f"check pass.yaml {line}")
    assert (found, out) == (2, "")
    assert said in err
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("line", ["-o no/where.txt", "--plot no/where.svg"])
def test_a_query_does_not_begin_either(run: Any, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr("dpcalc.cli.query.ask", breaks)
    found, out, err = run(f"rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2 -d 1e-6 {line}")
    assert (found, out) == (2, "")
    assert "cannot write no/where" in err


def test_a_query_whose_plot_breaks_has_its_numbers(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcalc.render.chart.figure.draw", breaks)
    line = "rdp -n 1000 -L 1 --smoothness 1 --eta 0.1 --sigma 2,3 -d 1e-6 --plot a.svg"
    found, out, err = run(line)
    assert found == 4
    assert "iteration.pnsgd" in out
    assert "--plot a.svg: internal error" in err
    assert run(f"{line} --assert 'epsilon<=1e-9' -o a.txt")[0] == 4
    assert "FAIL" in Path("a.txt").read_text(encoding="utf-8")


def test_after_an_interrupt_there_is_no_report(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = checking.judged

    def interrupted(recipe: Any, entry: Any, outcome: Any, **more: Any) -> Any:
        if entry.name == "b":
            raise KeyboardInterrupt
        return judged(recipe, entry, outcome, **more)

    monkeypatch.setattr(checking, "judged", interrupted)
    found, out, err = run(f"check pass.yaml {REPORTS} -o out.txt")
    assert (found, out, err) == (130, "", "error: interrupted\n")
    assert written() == set()
    assert not Path("out.txt").exists()


def test_a_verdict_that_breaks_costs_no_other(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    judging = verdict._verdict

    def breaking(gate: Any, case: Any, recipe: Any, outcomes: Any) -> Any:
        if gate.gate.text == "epsilon <= 4":
            raise OverflowError("too large")
        return judging(gate, case, recipe, outcomes)

    monkeypatch.setattr(verdict, "_verdict", breaking)
    found, out, _ = run("check fail.yaml --json")
    assert found == 4
    assert [one["check"]["status"] for one in json.loads(out)["cases"]] == ["error", "passed"]


STRANGE = case(EPSILON._replace(details={"a": object()}), name="strange")
"""A case that JSON cannot hold."""


def test_a_case_that_cannot_be_shown_is_told_as_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    found = Report("check", (PASSED, STRANGE, FAILED))
    costs = publish.publish(
        found, [Destination("json", str(path)), Destination("junit", str(tmp_path / "a.xml"))], 6, None
    )
    assert [(one.what, one.exit_code) for one in costs] == [(f"--report json={path}", 4)]
    names = {c["check"]["name"]: c["check"]["status"] for c in json.loads(path.read_text(encoding="utf-8"))["cases"]}
    assert names == {"budget": "passed", "strange": "error", "too much": "failed"}


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "json"])
def test_a_value_that_is_no_number_is_shown_in_text(kind: str, value: float) -> None:
    odd = [EPSILON._replace(value=value, epsilon=value), DELTA._replace(value=value, delta=value, log_delta=value)]
    found = render(Report("check", (PASSED, *(case(one, name="odd") for one in odd), FAILED)), kind)
    if kind == "junit":
        assert [test.attrib["name"] for test in ElementTree.fromstring(found).iter("testcase")] == [
            "budget", "odd", "odd", "too much",
        ]  # fmt: skip
    assert ("not passed" if kind == "badge" else "too much") in found


@pytest.mark.parametrize(
    ("codes", "code"),
    [([], 0), ([0, 0], 0), ([0, 1], 1), ([1, 2], 2), ([1, 3], 3), ([4, 3], 4), ([141, 2], 141), ([0, 77], 77)],
)
def test_the_worst_exit_code(codes: list[int], code: int) -> None:
    assert printing.worst(codes) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [(SpecError("a"), 2), (OSError(5, "b"), 2), (BrokenPipeError(), 141), (MemoryError(), 3), (ValueError("c"), 4)],
)
def test_what_an_error_costs(error: Exception, code: int) -> None:
    def work() -> None:
        raise error

    [one] = printing.attempt("a report", work)
    assert one.exit_code == code
    assert printing.attempt("a report", lambda: None) == []
