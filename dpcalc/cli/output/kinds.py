"""The kinds of report that ``--report KIND=FILE`` writes: those that render a report, and a card, which asks again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpcalc import render
from dpcalc.render import Asked, Kind
from dpcalc.report import Report

if TYPE_CHECKING:
    from dpcalc.cards.fields import Card

_SECONDS, _GIB = 60.0, 4.0
"""What a case of a recipe may take on a card: it is asked again, and others wrote it."""


def _card(report: Report, asked: Asked) -> str:
    from dpcalc.cards.card import card_of, trained_model

    return _text(card_of(report, model=trained_model(report)), asked)


def _card_of_check(report: Report, asked: Asked) -> str:
    from dpcalc.cards.limited import card_within
    from dpcalc.recipes.running.evaluate import Limits

    return _text(card_within(report, Limits(_SECONDS, _GIB)), asked)


def _text(card: Card, asked: Asked) -> str:
    if not asked.file.lower().endswith(".md"):
        from dpcalc.cards.card import card_text

        return card_text(card)
    from dpcalc.cards.markdown import card_markdown

    return card_markdown(card)


def _export(report: Report, asked: Asked) -> str:
    from dpcalc.cards.card import card_of, trained_model
    from dpcalc.cards.registry import exported

    return exported(card_of(report, model=trained_model(report)), asked.file)


_SUFFIXES = (".json", ".md")

REPORTS = {**render.REPORTS, "card": Kind(_card, _SUFFIXES), "registry": Kind(_export, (".yaml", ".md"))}
"""Of a query; what is exported to the registry of deployments is of a card too."""

CARD = {"card": Kind(_card_of_check, _SUFFIXES)}
"""Of a check: written whole or not at all."""
