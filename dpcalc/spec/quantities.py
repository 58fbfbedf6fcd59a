"""What is reported beside parameters."""

from __future__ import annotations

RISKS = {
    "excess_risk": "excess risk",
    "empirical_excess_risk": "empirical excess risk",
    "smoothing_error": "risk added by smoothing",
}
"""What a cost may be of, and what that is called."""
