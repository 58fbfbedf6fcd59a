"""From text to cases: defaults, matrices, every value checked, and every mistake named with its place."""

import math
from typing import Any

import pytest

from dpcalc.engine.commands import COMMANDS
from dpcalc.recipes.reading.read import KEYS, read
from dpcalc.recipes.reading.recipe import Malformed
from dpcalc.recipes.reading.settings import CASE_KEYS, parameters_of
from tests.recipes.conftest import HEAD


def test_defaults_and_what_takes_them_away(good: Any) -> None:
    recipe = good("""\
        a: {command: rdp, noise_std: 2, delta: 1e-400}
        b: {command: rdp, epsilon: 1, records: 1e3, batch_size: null}
        c: {command: utility, dimension: 20, step_size: null, epsilon: 50%, radius: 2^-1}
    """)
    a, b, c = recipe.entries.values()
    assert a.parameters == {"records": 60000, "lipschitz": 1.0, "smoothness": 1.0, "step_size": 0.1, "noise_std": 2.0}
    assert a.question.log_delta == pytest.approx(-400 * math.log(10.0), rel=1e-15)
    assert (a.question.delta, a.question.epsilon) == (5e-324, None)
    assert (b.parameters["records"], b.question.epsilon, b.question.delta) == (1000, 1.0, 1e-6)
    assert "step_size" not in c.parameters
    assert (c.question.epsilon, c.parameters["radius"]) == (0.5, 0.5)
    assert [entry.place[1:] for entry in recipe.entries.values()] == [(4, 3), (5, 3), (6, 3)]


def test_compare_is_what_is_run_by_default(good: Any) -> None:
    assert good("a: {algorithm: pnsgd, noise_std: 2}").entries["a"].command == "compare"


def test_a_matrix_with_its_exceptions(good: Any) -> None:
    recipe = good("""\
        s:
          matrix: {algorithm: [pnsgd, shuffled], epochs: 1:10:9, noise_std: [1/2, 2.50]}
          exclude: [{algorithm: pnsgd, epochs: 10}, {epochs: 1, algorithm: shuffled, noise_std: 2.5}]
          include: [{algorithm: stop, noise_std: 7}]
    """)
    assert list(recipe.entries) == [
        "s[algorithm=pnsgd,epochs=1,noise_std=0.5]",
        "s[algorithm=pnsgd,epochs=1,noise_std=2.5]",
        "s[algorithm=shuffled,epochs=1,noise_std=0.5]",
        "s[algorithm=shuffled,epochs=10,noise_std=0.5]",
        "s[algorithm=shuffled,epochs=10,noise_std=2.5]",
        "s[algorithm=stop,noise_std=7]",
    ]
    assert [entry.name for entry in recipe.made["s"]] == list(recipe.entries)
    last = recipe.entries["s[algorithm=stop,noise_std=7]"]
    assert last.parameters["noise_std"] == 7.0
    assert last.parameters["records"] == 60000
    assert "epochs" not in last.parameters


def test_an_include_alone_makes_its_cases_only(good: Any) -> None:
    assert list(good("s: {algorithm: pnsgd, include: [{noise_std: 1}, {noise_std: 2}]}").entries) == [
        "s[noise_std=1]", "s[noise_std=2]",
    ]  # fmt: skip


def test_orders_are_a_list_in_a_case_and_one_each_in_a_matrix(good: Any) -> None:
    recipe = good("""\
        a: {command: rdp, noise_std: 2, delta: null, order: [2, 4]}
        b: {command: rdp, noise_std: 2, delta: null, matrix: {order: [2, 4]}}
    """)
    assert [entry.question.orders for entry in recipe.entries.values()] == [(2.0, 4.0), (2.0,), (4.0,)]


def test_assertions_of_the_defaults_are_added(write: Any) -> None:
    path = write(
        "dpcalc: recipe/1\ndefaults: {assert: epsilon <= 9}\ncases: {a: {assert: [epsilon <= 1, delta < 1%]}}", head=""
    )
    assert [gate.gate.text for gate in read(path).entries["a"].gates] == [
        "epsilon <= 9",
        "epsilon <= 1",
        "delta < 1%",
    ]


NUMBERS = [
    ("1:30", "5:16: noise_std: '1:30' is not a number"),
    ("010", "5:16: noise_std is 010, which some YAML readers take for 10 and some for an octal"),
    ("0x10", "'0x10' is not a number"),
    ("no", "'no' is not a number"),
    (".inf", "'.inf' is not a number"),
    ("inf", "a finite number is needed"),
    (".nan", "'.nan' is not a number"),
    ("'1,5'", "'1,5' is not a number"),
    ("0", "noise_std is 0.0; it must be a number > 0"),
    ("''", "5:16: noise_std is empty"),
    ("", "noise_std is empty"),
    ("[1, 2]", "5:16: noise_std is a list | to try several values, put them under matrix"),
    ("{a: 1}", "5:16: a value is a mapping"),
    ("2e308", "too large"),
    ("1" * 101, "too long"),
    ("true", "'true' is not a number"),
]


@pytest.mark.parametrize(("text", "message"), NUMBERS)
def test_numbers(bad: Any, text: str, message: str) -> None:
    assert message in bad(f"a:\n  noise_std: {text}\n")


CASES = [
    ("a: {nose_std: 1}", "r.yaml:4:7: unknown key 'nose_std' | did you mean noise_std?"),
    ("a: {noise_scale: 1}", "did you mean noise_std?"),
    ("a: {n: 1}", "did you mean records?"),
    ("a: {noise-std: 1}", "did you mean noise_std?"),
    ("a: {asert: epsilon <= 1}", "did you mean assert?"),
    ("a: {output: /etc/passwd}", "4:7: unknown key 'output'"),
    ("a: {command: rpd}", "4:16: unknown command 'rpd' | did you mean rdp?"),
    ("a: {command: [rdp]}", "command is a list"),
    ("a: {command: rdp, epochs: 3}", "4:21: case a: rdp takes no epochs"),
    ("a: {algorithm: no}", "4:18: algorithm is 'no'; it must be one of"),
    ("a: {algorithm: shufled}", "did you mean shuffled"),
    ("a: {command: rdp, algorithm: shuffled}", "here it must be one of pnsgd, skip, stop, local"),
    ("a: {noise_std: null}\na: {}", "5:3: 'a' is given twice, first in line 4"),
    ("a b: {}", "4:3: 'a b' is not a name of a case"),
    ("a.b: {}", "is not a name of a case"),
    ("a: 1", "4:6: case a is a single value; it must be a mapping"),
    ("a: {delta: 0}", "delta: '0' is not a positive number"),
    ("a: {delta: 100%}", "delta: delta is 100%; it must be a number > 0 and < 1"),
    ("a: {records: 1.5}", "records: '1.5' is not a whole number"),
    ("a: {skip: yes}", "4:13: skip needs a reason"),
    ("a: {skip: null}", "skip needs a reason"),
    ("a: {skip: }", "skip is empty"),
    ("a: {skip: 0}", "skip needs a reason"),
    ("a: {skip: none}", "skip needs a reason"),
    ("a: {skip: '-'}", "skip needs a reason"),
    ("a: {skip: \" False\\t\"}", "skip needs a reason"),
    ("b: {}\na: {assert: [delta <= 1, epsilon <= cases.b.epsilon + cases.a.epsilon]}",
     "5:28: epsilon of case a is compared with itself"),
    ("a: {include: {epochs: 2}, assert: 'epsilon <= cases.a[epochs=2].epsilon'}", "compared with itself"),
    ("self: {assert: epsilon <= cases.self.epsilon * 1}", "4:18: epsilon of case self is compared with itself"),
    ("a: {assert: epsilon <= cases.a.epsilon + 0}", "epsilon of case a is compared with itself"),
    ("a: {assert: epsilon <= cases.a.epsilon / cases.a.epsilon}", "epsilon of case a is compared with itself"),
    ("a: {assert: epsilon <= cases.a.mu * 9}", "epsilon of case a is compared with itself"),
    ("a: {matrix: {noise_std: [1, 2]}, assert: 'epsilon <= cases.a[noise_std=1].epsilon'}",
     "epsilon of case a is compared with itself"),
    ("b: {noise_std: 2, description: b}\na: {noise_std: 2, assert: epsilon <= cases.b.epsilon}",
     "5:29: epsilon of case a is compared with itself: b asks the same"),
    ("b: {noise_std: 2}\na: {matrix: {noise_std: [1, 2]}, assert: epsilon <= cases.b.epsilon}",
     "epsilon of case a[noise_std=2] is compared with itself: b asks the same"),
    ("a: {noise_std: 1, assert: epsilon <= cases.b.epsilon}\nb: {noise_std: 2, assert: epsilon <= cases.a.epsilon}",
     "cases are compared with each other in a circle: "),
    ("a: {noise_std: 1, assert: epsilon <= cases.b.epsilon}\nb: {noise_std: 2, assert: epsilon <= cases.c.epsilon}\n"
     "c: {noise_std: 3, assert: epsilon <= cases.a.epsilon}", "cases are compared with each other in a circle: "),
    ("a: {matrix: {epochs: 1:20000:1}}", "20000 values; a sweep has at most 10000"),
    ("a: {matrix: {epochs: 1:1000000:1, records: 1:1000000:1}}", "a sweep has at most 10000"),
    ("a: {matrix: {epochs: 1:1000:1, records: 1:1000:1, noise_std: 1:1000:1, index: 1:1000:1}}",
     "case a makes 1000000000000 cases; a recipe has at most 10000"),
    ("a: {matrix: {epochs: 1:5000:1}}\nb: {matrix: {epochs: 1:5001:1}}", "5:3: case b makes 5001 cases"),
    ("a: {matrix: {epochs: []}}", "epochs has no values"),
    ("a: {matrix: {epochs: [1, 1.0]}}", "epochs has the value 1 twice"),
    ("a: {matrix: {epochs: 1:30}}", "4:24: epochs: '1:30' is not a range"),
    ("a: {matrix: {epocs: [1]}}", "did you mean epochs?"),
    ("a: {matrix: {}}", "matrix is empty"),
    ("a: {epochs: 1, matrix: {epochs: [1, 2]}}", "epochs is set in the case and in its matrix"),
    ("a: {matrix: {epochs: [1, null]}}", "epochs is null"),
    ("a: {matrix: {epochs: [1, 2]}, exclude: [{epochs: 3}]}", "4:52: no case has epochs = 3 | it excludes nothing"),
    ("a: {matrix: {epochs: [1, 2]}, exclude: [{epoch: 1}]}", "did you mean epochs?"),
    ("a: {matrix: {epochs: [1]}, exclude: {epochs: 1}}", "exclude leaves no case"),
    ("a: {matrix: {epochs: [1]}, include: {epochs: 1}}", "'a[epochs=1]' is given twice"),
    ("a: {include: {epocs: 1}}", "did you mean epochs?"),
    ("a: {include: [{}]}", "an entry of include is empty"),
    ("a: {assert: epsilon}", "4:15: 'epsilon' is not an assertion"),
    ("a: {assert: epsilon >= 1}", "only <= and < can be promised"),
    ("a: {assert: epsilom <= 1}", "cannot assert on 'epsilom' | did you mean epsilon?"),
    ("a: {assert: eps <= 1}", "cannot assert on 'eps' | did you mean epsilon?"),
    ("a: {assert: epsilon <= 1 + 1}", "is not a number"),
    ("a: {assert: bound == shuffle.mixtur}", "did you mean shuffle.mixture"),
    ("a: {assert: [epsilon <= 1, [delta <= 1]]}", "4:30: assert is a list"),
    ("a: {assert: []}", "empty list"),
    ("a: {assert: epsilon <= cases.b.epsilon}", "4:15: there is no case 'b'"),
    ("bud: {}\na: {assert: epsilon <= cases.bd.epsilon}", "did you mean bud?"),
    ("b: {skip: why}\na: {assert: epsilon <= cases.b.epsilon}", "5:15: case b is skipped"),
    ("b: {matrix: {epochs: [1, 2]}}\na: {assert: epsilon <= cases.b.epsilon}", "b is 2 cases | name one: b[epochs=1]"),
    ("b: {}\na: {assert: epsilon <= cases.b.epsilom}", "did you mean epsilon?"),
    ("b: {}\na: {assert: epsilon <= cases.b.epsilon *}", "the right side ends too soon"),
    ("b: {}\na: {assert: epsilon <= 2 cases.b.epsilon}", "is not expected here"),
    ("b: {}\na: {assert: epsilon <= (cases.b.epsilon)}", "'(cases.b.epsilon)' is not expected here"),
    ("b: {}\na: {assert: epsilon <= cases.b.epsilon.__class__}", "is not expected here"),
    ("b: {}\na: {assert: epsilon <= __import__('os') + cases.b.epsilon}", "is not expected here"),
    ("a: {expect: {epsilom: 1}}", "4:16: cannot expect 'epsilom' | did you mean epsilon?"),
    ("a: {expect: {epsilon: one}}", "4:25: epsilon: 'one' is not a number"),
    ("a: {expect: {epsilon: 1, tolerance: 2}}", "tolerance is 2.0; it must be >= 0 and < 1"),
    ("a: {expect: {error: oops}}", "error is 'oops'; it must be one of infeasible"),
    ("a: {expect: {error: infeasible, epsilon: 1}}", "an error and a value are expected"),
    ("a: {expect: {error: infeasible}, assert: epsilon <= 1}", "an error is expected, and something asserted"),
    ("a: {expect: {}}", "expect says nothing"),
    ("a: {expect: epsilon}", "expect is a single value; it must be a mapping"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CASES, ids=[text for text, _ in CASES])
def test_what_is_wrong_with_a_case(bad: Any, text: str, message: str) -> None:
    said = bad(text)
    assert message in said
    assert said.startswith("r.yaml:")


WHOLE = [
    ("", "r.yaml: is empty"),
    ("# nothing\n", "r.yaml: is empty"),
    ("[1]", "1:1: the recipe is a list"),
    ("cases: {a: {}}", "1:1: this is not a recipe: the version is missing | start with dpcalc: recipe/1"),
    ("dpcalc: recipe/2\ncases: {a: {}}", "1:9: dpcalc is 'recipe/2'; this release reads recipe/1"),
    ("dpcalc: ledger/1\nentries: {}", "this release reads recipe/1 | a ledger is added up with `dpcalc ledger`"),
    ("dpcalc: recipe/1\ncase: {a: {}}", "2:1: unknown key 'case' | did you mean cases?"),
    ("dpcalc: recipe/1", "there are no cases"),
    ("dpcalc: recipe/1\ncases: {}", "2:8: there are no cases"),
    ("dpcalc: recipe/1\ncases:", "cases is a single value"),
    ("dpcalc: recipe/1\ndefaults: {matrix: {}}\ncases: {a: {}}", "2:12: matrix cannot be a default"),
    ("dpcalc: recipe/1\ndefaults: {colour: 1}\ncases: {a: {}}", "2:12: unknown parameter 'colour'"),
]


@pytest.mark.parametrize(("text", "message"), WHOLE, ids=[text for text, _ in WHOLE])
def test_what_is_wrong_with_a_whole(bad: Any, text: str, message: str) -> None:
    assert message in bad(text, head="")


def test_every_case_is_looked_at_before_a_recipe_is_refused(write: Any) -> None:
    with pytest.raises(Malformed) as caught:
        read(write("a: {noise_std: x}\nb: {noise_std: 1}\nc: {colour: 1}\n"))
    assert [error.place[1:] for error in caught.value.errors] == [(4, 18), (6, 7)]


@pytest.mark.parametrize("command", list(COMMANDS))
def test_no_parameter_is_called_as_a_key(command: str) -> None:
    assert not set(parameters_of(command)) & {*CASE_KEYS, *KEYS}
    assert HEAD.count("\n") == 3


TRAINED = [
    ("{data: /etc/passwd}", "'/etc/passwd' is an absolute path"),
    ("{data: ../x.csv}", "leads out of the project"),
    ("{ranges: ../x.csv}", "leads out of the project"),
    ("{intercept: yes}", "intercept is 'yes'; it must be true or false"),
    ("{seed: 1.5}", "seed: '1.5' is not a whole number"),
    ("{test_fraction: 010}", "test_fraction is 010"),
    ("{output: model.json}", "unknown key 'output'"),
]


@pytest.mark.parametrize(("body", "message"), TRAINED)
def test_what_is_wrong_with_a_training_case(bad: Any, body: str, message: str) -> None:
    assert message in bad(f"a: {body}", head="dpcalc: recipe/1\ndefaults: {command: train}\ncases:\n")


def test_what_a_training_case_is_given(good: Any) -> None:
    recipe = good(
        "a: {data: x.csv, ignore: [id, name], intercept: false, seed: 1e3, test_fraction: 20%, target: no}",
        head="dpcalc: recipe/1\ndefaults: {command: train}\ncases:\n",
    )
    assert recipe.entries["a"].parameters == {
        "data": "x.csv", "ignore": ("id", "name"), "intercept": False, "seed": 1000, "test_fraction": 0.2,
        "target": "no",
    }  # fmt: skip
