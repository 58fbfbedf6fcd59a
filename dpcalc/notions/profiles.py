"""Privacy profiles delta(epsilon) that are expensive to evaluate: tables of them and Renyi divergences, rounded up.

Certificates: what a search found, in a few numbers from which the theorem alone proves the value.

A guarantee that is the best of many has one for each answer. `dpcalc.certify` reads it as JSON and evaluates the
theorem at it in ball arithmetic.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dpcalc.numerics.floats import UNIT, Array, distinct, log_add_exp, np, up
from dpcalc.numerics.roots import gauss_legendre

_DEEPEST = -1e5  # smaller ln deltas are not distinguished
_ROUNDS = 6  # each splits a gap into up to 8: 8^6 of the first gaps are fine enough for any fall
_MOST = 20_000  # points: a larger table takes longer than it saves
_DEEP = 60.0  # an integral ends where its integrand is e^-60 of its maximum; the rest is bounded
_MOST_PANELS = 8000  # half a scale long each: an integral that needs more counts as infinite
_POINTS, _FIRST = 120, 16  # points of a sparse table, and the first ones
_NARROW = 1e-4  # their least relative distance: a curve may jump to delta = 0
_DROP, _SHARE = 0.4, 0.02  # the most that ln delta may fall between two of them; far out, this share of itself
_ENDS = -50.0  # delta below e^-50 is bounded by the last point alone
_STEP_OF_TABLE = 0.1  # of ln delta between neighbouring points of a tabulated curve
_MOST_TABULATED = 600  # points: each may be a search


def tabulate(curve: Callable[[Array], Array], top: float) -> Callable[[Array], Array]:
    """Return a cheap upper bound on a curve, with chords between some thousand points.

    The exact delta is convex in e^epsilon and non-increasing. Between two points it therefore lies below the chord
    through upper bounds there, and beyond the last point below its value there. Between neighbouring points ln delta
    decreases by at most about 0.1 down to e^-60, 0.4 down to e^-700, and a twentieth of itself beyond.

    Args:
        curve: array of epsilons >= 0 -> array of upper bounds on ln delta.
        top: the last point, > 0; best where ln delta is about -1e5, or delta is 0.
    """
    nodes = np.concatenate(([0.0], top * np.exp(np.linspace(-30.0, 0.0, 121))))
    values = curve(nodes)
    for _ in range(_ROUNDS):
        high, low = np.maximum(values[:-1], _DEEPEST), np.maximum(values[1:], _DEEPEST)
        wanted = np.where(high > -60.0, 0.1, np.where(high > -700.0, 0.4, 0.05 * np.abs(high)))
        pieces = np.minimum(np.ceil(np.maximum(high - low, 0.0) / wanted), 8.0).astype(int)
        split = np.flatnonzero(pieces > 1)
        if not len(split) or len(nodes) > _MOST:
            break
        fresh = np.concatenate([
            nodes[k] + (nodes[k + 1] - nodes[k]) * np.arange(1, pieces[k]) / pieces[k] for k in split
        ])  # fmt: skip
        nodes, values = np.concatenate((nodes, fresh)), np.concatenate((values, curve(fresh)))
        order = np.argsort(nodes, kind="stable")
        nodes, values = nodes[order], np.minimum.accumulate(values[order])
    return chords(nodes, values)


def sparse(
    log_delta: Callable[[float], float], alone: Callable[[Array], Array], *, ends: float = _ENDS, most: int = _POINTS
) -> tuple[Array, Array]:
    """Return increasing epsilons from 0 and ln delta there, denser where it falls faster, down to e^-50.

    It takes some hundred evaluations; `tabulate` takes some thousand.

    Args:
        log_delta: epsilon -> upper bound on ln delta.
        alone: a curve above it, which tells where it ends.
        ends: the least ln delta that is distinguished.
        most: about so many evaluations are enough.
    """
    known = {0.0: log_delta(0.0)}
    top = 1e-6
    while top < 2.0**40 and alone(np.array([top]))[0] > ends:
        top *= 2.0
    low = 1e-4 * top
    for epsilon in (low * (top / low) ** (np.arange(_FIRST) / (_FIRST - 1))).tolist():
        known[epsilon] = log_delta(epsilon)
        if known[epsilon] < ends:
            break
    while len(known) < most:
        nodes = sorted(known)
        gaps = [
            (
                (known[a] - (known[b] if known[b] > -math.inf else ends))
                / (_DROP if known[a] > _ENDS else -_SHARE * known[a]),
                a,
                b,
            )
            for a, b in itertools.pairwise(nodes)
            if known[a] > ends and b - a > _NARROW * b
        ]
        drop, a, b = max(gaps, default=(0.0, 0.0, 0.0))
        if drop < 1.0:
            break
        middle = math.sqrt(a * b) if a > 0.1 * b > 0.0 else 0.5 * (a + b)
        known[middle] = log_delta(middle)
    nodes = sorted(known)
    return np.array(nodes), np.minimum.accumulate([known[node] for node in nodes])


def tabulated(log_delta: Callable[[float], float], floor: float) -> Callable[[Array], Array]:
    """Return a vectorised upper bound on a profile: exact at some hundred points, with chords between them.

    Args:
        log_delta: epsilon >= 0 -> an upper bound on ln delta, of a delta that is convex in e^epsilon and falls.
        floor: below this ln delta the curve is constant.
    """
    known = {0.0: min(0.0, log_delta(0.0))}

    def at(epsilon: float) -> float:
        if epsilon not in known:
            known[epsilon] = min(0.0, log_delta(epsilon))
        return known[epsilon]

    top = 2.0**-40
    while at(top) > floor and top < 2.0**40:
        top *= 2.0
    for _ in range(12):
        nodes = sorted(known)
        values = np.minimum.accumulate([known[e] for e in nodes])
        fresh = [
            0.5 * (left + right)
            for left, right, high, low in zip(nodes, nodes[1:], values, values[1:], strict=False)
            if high - max(low, floor) > _STEP_OF_TABLE * max(1.0, 0.05 * -high) and right - left > 1e-9 * right
        ]
        if not fresh or len(known) + len(fresh) > _MOST_TABULATED:
            break
        for epsilon in fresh:
            at(epsilon)
    points = np.array(sorted(known))
    return chords(points, _narrowed(points, np.minimum.accumulate(np.array([known[e] for e in sorted(known)]))))


def _narrowed(nodes: Array, values: Array) -> Array:
    """Return the bounds on ln delta for both orders at increasing epsilons, each the least that they all imply.

    Randomised response is the worst mechanism with (e_j, delta_j) in both orders: at an epsilon below e_j delta is at
    most delta_j + (1 - delta_j) (1 - e^(epsilon - e_j))/(1 + e^-e_j).
    """
    with np.errstate(divide="ignore"):
        pure = np.log(-np.expm1(np.minimum(nodes[:, None] - nodes[None, :], 0.0))) - np.log1p(np.exp(-nodes))[None, :]
        implied = np.logaddexp(values[None, :], pure)
    padding = 64.0 * UNIT * (1.0 + np.where(np.isfinite(implied), np.abs(implied), 0.0))
    implied = np.where(nodes[:, None] < nodes[None, :], implied + padding, 0.0)
    return np.minimum(values, implied.min(axis=1))


def chords(nodes: Array, values: Array) -> Callable[[Array], Array]:
    """Return the curve through upper bounds on ln delta at increasing epsilons, chords in e^epsilon between them."""

    def interpolated(e: Array) -> Array:
        place = np.clip(np.searchsorted(nodes, e, side="right") - 1, 0, len(nodes) - 2)
        left, right = nodes[place], nodes[place + 1]
        inside = np.minimum(e, right)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
            # (e^e - e^left)/(e^right - e^left); rounded down, since the curve falls
            share = np.exp(inside - right) * np.expm1(left - inside) / np.expm1(left - right)
            share = np.clip(share * (1.0 - 64.0 * UNIT) - 1e-300, 0.0, 1.0)
            value = np.logaddexp(values[place] + np.log1p(-share), values[place + 1] + np.log(share))
        value = np.where(e >= nodes[-1], values[-1], np.where(np.isnan(value), values[place], value))
        return np.minimum(0.0, value + UNIT * (16.0 + 8.0 * np.where(np.isfinite(value), np.abs(value), 0.0)))

    return interpolated


def envelope(nodes: Array, values: Array, *, both_orders: bool) -> Callable[[Array], Array]:
    """Return the largest ln delta, at epsilons of any sign, that upper bounds at increasing epsilons allow.

    delta is convex in g = e^epsilon, non-increasing and 1 at g = 0: it lies below the lower hull of all points, and
    this is the best bound. Points with epsilon > 0 that hold for both orders (P, Q) and (Q, P) also bound it at 1/g, as
    E_(1/g)(P||Q) = 1 - 1/g + E_g(Q||P)/g.

    Args:
        nodes: epsilons.
        values: upper bounds on ln delta there, of one pair or of all pairs of a class.
        both_orders: whether they hold for both orders.
    """
    if both_orders:
        e, log_delta = nodes[nodes > 0.0][::-1], values[nodes > 0.0][::-1]
        mirrored = np.logaddexp(np.log(-np.expm1(-e)), log_delta - e)
        nodes = np.concatenate((-e, nodes))
        values = np.concatenate((mirrored + 8.0 * UNIT * (3.0 - mirrored), values))
        order = np.argsort(nodes, kind="stable")
        nodes, values = nodes[order], values[order]
    nodes, values = np.append(-np.inf, nodes), np.minimum.accumulate(np.append(0.0, values))
    from dpcalc.notions.pld.discretisation import hull

    corners = hull(nodes, values)
    return chords(nodes[corners], values[corners])


def renyi(
    curve: Callable[[Array], Array], *, order: float, scale: float, own: Callable[[Array], Array],
    breaks: Sequence[float] = (), rounds: int = 10,
) -> float:  # fmt: skip
    """Return an upper bound on the Renyi divergence of a mechanism with this privacy profile, in either order.

    D_a <= ln(1 + a (a-1) int_0^inf (e^((a-1) e) + e^(-a e)) delta(e) de)/(a-1), an identity if the profile is exact and
    the same for both orders; for a = 1, int_0^inf (1 + e^-e) delta(e) de.

    Args:
        curve: array of epsilons >= 0 -> upper bounds on ln delta, smooth between the breaks.
        order: a >= 1.
        scale: about the epsilon over which the profile changes, > 0.
        own: a curve above it with concave ln delta, which bounds the tail: the record's own step.
        breaks: points at which the profile may have a kink.
        rounds: how often panels on which two rules differ are halved; the difference is added to the result.

    Returns:
        D_a, rounded up; inf if the integral does not end within some thousand times the scale, or if the order times
        that end overflows.
    """

    def log_integrand(e: Array) -> Array:
        value = curve(e)
        with np.errstate(invalid="ignore", over="ignore"):
            log_value: Array = np.where(value == -np.inf, value, np.logaddexp((order - 1.0) * e, -order * e) + value)
        return log_value

    end = _end(log_integrand, scale)
    if not end < 0.5 * _MOST_PANELS * scale or not order * end < 1e300:  # past that e^((order-1) epsilon) overflows
        return math.inf
    start = np.minimum(0.5 * scale, end) * np.exp(np.linspace(-30.0, 0.0, 76))
    edges = np.concatenate(([0.0], start, np.arange(scale, end, 0.5 * scale), [end], [b for b in breaks if b < end]))
    log_integral = log_add_exp(_integral(log_integrand, distinct(edges), rounds), _tail(own, order, end))
    if log_integral == -math.inf:
        return 0.0
    log_integral += 1e-13
    if order == 1.0:
        return up(math.exp(log_integral), 16.0) if log_integral < 700.0 else math.inf
    log_moment = log_integral + math.log(order) + math.log(order - 1.0)
    moment = log_moment + math.log1p(math.exp(-log_moment)) if log_moment > 0.0 else math.log1p(math.exp(log_moment))
    return up(moment / (order - 1.0), 64.0)


def _end(log_integrand: Callable[[Array], Array], scale: float) -> float:
    """Return the epsilon where epsilon times the integrand is e^-60 of its maximum; inf if there is none."""
    e = scale * np.exp(np.linspace(-20.0, 14.0, 341))
    value = log_integrand(e) + np.log(e)
    top = int(np.argmax(value))
    fallen = np.flatnonzero(value[top:] < value[top] - _DEEP)
    return float(e[top + fallen[0]]) if len(fallen) else math.inf


def _integral(log_integrand: Callable[[Array], Array], edges: Array, rounds: int) -> float:
    """Return ln of the integral by the finer of two rules, plus the difference between them."""
    left, right = edges[:-1], edges[1:]
    total = -math.inf
    for round in range(rounds + 1):
        fine, coarse = (_rule(log_integrand, left, right, points) for points in (16, 12))
        with np.errstate(invalid="ignore", over="ignore"):
            gap = fine + np.log(np.maximum(np.abs(np.expm1(np.minimum(coarse - fine, 50.0))), 1e-300))
        gap = np.where(np.isnan(gap) | (fine == -np.inf), coarse, gap)
        rough = (gap > log_add_exp(total, _log_sum(fine)) - 34.0) & (round < rounds)
        total = log_add_exp(total, log_add_exp(_log_sum(fine[~rough]), _log_sum(gap[~rough])))
        if not rough.any() or len(left) > 4 * _MOST_PANELS:
            return total if not rough.any() else log_add_exp(total, _log_sum(np.logaddexp(fine, gap)[rough]))
        middle = 0.5 * (left + right)[rough]
        left, right = np.concatenate((left[rough], middle)), np.concatenate((middle, right[rough]))
    return total


def _rule(log_integrand: Callable[[Array], Array], left: Array, right: Array, points: int) -> Array:
    """Return ln of the Gauss-Legendre rule on every panel."""
    x, w = (np.array(column) for column in zip(*gauss_legendre(points), strict=True))
    half = 0.5 * (right - left)
    nodes = left[:, None] + half[:, None] * (1.0 + x)[None, :]
    value = log_integrand(nodes.ravel()).reshape(nodes.shape)
    peak = np.maximum(value.max(axis=1), -1e300)
    with np.errstate(divide="ignore"):
        log_value: Array = peak + np.log(half) + np.log((w[None, :] * np.exp(value - peak[:, None])).sum(axis=1))
    return np.where(peak <= -1e300, -np.inf, log_value)


def _log_sum(values: Array) -> float:
    if not len(values) or (peak := float(values.max())) == -math.inf:
        return -math.inf
    return peak + math.log(math.fsum(np.exp(values - peak).tolist()))


def _tail(own: Callable[[Array], Array], order: float, end: float) -> float:
    """Return ln of a bound on the integral beyond ``end``: a concave exponent lies below its tangent."""
    before = end * (1.0 - 1e-3)
    at_before, at_end = own(np.array([before, end])).tolist()
    if at_end == -math.inf:
        return -math.inf
    slope = (at_end - at_before) / (end - before) + order - 1.0
    if slope >= 0.0:
        return math.inf
    return float(at_end + np.logaddexp((order - 1.0) * end, -order * end) - math.log(-slope))


KNOWN, HIDDEN, WORST = "known position", "hidden position", "worst position"
"""Theorems whose least value is the bound: the mean over known positions, Theorem HW, the worst fixed position."""
COMPOSED, SPLIT, POINT, ALLOCATION = "composed", "split noise", "point composed", "allocation"
"""The same for steps: all composed; a share of the noise hides the early ones; one point of a pass's curve; an
allocation of the shift to the steps.
"""


class Blocks(NamedTuple):
    """How positions are grouped: single ones up to ``alone``, then blocks whose ends grow by exp(``growth``).

    ``growth`` is 0 if all positions are single.
    """

    alone: int
    growth: float


class Matching(NamedTuple):
    """The data that define the matrices (R, M) of Theorem HW; see docs/method.md, "Hidden position".

    Attributes:
        level: z of the common level ln gamma = mu z - mu^2/2.
        receivers: for each class of equal positions, how many rows may receive, counted from the last position.
        blocks: the blocks of positions that the rows stand for.
        rows: their number, including the row of a record that is left out.
    """

    level: float
    receivers: tuple[int, ...]
    blocks: Blocks
    rows: int


class Earlier(NamedTuple):
    """The cases for a record's uses before the last pass of fresh orders.

    Attributes:
        window: J, the number of passes before the last two in which heavy uses are counted.
        numbers: the distinguished numbers of heavy uses; one between two of them counts as the larger.
        parts: for each number, how many blocks the positions of the last pass but one are divided into.
    """

    window: int
    numbers: tuple[int, ...]
    parts: tuple[int, ...]


class Certificate(NamedTuple):
    """The data that prove an answer.

    Attributes:
        theorem: which of the theorems gave the least value.
        earlier: the cases of earlier uses, for fresh orders.
        blocks: the blocks of known positions.
        contracts: whether strong convexity and the domain are used.
        matchings: for each placement of the null record and each case in the order of `Earlier`, the matching, or None
        if the position counts as known.
        point: epsilon of a pass, if one point of its curve is composed.
        inner: the certificate of the pass's curve there.
        values: further numbers by name: split points, orders, shares of noise.
    """

    theorem: str
    earlier: Earlier | None = None
    blocks: Blocks | None = None
    contracts: bool | None = None
    matchings: tuple[tuple[Matching | None, ...], ...] = ()
    point: float | None = None
    inner: Certificate | None = None
    values: dict[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are set, as JSON types, with a digest that detects copying errors."""
        fields = {name: _plain(value) for name, value in self._asdict().items() if value is not None and value != ()}
        return {**fields, "digest": digest(fields)}


def digest(fields: Mapping[str, object]) -> str:
    """Return a checksum of a certificate in JSON: it detects copying errors and proves nothing."""
    return f"{zlib.crc32(repr(fields).encode()):08x}"


def _plain(value: Any) -> Any:
    """Return a value as JSON types."""
    if isinstance(value, Certificate):
        return value.as_json()
    if isinstance(value, tuple):
        if hasattr(value, "_asdict"):
            return {name: _plain(item) for name, item in value._asdict().items()}
        return [_plain(item) for item in value]
    return value
