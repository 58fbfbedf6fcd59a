"""A lower bound for DP-SGD with shuffled batches and public iterates: the largest sum of every epoch tells.

All gradients but the record's are -C, and the record's is C.
"""

from __future__ import annotations

import math

from dpcalc.model.quantities import Adjacency, Releases, Sampling
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics.floats import down
from dpcalc.numerics.normal import LN_SQRT_2PI, mills
from dpcalc.theorems.record import NotNeeded, Unmet, requires, theorem
from dpcalc.theorems.sampled.sampled_steps import ENDS_IN_SHUFFLED, WHOLE_EPOCH, sampling_is
from dpcalc.theorems.sampled.settings import EPOCHS_OF_BATCHES, EpochsOfBatches


@theorem(
    "sampled.shuffle_lower",
    title="Shuffled batches: a run that tells so much",
    needs=EPOCHS_OF_BATCHES,
    algorithms=("dp-sgd",),
    kind="lower",
    reference="chua2024",
    locator="the set where the largest sum exceeds a threshold; over epochs, the largest sums, composed; or all sums",
    formula="delta >= sup_c 1 - Phi((c-2)/z) Phi(c/z)^(t-1) - e^eps (1 - Phi((c-m)/z) Phi(c/z)^(t-1)), m = 1 "
    "(zero-out), 0 (replace-one); E epochs: P(A) - e^eps Q(A), A: E log-likelihood ratios of the largest sums, added, "
    "exceed a threshold; or all sums, added, do: delta_G(eps; (2-m) sqrt(E/t)/z)",
    conditions=(
        sampling_is(Sampling.SHUFFLE), ENDS_IN_SHUFFLED,
        requires(
            "batch_size divides records",
            lambda run: run.records is None or run.batch_size is None or run.records % run.batch_size == 0,
            lambda run: Unmet(
                f"is for batches of one size, and {run.batch_size} does not divide {run.records}",
                "use another --batch-size",
            ),
        ),
        WHOLE_EPOCH,
        requires(
            "every iterate may be released", lambda run: run.release != Releases.LAST,
            NotNeeded("speaks of runs of which every iterate is seen", "leave out --release last", ("release",)),
        ),
    ),
    assumes=("all other gradients are -C, the record's is C; every epoch has a fresh order, and whole ones count",),
    caution="It says what no guarantee for these runs can be below, and guarantees nothing itself.",
    slack="of an epoch only the largest sum is looked at, or the total, and of more than 4096 epochs so many",
    slow=True,
)  # fmt: skip
def shuffle_lower(run: EpochsOfBatches) -> Profile:
    """The batch with the record stands out twice: the record is in it, and the one it displaced is not.

    >>> run = EpochsOfBatches(sampling="shuffle", adjacency="null-record", records=1000, batch_size=1, steps=1000,
    ...                       noise_multiplier=0.5)
    >>> round(math.exp(shuffle_lower(run).profile(4.0)), 6)
    0.073798
    """
    moved = 1.0 if run.adjacency == Adjacency.NULL_RECORD else 0.0
    bins, noise, epochs = run.bins, run.noise_multiplier, run.steps // run.bins
    total = down((2.0 - moved) * math.sqrt(epochs / bins) / noise, 8.0)

    def profile(epsilon: float) -> float:
        best = max(_largest_sum(bins, noise, moved, epsilon), gaussian.log_delta_down(mu=total, epsilon=epsilon))
        return best if epochs == 1 else max(best, _largest_sums(bins, noise, moved, epochs, epsilon))

    return Profile(profile)


def _largest_sums(bins: int, noise: float, moved: float, epochs: int, epsilon: float) -> float:
    """Return ln of a lower bound on delta from the largest sum of every epoch; with less noise the run reveals no
    less."""
    from dpcalc.numerics import total_scores

    if noise > total_scores.WIDEST or epsilon > 1e6:
        return -math.inf
    apart, noise = 2.0 - moved, max(noise, total_scores.NARROWEST)
    enough = (total_scores.MOST_APART * noise / apart) ** 2
    epochs = min(epochs, total_scores.MOST_EPOCHS, math.ceil(enough))
    noise = max(noise, apart * math.sqrt(epochs) / total_scores.MOST_APART)
    law, step = total_scores.law_of_largest_sums(bins, noise, 2.0, moved, epochs)
    return total_scores.log_delta_of_largest_sums_down(law, step, epsilon)


def _largest_sum(bins: int, noise: float, moved: float, epsilon: float) -> float:
    """Return ln of the best lower bound on delta over thresholds, rounded down; -inf if it is below 1e-290."""

    def log_delta(c: float) -> float:
        # ln P(some sum exceeds c): of all but one, and of the one; 1 - A B = (1 - A) + A (1 - B).
        others = (bins - 1) * _log_cdf(c / noise)
        first = -math.expm1(others + _log_cdf((c - 2.0) / noise))
        second = -math.expm1(others + _log_cdf((c - moved) / noise))
        if first < 1e-280:
            return -math.inf
        log_second = math.log(second) if second > 1e-200 else _log_any(bins, c / noise, (c - moved) / noise)
        log_ratio = epsilon + log_second - math.log(first)
        error = 1e-9 * (1.0 + abs(epsilon))  # far above the rounding of the terms
        gain = -math.expm1(log_ratio + error) if log_ratio + error < 0.0 else 0.0
        return math.log(first) + math.log(gain) if gain > 0.0 else -math.inf

    spread = 2.0 + noise * (3.0 + math.sqrt(2.0 * math.log(bins + 1.0)) + math.sqrt(2.0 * min(epsilon, 1e3)))
    best, where = max((log_delta(c), c) for c in (spread * j / 256.0 for j in range(-64, 257)))
    for power in range(9, 24):
        step = spread * 2.0**-power
        best, where = max((log_delta(c), c) for c in (where - step, where, where + step))
    return best - 1e-9 if best > -650.0 else -math.inf


def _log_any(bins: int, others: float, own: float) -> float:
    """Return an upper bound on ln P(one of t normal variables is so large), of t - 1 and of one; for small ones."""
    tails = [_log_tail(own)] + ([math.log(bins - 1) + _log_tail(others)] if bins > 1 else [])
    return max(tails) + math.log(len(tails))


def _log_tail(x: float) -> float:
    """Return ln P(y > x) of a normal variable, or 0 for x < 0."""
    return -0.5 * x * x - LN_SQRT_2PI + math.log(mills(x)) if x >= 0.0 else 0.0


def _log_cdf(x: float) -> float:
    """Return ln Phi(x), to nearest, for x > -37."""
    if x > 0.0:
        return math.log1p(-0.5 * math.erfc(x * math.sqrt(0.5)))
    value = 0.5 * math.erfc(-x * math.sqrt(0.5))
    return math.log(value) if value > 0.0 else -745.0
