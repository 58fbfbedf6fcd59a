"""What is reported beside parameters."""

from __future__ import annotations

RISKS = {
    "excess_risk": "excess risk",
    "empirical_excess_risk": "empirical excess risk",
    "smoothing_error": "risk added by smoothing",
}
"""What a cost may be of, and what that is called."""

CHOSEN = ("noise_std", "step_size", "steps")
"""What a cost may choose itself."""

RAN = (*CHOSEN, "failure_probability")
"""What the run behind a cost is described by."""
