"""The numbers of steps and the step sizes of Wang, Lei, Ying and Zhang (2022), up to constants: these are no bounds.

Their constants are not specified. `holder_cost` chooses its own step size.
"""

from __future__ import annotations

import math


def steps_exponent_unbounded(*, holder_exponent: float) -> float:
    """Return the x of T = n^x of Theorem 9: (6 - 3a - a^2)/((1 + a)(3 + a)) for a <= (sqrt(73) - 7)/4, else 1.

    >>> steps_exponent_unbounded(holder_exponent=0.0)
    2.0
    """
    a = holder_exponent
    return (6.0 - 3.0 * a - a * a) / ((1.0 + a) * (3.0 + a)) if a <= (math.sqrt(73.0) - 7.0) / 4.0 else 1.0


def steps_exponent(*, holder_exponent: float) -> float:
    """Return the x of T = n^x of Theorems 10 and 12, on a bounded domain: (2 - a)/(1 + a) for a < 1/2, else 1.

    >>> steps_exponent(holder_exponent=0.0)
    2.0
    """
    a = holder_exponent
    return (2.0 - a) / (1.0 + a) if a < 0.5 else 1.0


def gradient_complexity(*, records: int, holder_exponent: float, bounded: bool = True) -> int:
    """Return T = ceil(n^x), the number of steps and of gradients evaluated, with x of the two functions above.

    >>> gradient_complexity(records=1000, holder_exponent=0.5)
    1000
    """
    rule = steps_exponent if bounded else steps_exponent_unbounded
    exponent = rule(holder_exponent=holder_exponent)
    return records if exponent == 1.0 else math.ceil(records**exponent * (1.0 - 1e-12))


def step_unbounded(*, records: int, steps: int, holder_exponent: float, log_chance: float) -> float:
    """Return eta of Theorem 9: n^(1/(3 + a))/(T ln(1/gamma)^(1/(3 + a))), gamma the chance.

    >>> round(step_unbounded(records=10000, steps=10000, holder_exponent=0.5, log_chance=math.log(0.05)), 12)
    0.001015578338
    """
    return math.pow(records / -log_chance, 1.0 / (3.0 + holder_exponent)) / steps


def step_output(
    *, records: int, steps: int, dimension: int, epsilon: float, log_delta: float, log_chance: float
) -> float:
    """Return eta of Theorem 10, noise on the output: 1 over T max(sqrt(ln n ln(n/delta) ln(1/gamma)/n),
    (d ln(1/delta))^(1/4) sqrt(ln(n/delta)) ln(1/gamma)^(1/8)/sqrt(n eps)).

    >>> round(step_output(records=10000, steps=10000, dimension=10, epsilon=1.0, log_delta=math.log(1e-8),
    ...                   log_chance=math.log(0.05)), 12)
    0.000362169767
    """
    log_n = math.log(records)
    risk = math.sqrt(log_n * (log_n - log_delta) * -log_chance / records)
    privacy = math.pow(dimension * -log_delta, 0.25) * math.sqrt((log_n - log_delta) / (records * epsilon))
    return 1.0 / (steps * max(risk, privacy * math.pow(-log_chance, 0.125)))


def step_gradient(
    *, records: int, steps: int, dimension: int, epsilon: float, log_delta: float, log_chance: float
) -> float:
    """Return eta of Theorem 12, noise on every gradient: 1 over T max(sqrt(ln n ln(n/gamma) ln(1/gamma)/n),
    sqrt(d ln(1/delta)) ln(1/gamma)^(1/4)/(n eps)).

    >>> round(step_gradient(records=10000, steps=10000, dimension=10, epsilon=1.0, log_delta=math.log(1e-8),
    ...                     log_chance=math.log(0.05)), 12)
    0.000544907375
    """
    log_n = math.log(records)
    risk = math.sqrt(log_n * (log_n - log_chance) * -log_chance / records)
    privacy = math.sqrt(dimension * -log_delta) * math.pow(-log_chance, 0.25) / (records * epsilon)
    return 1.0 / (steps * max(risk, privacy))
