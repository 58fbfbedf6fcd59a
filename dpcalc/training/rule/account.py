"""The account that releases about the same records share: each is charged to it before its first noise is drawn."""

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
"""The share of epsilon that a mu has to come to, so as to be that of the release: less would be of a part of it."""

_fitted: set[int] = set()
"""The numbers of columns of what was fitted without an account: they are public, unlike what the rows hold."""
_warned: list[str] = []
_lock = threading.Lock()


class Release(NamedTuple):
    """A release about the records, under replace-one adjacency: (epsilon, delta), and where that is known, more.

    Attributes:
        name: of its entry.
        epsilon, delta: what it has.
        mu, distance: it is within this distance, in total variation, of what is mu-GDP; None where that is not known.
    """

    name: str
    epsilon: float
    delta: float = 0.0
    mu: float | None = None
    distance: float = 0.0


class Account(Protocol):
    """What releases are charged to: `dpcalc.Accountant`, `dpcalc.Ledger`, or a ledger in a file."""

    def take(self, *releases: Release) -> Charged:
        """Charge releases before they are made, all or none.

        Raises:
            GateFailed: the budget has no room for it.
        """

    def finish(self) -> None:
        """Say of what was charged that it was released."""


def release_of(name: str, best: Result) -> Release:
    """Return what is charged for a result: exact noisy sums that are rounded are near what is not, which is Gaussian.

    Of what is rounded after hidden steps, to a grid of its own, (epsilon, delta) alone is kept.
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
    """Return the case with a note on the account, to which its releases are charged.

    The distance of what is near mu-GDP costs more at a small delta than what rounding adds to epsilon: where it does
    not fit, (epsilon, delta) may, as in a budget that is that of the run.

    Raises:
        GateFailed: the budget of the account has no room for it.
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
    """Warn once in a process of a fit without an account to rows of so many columns that is not the first."""
    with _lock:
        again = columns in _fitted and not _warned
        _fitted.add(columns)
        if again:
            _warned.append(AGAIN)
    if again:
        warn(AGAIN)
