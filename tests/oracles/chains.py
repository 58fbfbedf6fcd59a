"""Exact laws of small one-dimensional runs of projected noisy gradient descent: what no bound may be below.

The run is w_t = Pi_[low, high](w_{t-1} - step_size (g_t(w_{t-1}) + Z_t)); Z_t is normal with standard deviation
``scale`` or Laplace with that scale, so that the noise on w has the scale step_size * scale. Two kinds of grid:

``cells``: the state is rounded, after every step, to a point of its cell inside [low, high]. The rounded run is a
finite chain that satisfies every hypothesis on the displacement sup |psi(w) - psi(w')| exactly (its points lie in
[low, high]), so a bound that needs nothing else holds for it without discretisation error. Rounding is not
1-Lipschitz: for bounds that need Lipschitz maps the chain is an approximation of second order.

``nodes``: the run itself, Gaussian noise only. The law has two atoms (the ends) and an analytic density, carried by
Gauss-Legendre panels that end at the kinks of the gradients; only the released state is put into cells, which is
post-processing and therefore still a lower bound.

Nothing here imports the package under test.
"""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, gammaincc, log_ndtr, logsumexp, ndtr

from tests.oracles import log_uniform

Array = NDArray[np.float64]
NOISES = ("gaussian", "laplace")
LOSS_CLASSES = ("convex-smooth", "convex", "smooth", "lipschitz")
_SMOOTH_CONVEX = ("linear", "quadratic", "huber", "wall", "monotone")
KINDS = {
    "convex-smooth": _SMOOTH_CONVEX,
    "convex": (*_SMOOTH_CONVEX, "step", "stairs"),
    "smooth": (*_SMOOTH_CONVEX, "concave", "wave"),
    "lipschitz": (*_SMOOTH_CONVEX, "step", "stairs", "concave", "wave", "apart", "arbitrary", "sign"),
}
_ORDER = 16  # Gauss-Legendre points of a panel


# --- grids and steps


@dataclass(frozen=True)
class Grid:
    """The states (the two ends, inner points, the start) and the edges of the cells of what is released.

    ``weights`` are the quadrature weights of the inner points, or None where the state is rounded to the points.
    """

    low: float
    high: float
    points: Array
    edges: Array
    weights: Array | None

    @property
    def start(self) -> Array:
        """The law of w_0: the last state, to which no step returns."""
        law = np.zeros(len(self.points))
        law[-1] = 1.0
        return law


class Step(NamedTuple):
    """A step of one record: state to state, and state to what is released (atom, cells, atom)."""

    inner: Array
    last: Array


Record = Step | Sequence[Step]  # the same at every step, or one for each


def cells(low: float, high: float, count: int = 200, start: float | None = None) -> Grid:
    """``count`` equal cells, rounded to their midpoints; both ends are states of their own."""
    edges = np.linspace(low, high, count + 1)
    middle = (edges[:-1] + edges[1:]) / 2
    return Grid(low, high, np.concatenate(([low], middle, [high, low if start is None else start])), edges, None)


def nodes(
    low: float, high: float, width: float, kinks: Sequence[float] = (), start: float | None = None, count: int = 1000
) -> Grid:
    """Panels no wider than ``width`` that end at the kinks; ``count`` cells of what is released."""
    ends = sorted({low, high, *(k for k in kinks if low < k < high)})
    breaks = [low]
    for left, right in itertools.pairwise(ends):
        pieces = max(1, math.ceil((right - left) / width))
        breaks.extend(left + (right - left) * j / pieces for j in range(1, pieces))
        breaks.append(right)
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    b = np.array(breaks)
    middle, half = (b[1:] + b[:-1])[:, None] / 2, (b[1:] - b[:-1])[:, None] / 2
    points = np.concatenate(([low], (middle + half * x).ravel(), [high, low if start is None else start]))
    return Grid(low, high, points, np.linspace(low, high, count + 1), (half * w).ravel())


def step(grid: Grid, mapped: Array, scale: float, noise: str) -> Step:
    """The step that takes point j to the projection of mapped[j] + noise of this scale (step_size * scale)."""
    mapped = np.asarray(mapped, dtype=float)
    last = _masses(grid.edges, mapped, scale, noise)
    if grid.weights is None:
        return Step(np.hstack((last, np.zeros((len(mapped), 1)))), last)
    if noise != "gaussian":
        raise ValueError("the density of a Laplace chain is not analytic: use cells")
    inner = np.zeros((len(mapped), len(grid.points)))
    density = inner[:, 1:-2]  # computed in place: of thousands of points, every copy takes longer than the arithmetic
    np.subtract(grid.points[None, 1:-2], mapped[:, None], out=density)
    density /= scale
    np.square(density, out=density)
    density /= -2
    np.exp(density, out=density)
    density *= grid.weights / (scale * math.sqrt(2 * math.pi))
    inner[:, 0], inner[:, -2] = last[:, 0], last[:, -1]
    return Step(inner, last)


def _masses(edges: Array, mapped: Array, scale: float, noise: str) -> Array:
    """Mass left of the first edge, of every cell, and right of the last: each to nearly full relative precision."""
    z = (edges[None, :] - mapped[:, None]) / scale
    low, high = z[:, :-1], z[:, 1:]
    if noise == "gaussian":
        return np.hstack((ndtr(z[:, :1]), _normal_cells(low, high), ndtr(-z[:, -1:])))
    if noise == "laplace":
        near = np.maximum(np.maximum(low, -high), 0)
        across = -(np.expm1(np.minimum(low, 0)) + np.expm1(-np.maximum(high, 0))) / 2
        aside = -np.exp(-near) * np.expm1(low - high) / 2
        inner = np.where((low < 0) & (high > 0), across, aside)
        return np.hstack((_laplace_left(z[:, :1]), inner, _laplace_left(-z[:, -1:])))
    raise ValueError(noise)


def _laplace_left(z: Array) -> Array:
    tail = np.exp(-np.abs(z)) / 2
    return np.where(z < 0, tail, 1 - tail)


def _normal_cells(low: Array, high: Array) -> Array:
    """Phi(high) - Phi(low): by quadrature where the cells are so narrow that the difference would cancel."""
    half = (high - low) / 2
    if half.max(initial=0) > 0.05:
        right = low > 0
        return ndtr(np.where(right, -low, high)) - ndtr(np.where(right, -high, low))
    middle = (low + high) / 2
    total = np.zeros_like(middle)
    for x, w in zip(*np.polynomial.legendre.leggauss(6), strict=True):
        y = middle + half * x
        total += w * np.exp(-y * y / 2)
    return total * half / math.sqrt(2 * math.pi)


# --- laws


def _at(record: Record, t: int) -> Step:
    return record if isinstance(record, Step) else record[t]


def last_law(start: Array, steps: Sequence[Record]) -> Array:
    """The law of what is released after the last of the steps."""
    return _releases(start, steps)[-1]


def _releases(start: Array, steps: Sequence[Record]) -> list[Array]:
    """What would be released after each step."""
    law, out = start, []
    for t, record in enumerate(steps):
        out.append(law @ _at(record, t).last)
        law = law @ _at(record, t).inner
    return out


def hockey_stick(p: Array, q: Array, epsilon: float, slack: float = 1e-11) -> float:
    """The larger of E(p || q) and E(q || p) at e^epsilon, rounded down by the relative error of the laws."""
    gamma = math.exp(epsilon)
    found = max(float(np.sum(np.maximum(a * (1 - slack) - gamma * b * (1 + slack), 0))) for a, b in ((p, q), (q, p)))
    return found * (1 - slack)


# --- losses


@dataclass(frozen=True)
class Gradient:
    """clip(piecewise linear + piecewise constant, -bound, bound), as a function of arrays."""

    kind: str
    knots: tuple[float, ...]
    values: tuple[float, ...]
    bound: float = math.inf
    jumps: tuple[float, ...] = ()
    steps: tuple[float, ...] = (0.0,)
    clips: tuple[float, ...] = ()  # where the clipping begins, if inside

    def __call__(self, w: Any) -> Array:
        w = np.asarray(w, dtype=float)
        stairs = np.asarray(self.steps)[np.searchsorted(np.asarray(self.jumps), w, side="right")]
        return np.clip(np.interp(w, self.knots, self.values) + stairs, -self.bound, self.bound)

    @property
    def kinks(self) -> tuple[float, ...]:
        """Where it may fail to be smooth."""
        return (*self.knots, *self.jumps, *self.clips)


def constant(value: float, low: float, high: float) -> Gradient:
    """The gradient of a linear loss."""
    return Gradient("linear", (low, high), (value, value), abs(value))


def spring(curvature: float, centre: float, low: float, high: float) -> Gradient:
    """The gradient of curvature (w - centre)^2 / 2."""
    return Gradient("quadratic", (low, high), (curvature * (low - centre), curvature * (high - centre)))


def mean(gradients_: Sequence[Gradient], divisor: float | None = None) -> Callable[[Any], Array]:
    """The mean gradient of a batch (or its sum over another divisor)."""
    by = len(gradients_) if divisor is None else divisor
    return lambda w: np.sum([g(w) for g in gradients_], axis=0) / by


def gradients(
    r: random.Random,
    lipschitz: float,
    smoothness: float | None,
    strong_convexity: float,
    kind: str,
    low: float,
    high: float,
    step_size: float = 1.0,
) -> Gradient:
    """A random gradient of this kind on [low, high] with |g| <= lipschitz and, except for the kinds that jump, slopes
    in [strong_convexity, smoothness] if the kind is convex and in [-smoothness, smoothness] if not.

    Needs |strong_convexity| * (high - low) <= 2 lipschitz; it may be negative. ``step_size`` matters to
    the kind "sign" only, which sends every point towards one of two.
    """
    width, middle = high - low, (low + high) / 2
    room = max(lipschitz - abs(strong_convexity) * width / 2, 0.0)  # what the quadratic part leaves
    steep = 8 * room / width if smoothness is None else max(smoothness - strong_convexity, 0.0)

    def tilted(pairs: Sequence[tuple[float, float]]) -> Gradient:
        """The piecewise linear function plus the quadratic part."""
        knots = tuple(w for w, _ in pairs)
        values = tuple(v + strong_convexity * (w - middle) for w, v in pairs)
        return Gradient(kind, knots, values, lipschitz)

    def ramp(slope: float, at: float, bottom: float, top: float) -> Gradient:
        """``bottom`` up to ``at``, then rising to ``top``."""
        if slope * width <= 1e-9 * (top - bottom):
            return tilted([(low, bottom), (high, bottom)])
        points = sorted({low, high, *(k for k in (at, at + (top - bottom) / slope) if low < k < high)})
        return tilted([(w, min(max(bottom + slope * (w - at), bottom), top)) for w in points])

    def stairs(jumps: Sequence[float], steps: Sequence[float]) -> Gradient:
        return Gradient(kind, (low, high), (0.0, 0.0), lipschitz, tuple(jumps), tuple(steps))

    inside = low + width * r.choice((0.25, 0.5, 0.75, r.random()))
    slope = steep * r.choice((1.0, 1.0, r.random()))
    if kind == "linear":
        value = room * r.choice((1.0, -1.0, 1.0, -1.0, r.uniform(-1, 1)))
        return tilted([(low, value), (high, value)])
    if kind == "quadratic":
        rise = min(slope * width, 2 * room)
        first = r.choice((-room, room - rise, -rise / 2, r.uniform(-room, room - rise)))
        return tilted([(low, first), (high, first + rise)])
    if kind == "huber":
        top = room * r.choice((1.0, r.random()))
        return ramp(slope, inside - top / max(slope, 1e-300), -top, top)
    if kind == "wall":
        bottom, top = sorted((room * r.choice((-1.0, 0.0, r.uniform(-1, 1))), room))
        if r.random() < 0.5:
            return ramp(slope, inside, bottom, top)
        return ramp(slope, inside - (top - bottom) / max(slope, 1e-300), -top, -bottom)
    if kind in ("monotone", "wave"):
        points = [low, *sorted(r.uniform(low, high) for _ in range(r.randint(1, 4))), high]
        value = r.uniform(-room, room)
        pairs = [(low, value)]
        for left, right in itertools.pairwise(points):
            change = (right - left) * steep * r.choice((0.0, 1.0, r.random()))
            change *= r.choice((-1, 1)) if kind == "wave" else 1
            value = min(max(value + change, -room), room)
            pairs.append((right, value))
        return tilted(pairs)
    if strong_convexity:
        raise ValueError(f"{kind} is not strongly convex")
    if kind == "concave":
        reach = room / max(slope, 1e-300)
        points = sorted({low, high, *(k for k in (inside - reach, inside + reach) if low < k < high)})
        return tilted([(w, -min(max(slope * (w - inside), -room), room)) for w in points])
    if kind == "step":
        return stairs([inside], [-room, room])
    if kind == "apart":
        return stairs([inside], [room, -room])
    if kind in ("stairs", "arbitrary"):
        jumps = sorted(r.uniform(low, high) for _ in range(r.randint(1, 6)))
        steps = [r.choice((-room, room, r.uniform(-room, room))) for _ in range(len(jumps) + 1)]
        return stairs(jumps, sorted(steps) if kind == "stairs" else steps)
    if kind == "sign":
        reach = width * r.choice((0.5, r.random()))
        far = r.choice((-1, 1)) * reach
        targets = (inside - far, inside + far)
        return Gradient(
            kind,
            (low, high),
            (low / step_size, high / step_size),
            lipschitz,
            (inside,),
            tuple(-t / step_size for t in targets),
            tuple(t + s * step_size * lipschitz for t in targets for s in (-1, 1)),
        )
    raise ValueError(kind)


# --- runs


@dataclass(frozen=True)
class Case:
    """A run with n records in which x, at position ``index``, may be replaced by x'."""

    records: int
    epsilons: tuple[float, ...]
    lipschitz: float
    smoothness: float | None
    strong_convexity: float
    step_size: float
    scale: float
    diameter: float
    noise: str
    loss_class: str
    low: float
    high: float
    start: float
    index: int
    others: tuple[Gradient, ...]
    x: Gradient
    x_prime: Gradient

    def told(self, **more: Any) -> dict[str, Any]:
        """What is said of the run on the public path."""
        return {
            "records": self.records,
            "lipschitz": self.lipschitz,
            "loss_class": self.loss_class,
            "smoothness": self.smoothness,
            "strong_convexity": self.strong_convexity or None,
            "step_size": self.step_size,
            "diameter": self.diameter,
            "noise_std" if self.noise == "gaussian" else "laplace_scale": self.scale,
            **more,
        }

    def psi(self, gradient: Callable[[Any], Array], w: Any) -> Array:
        """The map of a step before its noise."""
        return np.asarray(w, dtype=float) - self.step_size * gradient(w)

    def kinks(self) -> list[float]:
        """Of all the gradients."""
        return [k for g in (*self.others, self.x, self.x_prime) for k in g.kinks]

    def cells(self, count: int = 200) -> Grid:
        """For the rounded chain."""
        return cells(self.low, self.high, count, self.start)

    def nodes(self, count: int = 1000) -> Grid:
        """For the run itself, Gaussian noise."""
        steepest = 1 + self.step_size * max(
            (abs(b - a) / (v - u) for g in (*self.others, self.x, self.x_prime)
             for (u, a), (v, b) in itertools.pairwise(zip(g.knots, g.values, strict=True)) if v > u),
            default=0.0,
        )  # fmt: skip
        width = self.step_size * self.scale * min(1.0, 4 / steepest)
        return nodes(self.low, self.high, width, self.kinks(), self.start, count)


def random_case(
    r: random.Random, noise: str | None = None, loss_class: str | None = None, records: int | None = None
) -> Case:
    """A run in which the bounds say something, with losses as bad as their class allows."""
    noise = noise or r.choice(NOISES)
    loss_class = loss_class or r.choice(LOSS_CLASSES)
    n = records or r.choice((1, 2, 2, 3, 3, 4, 5, 6))
    scale, diameter = log_uniform(r, 0.1, 10), log_uniform(r, 0.1, 10)
    lipschitz = scale * log_uniform(r, 0.1, 3)
    step_size = diameter / (scale * log_uniform(r, 0.2, 6))
    smoothness: float | None = None
    strong_convexity = 0.0
    if loss_class == "convex-smooth":
        smoothness = r.choice((1.0, 2.0, r.uniform(0, 1), r.uniform(0, 2), r.uniform(1, 2))) / step_size
        while Fraction(smoothness) * Fraction(step_size) > 2:
            step_size = math.nextafter(step_size, 0)
        if r.random() < 0.6:
            wanted = smoothness * r.choice((1.0, r.random(), r.random() ** 3))
            strong_convexity = min(wanted, 2 * lipschitz / diameter * r.uniform(0.1, 0.95))
    elif loss_class == "smooth":
        smoothness = r.uniform(0, 3) / step_size
    kinds = KINDS[loss_class]
    if loss_class in ("smooth", "lipschitz") and r.random() < 0.5:  # weakly convex
        most = lipschitz / diameter if smoothness is None else min(smoothness, 2 * lipschitz / diameter)
        strong_convexity, kinds = -most * r.choice((0.95, r.random(), r.random() ** 3)), KINDS["convex-smooth"]
    low = r.choice((0.0, -diameter / 2, -diameter))
    high = low + diameter

    def draw(kind: str) -> Gradient:
        return gradients(r, lipschitz, smoothness, strong_convexity, kind, low, high, step_size)

    pool = [draw(r.choice(kinds)) for _ in range(n - 1)]
    if n > 1 and r.random() < 0.25:
        pool = [pool[0]] * (n - 1)
    x, x_prime = draw(r.choice(kinds)), draw(r.choice(kinds))
    if r.random() < 0.6:  # as far apart as can be
        room = lipschitz - abs(strong_convexity) * diameter / 2
        tilt = strong_convexity * diameter / 2
        x, x_prime = (Gradient("linear", (low, high), (s * room - tilt, s * room + tilt), lipschitz) for s in (1, -1))
    if pool and r.random() < 0.2:
        x_prime = r.choice(pool)
    return Case(
        records=n,
        epsilons=(0.0, log_uniform(r, 1e-3, 0.1), log_uniform(r, 0.1, 1), log_uniform(r, 1, 4)),
        lipschitz=lipschitz,
        smoothness=smoothness,
        strong_convexity=strong_convexity,
        step_size=step_size,
        scale=scale,
        diameter=diameter,
        noise=noise,
        loss_class=loss_class,
        low=low,
        high=high,
        start=r.choice((low, high, r.uniform(low, high))),
        index=r.randint(1, n),
        others=tuple(pool),
        x=x,
        x_prime=x_prime,
    )


# --- closed forms


def contraction_instance_log_delta(n: int, mu_1: float, c: float, epsilon: float, digits: int = 40) -> float:
    """ln of the larger delta between (1/n) sum_k N(m_k, 1) and N(0, 1), m_k = mu_1 c^(k-1)/sqrt(sum_{j<n} c^(2j)).

    The law of the last iterate of n equal contractions by c (0 <= c <= 1) towards centres that differ in one record
    at a secret position. By mpmath for n <= 400, else in doubles (to about 1e-10).
    """
    if n > 400:
        return _instance_in_doubles(n, mu_1, c, epsilon)
    with mpmath.workdps(digits + 25):
        mp = mpmath
        c_, e = mp.mpf(c), mp.mpf(epsilon)
        root = mp.sqrt(mp.fsum(c_ ** (2 * j) for j in range(n)))
        m = [mp.mpf(mu_1) * c_**k / root for k in range(n)]  # mpmath: 0^0 = 1
        best = mp.mpf(0)
        for sign in (1, -1):
            z = _instance_threshold(m, n, sign * e)
            if z is None or abs(z) > 1e5:  # delta = 0, or below e^-(10^9)
                continue
            if sign == 1:
                value = mp.fsum(mp.ncdf(k - z) for k in m) / n - mp.exp(e) * mp.ncdf(-z)
            else:
                value = mp.ncdf(z) - mp.exp(e) * mp.fsum(mp.ncdf(z - k) for k in m) / n
            best = max(best, value)
        return float(mp.log(best)) if best > 0 else -math.inf


def _instance_threshold(m: list[Any], n: int, level: Any) -> Any:
    """Where ln (1/n) sum_k exp(m_k z - m_k^2/2) = level: Newton from the right, on a convex increasing function."""
    mp = mpmath
    asleep = mp.mpf(sum(k == 0 for k in m)) / n
    if mp.exp(level) <= asleep:
        return None
    z = mp.mpf(0)
    while _instance_ratio(m, n, z)[0] < level:
        z = 2 * z + 1
    for _ in range(400):
        value, slope = _instance_ratio(m, n, z)
        move = (value - level) / slope
        z -= move
        if abs(move) < mp.mpf(10) ** (-mp.mp.dps + 12) * (1 + abs(z)):
            return z
    raise ArithmeticError("no threshold")


def _instance_ratio(m: list[Any], n: int, z: Any) -> tuple[Any, Any]:
    terms = [mpmath.exp(k * z - k * k / 2) for k in m]
    total = mpmath.fsum(terms)
    return mpmath.log(total / n), mpmath.fsum(k * t for k, t in zip(m, terms, strict=True)) / total


def _instance_in_doubles(n: int, mu_1: float, c: float, epsilon: float) -> float:
    k = np.arange(n)
    powers = np.power(float(c), k)
    m = mu_1 * powers / math.sqrt(float(np.sum(powers**2)))
    found = [-math.inf]
    for sign in (1, -1):
        level = sign * epsilon
        if level <= math.log1p(-np.count_nonzero(m) / n) if np.count_nonzero(m) < n else False:
            continue

        def ratio(z: float) -> float:
            return float(logsumexp(m * z - m * m / 2)) - math.log(n)

        low, high = -1.0, 1.0
        while ratio(high) < level:
            high *= 2
        while ratio(low) > level:
            low *= 2
        for _ in range(200):
            z = (low + high) / 2
            low, high = (z, high) if ratio(z) < level else (low, z)
        z = (low + high) / 2
        if abs(z) > 1e5:
            continue
        weights = m * z - m * m / 2 - math.log(n)  # sum to e^level
        gaps = _log_mills_gap(z - m, m) if sign == 1 else _log_mills_gap(np.full(n, -z), m)
        log_density = -z * z / 2 - math.log(2 * math.pi) / 2
        found.append(log_density + float(logsumexp(weights + gaps)) + (0.0 if sign == 1 else epsilon))
    return max(found)


def _log_mills_gap(x: Array, m: Array) -> Array:
    """ln(M(x) - M(x + m)), M = Q/phi: by the integral of -M' = 1 - y M(y) where m is small."""
    y, w = np.polynomial.legendre.leggauss(12)
    small = m <= 0.5
    out = np.full(len(x), -math.inf)
    inner = x[small, None] + m[small, None] * (1 + y) / 2
    slope = 1 - inner * math.sqrt(math.pi / 2) * erfcx(inner / math.sqrt(2))
    with np.errstate(divide="ignore"):
        out[small] = np.log(m[small]) + np.log((slope * w / 2).sum(axis=1))
    a, b = x[~small], x[~small] + m[~small]
    log_a, log_b = (log_ndtr(-t) + t * t / 2 + math.log(2 * math.pi) / 2 for t in (a, b))
    out[~small] = log_a + np.log1p(-np.exp(log_b - log_a))
    return out


def laplace_linear_delta(steps: int, ratio: float, epsilon: float) -> float:
    """delta of ``steps`` linear steps without projection, Laplace noise, one shift: ``ratio`` = shift/scale.

    A sum of Laplace variables is log-concave, so the best set is a half-line; the tail is a mixture of gamma tails.
    """
    k = steps
    m = np.arange(k)
    log_weights = [math.lgamma(k + j) - math.lgamma(k) - math.lgamma(j + 1) - (k + j) * math.log(2) for j in m]
    weights = np.exp(log_weights)

    def tail(x: float) -> float:
        upper = float(np.dot(weights, gammaincc(k - m, abs(x))))
        return upper if x >= 0 else 1 - upper

    def gain(x: float) -> float:
        return tail(x - ratio) - math.exp(epsilon) * tail(x)

    # The gain is unimodal: it rises while the likelihood ratio is below e^epsilon.
    low, high = -ratio - 5, ratio + 40 + 20 * math.sqrt(k)
    shrink = (math.sqrt(5) - 1) / 2
    for _ in range(200):
        a, b = high - shrink * (high - low), low + shrink * (high - low)
        if gain(a) < gain(b):
            low = a
        else:
            high = b
    return max(gain((low + high) / 2), 0.0)
