"""Definitions of `linear`: what linear losses really have, which what is said to be below it may not exceed."""

from __future__ import annotations

from flint import arb

from dpcalc.certify.balls import Inputs
from dpcalc.certify.passes import batch, full_ratio, ratio
from dpcalc.certify.table import defines


def _length(v: Inputs) -> int:
    return -(-v.records // v.batch_size)


@defines("linear.pass", "mu", lower=True)
def _pass(v: Inputs) -> arb:
    return ratio(v)[0] / arb(_length(v)).sqrt()


@defines("linear.passes", "mu", lower=True)
def _passes(v: Inputs) -> arb:
    return ratio(v)[0] * (arb(v.epochs) / _length(v)).sqrt()


@defines("linear.descent", "mu", lower=True)
def _descent(v: Inputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


@defines("linear.local", "mu", lower=True)
def _local(v: Inputs) -> arb:
    return v.sensitivity / (batch(v)[0] * v.noise_std)
