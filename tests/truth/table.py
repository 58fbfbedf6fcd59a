"""The table of docs/tightness.md: for every run and every bound, the share of the promised delta that is known true."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import dpcalc
from dpcalc.errors import NotApplicable
from dpcalc.model.run import ALGORITHMS
from dpcalc.report import Case as Answer
from tests.truth.asking import flags, front, promised
from tests.truth.lower import affine, affine_renyi
from tests.truth.realistic import Gap
from tests.truth.runs import EPSILONS, RUNS, Run
from tests.truth.words import CAUSES, GAPS, HEAD, NOTES, SIZES

COMMAND = "python -m tests.truth --write docs/tightness.md"
ORDERS = (2.0, 8.0)
_ATTAINED = 0.9995  # to three decimals
_COARSE_BELOW = 0.1  # shares are given to two digits below this


class Row(NamedTuple):
    """One run at one epsilon: a proven lower value of delta, and what every bound says.

    ``converse`` is the epsilon that every bound promises at that delta.
    """

    run: Run
    epsilon: float
    truth: float
    promised: dict[str, float]
    best: str
    converse: dict[str, float]


class BelowTheTruth(AssertionError):
    """A guarantee that does not hold."""


def rows(runs: Sequence[Run] = RUNS) -> list[Row]:
    """Every run at every epsilon.

    Raises:
        BelowTheTruth: a guarantee is below what the run really tells.
    """
    made = [_row(run, e, truth) for run in runs for e, truth in zip(EPSILONS, run.truths(EPSILONS), strict=True)]
    for row in made:
        check(row)
    for run in runs:
        if affine in run.lowers:
            check_renyi(run)
    return made


def _row(run: Run, epsilon: float, truth: float) -> Row:
    found = asked(run, epsilon=epsilon)
    converse = promised(asked(run, delta=truth)) if truth else []
    assert found.best is not None
    values = [{result.bound: result.value for result in results} for results in (promised(found), converse)]
    return Row(run, epsilon, truth, values[0], found.best.bound, values[1])


def check(row: Row) -> None:
    """Raise BelowTheTruth where a bound promises less than the truth."""
    for bound, value in row.promised.items():
        if not row.truth <= value:
            what = f"{typed(row.run)} --epsilon {row.epsilon!r}: {bound} promises delta {value!r}"
            raise BelowTheTruth(f"{what}, and it is at least {row.truth!r}")
    for bound, value in row.converse.items():
        if not row.epsilon * (1.0 - 1e-12) <= value:
            what = f"{typed(row.run)} --delta {row.truth!r}: {bound} promises epsilon {value!r}"
            raise BelowTheTruth(f"{what}, and it is at least {row.epsilon!r}")


def check_renyi(run: Run, orders: Sequence[float] = ORDERS) -> int:
    """Raise BelowTheTruth where a bound promises a smaller Renyi divergence; return how many do not."""
    try:
        found = promised(asked(run, order=orders))
    except NotApplicable:
        return 0  # no bound gives any
    truths = {order: affine_renyi(run.algorithm, run.told, order) for order in orders}
    for result in found:
        if not truths[result.order] <= result.value:
            what = f"{typed(run)} --order {result.order:g}: {result.bound} promises {result.value!r}"
            raise BelowTheTruth(f"{what}, and it is at least {truths[result.order]!r}")
    return len(found)


def asked(run: Run, **question: Any) -> Answer:
    """What dpcalc says of the run; a schedule is written to a file."""
    with tempfile.TemporaryDirectory() as folder:
        told = dict(run.told)
        if "schedule" in told:
            told["schedule"] = str(Path(folder, "steps.csv"))
            columns = run.told["schedule"]
            of_matrix = run.algorithm == "correlated"  # whose file has its rows, and no header
            rows = columns.values() if of_matrix else [columns, *zip(*columns.values(), strict=True)]
            lines = [",".join(map(str, row)) for row in rows]
            Path(told["schedule"]).write_text("\n".join(lines))
        if run.algorithm == "chain":
            return dpcalc.shifted(**told, **question).cases[0]
        if run.algorithm == "unlearning":
            return dpcalc.unlearn(**told, **question).cases[0]
        return front(run.algorithm, told, **question)


def typed(run: Run) -> str:
    """The run as typed, without the command's name; a schedule by its columns."""
    told = dict(run.told)
    columns = told.pop("schedule", None)
    said = flags(run.algorithm, told).removeprefix("compare ").removeprefix("--algorithm chain")
    said = said.removeprefix("--algorithm unlearning").strip()
    if columns is None:
        return said
    steps = "; ".join(f"{name} {' '.join(f'{v:g}' for v in values)}" for name, values in columns.items())
    return f"{said} --schedule ({steps})".strip()


# --- Markdown -------------------------------------------------------------------------------------------------------


def markdown(made: Sequence[Row], sizes: Sequence[Gap] = ()) -> str:
    """The page."""
    parts = [HEAD.format(command=COMMAND, epsilons=" and ".join(f"{e:g}" for e in EPSILONS)), _summary(made)]
    parts.append(gaps(made, sizes))
    for algorithm in ALGORITHMS:
        own = [row for row in made if row.run.algorithm == algorithm]
        if own:
            parts.append(section(algorithm, own))
    return "\n".join(parts)


def gaps(made: Sequence[Row], sizes: Sequence[Gap]) -> str:
    """What is open, widest first: of small runs, and of realistic ones."""
    widest = sorted((row for row in map(widest_gap, _by_algorithm(made).values()) if row), key=_share)
    lines = [GAPS, "| share | run | what is known of the cause |", "|---|---|---|", *map(gap_row, widest), "", SIZES]
    ordered = sorted(sizes, key=lambda each: -each.ratio)
    return "\n".join([*lines, *(each.row() for each in ordered), ""])


def widest_gap(own: Sequence[Row]) -> Row | None:
    """The row of one algorithm whose lower value is the smallest share of its best guarantee; None if all are attained.

    Runs with a schedule, which a command has in a file, are left out.
    """
    told = [row for row in own if row.truth > 0.0 and "schedule" not in row.run.told]
    worst = min(told, key=_share, default=None)
    return worst if worst is not None and _share(worst) < _ATTAINED else None


def gap_row(row: Row) -> str:
    """The row of one algorithm in the table of gaps."""
    run = row.run
    command = {"chain": "shifted", "unlearning": "unlearn"}.get(run.algorithm, "compare")
    return _line(
        [share(_share(row)), f"`dpcalc {command} {typed(run)} --epsilon {row.epsilon:g}`", CAUSES[run.algorithm]]
    )


def _share(row: Row) -> float:
    return row.truth / row.promised[row.best]


def _by_algorithm(made: Sequence[Row]) -> dict[str, list[Row]]:
    own = {algorithm: [row for row in made if row.run.algorithm == algorithm] for algorithm in ALGORITHMS}
    return {algorithm: rows for algorithm, rows in own.items() if rows}


def _summary(made: Sequence[Row]) -> str:
    lines = [
        "## The best guarantee of each algorithm", "",
        "| algorithm | runs | least share | greatest share |", "|---|---|---|---|",
    ]  # fmt: skip
    return "\n".join([*lines, *(summary(*each) for each in _by_algorithm(made).items()), ""])


def summary(algorithm: str, own: Sequence[Row]) -> str:
    """The row of one algorithm in the first table."""
    told = [row for row in own if row.truth > 0.0]
    shares = [_share(row) for row in told]
    count = len({id(row.run) for row in told})
    return f"| [{algorithm}](#{algorithm}) | {count} | {share(min(shares))} | {share(max(shares))} |"


def section(algorithm: str, own: Sequence[Row]) -> str:
    """What the page says of one algorithm."""
    runs = list({id(row.run): row.run for row in own}.values())
    number = {id(run): k for k, run in enumerate(runs, start=1)}
    gloss = ALGORITHMS[algorithm].gloss
    lines = [f"## {algorithm}", "", f"{gloss[:1].upper()}{gloss[1:]}.", ""]
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
    lines += ["", *_for_epsilon_only(own, number), *NOTES[algorithm].strip().splitlines(), ""]
    return "\n".join(lines)


def _for_epsilon_only(own: Sequence[Row], number: dict[int, int]) -> list[str]:
    """The bounds that give no delta, at the true one."""
    lines = [
        f"* `{bound}`, asked for epsilon: run {number[id(row.run)]} at delta = {_down(row.truth)} has at least "
        f"{row.epsilon:g} and is promised {value:.3g}, share {share(row.epsilon / value)}."
        for row in own
        for bound, value in row.converse.items()
        if bound not in {bound for row in own for bound in row.promised}
    ]
    return [*lines, ""] if lines else []


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
