"""Ledgers: what they read, what they refuse and where, and their totals."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dpcalc
from dpcalc.cli.commands.ledger import command
from dpcalc.engine.ledgers.total import answer_ledger
from dpcalc.errors import DpcalcError, Infeasible, NotApplicable, SpecError
from dpcalc.model.question import Ledger, Question
from dpcalc.notions import gaussian, pld
from dpcalc.recipes.ledgers.ledger import read_ledger, with_asked
from dpcalc.render import render
from dpcalc.render.notes import report
from dpcalc.report import Case
from tests.schema import conforms

HEAD = "dpcalc: ledger/1\nbudget: {delta: 1e-5}\n"
POISSON = "{algorithm: dp-sgd, records: 50000, batch_size: 500, epochs: 20, sampling: poisson, noise_multiplier: 1.1}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str, head: str = HEAD, name: str = "l.yaml") -> str:
    Path(name).write_text(head + text, encoding="utf-8")
    return name


def asked(text: str, head: str = HEAD, **flags: str) -> Case:
    return answer_ledger(*with_asked(*read_ledger(written(text, head)), **flags))


def entries(*lines: str, delta: str = "1e-5", **flags: str) -> Case:
    return answer_ledger(*with_asked(*read_ledger(None, lines), delta=delta, **flags))


def epsilon_of(case: Case) -> float:
    assert case.best is not None
    assert case.best.epsilon is not None
    return case.best.epsilon


# --- totals -----------------------------------------------------------------------------------------------------------


def test_gaussian_entries_are_one_gaussian() -> None:
    case = entries("mu=0.3 times=4", "noise_multiplier=1.25", "noise_std=10 sensitivity=8")
    mu = math.sqrt(4 * 0.09 + (2 / 1.25) ** 2 + 0.64)  # a record is replaced: the sum moves by twice its norm
    assert case.best is not None
    assert case.best.bound == "ledger.gdp"
    exact = gaussian.epsilon(mu=mu, log_delta_target=math.log(1e-5))
    assert exact <= case.best.value <= exact * (1.0 + 1e-12)


def test_a_pure_mechanism_many_times_is_optimal_composition() -> None:
    """ln delta of the whole at 4.77457 by the sum over binomial counts, term by term."""
    value = epsilon_of(entries("epsilon=0.1 times=100", delta="1e-6"))
    p = 1.0 / (1.0 + math.exp(-0.1))
    delta = math.fsum(
        math.comb(100, x) * p**x * (1 - p) ** (100 - x) * max(0.0, 1.0 - math.exp(value - 0.1 * (2 * x - 100)))
        for x in range(101)
    )
    assert delta == pytest.approx(1e-6, rel=1e-9)


def test_laplace_noise_very_many_times_is_no_looser_than_pure() -> None:
    """10^10 losses of 1e-5 are about those of mu = 1, and the rounding of a lattice does not count."""
    found = epsilon_of(entries("laplace_scale=1e5 sensitivity=1 times=10000000000"))
    assert found == pytest.approx(gaussian.epsilon(mu=1.0, log_delta_target=math.log(1e-5)), rel=1e-5)


def test_a_described_run_alone_is_what_the_commands_say() -> None:
    run = "algorithm=dp-sgd records=50000 batch_size=500 epochs=20 sampling=poisson noise_multiplier=1.1"
    assert epsilon_of(entries(run, adjacency="add-remove")) == pytest.approx(2.159726, abs=3e-6)  # a known value
    assert epsilon_of(entries(run, adjacency="add")) == pytest.approx(1.860723, abs=3e-6)
    assert epsilon_of(entries(run, adjacency="replace-one")) == pytest.approx(3.655922, abs=4e-6)


def test_order_and_repetition_do_not_matter() -> None:
    one = entries("laplace_scale=4 sensitivity=1 times=3", "mu=0.5")
    other = entries("mu=0.5", "laplace_scale=2 sensitivity=0.5 times=2", "laplace_scale=4 sensitivity=1")
    assert epsilon_of(one) == pytest.approx(epsilon_of(other), rel=1e-9)


def test_a_profile_and_a_gaussian_cost_more_than_either_and_less_than_their_sum() -> None:
    run = "algorithm=shuffled records=1000 lipschitz=1 smoothness=1 step_size=0.1 noise_std=4"
    alone, both = epsilon_of(entries(run)), epsilon_of(entries(run, "mu=0.5"))
    single = epsilon_of(entries("mu=0.5"))
    assert max(alone, single) < both < alone + single


def test_renyi_only_entries_compose() -> None:
    run = "algorithm=skip records=1000 lipschitz=1 smoothness=1 step_size=0.1 noise_std=1"
    case = entries(run + " times=3", "mu=0.5")
    assert max(epsilon_of(entries(run)), epsilon_of(entries("mu=0.5"))) < epsilon_of(case) < math.inf


def test_delta_at_an_epsilon() -> None:
    case = answer_ledger(*with_asked(*read_ledger(None, ["mu=1"]), epsilon="1"))
    assert case.best is not None
    assert case.best.quantity == "delta"
    assert case.best.value == pytest.approx(0.126936737507)


def test_parts_are_disjoint_and_the_worst_counts() -> None:
    text = "adjacency: add-remove\nentries:\n  all: {mu: 0.3}\n  a: {mu: 0.4, part: a}\n  b: {mu: 1.2, part: b}\n"
    case = asked(text)
    assert case.best is not None
    assert case.best.mu == pytest.approx(math.hypot(0.3, 1.2))
    assert case.ledger is not None
    assert case.ledger["part"] == "b"


def test_replacement_follows_from_add_remove_by_the_chain() -> None:
    text = "entries:\n  a: {mu: 0.5, adjacency: add-remove}\n  b: {mu: 1, adjacency: add-remove}\n"
    own = asked(text).best
    assert own is not None
    assert (own.adjacency, own.mu) == ("add-remove", pytest.approx(math.hypot(0.5, 1.0)))
    case = asked(f"adjacency: replace-one\n{text}")
    assert case.best is not None
    assert case.best.mu == pytest.approx(2.0 * math.hypot(0.5, 1.0))
    assert case.best.adjacency == "replace-one"
    poisson = POISSON.replace("{", "{adjacency: add-remove, ")
    chained = epsilon_of(asked(f"adjacency: replace-one\nentries:\n  a: {poisson}\n"))
    assert 3.655922 < chained < 5.0  # the pair of replacement itself is better


def test_groups() -> None:
    assert epsilon_of(entries("mu=0.5", group_size="3")) == pytest.approx(epsilon_of(entries("mu=1.5")))
    grouped = entries("epsilon=0.5 delta=1e-5", delta="5.4e-5", group_size="3")
    assert epsilon_of(grouped) == pytest.approx(1.5, abs=1e-3)  # known: 5.36700e-5 at 1.5


SAMPLED = "algorithm=dp-sgd records=1000 sample_rate=0.01 noise_multiplier=1.1 sampling=poisson"


@pytest.mark.parametrize(
    "steps",
    [100, pytest.param(2000, marks=pytest.mark.campaign)],  # 7.6503 for 2000 steps: the reference
)
def test_groups_of_sampled_steps_are_exact(steps: int) -> None:
    case = entries(f"{SAMPLED} steps={steps}", adjacency="add-remove", group_size="3")
    alone = dpcalc.dp_sgd(
        sample_rate=0.01, steps=steps, noise_multiplier=1.1, sampling="poisson", adjacency="add-remove", group_size=3,
        delta=1e-5,
    )  # fmt: skip
    assert case.best is not None
    assert case.best.bound == "ledger.groups"
    assert alone.cases[0].best is not None
    assert epsilon_of(case) == pytest.approx(alone.cases[0].best.value, rel=1e-9)
    if steps == 2000:
        assert epsilon_of(case) == pytest.approx(7.6503, rel=1e-5)


@pytest.mark.campaign
def test_groups_of_several_entries_are_composed_pair_by_pair() -> None:
    case = entries(
        f"{SAMPLED} steps=50", "mu=0.1", "laplace_scale=50 sensitivity=1", adjacency="add-remove", group_size="2"
    )
    pairs = [
        (pld.removed_group(mu=1 / 1.1, rate=0.01, size=2), 50),
        (pld.gaussian_sum([(0.2, 1)]), 1),
        (pld.laplace(ratio=0.04), 1),
    ]
    reverse = [(pair._replace(forward=pair.backward, backward=pair.forward), count) for pair, count in pairs[:1]]
    exact = max(pld.epsilon(each, log_delta_target=math.log(1e-5)).value for each in (pairs, [*reverse, *pairs[1:]]))
    # Both are bounds by the same lattices. They differ by the last digits of sums, and by where the method of Newton
    # ends for other rows: a bound holds wherever densities are split (grouped_gaussian.log_delta).
    assert exact * (1 - 1e-12) <= epsilon_of(case) <= exact * (1 + 1e-4)


@pytest.mark.campaign
def test_points_of_groups_are_no_better_than_the_chain_that_they_are() -> None:
    case = entries(f"{SAMPLED} steps=10", "epsilon=0.01 delta=1e-9", adjacency="replace-one", group_size="2")
    assert {row.bound for row in case.results} == {"ledger.groups", "ledger.pld"}
    alone = entries("epsilon=0.02 delta=2.0101e-9", adjacency="replace-one")  # (1 + e^0.01) 1e-9
    assert epsilon_of(case) > epsilon_of(alone)


def test_tuning_is_the_least_of_its_bounds() -> None:
    geometric = entries("mu=0.5 tuning.distribution=geometric tuning.mean=10", delta="1e-6")
    poisson = entries("mu=0.5 tuning.distribution=poisson tuning.mean=10", delta="1e-6")
    assert epsilon_of(geometric) == pytest.approx(3.382513, rel=2e-6)
    assert epsilon_of(poisson) <= 4.254
    fixed = entries("mu=0.5 tuning.distribution=fixed tuning.mean=10", delta="1e-6")
    assert fixed.best is not None
    assert fixed.best.mu == pytest.approx(0.5 * math.sqrt(10.0))


def test_the_example_is_what_the_page_shows() -> None:
    root = Path(__file__).resolve().parents[2]
    example = (root / "recipes" / "ledger" / "spent.yaml").read_text(encoding="utf-8")
    assert example.partition("\n")[2] in (root / "docs" / "ledger.md").read_text(encoding="utf-8")
    case = answer_ledger(*read_ledger(str(root / "recipes" / "ledger" / "spent.yaml")))
    assert epsilon_of(case) == pytest.approx(2.38895, abs=2e-4)
    assert case.ledger is not None
    assert 1.6 < case.ledger["remaining"]["epsilon"] < 1.7


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spent", "budget", "kinds", "more"),
    [
        (("mu=0.5", "epsilon=0.2 times=3"), 3.0, {"mu", "epsilon"}, {}),
        (("mu=0.1304", "epsilon=0.12524 times=2"), 2.81267, {"epsilon"}, {"group_size": "3"}),
        (("mu=0.1 delta=1e-9 times=20", "mu=0.2"), 2.5, {"mu", "epsilon"}, {}),
    ],
)
def test_what_is_left_of_a_budget_fits_and_more_does_not(
    spent: tuple[str, ...], budget: float, kinds: set[str], more: dict[str, str]
) -> None:
    given = {"adjacency": "add-remove", **more}
    case = entries(*spent, epsilon=repr(budget), **given)
    assert case.ledger is not None
    left = case.ledger["remaining"]
    assert left.keys() == kinds
    for kind, value in left.items():
        assert epsilon_of(entries(*spent, f"{kind}={value!r}", **given)) <= budget
        assert epsilon_of(entries(*spent, f"{kind}={1.01 * value!r}", **given)) > budget


def test_nothing_is_left_of_a_budget_that_is_exceeded() -> None:
    case = entries("mu=2", epsilon="1")
    assert case.ledger is not None
    assert case.ledger["remaining"] == {"epsilon": 0.0}
    assert [gate.passed for gate in case.assertions] == [False]


def test_noise_of_a_lattice_is_about_the_least() -> None:
    run = f"{SAMPLED} steps=20".replace(" noise_multiplier=1.1", "")
    other = "laplace_scale=50 sensitivity=1"
    case = entries(other, run, adjacency="add-remove", epsilon="1", solve="noise_multiplier")
    assert case.best is not None
    value = case.best.value

    def spent(noise: float) -> float:
        return epsilon_of(
            entries("laplace_scale=50 sensitivity=1", f"{run} noise_multiplier={noise!r}", adjacency="add-remove")
        )

    assert spent(value) <= 1.0 < spent(0.997 * value)
    assert case.ledger is not None
    assert case.ledger["remaining"] == {"epsilon": 0.0}


@pytest.mark.parametrize(
    ("last", "name"),
    [("sensitivity=2", "noise_std"), ("times=3", "noise_multiplier"), ("sensitivity=2", "laplace_scale")],
)
def test_noise_solved_for_meets_the_budget_and_less_does_not(last: str, name: str) -> None:
    case = entries("mu=0.5", "epsilon=0.1", last, epsilon="3", solve=name)
    assert case.best is not None
    assert case.best.quantity == name
    value = case.best.value
    assert epsilon_of(entries("mu=0.5", "epsilon=0.1", f"{last} {name}={value!r}")) <= 3.0
    assert epsilon_of(entries("mu=0.5", "epsilon=0.1", f"{last} {name}={0.999 * value!r}")) > 3.0


def test_a_budget_that_is_spent_has_no_noise() -> None:
    with pytest.raises(Infeasible, match="take too much"):
        entries("mu=2", "sensitivity=1", epsilon="1", solve="noise_std")


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("entries: {}", ":1:1", "no entries"),
        ("entry: {a: {mu: 1}}", ":3:1", "unknown key"),
        ("entries: {a: {mue: 1}}", ":3:15", "unknown key"),
        ("entries: {a: {mu: 1, times: 0}}", "", "times must be"),
        ("entries: {a: {mu: 1, times: 1.5}}", "", "times"),
        ("entries: {a: {mu: -1}}", "", "mu must be from"),
        ("entries: {a: {mu: nan}}", "", "mu"),
        ("entries: {a: {epsilon: 1, delta: 1}}", "", "delta"),
        ("entries: {a: {mu: 1, epsilon: 1}}", "", "mu and epsilon describe it twice"),
        ("entries: {a: {noise_std: 1}}", "", "noise_std also needs sensitivity"),
        ("entries: {a: {delta: 1e-6}}", "", "what it guarantees is not given"),
        ("entries: {a: {}}", "", "what it guarantees is not given"),
        ("entries: {a: {mu: 1, tuning: {distribution: uniform, mean: 3}}}", "", "distribution"),
        ("entries: {a: {mu: 1, tuning: {mean: 3}}}", "", "tuning needs"),
        ("entries: {a: {mu: 1, tuning: {distribution: geometric, mean: 0.5}}}", "", "mean"),
        ("entries: {a: {algorithm: pnsgd, epsilon: 1}}", "", "asked of all entries"),
        ("entries: {a: {algorithm: pnsgd, colour: 1}}", "", "unknown key"),
        ("entries: {a: {algorithm: pnsgd, records: 10}}", "", "a: "),
        ("entries: {a: {command: shifted, lipschitz: 1}}", "", "describes no run"),
        ("adjacency: both\nentries: {a: {mu: 1}}", ":3:1", "adjacency"),
        ("partition: moved\nentries: {a: {mu: 1}}", ":3:1", "partition"),
        ("entries: {a: {mu: 1, part: x}}", "", "may move to another part"),
        ("group_size: 2\npartition: kept\nentries: {a: {mu: 1, part: x}}", "", "several parts"),
        ("adjacency: add\ngroup_size: 2\nentries: {a: {mu: 1}}", "", "both directions"),
        (
            "adjacency: add\nentries: {a: {mu: 1, tuning: {distribution: geometric, mean: 3}}}", "", "both directions",
        ),
        ("entries: {a: {mu: 1, adjacency: add-remove}, b: {mu: 1}}", "", "nothing composes the two"),
        ("adjacency: add-remove\nentries: {a: {mu: 1, adjacency: zero-out}}", "", "nothing composes the two"),
        ("adjacency: add-remove\nentries: {a: {mu: 1, adjacency: remove}}", "", "nothing composes the two"),
        ("adjacency: zero-out\nentries: {a: {mu: 1, adjacency: replace-one}}", "", "nothing composes the two"),
        (
            "adjacency: add-remove\nentries: {a: {algorithm: noisy-gd, records: 10, lipschitz: 1, smoothness: 1, "
            "step_size: 0.1, noise_std: 1, steps: 5}}", "", "data sets of one size",
        ),
        (
            f"adjacency: add-remove\ngroup_size: 2\nentries: {{a: {POISSON.replace('poisson', 'fixed')}}}", "",
            "batches of fixed size",
        ),
        (
            "group_size: 2\nentries: {a: {algorithm: pnsgd, records: 10, index: 3, lipschitz: 1, smoothness: 1, "
            "step_size: 0.1, noise_std: 1}}", "", "--index is about one record",
        ),
    ],
)  # fmt: skip
def test_refused(text: str, place: str, message: str) -> None:
    with pytest.raises(DpcalcError) as refusal:
        asked(text)
    assert message in refusal.value.message
    assert place in refusal.value.message
    assert isinstance(refusal.value, (SpecError, NotApplicable))


def test_a_remove_ledger_takes_the_remove_side_of_add_remove() -> None:
    poisson = POISSON.replace("{", "{adjacency: add-remove, ")
    case = asked(f"adjacency: remove\nentries:\n  a: {poisson}\n")
    assert epsilon_of(case) == pytest.approx(2.159726, abs=3e-6)
    assert case.best is not None
    assert case.best.adjacency == "remove"


def test_a_recipe_is_no_ledger_and_names_its_command() -> None:
    with pytest.raises(SpecError, match="recipe/1") as refusal:
        read_ledger(written("entries: {a: {mu: 1}}", "dpcalc: recipe/1\n"))
    assert "dpcalc check" in (refusal.value.hint or "")


def test_values_of_other_files_are_read_and_never_shown() -> None:
    Path("train.yaml").write_text("noise: {z: 2, secret: hunter2}\n", encoding="utf-8")
    case = asked("entries: {a: {noise_multiplier: {from: train.yaml#/noise/z}}}")
    assert case.best is not None
    assert case.best.mu == pytest.approx(2.0 / 2.0)  # a record is replaced
    with pytest.raises(SpecError) as refusal:
        asked("entries: {a: {noise_multiplier: {from: train.yaml#/noise/secret}}}")
    assert "hunter2" not in refusal.value.message + (refusal.value.hint or "")
    with pytest.raises(SpecError, match=r"leads out|absolute"):
        asked("entries: {a: {noise_multiplier: {from: /etc/passwd#/x}}}")


def test_json_is_read() -> None:
    text = json.dumps({"dpcalc": "ledger/1", "budget": {"delta": 1e-5}, "entries": {"a": {"mu": 0.5}}})
    ledger, question = read_ledger(written(text, "", "l.json"))
    assert isinstance(ledger, Ledger)
    assert isinstance(question, Question)
    assert ledger.entries[0].given == {"mu": 0.5}
    assert question.delta == 1e-5


@pytest.mark.parametrize("line", ["epsilon", "epsilon=", "=1", "epsilon=1 epsilon=2"])
def test_lines_that_are_no_entries(line: str) -> None:
    with pytest.raises(SpecError, match="--add"):
        read_ledger(None, [line])


# --- output -----------------------------------------------------------------------------------------------------------


def invoked(*arguments: str) -> Any:
    return CliRunner().invoke(command, arguments, catch_exceptions=True)


def test_the_report_is_what_the_schema_says() -> None:
    case = asked(f"adjacency: add-remove\nentries:\n  a: {POISSON}\n  b: {{mu: 0.5, times: 2}}\n", epsilon="4")
    envelope = report("ledger", [case]).to_dict()
    conforms(envelope)
    assert [line["name"] for line in envelope["cases"][0]["ledger"]["entries"]] == ["a", "b"]


@pytest.mark.parametrize("format", ["plain", "markdown", "table", "csv", "jsonl"])
def test_every_format_shows_it(format: str) -> None:
    case = entries("mu=0.5", "epsilon=0.1 delta=1e-8", "laplace_scale=5 sensitivity=1", epsilon="4")
    assert "added-2" in render(report("ledger", [case]), format) or format == "csv"


def test_a_gate_that_fails_exits_with_1() -> None:
    assert invoked("--add", "mu=1", "-d", "1e-5", "--assert", "epsilon<=5").exit_code == 0
    assert invoked("--add", "mu=1", "-d", "1e-5", "--assert", "epsilon<=3").exit_code == 1
    assert invoked("--add", "mu=1", "-d", "1e-5", "-e", "3").exit_code == 1


# --- what hostile ledgers tried ---------------------------------------------------------------------------------------


def test_an_added_entry_takes_no_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spent.yaml"
    path.write_text("dpcalc: ledger/1\nentries:\n  added-1: {epsilon: 5}\n", encoding="utf-8")
    ledger, _ = read_ledger(str(path), ["epsilon=0.1"])
    assert [entry.name for entry in ledger.entries] == ["added-1", "added-2"]
    assert epsilon_of(answer_ledger(ledger, Question(delta=1e-5, log_delta=math.log(1e-5)))) > 5.0


def test_what_a_file_states_is_not_taken_for_other_neighbours(tmp_path: Path) -> None:
    path = tmp_path / "spent.yaml"
    path.write_text("dpcalc: ledger/1\nadjacency: add-remove\nentries:\n  a: {mu: 0.5}\n", encoding="utf-8")
    replaced = answer_ledger(*with_asked(*read_ledger(str(path)), delta="1e-6", adjacency="replace-one"))
    assert epsilon_of(replaced) >= gaussian.epsilon(mu=1.0, log_delta_target=math.log(1e-6))
    with pytest.raises(SpecError, match="nothing composes"):
        answer_ledger(*with_asked(*read_ledger(str(path)), delta="1e-6", adjacency="zero-out"))


def test_a_multiplier_is_over_what_one_record_adds() -> None:
    for adjacency, mu in (("add-remove", 0.8), ("zero-out", 0.8), ("replace-one", 1.6)):
        exact = gaussian.epsilon(mu=mu, log_delta_target=math.log(1e-5))
        value = epsilon_of(entries("noise_multiplier=1.25", adjacency=adjacency))
        assert exact <= value <= exact * (1.0 + 1e-12)


def test_squares_do_not_underflow() -> None:
    assert gaussian.together([(1e-165, 10**24)]) >= 1e-153
    assert gaussian.together([(1e-165, 10**24)]) <= 1e-153 * (1 + 1e-12)


def test_what_tuning_needs_is_said() -> None:
    case = entries("mu=0.5 tuning.distribution=geometric tuning.mean=10")
    assert case.best is not None
    assert any("stays secret" in text for text in case.best.assumes)
    assert case.best.bound == "ledger.own"


def test_solved_noise_is_claimed_by_what_proves_it_alone() -> None:
    case = entries("tuning.distribution=geometric tuning.mean=10", epsilon="2", solve="noise_multiplier")
    for row in case.results:
        assert row.details is not None
        assert row.details["achieved"]["epsilon"] <= 2.0


@pytest.mark.parametrize(("shape", "mean"), [("-0.999", "10"), ("-0.99", "1e9")])
def test_a_law_out_of_reach_is_refused(shape: str, mean: str) -> None:
    with pytest.raises(SpecError, match="has no law of mean"):
        entries(f"mu=0.5 tuning.distribution=negative-binomial tuning.mean={mean} tuning.shape={shape}")


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_a_point_of_one_order_is_not_composed(adjacency: str) -> None:
    """One step at q = 0.2 and noise 0.5 has (0.215442, 1e-3) in one order, and ten of them have 1.70 at 0.02.

    Randomised response, the worst of what has the point in both orders, would give 1.28.
    """
    line = "epsilon=0.215442 delta=1e-3 times=10"
    with pytest.raises(SpecError, match="composed for both orders"):
        entries(line, adjacency=adjacency, delta="0.02")
    case = entries(f"{line} adjacency=add-remove", adjacency=adjacency, delta="0.02")
    assert epsilon_of(case) < 1.29
    assert epsilon_of(entries("mu=0.2 times=10", adjacency=adjacency, delta="0.02")) > 0.0


@pytest.mark.parametrize(
    "more", [{}, {"mechanism": {"mu": 1.0}}, {"mechanism": {"laplace_scale": 1.0, "sensitivity": 1.0}}]
)
def test_deltas_of_entries_that_exceed_the_budget_are_named(more: dict[str, Any]) -> None:
    """The cure, typed to the letter, leads to an answer."""
    entries = {"survey": {"epsilon": 0.1, "delta": 1e-5, "times": 3}, **more}
    with pytest.raises(NotApplicable, match="come to 3e-05 together") as caught:
        dpcalc.ledger(entries=entries, delta=1e-6)
    found = re.match(r"use --delta (\S+), or", str(caught.value.hint))
    assert found
    assert dpcalc.ledger(entries=entries, delta=float(found[1])).cases[0].best is not None
