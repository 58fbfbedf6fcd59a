"""Solving for a parameter such that an attacker can do no more than is stated: the targets, and how far a run is off.

Of every bound the value is sought for which what it proves keeps all targets, by the upper bounds of
`dpcalc.notions.trade_off`. The value that is told was evaluated itself, so that a search can end too far on the safe
side and never on the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.quantities import ATTACKS
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Guarantee
from dpcalc.notions.trade_off import FEW_SECTIONS
from dpcalc.numerics.normal import quantile


class Target(NamedTuple):
    """What an attacker may do at most: ``name`` and ``at`` as in an assertion such as ``tpr@1%<=0.05``."""

    name: str
    at: float | None
    limit: float

    @property
    def text(self) -> str:
        """The target as an assertion."""
        return f"{self.key} <= {self.limit:g}"

    @property
    def key(self) -> str:
        """What is limited."""
        return self.name if self.at is None else f"{self.name}@{self.at:g}"


def take_targets(values: dict[str, Any], listed: Mapping[str, Sequence[float] | None]) -> tuple[Target, ...]:
    """Return the targets, taken out of the values.

    Args:
        values: those of `ATTACKS` that are limited -> the limit, and others.
        listed: fpr, prior and baseline -> the rates and probabilities given.

    Raises:
        SpecError: it is not said, or not by one number, at which rate or probability one is.
    """
    return tuple(
        Target(name, _at(name, ATTACKS[name], listed.get(ATTACKS[name])), float(values.pop(name)))
        for name in ATTACKS
        if values.get(name) is not None
    )


def _at(name: str, rate: str, given: Sequence[float] | None) -> float | None:
    if not rate:
        return None
    if not given or len(given) != 1:
        how = "needs" if not given else "takes one"
        raise SpecError(f"--{name} {how} --{rate}", f"for example --{name} 0.05 --{rate} {_EXAMPLES[rate]}")
    return given[0]


_EXAMPLES = {"fpr": "0.01", "prior": "0.1", "baseline": "0.001"}


def achieved(guarantee: Guarantee, targets: Sequence[Target], *, rough: bool = False) -> dict[str, float]:
    """Return what a guarantee leaves of each target, rounded up; ``rough`` ones are a little larger, and cheaper.

    Raises:
        NotApplicable: it has no curve.
    """
    if not guarantee.has_curve:
        raise NotApplicable("has no curve from which a risk follows", "solve with epsilon and delta")
    curve = guarantee.trade_off(FEW_SECTIONS if rough else None)
    return {
        target.key: curve.advantage() if target.at is None else getattr(curve, target.name)(target.at)
        for target in targets
    }


def excess_over(guarantee: Guarantee, targets: Sequence[Target], *, rough: bool = False) -> float:
    """Return a number that is <= 0 exactly where what the guarantee leaves keeps all targets.

    A limit is lowered by a hair, so that the rounding of a typed decimal cannot help.
    """
    reached = achieved(guarantee, targets, rough=rough)
    return max(_excess(reached[target.key], math.nextafter(target.limit, 0.0)) for target in targets)


def _excess(value: float, limit: float) -> float:
    if value <= limit:
        return -min(100.0, math.log(limit / value)) if value > 0.0 else -100.0
    return max(math.log(value / limit), 1e-300)


def like_budget(targets: Sequence[Target]) -> tuple[float, float]:
    """Return an (epsilon, ln delta) that Gaussian privacy meets where it meets the targets, to start a search from."""
    mu = max(1e-9, min(_mu_of(target) for target in targets))
    return mu, gaussian.log_delta(mu=mu, epsilon=mu)


def _mu_of(target: Target) -> float:
    """Return about the largest mu that keeps a target; 0 where none does."""
    if target.name == "success":
        assert target.at is not None
        even = max(target.at, 1.0 - target.at)
        gained = (target.limit - even) / (1.0 - even)
        epsilon = math.log(even / (1.0 - even))
        return gaussian.largest_mu(epsilon=epsilon, log_delta_target=math.log(gained)) if 0.0 < gained < 1.0 else 0.0
    if target.at is None:
        return -2.0 * quantile(math.log(0.5 * (1.0 + target.limit)), upwards=True)
    return quantile(math.log(target.at), upwards=True) - quantile(math.log(target.limit), upwards=True)


def refuse_hopeless(targets: Sequence[Target]) -> None:
    """Refuse targets that no privacy keeps: who guesses without any output does better.

    Raises:
        SpecError: one is.
    """
    for target in targets:
        floor = max(target.at, 1.0 - target.at) if target.name == "success" and target.at else target.at or 0.0
        if target.limit <= floor:
            raise SpecError(
                f"{target.text}: without any output an attacker has {target.name} {floor:g}",
                f"a limit above {floor:g}",
            )
