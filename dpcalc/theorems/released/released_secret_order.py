"""Passes in one secret random order, the iterate after each of them released: the position is the same in all."""

from __future__ import annotations

import math

from dpcalc.notions.guarantee import Profile
from dpcalc.theorems.conditions import CONVEXITY_WITHIN, GAUSSIAN_NOISE, STEP_WITHIN, WHERE_BOUNDED
from dpcalc.theorems.contraction.contraction import FRESH, LIPSCHITZ_STEPS
from dpcalc.theorems.hidden.hidden_position import SECRET, SecretPass, least_of, secret_order
from dpcalc.theorems.record import theorem
from dpcalc.theorems.released.released import EACH, ReleasedPasses, shuffle_once
from dpcalc.theorems.setting import BATCHES, NOISY_STEP


@theorem(
    "released.shuffle_once_secret",
    title="Released passes in one secret random order",
    needs=(*BATCHES, "epochs", *NOISY_STEP, "step_size", "smoothness", "adjacency", "strong_convexity?", "diameter?"),
    algorithms=("shuffle-once-released",),
    reference="dpcalc",
    locator="hidden position for all releases together, with the swap of two records carried through all passes",
    formula="as hidden_position.shuffled, with sqrt(E) mu_km for mu_km",
    conditions=(GAUSSIAN_NOISE, STEP_WITHIN, CONVEXITY_WITHIN),
    promises=(SECRET,),
    assumes=(
        "one order for all passes, all orders equally likely and drawn without looking at the data (no rotation)",
        "the order, the seed that made it and logs of single steps stay secret for ever",
        "the sensitivity holds between all records that may occur, not only between the two compared",
        "the number of passes is fixed, and nothing but the order depends on the order",
        LIPSCHITZ_STEPS, FRESH, WHERE_BOUNDED, EACH,
    ),
    slack="as hidden_position.shuffled; at most released.shuffle_once",
    slow=True,
    not_monotone_in=("records",),
)  # fmt: skip
def shuffle_once_secret(run: ReleasedPasses) -> Profile:
    """The place of a record in the one order stays hidden, although the iterates between the passes do not: telling two
    places apart takes all releases together.
    """
    one_pass = run.part(SecretPass).passes
    together = one_pass._replace(ratio=one_pass.ratio * math.sqrt(run.epochs) * (1.0 + 1e-15))
    public = shuffle_once(run.part(ReleasedPasses)).profile
    return least_of(public, lambda: secret_order(together, run.adjacency))
