"""Questions in the words of dpcalc: `command` is the Python API, which returns the whole report of the command.

`function` is the room below it, on which no command reports: nothing else takes a Poisson sample or Laplace noise.
Sensitivities are 1: replacing a record moves the mean gradient by 2 lipschitz/batch.
"""

import math

import numpy as np  # noqa: TID253

import dpcalc
from dpcalc.notions import gaussian, optimal_composition, pld
from dpcalc.numerics.floats import up
from dpcalc.numerics.normal_arrays import log_hockey_stick_up


def _best(report):
    return report.cases[0].best.value


def _log(delta):
    return math.nextafter(math.log(delta), -math.inf)


def _gaussian(given):
    return _best(dpcalc.multi_epoch(
        algorithm="noisy-gd", release="epoch", records=1, lipschitz=0.5, steps=given["count"],
        noise_std=given.get("sigma"), epsilon=given.get("epsilon"), delta=given["delta"],
    ))  # fmt: skip


def _gaussian_function(given):
    return gaussian.epsilon(
        mu=up(math.sqrt(given["count"]) / given["sigma"], 2.0), log_delta_target=_log(given["delta"])
    )


def _batches(given):
    return _best(dpcalc.multi_epoch(
        algorithm="noisy-sgd", release="epoch", records=given["records"], batch_size=given["batch"],
        lipschitz=given["batch"] / 2.0, steps=given["count"], noise_std=given.get("sigma"),
        epsilon=given.get("epsilon"), delta=given["delta"],
    ))  # fmt: skip


def _batches_function(given):
    pair = pld.subsampled_gaussian(mu=up(1.0 / given["sigma"], 1.0), rate=up(given["batch"] / given["records"], 1.0))
    return pld.epsilon([(pair, given["count"])], log_delta_target=_log(given["delta"])).value


def _poisson(given):
    """Both orders of the pair, one record added or removed; the larger epsilon."""
    mu, rate = up(1.0 / given["sigma"], 1.0), given["rate"]
    removed = pld.subsampled_gaussian(mu=mu, rate=rate).forward

    def added(e):
        log_rest = np.log(-np.expm1(np.minimum(e + math.log1p(-rate), 0.0)))
        some = np.isfinite(log_rest)
        threshold = np.where(some, math.log(rate) + e - log_rest, 0.0)
        value = log_rest + log_hockey_stick_up(threshold - 1e-13 * (1.0 + np.abs(threshold)), mu)
        return np.where(some, np.minimum(value + 1e-12, 0.0), -math.inf)

    orders = (removed, added), (added, removed)
    return max(
        pld.epsilon([(pld.from_curve(*order), given["count"])], log_delta_target=_log(given["delta"])).value
        for order in orders
    )


def _laplace(given):
    pair = pld.laplace(ratio=up(1.0 / given["scale"], 1.0))
    return pld.epsilon([(pair, given["count"])], log_delta_target=_log(given["delta"])).value


def _repeated(given):
    return _best(dpcalc.multi_epoch(
        algorithm="repeated", epochs=given["count"], epoch_epsilon=given["epsilon0"], epoch_delta=given["delta0"],
        delta=given["delta"],
    ))  # fmt: skip


def _repeated_function(given):
    return optimal_composition.epsilon(
        epsilon0=given["epsilon0"], log_delta0=math.log(given["delta0"]) if given["delta0"] else -math.inf,
        count=given["count"], log_delta_target=_log(given["delta"]),
    )  # fmt: skip


def _described(algorithm, release, given):
    asked = {"records": given["records"], "batch_size": given["batch"], "release": release}
    same = (
        "lipschitz",
        "smoothness",
        "strong_convexity",
        "step_size",
        "noise_std",
        "epochs",
        "steps",
        "epsilon",
        "delta",
    )
    return {"algorithm": algorithm, **asked, **{name: given[name] for name in same if name in given}}


def _run(algorithm, release="last"):
    return lambda given: _best(dpcalc.multi_epoch(**_described(algorithm, release, given)))


def _unbeatable(algorithm):
    """The largest of the lower bounds: no accountant of these assumptions can say less."""

    def answer(given):
        described = _described(algorithm, "last", given)
        results = dpcalc.compare(**described).cases[0].results
        return max(result.value for result in results if result.kind == "lower")

    return answer


METHODS = {
    "gaussian": {"command": _gaussian, "function": _gaussian_function},
    "gaussian noise": {"command": _gaussian},
    "poisson": {"function": _poisson},
    "batches": {"command": _batches, "function": _batches_function},
    "batches noise": {"command": _batches},
    "laplace": {"function": _laplace},
    "repeated": {"command": _repeated, "function": _repeated_function},
    "run: fixed order": {
        "last iterate": _run("cyclic"),
        "every iterate": _run("cyclic", "epoch"),
        "lower bound": _unbeatable("cyclic"),
    },
    "run: fixed order, noise": {"last iterate": _run("cyclic"), "every iterate": _run("cyclic", "epoch")},
    "run: new order": {
        "last iterate": _run("shuffled-epochs"),
        "iterate of every epoch": _run("shuffled-epochs", "epoch"),
        "lower bound": _unbeatable("shuffled-epochs"),
    },
    "run: fresh batches": {
        "last iterate": _run("noisy-sgd"),
        "every iterate": _run("noisy-sgd", "epoch"),
    },
}
