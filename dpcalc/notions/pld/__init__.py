"""Composition by the law of the privacy loss: of any pair of laws, to any count, down to any delta, from above.

`pair` says what is composed, `dots` makes its loss discrete, `lattice` adds losses up, `pilot` chooses where to look,
`compose` answers.
"""

from dpcalc.notions.pld.compose import Bound, epsilon, log_delta, on_lattice
from dpcalc.notions.pld.pair import Pair, from_curve, gaussian, laplace, randomised_response, subsampled_gaussian

__all__ = [
    "Bound",
    "Pair",
    "epsilon",
    "from_curve",
    "gaussian",
    "laplace",
    "log_delta",
    "on_lattice",
    "randomised_response",
    "subsampled_gaussian",
]
