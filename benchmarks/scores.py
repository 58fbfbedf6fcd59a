"""What scores of canaries prove: dpcalc beside the auditing of JAX-Privacy, on the same scores.

``python benchmarks/scores.py [SETS]`` needs jax_privacy (pip install jax-privacy); it prints the mean lower bound on
epsilon at confidence 0.95 and delta 1e-5, and the share of sets where that exceeds the truth.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np  # noqa: TID253
from jax_privacy.auditing import CanaryScoreAuditor, Split
from numpy.typing import NDArray  # noqa: TID253

from dpcalc.training.audit.scores import Scores

Array = NDArray[np.float64]
ALPHA, DELTA = 0.05, 1e-5
CHANCE = math.e / (1.0 + math.e)  # of randomised response at epsilon 1


def of_mu(mu: float) -> Callable[[np.random.Generator, int, float], Array]:
    """Return what draws scores of a Gaussian mechanism."""
    return lambda r, n, inside: r.normal(size=n) + mu * inside


LAWS: dict[str, tuple[Callable[[np.random.Generator, int, float], Array], int, float]] = {
    "null, 100": (of_mu(0.0), 100, 0.0),
    "randomised response, 500": (
        lambda r, n, i: (r.random(n) < (i * CHANCE + (1.0 - i) * (1.0 - CHANCE))) * 1.0,
        500,
        1.0,
    ),
    "Laplace, 1000": (lambda r, n, i: r.laplace(size=n) / 3.0 + i, 1000, 3.0),
    "Gauss, mu 1, 500": (of_mu(1.0), 500, 4.3777),
    "Gauss, mu 2, 1000": (of_mu(2.0), 1000, 9.997),
}
"""What draws so many scores of one side, how many, and the true epsilon at delta."""


def bounds(inside: Array, outside: Array) -> dict[str, float]:
    """Return the lower bounds of every method."""
    jax = CanaryScoreAuditor(inside, outside)
    one = Scores("drawn", inside, outside, one_run=True, confidence=1.0 - ALPHA)
    return {
        "dpcalc, many runs": Scores("drawn", inside, outside, confidence=1.0 - ALPHA).prove(DELTA, []).epsilon or 0.0,
        "jax, all thresholds": jax.epsilon_clopper_pearson(ALPHA, DELTA, one_sided=False),
        "jax, split": jax.epsilon_clopper_pearson(ALPHA, DELTA, threshold_strategy=Split(seed=1)),
        "dpcalc, one run": one.prove(DELTA, []).epsilon or 0.0,
        "jax, one run": jax.epsilon_one_run(ALPHA, DELTA),
        "jax, one run, split": jax.epsilon_one_run(ALPHA, DELTA, threshold_strategy=Split(seed=1)),
    }


def main(sets: int) -> None:
    """Print a line for every law and method."""
    r = np.random.default_rng(5)
    for name, (draw, count, truth) in LAWS.items():
        rows = [bounds(draw(r, count, 1.0), draw(r, count, 0.0)) for _ in range(sets)]
        for method in rows[0]:
            values = np.array([row[method] for row in rows])
            print(f"{name:26} {method:22} {values.mean():7.3f}  above the truth: {(values > truth).mean():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
