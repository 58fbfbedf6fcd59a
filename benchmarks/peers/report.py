"""docs/benchmarks.md from what was measured. Every sentence with a number in it is made here, from that number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.peers.questions import INTRODUCTIONS, KINDS, SECTIONS

Answer = dict[str, Any]
Row = dict[str, Any]

ENOUGH = 5  # timings: the median of fewer moves with whatever else the machine does
ROUGH = "So few timings are rough: a ratio between 0.5 and 2 says little."
SHARP = ("gaussian", "gaussian noise", "repeated", "square root", "tree")
ROUNDING = 1e-12  # a shortfall below this, relatively, is called rounding
QUADRATURE = 1e-8  # what the truth of the other kinds may be off by

INTRODUCTION = """# Benchmarks

dpcalc beside other privacy accountants, asked the same questions. One command wrote this page (it needs a checkout and
a package index; `--help` has its options):

```sh
python -m benchmarks.peers{options}
```

Every package answers in a process of its own, from pinned versions; all are asked in turns, and times are medians of at
most {repeats} questions that differ in the tenth digit of delta. **Times are ratios to the dpcalc of the same turns**:
seconds do not travel between machines. An answer may take {timeout:g} s and {memory} GiB. dpcalc is asked through its
Python API, which evaluates every bound that applies and makes the whole report of the command; a peer through its
documented functions. Noise is relative to a sensitivity of 1 under each question's own adjacency.

*Error* is relative to the exact answer, which comes from no accountant: 40 or more digits for Gaussian and repeated
mechanisms, an inverse transform of moments otherwise (good to 1e-8). **Below the truth** is what no guarantee may be; a
shortfall of less than 1e-12 is rounding. Balls in bins have no exact answer here: PLD_accounting proves two ends, where
it answers in time.
"""


def render(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [
        INTRODUCTION.format(**{name: results[name] for name in ("repeats", "timeout", "memory", "options")}),
        _machine(results),
        "## In short\n\n" + "\n".join(f"* {line}" for line in summary(results)) + "\n",
        "## Versions and size\n\n" + _environments(results["environments"]),
        "## From the shell, cold\n\n" + _cold(results["cold"]),
    ]
    for section, title in SECTIONS.items():
        answers = [answer for answer in results["answers"] if answer["section"] == section]
        if answers:
            told = INTRODUCTIONS[section] + "\n\n" if section in INTRODUCTIONS else ""
            parts.append(f"## {title}\n\n{told}" + _section(answers))
    parts.append("## Where a peer wins\n\n" + _wins(results))
    return "\n".join(parts)


# ---- judging an answer -----------------------------------------------------------------------------------------------


def error(answer: Answer, row: Row) -> float | None:
    """Return how far an answer is above the truth, relatively; None where that cannot be said."""
    truth, value = answer.get("truth"), row.get("value")
    if truth is None or value is None or math.isnan(value):
        return None
    if math.isinf(truth) or math.isinf(value):
        return 0.0 if truth == value else math.copysign(math.inf, value - truth)
    return float(value / truth - 1.0)


def tolerance(answer: Answer) -> float:
    """Return what a comparison with the truth of this question cannot tell."""
    return ROUNDING if answer["kind"] in SHARP else QUADRATURE


def valid(answer: Answer, row: Row) -> bool:
    """Return whether a row is an answer, and not below the truth by more than rounding."""
    found = error(answer, row)
    return found is not None and found >= -tolerance(answer)


def below(answer: Answer, package: str) -> Iterator[str]:
    """Yield what a package answered below the truth."""
    for row in answer["rows"]:
        found = error(answer, row)
        if row["package"] == package and found is not None and found < -tolerance(answer):
            yield f"{_title(answer)}: {package} {row['method']} says {row['value']!r}, {found:+.1e}"


def best(answer: Answer, package: str) -> Row | None:
    """Return the tightest valid row of a package."""
    rows = [row for row in answer["rows"] if row["package"] == package and valid(answer, row)]
    return min(rows, key=lambda row: row["value"], default=None)


def asked(answer: Answer) -> Row | None:
    """Return the row of dpcalc whose time others are compared with: the command, or the same question on a run."""
    rows = [row for row in answer["rows"] if row["package"] == "dpcalc" and "median" in row]
    if answer["section"] == "hidden":
        rows = [row for row in rows if row["method"] == "every iterate"]
    return rows[0] if rows else None


def tighter(answer: Answer) -> Iterator[Row]:
    """Yield the rows of peers that are tighter than dpcalc by more than can be told."""
    ours = best(answer, "dpcalc")
    for row in answer["rows"]:
        known = row["package"] != "dpcalc" and valid(answer, row) and math.isfinite(row["value"])
        if known and (ours is None or row["value"] < ours["value"] * (1.0 - tolerance(answer))):
            yield row


def faster(answer: Answer) -> Iterator[Row]:
    """Yield the rows of peers that take less time than dpcalc."""
    ours = asked(answer)
    for row in answer["rows"]:
        if row["package"] != "dpcalc" and "median" in row and ours is not None and row["median"] < ours["median"]:
            yield row


# ---- parts of the page -----------------------------------------------------------------------------------------------


def summary(results: dict[str, Any]) -> Iterator[str]:
    """Yield what the numbers come to."""
    checked = [answer for answer in results["answers"] if answer.get("truth") is not None]
    ours = [answer for answer in checked if any(row["package"] == "dpcalc" for row in answer["rows"])]
    under = sum(1 for answer in ours for _ in below(answer, "dpcalc"))
    peers = [name for name in results["environments"] if name not in ("dpcalc", "truth")]
    yield f"dpcalc answered {_answered(ours, 'dpcalc')} of {len(checked)} questions whose exact answer is known; " + (
        f"{under} of its answers are **below the truth**." if under else "none of its answers is below the truth."
    )
    for name in peers:
        theirs = [answer for answer in checked if any(row["package"] == name for row in answer["rows"])]
        if theirs:
            bad = sum(1 for answer in theirs for _ in below(answer, name))
            good = _answered(theirs, name)
            told = f"answers below the truth: {bad}." if bad else "no answer is below the truth."
            yield f"{name} has methods for {len(theirs)} of them and bounds {good} by at least one; {told}"
    errors = [found for answer in ours if (row := best(answer, "dpcalc")) and (found := error(answer, row)) is not None]
    if errors:
        yield f"The loosest answer of dpcalc to these is {_error(max(errors))} above the exact one."
    loose = sum(1 for answer in ours if any(True for _ in tighter(answer)))
    yield f"A peer is tighter than dpcalc in {loose} of the {len(ours)}, by what is listed [below](#where-a-peer-wins)."
    finite = [[row for row in faster(answer) if valid(answer, row) and math.isfinite(row["value"])] for answer in ours]
    quick = sum(1 for rows in finite if rows)
    yield f"A peer has a finite, valid answer in less time in process in {quick} of them, looser or not."
    for found in results["cold"]:
        ratios = [row["ratio"] for row in found["rows"] if row["package"] != "dpcalc" and "ratio" in row]
        if ratios:
            yield f"From the shell, {found['title']}: peers take {min(ratios):.2g} to {max(ratios):.2g} times as long."


def _answered(answers: Iterable[Answer], package: str) -> int:
    rows = (best(answer, package) for answer in answers)
    known = zip(answers, rows, strict=True)
    return sum(1 for answer, row in known if row and (math.isfinite(row["value"]) or math.isinf(answer["truth"])))


def _machine(results: dict[str, Any]) -> str:
    machine = results["machine"]
    return (
        f"Measured with CPython {machine['python']} on {machine['cores']} cores ({machine['system']}), load "
        f"{machine['load']:.1f} at the start, in {results['minutes']:.1f} minutes."
        + (f" {ROUGH}" if results["repeats"] < ENOUGH else "")
        + "\n"
    )


def _environments(environments: dict[str, Any]) -> str:
    rows = []
    for name, found in environments.items():
        if name == "truth":
            continue
        if found["failed"]:
            rows.append((name, found["versions"].get(name, ""), f"not asked: {found['failed']}", ""))
            continue
        needs = ", ".join(f"{package} {version}" for package, version in found["versions"].items() if package != name)
        rows.append((name, found["versions"][name], needs, f"{found['mebibytes']:.0f}"))
    told = "Size is of everything installed with the package, without pip.\n\n"
    return told + _table(("package", "version", "with", "MiB"), rows)


def _cold(asked: list[dict[str, Any]]) -> str:
    rows = []
    for found in asked:
        for place, row in enumerate(found["rows"]):
            ratio = row["failed"] or f"{row['ratio']:.2g}"
            rows.append((found["title"] if place == 0 else "", _who(row), ratio, f"{row['mebibytes']:.0f}"))
    told = "A new process each; the commands are in `benchmarks/peers/shell.py`. Ratios are medians of paired runs.\n\n"
    return told + _table(("question", "asked", "times dpcalc", "MiB in memory"), rows)


def _section(answers: list[Answer]) -> str:
    rows = [cells for answer in answers for cells in _answer(answer)]
    return _table(("question", "asked", "answer", "error", "times dpcalc"), rows)


def _answer(answer: Answer) -> Iterator[tuple[str, ...]]:
    """Yield the rows of a question: its words and the exact answer first, then what everybody says."""
    exact = "" if answer.get("truth") is None else f"{answer['truth']:.9g}"
    yield _title(answer), "exact" if exact else "", exact, "", ""
    base = asked(answer)
    for row in answer["rows"]:
        yield "", _who(row), _value(row), _judged(answer, row), _ratio(row, base)


def _wins(results: dict[str, Any]) -> str:
    tight = [
        f"* {_title(answer)}: {'; '.join(f'{_who(row)}: {_judged(answer, row)}' for row in found)}"
        for answer in results["answers"]
        if (found := list(tighter(answer)))
    ]
    return (
        "Tighter than dpcalc, by more than the exact answer is known to, with the error of each:\n\n"
        + ("\n".join(tight) or "nothing.")
        + "\n\nFaster in process than dpcalc: every row of a peer with a finite answer and less than 1 under "
        "*times dpcalc*; its error says at what price.\n"
    )


def _who(row: Row) -> str:
    return f"{row['package']}, {row['method']}"


# ---- words for numbers -----------------------------------------------------------------------------------------------


def _title(answer: Answer) -> str:
    given = ", ".join(f"{name} {value:g}" for name, value in answer["given"].items())
    return f"{KINDS[answer['kind']]}: {given}"


def _value(row: Row) -> str:
    if "failed" in row:
        return f"**{row['says'] if row['failed'] == 'timeout' else row['failed']}**"
    value = row["value"]
    return f"{value:.9g}" if math.isfinite(value) else f"**{value}**"


def _judged(answer: Answer, row: Row) -> str:
    found = error(answer, row)
    if found is None:
        return ""
    if found < -tolerance(answer):
        return f"**{_error(found)}, below the truth**"
    if answer["kind"] not in SHARP and abs(found) < QUADRATURE:
        return "within 1e-8"
    return _error(found) + (" (rounding)" if found < 0.0 else "")


def _error(found: float) -> str:
    return f"{100.0 * found:+.3g} %" if 1e-3 <= abs(found) < math.inf else f"{found:+.1e}" if found else "0"


def _ratio(row: Row, base: Row | None) -> str:
    return f"{row['median'] / base['median']:.2g}" if base and "median" in row else ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
