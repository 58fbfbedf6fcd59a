"""What an answer means to somebody new to the field: how often an attacker who has to guess is right."""

from __future__ import annotations

import math

from dpcalc.model.quantities import RISKS, Quantity
from dpcalc.render.positions import record_meant
from dpcalc.report import Case, Result

_ONE_WAY = ("add", "remove")
_COMINGS = ("add_remove", *_ONE_WAY)
_ROUNDOFF = 1.0 + 2.0**-40
"""More than what is lost by a handful of operations in floating point."""


def meaning(case: Case) -> str:
    """Return what the best guarantee says of an attacker, in a sentence; empty where it says nothing so simple.

    The attacker has to tell two equally likely data sets apart: an (epsilon, delta) bound allows him no more than
    `accuracy`, whatever test he makes (Kairouz, Oh and Viswanath 2015, Theorem 2.1).
    """
    best = case.best
    if best is None or best.adjacency in ("by_shift", "as_given") or best.quantity in (Quantity.RDP, *RISKS):
        return ""
    if best.mu is None and (best.epsilon is None or (best.delta is None and best.log_delta is None)):
        return ""
    size = int(case.inputs.get("group_size", (1, ""))[0] or 1)
    known = 0.5 * (1.0 + case.risk["advantage"]["value"]) * _ROUNDOFF if case.risk else 1.0
    right = _right(min(known, accuracy(best)))
    return (
        f"Somebody who sees the output, knows all other records, and has to guess {_asked(case, best, size)}, {right}."
    )


def accuracy(result: Result) -> float:
    """Return an upper bound on the probability that a guess between two equally likely data sets is right.

    P(S) <= e^eps Q(S) + delta in both directions gives (e^eps + delta)/(1 + e^eps) at most, in one direction
    1 - (1 - delta) e^-eps/2. Gaussian privacy, where it is what was proved, gives Phi(mu/2), which is less; where
    rounding changes what is released with some probability, that is added. The result is rounded up.
    """
    rounding = (result.details or {}).get("floating_point", {})
    mu = rounding.get("mu", result.mu)
    if mu is not None:
        right = 0.5 * math.erfc(-mu / math.sqrt(8.0)) + float(rounding.get("probability", 0.0))
        return min(1.0, right * _ROUNDOFF)
    epsilon = result.epsilon or 0.0
    delta = _delta(result)
    less = math.exp(-epsilon)
    if result.adjacency in _ONE_WAY:
        return min(1.0, (1.0 - 0.5 * less * (1.0 - delta)) * _ROUNDOFF)
    return min(1.0, (1.0 + delta * less) / (1.0 + less) * _ROUNDOFF)


def _delta(result: Result) -> float:
    """Return delta, not below what it is."""
    if result.log_delta is not None:
        return min(1.0, math.exp(min(result.log_delta, 0.0)) * _ROUNDOFF)
    return min(1.0, result.delta or 0.0)


def _asked(case: Case, best: Result, size: int) -> str:
    """Return between what the attacker has to choose."""
    if best.forgetting:
        return "whether the records to be forgotten were ever used (a priori as likely as not)"
    if best.adjacency in _COMINGS:
        which = "whether one more record was used" if size == 1 else f"whether {size} more records were used"
        return f"{which} (a priori as likely as not)"
    who, has = (record_meant(case) or "a record", "has") if size == 1 else (f"any {size} records", "have")
    if best.adjacency == "replace_one":
        return f"which of two equally likely values {who} {has}"
    return f"whether {who} {'was' if size == 1 else 'were'} used or left out (a priori as likely as not)"


def _right(probability: float) -> str:
    """Return how often a guess is right at most, rounded up."""
    tenths = math.ceil(probability * 1000.0)
    if tenths >= 1000:
        return "may be right almost every time, for all that this number says"
    return f"is right at most {tenths / 10:.1f}% of the time (a coin: 50%)"
