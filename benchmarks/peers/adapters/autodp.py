"""Questions in the words of autodp."""

import math

from autodp import dp_acct, mechanism_zoo, transformer_zoo
from autodp.calibrator_zoo import ana_gaussian_calibrator, generalized_eps_delta_calibrator


def _exact(given):
    mechanism = mechanism_zoo.ExactGaussianMechanism(given["sigma"])
    return transformer_zoo.ComposeGaussian()([mechanism], [given["count"]]).get_approxDP(given["delta"])


def _renyi(given):
    mechanism = mechanism_zoo.GaussianMechanism(given["sigma"])
    return transformer_zoo.Composition()([mechanism], [given["count"]]).get_approxDP(given["delta"])


def _exact_noise(given):
    calibrated = ana_gaussian_calibrator()(mechanism_zoo.ExactGaussianMechanism, given["epsilon"], given["delta"])
    return calibrated.params["sigma"] * math.sqrt(given["count"])


def _parameters(given):
    return {"prob": given["rate"], "sigma": given.get("sigma"), "coeff": given["count"]}


def _poisson(given):
    return mechanism_zoo.SubsampleGaussianMechanism(_parameters(given)).get_approxDP(given["delta"])


def _poisson_noise(given):
    found = generalized_eps_delta_calibrator()(
        mechanism_zoo.SubsampleGaussianMechanism, given["epsilon"], given["delta"], [0.1, 100.0],
        params=_parameters(given), para_name="sigma", name="calibrated",
    )  # fmt: skip
    return found.params["sigma"]


def _batches(given):
    mechanism = mechanism_zoo.GaussianMechanism(given["sigma"])
    mechanism.neighboring = "replace_one"
    sampling = transformer_zoo.AmplificationBySampling(PoissonSampling=False)
    step = sampling(mechanism, given["batch"] / given["records"], improved_bound_flag=True)
    return transformer_zoo.Composition()([step], [given["count"]]).get_approxDP(given["delta"])


def _laplace(given):
    mechanism = mechanism_zoo.LaplaceMechanism(given["scale"])
    return transformer_zoo.Composition()([mechanism], [given["count"]]).get_approxDP(given["delta"])


def _repeated(given):
    accountant = dp_acct.DP_acct()
    for _ in range(given["count"]):
        accountant.update_DPlosses(given["epsilon0"], given["delta0"])
    return accountant.get_eps(given["delta"])


def _run(given):
    return given | {"sigma": given["noise_std"] * given["batch"] / (2.0 * given["lipschitz"])}


METHODS = {
    "gaussian": {"exact": _exact, "RDP": _renyi},
    "gaussian noise": {"exact": _exact_noise},
    "poisson": {"RDP": _poisson},
    "poisson noise": {"RDP": _poisson_noise},
    "batches": {"RDP": _batches},
    "laplace": {"RDP": _laplace},
    "repeated": {"KOV": _repeated},
    "run: fixed order": {"every iterate, exact": lambda given: _exact(_run(given) | {"count": given["epochs"]})},
}
