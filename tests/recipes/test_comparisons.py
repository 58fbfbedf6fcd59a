"""Gates that compare a case with itself, where only the answers show that it is one."""

from collections.abc import Callable
from typing import Any

import pytest

import dpcalc
from dpcalc.recipes.reading.recipe import Recipe

Write = Callable[..., str]


def checks(path: str) -> dict[str, Any]:
    return {case.check.name: case.check for case in dpcalc.check(path).cases if case.check}


@pytest.mark.parametrize(
    "twin",
    [
        "{command: rdp, noise_std: 2, index: 60000}",  # the worst index, which is the default
        "{command: rdp, noise_std: 2, algorithm: pnsgd, adjacency: replace-one}",
        "{command: compare, noise_std: 2, algorithm: pnsgd}",
        "{command: rdp, noise_std: 2.0, batch_size: 1, strong_convexity: 0}",
        "{command: compare, noise_std: 2, algorithm: pnsgd, loss_class: convex-smooth, epochs: 1}",
    ],
)
def test_a_twin_written_differently_is_found_out(write: Write, twin: str) -> None:
    path = write(f"""\
        a: {{command: rdp, noise_std: 2, assert: epsilon <= cases.b.epsilon * 1.5}}
        b: {twin}
    """)
    found = checks(path)["a"]
    assert (found.status, found.exit_code) == ("error", 2)
    assert "case b comes down to the same computation" in found.message


@pytest.mark.parametrize(
    "other",
    [
        "{command: rdp, noise_std: 1.5}",
        "{command: rdp, noise_std: 2, delta: 1e-7}",
        "{command: rdp, noise_std: 2, records: 1000, index: 999, batch_size: 10}",
    ],
)
def test_another_run_or_question_may_be_compared_with(write: Write, other: str) -> None:
    path = write(f"""\
        a: {{command: rdp, noise_std: 2, assert: epsilon <= cases.b.epsilon * 1e6}}
        b: {other}
    """)
    assert checks(path)["a"].status == "passed"


def test_copies_of_a_schedule_are_the_same(write: Write) -> None:
    for name in ("one.csv", "two.csv"):
        write("step_size,noise_std\n0.1,2\n0.1,3\n", name, "")
    path = write("""\
        a: {command: rdp, schedule: one.csv, step_size: null, records: null, assert: epsilon <= cases.b.epsilon}
        b: {command: rdp, schedule: two.csv, step_size: null, records: null}
    """)
    assert checks(path)["a"].exit_code == 2


def test_a_gate_of_the_defaults_is_taken_away_where_it_would_circle(good: Callable[..., Recipe], bad: Any) -> None:
    head = "dpcalc: recipe/1\ndefaults: {records: 9, assert: epsilon <= cases.base.epsilon}\ncases:\n"
    assert "epsilon of case base is compared with itself" in bad("base: {}\na: {noise_std: 2}", head=head)
    recipe = good("base: {assert: null}\na: {noise_std: 2}", head=head)
    assert [len(entry.gates) for entry in recipe.entries.values()] == [0, 1]


def test_a_default_gate_is_not_dropped_where_an_error_is_expected(good: Callable[..., Recipe], bad: Any) -> None:
    head = "dpcalc: recipe/1\ndefaults: {records: 9, assert: epsilon <= 1}\ncases:\n"
    assert "the defaults assert 'epsilon <= 1'" in bad("a: {expect: {error: infeasible}}", head=head)
    recipe = good("a: {expect: {error: infeasible}, assert: null}", head=head)
    assert recipe.entries["a"].gates == ()


def test_a_long_chain_of_comparisons_is_none(good: Callable[..., Recipe]) -> None:
    cases = [f"c{k}: {{noise_std: {k + 1}, assert: epsilon <= cases.c{k + 1}.epsilon * 9}}" for k in range(3000)]
    assert len(good("\n".join([*cases, "c3000: {noise_std: 9999}"])).entries) == 3001
