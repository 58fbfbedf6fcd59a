"""Reference quantities of what an attacker can do, of mu, of tuning and of groups: they rename inputs and call."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcalc.notions import gaussian, pld
from dpcalc.notions.curves import Curve
from dpcalc.notions.guarantee import Box, Composition, Gdp, Guarantee, Profile, Rdp
from dpcalc.notions.least_mu import from_points, hull, regret
from dpcalc.notions.randomised_response import boxes_log_delta
from dpcalc.notions.trade_off import TradeOff
from dpcalc.notions.tuning import Law, Tuning, log_ratio, mean_of, tuned, tuned_renyi, tuning_of
from dpcalc.numerics.floats import log_sum_exp

from .published import odds_tail

RunInputs = Mapping[str, Any]


def _number(i: RunInputs, name: str) -> float:
    return float(i[name])


def _box(i: RunInputs, epsilon: str = "epsilon", delta: str = "delta") -> Box:
    value = float(i.get(delta, 0.0))
    return Box(float(i[epsilon]), math.log(value) if value else -math.inf)


def positions(count: int) -> Profile:
    """Return the mean of delta_G(.; k^-1/2) over k = 1..count."""

    def log_delta(epsilon: float) -> float:
        terms = [gaussian.log_delta(mu=k**-0.5, epsilon=epsilon) for k in range(1, count + 1)]
        return min(0.0, log_sum_exp(terms) - math.log(count) + 1e-14)

    return Profile(log_delta)


def _part(i: RunInputs) -> Guarantee:
    """Return the guarantee that a case is about."""
    if "profile" in i:
        return Gdp(1.0) if "dG(eps;1)" in i["profile"] else positions(int(i["n"]))
    if "laplace_shift_over_scale" in i:
        return Composition([(pld.laplace(ratio=_number(i, "laplace_shift_over_scale")), 1)])
    if "sampling" in i:
        rate, mu = _number(i, "sampling"), 1.0 / _number(i, "noise_multiplier")
        return Composition([(pld.removed(rate=rate, mu=mu), 1)])
    if "mu" in i and "epsilon" not in i:
        return Gdp(_number(i, "mu"))
    if "rho" in i:
        rho = _number(i, "rho")
        return Rdp(lambda order: rho * order)
    if "rdp" in i:
        value = _number(i, "rdp")
        return Rdp(lambda order: value, (_number(i, "order"),))
    return _box(i)


def _attack(i: RunInputs) -> TradeOff:
    return _part(i).trade_off()


def _grid() -> list[tuple[float, float]]:
    return [(k / 10.0, gaussian.log_delta(mu=1.0, epsilon=k / 10.0)) for k in range(61)]


def _profile(i: RunInputs) -> Curve:
    """Return the curve of a case that is about one epsilon of it."""
    part = _part({name: value for name, value in i.items() if name not in ("epsilon", "group")})
    return part.privacy_profile()


def _regret(i: RunInputs) -> float:
    if i["mu"] == "least":
        return _box(i).least_mu(-20.0).regret
    return regret(positions(int(i["n"])).profile, _number(i, "mu"), 40.0)


def _matching(i: RunInputs) -> float:
    """Return mu with delta_G(epsilon; mu) = delta(epsilon)."""
    epsilon = _number(i, "epsilon")
    return gaussian.largest_mu(epsilon=epsilon, log_delta_target=_profile(i)(epsilon))


def _delta(i: RunInputs) -> float:
    """Return delta at an epsilon, of a group where there is one."""
    epsilon = _number(i, "epsilon")
    if "group" in i:
        return math.exp(Gdp(_number(i, "mu")).grouped(int(i["group"])).log_delta(epsilon).value)
    return math.exp(_profile(i)(epsilon))


def _law(i: RunInputs) -> Tuning:
    if "poisson_mean" in i:
        return tuning_of(Law.POISSON, _number(i, "poisson_mean"))
    eta, gamma = _number(i, "eta"), _number(i, "gamma")
    law = Law.GEOMETRIC if eta == 1.0 else Law.LOGARITHMIC
    return tuning_of(law, 1.0 / gamma if eta == 1.0 else _mean(i))


def _mean(i: RunInputs) -> float:
    return mean_of(_number(i, "gamma"), _number(i, "eta"))


def _tuned(i: RunInputs) -> float:
    base = Gdp(_number(i, "mu"))
    return tuned_renyi(base, base.privacy_profile(), _law(i), _number(i, "order"))


def _tuned_epsilon(i: RunInputs) -> float:
    forms = tuned(Gdp(_number(i, "mu")), _law(i))
    return next(form for form in forms if isinstance(form, Profile)).epsilon(math.log(_number(i, "delta"))).value


def _tuned_pure(i: RunInputs) -> float:
    found = tuned(_box(i), _law(i))[0]
    assert isinstance(found, Box)
    return found.epsilon0


ATTACKS: dict[str, Callable[[RunInputs], float | dict[str, float]]] = {
    "risk_tpr": lambda i: _attack(i).tpr(_number(i, "fpr")),
    "risk_ln_tpr": lambda i: _attack(i).log_tpr(math.log(_number(i, "fpr"))),
    "risk_advantage": lambda i: _attack(i).advantage(),
    "risk_bayes_success": lambda i: _attack(i).success(_number(i, "prior")),
    "risk_reconstruction": lambda i: _attack(i).reconstruction(_number(i, "kappa")),
    "risk_ppv": lambda i: _attack(i).predictive_value(_number(i, "fpr"), _number(i, "prior")),
    "risk_loss_tail_from_profile": lambda i: odds_tail(_part(i).privacy_profile(), _number(i, "loss")),
    "risk_regret": _regret,
    "risk_mu_matching_delta": _matching,
    "risk_least_mu_pure_dp": lambda i: _box(i).least_mu(-20.0).mu,
    "risk_least_mu": lambda i: _part(i).least_mu(-20.0).mu,
    "risk_mu_from_points": lambda i: max(from_points(hull(_grid()))),
    "risk_delta0_from_points": lambda i: math.exp(_grid()[-1][1]),
    "risk_mu_window": lambda i: _part(i).least_mu(math.log(_number(i, "delta0"))).mu,
    "risk_epsilon_at_delta0": lambda i: positions(int(i["n"])).epsilon(math.log(_number(i, "delta0"))).value,
    "risk_tnb_mean": _mean,
    "risk_rdp_tuned_new": _tuned,
    "risk_epsilon_tuned_profile": _tuned_epsilon,
    "risk_epsilon_tuned_pure": _tuned_pure,
    "risk_ratio_R": lambda i: math.exp(log_ratio(Gdp(_number(i, "mu")).privacy_profile(), _number(i, "gamma"))),
    "risk_delta": _delta,
    "risk_delta_composed": lambda i: math.exp(
        boxes_log_delta(_number(i, "mu"), [(_box(i, "epsilon0", "delta0").point, 1)], _number(i, "at_epsilon"))
    ),
}
