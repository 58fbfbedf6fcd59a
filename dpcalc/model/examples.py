"""Usual values of parameters: what an error that asks for some shows as an example."""

from __future__ import annotations

from typing import Any

EXAMPLES: dict[str, Any] = {
    "records": 10000, "batch_size": 100, "epochs": 10, "steps": 1000, "index": 1, "window": 1000, "step_size": 0.1,
    "noise_std": 10.0, "delta": 1e-6, "c1": 100.0, "c2": 100.0, "decay_exponent": 1.5, "shift": 0.01,
    "contraction": 0.9, "epoch_epsilon": 0.1, "dimension": 10, "sampling": "poisson", "loss": "logistic",
    "epoch_delta": 1e-6, "failure_probability": 0.1, "classes": 3, "advantage": 0.1, "tpr": 0.05, "success": 0.6,
    "reconstruction": 0.01, "start_distance": 0.01, "gradient_norm": 1e-6, "clean_steps": 100, "fpr": 0.01,
    "prior": 0.5, "baseline": 0.001,
}  # fmt: skip
"""Usual values, what is asked of attacks among them; 1 for all other parameters."""
