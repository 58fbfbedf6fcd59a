"""The texts of a page about a report: the template has no logic, and this module no markup."""

from __future__ import annotations

from collections.abc import Iterator

from dpcalc.checked import Change
from dpcalc.render import CHECK
from dpcalc.render.asked import Asked
from dpcalc.render.check.baseline import changes_since
from dpcalc.render.check.verdicts import share_used
from dpcalc.render.layout import Row
from dpcalc.render.page.case import INPUTS, Evidence, Grounds, headlines
from dpcalc.render.page.figures import typed
from dpcalc.render.page.verdict import (
    Outcome,
    case_outcome,
    facts,
    outcome_of,
    reservations,
    verdict_of,
    verdicts,
    word_of,
)
from dpcalc.render.words.risk import meaning
from dpcalc.report import Report
from dpcalc.version import __version__

MAX_CASES = 100
"""The most cases that are shown in full; the table of verdicts has all, up to `MAX_ROWS`."""
MAX_DRAWN = 12
"""The most cases with figures: those that did not pass, then the tightest ones."""
SHARED_FROM = 9
"""From this many cases on, the grounds of each theorem are shown once."""
MAX_ROWS = 1000

_RANK = {Outcome.BAD: 0, Outcome.PLAIN: 1, Outcome.SKIP: 2, Outcome.OK: 3}


class Page:
    """A whole page. ``outcome`` is the colour of the verdict."""

    version = __version__

    def __init__(self, report: Report, asked: Asked) -> None:
        """Take a report and the options of writing."""
        self.report, self.digits = report, asked.digits
        self.outcome = outcome_of(report)
        self.gated = any(case.assertions for case in report.cases) or report.command == CHECK
        word = word_of(report) if self.gated or self.outcome == Outcome.BAD else ""
        self.word = word or ("Answer" if len(report.cases) == 1 else "Answers")
        self.kicker = f"dpcalc {report.command}"
        self.verdict = verdict_of(report)
        self.facts, self.reservations = list(facts(report)), reservations(report)
        self.command = typed(asked.typed)
        self.changes = _changes(report, asked)
        order = self._by_importance()
        self.full = set(order[:MAX_CASES])
        drawn = order[:MAX_DRAWN]
        first = sorted(self.full, key=lambda number: (case_outcome(report.cases[number - 1]) != Outcome.BAD, number))
        self.cases = [Evidence(report, number, self.digits, drawn=number in drawn) for number in first]
        self.grounds = self._shared_grounds() if len(report.cases) >= SHARED_FROM else []
        self.inputs = self._common_inputs() if len(report.cases) >= SHARED_FROM else []
        table = sorted(verdicts(report, self.digits), key=lambda row: _RANK[row.outcome])
        self.verdicts = table[:MAX_ROWS] if self.gated or len(table) > 1 else []
        self.left_out = f"{len(table) - MAX_ROWS} more rows are left out." if len(table) > MAX_ROWS else ""

    def answer(self) -> Iterator[str]:
        """Yield the answer and its meaning if there is only one case."""
        for case in self.report.cases if len(self.report.cases) == 1 else ():
            yield from headlines(case, self.digits)
            yield from filter(None, [meaning(case)])

    def cases_left_out(self) -> Iterator[str]:
        """Yield which parts of the cases are not shown."""
        count = len(self.report.cases)
        if count > MAX_DRAWN:
            yield (
                f"Pictures, and all the bounds that answered, are shown of the {MAX_DRAWN} cases that did not pass or "
                "have the least room."
            )
        if count > MAX_CASES:
            yield f"{count - MAX_CASES} more cases are not shown here."

    def _by_importance(self) -> list[int]:
        """Return the numbers of the cases: those that did not pass first, then the tightest ones."""

        def rank(number: int) -> tuple[int, float]:
            case = self.report.cases[number - 1]
            shares = [share for gate in case.assertions if (share := share_used(gate)) is not None]
            return _RANK[case_outcome(case)], -max(shares, default=0.0)

        return sorted(range(1, len(self.report.cases) + 1), key=rank)

    def _shared_grounds(self) -> list[Grounds]:
        """Return the grounds, once for each theorem, and set the number of its grounds in every case."""
        grounds = list(dict.fromkeys(case.grounds for case in self.cases if case.grounds.theorem))
        for case in self.cases:
            case.shared = grounds.index(case.grounds) + 1 if case.grounds.theorem else 0
        return grounds

    def _common_inputs(self) -> list[Row]:
        """Return the inputs that all cases share, and set them in the cases, which then omit them."""
        described = [case.inputs for case in self.cases if case.inputs]
        common = frozenset(described[0]).intersection(*described) if described else frozenset()
        for case in self.cases:
            case.common = common
        return [INPUTS, *(row for row in described[0] if row in common)] if common else []


def _changes(report: Report, asked: Asked) -> list[Change] | None:
    """Return the changes since an earlier report; None if there is none to compare with."""
    if any(case.check and case.check.command == CHECK for case in report.cases):
        return None  # an unreadable recipe has no cases to compare
    changes = changes_since(report, asked)
    return None if changes is None else changes[:MAX_ROWS]
