"""Verifying a card that may ask for more than there is time and memory for: in a process of its own, within limits."""

from __future__ import annotations

from typing import Any

from dpcalc.cards.verify import Verification, verify
from dpcalc.errors import Disproved, DpcalcError
from dpcalc.recipes.evaluate import Limits
from dpcalc.recipes.workers import Pool


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
        found = pool.submit((card, options), limits.timeout).result()
    if isinstance(found, Verification):
        return found
    message, hint, exit_code, report = found
    if report is not None:
        raise Disproved(message, report)
    error = DpcalcError(message, hint)
    error.exit_code = exit_code
    raise error


def _verified(asked: tuple[dict[str, Any], dict[str, Any]]) -> Any:
    """Return the verification, or an error as what can be pickled."""
    card, options = asked
    try:
        return verify(card, **options)
    except Disproved as error:
        return error.message, error.hint, error.exit_code, error.report
    except DpcalcError as error:
        return error.message, error.hint, error.exit_code, None
