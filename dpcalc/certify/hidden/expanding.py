"""Definitions of `expanding`: several passes of maps that may drive two runs apart."""

from __future__ import annotations

from flint import arb, fmpq

from dpcalc.certify.guarantee import Gdp, Profile
from dpcalc.certify.numerics.balls import OutOfReach, least, log, square
from dpcalc.certify.numerics.gaussian import log_delta
from dpcalc.certify.runs.run import RunInputs
from dpcalc.certify.table import defines
from dpcalc.model.quantities import LossClass

MOST_POSITIONS = 1500


def _counts() -> list[int]:
    """Return the whole numbers of at most three binary digits, up to 7 2^57."""
    return [1, 2, 3, *(j * 2**power for power in range(58) for j in (4, 5, 6, 7))]


def factor(v: RunInputs) -> arb | None:
    """Return the Lipschitz factor c >= 1 of a step's map; None where it has none."""
    if v.loss_class not in (LossClass.SMOOTH, LossClass.CONVEX_SMOOTH) or v.smoothness is None:
        return None
    turned = v.exact("step_size") * v.exact("smoothness")
    return arb(1 + turned if v.loss_class == LossClass.SMOOTH else max(turned - 1, fmpq(1)))


def room_of(c: arb | None, steps: int) -> arb:
    """Return 1 + c^-2 + ... + c^(-2 (steps-1)); 1 where there is no factor."""
    if c is None:
        return arb(1)
    if c == 1:
        return arb(steps)
    shrink = 2 * c.log()
    return (-shrink * steps).expm1() / (-shrink).expm1()


def reach(v: RunInputs) -> arb:
    """Return the diameter in units of a step's noise."""
    return v.quotient(["diameter"], ["step_size", "noise_std"])


def _sizes(v: RunInputs) -> tuple[int, int, int]:
    """Return the largest and the smallest divisor of a batch, and the steps of a pass."""
    divisors = [divisor for _, _, divisor in v.sizes()]
    return max(divisors), min(divisors), v.period()


@defines("expanding.composition", Gdp)
def _composition(v: RunInputs) -> arb:
    return v.quotient(["sensitivity"], [_sizes(v)[1], "noise_std"]) * arb(v.epochs).sqrt()


@defines("expanding.domain", Gdp, slack=1e-11, weight=40.0)
def _domain(v: RunInputs) -> arb:
    size, between, times = _uses(v)
    one, push, far = v.quotient(["sensitivity"], [size, "noise_std"]), 2 * v.lipschitz / v.noise_std, reach(v)
    c, convex = factor(v), v.loss_class in (LossClass.CONVEX, LossClass.CONVEX_SMOOTH)
    mu = one * arb(times).sqrt()
    for m in _near(far / push) if push > 0 else [10**15]:
        mu = mu.min(far / arb(m).sqrt() + push * arb(m).sqrt())
    for base in _counts():
        for m in {base, base * between}:
            own = one * arb(-(-m // between)).sqrt()
            if c is not None:
                mu = mu.min(c * far / room_of(c, m).sqrt() + own)
            if convex:
                mu = mu.min((square(far) / m + square(push) * harmonic(m)).sqrt() + own)
    return mu


def _uses(v: RunInputs) -> tuple[int, int, int]:
    """Return the divisor of the smallest batch, the steps from one use to the next, and the number of uses."""
    if v.steps is not None:
        return min(v.batch_size or v.records, v.records), 1, v.steps
    if v.batch_size is None:
        return v.records, 1, v.epochs
    return _sizes(v)[1], v.period(), v.epochs


def _near(x: arb) -> list[int]:
    """Return whole numbers about a ball, from 1 to 1e15."""
    floor = int(float(x.mid())) if x < 1e15 else 10**15
    return [m for m in range(floor - 1, floor + 3) if 1 <= m <= 10**15] or [1]


def harmonic(m: int) -> arb:
    """Return 1 + 1/2 + ... + 1/m."""
    return arb(m + 1).digamma() + arb.const_euler()


def _earlier(v: RunInputs, c: arb | None, one: arb, period: int) -> arb:
    """Return what all uses but the last cost."""
    one_pass = one / room_of(c, period).sqrt()
    costs = [(v.epochs - 1) * square(one_pass)]
    if c is not None and v.diameter is not None and v.epochs > 1:
        for j in (0, *_counts()):
            if m := (j + 1) * period - 1:
                costs.append(square(c * reach(v) / room_of(c, m).sqrt() + one_pass * arb(j).sqrt()))
    return least(*costs)


@defines("expanding.cyclic", Gdp, slack=1e-11, weight=20.0)
def _cyclic(v: RunInputs) -> arb:
    (size, tail), c = v.batch(), factor(v)
    one = v.quotient(["sensitivity"], [size, "noise_std"])
    mu = (_earlier(v, c, one, v.period()) + square(one) / room_of(c, tail)).sqrt()
    return mu if v.diameter is None or tail == 1 or c is None else mu.min(c * reach(v) / room_of(c, tail - 1).sqrt())


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
