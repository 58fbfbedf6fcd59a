"""Questions in the words of prv-accountant: the upper end of its interval, add or remove one record."""

from prv_accountant import (
    ApproximateDPMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PoissonSubsampledGaussianMechanism,
    PRVAccountant,
)
from prv_accountant.dpsgd import find_noise_multiplier

ERROR = 0.01  # of epsilon; a search for the noise keeps to its default, 0.1, and takes long enough


def _spent(law, given):
    accountant = PRVAccountant(
        prvs=[law], max_self_compositions=[given["count"]], eps_error=ERROR, delta_error=given["delta"] / 1000.0
    )
    return accountant.compute_epsilon(given["delta"], [given["count"]])[2]


def _poisson(given):
    law = PoissonSubsampledGaussianMechanism(sampling_probability=given["rate"], noise_multiplier=given["sigma"])
    return _spent(law, given)


def _noise(given):
    return find_noise_multiplier(
        sampling_probability=given.get("rate", 1.0), num_steps=given["count"],
        target_epsilon=given["epsilon"], target_delta=given["delta"],
    )  # fmt: skip


def _passes(given):
    multiplier = given["noise_std"] * given["batch"] / (2.0 * given["lipschitz"])
    return _spent(GaussianMechanism(multiplier), {**given, "count": given["epochs"]})


METHODS = {
    "gaussian": {"upper": lambda given: _spent(GaussianMechanism(given["sigma"]), given)},
    "gaussian noise": {"search": _noise},
    "poisson": {"upper": _poisson},
    "poisson noise": {"search": _noise},
    "laplace": {"upper": lambda given: _spent(LaplaceMechanism(mu=1.0 / given["scale"]), given)},
    "repeated": {"upper": lambda given: _spent(ApproximateDPMechanism(given["epsilon0"], given["delta0"]), given)},
    "run: fixed order": {"every iterate": _passes},
}
