"""What is reported beside parameters."""

from __future__ import annotations

from dpcalc.plain_enum import PlainEnum


class Quantity(PlainEnum):
    """What a result may be of, beside a parameter that is solved for."""

    EPSILON = "epsilon"
    DELTA = "delta"
    MU = "mu"
    RDP = "rdp"
    RHO = "rho"
    PURE = "pure"
    ADVANTAGE = "advantage"
    EXCESS_RISK = "excess_risk"
    EMPIRICAL_EXCESS_RISK = "empirical_excess_risk"
    SMOOTHING_ERROR = "smoothing_error"


class Kind(PlainEnum):
    """What may be said with a number."""

    UPPER = "upper"
    EXACT = "exact"
    LOWER = "lower"  # nothing can beat it
    ASYMPTOTIC = "asymptotic"
    PUBLISHED = "published"  # what a paper prints, kept for comparison where it is wrong or superseded
    HEURISTIC = "heuristic"  # plausible, and proved of no run but of a simpler one
    CONDITIONAL = "conditional"  # its theorem needs a promise that the run does not make, or that a seed breaks

    @property
    def guarantee(self) -> bool:
        """Whether the number may be promised, gated and solved with, and be the best."""
        return self in (Kind.UPPER, Kind.EXACT)


SUFFICIENT: dict[str, str] = {
    "sufficient_pure": "pure privacy with epsilon",
    "sufficient_rho": "concentrated privacy with rho",
    "sufficient_mu": "Gaussian privacy with mu",
    "sufficient_rdp": "a Renyi divergence",
}
"""What a conversion may find enough for a budget, and what that is called: no guarantee follows the other way."""

RISKS: dict[str, str] = {
    Quantity.EXCESS_RISK: "excess risk",
    Quantity.EMPIRICAL_EXCESS_RISK: "empirical excess risk",
    Quantity.SMOOTHING_ERROR: "risk added by smoothing",
}
"""What a cost may be of, and what that is called."""

CHOSEN = ("noise_std", "step_size", "steps")
"""What a cost may choose itself."""

RAN = (*CHOSEN, "failure_probability")
"""What the run behind a cost is described by."""

ATTACKS = {"advantage": "", "tpr": "fpr", "success": "prior", "reconstruction": "baseline"}
"""What an attacker can do, and what it is asked at: the number after @ in an assertion, as in ``tpr@1%<=0.05``."""
