"""The heuristic of Steinke et al. for the last iterate of DP-SGD: the privacy of the run if its losses were linear.

It is plausible but not proved: losses whose gradients depend on the iterate can reveal more.
"""

from __future__ import annotations

import math

from dpcalc.model.quantities import Adjacency, Releases, Sampling
from dpcalc.notions.guarantee import Profile
from dpcalc.theorems.lower.random_linear_losses import counted
from dpcalc.theorems.record import NotNeeded, Unmet, requires, theorem
from dpcalc.theorems.sampled.sampled_steps import sampling_is
from dpcalc.theorems.setting import Setting


@theorem(
    "sampled.last_iterate_heuristic",
    title="The last iterate, as if the losses were linear",
    needs=("sampling", "adjacency", "sample_rate", "steps", "noise_multiplier"),
    algorithms=("dp-sgd",),
    kind="heuristic",
    reference="steinke2025",
    locator="Theorem 1",
    formula="delta(eps) = max(H_eps(P, Q), H_eps(Q, P)), P = Binomial(T, q) + N(0, z^2 T), Q = N(0, z^2 T)",
    conditions=(
        sampling_is(Sampling.POISSON),
        requires(
            "only the last iterate is released",
            lambda run: run.release == Releases.LAST,
            NotNeeded("speaks of the last iterate alone", "give --release last, if no other one is seen", ("release",)),
        ),
        requires(
            "a record comes or goes, or is nulled",
            lambda run: run.adjacency != Adjacency.REPLACE_ONE,
            Unmet("speaks of a record that comes or goes", "use --adjacency add-remove or zero-out", ("adjacency",)),
        ),
        requires(
            "no regulariser and no domain",
            lambda run: not run.regularisation and run.diameter is None,
            Unmet(
                "speaks of runs without a regulariser and a domain, by which a run forgets",
                "leave out --regularisation and --diameter",
                ("regularisation", "diameter"),
            ),
        ),
    ),
    assumes=(
        "a heuristic and no guarantee: no gradient depends on the iterate, which is true of linear losses alone",
        "every step takes each record by itself with probability sample_rate, afresh; noise on the sum, which is "
        "divided by a constant",
    ),
    caution="Exact for linear losses, and so no guarantee for all losses can be below it. It proves nothing of any "
    "other loss: where later gradients depend on the iterate, the truth can be above it.",
    slack="the best event tried, with blocks of many numbers as one: a few per cent too low at most",
    slow=True,
    not_monotone_in=("records", "batch_size", "sample_rate", "steps", "epochs"),
)
def last_iterate_heuristic(run: Setting) -> Profile:
    """If no gradient depends on the iterate, the last iterate is the start plus the sum of all gradients and all noise,
    and it contains the record Binomial(T, q) times.

    >>> run = Setting(sampling="poisson", adjacency="remove", sample_rate=0.1, steps=1, noise_multiplier=1.0)
    >>> round(math.exp(last_iterate_heuristic(run).profile(0.0)), 6)  # 0.1 (2 Phi(1/2) - 1)
    0.038292
    """
    from fractions import Fraction

    apart = 1.0 / run.noise_multiplier / math.sqrt(run.steps)
    gradients = {Adjacency.REMOVE: [(1.0, 0.0)], Adjacency.ADD: [(0.0, -1.0)]}
    both = [(1.0, 0.0), (0.0, -1.0)]
    return Profile(counted(run.steps, Fraction(run.sample_rate), apart, gradients.get(run.adjacency, both)))
