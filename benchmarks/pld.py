"""Composition by PLD, beside dp-accounting and prv-accountant where they are installed.

    python benchmarks/pld.py [delta ...]

Every row is one composition at one delta: epsilon, and the best of three runs in this process, in milliseconds. For the
Poisson sample both orders of the pair are asked, and the larger epsilon is given, as dp-accounting does.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np  # noqa: TID253

from dpcalc.notions import pld
from dpcalc.numerics.arrays import log_hockey_sticks

COUNTS = (100, 1000, 10**4, 10**5, 10**6)
PATIENCE = 20.0
MEMORY = 6 << 30  # what a peer may use before it is a MemoryError
STEP = 1e-4  # the discretisation interval of dp-accounting, its default


Peer = tuple[str, dict[str, Any]]


def poisson(mu: float, rate: float) -> tuple[pld.Pair, pld.Pair]:
    """Return the pair of the Gaussian on a Poisson sample, one record added or removed."""

    def forward(e: Any) -> Any:
        return pld.subsampled_gaussian(mu=mu, rate=rate).forward(e)

    def backward(e: Any) -> Any:
        rest = 1.0 - (1.0 - rate) * np.exp(np.minimum(e, 50.0))
        inside = np.where(rest > 0.0, rest, 1.0)
        value = np.log(inside) + log_hockey_sticks(math.log(rate) + np.minimum(e, 50.0) - np.log(inside), mu)
        return np.where(rest > 0.0, np.minimum(value + 1e-12, 0.0), -np.inf)

    return pld.from_curve(forward, backward), pld.from_curve(backward, forward)


def ours(pairs: tuple[pld.Pair, ...], count: int, delta: float) -> float:
    """Return the larger epsilon of the orders."""
    return max(pld.epsilon([(pair, count)], log_delta_target=math.log(delta)).value for pair in pairs)


def dp_accounting(make: str, arguments: dict[str, Any], count: int, delta: float) -> float:
    """Return the epsilon of a law made by dp-accounting."""
    module = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    if make == "from_privacy_parameters":
        parameters = importlib.import_module("dp_accounting.pld.common").DifferentialPrivacyParameters
        arguments = {"privacy_parameters": parameters(**arguments)}
    law = getattr(module, make)(value_discretization_interval=STEP, **arguments)
    return float(law.self_compose(count).get_epsilon_for_delta(delta))


def prv_accountant(make: str, arguments: dict[str, Any], count: int, delta: float) -> float:
    """Return the upper bound of prv-accountant."""
    module = importlib.import_module("prv_accountant")
    accountant = module.PRVAccountant(
        prvs=[getattr(module, make)(**arguments)],
        max_self_compositions=[count],
        eps_error=0.01,
        delta_error=delta / 1000.0,
    )
    return float(accountant.compute_epsilon(delta, [count])[2])


def run(question: Callable[[], float]) -> str:
    """Return the answer, or what was raised, and the time it took."""
    best, answer = math.inf, ""
    for _ in range(3):
        start = time.perf_counter()
        try:
            answer = f"{question():.9g}"
        except Exception as error:  # a peer's failure is a result here
            answer = type(error).__name__
        took = time.perf_counter() - start
        best = min(best, took)
        if took > PATIENCE / 3.0:
            break
    return f"{answer:>14} {1e3 * best:8.0f}"


def rows(count: int) -> list[tuple[str, tuple[pld.Pair, ...], Peer, Peer]]:
    """Return (title, pairs, and how each peer makes them), losses in keeping with the count."""
    ratio, rate, e0 = count**-0.5, min(0.5, count**-0.5), 2.0 * count**-0.5
    return [
        (
            f"Laplace, ratio {ratio:.3g}",
            (pld.laplace(ratio=ratio),),
            ("from_laplace_mechanism", {"parameter": 1.0 / ratio}),
            ("LaplaceMechanism", {"mu": ratio}),
        ),
        (
            f"Gaussian, mu {ratio:.3g}, as a curve",
            (pld.from_curve(lambda e: log_hockey_sticks(e, ratio)),),
            ("from_gaussian_mechanism", {"standard_deviation": 1.0 / ratio}),
            ("GaussianMechanism", {"noise_multiplier": 1.0 / ratio}),
        ),
        (
            f"Gaussian, mu {ratio:.3g}, in closed form",
            (pld.gaussian(mu=ratio),),
            ("from_gaussian_mechanism", {"standard_deviation": 1.0 / ratio}),
            ("GaussianMechanism", {"noise_multiplier": 1.0 / ratio}),
        ),
        (
            f"(eps0 {e0:.3g}, 1e-40)-DP",
            (pld.randomised_response(epsilon=e0, log_delta=math.log(1e-40)),),
            ("from_privacy_parameters", {"epsilon": e0, "delta": 1e-40}),
            ("PureDPMechanism", {"eps": e0}),
        ),
        (
            f"Poisson {rate:.3g}, sigma 1",
            poisson(1.0, rate),
            ("from_gaussian_mechanism", {"standard_deviation": 1.0, "sampling_prob": rate}),
            ("PoissonSubsampledGaussianMechanism", {"sampling_probability": rate, "noise_multiplier": 1.0}),
        ),
    ]


def peers() -> dict[str, Callable[..., float]]:
    """Return those peers that are installed."""
    found = {"dp_accounting": dp_accounting, "prv_accountant": prv_accountant}
    for name in list(found):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: no column for it")
            del found[name]
    return found


def main(deltas: list[float]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    installed = peers()
    print(f"{'':44}" + "".join(f"{name:>24}" for name in ("dpcalc", *installed)))
    for delta in deltas:
        for count in COUNTS:
            for title, pairs, *theirs in rows(count):
                line = run(lambda pairs=pairs, count=count, delta=delta: ours(pairs, count, delta))
                for name, (make, arguments) in zip(("dp_accounting", "prv_accountant"), theirs, strict=True):
                    if name in installed:
                        question = installed[name]
                        line += run(lambda q=question, m=make, a=arguments, n=count, d=delta: q(m, a, n, d))
                print(f"{title:30} {count:8} {delta:<5.0e}{line}", flush=True)


if __name__ == "__main__":
    main([float(x) for x in sys.argv[1:]] or [1e-6, 1e-12, 1e-30])
