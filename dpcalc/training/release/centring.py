"""Centring of rows: about a noisy mean, in units of a noisy mean distance from it.

A row z, mapped and scaled down to |z| <= B, becomes (z - m)/s, is scaled down once more, and gets a constant column.
Here m is the mean row, from noisy sums of z, and s = min(u r, 1) for units of u mean distances r, where r B is the mean
of min(|z - m|, 2 B), from noisy sums of min(|z - m|, 2 B) - B. An r below the standard deviation of its noise, which is
public, is mostly noise and is raised to it: in much smaller units, all rows would be scaled down to the bound and
differ in direction alone. A record's term of such a sum has a norm of at most B. So a sum with noise n sigma B/L is as
private as a step of noisy gradient descent, whose sum of gradients of norm at most L has noise n sigma: both are
accounted as such steps, before those of the descent (`docs/method.md`). Each sum may be taken several times; the mean
of the noisy sums is used.

Sums are exact, as those of gradients (`dpcalc.training.run.exact_sums`): rows and m are rounded to multiples of a power
of two, so that a double represents |z - m|^2 exactly, and a record's term depends on it and on m alone.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcalc.errors import NotApplicable, SpecError
from dpcalc.model.loss import Loss
from dpcalc.numerics.floats import up
from dpcalc.training.data.bounds import Centre, Prepared, blocks, lengths, rest_of
from dpcalc.training.release.model import LEAST_SCALE
from dpcalc.training.rule.full_batches import Centring
from dpcalc.training.rule.records import Records
from dpcalc.training.run.checks import lipschitz_of
from dpcalc.training.run.exact_sums import cut, exponent_of, grid_of, rounded_sum
from dpcalc.training.run.kernel import Source
from dpcalc.training.run.plan import Plan
from dpcalc.training.run.problem import refuse_outside
from dpcalc.training.run.rounding import Rounding

Array = NDArray[np.float64]
_BITS = 52  # of a sum
_MOST_BITS = 20  # kept of rows: a square of a distance then has at most 45
_PIECE = 1 << 16  # entries of a block
_LEAST = 1e-290  # of the scale of noise: a normal double


class Centred(NamedTuple):
    """Centred records, how they were centred, and the plan of the descent on them."""

    records: Records
    centre: Centre
    plan: Plan


def centred(plan: Plan, loss: Loss, records: Records, source: Source, rounding: Rounding, how: Centring) -> Centred:
    """Take the first noisy sums of an accounted run, and return the records about their noisy mean.

    Args:
        plan: as accounted, with the noisy sums that are taken here.
        loss: with the bound on features.
        records: mapped and shortened to that bound, with room for a constant column; overwritten.
        source: of the noise.
        rounding: of noisy sums.
        how: how many of the plan's steps are taken here, and how rows are centred.

    Raises:
        NotApplicable: iterates stay hidden.
        SpecError: the noise is too small for its grid, or out of range.
    """
    if rounding.grid is not None:
        raise NotApplicable("centring is covered only where every noisy sum may be public", "give --no-centre")
    [batch] = plan.batches
    bound = float(loss.feature_bound)
    noise = scale_of(float(np.max(plan.scale)), lipschitz_of(plan, loss), batch.divisor, bound)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning would reveal something about the records
        asked = _Asked(records.train, bound, noise, source)
        shift = asked.mean(how.mean)
        scale = min(how.units * asked.distance(shift, how.distance), 1.0)
        constant = how.constant * bound
        centre = Centre(shift, scale, rest_of(bound, constant, 2), constant)
        for part in filter(None, (records.train, records.test)):
            for some in blocks(*part.shape, _PIECE):
                centre.apply(part.features[some])
    moved = records._replace(constant=constant, bound=centre.rest)
    return Centred(moved, centre, plan.without(how.sums))


def scale_of(noise_std: float, lipschitz: float, divisor: float, bound: float) -> float:
    """Return n sigma B/L, rounded up; sigma/L comes first, since sigma B may underflow.

    Raises:
        SpecError: that, or sigma/L, is not from 1e-290 to 1e290.
    """
    ratio = noise_std / lipschitz
    scale = up(ratio * divisor * bound, 8.0)
    if not all(_LEAST <= value <= 1.0 / _LEAST for value in (ratio, ratio * divisor, scale)):
        raise SpecError(f"noise of scale {scale:g} on sums of rows is out of range", "use other units")
    return scale


class _Asked:
    """The records, and noisy sums over them."""

    def __init__(self, train: Prepared, bound: float, scale: float, source: Source) -> None:
        self.train, self.bound, self.scale, self.source = train, bound, scale, source
        self.rows = train.shape[0]
        kept = min(_MOST_BITS, _BITS - (self.rows - 1).bit_length())
        self.unit = math.ldexp(1.0, exponent_of(bound) - kept)
        if not self.rows * bound / grid_of(scale) < 2.0**_BITS:
            raise SpecError(f"noise of scale {scale:g} on sums of rows is lost in rounding", "use more noise")

    def mean(self, times: int) -> Array:
        """Return m: the mean of noisy mean rows, scaled down to the bound and rounded to the grid."""
        shift = self._noisy_mean(lambda z: z.sum(axis=0), self.train.shape[1] - 1, times)
        shift *= min(1.0, self.bound / max(float(lengths(shift[np.newaxis], 2)[0]), self.bound))
        return cut(shift, self.unit)

    def distance(self, shift: Array, times: int) -> float:
        """Return r, from noisy means of min(|z - m|, 2 B) - B, and at least the standard deviation of its noise."""

        def of(z: Array) -> Array:
            z -= shift
            sizes = np.sqrt(np.einsum("ij,ij->i", z, z))  # the sums of squares are exact
            near = np.minimum(sizes, 2.0 * self.bound) - self.bound
            return np.array([cut(near, self.unit).sum()])

        [mean] = self._noisy_mean(of, 1, times)
        deviation = self.scale / self.bound / self.rows / math.sqrt(times)
        return min(max(1.0 + float(mean) / self.bound, deviation, LEAST_SCALE), 1.0)

    def _noisy_mean(self, of: Callable[[Array], Array], entries: int, times: int) -> Array:
        """Return the mean of ``times`` noisy sums, each rounded to its grid, over the number of records."""
        total = self._sum(of)
        noise = self.source.generator.standard_normal((times, entries))
        noisy = np.zeros(entries)
        for draw in noise:
            noisy += rounded_sum(total, draw, self.scale)
        noisy /= times * self.rows
        return noisy

    def _sum(self, of: Callable[[Array], Array]) -> Array:
        """Return the sum of ``of`` over the rounded rows without the constant column: exact in any order."""
        total: Any = 0.0
        for some in blocks(*self.train.shape, _PIECE):
            z = cut(self.train.features[some, :-1], self.unit)
            refuse_outside(np.sqrt(np.einsum("ij,ij->i", z, z)), self.bound, some.start, "feature_bound")
            total = total + of(z)
        return np.asarray(total)
