"""Hölder constants of common losses of linear models: |grad l(w) - grad l(v)| <= L |w - v|^alpha for all w and v.

Features have norm at most B, targets |y| <= Y, or are labels -1 and 1. All losses are >= 0 and convex.

| loss                        | alpha        | L                              | M                     | M0       |
|-----------------------------|--------------|--------------------------------|-----------------------|----------|
| hinge^q, q in [1, 2]        | q - 1        | q B^q                          | q B                   | 1        |
| |y - w x|^q, q in [1, 2]    | q - 1        | q 2^(2-q) B^q                  | q B Y^(q-1)           | Y^q      |
| logistic                    | any          | B^(1+alpha) sup tanh(h/4)/h^alpha | B/2                | ln 2     |
| Huber, r^2/2 up to k        | any          | (2k)^(1-alpha) B^(1+alpha)     | B min(Y, k)           | rho_k(Y) |
| (y - w x)^2/2               | 1            | B^2                            | B Y                   | Y^2/2    |
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dpcalc.errors import SpecError
from dpcalc.numerics.floats import up


class Hoelder(NamedTuple):
    """What the bounds on Hölder losses need to know of a loss; every constant rounded up.

    Attributes:
        holder_exponent, holder_constant: alpha and L.
        gradient_at_zero, loss_at_zero: M and M0.
        lipschitz: bound on the gradient in the ball of the radius given, often below M + L R^alpha; None without one.
    """

    holder_exponent: float
    holder_constant: float
    gradient_at_zero: float
    loss_at_zero: float
    lipschitz: float | None


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise SpecError(f"{name} is {value:g}; it must be from {low:g} to {high:g}", f"use another {name}")


def _power(base: float, exponent: float) -> float:
    """Return base^exponent, rounded up; 0^0 is 1."""
    if exponent in (0.0, 1.0):
        return base if exponent else 1.0
    return up(math.pow(base, exponent), 8.0 + 4.0 * abs(math.log(base))) if base > 0.0 else 0.0


def hinge(*, feature_bound: float, power: float = 1.0, radius: float | None = None) -> Hoelder:
    """Return the constants of (1 - y w x)_+^q, q in [1, 2].

    Raises:
        SpecError: q is outside [1, 2].

    >>> round(hinge(feature_bound=1.7, power=1.5).holder_constant, 12)
    3.324793226653
    """
    _within("power", power, 1.0, 2.0)
    b, q = feature_bound, power
    most = None if radius is None else up(q * b * _power(up(1.0 + b * radius, 2.0), q - 1.0), 4.0)
    return Hoelder(q - 1.0, up(q * _power(b, q), 2.0), up(q * b), 1.0, most)


def absolute(*, feature_bound: float, target_bound: float, power: float = 1.0, radius: float | None = None) -> Hoelder:
    """Return the constants of |y - w x|^q, q in [1, 2]; they hold for (|y - w x| - c)_+^q, too.

    Raises:
        SpecError: q is outside [1, 2].

    >>> round(absolute(feature_bound=1.7, target_bound=1.3, power=1.25).holder_constant, 12)
    4.080784504968
    """
    _within("power", power, 1.0, 2.0)
    b, y, q = feature_bound, target_bound, power
    most = None if radius is None else up(q * b * _power(up(y + b * radius, 2.0), q - 1.0), 4.0)
    constant = up(q * _power(2.0, 2.0 - q) * _power(b, q), 4.0)
    return Hoelder(q - 1.0, constant, up(q * b * _power(y, q - 1.0), 4.0), _power(y, q), most)


def logistic(*, feature_bound: float, holder_exponent: float = 1.0, radius: float | None = None) -> Hoelder:
    """Return the constants of ln(1 + e^(-y w x)) for any alpha in [0, 1].

    sup_h tanh(h/4)/h^alpha is 1 at alpha = 0, 1/4 at alpha = 1, and taken at h = 4u, u/(sinh u cosh u) = alpha between.

    >>> round(logistic(feature_bound=1.7, holder_exponent=0.5).holder_constant, 12)
    0.845906293392
    """
    _within("holder_exponent", holder_exponent, 0.0, 1.0)
    b, a = feature_bound, holder_exponent
    most = None if radius is None else up(b / (1.0 + math.exp(-min(b * radius, 745.0))), 8.0)
    return Hoelder(a, up(_power(b, 1.0 + a) * _steepest(a), 2.0), 0.5 * b, up(math.log(2.0)), most)


def _steepest(a: float) -> float:
    """Return sup_h tanh(h/4)/h^a, rounded up: by bisection; near the maximum the value does not depend on h."""
    if a in (0.0, 1.0):
        return 0.25 if a else 1.0
    low, high = 0.0, 400.0
    for _ in range(80):
        u = 0.5 * (low + high)
        low, high = (u, high) if 2.0 * u > a * math.sinh(min(2.0 * u, 700.0)) else (low, u)
    # Where u is cut off at 400, a < 1e-300: tanh is 1, and h^-a is 1 to rounding.
    h = 4.0 * high
    return min(1.0, up(math.tanh(0.25 * h) * math.exp(-a * math.log(h)), 32.0 + 8.0 * a * abs(math.log(h))))


def huber(
    *, feature_bound: float, target_bound: float, bend: float, holder_exponent: float = 1.0,
    radius: float | None = None,
) -> Hoelder:  # fmt: skip
    """Return the constants of r^2/2 up to |r| = k, k |r| - k^2/2 beyond, r = y - w x, for any alpha in [0, 1].

    >>> round(huber(feature_bound=2.0, target_bound=3.0, bend=0.7, holder_exponent=0.25).holder_constant, 12)
    3.061142319001
    """
    _within("holder_exponent", holder_exponent, 0.0, 1.0)
    b, y, k, a = feature_bound, target_bound, bend, holder_exponent
    at_zero = 0.5 * y * y if y <= k else k * (y - 0.5 * k)
    most = None if radius is None else up(b * min(k, up(y + b * radius, 2.0)), 2.0)
    constant = up(_power(2.0 * k, 1.0 - a) * _power(b, 1.0 + a), 4.0)
    return Hoelder(a, constant, up(b * min(y, k)), up(at_zero, 4.0), most)


def squares(*, feature_bound: float, target_bound: float, radius: float | None = None) -> Hoelder:
    """Return the constants of (y - w x)^2/2.

    >>> squares(feature_bound=1.5, target_bound=2.0).gradient_at_zero >= 3.0
    True
    """
    b, y = feature_bound, target_bound
    most = None if radius is None else up(b * up(y + b * radius, 2.0), 2.0)
    return Hoelder(1.0, up(b * b), up(b * y), up(0.5 * y * y, 2.0), most)
