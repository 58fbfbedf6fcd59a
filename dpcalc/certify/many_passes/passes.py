"""Definitions of `multi_epoch`, `noisy_gd`, `unlearning` and `shuffled_epochs.once_laplace`: several passes.

With Laplace noise and hidden iterates, the steps of a whole pass hide every use of the record but the last. These
guarantees hold from every state, so they compose. The curve of several steps is the least of three: that of the
record's own step, that of the mixture of Gaussians over the exponential variances of its noise, and that of equal
shares composed. For `unlearning` the steps hide an initial distance.
"""

from __future__ import annotations

from flint import arb

from dpcalc.certify.guarantee import Composition, Gdp, Profile, Rdp
from dpcalc.certify.numerics.balls import OutOfReach, composed, least, log_step, mixture, power, settle, square
from dpcalc.certify.numerics.composition import Part
from dpcalc.certify.one_pass.contraction import averaged
from dpcalc.certify.one_pass.iteration import hull_cost, steps_of
from dpcalc.certify.released.compositions import delta_of, laplace_step
from dpcalc.certify.runs.divergence import laplace_left
from dpcalc.certify.runs.run import RunInputs, passes_cost, quadratic_cost, restarts_cost, room
from dpcalc.certify.table import defines
from dpcalc.model.quantities import Noise


@defines("multi_epoch.cyclic", Gdp)
def _cyclic(v: RunInputs) -> arb:
    r, k = v.ratio()
    return r * (arb(v.epochs - 1) / v.period() + arb(1) / k).sqrt()


@defines("multi_epoch.cyclic_rdp", Rdp)
def _cyclic_rdp(v: RunInputs) -> arb:
    r, k = v.ratio()
    return v.order * r * r / 2 * (arb(v.epochs - 1) / v.period() + arb(1) / k)


@defines("multi_epoch.cyclic_contraction", Gdp, slack=1e-11)
def _cyclic_contraction(v: RunInputs) -> arb:
    r, k = v.ratio()
    return r * passes_cost(v.period(), k, v.epochs, v.contraction_factor()).sqrt()


@defines("multi_epoch.cyclic_domain", Gdp, slack=1e-8, weight=15.0)
def _cyclic_domain(v: RunInputs) -> arb:
    (r, k), size = v.ratio(), v.batch()[0]
    reach = v.diameter * size / (v.step_size * v.sensitivity)
    return r * restarts_cost(v.period(), k, v.epochs, v.contraction_factor(), reach).sqrt()


@defines("multi_epoch.composition", Gdp)
def _composition(v: RunInputs) -> arb:
    return v.ratio()[0] * arb(v.epochs).sqrt()


@defines("multi_epoch.quadratic", Gdp, lower=True)
def _quadratic(v: RunInputs) -> arb:
    (r, k), q = v.ratio(), arb(1 - v.exact("step_size") * max(v.exact("strong_convexity"), -v.exact("smoothness")))
    return r * quadratic_cost(q, v.period(), k, v.epochs).sqrt()


_MOST_SHARES = 1500


def full_ratio(v: RunInputs) -> arb:
    """Return Delta/(n sigma)."""
    return v.quotient(["sensitivity"], [v.records, "noise_std"])


@defines("noisy_gd.contraction", Gdp)
def _gd_contraction(v: RunInputs) -> arb:
    return full_ratio(v) * passes_cost(1, 1, v.steps, v.contraction_factor()).sqrt()


@defines("noisy_gd.domain", Gdp, slack=1e-8, weight=10.0)
def _gd_domain(v: RunInputs) -> arb:
    reach = v.diameter * v.records / (v.step_size * v.sensitivity)
    return full_ratio(v) * restarts_cost(1, 1, v.steps, v.contraction_factor(), reach).sqrt()


@defines("noisy_gd.composition", Gdp)
def _gd_composition(v: RunInputs) -> arb:
    return full_ratio(v) * arb(v.steps).sqrt()


def _fading(v: RunInputs) -> tuple[arb, arb]:
    """Return (a r^2, eta m)."""
    r = full_ratio(v)
    return v.order * r * r, v.step_size * v.strong_convexity


@defines("noisy_gd.langevin", Rdp)
def _langevin(v: RunInputs) -> arb:
    scale, x = _fading(v)
    return 2 * scale / x * -(-x * v.steps / 2).expm1()


@defines("noisy_gd.langevin_refined", Rdp)
def _langevin_refined(v: RunInputs) -> arb:
    scale, x = _fading(v)
    y = x * v.steps
    rho = y / 4 if y <= 1 else square(1 - (-(y - 1) / 2).exp() / 2)
    if not (y <= 1 or y > 1):  # at y = 1 both are 1/4
        rho = rho.union(y / 4)
    return 2 * scale / x * rho


@defines("noisy_gd.quadratic", Gdp, lower=True)
def _gd_quadratic(v: RunInputs) -> arb:
    q = arb(1 - v.exact("step_size") * max(v.exact("strong_convexity"), -v.exact("smoothness")))
    return full_ratio(v) * quadratic_cost(q, 1, 1, v.steps).sqrt()


@defines("noisy_gd.langevin_lower", Rdp, lower=True)
def _langevin_lower(v: RunInputs) -> arb:
    scale, x = _fading(v)
    return scale / (2 * x) * -(-x * v.steps).expm1()


@defines("noisy_gd.laplace", Profile, slack=1e-9, weight=20.0, limit=f"{_MOST_SHARES} steps")
def _gd_laplace(v: RunInputs) -> arb:
    """Return the minimum over h = 1, 2, 3, 4, 6, 8, 12, ... and T of h equal shares of the last h steps, composed.

    Raises:
        OutOfReach: more than 1500 steps.
    """
    if v.steps > _MOST_SHARES:
        raise OutOfReach(f"a composition over more than {_MOST_SHARES} steps")
    powers = {k << j for j in range(v.steps.bit_length()) for k in (1, 3)}
    ways = [log_step(Noise.LAPLACE, v.epsilon, _share(v, 1))]
    ways += [composed(h * _share(v, h), h, v.epsilon) for h in sorted({v.steps, *powers}) if 1 < h <= v.steps]
    return least(*ways)


def _share(v: RunInputs, last: int) -> arb:
    """Return the share of each of the last h steps, in units of the noise."""
    use, c = v.quotient(["sensitivity"], [v.records, "scale"]), v.contraction_factor()

    def powers(terms: int) -> arb:
        return arb(terms) if c == 1 else (1 - power(c, terms)) / (1 - c)

    whole = use * powers(v.steps) / powers(last)
    if v.diameter is None:
        return whole
    return least(whole, use + v.quotient(["diameter"], ["step_size", "scale"]) * power(c, last) / powers(last))


_LIMIT = "uses that more than 2000 steps hide"
_FEW = 12  # the most shares that are composed
_CLOSE = 24  # sufficient relative bits of a delta
_DEEPEST = 2048  # beyond these bits the upper end of its ball replaces a cancelling delta


def _hidden(ratio: arb, steps: int) -> Part:
    """Return the part of one use of size ``ratio`` in scales, hidden by ``steps`` steps including its own."""
    alone = laplace_step(ratio)
    if steps == 1:
        return Part(alone, 1, ratio)
    counts = {*range(2, min(steps, _FEW) + 1), min(steps, 10 * _FEW)}

    def curve(z: arb) -> arb:
        delta = alone(z)
        if not delta > 0:
            return delta
        mixed = settle(lambda: mixture(ratio, steps - 1, z).exp(), _CLOSE, _DEEPEST)
        delta = delta.min(mixed if mixed.is_finite() else arb(1))
        if 2 * z < ratio:  # shares are better only near the largest loss
            return delta
        for count in counts:
            delta = delta.min(delta_of(composed(ratio, count, z)))
        return delta

    return Part(curve, 1, ratio if steps <= _FEW else None)


@defines("multi_epoch.laplace", Composition, weight=20000.0, limit=_LIMIT)
def _laplace_passes_cyclic(v: RunInputs) -> list[Part]:
    divisor, tail = v.batch()
    ratio = v.quotient(["sensitivity"], [divisor, "scale"])
    return [*_earlier(ratio, v), _hidden(ratio, tail)]


@defines("shuffled_epochs.once_laplace", Composition, weight=20000.0, limit=_LIMIT)
def _once(v: RunInputs) -> list[Part]:
    ratio = v.quotient(["sensitivity"], [min(divisor for _, _, divisor in v.sizes()), "scale"])
    alone = laplace_step(ratio)

    def last(z: arb) -> arb:
        delta = alone(z)
        return delta.min(delta_of(averaged(v.changed(epsilon=z), laplace_left))) if delta > 0 else delta

    return [*_earlier(ratio, v), Part(last, 1, ratio)]


def _earlier(ratio: arb, v: RunInputs) -> list[Part]:
    """Return the uses before the last, each hidden by a whole pass."""
    return [_hidden(ratio, v.period())._replace(copies=v.epochs - 1)] if v.epochs > 1 else []


def _factor(v: RunInputs) -> arb:
    """Return the factor of a step."""
    return v.contraction_factor() if v.contraction is None else v.contraction


def _sum(c: arb, steps: int, count: int) -> arb:
    """Return 1 + c^steps + ... + c^(steps (count-1))."""
    return arb(count) if c == 1 else (1 - power(c, steps * count)) / (1 - power(c, steps))


def _left(v: RunInputs, distance: arb) -> arb:
    """Return mu of an initial distance after the steps."""
    c = _factor(v)
    return distance * power(c, v.clean_steps) / (v.step_size * v.noise_std * room(c, v.clean_steps).sqrt())


def _capped(v: RunInputs, distance: arb) -> arb:
    """Return the lesser of a distance and the diameter."""
    return distance if v.diameter is None else distance.min(v.diameter)


@defines("unlearning.distance", Gdp)
def _distance(v: RunInputs) -> arb:
    return _left(v, _capped(v, v.start_distance * _sum(_factor(v), v.clean_steps, v.requests or 1)))


@defines("unlearning.schedule", Gdp, slack=1e-11, weight=3.0)
def _schedule(v: RunInputs) -> arb:
    s = steps_of(v)
    return hull_cost(s.shift, s.factor, s.scale, _capped(v, v.start_distance)).sqrt() / v.noise_std


@defines("unlearning.minimiser", Gdp)
def _minimiser(v: RunInputs) -> arb:
    apart = v.sensitivity / v.records + 2 * (v.gradient_norm or arb(0))
    return _left(v, _capped(v, apart / v.strong_convexity))


@defines("unlearning.run", Gdp)
def _run(v: RunInputs) -> arb:
    moved = v.step_size * v.sensitivity / v.batch_size
    return _left(v, _capped(v, moved * _sum(_factor(v), v.records // v.batch_size, v.epochs)))


@defines("unlearning.whole_run", Gdp)
def _whole_run(v: RunInputs) -> arb:
    cost = passes_cost(v.records // v.batch_size, v.clean_steps + 1, v.epochs, _factor(v))
    return v.sensitivity / (v.batch_size * v.noise_std) * cost.sqrt()
