"""Steps of many kinds as means of steps of few kinds: by the corners of cells of rate and noise.

At one rate, E_g of a step is a convex function of e^(-b mu) for mu up to b, as a function that falls (docs/method.md,
Schedules); at one noise it is convex in the rate. So it is at most the mean of those at the corners of its cell.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpcalc.numerics.floats import UNIT, Array, Integers, np

_MOST_CORNERS = 96  # each has a law of its own, which costs hundredths of a second
_CELLS = (95, 80, 64, 56, 48, 40, 32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2)  # along either axis
_POINTS = 1 << 12  # of a grid on which the ends of cells are chosen
_LARGE = 6.0  # a square of mu: past it the loss of a step grows no faster than that


def at_corners(
    kinds: Sequence[tuple[float, float, int]], *, linear: bool
) -> tuple[list[tuple[float, float]], Integers, Array, Array]:
    """Return corners (rate, mu), and of every kind the places of its corners among them, its shares, and its steps.

    Args:
        kinds: (rate, mu, steps) each.
        linear: whether the curves of a step are convex in its rate; else it counts at the larger rate of its cell.
    """
    rate, mu, counts = np.array(kinds, dtype=float).T
    if len(kinds) <= _MOST_CORNERS:
        alone = np.arange(len(kinds))[:, None]
        return list(zip(rate.tolist(), mu.tolist(), strict=True)), alone, np.ones((len(kinds), 1)), counts
    of_rates, of_mus = (np.geomspace(values.min(), values.max(), _POINTS) for values in (rate, mu))
    square = np.minimum(of_mus**2, _LARGE)  # the loss of a step is about q^2 (e^(mu^2) - 1)
    bends = of_rates**2, square * (1.0 + square) * np.exp(square)
    for cells in _CELLS:
        (rates, of_rate), (mus, of_mu) = _ends(rate, bends[0], of_rates, cells), _ends(mu, bends[1], of_mus, cells)
        shares_of_rate = _both(_share_of_rate(rate, rates, of_rate) if linear else np.ones(len(rate)))
        shares_of_mu = _both(_share_of_mu(mu, mus, of_mu))
        ends = ((i, j) for i in (0, 1) for j in (0, 1))
        places, shares = (
            np.stack(column, axis=1)
            for column in zip(
                *(((of_rate - i) * (cells + 1) + of_mu - j, shares_of_rate[i] * shares_of_mu[j]) for i, j in ends),
                strict=True,
            )
        )
        used = np.unique(places[shares > 0.0])
        if len(used) <= _MOST_CORNERS:
            break
    corners = [(float(rates[place // (cells + 1)]), float(mus[place % (cells + 1)])) for place in used.tolist()]
    places = np.searchsorted(used, np.where(shares > 0.0, places, used[0]))
    return corners, places, shares * (1.0 + 16.0 * UNIT), counts


def _ends(values: Array, bend: Array, grid: Array, cells: int) -> tuple[Array, Integers]:
    """Return the ends of cells that cover the values, and for every value the place of the upper end of its cell.

    A mean over a cell of width w costs about w^2 times the second derivative, ``bend``, so that the cubic roots of both
    together are to be equal; half of the ends go by that, and half are equally spaced.
    """
    roots = np.cbrt(bend)
    density = roots / roots.sum() + 1.0 / len(grid)
    cumulated = np.concatenate(([0.0], np.cumsum(density[1:])))
    ends = np.interp(np.linspace(0.0, cumulated[-1], cells + 1), cumulated, grid)
    ends[0], ends[-1] = values.min(), values.max()
    return ends, np.clip(np.searchsorted(ends, values), 1, cells)


def _share_of_rate(rate: Array, ends: Array, above: Integers) -> Array:
    """Return the share of the upper end, which is linear in the rate."""
    low, high = ends[above - 1], ends[above]
    return np.where(high > low, (rate - low) / np.where(high > low, high - low, 1.0), 1.0)


def _share_of_mu(mu: Array, ends: Array, above: Integers) -> Array:
    """Return the share of the upper end b, which is linear in e^(-b mu)."""
    low, high = ends[above - 1], ends[above]
    whole = np.where(high > low, -np.expm1(high * (low - high)), 1.0)
    return np.where(high > low, -np.expm1(high * (low - mu)) / whole, 1.0)


def _both(share: Array) -> tuple[Array, Array]:
    """Return the shares of the upper end, rounded up, and of the lower one."""
    upper = np.minimum(share * (1.0 + 16.0 * UNIT), 1.0)
    return upper, 1.0 - upper
