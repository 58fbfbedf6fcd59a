"""Composition of dominating pairs by their privacy-loss distributions, rounded up, for any count and any delta.

`dominating_pair` holds what is composed, `discretisation` makes its privacy loss discrete, `lattice` adds losses by the
transforms of `convolution`, `tilting` chooses the lattice, and `accountant` answers.
"""

from dpcalc.notions.pld.accountant import Bound, epsilon, log_delta, log_delta_near, on_lattice
from dpcalc.notions.pld.dominating_pair import (
    Pair,
    from_curve,
    gaussian,
    laplace,
    randomised_response,
    subsampled_gaussian,
)

__all__ = [
    "Bound",
    "Pair",
    "epsilon",
    "from_curve",
    "gaussian",
    "laplace",
    "log_delta",
    "log_delta_near",
    "on_lattice",
    "randomised_response",
    "subsampled_gaussian",
]
