"""Cards that may ask for more than there is time and memory for: each in a process of its own, within limits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from dpcalc.cards.card import Fields, card_of, case_fields
from dpcalc.cards.verify import Verification, verify
from dpcalc.errors import Disproved, DpcalcError
from dpcalc.recipes.running.evaluate import Limits
from dpcalc.recipes.running.workers import Pool
from dpcalc.report import Case, Report


def verify_within(card: dict[str, Any], limits: Limits, **options: Any) -> Verification:
    """Return what `dpcalc.cards.verify.verify` does.

    Args:
        card: as a function of `dpcalc.cards.read` returns it.
        limits: its timeout, and the memory of the process.
        options: those of `verify`.

    Raises:
        DpcalcError: what `verify` raises, with its exit code; or a limit is exceeded.
    """
    with Pool(_verified, 1, limits.memory) as pool:
        found: Verification = _told(pool.submit((card, options), limits.timeout).result())
    return found


def card_within(report: Report, limits: Limits) -> dict[str, Any]:
    """Return what `dpcalc.cards.card.card_of` does, of cases that others described.

    Args:
        report: of a check.
        limits: the timeout of each case, and the memory of the process.

    Raises:
        DpcalcError: what `card_of` raises, with its exit code; or a limit is exceeded.
    """

    def fields_of(cases: Iterable[Case]) -> list[Fields]:
        with Pool(_made, 1, limits.memory) as pool:
            return [_told(pool.submit(_slim(case), limits.timeout).result()) for case in cases]

    return card_of(report, fields_of=fields_of)


def _slim(case: Case) -> Case:
    """Return a case without what its card does not need."""
    return case._replace(notes=(), note_data=(), obstacles=(), curves=None, training=None)


class _Refusal(NamedTuple):
    """An error as what can be pickled."""

    message: str
    hint: str | None
    exit_code: int
    report: str | None


def _told(found: Any) -> Any:
    """Return what was computed, or raise the error that was found instead."""
    if not isinstance(found, _Refusal):
        return found
    if found.report is not None:
        raise Disproved(found.message, found.report)
    error = DpcalcError(found.message, found.hint)
    error.exit_code = found.exit_code
    raise error


def _refusal(error: DpcalcError) -> _Refusal:
    report = error.report if isinstance(error, Disproved) else None
    return _Refusal(error.message, error.hint, error.exit_code, report)


def _verified(asked: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    """Return the verification, or an error as what can be pickled."""
    card, options = asked
    try:
        return verify(card, **options)
    except DpcalcError as error:
        return _refusal(error)


def _made(case: Case) -> Any:
    """Return what a card says of a case, or the error."""
    try:
        return case_fields(case)
    except DpcalcError as error:
        return _refusal(error)
