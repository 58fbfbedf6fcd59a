"""Words that are nearly spelt alike."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, words: Iterable[str]) -> list[str]:
    """Return the words at the least distance, at most two: those that a third of the letters or the rest are wrong of.

    >>> nearest("nose-std", ["loss", "noise-std", "noise"]), nearest("noise-mult", ["noise-std", "noise-multiplier"])
    (['noise-std'], ['noise-multiplier'])
    """
    limit = max(1, len(word) // 3)
    begun = len(word) >= 3
    far = {name: distance(word, name) for name in words if len(word) > 1}
    begins = [name for name in far if begun and name.startswith(word)]
    admitted = begins or [name for name, apart in far.items() if apart <= limit]
    least = min((far[name] for name in admitted), default=0)
    return [name for name in admitted if far[name] == least][:2]


def distance(one: str, other: str) -> int:
    """Return how many letters are left out, put in, changed or exchanged with the next between two words.

    >>> distance("epsilson", "epsilon"), distance("sgima", "sigma"), distance("", "ab")
    (1, 1, 2)
    """
    older: list[int] = []
    last = list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        row = [i]
        for j, wanted in enumerate(other, start=1):
            least = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                least = min(least, older[j - 2] + 1)
            row.append(least)
        older, last = last, row
    return last[-1]
