"""What no guarantee for DP-SGD with public iterates can be below: an attacker who adds up scores of all steps.

All gradients lie on one line. Those of the group are C, and C the other way, or 0, where they are replaced; in batches
of one size the others are -C, so that a member who is in is 2 C away from the one that it displaced.
"""

from __future__ import annotations

import math

from dpcalc.model.quantities import Adjacency, Releases, Sampling
from dpcalc.model.run import Run
from dpcalc.notions import gaussian
from dpcalc.notions.guarantee import Profile
from dpcalc.numerics import total_scores
from dpcalc.numerics.floats import down, up
from dpcalc.numerics.total_scores import Block, Steps
from dpcalc.theorems.lower.quadratic import NO_GUARANTEE
from dpcalc.theorems.record import Condition, NotNeeded, Obstacle, Unmet, lacking, requires, theorem
from dpcalc.theorems.sampled.sampled_steps import CONSTANT, ENDS_IN_SHUFFLED, LARGEST_GROUP, NOISE, WHOLE_EPOCH
from dpcalc.theorems.sampled.settings import EpochsOfBatches

_MOST_RATE, _MOST_DRAWN = 0.9, 30.0  # weights are good to few roundings up to these
_MOST_SPREAD, _LEAST_SPREAD = 1e4, 1e-2  # in whose range cells are fine, and a step tells something
_NEGLIGIBLE = 1e-290
_IN_EPOCHS = (Sampling.BALLS_IN_BINS, Sampling.SHUFFLE)


def _drawn_at_random(run: Run) -> Obstacle | None:
    if run.sampling == Sampling.FULL:
        return NotNeeded("speaks of batches that are drawn at random", "see sampled.full", ("sampling",))
    if run.sampling != Sampling.POISSON and (run.records is None or run.batch_size is None):
        return lacking(run, "records", "batch_size")
    if run.sampling == Sampling.SHUFFLE and (found := ENDS_IN_SHUFFLED.check(run)):
        return found
    return WHOLE_EPOCH.check(run) if run.sampling in _IN_EPOCHS else None


def _others_fill_a_batch(run: Run) -> bool:
    n, b, k = run.records, run.batch_size, run.group_size or 1
    no_others = run.sampling in (Sampling.POISSON, Sampling.BALLS_IN_BINS)  # their gradients are 0
    return k <= LARGEST_GROUP and (no_others or n is None or b is None or k <= n - b)


@theorem(
    "sampled.total_lower",
    title="Sampled steps: an attacker who adds up scores",
    needs=("sampling", "adjacency", "sample_rate", "steps", "noise_multiplier", "records?", "batch_size?",
           "group_size?", "uses?"),
    algorithms=("dp-sgd",),
    kind="lower",
    reference="dpcalc",
    locator="post-processing of all iterates to a sum of scores of steps, or to the total of their noisy sums",
    formula="P(S >= c) - e^eps Q(S >= c), S the sum over steps of ln(sum_j w_j N(a j, z^2)/sum_j w_j N(a' j, z^2)), "
    "w_j the chance of j members of the group in a batch; or, of E epochs of t steps, mu = k sqrt(E/t)/z, k members or "
    "uses, twice that for replacement",
    conditions=(
        Condition("batches are drawn at random, for shuffle and balls-in-bins in a whole epoch", _drawn_at_random),
        requires(
            f"group_size <= {LARGEST_GROUP}, beside which a batch of others is left", _others_fill_a_batch,
            Unmet("is for groups beside which a batch is left", "use a smaller --group-size", ("group_size",)),
        ),
        requires(
            f"uses <= {LARGEST_GROUP}, of a single record",
            lambda run: (run.uses or 1) <= (1 if (run.group_size or 1) > 1 else LARGEST_GROUP),
            Unmet(f"is for one record that is used up to {LARGEST_GROUP} times an epoch",
                  "leave out --group-size, or use a smaller --uses", ("uses",)),
        ),
        requires(
            "every iterate may be released", lambda run: run.release != Releases.LAST,
            NotNeeded("speaks of runs of which every iterate is seen", "leave out --release last", ("release",)),
        ),
    ),
    assumes=(
        "a lower bound: gradients on one line; of the group C, replaced by -C or 0, of the others 0, or -C in batches "
        "of one size", NOISE, CONSTANT,
    ),
    caution=NO_GUARANTEE,
    slack="scores are those of single steps, and rounded",
    slow=True,
    not_monotone_in=("records", "batch_size", "sample_rate", "steps", "epochs", "noise_multiplier", "group_size"),
)  # fmt: skip
def total_lower(run: EpochsOfBatches) -> Profile:
    """Every step tells a little of how many of the group were in its batch, and the attacker adds that up.

    >>> run = EpochsOfBatches(sampling="poisson", adjacency="remove", sample_rate=0.1, steps=1, noise_multiplier=1.0)
    >>> 0.0382 < math.exp(total_lower(run).profile(0.0)) <= 0.1 * math.erf(math.sqrt(0.125))  # 0.1 (2 Phi(1/2) - 1)
    True
    """
    attacks = [_attack(run, first, second) for first, second in _moves(run)]
    mu = _mu_of_totals(run) if run.sampling in _IN_EPOCHS else 0.0

    def profile(epsilon: float) -> float:
        found = [total_scores.log_delta_down(steps, epsilon) for steps in attacks if steps is not None]
        return max([*found, gaussian.log_delta_down(mu=mu, epsilon=epsilon) if mu else -math.inf])

    return Profile(profile)


def _mu_of_totals(run: EpochsOfBatches) -> float:
    """Return mu of the sum of all noisy sums: every use of a member moves it once an epoch."""
    apart = 2.0 if run.adjacency == Adjacency.REPLACE_ONE else 1.0
    return down(
        apart * run.group_size * run.uses * math.sqrt(run.steps // run.bins / run.bins) / run.noise_multiplier, 8.0
    )


def _moves(run: EpochsOfBatches) -> list[tuple[float, float]]:
    """Return by how much a member in a batch moves its sum with one data set and with the other, in every order."""
    far = 1.0 if run.sampling in (Sampling.POISSON, Sampling.BALLS_IN_BINS) else 2.0
    if run.adjacency == Adjacency.REPLACE_ONE:
        return [(1.0, -1.0) if far == 1.0 else (2.0, 0.0)]
    ends = (far, far - 1.0 if run.adjacency == Adjacency.NULL_RECORD else 0.0)
    return {Adjacency.REMOVE: [ends], Adjacency.ADD: [ends[::-1]]}.get(run.adjacency, [ends, ends[::-1]])


def _attack(run: EpochsOfBatches, first: float, second: float) -> Steps | None:
    """Return the steps as scores are added up of them; None where these tell nothing, or cannot be told apart."""
    spread = up(run.noise_multiplier)
    if not _LEAST_SPREAD <= spread <= _MOST_SPREAD:
        return None
    most = total_scores.MOST_STEPS
    if run.sampling not in _IN_EPOCHS:
        weights = _drawn(run)
        blocks = (Block(weights, min(run.steps, most)),)
        return Steps(blocks, None, 1, spread, first, second) if weights else None
    if run.bins > most:
        return None
    epochs = min(run.steps // run.bins, most // run.bins)
    return Steps(_shared_out(run), run.group_size * run.uses, epochs, spread, first, second)


def _drawn(run: EpochsOfBatches) -> tuple[float, ...]:
    """Return the chances of 0, 1, ... members of the group in a batch; none where they would be off by too much."""
    from fractions import Fraction

    k = run.group_size
    rate = Fraction(repr(run.sample_rate))
    if run.sampling == Sampling.POISSON:
        trials, odds, none = k, rate / (1 - rate) if rate < 1 else Fraction(0), float((1 - rate) ** k)
        good = float(rate) <= _MOST_RATE
    elif run.sampling == Sampling.WITH_REPLACEMENT:
        n, b = run.records, run.batch_size
        trials, odds, none = b, Fraction(k, n - k), math.exp(b * math.log1p(-k / n))
        good = k * b <= _MOST_DRAWN * n and k < _MOST_RATE * n
    else:
        return _without_replacement(k, run.batch_size, run.records)
    weights = [none]
    while good and len(weights) <= trials and weights[-1] > _NEGLIGIBLE:
        j = len(weights)
        weights.append(weights[-1] * float((trials - j + 1) * odds / j))
    return tuple(weights) if good else ()


def _without_replacement(k: int, b: int, n: int) -> tuple[float, ...]:
    """Return C(k, j) C(n-k, b-j)/C(n, b)."""
    weights = [math.prod((n - b - i) / (n - i) for i in range(k))]
    for j in range(min(k, b)):
        weights.append(weights[-1] * ((k - j) * (b - j) / ((j + 1) * (n - k - b + j + 1))))
    return tuple(weights)


def _shared_out(run: EpochsOfBatches) -> tuple[Block, ...]:
    """Return the batches of an epoch, and weights of so many members in one: (k/t)^j/j!, or C(b, j) (k/(n-k))^j.

    A record that is used k times is in k different steps, all choices equally likely: weights 1 - k/t and k/t.
    """
    k = run.group_size
    if run.uses > 1:
        return (Block(((run.bins - run.uses) / run.bins, run.uses / run.bins), run.bins),)
    if run.sampling == Sampling.BALLS_IN_BINS:
        return (Block(_relative([(k / run.bins) / (j + 1.0) for j in range(k)]), run.bins),)
    full, rest = divmod(run.records, run.batch_size)
    odds = k / max(1, run.records - k)
    return tuple(
        Block(_relative([max(0, size - j) / (j + 1.0) * odds for j in range(k)]), count)
        for size, count in ((run.batch_size, full), (rest, 1)) if size and count
    )  # fmt: skip


def _relative(quotients: list[float]) -> tuple[float, ...]:
    """Return weights of these quotients, whose sum is 1."""
    weights = [1.0]
    for quotient in quotients:
        weights.append(weights[-1] * quotient)
    whole = math.fsum(weights)
    return tuple(weight / whole for weight in weights)
