"""Ledgers as cases of recipes and in Python: what they answer, and what is refused."""

import math
from pathlib import Path
from typing import Any

import numpy
import pytest

import dpcalc
from dpcalc.errors import SpecError
from dpcalc.render.check.inputs import input_changes, inputs_of
from dpcalc.report import Case
from tests.schema import conforms

EMPTY = "dpcalc: recipe/1\ncases:\n"
FILE = """\
dpcalc: ledger/1
adjacency: add-remove
budget: {epsilon: 4, delta: 1e-5}
entries: {a: {mu: 0.5}, b: {mu: 1}}
"""


@pytest.fixture
def check(write: Any) -> Any:
    """Return a function that gives the cases of a recipe, by name."""

    def run(*text: str, **options: Any) -> dict[str, Case]:
        report = dpcalc.check(write(*text, head=EMPTY), **options)
        conforms(report.to_dict())
        return {case.check.name: case for case in report.cases if case.check}

    return run


def value(case: Case) -> float:
    assert case.best is not None
    return case.best.value


def status(case: Case) -> str:
    assert case.check is not None
    return str(case.check.status)


def test_a_ledger_in_a_recipe_answers_what_python_does(check: Any) -> None:
    cases = check("""\
        gaussian: {command: ledger, delta: 1e-5, entries: {a: {mu: 0.6}, b: {mu: 0.8}}, assert: epsilon <= 4.4}
        over: {command: ledger, delta: 1e-5, entries: {a: {mu: 1}}, assert: epsilon <= 4.3}
        budget: {command: ledger, epsilon: 4.3, delta: 1e-5, entries: {a: {mu: 1}}}
        delta: {command: ledger, epsilon: 1, entries: {a: {mu: 1}}, accept: large-delta,
                expect: {delta: 0.126936737507}}
        noise: {command: ledger, epsilon: 1, delta: 1e-5, solve: noise_std, entries: {a: {sensitivity: 1}}}
        groups: {command: ledger, group_size: 2, delta: 1e-5, entries: {a: {mu: 0.5}},
                 expect: {epsilon: 4.377178095682}}
        sweep: {command: ledger, matrix: {delta: [1e-5, 1e-6]}, entries: {a: {mu: 1}}, assert: epsilon <= 4.5}
    """)
    assert {name: status(case) for name, case in cases.items()} == {
        "gaussian": "passed", "over": "failed", "budget": "failed", "delta": "passed", "noise": "passed",
        "groups": "passed", "sweep[delta=1e-05]": "passed", "sweep[delta=1e-06]": "failed",
    }  # fmt: skip
    assert value(cases["gaussian"]) == value(dpcalc.ledger([{"mu": 0.6}, {"mu": 0.8}], delta=1e-5).cases[0])
    assert value(cases["noise"]) == pytest.approx(1 / 0.268051123211, rel=1e-4)


def test_a_file_with_entries_beside_it(check: Any, tmp_path: Path) -> None:
    (tmp_path / "spent.yaml").write_text(FILE, encoding="utf-8")
    cases = check("""\
        file: {command: ledger, file: spent.yaml}
        more: {command: ledger, file: spent.yaml, entries: {c: {mu: 2}}}
        other: {command: ledger, file: spent.yaml, adjacency: replace-one, delta: 1e-6, epsilon: 30}
        twice: {command: ledger, file: spent.yaml, assert: epsilon <= cases.same.epsilon}
        same: {command: ledger, adjacency: add-remove, delta: 1e-5, entries: {x: {mu: 1}, y: {mu: 0.5}}}
    """)
    assert status(cases["file"]) == "failed"  # its budget
    assert value(cases["file"]) == value(dpcalc.ledger(file="spent.yaml").cases[0])
    assert status(cases["more"]) == "failed"
    assert cases["other"].ledger is not None
    assert cases["other"].ledger["chained"]
    assert status(cases["twice"]) == "error"  # the same entries by other names


def test_an_entry_may_be_an_earlier_case(check: Any) -> None:
    cases = check("""\
        run: {command: rdp, records: 100, lipschitz: 1, smoothness: 1, step_size: 0.5, noise_std: 2, delta: 1e-5}
        all: {command: ledger, delta: 1e-5, entries: {a: {case: run, times: 3}, b: {mu: 0.1}}, assert: epsilon <= 9}
    """)
    entry = {"command": "rdp", "records": 100, "lipschitz": 1, "smoothness": 1, "step_size": 0.5, "noise_std": 2}
    ours = dpcalc.ledger({"a": {**entry, "times": 3}, "b": {"mu": 0.1}}, delta=1e-5)
    assert value(cases["all"]) == value(ours.cases[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: {command: ledger, delta: 1e-5}", "the ledger has no entries"),
        ("a: {command: ledger, delta: 1e-5, entries: {b: {m: 1}}}", "unknown key 'm'"),
        ("a: {command: ledger, delta: 1e-5, entries: {b: {mu: x}}}", "mu"),
        ("a: {command: ledger, delta: 1e-5, entries: {b: {case: z}}}", "there is no earlier case 'z'"),
        ("a: {command: ledger, delta: 1e-5, entries: {b: {case: a}}}", "there is no earlier case 'a'"),
        ("c: {command: convert, mu: 1, delta: 1e-5}\na: {command: ledger, delta: 1e-5, entries: {b: {case: c}}}",
         "convert describes no run"),
        ("c: {command: rdp, matrix: {noise_std: [1, 2]}, delta: 1e-5}\na: {command: ledger, entries: {b: {case: c}}}",
         "c is 2 cases"),
        ("c: {command: rdp, delta: 1e-5}\na: {command: ledger, entries: {b: {case: c, noise_std: 1}}}", "beside case"),
        ("a: {command: ledger, delta: 1e-5, records: 5, entries: {b: {mu: 1}}}", "ledger takes no records"),
        ("a: {command: ledger, delta: 1e-5, budget: {delta: 1}, entries: {b: {mu: 1}}}", "a value is a mapping"),
        ("a: {command: ledger, delta: 1e-5, file: ../../x.yaml}", "leads out of the project"),
        ("a: {command: ledger, delta: 1e-5, file: /etc/passwd}", "absolute path"),
        ("a: {command: ledger, delta: 1e-5, file: '-'}", "standard input"),
        ("a: {command: ledger, delta: 1e-5, partition: moved, entries: {b: {mu: 1}}}", "partition can only be kept"),
        ("a: {command: compare, entries: {b: {mu: 1}}}", "a value is a mapping"),
        ("a: {command: ledger, delta: 1e-5, entries: {b: {command: ledger, mu: 1}}}", "describes no run"),
    ],
)  # fmt: skip
def test_refused(write: Any, text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        dpcalc.check(write(text, head=EMPTY))
    assert words in caught.value.message


def test_a_file_that_is_no_ledger_is_a_fault_of_its_case_and_not_shown(check: Any, tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text("dpcalc: hunter2\n", encoding="utf-8")
    case = check("a: {command: ledger, delta: 1e-5, file: secret.yaml}")["a"]
    assert status(case) == "error"
    assert "hunter2" not in repr(case)
    assert status(check("a: {command: ledger, delta: 1e-5, file: none.yaml}")["a"]) == "error"


def test_what_weakens_a_guarantee_has_to_be_accepted(check: Any) -> None:
    cases = check("""\
        index: {command: ledger, delta: 1e-6, entries: {a: {algorithm: pnsgd, records: 1000, index: 1, lipschitz: 1,
                smoothness: 1, step_size: 0.1, noise_std: 2}}, assert: epsilon <= 50}
        large: {command: ledger, delta: 1e-2, entries: {a: {algorithm: pnsgd, records: 1000, lipschitz: 1,
                smoothness: 1, step_size: 0.1, noise_std: 2}}, assert: epsilon <= 50}
        secret: {command: ledger, delta: 1e-6, entries: {a: {algorithm: shuffled, records: 1000, lipschitz: 1,
                smoothness: 1, step_size: 0.1, noise_std: 2, permutation: secret}}, assert: epsilon <= 50}
        fine: {command: ledger, delta: 1e-6, entries: {a: {algorithm: shuffled, records: 1000, lipschitz: 1,
               smoothness: 1, step_size: 0.1, noise_std: 2}}, assert: epsilon <= 50}
    """)
    found = {name: (case.check.objections if case.check else ()) for name, case in cases.items()}
    assert [bool(found[name]) for name in ("index", "large", "secret", "fine")] == [True, True, True, False]
    assert found["index"][0].startswith("one-index")
    assert found["large"][0].startswith("large-delta")
    assert found["secret"][0].startswith("secret-order")


def test_nothing_is_certified_and_said_so(check: Any) -> None:
    case = check("a: {command: ledger, delta: 1e-5, entries: {a: {mu: 1}}, assert: epsilon <= 5}", certify=True)["a"]
    assert status(case) == "passed"
    assert "ledgers have no definition" in case.warnings[0]


def test_cases_are_answered_in_other_processes(check: Any) -> None:
    case = check("a: {command: ledger, delta: 1e-5, entries: {a: {mu: 1}}, timeout: 100}")["a"]
    assert value(case) == value(dpcalc.ledger([{"mu": 1}], delta=1e-5).cases[0])


def test_a_changed_entry_asks_another_question(tmp_path: Path) -> None:
    first = dpcalc.check(_written(tmp_path, "{mu: 1}")).to_dict()["cases"][0]
    second = dpcalc.check(_written(tmp_path, "{mu: 2}")).to_dict()["cases"][0]
    changes = list(input_changes(("r.yaml", "a"), inputs_of(first), inputs_of(second)))
    assert [change.quantity for change in changes] == ["entry a"]
    assert all(change.weaker for change in changes)


def _written(folder: Path, entry: str) -> Path:
    path = folder / "r.yaml"
    path.write_text(f"{EMPTY}  a: {{command: ledger, delta: 1e-5, entries: {{a: {entry}}}}}\n", encoding="utf-8")
    return path


# --- in Python --------------------------------------------------------------------------------------------------------


def test_python_takes_entries_as_dicts_or_texts() -> None:
    texts = dpcalc.ledger(["epsilon=0.1 times=100", "mu=0.5 tuning.distribution=poisson tuning.mean=5"], delta="1e-6")
    tuning = {"distribution": "poisson", "mean": 5}
    dicts = dpcalc.ledger(
        [{"epsilon": numpy.float64(0.1), "times": numpy.int64(100)}, {"mu": 0.5, "tuning": tuning}], delta=1e-6
    )
    assert texts.cases[0].best == dicts.cases[0].best
    assert dicts.command == "ledger"


def test_python_sweeps_and_gates() -> None:
    report = dpcalc.ledger({"a": {"mu": 1.0}}, delta=[1e-5, 1e-6], gates=["epsilon<=4.5"])
    assert report.failed == 1
    assert [case.inputs["delta"][0] for case in report.cases] == [1e-5, 1e-6]
    assert report.cases[0].best is not None
    assert report.cases[0].best.value == pytest.approx(4.377178095682, rel=1e-11)
    conforms(report.to_dict())


def test_python_solves_and_says_what_is_left() -> None:
    report = dpcalc.ledger({"a": {"mu": 0.1}, "b": {"sensitivity": 1}}, epsilon=1, delta=1e-5, solve="sigma")
    mu = math.sqrt(0.268051123211**2 - 0.01)
    assert value(report.cases[0]) == pytest.approx(1 / mu, rel=1e-4)
    left = dpcalc.ledger({"a": {"mu": 0.1}}, epsilon=1, delta=1e-5).cases[0].ledger
    assert left is not None
    assert left["remaining"]["mu"] == pytest.approx(mu, rel=2e-3)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([], "there are no entries"),
        ([1], "entry added-1 is int"),
        ([{"mu": [1, 2]}], "is no value of an entry"),
        ([{"mu": True}], "is no value of an entry"),
        ([{"m": 1}], "unknown key 'm'"),
        ({"a b": {"mu": 1}}, "is not a name"),
        (["mu"], "is not key=value"),
        ([{"mu": 1, "times": 0}], "times must be a whole number"),
    ],
)
def test_python_refuses(entries: Any, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        dpcalc.ledger(entries, delta=1e-5)
    assert words in caught.value.message


def test_python_adds_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "spent.yaml"
    path.write_text(FILE, encoding="utf-8")
    more = dpcalc.ledger({"c": {"mu": 2}}, file=path)
    assert value(more.cases[0]) > value(dpcalc.ledger(file=path).cases[0])
    with pytest.raises(SpecError, match="entry 'a' is given twice"):
        dpcalc.ledger({"a": {"mu": 2}}, file=path)
