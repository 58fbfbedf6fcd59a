"""Composition of dominating pairs by their privacy-loss distributions, rounded up, for any count and any delta.

`discretisation` defines pairs and makes their privacy losses discrete, `lattice` adds losses by the transforms of
`convolution`, `tilting` chooses the lattice, and `accountant` returns delta and epsilon.
"""

from dpcalc.notions.pld.accountant import (
    RESOLUTION,
    Bound,
    bound_near,
    curve,
    epsilon,
    likely_log_delta,
    log_delta,
    on_lattice,
)
from dpcalc.notions.pld.allocation_law import random_place, replaced_place
from dpcalc.notions.pld.discretisation import (
    Pair,
    from_curve,
    gaussian,
    gaussian_sum,
    laplace,
    randomised_response,
    subsampled_gaussian,
)
from dpcalc.notions.pld.gaussian_mixture import hidden_shift, mirrored_shift, revealed_shift
from dpcalc.notions.pld.grouped_gaussian import removed_group, replaced_group
from dpcalc.notions.pld.many_kinds import ManyKinds
from dpcalc.notions.pld.repeated_draws import Draws, nulled_draws, removed_draws, replaced_draws
from dpcalc.notions.pld.sampled_gaussian import (
    exchanged,
    known_uses,
    larger,
    mixed,
    nulled_fixed,
    removed,
    replaced_known_uses,
    replaced_poisson,
    seldom_used,
)

__all__ = [
    "RESOLUTION",
    "Bound",
    "Draws",
    "ManyKinds",
    "Pair",
    "bound_near",
    "curve",
    "epsilon",
    "exchanged",
    "from_curve",
    "gaussian",
    "gaussian_sum",
    "hidden_shift",
    "known_uses",
    "laplace",
    "larger",
    "likely_log_delta",
    "log_delta",
    "mirrored_shift",
    "mixed",
    "nulled_draws",
    "nulled_fixed",
    "on_lattice",
    "random_place",
    "randomised_response",
    "removed",
    "removed_draws",
    "removed_group",
    "replaced_draws",
    "replaced_group",
    "replaced_known_uses",
    "replaced_place",
    "replaced_poisson",
    "revealed_shift",
    "seldom_used",
    "subsampled_gaussian",
]
