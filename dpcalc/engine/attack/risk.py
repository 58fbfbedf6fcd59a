"""The risk beside a guarantee: what an attacker can do, each number the least that any bound proves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dpcalc.engine.attack.guess import Evidence, least_advantage
from dpcalc.errors import NotApplicable
from dpcalc.model.quantities import Adjacency
from dpcalc.model.question import RiskQuestion
from dpcalc.model.run import Run
from dpcalc.notions.guarantee import Box, Guarantee, LowerBound
from dpcalc.numerics.floats import exp_up
from dpcalc.report import Case, Guess
from dpcalc.theorems.record import lookup

if TYPE_CHECKING:
    pass

USUAL_LOG_DELTA = math.log(1e-6)
_VACUOUS = math.log(0.5)  # a mu that only holds above such a delta is meaningless


def with_risk(case: Case, run: Run, orders: tuple[float, ...], risks: RiskQuestion) -> Case:
    """Return the case with the risks of its run, with the best solution of a solved parameter.

    Raises:
        SpecError: a rate or probability is outside (0, 1).
        NotApplicable: the guarantee is of one order of the two data sets alone.
    """
    risks.check()
    best = case.best
    if best is None:
        return case
    if run.adjacency in (Adjacency.ADD, Adjacency.REMOVE):
        raise NotApplicable(
            f"what an attacker can do needs both directions of two data sets, and the adjacency is {run.adjacency}",
            "give --adjacency add-remove",
        )
    evidence = Evidence(case, run, orders)
    log_delta = best.log_delta if best.log_delta is not None else USUAL_LOG_DELTA
    proved = [(name, _quick(name, part, risks, log_delta)) for name, part in evidence.proved]
    return case._replace(risk=risk_of(proved, risks, log_delta, evidence.floors, case.guess))


def _quick(name: str, part: Guarantee, risks: RiskQuestion, log_delta: float) -> Guarantee:
    """Return the guarantee of a bound, from a few points if every point takes a search."""
    if part.certificate is None or not lookup(name).slow:
        return part
    return part.few_points(log_delta, (*risks.fprs, *risks.baselines), risks.priors)


def risk_of(
    proved: Sequence[tuple[str, Guarantee]],
    risks: RiskQuestion,
    log_delta: float,
    floors: Sequence[tuple[str, LowerBound]] = (),
    guess: Guess | None = None,
) -> dict[str, Any]:
    """Return the risks as JSON, each with the bound that proves the least.

    Args:
        proved: (id, guarantee), the best one first; all hold.
        risks: the question about attacks.
        log_delta: ln delta_0 of the pair, if no mu alone covers the guarantee.
        floors: (id, lower bound).
        guess: what is said of the answer, where it is a run's: the advantage, and a guess with even odds.
    """
    curves = [(name, part.trade_off()) for name, part in proved]
    if not curves:
        return {}
    advantages = [value for _, floor in floors if (value := floor.advantage()) is not None]
    advantage, by = (guess.advantage, guess.bound) if guess else least_advantage(proved)
    risk: dict[str, Any] = {"advantage": {"value": advantage, "bound": by}}
    if advantages:
        risk["advantage"]["at_least"] = max(advantages)
    risk["tpr"] = [{"fpr": a, **_least((curve.tpr(a), name) for name, curve in curves)} for a in risks.fprs]
    even = [(guess.probability, guess.bound)] if guess else []
    risk["success"] = [
        {"prior": p, **_least(even if even and p == 0.5 else [(curve.success(p), name) for name, curve in curves])}
        for p in risks.priors
    ]
    risk["reconstruction"] = [
        {"baseline": k, **_least((curve.reconstruction(k), name) for name, curve in curves)} for k in risks.baselines
    ]
    risk["mu"] = _mu(proved, log_delta)
    risk["from_point"] = all(isinstance(part, Box) for _, part in proved)
    if risks.curve:
        risk["curve"] = _curve(proved, floors)
    return risk


CURVE_FPRS = (
    *(float(f"{10.0 ** (-6.0 + 0.25 * k):.3g}") for k in range(18)),
    *(round(0.02 + 0.015 * k, 3) for k in range(12)),
    *(round(0.2 + 0.025 * k, 3) for k in range(32)),
    0.99,
    0.999,
)
"""The rates of false positives at which a curve is told: evenly in powers of ten up to 0.02, and evenly from there."""


def _curve(proved: Sequence[tuple[str, Guarantee]], floors: Sequence[tuple[str, LowerBound]]) -> dict[str, Any]:
    """Return the true-positive rates of every bound, and of the lower bounds."""
    lower = [(name, value) for name, floor in floors if (value := floor.tpr()) is not None]
    return {
        "fpr": list(CURVE_FPRS),
        "at_most": [{"bound": name, "tpr": part.tprs(CURVE_FPRS)} for name, part in proved],
        "at_least": [{"bound": name, "tpr": [value(a) for a in CURVE_FPRS]} for name, value in lower],
    }


def _least(values: Iterable[tuple[float, str]]) -> dict[str, Any]:
    value, bound = min(values, key=lambda pair: pair[0])
    return {"value": value, "bound": bound}


def _mu(proved: Sequence[tuple[str, Guarantee]], log_delta: float) -> dict[str, Any] | None:
    """Return the least mu of the Gaussian guarantees, or the pair of the best one if there is none."""
    gaussian = [(part.mu, name) for name, part in proved if part.mu is not None]
    if gaussian:
        mu, name = min(gaussian)
        return {"value": mu, "delta": 0.0, "regret": 0.0, "bound": name}
    name, part = proved[0]
    whole, by = min((guarantee.whole_mu, id) for id, guarantee in proved)
    pair = part.least_mu(log_delta)
    if whole <= pair.mu or (math.isfinite(whole) and pair.log_delta > _VACUOUS):
        name, pair = by, dict(proved)[by].with_regret(whole, log_delta)
    if not math.isfinite(pair.mu) or pair.log_delta > _VACUOUS:
        return None
    least = {"value": pair.mu, "delta": exp_up(pair.log_delta), "regret": pair.regret, "bound": name}
    everywhere = {"everywhere": {"value": whole, "bound": by}} if math.isfinite(whole) and least["delta"] else {}
    return {**least, **everywhere}
