"""The laws of small runs, by brute force: every order, stop or batch, on an interval or in closed form."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np

from tests.oracles import correlated, sampled
from tests.oracles import sampling as random_batches
from tests.oracles.chains import (
    Array,
    Case,
    Gradient,
    Grid,
    Step,
    hockey_stick,
    laplace_linear_delta,
    last_law,
    step,
)

RELEASED = "-released"


# --- runs on an interval ----------------------------------------------------------------------------------------------


def orders(algorithm: str, n: int, index: int) -> list[tuple[int, ...]]:
    """The equally likely orders of a pass; the record that differs is number n - 1 and comes at ``index`` in a fixed
    one.
    """
    fixed = (*range(index - 1), n - 1, *range(index - 1, n - 1))
    if algorithm.startswith("rotation"):
        return [fixed[s:] + fixed[:s] for s in range(n)]
    if algorithm == "skip":
        return [fixed[s:] for s in range(n // 2 + 1)]
    if algorithm.startswith("shuffle"):
        return list(itertools.permutations(range(n)))
    return [fixed]


class Runs:
    """The laws of what a run releases: a function of the record that differs, the last of ``everyone``."""

    def __init__(self, case: Case, algorithm: str, told: dict[str, Any]) -> None:
        self.case, self.algorithm, self.told = case, algorithm, told
        self.size, self.last = told.get("batch_size") or 1, told.get("last_batch") or "own"

    def orders(self) -> list[tuple[int, ...]]:
        return orders(self.algorithm, self.case.records, self.case.index)

    def laws(self, grid: Grid, record: Any) -> Array:
        """One row for each equally likely order (and stop), of which the secret run releases the mean."""
        name, passes = self.algorithm.removesuffix(RELEASED), self.told.get("epochs", 1)
        released = self.algorithm.endswith(RELEASED)
        if name in ("noisy-sgd", "noisy-gd"):
            size = self.case.records if name == "noisy-gd" else self.size
            return sampled.batched(self.case, grid, record, size, self.told["steps"], released)[None, :]
        if released:
            same = name != "shuffled-epochs"
            return sampled.passes(self.case, grid, record, self.orders(), self.size, self.last, same)
        maker = sampled.Maker(self.case, grid, record)
        made = [maker.order(order, self.size, self.last) for order in self.orders()]
        if name == "shuffled-epochs":
            runs = [list(itertools.chain(*many)) for many in itertools.product(made, repeat=passes)]
        elif name in ("stop", "shuffled-stop"):
            runs = [one[:stop] for one in made for stop in range(1, len(one) + 1)]
        else:
            runs = [one * passes for one in made]
        return np.array([through(grid.start, run) for run in runs])

    def values(self, grid: Grid, published: bool) -> list[float]:
        """delta at every epsilon, on a grid."""
        p, q = (self.laws(grid, record) for record in (self.case.x, self.case.x_prime))
        joint = (p / len(p), q / len(q)) if published else (p.mean(axis=0), q.mean(axis=0))
        return [hockey_stick(*joint, e, 1e-9) for e in self.case.epsilons]

    def truths(self, published: bool) -> list[tuple[float, float]]:
        """(delta, error) at every epsilon."""
        case, released = self.case, self.algorithm.endswith(RELEASED)
        if case.noise == "gaussian":
            grid = sampled.fine_nodes(case, 2) if released else case.nodes(400)
            return [(value, 1e-8 * value) for value in self.values(grid, published)]
        coarse, fine = (self.values(case.cells(n), published) for n in ((40, 80) if released else (150, 300)))
        return [(b, abs(b - a) + 1e-9 * b) for a, b in zip(coarse, fine, strict=True)]


def through(law: Array, steps: Sequence[Step]) -> Array:
    for one in steps[:-1]:
        law = law @ one.inner
    return law @ steps[-1].last


def described(case: Case, algorithm: str, **more: Any) -> dict[str, Any]:
    told = case.told(**more)
    if algorithm.removesuffix(RELEASED) in ("pnsgd", "skip", "stop", "cyclic"):
        told["index"] = case.index
    if algorithm == "skip":
        del told["loss_class"]
    return told


def extremes(algorithm: str, told: dict[str, Any], epsilon: float) -> Case:
    """The run whose record pulls as hard as it can either way, and the others as the one it replaces."""
    width, rho = told["diameter"], told.get("strong_convexity") or 0.0
    low, high, level = -width / 2, width / 2, told["lipschitz"]
    tilt = rho * width / 2
    pulls = [Gradient("linear", (low, high), (s * (level - tilt) - tilt, s * (level - tilt) + tilt)) for s in (-1, 1)]
    return Case(
        records=told["records"], epsilons=(epsilon,), lipschitz=level, smoothness=told["smoothness"],
        strong_convexity=rho, step_size=told["step_size"], scale=told["noise_std"], diameter=width, noise="gaussian",
        loss_class="convex-smooth", low=low, high=high, start=0.0, index=told.get("index") or told["records"],
        others=(pulls[1],) * (told["records"] - 1), x=pulls[0], x_prime=pulls[1],
    )  # fmt: skip


# --- clipped gradients of batches drawn at random ---------------------------------------------------------------------


def clipped_steps(told: dict[str, Any], epsilon: float) -> float:
    """The largest delta over a few gradients of the records, by brute force over all batches; never above the truth.

    Of the last iterate alone the sum of all steps is seen: the losses are linear.
    """
    records, size = told.get("records", 2), told.get("batch_size", 1)
    per_epoch = 1 if told["sampling"] == "full" else -(-records // size)
    epochs = told["epochs"]
    cap = told.get("max_batch_size", records)
    make = {
        "poisson": lambda n: random_batches.truncated(n, size / records, cap, epochs * per_epoch),
        "fixed": lambda n: random_batches.fixed(n, size, epochs * per_epoch),
        "with-replacement": lambda n: random_batches.with_replacement(n, size, epochs * per_epoch),
        "balls-in-bins": lambda n: random_batches.balls_in_bins(n, per_epoch, epochs),
        "shuffle": lambda n: random_batches.shuffle(n, size, epochs),
        "full": lambda n: [(1.0, (tuple(range(n)),) * epochs)],
    }[told["sampling"]]
    last = told.get("release") == "last"
    divergence = random_batches.hockey_stick_of_sums if last else random_batches.hockey_stick
    best, group = 0.0, told.get("group_size", 1)
    for others in ([0.0] * (records - group), [-1.0] * (records - group)):
        longer = [*others, *[1.0] * group]
        other = {"replace-one": [-1.0] * group, "null-record": [0.0] * group}.get(told["adjacency"], [])
        runs = [(g, list(make(len(g)))) for g in (longer, [*others, *other])]
        pairs = [tuple(runs)] if told["adjacency"] == "remove" else [tuple(runs), tuple(reversed(runs))]
        pairs = pairs[1:] if told["adjacency"] == "add" else pairs
        found = [divergence(p, q, told["noise_multiplier"], epsilon) for p, q in pairs]
        best = max(best, *found)
    return max(0.0, best - 1e-12)


# --- correlated noise -------------------------------------------------------------------------------------------------


def correlated_steps(told: dict[str, Any], epsilon: float) -> float:
    """delta of linear losses in a fixed order: one Gaussian pair in all steps, for the worst phase and signs."""
    rows = told.get("schedule")
    c = np.array([*rows.values()]) if rows else correlated.dense(told["mechanism"], told["steps"], told["bands"])
    apart = c.shape[1] // told["epochs"]
    signs = list(itertools.product((1.0, -1.0), repeat=told["epochs"]))
    moved = [float(np.linalg.norm(c[:, phase::apart] @ chosen)) for phase in range(apart) for chosen in signs]
    mu = max(moved) / told["noise_multiplier"]
    return max(0.0, hockey_stick_of(mu, epsilon) - 1e-12)


def hockey_stick_of(mu: float, epsilon: float) -> float:
    """delta of the Gaussian pair of this mu."""
    return float(mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu))


def banded_draws(told: dict[str, Any], epsilon: float) -> float:
    """delta of linear losses with two bands in four steps: two rounds of one group, drawn from at twice the rate."""
    draw = {
        "poisson": lambda n: random_batches.poisson(n, told["bands"] * told["sample_rate"], 2),
        "balls-in-bins": lambda n: random_batches.balls_in_bins(n, 2, 1),
    }[told["sampling"]]
    law = {n: list(draw(n)) for n in (0, 1)}
    p, q = ([1.0], law[1]), ([], law[0])
    deltas = [random_batches.hockey_stick(*pair, told["noise_multiplier"], epsilon) for pair in ((p, q), (q, p))]
    return max(0.0, max(deltas) - 1e-12)


# --- a stream ---------------------------------------------------------------------------------------------------------


def stream_scale(told: dict[str, Any], t: int) -> float:
    """The schedule's noise of record t."""
    mp = mpmath
    factor = max(
        abs(1 - told["step_size"] * (told["strong_convexity"] or 0.0)), abs(1 - told["step_size"] * told["smoothness"])
    )
    half, x = factor * told["diameter"] / (2 * told["step_size"]), mp.mpf(t) ** told["decay_exponent"] / told["c1"]
    if told["noise"] == "laplace":
        found = half / mp.log(x + told["c2"])
    else:
        found = half / mp.sqrt(mp.lambertw(x * x / (2 * mp.pi) + told["c2"]).real)
    return float(found) * (told["schedule_factor"] or 1.0)


def stream_values(case: Case, told: dict[str, Any], grid: Grid) -> list[float]:
    """delta of the record at ``index`` at every epsilon, on a grid."""
    scales = [stream_scale(told, t) for t in range(1, told["records"] + 1)]

    def steps(gradient: Any) -> list[Step]:
        mapped = case.psi(gradient, grid.points)
        return [step(grid, mapped, case.step_size * scale, told["noise"]) for scale in scales]

    others = [steps(g) for g in case.others]
    i = told["index"]
    placed = [one[t if t < i - 1 else t + 1] for t, one in enumerate(others)]
    p, q = (
        last_law(grid.start, [*placed[: i - 1], steps(record)[i - 1], *placed[i - 1 :]])
        for record in (case.x, case.x_prime)
    )
    return [hockey_stick(p, q, e, 1e-9) for e in case.epsilons]


def stream_truths(case: Case, told: dict[str, Any]) -> list[tuple[float, float]]:
    """(delta, error) of the record at ``index``."""
    if told["noise"] == "gaussian":
        least = min(stream_scale(told, t) for t in range(1, told["records"] + 1))
        return [(v, 1e-8 * v) for v in stream_values(case, told, replace(case, scale=least).nodes(400))]
    coarse, fine = (stream_values(case, told, case.cells(count)) for count in (150, 300))
    return [(b, abs(b - a) + 1e-9 * b) for a, b in zip(coarse, fine, strict=True)]


# --- closed forms -----------------------------------------------------------------------------------------------------


def normal(mu: Any, epsilon: float) -> float:
    """delta between N(mu, 1) and N(0, 1)."""
    with mpmath.workdps(40):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        if m == 0:
            return 0.0
        return float(mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m))


def optimal(told: dict[str, Any], epsilon: float) -> float:
    """Optimal composition (Kairouz, Oh and Viswanath): the sum over all counts of one of two outcomes."""
    with mpmath.workdps(60):
        mp, k, e0 = mpmath, told["epochs"], mpmath.mpf(told["epoch_epsilon"])
        delta0, e = mp.mpf(told.get("epoch_delta") or 0), mp.mpf(epsilon)
        ratio = [
            mp.binomial(k, j) * max(0, mp.exp((k - j) * e0) - mp.exp(e + j * e0)) / (1 + mp.exp(e0)) ** k
            for j in range(k + 1)
        ]
        return float(1 - (1 - delta0) ** k * (1 - mp.fsum(ratio)))


def sampled_steps(told: dict[str, Any], epsilon: float) -> float:
    """Linear losses, every iterate released: the steps are independent, each moved by the record or not.

    All the other records are x', which makes it a mixture against a normal law, or halfway between x and x'.
    """
    size, rate = told["batch_size"], told["batch_size"] / told["records"]
    mu = 2.0 * told["lipschitz"] / (size * told["noise_std"])
    x, w = np.polynomial.legendre.leggauss(12)
    edges = np.arange(-9.0, 9.0 + mu, 0.25)
    nodes = (edges[:-1, None] + 0.125 * (1 + x)).ravel()
    log_weights = np.log(np.tile(0.125 * w, len(edges) - 1)) - nodes**2 / 2 - math.log(2 * math.pi) / 2

    def mixed(shift: float) -> Array:
        """ln of the density of a step over that of N(0, 1)."""
        still = math.log1p(-rate) if rate < 1.0 else -math.inf
        found: Array = np.logaddexp(still, math.log(rate) + shift * nodes - shift * shift / 2)
        return found

    pairs = ((mixed(mu), 0.0 * nodes), (0.0 * nodes, mixed(mu)), (mixed(mu / 2), mixed(-mu / 2)))
    return max(together(p - q, np.exp(log_weights + p), told["steps"], epsilon) for p, q in pairs)


def average_and_noise(told: dict[str, Any], epsilon: float) -> float:
    """Linear losses on a domain that is never left, the others flat: every draw of the record moves all later iterates.

    The output is a mixture of normal laws over which steps drew it, against its mirror image.
    """
    steps, sigma, chance = told["steps"], told["noise_std"], 1.0 / told["records"]
    weights, means = np.ones(1), np.zeros(1)
    for later in range(steps - 1, 0, -1):
        move = told["step_size"] * told["lipschitz"] * later / steps
        weights = np.concatenate(((1.0 - chance) * weights, chance * weights))
        means = np.concatenate((means, means + move))
    reach = float(means.max()) + 10.0 * sigma
    x, w = np.polynomial.legendre.leggauss(8)
    edges = np.linspace(-reach, reach, 4001)
    half = 0.5 * (edges[1] - edges[0])
    nodes = (edges[:-1, None] + half * (1 + x)).ravel()
    law = np.exp(-((nodes[:, None] - means) ** 2) / (2 * sigma**2)) @ weights / (sigma * math.sqrt(2 * math.pi))
    beyond = np.maximum(law - math.exp(epsilon) * law[::-1], 0.0)
    return float(np.sum(beyond * half * np.tile(w, len(edges) - 1))) - 1e-9


def together(loss: Array, weights: Array, count: int, epsilon: float, spacing: float = 4e-4) -> float:
    """delta of so many independent losses, each rounded down to a lattice."""
    loss, weights = loss[weights > 1e-15], weights[weights > 1e-15]
    cells = np.floor(loss / spacing).astype(int)
    first, length = int(cells.min()), count * int(np.ptp(cells)) + 1
    law = np.bincount(cells - first, weights, minlength=length)
    total = np.fft.irfft(np.fft.rfft(law, length + 1) ** count, length + 1)
    reached = (np.arange(length + 1) + count * first) * spacing
    return float(np.sum(total * -np.expm1(np.minimum(epsilon - reached, 0.0)))) - 1e-12


def ratio(told: dict[str, Any]) -> float:
    return 2.0 * told["lipschitz"] / ((told.get("batch_size") or 1) * told["noise_std"])


def first_of_linear(told: dict[str, Any], epsilon: float) -> float:
    """A record of the first batch of linear losses: its uses and all the noise add up."""
    steps = told["records"] // (told.get("batch_size") or 1)
    return normal(ratio(told) * math.sqrt(told.get("epochs") or 1) / math.sqrt(steps), epsilon)


def after_a_reset(told: dict[str, Any], epsilon: float) -> float:
    """The step before the record's forgets all, and its own: only the noise from there on hides it."""
    n, i, b = told["records"], told.get("index") or told["records"], told.get("batch_size") or 1
    j, total = -(-i // b), -(-n // b)
    held = b if j < total else n - b * (total - 1)
    return normal(2.0 * told["lipschitz"] / (held * told["noise_std"] * math.sqrt(total - j + 1)), epsilon)


def full_batches(told: dict[str, Any], epsilon: float) -> float:
    """The springs of all records alike: every step contracts by c and moves the mean by the record's share."""
    steps, c = told.get("steps") or told["epochs"], 1.0 - told["step_size"] * (told.get("strong_convexity") or 0.0)
    moved, spread = math.fsum(c**t for t in range(steps)), math.fsum(c ** (2 * t) for t in range(steps))
    return normal(2.0 * told["lipschitz"] / (told["records"] * told["noise_std"]) * moved / math.sqrt(spread), epsilon)


def every_full_batch(told: dict[str, Any], epsilon: float) -> float:
    return full_batches({**told, "strong_convexity": 0.0}, epsilon)


def one_message(told: dict[str, Any], epsilon: float) -> float:
    return normal(2.0 * told["lipschitz"] / told["noise_std"], epsilon)


def of_laplace(told: dict[str, Any], epsilon: float) -> float:
    return laplace_linear_delta(told["records"], 2.0 * told["lipschitz"] / told["laplace_scale"], epsilon)


SMOOTH = {"lipschitz": 0.75, "smoothness": 1.0, "step_size": 0.5, "noise_std": 1.5}
SPRINGS = {**SMOOTH, "strong_convexity": 0.3}
SAMPLED = {"lipschitz": 0.75, "noise_std": 1.5}
WIDE = {"step_size": 0.5, "radius": 100.0, "holder_exponent": 1.0, "holder_constant": 1.0, "batch_size": None}
Truth = Callable[[dict[str, Any], float], float]
