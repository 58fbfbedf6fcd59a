"""What the notes say to type gives the numbers that they say."""

import re
import shlex
from typing import Any

import pytest

import dpcalc
from dpcalc import notes
from dpcalc.engine.advice import improvements, missing
from dpcalc.engine.solving.search import DIRECTIONS
from dpcalc.model.quantities import Kind
from dpcalc.render.numbers import Digits, Side, number
from dpcalc.report import Result
from dpcalc.theorems.record import all_bounds
from tests.cli.conftest import best

BETTER = ("improvement", "short_last_batch", "promise_not_made", "other_order", "other_release")
RUN = "--records 1000 --batch-size 30 --lipschitz 1 --smoothness 1"
MANY = f"multi-epoch {RUN} --epochs 20"
PASS = "--records 1000 --lipschitz 1 --smoothness 1 --step-size 0.1 --noise-std 2"
ONE = "--records 1000 --lipschitz 1 --smoothness 1 --noise-std 2"

TOLD: dict[str, tuple[str, ...]] = {
    # --- a parameter that was not told
    f"multi-epoch {ONE} --epochs 50 --delta 1e-6": ("algorithm", "step_size"),
    f"multi-epoch {ONE} --epochs 50 --epsilon 1": ("algorithm", "step_size"),
    f"multi-epoch {ONE} --epochs 50": ("step_size",),
    f"multi-epoch {ONE} --epochs 50 --delta 1e-6 --strong-convexity 0.1": ("algorithm", "step_size"),
    f"multi-epoch {ONE} --epochs 50 --delta 1e-6 --diameter 1e3": ("algorithm", "step_size"),
    "multi-epoch --loss logistic --feature-bound 1 --records 100 --epochs 50 --noise-std 2 --delta 1e-6": (
        "algorithm", "step_size",
    ),
    f"compare --algorithm cyclic --epochs 50 {ONE} --delta 1e-6 --step-size 3": ("step_size", "diameter"),
    f"compare --algorithm cyclic --epochs 50 {ONE.replace('--smoothness 1', '--smoothness 3')} --delta 1e-6": (
        "step_size",
    ),
    "compare --algorithm cyclic --epochs 50 --records 1000 --lipschitz 1 --noise-std 2 --step-size 0.3 "
    "--delta 1e-6": ("smoothness", "diameter"),
    "compare --algorithm cyclic --epochs 50 --records 1000 --lipschitz 1 --noise-std 2 --step-size 0.3 "
    "--delta 1e-6 --loss-class lipschitz": ("diameter",),
    "hockey-stick --records 1000 --lipschitz 1 --noise-std 2 --step-size 0.3 --diameter 10 --index 500 "
    "--delta 1e-6": ("smoothness",),
    f"rdp {PASS} --index 1 --delta 1e-6": ("strong_convexity",),
    f"rdp {PASS} --index 1 --delta 1e-6 --diameter 10": ("strong_convexity",),
    f"compare --algorithm cyclic --epochs 5000 {PASS} --delta 1e-6": ("strong_convexity", "diameter"),
    f"compare --algorithm cyclic --epochs 5000 {PASS} --epsilon 0.5": ("strong_convexity", "diameter"),
    f"compare --algorithm noisy-gd --steps 1000 {PASS} --delta 1e-6": ("strong_convexity",),
    # --- the last batch
    f"rdp {RUN} --step-size 0.1 --noise-std 0.2 --delta 1e-6": ("last_batch",),
    f"rdp {RUN} --step-size 0.1 --noise-std 0.2": ("last_batch",),
    f"{MANY} --step-size 0.1 --noise-std 0.2 --delta 1e-6": ("algorithm", "last_batch"),
    f"shuffle {RUN} --step-size 0.1 --noise-std 0.2 --permutation secret --delta 1e-6": ("last_batch",),
    f"shuffle {RUN} --step-size 0.1 --noise-std 0.2 --epsilon 1": ("permutation", "last_batch"),
    # --- a promise, an order, a release
    f"shuffle {RUN} --step-size 0.1 --noise-std 0.2 --delta 1e-6": ("permutation", "last_batch"),
    f"compare --algorithm shuffled {RUN} --step-size 0.1 --noise-std 0.2 --delta 1e-6": ("permutation", "last_batch"),
    f"{MANY} --algorithm shuffle-once --step-size 0.1 --noise-std 0.2 --delta 1e-6": ("algorithm", "last_batch"),
    f"{MANY} --algorithm noisy-sgd --step-size 0.1 --noise-std 0.2 --delta 1e-6": (),
    f"{MANY} --algorithm cyclic --release epoch --step-size 0.1 --noise-std 0.2 --delta 1e-6": (
        "algorithm", "last_batch",
    ),
    f"multi-epoch --algorithm noisy-gd --release epoch {ONE.replace('std 2', 'std 0.02')} --epochs 200 "
    "--strong-convexity 0.5 --step-size 0.1 --delta 1e-6": ("release",),
    # --- the noise, or another parameter, is sought
    f"{MANY} --epsilon 1 --delta 1e-6": ("step_size", "last_batch"),
    f"{MANY} --step-size 0.1 --epsilon 1 --delta 1e-6": ("last_batch", "strong_convexity"),
    f"{MANY} --release epoch --step-size 0.1 --epsilon 1 --delta 1e-6": ("release", "last_batch"),
    f"multi-epoch {RUN} --noise-std 2 --epsilon 1 --delta 1e-6 --solve epochs": ("step_size", "last_batch"),
    f"compare --algorithm noisy-gd {ONE.replace('--noise-std 2', '--noise-std 0.1')} --step-size 0.1 --epsilon 1 "
    "--delta 1e-6 --solve steps": ("strong_convexity",),
    "multi-epoch --algorithm rotation-epochs --records 97 --epochs 1000 --lipschitz 2.44 --smoothness 0.234 "
    "--step-size 0.00121 --epsilon 1 --delta 1e-6": ("strong_convexity", "diameter"),
    f"compare --algorithm cyclic --epochs 5000 {ONE.replace('--noise-std 2', '--step-size 0.1')} --epsilon 1 "
    "--delta 1e-6": ("strong_convexity", "diameter"),
}  # fmt: skip
"""A query, and which parameters the notes on it speak of, the largest gain first."""


def typed(line: str, options: str) -> str:
    """The query with options in place of those that it has, or added."""
    for flag, value in zip(*[iter(options.split())] * 2, strict=True):
        line = f"{re.sub(f' {flag} [^ ]+', '', line)} {flag} {value}"
    return line


def told(case: dict[str, Any]) -> list[dict[str, Any]]:
    return [note for note in case["note_data"] if note["kind"] in BETTER]


def gain(better: dict[str, Any], answer: dict[str, Any]) -> float:
    """How many times better one answer is than another."""
    ratio: float = answer["value"] / better["value"]
    direction = DIRECTIONS.get(answer["quantity"])
    return ratio if direction is None or direction.more_is_private else 1.0 / ratio


def follow(ask_json: Any, line: str, note: dict[str, Any], answer: dict[str, Any]) -> None:
    """Assert that what is typed gives what the note says."""
    found = best(ask_json(typed(line, note["options"]))[0])
    assert found["quantity"] == note["quantity"]
    if note["kind"] == "promise_not_made":  # of which a search ends early
        assert 1.0 <= note["value"] / found["value"] <= 1.005
    elif note["quantity"] == "epsilon":  # of a composition on a coarser lattice
        assert 1.0 <= note["value"] / found["value"] <= 1.00001
    else:
        assert found["value"] == note["value"]
    assert note["gain"] == pytest.approx(gain(note, answer), rel=1e-9)
    assert note["gain"] > 1.05


@pytest.mark.few(12)
@pytest.mark.parametrize("line", TOLD)
def test_what_is_typed_from_a_note_gives_its_number(ask_json: Any, line: str) -> None:
    [case] = ask_json(line)
    found = told(case)
    assert tuple(next(iter(note["changes"])) for note in found) == TOLD[line]
    assert [note["gain"] for note in found] == sorted((note["gain"] for note in found), reverse=True)
    for note in found:
        follow(ask_json, line, note, best(case))


SAYS = re.compile(r"^note: (--[a-z-]+ [^ ]+) gives ([a-z_]+) ([^ ,:]+)", re.M)


@pytest.mark.few(7)
@pytest.mark.parametrize("line", [line for line, several in TOLD.items() if len(several) > 1])
def test_the_words_say_what_the_data_say(ask: Any, ask_json: Any, line: str) -> None:
    [case] = ask_json(line)
    said = SAYS.findall(ask(f"{line} --format plain -vv"))
    assert len(said) == 2
    for (options, quantity, value), note in zip(said, told(case), strict=True):
        assert (options, quantity) == (note["options"], note["quantity"])
        conditional = note["kind"] == "promise_not_made" and line.startswith("compare")
        side = Side.NEAREST if conditional else Side.DOWN if quantity in ("steps", "epochs") else Side.UP
        if quantity == "delta":
            assert value == Digits(4).delta(note["value"], note["log_delta"], side)
        else:
            assert value == number(note["value"], 4, side)


def test_every_smaller_step_size_gives_no_more(ask_json: Any) -> None:
    for more in ("", " --strong-convexity 0.1"):
        line = f"multi-epoch {ONE} --epochs 50 --delta 1e-6{more}"
        [note] = [note for note in told(ask_json(line)[0]) if "step_size" in note["changes"]]
        assert note["or_less"]
        for share in (1.0, 0.5, 0.01, 1e-6):
            step = share * note["changes"]["step_size"]
            assert best(ask_json(f"{line} --step-size {step!r}")[0])["value"] <= note["value"] * (1.0 + 1e-12)
    [bounded] = [n for n in told(ask_json(f"{line} --diameter 0.1")[0]) if "step_size" in n["changes"]]
    assert "or_less" not in bounded


def test_what_costs_nothing_is_one_of_two(ask_json: Any) -> None:
    """A secret order and fresh batches gain more than another split, which costs nothing."""
    line = f"{MANY} --algorithm shuffle-once --step-size 0.1 --noise-std 0.2 --delta 1e-6"
    [case] = ask_json(line)
    split = next(note for note in told(case) if note["kind"] == "short_last_batch")
    [secret] = [row for row in case["results"] if row["kind"] == "conditional"]
    assert secret["value"] > split["value"] or gain(secret, best(case)) > split["gain"]
    assert len(told(case)) == 2


def test_notes_that_a_user_need_not_act_on_are_left_out(ask_json: Any) -> None:
    assert told(ask_json("rdp --records 990 --batch-size 30 --lipschitz 1 --smoothness 1 --noise-std 1 --delta 1e-6 "
                         "--step-size 0.1")[0]) == []  # fmt: skip
    near = f"shuffle {RUN.replace('1000', '2025')} --step-size 0.1 --noise-std 0.2 --delta 1e-6 --permutation secret"
    [case] = ask_json(near)
    other = best(ask_json(f"{near} --last-batch balanced")[0])
    assert told(case) == [] or gain(other, best(case)) > 1.05


def test_a_table_has_what_would_better_a_row_the_most(ask: Any, ask_json: Any) -> None:
    line = f"{MANY} --step-size 0.1 --noise-std 0.2,0.4 --delta 1e-6"
    cases = ask_json(line)
    for format in ("plain", "markdown"):
        text = ask(f"{line} --format {format}").replace("\\", "")
        note, case = max(((note, case) for case in cases for note in told(case)), key=lambda pair: pair[0]["gain"])
        sigma = case["inputs"]["noise_std"]["value"]
        follow(ask_json, line.replace("0.2,0.4", str(sigma)), note, best(case))
        given = f"{note['options']} gives epsilon {number(note['value'], 4, Side.UP)}, "
        assert re.search(rf"better: +noise_std sigma = {sigma}: {given}", text)
        assert "note: --" not in text
    assert "better:" not in ask(f"{line} --last-batch balanced --algorithm noisy-sgd --format plain -vv")


def test_long_sweeps_and_gates_have_no_notes() -> None:
    run: dict[str, Any] = {
        "records": 1000, "batch_size": 30, "lipschitz": 1, "smoothness": 1, "step_size": 0.1, "delta": 1e-6, "epochs": 2
    }  # fmt: skip
    few = dpcalc.multi_epoch(**run, noise_std=[0.1 * k for k in range(1, 13)])
    assert all(isinstance(case.note_data[0], notes.ShortLastBatch) for case in few.cases)
    many = dpcalc.multi_epoch(**run, noise_std=[0.1 * k for k in range(1, 14)])
    assert not any(case.note_data for case in many.cases)


def test_of_which_records_an_answer_is(ask: Any, ask_json: Any) -> None:
    """Where an earlier batch is smaller, its last record may be the worst off: the answer covers both."""
    line = f"rdp {RUN} --step-size 0.1 --noise-std 0.2 --delta 1e-6"
    for split, earlier in (("balanced", 580), ("front", 10)):  # 20 batches of 29 and 14 of 30; 10 and 33 of 30
        text = ask(f"{line} --last-batch {split} --format plain -vv")
        assert f"index i = 1000 or {earlier} (worst case)" in text
        assert f"Replacing any record (the worst off is at position 1000 or {earlier})" in text
        assert "above is for the record that is worst off" in text
        whole = best(ask_json(f"{line} --last-batch {split}")[0])["value"]
        alone = [best(ask_json(f"{line} --last-batch {split} --index {i}")[0])["value"] for i in (1000, earlier)]
        assert whole == max(alone)
    for more in ("--last-batch balanced --index 1000", "--last-batch own"):
        assert "Replacing the record at position 1000 by" in ask(f"{line} {more} --format plain -vv")


@pytest.mark.parametrize(
    ("quantity", "value", "shown"),
    [("batch_size", 4.0, "4"), ("epochs", 12345678.0, "12345678"), ("epsilon", 1.23456, "1.235"),
     ("diameter", 1.23456, "1.234"), ("noise_std", 1.23456, "1.235")],
)  # fmt: skip
def test_the_nearest_run_is_told_with_whole_numbers(quantity: str, value: float, shown: str) -> None:
    assert missing._shown(Result("a.b", "", quantity, value, Kind.UPPER)) == shown


def test_every_promise_is_that_of_a_secret_order() -> None:
    """The note on a promise names the option that makes it."""
    promises = {promise.text for bound in all_bounds().values() for promise in bound.promises}
    assert promises
    assert all("--permutation secret" in text for text in promises)


@pytest.mark.parametrize("value", [2.0 / 3.0, 0.1, 1e-12 / 7.0, 123456789.0, 0.99999949, 2.0, 1.0000005])
def test_what_is_typed_is_rounded_down(value: float) -> None:
    shown = improvements._down(value)
    assert value * (1.0 - 1.1e-5) <= shown <= value
    assert len(f"{shown:g}") <= 12
    assert float(f"{shown:.6g}") == shown


def test_typing_replaces() -> None:
    assert typed("a --b 1 --c 2", "--b 3") == "a --c 2 --b 3"
    assert shlex.split(typed("a", "--b 3")) == ["a", "--b", "3"]
