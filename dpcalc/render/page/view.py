"""What a page shows of a report, as texts: the template has no logic, and this no markup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dpcalc.render.asked import Asked
from dpcalc.render.check.baseline import changes_since
from dpcalc.render.check.verdicts import (
    share_used,
)
from dpcalc.render.numbers import Digits
from dpcalc.render.page.case import Given, Grounds, Shown, headlines, shown_case
from dpcalc.render.page.names import typed
from dpcalc.render.page.outcome import case_style, style_of, word_of
from dpcalc.render.page.verdict import Verdict, facts, reservations, verdict_of, verdicts
from dpcalc.render.words import training
from dpcalc.render.words.meaning import meaning
from dpcalc.report import Change, Report
from dpcalc.version import __version__

MAX_CASES = 100
"""How many cases are shown in full; the table of verdicts has all, up to `MAX_ROWS`."""
MAX_DRAWN = 12
"""Cases with pictures: those that did not pass, and of the others the ones with the least room."""
SHARED_FROM = 9
"""From so many cases on, what has to be true is said once for each theorem."""
MAX_ROWS = 1000


class Page(NamedTuple):
    """All of a page. ``style`` is ok, part, bad or plain: the colour of the verdict, beside its words."""

    title: str
    kicker: str
    style: str
    word: str
    verdict: str
    said: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    reservations: tuple[str, ...]
    gated: bool
    verdicts: tuple[Verdict, ...]
    left_out: str
    compared: bool
    changes: tuple[Change, ...]
    cases: tuple[Shown, ...]
    cases_left_out: tuple[str, ...]
    grounds: tuple[Grounds, ...]
    inputs: tuple[Given, ...]
    command: str
    version: str


def page_of(report: Report, asked: Asked) -> Page:
    """Return what the page of a report shows."""
    style = style_of(report)
    gated = any(case.assertions for case in report.cases) or report.command == "check"
    judged = gated or style == "bad"
    word = word_of(report) if judged else "Answer" if len(report.cases) == 1 else "Answers"
    found = _changes(report, asked)
    order = _by_importance(report)
    drawn, full = set(order[:MAX_DRAWN]), sorted(order[:MAX_CASES])
    shown = [shown_case(report, report.cases[place - 1], place, asked, drawn=place in drawn) for place in full]
    table = sorted(verdicts(report, set(full), asked.digits), key=lambda row: _RANK[row.style])
    inputs: tuple[Given, ...] = ()
    grounds = tuple(dict.fromkeys(each.grounds for each in shown if each.grounds.theorem))
    if len(report.cases) >= SHARED_FROM:
        places = {each: place for place, each in enumerate(grounds, 1)}
        shown = [each._replace(shared=places.get(each.grounds, 0)) for each in shown]
        described = [set(each.inputs) for each in shown if each.inputs]
        common = set.intersection(*described) if described else set()
        inputs = tuple(dict.fromkeys(one for each in shown for one in each.inputs if one in common))
        shown = [each._replace(inputs=tuple(one for one in each.inputs if one not in common)) for each in shown]
    else:
        grounds = ()
    said = _said(report, asked.digits)
    return Page(
        title=f"dpcalc {report.command}: {word}",
        kicker=f"dpcalc {report.command}",
        style=style,
        word=word,
        verdict=verdict_of(report, style, asked.digits),
        said=said,
        facts=tuple(facts(report)),
        reservations=tuple(reservations(report)),
        gated=gated,
        verdicts=tuple(table[:MAX_ROWS]) if gated or len(table) > 1 else (),
        left_out=f"{len(table) - MAX_ROWS} more rows are left out." if len(table) > MAX_ROWS else "",
        compared=found is not None,
        changes=tuple((found or ())[:MAX_ROWS]),
        cases=tuple(shown),
        cases_left_out=tuple(_cases_left_out(len(report.cases))),
        grounds=grounds,
        inputs=inputs,
        command=typed(asked.typed),
        version=__version__,
    )


def _by_importance(report: Report) -> list[int]:
    """Return the numbers of the cases: those that did not pass first, then those with the least room."""

    def rank(place: int) -> tuple[int, float]:
        case = report.cases[place - 1]
        shares = [share for gate in case.assertions if (share := share_used(gate)) is not None]
        return _RANK[case_style(case)], -max(shares, default=0.0)

    return sorted(range(1, len(report.cases) + 1), key=rank)


_RANK = {"bad": 0, "plain": 1, "skip": 2, "ok": 3}


def _cases_left_out(count: int) -> Iterable[str]:
    if count > MAX_DRAWN:
        yield (
            f"Pictures, and all the bounds that answered, are shown of the {MAX_DRAWN} cases that did not pass or have "
            "the least room."
        )
    if count > MAX_CASES:
        yield f"{count - MAX_CASES} more cases are not shown here."


def _said(report: Report, digits: Digits) -> tuple[str, ...]:
    """Return the answer where there is one alone, and what it means."""
    if len(report.cases) != 1:
        return ()
    case = report.cases[0]
    meant = "" if training.warning(case) else meaning(case)
    return tuple(filter(None, (*headlines(case, digits), meant)))


def _changes(report: Report, asked: Asked) -> list[Change] | None:
    """Return what differs from an earlier report; None where there is none to compare with."""
    if any(case.check and case.check.command == "check" for case in report.cases):
        return None  # a recipe that cannot be read has no cases to compare
    return changes_since(report, asked)
