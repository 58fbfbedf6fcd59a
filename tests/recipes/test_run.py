"""Verdicts: what passes, what fails and by how much, what is an error, and that nothing changes the numbers."""

import math
from pathlib import Path
from typing import Any

import pytest

import dpcalc
from dpcalc.checked import Assertion
from dpcalc.engine.ask import ask
from dpcalc.engine.gate import judge, parse
from dpcalc.errors import SpecError
from dpcalc.files.documents import Field, Scalar
from dpcalc.files.place import Place
from dpcalc.recipes.reading.gates import Lookup, judge_gate, read_gates
from dpcalc.recipes.running.checking import checked
from dpcalc.recipes.running.selection import Selection, read_all
from dpcalc.render import render
from dpcalc.report import Case, Report, Result
from tests.recipes.conftest import HEAD
from tests.schema import conforms


def outcome(case: Case) -> tuple[str, int]:
    assert case.check is not None
    return case.check.status, case.check.exit_code


@pytest.fixture
def check(write: Any) -> Any:
    """Return a function that gives the cases of a recipe, by name."""

    def run(*text: str, head: str = HEAD, **options: Any) -> dict[str, Case]:
        report = dpcalc.check(write(*text, head=head), **options)
        conforms(report.to_dict())
        assert render(report, "plain").endswith("\n")
        return {case.check.name: case for case in report.cases if case.check}

    return run


def test_verdicts(check: Any) -> None:
    cases = check("""\
        good: {command: rdp, noise_std: 2, assert: [epsilon <= 5, bound == iteration.pnsgd]}
        over: {command: rdp, noise_std: 2, assert: [epsilon <= 4.8, epsilon <= 5]}
        budget: {command: rdp, noise_std: 2, epsilon: 4.8}
        later: {command: rdp, noise_std: 2, skip: "until the data is there"}
        wrong: {command: rdp, assert: epsilon <= 1}
        silent: {command: rdp, noise_std: 2, assert: noise_std <= 3}
        far: {command: rdp, epsilon: 1, noise_std: null, batch_size: 7, index: 60001}
        never: {command: rdp, step_size: 3, noise_std: 1}
        unreached: {command: rdp, noise_std: 1e-6, epsilon: 1e-6, solve: index, expect: {error: infeasible}}
        refused: {command: rdp, step_size: 3, noise_std: 1, expect: {error: not_applicable}}
        answered: {algorithm: pnsgd, noise_std: 1, expect: {error: not_applicable}}
        other: {command: rdp, step_size: 3, noise_std: 1, expect: {error: infeasible}}
        solved: {command: rdp, epsilon: 1, assert: noise_std <= 9}
    """)
    assert {name: outcome(case) for name, case in cases.items()} == {
        "good": ("passed", 0), "over": ("failed", 1), "budget": ("failed", 1), "later": ("skipped", 0),
        "wrong": ("error", 2), "silent": ("error", 2), "far": ("error", 2), "never": ("error", 3),
        "unreached": ("passed", 0), "refused": ("passed", 0),
        "answered": ("failed", 1), "other": ("error", 3), "solved": ("passed", 0),
    }  # fmt: skip
    for code, some in [(2, cases), (3, [name for name in cases if outcome(cases[name])[1] != 2]),
                       (1, ["good", "later", "over"]), (0, ["good", "later", "refused"])]:  # fmt: skip
        assert Report("check", tuple(cases[name] for name in some)).exit_code == code
    over = cases["over"]
    assert [(a.text, a.passed) for a in over.assertions] == [("epsilon <= 4.8", False), ("epsilon <= 5", True)]
    assert over.check
    assert over.check[3:5] == (5, 47)  # the gate that failed
    assert "4.886" in str(over.check.message)
    assert "iteration.pnsgd" in str(over.check.message)
    assert cases["silent"].check
    assert cases["silent"].check.message == "noise_std is given (2.0): this query finds epsilon"
    assert cases["silent"].check[3:5] == (9, 48)
    assert "--" not in str(cases["wrong"].check)


def test_the_numbers_are_those_of_the_commands(check: Any) -> None:
    cases = check("""\
        rdp: {command: rdp, noise_std: 2}
        compare: {algorithm: shuffled, noise_std: 2, records: 100}
        shuffle: {command: shuffle, noise_std: 2, records: 100}
        order: {command: rdp, noise_std: 2, delta: null, order: [2, 8]}
        solved: {command: multi-epoch, algorithm: cyclic, epochs: 3, epsilon: 1}
        risk: {command: utility, epsilon: 1, dimension: 20, radius: 1, step_size: null}
    """)
    given = {"records": 60000, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "delta": 1e-6}
    noisy = {**given, "noise_std": 2}
    direct = {
        "rdp": dpcalc.rdp(**noisy),
        "compare": dpcalc.compare(algorithm="shuffled", **{**noisy, "records": 100}),
        "shuffle": dpcalc.shuffle(**{**noisy, "records": 100}),
        "order": dpcalc.rdp(**{**noisy, "delta": None}, order=[2, 8]),
        "solved": dpcalc.multi_epoch(**given, epochs=3, epsilon=1),
        "risk": dpcalc.utility(**{**given, "step_size": None}, epsilon=1, dimension=20, radius=1),
    }
    for name, report in direct.items():
        best = [(r.bound, r.quantity, r.value, r.order) for r in report.cases[0].results if r.best]
        assert [(r.bound, r.quantity, r.value, r.order) for r in cases[name].results if r.best] == best


def _case(**values: float) -> Case:
    name, value = next(iter(values.items()))
    return Case("pnsgd", {}, (Result("a.b", "", name, value, "upper", **values, best=True),))  # type: ignore[arg-type]


def _verdict(text: str, value: float, others: dict[str, Case]) -> Assertion:
    place = Place("r.yaml", 1, 1)
    lookup: Lookup = others.__getitem__
    return judge_gate(read_gates(Field(place, Scalar(place, text)), "assert")[0], _case(epsilon=value), lookup)


COMPARISONS = [
    ("epsilon <= cases.a.epsilon", 0.1, True),
    ("epsilon < cases.a.epsilon", 0.1, False),
    ("epsilon <= cases.a.epsilon", math.nextafter(0.1, 1), False),
    ("epsilon <= 3 * cases.a.epsilon", 0.3, True),
    ("epsilon <= 3 * cases.a.epsilon", math.nextafter(0.3, 1), False),
    ("epsilon <= cases.a.epsilon / 3", math.nextafter(0.1 / 3, 1), False),
    ("epsilon <= cases.a.epsilon - cases.b.epsilon * 2^-1 + 1%", math.nextafter(0.105, 1), False),
    ("epsilon <= cases.a.epsilon - cases.b.epsilon * 2^-1 + 1%", 0.1049, True),
    ("epsilon <= 1 - 1 + cases.a.epsilon / cases.b.epsilon", 9.999, True),
]


@pytest.mark.parametrize(("text", "value", "passed"), COMPARISONS)
def test_comparisons_are_exact(text: str, value: float, passed: bool) -> None:
    # Three times the double 0.1 lies between the double 0.3 and the next one, to which floating point would round it.
    found = _verdict(text, value, {"a": _case(epsilon=0.1), "b": _case(epsilon=0.01)})
    assert found.passed is passed


def test_a_comparison_that_cannot_be_made(check: Any) -> None:
    cases = check("""\
        none: {command: rdp, step_size: 3, noise_std: 1}
        a: {command: rdp, noise_std: 2, assert: epsilon <= cases.none.epsilon}
        b: {command: rdp, noise_std: 3, assert: epsilon <= cases.a.noise_std}
        c: {command: rdp, noise_std: 3, assert: epsilon <= 1 / 0 * cases.a.epsilon}
        d: {command: rdp, noise_std: 3, assert: epsilon <= cases.e.epsilon * 1.0}
        e: {command: rdp, noise_std: 2}
    """)
    assert [outcome(case)[1] for case in cases.values()] == [3, 3, 2, 2, 0, 0]
    assert "case none, compared with, has no answer" in str(cases["a"].check)
    assert "divides by zero" in str(cases["c"].check)


def test_expectations(check: Any) -> None:
    value = dpcalc.rdp(records=60000, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6).cases[0].best
    assert value is not None
    cases = check(f"""\
        same: {{command: rdp, noise_std: 2, expect: {{epsilon: {value.value!r}, tolerance: 0, bound: iteration.pnsgd}}}}
        near: {{command: rdp, noise_std: 2, expect: {{epsilon: 4.9, tolerance: 1%}}}}
        lower: {{command: rdp, noise_std: 2, expect: {{epsilon: 4.9, tolerance: 1e-3}}}}
        higher: {{command: rdp, noise_std: 2, expect: {{epsilon: 4.8, tolerance: 1e-3}}}}
        default: {{command: rdp, noise_std: 2, expect: {{epsilon: 4.8866}}}}
        bound: {{command: rdp, noise_std: 2, expect: {{bound: iteration.pnsgd_rdp}}}}
    """)
    assert [outcome(case)[0] for case in cases.values()] == ["passed", "passed", *["failed"] * 4]


def test_a_miss_by_rounding_says_so(check: Any) -> None:
    exact = dpcalc.rdp(records=60000, lipschitz=1, smoothness=1, step_size=0.1, noise_std=2, delta=1e-6).cases[0].best
    assert exact is not None
    below = math.nextafter(exact.value, 0.0)
    cases = check(f"a: {{command: rdp, noise_std: 2, assert: epsilon <= {below!r}}}")
    assert outcome(cases["a"]) == ("failed", 1)
    assert "rounding alone" in str(cases["a"].check)
    report = Report("check", tuple(cases.values()))
    assert "by rounding alone" in render(report, "plain")
    assert "by rounding alone" not in render(dpcalc.check("r.yaml"), "plain").replace("by rounding alone", "", 1)


def test_stopping_early(check: Any) -> None:
    text = """\
        a: {command: rdp, noise_std: 2}
        b: {command: rdp, noise_std: 2, assert: epsilon <= 1}
        c: {command: rdp, noise_std: 2}
    """
    assert list(check(text, fail_fast=True)) == ["a", "b"]
    assert list(check(text)) == ["a", "b", "c"]


def test_choosing_cases(check: Any) -> None:
    text = """\
        a: {command: rdp, noise_std: 2}
        ab: {command: rdp, matrix: {noise_std: [3, 4]}, assert: epsilon <= cases.a.epsilon}
        c: {command: rdp, noise_std: 2, skip: why}
    """
    assert list(check(text, run="^ab")) == ["ab[noise_std=3]", "ab[noise_std=4]"]
    assert list(check(text, run="=4")) == ["ab[noise_std=4]"]
    with pytest.raises(dpcalc.SpecError, match="no case matches 'z'"):
        check(text, run="z")
    with pytest.raises(dpcalc.SpecError, match="not a regular expression"):
        check(text, run="(")
    with pytest.raises(dpcalc.SpecError, match="all 1 cases are skipped"):
        check(text, run="c")
    with pytest.raises(dpcalc.SpecError, match="no recipe was given"):
        dpcalc.check([])


def test_a_broken_case_hides_no_other(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import dpcalc.recipes.running.evaluate as module

    def breaks(command: str, given: Any, *rest: Any, **more: Any) -> Case:
        if given["noise_std"] == 3.0:
            raise ZeroDivisionError("float division")
        return ask(command, given, *rest, **more)

    monkeypatch.setattr(module, "ask", breaks)
    monkeypatch.setattr(module, "closed_form_of", lambda *_, **__: 1 // 0)  # nor does it where closed forms answer
    recipes = read_all([write("s: {command: rdp, matrix: {noise_std: [2, 3, 4]}, assert: epsilon <= 1}")])
    report = checked(Selection(recipes))
    assert [outcome(case) for case in report.cases] == [("failed", 1), ("error", 4), ("failed", 1)]
    assert report.exit_code == 4


def test_a_schedule_beside_the_recipe(write: Any) -> None:
    Path("sub").mkdir()
    Path("sub/steps.csv").write_text("step_size,noise_std,repeat\n0.1,2,50\n", encoding="utf-8")
    path = write(
        "a: {command: rdp, schedule: steps.csv, records: null, step_size: null, assert: epsilon <= 9}", "sub/r.yaml"
    )
    assert [outcome(case) for case in dpcalc.check(path).cases] == [("passed", 0)]


def test_training_is_gated_like_anything_else(check: Any) -> None:
    Path("train.yaml").write_text("run: {data: 'example:breast-cancer', radius: 5, seed: 1}", encoding="utf-8")
    cases = check(
        """\
dpcalc: recipe/1
defaults: {command: train, delta: 1e-5, epsilon: 1}
cases:
  a: {from: train.yaml#/run, assert: noise_std <= 1, accept: seeded}
  b: {from: train.yaml#/run, intercept: true, matrix: {replicas: [2, 3]}}
  c: {intercept: true, assert: noise_std <= 1}
""",
        head="",
    )
    assert [outcome(case) for case in cases.values()] == [("passed", 0), ("passed", 0), ("passed", 0), ("error", 2)]
    assert cases["a"].training
    assert cases["a"].training["private"] is False


def test_a_quantity_that_is_also_a_method_of_tuples(check: Any) -> None:
    cases = check("a: {command: rdp, noise_std: 2, assert: index >= 5}")
    assert outcome(cases["a"]) == ("error", 2)


def test_a_gate_on_the_bound_speaks_of_every_order() -> None:
    def result(bound: str, order: float) -> Result:
        return Result(bound, "", "rdp", 1.0, "upper", order=order, best=True)

    def passed(*bounds: str) -> bool:
        case = Case("pnsgd", {}, tuple(result(bound, 2.0 + place) for place, bound in enumerate(bounds)))
        return judge(parse("bound==iteration.pnsgd"), case).passed

    assert passed("iteration.pnsgd", "iteration.pnsgd")
    assert not passed("iteration.pnsgd", "iteration.pnsgd_rdp")


@pytest.mark.parametrize("pattern", ["(?:" * 9000 + ")" * 9000, "a{99999999999999999999}"])
def test_a_pattern_that_python_cannot_read_is_a_matter_of_usage(write: Any, pattern: str) -> None:
    with pytest.raises(SpecError, match="is not a regular expression"):
        dpcalc.check(write("a: {algorithm: pnsgd, noise_std: 1}"), run=pattern)


def test_a_cost_of_another_run_passes_no_gate(check: Any) -> None:
    # Noise of 1e-9 is not (1, 1e-6)-private; the best cost is of a run whose noise is chosen for that budget.
    cases = check(
        """\
        chosen: {assert: excess_risk <= 100}
        given: {noise_std: 1e-9, assert: empirical_excess_risk <= 100}
        cost: {noise_std: 1e-9, assert: excess_risk <= 100}
        step: {step_size: 1e-9, assert: excess_risk <= 100}
    """,
        head="""\
dpcalc: recipe/1
defaults: {command: utility, loss: logistic, feature_bound: 1, records: 1000, radius: 1, dimension: 20, epsilon: 1,
           delta: 1e-6}
cases:
""",
    )
    assert {name: outcome(case) for name, case in cases.items()} == {
        "chosen": ("passed", 0), "given": ("error", 2), "cost": ("error", 2), "step": ("error", 2),
    }  # fmt: skip
    assert "no gate on it speaks of the run described" in cases["given"].check.message


def test_passes_that_were_not_given_are_told(check: Any) -> None:
    cases = check("""\
        a: {algorithm: shuffled-epochs, noise_std: 2, assert: epsilon <= 5}
        b: {algorithm: shuffled-epochs, noise_std: 2, epochs: 1, assert: epsilon <= 5}
        c: {algorithm: shuffled, noise_std: 2, assert: epsilon <= 5}
    """)
    said = "no --epochs is given: this is for one pass of shuffled-epochs"
    assert {name: said in case.notes for name, case in cases.items()} == {"a": True, "b": False, "c": False}
