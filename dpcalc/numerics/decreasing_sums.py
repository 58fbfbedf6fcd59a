"""Upper bounds on sums of decreasing terms over up to 1e15 integers, from bounds on the terms at a few of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dpcalc.numerics.arrays import Array, Booleans, distinct, np
from dpcalc.numerics.floats import UNIT

_TOLERANCE = 1e-3  # of ln of the sum: what chords may add
_MOST_NODES = 6000  # bounds the time where terms jump
_MOST_ROUNDS = 14  # each halves the gaps that add the most
_SINGLE = 24  # the first so many integers are all nodes


class TermBounds(NamedTuple):
    """Upper bounds on the terms of several sums at some integers: logarithms, shape (sums, integers).

    ``at_and_after`` bounds the terms at the integer and at all later ones. ``convex_form`` does so too, and where
    ``convex`` is true it is convex in the integer from there on, so that chords bound it.
    """

    at_and_after: Array
    convex_form: Array
    convex: Booleans


def log_sum_decreasing_up(
    terms: Callable[[Array], TermBounds], first: int, last: int, tolerance: float = _TOLERANCE
) -> float:
    """Return an upper bound on ln of the sum of all terms at all integers first <= k <= last.

    Between two nodes a < a' a term is bounded by its value at a, or where it is convex by the chord from a to a'. Nodes
    are added until the estimated relative loss is below the tolerance. The result is a bound for any choice of nodes.

    Args:
        terms: array of increasing integers -> bounds on the terms there.
        first, last: 1 <= first <= last <= 1e15.
        tolerance: the relative loss to aim for.
    """
    nodes = _first_nodes(first, last)
    bounds = terms(nodes)
    for _ in range(_MOST_ROUNDS):
        sums, peak = _block_sums(nodes, bounds)
        total = float(sums[0].sum())
        loss = sums[1] / total
        if float(loss.sum()) <= tolerance or len(nodes) >= _MOST_NODES:
            break
        added = _between(nodes, loss, tolerance)
        if not len(added):
            break
        fresh = terms(added)
        nodes = np.concatenate((nodes, added))
        order = np.argsort(nodes)
        nodes = nodes[order]
        bounds = TermBounds(*(np.concatenate(pair, axis=1)[:, order] for pair in zip(bounds, fresh, strict=True)))
    sums, peak = _block_sums(nodes, bounds)
    value = peak + float(np.log(sums[0].sum()))
    return value + UNIT * (4.0 * abs(value) + 16.0 * len(nodes))


def _first_nodes(first: int, last: int) -> Array:
    alone = np.arange(first, min(last, first + _SINGLE) + 1, dtype=float)
    if last <= first + _SINGLE:
        return alone
    count = 2 + int(3.0 * np.log((last + 1.0 - first) / _SINGLE))
    return distinct(alone, np.rint(np.geomspace(alone[-1], float(last), count)))


def _block_sums(nodes: Array, bounds: TermBounds) -> tuple[Array, float]:
    """Return the sum and the estimated loss of each block, shape (2, blocks), in units of exp(peak).

    A block is a node and the integers up to the next one; the last block is the last node alone.
    """
    peak = max(float(bounds.at_and_after.max()), -1e306)
    flat, convex = np.exp(bounds.at_and_after - peak), np.exp(np.minimum(bounds.convex_form - peak, 700.0))
    count = np.append(np.diff(nodes), 1.0)
    after = np.concatenate((convex[:, 1:], convex[:, -1:]), axis=1)
    chord = (convex * (count + 1.0) + after * (count - 1.0)) / 2.0
    added = np.where(bounds.convex, chord, flat * count)
    # An estimate of the sum itself: values that decrease exponentially between nodes, with the curvature of a power.
    logs = bounds.at_and_after
    gap = np.maximum(np.concatenate((logs[:, :-1] - logs[:, 1:], logs[:, -1:] * 0.0), axis=1), 1e-9)
    gap_convex = np.maximum(np.log(np.maximum(convex, 1e-300)) - np.log(np.maximum(after, 1e-300)), 1e-9)
    inner = count - 1.0
    rough = flat * inner * (1.0 + np.expm1(-gap) / gap)
    fine = (convex + after) * inner / 2.0 - convex * inner * -np.expm1(-gap_convex) / gap_convex
    fine *= 1.0 + np.minimum(np.append(np.log(nodes[1:] / nodes[:-1]), 0.0) / gap_convex, 9.0)
    lost = np.where(bounds.convex, fine, rough)
    return np.stack((added.sum(axis=0), np.maximum(lost, 0.0).sum(axis=0))), peak


def _between(nodes: Array, loss: Array, tolerance: float) -> Array:
    """Return nodes inside the blocks that lose most, more of them where more is lost."""
    share = tolerance / max(64, len(nodes))
    chosen = np.flatnonzero((loss[:-1] > share) & (np.diff(nodes) > 1.0))
    chosen = chosen[np.argsort(-loss[chosen])][:1500]
    parts = np.clip(np.ceil(np.sqrt(loss[chosen] / share)), 2, 24).astype(int)
    made = [np.rint(np.geomspace(nodes[i], nodes[i + 1], p + 1)[1:-1]) for i, p in zip(chosen, parts, strict=True)]
    if not made:
        return np.empty(0)
    found = distinct(*made)
    return found[nodes[np.minimum(np.searchsorted(nodes, found), len(nodes) - 1)] != found]
