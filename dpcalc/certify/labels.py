"""Whether the label of a result says what its definition was evaluated for: the adjacency, and what is assumed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dpcalc.certify.proof import Open
from dpcalc.certify.runs.run import HIDDEN
from dpcalc.report import Result

_SAID: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (("diameter", "displacement"), "the domain is bounded", ("domain", "projected", "noise of its schedule")),
    (("smoothness", "strong_convexity"), "the losses are of a class", ("smooth", "Lipschitz", "convex", "class")),
    (("laplace_scale", "noise_std", "noise_multiplier", "scale"), "there is noise", ("noise",)),
)
"""(what a definition reads, what the label must say then, words of which one says it)."""


def check_label(result: Result, values: Mapping[str, Any], read: Collection[str]) -> None:
    """Do nothing where the label of a result says what its proof rests on.

    Args:
        result: with its label.
        values: of the parameters, as its definition had them.
        read: the names of those that the definition read and the theorem takes, and that have a value.

    Raises:
        Open: it does not.
    """
    check_adjacency(result, str(values.get("adjacency") or "by-shift"))
    text = " ".join(result.assumes)
    for names, assumption, words in _SAID:
        if any(name in read for name in names) and not any(word in text for word in words):
            raise Open(f"its assumptions do not say that {assumption}, which its definition uses")
    certificate = (result.details or {}).get("certificate") or {}
    theorems = {certificate.get("theorem"), (certificate.get("inner") or {}).get("theorem")}
    if HIDDEN in theorems and "secret" not in text:
        raise Open("its assumptions do not say that the order stays secret, which its definition uses")


def check_adjacency(result: Result, adjacency: str) -> None:
    """Do nothing where the label names the adjacency for which the definition was evaluated.

    Raises:
        Open: it names another.
    """
    if result.adjacency != adjacency:
        raise Open(f"it is said of data sets that differ by {result.adjacency}, and the definition is of {adjacency}")
