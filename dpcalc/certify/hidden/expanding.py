"""Definitions of `expanding`: several passes of maps that may increase the distance of two runs."""

from __future__ import annotations

import math

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import OutOfReach, least, log, log_delta, square
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import defines
from dpcalc.model.quantities import LossClass

MOST_POSITIONS = 1500


def _counts() -> list[int]:
    """Return the integers up to 7 2^57 with at most three significant binary digits."""
    return [1, 2, 3, *(j * 2**power for power in range(58) for j in (4, 5, 6, 7))]


def factor(v: RunInputs) -> arb | None:
    """Return the Lipschitz factor c >= 1 of a step's map; None if none is known."""
    if v.loss_class not in (LossClass.SMOOTH, LossClass.CONVEX_SMOOTH) or v.smoothness is None:
        return None
    return arb(max(v.lipschitz_factor(), fmpq(1)))


def room_of(c: arb | None, steps: int) -> arb:
    """Return 1 + c^-2 + ... + c^(-2 (steps-1)); 1 if there is no factor."""
    if c is None:
        return arb(1)
    if c == 1:
        return arb(steps)
    shrink = 2 * c.log()
    return (-shrink * steps).expm1() / (-shrink).expm1()


def reach(v: RunInputs) -> arb:
    """Return the diameter in units of a step's noise."""
    return v.quotient(["diameter"], ["step_size", "noise_std"])


def carried(v: RunInputs, steps: int) -> arb:
    """Return the least mu of the diameter hidden by ``steps`` steps. Doubles choose the split of the steps."""
    far, c, ways = reach(v), factor(v), []
    push = None if v.lipschitz is None or not _mild(v) else 2 * v.lipschitz / v.noise_std
    if c is not None:
        pushed = _best_split(float(far.mid()), float(c.mid()), float(push.mid()), steps) if push is not None else 0
        ways += [_split(far, c, push, steps, p) for p in {0, pushed}]
    elif push is not None:
        ways.append((far + push * steps) / arb(steps).sqrt())
    if push is not None and (bent := v.bent(v.lipschitz)) is not None:
        ways.append(_bent(far, bent[0], bent[1] / (v.step_size * v.noise_std), steps))
    return least(*ways) if ways else arb.pos_inf()


def _mild(v: RunInputs) -> bool:
    return bool(v.exact("step_size") * v.exact("regularisation") <= 1)


def _split(far: arb, c: arb, push: arb | None, steps: int, pushed: int) -> arb:
    """Return mu where the first ``pushed`` steps add 2 L/sigma and the others multiply by c."""
    left = room_of(c, steps - pushed) / square(c) if steps > pushed else arb(0)
    return (far if not pushed or push is None else far + push * pushed) / (pushed + left).sqrt()


def _best_split(far: float, c: float, push: float, steps: int) -> int:
    """Return approximately the best number of steps that add: the square of `_split` is convex in it."""
    rate = -2.0 * math.log(c)

    def cost(pushed: int) -> float:
        count = steps - pushed
        room = count if rate > -1e-200 else math.expm1(rate * count) / math.expm1(rate) / c / c
        return (far + push * pushed) / math.sqrt(pushed + room)

    if far * (c - 1.0) <= push:
        return 0
    low, high = 0, steps
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if cost(middle) > cost(middle + 1) else (low, middle)
    return low


def _bent(far: arb, ratio: arb, width: arb, steps: int) -> arb:
    """Return mu if a step takes points at distance z to distance sqrt(q z^2 + w^2), up to terms below roundoff."""
    room = room_of(ratio.sqrt(), steps) / ratio
    return (square(far) / room + square(width) * harmonic(steps, ratio)).sqrt()


def _sizes(v: RunInputs) -> tuple[int, int, int]:
    """Return the largest and the smallest divisor of a batch, and the number of steps of a pass."""
    divisors = [divisor for _, _, divisor in v.sizes()]
    return max(divisors), min(divisors), v.period()


@defines("expanding.composition", Gdp)
def _composition(v: RunInputs) -> arb:
    return v.quotient(["sensitivity"], [_sizes(v)[1], "noise_std"]) * arb(v.epochs).sqrt()


@defines("expanding.domain", Gdp, slack=1e-11, weight=40.0)
def _domain(v: RunInputs) -> arb:
    size, between, times = _uses(v)
    one, push, far = v.quotient(["sensitivity"], [size, "noise_std"]), 2 * v.lipschitz / v.noise_std, reach(v)
    hides = factor(v) is not None or v.bent(v.lipschitz) is not None
    mu = one * arb(times).sqrt()
    for m in _near(far / push) if push > 0 else [10**15]:
        mu = mu.min(far / arb(m).sqrt() + push * arb(m).sqrt())
    for base in _counts():
        for m in {base, base * between}:
            own = one * arb(-(-m // between)).sqrt()
            if hides and own < mu:
                mu = mu.min(carried(v, m) + own)
    return mu


def _uses(v: RunInputs) -> tuple[int, int, int]:
    """Return the divisor of the smallest batch, the steps from one use to the next, and the number of uses."""
    if v.steps is not None:
        return min(v.batch_size or v.records, v.records), 1, v.steps
    if v.batch_size is None:
        return v.records, 1, v.epochs
    return _sizes(v)[1], v.period(), v.epochs


def _near(x: arb) -> list[int]:
    """Return the integers near a ball, within 1 to 1e15."""
    floor = int(float(x.mid())) if x < 1e15 else 10**15
    return [m for m in range(floor - 1, floor + 3) if 1 <= m <= 10**15] or [1]


def harmonic(m: int, ratio: arb) -> arb:
    """Return 1/(q S_1) + ... + 1/(q S_m) or slightly more, S_i = q^-1 + ... + q^-i: 1 + 1/2 + ... + 1/m at q = 1."""
    if ratio == 1:
        return arb(m + 1).digamma() + arb.const_euler()
    log, shrunk = ratio.log(), -(-ratio.log()).expm1()
    first = sum((shrunk / -(-log * j).expm1() for j in range(1, min(m, 64) + 1)), arb(0))
    return first if m <= 64 else first + shrunk * (m - 64 + _tail(log, arb(m)) - _tail(log, arb(64)))


def _tail(log: arb, x: arb) -> arb:
    """Return the integral of 1/(e^(log x) - 1) to x + 1/2, plus two Euler-Maclaurin terms for a sum."""
    x = x + arb(0.5)
    u = 1 / (log * x).expm1()
    slope = -log * u * (1 + u)
    return (-(-log * x).expm1()).log() / log - slope / 24 + 7 * square(log) * slope * (1 + 6 * u * (1 + u)) / 5760


def _earlier(v: RunInputs, c: arb | None, one: arb, period: int) -> arb:
    """Return the cost of all uses but the last."""
    one_pass = one / room_of(c, period).sqrt()
    costs = [(v.epochs - 1) * square(one_pass)]
    if v.diameter is not None and v.epochs > 1:
        for j in (0, *_counts()):
            if m := (j + 1) * period - 1:
                costs.append(square(carried(v, m) + one_pass * arb(j).sqrt()))
    return least(*costs)


@defines("expanding.cyclic", Gdp, slack=1e-11, weight=20.0)
def _cyclic(v: RunInputs) -> arb:
    (size, tail), c = v.batch(), factor(v)
    one = v.quotient(["sensitivity"], [size, "noise_std"])
    mu = (_earlier(v, c, one, v.period()) + square(one) / room_of(c, tail)).sqrt()
    return mu if v.diameter is None or tail == 1 else mu.min(carried(v, tail - 1))


@defines("expanding.once", Profile, slack=5e-3, weight=40.0, limit=f"{MOST_POSITIONS} steps a pass")
def _once(v: RunInputs) -> arb:
    c, steps = factor(v), v.period()
    if steps > MOST_POSITIONS:
        raise OutOfReach(f"more than {MOST_POSITIONS} steps in a pass")
    total, k = arb(0), steps
    for count, records, divisor in v.sizes():
        one = v.quotient(["sensitivity"], [divisor, "noise_std"])
        base = _earlier(v, c, one, steps)
        for _ in range(count):
            delta = log_delta(v.epsilon, (base + square(one) / room_of(c, k)).sqrt()).exp()
            total += delta * records / v.records
            k -= 1
    return log(total)
