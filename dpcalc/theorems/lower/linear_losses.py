"""Lower bounds on every guarantee: the exact privacy of each algorithm over linear losses.

A linear loss is convex, smooth with every constant, and Lipschitz with the norm of its gradient. It belongs to every
class of losses here except strongly convex ones. On the whole space the last iterate is the sum of all gradients and
all noise. `random_linear_losses` has the algorithms that use a record a random number of times.

Notation: r = Delta/(b sigma), n records, l steps a pass, E passes. Every value rounds down.

Curves of a Gaussian and their averages over many cases, in logarithms and rounded down.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from itertools import pairwise

from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Gdp
from dpcalc.numerics.floats import UNIT, Array, np, quotient_down
from dpcalc.theorems.conditions import GAUSSIAN, INDEX_IN_RANGE, ONE_RELEASE, UNBOUNDED
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE
from dpcalc.theorems.record import Unmet, requires, theorem
from dpcalc.theorems.setting import GAUSSIAN_STEP, PLACE, Setting

_FARTHEST = 1e90  # epsilon/mu of a term that is evaluated
SMALLEST, LARGEST = 1e-290, 1e90
"""A mu below the first gives no lower value; a mu above the second is lowered to the second."""


def gaussian_log_delta(mu: float, epsilon: float) -> float:
    """Return ln delta of a Gaussian mechanism, rounded down; -inf if mu is too small to evaluate."""
    return gaussian.log_delta_down(mu=mu, epsilon=epsilon)


def log_average(log_sum: float, log_count: float) -> float:
    """Return ln(sum/count), rounded down and at most 0."""
    value = log_sum - log_count
    return min(0.0, value - UNIT * (8.0 * abs(value) + 8.0 * log_count + 16.0)) if value > -math.inf else value


def log_sum(term: Callable[[int, int], float], first: int, last: int) -> float:
    """Return a lower bound on ln of the sum of the terms first <= k <= last.

    Far from the start, a block of terms is evaluated at once. The sum ends where the terms fall below e^-60 of the
    largest.

    Args:
        term: (low, high) -> a lower bound on ln of every term with low <= k <= high.
        first, last: 1 <= first <= last.
    """
    logs: list[float] = []
    peak, k = -math.inf, first
    while k <= last:
        end = k if k < first + 128 else min(last, max(k, int(first + (k - first) * 1.02)))
        value = term(k, end) + math.log(end - k + 1)
        logs.append(value)
        if value < peak - 60.0 and value < logs[-2]:
            break
        peak = max(peak, value)
        k = end + 1
    if peak == -math.inf:
        return peak
    value = peak + math.log(math.fsum(math.exp(x - peak) for x in logs))
    return value - UNIT * (8.0 * abs(value) + 4.0 * math.log(last + 1) + 64.0)


def log_sum_of_gaussians(mu: Callable[[Array], Array], epsilon: float, first: int, last: int) -> float:
    """Return a lower bound on ln of the sum of delta_G(eps; mu_k) over first <= k <= last, all blocks at once.

    Args:
        mu: positions, as floats -> lower bounds on mu_k, which do not increase in k.
        epsilon: >= 0.
        first, last: 1 <= first <= last.
    """
    from dpcalc.numerics.normal_arrays import log_hockey_stick_down

    ends, log_counts = _blocks(first, last)
    with np.errstate(under="ignore"):
        mus = np.minimum(mu(ends), LARGEST)
    usable = mus > max(1e-90, epsilon / _FARTHEST)
    if not usable.any():
        return -math.inf
    logs = log_hockey_stick_down(np.full(int(usable.sum()), epsilon), mus[usable]) + log_counts[usable]
    peak = float(logs.max())
    value = peak + math.log(float(np.exp(logs - peak).sum()))
    return value - UNIT * (8.0 * abs(value) + 4.0 * math.log(last + 1) + 8.0 * len(logs) + 64.0)


@functools.lru_cache(maxsize=64)
def _blocks(first: int, last: int) -> tuple[Array, Array]:
    """Return the last position of each block of `log_sum`, and ln of how many it has."""
    ends, k = [], first
    while k <= last:
        ends.append(k if k < first + 128 else min(last, max(k, int(first + (k - first) * 1.02))))
        k = ends[-1] + 1
    counts = [end - before for before, end in pairwise([first - 1, *ends])]
    return np.array(ends, float), np.log(np.array(counts, float))


LINEAR = "a lower bound: linear losses on the whole space, of the given Lipschitz constant"


FLAT = requires(
    "strong_convexity <= 0",
    lambda run: (run.strong_convexity or 0.0) <= 0.0,
    lambda run: Unmet(
        f"linear losses have no curvature, and strong convexity is {run.strong_convexity:g}",
        "leave out --strong-convexity",
        ("strong_convexity",),
    ),
)
WHOLE_SPACE = (FLAT, UNBOUNDED)


# --- a fixed number of steps ------------------------------------------------------------------------------------------


@theorem(
    "linear.pass",
    title="One pass over linear losses, exactly",
    needs=(*PLACE, *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("pnsgd",),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = Delta/(b sigma sqrt(l))",
    conditions=(INDEX_IN_RANGE, *WHOLE_SPACE),
    assumes=(LINEAR, GAUSSIAN, ONE_RELEASE),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def single_pass(run: Setting) -> Gdp:
    """With linear losses the last iterate is the sum of all steps: the record moves it by eta Delta/b, and the noise of
    all l steps, both before and after the record's own, has variance l eta^2 sigma^2.

    >>> round(single_pass(Setting(records=100, index=100, batch_size=1, sensitivity=2.0, noise_std=1.0)).mu, 12)
    0.2
    """
    return Gdp(quotient_down((run.sensitivity,), (run.own_batch, run.noise_std, math.sqrt(run.period)), 8.0))


@theorem(
    "linear.passes",
    title="Passes in one order over linear losses, exactly",
    needs=(*PLACE, "epochs", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("cyclic", "cyclic-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(b sigma)) sqrt(E/l)",
    conditions=(INDEX_IN_RANGE, *WHOLE_SPACE),
    assumes=(LINEAR, GAUSSIAN, "the last iterate is released; every pass moves it alike and independently"),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def passes(run: Setting) -> Gdp:
    """With linear losses E passes move the last iterate by E eta Delta/b, and the noise of all E l steps hides it.
    Released iterates between the passes reveal nothing more: the increments of the passes are independent with the same
    law, so their sum is sufficient.

    It is `multi_epoch.quadratic` at m = 0, for any smoothness.

    >>> run = Setting(records=100, index=100, batch_size=1, epochs=25, sensitivity=2.0, noise_std=1.0)
    >>> round(passes(run).mu, 12)
    1.0
    """
    moved = (run.sensitivity, math.sqrt(run.epochs))
    return Gdp(quotient_down(moved, (run.own_batch, run.noise_std, math.sqrt(run.period)), 12.0))


@theorem(
    "linear.descent",
    title="Full-batch steps over linear losses, exactly",
    needs=("records", "steps", *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("noisy-gd", "noisy-gd-released"),
    reference="dpcalc",
    locator="the sum of all gradients and all noise",
    formula="mu = (Delta/(n sigma)) sqrt(T)",
    conditions=WHOLE_SPACE,
    assumes=(LINEAR, GAUSSIAN, "the last iterate is released, or every one"),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def descent(run: Setting) -> Gdp:
    """With linear losses T steps move the last iterate by T eta Delta/n, and the noise of all of them hides it. This
    equals the composition bound, which is therefore exact.

    >>> round(descent(Setting(records=10, steps=100, sensitivity=1.0, noise_std=1.0)).mu, 12)
    1.0
    """
    return Gdp(quotient_down((run.sensitivity, math.sqrt(run.steps)), (run.records, run.noise_std), 8.0))


@theorem(
    "linear.local",
    title="The record's own noisy message, exactly",
    needs=(*PLACE, *GAUSSIAN_STEP),
    kind="lower",
    algorithms=("local",),
    reference="dpcalc",
    locator="a Gaussian mechanism",
    formula="mu = Delta/(b sigma)",
    conditions=(INDEX_IN_RANGE, FLAT),
    assumes=("a lower bound: linear losses of the given Lipschitz constant", GAUSSIAN),
    caution=NO_GUARANTEE,
    weakly_convex=True,
)
def local(run: Setting) -> Gdp:
    """The message is a gradient plus noise, and linear losses have gradients that differ by Delta. It is a Gaussian
    mechanism of exactly this mu, on any domain.

    >>> round(local(Setting(records=5, index=5, batch_size=2, sensitivity=2.0, noise_std=4.0)).mu, 12)
    0.5
    """
    return Gdp(quotient_down((run.sensitivity,), (run.own_batch, run.noise_std), 4.0))
