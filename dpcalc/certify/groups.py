"""Definitions for groups of k records, by a chain of data sets each of which differs from the next in one.

* mu-GDP: k mu.
* A Renyi curve: D_a(P||S) <= (1 + l/j)/p D_pa(P||Q) + D_b(Q||S), b = a k/l, with j links before Q and l = k - j behind
  it, for p = 1 + (l/j)(a - 1)/a (Bun and Steinke 2016, as docs/method.md has it).
"""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Rdp
from dpcalc.certify.proof import Open
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import Definition, Formula

NOT_DEFINED = "groups of records have a definition for Gaussian privacy and Renyi curves alone"


def of_groups(definition: Definition, size: int, records: int) -> Definition:
    """Return the definition of what a bound says of groups.

    Args:
        definition: of one record.
        size: k > 1.
        records: how many records may be the worst off.

    Raises:
        Open: there is none.
    """
    if issubclass(definition.gives, Gdp):
        return definition._replace(formula=lambda v: size * definition.formula(v))
    # The worst record may be another one at every order.
    if issubclass(definition.gives, Rdp) and records == 1:
        return definition._replace(formula=lambda v: _renyi(definition.formula, v, v.order, size))
    raise Open(NOT_DEFINED)


def _renyi(formula: Formula, v: RunInputs, order: arb | None, size: int) -> arb:
    """Return the Renyi divergence of groups of so many at an order; None is infinity."""
    if size == 1:
        value: arb = formula(v.changed(order=order))
        return value
    if order is None:
        return size * _renyi(formula, v, None, 1)
    after = size // 2
    ratio = fmpq(after, size - after)
    exponent = 1 + ratio * (order - 1) / order
    first = _renyi(formula, v, order * exponent, size - after)
    return (1 + ratio) / exponent * first + _renyi(formula, v, order * fmpq(size, after), after)
