"""docs/benchmarks.md from what was measured. Every sentence with a number in it is made here, from that number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks.peers.questions import ABSENT, INTRODUCTIONS, KINDS, SECTIONS

Answer = dict[str, Any]
Row = dict[str, Any]

SHARP = ("gaussian", "gaussian noise", "repeated")
ROUNDING = 1e-12  # a shortfall below this, relatively, is called rounding
QUADRATURE = 1e-8  # what the truth of the other kinds may be off by

INTRODUCTION = """# Benchmarks

dpcalc beside other privacy accountants, asked the same questions. This page is written by one command, and every number
on it is what that command measured:

```sh
python -m benchmarks.peers{options}
```

It needs a checkout, Python 3.11 or newer and a package index; every package gets an environment of its own, with the
pinned version, under a cache folder (`--cache`). `--only` names some peers, `--quick` asks one question of every
section.

**How it is measured.** Every package answers in a process of its own; all are asked in turns, every other turn
backwards, and medians are given: of {repeats} timings below half a second, of 3 below three seconds, of 1 above. Ratios
travel between machines, seconds do not. No timing is of a question asked before: delta differs in the tenth digit. An
answer may take {timeout:g} s and {memory} GiB of address space. *Error* is relative to the exact answer, which comes
from no accountant: 40 or more decimal digits for Gaussian and repeated mechanisms, an inverse transform of moments
otherwise (good to 1e-8). **Below the truth** is what no guarantee may be; a shortfall of less than 1e-12 is marked as
rounding.

**Who is asked what.** dpcalc by `command` is its Python API, which evaluates every bound that applies and returns the
whole report; `function` is the numerical routine under it. A peer is asked through its documented functions, by every
method that it has for the question. Noise is relative to a sensitivity of 1 under each question's own adjacency.
"""


def render(results: dict[str, Any]) -> str:
    """Return the page."""
    parts = [
        INTRODUCTION.format(**{name: results[name] for name in ("repeats", "timeout", "memory", "options")}),
        _machine(results),
        "## In short\n\n" + "\n".join(f"* {line}" for line in summary(results)) + "\n",
        "## Versions and size\n\n" + _environments(results["environments"]),
        "## From the shell, cold\n\n" + "\n".join(_cold(found) for found in results["cold"]),
    ]
    for section, title in SECTIONS.items():
        answers = [answer for answer in results["answers"] if answer["section"] == section]
        if answers:
            told = INTRODUCTIONS[section] + "\n\n" if section in INTRODUCTIONS else ""
            parts.append(f"## {title}\n\n{told}" + "\n".join(_answer(answer) for answer in answers))
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
    quick = sum(1 for answer in ours if any(valid(answer, row) for row in faster(answer)))
    yield f"A peer has a valid answer in less time in process in {quick} of them, looser or not; these are listed too."
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
        f"{machine['load']:.1f} at the start, in {results['minutes']:.0f} minutes.\n"
    )


def _environments(environments: dict[str, Any]) -> str:
    rows = []
    for name, found in environments.items():
        if name == "truth":
            continue
        if found["failed"]:
            rows.append((name, found["versions"].get(name, ""), f"not asked: {found['failed']}", "", ""))
            continue
        needs = ", ".join(f"{package} {version}" for package, version in found["versions"].items() if package != name)
        rows.append((name, found["versions"][name], needs, f"{found['mebibytes']:.0f}", f"{found['seconds']:.0f}"))
    told = "Size is of everything installed with the package, without pip; seconds are of the installation.\n\n"
    return told + _table(("package", "version", "with", "MiB", "seconds"), rows)


def _cold(found: dict[str, Any]) -> str:
    rows = []
    for row in found["rows"]:
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        said = row["failed"] or f"{row['seconds']:.3f}"
        told = (_who(row), said, ratio, f"{row['cpu']:.3f}", f"{row['mebibytes']:.0f}")
        rows.append(told)
    words = "\n".join(row["line"] for row in found["rows"])
    heads = ("asked", "seconds", "times dpcalc", "CPU seconds", "MiB in memory")
    told = f"A new process each, medians of {found['repeats']}; ratios are medians of paired runs."
    return f"### {found['title']}\n\n{told}\n\n{_table(heads, rows)}\nThe commands:\n\n```sh\n{words}\n```\n"


def _answer(answer: Answer) -> str:
    head = f"### {_title(answer)}\n\n"
    if answer["kind"] in ABSENT:
        head += ABSENT[answer["kind"]] + "\n\n"
    if answer["section"] == "hidden":
        return head + _hidden(answer)
    if answer.get("truth") is not None:
        head += f"Exact: {answer['truth']:.12g}\n\n"
    elif "truth" in answer:
        head += f"The exact answer was not found: {answer['no truth']}\n\n"
    base = asked(answer)
    rows = [(_who(row), _value(row), _judged(answer, row), _ms(row), _ratio(row, base)) for row in answer["rows"]]
    return head + _table(("asked", "answer", "error", "ms", "times dpcalc"), rows)


def _hidden(answer: Answer) -> str:
    base = next(row for row in answer["rows"] if row["package"] == "dpcalc")
    rows = []
    for row in answer["rows"]:
        known = "value" in row and base.get("value")
        rows.append((
            _who(row),
            _value(row),
            f"{row['value'] / base['value']:.3g}" if known else "",
            _ms(row),
        ))  # fmt: skip
    return _table(("asked", "answer", "times the hidden one", "ms"), rows)


def _wins(results: dict[str, Any]) -> str:
    parts = []
    tight = [
        (_title(answer), "; ".join(f"{_who(row)}: {_judged(answer, row)}" for row in found), _ours(answer))
        for answer in results["answers"]
        if (found := list(tighter(answer)))
    ]
    parts.append("Tighter than dpcalc, by more than the exact answer is known to, with the error of each:\n")
    parts.append(_table(("question", "peers", "error of dpcalc"), tight) if tight else "nothing.\n")
    quick = [
        (_title(answer), "; ".join(_quick(answer, row) for row in found), _ours(answer))
        for answer in results["answers"]
        if (found := list(faster(answer)))
    ]
    parts.append("Faster in process than dpcalc, whatever the answer is worth: times dpcalc, and the error of each:\n")
    parts.append(_table(("question", "peers", "error of dpcalc"), quick) if quick else "nothing.\n")
    sizes = {name: found["mebibytes"] for name, found in results["environments"].items() if name != "truth"}
    small = [
        (name, f"{size:.0f}", f"{sizes['dpcalc']:.0f}") for name, size in sizes.items() if 0 < size < sizes["dpcalc"]
    ]
    parts.append("Smaller than dpcalc on disk, with all that is installed along:\n")
    parts.append(_table(("peer", "MiB", "MiB of dpcalc"), small) if small else "nothing.\n")
    cold = [
        (found["title"], _who(row), f"{row['ratio']:.2f}")
        for found in results["cold"]
        for row in found["rows"]
        if row["package"] != "dpcalc" and row.get("ratio", 1.0) < 1.0 and not row["failed"]
    ]
    parts.append("Faster than dpcalc from the shell:\n")
    parts.append(_table(("question", "peer", "times dpcalc"), cold) if cold else "nothing.\n")
    return "\n".join(parts)


def _ours(answer: Answer) -> str:
    if answer.get("truth") is None:
        return ""
    row = best(answer, "dpcalc")
    return _judged(answer, row) if row else "no answer"


def _who(row: Row) -> str:
    return f"{row['package']}, {row['method']}"


def _quick(answer: Answer, row: Row) -> str:
    judged = _judged(answer, row)
    return f"{_who(row)}: {_ratio(row, asked(answer))}" + (f" ({judged})" if judged else "")


# ---- words for numbers -----------------------------------------------------------------------------------------------


def _title(answer: Answer) -> str:
    given = ", ".join(f"{name} {value:g}" for name, value in answer["given"].items())
    return f"{KINDS[answer['kind']]}: {given}"


def _value(row: Row) -> str:
    if "failed" in row:
        return f"**{row['failed']}**"
    value = row["value"]
    return f"{value:.12g}" if math.isfinite(value) else f"**{value}**"


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


def _ms(row: Row) -> str:
    return f"{1e3 * row['median']:.3g}" if "median" in row else ""


def _ratio(row: Row, base: Row | None) -> str:
    return f"{row['median'] / base['median']:.2g}" if base and "median" in row else ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
