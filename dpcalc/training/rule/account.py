"""The account of all releases about the same records: each is charged before its noise is drawn."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol

from dpcalc.errors import GateFailed, warn
from dpcalc.model.quantities import Adjacency
from dpcalc.notes import Charged
from dpcalc.notions import gaussian
from dpcalc.report import Case, Result

AGAIN = (
    "another model was fitted in this process to rows of as many columns: if they share records, both together are "
    "less private than each; give all of them one account (dpcalc.Accountant or dpcalc.Ledger), which adds them up"
)
_NEAR = 0.99
"""A mu that gives less than this share of epsilon covers only a part of the release."""

_fitted: set[int] = set()
"""The numbers of columns of fits without an account: they are public, unlike the rows."""
_warned: list[str] = []
_lock = threading.Lock()


class Release(NamedTuple):
    """A release about the records and its guarantee under replace-one adjacency.

    Attributes:
        name: of its entry.
        epsilon, delta: of its guarantee.
        mu, distance: the release is within this distance, in total variation, of a mu-GDP one; mu is None where that is
            not known.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    mu: float | None = None
    distance: float = 0.0


class Account(Protocol):
    """An account for releases: `dpcalc.Accountant`, `dpcalc.Ledger`, or a ledger in a file."""

    def take(self, *releases: Release) -> Charged:
        """Charge releases before they are made, all or none.

        Raises:
            GateFailed: the budget has no room for them.
        """

    def finish(self) -> None:
        """Mark the charged releases as released."""


def release_of(name: str, best: Result) -> Release:
    """Return the release to charge for a result.

    Noisy sums that are exact up to one rounding are near Gaussian mechanisms, and are charged by mu and the distance to
    them. A result of hidden steps, rounded to its own grid, is charged by (epsilon, delta) alone.
    """
    assert best.epsilon is not None
    assert best.delta is not None
    assert best.adjacency == Adjacency.REPLACE_ONE
    rounded = (best.details or {}).get("floating_point") or {}
    mu = rounded.get("mu")
    if mu is not None and rounded.get("grid") is None and best.log_delta is not None:
        reached = gaussian.epsilon(mu=mu, log_delta_target=best.log_delta)
        if reached >= _NEAR * best.epsilon:
            return Release(name, best.epsilon, best.delta, mu, rounded["probability"])
    return Release(name, best.epsilon, best.delta)


def charged(case: Case, account: Account | None, *releases: Release) -> Case:
    """Charge releases to the account and return the case with a note on it.

    At a small delta, the distance to mu-GDP may cost more than the rounding adds to epsilon. So if mu does not fit into
    the budget, (epsilon, delta) is tried, which fits a budget equal to that of the run.

    Raises:
        GateFailed: the budget of the account has no room for them.
    """
    if account is None:
        return case
    try:
        note = account.take(*releases)
    except GateFailed as error:
        plain = [release._replace(mu=None) for release in releases]
        try:
            note = account.take(*plain)
        except GateFailed:
            raise error from None
    return case._replace(note_data=(*case.note_data, note))


def warn_if_again(columns: int) -> None:
    """Warn, once in a process, if this is a second fit without an account to rows with this number of columns."""
    with _lock:
        again = columns in _fitted and not _warned
        _fitted.add(columns)
        if again:
            _warned.append(AGAIN)
    if again:
        warn(AGAIN)
