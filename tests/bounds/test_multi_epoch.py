"""Several passes against the formulas in ball arithmetic."""

from __future__ import annotations

import math

import pytest

from dpcalc.bounds import iteration, multi_epoch
from dpcalc.notions import gaussian
from tests.oracles import READINGS, ball, call, draws, exact, log_uniform, not_below, position, tight, whole
from tests.oracles import iteration as oracle


def test_cyclic() -> None:
    for r in draws("cyclic", 2000, cost=2):
        n = whole(r, 1, 10**15)
        given = {
            "records": n,
            "index": position(r, n),
            "epochs": whole(r, 1, 10**12),
            "sensitivity": log_uniform(r, 1e-6, 1e6),
            "noise_std": log_uniform(r, 1e-6, 1e6),
        }
        n, i, epochs, s, sigma = given.values()
        mu, what = multi_epoch.cyclic_mu(**given), call(multi_epoch.cyclic_mu, **given)
        order = r.choice((1.0, 2.0, 1.0 + 10 ** r.uniform(-9, 0), log_uniform(r, 1.1, 1e6)))
        rdp, what_rdp = multi_epoch.cyclic_rdp(**given, order=order), call(multi_epoch.cyclic_rdp, **given, order=order)
        for of in READINGS:
            value = oracle.cyclic_mu(n, i, epochs, of(s), of(sigma))
            not_below(mu, value, what)
            tight(mu, value, what, 1e-14)
            not_below(mu, oracle.linear_loss_mu(n, epochs, of(s), of(sigma)), what)
            value = oracle.cyclic_rdp(n, i, epochs, of(s), of(sigma), of(order))
            not_below(rdp, value, what_rdp)
            tight(rdp, value, what_rdp, 1e-13)


def test_one_epoch_is_one_pass() -> None:
    for r in draws("one epoch", 200, cost=20):
        n = whole(r, 1, 10**12)
        given = {"records": n, "index": position(r, n), "sensitivity": 2.0, "noise_std": log_uniform(r, 1e-3, 1e3)}
        once = iteration.pnsgd_mu(**given, batch_size=1)
        assert multi_epoch.cyclic_mu(**given, epochs=1) == pytest.approx(once, rel=1e-14)
        assert multi_epoch.cyclic_rdp(**given, epochs=1, order=3.0) == pytest.approx(
            iteration.pnsgd_rdp(**given, batch_size=1, order=3.0), rel=1e-13
        )


def test_noise_ends_on_the_safe_side() -> None:
    for r in draws("noise", 300, cost=20):
        n = whole(r, 1, 10**9)
        run = {"records": n, "index": position(r, n), "epochs": whole(r, 1, 10**4), "sensitivity": 2.0}
        e, log_delta = log_uniform(r, 1e-3, 100.0), -log_uniform(r, 0.1, 1e3)
        sigma = multi_epoch.cyclic_noise_std(**run, epsilon=e, log_delta=log_delta)
        mu = multi_epoch.cyclic_mu(**run, noise_std=sigma)
        most = gaussian.largest_mu(epsilon=e, log_delta_target=log_delta)
        value = oracle.cyclic_mu(n, run["index"], run["epochs"], exact(2.0), exact(sigma))
        assert not value > ball(most), (run, e, log_delta)
        assert mu >= most * (1.0 - 1e-13), (run, e, log_delta)


def test_corollary_certifies_what_it_promises() -> None:
    for r in draws("corollary", 300, cost=20):
        e = log_uniform(r, 1e-3, 10.0)
        log_delta = -2.5 * e * log_uniform(r, 1.0, 100.0)
        assert multi_epoch.corollary_epsilon(lipschitz=1.5, epsilon=e, log_delta=log_delta) <= e, (e, log_delta)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-300, 1e300])
@pytest.mark.parametrize("noise_std", [5e-324, 1e-300, 1.0, 1e300])
def test_extreme_scales(sensitivity: float, noise_std: float) -> None:
    for n in (1, 10**15):
        run = {"records": n, "index": 1, "epochs": 10**15, "sensitivity": sensitivity, "noise_std": noise_std}
        assert multi_epoch.cyclic_mu(**run) > 0.0
        assert multi_epoch.cyclic_rdp(**run, order=2.0) > 0.0
        assert not math.isnan(multi_epoch.cyclic_rdp(**run, order=1.0))
