"""``dpcalc check``: what continuous integration sees, that is exit codes, reports and messages."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from flint import arb

from dpcalc.certify import table
from dpcalc.certify.table import definitions
from dpcalc.cli.main import main
from dpcalc.recipes.reading.read import read as read_recipe
from tests.cli.test_imports import BARE, imported
from tests.schema import conforms

HEAD = """\
dpcalc: recipe/1
defaults: {command: rdp, records: 60000, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6}
"""
RECIPES = {
    "pass": "cases:\n  a: {noise_std: 2, assert: epsilon <= 5}\n  b: {noise_std: 2, skip: later}\n",
    "fail": "cases:\n  a: {noise_std: 2, assert: epsilon <= 4}\n  b: {noise_std: 2, assert: epsilon <= 5}\n",
    "nothing": "cases:\n  a: {noise_std: 2, step_size: 3}\n  b: {noise_std: 2, assert: epsilon <= 4}\n",
    "incomplete": "cases:\n  a: {assert: epsilon <= 4}\n  b: {noise_std: 2, step_size: 3}\n",
    "skipped": "cases:\n  a: {noise_std: 2, skip: later}\n",
    "bare": "cases:\n  a: {noise_std: 2}\n",
    "typo": "cases:\n  a: {nose_std: 2}\n  b: {noise_std: two}\n",
    "empty": "cases: {}\n",
}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function from a command line to its exit code, stdout and stderr, in a folder of `RECIPES`."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    for name, text in RECIPES.items():
        Path(f"{name}.yaml").write_text(HEAD + text, encoding="utf-8")

    def asked(line: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["check", *shlex.split(line)])
        captured = capsys.readouterr()
        return int(stop.value.code or 0), captured.out, captured.err

    return asked


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("pass.yaml", 0, ""),
        ("fail.yaml", 1, "error: fail.yaml:4:29: a: epsilon <= 4 does not hold: 4.88"),
        ("nothing.yaml", 3, "error: 2 of 2 cases did not pass; the first: nothing.yaml:4:3: a: step size 3 exceeds"),
        ("incomplete.yaml", 2, "incomplete.yaml:4:3: a: "),
        ("pass.yaml fail.yaml", 1, "error: fail.yaml:4:29"),
        ("skipped.yaml", 2, "all 1 cases are skipped"),
        ("pass.yaml skipped.yaml", 0, ""),
        ("bare.yaml", 0, "warning: no case has a gate"),
        ("empty.yaml", 2, "error: empty.yaml:3:8: there are no cases"),
        (
            "typo.yaml",
            2,
            "error: typo.yaml:4:7: unknown key 'nose_std'\n  hint: did you mean noise_std?\nerror: typo.yaml:5:18:",
        ),
        ("pass.yaml typo.yaml empty.yaml", 2, "error: empty.yaml:3:8: there are no cases"),
        ("*.yml", 2, "error: *.yml: cannot be read: No such file"),
        ("", 2, "Missing argument"),
        (".", 2, "is a folder"),
        ("pass.yaml -o '\0'", 2, "is not a path"),
        ("pass.yaml --format markdown --baseline '\0'", 2, "is not a path"),
        ("pass.yaml --run zzz", 2, "no case matches 'zzz'"),
        ("pass.yaml --run '*'", 2, "not a regular expression"),
        ("fail.yaml --run b", 0, ""),
        ("fail.yaml --fail-fast", 1, "warning: stopped early: 1 cases were not checked"),
        ("pass.yaml --jobs 0", 2, "1<=x<=256"),
        ("pass.yaml --timeout soon", 2, "error: --timeout: 'soon'"),
        ("pass.yaml --timeout -1", 2, "a time limit of -1 s"),
        ("pass.yaml --timeout 1e9", 2, "a time limit of 1e+09 s"),
        ("pass.yaml --memory-limit nan", 2, "error: --memory-limit: 'nan'"),
        ("pass.yaml --memory-limit 0.01", 2, "a memory limit of 0.01 GiB"),
        ("pass.yaml --timeout 1/1000000", 3, "a: took longer than 1e-06 s"),
        ("pass.yaml --format statement", 2, "'statement' is not one of"),
        ("pass.yaml --report junit", 2, "--report junit: not KIND=FILE"),
        ("pass.yaml --report pdf=a", 2, "not KIND=FILE"),
        ("pass.yaml --report junit=-", 2, "two outputs go to the same place"),
        ("pass.yaml --report junit=a --report sarif=./a", 2, "two outputs go to the same place"),
        ("pass.yaml --report junit=no/where.xml", 2, "choose another file for --report junit="),
        ("pass.yaml fail.yaml --report json=./fail.yaml", 2, "./fail.yaml is read, and would be written over"),
        ("pass.yaml -o pass.yaml", 2, "pass.yaml is read, and would be written over"),
        ("pass.yaml --baseline b.json", 2, "cannot read the baseline b.json"),
        ("pass.yaml --report markdown=a --baseline b.json", 2, "b.json"),
    ],
)
def test_exit_codes(run: Any, line: str, code: int, said: str) -> None:
    found, out, err = run(line)
    assert found == code, err
    assert said in err
    assert (err == "") == (said == "")
    assert "Traceback" not in err
    assert out if code in (0, 1, 3) else True


def test_text(run: Any) -> None:
    _, out, _ = run("fail.yaml pass.yaml")
    lines = out.splitlines()
    assert lines[0].split() == ["case", "quantity", "value", "gate", "slack", "bound"]
    assert lines[1].split() == [
        "FAIL",
        "fail.yaml:",
        "a",
        "epsilon",
        "4.88656",
        "<=",
        "4",
        "-0.886555",
        "iteration.pnsgd",
    ]
    assert lines[2].split() == [
        "pass",
        "fail.yaml:",
        "b",
        "epsilon",
        "4.88656",
        "<=",
        "5",
        "0.113445",
        "iteration.pnsgd",
    ]
    assert lines[4].split() == ["skip", "pass.yaml:", "b"]
    assert lines[-1] == "2 of 4 cases passed, 1 failed, 1 skipped; 2 of 3 gates held"
    assert any("Theorem 23" in line for line in lines)
    assert out.isascii()
    _, out, _ = run("fail.yaml --format table --color always")
    assert "\x1b[1;31mFAIL\x1b[0m" in out
    _, out, _ = run("fail.yaml --format table --color never")
    assert "\x1b" not in out


def test_json(run: Any) -> None:
    code, out, _ = run("pass.yaml nothing.yaml fail.yaml --json")
    report = json.loads(out)
    conforms(report)
    assert code == 3
    assert report["command"] == "check"
    assert report["summary"] == {"cases": 6, "failed": 2, "passed": 2, "skipped": 1, "errors": 1, "not_selected": 0}
    assert [case["check"]["status"] for case in report["cases"]] == [
        "passed", "skipped", "error", "failed", "failed", "passed",
    ]  # fmt: skip
    assert report["cases"][0]["results"][0]["bound"] == "iteration.pnsgd"
    assert (code, out) == run("pass.yaml nothing.yaml fail.yaml --json --jobs 2")[:2]
    assert len(run("pass.yaml --format jsonl")[1].splitlines()) == 3
    assert run("pass.yaml --format csv")[1].startswith("case,algorithm,bound,")


def test_list(run: Any) -> None:
    code, out, _ = run("pass.yaml fail.yaml --list --run a")
    assert (code, out) == (0, "a  rdp  pass.yaml:4:3\na  rdp  fail.yaml:4:3\n")
    assert run("typo.yaml --list")[0] == 2


def test_reports_beside_the_text(run: Any) -> None:
    code, out, _ = run("fail.yaml -o out.txt --report junit=a.xml --report json=a.json --report markdown=a.md")
    assert (code, out) == (1, "")
    assert "FAIL" in Path("out.txt").read_text(encoding="utf-8")
    assert 'failures="1"' in Path("a.xml").read_text(encoding="utf-8")
    assert json.loads(Path("a.json").read_text(encoding="utf-8"))["summary"]["failed"] == 1
    code, out, _ = run("fail.yaml --format markdown --baseline a.json")
    assert code == 1
    assert "nothing has changed" in out


def test_malformed_recipes_are_reported_too(run: Any) -> None:
    code, out, _ = run("typo.yaml --report sarif=a.sarif")
    assert (code, out) == (2, "")
    results = json.loads(Path("a.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    regions = [result["locations"][0]["physicalLocation"]["region"] for result in results]
    assert [(region["startLine"], region["startColumn"]) for region in regions] == [(4, 7), (5, 18)]


def test_github_actions(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    code, out, err = run("fail.yaml")
    assert code == 1
    assert "::error file=fail.yaml,line=4,col=29" in err
    assert "::" not in out
    first = Path("summary.md").read_text(encoding="utf-8")
    assert "dpcalc check" in first
    run("typo.yaml")
    assert Path("summary.md").read_text(encoding="utf-8").startswith(first)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/where.md")
    assert "the summary of the step: cannot write no/where.md" in run("fail.yaml")[2]


def test_standard_input(run: Any) -> None:
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", "dpcalc", "check", "-"], input=HEAD + RECIPES["fail"],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "<stdin>:4:29" in done.stderr


def test_what_is_imported(run: Any) -> None:
    found = imported("-m", "dpcalc", "check", "pass.yaml") - BARE
    assert "yaml" in found
    assert not found & {"numpy", "scipy", "rich", "multiprocessing", "tomllib", "jsonschema"}


def test_the_schema_of_recipes(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["schema", "recipe"])
    schema = json.loads(capsys.readouterr().out)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    whole = """\
dpcalc: recipe/1
description: everything that may be written
strict: true
defaults: {command: compare, records: 1e4, assert: [epsilon <= 9], delta: 1e-6}
cases:
  a:
    from: c.yaml#/run
    algorithm: shuffled
    noise_std: {from: c.yaml#/std}
    smoothness: null
    matrix: {step_size: [1/10, 0.2:0.4:0.1], epochs: 1}
    exclude: {step_size: 0.3}
    include: [{step_size: 1}]
    expect: {epsilon: 1.2, bound: shuffle.mixture, tolerance: 1%}
    accept: [secret-order, large-delta]
    skip: for want of data
    description: a case
  b: {command: rdp, order: [2, 4], assert: null, expect: {error: infeasible}, solve: index,
      schedule: steps.csv}
"""
    validator.validate(yaml.safe_load(whole))
    Path("c.yaml").write_text("run: {dimension: 3}\nstd: 2", encoding="utf-8")
    Path("whole.yaml").write_text(whole, encoding="utf-8")
    assert len(read_recipe("whole.yaml").entries) == 5
    for text in (HEAD + RECIPES["typo"], HEAD + "cases: {}", "cases: {a: {}}", HEAD + "cases: {a: {skip: yes}}",
                 HEAD + "cases: {a: {command: rpd}}", HEAD + "cases: {a: {expect: {error: spec}}}",
                 HEAD + "cases: {a: {accept: all}}", HEAD + "strict: 1\ncases: {a: {}}"):  # fmt: skip
        assert not validator.is_valid(yaml.safe_load(text)), text


CERTIFIED = """\
cases:
  open: {command: multi-epoch, algorithm: cyclic, laplace_scale: 2, epochs: 1, index: 1}
  proved: {noise_std: 2, assert: epsilon <= 5}
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", ["", " --jobs 2"])
def test_certify_says_what_could_not_be(run: Any, jobs: str) -> None:
    Path("certified.yaml").write_text(HEAD + CERTIFIED, encoding="utf-8")
    line = "certified.yaml --json" + jobs
    assert "certified" not in run(line)[1].replace("certified.yaml", "")
    code, out, err = run(line + " --certify")
    assert code == 0
    assert "warning: open: multi_epoch.laplace is not certified: a mixture over more than 2000 steps" in err
    opened, proved = json.loads(out)["cases"]
    assert "not_certified" in opened["results"][0]
    assert proved["results"][0]["certified"]["quantity"] == "epsilon"
    assert proved["check"]["status"] == "passed"


def test_certify_exits_with_4_where_a_guarantee_is_below_the_truth(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = definitions()["iteration.pnsgd"]
    wrong = right._replace(formula=lambda v: right.formula(v) * (1 + arb(2) ** -40))
    monkeypatch.setattr(table, "definitions", lambda: {**definitions(), "iteration.pnsgd": wrong})
    assert run("pass.yaml")[0] == 0
    # Other processes would not know of the wrong definition.
    code, out, err = run("pass.yaml --certify --json --timeout 0 --memory-limit 0")
    assert code == 4
    assert "iteration.pnsgd is below the truth" in err
    assert "noise_std=2.0" in json.loads(out)["cases"][0]["check"]["message"]


def test_a_reason_is_no_command_to_the_server_that_shows_it(run: Any) -> None:
    reasons = {"a": "::stop-commands::x", "b": "see ##[add-mask]1", "c": "##vso[task.complete result=Succeeded;]x"}
    cases = "".join(f"  {name}: {{noise_std: 2, skip: '{reason}'}}\n" for name, reason in reasons.items())
    Path("hostile.yaml").write_text(f"{HEAD}cases:\n{cases}  d: {{noise_std: 2, assert: epsilon <= 5}}\n", "utf-8")
    code, out, err = run("hostile.yaml")
    assert code == 0
    for line in (out + err).splitlines():
        assert not line.lstrip().startswith("::")
        assert "##[" not in line
        assert "##vso[" not in line
    assert "stop-commands::x" in out
