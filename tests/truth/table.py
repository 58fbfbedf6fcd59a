"""The table of docs/tightness.md: for every run and every bound, the share of the promised delta that is known true."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import dpcalc
from dpcalc.errors import Infeasible, NotApplicable
from dpcalc.registry import lookup
from dpcalc.spec.run import ALGORITHMS
from tests.truth.asking import flags, front
from tests.truth.runs import EPSILONS, RUNS, Run
from tests.truth.words import HEAD, NOTES

COMMAND = "python -m tests.truth --write docs/tightness.md"
GUARANTEES = ("upper", "exact")
_COARSE_BELOW = 0.1  # shares are given to two digits below this


class Row(NamedTuple):
    """One run at one epsilon: a proven lower value of delta, and what every bound says."""

    run: Run
    epsilon: float
    truth: float
    promised: dict[str, float]
    best: str


class BelowTheTruth(AssertionError):
    """A guarantee that does not hold."""


def rows(runs: Sequence[Run] = RUNS) -> list[Row]:
    """Every run at every epsilon.

    Raises:
        BelowTheTruth: a guarantee is below what the run really tells.
    """
    made = []
    for run in runs:
        for epsilon, truth in zip(EPSILONS, run.truths(EPSILONS), strict=True):
            row = Row(run, epsilon, truth, *asked(run, epsilon))
            for bound, value in row.promised.items():
                if not truth <= value:
                    what = f"{typed(run)} --epsilon {epsilon}: {bound} promises {value!r}, the truth is {truth!r}"
                    raise BelowTheTruth(what)
            made.append(row)
    return made


def asked(run: Run, epsilon: float) -> tuple[dict[str, float], str]:
    """The delta that every bound promises, and the bound with the least."""
    if run.algorithm == "chain":
        case = dpcalc.shifted(**run.told, epsilon=epsilon).cases[0]
    else:
        case = front(run.algorithm, run.told, epsilon=epsilon)
    assert case.best is not None
    return {r.bound: r.value for r in case.results if r.kind in GUARANTEES}, case.best.bound


def typed(run: Run) -> str:
    """The run as typed, without the command's name."""
    if run.algorithm == "chain":
        return " ".join(f"--{name.replace('_', '-')} {value}" for name, value in run.told.items())
    return flags(run.algorithm, run.told).removeprefix("compare ")


# --- Markdown -------------------------------------------------------------------------------------------------------


def markdown(made: Sequence[Row]) -> str:
    """The page."""
    parts = [HEAD.format(command=COMMAND, epsilons=" and ".join(f"{e:g}" for e in EPSILONS)), _summary(made)]
    for algorithm in ALGORITHMS:
        own = [row for row in made if row.run.algorithm == algorithm]
        if own:
            parts.append(_section(algorithm, own))
    return "\n".join(parts)


def _summary(made: Sequence[Row]) -> str:
    lines = [
        "## The best guarantee of each algorithm", "",
        "| algorithm | runs | least share | greatest share |", "|---|---|---|---|",
    ]  # fmt: skip
    for algorithm in ALGORITHMS:
        own = [row for row in made if row.run.algorithm == algorithm and row.truth > 0.0]
        if own:
            found = [row.truth / row.promised[row.best] for row in own]
            count = len({id(row.run) for row in own})
            lines.append(f"| [{algorithm}](#{algorithm}) | {count} | {share(min(found))} | {share(max(found))} |")
    return "\n".join([*lines, ""])


def _section(algorithm: str, own: Sequence[Row]) -> str:
    runs = list({id(row.run): row.run for row in own}.values())
    number = {id(run): k for k, run in enumerate(runs, start=1)}
    lines = [f"## {algorithm}", "", f"{ALGORITHMS[algorithm][:1].upper()}{ALGORITHMS[algorithm][1:]}.", ""]
    lines += [f"{number[id(run)]}. `{typed(run)}`" for run in runs]
    heads = [f"{number[id(row.run)]} at {row.epsilon:g}" for row in own]
    lines += ["", _line(["run, epsilon", *heads]), _line(["---"] * (len(own) + 1))]
    lines.append(_line(["delta at least", *(f"{_down(row.truth)}" if row.truth else "0" for row in own)]))
    for bound in _bounds(own):
        cells = []
        for row in own:
            value = row.promised.get(bound)
            cell = "" if value is None else share(row.truth / value) if value else "1.000"
            cells.append(f"**{cell}**" if row.best == bound else cell)
        lines.append(_line([f"`{bound}`", *cells]))
    return "\n".join([*lines, "", NOTES[algorithm], ""])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bounds(own: Sequence[Row]) -> list[str]:
    """In order of appearance, so that what is best for the first run comes first."""
    return list(dict.fromkeys(bound for row in own for bound in row.promised))


def share(value: float) -> str:
    """Three decimals, or two digits where it is small."""
    return f"{value:.3f}" if value >= _COARSE_BELOW else "0" if value == 0.0 else f"{value:.1e}"


def _down(value: float) -> str:
    """Four digits, not above the value."""
    text = f"{value:.3e}"
    return text if float(text) <= value else f"{value - 0.5 * 10.0 ** (int(text[-3:]) - 3):.3e}"
