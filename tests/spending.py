"""How many random cases each theorem is spent: a case counts for every theorem that is evaluated while it lasts."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

LEAST = 2
"""Random cases that a run of all tiers spends on every theorem, at least."""

_spent: Counter[str] = Counter()
_evaluated: list[set[str]] = []
"""The theorems that were evaluated in the cases being run, the innermost one last."""


@contextmanager
def random_case() -> Iterator[None]:
    """Count the block as one random case."""
    _evaluated.append(set())
    try:
        yield
    finally:
        _spent.update(_evaluated.pop())


def evaluates(id: str) -> None:
    """Say that a theorem is evaluated."""
    if _evaluated:
        _evaluated[-1].add(id)


def counted(prove: Callable[..., Any]) -> Callable[..., Any]:
    """Return `Theorem.prove` such that it counts."""

    def counting(theorem: Any, run: Any) -> Any:
        evaluates(theorem.id)
        return prove(theorem, run)

    return counting


def collect() -> dict[str, int]:
    """Return the cases counted since the last call."""
    counts = dict(_spent)
    _spent.clear()
    return counts


def table(spent: dict[str, int]) -> list[str]:
    """Return the cases of each theorem as lines, a family each."""
    families: dict[str, list[str]] = {}
    for id in sorted(spent):
        family, _, name = id.partition(".")
        families.setdefault(family, []).append(f"{name} {spent[id]}")
    return [f"{family}: {', '.join(names)}" for family, names in families.items()]
