"""What is not private passes no gate unless the case accepts it by name; what a strict check demands; baselines."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import dpcalc
from dpcalc.cli.main import main
from dpcalc.engine.advice.missing import ON_MEAN
from dpcalc.recipes.judging import objections as strictly
from dpcalc.recipes.judging.objections import EXCEPTIONS
from dpcalc.render import render as render_text
from dpcalc.render.check import KINDS, render
from tests.schema import conforms

Write = Callable[..., str]

TRAINED = (
    "{command: train, synthetic: logistic, records: 50, dimension: 2, radius: 1, lipschitz: null, smoothness: null"
)
WEAK = {
    "seeded": TRAINED + ", epsilon: 1, assert: noise_std <= 9, seed: 1",
    "one-index": "{command: rdp, noise_std: 2, index: 5, assert: epsilon <= 9",
    "large-delta": "{command: rdp, noise_std: 2, delta: 1/60000, assert: epsilon <= 9",
    "secret-order": "{algorithm: shuffled, noise_std: 2, records: 100, permutation: secret, assert: epsilon <= 9",
}


def checked(path: str, **how: Any) -> dict[str, Any]:
    report = dpcalc.check(path, **how)
    conforms(report.to_dict())
    return {case.check.name: case.check for case in report.cases if case.check}


def test_every_exception_is_tried() -> None:
    assert [*WEAK, ON_MEAN] == list(EXCEPTIONS)


MISREAD = (
    "{command: dp-sgd, sigma: 1.1, clip: 1, batch_size: 500, epochs: 20, sampling: shuffle, adjacency: zero-out, "
    "lipschitz: null, smoothness: null, step_size: null, assert: epsilon <= 1"
)


@pytest.mark.parametrize("how", [{}, {"strict": True}, {"timeout": 50.0}])
def test_a_noise_of_two_readings_is_an_error_at_a_gate(write: Write, how: dict[str, Any]) -> None:
    found = checked(
        write(
            f"a: {MISREAD}}}\nb: {MISREAD}, accept: {ON_MEAN}}}\nc: {MISREAD.removesuffix(', assert: epsilon <= 1')}}}"
        ),
        **how,
    )
    assert (found["a"].status, found["a"].exit_code) == ("error", 2)
    assert "noise multiplier of 550 (epsilon is 0.0" in found["a"].message
    assert (
        "if 1.1 is the noise multiplier of a library, say noise_multiplier 1.1: epsilon would be 2"
        in found["a"].message
    )
    assert found["b"].status == "passed"
    assert found["c"].status == ("failed" if how.get("strict") else "passed")


def test_python_and_ledgers_refuse_such_a_noise_at_a_gate() -> None:
    run = {"records": 50000, "batch_size": 500, "clip": 1, "noise_std": 1.1, "epochs": 20, "sampling": "shuffle",
           "adjacency": "zero-out"}  # fmt: skip
    for ask in (lambda gates: dpcalc.dp_sgd(**run, delta=1e-5, gates=gates),
                lambda gates: dpcalc.ledger([{"algorithm": "dp-sgd", **run}], delta=1e-5, gates=gates)):  # fmt: skip
        assert "epsilon would be 2" in ask([]).cases[0].warnings[0]
        with pytest.raises(dpcalc.SpecError, match=r"multiplier of 550 .* epsilon would be 2"):
            ask(["epsilon<=1"])


def test_a_budget_beside_the_noise_is_a_gate_as_well() -> None:
    run: dict[str, Any] = {
        "records": 50000, "batch_size": 500, "clip": 1, "epochs": 20, "sampling": "shuffle", "adjacency": "zero-out",
    }  # fmt: skip
    for ask in (functools.partial(dpcalc.dp_sgd, **run),
                lambda epsilon, delta, **noise: dpcalc.ledger([{"algorithm": "dp-sgd", **run, **noise}],
                                                              epsilon=epsilon, delta=delta)):  # fmt: skip
        with pytest.raises(dpcalc.SpecError, match="multiplier of 550"):
            ask(epsilon=1, delta=1e-5, noise_std=1.1)
        for delta, failed in ((1e-5, False), (1e-4, True)):
            assert ask(epsilon=30, delta=delta, noise_multiplier=1.1).cases[0].failed is failed


@pytest.mark.parametrize("name", WEAK)
def test_an_exception_fails_unless_the_case_accepts_it(write: Write, name: str) -> None:
    found = checked(write(f"a: {WEAK[name]}}}\nb: {WEAK[name]}, accept: {name}}}\nc: {WEAK[name]}, accept: [{name}]}}"))
    assert [(check.status, check.exit_code) for check in found.values()] == [
        ("failed", 1),
        ("passed", 0),
        ("passed", 0),
    ]
    assert f"{name}: {EXCEPTIONS[name]}; if that is meant, write accept: [{name}] in the case" in found["a"].message
    assert (found["a"].accepted, found["b"].accepted) == ((), (name,))


@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("one-index", "{command: rdp, noise_std: 2, epsilon: 1, solve: index, assert: index >= 2}"),
        ("one-index", "{command: rdp, algorithm: stop, noise_std: 2, index: 60000, assert: epsilon <= 9}"),
        ("one-index", "{command: rdp, noise_std: 2, index: 5, expect: {epsilon: 1, tolerance: 0.999999}}"),
        ("one-index", "{command: rdp, noise_std: 2, index: 5, epsilon: 5}"),
        # The last record is alone in its batch; the first one shares it with all others.
        ("one-index", "{algorithm: local, records: 101, batch_size: 100, index: 1, noise_multiplier: 100, "
         "assert: epsilon <= 9}"),
        # Batches differ, and whose records are worst off depends on the theorem: none is known to stand for all.
        ("one-index", "{command: rdp, batch_size: 20, records: 21, last_batch: front, index: 21, noise_std: 1, "
         "assert: epsilon <= 9}"),
        ("one-index", "{algorithm: local, records: 21, batch_size: 20, last_batch: balanced, index: 21, "
         "noise_multiplier: 180, assert: epsilon <= 9}"),
        ("large-delta", "{command: rdp, noise_std: 2, delta: 0.9, assert: epsilon <= 9}"),
        ("large-delta", "{command: rdp, noise_std: 2, delta: null, epsilon: 0.001, assert: delta <= 0.99}"),
        ("large-delta", "{command: rdp, epsilon: 1, delta: 0.5, assert: noise_std <= 9}"),
        ("seeded", TRAINED + ", epsilon: 1, assert: noise_std <= 9, replicas: 2}"),
        ("secret-order", "{command: shuffle, noise_std: 2, permutation: secret, delta: null, epsilon: 1, "
         "assert: delta <= 1e-5}"),
    ],
)  # fmt: skip
def test_siblings_of_an_exception_fail_too(write: Write, name: str, case: str) -> None:
    check = checked(write(f"a: {case}"))["a"]
    assert check.status == "failed"
    assert any(text.startswith(f"{name}: ") for text in check.objections)


def test_a_promise_is_found_wherever_it_came_from(write: Write) -> None:
    write("run: {permutation: secret}", "c.yaml", "")
    head = "dpcalc: recipe/1\ndefaults: {records: 60, lipschitz: 1, smoothness: 1, step_size: 0.1, delta: 1e-6"
    case = "{algorithm: shuffled, noise_std: 2, assert: epsilon <= 9}"
    for text, shared in ((f"a: {case[:-1]}, from: c.yaml#/run}}", "}"), (f"a: {case}", ", permutation: secret}")):
        assert checked(write(text, head=f"{head}{shared}\ncases:\n"))["a"].status == "failed"


@pytest.mark.parametrize(
    "case",
    [
        "{command: rdp, noise_std: 2, index: 60000, assert: epsilon <= 9}",
        "{command: rdp, algorithm: stop, noise_std: 2, index: 1, assert: epsilon <= 9}",
        "{command: rdp, noise_std: 2, delta: 1/60001, assert: epsilon <= 9}",
        "{command: rdp, noise_std: 2, index: 5}",
        "{algorithm: local, batch_size: 7, records: 20, noise_multiplier: 140, index: 20, assert: epsilon <= 9}",
        "{algorithm: local, batch_size: 7, records: 20, noise_multiplier: 140, assert: epsilon <= 9}",
        "{algorithm: shuffled, noise_std: 2, permutation: public, assert: epsilon <= 9}",
        "{command: rdp, noise_std: 2, adjacency: replace-one, assert: epsilon <= 9}",
    ],
)
def test_what_is_no_exception_passes_and_accepts_nothing(write: Write, case: str) -> None:
    assert checked(write(f"a: {case}"))["a"].status == "passed"
    name = "one-index" if "index: 5}" not in case else "seeded"
    check = checked(write(f"a: {case[:-1]}, accept: {name}}}"))["a"]
    assert (check.status, check.exit_code) == ("error", 2)
    assert check.message == f"accept: {name} does not apply to this case"


def test_a_matrix_that_accepts_what_none_of_its_cases_is_looks_once(write: Write) -> None:
    path = write("a: {command: rdp, matrix: {noise_std: 2:5:0.01}, assert: epsilon <= 9, accept: one-index}")
    found = checked(path)
    assert len(found) == 301
    assert {check.exit_code for check in found.values()} == {2}


def test_a_report_of_a_failed_strict_check_is_a_baseline(write: Write) -> None:
    path = write(f"a: {GATED}\nb: {GATED}")
    for more in ("--strict --run a -o old.json --json", "--strict --baseline old.json"):
        with pytest.raises(SystemExit) as stop:
            main(["check", path, *more.split()])
    assert not stop.value.code


def test_a_csv_names_what_was_accepted(write: Write) -> None:
    report = dpcalc.check(write("a: {command: rdp, noise_std: 2, index: 5, assert: epsilon <= 9, accept: one-index}"))
    assert [(row["check"], row["status"], row["accepted"]) for row in report.rows()] == [("a", "passed", "one-index")]


def test_an_exception_of_one_case_of_a_matrix_is_accepted_for_it(write: Write) -> None:
    found = checked(write("a: {command: rdp, noise_std: 2, matrix: {index: [5, 60000]}, assert: epsilon <= 9, "
                          "accept: one-index}"))  # fmt: skip
    assert {check.status for check in found.values()} == {"passed"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {accept: one-indx}", "did you mean one-index?"),
        ("a: {accept: []}", "accept is an empty list"),
        ("a: {accept: [seeded, seeded]}", "seeded is given twice"),
        ("a: {accept: seeded, expect: {error: infeasible}}", "leave out accept"),
    ],
)
def test_what_may_stand_under_accept(bad: Callable[..., str], text: str, said: str) -> None:
    assert said in bad(text)


def test_accept_is_not_taken_by_reference(write: Write) -> None:
    write("run: {accept: one-index}", "c.yaml", "")
    check = checked(write("a: {command: rdp, noise_std: 2, index: 5, from: c.yaml#/run, assert: epsilon <= 9}"))["a"]
    assert (check.status, check.exit_code) == ("error", 2)
    assert check.message is not None
    assert "is no parameter" in check.message or "unknown key" in check.message


def test_accept_is_no_default(bad: Callable[..., str]) -> None:
    head = "dpcalc: recipe/1\ndefaults: {accept: seeded}\ncases:\n"
    assert "accept cannot be a default" in bad("a: {}", head=head)


@pytest.mark.parametrize("kind", KINDS)
def test_every_report_names_what_was_accepted(write: Write, kind: str) -> None:
    report = dpcalc.check(write("a: {command: rdp, noise_std: 2, index: 5, assert: epsilon <= 9, accept: one-index}"))
    if kind == "badge":  # a line has no room for a name, but it is not green
        assert json.loads(render(report, kind))["color"] == "yellow"
        return
    for text in (render(report, kind), render_text(report, "plain")):
        assert "one-index" in text
        assert "1e-06" in text
        assert "replace" in text


@pytest.mark.parametrize("more", ["", "--replicas 2"])
def test_a_gate_on_a_seeded_model_fails(more: str, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"train --synthetic logistic -n 50 --dimension 2 -R 1 -e 1 -d 1e-5 --assert noise_std<=9 --seed 1 {more}"
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 1
    assert "gate failed: private" in capsys.readouterr().err


TELLING = [kind for kind in KINDS if kind != "csv"]  # which has a row for every number, and no more

# --- strict -----------------------------------------------------------------------------------------------------------

GATED = "{command: rdp, noise_std: 2, assert: epsilon <= 9}"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("{command: rdp, noise_std: 2, skip: not yet}", "the case is skipped (not yet)"),
        ("{command: rdp, noise_std: 2}", "the case has no gate"),
        ("{command: rdp, noise_std: 2, step_size: 3, expect: {error: not_applicable}}", "the case has no gate"),
        ("{command: rdp, noise_std: 2, index: 5, assert: epsilon <= 9, accept: one-index}", "accepts one-index"),
    ],
)
def test_a_strict_check_fails(write: Write, case: str, said: str) -> None:
    path = write(f"a: {case}\nb: {GATED}")
    assert checked(path)["a"].exit_code == 0
    found = checked(path, strict=True)
    assert (found["a"].status, found["a"].exit_code, found["b"].status) == ("failed", 1, "passed")
    assert said in found["a"].message
    written = "dpcalc: recipe/1\nstrict: true\n" + Path(path).read_text(encoding="utf-8").partition("\n")[2]
    assert checked(write(written, "s.yaml", ""))["a"].status == "failed"


def test_a_strict_check_leaves_no_case_out(write: Write) -> None:
    path = write(f"a: {GATED}\nb: {GATED}\nc: {GATED}")
    assert list(checked(path, run="a")) == ["a"]
    found = checked(path, run="a", strict=True)
    assert (found["a"].status, found["strict"].status, found["strict"].exit_code) == ("passed", "failed", 1)
    assert "2 cases were not selected: b, c" in found["strict"].message
    assert list(checked(path, strict=True)) == ["a", "b", "c"]


def test_what_is_not_certified_fails_where_it_could_be(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcalc.certify import guarantee, result_proof

    def undecided(*_: Any) -> None:
        raise guarantee.Open("open at 99 bits")

    path = write(f"a: {GATED}\nb: {{command: rdp, noise_std: 2}}")
    assert {check.status for check in checked(path, certify=True).values()} == {"passed"}
    monkeypatch.setattr(result_proof, "proof_of", undecided)
    found = checked(path, certify=True)
    assert (found["a"].status, found["b"].status) == ("failed", "passed")
    assert "not certified: iteration.pnsgd has a definition that does not prove its number" in found["a"].message


FEW_STEPS = (
    "records: 1000, batch_size: 100, steps: 2, noise_multiplier: 1, sampling: poisson, adjacency: add, delta: 6.69e-7",
    "records: 1000, batch_size: 100, steps: 3, noise_multiplier: 1, sampling: poisson, adjacency: add, delta: 6.69e-7",
    "records: 1000, batch_size: 100, steps: 2, noise_multiplier: 2, sampling: poisson, adjacency: add",
    "records: 10000, batch_size: 100, steps: 5, noise_multiplier: 0.7, sampling: poisson, adjacency: add-remove",
    "records: 600, batch_size: 25, epochs: 1, noise_multiplier: 2, sampling: fixed, adjacency: zero-out",
)


@pytest.mark.campaign
def test_few_steps_pass_a_strict_check(write: Write) -> None:
    said = "{command: dp-sgd, lipschitz: null, smoothness: null, step_size: null, assert: epsilon <= 9, "
    path = write("\n".join(f"c{i}: {said}{run}}}" for i, run in enumerate(FEW_STEPS)))
    found = checked(path, certify=True, strict=True)
    assert {check.status for check in found.values()} == {"passed"}, [check.message for check in found.values()]


@pytest.mark.campaign
def test_what_has_no_definition_is_a_warning(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpcalc.certify import table

    left = {id: one for id, one in table.definitions().items() if id != "noisy_sgd.composition"}
    monkeypatch.setattr(table, "definitions", lambda: left)
    path = write("a: {command: multi-epoch, algorithm: noisy-sgd, records: 50, batch_size: 5, steps: 3, noise_std: 2, "
                 "assert: epsilon <= 99}")  # fmt: skip
    [case] = dpcalc.check(path, strict=True).cases
    assert case.check is not None
    assert case.check.status == "passed"
    assert any("is not certified" in warning for warning in case.warnings)


def test_a_strict_check_needs_what_certifies(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strictly.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(dpcalc.SpecError, match="needs python-flint"):
        dpcalc.check(write(f"a: {GATED}"), strict=True)


def test_every_report_names_the_cases_that_were_not_selected(write: Write) -> None:
    report = dpcalc.check(write(f"a: {GATED}\nleft: {GATED}"), run="^a")
    assert report.to_dict()["not_selected"] == [{"file": "r.yaml", "name": "left"}]
    assert report.to_dict()["summary"]["not_selected"] == 1
    for kind in TELLING:
        assert ("with reservations" if kind == "badge" else "left") in render(report, kind)
    assert "not selected: left" in render(report, "html")
    assert "1 not selected" in render_text(report, "plain")
    suite = ElementTree.fromstring(render(report, "junit"))
    assert (suite[0].get("tests"), suite[0].get("skipped")) == ("2", "1")


# --- baselines --------------------------------------------------------------------------------------------------------

BASE = "command: rdp, noise_std: 2, assert: epsilon <= 9"
AGAINST = "a: {command: rdp, noise_std: %s}\nb: {command: rdp, noise_std: %s, assert: epsilon <= cases.a.epsilon}"
ENTRY = (
    "a: {command: ledger, adjacency: replace-one, entries: {x: {mu: 0.1%s}}, assert: epsilon <= 9, "
    "records: null, lipschitz: null, smoothness: null, step_size: null}"
)


def against(write: Write, before: str, after: str, *more: str, capsys: Any = None) -> tuple[int, dict[str, Any]]:
    path = write(before)
    for name, options in (("old.json", ()), ("new.json", ("--baseline", "old.json", *more))):
        with pytest.raises(SystemExit) as stop:
            main(["check", path, "--json", "-o", name, *options])
        write(after)
    return int(stop.value.code or 0), dict(json.loads(Path("new.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("before", "after", "quantity"),
    [
        (f"a: {{{BASE}}}", f"a: {{{BASE}, delta: 1e-5}}", "delta"),
        (f"a: {{{BASE}}}", f"a: {{{BASE}, adjacency: null-record}}", "adjacency"),
        (f"a: {{{BASE}}}", f"a: {{{BASE}, algorithm: stop}}", "algorithm"),
        (f"a: {{{BASE}}}", f"a: {{{BASE}, index: 5, accept: one-index}}", "index"),
        (f"a: {{{BASE}}}", f"a: {{{BASE}, lipschitz: 0.5}}", "lipschitz"),
        (f"a: {{{BASE}}}", f"a: {{{BASE}0}}", ""),
        (f"a: {{{BASE}}}", "a: {command: rdp, noise_std: 2, assert: mu <= 9}", ""),
        (f"a: {{{BASE}}}\nb: {{{BASE}}}", f"a: {{{BASE}}}", ""),
        (f"a: {{{BASE}}}\nb: {{{BASE}}}", f"a: {{{BASE}}}\nb: {{{BASE}, skip: later}}", ""),
        # The text of the gate stays, and the case that it names has less noise.
        (AGAINST % ("2", "4"), AGAINST % ("0.2", "0.4"), ""),
        # The entry was for add-remove, and is now said to be as private under replacement.
        (ENTRY % ", adjacency: add-remove", ENTRY % "", "chained"),
    ],
)
def test_a_weaker_question_fails(write: Write, before: str, after: str, quantity: str) -> None:
    code, report = against(write, before, after)
    assert code == 1
    conforms(report)
    weaker = [change for change in report["changes"] if change["weaker"]]
    assert quantity in {change["quantity"] for change in weaker}
    assert not any("better" in change["what"] for change in report["changes"] if quantity)
    objections = [text for case in report["cases"] for text in case["check"]["objections"]]
    said = ("weaker than in the baseline", "cases of the baseline are gone")
    assert any(text.startswith(said) for text in objections)


@pytest.mark.parametrize(
    "after",
    [
        f"a: {{{BASE}}}",
        f"a: {{{BASE}, delta: 1e-7}}",
        f"a: {{{BASE}, lipschitz: 1.01}}",
        "a: {command: rdp, noise_std: 2.5, assert: epsilon <= 8.5}",
        "a: {command: rdp, noise_std: 2, assert: [epsilon <= 9, mu <= 9]}",
        f"a: {{{BASE}}}\nb: {{{BASE}}}",
        "a: {command: rdp, noise_std: 2, assert: epsilon <= 890%}",
    ],
)
def test_the_same_or_a_stronger_question_passes(write: Write, after: str) -> None:
    assert against(write, f"a: {{{BASE}}}", after, "--certify", "--strict")[0] == 0


SAMPLED = "command: dp-sgd, records: 1000, batch_size: 50, epochs: 2, sampling: balls-in-bins, delta: 1e-5, uses: 2"


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("noise_multiplier: 2.2, clip: 0.5, assert: epsilon <= 9", 0),  # a run with more noise
        ("noise_multiplier: 2.2, clip: 1, uses: 1, assert: epsilon <= 9", 1),  # a record in fewer steps
        ("noise_multiplier: 1.2, clip: 1, assert: epsilon <= 9", 0),  # the gate decides
        ("noise_multiplier: 0.4, clip: 1, assert: epsilon <= 9", 1),
    ],
)
def test_another_noise_multiplier_or_clip_is_another_run(write: Write, after: str, code: int) -> None:
    same = ", ".join(line for line in SAMPLED.split(", ") if line.split(":")[0] not in after)
    cases = (f"{SAMPLED}, noise_multiplier: 2, clip: 1, assert: epsilon <= 9", f"{same}, {after}")
    plain = functools.partial(write, head="dpcalc: recipe/1\ncases:\n")
    before, now = (f"a: {{{case}}}" for case in cases)
    assert against(plain, before, now)[0] == code


@pytest.mark.parametrize("kind", [*TELLING, "plain"])
def test_every_report_shows_what_is_asked_otherwise(write: Write, kind: str, capsys: Any) -> None:
    how = ["--format", "plain"] if kind == "plain" else ["--report", f"{kind}=out.json"]
    against(write, f"a: {{{BASE}}}", f"a: {{{BASE}, delta: 1e-5}}", *(how if kind != "plain" else []))
    if kind == "plain":
        with pytest.raises(SystemExit):
            main(["check", "r.yaml", "--baseline", "old.json", *how])
        text = capsys.readouterr().out
    else:
        text = Path("out.json").read_text(encoding="utf-8")
    if kind == "badge":
        assert json.loads(text)["color"] == "red"
        return
    assert "delta" in text
    assert "asks for less" in text
    assert "1e-05" in text


def test_a_baseline_is_not_believed(write: Write, capsys: Any) -> None:
    path = write(f"a: {{{BASE}}}")
    with pytest.raises(SystemExit):
        main(["check", path, "--json", "-o", "old.json"])
    good = json.loads(Path("old.json").read_text(encoding="utf-8"))
    twice = {**good, "cases": good["cases"] * 2}
    inputs = json.loads(json.dumps(good))
    inputs["cases"][0]["inputs"]["delta"] = {"value": [1], "source": "flag"}
    unnamed = json.loads(json.dumps(good))
    unnamed["cases"][0]["check"]["accepted"] = [1]
    for broken in (twice, inputs, unnamed):
        Path("old.json").write_text(json.dumps(broken), encoding="utf-8")
        with pytest.raises(SystemExit) as stop:
            main(["check", path, "--baseline", "old.json"])
        assert stop.value.code == 2
        assert "is no JSON report of dpcalc check" in capsys.readouterr().err
