"""docs/utility.md from the scores; introduction.md and method.md have its prose."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.utility.budgets import kappa
from benchmarks.utility.contest import BINARY, CLASSES, EPSILONS, NUMBERS, OPEN, ROLES, SETS, TITLES
from benchmarks.utility.results import Scores

OURS = "dpcalc"
OTHERS = tuple(name for name in TITLES if name not in (*OPEN, OURS))
FEW = 3
"""The number of common splits from which a difference is called clear or not."""

HERE = Path(__file__).parent

KINDS = {BINARY: "Two classes (accuracy)", CLASSES: "Several classes (accuracy)", NUMBERS: "Numbers (R2)"}


class Cell(NamedTuple):
    """Scores of one tool on one set at one epsilon, by split."""

    scores: dict[int, float]

    @property
    def mean(self) -> float:
        """The mean over splits."""
        return sum(self.scores.values()) / len(self.scores)

    def shown(self) -> str:
        """Return mean and standard error."""
        values = list(self.scores.values())
        return f"{self.mean:.3f}" + (f" ± {error_of(values):.3f}" if len(values) > 1 else "")


Cells = dict[tuple[str, str, float], Cell]


class Duel(NamedTuple):
    """dpcalc and another private tool, on the splits that both have."""

    set: str
    epsilon: float
    other: str
    difference: float
    """The other's mean minus dpcalc's."""
    error: float
    splits: int

    @property
    def verdict(self) -> str:
        """Who is better: ``lost``, ``won`` or ``open``, where two standard errors do not tell."""
        if self.splits < FEW or abs(self.difference) <= 2.0 * self.error:
            return "open"
        return "lost" if self.difference > 0.0 else "won"


def render(scores: Scores) -> str:
    """Return the page."""
    cells = cells_of(scores)
    introduction, method = ((HERE / f"{name}.md").read_text(encoding="utf-8") for name in ("introduction", "method"))
    parts = [introduction, losses(cells), wins(cells), method]
    for kind, title in KINDS.items():
        names = sorted(
            (name for name in SETS if SETS[name].kind == kind), key=lambda name: ROLES.index(SETS[name].role)
        )
        tables = [table(name, cells) for name in names if any(at[0] == name for at in cells)]
        if tables:
            parts.append("\n".join([f"## {title}\n", *tables]))
    return "\n".join(parts)


def cells_of(scores: Scores) -> Cells:
    """Return scores by set, tool and epsilon."""
    found: Cells = {}
    for key, score in sorted(scores.items()):
        found.setdefault((key.set, key.tool, key.epsilon), Cell({})).scores[key.seed] = score
    return found


def error_of(values: list[float]) -> float:
    """Return the standard error of the mean; infinity for a single value."""
    if len(values) < 2:
        return math.inf
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))


def duels(cells: Cells) -> Iterator[Duel]:
    """Yield dpcalc against the one that beats it most clearly, or else comes nearest, for every set and epsilon."""
    for name in SETS:
        for epsilon in EPSILONS:
            fought = [duel for tool in OTHERS if (duel := _duel(name, epsilon, tool, cells))]
            if fought:
                yield max(fought, key=lambda duel: (duel.verdict == "lost", duel.difference))


def _duel(name: str, epsilon: float, tool: str, cells: Cells) -> Duel | None:
    """Return dpcalc against one tool, or None where they have no split in common."""
    ours, theirs = (cells.get((name, each, epsilon), Cell({})).scores for each in (OURS, tool))
    apart = [theirs[seed] - ours[seed] for seed in sorted(ours.keys() & theirs.keys())]
    return Duel(name, epsilon, tool, sum(apart) / len(apart), error_of(apart), len(apart)) if apart else None


def losses(cells: Cells) -> str:
    """Return where dpcalc is worse than the best of the others, and what it does not cover."""
    fought = list(duels(cells))
    lost = sorted((duel for duel in fought if duel.verdict == "lost"), key=lambda duel: -duel.difference)
    unsure = [duel for duel in fought if duel.verdict == "open" and duel.difference > 0.0]
    fewest = max(FEW, min((duel.splits for duel in fought), default=FEW))
    lines = ["## Where dpcalc loses\n"]
    missing = [name for name in SETS if any(at[0] == name for at in cells) and not _covered(name, cells)]
    if missing:
        lines.append(_paragraph(f"Not covered yet: {', '.join(missing)}."))
    lines.append(
        _paragraph(
            "Below, a loss or a win is a difference from the best of the other private tools of more than two standard "
            f"errors, on the splits that both have, at least {fewest} of them. dpcalc loses {len(lost)} of "
            f"{len(fought)} comparisons (a table at an epsilon)" + (":" if lost else ".")
        )
    )
    if lost:
        lines += ["| table | epsilon | dpcalc | the best of the others | | difference |", "|---|---|---|---|---|---|"]
        lines += [_lost(duel, cells) for duel in lost]
        lines.append("")
    if unsure:
        told = _grouped(unsure)
        few = f", or on fewer than {FEW} splits" if any(duel.splits < FEW for duel in unsure) else ""
        lines.append(_paragraph(f"Another tool is ahead by less than that{few}: {told}."))
    guessed = [
        (name, epsilon)
        for name in SETS for epsilon in EPSILONS
        if _covered(name, cells) and _below_constant(name, epsilon, cells)
    ]  # fmt: skip
    if guessed:
        told = _grouped(Duel(name, epsilon, "", 0.0, 0.0, 0) for name, epsilon in guessed)
        lines.append(_paragraph(f"dpcalc is no better than the constant answer: {told}."))
    return "\n".join(lines)


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 118, break_on_hyphens=False) + "\n"


def _covered(name: str, cells: Cells) -> bool:
    return any((name, OURS, epsilon) in cells for epsilon in EPSILONS)


def _below_constant(name: str, epsilon: float, cells: Cells) -> bool:
    ours, constant = cells.get((name, OURS, epsilon)), cells.get((name, "constant", 0.0))
    if ours is None or constant is None:
        return False
    common = ours.scores.keys() & constant.scores.keys()
    return bool(common) and sum(ours.scores[seed] - constant.scores[seed] for seed in common) <= 0.0


def _lost(duel: Duel, cells: Cells) -> str:
    ours, other = (cells[duel.set, tool, duel.epsilon].shown() for tool in (OURS, duel.other))
    name = f"{duel.set} ({SETS[duel.set].role})"
    difference = f"{duel.difference:.3f} ± {duel.error:.3f}"
    return f"| {name} | {duel.epsilon:g} | {ours} | {TITLES[duel.other]} | {other} | {difference} |"


def _grouped(places: Iterable[Duel]) -> str:
    """Return sets with the epsilons of each and who is better there."""
    found: dict[str, dict[str, list[str]]] = {}
    for duel in places:
        found.setdefault(duel.set, {}).setdefault(duel.other, []).append(f"{duel.epsilon:g}")
    return "; ".join(f"{name} ({_who(by)})" for name, by in found.items())


def _who(by: dict[str, list[str]]) -> str:
    return ", ".join((f"{TITLES[tool]} " if tool else "") + f"at {_listed(epsilons)}" for tool, epsilons in by.items())


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


def wins(cells: Cells) -> str:
    """Return how often dpcalc is better, worse or neither, by epsilon and by what is known of the tables."""
    fought = list(duels(cells))
    lines = [
        "## Won, lost, open\n",
        _paragraph(
            "dpcalc against the best of the others, by epsilon: won / lost / open. The best is picked by its scores, "
            "which favours the others."
        ),
        f"| tables | {' | '.join(f'{epsilon:g}' for epsilon in EPSILONS)} |",
        "|---|" + "---|" * len(EPSILONS),
    ]
    for kind, title in KINDS.items():
        for role in ROLES:
            some = [duel for duel in fought if SETS[duel.set].kind == kind and SETS[duel.set].role == role]
            if some:
                counts = " | ".join(_counts(some, epsilon) for epsilon in EPSILONS)
                lines.append(f"| {title.split(' (')[0].lower()}, {role} | {counts} |")
    return "\n".join([*lines, ""])


def _counts(fought: list[Duel], epsilon: float) -> str:
    verdicts = [duel.verdict for duel in fought if duel.epsilon == epsilon]
    return " / ".join(str(verdicts.count(verdict)) for verdict in ("won", "lost", "open"))


def table(name: str, cells: Cells) -> str:
    """Return the table of one set."""
    about = SETS[name]
    signal = kappa(1.0, about.records, about.columns)
    lines = [
        f"### {name}\n",
        _paragraph(
            f"{about.title[0].upper()}{about.title[1:]}. {about.records} training records, {about.columns} columns, "
            f"kappa = {signal:.3g} at epsilon 1; {about.role}."
        ),
        f"| tool | splits | {' | '.join(f'{epsilon:g}' for epsilon in EPSILONS)} |",
        "|---|---|" + "---|" * len(EPSILONS),
    ]
    for tool, title in TITLES.items():
        row = [cells.get((name, tool, 0.0 if tool in OPEN else epsilon)) for epsilon in EPSILONS]
        if tool == OURS and not any(row):
            lines.append(f"| **{title}** | | {' | '.join(['not covered yet'] * len(EPSILONS))} |")
        elif any(row):
            splits = str(min(len(cell.scores) for cell in row if cell))
            shown = " | ".join(cell.shown() if cell else "-" for cell in row)
            if tool in OPEN:
                shown = " | ".join([row[0].shown() if row[0] else "-", *["same"] * (len(EPSILONS) - 1)])
            lines.append(f"| {f'**{title}**' if tool == OURS else title} | {splits} | {shown} |")
    return "\n".join([*lines, ""])
