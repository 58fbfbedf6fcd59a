"""Definitions of `sampled`: clipped gradients of batches drawn at random, every iterate public."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.balls import Inputs
from dpcalc.certify.guarantee import Gdp
from dpcalc.certify.table import defines
from dpcalc.model.choices import Adjacency


def _composed(v: Inputs, uses: int) -> arb:
    """Return sqrt(uses)/z, twice that where a record is replaced by another."""
    apart = 2 if v.adjacency == Adjacency.REPLACE_ONE else 1
    return apart * arb(uses).sqrt() / v.noise_multiplier


@defines("sampled.full", Gdp)
def _full(v: Inputs) -> arb:
    return _composed(v, v.steps)


@defines("sampled.shuffle", Gdp)
def _shuffle(v: Inputs) -> arb:
    in_an_epoch = -(-v.records // v.batch_size)
    return _composed(v, -(-v.steps // in_an_epoch))
