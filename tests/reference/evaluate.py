"""The one adapter between reference cases and dpcalc: it renames inputs and calls public functions, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dpcalc.bounds import iteration, multi_epoch, scheduled
from dpcalc.notions import gaussian, renyi
from dpcalc.numerics import isotonic, sums
from dpcalc.spec.numbers import parse_log


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

    def array(self, name: str) -> np.ndarray:
        return np.array([float(x) for x in self.raw[name]])


def _pass(i: _Inputs, *, at: str = "t") -> dict[str, Any]:
    return {
        "records": i.whole("n"),
        "index": i.whole(at),
        "sensitivity": 2.0 * i("L"),
        "noise_std": i("sigma"),
    }


def _worst(i: _Inputs) -> dict[str, Any]:
    return {"records": i.whole("n"), "sensitivity": 2.0 * i("L"), "noise_std": i("sigma")}


def _minibatch(i: _Inputs) -> float:
    n, b, j = i.whole("n"), i.whole("b"), i.whole("batch_index")
    # The reference divides every batch by b, a short last one too.
    return iteration.divided_rdp(
        divisor=b, steps=-(-n // b) + 1 - j, sensitivity=2.0 * i("L"), noise_std=i("sigma"), order=i("alpha")
    )


def _profile(log_delta: float) -> float:
    return gaussian.exp_up(log_delta)


def _allocation(i: _Inputs) -> float:
    cap = float(i.raw["D"]) if "D" in i.raw else None
    start = float(i.raw.get("z0", 0.0))
    return isotonic.allocate(i.array("s"), i.array("v"), i.array("c"), start=start, cap=cap).cost


def _skip_eps(i: _Inputs) -> float:
    return iteration.skip_epsilon(**_pass(i), log_delta=i.log("delta"))


_QUANTITIES: dict[str, Callable[[_Inputs], float | dict[str, float]]] = {
    "gdp_delta": lambda i: gaussian.delta(mu=i("mu"), epsilon=i("eps")),
    "gdp_ln_delta": lambda i: gaussian.log_delta(mu=i("mu"), epsilon=i("eps")),
    "gdp_eps": lambda i: gaussian.epsilon(mu=i("mu"), log_delta_target=i.log("delta")),
    "gdp_mu": lambda i: gaussian.largest_mu(epsilon=i("eps"), log_delta_target=i.log("delta")),
    "agm_sigma": lambda i: gaussian.noise_std(
        sensitivity=i("sens"), epsilon=i("eps"), log_delta_target=i.log("delta")
    ),
    "classic_sigma": lambda i: iteration.classic_noise_std(
        sensitivity=2.0 * i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "classic_true_delta": lambda i: _profile(
        iteration.classic_log_delta(epsilon=i("eps"), log_delta=i.log("delta"))
    ),
    "classic_eps_max": lambda i: iteration.classic_epsilon_max(log_delta=i.log("delta")),
    "rdp_gaussian": lambda i: renyi.gaussian(order=i("alpha"), shift=i("sens"), scale=i("sigma")),
    "renyi_laplace": lambda i: renyi.laplace(order=i("alpha"), shift=i("a"), scale=i("b")),
    "rdp_to_dp_mironov": lambda i: renyi.mironov(order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")),
    "rdp_to_dp_cks": lambda i: renyi.canonne(order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")),
    "rdp_to_dp_alcks": lambda i: renyi.asoodeh(order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")),
    "rdp_to_dp_exact_one_order": lambda i: renyi.exact_one_order(
        order=i("alpha"), rdp=i("rdp"), log_delta=i.log("delta")
    ),
    "cks_delta": lambda i: _profile(
        renyi.canonne_log_delta(order=i("alpha"), rdp=i("rdp"), epsilon=i("eps"))
    ),
    "zcdp_eps_mironov": lambda i: renyi.zcdp_epsilon_mironov(rho=i("rho"), log_delta=i.log("delta")),
    "zcdp_eps_cks": lambda i: renyi.zcdp_epsilon(rho=i("rho"), log_delta=i.log("delta")),
    "zcdp_alpha_cks": lambda i: renyi.zcdp_order(rho=i("rho"), log_delta=i.log("delta")),
    "thm23_mu": lambda i: iteration.pnsgd_mu(**_pass(i), batch_size=1),
    "thm23_rdp": lambda i: iteration.pnsgd_rdp(**_pass(i), batch_size=1, order=i("alpha")),
    "thm23_eps": lambda i: gaussian.epsilon(
        mu=iteration.pnsgd_mu(**_pass(i), batch_size=1), log_delta_target=i.log("delta")
    ),
    "calib_sigma_thm23": lambda i: iteration.pnsgd_noise_std(
        records=i.whole("n"), index=i.whole("t"), batch_size=1, sensitivity=2.0 * i("L"), epsilon=i("eps"),
        log_delta=i.log("delta"),
    ),
    "minibatch_rdp": _minibatch,
    "skip_rdp": lambda i: iteration.skip_rdp(**_pass(i), order=i("alpha")),
    "skip_delta": lambda i: _profile(iteration.skip_log_delta(**_pass(i), epsilon=i("eps"))),
    "skip_eps": _skip_eps,
    "stop_rdp": lambda i: iteration.stop_rdp(**_pass(i), order=i("alpha")),
    "stop_delta": lambda i: _profile(iteration.stop_log_delta(**_pass(i), epsilon=i("eps"))),
    "stop_eps": lambda i: iteration.stop_epsilon(**_pass(i), log_delta=i.log("delta")),
    "thm26_paper_rdp": lambda i: iteration.stop_printed(**_worst(i), order=i("alpha")),
    "thm26_harmonic_rdp": lambda i: iteration.stop_harmonic_rdp(**_pass(i), order=i("alpha")),
    "thm26_tight_factor": lambda i: iteration.stop_constant(records=i.whole("n")),
    "harmonic": lambda i: sums.harmonic(i.whole("n")),
    "lemma25_factor": lambda i: iteration.mixture_factor(largest=i("c")),
    "alloc_cost": _allocation,
    "alloc_cost_domain": _allocation,
    "onepass_mu2_schedule": lambda i: scheduled.one_use_mu_squared(
        step_size=i.array("eta"), noise_std=i.array("sigma"), contraction=i.array("c"), index=i.whole("t"),
        sensitivity=2.0 * i("L"),
    ),
    "multi_epoch_rdp": lambda i: multi_epoch.cyclic_rdp(
        **_pass(i, at="i"), epochs=i.whole("E"), order=i("alpha")
    ),
    "thm35_rdp": lambda i: multi_epoch.cyclic_rdp(**_pass(i, at="i"), epochs=i.whole("n"), order=i("alpha")),
    "thm35_sigma_cor": lambda i: multi_epoch.corollary_noise_std(
        lipschitz=i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "thm35_sigma_cor_check": lambda i: multi_epoch.corollary_epsilon(
        lipschitz=i("L"), epsilon=i("eps"), log_delta=i.log("delta")
    ),
    "calib_sigma_multi_epoch": lambda i: multi_epoch.cyclic_noise_std(
        records=i.whole("n"), index=i.whole("n"), epochs=i.whole("E"), sensitivity=2.0 * i("L"),
        epsilon=i("eps"), log_delta=i.log("delta"),
    ),
}  # fmt: skip


def evaluate(quantity: str, inputs: Mapping[str, Any]) -> float | dict[str, float]:
    """Return dpcalc's value of a reference quantity.

    Raises:
        KeyError: the quantity is not known here.
    """
    return _QUANTITIES[quantity](_Inputs(inputs))
