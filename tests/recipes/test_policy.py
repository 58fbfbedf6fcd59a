"""A policy: what it does not allow fails with its line, whatever the author of a recipe writes."""

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import dpcalc
from dpcalc.cli.main import main
from dpcalc.engine.advice.missing import ON_MEAN
from dpcalc.recipes.judging.policy import policy_schema, read_policy
from tests.schema import conforms

Write = Callable[..., str]

POLICY = """\
dpcalc: policy/1
defaults: {adjacency: replace-one, delta: 1e-6, certified: false}
cases:
  released*:
    required: true
    epsilon: 3
    records: 60000
"""
GOOD = "command: rdp, noise_std: 4"
SGD = (
    "command: dp-sgd, lipschitz: null, smoothness: null, step_size: null, batch_size: 600, steps: 20, "
    "sampling: poisson, noise_multiplier: 2"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def judged(write: Write, cases: str, policy: str = POLICY, **how: Any) -> dict[str, Any]:
    Path("policy.yaml").write_text(policy, encoding="utf-8")
    report = dpcalc.check(write(cases), policy="policy.yaml", **how)
    conforms(report.to_dict())
    return {case.check.name: case.check for case in report.cases if case.check}


def test_a_case_without_a_gate_of_its_own_is_judged(write: Write) -> None:
    check = judged(write, f"released: {{{GOOD}}}")["released"]
    assert (check.status, check.policy) == ("passed", "policy.yaml:4:3")
    check = judged(write, f"released: {{{GOOD.replace('4', '2')}}}")["released"]
    assert (check.status, check.exit_code) == ("failed", 1)
    assert "policy.yaml:6:5: epsilon <= 3 is not kept" in check.objections


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("command: rdp, noise_std: 2, assert: epsilon <= 99999999", "policy.yaml:6:5: epsilon <= 3 is not kept"),
        (f"{GOOD}, delta: 0.9", "policy.yaml:2:36: delta <= 1e-6 is not kept"),
        (f"{GOOD}, delta: 0.9, accept: large-delta", "policy.yaml:4:3: the exception large-delta is not allowed"),
        (f"{GOOD}, delta: null, epsilon: 0.001", "delta <= 1e-6 is not kept"),
        (f"{GOOD}, delta: null, epsilon: 50", "epsilon <= 3 is not kept"),
        (f"{GOOD}, delta: null, order: 2", "epsilon <= 3 is not kept"),
        ("command: rdp, epsilon: 1, assert: noise_std <= 9", "epsilon <= 3 is not kept"),
        ("command: rdp, noise_std: 2, epsilon: 1, solve: index, accept: one-index", "epsilon <= 3 is not kept"),
        (f"{GOOD}, records: 60001", "policy.yaml:7:5: records is 60001, and must be at most 60000"),
        (f"{GOOD}, index: 5, accept: one-index", "the exception one-index is not allowed"),
        (f"{GOOD}, index: 5", "one-index: "),
        (f"{GOOD}, skip: too slow", "policy.yaml:4:3: the case is skipped (too slow)"),
        (f"{SGD}, adjacency: add-remove", "policy.yaml:2:12: adjacency add-remove is not allowed"),
        (f"{SGD}, adjacency: zero-out", "adjacency null-record is not allowed"),
        ("command: convert, mu: 0.01, records: null, lipschitz: null, smoothness: null, step_size: null",
         "commands convert is not allowed"),
        ("command: ledger, records: null, lipschitz: null, smoothness: null, step_size: null, entries: {a: {mu: 0.01}}",
         "commands ledger is not allowed"),
        ("command: ledger, records: null, lipschitz: null, smoothness: null, step_size: null, entries: {a: {mu: 2}}",
         "epsilon <= 3 is not kept"),
        ("command: ledger, records: null, lipschitz: null, smoothness: null, step_size: null, adjacency: add-remove, "
         "entries: {a: {mu: 0.1}}", "adjacency add-remove is not allowed"),
        ("command: ledger, records: null, lipschitz: null, smoothness: null, step_size: null, entries: {a: {algorithm: "
         "pnsgd, records: 1e9, lipschitz: 1, smoothness: 1, step_size: 0.1, noise_std: 9}}", "records is 1000000000"),
        ("command: rdp, matrix: {noise_std: [4, 2]}", "epsilon <= 3 is not kept"),
    ],
)  # fmt: skip
def test_what_a_policy_does_not_allow_fails_with_its_line(write: Write, case: str, said: str) -> None:
    found = judged(write, f"released: {{{GOOD}}}\nreleased-2: {{{case}}}")
    assert found.pop("released").status == "passed"
    failed = [check for check in found.values() if check.exit_code]
    assert failed
    assert any(said in text for check in failed for text in check.objections)


def test_a_case_that_no_pattern_fits_fails(write: Write) -> None:
    found = judged(write, f"released: {{{GOOD}}}\nrelease: {{{GOOD}}}")
    assert found["release"].objections == ("policy.yaml:3:1: no rule of the policy fits the name release",)
    skipped = judged(write, f"released: {{{GOOD}}}\nrelease: {{{GOOD}, skip: too slow}}")["release"]
    assert skipped.objections == ("policy.yaml:3:1: the case is skipped (too slow), and a strict check skips nothing",)


@pytest.mark.parametrize("how", [{"run": "other"}, {"run": "other", "checkpoint": "c"}, {}])
def test_a_required_case_may_not_be_missing(write: Write, how: dict[str, Any]) -> None:
    policy = f"{POLICY}  o*: {{epsilon: 9}}\n"
    cases = f"other: {{{GOOD}}}" + (f"\nreleased: {{{GOOD}}}" if how else "")
    found = judged(write, cases, policy, **how)
    assert found["other"].status == "passed"
    assert "policy.yaml:5:5: no case was checked whose name fits released*, and one is required" in [
        check.message for name, check in found.items() if name != "other"
    ]


def test_a_skipped_case_is_no_required_one(write: Write) -> None:
    policy = f"{POLICY}    strict: false\n  o: {{epsilon: 9}}\n"
    found = judged(write, f"o: {{{GOOD}}}\nreleased: {{{GOOD}, skip: too slow}}", policy)
    assert found["released"].status == "skipped"
    assert found["strict"].status == "failed"


@pytest.mark.parametrize(
    ("day", "status"), [("2000-01-01", "failed"), ('"2000\\x2d01-01"', "failed"), ("9999-12-31", "passed")]
)
def test_an_exception_is_allowed_until_its_day(write: Write, day: str, status: str) -> None:
    case = f"released: {{{GOOD}, index: 5, accept: one-index}}"
    check = judged(write, case, f"{POLICY}    accept: {{one-index: {day}}}\n")["released"]
    assert check.status == status
    assert (check.objections == ("policy.yaml:8:5: the exception one-index has expired",)) is (status == "failed")


def test_an_exception_holds_on_its_last_day() -> None:
    Path("p.yaml").write_text(f"{POLICY}    accept: {{one-index: 2030-06-01}}\n", encoding="utf-8")
    days = [read_policy("p.yaml", today=datetime.date(2030, month, 1)).rule_of("released") for month in (5, 6, 7)]
    assert [rule.accept for rule in days] == [("one-index",), ("one-index",), ()]


def test_the_reading_of_a_noise_is_the_policys_to_allow(write: Write) -> None:
    run = "command: dp-sgd, lipschitz: null, smoothness: null, step_size: null, steps: 20, sampling: full"
    case = f"released: {{{run}, clip: 1, noise_std: 3, accept: {ON_MEAN}}}"
    assert judged(write, case)["released"].status == "failed"
    allowed = f"{POLICY}    accept: {{{ON_MEAN}: 9999-12-31}}\n"
    assert judged(write, case, allowed)["released"].status == "passed"


def test_other_limits(write: Write) -> None:
    policy = "dpcalc: policy/1\ncases:\n  a: {adjacency: replace-one, mu: 0.9, tpr@1%: 0.2, advantage: 0.5}\n"
    assert judged(write, f"a: {{{GOOD}}}", policy)["a"].status == "passed"
    check = judged(write, f"a: {{{GOOD}}}", policy.replace("1%: 0.2", "1%: 0.02"))["a"]
    assert check.objections == ("policy.yaml:3:40: tpr@1% <= 0.02 is not kept",)
    check = judged(write, f"a: {{{GOOD}}}", policy.replace("mu: 0.9", "mu: 0.1, group_size: 2"))["a"]
    assert [text.partition(": ")[2] for text in check.objections] == [
        "mu <= 0.1 is not kept", "group_size is 1, and must be at least 2",
    ]  # fmt: skip


@pytest.mark.parametrize("how", [{}, {"checkpoint": "c"}, {"jobs": 2}, {"shard": "1/1"}])
def test_every_way_of_checking_judges_the_same(write: Write, how: dict[str, Any]) -> None:
    found = judged(write, f"released: {{{GOOD}}}\nreleased-2: {{{GOOD}, delta: 1e-5}}\nx: {{{GOOD}}}", **how)
    assert [check.status for check in found.values()] == ["passed", "failed", "failed"]


def test_executors_and_resumed_checks_judge_by_the_policy(write: Write) -> None:
    from concurrent.futures import ThreadPoolExecutor

    cases = f"released: {{{GOOD}}}\nreleased-2: {{{GOOD}, delta: 1e-5}}"
    for _ in range(2):
        with ThreadPoolExecutor(1) as executor:
            found = judged(write, cases, executor=executor, checkpoint="c")
        assert [check.status for check in found.values()] == ["passed", "failed"]
    with pytest.raises(dpcalc.SpecError, match="other options"):
        judged(write, cases, POLICY.replace("3", "30"), checkpoint="c")


def test_shards_of_different_policies_are_not_merged(write: Write) -> None:
    recipe = write(f"released: {{{GOOD}}}\nreleased-2: {{{GOOD}}}")
    for number, limit in ((1, 3), (2, 30)):
        Path("policy.yaml").write_text(POLICY.replace("3", str(limit)), encoding="utf-8")
        report = dpcalc.check(recipe, policy="policy.yaml", shard=f"{number}/2")
        Path(f"{number}.json").write_text(json.dumps(report.to_dict()), encoding="utf-8")
    with pytest.raises(dpcalc.SpecError, match="differ"):
        dpcalc.merge(["1.json", "2.json"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dpcalc: recipe/1", "p.yaml:1:1: this is not a policy"),
        ("dpcalc: policy/1", "p.yaml:1:1: there are no rules"),
        ("dpcalc: policy/1\ncase: {}", "p.yaml:2:1: unknown key 'case'"),
        ("dpcalc: policy/1\ncases: {a: {epsilon: 1, delta: 1e-6}}", "has no adjacency"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one}}", "limits no budget"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, epsilon: 1}}", "limits no budget"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, epsilon: 1, delta: 1}}", "cannot fail"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, epsilom: 1}}", "unknown key 'epsilom'"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: nobody, mu: 1}}", "adjacency"),
        ("dpcalc: policy/1\ncases: {'a[': {adjacency: replace-one, mu: 1}}", "no pattern of names"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, mu: 1, accept: {one-index: soon}}}", "is no day"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, mu: 1, accept: {one-index: 2020-W01-1}}}", "is no day"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, mu: 1, commands: rm}}", "unknown 'rm'"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, mu: -1}}", "no answer keeps mu <= -1"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, epsilon: 0, delta: -1}}", "not a positive number"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, mu: nan}}", "'nan' is not a number"),
        ("dpcalc: policy/1\ncases: {a: {adjacency: replace-one, tpr@2: 0.1}}", "p.yaml:2:37: fpr is 2.0"),
        (
            "dpcalc: policy/1\ncases:\n  a*: {adjacency: by-shift, mu: 1}\n  ab?: {adjacency: as-given, mu: 2}",
            "p.yaml:4:3: rule ab? is never reached: a* fits all its names",
        ),
        (
            "dpcalc: policy/1\ncases:\n  ab: {adjacency: by-shift, mu: 1}\n  ab: {adjacency: as-given, mu: 2}",
            "'ab' is given twice",
        ),
        ("", "is empty"),
    ],
)
def test_a_mistake_in_a_policy_has_its_place(text: str, said: str) -> None:
    Path("p.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(dpcalc.SpecError) as error:
        read_policy("p.yaml")
    assert said in error.value.message
    assert error.value.message.startswith("p.yaml")


def test_a_rule_that_some_name_reaches_is_one() -> None:
    rule = "{adjacency: replace-one, mu: 1}"
    rules = "".join(f"  {name}: {rule}\n" for name in ("a?c", "a*c", "ab*", "a*", "'?'", "'??'", "'*'"))
    Path("p.yaml").write_text(f"dpcalc: policy/1\ncases:\n{rules}", encoding="utf-8")
    assert len(read_policy("p.yaml").rules) == 7


def test_init_writes_a_policy_that_its_recipe_keeps(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = write(
        f"released: {{{GOOD}, assert: epsilon <= 3}}\nother: {{{GOOD}, assert: epsilon <= 4}}\n"
        "both: {command: ledger, records: null, lipschitz: null, smoothness: null, step_size: null, "
        "entries: {a: {case: released}, b: {mu: 0.1}}, assert: epsilon <= 4}\n"
        "shifts: {command: shifted, records: null, lipschitz: null, smoothness: null, step_size: 1, steps: 2, "
        "shift: 0.1, contraction: 1, noise_std: 1, assert: epsilon <= 2}\n"
        "known: {command: convert, records: null, lipschitz: null, smoothness: null, step_size: null, mu: 0.1, "
        "assert: epsilon <= 2}\n"
        "trained: {command: train, lipschitz: null, smoothness: null, step_size: null, synthetic: logistic, "
        "records: 100, dimension: 2, epsilon: 1, delta: 1e-4, assert: noise_std <= 9}"
    )
    for line in ("init --policy r.yaml -o p.yaml", "check r.yaml --policy p.yaml"):
        with pytest.raises(SystemExit) as stop:
            main(line.split())
        assert stop.value.code == 0
    assert recipe == "r.yaml"
    assert "policy p.yaml:" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["check", "r.yaml", "--policy", "p.yaml", "--report", "json=p.yaml"])
    assert stop.value.code == 2
    assert Path("p.yaml").read_text(encoding="utf-8").startswith("#")


def test_the_schema_takes_what_is_read() -> None:
    import yaml

    schema = policy_schema()
    Draft202012Validator.check_schema(schema)
    assert dpcalc.schema("policy") == schema
    Draft202012Validator(schema).validate(yaml.safe_load(POLICY))
    assert not Draft202012Validator(schema).is_valid({**yaml.safe_load(POLICY), "strict": True})
