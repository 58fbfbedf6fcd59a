"""Options and commands that do not exist: the hint names what was meant, by meaning and by spelling."""

import random

from dpcalc.cli.help.option import distance, nearest


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
