"""Cards that may ask for more than there is time and memory for: each in a process of its own, within limits."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from dpcalc.cards.card import card_of, case_fields
from dpcalc.cards.fields import Card
from dpcalc.cards.fields import Case as CaseFields
from dpcalc.cards.verify import Verification, verify
from dpcalc.recipes.running.evaluate import Limits
from dpcalc.recipes.running.workers import Pool
from dpcalc.report import Case, Report


def verify_within(card: Card, limits: Limits, **options: Any) -> Verification:
    """Return what `dpcalc.cards.verify.verify` does.

    Args:
        card: as a function of `dpcalc.cards.document` returns it.
        limits: its timeout, and the memory of the process.
        options: those of `verify`.

    Raises:
        DpcalcError: what `verify` raises, or a limit is exceeded.
    """
    with Pool(partial(verify, **options), 1, limits.memory) as pool:
        verification: Verification = pool.submit(card, limits.timeout).result()
    return verification


def card_within(report: Report, limits: Limits) -> Card:
    """Return what `dpcalc.cards.card.card_of` does, of cases that others described.

    Args:
        report: of a check.
        limits: the timeout of each case, and the memory of the process.

    Raises:
        DpcalcError: what `card_of` raises, or a limit is exceeded.
    """

    def fields_of(cases: Iterable[Case]) -> list[CaseFields]:
        # What a card does not need stays here.
        slim = [case._replace(notes=(), note_data=(), obstacles=(), curves=None, training=None) for case in cases]
        with Pool(case_fields, 1, limits.memory) as pool:
            return [pool.submit(case, limits.timeout).result() for case in slim]

    return card_of(report, fields_of=fields_of)
