"""Many cases, over one process or several, and the tally per bound."""

import contextlib
import json
import math
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from typing import IO, NamedTuple

from dpcalc.certify.numerics.sums import BELOW, PROVED
from dpcalc.certify.risk.costs import PRICES
from dpcalc.certify.table import definitions
from dpcalc.cluster.calls import Piece, spread, through
from dpcalc.errors import DpcalcError, WorkerLost
from dpcalc.theorems.record import all_bounds, without_definition
from dpcalc.training.run.remote import There
from tests.soundness.compare import ABOVE, FLOOR, OUTCOMES, Verdict, judged
from tests.soundness.generate import Case, draw
from tests.soundness.shrink import line, shrunk
from tests.spending import random_case

_CHUNK = 250
_UNIT = 2.0**-53
_KEPT = 5  # failures of a subject that are shrunk and shown


class Tally(NamedTuple):
    """Per subject: outcomes, and how many excesses fell in each power of two of roundoff; then what went wrong."""

    outcomes: dict[str, Counter[str]]
    excesses: dict[str, Counter[int]]
    largest: dict[str, float]
    failures: list[tuple[int, Case, Verdict]]
    loose: list[tuple[int, Case, Verdict]]


def empty() -> Tally:
    """Return a tally of nothing."""
    return Tally({}, {}, {}, [], [])


def add(tally: Tally, number: int, case: Case, verdict: Verdict) -> None:
    """Enter one case."""
    tally.outcomes.setdefault(case.subject, Counter())[verdict.outcome] += 1
    if verdict.outcome in (PROVED, ABOVE, FLOOR) and math.isfinite(verdict.excess):
        units = max(0.0, verdict.excess) / _UNIT
        tally.excesses.setdefault(case.subject, Counter())[math.frexp(units)[1] if units >= 1.0 else 0] += 1
        tally.largest[case.subject] = max(tally.largest.get(case.subject, 0.0), verdict.excess)
    if verdict.outcome == BELOW:
        tally.failures.append((number, case, verdict))
    elif verdict.outcome == ABOVE:
        tally.loose.append((number, case, verdict))


def merge(tally: Tally, other: Tally) -> None:
    """Enter what another process counted."""
    for subject, counted in other.outcomes.items():
        tally.outcomes.setdefault(subject, Counter()).update(counted)
    for subject, excesses in other.excesses.items():
        tally.excesses.setdefault(subject, Counter()).update(excesses)
    for subject, largest in other.largest.items():
        tally.largest[subject] = max(tally.largest.get(subject, 0.0), largest)
    tally.failures.extend(other.failures)
    tally.loose.extend(other.loose)


def _run(work: tuple[int, int, int, tuple[str, ...]]) -> Tally:
    seed, first, last, only = work
    tally = empty()
    for number in range(first, last):
        case = draw(seed, number, only)
        with random_case():
            add(tally, number, case, judged(case))
    return tally


def campaign(
    cases: int,
    seed: int,
    jobs: int = 1,
    only: tuple[str, ...] = (),
    first: int = 0,
    progress: IO[str] | None = None,
    there: There | None = None,
) -> Tally:
    """Run the cases ``first`` .. ``first + cases - 1`` of a seed; the tally does not depend on who computes."""
    end = first + cases
    chunks = [(seed, a, min(a + _CHUNK, end), only) for a in range(first, end, _CHUNK)]
    tally, done, begun = empty(), 0, time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):  # what was counted so far is printed
        for part in _parts(chunks, jobs) if there is None else _parts_elsewhere(chunks, there):
            merge(tally, part)
            done += _CHUNK
            if progress is not None:
                speed = min(done, cases) / max(time.monotonic() - begun, 1e-9)
                text = f"{min(done, cases)} of {cases}, {speed:.0f}/s, {len(tally.failures)} below"
                print(f"\r{text}", end="", file=progress, flush=True)
    if progress is not None:
        print(file=progress)
    return tally


def _parts(chunks: list[tuple[int, int, int, tuple[str, ...]]], jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from map(_run, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap(_run, chunks)


# --- on other machines ------------------------------------------------------------------------------------------------


class Part(Piece):
    """Some cases in a row, counted by a worker that has these tests; what failed is judged here once more."""

    def __init__(self, work: tuple[int, int, int, tuple[str, ...]]) -> None:
        self.work = work
        self.document = json.dumps(work)

    def read(self, text: str) -> Tally:
        """Return the tally; raise ValueError where it is not of these cases."""
        said = json.loads(text)
        seed, first, last, only = self.work
        if said["work"] != json.loads(self.document):
            raise ValueError("the tally is of other cases")
        tally = empty()
        tally.outcomes.update({subject: Counter(counted) for subject, counted in said["outcomes"].items()})
        if sum(counted.total() for counted in tally.outcomes.values()) != last - first:
            raise ValueError("the tally is not of all cases")
        for subject, counted in said["excesses"].items():
            tally.excesses[subject] = Counter({int(power): count for power, count in counted.items()})
        tally.largest.update(said["largest"])
        for kept, numbers in ((tally.failures, said["failures"]), (tally.loose, said["loose"])):
            for number in numbers:
                case = draw(seed, number, only)
                kept.append((number, case, judged(case)))
        return tally

    def halves(self) -> list[Piece]:
        """Return the cases in two, or this one."""
        seed, first, last, only = self.work
        middle = (first + last) // 2
        return [self] if middle == first else [Part((seed, first, middle, only)), Part((seed, middle, last, only))]

    def stopped(self, why: DpcalcError) -> Tally:
        """Raise which case ends its worker."""
        raise WorkerLost(f"case {self.work[1]} was not judged: {why.message}", why.hint)


def run_part(document: str) -> str:
    """Return the tally of a `Part` as text."""
    seed, first, last, only = json.loads(document)
    tally = _run((seed, first, last, tuple(only)))
    fields = {"outcomes": tally.outcomes, "excesses": tally.excesses, "largest": tally.largest}
    failed = {"failures": [one[0] for one in tally.failures], "loose": [one[0] for one in tally.loose]}
    return json.dumps({"work": json.loads(document), **fields, **failed})


def _parts_elsewhere(chunks: list[tuple[int, int, int, tuple[str, ...]]], there: There) -> Iterator[Tally]:
    """Yield the tallies in the order of the cases, whoever is first."""
    early: dict[int, Tally] = {}
    following = chunks[0][1] if chunks else 0
    lasts: dict[int, int] = {}
    pieces: Iterator[Piece] = map(Part, chunks)
    for piece, tally in spread(pieces, through(there.executor, run_part), ahead=there.ahead, attempts=there.attempts):
        assert isinstance(piece, Part)
        _, first, last, _ = piece.work
        early[first], lasts[first] = tally, last
        while following in early:
            yield early.pop(following)
            following = lasts.pop(following)


# --- what is printed -------------------------------------------------------------------------------------------------


def report(tally: Tally) -> str:
    """Return the tally as text: a line per subject, what has no definition, and every failure as a line to run."""
    head = ("subject", "cases", *OUTCOMES, "median", "99 %", "most (units of roundoff)")
    rows = [head]
    for subject in sorted(tally.outcomes):
        counted = tally.outcomes[subject]
        rows.append(
            (
                subject, str(counted.total()), *(str(counted[o]) if counted[o] else "." for o in OUTCOMES),
                _quantile(tally.excesses.get(subject), 0.5), _quantile(tally.excesses.get(subject), 0.99),
                f"{tally.largest.get(subject, 0.0) / _UNIT:.3g}",
            )
        )  # fmt: skip
    total = Counter[str]()
    for counted in tally.outcomes.values():
        total.update(counted)
    rows.append(("all", str(total.total()), *(str(total[o]) if total[o] else "." for o in OUTCOMES), "", "", ""))
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = [
        "  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip()
        for r in rows
    ]
    lines += ["", *_undefined(), ""]
    for title, cases in (("below the truth", tally.failures), ("beyond the stated slack", tally.loose)):
        lines += _shown(title, cases)
    return "\n".join(lines)


def _quantile(counted: Counter[int] | None, share: float) -> str:
    """Return the power of two of roundoff below which this share of the excesses lies."""
    if not counted:
        return ""
    seen, wanted = 0, share * counted.total()
    for exponent in sorted(counted):
        seen += counted[exponent]
        if seen >= wanted:
            return f"2^{exponent}" if exponent else "<1"
    return ""


def _undefined() -> list[str]:
    """Return which bounds have no definition, and why."""
    table = definitions()
    bounds = all_bounds().items()
    shown = ("published", "asymptotic", "heuristic")
    without = [id for id, b in bounds if id not in {**table, **PRICES} and b.kind not in shown]
    excuses = without_definition()
    lines = [f"no definition: {id}: {excuses[id]}" for id in without if id in excuses]
    rest = [id for id in without if id not in excuses]
    return [*lines, "no definition written: " + ", ".join(rest)] if rest else lines


def _shown(title: str, cases: list[tuple[int, Case, Verdict]]) -> list[str]:
    lines, shown = [], Counter[str]()
    for number, case, verdict in cases:
        shown[case.subject] += 1
        if shown[case.subject] > _KEPT:
            continue
        plain = shrunk(case, lambda tried, same=verdict.outcome: judged(tried).outcome == same)  # type: ignore[misc]
        again = judged(plain)
        lines.append(f"{title}: case {number}: {line(plain)} = {again.reported!r}, true {again.truth}")
    lines += [f"{title}: {subject}: {count} in all" for subject, count in shown.items() if count > _KEPT]
    return lines


def one(seed: int, number: int, only: tuple[str, ...] = ()) -> str:
    """Return one case and its verdict in full."""
    case = draw(seed, number, only)
    return f"{line(case)}\n{judged(case)}"
