"""Options and commands that do not exist: the hint names what was meant, by meaning and by spelling."""

from __future__ import annotations

import random
import shlex

import pytest

from dpcalc.cli.help.spelling import distance, nearest
from dpcalc.cli.main import main


def hint(capsys: pytest.CaptureFixture[str], line: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(line))
    assert stop.value.code == 2
    error, _, hint = capsys.readouterr().err.partition("\n  hint: ")
    assert error.startswith("error: No such ")
    assert "Did you mean" not in error
    return hint.rstrip("\n")


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("rdp --nose-std 2", "--noise-std"),
        ("rdp --sgima 2", "--sigma"),
        ("rdp --smothness 1", "--smoothness"),
        ("dp-sgd --epsilson 1", "--epsilon"),
        ("dp-sgd --noise-mult 1.1", "--noise-multiplier"),
        ("dp-sgd --noise_multiplier 1.1", "--noise-multiplier"),
        ("dp-sgd --Batch-Size 500", "--batch-size"),
        ("dp-sgd --epoch 5", "--epochs"),
        ("dp-sgd --dataset-sise 500", "--records"),
        ("dp-sgd --target-epsilom 5", "--epsilon"),
        ("dp-sgd --poisson", "--sampling poisson"),
        ("dp-sgd -b 500", "--batch-size"),
        ("dp-sgd -T 500", "--steps"),
        ("dp-sgd --N 500", "--records"),
        ("rdp --beta-smoothness 1 --alpha 8", "--smoothness"),
        ("check --reprot json=x", "--report"),
        ("convert --zcdp 0.5", "--rho"),
        ("dp-sgd --poisson-sampling", "--sampling poisson"),
        ("rdp --position 10", "--index"),
        ("--vesion", "--version"),
    ],
)
def test_an_option_is_found_by_spelling_and_by_meaning(
    capsys: pytest.CaptureFixture[str], line: str, meant: str
) -> None:
    assert hint(capsys, line) == f"did you mean {meant}?"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("dp-sgd --momentum 0.9", "cost the same privacy"),
        ("dp-sgd --optimizer adam", "cost the same privacy"),
        ("dp-sgd --accountant prv", "the tightest is the answer"),
        ("rdp --variance 4", "the square root of the variance"),
        ("dp-sgd --secure-mode", "--noise-source secure"),
        ("dp-sgd --nothing-like-it", "see dpcalc dp-sgd --help"),
        ("--epsilon 1", "name a command first"),
    ],
)
def test_a_word_that_stands_for_none_is_explained(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    assert said in hint(capsys, line)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("opacus", "dp-sgd"),
        ("dpsgd", "dp-sgd"),
        ("DP_SGD", "dp-sgd"),
        ("compute_dp_sgd_privacy", "dp-sgd"),
        ("noisy-gd", "multi-epoch --algorithm noisy-gd"),
        ("pnsgd", "rdp --algorithm pnsgd"),
        ("chekc", "check"),
        ("RDP", "rdp"),
    ],
)
def test_a_command_is_found(capsys: pytest.CaptureFixture[str], word: str, meant: str) -> None:
    assert hint(capsys, f"{word} -n 5") == f"did you mean `dpcalc {meant}`?"


def test_a_command_that_nothing_is_like_is_not_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    assert hint(capsys, "qqqqqqq") == "`dpcalc help` says what to type first"
    assert hint(capsys, "tuning") == "`dpcalc find tuning` says where it is"


def edits(word: str) -> set[str]:
    """Return everything at distance one, over two letters."""
    cuts = [(word[:i], word[i:]) for i in range(len(word) + 1)]
    changed = {a + c + b[1:] for a, b in cuts if b for c in "ab"}
    return (
        changed
        | {a + b[1:] for a, b in cuts if b}
        | {a + c + b for a, b in cuts for c in "ab"}
        | {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    ) - {word}


def test_the_distance_is_the_least_number_of_edits() -> None:
    words = ["".join(random.Random(seed).choices("ab", k=seed % 5)) for seed in range(12)]
    for word in words:
        near = edits(word)
        assert all(distance(word, other) == 1 == distance(other, word) for other in near)
        twice = {far for other in near for far in edits(other)} - near - {word}
        assert all(distance(word, other) >= 2 for other in twice)
    assert distance("kitten", "sitting") == 3


def test_nothing_is_near_a_word_of_other_letters() -> None:
    assert nearest("zzz", ["loss", "eta", "radius"]) == []
