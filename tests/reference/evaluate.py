"""The one adapter between reference cases and dpcalc: it renames inputs and calls public functions, nothing else."""

import ast
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

import dpcalc
from dpcalc.account import loader as run_loader
from dpcalc.engine.commands import COMMANDS
from dpcalc.engine.evaluate import guarantee_of
from dpcalc.engine.question import run_of
from dpcalc.engine.solving.search import DIRECTIONS, extreme
from dpcalc.model import loss as losses
from dpcalc.model import loss_class as loss
from dpcalc.model.chain import Chain
from dpcalc.model.draft import Description
from dpcalc.model.numbers import parse_log
from dpcalc.model.run import describe
from dpcalc.notions import conversions, gaussian, groups, optimal_composition, pld, profiles, renyi
from dpcalc.notions.guarantee import Box, Composition, Gdp, Profile
from dpcalc.notions.randomised_response import at_negative
from dpcalc.numerics import binomial, clopper_pearson, discounted_sums, isotonic, normal, roots, sums
from dpcalc.numerics.floats import down, exp_up, product_up, quotient_up, ratio_up, up
from dpcalc.theorems.batch_layout import layout
from dpcalc.theorems.contraction import (
    contraction,
    laplace,
    online,
    recursion,
    shuffle,
    shuffle_curves,
    stepwise,
)
from dpcalc.theorems.contraction.stream_noise import Stream
from dpcalc.theorems.expanding import expanding_passes
from dpcalc.theorems.hidden.fresh_places import SamePlaces
from dpcalc.theorems.holder import dp_sgd, holder
from dpcalc.theorems.holder.published_gradient_noise import Theorem11
from dpcalc.theorems.lower import largest_sums, quadratic
from dpcalc.theorems.many_passes import multi_epoch, noisy_gd, shuffled_epochs
from dpcalc.theorems.many_passes.repeated_allocation import Pace, rate_in_range
from dpcalc.theorems.one_pass import iteration, random_stop
from dpcalc.theorems.record import lookup
from dpcalc.theorems.risk import generalisation, holder_sgd, langevin, tasks, utility
from dpcalc.theorems.risk.averaging import averaged_risk
from dpcalc.theorems.risk.sgd import Sgd
from dpcalc.theorems.sampled import hidden_past, noisy_sgd, sampled_hidden, sampled_steps
from dpcalc.theorems.sampled.hidden_past import Past, Plan
from dpcalc.theorems.setting import Setting
from dpcalc.training.audit import one_run
from dpcalc.training.audit.estimate import Event, Seen
from tests.formulas import evaluated, number

from . import published
from .attacks import ATTACKS
from .correlated import CORRELATED


class _Inputs:
    """Decimal strings as floats, integers, arrays and logarithms."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw

    def __call__(self, name: str) -> float:
        return float(self.raw[name])

    def whole(self, name: str) -> int:
        return int(float(self.raw[name]))

    def log(self, name: str) -> float:
        return parse_log(str(self.raw[name]))

    def log_or_none(self, name: str) -> float:
        return self.log(name) if float(self.raw[name]) > 0.0 else -math.inf

    def array(self, name: str) -> np.ndarray:
        return np.array([float(x) for x in self.raw[name]])


def _pass(i: _Inputs, *, at: str = "t") -> dict[str, Any]:
    return {
        "records": i.whole("n"),
        "index": i.whole(at),
        "sensitivity": 2.0 * i("L"),
        "noise_std": i("sigma"),
    }


def _minibatch(i: _Inputs) -> float:
    n, b, j = i.whole("n"), i.whole("b"), i.whole("batch_index")
    # The reference divides every batch by b, a short last one too: as if it were full.
    return evaluated(
        iteration.pnsgd_rdp, records=-(-n // b) * b, index=j * b, batch_size=b, sensitivity=2.0 * i("L"),
        noise_std=i("sigma"), order=i("alpha"),
    )  # fmt: skip


def _profile(log_delta: float) -> float:
    return exp_up(log_delta)


def _allocation(i: _Inputs) -> float:
    cap = float(i.raw["D"]) if "D" in i.raw else None
    start = float(i.raw.get("z0", 0.0))
    return isotonic.allocate(i.array("s"), i.array("v"), i.array("c"), start=start, cap=cap).cost


def _epsilon(theorem: Callable[[iteration.SinglePass], Profile], i: _Inputs) -> float:
    return theorem(iteration.SinglePass(**_pass(i))).epsilon(i.log("delta")).value


def _printed(i: _Inputs) -> float:
    run = Setting(records=i.whole("n"), sensitivity=2.0 * i("L"), noise_std=i("sigma"))
    return random_stop.stop_printed(run, i("alpha"))


def _one_use(i: _Inputs) -> float:
    schedule = Chain(
        step_size=i.array("eta"), noise=i.array("sigma"), contraction=i.array("c"), shift=None, spend=None, path=""
    )
    mu = evaluated(
        iteration.scheduled_pnsgd, schedule=schedule, index=i.whole("t"), sensitivity=2.0 * i("L"), noise_std=1.0
    )
    return product_up(mu, mu)


def _heights(i: _Inputs, name: str) -> np.ndarray:
    """An array written as arithmetic in j, such as ``2+j/10 (j=1..n)``."""
    tree = ast.parse(str(i.raw[name]).split("(j=")[0].strip(), mode="eval")
    allowed = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.Load)
    assert all(isinstance(node, allowed) for node in ast.walk(tree))
    code = compile(tree, name, "eval")
    return np.array([float(eval(code, {"__builtins__": {}}, {"j": Fraction(j)})) for j in range(1, i.whole("n") + 1)])


def _both(log_delta: float) -> dict[str, float]:
    return {"value": exp_up(log_delta) if log_delta <= 0.0 else float("inf"), "log_delta": log_delta}


def _noise(i: _Inputs) -> dict[str, Any]:
    return {"noise": str(i.raw["noise"]), "epsilon": i("eps")}


def _steps(i: _Inputs) -> dict[str, Any]:
    return {
        **_noise(i),
        "scale": i("scale"),
        "sensitivity": 2.0 * i("L"),
        "displacement": i("M"),
        "diameter": i("D"),
        "step_size": i("eta"),
        "records": i.whole("n"),
        "batch_size": 1,
    }


def _at(i: _Inputs) -> dict[str, Any]:
    return {**_steps(i), "index": i.whole("i")}


def _log1p_integral(x: float, k: float, power: float) -> float:
    """Return the integral of ln(1 + k t^-power) over t >= x, on which a table of the online bounds rests."""
    with mpmath.workdps(40):
        a, u = mpmath.mpf(power), k * mpmath.mpf(x) ** -power
        series = mpmath.hyp2f1(1, 1 - 1 / a, 2 - 1 / a, -u)
        return float(x * (a * u / (a - 1) * series - mpmath.log1p(u)))


def _without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


def _trace(i: _Inputs, rate: float | None = None) -> recursion.Trace:
    return recursion.shift_trace(**_noise(i), first=i("rA"), following=i("rB"), reach=i("rB"), rate=rate)


def _rate(i: _Inputs) -> float:
    return recursion.rate_of(i("c"))


def _uneven(i: _Inputs) -> dict[str, Any]:
    n = i.whole("n")
    chain = Chain(
        step_size=_heights(i, "eta_j"),
        noise=_heights(i, "sigma_j"),
        contraction=np.ones(n),
        shift=None,
        spend=None,
        path="",
        displacement=np.full(n, i("M")),
        probability=_law(i, n),
    )
    return {"schedule": chain, "scale": 1.0, "sensitivity": 2.0 * i("L"), "diameter": i("D"), **_noise(i)}


def _law(i: _Inputs, n: int) -> np.ndarray | None:
    """``uniform on positions a..b``"""
    if "law" not in i.raw:
        return None
    first, last = (int(x) for x in re.findall(r"\d+", str(i.raw["law"])))
    law = np.zeros(n)
    law[first - 1 : last] = 1.0 / (last - first + 1)
    return law


def _tuned(i: _Inputs, kind: str) -> dict[str, Any]:
    return {
        "noise": kind,
        "records": i.whole("n"),
        "c1": i("C1"),
        "c2": i("C2"),
        "lipschitz": i("L"),
        "displacement": i("M"),
        "diameter": i("D"),
        "step_size": i("eta"),
        "loss_class": "lipschitz",
    }


def _tuned_scale(i: _Inputs, kind: str) -> float:
    return float(describe("shuffled", _tuned(i, kind)).values["scale"])


def _tuned_delta(i: _Inputs, kind: str) -> dict[str, float]:
    run = describe("shuffled", _tuned(i, kind))
    return _both(number(lookup("shuffle.product").prove(run), epsilon=i("eps")))


def _plan(i: _Inputs) -> Stream:
    return Stream(
        noise=str(i.raw["noise"]),
        c1=i("C1"),
        c2=i("C2"),
        decay_exponent=i("alpha"),
        displacement=i("M"),
        diameter=i("D"),
        step_size=i("eta"),
    )


def _record(i: _Inputs) -> dict[str, Any]:
    return {
        **_noise(i),
        "index": i.whole("i"),
        "sensitivity": 2.0 * i("L"),
        "c1": i("C1"),
        "c2": i("C2"),
        "decay_exponent": i("alpha"),
        "schedule_factor": 1.0,
        "step_size": i("eta"),
        "displacement": i("M"),
        "diameter": i("D"),
    }


def _scale_for(bound: Callable[..., float], given: dict[str, Any], target: float) -> float:
    return extreme(
        lambda scale: evaluated(bound, **{**given, "scale": scale}) - target,
        DIRECTIONS["noise_std"],
        given["sensitivity"],
        1,
    )


def _epsilon_for(bound: Callable[..., float], given: dict[str, Any], target: float) -> float:
    return Profile(lambda epsilon: evaluated(bound, **{**given, "epsilon": epsilon})).epsilon(target).value


def _gdp_delta(i: _Inputs) -> float | dict[str, float]:
    if "E" in i.raw:
        return _both(Gdp(i("mu")).times(i.whole("E")).log_delta(i("eps")).value)
    return gaussian.delta(mu=i("mu"), epsilon=i("eps"))


def _online_shift_delta(i: _Inputs) -> dict[str, float]:
    plan, index, records = _plan(i), i.whole("i"), i.whole("n")
    if plan.noise == "gaussian":
        mu = online.shift_mu(2.0 * i("L"), plan.total_variance(index, records))
        return _both(gaussian.log_delta(mu=mu, epsilon=i("eps")))
    share = online.shift_share(plan, 2.0 * i("L"), index, records)
    return _both(laplace.composed_shares(share=share, count=records - index + 1, epsilon=i("eps")))


_CONTRACTION: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "theta": lambda i: _both(gaussian.log_delta(mu=i("r"), epsilon=i("eps"))),
    "laplace_hockey_stick": lambda i: _both(recursion.log_one_step("laplace", i("eps"), i("s"))),
    "lemma5_leading_one_minus_theta": lambda i: _both(
        published.complement_leading(epsilon=i("eps"), ratio=i("r"))
    ),
    "c_best": lambda i: loss.contraction(
        step_size=i("eta"), smoothness=i("beta"), strong_convexity=i("rho")
    ),
    "M_paper": lambda i: loss.published_factor(
        step_size=i("eta"), smoothness=i("beta"), strong_convexity=i("rho")
    ),
    "A": lambda i: _both(recursion.log_one_step(**_noise(i), ratio=laplace.own_ratio(2.0 * i("L"), i("scale")))),
    "B": lambda i: _both(recursion.log_one_step(
        **_noise(i), ratio=laplace.later_ratio(i("M"), i("D"), i("eta"), i("scale"))
    )),
    "delta_fixed_index": lambda i: _both(evaluated(contraction.product, **_at(i))),
    "delta_shuffled": lambda i: _both(evaluated(shuffle.product, **_steps(i), last_batch="own")),
    "delta_random_stop_exact": lambda i: _both(evaluated(contraction.stop_product, **_at(i))),
    "delta_random_stop_published": lambda i: _both(
        contraction.log_published(contraction.Pass(**_without(_steps(i), "epsilon"), index=1), i("eps"))
    ),
    "delta_shuffled_and_random_stop": lambda i: _both(evaluated(shuffle.stop_product, **_steps(i))),
    "delta_heterogeneous_fixed": lambda i: _both(evaluated(stepwise.product, **_uneven(i), index=i.whole("i"))),
    "delta_heterogeneous_worst_index": lambda i: _both(evaluated(stepwise.product, **_uneven(i))),
    "delta_heterogeneous_shuffled": lambda i: _both(evaluated(stepwise.shuffled_product, **_uneven(i))),
    "delta_position_law": lambda i: _both(evaluated(stepwise.shuffled_product, **_uneven(i))),
    "delta_minibatch_shuffled": lambda i: _both(evaluated(shuffle.product, **{
        **_steps(i), "batch_size": i.whole("batch"),
        "last_batch": "drop" if str(i.raw["drop_last"]).lower() == "true" else "own",
    })),
    "thm3_delta_star": lambda i: _both(
        evaluated(shuffle.limit, noise="laplace", c1=i("C1"), c2=1.0, epsilon=i("eps"))
    ),
    "thm4_delta_star": lambda i: _both(
        evaluated(shuffle.limit, noise="gaussian", c1=i("C1"), c2=1.0, epsilon=i("eps"))
    ),
    "nonlinear_limit_star": lambda i: _both(
        evaluated(shuffle.nonlinear_limit, noise="laplace", c1=i("C1"), c2=1.0, epsilon=i("eps"))
    ),
    "thm3_v": lambda i: _tuned_scale(i, "laplace"),
    "thm4_sigma": lambda i: _tuned_scale(i, "gaussian"),
    "thm3_delta": lambda i: _tuned_delta(i, "laplace"),
    "thm4_delta": lambda i: _tuned_delta(i, "gaussian"),
    "lambertw": lambda i: roots.lambert_w_of_exp(math.log(i("z")))[1],
    "lambertw_from_log": lambda i: roots.lambert_w_of_exp(i("log_z"))[1],
    "nonlinear_delta_after_k_steps": lambda i: _both(recursion.last(_trace(i), i.whole("k"))),
    "nonlinear_delta_shuffled": lambda i: _both(
        contraction.averaged(recursion.total(_trace(i), i.whole("n")), i.whole("n"))
    ),
    "hybrid_delta_after_k_steps": lambda i: _both(recursion.last(_trace(i, _rate(i)), i.whole("k"))),
    "hybrid_delta_shuffled": lambda i: _both(
        contraction.averaged(recursion.total(_trace(i, _rate(i)), i.whole("n")), i.whole("n"))
    ),
    "gdp_shift_mu": lambda i: contraction.shift_mu(
        recursion.shift_log_mu(laplace.own_ratio(2.0 * i("L"), i("sigma")), math.inf, _rate(i), i.whole("k"))
    ),
    "gdp_shift_delta": lambda i: _both(recursion.log_delta_of_log_mu(
        i("eps"),
        recursion.shift_log_mu(laplace.own_ratio(2.0 * i("L"), i("sigma")), math.inf, _rate(i), i.whole("k")),
    )),
    "laplace_shift_delta": lambda i: _both(laplace.composed_of(
        ratio=laplace.own_ratio(2.0 * i("L"), i("v")), count=i.whole("k") + 1, epsilon=i("eps")
    )),
    "online_scale": lambda i: _plan(i).scale(i("j")),
    "online_A": lambda i: _both(_plan(i).log_first(i("eps"), 2.0 * i("L"), i.whole("i"))),
    "online_delta": lambda i: _both(evaluated(online.product, **_record(i), records=i.whole("n"))),
    "online_delta_limit": lambda i: _both(evaluated(online.limit, **_record(i))),
    "online_delta_star_upper": lambda i: _both(evaluated(online.limit_above, **_record(i))),
    "online_delta_star_lower": lambda i: _both(evaluated(online.limit_below, **_record(i))),
    "online_integral_logB": lambda i: _plan(i).log_integral(i("eps"), i("lower"), i("upper")),
    "online_n_where_delta_n_equals_delta_star": lambda i: published.overtaken_at(
        _plan(i), index=i.whole("i"), epsilon=i("eps")
    ),
    "int_X_inf_log1p_k_x^-alpha": lambda i: _log1p_integral(i("X"), i("k"), i("alpha")),
    "online_delta_uniform_position": lambda i: _both(published.uniform_position(
        _plan(i), sensitivity=2.0 * i("L"), records=i.whole("n"), epsilon=i("eps")
    )),
    "online_delta_worst_index": lambda i: _both(
        evaluated(online.product, **_record(_Inputs({**i.raw, "i": i.raw["n"]})), records=i.whole("n"))
    ),
    "online_shift_eps0": lambda i: online.shift_share(_plan(i), 2.0 * i("L"), i.whole("i"), i.whole("n")),
    "online_shift_delta": _online_shift_delta,
    "online_shift_mu": lambda i: online.shift_mu(
        2.0 * i("L"), _plan(i).total_variance(i.whole("i"), i.whole("n"))
    ),
    "scale_for_fixed_index": lambda i: _scale_for(
        contraction.product, _at(_given(i)), i.log("target_delta")
    ),
    "scale_for_shuffled": lambda i: _scale_for(
        shuffle.product, {**_steps(_given(i)), "last_batch": "own"}, i.log("target_delta")
    ),
    "scale_for_random_stop": lambda i: _scale_for(
        contraction.stop_product, _at(_given(i)), i.log("target_delta")
    ),
    "scale_for_single_laplace": lambda i: published.least_scale(
        sensitivity=2.0 * i("L"), epsilon=i("eps"), log_delta=i.log("target_delta")
    ),
    "epsilon_for_shuffled": lambda i: _epsilon_for(
        shuffle.product, {**_steps(_Inputs({**i.raw, "eps": 0})), "last_batch": "own"}, i.log("delta")
    ),
    "online_scale_multiplier": lambda i: published.least_multiplier(
        _plan(i), sensitivity=2.0 * i("L"), index=i.whole("i"), records=i.whole("n"), epsilon=i("eps"),
        log_delta=i.log("target_delta"),
    ),
}  # fmt: skip


def _given(i: _Inputs) -> _Inputs:
    """The inputs with a scale to be replaced."""
    return _Inputs({**i.raw, "scale": 1})


def _curve(i: _Inputs) -> Callable[[np.ndarray], np.ndarray]:
    return shuffle_curves.shuffled_product(
        layout(i.whole("n"), 1, "own"), noise=i.raw["noise"], scale=1.0, sensitivity=i("rA"), step_size=1.0,
        displacement=1.0, diameter=i("rB"),
    )  # fmt: skip


def _curve_renyi(i: _Inputs) -> float:
    laplace_noise = i.raw["noise"] == "laplace"
    return profiles.renyi(
        _curve(i), order=i("alpha"), scale=i("rA"), own=shuffle_curves.own_step(i.raw["noise"], i("rA")),
        breaks=(i("rA"), i("rB")) if laplace_noise else (),
    )  # fmt: skip


def _risk(i: _Inputs) -> dict[str, Any]:
    return {
        "lipschitz": i("L"), "smoothness": i("beta"), "strong_convexity": i("lam"), "records": i.whole("n"),
        "dimension": i.whole("d"), "epsilon": i("eps"), "log_delta": i.log("delta"),
    }  # fmt: skip


def _one_order(i: _Inputs) -> dict[str, Any]:
    return {
        "records": i.whole("l"), "batch_size": 1, "last_batch": "own", "epochs": i.whole("E"), "sensitivity": i("r"),
        "noise_std": 1.0, "step_size": 1.0, "smoothness": 1.0,
    }  # fmt: skip


_COMPOSITION: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "compose_homogeneous": lambda i: _both(optimal_composition.log_delta(
        epsilon0=i("eps0"), log_delta0=i.log_or_none("delta0"), count=i.whole("E"), epsilon=i("eps")
    )),
    "compose_homogeneous_epsilon": lambda i: optimal_composition.epsilon(
        epsilon0=i("eps0"), log_delta0=i.log_or_none("delta0"), count=i.whole("E"), log_delta_target=i.log("delta")
    ),
    "tradeoff_eps_delta": lambda i: published.tradeoff(epsilon=i("eps"), delta=i("delta"), level=i("alpha")),
    "gdp_mu_from_pure_dp": lambda i: gaussian.pure_mu(epsilon=i("eps")),
    "rdp_from_shuffled_curve": _curve_renyi,
    "pld_atom_at_zero": lambda i: published.loss_atom(
        noise=i.raw["noise"], own=i("rA"), following=i("rB"), terms=i.whole("n")
    ),
    "compose_curve_exact": lambda i: _both(pld.log_delta(
        [(pld.from_curve(_curve(i)), i.whole("E"))], epsilon=i("eps"), resolution=1 << 16
    ).value),
    "compose_curve_connect_dots": lambda i: _both(pld.on_lattice(
        pld.from_curve(_curve(i)), count=i.whole("E"), step=i("step"), low=i.whole("kmin"), high=i.whole("kmax"),
        epsilon=i("eps"),
    )),
    "cq_delta": lambda i: exp_up(pld.log_delta(
        [(pld.subsampled_gaussian(mu=i("mu"), rate=i("q")), 1)], epsilon=i("eps")
    ).value),
    "clt_mu": lambda i: noisy_sgd.clt_mu(mu=i("mu"), rate=i("p"), steps=i.whole("t")),
    "sgm_rdp": lambda i: published.poisson_rdp(
        order=i.whole("alpha"), rate=i("q"), noise_multiplier=i("sigma")
    ),
    "bok_table4_lr_eps_sgd": lambda i: pld.epsilon(
        [(pld.subsampled_gaussian(mu=float(Fraction(i.raw["mu"])), rate=i("p")), i.whole("steps"))],
        log_delta_target=i.log("delta"),
    ).value,
    "cgd_shuffle_once_delta": lambda i: exp_up(evaluated(shuffled_epochs.once,
        **_one_order(i), strong_convexity=1.0 - i("c"), epsilon=i("eps")
    )),
    "cgd_shuffle_once_rdp": lambda i: published.once_rdp(
        steps=i.whole("l"), epochs=i.whole("E"), ratio=i("r"), order=i("alpha"),
        contraction=i("c"),
    ),
    "chourasia_sigma2": lambda i: langevin.StronglyConvex(**_risk(i)).stated_variance,
    "chourasia_Kstar": lambda i: langevin.StronglyConvex(**_risk(i)).real_steps,
    "chourasia_excess_explicit": lambda i: evaluated(langevin.explicit, **_risk(i)).excess_risk,
    "chourasia_excess_tight": lambda i: evaluated(langevin.iterated, **_risk(i)).excess_risk,
    "nsgd_shift_mu": lambda i: noisy_sgd.shift_mu(
        noisy_sgd.Chain(i.whole("T"), i("c"), i("eta") * i("Delta_over_b"), i("eta") * i("sigma"), i("D")),
        noisy_sgd.Plan(i.whole("T") - i.whole("tau"), i.whole("T") - i.whole("tau"), i("frac")),
    ),
    "nsgd_sample_mu": lambda i: noisy_sgd.sample_mu(i("Delta_over_b") / i("sigma"), i("frac")),
}  # fmt: skip


_QUANTITIES: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    **_CONTRACTION,
    **_COMPOSITION,
    "gdp_delta": _gdp_delta,
    "gdp_ln_delta": lambda i: gaussian.log_delta(mu=i("mu"), epsilon=i("eps")),
    "gdp_eps": lambda i: gaussian.epsilon(mu=i("mu"), log_delta_target=i.log("delta")),
    "gdp_mu": lambda i: gaussian.largest_mu(epsilon=i("eps"), log_delta_target=i.log("delta")),
    "agm_sigma": lambda i: gaussian.noise_std(
        sensitivity=i("sens"), epsilon=i("eps"), log_delta_target=i.log("delta")
    ),
    "classic_sigma": lambda i: conversions.noise_std(
        sensitivity=2.0 * i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "classic_true_delta": lambda i: _profile(
        conversions.true_log_delta(epsilon=i("eps"), log_delta=i.log("delta"))
    ),
    "classic_eps_max": lambda i: conversions.epsilon_max(log_delta=i.log("delta")),
    "rdp_gaussian": lambda i: renyi.gaussian(order=i("alpha"), shift=i("sens"), scale=i("sigma")),
    "renyi_laplace": lambda i: renyi.laplace(order=i("alpha"), shift=i("a"), scale=i("b")),
    "rdp_to_dp_mironov": lambda i: renyi.mironov(order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")),
    "rdp_to_dp_cks": lambda i: renyi.canonne(
        order=float(i.raw.get("alpha", i.raw.get("order"))), rdp=float(i.raw.get("rdp", i.raw.get("rho"))),
        log_delta=i.log("delta"),
    ),
    "rdp_to_dp_alcks": lambda i: renyi.asoodeh(order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")),
    "rdp_to_dp_exact_one_order": lambda i: renyi.exact_one_order(
        order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")
    ),
    "cks_delta": lambda i: _profile(
        renyi.canonne_log_delta(order=i("alpha"), rdp=i("rdp"), epsilon=i("eps"))
    ),
    "zcdp_eps_mironov": lambda i: published.zcdp_epsilon_mironov(rho=i("rho"), log_delta=i.log("delta")),
    "zcdp_eps_cks": lambda i: published.zcdp_epsilon(rho=i("rho"), log_delta=i.log("delta")),
    "zcdp_alpha_cks": lambda i: published.zcdp_order(rho=i("rho"), log_delta=i.log("delta")),
    "thm23_mu": lambda i: evaluated(iteration.pnsgd, **_pass(i), batch_size=1),
    "thm23_rdp": lambda i: evaluated(iteration.pnsgd_rdp, **_pass(i), batch_size=1, order=i("alpha")),
    "thm23_eps": lambda i: gaussian.epsilon(
        mu=evaluated(iteration.pnsgd, **_pass(i), batch_size=1), log_delta_target=i.log("delta")
    ),
    "calib_sigma_thm23": lambda i: random_stop.pnsgd_noise_std(
        steps=i.whole("n") + 1 - i.whole("t"), sensitivity=2.0 * i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "minibatch_rdp": _minibatch,
    "skip_rdp": lambda i: evaluated(random_stop.skip_rdp, **_pass(i), order=i("alpha")),
    "skip_delta": lambda i: _profile(evaluated(random_stop.skip, **_pass(i), epsilon=i("eps"))),
    "skip_eps": lambda i: _epsilon(random_stop.skip, i),
    "stop_rdp": lambda i: evaluated(random_stop.stop_rdp, **_pass(i), order=i("alpha")),
    "stop_delta": lambda i: _profile(evaluated(random_stop.stop, **_pass(i), epsilon=i("eps"))),
    "stop_eps": lambda i: _epsilon(random_stop.stop, i),
    "thm26_paper_rdp": _printed,
    "thm26_harmonic_rdp": lambda i: evaluated(random_stop.stop_harmonic, **_pass(i), order=i("alpha")),
    "thm26_tight_factor": lambda i: random_stop.stop_constant(records=i.whole("n")),
    "harmonic": lambda i: sums.harmonic_up(i.whole("n")),
    "lemma25_factor": lambda i: published.mixture_factor(largest=i("c")),
    "alloc_cost": _allocation,
    "alloc_cost_domain": _allocation,
    "onepass_mu2_schedule": _one_use,
    "multi_epoch_rdp": lambda i: evaluated(multi_epoch.cyclic_rdp,
        **_pass(i, at="i"), batch_size=1, epochs=i.whole("E"), order=i("alpha")
    ),
    "thm35_rdp": lambda i: evaluated(multi_epoch.cyclic_rdp,
        **_pass(i, at="i"), batch_size=1, epochs=i.whole("n"), order=i("alpha")
    ),
    "thm35_sigma_cor": lambda i: published.corollary_noise_std(
        lipschitz=i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "thm35_sigma_cor_check": lambda i: published.corollary_epsilon(
        lipschitz=i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "calib_sigma_multi_epoch": lambda i: published.cyclic_noise_std(
        records=i.whole("n"), index=i.whole("n"), batch_size=1, epochs=i.whole("E"), sensitivity=2.0 * i("L"),
        epsilon=i("eps"), log_delta=i.log("delta"),
    ),
}  # fmt: skip


def _slowed(i: _Inputs, step_size: float = 1.0) -> dict[str, float]:
    """A step size, a smoothness and a strong convexity that contract by c; 1 - c is formed from the decimal."""
    m = float((1 - Decimal(str(i.raw["c"]))) / Decimal(str(step_size)))
    return {"step_size": step_size, "smoothness": m or 1.0, "strong_convexity": m}


def _descent(i: _Inputs) -> dict[str, Any]:
    """Full-batch steps of which one moves r of its noise."""
    return {"records": 1, "steps": i.whole("t"), "sensitivity": i("r"), "noise_std": 1.0}


def _cyclic(i: _Inputs, *, at: str = "l") -> dict[str, Any]:
    """Cyclic single-record batches, a use moving r of its noise."""
    return {
        "records": i.whole("l"), "index": i.whole(at), "batch_size": 1, "epochs": i.whole("E"),
        "sensitivity": i("r"), "noise_std": 1.0,
    }  # fmt: skip


def _on_domain(i: _Inputs, by: str) -> dict[str, Any]:
    return {"sensitivity": i(by), "noise_std": i("sigma"), "step_size": i("eta"), "diameter": i("D")}


def _cyclic_domain(i: _Inputs) -> float:
    return evaluated(multi_epoch.cyclic_domain,
        records=i.whole("l"), index=i.whole("i"), batch_size=1, epochs=i.whole("E"), smoothness=1.0,
        strong_convexity=0.0, **_on_domain(i, "Delta_over_b"),
    )  # fmt: skip


def _descent_domain(i: _Inputs) -> float:
    given = _on_domain(i, "Delta_over_n")
    return evaluated(noisy_gd.domain, records=1, steps=i.whole("T"), **{**given, **_slowed(i, given["step_size"])})


def _langevin(i: _Inputs) -> dict[str, Any]:
    """A run with noise sqrt(2 eta) sigma, as the command line reads --langevin-std."""
    lam = i("lam") if "lam" in i.raw else 1.0
    given = {
        "records": i.whole("n"), "steps": i.whole("K"), "lipschitz": i("Sg"), "langevin_std": i("sigma"),
        "step_size": i("eta"), "smoothness": float(i.raw.get("beta", lam)), "strong_convexity": lam,
        "adjacency": "null-record",
    }  # fmt: skip
    run = describe("noisy-gd", given).values
    names = ("records", "steps", "sensitivity", "noise_std", "step_size", "smoothness", "strong_convexity")
    return {name: run[name] for name in names}


def _shifted_langevin(i: _Inputs) -> float:
    return gaussian.renyi(mu=evaluated(noisy_gd.contraction, **_langevin(i)), order=i("alpha"))


def _announced(i: _Inputs) -> float:
    return evaluated(multi_epoch.descent_langevin, **_langevin(i), order=i("alpha"))


def _langevin_variance(i: _Inputs) -> float:
    """The variance that is enough for every number of steps, at eta = lam/(2 beta^2)."""
    m, beta = i("lam"), i("beta")
    eta = m / (2.0 * beta * beta)
    sigma = noisy_gd.contraction_noise_std(
        records=i.whole("n"), steps=10**15, sensitivity=2.0 * i("L"), step_size=eta, smoothness=beta,
        strong_convexity=m, epsilon=i("eps"), log_delta=i.log("delta"),
    )  # fmt: skip
    return noisy_gd.langevin_std(noise_std=sigma, step_size=eta) ** 2


def _regression(i: _Inputs) -> float:
    """The logistic regression of the tables: mu = 2/3 a step, 40 steps an epoch."""
    column, epochs = str(i.raw["col"]), i.whole("E")
    given = {"records": 40, "index": 40, "batch_size": 1, "epochs": epochs, "sensitivity": 2.0, "noise_std": 3.0}
    if "SGD" in column:
        return noisy_sgd.clt_mu(mu=2.0 / 3.0, rate=1.0 / 40.0, steps=40 * epochs)
    if "composition" in column:
        return evaluated(multi_epoch.composition, **given)
    if "ours" not in column:
        raise KeyError(column)
    return evaluated(multi_epoch.cyclic_contraction, **given, **_slowed(i))


_PASSES: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "mu_noisygd_sc": lambda i: evaluated(noisy_gd.contraction, **_descent(i), **_slowed(i)),
    "mu_noisygd_domain": _descent_domain,
    "mu_cgd_index": lambda i: evaluated(multi_epoch.cyclic_contraction, **_cyclic(i, at="i"), **_slowed(i)),
    "mu_cgd_bok": lambda i: evaluated(multi_epoch.passes_contraction, **_cyclic(i), **_slowed(i)),
    "mu_cgd_domain": _cyclic_domain,
    "cgd_ye_shokri_coef": lambda i: evaluated(multi_epoch.passes_dynamics, **_cyclic(i), **_slowed(i), order=2.0),
    "clt_mu": lambda i: noisy_sgd.clt_mu(mu=i("mu"), rate=i("p"), steps=i.whole("t")),
    "chourasia_rdp": lambda i: evaluated(noisy_gd.langevin, **_langevin(i), order=i("alpha")),
    "chourasia_rdp_refined": lambda i: evaluated(noisy_gd.langevin_refined, **_langevin(i), order=i("alpha")),
    "chourasia_rdp_blog": _announced,
    "si_rdp_chourasia_units": _shifted_langevin,
    "chourasia_exact_quadratic": _shifted_langevin,
    "chourasia_lower": lambda i: evaluated(quadratic.langevin, **_langevin(i), order=i("alpha")),
    "blog_exponent_counterexample": lambda i: (
        _announced(i) if i.raw["which"] == "blog bound" else _shifted_langevin(i)
    ),
    "si_sigma2_chourasia_units": _langevin_variance,
    "calib_sigma_noisygd": lambda i: noisy_gd.contraction_noise_std(
        records=i.whole("n"), steps=i.whole("T"), sensitivity=2.0 * i("L"), epsilon=i("eps"),
        log_delta=i.log("delta"), **_slowed(i),
    ),
    "bok_table7_ngd_mu": lambda i: evaluated(noisy_gd.contraction, **_descent(i), **_slowed(i)),
    "bok_table7_gdp_comp": lambda i: evaluated(noisy_gd.composition, **_descent(i)),
    "bok_table8_ngd_domain": lambda i: evaluated(
        multi_epoch.descent_domain, records=1, **_on_domain(i, "Delta_over_n")
    ),
    "bok_table9_ncgd_mu": lambda i: evaluated(multi_epoch.cyclic_contraction, **_cyclic(i), **_slowed(i)),
    "bok_table9_gdp_comp": lambda i: evaluated(multi_epoch.composition,
        **_cyclic(_Inputs({**i.raw, "l": 1}))
    ),
    "bok_table10to12_ncgd_domain": lambda i: evaluated(multi_epoch.passes_domain,
        records=i.whole("l"), index=i.whole("l"), batch_size=1, **_on_domain(i, "Delta_over_b")
    ),
    "bok_table3_lr_mu": _regression,
    "bok_table4_lr_eps": lambda i: gaussian.epsilon(mu=_regression(i), log_delta_target=i.log("delta")),
    "bok_fig1_eps": lambda i: gaussian.epsilon(
        mu=evaluated(noisy_gd.contraction, **_descent(i), **_slowed(i)), log_delta_target=i.log("delta")
    ),
    "bok_fig1_prior_rdp_rho": lambda i: evaluated(
        multi_epoch.descent_dynamics, **_descent(i), **_slowed(i), order=1.0
    ),
}  # fmt: skip
_QUANTITIES.update(_PASSES)


def _average(i: _Inputs) -> dict[str, Any]:
    return {"radius": i("R"), "steps": i.whole("T")}


def _budget(i: _Inputs) -> dict[str, Any]:
    """A pass with a local budget; the smoothness of those that need one is small enough for every step."""
    return {
        "records": i.whole("n"), "dimension": i.whole("d"), "lipschitz": i("L"), "radius": i("R"), "epsilon": i("eps"),
        "log_delta": i.log("delta"),
    }  # fmt: skip


def _skip_step(i: _Inputs) -> float:
    return value_of(evaluated(utility.skip_classic, **_budget(i), smoothness=1e-9).step_size)


def value_of(known: float | None) -> float:
    assert known is not None
    return known


def _claimed_epsilon(i: _Inputs) -> float:
    """What Theorem 30 claims at an index."""
    return ratio_up(i("eps"), 1.0, i.whole("n") - i.whole("t") + 1)


def _claimed_log_delta(i: _Inputs) -> float:
    """What a random skip at the classic noise has there."""
    return evaluated(random_stop.skip,
        records=i.whole("n"), index=i.whole("t"), sensitivity=1.0,
        noise_std=down(conversions.factor(i.log("delta")) / i("eps"), 8.0), epsilon=down(_claimed_epsilon(i), 16.0),
    )  # fmt: skip


def _public(i: _Inputs) -> dict[str, Any]:
    return {
        "lipschitz": i("L"), "public_records": i.whole("m"), "epsilon": i("eps"), "log_delta": i.log("delta"),
    }  # fmt: skip


def _public_setting(i: _Inputs) -> utility.PublicRecords:
    return utility.PublicRecords(records=2 * i.whole("m") + 2, dimension=1, smoothness=1e-9, radius=1.0, **_public(i))


def _public_log_delta(i: _Inputs) -> float:
    """What the printed noise has at epsilon, for the last private record."""
    m = i.whole("m")
    share = math.sqrt(2.0 * m / (m + 1.0))
    mu = up(i("eps") * share / conversions.factor(i.log("delta")), 8.0)
    return gaussian.log_delta(mu=mu, epsilon=i("eps"))


def _public_exact(i: _Inputs) -> float:
    """Less than half the records are public: the last private one is always used."""
    m = i.whole("m")
    return value_of(evaluated(utility.public,
        records=2 * m + 2, dimension=1, smoothness=1e-9, radius=1.0, **_public(i)
    ).noise_std)  # fmt: skip


def _tasks(i: _Inputs, lipschitz: float = 1.0) -> tasks.Tasks:
    return tasks.Tasks(
        records=i.whole("n"), tasks=i.whole("k"), dimension=1, lipschitz=lipschitz, smoothness=1e-9, radius=1.0,
        epsilon=i("eps"), log_delta=i.log("delta"),
    )  # fmt: skip


def _loaded(i: _Inputs, load: Callable[[tasks.Tasks], float]) -> float:
    run = _tasks(i, i("L"))
    return run.loaded_noise(load(run))


def _certified(i: _Inputs, load: Callable[[tasks.Tasks], float]) -> float:
    """The epsilon of the loaded noise at the paper's order, by the exact divergence and Mironov's conversion."""
    run = _tasks(i)
    order = -4.0 * run.log_delta / run.epsilon
    spent = evaluated(random_stop.stop_rdp,
        records=run.records, index=1, sensitivity=2.0, noise_std=run.loaded_noise(load(run)), order=order
    )  # fmt: skip
    return up(renyi.mironov(order=order, rdp=up(run.tasks * spent, 128.0), log_delta=run.log_delta), 16.0)


def _load(run: tasks.Tasks) -> float:
    return run.load


def _printed_load(run: tasks.Tasks) -> float:
    return run.printed_load


_COSTS: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "thm28_bound_paper": lambda i: evaluated(utility.average_published,
        **_average(i), lipschitz=i("LG"), dimension=1, noise_std=0.0
    ).excess_risk,
    "thm28_bound_tight": lambda i: averaged_risk(i("R"), i("LG"), i.whole("T")),
    "thm29_bound": lambda i: evaluated(utility.stop_classic, **_budget(i)).excess_risk,
    "thm29_eta": lambda i: value_of(evaluated(utility.stop_classic, **_budget(i)).step_size),
    "thm30_bound": lambda i: evaluated(utility.skip_classic, **_budget(i), smoothness=1e-9).excess_risk,
    "thm30_eta": _skip_step,
    "thm30_index_eps": _claimed_epsilon,
    "thm30_index_delta_true": lambda i: _profile(_claimed_log_delta(i)),
    "cor31_sigma_paper": lambda i: _public_setting(i).printed_noise,
    "cor31_sigma_corrected": lambda i: _public_setting(i).shared_classic_noise,
    "cor31_sigma_exact": _public_exact,
    "cor31_true_delta_paper_sigma": lambda i: _profile(_public_log_delta(i)),
    "thm32_q_corrected": lambda i: _tasks(i).load,
    "thm32_q_paper": lambda i: _tasks(i).printed_load,
    "thm32_sigma_corrected": lambda i: _loaded(i, _load),
    "thm32_sigma_paper": lambda i: _loaded(i, _printed_load),
    "thm32_eps_lmexp_corrected": lambda i: _certified(i, _load),
    "thm32_eps_lmexp_paper": lambda i: _certified(i, _printed_load),
    "thm33_smoothness_paper": lambda i: quotient_up((i("L"),), (i("lam"),)),
    "thm33_smoothness_tight": lambda i: generalisation.width_for(i("L"), i("lam")),
    "thm33_err_paper": lambda i: generalisation.printed_error(i("L"), i("lam"), i.whole("d")),
    "thm33_err_tight": lambda i: generalisation.smoothing_error(i("L"), i("lam"), i.whole("d")),
    "cor34_lambda": lambda i: generalisation.NonsmoothSkip(
        records=i.whole("n"), dimension=1, lipschitz=1.0, radius=i("R"), epsilon=i("eps"), log_delta=i.log("delta")
    ).printed_width,
    "cor34_extra_corrected": lambda i: generalisation.NonsmoothSkip(**_budget(i)).kernel_error,
    "cor34_extra_paper": lambda i: generalisation.NonsmoothSkip(**_budget(i)).stated_error,
}  # fmt: skip
_QUANTITIES.update(_COSTS)


def _loss_of(i: _Inputs) -> losses.Loss:
    names = {"B": "feature_bound", "Y": "label_bound", "q": "power", "kap": "huber_threshold"}
    kind = {"abs": "absolute", "lsq": "squares"}.get(str(i.raw["kind"]), str(i.raw["kind"]))
    return losses.of(kind, **{names[k]: i(k) for k in i.raw if k in names})


_HOLDER_NAMES = {
    "alpha": "holder_exponent", "L": "holder_constant", "M": "gradient_at_zero", "M0": "loss_at_zero", "R": "radius",
    "n": "records", "T": "steps", "eta": "step_size", "G": "gradient", "d": "dimension", "sigma": "noise_std",
    "eps": "epsilon", "beta": "share", "Bmax": "loss_range",
}  # fmt: skip


def _holder(i: _Inputs, *names: str) -> dict[str, Any]:
    """The named inputs under the names of the house."""
    return {_HOLDER_NAMES[name]: i.whole(name) if name in ("n", "T", "d") else i(name) for name in names}


def _log_chance(i: _Inputs) -> float:
    among = {"pair": 1, "sup": i.whole("n"), "T": i.whole("T")}[str(i.raw["variant"])]
    return holder.log_each(i.log("gamma"), among)


def _in_ball(i: _Inputs) -> float:
    return holder.gradient_within(**_holder(i, "R", "alpha", "L", "M"))


def _drift(i: _Inputs) -> float:
    return holder.drift(**_holder(i, "alpha", "L", "eta"))


def _asked(i: _Inputs) -> dict[str, Any]:
    return {**_holder(i, "eps"), "log_delta": i.log("delta")}


def _theorem_11(i: _Inputs) -> Theorem11:
    known = {"records": 1, "steps": 1, **_holder(i, *(name for name in ("n", "T") if name in i.raw)), **_asked(i)}
    return Theorem11(**known, batch_size=1)


def _output(i: _Inputs, *names: str, **more: float) -> dp_sgd.OutputNoise:
    known = {"records": 1, "batch_size": 1, "noise_std": 1.0, "strong_convexity": 0.0, **_holder(i, *names), **more}
    return dp_sgd.OutputNoise(**known)


def _output_noise_published(i: _Inputs) -> float:
    """Theorem 8: sqrt(2 ln(2.5/delta)) Delta(delta/2)/eps."""
    half = dp_sgd.log_half(i.log("delta"))
    apart = _output(i, *_SGD, lipschitz=_in_ball(i)).apart_published(half)
    return conversions.noise_std(sensitivity=apart, epsilon=i("eps"), log_delta=half)


def _output_noise_of_pair(i: _Inputs) -> float:
    """Half of delta for more hits than Chernoff's bound allows, for one record; half for the exact Gaussian curve."""
    half = dp_sgd.log_half(i.log("delta"))
    apart = holder.stability_published(**_holder(i, *_SGD), gradient=_in_ball(i), log_chance=half)
    return gaussian.noise_std(sensitivity=apart, epsilon=i("eps"), log_delta_target=half)


_SGD = ("n", "T", "eta", "alpha", "L")


def _sampled(i: _Inputs, count: int, resolution: int) -> float:
    pair = pld.subsampled_gaussian(mu=1.0 / i("s"), rate=i("p"))
    return exp_up(pld.log_delta([(pair, count)], epsilon=i("eps"), resolution=resolution).value)


def _sampled_renyi(i: _Inputs) -> float:
    pair = pld.subsampled_gaussian(mu=1.0 / i("s"), rate=i("p"))
    # Far out, where the tail begins, its logarithm is concave.
    return profiles.renyi(pair.forward, order=i("order"), scale=1.0 / i("s"), own=pair.forward)


def _sgd(i: _Inputs) -> Sgd:
    """The steps of which some inputs are known; what is not known is not read."""
    known = [name for name in ("n", "T", "d", "R", "G", "alpha", "L", "Bmax") if name in i.raw]
    return Sgd(**{"records": 1, "steps": 1, "dimension": 1, "radius": 1.0, "gradient": 1.0, **_holder(i, *known)})


def _chernoff_gap(sgd: Sgd, step_size: float, log_share: float) -> float:
    """The stability of Theorem 7 with the smaller constants."""
    apart = holder.stability_published(
        records=sgd.records, steps=sgd.steps, step_size=step_size, holder_exponent=sgd.holder_exponent,
        holder_constant=sgd.holder_constant, gradient=sgd.gradient, log_chance=holder.log_each(log_share, sgd.records),
    )  # fmt: skip
    return generalisation.gap_uniform(
        stability=up(sgd.gradient * apart, 2.0), loss_range=sgd.loss_range, records=sgd.records, log_share=log_share
    )


def _likely_risk(i: _Inputs) -> float:
    gap = {"rms": Sgd.gap_by_index, "tight": Sgd.uniform_gap, "paper": _chernoff_gap}[str(i.raw["uas"])]
    return holder_sgd.likely_step_risk(_sgd(i), gap, i("eta"), i("sigma"), i.log("gamma"))


_HOLDER: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "c_alpha1": lambda i: published.self_bounding(**_holder(i, "alpha", "L", "M")),
    "c_alpha2": lambda i: holder.drift(**_holder(i, "alpha", "L"), step_size=1.0),
    "C_alpha": lambda i: holder.growth(**_holder(i, "alpha", "L", "M", "M0")),
    "iterate_radius_paper": lambda i: holder.radius_published(**_holder(i, "alpha", "L", "M", "M0", "T", "eta")),
    "iterate_radius_tight": lambda i: holder.reach(**_holder(i, "alpha", "L", "M0", "T", "eta")),
    "drift": _drift,
    "log10_drift": lambda i: holder.log_drift(**_holder(i, "alpha", "L", "eta")) / math.log(10.0),
    "c_gamma_T": lambda i: holder.excess_hits(**_holder(i, "n", "T"), log_chance=_log_chance(i)),
    "uas_bounded_paper": lambda i: holder.stability_published(
        **_holder(i, *_SGD), gradient=_in_ball(i), log_chance=_log_chance(i)
    ),
    "uas_unbounded_paper": lambda i: holder.stability_published(
        **_holder(i, *_SGD), gradient=_output(i, "T", "eta", "alpha", "L", "M", "M0").gradient_published,
        log_chance=_log_chance(i),
    ),
    "uas_bounded_tight": lambda i: holder.stability(**_holder(i, "T", "eta", "alpha", "L", "G"))(
        holder.hits_quantile(**_holder(i, "n", "T"), log_chance=_log_chance(i))
    ),
    "uas_strongly_convex": lambda i: holder.stability(
        holder_exponent=1.0, holder_constant=1.0, steps=i.whole("k"), strong_convexity=i("rho"),
        **_holder(i, "G", "eta"),
    )(i.whole("k")),
    "hit_quantile": lambda i: holder.hits_quantile(**_holder(i, "n", "T"), log_chance=_log_chance(i)),
    "grad_bound_unbounded": lambda i: _output(i, "T", "eta", "alpha", "L", "M", "M0").gradient_published,
    "sigma_output_paper": _output_noise_published,
    "sigma_output_agm_pair": _output_noise_of_pair,
    "agm_sigma_over_Delta": lambda i: gaussian.noise_std(
        sensitivity=1.0, epsilon=i("eps"), log_delta_target=i.log("delta")
    ),
    "classic_gaussian_valid_up_to_eps": lambda i: conversions.epsilon_max(log_delta=i.log("delta")),
    "output_mixture_delta": lambda i: exp_up(
        dp_sgd.output(_output(i, *_SGD, "sigma", lipschitz=i("G"))).profile(i("eps"))
    ),
    "sigma_grad": lambda i: _theorem_11(i).noise_std(i("beta"), i("G")),
    "cond32_ratio": lambda i: _theorem_11(i).square(i("beta")),
    "cond33_slack": lambda i: _theorem_11(i).slack(i("beta")),
    "lambda": lambda i: _theorem_11(i).order(i("beta")),
    "beta_star": lambda i: _theorem_11(i).best_share,
    "beta_max_feasible": lambda i: _theorem_11(i).largest_share() or 0.0,
    "sigma_over_2G_min": lambda i: _theorem_11(i).least_ratio(),
    "lemma13_eps_part1": lambda i: published.lemma13_epsilon(records=i.whole("n"))[0],
    "lemma13_eps_part2": lambda i: published.lemma13_epsilon(records=i.whole("n"))[1],
    "lemma13_eps_min": lambda i: max(published.lemma13_epsilon(records=i.whole("n"))),
    "wbk_rdp": lambda i: holder.renyi(order=i.whole("order"), rate=i("p"), inverse_square=1.0 / i("s2")),
    "lemma3_rdp": lambda i: holder.lemma_renyi(order=i("order"), rate=i("p"), square=i("s2")),
    "wor_hockey_stick_1": lambda i: _sampled(i, 1, 2048),
    "wor_hockey_stick_2": lambda i: _sampled(i, 2, 1 << 16),
    "wor_rdp_symmetric": _sampled_renyi,
    "loss_L": lambda i: _loss_of(i).hoelder_constant(i("al") if "al" in i.raw else None),
    "loss_M": lambda i: _loss_of(i).gradient_at_zero,
    "loss_M0": lambda i: _loss_of(i).loss_at_zero,
    "Q_min": lambda i: generalisation.chaining(i.log("gamma")),
    "gen_bkz": lambda i: generalisation.gap_published(
        stability=i("gamma_us"), **_holder(i, "Bmax", "n"), log_chance=i.log("gamma")
    ),
    "gen_tight": lambda i: generalisation.gap_uniform(
        stability=i("gamma_us"), **_holder(i, "Bmax", "n"), log_share=holder.log_each(i.log("gamma"), 2)
    ),
    "gen_rms": lambda i: _sgd(i).gap_by_index(i("eta"), i.log("g0")),
    "chi2_upper_quantile": lambda i: normal.quantile_up(i.log("gamma"), freedom=i.whole("dof")),
    "chi2_laurent_massart": lambda i: normal.laurent_massart_quantile_up(i.log("gamma"), freedom=i.whole("dof")),
    "chi2_paper_lemma15": lambda i: normal.published(i.log("gamma"), freedom=i.whole("dof")),
    "loss_range_bound": lambda i: holder.range_bound(
        **_holder(i, "R", "M0", "alpha", "L", "M"), gradient=math.inf
    ),
    "excess_expected_grad": lambda i: holder_sgd.expected_risk(_sgd(i), i("eta"), i("sigma")),
    "excess_hp_grad": _likely_risk,
    "output_noise_hp": lambda i: _sgd(i).output_noise_likely(i("sigma"), i.log("gamma")),
    "output_noise_paper": lambda i: _sgd(i).output_noise_published(i("sigma"), i.log("gamma")),
    "output_noise_expected": lambda i: _sgd(i).output_noise_expected(i("sigma")),
    "T_exponent_unbounded": lambda i: holder_sgd.steps_exponent_unbounded(holder_exponent=i("alpha")),
    "T_exponent_bounded": lambda i: holder_sgd.steps_exponent(holder_exponent=i("alpha")),
    "eta_thm9": lambda i: published.step_unbounded(**_holder(i, "n", "T", "alpha"), log_chance=i.log("gamma")),
    "eta_thm10": lambda i: published.step_output(
        **_holder(i, "n", "T", "d"), **_asked(i), log_chance=i.log("gamma")
    ),
    "eta_thm12": lambda i: published.step_gradient(
        **_holder(i, "n", "T", "d"), **_asked(i), log_chance=i.log("gamma")
    ),
}  # fmt: skip
_QUANTITIES.update(_HOLDER)


def _sampled_pair(kind: str, noise: float, rate: float) -> pld.Pair:
    """Return the pair of a sampled step, by the name that the reference has for it."""
    mu = 1.0 / noise
    made = {
        "poisson.remove": lambda: pld.removed(mu=mu, rate=rate),
        "poisson.add": lambda: pld.exchanged(pld.removed(mu=mu, rate=rate)),
        "poisson.replace": lambda: pld.replaced_poisson(mu=mu, rate=rate),
        "wor.remove": lambda: pld.removed(mu=2.0 * mu, rate=rate),
        "wor.add": lambda: pld.exchanged(pld.removed(mu=2.0 * mu, rate=rate)),
        "wor.replace": lambda: pld.subsampled_gaussian(mu=2.0 * mu, rate=rate),
        "wor.zero_out.forward": lambda: pld.nulled_fixed(mu=mu, rate=rate),
        "wor.zero_out.backward": lambda: pld.exchanged(pld.nulled_fixed(mu=mu, rate=rate)),
    }
    return made[kind]()


def _placed(i: _Inputs) -> pld.Pair:
    log_tail = -12.0 + (parse_log(i.raw["delta"]) if "delta" in i.raw else -30.0)
    pair = pld.random_place(mu=1.0 / i("noise_multiplier"), bins=i.whole("t"), log_tail=log_tail)
    return pld.exchanged(pair) if i.raw["direction"] == "add" else pair


def _at_epsilon(pair: pld.Pair, i: _Inputs) -> dict[str, float]:
    return _both(float(pair.forward(np.array([i("epsilon")]))[0]))


_QUANTITIES.update(
    sampling_step_delta=lambda i: _at_epsilon(_sampled_pair(i.raw["sampling"], i("noise_multiplier"), i("q")), i),
    sampling_run_epsilon=lambda i: pld.epsilon(
        [(_sampled_pair(i.raw["pair"], i("noise_multiplier"), float(Fraction(i.raw["rate"]))), i.whole("steps"))],
        log_delta_target=parse_log(i.raw["delta"]),
    ).value,
    allocation_epoch_delta=lambda i: _at_epsilon(_placed(i), i),
    allocation_epoch_epsilon_upper=lambda i: pld.epsilon(
        [(_placed(i), 1)], log_delta_target=parse_log(i.raw["delta"])
    ).value,
    shuffled_batches_lower_delta=lambda i: _both(
        evaluated(
            largest_sums.shuffle_lower, sampling="shuffle", records=i.whole("t"), batch_size=1, steps=i.whole("t"),
            adjacency={"zero_out": "null-record", "replace": "replace-one"}[i.raw["adjacency"]],
            noise_multiplier=i("noise_multiplier"), epsilon=i("epsilon"),
        )
    ),
    sampling_group_delta=lambda i: _both(
        gaussian.log_delta(
            mu=evaluated(
                sampled_steps.full, sampling="full", steps=i.whole("steps"), noise_multiplier=i("noise_multiplier"),
                adjacency="replace-one" if i.raw["mu"].startswith("2") else "null-record",
            ),
            epsilon=i("epsilon"),
        )
    ),
)  # fmt: skip

# --- hidden batches ---------------------------------------------------------------------------------------------------


def _hidden_plan(i: _Inputs, steps: int, past: Past) -> Plan:
    """A plan that counts all early uses, or, at the worst, none of them."""
    composed = i.whole("k")
    return Plan(composed, i.whole("j"), i("share"), *((steps - composed, past) if i.raw["form"] != "worst" else ()))


def _theorem_n(i: _Inputs) -> float:
    far = i.raw.get("diameter")
    run = noisy_sgd.HiddenSteps(
        records=i.whole("records"), batch_size=i.whole("batch"), steps=i.whole("steps"), lipschitz=i("lipschitz"),
        noise_std=i("noise_std"), step_size=i("eta"), smoothness=i("beta"), strong_convexity=i("m"),
        diameter=math.inf if far in (None, "", "inf") else float(far),
    )  # fmt: skip
    return run.planned(_hidden_plan(i, run.steps, Past.TOLD)).epsilon(i.log("delta")).value


def _hidden_poisson(i: _Inputs) -> float:
    replaced = i.raw["adjacency"] == "replace"
    run = sampled_hidden.HiddenRun(
        sampling="poisson", adjacency="replace-one" if replaced else i.raw["adjacency"], records=i.whole("records"),
        batch_size=i.whole("batch"), sample_rate=i("batch") / i("records"), steps=i.whole("steps"),
        noise_multiplier=i("noise_multiplier"), step_size=i("eta"), smoothness=max(i("regularisation"), 1e-3),
        regularisation=i("regularisation"),
    )  # fmt: skip
    hidden = Past.MIRRORED if replaced else Past.SECRET
    plan = _hidden_plan(i, run.steps, hidden if i.raw["form"] == "hidden" else Past.TOLD)
    return run.planned(plan).epsilon(i.log("delta")).value


def _shift(i: _Inputs, form: str) -> pld.Pair:
    """The pair of a random shift, by the name that the reference has for it."""
    make = {"revealed": pld.revealed_shift, "symmetric": pld.mirrored_shift}.get(form, pld.hidden_shift)
    pair = make(i.array("mus"), i.array("weights"))
    return pld.exchanged(pair) if form in ("hidden_reversed", "add") else pair


def _hidden_step(i: _Inputs) -> float:
    """A random shift and one step on a Poisson batch."""
    mu, direction = noisy_sgd.sample_mu(1.0 / i("noise_multiplier"), i("share")), i.raw["direction"]
    replaced = direction == "replace"
    step = (pld.replaced_poisson if replaced else pld.removed)(mu=mu, rate=i("q"))
    parts = [(_shift(i, "symmetric" if replaced else direction), 1)]
    parts.append((pld.exchanged(step) if direction == "add" else step, 1))
    return exp_up(pld.log_delta(parts, epsilon=i("epsilon")).value)


_QUANTITIES.update(
    start_mu=lambda i: hidden_past.shift_mu(
        hidden_past.Chain(i.whole("k") + 1, i("c"), i("x"), i("noise_multiplier"), math.inf),
        Plan(i.whole("k"), i.whole("j"), i("share")),
    ),
    large_batch_failure=lambda i: exp_up(binomial.log_any_tail_up(
        i.whole("most"), i.whole("records") - 1, Fraction(i.raw["q"]), i.whole("k")
    )),
    uses_tail=lambda i: discounted_sums.uses(1, Fraction(i.raw["q"]), i("c"), i.whole("n")).tail(i("above")),
    uses_cut=lambda i: discounted_sums.cut(1, Fraction(i.raw["q"]), i("c"), i.whole("n"), i.log("failure")),
    mixture_delta=lambda i: exp_up(float(_shift(i, i.raw["form"]).forward(np.array([i("epsilon")]))[0])),
    hidden_one_step=_hidden_step,
    theorem_n_epsilon=_theorem_n,
    poisson_epsilon=_hidden_poisson,
)  # fmt: skip


# --- batches that are cut, and records in several steps of an epoch ---------------------------------------------------


def _truncation(i: _Inputs) -> binomial.Truncation:
    return binomial.truncation(i.whole("records"), i("rate"), i.whole("cap"))


def _cut(i: _Inputs) -> dict[str, Any]:
    return {
        "sampling": "poisson", "records": i.whole("records"), "sample_rate": i("rate"), "steps": i.whole("steps"),
        "max_batch_size": i.whole("cap"), "noise_multiplier": i("multiplier"),
    }  # fmt: skip


def _one_direction(bound: str, given: dict[str, Any], i: _Inputs, *, backward: bool) -> float:
    """The epsilon of a sampled run in one of the two orders."""
    proved = guarantee_of(lookup(bound), describe("dp-sgd", given))
    assert isinstance(proved, Composition)
    return proved.ways[1 if backward else 0].epsilon(parse_log(i.raw["delta"]), rough=False).value


def _of_phases(i: _Inputs) -> float:
    adjacency = {"replace": "replace-one"}.get(i.raw["direction"], i.raw["direction"])
    phases = [
        zip(("sample_rate", "noise_multiplier", "steps"), x.split(","), strict=True) for x in i.raw["groups"].split(";")
    ]
    text = "; ".join(" ".join(f"{name}={value}" for name, value in phase) for phase in phases)
    given = Description({"algorithm": "dp-sgd", "sampling": "poisson", "adjacency": adjacency, "schedule": text})
    _, run, _ = run_of(COMMANDS["dp-sgd"], given)
    return guarantee_of(lookup("sampled.scheduled"), run).epsilon(parse_log(i.raw["delta"])).value


def _shifts_of_two(i: _Inputs) -> float:
    """The published pair: where the others fill a batch, two records apart in either direction."""
    cut, mu = _truncation(i), 1.0 / i("multiplier")
    parts = [
        (cut.rest, pld.removed(mu=mu, rate=i("rate"))),
        (cut.chance, pld.replaced_poisson(mu=2.0 * mu, rate=cut.rate)),
    ]
    return pld.epsilon([(pld.mixed(parts), i.whole("steps"))], log_delta_target=parse_log(i.raw["delta"])).value


def _allocated(i: _Inputs) -> float:
    told = {"sampling": "balls-in-bins", "records": i.whole("steps"), "batch_size": i.whole("chosen"), "epochs": 1}
    run = describe("dp-sgd", {
        **told, "uses": i.whole("chosen"), "adjacency": str(i.raw["adjacency"]).replace("_", "-"),
        "noise_multiplier": i("multiplier"),
    })  # fmt: skip
    return guarantee_of(lookup("sampled.balls_in_bins"), run).epsilon(parse_log(i.raw["delta"])).value


# --- what scores prove ------------------------------------------------------------------------------------------------


def _hits(i: _Inputs) -> Seen:
    half = i("alpha") / 2.0
    true, of, false, others = (i.whole(name) for name in ("in_hits", "in_runs", "out_hits", "out_runs"))
    lower, upper = clopper_pearson.sharp_lower(true, of, half), clopper_pearson.sharp_upper(false, others, half)
    return Seen(Event(True, 0.0), true, false, lower, upper)


def _coins(i: _Inputs) -> tuple[int, int, int]:
    return i.whole("correct"), i.whole("guesses"), i.whole("canaries")


def _gaussian_cuts(i: _Inputs) -> list[tuple[float, float]]:
    count, last = (float(x) for x in re.findall(r"[0-9.]+", str(i.raw["epsilons"]))[::2])
    points = [last * k / (count - 1.0) for k in range(int(count))]
    return [(e, math.exp(gaussian.log_delta(mu=i("mu"), epsilon=e))) for e in points]


def _published_p(correct: int, guesses: int, canaries: int, epsilon: float, delta: float) -> float:
    """Return f(v) + 2 m delta max_i (f(v-i) - f(v))/i, for comparison: below the truth at some f(v) above 0.8."""
    tails = one_run._tails(guesses, one_run._right(epsilon))
    gains = (tails[correct - 1 :: -1] - tails[correct]) / np.arange(1.0, correct + 1.0) if correct else np.zeros(1)
    return float(min(1.0, tails[correct] + 2.0 * canaries * delta * float(gains.max())))


_QUANTITIES.update(
    threshold_epsilon=lambda i: _hits(i).epsilon(i("delta")),
    threshold_mu=lambda i: _hits(i).mu(),
    order_statistic_upper=lambda i: clopper_pearson.sharp_upper(i.whole("rank") - 1, i.whole("size"), i("alpha")),
    one_run_p=lambda i: one_run.p_value(*_coins(i), i("epsilon"), i("delta")),
    one_run_p_quoted=lambda i: _published_p(*_coins(i), i("epsilon"), i("delta")),
    one_run_epsilon=lambda i: one_run.epsilon_lower(*_coins(i), i("delta"), i("alpha")),
    one_run_walk_p=lambda i: one_run.walk_p_value(
        *(ast.literal_eval(str(i.raw[name])) for name in ("correct", "guesses")), i.whole("canaries"), i("epsilon"),
        i("delta"),
    ),
    one_run_gdp_p_upper=lambda i: one_run.curve_p_value(*_coins(i), _gaussian_cuts(i)),
)  # fmt: skip
_QUANTITIES.update(
    truncation_probability=lambda i: _truncation(i).chance,
    truncated_rate=lambda i: _truncation(i).rate,
    truncated_epsilon_zero_out=lambda i: _one_direction(
        "sampled.truncated", {**_cut(i), "adjacency": "zero-out"}, i, backward=i.raw["direction"] == "backward"
    ),
    truncated_epsilon_wide=_shifts_of_two,
    random_allocation_epsilon=_allocated,
    schedule_epsilon=_of_phases,
)
# --- batches of unequal size ------------------------------------------------------------------------------------------


def _rational(i: _Inputs, name: str) -> np.ndarray:
    return np.array([float(Fraction(str(i.raw[name])))])


def _pair_mu_squared(i: _Inputs) -> float:
    """Two uses in every pass, of sizes relative to one whose mu is 1."""
    early, late = _rational(i, "size_early"), _rational(i, "size_late")
    pace = Pace(i.whole("steps"), ((float(i.whole("steps")), rate_in_range(recursion.rate_of(i("contraction")))),))
    places = SamePlaces(pace, i.whole("epochs"), 1.0, heaviest=float(max(early, late)[0]))
    b, a = _rational(i, "position_early"), _rational(i, "position_late")
    return float(places.pair_cost(b, early, a, late)[0])


def _told(i: _Inputs) -> dict[str, Any]:
    """What is said of a run; the steps are short enough for convex smooth losses where nothing is said of them."""
    kept = {name: value for name, value in i.raw.items() if name not in ("epsilon", "delta", "short")}
    words = {name: kept.pop(name) for name in ("last_batch", "permutation") if name in kept}
    counts = {name: int(kept.pop(name)) for name in ("records", "batch_size", "epochs") if name in kept}
    return {"step_size": 0.1, "smoothness": 1.0, **{name: float(x) for name, x in kept.items()}, **words, **counts}


def _solved(bound: str, algorithm: str, i: _Inputs, **more: Any) -> float:
    """The epsilon of a bound at delta."""
    run = describe(algorithm, {**_told(i), **more})
    return guarantee_of(lookup(bound), run).epsilon(i.log("delta")).value


def _released(i: _Inputs) -> float:
    bounds = {"public": "released.shuffled_epochs", "secret": "released.shuffled_epochs_secret_curve"}
    return _solved(bounds[str(i.raw["permutation"])], "shuffled-epochs-released", i)


def _resets(i: _Inputs, permutation: str) -> Profile:
    """The lower value where every step is a reset: the last batch alone counts, so that the others may be one."""
    size = i.whole("batch_size") if "batch_size" in i.raw else i.whole("records") - i.whole("short")
    told = {**_told(i), "batch_size": size, "step_size": 1.0, "strong_convexity": 1.0, "permutation": permutation}
    bound = lookup("linear.shuffled_curved_secret" if permutation == "secret" else "linear.shuffled_curved")
    found = bound.prove(describe("shuffled", told))
    assert isinstance(found, Profile)
    return found


_UNEQUAL: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "unequal_pair_mu_squared": _pair_mu_squared,
    "unequal_lower_secret_log_delta": lambda i: _resets(i, "secret").profile(i("epsilon")),
    "unequal_lower_public_log_delta": lambda i: _resets(i, "public").profile(i("epsilon")),
    "unequal_lower_public_epsilon": lambda i: _resets(i, "public").epsilon(i.log("delta")).value,
    "unequal_one_pass_secret_epsilon": lambda i: _solved(
        "hidden_position.shuffled", "shuffled", i, permutation="secret"
    ),
    "unequal_once_secret_epsilon": lambda i: _solved(
        "shuffled_epochs.once_secret", "shuffle-once", i, permutation="secret"
    ),
    "unequal_fresh_secret_epsilon": lambda i: _solved(
        "shuffled_epochs.fresh_secret", "shuffled-epochs", i, permutation="secret"
    ),
    "unequal_fresh_epsilon": lambda i: _solved("shuffled_epochs.fresh", "shuffled-epochs", i),
    "unequal_fresh_released_epsilon": _released,
    "unequal_cyclic_epsilon": lambda i: _solved("multi_epoch.cyclic", "cyclic", i),
    "unequal_once_released_secret_epsilon": lambda i: _solved(
        "released.shuffle_once_secret", "shuffle-once-released", i
    ),
}
_QUANTITIES.update(_UNEQUAL)


def _stretched(i: _Inputs) -> float:
    """How far a step may leave two points z apart."""
    weak = i("m")
    factor = loss.displacement(
        loss_class="smooth" if weak else "convex-smooth", step_size=i("eta"), diameter=i("z"),
        lipschitz=i("lipschitz"), smoothness=i("beta"), strong_convexity=-weak,
    )  # fmt: skip
    assert factor is not None
    return factor * i("z")


def _weak_cyclic(i: _Inputs) -> float:
    weak = i("m")
    told = {
        "records": i.whole("records"), "batch_size": i.whole("batch"), "epochs": i.whole("epochs"),
        "lipschitz": i("lipschitz"), "step_size": i("eta"), "noise_std": i("noise_std"), "smoothness": i("beta"),
        "strong_convexity": -weak,
    }  # fmt: skip
    run = describe("cyclic", told)
    bound = lookup("expanding.cyclic" if weak else "multi_epoch.cyclic")
    return guarantee_of(bound, run).epsilon(i.log("delta")).value


def _growth(i: _Inputs) -> float:
    return up(math.log(i("c")))


_QUANTITIES.update({
    "weak_factor": lambda i: loss.contraction(
        step_size=i("eta"), smoothness=i("beta"), strong_convexity=-i("m")
    ),
    "step_expansion": _stretched,
    "hide_cost_min": lambda i: expanding_passes.carried(i("diameter"), _growth(i), i.whole("m"), i("w")) ** 2,
    "hide_cost_sqrt": lambda i: expanding_passes.carried_bent(i("diameter"), (i("rho"), i("w")), i.whole("m")) ** 2,
    "weak_cyclic_epsilon": _weak_cyclic,
})  # fmt: skip


# --- groups of records ------------------------------------------------------------------------------------------------


def _one_delta(pair: pld.Pair, epsilon: float) -> float:
    """The delta of a pair at an epsilon of either sign."""
    curve = pair.forward if epsilon >= 0.0 else pair.backward
    value = float(curve(np.array([abs(epsilon)]))[0])
    return exp_up(value if epsilon >= 0.0 else at_negative(-epsilon, value))


def _drawn(make: Callable[..., pld.Pair], *, replacement: bool = False, back: bool = False) -> Any:
    def delta(i: _Inputs) -> float:
        draws = pld.Draws(i.whole("b"), i.whole("k"), i.whole("n"), replacement=replacement)
        pair = make(mu=1.0 / i("z"), draws=draws)
        return _one_delta(pld.exchanged(pair) if back else pair, i("eps"))

    return delta


def _hull(i: _Inputs) -> float:
    points = [tuple(map(float, point.split(","))) for point in str(i.raw["points"]).split(";")]
    nodes, deltas = (np.array(column) for column in zip(*points, strict=True))
    curve = profiles.envelope(nodes, np.log(deltas), both_orders=str(i.raw["both_orders"]) == "True")
    return exp_up(float(curve(np.array([i("eps")]))[0]))


def _hypergeometric(i: _Inputs) -> float:
    draws, j = pld.Draws(i.whole("b"), i.whole("k"), i.whole("n"), replacement=False), i.whole("j")
    return exp_up(draws.log_none if j == 0 else list(draws.logs())[j - 1][0])


def _added_scores(i: _Inputs) -> float:
    told = {
        "records": 8, "batch_size": 4, "steps": 2, "noise_multiplier": i("z"), "sampling": "balls-in-bins",
        "adjacency": "remove", "group_size": 2,
    }  # fmt: skip
    found = guarantee_of(lookup("sampled.total_lower"), describe("dp-sgd", told)).log_delta(i("eps")).value
    return math.exp(found)


def _public_positions(i: _Inputs, sampling: str) -> float:
    t, b = i.whole("t"), i.whole("b") if "b" in i.raw else 1
    told = {
        "records": b * t, "batch_size": b, "steps": i.whole("epochs") * t, "noise_multiplier": i("z"),
        "sampling": sampling, "adjacency": "null-record" if i("a") == 1.0 else "replace-one",
        "group_size": i.whole("k"),
    }  # fmt: skip
    return exp_up(guarantee_of(lookup("sampled.known_places"), describe("dp-sgd", told)).log_delta(i("eps")).value)


_QUANTITIES.update({
    "balls_group_remove_k2_t2_delta": _added_scores,
    "envelope_delta": _hull,
    "hypergeometric_weight": _hypergeometric,
    "public_positions_balls_delta": lambda i: _public_positions(i, "balls-in-bins"),
    "public_positions_shuffle_delta": lambda i: _public_positions(i, "shuffle"),
    "fixed_group_remove_delta": _drawn(pld.removed_draws),
    "fixed_group_add_delta": _drawn(pld.removed_draws, back=True),
    "fixed_group_replace_delta": _drawn(pld.replaced_draws),
    "fixed_group_zero_forward_delta": _drawn(pld.nulled_draws),
    "fixed_group_zero_backward_delta": _drawn(pld.nulled_draws, back=True),
    "with_replacement_group_replace_delta": _drawn(pld.replaced_draws, replacement=True),
    "poisson_group_remove_delta": lambda i: _one_delta(
        pld.removed_group(mu=1.0 / i("z"), rate=i("q"), size=i.whole("k")), i("eps")
    ),
    "poisson_group_replace_delta": lambda i: _one_delta(
        pld.replaced_group(mu=1.0 / i("z"), rate=i("q"), size=i.whole("k")), i("eps")
    ),
    "box_chain_delta": lambda i: exp_up(
        Box(i("eps"), i.log("delta")).grouped(i.whole("k")).log_delta(product_up(i("k"), i("eps"))).value
    ),
    "gaussian_tradeoff_chain_delta": lambda i: exp_up(
        groups.Chain(lambda e: gaussian.log_delta(mu=i("mu"), epsilon=e), i.whole("k"))(i("eps"))
    ),
})  # fmt: skip


def lower_log_delta(inputs: Mapping[str, Any], epsilon: float) -> float:
    """Return ln of a delta that no guarantee for passes in these batches can be below, the order secret."""
    kept = ("records", "batch_size", "last_batch", "noise_std", "lipschitz")
    return _resets(_Inputs({name: inputs[name] for name in kept}), "secret").profile(epsilon)


# --- what really ran --------------------------------------------------------------------------------------------------


def _loader(i: _Inputs) -> int:
    return run_loader.loader_length(
        i.whole("records"), i.whole("batch_size"), drop_last={"True": True, "False": False}[str(i.raw["drop_last"])]
    )


def _history(i: _Inputs) -> float:
    entries = [
        {"algorithm": "dp-sgd", "sampling": "poisson", "noise_multiplier": z, "sample_rate": q, "steps": t}
        for z, q, t in json.loads(str(i.raw["history"]))
    ]
    best = dpcalc.ledger(entries, delta=str(i.raw["delta"]), adjacency=str(i.raw["direction"])).cases[0].best
    assert best is not None
    assert best.epsilon is not None
    return best.epsilon


_QUANTITIES.update(
    opacus_sampler_rate=lambda i: run_loader.sampler_rate(_loader(i)),
    opacus_epoch_steps=lambda i: float(run_loader.epoch_steps(_loader(i))),
    opacus_history_rate=lambda i: run_loader.history_rate(_loader(i)),
    opacus_divisor=lambda i: float(run_loader.divisor(i.whole("records"), _loader(i))),
    history_epsilon=_history,
    adaptive_clipping_true_multiplier=lambda i: run_loader.opacus_adaptive_clipping(
        i("noise_multiplier"), i("unclipped_num_std")
    ),
    empty_local_batch_delta=lambda i: (
        (1.0 + math.exp(i("epsilon")))
        * (1.0 + 1e-13)
        * math.exp(run_loader.log_empty_batches(i.whole("records"), i("rate"), i.whole("steps"), i.whole("workers")))
    ),
    shared_coin_epsilon_below=lambda i: run_loader.shared_seed_epsilon(
        i("noise_multiplier"), i("rate"), i.whole("steps"), i.whole("workers"), i.log("delta"), cells=1 << 14
    ),
)


def evaluate(quantity: str, inputs: Mapping[str, Any]) -> float | dict[str, float]:
    """Return dpcalc's value of a reference quantity.

    Raises:
        KeyError: the quantity is not known here.
    """
    if quantity in ATTACKS:
        return ATTACKS[quantity](inputs)
    if quantity in CORRELATED:
        return CORRELATED[quantity](inputs)
    return _QUANTITIES[quantity](_Inputs(inputs))
