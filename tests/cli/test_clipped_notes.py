"""What stands beside an answer on DP-SGD: the other adjacencies, and what an accountant that assumes Poisson prints."""

import shlex
from typing import Any

import pytest

from dpcalc.cli.main import main
from tests.cli.conftest import best

RUN = "dp-sgd -n 50000 --batch-size 500 --epochs 20 --noise-multiplier 1.1 -d 1e-5"
SMALL = "dp-sgd -n 1000 --batch-size 10 --steps 50 --noise-multiplier 1.1 -d 1e-5"

# Epsilon of 2000 steps at rate 0.01, by contour integrals with ten digits, which this project did not compute.
POISSON = {"add-remove": 2.159726, "null-record": 2.159726, "replace-one": 3.655922}
FIXED = {"add-remove": 13.19097, "null-record": 10.38638, "replace-one": 15.34371}


def data_of(case: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [note for note in case["note_data"] if note["kind"] == kind]


def is_just_above(value: float, asked: float) -> bool:
    """Whether the number of a note is the answer, or above it by what its coarser lattice adds."""
    return asked <= value <= asked * (1.0 + 5e-5)


@pytest.mark.parametrize(
    ("sampling", "expected", "adjacency"),
    [
        ("poisson", POISSON, "add-remove"),
        pytest.param("poisson", POISSON, "replace-one", marks=pytest.mark.campaign),
        pytest.param("fixed", FIXED, "replace-one", marks=pytest.mark.campaign),
    ],
)
def test_the_other_adjacencies_beside_the_answer(
    ask_json: Any, sampling: str, expected: dict[str, float], adjacency: str
) -> None:
    [case] = ask_json(f"{RUN} --sampling {sampling} --adjacency {adjacency}")
    [note] = data_of(case, "other_adjacencies")
    found = {answer["adjacency"]: answer["value"] for answer in note["answers"]}
    assert set(found) == set(expected) - {adjacency}
    for name, value in found.items():
        assert expected[name] * (1 - 1e-6) <= value <= expected[name] * (1 + 1e-3)
    [printed] = data_of(case, "accountant_prints")
    assert printed["value"] == pytest.approx(POISSON["add-remove"], rel=1e-3)


@pytest.mark.few(2)
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "with-replacement", "balls-in-bins", "shuffle", "full"])
def test_each_answer_beside_is_that_of_its_own_run(ask_json: Any, sampling: str) -> None:
    run = SMALL if sampling != "full" else "dp-sgd --steps 50 --noise-multiplier 5 -d 1e-5"
    [case] = ask_json(f"{run} --sampling {sampling}")
    [note] = data_of(case, "other_adjacencies")
    for answer in note["answers"]:
        [asked] = ask_json(f"{run} --sampling {sampling} --adjacency {answer['adjacency']}")
        assert best(asked)["bound"] == answer["bound"]
        assert is_just_above(answer["value"], best(asked)["value"])


@pytest.mark.parametrize(
    ("sampling", "adjacency", "covers"),
    [
        ("poisson", "add-remove", True), ("poisson", "zero-out", True), ("poisson", "replace-one", False),
        ("poisson", "remove", True), ("fixed", "add-remove", False), ("balls-in-bins", "add-remove", False),
        ("shuffle", "zero-out", False),
    ],
)  # fmt: skip
def test_what_an_accountant_prints_is_of_poisson_batches(
    ask_json: Any, sampling: str, adjacency: str, covers: bool
) -> None:
    [case] = ask_json(f"{SMALL} --sampling {sampling} --adjacency {adjacency}")
    [note] = data_of(case, "accountant_prints")
    [assumed] = ask_json(f"{SMALL} --sampling poisson --adjacency add-remove")
    assert is_just_above(note["value"], best(assumed)["value"])
    assert note["covers_run"] is covers
    [said] = [text for text in case["notes"] if "an accountant" in text]
    assert ("that is no guarantee for this run" in said) is not covers
    if covers:
        assert note["value"] >= best(case)["value"]


def test_what_an_accountant_prints_passes_no_gate(ask_json: Any, ask: Any) -> None:
    """It lies between the two: below the answer for shuffled batches, and below the gate."""
    line = f"{SMALL} --sampling shuffle --adjacency zero-out --assert 'epsilon <= 2'"
    [case] = ask_json(line, expected=1)
    assert data_of(case, "accountant_prints")[0]["value"] < 2 < best(case)["value"]
    assert not case["assertions"][0]["passed"]
    assert {row["bound"] for row in case["results"]} == {"sampled.shuffle"}
    assert "accountant" not in ask(line.replace("dp-sgd", "dp-sgd --format statement", 1), expected=1)


def test_shuffled_batches_may_quote_neither(ask: Any) -> None:
    text = " ".join(ask(f"{SMALL} --sampling shuffle --adjacency zero-out --format plain -vv").split())
    assert "neither the number of Poisson sampling nor that of balls-in-bins may be quoted" in text


def test_where_the_noise_is_sought_the_notes_are_of_the_noise_found(ask_json: Any) -> None:
    run = "dp-sgd -n 1000 --batch-size 10 --steps 50 --sampling shuffle"
    [case] = ask_json(f"{run} -e 2 -d 1e-5 --adjacency zero-out")
    noise = best(case)["value"]
    for kind in ("other_adjacencies", "accountant_prints"):
        [note] = data_of(case, kind)
        assert note["at"] == {"noise_multiplier": noise}
        assert note["quantity"] == "epsilon"
    [replaced] = data_of(case, "other_adjacencies")[0]["answers"]
    [asked] = ask_json(f"{run} --noise-multiplier {noise!r} -d 1e-5")
    assert is_just_above(replaced["value"], best(asked)["value"])
    assert replaced["value"] > 2


def test_a_sweep_has_no_such_notes(ask_json: Any) -> None:
    cases = ask_json(f"{SMALL.replace('1.1', '1.1,1.2')} --sampling poisson")
    assert [case["note_data"] for case in cases] == [[], []]


def test_a_comparison_has_them_too(ask_json: Any) -> None:
    line = f"{SMALL} --sampling full".replace("-n 1000 --batch-size 10 ", "")
    kinds = [
        [note["kind"] for note in ask_json(text)[0]["note_data"]] for text in (line, f"compare --algorithm {line}")
    ]
    assert kinds[0] == kinds[1] == ["other_adjacencies", "accountant_prints"]


def test_the_text_has_one_line_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(f"{SMALL} --sampling poisson --adjacency add-remove --format plain -vv"))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("note: ")]
    assert [line.split()[1] for line in lines] == ["other", "an"]
    assert " with zero-out, " in lines[0]
    assert lines[0].endswith(" with replace-one")


@pytest.mark.few(2)
@pytest.mark.parametrize("sampling", ["poisson", "fixed", "with-replacement", "balls-in-bins", "shuffle"])
def test_next_to_no_noise_has_a_number(ask_json: Any, sampling: str) -> None:
    """A record is in every step at most, so that no epsilon is above that of 50 full batches of twice the norm;
    with replacement, ten times in each.

    And it is in some step for certain, or with a probability that delta cannot forgive: in one, mu is 1/z.
    """
    uses = 10 if sampling == "with-replacement" else 1  # of a record in a step
    for noise in (1e-8, 1e-30, 1e-90):
        [case] = ask_json(f"{SMALL} --sampling {sampling} --adjacency zero-out".replace("1.1", repr(noise)))
        assert 0.49 / noise**2 <= best(case)["value"] <= 0.51 * 50 * (2 * uses) ** 2 / noise**2


def test_deltas_that_underflow_are_told_apart(ask_json: Any) -> None:
    [case] = ask_json(f"{SMALL} --sampling full -e 1e6 --adjacency add".replace(" -d 1e-5", "").replace(
        "-n 1000 --batch-size 10 ", ""))  # fmt: skip
    [note] = data_of(case, "other_adjacencies")
    found = {answer["adjacency"]: answer["log_delta"] for answer in note["answers"]}
    assert found["replace-one"] > found["add-remove"] == found["null-record"] == best(case)["log_delta"]
    assert note["answers"][0]["value"] < 1e-300
