"""The kinds of report that ``--report KIND=FILE`` writes: those that render a report, and a card, which asks again."""

from __future__ import annotations

from dpcalc import render
from dpcalc.render import Asked, Kind, check
from dpcalc.report import Report


def _card(report: Report, asked: Asked) -> str:
    from dpcalc.cards.card import card_of, card_text, trained_model

    card = card_of(report, model=trained_model(report))
    if not asked.file.lower().endswith(".md"):
        return card_text(card)
    from dpcalc.cards.markdown import card_markdown

    return card_markdown(card)


CARD = {"card": Kind(_card, (".json", ".md"))}

REPORTS = {**render.REPORTS, **CARD}
"""Of a query."""

CHECKED = {**check.KINDS, **CARD}
"""Of a check."""
