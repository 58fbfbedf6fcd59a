"""Proven lower values of delta: laws on an interval with bounded errors, and affine runs in exact arithmetic.

Every function takes what is told of a run and the epsilons, and returns one lower value for each: what certain losses
that the description allows really have.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from tests.oracles import ball, gaussian
from tests.oracles.chains import Array, Case, Grid, constant, contraction_instance_log_delta, hockey_stick, spring, step
from tests.oracles.epochs import root_below
from tests.oracles.sampled import cut
from tests.truth.laws import RELEASED, Runs, extremes, orders, stream_scale, stream_values

Told = dict[str, Any]
Lower = Callable[[str, Told, Sequence[float]], list[float]]
_POINTS = 16  # of a panel


def closed(truth: Callable[[Told, float], float]) -> Lower:
    """A closed form in 40 digits, or a sum that is itself a lower value, less the rounding to a double."""
    return lambda _, told, epsilons: [truth(told, e) * (1.0 - 1e-9) for e in epsilons]


# --- runs on an interval --------------------------------------------------------------------------------------------


def family(told: Told) -> Iterator[Case]:
    """A record that pulls as hard as it can either way (or not at all), among others that pull, rest or hold."""
    base = extremes("", {"smoothness": None, "noise_std": told.get("laplace_scale"), **told}, 0.0)
    rho, width, level = told.get("strong_convexity") or 0.0, told["diameter"], told["lipschitz"]
    rest = spring(rho, 0.0, base.low, base.high) if rho else constant(0.0, base.low, base.high)
    hold = spring(min(told.get("smoothness") or 0.0, 2.0 * level / width), 0.0, base.low, base.high)
    x_prime = rest if told.get("adjacency") == "null-record" else base.x_prime
    noise = "laplace" if told.get("laplace_scale") else "gaussian"
    for other, start in itertools.product((base.x_prime, rest, hold), (0.0, base.low)):
        case = replace(base, noise=noise, others=(other,) * len(base.others), x_prime=x_prime, start=start)
        _satisfied(case, rho, told.get("smoothness") or math.inf)
        yield case


def _satisfied(case: Case, rho: float, smoothness: float) -> None:
    """The losses are what is told of them, exactly: linear gradients of binary fractions on an interval."""
    for g in (*case.others, case.x, case.x_prime):
        (low, high), (first, last) = ([Fraction(x) for x in pair] for pair in (g.knots, g.values))
        assert (low, high) == (case.low, case.high)
        assert max(abs(first), abs(last)) <= Fraction(case.lipschitz)
        assert Fraction(rho) * (high - low) <= last - first <= (high - low) * Fraction(min(smoothness, 1e9))
        assert Fraction(case.step_size) * (last - first) <= high - low  # so that no map has a slope below 0


def quadrature_error(case: Case, steps: int) -> float:
    """What quadrature changes in the probability of an event, at most.

    The chance of an event as a function of the state before is entire on every panel, where all maps are affine with
    slopes at most 1: |f(x + iy)| <= exp(y^2/(2 s^2)), s = eta sigma, and the density adds exp(y^2/(2 s^2))/(s
    sqrt(2 pi)). On the ellipse with parameter r about a panel of half-width h, |y| <= h (r - 1/r)/2; 16 points err by
    at most h (64/15) M r^-30/(1 - r^-2) (Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3).
    """
    panels = (len(case.nodes().points) - 3) // _POINTS
    s = case.step_size * case.scale
    half = 0.5 * s

    def of_panel(r: float) -> float:
        y = half * (r - 1.0 / r) / (2.0 * s)
        top = math.exp(y * y) / (s * math.sqrt(2.0 * math.pi))
        return half * 64.0 / 15.0 * top * r ** (2 - 2 * _POINTS) / (1.0 - r**-2)

    return steps * 16 * panels * min(map(of_panel, (2.0, 4.0, 8.0, 12.0)))  # 16: panels may be cut finer


def rounding_error(case: Case, steps: int, count: int) -> float:
    """What rounding to cells changes in the probability of an event, at most, if all maps are affine with slopes <= 1.

    With b the scale of the noise on the state, the chance f of an event after one more step has |f'| <= 1/(2b) and
    |f''| <= 1/b^2 (the Laplace density k has k - b^2 k'' = a point mass), and k changes by at most a factor e^(h/b) in
    a cell of width h. Both terms of Taylor's formula about its middle then come to at most (h/b)^2 e^(h/b)/24.
    """
    share = case.diameter / count / (case.step_size * case.scale)
    return (steps - 1) * share * share * math.exp(share) / 12.0


def interval(published: bool = True, count: int = 240) -> Lower:
    """The largest over the family; with ``published`` the order and the stop are released too."""

    def lower(algorithm: str, told: Told, epsilons: Sequence[float]) -> list[float]:
        found = [0.0] * len(epsilons)
        for case in family(told):
            values = _floors(replace(case, epsilons=tuple(epsilons)), algorithm, told, published, count)
            found = [max(pair) for pair in zip(found, values, strict=True)]
        return found

    return lower


def _floors(case: Case, algorithm: str, told: Told, published: bool, count: int) -> list[float]:
    runs = Runs(case, algorithm, told)
    steps = told.get("steps") or case.records * (told.get("epochs") or 1)
    if case.noise == "gaussian":
        return _less(case, [value for value, _ in runs.truths(published)], quadrature_error(case, steps))
    return _less(case, runs.values(case.cells(count), published), rounding_error(case, steps, count))


def _less(case: Case, values: Sequence[float], error: float) -> list[float]:
    """What remains where the probability of an event may be off by so much."""
    return [v - (1.0 + math.exp(e)) * error for v, e in zip(values, case.epsilons, strict=True)]


def stream(_: str, told: Told, epsilons: Sequence[float], count: int = 240) -> list[float]:
    """A growing stream on an interval."""
    found = [0.0] * len(epsilons)
    scale = min(stream_scale(told, t) for t in range(1, told["records"] + 1))
    for case in family({**told, "noise_std": scale}):
        case = replace(case, epsilons=tuple(epsilons), noise=told["noise"])
        gaussian_noise = told["noise"] == "gaussian"
        error = (quadrature_error if gaussian_noise else partial(rounding_error, count=count))(case, told["records"])
        values = stream_values(case, told, case.nodes(400) if gaussian_noise else case.cells(count))
        found = [max(pair) for pair in zip(found, _less(case, values, error), strict=True)]
    return found


def scheduled(algorithm: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """A pass on an interval whose steps have sizes, noise and chances to be the last of their own."""
    columns = told["schedule"]
    step_sizes, noise = columns["step_size"], columns["noise_std"]
    stops = columns.get("probability", (0,) * (len(step_sizes) - 1) + (1,))
    size, least = max(step_sizes), min(a * b for a, b in zip(step_sizes, noise, strict=True))
    found = [0.0] * len(epsilons)
    for case in family({**told, "records": len(step_sizes), "step_size": size, "noise_std": least / size}):
        case = replace(case, epsilons=tuple(epsilons), index=told.get("index") or len(step_sizes))
        grid = case.nodes(400)

        def law(record: Any, case: Case = case, grid: Grid = grid) -> Array:
            everyone, parts = (*case.others, record), []
            made = {
                (t, id(g)): step(grid, replace(case, step_size=a).psi(g, grid.points), a * b, "gaussian")
                for t, (a, b) in enumerate(zip(step_sizes, noise, strict=True))
                for g in everyone
            }
            for order in orders(algorithm, case.records, case.index):
                state = grid.start
                for t, j in enumerate(order):
                    parts.append(stops[t] * (state @ made[t, id(everyone[j])].last))
                    state = state @ made[t, id(everyone[j])].inner
            return np.concatenate(parts) / len(orders(algorithm, case.records, case.index))

        p, q = law(case.x), law(case.x_prime)
        values = [hockey_stick(p, q, e, 1e-9) for e in epsilons]
        floors = _less(case, values, quadrature_error(case, case.records))
        found = [max(pair) for pair in zip(found, floors, strict=True)]
    return found


# --- affine runs, exactly -------------------------------------------------------------------------------------------


def affine_square(slopes: Sequence[Fraction], used: Sequence[int]) -> Fraction:
    """mu^2 of w -> slopes[t] w + N(0, 1), moved by used[t] (0 or 1) in one of two runs from one start: both outputs are
    Gaussian, of one variance.
    """
    gap, variance = Fraction(0), Fraction(0)
    for q, s in zip(slopes, used, strict=True):
        gap = q * gap + s
        variance = q * q * variance + 1
    return gap * gap / variance


@cache
def _delta(epsilon: float, square: Fraction) -> float:
    """delta of mu-GDP, mu^2 given, rounded down."""
    found = gaussian.delta(Fraction(epsilon), root_below(square)) if square else ball(0)
    return float(found) * (1.0 - 1e-15) if found else 0.0


def affine(algorithm: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """Losses with a common curvature, and another of the record's own, that differ by a linear one: the largest over
    curvatures of the mean over all orders and stops.
    """
    means = []
    for squares in _over_curvatures(algorithm, told):
        total = sum(squares.values())
        means.append([math.fsum(m * _delta(e, s) for s, m in squares.items()) / total for e in epsilons])
    return [max(column) * (1.0 - 1e-14) for column in zip(*means, strict=True)]


def label(algorithm: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """As `affine`, of a linear model: another label of the record moves its gradient by as much everywhere."""
    return affine(algorithm, {**told, "lipschitz": told["clip"]}, epsilons)


def affine_renyi(algorithm: str, told: Told, order: float) -> float:
    """The Renyi divergence of the same runs, rounded down: ln of the mean of e^(a (a - 1) mu^2/2), over a - 1."""
    a = Fraction(order)
    found = []
    for squares in _over_curvatures(algorithm, told):
        parts = (m * ball(a * (a - 1) * s / 2).exp() for s, m in squares.items())
        found.append(float((sum(parts, ball(0)) / sum(squares.values())).log() / ball(a - 1)))
    return max(found) * (1.0 - 1e-15)


def _over_curvatures(algorithm: str, told: Told) -> Iterator[Counter[Fraction]]:
    rho, beta = Fraction(told.get("strong_convexity") or 0), Fraction(told.get("smoothness") or 0)
    curvatures = sorted({rho, (rho + beta) / 2, max(rho, beta)})
    slopes = [1 - Fraction(told["step_size"]) * k for k in curvatures]
    for own, others in itertools.product(slopes, repeat=2):
        yield _squares(algorithm, told, own, others)


def _squares(algorithm: str, told: Told, own: Fraction, others: Fraction) -> Counter[Fraction]:
    """mu^2 for every outcome of chance, with how many of equal chance give it."""
    name, n = algorithm.removesuffix(RELEASED), told["records"]
    unit = Fraction(told["lipschitz"]) / Fraction(told["noise_std"]) * (2 - (told.get("adjacency") == "null-record"))
    size, last, epochs = told.get("batch_size") or 1, told.get("last_batch") or "own", told.get("epochs") or 1

    def step(batch: tuple[int, ...], divisor: int) -> tuple[Fraction, Fraction]:
        """The slope of its map, and how far the record moves it."""
        pulls = [1 - (own if j == n - 1 else others) for j in batch]
        return 1 - sum(pulls, Fraction(0)) / divisor, Fraction(n - 1 in batch, divisor)

    @cache
    def square(steps: tuple[tuple[Fraction, Fraction], ...]) -> Fraction:
        return affine_square([q for q, _ in steps], [u for _, u in steps]) * unit * unit

    if name == "noisy-gd":
        full = (step(tuple(range(n)), n),)
        return Counter([square(full) * told["steps"] if algorithm != name else square(full * told["steps"])])
    found: Counter[Fraction] = Counter()
    batches = [cut(order, size, last) for order in orders(name, n, told.get("index") or n)]
    passes = Counter(tuple(step(*batch) for batch in one) for one in batches)
    fresh = name == "shuffled-epochs"
    for chosen in itertools.product(passes, repeat=epochs) if fresh else ((one,) * epochs for one in passes):
        many = math.prod(passes[one] for one in chosen) if fresh else passes[chosen[0]]
        if algorithm != name:
            found[sum((square(one) for one in chosen), Fraction(0))] += many
        elif name in ("stop", "shuffled-stop"):
            for stop in range(1, len(chosen[0]) + 1):
                found[square(chosen[0][:stop])] += many
        else:
            found[square(tuple(itertools.chain(*chosen)))] += many
    return found


def secret_position(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """A secret order of single records that all contract alike: one event of a mixture of normal laws."""
    slopes = (1.0, 1.0 - 0.5 * told["step_size"] * told["smoothness"], 1.0 - told["step_size"] * told["smoothness"])
    mu = 2.0 * told["lipschitz"] / told["noise_std"]
    return [
        math.exp(max(contraction_instance_log_delta(told["records"], mu, c, e) for c in slopes)) * (1.0 - 1e-9)
        for e in epsilons
    ]


def drawn(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """Fresh batches of linear losses: the record adds N ~ Bin(T, b/n) pulls to a sum with T steps of noise.

    Against the run in which its place is taken by one like all the others, by half-lines {w > z}.
    """
    steps, rate = told["steps"], Fraction(told["batch_size"], told["records"])
    pull = 2 * Fraction(told["lipschitz"]) / told["batch_size"] / Fraction(told["noise_std"])
    weights = [math.comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(steps + 1)]
    root = 1 / root_below(Fraction(1, steps))  # a deviation no smaller than sqrt(T)

    def tail(mean: Fraction, z: Fraction) -> Any:
        return gaussian.upper_tail((z - mean) / root)

    def event(z: Fraction, epsilon: float, up: bool) -> float:
        p = sum((ball(w) * tail(pull * k, z) for k, w in enumerate(weights)), ball(0))
        q = tail(Fraction(0), z)
        first, second = (p, q) if up else (1 - q, 1 - p)
        return float((first - ball(Fraction(epsilon)).exp() * second).lower())

    places = [Fraction(k, 16) * pull * steps for k in range(-16, 33)]
    return [max(event(z, e, up) for z in places for up in (True, False)) * (1.0 - 1e-15) for e in epsilons]


def steps_of_chain(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """Every map contracts by the factor told or is constant, and some move by a shift: the largest of all choices."""
    used = [t == told.get("index") for t in range(1, told.get("steps", 0) + 1)]
    columns = told.get("schedule") or {
        "shift": [told["shift"] * u for u in used],
        **{name: [told[name]] * len(used) for name in ("contraction", "step_size", "noise_std")},
    }
    choices = itertools.product(*((0.0, c) for c in columns["contraction"]))
    best = max(_scaled(columns, factors) for factors in choices)
    return [_delta(e, best) for e in epsilons]


def scaled_start(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """Every map is w -> c w. Models start at two points, at minimisers of quadratics, or after passes of quadratics.

    Of a run all noise is part of the law: that of the training has the same scale.
    """
    count = told.get("clean_steps", 0)
    factor = told.get("contraction", 1.0 - told.get("step_size", 0.0) * told.get("strong_convexity", 0.0))
    columns = told.get("schedule") or {
        "contraction": [factor] * count, **{name: [told[name]] * count for name in ("step_size", "noise_std")},
    }  # fmt: skip
    gap, spread = _start(told, Fraction(factor) if told.get("schedule") is None else Fraction(1), count)
    gap = min(gap, Fraction(told.get("diameter") or gap))
    for c, eta, sigma in zip(columns["contraction"], columns["step_size"], columns["noise_std"], strict=True):
        gap *= Fraction(c)
        spread = Fraction(c) ** 2 * spread + (Fraction(eta) * Fraction(sigma)) ** 2
    return [_delta(e, gap * gap / spread) for e in epsilons]


def _start(told: Told, factor: Fraction, count: int) -> tuple[Fraction, Fraction]:
    """How far apart the models are before the steps, and the variance that their training left."""
    moved = 2 * Fraction(told.get("lipschitz") or 0)
    if told.get("start") == "minimiser":
        return moved / (Fraction(told["strong_convexity"]) * told["records"]), Fraction(0)
    if told.get("start") != "run":
        gathered = sum((factor ** (count * r) for r in range(told.get("requests", 1))), Fraction(0))
        return Fraction(told["start_distance"]) * gathered, Fraction(0)
    gap = spread = Fraction(0)
    eta, period = Fraction(told["step_size"]), told["records"] // told["batch_size"]
    for step_number in range(1, period * told["epochs"] + 1):
        gap = factor * gap + (eta * moved / told["batch_size"] if step_number % period == 0 else 0)
        spread = factor**2 * spread + (eta * Fraction(told["noise_std"])) ** 2
    return gap, spread


def _scaled(columns: Told, factors: Sequence[float]) -> Fraction:
    """mu^2 of maps w -> factor w + shift (or not), each step with its own noise."""
    gap = spread = Fraction(0)
    for s, c, eta, sigma in zip(columns["shift"], factors, columns["step_size"], columns["noise_std"], strict=True):
        gap = Fraction(c) * gap + Fraction(s)
        spread = Fraction(c) ** 2 * spread + (Fraction(eta) * Fraction(sigma)) ** 2
    return gap * gap / spread


def linear_schedule(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """Linear losses, each step of its own size and noise."""
    columns = dict(told["schedule"])
    columns["shift"] = [0.0] * len(columns["step_size"])
    columns["shift"][told["index"] - 1] = 2.0 * told["lipschitz"] * columns["step_size"][told["index"] - 1]
    return [_delta(e, _scaled(columns, [1.0] * len(columns["shift"]))) for e in epsilons]


def quadratics(_: str, told: Told, epsilons: Sequence[float]) -> list[float]:
    """One pass in three dimensions over quadratic losses whose Hessians do not commute, with eigenvalues between the
    constants told: the output is normal, mu^2 = g^T C^-1 g.
    """
    rho, beta = (Fraction(told.get(name) or 0) for name in ("strong_convexity", "smoothness"))
    eta, n = Fraction(told["step_size"]), told["records"]
    unit = 2 * Fraction(told["lipschitz"]) / Fraction(told["noise_std"])
    best = Fraction(0)
    for turn, direction in itertools.product((0, 1, 2), ((1, 0, 0), (0, Fraction(3, 5), Fraction(4, 5)))):
        gap, spread = _matrix([[0]] * 3), _matrix([[0] * 3] * 3)
        for t in range(1, n + 1):
            move = _identity() - _hessian((rho, (rho + beta) / 2, beta), t + turn) * _rational(eta)
            gap, spread = move * gap, move * spread * move.transpose() + _identity()
            if t == told["index"]:
                gap = gap + _matrix([[x] for x in direction])
        [[square]] = (gap.transpose() * spread.solve(gap)).tolist()
        best = max(best, Fraction(int(square.p), int(square.q)))
    return [_delta(e, best * unit * unit) for e in epsilons]


def _hessian(eigenvalues: Sequence[Fraction], turns: int) -> Any:
    """These eigenvalues, turned by rational rotations in two planes."""
    c, s = Fraction(3, 5), Fraction(4, 5)
    turn = _matrix([[c, -s, 0], [s, c, 0], [0, 0, 1]]) * _matrix([[1, 0, 0], [0, c, -s], [0, s, c]])
    whole = _identity()
    for _ in range(turns):
        whole = turn * whole
    diagonal = _matrix([[x if i == j else 0 for j in range(3)] for i, x in enumerate(eigenvalues)])
    return whole * diagonal * whole.transpose()


def _identity() -> Any:
    return _matrix([[int(i == j) for j in range(3)] for i in range(3)])


def _rational(x: Any) -> Any:
    x = Fraction(x)
    return fmpq(x.numerator, x.denominator)


def _matrix(rows: Sequence[Sequence[Any]]) -> Any:
    return fmpq_mat(len(rows), len(rows[0]), [_rational(x) for row in rows for x in row])
