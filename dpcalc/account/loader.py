"""Rates, steps and divisors of loaders and samplers, and the effective noise of a step.

The functions of the loader compute the same doubles as Opacus 1.6. Multipliers are rounded down, and additions to delta
are rounded up.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

from dpcalc.errors import SpecError
from dpcalc.numerics.floats import down, up


def loader_length(records: int, batch_size: int, *, drop_last: bool) -> int:
    """Return the number of batches of one epoch of a loader.

    >>> loader_length(570, 200, drop_last=True), loader_length(570, 200, drop_last=False)
    (2, 3)
    """
    length = records // batch_size if drop_last else -(-records // batch_size)
    if length < 1:
        raise SpecError(f"a batch of {batch_size} is larger than the {records} records", "use a smaller batch")
    return length


def epoch_steps(length: int) -> int:
    """Return how many batches Opacus' sampler draws in an epoch of a loader of this length.

    >>> epoch_steps(92), epoch_steps(93)
    (92, 92)
    """
    return int(1.0 / sampler_rate(length))


def sampler_rate(length: int) -> float:
    """Return the sampling rate of Opacus' sampler."""
    return 1.0 / length


def history_rate(length: int) -> float:
    """Return the rate in Opacus' history, 1/(batches of an epoch); never below the rate of the sampler."""
    return 1.0 / max(1, epoch_steps(length))


def divisor(records: int, length: int) -> int:
    """Return the divisor of the noisy sum in Opacus.

    >>> divisor(570, 2), divisor(49, 49)
    (285, 0)
    """
    return int(records * history_rate(length))


def jointly(multipliers: Iterable[tuple[float, int]]) -> float:
    """Return the joint multiplier of Gaussian releases, given as (multiplier, count); rounded down.

    >>> round(jointly([(1.1, 2)]), 9)
    0.777817459
    """
    parts = [up(up(up(1.0 / z) ** 2) * times, 1.0) for z, times in multipliers]
    return down(1.0 / up(math.sqrt(up(math.fsum(parts))), 1.0), 2.0)


def any_of(rate: float, count: int) -> float:
    """Return the probability that any of k records is drawn, 1 - (1 - q)^k, rounded up.

    >>> round(any_of(0.5, 2), 9)
    0.75
    """
    return 1.0 if rate >= 1.0 else up(-math.expm1(up(count * math.log1p(-rate), 2.0) * (1.0 + 2.0**-50)), 2.0)


def with_count(noise_multiplier: float, count_noise_std: float, *, centred: bool) -> float:
    """Return the joint multiplier of a noisy sum and a noisy count of unclipped records, rounded down.

    A centred bit is +-1/2, a raw one 0 or 1 (Andrew et al. 2021, Theorem 1, for centred ones).

    Args:
        noise_multiplier: that of the noisy sum.
        count_noise_std: std of the noise on the count, in records.
        centred: whether bits are centred.
    """
    return jointly([(noise_multiplier, 1), (count_noise_std * (2.0 if centred else 1.0), 1)])


def opacus_adaptive_clipping(noise_multiplier: float, unclipped_num_std: float) -> float:
    """Return the multiplier of a step of Opacus' adaptive clipping if the batch size were constant; rounded down.

    Opacus uses the multiplier (z^-2 - (2 s)^-2)^(-1/2) for the gradients, which is right for centred bits. Its bits are
    raw: (z^-2 + 3/(4 s^2))^(-1/2).

    Args:
        noise_multiplier: z of the history.
        unclipped_num_std: s, std of the noise on the count; above z/2.

    Raises:
        SpecError: s is not above z/2.
    """
    if not 2.0 * unclipped_num_std > noise_multiplier:
        raise SpecError(
            f"unclipped_num_std is {unclipped_num_std!r}; it must be above half the noise multiplier", "check the unit"
        )
    return jointly([(noise_multiplier, 1), (down(unclipped_num_std * math.sqrt(4.0 / 3.0), 4.0), 1)])


def log_empty_batches(records: int, rate: float, draws: int, workers: int, group: int = 1) -> float:
    """Return ln of the probability that some worker draws an empty batch in some step, rounded up.

    Args:
        records: number of records of all workers, shared out evenly.
        rate: sampling rate, in (0, 1].
        draws: number of steps.
        workers: number of workers, each of which draws from its own share.
        group: number of records that may be missing from one worker's share.
    """
    others = records // workers - group
    if others < 1:
        return 0.0
    if rate >= 1.0:
        return -math.inf
    log_none = down(-math.log1p(-rate), 2.0) * others
    return min(0.0, up(math.log(draws * workers) - log_none, 4.0 + 4.0 * math.log1p(abs(log_none))))


def poisson_epsilon(noise_multiplier: float, rate: float, steps: int, log_delta: float) -> float:
    """Return epsilon of equal steps with Poisson sampling, for removal of a record.

    Args:
        noise_multiplier, rate, steps: z, q and T.
        log_delta: ln delta.
    """
    from dpcalc.notions.pld import epsilon, removed

    pair = removed(mu=up(1.0 / noise_multiplier), rate=rate)
    return epsilon([(pair, steps)], log_delta_target=log_delta).value


def shared_seed_epsilon(
    noise_multiplier: float, rate: float, steps: int, workers: int, log_delta: float, cells: int = 1 << 12
) -> float:
    """Return an approximate lower bound on the epsilon of workers that share a seed; it is no guarantee.

    The workers draw the same positions, so a record is drawn if and only if workers - 1 other records are, and the
    adversary may know these. One instance is (1 - q) N(0) + q N(W/z) against (1 - q) N(0) + q N((W - 1)/z); the
    adversary observes the cell of the outcome.

    Args:
        noise_multiplier, rate, steps: z, q and T.
        workers: W.
        log_delta: ln delta.
        cells: number of cells of the line.
    """
    from dpcalc.notions.pld import epsilon, from_curve
    from dpcalc.numerics.floats import np

    far = workers / noise_multiplier
    edges = np.concatenate(([-np.inf], np.linspace(-9.0, far + 9.0, cells - 1), [np.inf]))
    first, second = (
        (1.0 - rate) * _cell_masses(edges) + rate * _cell_masses(edges - place)
        for place in (far, (workers - 1) / noise_multiplier)
    )
    curves = functools.partial(_excess, first, second), functools.partial(_excess, second, first)
    return epsilon([(from_curve(*curves), steps)], log_delta_target=log_delta).value


def _cell_masses(edges: Any) -> Any:
    """Return the normal masses between edges, each computed from the smaller tail."""
    from dpcalc.numerics.floats import np
    from dpcalc.numerics.normal_arrays import log_upper_tail

    low, high = edges[:-1], edges[1:]
    right = low > 0.0
    return np.exp(log_upper_tail(np.where(right, low, -high))) - np.exp(log_upper_tail(np.where(right, high, -low)))


def _excess(first: Any, second: Any, epsilons: Any) -> Any:
    """Return ln of the sum of (p - e^epsilon q)_+ over the cells, for an array of epsilons."""
    from dpcalc.numerics.floats import np

    with np.errstate(all="ignore"):
        sums = [np.maximum(first - np.exp(min(e, 700.0)) * second, 0.0).sum() for e in np.ravel(epsilons)]
        return np.minimum(np.log(np.array(sums)), 0.0).reshape(np.shape(epsilons))
